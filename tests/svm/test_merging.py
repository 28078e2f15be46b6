"""Equal samples solved as one: the same optimum, shared among them within their bounds."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named

from mercer import SVC, certify
from mercer.gram.operator import Data
from mercer.kernels import Gaussian, Precomputed
from mercer.losses import EpsilonInsensitive, Hinge, NuHinge, NuInsensitive, SquaredEpsilonInsensitive, SquaredHinge
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem, violation
from mercer.problems.solution import Options, Status
from mercer.svm import presolve as merging
from mercer.svm._merge_loops import number_rows, split_totals
from mercer.svm.plan import Plan, plan_problem
from mercer.svm.presolve import merge
from mercer.svm.solve import solve

N = 900
LOSSES = [Hinge(), SquaredHinge(), EpsilonInsensitive(0.2), SquaredEpsilonInsensitive(0.2)]


# small problems are merged too
MERGE = Plan(presolve="merge", storage="rows", working_set=64)


def repeated(seed=0, d=3):
    """Samples on a coarse grid, most of which occur several times, with labels that contradict each other."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(N, d))) + 0.0  # the two zeros are not equal bit by bit
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=N) > 0, 1.0, -1.0)
    return X, y, rng.uniform(0.2, 3.0, N)


def same_as_all(X, y):
    """(how many pairs (x, y) differ, for each sample the first that it equals)."""
    _, first, inverse = np.unique(np.column_stack([X, y]), axis=0, return_index=True, return_inverse=True)
    return len(first), first[inverse.ravel()]


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_samples_are_found(storage, dtype):
    """Each with the first one that it equals in all features and its target, and no other."""
    X, y, weight = repeated()
    data = Data(Gaussian(0.3), storage(X.astype(dtype)), N)
    merged = merge(data, DualProblem(None, Hinge(), y, weight))
    count, first = same_as_all(X, y)
    assert merged.data.n == len(merged.problem.y) == count < 0.5 * N
    firsts = np.unique(first)
    np.testing.assert_array_equal(firsts[merged.inverse], first)
    np.testing.assert_array_equal(merged.problem.y, y[firsts])
    np.testing.assert_allclose(merged.problem.weight, [weight[first == f].sum() for f in firsts])


def test_codes_that_meet_by_chance_are_looked_at():
    """With one code for all rows, only rows that are equal bit by bit count as equal."""
    rows = np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0], [2.0, 1.0], [2.0, 1.0]])
    bits, targets = rows.view(np.uint64).ravel(), np.array([1.0, 1.0, 1.0, 1.0, -1.0]).view(np.uint64)
    ends, none, (inverse, firsts) = 2 * np.arange(6), np.empty(0, np.int64), np.empty((2, 5), np.intp)
    for hash_value in (0, 2**64 - 1):  # the last place of the table is followed by the first
        count = number_rows(ends, none, bits, targets, np.full(5, hash_value, np.uint64), inverse, firsts)
        np.testing.assert_array_equal(inverse, [0, 0, 1, 1, 2])
        np.testing.assert_array_equal(firsts[:count], [0, 2, 4])


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hashes_differ(storage, dtype):
    """For rows that differ in one bit, in the order of their features, or in their target."""
    X = np.unique(np.random.default_rng(0).integers(0, 2, size=(4096, 40)), axis=0).astype(dtype)
    hashes = [merging._hash_rows(storage(X), np.full(len(X), target)) for target in (1.0, -1.0)]
    assert len(np.unique(hashes)) == 2 * len(X)
    # the lower bits choose a place in the hash table
    assert len(np.unique(hashes[0] & np.uint64(0xFFFF))) > 0.9 * len(X)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
def test_hashes_of_equal_rows_are_equal(storage):
    """Whatever rows are hashed together; rows without entries, and a matrix without columns, have a hash, too."""
    X, y, _ = repeated()
    X[::7] = 0.0
    _, first = same_as_all(X, y)
    hashes = merging._hash_rows(storage(X), y)
    np.testing.assert_array_equal(hashes, hashes[first])
    np.testing.assert_array_equal(hashes[3:5], merging._hash_rows(storage(X[3:5]), y[3:5]))
    assert len(np.unique(merging._hash_rows(storage(np.empty((len(y), 0))), y))) == len(np.unique(y))


@pytest.mark.parametrize("loss", LOSSES, ids=named)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_optimum_is_the_same(loss, intercept):
    """The dual value, β in its box, F = Kβ, no violation above tol, fewer kernel values."""
    X, y, weight = repeated()
    if "epsilon" in loss.name:
        y = np.round(X[:, 0] + 0.5 * y, 1)
    problem, K = DualProblem(None, loss, y, weight, intercept), Gaussian(0.3)(X)
    found = []
    for plan in (MERGE, replace(MERGE, presolve="none")):
        data = Data(Gaussian(0.3), X, N)
        solution = solve(data, problem, Options(tol=1e-5, plan=plan), Clock())
        found.append((solution, data.evaluations.count))
        qp = problem.qp
        assert solution.status is Status.CONVERGED and solution.certificate.valid
        assert np.all(solution.beta >= qp.lower) and np.all(solution.beta <= qp.upper)
        np.testing.assert_allclose(solution.F, K @ solution.beta, atol=1e-4)
        assert violation(qp, solution.beta, solution.F) <= 1.1e-5
        assert abs(solution.beta.sum()) < 1e-9 or not intercept
    (merged, few), (all_, many) = found
    assert few < 0.5 * many
    assert merged.certificate.dual == pytest.approx(all_.certificate.dual, rel=1e-6)
    np.testing.assert_allclose(merged.F, all_.F, atol=1e-3)
    if not problem.qp.ridge.any():
        assert np.count_nonzero(merged.beta) <= np.count_nonzero(all_.beta)
        inverse = merge(data, problem) or merging._number_distinct(X, y, merging._hash_rows(X, y))[0]
        free = (merged.beta != 0) & (np.abs(merged.beta) < problem.qp.upper.clip(-problem.qp.lower))
        assert np.bincount(getattr(inverse, "inverse", inverse), free).max() <= 1


def test_bounds_are_met_exactly():
    """The sum of bounds is shared so that each is at its bound, whatever the rounding."""
    X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([1.0, -1.0], 500)
    weight = np.random.default_rng(1).uniform(0.1, 0.3, 1000) / 500
    problem = DualProblem(None, Hinge(), y, weight)
    merged = merge(Data(Gaussian(0.3), X, 1000), problem)
    total = merged.problem.weight
    np.testing.assert_array_equal(merged._split(np.array([total[0], -total[1]])), y * weight)
    half = merged._split(np.array([weight[:250].sum(), 0.0]))
    np.testing.assert_allclose(half[:250], weight[:250], rtol=1e-12)
    assert not half[251:].any() and half.sum() == pytest.approx(weight[:250].sum(), rel=1e-12)


def test_what_is_not_merged():
    """Few samples, losses of another kind, kernel matrices, several variables of a sample; samples that differ."""
    X, y, weight = (np.repeat(values, 5, axis=0) for values in repeated())
    n = len(X)

    def presolve(data, loss):
        problem = DualProblem(None, loss, y[: data.n], weight[: data.n])
        return plan_problem(data, problem, Options(precision="float32")).presolve

    data = Data(Gaussian(0.3), X, n)
    assert presolve(data, Hinge()) == "merge" and merge(data, DualProblem(None, Hinge(), y, weight)) is not None
    assert presolve(data, NuHinge(0.3)) == presolve(Data(Precomputed(), np.eye(n), n), Hinge()) == "none"
    assert presolve(data.take(np.arange(4000)), Hinge()) == "none"
    assert presolve(data, NuInsensitive(0.3)) == "none"
    other = Data(Gaussian(0.3), np.random.default_rng(0).normal(size=(n, 2)), n)
    assert merge(other, DualProblem(None, Hinge(), y, weight)) is None


def test_models_and_those_who_watch_see_all_samples():
    """Attributes, certificates, a warm start and a run that is watched have the samples that were given."""
    X, y, weight = repeated()
    model = SVC(C=2.0, gamma=0.3, warm_start=True)
    model._plan = MERGE
    model.fit(X, y, weight)
    assert model.shape_fit_ == X.shape and model.support_.max() >= 0.9 * N
    proof = certify(model, X, y, weight)
    assert proof.kkt_violation <= 1e-3 and proof.relative_gap == pytest.approx(
        model.certificate_.relative_gap, abs=1e-9
    )
    before = model.dual_coef_.copy()
    model.fit(X, y, weight)
    np.testing.assert_allclose(model.dual_coef_.sum(), before.sum(), atol=1e-6)
    sizes = []
    clock = Clock(progress=lambda point: sizes.append(len(clock.reports.attributes()()["beta"])))
    clock.reports.to_attributes = lambda solution: {"beta": solution.beta}
    solve(Data(Gaussian(0.3), X, N), DualProblem(None, Hinge(), y, weight), Options(plan=MERGE), clock)
    assert sizes and set(sizes) == {N}


def test_the_plan_says_whether_samples_were_merged():
    """Looking for equal samples is no presolve if all differ."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 2)), np.arange(5000) % 2
    apart = SVC().fit(X, y).plan_
    assert (apart.presolve, apart.n_samples) == ("none", 5000) and "merged" not in str(apart)
    merged = SVC().fit(np.repeat(X[:2500], 2, axis=0), np.repeat(y[:2500], 2)).plan_
    assert (merged.presolve, merged.n_samples) == ("merge", 2500)
    assert str(merged).startswith("2,500 samples, equal ones merged, rows in float32")


def test_an_interrupted_run_has_all_samples():
    """The state at the end of the time, with its certificate."""
    X, y, weight = repeated()
    clock = Clock()
    clock.interrupted = True
    solution = solve(Data(Gaussian(0.3), X, N), DualProblem(None, Hinge(), y, weight), Options(plan=MERGE), clock)
    assert solution.status is Status.INTERRUPTED
    assert len(solution.beta) == len(solution.F) == N


def test_sharing_begins_with_the_first():
    """The first gets its bound, then the next; if the total is at its bound, each is exactly at its own."""
    inverse, upper = np.array([0, 1, 0, 1, 0, 2]), np.array([0.1, 1.0, 0.2, np.inf, 0.3, 1.0])
    share = np.empty(6)

    def shared(total, full=(False, False, False)):
        split_totals(np.array(total), inverse, np.array(full), upper, -2 * upper, 1e-13, share)
        return share

    np.testing.assert_array_equal(shared([0.25, 3.0, 0.0]), [0.1, 1.0, 0.25 - 0.1, 2.0, 0.0, 0.0])
    np.testing.assert_array_equal(shared([-0.1, -1.0, -0.5]), [-0.1, -1.0, 0.0, 0.0, 0.0, -0.5])
    np.testing.assert_array_equal(shared([0.6 - 1e-16, 0.5, 0.0], (True, False, False)), [0.1, 0.5, 0.2, 0, 0.3, 0])
    np.testing.assert_array_equal(shared([0.1 + 0.2, 0.0, 0.0]), [0.1, 0.0, 0.2, 0.0, 0.0, 0.0])
