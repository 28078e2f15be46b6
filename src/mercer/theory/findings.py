"""The findings of a diagnosis, each with a number and a suggestion; training scores against held-out scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from mercer.kernels.features import Vector

# one-sided confidence for a significant difference of scores
CONFIDENCE = 0.95
# for scores with best value 1: smaller differences are irrelevant in practice
RELEVANT = 0.05
# overfitting: the difference must be at least this fraction of the distance from the held-out score to the best score
OPTIMISM = 1.0 / 3.0
# a score is poor below this fraction of the way from a constant model to a perfect one
POOR = 0.5


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    name : the name of the check.
    value : its number.
    text : the number in words.
    suggestion : what to try in Python; empty if there is no problem.
    where : the columns, classes or samples concerned, if any.
    command : what to try with ``mercer fit``; empty if ``suggestion`` applies there, too.
    """

    name: str
    value: float
    text: str
    suggestion: str = ""
    where: tuple[Any, ...] = ()
    command: str = ""

    @property
    def symptom(self) -> bool:
        """Whether something should be done."""
        return bool(self.suggestion)

    def __str__(self) -> str:
        line = f"{'!' if self.symptom else ' '} {self.name:<22} {self.text}"
        return f"{line}\n    → {self.suggestion}" if self.symptom else line


class HasFindings:
    """A report with an attribute ``findings``."""

    findings: tuple[Finding, ...]

    @property
    def symptoms(self) -> tuple[Finding, ...]:
        """The findings that ask for something to be done."""
        return tuple(finding for finding in self.findings if finding.symptom)


@dataclass(frozen=True)
class Diagnosis(HasFindings):
    """The result of ``diagnose``.

    Attributes
    ----------
    of : the model as text.
    n : the number of samples.
    findings : the results of all checks.
    """

    of: str
    n: int
    findings: tuple[Finding, ...]

    def __getitem__(self, name: str) -> Finding:
        """The finding with this name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(f"{name!r}; the findings are {', '.join(finding.name for finding in self.findings)}")

    def __contains__(self, name: str) -> bool:
        return any(finding.name == name for finding in self.findings)

    def __str__(self) -> str:
        count = len(self.symptoms)
        verdict = {0: "no symptoms", 1: "1 symptom"}.get(count, f"{count} symptoms")
        return "\n".join([f"{self.of} on {self.n} samples: {verdict}", *map(str, self.findings)])


@dataclass(frozen=True)
class HeldOutScores:
    """The scores of a model on held-out and on training samples; larger is better.

    Attributes
    ----------
    score, training : the score on held-out samples, and on training samples.
    noise : differences between the two up to this size may be due to chance.
    chance : the score of a constant model; NaN if unknown.
    """

    score: float
    training: float
    noise: float
    chance: float = np.nan

    @classmethod
    def of_folds(cls, scores: Vector, training: Vector, test_ratio: float, chance: float = np.nan) -> HeldOutScores:
        """From the folds of a cross-validation; ``test_ratio`` is n_test/n_train.

        Because the training sets of folds overlap, the variance of the mean is (1/k + n_test/n_train) s²: Nadeau &
        Bengio, Machine Learning 52 (2003).
        """
        k, differences = len(scores), training - scores
        error = np.sqrt((1.0 / k + test_ratio) * differences.var(ddof=1))
        noise = float(stats.t.ppf(CONFIDENCE, k - 1) * error)
        return cls(float(scores.mean()), float(training.mean()), noise, chance)

    @property
    def best(self) -> float:
        """The score of a perfect model: 1, or 0 for a loss with a negative sign; inf if scores exceed 1."""
        largest = max(self.score, self.training)
        return np.inf if largest > 1 else 1.0 if largest > 0 else 0.0

    @property
    def poor(self) -> bool:
        """Whether the held-out score is less than halfway from a constant model to a perfect one."""
        return self._is_poor(self.score)

    @property
    def too_simple(self) -> bool:
        """Whether the training score is poor, too."""
        return self.poor and self._is_poor(self.training)

    def _is_poor(self, score: float) -> bool:
        return bool(score - self.chance < POOR * (self.best - self.chance))

    @property
    def overfits(self) -> bool:
        """Whether the training score is better by a difference that is relevant and beyond chance."""
        difference = self.training - self.score
        least = RELEVANT if self.best == 1 else 0.0
        return difference > self.noise and difference >= least and difference >= OPTIMISM * (self.best - self.score)


def optimism(held_out: HeldOutScores, machine: Any, searched: frozenset[str]) -> Finding:
    """The difference between training and held-out score.

    Suggestions concern only parameters that the machine has and that no search has chosen.
    """
    difference = held_out.training - held_out.score
    text = f"the score is {held_out.training:.3g} on training samples, {held_out.score:.3g} on held-out samples"
    if not held_out.overfits:
        return Finding("optimism", difference, text)
    steps = {"C": "lower C", "gamma": "lower gamma", "alpha": "raise alpha", "lam": "raise lam"}
    linear = getattr(machine, "kernel", None) in ("linear", "precomputed")
    names = machine.get_params() if hasattr(machine, "get_params") else {}
    usable = [step for name, step in steps.items() if name in names and not (name == "gamma" and linear)]
    start = "The model overfits: it predicts its training samples much better than held-out samples. "
    more = "Collect more samples, or remove features that are not related to the target."
    if searched or not usable:
        found = "The search has found no simpler model that is better. " if searched else ""
        suggestion = f"{start}{found}{more}"
    else:
        steps_text = " or ".join([", ".join(usable[:-1]), usable[-1]]) if len(usable) > 1 else usable[0]
        suggestion = f"{start}{steps_text[0].upper()}{steps_text[1:]}, or choose by cross-validation."
    command = f"{start}Collect more rows, or remove columns that are not related to the target."
    return Finding("optimism", difference, text, suggestion, command=command)
