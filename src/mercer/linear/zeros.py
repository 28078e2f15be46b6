"""Find the weights that an l1 penalty makes exactly 0.

    min over w, b   l1 |w|₁ + ½ l2 |w|² + Σ conjᵢ(linearᵢ − xᵢ·w − b)

At the optimum vⱼ = xⱼ·β of each feature satisfies |vⱼ| ≤ l1, and wⱼ ≠ 0 only if |vⱼ| = l1. A model that is only within
tol of the optimum has small weights where the optimum has zeros. So after a run with an l1 penalty has converged, the
optimality conditions are solved to rounding:

* Squared losses have a unique β. The proximal Newton method reaches it in a few steps, and soft thresholding sets the
  weights with |vⱼ| < l1 to 0.
* For piecewise linear losses the optimum is a vertex. Given the features with a weight and the samples at a kink, w and
  β solve linear equations:

      xᵢ·w + b = linearᵢ − kinkᵢ  for samples at a kink,     X'β = l1 sign(w) + l2 w  for features with a weight.

  Both sets are estimated from the solution of the run: a weight and its slack l1 − |v| are compared, each relative to
  its scale, and the smaller one is taken to be 0; likewise for the samples. If the solution of the equations
  contradicts the sets, they are corrected. If that fails, the interior-point method first comes closer to the optimum.

The result replaces the solution of the run only if its certified gap is not larger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgetrf, dgetrs

from mercer._compiled.blas import one_blas_thread
from mercer.linear import interior, proximal
from mercer.linear.feature_working_set import beta_without_weights
from mercer.linear.linear_problem import LinearProblem, balanced, linear_certificate
from mercer.linear.linear_solution import LinearOptions, LinearSolution, LinearStage, has_time
from mercer.linear.near_kinks import ends_of
from mercer.losses.base import Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Status

Mask = NDArray[np.bool_]

# the relative gap at which the optimality conditions hold to rounding, and the tol of the interior-point method
EXACT, CLOSER = 1e-11, 1e-10
# |v| may exceed l1 by this, relative to l1
ROUNDING = 1e-12
# weights below this, relative to the largest that the objective allows, are rounding
NEGLIGIBLE = 1e-14
# limit on the number of equations, and on that of singular systems, which are solved by least squares
EQUATIONS, SINGULAR = 3000, 600
# equations with a larger relative residual contradict each other; relative singular values below this count as 0
UNMET, MISSED = 1e-9, 1e-12
# nanoseconds per m³ of the elimination
ELIMINATION = 0.1
TINY = np.finfo(np.float64).tiny


def without_weights(problem: LinearProblem, clock: Clock) -> LinearSolution | None:
    """The solution w = 0 if it satisfies the optimality conditions to rounding, else None."""
    qp, penalty, zero = problem.qp, problem.penalty, np.zeros(problem.n)
    if penalty.l1 == 0 or qp.has_open_box:
        return None
    b = problem.loss.best_intercept(problem.y, zero, problem.weight) if problem.intercept else 0.0
    beta = beta_without_weights(problem)
    if problem.intercept:
        beta = balanced(qp, beta)
    v = problem.rows.tdot(beta)
    if not np.abs(v).max(initial=0.0) <= penalty.l1 * (1.0 + ROUNDING):
        return None
    w = np.zeros(problem.rows.d)
    proof = linear_certificate(problem, w, b, beta, f=zero, v=v)
    if not (proof.valid and proof.relative_gap <= EXACT):
        return None
    stage = LinearStage("zeros", 0, float(proof.relative_gap), Status.CONVERGED)
    return LinearSolution(w, b, beta, Status.CONVERGED, 0, clock.seconds, proof, stages=(stage,))


def add_exact_zeros(
    problem: LinearProblem, options: LinearOptions, clock: Clock, found: LinearSolution
) -> LinearSolution:
    """Add exact zeros to a converged solution if they can be determined within the limits. Iterations add up."""
    if found.status is not Status.CONVERGED or found.certificate.primal <= 0 or 0 <= options.max_iter <= found.n_iter:
        return found
    best, n_iter, trace = found, 0, list(found.trace)
    with one_blas_thread(), np.errstate(all="ignore"):
        for closer in _attempts(problem, options, clock, found):
            n_iter += closer.n_iter
            trace += closer.trace
            if closer.certificate.valid and closer.certificate.gap <= best.certificate.gap:
                best = closer
            limit = 0 <= options.max_iter <= found.n_iter + n_iter
            if limit or clock.over() is not None or (best is closer and _is_exact(problem, best)):
                break
    status = Status.CONVERGED if _is_exact(problem, best) else Status.STALLED
    stage = LinearStage("zeros", n_iter, float(best.certificate.relative_gap), status)
    return replace(
        best,
        status=Status.CONVERGED,
        n_iter=found.n_iter + n_iter,
        seconds=clock.seconds,
        trace=trace,
        stages=(*found.stages, stage),
    )


def _attempts(
    problem: LinearProblem, options: LinearOptions, clock: Clock, found: LinearSolution
) -> Iterator[LinearSolution]:
    """Solutions that come closer and closer to the optimum."""
    left = options.max_iter - found.n_iter if options.max_iter >= 0 else -1
    if problem.qp.is_smooth:
        start = replace(found, w=np.where(_weight_to_slack(problem, found) > 1.0, found.w, 0.0))
        yield proximal.solve(problem, replace(options, tol=EXACT, max_iter=left), clock, start)
        return
    yield from _vertices(problem, options, clock, found)
    if options.tol > CLOSER:
        closer = interior.solve(problem, replace(options, tol=CLOSER, max_iter=left), clock, found)
        # the vertex near it first: it is better if it is exact
        yield from _vertices(problem, options, clock, closer, closer.n_iter)
        yield replace(closer, n_iter=0)


def _is_exact(problem: LinearProblem, found: LinearSolution) -> bool:
    """Whether the optimality conditions hold to rounding."""
    return found.certificate.valid and found.certificate.relative_gap <= EXACT


def _weight_to_slack(problem: LinearProblem, found: LinearSolution, v: Vector | None = None) -> Vector:
    """The ratio of |w| to the slack l1 − |v| of each feature, both relative to their scale; above 1: it has a weight.

    The scale of w is its largest entry; if all are tiny, it follows from the objective.
    """
    l1, proof, size = problem.penalty.l1, found.certificate, np.abs(found.w)
    v = problem.rows.tdot(found.beta) if v is None else v
    largest = max(float(size.max(initial=0.0)), np.sqrt(proof.relative_gap) * proof.primal / l1, TINY)
    return size / largest / np.maximum(1.0 - np.abs(v) / l1, TINY)


def _vertices(
    problem: LinearProblem, options: LinearOptions, clock: Clock, found: LinearSolution, spent: int = 0
) -> Iterator[LinearSolution]:
    """Vertices near a solution: the sets are corrected as long as the gap decreases.

    Each is one iteration; the first also counts the ``spent`` ones.
    """
    vertex, gap = _Vertex(problem, options, found), np.inf
    while 2 * vertex.used.sum() <= EQUATIONS and has_time(clock, vertex.nanoseconds) and vertex.solve():
        here = vertex.solution()
        yield replace(here, n_iter=1 + spent)
        spent = 0
        if not here.certificate.gap < gap or not vertex.correct():
            return
        gap = here.certificate.gap


class _Vertex:
    """A vertex: the features with a weight, the samples at a kink, and their w, b and β."""

    def __init__(self, problem: LinearProblem, options: LinearOptions, found: LinearSolution) -> None:
        self.problem, self.threads = problem, options.n_threads
        qp, primal = problem.qp, found.certificate.primal
        self.w, self.b, self.beta = found.w, found.intercept, found.beta
        self.negligible = NEGLIGIBLE * primal / problem.penalty.l1
        self._update()
        self.usable = qp.lower < qp.upper
        # of two kinks the one on the side of the sample
        self.kink = np.where(qp.l1 > 0, np.sign(np.where(self.beta != 0, self.beta, self.t)) * qp.l1, 0.0)
        lower, upper = self._piece()
        room = np.where(np.isfinite(upper - lower), upper - lower, np.abs(self.beta).max(initial=0.0))
        inside = np.minimum(self.beta - lower, upper - self.beta) / np.where(room > 0, room, 1.0)
        loss = np.abs(self.t - self.kink) * float(room[self.usable].sum()) / primal
        # ratios above 1 mean: the feature has a weight, the sample is at its kink
        self.of_feature = _weight_to_slack(problem, found, self.v)
        self.of_sample = np.where(self.usable, inside / np.maximum(loss, TINY), 0.0)
        self.used, self.free = self.of_feature > 1.0, self.of_sample > 1.0
        self.sign = np.sign(np.where(self.w != 0, self.w, self.v))

    @property
    def n_equations(self) -> int:
        """The number of equations and of unknowns: w, b and the β of samples at a kink."""
        return int(self.used.sum() + self.free.sum() + self.problem.intercept)

    @property
    def nanoseconds(self) -> float:
        """The approximate time to solve the equations."""
        return ELIMINATION * float(min(self.n_equations, EQUATIONS)) ** 3

    def _update(self) -> None:
        """Compute v = X'β and t = linear − f."""
        rows = self.problem.rows
        self.v = rows.tdot(self.beta, self.threads)
        self.t = self.problem.qp.linear - rows.dot(self.w, self.threads) - self.b

    def _piece(self) -> tuple[Vector, Vector]:
        """The part of each box that belongs to the kink of the sample."""
        qp = self.problem.qp
        return np.where(self.kink > 0, 0.0, qp.lower), np.where(self.kink < 0, 0.0, qp.upper)

    def solution(self) -> LinearSolution:
        """The certified model, with the optimal intercept: no equation determines it if no β is inside its box."""
        problem, qp = self.problem, self.problem.qp
        beta, f, b = np.clip(self.beta, qp.lower, qp.upper), problem.rows.dot(self.w, self.threads), 0.0
        if problem.intercept:
            b = problem.loss.best_intercept(problem.y, f, problem.weight)
        proof = linear_certificate(problem, self.w, b, beta, f=f)
        return LinearSolution(self.w, b, beta, Status.CONVERGED, 1, 0.0, proof)

    def solve(self) -> bool:
        """Solve the equations; if they are underdetermined, by the smallest change of w, b and β."""
        problem, features = self.problem, np.flatnonzero(self.used)
        qp, rows, penalty = problem.qp, problem.rows, problem.penalty
        k, m = len(features), len(features) + problem.intercept
        u = np.append(self.w[features], self.b) if problem.intercept else self.w[features]
        # if very many samples are at a kink, use enough of them to determine w and b: the others keep their β
        moved = self.free if self.n_equations <= SINGULAR else _largest(self.of_sample, self.free, m)
        samples = np.flatnonzero(moved)
        held = np.where(self.usable & ~self.free, ends_of(qp, self.t), np.where(moved, 0.0, self.beta))
        A, price, quadratic = np.ones((len(samples), m)), np.zeros(m), np.zeros(m)
        A[:, :k] = rows.take(samples).columns(features).dense()
        price[:k] = penalty.l1 * self.sign[features] - rows.tdot(held, self.threads)[features]
        price[k:] = -float(held.sum())
        quadratic[:k] = penalty.l2
        M = np.block([[-np.diag(quadratic), A.T], [A, np.zeros((len(samples), len(samples)))]])
        beta = self.beta[samples]
        missing = np.concatenate([price + quadratic * u - A.T @ beta, qp.linear[samples] - self.kink[samples] - A @ u])
        change = _solve_nearest(M, missing)
        if change is None or not np.isfinite(change).all():
            return False
        u, beta = u + change[:m], beta + change[m:]
        self.w, self.beta = np.zeros(rows.d), held
        self.w[features] = np.where(np.abs(u[:k]) <= self.negligible, 0.0, u[:k])
        self.b = float(u[-1]) if problem.intercept else 0.0
        self.beta[samples] = beta
        self._update()
        return True

    def correct(self) -> bool:
        """Correct the sets where the solution contradicts them; False if nothing changed."""
        qp, l1, l2 = self.problem.qp, self.problem.penalty.l1, self.problem.penalty.l2
        unit = float(np.abs(qp.linear).mean() + qp.l1.mean())
        # unsatisfied equations: there are more than unknowns, so drop the least certain ones
        n_features, n_samples = int(self.used.sum()) + self.problem.intercept, int(self.free.sum())
        if n_samples > n_features and np.abs((self.t - self.kink)[self.free]).max(initial=0.0) > UNMET * unit:
            self.free = _largest(self.of_sample, self.free, n_features)
            return True
        unmet = np.abs(self.v - l1 * self.sign - l2 * self.w)[self.used]
        if n_features > n_samples and unmet.max(initial=0.0) > UNMET * l1:
            self.used = _largest(self.of_feature, self.used, max(0, n_samples - self.problem.intercept))
            return True
        # remove weights that are 0 or have the wrong sign, add features with |v| > l1; likewise for the samples
        lower, upper = self._piece()
        wrong = self.used & (self.w * self.sign <= 0)
        beyond = ~self.used & (np.abs(self.v) > l1 * (1.0 + ROUNDING))
        outside = self.free & ((self.beta < lower) | (self.beta > upper))
        at_kink = np.abs(np.abs(self.t) - qp.l1) <= ROUNDING * unit
        crossed = ~self.free & self.usable & ~at_kink & (ends_of(qp, self.t) != self.beta)
        self.used, self.free = (self.used & ~wrong) | beyond, (self.free & ~outside) | crossed
        self.sign = np.where(beyond, np.sign(self.v), self.sign)
        self.kink = np.where(crossed & (qp.l1 > 0), np.sign(self.t) * qp.l1, self.kink)
        return bool(wrong.any() or beyond.any() or outside.any() or crossed.any())


def _largest(value: Vector, among: Mask, count: int) -> Mask:
    """A mask of the ``count`` largest values among those of a mask."""
    chosen = np.zeros(len(value), dtype=bool)
    order = np.argsort(np.where(among, -value, np.inf), kind="stable")
    chosen[order[: min(count, int(among.sum()))]] = True
    return chosen


def _solve_nearest(M: Vector, r: Vector) -> Vector | None:
    """Solve Mx = r; a singular system by least squares with the shortest x, or None if it is large."""
    if len(r) == 0:
        return r
    size = np.abs(M).max(axis=1)
    size = 1.0 / np.sqrt(np.where(size > 0, size, 1.0))
    M, r = M * size * size[:, None], size * r
    factor, pivots, failed = dgetrf(M)
    if not failed:
        x = dgetrs(factor, pivots, r)[0]
        x = x + dgetrs(factor, pivots, r - M @ x)[0]
        if np.linalg.norm(M @ x - r) <= MISSED * np.linalg.norm(r):
            return np.asarray(size * x)
    if len(r) > SINGULAR:
        return None
    x = np.linalg.lstsq(M, r, rcond=MISSED)[0]
    return np.asarray(size * (x + np.linalg.lstsq(M, r - M @ x, rcond=MISSED)[0]))
