"""Newton's method for squared losses."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.linear.tasks import SHAPES, SMOOTH, check, make
from tests.naming import named

from mercer.exceptions import InvalidInputError
from mercer.linear import newton
from mercer.linear.linear_problem import LinearProblem, Penalty, Rows, linear_certificate
from mercer.linear.linear_solution import LinearOptions
from mercer.losses import Hinge, SquaredHinge
from mercer.problems.clock import Clock
from mercer.problems.solution import Status

TOL = 1e-8


def run(problem, tol=TOL, start=None, limit=60.0, factored_up_to=newton.FACTORED_UP_TO, **more):
    return newton.solve(problem, LinearOptions(tol=tol, **more), Clock(limit), start, factored_up_to)


@pytest.mark.parametrize("factored", [True, False], ids=["factored", "conjugate gradients"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", SMOOTH, ids=named)
def test_optimum_of_the_reference(loss, shape, factored):
    """Within 1e-8 of clarabel's optimum for any C, whichever way the system is solved and whatever the intercept."""
    up_to = newton.FACTORED_UP_TO if factored else 0
    for seed, C in enumerate((1e-8, 1e-2, 1.0, 1e2)):
        for bias, intercept in ((0.0, False), (1.0, False), (0.0, True)):
            problem = make(shape, loss, C, bias, intercept, seed=seed, stored=sp.csr_array if seed % 2 else np.asarray)
            check(problem, run(problem, factored_up_to=up_to), TOL)


@pytest.mark.parametrize("shape", ["tall", "wide", "sparse", "opposite", "zero rows"])
@pytest.mark.parametrize("loss", SMOOTH, ids=named)
def test_huge_C(loss, shape):
    """C = 1e8 ends within 1e-6 of the optimum."""
    for bias, intercept in ((1.0, False), (0.0, True)):
        solution = run(make(shape, loss, 1e8, bias, intercept), 1e-6)
        assert solution.status is Status.CONVERGED and solution.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("loss", SMOOTH, ids=named)
def test_few_iterations(loss):
    """Twenty at most on 5,000 rows, with a certificate that is that of the model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 10)).astype(np.float32)
    y = np.where(X @ rng.normal(size=10) + rng.normal(size=5000) > 0, 1.0, -1.0)
    problem = LinearProblem(Rows.of(X, 1.0), loss, y, np.full(5000, 10.0))
    solution = run(problem)
    assert solution.status is Status.CONVERGED and solution.n_iter <= 20
    again = linear_certificate(problem, solution.w, solution.intercept, solution.beta)
    assert again.valid and again.relative_gap <= TOL


def test_penalty_of_another_weight():
    """½ l2 |w|² for l2 = 4."""
    problem = make("sparse", SquaredHinge(), 1.0, 1.0, penalty=Penalty(0.0, 4.0))
    check(problem, run(problem), TOL)


@pytest.mark.parametrize("intercept", [False, True])
def test_many_samples_start_from_a_part(intercept):
    """At most three iterations on all samples, sorted by class, and the optimum of a run that starts at 0.

    The trace is that of all samples, whose first step comes after those on the part.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 5))
    y = np.sort(np.where(X @ rng.normal(size=5) + rng.normal(size=9000) > 0, 1.0, -1.0))
    X += 0.5 * y[:, None]
    problem = LinearProblem(Rows.of(X, 0.0 if intercept else 1.0), SquaredHinge(), y, np.ones(9000), intercept)
    near = run(problem)
    far = run(problem, budget=0)  # no memory for a copy of a part
    assert near.status is far.status is Status.CONVERGED
    assert near.trace[0].steps > 0 == far.trace[0].steps and near.n_iter - near.trace[0].steps <= 3
    assert near.certificate.primal == pytest.approx(far.certificate.primal, rel=2 * TOL)


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_certificate_is_that_of_the_data(stored):
    """Xw is followed along steps that do not end where they are aimed at, but what is published is computed anew."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30)) * (rng.random((400, 30)) < 0.3) * 10.0 ** rng.integers(-2, 3, 30)
    y = np.where(X @ rng.normal(size=30) + rng.normal(size=400) > 0, 1.0, -1.0)
    problem = LinearProblem(Rows.of(stored(X), 1.0), SquaredHinge(), y, np.full(400, 100.0))
    for steps in range(2, 8):
        solution = run(problem, max_iter=steps)
        again = linear_certificate(problem, solution.w, 0.0, solution.beta)
        for found, expected in ((solution.certificate.primal, again.primal), (solution.certificate.dual, again.dual)):
            assert found == pytest.approx(expected, rel=1e-12)
    assert run(problem).status is Status.CONVERGED


def test_a_part_that_fits_itself_is_left_early():
    """Once fewer than twenty samples for each feature of the part are left in the matrix, its optimum is of no use."""
    rng = np.random.default_rng(0)
    X = sp.random_array((6400, 40), density=0.1, format="csr", rng=rng)
    y = np.where(X @ rng.normal(size=40) + 0.05 * rng.normal(size=6400) > 0, 1.0, -1.0)
    part = newton._Run(
        LinearProblem(Rows.of(X[:800]), SquaredHinge(), y[:800], np.full(800, 100.0)), LinearOptions(), Clock()
    )
    part.rough()
    assert part.n_iter == 1 and 0 < np.count_nonzero(part.point.D) < newton.PART_ROWS_PER_FEATURE * 40
    whole = LinearProblem(Rows.of(X), SquaredHinge(), y, np.full(6400, 100.0))
    assert run(whole).status is Status.CONVERGED


def test_warm_start_and_limits():
    """From its own solution no iteration is needed; a limit leaves a certified model."""
    problem = make("sparse", SquaredHinge(), 1.0, 0.0, intercept=True)
    assert run(problem, start=run(problem)).n_iter == 0
    early = run(problem, max_iter=0)
    assert early.status is Status.MAX_ITER and early.certificate.valid and np.isfinite(early.certificate.gap)
    assert run(problem, limit=0.0).status is Status.TIME_LIMIT


@pytest.mark.parametrize(
    "problem, message",
    [
        (make("sparse", Hinge(), 1.0, 1.0), "a loss with a continuous derivative, but the hinge loss has none"),
        (make("sparse", SquaredHinge(), 1.0, 1.0, penalty=Penalty(1.0, 0.0)), "the penalty l2 alone"),
    ],
    ids=["hinge", "l1"],
)
def test_what_it_cannot_do_is_refused(problem, message):
    """A sentence says what it cannot do."""
    with pytest.raises(InvalidInputError, match=message):
        run(problem)
