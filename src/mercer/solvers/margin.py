"""The largest margin over features, for columns of very different scales.

The kernel matrix of such samples has lost the digits that decide: entries of 1e6 round what columns of 1e-3 contribute.
Here the samples are first given orthonormal columns, which changes neither what can be separated nor how:

    X = U M,  U'U = I,     ⟨x, w⟩ = ⟨u, v⟩ with v = M w,     |w| = |R⁻ᵀ v| with M' = QR

Whether the classes are separable is decided there by a finite algorithm (`mercer.solvers.nearest`). If so,

    min ½|R⁻ᵀ v|²   such that   y(U v + b) ≥ 1

is solved by a predictor-corrector method from the separator that was found. Its normal equations are factored by QR of
their root, so that nothing is squared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lstsq, solve_triangular

from mercer.kernels.features import Matrix, Vector
from mercer.solvers.blas import one_blas_thread
from mercer.solvers.nearest import NearestPoint, nearest_point

EPS = float(np.finfo(np.float64).eps)
# singular values below this, relative to the largest, are rounding
RANK = 1e-11
# up to so many dimensions, and numbers in the matrix, this takes tenths of a second
DIMENSIONS = 120
NUMBERS = 2_000_000
# complementarity, relative to the objective, at which the method ends; a dozen steps are usual
COMPLEMENTARITY = 1e-11
STEPS = 60
# weights below this, relative to the largest, are what the method has left above 0
SUPPORT = 1e-7
# of the way to the boundary
TO_BOUNDARY = 0.995


class LargestMargin(NamedTuple):
    """w and b with y(⟨w, x⟩ + b) ≥ 1 and |w| as small as possible, and β with X'β = w to within rounding."""

    w: Vector
    b: float
    beta: Vector


def is_small(n: int, d: int) -> bool:
    """Whether ``largest_margin`` of n samples with d features takes little time."""
    return min(n, d) <= DIMENSIONS and n * d <= NUMBERS


def largest_margin(X: Any, y: Vector, intercept: bool) -> LargestMargin | None:
    """The separator of largest margin; None where none was found. Labels are ±1."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    with one_blas_thread(), np.errstate(all="ignore"):
        U, _ = orthonormal(X, intercept)
        nearest = nearest_separator(U, y)
        A = y[:, None] * U
        if nearest is None or not (A @ nearest.p).min() > 0:
            return None
        centre = X.mean(axis=0) if intercept else np.zeros(X.shape[1])
        rank = U.shape[1] - intercept
        Q, R = np.linalg.qr((U[:, :rank].T @ (X - centre)).T)
        root = np.zeros((rank, U.shape[1]))
        root[:, :rank] = solve_triangular(R, np.eye(rank), trans="T")
        unit = float(np.abs(root).max())
        v, alpha = _least_norm(root / unit, A, nearest.p)
        w = Q @ (root @ v)
        f = X @ w
        b = -0.5 * float(f[y > 0].min() + f[y < 0].max()) if intercept else 0.0
        smallest = float(np.min(y * (f + b)))
        if not (smallest > 0 and np.all(np.isfinite(w)) and np.all(np.isfinite(alpha))):
            return None
        return LargestMargin(
            w / smallest, b / smallest, _combination(X, y, intercept, w / smallest, alpha * unit**2 / smallest)
        )


def orthonormal(X: Any, intercept: bool) -> tuple[Matrix, Matrix]:
    """(U, T): U = [X, 1] T has orthonormal columns that span those of [X, 1], or of X without an intercept."""
    X = X.toarray() if sp.issparse(X) else X
    n, d = X.shape
    centre = X.mean(axis=0) if intercept else np.zeros(d)
    Z = X - centre
    scale = np.abs(Z).max(axis=0)
    # what centring leaves of a constant feature is rounding
    scale[scale <= 4 * EPS * np.abs(X).max(axis=0)] = np.inf
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


def _least_norm(root: Matrix, A: Matrix, v: Vector) -> tuple[Vector, Vector]:
    """(v, α) of min ½|root v|² such that Av ≥ 1, from a v with Av > 0."""
    n = len(A)
    v = v * (2.0 / float((A @ v).min()))
    s = A @ v - 1.0
    alpha = float(np.sum((root @ v) ** 2)) / (n * s)
    best, smallest = (v, alpha), np.inf
    for _ in range(STEPS):
        w = root @ v
        gap = float(alpha @ s) / float(w @ w)
        if not np.isfinite(gap):
            break
        if gap < smallest:
            best, smallest = (v, alpha), gap
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
            for _ in range(2):  # once more for what rounding has left
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


def _combination(X: Matrix, y: Vector, intercept: bool, w: Vector, alpha: Vector) -> Vector:
    """β near yα with X'β = w, from the samples that have a weight, as exactly as float64 can say."""
    support = np.flatnonzero(alpha > SUPPORT * alpha.max())
    beta = np.zeros(len(y))
    beta[support] = y[support] * alpha[support]
    equations, target = X[support].T, w
    if intercept:
        equations, target = np.vstack([equations, np.ones(len(support))]), np.append(w, 0.0)
    weighted = equations * beta[support]
    scale = np.maximum(np.abs(weighted).max(axis=1), np.finfo(np.float64).tiny)
    for _ in range(2):  # once more for what rounding has left
        rest = (target - equations @ beta[support]) / scale
        change = lstsq(weighted / scale[:, None], rest, cond=EPS, lapack_driver="gelsy")[0]
        beta[support] *= np.maximum(1.0 + change, 0.0)
    if intercept:
        # what rounding has left of the sum, where it changes least
        beta[int(np.argmax(np.abs(beta)))] -= beta.sum()
    return beta


def _room(x: Vector, dx: Vector) -> float:
    """The largest share of the step dx that keeps x from falling below 0; at most 1."""
    falling = dx < 0
    return min(1.0, float(np.min(-x[falling] / dx[falling], initial=np.inf)))
