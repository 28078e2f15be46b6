"""Problems on which solvers have been seen to loop are solved, or at least end."""

import numpy as np
import pytest
from tests.svm.ways import WAYS, run

from mercer import SVR, NuSVR, certify, influence
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.losses import EpsilonInsensitive, Hinge, NuHinge, OneClass, SquaredHinge
from mercer.problems import infeasibility, violation
from mercer.problems.clock import WorkClock
from mercer.problems.dual import DualProblem
from mercer.problems.solution import Status
from mercer.testing.solvers import Task


def degenerate(name, n=150):
    """(X, y, loss, kernel, C) of problems on which solvers have been seen to loop."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    pairs = np.repeat(X[: n // 2], 2, axis=0), np.tile([1.0, -1.0], n // 2)
    kinds = {
        "equal": (np.ones((n, 3)), y, Hinge(), Gaussian(1.0), 1.0),
        "equal, regression": (np.ones((n, 3)), X[:, 0], EpsilonInsensitive(0.1), Gaussian(1.0), 1.0),
        "equal, one class": (np.ones((n, 3)), y, OneClass(0.3), Linear(), 1.0),
        "equal, nu": (np.ones((n, 3)), y, NuHinge(0.3), Gaussian(1.0), 1.0),
        "zeros": (np.zeros((n, 3)), y, Hinge(), Linear(), 1.0),
        "opposite": (*pairs, Hinge(), Gaussian(0.3), 10.0),
        "opposite, squared": (*pairs, SquaredHinge(), Gaussian(0.3), 10.0),
        "opposite, linear": (*pairs, Hinge(), Linear(), 10.0),
        "one class only": (X, np.ones(n), Hinge(), Gaussian(0.3), 1.0),
        "two points": (
            np.array([[1.0, 99999.0], [2.0, 99999.0]]),
            np.array([1.0, -1.0]),
            Hinge(),
            Polynomial(2, 0.5),
            1.0,
        ),
        "two points, far": (np.array([[0.0], [1e5]]), np.array([1.0, -1.0]), Hinge(), Linear(), 1e6),
        "three points": (X[:3], np.array([1.0, -1.0, 1.0]), NuHinge(0.5), Gaussian(0.3), 1.0),
        **{f"C={C:g}": (X, y, Hinge(), Gaussian(0.25), C) for C in (1e-6, 1e-3, 1e3, 1e6, 1e8)},
        **{f"linear, C={C:g}": (X, y, Hinge(), Linear(), C) for C in (1e-6, 1e-3, 1e2)},
        **{f"hard, linear, C={C:g}": (X, y, Hinge(), Linear(), C) for C in (1e6, 1e8)},
        "hard, scaled": (X * [1e8, 1.0, 1e-8, 1.0], y, Hinge(), Linear(), 1.0),
        "hard, polynomial": (20 * X, y, Hinge(), Polynomial(3, 1.0, 1.0), 1.0),
    }
    return kinds if name is None else kinds[name]


def run_degenerate(name, limit, way):
    X, y, loss, kernel, C = degenerate(name)
    problem = DualProblem(None, loss, y, np.full(len(y), C), True)
    job = Task(name, kernel, X, kernel(X), problem)
    return job, run(job, WorkClock(limit), way=way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [name for name in degenerate(None) if not name.startswith("hard")])
def test_degenerate_problems_are_solved(name, way):
    """Equal samples, contradictions, two points, any C: within tol, in five seconds besides compilation."""
    job, solution = run_degenerate(name, 5.0, way=way)
    assert solution.status is Status.CONVERGED
    assert infeasibility(job.problem.qp, solution.beta) <= 1e-9 * max(np.abs(solution.beta).max(), 1e-300)
    exact = violation(job.problem.qp, solution.beta, job.F(solution.beta))
    rounding = 1e-12 * np.abs(job.K).max() * np.abs(solution.beta).sum()
    assert exact <= 1e-3 + rounding


HARD = [name for name in degenerate(None) if name.startswith("hard")]


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("way", WAYS)
def test_badly_scaled_problems_keep_the_time_limit(way, name):
    """Columns of 1e8 beside 1e-8, C = 1e8: whatever is reached in time is feasible, and its gap is not negative."""
    job, solution = run_degenerate(name, 0.5, way=way)
    assert solution.status in (Status.CONVERGED, Status.STALLED, Status.TIME_LIMIT)
    assert infeasibility(job.problem.qp, solution.beta) <= 1e-6 * np.abs(solution.beta).max()
    assert solution.certificate.primal >= solution.certificate.dual


# columns of 1e8 beside 1e-8 leave no digits: K has entries of 1e16, and the margin is 1
@pytest.mark.parametrize("name", [name for name in HARD if name != "hard, scaled"])
def test_badly_scaled_problems_are_solved(name):
    """To a relative gap of 1e-3 at least, on the float64 matrix."""
    _, solution = run_degenerate(name, 5.0, way="double")
    assert solution.certificate.relative_gap < 1e-3


def test_badly_scaled_problems_end_by_themselves():
    """Decomposition of 150 samples converges or stalls within five seconds."""
    _, solution = run_degenerate("hard, scaled", 5.0, way="rows")
    assert solution.status in (Status.CONVERGED, Status.STALLED)


@pytest.mark.parametrize("cache_size", [200, 0.01], ids=["matrix", "rows"])
@pytest.mark.parametrize("shrinking", [True, False], ids=["shrinking", "all samples"])
def test_the_intercept_without_free_variables(cache_size, shrinking):
    """Where every coefficient is at a bound, samples without weight bound the optimal intercepts, too."""
    rng = np.random.default_rng(0)
    # 100 targets below the tube, 100 above, and 400 inside: w is nearly 0, and |0.9 - b| <= 0.5
    X, y = rng.normal(size=(600, 2)), np.repeat([-2.0, 0.9, 2.0], [100, 400, 100])
    model = SVR(C=1e-4, epsilon=0.5, gamma=0.5, cache_size=cache_size, shrinking=shrinking).fit(X, y)
    assert (np.abs(model.dual_coef_) == model.C).all()
    F = model.predict(X) - model.intercept_
    ends = (y - F - 0.5)[100:500].max(), (y - F + 0.5)[100:500].min()
    np.testing.assert_allclose(model.intercept_, np.mean(ends), atol=1e-6)
    np.testing.assert_allclose(certify(model, X, y).primal, model.certificate_.primal, rtol=1e-9)


def test_rounding_next_to_a_bound_decides_no_intercept():
    """ν-SVR with ν n / 2 = 8 samples below the tube, each at its bound: b is the middle of its interval.

    Leaving out a sample makes b unique, and its influence is the change from that middle.
    """
    rng = np.random.default_rng(21)
    X, y = rng.normal(size=(40, 2)), rng.choice([-2.0, 0.9, 2.0], 40, p=[0.25, 0.5, 0.25])
    assert np.sum(y == -2.0) == 8
    model = NuSVR(nu=0.4, C=0.015, gamma=0.5, tol=1e-8).fit(X, y)
    size = np.abs(model.dual_coef_)
    assert size.min() > 1e-6 * size.max()
    z = y - (model.predict(X) - model.intercept_)

    def loss(b):
        distance = np.abs(z - b)
        return min(16.0 * width + np.maximum(0.0, distance - width).sum() for width in distance)

    kinks = np.unique((z[:, None] + z) / 2)
    losses = np.array([loss(b) for b in kinks])
    best = kinks[losses <= losses.min() + 1e-6]
    assert np.ptp(best) > 1.0
    assert model.intercept_[0] == pytest.approx((best.min() + best.max()) / 2, abs=1e-6)
    found = influence(model, X[:3], X, y)
    for i in (0, 7):
        rest = np.arange(40) != i
        refit = NuSVR(nu=0.4, C=0.015, gamma=0.5, tol=1e-8).fit(X[rest], y[rest])
        np.testing.assert_allclose(found.values[:, i], refit.predict(X[:3]) - model.predict(X[:3]), atol=1e-5)
