"""An independent solver of linear machines: clarabel, on the primal written out with slack variables.

    min  l1 Σ(p + m) + ½ l2 |w|² + Σ weight (ξ or ξ²)      w = p − m,   f = Xw + b

Nothing here is shared with the solvers of the package, nor with the dual programs of its losses.
"""

from __future__ import annotations

from typing import NamedTuple

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Vector = NDArray[np.float64]


class Reference(NamedTuple):
    """The model, its value, and a lower bound on the optimum."""

    w: Vector
    b: float
    value: float
    bound: float


def loss_of(kind: str, y: Vector, f: Vector, parameter: float = 0.0) -> Vector:
    """The loss of each sample, by its definition."""
    if kind in ("hinge", "squared_hinge"):
        paid = np.maximum(0.0, 1.0 - y * f)
    elif kind == "pinball":
        return np.where(y >= f, parameter * (y - f), (1.0 - parameter) * (f - y))
    elif kind == "hard":
        return np.where(y * f >= 1.0 - 1e-7, 0.0, np.inf)
    else:
        paid = np.maximum(0.0, np.abs(y - f) - parameter)
    return paid**2 if kind.startswith("squared") else paid


def value_of(
    X: Vector, y: Vector, weight: Vector, w: Vector, b: float, kind: str, l1: float, l2: float, parameter: float = 0.0
) -> float:
    """The primal of a model."""
    paid = loss_of(kind, y, X @ w + b, parameter)
    used = (weight > 0) & (paid > 0)
    return float(l1 * np.abs(w).sum() + 0.5 * l2 * (w @ w) + weight[used] @ paid[used])


def solve(
    X: Vector,
    y: Vector,
    weight: Vector,
    kind: str,
    *,
    l1: float = 0.0,
    l2: float = 1.0,
    free: bool = False,
    parameter: float = 0.0,
) -> Reference:
    """The optimum; ``free`` adds an intercept that is not penalised, ``parameter`` is ε or the quantile."""
    used = weight > 0
    A, t, C = X[used], y[used], np.where(np.isfinite(weight[used]), weight[used], 1.0)
    n, d = A.shape
    # variables: p, m (both ≥ 0, or w itself without an l1 penalty), b, ξ
    parts = 2 if l1 > 0 else 1
    n_w, slack = parts * d, parts * d + 1
    size = slack + n
    signed = sparse.hstack([sparse.csc_matrix(A), -sparse.csc_matrix(A)]) if parts == 2 else sparse.csc_matrix(A)
    f = sparse.hstack([signed, sparse.csc_matrix(np.full((n, 1), float(free))), sparse.csc_matrix((n, n))])
    xi = sparse.hstack([sparse.csc_matrix((n, slack)), sparse.identity(n)])
    rows, right = [], []
    if kind in ("hinge", "squared_hinge", "hard"):
        # −y f − ξ ≤ −1
        rows.append(-sparse.diags(t) @ f - (0 if kind == "hard" else 1) * xi)
        right.append(-np.ones(n))
    elif kind == "pinball":
        # ξ ≥ τ(y − f) and ξ ≥ (1 − τ)(f − y)
        for sign, share in ((1.0, parameter), (-1.0, 1.0 - parameter)):
            rows.append(-sign * share * f - xi)
            right.append(-sign * share * t)
    else:
        for sign in (1.0, -1.0):
            rows.append(-sign * f - xi)
            right.append(-sign * t + parameter)
    rows.append(-xi)
    right.append(np.zeros(n))
    if parts == 2:
        rows.append(-sparse.identity(size, format="csc")[:n_w])
        right.append(np.zeros(n_w))
    G, h = sparse.vstack(rows, format="csc"), np.concatenate(right)
    diagonal, q = np.zeros(size), np.zeros(size)
    quadratic = kind.startswith("squared")
    diagonal[slack:] = 2.0 * C if quadratic else 0.0
    q[slack:] = 0.0 if quadratic else C
    if parts == 2:
        q[:n_w] = l1
        block = sparse.kron(sparse.csc_matrix([[1.0, -1.0], [-1.0, 1.0]]), l2 * sparse.identity(d))
    else:
        block = l2 * sparse.identity(d)
    P = sparse.block_diag([block, sparse.diags(diagonal[n_w:])], format="csc")
    if not free:  # b = 0
        G = sparse.vstack([G, sparse.csc_matrix(([1.0], ([0], [n_w])), shape=(1, size))], format="csc")
        h = np.append(h, 0.0)
    cones = [clarabel.NonnegativeConeT(len(h) - (not free))]
    if not free:
        cones.append(clarabel.ZeroConeT(1))
    best: Reference | None = None
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    for tol in (1e-12, 1e-11, 1e-10):
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
        solution = clarabel.DefaultSolver(sparse.triu(P, format="csc"), q, G, h, cones, settings).solve()
        x = np.array(solution.x)
        w = x[:d] - x[d:n_w] if parts == 2 else x[:d]
        b = float(x[n_w]) if free else 0.0
        value = value_of(X, y, weight, w, b, kind, l1, l2, parameter)
        found = Reference(w, b, value, float(solution.obj_val_dual))
        if best is None or abs(found.value - found.bound) < abs(best.value - best.bound):
            best = found
        if abs(best.value - best.bound) <= 1e-10 * abs(best.value):
            break
    assert best is not None
    return best
