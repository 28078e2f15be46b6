"""The exact solver: a certified optimum of the box QP for any kernel and loss.

    min  ½β'Kβ − linear'β + Σ l1|β| + ½Σ ridge β²    s.t.  lower ≤ β ≤ upper,  the sum over each group fixed

A plan (`mercer.svm.plan`) decides how: over the features of a linear kernel, on the dense Gram matrix (`DenseRun`), or
by decomposition on kernel rows (`Decomposition`). Float32 kernel values are used where they suffice. Their result is
verified in float64 (`mercer.svm.verify`). If the violation found there is above tol, the exact F replaces the tracked
one and the run continues (refinement in mixed precision). The last attempt is in float64 throughout.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mercer.gram.memory import Loan
from mercer.gram.operator import Data, GramOperator, MatrixRows, check_finite, product
from mercer.kernels import check_mercer
from mercer.kernels.features import Vector
from mercer.losses import HardMargin
from mercer.losses.base import BoxQP, Loss
from mercer.problems.clock import Clock
from mercer.problems.dual import (
    DUST,
    DualProblem,
    at_bounds,
    feasible_start,
    infeasibility,
    settled_at_bounds,
    thresholds,
    violation,
)
from mercer.problems.solution import Options, Solution, Status, TracePoint, certificate
from mercer.svm.decomposition import Decomposition
from mercer.svm.dense import DenseRun, matrix_product
from mercer.svm.hard_margins.hard_margin import first_steps, inseparable, settle
from mercer.svm.interior_qp import INTERIOR_STEPS, factor_seconds, interior_point
from mercer.svm.plan import (
    QP_UP_TO,
    RESCUE_UP_TO,
    SHARE_OF_TOL,
    Plan,
    can_use_features,
    in_double,
    plan_descent,
    plan_problem,
)
from mercer.svm.presolve import DualPoint, merge, solve_over_features
from mercer.svm.stepwise import solve_stepwise
from mercer.svm.verify import exact_product, exact_rows, survey_at

REFINEMENTS = 4
# an exact F helps if the violation falls below this share
HARDLY_BETTER = 0.5
# after an early end F is computed in float64 at all samples
ENDED_EARLY = (Status.MAX_ITER, Status.TIME_LIMIT, Status.INTERRUPTED)
# with a time limit, a run starts only if there is time for at least this many kernel rows
FEWEST_ROWS = 8
# if the stalled solution over features has at most this relative gap, SMO takes at most this many steps per sample
NEXT_TO_OPTIMAL, STEPS_PER_SAMPLE = 1e-3, 50
# a sum of a start that differs by less than this share is right up to rounding
START_ROUNDING = 1e-12


def solve(data: Data, problem: DualProblem, options: Options, clock: Clock, start: Vector | None = None) -> Solution:
    """Solve the problem on these data, from a feasible start if one is given."""
    if options.solver == "qp":
        return solve_qp(data, problem, options, clock, start)
    if options.solver in ("coordinate", "smo"):
        return solve_stepwise(data, problem, options, clock, start)
    if not isinstance(problem.loss, HardMargin):
        return _solve_by_plan(data, problem, options, clock, start)
    shortly = first_steps(data, problem, options)
    if shortly is None:
        return settle(solve, data, problem, options, _solve_by_plan(data, problem, options, clock, start))
    solution = _solve_by_plan(data, problem, shortly, clock, start)
    if solution.status is Status.MAX_ITER:
        refuted = inseparable(data, problem, clock, solution)
        if refuted is not None:
            return refuted
        rest = _solve_by_plan(data, problem, options, clock, solution.beta, solution.steps)
        solution = replace(rest, trace=solution.trace + rest.trace)
    return settle(solve, data, problem, options, solution)


def _solve_by_plan(
    data: Data, problem: DualProblem, options: Options, clock: Clock, start: Vector | None, steps: int = 0
) -> Solution:
    """Solve the problem without verifying hard margins. ``steps`` were taken before."""
    plan = plan_problem(data, problem, options, clock.left, start is not None)
    if plan.presolve == "features":
        clock.reports.log_once("plan", plan)
        found = solve_over_features(data, problem, options, clock)
        if found is not None:
            return replace(_from_features(data, problem, options, clock, found), plan=plan)
        plan = plan_descent(data, problem.qp, options, clock.left, False)
    merged = merge(data, problem) if plan.presolve == "merge" else None
    if merged is not None:
        start = merged.start(start)
        if plan is not options.plan:
            again = plan_descent(merged.data, merged.problem.qp, options, clock.left, start is not None)
            plan = replace(again, presolve="merge")
        clock.reports.log_once("plan", plan)
        with clock.reports.mapped_by(merged.expand):
            return merged.expand(_solve_by_smo(merged.data, merged.problem, options, clock, start, plan, steps))
    plan = replace(plan, presolve="none")  # too few samples are equal, if any
    clock.reports.log_once("plan", plan)
    solution = _solve_by_smo(data, problem, options, clock, start, plan, steps)
    if solution.status is Status.STALLED and can_use_features(data, problem.qp, options):
        return _retry_over_features(data, problem, options, clock, solution)
    return solution


def _retry_over_features(
    data: Data, problem: DualProblem, options: Options, clock: Clock, solution: Solution
) -> Solution:
    """Solve a stalled linear problem over its features. Returns this solution if it converged or its gap is smaller."""
    found = solve_over_features(data, problem, options, clock)
    if found is None:
        return solution
    found = found._replace(steps=solution.steps + found.steps)
    other = _certify_features(data, problem, options, clock, found)
    if other.status is not Status.CONVERGED and not other.certificate.gap < solution.certificate.gap:
        return replace(solution, steps=other.steps, seconds=other.seconds)
    return replace(other, trace=solution.trace + other.trace, plan=solution.plan)


def _solve_by_smo(
    data: Data, problem: DualProblem, options: Options, clock: Clock, start: Vector | None, plan: Plan, steps: int
) -> Solution:
    """Solve by SMO with the threads of the plan, from a feasible start if one is given; ``steps`` were taken before."""
    beta = problem.start() if start is None else start.copy()
    options = replace(options, n_threads=plan.n_threads)
    return _descend_and_certify(data, problem, options, clock, beta, steps, plan)


@contextmanager
def _spinning(plan: Plan) -> Iterator[None]:
    """Share short loops among the threads of the plan, if they spin while they wait: ``_compiled/shared_loops.py``."""
    if not plan.spin or plan.n_threads == 1:
        yield
        return
    from mercer._compiled.shared_loops import spinning_workers

    with spinning_workers(plan.n_threads):
        yield


def _from_features(data: Data, problem: DualProblem, options: Options, clock: Clock, found: DualPoint) -> Solution:
    """The solution found over features. If it stalled, SMO continues from it, and the better solution is returned."""
    solution = _certify_features(data, problem, options, clock, found)
    if solution.status is not Status.STALLED:
        return solution
    if solution.certificate.valid and solution.certificate.relative_gap <= NEXT_TO_OPTIMAL:
        options = replace(options, max_iter=found.steps + STEPS_PER_SAMPLE * data.n)
    start = feasible_start(problem.qp, found.beta)
    plan = plan_descent(data, problem.qp, options, clock.left, True)
    other = _descend_and_certify(data, problem, options, clock, start, found.steps, plan)
    if other.status is Status.CONVERGED or not solution.certificate.valid:
        return other
    if solution.certificate.relative_gap <= other.certificate.relative_gap:
        return solution
    # the user did not set this limit of the steps
    return replace(other, status=Status.STALLED) if other.status is Status.MAX_ITER else other


def _certify_features(data: Data, problem: DualProblem, options: Options, clock: Clock, found: DualPoint) -> Solution:
    """The solution found over features, with its certificate."""
    status = Status.CONVERGED if found.violation <= options.tol else clock.over() or Status.STALLED
    point = TracePoint(clock.seconds, found.steps, found.seen.violation, found.seen.dual, data.n)
    return _certified(data, problem, options, clock, found, None, status, [point])


class Descent(NamedTuple):
    """Where a run on a program ended, and its last plan; F is exact at ``rows``, or everywhere if that is None."""

    point: DualPoint
    rows: Vector | None
    status: Status
    trace: list[TracePoint]
    plan: Plan


def _descend_and_certify(
    data: Data, problem: DualProblem, options: Options, clock: Clock, beta: Vector, steps: int, plan: Plan
) -> Solution:
    """The certified solution of `descend` on the program of a problem, with its last plan."""
    found = descend(data, problem.qp, options, clock, beta, steps, plan)
    solution = _certified(data, problem, options, clock, found.point, found.rows, found.status, found.trace)
    return replace(solution, plan=found.plan)


def descend(data: Data, qp: BoxQP, options: Options, clock: Clock, beta: Vector, steps: int, plan: Plan) -> Descent:
    """Run SMO from a feasible start, verify in float64, and refine until the violation is at most tol. Edits beta."""
    over = clock.over() if clock.left == np.inf else clock.over_in(_start_seconds(data, qp, beta, options))
    if over is not None:  # no time for a run and its certificate
        F = exact_product(data, qp, beta, options) if beta.any() else np.zeros(data.n)
        seen = survey_at(qp, beta, F, None)
        point = TracePoint(clock.seconds, steps, seen.violation, seen.dual, data.n)
        return Descent(DualPoint(beta, F, steps, seen), None, over, [point], plan)
    run = _start(data, qp, beta, steps, options, clock, plan)
    trace: list[TracePoint] = []
    previous, rescued = np.inf, False
    for attempt in range(REFINEMENTS + 1):
        with _spinning(plan):
            status = run.run(options.tol * (SHARE_OF_TOL if plan.precision == "float32" else 1.0))
        rows, rounded = None, plan.precision == "float32" or isinstance(run, Decomposition)
        if rounded and status in ENDED_EARLY:
            run.F[:] = exact_product(data, qp, run.beta, options)
        elif rounded:
            rows, run.F[rows] = exact_rows(data, qp, run.beta, run.F, options)
        seen = survey_at(qp, run.beta, run.F, rows)
        found = seen.violation
        if status is not Status.UNBOUNDED or np.isnan(found):  # a β that diverges may overflow
            check_finite(found)
        trace += run.trace
        run.trace = []
        in_single = plan.precision == "float32" and options.precision == "auto"
        if status is Status.STALLED and not rescued and qp.n_vars <= RESCUE_UP_TO:
            # ill-conditioned: on the dense float64 matrix there is the interior-point method
            rescued, restart_in_double = True, True
        elif status is Status.STALLED and found > options.tol and in_single and attempt < REFINEMENTS:
            # too many samples for the dense matrix, but the rounding of float32 rows may be the reason
            restart_in_double = True
        elif found <= options.tol or status is not Status.CONVERGED or attempt == REFINEMENTS:
            break
        else:
            # if an exact F does not help, the rounding of the float32 matrix is the reason
            restart_in_double = plan.precision == "float32" and (
                found > HARDLY_BETTER * previous or attempt == REFINEMENTS - 1
            )
        over = None if clock.left == np.inf else clock.over_in(_end_seconds(data, qp, run.beta, options))
        if over is not None:
            status = over
            break
        if restart_in_double:
            plan = replace(in_double(plan, data, qp, options, clock.left, rescued), presolve=plan.presolve)
            clock.reports.log_once("plan", plan)
            options = replace(options, n_threads=plan.n_threads)
            run = _start(data, qp, run.beta, run.steps, options, clock, plan)
        else:
            run.restart(rows)
        previous = found
    if status is Status.CONVERGED and found > options.tol:
        status = Status.STALLED
    if status is Status.UNBOUNDED and not qp.has_open_box:
        # only the direction of a diverging β matters, and its square would overflow
        size = float(np.abs(run.beta).max(initial=0.0))
        if size > 0:
            factor = 1 / size if np.isfinite(size) else 0.0
            run.beta, run.F = (factor * np.nan_to_num(values) for values in (run.beta, run.F))
    return Descent(DualPoint(run.beta, run.F, run.steps, seen), rows, status, trace, plan)


def _certified(
    data: Data,
    problem: DualProblem,
    options: Options,
    clock: Clock,
    state: DualPoint,
    rows: Vector | None,
    status: Status,
    trace: list[TracePoint],
) -> Solution:
    """The solution with thresholds and certificate; F is exact at ``rows``, or everywhere if that is None."""
    beta, F, steps, seen = state
    qp, found = problem.qp, beta
    if qp.sample is not None:
        # two variables per sample: restore both from the coefficient of the sample
        restored = problem.loss.restored(beta, problem.y, F, problem.weight)
        if restored is not beta and rows is not None:
            rows, F[:] = None, exact_product(data, qp, beta, options)
            restored = problem.loss.restored(beta, problem.y, F, problem.weight)
        beta = at_bounds(qp, restored)
    if qp.n_groups and status is Status.CONVERGED:
        # a coefficient that rounding has left next to a bound would count as free, and decide on the threshold
        beta = settled_at_bounds(qp, beta, DUST)
    if beta is not found:
        free, seen = seen.n_free, survey_at(qp, beta, F, rows)
        if rows is not None and np.any((seen.n_free == 0) & (free > 0)):
            # nothing but the ends of an interval decides b now, and samples outside ``rows`` may bound it
            rows, F[:] = None, exact_product(data, qp, beta, options)
            seen = survey_at(qp, beta, F, rows)
    if status is Status.CONVERGED or (status is Status.TIME_LIMIT and rows is not None):
        b, known = seen.thresholds, seen
    else:
        # far from the optimum free variables say little about b: minimise the loss over b, at all samples
        if rows is not None:
            rows, F[:] = None, exact_product(data, problem.qp, beta, options)
        b, known = problem.loss.best_thresholds(problem.y, F, problem.weight)[: problem.qp.n_groups], None
    proof = certificate(
        problem.qp, problem.loss, problem.y, problem.weight, beta, F, b, data.psd, rows=rows, seen=known
    )  # fmt: skip
    return Solution(beta, F, b, status, steps, clock.seconds, proof, trace)


def solve_qp(data: Data, problem: DualProblem, options: Options, clock: Clock, start: Vector | None = None) -> Solution:
    """Solve a small problem by the interior-point method on the dense matrix; [M5] "dual QP by a standard package".

    If the time limit allows too few interior-point steps, SMO is used: its model after an early end is better.
    """
    if problem.qp.n_vars > QP_UP_TO:
        raise InvalidInputError(
            f"solver='qp' factors a dense matrix of all {problem.qp.n_vars} variables: it takes at most {QP_UP_TO}. "
            "Use solver='auto'."
        )
    if clock.left < np.inf:
        needed = data.seconds(data.n, 0.5 * data.n, options.n_threads)
        if clock.over_in(needed + INTERIOR_STEPS * factor_seconds(problem.qp.n_vars)) is not None:
            return solve(data, problem, replace(options, solver="auto"), clock, start)
    K = data.matrix(np.float64, options.n_threads)
    check_finite(K)
    limit = 100 if options.max_iter < 0 else options.max_iter
    with one_blas_thread():  # on small matrices synchronising threads costs more than it saves
        beta, n_iter, _ = interior_point(K, problem.qp, 1e-10, limit, clock)
    qp = problem.qp
    F = K @ qp.at_samples(beta, data.n)
    beta = problem.loss.restored(beta, problem.y, F, problem.weight)
    b = thresholds(qp, beta, F)
    proof = certificate(qp, problem.loss, problem.y, problem.weight, beta, F, b, data.psd)
    done = violation(qp, beta, F) <= options.tol
    ended = Status.MAX_ITER if n_iter >= limit else clock.over() or Status.STALLED
    solution = Solution(beta, F, b, Status.CONVERGED if done else ended, n_iter, clock.seconds, proof)
    return settle(solve, data, problem, replace(options, solver="auto"), solution)


def _start_seconds(data: Data, qp: BoxQP, beta: Vector, options: Options) -> float:
    """Seconds of the shortest run from beta: F at its start and at its end, and a few kernel rows."""
    carried = int(np.count_nonzero(qp.at_samples(beta, data.n)))
    return data.seconds(data.n, 2 * carried + FEWEST_ROWS, options.n_threads)


def _end_seconds(data: Data, qp: BoxQP, beta: Vector, options: Options) -> float:
    """Seconds to certify beta: F of all samples in float64."""
    return data.seconds(data.n, int(np.count_nonzero(qp.at_samples(beta, data.n))), options.n_threads)


def _start(
    data: Data, qp: BoxQP, beta: Vector, steps: int, options: Options, clock: Clock, plan: Plan
) -> DenseRun | Decomposition:
    """Create the run from beta that the plan asks for. ``steps`` were taken before."""
    with _spinning(plan):
        run = _new_run(data, qp, beta, options, clock, plan)
    run.steps = steps
    return run


def _new_run(
    data: Data, qp: BoxQP, beta: Vector, options: Options, clock: Clock, plan: Plan
) -> DenseRun | Decomposition:
    dtype = plan.dtype
    if plan.storage == "matrix":
        # numpy.dtype(float64) == None is True
        known = data.matrix_dtype is not None and data.matrix_dtype == dtype
        loan = None if known else Loan(data.n**2, dtype)
        K = data.matrix(dtype, options.n_threads, None if loan is None else loan.array.reshape(data.n, data.n))
        check_finite(np.diagonal(K))
        if plan.working_set == 0:
            return DenseRun(K, qp, beta, options, clock, loan, plan)
        rows = MatrixRows(K, options.n_threads)
        seconds = partial(data.seconds, n_threads=options.n_threads)
        return Decomposition(rows, qp, beta, matrix_product(K, qp, beta), plan, options, clock, loan, seconds)
    features = data.features(dtype)
    weights = qp.at_samples(beta, data.n)
    support = np.flatnonzero(weights)
    F = np.zeros(data.n)
    if len(support):
        columns = features.take(support)
        F = product(data.kernel, features, columns, weights[support], options.n_threads, data.evaluations)
    gram = GramOperator(data.kernel, features, options.n_threads, data.evaluations)
    seconds = partial(data.seconds, n_threads=options.n_threads)
    return Decomposition(gram, qp, beta, F, plan, options, clock, seconds=seconds)


def solve_problem(
    data: Data,
    loss: Loss,
    y: Vector,
    weight: Vector,
    intercept: bool,
    options: Options,
    clock: Clock,
    start: Vector | None = None,
) -> Solution:
    """Solve the problem of one machine, from a point near ``start`` if that is given and of the right size."""
    intercept = intercept or hasattr(loss, "nu")  # these losses need an intercept
    problem = DualProblem(None, loss, y, weight, intercept)
    beta = None if start is None else near(problem.qp, start)
    over = clock.over()
    if over is not None:
        # the time for all pairs or folds is over: certify the start of this one as it is
        return replace(solve(data, problem, replace(options, max_iter=0, solver="auto"), clock, beta), status=over)
    solution = solve(data, problem, options, clock, beta)
    if solution.status is Status.UNBOUNDED and not data.psd:
        report = check_mercer(data.kernel, data.samples)
        smallest = report.smallest_eigenvalue
        if problem.qp.has_open_box and report.positive_semidefinite:
            return solution
        if report.positive_semidefinite and solution.beta.any():
            # the check saw only a part of the samples. With a ridge, β diverges only if K is indefinite: β'Kβ proves it
            weights = problem.qp.at_samples(solution.beta, data.n)
            smallest = float(solution.F @ weights / (weights @ weights))
        raise NotPositiveSemidefiniteError(smallest, report.largest_eigenvalue)
    return solution


def near(qp: BoxQP, beta: Vector) -> Vector | None:
    """A feasible β near the solution of another problem; None if its size differs.

    The sums are corrected by changing a few coefficients: scaling all of them would move them off their bounds.
    """
    if len(beta) != qp.n_vars:
        return None
    inside = np.clip(beta, qp.lower, qp.upper)
    if infeasibility(qp, inside) <= START_ROUNDING * np.abs(inside).sum():
        return inside
    return feasible_start(qp, near=inside)
