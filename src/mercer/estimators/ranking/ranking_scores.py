"""Scores of rankings within groups: the share of pairs in order, and NDCG."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import ndcg_score

from mercer.estimators.ranking.pair_machine import group_codes
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Vector
from mercer.ordering.pair_order import PairOrder, concordance
from mercer.validation import real_targets


def pairwise_score(y_true: Any, y_score: Any, groups: Any = None) -> float:
    """Share of the pairs of one group with yᵢ > yⱼ whose scores have this order; ties count half.

    It takes O(n log² n) operations; for two values of y and one group it is the area under the ROC curve.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Relevance.
    y_score : array-like of shape (n_samples,)
        Predicted scores.
    groups : array-like of shape (n_samples,), default=None
        The group (query) of each sample; None for one group.

    Returns
    -------
    score : float
        Between 0 and 1.

    Examples
    --------
    >>> from mercer import pairwise_score
    >>> pairwise_score([1, 2, 3], [0.1, 0.5, 0.4])
    0.6666666666666667
    """
    y, scores, codes = _checked(y_true, y_score, groups)
    order = PairOrder(y, codes)
    if order.n_pairs == 0:
        raise InvalidInputError("Within each group y_true has one value only, so that there are no pairs to compare.")
    return concordance(order, scores)


def grouped_ndcg_score(y_true: Any, y_score: Any, groups: Any = None, *, k: int | None = None) -> float:
    """Mean over the groups of the normalised discounted cumulative gain, Σ yᵢ / log₂(1 + rank of i) over its maximum.

    Groups with one sample, or without a positive y, have no ranking to score and are left out.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Relevance, at least 0.
    y_score : array-like of shape (n_samples,)
        Predicted scores.
    groups : array-like of shape (n_samples,), default=None
        The group (query) of each sample; None for one group.
    k : int, default=None
        Count the k highest scores of each group only.

    Returns
    -------
    score : float
        Between 0 and 1.

    Examples
    --------
    >>> from mercer import grouped_ndcg_score
    >>> grouped_ndcg_score([0, 1, 2, 1, 0], [0.2, 0.3, 0.4, 0.1, 0.9], groups=[1, 1, 1, 2, 2], k=1)
    0.5
    """
    y, scores, codes = _checked(y_true, y_score, groups)
    if y.min(initial=0.0) < 0:
        raise InvalidInputError(f"y_true has the value {y.min():g}, but the gain of a sample must be at least 0.")
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    ranked = [part for part in parts if len(part) > 1 and y[part].max() > 0]
    if not ranked:
        raise InvalidInputError("No group has two samples and a positive y_true, so that there is no ranking to score.")
    return float(np.mean([ndcg_score(y[part][None, :], scores[part][None, :], k=k) for part in ranked]))


def _checked(y_true: Any, y_score: Any, groups: Any) -> tuple[Vector, Vector, Vector]:
    """Relevance, scores and group numbers of the same length."""
    y, scores = real_targets(y_true), real_targets(y_score)
    if len(y) != len(scores):
        raise InvalidInputError(f"y_true has {len(y)} values, but y_score has {len(scores)}: give one score each.")
    return y, scores, group_codes(groups, len(y))
