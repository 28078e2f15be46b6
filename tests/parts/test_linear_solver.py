"""A linear machine over parts is the linear machine of all rows, with its certificate."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from tests.clocks import Countdown, SteppedClock
from tests.parts.rows import INTERCEPTS, LOSSES, csr, cut, samples

from mercer import LinearSVC, LinearSVR
from mercer.exceptions import InvalidInputError
from mercer.linear.linear_plan import solve_linear
from mercer.linear.linear_problem import LinearProblem, Penalty, Rows, linear_certificate
from mercer.linear.linear_solution import LinearOptions
from mercer.losses import EpsilonInsensitive, Hinge, SquaredEpsilonInsensitive, SquaredHinge
from mercer.parts.layout import Held, LocalParts
from mercer.parts.linear_part import Statement
from mercer.parts.linear_solver import solve_parts
from mercer.problems.clock import Clock
from mercer.problems.solution import Status

TOL = 1e-6
OPTIONS = LinearOptions(tol=TOL)


def beta_of(parts):
    """The β of all rows, in their order."""
    return np.concatenate(parts.map(lambda part: part.state.beta, reads=False))


def check(found, expected):
    """The gap is within tol, and the models are as near as two models within tol can be."""
    proof, other = found.certificate, expected.certificate
    assert found.status is Status.CONVERGED and proof.valid and proof.relative_gap <= TOL
    assert proof.primal == pytest.approx(other.primal, rel=2 * TOL)
    # strong convexity: ½|w − w*|² is at most the excess of the primal
    distance = np.linalg.norm(found.w - expected.w)
    assert distance <= 2 * np.sqrt(2 * TOL * abs(other.primal))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize(("intercept", "bias"), INTERCEPTS)
@pytest.mark.parametrize("n", [60, 4000])
def test_the_model_does_not_depend_on_the_parts(loss, intercept, bias, n):
    """1, 2 and 7 parts, uneven and empty ones among them, dense and sparse: the model of one array."""
    X, y, weight = samples(n, 8, loss)
    expected = solve_linear("auto", LinearProblem(Rows.of(X, bias), loss, y, weight, intercept), OPTIONS, Clock())
    for count, stored in ((1, np.asarray), (2, np.asarray), (7, np.asarray), (7, csr)):
        parts = cut(X, y, weight, count, stored)
        found = solve_parts(parts, Statement(loss, 1.0, intercept, bias), OPTIONS, Clock())
        check(found, expected)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("size", [1.0, -10.0])
def test_the_model_does_not_depend_on_the_start(loss, size):
    """From the optimum itself or from a model far away: the same model."""
    X, y, weight = samples(4000, 8, loss)
    parts, statement = cut(X, y, weight, 3), Statement(loss, 1.0, True)
    expected = solve_parts(parts, statement, OPTIONS, Clock())
    start = size * np.append(expected.w, expected.intercept)
    check(solve_parts(parts, statement, OPTIONS, Clock(), start), expected)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize(("intercept", "bias"), INTERCEPTS)
def test_the_certificate_is_that_of_all_rows(loss, intercept, bias):
    """The sums over parts are those of `linear_certificate` for the same w, b and β."""
    X, y, weight = samples(500, 5, loss)
    parts = cut(X, y, weight, 4)
    found = solve_parts(parts, Statement(loss, 0.5, intercept, bias), OPTIONS, Clock())
    # empty parts are left out and hold no rows
    problem = LinearProblem(Rows.of(X, bias), loss, y, 0.5 * weight, intercept)
    expected = linear_certificate(problem, found.w, found.intercept, beta_of(parts))
    for name in ("primal", "dual", "kkt_violation"):
        assert getattr(found.certificate, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-12), name
    assert found.certificate.valid and expected.valid


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_it_is_linear_svc(loss):
    """The weights of `LinearSVC` on one array, a class missing in each part."""
    X, y, weight = samples(2000, 6)
    order = np.argsort(y)
    X, y, weight = X[order], y[order], weight[order]
    model = LinearSVC(loss=loss, tol=TOL, C=0.3).fit(X, y, weight)
    statement = Statement(Hinge() if loss == "hinge" else SquaredHinge(), 0.3, bias=1.0)
    found = solve_parts(cut(X, y, weight, 7), statement, OPTIONS, Clock())
    limit = 2 * np.sqrt(2 * TOL * model.certificate_.primal)
    assert np.linalg.norm(found.w - np.append(model.coef_[0], model.intercept_)) <= limit
    assert found.certificate.of == model.certificate_.of


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_it_is_linear_svr(loss):
    """The weights of `LinearSVR` on one array, with a free intercept."""
    kind = EpsilonInsensitive(0.2) if loss == "epsilon_insensitive" else SquaredEpsilonInsensitive(0.2)
    X, y, weight = samples(2000, 6, kind)
    model = LinearSVR(loss=loss, epsilon=0.2, tol=TOL, penalize_intercept=False).fit(X[:, :-1], y, weight)
    found = solve_parts(cut(X[:, :-1], y, weight, 5), Statement(kind, intercept=True), OPTIONS, Clock())
    assert found.certificate.primal == pytest.approx(model.certificate_.primal, rel=2 * TOL)
    assert np.linalg.norm(found.w - model.coef_) <= 2 * np.sqrt(2 * TOL * model.certificate_.primal)


@pytest.mark.parametrize("loss", LOSSES[:3], ids=lambda loss: loss.name)
def test_rows_that_do_not_fit_are_loaded_for_each_pass(loss):
    """A budget of 0, or of some parts: the same model, and no rows are kept beyond the budget."""
    X, y, weight = samples(3000, 6, loss)
    whole = solve_parts(cut(X, y, weight, 6), Statement(loss, bias=1.0), OPTIONS, Clock())
    for budget in (0, 2 * X[:600].nbytes):
        parts = cut(X, y, weight, 6, budget=budget)
        found = solve_parts(parts, Statement(loss, bias=1.0), OPTIONS, Clock())
        check(found, whole)
        assert sum(part.block().X.nbytes for part in parts.parts if part.in_memory) <= budget


def test_float32_rows_and_threads_give_the_same_model():
    """Sums are in float64; threads over parts and within a part."""
    X, y, weight = samples(6000, 6)
    X = X.astype(np.float32)
    expected = solve_parts(cut(X, y, weight, 1), Statement(Hinge(), bias=1.0), OPTIONS, Clock())
    for count, n_threads in ((1, 2), (5, 2)):
        parts = cut(X, y, weight, count, n_threads=n_threads)
        check(solve_parts(parts, Statement(Hinge(), bias=1.0), OPTIONS, Clock()), expected)


def test_one_class_alone_is_the_zero_model():
    """With a free intercept w = 0 has no loss; β = 0 proves it."""
    X, _, weight = samples(40, 3)
    found = solve_parts(cut(X, np.ones(40), weight, 3), Statement(Hinge(), intercept=True), OPTIONS, Clock())
    assert not found.w.any() and found.intercept == 1.0
    assert found.certificate.primal == found.certificate.gap == 0.0


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("questions", [0, 3, 8])
def test_a_run_that_ends_early_is_certified(loss, questions):
    """Whenever the clock ends it, the gap is that of a feasible β."""
    X, y, weight = samples(4000, 6, loss)
    clock = Countdown(questions)
    found = solve_parts(cut(X, y, weight, 4), Statement(loss, intercept=True), LinearOptions(tol=1e-12), clock)
    assert found.status in (Status.TIME_LIMIT, Status.CONVERGED, Status.STALLED)
    assert found.certificate.valid and np.isfinite(found.certificate.gap)


def test_max_iter_ends_a_run():
    """Its status says so, and the model is certified."""
    X, y, weight = samples(300, 6)
    for loss in (Hinge(), SquaredHinge()):
        options = LinearOptions(tol=1e-12, max_iter=1)
        found = solve_parts(cut(X, y, weight, 3), Statement(loss, bias=1.0), options, Clock())
        assert found.status is Status.MAX_ITER and found.n_iter == 1 and found.certificate.valid


def test_what_cannot_be_solved_is_named():
    """Penalties, an infinite C, parts of different columns, and no rows at all."""
    X, y, weight = samples(20, 3)
    with pytest.raises(InvalidInputError, match="l1=1 and C=1 were given"):
        solve_parts(cut(X, y, weight, 2), Statement(Hinge(), penalty=Penalty(1.0, 0.0)), OPTIONS, Clock())
    with pytest.raises(InvalidInputError, match="C=inf"):
        solve_parts(cut(X, y, weight, 2), Statement(Hinge(), C=np.inf), OPTIONS, Clock())
    mixed = LocalParts([Held(X, y, weight), Held(X[:, :2], y, weight)])
    with pytest.raises(InvalidInputError, match="first part has 3 columns, but another one has 2"):
        solve_parts(mixed, Statement(Hinge(), intercept=True), OPTIONS, Clock())
    with pytest.raises(InvalidInputError, match="All parts are empty"):
        solve_parts(LocalParts([Held(X[:0], y[:0])]), Statement(Hinge()), OPTIONS, Clock())
    with pytest.raises(InvalidInputError, match="too large: the squares have no finite sum"):
        solve_parts(cut(1e200 * X, y, weight, 2), Statement(Hinge()), OPTIONS, Clock())


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize(("intercept", "bias"), INTERCEPTS)
def test_many_columns_need_no_matrix(loss, intercept, bias):
    """More columns than are factored: conjugate gradients or rounds of coordinate descent, to the same optimum."""
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 2200), density=0.01, format="csr", rng=rng)
    f = X @ rng.normal(size=2200) + 0.1 * rng.normal(size=300)
    y = f if "insensitive" in loss.name else np.where(f > 0, 1.0, -1.0)
    options, weight = LinearOptions(tol=1e-3), np.ones(300)
    problem = LinearProblem(Rows.of(X, bias), loss, y, weight, intercept)
    expected = solve_linear("auto", problem, LinearOptions(tol=1e-6), Clock()).certificate.primal
    for edges in ((0, 300), (0, 100, 180, 300)):
        parts = LocalParts([Held(X[a:b], y[a:b]) for a, b in pairwise(edges)])
        found = solve_parts(parts, Statement(loss, 1.0, intercept, bias), options, Clock())
        proof = found.certificate
        assert proof.valid and proof.primal - proof.dual >= proof.primal - expected * (1 + 1e-6)
        # a free intercept couples the parts of a loss with kinks: the certificate says what was reached
        assert proof.relative_gap <= 1e-3 or (intercept and len(edges) > 2 and found.status is not Status.CONVERGED)


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.1)], ids=lambda loss: loss.name)
@pytest.mark.parametrize(("intercept", "bias"), INTERCEPTS)
@pytest.mark.parametrize("stored", [np.asarray, csr])
def test_free_rows_that_come_to_the_caller_give_the_same_model(loss, intercept, bias, stored):
    """The central path on rows that were brought is that of the parts; it takes fewer passes."""
    X, y, weight = samples(4000, 8, loss)
    statement, passes, found = Statement(loss, 1.0, intercept, bias), [], []
    for numbers in (0, 1 << 20):
        parts = Counting.of(cut(X, y, weight, 3, stored))
        parts.path_numbers = numbers
        found.append(solve_parts(parts, statement, OPTIONS, Clock()))
        passes.append(len(parts.reads))
        # β of the parts, too: the certificate is that of all rows
        rows = Rows.of(X, bias)
        again = linear_certificate(
            LinearProblem(rows, loss, y, weight, intercept), found[-1].w, found[-1].intercept, beta_of(parts)
        )
        assert found[-1].certificate.gap == pytest.approx(again.gap, abs=1e-9 * again.primal)
    check(found[1], found[0])
    assert passes[1] < passes[0] / 2


@pytest.mark.parametrize("intercept", [True, False])
def test_newtons_method_reads_all_rows_once_a_step(intercept):
    """The certificate takes no pass over rows unless a free intercept changes β; nor does a step need two."""
    X, y, weight = samples(20_000, 8, SquaredHinge())
    parts = Counting.of(cut(X, y, weight, 3))
    found = solve_parts(parts, Statement(SquaredHinge(), 1.0, intercept), OPTIONS, Clock())
    assert found.certificate.relative_gap <= TOL
    steps = len(found.trace)
    # the problem is stated, the sample drawn, and each point of the trace evaluated
    assert sum(parts.reads) == 2 + steps + intercept


class Counting(LocalParts):
    """Notes of each pass whether it reads rows."""

    @classmethod
    def of(cls, parts):
        found = cls([part.loader for part in parts.parts])
        found.reads = []
        return found

    def map(self, function, *args, reads=True):
        self.reads.append(bool(reads))
        return super().map(function, *args, reads=reads)

    def total(self, function, *args, reads=True):
        self.reads.append(bool(reads))
        return super().total(function, *args, reads=reads)


def test_the_largest_number_is_named_if_only_all_parts_together_overflow():
    """The squares of each part have a finite sum, those of both have none."""
    X = np.full((40, 1), 5e153)
    X[::2] *= -1.0
    with pytest.raises(InvalidInputError, match=r"The largest absolute value of X is 5e\+153"):
        solve_parts(
            LocalParts([Held(X * 0.3, np.ones(40)), *[Held(X, np.ones(40))] * 4]), Statement(Hinge()), OPTIONS, Clock()
        )


@pytest.mark.parametrize("questions", [0, 1, 3, 6, 10, 15])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_limit_does_not_leave_a_model_above_the_start(loss, questions):
    """Wherever a run is cut, its primal value is at most that of the model it began with."""
    X, y, weight = samples(4000, 8, loss)
    whole = LinearProblem(Rows.of(X), loss, y, 10.0 * weight, True)
    near = solve_linear("auto", whole, LinearOptions(tol=0.05), Clock())
    start = np.append(near.w, near.intercept)
    parts = cut(X, y, weight, 3)
    found = solve_parts(parts, Statement(loss, 10.0, True), OPTIONS, Countdown(questions), start)
    assert found.certificate.primal <= near.certificate.primal * (1 + 1e-12)
    f = X @ found.w + found.intercept
    paid = loss.primal(float(found.w @ found.w), y, f, 10.0 * weight, np.zeros(1), np.zeros(1))
    assert paid == pytest.approx(found.certificate.primal, rel=1e-9)


@pytest.mark.parametrize("limit", [5.0, 8.0, 13.0])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
def test_a_limit_leaves_time_for_the_certificates(loss, intercept, limit):
    """Where each pass over the rows takes a second, a run ends at most one pass after its limit."""
    X, y, weight = samples(3000, 4, loss)
    clock = SteppedClock(limit)

    class Slow(Held):
        def __call__(self):
            clock.now += 0.25
            return super().__call__()

    cuts = pairwise(range(0, 3001, 750))
    parts = LocalParts([Slow(X[a:b], y[a:b], weight[a:b]) for a, b in cuts], budget=0)
    start = np.full(4 + intercept, 0.1)
    found = solve_parts(parts, Statement(loss, intercept=intercept), LinearOptions(tol=1e-12), clock, start)
    assert found.status in (Status.TIME_LIMIT, Status.CONVERGED) and found.certificate.valid
    assert clock.now <= limit + 1.0


def test_a_slow_first_pass_takes_no_time_from_rows_in_memory():
    """Rows are loaded once, which takes most of the limit; the passes after it take no time: the run converges."""
    for d in (4, 2500):
        X, y, weight = samples(300, d, Hinge())
        clock = SteppedClock(8.0)

        class Slow(Held):
            def __call__(self, clock=clock):
                clock.now += 2.5
                return super().__call__()

        parts = LocalParts([Slow(X[a:b], y[a:b], weight[a:b]) for a, b in ((0, 150), (150, 300))])
        found = solve_parts(parts, Statement(Hinge(), bias=1.0), OPTIONS, clock, np.zeros(d + 1))
        assert found.status is Status.CONVERGED and clock.now == 5.0
