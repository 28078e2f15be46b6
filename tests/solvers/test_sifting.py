"""Two classes solved without most of the values between them have the solution that all values give."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named

from mercer import SVC
from mercer.gram.operator import Evaluations
from mercer.kernels import Gaussian
from mercer.losses import Hinge, SquaredHinge
from mercer.problems.dual import DualProblem, violation
from mercer.solvers import many, sifting
from mercer.solvers.base import Clock, Options
from mercer.solvers.data import ClassBlocks, Data
from mercer.solvers.exact import solve
from mercer.solvers.sifting import Between, sift

N = 700
SIZES = (400, 300)


def two_classes(noise=1.0, d=6):
    """Class members first and last, as a pair has them; with little noise few have weight."""
    rng = np.random.default_rng(0)
    X = noise * rng.normal(size=(N, d))
    X[: SIZES[0], 0] += 3.0
    return X


def blocks_of(X, gamma=0.1):
    """The kernel values within each class, and the data."""
    data = Data(Gaussian(gamma), X, N)
    return data, ClassBlocks(data, [np.arange(SIZES[0]), np.arange(SIZES[0], N)], np.float32, 1)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_matrices_and_products_are_those_of_all_values(storage):
    """Whatever was asked for before: members with lines, without, on one side only."""
    X = two_classes().astype(np.float32)
    values, rng = Between(blocks_of(storage(X))[1], 0, 1), np.random.default_rng(1)
    K = Gaussian(0.1).block(*2 * [Gaussian(0.1).prepare(X, np.float32)])
    sides = [(0, N), (0, SIZES[0]), (SIZES[0], N)]
    for round_ in range(9):
        first, last = sides[round_ % 3]
        members = np.sort(rng.permutation(np.arange(first, last))[:90])
        np.testing.assert_allclose(values.matrix(members), K[np.ix_(members, members)], rtol=1e-6)
        beta = np.zeros(N)
        some = rng.permutation(members)[:30]
        beta[some] = rng.normal(size=30)
        np.testing.assert_allclose(values.product(beta), K.astype(np.float64) @ beta, atol=1e-5)
    assert 0 < values.share < 1.1


def test_only_lines_and_members_are_computed():
    """A matrix costs the values between its members, a product the lines of samples that had no weight before."""
    _, blocks = blocks_of(two_classes())
    values = Between(blocks, 0, 1)
    blocks.evaluations = count = Evaluations()
    values.matrix(np.array([3, 7, 450, 460, 470]))
    assert count.count == 6
    beta = np.zeros(N)
    beta[[3, 450]] = 1.0, -1.0
    values.product(beta)
    assert count.count == 6 + SIZES[1] + SIZES[0]
    values.product(2 * beta)
    values.matrix(np.array([3, 7, 450, 460]))
    assert count.count == 6 + N + 1
    assert values.share == pytest.approx(1 / SIZES[0] + 1 / SIZES[1])


def test_there_is_no_room_for_all():
    """A matrix that does not fit beside the lines is refused."""
    values = Between(blocks_of(two_classes())[1], 0, 1)
    assert values.matrix(np.arange(500)) is not None
    assert values.matrix(np.arange(501)) is None


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=named)
@pytest.mark.parametrize("C", [0.5, 10.0])
def test_the_optimum_is_that_of_the_exact_solver(loss, C):
    """The dual value, and no violation beyond tol, from fewer values."""
    X = two_classes(0.7)
    data, blocks = blocks_of(X)
    y, weight = np.repeat([1.0, -1.0], SIZES), np.full(N, C)
    qp = loss.box_qp(y, weight, True)
    blocks.evaluations = count = Evaluations()
    beta, F, steps = sift(Between(blocks, 0, 1), qp, 1e-3, Clock())
    assert steps > 0 and violation(qp, beta, F) <= 1e-3
    assert count.count < SIZES[0] * SIZES[1]
    K = Gaussian(0.1)(X)
    np.testing.assert_allclose(F, K @ beta, atol=1e-4)
    exact = solve(data, DualProblem(None, loss, y, weight), Options(tol=1e-6), Clock())
    dual = qp.linear @ beta - 0.5 * beta @ K @ beta - 0.5 * qp.ridge @ beta**2
    assert dual == pytest.approx(exact.certificate.dual, rel=1e-4)


def test_classes_that_cannot_be_told_apart_are_left_to_others():
    """Where nearly all have weight there is nothing to gain; nor is there time after the end."""
    X = two_classes()
    X[: SIZES[0], 0] -= 3.0
    qp = Hinge().box_qp(np.repeat([1.0, -1.0], SIZES), np.ones(N), True)
    assert sift(Between(blocks_of(X, 1.0)[1], 0, 1), qp, 1e-3, Clock()) is None
    clock = Clock()
    clock.interrupted = True
    assert sift(Between(blocks_of(two_classes())[1], 0, 1), qp, 1e-3, clock) is None


def test_machines_use_it(monkeypatch):
    """Three classes: the same model with and without, and fewer kernel values."""
    rng = np.random.default_rng(2)
    X, y = 0.8 * rng.normal(size=(900, 140)), np.arange(900) % 3
    X[:, 0] += 12.0 * y
    found = []
    for least in (0.0, np.inf):
        monkeypatch.setattr(many, "SIFTED_FROM", least)
        found.append(SVC(C=1.0, gamma=0.002, n_jobs=2, decision_function_shape="ovo").fit(X, y))
    sifted, whole = found
    assert sifted.kernel_evaluations_ < 0.8 * whole.kernel_evaluations_
    np.testing.assert_allclose(sifted.decision_function(X), whole.decision_function(X), atol=5e-3)
    assert sifted.certificate_.relative_gap < 1e-2 and not sifted.fit_status_


def test_larger_pairs_are_sifted_where_values_are_costly(monkeypatch):
    """Beyond the size of matrices that are put together; cheap values, or many digits, are not."""
    X = two_classes(d=130)
    costly, cheap = Data(Gaussian(0.1), X, N), Data(Gaussian(0.1), X[:, :20], N)
    options = Options()
    assert many.can_sift(costly, options) and not many.can_sift(cheap, options)
    assert not many.can_sift(costly, replace(options, tol=1e-5))
    assert not many.can_sift(costly, replace(options, precision="float64"))


def test_stages_end(monkeypatch):
    """A limit on stages leaves the pair to others."""
    monkeypatch.setattr(sifting, "STAGES", 1)
    qp = Hinge().box_qp(np.repeat([1.0, -1.0], SIZES), np.ones(N), True)
    assert sift(Between(blocks_of(two_classes())[1], 0, 1), qp, 1e-3, Clock()) is None
