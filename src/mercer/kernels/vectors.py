"""Kernels on real vectors; [CS229] section 5, [M5] "Kernels", [SSBD] 16.2."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Width, bind_gamma, check_gamma, check_number, check_whole, gamma_number
from mercer.kernels.feature_sums import DOT, IDENTITY, MIN, POLYNOMIAL, SERIES, TANH, SumKernel
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures, as_matrix


def shift_derivative(shift: float, change: Matrix) -> Vector:
    """Σ change ∂(u + shift) / ∂log(shift); empty unless the shift is positive."""
    return np.array([shift * change.sum()] if shift > 0 else [])


@dataclass(frozen=True)
class Linear(SumKernel):
    """k(x, z) = <x, z>.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear()([[1.0, 2.0], [0.0, 1.0]])
    array([[5., 2.],
           [2., 1.]])
    """

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
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

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return DOT, POLYNOMIAL, [0.0, gamma_number(self, self.gamma), self.coef0, float(self.degree)]

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, VectorFeatures)
        return (gamma_number(self, self.gamma) * a.norms.astype(np.float64) + self.coef0) ** self.degree

    def _derivative(self, name: str, a: VectorFeatures, b: VectorFeatures, u: Matrix | None, change: Matrix) -> Vector:
        if name == "coef0":
            return shift_derivative(self.coef0, change)
        return super()._derivative(name, a, b, u, change)


@dataclass(frozen=True)
class PowerSeries(SumKernel):
    """k(x, z) = sum_k coefficients[k] <x, z>^k; (1, 1, 1, 1) is 1 + t + t² + t³ of the notes.

    Examples
    --------
    >>> from mercer.kernels import PowerSeries
    >>> PowerSeries((1.0, 1.0, 1.0))([[2.0]], [[3.0]])
    array([[43.]])
    """

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

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
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
    """k(x, z) = tanh(γ <x, z> + c): not positive semidefinite in general.

    Examples
    --------
    >>> from mercer.kernels import Sigmoid
    >>> Sigmoid(gamma=1.0)([[0.5]], [[1.0]]).round(3)
    array([[0.462]])
    """

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

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return DOT, TANH, [0.0, gamma_number(self, self.gamma), self.coef0, 0.0]

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, VectorFeatures)
        return np.tanh(gamma_number(self, self.gamma) * a.norms.astype(np.float64) + self.coef0)

    def _derivative(self, name: str, a: VectorFeatures, b: VectorFeatures, u: Matrix | None, change: Matrix) -> Vector:
        if name == "coef0":
            return shift_derivative(self.coef0, change)
        return super()._derivative(name, a, b, u, change)


@dataclass(frozen=True)
class Cosine(SumKernel):
    """k(x, z) = <x, z> / (|x| |z|), and 0 if one of them is zero.

    Examples
    --------
    >>> from mercer.kernels import Cosine
    >>> Cosine()([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """

    @property
    def preparation(self) -> Hashable:
        return "unit vectors"

    def prepare(self, samples: Any, dtype: Any = np.float64) -> VectorFeatures:
        """Vectors of length 1, so that no product of two norms can overflow."""
        return VectorFeatures(unit_rows(as_matrix(samples)), dtype)

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
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
    """k(x, z) = sum_k min(x_k, z_k), the histogram intersection, for non-negative features.

    Examples
    --------
    >>> from mercer.kernels import Min
    >>> Min()([[1.0, 4.0]], [[2.0, 3.0]])
    array([[4.]])
    """

    nonnegative: ClassVar[bool] = True

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return MIN, IDENTITY, [0.0, 0.0, 0.0, 0.0]

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, VectorFeatures)
        return a.totals.astype(np.float64)
