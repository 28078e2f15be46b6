"""Samples and their kernel, prepared for the solvers; Gram blocks that pairs of classes share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import isfinite
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from mercer._compiled.thread_pool import run_tasks
from mercer.gram.memory import Loan
from mercer.gram.operator import Evaluations, GramOperator, prepare_columns, product
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Matrix, Vector, take_samples

# a trial of the kernel's speed: first and largest number of samples, seconds that are long enough, safety factor
TRIAL_FROM, TRIAL_UP_TO, TRIAL_SECONDS, TRIAL_SLACK = 16, 1024, 3e-3, 1.25
# smallest time per item: a clock may show 0 for a short call
INSTANT = 1e-12


class Speed(NamedTuple):
    """Seconds to prepare a sample in float64, and to compute a kernel value."""

    sample: float
    value: float


class Data:
    """Samples and their kernel, prepared in each precision at most once. A part shares the samples of the whole.

    ``psd``: the kernel is positive semidefinite, so that the dual value bounds the primal.
    """

    def __init__(self, kernel: Kernel, samples: Any, n: int, psd: bool = True) -> None:
        self.kernel = kernel
        self.samples = samples
        self.n = n
        self.psd = psd and kernel.positive_semidefinite
        self.evaluations = Evaluations()
        self.speeds: dict[int, Speed] = {}  # by the number of threads; shared by all parts
        self._index: Vector | None = None
        self._features: dict[np.dtype[Any], Features] = {}
        self._pair: tuple[ClassBlocks, int, int] | None = None
        self._whole: Data | None = None
        self.matrix_dtype: np.dtype[Any] | None = None

    def features(self, dtype: Any) -> Features:
        """All samples, prepared for values of this dtype."""
        dtype = np.dtype(dtype)
        if dtype not in self._features:
            if self.kernel.domain == "matrix" and self._index is not None:
                # part of a precomputed matrix: take rows and columns
                self._features[dtype] = self.kernel.prepare(self.samples, dtype).take(self._index)
            else:
                self._features[dtype] = self.kernel.prepare(self.own_samples(), dtype)
        return self._features[dtype]

    @property
    def index(self) -> Vector | None:
        """The samples of this part, in their order; None for all."""
        return self._index

    @property
    def compares_float32(self) -> bool:
        """Whether the samples are float32 and the kernel uses them without a copy."""
        X = self.samples
        if not isinstance(X, np.ndarray) or X.dtype != np.float32 or self.kernel.domain != "vectors":
            return False
        rows = X[:1]
        return getattr(self.kernel.prepare(rows, np.float32), "X", None) is rows

    def own_samples(self) -> Any:
        """The samples of this part, as they were given."""
        return self.samples if self._index is None else take_samples(self.samples, self._index)

    def exact(self, index: Vector) -> Features:
        """Prepare some samples in float64, without a float64 copy of all."""
        double = self._features.get(np.dtype(np.float64))
        if double is None and self.kernel.domain == "matrix":
            double = self.features(np.float64)
        if double is not None:
            return double.take(index)
        index = index if self._index is None else self._index[index]
        if self._whole is not None:
            return self._whole.exact(index)
        return self.kernel.prepare(take_samples(self.samples, index), np.float64)

    def seconds(self, n_rows: float, n_columns: float, n_threads: int) -> float:
        """Estimate the seconds of float64 values between so many rows and columns, as a certificate needs them."""
        if n_threads not in self.speeds:
            self.speeds[n_threads] = self._trial(n_threads)
        speed = self.speeds[n_threads]
        return (n_rows + n_columns) * speed.sample + n_rows * n_columns * speed.value

    def column_seconds(self, n_rows: float, n_threads: int) -> float:
        """Estimate the seconds of one more column."""
        return self.seconds(n_rows, 2, n_threads) - self.seconds(n_rows, 1, n_threads)

    def in_time(self, n_threads: int, left: float, part: float = 1.0) -> bool:
        """Whether the Gram matrix, or this part of it, takes at most half of the seconds left."""
        return left == np.inf or self.seconds(self.n, 0.5 * part * self.n, n_threads) <= 0.5 * left

    def _trial(self, n_threads: int) -> Speed:
        """Measure: prepare samples and compute values between them, for more samples until it takes long enough."""
        most = min(self.n, TRIAL_UP_TO)
        spread = np.linspace(0, self.n - 1, most).astype(np.intp)

        def values(size: int) -> None:
            columns = np.arange(0, size, 2)
            product(self.kernel, features.take(np.arange(size)), features.take(columns), ones[columns], n_threads)

        size, sample = _rate(lambda size: self.exact(spread[:size]), most)
        features, ones = self.exact(spread[:size]), np.ones(size)
        size, row = _rate(values, size)
        return Speed(TRIAL_SLACK * sample, TRIAL_SLACK * row / ((size + 1) // 2))

    def matrix(self, dtype: Any, n_threads: int, out: Matrix | None = None) -> Matrix:
        """The Gram matrix: joined from stored class blocks (``matrix_dtype``), or computed, into ``out`` if given."""
        if self._pair is not None and np.dtype(dtype) == self.matrix_dtype:
            blocks, i, j = self._pair
            return blocks.matrix(i, j)
        return GramOperator(self.kernel, self.features(dtype), n_threads, self.evaluations).dense(out)

    def take(self, index: Vector, pair: tuple[ClassBlocks, int, int] | None = None) -> Data:
        """A part of the samples, with their prepared features; ``pair`` names the class blocks of its Gram matrix."""
        part = Data(self.kernel, self.samples, len(index), self.psd)
        part.evaluations, part.speeds = self.evaluations, self.speeds
        part._index = index if self._index is None else self._index[index]
        if self.kernel.domain == "matrix":
            self.features(np.float64)  # prepared once for all parts
        if pair is None:
            part._features = {dtype: features.take(index) for dtype, features in self._features.items()}
        else:
            part._pair, part.matrix_dtype, part._whole = pair, pair[0].dtype, self
        return part


def _rate(call: Callable[[int], Any], most: int) -> tuple[int, float]:
    """(a size for which a call takes long enough to be timed, its seconds divided by the size)."""
    size = min(TRIAL_FROM, most)
    while True:
        seconds = []
        for _ in range(2):  # the first call may fill caches
            start = perf_counter()
            call(size)
            seconds.append(perf_counter() - start)
        if min(seconds) >= TRIAL_SECONDS or size == most:
            return size, max(min(seconds) / size, INSTANT)
        size = min(2 * size, most)


class ClassBlocks:
    """Gram matrices of pairs of classes. The within-class block of each class is computed once for all its pairs.

    n samples in k equal classes need n^2/k stored values. The cross block of two classes belongs to one pair alone.
    """

    def __init__(self, data: Data, members: Sequence[Vector], dtype: Any, n_threads: int) -> None:
        self.dtype = np.dtype(dtype)
        self.kernel = data.kernel
        self.evaluations = data.evaluations
        whole = data.features(self.dtype)
        self.features = [whole.take(index) for index in members]
        self.within: list[Matrix] = [np.empty((0, 0))] * len(members)
        self._scratch = threading.local()

        sizes = np.array([len(index) for index in members])
        self._loan = Loan(int((sizes**2).sum()), self.dtype)
        ends = np.concatenate([[0], np.cumsum(sizes**2)])

        def one(c: int) -> None:
            place = self._loan.array[ends[c] : ends[c + 1]].reshape(sizes[c], sizes[c])
            self.within[c] = GramOperator(self.kernel, self.features[c], 1, self.evaluations).dense(place)

        for features in self.features:
            prepare_columns(features)
        run_tasks(one, len(members), n_threads)

    def matrix(self, i: int, j: int) -> Matrix:
        """The Gram matrix of the samples of class i followed by those of class j, in scratch memory of this thread."""
        from mercer._compiled.stored_rows import join

        n = len(self.within[i]) + len(self.within[j])
        K = self.scratch(n**2).reshape(n, n)
        cross = self.kernel.block(self.features[i], self.features[j])
        self.evaluations.add(cross.size)
        join(self.within[i], self.within[j], cross, K)
        return K

    def scratch(self, entries: int) -> Vector:
        """Memory of this thread, which its next pair overwrites: page faults of new memory take long."""
        if not hasattr(self._scratch, "loan"):
            two_largest = sum(sorted((len(within) for within in self.within), reverse=True)[:2])
            self._scratch.loan = Loan(two_largest**2, self.dtype)
        return self._scratch.loan.array[:entries]


def check_finite(values: Vector | float) -> None:
    """Raise scikit-learn's error if kernel values are not finite."""
    if not (isfinite(values) if isinstance(values, float) else np.isfinite(values).all()):
        raise ValueError(
            "The dual coefficients or intercepts are not finite. The input data may contain large values and need to "
            "be preprocessed: the kernel gives values that are not finite numbers. Scale the features, for example "
            "with StandardScaler."
        )
