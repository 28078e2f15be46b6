"""Several classes by LIBSVM's conventions: one problem for each pair of classes, and their votes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from mercer._numerics.pool import pool
from mercer.exceptions import InfeasibleNuError, NotSeparableError
from mercer.kernels.features import Matrix, Vector
from mercer.losses import Loss, NuHinge
from mercer.solvers.base import Clock, Options, Solution, Status
from mercer.solvers.data import ClassBlocks, Data
from mercer.solvers.exact import shared_blocks


@dataclass(frozen=True, eq=False)
class OneVsOne:
    """Class i against class j > i, i being positive, for all pairs.

    Attributes
    ----------
    machine : the classifier, which runs the solver.
    data : all samples.
    members : of each class, the samples that have a weight.
    loss : of every problem.
    factor : C of each sample.
    options, clock : of every run.
    """

    machine: Any
    data: Data
    members: Sequence[Vector]
    loss: Loss
    factor: Vector
    options: Options
    clock: Clock

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(0, 1), (0, 2), …"""
        return class_pairs(len(self.members))

    def samples(self, i: int, j: int) -> tuple[Vector, Vector]:
        """The samples of a pair, those of class i first, and their labels ±1."""
        index = np.concatenate([self.members[i], self.members[j]])
        return index, np.repeat([1.0, -1.0], [len(self.members[i]), len(self.members[j])])

    def solve_all(self, starts: Sequence[Vector | None]) -> list[Solution | None]:
        """Every pair, side by side if they are many, each with all threads if they are few; None for an empty class."""
        n_threads = self.options.n_threads
        blocks = shared_blocks(self.data, self.members, self.options) if len(self.pairs) > 1 else None
        one = partial(self._solve_pair, blocks)
        if n_threads == 1 or len(self.pairs) < 2 * n_threads:
            return [one(pair, start) for pair, start in zip(self.pairs, starts, strict=True)]
        each = replace(self, options=replace(self.options, n_threads=1, budget=self.options.budget // n_threads))
        return list(pool(n_threads).map(partial(each._solve_pair, blocks), self.pairs, starts))

    def solve(
        self,
        index: Vector,
        y: Vector,
        loss: Loss | None = None,
        start: Vector | None = None,
        matrix: Callable[[], Matrix] | None = None,
    ) -> Solution:
        """The problem of these samples, whose float32 Gram matrix may be known."""
        whole = np.array_equal(index, np.arange(self.data.n))
        data = self.data if whole else self.data.take(index, matrix)
        loss = self.loss if loss is None else loss
        return self.machine._run(data, loss, y, self.factor[index], self.options, self.clock, start)

    def _solve_pair(
        self, blocks: ClassBlocks | None, pair: tuple[int, int], start: Vector | None
    ) -> Solution | None:
        n_positive, n_negative = (len(self.members[c]) for c in pair)
        if n_positive == 0 or n_negative == 0:
            if isinstance(self.loss, NuHinge):
                raise InfeasibleNuError(self.loss.nu, 0.0, n_positive, n_negative)
            return None
        index, y = self.samples(*pair)
        matrix = None if blocks is None else partial(blocks.pair, *pair)
        solution = self.solve(index, y, start=start, matrix=matrix)
        if solution.status is Status.UNBOUNDED:
            raise not_separable(solution, index, self.data.n)
        return solution


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """(0, 1), (0, 2), …: the order of decision values."""
    return list(combinations(range(n_classes), 2))


def votes(values: Matrix, n_classes: int) -> Matrix:
    """Each pair (i, j) votes for i where its value is positive, else for j."""
    count = np.zeros((len(values), n_classes))
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        first = values[:, k] > 0
        count[:, i] += first
        count[:, j] += ~first
    return count


def not_separable(solution: Solution, index: Vector, n: int) -> NotSeparableError:
    """The proof that the hulls of two classes meet: the diverging β, scaled to two convex combinations."""
    weights = np.zeros(n)
    total = 0.5 * float(np.abs(solution.beta).sum())
    weights[index] = solution.beta / total
    return NotSeparableError(weights, float(np.sqrt(max(0.0, solution.squared_norm))) / total)
