"""Sums over ordered pairs agree with loops over all pairs."""

import numpy as np
import pytest

from mercer.ordering.pair_losses import PairSum
from mercer.ordering.pair_order import PairOrder, concordance


def drawn(seed):
    """Samples with groups, ranks with ties, samples that may not be low, values with ties, and weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    group, rank = rng.integers(0, 3, n), rng.integers(0, rng.integers(2, 12), n).astype(float)
    may_be_low, f = rng.random(n) < 0.7, np.round(2 * rng.normal(size=n), int(rng.integers(0, 4)))
    pairs = [(i, j) for i in range(n) for j in range(n) if group[i] == group[j] and rank[i] > rank[j] and may_be_low[j]]
    return rng, PairOrder(rank, group, may_be_low), f, rng.random(n), pairs


@pytest.mark.parametrize("seed", range(25))
def test_sums_over_pairs(seed):
    """Value, gradient and curvature are those of the double loop; so are the number of pairs and the concordance."""
    rng, order, f, w, pairs = drawn(seed)
    n = len(f)
    y, censored = rng.normal(size=n), rng.random(n) < 0.5
    smooth = PairSum(order, w, 0.7, 0.3, y, censored)
    residual = np.where(censored, np.maximum(y - f, 0.0), y - f)
    value, G = 0.3 * w @ residual**2, -0.6 * w * residual
    H = np.diag(0.6 * w * (~censored | (y > f)))
    for i, j in pairs:
        missing, c = max(0.0, 1.0 - f[i] + f[j]), 1.4 * w[i] * w[j]
        step = np.eye(n)[i] - np.eye(n)[j]
        value += 0.5 * c * missing**2
        G -= c * missing * step
        H += (missing > 0) * c * np.outer(step, step)
    found, gradient = smooth.evaluate(f[:, None])
    assert order.n_pairs == len(pairs)
    assert found == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(gradient[:, 0], G, atol=1e-10)
    v, curvature = rng.normal(size=n), smooth.curvature(f[:, None])
    np.testing.assert_allclose(curvature.apply(v[:, None])[:, 0], H @ v, atol=1e-10)
    np.testing.assert_allclose(curvature.total(), H.sum(), atol=1e-10)
    if pairs:
        right = np.mean([0.5 * (f[i] > f[j]) + 0.5 * (f[i] >= f[j]) for i, j in pairs])
        assert concordance(order, f) == pytest.approx(right, abs=1e-12)
    else:
        assert np.isnan(concordance(order, f))


@pytest.mark.parametrize("seed", range(5))
def test_the_best_intercept(seed):
    """At the best intercept the gradient sums to 0, since pairs do not see it."""
    rng, order, f, w, _ = drawn(seed)
    censored = np.arange(len(f)) % 2 == 1
    smooth = PairSum(order, w, 0.7, 0.3, rng.normal(size=len(f)), censored)
    b = smooth.best_intercept(f[:, None], np.zeros(1))
    gradient = smooth.evaluate((f + b)[:, None])[1]
    assert abs(gradient.sum()) <= 1e-12 * np.abs(gradient).sum() + 1e-12
