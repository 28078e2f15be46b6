"""Machines that order samples, with losses that weigh next to nothing or nearly everything, end certified."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from tests.reference.ordering import solve_primal

from mercer import SVC, OrdinalSVC, RankSVC, SurvivalSVM, certify
from mercer._compiled.blas import one_blas_thread
from mercer.erm.direct_newton import Factor
from mercer.erm.sums import Curvature
from mercer.gram.products import StoredMatrix
from mercer.ordering.pair_losses import PairSum
from mercer.ordering.pair_order import PairOrder

rng = np.random.default_rng(0)
N = 150
X = rng.normal(size=(N, 4))
LATENT = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=N)
Y = np.digitize(LATENT, [-1.0, 0.2, 1.0])
TIMES = np.c_[rng.random(N) < 0.6, np.exp(LATENT)]


def pair_primal(model, C):
    """½|f|² + C Σ max(0, 1 − (f_i − f_j))², by a matrix of all pairs, from the published function."""
    f = model.predict(X)
    missing = np.maximum(0.0, 1.0 - (f[:, None] - f))
    return 0.5 * float(model.rkhs_norm_[0] ** 2) + C * float((missing[Y[:, None] > Y] ** 2).sum())


class TestRanking:
    @pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
    @pytest.mark.parametrize("C", [1e-12, 1e-8, 1e4, 1e8])
    def test_any_weight(self, kernel, C):
        """For every C the gap is within tol, without a warning, and the primal value is that of all pairs."""
        model = RankSVC(C=C, kernel=kernel).fit(X, Y)
        proof = model.certificate_
        assert proof.valid and 0 <= proof.relative_gap <= 1e-6 and model.fit_status_ == 0
        assert pair_primal(model, C) == pytest.approx(proof.primal, rel=1e-6)
        again = certify(model, X, Y)
        assert again.valid and again.relative_gap <= 1e-4
        assert again.dual <= proof.primal * (1 + 1e-6)

    def test_is_the_optimum(self):
        """With a large C, value and scores are those that clarabel finds over all pairs."""
        few, y = X[:40], Y[:40]
        i, j = np.nonzero(y[:, None] > y)
        A, m = np.eye(40)[i] - np.eye(40)[j], len(i)
        K = np.exp(-0.3 * ((few[:, None] - few) ** 2).sum(axis=2))
        best = solve_primal(K, A, np.zeros((m, 1)), np.ones(m), np.full(m, 1e5), power=2)
        model = RankSVC(C=1e5, gamma=0.3, tol=1e-9).fit(few, y)
        assert model.certificate_.primal == pytest.approx(best.value, rel=1e-5)
        np.testing.assert_allclose(model.predict(few), best.F, atol=1e-3)

    @pytest.mark.parametrize("scale", [1e-60, 1e-8, 1e3, 1e8])
    def test_any_scale_of_features(self, scale):
        """A linear kernel on features times s with the weight C/s² is the same machine."""
        model = RankSVC(C=1.0, kernel="linear").fit(scale * X, Y)
        assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-6 and model.fit_status_ == 0
        if scale >= 1e-8:
            other = RankSVC(C=scale**2, kernel="linear").fit(X, Y)
            np.testing.assert_allclose(model.predict(scale * X), other.predict(X), rtol=1e-3, atol=1e-3 * scale)

    def test_stages_without_a_factor(self):
        """Where memory holds only the kernel matrix, conjugate gradients in stages find the same optimum."""
        cache = 2.0 * 8 * N * N / 2**20
        model = RankSVC(C=1e5, cache_size=cache).fit(X, Y)
        other = RankSVC(C=1e5).fit(X, Y)
        assert model.fit_status_ == 0 and model.certificate_.relative_gap <= 1e-6
        assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-6)

    @pytest.mark.parametrize(("C", "kernel"), [(1e18, "rbf"), (1e300, "rbf"), (1e300, "linear")])
    def test_beyond_float64(self, C, kernel):
        """Where rounding hides the optimum, the fit ends with a warning, numbers and a next step; the bound holds."""
        said = re.escape(f"no further progress: C={C:g} is more than float64 resolves here. Lower C, or raise tol")
        with pytest.warns(ConvergenceWarning, match=said):
            model = RankSVC(C=C, kernel=kernel).fit(X, Y)
        proof = model.certificate_
        assert proof.valid and 0 <= proof.dual <= proof.primal and 0 < proof.relative_gap <= 1
        assert np.isfinite(model.dual_coef_).all()

    def test_limits_in_the_stages(self):
        """max_iter counts the steps of all stages; the certificate is that of the whole weight."""
        with pytest.warns(ConvergenceWarning, match="max_iter=45"):
            model = RankSVC(C=1e8, max_iter=45).fit(X, Y)
        assert model.n_iter_ == 45 and model.certificate_.valid
        assert model.certificate_.primal >= RankSVC(C=1e8).fit(X, Y).certificate_.dual * (1 - 1e-9)

    def test_equal_samples(self):
        """A singular kernel matrix is no obstacle."""
        model = RankSVC(C=1e7).fit(np.repeat(X[:50], 3, axis=0), Y)
        assert model.fit_status_ == 0 and model.certificate_.relative_gap <= 1e-6


class TestSurvival:
    @pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
    @pytest.mark.parametrize("alpha", [1e-10, 1e6, 1e10])
    def test_any_weight(self, alpha, ratio):
        """For every alpha the gap is within tol, without a warning, with an intercept where there is one."""
        model = SurvivalSVM(alpha, rank_ratio=ratio, fit_intercept=ratio < 1).fit(X, TIMES)
        proof = model.certificate_
        assert proof.valid and 0 <= proof.relative_gap <= 1e-6 and model.fit_status_ == 0
        assert certify(model, X, TIMES).dual <= proof.primal * (1 + 1e-6)


class TestOrdinal:
    @pytest.mark.parametrize("constraints", ["implicit", "explicit"])
    @pytest.mark.parametrize("C", [1e-8, 1.0, 1e5, 1e10])
    def test_over_features(self, constraints, C):
        """A linear kernel is solved over its features; dense and sparse rows give the same thresholds."""
        model = OrdinalSVC(C=C, kernel="linear", constraints=constraints).fit(X3, Y3)
        proof = model.certificate_
        assert model.plan_.presolve == "features"
        assert proof.valid and proof.kkt_violation <= 1e-3 and model.fit_status_ == 0
        assert (np.diff(model.thresholds_) >= 0).all()
        other = OrdinalSVC(C=C, kernel="linear", constraints=constraints).fit(sparse.csr_matrix(X3), Y3)
        assert other.certificate_.primal == pytest.approx(proof.primal, rel=1e-4)

    @pytest.mark.parametrize("constraints", ["implicit", "explicit"])
    def test_pair_steps_find_the_same(self, constraints):
        """Over features and by pair steps (max_iter counts those) the primal value is the same within the gaps."""
        over = OrdinalSVC(C=3.0, kernel="linear", constraints=constraints, tol=1e-6).fit(X3, Y3)
        pairs = OrdinalSVC(C=3.0, kernel="linear", constraints=constraints, tol=1e-6, max_iter=10**7).fit(X3, Y3)
        assert over.plan_.presolve == "features" != pairs.plan_.presolve
        gaps = over.certificate_.gap + pairs.certificate_.gap
        assert abs(over.certificate_.primal - pairs.certificate_.primal) <= gaps + 1e-9
        np.testing.assert_allclose(over.thresholds_, pairs.thresholds_, atol=1e-3)

    def test_merged_thresholds_over_features(self):
        """Explicit thresholds that would cross are merged over features, too."""
        y = np.r_[np.zeros(200), np.ones(20), np.full(200, 2)].astype(int)
        x = np.r_[rng.normal(-1, 1, 200), rng.normal(3, 0.2, 10), rng.normal(-3, 0.2, 10), rng.normal(1, 1, 200)]
        model = OrdinalSVC(C=10.0, kernel="linear", constraints="explicit").fit(x[:, None], y)
        assert model.plan_.presolve == "features" and model.fit_status_ == 0
        assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-3
        assert np.diff(model.thresholds_)[0] >= 0

    def test_two_classes_are_svc(self):
        """Two classes: the machine is SVC's, whatever C."""
        y = (Y3 > 1).astype(int)
        model = OrdinalSVC(C=1e5, kernel="linear").fit(X3, y)
        other = SVC(C=1e5, kernel="linear").fit(X3, y)
        np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3)
        assert model.thresholds_[0] == pytest.approx(-other.intercept_[0], abs=1e-3)


X3 = rng.normal(size=(600, 3))
Y3 = np.digitize(X3 @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=600), [-1.0, 0.0, 1.0])


class TestParts:
    @pytest.mark.parametrize("spread", [0.1, 30.0], ids=["all pairs", "few pairs"])
    def test_curvature_within_a_factor(self, spread):
        """L'WL is that of products with W, whether pairs are taken one by one or not."""
        order, weight = PairOrder(Y.astype(float)), rng.random(N) + 0.5
        f = spread * (Y + 0.1 * rng.normal(size=N))
        W = PairSum(order, weight, 2.0, 0.5, LATENT, np.arange(N) % 2 == 0).curvature(f[:, None])
        L = rng.normal(size=(N, 7))
        WL = np.column_stack([W.apply(L[:, [k]]) for k in range(7)])
        np.testing.assert_allclose(W.within(L), L.T @ WL, rtol=1e-10, atol=1e-8)

    def test_curvature_of_one_loss(self):
        """L'WL for one weight a sample."""
        L, w = rng.normal(size=(9, 4)), rng.random(9)
        np.testing.assert_allclose(Curvature(w).within(L), L.T @ np.diag(w) @ L, atol=1e-12)

    @pytest.mark.parametrize("rank", [3, 150])
    def test_factor(self, rank):
        """LL' is K, and L'β is the w that was asked for, of full and of low rank."""
        A = rng.normal(size=(N, rank))
        with one_blas_thread():
            factor = Factor.of(StoredMatrix(A @ A.T, 1))
        assert factor.L.shape == (N, rank)
        np.testing.assert_allclose(factor.L @ factor.L.T, A @ A.T, atol=1e-10)
        w, G = rng.normal(size=rank), rng.normal(size=N)
        np.testing.assert_allclose(factor.L.T @ factor.coefficients(w, G), w, atol=1e-8)

    def test_an_indefinite_matrix_has_no_factor(self):
        """An eigenvalue of −1 is found."""
        K = np.eye(20)
        K[3, 3] = -1.0
        assert Factor.of(StoredMatrix(K, 1)) is None
