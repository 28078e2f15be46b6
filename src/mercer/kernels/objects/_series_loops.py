"""Compiled loops of the global alignment kernel: sums over all alignments of two series.

    M[i, j] = kappa(x_i, z_j) (M[i-1, j-1] + M[i-1, j] + M[i, j-1]),    kappa = w g / (2 - w g),
    g = exp(-gamma |x_i - z_j|^2),    w = max(0, 1 - |i - j| / band)

Cuturi, Vert, Birkenes & Matsui (2007); Cuturi (2011). M overflows for series of a few hundred points. Each entry is
therefore a pair: a number in [1, 2^256) and a power of 2^256. Of two such pairs the one with the higher power is the
larger one, so that sums are exact up to rounding.
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.exp import exp

UNIT = 2.0**256
LOG_UNIT = 256.0 * np.log(2.0)
# largest exponent: beyond it, multiples of LOG_UNIT are not exact any more, and exp(-LARGEST) is 0 anyway
LARGEST = 1e12


@compiled()
def _local(x, z, i, first, gamma, band, values, powers):
    """values[j] 2^(256 powers[j]) = kappa(x_i, z_j) for points z from number ``first`` on. Edits values and powers."""
    m, d = z.shape
    for j in range(m):
        values[j] = 0.0
    for k in range(d):
        left = x[i, k]
        for j in range(m):
            difference = left - z[j, k]
            values[j] += difference * difference
    for j in range(m):
        u = min(gamma * values[j], LARGEST)
        power = np.floor(u / LOG_UNIT)
        w = 1.0 if band <= 0 else 1.0 - abs(i - first - j) / band
        g = w * exp(power * LOG_UNIT - u)
        values[j] = g / (2.0 - g) if power == 0.0 else 0.5 * g
        powers[j] = -power


@compiled()
def log_alignment(x, z, gamma, band, values, powers, line, line_powers):
    """log M[n-1, m-1]; -inf if no alignment stays within the band. The last four vectors, of length m, are scratch."""
    n, m = x.shape[0], z.shape[0]
    if n == 0 or m == 0 or (band > 0 and abs(n - m) >= band):
        return -np.inf
    for j in range(m):
        line[j] = 0.0
        line_powers[j] = 0.0
    for i in range(n):
        # columns within the band; those to its right are still 0, those to its left are not used any more
        first = 0 if band <= 0 else max(0, i - band + 1)
        last = m if band <= 0 else min(m, i + band)
        _local(x, z[first:last], i, first, gamma, band, values[first:last], powers[first:last])
        # of row i - 1, column j - 1; and of row i, column j - 1
        corner, corner_power = (1.0, 0.0) if i == 0 else (0.0, 0.0)
        if first > 0:
            corner, corner_power = line[first - 1], line_powers[first - 1]
        left, left_power = 0.0, 0.0
        for j in range(first, last):
            above, above_power = line[j], line_powers[j]
            if above_power == left_power and left_power == corner_power:
                total, power = above + left + corner, left_power
            else:
                # an entry that is 0 has no power of its own
                power = -np.inf
                if above != 0.0:
                    power = above_power
                if left != 0.0 and left_power > power:
                    power = left_power
                if corner != 0.0 and corner_power > power:
                    power = corner_power
                total = 0.0
                if above != 0.0 and above_power >= power - 1.0:
                    total += above if above_power == power else above / UNIT
                if left != 0.0 and left_power >= power - 1.0:
                    total += left if left_power == power else left / UNIT
                if corner != 0.0 and corner_power >= power - 1.0:
                    total += corner if corner_power == power else corner / UNIT
                if total == 0.0:
                    power = 0.0
            total *= values[j]
            power += powers[j]
            if total == 0.0:
                power = 0.0
            else:
                while total < 1.0:
                    total *= UNIT
                    power -= 1.0
                while total >= UNIT:
                    total /= UNIT
                    power += 1.0
            corner, corner_power = above, above_power
            left, left_power = total, power
            line[j] = total
            line_powers[j] = power
    if line[m - 1] == 0.0:
        return -np.inf
    return np.log(line[m - 1]) + line_powers[m - 1] * LOG_UNIT


@compiled()
def log_alignments(a, a_start, a_rows, b, b_start, b_rows, gamma, band, paired, out):
    """out[i, j] = log M of series a_rows[i] and b_rows[j]; if ``paired``, out[i, 0] is that of a_rows[i], b_rows[i]."""
    longest = 1
    for j in range(b_rows.shape[0]):
        longest = max(longest, b_start[b_rows[j] + 1] - b_start[b_rows[j]])
    work = np.empty((4, longest))
    for i in range(a_rows.shape[0]):
        x = a[a_start[a_rows[i]] : a_start[a_rows[i] + 1]]
        first, last = (i, i + 1) if paired else (0, b_rows.shape[0])
        for j in range(first, last):
            z = b[b_start[b_rows[j]] : b_start[b_rows[j] + 1]]
            m = z.shape[0]
            value = log_alignment(x, z, gamma, band, work[0, :m], work[1, :m], work[2, :m], work[3, :m])
            out[i, j - first] = value
