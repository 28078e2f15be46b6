"""Losses as plain functions of targets and predictions, with their subgradients.

    hinge(y, f)                          max(0, 1 − yf)                            [SSBD] 15.2
    squared_hinge(y, f)                  max(0, 1 − yf)²
    ramp(y, f, clip=1)                   min(clip, max(0, 1 − yf))                 [SSBD] 15.2.3
    zero_one(y, f)                       1 if yf ≤ 0, else 0                       [SSBD] 15.2.3
    epsilon_insensitive(y, f, epsilon)   max(0, |y − f| − ε)                       [M5]
    squared_epsilon_insensitive          max(0, |y − f| − ε)²
    pinball(y, f, quantile)              q (y − f) if y ≥ f, else (1 − q)(f − y)

Each is called as a function; ``.subgradient`` has the same arguments and gives a derivative with respect to f.

>>> from mercer.losses import hinge, ramp
>>> hinge([1, 1, -1], [2.0, -3.0, 0.5])
array([0. , 4. , 1.5])
>>> ramp([1, 1, -1], [2.0, -3.0, 0.5])
array([0., 1., 1.])
>>> hinge.subgradient([1, 1, -1], [2.0, -3.0, 0.5])
array([ 0., -1.,  1.])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.exceptions import InvalidInputError
from mercer.losses.base import Vector
from mercer.losses.classification import Hinge, SquaredHinge
from mercer.losses.regression import EpsilonInsensitive, SquaredEpsilonInsensitive


@dataclass(frozen=True, repr=False)
class LossFunction:
    """ℓ(y, f), elementwise, and a derivative with respect to f.

    At a kink of a convex loss the derivative is a subgradient: 0 if that is one. At a kink of a loss that is not convex
    it is the derivative of one side, and 0 at a jump.

    Attributes
    ----------
    name : the name of the function in ``mercer.losses``.
    convex : whether the loss is convex, so that ℓ(y, g) ≥ ℓ(y, f) + subgradient(y, f)(g − f) for all g.
    labels : whether y must be 1 or -1.
    lipschitz, smoothness : constants that hold for all values of the parameters, as in ``Loss``; inf if there is none.
    """

    name: str
    formula: Callable[..., Vector]
    slope: Callable[..., Vector]
    convex: bool = True
    labels: bool = True
    lipschitz: float = np.inf
    smoothness: float = np.inf

    def __call__(self, y: ArrayLike, f: ArrayLike, **parameters: Any) -> Vector:
        """The loss of each sample."""
        return self.formula(*self._checked(y, f), **parameters)

    def subgradient(self, y: ArrayLike, f: ArrayLike, **parameters: Any) -> Vector:
        """A derivative with respect to f, for each sample."""
        return self.slope(*self._checked(y, f), **parameters)

    def _checked(self, y: ArrayLike, f: ArrayLike) -> tuple[Vector, Vector]:
        target, value = np.asarray(y, dtype=np.float64), np.asarray(f, dtype=np.float64)
        if self.labels and not np.all(np.abs(target) == 1.0):
            found = target[np.abs(target) != 1.0].flat[0]
            raise InvalidInputError(
                f"{self.name} needs labels 1 and -1, but y contains {found:g}. Encode the classes as 1 and -1."
            )
        try:
            np.broadcast_shapes(target.shape, value.shape)
        except ValueError:
            raise InvalidInputError(
                f"y has the shape {target.shape}, f has {value.shape}: {self.name} needs one value for each target."
            ) from None
        return target, value

    def __repr__(self) -> str:
        return f"mercer.losses.{self.name}"


def _hinge_slope(y: Vector, f: Vector) -> Vector:
    return np.where(y * f < 1.0, -y, 0.0)


def _squared_hinge_slope(y: Vector, f: Vector) -> Vector:
    return -2.0 * y * np.maximum(0.0, 1.0 - y * f)


def _clip(clip: float) -> float:
    if not clip > 0:
        raise InvalidInputError(f"clip={clip!r} was given, but clip, the largest loss, must be greater than 0.")
    return float(clip)


def _ramp(y: Vector, f: Vector, clip: float = 1.0) -> Vector:
    return np.minimum(_clip(clip), Hinge().value(y, f))


def _ramp_slope(y: Vector, f: Vector, clip: float = 1.0) -> Vector:
    return np.where((y * f < 1.0) & (y * f > 1.0 - _clip(clip)), -y, 0.0)


def _zero_one(y: Vector, f: Vector) -> Vector:
    return np.where(y * f <= 0.0, 1.0, 0.0)


def _zero_one_slope(y: Vector, f: Vector) -> Vector:
    return np.zeros(np.broadcast_shapes(y.shape, f.shape))


def _insensitive(y: Vector, f: Vector, epsilon: float = 0.1) -> Vector:
    return EpsilonInsensitive(epsilon).value(y, f)


def _insensitive_slope(y: Vector, f: Vector, epsilon: float = 0.1) -> Vector:
    return np.where(EpsilonInsensitive(epsilon).value(y, f) > 0.0, np.sign(f - y), 0.0)


def _squared_insensitive(y: Vector, f: Vector, epsilon: float = 0.1) -> Vector:
    return SquaredEpsilonInsensitive(epsilon).value(y, f)


def _squared_insensitive_slope(y: Vector, f: Vector, epsilon: float = 0.1) -> Vector:
    return 2.0 * EpsilonInsensitive(epsilon).value(y, f) * np.sign(f - y)


def _quantile(quantile: float) -> float:
    if not 0.0 <= quantile <= 1.0:
        raise InvalidInputError(f"quantile={quantile!r} was given, but quantile must be at least 0 and at most 1.")
    return float(quantile)


def _pinball(y: Vector, f: Vector, quantile: float = 0.5) -> Vector:
    q = _quantile(quantile)
    return np.maximum(q * (y - f), (q - 1.0) * (y - f))


def _pinball_slope(y: Vector, f: Vector, quantile: float = 0.5) -> Vector:
    q = _quantile(quantile)
    return np.where(y > f, -q, np.where(y < f, 1.0 - q, 0.0))


hinge = LossFunction("hinge", Hinge().value, _hinge_slope, lipschitz=Hinge.lipschitz)
squared_hinge = LossFunction(
    "squared_hinge", SquaredHinge().value, _squared_hinge_slope, smoothness=SquaredHinge.smoothness
)
# where it is not constant, it is the hinge loss
ramp = LossFunction("ramp", _ramp, _ramp_slope, convex=False, lipschitz=Hinge.lipschitz)
zero_one = LossFunction("zero_one", _zero_one, _zero_one_slope, convex=False)
epsilon_insensitive = LossFunction(
    "epsilon_insensitive", _insensitive, _insensitive_slope, labels=False, lipschitz=EpsilonInsensitive.lipschitz
)
squared_epsilon_insensitive = LossFunction(
    "squared_epsilon_insensitive",
    _squared_insensitive,
    _squared_insensitive_slope,
    labels=False,
    smoothness=SquaredEpsilonInsensitive.smoothness,
)
# quantiles 0 and 1 have the steepest slope
pinball = LossFunction("pinball", _pinball, _pinball_slope, labels=False, lipschitz=1.0)
