"""The active samples of a run, and the inactive samples, whose F = Kβ is out of date.

`Active` holds contiguous copies of the program's vectors. `Inactive` reconstructs F of inactive samples (LIBSVM's
reconstruct_gradient) where it is needed. While a sample x is inactive, w moves by Δw with |Δw|² = Δβ'KΔβ, so F of x
changes by at most |Δw| sqrt(k(x, x)). If the score of x is farther than that from making it move, x cannot violate the
optimality conditions, and its F is not computed.
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


class Scores(NamedTuple):
    """The rates of all active variables for an increase (up) and a decrease (low): see ``_smo_loops.py``."""

    up: Vector
    low: Vector
    extremes: Vector  # (largest up, smallest low) of each group
    violation: float

    @property
    def level(self) -> Vector:
        """The threshold of each group: the middle of its extremes, 0 if one is infinite."""
        middle = self.extremes.mean(axis=1)
        return np.where(np.isfinite(middle), middle, 0.0)


@dataclass
class Active:
    """The program restricted to active samples.

    A program without sums gets a null sample as its last: a free variable with a zero row in K, which takes up any sum.
    """

    samples: Vector  # active samples
    variables: Vector  # their variables in the full program, -1 for the null variable
    program: Program  # of these variables; ``program.sample`` are positions in ``samples``
    n_groups: int
    beta: Vector
    F: Vector  # of the active samples, and 0 for the null sample
    null: int  # the variable of the null sample, or -1

    def __post_init__(self) -> None:
        self._up, self._low = np.empty(len(self.beta)), np.empty(len(self.beta))
        self._extremes = np.empty((self.n_groups, 2))

    @classmethod
    def of(cls, qp: BoxQP, samples: Vector, beta: Vector, F: Vector) -> Active:
        """The program at these samples; beta and F are those of all samples."""
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
        """Which variables are not the null variable."""
        return self.variables >= 0

    def scores(self) -> Scores:
        """The present scores. The next call overwrites them."""
        from mercer.svm._round_loops import score_and_extremes

        violation = score_and_extremes(self.program, self.beta, self.F, self._up, self._low, self._extremes)
        return Scores(self._up, self._low, self._extremes, violation)

    def gap(self, level: Vector) -> float:
        """The duality gap at these thresholds, summed over the active variables.

        Each variable contributes  max over its box of  t b - l1|b| - ridge b^2/2,  t = linear - F - level, minus the
        value at its beta; inf if the box is unbounded.
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
        """A mask of the active samples that have a chosen variable."""
        wanted = np.zeros(len(self.samples), np.bool_)
        wanted[self.program.sample[self.real & chosen]] = True
        return wanted

    def free_samples(self) -> Vector:
        """A mask of the active samples that have a variable strictly inside its box and not at zero."""
        lower, upper = self.program.lower, self.program.upper
        return self.samples_of((self.beta > lower) & (self.beta < upper) & (self.beta != 0))

    def write_back(self, beta: Vector, F: Vector) -> None:
        """Copy beta and F of the active samples to those of all samples. Edits both."""
        real = self.real
        beta[self.variables[real]] = self.beta[real]
        F[self.samples] = self.F[:-1]

    def renumber(self, members: Vector, other: Active) -> Vector:
        """The numbers that these members have in another active set; members that are not in it are dropped."""
        known = other.variables[: len(other.variables) - (other.null >= 0)]
        wanted = self.variables[members]
        wanted = wanted[wanted >= 0]
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return place[known[place] == wanted]


# changes of beta that together alter F by less than this share of tol are neglected at inactive samples
NEGLECTED = 0.1
# rounding error of F, in units of the rounding of one kernel value times the length of beta
ROUNDING = 8.0


class InactiveGroup(NamedTuple):
    """Samples that became inactive together.

    Attributes
    ----------
    rows : the samples.
    then : β of all samples at that time, for which their F is right.
    moved : a bound on how far w had moved since then at the last check of all samples; inf for samples that became
        inactive after it.
    """

    rows: Vector
    then: Vector
    moved: float


class Inactive:
    """The inactive samples of a run. F of all samples belongs to the caller."""

    def __init__(self, gram: GramOperator, qp: BoxQP, options: Options, largest: float) -> None:
        self.gram, self.qp, self.options, self.largest = gram, qp, options, largest
        self.groups: list[InactiveGroup] = []
        # the samples active after the last check of all samples, with their beta and F at that time
        self._last_check: tuple[Vector, Vector, Vector] | None = None

    def add(self, rows: Vector, beta: Vector) -> None:
        """Add samples whose F is right for this β, between two checks of all samples."""
        self.groups.append(InactiveGroup(rows, beta, np.inf))

    def add_after_check(self, active: Vector, beta: Vector, F: Vector) -> None:
        """After a check of all samples, add all that are neither active nor inactive already."""
        rest = np.ones(len(F), np.bool_)
        rest[active] = False
        for group in self.groups:
            rest[group.rows] = False
        self._last_check = active, beta[active], F[active]
        self.groups.append(InactiveGroup(np.flatnonzero(rest), beta, 0.0))

    def reconstruct(self, beta: Vector, F: Vector, anew: bool = False) -> None:
        """Compute F of all inactive samples for this β; ``anew`` if F was changed from outside. Edits F."""
        for group in self.groups:
            self._update(group.rows, group.then, beta, F, anew)
        self.groups = []

    def reconstruct_near(self, beta: Vector, variables: Vector, F: Vector, level: Vector) -> None:
        """Compute F of the inactive samples that may violate these thresholds. Edits F.

        ``beta`` is β of the samples, ``variables`` that of the variables of the program.
        """
        if self._last_check is None or not self.gram.kernel.positive_semidefinite:
            self.reconstruct(beta, F)
            return
        # first the samples that were active at the last check: their F tells how far w has moved since
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
                self.groups.append(InactiveGroup(rows[far], then, before + moved))

    @cached_property
    def _lengths(self) -> Vector:
        """The lengths |φ(x)| of the samples."""
        return np.sqrt(np.abs(self.gram.diagonal()))

    def _moved(self, beta: Vector, F: Vector) -> float:
        """An upper bound of |w - w at the last check|, with an allowance for rounding."""
        assert self._last_check is not None
        samples, then, F_then = self._last_check
        change = beta[samples] - then
        eps = float(np.finfo(self.gram.dtype).eps)
        rounding = ROUNDING * eps * self.largest * float(np.linalg.norm(beta)) * float(np.linalg.norm(change))
        return float(np.sqrt(max(0.0, float(change @ (F[samples] - F_then)) + rounding)))

    def _update(self, rows: Vector, then: Vector, beta: Vector, F: Vector, anew: bool = False) -> None:
        """Compute F of some samples from the change of β, or from β itself if that has fewer nonzeros. Edits F."""
        if len(rows) == 0:
            return
        change = beta - then
        anew = anew or bool(np.count_nonzero(beta) < np.count_nonzero(change))
        weights = beta if anew else change
        columns = _without_smallest(weights, NEGLECTED * self.options.tol / max(self.largest, 1e-300))
        gram = self.gram
        F[rows] = (0.0 if anew else F[rows]) + product(
            gram.kernel, gram.features.take(rows), gram.features.take(columns), weights[columns], gram.n_threads,
            gram.evaluations,
        )  # fmt: skip


def _without_smallest(weights: Vector, total: float) -> Vector:
    """Indices of nonzero weights, without the smallest ones, which together are at most ``total``."""
    columns = np.flatnonzero(weights)
    size = np.abs(weights[columns])
    order = np.argsort(size, kind="stable")
    return np.sort(columns[order[np.cumsum(size[order]) > total]])
