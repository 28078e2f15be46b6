"""The two-class problems of many small pairs of classes in one compiled call, on parts of one Gram matrix."""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.program import Program
from mercer._compiled.tiles import add_rows_product
from mercer.problems._optimality_loops import optimality_sums
from mercer.svm._block_newton_loops import NEEDS_NEWTON
from mercer.svm._smo_loops import solve_members


@compiled()
def _copy_pair(gram, first, second, K):
    """Copy the rows and columns of two ranges (start, stop) of gram to K."""
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
    gram, starts, pairs, offsets, memory, linear, l1, ridge, lower, upper, group, tol, max_steps, newton, beta, F,
    samples, support, weights, reals, steps, groups, totals,
):  # fmt: skip
    """Solve the problem of each pair from beta = 0. Pair k has the variables from offsets[k] to offsets[k + 1].

    The samples of class c are those from starts[c] to starts[c + 1] in gram. Fills beta, F = K beta, steps (-1 for an
    unbounded problem), and groups and totals (see `optimality_sums`). Returns (NEEDS_NEWTON,) if a problem needs
    Newton's step and its address is 0, else (0,). Scratch space, which would take long to compile if it were allocated
    here: memory (the largest matrix of a pair), samples, support, weights, reals (eight rows).
    """
    for k in range(pairs.shape[0]):
        start, stop = offsets[k], offsets[k + 1]
        n = stop - start
        K = memory[: n * n].reshape((n, n))
        i, j = pairs[k, 0], pairs[k, 1]
        _copy_pair(gram, (starts[i], starts[i + 1]), (starts[j], starts[j + 1]), K)
        b, f = beta[start:stop], F[start:stop]
        for v in range(n):
            b[v], f[v], samples[v] = 0.0, 0.0, v
        low, high, c_l1, c_ridge = lower[start:stop], upper[start:stop], l1[start:stop], ridge[start:stop]
        program = Program(samples[:n], group[start:stop], linear[start:stop], c_l1, c_ridge, low, high)
        taken, _, unbounded = solve_members(
            samples[:n], K, program, b, f, tol, max_steps, newton, reals, reals[6], reals[7]
        )
        if taken == NEEDS_NEWTON:
            return (NEEDS_NEWTON,)
        steps[k] = -1 if unbounded else taken
        count = np.int64(0)
        for v in range(n):
            if b[v] != 0.0:
                support[count], weights[count] = v, b[v]
                count += 1
        # a literal 0 would compile it again
        add_rows_product(K, support[:count], weights[:count], np.int64(0), n, f)
        optimality_sums(
            b, f, linear[start:stop], c_l1, c_ridge, low, high, group[start:stop], groups[k : k + 1], totals[k]
        )
    return (0,)
