"""Linear systems of kernel ridge regression: factors, conjugate gradients, the reduction for all λ."""

import numpy as np
import pytest

from mercer._compiled.blas import one_blas_thread
from mercer.gram.operator import Data
from mercer.kernels import Gaussian
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Status
from mercer.ridge import factor
from mercer.ridge.conjugate_gradients import IndefiniteError, conjugate_gradients
from mercer.ridge.reduction import FORGIVEN, SINGLE_FROM, WIDTH, of_matrix, reduce


def definite(n, condition=1e3, seed=0):
    """A symmetric matrix of given condition."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return np.ascontiguousarray((Q * np.geomspace(1.0, 1.0 / condition, n)) @ Q.T)


class TestFactor:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("threads", [1, 2])
    @pytest.mark.parametrize("n", [1, 5, 700])
    def test_factor_above_matrix_below(self, n, threads, dtype):
        """The upper triangle becomes the factor, what is below the diagonal stays as it was."""
        A = definite(n).astype(dtype)
        A = (A + A.T) / 2
        U = A.copy()
        with one_blas_thread():
            assert factor.cholesky_by_blocks(U, threads, Clock())
        np.testing.assert_array_equal(np.tril(U, -1), np.tril(A, -1))
        upper = np.triu(U)
        np.testing.assert_allclose(upper.T @ upper, A, atol=100 * np.finfo(dtype).eps)
        B = np.random.default_rng(1).normal(size=(n, 2)) * [1.0, 1e50]  # beyond float32
        solved = factor.solve_with(U, B)
        accuracy = 1e4 * np.finfo(dtype).eps * np.abs(B).max(axis=0)
        assert (np.abs(A.astype(float) @ solved - B).max(axis=0) < accuracy).all()

    @pytest.mark.parametrize("factorise", [factor.cholesky_in_place, factor.cholesky_by_blocks])
    def test_indefinite(self, factorise):
        """A matrix that is not positive definite has no factor."""
        A = definite(600)
        A[550, 550] = -1.0
        assert not factorise(A, 2, Clock())

    def test_time(self):
        """Between blocks the clock is asked."""
        with pytest.raises(factor.StoppedError):
            factor.cholesky_by_blocks(definite(600), 2, Clock(0.0))

    @pytest.mark.parametrize("columns", [1, 3])
    def test_products_from_one_triangle(self, columns):
        """The product with a symmetric matrix reads its lower triangle alone."""
        A, V = definite(50), np.random.default_rng(1).normal(size=(50, columns))
        np.testing.assert_allclose(factor.symmetric(np.tril(A) + np.triu(np.full_like(A, np.nan), 1), V), A @ V)

    def test_woodbury(self):
        """(LL' + D)⁻¹."""
        rng = np.random.default_rng(0)
        L, D, R = rng.normal(size=(40, 5)), rng.uniform(0.1, 2.0, 40), rng.normal(size=(40, 3))
        np.testing.assert_allclose(factor.Woodbury(L, D)(R), np.linalg.solve(L @ L.T + np.diag(D), R), atol=1e-12)


class TestConjugateGradients:
    def run(self, A, B, max_iter=1000, precondition=lambda R: R, X=None, tol=1e-10, clock=None):
        X = np.zeros_like(B) if X is None else X
        goal = tol * np.abs(B).max(axis=0)
        clock = Clock() if clock is None else clock
        return X, conjugate_gradients(lambda V: A @ V, precondition, B, X, lambda _: goal, max_iter, clock)

    def test_solution(self):
        """Each column is solved; the residual that is reported is the true one."""
        A, B = definite(60, 100.0), np.random.default_rng(1).normal(size=(60, 3)) * [1.0, 1e-8, 1e8]
        X, ended = self.run(A, B)
        assert ended.status is Status.CONVERGED
        np.testing.assert_allclose(ended.residual, np.abs(B - A @ X).max(axis=0))
        assert (ended.residual <= 1e-10 * np.abs(B).max(axis=0)).all()

    def test_nearly_the_inverse(self):
        """With a float32 inverse as preconditioner a few steps reach float64's accuracy."""
        A, B = definite(60, 1e4), np.random.default_rng(1).normal(size=(60, 1))
        inverse = np.linalg.inv(A).astype(np.float32)
        X, ended = self.run(A, B, precondition=lambda R: (inverse @ R.astype(np.float32)).astype(float), tol=1e-11)
        assert ended.status is Status.CONVERGED and ended.steps <= 6
        np.testing.assert_allclose(A @ X, B, atol=1e-10)

    def test_zero_and_exact_starts(self):
        """Nothing is done where nothing is to be done."""
        A, B = definite(20), np.zeros((20, 2))
        X, ended = self.run(A, B)
        assert (ended.status, ended.steps) == (Status.CONVERGED, 0) and not X.any()
        X = np.ones((20, 1))
        assert self.run(A, A @ X, X=X)[1].steps == 0

    def test_ends(self):
        """Limits of steps and time, and rounding, end it with their status."""
        A, B = definite(200, 1e8), np.random.default_rng(1).normal(size=(200, 1))
        _, ended = self.run(A, B, max_iter=3)
        assert (ended.status, ended.steps, len(ended.trace)) == (Status.MAX_ITER, 3, 3)
        assert self.run(A, B, clock=Clock(0.0))[1].status is Status.TIME_LIMIT
        assert self.run(A, B, tol=0.0, max_iter=5000)[1].status in (Status.STALLED, Status.MAX_ITER)

    def test_dual_value_grows(self):
        """The dual value that is reported never falls."""
        A, B = definite(100, 1e4), np.random.default_rng(1).normal(size=(100, 1))
        duals = [point.dual for point in self.run(A, B)[1].trace]
        assert (np.diff(duals) >= -1e-12 * duals[-1]).all()

    def test_indefinite(self):
        """A direction of negative curvature is reported with its curvature."""
        with pytest.raises(IndefiniteError) as found:
            self.run(np.diag([1.0, -2.0]), np.array([[0.0], [1.0]]))
        assert found.value.curvature == -2.0


def dense(band):
    """The symmetric matrix of which these are the columns from the diagonal on."""
    n, B = len(band), np.zeros((len(band), len(band)))
    for d in range(min(band.shape[1], n)):
        B[range(d, n), range(n - d)] = B[range(n - d), range(d, n)] = band[: n - d, d]
    return B


class TestReduction:
    @pytest.mark.parametrize(
        ("n", "width"), [(1, 1), (2, 1), (3, 1), (50, 1), (200, 1), (33, 32), (34, 32), (64, 32), (65, 32), (233, 32)]
    )
    def test_few_diagonals(self, n, width):
        """K = P'BP with P orthonormal, in the memory of K, for a few vectors by its reflections."""
        K = definite(n)
        given = K.copy()
        found = of_matrix(given, np.ones(n), width)
        B = dense(found.band)
        inward, outward = found.basis.inward(np.eye(n)), found.basis.outward(np.eye(n))
        P = found._columns(1)
        np.testing.assert_allclose(P.T @ B @ P, K, atol=1e-13)
        np.testing.assert_allclose(P @ P.T, np.eye(n), atol=1e-13)
        np.testing.assert_allclose([inward, outward.T], [P, P], atol=1e-13)
        assert found.band.shape == (n, width + 1)
        assert np.shares_memory(P, given) or n <= 2

    @pytest.mark.parametrize("wide", [False, True])
    @pytest.mark.parametrize("shift", [0.0, 1e-9, -0.5])
    def test_definite_or_not(self, wide, shift):
        """A matrix that is semidefinite up to rounding is repaired; any other is detected, and solved."""
        rng = np.random.default_rng(0)
        L, R = rng.normal(size=(90, 30)), rng.normal(size=(90, 2))
        K = L @ L.T + shift * np.eye(90)
        found = of_matrix(K.copy(), np.ones(90), WIDTH if wide else 1).examine(1e-14)
        assert found.definite == (shift >= 0)
        assert np.linalg.eigvalsh(dense(found.band))[0] > 0 or shift < 0
        alphas = np.array([1.0, 3.0])
        for alpha, x in zip(alphas, found.solve(R, alphas), strict=True):
            np.testing.assert_allclose(x, np.linalg.solve(K + alpha * np.eye(90), R), rtol=1e-8)

    @pytest.mark.parametrize(("d", "low", "wide"), [(1, True, False), (8, False, False), (8, False, True)])
    @pytest.mark.parametrize("intercept", [False, True])
    def test_inverse(self, intercept, d, low, wide):
        """β, b and the diagonal of the inverse of the bordered system, for a matrix of low rank or not."""
        rng = np.random.default_rng(0)
        n, alphas = 250, np.array([1e-3, 1.0, 1e3])
        X, Y, weight = rng.uniform(size=(n, d)), rng.normal(size=(n, 2)), rng.uniform(0.5, 2.0, n)
        kernel = Gaussian(3.0)
        reduction = reduce(Data(kernel, X, n), weight, 1e-3, Options(), WIDTH if wide else 1)
        assert (reduction.rank < n // 2) == low
        averaged = reduction.residuals(Y, alphas, intercept, 2, mean=True)
        found = reduction.residuals(Y, alphas, intercept, 2)
        for k, alpha in enumerate(alphas):
            M = np.zeros((n + intercept, n + intercept))
            M[:n, :n] = kernel(X) + np.diag(alpha / weight)
            if intercept:
                M[n, :n] = M[:n, n] = 1.0
            inverse = np.linalg.inv(M)
            solved = inverse[:, :n] @ Y
            diagonal = np.diag(inverse)[:n] / weight
            np.testing.assert_allclose(found.inverse[k], diagonal, rtol=1e-6)
            np.testing.assert_allclose(averaged.inverse[k], diagonal.mean(), rtol=1e-9 if not low else 1e-6)
            np.testing.assert_allclose(found.beta[k], solved[:n], rtol=1e-6, atol=1e-7 * np.abs(solved[:n]).max())
            if intercept:
                np.testing.assert_allclose(found.intercept[k], solved[n], rtol=1e-6)

    @pytest.mark.parametrize("wide", [False, True])
    @pytest.mark.parametrize("case", ["spread", "copies", "flat"])
    def test_rounded(self, case, wide):
        """Where P is rounded to float32 the diagonals are right to 2e-6 and their mean to 2e-7, for any threads."""
        rng = np.random.default_rng(0)
        n, alphas = SINGLE_FROM, np.array([1.01 / FORGIVEN, 1.0])
        X = rng.normal(size=(n, 12))
        if case == "copies":
            X[n // 2 :] = X[: n // 2]
        kernel = Gaussian(0.02 if case == "flat" else 0.1)
        reduction, exact = (
            reduce(Data(kernel, X, n), np.ones(n), alphas[0], Options(precision=precision), WIDTH if wide else 1)
            for precision in ("auto", "float64")
        )
        assert reduction.single and reduction.rank == n and not exact.single
        found, same, right = (
            r.residuals(X[:, :1], alphas, False, threads).inverse
            for r, threads in ((reduction, 1), (reduction, 2), (exact, 1))
        )
        np.testing.assert_array_equal(found, same)
        np.testing.assert_allclose(found, right, rtol=2e-6)
        np.testing.assert_allclose(found.mean(axis=1), right.mean(axis=1), rtol=2e-7)
        expected = np.diag(np.linalg.inv(kernel(X) + alphas[0] * np.eye(n)))
        np.testing.assert_allclose(right[0], expected, rtol=1e-8)

    @pytest.mark.parametrize("wide", [False, True])
    def test_any_alpha(self, wide):
        """λ may be beyond float32, and where all λ are as good none looks better: the inverse of 1 + λ is that."""
        n, alphas = SINGLE_FROM, np.array([1e-4, 0.3, 1e60, 1e300])
        reduction = of_matrix(np.eye(n), np.ones(n), WIDTH if wide else 1).examine(1e-4, 1.0)
        assert reduction.single
        found = reduction.residuals(np.ones((n, 1)), alphas, False, 1).inverse
        np.testing.assert_allclose(found, np.repeat(1.0 / (1.0 + alphas[:, None]), n, axis=1), rtol=1e-14)

    def test_not_rounded(self):
        """A matrix so badly conditioned that float32 would show keeps P in float64; so does an indefinite one."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(SINGLE_FROM, 12))
        assert not reduce(
            Data(Gaussian(0.1), np.vstack([X[:-2], X[:2]]), SINGLE_FROM), np.ones(SINGLE_FROM), 1e-6, Options()
        ).single
        indefinite = of_matrix(definite(50) - 2.0 * np.eye(50), np.ones(50)).examine(1e-3, 1.0)
        assert not indefinite.single and not indefinite.definite
