"""Exact zeros of l1 penalties: the weights of the optimum, whatever the tolerance of the run."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.linear_machines import LOSSES
from tests.reference.linear import solve

from mercer import LinearSVC, LinearSVR
from mercer.linear import linear_plan, zeros
from mercer.linear.linear_problem import Penalty
from mercer.linear.linear_solution import LinearOptions
from mercer.linear.systems import column_squares
from mercer.problems.clock import Clock
from mercer.problems.solution import Status

PENALTIES = {"l1": (1.0, 0.0), "elasticnet": (0.5, 0.5)}
INTERCEPTS = ({}, {"penalize_intercept": False}, {"fit_intercept": False})


def documents(n=150, d=300, words=25, seed=0):
    """Rows of weighted word counts, most words rare, and a target that depends on a few words."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, d + 1)
    counts = rng.multinomial(words, share / share.sum(), size=n)
    X = np.log1p(counts)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    signal = X[:, :12] @ rng.normal(size=12) * 3.0
    return X, signal - np.median(signal) + 0.3 * rng.normal(size=n)


def gaussian(n=80, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=n) + 0.3


def weights(model, inter):
    """All penalised weights: the intercept too where it is one."""
    w = np.ravel(model.coef_)
    return w if inter else np.append(w, np.ravel(model.intercept_))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "interior", "proximal"])
def test_the_weights_of_the_reference(solver, loss, penalty):
    """At the default tol, the same weights are 0 as in clarabel's optimum, dense and sparse, for any intercept."""
    machine, more, parameter = LOSSES[loss]
    l1, l2 = PENALTIES[penalty]
    for (X, signal), C, store in ((gaussian(), 0.1, np.asarray), (documents(), 0.7, sp.csr_array)):
        y = signal if machine is LinearSVR else np.where(signal > 0, 1.0, -1.0)
        for inter in INTERCEPTS:
            model = machine(loss=loss, penalty=penalty, C=C, solver=solver, **more, **inter).fit(store(X), y)
            A = X if inter else np.column_stack([X, np.ones(len(X))])
            free = "penalize_intercept" in inter
            best = solve(A, y, np.full(len(y), C), loss, l1=l1, l2=l2, free=free, parameter=parameter)
            assert abs(best.value - best.bound) <= 1e-9 * best.value
            found = weights(model, inter)
            np.testing.assert_array_equal(found != 0, np.abs(best.w) > 1e-6 * np.abs(best.w).max())
            np.testing.assert_allclose(found, best.w, atol=1e-5 * np.abs(best.w).max())
            assert model.certificate_.valid and model.certificate_.relative_gap <= zeros.EXACT


@pytest.mark.parametrize("solver", ["auto", "interior", "proximal"])
@pytest.mark.parametrize("factor", [0.5, 0.9, 1.0])
def test_scikit_learns_four_rows(solver, factor):
    """On the example of scikit-learn's l1_min_c no weight is left up to its C, and one is beyond."""
    from sklearn.svm import l1_min_c

    X, y = np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]]), [0, 1, 1, 1]
    C = l1_min_c(X, y, loss="squared_hinge")
    model = LinearSVC(penalty="l1", C=factor * C, solver=solver).fit(X, y)
    assert not model.coef_.any() and not model.intercept_.any()
    assert LinearSVC(penalty="l1", C=1.001 * C, solver=solver).fit(X, y).coef_.any()


def problem(loss, X, signal, C, penalty):
    from mercer.linear.linear_problem import LinearProblem, Rows
    from mercer.losses import EpsilonInsensitive, Hinge, SquaredHinge

    form = {"hinge": Hinge(), "squared_hinge": SquaredHinge(), "epsilon_insensitive": EpsilonInsensitive(0.2)}[loss]
    y = signal if loss == "epsilon_insensitive" else np.where(signal > 0, 1.0, -1.0)
    return LinearProblem(Rows.of(X), form, y, np.full(len(y), C), False, penalty)


def test_the_duality_gap_proves_the_zeros():
    """The ball around β that its gap allows keeps |X'β| of every zero weight below l1 (gap safe rule)."""
    for seed in range(3):
        task = problem("squared_hinge", *gaussian(seed=seed), 0.1, Penalty(1.0, 0.0))
        found = linear_plan.solve_linear("interior", task, LinearOptions(), Clock())
        # the dual is strongly concave: ½ Σ ridge (β − β*)² is at most the gap
        reach = np.sqrt(2.0 * found.certificate.gap * column_squares(task.rows, 1.0 / task.qp.ridge))
        proven = np.abs(task.rows.tdot(found.beta)) + reach < 1.0
        assert proven.any() and np.array_equal(proven, found.w == 0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "epsilon_insensitive"])
def test_the_gap_is_not_worse_than_that_of_the_run(loss):
    """Settling replaces a solution only by one of a smaller certificate, which holds for the published numbers."""
    from mercer.linear.linear_problem import linear_certificate

    task = problem(loss, *gaussian(seed=3), 0.3, Penalty(1.0, 0.0))
    for tol in (1e-1, 1e-4, 1e-12):
        options = LinearOptions(tol=tol)
        before = linear_plan._run("interior", task, options, Clock(), None)
        after = zeros.add_exact_zeros(task, options, Clock(), before)
        assert after.certificate.gap <= before.certificate.gap
        again = linear_certificate(task, after.w, after.intercept, after.beta)
        assert again.valid and again.gap == pytest.approx(after.certificate.gap, abs=1e-13 * again.primal)
        assert after.stages[-1].solver == "zeros" and after.n_iter == sum(stage.n_iter for stage in after.stages)


def test_limits_hold():
    """Without time or iterations left the solution of the run stays; a run that was stopped is not settled."""
    task = problem("hinge", *gaussian(), 0.3, Penalty(1.0, 0.0))
    before = linear_plan._run("interior", task, LinearOptions(), Clock(), None)
    assert zeros.add_exact_zeros(task, LinearOptions(max_iter=before.n_iter), Clock(), before) is before
    after = zeros.add_exact_zeros(task, LinearOptions(), Clock(0.0), before)
    assert after.status is Status.CONVERGED and after.certificate.gap <= before.certificate.gap
    stopped = linear_plan.solve_linear("interior", task, LinearOptions(max_iter=2), Clock())
    assert stopped.status is Status.MAX_ITER and [stage.solver for stage in stopped.stages] == ["interior"]


def test_columns_that_say_the_same():
    """Equal columns share a weight in many ways: the model is an optimum all the same, others are 0."""
    X, signal = gaussian()
    X[:, 3] = X[:, 0]
    for loss in LOSSES:
        machine, more, _ = LOSSES[loss]
        y = signal if machine is LinearSVR else np.where(signal > 0, 1.0, -1.0)
        twice = machine(loss=loss, penalty="l1", C=0.1, fit_intercept=False, **more).fit(X, y)
        once = machine(loss=loss, penalty="l1", C=0.1, fit_intercept=False, **more).fit(np.delete(X, 3, axis=1), y)
        assert twice.certificate_.primal == pytest.approx(once.certificate_.primal, rel=1e-10)
        w, v = np.ravel(twice.coef_), np.ravel(once.coef_)
        np.testing.assert_array_equal(np.delete(w, [0, 3]) != 0, v[1:] != 0)


def test_hard_margin():
    """C=inf: the weights that are 0 are those of the reference."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 10))
    y = np.sign(X[:, 0] - 0.5 * X[:, 1])
    for penalty, (l1, l2) in PENALTIES.items():
        model = LinearSVC(penalty=penalty, C=np.inf, fit_intercept=False).fit(X, y)
        best = solve(X, y, np.full(60, np.inf), "hard", l1=l1, l2=l2)
        np.testing.assert_array_equal(model.coef_[0] != 0, np.abs(best.w) > 1e-6 * np.abs(best.w).max())
