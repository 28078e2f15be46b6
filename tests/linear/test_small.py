"""Few samples in one compiled run: the optimum of the other solvers, or an honest end."""

import numpy as np
import pytest
from tests.linear.tasks import LOSSES, SHAPES, check, make
from tests.naming import named

from mercer import LinearSVC, LinearSVR
from mercer.linear import small
from mercer.linear.linear_problem import LinearProblem, Penalty, Rows
from mercer.linear.linear_solution import LinearOptions
from mercer.losses import EpsilonInsensitive, Hinge, SquaredHinge
from mercer.problems.clock import Clock
from mercer.problems.solution import Status

INTERCEPTS = [(0.0, False), (1.0, False), (0.0, True)]


def run(problem, tol=1e-8, start=None, limit=None, **more):
    return small.solve(problem, LinearOptions(tol=tol, **more), Clock(limit), start)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("bias", "intercept"), INTERCEPTS)
def test_every_shape(shape, loss, bias, intercept):
    """The reference's optimum for any C, whatever the loss, the rows and the intercept."""
    for seed, C in enumerate((1e-8, 1e-2, 1.0, 1e2)):
        problem = make(shape, loss, C, bias, intercept, seed=seed, penalty=Penalty(0.0, 0.5))
        check(problem, run(problem), 1e-8)


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.1)], ids=named)
@pytest.mark.parametrize(("bias", "intercept"), INTERCEPTS)
def test_huge_C(loss, bias, intercept):
    """C = 1e6 ends within 1e-6 of the optimum, or says that it does not."""
    solution = run(make("tall", loss, 1e6, bias, intercept), 1e-6)
    assert solution.status in (Status.CONVERGED, Status.STALLED) and solution.certificate.valid
    assert (solution.certificate.relative_gap <= 1e-6) == (solution.status is Status.CONVERGED)


def test_limits_and_warm_start():
    """A limit of the user's is called one and leaves a certified model; its own solution needs no step."""
    problem = make("tall", Hinge(), 1.0, 0.0, True)
    users = run(problem, max_iter=2)
    assert users.status is Status.MAX_ITER and users.n_iter == 2 and users.certificate.valid
    assert run(problem, 1e-14, limit=0.0).status is Status.TIME_LIMIT
    assert run(problem, 1e-4, start=run(problem)).n_iter <= 1
    wide = make("wide", SquaredHinge(), 1.0, 1.0)
    assert run(wide, 1e-4, start=run(wide)).n_iter == 0


def test_numbers_that_cannot_be_squared():
    """No model: another solver goes on."""
    rng = np.random.default_rng(0)
    X = 1e200 * rng.normal(size=(20, 3))
    problem = LinearProblem(Rows.of(X, 1.0), Hinge(), np.where(X[:, 0] > 0, 1.0, -1.0), np.ones(20))
    solution = run(problem)
    assert solution.status is Status.STALLED and not solution.certificate.relative_gap <= 1e-8


def test_estimators_use_it():
    """LinearSVC and LinearSVR on few samples, the targets in any unit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X @ rng.normal(size=4) + 0.3 * rng.normal(size=60)
    models = [LinearSVC(loss=loss).fit(X, y > 0) for loss in ("hinge", "squared_hinge")]
    models += [LinearSVR(epsilon=0.1 * unit).fit(X, unit * y) for unit in (1e-6, 1.0, 1e6)]
    for model in models:
        assert model.certificate_.relative_gap <= 1e-4
        assert [run[0].solver for run in model.plan_.runs] == ["small"]
