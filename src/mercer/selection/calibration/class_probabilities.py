"""Class probabilities from held-out decision values, consistent with the labels that the machine predicts.

    sigmoid      P = 1/(1 + exp(−(a f + c))), a ≥ 0          Platt (1999); Lin, Lin & Weng, Machine Learning 68 (2007)
    beta         logit P = a log s − b log(1 − s) + c, a, b ≥ 0, s the sigmoid of f; Kull, Silva Filho & Flach (2017)
    isotonic     any P that does not fall with f             Zadrozny & Elkan, KDD (2002)
    venn_abers   the middle of a Venn–Abers interval         `mercer.selection.calibration.venn_abers`

A ``Scheme`` gives the meaning of the columns of decision values: one column for two classes, positive for the second;
one for each pair (i, j), positive for i; or one for each class against the rest. Pairs are coupled (Wu, Lin & Weng,
JMLR 5, 2004). With several classes the result may be over- or underconfident; temperature scaling, a normalised power
p^τ, corrects this (Guo, Pleiss, Sun & Weinberger, ICML 2017).

If the largest calibrated probability belongs to another class than the predicted one, the probabilities are moved to
the nearest ones that agree with the prediction (`agree`). This affects few samples, all near the decision boundary,
unless the threshold of the machine is far from equal odds. With ``class_weight`` the probabilities therefore refer to
classes weighted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize_scalar
from scipy.special import expit, logsumexp

from mercer.estimators.prediction import couple, logistic_regression, smoothed_targets
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.selection.calibration.venn_abers import venn_abers
from mercer.svm.batch import class_pairs

Index = NDArray[np.intp]
Map = Callable[[Vector], Vector]
# the smallest advantage of the predicted class over all others; large enough for float32
ADVANTAGE = 1e-6
# range of the power τ, and the smallest probability that is raised to it
POWERS = (0.1, 10.0)
SMALLEST = 1e-12


class Scheme(Enum):
    """The meaning of the columns of decision values."""

    PAIRS = "one against one"
    REST = "one against the rest"

    def columns(self, n_classes: int) -> int:
        """The number of columns."""
        if n_classes == 2:
            return 1
        return len(class_pairs(n_classes)) if self is Scheme.PAIRS else n_classes

    def margins(self, values: Matrix, n_classes: int) -> Matrix:
        """The smallest margin of each class over the other classes; positive for at most one class."""
        if n_classes == 2:
            return np.column_stack([-values[:, 0], values[:, 0]])
        margins = np.full((len(values), n_classes), np.inf)
        if self is Scheme.PAIRS:
            for column, (i, j) in enumerate(class_pairs(n_classes)):
                margins[:, i] = np.minimum(margins[:, i], values[:, column])
                margins[:, j] = np.minimum(margins[:, j], -values[:, column])
            return margins
        for c in range(n_classes):
            margins[:, c] = values[:, c] - np.delete(values, c, axis=1).max(axis=1)
        return margins


# ---- one column ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sigmoid:
    """P = 1/(1 + exp(−(slope f + offset)))."""

    slope: float
    offset: float

    def __call__(self, values: Vector) -> Vector:
        p: Vector = expit(self.slope * values + self.offset)
        return p


@dataclass(frozen=True)
class Beta:
    """logit P = a log s − b log(1 − s) + c with s = sigmoid(f): different slopes on the two sides."""

    sigmoid: Sigmoid
    a: float
    b: float
    c: float

    def __call__(self, values: Vector) -> Vector:
        below, above = _sides(self.sigmoid, values)
        p: Vector = expit(self.a * below + self.b * above + self.c)
        return p


@dataclass(frozen=True, eq=False)
class Isotonic:
    """P as a non-decreasing function, linear between the knots and constant beyond them."""

    knots: Vector
    probabilities: Vector

    def __call__(self, values: Vector) -> Vector:
        p: Vector = np.interp(values, self.knots, self.probabilities)
        return p


def fit_sigmoid(values: Vector, positive: Vector, weight: Vector) -> Sigmoid:
    """Platt's sigmoid with smoothed targets; constant if its slope would be negative."""
    target = smoothed_targets(positive, weight)
    slope, offset = logistic_regression(values[:, None], target, weight)
    if not slope > 0:
        (offset,) = logistic_regression(np.empty((len(values), 0)), target, weight)
        slope = 0.0
    return Sigmoid(float(slope), float(offset))


def fit_beta(values: Vector, positive: Vector, weight: Vector) -> Beta:
    """The best a, b ≥ 0 and c. The problem is convex: compare the optima with none, one or both of a and b set to 0."""
    sigmoid = fit_sigmoid(values, positive, weight)
    target = smoothed_targets(positive, weight)
    sides = np.column_stack(_sides(sigmoid, values))
    best, lowest = np.zeros(3), np.inf
    for kept in ([0, 1], [0], [1], []):
        found = logistic_regression(sides[:, kept], target, weight)
        coef = np.zeros(3)
        coef[[*kept, 2]] = found
        z = sides @ coef[:2] + coef[2]
        entropy = float(weight @ (np.logaddexp(0.0, z) - target * z))
        if (coef[:2] >= 0).all() and entropy < lowest:
            best, lowest = coef, entropy
    return Beta(sigmoid, *best.tolist())


def _sides(sigmoid: Sigmoid, values: Vector) -> tuple[Vector, Vector]:
    """log s and −log(1 − s), without overflow."""
    z = sigmoid.slope * values + sigmoid.offset
    return -np.logaddexp(0.0, -z), np.logaddexp(0.0, z)


def fit_isotonic(values: Vector, positive: Vector, weight: Vector) -> Isotonic:
    """Isotonic regression. Probabilities are clipped to Platt's targets, so none is 0 or 1."""
    knots, place = np.unique(values, return_inverse=True)
    total = np.bincount(place, weight, len(knots))
    share = np.bincount(place, weight * positive, len(knots)) / total
    fitted = isotonic_regression(share, weights=total).x
    targets = smoothed_targets(np.array([False, True]), np.array([weight[~positive].sum(), weight[positive].sum()]))
    return Isotonic(knots, np.clip(fitted, *np.sort(targets)))


METHODS: dict[str, Callable[[Vector, Vector, Vector], Map]] = {
    "sigmoid": fit_sigmoid,
    "beta": fit_beta,
    "isotonic": fit_isotonic,
    "venn_abers": venn_abers,
}

# ---- all columns -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Calibration:
    """Maps decision values to class probabilities: a map per column, coupling or normalisation, and a power."""

    scheme: Scheme
    n_classes: int
    maps: tuple[Map, ...]
    power: float = 1.0

    def probabilities(self, values: Matrix, winners: Index | None = None) -> Matrix:
        """Probabilities, one column per class; consistent with the predicted class indices ``winners`` if given."""
        p = np.column_stack([one(values[:, column]) for column, one in enumerate(self.maps)])
        if self.n_classes == 2:
            p = np.column_stack([1.0 - p[:, 0], p[:, 0]])
        elif self.scheme is Scheme.PAIRS:
            p = couple(p, self.n_classes)
        else:
            p = np.maximum(p, SMALLEST)
            p /= p.sum(axis=1, keepdims=True)
        if self.power != 1.0:
            logs = self.power * np.log(np.maximum(p, SMALLEST))
            p = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        return p if winners is None else agree(p, winners)


def calibrate(
    values: Matrix,
    codes: Index,
    n_classes: int,
    method: str = "sigmoid",
    weight: Vector | None = None,
    scheme: Scheme = Scheme.PAIRS,
) -> Calibration:
    """Fit a calibration to decision values of samples that were not used to train their machine.

    Parameters
    ----------
    values : decision values in the columns of ``scheme``; rows with NaN (never held out) are ignored.
    codes : class indices of the samples.
    method : "sigmoid", "beta", "isotonic" or "venn_abers".
    weight : sample weights; only their ratios matter.
    """
    if method not in METHODS:
        raise InvalidInputError(f"calibration={method!r} is not known: use one of {', '.join(map(repr, METHODS))}.")
    weight = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
    known = held_out(values) & (weight > 0)
    if not known.any():
        raise InvalidInputError("No sample with positive weight was held out: probabilities cannot be learnt.")
    values, codes, weight = values[known], codes[known], weight[known]
    weight = weight * (len(weight) / weight.sum())
    fit = METHODS[method]
    maps = []
    for positive, negative, column in _problems(n_classes, scheme):
        taking_part = np.ones(len(codes), np.bool_) if negative is None else (codes == positive) | (codes == negative)
        if taking_part.any():
            part = values[taking_part, column], codes[taking_part] == positive, weight[taking_part]
            maps.append(fit(*part))
        else:
            maps.append(Sigmoid(1.0, 0.0))  # no samples of this pair
    found = Calibration(scheme, n_classes, tuple(maps))
    return found if n_classes == 2 else replace(found, power=_power(found.probabilities(values), codes, weight))


def _power(p: Matrix, codes: Index, weight: Vector) -> float:
    """The power τ that minimises the cross-entropy of the normalised p^τ: a convex problem."""
    logs = np.log(np.maximum(p, SMALLEST))
    own = logs[np.arange(len(codes)), codes]

    def entropy(power: float) -> float:
        return float(weight @ (logsumexp(power * logs, axis=1) - power * own))

    return float(minimize_scalar(entropy, bounds=POWERS, method="bounded").x)


def _problems(n_classes: int, scheme: Scheme) -> list[tuple[int, int | None, int]]:
    """(positive class, negative class or None for the rest, column) of each column."""
    if n_classes == 2:
        return [(1, 0, 0)]
    if scheme is Scheme.PAIRS:
        return [(i, j, column) for column, (i, j) in enumerate(class_pairs(n_classes))]
    return [(c, None, c) for c in range(n_classes)]


def held_out(values: Matrix) -> NDArray[np.bool_]:
    """Whether each sample was held out, so that its values are finite."""
    return np.asarray(np.isfinite(values).all(axis=1))


def agree(p: Matrix, winners: Index) -> Matrix:
    """The probabilities nearest to p in squared distance for which the winner has the largest one.

    The winner and the classes above it get their average. Every winner then gets a small advantage that grows with its
    original probability, so that samples keep their order and no two classes tie.
    """
    n, k = p.shape
    rows = np.arange(n)
    own = p[rows, winners]
    others = p.copy()
    others[rows, winners] = -np.inf
    others = -np.sort(-others, axis=1)[:, : k - 1]
    # averages of the winner with the 0, 1, … largest others; pool until the next one is not above the average
    level = (own[:, None] + np.column_stack([np.zeros(n), np.cumsum(others, axis=1)])) / np.arange(1, k + 1)
    enough = np.column_stack([level[:, :-1] >= others, np.ones(n, np.bool_)])
    level = level[rows, enough.argmax(axis=1)]
    agreed = np.minimum(p, level[:, None])
    agreed[rows, winners] = level
    share = 0.25 + 0.5 * own
    agreed = (1.0 - ADVANTAGE) * agreed + ADVANTAGE * ((1.0 - share) / k)[:, None]
    agreed[rows, winners] += ADVANTAGE * share
    return agreed / agreed.sum(axis=1, keepdims=True)
