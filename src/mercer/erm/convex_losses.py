"""Losses of regularised loss minimisation: by name, or a user's own object.

    min  g(|f|) + Σ Cᵢ ℓ(yᵢ, f(xᵢ) + b)                                   [SSBD] (16.2), [L8] (2), [M5] Theorem 1

A loss is convex in its second argument. Its conjugate  ℓ*(y, u) = max over t of  ut − ℓ(y, t)  gives the dual. A user's
loss is any object with the methods

    value(y, f)              ℓ of each sample
    derivative(y, f)         dℓ/df; at a kink any number between the two slopes
    second_derivative(y, f)  optional; with it Newton's method is used directly
    conjugate(y, u)          optional, ∞ outside its domain; with it the model is certified

all on arrays, and optionally the attributes ``name`` and ``classification`` (True: y is ±1 and the model predicts
labels).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Vector
from mercer.losses import (
    EpsilonInsensitive,
    GivenUpHinge,
    HardMargin,
    Hinge,
    Huber,
    Loss,
    NuHinge,
    NuInsensitive,
    OneClass,
    Pinball,
    Squared,
    SquaredHinge,
)
from mercer.losses.functions import LossFunction

Mask = NDArray[np.bool_]
# names of losses for labels
CLASSIFICATION = ("hinge", "squared_hinge", "logistic")
# the probed points, around 0 and, in units of the range of the targets, around targets; and the tolerance for rounding,
# relative to the terms
PROBES, ROUNDING = np.array([-30.0, -3.0, -1.0, -0.3, 0.0, 0.2, 1.0, 2.5, 30.0]), 1e-6
# targets at which a user's loss is probed
PROBED_TARGETS = 5


@dataclass(frozen=True)
class Logistic:
    """ℓ(y, f) = log(1 + exp(−yf)) for y = ±1: minus the log-likelihood of P(y | f) = 1 / (1 + exp(−yf))."""

    name: ClassVar[str] = "logistic loss"
    classification: ClassVar[bool] = True
    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = 0.25

    def value(self, y: Vector, f: Vector) -> Vector:
        """log(1 + exp(−yf)) without overflow."""
        return np.logaddexp(0.0, -y * f)

    def derivative(self, y: Vector, f: Vector) -> Vector:
        """−y / (1 + exp(yf))."""
        return -y * expit(-y * f)

    def second_derivative(self, y: Vector, f: Vector) -> Vector:
        """p (1 − p) with p = 1 / (1 + exp(f))."""
        return expit(f) * expit(-f)

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        """p log p + (1 − p) log(1 − p) with p = −yu in [0, 1]: minus the entropy of a coin."""
        p = -y * u
        inside = np.clip(p, 0.0, 1.0)
        entropy: Vector = xlogy(inside, inside) + xlogy(1.0 - inside, 1.0 - inside)
        return np.where(np.abs(p - inside) <= 4.0 * np.finfo(np.float64).eps, entropy, np.inf)


@dataclass(frozen=True)
class Expectile:
    """ℓ(y, f) = τ(y − f)² where y > f, (1 − τ)(y − f)² elsewhere: the constant of least loss is the τ-expectile of y.

    Newey & Powell, Econometrica 55 (1987). For τ = ½ it is the squared loss ½(y − f)².
    """

    expectile: float = 0.5
    name: ClassVar[str] = "expectile loss"

    def slopes(self, above: Mask) -> Vector:
        """τ for samples above the function, 1 − τ for the others."""
        return np.where(above, self.expectile, 1.0 - self.expectile)

    def value(self, y: Vector, f: Vector) -> Vector:
        """τ(y − f)² or (1 − τ)(y − f)²."""
        return self.slopes(y > f) * (y - f) ** 2

    def derivative(self, y: Vector, f: Vector) -> Vector:
        """−2τ(y − f) or −2(1 − τ)(y − f)."""
        return -2.0 * self.slopes(y > f) * (y - f)

    def second_derivative(self, y: Vector, f: Vector) -> Vector:
        """2τ or 2(1 − τ); at y = f, where it jumps, the latter."""
        return 2.0 * self.slopes(y > f)

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        """uy + u²/(4τ) for u < 0, with 1 − τ instead of τ for u > 0."""
        return u * y + u**2 / (4.0 * self.slopes(u < 0))


def find_loss(loss: Any, epsilon: float = 0.1, quantile: float = 0.5, delta: float = 1.35) -> Any:
    """The loss with this name, or the object itself."""
    named: dict[str, Callable[[], Any]] = {
        "hinge": Hinge,
        "squared_hinge": SquaredHinge,
        "logistic": Logistic,
        "squared": Squared,
        "huber": lambda: Huber(float(delta)),
        "epsilon_insensitive": lambda: EpsilonInsensitive(float(epsilon)),
        "pinball": lambda: Pinball(float(quantile)),
    }
    if isinstance(loss, str):
        if loss not in named:
            raise InvalidInputError(
                f"loss={loss!r} is not known. Use one of {', '.join(map(repr, named))}, or an object with the methods "
                "value(y, f) and derivative(y, f)."
            )
        return named[loss]()
    if isinstance(loss, NuHinge | NuInsensitive | OneClass | HardMargin | GivenUpHinge):
        raise InvalidInputError(
            f"loss={loss!r} is not a loss of single samples with finite values: the {loss.name} has an estimator of "
            "its own. Use NuSVC, NuSVR, OneClassSVM, SVC(C=inf) or RampSVC."
        )
    if isinstance(loss, type):
        raise InvalidInputError(f"loss={loss.__name__} is a class, not a loss: write {loss.__name__}().")
    if isinstance(loss, LossFunction):
        raise InvalidInputError(f"loss={loss!r} is a function to draw or to evaluate: give its name, {loss.name!r}.")
    missing = [name for name in ("value", "derivative") if not callable(getattr(loss, name, None))]
    if missing and not isinstance(loss, Loss):
        raise InvalidInputError(
            f"loss={loss!r} has no method {missing[0]}: give one of {', '.join(map(repr, named))}, or an object with "
            "the methods value(y, f) and derivative(y, f), and if possible conjugate(y, u) and "
            "second_derivative(y, f)."
        )
    return loss


def is_classification(loss: Any) -> bool:
    """Whether the targets of this loss, a name or an object, are labels ±1."""
    if isinstance(loss, str):
        return loss in CLASSIFICATION
    return isinstance(loss, Hinge | SquaredHinge) or bool(getattr(loss, "classification", False))


def name_of(loss: Any) -> str:
    """The name of a loss in messages and certificates."""
    return str(getattr(loss, "name", type(loss).__name__))


def has_conjugate(loss: Any) -> bool:
    """Whether the dual value can be computed."""
    return isinstance(loss, Loss) or callable(getattr(loss, "conjugate", None))


def conjugates(loss: Any, y: Vector, weight: Vector, beta: Vector) -> Vector:
    """C ℓ*(y, −β/C) of each sample, which the dual value subtracts. All weights are positive."""
    if isinstance(loss, Loss):
        qp = loss.box_qp(y, weight, False)
        slack = 4.0 * np.finfo(np.float64).eps * np.abs(beta)
        inside = (beta >= qp.lower - slack) & (beta <= qp.upper + slack)
        return np.where(inside, 0.5 * qp.ridge * beta**2 + qp.l1 * np.abs(beta) - qp.linear * beta, np.inf)
    return weight * called(loss, "conjugate", y, -beta / weight)


def called(loss: Any, method: str, y: Vector, f: Vector, far: bool = False) -> Vector:
    """The values of a loss's method for these samples; raise unless there is a number for each.

    Where ``far`` is True, f may be so far away that the numbers overflow.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        found = np.asarray(getattr(loss, method)(y, f), dtype=np.float64)
    if found.shape != f.shape:
        raise InvalidInputError(
            f"{method} of the {name_of(loss)} returned an array of the shape {found.shape} for {len(f)} samples: it "
            f"must return one number for each, shape {f.shape}."
        )
    if np.isnan(found).any() or (method != "conjugate" and not far and np.isinf(found).any()):
        where = int(np.flatnonzero(~np.isfinite(found))[0])
        raise InvalidInputError(
            f"{method} of the {name_of(loss)} is {found[where]:g} at y = {y[where]:g} and {f[where]:g}: it must be "
            f"{'a number or inf' if method == 'conjugate' else 'finite everywhere'}."
        )
    return found


def check_loss(loss: Any, y: Vector) -> None:
    """Raise unless a user's loss is convex, its derivative fits it, and so does its conjugate if it has one.

    For a convex ℓ with the slope u = ℓ'(t):  ℓ(s) ≥ ℓ(t) + u(s − t)  for all s, and  ℓ*(u) = ut − ℓ(t).
    """
    if isinstance(loss, Loss | Logistic):
        return
    spread = np.linspace(0, len(y) - 1, min(PROBED_TARGETS, len(y))).astype(np.intp)
    targets = np.sort(y)[spread]
    scale = 1.0 if is_classification(loss) else max(1.0, float(np.ptp(y)))
    points = np.hstack([targets[:, None] + scale * PROBES, np.broadcast_to(PROBES, (len(targets), len(PROBES)))])
    t, at = points.ravel(), np.repeat(targets, points.shape[1])
    value, slope = (called(loss, method, at, t, far=True) for method in ("value", "derivative"))
    # losses such as exp(f) overflow at some of these points, but not at 0
    finite = np.isfinite(value) & np.isfinite(slope)
    called(loss, "value", at[t == 0], t[t == 0])
    value, slope = (np.where(finite, a, np.nan).reshape(points.shape) for a in (value, slope))
    with np.errstate(over="ignore", invalid="ignore"):
        below = value[:, :, None] + slope[:, :, None] * (points[:, None, :] - points[:, :, None])
        size = 1.0 + np.nanmax(np.abs(value)) + np.abs(below)
        wrong = np.argwhere(below - value[:, None, :] > ROUNDING * size)
    if len(wrong):
        k, i, j = wrong[0]
        raise InvalidInputError(
            f"The {name_of(loss)} is not convex, or its derivative is wrong: at y = {targets[k]:g} its value at f = "
            f"{points[k, j]:.4g} is {value[k, j]:.4g}, below the tangent at f = {points[k, i]:.4g}, which is "
            f"{below[k, i, j]:.4g} there. Correct derivative(y, f), or use a convex loss."
        )
    at, t, slope = at[finite], t[finite], slope.ravel()[finite]
    if callable(getattr(loss, "second_derivative", None)):
        curvature = called(loss, "second_derivative", at, t)
        if (curvature < 0).any():
            i = int(np.argmin(curvature))
            raise InvalidInputError(
                f"second_derivative of the {name_of(loss)} is {curvature[i]:.4g} at y = {at[i]:g} and f = {t[i]:.4g}: "
                "that of a convex loss is at least 0."
            )
    reason = has_conjugate(loss) and wrong_conjugate(loss, at, t, slope)
    if reason:
        raise InvalidInputError(f"{reason[0].upper()}{reason[1:]}. Correct it, or leave it out.")


def wrong_conjugate(loss: Any, y: Vector, t: Vector, u: Vector) -> str:
    """Why the conjugate does not belong to the loss; empty if  ℓ(t) + ℓ*(u) = ut  for all these slopes u at t."""
    value, conjugate = called(loss, "value", y, t), called(loss, "conjugate", y, u)
    terms = 1.0 + np.abs(value) + np.abs(u * t) + np.where(np.isfinite(conjugate), np.abs(conjugate), 0.0)
    wrong = np.flatnonzero(np.abs(conjugate - (u * t - value)) > ROUNDING * terms)
    if len(wrong) == 0:
        return ""
    i = wrong[0]
    return (
        f"the conjugate of the {name_of(loss)} does not belong to its value: at y = {y[i]:g} and u = {u[i]:.4g}, its "
        f"derivative at f = {t[i]:.4g}, it must be u f − value = {u[i] * t[i] - value[i]:.6g}, but it is "
        f"{conjugate[i]:.6g}"
    )
