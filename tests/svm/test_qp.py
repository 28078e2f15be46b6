"""The interior-point method stands beside the exact solver, for small problems."""

import numpy as np
import pytest
from tests.problems.instances import FORMS
from tests.svm.ways import run, task

from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels import Linear
from mercer.losses import Hinge, NuInsensitive
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem
from mercer.problems.solution import Options, Status
from mercer.svm import solve as exact
from mercer.svm.solve import solve_qp
from mercer.testing import check_solver
from mercer.testing.solvers import check_solution


def test_names():
    """ "qp" is the interior-point method, all others the exact solver."""
    job = task(Hinge(), n=60)
    steps = {name: run(job, solver=name).steps for name in ("qp", "auto", "decomposition")}
    assert steps["qp"] < 30 < steps["auto"] == steps["decomposition"]


@pytest.mark.parametrize("solve", [exact.solve, solve_qp])
def test_solvers_keep_the_contract(solve):
    """On every loss: tol, feasibility, certificate, order of samples, start, early end."""
    check_solver(solve)


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_both_solvers_agree(loss, intercept):
    """The interior-point optimum is within what tol allows of the exact solver's."""
    job = task(loss, intercept, n=80)
    found = solve_qp(Data(job.kernel, job.X, 80), job.problem, Options(), Clock())
    check_solution(job, found, 1e-6)
    other = run(job, tol=1e-4)
    excess = job.objective(other.beta) - job.objective(found.beta)
    assert -1e-8 <= excess <= 1e-4 * np.abs(other.beta - found.beta).sum() + 1e-8


def test_too_many_variables():
    """5001 samples, or 2501 with two variables each, are refused with the way out."""
    for n, loss, n_vars in ((5001, Hinge(), 5001), (2501, NuInsensitive(0.5), 5002)):
        X = np.zeros((n, 1))
        problem = DualProblem(None, loss, np.where(np.arange(n) % 2, 1.0, -1.0), np.ones(n), True)
        with pytest.raises(InvalidInputError) as error:
            solve_qp(Data(Linear(), X, n), problem, Options(), Clock())
        assert str(error.value) == (
            f"solver='qp' factors a dense matrix of all {n_vars} variables: it takes at most 5000. Use solver='auto'."
        )


def test_max_iter_ends_the_interior_point_method():
    """After no iterations or one the model is feasible, and converged only if it is within tol."""
    job = task(Hinge(), n=60, C=100.0)
    for max_iter in (0, 1):
        options = Options(max_iter=max_iter, tol=1e-9)
        found = solve_qp(Data(job.kernel, job.X, 60), job.problem, options, Clock())
        assert found.status in (Status.MAX_ITER, Status.CONVERGED) and found.steps <= max_iter
        check_solution(job, found, 1e-9 if found.status is Status.CONVERGED else np.inf)
