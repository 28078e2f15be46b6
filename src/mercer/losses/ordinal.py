"""Losses of ordinal regression: one function f and ordered thresholds between r ordered classes 0, 1, …, r − 1.

Threshold j separates the classes up to j from the classes above it. t_j, minus the threshold, is added to f:

    f + t_j ≤ −1  for samples below it,     f + t_j ≥ 1  for samples above it,     t_0 ≥ t_1 ≥ …

Chu & Keerthi, "Support vector ordinal regression", Neural Computation 19 (2007). A sample has a copy for each of its
thresholds: a variable of the dual with the label −1 or 1, in the group of the threshold.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.exceptions import InvalidInputError
from mercer.losses.base import BoxQP, Loss, Vector, finite_weight, needs_intercept, signed_box
from mercer.losses.thresholds import lowest_linear

Matrix = NDArray[np.float64]
# groups are numbered by int8
MOST_CLASSES = 127


@dataclass(frozen=True)
class Ordinal(Loss):
    """Σ over the thresholds j of a sample of max(0, 1 − s_j (f + t_j)), with s_j = 1 above threshold j, −1 below."""

    n_classes: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.n_classes <= MOST_CLASSES:
            raise InvalidInputError(
                f"{self.n_classes} ordered classes were given, but there must be 2 to {MOST_CLASSES}. For targets with "
                "more values use a regression, such as SVR."
            )

    @abstractmethod
    def labels(self, y: Vector) -> Matrix:
        """s_j of each sample (rows) and threshold (columns); 0 where the threshold is not one of the sample's."""

    @property
    def group_of(self) -> NDArray[np.int8]:
        """The group of each threshold: thresholds of the same group are equal."""
        return np.arange(self.n_classes - 1, dtype=np.int8)

    def value(self, y: Vector, f: Vector) -> Vector:
        """Σ_j max(0, 1 − s_j f_j), for a matrix of the values f + t_j."""
        labels = self.labels(y)
        return np.where(labels != 0, np.maximum(0.0, 1.0 - labels * f), 0.0).sum(axis=1)

    def primal(
        self, squared_norm: float, y: Vector, f: Vector, weight: Vector, thresholds: Vector, sums: Vector
    ) -> float:
        """½|w|² + Σ weight · value(y, f + t)."""
        paid = weight @ self.value(y, f[:, None] + thresholds[self.group_of])
        return float(0.5 * squared_norm + paid)

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """For each group the t that minimises Σ weight max(0, 1 − s(f + t)) over its copies."""
        labels, group_of = self.labels(y), self.group_of
        found = np.empty(int(group_of.max()) + 1)
        for g in range(len(found)):
            s = labels[:, group_of == g]
            breakpoints, weights = s - f[:, None], np.abs(s) * weight[:, None]
            rising = -float(weights[s > 0].sum())
            found[g] = lowest_linear(breakpoints.ravel(), weights.ravel(), rising)
        return found


@dataclass(frozen=True)
class ImplicitOrdinal(Ordinal):
    """Every sample has a copy for every threshold; the optimal thresholds are then ordered by themselves (SVORIM).

    Dual: (r − 1) n variables with linear s, box [0, C]·s, one sum of 0 for each threshold.
    """

    name: ClassVar[str] = "implicit ordinal loss"

    def labels(self, y: Vector) -> Matrix:
        return np.where(y[:, None] > np.arange(self.n_classes - 1), 1.0, -1.0)

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Variable v belongs to sample v mod n and threshold v div n."""
        needs_intercept(intercept, self)
        weight = finite_weight(weight, self)
        n, k = len(y), self.n_classes - 1
        return copies(self.labels(y).T.ravel(), np.tile(weight, k), np.repeat(self.group_of, n), k, n)


@dataclass(frozen=True)
class ExplicitOrdinal(Ordinal):
    """A sample has copies for the two thresholds around its class only; their order is a constraint (SVOREX).

    Dual: two variables per sample, for the threshold above its class (s = −1) and for the one below (s = 1), with
    linear s and box [0, C]·s. Where the order of the thresholds is active, they are equal: a group has the thresholds
    ``merged`` into it, and one sum.
    """

    name: ClassVar[str] = "explicit ordinal loss"
    merged: tuple[int, ...] = ()

    @property
    def group_of(self) -> NDArray[np.int8]:
        return np.array(self.merged, dtype=np.int8) if self.merged else super().group_of

    def labels(self, y: Vector) -> Matrix:
        threshold = np.arange(self.n_classes - 1)
        return np.where(y[:, None] == threshold, -1.0, np.where(y[:, None] == threshold + 1, 1.0, 0.0))

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Variables i and i + n belong to sample i: the thresholds above and below its class, if there are such."""
        needs_intercept(intercept, self)
        weight = finite_weight(weight, self)
        n, k = len(y), self.n_classes - 1
        codes = y.astype(np.intp)
        s = np.concatenate([np.full(n, -1.0), np.ones(n)])
        exists = np.concatenate([codes < k, codes > 0])
        group = self.group_of[np.concatenate([np.minimum(codes, k - 1), np.maximum(codes - 1, 0)])]
        return copies(s, np.where(exists, np.tile(weight, 2), 0.0), group, int(self.group_of.max()) + 1, n)

    def threshold_sums(self, beta: Vector, y: Vector) -> Vector:
        """Σβ of the copies of each threshold."""
        n, k = len(y), self.n_classes - 1
        codes = y.astype(np.intp)
        above, below = codes < k, codes > 0
        sums = np.bincount(codes[above], weights=beta[:n][above], minlength=k).astype(np.float64)
        return sums + np.bincount(codes[below] - 1, weights=beta[n:][below], minlength=k)


def copies(s: Vector, weight: Vector, group: NDArray[np.int8], n_groups: int, n: int) -> BoxQP:
    """The program of copies with labels s: linear s, box [0, weight]·s, a sum of 0 for each group."""
    lower, upper = signed_box(s, weight)
    return BoxQP(
        linear=s,
        l1=np.zeros(len(s)),
        ridge=np.zeros(len(s)),
        lower=lower,
        upper=upper,
        group=group,
        sums=np.zeros(n_groups),
        sample=np.tile(np.arange(n), len(s) // n),
    )
