"""Conformal prediction: label sets and intervals that contain the true value with a chosen probability.

If a new sample and m held-out samples are exchangeable, the rank of its score among theirs is uniform on m + 1 places.
A label is kept if its p-value, the fraction of these m + 1 scores that are no better, is above α. The half-width of the
interval is the ⌈(1 − α)(m + 1)⌉-th smallest absolute residual. Vovk, Gammerman & Shafer, *Algorithmic Learning in a
Random World* (2005); Lei, G'Sell, Rinaldo, Tibshirani & Wasserman, JASA 113 (2018).

* With scores of fresh samples (``conformalize``) coverage is at least 1 − α for any model and any distribution.
* With scores of cross-validation, the default, coverage is close to 1 − α but not guaranteed: the models of the folds
  were trained on fewer samples than the final one, which makes scores slightly worse, and the scores were used to
  choose the parameters. Samples of weight 0 are left out; all others count equally.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector


@dataclass(frozen=True, eq=False)
class ConformalSets:
    """Sorted scores of the held-out samples of each class; larger scores favour their own class."""

    by_class: tuple[Vector, ...]

    @property
    def n(self) -> int:
        """The number of held-out samples."""
        return sum(map(len, self.by_class))

    def p_values(self, scores: Matrix, mondrian: bool = False) -> Matrix:
        """The p-value of each label, from all held-out scores or with ``mondrian`` from those of the label's class."""
        everyone = np.sort(np.concatenate(self.by_class))
        found = np.empty_like(scores)
        for c, own in enumerate(self.by_class):
            known = own if mondrian else everyone
            found[:, c] = (1.0 + np.searchsorted(known, scores[:, c], side="right")) / (len(known) + 1.0)
        return found

    def sets(self, scores: Matrix, alpha: float, mondrian: bool = False) -> NDArray[np.bool_]:
        """Whether each label is kept, one column per class."""
        check_alpha(alpha)
        # p-values are multiples of 1/(m + 1): one that equals alpha up to rounding is not above it
        return self.p_values(scores, mondrian) > alpha * (1.0 + 1e-12)


def conformal_sets(scores: Matrix, codes: NDArray[np.intp]) -> ConformalSets:
    """From the scores of all classes for held-out samples, and their true class indices."""
    known = np.isfinite(scores).all(axis=1)
    own = scores[np.arange(len(scores)), codes]
    return ConformalSets(tuple(np.sort(own[known & (codes == c)]) for c in range(scores.shape[1])))


@dataclass(frozen=True, eq=False)
class ConformalIntervals:
    """Sorted residuals y − f of held-out samples."""

    residuals: Vector

    @property
    def n(self) -> int:
        """The number of held-out samples."""
        return len(self.residuals)

    def interval(self, predictions: Vector, alpha: float, symmetric: bool = True) -> Matrix:
        """Lower and upper ends; infinite if there are too few residuals for this alpha.

        Symmetric intervals use the quantile of |residuals|; others use separate quantiles with alpha/2 on each side.
        """
        check_alpha(alpha)
        if symmetric:
            width = self._quantile(np.sort(np.abs(self.residuals)), alpha)
            return np.column_stack([predictions - width, predictions + width])
        below = self._quantile(np.sort(-self.residuals), alpha / 2)
        above = self._quantile(self.residuals, alpha / 2)
        return np.column_stack([predictions - below, predictions + above])

    def _quantile(self, ordered: Vector, alpha: float) -> float:
        """The ⌈(1 − alpha)(m + 1)⌉-th smallest, or inf."""
        place = int(np.ceil((1.0 - alpha) * (self.n + 1) * (1.0 - 1e-12)))
        return float(ordered[place - 1]) if place <= self.n else np.inf


def conformal_intervals(predictions: Vector, y: Vector) -> ConformalIntervals:
    """From held-out predictions and true values; NaN predictions are ignored."""
    residuals = np.asarray(y, dtype=np.float64) - predictions
    return ConformalIntervals(np.sort(residuals[np.isfinite(residuals)]))


def check_alpha(alpha: float) -> None:
    """Raise unless 0 < alpha < 1."""
    if not isinstance(alpha, Real) or not 0 < alpha < 1:
        raise InvalidInputError(
            f"alpha={alpha!r} was given: it is the fraction of samples that may be missed, strictly between 0 and 1; "
            "0.1 gives 90 % coverage."
        )
