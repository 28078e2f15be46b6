"""Kernel ridge regression: with squared losses the dual is a linear system.

    min over f, b   λ/2 |f|² + ½ Σ wᵢ (yᵢ − f(xᵢ) − b)²          [M5]; [SSBD] Ex. 16.3 for λ = 2mλ'

    (K + λ/w) β + b = y,     Σβ = 0  (if there is a b),            f = Σ βᵢ k(xᵢ, ·)

In the coordinates x = β/√w the matrix is √w K √w + λ. It is solved in one of three ways:

* a Cholesky factor in float32, at half the cost, as preconditioner of conjugate gradients in float64;
* a factor in float64, if λ is too small for float32 or the refinement has not converged;
* conjugate gradients without a stored matrix, if it does not fit into memory; the preconditioner is a pivoted Cholesky
  factor of low rank.

If the factorisation fails, the matrix is singular or indefinite, and a least-squares solution is computed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import linalg

from mercer._compiled.blas import one_blas_thread
from mercer.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mercer.gram.low_rank import LowRank, pivoted_cholesky
from mercer.gram.memory import Loan
from mercer.gram.operator import Data, GramOperator, check_finite, product, symmetric_product
from mercer.kernels.features import Matrix, Vector
from mercer.losses import Squared
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem
from mercer.problems.solution import NOT_PSD, Certificate, Options, Solution, Status, TracePoint, certificate
from mercer.ridge.conjugate_gradients import Converged, IndefiniteError, Linear, conjugate_gradients
from mercer.ridge.factor import StoppedError, Woodbury, cholesky_in_place, restore_upper, solve_with, symmetric
from mercer.ridge.reduction import Reduction

EPS = float(np.finfo(np.float64).eps)
LARGEST = float(np.finfo(np.float64).max)
# below this size a float64 factor is cheap enough
SINGLE_FROM = 1000
# a float32 factor is used if λ is at least this share of |K|, and only for numbers within the range of float32
SINGLE_SHARE = 3e-8
SINGLE_UP_TO = 1e30
# after this many iterations a float64 factor is cheaper than more refinement
REFINEMENTS = 15
# iteration limit if the user has set none
MOST_STEPS = 10_000
# rank of the preconditioner if the matrix is not stored
RANK = 512
# share of the remaining time that computing the preconditioner may take
RANK_SHARE = 0.25
# lower bound on operations per second of a factorisation: one that would exceed the time limit is not begun
SPEED = 1e10
# a residual larger than this, relative to the targets, is not accepted as rounding
ROUNDED = 1e-6
# up to this many columns, each has a product that reads half of the symmetric matrix; more share one that reads it all
BY_COLUMN = 2


def solve(
    data: Data,
    Y: Matrix,
    weight: Vector,
    alpha: Vector,
    intercept: bool,
    options: Options,
    clock: Clock,
    way: str,
    reduction: Reduction | None = None,
) -> list[Solution]:
    """Solve for each column of Y with its own λ. ``way`` is "cholesky", "cg" or "auto"; all weights are positive.

    A reduction of the weighted matrix, if given, is the preconditioner of "cg": it is nearly the inverse, so that the
    solution is as exact as with a factor.
    """
    root = np.sqrt(weight)
    # scale the targets to size 1, since squares of large ones might overflow; the solution is linear in them
    size = np.abs(Y).max(axis=0)
    size = np.where(size > 0, size, 1.0)
    Y = Y / size
    system = _system(data, root, options, clock, way, reduction)
    solutions: list[Solution | None] = [None] * Y.shape[1]
    for value in np.unique(alpha):
        columns = np.flatnonzero(alpha == value)
        B = Y[:, columns] * root[:, None]
        right = np.column_stack([B, root]) if intercept else B
        with one_blas_thread():
            X, ended, floor = system.solve(right, float(value), intercept, clock)
            F = system.product(X) / root[:, None] if X.any() else np.zeros_like(X)
        X = X * root[:, None]
        check_finite(F)
        if X.shape[1] > len(columns):
            # the last column is the solution for ones; b makes Σβ = 0
            total = float(X[:, -1].sum())
            b = X[:, :-1].sum(axis=0) / total if total != 0 else np.zeros(len(columns))
            X, F = X[:, :-1] - b * X[:, -1:], F[:, :-1] - b * F[:, -1:]
        for k, column in enumerate(columns):
            least = None if floor is None else float(floor[k])
            b_groups, proof = ridge_certificate(
                Y[:, column], weight, float(value), intercept, X[:, k], F[:, k], system.reason, least
            )
            by = float(size[column])
            solutions[column] = Solution(
                beta=by * X[:, k],
                F=by * F[:, k],
                thresholds=by * b_groups,
                status=ended.status,
                steps=ended.steps,
                seconds=clock.seconds,
                certificate=_rescaled(proof, by),
                trace=ended.trace if k == 0 else [],
            )
    return [s for s in solutions if s is not None]


def _system(
    data: Data, root: Vector, options: Options, clock: Clock, way: str, reduction: Reduction | None
) -> _Stored | _Tiles:
    """The stored matrix if it fits memory and time, else one that is only multiplied."""
    if _is_stored(data, options, clock, way):
        try:
            return _Stored(data, root, options)
        except (MemoryError, OSError) as error:
            if way == "cholesky":
                raise InvalidInputError(
                    f"The system has no {8 * data.n**2 / 2**30:.3g} GB for the kernel matrix of {data.n} samples "
                    f"({error}). Use solver='cg', which stores no matrix."
                ) from None
    return _Tiles(data, root, options, reduction)


def _is_stored(data: Data, options: Options, clock: Clock, way: str) -> bool:
    """Whether to store and factor the matrix: if memory and time allow it."""
    n = data.n
    needed = 8 * n * n
    if way == "cg":
        return False
    in_time = True
    if clock.left < np.inf:
        in_time = clock.over_in(data.seconds(n, 0.5 * n, options.n_threads) + n**3 / 3 / SPEED) is None
    if way == "cholesky":
        if needed > options.budget:
            raise InvalidInputError(
                f"solver='cholesky' needs {needed / 2**30:.3g} GB for the kernel matrix of {n} samples, but cache_size "
                f"allows {options.budget / 2**30:.3g} GB. Use solver='cg', which stores no matrix, or raise cache_size."
            )
        return in_time
    return needed <= options.budget and in_time


class _Stored:
    """A stored float64 matrix; its factor overwrites a float32 copy, or its own upper triangle."""

    def __init__(self, data: Data, root: Vector, options: Options) -> None:
        n = data.n
        self.options = options
        self.n_threads = options.n_threads
        self.single_input = data.kernel.domain == "matrix" and getattr(data.samples, "dtype", None) == np.float32
        self._loan = Loan(n * n, np.dtype(np.float64))
        self.K = data.matrix(np.float64, options.n_threads, self._loan.array.reshape(n, n))
        if (root != 1).any():
            self.K *= root
            self.K *= root[:, None]
        self.diagonal = self.K.diagonal().copy()
        check_finite(self.diagonal)
        with np.errstate(over="ignore"):
            self.norm = float(np.linalg.norm(self.K))
        check_finite(self.norm)
        self.reason = "" if data.psd else NOT_PSD
        self._has_factor = False

    def product(self, V: Matrix) -> Matrix:
        """K V from the lower triangle; the stored diagonal may be that of the factor."""
        return symmetric(self.K, V) + (self.diagonal - self.K.diagonal())[:, None] * V

    def _restore(self) -> None:
        """Restore the upper triangle if it holds a factor."""
        if not self._has_factor:
            return
        self._has_factor = False
        restore_upper(self.K)
        self.K[np.diag_indices_from(self.K)] = self.diagonal

    def solve(self, B: Matrix, alpha: float, intercept: bool, clock: Clock) -> tuple[Matrix, Converged, Vector | None]:
        """Solve (K + λ) X = B. The third value is None, or for a singular K the least objective of each column."""
        X = np.zeros_like(B, order="F")
        limit = MOST_STEPS if self.options.max_iter < 0 else self.options.max_iter
        try:
            if clock.over() is None and self._single_will_do(alpha):
                U = self._factor(alpha, np.float32, clock)
                if U is not None:
                    ended = self._refine(U, B, X, alpha, min(limit, REFINEMENTS), clock)
                    if ended.status is not Status.STALLED and not (
                        ended.status is Status.MAX_ITER and ended.steps < limit
                    ):
                        return X, ended, None
                    X[~np.isfinite(X)] = 0.0
                    del U
            if clock.over() is None:
                U = self._factor(alpha, np.float64, clock)
                if U is None:
                    return self._least_squares(B, alpha, intercept, clock)
                ended = self._refine(U, B, X, alpha, limit, clock)
                if ended.status is not Status.STALLED:
                    return X, ended, None
                if (ended.residual <= ROUNDED * np.abs(B).max(axis=0)).all():
                    # this is the accuracy of float64
                    return X, ended._replace(status=Status.CONVERGED), None
                return self._least_squares(B, alpha, intercept, clock)
        except StoppedError:
            pass
        over = clock.over() or Status.INTERRUPTED
        return X, Converged(over, 0, np.abs(B).max(axis=0), []), None

    def _single_will_do(self, alpha: float) -> bool:
        n = len(self.K)
        if self.options.precision == "float64" or 12 * n * n > self.options.budget:
            return False
        if self.options.precision == "auto" and n < SINGLE_FROM:
            return False
        return alpha >= SINGLE_SHARE * self.norm and self.norm + alpha < SINGLE_UP_TO and alpha > 1.0 / SINGLE_UP_TO

    def _factor(self, alpha: float, dtype: Any, clock: Clock) -> Matrix | None:
        """The Cholesky factor of K + λ in one precision; None if it fails."""
        self._restore()
        A = self.K
        if dtype == np.float32:
            self._single = Loan(A.size, np.dtype(np.float32))
            A = self._single.array.reshape(A.shape)
            A[...] = self.K
        else:
            self._has_factor = True
        A[np.diag_indices_from(A)] = (self.diagonal + alpha).astype(dtype)
        return A if cholesky_in_place(A, self.n_threads, clock) and np.isfinite(A.diagonal()).all() else None

    def _refine(self, U: Matrix, B: Matrix, X: Matrix, alpha: float, limit: int, clock: Clock) -> Converged:
        """Conjugate gradients from the factor's solution to the rounding of float64, as in LAPACK's DSPOSV."""
        rounding = np.sqrt(len(B)) * EPS * (self.norm + alpha)

        largest = ROUNDED * np.abs(B).max(axis=0)

        def goal(X: Matrix) -> Vector:
            return np.minimum(rounding * np.abs(X).max(axis=0), largest)

        try:
            return conjugate_gradients(
                lambda V: self.product(V) + alpha * V, lambda R: solve_with(U, R), B, X, goal, limit, clock, alpha, True
            )
        except IndefiniteError:
            return Converged(Status.STALLED, 0, np.full(B.shape[1], np.inf), [])

    def _least_squares(
        self, B: Matrix, alpha: float, intercept: bool, clock: Clock
    ) -> tuple[Matrix, Converged, Vector | None]:
        """The least-squares solution of least norm, for eigenvalues of K + λ that are 0 to rounding."""
        self._restore()
        K, mean = self.K, None
        if intercept:
            # eliminate b: with P = I − ss'/s's, s = √w, the matrix is PKP
            B, mean = B[:, :-1], B[:, -1:] / np.linalg.norm(B[:, -1])
            K = _centred(_centred(K, mean).T, mean)
            B = _centred(B, mean)
        values, vectors = linalg.eigh(K, check_finite=False, driver="evd")
        eps = float(np.finfo(np.float32).eps) if self.single_input else EPS
        # after centring, only the rounding of K may be left
        rounding = 4.0 * len(K) * eps * max(float(np.abs(values).max(initial=0.0)), self.norm if intercept else 0.0)
        kept = np.abs(values + alpha) > rounding
        inside = vectors.T @ B
        X = vectors[:, kept] @ (inside[kept] / (values[kept] + alpha)[:, None])
        if mean is not None:
            X = _centred(X, mean)  # Σβ = 0 to rounding
        point = TracePoint(clock.seconds, 1, 0.0, np.nan, len(B))
        clock.report(point)
        if values[0] < -rounding:
            smallest, largest = float(values[0]), float(values[-1])
            self.reason = (
                f"the kernel matrix is not positive semidefinite: its smallest eigenvalue is {smallest:.4g}, its "
                f"largest {largest:.4g}"
            )
            return X, Converged(Status.INDEFINITE, 1, np.zeros(B.shape[1]), [point]), None
        if kept.all():
            return X, Converged(Status.CONVERGED, 1, np.zeros(B.shape[1]), [point]), None
        floor = 0.5 * np.square(inside[~kept]).sum(axis=0)
        return X, Converged(Status.SINGULAR, 1, np.zeros(B.shape[1]), [point]), floor


def _centred(A: Matrix, mean: Matrix) -> Matrix:
    return A - mean @ (mean.T @ A)


class _Tiles:
    """A matrix that is never stored: products are computed tile by tile."""

    def __init__(self, data: Data, root: Vector, options: Options, reduction: Reduction | None) -> None:
        self.data, self.root, self.options, self.reduction = data, root[:, None], options, reduction
        self.features = data.features(np.float64)
        self.gram = GramOperator(data.kernel, self.features, options.n_threads, data.evaluations)
        diagonal = self.gram.diagonal() * root**2
        check_finite(diagonal)
        self.norm = float(np.abs(diagonal).sum())
        self._low: LowRank | None = None
        self.reason = "" if data.psd else NOT_PSD

    def product(self, V: Matrix) -> Matrix:
        """K V; for few columns each kernel value is computed once for both of its places."""
        kernel, a, threads = self.data.kernel, self.features, self.options.n_threads
        V = V * self.root
        if V.shape[1] > BY_COLUMN:
            return self.root * product(kernel, a, a, V, threads, self.data.evaluations)
        out = [symmetric_product(kernel, a, np.ascontiguousarray(v), threads, self.data.evaluations) for v in V.T]
        return self.root * np.column_stack(out)

    def solve(self, B: Matrix, alpha: float, intercept: bool, clock: Clock) -> tuple[Matrix, Converged, Vector | None]:
        """Solve (K + λ) X = B until the largest residual is within tol, relative to the largest entry of B."""
        X = np.zeros_like(B)
        limit = MOST_STEPS if self.options.max_iter < 0 else self.options.max_iter
        largest = np.abs(B).max(axis=0)
        aim = (self.options.tol if self.reduction is None else 0.0) * largest
        rounding = np.sqrt(len(B)) * EPS * (self.norm + alpha)

        def goal(X: Matrix) -> Vector:
            return np.maximum(aim, np.minimum(rounding * np.abs(X).max(axis=0), ROUNDED * largest))

        step = 0.0
        if clock.left < np.inf:
            step = self.data.seconds(len(B), 0.5 * len(B), self.options.n_threads) * min(BY_COLUMN, B.shape[1])
        # time for a step and for F of its result
        over = clock.over_in(2.0 * step)
        if over is not None:
            return X, Converged(over, 0, np.abs(B).max(axis=0), []), None
        precondition = self._preconditioner(alpha, clock.left - 2.0 * step)
        try:
            ended = conjugate_gradients(
                lambda V: self.product(V) + alpha * V, precondition, B, X, goal, limit, clock, alpha, seconds=step
            )
        except IndefiniteError as found:
            if found.curvature - alpha < -len(B) * EPS * self.norm:
                raise NotPositiveSemidefiniteError(found.curvature - alpha, self.norm) from None
            ended = found.ended
        return X, ended, None

    def _preconditioner(self, alpha: float, left: float) -> Linear:
        """(LL' + δ)⁻¹ with a factor L of low rank, which all λ share; its rank is limited by time and memory."""
        n, reduction = len(self.root), self.reduction
        if reduction is not None:
            return lambda R: reduction.solve(R, np.array([alpha]))[0]
        if self._low is None:
            rank = int(min(RANK, n, max(1, self.options.budget // (24 * n))))
            if left < np.inf:
                column = self.data.column_seconds(n, self.options.n_threads) + n * RANK / SPEED
                rank = int(min(rank, max(1.0, RANK_SHARE * left / column)))
            self._low = pivoted_cholesky(self.gram, rank, 1e-3 * alpha, self.root[:, 0])
        low = self._low
        # the trace of K − LL' is spread over the diagonal
        spread = max(alpha + low.rest / n, EPS * self.norm, float(np.finfo(np.float64).tiny))
        return Woodbury(low.L, np.full(n, spread))


def _rescaled(proof: Certificate, by: float) -> Certificate:
    """The certificate for targets multiplied by ``by``."""
    primal, dual, gap = (by * (by * value) for value in (proof.primal, proof.dual, proof.gap))
    violation, infeasibility = by * proof.kkt_violation, by * proof.infeasibility
    return replace(proof, primal=primal, dual=dual, gap=gap, kkt_violation=violation, infeasibility=infeasibility)


def ridge_certificate(
    y: Vector,
    weight: Vector,
    alpha: float,
    intercept: bool,
    beta: Vector,
    F: Vector,
    reason: str = "",
    floor: float | None = None,
) -> tuple[Vector, Certificate]:
    """The optimal intercept for f, and the certificate for λ/2 |f|² + ½ Σ w (y − f − b)².

    ``reason``, if given, says why the dual value is no lower bound. If λ is 0 to rounding, ``floor`` is the bound: no
    function of the kernel has a smaller objective.
    """
    loss = Squared()
    b = loss.best_thresholds(y, F, weight)[: int(intercept)]
    if floor is None and alpha > float(weight.max()) / LARGEST:
        problem = DualProblem(None, loss, y, weight / alpha, intercept)
        found = certificate(problem.qp, loss, y, problem.weight, beta, F, b, not reason)
        found = in_units_of(found, alpha, y, weight, F)
        return b, replace(found, reason=reason) if reason else found
    primal = float(0.5 * alpha * (beta @ F) + 0.5 * weight @ (y - F - b.sum()) ** 2)
    dual = min(primal, floor or 0.0)
    gap = primal - dual
    # the rounding error of the difference of two sums of squares
    if gap <= len(y) * EPS * float(weight @ (y**2 + F**2)):
        gap = 0.0
    violation = float(np.sqrt(2.0 * gap / weight.max()))
    relative = gap / primal if gap > 0 else 0.0
    return b, Certificate(primal, dual, gap, relative, violation, 0.0, not reason, loss.name, reason)


def in_units_of(found: Certificate, alpha: float, y: Vector, weight: Vector, F: Vector) -> Certificate:
    """The certificate of ½|f|² + Σ w/(2λ) (y − f − b)², multiplied by λ; a gap within the rounding of F becomes 0."""
    gap = alpha * found.gap
    rounded = 0.5 * float(weight @ np.square(len(y) * EPS * (np.abs(y) + np.abs(F))))
    relative = found.relative_gap
    if 0 <= gap <= rounded:
        gap = relative = 0.0
    return replace(found, primal=alpha * found.primal, dual=alpha * found.dual, gap=gap, relative_gap=relative)
