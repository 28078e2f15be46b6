"""Diagonals of P (T + λ)⁻¹ P' for many λ at once, where T is tridiagonal."""

import numpy as np

from mercer._numerics.compile import compiled


@compiled()
def factor(diagonal, below, shifts, ratios, pivots):
    """T + λ = L diag(pivots) L' for each λ: L has ones on its diagonal and ratios[:, k] left of it in row k."""
    for s in range(shifts.shape[0]):
        ratios[s, 0] = 0.0
        pivots[s, 0] = diagonal[0] + shifts[s]
        for k in range(1, diagonal.shape[0]):
            ratios[s, k] = below[k - 1] / pivots[s, k - 1]
            pivots[s, k] = diagonal[k] + shifts[s] - ratios[s, k] * below[k - 1]


@compiled(fast=True)
def _advance(g, row, ratio, pivot, total):
    """One step of the recurrence for some samples; edits g and total."""
    for i in range(g.shape[0]):
        g[i] = row[i] - ratio * g[i]
        total[i] += g[i] * g[i] * pivot


@compiled()
def inverse_diagonals(P, ratios, pivots, start, stop, out):
    """out[s, i] = p_i' (T + λ_s)⁻¹ p_i for the columns p_i of P, start <= i < stop.

    With L g = p the value is Σ g_k² / pivots_k. Some columns at a time for all λ, so that their g stay in cache.
    """
    step = 128
    n_shifts = ratios.shape[0]
    g = np.zeros((n_shifts, step))
    for first in range(start, stop, step):
        last = min(first + step, stop)
        g[:] = 0.0
        out[:, first:last] = 0.0
        for k in range(P.shape[0]):
            row = P[k, first:last]
            for s in range(n_shifts):
                _advance(g[s, : last - first], row, ratios[s, k], 1.0 / pivots[s, k], out[s, first:last])
