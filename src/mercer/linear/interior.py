"""The interior-point method for linear machines: any loss, any penalty, dense or sparse rows, a memory map.

    min over w, b   l1 |w|₁ + ½ l2 |w|² + Σ weightᵢ ℓ(yᵢ, xᵢ·w + b)

The central path (`central_path`) costs n d² per iteration. For piecewise linear losses `near_kinks` saves most of it.
Hard margins are solved as the limit of large weights: a bound that β does not reach has no effect.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv, dpotrs

from mercer._compiled.blas import one_blas_thread
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes
from mercer.linear import feature_working_set
from mercer.linear.central_path import Path, follow
from mercer.linear.linear_problem import LinearProblem, Rows, balanced, linear_certificate
from mercer.linear.linear_solution import LinearOptions, LinearSolution, LinearStage, has_time
from mercer.linear.near_kinks import WARM_UP_TO, solve_near_kinks
from mercer.linear.systems import weighted_gram
from mercer.losses import HardMargin
from mercer.losses.base import BoxQP, Index, Vector
from mercer.problems.clock import Clock
from mercer.problems.dual import DIVERGED, feasible_start
from mercer.problems.solution import Status, TracePoint
from mercer.svm.hard_margins.margin import Candidate
from mercer.svm.hard_margins.separation import TwoClasses

# share of tol for the central path: the rest is for moving β from the interior to the ends of the boxes
SHARE = 0.5
# SHARE is multiplied by this at the next attempt, if the result was not within tol
LESS = 0.02
ATTEMPTS = 3
MAX_ITER = 200
# an l1 penalty on more features than this is solved by a working set over features
FEATURES_UP_TO = 300
# up to this many samples and features, systems over features and over samples are both tried
OTHER_UP_TO = 2000
# box sizes that replace infinite ones, in units of the β that one sample alone would need
WIDE_BOXES = (1e4, 1e7, 1e10, 1e13, 1e16)
# β at this distance from an end of its box, relative to the box, is moved there if its slope agrees; the first distance
# that gives a gap within tol is taken
NEAR_AN_END = (1e-2, 1e-4, 1e-6)
# weights of at most this size, relative to the largest, are set to 0
NEGLIGIBLE = 1e-9
# weights up to this size, too, if |X'β| is well below l1
ZEROS_UP_TO = (1.0, 1e-4, 1e-7)
# matrices of size min(n, d) in memory at a time, and nanoseconds per m³ of their factorisation
MATRICES, FACTOR = 3, 0.02
# nanoseconds by which a step may exceed the time limit
TIME_SLACK = 1e8
# `_balanced` repeats its correction this often; it holds features whose |X'β| is within this share of l1
BALANCING = 3
SLACK = 1e-3
# added to the unit diagonal of the system of `_balanced`; least squares follow if the relative residual exceeds REST
SHIFT, REST = 1e-13, 1e-3


@dataclass(frozen=True, eq=False)
class Form:
    """The problem with the intercept, penalised or not, as the weight of a constant feature.

    Attributes
    ----------
    problem : the original problem.
    rows : its rows, with the constant feature.
    q, l1 : the quadratic and the l1 penalty of each feature.
    qp : the box program of the samples; its boxes are finite unless there is a ridge.
    usable : the samples with lower < upper.
    """

    problem: LinearProblem
    rows: Rows
    q: Vector
    l1: Vector
    qp: BoxQP
    usable: Index

    @classmethod
    def of(cls, problem: LinearProblem) -> Form:
        """Raise if the rows have a constant feature and the problem a free intercept: they are the same."""
        rows, penalty = problem.rows, problem.penalty
        if problem.intercept and rows.bias:
            raise InvalidInputError("The rows have a constant feature and the problem a free intercept: give one.")
        if problem.intercept:
            rows = Rows(rows.X, 1.0)
        q, l1 = np.full(rows.d, float(penalty.l2)), np.full(rows.d, float(penalty.l1))
        if problem.intercept:
            q[-1] = l1[-1] = 0.0
        qp = problem.qp
        return cls(problem, rows, q, l1, qp, np.flatnonzero(qp.lower < qp.upper))

    def split(self, w: Vector) -> tuple[Vector, float]:
        """The weights and the free intercept."""
        return (w[:-1], float(w[-1])) if self.problem.intercept else (w, 0.0)

    def part(self, samples: Index, scale: float = 1.0) -> tuple[Rows, BoxQP]:
        """Rows and program of some samples, each with ``scale`` times its weight."""
        if len(samples) == self.rows.n:
            return self.rows, self.qp
        qp = self.qp.take(samples, None)
        if scale != 1.0:
            qp = replace(qp, lower=scale * qp.lower, upper=scale * qp.upper, ridge=qp.ridge / scale)
        return self.rows.take(samples), qp


class Run:
    """The limits and the progress of one fit."""

    def __init__(self, form: Form, options: LinearOptions, clock: Clock) -> None:
        self.form, self.options, self.clock = form, options, clock
        self.limit = MAX_ITER if options.max_iter < 0 else options.max_iter
        self.n_iter = 0
        self.trace: list[TracePoint] = []
        self.stopped: Status | None = None
        # weights near the optimum and their relative gap, if known
        self.start: tuple[Vector, float] | None = None
        # when the last step began
        self.last = 0.0
        # set if the usual choice of the system did not converge
        self.other_system = False

    def follow(self, rows: Rows, qp: BoxQP, tol: float, **more: Any) -> Path:
        """Follow the central path on some rows."""

        def over(path: Path) -> bool:
            gap = path.gap / max(abs(path.primal), np.finfo(np.float64).tiny)
            point = TracePoint(self.clock.seconds, self.n_iter + path.n_iter, gap, path.primal - path.gap, rows.n)
            self.trace.append(point)
            self.clock.report(point)
            self.stopped = self.clock.over()
            # do not begin a step that would end after the time limit
            before, self.last = self.last, self.clock.seconds
            if self.stopped is None and not has_time(self.clock, 1e9 * (self.last - before) - TIME_SLACK):
                self.stopped = Status.TIME_LIMIT
            return self.stopped is not None

        self.last = self.clock.seconds

        left = max(0, self.limit - self.n_iter)
        threads = self.options.n_threads
        more |= {"tol": tol, "max_iter": left, "n_threads": threads, "other_system": self.other_system, "over": over}
        path = follow(rows, qp, self.form.q, self.form.l1, **more)
        self.n_iter += path.n_iter
        if self.stopped is None and self.n_iter >= self.limit and path.gap > tol * abs(path.primal):
            self.stopped = Status.MAX_ITER
        return path


def solve(
    problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None = None
) -> LinearSolution:
    """Minimise. ``start`` serves `near_kinks` if it is near the optimum; a central path cannot start at a solution."""
    # our own threads divide the rows; BLAS threads would only add synchronisation
    with one_blas_thread(), np.errstate(all="ignore"):
        if problem.penalty.l1 > 0 and problem.rows.d > FEATURES_UP_TO:
            return feature_working_set.solve(problem, options, clock, _solve, _near(problem, options, start))
        return _solve(problem, options, clock, start)


def _solve(
    problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None = None
) -> LinearSolution:
    """Minimise over all features at once."""
    _check_memory(problem.rows)
    form = Form.of(problem)
    run = Run(form, options, clock)
    trivial = _zero_model(form, run)
    if trivial is not None:
        return trivial
    if problem.qp.has_open_box:
        solution = _solve_open(run)
        done = solution.status is Status.CONVERGED or run.stopped is not None
        return solution if done else _decide_hard_margin(run, solution)
    near = _near(problem, options, start)
    if near is not None:
        if near.certificate.relative_gap <= options.tol:
            return replace(near, seconds=clock.seconds)
        w = np.append(near.w, near.intercept) if problem.intercept else near.w
        run.start = w, near.certificate.relative_gap
    return _solve_closed(run)


def _check_memory(rows: Rows) -> None:
    """Raise if the matrices of size min(n, d) do not fit into memory."""
    m = min(rows.n, rows.d)
    needed = MATRICES * 8 * m**2
    if m > FEATURES_UP_TO and needed > available_bytes():
        raise InvalidInputError(
            f"The interior-point method needs {needed / 1e9:.3g} GB for matrices of {m} × {m} numbers, but "
            f"{available_bytes() / 1e9:.3g} GB of memory are available. "
            'Use solver="auto", or fewer samples or features.'
        )


def _near(problem: LinearProblem, options: LinearOptions, start: LinearSolution | None) -> LinearSolution | None:
    """``start`` as a solution of this problem, if it is near the optimum and `near_kinks` can use it."""
    if start is None or problem.qp.ridge.any() or problem.qp.has_open_box:
        return None
    # the certificate scales β to |X'β| ≤ l1: meeting it exactly would take a system over all features
    beta = np.clip(start.beta, problem.qp.lower, problem.qp.upper)
    beta = balanced(problem.qp, beta) if problem.intercept else beta
    proof = linear_certificate(problem, start.w, start.intercept, beta)
    if not (proof.valid and proof.relative_gap <= WARM_UP_TO):
        return None
    return LinearSolution(start.w, start.intercept, beta, Status.CONVERGED, 0, 0.0, proof)


def _zero_model(form: Form, run: Run) -> LinearSolution | None:
    """w = 0 and β = 0 if the loss at w = 0 is 0, or if there is no time for a single step."""
    problem = form.problem
    zero, beta = np.zeros(problem.rows.d), np.zeros(problem.n)
    b = problem.loss.best_intercept(problem.y, beta, problem.weight) if problem.intercept else 0.0
    status = Status.CONVERGED
    if len(form.usable) and problem.primal(zero, b, beta) > 0:
        if has_time(run.clock, FACTOR * float(min(form.rows.n, form.rows.d)) ** 3 - TIME_SLACK):
            return None
        status = Status.TIME_LIMIT
    proof = linear_certificate(problem, zero, b, beta, f=beta, v=zero)
    return LinearSolution(zero, b, beta, status, 0, run.clock.seconds, proof)


def _solve_closed(run: Run) -> LinearSolution:
    """Solve with finite boxes: attempts of increasing accuracy until the certificate is within tol."""
    best: LinearSolution | None = None
    rows, straight = run.form.rows, not run.form.qp.ridge.any()
    if rows.n <= rows.d and straight:
        # the model may fit every sample: then no β reaches its bound, however large the weights
        best = _solve_open(run)
    tol = SHARE * run.options.tol
    for _ in range(ATTEMPTS):
        if best is not None and best.status is not Status.STALLED:
            break
        solution = _publish(run, *solve_near_kinks(run, tol))
        if best is None or solution.certificate.relative_gap < best.certificate.relative_gap:
            best = solution
        tol *= LESS
        run.start = None
        run.other_system = not run.other_system and max(rows.n, rows.d) <= OTHER_UP_TO
    assert best is not None
    if best.status is Status.STALLED and straight and rows.n > rows.d:
        # weights so large that rounding dominates: perhaps no β reaches its bound
        other = _solve_open(run)
        if other.certificate.relative_gap < best.certificate.relative_gap:
            best = other
    return replace(best, n_iter=run.n_iter)


def _solve_open(run: Run) -> LinearSolution:
    """Solve with infinite boxes (hard margins and tubes): try ever wider finite boxes until no β reaches its bound.

    A solution for the hinge loss with all β < C solves the hard margin. If the hard margin has no solution, β grows
    with C while X'β does not: normalised, it is a common point of the convex hulls of both classes.
    """
    form, tol = run.form, run.options.tol
    qp, usable = form.qp, form.usable
    largest = _largest_norm(form)
    unit = float(np.abs(qp.linear).max() * form.q.max()) / largest + float(form.l1.max()) / np.sqrt(largest)
    best: LinearSolution | None = None
    small = max(form.rows.n, form.rows.d) <= OTHER_UP_TO
    for width, other_system in itertools.product(WIDE_BOXES, (False, True) if small else (False,)):
        box = unit * width
        run.other_system = other_system
        run.form = replace(form, qp=replace(qp, lower=np.maximum(qp.lower, -box), upper=np.minimum(qp.upper, box)))
        path = run.follow(*run.form.part(usable), min(SHARE * tol, 1e-9))
        beta = np.zeros(form.rows.n)
        beta[usable] = path.beta
        run.form = form
        solution = _publish(run, path.w, beta)
        if best is None or solution.certificate.relative_gap <= best.certificate.relative_gap:
            best = solution
        if best.status is not Status.STALLED:
            break
        v = form.problem.rows.tdot(beta)
        total = float(np.abs(beta).sum())
        if qp.has_open_box and float(v @ v) <= DIVERGED * largest * total**2:
            return replace(solution, status=Status.UNBOUNDED, n_iter=run.n_iter)
    run.other_system = False
    assert best is not None
    return replace(best, n_iter=run.n_iter)


def _decide_hard_margin(run: Run, solution: LinearSolution) -> LinearSolution:
    """Decide a hard margin that has not converged: its largest margin, or the proof that the classes are not separable.

    Separability does not depend on the penalty; the largest margin is the solution for an l2 penalty.
    """
    form, problem = run.form, run.form.problem
    if not isinstance(problem.loss, HardMargin):
        return solution
    used = form.usable
    classes = TwoClasses(problem.y[used], X=problem.rows.take(used).plain())
    own = Candidate(normal=solution.w, weights=solution.beta[used])
    candidates = list(classes.finite(problem.intercept)) if classes.is_small else []
    found = classes.decide([own, *candidates], problem.intercept)
    if not found.separable:
        found = found.placed(used, problem.n)
        status = Status.UNBOUNDED if found.decided else Status.UNDECIDED
        return replace(solution, beta=found.weights, status=status, separation=found)
    if solution.status is Status.UNBOUNDED:
        solution = replace(solution, status=Status.STALLED)
    if problem.penalty.l1 > 0:
        return solution
    models = [solution, *(_model(run, candidate, used) for candidate in candidates if candidate.coef is not None)]
    best = min(models, key=lambda model: model.certificate.relative_gap)
    if best is solution:
        return solution
    stages = LinearStage.of("interior", solution), LinearStage.of("largest_margin", replace(best, n_iter=0))
    return replace(best, stages=stages)


def _model(run: Run, candidate: Candidate, used: Index) -> LinearSolution:
    """The certified model of a hyperplane with dual coefficients for the samples ``used``."""
    problem, w, b = run.form.problem, candidate.normal, candidate.bias
    assert w is not None and candidate.coef is not None
    beta = np.zeros(problem.n)
    beta[used] = problem.penalty.l2 * candidate.coef
    beta = _balanced(run.form, beta)
    proof = linear_certificate(problem, w, b, beta)
    status = Status.CONVERGED if proof.valid and proof.relative_gap <= run.options.tol else Status.STALLED
    return LinearSolution(w, b, beta, status, run.n_iter, run.clock.seconds, proof, run.trace)


def _largest_norm(form: Form) -> float:
    """The largest squared norm of a row, without the constant feature of a free intercept."""
    rows = form.problem.rows
    X: Any = rows.X
    if rows.sparse:
        squares = np.add.reduceat(np.append(X.data.astype(np.float64) ** 2, 0.0), X.indptr[:-1]) * (
            np.diff(X.indptr) > 0
        )
    else:
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return float(squares.max(initial=0.0)) + rows.bias**2 or 1.0


def _publish(run: Run, w: Vector, beta: Vector) -> LinearSolution:
    """Certify the model, with β moved to the ends of the boxes and small weights set to 0 if the gap allows it."""
    form, problem, tol = run.form, run.form.problem, run.options.tol
    threads = run.options.n_threads
    weights, intercept = form.split(w)
    f = problem.rows.dot(weights, threads)
    # try β at the ends first; if there is no time left, take β unchanged
    proof, no_time = None, run.stopped is Status.TIME_LIMIT or run.clock.over() is not None
    for near in (0.0,) if no_time else (*NEAR_AN_END, 0.0):
        candidate = _at_ends(form, form.qp.linear - f - intercept, beta, near)
        candidate = _scaled(form, candidate) if no_time else _balanced(form, candidate, threads)
        v_candidate = problem.rows.tdot(candidate, threads)
        other = linear_certificate(problem, weights, intercept, candidate, f=f, v=v_candidate)
        if proof is None or (other.valid and other.relative_gap < proof.relative_gap):
            chosen, v, proof = candidate, v_candidate, other
        if proof.valid and proof.relative_gap <= tol:
            break
    assert proof is not None
    if problem.penalty.l1 > 0 and not no_time:
        for sparse in _sparse(problem, weights, v):
            f = problem.rows.dot(sparse, threads)
            other = linear_certificate(problem, sparse, intercept, chosen, f=f, v=v)
            if other.relative_gap <= max(proof.relative_gap, tol):
                weights, proof = sparse, other
                break
    done = proof.valid and proof.relative_gap <= tol
    status = Status.CONVERGED if done else (run.stopped or Status.STALLED)
    return LinearSolution(weights, intercept, chosen, status, run.n_iter, run.clock.seconds, proof, run.trace)


def _at_ends(form: Form, t: Vector, beta: Vector, near: float) -> Vector:
    """Move β to the end of its box, or to the kink at 0, where it is near and t = linear − f agrees."""
    qp = form.qp
    room = qp.upper - qp.lower
    reach = near * np.where(np.isfinite(room), room, np.abs(beta).max(initial=0.0))
    snapped = np.where((t >= qp.l1) & (beta >= qp.upper - reach) & (qp.ridge == 0), qp.upper, beta)
    snapped = np.where((t <= -qp.l1) & (beta <= qp.lower + reach) & (qp.ridge == 0), qp.lower, snapped)
    at_kink = (np.abs(t) <= qp.l1) | ((qp.lower == 0) & (t <= 0)) | ((qp.upper == 0) & (t >= 0))
    return np.where(at_kink & (np.abs(beta) <= reach), 0.0, snapped)


def _balanced(form: Form, beta: Vector, n_threads: int = 1) -> Vector:
    """Make β feasible: in its box, |X'β| ≤ l1 for features without an l2 penalty, and Σβ = 0 for a free intercept.

    The correction is spread over the samples inside their boxes, weighted by their room.
    """
    qp, rows = form.qp, form.rows
    beta = np.clip(beta, qp.lower, qp.upper)
    if form.q.all():
        return beta
    for _ in range(BALANCING):
        v = rows.tdot(beta, n_threads)
        excess = np.where(form.q > 0, 0.0, v - np.clip(v, -form.l1, form.l1))
        if not excess.any():
            return beta
        # features well below l1 need no constraint
        held = np.flatnonzero((form.q == 0) & (np.abs(v) >= (1 - SLACK) * form.l1))
        room = np.minimum(beta - qp.lower, qp.upper - beta)
        room = np.where(np.isfinite(room), room, np.abs(beta).max(initial=0.0))
        if form.problem.intercept and len(held) == 1:
            G = np.array([[float(room @ room)]])
        else:
            G = weighted_gram(rows, room**2, n_threads)[np.ix_(held, held)]
        x = np.zeros(rows.d)
        x[held] = least(G, -excess[held])
        beta = np.clip(beta + room**2 * rows.dot(x, n_threads), qp.lower, qp.upper)
    if form.problem.intercept and abs(float(beta.sum())) > 1e-12 * float(np.abs(beta).sum()):
        beta = feasible_start(qp, near=beta)
    return beta


def _scaled(form: Form, beta: Vector) -> Vector:
    """β in its box, with Σβ = 0 for a free intercept. Solves no system: the certificate scales β to |X'β| ≤ l1."""
    beta = np.clip(beta, form.qp.lower, form.qp.upper)
    return balanced(form.qp, beta) if form.problem.intercept else beta


def least(G: Vector, r: Vector) -> Vector:
    """Solve Gx = r for a positive semidefinite G; if G is singular, x is the shortest in units of its diagonal."""
    size = np.sqrt(np.where(np.diag(G) > 0, np.diag(G), 1.0))
    return _least(G / size / size[:, None], r / size) / size


def _least(G: Vector, r: Vector) -> Vector:
    """`least` for a G with unit diagonal."""
    shifted = G.copy()
    shifted[np.diag_indices_from(G)] += SHIFT
    factor, x, failed = dposv(shifted, r)
    if not failed and np.isfinite(x).all():
        x = x + dpotrs(factor, r - G @ x)[0]
        if np.linalg.norm(r - G @ x) <= REST * np.linalg.norm(r):
            return np.asarray(x)
    return np.asarray(np.linalg.lstsq(G, r, rcond=1e-14)[0])


def _sparse(problem: LinearProblem, w: Vector, v: Vector) -> Iterator[Vector]:
    """w with zeros where l1 − |X'β| is relatively larger than |w|; each next one has fewer zeros."""
    l1 = problem.penalty.l1
    size = np.abs(w)
    largest = float(size.max(initial=0.0))
    settled = (l1 - np.abs(v)) * largest > size * l1
    for limit in ZEROS_UP_TO:
        yield np.where((settled & (size <= limit * largest)) | (size <= NEGLIGIBLE * largest), 0.0, w)
    yield np.where(settled & (size <= NEGLIGIBLE * largest), 0.0, w)
