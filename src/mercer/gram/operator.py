"""The Gram matrix of a set of samples, without storing it.

`GramOperator` computes blocks, products and the diagonal on demand. `Data` prepares samples and their kernel for the
solvers, and `ClassBlocks` the blocks that pairs of classes share. `RowStore` keeps rows within a budget of bytes; the
oldest are replaced first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import isfinite
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from mercer._compiled.thread_pool import run_shares, run_tasks
from mercer.gram.memory import Loan
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures, span, take_samples

TILE_BYTES = 1 << 20
# number of terms from which a kernel value is costly
COSTLY_TERMS = 128
# bytes of a dense sample up to which computing a value takes no longer than copying it across the diagonal
SHORT_SAMPLE = 96
# number of kernel values from which several threads are used
THREADS_FROM = 300_000
# rows of a symmetric product that are computed together, and the same for costly values
MIRROR, COSTLY_MIRROR = 192, 48
# most partial sums of a symmetric product: each is a vector over all samples
PARTIAL_SUMS = 64


class Evaluations:
    """A counter of computed kernel values, shared by all operators and threads of one fit."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        """Add to the count."""
        with self._lock:
            self.count += count


class GramOperator:
    """K[i, j] = k(x_i, x_j) for prepared samples, computed by several threads over rows.

    Values do not depend on the number of threads or on the block in which they are computed.
    """

    def __init__(
        self,
        kernel: Kernel,
        features: Features,
        n_threads: int = 1,
        evaluations: Evaluations | None = None,
    ) -> None:
        self.kernel = kernel
        self.features = features
        self.n_threads = n_threads
        self.evaluations = evaluations if evaluations is not None else Evaluations()

    @property
    def n(self) -> int:
        return len(self.features)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.features.dtype

    @property
    def terms(self) -> float:
        """About how many terms a kernel value is the sum of: 0 for a kernel matrix, inf for kernels on objects."""
        return terms_of(self.kernel, self.features)

    @property
    def costly(self) -> bool:
        """Whether computing a value again takes much longer than storing it."""
        return self.terms >= COSTLY_TERMS

    def diagonal(self) -> Vector:
        return self.kernel.diagonal(self.features)

    def rows(self, features: Features, columns: Features | None = None, out: Matrix | None = None) -> Matrix:
        """Kernel values between prepared samples (rows) and the samples of the operator, or given columns."""
        b = self.features if columns is None else columns
        if out is None:
            out = np.empty((len(features), len(b)), b.dtype)
        n = len(features)
        self.evaluations.add(n * len(b))
        together = prepare_columns(b)
        step = _rows_of(16 * TILE_BYTES, b, together)

        def part(start: int, stop: int) -> None:
            for first in range(start, stop, step):
                last = min(first + step, stop)
                whole = first == 0 and last == n
                self.kernel.block(features if whole else span(features, first, last), b, out[first:last])

        threads = self.n_threads if n * len(b) >= THREADS_FROM else 1
        run_shares(part, n, threads, align=together)
        return out

    def block(self, rows: Vector, columns: Vector) -> Matrix:
        """K[rows, columns]."""
        return self.rows(self.features.take(rows), self.features.take(columns))

    def take(self, index: Vector) -> GramOperator:
        """The operator of some of the samples."""
        return GramOperator(self.kernel, self.features.take(index), self.n_threads, self.evaluations)

    def dense(self, out: Matrix | None = None, mirrored: bool = True) -> Matrix:
        """The whole matrix, written to ``out`` if given. For costly values the lower triangle is copied from the upper.

        Unless ``mirrored``, the lower triangle need not be written.
        """
        n = self.n
        K = np.empty((n, n), self.dtype) if out is None else out
        height = self.kernel.triangle_rows(self.features)
        if n <= height or self.kernel.whole:
            self.evaluations.add(n * n)
            return self.kernel.block(self.features, self.features, K)
        if height == 0 or (mirrored and _short(self.features)):
            return self.rows(self.features, out=K)
        starts = range(0, n, height)
        prepare_columns(self.features)

        def one(task: int) -> None:
            start = starts[task]
            stop = min(start + height, n)
            rest = self.features if start == 0 else span(self.features, start, n)
            rows = self.kernel.block(span(self.features, start, stop), rest)
            K[start:stop, start:] = rows
            if mirrored:
                K[stop:, start:stop] = rows[:, stop - start :].T

        run_tasks(one, len(starts), self.n_threads)
        self.evaluations.add(sum((n - s) * min(height, n - s) for s in starts))
        return K


def terms_of(kernel: Kernel, features: Features) -> float:
    """About how many terms a kernel value between these samples is the sum of."""
    if kernel.domain == "matrix":
        return 0.0
    parts = getattr(features, "parts", (features,))
    return sum(part.terms if isinstance(part, VectorFeatures) else np.inf for part in parts)


def _short(features: Features) -> bool:
    """Whether the samples are dense vectors of few bytes."""
    parts = getattr(features, "parts", (features,))
    lengths = [part.d for part in parts if isinstance(part, VectorFeatures) and not part.sparse]
    return len(lengths) == len(parts) and sum(lengths) * features.dtype.itemsize <= SHORT_SAMPLE


def prepare_columns(b: Features) -> int:
    """Build the cached arrays of the columns before threads use them. Returns how many rows a tile takes at once."""
    together = 1
    for part in getattr(b, "parts", (b,)):
        if isinstance(part, VectorFeatures):
            _ = part.norms, part.norm_range
            if not part.sparse:
                _ = part.panels
            together = max(together, part.rows_of_tile)
    return together


def _rows_of(size: int, b: Features, together: int) -> int:
    """How many rows of a block with columns b fill about ``size`` bytes: a multiple of the rows of a tile."""
    return max(1, size // max(1, len(b) * b.dtype.itemsize) // together) * together


def product(
    kernel: Kernel,
    a: Features,
    b: Features,
    weights: Matrix,
    n_threads: int = 1,
    evaluations: Evaluations | None = None,
) -> Matrix:
    """K(a, b) @ weights, tile by tile, without storing K; weights has the shape (len(b),) or (len(b), m).

    A single column is summed in float64 except for short runs, several columns in the dtype of b. Each row of the
    result depends only on its own sample, not on the batch.
    """
    if weights.shape[1:] == (1,):
        return product(kernel, a, b, weights[:, 0], n_threads, evaluations)[:, None]
    out = np.zeros((len(a), *weights.shape[1:]))
    if len(b) == 0 or len(a) == 0:
        return out
    if evaluations is not None:
        evaluations.add(len(a) * len(b))
    together = prepare_columns(b)
    panels = None if weights.ndim == 1 else VectorFeatures(weights.T, b.dtype).panels
    single = np.ascontiguousarray(weights, dtype=b.dtype)
    step = _rows_of(TILE_BYTES, b, together)

    def part(start: int, stop: int) -> None:
        tile = np.zeros((_whole_tiles(min(step, stop - start)), len(b)), b.dtype)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            here = tile[: last - first]
            if panels is None:
                kernel.add_product(span(a, first, last), b, single, out[first:last], here)
            else:
                kernel.block(span(a, first, last), b, here)
                out[first:last] = _times(tile[: _whole_tiles(last - first)], panels)[: last - first, : weights.shape[1]]

    threads = n_threads if len(a) * len(b) >= THREADS_FROM else 1
    run_shares(part, len(a), threads, align=together)
    return out


def _whole_tiles(n_rows: int) -> int:
    """The next multiple of the rows of a register tile."""
    from mercer._compiled.register_tiles import ROWS

    return -(-n_rows // ROWS) * ROWS


def _times(tile: Matrix, panels: Matrix) -> Matrix:
    """The tile times the samples in the panels. Unlike in BLAS, no row of the result depends on other rows."""
    from mercer._compiled.tiles import dot_sums

    sums = np.empty((len(tile), panels.shape[0] * panels.shape[2]), tile.dtype)
    dot_sums(tile, panels, 0, len(panels), sums)
    return sums


def symmetric_product(
    kernel: Kernel, a: Features, weights: Vector, n_threads: int = 1, evaluations: Evaluations | None = None
) -> Vector:
    """K(a, a) @ weights in float64. Only one triangle is computed; each value is used twice.

    Partial sums are added in a fixed order, so that the result does not depend on the number of threads.
    """
    from mercer._compiled.tiles import add_block_product, add_rows_product

    n = len(a)
    # blocks of few rows compute few values twice, blocks of many rows need few calls
    height = COSTLY_MIRROR if terms_of(kernel, a) >= COSTLY_TERMS else MIRROR
    starts, all_rows = range(0, n, height), np.arange(height)
    parts = np.zeros((min(PARTIAL_SUMS, len(starts)), n))
    prepare_columns(a)

    def one(task: int) -> None:
        # blocks are dealt out in turn, so that all tasks take about as long
        for start in starts[task :: len(parts)]:
            stop = min(start + height, n)
            block = kernel.block(span(a, start, stop), a if start == 0 else span(a, start, n))
            add_block_product(block, weights[start:].astype(block.dtype, copy=False), parts[task, start:stop])
            beyond = parts[task, start:]
            add_rows_product(block, all_rows[: stop - start], weights[start:stop], stop - start, n - start, beyond)

    run_tasks(one, len(parts), n_threads if n > MIRROR else 1)
    if evaluations is not None:
        evaluations.add(sum((n - s) * min(height, n - s) for s in starts))
    return np.add.reduce(parts, axis=0)


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
        """Estimate the seconds of ``n_rows`` times ``n_columns`` float64 values, as a certificate needs them."""
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
        """Measure the speed: prepare and compare more and more samples until this takes long enough to be timed."""
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


class MatrixRows:
    """The interface of `RowStore` for a Gram matrix that is stored in full."""

    def __init__(self, K: Matrix, n_threads: int) -> None:
        self.values = K
        self.n = len(K)
        self.diagonal: Vector = np.diagonal(K)
        self.n_threads = n_threads

    def find(self, samples: Vector) -> Vector:
        """The slots of the rows of these samples: the numbers of the samples."""
        return samples

    ensure = find

    def add_product(self, slots: Vector, weights: Vector, out: Vector) -> None:
        """out += sum_t weights[t] K[slots[t], :], in float64."""
        from mercer._compiled.shared_loops import add_rows_product

        add_rows_product(self.values, slots, weights, out, self.n_threads)


class RowStore:
    """Stored rows K[i, :] of samples i that are used repeatedly, over the columns of one operator.

    The budget is a hard limit on the bytes of stored rows. Memory is reserved at once, but touched only when rows are
    stored. When the columns change, rows are moved within the same memory.
    """

    def __init__(self, gram: GramOperator, budget: int, at_least: int = 2) -> None:
        n, size = max(1, gram.n), gram.dtype.itemsize
        # at least one working set, at most the whole matrix
        entries = max(min(at_least, n) * n, min(n * n, budget // size))
        self._loan = Loan(entries, gram.dtype)
        self.buffer = self._loan.array
        self.clock = 0
        self._lay_out(gram)

    def _lay_out(self, gram: GramOperator) -> None:
        """Start without rows, with the columns of this operator."""
        self.gram = gram
        self.capacity = min(gram.n, len(self.buffer) // max(1, gram.n))
        self.values = self.buffer[: self.capacity * gram.n].reshape(self.capacity, gram.n)
        self.slot_of = np.full(gram.n, -1, np.intp)
        self.sample_of = np.full(self.capacity, -1, np.intp)
        self.last_used = np.zeros(self.capacity, np.int64)
        self.used = 0
        self._next = 0

    @property
    def has_room(self) -> bool:
        """Whether there are unused slots, so that no row has been replaced yet."""
        return self.used < self.capacity

    def _adopt(self, samples: Vector, last_used: Vector) -> None:
        """Assign the first slots to these samples, whose rows are in place."""
        count = len(samples)
        self.slot_of[samples] = np.arange(count)
        self.sample_of[:count] = samples
        self.last_used[:count] = last_used
        self.used = count

    def find(self, samples: Vector) -> Vector:
        """The slots of the rows of these samples; -1 for rows that are not stored."""
        return self._look_up(samples)[0]

    def _look_up(self, samples: Vector) -> tuple[Vector, Vector]:
        """The slots of the rows of these samples, and the samples whose rows are missing, without repeats."""
        from mercer._compiled.stored_rows import find_rows

        self.clock += 1
        slots, missing = np.empty((2, len(samples)), np.intp)
        count = find_rows(self.slot_of, self.last_used, self.clock, samples, slots, missing)
        return slots, missing[:count]

    def ensure(self, samples: Vector) -> Vector:
        """The slots of the rows of these samples. Missing rows are computed."""
        slots, missing = self._look_up(samples)
        if len(missing):
            missing.sort()
            self._compute(missing)
            slots = self.slot_of[samples]
        return slots

    def _free_slots(self, count: int) -> Vector:
        """Unused slots, then those of the oldest rows that are not in use now.

        They are in memory order, so that consecutive new rows are written without a copy.
        """
        fresh = min(count, self.capacity - self.used)
        slots = np.arange(self.used, self.used + fresh)
        self.used += fresh
        if fresh < count:
            around = np.roll(np.arange(self.capacity), -self._next)
            around = around[self.last_used[around] != self.clock]
            old = around[~np.isin(around, slots)][: count - fresh]
            self._next = (int(old[-1]) + 1) % self.capacity
            self.slot_of[self.sample_of[old]] = -1
            slots = np.concatenate([slots, old])
        return slots

    def _compute(self, samples: Vector) -> None:
        """Compute the missing rows of these samples, in groups of adjacent slots."""
        slots = self._free_slots(len(samples))
        ends = [len(slots)]
        if slots[-1] - slots[0] != len(slots) - 1:
            ends = [*(np.flatnonzero(np.diff(slots) != 1) + 1).tolist(), *ends]
        start = 0
        for end in ends:
            features, first = self.gram.features.take(samples[start:end]), slots[start]
            self.gram.rows(features, out=self.values[first : first + end - start])
            start = end
        self.slot_of[samples] = slots
        self.sample_of[slots] = samples
        self.last_used[slots] = self.clock

    def add_product(self, slots: Vector, weights: Vector, out: Vector) -> None:
        """out += sum_t weights[t] K[sample of slots[t], :], in float64."""
        from mercer._compiled.shared_loops import add_rows_product

        add_rows_product(self.values, slots, weights, out, self.gram.n_threads)

    def restrict(self, index: Vector, gram: GramOperator) -> None:
        """Keep only the columns ``index`` and the rows of the same samples; ``gram`` is their operator."""
        from mercer._compiled.stored_rows import compact

        n_old = self.gram.n
        old = self.slot_of[index]
        kept = np.flatnonzero(old >= 0)
        kept = kept[np.argsort(old[kept])]
        slots, last_used = old[kept], self.last_used[old[kept]]
        compact(self.buffer, n_old, slots, index)
        self._lay_out(gram)
        self._adopt(kept, last_used)

    def extend(self, columns: Vector, gram: GramOperator, keep: Vector) -> None:
        """Add columns: the old columns have the positions ``columns`` among those of ``gram``.

        Rows of samples marked in ``keep``, a mask over the old columns, stay, and their new entries are computed.
        """
        from mercer._compiled.stored_rows import compact, fill, spread

        n_old = self.gram.n
        slots = np.flatnonzero(keep[self.sample_of[: self.used]])
        slots = slots[: len(self.buffer) // gram.n]
        owners, last_used = columns[self.sample_of[slots]], self.last_used[slots]
        compact(self.buffer, n_old, slots, np.arange(n_old))
        spread(self.buffer, n_old, len(slots), columns, gram.n)
        self._lay_out(gram)
        self._adopt(owners, last_used)
        fresh = np.setdiff1d(np.arange(gram.n), columns, assume_unique=True)
        if len(fresh) and len(owners):
            features = gram.features
            fill(self.buffer, gram.n, fresh, gram.rows(features.take(owners), features.take(fresh)))
