"""Problems of pairs of classes, each solved without leaving compiled code."""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.optimality import survey
from mercer._numerics.smo import solve_block
from mercer._numerics.storage import join
from mercer._numerics.tiles import add_rows_product


@compiled()
def _cut(gram, first, second, K):
    """K = the rows and columns of gram in the two ranges (start, stop)."""
    n_first = first[1] - first[0]
    for i in range(K.shape[0]):
        row = gram[first[0] + i] if i < n_first else gram[second[0] + i - n_first]
        left, right = row[first[0] : first[1]], row[second[0] : second[1]]
        line, rest = K[i, :n_first], K[i, n_first:]
        for j in range(left.shape[0]):
            line[j] = left[j]
        for j in range(right.shape[0]):
            rest[j] = right[j]


@compiled()
def solve_pairs(
    gram, starts, pairs, offsets, linear, l1, ridge, lower, upper, tol, max_steps, beta, F, steps, groups, totals
):  # fmt: skip
    """Solve the problem of each pair from beta = 0; its variables are those from offsets[k] to offsets[k + 1].

    The samples of class c are those from starts[c] to starts[c + 1] in gram. Fills beta, F, steps (-1 for a problem
    without a bound), and what `survey` finds in groups and totals.
    """
    largest = 0
    for k in range(pairs.shape[0]):
        largest = max(largest, offsets[k + 1] - offsets[k])
    memory = np.empty(largest * largest, gram.dtype)
    group = np.zeros(largest, np.int8)
    for k in range(pairs.shape[0]):
        start, stop = offsets[k], offsets[k + 1]
        n = stop - start
        K = memory[: n * n].reshape((n, n))
        i, j = pairs[k, 0], pairs[k, 1]
        _cut(gram, (starts[i], starts[i + 1]), (starts[j], starts[j + 1]), K)
        b, f, score = beta[start:stop], F[start:stop], linear[start:stop].copy()
        b[:] = 0.0
        f[:] = 0.0
        columns = linear[start:stop], l1[start:stop], ridge[start:stop], lower[start:stop], upper[start:stop]
        taken, _, unbounded = solve_block(
            K, b, score, columns[3], columns[4], columns[1], columns[2], n, tol, max_steps
        )
        steps[k] = -1 if unbounded else taken
        support = np.nonzero(b)[0]
        add_rows_product(K, support, b[support], 0, n, f)
        survey(
            b, f, columns[0], columns[1], columns[2], columns[3], columns[4], group[:n], groups[k : k + 1], totals[k]
        )


@compiled()
def solve_joined(
    first, second, between, K, linear, l1, ridge, lower, upper, tol, max_steps, beta, F, groups, totals
):  # fmt: skip
    """Solve the problem of two classes from beta = 0; the steps taken, -1 for a problem without a bound.

    ``first`` and ``second`` are the matrices of the classes, ``between`` what lies between them: K becomes the matrix
    of both. Fills beta, F = K beta, and what `survey` finds in groups and totals.
    """
    n = beta.shape[0]
    join(first, second, between, K)
    score, group = np.empty(n, K.dtype), np.zeros(n, np.int8)
    for v in range(n):
        beta[v], F[v], score[v] = 0.0, 0.0, linear[v]
    steps, _, unbounded = solve_block(K, beta, score, lower, upper, l1, ridge, n, tol, max_steps)
    support = np.nonzero(beta)[0]
    add_rows_product(K, support, beta[support], 0, n, F)
    survey(beta, F, linear, l1, ridge, lower, upper, group, groups, totals)
    return np.int64(-1) if unbounded else steps
