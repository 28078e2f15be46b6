"""The block of a working set is what the stored rows say, and its solution moves as it reports."""

import numpy as np
import pytest
from tests.problems.instances import FORMS, instance

from mercer._numerics.rounds import by_group, gather, solve_members
from mercer.problems import dual_objective, feasible_start

NEW = np.full(7, -1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gathered_block(dtype):
    """block = store[slots][:, columns], with zeros at the null sample."""
    rng = np.random.default_rng(0)
    store = rng.normal(size=(20, 30)).astype(dtype)
    slots, columns = rng.permutation(20)[:7], rng.permutation(30)[:7]
    block = np.full((7, 7), np.nan)
    gather(store, slots, columns, NEW, block, block)
    np.testing.assert_array_equal(block, store[np.ix_(slots, columns)])
    slots[3], columns[3] = -1, 0
    gather(store, slots, columns, NEW, block, block)
    assert not block[3].any() and not block[:, 3].any()
    others = [0, 1, 2, 4, 5, 6]
    np.testing.assert_array_equal(block[np.ix_(others, others)], store[np.ix_(slots[others], columns[others])])


def test_a_block_is_made_from_the_last_one():
    """Old members are copied, new ones read from their rows alone: the rows of old ones may have been given up."""
    rng = np.random.default_rng(0)
    K = rng.normal(size=(30, 30))
    K = K + K.T
    first, second = np.arange(10), np.array([12, 3, 20, 7, 0, 25])
    old = K[np.ix_(first, first)]
    known = np.where(second < 10, second, -1)
    store = K.copy()
    store[first] = np.nan
    block = np.empty((6, 6))
    gather(store, second, second, known, old, block)
    np.testing.assert_array_equal(block, K[np.ix_(second, second)])


def test_members_by_group():
    """The first group first, each in the order given."""
    group = np.array([1, 0, 1, 0, 0], np.int8)
    np.testing.assert_array_equal(by_group(np.array([2, 4, 0, 1]), group), [4, 1, 2, 0])


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_the_gain_is_what_the_dual_gains(loss, intercept):
    """beta moves by change, within the box and its sums, and the dual by what is reported."""
    problem = instance(loss, intercept, n=40, seed=3)
    qp, K = problem.qp, problem.K
    beta = feasible_start(qp, near=np.random.default_rng(0).normal(size=qp.n_vars))
    sample = np.arange(40) if qp.sample is None else qp.sample
    F = problem.F(beta)
    members = by_group(np.random.default_rng(1).permutation(qp.n_vars)[:16], qp.group)
    before, change = beta.copy(), np.empty(16)
    _, gained, unbounded = solve_members(
        K, sample[members], members, np.empty(0, np.int64), np.empty((0, 0)), np.empty((16, 16)), beta, F, sample,
        qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, qp.group, 1e-6, 1000, change,
    )  # fmt: skip
    assert not unbounded
    np.testing.assert_allclose(beta[members], before[members] + change, atol=1e-15)
    assert np.all(beta >= qp.lower) and np.all(beta <= qp.upper)
    for g in range(max(1, qp.n_groups)):
        assert change[qp.group[members] == g].sum() == pytest.approx(0, abs=1e-12)
    risen = dual_objective(qp, beta, problem.F(beta)) - dual_objective(qp, before, F)
    assert gained == pytest.approx(risen, rel=1e-9, abs=1e-12)
