"""A pair solved with a lazy cross block has the same solution as with the dense matrix."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named

from mercer import SVC
from mercer.gram.operator import ClassBlocks, Data, Evaluations
from mercer.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial
from mercer.kernels.objects.distributions import InformationDiffusion
from mercer.losses import Hinge, SquaredHinge
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem, survey_of, violation
from mercer.problems.solution import Options
from mercer.svm.batch import lazy_pairs
from mercer.svm.plan import plan_pairs
from mercer.svm.solve import solve
from mercer.svm.verify import exact_rows

N = 700
SIZES = (400, 300)
PAIR = (0, 1)


def two_classes(noise=1.0, d=6):
    """Class members first and last, as a pair has them; with little noise few have weight."""
    rng = np.random.default_rng(0)
    X = noise * rng.normal(size=(N, d))
    X[: SIZES[0], 0] += 3.0
    return X


def pairs_for(X, kernel, options=None):
    """The samples, and the lazy pair of their two classes."""
    data = Data(kernel, X, N)
    blocks = ClassBlocks(data, [np.arange(SIZES[0]), np.arange(SIZES[0], N)], np.float32, 1)
    data.evaluations = Evaluations()
    return data, lazy_pairs(data, blocks, options or Options())


def program(loss, C=1.0):
    """Of the pair: labels, weights, and the quadratic program."""
    y, weight = np.repeat([1.0, -1.0], SIZES), np.full(N, C)
    return y, weight, loss.box_qp(y, weight, True)


def room():
    """Where the results are written: beta, F, groups, totals."""
    return np.full(N, np.nan), np.full(N, np.nan), np.empty((1, 5)), np.empty(7)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=named)
@pytest.mark.parametrize("C", [0.5, 10.0])
@pytest.mark.parametrize(
    "kernel", [Gaussian(0.1), Laplacian(0.1), Polynomial(degree=3, gamma=0.1, coef0=1.0), Cosine()], ids=named
)
def test_the_optimum_is_that_of_the_exact_solver(loss, C, kernel):
    """The dual value, and no violation beyond tol."""
    X = two_classes(0.7)
    data, pairs = pairs_for(X, kernel)
    y, weight, qp = program(loss, C)
    beta, F, _, _ = room()
    steps = pairs.solve(PAIR, qp, beta, F)
    assert steps > 0 and violation(qp, beta, F) <= 1e-3
    K = kernel(X)
    np.testing.assert_allclose(F, K @ beta, atol=1e-4 * np.abs(K).max())
    exact = solve(data, DualProblem(None, loss, y, weight), Options(tol=1e-6), Clock())
    dual = qp.linear @ beta - 0.5 * beta @ K @ beta - 0.5 * qp.ridge @ beta**2
    assert dual == pytest.approx(exact.certificate.dual, rel=1e-4)


def test_most_values_are_not_computed():
    """Where few samples have weight."""
    data, pairs = pairs_for(two_classes(0.5), Gaussian(0.1))
    _, _, qp = program(Hinge(), 10.0)
    assert pairs.solve(PAIR, qp, *room()[:2]) > 0
    assert 0 < data.evaluations.count < 0.5 * SIZES[0] * SIZES[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Gaussian(0.1), Gaussian((0.1,) * 6), Linear()], ids=named)
def test_verification_agrees_with_that_of_other_problems(dtype, kernel):
    """F in float64 at the same samples as `exact_rows`, and the same survey."""
    X = two_classes(0.7).astype(dtype)
    _, pairs = pairs_for(X, kernel)
    _, _, qp = program(Hinge(), 2.0)
    beta, F, groups, totals = room()
    assert pairs.solve(PAIR, qp, beta, F) > 0
    F += 1e-2 * np.random.default_rng(1).normal(size=N)
    tracked = F.copy()
    pairs.verify(np.arange(N), qp, beta, F, groups, totals)
    data = Data(kernel, X.astype(np.float64), N)
    rows, values = exact_rows(data, qp, beta, tracked, Options(n_threads=2))  # several threads: many calls
    alone, of_one_call = exact_rows(data, qp, beta, tracked, Options(n_threads=1))
    np.testing.assert_array_equal(alone, rows)
    np.testing.assert_allclose(of_one_call, values, rtol=1e-10, atol=1e-11)
    assert 0 < np.count_nonzero(beta) < len(rows)
    np.testing.assert_array_equal(np.flatnonzero(tracked != F), rows)
    np.testing.assert_allclose(F[rows], values, rtol=1e-10, atol=1e-11)
    assert survey_of(groups, totals, qp.sums).violation == violation(qp, beta, F)


def test_verification_without_weights():
    """β = 0 has F = 0."""
    _, pairs = pairs_for(two_classes(), Gaussian(0.1))
    _, _, qp = program(Hinge())
    _, F, groups, totals = room()
    F[:] = 0.0
    pairs.verify(np.arange(N), qp, np.zeros(N), F, groups, totals)
    assert not F.any() and survey_of(groups, totals, qp.sums).violation == 2.0
    for n_threads in (1, 2):
        data = Data(Gaussian(0.1), two_classes(), N)
        rows, values = exact_rows(data, qp, np.zeros(N), np.full(N, 1e-9), Options(n_threads=n_threads))
        assert len(rows) == N and not values.any()


def test_overlapping_classes_are_left_to_the_dense_solver():
    """If nearly all samples have weight, a lazy cross block saves nothing."""
    X = two_classes()
    X[: SIZES[0], 0] -= 3.0
    _, _, qp = program(Hinge())
    assert pairs_for(X, Gaussian(1.0))[1].solve(PAIR, qp, *room()[:2]) == -1


def test_not_for_every_kernel():
    """Only kernels that are functions of one sum over dense features have a compiled form."""
    X = abs(two_classes())
    mostly_zero = sp.csr_array(np.hstack([X, np.zeros((N, 10))]))
    for samples, kernel in [(X, 2.0 * Gaussian(0.1)), (X, InformationDiffusion()), (mostly_zero, Gaussian(0.1))]:
        assert pairs_for(samples, kernel)[1] is None


def test_machines_use_it():
    """Three classes: lazy blocks give the same model as full ones, from fewer kernel values."""
    rng = np.random.default_rng(2)
    X, y = 0.8 * rng.normal(size=(900, 140)), np.arange(900) % 3
    X[:, 0] += 12.0 * y
    machine = SVC(C=1.0, gamma=0.002, n_jobs=2, decision_function_shape="ovo")
    small = SVC(**machine.get_params()).fit(X, y)
    machine._plan = replace(small.plan_, pairs="lazy class blocks")
    lazy = machine.fit(X, y)
    full = SVC(**machine.get_params())
    full._plan = replace(small.plan_, pairs="class blocks")
    full.fit(X, y)
    assert small.kernel_evaluations_ == full.kernel_evaluations_
    assert lazy.kernel_evaluations_ < 0.8 * full.kernel_evaluations_
    np.testing.assert_allclose(lazy.decision_function(X), full.decision_function(X), atol=5e-3)
    assert lazy.certificate_.relative_gap < 1e-2 and not lazy.fit_status_


def test_larger_pairs_are_lazy_where_values_are_costly():
    """Beyond the size of joined matrices; not for cheap values, nor for a small tol."""
    n = 3600
    X, members = np.zeros((n, 130)), [np.arange(c, n, 2) for c in range(2)]
    members = [members[0], members[1][:1500], members[1][1500:]]
    options = Options()

    def planned(data, options):
        return plan_pairs(data, members, Hinge(), options, np.inf, True, False).pairs

    costly, cheap = Data(Gaussian(0.1), X, n), Data(Gaussian(0.1), X[:, :20], n)
    assert planned(costly, options) == "lazy class blocks" != planned(cheap, options)
    for other in (replace(options, tol=1e-5), replace(options, precision="float64")):
        assert planned(costly, other) == "one by one"
    assert planned(Data(2.0 * Gaussian(0.1), X, n), options) == "one by one"
