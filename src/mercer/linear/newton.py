"""Newton's method for squared losses, whose primal has a continuous, piecewise linear gradient.

    min over w, b   ½ l2 |w|² + Σ conjᵢ(linearᵢ − xᵢ·w − b),     conjᵢ(t) = max over the box of  tβ − l1|β| − ½ ridge β²

With ridge > 0 the maximising β is unique and is minus the loss's derivative; D = 1/ridge where it is inside the box and
off the kink, 0 elsewhere. Each iteration solves

    (l2 + X'DX) p = X'β − l2 w

and goes to w + p or, where that is not about the lowest point along p, to the latter, which a few scalar Newton steps
find exactly. It is the finite Newton method of Keerthi & DeCoste, JMLR 6 (2005): once the pieces are right, one step
ends it. The duality gap of w and the β that belongs to it is |X'β − l2 w|²/(2 l2), the gradient's square: no other
measure is needed.

Of many samples a random eighth is solved first, which of many starts from an eighth of its own. Its optimum is near
that of all, and its matrix is about theirs: a step on all samples that borrows it leaves a tenth to a fiftieth of the
gap, for the price of a single pass over the data, where X'DX takes as long as several.

Of sparse rows Xw is followed along a step, which needs one product, the search for the lowest point none, and X'β one
with the rows that have a β there. What is published is computed anew.

The system is factored over features or over samples where one of them are few, else solved by conjugate gradients
with the diagonal as preconditioner, as accurately as the distance to the optimum asks for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mercer._numerics.blas import one_blas_thread
from mercer._numerics.pool import run_shares
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Csr
from mercer.linear.problem import LinearProblem, Rows, balanced, linear_certificate, unsigned
from mercer.linear.solution import LinearOptions, LinearSolution
from mercer.linear.systems import Tall, Wide, column_squares
from mercer.losses.base import BoxQP, Vector
from mercer.problems.certificate import Certificate
from mercer.solvers.base import Clock, Status, TracePoint

# up to this many features, or samples with a second derivative, the system is factored
FACTORED_UP_TO = 800
MAX_ITER = 200
CONJUGATE_STEPS = 500
# of the derivative along the step, what may be left where it ends, and where one with a borrowed matrix ends
LINE_ACCURACY, ROUGH_ACCURACY, EXACT = 0.05, 0.3, 1e-9
# how often the part that a run starts from goes into all samples; its samples at least, and for each feature; the steps
# of its run at most, and the share of the objective that is too small a gain for one more
PART_OF, PART, PART_ROWS_PER_FEATURE, PART_STEPS, PART_GAIN = 8, 500, 20, 20, 1e-3
# steps for which the part's matrix is still borrowed, by what the last one has left: at most, and more for each number
# of a row
BORROWED, BORROWED_PER_NUMBER = 2.0, 1 / 30
LINE_STEPS = 30
# of the derivative by the weight of the constant feature, what may be left
SHIFT_ACCURACY = 1e-2


def solve(
    problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None = None
) -> LinearSolution:
    """The optimum of the problem, from the model of another solution if one is given.

    The iterations are Newton steps, those on the part of the samples that the run starts from too.
    """
    qp, penalty = problem.qp, problem.penalty
    if penalty.l1 > 0 or penalty.l2 <= 0:
        raise InvalidInputError(
            f"Newton's method solves problems with the penalty l2 alone, but l1 has the weight {penalty.l1:g}. "
            'Use solver="auto".'
        )
    if not qp.is_smooth:
        raise InvalidInputError(
            f"Newton's method needs a loss with a continuous derivative, which the {problem.loss.name} has not. "
            'Use a squared loss, or solver="auto".'
        )
    with one_blas_thread():  # its threads take longer to meet than to compute
        run = _Run(problem, options, clock)
        if start is None:
            run.start_from_part()
        else:
            run.start_from(start.w, start.intercept)
        status = run.run()
    assert run.best is not None  # every end publishes
    w, b, beta, proof = run.best
    return LinearSolution(w, b, beta, status, run.n_iter, clock.seconds, proof, run.trace)


class _Point(NamedTuple):
    """The objective at u = (w, b): f = Xu, β and D of each sample, X'β, the gradient and the value.

    ``followed`` says that f is that of the point before plus what a step has changed: rounding adds up.
    """

    u: Vector
    f: Vector
    beta: Vector
    D: Vector
    v: Vector
    gradient: Vector
    primal: float
    followed: bool


class _Run:
    """The state of one run: u = (w, b) over the rows with a constant feature that nothing penalises for a free b."""

    def __init__(self, problem: LinearProblem, options: LinearOptions, clock: Clock) -> None:
        self.problem, self.options, self.clock = problem, options, clock
        qp = problem.qp
        self.vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper
        self.rows = Rows(problem.rows.X, 1.0) if problem.intercept else problem.rows
        self.penalty = np.full(self.rows.d, float(problem.penalty.l2))
        # of the point where the run is, and of the one that it looks at
        self.memory = [np.empty((3, problem.n)), np.empty((3, problem.n))]
        self.start = np.zeros(self.rows.d)
        if problem.intercept:
            self.penalty[-1] = 0.0
            # where one class is all that there is, it is the optimum
            self.start[-1] = problem.loss.best_intercept(problem.y, np.zeros(problem.n), problem.weight)
        # factored over features: of the samples of another run, and of the last step
        self.borrowed: Tall | None = None
        self.system: Tall | None = None
        self.n_iter = 0
        self.trace: list[TracePoint] = []
        self.best: tuple[Vector, float, Vector, Certificate] | None = None

    def start_from(self, w: Vector, b: float) -> None:
        """Begin at a model."""
        self.start[: len(w)] = w
        if self.problem.intercept:
            self.start[-1] = b

    def start_from_part(self) -> None:
        """Begin at the rough optimum of a random part of the samples, with its matrix, where these are enough."""
        problem, options = self.problem, self.options
        n, bytes_of_row = problem.n, int(self.rows.numbers_per_row + 1) * (self.rows.dtype.itemsize + 4)
        size = min(n // PART_OF, options.budget // PART_OF // bytes_of_row)
        if size < max(PART, PART_ROWS_PER_FEATURE * problem.rows.d) or 0 <= options.max_iter <= MAX_ITER // 10:
            return
        chosen = np.sort(np.random.default_rng(options.seed).integers(0, n, size))
        weight = problem.weight[chosen] * (n / size)
        part = replace(problem, rows=problem.rows.take(chosen), y=problem.y[chosen], weight=weight)
        run = _Run(part, options, self.clock)
        run.start_from_part()
        start, system = run.rough()
        self.n_iter = run.n_iter
        if np.isfinite(start).all():
            self.start = start
            # rare features are hardly in the part
            self.borrowed = None if self.rows.sparse else system

    def rough(self) -> tuple[Vector, Tall | None]:
        """About the optimum, and the matrix of the last step if it was one over features.

        Once few samples have a second derivative these are fitted as the others would not be.
        """
        self._go(self._at(self.start))
        while True:
            step = self._direction(self._gap())
            gain = -0.5 * float(self.point.gradient @ step)
            few = np.count_nonzero(self.point.D) < PART_ROWS_PER_FEATURE * self.rows.d
            small = not gain > PART_GAIN * self.point.primal
            if few or small or self.n_iter >= PART_STEPS or self.clock.over() is not None:
                return self.point.u + step, self.borrowed or self.system
            self._move(step)
            self.borrowed = None
            self.n_iter += 1

    def run(self) -> Status:
        """Newton steps until the gap is small enough or rounding hides it."""
        limit = MAX_ITER if self.options.max_iter < 0 else self.options.max_iter
        self._go(self._at(self.start))
        primal, gap = np.inf, np.inf
        while True:
            point, before = self.point, gap
            gap = self._gap()
            self._report(gap)
            if gap <= self.options.tol and self._publish():
                return Status.CONVERGED
            ended = self.clock.over() or (Status.MAX_ITER if self.n_iter >= limit else None)
            # exact arithmetic would have gone down
            if ended is None and not point.primal < primal:
                ended = Status.STALLED
            if ended is not None:
                self._publish()
                return ended
            primal = point.primal
            self._weigh(gap, before)
            self._move(self._direction(gap))
            self.n_iter += 1

    def _weigh(self, gap: float, before: float) -> None:
        """Give the borrowed matrix back if one of all samples is expected to be quicker."""
        if self.borrowed is not None and before < np.inf:
            left = np.log(gap / self.options.tol) / np.log(before / gap) if 0 < gap < before else np.inf
            if left > BORROWED + BORROWED_PER_NUMBER * self.rows.numbers_per_row:
                self.borrowed = None

    def _at(self, u: Vector, f: Vector | None = None) -> _Point:
        """The objective at u, by one pass over the data, or by a product with the β that are not 0 if f = Xu is known.

        What was looked at before and not gone to is overwritten.
        """
        known, (f, beta, D) = f, self.memory[1]
        if known is None:
            loss, v = self._answers(u, f, beta, D)
        else:
            from mercer.linear._newton_loops import respond

            f[:] = known
            loss = respond(f, *self.vectors, beta, D)
            v = self.rows.tdot(beta, self.options.n_threads)
        pull = self.penalty * u
        return _Point(u, f, beta, D, v, pull - v, loss + 0.5 * float(pull @ u), known is not None)

    def _answers(self, u: Vector, f: Vector, beta: Vector, D: Vector) -> tuple[float, Vector]:
        """Fill f = Xu and β and D of each sample; the sum of the losses, and X'β."""
        from mercer.linear._newton_loops import dense_answers, sparse_answers

        X, bias = self.rows.X, self.rows.bias
        parts: dict[int, tuple[float, Vector]] = {}

        def part(start: int, stop: int) -> None:
            v = np.zeros(self.rows.d)
            vectors = [vector[start:stop] for vector in (*self.vectors, f, beta, D)]
            if isinstance(X, Csr):
                stored = X.indptr[start : stop + 1], unsigned(X.indices), X.data
                loss = sparse_answers(*stored, u, bias, *vectors, v)
            else:
                loss = dense_answers(X[start:stop], u, bias, *vectors, v)
            parts[start] = loss, v

        run_shares(part, self.rows.n, self.rows.threads(self.options.n_threads))
        # in the order of the rows: the same bits for the same number of threads
        found = [parts[start] for start in sorted(parts)]
        v = np.sum([v for _, v in found], axis=0) if len(found) > 1 else found[0][1]
        return sum(loss for loss, _ in found), v

    def _go(self, point: _Point) -> None:
        """Be at the point that was looked at last."""
        self.point = point
        self.memory.reverse()

    def _gap(self) -> float:
        """The relative gap, for a free b as if b were already best for w, which publishing sees to."""
        gradient, primal = self.point.gradient, self.point.primal
        squared = float(gradient @ gradient) / (2 * self.problem.penalty.l2)
        return squared / max(primal, np.finfo(np.float64).tiny) if squared > 0 else 0.0

    def _direction(self, gap: float) -> Vector:
        """Solve for the Newton step."""
        gradient, D, threads = self.point.gradient, self.point.D, self.options.n_threads
        if self.borrowed is not None:
            return self.borrowed.solve(-gradient)
        count = int(np.count_nonzero(D))
        self.system = None
        if count == 0 and not self.problem.intercept:
            return -gradient / self.penalty
        if self.rows.d <= FACTORED_UP_TO or count == 0:
            tall = Tall(self.rows, threads)
            if tall.factor(D, self.penalty):
                self.system = tall
                return tall.solve(-gradient)
        active = np.flatnonzero(D)
        part = self.rows if count == self.rows.n else self.rows.take(active)
        D = D[active]
        if count <= FACTORED_UP_TO < self.rows.d:
            wide = Wide(part, threads)
            if wide.factor(D, self.penalty):
                return wide.solve(-gradient)
        return self._conjugate_gradients(part, D, gradient, min(0.1, np.sqrt(np.sqrt(gap))))

    def _conjugate_gradients(self, part: Rows, D: Vector, gradient: Vector, reduction: float) -> Vector:
        """The step to within ``reduction`` of the gradient."""
        threads = self.options.n_threads
        diagonal = self.penalty + column_squares(part, D)
        inverse = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
        step, r = np.zeros_like(gradient), -gradient
        z = inverse * r
        p, rz = z.copy(), float(r @ z)
        goal = reduction**2 * rz
        for _ in range(CONJUGATE_STEPS):
            Hp = self.penalty * p + part.tdot(D * part.dot(p, threads), threads)
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

    def _move(self, step: Vector) -> None:
        """Go to the end of the step if that is about the lowest point along it, else to the lowest point."""
        point, threads = self.point, self.options.n_threads
        if self.rows.sparse:
            # a product with a step, and one with the rows that have a β where it ends, are less than a pass
            q = self.rows.dot(step, threads)
        else:
            end = self._at(point.u + step)
            left = LINE_ACCURACY if self.borrowed is None else ROUGH_ACCURACY
            if end.primal < point.primal and abs(end.gradient @ step) <= left * abs(point.gradient @ step):
                self._go(end)
                return
            q = end.f - point.f
        for accuracy in (LINE_ACCURACY, EXACT):
            s = self._lowest(step, q, accuracy)
            end = self._at(point.u + s * step, point.f + s * q)
            if end.primal < point.primal:
                break
        self._go(end)

    def _lowest(self, step: Vector, q: Vector, accuracy: float) -> float:
        """How far to go along the step, by which f changes by q, to about the lowest point."""
        u, f, gradient = self.point.u, self.point.f, self.point.gradient
        slope, bend = float((self.penalty * u) @ step), float((self.penalty * step) @ step)
        return lowest(f, q, slope, bend, self.vectors, accuracy * abs(float(gradient @ step)))

    def _publish(self) -> bool:
        """Certify the model as it is; whether its gap is within tol."""
        problem, n_threads = self.problem, self.options.n_threads
        if self.point.followed:
            self._go(self._at(self.point.u))
        w, b, beta = self.point.u, 0.0, self.point.beta.copy()
        f, v = self.point.f, self.point.v
        if problem.intercept:
            from mercer.linear._newton_loops import respond

            f, w = f - w[-1], w[:-1]
            b = problem.loss.best_intercept(problem.y, f, problem.weight)
            respond(f + b, *self.vectors, beta, np.empty_like(beta))
            beta = balanced(problem.qp, beta)
            v = problem.rows.tdot(beta, n_threads)
        proof = linear_certificate(problem, w, b, beta, f=f, v=v)
        if self.best is None or proof.gap <= self.best[3].gap:
            self.best = w, b, beta, proof
        return proof.relative_gap <= self.options.tol

    def _report(self, gap: float) -> None:
        """A line of the trace."""
        free = int(np.count_nonzero(self.point.D))
        point = TracePoint(self.clock.seconds, self.n_iter, gap, (1.0 - gap) * self.point.primal, free)
        self.trace.append(point)
        self.clock.report(point)


def lowest(f: Vector, q: Vector, slope: float, bend: float, vectors: tuple[Vector, ...], target: float) -> float:
    """The s about which  slope s + ½ bend s² + the losses at f + s q  is lowest, by Newton's method from s = 1.

    Its derivative there is at most ``target``. ``vectors`` are linear, l1, ridge, lower and upper of each sample.
    """
    from mercer.linear._newton_loops import along

    # the derivative climbs: below 0 at low, above 0 at high
    low, high, s = 0.0, np.inf, 1.0
    for _ in range(LINE_STEPS):
        first, second = along(f, q, s, *vectors)
        first, second = first + slope + s * bend, second + bend
        if abs(first) <= target or not second > 0:
            break
        low, high = (s, high) if first < 0 else (low, s)
        s -= first / second
        if not low < s < high:
            s = 0.5 * (low + high) if np.isfinite(high) else 2.0 * low + 1.0
    return s


def best_shift(qp: BoxQP, F: Vector, bias: float, weight: float) -> tuple[float, float]:
    """What to add to the weight of a constant feature of this value, given F = Xw, and about what that gains.

    All samples share this feature, so that each of a pass over samples moves it after the others have been moved: most
    of what w is above the optimum by is this one number, and it costs no product.
    """
    if not bias:
        return 0.0, 0.0
    from mercer.linear._newton_loops import along

    vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper
    ones = np.full(len(F), bias)
    first, second = along(F, ones, 0.0, *vectors)
    first, second = first + weight, second + 1.0
    step = -first / second
    if step == 0 or not np.isfinite(step):
        return 0.0, 0.0
    step *= lowest(F, step * ones, weight * step, step**2, vectors, SHIFT_ACCURACY * abs(first * step))
    return step, -0.5 * first * step
