"""Sets of labels and intervals that contain the truth with a chosen probability, from scores of held-out samples.

If a new sample and m held-out ones are exchangeable, the rank of its score among theirs is uniform: of its m + 1
places each is as likely. So a label is kept if more than a share α of the places is no better than its own, and the
interval is as wide as the ⌈(1 − α)(m + 1)⌉-th smallest residual. Vovk, Gammerman & Shafer, *Algorithmic Learning in a
Random World* (2005); Lei, G'Sell, Rinaldo, Tibshirani & Wasserman, JASA 113 (2018).

* Scores of fresh samples (``conformalize``): P(truth inside) ≥ 1 − α, exactly, whatever the model and the
  distribution.
* Scores of cross-validation, the default: the models behind them saw fewer samples than the final one, so that the
  scores tend to be a little worse than those of new samples, and they helped to choose the parameters. Coverage is
  close to 1 − α, not guaranteed. Samples of weight 0 are left out, all others count alike.
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
    """Scores of held-out samples of each class, in ascending order: larger ones speak for their own class."""

    by_class: tuple[Vector, ...]

    @property
    def n(self) -> int:
        """The number of held-out samples."""
        return sum(map(len, self.by_class))

    def p_values(self, scores: Matrix, mondrian: bool = False) -> Matrix:
        """Of each label, the share of places that are no better than this sample's, among all or its own class."""
        everyone = np.sort(np.concatenate(self.by_class))
        found = np.empty_like(scores)
        for c, own in enumerate(self.by_class):
            known = own if mondrian else everyone
            found[:, c] = (1.0 + np.searchsorted(known, scores[:, c], side="right")) / (len(known) + 1.0)
        return found

    def sets(self, scores: Matrix, alpha: float, mondrian: bool = False) -> NDArray[np.bool_]:
        """The labels that are kept, one column per class."""
        check_alpha(alpha)
        # a p-value is a whole multiple of 1/(m + 1): what is equal but for rounding is not above
        return self.p_values(scores, mondrian) > alpha * (1.0 + 1e-12)


def conformal_sets(scores: Matrix, codes: NDArray[np.intp]) -> ConformalSets:
    """From the score of every class for held-out samples, and the number of their true class."""
    known = np.isfinite(scores).all(axis=1)
    own = scores[np.arange(len(scores)), codes]
    return ConformalSets(tuple(np.sort(own[known & (codes == c)]) for c in range(scores.shape[1])))


@dataclass(frozen=True, eq=False)
class ConformalIntervals:
    """Residuals y − f of held-out samples, in ascending order."""

    residuals: Vector

    @property
    def n(self) -> int:
        """The number of held-out samples."""
        return len(self.residuals)

    def interval(self, predictions: Vector, alpha: float, symmetric: bool = True) -> Matrix:
        """The lower and the upper end of each; infinite where there are too few residuals for so small an alpha.

        Symmetric intervals leave out the largest |residuals|; others the same share of positive and of negative ones.
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
    """From held-out predictions and the true values; predictions that are NaN were never made."""
    residuals = np.asarray(y, dtype=np.float64) - predictions
    return ConformalIntervals(np.sort(residuals[np.isfinite(residuals)]))


def check_alpha(alpha: float) -> None:
    """Raise unless 0 < alpha < 1."""
    if not isinstance(alpha, Real) or not 0 < alpha < 1:
        raise InvalidInputError(
            f"alpha={alpha!r} was given: it is the share of samples that may be missed, between 0 and 1; 0.1 asks for "
            "90 % coverage."
        )
