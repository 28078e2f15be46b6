"""The ranking of the linear solvers: a problem goes where it is solved fastest, and none is left unsolved."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.linear import linear_plan
from mercer.linear.linear_problem import LinearProblem, Penalty, Rows
from mercer.linear.linear_solution import LinearOptions, LinearPlan
from mercer.losses import EpsilonInsensitive, HardMargin, Hinge, Pinball, SquaredHinge
from mercer.problems.clock import Clock
from mercer.problems.solution import Status


def problem(n, d, loss=None, density=None, penalty=None, C=1.0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) if density is None else sp.random(n, d, density, format="csr", random_state=0)
    y = np.where(rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return LinearProblem(Rows.of(X, 1.0), loss or Hinge(), y, np.full(n, C), False, penalty or Penalty())


def names(task):
    return [name for name, _ in linear_plan.ranked(task)]


class TestRanking:
    def test_squared_losses(self):
        """Newton for more samples than features, coordinate descent first for others, one compiled run for few."""
        assert names(problem(3000, 10, SquaredHinge()))[0] == "newton"
        assert names(problem(300, 3000, SquaredHinge()))[:2] == ["hybrid", "newton"]
        for n, d in ((300, 10), (10, 300), (90, 200)):
            assert names(problem(n, d, SquaredHinge())) == ["small", "newton", "interior"]

    def test_kinks(self):
        """Interior points for tall dense data, coordinate descent first for sparse or wide, one run for few."""
        for loss in (Hinge(), EpsilonInsensitive(0.1), Pinball(0.2)):
            assert names(problem(5000, 10, loss)) == ["interior"]
            assert names(problem(2000, 400, loss, density=0.01)) == ["hybrid", "interior"]
            assert names(problem(250, 1000, loss)) == ["hybrid", "interior"]
            assert names(problem(50, 200, loss)) == ["small", "interior"]

    @pytest.mark.slow
    def test_too_large_to_factorise(self):
        """Coordinate descent with Newton steps alone, without a limit."""
        assert linear_plan.ranked(problem(5000, 6000, density=0.0005)) == [("hybrid", -1)]

    def test_dense_rows_that_are_mostly_zero(self):
        """Images: coordinate descent is tried on their entries that are not 0."""
        task = problem(2000, 200, Hinge())
        assert names(task) == ["interior"]
        X = task.rows.X * (np.random.default_rng(0).random(task.rows.X.shape) < 0.1)
        task = replace(task, rows=Rows.of(X, 1.0))
        assert names(task) == ["hybrid", "interior"]
        assert (
            linear_plan._mostly_zero(task, 1 << 28).rows.sparse and not linear_plan._mostly_zero(task, 1000).rows.sparse
        )
        solution = linear_plan.solve_linear("auto", task, LinearOptions(tol=1e-6), Clock())
        assert solution.status is Status.CONVERGED and solution.certificate.relative_gap <= 1e-6

    def test_l1_penalties(self):
        """The proximal Newton method for many features."""
        for loss in (Hinge(), SquaredHinge()):
            assert names(problem(100, 500, loss, penalty=Penalty(1.0, 0.0))) == ["proximal", "interior"]

    def test_what_only_one_can_do(self):
        """l1 penalties on few features and hard margins."""
        assert names(problem(100, 5, penalty=Penalty(1.0, 0.0))) == ["interior"]
        assert names(problem(100, 5, HardMargin(), C=np.inf)) == ["interior"]


class TestHandingOn:
    def test_a_trial_that_fails(self):
        """After the first passes, which come to nothing, the next solver is run; the iterations add up."""
        task = problem(200, 100, density=0.2, C=100.0)
        options = LinearOptions(tol=1e-10, max_iter=1000, trial_passes=linear_plan.FEWEST_PASSES)
        solution = linear_plan.solve_linear("auto", task, options, Clock())
        alone = linear_plan.solve_linear("interior", task, options, Clock())
        assert solution.status is Status.CONVERGED
        assert solution.n_iter == linear_plan.FEWEST_PASSES // 4 + alone.n_iter
        assert len(solution.trace) > len(alone.trace)

    def test_a_trial_that_succeeds(self):
        """The trial converges within twice its passes."""
        task = problem(200, 100, density=0.2, C=0.01)
        solution = linear_plan.solve_linear("auto", task, LinearOptions(tol=1e-8), Clock())
        assert solution.status is Status.CONVERGED
        assert solution.n_iter <= 2 * dict(linear_plan.ranked(task))["hybrid"]

    @pytest.mark.parametrize("max_iter", [0, 3, linear_plan.FEWEST_PASSES // 4])
    def test_the_users_limit_holds(self, max_iter):
        """A limit below that of the trial ends the run."""
        task = problem(200, 100, density=0.2, C=100.0)
        options = LinearOptions(tol=1e-12, max_iter=max_iter, trial_passes=linear_plan.FEWEST_PASSES)
        solution = linear_plan.solve_linear("auto", task, options, Clock())
        assert solution.status is Status.MAX_ITER and solution.n_iter == max_iter

    def test_a_solver_that_stalls(self):
        """A problem whose solver is stopped by rounding is handed to the next solver."""
        solution = linear_plan.solve_linear("auto", problem(200, 10, C=1e8), LinearOptions(), Clock())
        assert [(stage.solver, stage.status) for stage in solution.stages] == [
            ("small", Status.STALLED),
            ("interior", Status.CONVERGED),
        ]
        assert solution.status is Status.CONVERGED and solution.certificate.relative_gap <= LinearOptions().tol

    def test_the_solution_names_its_solvers(self):
        """Each stage has its iterations and its gap, the plan prints them, and a solver by name is the only stage."""
        task = problem(200, 100, density=0.2, C=100.0)
        options = LinearOptions(tol=1e-10, max_iter=1000, trial_passes=linear_plan.FEWEST_PASSES)
        first, second = linear_plan.solve_linear("auto", task, options, Clock()).stages
        assert (first.solver, second.solver) == ("hybrid", "interior")
        assert first.n_iter == linear_plan.FEWEST_PASSES // 4 and first.relative_gap > 1e-10 >= second.relative_gap
        assert str(LinearPlan(((first, second),))) == (
            f"hybrid (5 passes, relative gap {first.relative_gap:.1e}), then interior "
            f"({second.n_iter} steps, relative gap {second.relative_gap:.1e}): the certificate is within tol"
        )
        for name, loss in (("interior", Hinge()), ("coordinate", Hinge()), ("newton", SquaredHinge())):
            found = linear_plan.solve_linear(name, replace(task, loss=loss), replace(options, max_iter=5), Clock())
            assert [stage.solver for stage in found.stages] == [name]

    def test_the_trial_draws_its_order(self):
        """rule is of solver="coordinate" alone: "auto" gives the same bits whatever it is."""
        task = problem(250, 1000, Hinge())
        found = [
            linear_plan.solve_linear("auto", task, LinearOptions(rule=rule), Clock()).w for rule in ("random", "greedy")
        ]
        assert np.array_equal(*found)
