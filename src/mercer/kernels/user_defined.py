"""Kernels supplied by the user: a function of two sets of samples, or a kernel matrix.

The functions at the end try a user's function on a few samples, to find out whether it compares two sets of samples or
two single samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel, check_whole
from mercer.kernels.features import Features, Matrix, ObjectFeatures, Vector, count_samples, take_samples

# the diagonal of a function is read off blocks of this size: a compromise between calls and unused values
DIAGONAL_BLOCK = 16
# values that differ by less than this, relative to the largest, count as equal: the function may use float32
ROUNDING = 1e-3

Function = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """k given by ``function(X, Z)``, which returns the matrix of all k(x, z), for samples of any kind.

    X and Z are parts of the given samples and have their type: arrays of an array, lists of a list. The function may be
    called from several threads, for any part of the matrix, and must return the same values each time.

    With ``pairwise=True`` the function is k(x, z) itself: it is called for each pair of samples and returns a number.
    A sample is a row of an array or of a data frame, an element of a list, or a row of a sparse matrix as a dense
    vector. This is much slower than one call for all pairs.

    The kernel is assumed to be positive semidefinite (``psd_is_assumed``). ``check_mercer(function, samples)`` checks
    this, and so does a fit. If your kernel is known to be indefinite, override ``positive_semidefinite`` in a subclass.

    >>> overlap = CallableKernel(lambda X, Z: np.array([[len(x & z) for z in Z] for x in X]))
    >>> overlap([{"milk", "bread"}, {"milk", "eggs"}])
    array([[2., 1.],
           [1., 2.]])
    >>> CallableKernel(lambda x, z: len(x & z), pairwise=True)([{"milk", "bread"}, {"milk", "eggs"}])
    array([[2., 1.],
           [1., 2.]])
    """

    function: Callable[[Any, Any], Any]
    pairwise: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            returns = "(x, z) that returns a number" if self.pairwise else "(X, Z) that returns a matrix"
            raise InvalidInputError(f"CallableKernel needs a function f{returns}, but was given {self.function!r}.")

    @property
    def domain(self) -> str:
        return "any"

    @property
    def psd_is_assumed(self) -> bool:
        return True

    def triangle_rows(self, a: Features) -> int:
        return 8 if self.pairwise else super().triangle_rows(a)

    @property
    def preparation(self) -> Hashable:
        return "objects"

    def bind(self, samples: Any) -> Kernel:
        """Check that the function takes two sets of samples, or with ``pairwise`` two samples; return the kernel."""
        if self.pairwise:
            check_takes_pairs(repr(self), self.function, samples)
        else:
            check_takes_sets(repr(self), self.function, samples)
        return self

    def prepare(self, samples: Any, dtype: Any = np.float64) -> ObjectFeatures:
        """The samples as they are."""
        return ObjectFeatures(samples, dtype)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        """The values that the function returns, copied to ``out``."""
        assert isinstance(a, ObjectFeatures) and isinstance(b, ObjectFeatures)
        if out is None:
            out = np.empty((len(a), len(b)), b.dtype)
        if len(a) == 0 or len(b) == 0:
            return out
        if self.pairwise:
            rows = list(each(a.samples))  # b may have more samples
            values = self._numbers([[self.function(x, z) for x in rows] for z in each(b.samples)])
            values = np.swapaxes(values, 0, 1)
        else:
            values = self._numbers(self.function(a.samples, b.samples))
        if values.shape != (len(a), len(b)):
            raise self._wrong_shape(values.shape, (len(a), len(b)))
        out[...] = values
        return out

    def _numbers(self, values: Any) -> Matrix:
        """The returned values as an array of real numbers."""
        try:
            values = values.toarray() if sp.issparse(values) else np.asarray(values)
        except ValueError as error:  # rows of different lengths
            raise InvalidInputError(f"{self!r} must return real numbers, but returned no array: {error}") from None
        if values.dtype.kind not in "fiub":
            raise InvalidInputError(f"{self!r} must return real numbers, but returned a matrix of {values.dtype}.")
        return values

    def _wrong_shape(self, found: tuple[int, ...], expected: tuple[int, int]) -> InvalidInputError:
        if self.pairwise:
            return InvalidInputError(
                f"{self!r} must return one real number for each pair of samples, but returned an array of shape "
                f"{found[2:]}."
            )
        return InvalidInputError(
            f"{self!r} returned a matrix of shape {found} for {expected[0]} and {expected[1]} samples: the shape must "
            f"be {expected}, one row for each sample of the first argument, one column for each of the second."
        )

    def diagonal(self, a: Features) -> Vector:
        """k(a_i, a_i), from small blocks along the diagonal."""
        assert isinstance(a, ObjectFeatures)
        n, step = len(a), 1 if self.pairwise else DIAGONAL_BLOCK
        double = ObjectFeatures(a.samples, np.float64)
        parts = [double.take(np.arange(start, min(start + step, n))) for start in range(0, n, step)]
        return np.concatenate([np.diagonal(self.block(part, part)) for part in parts]) if parts else np.empty(0)

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"CallableKernel({name}{', pairwise=True' if self.pairwise else ''})"


class PrecomputedFeatures:
    """Samples given as rows of a kernel matrix: the row number of each sample, and its column number.

    Parts of the samples share the whole matrix and keep only the row and column numbers.
    """

    def __init__(self, matrix: Any, dtype: Any, rows: Vector, columns: Vector | None, shape: tuple[int, int]) -> None:
        self.matrix = matrix
        self.dtype = np.dtype(dtype)
        self.rows = rows
        self.columns = columns
        self.shape = shape

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, index: Vector) -> PrecomputedFeatures:
        """The samples at these positions; each keeps its column."""
        columns = None if self.columns is None else self.columns[index]
        return PrecomputedFeatures(self.matrix, self.dtype, self.rows[index], columns, self.shape)

    def without_matrix(self) -> PrecomputedFeatures:
        """The column numbers alone: all that a fitted model needs of its support vectors."""
        return PrecomputedFeatures(None, self.dtype, self.rows, self.columns, self.shape)


@dataclass(frozen=True)
class Precomputed(Kernel):
    """k(x_i, x_j) = K[i, j]: the samples are the rows of a kernel matrix.

    To fit, give the square matrix K between the training samples; to predict, the matrix between the new samples
    (rows) and all training samples (columns). ``block(a, b)`` reads the rows of a at the columns of b, so b must be
    training samples or a part of them. The matrix may be CSR. It is assumed to be positive semidefinite.

    Examples
    --------
    >>> from mercer import SVC
    >>> K = [[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    >>> SVC(kernel="precomputed").fit(K, [0, 0, 1]).predict(K)
    array([0, 0, 1])
    """

    @property
    def domain(self) -> str:
        return "matrix"

    @property
    def psd_is_assumed(self) -> bool:
        return True

    def prepare(self, samples: Any, dtype: Any = np.float64) -> PrecomputedFeatures:
        """The matrix, not copied, with its row numbers and, if it is square, its column numbers."""
        matrix = samples.tocsr() if sp.issparse(samples) else np.asarray(samples)
        if matrix.ndim != 2:
            raise InvalidInputError(
                f"Precomputed() takes a kernel matrix, but the array has the shape {matrix.shape}. "
                "Give K[i, j] = k(x_i, x_j) with a row for each sample and a column for each training sample."
            )
        n, m = matrix.shape
        return PrecomputedFeatures(matrix, dtype, np.arange(n), np.arange(n) if n == m else None, (n, m))

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        """K[rows of a, columns of b], copied."""
        assert isinstance(a, PrecomputedFeatures) and isinstance(b, PrecomputedFeatures)
        columns = _square(b)
        if a.shape[1] != b.shape[0]:
            raise InvalidInputError(
                f"Precomputed() was given rows of {a.shape[1]} values, but there are {b.shape[0]} training samples. "
                "Give one column for each training sample, in the same order, whether or not it is a support vector."
            )
        if out is None:
            out = np.empty((len(a), len(b)), b.dtype)
        rows, chosen = _as_slice(a.rows), _as_slice(columns)
        if sp.issparse(a.matrix):
            out[...] = a.matrix[rows][:, chosen].toarray()
        elif isinstance(rows, slice) or isinstance(chosen, slice):
            out[...] = a.matrix[rows, chosen]
        else:
            out[...] = a.matrix[rows[:, None], chosen]
        return out

    def diagonal(self, a: Features) -> Vector:
        """K[i, i]."""
        assert isinstance(a, PrecomputedFeatures)
        columns = _square(a)
        if sp.issparse(a.matrix):
            return a.matrix.diagonal().astype(np.float64)[a.rows]
        return a.matrix[a.rows, columns].astype(np.float64)


@dataclass(frozen=True)
class PrecomputedLayer(Precomputed):
    """k(x_i, x_j) = K[i, j, layer]: one of several kernel matrices of the same samples, stacked along the last axis.

    The samples are given as a stack of matrices, such as ``np.stack([K_1, K_2], axis=2)``.

    Examples
    --------
    >>> from mercer.kernels import PrecomputedLayer
    >>> import numpy as np
    >>> stack = np.stack([np.eye(2), np.ones((2, 2))], axis=2)
    >>> PrecomputedLayer(layer=1)(stack)
    array([[1., 1.],
           [1., 1.]])
    """

    layer: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "layer", check_whole("layer", self.layer, 0))

    def prepare(self, samples: Any, dtype: Any = np.float64) -> PrecomputedFeatures:
        """The matrix of this layer, not copied."""
        stack = np.asarray(samples)
        if stack.ndim != 3 or stack.shape[2] <= self.layer:
            raise InvalidInputError(
                f"{self!r} takes several kernel matrices stacked along the last axis, but the array has the shape "
                f"{stack.shape}. Use np.stack(matrices, axis=2)."
            )
        return super().prepare(stack[:, :, self.layer], dtype)


def _square(features: PrecomputedFeatures) -> Vector:
    """The column numbers of training samples; raises if the matrix is not square."""
    if features.columns is None:
        raise InvalidInputError(
            f"Precomputed() needs the square matrix K[i, j] = k(x_i, x_j) between the training samples, but the matrix "
            f"has the shape {features.shape}."
        )
    return features.columns


def _as_slice(index: Vector) -> Any:
    """Consecutive positions as a slice, since copying a slice is several times faster than indexing."""
    if len(index) and index[-1] - index[0] == len(index) - 1 and bool(np.all(np.diff(index) == 1)):
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


# ---- does a function compare two sets of samples, or two samples? ----------------------------------------------------
# A function of two samples, as lecture notes write k(x, z), fails on two sets in many ways: it raises, it returns one
# number, or it returns a matrix of the right shape by accident (``np.dot(X, Z)`` of square matrices). The sets tried
# here have different sizes, so that such accidents show.


def each(samples: Any) -> Iterator[Any]:
    """Iterate over the samples; a row of a sparse matrix is given as a dense vector."""
    if sp.issparse(samples):
        rows = samples.tocsr()
        return (rows[[i]].toarray()[0] for i in range(rows.shape[0]))
    if hasattr(samples, "iloc"):
        return (samples.iloc[i] for i in range(len(samples)))
    if hasattr(samples, "iter_rows"):
        return iter(samples.iter_rows(named=True))
    return iter(samples)


def check_takes_sets(name: str, function: Function, samples: Any, in_parts: bool = True) -> None:
    """Raise if function(X, Z) compares two samples instead of two sets of samples.

    With ``in_parts``, raise also if k(x, z) depends on the sets that x and z are in. Any other error of the function is
    left to the call that needs its values.
    """
    n = count_samples(samples)
    if n == 0:
        return
    tried = _on_sets(function, samples, np.array([0, n // 2, n - 1]), np.array([n - 1, 0]))
    alone = _on_sets(function, samples, np.array([0]), np.array([n - 1]))
    if not isinstance(tried, str) and not isinstance(alone, str):
        if in_parts and not _agree(tried[:1, :1], alone):
            raise InvalidInputError(
                f"{name} must return the same k(x, z) for a pair of samples whichever sets they are in, but for "
                f"samples 0 and {n - 1} it returned {tried[0, 0]:g} in sets of 3 and 2 samples, and {alone[0, 0]:g} "
                "alone. "
                "Compute what depends on all samples, such as their mean, before the fit, or use kernel='precomputed'."
            )
        return
    value = _on_pair(function, samples)
    if isinstance(value, str):
        return
    trouble = tried if isinstance(tried, str) else alone
    raise InvalidInputError(
        f"{name} compares two samples: for one pair it returned {value:g}, but for two sets of samples it {trouble}. A "
        "kernel function f(X, Z) is called with two sets of samples and returns the matrix of all k(x, z): one row for "
        "each sample of X, one column for each sample of Z. Use kernel=CallableKernel(f, pairwise=True), which calls f "
        "for each pair, or write f for two matrices, such as (1 + X @ Z.T) ** 2 in place of (1 + x @ z) ** 2."
    )


def check_takes_pairs(name: str, function: Function, samples: Any) -> None:
    """Raise unless function(x, z) returns a number for two samples."""
    n = count_samples(samples)
    if n == 0:
        return
    trouble = _on_pair(function, samples)
    if not isinstance(trouble, str):
        return
    advice = "Correct the function."
    if not isinstance(_on_sets(function, samples, np.array([0, n // 2, n - 1]), np.array([n - 1, 0])), str):
        advice = (
            "It compares two sets of samples, and returns the matrix of all k(x, z): use kernel=CallableKernel(f), "
            "without pairwise=True."
        )
    raise InvalidInputError(
        f"{name} calls its function f(x, z) with two samples, for which it must return one real number, but it "
        f"{trouble}. {advice}"
    )


def depends_on_sets(function: Function, samples: Any, part: Vector) -> bool:
    """Whether function(X, Z) fails or changes its values if Z is this part of the samples instead of all of them."""
    if len(part) == 0:
        return False
    n = count_samples(samples)
    rows = np.unique([0, n // 2, n - 1])
    every, some = (_on_sets(function, samples, rows, columns) for columns in (np.arange(n), part))
    return isinstance(every, str) or isinstance(some, str) or not _agree(every[:, part], some)


def _agree(values: Matrix, others: Matrix) -> bool:
    """Whether two matrices are equal but for rounding."""
    size = max(np.abs(values).max(initial=0.0), np.abs(others).max(initial=0.0))
    if not np.isfinite(size):
        return True  # values that are not finite are reported where they are used
    return bool(np.abs(values - others).max(initial=0.0) <= ROUNDING * size)


def _on_sets(function: Function, samples: Any, rows: Vector, columns: Vector) -> Matrix | str:
    """The matrix of these samples, or a phrase that says what the function did instead."""
    values = _attempt(lambda: function(take_samples(samples, rows), take_samples(samples, columns)))
    if isinstance(values, str) or values.shape == (len(rows), len(columns)):
        return values
    return f"returned an array of shape {values.shape} for {len(rows)} and {len(columns)} samples"


def _on_pair(function: Function, samples: Any) -> float | str:
    """The value for the first and the last sample, or a phrase that says what the function did instead."""
    last = count_samples(samples) - 1
    value = _attempt(lambda: function(*(next(each(take_samples(samples, np.array([i])))) for i in (0, last))))
    if isinstance(value, str):
        return value
    return float(value) if value.ndim == 0 else f"returned an array of shape {value.shape}"


def _attempt(call: Callable[[], Any]) -> Matrix | str:
    """The real numbers that a call returns, or a phrase that says what it did instead."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # the real call repeats them
            values = call()
        values = values.toarray() if sp.issparse(values) else np.asarray(values)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    if values.dtype.kind not in "fiub":
        return f"returned {values.dtype} in place of real numbers"
    return values
