"""Pairs solved together have the solutions and certificates of pairs solved one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_blobs
from tests.naming import named

from mercer import SVC
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import ClassBlocks, Data
from mercer.kernels import Gaussian
from mercer.kernels.features import VectorFeatures
from mercer.losses import HardMargin, Hinge, NuHinge, SquaredHinge
from mercer.problems.clock import Clock
from mercer.problems.dual import violation
from mercer.problems.solution import Options, Status
from mercer.svm import batch
from mercer.svm.plan import VARIABLES_AT_ONCE, Plan, plan_pairs

CLASSES = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def planned(data, members, loss, options):
    """How pairs share kernel values."""
    return plan_pairs(data, members, loss, options, np.inf, True, False).pairs


def blobs(seed=0, n=120):
    """Four overlapping classes of unequal size, their members in any order."""
    X, y = make_blobs(n, 3, centers=4, cluster_std=4.0, random_state=seed)
    keep = (y != 2) | (np.arange(n) % 3 == 0)
    X, y = X[keep], y[keep]
    return X, [np.flatnonzero(y == c) for c in range(4)], np.random.default_rng(seed).uniform(0.5, 2, len(y))


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=named)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_same_as_one_by_one(loss, n_threads):
    """β, thresholds and certificate of each pair, to tol."""
    X, members, factor = blobs()
    data, options = Data(Gaussian(0.1), X, len(X)), Options(tol=1e-6, n_threads=n_threads)
    assert planned(data, members, loss, options) == "one matrix"
    solved = batch.solve_on_one_matrix(data, batch.Programs(members, CLASSES, loss, factor), options, Clock())
    check(X, members, loss, factor, solved, 1e-6)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=named)
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, "csr"])
def test_the_same_on_joined_matrices(loss, n_threads, dtype):
    """Float32 matrices give solutions that a float64 certificate confirms, whatever the samples are stored in."""
    X, members, factor = blobs(n=500)
    samples = sp.csr_array(X) if dtype == "csr" else X.astype(dtype)
    data, options = Data(Gaussian(0.1), samples, len(X)), Options(tol=1e-3, n_threads=n_threads)
    blocks = ClassBlocks(data, members, np.float32, n_threads)
    solved = batch.solve_on_blocks(
        data, blocks, batch.Programs(members, CLASSES, loss, factor), False, options, Clock()
    )
    check(X if dtype == "csr" else samples.astype(np.float64), members, loss, factor, solved, 1e-3)


def check(X, members, loss, factor, solved, tol):
    """The program's data, F where it matters, and the certificate."""
    K = Gaussian(0.1)(X)
    for (i, j), solution in zip(CLASSES, solved, strict=True):
        index = np.concatenate([members[i], members[j]])
        y = np.repeat([1.0, -1.0], [len(members[i]), len(members[j])])
        assert solution.status is Status.CONVERGED and solution.steps > 0
        F, weighty = K[np.ix_(index, index)] @ solution.beta, solution.beta != 0
        np.testing.assert_allclose(solution.F[weighty], F[weighty], atol=1e-12)
        np.testing.assert_allclose(solution.F, F, atol=1e-12 if tol < 1e-4 else 1e-4)
        qp = loss.box_qp(y, factor[index], True)
        proof = solution.certificate
        assert proof.valid and 0 <= proof.relative_gap < tol
        assert proof.kkt_violation <= tol and violation(qp, solution.beta, F) <= tol
        assert np.all(solution.beta >= qp.lower) and np.all(solution.beta <= qp.upper)
        alone = loss.primal(solution.beta @ solution.F, y, solution.F, factor[index], solution.thresholds, qp.sums)
        assert proof.primal == pytest.approx(alone, rel=1e-12)
        exact = loss.primal(solution.beta @ F, y, F, factor[index], solution.thresholds, qp.sums)
        assert proof.primal == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("params", [{}, {"class_weight": "balanced"}, {"C": 1e6}], ids=named)
def test_machines_agree(params):
    """A fit on digits does not depend on which way its pairs went, beyond tol."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:500] / 16, y[:500]
    settings = {"C": 1.0, "gamma": 0.05, "tol": 1e-6, **params}
    together = SVC(**settings).fit(X, y)
    apart = SVC(**settings)
    apart._plan = Plan(pairs="one by one", precision="float64")
    apart.fit(X, y)
    np.testing.assert_allclose(together.decision_function(X), apart.decision_function(X), atol=1e-4)
    assert together.certificate_.dual == pytest.approx(apart.certificate_.dual, rel=1e-6)
    assert len(together.certificates_) == 45 and together.certificate_.kkt_violation <= 1e-6


@pytest.mark.parametrize("params", [{}, {"loss": "squared_hinge"}, {"C": 1e4, "kernel": "poly"}], ids=named)
def test_larger_machines_agree(params):
    """The same where each pair has a matrix of its own, whatever the number of threads."""
    X, y = load_digits(return_X_y=True)
    X, y = X / 16, y // 3
    settings = {"C": 1.0, "gamma": 0.05, "tol": 1e-3, **params}
    together, on_one_thread = (SVC(**settings, n_jobs=n_jobs).fit(X, y) for n_jobs in (2, 1))
    assert all(point.steps > 0 for point in together.trace_) and together.certificate_.kkt_violation <= 1e-3
    np.testing.assert_array_equal(together.dual_coef_, on_one_thread.dual_coef_)
    apart = SVC(**settings, n_jobs=2)
    apart._plan = Plan(pairs="one by one", precision="float64")
    apart.fit(X, y)
    assert together.certificate_.dual == pytest.approx(apart.certificate_.dual, rel=1e-4)
    assert np.mean(together.predict(X) == apart.predict(X)) > 0.998


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=named)
def test_lots(loss):
    """Pairs whose programs are built in several lots have the same bits as those of one lot."""
    X, members, factor = blobs(n=500)
    data, options = Data(Gaussian(0.1), X, len(X)), Options()
    blocks = ClassBlocks(data, members, np.float32, 1)

    def solved(pairs):
        return batch.solve_on_blocks(
            data, blocks, batch.Programs(members, pairs, loss, factor), False, options, Clock()
        )

    one_lot = solved(CLASSES)
    several = [solution for lot in (CLASSES[:1], CLASSES[1:4], CLASSES[4:]) for solution in solved(lot)]
    for first, second in zip(one_lot, several, strict=True):
        np.testing.assert_array_equal(first.beta, second.beta)
        assert first.certificate == second.certificate


def test_lots_keep_the_order():
    """All pairs in their order, and no lot of more variables than are built at once and a pair has."""
    sizes = np.array([90_000, 50_000, 80_000, 120_000, 1, 70_000])
    members, pairs = [np.empty(size, np.int8) for size in sizes], batch.class_pairs(6)
    lots = batch.in_lots(members, pairs)
    assert len(lots) > 2 and [pair for lot in lots for pair in lot] == pairs
    assert max(sizes[list(lot[:-1])].sum() for lot in lots) <= VARIABLES_AT_ONCE


def test_what_does_not_end_here_is_left_to_others():
    """Pairs that float32 does not solve to tol, or that there is no time for, are left to the exact solver."""
    X, members, factor = blobs()
    data = Data(Gaussian(0.1), X, len(X))
    blocks = ClassBlocks(data, members, np.float32, 1)
    for clock, tol in ((Clock(), 1e-17), (Clock(time_limit=0.0), 1e-3)):
        programs = batch.Programs(members, CLASSES, Hinge(), factor)
        assert batch.solve_on_one_matrix(data, programs, Options(tol=tol), clock) == [None] * 6
        assert batch.solve_on_blocks(data, blocks, programs, False, Options(tol=tol), clock) == [None] * 6
    programs = batch.Programs(members, CLASSES, Hinge(), factor)
    assert None in batch.solve_on_blocks(data, blocks, programs, False, Options(tol=1e-9), Clock())
    y = np.empty(len(X), int)
    for c, index in enumerate(members):
        y[index] = c
    model = SVC(gamma=0.1, tol=1e-9)
    model._plan = Plan(pairs="class blocks", storage="matrix", precision="float32")
    model.fit(X, y, factor)
    assert model.plan_.pairs == "class blocks"
    assert model.fit_status_ == 0 and model.certificate_.kkt_violation <= 1e-9


@pytest.mark.parametrize(
    ("loss", "options", "reason"),
    [
        (NuHinge(0.2), Options(), "sums that differ from pair to pair"),
        (HardMargin(), Options(), "a box without end"),
        (Hinge(), Options(max_iter=10), "a limit on all steps"),
        (Hinge(), Options(precision="float32"), "float32 asked for"),
        (Hinge(), Options(budget=1000), "no memory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_not_for_everything(loss, options, reason):
    """Problems that the compiled run cannot solve are not given to it."""
    X, members, _ = blobs()
    assert planned(Data(Gaussian(0.1), X, len(X)), members, loss, options) != "one matrix", reason


def test_joined_matrices_are_not_for_everything():
    """They are not used if tol needs more digits than float32 has, or if they need more memory than there is."""
    X, members, _ = blobs(n=1500)
    data = Data(Gaussian(0.1), X, len(X))
    assert planned(data, members, Hinge(), Options()) == "class blocks"
    for options in (Options(precision="float64"), Options(tol=1e-4), Options(budget=1000)):
        assert planned(data, members, Hinge(), options) == "one by one"


def test_an_error_ends_all_threads():
    """A kernel that fails for one pair stops the others."""
    X, members, factor = blobs()
    data = Data(Gaussian(0.1), X, len(X))
    blocks, clock = ClassBlocks(data, members, np.float32, 1), Clock()
    blocks.within[3] = np.ones((2, 2), np.float32)
    blocks.features[3] = VectorFeatures(np.ones((2, 7)), np.float32)
    with pytest.raises(InvalidInputError, match="7"):
        programs = batch.Programs(members, CLASSES, Hinge(), factor)
        batch.solve_on_blocks(data, blocks, programs, False, Options(n_threads=2), clock)
    assert clock.interrupted
