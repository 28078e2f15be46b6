"""Held-out decision values of many machines: kernels × folds × settings.

Kernels that are functions of the same distances share these. All folds, pairs of classes and values of C share the Gram
matrix of a kernel. Each machine starts from the solution of the one before it. A task is one kernel and one fold; each
thread takes the next task that is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from mercer._compiled.thread_pool import run_tasks
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix
from mercer.problems.clock import Clock
from mercer.problems.solution import Options
from mercer.selection.chains import Chain, OutOfTimeError, Setting
from mercer.selection.folds import ClassifierFolds, SingleFolds
from mercer.selection.matrices import Matrices
from mercer.svm.plan import DOUBLE_UP_TO

# if settings can be dropped early: kernels tried together, and folds tried one by one before the rest
KERNELS_AT_ONCE, RUNGS = 2, 3
# most bytes of programs that are kept for the next kernel
KEPT_CHAINS = 1 << 27


class HeldOut(NamedTuple):
    """The decision values of one kernel and fold: values[i] are those of settings[i], a row for each test sample."""

    kernel: int
    fold: int
    settings: Sequence[int]
    values: Matrix
    seconds: float  # per setting, on average


Report = Callable[[HeldOut], None]
# returns the settings that are left for a kernel
Survivors = Callable[[int], Sequence[int]]


class SearchEngine(Protocol):
    """The solver of a search: solves all settings with all kernels in all folds, and reports each kernel and fold."""

    def run(
        self, kernels: Sequence[Kernel], settings: Sequence[Any], report: Report, survivors: Survivors | None = None
    ) -> None:
        """Solve until the time is over."""


class Engine:
    """Solves many machines on samples that are prepared once.

    Parameters
    ----------
    samples : the samples, in the order of ``family.folds``.
    family : the problems of each fold.
    options : tol, threads, precision, and the budget for all matrices together.
    clock : the clock of the whole search.
    """

    def __init__(self, samples: Any, family: ClassifierFolds | SingleFolds, options: Options, clock: Clock) -> None:
        self.samples, self.family, self.options, self.clock = samples, family, options, clock
        self.n_folds = len(family.folds.pairs)
        self.evaluations = 0
        self._chains: dict[int, list[Chain | float]] = {}

    def run(
        self,
        kernels: Sequence[Kernel],
        settings: Sequence[Setting],
        report: Report,
        survivors: Survivors | None = None,
    ) -> None:
        """Solve all settings with all kernels in all folds, until the time is over.

        Any thread calls ``report``, once for each kernel and fold. Settings that differ in C only should be sorted by
        C. With ``survivors`` a few kernels are tried at a time, one fold after the other; before each fold
        ``survivors`` returns the settings that are left. This choice does not depend on the number of threads.
        """
        options, n = self.options, self.family.folds.n
        # the refit of this few samples uses float64, too, so no loop is compiled for float32
        double = options.precision == "float64" or (options.precision == "auto" and n <= DOUBLE_UP_TO)
        dtype = np.float64 if double else np.float32
        matrices = Matrices(kernels, self.samples, n, self.n_folds, dtype, options.budget, options.n_threads)
        matrices.share()
        self._chains = {}
        every = range(len(settings))
        failed: list[BaseException] = []

        def one(k: int, f: int, some: Sequence[int]) -> None:
            if failed or self.clock.over() is not None:
                return
            try:
                if len(some):
                    K = matrices.acquire(k) if matrices.fitting else None
                    report(self._fold(kernels[k], k, f, settings, some, K))
            except OutOfTimeError:
                return
            except BaseException as error:  # raised below, after the other threads have ended
                failed.append(error)
                return
            if matrices.fitting:
                matrices.release(k)

        def all_of(tasks: Sequence[tuple[int, int]], left: dict[int, Sequence[int]]) -> None:
            run_tasks(
                lambda task: one(*tasks[task], left.get(tasks[task][0], every)), len(tasks), options.n_threads
            )  # fmt: skip

        folds, numbers = range(self.n_folds), range(len(kernels))
        try:
            if survivors is not None:
                several = KERNELS_AT_ONCE if matrices.room_for(KERNELS_AT_ONCE) else 1
                for first in range(0, len(kernels), several):
                    batch = numbers[first : first + several]
                    for rung in (*([f] for f in folds[:RUNGS]), folds[RUNGS:]):
                        left = {k: survivors(k) for k in batch}
                        all_of([(k, f) for k in batch for f in rung], left)
            elif matrices.fitting == 1 < options.n_threads:
                # one matrix at a time, computed by all threads
                for k in numbers:
                    if self.clock.over() is None:
                        matrices.acquire(k, options.n_threads)
                        all_of([(k, f) for f in folds], {})
            else:
                all_of([(k, f) for k in numbers for f in folds], {})
        except BaseException:
            self.clock.interrupted = True  # ends the other threads
            raise
        self.evaluations += matrices.evaluations.count
        if failed:
            raise failed[0]

    def _fold(
        self, kernel: Kernel, k: int, f: int, settings: Sequence[Setting], some: Sequence[int], K: Matrix | None
    ) -> HeldOut:
        started = time.perf_counter()
        family = self.family
        n_test = len(family.folds.pairs[f][1])
        # without a matrix, each thread stores kernel rows within its share of the budget
        options = replace(self.options, n_threads=1, budget=max(1, self.options.budget // self.options.n_threads))
        data = Data(kernel, self.samples, family.folds.n)
        values = np.empty((len(some), n_test, family.columns))
        for column, chain in enumerate(self._chains_of(f, settings, some)):
            values[:, :, column] = chain if isinstance(chain, float) else chain.run(K, data, options, self.clock)
        return HeldOut(k, f, some, values, (time.perf_counter() - started) / max(1, len(some)))

    def _chains_of(self, f: int, settings: Sequence[Setting], some: Sequence[int]) -> list[Chain | float]:
        """The chains of a fold. Chains of all settings are kept for the next kernel if they are small."""
        whole = len(some) == len(settings)
        if whole and f in self._chains:
            return self._chains[f]
        problems, chosen = self.family.problems(f), [settings[s] for s in some]
        chains = [problem if isinstance(problem, float) else Chain.of(problem, chosen) for problem in problems]
        size = sum(chain.size for chain in chains if isinstance(chain, Chain))
        if whole and self.n_folds * size <= KEPT_CHAINS:
            self._chains[f] = chains
        return chains


def check_folds(pairs: Sequence[tuple[Any, Any]], n: int) -> list[tuple[Any, Any]]:
    """The folds as arrays of positions; an error if there is no fold, or an empty one."""
    if not pairs:
        raise InvalidInputError(
            "cv gives no fold: give a splitter, or a list of (train, test) pairs, with at least one."
        )
    found = []
    for f, (train, test) in enumerate(pairs):
        ends = []
        for name, part in (("train", train), ("test", test)):
            index = np.asarray(part)
            index = np.flatnonzero(index) if index.dtype == bool else index.astype(np.intp)
            if len(index) == 0 or index.min() < -n or index.max() >= n:
                raise InvalidInputError(
                    f"Fold {f} of cv has {len(index)} {name} samples"
                    + (f" among {index.min()} to {index.max()}" if len(index) else "")
                    + f": it needs at least one, and positions of {n} samples."
                )
            ends.append(index % n)
        found.append((ends[0], ends[1]))
    return found
