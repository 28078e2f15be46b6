"""Systems with B + λ for many λ at once, for a symmetric band matrix B: band[k, d] = B[k + d, k].

    B + λ = L diag(1 / weights) L',     L has ones on its diagonal

Row k of L, left of the diagonal, is rows[k, FRONT:]. Zeros before it allow STEPS rows to be read at the same columns.
The number of rows is padded with zeros to a multiple of STEPS.
"""

import numpy as np

from mercer._compiled.compile import compiled

# rows that are solved together, so that shared data are read once; zeros before each row
STEPS = 4
FRONT = STEPS - 1
# columns of P at a time: their data stay in the cache
STEP = 64
# positions are unsigned: numba tests signed ones for negative values at each access
ZERO, ONE, TWO, THREE, FOUR, PART = (np.uint64(k) for k in (0, 1, 2, 3, STEPS, STEP))


@compiled(fast=True)
def factor(band, shifts, rows, weights):
    """Fill rows and weights, which are zero before, for each λ."""
    n, width = band.shape[0], band.shape[1] - 1
    left, column = np.empty(band.shape), np.empty(width + 1)
    for s in range(shifts.shape[0]):
        # assigning slices would compile numpy's check of shapes, for seconds
        for k in range(n):
            for i in range(width + 1):
                left[k, i] = band[k, i]
        for k in range(n):
            for i in range(width + 1):
                column[i] = left[k, i]
            inverse = 1.0 / (column[0] + shifts[s])
            weights[s, k] = inverse
            last = min(width, n - 1 - k)
            for i in range(1, last + 1):
                ratio = column[i] * inverse
                rows[s, k + i, FRONT + width - i] = ratio
                for j in range(i, last + 1):
                    left[k + i, j - i] -= ratio * column[j]


@compiled(fast=True)
def substitute(rows, weights, right, out):
    """out = (B + λ)⁻¹ right, for one λ; the right-hand sides are rows."""
    n, width = right.shape[1], rows.shape[1] - FRONT
    x = np.zeros(width + n)
    for c in range(right.shape[0]):
        for k in range(n):
            total = right[c, k]
            for j in range(width):
                total -= rows[k, FRONT + j] * x[k + j]
            x[width + k] = total
        for k in range(n):
            x[width + k] *= weights[k]
        for k in range(n - 1, -1, -1):
            value = x[width + k]
            for j in range(width):
                x[k + j] -= rows[k, FRONT + j] * value
        for k in range(out.shape[1]):
            out[c, k] = x[width + k]
        x[:width] = 0.0


@compiled(fast=True)
def inverse_traces(rows, weights, n, out):
    """out[s] = tr (B + λ_s)⁻¹, from the last row of the inverse to the first (Takahashi, Fagan & Chin 1973).

    Only a window of the inverse Z is kept: as many rows as L has off-diagonals, row k at k modulo their number.
    """
    width = rows.shape[2] - FRONT
    window, ratios, z = np.empty((width, width)), np.empty(width), np.empty(width)
    for s in range(rows.shape[0]):
        window[:] = 0.0
        out[s] = 0.0
        for k in range(n - 1, -1, -1):
            for i in range(1, width + 1):
                ratios[(k + i) % width] = rows[s, k + i, FRONT + width - i] if k + i < n else 0.0
            value = weights[s, k]
            for i in range(width):
                total = 0.0
                for j in range(width):
                    total -= window[i, j] * ratios[j]
                z[i] = total
                value -= ratios[i] * total
            at = k % width
            for i in range(width):
                window[at, i] = window[i, at] = z[i]
            window[at, at] = value
            out[s] += value


@compiled(fast=True, merged=True)
def _advance(own, k, g, width, rows, at, length, part):
    """Forward substitution for STEPS rows of g from row k on; own has the rows of P. Edits g and part.

    All arrays are flat: the first of these rows of L begins at ``at``; each has this ``length``.
    """
    for c in range(FOUR * PART):
        part[c] = own[k * PART + c]
    # g begins with as many rows of zeros as L has off-diagonals
    a, b = at + THREE, at + length + TWO
    c_, d = at + TWO * length + ONE, at + THREE * length
    if width == ONE:
        first, second, third, fourth = rows[a], rows[b], rows[c_], rows[d]
        for c in range(PART):
            x = g[k * PART + c]
            part[c] -= first * x
            part[PART + c] -= second * x
            part[TWO * PART + c] -= third * x
            part[THREE * PART + c] -= fourth * x
    else:
        for j in range(ZERO, width, TWO):
            a0, a1, b0, b1 = rows[a + j], rows[a + j + ONE], rows[b + j], rows[b + j + ONE]
            c0, c1, d0, d1 = rows[c_ + j], rows[c_ + j + ONE], rows[d + j], rows[d + j + ONE]
            start = (k + j) * PART
            for c in range(PART):
                x, y = g[start + c], g[start + PART + c]
                part[c] -= a0 * x + a1 * y
                part[PART + c] -= b0 * x + b1 * y
                part[TWO * PART + c] -= c0 * x + c1 * y
                part[THREE * PART + c] -= d0 * x + d1 * y
    ba, ca, cb = rows[b + width], rows[c_ + width], rows[c_ + width + ONE]
    da, db, dc = rows[d + width], rows[d + width + ONE], rows[d + width + TWO]
    start = (k + width) * PART
    for c in range(PART):
        p = part[c]
        q = part[PART + c] - ba * p
        r = part[TWO * PART + c] - (ca * p + cb * q)
        g[start + c] = p
        g[start + PART + c] = q
        g[start + TWO * PART + c] = r
        g[start + THREE * PART + c] = part[THREE * PART + c] - (da * p + db * q) - dc * r


@compiled(fast=True)
def inverse_diagonals(P, rows, weights, start, stop, out):
    """out[s, i] = p_i' (B + λ_s)⁻¹ p_i for the columns p_i of P, start <= i < stop, in the precision of rows.

    With L g = p the value is Σ g_k² weights_k. L has one off-diagonal, or an even number of them.
    """
    n_rows, length = np.uint64(rows.shape[1]), np.uint64(rows.shape[2])
    width, flat = length - THREE, rows.reshape(-1)
    own, g = np.zeros(n_rows * PART, rows.dtype), np.zeros((n_rows + width) * PART, rows.dtype)
    part, total = np.zeros(FOUR * PART, rows.dtype), np.zeros(PART)
    for first in range(start, stop, STEP):
        count = min(STEP, stop - first)
        for k in range(P.shape[0]):
            for c in range(count):
                own[k * STEP + c] = P[k, first + c]
        for s in range(rows.shape[0]):
            total[:] = 0.0
            for k in range(ZERO, n_rows, FOUR):
                _advance(own, k, g, width, flat, (np.uint64(s) * n_rows + k) * length, length, part)
                w0, w1, w2, w3 = weights[s, k], weights[s, k + ONE], weights[s, k + TWO], weights[s, k + THREE]
                begin = (k + width) * PART
                for c in range(PART):
                    x, y = g[begin + c], g[begin + PART + c]
                    z, t = g[begin + TWO * PART + c], g[begin + THREE * PART + c]
                    total[c] += np.float64((x * x * w0 + y * y * w1) + (z * z * w2 + t * t * w3))
            for c in range(count):
                out[s, first + c] = total[c]
