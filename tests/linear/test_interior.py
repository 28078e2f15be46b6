"""The interior-point method for linear machines ends at the optimum, by a QP package and by its own certificate."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named
from tests.reference.linear import solve as reference

from mercer.exceptions import InvalidInputError
from mercer.linear import interior
from mercer.linear.linear_problem import LinearProblem, Penalty, Rows, linear_certificate
from mercer.linear.linear_solution import LinearOptions
from mercer.linear.systems import Tall, Wide, weighted_gram
from mercer.losses import (
    EpsilonInsensitive,
    HardMargin,
    Hinge,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from mercer.problems.clock import Clock
from mercer.problems.solution import Status

LOSSES = {
    "hinge": (Hinge(), 0.0),
    "squared_hinge": (SquaredHinge(), 0.0),
    "epsilon_insensitive": (EpsilonInsensitive(0.2), 0.2),
    "squared_epsilon_insensitive": (SquaredEpsilonInsensitive(0.2), 0.2),
    "pinball": (Pinball(0.3), 0.3),
}
REGRESSION = ("epsilon_insensitive", "squared_epsilon_insensitive", "pinball")
PENALTIES = [Penalty(), Penalty(1.0, 0.0), Penalty(0.3, 0.7)]
# (constant feature, free intercept)
INTERCEPTS = {"none": (0.0, False), "penalised": (1.5, False), "free": (0.0, True)}
KINDS = (
    "tall", "wide", "few", "one column", "empty rows", "constant columns", "contradictions", "scales", "no weight",
    "whole numbers", "one class",
)  # fmt: skip
STORAGE = (np.asarray, sp.csr_array, lambda X: X.astype(np.float32))


def run(problem, tol=1e-8, clock=None, **options):
    return interior.solve(problem, LinearOptions(tol=tol, **options), Clock() if clock is None else clock)


def data(kind, loss, rng):
    """(X, y, weight) of one kind of problem."""
    n, d = {"wide": (15, 30), "few": (5, 2), "one column": (30, 1)}.get(kind, (60, 5))
    X, weight = rng.normal(size=(n, d)), np.ones(n)
    signal = X @ rng.normal(size=d) + rng.normal(size=n) + 0.3
    if kind == "empty rows":
        X[::3] = 0.0
    elif kind == "constant columns":
        X[:, 1], X[:, 2] = 0.0, 3.0
    elif kind == "contradictions":
        X = np.repeat(X[: n // 2], 2, axis=0)
        signal[::2] = -signal[1::2]
    elif kind == "scales":
        X *= 10.0 ** rng.integers(-8, 9, size=d)
    elif kind == "no weight":
        weight = np.where(rng.random(n) < 0.4, 0.0, rng.uniform(0.1, 5.0, n))
    elif kind == "whole numbers":
        X = np.round(X)
    elif kind == "one class":
        signal = np.abs(signal)
    return X, (signal if loss in REGRESSION else np.where(signal > 0, 1.0, -1.0)), weight


def check(problem, solution, kind, parameter, tol):
    """Certified to tol, and no worse than the QP package, which may itself be unsure."""
    proof = solution.certificate
    again = linear_certificate(problem, solution.w, solution.intercept, solution.beta)
    assert solution.status is Status.CONVERGED, proof
    assert proof.valid and proof.relative_gap <= tol
    assert again.primal == pytest.approx(proof.primal, rel=1e-10) and again.relative_gap <= 1.01 * tol
    X = problem.rows.X.toarray() if problem.rows.sparse else np.asarray(problem.rows.X)
    X = X.astype(np.float64)
    if problem.rows.bias:
        X = np.column_stack([X, np.full(len(X), problem.rows.bias)])
    l1, l2 = problem.penalty
    best = reference(X, problem.y, problem.weight, kind, l1=l1, l2=l2, free=problem.intercept, parameter=parameter)
    assert proof.primal <= best.value * (1 + tol) + 1e-300
    assert proof.dual <= best.value * (1 + 1e-9) + 1e-300


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", PENALTIES, ids=named)
@pytest.mark.parametrize("loss", LOSSES)
def test_against_a_qp_package(loss, penalty, kind):
    """Every loss with every penalty on ordinary and degenerate data, with each kind of intercept and storage."""
    function, parameter = LOSSES[loss]
    for number, (intercept, (bias, free)) in enumerate(INTERCEPTS.items()):
        rng = np.random.default_rng([number, len(kind)])
        X, y, weight = data(kind, loss, rng)
        if kind == "scales" and penalty.l2 == 0 and intercept == "free":
            continue  # the reference fails
        C = (0.05, 1.0, 20.0)[number]
        rows = Rows.of(STORAGE[number](X), bias)
        problem = LinearProblem(rows, function, y, C * weight, free, penalty)
        check(problem, run(problem), loss, parameter, 1e-8)


@pytest.mark.parametrize("power", [-8, -4, 4, 8])
@pytest.mark.parametrize("kind", ["tall", "no weight", "contradictions"])
@pytest.mark.parametrize("loss", LOSSES)
def test_extreme_weights(loss, kind, power):
    """C from 1e-8 to 1e8, elastic net and free intercept included."""
    function, parameter = LOSSES[loss]
    for penalty, free in ((Penalty(), True), (Penalty(0.3, 0.7), False)):
        X, y, weight = data(kind, loss, np.random.default_rng(5))
        problem = LinearProblem(Rows.of(X), function, y, 10.0**power * weight, free, penalty)
        check(problem, run(problem), loss, parameter, 1e-8)


def many(loss, n=6000, d=6, seed=0, dtype=np.float64):
    """Enough samples for parts and rounds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    signal = X @ rng.normal(size=d) + rng.normal(size=n)
    return X, (signal if loss in REGRESSION else np.where(signal > 0, 1.0, -1.0))


class TestRounds:
    @pytest.mark.parametrize("free", [False, True])
    @pytest.mark.parametrize("penalty", PENALTIES, ids=named)
    @pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive", "pinball"])
    def test_same_optimum_as_all_at_once(self, loss, penalty, free):
        """Samples far from every kink may be held: the optimum is that of the path over all of them."""
        X, y = many(loss)
        problem = LinearProblem(Rows.of(X, 0.0 if free else 1.0), LOSSES[loss][0], y, np.ones(len(y)), free, penalty)
        parts = run(problem)
        # most of the work was done on a part of the samples
        assert min(point.active for point in parts.trace) < len(y) / 4
        assert sum(point.active < len(y) for point in parts.trace) > len(parts.trace) / 2
        # on sparse rows no part is used
        whole = run(replace(problem, rows=Rows.of(sp.csr_array(X), problem.rows.bias)))
        assert {point.active for point in whole.trace} == {len(y)}
        assert parts.status is whole.status is Status.CONVERGED
        assert parts.certificate.primal == pytest.approx(whole.certificate.primal, rel=2e-8)
        np.testing.assert_allclose(parts.w, whole.w, atol=2e-3)

    def test_the_order_of_the_rows_is_no_matter(self):
        """Sorted by class, by distance, or repeated: parts are drawn at random."""
        X, y = many("hinge")
        order = np.lexsort((X[:, 0], y))
        values = [
            run(LinearProblem(Rows.of(X[index], 1.0), Hinge(), y[index], np.ones(len(y)))).certificate.primal
            for index in (np.arange(len(y)), order, order[::-1])
        ]
        np.testing.assert_allclose(values, values[0], rtol=2e-8)

    @pytest.mark.parametrize("free", [False, True])
    @pytest.mark.parametrize("penalty", PENALTIES, ids=named)
    def test_a_near_model_takes_the_place_of_the_part(self, penalty, free):
        """From a rough solution fewer steps are needed, from a good one none; one of another problem does no harm."""
        X, y = many("hinge")
        rows = Rows.of(X, 0.0 if free else 1.0)
        problem = LinearProblem(rows, Hinge(), y, np.ones(len(y)), free, penalty)
        cold, rough = run(problem), run(problem, 1e-2)
        warm = interior.solve(problem, LinearOptions(tol=1e-8), Clock(), rough)
        assert warm.status is Status.CONVERGED and warm.n_iter < cold.n_iter
        assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-8)
        assert interior.solve(problem, LinearOptions(tol=1e-7), Clock(), cold).n_iter == 0
        other = LinearProblem(rows, Hinge(), -y, np.full(len(y), 0.1), free, penalty)
        assert interior.solve(other, LinearOptions(tol=1e-8), Clock(), cold).certificate.relative_gap <= 1e-8

    def test_few_heavy_samples(self):
        """A part that misses the samples that matter is corrected by the rounds."""
        X, y = many("hinge")
        weight = np.full(len(y), 1e-3)
        weight[:20] = 1e3
        solution = run(LinearProblem(Rows.of(X, 1.0), Hinge(), y, weight))
        assert solution.status is Status.CONVERGED and solution.certificate.relative_gap <= 1e-8

    def test_threads(self):
        """The same optimum with any number of threads, the same bits with the same number."""
        X, y = many("hinge")
        problem = LinearProblem(Rows.of(X, 1.0), Hinge(), y, np.ones(len(y)))
        one, two, again = (run(problem, n_threads=k) for k in (1, 2, 2))
        assert one.certificate.primal == pytest.approx(two.certificate.primal, rel=2e-8)
        np.testing.assert_array_equal(two.w, again.w)

    def test_memory_map_of_float32(self, tmp_path):
        """A memory map is read in place; the optimum is that of its numbers."""
        X, y = many("hinge", dtype=np.float32)
        mapped = np.memmap(tmp_path / "X", dtype=np.float32, mode="w+", shape=X.shape)
        mapped[:] = X
        mapped.flush()
        problem = LinearProblem(
            Rows.of(np.memmap(tmp_path / "X", np.float32, "r", shape=X.shape), 1.0), Hinge(), y, np.ones(len(y))
        )
        solution = run(problem)
        same = run(LinearProblem(Rows.of(X.astype(np.float64), 1.0), Hinge(), y, np.ones(len(y))))
        assert solution.certificate.relative_gap <= 1e-8
        assert solution.certificate.primal == pytest.approx(same.certificate.primal, rel=2e-8)


class TestHardMargin:
    @pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
    @pytest.mark.parametrize("penalty", PENALTIES, ids=named)
    @pytest.mark.parametrize("free", [False, True])
    def test_separable(self, free, penalty, scale):
        """The certified separator of largest margin: no finite weight gives more."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 3))
        y = np.where(X[:, 0] > 0, 1.0, -1.0)
        X[:, 0] += 0.2 * y
        problem = LinearProblem(Rows.of(scale * X), HardMargin(), y, np.ones(80), free, penalty)
        solution = run(problem)
        assert solution.status is Status.CONVERGED
        assert solution.certificate.relative_gap <= 1e-8
        assert (y * (problem.rows.dot(solution.w) + solution.intercept)).min() >= 1 - 1e-5
        C = 10 * np.abs(solution.beta).max()
        soft = run(LinearProblem(problem.rows, Hinge(), y, np.full(80, C), free, penalty))
        assert soft.certificate.primal == pytest.approx(solution.certificate.primal, rel=1e-6)

    @pytest.mark.parametrize("free", [False, True])
    def test_not_separable(self, free):
        """β runs away in a direction that combines samples to nothing: the proof that there is no separator."""
        X, y = many("hinge", n=60)
        solution = run(LinearProblem(Rows.of(X), HardMargin(), y, np.ones(60), free))
        assert solution.status is Status.UNBOUNDED
        weights = solution.beta / np.abs(solution.beta).sum()
        assert (weights * y >= 0).all()
        assert np.linalg.norm(X.T @ weights) <= 1e-6 * np.linalg.norm(X, axis=1).max()
        if free:
            assert abs(weights.sum()) <= 1e-9

    def test_no_tube_fits(self):
        """A hard tube around contradicting targets does not exist."""
        X, y = np.ones((2, 1)), np.array([0.0, 5.0])
        solution = run(LinearProblem(Rows.of(X), EpsilonInsensitive(0.1), y, np.full(2, np.inf)))
        assert solution.status is Status.UNBOUNDED


class TestManyFeatures:
    @pytest.mark.parametrize("penalty", PENALTIES[1:], ids=named)
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("free", [False, True])
    def test_working_set(self, loss, penalty, free):
        """An l1 penalty on more features than are solved at once: certified on all, most weights exactly 0."""
        rng = np.random.default_rng(2)
        X = sp.random_array((120, 900), density=0.05, rng=rng, format="csr")
        signal = X @ (rng.normal(size=900) * (rng.random(900) < 0.05)) + 0.1 * rng.normal(size=120)
        y = signal if loss in REGRESSION else np.where(signal > 0, 1.0, -1.0)
        problem = LinearProblem(Rows.of(X, 0.0 if free else 1.0), LOSSES[loss][0], y, np.full(120, 2.0), free, penalty)
        solution = run(problem, tol=1e-6)
        assert solution.status is Status.CONVERGED and solution.certificate.relative_gap <= 1e-6
        assert linear_certificate(problem, solution.w, solution.intercept, solution.beta).relative_gap <= 1.01e-6
        assert np.count_nonzero(solution.w) < 450


class TestLimits:
    def problem(self, loss="hinge"):
        X, y = many(loss)
        return LinearProblem(Rows.of(X, 1.0), LOSSES[loss][0], y, np.ones(len(y)))

    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("limit", [0, 1, 3, 8])
    def test_max_iter(self, loss, limit):
        """An early end leaves a feasible, certified model."""
        solution = run(self.problem(loss), max_iter=limit)
        assert solution.n_iter <= limit
        assert solution.certificate.valid and np.isfinite(solution.certificate.primal)
        if solution.status is not Status.CONVERGED:
            assert solution.status is Status.MAX_ITER

    def test_time_limit(self):
        """So does the end of the time."""
        solution = run(self.problem(), clock=Clock(time_limit=0.0))
        assert solution.status is Status.TIME_LIMIT
        assert solution.certificate.valid and np.isfinite(solution.certificate.relative_gap)

    def test_whoever_watches_may_end_it(self):
        """A watcher sees the gap fall, and the run ends when it asks for that."""
        seen = []
        solution = run(self.problem(), clock=Clock(progress=lambda point: seen.append(point) or len(seen) == 4))
        assert len(seen) == 4 and solution.status is Status.INTERRUPTED
        assert seen[-1].violation < seen[0].violation
        assert solution.certificate.valid


def test_nothing_to_pay():
    """Where a constant model pays nothing, it is the answer, exactly."""
    X = np.random.default_rng(0).normal(size=(10, 3))
    one_class = run(LinearProblem(Rows.of(X), Hinge(), np.ones(10), np.ones(10), True))
    inside = run(LinearProblem(Rows.of(X), EpsilonInsensitive(2.0), np.linspace(-1, 1, 10), np.ones(10)))
    no_weight = run(LinearProblem(Rows.of(X), Hinge(), np.ones(10), np.zeros(10)))
    for solution in (one_class, inside, no_weight):
        assert solution.status is Status.CONVERGED
        assert not solution.w.any() and solution.certificate.gap == 0.0


def test_a_constant_feature_and_a_free_intercept_say_the_same():
    """Both at once are refused."""
    problem = LinearProblem(Rows.of(np.eye(2), 1.0), Hinge(), np.array([1.0, -1.0]), np.ones(2), True)
    with pytest.raises(InvalidInputError) as found:
        run(problem)
    assert str(found.value) == "The rows have a constant feature and the problem a free intercept: give one."


@pytest.mark.parametrize("stored", STORAGE[:2], ids=["dense", "sparse"])
@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("shape", [(3000, 5), (12, 20)])
def test_systems(shape, bias, stored):
    """Both ways of factoring solve (diag + A'DA) x = r, also where the constant feature has no diagonal."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    rows = Rows.of(stored(X), bias)
    A = np.column_stack([X, np.full(len(X), bias)]) if bias else X
    D, diagonal, r = rng.uniform(0.1, 10.0, rows.n), rng.uniform(0.5, 2.0, rows.d), rng.normal(size=rows.d)
    if bias:
        diagonal[-1] = 0.0
    H = A.T @ (D[:, None] * A)
    for threads in (1, 2):
        np.testing.assert_allclose(weighted_gram(rows, D, threads), H, rtol=1e-10, atol=1e-10)
    expected = np.linalg.solve(H + np.diag(diagonal), r)
    for kind in (Tall, Wide):
        system = kind(rows, 1)
        assert system.factor(D, diagonal)
        np.testing.assert_allclose(system.solve(r), expected, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(system.apply(r), H @ r, rtol=1e-9, atol=1e-9)
