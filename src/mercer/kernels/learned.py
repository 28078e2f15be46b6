"""A weighted sum of kernels whose weights were learnt from data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel
from mercer.kernels.combinators import Combination, Scaled, common_domain, prepared_for
from mercer.kernels.features import Features, Matrix, Vector
from mercer.kernels.vectors import check_number


@dataclass(frozen=True)
class LearnedKernel(Combination):
    """k(x, z) = Σ weights[m] kernels[m](x, z), with weights of at least 0.

    What ``MKLClassifier`` and ``MKLRegressor`` publish as ``kernel_``, and a kernel like any other: it can be given to
    every machine, combined, printed and read again. A kernel whose weight is 0 is not computed. To go on learning the
    parameters inside, in a Gaussian process, take ``expression()``.

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
                f"The weight {min(self.weights):g} was given: a sum of kernels is a kernel for weights of at least 0."
            )
        common_domain(self.operands())

    def operands(self) -> tuple[Kernel, ...]:
        """The kernels that have a weight; the first one if none has."""
        return tuple(kernel for kernel, _ in self.terms())

    def terms(self) -> tuple[tuple[Kernel, float], ...]:
        """The kernels that have a weight, with it."""
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
