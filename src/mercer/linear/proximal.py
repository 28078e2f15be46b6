"""The proximal Newton method for l1 penalties and elastic nets on many features.

    min over w, b   l1 |w|₁ + ½ l2 |w|² + Σ conjᵢ(linearᵢ − xᵢ·w − b)
    conjᵢ(t) = max over the box of  tβ − l1ᵢ|β| − ½ ridgeᵢ β²

If every ridge is positive, the sum is smooth: β is its negative gradient, D its second derivative. Each iteration
minimises the penalty plus the quadratic model of the sum over the features with wⱼ ≠ 0 or |X'β|ⱼ > l1. It does so by
coordinate descent (Friedman, Hastie & Tibshirani, J. Statistical Software 33, 2010; Yuan, Ho & Lin, JMLR 13, 2012) and,
once few signs change, by solving the linear system of the features with a weight. Then it halves the step until the
objective decreases. Samples with D = 0 and features with weight 0 cost nothing.

Piecewise linear losses have no ridge. For them the method of multipliers (Rockafellar 1976) adds a ridge ½δ|β − c|² to
the dual. After each round the centre c is set to the β found and δ is reduced, until the gap of the original
problem is within tol. Together this is the method of Li, Sun & Toh (SIAM J. Optimization 28, 2018).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dposv

from mercer._compiled.blas import one_blas_thread
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Csr
from mercer.linear.linear_problem import LinearProblem, Rows, balanced, linear_certificate
from mercer.linear.linear_solution import LinearOptions, LinearSolution, has_time
from mercer.linear.systems import column_squares
from mercer.losses.base import Index, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Certificate, Status, TracePoint

MAX_ITER = 2000
# new features per quadratic model: at least FIRST, and GROWTH times those with a weight
FIRST, GROWTH = 100, 2.0
# a model is minimised until its violation is this share of that before the step
MODEL_ACCURACY = 0.1
# the gap is computed when the violation of |X'β| ≤ l1, relative to l1, is at most VIOLATION · tol; a round of the
# multipliers ends at ROUND_VIOLATION times the last gap; if the gap is too large, the violation must fall by CLOSER
VIOLATION, ROUND_VIOLATION, CLOSER = 0.1, 1e-2, 0.2
# the run ends after this many rounds in a row that do not halve the gap
PATIENCE = 15
# coordinate descent makes at least this many passes before each linear system; limits on the number of systems and
# their size
PASSES, SYSTEMS, SYSTEM_UP_TO = 8, 20, 2000
# nanoseconds per m³ of a linear system and per number that a pass reads: more passes are made if the system costs more
FACTOR, PASS = 0.03, 4.0
# the first δ in units of 1 / box, its factor from round to round, and its lower limit relative to the first
FIRST_DELTA, LESS, SMALLEST = 5.0, 0.2, 1e-5
# damping, relative to the curvature if all samples had D > 0
DAMPING = 1e-4
# dense rows copied at a time, so that they stay in the cache
ROWS_AT_A_TIME = 512
HALVINGS, FACE_SHARES = 30, (1.0, 0.5, 0.25)
ARMIJO = 0.01
# a smaller relative decrease of the objective is rounding; this many in a row end the run
ROUNDING, STALLED_AFTER = 1e-14, 5


def solve(
    problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None = None
) -> LinearSolution:
    """Minimise, from the model and β of ``start`` if given. Iterations are proximal Newton steps."""
    if problem.qp.has_open_box:
        raise InvalidInputError(
            f"The proximal Newton method needs a finite C: the dual variables of the {problem.loss.name} have no other "
            'bound. Use solver="interior".'
        )
    with one_blas_thread(), np.errstate(all="ignore"):
        run = _Run(problem, options, clock, start)
        status = run.run()
    assert run.best is not None  # every return of run certifies a model
    w, b, beta, proof = run.best
    return LinearSolution(w, b, beta, status, run.n_iter, clock.seconds, proof, run.trace)


class Columns(NamedTuple):
    """Columns √D X of some features and samples, in the format of the compiled loop."""

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
        """The columns of these features (the constant one last), restricted to these samples and scaled by ``root``."""
        m, n = len(features), len(samples)
        if isinstance(rows.X, Csr):
            part = rows.take(samples).columns(features)  # the smaller copy first
            X = part.X
            assert isinstance(X, Csr)
            data = X.data.astype(np.float64) * np.repeat(root, np.diff(X.indptr))
            M = sp.csr_array((data, X.indices, X.indptr), shape=X.shape).tocsc()
            indptr, indices, values = M.indptr, M.indices, M.data
            if part.bias:
                indptr = np.append(indptr, indptr[-1] + n)
                indices = np.append(indices, np.arange(n, dtype=indices.dtype))
                values = np.append(values, part.bias * root)
            return cls(indptr.astype(np.uint64), indices.astype(np.uint32), values, n)
        dense = np.empty((m, n))
        stored = features[features < rows.X.shape[1]]
        for i in range(0, n, ROWS_AT_A_TIME):
            own = slice(i, i + ROWS_AT_A_TIME)
            np.multiply(rows.X[samples[own, None], stored].T, root[own], out=dense[: len(stored), own])
        if len(stored) < m:
            dense[-1] = rows.bias * root
        return cls(np.arange(m + 1, dtype=np.uint64) * np.uint64(n), np.empty(0, np.uint32), dense.reshape(-1), n)


class _Run:
    """The state of one run. A free b is the weight of an unpenalised constant feature, the last of w."""

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
        # samples without a ridge get one
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
        self.n_iter, self.iteration_seconds = 0, 0.0
        self.gap = 1.0
        self.trace: list[TracePoint] = []
        self.best: tuple[Vector, float, Vector, Certificate] | None = None

    def run(self) -> Status:
        """Run rounds of the method of multipliers until the gap is within tol or the run stalls."""
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
        """Set up the program with the ridge of this round."""
        qp = self.problem.qp
        extra = np.where(self.straight, self.delta, 0.0)
        ridge = qp.ridge + extra
        self.vectors = qp.linear + extra * self.centre, qp.l1, ridge, qp.lower, qp.upper
        # the curvature of each feature if all samples had D > 0
        inverse = np.divide(1.0, ridge, out=np.zeros_like(ridge), where=(ridge > 0) & (qp.lower < qp.upper))
        self.steepest = column_squares(self.rows, inverse)

    def _round(self, limit: int) -> Status | None:
        """Take Newton steps on the smooth problem; None if it is solved to the accuracy of this round."""
        from mercer.linear._newton_loops import differentiate

        goal = max(VIOLATION * self.options.tol, (ROUND_VIOLATION if self.delta else 0.0) * self.gap) * self.unit
        failures, stuck, lowest, least = 0, 0, np.inf, np.inf
        while True:
            begun = self.clock.seconds
            loss = differentiate(self.f, *self.vectors, self.beta, self.D)
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
            # start no iteration that is likely to end too late
            ended = self.clock.over_in(self.iteration_seconds)
            if ended is None and self.n_iter >= limit:
                ended = Status.MAX_ITER
            # exact arithmetic would decrease the objective or, at its minimum, the violation
            gained = value < lowest - ROUNDING * abs(value) or violation < 0.5 * least
            stuck = 0 if gained else stuck + 1
            lowest, least = min(lowest, value), min(least, violation)
            if ended is None and stuck >= STALLED_AFTER:
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
            self.iteration_seconds = self.clock.seconds - begun

    def _penalty(self, w: Vector) -> float:
        return float(self.l1 @ np.abs(w) + 0.5 * (self.q * w) @ w)

    def _chosen(self, violations: Vector) -> Index:
        """The features of the quadratic model: those with a weight, and the largest violations among the others."""
        used = (self.w != 0) | (self.l1 == 0)
        count = int(max(FIRST, GROWTH * used.sum()))
        others = np.flatnonzero(~used & (violations > 0))
        if len(others) > count:
            others = others[np.argpartition(violations[others], -count)[-count:]]
        used[others] = True
        return np.flatnonzero(used)

    def _direction(self, r: Vector, violations: Vector) -> Vector:
        """The step to the approximate minimum of the quadratic model."""
        from mercer.linear._coordinate_loops import descend_features

        chosen, active = self._chosen(violations), np.flatnonzero(self.D)
        M = Columns.of(self.rows, active, chosen, np.sqrt(self.D[active]))
        q, l1, rest, w = self.q[chosen], self.l1[chosen], r[chosen], self.w[chosen]
        curvature = self._squares(M) + q
        # keeps the step of a feature finite if none of its samples has D > 0
        damping = DAMPING * min(1.0, float(violations.max()) / self.unit) * self.steepest[chosen]
        q = q + damping
        curvature += damping
        u, z = w.copy(), np.zeros(M.n)
        order, out = np.arange(len(chosen), dtype=np.uint32), np.zeros(4)
        goal = MODEL_ACCURACY * float((violations[chosen] / np.sqrt(np.where(curvature > 0, curvature, np.inf))).max())
        for _ in range(SYSTEMS):
            members = float(min(int(np.count_nonzero(u)), SYSTEM_UP_TO))
            passes = PASSES + int(FACTOR * members**3 / (PASS * (len(M.values) + 1)))
            # passes between two checks of the clock
            at_a_time = max(1, int(self.options.entries_at_a_time / (len(M.values) + 1)))
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
        """Move towards the minimum over the features with a weight; weights stop at 0. Edits u and z."""
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
        # beyond the first change of sign if that decreases the model, else up to it
        first = min(1.0, float(reach.min()))
        for share in (*(share for share in FACE_SHARES if share > first), first):
            new = np.where(reach <= share, 0.0, old + share * x)
            change = part @ (new - old)
            both = new + old - 2.0 * w[members]
            # the change of the model without the l1 term
            fall = (0.5 * q[members] * both - r[members]) @ (new - old) + (z + 0.5 * change) @ change
            if fall + price @ (np.abs(new) - np.abs(old)) < 0 or share == first:
                u[members] = new
                z += change
                return

    def _move(self, step: Vector, r: Vector, value: float) -> bool:
        """Halve the step until the objective decreases. Returns whether it did."""
        from mercer.linear._newton_loops import differentiate

        if not step.any():
            return False
        q = self.rows.dot(step, self.options.n_threads)
        slope = -float(r @ step) + float(self.l1 @ (np.abs(self.w + step) - np.abs(self.w)))
        share = 1.0
        beta, D = np.empty_like(self.beta), np.empty_like(self.D)
        for _ in range(HALVINGS):
            w, f = self.w + share * step, self.f + share * q
            change = differentiate(f, *self.vectors, beta, D) + self._penalty(w) - value
            if change <= ARMIJO * share * min(slope, 0.0) + ROUNDING * abs(value):
                self.w, self.f = w, f
                return True
            share *= 0.5
        return False

    def _publish(self) -> bool:
        """Certify the current model; return whether its gap is within tol."""
        problem, threads = self.problem, self.options.n_threads
        from mercer.linear._newton_loops import differentiate

        w, b, beta = self.w, 0.0, self.beta.copy()
        f = problem.rows.dot(w[: problem.rows.d], threads)
        # f was updated step by step: discard its rounding errors
        self.f = f + w[-1] if problem.intercept else f
        if problem.intercept:
            w = w[:-1]
            b = problem.loss.best_intercept(problem.y, f, problem.weight)
            if self.delta == 0:
                differentiate(f + b, *self.vectors, beta, np.empty_like(beta))
            beta = balanced(problem.qp, beta)
        v = problem.rows.tdot(beta, threads)
        proof = linear_certificate(problem, w, b, beta, f=f, v=v)
        if self.best is None or proof.gap <= self.best[3].gap:
            self.best = w.copy(), b, beta, proof
        self.gap = min(1.0, proof.relative_gap)
        return proof.valid and proof.relative_gap <= self.options.tol

    def _report(self, primal: float) -> None:
        """Append a point with the last certified gap to the trace and report it."""
        dual, active = (1.0 - self.gap) * primal, int(np.count_nonzero(self.D))
        point = TracePoint(self.clock.seconds, self.n_iter, self.gap, dual, active)
        self.trace.append(point)
        self.clock.report(point)
