"""The part of a program that a run is working on: contiguous copies of its columns, and looks at its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mercer._numerics.program import Program
from mercer.kernels.features import Vector
from mercer.losses.base import BoxQP

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
        from mercer._numerics.working_set import survey_scores

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
