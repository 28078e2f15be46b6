"""Newton's step on the free members of a block gains what it says, and keeps the box and the sums."""

import numpy as np
import pytest
from numba import njit
from tests.problems.instances import FORMS, instance
from tests.reference.qp import objective

from mercer.problems import feasible_start
from mercer.svm._block_newton_loops import call_newton, newton_address, newton_step
from mercer.svm._smo_loops import solve_block

GROUPS = {"one sum": 12, "two sums": 5}


def quadratic(n=12, seed=0, dtype=np.float64):
    """A well-conditioned matrix, slopes, and a start whose members are all free in a box of some width."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, 2 * n))
    return (A @ A.T / n).astype(dtype), rng.normal(size=n), 0.01 * rng.normal(size=n)


def step(K, linear, beta, width, first, l1=0.0, ridge=0.0):
    """(what the step says it gains, what it gains, beta after it, score after it)."""
    n = len(beta)
    columns = [np.full(n, value) for value in (-width, width, l1, ridge)]

    def value(b):
        return linear @ b - l1 * np.abs(b).sum() - 0.5 * b @ K.astype(np.float64) @ b - 0.5 * ridge * b @ b

    after, score = beta.copy(), (linear - K.astype(np.float64) @ beta - ridge * beta).astype(K.dtype)
    said = newton_step(K, after, score, *columns, np.array([0, first, n]))
    return said, value(after) - value(beta), after, score


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("first", GROUPS.values(), ids=list(GROUPS))
def test_one_step_is_enough_without_bounds(first, dtype):
    """All members free, the box wide: the equations of the optimum, sums kept."""
    K, linear, beta = quadratic(dtype=dtype)
    said, gained, after, score = step(K, linear, beta, 1e3, first, ridge=0.5)
    assert said == pytest.approx(gained, rel=1e-4) and gained > 0
    for part in (slice(0, first), slice(first, None)):
        if len(score[part]):
            assert np.ptp(score[part]) <= 1e-5
        assert after[part].sum() == pytest.approx(beta[part].sum(), abs=1e-14)
    np.testing.assert_allclose(score, linear - K @ after - 0.5 * after, atol=1e-5)


@njit
def by_address(address, K, beta, score, lower, upper, l1, ridge, ends):
    return call_newton(address, K, beta, score, lower, upper, l1, ridge, ends)


@pytest.mark.parametrize("score_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_call_by_address(dtype, score_dtype):
    """It gives the bits of the step itself; the rows of the block may be longer than the members are many."""
    K, linear, beta = quadratic(dtype=dtype)
    wide = np.full((12, 20), np.nan, dtype)
    wide[:, :12] = K
    columns = [np.full(12, value) for value in (-0.05, 0.05, 0.1, 0.2)]
    ends = []
    for call in (newton_step, lambda *given: by_address(newton_address(dtype, score_dtype), *given)):
        after, score = beta.copy(), (linear - K @ beta).astype(score_dtype)
        ends.append((call(wide, after, score, *columns, np.array([0, 5, 12])), after.tobytes(), score.tobytes()))
    assert ends[0] == ends[1] and ends[0][0] > 0


@pytest.mark.parametrize("width", [0.02, 0.05, 0.2, 1.0])
@pytest.mark.parametrize("first", GROUPS.values(), ids=list(GROUPS))
def test_bounds_on_the_way(first, width):
    """Members that come to a bound stay there exactly; the reported gain is the true one."""
    K, linear, beta = quadratic(seed=1)
    beta = np.clip(beta, -0.01, 0.01)
    said, gained, after, score = step(K, linear, beta, width, first)
    assert np.all(np.abs(after) <= width) and said == pytest.approx(gained, rel=1e-6) and gained > 0
    assert np.any(np.abs(after) == width) or width == 1.0
    np.testing.assert_allclose(after[:first].sum(), beta[:first].sum(), atol=1e-14)
    # members that are still free have one level in each group, unless more bounds were met than a step may meet
    for part in (slice(0, first), slice(first, None)):
        free = score[part][np.abs(after[part]) < width]
        assert len(free) < 2 or np.ptp(free) <= 1e-5


def test_kinks_are_bounds():
    """With l1 no member changes its sign; one that comes to zero is zero."""
    K, linear, beta = quadratic(seed=2)
    said, gained, after, _ = step(K, linear, beta, 5.0, 12, l1=0.3)
    assert np.all(after * beta >= 0.0) and np.any(after == 0.0) and said == pytest.approx(gained, rel=1e-6)


def test_equal_samples_and_indefinite_matrices():
    """Without a pivot a member stays where it is; the objective is not lowered."""
    K, linear, beta = quadratic(seed=3)
    twice = np.concatenate([np.arange(12), np.arange(12)])
    said, gained, after, _ = step(K[np.ix_(twice, twice)], linear[twice], beta[twice], 50.0, 24)
    assert said == pytest.approx(gained, rel=1e-6) and gained > 0 and np.all(np.isfinite(after))
    for seed in range(5):
        A = np.random.default_rng(seed).normal(size=(12, 12))
        said, gained, after, _ = step(A + A.T, linear, beta, 1.0, 12)
        assert gained == pytest.approx(said, rel=1e-6, abs=1e-12) and np.all(np.abs(after) <= 1.0)


def test_nothing_to_move():
    """No free member, or one alone: no step."""
    K, linear, _ = quadratic()
    for beta in (np.full(12, 1.0), np.append(np.full(11, 1.0), 0.5)):
        said, gained, after, _ = step(K, linear, beta, 1.0, 12)
        assert said == gained == 0.0
        np.testing.assert_array_equal(after, beta)


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_large_boxes_end_soon(loss, intercept):
    """With steps of Newton's a block of any form is solved to 1e-9, the null sample included."""
    problem = instance(loss, intercept, n=40, seed=5)
    qp = problem.qp
    order = np.argsort(qp.group, kind="stable")
    sample = order if qp.sample is None else qp.sample[order]
    null = int(qp.n_groups == 0)
    n = qp.n_vars
    K = np.zeros((n + null, n + null))
    K[:n, :n] = problem.K[np.ix_(sample, sample)]
    start = feasible_start(qp)

    def column(values, extra):
        return np.append(values[order], [extra] * null)

    b, ridge = column(start, -start.sum()), column(qp.ridge, 0.0)
    score = column(qp.linear, 0.0) - K @ b - ridge * b
    ends = np.append(0, np.cumsum(np.bincount(qp.group) if qp.n_groups > 1 else [n + null]))
    box = column(qp.lower, -np.inf), column(qp.upper, np.inf), column(qp.l1, 0.0), ridge
    before = b.copy()
    gained = newton_step(K, b, score, *box, ends)
    moved, beta = np.empty(n), np.empty(n)
    moved[order], beta[order] = b[:n], before[:n]
    assert objective(problem.K, qp, beta) - objective(problem.K, qp, moved) == pytest.approx(gained, abs=1e-9)
    steps, violation, unbounded = solve_block(
        K, b, score, *box, ends, 1e-9, 20_000, newton_address(K.dtype, score.dtype)
    )
    assert steps < 20_000 and violation <= 1e-9 and not unbounded
