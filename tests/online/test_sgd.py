"""The runs are the procedures of the notes, step by step, and what is said of their iterates is true."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.reference.qp import solve_qp

from mercer import InvalidInputError
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.losses import Hinge
from mercer.online.sgd import KernelRun, LinearRun, Rule
from mercer.online.sgd_certificate import certificates, evaluate, objective_point
from mercer.problems.dual import DualProblem, violation

EXACT = {"rtol": 1e-10, "atol": 1e-10}


def samples(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, rng


def by_the_book(X, y, lam, order):
    """[SSBD] 15.5 in plain Python: (mean of w_1, …, w_T, theta after T steps, how often each sample was added)."""
    theta, total, hits = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros(len(y))
    for t, i in enumerate(order, start=1):
        w = theta / (lam * t)
        total += w
        if y[i] * (w @ X[i]) < 1:
            theta = theta + y[i] * X[i]
            hits[i] += 1
    return total / len(order), theta, hits


def by_the_book_with_kernels(K, y, lam, order):
    """[SSBD] 16.3 and [L8] Algorithm 1: the mean of alpha_1, …, alpha_T."""
    beta, total = np.zeros(len(y)), np.zeros(len(y))
    for t, i in enumerate(order, start=1):
        alpha = beta / (lam * t)
        total += alpha
        if y[i] * (K[i] @ alpha) < 1:
            beta[i] += y[i]
    return total / len(order)


def linear_run(X, y, rule, order):
    run = LinearRun(X, y[None], np.ones(len(y)), np.ones(len(y)), rule)
    run.advance(order)
    return run


def kernel_run(kernel, X, y, rule, order):
    run = KernelRun(kernel, kernel.prepare(X), y[None], np.ones(len(y)), np.ones(len(y)), rule)
    run.advance(order)
    return run


def stated(run):
    """Each problem of a run as the program that other solvers solve."""
    return [DualProblem(None, Hinge(), y, run.unit * run.weight, False) for y in run.y]


class TestSteps:
    @pytest.mark.parametrize(
        "storage", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)], ids=["dense", "csr", "single"]
    )
    def test_the_linear_procedure(self, storage):
        """The mean of the iterates and the last one are those of [SSBD] 15.5."""
        X, y, rng = samples()
        X[5], X[6, 1:] = 0.0, 0.0  # an empty row, and one that is nearly empty
        order = rng.integers(0, len(y), 500)
        stored = storage(X)
        plain = np.asarray(stored.todense() if sp.issparse(stored) else stored, dtype=np.float64)
        mean, theta, hits = by_the_book(plain, y, 0.1, order)
        run = linear_run(stored, y, Rule(0.1), order)
        np.testing.assert_allclose(run.model().w[0], mean, **EXACT)
        np.testing.assert_allclose(run.model(last=True).w[0], theta / (0.1 * 501), **EXACT)
        np.testing.assert_array_equal(np.abs(run.coefficients[0]), hits)
        assert run.n_updates[0] == hits.sum()

    @pytest.mark.parametrize("rule", [Rule(0.05), Rule(0.05, bias=1.0, batch=3, project=True, start=20)])
    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
    def test_problems_side_by_side(self, storage, rule):
        """Several problems in one pass give each what it gives alone, to the same digits whatever the threads."""
        X, _, rng = samples(d=9)
        X[rng.uniform(size=X.shape) < 0.5] = 0.0
        Y, order = np.where(rng.uniform(size=(11, 60)) < 0.3, 1.0, -1.0), rng.integers(0, 60, 150)
        ones = np.ones(60)
        together, shared = LinearRun(storage(X), Y, ones, ones, rule), LinearRun(storage(X), Y, ones, ones, rule)
        together.advance(order, 1)
        shared.advance(order, 3)
        model, values = together.model(), together.values(together.model())
        np.testing.assert_array_equal(model.w, shared.model().w)
        for c, y in enumerate(Y):
            alone = LinearRun(storage(X), y[None], ones, ones, rule)
            alone.advance(order)
            one = alone.model()
            np.testing.assert_allclose(model.w[c], one.w[0], **EXACT)
            np.testing.assert_allclose(values[c], alone.values(one)[0], **EXACT)
            np.testing.assert_allclose(together.beta[c], alone.beta[0], **EXACT)
            np.testing.assert_allclose(model.intercept[c], one.intercept[0], **EXACT)
        built = together.from_coefficients(together.beta)
        np.testing.assert_allclose(built.w, together.beta @ X, **EXACT)

    def test_the_procedure_with_kernels(self):
        """The mean of the coefficients is that of [SSBD] 16.3."""
        X, y, rng = samples()
        order = rng.integers(0, len(y), 700)
        run = kernel_run(Gaussian(gamma=0.3), X, y, Rule(0.02), order)
        np.testing.assert_allclose(
            run.model().beta[0], by_the_book_with_kernels(Gaussian(gamma=0.3)(X), y, 0.02, order), **EXACT
        )

    @pytest.mark.parametrize(
        "rule",
        [
            Rule(0.05),
            Rule(0.05, bias=1.0),
            Rule(0.05, batch=7),
            Rule(0.05, project=True),
            Rule(0.001, project=True, batch=3, bias=1.0),
            Rule(0.05, start=200),
            Rule(0.05, start=-1),
            Rule(0.0, bias=1.0),
            Rule(0.0, start=-1),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2, coef0=1.0)], ids=repr)
    def test_lemma_16_3(self, kernel, rule):
        """A run with a kernel and a run on its explicit features give the same numbers, whatever the rule."""
        X, y, rng = samples()
        order = rng.integers(0, len(y), 700)
        psi = kernel.feature_map(X)
        features, coefficients = linear_run(psi(X), y, rule, order), kernel_run(kernel, X, y, rule, order)
        for last in (False, True):
            ours, theirs = coefficients.model(last), features.model(last)
            if last:
                np.testing.assert_allclose(ours.beta, theirs.beta, **EXACT)
            np.testing.assert_allclose(ours.intercept, theirs.intercept, **EXACT)
            np.testing.assert_allclose(coefficients.values(ours), features.values(theirs), rtol=1e-8, atol=1e-8)
        assert coefficients.n_updates == features.n_updates

    def test_blocks_do_not_matter(self):
        """Steps taken in one go and in parts are the same steps."""
        X, y, rng = samples()
        order = rng.integers(0, len(y), 600)
        whole = kernel_run(Gaussian(gamma=0.3), X, y, Rule(0.01), order)
        parts = kernel_run(Gaussian(gamma=0.3), X, y, Rule(0.01), order[:17])
        for part in np.split(order[17:], [1, 90, 300]):
            parts.advance(part)
        np.testing.assert_allclose(parts.model().beta, whole.model().beta, **EXACT)
        assert parts.t == whole.t == 600

    def test_projection(self):
        """With projection no iterate is longer than 1/sqrt(lam); without, some are, for these samples."""
        X, y, rng = samples()
        longest = {}
        for project in (True, False):
            run = linear_run(100 * X, y, Rule(0.01, project=project, start=-1), np.empty(0, np.intp))
            lengths = []
            for i in rng.integers(0, len(y), 200):
                run.advance(np.array([i]))
                theta = run.state[0, 0] * run.v[0]
                lengths.append(np.linalg.norm(theta) / (0.01 * (run.t + 1)))
            longest[project] = max(lengths)
        assert longest[True] <= 10.0 * (1 + 1e-9) < longest[False]

    def test_many_projections(self):
        """Where every early iterate is shortened, their mean is still that of the procedure in plain Python."""
        X, y, rng = samples()
        order, lam = rng.integers(0, len(y), 300), 1e-4
        w, total = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        for t, i in enumerate(order, start=1):
            total += w
            step = y[i] * X[i] / (lam * (t + 1)) if y[i] * (w @ X[i]) < 1 else 0.0
            w = w * t / (t + 1) + step
            w = w * min(1.0, 1 / (np.sqrt(lam) * max(np.linalg.norm(w), 1e-300)))
        for run in (
            linear_run(X, y, Rule(lam, project=True), order),
            kernel_run(Linear(), X, y, Rule(lam, project=True), order),
        ):
            model = run.model()
            w = model.w if model.w.size else model.beta @ X
            np.testing.assert_allclose(w, total[None] / 300, rtol=1e-8, atol=1e-8)

    @pytest.mark.parametrize(
        "make", [linear_run, lambda *given: kernel_run(Gaussian(0.5), *given)], ids=["w", "kernel"]
    )
    def test_a_run_that_is_shown_goes_on(self, make):
        """A frozen model stays as it was, and the run goes on as if no model had been taken."""
        X, y, rng = samples()
        order = rng.integers(0, len(y), 400)
        run, whole = make(X, y, Rule(0.1, bias=1.0), order[:150]), make(X, y, Rule(0.1, bias=1.0), order)
        shown = run.frozen()
        before = [a.copy() for a in (*shown.model(), *shown.memory()[1:])]
        run.advance(order[150:])
        for now, then in zip((*shown.model(), *shown.memory()[1:]), before, strict=True):
            np.testing.assert_array_equal(now, then)
        for one, other in zip(run.model(), whole.model(), strict=True):
            np.testing.assert_allclose(one, other, **EXACT)
        assert np.abs(run.model().intercept - shown.model().intercept).max() > 0

    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
    def test_one_sample_is_a_batch_of_one(self, storage):
        """Steps of one sample have a loop of their own: the one of batches and projections takes the same steps."""
        X, y, rng = samples()
        order = rng.integers(0, len(y), 300)
        # each sample twice in its batch, so that half of each step is the sample's
        one = linear_run(storage(X), y, Rule(0.1, bias=1.0, start=50), order)
        two = linear_run(storage(X), y, Rule(0.1, bias=1.0, start=50, batch=2), np.repeat(order, 2))
        for mine, theirs in zip(one.model(), two.model(), strict=True):
            np.testing.assert_allclose(mine, theirs, **EXACT)

    def test_budget(self):
        """Never more samples than the budget carry weight; a budget that is not reached changes nothing."""
        X, y, rng = samples(200)
        order = rng.integers(0, len(y), 2000)
        run = kernel_run(Gaussian(gamma=0.3), X, y, Rule(0.01, budget=25), order)
        assert np.count_nonzero(run.v[0]) == 25
        assert np.count_nonzero(run.model().beta[0]) <= 25
        free, loose = (kernel_run(Gaussian(gamma=0.3), X, y, Rule(0.01, budget=b), order) for b in (-1, 200))
        np.testing.assert_array_equal(free.v, loose.v)


class TestCertificates:
    @pytest.mark.parametrize("lam", [0.1, 0.01])
    @pytest.mark.parametrize("bias", [0.0, 1.0])
    def test_both_sides_of_the_optimum(self, lam, bias):
        """The dual is at most the optimum that clarabel finds, the primal at least; with steps they close in."""
        X, y, rng = samples(80)
        run = linear_run(X, y, Rule(lam, bias=bias), np.empty(0, np.intp))
        K, qp = X @ X.T + bias, stated(run)[0].qp
        beta = solve_qp(K, qp)
        optimum = float(qp.linear @ beta - 0.5 * beta @ K @ beta)
        gaps = []
        for _ in range(4):
            run.advance(rng.integers(0, len(y), 5000 * (1 + 9 * len(gaps))))
            found = certificates(run, evaluate(run))[0]
            assert found.dual <= optimum * (1 + 1e-7) and optimum * (1 - 1e-7) <= found.primal
            assert found.valid and found.infeasibility == 0.0
            assert found.gap == pytest.approx(found.primal - found.dual)
            gaps.append(found.relative_gap)
        assert gaps[-1] < 0.05 and gaps[-1] < 0.5 * gaps[0]

    def test_shuffled_passes_stay_in_the_box(self):
        """If each sample was drawn equally often, the last iterate is feasible as it is: hits/(lam T) ≤ 1/(lam m)."""
        X, y, rng = samples()
        order = np.concatenate([rng.permutation(len(y)) for _ in range(30)])
        run = linear_run(X, y, Rule(0.01), order)
        beta, qp = run.model(last=True).beta[0], stated(run)[0].qp
        assert np.all(beta >= qp.lower * (1 + 1e-12)) and np.all(beta <= qp.upper * (1 + 1e-12))

    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
    def test_the_same_as_the_program_says(self, storage):
        """Objective, feasibility and violation are those of the general program, with weights and several problems."""
        X, y, rng = samples()
        Y = np.stack([y, np.where(X[:, 1] > 0, 1.0, -1.0), np.where(X[:, 2] > 1, 1.0, -1.0)])
        weight = rng.integers(0, 4, len(y)).astype(float)
        run = LinearRun(storage(X), Y, weight, weight, Rule(0.02, bias=1.0, batch=3))
        for _ in range(3):
            run.advance(rng.choice(np.flatnonzero(weight), 30))
            evaluated = evaluate(run)
            beta, slopes = run.dual_points()
            for c, problem in enumerate(stated(run)):
                found, none = certificates(run, evaluated)[c], np.empty(0)
                w = np.append(evaluated.model.w[c], evaluated.model.intercept[c])
                primal = problem.loss.primal(w @ w, problem.y, evaluated.f[c], problem.weight, none, none)
                assert found.primal == pytest.approx(primal, rel=1e-12)
                assert np.all(problem.qp.lower <= beta[c]) and np.all(beta[c] <= problem.qp.upper)
                squares = np.sum((X.T @ beta[c]) ** 2) + beta[c].sum() ** 2
                part = min(1.0, slopes[c] / squares)
                dual = problem.qp.linear @ (part * beta[c]) - 0.5 * part**2 * squares
                assert found.dual == pytest.approx(dual, rel=1e-12) and found.dual > 0
                assert found.kkt_violation == pytest.approx(violation(problem.qp, part * beta[c], evaluated.f[c]))

    def test_values_that_are_no_numbers(self):
        """A model whose values have left the range of numbers is certified to be at an unknown distance."""
        X, y, rng = samples()
        run = linear_run(X, y, Rule(0.1), rng.integers(0, len(y), 100))
        evaluated = evaluate(run)
        f = evaluated.f.copy()
        f[0, 3] = np.nan
        broken = evaluated._replace(f=f, primal=np.array([np.nan]))
        found = certificates(run, broken)[0]
        assert found.primal == found.gap == found.kkt_violation == np.inf and np.isfinite(found.dual)
        with pytest.raises(InvalidInputError, match="needs finite weights"):
            evaluate(linear_run(X, y, Rule(1e-320), order=np.arange(10)))

    def test_before_the_first_step(self):
        """w = 0 pays 1 for every sample, and its gap is everything."""
        X, y, _ = samples()
        run = linear_run(X, y, Rule(0.1), np.empty(0, np.intp))
        found = certificates(run, evaluate(run))[0]
        assert found.primal == pytest.approx(1 / 0.1) and found.dual == 0.0
        assert objective_point(run, evaluate(run)) == (0, pytest.approx(1.0), np.inf)

    def test_the_bound(self):
        """The mean over many runs of what the objective exceeds the optimum by is below the bound, at every T."""
        X, y, rng = samples(40)
        lam = 0.1
        first = linear_run(X, y, Rule(lam), np.empty(0, np.intp))
        qp = stated(first)[0].qp
        beta = solve_qp(X @ X.T, qp)
        optimum = lam * float(qp.linear @ beta - 0.5 * np.sum((X.T @ beta) ** 2))
        for T in (1, 10, 100, 2000):
            points = []
            for _ in range(30):
                run = linear_run(X, y, Rule(lam), rng.integers(0, len(y), T))
                points.append(objective_point(run, evaluate(run)))
            excess = np.mean([point.objective for point in points]) - optimum
            assert -1e-9 <= excess <= points[0].bound
        rho2 = np.square(X).sum(axis=1).max()
        assert points[0].bound == pytest.approx(rho2 / (lam * 2000) * (0.5 + 2 * np.log(2001)))
