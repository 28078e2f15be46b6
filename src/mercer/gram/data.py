"""Samples and the kernel that compares them, as the solvers see them."""

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

# a trial of the kernel's speed: samples to begin with, seconds that tell enough, samples at most, slack of the forecast
TRIAL_FROM, TRIAL_SECONDS, TRIAL_UP_TO, TRIAL_SLACK = 16, 3e-3, 1024, 1.25
# seconds that a clock may be unable to tell from 0
INSTANT = 1e-12


class Speed(NamedTuple):
    """Seconds that it takes to prepare a sample in float64, and to compute a kernel value."""

    sample: float
    value: float


class Data:
    """Samples and their kernel, prepared in each precision at most once.

    ``psd`` says whether the kernel's dual bounds anything. A part shares the samples of the whole.
    """

    def __init__(self, kernel: Kernel, samples: Any, n: int, psd: bool = True) -> None:
        self.kernel = kernel
        self.samples = samples
        self.n = n
        self.psd = psd and kernel.positive_semidefinite
        self.evaluations = Evaluations()
        self.speeds: dict[int, Speed] = {}  # of so many threads, shared by all parts
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
                # of a kernel matrix the columns are taken with the rows
                self._features[dtype] = self.kernel.prepare(self.samples, dtype).take(self._index)
            else:
                self._features[dtype] = self.kernel.prepare(self.own_samples(), dtype)
        return self._features[dtype]

    @property
    def index(self) -> Vector | None:
        """Which of the samples this part has, in their order; None for all."""
        return self._index

    @property
    def compares_float32(self) -> bool:
        """Whether the samples are float32 and compared as they are."""
        X = self.samples
        if not isinstance(X, np.ndarray) or X.dtype != np.float32 or self.kernel.domain != "vectors":
            return False
        rows = X[:1]
        return getattr(self.kernel.prepare(rows, np.float32), "X", None) is rows

    def own_samples(self) -> Any:
        """The samples of this part, as they were given."""
        return self.samples if self._index is None else take_samples(self.samples, self._index)

    def exact(self, index: Vector) -> Features:
        """Some samples in float64, without a float64 copy of all."""
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
        """About how long float64 values between so many rows and columns take: what a certificate needs."""
        if n_threads not in self.speeds:
            self.speeds[n_threads] = self._trial(n_threads)
        speed = self.speeds[n_threads]
        return (n_rows + n_columns) * speed.sample + n_rows * n_columns * speed.value

    def column_seconds(self, n_rows: float, n_threads: int) -> float:
        """About how long one more column takes."""
        return self.seconds(n_rows, 2, n_threads) - self.seconds(n_rows, 1, n_threads)

    def in_time(self, n_threads: int, left: float, part: float = 1.0) -> bool:
        """Whether the matrix of all samples, or a part of it, takes at most half of the seconds that are left."""
        return left == np.inf or self.seconds(self.n, 0.5 * part * self.n, n_threads) <= 0.5 * left

    def _trial(self, n_threads: int) -> Speed:
        """Prepare some samples and compute values between them: more and more, until they take long enough."""
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
        """The whole Gram matrix: from parts that exist (``matrix_dtype``), or computed and written to out if given."""
        if self._pair is not None and np.dtype(dtype) == self.matrix_dtype:
            blocks, i, j = self._pair
            return blocks.matrix(i, j)
        return GramOperator(self.kernel, self.features(dtype), n_threads, self.evaluations).dense(out)

    def take(self, index: Vector, pair: tuple[ClassBlocks, int, int] | None = None) -> Data:
        """A part of the samples, with what is prepared of them; ``pair`` has its Gram matrix in parts."""
        part = Data(self.kernel, self.samples, len(index), self.psd)
        part.evaluations, part.speeds = self.evaluations, self.speeds
        part._index = index if self._index is None else self._index[index]
        if self.kernel.domain == "matrix":
            self.features(np.float64)  # once for all parts
        if pair is None:
            part._features = {dtype: features.take(index) for dtype, features in self._features.items()}
        else:
            part._pair, part.matrix_dtype, part._whole = pair, pair[0].dtype, self
        return part


def _rate(call: Callable[[int], Any], most: int) -> tuple[int, float]:
    """A size for which a call takes long enough to be timed, and its seconds divided by the size."""
    size = min(TRIAL_FROM, most)
    while True:
        seconds = []
        for _ in range(2):  # the first call may prepare what others share
            start = perf_counter()
            call(size)
            seconds.append(perf_counter() - start)
        if min(seconds) >= TRIAL_SECONDS or size == most:
            return size, max(min(seconds) / size, INSTANT)
        size = min(2 * size, most)


class ClassBlocks:
    """Gram matrices of pairs of classes: what a class has with itself is computed once for all its pairs.

    Of n samples in k classes n^2/k values are kept. Values between two classes belong to one pair alone.
    """

    def __init__(self, data: Data, members: Sequence[Vector], dtype: Any, n_threads: int) -> None:
        self.dtype = np.dtype(dtype)
        self.kernel = data.kernel
        self.evaluations = data.evaluations
        whole = data.features(self.dtype)
        self.features = [whole.take(index) for index in members]
        self.own: list[Matrix] = [np.empty((0, 0))] * len(members)
        self._scratch = threading.local()

        sizes = np.array([len(index) for index in members])
        self._loan = Loan(int((sizes**2).sum()), self.dtype)
        ends = np.concatenate([[0], np.cumsum(sizes**2)])

        def one(c: int) -> None:
            place = self._loan.array[ends[c] : ends[c + 1]].reshape(sizes[c], sizes[c])
            self.own[c] = GramOperator(self.kernel, self.features[c], 1, self.evaluations).dense(place)

        for features in self.features:
            prepare_columns(features)
        run_tasks(one, len(members), n_threads)

    def matrix(self, i: int, j: int) -> Matrix:
        """The matrix of the samples of class i followed by those of class j."""
        from mercer._compiled.stored_rows import join

        n = len(self.own[i]) + len(self.own[j])
        K = self.scratch(n**2).reshape(n, n)
        between = self.kernel.block(self.features[i], self.features[j])
        self.evaluations.add(between.size)
        join(self.own[i], self.own[j], between, K)
        return K

    def scratch(self, entries: int) -> Vector:
        """Memory of this thread, whose next pair overwrites it: to touch new memory takes long."""
        if not hasattr(self._scratch, "loan"):
            two_largest = sum(sorted((len(own) for own in self.own), reverse=True)[:2])
            self._scratch.loan = Loan(two_largest**2, self.dtype)
        return self._scratch.loan.array[:entries]


def check_finite(values: Vector | float) -> None:
    """scikit-learn's words for kernel values that are not numbers."""
    if not (isfinite(values) if isinstance(values, float) else np.isfinite(values).all()):
        raise ValueError(
            "The dual coefficients or intercepts are not finite. The input data may contain large values and need to "
            "be preprocessed: the kernel gives values that are not finite numbers. Scale the features, for example "
            "with StandardScaler."
        )
