"""Rows that wait, and rows that are kept: the same optimum from fewer kernel values, within the budget."""

from dataclasses import replace

import numpy as np
import pytest

from mercer.gram.operator import Data, GramOperator
from mercer.kernels import Gaussian
from mercer.losses import EpsilonInsensitive, Hinge, NuHinge
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem
from mercer.problems.solution import Options
from mercer.svm.decomposition import Decomposition
from mercer.svm.plan import plan_rows
from mercer.svm.solve import solve

N = 3000


def classes(d=5):
    """Overlapping classes, of which about half have weight."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, d)), np.where(rng.random(N) < 0.5, 1.0, -1.0)
    X[y > 0, 0] += 2.5
    return X, y


def run(X, y, loss, options, gamma=0.2, **changes):
    """A run on float32 rows, with changes to its plan: (its β, values computed, the run itself)."""
    data = Data(Gaussian(gamma), X, len(X))
    problem = DualProblem(None, loss, y, np.ones(len(y)))
    gram = GramOperator(data.kernel, data.features(np.float32), 2, data.evaluations)
    beta = problem.start()
    F = Gaussian(gamma)(X) @ problem.qp.at_samples(beta, len(X))
    plan = replace(plan_rows(data, problem.qp, options, "float32"), **changes)
    job = Decomposition(gram, problem.qp, beta, F, plan, options, Clock())
    job.run(1e-3)
    return job.beta, data.evaluations.count, job


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.3), NuHinge(0.4)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("working_set", [0, 40])
def test_rows_that_wait_change_nothing_but_their_number(loss, working_set):
    """The same steps to the same β, bit by bit; with small sets and one group from fewer values."""
    X, y = classes()
    options = Options(working_set=working_set, n_threads=2)
    at_once, many, _ = run(X, y, loss, options, rows_wait_from=N + 1)
    later, few, _ = run(X, y, loss, options, rows_wait_from=0)
    np.testing.assert_array_equal(at_once, later)
    if working_set and isinstance(loss, Hinge):
        assert few < many


def test_a_null_sample_has_no_row_to_wait_for():
    """Without a sum to keep, a working set has a member that is no sample."""
    X, y = classes()
    data, problem = Data(Gaussian(0.2), X, N), DualProblem(None, Hinge(), y, np.ones(N), intercept=False)
    plan = replace(plan_rows(data, problem.qp, Options(), "float32"), rows_wait_from=0)
    solution = solve(data, problem, Options(plan=plan), Clock())
    assert solution.certificate.valid and solution.certificate.kkt_violation <= 1e-3


def test_costly_rows_are_kept_and_all_samples_stay_active():
    """From the first round on all samples are active, and hardly a row is computed that was not needed."""
    X, y = classes(d=150)
    X *= 0.3
    options = Options(costly_budget=1 << 30)
    beta, kept, job = run(X, y, Hinge(), options, 0.02, shrinking=True)
    assert job.plan.keeps_active and {point.active for point in job.trace} == {N}
    other, again, job = run(X, y, Hinge(), options, 0.02, shrinking=True, keeps_active=False, first_samples=300)
    assert min(point.active for point in job.trace) <= 300
    np.testing.assert_allclose(beta, other, atol=0.05)
    support = np.count_nonzero(beta)
    assert kept < 1.5 * N * support and kept < again


@pytest.mark.parametrize("rows", [700, 900])
def test_costly_rows_that_do_not_fit_are_given_up(rows):
    """Samples become inactive once the memory is full, and the budget is kept."""
    X, y = classes(d=150)
    X *= 0.3
    budget = rows * N * 4
    beta, _, job = run(X, y, Hinge(), Options(budget=1, costly_budget=budget), 0.02)
    assert job.store.buffer.nbytes <= budget
    assert np.count_nonzero(beta) > rows
    assert min(point.active for point in job.trace) < N


def test_cheap_rows_keep_the_smaller_budget():
    """The larger budget of costly rows is not spent on cheap ones."""
    X, y = classes()
    _, _, job = run(X, y, Hinge(), Options(budget=500 * N * 4, costly_budget=1 << 30))
    assert job.store.buffer.nbytes <= 500 * N * 4
