"""probability=True: Platt's sigmoids and their coupling, as in LIBSVM."""

import numpy as np
import pytest
import sklearn.svm
from scipy.optimize import minimize
from sklearn.datasets import make_classification

from mercer import SVC, NuSVC
from mercer.estimators.prediction import pairwise_probabilities, sigmoid

FOREWARNED = pytest.mark.filterwarnings("ignore:The `probability` parameter was deprecated:FutureWarning")
ESTIMATORS = {"SVC": {"C": 1.0}, "NuSVC": {"nu": 0.3}}


def sample(n_classes=2, n=1000):
    return make_classification(
        n, 6, n_informative=4, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.1, random_state=0
    )


@FOREWARNED
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_same_as_sklearn(name, n_classes):
    """Probabilities are scikit-learn's to within 0.05; only the folds, which are random, differ."""
    X, y = sample(n_classes)
    ours = {"SVC": SVC, "NuSVC": NuSVC}[name](probability=True, random_state=0, **ESTIMATORS[name]).fit(X, y)
    theirs = getattr(sklearn.svm, name)(probability=True, random_state=0, **ESTIMATORS[name]).fit(X, y)
    found, expected = ours.predict_proba(X), theirs.predict_proba(X)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 0.05
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    assert ((found >= 0) & (found <= 1)).all()
    np.testing.assert_array_equal(ours.predict_log_proba(X), np.log(found))


@FOREWARNED
def test_more_likely_means_predicted():
    """Almost always the label is that of the larger probability, and probabilities mean what they say."""
    X, y = sample()
    model = SVC(probability=True, random_state=0).fit(X[:500], y[:500])
    likely = model.predict_proba(X[500:])[:, 1]
    assert ((likely > 0.5) == model.predict(X[500:])).mean() > 0.97
    for low, high in ((0.0, 0.2), (0.8, 1.0)):
        inside = (likely >= low) & (likely <= high)
        assert low - 0.1 < y[500:][inside].mean() < high + 0.1


@FOREWARNED
def test_seed():
    """random_state decides on the folds, and on nothing else."""
    X, y = sample()
    one, same, other = (SVC(probability=True, random_state=seed).fit(X, y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.predict_proba(X), same.predict_proba(X))
    assert np.abs(one.predict_proba(X) - other.predict_proba(X)).max() > 0
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_deprecation():
    """The parameter goes the way of scikit-learn's, with its words, at the user's line."""
    X, y = sample()
    expected = (
        "The `probability` parameter was deprecated in 1.9 and will be removed in version 1.11. Use "
        "`CalibratedClassifierCV(NuSVC(), ensemble=False)` instead of `NuSVC(probability=True)`"
    )
    with pytest.warns(FutureWarning) as found:
        model = NuSVC(nu=0.3, probability=True, max_iter=-1).fit(X, y)
    assert [str(w.message) for w in found] == [expected]
    assert found[0].filename == __file__
    for name in ("probA_", "probB_"):
        with pytest.warns(FutureWarning, match=f"Attribute `{name}` was deprecated in version 1.9"):
            assert getattr(model, name).shape == (1,)


def test_only_if_asked_for():
    """Without the parameter there is no predict_proba."""
    X, y = sample()
    model = SVC().fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match=r"^This 'SVC' has no attribute 'predict_proba'$") as found:
        model.predict_proba(X)
    assert str(found.value.__cause__) == (
        "predict_proba is not available when probability=False. Use SVCCV, which also chooses the parameters, or "
        "scikit-learn's CalibratedClassifierCV(SVC(), ensemble=False)."
    )
    assert not hasattr(model, "predict_log_proba")


@FOREWARNED
def test_folds_that_nu_does_not_fit():
    """A nu that is just feasible for all samples is lowered in folds where it is not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.arange(60) % 3 == 0
    X[y] += 2.0
    model = NuSVC(nu=2 * 20 / 60, probability=True, random_state=0).fit(X, y)
    assert ((model.predict_proba(X)[:, 1] > 0.5) == y).mean() > 0.8


@FOREWARNED
def test_a_class_too_small_for_folds():
    """A class of one sample is in no training fold but its own: LIBSVM's answer then, and no error."""
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [9.0]])
    model = SVC(probability=True, random_state=0).fit(X, [0, 0, 0, 0, 0, 1])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_sigmoid_is_the_minimiser():
    """A and B minimise the cross-entropy with Platt's smoothed targets."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    y = np.where(values + rng.normal(size=200) > 0, 1.0, -1.0)
    n_positive, n_negative = (y > 0).sum(), (y < 0).sum()
    target = np.where(y > 0, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))

    def entropy(AB):
        z = AB[0] * values + AB[1]
        return np.sum(target * z + np.logaddexp(0.0, -z))

    np.testing.assert_allclose(sigmoid(values, y), minimize(entropy, [0.0, 0.0]).x, atol=1e-4)


def test_coupling():
    """Pairwise probabilities that come from class probabilities are coupled back to these."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=50)
    r = np.column_stack([p[:, i] / (p[:, i] + p[:, j]) for i in range(4) for j in range(i + 1, 4)])
    values = np.log(r / (1 - r))  # A = -1, B = 0: the sigmoid is the logistic function
    found = pairwise_probabilities(values, -np.ones(6), np.zeros(6), 4)
    np.testing.assert_allclose(found, p, atol=0.02)
    rows = [pairwise_probabilities(row[None], -np.ones(6), np.zeros(6), 4) for row in values]
    np.testing.assert_array_equal(np.concatenate(rows), found)
