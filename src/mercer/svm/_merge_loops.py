"""Rows that are equal, bit by bit: dense ones one after the other, or those of a CSR matrix with their indices."""

import numpy as np

from mercer._compiled.compile import compiled

# odd numbers with many ones, and how far the upper half is brought down
FACTOR, INDEX_FACTOR, HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(32)


@compiled(merged=True)
def _mix(code, bits):
    """The code with some bits more: the product moves them up, the shift brings them down again."""
    code = (code ^ bits) * FACTOR
    return code ^ (code >> HALF)


@compiled(merged=True)
def _entry(indices, bits, t):
    """The bits of an entry, and its index where there are any."""
    if indices.shape[0] == 0:
        return np.uint64(bits[t])
    return np.uint64(bits[t]) + np.uint64(indices[t]) * INDEX_FACTOR


@compiled()
def row_codes(indptr, indices, bits, targets, codes):
    """A number for each row and its target, the same for equal ones and hardly ever for others."""
    for i in range(codes.shape[0]):
        # four numbers side by side: each waits for its own last product only
        a, b, c, d = FACTOR, FACTOR, FACTOR, FACTOR
        t, end = indptr[i], indptr[i + 1]
        while t + 4 <= end:
            a, b = _mix(a, _entry(indices, bits, t)), _mix(b, _entry(indices, bits, t + 1))
            c, d = _mix(c, _entry(indices, bits, t + 2)), _mix(d, _entry(indices, bits, t + 3))
            t += 4
        while t < end:
            a = _mix(a, _entry(indices, bits, t))
            t += 1
        codes[i] = _mix(_mix(_mix(_mix(a, b), c), d), targets[i])


@compiled(merged=True)
def _are_equal(indptr, indices, bits, targets, i, j):
    """Whether two rows are equal, with their targets."""
    size = indptr[i + 1] - indptr[i]
    if targets[i] != targets[j] or size != indptr[j + 1] - indptr[j]:
        return False
    for t in range(size):
        a, b = indptr[i] + t, indptr[j] + t
        if bits[a] != bits[b] or (indices.shape[0] > 0 and indices[a] != indices[b]):
            return False
    return True


@compiled()
def number_rows(indptr, indices, bits, targets, codes, one_of, firsts):
    """Number the rows, equal ones (with equal targets) alike, by first appearance: how many numbers there are.

    Fills one_of, the number of each row, and the beginning of firsts, the first row of each number.
    """
    n = codes.shape[0]
    size = 16
    while size < 2 * n:
        size *= 2
    last = np.uint64(size - 1)
    # at each place a number whose code belongs there, or before it: places that are taken are passed over
    table = np.full(size, -1, np.int64)
    count = 0
    for i in range(n):
        place = np.int64(codes[i] & last)
        while True:
            k = table[place]
            if k < 0:
                table[place], firsts[count], one_of[i] = count, i, count
                count += 1
                break
            j = firsts[k]
            if codes[i] == codes[j] and _are_equal(indptr, indices, bits, targets, i, j):
                one_of[i] = k
                break
            place = 0 if place + 1 == size else place + 1
    return count


@compiled()
def share_out(total, one_of, at_bound, upper, lower, rounding, share):
    """Share the total of each number among its rows, the first ones first, each up to its bound: fills share.

    ``at_bound`` says which totals are all that the bounds allow. A row is not left beside its bound, or zero, for what
    rounding of the sums may be, relative to the total.
    """
    used = np.zeros(total.shape[0])
    for i in range(one_of.shape[0]):
        k = one_of[i]
        bound = upper[i] if total[k] > 0.0 else -lower[i]
        size = abs(total[k])
        left, near = size - used[k], rounding * size
        part = min(max(left, 0.0), bound) if left > near else 0.0
        if size == 0.0:
            part = 0.0
        elif at_bound[k] or left >= bound - near:
            part = bound
        share[i] = np.sign(total[k]) * part
        if bound < np.inf:
            used[k] += bound
