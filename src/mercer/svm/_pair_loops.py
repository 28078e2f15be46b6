"""The two-class problems of many small pairs of classes in one compiled call, on parts of one Gram matrix."""

from typing import Any, NamedTuple

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


class PairSpace(NamedTuple):
    """Scratch space for the largest pair: its matrix, and vectors. Allocated in compiled code it would compile long.

    ``samples`` and ``support`` are numbers of samples, ``reals`` eight rows.
    """

    matrix: Any
    samples: Any
    support: Any
    weights: Any
    reals: Any


class PairResults(NamedTuple):
    """What `solve_pairs` fills: steps of each pair, -1 for an unbounded problem; see `optimality_sums` for the rest."""

    steps: Any
    groups: Any
    totals: Any


@compiled()
def solve_pairs(gram, starts, pairs, offsets, programs, tol, max_steps, newton, beta, F, space, results):
    """Solve the problem of each pair from beta = 0. Pair k has the variables from offsets[k] to offsets[k + 1].

    ``programs`` has the vectors of all pairs, one after the other. The samples of class c are those from starts[c] to
    starts[c + 1] in gram. Fills beta, F = K beta and results. Returns (NEEDS_NEWTON,) if a problem needs Newton's step
    and its address is 0, else (0,).
    """
    samples, support, weights, reals = space.samples, space.support, space.weights, space.reals
    for k in range(pairs.shape[0]):
        start, stop = offsets[k], offsets[k + 1]
        n = stop - start
        K = space.matrix[: n * n].reshape((n, n))
        i, j = pairs[k, 0], pairs[k, 1]
        _copy_pair(gram, (starts[i], starts[i + 1]), (starts[j], starts[j + 1]), K)
        b, f = beta[start:stop], F[start:stop]
        for v in range(n):
            b[v], f[v], samples[v] = 0.0, 0.0, v
        linear, l1, ridge = programs.linear[start:stop], programs.l1[start:stop], programs.ridge[start:stop]
        lower, upper, group = programs.lower[start:stop], programs.upper[start:stop], programs.group[start:stop]
        program = Program(samples[:n], group, linear, l1, ridge, lower, upper)
        taken, _, unbounded = solve_members(
            samples[:n], K, program, b, f, tol, max_steps, newton, reals, reals[6], reals[7]
        )
        if taken == NEEDS_NEWTON:
            return (NEEDS_NEWTON,)
        results.steps[k] = -1 if unbounded else taken
        count = np.int64(0)
        for v in range(n):
            if b[v] != 0.0:
                support[count], weights[count] = v, b[v]
                count += 1
        # a literal 0 would compile it again
        add_rows_product(K, support[:count], weights[:count], np.int64(0), n, f)
        optimality_sums(b, f, linear, l1, ridge, lower, upper, group, results.groups[k : k + 1], results.totals[k])
    return (0,)
