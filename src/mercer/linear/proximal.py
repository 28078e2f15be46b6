"""The proximal Newton method for l1 penalties and elastic nets on many features.

    min over w, b   l1 |w|₁ + ½ l2 |w|² + Σ conjᵢ(linearᵢ − xᵢ·w − b)
    conjᵢ(t) = max over the box of  tβ − l1ᵢ|β| − ½ ridgeᵢ β²

Where every ridge is positive the sum is smooth: β is its negative gradient, D its second derivative. Each iteration
minimises the penalty plus the quadratic model of the sum, over the features that have a weight or ask for one (|X'β|
beyond l1), by coordinate descent (Friedman, Hastie & Tibshirani, J. Statistical Software 33, 2010; Yuan, Ho & Lin, JMLR
13, 2012) and, once signs hardly change, by the linear system of the features that have a weight; then it halves the
step until the objective falls. Samples off their curved piece (D = 0) and features at 0 cost nothing.

Losses of straight pieces have no ridge. There the method of multipliers (Rockafellar 1976) adds ½δ|β − c|² to the dual,
which is a ridge, and moves the centre c to the β found, until the gap of the problem itself is small enough; δ falls
from round to round. With the above it is the method of Li, Sun & Toh (SIAM J. Optimization 28, 2018).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dposv

from mercer._numerics.blas import one_blas_thread
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Csr
from mercer.linear.coordinate import ENTRIES_AT_A_TIME
from mercer.linear.problem import LinearProblem, Rows, balanced, linear_certificate
from mercer.linear.solution import LinearOptions, LinearSolution, has_time
from mercer.linear.systems import column_squares
from mercer.losses.base import Index, Vector
from mercer.problems.certificate import Certificate
from mercer.solvers.base import Clock, Status, TracePoint

MAX_ITER = 2000
# features of the first model at least, and of the others in multiples of those that have a weight
FIRST, GROWTH = 100, 2.0
# of the violation before the step, what the model may leave
MODEL_ACCURACY = 0.1
# violations of |X'β| ≤ l1, relative to l1, at which the gap is looked at, in units of tol, and with which rounds of the
# multipliers end, in units of the gap before it; how much less is asked for if the gap is too large
VIOLATION, ROUND_VIOLATION, CLOSER = 0.1, 1e-2, 0.2
# rounds that do not halve the gap before the run ends
PATIENCE = 15
# passes of coordinate descent before the linear system is tried at least, how often, and for how many features
PASSES, SYSTEMS, SYSTEM_UP_TO = 8, 20, 2000
# nanoseconds for each m³ of a linear system and each number that a pass reads: so many passes are no dearer
FACTOR, PASS = 0.03, 4.0
# the first δ, in units of one over the box, its factor from round to round, and the smallest relative to the first
FIRST_DELTA, LESS, SMALLEST = 5.0, 0.2, 1e-2
# share of the curvature of all samples that is added to that of the samples on curved pieces
DAMPING = 1e-4
HALVINGS, FACE_SHARES = 30, (1.0, 0.5, 0.25)
ARMIJO = 0.01
# a step that changes the objective by less, relative to it, is rounding; so many of them end the run
ROUNDING, HOPELESS = 1e-14, 5


def solve(
    problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None = None
) -> LinearSolution:
    """The optimum of the problem, from another solution if one is given."""
    if problem.qp.has_open_box:
        raise InvalidInputError(
            f"The proximal Newton method needs a finite C: the dual of the {problem.loss.name} is not bounded by "
            'itself. Use solver="interior".'
        )
    with one_blas_thread(), np.errstate(all="ignore"):
        run = _Run(problem, options, clock, start)
        status = run.run()
    assert run.best is not None  # every end publishes
    w, b, beta, proof = run.best
    return LinearSolution(w, b, beta, status, run.n_iter, clock.seconds, proof, run.trace)


class Columns(NamedTuple):
    """Some features over some samples, times the root of D, as the compiled loop reads them."""

    indptr: Any
    indices: Any
    values: Any
    n: int

    @property
    def matrix(self) -> Any:
        """Samples × features."""
        m = len(self.indptr) - 1
        if len(self.indices) == 0:
            return self.values.reshape(m, self.n).T
        return sp.csc_array((self.values, self.indices.view(np.int32), self.indptr.astype(np.int64)), shape=(self.n, m))

    @classmethod
    def of(cls, rows: Rows, samples: Index, features: Index, root: Vector) -> Columns:
        """The features (the constant one last, if it is among them) over the samples, each times its root."""
        # the smaller copy first
        part = rows.take(samples).columns(features) if rows.sparse else rows.columns(features).take(samples)
        m, n = len(features), len(samples)
        X = part.X
        if isinstance(X, Csr):
            data = X.data.astype(np.float64) * np.repeat(root, np.diff(X.indptr))
            M = sp.csr_array((data, X.indices, X.indptr), shape=X.shape).tocsc()
            indptr, indices, values = M.indptr, M.indices, M.data
            if part.bias:
                indptr = np.append(indptr, indptr[-1] + n)
                indices = np.append(indices, np.arange(n, dtype=indices.dtype))
                values = np.append(values, part.bias * root)
            return cls(indptr.astype(np.uint64), indices.astype(np.uint32), values, n)
        dense = np.empty((m, n))
        np.multiply(X.T, root, out=dense[: X.shape[1]])
        if part.bias:
            dense[-1] = part.bias * root
        return cls(np.arange(m + 1, dtype=np.uint64) * np.uint64(n), np.empty(0, np.uint32), dense.reshape(-1), n)


class _Run:
    """The state of one run: u = (w, b) over the rows with a constant feature that nothing penalises for a free b."""

    def __init__(
        self, problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None
    ) -> None:
        self.problem, self.options, self.clock = problem, options, clock
        qp, penalty = problem.qp, problem.penalty
        self.rows = Rows(problem.rows.X, 1.0) if problem.intercept else problem.rows
        d = self.rows.d
        self.q, self.l1 = np.full(d, float(penalty.l2)), np.full(d, float(penalty.l1))
        self.w = np.zeros(d)
        self.centre = np.zeros(problem.n)
        if problem.intercept:
            self.q[-1] = self.l1[-1] = 0.0
            self.w[-1] = problem.loss.best_intercept(problem.y, np.zeros(problem.n), problem.weight)
        if start is not None:
            self.w[: len(start.w)] = start.w
            if problem.intercept:
                self.w[-1] = start.intercept
            self.centre = np.clip(start.beta, qp.lower, qp.upper)
        # straight pieces get a ridge of their own
        self.straight = (qp.ridge <= 0) & (qp.lower < qp.upper)
        room = (qp.upper - qp.lower)[self.straight]
        self.smallest = 0.0
        self.delta = 0.0
        if len(room):
            self.delta = FIRST_DELTA / float(room.mean())
            self.smallest = SMALLEST * self.delta
        self.unit = float(penalty.l1) or 1.0
        self.f = self.rows.dot(self.w, options.n_threads)
        self.beta, self.D = np.empty(problem.n), np.empty(problem.n)
        self.random = np.random.default_rng(options.seed)
        self.n_iter = 0
        self.gap = 1.0
        self.trace: list[TracePoint] = []
        self.best: tuple[Vector, float, Vector, Certificate] | None = None

    def run(self) -> Status:
        """Rounds until the gap is small enough or nothing more can be done."""
        limit = MAX_ITER if self.options.max_iter < 0 else self.options.max_iter
        stuck = 0
        while True:
            self._state_round()
            ended = self._round(limit)
            before = self.gap
            if self._publish():
                return Status.CONVERGED
            if ended is not None and (ended is not Status.STALLED or self.delta == 0):
                return ended
            stuck = stuck + 1 if self.gap > 0.5 * before else 0
            if stuck >= PATIENCE or self.delta == 0:
                return Status.STALLED
            self.centre = self.beta.copy()
            self.delta = max(LESS * self.delta, self.smallest)

    def _state_round(self) -> None:
        """The program with the ridge of this round."""
        qp = self.problem.qp
        extra = np.where(self.straight, self.delta, 0.0)
        ridge = qp.ridge + extra
        self.vectors = qp.linear + extra * self.centre, qp.l1, ridge, qp.lower, qp.upper
        # the curvature of each feature if all samples were on curved pieces
        inverse = np.divide(1.0, ridge, out=np.zeros_like(ridge), where=(ridge > 0) & (qp.lower < qp.upper))
        self.steepest = column_squares(self.rows, inverse)

    def _round(self, limit: int) -> Status | None:
        """Newton steps on the smooth problem; None when it is solved as far as this round asks for."""
        from mercer.linear._newton_loops import respond

        goal = max(VIOLATION * self.options.tol, (ROUND_VIOLATION if self.delta else 0.0) * self.gap) * self.unit
        failures, stuck, lowest, least = 0, 0, np.inf, np.inf
        while True:
            loss = respond(self.f, *self.vectors, self.beta, self.D)
            value = loss + self._penalty(self.w)
            v = self.rows.tdot(self.beta, self.options.n_threads)
            r = v - self.q * self.w
            violations = np.where(
                self.w == 0, np.maximum(0.0, np.abs(r) - self.l1), np.abs(r - np.sign(self.w) * self.l1)
            )
            violation = float(violations.max(initial=0.0))
            self._report(value)
            if violation <= goal:
                if self.delta > 0 or self._publish():
                    return None
                goal *= CLOSER
            ended = self.clock.over() or (Status.MAX_ITER if self.n_iter >= limit else None)
            # exact arithmetic would lower the objective, or the violation where the objective is as low as it gets
            gained = value < lowest - ROUNDING * abs(value) or violation < 0.5 * least
            stuck = 0 if gained else stuck + 1
            lowest, least = min(lowest, value), min(least, violation)
            if ended is None and stuck >= HOPELESS:
                ended = Status.STALLED
            if ended is not None:
                return ended
            step = self._direction(r, violations)
            if not self._move(step, r, value):
                failures += 1
                if failures >= 2:
                    return Status.STALLED
            else:
                failures = 0
            self.n_iter += 1

    def _penalty(self, w: Vector) -> float:
        return float(self.l1 @ np.abs(w) + 0.5 * (self.q * w) @ w)

    def _chosen(self, violations: Vector) -> Index:
        """The features of the model: those with a weight, and of the others those that violate optimality most."""
        used = (self.w != 0) | (self.l1 == 0)
        count = int(max(FIRST, GROWTH * used.sum()))
        others = np.flatnonzero(~used & (violations > 0))
        if len(others) > count:
            others = others[np.argpartition(violations[others], -count)[-count:]]
        used[others] = True
        return np.flatnonzero(used)

    def _direction(self, r: Vector, violations: Vector) -> Vector:
        """The step to about the minimum of the quadratic model."""
        from mercer.linear._coordinate_loops import descend_features

        chosen, active = self._chosen(violations), np.flatnonzero(self.D)
        M = Columns.of(self.rows, active, chosen, np.sqrt(self.D[active]))
        q, l1, rest, w = self.q[chosen], self.l1[chosen], r[chosen], self.w[chosen]
        curvature = self._squares(M) + q
        # a feature without samples on a curved piece still gets a finite step
        damping = DAMPING * min(1.0, float(violations.max()) / self.unit) * self.steepest[chosen]
        q = q + damping
        curvature += damping
        u, z = w.copy(), np.zeros(M.n)
        order, out = np.arange(len(chosen), dtype=np.uint32), np.zeros(4)
        goal = MODEL_ACCURACY * float((violations[chosen] / np.sqrt(np.where(curvature > 0, curvature, np.inf))).max())
        for _ in range(SYSTEMS):
            members = float(min(int(np.count_nonzero(u)), SYSTEM_UP_TO))
            passes = PASSES + int(FACTOR * members**3 / (PASS * (len(M.values) + 1)))
            # the clock is asked after so many passes
            at_a_time = max(1, int(ENTRIES_AT_A_TIME / (len(M.values) + 1)))
            for done in range(0, passes, at_a_time):
                seed, count = int(self.random.integers(1, 1 << 62)), min(at_a_time, passes - done)
                descend_features(*M[:3], curvature, q, l1, rest, w, u, z, order, goal, count, seed, out)
                if out[0] <= goal or self.clock.over() is not None:
                    break
            if out[0] <= goal or not has_time(self.clock, FACTOR * members**3):
                break
            self._face(M, q, l1, rest, w, u, z)
        step = np.zeros(self.rows.d)
        step[chosen] = u - w
        return step

    def _squares(self, M: Columns) -> Vector:
        """The squared norm of each column."""
        from mercer.linear._coordinate_loops import row_norms

        squares = np.empty(len(M.indptr) - 1)
        row_norms(M.indptr, M.values, squares)
        return squares

    def _face(self, M: Columns, q: Vector, l1: Vector, r: Vector, w: Vector, u: Vector, z: Vector) -> None:
        """Go towards the minimum over the features with a weight; those whose sign changes stop at 0. Edits u and z."""
        members = np.flatnonzero((u != 0) | (l1 == 0))
        if not 0 < len(members) <= SYSTEM_UP_TO:
            return
        part = M.matrix[:, members]
        H = part.T @ part
        H = H.toarray() if sp.issparse(H) else np.array(H)
        H[np.diag_indices_from(H)] += q[members]
        g = part.T @ z + q[members] * (u[members] - w[members]) - r[members] + l1[members] * np.sign(u[members])
        size = np.sqrt(np.diagonal(H))
        H /= size * size[:, None]
        H[np.diag_indices_from(H)] += 1e-14
        _, x, failed = dposv(H, -g / size)
        if failed or not np.isfinite(x).all():
            return
        x /= size
        old, price = u[members], l1[members]
        reach = np.where((price > 0) & (old * x < 0), -old / np.where(x == 0, 1.0, x), np.inf)
        # beyond the first change of sign if that pays, else up to it
        first = min(1.0, float(reach.min()))
        for share in (*(share for share in FACE_SHARES if share > first), first):
            new = np.where(reach <= share, 0.0, old + share * x)
            change = part @ (new - old)
            both = new + old - 2.0 * w[members]
            # of the model
            fall = (0.5 * q[members] * both - r[members]) @ (new - old) + (z + 0.5 * change) @ change
            if fall + price @ (np.abs(new) - np.abs(old)) < 0 or share == first:
                u[members] = new
                z += change
                return

    def _move(self, step: Vector, r: Vector, value: float) -> bool:
        """Halve the step until the objective falls. Returns whether it did."""
        from mercer.linear._newton_loops import respond

        if not step.any():
            return False
        q = self.rows.dot(step, self.options.n_threads)
        slope = -float(r @ step) + float(self.l1 @ (np.abs(self.w + step) - np.abs(self.w)))
        share = 1.0
        beta, D = np.empty_like(self.beta), np.empty_like(self.D)
        for _ in range(HALVINGS):
            w, f = self.w + share * step, self.f + share * q
            change = respond(f, *self.vectors, beta, D) + self._penalty(w) - value
            if change <= ARMIJO * share * min(slope, 0.0) + ROUNDING * abs(value):
                self.w, self.f = w, f
                return True
            share *= 0.5
        return False

    def _publish(self) -> bool:
        """Certify the model as it is; whether its gap is within tol."""
        problem, threads = self.problem, self.options.n_threads
        from mercer.linear._newton_loops import respond

        w, b, beta = self.w, 0.0, self.beta.copy()
        f = problem.rows.dot(w[: problem.rows.d], threads)
        # f was moved along with w: its rounding ends here
        self.f = f + w[-1] if problem.intercept else f
        if problem.intercept:
            w = w[:-1]
            b = problem.loss.best_intercept(problem.y, f, problem.weight)
            if self.delta == 0:
                respond(f + b, *self.vectors, beta, np.empty_like(beta))
            beta = balanced(problem.qp, beta)
        v = problem.rows.tdot(beta, threads)
        proof = linear_certificate(problem, w, b, beta, f=f, v=v)
        if self.best is None or proof.gap <= self.best[3].gap:
            self.best = w.copy(), b, beta, proof
        self.gap = min(1.0, proof.relative_gap)
        return proof.valid and proof.relative_gap <= self.options.tol

    def _report(self, primal: float) -> None:
        """A line of the trace, with the gap of the last certificate."""
        dual, active = (1.0 - self.gap) * primal, int(np.count_nonzero(self.D))
        point = TracePoint(self.clock.seconds, self.n_iter, self.gap, dual, active)
        self.trace.append(point)
        self.clock.report(point)
