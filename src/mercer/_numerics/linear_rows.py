"""Products with a data matrix that is read row by row: float32 or float64 in, float64 sums out.

The values are widened one by one, so that no float64 copy of the matrix is needed.
"""

import numpy as np

from mercer._numerics.compile import compiled

# positions are unsigned: signed ones would be tested for negative values at each term
ONE, TWO = np.uint64(1), np.uint64(2)
# rows of at least so many columns are left out where their beta is 0
LONG = 32


@compiled(fast=True)
def dense_dot(X, w, out):
    """out = Xw."""
    d = X.shape[1]
    for i in range(X.shape[0]):
        row = X[i]
        total = 0.0
        for j in range(d):
            total += np.float64(row[j]) * w[j]
        out[i] = total


@compiled(fast=True)
def dense_tdot(X, beta, out):
    """Add X'beta to out: eight rows at a time, so that out is read and written less often."""
    n, d = X.shape
    # rows of few columns are read faster than a test predicts whether they are needed
    test = d >= LONG
    i = 0
    while i + 8 <= n:
        b0, b1, b2, b3 = beta[i], beta[i + 1], beta[i + 2], beta[i + 3]
        b4, b5, b6, b7 = beta[i + 4], beta[i + 5], beta[i + 6], beta[i + 7]
        if not test or abs(b0) + abs(b1) + abs(b2) + abs(b3) + abs(b4) + abs(b5) + abs(b6) + abs(b7) != 0.0:
            x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
            x4, x5, x6, x7 = X[i + 4], X[i + 5], X[i + 6], X[i + 7]
            for j in range(d):
                out[j] += (
                    (b0 * np.float64(x0[j]) + b1 * np.float64(x1[j]))
                    + (b2 * np.float64(x2[j]) + b3 * np.float64(x3[j]))
                    + (b4 * np.float64(x4[j]) + b5 * np.float64(x5[j]))
                    + (b6 * np.float64(x6[j]) + b7 * np.float64(x7[j]))
                )
        i += 8
    while i < n:
        b0, x0 = beta[i], X[i]
        for j in range(d):
            out[j] += b0 * np.float64(x0[j])
        i += 1


@compiled(fast=True)
def sparse_dot(indptr, indices, data, w, out):
    """out = Xw for the rows that indptr describes; indices are unsigned."""
    for i in range(indptr.shape[0] - 1):
        t, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        # two sums: a single one would wait for itself at each term
        even, odd = 0.0, 0.0
        while t + ONE < stop:
            even += np.float64(data[t]) * w[indices[t]]
            odd += np.float64(data[t + ONE]) * w[indices[t + ONE]]
            t += TWO
        if t < stop:
            even += np.float64(data[t]) * w[indices[t]]
        out[i] = even + odd


@compiled()
def sparse_tdot(indptr, indices, data, beta, out):
    """Add X'beta to out; indices are unsigned."""
    for i in range(indptr.shape[0] - 1):
        b = beta[i]
        if b != 0.0:
            for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                out[indices[t]] += b * np.float64(data[t])


@compiled()
def repeats(indptr, indices, n_columns):
    """Whether some row names a column twice."""
    seen = np.full(n_columns, -1, np.int32)
    for i in range(indptr.shape[0] - 1):
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if seen[indices[t]] == i:
                return True
            seen[indices[t]] = i
    return False
