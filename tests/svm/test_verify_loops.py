"""The loops that verify a solution in float64, by NumPy."""

import numpy as np
import pytest

from mercer._compiled.tiles import formula_of
from mercer.kernels import Gaussian, Polynomial
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.problems._optimality_loops import fill_slack, optimality_sums, threshold
from mercer.svm._verify_loops import exact_values


def slack_of(beta, F, linear, l1, ridge, lower, upper, group, level):
    """How far the rates of a variable at 0 are from its threshold; -inf with a weight."""
    s = linear - F - ridge * beta
    grow = np.where(beta < upper, level[group] - (s - l1), np.inf)
    shrink = np.where(beta > lower, s + l1 - level[group], np.inf)
    return np.where(beta != 0, -np.inf, np.minimum(grow, shrink))


@pytest.mark.parametrize("n", [0, 1, 90])
def test_fill_slack(n):
    """Of variables at 0, at either end of the box or inside, in two groups."""
    rng = np.random.default_rng(n)
    linear, F = rng.normal(size=(2, n))
    l1, ridge = rng.choice([0.0, 0.3], n), rng.choice([0.0, 0.5], n)
    lower, upper = -rng.choice([0.0, 1.0], n), rng.choice([0.0, 1.0], n)
    beta, group = np.clip(rng.choice([-0.5, 0.0, 1.0], n), lower, upper), rng.integers(0, 2, n).astype(np.int8)
    given, out = (beta, F, linear, l1, ridge, lower, upper, group, np.array([0.1, -0.4])), np.full(n, np.nan)
    fill_slack(*given, out)
    np.testing.assert_allclose(out, slack_of(*given), rtol=1e-14)


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Polynomial(2, 0.5, 1.0)], ids=["gaussian", "polynomial"])
@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.3)], ids=["hinge", "epsilon"])
@pytest.mark.parametrize("support", [0, 1, 60])
def test_exact_values(kernel, loss, support):
    """F is exact at samples with a weight and near a kink, unchanged at others, which are far from any kink."""
    rng = np.random.default_rng(support)
    n, near = 150, 0.05
    X, index = rng.normal(size=(200, 3)), rng.permutation(200)[:n]
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    qp = loss.box_qp(y, np.ones(n), True)
    beta = np.zeros(n)
    chosen = rng.permutation(n)[:support]
    beta[chosen] = np.clip(0.01 * y[chosen], qp.lower[chosen], qp.upper[chosen])
    exact = kernel(X[index]) @ beta
    F = exact + 1e-4 * rng.uniform(-1.0, 1.0, n)
    rough = F.copy()
    features = kernel.prepare(X, np.float64)
    slacks, groups, totals = np.empty(n), np.empty((1, 5)), np.empty(7)
    vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, qp.group
    before = np.empty((1, 5))
    optimality_sums(beta, F, *vectors, before, totals)
    far = slack_of(beta, rough, *vectors, np.array([threshold(before[0])]))
    count = exact_values(
        formula_of(*kernel.formula(features)), features.X, index, beta, F, *vectors, near, slacks, groups, totals
    )
    done = slacks == -np.inf
    np.testing.assert_allclose(F[done], exact[done], rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(F[~done], rough[~done])
    assert done[beta != 0].all() and done[far < near].all() and (done.all() or support > 0)
    assert (far[~done] >= near).all() and (count > 0) == (support > 0)
    same, sums = np.empty((1, 5)), np.empty(7)
    optimality_sums(beta, F, *vectors, same, sums)
    np.testing.assert_array_equal(groups, same)
    np.testing.assert_array_equal(totals, sums)
