"""Which candidates are tried, and the table of what they have scored."""

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

# seconds between two lines about the progress
EVERY = 1.0
# of a race: how sure one must be that a candidate is behind
CONFIDENCE = 0.95
# of means of scores
ROUNDING = 1e-12


@dataclass(frozen=True)
class KernelChoice:
    """A kernel with numbers for all its parameters, and the estimator's parameters that describe it."""

    kernel: Kernel
    params: dict[str, Any]


@dataclass(frozen=True)
class SettingChoice:
    """A loss with its C, and the estimator's parameters that describe them."""

    setting: Setting
    params: dict[str, Any]


@dataclass
class Candidate:
    """One machine: its parameters, and its score and seconds in each fold (NaN where it did not come to that)."""

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
        """Whether it was tried in all folds, in some, or in none."""
        if self.given_up:
            return "given up"
        return "tried" if self.complete else "not tried"

    @property
    def mean(self) -> float:
        """The mean over the folds."""
        return float(np.mean(self.scores)) if self.complete else np.nan


def better_mean(a: Candidate, b: Candidate) -> bool:
    """The larger mean; of equal ones the first in the table."""
    return a.mean > b.mean or (a.mean == b.mean and a.number < b.number)


@dataclass(frozen=True)
class Prune:
    """When a candidate is given up that was not yet tried in all folds.

    Attributes
    ----------
    rule : "bound": even with the highest score in all folds to come it would stay behind the best one so far, and so
        would all that start from its solution;
        "race": in the folds so far it is behind that one by more than chance, by a t-test of the paired differences.
    top : the highest score there is.
    """

    rule: str
    top: float = np.inf

    def is_hopeless(self, candidate: Candidate, best: Candidate) -> bool:
        """Whether the candidate is to be given up; best was tried in all folds."""
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
    """All candidates so far, and the held-out values of the best of them.

    ``planned`` is how many candidates the search would try at most if nothing ended it; 0 if all are in the table.
    ``record`` is told the held-out values of each candidate that was tried in all folds.
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
        """One more candidate."""
        empty = np.full(self.n_folds, np.nan)
        candidate = Candidate(len(self.candidates), params, empty.copy(), np.full(self.n_folds, -1.0), empty.copy())
        self.candidates.append(candidate)
        return candidate

    @property
    def n_tried(self) -> int:
        """How many candidates were tried in all folds."""
        return sum(candidate.complete for candidate in self.candidates)

    @property
    def fits(self) -> tuple[int, int]:
        """How many fits are done or given up, and how many there are at most."""
        done = sum(
            self.n_folds if one.given_up else int(np.count_nonzero(one.fit_seconds >= 0)) for one in self.candidates
        )
        return done, self.n_folds * max(len(self.candidates), self.planned)

    def consider(self, candidate: Candidate, values: list[Matrix]) -> None:
        """Keep a complete candidate if it is the best; the first of equal ones in the order of the table."""
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
    """Says in the log how far a search is, and about how long it will take.

    ``on_step`` hears of each step: the fits that are done, how many there are at most, and the best candidate so far.
    """

    def __init__(self, wanted: bool, table: Table, on_step: OnStep | None = None) -> None:
        self.wanted, self.table, self.on_step = wanted, table, on_step
        self.start = time.perf_counter()
        self._last = -np.inf
        self._lock = threading.Lock()

    def step(self) -> None:
        """Some more fits are done."""
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
    """A row of ``width`` marks of which this share is filled."""
    filled = int(width * share)
    return "#" * filled + "." * (width - filled)


def short_params(params: dict[str, Any]) -> str:
    """Parameters as text, numbers with four digits."""
    return ", ".join(
        f"{key}={value:.4g}" if isinstance(value, float | np.floating) else f"{key}={value}"
        for key, value in params.items()
    )


def middle_first(n: int) -> list[int]:
    """0 … n − 1 from the middle outwards: what is tried first if time is short."""
    return sorted(range(n), key=lambda i: (abs(i - (n - 1) / 2), i))
