"""QuantileSVR: quantiles that do not cross at the samples, solved to a certificate of the joint problem."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_pinball_score
from sklearn.utils.estimator_checks import check_estimator

from mercer import SVR, Gaussian, QuantileSVR, Spectrum, certify

TAUS = [0.1, 0.3, 0.5, 0.7, 0.9]


def noisy_line(n=80, seed=0):
    """y = x plus noise that grows with x."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 3, size=(n, 1))
    return X, X[:, 0] + (0.2 + 0.3 * X[:, 0]) * rng.normal(size=n)


X, y = noisy_line()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("quantiles", [0.5, (0.1, 0.5, 0.9)], ids=["one", "three"])
def test_sklearn_checks(quantiles):
    """scikit-learn's own checks pass; with several columns all but those that ask for one."""
    names = ("check_estimator_sparse_array", "check_estimator_sparse_matrix", "check_regressors_train")
    one = dict.fromkeys(names, "asks for one column")
    model = QuantileSVR(quantiles, kernel=Gaussian(0.1), C=10.0, tol=1e-10)
    check_estimator(model, expected_failed_checks=one if np.ndim(quantiles) else {})


def root(K):
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def clarabel_optimum(K, y, C, taus):
    """The joint problem over the coordinates of a root of K: v, b, and both parts of the residuals of each quantile."""
    n, many = len(y), len(taus)
    values = sp.hstack([root(K), np.ones((n, 1)), sp.csc_matrix((n, 2 * n))])
    size = values.shape[1]
    P = sp.block_diag([sp.diags(np.append(np.ones(n), np.zeros(2 * n + 1)))] * many).tocsc()
    parts = sp.hstack([sp.csc_matrix((n, n + 1)), sp.eye(n), -sp.eye(n)])
    equal = sp.block_diag([values + parts] * many)
    positive = sp.block_diag([sp.hstack([sp.csc_matrix((2 * n, n + 1)), -sp.eye(2 * n)])] * many)
    order = [
        sp.hstack([values if p == q else -values if p == q + 1 else sp.csc_matrix((n, size)) for p in range(many)])
        for q in range(many - 1)
    ]
    linear = np.concatenate([np.concatenate([np.zeros(n + 1), np.repeat([C * t, C * (1 - t)], n)]) for t in taus])
    A = sp.vstack([equal, positive, *order]).tocsc()
    cones = [clarabel.ZeroConeT(many * n), clarabel.NonnegativeConeT(A.shape[0] - many * n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    right = np.concatenate([np.tile(y, many), np.zeros(A.shape[0] - many * n)])
    return clarabel.DefaultSolver(P, linear, A, right, cones, settings).solve().obj_val


@pytest.mark.parametrize(("C", "gamma"), [(10.0, 20.0), (100.0, 4.0)])
def test_clarabel_finds_the_same_optimum(C, gamma):
    """Where the quantiles would cross, a general solver of the joint problem has the same objective."""
    kernel = Gaussian(gamma)
    alone = [SVR(loss="pinball", quantile=t, C=C, kernel=kernel).fit(X, y).predict(X) for t in TAUS]
    assert (np.diff(alone, axis=0) < -1e-3).any()
    model = QuantileSVR(TAUS, C=C, kernel=kernel, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(model.certificate_.primal, clarabel_optimum(kernel(X), y, C, TAUS), rtol=1e-6)
    assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-7
    assert (np.diff(model.predict(X)) >= -1e-9).all()


def test_without_crossings_they_are_independent():
    """Smooth quantiles far apart are those of SVR with the pinball loss."""
    model = QuantileSVR([0.1, 0.9], kernel="linear", tol=1e-9).fit(X, y)
    for column, quantile in zip(model.predict(X).T, [0.1, 0.9], strict=True):
        alone = SVR(loss="pinball", quantile=quantile, kernel="linear", tol=1e-9).fit(X, y)
        np.testing.assert_allclose(column, alone.predict(X), atol=1e-4)


@pytest.mark.parametrize("kernel", ["linear", Gaussian(2.0)], ids=["low rank", "gaussian"])
def test_weights_that_differ_by_orders(kernel):
    """Weights between 0.001 and 1,000 and targets with ties are solved to the same gap, without crossings."""
    rng = np.random.default_rng(1)
    weight = 10.0 ** rng.uniform(-3, 3, len(X))
    model = QuantileSVR(TAUS, C=10.0, kernel=kernel, tol=1e-6).fit(X, np.round(y), weight)
    assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-6
    assert (np.diff(model.predict(X)) >= -1e-9).all()


def test_nine_quantiles_of_more_samples():
    """300 samples in 5 dimensions, nine quantiles: the joint problem is solved to its tolerance in few Newton steps."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(300, 5))
    z = np.sin(A[:, 0]) + (0.3 + 0.2 * np.abs(A[:, 2])) * rng.normal(size=300)
    model = QuantileSVR(np.arange(1, 10) / 10, C=100.0, gamma=0.2, tol=1e-6).fit(A, z)
    assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-6
    values = model.predict(A)
    assert (np.diff(values) >= -1e-9).all()
    # many samples have quantiles that would cross and are equal now
    assert (np.diff(values) < 1e-6).sum() > 100


def test_columns_keep_the_order_of_the_quantiles():
    """The order in which quantiles are given is that of columns; one number gives one dimension."""
    rising = QuantileSVR([0.2, 0.5, 0.8], tol=1e-8).fit(X, y).predict(X)
    mixed = QuantileSVR([0.8, 0.2, 0.5], tol=1e-8).fit(X, y)
    np.testing.assert_allclose(mixed.predict(X), rising[:, [2, 0, 1]], atol=1e-4)
    assert mixed.dual_coef_.shape == (3, len(X)) and len(mixed.function_) == 3
    assert QuantileSVR(0.5).fit(X, y).predict(X).shape == (len(X),)
    assert QuantileSVR([0.5]).fit(X, y).predict(X).shape == (len(X), 1)


def test_rearranged_predictions_are_sorted_and_no_worse():
    """Sorting the quantiles of new points lowers the pinball loss or leaves it."""
    model = QuantileSVR([0.4, 0.6, 0.5], C=1000.0, kernel=Gaussian(50.0)).fit(X, y)
    other, target = noisy_line(400, seed=1)
    assert (model.predict(other)[:, 0] > model.predict(other)[:, 2]).any()
    before = model.score(other, target)
    model.set_params(rearrange=True)
    assert (np.diff(model.predict(other)[:, [0, 2, 1]]) >= 0).all()
    assert model.score(other, target) >= before


def test_score_is_the_mean_of_d2():
    """score averages scikit-learn's D² over the quantiles."""
    model = QuantileSVR([0.3, 0.8]).fit(X, y)
    columns = model.predict(X).T
    expected = np.mean([d2_pinball_score(y, c, alpha=a) for c, a in zip(columns, [0.3, 0.8], strict=True)])
    assert model.score(X, y) == pytest.approx(expected)


@pytest.mark.parametrize("gamma", [0.1, 4.0], ids=["apart", "crossing"])
def test_certify(gamma):
    """certify finds the published certificate from β alone, and the gap of wrong intercepts."""
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    weight[::7] = 0.0
    model = QuantileSVR(TAUS, C=10.0, gamma=gamma).fit(X, y, weight)
    proof = certify(model, X, y, weight)
    np.testing.assert_allclose(proof.primal, model.certificate_.primal, rtol=1e-9)
    assert proof.valid and proof.relative_gap < 1e-3
    model.intercept_ = model.intercept_ + 0.3
    assert certify(model, X, y, weight).relative_gap > 0.01
    model.dual_coef_ = 1.5 * model.dual_coef_
    assert certify(model, X, y, weight).relative_gap > 0.01


def test_strings():
    """Kernels on objects work."""
    words = ["abab", "baba", "ccdd", "ddcc"] * 3
    model = QuantileSVR([0.2, 0.8], kernel=Spectrum(2), C=100.0).fit(words, np.arange(12.0) % 4)
    assert (np.diff(model.predict(words)) >= 0).all()


def test_crossings_without_memory_are_a_warning():
    """Without room for the joint problem intercepts move apart, and the certificate has the price."""
    with pytest.warns(UserWarning, match="The quantiles cross, and cache_size=0.06 has no room"):
        model = QuantileSVR(TAUS, C=100.0, kernel=Gaussian(4.0), cache_size=0.06).fit(X, y)
    assert model.certificate_.valid and model.certificate_.relative_gap > 1e-4
    assert (np.diff(model.predict(X)) >= -1e-9).all()


def test_a_time_limit_of_zero():
    """Without time the model is constant, certified and without crossings."""
    with pytest.warns(UserWarning, match="time_limit=0"):
        model = QuantileSVR(TAUS, time_limit=0).fit(X, y)
    assert model.certificate_.valid
    assert (np.diff(model.predict(X)) >= 0).all()


@pytest.mark.parametrize(
    "quantiles", [[], [0.5, 0.5], [0.0, 0.5], [[0.1, 0.9]], ["low"], [0.1, np.nan], [None]], ids=str
)
def test_bad_quantiles(quantiles):
    """Quantiles are different numbers between 0 and 1."""
    with pytest.raises(ValueError, match="give a number between 0 and 1, or a list of different ones"):
        QuantileSVR(quantiles).fit(X, y)


def test_targets_that_overflow():
    """Targets near the largest float64 leave a certificate that claims nothing, and a warning."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    # NumPy's sum of the targets, by which scikit-learn looks for NaN, overflows
    with np.errstate(invalid="ignore"), pytest.warns(ConvergenceWarning, match="because its values overflow"):
        model = QuantileSVR().fit(X, np.sign(X[:, 0]) * 1e308)
    assert not model.certificate_.valid and model.certificate_.relative_gap == np.inf
