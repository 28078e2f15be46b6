"""Samples that a run leaves out: F = Kβ of each is right for the β of an earlier time.

Since then w has moved by Δw, |Δw|² = Δβ'KΔβ, and F of a sample x by at most |Δw| sqrt(k(x, x)). One whose score is
farther than that from making it move has not begun to violate: it is left as it is, and costs no kernel value.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from mercer.gram.operator import GramOperator, product
from mercer.kernels.features import Vector
from mercer.losses.base import BoxQP
from mercer.solvers.base import Options
from mercer.solvers.judge import nearness, slack

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
