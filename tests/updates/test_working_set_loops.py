"""The compiled loops of updates against numpy, and stored columns against the kernel."""

from functools import partial

import numpy as np
import pytest

from mercer import Gaussian
from mercer.losses.base import BoxQP
from mercer.problems.dual import rates
from mercer.updates._working_set_loops import choose_members, copy_block
from mercer.updates.kernel_columns import KernelColumns, kernel_columns
from mercer.updates.warm_descent import restore_sums


def random_program(rng, n, l1):
    """A program with zero, free and bound variables: (program, beta, F)."""
    lower, upper = -rng.uniform(0, 2, n), rng.uniform(0, 2, n)
    beta = np.select([rng.random(n) < 0.3] * 2, [lower, upper], rng.uniform(lower, upper))
    beta[rng.random(n) < 0.3] = 0.0
    beta[:5] = upper[:5]
    qp = BoxQP(
        linear=rng.normal(size=n), l1=np.full(n, l1), ridge=rng.choice([0.0, 0.5], n), lower=lower, upper=upper,
        group=np.zeros(n, np.int8), sums=np.array([0.3]),
    )  # fmt: skip
    return qp, beta, rng.normal(size=n)


@pytest.mark.parametrize("l1", [0.0, 0.2])
def test_members_are_the_free_and_the_violating_variables(l1):
    """A variable is free inside its box and off its kink; it violates optimality if a rate is beyond the level."""
    rng = np.random.default_rng(0)
    qp, beta, F = random_program(rng, 200, l1)
    members, excess = np.empty(200, np.intp), np.empty(200)
    up, low = rates(qp, beta, F)
    free = (beta > qp.lower) & (beta < qp.upper) & ((beta != 0) | (l1 == 0))
    violation = np.maximum(up - 0.1, 0.1 - low)
    for with_free, expected in ((True, np.where(free, np.inf, violation)), (False, violation)):
        program = (qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper)
        count = choose_members(beta, F, *program, 0.1, 0.05, with_free, members, excess)
        assert members[:count].tolist() == np.flatnonzero(expected > 0.05).tolist()
        assert excess[:count] == pytest.approx(expected[expected > 0.05])


def test_block_is_copied():
    """The block of some places."""
    values = np.random.default_rng(0).normal(size=(10, 30))
    places, out = np.array([3, 0, 7]), np.empty((3, 3))
    copy_block(values, places, out)
    assert np.array_equal(out, values[np.ix_(places, places)])


def test_stored_columns_are_those_of_the_present_samples():
    """After samples come and leave and columns are stored and forgotten, values are the kernel's; freed memory is 0."""
    rng = np.random.default_rng(1)
    X, kernel = rng.normal(size=(150, 3)), Gaussian(0.5)
    K, index = kernel(X), list(range(60))
    columns = KernelColumns(60)
    for step in range(90):
        kind = rng.choice(["add", "remove", "store", "permute"])
        if kind == "add":
            stored = [index[i] for i in columns.sample[: columns.count]]
            columns.append(K[stored, 60 + step][:, None])
            index.append(60 + step)
        elif kind == "remove":
            gone = np.sort(rng.choice(len(index), 2, replace=False))
            columns.remove(gone)
            index = [i for p, i in enumerate(index) if p not in gone]
        elif kind == "permute":
            order = rng.permutation(len(index))
            columns.permute(order)
            index = [index[i] for i in order]
        else:
            samples = np.sort(rng.choice(len(index), 4, replace=False))
            features = kernel.prepare(X[index])
            budget = 8 * 20 * len(index)  # at most 20 columns
            assert columns.ensure(partial(kernel_columns, kernel, features), samples, budget)
            assert columns.count <= 20 and columns.has(samples).all()
            assert columns.columns(samples) == pytest.approx(K[np.ix_(index, index)][samples])
            assert columns.block(samples) == pytest.approx(K[np.ix_(index, index)][np.ix_(samples, samples)])
            total = np.zeros(len(index))
            columns.add_product(samples, np.array([1.0, -2.0, 3.0, 0.5]), total)
            assert total == pytest.approx(K[np.ix_(index, index)][:, samples] @ [1.0, -2.0, 3.0, 0.5])
        assert columns.place[columns.sample].tolist() == list(range(len(index)))
        stored = columns.sample[: columns.count]
        if len(stored):
            assert columns.columns(stored) == pytest.approx(K[np.ix_(index, index)][stored])
        assert not columns.values[columns.count :].any() and not columns.values[:, len(index) :].any()
    assert not columns.ensure(lambda missing: missing, np.setdiff1d(np.arange(30), columns.sample[: columns.count]), 8)


@pytest.mark.parametrize("l1", [0.0, 0.2])
@pytest.mark.parametrize("total", [-30.0, 0.3, 25.0])
def test_sums_are_restored_within_the_box(l1, total):
    """The sum is right afterwards, β is in its box, and only the variables that are named have moved."""
    rng = np.random.default_rng(2)
    qp, beta, _ = random_program(rng, 100, l1)
    qp.sums[0] = total
    before, near = beta.copy(), rng.random(100)
    moved = restore_sums(qp, beta, near)
    assert beta.sum() == pytest.approx(total)
    assert np.all(beta >= qp.lower) and np.all(beta <= qp.upper)
    assert np.flatnonzero(beta != before).tolist() == np.sort(moved).tolist()
