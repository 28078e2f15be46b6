"""Coordinate ascent and SMO of [M5] and [CS229] in plain Python, on the dual of the hinge loss in α."""

import numpy as np


def dual_value(K, y, alpha):
    """Σα − ½Σ αᵢαⱼyᵢyⱼk(xᵢ, xⱼ), ([M5], dual form)."""
    return alpha.sum() - 0.5 * (alpha * y) @ K @ (alpha * y)


def coordinate_ascent(K, y, C, order):
    """The steps (i, unclipped, clipped, dual) that move α one by one; ``order`` gives the next i from (K, y, C, α)."""
    alpha, steps = np.zeros(len(y)), []
    for i in order:
        i = i(alpha) if callable(i) else i
        f = sum(alpha[j] * y[j] * K[i, j] for j in range(len(y)))
        unclipped = alpha[i] + (1.0 - y[i] * f) / K[i, i]
        alpha[i] = min(max(unclipped, 0.0), C)
        steps.append((i, unclipped, alpha[i], dual_value(K, y, alpha)))
    return alpha, steps


def largest_gain(K, y, C):
    """The coordinate whose step gains most, the first of several."""

    def choose(alpha):
        gains = []
        for i in range(len(y)):
            moved = alpha.copy()
            moved[i] = min(max(alpha[i] + (1.0 - y[i] * (K[i] @ (alpha * y))) / K[i, i], 0.0), C)
            gains.append(dual_value(K, y, moved) - dual_value(K, y, alpha))
        return int(np.argmax(gains))

    return choose


def smo(K, y, C, tol, most=10_000):
    """The steps (i, j, L, H, unclipped, clipped, alpha_i, dual): pairs by second-order selection (Fan, Chen & Lin).

    After a step that meets no bound the errors of i and j are equal, and rounding decides which is larger: F is updated
    by the same sum as in the library.
    """
    n, alpha, F, steps = len(y), np.zeros(len(y)), np.zeros(len(y)), []
    while len(steps) < most:
        score = y - F  # the negative error of the notes, up to the threshold
        up = [i for i in range(n) if (y[i] > 0 and alpha[i] < C) or (y[i] < 0 and alpha[i] > 0)]
        down = [i for i in range(n) if (y[i] > 0 and alpha[i] > 0) or (y[i] < 0 and alpha[i] < C)]
        i = max(up, key=lambda k: (score[k], -k))
        if score[i] - min(score[k] for k in down) <= tol:
            break

        def gain(j, i=i, score=score):
            slope = score[i] - score[j]
            return slope**2 / (K[i, i] + K[j, j] - 2 * K[i, j]) if slope > 0 else 0.0

        j = max(down, key=lambda k: (gain(k), -k))
        eta = K[i, i] + K[j, j] - 2 * K[i, j]
        unclipped = alpha[j] - y[j] * ((score[i] - score[j]) / eta)
        if y[i] != y[j]:
            L, H = max(0.0, alpha[j] - alpha[i]), min(C, C + alpha[j] - alpha[i])
        else:
            L, H = max(0.0, alpha[i] + alpha[j] - C), min(C, alpha[i] + alpha[j])
        clipped = min(max(unclipped, L), H)
        before = y * alpha
        if clipped == unclipped:
            alpha[i] += y[i] * ((score[i] - score[j]) / eta)
            alpha[j] = clipped
        else:  # the nearer end of the segment: one of the two is at a bound exactly, also after rounding
            ends = C if y[i] > 0 else 0.0, 0.0 if y[j] > 0 else C
            room = abs(ends[0] - alpha[i]), abs(ends[1] - alpha[j])
            step = min(room)
            alpha[i] = ends[0] if room[0] == step else alpha[i] + y[i] * step
            alpha[j] = ends[1] if room[1] == step else alpha[j] - y[j] * step
        change = y * alpha - before
        F = F + (change[i] * K[i] + change[j] * K[j])
        steps.append((i, j, L, H, unclipped, alpha[j], alpha[i], dual_value(K, y, alpha)))
    return alpha, steps
