"""The dual problem, and its optimality conditions for a candidate β, computed from F = Kβ.

    min  ½β'Kβ − linear'β + Σ l1|β| + ½Σ ridge β²    s.t.  lower ≤ β ≤ upper,  Σ_g β = sums[g]

With s_v = linear_v − F_v − ridge_v β_v, the objective decreases at the rate u_v when β_v increases, and at the rate
−l_v when it decreases:

    u_v = s_v − l1_v if β_v ≥ 0 else s_v + l1_v,     −∞ at the upper bound
    l_v = s_v + l1_v if β_v ≤ 0 else s_v − l1_v,     +∞ at the lower bound

β is optimal if and only if each group has a threshold b with  m = max u ≤ b ≤ min l = M; without sums, b = 0. The KKT
violation is the amount by which that fails, in units of the decision function: LIBSVM's stopping rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._compiled.thread_pool import cached_property
from mercer.losses.base import BoxQP, Index, Loss, Vector

# β'Kβ / |β|₁², relative to the largest kernel value, counts as 0 up to this value
DIVERGED = 1e-14
# the same ratio: below minus this value, K is indefinite by more than the rounding of a float32 matrix
INDEFINITE = 1e-5
# relative distance at which a β counts as being at its bound
BOUND_ROUNDING = 1e-12
# a coefficient closer to its bound than this fraction of the box counts as at the bound
AT_BOUND = 1e-10
# the same fraction for coefficients that steps have left next to a bound by rounding
DUST = 1e-12


@dataclass(frozen=True, eq=False)
class DualProblem:
    """A kernel matrix, a loss and the data: everything that determines the optimum.

    Attributes
    ----------
    gram : the operator K, or another object that the solver uses; None if only the quadratic program is needed.
    loss, y, weight : the primal is ½|w|² + Σ weight · loss(y, f + b).
    intercept : whether there is an intercept b.
    """

    gram: Any
    loss: Loss
    y: Vector
    weight: Vector
    intercept: bool = True

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.y)

    @cached_property
    def qp(self) -> BoxQP:
        """The quadratic program, built once."""
        return self.loss.box_qp(self.y, self.weight, self.intercept)

    def start(self) -> Vector:
        """A feasible β: see `feasible_start`."""
        return feasible_start(self.qp)

    def restrict(self, index: Index, y: Vector | None = None) -> DualProblem:
        """The problem of some samples, such as a pair of classes or a fold; with new labels if y is given."""
        return DualProblem(
            None if self.gram is None else self.gram.take(index),
            self.loss,
            self.y[index] if y is None else y,
            self.weight[index],
            self.intercept,
        )


def feasible_start(qp: BoxQP, near: Vector | None = None) -> Vector:
    """A feasible β: ``near`` or 0, clipped to the box; its sums are then corrected from the first variable on.

    LIBSVM starts in the same way. If the box does not allow the sums, they are approached as closely as possible.
    """
    # np.clip and np.append would take several times as long for few variables
    beta: Vector = np.minimum(np.maximum(0.0 if near is None else near, qp.lower), qp.upper)
    for g in np.flatnonzero(qp.group_sums(beta) != qp.sums):
        members = np.flatnonzero(qp.group == g)
        missing = qp.sums[g] - beta[members].sum()
        sign = 1.0 if missing > 0 else -1.0
        room = qp.upper[members] - beta[members] if missing > 0 else beta[members] - qp.lower[members]
        used_before = np.zeros(len(room))
        np.cumsum(room[:-1], out=used_before[1:])
        beta[members] += sign * np.minimum(np.maximum(abs(missing) - used_before, 0.0), room)
    return beta


def at_bounds(qp: BoxQP, beta: Vector) -> Vector:
    """β with entries that are within rounding of a bound set to the bound."""
    for bound in (qp.lower, qp.upper):
        beta = np.where(np.abs(beta - bound) <= BOUND_ROUNDING * np.abs(beta), bound, beta)
    return beta


def settled_at_bounds(qp: BoxQP, beta: Vector, rounding: float = AT_BOUND) -> Vector:
    """β with entries that are within ``rounding`` of a bound, or of 0, set to it; else they would count as free.

    ``rounding`` is relative to the width of the box, or to the largest of |β| and 1 if that is smaller. Returns the
    same array if no entry changes.
    """
    inside = np.flatnonzero((beta != 0) & (beta != qp.lower) & (beta != qp.upper))
    old, lower, upper = beta[inside], qp.lower[inside], qp.upper[inside]
    width = upper - lower
    near = np.where(np.isfinite(width), rounding * np.minimum(width, np.abs(beta).max(initial=1.0)), 0.0)
    new = old
    for bound in (lower, upper, np.zeros(len(inside))):
        new = np.where(np.abs(new - bound) <= near, bound, new)
    if np.array_equal(new, old):
        return beta
    beta = beta.copy()
    beta[inside] = new
    return beta


class Survey(NamedTuple):
    """Optimality, feasibility and dual value of a β, computed in one pass.

    Vectors have one entry per group; without sums, one entry for all variables.

    Attributes
    ----------
    m, M : the largest u of variables that may increase, the smallest l of variables that may decrease.
    levels, n_free : the sum of s − l1 sign(β) over the free variables, and their number.
    missing : the required sum of each group minus its sum.
    outside : the largest distance of β from its box.
    squared_norm : β'F.
    dual : linear'β − Σ l1|β| − ½β'F − ½Σ ridge β².
    terms : the sum of the absolute values of the terms of the dual.
    """

    m: Vector
    M: Vector
    levels: Vector
    n_free: Vector
    missing: Vector
    outside: float
    squared_norm: float
    dual: float
    terms: float

    @property
    def violation(self) -> float:
        """The largest KKT violation: max(0, m − M) over the groups; max(0, m, −M) without sums; inf if undefined."""
        with np.errstate(over="ignore"):  # a run on an indefinite matrix may diverge: then it is inf
            return _largest(*(self.m - self.M if len(self.missing) else (self.m[0], -self.M[0])))

    @property
    def infeasibility(self) -> float:
        """The largest distance of β from its box, or of a group from its sum; inf if β contains NaN."""
        return _largest(self.outside, *np.abs(self.missing))

    @property
    def thresholds(self) -> Vector:
        """The threshold b of each group; empty without sums.

        It is the mean of s − l1 sign(β) over the free variables (inside the box and off the kink), each of which equals
        b at the optimum ([D6] Note 35, corrected). Without free variables it is the middle of [m, M], or its finite
        end, or 0.
        """
        b = np.zeros(len(self.missing))
        for g in range(len(b)):
            if self.n_free[g] > 0:
                b[g] = self.levels[g] / self.n_free[g]
            else:
                ends = [end for end in (self.m[g], self.M[g]) if np.isfinite(end)]
                b[g] = sum(ends) / len(ends) if ends else 0.0
        return b

    @property
    def threshold_ends(self) -> tuple[Vector, Vector]:
        """The smallest and the largest optimal threshold of each group: m and M where `thresholds` is their middle."""
        b, groups = self.thresholds, slice(len(self.missing))
        m, M = self.m[groups], self.M[groups]
        apart = (self.n_free[groups] == 0) & np.isfinite(m) & np.isfinite(M) & (m < M)
        return np.where(apart, m, b), np.where(apart, M, b)


def survey(qp: BoxQP, beta: Vector, F: Vector) -> Survey:
    """The survey of β in one compiled pass over the variables."""
    groups, totals = np.empty((max(1, qp.n_groups), 5)), np.empty(7)
    fill_survey(qp, beta, F, groups, totals)
    return survey_of(groups, totals, qp.sums)


def fill_survey(qp: BoxQP, beta: Vector, F: Vector, groups: NDArray[np.float64], totals: Vector) -> None:
    """Compute per-group and total sums in one compiled pass; `survey_of` turns them into a `Survey`."""
    from mercer.problems import _optimality_loops as at

    F = np.ascontiguousarray(qp.at_variables(F), dtype=np.float64)
    beta = np.ascontiguousarray(beta, dtype=np.float64)
    at.optimality_sums(beta, F, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, qp.group, groups, totals)


def survey_of(groups: NDArray[np.float64], totals: Vector, sums: Vector) -> Survey:
    """The `Survey` from the results of `fill_survey`; ``sums`` are the sums that the program requires."""
    from mercer.problems import _optimality_loops as at

    outside, norm, abs_norm, linear, abs_linear, paid, ridge = totals.tolist()
    return Survey(
        m=groups[:, at.M_UP],
        M=groups[:, at.M_LOW],
        levels=groups[:, at.LEVELS],
        n_free=groups[:, at.N_FREE],
        missing=sums - groups[: len(sums), at.TOTAL],
        outside=outside,
        squared_norm=norm,
        dual=linear - paid - 0.5 * (norm + ridge),
        terms=abs_norm + abs_linear,
    )


def dual_objective(qp: BoxQP, beta: Vector, F: Vector) -> float:
    """linear'β − Σ l1|β| − ½β'Kβ − ½Σ ridge β², which is maximised; for feasible β it is at most the primal."""
    return survey(qp, beta, F).dual


def slopes(qp: BoxQP, beta: Vector, F: Vector) -> Vector:
    """The vector s = linear − F − ridge β."""
    return qp.linear - qp.at_variables(F) - qp.ridge * beta


def rates(qp: BoxQP, beta: Vector, F: Vector) -> tuple[Vector, Vector]:
    """(u, l) of each variable: the objective decreases at rate u when it increases, at rate −l when it decreases."""
    s = slopes(qp, beta, F)
    growing = np.where(beta >= qp.upper, -np.inf, s - np.where(beta >= 0, qp.l1, -qp.l1))
    shrinking = np.where(beta <= qp.lower, np.inf, s + np.where(beta <= 0, qp.l1, -qp.l1))
    return growing, shrinking


def brackets(qp: BoxQP, beta: Vector, F: Vector) -> tuple[Vector, Vector]:
    """(m, M) of each group; without sums, of all variables together."""
    found = survey(qp, beta, F)
    return found.m, found.M


def violation(qp: BoxQP, beta: Vector, F: Vector) -> float:
    """The largest KKT violation: see `Survey.violation`."""
    return survey(qp, beta, F).violation


def thresholds(qp: BoxQP, beta: Vector, F: Vector) -> Vector:
    """The threshold b of each group: see `Survey.thresholds`."""
    return survey(qp, beta, F).thresholds


def infeasibility(qp: BoxQP, beta: Vector) -> float:
    """The largest distance of β from its box, or of a group from its sum; inf if β contains NaN."""
    n = qp.n_vars if qp.sample is None else int(qp.sample.max(initial=-1)) + 1
    return survey(qp, beta, np.zeros(n)).infeasibility


def _largest(*violations: float) -> float:
    """The largest of them and 0; inf if one is NaN."""
    largest = 0.0
    for value in violations:
        if not value <= largest:
            largest = float(value)
    return np.inf if np.isnan(largest) else largest


def diverges(qp: BoxQP, beta: Vector, F: Vector, largest: float) -> bool:
    """Whether β diverges.

    In an open box it does if β'Kβ is negligible against |β|₁²: the convex hulls intersect, or no tube fits. A ridge
    prevents that; then β diverges only if K is indefinite: all multiples of β are feasible, and the objective improves
    with the square of the factor.
    """
    if qp.is_bounded:
        return False
    size = float(np.abs(beta).max(initial=0.0))
    if size == 0.0 or not np.isfinite(size):
        return size != 0.0
    # β is divided by its largest entry, whose square might overflow
    direction = beta / size
    total, square = float(np.abs(direction).sum()), float(qp.at_variables(F) / size @ direction)
    if qp.has_open_box:
        return square <= DIVERGED * largest * total**2
    square += float(qp.ridge @ direction**2)
    if qp.sums.any() or not square < -INDEFINITE * largest * total**2:
        return False
    return bool(np.all(np.isinf(np.where(beta > 0, qp.upper, qp.lower)) | (beta == 0)))
