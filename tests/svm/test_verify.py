"""Verification of a solution in float64, by NumPy."""

import numpy as np
import pytest

from mercer.gram.operator import Data
from mercer.kernels import Gaussian, Polynomial
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.problems._optimality_loops import optimality_sums, threshold
from mercer.problems.solution import Options
from mercer.svm._round_loops import fill_slack
from mercer.svm.verify import exact_rows


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
def test_exact_rows(kernel, loss, support):
    """F is recomputed at all samples with weight and near a kink; the others are far from any kink."""
    rng = np.random.default_rng(support)
    n, near = 150, 0.05
    X = rng.normal(size=(n, 3))
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    qp = loss.box_qp(y, np.ones(n), True)
    beta = np.zeros(n)
    chosen = rng.permutation(n)[:support]
    beta[chosen] = np.clip(0.01 * y[chosen], qp.lower[chosen], qp.upper[chosen])
    exact = kernel(X) @ beta
    F = exact + 1e-4 * rng.uniform(-1.0, 1.0, n)
    vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, qp.group
    groups, totals = np.empty((1, 5)), np.empty(7)
    optimality_sums(beta, F, *vectors, groups, totals)
    far = slack_of(beta, F, *vectors, np.array([threshold(groups[0])]))
    rows, values = exact_rows(Data(kernel, X, n), qp, beta, F, Options(tol=0.1 * near))
    done = np.isin(np.arange(n), rows)
    np.testing.assert_allclose(values, exact[rows], rtol=1e-12, atol=1e-13)
    assert done[beta != 0].all() and done[far < near].all() and (done.all() or support > 0)
    assert (far[~done] >= near).all()
