"""The positive numbers in a kernel that can be learnt, and the bounds within which they are looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# scikit-learn's default; a value outside gets WIDER times more room on its side
LOWER, UPPER, WIDER = 1e-5, 1e5, 100.0


@dataclass(frozen=True)
class Hyperparameter:
    """One number: its name as in ``get_params``, with a position if there are several; its value and bounds."""

    name: str
    value: float
    lower: float
    upper: float


def numbers_of(name: str, value: Any) -> list[Hyperparameter]:
    """The positive numbers of one parameter, which is a number or a tuple of them."""
    if isinstance(value, tuple):
        return [_hyperparameter(f"{name}[{k}]", v) for k, v in enumerate(value) if v > 0]
    return [_hyperparameter(name, value)] if value > 0 else []


def replace_numbers(value: Any, numbers: Sequence[float]) -> Any:
    """The parameter with its positive numbers replaced by these."""
    if isinstance(value, tuple):
        rest = iter(numbers)
        return tuple(next(rest) if v > 0 else v for v in value)
    return numbers[0] if value > 0 else value


def _hyperparameter(name: str, value: float) -> Hyperparameter:
    lower = LOWER if value >= LOWER else value / WIDER
    upper = UPPER if value <= UPPER else value * WIDER
    return Hyperparameter(name, value, lower, upper)
