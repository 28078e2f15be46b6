"""Dual coordinate descent as in the textbook: each step moves one variable to its optimum while the others stay fixed.

    min  ½|X'β|² − linear'β + Σ l1|β| + ½Σ ridge β²     s.t.  lower ≤ β ≤ upper  (Σβ = 0 if the intercept is free)

[M5] "coordinate ascent"; algorithm 1 of Hsieh et al., ICML 25 (2008), without shrinking. A pass is n steps for n
samples, so that the selection rules of [M5] can be compared by their passes:

* "round-robin": each variable once, in the order of the samples;
* "random": each variable once, in a new random order for each pass;
* "greedy": n times the variable with the largest gain. Each choice reads all samples: a pass costs n times as much.

After each pass the duality gap is recomputed from β at all samples; the run ends when it is at most tol. With squared
losses the published weight of a constant feature is optimal given the other weights, since most of the excess of the
primal after a pass is due to that weight.

A free intercept is the multiplier of Σβ = 0. Adding ½σ(Σβ)² to the program is adding a constant feature of value √σ;
after each pass the intercept moves by σΣβ (the method of multipliers, Bertsekas 1982).

`hybrid`, which solver="auto" runs, adds shrinking, Newton steps and a final interior-point solve to the same state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._compiled.blas import one_blas_thread
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Csr
from mercer.linear.linear_problem import LinearProblem, Rows, balanced, linear_certificate
from mercer.linear.linear_solution import LinearOptions, LinearSolution
from mercer.linear.newton import best_shift
from mercer.losses.base import BoxQP, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Certificate, Status, TracePoint, check_rule

MAX_PASSES = 100_000
# a run has stalled after this many passes that neither decrease the objective beyond rounding nor lower the gap
PATIENCE = 20
ROUNDING = 1e-16
# rows with a smaller squared norm count as empty
TINY = 1e-280


class Storage:
    """The rows in the form that the compiled loops read: see `mercer.linear._coordinate_loops`."""

    def __init__(self, rows: Rows) -> None:
        X = rows.X
        if isinstance(X, Csr):
            self.indptr = X.indptr.astype(np.uint64)
            # unsigned: compiled loops test signed indices for negative values
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
    problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None = None
) -> LinearSolution:
    """Minimise, from the β of ``start`` if given. Iterations are passes."""
    check_solvable(problem)
    check_rule(options.rule)
    with one_blas_thread():
        descent = Descent(problem, options, clock, None if start is None else start.beta)
        return descent.solution(_run(descent))


def check_solvable(problem: LinearProblem) -> None:
    """Raise for penalties and losses that dual coordinate descent does not support."""
    if problem.penalty.l1 > 0 or problem.penalty.l2 <= 0:
        raise InvalidInputError(
            "Coordinate descent solves problems with the penalty l2 alone, but l1 has the weight "
            f'{problem.penalty.l1:g}. Use solver="auto".'
        )
    if problem.qp.has_open_box:
        raise InvalidInputError(
            f"Coordinate descent needs a finite C: the dual variables of the {problem.loss.name} have no other bound. "
            'Use solver="interior".'
        )


def _run(descent: Descent) -> Status:
    """Run passes until the gap is within tol or rounding prevents progress."""
    options, n = descent.options, descent.problem.n
    limit = MAX_PASSES if options.max_iter < 0 else options.max_iter
    lowest, since_gain, every = np.inf, 0, np.arange(n, dtype=np.uint32)
    if descent.start_given and descent.check():
        return Status.CONVERGED
    while True:
        ended = descent.clock.over() or (Status.MAX_ITER if descent.passes >= limit else None)
        if ended is None and since_gain >= PATIENCE:
            ended = Status.STALLED
        if ended is not None:
            return Status.CONVERGED if descent.check(publish=True) else ended
        if options.rule == "greedy":
            decrease = descent.greedy_pass()
        else:
            descent.order[:] = every
            decrease = float(descent.descend(descent.order, shuffled=options.rule == "random")[2])
        descent.passes += 1
        done = descent.check()
        scale = abs(descent.value) + descent.gap
        descent.report(descent.gap / scale if scale > 0 else 0.0)
        if done:
            return Status.CONVERGED
        progress = decrease > ROUNDING * abs(descent.value) or descent.gap < lowest
        lowest, since_gain = min(lowest, descent.gap), 0 if progress else since_gain + 1


class Descent:
    """The state of coordinate descent on the problem divided by l2. Published solutions are in the original scale."""

    def __init__(self, problem: LinearProblem, options: LinearOptions, clock: Clock, start: Vector | None) -> None:
        from mercer.linear import _coordinate_loops as loops

        self.loops = loops
        self.problem, self.options, self.clock = problem, options, clock
        self.l2 = problem.penalty.l2
        self.qp = _divided(problem.qp, self.l2)
        self.rows = problem.rows
        self.storage = Storage(self.rows)
        n = problem.n
        norms = np.empty(n)
        loops.row_norms(self.storage.indptr, self.storage.values, norms)
        # the constant feature belongs to the problem, or to the method of multipliers
        norms[norms < TINY] = 0.0
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
        self.value, self.gap = 0.0, np.inf
        self.trace: list[TracePoint] = []
        self.best: tuple[Vector, float, Vector, Certificate] | None = None

    @property
    def beta(self) -> Vector:
        """β of the divided problem, a view of the table."""
        return self.table[:, self.loops.BETA]

    def solution(self, status: Status) -> LinearSolution:
        """The certified model with the smallest gap."""
        assert self.best is not None  # every return of run certifies a model
        w, b, beta, proof = self.best
        return LinearSolution(w, b, beta, status, self.passes, self.clock.seconds, proof, self.trace)

    def descend(self, order: NDArray[np.uint32], shuffled: bool) -> Vector:
        """One pass over these variables. Edits order: those that remain active come first.

        Returns the statistics of the compiled loop. If the clock ends the pass early, unvisited variables remain
        active.
        """
        if shuffled:
            self.loops.shuffle(order, int(self.random.integers(1, 1 << 62)))
        total, out, kept = np.zeros(7), np.zeros(7), 0
        step = max(1, int(self.options.entries_at_a_time / (self.rows.numbers_per_row + 1)))
        for start in range(0, len(order), step):
            part, rest = order[start : start + step], order[start + step :]
            count = self.loops.descend(*self.storage.arrays, self.bias, self.w, self.table, part, self.level, out)
            order[kept : kept + count] = part[:count]
            kept += count
            total[0] = max(total[0], out[0])
            total[1:] += out[1:]
            if len(rest) and self.clock.over() is not None:
                order[kept : kept + len(rest)] = rest
                kept += len(rest)
                break
        self.active = kept
        if self.problem.intercept:
            self._shift()
        return total

    def greedy_pass(self) -> float:
        """Take n greedy steps, fewer if the clock ends them; return the decrease of the objective."""
        n, F, row, gained = self.problem.n, self._products(), np.zeros_like(self.w), np.zeros(1)
        at_a_time = max(1, int(self.options.entries_at_a_time / (n * (self.rows.numbers_per_row + 1))))
        for start in range(0, n, at_a_time):
            count = min(at_a_time, n - start)
            data = *self.storage.arrays, self.bias
            if self.loops.greedy_steps(*data, F, self.w, self.table, row, count, gained) < count:
                break
            if self.clock.over() is not None:
                break
        if self.problem.intercept:
            self._shift()
        return float(gained[0])

    def _shift(self) -> None:
        """Move the intercept by the multiplier's step σΣβ."""
        change = self.bias * self.w[-1]
        self.b += change
        self.table[:, self.loops.LINEAR] -= change

    def _products(self) -> Vector:
        """Xw, including the constant feature."""
        return self.rows.dot(self.w[: self.rows.d], self.options.n_threads) + (
            self.bias * self.w[-1] if self.problem.intercept else 0.0
        )

    def _recompute(self) -> None:
        """Recompute w = X'β from β."""
        w = self.rows.tdot(self.beta, self.options.n_threads)
        self.w[: self.rows.d] = w
        if self.problem.intercept:
            self.w[-1] = self.bias * self.beta.sum()

    def check(self, publish: bool = False) -> bool:
        """Compute the gap over all samples and reset the active variables; return whether the gap is within tol.

        The model is certified if its gap is, or if ``publish``.
        """
        problem, out = self.problem, np.zeros(3)
        F = self._products()
        self.active = self.loops.check_variables(F, self.table, self.level, self.order, out)
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
            del F  # saves memory while β is balanced and the intercept is computed
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
            # discard the rounding errors of many steps
            self.w[: self.rows.d] = v / self.l2
        return False

    def report(self, gap: float) -> None:
        """Append a point to the trace and report it."""
        point = TracePoint(self.clock.seconds, self.passes, gap, self.value * self.l2, self.active)
        self.trace.append(point)
        self.clock.report(point)


def _divided(qp: BoxQP, l2: float) -> BoxQP:
    """The program with penalty ½|w|² that is equivalent to one with ½ l2 |w|²: weights and β divided by l2."""
    return qp if l2 == 1 else replace(qp, lower=qp.lower / l2, upper=qp.upper / l2, ridge=qp.ridge * l2)
