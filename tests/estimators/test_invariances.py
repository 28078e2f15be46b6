"""What must not change the model: the order of rows, names of labels, storage, threads; and what must scale it."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from tests.naming import named

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.kernels import Gaussian

ESTIMATORS = [
    SVC(C=2.0),
    SVC(C=2.0, loss="squared_hinge"),
    NuSVC(nu=0.37),
    SVR(C=2.0),
    NuSVR(C=2.0),
    OneClassSVM(nu=0.37),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
every_regression = pytest.mark.parametrize("estimator", [SVR(C=2.0), NuSVR(C=2.0)], ids=named)
with_C = pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if hasattr(e, "C")], ids=named)


def sample(n=120, d=4, seed=0):
    """Samples, and targets that serve as two labels or as numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + 0.5 * rng.normal(size=n)


def fit(estimator, X, y, weight=None, **params):
    """A fit to tol=1e-10, with labels made of y for classifiers."""
    settings = {"kernel": Gaussian(gamma=0.2), "tol": 1e-10, **params}
    labels = np.where(y > 0, "positive", "negative") if hasattr(estimator, "class_weight") else y
    return clone(estimator).set_params(**settings).fit(X, labels, sample_weight=weight)


def values(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@every_estimator
def test_order_of_rows(estimator):
    """Permuted rows give the same function, and the same rows as support vectors."""
    X, y = sample()
    order = np.random.default_rng(1).permutation(len(y))
    one, other = fit(estimator, X, y), fit(estimator, X[order], y[order])
    np.testing.assert_allclose(values(other, X), values(one, X), atol=1e-8)
    np.testing.assert_array_equal(np.sort(order[other.support_]), np.sort(one.support_))


@pytest.mark.parametrize("estimator", [SVC(C=2.0), SVC(C=np.inf), NuSVC(nu=0.37)], ids=named)
def test_exchanged_labels(estimator):
    """Exchanging the names of two classes changes the sign of the decision function."""
    X, y = sample()
    settings = {"gamma": 5.0, "kernel": "rbf"}
    one, other = fit(estimator, X, y, **settings), fit(estimator, X, -y, **settings)
    np.testing.assert_allclose(values(other, X), -values(one, X), atol=1e-8)


@every_regression
def test_mirrored_targets(estimator):
    """A regression of -y is the negative of one of y."""
    X, y = sample()
    np.testing.assert_allclose(fit(estimator, X, -y).predict(X), -fit(estimator, X, y).predict(X), atol=1e-8)


@every_regression
def test_shifted_targets(estimator):
    """A regression of y + 5 is one of y, moved by 5: the intercept is free."""
    X, y = sample()
    np.testing.assert_allclose(fit(estimator, X, y + 5).predict(X), fit(estimator, X, y).predict(X) + 5, atol=1e-8)


@every_estimator
def test_weights_are_repetitions(estimator):
    """A whole number as a weight means this many equal rows, and 0 means none."""
    X, y = sample()
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    weighted, repeated = fit(estimator, X, y, weight), fit(estimator, X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(values(weighted, X), values(repeated, X), atol=1e-7)
    np.testing.assert_allclose(weighted.certificate_.primal, repeated.certificate_.primal, rtol=1e-9)


@with_C
def test_weights_are_factors_of_C(estimator):
    """Equal weights of 3 mean three times C."""
    X, y = sample()
    heavy, dear = fit(estimator, X, y, np.full(len(y), 3.0)), fit(estimator, X, y, C=6.0)
    np.testing.assert_array_equal(values(heavy, X), values(dear, X))


@with_C
def test_scaled_kernel(estimator):
    """K multiplied by c is undone by C divided by c."""
    X, y = sample()
    one = fit(estimator, X, y)
    other = fit(estimator, X, y, C=estimator.C / 8.0, kernel=8.0 * Gaussian(gamma=0.2))
    np.testing.assert_allclose(values(other, X), values(one, X), atol=1e-8)


def test_weighted_features():
    """One gamma for each feature means features multiplied by its root."""
    X, y = sample()
    gammas = np.array([0.1, 0.4, 0.0, 2.0])
    one = fit(SVC(), X, y, kernel="rbf", gamma=gammas)
    other = fit(SVC(), X * np.sqrt(gammas), y, kernel="rbf", gamma=1.0)
    np.testing.assert_allclose(values(one, X), values(other, X * np.sqrt(gammas)), atol=1e-8)


@pytest.mark.parametrize("tol", [1e-3, 1e-10])
@every_estimator
def test_storage(estimator, tol):
    """float32, Fortran order and CSR hold the same numbers, and give the same model."""
    X, y = sample(n=500)
    X = X.astype(np.float32).astype(np.float64)  # numbers that float32 holds exactly
    model = fit(estimator, X, y, tol=tol)
    stores = (
        np.float32,
        np.asfortranarray,
        sp.csr_array,
        lambda X: sp.csr_matrix(X, dtype=np.float32),
        np.ndarray.tolist,
    )
    for store in stores:
        other = fit(estimator, store(X), y, tol=tol)
        # by how much two models that are optimal to within tol may differ
        np.testing.assert_allclose(values(other, store(X)), values(model, X), atol=1e-8 if tol == 1e-10 else 0.02)


def everything(model):
    """The bits of a model."""
    names = ("support_", "dual_coef_", "intercept_", "rkhs_norm_", "n_iter_")
    return [np.asarray(getattr(model, name)).tobytes() for name in names] + [model.certificate_]


@pytest.mark.parametrize("settings", [{}, {"cache_size": 1.0}], ids=["whole matrix", "decomposition"])
@pytest.mark.parametrize("estimator", [SVC(), SVR(), NuSVR(), OneClassSVM()], ids=named)
def test_same_bits(estimator, settings):
    """A second fit, on 1, 2 or 3 threads, has the same bits; so have its predictions."""
    X, y = sample(n=1200)
    models = [fit(estimator, X, y, tol=1e-3, n_jobs=n_jobs, **settings) for n_jobs in (1, 1, 2, 3)]
    for model in models[1:]:
        assert everything(model) == everything(models[0])
        assert values(model, X).tobytes() == values(models[0], X).tobytes()


@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_same_bits_of_pairs(name):
    """Pairs of classes solved side by side give the same bits as one after the other."""
    X, y = sample(n=800)
    codes = np.digitize(y, np.quantile(y, [0.2, 0.4, 0.6, 0.8]))
    estimator = SVC() if name == "SVC" else NuSVC(nu=0.3)
    models = [clone(estimator).set_params(n_jobs=n_jobs).fit(X, codes) for n_jobs in (1, 2, 3)]
    for model in models[1:]:
        assert everything(model) == everything(models[0])


def test_float32_is_not_copied():
    """A fit to float32 samples never holds all of them in float64."""
    prepared = []

    class Recorded(Gaussian):
        def prepare(self, samples, dtype=np.float64):
            prepared.append((len(samples), np.dtype(dtype)))
            return super().prepare(samples, dtype)

    X, y = sample(n=3000)
    model = SVC(kernel=Recorded(0.2), C=0.5).fit(X.astype(np.float32), y > 0)
    assert (3000, np.dtype(np.float32)) in prepared
    assert max(n for n, dtype in prepared if dtype == np.float64) < 3000
    assert model.support_vectors_.dtype == np.float32
