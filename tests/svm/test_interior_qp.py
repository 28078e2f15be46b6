"""The interior-point method finds the optimum of every program, however badly posed."""

import numpy as np
import pytest
from tests.problems.instances import FORMS, instance
from tests.reference.qp import objective, solve_qp

from mercer.losses import HardMargin, Hinge, NuHinge, NuInsensitive, OneClass, SquaredEpsilonInsensitive
from mercer.problems import infeasibility, violation
from mercer.svm.interior_qp import interior_point

KINDS = ["gaussian", "general", "line", "wide", "repeated", "constant"]


def natural_size(problem, value):
    """The scale of the objective's error: the objective, or if it is zero a fraction of the size of its terms."""
    total = np.abs(problem.qp.sums).max(initial=0.0)
    return max(abs(value), 1e-8 * np.diag(problem.K).mean() * total**2, 1e-300)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e3, 1e6])
def test_optimum_equals_the_reference(kind, C):
    """Every loss, with repeated and constant samples, on a line, for C from 1e-6 to 1e6: to 1e-8 of the objective."""
    for loss, intercept in FORMS:
        if isinstance(loss, HardMargin) and kind not in ("gaussian", "wide"):
            continue
        problem = instance(loss, intercept, n=16, C=C, seed=7, kind=kind)
        qp = problem.qp
        beta, n_iter, converged = interior_point(problem.K, qp)
        value = objective(problem.K, qp, beta)
        reference = objective(problem.K, qp, solve_qp(problem.K, qp))
        assert n_iter <= 60
        assert infeasibility(qp, beta) <= 1e-9 * np.abs(beta).max()
        size = natural_size(problem, reference)
        assert value - reference <= 1e-8 * size, (loss, intercept)
        slopes = max(np.abs(qp.linear).max(), np.diag(problem.K).mean() * np.abs(qp.sums).max(initial=0.0))
        assert violation(qp, beta, problem.F(beta)) <= 1e-6 * slopes, (loss, intercept)
        # beyond, the reference itself is not exact, and ν-SVR's sums of C leave no digits for the objective
        if C <= 1.0:
            assert reference - value <= 1e-8 * size, (loss, intercept)
        if C <= 1.0 or not isinstance(loss, NuInsensitive):
            assert converged, (loss, intercept)


@pytest.mark.parametrize("seed", range(10))
def test_random_problems(seed):
    """Ten more random problems of each loss, certified by their own gap."""
    for loss, intercept in FORMS:
        problem = instance(loss, intercept, n=25, seed=100 + seed)
        beta, _, converged = interior_point(problem.K, problem.qp)
        proof = problem.certificate(beta)
        assert converged and proof.valid and proof.relative_gap < 1e-8 and proof.kkt_violation < 1e-8, (loss, intercept)


def test_many_variables_at_once():
    """Three hundred samples: bounds are met exactly, and the optimum is certified."""
    for loss in (Hinge(), NuHinge(0.2), SquaredEpsilonInsensitive(0.1)):
        problem = instance(loss, n=300, C=10.0)
        beta, _, converged = interior_point(problem.K, problem.qp)
        assert converged and problem.certificate(beta).relative_gap < 1e-10
        at_bound = (beta == problem.qp.lower) | (beta == problem.qp.upper) | ((beta == 0) & (problem.qp.l1 > 0))
        assert at_bound.sum() > 20


def test_forced_variables():
    """Where the sums leave no choice β is what they force: one class, the largest nu, no weight."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 2))
    K = X @ X.T
    qp = Hinge().box_qp(np.ones(8), np.ones(8), True)
    assert interior_point(K, qp).beta.tolist() == [0.0] * 8
    y = np.repeat([1.0, -1.0], [2, 6])
    beta, _, converged = interior_point(K, NuHinge(0.5).box_qp(y, np.ones(8), True))
    assert converged and beta[:2].tolist() == [1.0, 1.0]
    beta, _, converged = interior_point(K, OneClass(1.0).box_qp(y, np.arange(8.0), True))
    assert converged and beta.tolist() == list(range(8))
    beta, n_iter, converged = interior_point(K, Hinge().box_qp(y, np.zeros(8), True))
    assert beta.tolist() == [0.0] * 8 and n_iter == 0 and converged
    empty = interior_point(np.zeros((0, 0)), Hinge().box_qp(np.empty(0), np.empty(0), True))
    assert len(empty.beta) == 0 and empty.converged


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_indefinite_matrix_is_not_converged(loss, intercept):
    """A matrix with a clearly negative eigenvalue is told, after a bounded number of steps, with a feasible β."""
    problem = instance(loss, intercept)
    K = problem.K - 0.5 * np.eye(len(problem.K)) - 100 * np.diag(problem.qp.ridge[: len(problem.K)])
    beta, n_iter, converged = interior_point(K, problem.qp)
    assert not converged and n_iter <= 100
    assert infeasibility(problem.qp, beta) <= 1e-9 * max(1.0, np.abs(beta).max())


def test_what_has_no_solution_is_not_converged():
    """Inseparable classes with a hard margin, sums out of reach, a matrix that is not finite, no iterations."""
    problem = instance(HardMargin(), kind="general")
    assert not interior_point(problem.K, problem.qp).converged
    problem = instance(Hinge())
    assert not interior_point(np.full_like(problem.K, np.nan), problem.qp).converged
    beta, n_iter, converged = interior_point(problem.K, problem.qp, max_iter=2)
    assert (n_iter, converged) == (2, False) and infeasibility(problem.qp, beta) < 1e-12
    short = OneClass(1.0).box_qp(problem.y, problem.weight, True)
    short.sums[0] *= 2
    assert not interior_point(problem.K, short).converged
