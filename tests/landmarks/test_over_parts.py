"""Landmark machines over rows in parts: the same certificates as in one array, whatever the parts."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from tests.clocks import Countdown

from mercer import SVC, SVR, KernelRidge, OneClassSVM
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels import Gaussian, Linear, Precomputed, Sigmoid
from mercer.landmarks.growth import LandmarkOptions
from mercer.landmarks.landmark_certificate import lost
from mercer.landmarks.nystroem_factor import Factor, LandmarkMap
from mercer.landmarks.over_parts import bind_over_parts, solve_over_parts
from mercer.landmarks.saved_growth import SavedGrowth
from mercer.losses import EpsilonInsensitive, Hinge, NuHinge, OneClass, Squared, SquaredEpsilonInsensitive, SquaredHinge
from mercer.parts.layout import Held, LocalParts
from mercer.parts.linear_part import Statement
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Status

KERNEL = Gaussian(0.5)
# one part; three even ones; uneven ones, of which the second is empty and the first has one class only
CUTS = {"one": [], "three": [300, 600], "uneven": [20, 20, 500]}
LOSSES = {
    "hinge": (Hinge(), SVC(tol=1e-6)),
    "squared_hinge": (SquaredHinge(), SVC(tol=1e-6, loss="squared_hinge")),
    "epsilon_insensitive": (EpsilonInsensitive(0.1), SVR(tol=1e-6)),
    "squared_epsilon_insensitive": (
        SquaredEpsilonInsensitive(0.1),
        SVR(tol=1e-6, loss="squared_epsilon_insensitive"),
    ),
    "squared": (Squared(), KernelRidge(alpha=1.0, fit_intercept=True)),
}


def samples(loss, n=900, d=3, seed=0):
    """A curved border or a smooth target; the first 20 samples have the same sign. Some weights are 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n)
    order = np.concatenate([np.flatnonzero(f > 0)[:20], np.setdiff1d(np.arange(n), np.flatnonzero(f > 0)[:20])])
    X, f = X[order], f[order]
    weight = rng.uniform(0.2, 1.8, n)
    weight[::11] = 0.0
    return X, np.where(f > 0, 1.0, -1.0) if isinstance(loss, Hinge | SquaredHinge) else f, weight


def cut(X, y, weight, at, **more):
    loaders = [Held(*arrays) for arrays in zip(*(np.split(a, at) for a in (X, y, weight)), strict=True)]
    return LocalParts(loaders, **more)


def solve(parts, loss=None, options=None, clock=None, kernel=KERNEL, pairs_up_to=10**9, **choice):
    statement, choice = Statement(loss or Hinge(), 1.0, True), LandmarkOptions(**choice)
    return solve_over_parts(parts, kernel, statement, options or Options(), clock or Clock(), choice, pairs_up_to)


def values(found, X, kernel=KERNEL):
    K = kernel.block(kernel.prepare(X), kernel.prepare(found.samples))
    return K @ found.coef + found.thresholds.sum()


@pytest.mark.parametrize("name", LOSSES)
def test_the_certificate_bounds_the_distance_to_the_exact_machine(name):
    """dual ≤ optimum ≤ primal ≤ optimum + gap; the primal value is that of the function; any parts agree."""
    loss, machine = LOSSES[name]
    X, y, weight = samples(loss)
    exact = machine.set_params(kernel="rbf", gamma=0.5).fit(X, y, weight).certificate_
    slack = 2e-6 * exact.primal
    primals = []
    for at in CUTS.values():
        found = solve(cut(X, y, weight, at, n_threads=2), loss)
        proof = found.certificate
        assert proof.valid and found.status is Status.CONVERGED and found.ended_by == "landmark_tol"
        assert proof.relative_gap <= 0.01 and found.landmark_certificate.gap <= proof.gap
        assert proof.dual <= exact.primal + slack
        assert exact.dual - slack <= proof.primal <= exact.primal + proof.gap + slack
        f = values(found, X)
        primal = loss.primal(found.size, y, f, weight, np.zeros(1), np.zeros(1))
        assert primal == pytest.approx(proof.primal, rel=1e-9)
        np.testing.assert_allclose(X[found.rows], found.samples)
        np.testing.assert_array_equal(y[found.rows], found.targets)
        assert (weight[found.rows] > 0).all()
        primals.append(proof.primal)
    # the landmarks are the same samples, and each machine is within a tenth of landmark_tol of their best one
    np.testing.assert_allclose(primals, primals[0], rtol=0.1 * 0.01 * 2)


@pytest.mark.parametrize("at", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("nu", [0.02, 0.5, 0.8, 1.0])
def test_one_class(nu, at):
    """The machine whose Σβ is νW: certified for the exact machine, which has the same region."""
    X, y, weight = samples(EpsilonInsensitive(0.1))
    exact = OneClassSVM(nu=nu, gamma=0.5, tol=1e-6).fit(X, None, weight)
    found = solve(cut(X, y, weight, at, n_threads=2), OneClass(nu))
    proof, optimum = found.certificate, exact.certificate_
    slack = 1e-5 * abs(optimum.primal)
    assert proof.valid and found.status is Status.CONVERGED and proof.relative_gap <= 0.01
    assert proof.dual <= optimum.primal + slack
    assert optimum.dual - slack <= proof.primal <= optimum.primal + proof.gap + slack
    loss, f = OneClass(nu), values(found, X)
    total = nu * weight.sum()
    primal = loss.primal(found.size, y, f - found.thresholds[0], weight, found.thresholds, np.array([total]))
    assert primal == pytest.approx(proof.primal, rel=1e-9)
    with Clock(0.0) as clock:
        early = solve(cut(X, y, weight, at), OneClass(nu), clock=clock)
    assert early.status is Status.TIME_LIMIT and early.certificate.valid


@pytest.mark.parametrize("at", CUTS.values(), ids=CUTS)
def test_growth(at):
    """More landmarks are added where the first do not suffice, without a sample twice; a count is reached."""
    X, y, weight = samples(Hinge())
    kernel = Gaussian(3.0)
    found = solve(cut(X, y, weight, at), kernel=kernel, tol=1e-3)
    counts = [now.n_landmarks for now in found.growth]
    assert counts[0] == 100 and counts[-1] >= 200 and counts == sorted(counts)
    assert len(set(found.rows)) == len(found.rows) == counts[-1]
    assert found.certificate.relative_gap <= 1e-3
    few = solve(cut(X, y, weight, at), kernel=kernel, count=150)
    assert len(few.rows) == 150 and few.ended_by == "count"
    # landmarks by their part of what is lost are better than as many drawn evenly would be by chance
    local = SVC(gamma=3.0, landmarks=150).fit(X, y, weight)
    assert few.certificate.relative_gap <= 1.3 * local.certificate_.relative_gap


def test_rows_of_L_that_are_not_kept():
    """Without memory for the rows of L they are computed in each pass: the same machine."""
    X, y, weight = samples(Hinge())
    kept = solve(cut(X, y, weight, [300]), kernel=Gaussian(3.0), count=150)
    computed = solve(cut(X, y, weight, [300], budget=0), kernel=Gaussian(3.0), count=150)
    np.testing.assert_array_equal(kept.rows, computed.rows)
    assert kept.certificate.primal == pytest.approx(computed.certificate.primal, rel=1e-4)
    assert kept.certificate.gap == pytest.approx(computed.certificate.gap, rel=0.05)


def test_the_sampled_bound_holds():
    """Beyond ``pairs_up_to`` pairs of support vectors β'(K − K̂)β is bounded from drawn rows: from above."""
    X, y, weight = samples(EpsilonInsensitive(0.0), n=9000)
    weight[:] = 1e-4  # the largest β is the weight: all are support vectors
    loss = EpsilonInsensitive(0.0)
    found = solve(cut(X, y, weight, [500, 4000]), loss, kernel=Gaussian(2.0), count=30, pairs_up_to=10)
    assert found.certificate.valid and "with probability 0.999999" in str(found.certificate)
    missing = 2.0 * (found.certificate.gap - found.landmark_certificate.gap)
    # β of the same landmarks and the same tolerance in one array, and its exact value
    factor = Factor(Data(Gaussian(2.0), X, len(X)), np.float32, 2)
    factor.add(found.rows)
    beta = np.clip(np.sign(y - values(found, X, Gaussian(2.0))), -1, 1) * weight
    exact = lost(factor, beta, factor.L.astype(float).T @ beta)
    assert not exact.sampled
    assert 0.9 * exact.value <= missing <= 2.0 * exact.value


def test_sparse_rows_and_given_landmarks():
    """CSR parts give the machine of dense ones; given landmarks are used as they are."""
    X, y, weight = samples(Hinge())
    X[np.abs(X) < 0.4] = 0.0
    dense = solve(cut(X, y, weight, [300]), count=50)
    loaders = [Held(sp.csr_array(X[a:b]), y[a:b], weight[a:b]) for a, b in ((0, 300), (300, 900))]
    sparse = solve(LocalParts(loaders), count=50)
    np.testing.assert_array_equal(dense.rows, sparse.rows)
    assert sp.issparse(sparse.samples)
    assert sparse.certificate.primal == pytest.approx(dense.certificate.primal, rel=1e-3)
    given = Data(KERNEL, X[:40], 40)
    found = solve(cut(X, y, weight, [300]), given=given)
    assert found.ended_by == "given" and set(found.rows) <= set(range(40))


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
def test_a_saved_state_is_continued(stored):
    """The landmarks and the function of a step are kept as arrays; a run that starts there has these landmarks."""
    X, y, weight = samples(Hinge())
    X[np.abs(X) < 0.4] = 0.0
    loaders = [Held(stored(X[a:b]), y[a:b], weight[a:b]) for a, b in ((0, 300), (300, 900))]
    statement, kept = Statement(Hinge(), 1.0, True), []
    problem = LocalParts(loaders), Gaussian(3.0), statement, Options(), Clock(), LandmarkOptions(tol=1e-3)
    first = solve_over_parts(*problem, keep=kept.append)
    again = solve_over_parts(*problem, saved=SavedGrowth.of(kept[-1].arrays()))
    assert len(first.growth) > len(again.growth) and again.evaluations < first.evaluations
    # without those that depend on others, which are few
    assert set(again.rows) <= set(first.rows) and len(again.rows) > 0.98 * len(first.rows)
    assert again.certificate.primal == pytest.approx(first.certificate.primal, rel=1e-3)
    halfway = SavedGrowth.of(kept[len(kept) // 2].arrays())
    found = solve_over_parts(*problem, saved=halfway)
    assert len(set(halfway.rows) & set(found.rows)) > 0.98 * len(halfway.rows)
    assert found.certificate.relative_gap <= 1e-3


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
def test_widths_from_all_parts(stored):
    """gamma="scale" and "auto" are those of all rows, even far from 0."""
    X = np.random.default_rng(0).normal(1e3, 1e-1, (500, 4)) * [1, 1, 1, 5]
    parts = LocalParts([Held(stored(X[a:b]), np.ones(b - a)) for a, b in ((0, 30), (30, 500))])
    for width in ("scale", "auto"):
        bound = bind_over_parts(parts, Gaussian(width) + Linear())
        assert bound.leaves()[0].gamma == pytest.approx(Gaussian(width).bind(X).gamma, rel=1e-9)


def test_the_time_limit():
    """time_limit=0 leaves a valid certificate of the first landmarks."""
    X, y, weight = samples(Hinge())
    with Clock(0.0) as clock:
        found = solve(cut(X, y, weight, [300]), clock=clock)
    assert found.status is Status.TIME_LIMIT and found.ended_by == "time_limit"
    assert found.certificate.valid and np.isfinite(found.certificate.gap) and len(found.growth) == 1


def test_a_limit_during_a_round_keeps_the_best_round():
    """Wherever a run is cut, its machine is not worse than an earlier round; its primal is that of its function."""
    loss = Hinge()
    X, y, weight = samples(loss)
    weight *= 1e4
    for questions in (0, 10, 30, 50, 80, 120, 160, 200):
        parts = cut(X, y, weight, [300])
        more = {"kernel": Gaussian(3.0), "options": Options(precision="float64"), "tol": 1e-9, "most": 800}
        found = solve(parts, loss, clock=Countdown(questions), **more)
        proof, earlier = found.certificate, [round.primal for round in found.growth[:-1]]
        assert proof.valid and proof.primal <= min(earlier, default=np.inf) * (1 + 1e-4)
        primal = loss.primal(found.size, y, values(found, X, Gaussian(3.0)), weight, np.zeros(1), np.zeros(1))
        assert primal == pytest.approx(proof.primal, rel=1e-9)


def test_a_factor_in_float32_that_does_not_suffice_is_computed_in_float64():
    """A large C and a small λ enlarge the rounding of the factor: the machine meets its tolerance nevertheless."""
    for loss, price in ((Hinge(), 1e6), (Squared(), 1e10)):
        X, y, weight = samples(loss, n=300)
        parts, statement = cut(X, y, weight, [100]), Statement(loss, price, True)
        found = {
            precision: solve_over_parts(
                parts, KERNEL, statement, Options(precision=precision), Clock(), LandmarkOptions()
            ).certificate.relative_gap
            for precision in ("float32", "auto")
        }
        assert found["auto"] <= 0.01 < found["float32"]


def test_the_map_is_picklable():
    """LandmarkMap gives the rows of L of new samples: their products are the kernel values of the landmarks."""
    X, *_ = samples(Hinge(), n=60)
    root = np.linalg.cholesky(KERNEL.block(KERNEL.prepare(X[:9]), KERNEL.prepare(X[:9])))
    to_rows = pickle.loads(pickle.dumps(LandmarkMap(KERNEL, X[:9], root)))
    K = KERNEL.block(KERNEL.prepare(X), KERNEL.prepare(X[:9]))
    np.testing.assert_allclose(to_rows(X) @ to_rows(X[:9]).T, K, atol=1e-4)


def test_what_is_refused():
    """NaN is named by part and row; other losses, kernels and polish say what is available."""
    X, y, weight = samples(Hinge(), n=90)
    wrong = X.copy()
    wrong[70, 1] = np.nan
    message = r"X contains nan in part 1, row 20, column 1 \(both counted from 0\)\. Impute or remove such rows\."
    with pytest.raises(InvalidInputError, match=message):
        bind_over_parts(cut(wrong, y, weight, [50]), Gaussian())
    parts = cut(X, y, weight, [50])
    with pytest.raises(InvalidInputError, match="is not available for rows in parts: the linear solver over parts"):
        solve(parts, NuHinge(0.5))
    with pytest.raises(InvalidInputError, match="polish=True continues to the exact machine, which is not available"):
        solve(parts, polish=True)
    with pytest.raises(InvalidInputError, match="Rows in parts need a kernel object"):
        bind_over_parts(parts, Precomputed())
    with pytest.raises(InvalidInputError, match="Landmarks need a positive semidefinite kernel, but"):
        bind_over_parts(parts, Sigmoid())
    with pytest.raises(InvalidInputError, match="No sample has a positive weight: give at least one"):
        solve(cut(X, y, 0.0 * weight, [50]))
