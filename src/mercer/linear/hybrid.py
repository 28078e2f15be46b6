"""Coordinate descent with Newton steps on its free variables, for sparse data of many features.

The passes over β are those of `coordinate`, in random order. Three things make high accuracy and large C affordable:

* Shrinking: a variable that rests at a bound more safely than the last pass violated optimality is left out until
  the next look at all samples (Hsieh et al., ICML 25, 2008).
* Once the free variables hardly change, Newton's step on them, by conjugate gradients, clipped to the box: at most as
  much work as the passes before it took.
* What is left of a small or ill-conditioned problem is solved by the interior-point method on its dense matrix.

The gap is estimated from the steps of a pass, and computed anew from β at all samples once that promises an end.

Only solver="auto" runs it: these means hide what coordinate descent by itself costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, log

import numpy as np

from mercer._numerics.blas import one_blas_thread
from mercer.kernels.features import Csr
from mercer.linear.coordinate import HOPELESS, MAX_PASSES, ROUNDING, Descent, Storage, check_solvable
from mercer.linear.problem import LinearProblem
from mercer.linear.solution import LinearOptions, LinearSolution, has_time
from mercer.losses.base import Index, Vector
from mercer.solvers.base import Clock, Status
from mercer.solvers.interior import interior_point

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
# nanoseconds for each entry of X in a step of the conjugate gradients, and each m³ of the interior-point method
ENTRY, FACTORISATIONS = 1.0, 0.6
# how often the interior-point method may leave more than half of the gap; it is not tried again where this share of all
# is left
RESCUES, USELESS = 3, 0.9
# with losses that have a derivative the gap is this share of what the last two passes let expect
SMOOTH = 0.7


def solve(
    problem: LinearProblem,
    options: LinearOptions,
    clock: Clock,
    start: LinearSolution | None = None,
    worth: Callable[[int, float], bool] | None = None,
) -> LinearSolution:
    """The optimum of the problem, from the β of another solution if one is given; the iterations are passes.

    ``worth`` is asked after each pass, with their number and the relative gap, whether the run is worth going on; one
    that is not has stalled.
    """
    check_solvable(problem)
    with one_blas_thread():
        run = _Run(problem, options, clock, None if start is None else start.beta)
        return run.solution(run.run(worth))


class _Run(Descent):
    """Coordinate descent with what it takes to leave variables out and to solve for others at once."""

    def __init__(self, problem: LinearProblem, options: LinearOptions, clock: Clock, start: Vector | None) -> None:
        super().__init__(problem, options, clock, start)
        self.work, self.work_dense = 0.0, 0.0
        self.steps, self.settled = FEWEST_STEPS, False

    def run(self, worth: Callable[[int, float], bool] | None = None) -> Status:
        """Descend until the gap is small enough, nothing more can be done, or it is not worth while."""
        tol = self.options.tol
        limit = MAX_PASSES if self.options.max_iter < 0 else self.options.max_iter
        check_at, last, lowest, since_gain, rate = inf, inf, inf, 0, 1.0
        rescues, rescued = 0, inf
        if self.start_given and self.look():
            return Status.CONVERGED
        while True:
            ended = self.clock.over() or (Status.MAX_ITER if self.passes >= limit else None)
            if ended is not None:
                return Status.CONVERGED if self.look(publish=True) else ended
            out = self._pass()
            self.passes += 1
            estimate, decrease = float(out[1]), float(out[2])
            self.value += decrease
            scale = abs(self.value) + estimate
            relative = estimate / scale if scale > 0 else 0.0
            self.report(relative)
            if worth is not None and not worth(self.passes, relative):
                return Status.CONVERGED if self.look(publish=True) else Status.STALLED
            lowest, progress = min(lowest, estimate), decrease > ROUNDING * abs(self.value) or estimate < lowest
            since_gain = 0 if progress else since_gain + 1
            # each part of the estimate is as old as the visit of its variable: what it will be when all are as new
            if 0 < last < inf:
                rate = estimate / last
            ahead = estimate * min(1.0, rate) * (SMOOTH if self.qp.is_smooth else 1.0)
            last = estimate
            if ahead <= tol * scale and estimate <= check_at and since_gain < HOPELESS:
                before = self.active
                if self.look():
                    return Status.CONVERGED
                # variables that come back are to be worked on first; else the estimate was better than the gap
                share = min(max(tol * scale / self.gap, 0.2), 1.0) if self.gap > 0 else 1.0
                check_at, last = (inf if self.active > before else 0.9 * share * estimate), inf
            elif since_gain >= HOPELESS or self._is_dense_worth():
                solved = rescues < RESCUES and self._end_dense()
                if self.look(publish=not solved):
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

    def _pass(self) -> Vector:
        """One pass over the active variables; what the compiled loop tells of it."""
        count = self.active
        out = self.descend(self.order[:count], shuffled=True)
        self.level = out[0] if out[0] > 0 else np.inf
        out[4] += ROW_COST * count
        self.work += float(out[4])
        self.work_dense += float(out[4])
        return out

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
        if not has_time(self.clock, ENTRY * cost * self.steps):
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

    def _is_dense_worth(self) -> bool:
        """Whether the interior-point method costs no more than the passes since it was last run, and ends in time."""
        m = self.active
        worth = m <= DENSE_UP_TO and self.work_dense > DENSE_COST * m**2 * min(m, 200)
        return worth and has_time(self.clock, FACTORISATIONS * m**3)

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
