"""``Fixed`` and ``Bounded``: which hyper-parameters of a kernel are learnt, and within which bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Hyperparameter, Kernel, check_positive
from mercer.kernels.combinators import Combination
from mercer.kernels.features import Features, Matrix, Vector


@dataclass(frozen=True, repr=False)
class Transparent(Combination):
    """A kernel with the values of the inner kernel. ``parameter`` names the parameter it concerns; empty for all."""

    kernel: Kernel

    @property
    def chosen(self) -> str:
        """The name of the parameter that this concerns; empty for all."""
        return getattr(self, "parameter", "")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chosen and self.chosen not in self.kernel.get_params():
            raise InvalidInputError(
                f"{self.kernel!r} has no parameter {self.chosen!r}. Its parameters are: "
                f"{', '.join(sorted(self.kernel.get_params()))}."
            )

    def concerns(self, inner: Hyperparameter) -> bool:
        """Whether this concerns a hyper-parameter of the inner kernel."""
        name, chosen = inner.name, self.chosen
        return chosen == "" or name == chosen or name.startswith((f"{chosen}[", f"{chosen}__"))

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        return self.kernel.block(a, b, out)

    def diagonal(self, a: Features) -> Vector:
        return self.kernel.diagonal(a)

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        return self.kernel.gradient_products(a, b, weights)

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        return self.kernel.sample_gradients(X, Z, weights)


@dataclass(frozen=True, repr=False)
class Fixed(Transparent):
    """A kernel whose hyper-parameters, or those of one parameter, are not learnt.

    >>> from mercer.kernels import Periodic
    >>> [h.name for h in Fixed(Periodic(length_scale=1.3, period=1.0), "period").hyperparameters()]
    ['kernel__length_scale']
    """

    parameter: str = ""

    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        free = (h for h in self.kernel.hyperparameters() if not self.concerns(h))
        return tuple(replace(h, name=f"kernel__{h.name}") for h in free)

    def with_values(self, values: Sequence[float]) -> Kernel:
        if len(values) != len(self.hyperparameters()):
            return super().with_values(values)  # raises the error
        rest = iter(values)
        inner = [h.value if self.concerns(h) else next(rest) for h in self.kernel.hyperparameters()]
        return replace(self, kernel=self.kernel.with_values(inner))

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        free = [not self.concerns(h) for h in self.kernel.hyperparameters()]
        return self.kernel.gradient_products(a, b, weights)[free] if any(free) else np.empty(0)

    def __repr__(self) -> str:
        return f"Fixed({self.kernel!r}, {self.parameter!r})" if self.parameter else f"Fixed({self.kernel!r})"


@dataclass(frozen=True, repr=False)
class Bounded(Transparent):
    """A kernel whose hyper-parameters, or those of one parameter, are searched between two bounds.

    >>> from mercer.kernels import Gaussian
    >>> Bounded(Gaussian(1.0), 0.1, 10.0).hyperparameters()
    (Hyperparameter(name='kernel__gamma', value=1.0, lower=0.1, upper=10.0),)
    """

    lower: float
    upper: float
    parameter: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lower", "upper"):
            object.__setattr__(self, name, check_positive(name, getattr(self, name)))
        if self.lower > self.upper:
            raise InvalidInputError(f"lower={self.lower!r} is above upper={self.upper!r}: exchange the bounds.")

    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        limits = {"lower": self.lower, "upper": self.upper}
        return tuple(
            replace(h, name=f"kernel__{h.name}", **(limits if self.concerns(h) else {}))
            for h in self.kernel.hyperparameters()
        )

    def __repr__(self) -> str:
        chosen = f", {self.parameter!r}" if self.parameter else ""
        return f"Bounded({self.kernel!r}, {self.lower!r}, {self.upper!r}{chosen})"
