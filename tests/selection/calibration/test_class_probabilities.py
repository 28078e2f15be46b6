"""Probabilities from held-out decision values."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss

from mercer.exceptions import InvalidInputError
from mercer.selection.calibration.class_probabilities import (
    METHODS,
    Scheme,
    agree,
    calibrate,
    fit_beta,
    fit_isotonic,
    fit_sigmoid,
)


def held_out_values(n=400, slope=2.0, offset=0.5, seed=0):
    """Values whose probability is a sigmoid of known slope and offset."""
    rng = np.random.default_rng(seed)
    f = 2.0 * rng.normal(size=n)
    return f, rng.uniform(size=n) < expit(slope * f + offset)


def smoothed(y):
    return np.where(y, (y.sum() + 1) / (y.sum() + 2), 1 / ((~y).sum() + 2))


def entropy(p, t):
    return -np.sum(t * np.log(p) + (1 - t) * np.log1p(-p))


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_sigmoid_is_the_minimiser(scale):
    """No slope and offset have a smaller cross-entropy, whatever the scale of the values."""
    f, y = held_out_values()
    found = fit_sigmoid(scale * f, y, np.ones(len(f)))
    t = smoothed(y)
    best = minimize(lambda ab: entropy(expit(ab[0] * f + ab[1]), t), [1.0, 0.0], tol=1e-10)
    assert found.slope * scale == pytest.approx(best.x[0], rel=1e-4)
    assert found.offset == pytest.approx(best.x[1], rel=1e-3)
    assert entropy(found(scale * f), t) <= best.fun * (1 + 1e-10)


def test_sigmoid_recovers_the_truth():
    """With many samples the true slope and offset are found."""
    found = fit_sigmoid(*held_out_values(40_000), np.ones(40_000))
    assert found.slope == pytest.approx(2.0, abs=0.1)
    assert found.offset == pytest.approx(0.5, abs=0.1)


def test_weights_are_repetitions():
    """A sample of weight 3 is three samples."""
    f, y = held_out_values(60)
    times = np.random.default_rng(1).integers(1, 4, size=60)
    for method, fit in METHODS.items():
        weighted = fit(f, y, times.astype(float))
        repeated = fit(np.repeat(f, times), np.repeat(y, times), np.ones(times.sum()))
        np.testing.assert_allclose(weighted(f), repeated(f), atol=1e-6, err_msg=method)


def test_never_falling():
    """Values that speak against their class give a constant: no probability falls where the value grows."""
    f, y = held_out_values()
    grid = np.linspace(-10, 10, 201)
    for method, fit in METHODS.items():
        for labels in (y, ~y):
            p = fit(f, labels, np.ones(len(f)))(grid)
            assert (np.diff(p) >= -1e-12).all(), method
            assert ((p > 0) & (p < 1)).all(), method
    assert fit_sigmoid(f, ~y, np.ones(len(f))).slope == 0.0


def test_beta_is_the_minimiser():
    """Beta calibration is the constrained optimum, and never worse than the sigmoid that it contains."""
    f, y = held_out_values(seed=3)
    y = y | (f < -3)  # unlike any sigmoid
    found, t = fit_beta(f, y, np.ones(len(f))), smoothed(y)
    s = found.sigmoid(f)

    def objective(abc):
        return entropy(np.clip(expit(abc[0] * np.log(s) - abc[1] * np.log1p(-s) + abc[2]), 1e-15, 1 - 1e-15), t)

    best = minimize(objective, [1.0, 1.0, 0.0], bounds=[(0, None), (0, None), (None, None)], tol=1e-12)
    assert entropy(found(f), t) <= best.fun * (1 + 1e-7)
    assert entropy(found(f), t) <= entropy(s, t) + 1e-9
    assert min(found.a, found.b) >= 0


def test_isotonic_is_sklearns():
    """Between the smoothed ends the fit is scikit-learn's isotonic regression."""
    f, y = held_out_values()
    f[:100] = np.round(f[:100])  # ties
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(f))
    low, high = 1 / (weight[~y].sum() + 2), (weight[y].sum() + 1) / (weight[y].sum() + 2)
    expected = IsotonicRegression(y_min=0, y_max=1).fit(f, y, sample_weight=weight).predict(f)
    np.testing.assert_allclose(fit_isotonic(f, y, weight)(f), np.clip(expected, low, high), atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_separated_values(method):
    """Classes that do not overlap give finite, sensible probabilities."""
    f = np.r_[np.linspace(-3, -1, 20), np.linspace(1, 3, 20)]
    p = calibrate(f[:, None], (f > 0).astype(np.intp), 2, method).probabilities(f[:, None])
    assert np.isfinite(np.log(p)).all()
    assert ((p[:, 1] > 0.5) == (f > 0)).all()
    assert p[f > 0, 1].mean() > 0.85
    assert p[f < 0, 0].mean() > 0.85


@pytest.mark.parametrize("method", METHODS)
def test_constant_and_few_values(method):
    """Values that do not differ give the share of the class; a class of one sample and huge values give no error."""
    codes = np.array([0, 0, 0, 1], dtype=np.intp)
    p = calibrate(np.zeros((4, 1)), codes, 2, method).probabilities(np.zeros((1, 1)))
    assert 0.2 < p[0, 1] < 0.45
    values = np.array([[-1e300], [1e-300], [0.0], [1e300]])
    p = calibrate(values, codes, 2, method).probabilities(values)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def pairwise(p):
    k = p.shape[1]
    return np.column_stack([logit(p[:, i] / (p[:, i] + p[:, j])) for i in range(k) for j in range(i + 1, k)])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scheme", Scheme, ids=lambda s: s.name)
def test_several_classes(scheme, method):
    """True probabilities of four classes are found from values that are monotone in them."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=3000)
    codes = (rng.uniform(size=(3000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    values = pairwise(p) if scheme is Scheme.PAIRS else logit(p)
    found = calibrate(3.0 * values, codes, 4, method, scheme=scheme).probabilities(3.0 * values)
    assert found.shape == (3000, 4)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    assert np.abs(found - p).mean() < 0.05
    assert log_loss(codes, found) < log_loss(codes, p) + 0.03


def test_pairs_without_samples_and_rows_without_values():
    """A class that was never held out, and samples that were not, leave the other classes as they are."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=500)
    codes = rng.integers(0, 2, size=500)
    values = pairwise(p)
    values[::2] = np.nan
    found = calibrate(values, codes, 3).probabilities(values[1::2])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    with pytest.raises(InvalidInputError, match="No sample with positive weight was held out"):
        calibrate(np.full((3, 1), np.nan), np.array([0, 1, 1]), 2)
    with pytest.raises(InvalidInputError, match="calibration='magic' is not known: use one of 'sigmoid'"):
        calibrate(values, codes, 3, "magic")


@pytest.mark.parametrize("k", [2, 3, 7])
def test_agree_is_the_projection(k):
    """The nearest point of the simplex at which the winner is largest, as a general solver finds it."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(k), size=12)
    winners = rng.integers(0, k, size=12)
    found = agree(p, winners)
    np.testing.assert_array_equal(found.argmax(axis=1), winners)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    for row, winner, mine in zip(p, winners, found, strict=True):
        constraints = [{"type": "eq", "fun": lambda q: q.sum() - 1}]
        constraints.append({"type": "ineq", "fun": lambda q, w=winner: q[w] - q})
        solved = minimize(
            lambda q, row=row: 50 * ((q - row) ** 2).sum(),
            np.full(k, 1 / k),
            constraints=constraints,
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(mine, solved.x, atol=1e-5)


def test_agree_keeps_the_order():
    """Probabilities that are moved stay in the order of the decision values, and distinct, also in float32."""
    f = np.linspace(-2, 2, 401)
    p = expit(1.5 * f + 0.7)  # 0.5 is crossed at f = -0.47
    found = agree(np.column_stack([1 - p, p]), (f > 0).astype(np.intp))
    assert (np.diff(found[:, 1]) > 0).all()
    single = found.astype(np.float32)
    np.testing.assert_array_equal(single.argmax(axis=1), f > 0)
    assert (single[:, 0] != single[:, 1]).all()
    wrong = (p > 0.5) != (f > 0)
    assert np.abs(found[wrong, 1] - 0.5).max() < 2e-6
    assert np.abs(found[~wrong, 1] - p[~wrong]).max() < 2e-6
