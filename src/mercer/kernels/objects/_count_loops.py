"""Products of sparse vectors of counts, by an inverted index: for each feature, the list of samples that have it."""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.tiles import MIN

# columns of out that are computed together: the sums of a row stay in the L1 or L2 cache
COLUMNS = 4096


@compiled()
def add_matches(term, a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, d, clear, out):
    """out[i, j] += sum_f term(a_if, b_jf) over the CSR rows of a and b, where term(a, 0) = term(0, b) = 0.

    ``clear`` sets out to 0 first. For a block of rows of b, an inverted index lists the rows that have feature f. Each
    non-zero of a then visits only its matches, in the order of the columns of out.
    """
    m, n = out.shape
    begins = np.zeros(d + 2, np.int32)
    for left in range(0, n, COLUMNS):
        width = min(COLUMNS, n - left)
        first, last = b_indptr[left], b_indptr[left + width]
        # counting sort of the non-zeros by feature
        begins[:] = 0
        for t in range(first, last):
            begins[b_indices[t] + 1] += 1
        total = 0
        for f in range(1, d + 2):
            total += begins[f]
            begins[f] = total
        places = np.empty(last - first, np.int32)
        values = np.empty(last - first, out.dtype)
        for j in range(width - 1, -1, -1):
            for t in range(b_indptr[left + j], b_indptr[left + j + 1]):
                f = b_indices[t]
                # the list of f is filled from its end; at last begins[f + 1] is where it begins
                place = begins[f + 1] - 1
                begins[f + 1] = place
                places[place] = j
                values[place] = b_data[t]
        for i in range(m):
            sums = out[i, left : left + width]
            if clear:
                sums[:] = 0
            for t in range(a_indptr[i], a_indptr[i + 1]):
                f = a_indices[t]
                # unsigned indices: no code for negative ones, which numba would wrap around
                begin, end = np.uint64(begins[f + 1]), np.uint64(begins[f + 2])
                value = a_data[t]
                if term == MIN:
                    for p in range(begin, end):
                        sums[np.uint32(places[p])] += min(value, values[p])
                else:
                    for p in range(begin, end):
                        sums[np.uint32(places[p])] += value * values[p]
