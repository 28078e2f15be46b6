"""An independent solver of multiple kernel learning: the dual as a conic program, by clarabel.

    max  Σ_t D_t(β_t) − ½ |S|_q     with  S_m = Σ_t β_t'K_mβ_t,   1/p + 1/q = 1

β'K_mβ ≤ s_m is a second-order cone; |s|_q ≤ u is  Σ r_m ≤ u  with power cones  s_m ≤ r_m^{1/q} u^{1−1/q}. Nothing here
is shared with the solvers of the package.
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse


def best_value(matrices, tasks, p):
    """The optimum. ``tasks`` are pairs (samples, program of their loss); ``matrices`` the kernels' on all samples."""
    n_kernels = len(matrices)
    sizes = [len(index) for index, _ in tasks]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    total = int(ends[-1])
    # variables: β or its positive parts, negative parts, s, r, u
    s0, r0, u0 = 2 * total, 2 * total + n_kernels, 2 * total + 2 * n_kernels
    n_vars = u0 + 1
    linear = np.concatenate([qp.linear for _, qp in tasks])
    l1 = np.concatenate([qp.l1 for _, qp in tasks])
    ridge = np.concatenate([qp.ridge for _, qp in tasks])
    lower = np.concatenate([qp.lower for _, qp in tasks])
    upper = np.concatenate([qp.upper for _, qp in tasks])
    objective = np.concatenate([-linear + l1, linear + l1, np.zeros(2 * n_kernels), [0.5]])
    to_beta = sparse.hstack([sparse.identity(total), -sparse.identity(total), sparse.csc_matrix((total, n_vars - s0))])
    P = sparse.triu(to_beta.T @ sparse.diags(ridge) @ to_beta, format="csc")

    rows, rights, cones = [], [], []

    def add(A, b, cone):
        rows.append(sparse.csc_matrix(A))
        rights.append(np.atleast_1d(b))
        cones.append(cone)

    for (_, qp), a, b in zip(tasks, ends[:-1], ends[1:], strict=True):
        if qp.n_groups:
            which = np.zeros((1, total))
            which[0, a:b] = 1.0
            add(which @ to_beta, [qp.sums[0]], clarabel.ZeroConeT(1))
    parts = sparse.identity(n_vars, format="csc")[:s0]
    # β is split only where |β| is paid for; else its "negative part" is 0
    split = l1 > 0
    least = np.concatenate([np.where(split, 0.0, lower), np.zeros(total)])
    most = np.concatenate([upper, np.where(split, np.maximum(-lower, 0.0), 0.0)])
    below, above = np.isfinite(least), np.isfinite(most)
    add(-parts[below], -least[below], clarabel.NonnegativeConeT(int(below.sum())))
    add(parts[above], most[above], clarabel.NonnegativeConeT(int(above.sum())))
    for m, K in enumerate(matrices):
        blocks = []
        for index, _ in tasks:
            values, vectors = np.linalg.eigh(K[np.ix_(index, index)])
            kept = values > 1e-13 * max(values.max(), 1e-300)
            blocks.append((vectors[:, kept] * np.sqrt(values[kept])).T)
        L = sparse.block_diag(blocks, format="csc") @ to_beta
        unit = np.zeros((1, n_vars))
        unit[0, s0 + m] = 1.0
        # |(2Lβ, s − 1)| ≤ s + 1
        A = sparse.vstack([-unit, -2.0 * L, -unit])
        add(A, np.concatenate([[1.0], np.zeros(L.shape[0]), [-1.0]]), clarabel.SecondOrderConeT(L.shape[0] + 2))
    if p == 1:
        for m in range(n_kernels):
            row = np.zeros((1, n_vars))
            row[0, s0 + m], row[0, u0] = 1.0, -1.0
            add(row, [0.0], clarabel.NonnegativeConeT(1))
    elif p == np.inf:
        row = np.zeros((1, n_vars))
        row[0, s0:r0], row[0, u0] = 1.0, -1.0
        add(row, [0.0], clarabel.NonnegativeConeT(1))
    elif p == 2:
        A = np.zeros((1 + n_kernels, n_vars))
        A[0, u0] = -1.0
        A[1 + np.arange(n_kernels), s0 + np.arange(n_kernels)] = -1.0
        add(A, np.zeros(1 + n_kernels), clarabel.SecondOrderConeT(1 + n_kernels))
    else:
        row = np.zeros((1, n_vars))
        row[0, r0:u0], row[0, u0] = 1.0, -1.0
        add(row, [0.0], clarabel.NonnegativeConeT(1))
        for m in range(n_kernels):
            A = np.zeros((3, n_vars))
            A[0, r0 + m] = A[1, u0] = A[2, s0 + m] = -1.0
            add(A, np.zeros(3), clarabel.PowerConeT((p - 1.0) / p))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    A, b = sparse.vstack(rows, format="csc"), np.concatenate(rights)
    # a tolerance out of reach makes clarabel end without an answer
    for tol in (1e-9, 1e-8, 1e-7):
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
        solution = clarabel.DefaultSolver(P, objective, A, b, cones, settings).solve()
        value, bound = -float(solution.obj_val), -float(solution.obj_val_dual)
        exact = abs(value - bound) <= 3e-7 * abs(value) and max(solution.r_prim, solution.r_dual) <= 1e-4
        if exact or solution.status == clarabel.SolverStatus.Solved:
            return 0.5 * (value + bound)
    raise AssertionError(f"the reference solver failed: {solution.status}")
