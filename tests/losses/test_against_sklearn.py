"""The programs are those of scikit-learn's LIBSVM models: same coefficients, intercept and objective.

LIBSVM keeps its kernel in float32, so that nothing beyond 1e-5 can be compared.
"""

import numpy as np
import pytest
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from tests.problems.instances import gaussian_kernel, targets
from tests.reference.qp import objective, solve_qp

from mercer.losses import EpsilonInsensitive, Hinge, NuHinge, NuInsensitive, OneClass
from mercer.problems import thresholds

TOL = 1e-5

MODELS = [
    (Hinge(), SVC(C=1.5, tol=1e-8, kernel="precomputed"), 1.5),
    (NuHinge(0.4), NuSVC(nu=0.4, tol=1e-8, kernel="precomputed"), 1.0),
    (EpsilonInsensitive(0.2), SVR(C=1.5, epsilon=0.2, tol=1e-8, kernel="precomputed"), 1.5),
    (NuInsensitive(0.4), NuSVR(C=1.5, nu=0.4, tol=1e-8, kernel="precomputed"), 1.5),
    (OneClass(0.4), OneClassSVM(nu=0.4, tol=1e-8, kernel="precomputed"), 1.0),
]


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("loss", "model", "C"), MODELS, ids=lambda x: type(x).__name__)
def test_same_model(loss, model, C, weighted):
    """Published coefficients, intercept and objective equal those of scikit-learn, with and without sample weights."""
    rng = np.random.default_rng(3)
    n = 60
    X = rng.normal(size=(n, 3))
    K = gaussian_kernel(X)
    y = targets(loss, X, rng)
    sample_weight = rng.uniform(0.3, 2.0, size=n) if weighted else np.ones(n)
    model.fit(K, y, sample_weight=sample_weight)
    theirs = np.zeros(n)
    theirs[model.support_] = model.dual_coef_[0]

    qp = loss.box_qp(y, C * sample_weight, True)
    beta = solve_qp(K, qp)
    folded = qp.at_samples(beta, n)
    published = loss.publish(folded, thresholds(qp, beta, K @ folded))
    np.testing.assert_allclose(published.beta, theirs, atol=TOL * np.abs(theirs).max())
    np.testing.assert_allclose(published.intercept, model.intercept_[0], atol=TOL * max(1.0, abs(model.intercept_[0])))
    if qp.sample is None:
        ours, other = objective(K, qp, beta), objective(K, qp, theirs * published.scale)
        np.testing.assert_allclose(ours, other, rtol=TOL)


def test_fractions_that_nu_controls():
    """At most a fraction nu of the samples is inside the margin, at least nu are support vectors."""
    rng = np.random.default_rng(4)
    n = 80
    X = rng.normal(size=(n, 3))
    K = gaussian_kernel(X)
    for loss in (NuHinge(0.35), OneClass(0.35), NuInsensitive(0.35)):
        y = targets(loss, X, rng)
        qp = loss.box_qp(y, np.ones(n), True)
        beta = np.abs(qp.at_samples(solve_qp(K, qp), n))
        assert (beta > 1 - 1e-9).sum() <= 0.35 * n + 1e-9 <= (beta > 1e-9).sum() + 1e-9
