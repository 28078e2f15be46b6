"""Estimate the score of the chosen model on new rows, from rows that it was not fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring

from mercer.kernels.features import Vector, take_samples
from mercer.selection.evaluation import Evaluation, chance_score, findings_of, score_on
from mercer.selection.score_intervals import Interval
from mercer.selection.search.search_record import SearchRecord, scoring_name
from mercer.theory.findings import Finding, HasFindings, HeldOutScores


@dataclass(frozen=True, eq=False)
class Assessment(HasFindings):
    """The estimated score of a model on new rows, and how it was computed.

    Attributes
    ----------
    scoring : the name of the score.
    score : the score, corrected for the selection of the best candidate.
    training_score : the same score on the training rows.
    interval, interval_method : the 95 % confidence interval, as in ``mercer.evaluate``.
    method : how the score was computed, in words.
    held_out : the number of rows that were scored.
    findings : the results of all checks for symptoms of a bad fit.
    """

    scoring: str
    score: float
    training_score: float
    interval: tuple[float, float]
    interval_method: str
    method: str
    held_out: int
    findings: tuple[Finding, ...]


def by_search(record: SearchRecord, Z: Any, y: Any) -> Assessment:
    """Assess by the held-out predictions of all candidates of the search, without another fit.

    ``record.search`` has chosen a machine and fitted it to the prepared samples Z.
    """
    found = record.corrected_score()
    method = f"held-out rows of the search, corrected for choosing the best of {found.n_candidates} candidates"
    if found.n_candidates == 1:
        method = "held-out rows of the search, which had one candidate"
    training = _training_score(record.search, Z, y)
    return _assessment(found.scoring, found.score, training, found.interval, method, found.n_rows, record.search, Z, y)


def by_fresh_rows(search: Any, trial: Any, fresh: Vector, Z: Any, y: Vector) -> Assessment:
    """Assess by the rows ``fresh``, which the search did not use. ``trial`` was fitted to all other rows."""
    name = scoring_name(search)
    score, interval = score_on(trial, take_samples(Z, fresh), y[fresh], _scoring(search))
    method = f"{len(fresh):,} rows that the search did not use, predicted by a machine fitted to all other rows"
    training = _training_score(search, Z, y)
    return _assessment(name, score, training, interval, method, len(fresh), search, Z, y)


def by_evaluation(found: Evaluation, search: Any, Z: Any, y: Any, parts: str) -> Assessment:
    """Assess by ``mercer.evaluate``, which repeats preparation, search and fit in each of its parts."""
    interval = Interval(*found.interval, found.interval_method)
    method = f"held-out rows of {len(found.scores)} {parts}, each with its own preparation and search"
    return _assessment(found.scoring, found.score, found.training_score, interval, method, found.held_out, search, Z, y)


def _scoring(search: Any) -> Any:
    """The score that a search maximises, including its default."""
    return search.scoring or scoring_name(search)


def _training_score(search: Any, Z: Any, y: Any) -> float:
    return score_on(search.best_estimator_, Z, y, _scoring(search), interval=False)[0]


def _assessment(
    name: str, score: float, training: float, interval: Interval, method: str, rows: int, search: Any, Z: Any, y: Any
) -> Assessment:
    # half a 95 % interval; that of the difference from the training score is hardly wider
    noise = score - interval.low if np.isfinite(interval.low) else 0.0
    scorer = check_scoring(search.best_estimator_, scoring=_scoring(search))
    held_out = HeldOutScores(score, training, noise, chance_score(search.best_estimator_, scorer, Z, y))
    findings = tuple(findings_of(search, Z, y, None, held_out))
    return Assessment(name, score, training, interval.ends, interval.method, method, rows, findings)
