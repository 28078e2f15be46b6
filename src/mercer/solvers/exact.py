"""The exact solver: a certified optimum for any kernel and loss.

Small problems are solved whole, the smallest on their float64 matrix, others on a float32 one. Large ones are
solved by decomposition on float32 kernel rows. What was found in float32 is then judged in float64 (see judge). If
the violation found there is above tol, the exact values of F replace the tracked ones and the run goes on
(refinement in mixed precision), at last in float64 throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.gram.operator import GramOperator, product
from mercer.kernels.features import Vector
from mercer.losses.base import BoxQP
from mercer.problems.certificate import certificate
from mercer.problems.dual import DualProblem, has_open_box
from mercer.solvers.base import Clock, Options, Solution, Status, TracePoint
from mercer.solvers.data import ClassBlocks, Data
from mercer.solvers.decomposition import Decomposition
from mercer.solvers.judge import check_finite, exact_rows, thresholds_at, violation_at
from mercer.solvers.whole import WholeMatrix

# up to this many variables the matrix is computed in float64; is one block
DOUBLE_UP_TO = 400
WHOLE_UP_TO = 1536
# up to this many samples of two classes their matrix is put together from shared parts
PAIR_UP_TO = 2560
# below this tolerance rounding of float32 rows costs more rounds than it saves
SINGLE_FROM = 2e-6
# largest kernel value at which float32 rows keep their meaning
SINGLE_UP_TO = 1e30
REFINEMENTS = 4


def solve(data: Data, problem: DualProblem, options: Options, clock: Clock, start: Vector | None = None) -> Solution:
    """The optimum of the problem over the data, from a feasible start if given."""
    beta = problem.start() if start is None else start.copy()
    qp = problem.qp
    dtype = np.dtype(_precision(data, qp, options))
    run = _start(data, qp, beta, options, clock, dtype)
    trace: list[TracePoint] = []
    previous = np.inf
    for attempt in range(REFINEMENTS + 1):
        status = run.run(options.tol * (0.9 if dtype == np.float32 else 1.0))
        trace += run.trace
        run.trace = []
        rows = None
        if dtype == np.float32 or isinstance(run, Decomposition):
            rows, run.F[rows] = exact_rows(data, qp, run.beta, run.F, options)
        found = violation_at(qp, run.beta, run.F, rows)
        check_finite(found)
        if found <= options.tol or status is not Status.CONVERGED or attempt == REFINEMENTS:
            break
        if dtype == np.float32 and (found > 0.5 * previous or attempt == REFINEMENTS - 1):
            # rounding of the float32 matrix, not of F, stands in the way
            dtype = np.dtype(np.float64)
            steps = run.steps
            run = _start(data, qp, run.beta, options, clock, dtype)
            run.steps = steps
        else:
            run.restart()
        previous = found
    if status is Status.CONVERGED and found > options.tol:
        status = Status.STALLED
    b = thresholds_at(qp, run.beta, run.F, rows)
    proof = certificate(qp, problem.loss, problem.y, problem.weight, run.beta, run.F, b, data.psd, rows=rows)
    return Solution(run.beta, run.F, b, status, run.steps, clock.seconds, proof, trace)


def _start(
    data: Data, qp: BoxQP, beta: Vector, options: Options, clock: Clock, dtype: np.dtype[Any]
) -> WholeMatrix | Decomposition:
    """A run from beta in one precision."""
    small = data.n <= WHOLE_UP_TO or (data.has_matrix and dtype == np.float32)
    if small and data.n**2 * dtype.itemsize <= options.budget:
        K = data.matrix(dtype, options.n_threads)
        run = WholeMatrix(K, qp, beta, options, clock)
        return run if qp.n_vars <= WHOLE_UP_TO else Decomposition(K, qp, beta, run.F, options, clock)
    features = data.features(dtype)
    weights = qp.at_samples(beta, data.n)
    support = np.flatnonzero(weights)
    F = product(data.kernel, features, features.take(support), weights[support], options.n_threads, data.evaluations)
    gram = GramOperator(data.kernel, features, options.n_threads, data.evaluations)
    return Decomposition(gram, qp, beta, F, options, clock)


def _precision(data: Data, qp: BoxQP, options: Options) -> str:
    """float32 where its rounding can be refined away and float64 is not as quick."""
    if options.precision != "auto":
        return options.precision
    if qp.n_vars <= DOUBLE_UP_TO or options.tol < SINGLE_FROM or has_open_box(qp):
        return "float64"
    if data.has_matrix:
        return "float32"
    diagonal = data.kernel.diagonal(data.features(np.float32))
    check_finite(diagonal)
    return "float32" if np.abs(diagonal).max() < SINGLE_UP_TO else "float64"


def shared_blocks(data: Data, members: Sequence[Vector], options: Options) -> ClassBlocks | None:
    """Gram matrices for all pairs of classes, if the pairs are of a size that is solved on one in float32.

    Otherwise the samples are prepared, once for all pairs, in the precision that they will ask for.
    """
    sizes = sorted((len(index) for index in members), reverse=True)
    largest = sizes[0] + sizes[1]
    kept = sum(size**2 for size in sizes) * np.dtype(np.float32).itemsize
    single = options.precision != "float64" and options.tol >= SINGLE_FROM and largest > DOUBLE_UP_TO
    if single and largest <= PAIR_UP_TO and kept <= options.budget and data.kernel.domain == "vectors":
        return ClassBlocks(data, members, options.n_threads)
    # float32 samples are copied to float64 in parts only
    if single or getattr(data.samples, "dtype", None) != np.float32:
        data.features(np.float32 if single else np.float64)
    return None
