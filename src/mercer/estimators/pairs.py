"""Several classes by LIBSVM's conventions: one problem for each pair of classes, and their votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np

from mercer._numerics.pool import pool
from mercer.exceptions import InfeasibleNuError, InvalidInputError, NotSeparableError
from mercer.gram.memory import available_bytes
from mercer.kernels.features import Matrix, Vector
from mercer.losses import Loss, NuHinge
from mercer.solvers.base import Clock, Options, Solution
from mercer.solvers.data import ClassBlocks, Data
from mercer.solvers.exact import PAIR_UP_TO, shared_blocks
from mercer.solvers.many import (
    SIFTED_UP_TO,
    Pairs,
    are_plain,
    are_small,
    can_join,
    can_sift,
    in_lots,
    solve_joined,
    solve_small,
)
from mercer.solvers.primal import suits
from mercer.solvers.separation import Separation

# so many pairs of classes always fit; and what the solution of each takes at least, in bytes
PAIRS_UNCHECKED, SOLUTION_BYTES = 500, 4000

# samples of two classes from which pairs gain by running side by side: smaller ones wait for the interpreter
SIDE_BY_SIDE_FROM = 600


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
    untouched : solutions of pairs whose turn did not come before the time was over, by their sizes and weights.
    """

    machine: Any
    data: Data
    members: Sequence[Vector]
    loss: Loss
    factor: Vector
    options: Options
    clock: Clock
    untouched: dict[tuple[float, ...], Solution] = field(default_factory=dict)

    def _alike(self, pair: tuple[int, int]) -> tuple[float, ...] | None:
        """Sizes and weights of the classes of a pair: pairs that share them have the same model β = 0.

        None where the samples of a class have different weights.
        """
        factors = [factor for c in pair if (factor := self._common_factors[c]) is not None]
        return (*(len(self.members[c]) for c in pair), *factors) if len(factors) == 2 else None

    @cached_property
    def _common_factors(self) -> list[float | None]:
        """C of the samples of each class where all have the same."""
        parts = [self.factor[index] for index in self.members]
        return [float(part[0]) if len(part) and part.min() == part.max() else None for part in parts]

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
        n_threads, plain = self.options.n_threads, self._are_plain(starts)
        if plain and are_small(self.members, self.options) and self.data.in_time(n_threads, self.clock):
            batch = Pairs(self.members, self.pairs, self.loss, self.factor)
            return self._completed(self.pairs, solve_small(self.data, batch, self.options, self.clock), None)
        largest = sum(sorted(len(index) for index in self.members)[-2:])
        sharing = len(self.pairs) > 1 and not self._over_features(largest, starts)
        blocks = None
        if sharing:
            sifting = plain and largest > PAIR_UP_TO and can_sift(self.data, self.options)
            up_to = SIFTED_UP_TO if sifting else PAIR_UP_TO
            blocks = shared_blocks(self.data, self.members, self.options, self.clock, up_to)
        if plain and blocks is not None and can_join(blocks, self.options):
            return [solution for lot in in_lots(self.members, self.pairs) for solution in self._joined(blocks, lot)]
        one = partial(self._solve_pair, blocks)
        if n_threads == 1 or len(self.pairs) < 2 * n_threads or largest < SIDE_BY_SIDE_FROM:
            return [one(pair, start) for pair, start in zip(self.pairs, starts, strict=True)]
        each = replace(self, options=self.options.shared(n_threads))
        try:
            return list(pool(n_threads).map(partial(each._solve_pair, blocks), self.pairs, starts))
        except BaseException:
            self.clock.interrupted = True  # the other pairs must not go on alone
            raise

    def _over_features(self, largest: int, starts: Sequence[Vector | None]) -> bool:
        """Whether the pairs, the largest of so many samples, need no kernel matrix."""
        if self.machine.solver == "qp" or any(start is not None for start in starts):
            return False
        qp = self.loss.box_qp(np.array([1.0, -1.0]), np.ones(2), self.machine.fit_intercept)
        return suits(self.data, largest, qp, self.options)

    def _are_plain(self, starts: Sequence[Vector | None]) -> bool:
        """Whether pairs can be solved without leaving compiled code: a plain loss, no start, nothing else asked for."""
        machine = self.machine
        plain = machine._plain_pairs and machine.solver == "auto" and machine.fit_intercept
        no_start = all(start is None for start in starts)
        return plain and no_start and are_plain(self.members, self.loss, self.options)

    def _joined(self, blocks: ClassBlocks, lot: Sequence[tuple[int, int]]) -> list[Solution | None]:
        """Some pairs, each on a matrix that is put together from these parts."""
        batch = Pairs(self.members, lot, self.loss, self.factor)
        return self._completed(lot, solve_joined(self.data, blocks, batch, self.options, self.clock), blocks)

    def _completed(
        self, pairs: Sequence[tuple[int, int]], found: list[Solution | None], blocks: ClassBlocks | None
    ) -> list[Solution | None]:
        """What was found, and the exact solver's solutions of the other pairs."""
        return [s or self._solve_pair(blocks, pair, None) for s, pair in zip(found, pairs, strict=True)]

    def solve(
        self,
        index: Vector,
        y: Vector,
        loss: Loss | None = None,
        start: Vector | None = None,
        pair: tuple[ClassBlocks, int, int] | None = None,
    ) -> Solution:
        """The problem of these samples, whose Gram matrix may be known in parts."""
        loss = self.loss if loss is None else loss
        if len(self.members) > 2:
            data = self.data.take(index, pair)
            return self.machine._run(data, loss, y, self.factor[index], self.options, self.clock, start)
        # two classes: in the order in which the samples are there, so that none is copied if all take part
        order = np.argsort(index, kind="stable")
        samples, back = index[order], np.empty_like(order)
        back[order] = np.arange(len(order))
        data = self.data if len(index) == self.data.n else self.data.take(samples)
        start = None if start is None or len(start) != len(index) else start[order]
        with self.clock.seen_through(lambda solution: solution.taken(back)):
            found = self.machine._run(data, loss, y[order], self.factor[samples], self.options, self.clock, start)
        return found.taken(back)

    def _solve_pair(self, blocks: ClassBlocks | None, pair: tuple[int, int], start: Vector | None) -> Solution | None:
        n_positive, n_negative = (len(self.members[c]) for c in pair)
        if n_positive == 0 or n_negative == 0:
            if isinstance(self.loss, NuHinge):
                raise InfeasibleNuError(self.loss.nu, 0.0, n_positive, n_negative)
            return None
        key = self._alike(pair) if self.clock.over() is not None else None
        if key is not None and key in self.untouched:
            return self.untouched[key]
        index, y = self.samples(*pair)
        solution = self.solve(index, y, start=start, pair=None if blocks is None else (blocks, *pair))
        if key is not None and not solution.beta.any():
            self.untouched[key] = solution
        if solution.separation is not None:
            raise not_separable(solution.separation.placed(index, self.data.n))
        return solution


def not_separable(found: Separation) -> NotSeparableError:
    """The error for a hard margin without a model, with the proof of what is known."""
    margin = found.margin if found.separable else None
    return NotSeparableError(found.weights, found.residual, found.intercept, found.decided, margin)


def check_memory(n_samples: int, n_classes: int, per_pair: int) -> None:
    """Raise if a machine for each pair of classes, with ``per_pair`` bytes each, does not fit into the memory."""
    pairs = n_classes * (n_classes - 1) // 2
    if pairs <= PAIRS_UNCHECKED:
        return
    needed, available = pairs * per_pair, available_bytes()
    if needed > available:
        raise InvalidInputError(
            f"{n_classes:,} classes are {pairs:,} pairs, each with a machine of its own: for {n_samples:,} samples "
            f"that takes about {needed / 1e9:,.1f} GB, but {available / 1e9:,.1f} GB are available. Use fewer classes, "
            "or a linear machine (LinearSVC, LinearSVCCV, mercer fit --kernel linear), which has one for each class."
        )


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """(0, 1), (0, 2), …: the order of decision values."""
    return list(combinations(range(n_classes), 2))


def pair_coefficients(coef: Matrix, ends: Vector) -> Matrix:
    """LIBSVM's layout with a row for each pair of classes and a column for each support vector.

    The support vectors of class c are those from ends[c] to ends[c + 1]. β of the pair (i, j) is row j − 1 of the
    coefficients of class i, row i of those of class j, and 0 elsewhere.
    """
    pairs = class_pairs(len(ends) - 1)
    if len(pairs) <= 1:
        return coef
    rows = np.zeros((len(pairs), coef.shape[1]))
    for row, (i, j) in zip(rows, pairs, strict=True):
        row[ends[i] : ends[i + 1]] = coef[j - 1, ends[i] : ends[i + 1]]
        row[ends[j] : ends[j + 1]] = coef[i, ends[j] : ends[j + 1]]
    return rows


def class_layout(pairs: Matrix, ends: Vector) -> Matrix:
    """The inverse of `pair_coefficients`."""
    k = len(ends) - 1
    if k <= 2:
        return pairs
    coef = np.zeros((k - 1, pairs.shape[1]))
    for row, (i, j) in zip(pairs, class_pairs(k), strict=True):
        coef[j - 1, ends[i] : ends[i + 1]] = row[ends[i] : ends[i + 1]]
        coef[i, ends[j] : ends[j + 1]] = row[ends[j] : ends[j + 1]]
    return coef


def votes(values: Matrix, n_classes: int) -> Matrix:
    """Each pair (i, j) votes for i where its value is positive, else for j."""
    count = np.zeros((len(values), n_classes))
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        first = values[:, k] > 0
        count[:, i] += first
        count[:, j] += ~first
    return count
