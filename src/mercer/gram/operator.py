"""The Gram matrix of a set of samples as an operator: blocks, products and the diagonal are computed on demand."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from mercer._compiled.thread_pool import run_shares, run_tasks
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures, span
from mercer.kernels.vectors import Linear

TILE_BYTES = 1 << 20
# number of terms from which a kernel value is costly
COSTLY_TERMS = 128
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
        """The whole matrix, written to ``out`` if given. If it is faster, the lower triangle is copied from the upper.

        Unless ``mirrored``, the lower triangle need not be written.
        """
        from mercer._compiled.stored_rows import place_rows

        n = self.n
        K = np.empty((n, n), self.dtype) if out is None else out
        height = self.kernel.triangle_rows(self.features)
        if n <= height or self.kernel.whole:
            self.evaluations.add(n * n)
            return self.kernel.block(self.features, self.features, K)
        if height == 0:
            return self.rows(self.features, out=K)
        starts = range(0, n, height)
        prepare_columns(self.features)

        def one(task: int) -> None:
            start = starts[task]
            stop = min(start + height, n)
            rest = self.features if start == 0 else span(self.features, start, n)
            rows = self.kernel.block(span(self.features, start, stop), rest)
            place_rows(np.ascontiguousarray(rows, K.dtype), K, start, mirrored)

        run_tasks(one, len(starts), self.n_threads)
        self.evaluations.add(sum((n - s) * min(height, n - s) for s in starts))
        return K


def terms_of(kernel: Kernel, features: Features) -> float:
    """About how many terms a kernel value between these samples is the sum of."""
    if kernel.domain == "matrix":
        return 0.0
    parts = getattr(features, "parts", (features,))
    return sum(part.terms if isinstance(part, VectorFeatures) else np.inf for part in parts)


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
    out = np.zeros((len(a), *weights.shape[1:]))
    if len(b) == 0 or len(a) == 0:
        return out
    if evaluations is not None:
        evaluations.add(len(a) * len(b))
    together = prepare_columns(b)
    several = None if weights.ndim == 1 else VectorFeatures(weights.T, b.dtype)
    single = np.ascontiguousarray(weights, dtype=b.dtype)
    step = _rows_of(TILE_BYTES, b, together)

    def part(start: int, stop: int) -> None:
        tile = np.empty((min(step, stop - start), len(b)), b.dtype)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            if several is None:
                kernel.add_product(span(a, first, last), b, single, out[first:last], tile[: last - first])
            else:
                block = kernel.block(span(a, first, last), b, tile[: last - first])
                out[first:last] = _LINEAR.block(VectorFeatures(block, b.dtype), several)

    if several is not None:
        prepare_columns(several)
    threads = n_threads if len(a) * len(b) >= THREADS_FROM else 1
    run_shares(part, len(a), threads, align=together)
    return out


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


_LINEAR = Linear()
