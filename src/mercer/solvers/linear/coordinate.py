"""Dual coordinate descent, for sparse data of many features.

    min  ½|X'β|² − linear'β + Σ l1|β| + ½Σ ridge β²     s.t.  lower ≤ β ≤ upper  (Σβ = 0 if the intercept is free)

Passes over the variables, each moved to its optimum while the others stay ([M5] "coordinate ascent"; Hsieh et al., ICML
25, 2008). Three things make high accuracy and large C affordable:

* Shrinking: a variable that rests at a bound more safely than the last pass violated optimality is left out until
  the next look at all samples.
* Once the free variables hardly change, Newton's step on them, by conjugate gradients, clipped to the box: at most as
  much work as the passes before it took.
* What is left of a small or ill-conditioned problem is solved by the interior-point method on its dense matrix.

A run ends when the duality gap, computed anew from β at all samples, is small enough. With squared losses the published
weight of a constant feature is the best for the others: the passes leave most of the excess of the primal there.

A free intercept is the multiplier of Σβ = 0: the program with ½σ(Σβ)² added is that of a constant feature of value √σ,
and after each pass the intercept moves by σΣβ (the method of multipliers, Bertsekas 1982).

The rules of choice are those of [M5]: "round-robin" in the order of the samples; "random", each once in a pass, in an
order drawn anew for it (on text this takes a tenth of the passes of any fixed order); "greedy", those whose step gains
most first, an eighth of the variables in a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Csr
from mercer.losses.base import BoxQP, Index, Vector
from mercer.problems.certificate import Certificate
from mercer.problems.linear import LinearProblem, Rows, linear_certificate
from mercer.solvers.base import Clock, Status, TracePoint
from mercer.solvers.blas import one_blas_thread
from mercer.solvers.interior import interior_point
from mercer.solvers.linear.base import LinearOptions, LinearSolution
from mercer.solvers.linear.line import best_shift

RULES = ("round-robin", "random", "greedy")
# share of the variables that a greedy pass visits
GREEDY_SHARE = 8
# a face has settled when at most this share of its variables has met or left a bound in a pass
SETTLED = 0.02
# Newton's steps begin at this relative gap, or after so many passes: earlier ones meet too many bounds
NEAR, LATE = 3e-3, 40
# steps of the conjugate gradients: doubled after a step that few bounds cut short, halved after others
FEWEST_STEPS = 16
MOST_STEPS = 512
# the gap that they leave, relative to what is asked of the run
FACE_GAP = 0.3
# the visit of a variable costs as much as reading this many entries of X
ROW_COST = 20.0
# up to this many active variables the interior-point method may end the run
DENSE_UP_TO = 1500
# its cost in entries of X read, for one variable: about 20 factorisations
DENSE_COST = 4.0
# passes that gain less than rounding, relative to the objective, and lower no gap, after which other means are tried
HOPELESS = 20
ROUNDING = 1e-16
# how often they may leave more than half of the gap; they are not tried again where this share of all is left
RESCUES, USELESS = 3, 0.9
MAX_PASSES = 100_000
# with losses that have a derivative the gap is this share of what the last two passes let expect
SMOOTH = 0.7


class Storage:
    """The rows as the compiled loops read them: see `mercer._numerics.coordinate`."""

    def __init__(self, rows: Rows) -> None:
        X = rows.X
        if isinstance(X, Csr):
            self.indptr = X.indptr.astype(np.uint64)
            # unsigned, since a compiled loop tests signed ones for negative values
            self.indices = X.indices.view(np.uint32) if X.indices.dtype == np.int32 else X.indices.astype(np.uint32)
            self.values = X.data
        else:
            self.indptr = np.arange(rows.n + 1, dtype=np.uint64) * np.uint64(X.shape[1])
            self.indices = np.empty(0, np.uint32)
            self.values = np.asarray(X).reshape(-1)
        self.stored = int(X.shape[1])

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The first arguments of the compiled loops."""
        return self.indptr, self.indices, self.values


def solve(
    problem: LinearProblem,
    options: LinearOptions,
    clock: Clock,
    start: LinearSolution | None = None,
    worth: Callable[[int, float], bool] | None = None,
) -> LinearSolution:
    """The optimum of the problem, from the β of another solution if one is given.

    ``worth`` is asked after each pass, with their number and the relative gap, whether the run is worth going on; one
    that is not has stalled.
    """
    if problem.penalty.l1 > 0 or problem.penalty.l2 <= 0:
        raise InvalidInputError(
            "Coordinate descent solves problems with the penalty l2 alone, but l1 has the weight "
            f'{problem.penalty.l1:g}. Use solver="auto".'
        )
    if problem.qp.has_open_box:
        raise InvalidInputError(
            f"Coordinate descent needs a finite C: the dual of the {problem.loss.name} is not bounded by itself. "
            'Use solver="interior".'
        )
    if options.rule not in RULES:
        raise InvalidInputError(f"rule={options.rule!r} is not known: choose one of {', '.join(map(repr, RULES))}.")
    with one_blas_thread():
        run = _Run(problem, options, clock, None if start is None else start.beta)
        status = run.run(worth)
    assert run.best is not None  # every end publishes
    w, b, beta, proof = run.best
    return LinearSolution(w, b, beta, status, run.passes, clock.seconds, proof, run.trace)


class _Run:
    """The state of one run. All but the published solution is that of the problem divided by l2."""

    def __init__(self, problem: LinearProblem, options: LinearOptions, clock: Clock, start: Vector | None) -> None:
        from mercer._numerics import coordinate as loops

        self.loops = loops
        self.problem, self.options, self.clock = problem, options, clock
        self.l2 = problem.penalty.l2
        self.qp = _divided(problem.qp, self.l2)
        self.rows = problem.rows
        self.storage = Storage(self.rows)
        n = problem.n
        norms = np.empty(n)
        loops.row_norms(self.storage.indptr, self.storage.values, norms)
        # the constant feature: of the problem, or of the method of multipliers
        self.bias = float(np.sqrt(norms.mean() or 1.0)) if problem.intercept else self.rows.bias
        self.b = 0.0
        qp = self.qp
        self.table = np.empty((n, loops.WIDTH))
        loops.fill_table(qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, norms, self.bias, self.table)
        self.w = np.zeros(self.storage.stored + 1)
        self.start_given = start is not None
        if start is not None:
            self.beta[:] = np.clip(start / self.l2, qp.lower, qp.upper)
            self._recompute()
        self.order = np.arange(n, dtype=np.uint32)
        self.active = n
        self.level = np.inf
        self.random = np.random.default_rng(options.seed)
        self.passes = 0
        self.work, self.work_dense = 0.0, 0.0
        self.steps, self.settled = FEWEST_STEPS, False
        self.value, self.gap = 0.0, np.inf
        self.trace: list[TracePoint] = []
        self.best: tuple[Vector, float, Vector, Certificate] | None = None

    @property
    def beta(self) -> Vector:
        """β of the divided problem, a view of the table."""
        return self.table[:, self.loops.BETA]

    def run(self, worth: Callable[[int, float], bool] | None = None) -> Status:
        """Descend until the gap is small enough, nothing more can be done, or it is not worth while."""
        out, tol = np.zeros(7), self.options.tol
        limit = MAX_PASSES if self.options.max_iter < 0 else self.options.max_iter
        check_at, last, lowest, since_gain, rate = inf, inf, inf, 0, 1.0
        rescues, rescued = 0, inf
        if self.start_given and self._look():
            return Status.CONVERGED
        while True:
            ended = self.clock.over() or (Status.MAX_ITER if self.passes >= limit else None)
            if ended is not None:
                return Status.CONVERGED if self._look(publish=True) else ended
            self._pass(out)
            self.passes += 1
            estimate, decrease = float(out[1]), float(out[2])
            self.value += decrease
            scale = abs(self.value) + estimate
            relative = estimate / scale if scale > 0 else 0.0
            self._report(relative)
            if worth is not None and not worth(self.passes, relative):
                return Status.CONVERGED if self._look(publish=True) else Status.STALLED
            lowest, progress = min(lowest, estimate), decrease > ROUNDING * abs(self.value) or estimate < lowest
            since_gain = 0 if progress else since_gain + 1
            # each part of the estimate is as old as the visit of its variable: what it will be when all are as new
            if 0 < last < inf:
                rate = estimate / last
            ahead = estimate * min(1.0, rate) * (SMOOTH if self.qp.is_smooth else 1.0)
            last = estimate
            if ahead <= tol * scale and estimate <= check_at and since_gain < HOPELESS:
                before = self.active
                if self._look():
                    return Status.CONVERGED
                # variables that come back are to be worked on first; else the estimate was better than the gap
                share = min(max(tol * scale / self.gap, 0.2), 1.0) if self.gap > 0 else 1.0
                check_at, last = (inf if self.active > before else 0.9 * share * estimate), inf
            elif since_gain >= HOPELESS or (
                self.active <= DENSE_UP_TO and self.work_dense > DENSE_COST * self.active**2 * min(self.active, 200)
            ):
                solved = rescues < RESCUES and self._end_dense()
                if self._look(publish=not solved):
                    return Status.CONVERGED
                if not solved:
                    return Status.STALLED
                rescues = rescues + 1 if self.gap > 0.5 * rescued else 0
                if self.gap > USELESS * max(estimate, abs(self.value) + self.gap):
                    # the matrix is beyond rounding: it will not be better the next time
                    rescues = RESCUES
                rescued = self.gap
                check_at, last, lowest, since_gain = inf, inf, inf, 0
            elif out[3] <= SETTLED * self.active and (relative <= NEAR or self.passes >= LATE):
                # what passes alone would still cost
                left = log(estimate / (tol * scale)) / -log(rate) if 0 < rate < 1 and estimate > 0 else inf
                self._face(left * float(out[4]), float(out[5]), float(out[6]))

    def _pass(self, out: Vector) -> None:
        """One pass by the rule of choice."""
        order = self.order[: self.active]
        if self.options.rule == "random":
            self.loops.shuffle(order, int(self.random.integers(1, 1 << 62)))
        elif self.options.rule == "greedy":
            gain = np.empty(self.problem.n)
            self.loops.decreases(self._products(), self.table, gain)
            count = max(1, len(gain) // GREEDY_SHARE)
            most = np.argpartition(-gain, count - 1)[:count]
            order = most[np.argsort(-gain[most], kind="stable")].astype(np.uint32)
        kept = self.loops.descend(*self.storage.arrays, self.bias, self.w, self.table, order, self.level, out)
        if self.options.rule == "greedy":
            if self.problem.intercept:
                self._shift()
            return
        self.active = kept
        self.level = out[0] if out[0] > 0 else np.inf
        out[4] += ROW_COST * len(order)
        self.work += float(out[4])
        self.work_dense += float(out[4])
        if self.problem.intercept:
            self._shift()

    def _shift(self) -> None:
        """Move the intercept by the multiplier's step σΣβ."""
        change = self.bias * self.w[-1]
        self.b += change
        self.table[:, self.loops.LINEAR] -= change

    def _products(self) -> Vector:
        """X'w with the constant feature."""
        return self.rows.dot(self.w[: self.rows.d], self.options.n_threads) + (
            self.bias * self.w[-1] if self.problem.intercept else 0.0
        )

    def _recompute(self) -> None:
        """w = X'β from β alone."""
        w = self.rows.tdot(self.beta, self.options.n_threads)
        self.w[: self.rows.d] = w
        if self.problem.intercept:
            self.w[-1] = self.bias * self.beta.sum()

    def _look(self, publish: bool = False) -> bool:
        """Judge the state at all samples and set the active variables; whether the gap is within tol.

        A model that is, or is to be published as it is, is certified.
        """
        problem, out = self.problem, np.zeros(3)
        F = self._products()
        self.active = self.loops.judge(F, self.table, self.level, self.order, out)
        self.level = np.inf
        self.gap, self.value = float(out[1]), float(out[2]) - 0.5 * float(self.w @ self.w)
        smooth = self.qp.is_smooth and not problem.intercept
        shift, gain = best_shift(self.qp, F, self.bias, float(self.w[-1])) if smooth else (0.0, 0.0)
        close = self.gap - gain <= self.options.tol * (abs(self.value) + self.gap)
        if not (close or publish):
            return False
        beta, w, b = self.beta * self.l2, self.w[: self.rows.d].copy(), 0.0
        if shift:
            w[-1] += shift
            F += self.bias * shift
        if problem.intercept:
            beta = balanced(problem.qp, beta)
        v = self.rows.tdot(beta, self.options.n_threads)
        if problem.intercept:
            w = v / self.l2
            F = self.rows.dot(w, self.options.n_threads)
            b = problem.loss.best_intercept(problem.y, F, problem.weight)
        proof = linear_certificate(problem, w, b, beta, f=F, v=v)
        if self.best is None or proof.gap <= self.best[3].gap:
            self.best = w, b, beta, proof
        if proof.relative_gap <= self.options.tol:
            return True
        if not problem.intercept:
            # rounding of many steps ends here
            self.w[: self.rows.d] = v / self.l2
        return False

    def _free(self) -> Index:
        """The variables strictly inside their box and off the kink."""
        qp, beta = self.qp, self.beta
        inside = (
            (beta > qp.lower)
            & (beta < qp.upper)
            & ((beta != 0) | (qp.l1 == 0))
            & (self.table[:, self.loops.DIAGONAL] > 0)
        )
        return np.flatnonzero(inside)

    def _face(self, otherwise: float, count: float, entries: float) -> None:
        """Newton's step on the free variables, about so many, if it costs no more than going on without it."""
        # of one step of the conjugate gradients
        cost = 2.0 * entries + ROW_COST * count + len(self.w)
        # after a step that was cut short by bounds, at most as much work as the passes since then took
        if self.work < (0.5 if self.settled else self.steps) * cost or otherwise < self.steps * cost:
            return
        free = self._free()
        if len(free) == 0:
            return
        part = Storage(self.rows.take(free))
        table, out = self.table[free], np.zeros(5)
        goal = FACE_GAP * self.options.tol * abs(self.value)
        self.loops.face_step(*part.arrays, self.bias, self.w, table, goal, self.steps, out)
        self.table[free] = table
        self.value += out[3]
        self.work = 0.0
        self.work_dense += cost * float(out[0])
        self.level = np.inf
        self.settled = out[1] == 1.0 and out[2] <= SETTLED * len(free)
        self.steps = min(2 * self.steps, MOST_STEPS) if self.settled else max(self.steps // 2, FEWEST_STEPS)
        if self.problem.intercept:
            self._shift()

    def _end_dense(self) -> bool:
        """Solve for the active variables on their dense matrix. Returns whether that was possible."""
        self.work_dense = 0.0
        if not 0 < self.active <= DENSE_UP_TO:
            return False
        members = np.sort(self.order[: self.active]).astype(np.intp)
        part = self.rows.take(members)
        X = part.X.toarray() if isinstance(part.X, Csr) else np.asarray(part.X)
        X = X.astype(np.float64)
        K = X @ X.T + self.rows.bias**2
        beta = self.beta[members]
        own = X.T @ beta
        rest = self.w[: self.storage.stored] - own
        constant = self.rows.bias * (self.w[-1] - self.rows.bias * beta.sum()) if self.rows.bias else 0.0
        inner = self.qp.take(members, None)
        inner = replace(
            inner,
            linear=inner.linear - X @ rest - constant,
            sums=inner.sums - (self.beta.sum() - beta.sum()) if len(inner.sums) else inner.sums,
        )
        result = interior_point(K, inner, tol=min(1e-9, 0.1 * self.options.tol))
        if not np.isfinite(result.beta).all():
            return False
        self.table[members, self.loops.BETA] = np.clip(result.beta, inner.lower, inner.upper)
        self._recompute()
        if self.problem.intercept:
            f = self.rows.dot(self.w[: self.rows.d], self.options.n_threads)
            b = self.problem.loss.best_intercept(self.problem.y, f, self.problem.weight)
            self.table[:, self.loops.LINEAR] -= b - self.b
            self.b = b
        return True

    def _report(self, gap: float) -> None:
        """A line of the trace."""
        point = TracePoint(self.clock.seconds, self.passes, gap, self.value * self.l2, self.active)
        self.trace.append(point)
        self.clock.report(point)


def _divided(qp: BoxQP, l2: float) -> BoxQP:
    """The program for ½|w|² where the penalty is ½ l2 |w|²: weights divided by l2, and so β."""
    return qp if l2 == 1 else replace(qp, lower=qp.lower / l2, upper=qp.upper / l2, ridge=qp.ridge * l2)


def balanced(qp: BoxQP, beta: Vector) -> Vector:
    """β with Σβ = 0: what is too much is taken from the free variables by their room, else from all of one sign."""
    total = float(beta.sum())
    if total == 0:
        return beta
    beta = beta.copy()
    free = np.flatnonzero((beta > qp.lower) & (beta < qp.upper) & (beta != 0))
    room = np.abs(beta[free])
    opposite = np.sign(beta[free]) != np.sign(total)
    # towards 0, or away from it up to the bound
    bound = np.where(beta[free] > 0, qp.upper[free], -qp.lower[free])
    room[opposite] = np.minimum(bound - room, room)[opposite]
    if room.sum() >= abs(total):
        beta[free] -= total * room / room.sum()
        return beta
    side = np.sign(total) * beta > 0  # not empty, and 0 is in every box
    beta[side] *= 1.0 - total / float(beta[side].sum())
    return beta
