"""Number equal rows, bit by bit, of a dense or a CSR matrix with a hash table, and split their common coefficient."""

import numpy as np

from mercer._compiled.compile import compiled


@compiled(merged=True)
def _are_equal(indptr, indices, bits, targets, i, j):
    """Whether two rows and their targets are equal."""
    size = indptr[i + 1] - indptr[i]
    if targets[i] != targets[j] or size != indptr[j + 1] - indptr[j]:
        return False
    for t in range(size):
        a, b = indptr[i] + t, indptr[j] + t
        if bits[a] != bits[b] or (indices.shape[0] > 0 and indices[a] != indices[b]):
            return False
    return True


@compiled()
def number_rows(indptr, indices, bits, targets, hashes, inverse, firsts):
    """Number the distinct rows (with their targets) in the order of their first appearance; how many there are.

    Fills ``inverse``, the number of each row, and the beginning of ``firsts``, the first row of each number.
    """
    n = hashes.shape[0]
    size = 16
    while size < 2 * n:
        size *= 2
    last = np.uint64(size - 1)
    # open addressing with linear probing; -1 is an empty entry
    table = np.full(size, -1, np.int64)
    count = 0
    for i in range(n):
        place = np.int64(hashes[i] & last)
        while True:
            k = table[place]
            if k < 0:
                table[place], firsts[count], inverse[i] = count, i, count
                count += 1
                break
            j = firsts[k]
            if hashes[i] == hashes[j] and _are_equal(indptr, indices, bits, targets, i, j):
                inverse[i] = k
                break
            place = 0 if place + 1 == size else place + 1
    return count


@compiled()
def split_totals(total, inverse, at_bound, upper, lower, rounding, share):
    """Split the total of each number among its rows: each row in turn is filled up to its bound. Fills ``share``.

    ``at_bound`` marks totals that need all rows at their bounds. A row within ``rounding``, relative to the total, of
    its bound or of zero is set to it.
    """
    filled = np.zeros(total.shape[0])
    for i in range(inverse.shape[0]):
        k = inverse[i]
        bound = upper[i] if total[k] > 0.0 else -lower[i]
        size = abs(total[k])
        left, near = size - filled[k], rounding * size
        value = min(max(left, 0.0), bound) if left > near else 0.0
        if size == 0.0:
            value = 0.0
        elif at_bound[k] or left >= bound - near:
            value = bound
        share[i] = np.sign(total[k]) * value
        if bound < np.inf:
            filled[k] += bound
