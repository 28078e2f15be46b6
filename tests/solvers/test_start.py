"""Any vector becomes a feasible start, and a feasible one stays."""

import numpy as np
import pytest
from tests.problems.instances import FORMS, instance

from mercer.problems import feasible_start, infeasibility
from mercer.solvers.start import feasible


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 100.0])
def test_any_vector_becomes_feasible(loss, intercept, size):
    """In the box, with the right sums."""
    rng = np.random.default_rng(0)
    for seed in range(5):
        qp = instance(loss, intercept, seed=seed).qp
        beta = feasible(qp, size * rng.normal(size=qp.n_vars))
        assert infeasibility(qp, beta) <= 1e-9 * max(1.0, np.abs(beta).max())


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_what_is_feasible_stays(loss, intercept):
    """To rounding, and the given vector is not edited."""
    qp = instance(loss, intercept).qp
    given = feasible_start(qp, near=np.random.default_rng(1).normal(size=qp.n_vars))
    copy = given.copy()
    np.testing.assert_allclose(feasible(qp, given), given, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(given, copy)


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_a_smaller_box_scales_down(loss, intercept):
    """The solution for C is a feasible start for C/2, nearer to it than nothing is where no sum is asked for."""
    large, small = instance(loss, intercept, C=2.0).qp, instance(loss, intercept, C=1.0).qp
    beta = feasible_start(large, near=np.random.default_rng(2).normal(size=large.n_vars))
    moved = feasible(small, beta)
    assert infeasibility(small, moved) <= 1e-9 * max(1.0, np.abs(moved).max())
    # no coefficient changes its sign
    assert np.all(moved * np.clip(beta, small.lower, small.upper) >= 0) or small.sums.any()


@pytest.mark.parametrize("wrong", [np.zeros(3), np.full(30, np.nan), np.full(30, np.inf)])
def test_what_cannot_be_used_gives_the_plain_start(wrong):
    """Another problem's size, or no numbers."""
    for loss, intercept in FORMS:
        qp = instance(loss, intercept, n=30).qp
        np.testing.assert_array_equal(feasible(qp, wrong), feasible_start(qp))
