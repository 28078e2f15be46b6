"""Moving stored rows within one buffer when the set of columns changes."""

from mercer._numerics.compile import compiled


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
    for t in range(n_rows - 1, -1, -1):
        source, target = t * n_old, t * n_new
        for k in range(n_old - 1, -1, -1):
            buffer[target + columns[k]] = buffer[source + k]


@compiled()
def fill(buffer, n_columns, columns, values):
    """buffer row t gets values[t] at these columns."""
    for t in range(values.shape[0]):
        for k in range(columns.shape[0]):
            buffer[t * n_columns + columns[k]] = values[t, k]
