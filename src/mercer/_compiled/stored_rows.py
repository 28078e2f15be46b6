"""Rows of a Gram matrix in one buffer: look them up, move them when the columns change, read them into blocks."""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.register_tiles import VECTOR_BYTES, transpose_tile


@compiled()
def find_rows(slot_of, last_used, clock, samples, slots, missing):
    """Fill slots[t] = slot_of[samples[t]], -1 if the row is not stored; the number of samples whose row is missing.

    ``missing`` begins with these samples, each once. Sets last_used of the rows found to ``clock``.
    """
    count, listed = 0, -2
    for t in range(samples.shape[0]):
        slot = slot_of[samples[t]]
        slots[t] = max(slot, -1)
        if slot >= 0:
            last_used[slot] = clock
        elif slot != listed:
            slot_of[samples[t]] = listed
            missing[count] = samples[t]
            count += 1
    for t in range(count):
        slot_of[missing[t]] = -1
    return count


@compiled()
def compact(buffer, n_old, slots, columns):
    """Row t becomes the entries ``columns`` of row slots[t].

    Slots and columns increase, so no entry is overwritten before it is read.
    """
    n_new = columns.shape[0]
    for t in range(slots.shape[0]):
        source, target = slots[t] * n_old, t * n_new
        for k in range(n_new):
            buffer[target + k] = buffer[source + columns[k]]


@compiled()
def spread(buffer, n_old, n_rows, columns, n_new):
    """Move entry k of each row to position columns[k] of a longer row, from the end, so that none is overwritten."""
    place = columns.astype(np.uint64)  # unsigned: no test for a negative index
    for t in range(n_rows - 1, -1, -1):
        source, target = buffer[t * n_old : (t + 1) * n_old], buffer[t * n_new : (t + 1) * n_new]
        for k in range(n_old - 1, -1, -1):
            target[place[k]] = source[k]


@compiled()
def fill(buffer, n_columns, columns, values):
    """Write values[t] to these columns of row t."""
    for t in range(values.shape[0]):
        for k in range(columns.shape[0]):
            buffer[t * n_columns + columns[k]] = values[t, k]


@compiled()
def take_rows(indptr, indices, data, rows):
    """The CSR arrays (indptr, indices, data) of some rows of a CSR matrix."""
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
    """Copy source to target[top:, left:]."""
    for i in range(source.shape[0]):
        line, place = source[i], target[top + i, left : left + source.shape[1]]
        for j in range(line.shape[0]):
            place[j] = line[j]


@compiled()
def _place_transposed(source, first, target, top, left):
    """Copy the transpose of source[:, first:] to target[top:, left:], by register tiles in strips that stay in L1."""
    height, width = source.shape
    square, strip = VECTOR_BYTES // source.itemsize, 64
    bottom, right = height // square * square, (width - first) // square * square + first
    for start in range(first, right, strip):
        for i in range(0, bottom, square):
            for j in range(start, min(start + strip, right), square):
                transpose_tile(source, i, j, target, top + j - first, left + i)
    for j in range(first, width):
        line = target[top + j - first]
        for i in range(bottom if j < right else 0, height):
            line[left + i] = source[i, j]


@compiled()
def join(first, second, between, K):
    """K = [[first, between], [between', second]]."""
    n_i, zero = np.int64(between.shape[0]), np.int64(0)  # a literal would compile the callee twice
    _place(first, K, zero, zero)
    _place(between, K, zero, n_i)
    _place(second, K, n_i, n_i)
    _place_transposed(between, zero, K, n_i, zero)


@compiled()
def read_rows(values, rows, order, column, new_places, start, stop, block):
    """Write the rows of new members, at the places new_places[start:stop], into a block.

    block[a, order[t]] = values[rows[a], column[t]]. The null sample has row -1; its row is overwritten with zeros
    later.
    """
    m = rows.shape[0]
    for k in range(start, stop):
        here, row = block[new_places[k]], values[max(0, rows[new_places[k]])]
        for t in range(m):  # unsigned: no test for a negative index
            here[np.uint64(order[t])] = row[np.uint64(column[t])]
