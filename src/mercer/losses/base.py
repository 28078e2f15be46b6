"""The base class of losses, and the quadratic program (`BoxQP`) that is the dual of each.

With the primal  ½|w|² + Σ Cᵢ ℓ(yᵢ, f(xᵢ) + b)  the dual in signed coordinates β (w = Σ βᵢ φ(xᵢ)) is

    min  ½β'Kβ − linear'β + Σ l1ᵢ|βᵢ| + ½Σ ridgeᵢ βᵢ²
    s.t. lower ≤ β ≤ upper,   Σ_{i∈g} βᵢ = sums[g]  for each group g

The multiplier of a group's sum is its *threshold*, which is added to f: f + threshold is the decision. Most losses have
one threshold, the intercept b; without an intercept there is none. The ν-formulations have two, whose mean is the
intercept and whose half difference is the margin (ν-SVC) or the half width of the tube (ν-SVR).

Let K = Φ'Φ and let conj_v(t) = max of  tβ − l1_v|β| − ½ridge_v β²  over the box of variable v. Then weak duality reads

    ½|w|² + Σ_g threshold_g sums_g + Σ_v conj_v(linear_v − f_v − threshold_g(v))  ≥  −(the quadratic program's value)

where the left side is the primal. `Loss.primal` computes it from the loss itself, not from the program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._compiled.thread_pool import cached_property
from mercer.exceptions import InvalidInputError

Vector = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class BoxQP:
    """min ½β'Kβ − linear'β + Σ l1|β| + ½Σ ridge β²  s.t.  lower ≤ β ≤ upper, one sum per group.

    Attributes
    ----------
    linear, l1, ridge, lower, upper : one number per variable; the bounds may be infinite.
    group : the group of each variable.
    sums : the required sum of each group; empty without an intercept.
    sample : the sample of each variable; None if variable i belongs to sample i. K is indexed by samples: if two
        variables share a sample (ν-SVR), the matrix of the program is ``K[sample][:, sample]``.
    """

    linear: Vector
    l1: Vector
    ridge: Vector
    lower: Vector
    upper: Vector
    group: NDArray[np.int8]
    sums: Vector
    sample: Index | None = None

    @property
    def n_vars(self) -> int:
        """The number of variables."""
        return len(self.linear)

    @property
    def n_groups(self) -> int:
        """The number of sum constraints."""
        return len(self.sums)

    @cached_property
    def is_bounded(self) -> bool:
        """Whether all variables have two finite bounds."""
        return bool(np.isfinite(self.upper.sum() - self.lower.sum()))

    @cached_property
    def has_open_box(self) -> bool:
        """Whether some variable has an infinite bound and no ridge term: hard margins and hard tubes."""
        if self.is_bounded:
            return False
        return bool(np.any((np.isinf(self.lower) | np.isinf(self.upper)) & (self.ridge == 0)))

    @cached_property
    def is_smooth(self) -> bool:
        """Whether the loss of each sample has a continuous derivative, as squared losses do (or its β is fixed)."""
        return bool(np.all((self.ridge > 0) | (self.lower == self.upper)))

    def at_variables(self, F: Vector) -> Vector:
        """Expand a vector over samples, such as F = Kβ, to the variables."""
        return F if self.sample is None else F[self.sample]

    def at_samples(self, beta: Vector, n: int) -> Vector:
        """The coefficient of each of n samples: the sum of its variables. Returns beta itself if ``sample`` is None."""
        if self.sample is None:
            return beta
        return np.bincount(self.sample, weights=beta, minlength=n).astype(np.float64)

    def group_sums(self, beta: Vector) -> Vector:
        """The sum of each group."""
        return np.bincount(self.group, weights=beta, minlength=self.n_groups)[: self.n_groups].astype(np.float64)

    def incidence(self) -> NDArray[np.float64]:
        """The matrix A with one row per group, so that Aβ are the sums."""
        A: NDArray[np.float64] = (self.group == np.arange(self.n_groups)[:, None]).astype(np.float64)
        return A

    def at_rows(self, rows: Index, n: int) -> tuple[BoxQP, Index]:
        """The program restricted to some of n samples, renumbered 0, 1, …, and the numbers of its variables."""
        if self.sample is None:
            variables = np.asarray(rows)
            return self.take(variables, None), variables
        position = np.full(n, -1, dtype=np.intp)
        position[rows] = np.arange(len(rows))
        at = position[self.sample]
        variables = np.flatnonzero(at >= 0)
        return self.take(variables, at[variables]), variables

    def take(self, variables: Index | slice, sample: Index | None) -> BoxQP:
        """The program restricted to some variables, with new sample numbers. The sums do not change."""
        return replace(
            self,
            linear=self.linear[variables],
            l1=self.l1[variables],
            ridge=self.ridge[variables],
            lower=self.lower[variables],
            upper=self.upper[variables],
            group=self.group[variables],
            sample=sample,
        )


class Published(NamedTuple):
    """The published model of a solved program: the decision is Σ beta_i k(x_i, ·) + intercept.

    ``scale`` is the number by which the solved β and thresholds were divided: 1, except for ν-SVC.
    """

    beta: Vector
    intercept: float
    scale: float


class Loss(ABC):
    """A loss ℓ(y, f). y is ±1 for classification, a number for regression, 1 for novelty detection. Immutable.

    Attributes
    ----------
    lipschitz : the smallest L with |ℓ(y, f) − ℓ(y, g)| ≤ L |f − g| for all y, f and g; inf if there is none. As a
        function of w, with f = ⟨w, φ(x)⟩, the loss is L|φ(x)|-Lipschitz ([SSBD] Claim 15.6).
    smoothness : the same for the derivative of the loss with respect to f; inf if the loss has kinks. As a function of
        w, the loss is smoothness · |φ(x)|²-smooth.
    """

    name: ClassVar[str]
    lipschitz: ClassVar[float] = np.inf
    smoothness: ClassVar[float] = np.inf
    # whether, with an intercept, the program's data of a sample depend only on that sample, and the required sum is 0
    one_by_one: ClassVar[bool] = False
    # whether equal samples with equal targets can be merged into one with their total weight
    additive: ClassVar[bool] = False

    @abstractmethod
    def value(self, y: Vector, f: Vector) -> Vector:
        """The loss of each sample, without its weight. f includes the intercept."""

    @abstractmethod
    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """The dual program for the weights Cᵢ = C · sample_weightᵢ. A sample of weight 0 is fixed at β = 0."""

    @abstractmethod
    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """The thresholds that minimise the primal for a given f (without intercept), one per group of `box_qp`.

        If a whole interval is optimal, its midpoint; if the interval is unbounded, its finite end.
        """

    def best_intercept(self, y: Vector, f: Vector, weight: Vector) -> float:
        """The intercept for a given f: the exact minimiser over b of Σ weight · value(y, f + b).

        For the ν-losses it is minimised jointly with the margin or the width of the tube.
        """
        return float(self.best_thresholds(y, f, weight).mean())

    def primal(
        self, squared_norm: float, y: Vector, f: Vector, weight: Vector, thresholds: Vector, sums: Vector
    ) -> float:
        """½|w|² + Σ weight · value(y, f + threshold) + threshold · sum, for f without the intercept.

        ``thresholds`` and ``sums`` have one entry per group, none without an intercept. Samples that are known to have
        no loss may be left out of y, f and weight.
        """
        b = thresholds[0] if len(thresholds) else 0.0
        value = self.value(y, f + b)
        with np.errstate(invalid="ignore"):
            loss = weight @ value
        if np.isnan(loss):
            paid = value > 0  # a sample of infinite weight without loss pays 0
            loss = weight[paid] @ value[paid]
        return float(0.5 * squared_norm + loss + thresholds @ sums)

    def feasible_scale(self, y: Vector, f: Vector, weight: Vector) -> float:
        """The number by which to divide a model so that its loss is finite: 1, except for hard margins.

        f includes the intercept. The result is not positive if no positive multiple of f has a finite loss.
        """
        return 1.0

    def excess(self, y: Vector, f: Vector, weight: Vector) -> float:
        """By how much a hard tube must be widened to contain f (with the intercept); 0 for other losses."""
        return 0.0

    def restored(self, beta: Vector, y: Vector, f: Vector, weight: Vector) -> Vector:
        """The variables of the program from the coefficients of a model: β, unless samples have two variables each.

        f does not include the intercept. Certificates, of a fit and of ``certify``, are those of these variables.
        """
        return beta

    def publish(self, beta: Vector, thresholds: Vector) -> Published:
        """The coefficients and the intercept of the model that β and the thresholds describe.

        ``beta`` has one number per sample: ``qp.at_samples`` of the solved β.
        """
        b = thresholds.tolist()
        return Published(beta, sum(b) / len(b) if b else 0.0, 1.0)


def signed_box(y: Vector, bound: Vector) -> tuple[Vector, Vector]:
    """[0, bound] · y for labels ±1."""
    end = y * bound
    return np.minimum(end, 0.0), np.maximum(end, 0.0)


def program(
    linear: Vector,
    lower: Vector,
    upper: Vector,
    intercept: bool,
    *,
    l1: float = 0.0,
    ridge: Vector | None = None,
    total: float = 0.0,
) -> BoxQP:
    """A program with one variable per sample; with an intercept, their sum is ``total``."""
    n = len(linear)
    return BoxQP(
        linear=np.asarray(linear, dtype=np.float64),
        l1=np.full(n, l1) if l1 else np.zeros(n),  # zeros that are only read take no memory
        ridge=np.zeros(n) if ridge is None else ridge,
        lower=lower,
        upper=upper,
        group=np.zeros(n, dtype=np.int8),
        sums=np.array([total]) if intercept else np.empty(0),
    )


def finite_weight(weight: Vector, loss: Loss, infinite: bool = False) -> Vector:
    """Return the weights; raise if one is negative, NaN, or (unless ``infinite``) infinite."""
    weight = np.asarray(weight, dtype=np.float64)
    allowed = (np.isfinite(weight) | infinite) & (weight >= 0)
    if not allowed.all():
        found = weight[~allowed][0]
        raise InvalidInputError(
            f"A weight C * sample_weight of {found:g} was found: the {loss.name} needs finite weights of at least 0. "
            "Correct C or sample_weight; for C=inf use HardMargin."
        )
    return weight


def half_inverse(weight: Vector) -> Vector:
    """The ridge 1/(2C) of a squared loss; 0 where the weight is 0 (there the box is {0})."""
    return np.divide(0.5, weight, out=np.zeros_like(weight), where=weight > 0)


def check_nu(nu: float) -> None:
    """Raise unless 0 < nu ≤ 1."""
    if not 0 < nu <= 1:
        raise InvalidInputError(f"nu={nu:g} was given: nu must be greater than 0 and at most 1.")


def check_epsilon(epsilon: float) -> None:
    """Raise unless 0 ≤ epsilon < inf."""
    if not 0 <= epsilon < np.inf:
        raise InvalidInputError(f"epsilon={epsilon:g} was given: epsilon must be a finite number of at least 0.")


def needs_intercept(intercept: bool, loss: Loss) -> None:
    """Raise if there is no intercept. For losses whose threshold is a variable of the primal."""
    if not intercept:
        raise InvalidInputError(f"The {loss.name} needs an intercept, since nu controls its threshold.")
