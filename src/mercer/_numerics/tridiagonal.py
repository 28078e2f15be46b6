"""Diagonals of P (T + λ)⁻¹ P' for many λ at once, where T is tridiagonal."""

import numpy as np

from mercer._numerics.compile import compiled

# steps of the recurrence taken together, so that what they share is read once
STEPS = 4


@compiled()
def factor(diagonal, below, shifts, ratios, weights):
    """T + λ = L diag(1 / weights) L' for each λ: L has ones on its diagonal and ratios[:, k] left of it in row k."""
    for s in range(shifts.shape[0]):
        ratios[s, 0] = 0.0
        weights[s, 0] = 1.0 / (diagonal[0] + shifts[s])
        for k in range(1, diagonal.shape[0]):
            ratios[s, k] = below[k - 1] * weights[s, k - 1]
            weights[s, k] = 1.0 / (diagonal[k] + shifts[s] - ratios[s, k] * below[k - 1])


@compiled()
def inverse_traces(diagonal, below, shifts, out):
    """out[s] = tr (T + λ_s)⁻¹: row k of the inverse has 1 / (p_k + q_k − T_kk − λ) on the diagonal.

    p are the pivots of an elimination from above, q from below.
    """
    n = diagonal.shape[0]
    pivots = np.empty(n)
    for s in range(shifts.shape[0]):
        pivots[0] = diagonal[0] + shifts[s]
        for k in range(1, n):
            pivots[k] = diagonal[k] + shifts[s] - below[k - 1] * below[k - 1] / pivots[k - 1]
        total, pivot = 1.0 / pivots[n - 1], diagonal[n - 1] + shifts[s]
        for k in range(n - 2, -1, -1):
            change = below[k] * below[k] / pivot
            total += 1.0 / (pivots[k] - change)
            pivot = diagonal[k] + shifts[s] - change
        out[s] = total


@compiled(fast=True)
def _advance(g, rows, ratios, weights, total):
    """Four steps of the recurrence for some samples and all λ; edits g and total."""
    p0, p1, p2, p3 = rows[0], rows[1], rows[2], rows[3]
    for s in range(g.shape[0]):
        r0, r1, r2, r3 = ratios[s, 0], ratios[s, 1], ratios[s, 2], ratios[s, 3]
        w0, w1, w2, w3 = weights[s, 0], weights[s, 1], weights[s, 2], weights[s, 3]
        for i in range(g.shape[1]):
            a = p0[i] - r0 * g[s, i]
            b = p1[i] - r1 * a
            c = p2[i] - r2 * b
            d = p3[i] - r3 * c
            g[s, i] = d
            total[s, i] += (a * a * w0 + b * b * w1) + (c * c * w2 + d * d * w3)


@compiled()
def inverse_diagonals(P, ratios, weights, start, stop, out):
    """out[s, i] = p_i' (T + λ_s)⁻¹ p_i for the columns p_i of P, start <= i < stop.

    With L g = p the value is Σ g_k² weights_k. Some columns at a time for all λ, so that their g stay in cache. Ratios
    and weights end with zeros, up to a multiple of STEPS.
    """
    step = 128
    n_shifts, rank = ratios.shape[0], P.shape[0]
    g, total, rows = np.zeros((n_shifts, step)), np.zeros((n_shifts, step)), np.zeros((STEPS, step))
    for first in range(start, stop, step):
        count = min(step, stop - first)
        g[:] = 0.0
        total[:] = 0.0
        for k in range(0, rank, STEPS):
            there = min(STEPS, rank - k)
            rows[there:] = 0.0
            rows[:there, :count] = P[k : k + there, first : first + count]
            _advance(g, rows, ratios[:, k : k + STEPS], weights[:, k : k + STEPS], total)
        out[:, first : first + count] = total[:, :count]
