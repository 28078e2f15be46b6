"""Kernels around another kernel: ``Normalized`` gives every sample length 1, ``On`` selects columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel, no_gradients
from mercer.kernels.combinators import check_kernel_operand
from mercer.kernels.features import Features, Matrix, Vector, as_matrix, take_samples

# derivatives of k(x, x) are read off blocks of this size
DIAGONAL_BLOCK = 64

Columns = int | str | tuple[int, ...] | tuple[str, ...]


class NormalizedFeatures:
    """Prepared samples with 1 / sqrt(k(x, x)), or 0 where k(x, x) is 0."""

    def __init__(self, inner: Features, scale: Vector) -> None:
        self.inner = inner
        self.scale = scale
        self.dtype = inner.dtype

    def __len__(self) -> int:
        return len(self.inner)

    @property
    def parts(self) -> tuple[Features, ...]:
        """The samples as prepared for the inner kernel."""
        return getattr(self.inner, "parts", (self.inner,))

    def take(self, index: Vector) -> NormalizedFeatures:
        """The samples at these positions."""
        return NormalizedFeatures(self.inner.take(index), self.scale[index])


@dataclass(frozen=True, repr=False)
class Normalized(Kernel):
    """k(x, z) = kernel(x, z) / sqrt(kernel(x, x) kernel(z, z)), and 0 where kernel(x, x) is 0.

    In feature space every sample has length 1, so that k is the cosine of the angle between two samples.

    Examples
    --------
    >>> from mercer.kernels import Linear, Normalized
    >>> Normalized(Linear())([[1.0], [5.0]])
    array([[1., 1.],
           [1., 1.]])
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        check_kernel_operand(self, "kernel")

    @property
    def domain(self) -> str:
        return self.kernel.domain

    @property
    def positive_semidefinite(self) -> bool:
        return self.kernel.positive_semidefinite

    @property
    def psd_is_assumed(self) -> bool:
        return self.kernel.psd_is_assumed

    def check_samples(self, samples: Any) -> None:
        self.kernel.check_samples(samples)

    def bind(self, samples: Any) -> Kernel:
        return replace(self, kernel=self.kernel.bind(samples))

    def prepare(self, samples: Any, dtype: Any = np.float64) -> NormalizedFeatures:
        inner = self.kernel.prepare(samples, dtype)
        diagonal = self.kernel.diagonal(inner)
        if np.any(diagonal < 0):
            i = int(np.argmin(diagonal))
            raise InvalidInputError(
                f"{self!r} divides by the square root of k(x, x), but k(x, x) = {diagonal[i]:g} for sample {i}. "
                "A kernel has k(x, x) >= 0: choose other parameters, or another kernel."
            )
        scale = np.zeros(len(diagonal))
        np.divide(1.0, np.sqrt(diagonal), out=scale, where=diagonal > 0)
        return NormalizedFeatures(inner, scale.astype(dtype))

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        assert isinstance(a, NormalizedFeatures) and isinstance(b, NormalizedFeatures)
        out = self.kernel.block(a.inner, b.inner, out)
        out *= a.scale[:, None]
        out *= b.scale
        return out

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, NormalizedFeatures)
        return (a.scale > 0).astype(np.float64)

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        """The derivative of k(x, z) s(x) s(z), where s(x) = k(x, x)^-½ changes by -½ s(x)³ ∂k(x, x)."""
        assert isinstance(a, NormalizedFeatures) and isinstance(b, NormalizedFeatures)
        if not self.kernel.hyperparameters():
            return np.empty(0)
        values = self.block(a, b)
        values *= weights
        total = self.kernel.gradient_products(a.inner, b.inner, weights * a.scale[:, None] * b.scale)
        for features, sums in ((a, values.sum(axis=1)), (b, values.sum(axis=0))):
            total -= _diagonal_gradient(self.kernel, features.inner, 0.5 * sums * features.scale**2)
        return total

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        """As in ``gradient_products``, but only s(x) depends on x."""
        a, b = self.prepare(X), self.prepare(Z)
        values = self.block(a, b)
        values *= weights
        total = self.kernel.sample_gradients(X, Z, weights * a.scale[:, None] * b.scale)
        lost = 0.5 * values.sum(axis=1) * a.scale**2
        return total - lost[:, None] * diagonal_gradients(self.kernel, X, len(a))

    def __repr__(self) -> str:
        return f"Normalized({self.kernel!r})"


@dataclass(frozen=True, repr=False)
class On(Kernel):
    """k(x, z) = kernel(x[columns], z[columns]): a kernel on some of the columns.

    ``columns`` is one column or several: numbers (negative ones count from the end), a slice with an end, or names of a
    data frame's columns. A kernel on vectors always gets a matrix. Any other kernel gets the sequence of values if
    ``columns`` is a single column, such as the strings of a column of texts.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear, On
    >>> On([0], Linear())([[2.0, 100.0]], [[3.0, -100.0]])
    array([[6.]])
    >>> On((0, 1), Gaussian(1.0)) + On(2, Linear())
    On((0, 1), Gaussian(gamma=1.0)) + On(2, Linear())
    """

    columns: Columns
    kernel: Kernel

    def __post_init__(self) -> None:
        check_kernel_operand(self, "kernel")
        object.__setattr__(self, "columns", _check_columns(self.columns))

    @property
    def names(self) -> bool:
        """Whether columns are chosen by name."""
        return isinstance(self.columns, str) or (isinstance(self.columns, tuple) and isinstance(self.columns[0], str))

    @property
    def domain(self) -> str:
        # columns of vectors chosen by number are vectors again
        return "records" if self.names or self.kernel.domain not in ("vectors", "any") else self.kernel.domain

    @property
    def positive_semidefinite(self) -> bool:
        return self.kernel.positive_semidefinite

    @property
    def psd_is_assumed(self) -> bool:
        return self.kernel.psd_is_assumed

    @property
    def preparation(self) -> Hashable:
        plain = self.kernel.domain != "vectors"
        return "on", self.columns, plain, self.kernel.preparation

    def check_samples(self, samples: Any) -> None:
        self.kernel.check_samples(self.select(samples))

    def bind(self, samples: Any) -> Kernel:
        return replace(self, kernel=self.kernel.bind(self.select(samples)))

    def prepare(self, samples: Any, dtype: Any = np.float64) -> Features:
        return self.kernel.prepare(self.select(samples), dtype)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        return self.kernel.block(a, b, out)

    def diagonal(self, a: Features) -> Vector:
        return self.kernel.diagonal(a)

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        return self.kernel.gradient_products(a, b, weights)

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        """Non-zero only in the chosen columns; a column chosen twice gets the sum of both derivatives."""
        if self.kernel.domain not in ("vectors", "any") or not (hasattr(X, "columns") or not self.names):
            raise no_gradients(self)
        X = X if hasattr(X, "shape") else as_matrix(X)
        chosen = self._known(list(self.columns) if isinstance(self.columns, tuple) else [self.columns], X)
        places = [list(X.columns).index(name) for name in chosen] if hasattr(X, "columns") else chosen
        out = np.zeros(X.shape)
        np.add.at(out.T, places, self.kernel.sample_gradients(self.select(X), self.select(Z), weights).T)
        return out

    def select(self, samples: Any) -> Any:
        """The columns of an array, sparse matrix, data frame (pandas, polars) or sequence of records."""
        chosen = self._chosen(samples)
        if self.kernel.domain == "vectors" and not sp.issparse(chosen):
            chosen = as_matrix(chosen)
            if chosen.dtype.kind == "f" and not np.isfinite(chosen).all():
                i, j = (int(index) for index in np.argwhere(~np.isfinite(chosen))[0])
                name = self.columns[j] if isinstance(self.columns, tuple) else self.columns
                raise InvalidInputError(
                    f"{self!r} compares numbers, but {name!r} of sample {i} is {chosen[i, j]}. Remove such samples, or "
                    "replace missing values, for instance with SimpleImputer."
                )
        return chosen

    def _chosen(self, samples: Any) -> Any:
        single = not isinstance(self.columns, tuple)
        columns: Any = [self.columns] if single else list(self.columns)  # type: ignore[arg-type]
        if not self.names and not hasattr(samples, "shape") and not _are_rows(samples):
            samples = as_matrix(samples)
        columns = self._known(columns, samples)
        plain = single and self.kernel.domain != "vectors"
        if hasattr(samples, "columns"):
            chosen = [samples[name] for name in columns]
            if plain:
                return list(chosen[0])
            if self.kernel.domain == "vectors":
                return np.column_stack([np.asarray(column) for column in chosen])
            return samples[columns]
        if sp.issparse(samples):
            return samples.tocsr()[:, columns]
        if isinstance(samples, np.ndarray) and not self.names:
            return samples[:, columns[0]] if plain else samples[:, columns]
        if plain:
            return [record[columns[0]] for record in samples]
        return [[record[c] for c in columns] for record in samples]

    def _known(self, columns: list[Any], samples: Any) -> list[Any]:
        """Column names for data frames, else column numbers from 0 on. Raises if the samples do not have a column."""
        frame = hasattr(samples, "columns")
        if self.names:
            if not frame:
                self._check_mappings(columns, samples)
                return columns
            missing = [name for name in columns if name not in list(samples.columns)]
            if missing:
                raise InvalidInputError(
                    f"{self!r} needs the column {missing[0]!r}, but the data frame has only: "
                    f"{', '.join(repr(name) for name in samples.columns)}."
                )
            return columns
        if hasattr(samples, "shape"):
            if len(samples.shape) != 2:
                raise InvalidInputError(f"{self!r} needs a matrix, but the samples have the shape {samples.shape}.")
            d = samples.shape[1]
        else:
            d = min((len(record) for record in samples), default=0)
        outside = [c for c in columns if not -d <= c < d]
        if outside:
            raise InvalidInputError(
                f"{self!r} needs column {outside[0]}, but the samples have {d} columns, numbered 0 to {d - 1}."
            )
        columns = [c % d for c in columns]
        return [samples.columns[c] for c in columns] if frame else columns

    def _check_mappings(self, names: list[str], samples: Any) -> None:
        """Raise unless the samples are a sequence of mappings with these keys."""
        one = isinstance(samples, str | Mapping) or not hasattr(samples, "__iter__") or sp.issparse(samples)
        for i, record in enumerate([] if one else samples):
            if not isinstance(record, Mapping):
                one = True
                break
            missing = [name for name in names if name not in record]
            if missing:
                raise InvalidInputError(
                    f"{self!r} needs {missing[0]!r}, but record {i} has only: "
                    f"{', '.join(repr(name) for name in record)}."
                )
        if one:
            raise InvalidInputError(
                f"{self!r} chooses columns by name, but the samples are of type {type(samples).__name__}, whose "
                "columns have no names. Pass a data frame or a list of dicts, or choose columns by number."
            )

    def __repr__(self) -> str:
        columns = self.columns
        if isinstance(columns, tuple) and len(columns) > 2 and not self.names:
            first, last = int(columns[0]), int(columns[-1])
            if first >= 0 and columns == tuple(range(first, last + 1)):
                return f"On(slice({first}, {last + 1}), {self.kernel!r})"
        return f"On({columns!r}, {self.kernel!r})"


def _are_rows(samples: Any) -> bool:
    """Whether all samples are sequences (other than strings), whose entries may be of different types."""
    return all(isinstance(sample, Sequence | np.ndarray) and not isinstance(sample, str) for sample in samples)


def _diagonal_gradient(kernel: Kernel, a: Features, weights: Vector) -> Vector:
    """Σ weights[i] ∂k(a_i, a_i) / ∂theta, from small blocks along the diagonal."""
    parts = [np.arange(start, min(start + DIAGONAL_BLOCK, len(a))) for start in range(0, len(a), DIAGONAL_BLOCK)]
    total = np.zeros(len(kernel.hyperparameters()))
    for part in parts:
        features = a.take(part)
        total += kernel.gradient_products(features, features, np.diag(weights[part]))
    return total


def diagonal_gradients(kernel: Kernel, samples: Any, n: int) -> Matrix:
    """The derivative of k(x_i, x_i) with respect to x_i, in both arguments, from small blocks along the diagonal."""
    parts = []
    for start in range(0, n, DIAGONAL_BLOCK):
        some = take_samples(samples, np.arange(start, min(start + DIAGONAL_BLOCK, n)))
        parts.append(2.0 * kernel.sample_gradients(some, some, np.eye(min(DIAGONAL_BLOCK, n - start))))
    return np.concatenate(parts) if parts else np.empty((0, as_matrix(samples).shape[1]))


def _check_columns(columns: Any) -> Columns:
    """The columns as a number, a name, or a tuple of numbers or names."""
    if isinstance(columns, str):
        return str(columns)
    if isinstance(columns, Integral):
        return int(columns)
    if isinstance(columns, slice):
        start, stop, step = columns.start or 0, columns.stop, columns.step or 1
        if stop is None or start < 0 or stop < 0:
            raise InvalidInputError(
                f"columns={columns!r} depends on the number of columns. Give a start and an end from 0 on, such as "
                "slice(2, 10)."
            )
        columns = range(start, stop, step)
    if isinstance(columns, np.ndarray) and columns.ndim == 1:
        columns = np.flatnonzero(columns).tolist() if columns.dtype == bool else columns.tolist()
    if isinstance(columns, Sequence) and len(columns) > 0:
        if all(isinstance(c, str) for c in columns):
            return tuple(str(c) for c in columns)
        if all(isinstance(c, Integral) and not isinstance(c, bool) for c in columns):
            return tuple(int(c) for c in columns)
    raise InvalidInputError(
        f"columns={columns!r} is not a valid choice: give a column number or name, a list of numbers or of names, or a "
        "slice."
    )
