"""Products of sparse vectors of counts: what two samples have in common is found through lists of who has what."""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.tiles import MIN

# rows of a, and columns of out, that are summed together: their sums stay in the second cache
ROWS = 1024
COLUMNS = 8


@compiled()
def matches_block(term, a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, d, out):
    """out[i, j] = sum_f term(a_if, b_jf) over the CSR rows of a and b, where term(a, 0) = term(0, b) = 0.

    For some rows of a, the list of those that have feature f; each non-zero of b then meets only its matches.
    """
    m, n = out.shape
    begins = np.zeros(d + 2, np.int32)
    tile = np.zeros((COLUMNS, min(m, ROWS)), out.dtype)
    for top in range(0, m, ROWS):
        height = min(ROWS, m - top)
        first, last = a_indptr[top], a_indptr[top + height]
        # counting sort of the non-zeros by feature
        begins[:] = 0
        for t in range(first, last):
            begins[a_indices[t] + 1] += 1
        total = 0
        for f in range(1, d + 2):
            total += begins[f]
            begins[f] = total
        rows = np.empty(last - first, np.int32)
        values = np.empty(last - first, out.dtype)
        for i in range(height - 1, -1, -1):
            for t in range(a_indptr[top + i], a_indptr[top + i + 1]):
                f = a_indices[t]
                # filled from its end: begins[f + 1] becomes the place where the list of f begins
                place = begins[f + 1] - 1
                begins[f + 1] = place
                rows[place] = i
                values[place] = a_data[t]
        for left in range(0, n, COLUMNS):
            width = min(COLUMNS, n - left)
            for c in range(width):
                sums = tile[c]
                for t in range(b_indptr[left + c], b_indptr[left + c + 1]):
                    f = b_indices[t]
                    # without a sign there is nothing to be added to negative places
                    begin, end = np.uint64(begins[f + 1]), np.uint64(begins[f + 2])
                    value = b_data[t]
                    if term == MIN:
                        for p in range(begin, end):
                            sums[np.uint32(rows[p])] += min(value, values[p])
                    else:
                        for p in range(begin, end):
                            sums[np.uint32(rows[p])] += value * values[p]
            for i in range(height):
                for c in range(width):
                    out[top + i, left + c] = tile[c, i]
            for c in range(width):
                for i in range(height):
                    tile[c, i] = 0
