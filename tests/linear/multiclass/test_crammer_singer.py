"""The machine of Crammer and Singer."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from tests.clocks import SteppedClock

from mercer.exceptions import InvalidInputError
from mercer.linear.linear_problem import Rows
from mercer.linear.linear_solution import LinearOptions
from mercer.linear.multiclass import crammer_singer
from mercer.linear.multiclass.crammer_singer import (
    ENDING,
    JointProblem,
    balanced_classes,
    joint_certificate,
    solve_jointly,
)
from mercer.problems.clock import Clock
from mercer.problems.solution import Status

TOL = 1e-8


def make(C, n=30, d=4, K=3, seed=0, bias=1.0, kind="plain", intercept=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    labels = np.argmax(X[:, : min(K, d)] + 0.7 * rng.normal(size=(n, min(K, d))), axis=1)
    labels[:K] = np.arange(K)
    weight = C * rng.uniform(0.5, 1.5, size=n)
    if kind == "zero rows":
        X[::4] = 0.0
    if kind == "opposite":
        X[1::2] = X[::2]
    if kind == "zero weights":
        weight[::3] = 0.0
    if kind == "sparse":
        X = X * (rng.random(X.shape) < 0.4)
    return JointProblem(Rows.of(sp.csr_array(X) if kind == "sparse" else X, bias), labels, K, weight, intercept)


def reference(problem):
    """The optimal value by clarabel on the primal: W and one slack per sample."""
    X = problem.rows.X.toarray() if problem.rows.sparse else problem.rows.X
    if problem.rows.bias or problem.intercept:
        X = np.column_stack([X, np.full(len(X), problem.rows.bias or 1.0)])
    n, d = X.shape
    K = problem.n_classes
    price = np.ones(d)
    price[-1] = 0.0 if problem.intercept else 1.0
    P = sp.diags_array(np.r_[np.tile(price, K), np.zeros(n)], format="csc")
    lines, right = [], []
    for i in range(n):
        for k in range(K):
            line = np.zeros(K * d + n)
            line[k * d : (k + 1) * d] += X[i]
            line[problem.labels[i] * d : (problem.labels[i] + 1) * d] -= X[i]
            line[K * d + i] = -1.0
            lines.append(line)
            right.append(0.0 if k == problem.labels[i] else -1.0)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    q = np.r_[np.zeros(K * d), problem.weight]
    cones = [clarabel.NonnegativeConeT(n * K)]
    solution = clarabel.DefaultSolver(P, q, sp.csc_array(np.array(lines)), np.array(right), cones, settings).solve()
    return solution.obj_val


def run(problem, tol=TOL, start=None, limit=60.0, **more):
    return solve_jointly(problem, LinearOptions(tol=tol, **more), Clock(limit), start)


@pytest.mark.parametrize("kind", ["plain", "zero rows", "opposite", "zero weights", "sparse"])
def test_optimum_of_the_reference(kind):
    """Within 1e-8 of clarabel's optimum, and feasible."""
    for seed, C in enumerate((1e-4, 1e-2, 1.0, 10.0)):
        for K, bias in ((2, 1.0), (3, 0.0), (4, 1.0)):
            problem = make(C, K=K, seed=seed, bias=bias, kind=kind)
            solution = run(problem)
            proof = solution.certificate
            assert solution.status is Status.CONVERGED and proof.valid and proof.relative_gap <= TOL
            best = reference(problem)
            assert abs(proof.primal - best) <= 3e-8 * abs(best)


@pytest.mark.parametrize("kind", ["plain", "zero rows", "opposite", "zero weights", "sparse"])
def test_free_intercepts(kind):
    """Each class's α sums to 0, and the optimum is clarabel's."""
    for seed, C in enumerate((1e-2, 1.0, 10.0)):
        for K in (2, 3, 4):
            problem = make(C, K=K, seed=seed, bias=0.0, kind=kind, intercept=True)
            solution = run(problem, 1e-7)
            proof = solution.certificate
            assert solution.status is Status.CONVERGED and proof.valid and proof.relative_gap <= 1e-7, str(proof)
            assert np.abs(solution.alpha.sum(axis=0)).max() <= 1e-9 * np.abs(solution.alpha).max()
            again = joint_certificate(problem, solution.W, solution.alpha, solution.intercepts)
            assert again.primal == proof.primal
            best = reference(problem)
            assert abs(proof.primal - best) <= 2e-7 * abs(best)


def test_balanced_classes():
    """The sums become 0, of the classes and of the samples, and the bounds are kept."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        problem = make(1.0, K=4, seed=int(rng.integers(1 << 30)), intercept=True, bias=0.0)
        bound = np.zeros((30, 4))
        bound[np.arange(30), problem.labels] = problem.weight
        alpha = -rng.random((30, 4)) * (rng.random((30, 4)) < 0.5) * problem.weight[:, None] / 4
        alpha[np.arange(30), problem.labels] = 0.0
        alpha[np.arange(30), problem.labels] = -alpha.sum(axis=1)
        found = balanced_classes(alpha, bound)
        assert np.abs(found.sum(axis=0)).max() <= 1e-12 and np.abs(found.sum(axis=1)).max() <= 1e-12
        assert (found <= bound + 1e-12).all()


@pytest.mark.parametrize("C", [1e-8, 1e4, 1e8])
def test_extreme_C(C):
    """A certified model within 1e-4 of the optimum for tiny and huge C."""
    solution = run(make(C, n=20, d=30), 1e-4)
    assert solution.status is Status.CONVERGED and solution.certificate.relative_gap <= 1e-4


def test_more_samples_than_one_round_of_shrinking_keeps():
    """Two hundred samples of six classes: conjugate gradients help to 1e-8."""
    solution = run(make(1.0, n=200, d=8, K=6))
    assert solution.status is Status.CONVERGED
    assert np.array_equal(solution.W.shape, (6, 9))


def test_two_classes_are_a_machine_of_doubled_weight():
    """For two classes w_1 = −w_0, and w = w_1 − w_0 is that of the hinge loss, as 2·½|w/2|² = ¼|w|² shows."""
    from mercer.linear import coordinate
    from mercer.linear.linear_problem import LinearProblem
    from mercer.losses import Hinge

    problem = make(1.0, K=2)
    W = run(problem, 1e-10).W
    np.testing.assert_allclose(W[0], -W[1], atol=1e-12)
    y = np.where(problem.labels == 1, 1.0, -1.0)
    binary = LinearProblem(problem.rows, Hinge(), y, 2.0 * problem.weight)
    w = coordinate.solve(binary, LinearOptions(tol=1e-10), Clock(60.0)).w
    np.testing.assert_allclose(W[1] - W[0], w, atol=1e-4)


def test_certificate_grows_when_disturbed():
    """Never negative, larger for another W or α; infeasible α leave no bound."""
    problem = make(1.0)
    solution = run(problem)
    rng = np.random.default_rng(0)
    worse = joint_certificate(problem, solution.W + 0.1 * rng.normal(size=solution.W.shape), solution.alpha)
    assert worse.gap > solution.certificate.gap >= 0
    assert joint_certificate(problem, solution.W, 0.5 * solution.alpha).gap > solution.certificate.gap
    assert not joint_certificate(problem, solution.W, solution.alpha + 0.1).valid


def test_time_is_left_for_the_certificate():
    """No pass is begun after which the last check and the certificate would end too late."""

    class OneSecondPasses(crammer_singer._Run):
        def _pass(self, out):
            clock.now += 1.0
            super()._pass(out)

    clock = SteppedClock(7.5)
    run = OneSecondPasses(make(10.0, n=60), LinearOptions(tol=1e-12), clock, None)
    assert run.run() is Status.TIME_LIMIT and run.passes == clock.now == 5
    assert clock.left >= ENDING


def test_warm_start_and_limits():
    """From its own solution no pass is needed; a limit leaves a certified model."""
    problem = make(1.0)
    assert run(problem, start=run(problem)).n_iter == 0
    early = run(problem, max_iter=1)
    assert early.status is Status.MAX_ITER and early.certificate.valid and np.isfinite(early.certificate.gap)
    assert run(problem, limit=0.0).status is Status.TIME_LIMIT


def test_bad_input():
    """Weights of which only some are infinite, and a single class, are refused."""
    problem = make(1.0)
    weight = np.where(np.arange(30) < 5, np.inf, 1.0)
    with pytest.raises(InvalidInputError, match="C \\* sample_weight of inf was found"):
        run(JointProblem(problem.rows, problem.labels, 3, weight))
    with pytest.raises(InvalidInputError, match="1 class was found"):
        run(JointProblem(problem.rows, 0 * problem.labels, 1, problem.weight))
