"""Functions f = Σ cᵢ k(xᵢ, ·) of the reproducing kernel Hilbert space of a kernel; [SSBD] 16.2.2, [L8] 1.1, [M5].

    ⟨Σ cᵢ k(xᵢ, ·), Σ dⱼ k(zⱼ, ·)⟩ = Σ cᵢ dⱼ k(xᵢ, zⱼ)        ⟨f, k(x, ·)⟩ = f(x), the reproducing property

The points of the two sides are prepared apart, so that ``White``, which is 0 between different observations, adds
nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel
from mercer.kernels.domains import as_objects, is_sequence
from mercer.kernels.features import (
    Features,
    Matrix,
    Vector,
    as_matrix,
    count_samples,
    span,
    stack_samples,
    take_samples,
)
from mercer.kernels.mercer_check import as_kernel
from mercer.kernels.user_defined import each

# kernel values that are computed at a time
VALUES = 1 << 20
# c'Kc below -NEGATIVE (Σ |cᵢ| √k(xᵢ, xᵢ))² is not explained by rounding
NEGATIVE = 1e-10
# most terms that are printed, and the most characters of a point
SHOWN, WIDEST = 3, 24
# points of these types are copied
MUTABLE = (set, list, dict, np.ndarray)


@dataclass(frozen=True, eq=False, repr=False)
class RKHSFunction:
    """The function f(x) = Σ cᵢ k(xᵢ, x), an element of the reproducing kernel Hilbert space of k.

    Functions of the same kernel can be added, subtracted and multiplied by numbers. A sum merges equal points, and
    leaves out points whose coefficients add up to 0. A function is immutable.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel k: an object, an expression such as ``"gaussian(gamma=0.5)"``, or a function of two sets of samples.
        A kernel with parameters that depend on samples, such as ``gamma="scale"``, must be bound first:
        ``kernel.bind(X)``. A precomputed kernel has no values at other points and is an error.
    points : the points xᵢ
        Samples of the kind that the kernel compares: a matrix with a row for each point, a list of strings, ...
    coefficients : array-like of shape (n_points,)
        The numbers cᵢ.

    Examples
    --------
    >>> from mercer import Gaussian, RKHSFunction
    >>> f = RKHSFunction(Gaussian(gamma=0.5), [[0.0], [1.0]], [1.0, -2.0])
    >>> f([[0.0], [3.0]]).round(4)
    array([-0.2131, -0.2596])
    >>> k_x = RKHSFunction(f.kernel, [[3.0]], [1.0])
    >>> bool(abs(f.inner(k_x) - f([[3.0]])[0]) < 1e-15)
    True
    >>> f + k_x
    RKHSFunction(Gaussian(gamma=0.5), 3 points)
    >>> print(f + k_x)
    f = 1 k([0], ·) - 2 k([1], ·) + 1 k([3], ·), k = Gaussian(gamma=0.5)
    """

    kernel: Kernel
    points: Any
    coefficients: Vector
    # makes numpy leave ``np.float64(2) * function`` to the function's own operators
    __array_ufunc__: ClassVar[None] = None

    def __post_init__(self) -> None:
        kernel = as_kernel(self.kernel)
        if kernel is None:
            raise InvalidInputError(
                f"RKHSFunction needs a kernel, but was given {type(self.kernel).__name__}: give a kernel object such "
                "as Gaussian(gamma=1.0), an expression or a function."
            )
        if kernel.domain == "matrix":
            raise InvalidInputError(
                f"{kernel!r} knows kernel values between the samples of its matrix only, so a function of it has no "
                "value at other points. Give the kernel itself instead of its matrix."
            )
        points = _frozen_points(kernel, self.points)
        coefficients = _frozen_coefficients(self.coefficients, count_samples(points))
        if count_samples(points) and kernel.bind(points) != kernel:
            raise InvalidInputError(
                f"{kernel!r} has parameters that depend on the samples, but functions can be added only if their "
                "kernels are equal: use kernel.bind(X), which sets these parameters for the samples X."
            )
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "coefficients", coefficients)

    def __len__(self) -> int:
        """The number of points."""
        return len(self.coefficients)

    def __repr__(self) -> str:
        return f"RKHSFunction({self.kernel!r}, {len(self)} point{'' if len(self) == 1 else 's'})"

    def __str__(self) -> str:
        terms = [f"{c:+.4g} k({_brief(x)}, ·)" for c, x in zip(self.coefficients, self._first_points(), strict=False)]
        formula = " ".join(f"{term[0]} {term[1:]}" for term in terms).removeprefix("+ ") or "0"
        more = f" + … ({len(self) - SHOWN} more)" if len(self) > SHOWN else ""
        return f"f = {formula}{more}, k = {self.kernel!r}"

    def __call__(self, X: Any) -> Vector:
        """f(x) for each sample of X."""
        if len(self) == 0:
            return np.zeros(count_samples(X))
        return _product(self.kernel, self.kernel.prepare(X), self._prepared(), self.coefficients)

    def inner(self, other: RKHSFunction) -> float:
        """⟨f, g⟩ = Σ cᵢ dⱼ k(xᵢ, zⱼ)."""
        self._check_space(other)
        if len(self) == 0 or len(other) == 0:
            return 0.0
        return float(self.coefficients @ other(_as_given(self.points)))

    def norm(self) -> float:
        """|f| = √⟨f, f⟩. An error if ⟨f, f⟩ < 0, which shows that the kernel is not positive semidefinite."""
        if len(self) == 0:
            return 0.0
        squared = self.inner(self)
        if squared < 0:
            diagonal = np.abs(self.kernel.diagonal(self._prepared()))
            if squared < -NEGATIVE * float(np.abs(self.coefficients) @ np.sqrt(diagonal)) ** 2:
                raise InvalidInputError(
                    f"⟨f, f⟩ = {squared:.6g} is negative: {self.kernel!r} is not positive semidefinite, so its "
                    "functions have no norm. Use another kernel, or other parameters (see check_mercer)."
                )
        return float(np.sqrt(max(0.0, squared)))

    def project(self, points: Any) -> RKHSFunction:
        """The orthogonal projection of f onto the span of the functions k(z, ·) for the given points z.

        It is the function Σ aⱼ k(zⱼ, ·) that is nearest to f, and agrees with f at all zⱼ: K a = f(z). If the functions
        k(zⱼ, ·) are linearly dependent, to within rounding, a is the shortest of all solutions.
        """
        zero = RKHSFunction(self.kernel, points, np.zeros(count_samples(points)))
        n = len(zero)
        if n == 0 or len(self) == 0:
            return zero
        values = self(_as_given(zero.points))
        K = self.kernel.block(zero._prepared(), zero._prepared())
        eigenvalues, vectors = la.eigh(0.5 * (K + K.T))
        kept = np.abs(eigenvalues) > n * np.finfo(np.float64).eps * np.abs(eigenvalues).max()
        basis = vectors[:, kept]
        return RKHSFunction(self.kernel, zero.points, basis @ ((basis.T @ values) / eigenvalues[kept]))

    # ---- algebra ---------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> RKHSFunction:
        if not isinstance(other, RKHSFunction):
            return NotImplemented
        self._check_space(other)
        if len(self) == 0 or len(other) == 0:
            return self if len(other) == 0 else other
        points = _stacked(self.points, other.points)
        first, place = _distinct(points)
        total = np.zeros(len(first))
        np.add.at(total, place, np.concatenate([self.coefficients, other.coefficients]))
        kept = np.flatnonzero(total)
        return RKHSFunction(self.kernel, take_samples(points, first[kept]), total[kept])

    def __radd__(self, other: Any) -> RKHSFunction:
        # the 0 with which ``sum(functions)`` begins
        return self if isinstance(other, Real) and other == 0 else NotImplemented

    def __sub__(self, other: Any) -> RKHSFunction:
        return self + (-other) if isinstance(other, RKHSFunction) else NotImplemented

    def __mul__(self, factor: Any) -> RKHSFunction:
        if not isinstance(factor, Real):
            return NotImplemented
        return RKHSFunction(self.kernel, self.points, float(factor) * self.coefficients)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> RKHSFunction:
        if not isinstance(divisor, Real):
            return NotImplemented
        return RKHSFunction(self.kernel, self.points, self.coefficients / float(divisor))

    def __neg__(self) -> RKHSFunction:
        return -1.0 * self

    def _prepared(self) -> Features:
        return self.kernel.prepare(_as_given(self.points))

    def _first_points(self) -> list[Any]:
        return list(each(take_samples(self.points, np.arange(min(SHOWN, len(self))))))

    def _check_space(self, other: Any) -> None:
        if not isinstance(other, RKHSFunction):
            raise InvalidInputError(f"An RKHSFunction is needed, but {type(other).__name__} was given.")
        if self.kernel != other.kernel:
            raise InvalidInputError(
                f"The functions belong to different spaces: their kernels are {self.kernel!r} and {other.kernel!r}. "
                "Use functions of the same kernel."
            )


def _product(kernel: Kernel, a: Features, b: Features, weights: Vector) -> Vector:
    """K(a, b) @ weights, some rows at a time."""
    out, rows = np.zeros(len(a)), max(1, VALUES // len(b))
    tile = np.empty((min(rows, len(a)), len(b)))
    weights = weights.copy()  # compiled loops take arrays that can be written
    for start in range(0, len(a), rows):
        stop = min(start + rows, len(a))
        kernel.add_product(span(a, start, stop), b, weights, out[start:stop], tile[: stop - start])
    return out


# ---- points ----------------------------------------------------------------------------------------------------------


def _frozen_points(kernel: Kernel, points: Any) -> Any:
    """A copy of the points that does not change: an array, CSR matrix or data frame, or a tuple of objects."""
    if kernel.domain == "vectors" and not (isinstance(points, Sequence) and len(points) == 0):
        points = as_matrix(points)
        values = points.data if sp.issparse(points) else points
        if not np.isfinite(values).all():
            raise InvalidInputError("The points of an RKHSFunction must be finite, but some contain NaN or infinity.")
    if sp.issparse(points):
        points = points.tocsr(copy=True).astype(np.float64)
        points.sum_duplicates()
        points.eliminate_zeros()
        return points
    if is_sequence(kernel.domain):
        points = [frozenset(point) if type(point) is set else point for point in as_objects(kernel, points)]
    elif isinstance(points, np.ndarray):
        return _read_only(points, np.float64 if kernel.domain == "vectors" else points.dtype)
    elif hasattr(points, "columns"):
        return points.clone() if hasattr(points, "clone") else points.copy()
    return tuple(deepcopy(point) if isinstance(point, MUTABLE) else point for point in points)


def _frozen_coefficients(coefficients: Any, n: int) -> Vector:
    try:
        values = np.asarray(coefficients, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError("The coefficients of an RKHSFunction must be real numbers.") from None
    if values.shape != (n,):
        raise InvalidInputError(
            f"There are {n} points, but the coefficients have the shape {values.shape}: give one number for each point."
        )
    if not np.isfinite(values).all():
        raise InvalidInputError("The coefficients of an RKHSFunction must be finite, but some are NaN or infinite.")
    return _read_only(values, np.float64)


def _read_only(array: Matrix, dtype: Any) -> Matrix:
    """A read-only copy in C order; the array itself if it is one already."""
    if array.flags.writeable or not array.flags.owndata or array.dtype != dtype or not array.flags.c_contiguous:
        array = np.array(array, dtype=dtype, order="C")
        array.flags.writeable = False
    return array


def _as_given(points: Any) -> Any:
    """The points in the form that kernels take: lists, and writable arrays, which compiled loops require."""
    if isinstance(points, tuple):
        return list(points)
    return points.copy() if isinstance(points, np.ndarray) else points


def _stacked(first: Any, second: Any) -> Any:
    """The points of both functions."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        return first + second
    arrays = [isinstance(points, np.ndarray) or sp.issparse(points) for points in (first, second)]
    if all(arrays) and first.shape[1:] == second.shape[1:]:
        if sp.issparse(first) or sp.issparse(second):
            return sp.vstack([sp.csr_array(first), sp.csr_array(second)], format="csr")
        return np.concatenate([first, second])
    if type(first) is not type(second) or all(arrays):
        found = [f"{type(p).__name__} of shape {p.shape}" if hasattr(p, "shape") else "list" for p in (first, second)]
        raise InvalidInputError(
            f"The points of the two functions do not match: {found[0]} and {found[1]}. Give both as samples of the "
            "same kind with the same features."
        )
    return stack_samples(first, second)


def _distinct(points: Any) -> tuple[Vector, Vector]:
    """The index of each distinct point, in order, and for each point which of these it equals."""
    places: dict[Hashable, int] = {}
    place = np.array([places.setdefault(key, len(places)) for key in _keys(points)], dtype=np.intp)
    first = np.full(len(places), len(place), dtype=np.intp)
    np.minimum.at(first, place, np.arange(len(place)))
    return first, place


def _keys(points: Any) -> Iterator[Hashable]:
    """A value for each point that is equal for equal points. Points that cannot be compared differ."""
    if sp.issparse(points):
        for start, stop in pairwise(points.indptr):
            yield points.indices[start:stop].tobytes(), points.data[start:stop].tobytes()
    elif isinstance(points, np.ndarray) and points.dtype.kind in "fiub":
        yield from (row.tobytes() for row in points + 0.0)  # -0.0 + 0.0 is 0.0
    elif hasattr(points, "columns"):
        yield from (_key(tuple(row.values()) if isinstance(row, dict) else tuple(row)) for row in each(points))
    else:
        yield from map(_key, points)


def _key(point: Any) -> Hashable:
    if isinstance(point, Set):
        return "set", frozenset(map(_key, point))
    if isinstance(point, Mapping):
        return "mapping", frozenset((name, _key(value)) for name, value in point.items())
    if isinstance(point, list | tuple):
        return type(point), tuple(map(_key, point))
    if isinstance(point, np.ndarray) and point.dtype.kind in "fiubU":
        return point.dtype.str, point.shape, point.tobytes()
    try:
        hash(point)
    except TypeError:
        return "object", id(point)
    return type(point), point


def _brief(point: Any) -> str:
    """A point in a printed formula."""
    if isinstance(point, np.ndarray) and point.ndim == 1 and point.dtype.kind == "f":
        text = f"[{', '.join(f'{value:.3g}' for value in point)}]"
    else:
        text = repr(point.tolist() if isinstance(point, np.ndarray) else point)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"
