"""The exact solver finds the optimum on each of its ways, says the truth about it, and always ends."""

import signal
from dataclasses import replace

import numpy as np
import pytest
from tests.naming import named
from tests.problems.instances import FORMS
from tests.reference.qp import solve_qp
from tests.svm.ways import WAYS, planned, run, task

from mercer.gram.operator import Data, GramOperator
from mercer.kernels import CallableKernel, Gaussian, Linear, Polynomial
from mercer.losses import (
    EpsilonInsensitive,
    HardMargin,
    Hinge,
    NuHinge,
    NuInsensitive,
    OneClass,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from mercer.problems.clock import Clock, WorkClock
from mercer.problems.dual import DualProblem, feasible_start
from mercer.problems.solution import Options, Status
from mercer.svm import solve as exact
from mercer.svm.decomposition import Decomposition
from mercer.svm.hard_margins import hard_margin
from mercer.testing.solvers import Task, check_solution

LOSSES = [Hinge(), SquaredHinge(), EpsilonInsensitive(0.1), OneClass(0.3), NuHinge(0.4), NuInsensitive(0.4)]


def check_optimum(job, beta, best, tol):
    """A convex objective is above its optimum by at most violation times distance, and below it by rounding."""
    value, optimum = job.objective(beta), job.objective(best)
    distance = np.abs(beta - best).sum()
    rounding = 1e-8 * max(abs(value), abs(optimum), 1e-3)
    assert -rounding <= value - optimum <= tol * distance + rounding


class TestOptimum:
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
    def test_every_loss_on_every_way(self, loss, intercept, way):
        """The reference's optimum to what tol allows, with a certificate that K beta confirms."""
        job = task(loss, intercept, n=60)
        best = solve_qp(job.K, job.problem.qp)
        for tol in (1e-3, 1e-5):
            solution = run(job, tol=tol, working_set=16, way=way)
            assert solution.status is Status.CONVERGED
            check_solution(job, solution, tol)
            check_optimum(job, solution.beta, best, tol)

    @pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
    def test_shrinking_on_the_dense_matrix(self, loss, intercept):
        """The reference's optimum, although settled variables are removed as early as possible."""
        job = task(loss, intercept, n=60)
        data, qp = Data(job.kernel, job.X, 60), job.problem.qp
        early = replace(planned("single", data, qp, Options()), settled_after=0.3, most_unsettled=1.0)
        solution = exact.solve(data, job.problem, Options(plan=early), Clock(120.0))
        assert solution.status is Status.CONVERGED
        active = [point.active for point in solution.trace]
        if not isinstance(loss, HardMargin):  # which is solved in float64
            assert len(active) > 1 and active[0] == 60  # then follows a run without the settled variables
        assert not isinstance(loss, (Hinge, OneClass)) or active[1] < 60  # others may have no bound
        check_solution(job, solution, 1e-3)
        check_optimum(job, solution.beta, solve_qp(job.K, qp), 1e-3)

    @pytest.mark.parametrize("loss", LOSSES, ids=named)
    def test_certificate_of_screened_rows(self, loss):
        """The certificate from some rows alone equals the full recomputation, for float32 matrices and rows."""
        job = task(loss, n=500, C=1.0)
        for way in ("single", "rows"):
            solution = run(job, way=way)
            assert solution.status is Status.CONVERGED and solution.certificate.valid
            check_solution(job, solution, 1e-3)

    @pytest.mark.parametrize("loss", LOSSES, ids=named)
    def test_shrinking_changes_nothing(self, loss):
        """With and without it the optimum is the same to what tol allows; half of the rows can be kept."""
        job = task(loss, n=600)
        options = {"budget": 300 * 600 * 4, "working_set": 48}
        solutions = [run(job, shrinking=shrinking, **options, way="rows") for shrinking in (True, False)]
        assert min(point.active for point in solutions[0].trace) < 600
        assert all(point.active == 600 for point in solutions[1].trace)
        for solution in solutions:
            assert solution.status is Status.CONVERGED
            check_solution(job, solution, 1e-3)
        with_it, without = (job.objective(solution.beta) for solution in solutions)
        assert abs(with_it - without) <= 2e-3 * np.abs(solutions[0].beta - solutions[1].beta).sum() + 1e-9

    def test_few_rows_are_computed_blindly(self):
        """At beta = 0 all scores are alike: a first set of 64, and in all less than two rows a support vector."""
        job = task(Hinge(), n=3000)
        data = Data(job.kernel, job.X, len(job.X))
        solution = exact.solve(data, job.problem, Options(), Clock(120.0))
        assert solution.status is Status.CONVERGED
        assert data.evaluations.count < 2 * 3000 * np.count_nonzero(solution.beta)

    @pytest.mark.parametrize("size", [2, 3])
    def test_smallest_working_sets(self, size):
        """Two members of one group are enough, also where there are two groups or a null sample."""
        for loss, intercept in ((NuHinge(0.4), True), (Hinge(), False)):
            job = task(loss, intercept, n=100)
            assert run(job, working_set=size, way="rows").status is Status.CONVERGED

    def test_any_working_set(self):
        """From four members to more than there are variables."""
        for loss in (Hinge(), NuHinge(0.4)):
            job = task(loss, n=150)
            best = solve_qp(job.K, job.problem.qp)
            for size in (4, 5, 10, 64, 1000):
                solution = run(job, working_set=size, way="rows")
                assert solution.status is Status.CONVERGED
                check_optimum(job, solution.beta, best, 1e-3)

    @pytest.mark.parametrize("way", WAYS)
    def test_a_python_function_as_kernel(self, way):
        """The compiled code never calls a kernel: any function does."""
        function = CallableKernel(lambda A, B: np.exp(-0.25 * ((A[:, None] - B) ** 2).sum(axis=2)))
        job, same = task(Hinge(), kernel=function), task(Hinge())
        solution = run(job, way=way)
        check_solution(same, solution, 1e-3)


class Coarse(Gaussian):
    """The Gaussian kernel, with three digits only in single precision."""

    def block(self, a, b, out=None):
        values = super().block(a, b, out)
        if b.dtype == np.float32:
            values[...] = values.astype(np.float16)
        return values


class TestStages:
    @pytest.mark.parametrize("loss", [*LOSSES, SquaredEpsilonInsensitive(0.1), Pinball(0.3)], ids=named)
    @pytest.mark.parametrize("rows", [None, 40])
    def test_start_on_a_part(self, loss, rows):
        """A run that begins with 150 of 700 samples ends at all of them, with room for 40 rows too."""
        job = task(loss, n=700)
        options = {} if rows is None else {"budget": rows * 700 * 4}
        solution = run(job, **options, way="rows", first=150)
        started_small = not job.problem.start().any()
        assert solution.trace[0].active == (150 if started_small else 700)
        assert solution.trace[-1].active == 700
        assert solution.status is Status.CONVERGED
        check_solution(job, solution, 1e-3)

    def test_without_an_intercept(self):
        """The null sample survives shrinking and stages."""
        for loss in (Hinge(), EpsilonInsensitive(0.1)):
            job = task(loss, intercept=False, n=700)
            solution = run(job, way="rows", first=150)
            assert solution.status is Status.CONVERGED and solution.trace[0].active == 150
            check_solution(job, solution, 1e-3)

    @pytest.mark.parametrize("intercept", [True, False])
    def test_a_failed_verification_continues_with_the_verified_samples(self, intercept):
        """If F of float32 rows was not exact enough, the run continues with the verified samples and ends on all."""
        job = task(Hinge(), intercept=intercept, n=1500, kernel=Coarse(0.25))
        solution = run(job, tol=1e-4, way="rows", first=150)
        active = [point.active for point in solution.trace]
        assert active[0] == 150 and active[-1] == 1500
        done = active.index(1500)  # no sample violates, as far as float32 rows tell
        assert solution.trace[done].violation <= 1e-4 and 0 < active[done + 1] < 1200
        assert solution.status is Status.CONVERGED
        check_solution(job, solution, 1e-4)

    def test_the_budget_is_kept(self):
        """Stored rows never take more bytes than asked for, whatever joins and leaves."""
        job = task(Hinge(), n=700)
        data, qp = Data(job.kernel, job.X, 700), job.problem.qp
        gram = GramOperator(data.kernel, data.features(np.float32))

        def stored(budget):
            """The bytes of stored rows, round by round."""
            options, found = Options(budget=budget), []
            plan = planned("rows", data, qp, options, first=150)
            clock = Clock(progress=lambda _: found.append(descent.store.values.nbytes))
            descent = Decomposition(gram, qp, np.zeros(700), np.zeros(700), plan, options, clock)
            assert descent.run(1e-3) is Status.CONVERGED and descent.store.buffer.nbytes <= budget
            return found

        for rows in (5, 40, 300):
            budget = rows * 700 * 4 + 3
            found = stored(budget)
            assert len(set(found)) > 1 and max(found) <= budget

    @pytest.mark.parametrize("scale", [100.0, 1000.0])
    def test_large_kernel_values(self, scale):
        """Kernel values far above 1 make small coefficients matter: those of inactive samples, too."""
        job = task(Hinge(), n=700, C=1e-4, kernel=Linear(), scale=scale)
        solution = run(job, WorkClock(60.0), way="rows", first=150)
        assert solution.status is Status.CONVERGED
        check_solution(job, solution, 1e-3)


class TestStart:
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("loss", LOSSES, ids=named)
    def test_the_optimum_as_start(self, loss, way):
        """No step is taken from there, and the start is left as it is."""
        job = task(loss)
        first = run(job, tol=1e-4, way=way)
        start = first.beta.copy()
        again = run(job, start=start, tol=1e-3, way=way)
        assert again.steps == 0 and again.status is Status.CONVERGED
        np.testing.assert_array_equal(start, first.beta)
        np.testing.assert_array_equal(again.beta, first.beta)

    @pytest.mark.parametrize("way", WAYS)
    def test_a_neighbour_as_start(self, way):
        """The optimum for a smaller C leads to the optimum for C, and is nearer after a few steps than from nothing."""
        half, job = task(Hinge(), n=300, C=1.0), task(Hinge(), n=300, C=1.1)
        start = feasible_start(job.problem.qp, run(half, tol=1e-5, way=way).beta)
        few = [run(job, start=first, max_iter=50, way=way).certificate.dual for first in (start.copy(), None)]
        assert few[0] > few[1]
        cold, warm = run(job, tol=1e-5, way=way), run(job, start=start, tol=1e-5, way=way)
        check_optimum(job, warm.beta, cold.beta, 2e-5)


class TestEarlyEnd:
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("max_iter", [0, 1, 37])
    def test_max_iter(self, way, max_iter):
        """The run takes at most max_iter steps; its certificate bounds the distance to the optimum."""
        for loss in LOSSES:
            job = task(loss)
            solution = run(job, max_iter=max_iter, way=way)
            assert solution.status is Status.MAX_ITER and solution.steps <= max_iter
            check_solution(job, solution, np.inf)
            best = run(job, tol=1e-6, way=way)
            assert solution.certificate.gap >= best.certificate.dual - solution.certificate.dual - 1e-9

    @pytest.mark.parametrize("way", WAYS)
    def test_time_limit(self, way):
        """No time at all leaves a feasible, certified model; so does a little, in the middle of the stages."""
        # with a tol beyond rounding no run ends within its first round
        job = task(EpsilonInsensitive(0.01), n=500, C=100.0)
        solution = run(job, Clock(0.0), tol=1e-15, way=way)
        assert solution.status is Status.TIME_LIMIT
        check_solution(job, solution, np.inf)

    @pytest.mark.parametrize("way", WAYS)
    def test_interrupt(self, way):
        """A clock that was interrupted ends the run after the round at hand."""
        job = task(EpsilonInsensitive(0.01), n=300, C=100.0)
        clock = Clock()
        clock.interrupted = True
        solution = run(job, clock, tol=1e-15, way=way)
        assert solution.status is Status.INTERRUPTED
        check_solution(job, solution, np.inf)

    @pytest.mark.parametrize("after", [1, 3, 6])
    def test_whoever_watches_may_ask_for_the_end(self, after):
        """At any point of a staged run F and beta of all samples are consistent."""
        seen = []

        def watch(point):
            seen.append(point)
            return len(seen) >= after

        job = task(Hinge(), n=700)
        solution = run(job, Clock(progress=watch), tol=1e-5, way="rows", first=150)
        # at the end of a stage all samples are checked first
        assert solution.status is Status.INTERRUPTED and after <= len(seen) <= after + 1
        assert solution.trace == seen
        check_solution(job, solution, np.inf)

    def test_ctrl_c(self):
        """The first one asks for an end, the second one is an ordinary KeyboardInterrupt; then all is as before."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with Clock() as clock:
                signal.raise_signal(signal.SIGINT)
                assert clock.interrupted and clock.over() is Status.INTERRUPTED
                with pytest.raises(KeyboardInterrupt):
                    signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        finally:
            signal.signal(signal.SIGINT, before)


class TestPrecision:
    @pytest.mark.parametrize("way", ["single", "rows"])
    @pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.05), NuHinge(0.2)], ids=named)
    def test_more_digits_than_float32_has(self, loss, way):
        """Large coefficients and a small tol: exact values of F, at last a float64 matrix, lead there."""
        job = task(loss, n=200, C=500.0)
        solution = run(job, tol=1e-5, way=way)
        assert solution.status is Status.CONVERGED
        check_solution(job, solution, 1e-5)

    @pytest.mark.parametrize("way", WAYS)
    def test_kernels_with_large_values(self, way):
        """A polynomial of samples that are not scaled has values around 1e5."""
        job = task(Hinge(), n=200, C=1e-4, kernel=Polynomial(3, 1.0, 1.0), scale=3.0)
        solution = run(job, way=way)
        assert solution.status is Status.CONVERGED
        check_solution(job, solution, 1e-3)

    def test_asked_for(self):
        """float32 and float64 lead to the same optimum."""
        job = task(Hinge(), n=450)
        single, double = (run(job, precision=precision) for precision in ("float32", "float64"))
        for solution in (single, double):
            check_solution(job, solution, 1e-3)
        check_optimum(job, single.beta, double.beta, 2e-3)

    def test_values_that_are_not_finite(self):
        """Overflow of the kernel is an error that says what to do."""
        job = task(Hinge(), n=50)._replace(kernel=Polynomial(9, 1.0, 1.0), X=1e40 * np.ones((50, 2)))
        with np.errstate(all="ignore"), pytest.raises(ValueError, match="values that are not finite"):
            run(job)


@pytest.mark.parametrize("way", WAYS)
def test_hard_margin_that_does_not_exist(way):
    """Inseparable classes, and equal samples with opposite labels, are unbounded."""
    inseparable = task(HardMargin(), kernel=Linear())
    assert run(inseparable, way=way).status is Status.UNBOUNDED
    X = np.repeat(inseparable.X[:60], 2, axis=0)
    problem = DualProblem(None, HardMargin(), np.tile([1.0, -1.0], 60), np.ones(120), True)
    assert run(Task("equal", Gaussian(0.5), X, np.empty(0), problem), way=way).status is Status.UNBOUNDED


@pytest.mark.parametrize("way", [None, "rows"], ids=["by their spread", "after a stall"])
def test_targets_that_float32_rows_do_not_resolve(way):
    """Prices of thousands with tol = 1e-3: the run is in float64, at once or when float32 gets no further."""
    rng = np.random.default_rng(0)
    n = 2500
    X = np.round(rng.normal(size=(n, 5)), 1)
    y = np.round(2000 * np.exp(X[:, 0] + 0.3 * X[:, 1] + 0.2 * rng.normal(size=n)))
    problem = DualProblem(None, EpsilonInsensitive(40.0), y, np.full(n, 500.0), True)
    solution = run(Task("prices", Gaussian(0.05), X, np.empty(0), problem), way=way)
    assert solution.status is Status.CONVERGED
    assert solution.plan.precision == "float64"
    assert solution.certificate.kkt_violation <= 1e-3 and solution.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize(("n", "d"), [(600, 60), (1700, 20)])
@pytest.mark.parametrize("intercept", [True, False])
def test_separability_is_decided_early(intercept, n, d):
    """Of inseparable classes a linear kernel takes a few pair steps for each sample, then comes the proof."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
    problem = DualProblem(None, HardMargin(), y, np.ones(n), intercept)
    solution = run(Task("inseparable", Linear(), X, np.empty(0), problem))
    assert solution.status is Status.UNBOUNDED
    assert solution.separation.decided and not solution.separation.separable
    assert solution.steps <= hard_margin.FIRST_STEPS + hard_margin.FIRST_STEPS_PER_SAMPLE * n


def test_a_hard_margin_goes_on_after_the_decision():
    """Where separable classes take more steps than come before the decision, the optimum is the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    problem = DualProblem(None, HardMargin(), y, np.ones(80), True)
    job = Task("separable", Linear(), X + 0.01 * y[:, None] * np.eye(4)[0], np.empty(0), problem)
    whole_run = run(job, tol=1e-8, max_iter=10**7)  # with a limit of the user's there is no decision before the end
    solution = run(job, tol=1e-8)
    assert solution.status is whole_run.status is Status.CONVERGED
    steps = [point.steps for point in solution.trace]
    assert steps[0] == hard_margin.FIRST_STEPS + 80 * hard_margin.FIRST_STEPS_PER_SAMPLE < whole_run.steps
    assert steps == sorted(steps) and solution.steps == steps[-1]
    np.testing.assert_allclose(solution.certificate.dual, whole_run.certificate.dual, rtol=1e-7)


def test_same_bits_for_any_number_of_threads():
    """1, 2 and 3 threads, in decomposition with stages and on the dense matrix."""
    for n, way in ((4500, "rows"), (600, "single"), (300, "double")):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 3))
        y = np.where(X[:, 0] + 0.4 * rng.normal(size=n) > 0, 1.0, -1.0)
        job = Task("threads", Gaussian(0.3), X, np.empty(0), DualProblem(None, Hinge(), y, np.ones(n), True))
        one, two, three = (run(job, n_threads=n_threads, way=way, first=1500) for n_threads in (1, 2, 3))
        assert one.status is Status.CONVERGED
        for other in (two, three):
            np.testing.assert_array_equal(other.beta, one.beta)
            np.testing.assert_array_equal(other.F, one.F)
            assert other.certificate == one.certificate
