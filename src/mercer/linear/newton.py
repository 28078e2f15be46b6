"""Newton's method for squared losses, whose primal has a continuous, piecewise linear gradient.

    min over w, b   ½ l2 |w|² + Σ conjᵢ(linearᵢ − xᵢ·w − b),     conjᵢ(t) = max over the box of  tβ − l1|β| − ½ ridge β²

With ridge > 0 the maximising β is unique and is the negative derivative of the loss; D = 1/ridge where β is inside the
box and not at the kink, 0 elsewhere. Each iteration solves

    (l2 + X'DX) p = X'β − l2 w

and moves to w + p, or to the minimum along p if w + p is not close to it; a few scalar Newton steps find it exactly.
This is the finite Newton method of Keerthi & DeCoste, JMLR 6 (2005): once each sample is on the right piece of its
loss, one step ends it. The duality gap of w and its β is |X'β − l2 w|²/(2 l2), a multiple of the squared gradient.

With many samples a random eighth is solved first, recursively. Its optimum is close to that of all samples, and its
matrix is close to theirs. A step on all samples that reuses ("borrows") the matrix of the part leaves a tenth to a
fiftieth of the gap and takes one pass over the data; computing X'DX takes as long as several passes.

With sparse rows f = Xw is updated along a step: this takes one product, the line search none, and X'β one product with
the rows whose β is not 0. Published values are recomputed.

The system is factored over features or over samples if either are few. Otherwise conjugate gradients with the diagonal
as preconditioner solve it, the more accurately the closer the optimum is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.thread_pool import run_shares
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Csr
from mercer.linear.linear_problem import LinearProblem, Rows, balanced, linear_certificate, unsigned
from mercer.linear.linear_solution import LinearOptions, LinearSolution
from mercer.linear.systems import Tall, Wide, column_squares
from mercer.losses.base import BoxQP, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Certificate, Status, TracePoint

# the system is factored up to this many features, or samples with D > 0
FACTORED_UP_TO = 800
MAX_ITER = 200
CONJUGATE_STEPS = 500
# the derivative at the end of a step, relative to that at its start: with the matrix of this step, with a borrowed
# matrix, and at a second attempt
LINE_ACCURACY, ROUGH_ACCURACY, EXACT = 0.05, 0.3, 1e-9
# a run starts from a part of n / PART_OF samples, if these are at least PART and this many per feature; the part's run
# ends after PART_STEPS steps, or when a step gains less than this share of the objective
PART_OF, PART, PART_ROWS_PER_FEATURE, PART_STEPS, PART_GAIN = 8, 500, 20, 20, 1e-3
# the part's matrix is borrowed as long as at most this many more steps are expected: a constant, and a term per stored
# number of a row
BORROWED, BORROWED_PER_NUMBER = 2.0, 1 / 30
LINE_STEPS = 30
# `best_shift` reduces the derivative to this share
SHIFT_ACCURACY = 1e-2


def solve(
    problem: LinearProblem,
    options: LinearOptions,
    clock: Clock,
    start: LinearSolution | None = None,
    factored_up_to: int = FACTORED_UP_TO,
) -> LinearSolution:
    """Minimise, from the model of ``start`` if given. Iterations are Newton steps, on parts of the samples too.

    Systems of more features, or samples with D > 0, than ``factored_up_to`` are solved by conjugate gradients.
    """
    qp, penalty = problem.qp, problem.penalty
    if penalty.l1 > 0 or penalty.l2 <= 0:
        raise InvalidInputError(
            f"Newton's method solves problems with the penalty l2 alone, but l1 has the weight {penalty.l1:g}. "
            'Use solver="auto".'
        )
    if not qp.is_smooth:
        raise InvalidInputError(
            f"Newton's method needs a loss with a continuous derivative, but the {problem.loss.name} has none. "
            'Use a squared loss, or solver="auto".'
        )
    with one_blas_thread():  # synchronising its threads takes longer than these small products
        run = _Run(problem, options, clock, factored_up_to)
        if start is None:
            run.start_from_part()
        else:
            run.start_from(start.w, start.intercept)
        status = run.run()
    assert run.best is not None  # every return of run certifies a model
    w, b, beta, proof = run.best
    return LinearSolution(w, b, beta, status, run.n_iter, clock.seconds, proof, run.trace)


class _Point(NamedTuple):
    """The objective at u = (w, b): f = Xu, β and D of each sample, X'β, the gradient and the value.

    ``followed`` says that f was updated from the previous point, so that rounding errors accumulate.
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
    """The state of one run. u = (w, b): a free b is the weight of an unpenalised constant feature."""

    def __init__(
        self, problem: LinearProblem, options: LinearOptions, clock: Clock, factored_up_to: int = FACTORED_UP_TO
    ) -> None:
        self.factored_up_to = factored_up_to
        self.problem, self.options, self.clock = problem, options, clock
        qp = problem.qp
        self.vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper
        self.rows = Rows(problem.rows.X, 1.0) if problem.intercept else problem.rows
        self.penalty = np.full(self.rows.d, float(problem.penalty.l2))
        # f, β and D of the current point and of the next one
        self.memory = [np.empty((3, problem.n)), np.empty((3, problem.n))]
        self.start = np.zeros(self.rows.d)
        if problem.intercept:
            self.penalty[-1] = 0.0
            # if there is only one class, this is the optimum
            self.start[-1] = problem.loss.best_intercept(problem.y, np.zeros(problem.n), problem.weight)
        # systems factored over features: one borrowed from the run on a part of the samples, and that of the last step
        self.borrowed: Tall | None = None
        self.system: Tall | None = None
        self.n_iter = 0
        self.trace: list[TracePoint] = []
        self.best: tuple[Vector, float, Vector, Certificate] | None = None

    def start_from(self, w: Vector, b: float) -> None:
        """Start at a given model."""
        self.start[: len(w)] = w
        if self.problem.intercept:
            self.start[-1] = b

    def start_from_part(self) -> None:
        """Start at the approximate optimum of a random part of the samples if that is large enough; keep its matrix."""
        problem, options = self.problem, self.options
        n, bytes_of_row = problem.n, int(self.rows.numbers_per_row + 1) * (self.rows.dtype.itemsize + 4)
        size = min(n // PART_OF, options.budget // PART_OF // bytes_of_row)
        if size < max(PART, PART_ROWS_PER_FEATURE * problem.rows.d) or 0 <= options.max_iter <= MAX_ITER // 10:
            return
        chosen = np.sort(np.random.default_rng(options.seed).integers(0, n, size))
        weight = problem.weight[chosen] * (n / size)
        part = replace(problem, rows=problem.rows.take(chosen), y=problem.y[chosen], weight=weight)
        run = _Run(part, options, self.clock, self.factored_up_to)
        run.start_from_part()
        start, system = run.rough()
        self.n_iter = run.n_iter
        if np.isfinite(start).all():
            self.start = start
            # rare features hardly occur in the part
            self.borrowed = None if self.rows.sparse else system

    def rough(self) -> tuple[Vector, Tall | None]:
        """An approximate optimum, and the system of the last step if it was factored over features.

        It stops once few samples have D > 0: more steps would overfit them.
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
        """Take Newton steps until the gap is within tol or rounding prevents progress."""
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
            # exact arithmetic would have decreased the objective
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
        """Stop borrowing a matrix if one of all samples is expected to be faster."""
        if self.borrowed is not None and before < np.inf:
            left = np.log(gap / self.options.tol) / np.log(before / gap) if 0 < gap < before else np.inf
            if left > BORROWED + BORROWED_PER_NUMBER * self.rows.numbers_per_row:
                self.borrowed = None

    def _at(self, u: Vector, f: Vector | None = None) -> _Point:
        """The objective at u: by one pass over the data, or, if f = Xu is known, by one product with the nonzero β.

        Overwrites the memory of any earlier point except the current one.
        """
        known, (f, beta, D) = f, self.memory[1]
        if known is None:
            loss, v = self._pass(u, f, beta, D)
        else:
            from mercer.linear._newton_loops import differentiate

            f[:] = known
            loss = differentiate(f, *self.vectors, beta, D)
            v = self.rows.tdot(beta, self.options.n_threads)
        pull = self.penalty * u
        return _Point(u, f, beta, D, v, pull - v, loss + 0.5 * float(pull @ u), known is not None)

    def _pass(self, u: Vector, f: Vector, beta: Vector, D: Vector) -> tuple[float, Vector]:
        """Fill f = Xu, β and D; return the sum of the losses and X'β."""
        return newton_pass(self.rows, u, self.vectors, f, beta, D, self.options.n_threads)

    def _go(self, point: _Point) -> None:
        """Make the last computed point the current one."""
        self.point = point
        self.memory.reverse()

    def _gap(self) -> float:
        """The relative gap; for a free b as if b were optimal for w, which `_publish` ensures."""
        gradient, primal = self.point.gradient, self.point.primal
        squared = float(gradient @ gradient) / (2 * self.problem.penalty.l2)
        return squared / max(primal, np.finfo(np.float64).tiny) if squared > 0 else 0.0

    def _direction(self, gap: float) -> Vector:
        """The Newton step."""
        gradient, D, threads = self.point.gradient, self.point.D, self.options.n_threads
        if self.borrowed is not None:
            return self.borrowed.solve(-gradient)
        count = int(np.count_nonzero(D))
        self.system = None
        if count == 0 and not self.problem.intercept:
            return -gradient / self.penalty
        if self.rows.d <= self.factored_up_to or count == 0:
            tall = Tall(self.rows, threads)
            if tall.factor(D, self.penalty):
                self.system = tall
                return tall.solve(-gradient)
        active = np.flatnonzero(D)
        part = self.rows if count == self.rows.n else self.rows.take(active)
        D = D[active]
        if count <= self.factored_up_to < self.rows.d:
            wide = Wide(part, threads)
            if wide.factor(D, self.penalty):
                return wide.solve(-gradient)
        return self._conjugate_gradients(part, D, gradient, min(0.1, np.sqrt(np.sqrt(gap))))

    def _conjugate_gradients(self, part: Rows, D: Vector, gradient: Vector, reduction: float) -> Vector:
        """The Newton step, with a residual of at most ``reduction`` times the gradient (in the preconditioned norm)."""
        threads = self.options.n_threads

        def product(p: Vector) -> Vector:
            return np.asarray(self.penalty * p + part.tdot(D * part.dot(p, threads), threads))

        return conjugate_gradients(product, self.penalty + column_squares(part, D), gradient, reduction, self.clock)

    def _move(self, step: Vector) -> None:
        """Move by the step if its end is close to the minimum along it, else to that minimum."""
        point, threads = self.point, self.options.n_threads
        if self.rows.sparse:
            # a product with the step and one with the rows whose β is not 0 cost less than a pass
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
        """The step length that about minimises the objective along the step; f changes by q."""
        u, f, gradient = self.point.u, self.point.f, self.point.gradient
        slope, bend = float((self.penalty * u) @ step), float((self.penalty * step) @ step)
        return lowest(f, q, slope, bend, self.vectors, accuracy * abs(float(gradient @ step)))

    def _publish(self) -> bool:
        """Certify the current model; return whether its gap is within tol."""
        problem, n_threads = self.problem, self.options.n_threads
        if self.point.followed:
            self._go(self._at(self.point.u))
        w, b, beta = self.point.u, 0.0, self.point.beta.copy()
        f, v = self.point.f, self.point.v
        if problem.intercept:
            from mercer.linear._newton_loops import differentiate

            f, w = f - w[-1], w[:-1]
            b = problem.loss.best_intercept(problem.y, f, problem.weight)
            differentiate(f + b, *self.vectors, beta, np.empty_like(beta))
            beta = balanced(problem.qp, beta)
            v = problem.rows.tdot(beta, n_threads)
        proof = linear_certificate(problem, w, b, beta, f=f, v=v)
        if self.best is None or proof.gap <= self.best[3].gap:
            self.best = w, b, beta, proof
        return proof.relative_gap <= self.options.tol

    def _report(self, gap: float) -> None:
        """Append a point to the trace and report it."""
        free = int(np.count_nonzero(self.point.D))
        point = TracePoint(self.clock.seconds, self.n_iter, gap, (1.0 - gap) * self.point.primal, free)
        self.trace.append(point)
        self.clock.report(point)


def conjugate_gradients(
    product: Callable[[Vector], Vector], diagonal: Vector, gradient: Vector, reduction: float, clock: Clock
) -> Vector:
    """Solve Hx = −gradient to a residual of ``reduction`` times the gradient, preconditioned by the diagonal of H."""
    inverse = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
    step, r = np.zeros_like(gradient), -gradient
    z = inverse * r
    p, rz = z.copy(), float(r @ z)
    goal = reduction**2 * rz
    for _ in range(CONJUGATE_STEPS):
        Hp = product(p)
        curvature = float(p @ Hp)
        if not curvature > 0:
            break
        a = rz / curvature
        step += a * p
        r -= a * Hp
        z = inverse * r
        rz, before = float(r @ z), rz
        if rz <= goal or clock.over() is not None:
            break
        p *= rz / before
        p += z
    return step


def newton_pass(
    rows: Rows, u: Vector, vectors: tuple[Vector, ...], f: Vector, beta: Vector, D: Vector, n_threads: int
) -> tuple[float, Vector]:
    """Fill f = Xu, β and D in one pass over the rows; return the sum of the losses and X'β.

    ``vectors`` are linear, l1, ridge, lower and upper.
    """
    from mercer.linear._newton_loops import dense_pass, sparse_pass

    X, bias = rows.X, rows.bias
    parts: dict[int, tuple[float, Vector]] = {} if rows.n else {0: (0.0, np.zeros(rows.d))}

    def part(start: int, stop: int) -> None:
        v = np.zeros(rows.d)
        own = [vector[start:stop] for vector in (*vectors, f, beta, D)]
        if isinstance(X, Csr):
            stored = X.indptr[start : stop + 1], unsigned(X.indices), X.data
            loss = sparse_pass(*stored, u, bias, *own, v)
        else:
            loss = dense_pass(X[start:stop], u, bias, *own, v)
        parts[start] = loss, v

    run_shares(part, rows.n, rows.threads(n_threads))
    # in the order of the rows: the same bits for the same number of threads
    found = [parts[start] for start in sorted(parts)]
    v = np.sum([v for _, v in found], axis=0) if len(found) > 1 else found[0][1]
    return sum(loss for loss, _ in found), v


def lowest(f: Vector, q: Vector, slope: float, bend: float, vectors: tuple[Vector, ...], target: float) -> float:
    """`lowest_along` for the losses at f + s q; ``vectors`` are linear, l1, ridge, lower and upper."""
    from mercer.linear._newton_loops import line_derivatives

    return lowest_along(lambda s: line_derivatives(f, q, s, *vectors), slope, bend, target)


def lowest_along(
    derivatives: Callable[[float], tuple[float, float]], slope: float, bend: float, target: float
) -> float:
    """Minimise  slope s + ½ bend s² + losses(s)  over s, by Newton's method from s = 1.

    ``derivatives`` returns the first and the second derivative of the losses. Stops where the derivative of the sum is
    at most ``target``.
    """
    # the derivative increases: it is below 0 at low and above 0 at high
    low, high, s = 0.0, np.inf, 1.0
    for _ in range(LINE_STEPS):
        first, second = derivatives(s)
        first, second = first + slope + s * bend, second + bend
        if abs(first) <= target or not second > 0:
            break
        low, high = (s, high) if first < 0 else (low, s)
        s -= first / second
        if not low < s < high:
            s = 0.5 * (low + high) if np.isfinite(high) else 2.0 * low + 1.0
    return s


def best_shift(qp: BoxQP, F: Vector, bias: float, weight: float) -> tuple[float, float]:
    """The optimal change of the weight of a constant feature of value ``bias``, given F = Xw, and its approximate gain.

    All samples share this feature, so every step of a pass changes its weight. Most of the excess of the primal is due
    to this one number, and correcting it costs no product with X.
    """
    if not bias:
        return 0.0, 0.0
    from mercer.linear._newton_loops import line_derivatives

    vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper
    ones = np.full(len(F), bias)
    first, second = line_derivatives(F, ones, 0.0, *vectors)
    first, second = first + weight, second + 1.0
    step = -first / second
    if step == 0 or not np.isfinite(step):
        return 0.0, 0.0
    step *= lowest(F, step * ones, weight * step, step**2, vectors, SHIFT_ACCURACY * abs(first * step))
    return step, -0.5 * first * step
