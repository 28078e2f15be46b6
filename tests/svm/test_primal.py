"""Linear kernels are solved over their features: the optimum, with a β whose KKT violation is within tol."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from tests.naming import named
from tests.reference.qp import solve_qp
from tests.svm.ways import task

from mercer import SVC, SVR, LinearSVC, NuSVC
from mercer.gram.operator import Data
from mercer.kernels import Gaussian, Linear
from mercer.losses import EpsilonInsensitive, Hinge, NuHinge, Pinball, SquaredEpsilonInsensitive, SquaredHinge
from mercer.problems.solution import Status
from mercer.svm import presolve as primal
from mercer.svm import solve as exact
from mercer.svm.plan import Plan, over_features
from mercer.testing.solvers import check_solution

LOSSES = [Hinge(), SquaredHinge(), EpsilonInsensitive(0.3), SquaredEpsilonInsensitive(0.3), Pinball(0.3)]


def check_no_pair_steps(evaluations):
    """Pair steps need kernel values; a run over features computes none."""
    assert evaluations == 0


def classes(n, d, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X @ rng.normal(size=d) + noise * rng.normal(size=n) > 0.2, 1, -1)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 100.0])
def test_every_loss(loss, intercept, C):
    """The reference's optimum without a kernel value, unequal weights included."""
    job = task(loss, intercept, n=120, C=C, kernel=Linear())
    data = Data(job.kernel, job.X, len(job.X))
    solution = exact.solve(data, job.problem, exact.Options(plan=Plan(presolve="features")), exact.Clock(60.0))
    assert solution.status is Status.CONVERGED
    check_no_pair_steps(data.evaluations.count)
    check_solution(job, solution, 1e-3)
    optimum = job.objective(solve_qp(job.K, job.problem.qp))
    assert job.objective(solution.beta) == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("C", [0.1, 1e4])
@pytest.mark.parametrize("samples", ["whole numbers", "repeated", "constant column", "csr", "float32"])
def test_samples_of_all_kinds(samples, C):
    """Many samples exactly at the margin, columns that say nothing, other storage."""
    X, y = classes(600, 6)
    if samples == "whole numbers":
        X = np.round(X)
    elif samples == "repeated":
        X, y = X[np.arange(600) % 90], y[np.arange(600) % 90]
    elif samples == "constant column":
        X[:, 2] = 5.0
    given = {"csr": sp.csr_array, "float32": np.float32}.get(samples, np.asarray)(X)
    model = SVC(kernel="linear", C=C).fit(given, y)
    assert model.fit_status_ == 0
    assert model.certificate_.valid and model.certificate_.kkt_violation <= 1e-3
    assert model.certificate_.relative_gap < 1e-5
    check_no_pair_steps(model.kernel_evaluations_)


def test_columns_of_all_sizes():
    """Columns from 1e-3 to 1e3, where w must be known to many digits."""
    rng = np.random.default_rng(1)
    X, y = classes(800, 12)
    model = SVR(kernel="linear", C=10.0).fit(X * 10.0 ** rng.uniform(-3, 3, size=12), y + rng.normal(size=800))
    assert model.fit_status_ == 0 and model.certificate_.kkt_violation <= 1e-3
    check_no_pair_steps(model.kernel_evaluations_)


def test_large_and_overlapping():
    """20,000 samples with C = 100, where pair steps do not come to an end: the model of LinearSVC."""
    X, y = classes(20_000, 10)
    model = SVC(kernel="linear", C=100.0, tol=1e-6).fit(X, y)
    assert model.fit_status_ == 0 and model.certificate_.relative_gap < 1e-8
    same = LinearSVC(loss="hinge", C=100.0, penalize_intercept=False, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-6)
    assert len(model.support_) < 20_000
    check_no_pair_steps(model.kernel_evaluations_)


def test_several_classes():
    """Pairs of classes, some of them small: the labels of LinearSVC's kind of model, each pair certified."""
    X, y = load_digits(return_X_y=True)
    keep = y < 4
    X, y = np.tile(X[keep] / 16.0, (2, 1)), np.tile(y[keep], 2)
    X = X[:, :40] + 0.3 * np.random.default_rng(0).normal(size=(len(X), 40))
    model = SVC(kernel="linear", C=1.0).fit(X, y)
    pair = Hinge().box_qp(np.array([1.0, -1.0]), np.ones(2), True)
    assert over_features(Data(Linear(), X, len(X)), 2 * np.bincount(y).min(), pair, exact.Options())
    assert model.fit_status_ == 0 and model.certificate_.kkt_violation <= 1e-3
    assert model.score(X, y) > 0.9


def test_a_poor_start_is_improved():
    """If the solver over features ends early, pair steps go on from there."""
    job = task(Hinge(), n=500, kernel=Linear())
    data, options, clock = Data(job.kernel, job.X, len(job.X)), exact.Options(), exact.Clock(60.0)
    poor = primal.solve_over_features(data, job.problem, options, clock, gap=0.3, corrections=0)
    assert poor.violation > 0.01 and data.evaluations.count == 0
    solution = exact._from_features(data, job.problem, options, clock, poor)
    assert solution.status is Status.CONVERGED and data.evaluations.count > 0
    check_solution(job, solution, 1e-3)


@pytest.mark.parametrize(
    ("kernel", "n", "d"),
    [(Gaussian(1.0), 5000, 5), (Linear(), 300, 5), (Linear(), 5000, 600), (Linear(), 1000, 300)],
    ids=named,
)
def test_where_it_does_not_suit(kernel, n, d):
    """Other kernels, few samples, many features."""
    qp = Hinge().box_qp(np.repeat([1.0, -1.0], n // 2), np.ones(n), True)
    assert not over_features(Data(kernel, np.zeros((n, d)), n), n, qp, exact.Options())


def test_several_thresholds():
    """The losses with two thresholds are left to pair steps."""
    job = task(NuHinge(0.4), n=500, kernel=Linear())
    data = Data(job.kernel, job.X, 500)
    assert not over_features(data, 500, job.problem.qp, exact.Options())
    assert over_features(data, 500, task(Hinge(), n=500, kernel=Linear()).problem.qp, exact.Options())
    assert NuSVC(kernel="linear", nu=0.4).fit(*classes(500, 5)).fit_status_ == 0


def test_limits_leave_a_certified_model():
    """No time at all, and a number of steps, which counts pair steps."""
    X, y = classes(3000, 10)
    for limits in ({"time_limit": 0.0}, {"max_iter": 5}):
        with pytest.warns(match="ended|stopped|Solver"):
            model = SVC(kernel="linear", C=10.0, **limits).fit(X, y)
        assert model.fit_status_ == 1 and model.certificate_.valid


@pytest.mark.parametrize("size", [1e160, 1e200])
def test_numbers_that_cannot_be_squared(size):
    """The error is the same as for other kernels."""
    X, y = classes(500, 5)
    with pytest.raises(ValueError, match="not finite"):
        SVC(kernel="linear").fit(size * X, y)


def regression(seed, fewest, most):
    """A random regression set with a large C; every third set has columns of different scales."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(fewest, most)), int(rng.integers(1, 11))
    X = rng.normal(size=(n, d)) if seed % 2 else rng.integers(0, 10, size=(n, d)).astype(float)
    X = X * 10.0 ** rng.integers(-2, 3, size=d) if seed % 3 == 0 else X
    y = X @ rng.normal(size=d) * rng.choice([1, 10, 100]) + rng.normal(size=n) * rng.choice([0.1, 1, 10])
    return X, y, 10 ** rng.uniform(2, 5)


@pytest.mark.parametrize("seed", [0, 167, 192, 198, 225, 285])
def test_a_coefficient_next_to_0_is_on_the_side_of_its_kink(seed):
    """On the other side of 0 it would violate the optimality conditions by 2ε, however small it is."""
    X, y, C = regression(seed, 401, 1000)
    model = SVR(kernel="linear", C=C).fit(X, y)
    assert model.fit_status_ == 0
    assert model.certificate_.kkt_violation <= model.tol and model.certificate_.relative_gap <= 1e-4
    check_no_pair_steps(model.kernel_evaluations_)


@pytest.mark.slow
def test_what_stalls_on_the_matrix_is_solved_over_features():
    """342 samples whose columns have scales from 0.01 to 100, C of 90,000: pair steps leave a gap of 0.1."""
    X, y, C = regression(96, 60, 401)
    model = SVR(kernel="linear", C=C).fit(X, y)
    assert model.fit_status_ == 0 and model.certificate_.kkt_violation <= model.tol
