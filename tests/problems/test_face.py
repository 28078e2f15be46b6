"""The active-set steps lead from a wrong guess of the free variables to the optimum."""

import numpy as np
import pytest
from tests.problems.instances import FORMS, instance
from tests.reference.qp import program_matrix

from mercer.problems import feasible_start, infeasibility, violation
from mercer.problems.face import polish


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
@pytest.mark.parametrize("guess", ["none", "all", "some"])
def test_polish_ends_at_the_optimum(loss, intercept, guess):
    """From the start, with no, all or some variables said to be free, enough changes of face reach the optimum."""
    problem = instance(loss, intercept, n=16)
    qp = problem.qp
    Q = program_matrix(problem.K, qp) - np.diag(qp.ridge)
    beta = feasible_start(qp)
    movable = qp.lower < qp.upper
    is_free = {"none": np.zeros_like(movable), "all": movable, "some": movable & (np.arange(qp.n_vars) % 3 == 0)}[guess]
    polish(Q, qp, beta, is_free.copy(), max_changes=1000)
    assert infeasibility(qp, beta) < 1e-12
    assert violation(qp, beta, problem.F(beta)) < 1e-9
