"""A fit that begins with the last solution reaches the same optimum in fewer steps."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from tests.naming import named

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM

# an estimator, the parameter that changes, its two values
CHANGES = [
    (SVC(gamma=0.2), "C", 10.0, 12.0),
    (SVC(gamma=0.2, fit_intercept=False), "C", 10.0, 8.0),
    (SVC(gamma=0.2, loss="squared_hinge"), "C", 10.0, 12.0),
    (SVR(gamma=0.2), "C", 10.0, 12.0),
    (SVR(gamma=0.2, C=10.0), "epsilon", 0.1, 0.12),
    (NuSVC(gamma=0.2), "nu", 0.4, 0.41),
    (NuSVC(gamma=0.2), "nu", 0.41, 0.4),
    (NuSVR(gamma=0.2), "C", 10.0, 12.0),
    (OneClassSVM(gamma=0.2), "nu", 0.4, 0.41),
    (OneClassSVM(gamma=0.2), "nu", 0.41, 0.4),
]


def sample(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    value = X[:, 0] + 0.5 * rng.normal(size=n)
    return X, value


def targets(estimator, value):
    return value if isinstance(estimator, SVR | NuSVR) else (value > 0).astype(int)


@pytest.mark.parametrize(
    ("estimator", "name", "before", "after"), CHANGES, ids=lambda v: repr(v) if hasattr(v, "fit") else ""
)
def test_fewer_steps_to_the_same_optimum(estimator, name, before, after):
    """After a small change of a parameter a warm start takes fewer steps, to the same certified optimum."""
    X, value = sample()
    y = targets(estimator, value)
    cold = clone(estimator).set_params(**{name: after}).fit(X, y)
    warm = clone(estimator).set_params(**{name: before}, warm_start=True).fit(X, y)
    warm.set_params(**{name: after}).fit(X, y)
    assert np.sum(warm.n_iter_) < 0.8 * np.sum(cold.n_iter_)
    assert warm.certificate_.valid and warm.certificate_.kkt_violation <= 1e-3
    # both are within their gaps of the one optimum
    distance = abs(warm.certificate_.dual - cold.certificate_.dual)
    assert distance <= max(warm.certificate_.gap, cold.certificate_.gap)


@pytest.mark.parametrize("estimator", [SVC(), SVR(), NuSVC(), NuSVR(), OneClassSVM()], ids=named)
def test_the_optimum_needs_no_step(estimator):
    """A second fit of the same problem is done at once."""
    X, value = sample()
    model = estimator.set_params(warm_start=True, tol=1e-6).fit(X, targets(estimator, value))
    support = model.support_
    model.fit(X, targets(estimator, value))
    assert np.sum(model.n_iter_) == 0
    np.testing.assert_array_equal(model.support_, support)


@pytest.mark.parametrize("estimator", [SVC(), SVR(), NuSVC(), NuSVR(), OneClassSVM()], ids=named)
def test_other_sizes_start_afresh(estimator):
    """A solution of another size is of no use, and does no harm."""
    X, value = sample()
    y = targets(estimator, value)
    model = clone(estimator).set_params(warm_start=True).fit(X, y)
    model.fit(X[:150], y[:150])
    fresh = clone(estimator).fit(X[:150], y[:150])
    np.testing.assert_array_equal(model.dual_coef_, fresh.dual_coef_)
    np.testing.assert_array_equal(model.intercept_, fresh.intercept_)


def test_other_classes_start_afresh():
    """So does a problem with another number of classes."""
    X, value = sample()
    model = SVC(warm_start=True).fit(X, np.digitize(value, [-0.5, 0.5]))
    model.fit(X, value > 0)
    np.testing.assert_array_equal(model.dual_coef_, SVC().fit(X, value > 0).dual_coef_)


def test_several_classes():
    """Each pair starts from its own solution."""
    X, value = sample()
    y = np.digitize(value, [-0.5, 0.5])
    cold = SVC(C=12.0).fit(X, y)
    warm = SVC(C=10.0, warm_start=True).fit(X, y).set_params(C=12.0).fit(X, y)
    assert (warm.n_iter_ < cold.n_iter_).all()
    assert warm.certificate_.kkt_violation <= 1e-3


def test_other_data_of_the_same_size():
    """The start only has to be feasible: shuffled rows, other weights and other labels end at their own optimum."""
    X, value = sample()
    model = SVC(warm_start=True, tol=1e-8).fit(X, value > 0)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, len(X))
    model.fit(X[::-1], value > 0, sample_weight=weight)
    fresh = SVC(tol=1e-8).fit(X[::-1], value > 0, sample_weight=weight)
    np.testing.assert_allclose(model.decision_function(X), fresh.decision_function(X), atol=1e-6)


def test_only_if_asked_for():
    """Without warm_start a fit has no memory, and a fitted model does not keep its dual solution."""
    X, value = sample()
    model = SVC().fit(X, value > 0)
    steps = model.n_iter_.copy()
    np.testing.assert_array_equal(model.fit(X, value > 0).n_iter_, steps)
    # a tenth of the samples have weight in the smaller model
    assert len(pickle.dumps(SVC(kernel="linear").fit(X + 3 * np.sign(value)[:, None], value > 0))) < 8 * X.size
