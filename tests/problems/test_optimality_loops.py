"""The sums of the optimality conditions, by NumPy's masks."""

import numpy as np
import pytest

from mercer.problems import _optimality_loops as loops


def sums(beta, F, linear, l1, ridge, lower, upper, group, n_groups):
    """(groups, totals) as `optimality_sums` describes them."""
    s = linear - F - ridge * beta
    up = np.where(beta >= 0, s - l1, s + l1)
    low = np.where(beta <= 0, s + l1, s - l1)
    free = (lower < beta) & (beta < upper) & ((beta != 0) | (l1 == 0))
    groups = np.array([
        [
            up[mine & (beta < upper)].max(initial=-np.inf), low[mine & (beta > lower)].min(initial=np.inf),
            (s - l1 * np.sign(beta))[mine & free].sum(), np.count_nonzero(mine & free), beta[mine].sum(),
        ]
        for mine in (group == g for g in range(n_groups))
    ])  # fmt: skip
    outside = np.maximum(0.0, np.maximum(lower - beta, beta - upper)).max(initial=0.0)
    each = F * beta, np.abs(F * beta), linear * beta, np.abs(linear * beta), l1 * np.abs(beta), ridge * beta**2
    return groups, [outside, *(values.sum() for values in each)]


def program(n, n_groups, seed=0):
    rng = np.random.default_rng(seed)
    linear, F = rng.normal(size=(2, n))
    l1, ridge = rng.choice([0.0, 0.3], n), rng.choice([0.0, 0.5], n)
    lower, upper = -rng.choice([0.0, 1.0, np.inf], n), rng.choice([0.0, 1.0, np.inf], n)
    beta = np.clip(rng.choice([-1.0, -0.4, 0.0, 0.4, 1.0], n), lower, upper)
    return beta, F, linear, l1, ridge, lower, upper, rng.integers(0, n_groups, n).astype(np.int8)


@pytest.mark.parametrize("n_groups", [1, 2])
@pytest.mark.parametrize("n", [0, 1, 4, 200])
def test_sums(n, n_groups):
    """Extremes, levels and totals of each group; β outside its box."""
    for outside in (False, True):
        given = program(n, n_groups)
        if outside and n:
            given[0][n // 2] = 5.0
            given[6][n // 2] = 1.0
        groups, totals = np.full((n_groups, 5), np.nan), np.full(7, np.nan)
        loops.optimality_sums(*given, groups, totals)
        expected = sums(*given, n_groups)
        np.testing.assert_allclose(groups, expected[0], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(totals, expected[1], rtol=1e-12, atol=1e-13)


def test_nan_stays():
    """A NaN of F makes the extremes NaN, one of β all that depends on it, wherever it is."""
    for place in (0, 10, 19):
        given = program(20, 1)
        given[5][:], given[6][:] = -2.0, 2.0  # all may move
        given[1][place] = np.nan
        groups, totals = np.zeros((1, 5)), np.zeros(7)
        loops.optimality_sums(*given, groups, totals)
        assert np.isnan(groups[0, [loops.M_UP, loops.M_LOW]]).any() and np.isfinite(totals[loops.OUTSIDE])
        given[0][place] = np.nan
        loops.optimality_sums(*given, groups, totals)
        assert np.isnan(groups[0, [loops.M_UP, loops.M_LOW, loops.TOTAL]]).all() and np.isnan(totals).all()


@pytest.mark.parametrize(
    ("sums", "expected"),
    [
        ([-1.0, 3.0, 4.0, 2.0, 0.0], 2.0),
        ([-1.0, 3.0, 0.0, 0.0, 0.0], 1.0),
        ([-np.inf, 3.0, 0.0, 0.0, 0.0], 3.0),
        ([-1.0, np.inf, 0.0, 0.0, 0.0], -1.0),
        ([-np.inf, np.inf, 0.0, 0.0, 0.0], 0.0),
    ],
    ids=["free variables", "both ends", "low only", "up only", "none"],
)
def test_threshold(sums, expected):
    """The mean of the free variables, else the middle of the ends, else the end that is finite."""
    assert loops.threshold(np.array(sums)) == expected
