"""Time and memory of the linear solvers: what would take too long is not begun, and every model is certified."""

import re

import numpy as np
import pytest
from tests.clocks import Countdown

from mercer.exceptions import InvalidInputError
from mercer.linear import hybrid, interior, proximal
from mercer.linear.linear_problem import LinearProblem, Penalty, Rows
from mercer.linear.linear_solution import LinearOptions, has_time
from mercer.losses import Hinge, Pinball, SquaredHinge
from mercer.problems.clock import Clock
from mercer.problems.solution import Status


def problem(n, d, loss, l1=0.0, intercept=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    return LinearProblem(Rows.of(X), loss, y, np.ones(n), intercept, Penalty(l1, 1.0 - l1))


def test_has_time():
    """Without a limit always; else if the work ends before it."""
    assert has_time(Clock(), 1e30)
    assert has_time(Clock(100.0), 1e9) and not has_time(Clock(1.0), 2e9)


@pytest.mark.parametrize("l1", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Pinball(0.3)], ids=lambda loss: loss.name)
def test_no_matrix_is_computed_after_the_end(loss, intercept, l1, monkeypatch):
    """A run of interior points whose time is over publishes a certified β without another system over features."""
    task, counted = problem(400, 12, loss, l1, intercept), []
    real = interior.weighted_gram
    monkeypatch.setattr(interior, "weighted_gram", lambda *a: counted.append(1) or real(*a))
    found = interior.solve(task, LinearOptions(tol=1e-12), Countdown(4))
    assert found.status is Status.TIME_LIMIT and not counted
    assert found.certificate.valid and np.isfinite(found.certificate.gap)


def test_a_step_that_would_end_late_is_not_begun():
    """Of a matrix that takes longer to factorise than the time limit nothing is computed: w = 0, certified."""
    rows = Rows(np.broadcast_to(np.zeros(1), (9000, 9000)))
    y = np.tile([1.0, -1.0], 4500)
    found = interior.solve(LinearProblem(rows, Hinge(), y, np.ones(9000)), LinearOptions(), Clock(1.0))
    assert found.status is Status.TIME_LIMIT and found.n_iter == 0 and not found.w.any()
    assert found.certificate.valid


def test_memory():
    """Matrices that do not fit are refused with their size."""
    n = 2_000_000
    task = LinearProblem(Rows(np.broadcast_to(np.zeros(1), (n, n))), Hinge(), np.tile([1.0, -1.0], n // 2), np.ones(n))
    with pytest.raises(InvalidInputError) as found:
        interior.solve(task, LinearOptions(), Clock())
    assert re.fullmatch(
        r"The interior-point method needs 9.6e\+04 GB for matrices of 2000000 × 2000000 numbers, but [\d.e+]+ GB of "
        r'memory are available\. Use solver="auto", or fewer samples or features\.',
        str(found.value),
    )


def test_passes_over_features_ask_the_clock():
    """The proximal Newton method may end between two passes of its model; in parts it finds the same optimum."""
    task = problem(200, 30, SquaredHinge(), 1.0)
    whole = proximal.solve(task, LinearOptions(tol=1e-10), Clock())
    in_parts = LinearOptions(tol=1e-10, entries_at_a_time=1)
    parts = proximal.solve(task, in_parts, Clock())
    assert whole.status is parts.status is Status.CONVERGED
    assert parts.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-9)
    ended = proximal.solve(task, in_parts, Countdown(2))
    assert ended.status is Status.TIME_LIMIT and ended.certificate.valid


def test_newton_steps_that_would_end_late_are_left_out():
    """Coordinate descent goes on with passes alone, and says that its time was over, not that it stalled."""

    class BegunError(Exception):
        pass

    class PassesOnly(hybrid._Run):
        def _end_dense(self):
            raise BegunError

        def _free(self):
            raise BegunError

    task, options = problem(300, 40, Hinge()), LinearOptions(tol=1e-13)
    with pytest.raises(BegunError):
        PassesOnly(task, options, Countdown(60), None).run()
    run = PassesOnly(task, options, Countdown(60, left=0.0), None)
    found = run.solution(run.run())
    assert found.status is Status.TIME_LIMIT and found.n_iter == 60 and found.certificate.valid
