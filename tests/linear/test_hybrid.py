"""Coordinate descent with Newton steps: what solver="auto" runs on sparse and wide data."""

import numpy as np
import pytest
from tests.linear.tasks import LOSSES, SHAPES, SMOOTH, check, make
from tests.naming import named

from mercer.linear.hybrid import solve
from mercer.linear.linear_problem import LinearProblem, Penalty, Rows, balanced, linear_certificate
from mercer.linear.linear_solution import LinearOptions
from mercer.losses import EpsilonInsensitive, Hinge, SquaredHinge
from mercer.problems.clock import Clock
from mercer.problems.solution import Status

TOL = 1e-8


def run(problem, tol=TOL, start=None, limit=60.0, **more):
    return solve(problem, LinearOptions(tol=tol, **more), Clock(limit), start)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_optimum_of_the_reference(loss, shape):
    """Within 1e-8 of clarabel's optimum for any C, with a penalised and without an intercept."""
    for seed, C in enumerate((1e-8, 1e-2, 1.0, 1e2)):
        for bias in (0.0, 1.0):
            problem = make(shape, loss, C, bias, seed=seed)
            check(problem, run(problem), TOL)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_free_intercept(loss, shape):
    """The sum of β is 0 and the optimum that of the reference."""
    for seed, C in enumerate((1e-2, 1.0, 1e2)):
        problem = make(shape, loss, C, 0.0, intercept=True, seed=seed)
        solution = run(problem)
        check(problem, solution, TOL)
        assert abs(solution.beta.sum()) <= 1e-9 * max(np.abs(solution.beta).max(), 1e-300)


@pytest.mark.parametrize("shape", ["tall", "wide", "sparse", "opposite", "zero rows"])
@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_huge_C(loss, shape):
    """C = 1e8 ends in seconds, within 1e-6 of the optimum."""
    problem = make(shape, loss, 1e8, 1.0)
    solution = run(problem, 1e-6)
    assert solution.status is Status.CONVERGED and solution.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("loss", SMOOTH, ids=named)
def test_the_constant_feature_has_its_best_weight(loss):
    """However early a run ends, no other weight of it has a lower primal, and the proof is of the model."""
    for shape, l2 in (("sparse", 1.0), ("zero weights", 1.0), ("tall", 4.0)):
        problem = make(shape, loss, 1.0, 2.0, penalty=Penalty(0.0, l2))
        solution = run(problem, max_iter=2)
        assert solution.status is Status.MAX_ITER
        step = np.zeros(problem.rows.d)
        step[-1] = 0.02 * abs(solution.w[-1]) + 1e-4
        lowest = problem.primal(solution.w, 0.0)
        assert lowest < min(problem.primal(solution.w + step, 0.0), problem.primal(solution.w - step, 0.0))
        again = linear_certificate(problem, solution.w, 0.0, solution.beta)
        assert again.valid and again.primal == pytest.approx(solution.certificate.primal, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_storage_makes_no_difference(loss):
    """Dense, CSR and CSC, float64 and float32 of the same numbers give one value."""
    import scipy.sparse as sp

    values = [
        run(make("sparse", loss, 1.0, 1.0, stored=stored, dtype=dtype)).certificate.primal
        for stored in (np.asarray, sp.csr_array, sp.csc_array)
        for dtype in (np.float64,)
    ]
    np.testing.assert_allclose(values, values[0], rtol=2 * TOL)
    single = make("sparse", loss, 1.0, 1.0, stored=np.asarray, dtype=np.float32)
    assert single.rows.dtype == np.float32
    check(single, run(single), TOL)


def test_penalty_of_another_weight():
    """½ l2 |w|² with weight C is l2 times the problem of weight C / l2."""
    problem = make("sparse", Hinge(), 1.0, 1.0, penalty=Penalty(0.0, 4.0))
    check(problem, run(problem), TOL)


def test_large_sparse_problem_with_large_C():
    """Conjugate gradients on the free variables: a gap of 1e-7 at C = 100 within 300 passes."""
    rng = np.random.default_rng(0)
    import scipy.sparse as sp

    X = sp.random_array((1500, 4000), density=0.01, rng=rng, format="csr")
    y = np.where(X @ rng.normal(size=4000) + 0.1 * rng.normal(size=1500) > 0, 1.0, -1.0)
    for intercept in (False, True):
        problem = LinearProblem(Rows.of(X, 0.0 if intercept else 1.0), Hinge(), y, np.full(1500, 100.0), intercept)
        solution = run(problem, 1e-7, max_iter=300)
        assert solution.status is Status.CONVERGED
        proof = linear_certificate(problem, solution.w, solution.intercept, solution.beta)
        assert proof.valid and proof.relative_gap <= 1e-7


def test_warm_start_ends_at_once():
    """From its own solution a run needs no pass; from that of another C few."""
    problem = make("sparse", Hinge(), 1.0, 1.0)
    solution = run(problem)
    assert run(problem, start=solution).n_iter == 0
    other = make("sparse", Hinge(), 2.0, 1.0)
    check(other, run(other, start=solution), TOL)


def test_limits_leave_a_certified_model():
    """max_iter and the time limit end the run with a finite certificate."""
    problem = make("sparse", Hinge(), 100.0, 1.0)
    solution = run(problem, max_iter=1)
    assert solution.status is Status.MAX_ITER and np.isfinite(solution.certificate.gap) and solution.n_iter == 1
    solution = run(problem, limit=0.0)
    assert solution.status is Status.TIME_LIMIT and solution.certificate.valid


def test_repeatable():
    """The same seed gives the same bits."""
    problem = make("sparse", EpsilonInsensitive(0.1), 1.0, 1.0)
    assert np.array_equal(run(problem, seed=3).w, run(problem, seed=3).w)


def test_row_order_does_not_matter():
    """A permutation of the samples permutes β and keeps w."""
    problem = make("sparse", SquaredHinge(), 1.0, 1.0)
    order = np.random.default_rng(1).permutation(problem.n)
    moved = LinearProblem(problem.rows.take(order), problem.loss, problem.y[order], problem.weight[order])
    # a gap of 1e-12 leaves β its root, divided by the ridge
    np.testing.assert_allclose(run(problem, 1e-12).beta[order], run(moved, 1e-12).beta, atol=2e-5)


def test_balanced():
    """The sum becomes 0 and the box is kept."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        problem = make("sparse", Hinge(), 1.0, 0.0, True, seed=int(rng.integers(1 << 30)))
        qp = problem.qp
        beta = np.clip(rng.normal(size=problem.n), qp.lower, qp.upper)
        found = balanced(qp, beta)
        assert abs(found.sum()) <= 1e-12
        assert (found >= qp.lower - 1e-15).all() and (found <= qp.upper + 1e-15).all()
