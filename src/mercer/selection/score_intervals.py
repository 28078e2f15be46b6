"""Confidence intervals of scores on held-out rows, and the bias of the best candidate's score.

Accuracy has Wilson's interval (JASA 22, 1927), which stays between 0 and 1 and is not degenerate if all answers are
correct. Other scores have a bootstrap interval: percentiles of the scores of rows drawn with replacement. Both measure
how much another set of held-out rows of this size would change the score; the training rows are fixed.

The score of the best of several candidates is biased upwards. Bootstrap bias corrected cross-validation chooses again
on each bootstrap sample and scores the choice on the rows that were not drawn, which removes the bias without another
fit (Tsamardinos, Greasidou & Borboudakis, Machine Learning 107, 2018).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import UndefinedMetricWarning

from mercer.kernels.features import Matrix, Vector

CONFIDENCE = 0.95
# number of resamples: for scores that are sums over rows; for scores that scikit-learn computes one by one
RESAMPLES, FEW_RESAMPLES = 1000, 200
# limit on the total number of drawn rows, and the smallest number of resamples
MOST_DRAWN, FEWEST = 20_000_000, 50
# resamples per batch of sums
AT_ONCE = 50
# only this many best candidates are compared again if the score is not a sum over rows
FINALISTS = 10
# an interval needs a score on at least this fraction of the resamples
DEFINED = 0.5

# the score of rows given by their indices, with repetitions; NaN if undefined
ScoreRows = Callable[[NDArray[np.intp]], float]


class Interval(NamedTuple):
    """The ends of a confidence interval (NaN if there is none) and a description of the method."""

    low: float
    high: float
    method: str

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high


def wilson(share: float, n: float) -> Interval:
    """Wilson's interval for an accuracy measured on n rows."""
    z = float(stats.norm.ppf(0.5 + CONFIDENCE / 2))
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(
        max(0.0, float(middle - half)), min(1.0, float(middle + half)), f"Wilson's interval, {n:,.0f} held-out rows"
    )


def percentiles(scores: Vector, n: int, shift: float = 0.0) -> Interval:
    """The percentile interval from scores of resamples of n rows, shifted by ``shift``."""
    known = scores[np.isfinite(scores)]
    if len(known) < max(2, DEFINED * len(scores)):
        return Interval(np.nan, np.nan, "no interval: the score is not defined on most resamples of the held-out rows")
    low, high = np.quantile(known, [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2])
    if low == high:
        return Interval(np.nan, np.nan, f"no interval: all resamples of the {n:,} held-out rows score the same")
    return Interval(float(low) + shift, float(high) + shift, f"bootstrap over {n:,} held-out rows")


def draws(n: int, resamples: int, seed: int = 0) -> Iterator[NDArray[np.intp]]:
    """Bootstrap samples: indices of n rows drawn with replacement, from a fixed seed."""
    rng = np.random.default_rng(seed)
    for _ in range(int(np.clip(MOST_DRAWN // n, FEWEST, resamples))):
        yield rng.integers(0, n, n)


def safely(score: ScoreRows, rows: NDArray[np.intp]) -> float:
    """The score of these rows; NaN if undefined, for example for a resample with a single class."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return float(score(rows))
    except ValueError:
        return np.nan


def resampled(score: ScoreRows, n: int, seed: int = 0) -> Vector:
    """The scores of bootstrap samples."""
    return np.array([safely(score, rows) for rows in draws(n, FEW_RESAMPLES, seed)])


def resampled_determination(y: Vector, predicted: Vector, seed: int = 0) -> Vector:
    """R² of bootstrap samples."""
    sums = Determination(y, predicted[:, None])
    return np.concatenate([sums.scores(counts)[:, 0] for counts in _counts(len(y), seed)])


class Accuracy:
    """The accuracy of several candidates; ``right`` has a row per sample and a column per candidate."""

    def __init__(self, right: Matrix) -> None:
        self.right = np.asarray(right, dtype=np.float64)

    def scores(self, counts: Matrix) -> Matrix:
        """The score of each candidate (columns) for each line of counts: how often each row was drawn."""
        return counts @ self.right / counts.sum(axis=1, keepdims=True)


class Determination:
    """R² of several candidates; ``predicted`` has a row per sample and a column per candidate."""

    def __init__(self, y: Vector, predicted: Matrix) -> None:
        self.y = y - y.mean()
        self.errors = (y[:, None] - predicted) ** 2

    def scores(self, counts: Matrix) -> Matrix:
        """The score of each candidate (columns) for each line of counts: how often each row was drawn."""
        total = counts @ self.y**2 - (counts @ self.y) ** 2 / counts.sum(axis=1)
        return 1.0 - (counts @ self.errors) / np.where(total > 0, total, np.nan)[:, None]


def corrected_by_sums(sums: Accuracy | Determination, n: int) -> float:
    """The bias corrected score of the best candidate, for scores that are sums over rows."""
    found = []
    for counts in _counts(n):
        outside = (counts == 0).astype(np.float64)
        some = outside.any(axis=1)
        best = np.argmax(sums.scores(counts[some]), axis=1)
        found.append(np.take_along_axis(sums.scores(outside[some]), best[:, None], axis=1)[:, 0])
    return float(np.nanmean(np.concatenate(found)))


def corrected(candidates: list[ScoreRows], n: int) -> float:
    """The same for any score. ``candidates`` are sorted, best first; only the first few are compared again."""
    found = []
    for rows in draws(n, FEW_RESAMPLES // 2):
        inside = [safely(one, rows) for one in candidates[:FINALISTS]]
        outside = np.setdiff1d(np.arange(n), rows)
        if np.isfinite(inside).any() and len(outside):
            found.append(safely(candidates[int(np.nanargmax(inside))], outside))
    return float(np.nanmean(found)) if np.isfinite(found).any() else np.nan


def _counts(n: int, seed: int = 0) -> Iterator[Matrix]:
    """How often each of n rows is drawn, one line per resample, in batches."""
    lines: list[Vector] = []
    for rows in draws(n, RESAMPLES, seed):
        lines.append(np.bincount(rows, minlength=n).astype(np.float64))
        if len(lines) == AT_ONCE:
            yield np.array(lines)
            lines = []
    if lines:
        yield np.array(lines)
