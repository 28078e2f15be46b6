"""Primal problems of the smallest ball and of ordering machines as quadratic programs, solved by clarabel.

    min over w, t, ξ   ½|w|² + cost't + Σ weight ξ^p     s.t.  ξ ≥ margin − (A L w + T t),  ξ ≥ 0,  G t ≥ 0

K = LL', so that Lw are the values of the function with the coefficients w on the samples; p is 1 or 2.
"""

from __future__ import annotations

from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse


class Optimum(NamedTuple):
    """The value, the function at the samples, and t."""

    value: float
    F: np.ndarray
    thresholds: np.ndarray


def solve_primal(K, A, T, margin, weight, cost=None, G=None, power=1):
    """The optimum to about 1e-9."""
    values, vectors = np.linalg.eigh(K)
    L = vectors * np.sqrt(np.maximum(values, 0.0))
    (m, k), n = T.shape, len(K)
    cost = np.zeros(k) if cost is None else cost
    G = np.zeros((0, k)) if G is None else G
    squares = 2.0 * weight if power == 2 else np.zeros(m)
    P = sparse.diags(np.concatenate([np.ones(n), np.zeros(k), squares])).tocsc()
    q = np.concatenate([np.zeros(n), cost, np.zeros(m) if power == 2 else weight])
    rows = [
        np.hstack([-A @ L, -T, -np.eye(m)]),
        np.hstack([np.zeros((m, n + k)), -np.eye(m)]),
        np.hstack([np.zeros((len(G), n)), -G, np.zeros((len(G), m))]),
    ]
    b = np.concatenate([-margin, np.zeros(m), np.zeros(len(G))])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.NonnegativeConeT(len(b))]
    found = clarabel.DefaultSolver(P, q, sparse.csc_matrix(np.vstack(rows)), b, cones, settings).solve()
    z = np.asarray(found.x)
    return Optimum(float(found.obj_val), L @ z[:n], z[n : n + k])
