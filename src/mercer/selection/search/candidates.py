"""The candidates of a search, the table of their scores, pruning, and the progress log."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from scipy.stats import rankdata
from scipy.stats import t as student

from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector
from mercer.selection.chains import Setting

logger = logging.getLogger("mercer")

# seconds between two log lines
EVERY = 1.0
# confidence of the t-test that drops a candidate from a race
CONFIDENCE = 0.95
# rounding error of mean scores
ROUNDING = 1e-12


@dataclass(frozen=True)
class KernelChoice:
    """A bound kernel, and the estimator's parameters that give it."""

    kernel: Kernel
    params: dict[str, Any]


@dataclass(frozen=True)
class SettingChoice:
    """A loss with its C (of logistic regression, C alone), and the estimator's parameters that give them."""

    setting: Setting | float
    params: dict[str, Any]


@dataclass
class Candidate:
    """One combination of parameters, with its score and times in each fold (NaN, or -1 for fits, if not tried)."""

    number: int
    params: dict[str, Any]
    scores: Vector
    fit_seconds: Vector
    score_seconds: Vector
    given_up: bool = False

    @property
    def complete(self) -> bool:
        """Whether it was tried in all folds; a score may still be NaN."""
        return bool(np.all(self.fit_seconds >= 0))

    @property
    def status(self) -> str:
        """One of "tried" (in all folds), "given up" and "not tried"."""
        if self.given_up:
            return "given up"
        return "tried" if self.complete else "not tried"

    @property
    def mean(self) -> float:
        """The mean score over all folds; NaN if not complete."""
        return float(np.mean(self.scores)) if self.complete else np.nan


def better_mean(a: Candidate, b: Candidate) -> bool:
    """Whether a has the larger mean score; in a tie the candidate with the smaller number wins."""
    return a.mean > b.mean or (a.mean == b.mean and a.number < b.number)


@dataclass(frozen=True)
class Prune:
    """The rule that gives up candidates before they were tried in all folds.

    Attributes
    ----------
    rule : "bound" gives up a candidate that would stay behind the best one even with the highest possible score in all
        remaining folds. "race" gives up a candidate that is significantly behind the best one in the folds so far, by a
        t-test of the paired differences.
    top : the highest possible score.
    """

    rule: str
    top: float = np.inf

    def is_hopeless(self, candidate: Candidate, best: Candidate) -> bool:
        """Whether to give up the candidate; ``best`` was tried in all folds."""
        done = candidate.fit_seconds >= 0
        n, n_folds = int(done.sum()), len(done)
        scores, others = candidate.scores[done], best.scores[done]
        if n == n_folds or not np.all(np.isfinite(scores)):
            return False
        if self.rule == "bound":
            highest = float(scores.sum()) + (n_folds - n) * self.top
            return highest < n_folds * best.mean - ROUNDING * (1.0 + abs(highest))
        if n < 2:
            return False
        behind = others - scores
        error = behind.std(ddof=1) / np.sqrt(n)
        return bool(behind.mean() > max(0.0, student.ppf(CONFIDENCE, n - 1) * error))


@dataclass
class Table:
    """All candidates so far, and the held-out values of the best one.

    ``planned`` is the maximum number of candidates of the whole search; 0 if all are already in the table. ``record``
    is called with the held-out values of each candidate that was tried in all folds.
    """

    n_folds: int
    better: Callable[[Candidate, Candidate], bool] = better_mean
    prune: Prune | None = None
    candidates: list[Candidate] = field(default_factory=list)
    planned: int = 0
    record: Callable[[Candidate, list[Matrix]], None] | None = None
    best: Candidate | None = None
    best_values: list[Matrix] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    def new(self, params: dict[str, Any]) -> Candidate:
        """Add a candidate."""
        empty = np.full(self.n_folds, np.nan)
        candidate = Candidate(len(self.candidates), params, empty.copy(), np.full(self.n_folds, -1.0), empty.copy())
        self.candidates.append(candidate)
        return candidate

    @property
    def n_tried(self) -> int:
        """The number of candidates that were tried in all folds."""
        return sum(candidate.complete for candidate in self.candidates)

    @property
    def fits(self) -> tuple[int, int]:
        """The number of fits that are done or given up, and the total."""
        done = sum(
            self.n_folds if one.given_up else int(np.count_nonzero(one.fit_seconds >= 0)) for one in self.candidates
        )
        return done, self.n_folds * max(len(self.candidates), self.planned)

    def consider(self, candidate: Candidate, values: list[Matrix]) -> None:
        """Record a complete candidate, and keep its values if it is the best so far."""
        if not np.isfinite(candidate.mean):
            return
        if self.record is not None:
            self.record(candidate, values)
        if self.best is None or self.better(candidate, self.best):
            self.best, self.best_values = candidate, [part.copy() for part in values]

    def results(self) -> dict[str, Any]:
        """``cv_results_`` in GridSearchCV's format."""
        candidates = self.candidates
        fit = np.array([c.fit_seconds for c in candidates]).reshape(-1, self.n_folds)
        fit = np.where(fit < 0, np.nan, fit)
        score = np.array([c.score_seconds for c in candidates]).reshape(-1, self.n_folds)
        scores = np.array([c.scores for c in candidates]).reshape(-1, self.n_folds)
        found: dict[str, Any] = {
            "mean_fit_time": fit.mean(axis=1),
            "std_fit_time": fit.std(axis=1),
            "mean_score_time": score.mean(axis=1),
            "std_score_time": score.std(axis=1),
        }
        for name in sorted({name for c in candidates for name in c.params}):
            column = [c.params.get(name) for c in candidates]
            missing = [name not in c.params for c in candidates]
            numbers = all(
                isinstance(value, int | float) for value, gone in zip(column, missing, strict=True) if not gone
            )
            filled = [0.0 if gone else value for value, gone in zip(column, missing, strict=True)]
            entries = np.array(filled, dtype=np.float64) if numbers else np.empty(len(column), dtype=object)
            if not numbers:
                entries[:] = column
            found[f"param_{name}"] = MaskedArray(entries, mask=missing)
        found["params"] = [dict(c.params) for c in candidates]
        for f in range(self.n_folds):
            found[f"split{f}_test_score"] = scores[:, f]
        mean = scores.mean(axis=1)
        found["mean_test_score"], found["std_test_score"] = mean, scores.std(axis=1)
        if self.prune is not None:
            found["status"] = np.array([c.status for c in candidates])
        worst = np.where(np.isnan(mean), np.inf, -mean)
        found["rank_test_score"] = rankdata(worst, method="min").astype(np.int32)
        return found


OnStep = Callable[[int, int, Table], None]


class Progress:
    """Logs the progress of a search, with an estimate of the remaining time.

    ``on_step`` is called after each step with the number of fits done, the total, and the table.
    """

    def __init__(self, wanted: bool, table: Table, on_step: OnStep | None = None) -> None:
        self.wanted, self.table, self.on_step = wanted, table, on_step
        self.start = time.perf_counter()
        self._last = -np.inf
        self._lock = threading.Lock()

    def step(self) -> None:
        """Report that more fits are done."""
        with self._lock:
            done, total = self.table.fits
            if self.on_step is not None:
                self.on_step(done, total, self.table)
            now = time.perf_counter()
            if not self.wanted or (now - self._last < EVERY and done < total):
                return
            self._last = now
            spent, share = now - self.start, done / max(1, total)
            left = f", about {spent * (1 / share - 1):.0f} s left" if share < 1 and spent > EVERY else ""
            logger.info("[%s] %d of %d fits  %.0f s%s%s", bar(share), done, total, spent, left, self._best())

    def _best(self) -> str:
        best = self.table.best
        return "" if best is None else f"  best {best.mean:.4f} at {short_params(best.params)}"


def bar(share: float, width: int = 20) -> str:
    """A progress bar of ``width`` characters, filled to this fraction."""
    filled = int(width * share)
    return "#" * filled + "." * (width - filled)


def short_params(params: dict[str, Any]) -> str:
    """Parameters as text, numbers with four digits."""
    return ", ".join(
        f"{key}={value:.4g}" if isinstance(value, float | np.floating) else f"{key}={value}"
        for key, value in params.items()
    )


def middle_first(n: int) -> list[int]:
    """0 … n − 1 from the middle outwards, so that central values are tried first if time is short."""
    return sorted(range(n), key=lambda i: (abs(i - (n - 1) / 2), i))
