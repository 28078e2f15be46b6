"""Nested cross-validation of machines on the workers of a cluster, with parts as folds."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.dask.dask_searches import DaskSearchCV
from mercer.dask.machine import DaskMachine
from mercer.dask.part_folds import PartFolds, score_parts
from mercer.estimators.base import warn_user
from mercer.exceptions import InvalidInputError
from mercer.problems.clock import Clock
from mercer.selection.evaluation import Evaluation, scoring_of
from mercer.selection.score_intervals import Interval, wilson
from mercer.theory.findings import HeldOutScores, optimism


def evaluate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: int = 5,
    scoring: Any = None,
    sample_weight: Any = None,
    time_limit: float | None = None,
) -> Evaluation:
    """Score a machine or a search of mercer.dask by cross-validation with parts as folds.

    For each fold a clone is fitted to the other parts, including its own search if the estimator is a search (whose
    folds are parts, too), and scored on the parts of the fold, where they are.

    Parameters
    ----------
    estimator : an estimator of mercer.dask
        It is cloned, not changed.
    X, y, sample_weight : dask arrays, dask frames or lists of delayed parts
        The rows. They should be in no particular order: part i belongs to fold i mod cv.
    cv : int, default=5
        The number of folds, at most the number of parts.
    scoring : str or callable, default=None
        The score; None is accuracy or R². Other scores bring the predictions of the scored rows to the client.
    time_limit : float or None, default=None
        After this many seconds no further fold is started, except the first two, and a warning is issued.

    Returns
    -------
    evaluation : Evaluation
        As from ``mercer.evaluate``, but only accuracy has an interval, and the only finding is about optimism.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mercer.dask import LinearSVC, evaluate
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    >>> X = da.random.default_rng(0).normal(size=(900, 2), chunks=(300, 2))
    >>> bool(evaluate(LinearSVC(), X, X[:, 0] > 0.5, cv=3).score > 0.9)
    True
    >>> client.close()
    """
    if not isinstance(estimator, DaskMachine | DaskSearchCV):
        raise InvalidInputError(
            f"The estimator is of the type {type(estimator).__name__}: give one of mercer.dask, or use mercer.evaluate "
            "for data in memory."
        )
    if isinstance(estimator, DaskSearchCV) and not estimator.refit:
        raise InvalidInputError("evaluate needs the machine that a search has chosen: use refit=True.")
    started = time.perf_counter()
    scoring, name = scoring_of(estimator, scoring, sample_weight is not None)
    folds = PartFolds.of(estimator._find_client(), X, y, sample_weight, cv)
    found, done = [], 0
    weight = squares = 0.0
    with Clock(time_limit) as clock, clock.ends_inner_fits():
        for f in range(folds.n_folds):
            if clock.over() is not None and done >= 2:
                break
            train, test = folds.others(f), folds.held_out(f)
            model = clone(estimator).fit(*train)
            if clock.stopped:
                break  # this fold was cut short
            local = (model.best_estimator_ if isinstance(model, DaskSearchCV) else model).to_local()
            score, training = (score_parts(folds.client, local, parts, scoring) for parts in (test, train))
            weight, squares, done = weight + score.weight, squares + score.squares, done + 1
            support = getattr(local, "support_", None)
            n_train = sum(n for n, own in zip(folds.sizes, folds.fold, strict=True) if own != f)
            share = np.nan if support is None else len(support) / n_train
            chosen, best = dict(getattr(model, "best_params_", {})), float(getattr(model, "best_score_", np.nan))
            found.append((score.value, training.value, share, chosen, best))
        if clock.stopped and done < 2:
            raise KeyboardInterrupt("evaluate was interrupted before two folds were scored.")
    if done < folds.n_folds:
        why = "it was interrupted" if clock.stopped else f"time_limit={time_limit} s"
        warn_user(f"evaluate ended early ({why}): {done} of {folds.n_folds} folds were scored.", UserWarning)
    scores, trained, shares, params, searched = (np.array([fold[k] for fold in found]) for k in range(5))
    if not np.isfinite(scores).all():
        raise InvalidInputError(
            f"The score is not a number in {np.count_nonzero(~np.isfinite(scores))} of {len(scores)} folds: use fewer "
            "folds, or another scoring."
        )
    ratio = 1.0 / (folds.n_folds - 1)
    interval = Interval(np.nan, np.nan, "no interval for rows on several computers")
    if name == "accuracy" and weight > 0:
        interval = wilson(float(np.clip(scores.mean(), 0.0, 1.0)), weight**2 / squares)
    return Evaluation(
        estimator=repr(estimator),
        scoring=name,
        scores=scores,
        training_scores=trained,
        support_shares=shares,
        best_params=tuple(params),
        search_scores=searched,
        interval=interval.ends,
        interval_method=interval.method,
        held_out=sum(n for n, own in zip(folds.sizes, folds.fold, strict=True) if own < done),
        findings=(optimism(HeldOutScores.of_folds(scores, trained, ratio), None, frozenset(params[0])),),
        seconds=time.perf_counter() - started,
    )
