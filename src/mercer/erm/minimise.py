"""Regularised loss minimisation: certified solutions for any convex loss and penalty.

    min over f, b    g(|f|) + Σ C ℓ(y, f(x) + b)            [SSBD] (16.2)–(16.3), [L8] (2), [M5] Theorem 1

By the representer theorem f = Σ βᵢ k(xᵢ, ·). For g = ½|f|² the loss decides how: the exact solver of support vector
machines for losses whose dual is a box QP, the ridge solver for the squared loss, Newton's method for losses with two
derivatives, the method of multipliers for all others.

For another g, compare the optimality conditions: where |f| > 0 they are those of ½|f|² with c = |f| / g'(|f|) times the
weights C. The larger c, the larger is |f|, but the smaller |f|/c; so c is the only zero of
log(|f_c| / (c g'(|f_c|))), which falls. If that is negative for all c, f = 0 is the optimum.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer.erm.certificate import DualPoint, erm_certificate
from mercer.erm.kernel_matrix import matrix_in_time, stored_gram
from mercer.erm.multipliers import best_intercept, multipliers
from mercer.erm.penalties import SQUARED
from mercer.erm.sums import OneFunction
from mercer.erm.truncated_newton import newton
from mercer.gram.operator import Data
from mercer.gram.products import StoredMatrix
from mercer.kernels.features import Vector
from mercer.losses import Loss, Squared
from mercer.problems.clock import Clock
from mercer.problems.solution import Certificate, Options, Solution, Status, TracePoint
from mercer.ridge.solver import solve as solve_ridge
from mercer.svm.solve import solve_problem
from mercer.svm.verify import exact_product

# KKT violation of the first run of the box solver, relative to the root of tol, and the smallest one
FIRST_VIOLATION, LEAST_VIOLATION = 0.1, 1e-11
# problems with ½|f|² in the search for c, and the range of c
MOST_PROBLEMS, RANGE = 80, (1e-15, 1e15)
# these problems are solved to this share of tol
SHARE = 0.05
# if log(|f| / (c g')) is within this of 0, they are solved to this share of the last gap, down to the least one
NEAR, SHARPER, LEAST_GAP = 1e-3, 0.01, 1e-14
ENDED = (Status.MAX_ITER, Status.TIME_LIMIT, Status.INTERRUPTED, Status.INDEFINITE)


class Problem:
    """Samples, a loss and weights: solves ½|f|² + Σ c C ℓ for several c, with one kernel matrix."""

    def __init__(
        self, data: Data, loss: Any, y: Vector, weight: Vector, fits_intercept: bool, options: Options, clock: Clock
    ) -> None:
        self.data, self.loss, self.y, self.weight = data, loss, y, weight
        self.fits_intercept, self.options, self.clock = fits_intercept, options, clock
        self._gram: StoredMatrix | None = None
        self.steps = 0

    def gram(self) -> StoredMatrix:
        """The kernel matrix, computed once."""
        if self._gram is None:
            self._gram = stored_gram(self.data, self.options)
        return self._gram

    def has_time(self) -> bool:
        """Whether the time left allows a first solution."""
        if isinstance(self.loss, Loss):
            return self.clock.over() is None
        return matrix_in_time(self.data, self.options, self.clock)

    def solve(self, c: float, tol: float, start: Vector | None) -> tuple[Solution, DualPoint]:
        """The solution with the weights c C, and a dual point of the problem with the weights C."""
        if not isinstance(self.loss, Loss):
            with one_blas_thread():
                return self._smooth(c, tol, start)
        solution = self._ridge(c) if isinstance(self.loss, Squared) else self._box(c, tol, start)
        self.steps += solution.steps
        return solution, DualPoint(solution.beta / c, solution.F / c)

    def _ridge(self, c: float) -> Solution:
        options = replace(self.options, tol=1e-12)
        found = solve_ridge(
            self.data, self.y[:, None], c * self.weight, np.ones(1), self.fits_intercept, options, self.clock, "auto"
        )
        return found[0]

    def _box(self, c: float, tol: float, start: Vector | None) -> Solution:
        """The exact solver with smaller and smaller violations until the relative gap is small enough."""
        violation = FIRST_VIOLATION * float(np.sqrt(tol)) * min(1.0, c)
        steps, trace = 0, []
        while True:
            options = replace(self.options, tol=violation)
            if self.options.max_iter >= 0:
                options = replace(options, max_iter=max(0, self.options.max_iter - self.steps - steps))
            solution = solve_problem(
                self.data, self.loss, self.y, c * self.weight, self.fits_intercept, options, self.clock, start
            )
            steps += solution.steps
            trace += solution.trace
            done = solution.certificate.relative_gap <= tol or not solution.certificate.valid
            if done or solution.status in ENDED or violation <= LEAST_VIOLATION:
                status = solution.status
                if status in (Status.CONVERGED, Status.STALLED):
                    status = Status.CONVERGED if done else Status.STALLED
                return replace(solution, status=status, steps=steps, trace=trace)
            violation = max(0.1 * violation, LEAST_VIOLATION)
            start = solution.beta

    def _smooth(self, c: float, tol: float, start: Vector | None) -> tuple[Solution, DualPoint]:
        weight, gram = c * self.weight, self.gram()
        first = None if start is None else start[:, None]
        max_iter = self.options.max_iter
        if callable(getattr(self.loss, "second_derivative", None)):
            smooth = OneFunction(self.loss, self.y, weight)
            found = newton(gram, smooth, self.fits_intercept, first, tol, max_iter, self.clock, self.steps)
        else:
            found = multipliers(
                gram, self.loss, self.y, weight, self.fits_intercept, first, tol, max_iter, self.clock, self.steps
            )
        steps, self.steps = found.steps - self.steps, found.steps
        beta, F = found.beta[:, 0], found.F[:, 0]
        thresholds = found.intercept if self.fits_intercept else np.empty(0)
        point = DualPoint(-found.gradient[:, 0], -found.K_gradient[:, 0])
        if found.status is Status.INDEFINITE:
            self.data.psd = False
        proof = self.certify(SQUARED, beta, F, float(found.intercept[0]), point, weight)
        missed = found.status is Status.CONVERGED and proof.valid and proof.relative_gap > tol
        status = Status.STALLED if missed else found.status
        solution = Solution(beta, F, thresholds, status, steps, self.clock.seconds, proof, found.trace)
        return solution, DualPoint(point.beta / c, point.F / c)

    def certify(
        self, penalty: Any, beta: Vector, F: Vector, b: float, point: DualPoint, weight: Vector | None = None
    ) -> Certificate:
        """The certificate of f = Σ βᵢ k(xᵢ, ·) and b for this penalty and the weights C."""
        weight = self.weight if weight is None else weight
        norm = DualPoint(beta, F).norm
        known = (penalty, self.loss, self.y, weight, norm, F, b, point)
        return erm_certificate(*known, self.fits_intercept, self.data.psd)

    def at_zero(self, penalty: Any, status: Status, point: DualPoint | None = None) -> Solution:
        """The model f = 0 with the best intercept; its dual point is 0 if none is given."""
        zero = np.zeros(self.data.n)
        b = self.best_intercept(zero)
        proof = self.certify(penalty, zero, zero, b, DualPoint(zero, zero) if point is None else point)
        thresholds = np.array([b]) if self.fits_intercept else np.empty(0)
        return Solution(zero, zero, thresholds, status, 0, self.clock.seconds, proof)

    def best_intercept(self, F: Vector) -> float:
        """The best b for given values F."""
        if not self.fits_intercept:
            return 0.0
        if isinstance(self.loss, Loss):
            return float(self.loss.best_thresholds(self.y, F, self.weight)[0])
        return best_intercept(self.loss, self.y, self.weight, F, 0.0)


def minimise(problem: Problem, penalty: Any, tol: float, start: Vector | None = None) -> Solution:
    """The certified solution for a penalty, with a relative gap of at most ``tol`` where conjugates are known."""
    if not problem.has_time():
        return problem.at_zero(penalty, problem.clock.over() or Status.TIME_LIMIT)
    if penalty == SQUARED:
        return problem.solve(1.0, tol, start)[0]
    return _search(problem, penalty, tol, start)


def _search(problem: Problem, penalty: Any, tol: float, start: Vector | None) -> Solution:
    """Find the c whose solution with ½|f|² is that of the penalty, in logarithms: an interval, then secants."""
    best: Solution | None = None
    trace: list[TracePoint] = []
    at, reach, side, accuracy = 0.0, 1.0, 0, SHARE * tol
    low: list[float] | None = None
    high: list[float] | None = None
    for _ in range(MOST_PROBLEMS):
        c = float(np.exp(at))
        solution, point = problem.solve(c, accuracy, start)
        trace += solution.trace
        solution = _recertified(problem, penalty, solution, point)
        if best is None or _rank(solution) <= _rank(best):
            best = solution
        if float(penalty.derivative(0.0)) > 0.0:  # f = 0 may be the optimum
            zero = problem.at_zero(penalty, Status.STALLED, point)
            best = zero if _rank(zero) < _rank(best) else best
        norm = DualPoint(solution.beta, solution.F).norm
        slope = float(penalty.derivative(norm))
        excess = -np.inf if norm == 0 else np.inf
        if norm > 0 and slope > 0:
            excess = float(np.log(norm) - np.log(slope) - at)
        unknown = not np.isfinite(best.certificate.gap)
        if best.certificate.relative_gap <= tol or (unknown and abs(excess) <= tol):
            return replace(best, status=Status.CONVERGED, steps=problem.steps, trace=trace)
        if solution.status in ENDED:
            return replace(best, status=solution.status, steps=problem.steps, trace=trace)
        start = solution.beta
        if abs(excess) <= NEAR:
            # the norm of the dual point, which must not be too long, is known to the root of the gap only
            accuracy = max(SHARPER * accuracy, LEAST_GAP)
        if excess > 0:
            low, side = [at, excess], side + 1 if side > 0 else 1
        else:
            high, side = [at, excess], side - 1 if side < 0 else -1
        before = at
        if low is None or high is None:
            # the logarithm falls at a rate between 0 and 1 for the penalty |f|: go further than its value
            at, reach = at + float(np.clip(2.0 * excess, -reach, reach)), 4.0 * reach
        else:
            if abs(side) > 1:  # the other end has stayed: halve its value (Illinois)
                (high if side > 0 else low)[1] *= 0.5
            known = np.isfinite(high[1] - low[1])
            at = low[0] + (low[1] / (low[1] - high[1]) if known else 0.5) * (high[0] - low[0])
        at = float(np.clip(at, *np.log(RANGE)))
        if at == before:
            break
        if isinstance(problem.loss, Loss):
            start = start * np.exp(at - before)  # coefficients at their bounds stay there
    assert best is not None
    # without a conjugate this is how f = 0 is known to be the optimum: even the smallest c is too large
    is_zero = unknown and low is None and at == np.log(RANGE[0]) and not best.beta.any()
    status = Status.CONVERGED if is_zero else Status.STALLED
    return replace(best, status=status, steps=problem.steps, trace=trace)


def _recertified(problem: Problem, penalty: Any, solution: Solution, point: DualPoint) -> Solution:
    """The solution with its certificate for the penalty."""
    if isinstance(problem.loss, Loss) and not isinstance(problem.loss, Squared):
        # the box solver needs exact values only where a sample may have a loss
        qp = problem.loss.box_qp(problem.y, problem.weight, problem.fits_intercept)
        F = exact_product(problem.data, qp, solution.beta, problem.options)
        square = float(solution.beta @ solution.beta)
        scale = float(point.beta @ solution.beta) / square if square > 0 else 0.0
        solution, point = replace(solution, F=F), DualPoint(point.beta, scale * F)
    b = float(solution.thresholds.sum())
    return replace(solution, certificate=problem.certify(penalty, solution.beta, solution.F, b, point))


def _rank(solution: Solution) -> tuple[float, float]:
    """Compare solutions by the gap; without conjugates the gap is inf for all, and the primal value decides."""
    return solution.certificate.gap, solution.certificate.primal
