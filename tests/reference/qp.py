"""An independent solver of the box QP: clarabel, an interior-point method for conic programs.

|β| is written with β = p − m, p ≥ 0, m ≥ 0. Nothing here is shared with the solvers of the package. The primal problem
of support vector regression is solved as it is written in the notes, without a dual.
"""

from __future__ import annotations

from dataclasses import replace

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.losses import BoxQP

Matrix = NDArray[np.float64]


def program_matrix(K: Matrix, qp: BoxQP) -> Matrix:
    """The matrix of the program over variables, with the ridge on its diagonal."""
    Q = K if qp.sample is None else K[np.ix_(qp.sample, qp.sample)]
    return Q + np.diag(qp.ridge)


def objective(K: Matrix, qp: BoxQP, beta: Matrix) -> float:
    """The value to be minimised."""
    return float(0.5 * beta @ program_matrix(K, qp) @ beta - qp.linear @ beta + qp.l1 @ np.abs(beta))


def solve_qp(K: Matrix, qp: BoxQP) -> Matrix:
    """The minimiser, to about 1e-10 of the objective, clipped to the box."""
    Q = program_matrix(K, qp)
    bounds = np.abs(np.r_[qp.lower, qp.upper, qp.sums])
    largest = np.max(bounds, initial=0.0, where=np.isfinite(bounds))
    # bounds far beyond the solution would set clarabel's idea of a small residual: put them nearer, which changes
    # nothing as long as they are not reached. What one sample alone would take is a first guess
    reach = 10 * max(
        np.abs(qp.linear).max() / max(np.diag(Q).mean(), 1e-12 * np.diag(Q).max(), 1e-300),
        np.abs(qp.sums).max(initial=0.0) / 3,
    )
    while 0 < reach < largest:
        near = replace(qp, lower=np.maximum(qp.lower, -reach), upper=np.minimum(qp.upper, reach))
        beta = _clarabel(Q, near, reach)
        if np.abs(beta).max() < 0.5 * reach:
            return beta
        reach *= 10
    return _clarabel(Q, qp, largest if largest > 0 else max(reach / 10, 1e-300))


def _clarabel(Q: Matrix, qp: BoxQP, unit: float) -> Matrix:
    """Solve in multiples of ``unit``."""
    n = qp.n_vars
    split = np.flatnonzero(qp.l1 > 0)
    # β = T z: z holds β, or its positive part where β is split, then the negative parts
    T = sparse.csc_matrix(
        (np.r_[np.ones(n), -np.ones(len(split))], (np.r_[np.arange(n), split], np.arange(n + len(split)))),
        shape=(n, n + len(split)),
    )
    # the unit of the gradient
    size = max(np.abs(qp.linear).max() or np.abs(np.diag(Q)).mean() * unit, 1e-300)
    # Q = LL': with v = L'z as variables of their own, the numbers have half the orders of magnitude
    values, vectors = np.linalg.eigh(Q * (unit / size))
    kept = values > 1e-14 * values.max(initial=0.0)
    L = (vectors[:, kept] * np.sqrt(values[kept])).T @ T
    rank = len(L)
    q = (T.T @ -qp.linear + np.r_[qp.l1, qp.l1[split]]) / size
    # T'linear has the sign of the part, l1 is paid for both parts
    lower = np.r_[qp.lower, np.zeros(len(split))] / unit
    upper = np.r_[qp.upper, -qp.lower[split]] / unit
    lower[split] = 0.0
    identity = sparse.identity(len(q), format="csc")
    below, above = np.isfinite(lower), np.isfinite(upper)
    sums = sparse.csc_matrix((qp.group[None, :] == np.arange(qp.n_groups)[:, None]).astype(float)) @ T
    A = sparse.bmat(
        [
            [sparse.csc_matrix(L), -sparse.identity(rank)],
            [sums, None],
            [-identity[below], None],
            [identity[above], None],
        ],
        format="csc",
    )
    b = np.r_[np.zeros(rank), qp.sums / unit, -lower[below], upper[above]]
    n_equal = rank + qp.n_groups
    cones = [clarabel.ZeroConeT(n_equal), clarabel.NonnegativeConeT(int(below.sum() + above.sum()))]
    P = sparse.diags(np.r_[np.zeros(len(q)), np.ones(rank)], format="csc")

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    solved = []
    # a tolerance out of reach makes clarabel return a worse point than a looser one does
    for tol in (1e-12, 1e-11, 1e-10, 1e-9):
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
        solution = clarabel.DefaultSolver(P, np.r_[q, np.zeros(rank)], A, b, cones, settings).solve()
        z = np.array(solution.x)[: len(q)]
        # the slack and the multiplier of each bound: the smaller one of them is 0
        tight = np.array(solution.s)[n_equal:] < np.array(solution.z)[n_equal:]
        at_lower, at_upper = np.zeros(len(q), dtype=bool), np.zeros(len(q), dtype=bool)
        at_lower[below], at_upper[above] = tight[: below.sum()], tight[below.sum() :]
        start = np.where(at_lower, lower, np.where(at_upper, upper, z))
        free = ~(at_lower | at_upper)
        exact, residual = _on_face(L.T @ L, q, sums.toarray(), qp.sums / unit, start, free, lower, upper)
        if residual < 1e-8:
            return _at_bounds(T @ exact * unit, qp)
        if solution.status in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
            solved.append(z)
    assert solved, f"the reference solver failed: {solution.status}"
    return _at_bounds(T @ solved[0] * unit, qp)


def _at_bounds(beta: Matrix, qp: BoxQP) -> Matrix:
    """β in the box, and exactly at a bound where the change of units has only rounded it."""
    for bound in (qp.lower, qp.upper):
        beta = np.where(np.isclose(beta, bound, rtol=1e-14, atol=0.0), bound, beta)
    return np.clip(beta, qp.lower, qp.upper)


def _on_face(
    P: Matrix, q: Matrix, S: Matrix, s: Matrix, z: Matrix, free: Matrix, lower: Matrix, upper: Matrix
) -> tuple[Matrix, float]:
    """Minimise over the free variables by least squares. Returns z and what it leaves of the conditions."""
    k, m = int(free.sum()), len(s)
    system = np.zeros((k + m, k + m))
    system[:k, :k], system[:k, k:], system[k:, :k] = P[np.ix_(free, free)], S[:, free].T, S[:, free]
    z, multiplier = z.copy(), np.zeros(m)
    for _ in range(3):
        gradient = P @ z + q + S.T @ multiplier
        step = np.linalg.lstsq(system, np.r_[-gradient[free], s - S @ z], rcond=1e-14)[0]
        z[free] += step[:k]
        multiplier += step[k:]
    gradient = P @ z + q + S.T @ multiplier
    inside = np.clip(z, lower, upper)
    wrong = np.where(free, np.abs(gradient), 0.0)
    # at a bound the gradient may have one sign only
    wrong = np.where(~free & (z <= lower), np.maximum(0, -gradient), wrong)
    wrong = np.where(~free & (z >= upper), np.maximum(0, gradient), wrong)
    wrong = np.where(lower == upper, 0.0, wrong)
    residual = max(np.abs(inside - z).max(), wrong.max(), np.abs(S @ inside - s).max(initial=0.0))
    return inside, float(residual)


def solve_svr(X: Matrix, y: Matrix, C: float, epsilon: float) -> tuple[Matrix, float, float]:
    """w, w₀ and the value of support vector regression, by its primal problem as [M5] has it:

    min ½|w|² + C Σ (ξ⁺ + ξ⁻)  s.t.  −ε − ξ⁻ ≤ y − ⟨w, x⟩ − w₀ ≤ ε + ξ⁺,  ξ⁺, ξ⁻ ≥ 0.
    """
    n, d = X.shape
    one, none = sparse.identity(n), sparse.csc_matrix((n, n))
    affine = sparse.csc_matrix(np.column_stack([X, np.ones(n)]))
    # variables (w, w₀, ξ⁺, ξ⁻); rows of A v + s = b with s ≥ 0
    A = sparse.bmat(
        [
            [-affine, -one, none],
            [affine, none, -one],
            [sparse.csc_matrix((n, d + 1)), -one, none],
            [sparse.csc_matrix((n, d + 1)), none, -one],
        ],
        format="csc",
    )
    b = np.r_[epsilon - y, epsilon + y, np.zeros(2 * n)]
    P = sparse.diags(np.r_[np.ones(d), np.zeros(2 * n + 1)], format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    cones = [clarabel.NonnegativeConeT(4 * n)]
    solution = clarabel.DefaultSolver(P, np.r_[np.zeros(d + 1), np.full(2 * n, C)], A, b, cones, settings).solve()
    assert solution.status == clarabel.SolverStatus.Solved
    v = np.array(solution.x)
    return v[:d], float(v[d]), float(solution.obj_val)
