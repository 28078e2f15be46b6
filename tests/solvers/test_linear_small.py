"""Pair steps for a few samples: the optimum of the other solvers, or an honest end."""

import numpy as np
import pytest
from tests.naming import named
from tests.solvers.linear_tasks import SHAPES, check, make

from mercer import LinearSVC, LinearSVR
from mercer.losses import EpsilonInsensitive, Hinge, Pinball
from mercer.problems.linear import Penalty
from mercer.solvers.base import Clock, Status
from mercer.solvers.linear import small
from mercer.solvers.linear.base import LinearOptions
from mercer.solvers.linear.choose import solve_linear


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.1), Pinball(0.3)], ids=named)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("bias", "intercept"), [(0.0, False), (1.0, False), (0.0, True)])
def test_every_shape(shape, loss, bias, intercept):
    """The reference's optimum, or a STALLED run whose certificate is true and which the next solver takes over."""
    problem = make(shape, loss, 1.0, bias, intercept, penalty=Penalty(0.0, 0.5))
    solution = small.solve(problem, LinearOptions(tol=1e-5), Clock())
    assert solution.status in (Status.CONVERGED, Status.STALLED) and solution.certificate.valid
    if solution.status is Status.CONVERGED:
        check(problem, solution, 1e-5)
    check(problem, solve_linear("auto", problem, LinearOptions(tol=1e-7), Clock()), 1e-7)


def test_steps_are_limited(monkeypatch):
    """Weights for which pair steps crawl: an early end by itself, a limit of the user's is called one."""
    problem = make("tall", Hinge(), 1e6, 0.0, True)
    own = small.solve(problem, LinearOptions(tol=1e-9), Clock())
    assert own.status is Status.STALLED and own.n_iter * 60 <= small.STEPS + small.STEPS_PER_SAMPLE * 60 + 60
    users = small.solve(problem, LinearOptions(tol=1e-9, max_iter=2), Clock())
    assert users.status is Status.MAX_ITER and users.n_iter == 2


def test_estimators_use_it(monkeypatch):
    """LinearSVC with hinge loss and LinearSVR on few samples, the targets in any unit."""
    used = []
    solve = small.solve
    monkeypatch.setattr(small, "solve", lambda *args, **more: used.append(args) or solve(*args, **more))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X @ rng.normal(size=4) + 0.3 * rng.normal(size=60)
    assert LinearSVC(loss="hinge").fit(X, y > 0).certificate_.relative_gap <= 1e-4
    for unit in (1e-6, 1.0, 1e6):
        model = LinearSVR(epsilon=0.1 * unit).fit(X, unit * y)
        assert model.certificate_.relative_gap <= 1e-4
    assert len(used) == 4
