"""The proximal Newton method for l1 penalties."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.clocks import SteppedClock
from tests.linear.tasks import LOSSES, SHAPES, SMOOTH, make
from tests.naming import named
from tests.reference.linear import solve as reference

from mercer.exceptions import InvalidInputError
from mercer.linear import proximal
from mercer.linear.linear_plan import solve_linear
from mercer.linear.linear_problem import LinearProblem, Penalty, Rows, linear_certificate
from mercer.linear.linear_solution import LinearOptions
from mercer.linear.proximal import Columns, solve
from mercer.losses import EpsilonInsensitive, HardMargin, Hinge, Pinball, SquaredHinge
from mercer.problems.clock import Clock
from mercer.problems.solution import Status

LASSO, NET = Penalty(1.0, 0.0), Penalty(0.3, 0.7)
KINDS = {
    "hinge loss": ("hinge", 0.0),
    "squared hinge loss": ("squared_hinge", 0.0),
    "epsilon-insensitive loss": ("epsilon_insensitive", 0.1),
    "squared epsilon-insensitive loss": ("squared_epsilon_insensitive", 0.1),
    "pinball loss": ("pinball", 0.3),
}


def run(problem, tol=1e-7, start=None, limit=60.0, **more):
    return solve(problem, LinearOptions(tol=tol, **more), Clock(limit), start)


def best_value(problem):
    """clarabel's value of the primal."""
    X = problem.rows.X.toarray() if problem.rows.sparse else np.asarray(problem.rows.X)
    if problem.rows.bias:
        X = np.column_stack([X, np.full(len(X), problem.rows.bias)])
    kind, parameter = KINDS[problem.loss.name]
    l1, l2 = problem.penalty
    more = {"l1": l1, "l2": l2, "free": problem.intercept, "parameter": parameter}
    return reference(X, problem.y, problem.weight, kind, **more).value


def check(problem, solution, tol):
    proof = solution.certificate
    assert solution.status is Status.CONVERGED and proof.valid and proof.relative_gap <= tol, str(proof)
    again = linear_certificate(problem, solution.w, solution.intercept, solution.beta)
    assert again.primal == pytest.approx(proof.primal, rel=1e-12)
    best = best_value(problem)
    size = max(abs(best), 1e-9)
    assert proof.primal <= best + (tol + 1e-8) * size
    assert proof.dual <= best + 1e-8 * size


@pytest.mark.parametrize("penalty", [LASSO, NET], ids=["l1", "elastic net"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", SMOOTH, ids=named)
def test_optimum_of_the_reference(loss, shape, penalty):
    """Squared losses: within 1e-7 of clarabel's optimum, with penalised, free and without intercepts."""
    for seed, (C, bias, intercept) in enumerate([(0.1, 1.0, False), (10.0, 0.0, False), (1.0, 0.0, True)]):
        problem = make(shape, loss, C, bias, intercept, seed=seed, penalty=penalty)
        check(problem, run(problem), 1e-7)


@pytest.mark.parametrize("penalty", [LASSO, NET], ids=["l1", "elastic net"])
@pytest.mark.parametrize("shape", ["tall", "wide", "sparse", "zero weights"])
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss not in SMOOTH], ids=named)
def test_straight_pieces(loss, shape, penalty):
    """The method of multipliers: within 1e-4 of the optimum alone, within 1e-7 with what follows it."""
    for seed, (C, bias, intercept) in enumerate([(0.1, 1.0, False), (2.0, 0.0, False), (1.0, 0.0, True)]):
        problem = make(shape, loss, C, bias, intercept, seed=seed, penalty=penalty)
        check(problem, run(problem, 1e-4), 1e-4)
        check(problem, solve_linear("interior", problem, LinearOptions(tol=1e-7), Clock(60)), 1e-7)


@pytest.mark.parametrize("loss", [Pinball(0.1), EpsilonInsensitive(0.1)], ids=named)
@pytest.mark.parametrize("penalty", [LASSO, NET], ids=["l1", "elastic net"])
def test_straight_pieces_of_many_samples(loss, penalty):
    """The ridge of the multipliers' rounds falls until the gap is small: 500 samples of columns of all scales."""
    rng = np.random.default_rng(22)
    X = rng.normal(size=(500, 10)) * 10.0 ** rng.uniform(-1, 1, size=10)
    y = X @ (rng.normal(size=10) * (rng.random(10) < 0.3)) + rng.normal(size=500)
    problem = LinearProblem(Rows.of(X, 1.0), loss, y, np.full(500, 3.0), False, penalty)
    solution = run(problem, 1e-8)
    assert solution.status is Status.CONVERGED and solution.certificate.relative_gap <= 1e-8


def text(n=400, d=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.02, rng=rng, format="csr")
    w = rng.normal(size=d) * (rng.random(d) < 0.05)
    return X, np.where(X @ w + 0.05 * rng.normal(size=n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=named)
@pytest.mark.slow
def test_many_features(loss):
    """The choice of "auto" for wide sparse rows; few features get a weight, and dense rows give the same value."""
    X, y = text()
    values = []
    for stored in (X, X.toarray(), X.astype(np.float32)):
        problem = LinearProblem(Rows.of(stored, 1.0), loss, y, np.full(len(y), 1.0), False, LASSO)
        solution = solve_linear("auto", problem, LinearOptions(tol=1e-6), Clock(60))
        assert solution.status is Status.CONVERGED and solution.certificate.relative_gap <= 1e-6
        assert 0 < np.count_nonzero(solution.w) < len(y)
        values.append(solution.certificate.primal)
    np.testing.assert_allclose(values, values[0], rtol=1e-5)
    assert values[0] == pytest.approx(best_value(problem), rel=2e-6)


def test_warm_start_ends_at_once():
    """From its own solution a run needs no step."""
    X, y = text()
    problem = LinearProblem(Rows.of(X, 1.0), SquaredHinge(), y, np.full(len(y), 1.0), False, LASSO)
    solution = run(problem, 1e-6)
    assert solution.n_iter > 0 and run(problem, 1e-5, start=solution).n_iter == 0


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=named)
def test_limits_leave_a_certified_model(loss):
    """max_iter and the time limit end the run with a finite certificate."""
    X, y = text()
    problem = LinearProblem(Rows.of(X, 1.0), loss, y, np.full(len(y), 10.0), False, LASSO)
    solution = run(problem, max_iter=2)
    assert solution.status is Status.MAX_ITER and solution.n_iter == 2 and np.isfinite(solution.certificate.gap)
    solution = run(problem, limit=0.0)
    assert solution.status is Status.TIME_LIMIT and solution.certificate.valid


def test_no_iteration_ends_after_the_limit():
    """An iteration that takes as long as the one before, and would end too late, is not begun."""

    class OneSecondSteps(proximal._Run):
        def _direction(self, r, violations):
            clock.now += 1.0
            return super()._direction(r, violations)

    X, y = text()
    problem = LinearProblem(Rows.of(X, 1.0), Hinge(), y, np.full(len(y), 10.0), False, LASSO)
    clock = SteppedClock(4.5)
    run = OneSecondSteps(problem, LinearOptions(tol=1e-12), clock, None)
    with np.errstate(all="ignore"):
        assert run.run() is Status.TIME_LIMIT and run.n_iter == clock.now == 4


def test_columns_of_dense_samples():
    """Some features of some samples, each times its root, for any number of rows that are copied at a time."""
    rng = np.random.default_rng(0)
    X, samples = rng.normal(size=(1300, 7)), np.flatnonzero(rng.random(1300) < 0.9)
    root = rng.random(len(samples))
    for bias, features in ((0.0, [1, 4, 6]), (2.0, [0, 3, 7]), (2.0, [0, 3])):
        whole = np.column_stack([X, np.full(1300, bias)])
        found = Columns.of(Rows.of(X, bias), samples, np.array(features), root).matrix
        np.testing.assert_allclose(found, whole[np.ix_(samples, features)] * root[:, None], rtol=1e-15)


def test_no_weight_pays():
    """Where C is so small that w = 0 is best, it is found."""
    X, y = text()
    for loss in (Hinge(), SquaredHinge()):
        problem = LinearProblem(Rows.of(X), loss, y, np.full(len(y), 1e-6), False, LASSO)
        solution = run(problem)
        assert solution.status is Status.CONVERGED and not solution.w.any()


def test_hard_margins_are_refused():
    """A sentence says what it cannot do."""
    with pytest.raises(InvalidInputError, match="needs a finite C"):
        run(make("sparse", HardMargin(), 1.0, 1.0, penalty=LASSO))
