"""SMO on a block finds the block's optimum, from any feasible start, and ends."""

import numpy as np
import pytest
from tests.problems.instances import FORMS, instance
from tests.reference.qp import objective, solve_qp

from mercer.losses import HardMargin, Hinge, NuHinge
from mercer.problems import feasible_start, infeasibility, violation
from mercer.svm._block_newton_loops import newton_address
from mercer.svm._smo_loops import solve_block


def descend(K, qp, beta, tol, dtype=np.float64, max_steps=200_000):
    """solve_block as the solvers call it: groups in order, a null sample where no sum is fixed."""
    order = np.argsort(qp.group, kind="stable")
    sample = order if qp.sample is None else qp.sample[order]
    null = qp.n_groups == 0
    n = qp.n_vars
    block = np.zeros((n + null, n + null), dtype)
    block[:n, :n] = K[np.ix_(sample, sample)]

    def column(values, extra):
        return np.append(values[order], extra) if null else values[order]

    b = column(beta, 0.0)
    ridge = column(qp.ridge, 0.0)
    score = (column(qp.linear, 0.0) - block.astype(np.float64) @ b - ridge * b).astype(dtype)
    ends = np.append(0, np.cumsum(np.bincount(qp.group) if qp.n_groups > 1 else [n + null]))
    steps, found, unbounded = solve_block(
        block, b, score, column(qp.lower, -np.inf), column(qp.upper, np.inf), column(qp.l1, 0.0), ridge, ends, tol,
        max_steps, newton_address(block.dtype, score.dtype),
    )  # fmt: skip
    result = np.empty(n)
    result[order] = b[:n]
    return result, steps, found, unbounded


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_the_optimum_of_every_loss(loss, intercept, dtype):
    """The objective is above the reference's by at most violation times distance, two groups and kinks included."""
    tol = 1e-3 if dtype == np.float32 else 1e-7
    for seed in range(3):
        problem = instance(loss, intercept, n=30, seed=seed)
        qp = problem.qp
        best = solve_qp(problem.K, qp)
        beta, _, found, unbounded = descend(problem.K, qp, feasible_start(qp), tol, dtype)
        assert not unbounded and found <= tol
        assert infeasibility(qp, beta) <= 1e-12 * np.abs(beta).max()
        lowest = objective(problem.K, qp, best)
        excess = objective(problem.K, qp, beta) - lowest
        # float32 scores miss the slopes by a few units of their last place
        slack = tol + (1e-5 if dtype == np.float32 else 1e-9) * (1 + np.abs(problem.F(beta)).max())
        assert -1e-9 <= excess <= slack * np.abs(beta - best).sum() + 1e-14 * (1 + abs(lowest))
        assert violation(qp, beta, problem.F(beta)) <= slack + tol


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_any_feasible_start_leads_there(loss, intercept):
    """From random points of the box, kinks and bounds on the way."""
    problem = instance(loss, intercept, n=25, seed=4)
    qp, rng = problem.qp, np.random.default_rng(0)
    best = objective(problem.K, qp, solve_qp(problem.K, qp))
    for size in (0.1, 1.0, 5.0):
        start = feasible_start(qp, near=size * rng.normal(size=qp.n_vars))
        beta, _, _, _ = descend(problem.K, qp, start, 1e-8)
        assert objective(problem.K, qp, beta) == pytest.approx(best, rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(qp.group_sums(beta), qp.sums, atol=1e-10 * max(1.0, np.abs(beta).sum()))


def test_each_step_descends():
    """One step more never raises the objective."""
    problem = instance(Hinge(), n=30)
    values = []
    for steps in range(0, 60):
        beta, taken, _, _ = descend(problem.K, problem.qp, problem.qp.lower * 0, 1e-9, max_steps=steps)
        assert taken <= steps
        values.append(objective(problem.K, problem.qp, beta))
    assert np.all(np.diff(values) <= 1e-13 * np.abs(values).max())
    assert values[-1] < values[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
class TestDegenerateBlocks:
    def test_no_violators(self, dtype):
        """At the optimum no step is taken and nothing changes."""
        problem = instance(Hinge(), n=20)
        best, *_ = descend(problem.K, problem.qp, feasible_start(problem.qp), 1e-9)
        beta, steps, found, _ = descend(problem.K, problem.qp, best, 1e-3, dtype)
        assert steps == 0 and found <= 1e-3
        np.testing.assert_array_equal(beta, best)

    def test_one_member(self, dtype):
        """A sum leaves a single variable no choice: there is no violation."""
        qp = Hinge().box_qp(np.ones(1), np.ones(1), True)
        beta, steps, found, unbounded = descend(np.ones((1, 1)), qp, np.zeros(1), 1e-3, dtype)
        assert (beta.tolist(), steps, unbounded) == ([0.0], 0, False) and found <= 0

    def test_duplicates(self, dtype):
        """Equal samples with opposite labels go to their bounds, in a step per pair."""
        K = np.ones((10, 10))
        qp = Hinge().box_qp(np.tile([1.0, -1.0], 5), np.full(10, 2.0), True)
        beta, steps, found, unbounded = descend(K, qp, np.zeros(10), 1e-3, dtype)
        assert not unbounded and steps <= 10 and found <= 0
        np.testing.assert_array_equal(beta, np.tile([2.0, -2.0], 5))

    def test_zero_matrix(self, dtype):
        """A linear objective is solved at a corner of the box."""
        qp = Hinge().box_qp(np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, 3.0, 2.0, 1.0]), True)
        beta, *_ = descend(np.zeros((4, 4)), qp, np.zeros(4), 1e-3, dtype)
        assert qp.linear @ beta == 6.0 and beta.sum() == 0.0

    def test_open_box(self, dtype):
        """Hard margins of equal samples with opposite labels are unbounded, and said to be."""
        qp = HardMargin().box_qp(np.array([1.0, -1.0]), np.ones(2), True)
        *_, unbounded = descend(np.ones((2, 2)), qp, np.zeros(2), 1e-3, dtype)
        assert unbounded

    def test_not_numbers(self, dtype):
        """NaN in the matrix ends the run."""
        qp = Hinge().box_qp(np.tile([1.0, -1.0], 5), np.full(10, 2.0), True)
        K = np.full((10, 10), np.nan)
        beta, steps, *_ = descend(K, qp, np.zeros(10), 1e-3, dtype, 1000)
        assert steps <= 1000 and np.all(np.abs(beta) <= 2.0)

    def test_indefinite(self, dtype):
        """An indefinite matrix leads to bounds, not to an endless loop."""
        rng = np.random.default_rng(0)
        A = rng.normal(size=(20, 20))
        qp = NuHinge(0.4).box_qp(np.tile([1.0, -1.0], 10), np.ones(20), True)
        beta, steps, *_ = descend(A + A.T, qp, feasible_start(qp), 1e-3, dtype, 10_000)
        assert steps < 10_000 and infeasibility(qp, beta) <= 1e-12

    def test_a_step_limit_of_zero(self, dtype):
        """Nothing is done."""
        problem = instance(Hinge(), n=20)
        beta, steps, *_ = descend(problem.K, problem.qp, np.zeros(20), 1e-3, dtype, 0)
        assert steps == 0 and not beta.any()


def test_a_newton_step_counts_as_one():
    """With one step more either a pair has moved, or Newton's step alone: the free scores are equal after it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 12))
    y = np.where(X[:, 0] + rng.normal(size=80) > 0, 1.0, -1.0)
    K, zero = np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(axis=2)), np.zeros(80)
    lower, upper = np.minimum(0.0, 100.0 * y), np.maximum(0.0, 100.0 * y)

    def after(max_steps):
        beta, score = np.zeros(80), y.copy()
        steps, _, _ = solve_block(
            K,
            beta,
            score,
            lower,
            upper,
            zero,
            zero,
            np.array([0, 80]),
            1e-3,
            max_steps,
            newton_address(K.dtype, score.dtype),
        )
        return steps, beta, score

    n_newton, (total, _, _) = 0, after(10**6)
    for k in range(1, total + 1):
        steps, beta, score = after(k)
        assert steps == k
        if np.count_nonzero(beta != after(k - 1)[1]) > 2:
            n_newton += 1
            assert np.ptp(score[(beta > lower) & (beta < upper)]) <= 1e-5
    assert 0 < n_newton < total < 500
