"""Comparisons that all checks share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# allowed differences, relative to the largest kernel value: about half of the digits of each dtype
DOUBLE, SINGLE = 1e-7, 2e-4

Matrix = NDArray[Any]


def precision(dtype: Any) -> float:
    """The relative difference allowed between two ways to compute a kernel value of this dtype."""
    return SINGLE if np.dtype(dtype) == np.float32 else DOUBLE


def compare(found: Matrix, expected: Matrix, K: Matrix, tolerance: float, problem: str) -> None:
    """Raise if two arrays differ by more than ``tolerance`` times the largest |K|. The error says where."""
    claim(found.shape == expected.shape, f"{problem}: the shape is {found.shape} instead of {expected.shape}.")
    allowed = tolerance * float(np.abs(K).max(initial=0.0))
    difference = np.abs(np.asarray(found, np.float64) - expected)
    if np.all(difference <= allowed):
        return
    place = np.unravel_index(int(np.argmax(np.where(np.isnan(difference), np.inf, difference))), difference.shape)
    where = ", ".join(str(int(i)) for i in place)
    raise AssertionError(f"{problem}: {found[place]:.9g} instead of {expected[place]:.9g} at [{where}].")


def claim(truth: bool, problem: str) -> None:
    """Raise an AssertionError with the message ``problem`` unless ``truth``."""
    if not truth:
        raise AssertionError(problem)
