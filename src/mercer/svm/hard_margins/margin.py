"""The largest margin over features, also for columns of very different scales.

The Gram matrix of such samples has lost the decisive digits: beside entries of 1e6 the contributions of columns of 1e-3
are rounded away. So the columns are first orthonormalised, which does not change which samples can be separated:

    X = U M,  U'U = I,     ⟨x, w⟩ = ⟨u, v⟩ with v = M w,     |w| = |R⁻ᵀ v| with M' = QR

A finite algorithm (`nearest_point`) decides whether the classes are separable. If so,

    min ½|R⁻ᵀ v|²   such that   y(U v + b) ≥ 1

is solved by Mehrotra's predictor-corrector method from the separator found. Its normal equations are factored by QR of
their square root, which keeps the condition number from being squared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from mercer._compiled.blas import one_blas_thread
from mercer.gram.low_rank import whole_cholesky
from mercer.kernels.features import Matrix, Vector

EPS = float(np.finfo(np.float64).eps)
# a column whose spread is this many times the rounding of its values is constant
CONSTANT = 4
# singular values below this, relative to the largest, are rounding
RANK = 1e-11
# complementarity, relative to the objective, at which the method ends; most steps (a dozen are usual)
COMPLEMENTARITY = 1e-11
STEPS = 60
# samples with a functional margin of at most 1 plus this may get a weight in w
AT_MARGIN = 1e-4
# share of the way to the boundary that a step takes
TO_BOUNDARY = 0.995


class Candidate(NamedTuple):
    """A hyperplane, and weights that bound every margin from above; unknown parts are None.

    Attributes
    ----------
    normal, bias : w and b.
    coef : coefficients of the samples that combine to w.
    weights : β of a common point of the hulls, or of the largest margin.
    """

    normal: Vector | None = None
    bias: float = 0.0
    coef: Vector | None = None
    weights: Vector | None = None


def largest_margin(X: Any, y: Vector, intercept: bool) -> Iterator[Candidate]:
    """Yield a candidate that decides separability and, if the classes are separable, one with the largest margin.

    The first candidate has a separating hyperplane, or weights of a common point of the hulls. The second has w and b
    with y(⟨w, x⟩ + b) ≥ 1 and the smallest |w|, and β (``coef`` and ``weights``) with X'β = w up to rounding. Labels
    are ±1.
    """
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    with one_blas_thread(), np.errstate(all="ignore"):
        U, back = orthonormal(X, intercept)
        nearest = nearest_separator(U, y)
    if nearest is None:
        # a sample at the origin is on no side of any hyperplane through it
        smallest = int(np.argmin(np.linalg.norm(U, axis=1)))
        yield Candidate(weights=np.where(np.arange(len(U)) == smallest, y, 0.0))
        return
    v = back @ nearest.p
    normal, bias = (v[:-1], float(v[-1])) if intercept else (v, 0.0)
    yield Candidate(normal, bias, weights=y * nearest.a)
    A = y[:, None] * U
    if not (A @ nearest.p).min() > 0:
        return
    with one_blas_thread(), np.errstate(all="ignore"):
        centre = X.mean(axis=0) if intercept else np.zeros(X.shape[1])
        rank = U.shape[1] - intercept
        Q, R = np.linalg.qr((U[:, :rank].T @ (X - centre)).T)
        root = np.zeros((rank, U.shape[1]))
        root[:, :rank] = solve_triangular(R, np.eye(rank), trans="T")
        unit = float(np.abs(root).max())
        v = _least_norm(root / unit, A, nearest.p)
        w = Q @ (root @ v)
        f = X @ w
        b = -0.5 * float(f[y > 0].min() + f[y < 0].max()) if intercept else 0.0
        smallest_value = float(np.min(y * (f + b)))
        if not (smallest_value > 0 and np.all(np.isfinite(w))):
            return
        w, b = w / smallest_value, b / smallest_value
        # functional margins from U are accurate, even if the columns of X have very different scales
        beta = _combination(X, y, intercept, w, A @ v / float((A @ v).min()))
    yield Candidate(w, b, beta, beta)


def matrix_features(K: Matrix) -> Matrix:
    """L with LL' = K up to rounding, by pivoted Cholesky: a row for each sample, a column for each rank of K."""
    L, _ = whole_cholesky(K)
    return L if L.shape[1] else np.zeros((len(K), 1))


def row_coefficients(X: Any, normal: Vector) -> Vector:
    """Coefficients of the rows that combine to w, which lies in their span ([SSBD] Theorem 16.1)."""
    X = X.toarray() if sp.issparse(X) else X
    scale = np.abs(X).max(axis=0)
    scale[scale == 0] = 1.0
    coef: Vector = np.linalg.lstsq((X / scale).T, normal / scale, rcond=RANK)[0]
    return coef


def orthonormal(X: Any, intercept: bool) -> tuple[Matrix, Matrix]:
    """(U, T): U = [X, 1] T has orthonormal columns that span those of [X, 1], or of X without an intercept."""
    X = X.toarray() if sp.issparse(X) else X
    n, d = X.shape
    centre = X.mean(axis=0) if intercept else np.zeros(d)
    Z = X - centre
    scale = np.abs(Z).max(axis=0)
    # a constant feature is only rounding after centring
    scale[scale <= CONSTANT * EPS * np.abs(X).max(axis=0)] = np.inf
    U, S, Vt = np.linalg.svd(Z / scale, full_matrices=False)
    kept = RANK * S.max(initial=0.0) < S
    T = Vt[kept].T / S[kept] / scale[:, None]
    if not intercept:
        return U[:, kept], T
    back = np.zeros((d + 1, int(kept.sum()) + 1))
    back[:d, :-1], back[d, :-1], back[d, -1] = T, -centre @ T, 1.0 / np.sqrt(n)
    return np.column_stack([U[:, kept], np.full(n, 1.0 / np.sqrt(n))]), back


def nearest_separator(U: Matrix, y: Vector) -> NearestPoint | None:
    """The nearest point of the hull of the rows yᵢuᵢ/|uᵢ|, with the weights of yᵢuᵢ; None if a row is zero."""
    size = np.linalg.norm(U, axis=1)
    if size.min() <= EPS * len(U):
        return None
    with one_blas_thread():
        a, p = nearest_point(U * (y / size)[:, None])
    return NearestPoint(a / size, p)


def _least_norm(root: Matrix, A: Matrix, v: Vector) -> Vector:
    """min ½|root v|² such that Av ≥ 1, from a v with Av > 0."""
    n = len(A)
    v = v * (2.0 / float((A @ v).min()))
    s = A @ v - 1.0
    alpha = float(np.sum((root @ v) ** 2)) / (n * s)
    best, smallest = v, np.inf
    for _ in range(STEPS):
        w = root @ v
        gap = float(alpha @ s) / float(w @ w)
        if not np.isfinite(gap):
            break
        if gap < smallest:
            best, smallest = v, gap
        if gap <= COMPLEMENTARITY:
            break
        stationarity, feasibility = A.T @ alpha - root.T @ w, A @ v - 1.0 - s
        D, mu = alpha / s, float(alpha @ s) / n
        R = np.linalg.qr(np.vstack([root, np.sqrt(D)[:, None] * A]), mode="r")
        if not (np.all(np.isfinite(R)) and np.all(np.diagonal(R) != 0)):
            break

        def towards(target: Any) -> tuple[Vector, Vector, Vector]:
            """The step after which αs is the target, to first order."""
            g = stationarity + A.T @ ((target - alpha * (s + feasibility)) / s)  # noqa: B023 (used at once)
            dv = np.zeros(len(v))  # noqa: B023
            for _ in range(2):  # the second pass is iterative refinement
                rest = g - root.T @ (root @ dv) - A.T @ (D * (A @ dv))  # noqa: B023
                dv += solve_triangular(R, solve_triangular(R, rest, trans="T", check_finite=False), check_finite=False)  # noqa: B023
            ds = A @ dv + feasibility  # noqa: B023
            return dv, ds, (target - alpha * (s + ds)) / s  # noqa: B023

        _, ds, da = towards(0.0)
        after = float((alpha + _room(alpha, da) * da) @ (s + _room(s, ds) * ds)) / n
        dv, ds, da = towards(mu * (after / mu) ** 3 - ds * da)
        length = TO_BOUNDARY * min(_room(s, ds), _room(alpha, da))
        v, s, alpha = v + length * dv, s + length * ds, alpha + length * da
    return best


def _combination(X: Matrix, y: Vector, intercept: bool, w: Vector, functional_margins: Vector) -> Vector:
    """β with X'β = w, positive on one class and negative on the other, from the samples at the margin.

    A tiny β may be needed: a column of 1e6 needs β that are 1e-12 of those that a column of 1e-6 needs.
    """
    near = np.flatnonzero(functional_margins <= 1.0 + AT_MARGIN)
    rows, target = y[near, None] * X[near], w
    size = np.linalg.norm(rows, axis=1)
    if intercept:
        rows, target = np.column_stack([rows, size.max() * y[near]]), np.append(w, 0.0)
        size = np.linalg.norm(rows, axis=1)
    size[size == 0] = 1.0
    unit = float(np.linalg.norm(target))
    beta = np.zeros(len(y))
    beta[near] = y[near] * nonnegative_combination(rows / size[:, None], target / unit) / size * unit
    if intercept:
        # the largest β takes up the rounding of the sum
        beta[int(np.argmax(np.abs(beta)))] -= beta.sum()
    return beta


def _room(x: Vector, dx: Vector) -> float:
    """The largest share of the step dx that keeps x from falling below 0; at most 1."""
    falling = dx < 0
    return min(1.0, float(np.min(-x[falling] / dx[falling], initial=np.inf)))


# ---- Gordan's theorem of the alternative -----------------------------------------------------------------------------
#
# For rows z₁, …, zₙ exactly one of these is true:
#
#     there is v with ⟨zᵢ, v⟩ > 0 for all i          all rows lie in an open halfspace
#     there is a ≥ 0, a ≠ 0 with Σ aᵢ zᵢ = 0         the origin is in their convex hull
#
# Both come from the point of the hull that is nearest to the origin, p = Σ aᵢ zᵢ with Σ aᵢ = 1: it satisfies ⟨zᵢ, p⟩ ≥
# |p|² for all i, so that v = p unless p = 0. The algorithm NNLS of Lawson & Hanson, *Solving Least Squares Problems*,
# chapter 23, finds it: the solution of  min |Z'a|² + (1 − Σ a)²,  a ≥ 0,  is a multiple of the a of that point. Each
# step is a least-squares problem in at most d + 1 of the rows, and the algorithm is finite.

# most steps per row; 3 are usual
STEPS = 30


class NearestPoint(NamedTuple):
    """a ≥ 0 with sum 1, and p = Z'a: the point of the hull that is nearest to the origin, up to rounding."""

    a: Vector
    p: Vector


def nearest_point(Z: Matrix) -> NearestPoint:
    """The point of the convex hull of the rows that is nearest to the origin. The rows should be of unit length."""
    n, d = Z.shape
    target = np.zeros(d + 1)
    target[d] = 1.0
    a = nonnegative_combination(np.column_stack([Z, np.ones(n)]), target)
    total = float(a.sum())
    weights = a / total if total > 0 else np.full(n, 1.0 / n)
    p = weights @ Z
    # the rows with weight satisfy ⟨z, p⟩ = |p|². If the sum nearly cancels, these equations give its direction more
    # exactly
    v = np.linalg.lstsq(Z[weights > 0], np.ones(np.count_nonzero(weights)), rcond=None)[0]
    other = v / max(float(v @ v), np.finfo(np.float64).tiny)
    return NearestPoint(weights, other if _cosine(Z, other) > max(0.0, _cosine(Z, p)) else p)


def _cosine(Z: Matrix, point: Vector) -> float:
    """The smallest ⟨zᵢ, v⟩/|v|: positive if all rows are in the open halfspace of v."""
    size = float(np.linalg.norm(point))
    return float((Z @ point).min()) / size if size > 0 else -np.inf


def nonnegative_combination(rows: Matrix, target: Vector) -> Vector:
    """a ≥ 0 for which rows'a is nearest to the target; zeros if the algorithm cycles."""
    try:
        return nnls(rows.T, target, maxiter=STEPS * len(rows))[0]
    except RuntimeError:
        return np.zeros(len(rows))
