"""The folds of a search: an order of the samples that keeps folds and classes contiguous, and their problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._compiled.thread_pool import cached_property
from mercer.kernels.features import Vector, take_samples
from mercer.selection.chains import Index, Problem
from mercer.svm.batch import class_pairs
from mercer.validation import class_weights

# if contiguous columns have fewer members on average, products use all columns
SHORTEST_RUN = 32


@dataclass(frozen=True, eq=False)
class Folds:
    """The (train, test) pairs of a splitter, and an order of the samples in which test folds are contiguous.

    Attributes
    ----------
    pairs : positions in X, as the splitter gave them.
    order : sample k of the Gram matrices is sample order[k] of X.
    """

    pairs: Sequence[tuple[Index, Index]]
    order: Index

    @classmethod
    def of(cls, pairs: Sequence[tuple[Index, Index]], n: int, codes: Index | None, movable: bool) -> Folds:
        """Sort the n samples by test fold and class; keep their order if they cannot be moved."""
        fold = np.full(n, len(pairs))
        for f, (_, test) in reversed(list(enumerate(pairs))):
            fold[test] = f
        order = np.lexsort((np.zeros(n, np.intp) if codes is None else codes, fold)) if movable else np.arange(n)
        return cls(pairs, order)

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.order)

    @cached_property
    def place(self) -> Index:
        """The position of each sample of X in the matrices."""
        place = np.empty(self.n, np.intp)
        place[self.order] = np.arange(self.n)
        return place

    def samples(self, X: Any) -> Any:
        """X in the order of the matrices."""
        return X if np.array_equal(self.order, np.arange(self.n)) else take_samples(X, self.order)

    def problem(self, train: Index, y: Vector, weight: Vector, test: Index, intercept: bool) -> Problem:
        """The problem of these samples of X, all of positive weight."""
        train, test = self.place[train], self.place[test]
        by_place = np.argsort(train)
        train = train[by_place]
        return Problem(train, y[by_place], weight[by_place], *self._ranges(train, test), test, intercept)

    def _ranges(self, train: Index, test: Index) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Ranges of columns with train, and those with the rest of test; all columns if the ranges are short."""
        kind = np.zeros(self.n + 2, np.int8)
        kind[test + 1] = 2
        kind[train + 1] = 1
        train_ranges, test_ranges = (np.flatnonzero(np.diff((kind == k).view(np.int8))).reshape(-1, 2) for k in (1, 2))
        whole = (len(train_ranges) + len(test_ranges)) * SHORTEST_RUN > len(train) + len(test)
        return (
            (np.array([[0, self.n]], dtype=np.intp), np.empty((0, 2), np.intp))
            if whole
            else (train_ranges, test_ranges)
        )


class ClassifierFolds:
    """One problem for each pair of classes and fold, by LIBSVM's conventions: the first class is positive."""

    def __init__(
        self, folds: Folds, codes: Index, classes: Vector, weight: Vector, class_weight: Any, intercept: bool
    ) -> None:
        self.folds, self.codes, self.classes, self.weight = folds, codes, classes, weight
        self.class_weight, self.intercept = class_weight, intercept
        self.columns = len(class_pairs(len(classes)))

    def problems(self, f: int) -> list[Problem | float]:
        """The problem of each pair of classes, or the constant decision value of a pair with an empty class.

        A class without samples never wins a vote.
        """
        train, test = self.folds.pairs[f]
        codes = self.codes[train]
        # every class has a factor, even if the fold has no sample of it
        present, inner = np.unique(codes, return_inverse=True)
        factors = np.ones(len(self.classes))
        if isinstance(self.class_weight, dict):
            factors = class_weights(self.class_weight, self.classes, self.codes)
        elif len(present) and self.class_weight is not None:
            factors[present] = class_weights(self.class_weight, self.classes[present], inner)
        weight = self.weight[train] * factors[codes]
        used = weight > 0
        if len(np.unique(codes[used])) < 2:
            return [np.nan] * self.columns  # one class: nothing to learn
        found: list[Problem | float] = []
        for i, j in class_pairs(len(self.classes)):
            first, second = used & (codes == i), used & (codes == j)
            if not first.any() or not second.any():
                found.append(float(first.any()) - float(second.any()))
                continue
            mine = first | second
            y = np.where(codes[mine] == i, 1.0, -1.0)
            found.append(self.folds.problem(train[mine], y, weight[mine], test, self.intercept))
        return found


class SingleFolds:
    """One problem for each fold: regression and novelty detection."""

    columns = 1

    def __init__(self, folds: Folds, y: Vector, weight: Vector, intercept: bool) -> None:
        self.folds, self.y, self.weight, self.intercept = folds, y, weight, intercept

    def problems(self, f: int) -> list[Problem | float]:
        """The problem of this fold."""
        train, test = self.folds.pairs[f]
        train = train[self.weight[train] > 0]
        if len(train) == 0:
            return [np.nan]
        return [self.folds.problem(train, self.y[train], self.weight[train], test, self.intercept)]
