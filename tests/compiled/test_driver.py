"""The driver finds the optimum of every program from each of its row sources, in one call or in many."""

import numpy as np
import pytest
from tests.problems.instances import FORMS, instance

from mercer.losses import Hinge
from mercer.problems import feasible_start, violation
from mercer.problems.clock import Clock
from mercer.problems.solution import Options
from mercer.svm._block_newton_loops import NEEDS_NEWTON, newton_address
from mercer.svm._driver_loops import CONVERGED, STUCK, UNFINISHED, drive, space_for
from mercer.svm.decomposition import Active
from mercer.svm.dense import DenseRun

N, TOL = 60, 1e-6
NEWTON = newton_address(np.float64, np.float64)


class Run:
    """A run on a stored matrix, whose columns beyond those of the samples stand for others that are not kept."""

    def __init__(self, loss, intercept, size=24, seed=0):
        self.problem = instance(loss, intercept, n=N, seed=seed)
        qp = self.problem.qp
        start = feasible_start(qp)
        self.active = Active.of(qp, np.arange(N), start, self.problem.F(start))
        size = min(size, len(self.active.beta))
        self.space = space_for(len(self.active.beta), size, self.active.n_groups, np.full(size**2, np.nan))
        self.K = np.hstack([self.problem.K, np.full((N, 3), np.nan)])

    def drive(self, max_rounds=500, newton=NEWTON, ranges=((0, 20), (20, N))):
        """The result of a call, and β of the variables without the null variable."""
        active = self.active
        found = drive(
            self.K, np.array(ranges), None, active.program, active.null, active.beta, active.F, TOL, newton, max_rounds,
            self.space,
        )  # fmt: skip
        return *found, active.beta[: self.problem.qp.n_vars]


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_the_optimum_of_a_stored_matrix(loss, intercept):
    """No violation beyond tol, F = Kβ, and the dual value of the dense solver."""
    run = Run(loss, intercept)
    ended, rounds, steps, beta = run.drive()
    qp, F = run.problem.qp, run.problem.F(beta)
    assert ended == CONVERGED and 0 < rounds <= steps
    np.testing.assert_allclose(run.active.F[:N], F, atol=1e-9)
    assert violation(qp, beta, F) <= 1.01 * TOL
    dense = DenseRun(run.problem.K, qp, feasible_start(qp), Options(tol=TOL), Clock())
    dense.run(TOL)
    exact, found = (run.problem.certificate(b) for b in (dense.beta, beta))
    assert found.dual == pytest.approx(exact.dual, rel=1e-7, abs=1e-9)


def test_many_calls_are_one():
    """A limit of the rounds ends a call, and the next one continues it with the same block."""
    whole, parts = Run(Hinge(), True), Run(Hinge(), True)
    _, rounds, steps, beta = whole.drive()
    counts = [0, 0]
    for _ in range(rounds + 1):
        ended, some_rounds, some_steps, found = parts.drive(max_rounds=1)
        counts[0] += some_rounds
        counts[1] += some_steps
        if ended != UNFINISHED:
            break
    assert ended == CONVERGED and counts == [rounds, steps] and rounds > 2
    np.testing.assert_array_equal(found, beta)


def widened(run):
    """The run with a box that no variable reaches."""
    program = run.active.program
    program.upper[program.upper > 0], program.lower[program.lower < 0] = 1e6, -1e6
    return run


def test_a_run_without_progress_is_stuck():
    """Rounds without an improvement are counted over all calls; here F is kept at one sample only."""
    run, ended, calls = widened(Run(Hinge(), True)), UNFINISHED, 0
    while ended == UNFINISHED and calls < 100:
        ended, calls = run.drive(max_rounds=5, ranges=((0, 1),))[0], calls + 1
    assert ended == STUCK and calls > 2


def test_newtons_step_is_asked_for():
    """Without the step's address the run ends where the step is needed; with it, the run goes on from there."""
    run = widened(Run(Hinge(), True, size=N))  # nearly separable: many free variables
    ended, _, _, _ = run.drive(newton=0)
    assert ended == NEEDS_NEWTON
    ended, _, _, beta = run.drive()
    assert ended == CONVERGED
    np.testing.assert_allclose(run.active.F[:N], run.problem.F(beta), rtol=1e-7, atol=1e-6)


def test_values_that_are_not_numbers():
    """A matrix with NaN ends the run: nothing loops."""
    run = Run(Hinge(), True)
    run.K[:] = np.nan
    assert run.drive()[0] == STUCK
