"""The working set holds the worst violators, and shrinking removes only variables that are settled."""

import numpy as np
import pytest
from tests.problems.instances import FORMS, instance

from mercer._compiled.program import Program
from mercer.problems import brackets, feasible_start, rates
from mercer.problems._optimality_loops import near_kinks
from mercer.svm._round_loops import (
    BINS,
    group_extremes,
    score_all,
    score_and_extremes,
    select_working_set,
    shrinkable,
)

NONE = np.empty(0, np.int64)


def scores(loss, intercept, seed=0, n=60):
    """up and low of a random point, with groups and extremes as the solver has them."""
    problem = instance(loss, intercept, n=n, seed=seed)
    qp = problem.qp
    beta = feasible_start(qp, near=np.random.default_rng(seed).normal(size=qp.n_vars))
    F = problem.F(beta)
    up, low = np.empty(qp.n_vars), np.empty(qp.n_vars)
    sample = np.arange(n) if qp.sample is None else qp.sample
    score_all(Program(sample, qp.group, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper), beta, F, up, low)
    extremes = np.empty((2, 2))
    group_extremes(up, low, qp.group, extremes)
    return qp, beta, F, up, low, extremes


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_scores_are_the_rates(loss, intercept):
    """score_all and group_extremes are the optimality conditions of `mercer.problems`."""
    qp, beta, F, up, low, extremes = scores(loss, intercept)
    expected_up, expected_low = rates(qp, beta, F)
    np.testing.assert_allclose(up, expected_up, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(low, expected_low, rtol=1e-13, atol=1e-13)
    groups = max(1, qp.n_groups)
    np.testing.assert_allclose(extremes[:groups].T, np.array(brackets(qp, beta, F)), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("size", [4, 8, 20, 64])
@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_the_worst_violators_are_chosen(loss, intercept, size):
    """Without repetition, the worst pair of the worst group is in it, and no violator worse by two bins is missing."""
    qp, _, _, up, low, extremes = scores(loss, intercept)
    n_groups = max(1, qp.n_groups)
    chosen = select_working_set(up, low, qp.group, n_groups, extremes, NONE, size, size, -1)
    assert len(chosen) == len(set(chosen.tolist())) <= size
    spans = extremes[:n_groups, 0] - extremes[:n_groups, 1]
    worst = int(np.argmax(spans))
    width = spans[worst] / BINS
    members = np.intersect1d(chosen, np.flatnonzero(qp.group == worst))
    assert up[members].max() >= extremes[worst, 0] - width
    assert low[members].min() <= extremes[worst, 1] + width
    # no variable that was not chosen has a larger up than the k-th largest, by more than two bins
    share = max(1, size // (2 * n_groups)) if n_groups == 1 or spans.min() > 0.1 * spans.max() else 1
    ranked = np.sort(up[(qp.group == worst) & (up > extremes[worst, 1])])[::-1]
    if len(ranked):
        kth = ranked[min(share, len(ranked)) - 1]
        better = np.flatnonzero((qp.group == worst) & (up > kth + 2 * width))
        assert np.isin(better, chosen).all()


def test_equal_rates_are_chosen_evenly():
    """At beta = 0 all variables of a class have the same rate: those chosen are spread over all of them."""
    n = 101
    up, low = np.full(n, 1.0), np.full(n, np.inf)
    up[60:], low[60:] = -np.inf, -1.0  # the first class may increase only, the second decrease only
    extremes = np.array([[1.0, -1.0]])
    chosen = select_working_set(up, low, np.zeros(n, np.int8), 1, extremes, NONE, 20, 20, -1)
    first, second = np.sort(chosen[chosen < 60]), np.sort(chosen[chosen >= 60])
    assert len(first) == len(second) == 10
    assert np.diff(first).max() <= 6 and np.diff(second).max() <= 5


def test_members_of_the_last_set_fill_up():
    """New variables first, at most n_new; then members of the previous set; the null sample always."""
    up, low = np.linspace(1.0, 0.0, 40), np.linspace(0.0, -1.0, 40)
    group, extremes = np.zeros(40, np.int8), np.array([[1.0, -1.0], [-np.inf, np.inf]])
    previous = np.arange(15, 25)
    chosen = select_working_set(up, low, group, 1, extremes, previous, 8, 12, -1)
    assert sorted(chosen[:8].tolist()) == [0, 1, 2, 3, 36, 37, 38, 39]
    assert chosen[8:].tolist() == [15, 16, 17, 18]
    chosen = select_working_set(up, low, group, 1, extremes, previous, 8, 12, 20)
    assert chosen[0] == 20 and len(set(chosen.tolist())) == len(chosen) <= 12


def test_a_group_near_its_optimum_gets_no_members():
    """All members are of the group that violates."""
    up, low = np.tile([1.0, 0.01], 20), np.tile([-1.0, -0.01], 20)
    group = np.tile([0, 1], 20).astype(np.int8)
    extremes = np.array([[1.0, -1.0], [0.01, -0.01]])
    assert np.all(group[select_working_set(up, low, group, 2, extremes, NONE, 10, 10, -1)] == 0)


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_shrinkable_variables_make_no_violating_pair(loss, intercept):
    """A variable that is shrunk misses a violating pair by half the violation at least; the count is right."""
    qp, _, _, up, low, extremes = scores(loss, intercept)
    keep = np.empty(qp.n_vars, np.bool_)
    count = shrinkable(up, low, qp.group, extremes, 0.5, keep)
    assert count == np.count_nonzero(~keep)
    span = extremes[qp.group, 0] - extremes[qp.group, 1]
    out = ~keep
    assert np.all(up[out] <= extremes[qp.group, 1][out] - 0.5 * np.maximum(0, span[out]))
    assert np.all(low[out] >= extremes[qp.group, 0][out] + 0.5 * np.maximum(0, span[out]))


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_all_scores_in_one_pass(loss, intercept):
    """score_and_extremes is score_all, group_extremes and the largest violation; NaN stays NaN."""
    qp, beta, F, up, low, extremes = scores(loss, intercept)
    n_groups = max(1, qp.n_groups)
    sample = np.arange(len(F)) if qp.sample is None else qp.sample
    program = Program(sample, qp.group, qp.linear.copy(), qp.l1, qp.ridge, qp.lower, qp.upper)
    found = np.empty_like(up), np.empty_like(low), np.empty((n_groups, 2))
    violation = score_and_extremes(program, beta, F, *found)
    for one, other in zip(found, (up, low, extremes[:n_groups]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert violation == (extremes[:n_groups, 0] - extremes[:n_groups, 1]).max()
    F[:] = np.inf
    program.linear[:] = np.inf
    assert not np.isfinite(score_and_extremes(program, beta, F, *found))


@pytest.mark.parametrize("error", [0.0, 0.01, 0.1, np.inf, np.nan])
def test_near_kinks(error):
    """Samples within the margin, which is at least a multiple of the largest error; all if the error is not finite."""
    rng = np.random.default_rng(0)
    slack, F, done = rng.normal(size=50), rng.normal(size=50), rng.random(50) < 0.5
    slack[::7] = np.nan
    exact, near = np.where(done, F, np.nan), np.empty(50, np.intp)
    exact[np.flatnonzero(done)[[3, 5]]] += [error, 0.5 * error]
    count, margin = near_kinks(slack, F, exact, done, 0.2, 4.0, near)
    assert margin == pytest.approx(max(0.2, 4 * error) if np.isfinite(error) else np.inf)
    np.testing.assert_array_equal(near[:count], np.flatnonzero(~done & (slack < margin)))
