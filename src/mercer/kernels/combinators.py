"""Kernels made of kernels: sums, products, multiples, powers, and the constant kernel.

Sums and products of positive semidefinite kernels are positive semidefinite, and so are non-negative multiples and
whole powers ([SSBD] 16.2, [M5] "Building kernels"). Each level writes its first operand to the result and holds at most
one more block. Operands that prepare samples in the same way share the prepared samples.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel, check_number, check_whole
from mercer.kernels.domains import noun_of
from mercer.kernels.features import Features, JointFeatures, Matrix, ObjectFeatures, Vector, as_matrix

# precedence of Python's operators, for parentheses in the printed expression
_ADD, _MULTIPLY, _POWER, _CALL = range(4)


def add(left: Any, right: Any) -> Kernel:
    """left + right; a number is a constant kernel."""
    if type(left) is int and left == 0:
        return right  # Python's sum() starts with 0
    left, right = _as_kernel(left), _as_kernel(right)
    if left is NotImplemented or right is NotImplemented:
        return NotImplemented
    return Sum(left, right)


def multiply(left: Any, right: Any) -> Kernel:
    """left * right; a number is a factor."""
    if isinstance(left, Real):
        return Scaled(left, right)  # type: ignore[arg-type]
    if isinstance(right, Real):
        return Scaled(right, left)  # type: ignore[arg-type]
    if not (isinstance(left, Kernel) and isinstance(right, Kernel)):
        return NotImplemented
    return Product(left, right)


def _as_kernel(operand: Any) -> Any:
    if isinstance(operand, Kernel):
        return operand
    return Constant(operand) if isinstance(operand, Real) else NotImplemented  # type: ignore[arg-type]


@dataclass(frozen=True)
class Combination(Kernel):
    """A kernel computed from the blocks of other kernels."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type == "Kernel":
                check_kernel_operand(self, field.name)
        common_domain(self.operands())

    def operands(self) -> tuple[Kernel, ...]:
        """The kernels this one is made of."""
        values = (getattr(self, field.name) for field in fields(self))
        return tuple(value for value in values if isinstance(value, Kernel))

    @property
    def domain(self) -> str:
        return common_domain(self.operands())

    @property
    def positive_semidefinite(self) -> bool:
        return all(kernel.positive_semidefinite for kernel in self.operands())

    @property
    def psd_is_assumed(self) -> bool:
        return any(kernel.psd_is_assumed for kernel in self.operands())

    @property
    def preparation(self) -> Hashable:
        ways = tuple(dict.fromkeys(leaf.preparation for leaf in self.leaves()))
        return ways[0] if len(ways) == 1 else ways

    def leaves(self) -> tuple[Kernel, ...]:
        return tuple(leaf for kernel in self.operands() for leaf in kernel.leaves())

    def check_samples(self, samples: Any) -> None:
        for kernel in self.operands():
            kernel.check_samples(samples)

    def bind(self, samples: Any) -> Kernel:
        names = [field.name for field in fields(self) if isinstance(getattr(self, field.name), Kernel)]
        return replace(self, **{name: getattr(self, name).bind(samples) for name in names})

    def prepare(self, samples: Any, dtype: Any = np.float64) -> Features:
        """Prepare the samples once in each way that an operand needs; JointFeatures if there are several ways."""
        prepared: dict[Hashable, Features] = {}
        for leaf in self.leaves():
            if leaf.preparation in prepared:
                leaf.check_samples(samples)
            else:
                prepared[leaf.preparation] = leaf.prepare(samples, dtype)
        if not prepared:
            return ObjectFeatures(samples, dtype)
        return JointFeatures(prepared) if len(prepared) > 1 else next(iter(prepared.values()))


def check_kernel_operand(kernel: Kernel, name: str) -> None:
    """Raise if a parameter that must be a kernel is something else."""
    value = getattr(kernel, name)
    if not isinstance(value, Kernel):
        raise InvalidInputError(
            f"{type(kernel).__name__} is made of kernels, but {name} is {value!r}. Write a text as "
            "parse_kernel(text), a function as CallableKernel(function), a number as Constant(number)."
        )


def common_domain(kernels: tuple[Kernel, ...]) -> str:
    """The domain of a combination of kernels; raises if no sample belongs to the domains of all of them."""
    domains = {kernel.domain for kernel in kernels} - {"any"}
    if "matrix" in domains and len(domains) > 1:
        matrix = next(kernel for kernel in kernels if kernel.domain == "matrix")
        other = next(kernel for kernel in kernels if kernel.domain not in ("matrix", "any"))
        raise InvalidInputError(
            f"{matrix!r} takes the rows of a kernel matrix, {other!r} takes the samples themselves: they cannot be "
            "combined. Compute the second matrix too, combine the two matrices and use Precomputed()."
        )
    if domains == {"records", "vectors"}:
        return "records"  # a data frame of numbers is a matrix, too
    if len(domains) > 1:
        first = next(kernel for kernel in kernels if kernel.domain != "any")
        other = next(kernel for kernel in kernels if kernel.domain not in (first.domain, "any"))
        raise InvalidInputError(
            f"{first!r} compares {noun_of(first.domain)}, {other!r} compares {noun_of(other.domain)}: no sample is "
            f"both. Put them into records, and say which part each kernel sees: On('name', {first!r}) + "
            f"On('other', {other!r})."
        )
    return domains.pop() if domains else "any"


def prepared_for(kernel: Kernel, features: Features) -> Features:
    """The samples as prepared for this kernel."""
    return features.prepared(kernel.preparation) if isinstance(features, JointFeatures) else features


def _block(kernel: Kernel, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
    return kernel.block(prepared_for(kernel, a), prepared_for(kernel, b), out)


def _gradient(kernel: Kernel, a: Features, b: Features, weights: Matrix) -> Vector:
    return kernel.gradient_products(prepared_for(kernel, a), prepared_for(kernel, b), weights)


def _values(kernel: Kernel, X: Any, Z: Any) -> Matrix:
    return kernel.block(kernel.prepare(X), kernel.prepare(Z))


@dataclass(frozen=True, repr=False)
class Sum(Combination):
    """k(x, z) = left(x, z) + right(x, z): the features of both side by side.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> Gaussian(gamma=0.5) + Linear()
    Gaussian(gamma=0.5) + Linear()
    >>> (Linear() + Linear())([[1.0], [2.0]])
    array([[2., 4.],
           [4., 8.]])
    """

    left: Kernel
    right: Kernel

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        out = _block(self.left, a, b, out)
        self.right.add_block(prepared_for(self.right, a), prepared_for(self.right, b), out)
        return out

    def diagonal(self, a: Features) -> Vector:
        return self.left.diagonal(prepared_for(self.left, a)) + self.right.diagonal(prepared_for(self.right, a))

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        return np.concatenate([_gradient(kernel, a, b, weights) for kernel in (self.left, self.right)])

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        return self.left.sample_gradients(X, Z, weights) + self.right.sample_gradients(X, Z, weights)

    def __repr__(self) -> str:
        constants = isinstance(self.left, Constant), isinstance(self.right, Constant)
        # at most one operand is printed as a bare number: Python needs a kernel to add them
        left = repr(self.left.value) if constants == (True, False) else _operand(self.left, _ADD)  # type: ignore[attr-defined]
        right = repr(self.right.value) if constants[1] else _operand(self.right, _MULTIPLY)  # type: ignore[attr-defined]
        return f"{left} + {right}"


@dataclass(frozen=True, repr=False)
class Product(Combination):
    """k(x, z) = left(x, z) right(x, z): all products of a feature of one with a feature of the other.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> Gaussian(gamma=0.5) * Linear()
    Gaussian(gamma=0.5) * Linear()
    """

    left: Kernel
    right: Kernel

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        out = _block(self.left, a, b, out)
        out *= _block(self.right, a, b)
        return out

    def diagonal(self, a: Features) -> Vector:
        return self.left.diagonal(prepared_for(self.left, a)) * self.right.diagonal(prepared_for(self.right, a))

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        parts = []
        for kernel, other in ((self.left, self.right), (self.right, self.left)):
            if kernel.hyperparameters():
                parts.append(_gradient(kernel, a, b, weights * _block(other, a, b)))
        return np.concatenate(parts) if parts else np.empty(0)

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        left, right = self.left, self.right
        return left.sample_gradients(X, Z, weights * _values(right, X, Z)) + right.sample_gradients(
            X, Z, weights * _values(left, X, Z)
        )

    def __repr__(self) -> str:
        return f"{_operand(self.left, _MULTIPLY)} * {_operand(self.right, _POWER)}"


@dataclass(frozen=True, repr=False)
class Scaled(Combination):
    """k(x, z) = factor kernel(x, z).

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> 0.5 * Gaussian(gamma=0.1)
    0.5 * Gaussian(gamma=0.1)
    """

    learnable: ClassVar[tuple[str, ...]] = ("factor",)
    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", check_number("factor", self.factor))
        super().__post_init__()

    @property
    def positive_semidefinite(self) -> bool:
        return self.factor == 0 or (self.factor > 0 and self.kernel.positive_semidefinite)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        out = _block(self.kernel, a, b, out)
        out *= self.factor
        return out

    def diagonal(self, a: Features) -> Vector:
        return self.factor * self.kernel.diagonal(prepared_for(self.kernel, a))

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        if self.factor <= 0:
            return self.factor * _gradient(self.kernel, a, b, weights)
        inner = prepared_for(self.kernel, a), prepared_for(self.kernel, b)
        value, gradient = self.kernel.value_and_gradient_products(*inner, weights)
        return self.factor * np.concatenate([[value], gradient])

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        return self.factor * self.kernel.sample_gradients(X, Z, weights)

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_operand(self.kernel, _POWER)}"


@dataclass(frozen=True, repr=False)
class Power(Combination):
    """k(x, z) = kernel(x, z)^exponent for a whole exponent.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear() ** 2
    Linear() ** 2
    """

    kernel: Kernel
    exponent: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", check_whole("exponent", self.exponent, 1))
        super().__post_init__()

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        out = _block(self.kernel, a, b, out)
        # by the bits of the exponent, highest first: square, and multiply by the base where the bit is set
        bits = bin(self.exponent)[3:]
        base = out.copy() if "1" in bits else out
        for bit in bits:
            np.square(out, out=out)
            if bit == "1":
                out *= base
        return out

    def diagonal(self, a: Features) -> Vector:
        return self.kernel.diagonal(prepared_for(self.kernel, a)) ** self.exponent

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        if not self.kernel.hyperparameters():
            return np.empty(0)
        change = self.exponent * _block(self.kernel, a, b) ** (self.exponent - 1)
        change *= weights
        return _gradient(self.kernel, a, b, change)

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        change = self.exponent * _values(self.kernel, X, Z) ** (self.exponent - 1)
        return self.kernel.sample_gradients(X, Z, weights * change)

    def __repr__(self) -> str:
        return f"{_operand(self.kernel, _CALL)} ** {self.exponent}"


@dataclass(frozen=True)
class Constant(Kernel):
    """k(x, z) = value, for samples of any kind. Added to another kernel it acts as a regularised intercept.

    Examples
    --------
    >>> from mercer.kernels import Constant, Linear
    >>> (Constant(2.0) + Linear())([[1.0], [2.0]])
    array([[3., 4.],
           [4., 6.]])
    """

    learnable: ClassVar[tuple[str, ...]] = ("value",)
    value: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", check_number("value", self.value))

    @property
    def domain(self) -> str:
        return "any"

    @property
    def positive_semidefinite(self) -> bool:
        return self.value >= 0

    @property
    def preparation(self) -> Hashable:
        return None

    def leaves(self) -> tuple[Kernel, ...]:
        """Empty, since the kernel does not depend on the samples."""
        return ()

    def prepare(self, samples: Any, dtype: Any = np.float64) -> Features:
        return ObjectFeatures(samples, dtype)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        if out is None:
            out = np.empty((len(a), len(b)), b.dtype)
        out[...] = self.value
        return out

    def diagonal(self, a: Features) -> Vector:
        return np.full(len(a), self.value)

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        return np.array([self.value * weights.sum()] if self.value > 0 else [])

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        return np.zeros(as_matrix(X).shape)


@dataclass(frozen=True)
class LearnedKernel(Combination):
    """k(x, z) = Σ weights[m] kernels[m](x, z), with weights of at least 0.

    ``MKLClassifier`` and ``MKLRegressor`` publish it as ``kernel_``. Like any other kernel it can be given to every
    estimator, combined, printed and parsed. Kernels of weight 0 are not computed. Its parameters cannot be learnt; use
    ``expression()`` to learn them in a Gaussian process.

    >>> from mercer.kernels import Gaussian, Linear
    >>> kernel = LearnedKernel((Gaussian(gamma=0.5), Linear()), (0.25, 0.75))
    >>> kernel.expression()
    0.25 * Gaussian(gamma=0.5) + 0.75 * Linear()
    >>> kernel([[1.0], [2.0]])
    array([[1.        , 1.65163266],
           [1.65163266, 3.25      ]])
    """

    kernels: tuple[Kernel, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("kernels", "weights"):
            value = getattr(self, name)
            if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
                raise InvalidInputError(f"{name}={value!r} was given: LearnedKernel needs a tuple of {name}.")
        object.__setattr__(self, "kernels", tuple(self.kernels))
        object.__setattr__(self, "weights", tuple(check_number("weights", weight) for weight in self.weights))
        if len(self.kernels) != len(self.weights) or len(self.kernels) == 0:
            raise InvalidInputError(
                f"LearnedKernel was given {len(self.kernels)} kernels and {len(self.weights)} weights: give one weight "
                "for each kernel, and at least one of them."
            )
        wrong = next((kernel for kernel in self.kernels if not isinstance(kernel, Kernel)), None)
        if wrong is not None:
            raise InvalidInputError(
                f"LearnedKernel is made of kernels, but was given {wrong!r}. Write a text as parse_kernel(text), a "
                "function as CallableKernel(function)."
            )
        if min(self.weights) < 0:
            raise InvalidInputError(
                f"The weight {min(self.weights):g} was given, but the weights of a sum of kernels must be at least 0."
            )
        common_domain(self.operands())

    def operands(self) -> tuple[Kernel, ...]:
        """The kernels of positive weight; the first kernel if all weights are 0."""
        return tuple(kernel for kernel, _ in self.terms())

    def terms(self) -> tuple[tuple[Kernel, float], ...]:
        """(kernel, weight) for each kernel of positive weight; the first pair if all weights are 0."""
        pairs = tuple(zip(self.kernels, self.weights, strict=True))
        return tuple(pair for pair in pairs if pair[1] > 0) or pairs[:1]

    def bind(self, samples: Any) -> Kernel:
        return replace(self, kernels=tuple(kernel.bind(samples) for kernel in self.kernels))

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        (first, weight), *others = self.terms()
        out = first.block(prepared_for(first, a), prepared_for(first, b), out)
        out *= weight
        for kernel, weight in others:
            part = kernel.block(prepared_for(kernel, a), prepared_for(kernel, b))
            part *= weight
            out += part
        return out

    def diagonal(self, a: Features) -> Vector:
        total = np.zeros(len(a))
        for kernel, weight in self.terms():
            total += weight * kernel.diagonal(prepared_for(kernel, a))
        return total

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        return self.expression().sample_gradients(X, Z, weights)

    def expression(self) -> Kernel:
        """The same kernel as a plain sum of multiples."""
        first, *others = (Scaled(weight, kernel) for kernel, weight in self.terms())
        total: Kernel = first
        for other in others:
            total = total + other
        return total


def _operand(kernel: Kernel, weakest: int) -> str:
    """A kernel as part of an expression, in parentheses if its operator has a lower precedence than ``weakest``."""
    binding = {Sum: _ADD, Product: _MULTIPLY, Scaled: _MULTIPLY, Power: _POWER}.get(type(kernel), _CALL)
    return repr(kernel) if binding >= weakest else f"({kernel!r})"
