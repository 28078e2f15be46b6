"""Objective, optimality conditions and thresholds, against double loops and against the reference solver."""

import numpy as np
import pytest
from tests.problems.instances import FORMS, instance
from tests.reference.qp import objective, solve_qp

from mercer.losses import EpsilonInsensitive, Hinge, NuHinge, OneClass
from mercer.problems import (
    DualProblem,
    brackets,
    dual_objective,
    feasible_start,
    infeasibility,
    thresholds,
    violation,
)


def random_feasible(problem, rng):
    """A β of the problem with many variables at their bounds, from the start by exchanges within the groups."""
    qp = problem.qp
    beta = feasible_start(qp)
    for _ in range(60):
        i, j = rng.integers(0, qp.n_vars, size=2)
        if qp.n_groups == 0:
            beta[i] = rng.choice([max(qp.lower[i], -3), min(qp.upper[i], 3), np.clip(0, qp.lower[i], qp.upper[i])])
        elif i != j and qp.group[i] == qp.group[j]:
            room = min(qp.upper[i] - beta[i], beta[j] - qp.lower[j], 2.0)
            step = room * rng.choice([0.5, 1.0])
            beta[i], beta[j] = beta[i] + step, beta[j] - step
    return beta


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_start_is_feasible(loss, intercept):
    """The start is in the box and has the right sums, also from a point that is neither."""
    problem = instance(loss, intercept)
    rng = np.random.default_rng(0)
    assert infeasibility(problem.qp, feasible_start(problem.qp)) <= 1e-14
    for _ in range(5):
        assert infeasibility(problem.qp, feasible_start(problem.qp, near=rng.normal(size=problem.qp.n_vars))) <= 1e-13


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_objective_and_violation_equal_double_loops(loss, intercept):
    """The vectorised formulas equal their definitions, written with loops."""
    problem = instance(loss, intercept, n=12)
    qp, rng = problem.qp, np.random.default_rng(1)
    for _ in range(5):
        beta = random_feasible(problem, rng)
        F = problem.F(beta)
        np.testing.assert_allclose(dual_objective(qp, beta, F), -objective(problem.K, qp, beta), rtol=1e-10, atol=1e-12)
        worst = 0.0
        for g in range(max(qp.n_groups, 1)):
            m, M = -np.inf, np.inf
            for v in range(qp.n_vars):
                if qp.n_groups and qp.group[v] != g:
                    continue
                s = qp.linear[v] - F[v if qp.sample is None else qp.sample[v]] - qp.ridge[v] * beta[v]
                if beta[v] < qp.upper[v]:
                    m = max(m, s - qp.l1[v] if beta[v] >= 0 else s + qp.l1[v])
                if beta[v] > qp.lower[v]:
                    M = min(M, s + qp.l1[v] if beta[v] <= 0 else s - qp.l1[v])
            found = [side[g] for side in brackets(qp, beta, F)]
            np.testing.assert_allclose(found, [m, M], rtol=1e-12)
            worst = max(worst, m - M) if qp.n_groups else max(worst, m, -M)
        np.testing.assert_allclose(violation(qp, beta, F), worst, rtol=1e-12)


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_violation_vanishes_at_the_optimum_only(loss, intercept):
    """The reference solution violates nothing; any exchange of weight does, and lowers the dual."""
    problem = instance(loss, intercept)
    qp = problem.qp
    beta = solve_qp(problem.K, qp)
    assert violation(qp, beta, problem.F(beta)) < 1e-8
    optimum = dual_objective(qp, beta, problem.F(beta))
    other = feasible_start(qp, near=beta + np.random.default_rng(0).normal(size=qp.n_vars))
    assert violation(qp, other, problem.F(other)) > 1e-3
    assert dual_objective(qp, other, problem.F(other)) < optimum


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_thresholds_are_the_multipliers_of_the_sums(loss, intercept):
    """At the optimum the thresholds minimise the primal, and lie between m and M."""
    problem = instance(loss, intercept)
    qp = problem.qp
    beta = solve_qp(problem.K, qp)
    F = problem.F(beta)
    b = thresholds(qp, beta, F)
    assert b.shape == qp.sums.shape
    if not intercept:
        return
    m, M = brackets(qp, beta, F)
    assert (b >= m - 1e-8).all() and (b <= M + 1e-8).all()
    best = loss.best_thresholds(problem.y, F, problem.weight)
    primal, lowest = (
        loss.primal(float(F @ qp.at_samples(beta, len(F))), problem.y, F, problem.weight, c, qp.sums) for c in (b, best)
    )
    np.testing.assert_allclose(primal, lowest, rtol=1e-8, atol=1e-8)


def test_thresholds_without_free_variables():
    """Between all bounds the middle is taken, next to one infinite end the other end, between two of them 0."""
    y = np.array([1.0, -1.0])
    qp = Hinge().box_qp(y, np.ones(2), True)
    F = np.array([0.25, -0.5])
    # both at their bounds C: m = -1 + 0.5 from the second, M = 1 - 0.25 from the first
    assert thresholds(qp, np.array([1.0, -1.0]), F).tolist() == [0.125]
    # both at 0: m = 0.75 from the first, M = -0.5 from the second
    assert thresholds(qp, np.zeros(2), F).tolist() == [0.125]
    one = Hinge().box_qp(np.ones(2), np.ones(2), True)
    assert thresholds(one, np.zeros(2), F).tolist() == [1.5]
    assert thresholds(one, np.ones(2), F).tolist() == [0.75]
    assert thresholds(Hinge().box_qp(y, np.zeros(2), True), np.zeros(2), F).tolist() == [0.0]
    # a variable at its kink is not free
    tube = EpsilonInsensitive(0.5).box_qp(np.array([0.5, 2.0]), np.ones(2), True)
    assert thresholds(tube, np.array([0.0, 0.5]), np.zeros(2)).tolist() == [1.5]


def test_thresholds_of_the_largest_feasible_nu_are_finite():
    """All positive samples at their bound leave b₊ no upper end: its lower end is used, where LIBSVM divides by inf."""
    y = np.repeat([1.0, -1.0], [3, 9])
    K = np.eye(12)
    qp = NuHinge(0.5).box_qp(y, np.ones(12), True)
    beta = solve_qp(K, qp)
    assert np.isfinite(thresholds(qp, beta, K @ beta)).all()
    np.testing.assert_allclose(beta, np.where(y > 0, 1.0, -1 / 3), atol=1e-9)


def test_problem_is_a_value_with_one_program():
    """The program is built once; a restriction has the program of its rows."""
    rng = np.random.default_rng(0)
    y = np.where(rng.normal(size=10) > 0, 1.0, -1.0)
    problem = DualProblem(None, Hinge(), y, np.arange(1.0, 11.0))
    assert problem.n == 10 and problem.qp is problem.qp
    index = np.array([1, 3, 5])
    part = problem.restrict(index)
    np.testing.assert_array_equal(part.qp.upper, problem.qp.upper[index])
    flipped = problem.restrict(index, -y[index])
    np.testing.assert_array_equal(flipped.qp.upper, -problem.qp.lower[index])
    assert DualProblem(None, OneClass(0.5), np.ones(4), np.ones(4)).start().tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("place", [0, 3, 9])
def test_a_value_that_is_no_number_stays_visible(place):
    """Wherever NaN stands among the values of F, the violation is infinite."""
    problem = instance(Hinge(), True, n=10)
    F = np.zeros(10)
    F[place] = np.nan
    assert violation(problem.qp, np.zeros(10), F) == np.inf
