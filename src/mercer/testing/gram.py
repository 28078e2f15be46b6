"""The conformance check for Gram operators: all methods give the values of the kernel."""

from __future__ import annotations

import copy

import numpy as np

from mercer.gram.operator import Evaluations, GramOperator
from mercer.testing.comparison import Matrix, claim, compare, precision

# all pairs of at most this many samples, spread evenly, are compared one by one
MOST_SAMPLES = 40
THREADS = 3


def check_gram(gram: GramOperator) -> None:
    """Check that an operator keeps the contract of ``mercer.gram.operator.GramOperator``.

    Values of rows, blocks, parts, the whole matrix and the diagonal are compared with those of single pairs, and the
    matrix with its transpose. Results of one thread and of three must have the same bits, and the counter must agree
    with the number of values computed. The whole matrix is computed: give a few thousand samples at most.

    >>> import mercer.kernels
    >>> kernel = mercer.kernels.Gaussian(0.5)
    >>> check_gram(GramOperator(kernel, kernel.prepare([[0.0, 1.0], [2.0, 3.0], [4.0, 6.0]])))
    """
    claim(len(gram.features) == gram.n, f"The operator's n is {gram.n}, but it has {len(gram.features)} samples.")
    few = np.unique(np.linspace(0, gram.n - 1, MOST_SAMPLES).astype(np.intp)) if gram.n else np.empty(0, np.intp)
    singles = [gram.features.take(np.array([i])) for i in few]
    K = np.array([[float(gram.kernel.block(x, z)[0, 0]) for z in singles] for x in singles]).reshape(len(few), len(few))
    _check_values(gram, few, K)
    _check_threads(gram)
    _check_count(gram, few)


def _check_values(gram: GramOperator, few: Matrix, K: Matrix) -> None:
    """All methods give the same values."""
    name, tolerance = f"The operator of {gram.kernel!r}", precision(gram.dtype)
    order = np.random.default_rng(0).permutation(len(few))
    shuffled = K[np.ix_(order, order)]
    compare(gram.block(few, few), K, K, tolerance, f"{name}: block differs from single pairs")
    some = order[: len(few) // 2 + 1]
    part = gram.block(few[some], few[order])
    compare(part, K[np.ix_(some, order)], K, tolerance, f"{name}: block of a part differs from single pairs")
    taken = gram.take(few[order])
    claim(taken.n == len(few), f"{name}: take of {len(few)} samples has {taken.n}.")
    compare(taken.dense(), shuffled, K, tolerance, f"{name}: take gives other samples")
    rows = gram.rows(gram.features.take(few))
    compare(rows[:, few], K, K, tolerance, f"{name}: rows differ from single pairs")
    given = np.full_like(rows, 7.0)
    result = gram.rows(gram.features.take(few), out=given)
    claim(result is given or np.shares_memory(result, given), f"{name}: rows(features, out=out) did not return out.")
    compare(given, rows, rows, 0.0, f"{name}: rows(features, out=out) wrote other values to out")
    dense = gram.dense()
    claim(dense.dtype == gram.dtype, f"{name}: dense is of type {dense.dtype} instead of {gram.dtype}.")
    claim(dense.shape == (gram.n, gram.n), f"{name}: dense has the shape {dense.shape} for {gram.n} samples.")
    compare(dense[few], rows, K, tolerance, f"{name}: dense differs from rows")
    compare(dense, dense.T, K, tolerance, f"{name}: dense is not symmetric")
    diagonal = gram.diagonal()
    claim(diagonal.dtype == np.float64, f"{name}: diagonal is of type {diagonal.dtype} instead of float64.")
    compare(diagonal[few], np.diagonal(K), K, 10 * tolerance, f"{name}: diagonal differs from k(x, x)")


def _check_threads(gram: GramOperator) -> None:
    """One thread and three give the same bits."""
    one, several = copy.copy(gram), copy.copy(gram)
    one.n_threads, several.n_threads = 1, THREADS
    for what in ("dense", "rows"):
        first, second = (
            operator.dense() if what == "dense" else operator.rows(gram.features) for operator in (one, several)
        )
        claim(
            first.tobytes() == second.tobytes(),
            f"The operator of {gram.kernel!r}: {what} has other bits with {THREADS} threads than with one.",
        )


def _check_count(gram: GramOperator, few: Matrix) -> None:
    """The counter increases by the number of values computed: all of a block, at least a triangle of the matrix."""
    counted = copy.copy(gram)
    counted.evaluations = Evaluations()
    counted.block(few, few[:1])
    found = counted.evaluations.count
    claim(found == len(few[:1]) * len(few), f"{found} evaluations were counted for a block of {len(few)} values.")
    counted.evaluations = Evaluations()
    counted.dense()
    found, n = counted.evaluations.count, gram.n
    claim(
        n * (n + 1) // 2 <= found <= n * n,
        f"{found} evaluations were counted for a matrix of {n} samples: there are {n * (n + 1) // 2} pairs.",
    )
