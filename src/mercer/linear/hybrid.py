"""Coordinate descent with Newton steps on its free variables, for sparse data of many features.

The passes over β are those of `coordinate`, in random order. Three additions make high accuracy and large C affordable:

* Shrinking: a variable at a bound whose gradient exceeds the largest violation of the last pass is left out until the
  next check of all samples (Hsieh et al., ICML 25, 2008).
* Newton steps: once few variables meet or leave a bound, a Newton step on the free ones by conjugate gradients, clipped
  to the box. It may cost as much as the passes before it.
* A final interior-point solve: if few variables remain active, their problem is solved on its dense matrix.

The gap is estimated during a pass, and recomputed from β at all samples when the estimate is small enough to end the
run.

Only solver="auto" runs it; solver="coordinate" shows what coordinate descent costs by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, log

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer.kernels.features import Csr
from mercer.linear.coordinate import MAX_PASSES, PATIENCE, ROUNDING, Descent, Storage, check_solvable
from mercer.linear.linear_problem import LinearProblem
from mercer.linear.linear_solution import LinearOptions, LinearSolution, has_time
from mercer.losses.base import Index, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Status
from mercer.svm.interior_qp import interior_point

# Newton steps are tried when at most this share of the active variables met or left a bound in a pass
SETTLED = 0.02
# and the relative gap is at most NEAR, or LATE passes were made: earlier steps would meet too many bounds
NEAR, LATE = 3e-3, 40
# iterations of the conjugate gradients: doubled after a Newton step that few bounds clipped, halved after others
FEWEST_STEPS = 16
MOST_STEPS = 512
# conjugate gradients end at a gap of this share of the gap of the run
FACE_GAP = 0.3
# visiting a variable costs as much as reading this many entries of X
ROW_COST = 20.0
# up to this many active variables are solved by the interior-point method
DENSE_UP_TO = 1500
# cost of the interior-point method, in reads of an entry of X, divided by m²·min(m, 200): about 20 factorisations
DENSE_COST = 4.0
# nanoseconds per entry of X in a conjugate-gradient iteration, and per m³ of the interior-point method
ENTRY, FACTORISATIONS = 1.0, 0.6
# the interior-point method is given up after this many solves that do not halve the gap, or one that leaves this share
# of the objective
RESCUES, USELESS = 3, 0.9
# for smooth losses the true gap is this share of the estimate extrapolated from the last two passes
SMOOTH = 0.7


def solve(
    problem: LinearProblem,
    options: LinearOptions,
    clock: Clock,
    start: LinearSolution | None = None,
    worth: Callable[[int, float], bool] | None = None,
) -> LinearSolution:
    """Minimise, from the β of ``start`` if given. Iterations are passes.

    After each pass ``worth(passes, relative gap)`` says whether to continue; if not, the status is STALLED.
    """
    check_solvable(problem)
    with one_blas_thread():
        run = _Run(problem, options, clock, None if start is None else start.beta)
        return run.solution(run.run(worth))


class _Run(Descent):
    """Coordinate descent with shrinking, Newton steps and dense solves."""

    def __init__(self, problem: LinearProblem, options: LinearOptions, clock: Clock, start: Vector | None) -> None:
        super().__init__(problem, options, clock, start)
        self.work, self.work_dense = 0.0, 0.0
        self.steps, self.settled = FEWEST_STEPS, False

    def run(self, worth: Callable[[int, float], bool] | None = None) -> Status:
        """Descend until the gap is within tol, the run stalls, or ``worth`` ends it."""
        tol = self.options.tol
        limit = MAX_PASSES if self.options.max_iter < 0 else self.options.max_iter
        check_at, last, lowest, since_gain, rate = inf, inf, inf, 0, 1.0
        rescues, rescued = 0, inf
        if self.start_given and self.check():
            return Status.CONVERGED
        while True:
            ended = self.clock.over() or (Status.MAX_ITER if self.passes >= limit else None)
            if ended is not None:
                return Status.CONVERGED if self.check(publish=True) else ended
            out = self._pass()
            self.passes += 1
            estimate, decrease = float(out[1]), float(out[2])
            self.value += decrease
            scale = abs(self.value) + estimate
            relative = estimate / scale if scale > 0 else 0.0
            self.report(relative)
            if worth is not None and not worth(self.passes, relative):
                return Status.CONVERGED if self.check(publish=True) else Status.STALLED
            lowest, progress = min(lowest, estimate), decrease > ROUNDING * abs(self.value) or estimate < lowest
            since_gain = 0 if progress else since_gain + 1
            # each term of the estimate dates from the visit of its variable: extrapolate to the end of the next pass
            if 0 < last < inf:
                rate = estimate / last
            ahead = estimate * min(1.0, rate) * (SMOOTH if self.qp.is_smooth else 1.0)
            last = estimate
            if ahead <= tol * scale and estimate <= check_at and since_gain < PATIENCE:
                before = self.active
                if self.check():
                    return Status.CONVERGED
                # if variables became active again, work on them first; else the estimate was too low: check later
                share = min(max(tol * scale / self.gap, 0.2), 1.0) if self.gap > 0 else 1.0
                check_at, last = (inf if self.active > before else 0.9 * share * estimate), inf
            elif since_gain >= PATIENCE or self._is_dense_worth():
                solved = rescues < RESCUES and self._end_dense()
                if self.check(publish=not solved):
                    return Status.CONVERGED
                if not solved:
                    return Status.STALLED
                rescues = rescues + 1 if self.gap > 0.5 * rescued else 0
                if self.gap > USELESS * max(estimate, abs(self.value) + self.gap):
                    # the matrix is too ill-conditioned: another solve would not help
                    rescues = RESCUES
                rescued = self.gap
                check_at, last, lowest, since_gain = inf, inf, inf, 0
            elif out[3] <= SETTLED * self.active and (relative <= NEAR or self.passes >= LATE):
                # the passes that would still be needed without Newton steps
                left = log(estimate / (tol * scale)) / -log(rate) if 0 < rate < 1 and estimate > 0 else inf
                self._face(left * float(out[4]), float(out[5]), float(out[6]))

    def _pass(self) -> Vector:
        """One pass over the active variables; returns the statistics of the compiled loop."""
        count = self.active
        out = self.descend(self.order[:count], shuffled=True)
        self.level = out[0] if out[0] > 0 else np.inf
        out[4] += ROW_COST * count
        self.work += float(out[4])
        self.work_dense += float(out[4])
        return out

    def _free(self) -> Index:
        """The variables strictly inside their box and not at the kink."""
        qp, beta = self.qp, self.beta
        inside = (
            (beta > qp.lower)
            & (beta < qp.upper)
            & ((beta != 0) | (qp.l1 == 0))
            & (self.table[:, self.loops.DIAGONAL] > 0)
        )
        return np.flatnonzero(inside)

    def _face(self, otherwise: float, count: float, entries: float) -> None:
        """Take a Newton step on the free variables (about ``count``) unless passes alone (``otherwise``) cost less."""
        # of one conjugate-gradient iteration
        cost = 2.0 * entries + ROW_COST * count + len(self.w)
        # after a step that bounds clipped, wait until the passes since then have cost as much as the next step
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
        """Whether the interior-point method costs no more than the passes since its last run, and ends in time."""
        m = self.active
        worth = m <= DENSE_UP_TO and self.work_dense > DENSE_COST * m**2 * min(m, 200)
        return worth and has_time(self.clock, FACTORISATIONS * m**3)

    def _end_dense(self) -> bool:
        """Solve for the active variables on their dense matrix. Returns whether that succeeded."""
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
