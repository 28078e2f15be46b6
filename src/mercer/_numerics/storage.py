"""Moving stored rows within one buffer when the set of columns changes."""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.micro import VECTOR_BYTES, transpose_tile


@compiled()
def compact(buffer, n_old, slots, columns):
    """Row t becomes the entries ``columns`` of row slots[t]; both increase, so nothing is overwritten too early."""
    n_new = columns.shape[0]
    for t in range(slots.shape[0]):
        source, target = slots[t] * n_old, t * n_new
        for k in range(n_new):
            buffer[target + k] = buffer[source + columns[k]]


@compiled()
def spread(buffer, n_old, n_rows, columns, n_new):
    """Entry k of each row moves to position columns[k] of a longer row; from the end, for the same reason."""
    place = columns.astype(np.uint64)  # unsigned numbers spare the test for a negative index
    for t in range(n_rows - 1, -1, -1):
        source, target = buffer[t * n_old : (t + 1) * n_old], buffer[t * n_new : (t + 1) * n_new]
        for k in range(n_old - 1, -1, -1):
            target[place[k]] = source[k]


@compiled()
def fill(buffer, n_columns, columns, values):
    """buffer row t gets values[t] at these columns."""
    for t in range(values.shape[0]):
        for k in range(columns.shape[0]):
            buffer[t * n_columns + columns[k]] = values[t, k]


@compiled()
def take_rows(indptr, indices, data, rows):
    """(indptr, indices, data) of some rows of a CSR matrix."""
    new_indptr = np.zeros(rows.shape[0] + 1, indptr.dtype)
    for r in range(rows.shape[0]):
        new_indptr[r + 1] = new_indptr[r] + indptr[rows[r] + 1] - indptr[rows[r]]
    new_indices = np.empty(new_indptr[-1], indices.dtype)
    new_data = np.empty(new_indptr[-1], data.dtype)
    for r in range(rows.shape[0]):
        start, target = indptr[rows[r]], new_indptr[r]
        for t in range(new_indptr[r + 1] - target):
            new_indices[target + t] = indices[start + t]
            new_data[target + t] = data[start + t]
    return new_indptr, new_indices, new_data


@compiled()
def _place(source, target, top, left):
    """target[top:, left:] begins with source."""
    for i in range(source.shape[0]):
        line, place = source[i], target[top + i, left : left + source.shape[1]]
        for j in range(line.shape[0]):
            place[j] = line[j]


@compiled()
def place_rows(rows, K, top, mirrored):
    """Write rows of the upper triangle, from the diagonal on, to K[top:, top:], and their image below if wanted."""
    _place(rows, K, top, top)
    if not mirrored:
        return
    height, width = rows.shape
    square = VECTOR_BYTES // rows.itemsize
    bottom, right = height // square * square, (width - height) // square * square + height
    for j in range(height, right, square):
        for i in range(0, bottom, square):
            transpose_tile(rows, i, j, K, top + j, top + i)
    for j in range(height, width):
        line = K[top + j]
        for i in range(bottom if j < right else 0, height):
            line[top + i] = rows[i, j]


@compiled()
def join(first, second, between, K):
    """K = [[first, between], [between', second]], the transpose in register tiles, strips of them in cache."""
    n_i, n_j = between.shape
    zero = np.int64(0)  # a literal would compile it twice
    _place(first, K, zero, zero)
    _place(between, K, zero, n_i)
    _place(second, K, n_i, n_i)
    square = VECTOR_BYTES // between.itemsize
    bottom, right = n_i // square * square, n_j // square * square
    strip = 64
    for left in range(0, right, strip):
        for top in range(0, bottom, square):
            for j in range(left, min(left + strip, right), square):
                transpose_tile(between, top, j, K, n_i + j, top)
    for j in range(n_j):
        line = K[n_i + j]
        for i in range(bottom if j < right else 0, n_i):
            line[i] = between[i, j]
