"""Hard margins: a model that separates the classes, or the proof that none does.

The dual of a hard margin is unbounded if the classes are not separable, and SMO would take long to show that. So a run
pauses once, after a few steps per sample, and a finite algorithm decides separability where that is cheap
(`inseparable`). Most runs on separable classes end before the pause.

Every run is verified at its end (`settle`). It may stall or diverge because the classes are not separable, or because
rounding of the kernel matrix hides the digits that separate them. Rounding may also make it seem to converge.
`mercer.svm.hard_margins.separation` decides which of these holds. If the model does not separate the classes, the
largest margin found over features replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from mercer.gram.operator import Data
from mercer.kernels import Linear
from mercer.kernels.features import Vector
from mercer.losses import HardMargin, NuHinge
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem, feasible_start, survey
from mercer.problems.solution import Options, Solution, Status, certificate
from mercer.svm.hard_margins.margin import EPS, Candidate
from mercer.svm.hard_margins.separation import Separation, TwoClasses, is_small
from mercer.svm.verify import exact_product

# the proof that the hulls of many samples meet: its tolerance, relative to kernel values, and its time limit
PROOF_TOL = 1e-13
PROOF_SECONDS = 5.0
# a model that has not converged is kept up to this relative gap: its margin is at least 0.7 of the largest
USABLE_GAP = 0.5
# steps, and steps per sample, before separability is decided: separable classes mostly need fewer than 10 n
FIRST_STEPS, FIRST_STEPS_PER_SAMPLE = 1000, 20
# seconds of the finite algorithm for n samples in d dimensions, divided by nd²
FINITE_SECONDS = 1e-8
# rounding error of each term βᵢ k(xᵢ, x) of a decision value, in units in the last place
ROUNDING = 2

Solve = Callable[[Data, DualProblem, Options, Clock, Vector | None], Solution]


def first_steps(data: Data, problem: DualProblem, options: Options) -> Options | None:
    """The options of a short first run, to be followed by `inseparable`; None if that cannot decide in seconds."""
    if not isinstance(problem.loss, HardMargin) or options.max_iter >= 0 or not data.psd:
        return None
    if not is_small((data.n, data.samples.shape[1]) if isinstance(data.kernel, Linear) else (data.n,)):
        return None
    return replace(options, max_iter=FIRST_STEPS + FIRST_STEPS_PER_SAMPLE * data.n)


def inseparable(data: Data, problem: DualProblem, clock: Clock, solution: Solution) -> Solution | None:
    """The solution with a proof that the classes are not separable; None if there is no such proof."""
    used, _, classes = _samples(data, problem)
    if clock.over_in(FINITE_SECONDS * len(used) * classes.dimensions**2) is not None:
        return None
    own = solution.beta[used]
    found = classes.verify(Candidate(coef=own, weights=own), problem.intercept)
    if found.separable:
        return None
    decision = next(iter(classes.finite(problem.intercept)))
    found = found.better(classes.verify(decision, problem.intercept))
    return _without_model(solution, found.placed(used, data.n)) if found.decided and not found.separable else None


def settle(solve: Solve, data: Data, problem: DualProblem, options: Options, solution: Solution) -> Solution:
    """Verify the solution of a hard margin. Other losses, and runs that a limit has ended, are returned as they are.

    The status of the result is CONVERGED or STALLED only if the model separates the classes. Otherwise ``separation``
    says why: the status is UNBOUNDED if it is proven that nothing separates them, else UNDECIDED.
    """
    if not isinstance(problem.loss, HardMargin):
        return solution
    if solution.status not in (Status.CONVERGED, Status.STALLED, Status.UNBOUNDED):
        return solution
    used, part, classes = _samples(data, problem)
    own = solution.beta[used]
    found = classes.verify(Candidate(coef=own, weights=own), problem.intercept)
    if found.separable and solution.status is Status.CONVERGED:
        return solution
    if not data.psd:
        # an indefinite kernel has no feature space, so nothing can be proven: β is all that is known
        return solution if solution.status is not Status.UNBOUNDED else replace(solution, separation=found)
    candidates = list[Candidate]()

    def others() -> Iterator[Candidate]:
        """Candidates of the finite algorithm if the space is small, else the nearest points of the two hulls."""
        for candidate in classes.finite(problem.intercept) if classes.is_small else (_nearest(solve, part, classes),):
            candidates.append(candidate)
            yield candidate

    found = found.better(classes.decide(others(), problem.intercept))
    if found.separable:
        return _largest(data, problem, options, solution, found, candidates, classes, used)
    if found.decided or solution.status is Status.UNBOUNDED or not _is_usable(problem, classes, used, solution):
        return _without_model(solution, found.placed(used, data.n))
    return solution


def _samples(data: Data, problem: DualProblem) -> tuple[Vector, Data, TwoClasses]:
    """(indices of the samples with a positive weight, these samples, their classes)."""
    used = np.flatnonzero(problem.weight > 0)
    part = data if len(used) == data.n else data.take(used)
    return used, part, TwoClasses.of(part, problem.y[used])


def _nearest(solve: Solve, data: Data, classes: TwoClasses) -> Candidate:
    """The vector that joins the nearest points of the two hulls: ν-SVC with νn = 2."""
    n = len(classes.y)
    problem = DualProblem(None, NuHinge(2.0 / n), classes.y, np.ones(n))
    options = Options(tol=PROOF_TOL * max(classes.rho**2, 1e-300))
    with Clock(time_limit=PROOF_SECONDS) as clock:
        beta = solve(data, problem, options, clock, None).beta
    return Candidate(coef=beta, weights=beta)


def _largest(
    data: Data,
    problem: DualProblem,
    options: Options,
    solution: Solution,
    found: Separation,
    candidates: list[Candidate],
    classes: TwoClasses,
    used: Vector,
) -> Solution:
    """The solution, or the best candidate that was found without the kernel matrix if that is better."""
    if solution.status is Status.CONVERGED:
        return solution
    models = [solution] if _is_usable(problem, classes, used, solution) else []
    for candidate in candidates:
        if candidate.coef is None:
            continue
        beta = np.zeros(data.n)
        beta[used] = candidate.coef
        model = _model(data, problem, options, solution, beta)
        models += [model] if _is_usable(problem, classes, used, model) else []
    if models:
        return min(models, key=lambda model: model.certificate.relative_gap)
    # no coefficients in float64 represent the hyperplane
    return _without_model(solution, found.placed(used, data.n))


def _model(data: Data, problem: DualProblem, options: Options, solution: Solution, beta: Vector) -> Solution:
    """The model of these coefficients, with its certificate."""
    qp, y, weight = problem.qp, problem.y, problem.weight
    beta = feasible_start(qp, beta)
    F = exact_product(data, qp, beta, options)
    seen = survey(qp, beta, F)
    b = seen.thresholds if seen.violation <= options.tol else problem.loss.best_thresholds(y, F, weight)[: qp.n_groups]
    proof = certificate(qp, problem.loss, y, weight, beta, F, b, data.psd)
    status = Status.CONVERGED if seen.violation <= options.tol else Status.STALLED
    return replace(solution, beta=beta, F=F, thresholds=b, status=status, certificate=proof)


def _is_usable(problem: DualProblem, classes: TwoClasses, used: Vector, solution: Solution) -> bool:
    """Whether every sample is on its side by more than rounding, and the gap is small enough."""
    smallest = float(np.min((problem.y * (solution.F + solution.thresholds.sum()))[used]))
    rounding = ROUNDING * EPS * classes.rho * float(np.abs(solution.beta[used]) @ classes.lengths)
    return rounding < smallest and solution.certificate.relative_gap <= USABLE_GAP


def _without_model(solution: Solution, found: Separation) -> Solution:
    proven = found.decided and not found.separable
    return replace(solution, status=Status.UNBOUNDED if proven else Status.UNDECIDED, separation=found)
