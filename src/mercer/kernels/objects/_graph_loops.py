"""Compiled loops over graphs: numbering distinct rows, shortest paths, walks in two graphs at once.

Several graphs are stacked: graph g has the nodes start[g] : start[g + 1], and the neighbours of node v are
indices[indptr[v] : indptr[v + 1]].
"""

import numpy as np

from mercer._compiled.compile import compiled

# multiplier of the hash: 2^64 divided by the golden ratio, as a signed number; odd, its bits spread evenly
SPREAD = -7046029254386353131
# relative error at which the series over all walks is cut off
SERIES_TOLERANCE = 1e-16
# power iterations for a bound on the norm of a matrix
NORM_STEPS = 30


# ---- rows of numbers -------------------------------------------------------------------------------------------------


@compiled()
def sort_rows(indptr, values):
    """Sort values[indptr[r] : indptr[r + 1]] for each r, in place, by Shellsort, which needs no extra memory."""
    for r in range(indptr.shape[0] - 1):
        row = values[indptr[r] : indptr[r + 1]]
        n = row.shape[0]
        gap = 1
        while gap < n // 3:
            gap = 3 * gap + 1
        while gap > 0:
            for i in range(gap, n):
                value = row[i]
                j = i
                while j >= gap and row[j - gap] > value:
                    row[j] = row[j - gap]
                    j -= gap
                row[j] = value
            gap //= 3


@compiled()
def _hash(head, row):
    h = head * SPREAD
    h ^= h >> 32
    for t in range(row.shape[0]):
        h = (h ^ row[t]) * SPREAD
        h ^= h >> 32
    return h


@compiled()
def _equal(row, other):
    if row.shape[0] != other.shape[0]:
        return False
    for t in range(row.shape[0]):
        if row[t] != other[t]:
            return False
    return True


@compiled()
def _table_size(n):
    size = 16
    while size < 2 * n:
        size *= 2
    return size


@compiled()
def number_rows(head, indptr, values):
    """(codes, first): number the distinct rows (head[r], values[indptr[r] : indptr[r + 1]]) in order of appearance.

    ``first`` is the first row of each code. Rows are found in a hash table and compared in full.
    """
    n = head.shape[0]
    size = _table_size(n)
    table = np.full(size, -1, np.int64)  # codes
    codes = np.empty(n, np.int64)
    first = np.empty(n, np.int64)
    found = 0
    for r in range(n):
        row = values[indptr[r] : indptr[r + 1]]
        slot = _hash(head[r], row) & (size - 1)
        while True:
            code = table[slot]
            if code < 0:
                table[slot] = found
                first[found] = r
                codes[r] = found
                found += 1
                break
            other = first[code]
            if head[other] == head[r] and _equal(row, values[indptr[other] : indptr[other + 1]]):
                codes[r] = code
                break
            slot = (slot + 1) & (size - 1)
    return codes, first[:found].copy()


@compiled()
def find_rows(head, indptr, values, their_head, their_indptr, their_values):
    """For each row, the number of the equal row among the other ones, which are distinct; -1 if there is none.

    A row with a negative head equals none.
    """
    n = their_head.shape[0]
    size = _table_size(n)
    table = np.full(size, -1, np.int64)
    for r in range(n):
        slot = _hash(their_head[r], their_values[their_indptr[r] : their_indptr[r + 1]]) & (size - 1)
        while table[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = r
    places = np.full(head.shape[0], -1, np.int64)
    for r in range(head.shape[0]):
        if head[r] < 0:
            continue
        row = values[indptr[r] : indptr[r + 1]]
        slot = _hash(head[r], row) & (size - 1)
        while table[slot] >= 0:
            other = table[slot]
            their_row = their_values[their_indptr[other] : their_indptr[other + 1]]
            if their_head[other] == head[r] and _equal(row, their_row):
                places[r] = other
                break
            slot = (slot + 1) & (size - 1)
    return places


# ---- distances -------------------------------------------------------------------------------------------------------


@compiled()
def _add_to_table(keys, counts, key, amount):
    """Add an amount to the count of a key >= 0. Edits keys and counts; returns whether the key is new."""
    size = keys.shape[0]
    h = key * SPREAD
    h ^= h >> 32
    slot = h & (size - 1)
    while keys[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & (size - 1)
    new = keys[slot] < 0
    keys[slot] = key
    counts[slot] += amount
    return new


@compiled()
def path_counts(start, indptr, indices, labels, n_labels, longest):
    """(indptr, keys, counts): for each graph, how many pairs u != v have the labels l and m and the distance d >= 1.

    The key is (l * n_labels + m) * longest + d. Distances are numbers of edges, by breadth-first search from each node.
    """
    n_graphs = start.shape[0] - 1
    rows = np.zeros(n_graphs + 1, np.int64)
    found_keys = np.empty(1024, np.int64)
    found_counts = np.empty(1024, np.float64)
    total = 0
    keys = np.full(64, -1, np.int64)
    counts = np.zeros(64, np.float64)
    n_nodes = start[n_graphs]
    distance = np.full(n_nodes, -1, np.int64)
    queue = np.empty(n_nodes, np.int64)
    for g in range(n_graphs):
        used = 0
        for source in range(start[g], start[g + 1]):
            queue[0] = source
            distance[source] = 0
            head, tail = 0, 1
            while head < tail:
                u = queue[head]
                head += 1
                for t in range(indptr[u], indptr[u + 1]):
                    v = indices[t]
                    if distance[v] < 0:
                        distance[v] = distance[u] + 1
                        queue[tail] = v
                        tail += 1
            for k in range(1, tail):
                v = queue[k]
                key = (labels[source] * n_labels + labels[v]) * longest + distance[v]
                if _add_to_table(keys, counts, key, 1.0):
                    used += 1
                    if 2 * used > keys.shape[0]:
                        old_keys, old_counts = keys, counts
                        keys = np.full(2 * old_keys.shape[0], -1, np.int64)
                        counts = np.zeros(2 * old_keys.shape[0], np.float64)
                        for s in range(old_keys.shape[0]):
                            if old_keys[s] >= 0:
                                _add_to_table(keys, counts, old_keys[s], old_counts[s])
            for k in range(tail):
                distance[queue[k]] = -1
        while total + used > found_keys.shape[0]:
            found_keys = np.concatenate((found_keys, np.empty_like(found_keys)))
            found_counts = np.concatenate((found_counts, np.empty_like(found_counts)))
        for s in range(keys.shape[0]):
            if keys[s] >= 0:
                found_keys[total] = keys[s]
                found_counts[total] = counts[s]
                total += 1
                keys[s] = -1
                counts[s] = 0.0
        rows[g + 1] = total
    return rows, found_keys[:total].copy(), found_counts[:total].copy()


# ---- walks -----------------------------------------------------------------------------------------------------------


@compiled()
def norm_bounds(start, indptr, indices, weights, out):
    """out[g] = a close upper bound on the largest singular value of the matrix |A| of graph g.

    For any x > 0, the largest eigenvalue of a matrix M >= 0 is at most max_i (Mx)_i / x_i (Collatz and Wielandt). Here
    M = |A|'|A| + shift, and x comes from the power method.
    """
    for g in range(start.shape[0] - 1):
        first, last = start[g], start[g + 1]
        n = last - first
        largest = 0.0
        for v in range(first, last):
            total = 0.0
            for t in range(indptr[v], indptr[v + 1]):
                total += abs(weights[t])
            largest = max(largest, total)
        if largest == 0.0:
            out[g] = 0.0
            continue
        shift = 1e-3 * largest * largest
        x = np.ones(n)
        y = np.empty(n)
        z = np.empty(n)
        best = np.inf
        for _ in range(NORM_STEPS):
            for v in range(n):
                total = 0.0
                for t in range(indptr[first + v], indptr[first + v + 1]):
                    total += abs(weights[t]) * x[indices[t] - first]
                y[v] = total
            for v in range(n):
                z[v] = shift * x[v]
            for v in range(n):
                for t in range(indptr[first + v], indptr[first + v + 1]):
                    z[indices[t] - first] += abs(weights[t]) * y[v]
            ratio, size = 0.0, 0.0
            for v in range(n):
                ratio = max(ratio, z[v] / x[v])
                size = max(size, z[v])
            best = min(best, ratio - shift)
            for v in range(n):
                x[v] = z[v] / size
        out[g] = np.sqrt(max(best, 0.0)) * (1.0 + 1e-12)


@compiled()
def _step(T, a_first, a_indptr, a_indices, a_codes, a_weights, b_first, b_indptr, b_indices, b_codes, b_weights,
          n_codes, decay, match, Z, out):  # fmt: skip
    """out = decay * (sum over edge codes c of A_c T B_c') where ``match`` is true, else 0."""
    n, m = T.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = 0.0
    for c in range(n_codes):
        for i in range(n):
            line = Z[i]
            for j in range(m):
                line[j] = 0.0
            for t in range(a_indptr[a_first + i], a_indptr[a_first + i + 1]):
                if a_codes[t] == c:
                    weight = decay * a_weights[t]
                    source = T[a_indices[t] - a_first]
                    for j in range(m):
                        line[j] += weight * source[j]
        for i in range(n):
            line = Z[i]
            for j in range(m):
                if match[i, j]:
                    total = 0.0
                    for s in range(b_indptr[b_first + j], b_indptr[b_first + j + 1]):
                        if b_codes[s] == c:
                            total += b_weights[s] * line[b_indices[s] - b_first]
                    out[i, j] += total


@compiled()
def walk_block(
    a_graphs, a_start, a_indptr, a_indices, a_codes, a_weights, a_labels, a_norms,
    b_graphs, b_start, b_indptr, b_indices, b_codes, b_weights, b_labels, b_norms,
    n_codes, decay, length, out,
):  # fmt: skip
    """out[i, j] = sum over l of decay^l times the weight of all pairs of walks of l steps with the same labels.

    Up to ``length`` steps. For a negative length, until the rest of the series is below rounding:
    |rest| <= |T| q / (1 - q) with q = decay |A| |B| < 1.
    """
    for i in range(a_graphs.shape[0]):
        g = a_graphs[i]
        a_first, n = a_start[g], a_start[g + 1] - a_start[g]
        for j in range(b_graphs.shape[0]):
            h = b_graphs[j]
            b_first, m = b_start[h], b_start[h + 1] - b_start[h]
            match = np.zeros((n, m), np.bool_)
            T = np.zeros((n, m))
            total = 0.0
            for u in range(n):
                for v in range(m):
                    if a_labels[a_first + u] == b_labels[b_first + v]:
                        match[u, v] = True
                        T[u, v] = 1.0
                        total += 1.0
            Z = np.empty((n, m))
            new = np.empty((n, m))
            q = decay * a_norms[g] * b_norms[h]
            step = 0
            while step != length and total != 0.0:
                _step(T, a_first, a_indptr, a_indices, a_codes, a_weights,
                      b_first, b_indptr, b_indices, b_codes, b_weights, n_codes, decay, match, Z, new)  # fmt: skip
                T, new = new, T
                added, square = 0.0, 0.0
                for u in range(n):
                    for v in range(m):
                        added += T[u, v]
                        square += T[u, v] * T[u, v]
                total += added
                step += 1
                if square == 0.0:
                    break
                if length < 0 and np.sqrt(square * n * m) * q <= SERIES_TOLERANCE * abs(total) * (1.0 - q):
                    break
                if length < 0 and step > 100000:
                    break
            out[i, j] = total
