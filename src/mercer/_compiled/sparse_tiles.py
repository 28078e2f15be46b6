"""Blocks of kernel values of CSR samples, and their products with coefficients, tile by tile.

CSR samples are compared with a few rows that are expanded to a dense matrix of features x rows, so that one nonzero
entry meets all rows in one vector. The sums of a tile stay in cache until phi has been applied.
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.intrinsics import larger
from mercer._compiled.kernel_maps import apply_map
from mercer._compiled.register_tiles import (
    SPARSE_ROWS_BYTES,
    VECTOR_BYTES,
    sparse_tile_chi2,
    sparse_tile_dot,
    sparse_tile_l1,
    sparse_tile_min,
    transpose_tile,
)
from mercer._compiled.tiles import CHI2, DOT, L1, MIN

LINES_AT_ONCE = 16


@compiled()
def _expand(indptr, indices, data, rows, expanded):
    """Expand CSR rows into a zero matrix of features x rows."""
    for r in range(rows.shape[0]):
        for t in range(indptr[rows[r]], indptr[rows[r] + 1]):
            expanded[indices[t], r] += data[t]


@compiled()
def _clear(indptr, indices, rows, expanded):
    """Set the entries that `_expand` has written to zero again."""
    for r in range(rows.shape[0]):
        for t in range(indptr[rows[r]], indptr[rows[r] + 1]):
            expanded[indices[t], r] = 0


@compiled()
def _sparse_sums(term, indptr, indices, data, first, last, expanded, sums):
    """sums[j] = sums over features of CSR sample first + j with all expanded rows."""
    for j in range(first, last):
        begin, end = indptr[j], indptr[j + 1]
        if term == DOT:
            sparse_tile_dot(indices, data, begin, end, expanded, sums, j - first)
        elif term == L1:
            sparse_tile_l1(indices, data, begin, end, expanded, sums, j - first)
        elif term == MIN:
            sparse_tile_min(indices, data, begin, end, expanded, sums, j - first)
        else:
            sparse_tile_chi2(indices, data, begin, end, expanded, sums, j - first)


@compiled()
def sparse_block(
    term, phi, params, a_indptr, a_indices, a_data, a_norms, a_totals, a_rows,
    b_indptr, b_indices, b_data, b_norms, d, out,
):  # fmt: skip
    """out[:, :] = K of the CSR rows a_rows of a against the CSR samples of b.

    Some rows of a at a time are expanded to a dense matrix of features x rows. Features where b is zero contribute
    term(a, 0), whose total over all features is in a_totals.
    """
    width = SPARSE_ROWS_BYTES // a_data.itemsize
    square = VECTOR_BYTES // a_data.itemsize
    m, n = a_rows.shape[0], b_indptr.shape[0] - 1
    step = 2048 // a_data.itemsize
    expanded = np.zeros((d, width), a_data.dtype)
    sums = np.zeros((step, width), a_data.dtype)
    lines = np.empty((width, step), a_data.dtype)
    for top in range(0, m, width):
        rows = a_rows[top : top + width]
        height = rows.shape[0]
        _expand(a_indptr, a_indices, a_data, rows, expanded)
        for first in range(0, n, step):
            last = min(first + step, n)
            _sparse_sums(term, b_indptr, b_indices, b_data, first, last, expanded, sums)
            count = last - first
            for j in range(0, count, square):
                for r in range(0, width, square):
                    transpose_tile(sums, j, r, lines, r, j)
            for r in range(height):
                row = a_rows[top + r]
                line = lines[r, :count]
                if term == L1 or term == CHI2:
                    for j in range(count):  # a distance that rounding made negative is zero
                        line[j] = larger(line[j] + a_totals[row], a_data.dtype.type(0.0))
                apply_map(phi, params, line, a_norms[row], b_norms[first:last])
                here = out[top + r, first:last]
                for j in range(count):
                    here[j] = line[j]
        _clear(a_indptr, a_indices, rows, expanded)


@compiled(fast=True)
def _finish_sums(sums, count, distances, totals, norms, b_norms, first):
    """Turn sums over features into distances, with the norms of both samples or with the totals of the rows."""
    zero, two = sums.dtype.type(0.0), sums.dtype.type(2.0)
    for j in range(count):
        line, norm = sums[j], b_norms[first + j]
        for r in range(line.shape[0]):
            value = norm + norms[r] - two * line[r] if distances else line[r] + totals[r]
            line[r] = zero if value < zero else value  # a distance that rounding made negative; NaN stays


@compiled(fast=True)
def _add_lines(lines, weights, part, out):
    """out += sum_j weights[j] lines[j]; the lines are stored one after the other, each as long as out.

    LINES_AT_ONCE of them are summed in their own dtype, which is not exact enough for many. ``part`` is scratch space.
    """
    width = out.shape[0]
    for first in range(0, weights.shape[0], LINES_AT_ONCE):
        some = weights[first : first + LINES_AT_ONCE]
        for r in range(part.shape[0]):
            part[r] = 0.0
        for j in range(some.shape[0]):
            w, line = some[j], lines[(first + j) * width : (first + j + 1) * width]
            for r in range(part.shape[0]):
                part[r] += w * line[r]
        for r in range(part.shape[0]):
            out[r] += part[r]


@compiled()
def add_sparse_product(
    term, phi, params, a_indptr, a_indices, a_data, a_norms, a_totals, a_rows,
    b_indptr, b_indices, b_data, b_norms, weights, d, out,
):  # fmt: skip
    """out[i] += sum_j K[a_rows[i], j] weights[j], without the transposition of `sparse_block`.

    The values of a sample of b with all expanded rows are one line, which is multiplied by its weight and added.
    """
    width, run = SPARSE_ROWS_BYTES // a_data.itemsize, 128
    m, n = a_rows.shape[0], b_indptr.shape[0] - 1
    expanded, sums = np.zeros((d, width), a_data.dtype), np.zeros((run, width), a_data.dtype)
    values = sums.reshape(run * width)
    norms, totals = np.zeros(width, a_data.dtype), np.zeros(width, a_data.dtype)
    part, nothing = np.empty(width, a_data.dtype), np.empty(0, a_data.dtype)
    added, zero = np.empty(width), a_data.dtype.type(0.0)
    # distances are computed before the map, which would do it row by row
    plain = params.copy()
    plain[0] = zero
    for top in range(0, m, width):
        rows = a_rows[top : top + width]
        for r in range(rows.shape[0]):
            norms[r], totals[r] = a_norms[rows[r]], a_totals[rows[r]]
        _expand(a_indptr, a_indices, a_data, rows, expanded)
        for r in range(width):
            added[r] = 0.0
        for first in range(0, n, run):
            last = min(first + run, n)
            _sparse_sums(term, b_indptr, b_indices, b_data, first, last, expanded, sums)
            distances = params[0] != zero
            if distances or term == L1 or term == CHI2:
                _finish_sums(sums, last - first, distances, totals, norms, b_norms, first)
            size = (last - first) * width
            apply_map(phi, plain, values[:size], zero, nothing)
            _add_lines(values, weights[first:last], part, added)
        for r in range(rows.shape[0]):
            out[top + r] += added[r]
        _clear(a_indptr, a_indices, rows, expanded)


@compiled()
def squared_norms(indptr, data, out):
    """out[i] = |x_i|^2 of the CSR rows, summed in float64."""
    for i in range(out.shape[0]):
        total = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            total += float(data[t]) * float(data[t])
        out[i] = total


@compiled()
def absolute_sums(indptr, data, out):
    """out[i] = sum_k |x_ik| of the CSR rows."""
    for i in range(out.shape[0]):
        total = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            total += abs(float(data[t]))
        out[i] = total
