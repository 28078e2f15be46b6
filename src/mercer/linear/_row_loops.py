"""Products with the data matrix, row by row, and the optimality of each sample.

Values are float32 or float64; each is converted when it is read, so that sums are float64 without a copy of the matrix.
"""

import numpy as np

from mercer._compiled.compile import compiled

# positions are unsigned: numba tests signed ones for negative values at each access
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
# rows of at least this many columns are skipped if their beta is 0
LONG = 32


@compiled(fast=True)
def dot(a, b):
    """a'b."""
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@compiled(fast=True, inline=True)
def sparse_row_dot(indices, values, start, stop, w):
    """The product of a sparse row with w; the row has the entries from start to stop (unsigned)."""
    # four independent sums: each addition would otherwise wait for the previous one
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    t = start
    while t + THREE < stop:
        s0 += np.float64(values[t]) * w[indices[t]]
        s1 += np.float64(values[t + ONE]) * w[indices[t + ONE]]
        s2 += np.float64(values[t + TWO]) * w[indices[t + TWO]]
        s3 += np.float64(values[t + THREE]) * w[indices[t + THREE]]
        t += FOUR
    while t < stop:
        s0 += np.float64(values[t]) * w[indices[t]]
        t += ONE
    # in this order, else LLVM packs the sums into vectors one number at a time
    s0 += s2
    s1 += s3
    return s0 + s1


@compiled(fast=True, inline=True)
def sparse_row_add(indices, values, start, stop, step, w):
    """Add step times a sparse row to w; its entries are those from start to stop (unsigned), no column twice."""
    # read four entries of w before writing any: a read after a write waits until both addresses are known
    t = start
    while t + THREE < stop:
        i0, i1, i2, i3 = indices[t], indices[t + ONE], indices[t + TWO], indices[t + THREE]
        w0 = w[i0] + step * np.float64(values[t])
        w1 = w[i1] + step * np.float64(values[t + ONE])
        w2 = w[i2] + step * np.float64(values[t + TWO])
        w3 = w[i3] + step * np.float64(values[t + THREE])
        w[i0], w[i1], w[i2], w[i3] = w0, w1, w2, w3
        t += FOUR
    while t < stop:
        w[indices[t]] += step * np.float64(values[t])
        t += ONE


@compiled(fast=True)
def dense_dot(X, w, out):
    """out = Xw, four rows at a time: the sums of several rows do not wait for each other."""
    n, d = X.shape
    i = 0
    while i + 4 <= n:
        x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        for j in range(d):
            t0 += np.float64(x0[j]) * w[j]
            t1 += np.float64(x1[j]) * w[j]
            t2 += np.float64(x2[j]) * w[j]
            t3 += np.float64(x3[j]) * w[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = t0, t1, t2, t3
        i += 4
    while i < n:
        row, total = X[i], 0.0
        for j in range(d):
            total += np.float64(row[j]) * w[j]
        out[i] = total
        i += 1


@compiled(fast=True)
def dense_tdot(X, beta, out):
    """Add X'beta to out, eight rows at a time, so that out is read and written less often."""
    n, d = X.shape
    # reading a short row is faster than a mispredicted branch
    test = d >= LONG
    i = 0
    while i + 8 <= n:
        rows, b = X[i : i + 8], beta[i : i + 8]
        size = 1.0
        if test:
            size = 0.0
            for k in range(8):
                size += abs(b[k])
        if size != 0.0:
            for j in range(d):
                total = 0.0
                for k in range(8):
                    total += b[k] * np.float64(rows[k, j])
                out[j] += total
        i += 8
    while i < n:
        for j in range(d):
            out[j] += beta[i] * np.float64(X[i, j])
        i += 1


@compiled(fast=True)
def sparse_dot(indptr, indices, data, w, out):
    """out = Xw for CSR rows; indices are unsigned."""
    for i in range(indptr.shape[0] - 1):
        out[i] = sparse_row_dot(indices, data, np.uint64(indptr[i]), np.uint64(indptr[i + 1]), w)


@compiled()
def sparse_tdot(indptr, indices, data, beta, out):
    """Add X'beta to out for CSR rows; indices are unsigned."""
    for i in range(indptr.shape[0] - 1):
        if beta[i] != 0.0:
            sparse_row_add(indices, data, np.uint64(indptr[i]), np.uint64(indptr[i + 1]), beta[i], out)


@compiled()
def repeats(indptr, indices, n_columns):
    """Whether some row contains a column twice."""
    seen = np.full(n_columns, -1, np.int32)
    for i in range(indptr.shape[0] - 1):
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if seen[indices[t]] == i:
                return True
            seen[indices[t]] = i
    return False


@compiled()
def check_optimality(beta, f, linear, l1, ridge, lower, upper, largest):
    """(largest violation, largest distance from the box, sum of beta); NaN is kept. ``largest`` is max |beta|.

    With t = linear - f the loss of a sample is conj(t), the largest value of  t b - l1 |b| - ridge b^2 / 2  over the
    box. If beta has room to move in a direction in which the value increases, its violation is min(rate, ridge * room)
    with a ridge, and rate * min(1, room / width) without one, where width is the longer side of the box.
    """
    worst, outside, total = 0.0, 0.0, 0.0
    for i in range(beta.shape[0]):
        b = beta[i]
        s = linear[i] - f[i] - ridge[i] * b
        grow = s - (l1[i] if b >= 0.0 else -l1[i])
        shrink = -s - (l1[i] if b <= 0.0 else -l1[i])
        rate, room = (grow, upper[i] - b) if grow >= shrink else (shrink, b - lower[i])
        # only up to the kink at 0, where the rate changes sign
        if l1[i] > 0.0 and rate < 2.0 * l1[i] and ((grow >= shrink and b < 0.0) or (grow < shrink and b > 0.0)):
            room = min(room, abs(b))
        if (rate > 0.0 and room > 0.0) or rate != rate:
            width = max(upper[i], -lower[i])
            if ridge[i] > 0.0:
                rate = rate if not rate > ridge[i] * room else ridge[i] * room
            else:
                rate *= min(1.0, room / (width if width < np.inf else max(largest, 1e-300)))
            if not rate <= worst and worst == worst:
                worst = rate
        distance = max(lower[i] - b, b - upper[i])
        if not distance <= outside and outside == outside:
            outside = distance
        total += b
    return worst, outside, total
