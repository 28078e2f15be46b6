"""A fitted model in a notebook: scikit-learn's diagram, and one more line."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from tests.naming import named

from mercer import SVC, SVCCV, GaussianProcessClassifier, KernelRidge, LinearSVC, OneClassSVM
from mercer.estimators.inspection.notebook_line import notebook_line

CLASS = "mercer-notebook-line"


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(60, 3))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    "model",
    [
        SVC(),
        LinearSVC(),
        KernelRidge(kernel="rbf"),
        OneClassSVM(),
        SVCCV(Cs=2, gammas=2),
        GaussianProcessClassifier(optimizer=None),
    ],
    ids=named,
)
def test_a_fitted_model_has_the_line(model, data):
    """It has the certificate, and the support vectors and the plan if there are any."""
    plain = model._repr_html_()
    assert CLASS not in plain and CLASS not in model._repr_mimebundle_()["text/html"]
    model.fit(*data)
    for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert html.count(CLASS) == 1 and "sk-container-id" in html
        assert "<b>certificate</b>: within " in html
        assert ("<b>support vectors</b>" in html) == hasattr(getattr(model, "best_estimator_", model), "support_")
    assert CLASS not in repr(model)


def test_numbers_of_the_line(data):
    """Support vectors out of samples, and the plan in words."""
    model = SVC().fit(*data)
    line = notebook_line(model)
    assert f"<b>support vectors</b>: {len(model.support_)} of 60 samples" in line
    assert f"<b>plan</b>: {model.plan_}" in line


def test_text_is_escaped(data):
    """No part of the line can be markup."""
    model = SVC().fit(*data)
    model.plan_ = "<script>alert(1)</script>"
    assert "<script>" not in notebook_line(model) and "&lt;script&gt;" in notebook_line(model)


def test_text_instead_of_a_diagram(data):
    """With display="text" there is no HTML, as in scikit-learn."""
    model = SVC().fit(*data)
    with config_context(display="text"):
        assert set(model._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(model, "_repr_html_")


def test_a_pipeline_has_scikit_learns_diagram(data):
    """The line belongs to the model that is shown."""
    assert CLASS not in make_pipeline(SVC()).fit(*data)._repr_html_()
