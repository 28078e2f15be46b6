"""Batches by `partial_fit` make the model of one fit to all samples."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from mercer import SVC, SVR, Gaussian, GaussianProcessRegressor, KernelRidge, OneClassSVM, White
from mercer.exceptions import InvalidInputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=90)
MODELS = [
    SVR(gamma=0.3, tol=1e-9, updatable=True),
    OneClassSVM(gamma=0.3, nu=0.3, tol=1e-9, updatable=True),
    KernelRidge(kernel="rbf", gamma=0.3, updatable=True),
    GaussianProcessRegressor(Gaussian(0.3) + White(0.1), optimizer=None, updatable=True),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def values(model):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@every_model
def test_batches_equal_one_fit(model):
    """Three batches, the first of which fits, give the values of a fit to all samples."""
    batches, whole = clone(model), clone(model).fit(X, Y)
    for part in np.array_split(np.arange(90), 3):
        assert batches.partial_fit(X[part], Y[part]) is batches
    np.testing.assert_allclose(values(batches), values(whole), rtol=1e-6, atol=1e-6)
    assert len(batches.fit(X[:30], Y[:30]).predict(X)) == 90  # fit forgets the batches
    np.testing.assert_allclose(values(batches), values(clone(model).fit(X[:30], Y[:30])), rtol=1e-6, atol=1e-6)


def test_weights():
    """Weights of batches are weights of the samples."""
    weight = RNG.integers(1, 4, 90).astype(float)
    model = SVR(gamma=0.3, tol=1e-9, updatable=True)
    whole = clone(model).fit(X, Y, weight)
    model.partial_fit(X[:40], Y[:40], weight[:40]).partial_fit(X[40:], Y[40:], sample_weight=weight[40:])
    np.testing.assert_allclose(values(model), values(whole), rtol=1e-6, atol=1e-6)


@every_model
@pytest.mark.filterwarnings("ignore")
def test_sklearn_contract(model):
    """scikit-learn's checks of partial_fit pass; weights are repetitions with a small tol only, as without updates."""
    results = check_estimator(model, on_fail=None, on_skip=None)
    assert any("partial_fit" in r["check_name"] for r in results) or isinstance(model, OneClassSVM)
    failed = {r["check_name"] for r in results if r["status"] == "failed"}
    assert {name for name in failed if "sample_weight_equivalence" not in name} == set()


def test_where_there_is_none():
    """Without kept samples, and for classifiers, the attribute is missing, and the error says what to use."""
    assert not hasattr(SVR(), "partial_fit") and not hasattr(SVC(updatable=True), "partial_fit")
    with pytest.raises(AttributeError) as caught:
        SVR().partial_fit(X, Y)
    assert str(caught.value.__cause__) == (
        "partial_fit is not available when updatable=False: it needs the earlier samples. Use SVR(updatable=True)."
    )
    with pytest.raises(AttributeError) as caught:
        SVC(updatable=True).partial_fit(X, Y > 0)
    assert str(caught.value.__cause__) == (
        "SVC has no partial_fit: its first samples need not be of all classes, and a machine says nothing of a class "
        "without samples. Use SVC(updatable=True), fit and add, which takes new classes."
    )
    fitted = SVR().fit(X, Y).set_params(updatable=True)
    with pytest.raises(InvalidInputError, match="does not keep its training samples"):
        fitted.partial_fit(X, Y)  # it would forget the samples of fit
