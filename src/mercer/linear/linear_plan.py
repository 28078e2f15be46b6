"""Choose the solvers of a linear machine. All rankings and their thresholds are in this file.

Measured on one core, seconds to a relative gap of 1e-4 for C = 0.1, 1 and 10:

    set (n × d)                        loss             interior              hybrid                 newton
    a9a, sparse (32,561 × 123)         hinge            0.21  0.48  0.61      0.11  0.29  2.7
    w8a, sparse (49,749 × 300)         hinge            0.75  2.5   3.8       0.18  0.93  > 5
    w8a                                squared hinge    0.41  0.55  0.57      0.14  0.93  > 4        0.07  0.09  0.10
    news20, sparse (15,935 × 62,061)   hinge            –                     0.07  0.13  0.31
    news20                             squared hinge    –                     0.06  0.08  0.20       0.16  0.23  0.48
    dense, 2,000 × 500                 hinge            0.30  –     0.41      0.28  –     3.6
    dense, 20,000 × 10                 hinge            –     0.04  –         –     0.25  –
    dense, 1,000 × 1,000               squared hinge    0.43  –     0.61      0.04  –     0.04       0.19  –     0.23

Hence the ranking:

* Squared losses: Newton's method, or `hybrid` (coordinate descent with Newton steps) if there are at least as many
  features as samples.
* Losses with kinks: `hybrid` or the interior-point method. Either may be far slower than the other, and except for tall
  dense data only a trial tells which. So `hybrid` runs first, about as long as the interior-point method is expected to
  take. It ends sooner if its gap does not fall, or if the interior-point method can continue from its model; it runs
  longer if it is almost done.
* l1 penalties: on few features the interior-point method, on many the proximal Newton method first (news20, 3,000 rows,
  squared hinge: 0.05 to 0.4 s instead of seconds).
* Unbounded boxes, as for hard margins: the interior-point method, the only solver that accepts them.
* Few samples of few features: one compiled run (`small`). 100 × 10 take 0.03 ms with squared losses and 0.1 ms with
  others; the Python code alone takes 1 ms in Newton's method and 5 ms in the interior-point method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.kernels.features import Csr
from mercer.linear import zeros
from mercer.linear.linear_problem import LinearProblem, Rows
from mercer.linear.linear_solution import LinearOptions, LinearSolution, LinearStage
from mercer.problems.clock import Clock
from mercer.problems.solution import WITHOUT_MODEL, Status

NAMES = ("auto", "interior", "coordinate", "newton", "proximal")
# the solvers that accept an l1 penalty
SPARSE = ("auto", "interior", "proximal")

# the interior-point method factorises a matrix of size min(n, d): it is used up to this size
FACTORED_UP_TO = 4000
# up to this many features Newton's method comes first: its factorisation is cheap and its last step exact
SMALL = 200
# expected iterations of the interior-point method, which limit the cost of a trial
SPARSE_STEPS, DENSE_STEPS = 40, 15
# nanoseconds per number read in a pass, per product of X'DX (sparse, dense), and per m³ of a factorisation
PASS, SPARSE_PRODUCT, DENSE_PRODUCT, FACTOR = 6.0, 1.2, 0.05, 0.02
# fixed nanoseconds per interior-point step and per pass
STEP_OVERHEAD, PASS_OVERHEAD = 2e5, 2e4
# `small` takes problems of at most this n·d and this min(n, d): larger ones gain nothing from it
FEW_NUMBERS, FEW = 20_000, 100
# an l1 penalty on more features than this goes to the proximal Newton method first; with piecewise linear losses it
# stops at this relative gap, and the interior-point method continues
MANY_FEATURES, ROUGH = 300, 2e-2
# iteration limit of the proximal Newton method
PROXIMAL_STEPS = 120
# `hybrid` gets dense rows as CSR if they have at least this many columns and at most this share of nonzeros, which is
# estimated from this many rows
MANY_COLUMNS, MOSTLY_ZERO, SAMPLED_ROWS = 100, 0.35, 200
# no trial of fewer passes than this
FEWEST_PASSES = 20
# (share of the planned passes, relative gap): a trial continues beyond this share only with at most this gap
TRIAL_CHECKS = ((0.25, 0.5), (0.5, 0.5), (1.0, 1e-3), (2.0, 0.0))
# between these gaps a trial ends, since the interior-point method starts best from there; below, it is almost done
ALMOST, NEAR = 1e-3, 1e-2


def solve_linear(
    name: str, problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None = None
) -> LinearSolution:
    """Solve with the solver of this name; "auto" runs those that `ranked` expects to be fastest.

    Only "auto" continues with another solver if one ends above ``tol`` before any limit of the user. With an l1 penalty
    `zeros` then determines which weights are exactly 0. The stages of the solution name the solvers that ran.
    """
    if problem.penalty.l1 == 0 or name not in SPARSE:
        return _run(name, problem, options, clock, start)
    found = zeros.without_weights(problem, clock)
    if found is not None:
        return found
    return zeros.add_exact_zeros(problem, options, clock, _run(name, problem, options, clock, start))


def _run(
    name: str, problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None
) -> LinearSolution:
    """Run one solver by its name, or for "auto" the ranked ones until one converges."""
    if name != "auto":
        return _solve(name, problem, options, clock, start)
    found: list[LinearSolution] = []
    stored = problem
    for solver, passes in ranked(problem, options.trial_passes):
        problem, more = stored, {}
        if solver == "hybrid":
            problem = _mostly_zero(stored, options.budget)
            more = {"worth": _worth(passes)} if passes > 0 else {}
            passes = -1
        done = sum(solution.n_iter for solution in found)
        left = options.max_iter - done if options.max_iter >= 0 else -1
        limit = passes if left < 0 or 0 <= passes < left else left
        tol = max(options.tol, ROUGH) if solver == "proximal" and not problem.qp.is_smooth else options.tol
        found.append(_solve(solver, problem, replace(options, max_iter=limit, tol=tol), clock, start, **more))
        status, gap = found[-1].status, found[-1].certificate.relative_gap
        if solver != "small":  # the next solver does better without its unfinished model
            start = found[-1]
        if status is Status.CONVERGED and gap > options.tol:
            continue
        if (status is Status.MAX_ITER and limit == left) or status not in (Status.MAX_ITER, Status.STALLED):
            break
    return _joined(found)


def _worth(passes: int) -> Callable[[int, float], bool]:
    """A function (passes done, relative gap) → whether a trial of `hybrid` continues."""
    checks = {int(np.ceil(share * passes)): enough for share, enough in TRIAL_CHECKS}

    def worth(done: int, gap: float) -> bool:
        enough = checks.get(done)
        return enough is None or (gap <= enough and not ALMOST < gap <= NEAR)

    return worth


def _joined(found: list[LinearSolution]) -> LinearSolution:
    """The best solution, with the status of the last one and the iterations, trace and stages of all."""
    trace = [point for solution in found for point in solution.trace]
    last = found[-1]
    best = last
    if last.status not in (Status.CONVERGED, *WITHOUT_MODEL):
        best = min(reversed(found), key=lambda solution: solution.certificate.relative_gap)
    n_iter = sum(solution.n_iter for solution in found)
    stages = tuple(stage for solution in found for stage in solution.stages)
    return replace(best, status=last.status, n_iter=n_iter, seconds=last.seconds, trace=trace, stages=stages)


def ranked(problem: LinearProblem, trial_passes: int = 0) -> list[tuple[str, int]]:
    """The solvers to run in order, each with its iteration limit; -1 for none.

    A solver runs if the one before it ends without converging. ``trial_passes`` limits a trial of `hybrid`; 0 to
    estimate the limit.
    """
    rows, qp = problem.rows, problem.qp
    if qp.has_open_box:
        return [("interior", -1)]
    if problem.penalty.l1 > 0:
        if rows.d <= MANY_FEATURES or (not rows.sparse and rows.n >= 2 * rows.d):
            return [("interior", -1)]
        return [("proximal", PROXIMAL_STEPS), ("interior", -1)]
    smaller = min(rows.n, rows.d)
    last = [("interior", -1)] if smaller <= FACTORED_UP_TO else []
    if rows.n * rows.d <= FEW_NUMBERS and smaller <= FEW:
        return [("small", -1), *([("newton", -1)] if problem.qp.is_smooth else []), *last]
    if problem.qp.is_smooth:
        newton, hybrid = ("newton", -1), ("hybrid", trial_passes or _passes(rows))
        return [newton, *last] if rows.n > rows.d or rows.d <= SMALL else [hybrid, newton, *last]
    if not last:
        return [("hybrid", -1)]
    passes = trial_passes or _passes(rows)
    is_tall = not rows.sparse and rows.n >= 2 * rows.d and _filled(rows) > MOSTLY_ZERO
    return last if is_tall or passes < FEWEST_PASSES else [("hybrid", passes), *last]


def _filled(rows: Rows) -> float:
    """The estimated share of nonzeros; 1 for few columns, where CSR does not pay."""
    if rows.sparse or rows.d < MANY_COLUMNS or rows.n == 0:
        return 1.0
    step = max(1, rows.n // SAMPLED_ROWS)
    part = np.asarray(rows.X[::step])
    return float(np.count_nonzero(part)) / part.size


def _mostly_zero(problem: LinearProblem, budget: int) -> LinearProblem:
    """The problem with its rows as CSR if they are dense, mostly 0 (as images are), and the copy fits the budget."""
    rows = problem.rows
    filled = _filled(rows)
    if filled > MOSTLY_ZERO or filled * rows.n * rows.d * (rows.dtype.itemsize + 4) > budget:
        return problem
    return replace(problem, rows=Rows.of(sp.csr_array(rows.X), rows.bias))


def _passes(rows: Rows) -> int:
    """The number of passes of `hybrid` that take as long as the interior-point method is expected to take."""
    X, smaller = rows.X, float(min(rows.n, rows.d))
    if isinstance(X, Csr):
        of_row = np.diff(X.indptr).astype(np.float64)
        numbers, products, steps = float(of_row.sum()), SPARSE_PRODUCT * float(of_row @ of_row), SPARSE_STEPS
    else:
        filled = _filled(rows)
        numbers = float(rows.n) * rows.d * (filled if filled <= MOSTLY_ZERO else 1.0)
        products, steps = DENSE_PRODUCT * rows.n * rows.d * smaller, DENSE_STEPS
    step = STEP_OVERHEAD + products + FACTOR * smaller**3
    return int(min(steps * step / (PASS_OVERHEAD + PASS * numbers), 1e6)) + 1


def _solve(
    name: str, problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None, **more: Any
) -> LinearSolution:
    """Import a solver by its name and run it; the solution records it as a stage."""
    solver = import_module(f"mercer.linear.{name}")
    solution: LinearSolution = solver.solve(problem, options, clock, start, **more)
    return solution if solution.stages else replace(solution, stages=(LinearStage.of(name, solution),))
