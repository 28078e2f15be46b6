"""Rows that are equal, bit by bit: dense ones one after the other, or those of a CSR matrix with their indices."""

import numpy as np

from mercer._numerics.compile import compiled

# an odd number with many ones, and how far the upper half is brought down
FACTOR, HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@compiled(merged=True)
def _mix(code, bits):
    """The code with some bits more: the product moves them up, the shift brings them down again."""
    code = (code ^ bits) * FACTOR
    return code ^ (code >> HALF)


@compiled()
def row_codes(indptr, indices, bits, targets, codes):
    """A number for each row and its target, the same for equal ones and hardly ever for others."""
    for i in range(codes.shape[0]):
        code = _mix(FACTOR, targets[i])
        for t in range(indptr[i], indptr[i + 1]):
            code = _mix(code, np.uint64(bits[t]))
            if indices.shape[0] > 0:
                code = _mix(code, np.uint64(indices[t]))
        codes[i] = code


@compiled()
def equal_to_last(indptr, indices, bits, targets, codes, order, same):
    """same[k]: whether row order[k] equals row order[k - 1], with its target."""
    same[0] = False
    for k in range(1, order.shape[0]):
        i, j = order[k], order[k - 1]
        size = indptr[i + 1] - indptr[i]
        equal = codes[i] == codes[j] and targets[i] == targets[j] and size == indptr[j + 1] - indptr[j]
        t = 0
        while equal and t < size:
            a, b = indptr[i] + t, indptr[j] + t
            equal = bits[a] == bits[b] and (indices.shape[0] == 0 or indices[a] == indices[b])
            t += 1
        same[k] = equal
