"""Prepared samples: what a kernel computes once per sample, so that blocks of values are quick."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._compiled.thread_pool import cached_property
from mercer.exceptions import InvalidInputError
from mercer.kernels.domains import check_no_objects

Vector = NDArray[Any]
Matrix = NDArray[Any]


class Features(Protocol):
    """The result of a kernel's ``prepare``: a sequence of samples, of which a part can be taken."""

    dtype: np.dtype[Any]

    def __len__(self) -> int: ...

    def take(self, index: Vector) -> Features:
        """The samples at these positions."""
        ...


class Csr(NamedTuple):
    """The arrays of a CSR matrix without duplicates. Unlike scipy's, taking rows runs no checks."""

    indptr: Vector
    indices: Vector
    data: Vector
    shape: tuple[int, int]

    @classmethod
    def of(cls, X: Any, dtype: np.dtype[Any]) -> Csr:
        """The arrays of a scipy matrix, with duplicate entries summed."""
        X = as_csr(X)
        if not X.has_canonical_format:
            # a position stored twice stands for the sum of both values; only inner products would treat it so
            X = X.copy()
            X.sum_duplicates()
        return cls(X.indptr, X.indices, X.data.astype(dtype, copy=False), X.shape)

    def astype(self, dtype: np.dtype[Any]) -> Csr:
        """The same matrix in another dtype."""
        return self._replace(data=self.data.astype(dtype, copy=False))

    def take(self, index: Vector) -> Csr:
        """The rows at these positions."""
        from mercer._compiled.stored_rows import take_rows

        indptr, indices, data = take_rows(self.indptr, self.indices, self.data, index.astype(np.intp, copy=False))
        return Csr(indptr, indices, data, (len(index), self.shape[1]))

    def span(self, start: int, stop: int) -> Csr:
        """The rows from start to stop, without a copy of indices and data."""
        first, last = self.indptr[start], self.indptr[stop]
        indptr = self.indptr[start : stop + 1] - first
        return Csr(indptr, self.indices[first:last], self.data[first:last], (stop - start, self.shape[1]))

    def toarray(self) -> Matrix:
        """The dense matrix."""
        return sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape).toarray()


class VectorFeatures:
    """Real vectors in one dtype, dense (C order) or CSR without duplicates, with their norms and packed copies."""

    # (kernel, formula) of the last kernel for which these were the columns: see SumKernel._sum_formula
    known_formula: tuple[Any, Any] = None, None

    def __init__(
        self,
        X: Any,
        dtype: np.dtype[Any] | type,
        norms: Vector | None = None,
        norm_range: tuple[float, float] | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.X: Any
        if isinstance(X, np.ndarray) and X.dtype == self.dtype and X.flags.c_contiguous:
            self.X = X
        elif isinstance(X, Csr):
            self.X = X.astype(self.dtype)
        elif sp.issparse(X):
            self.X = Csr.of(X, self.dtype)
        else:
            # numbers beyond the range of the dtype become infinite; a later check reports them
            with np.errstate(over="ignore"):
                self.X = np.ascontiguousarray(X, dtype=self.dtype)
        self.sparse = isinstance(self.X, Csr)
        if norms is not None:
            self.__dict__["norms"] = norms
        if norm_range is not None:
            self.__dict__["norm_range"] = norm_range

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """The number of features."""
        return int(self.X.shape[1])

    @property
    def terms(self) -> float:
        """The number of terms of a kernel value: the features, or the mean number of non-zeros of sparse samples."""
        return float(self.X.indptr[-1] / max(1, len(self)) if self.sparse else self.d)

    @cached_property
    def norms(self) -> Vector:
        """Squared norms, summed in float64."""
        if self.sparse:
            from mercer._compiled.sparse_tiles import squared_norms

            total = np.empty(len(self))
            squared_norms(self.X.indptr, self.X.data, total)
        else:
            total = np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)
        with np.errstate(over="ignore"):
            return total.astype(self.dtype)

    @property
    def some_norms(self) -> Vector:
        """A placeholder with the right shape and dtype: compiled blocks take norms even if the kernel ignores them."""
        known: Vector | None = self.__dict__.get("norms")
        return np.zeros(len(self), self.dtype) if known is None else known

    @cached_property
    def norm_range(self) -> tuple[float, float]:
        """The 90 % quantile of the squared norms, and the largest one.

        Parts of these samples inherit it, since it decides which formula is used: the same for every part.
        """
        if len(self) == 0:
            return 0.0, 0.0
        place = int(0.9 * (len(self) - 1))
        return float(np.partition(self.norms, place)[place]), float(self.norms.max())

    @property
    def largest_norm(self) -> float:
        """The largest squared norm."""
        return self.norm_range[1]

    @property
    def common_norm(self) -> float:
        """The 90 % quantile of the squared norms."""
        return self.norm_range[0]

    @cached_property
    def totals(self) -> Vector:
        """Sums of absolute values: for CSR samples, the terms of features in which the other sample is zero."""
        if self.sparse:
            from mercer._compiled.sparse_tiles import absolute_sums

            total = np.empty(len(self))
            absolute_sums(self.X.indptr, self.X.data, total)
        else:
            total = np.abs(self.X).sum(axis=1, dtype=np.float64)
        return total.astype(self.dtype)

    @cached_property
    def largest_total(self) -> float:
        """The largest sum of absolute values."""
        return float(self.totals.max()) if len(self) else 0.0

    @cached_property
    def rows_of_tile(self) -> int:
        """How many rows a tile compares with these columns at once. Fewer rows would take as long."""
        from mercer._compiled.register_tiles import ROWS, SPARSE_ROWS_BYTES

        return SPARSE_ROWS_BYTES // self.dtype.itemsize if self.sparse else ROWS

    @cached_property
    def panels(self) -> Matrix:
        """The dense samples, transposed in groups of one SIMD vector: the layout that the compiled tiles read."""
        from mercer._compiled.register_tiles import PANEL_BYTES

        width = PANEL_BYTES // self.dtype.itemsize
        full, left = divmod(len(self), width)
        panels = np.zeros((full + (left > 0), self.d, width), self.dtype)
        panels[:full] = self.X[: full * width].reshape(full, width, self.d).transpose(0, 2, 1)
        if left:
            panels[full, :, :left] = self.X[full * width :].T
        return panels

    @cached_property
    def in_double(self) -> VectorFeatures:
        """The same samples in float64."""
        return self if self.dtype == np.float64 else VectorFeatures(self.X, np.float64)

    def take(self, index: Vector) -> VectorFeatures:
        """The samples at these positions."""
        # ``take`` is several times as fast as indexing a matrix
        rows = self.X.take(index) if self.sparse else self.X.take(index, axis=0)
        part = VectorFeatures(rows, self.dtype, self.norms.take(index), self.norm_range)
        part.known_formula = self.known_formula
        return part

    def span(self, start: int, stop: int) -> VectorFeatures:
        """The samples from start to stop, without a copy."""
        X = self.X.span(start, stop) if self.sparse else self.X[start:stop]
        part = VectorFeatures(X, self.dtype, self.norms[start:stop], self.norm_range)
        # it depends on the dtype, the number of features and the range of norms only
        part.known_formula = self.known_formula
        panels = self.__dict__.get("panels")
        if panels is not None and start % panels.shape[2] == 0:
            # the last panel may hold samples beyond ``stop``, which are not read
            part.__dict__["panels"] = panels[start // panels.shape[2] : -(-stop // panels.shape[2])]
        return part

    def stored_like(self, other: VectorFeatures) -> VectorFeatures:
        """These samples in the storage (dense or CSR) and the dtype of the other."""
        if self.sparse == other.sparse and self.dtype == other.dtype:
            return self
        if self.sparse == other.sparse:
            return VectorFeatures(self.X, other.dtype)
        return VectorFeatures(sp.csr_array(self.X) if other.sparse else self.X.toarray(), other.dtype)


class ObjectFeatures:
    """Samples of any kind, unchanged: for kernels that are Python functions."""

    def __init__(self, samples: Any, dtype: np.dtype[Any] | type = np.float64) -> None:
        self.samples = samples
        self.dtype = np.dtype(dtype)

    def __len__(self) -> int:
        return count_samples(self.samples)

    def take(self, index: Vector) -> ObjectFeatures:
        """The samples at these positions."""
        return ObjectFeatures(take_samples(self.samples, index), self.dtype)


class JointFeatures:
    """The same samples prepared in several ways, for kernels made of kernels. The key is ``Kernel.preparation``."""

    def __init__(self, prepared: dict[Hashable, Features]) -> None:
        self._prepared = prepared
        self.dtype = next(iter(prepared.values())).dtype

    def __len__(self) -> int:
        return len(next(iter(self._prepared.values())))

    @property
    def parts(self) -> tuple[Features, ...]:
        """All prepared samples, without their keys."""
        return tuple(leaf for part in self._prepared.values() for leaf in getattr(part, "parts", (part,)))

    def prepared(self, way: Hashable) -> Features:
        """The samples prepared in this way; all ways, for a kernel that needs several."""
        return self._prepared.get(way, self)

    def take(self, index: Vector) -> JointFeatures:
        """The samples at these positions."""
        return JointFeatures({way: part.take(index) for way, part in self._prepared.items()})


def span(features: Features, start: int, stop: int) -> Features:
    """The samples from start to stop."""
    if isinstance(features, VectorFeatures):
        return features.span(start, stop)
    return features.take(np.arange(start, stop))


def count_samples(samples: Any) -> int:
    """The number of samples in an array, sparse matrix, data frame or sequence."""
    return int(samples.shape[0]) if hasattr(samples, "shape") else len(samples)


def take_samples(samples: Any, index: Vector) -> Any:
    """samples[index] for arrays, sparse matrices, data frames, lists and tuples."""
    if hasattr(samples, "iloc"):
        return samples.iloc[index]
    if isinstance(samples, np.ndarray):
        # ``take`` is several times as fast as indexing, but it knows no masks and copies arrays in other memory orders
        takes = samples.flags.c_contiguous and isinstance(index, np.ndarray) and index.dtype.kind == "i"
        return samples.take(index, axis=0) if takes else samples[index]
    if sp.issparse(samples):
        return samples.tocsr()[index]
    if isinstance(samples, Sequence) and not isinstance(samples, str):
        return [samples[i] for i in index]
    return samples[index]


def without_index(samples: Any) -> Any:
    """A column of a data frame as a list; all other samples unchanged. Files hold lists, not columns."""
    return list(samples) if hasattr(samples, "to_list") and not hasattr(samples, "columns") else samples


def stack_samples(first: Any, second: Any) -> Any:
    """The samples of both, in order: arrays, sparse matrices, data frames or sequences."""
    if sp.issparse(first):
        return sp.vstack([first, second], format="csr")
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second.toarray() if sp.issparse(second) else second])
    if hasattr(first, "vstack"):
        return first.vstack(second)
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat([first, second])
    return [*first, *second]


def as_csr(X: Any) -> Any:
    """A scipy matrix in CSR format with the 32-bit indices that compiled loops read; X itself if it has them."""
    X = X if X.format == "csr" else X.tocsr()
    if X.indices.dtype == X.indptr.dtype == np.int32:
        return X
    most = np.iinfo(np.int32).max
    if X.nnz > most or X.shape[1] > most:
        raise InvalidInputError(
            f"The sparse matrix has {X.nnz:,} stored values and {X.shape[1]:,} features, but 32-bit indices allow at "
            f"most {most:,} of each. Use fewer samples, or fewer features, for instance with FeatureHasher or "
            "SelectKBest."
        )
    narrow = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return type(X)(narrow, shape=X.shape)


def as_matrix(samples: Any) -> Any:
    """Samples as a dense array or CSR matrix of numbers, one row per sample. Takes data frames and nested lists."""
    if sp.issparse(samples):
        return as_csr(samples)
    if type(samples) is not np.ndarray or samples.ndim != 2:
        check_no_objects(lambda: "This kernel", samples)
    array = np.asarray(samples)
    if array.ndim != 2:
        raise InvalidInputError(
            f"Vectors must be given as a matrix with a row per sample, but these samples have the shape {array.shape}. "
            "Use X.reshape(-1, 1) if each sample is one number, X.reshape(1, -1) if this is one sample."
        )
    if array.dtype.kind not in "fiub":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"Vectors must consist of real numbers, but these samples are of type {array.dtype}. "
                "Encode them as numbers, choose columns with On(columns, kernel), or use a kernel on such objects."
            ) from None
    return array
