"""Plain coordinate descent: the algorithm of the notes, pass by pass."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.clocks import Countdown
from tests.linear.tasks import LOSSES, check, make
from tests.naming import named

from mercer import LinearSVC
from mercer.exceptions import InvalidInputError
from mercer.linear import hybrid
from mercer.linear.coordinate import solve
from mercer.linear.linear_problem import Penalty
from mercer.linear.linear_solution import LinearOptions
from mercer.losses import HardMargin, Hinge, SquaredHinge
from mercer.problems.clock import Clock
from mercer.problems.solution import RULES, Status

TOL = 1e-4


def run(problem, tol=TOL, start=None, limit=60.0, **more):
    return solve(problem, LinearOptions(tol=tol, **more), Clock(limit), start)


def shuffled(n, seed):
    """Fisher and Yates' shuffle with Marsaglia's xorshift generator."""
    order, state = list(range(n)), seed
    for k in range(n - 1, 0, -1):
        state ^= (state << 13) & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 7
        state ^= (state << 17) & 0xFFFFFFFFFFFFFFFF
        j = ((state >> 32) * (k + 1)) >> 32
        order[k], order[j] = order[j], order[k]
    return order


def coordinate_ascent(X, y, C, rule, tol, squared=False, max_passes=3000):
    """[M5] as the notes write it, for α ≥ 0 and w = Σ αᵢyᵢxᵢ without a bias: (passes, α, w).

    maximise Σα − ½|w|² over 0 ≤ α ≤ C; for squared losses Σα − ½|w|² − Σα²/(4C) over α ≥ 0.
    """
    n = len(y)
    Q = (X @ X.T) * np.outer(y, y) + (np.eye(n) / (2 * C) if squared else 0.0)
    upper = np.inf if squared else C
    alpha, gradient = np.zeros(n), np.ones(n)
    rng = np.random.default_rng(0)

    def step(i):
        new = min(max(alpha[i] + gradient[i] / Q[i, i], 0.0), upper)
        gradient[:] -= (new - alpha[i]) * Q[:, i]
        alpha[i] = new

    for passes in range(1, max_passes + 1):
        if rule == "greedy":
            for _ in range(n):
                new = np.clip(alpha + gradient / Q.diagonal(), 0.0, upper)
                change = new - alpha
                step(int(np.argmax(change * (gradient - 0.5 * Q.diagonal() * change))))
        else:
            for i in range(n) if rule == "round-robin" else shuffled(n, int(rng.integers(1, 1 << 62))):
                step(i)
        w = X.T @ (alpha * y)
        slack = np.maximum(0.0, 1.0 - y * (X @ w))
        primal = 0.5 * w @ w + C * (slack @ slack if squared else slack.sum())
        dual = alpha.sum() - 0.5 * w @ w - (alpha @ alpha / (4 * C) if squared else 0.0)
        if primal - dual <= tol * primal:
            return passes, alpha, w
    raise AssertionError("the twin has not ended")


def sample(seed, n=60, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("rule", RULES)
def test_passes_are_those_of_the_textbook(rule, loss, stored):
    """n_iter_ and the weights are those of coordinate ascent in plain Python, by each rule of choice."""
    for seed in range(3):
        X, y = sample(seed)
        model = LinearSVC(loss=loss, fit_intercept=False, solver="coordinate", rule=rule, random_state=None, tol=TOL)
        model.fit(stored(X), y)
        passes, _, w = coordinate_ascent(X, y, 1.0, rule, TOL, squared=loss == "squared_hinge")
        assert model.n_iter_ == passes
        np.testing.assert_allclose(model.coef_[0], w, rtol=1e-9, atol=1e-12)
        assert [stage.solver for stage in model.plan_.runs[0]] == ["coordinate"]


def test_greedy_choice_needs_the_fewest_passes():
    """A pass is n steps by every rule, and n chosen steps gain more than n steps in any fixed order."""
    X, y = sample(0, n=150, d=20)
    counts = [LinearSVC(loss="hinge", solver="coordinate", rule=rule).fit(X, y).n_iter_ for rule in RULES]
    assert counts[2] < min(counts[:2]) / 4


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_rules_lead_to_one_optimum(loss, rule):
    """Each rule finds the value of the reference, with a penalised, a free and no intercept."""
    for bias, intercept in ((0.0, False), (1.0, False), (0.0, True)):
        problem = make("sparse", loss, 0.3, bias, intercept)
        check(problem, run(problem, 1e-6, rule=rule), 1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_no_other_solver_goes_on(rule):
    """On columns of very different scales the run ends at max_iter, with the number of passes and a valid proof."""
    problem = make("tall", Hinge(), 1.0, 1.0)
    X = problem.rows.X.toarray() * [1e4, 1e-4, 1.0, 1.0]
    model = LinearSVC(loss="hinge", solver="coordinate", rule=rule, max_iter=7)
    with pytest.warns(UserWarning, match=r"max_iter=7 was reached\. The model is .*relative gap.*primal"):
        model.fit(X, problem.y)
    (stage,) = model.plan_.runs[0]
    assert (stage.solver, stage.n_iter, stage.status) == ("coordinate", 7, Status.MAX_ITER)
    assert model.n_iter_ == 7 and model.certificate_.valid


def test_limits_leave_a_certified_model():
    """max_iter and the time limit end the run with a finite certificate, by each rule."""
    problem = make("sparse", Hinge(), 100.0, 1.0)
    for rule in RULES:
        solution = run(problem, max_iter=1, rule=rule)
        assert solution.status is Status.MAX_ITER and np.isfinite(solution.certificate.gap) and solution.n_iter == 1
        solution = run(problem, limit=0.0, rule=rule)
        assert solution.status is Status.TIME_LIMIT and solution.certificate.valid


@pytest.mark.parametrize("rule", RULES)
def test_the_clock_is_asked_within_a_pass(rule):
    """A pass that is read in parts gives the bits of one that is not, and ends between two parts."""
    problem = make("sparse", SquaredHinge(), 1.0, 1.0)
    whole = run(problem, rule=rule)
    parts = run(problem, rule=rule, entries_at_a_time=20)
    assert whole.n_iter == parts.n_iter and np.array_equal(whole.w, parts.w)
    ended = solve(problem, LinearOptions(tol=1e-12, rule=rule, entries_at_a_time=20), Countdown(2))
    assert ended.status is Status.TIME_LIMIT and 0 < np.count_nonzero(ended.beta) < np.count_nonzero(whole.beta)


def test_warm_start_ends_at_once():
    """From its own solution a run needs no pass."""
    problem = make("sparse", Hinge(), 1.0, 1.0)
    assert run(problem, start=run(problem)).n_iter == 0


@pytest.mark.parametrize(
    "problem, message",
    [
        (make("sparse", Hinge(), 1.0, 1.0, penalty=Penalty(0.5, 0.5)), "the penalty l2 alone"),
        (make("sparse", HardMargin(), 1.0, 1.0), "needs a finite C"),
    ],
    ids=["l1", "hard margin"],
)
def test_what_it_cannot_do_is_refused(problem, message):
    """A sentence says what it cannot do, with Newton steps and without."""
    for solver in (solve, hybrid.solve):
        with pytest.raises(InvalidInputError, match=message):
            solver(problem, LinearOptions(), Clock())


def test_unknown_rule():
    """The rules are named."""
    with pytest.raises(InvalidInputError, match="rule='best' is not known: choose one of 'round-robin', 'random'"):
        run(make("sparse", Hinge(), 1.0, 1.0), rule="best")
