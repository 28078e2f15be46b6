"""Kernels on real vectors; [CS229] section 5, [M5] "Kernels", [SSBD] 16.2."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel
from mercer.kernels.feature_sums import DOT, IDENTITY, MIN, POLYNOMIAL, SERIES, TANH, SumKernel
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures, as_matrix

Width = float | Literal["scale", "auto"] | tuple[float, ...]
K = TypeVar("K", bound=Kernel)

LARGEST_GAMMA = float(np.finfo(np.float64).max)
ENTRIES_AT_A_TIME = 1 << 20


def gamma_of(samples: Any, rule: str) -> float:
    """scikit-learn's rules: "scale" is 1 / (d var(X)), "auto" is 1 / d."""
    samples = as_matrix(samples)
    n, d = samples.shape
    if rule == "auto" or n == 0:
        return 1.0 / d
    if sp.issparse(samples):
        values = samples.data.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = values.sum() / (n * d)
            squares = float(np.square(values - mean).sum()) + float((n * d - len(values)) * np.square(mean))
        variance = squares / (n * d)
    else:
        # in parts, so that float32 samples are not all copied to float64 at once
        step = max(1, ENTRIES_AT_A_TIME // d)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(samples.mean(dtype=np.float64))
            parts = (np.subtract(samples[i : i + step], mean, dtype=np.float64) for i in range(0, n, step))
            variance = float(sum(np.square(part).sum() for part in parts) / (n * d))
    if not np.isfinite(variance):
        raise InvalidInputError(
            "The dual coefficients or intercepts are not finite. The input data may contain large values and need to "
            "be preprocessed: gamma='scale' is 1 / (d var(X)), and the variance of values up to "
            f"{abs(samples).max():.1e} is beyond float64. Scale the features, for example with StandardScaler."
        )
    # for almost equal samples the largest finite number: infinity times a distance of 0 would be NaN
    return min(1.0 / (d * variance), LARGEST_GAMMA) if variance > 0 else 1.0


def bind_gamma(kernel: K, samples: Any) -> K:
    """The kernel with gamma="scale" or "auto" replaced by a number."""
    gamma = kernel.gamma  # type: ignore[attr-defined]
    if not isinstance(gamma, str):
        return kernel
    return replace(kernel, gamma=gamma_of(samples, gamma))  # type: ignore[call-arg]


def gamma_number(kernel: Kernel, gamma: Width) -> float:
    """The single gamma of all features; 1 if there is one per feature, since ``prepare`` has applied them."""
    if isinstance(gamma, str):
        raise InvalidInputError(
            f"{kernel!r} is not bound to samples: gamma={gamma!r} depends on them. Use kernel.bind(samples) first."
        )
    return 1.0 if isinstance(gamma, tuple) else gamma


def check_width(name: str, value: Any, smallest: float = 0.0) -> Any:
    """Return a width as a float, or as a tuple with one number per feature; raise if it is neither."""
    if type(value) is float and smallest <= value < np.inf:
        return value
    try:
        array = np.asarray(value, dtype=np.float64)
        valid = array.ndim <= 1 and array.size > 0 and bool(np.all(np.isfinite(array)) and np.all(array >= smallest))
    except (TypeError, ValueError):
        valid = False
    if not valid:
        bound = "at least 0" if smallest == 0 else "positive"
        raise InvalidInputError(f"{name}={value!r} must be a finite number, {bound}, or one such number per feature.")
    return float(array) if array.ndim == 0 else tuple(array.tolist())


def check_gamma(value: Any) -> Any:
    """Return a width, or the name of a rule for it; raise if it is neither."""
    if not isinstance(value, str):
        return check_width("gamma", value)
    if value not in ("scale", "auto"):
        raise InvalidInputError(
            f"gamma={value!r} is not known: give a number, one number per feature, 'scale' or 'auto'."
        )
    return str(value)


def check_number(name: str, value: Any) -> float:
    """Return a finite float, or raise."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.inf
    if not np.isfinite(number):
        raise InvalidInputError(f"{name}={value!r} must be a finite number.")
    return number


def check_positive(name: str, value: Any) -> float:
    """Return a finite float above 0, or raise."""
    number = check_number(name, value)
    if number <= 0:
        raise InvalidInputError(f"{name}={value!r} must be positive.")
    return number


def check_whole(name: str, value: Any, smallest: int) -> int:
    """Return an int of at least ``smallest``, or raise."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = smallest - 1
    if isinstance(value, str) or number != value or number < smallest:
        raise InvalidInputError(f"{name}={value!r} must be a whole number, at least {smallest}.")
    return number


def shift_derivative(shift: float, change: Matrix) -> Vector:
    """Σ change ∂(u + shift) / ∂log(shift); empty unless the shift is positive."""
    return np.array([shift * change.sum()] if shift > 0 else [])


@dataclass(frozen=True)
class Linear(SumKernel):
    """k(x, z) = <x, z>."""

    def plan(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return DOT, IDENTITY, [0.0, 0.0, 0.0, 0.0]

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, VectorFeatures)
        return a.norms.astype(np.float64)


@dataclass(frozen=True)
class Polynomial(SumKernel):
    """k(x, z) = (γ <x, z> + c)^degree, c = ``coef0``; c = 0 is the homogeneous kernel.

    The notes' (1 + <x, z>)^k ([SSBD] Example 16.1, [L8], [CS229] 5.4, [M5]) is ``Polynomial.inhomogeneous(k)``, and by
    name ``kernel="inhomogeneous"`` with ``degree=k``, or ``"inhomogeneous(k)"``. It has features for all products of up
    to k coordinates. ``kernel="poly"`` of ``SVC`` and other machines is not this kernel: it has scikit-learn's defaults
    gamma="scale" and coef0=0, so it has products of exactly k coordinates; ``KernelRidge(kernel="poly")`` has coef0=1,
    but gamma=1/d.

    >>> Polynomial.inhomogeneous(2)
    Polynomial(degree=2, gamma=1.0, coef0=1.0)
    """

    learnable: ClassVar[tuple[str, ...]] = ("gamma", "coef0")
    degree: int = 3
    gamma: Width = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", check_whole("degree", self.degree, 0))
        object.__setattr__(self, "gamma", check_gamma(self.gamma))
        object.__setattr__(self, "coef0", check_number("coef0", self.coef0))

    @classmethod
    def inhomogeneous(cls, degree: int = 3) -> Polynomial:
        """(1 + <x, z>)^degree."""
        return cls(degree, 1.0, 1.0)

    @property
    def positive_semidefinite(self) -> bool:
        return self.coef0 >= 0 or self.degree == 0

    def bind(self, samples: Any) -> Polynomial:
        return bind_gamma(self, samples)

    def weights(self) -> Vector | None:
        return np.sqrt(self.gamma) if isinstance(self.gamma, tuple) else None

    def plan(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return DOT, POLYNOMIAL, [0.0, gamma_number(self, self.gamma), self.coef0, float(self.degree)]

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, VectorFeatures)
        return (gamma_number(self, self.gamma) * a.norms.astype(np.float64) + self.coef0) ** self.degree

    def _derivative(self, name: str, a: VectorFeatures, b: VectorFeatures, u: Matrix, change: Matrix) -> Vector:
        if name == "coef0":
            return shift_derivative(self.coef0, change)
        return super()._derivative(name, a, b, u, change)


@dataclass(frozen=True)
class PowerSeries(SumKernel):
    """k(x, z) = sum_k coefficients[k] <x, z>^k; (1, 1, 1, 1) is 1 + t + t² + t³ of the notes."""

    learnable: ClassVar[tuple[str, ...]] = ("coefficients",)
    coefficients: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        coefficients = tuple(check_number("coefficient", c) for c in np.ravel(self.coefficients).tolist())
        if not coefficients:
            raise InvalidInputError("PowerSeries needs at least one coefficient.")
        object.__setattr__(self, "coefficients", coefficients)

    @property
    def positive_semidefinite(self) -> bool:
        return min(self.coefficients) >= 0

    def plan(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return DOT, SERIES, [0.0, 0.0, 0.0, 0.0, *self.coefficients]

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, VectorFeatures)
        return np.polynomial.polynomial.polyval(a.norms.astype(np.float64), self.coefficients)

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        """Σ weights c_k <x, z>^k for each positive c_k."""
        t = Linear().block(a, b)
        rest = weights.copy()
        sums = []
        for coefficient in self.coefficients:
            if coefficient > 0:
                sums.append(coefficient * rest.sum())
            rest *= t
        return np.array(sums)


@dataclass(frozen=True)
class Sigmoid(SumKernel):
    """k(x, z) = tanh(γ <x, z> + c): not positive semidefinite in general."""

    psd: ClassVar[bool] = False
    learnable: ClassVar[tuple[str, ...]] = ("gamma", "coef0")
    gamma: Width = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_gamma(self.gamma))
        object.__setattr__(self, "coef0", check_number("coef0", self.coef0))

    def bind(self, samples: Any) -> Sigmoid:
        return bind_gamma(self, samples)

    def weights(self) -> Vector | None:
        return np.sqrt(self.gamma) if isinstance(self.gamma, tuple) else None

    def plan(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return DOT, TANH, [0.0, gamma_number(self, self.gamma), self.coef0, 0.0]

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, VectorFeatures)
        return np.tanh(gamma_number(self, self.gamma) * a.norms.astype(np.float64) + self.coef0)

    def _derivative(self, name: str, a: VectorFeatures, b: VectorFeatures, u: Matrix, change: Matrix) -> Vector:
        if name == "coef0":
            return shift_derivative(self.coef0, change)
        return super()._derivative(name, a, b, u, change)


@dataclass(frozen=True)
class Cosine(SumKernel):
    """k(x, z) = <x, z> / (|x| |z|), and 0 if one of them is zero."""

    @property
    def preparation(self) -> Hashable:
        return "unit vectors"

    def prepare(self, samples: Any, dtype: Any = np.float64) -> VectorFeatures:
        """Vectors of length 1, so that no product of two norms can overflow."""
        return VectorFeatures(unit_rows(as_matrix(samples)), dtype)

    def plan(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return DOT, IDENTITY, [0.0, 0.0, 0.0, 0.0]

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, VectorFeatures)
        return (a.norms > 0).astype(np.float64)

    def _before_preparation(self, X: Any, a: VectorFeatures, gradients: Matrix) -> Matrix:
        """The component along x is 0, since only the direction of x matters. 0 for x = 0, where k is discontinuous."""
        unit = a.X.toarray() if a.sparse else a.X
        across = gradients - np.einsum("ik,ik->i", gradients, unit)[:, None] * unit
        length = lengths(as_matrix(X))
        return np.divide(across, length[:, None], out=np.zeros_like(across), where=length[:, None] > 0)


def lengths(X: Any) -> Vector:
    """|x| of each row."""
    if sp.issparse(X):
        return np.asarray(sp.linalg.norm(X.astype(np.float64), axis=1))
    return np.asarray(np.linalg.norm(np.asarray(X, dtype=np.float64), axis=1))


def unit_rows(X: Any) -> Any:
    """Each row divided by its length, in float64. Rows of zeros do not change."""
    sparse = sp.issparse(X)
    unit: Any = sp.csr_array(X, dtype=np.float64, copy=True) if sparse else np.array(X, dtype=np.float64)
    if sparse:
        unit.sum_duplicates()
    # divide by the largest entry first: its square might overflow or underflow
    for squares in (False, True):
        if squares:
            length = np.sqrt(unit.multiply(unit).sum(axis=1) if sparse else np.einsum("ij,ij->i", unit, unit))
        else:
            length = abs(unit).max(axis=1).toarray() if sparse else np.abs(unit).max(axis=1, initial=0.0)
        length = np.asarray(length).ravel()
        length[length == 0] = 1.0
        if sparse:
            unit.data /= np.repeat(length, np.diff(unit.indptr))
        else:
            unit /= length[:, None]
    return unit


@dataclass(frozen=True)
class Min(SumKernel):
    """k(x, z) = sum_k min(x_k, z_k), the histogram intersection, for non-negative features."""

    nonnegative: ClassVar[bool] = True

    def plan(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return MIN, IDENTITY, [0.0, 0.0, 0.0, 0.0]

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, VectorFeatures)
        return a.totals.astype(np.float64)
