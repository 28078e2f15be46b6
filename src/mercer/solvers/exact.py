"""The exact solver: a certified optimum for any kernel and loss.

Small problems are solved whole, the smallest on their float64 matrix, others on a float32 one. Large ones are
solved by decomposition on float32 kernel rows. What was found in float32 is then judged in float64 (see judge). If
the violation found there is above tol, the exact values of F replace the tracked ones and the run goes on
(refinement in mixed precision), at last in float64 throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mercer.gram.operator import GramOperator, product, terms_of
from mercer.gram.rows import WholeRows
from mercer.gram.workspace import Loan
from mercer.kernels.features import Vector
from mercer.losses.base import BoxQP
from mercer.problems.certificate import certificate
from mercer.problems.dual import DualProblem, at_bounds, feasible_start
from mercer.solvers.base import Clock, Options, Solution, Status, TracePoint
from mercer.solvers.data import ClassBlocks, Data
from mercer.solvers.decomposition import Decomposition
from mercer.solvers.hard_margin import settle
from mercer.solvers.judge import check_finite, exact_product, exact_rows, survey_at
from mercer.solvers.merging import merge
from mercer.solvers.primal import Found, can_use_features, over_features, suits
from mercer.solvers.whole import WholeMatrix, matrix_product

# up to this many variables the matrix is computed in float64; is one block
DOUBLE_UP_TO = 400
WHOLE_UP_TO = 1536
# up to this many samples of two classes their matrix is put together from shared parts
PAIR_UP_TO = 2560
# up to this many variables a run that stalls is given the float64 matrix
RESCUED_UP_TO = 2048
# about how many nanoseconds a whole matrix takes from which other threads are worth waking
THREADS_FROM = 1e7
# below this tolerance rounding of float32 rows costs more rounds than it saves
SINGLE_FROM = 2e-6
# largest kernel value at which float32 rows keep their meaning
SINGLE_UP_TO = 1e30
REFINEMENTS = 4
# ends before the optimum, after which F is computed anew at all samples
ENDED_EARLY = (Status.MAX_ITER, Status.TIME_LIMIT, Status.INTERRUPTED)
# with a time limit no run is begun that has not the time for so many rows
FEWEST_ROWS = 8
# this near to the optimum (relative gap) pair steps are tried only so long: they seldom reach what features did not
NEXT_TO_OPTIMAL, STEPS_PER_SAMPLE = 1e-3, 50


def solve(data: Data, problem: DualProblem, options: Options, clock: Clock, start: Vector | None = None) -> Solution:
    """The optimum of the problem over the data, from a feasible start if given."""
    return settle(solve, data, problem, options, _solve(data, problem, options, clock, start))


def _solve(data: Data, problem: DualProblem, options: Options, clock: Clock, start: Vector | None) -> Solution:
    """The same, but that hard margins are not yet verified."""
    if start is None and suits(data, data.n, problem.qp, options):
        found = over_features(data, problem, options, clock)
        if found is not None:
            return _from_features(data, problem, options, clock, found)
    merged = merge(data, problem)
    if merged is not None:
        start = merged.start(start)
        with clock.seen_through(merged.expand):
            return merged.expand(_from_start(merged.data, merged.problem, options, clock, start))
    solution = _from_start(data, problem, options, clock, start)
    if solution.status is Status.STALLED and can_use_features(data, problem.qp, options):
        return _rescued(data, problem, options, clock, solution)
    return solution


def _rescued(data: Data, problem: DualProblem, options: Options, clock: Clock, solution: Solution) -> Solution:
    """What features make of a problem whose kernel matrix is too ill-conditioned, if that is better."""
    found = over_features(data, problem, options, clock)
    if found is None:
        return solution
    found = found._replace(steps=solution.steps + found.steps)
    other = _over_features(data, problem, options, clock, found)
    if other.status is not Status.CONVERGED and not other.certificate.gap < solution.certificate.gap:
        return replace(solution, steps=other.steps, seconds=other.seconds)
    return replace(other, trace=solution.trace + other.trace)


def _from_start(data: Data, problem: DualProblem, options: Options, clock: Clock, start: Vector | None) -> Solution:
    """By pair steps from a feasible start if given."""
    beta = problem.start() if start is None else start.copy()
    if options.n_threads == 1 or data.n <= DOUBLE_UP_TO or data.matrix_dtype is not None:
        return _descend(data, problem, options, clock, beta, 0)
    features = data.features(np.float32)
    if data.kernel.formula(features) is None:
        return _descend(data, problem, options, clock, beta, 0)
    from mercer._numerics.shared import price
    from mercer._numerics.team import gathered

    if price(data.n**2, terms_of(data.kernel, features)) < THREADS_FROM:
        return _descend(data, problem, replace(options, n_threads=1), clock, beta, 0)
    with gathered(options.n_threads):
        return _descend(data, problem, options, clock, beta, 0)


def _from_features(data: Data, problem: DualProblem, options: Options, clock: Clock, found: Found) -> Solution:
    """What was found over features, or what pair steps make of it."""
    solution = _over_features(data, problem, options, clock, found)
    if solution.status is not Status.STALLED:
        return solution
    if solution.certificate.valid and solution.certificate.relative_gap <= NEXT_TO_OPTIMAL:
        options = replace(options, max_iter=found.steps + STEPS_PER_SAMPLE * data.n)
    start = feasible_start(problem.qp, found.beta)
    other = _descend(data, problem, options, clock, start, found.steps)
    if other.status is Status.CONVERGED or not solution.certificate.valid:
        return other
    if solution.certificate.relative_gap <= other.certificate.relative_gap:
        return solution
    # the limit of its steps was not the user's
    return replace(other, status=Status.STALLED) if other.status is Status.MAX_ITER else other


def _over_features(data: Data, problem: DualProblem, options: Options, clock: Clock, found: Found) -> Solution:
    """What was found over features, with its certificate."""
    status = Status.CONVERGED if found.violation <= options.tol else clock.over() or Status.STALLED
    point = TracePoint(clock.seconds, found.steps, found.seen.violation, found.seen.dual, data.n)
    return _published(data, problem, options, clock, found, None, status, [point])


def _descend(data: Data, problem: DualProblem, options: Options, clock: Clock, beta: Vector, steps: int) -> Solution:
    """Pair steps from a feasible start."""
    qp = problem.qp
    over = clock.over() if clock.left == np.inf else clock.over_in(_begin(data, qp, beta, options))
    if over is not None:  # nothing is begun that could not be ended
        F = exact_product(data, qp, beta, options) if beta.any() else np.zeros(data.n)
        seen = survey_at(qp, beta, F, None)
        point = TracePoint(clock.seconds, steps, seen.violation, seen.dual, data.n)
        return _published(data, problem, options, clock, Found(beta, F, steps, seen), None, over, [point])
    dtype = np.dtype(_precision(data, qp, options))
    run = _start(data, qp, beta, options, clock, dtype, WHOLE_UP_TO)
    run.steps = steps
    trace: list[TracePoint] = []
    previous, rescued = np.inf, False
    for attempt in range(REFINEMENTS + 1):
        status = run.run(options.tol * (0.9 if dtype == np.float32 else 1.0))
        rows, rounded = None, dtype == np.float32 or isinstance(run, Decomposition)
        if rounded and status in ENDED_EARLY:
            run.F[:] = exact_product(data, qp, run.beta, options)
        elif rounded:
            rows, run.F[rows] = exact_rows(data, qp, run.beta, run.F, options)
        seen = survey_at(qp, run.beta, run.F, rows)
        found = seen.violation
        check_finite(found)
        trace += run.trace
        run.trace = []
        if status is Status.STALLED and not rescued and qp.n_vars <= RESCUED_UP_TO:
            # ill-conditioned: on the float64 matrix Newton and interior-point steps come to help
            rescued, restart_in_double = True, True
        elif found <= options.tol or status is not Status.CONVERGED or attempt == REFINEMENTS:
            break
        else:
            # rounding of the float32 matrix, not of F, stands in the way
            restart_in_double = dtype == np.float32 and (found > 0.5 * previous or attempt == REFINEMENTS - 1)
        over = None if clock.left == np.inf else clock.over_in(_end(data, qp, run.beta, options))
        if over is not None:
            status = over
            break
        if restart_in_double:
            dtype, steps = np.dtype(np.float64), run.steps
            run = _start(data, qp, run.beta, options, clock, dtype, RESCUED_UP_TO if rescued else WHOLE_UP_TO)
            run.steps = steps
        else:
            run.restart(rows)
        previous = found
    if status is Status.CONVERGED and found > options.tol:
        status = Status.STALLED
    if status is Status.UNBOUNDED and not qp.has_open_box:
        # only the direction counts of what runs away, and its square would be beyond all numbers
        size = float(np.abs(run.beta).max(initial=0.0))
        if size > 0:
            factor = 1 / size if np.isfinite(size) else 0.0
            run.beta, run.F = (factor * np.nan_to_num(values) for values in (run.beta, run.F))
    state = Found(run.beta, run.F, run.steps, seen)
    return _published(data, problem, options, clock, state, rows, status, trace)


def _published(
    data: Data,
    problem: DualProblem,
    options: Options,
    clock: Clock,
    state: Found,
    rows: Vector | None,
    status: Status,
    trace: list[TracePoint],
) -> Solution:
    """The solution with its thresholds and its certificate; F is exact at ``rows``, or everywhere."""
    beta, F, steps, seen = state
    if problem.qp.sample is not None:
        # two variables per sample: those that its coefficient stands for
        restored = problem.loss.restored(beta, problem.y, F, problem.weight)
        if restored is not beta and rows is not None:
            rows, F[:] = None, exact_product(data, problem.qp, beta, options)
            restored = problem.loss.restored(beta, problem.y, F, problem.weight)
        beta = at_bounds(problem.qp, restored)
        seen = survey_at(problem.qp, beta, F, rows)
    if status is Status.CONVERGED or (status is Status.TIME_LIMIT and rows is not None):
        b = seen.thresholds
    else:
        # far from the optimum free variables say little: the thresholds that are best for this f, at all samples
        if rows is not None:
            rows, F[:] = None, exact_product(data, problem.qp, beta, options)
        b = problem.loss.best_thresholds(problem.y, F, problem.weight)[: problem.qp.n_groups]
    proof = certificate(problem.qp, problem.loss, problem.y, problem.weight, beta, F, b, data.psd, rows=rows)
    return Solution(beta, F, b, status, steps, clock.seconds, proof, trace)


def _begin(data: Data, qp: BoxQP, beta: Vector, options: Options) -> float:
    """Seconds that the shortest run from beta takes: F at its start and at its end, and a few rows."""
    carried = int(np.count_nonzero(qp.at_samples(beta, data.n)))
    return data.seconds(data.n, 2 * carried + FEWEST_ROWS, options.n_threads)


def _end(data: Data, qp: BoxQP, beta: Vector, options: Options) -> float:
    """Seconds that the certificate of a run takes that ends now: F of all samples in float64."""
    return data.seconds(data.n, int(np.count_nonzero(qp.at_samples(beta, data.n))), options.n_threads)


def _start(
    data: Data,
    qp: BoxQP,
    beta: Vector,
    options: Options,
    clock: Clock,
    dtype: np.dtype[Any],
    whole_up_to: int,
) -> WholeMatrix | Decomposition:
    """A run from beta in one precision."""
    # a dtype compares equal to None where it is the default
    known = data.matrix_dtype is not None and data.matrix_dtype == dtype
    fits = data.n <= whole_up_to and data.n**2 * dtype.itemsize <= options.budget
    if known or (fits and data.in_time(options.n_threads, clock)):
        loan = None if known else Loan(data.n**2, dtype)
        K = data.matrix(dtype, options.n_threads, None if loan is None else loan.array.reshape(data.n, data.n))
        check_finite(np.diagonal(K))
        if qp.n_vars <= whole_up_to:
            return WholeMatrix(K, qp, beta, options, clock, loan)
        rows = WholeRows(K, options.n_threads)
        seconds = partial(data.seconds, n_threads=options.n_threads)
        return Decomposition(rows, qp, beta, matrix_product(K, qp, beta), options, clock, loan, seconds)
    features = data.features(dtype)
    weights = qp.at_samples(beta, data.n)
    support = np.flatnonzero(weights)
    F = np.zeros(data.n)
    if len(support):
        columns = features.take(support)
        F = product(data.kernel, features, columns, weights[support], options.n_threads, data.evaluations)
    gram = GramOperator(data.kernel, features, options.n_threads, data.evaluations)
    seconds = partial(data.seconds, n_threads=options.n_threads)
    return Decomposition(gram, qp, beta, F, options, clock, seconds=seconds)


def _precision(data: Data, qp: BoxQP, options: Options) -> str:
    """float32 where its rounding can be refined away and float64 is not as quick."""
    if options.precision != "auto":
        return options.precision
    if qp.has_open_box:
        return "float64"
    if data.matrix_dtype is not None:
        return data.matrix_dtype.name
    if qp.n_vars <= DOUBLE_UP_TO or options.tol < SINGLE_FROM:
        return "float64"
    diagonal = data.kernel.diagonal(data.features(np.float32))
    check_finite(diagonal)
    return "float32" if np.abs(diagonal).max() < SINGLE_UP_TO else "float64"


def shared_blocks(
    data: Data, members: Sequence[Vector], options: Options, clock: Clock, pair_up_to: int = PAIR_UP_TO
) -> ClassBlocks | None:
    """Gram matrices for all pairs of classes, if the pairs are of a size that is solved on one, or parts of it.

    Otherwise the samples are prepared, once for all pairs, in the precision that they will ask for.
    """
    sizes = sorted((len(index) for index in members), reverse=True)
    largest = sizes[0] + sizes[1]
    single = options.precision != "float64" and options.tol >= SINGLE_FROM and largest > DOUBLE_UP_TO
    dtype = np.dtype(np.float32 if single or options.precision == "float32" else np.float64)
    kept = sum(size**2 for size in sizes) * dtype.itemsize
    up_to = pair_up_to if single else WHOLE_UP_TO
    fits = largest <= up_to and kept <= options.budget and data.kernel.domain == "vectors"
    if fits and data.in_time(options.n_threads, clock, sum(size**2 for size in sizes) / data.n**2):
        return ClassBlocks(data, members, dtype, options.n_threads)
    # float32 samples are copied to float64 in parts only
    if single or getattr(data.samples, "dtype", None) != np.float32:
        data.features(dtype)
    return None
