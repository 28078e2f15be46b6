"""Record the held-out values of all candidates, and correct the best score for the bias of choosing the best."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.kernels.features import Matrix, Vector
from mercer.selection.score_intervals import (
    Accuracy,
    Determination,
    Interval,
    ScoreRows,
    corrected,
    corrected_by_sums,
    percentiles,
    resampled,
    resampled_determination,
    wilson,
)
from mercer.selection.search.candidates import Candidate
from mercer.selection.search.scoring import highest_score, scorer_of


class CorrectedScore(NamedTuple):
    """The corrected score of a search with its interval, the number of rows and of candidates."""

    scoring: str
    score: float
    interval: Interval
    n_rows: int
    n_candidates: int


def scoring_name(search: Any) -> str:
    """The name of the score that a search maximises."""
    if search.scoring is None:
        return "accuracy" if hasattr(search, "classes_") else "r2"
    return search.scoring if isinstance(search.scoring, str) else getattr(search.scoring, "__name__", "score")


class SearchRecord:
    """The held-out values of each candidate, reduced to what the score needs."""

    def __init__(self) -> None:
        self.kept: list[tuple[Candidate, Matrix]] = []

    def start(self, search: Any, folds: list[tuple[Any, Any]], y: Vector) -> None:
        """Start recording a search with these folds and targets."""
        self.search, self.kept = search, []
        self.rows = np.concatenate([test for _, test in folds])
        self.y = y[self.rows]

    def keep(self, candidate: Candidate, parts: list[Matrix]) -> None:
        """Record the values of a candidate, one matrix per fold."""
        values = np.concatenate(parts)
        name = scoring_name(self.search)
        if name == "accuracy":
            values = self.search._held_out_model(values).predict(values) == self.y
        elif name == "r2":
            values = values[:, 0]
        else:
            values = values.astype(np.float32)
        self.kept.append((candidate, values))

    def corrected_score(self) -> CorrectedScore:
        """An estimate of the best candidate's score on new samples (bootstrap bias corrected cross-validation)."""
        name, n = scoring_name(self.search), len(self.rows)
        order = sorted(self.kept, key=lambda one: -one[0].mean)
        chosen = next(k for k, (candidate, _) in enumerate(order) if candidate.number == self.search.best_index_)
        if name == "accuracy":
            right = Accuracy(np.column_stack([values for _, values in order]))
            score = corrected_by_sums(right, n)
            return CorrectedScore(name, score, wilson(score, n), n, len(order))
        if name == "r2":
            predicted = np.column_stack([values for _, values in order])
            score = corrected_by_sums(Determination(self.y, predicted), n)
            again = resampled_determination(self.y, predicted[:, chosen])
            plain = float(Determination(self.y, predicted).scores(np.ones((1, n)))[0, chosen])
        else:
            candidates = [self._score_rows(values) for _, values in order]
            score = corrected(candidates, n)
            again = resampled(candidates[chosen], n)
            plain = candidates[chosen](np.arange(n))
        interval = percentiles(again, n, shift=score - plain)
        top = highest_score(self.search.scoring)
        return CorrectedScore(name, score, interval._replace(high=min(interval.high, top)), n, len(order))

    def _score_rows(self, values: Matrix) -> ScoreRows:
        score = scorer_of(self.search._held_out_model(values), self.search.scoring)

        def of_rows(rows: Vector) -> float:
            part = values[rows]
            return score(self.search._held_out_model(part), part, self.y[rows], np.ones(len(rows)))

        return of_rows
