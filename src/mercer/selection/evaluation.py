"""Nested cross-validation: the score of an estimator, including its search for parameters, on unseen samples.

A score that was maximised over parameters is biased upwards. Here an outer cross-validation repeats the whole fit,
including the search, without the samples that are then scored (Cawley & Talbot, JMLR 11, 2010). The confidence interval
comes from the held-out samples; see ``mercer.selection.score_intervals``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_consistent_length, indexable

from mercer._sklearn_compat import num_samples, safe_indexing, safe_split
from mercer.estimators.base import warn_user
from mercer.estimators.fitted_models import kind_of, unwrap
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Vector
from mercer.problems.clock import Clock
from mercer.selection.score_intervals import (
    CONFIDENCE,
    Interval,
    percentiles,
    resampled,
    resampled_determination,
    wilson,
)
from mercer.theory.diagnosis import diagnose
from mercer.theory.findings import Finding, HasFindings, HeldOutScores, optimism
from mercer.validation import validate_weights

# findings of ``diagnose`` that concern the quality of the fit, not its optimality
SYMPTOMS = ("optimism", "support vectors", "margin", "nearest similarity", "scales of columns", "class balance", "tube")


@dataclass(frozen=True, eq=False)
class Evaluation(HasFindings):
    """The result of ``evaluate``.

    Attributes
    ----------
    estimator : the estimator as text.
    scoring : the name of the score.
    scores, training_scores : scores of each outer fold, on its held-out and on its training samples.
    support_shares : the fraction of support vectors in each fold; NaN for models without support vectors.
    best_params : the chosen parameters in each fold; empty dictionaries without a search.
    search_scores : the best score of the search in each fold, which is biased upwards; NaN without a search.
    interval : the 95 % confidence interval of the score, for the choice of held-out samples; NaN if there is none.
    interval_method : the method: Wilson's interval for accuracy, else the bootstrap over held-out samples.
    held_out : the number of scored samples.
    findings : the checks for symptoms, as in ``diagnose``.
    seconds : the time for all fits and scores.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC, evaluate
    >>> report = evaluate(SVC(), *load_iris(return_X_y=True))
    >>> bool(report.interval[0] < report.score < report.interval[1])
    True
    """

    estimator: str
    scoring: str
    scores: Vector
    training_scores: Vector
    support_shares: Vector
    best_params: tuple[dict[str, Any], ...]
    search_scores: Vector
    interval: tuple[float, float]
    interval_method: str
    held_out: int
    findings: tuple[Finding, ...]
    seconds: float

    @property
    def score(self) -> float:
        """The mean score over the outer folds."""
        return float(self.scores.mean())

    @property
    def training_score(self) -> float:
        """The mean training score over the outer folds."""
        return float(self.training_scores.mean())

    @property
    def spread(self) -> float:
        """The standard deviation of the score over the outer folds."""
        return float(self.scores.std(ddof=1)) if len(self.scores) > 1 else np.inf

    @property
    def support_share(self) -> float:
        """The mean fraction of support vectors; NaN for models without support vectors."""
        return float(self.support_shares.mean())

    def __str__(self) -> str:
        low, high = self.interval
        found = f"{CONFIDENCE:.0%} interval {low:.4f} to {high:.4f}, " if np.isfinite(low) else ""
        lines = [
            f"{self.estimator}",
            f"  {self.scoring:<22} {self.score:.4f} ± {self.spread:.4f} over {len(self.scores)} folds "
            f"({found}{self.interval_method})",
            f"  {'on training samples':<22} {self.training_score:.4f}",
        ]
        if np.isfinite(self.search_scores).any():
            lines.append(f"  {'as the search saw it':<22} {np.nanmean(self.search_scores):.4f}")
        if np.isfinite(self.support_shares).any():
            lines.append(f"  {'support vectors':<22} {np.nanmean(self.support_shares):.0%} of the training samples")
        chosen = [params for params in self.best_params if params]
        for name in chosen[0] if chosen else ():
            lines.append(f"  {name + ' chosen':<22} {', '.join(_short(params[name]) for params in chosen)}")
        return "\n".join([*lines, *map(str, self.symptoms)])


def evaluate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    cv: Any = 5,
    scoring: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    time_limit: float | None = None,
) -> Evaluation:
    """Score an estimator by nested cross-validation and check for symptoms of overfitting.

    For each outer fold a clone is fitted to the other samples, including its own search if the estimator is a search,
    and scored on the fold. A final fit to all samples is checked by ``mercer.diagnose``.

    The 95 % interval is Wilson's for accuracy, and otherwise a bootstrap over the held-out samples from a fixed seed.
    It stays within the range of the score and shrinks with the number of held-out samples. It does not include the
    effect of another training set, for which ``spread`` gives an indication.

    Parameters
    ----------
    estimator : estimator
        A machine, a search such as ``SVCCV`` or ``GridSearchCV``, or a pipeline that ends in one. It is cloned, not
        changed.
    X, y : the data.
    cv : int, splitter or iterable, default=5
        The outer folds.
    scoring : str or callable, default=None
        The score; None is the score of the estimator.
    groups : array-like of shape (n_samples,), default=None
        Groups of samples for the outer splitter, and for the search if its ``fit`` takes groups.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples, for fits and scores.
    time_limit : float or None, default=None
        After this many seconds no further fold is started, except the first two, and a warning is issued. Ctrl-C has
        the same effect and drops the current fold; before two folds are scored it raises KeyboardInterrupt.

    Returns
    -------
    evaluation : Evaluation
        Prints as text; its numbers are attributes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC, evaluate
    >>> X, y = load_iris(return_X_y=True)
    >>> report = evaluate(SVC(gamma=100.0), X, y)
    >>> [finding.name for finding in report.symptoms]
    ['optimism', 'nearest similarity']
    >>> bool(report.score < report.training_score - 0.05)
    True
    """
    return evaluate_folds(estimator, X, y, cv, scoring, groups, sample_weight, time_limit)


def evaluate_folds(
    estimator: Any,
    X: Any,
    y: Any,
    cv: Any,
    scoring: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    time_limit: float | None = None,
    look: bool = True,
    on_fold: Callable[[int, int], None] = lambda done, total: None,
) -> Evaluation:
    """``evaluate`` with two more options: ``look`` (diagnose a fit to all samples), ``on_fold(done, total)``."""
    started = time.perf_counter()
    X, y, groups = indexable(X, y, groups)
    if y is not None:
        check_consistent_length(X, y)
    elif get_tags(estimator).target_tags.required:
        raise InvalidInputError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    n = num_samples(X)
    weight = None if sample_weight is None else validate_weights(sample_weight, n, X)
    scoring, name = scoring_of(estimator, scoring, weight is not None)
    scorer = check_scoring(estimator, scoring=scoring)
    splits = list(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, groups))
    if len(splits) < 2:
        raise InvalidInputError(f"cv gives {len(splits)} fold: a spread needs at least two.")
    folds: list[tuple[Any, ...]] = []
    with Clock(time_limit) as clock, clock.ends_inner_fits():
        for split in splits:
            if clock.over() is not None and len(folds) >= 2:
                break
            fold = _fold(estimator, X, y, groups, weight, scorer, name, *split)
            if clock.stopped:
                break  # this fold was cut short
            folds.append(fold)
            on_fold(len(folds), len(splits))
        if clock.stopped and len(folds) < 2:
            raise KeyboardInterrupt("evaluate was interrupted before two folds were scored.")
        scores, training, shares, found, search = (np.array([fold[k] for fold in folds]) for k in range(5))
        ratio = float(np.mean([len(test) / len(train) for train, test in splits]))
        held_out = HeldOutScores.of_folds(scores, training, ratio, chance_score(estimator, scorer, X, y))
        findings = []
        if look and clock.over() is None:
            model = fitted(estimator, X, y, groups, weight, np.arange(n))
            findings = [] if clock.stopped else findings_of(model, X, y, weight, held_out)
    if len(folds) < len(splits) or clock.over() is not None:
        why = "it was interrupted" if clock.stopped else f"time_limit={time_limit} s"
        warn_user(
            f"evaluate ended early ({why}): {len(folds)} of {len(splits)} folds were scored"
            f"{'' if findings or not look else ', and the fit to all samples was not diagnosed'}.",
            UserWarning,
        )
    if not np.isfinite(scores).all():
        raise InvalidInputError(
            f"The score is not a number in {np.count_nonzero(~np.isfinite(scores))} of {len(scores)} folds: use fewer "
            "folds, or another scoring."
        )
    tested = [test for _, test in splits[: len(folds)]]
    interval = _interval(name, scores, np.unique(np.concatenate(tested)), weight, [fold[5] for fold in folds])
    findings = findings or [optimism(held_out, None, frozenset(found[0]))]
    return Evaluation(
        estimator=repr(estimator),
        scoring=name,
        scores=scores,
        training_scores=training,
        support_shares=shares,
        best_params=tuple(found),
        search_scores=search,
        interval=interval.ends,
        interval_method=interval.method,
        held_out=len(np.unique(np.concatenate(tested))),
        findings=tuple(findings),
        seconds=time.perf_counter() - started,
    )


def scoring_of(estimator: Any, scoring: Any, weighted: bool) -> tuple[Any, str]:
    """The scoring to use, and its name. With weights a scorer by name is used: ``estimator.score`` may ignore them."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    given = getattr(last, "scoring", None) if scoring is None else scoring
    default = "accuracy" if is_classifier(estimator) else "r2" if is_regressor(estimator) else None
    if scoring is None and (weighted or isinstance(given, str) or callable(given)):
        scoring = given or default  # a search's scoring may differ from the score of its machine
    return scoring, given if isinstance(given, str) else getattr(given, "__name__", None) or default or "score"


def _interval(name: str, scores: Vector, tested: Vector, weight: Vector | None, again: list[Vector]) -> Interval:
    """The interval of the mean score; ``again`` has the scores of bootstrap samples, one vector per fold."""
    if name == "accuracy":
        # the effective sample size of weighted samples
        w = np.ones(len(tested)) if weight is None else weight[tested]
        return wilson(float(np.clip(scores.mean(), 0.0, 1.0)), float(w.sum() ** 2 / (w**2).sum()))
    shortest = min(len(one) for one in again)
    return percentiles(np.mean([one[:shortest] for one in again], axis=0), len(tested))


def _fold(
    estimator: Any,
    X: Any,
    y: Any,
    groups: Any,
    weight: Vector | None,
    scorer: Any,
    name: str,
    train: Vector,
    test: Vector,
) -> tuple[float, float, float, dict[str, Any], float, Vector]:
    """Fit and score one fold.

    Returns the test score, the training score, the fraction of support vectors, the chosen parameters and best score
    of the search, and the scores of bootstrap samples.
    """
    X_train, y_train = safe_split(estimator, X, y, train)
    X_test, y_test = safe_split(estimator, X, y, test, train)
    model = fitted(estimator, X_train, y_train, groups, weight, train)
    weights = [None if weight is None else weight[index] for index in (test, train)]
    score = _scored(scorer, model, X_test, y_test, weights[0])
    training = _scored(scorer, model, X_train, y_train, weights[1])
    support = getattr(unwrap(model).machine, "support_", None)
    share = np.nan if support is None else len(support) / len(train)
    last = model[-1] if isinstance(model, Pipeline) else model
    chosen, believed = dict(getattr(last, "best_params_", {})), float(getattr(last, "best_score_", np.nan))
    again = np.empty(0)
    if name == "r2" and weight is None:
        again = resampled_determination(np.asarray(y_test, dtype=np.float64), model.predict(X_test), int(test[0]))
    elif name != "accuracy":
        again = _resampled(scorer, model, X_test, y_test, weights[0], name, int(test[0]))
    return score, training, share, chosen, believed, again


def _scored(scorer: Any, model: Any, X: Any, y: Any, weight: Vector | None) -> float:
    return float(scorer(model, X, y, **({} if weight is None else {"sample_weight": weight})))


def _resampled(scorer: Any, model: Any, X: Any, y: Any, weight: Vector | None, name: str, seed: int) -> Vector:
    """Scores of the model on bootstrap samples; each sample is predicted once."""
    if name in get_scorer_names():
        scorer = check_scoring(model, scoring=name)  # the model's own score method would predict again
    recorded = Recorded(model, X)

    def score(rows: Vector) -> float:
        some = None if weight is None else weight[rows]
        chosen = recorded.at(rows)
        return _scored(scorer, chosen, chosen.samples, None if y is None else safe_indexing(y, rows), some)

    return resampled(score, num_samples(X), seed)


def score_on(model: Any, X: Any, y: Any, scoring: Any, interval: bool = True) -> tuple[float, Interval]:
    """The score of a fitted model on these samples, optionally with its interval."""
    scorer = check_scoring(model, scoring=scoring)
    score, n = _scored(scorer, model, X, y, None), num_samples(X)
    if not interval:
        return score, Interval(np.nan, np.nan, "")
    if scoring == "accuracy":
        return score, wilson(score, n)
    if scoring == "r2":
        return score, percentiles(resampled_determination(np.asarray(y, dtype=np.float64), model.predict(X)), n)
    return score, percentiles(_resampled(scorer, model, X, y, None, "", 0), n)


class Recorded:
    """Wraps a fitted model and caches its predictions for X; other samples are passed to the model."""

    def __init__(self, model: Any, X: Any, rows: Vector | None = None, answers: dict[str, Any] | None = None) -> None:
        self.model, self.X, self.rows = model, X, rows
        self.answers: dict[str, Any] = {} if answers is None else answers
        self.samples = X if rows is None else safe_indexing(X, rows)

    def at(self, rows: Vector) -> Recorded:
        """The cached predictions of these rows, for the samples in its attribute ``samples``."""
        return Recorded(self.model, self.X, rows, self.answers)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.model, name)
        if name not in ("predict", "decision_function", "predict_proba", "predict_log_proba", "score_samples"):
            return found

        def answer(X: Any) -> Any:
            if X is not self.samples:
                return found(X)
            if name not in self.answers:
                self.answers[name] = found(self.X)
            return self.answers[name] if self.rows is None else self.answers[name][self.rows]

        answer.__name__ = name  # scikit-learn identifies the response method by its name
        return answer


def fitted(estimator: Any, X: Any, y: Any, groups: Any, weight: Vector | None, index: Vector) -> Any:
    """A clone fitted to X and y, which are the samples ``index`` of all samples."""
    model = clone(estimator)
    last, prefix = model, ""
    if isinstance(model, Pipeline):
        last, prefix = model[-1], f"{model.steps[-1][0]}__"
    takes = signature(last.fit).parameters
    metadata: dict[str, Any] = {}
    # a search passes **params on to its estimator
    if weight is not None and ("sample_weight" in takes or "params" in takes):
        metadata[f"{prefix}sample_weight"] = weight[index]
    elif weight is not None:
        raise InvalidInputError(f"sample_weight was given, but {type(last).__name__}.fit does not take it.")
    if groups is not None and ("groups" in takes or "params" in takes):
        metadata[f"{prefix}groups"] = safe_indexing(groups, index)
    return model.fit(X, **metadata) if y is None else model.fit(X, y, **metadata)


def chance_score(estimator: Any, scorer: Any, X: Any, y: Any) -> float:
    """The score of a constant model; NaN if undefined."""
    if y is None:
        return np.nan
    constant = DummyClassifier() if is_classifier(estimator) else DummyRegressor()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about classes that are never predicted
            return float(scorer(constant.fit(X, y), X, y))
    except Exception:  # a user-defined scorer, or one that needs more than a constant model offers
        return np.nan


def findings_of(model: Any, X: Any, y: Any, weight: Vector | None, held_out: HeldOutScores) -> list[Finding]:
    """The findings of ``diagnose`` about a fitted model; for unsupported models only those about the scores."""
    machine, _, searched = unwrap(model)
    try:
        kind_of(machine)
    except InvalidInputError:
        return [optimism(held_out, machine, searched)]
    found = diagnose(model, X, y, weight, held_out=held_out)
    return [finding for finding in found.findings if finding.name in SYMPTOMS]


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
