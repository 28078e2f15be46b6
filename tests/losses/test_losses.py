"""Every loss and its quadratic program are conjugate to each other."""

import numpy as np
import pytest
from tests.naming import named

from mercer.exceptions import InfeasibleNuError, InvalidInputError
from mercer.losses import (
    BoxQP,
    EpsilonInsensitive,
    HardMargin,
    Hinge,
    Huber,
    Loss,
    NuHinge,
    NuInsensitive,
    OneClass,
    Pinball,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    nu_scale,
    tube,
)

CLASSIFICATION = [Hinge(), SquaredHinge(), HardMargin(), NuHinge(0.4)]
REGRESSION = [
    EpsilonInsensitive(0.3),
    EpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(0.3),
    Squared(),
    SquaredEpsilonInsensitive(0.0),
    Huber(0.5),
    Pinball(0.3),
    NuInsensitive(0.4),
]
LOSSES = [*CLASSIFICATION, *REGRESSION, OneClass(0.3)]
WITHOUT_NU = [loss for loss in LOSSES if not hasattr(loss, "nu")]


def data(loss: Loss, n: int = 30, seed: int = 0):
    """Targets, scores and weights; two samples have no weight and three the same score."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n)
    f[:3] = f[0]
    weight = rng.uniform(0.2, 3.0, size=n)
    weight[5:7] = 0.0
    if loss in CLASSIFICATION:
        y = np.where(rng.normal(size=n) > 0, 1.0, -1.0)
    else:
        y = rng.normal(size=n) if loss in REGRESSION else np.ones(n)
    return y, f, weight


def conjugate(qp: BoxQP, t: np.ndarray) -> np.ndarray:
    """The maximum of  tβ − l1|β| − ½ridge β²  over the box, from all points at which it can be."""
    with np.errstate(divide="ignore", invalid="ignore"):
        stationary = [np.where(qp.ridge > 0, (t + sign * qp.l1) / qp.ridge, 0.0) for sign in (-1, 1)]
    best = np.full(len(t), -np.inf)
    for beta in (np.zeros_like(t), *stationary, qp.lower, qp.upper):
        with np.errstate(invalid="ignore"):
            beta = np.clip(beta, np.maximum(qp.lower, -1e9), np.minimum(qp.upper, 1e9))
            best = np.maximum(best, t * beta - qp.l1 * np.abs(beta) - 0.5 * qp.ridge * beta**2)
    return best


@pytest.mark.parametrize("loss", [x for x in WITHOUT_NU if x != HardMargin()], ids=named)
def test_dual_term_is_the_smallest_lagrangian(loss):
    """linear β − l1|β| − ½ridge β² is the minimum over f of C loss(y, f) + β f, and −∞ outside the box: by trying f."""
    rng = np.random.default_rng(1)
    kinks = [-1.0, 1.0]
    for y in (1.0, -1.0) if loss in CLASSIFICATION else (0.7, -1.3):
        for C in (0.5, 4.0):
            qp = loss.box_qp(np.array([y]), np.array([C]), True)
            inside = rng.uniform(np.maximum(qp.lower, -3), np.minimum(qp.upper, 3), size=20)
            f = np.r_[
                np.linspace(-20, 20, 100_001), kinks, y - getattr(loss, "epsilon", 0), y + getattr(loss, "epsilon", 0)
            ]
            paid = C * loss.value(np.full_like(f, y), f)
            for beta in inside:
                value = qp.linear[0] * beta - qp.l1[0] * abs(beta) - 0.5 * qp.ridge[0] * beta**2
                # the grid misses the minimum of a squared loss by less than C h²
                np.testing.assert_allclose((paid + beta * f).min(), value, atol=1e-6)
            for beta in (qp.lower[0] - 0.1, qp.upper[0] + 0.1):
                if np.isfinite(beta):
                    far = np.array([-1e6, 1e6])
                    assert (C * loss.value(np.full(2, y), far) + beta * far).min() < -1e4


@pytest.mark.parametrize("loss", [x for x in LOSSES if x != HardMargin()], ids=named)
def test_primal_is_the_dual_of_the_program(loss):
    """½|w|² + Σ b·sums + Σ conj(linear − f − b), from the program alone, equals the primal that the loss computes."""
    y, f, weight = data(loss)
    rng = np.random.default_rng(2)
    for intercept in (True, False) if loss in WITHOUT_NU else (True,):
        qp = loss.box_qp(y, weight, intercept)
        for _ in range(10):
            b = np.sort(rng.normal(size=qp.n_groups))
            # edges and margins that have not crossed: ν-SVR's upper edge comes first
            b = b[::-1].copy() if isinstance(loss, NuInsensitive) else b
            t = qp.linear - qp.at_variables(f) - (b[qp.group] if len(b) else 0.0)
            expected = 0.5 * 1.7 + b @ qp.sums + conjugate(qp, t).sum()
            np.testing.assert_allclose(loss.primal(1.7, y, f, weight, b, qp.sums), expected, rtol=1e-12)


def test_hard_margin_scales_to_feasibility():
    """The primal of a hard-margin model is that of w/μ, where μ is its smallest margin; without one it is infinite."""
    y, f = np.array([1.0, 1.0, -1.0]), np.array([0.5, 3.0, -0.9])
    weight, none = np.full(3, np.inf), np.empty(0)
    assert HardMargin().primal(2.0, y, f, weight, none, none) == 0.5 * 2.0 / 0.25
    assert HardMargin().primal(2.0, y, 4 * f, weight, none, none) == 1.0
    assert HardMargin().primal(2.0, y, -f, weight, none, none) == np.inf
    np.testing.assert_array_equal(HardMargin().value(y, 2 * f), [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(HardMargin().value(y, f), [np.inf, 0.0, np.inf])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_best_thresholds_minimise_the_primal(loss, seed):
    """No threshold of a fine grid, nor any breakpoint, gives a smaller primal."""
    y, f, weight = data(loss, seed=seed)
    if loss == HardMargin():
        f = f + 5 * y
    sums = loss.box_qp(y, weight, True).sums
    best = loss.best_thresholds(y, f, weight)
    assert best.shape == sums.shape
    lowest = loss.primal(0.0 if loss != HardMargin() else 1.0, y, f, weight, best, sums)
    edges = [y - f, -f, y - f - getattr(loss, "epsilon", 0.0), y - f + getattr(loss, "epsilon", 0.0)]
    candidates = np.r_[np.linspace(-8, 8, 161), *edges, best, best + 1e-6, best - 1e-6]
    for g in range(len(best)):
        for c in candidates:
            b = best.copy()
            b[g] = c
            value = loss.primal(0.0 if loss != HardMargin() else 1.0, y, f, weight, b, sums)
            assert value >= lowest - 1e-12 * max(1.0, abs(lowest))
    assert loss.best_intercept(y, f, weight) == best.mean()


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), HardMargin()], ids=named)
def test_best_threshold_is_the_middle_where_many_are(loss):
    """Separable scores leave an interval of intercepts without loss: its midpoint is returned."""
    y, f = np.array([1.0, 1.0, -1.0, -1.0]), np.array([9.0, 6.0, -4.0, -7.0])
    np.testing.assert_allclose(loss.best_intercept(y, f, np.ones(4)), -1.0)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), HardMargin()], ids=named)
@pytest.mark.parametrize("label", [1.0, -1.0])
def test_best_threshold_of_one_class_is_finite(loss, label):
    """With one class any large intercept is best: the smallest of them is returned, and without weight 0."""
    y, f = np.full(3, label), np.array([0.5, -0.5, 2.0])
    b = loss.best_intercept(y, f, np.ones(3))
    np.testing.assert_allclose((y * (f + b)).min(), 1.0)
    assert loss.best_intercept(y, f, np.zeros(3)) == 0.0


def test_box_of_each_loss():
    """The table of the program: linear, l1, ridge, box, sums, for a weight of 2 and of 0."""
    y, weight = np.array([1.0, -1.0, 1.0]), np.array([2.0, 2.0, 0.0])
    inf = np.inf
    table = {
        Hinge(): (y, 0.0, [0, 0, 0], [0, -2, 0], [2, 0, 0]),
        SquaredHinge(): (y, 0.0, [0.25, 0.25, 0], [0, -inf, 0], [inf, 0, 0]),
        HardMargin(): (y, 0.0, [0, 0, 0], [0, -inf, 0], [inf, 0, 0]),
        EpsilonInsensitive(0.5): (y, 0.5, [0, 0, 0], [-2, -2, 0], [2, 2, 0]),
        SquaredEpsilonInsensitive(0.5): (y, 0.5, [0.25, 0.25, 0], [-inf, -inf, 0], [inf, inf, 0]),
        Pinball(0.25): (y, 0.0, [0, 0, 0], [-1.5, -1.5, 0], [0.5, 0.5, 0]),
    }
    for loss, (linear, l1, ridge, lower, upper) in table.items():
        for intercept in (True, False):
            qp = loss.box_qp(y, weight, intercept)
            for found, expected in zip(
                (qp.linear, qp.ridge, qp.lower, qp.upper), (linear, ridge, lower, upper), strict=True
            ):
                np.testing.assert_array_equal(found, expected)
            assert (qp.l1 == l1).all() and qp.sample is None
            np.testing.assert_array_equal(qp.sums, [0.0] if intercept else [])
    qp = OneClass(0.25).box_qp(y, weight, True)
    assert (qp.linear == 0).all() and (qp.upper == weight).all() and (qp.lower == 0).all() and qp.sums.tolist() == [1.0]
    qp = NuHinge(0.25).box_qp(y, weight, True)
    assert qp.group.tolist() == [0, 1, 0] and qp.sums.tolist() == [0.5, -0.5] and qp.upper.tolist() == [2, 0, 0]
    qp = NuInsensitive(0.25).box_qp(y, weight, True)
    assert qp.sample.tolist() == [0, 1, 2, 0, 1, 2] and qp.sums.tolist() == [0.5, -0.5]
    assert qp.upper.tolist() == [2, 2, 0, 0, 0, 0] and qp.lower.tolist() == [0, 0, 0, -2, -2, 0]
    np.testing.assert_array_equal(qp.at_samples(np.arange(6.0), 3), [3, 5, 7])
    np.testing.assert_array_equal(qp.at_variables(np.array([4.0, 5.0, 6.0])), [4, 5, 6, 4, 5, 6])


def test_infeasible_nu_is_refused_with_the_largest_feasible_one():
    """nu may be 2·min(n₊, n₋)/n and not more; sample weights count as samples do."""
    y = np.repeat([1.0, -1.0], [30, 90])
    with pytest.raises(InfeasibleNuError) as error:
        NuHinge(0.8).box_qp(y, np.ones(120), True)
    assert (error.value.nu, error.value.nu_max) == (0.8, 0.5)
    assert (error.value.n_positive, error.value.n_negative) == (30, 90)
    assert "specified nu is infeasible" in str(error.value)
    assert NuHinge(0.5).box_qp(y, np.ones(120), True).sums.tolist() == [30.0, -30.0]
    assert NuHinge(0.9).box_qp(y, np.where(y > 0, 3.0, 1.0), True).sums.tolist() == [81.0, -81.0]
    for n_positive in range(1, 60):
        y = np.repeat([1.0, -1.0], [n_positive, 120 - n_positive])
        NuHinge(2 * n_positive / 120).box_qp(y, np.full(120, 0.1), True)


def test_messages_of_refused_arguments():
    """A refused number is named, with what is allowed and what to do."""
    y = np.array([1.0, -1.0])
    with pytest.raises(InvalidInputError) as error:
        Hinge().box_qp(y, np.array([1.0, np.inf]), True)
    assert str(error.value) == (
        "A weight C * sample_weight of inf was found: the hinge loss needs finite weights of at least 0. "
        "Correct C or sample_weight; for C=inf use HardMargin."
    )
    with pytest.raises(InvalidInputError, match=r"^nu=1.5 was given: nu must be greater than 0 and at most 1\.$"):
        OneClass(1.5)
    with pytest.raises(
        InvalidInputError, match=r"^epsilon=-1 was given: epsilon must be a finite number of at least 0\.$"
    ):
        EpsilonInsensitive(-1)
    with pytest.raises(InvalidInputError, match=r"^quantile=1 was given, but quantile must be between 0 and 1\.$"):
        Pinball(1.0)
    for loss in (OneClass(), NuHinge(), NuInsensitive()):
        with pytest.raises(InvalidInputError) as error:
            loss.box_qp(y, np.ones(2), False)
        assert str(error.value) == f"The {loss.name} needs an intercept, since nu controls its threshold."


def test_losses_are_values():
    """Losses with equal parameters are equal and can be dictionary keys."""
    assert NuHinge(0.3) == NuHinge(0.3) != NuHinge(0.4)
    assert len({Hinge(), Hinge(), EpsilonInsensitive(0.1), EpsilonInsensitive(0.1)}) == 2
    assert repr(EpsilonInsensitive(0.2)) == "EpsilonInsensitive(epsilon=0.2)"


def test_publish():
    """ν-SVC divides by its margin, where it has one; the intercept is the mean of the thresholds."""
    beta = np.array([2.0, -2.0])
    published = NuHinge(0.5).publish(beta, np.array([-3.0, 1.0]))
    assert nu_scale(np.array([-3.0, 1.0])) == (2.0, -1.0)
    assert nu_scale(np.array([1.0, -3.0])) == (0.0, -1.0)
    assert published.beta.tolist() == [1.0, -1.0] and (published.intercept, published.scale) == (-0.5, 2.0)
    assert NuHinge(0.5).publish(beta, np.zeros(2)).beta.tolist() == [2.0, -2.0]
    assert tube(np.array([1.5, 0.5])) == (0.5, 1.0)
    assert tube(np.array([0.5, 1.5])) == (0.0, 1.0)
    assert NuInsensitive(0.5).publish(beta, np.array([1.5, 0.5])).intercept == 1.0
    assert Hinge().publish(beta, np.empty(0)).intercept == 0.0


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not isinstance(loss, HardMargin)], ids=named)
def test_constants(loss):
    """lipschitz and smoothness are the largest slope and the largest change of slope; inf if there is no largest."""
    step = 1e-3
    target = 1.0 if loss in CLASSIFICATION else 0.0
    # multiples of ε and of 1 are points of the grid, so that kinks are, too
    near = np.arange(-4000, 4001) * step
    slopes = np.diff(loss.value(np.full(len(near), target), near)) / step
    steepest, change = np.abs(slopes).max(), np.abs(np.diff(slopes)).max() / step
    if loss.lipschitz < np.inf:
        assert steepest == pytest.approx(loss.lipschitz, rel=1e-9)
    else:
        far = loss.value(np.full(2, target), np.array([-1e6, -1e6 - 1.0]))
        assert abs(far[1] - far[0]) > 1e5  # it grows faster the farther one goes
    if loss.smoothness < np.inf:
        assert change == pytest.approx(loss.smoothness, rel=1e-5)
    else:
        assert change > 0.1 / step  # a jump of the slope


def test_constants_of_a_hard_margin():
    """A jump to infinity has neither."""
    assert HardMargin().lipschitz == HardMargin().smoothness == np.inf
