"""Default grids of C, gamma, epsilon and nu, from the scale of the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels import Gaussian, Kernel, Linear
from mercer.kernels.features import Vector, count_samples, take_samples

# number of samples used to find the scale
EXAMINED = 500
# range of C, relative to spread(y) / mean k(x, x)
C_RANGE = (1e-2, 1e3)
# range of gamma for "rbf", relative to the inverse of an upper and a lower quantile of squared distances
GAMMA_RANGE, QUANTILES = (0.02, 10.0), (0.9, 0.1)
# range of gamma for "poly" and "sigmoid", relative to the inverse mean squared norm
PRODUCT_RANGE = (0.03, 10.0)
# range of epsilon relative to the spread of y; of nu in novelty detection; of nu relative to the largest feasible one
EPSILON_RANGE, NOVELTY_RANGE, NU_RANGE = (0.01, 0.5), (0.01, 0.5), (0.05, 0.9)


def values_of(
    name: str,
    given: Any,
    default: tuple[float, float] | Callable[[], tuple[float, float]],
    low: float = 0.0,
    high: float = np.inf,
) -> list[float]:
    """The values of a parameter: the given list, or for an integer that many values from the default range.

    Values from the range are evenly spaced on a logarithmic scale. The result is sorted; every value must be greater
    than ``low`` and at most ``high``.
    """
    if isinstance(given, Integral) and not isinstance(given, bool):
        if given < 1:
            raise InvalidInputError(f"{name}={given} asks for {given} values: give a whole number of at least 1.")
        first, last = default() if callable(default) else default
        if given == 1:
            return [float(np.sqrt(first * last))]
        return [float(value) for value in np.geomspace(first, last, int(given))]
    try:
        found = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name}={given!r} is neither a whole number nor a list of numbers.") from None
    if found.ndim != 1 or len(found) == 0:
        raise InvalidInputError(f"{name} has the shape {found.shape}: give at least one number.")
    allowed = (found > low) & (found <= high) & np.isfinite(found)
    if not allowed.all():
        limit = "finite" if high == np.inf else f"at most {high:g}"
        raise InvalidInputError(f"{name} contains {found[~allowed][0]:g}: values must be above {low:g} and {limit}.")
    return [float(value) for value in np.unique(found)]


def sample_of(X: Any) -> Any:
    """A random subset of the samples, from a fixed seed."""
    n = count_samples(X)
    return X if n <= EXAMINED else take_samples(X, np.sort(np.random.default_rng(0).permutation(n)[:EXAMINED]))


def gamma_range(X: Any) -> tuple[float, float]:
    """The range of gamma for Gaussian kernels: from nearly linear to one narrow bump per sample."""
    part = sample_of(X)
    part = part.toarray() if sp.issparse(part) else np.asarray(part, dtype=np.float64)
    products = part @ part.T
    squares = np.diag(products)
    distances = (squares[:, None] + squares[None, :] - 2.0 * products)[np.triu_indices(len(part), 1)]
    distances = distances[distances > 1e-12 * max(1e-300, float(squares.max(initial=0.0)))]
    if len(distances) == 0 or not np.isfinite(distances).all():
        return 0.1, 10.0
    far, near = np.quantile(distances, QUANTILES)
    return float(GAMMA_RANGE[0] / far), float(GAMMA_RANGE[1] / near)


def product_range(X: Any) -> tuple[float, float]:
    """The range of gamma for polynomial and sigmoid kernels, around the inverse mean squared norm."""
    square = float(np.mean(Linear().diagonal(Linear().prepare(sample_of(X)))))
    scale = 1.0 / square if 0 < square < np.inf else 1.0
    return PRODUCT_RANGE[0] * scale, PRODUCT_RANGE[1] * scale


def C_range(kernels: Sequence[Kernel], X: Any, spread: float = 1.0) -> tuple[float, float]:
    """The range of C, around the inverse of the mean of k(x, x): scaling K by c is the same as scaling C by c."""
    part = sample_of(X)
    sizes = []
    for kernel in kernels[len(kernels) // 2 :: max(1, len(kernels))]:
        if kernel.domain == "matrix":
            sizes.append(float(np.mean(np.diagonal(np.asarray(X)))))
        elif isinstance(kernel, Gaussian):
            sizes.append(1.0)
        else:
            sizes.append(float(np.mean(kernel.diagonal(kernel.prepare(part)))))
    size = float(np.median(sizes)) if sizes else 1.0
    scale = spread / size if 0 < size < np.inf and 0 < spread < np.inf else 1.0
    return C_RANGE[0] * scale, C_RANGE[1] * scale


def spread_of(y: Vector) -> float:
    """The standard deviation of the targets; 1 if all are equal."""
    found = float(np.std(y)) if len(y) else 1.0
    return found if 0 < found < np.inf else 1.0


def largest_nu(counts: Vector) -> float:
    """The largest nu that is feasible for every pair of classes with these (weighted) sizes."""
    sizes = np.sort(counts[counts > 0])
    if len(sizes) < 2:
        return 1.0
    return float(2.0 * sizes[0] / (sizes[0] + sizes[-1]))
