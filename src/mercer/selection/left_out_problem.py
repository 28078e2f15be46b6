"""One problem of a fitted machine, and its solutions without single samples.

With M the kernel matrix of the free support vectors plus their ridge, bordered by ones if there is an intercept, and
δ the change of their coefficients and of the intercept when sample i is left out and no other sample changes its state
(zero, free, bound):

    M δ = [βᵢ K_Fi; βᵢ + Δs]  if i is not free,      M δ = c eᵢ + [0; Δs] with δᵢ = −βᵢ  if it is

Δs is the change of the required sum of β, which is 0 except for the one-class loss (there it is −ν wᵢ).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mercer._compiled.thread_pool import cached_property
from mercer.estimators.certification.kernel_machines import FittedProblem
from mercer.gram.operator import product
from mercer.kernels.features import Matrix, Vector
from mercer.losses import BoxQP
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem, settled_at_bounds, survey
from mercer.problems.face import polish
from mercer.problems.solution import Options, Status
from mercer.svm.dense import DenseRun
from mercer.svm.solve import near, solve

# most faces of the box on which the optimum is computed
FACES = 5
# a pivot (M⁻¹)ᵢᵢ below this fraction of the largest is 0: without i the intercept is not determined by free samples
SMALLEST_PIVOT = 1e-12


class LeftOutProblem:
    """One problem of the machine, solved to the tolerance, with its kernel matrix if that fits into memory."""

    def __init__(self, fitted: FittedProblem, whole: bool, options: Options, clock: Clock) -> None:
        data, n = fitted.machine.data, len(fitted.rows)
        self.rows, self.labels, self.problem = fitted.rows, fitted.labels, fitted.problem
        self.options, self.clock = options, clock
        self.stalled: list[int] = []  # one entry for each run that stalled
        self.data = data if n == data.n else data.take(fitted.rows)
        self.K = self.data.matrix(np.float64, options.n_threads) if whole else None
        self.beta, self.F, self.b = self._solve(fitted.problem, near(fitted.problem.qp, fitted.beta))
        self._to_optimum_of_face()
        self.decision = self.F + self.b
        self.support = np.flatnonzero(self.beta)

    def _solve(self, problem: DualProblem, start: Vector | None) -> tuple[Vector, Vector, float]:
        """β, F and b of a problem on these samples."""
        if self.K is None:
            found = solve(self.data, problem, self.options, self.clock, start)
            self.stalled += [1] if found.status is Status.STALLED else []
            return found.beta, found.F, float(found.thresholds.sum())
        run = DenseRun(self.K, problem.qp, problem.start() if start is None else start, self.options, self.clock)
        self.stalled += [1] if run.run(self.options.tol) is Status.STALLED else []
        beta = settled_at_bounds(problem.qp, run.beta)
        return beta, run.F, float(survey(problem.qp, beta, run.F).thresholds.sum())

    def _to_optimum_of_face(self) -> None:
        """Solve for the free coefficients exactly, so that solutions without single samples have no error of tol."""
        qp = self.problem.qp
        if self.K is None or qp.sample is not None:
            return
        beta = self.beta.copy()
        polish(self.K, qp, beta, is_strictly_inside(qp, beta), FACES)
        beta = settled_at_bounds(qp, beta)
        self.accept(beta, self.K @ beta)

    def accept(self, beta: Vector, F: Vector) -> None:
        """Take β if it is not worse than the solution so far."""
        qp = self.problem.qp
        before, found = survey(qp, self.beta, self.F), survey(qp, beta, F)
        if found.violation <= before.violation and found.infeasibility <= max(before.infeasibility, self.options.tol):
            self.beta, self.F, self.b = beta, F, float(found.thresholds.sum())

    def columns(self, index: Vector) -> Matrix:
        """These columns of K."""
        if self.K is not None:
            return self.K[:, index]
        return self.data.kernel.block(self.data.features(np.float64), self.data.exact(index))

    def times(self, index: Vector, weights: Matrix) -> Matrix:
        """K[:, index] @ weights."""
        if self.K is not None:
            return self.K[:, index] @ weights
        a, b = self.data.features(np.float64), self.data.exact(index)
        return product(self.data.kernel, a, b, weights, self.options.n_threads)

    @cached_property
    def diagonal(self) -> Vector:
        """k(x, x) of each sample."""
        return self.data.kernel.diagonal(self.data.exact(np.arange(len(self.rows))))

    @cached_property
    def free(self) -> Vector:
        """Indices of the support vectors strictly inside their box."""
        return np.flatnonzero(is_strictly_inside(self.problem.qp, self.beta))

    @cached_property
    def inverse(self) -> Matrix:
        """M⁻¹ of the free support vectors, the border last; an empty matrix if there are none."""
        m, border = len(self.free), int(self.problem.intercept)
        if m == 0:
            return np.zeros((0, 0))
        M = np.zeros((m + border, m + border))
        M[:m, :m] = self.columns(self.free)[self.free]
        # a ridge of the size of rounding errors keeps M invertible
        M[np.arange(m), np.arange(m)] += self.problem.qp.ridge[self.free] + 1e-13 * np.trace(M) / m
        if border:
            M[:m, m] = M[m, :m] = 1.0
        inverse: Matrix = linalg.inv(M)
        return inverse

    @property
    def affected(self) -> Vector:
        """The samples whose removal changes the solution: the support vectors, or all.

        All do if the required sum is not 0, or if no free support vector determines the intercept: then it is the
        middle of an interval, whose ends may be due to any sample.
        """
        undetermined = self.problem.intercept and len(self.free) == 0
        return np.arange(len(self.rows)) if undetermined or self.problem.qp.sums.any() else self.support

    def left(self, i: int) -> DualProblem:
        """The problem without i, which gets the weight 0."""
        weight = self.problem.weight.copy()
        weight[i] = 0.0
        return DualProblem(None, self.problem.loss, self.problem.y, weight, self.problem.intercept)

    def moves(self, index: Vector) -> tuple[Matrix, Vector]:
        """δ of the free support vectors and of the intercept, a column for each left-out sample; NaN where undefined.

        It is undefined if without the sample no free support vector determines the intercept.
        """
        m, inverse, beta = len(self.free), self.inverse, self.beta[index]
        size, border = len(inverse), int(self.problem.intercept)
        if m == 0:
            return np.zeros((0, len(index))), np.full(len(index), np.nan if border else 0.0)
        right = np.zeros((size, len(index)))
        if border:
            right[m] = self._changes_of_sum(index)
        place = np.full(len(self.rows), -1)
        place[self.free] = np.arange(m)
        own = place[index]
        fixed = own < 0
        right[:m, fixed] = self.columns(index[fixed])[self.free] * beta[fixed]
        right[m:, fixed] += beta[fixed]
        delta = inverse @ right
        at, columns = own[~fixed], np.flatnonzero(~fixed)
        pivots = inverse[at, at]
        pivots = np.where(pivots > SMALLEST_PIVOT * np.abs(np.diagonal(inverse)).max(), pivots, np.nan)
        delta[:, columns] -= inverse[:, at] * ((beta[columns] + delta[at, columns]) / pivots)
        return delta[:m], delta[m] if border else np.zeros(len(index))

    def _changes_of_sum(self, index: Vector) -> Vector:
        """Δs: how much the required sum of β changes when each sample is left out."""
        sums = self.problem.qp.sums
        if not sums.any():
            return np.zeros(len(index))
        return np.array([float((self.left(i).qp.sums - sums).sum()) for i in index.tolist()])

    def step(self, i: int) -> tuple[Vector, float]:
        """The solution without i if no other sample changes its state, and the decision value of i there."""
        beta, free, own = self.beta.copy(), self.free, self.beta[i]
        delta, shift = self.moves(np.array([i]))
        beta[i] = 0.0
        if not np.isfinite(shift[0]):
            # only the intercept can change: bounded by the largest squared distance
            return beta, float(self.decision[i] - own * self.spread)
        moved = self.beta[free] + delta[:, 0]
        beta[free[free != i]] = moved[free != i]
        span = self.columns(np.array([i]))[:, 0] @ (self.beta - beta) - shift[0]
        return beta, float(self.decision[i] - np.sign(own) * max(np.sign(own) * span, 0.0))

    @cached_property
    def spread(self) -> float:
        """The largest squared distance between two samples, or an upper bound."""
        if self.K is None:
            return 4.0 * float(np.abs(self.diagonal).max())
        return float(max(0.0, (self.diagonal[:, None] + self.diagonal - 2.0 * self.K).max()))

    def without(self, i: int) -> float:
        """The decision value of i from the solution without i."""
        _, F, b = self.solved_without(i, self.step(i)[0])
        return float(F[i] + b)

    def solved_without(self, i: int, start: Vector) -> tuple[Vector, Vector, float]:
        """β, F and b of the problem without i, found from a start near its solution."""
        problem = self.left(i)
        return self._solve(problem, near(problem.qp, start))

    def may_be_wrong(self) -> NDArray[np.bool_]:
        """Whether each sample may be wrong when left out, by the ξα criterion."""
        alpha, y = np.abs(self.beta), self.problem.y
        slack = self.problem.loss.value(y, self.decision)
        if not self.problem.intercept:
            return np.asarray(alpha * self.diagonal + slack >= 1.0)
        if len(self.free) == 0:
            # an interval of intercepts is optimal, any sample may move the chosen one: Joachims' theorem does not hold
            return np.ones(len(alpha), np.bool_)
        if self.K is None:
            radius = 2.0 * float(np.abs(self.diagonal).max())
        else:
            radius = float((self.diagonal - self.K.min(axis=1)).max())
        return np.asarray(2.0 * alpha * radius + slack >= 1.0)


def is_strictly_inside(qp: BoxQP, beta: Vector) -> NDArray[np.bool_]:
    """Which coefficients are strictly inside their box, and not 0."""
    return np.asarray((beta != 0) & (beta > qp.lower) & (beta < qp.upper))
