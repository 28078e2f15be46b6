"""Losses as functions: the formulas, and slopes that are subgradients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.naming import named

from mercer import InvalidInputError
from mercer.losses import (
    GivenUpHinge,
    epsilon_insensitive,
    hinge,
    pinball,
    ramp,
    squared_epsilon_insensitive,
    squared_hinge,
    zero_one,
)
from mercer.testing import check_loss

CASES = [
    (hinge, {}, lambda y, f: max(0.0, 1 - y * f)),
    (squared_hinge, {}, lambda y, f: max(0.0, 1 - y * f) ** 2),
    (ramp, {}, lambda y, f: min(1.0, max(0.0, 1 - y * f))),
    (ramp, {"clip": 2.5}, lambda y, f: min(2.5, max(0.0, 1 - y * f))),
    (zero_one, {}, lambda y, f: float(y * f <= 0)),
    (epsilon_insensitive, {"epsilon": 0.3}, lambda y, f: max(0.0, abs(y - f) - 0.3)),
    (squared_epsilon_insensitive, {"epsilon": 0.3}, lambda y, f: max(0.0, abs(y - f) - 0.3) ** 2),
    (pinball, {"quantile": 0.2}, lambda y, f: 0.2 * (y - f) if y >= f else 0.8 * (f - y)),
]
every_loss = pytest.mark.parametrize(("loss", "parameters", "formula"), CASES, ids=named)
numbers = st.floats(-5, 5)


@every_loss
def test_formula(loss, parameters, formula):
    """Each value is the formula's, at kinks and between."""
    y = np.repeat([1.0, -1.0], 9)
    f = np.tile([-3.0, -1.5, -1.0, 0.0, 0.5, 0.7, 1.0, 1.3, 4.0], 2)
    expected = [formula(a, b) for a, b in zip(y, f, strict=True)]
    np.testing.assert_allclose(loss(y, f, **parameters), expected, rtol=1e-14)


@every_loss
@given(st.sampled_from([-1.0, 1.0]), numbers, numbers)
def test_subgradient(loss, parameters, formula, y, f, g):
    """A convex loss lies above its tangents; any loss has the slope of its values between kinks."""
    slope = loss.subgradient([y], [f], **parameters)[0]
    if loss.convex:
        assert loss([y], [g], **parameters)[0] >= loss([y], [f], **parameters)[0] + slope * (g - f) - 1e-12
    h = 1e-6
    left, middle, right = (loss([y], [f + s], **parameters)[0] for s in (-h, 0.0, h))
    smooth = abs(left - 2 * middle + right) < 1e-3 * h
    if smooth:
        assert slope == pytest.approx((right - left) / (2 * h), abs=1e-4)


def test_order():
    """0-1 loss ≤ ramp loss ≤ hinge loss ([SSBD] 15.2.3)."""
    f = np.linspace(-3, 3, 61)
    ones = np.ones(61)
    assert np.all(zero_one(ones, f) <= ramp(ones, f) + 1e-12)
    assert np.all(ramp(ones, f) <= hinge(ones, f))


def test_errors():
    """Labels other than ±1, shapes that do not fit and parameters out of range are named."""
    with pytest.raises(InvalidInputError, match="hinge needs labels 1 and -1, but y contains 0"):
        hinge([0, 1], [0.5, 0.5])
    with pytest.raises(InvalidInputError, match=r"y has the shape \(3,\), f has \(2,\)"):
        pinball([1, 2, 3], [0.5, 0.5])
    with pytest.raises(InvalidInputError, match=r"clip=0 was given"):
        ramp([1], [0.5], clip=0)
    with pytest.raises(InvalidInputError, match=r"quantile=1.5 was given"):
        pinball([1], [0.5], quantile=1.5)
    assert repr(ramp) == "mercer.losses.ramp"


def test_given_up_hinge():
    """Its program is dual to it, with and without samples that are given up."""
    check_loss(GivenUpHinge(), np.tile([1.0, -1.0, 2.0, -2.0, 1.0, -1.0], 4))
    check_loss(GivenUpHinge())
    np.testing.assert_array_equal(
        GivenUpHinge().value(np.array([1.0, 2.0, -2.0]), np.array([3.0, 3.0, 3.0])), [0, 2, 0]
    )


@every_loss
@given(st.sampled_from([-1.0, 1.0]), numbers, numbers)
def test_constants(loss, parameters, formula, y, f, g):
    """|ℓ(f) − ℓ(g)| ≤ lipschitz |f − g|, and the same for derivatives and smoothness."""
    if loss.lipschitz < np.inf:
        change = loss([y], [f], **parameters)[0] - loss([y], [g], **parameters)[0]
        assert abs(change) <= loss.lipschitz * abs(f - g) + 1e-12
    if loss.smoothness < np.inf:
        change = loss.subgradient([y], [f], **parameters)[0] - loss.subgradient([y], [g], **parameters)[0]
        assert abs(change) <= loss.smoothness * abs(f - g) + 1e-12
