"""Newton's method for squared losses, whose primal has a continuous, piecewise linear gradient.

    min over w, b   ½ l2 |w|² + Σ conjᵢ(linearᵢ − xᵢ·w − b),     conjᵢ(t) = max over the box of  tβ − l1|β| − ½ ridge β²

With ridge > 0 the maximising β is unique and is minus the loss's derivative; D = 1/ridge where it is inside the box and
off the kink, 0 elsewhere. Each iteration solves

    (l2 + X'DX) p = X'β − l2 w

and looks for the lowest point along p, which a few scalar Newton steps find exactly. It is the finite Newton method of
Keerthi & DeCoste, JMLR 6 (2005): once the pieces are right, one step ends it. The duality gap of w and the β that
belongs to it is |X'β − l2 w|²/(2 l2), the gradient's square: no other measure is needed.

Of many samples a random part is solved roughly first, which saves all but one or two iterations on all of them.

The system is factored over features or over samples where one of them are few, else solved by conjugate gradients
with the diagonal as preconditioner, as accurately as the distance to the optimum asks for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.losses.base import Vector
from mercer.problems.certificate import Certificate
from mercer.problems.linear import LinearProblem, Rows, linear_certificate
from mercer.solvers.base import Clock, Status, TracePoint
from mercer.solvers.blas import one_blas_thread
from mercer.solvers.linear.base import LinearOptions, LinearSolution
from mercer.solvers.linear.coordinate import balanced
from mercer.solvers.linear.systems import Tall, Wide, column_squares

# up to this many features, or samples with a second derivative, the system is factored
FACTORED_UP_TO = 800
MAX_ITER = 200
CONJUGATE_STEPS = 500
LINE_STEPS = 30
# of the derivative along the step, by how much it is reduced
LINE_ACCURACY = 0.05
# samples of the part that a run starts with, at least, and for each feature; how often they must go into all; its gap
PART, PART_ROWS_PER_FEATURE, PART_OF, PART_TOL = 1000, 30, 8, 1e-2


def solve(
    problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None = None
) -> LinearSolution:
    """The optimum of the problem, from the model of another solution if one is given."""
    qp, penalty = problem.qp, problem.penalty
    if penalty.l1 > 0 or penalty.l2 <= 0:
        raise InvalidInputError(
            f"Newton's method solves problems with the penalty l2 alone, but l1 has the weight {penalty.l1:g}. "
            'Use solver="auto".'
        )
    if ((qp.ridge <= 0) & (qp.lower < qp.upper)).any():
        raise InvalidInputError(
            f"Newton's method needs a loss with a continuous derivative, which the {problem.loss.name} has not. "
            'Use a squared loss, or solver="auto".'
        )
    with one_blas_thread():  # its threads take longer to meet than to compute
        run = _Run(problem, options, clock, _of_a_part(problem, options, clock) if start is None else start)
        status = run.run()
    assert run.best is not None  # the first look publishes
    w, b, beta, proof = run.best
    return LinearSolution(w, b, beta, status, run.n_iter, clock.seconds, proof, run.trace)


def _of_a_part(problem: LinearProblem, options: LinearOptions, clock: Clock) -> LinearSolution | None:
    """The rough optimum of a random part of the samples where that is a small one: a start near that of all."""
    n, size = problem.n, max(PART, PART_ROWS_PER_FEATURE * problem.rows.d)
    if n < PART_OF * size or 0 <= options.max_iter <= MAX_ITER // 10:
        return None
    chosen = np.sort(np.random.default_rng(options.seed).integers(0, n, size))
    weight = problem.weight[chosen] * (n / size)
    part = replace(problem, rows=problem.rows.take(chosen), y=problem.y[chosen], weight=weight)
    run = _Run(part, replace(options, tol=PART_TOL), clock, None)
    run.run()
    assert run.best is not None
    w, b, beta, proof = run.best
    return LinearSolution(w, b, beta, Status.CONVERGED, run.n_iter, clock.seconds, proof)


class _Run:
    """The state of one run: u = (w, b) over the rows with a constant feature that nothing penalises for a free b."""

    def __init__(
        self, problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None
    ) -> None:
        self.problem, self.options, self.clock = problem, options, clock
        qp = problem.qp
        self.vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper
        self.rows = Rows(problem.rows.X, 1.0) if problem.intercept else problem.rows
        self.penalty = np.full(self.rows.d, float(problem.penalty.l2))
        if problem.intercept:
            self.penalty[-1] = 0.0
        self.u = np.zeros(self.rows.d)
        if start is not None:
            self.u[: len(start.w)] = start.w
            if problem.intercept:
                self.u[-1] = start.intercept
        elif problem.intercept:
            # where one class is all that there is, it is the optimum
            self.u[-1] = problem.loss.best_intercept(problem.y, np.zeros(problem.n), problem.weight)
        self.f = self._dot(self.rows, self.u)
        self.beta, self.D = np.empty(problem.n), np.empty(problem.n)
        self.n_iter = 0
        self.trace: list[TracePoint] = []
        self.best: tuple[Vector, float, Vector, Certificate] | None = None

    def run(self) -> Status:
        """Newton steps until the gap is small enough or rounding hides it."""
        from mercer._numerics.linear_newton import respond

        limit = MAX_ITER if self.options.max_iter < 0 else self.options.max_iter
        previous = np.inf
        while True:
            loss = respond(self.f, *self.vectors, self.beta, self.D)
            primal = loss + 0.5 * float((self.penalty * self.u) @ self.u)
            v = self.rows.tdot(self.beta, self.options.n_threads)
            gradient = self.penalty * self.u - v
            relative = self._gap(gradient, v, primal)
            self._report(relative, primal)
            if relative <= self.options.tol and self._publish(v):
                return Status.CONVERGED
            ended = self.clock.over() or (Status.MAX_ITER if self.n_iter >= limit else None)
            # exact arithmetic would have gone down
            if ended is None and not primal < previous:
                ended = Status.STALLED
            if ended is not None:
                self._publish(v)
                return ended
            previous = primal
            step = self._direction(gradient, relative)
            self._move(step, gradient)
            self.n_iter += 1

    def _gap(self, gradient: Vector, v: Vector, primal: float) -> float:
        """The relative gap, for a free b as if b were already best for w, which publishing sees to."""
        squared = float(gradient @ gradient) / (2 * self.problem.penalty.l2)
        return squared / max(primal, np.finfo(np.float64).tiny) if squared > 0 else 0.0

    def _direction(self, gradient: Vector, relative: float) -> Vector:
        """Solve for the Newton step."""
        threads, count = self.options.n_threads, int(np.count_nonzero(self.D))
        if count == 0 and not self.problem.intercept:
            return -gradient / self.penalty
        if self.rows.d <= FACTORED_UP_TO or count == 0:
            tall = Tall(self.rows, threads)
            if tall.factor(self.D, self.penalty):
                return tall.solve(-gradient)
        active = np.flatnonzero(self.D)
        part = self.rows if count == self.rows.n else self.rows.take(active)
        D = self.D[active]
        if count <= FACTORED_UP_TO < self.rows.d:
            wide = Wide(part, threads)
            if wide.factor(D, self.penalty):
                return wide.solve(-gradient)
        return self._conjugate_gradients(part, D, gradient, min(0.1, np.sqrt(np.sqrt(relative))))

    def _conjugate_gradients(self, part: Rows, D: Vector, gradient: Vector, reduction: float) -> Vector:
        """The step to within ``reduction`` of the gradient."""
        diagonal = self.penalty + column_squares(part, D)
        inverse = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
        step, r = np.zeros_like(gradient), -gradient
        z = inverse * r
        p, rz = z.copy(), float(r @ z)
        goal = reduction**2 * rz
        for _ in range(CONJUGATE_STEPS):
            Hp = self.penalty * p + part.tdot(D * self._dot(part, p), self.options.n_threads)
            curvature = float(p @ Hp)
            if not curvature > 0:
                break
            a = rz / curvature
            step += a * p
            r -= a * Hp
            z = inverse * r
            rz, before = float(r @ z), rz
            if rz <= goal or self.clock.over() is not None:
                break
            p *= rz / before
            p += z
        return step

    def _move(self, step: Vector, gradient: Vector) -> None:
        """Go to the lowest point along the step."""
        from mercer._numerics.linear_newton import along

        q = self._dot(self.rows, step)
        slope, bend = float((self.penalty * self.u) @ step), float((self.penalty * step) @ step)
        target = LINE_ACCURACY * abs(float(gradient @ step))
        # the derivative along the step climbs: below 0 at low, above 0 at high
        low, high, s = 0.0, np.inf, 1.0
        for _ in range(LINE_STEPS):
            first, second = along(self.f, q, s, *self.vectors)
            first, second = first + slope + s * bend, second + bend
            if abs(first) <= target or not second > 0:
                break
            low, high = (s, high) if first < 0 else (low, s)
            s -= first / second
            if not low < s < high:
                s = 0.5 * (low + high) if np.isfinite(high) else 2.0 * low + 1.0
        self.u = self.u + s * step
        self.f = self.f + s * q

    def _publish(self, v: Vector) -> bool:
        """Certify the model as it is; whether its gap is within tol."""
        problem, n_threads = self.problem, self.options.n_threads
        w, b, beta, f = self.u.copy(), 0.0, self.beta.copy(), self.f
        if problem.intercept:
            from mercer._numerics.linear_newton import respond

            w = w[:-1]
            f = f - self.u[-1]
            b = problem.loss.best_intercept(problem.y, f, problem.weight)
            respond(f + b, *self.vectors, beta, np.empty_like(beta))
            beta = balanced(problem.qp, beta)
            v = problem.rows.tdot(beta, n_threads)
        # f was moved along with u: what is certified is computed from u
        f = problem.rows.dot(w, n_threads)
        proof = linear_certificate(problem, w, b, beta, f=f, v=v)
        if self.best is None or proof.gap <= self.best[3].gap:
            self.best = w, b, beta, proof
        return proof.relative_gap <= self.options.tol

    def _dot(self, rows: Rows, u: Vector) -> Vector:
        return rows.dot(u, self.options.n_threads)

    def _report(self, gap: float, primal: float) -> None:
        """A line of the trace."""
        point = TracePoint(self.clock.seconds, self.n_iter, gap, (1.0 - gap) * primal, int(np.count_nonzero(self.D)))
        self.trace.append(point)
        self.clock.report(point)
