"""Normalised hyperplanes: distances, both kinds of normal vectors, several classes, errors."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.naming import named

from mercer import (
    SVC,
    SVR,
    KernelCentroid,
    LinearSVC,
    NuSVC,
    PegasosClassifier,
    Perceptron,
    RKHSFunction,
    Spectrum,
    margins,
    unit_hyperplanes,
)
from mercer.exceptions import InvalidInputError

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
TWO = np.where(X[:, 0] > 0.2, "b", "a")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
MODELS = [
    SVC(),
    SVC(kernel="linear"),
    SVC(C=np.inf, kernel="linear"),
    NuSVC(nu=0.1),
    LinearSVC(),
    Perceptron(),
    Perceptron(kernel="rbf", fit_intercept=False),
    PegasosClassifier(random_state=0),
    svm.SVC(kernel="linear"),
    svm.LinearSVC(),
    svm.LinearSVC(fit_intercept=False),
    LinearSVC(fit_intercept=False),
    LogisticRegression(),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("model", MODELS, ids=named)
def test_distances_are_geometric_margins(model, y):
    """|ŵ| = 1, and the signed distances are the geometric margins, with the sign of the label."""
    model.fit(X, y)
    planes, problems = unit_hyperplanes(model), margins(model, X, y).problems
    assert len(planes) == len(problems)
    for plane, found in zip(planes, problems, strict=True):
        size = plane.normal.norm() if isinstance(plane.normal, RKHSFunction) else np.linalg.norm(plane.normal)
        assert size == pytest.approx(1.0)
        assert (plane.positive, plane.negative) == (found.positive, found.negative)
        assert (plane.norm, plane.bias) == (pytest.approx(found.norm), pytest.approx(found.bias / found.norm))
        sign = np.where(y[found.rows] == plane.positive, 1.0, -1.0)
        np.testing.assert_allclose(sign * plane.distances(X)[found.rows], found.geometric, atol=1e-9)


def test_the_largest_margin():
    """[D6] Algorithm 13: the distance of the nearest sample of a hard margin is 1/|w|."""
    model = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, TWO)
    (plane,) = unit_hyperplanes(model)
    assert np.abs(plane.distances(X)).min() == pytest.approx(1 / plane.norm)
    assert model.margin_[0] == pytest.approx(1 / plane.norm)
    np.testing.assert_allclose(plane.distances(sp.csr_array(X)), plane.distances(X), atol=1e-12)


def test_objects_and_pipelines():
    """Strings have a hyperplane in their feature space; a pipeline has that of its last step."""
    (plane,) = unit_hyperplanes(SVC(kernel=Spectrum(2)).fit(["abab", "abba", "baab", "bbbb"], [0, 0, 1, 1]))
    assert plane.normal.norm() == pytest.approx(1.0)
    model = make_pipeline(StandardScaler(), LinearSVC()).fit(X, TWO)
    (plane,) = unit_hyperplanes(model)
    np.testing.assert_allclose(plane.distances(model[0].transform(X)) * plane.norm, model.decision_function(X))


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (SVR(), (X, X[:, 0]), "unit_hyperplanes needs a fitted classifier such as SVC, but was given SVR."),
        (
            SVC(kernel="precomputed"),
            (X @ X.T, TWO),
            "The normal vector of this SVC is not known: it has neither coef_ nor function_. Use margins(model, X, y), "
            "whose geometric margins are the distances; or from_sklearn, if the model is scikit-learn's.",
        ),
        (svm.SVC(), (X, TWO), "The normal vector of this SVC is not known"),
        (
            KernelCentroid(kernel="linear"),
            (np.array([[1.0], [-1.0], [1.0], [-1.0]]), [0, 0, 1, 1]),
            "w is 0, so there is no hyperplane: the model predicts the same class everywhere.",
        ),
    ],
    ids=["regression", "matrix", "scikit-learn", "zero"],
)
def test_bad_input(model, data, message):
    """The error says what to use instead."""
    with pytest.raises(InvalidInputError) as error:
        unit_hyperplanes(model.fit(*data))
    assert str(error.value).startswith(message)
