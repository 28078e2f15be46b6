"""Every fit reaches the optimum that an independent QP solver finds, and its certificate says so."""

import numpy as np
import pytest
from tests.reference.qp import objective, solve_qp

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM, certify
from mercer.kernels import Gaussian, Linear
from mercer.losses import (
    EpsilonInsensitive,
    HardMargin,
    Hinge,
    NuHinge,
    NuInsensitive,
    OneClass,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)

C, EPSILON = 3.0, 0.1
SETTINGS = {"kernel": "precomputed", "tol": 1e-9}

# estimator, the loss it stands for, its weight in the QP, what y is
FORMS = {
    "hinge": (SVC(C=C), Hinge(), C, "labels"),
    "squared hinge": (SVC(C=C, loss="squared_hinge"), SquaredHinge(), C, "labels"),
    "hard margin": (SVC(C=np.inf), HardMargin(), 1.0, "separable labels"),
    "epsilon": (SVR(C=C, epsilon=EPSILON), EpsilonInsensitive(EPSILON), C, "numbers"),
    "epsilon 0": (SVR(C=C, epsilon=0.0), EpsilonInsensitive(0.0), C, "numbers"),
    "squared epsilon": (
        SVR(C=C, epsilon=EPSILON, loss="squared_epsilon_insensitive"),
        SquaredEpsilonInsensitive(EPSILON),
        C,
        "numbers",
    ),
    "pinball": (SVR(C=C, loss="pinball", quantile=0.8), Pinball(0.8), C, "numbers"),
    "nu-SVC": (NuSVC(nu=0.6), NuHinge(0.6), 1.0, "labels"),
    "nu-SVR": (NuSVR(nu=0.4, C=C), NuInsensitive(0.4), C, "numbers"),
    "one-class": (OneClassSVM(nu=0.35), OneClass(0.35), 1.0, "none"),
}
WITHOUT_INTERCEPT = [name for name, (estimator, *_) in FORMS.items() if "fit_intercept" in estimator.get_params()]


def gaussian(X, gamma=0.5):
    return np.exp(-gamma * ((X[:, None, :] - X) ** 2).sum(axis=2))


def targets(kind, X, rng):
    """Noisy labels or numbers that depend on the samples; the first two labels differ."""
    value = X[:, 0] + (0.0 if kind == "separable labels" else 0.7) * rng.normal(size=len(X))
    if kind == "numbers":
        return value
    if kind == "none":
        return np.ones(len(X))
    y = np.where(value > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return y


def check(name, K, y, intercept=True, X=None, **settings):
    """Fit to K, or to X with a kernel, and compare both values of the certificate with the optimum of the QP."""
    estimator, loss, weight, _ = FORMS[name]
    if not intercept:
        settings["fit_intercept"] = False
    model = type(estimator)(**{**estimator.get_params(), **SETTINGS, **settings})
    # the class that comes first, -1, is the positive one of LIBSVM's pair
    signed = -y if isinstance(estimator, SVC | NuSVC) else y
    model.fit(K if X is None else X, y)
    qp = loss.box_qp(signed, np.full(len(y), weight), intercept)
    optimum = -objective(K, qp, solve_qp(K, qp))
    certificate = model.certificate_
    assert certificate.valid and model.fit_status_ == 0
    assert certificate.kkt_violation <= 1e-9
    assert certificate.relative_gap <= 1e-8
    np.testing.assert_allclose([certificate.primal, certificate.dual], optimum, rtol=1e-8, atol=1e-8)
    return model


@pytest.mark.parametrize("n", [2, 3, 10, 60])
@pytest.mark.parametrize("name", FORMS)
def test_with_intercept(name, n):
    """The optimum is reached with an intercept."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3))
    check(name, gaussian(X), targets(FORMS[name][3], X, rng))


@pytest.mark.parametrize("n", [2, 3, 10, 60])
@pytest.mark.parametrize("name", WITHOUT_INTERCEPT)
def test_without_intercept(name, n):
    """The optimum is reached without an intercept, which is 0 then."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3))
    model = check(name, gaussian(X), targets(FORMS[name][3], X, rng), intercept=False)
    assert model.intercept_ == 0.0


@pytest.mark.parametrize("name", FORMS)
def test_interior_point(name):
    """solver="qp" reaches the same optimum."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 3))
    check(name, gaussian(X), targets(FORMS[name][3], X, rng), solver="qp")


@pytest.mark.parametrize(
    ("name", "intercept"), [(name, True) for name in FORMS] + [(name, False) for name in WITHOUT_INTERCEPT]
)
def test_decomposition(name, intercept):
    """The optimum is reached where the matrix does not fit in the memory allowed."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(180, 3))
    y = targets(FORMS[name][3], X, rng)
    # a quarter of 180² numbers of 8 bytes
    model = check(name, gaussian(X), y, intercept, X, kernel=Gaussian(gamma=0.5), cache_size=0.06)
    assert len(model.trace_) > 1


@pytest.mark.parametrize("cache_size", ["auto", 1.0], ids=["whole matrix", "decomposition"])
@pytest.mark.parametrize("name", [name for name in FORMS if not name.startswith("squared")])
def test_larger(name, cache_size):
    """The optimum is reached for 600 samples, with the whole matrix in memory or a part of it.

    The kernel has rank 4, which the reference makes use of; with a squared loss it could not.
    """
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3))
    y = targets(FORMS[name][3], X, rng)
    if name == "hard margin":
        X[:, 0] += 0.3 * y
    check(name, X @ X.T + 1.0, y, X=X, kernel=Linear() + 1.0, cache_size=cache_size)


@pytest.mark.parametrize("cache_size", ["auto", 3.0], ids=["whole matrix", "decomposition"])
@pytest.mark.parametrize("name", FORMS)
def test_beyond_the_reference(name, cache_size):
    """1500 samples are too many for the reference: two values that enclose the optimum say that it was reached."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(1500, 3))
    y = targets(FORMS[name][3], X, rng)
    estimator = type(FORMS[name][0])(**{**FORMS[name][0].get_params(), "kernel": Gaussian(gamma=0.5)})
    model = estimator.set_params(tol=1e-9, cache_size=cache_size).fit(X, y)
    for found in (model.certificate_, certify(model, X, y)):
        assert found.valid
        assert found.relative_gap <= 1e-7
        assert found.kkt_violation <= 2e-9


@pytest.mark.parametrize("name", ["hinge", "epsilon", "one-class"])
def test_published_coefficients(name):
    """dual_coef_ and intercept_ are those of the optimum: the values of the QP's own β."""
    _, loss, weight, kind = FORMS[name]
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 3))
    K, y = gaussian(X), targets(kind, X, rng)
    model = check(name, K, y)
    qp = loss.box_qp(y, np.full(len(y), weight), True)
    beta = solve_qp(K, qp)
    published = np.zeros(len(y))
    published[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(published, beta, atol=1e-6)
    values = model.predict(K) if name == "epsilon" else model.decision_function(K)
    np.testing.assert_allclose(values - model.intercept_, K @ beta, atol=1e-6)


def test_certificate_is_recomputed_from_the_data():
    """The certificate equals what its definition gives for the published coefficients in plain numpy."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 4))
    y = targets("labels", X, rng)
    model = SVC(C=C, gamma=0.3).fit(X, y)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    f = gaussian(X, 0.3) @ beta
    primal = 0.5 * beta @ f + C * np.maximum(0.0, 1.0 - y * (f + model.intercept_)).sum()
    dual = y @ beta - 0.5 * beta @ f
    found = model.certificate_
    np.testing.assert_allclose([found.primal, found.dual], [primal, dual], rtol=1e-10)
    assert found.gap == found.primal - found.dual
    assert found.relative_gap < 1e-3 and found.kkt_violation <= 1e-3
    np.testing.assert_allclose(model.rkhs_norm_, np.sqrt(beta @ f), rtol=1e-10)
    np.testing.assert_allclose(model.margin_, 1.0 / model.rkhs_norm_)
