"""Solutions of ν-SVC and ν-SVR without single training samples.

Each of the two groups of variables has a required sum ±νW/2 and a threshold. Without sample i both sums move by
Δs = ∓νwᵢ/2, so that every sample changes the solution, not only support vectors. With A the incidence of groups and
free variables F, the change δ of free variables and c of thresholds, if no other variable changes its state, solves

    K_FF δ + A'c = K_Fi βᵢ,     A δ = Δs + βᵢ in the group of i

and δᵢ = −βᵢ if the variable of i is free. Published coefficients are divided by the margin (ν-SVC).
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mercer.estimators.certification.kernel_machines import FittedProblem
from mercer.kernels.features import Matrix, Vector
from mercer.losses import NuHinge
from mercer.losses.base import Published
from mercer.losses.classification import nu_scale
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem, settled_at_bounds, survey
from mercer.problems.face import polish
from mercer.problems.solution import Options
from mercer.selection.left_out_problem import (
    FACES,
    SMALLEST_PIVOT,
    LeftOutProblem,
    is_strictly_inside,
)

# a margin below this share of the largest function with these coefficients is 0 up to rounding
NO_MARGIN = 1e-9


class LeftOutNuProblem(LeftOutProblem):
    """A ν-machine's problem over its variables: one for each sample (ν-SVC), or two (ν-SVR)."""

    def __init__(self, fitted: FittedProblem, whole: bool, options: Options, clock: Clock) -> None:
        super().__init__(fitted, whole, options, clock)
        self.published = self.publish(self.problem, self.beta, self.F)

    def publish(self, problem: DualProblem, beta: Vector, F: Vector) -> Published:
        """Coefficients of samples and the intercept, as the machine publishes them."""
        thresholds = survey(problem.qp, beta, F).thresholds
        if self.has_no_margin(problem, beta, F):
            thresholds = np.full(2, thresholds.mean())
        return problem.loss.publish(problem.qp.at_samples(beta, len(self.rows)), thresholds)

    def has_no_margin(self, problem: DualProblem, beta: Vector, F: Vector) -> bool:
        """Whether the margin of a ν-SVC is 0 up to rounding, so that its scale is not determined."""
        if not isinstance(problem.loss, NuHinge):
            return False
        size = float(np.abs(beta).sum()) * float(np.abs(self.diagonal).max(initial=0.0))
        return nu_scale(survey(problem.qp, beta, F).thresholds)[0] <= max(NO_MARGIN * size, np.finfo(float).tiny)

    def _to_optimum_of_face(self) -> None:
        qp = self.problem.qp
        if self.K is None or qp.sample is None:
            super()._to_optimum_of_face()
            return
        beta = self.beta.copy()
        polish(self.K[np.ix_(qp.sample, qp.sample)], qp, beta, is_strictly_inside(qp, beta), FACES)
        beta = settled_at_bounds(qp, beta)
        self.accept(beta, self.K @ qp.at_samples(beta, len(self.rows)))

    @property
    def affected(self) -> Vector:
        """All samples: the required sums depend on each."""
        return np.arange(len(self.rows))

    def variables(self, i: int) -> Vector:
        """The variables of sample i."""
        sample = self.problem.qp.sample
        return np.array([i]) if sample is None else np.flatnonzero(sample == i)

    def without_changes(self, index: Vector) -> tuple[Matrix, Matrix]:
        """β and F without each sample if no other variable changes its state, a column each; NaN if undefined."""
        qp, n = self.problem.qp, len(self.rows)
        beta = np.repeat(self.beta[:, None], len(index), axis=1)
        place = np.full(qp.n_vars, -1)
        place[self.free] = np.arange(len(self.free))
        solver = self._bordered_inverse()
        for k, i in enumerate(index.tolist()):
            own = self.variables(i)
            beta[own, k] = 0.0
            delta = None if solver is None else self._moves(solver, i, own, place)
            beta[self.free, k] += np.nan if delta is None else delta
            beta[own, k] = 0.0 if delta is not None else np.nan
        change = np.stack([qp.at_samples(column, n) for column in (beta - self.beta[:, None]).T], axis=1)
        known = np.flatnonzero((change != 0).any(axis=1))
        return beta, self.F[:, None] + self.times(known, change[known])

    def _bordered_inverse(self) -> Matrix | None:
        """The inverse of [K_FF A'; A 0]; None if a group has no free variable, which would determine its threshold."""
        qp, m = self.problem.qp, len(self.free)
        A = qp.incidence()[:, self.free]
        if not A.any(axis=1).all():
            return None
        at = self.free if qp.sample is None else qp.sample[self.free]
        M = np.zeros((m + len(A), m + len(A)))
        M[:m, :m] = self.columns(at)[at]
        M[np.arange(m), np.arange(m)] += 1e-13 * np.trace(M) / m
        M[m:, :m], M[:m, m:] = A, A.T
        inverse: Matrix = linalg.inv(M)
        return inverse

    def _moves(self, inverse: Matrix, i: int, own: Vector, place: Vector) -> Vector | None:
        """δ of the free variables; None if without i no free variable determines a threshold."""
        qp, m = self.problem.qp, len(self.free)
        at = self.free if qp.sample is None else qp.sample[self.free]
        right = np.zeros(len(inverse))
        right[m:] = self.left(i).qp.sums - qp.sums
        fixed = own[(place[own] < 0) & (self.beta[own] != 0)]
        for v in fixed.tolist():
            right[:m] += self.columns(np.array([i]))[at, 0] * self.beta[v]
            right[m + int(qp.group[v])] += self.beta[v]
        delta = inverse @ right
        held = place[own[place[own] >= 0]]
        if len(held):
            pivots = inverse[np.ix_(held, held)]
            if np.diagonal(pivots).min() <= SMALLEST_PIVOT * np.abs(np.diagonal(inverse)).max():
                return None
            wanted = -self.beta[self.free[held]]
            delta += inverse[:, held] @ np.linalg.solve(pivots, wanted - delta[held])
        return np.asarray(delta[:m])
