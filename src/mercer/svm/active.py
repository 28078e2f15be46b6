"""Active samples of a run, and the inactive ones whose F = Kβ is that of an earlier β.

`Active` holds contiguous copies of the program's vectors. `LeftOut` brings F of inactive samples up to date. Since they
became inactive w has moved by Δw, |Δw|² = Δβ'KΔβ, and F of a sample x by at most |Δw| sqrt(k(x, x)). A sample whose
score is farther than that from making it move cannot violate: it costs no kernel value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mercer._compiled.program import Program
from mercer.gram.operator import GramOperator, product
from mercer.kernels.features import Vector
from mercer.losses.base import BoxQP
from mercer.problems.solution import Options
from mercer.svm.verify import nearness, slack

# linear, l1, ridge, lower and upper of the null variable
NULL = (0.0, 0.0, 0.0, -np.inf, np.inf)


class Look(NamedTuple):
    """The scores of all active variables (see smo): who gains by growing, who by shrinking."""

    up: Vector
    low: Vector
    extremes: Vector  # (largest up, smallest low) of each group
    violation: float

    @property
    def level(self) -> Vector:
        """The threshold of each group: halfway between its extremes, 0 where one is infinite."""
        middle = self.extremes.mean(axis=1)
        return np.where(np.isfinite(middle), middle, 0.0)


@dataclass
class Active:
    """The program restricted to active samples.

    Where nothing fixes a sum, a null sample comes last: a free variable with a zero row in K, which takes up any sum.
    """

    samples: Vector  # active samples
    variables: Vector  # their variables in the whole program, -1 for the null variable
    program: Program  # of these variables; ``program.sample`` are positions in ``samples``
    n_groups: int
    beta: Vector
    F: Vector  # of the active samples, and a zero for the null sample
    null: int  # its variable, or -1

    def __post_init__(self) -> None:
        self._up, self._low = np.empty(len(self.beta)), np.empty(len(self.beta))
        self._extremes = np.empty((self.n_groups, 2))

    @classmethod
    def of(cls, qp: BoxQP, samples: Vector, beta: Vector, F: Vector) -> Active:
        """These samples of a program, in the state (beta, F) of the whole."""
        position = np.full(len(F), -1, np.intp)
        position[samples] = np.arange(len(samples))
        at = position if qp.sample is None else position[qp.sample]
        variables = np.flatnonzero(at >= 0)
        n, has_null = len(variables), qp.n_groups == 0
        vectors = np.empty((len(NULL), n + has_null))
        for row, values in zip(vectors, (qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper), strict=True):
            row[:n] = values if n == qp.n_vars else values[variables]
        if has_null:
            vectors[:, n] = NULL

        def column(values: Vector, extra: float) -> Vector:
            taken = values[variables]
            return np.append(taken, extra) if has_null else taken

        sample = column(at, len(samples)).astype(np.intp, copy=False)
        group = column(qp.group, 0).astype(np.int8, copy=False)
        return cls(
            samples=samples,
            variables=np.append(variables, -1) if has_null else variables,
            program=Program(sample, group, *vectors),
            n_groups=max(1, qp.n_groups),
            beta=column(beta, 0.0),
            F=np.append(F[samples], 0.0),
            null=n if has_null else -1,
        )

    @property
    def real(self) -> Vector:
        """Which variables belong to samples."""
        return self.variables >= 0

    def look(self) -> Look:
        """The scores as they are now, until the next look."""
        from mercer.svm._round_loops import survey_scores

        violation = survey_scores(self.program, self.beta, self.F, self._up, self._low, self._extremes)
        return Look(self._up, self._low, self._extremes, violation)

    def gap(self, level: Vector) -> float:
        """How much the primal at these thresholds exceeds the dual, as far as the active variables contribute.

        Each variable's share is the most that  t b - l1|b| - ridge b^2/2  can reach in its box, t = linear - F - level,
        less what it reaches at beta; inf where the box has no end.
        """
        sample, group, linear, l1, ridge, lower, upper = self.program
        t = linear - self.F[sample] - level[group]
        beyond = np.sign(t) * np.maximum(np.abs(t) - l1, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.clip(np.where(beyond == 0, 0.0, beyond / ridge), lower, upper)
            gain = self._value(t, best) - self._value(t, self.beta)
        total = float(gain.sum())
        return total if np.isfinite(total) else np.inf

    def _value(self, t: Vector, b: Vector) -> Vector:
        l1, ridge = self.program.l1, self.program.ridge
        return t * b - l1 * np.abs(b) - 0.5 * ridge * b**2

    def samples_of(self, chosen: Vector) -> Vector:
        """Which active samples have a variable among those chosen (a mask)."""
        wanted = np.zeros(len(self.samples), np.bool_)
        wanted[self.program.sample[self.real & chosen]] = True
        return wanted

    def free_samples(self) -> Vector:
        """Which active samples have a variable strictly inside its box and not at zero."""
        lower, upper = self.program.lower, self.program.upper
        return self.samples_of((self.beta > lower) & (self.beta < upper) & (self.beta != 0))

    def write_back(self, beta: Vector, F: Vector) -> None:
        """Bring beta and F of the whole up to date at the active samples. Edits both."""
        real = self.real
        beta[self.variables[real]] = self.beta[real]
        F[self.samples] = self.F[:-1]

    def renumber(self, members: Vector, other: Active) -> Vector:
        """Variables of this part in the numbers of another, as far as they are in it."""
        known = other.variables[: len(other.variables) - (other.null >= 0)]
        wanted = self.variables[members]
        wanted = wanted[wanted >= 0]
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return place[known[place] == wanted]


# changes of beta that are too small to be seen in F of samples that are left out: in all this share of tol
NEGLECTED = 0.1
# what F may be off by rounding, in units of the rounding of one value and the length of beta
ROUNDING = 8.0


class Group(NamedTuple):
    """Samples with the β, over all samples, for which F is right, and how far w had moved at the last look since.

    Infinite for samples that were left out after it.
    """

    rows: Vector
    then: Vector
    moved: float


class LeftOut:
    """All that a run has left out; ``F`` of the whole is its caller's."""

    def __init__(self, gram: GramOperator, qp: BoxQP, options: Options, largest: float) -> None:
        self.gram, self.qp, self.options, self.largest = gram, qp, options, largest
        self.groups: list[Group] = []
        # the samples active after the last look, with beta and F of that time
        self._last_look: tuple[Vector, Vector, Vector] | None = None

    def add(self, rows: Vector, beta: Vector) -> None:
        """Between two looks: F is right there for this β of the samples."""
        self.groups.append(Group(rows, beta, np.inf))

    def add_at_look(self, active: Vector, beta: Vector, F: Vector) -> None:
        """After a look: all that are neither active nor left as they were."""
        rest = np.ones(len(F), np.bool_)
        rest[active] = False
        for group in self.groups:
            rest[group.rows] = False
        self._last_look = active, beta[active], F[active]
        self.groups.append(Group(np.flatnonzero(rest), beta, 0.0))

    def bring_up(self, beta: Vector, F: Vector, anew: bool = False) -> None:
        """F of all, for this β; ``anew`` if others may have changed F since. Edits F."""
        for group in self.groups:
            self._update(group.rows, group.then, beta, F, anew)
        self.groups = []

    def bring_up_near(self, beta: Vector, variables: Vector, F: Vector, level: Vector) -> None:
        """F of all that may violate these thresholds; ``variables`` is β of the program. Edits F."""
        if self._last_look is None or not self.gram.kernel.positive_semidefinite:
            self.bring_up(beta, F)
            return
        # those that were active at the last look first: they tell how far w has moved since
        for group in self.groups:
            if group.moved == np.inf:
                self._update(group.rows, group.then, beta, F)
        older = [group for group in self.groups if group.moved < np.inf]
        self.groups = []
        moved = self._moved(beta, F)
        apart = slack(self.qp, variables, F, level)
        for rows, then, before in older:
            far = apart[rows] > (before + moved) * self._lengths[rows] + 1.5 * nearness(self.options)
            self._update(rows[~far], then, beta, F)
            if far.any():
                self.groups.append(Group(rows[far], then, before + moved))

    @cached_property
    def _lengths(self) -> Vector:
        """Of the samples in feature space."""
        return np.sqrt(np.abs(self.gram.diagonal()))

    def _moved(self, beta: Vector, F: Vector) -> float:
        """|w - w at the last look|, not less than it may be but for rounding."""
        assert self._last_look is not None
        samples, then, F_then = self._last_look
        change = beta[samples] - then
        eps = float(np.finfo(self.gram.dtype).eps)
        rounding = ROUNDING * eps * self.largest * float(np.linalg.norm(beta)) * float(np.linalg.norm(change))
        return float(np.sqrt(max(0.0, float(change @ (F[samples] - F_then)) + rounding)))

    def _update(self, rows: Vector, then: Vector, beta: Vector, F: Vector, anew: bool = False) -> None:
        """F of some samples from the change of β, or anew if fewer samples carry weight."""
        if len(rows) == 0:
            return
        change = beta - then
        anew = anew or bool(np.count_nonzero(beta) < np.count_nonzero(change))
        weights = beta if anew else change
        columns = _noticeable(weights, NEGLECTED * self.options.tol / max(self.largest, 1e-300))
        gram = self.gram
        F[rows] = (0.0 if anew else F[rows]) + product(
            gram.kernel, gram.features.take(rows), gram.features.take(columns), weights[columns], gram.n_threads,
            gram.evaluations,
        )  # fmt: skip


def _noticeable(weights: Vector, total: float) -> Vector:
    """Where weights are not zero, but for the smallest, which together are at most this total."""
    columns = np.flatnonzero(weights)
    size = np.abs(weights[columns])
    order = np.argsort(size, kind="stable")
    return np.sort(columns[order[np.cumsum(size[order]) > total]])
