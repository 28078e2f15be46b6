"""Landmark machines: their certificates hold for the exact problem, and their limits are said."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from tests.clocks import Countdown
from tests.naming import named

from mercer import SVC, SVR, KernelRidge, OneClassSVM, certify, load, save
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels import Gaussian, Spectrum
from mercer.landmarks.growth import LandmarkOptions
from mercer.landmarks.landmark_solver import LandmarkSolver
from mercer.losses import Hinge, Squared
from mercer.problems.solution import Options

RIDGE = {"kernel": "rbf", "gamma": 0.3, "alpha": 0.5}


def curved(n=900, d=3, seed=0):
    """Two classes with a curved border and some noise, and a smooth target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, np.where(f > 0, "yes", "no"), f


def machines():
    X, labels, f = curved()
    return [
        pytest.param(SVC(gamma=0.3), X, labels, id="SVC"),
        pytest.param(SVC(gamma=0.3, loss="squared_hinge"), X, labels, id="SVC-squared_hinge"),
        pytest.param(SVC(gamma=0.3, fit_intercept=False), X, labels, id="SVC-no-intercept"),
        pytest.param(SVC(gamma=0.3, class_weight="balanced"), X, labels, id="SVC-balanced"),
        pytest.param(SVR(gamma=0.3), X, f, id="SVR"),
        pytest.param(SVR(gamma=0.3, loss="squared_epsilon_insensitive"), X, f, id="SVR-squared"),
        pytest.param(OneClassSVM(gamma=0.3, nu=0.2), X, None, id="OneClassSVM"),
        pytest.param(KernelRidge(**RIDGE), X, f, id="KernelRidge"),
        pytest.param(KernelRidge(**RIDGE, fit_intercept=True), X, f, id="KernelRidge-intercept"),
    ]


@pytest.mark.parametrize(("machine", "X", "y"), machines())
def test_the_certificate_bounds_the_distance_to_the_exact_machine(machine, X, y):
    """primal(landmarks) − optimum ≤ gap, and dual ≤ optimum, for every number of landmarks; "auto" meets its tol."""
    exact = clone(machine).set_params(tol=1e-6).fit(X, y).certificate_
    slack = 1e-6 * abs(exact.primal)
    for landmarks in (20, 80, "auto"):
        model = clone(machine).set_params(landmarks=landmarks).fit(X, y)
        found = model.certificate_
        assert found.valid
        assert found.dual <= exact.primal + slack
        assert found.primal >= exact.dual - slack
        assert found.gap == pytest.approx(found.primal - found.dual, abs=slack)
        assert model.landmark_certificate_.gap <= found.gap
        assert model.landmark_certificate_.relative_gap <= 1e-3
        if landmarks == "auto":
            assert found.relative_gap <= model.landmark_tol
        else:
            assert 0 < model.n_landmarks_ <= landmarks


@pytest.mark.parametrize(("machine", "X", "y"), machines())
def test_the_restricted_problem_is_solved(machine, X, y):
    """With all samples as landmarks the machine is the exact one."""
    exact = clone(machine).set_params(tol=1e-6).fit(X[:120], None if y is None else y[:120])
    model = clone(machine).set_params(landmarks=120, precision="float64").fit(X[:120], None if y is None else y[:120])
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=2e-3, abs=1e-6)


@pytest.mark.parametrize(("machine", "X", "y"), machines())
def test_certify_finds_the_same_distance(machine, X, y):
    """certify recomputes primal and dual from the data and the landmarks."""
    model = clone(machine).set_params(landmarks=60).fit(X, y)
    again = certify(model, X, y)
    assert again.valid
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert again.relative_gap == pytest.approx(model.certificate_.relative_gap, rel=0.05, abs=2e-3)


@pytest.mark.parametrize(("machine", "X", "y"), machines())
def test_files_pickles_and_clones_keep_landmark_machines(machine, X, y, tmp_path):
    """A model file and a pickle predict the same; a refit without landmarks forgets them."""
    model = clone(machine).set_params(landmarks=30).fit(X, y)
    save(model, tmp_path / "model.mercer")
    for other in (load(tmp_path / "model.mercer"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X[:20]), model.predict(X[:20]))
        assert other.n_landmarks_ == model.n_landmarks_
        assert other.growth_ == model.growth_
    model.set_params(landmarks=None).fit(X, y)
    assert not hasattr(model, "landmarks_")
    assert not hasattr(model, "landmark_certificate_")


@pytest.mark.parametrize(
    "machine", [SVC(gamma=0.3), SVR(gamma=0.3), OneClassSVM(gamma=0.3), KernelRidge(**RIDGE)], ids=named
)
def test_given_landmarks_are_used_as_they_are(machine):
    """The function is an expansion over the given samples, which need not be training samples."""
    X, labels, f = curved()
    given = curved(25, seed=7)[0]
    y = labels if isinstance(machine, SVC) else f
    model = clone(machine).set_params(landmarks=given).fit(X, y)
    assert model.n_landmarks_ == 25
    np.testing.assert_allclose(np.sort(model.landmarks_, axis=0), np.sort(given, axis=0))
    assert model.certificate_.valid
    value = model.predict if isinstance(machine, SVR | KernelRidge) else model.decision_function
    new = curved(10, seed=9)[0]
    expected = Gaussian(0.3)(new, model.landmarks_) @ np.ravel(model.dual_coef_) + model.intercept_
    np.testing.assert_allclose(value(new), np.ravel(expected), atol=1e-6)


def test_several_classes_have_landmarks_for_each_pair():
    """Each pair of classes is certified; given landmarks serve all pairs."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:700] / 16.0, y[:700]
    exact = SVC(C=5.0).fit(X, y)
    model = SVC(C=5.0, landmarks="auto").fit(X, y)
    assert model.certificate_.relative_gap <= 0.01
    assert len(model.certificates_) == len(model.growth_) == 45
    assert np.mean(model.predict(X) == exact.predict(X)) > 0.99
    given = SVC(C=5.0, landmarks=X[:80]).fit(X, y)
    assert given.score(X, y) > 0.9
    assert given.decision_function(X).shape == (700, 10)
    assert certify(given, X, y).primal == pytest.approx(given.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("nu", [0.02, 0.7, 0.95])
def test_one_class_machines_of_all_nu(nu):
    """The decision values grow with nu: the central path begins at their size, and ends near the optimum."""
    X, *_ = curved()
    exact = OneClassSVM(gamma=0.3, nu=nu, tol=1e-6).fit(X).certificate_
    found = OneClassSVM(gamma=0.3, nu=nu, landmarks="auto").fit(X).certificate_
    assert found.valid and found.relative_gap <= 0.01
    assert found.primal <= exact.primal + found.gap + 1e-5 * abs(exact.primal)


def test_growth_lowers_the_distance():
    """Each round has more landmarks and a lower objective; the last has the gap of the certificate."""
    X, labels, _ = curved()
    model = SVC(gamma=1.0, landmarks="auto", landmark_tol=1e-3).fit(X, labels)
    rounds = model.growth_
    counts, gaps = [r.n_landmarks for r in rounds], [r.exact_relative_gap for r in rounds]
    assert counts == sorted(counts)
    assert len(set(counts)) > 2
    assert gaps[-1] < gaps[0]
    assert gaps[-1] == model.certificate_.relative_gap
    assert [r.seconds for r in rounds] == sorted(r.seconds for r in rounds)


def test_landmarks_chosen_by_the_certificate_beat_random_ones():
    """The same number of evenly drawn samples is further from the exact machine."""
    X, labels, _ = curved(2000)
    random = np.random.default_rng(0).permutation(2000)[:300]
    chosen = SVC(gamma=1.0, landmarks=300).fit(X, labels).certificate_.relative_gap
    drawn = SVC(gamma=1.0, landmarks=X[random]).fit(X, labels).certificate_.relative_gap
    assert chosen < 0.7 * drawn


def test_polish_ends_at_the_exact_machine():
    """polish=True continues from β of the landmark machine to the optimum."""
    X, labels, f = curved()
    for machine, y in ((SVC(gamma=0.3), labels), (SVR(gamma=0.3), f), (KernelRidge(**RIDGE), f)):
        exact = clone(machine).fit(X, y)
        model = clone(machine).set_params(landmarks=50, polish=True).fit(X, y)
        np.testing.assert_allclose(model.certificate_.primal, exact.certificate_.primal, rtol=1e-4)
        assert model.certificate_.relative_gap < 1e-3
        assert not hasattr(model, "landmarks_")
        if not isinstance(machine, KernelRidge):  # its exact machine has no use for a start
            assert model.growth_[-1].n_landmarks == 50
            assert model.landmark_certificate_.primal >= model.certificate_.dual
            assert certify(model, X, y).relative_gap < 1e-3
            assert pickle.loads(pickle.dumps(model)).growth_ == model.growth_
        given = clone(machine).set_params(landmarks=X[:30], polish=True).fit(X, y)
        assert given.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-4)


def test_other_samples_and_storages():
    """Strings, CSR, a precomputed matrix and a kernel function have landmarks, too."""
    X, labels, _ = curved(300)
    dense = SVC(gamma=0.3, landmarks=50).fit(X, labels)
    sparse = SVC(gamma=0.3, landmarks=50).fit(sp.csr_array(X), labels)
    given = [
        SVC(gamma=0.3, landmarks=rows).fit(X, labels).certificate_.primal for rows in (X[:30], sp.csr_array(X[:30]))
    ]
    assert given[0] == given[1]
    assert sparse.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-3)
    K = Gaussian(0.3)(X, X)
    matrix = SVC(kernel="precomputed", landmarks=50).fit(K, labels)
    assert matrix.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-3)
    assert np.mean(matrix.predict(K) == dense.predict(X)) > 0.98
    function = SVC(kernel=lambda A, B: Gaussian(0.3)(A, B), landmarks=50).fit(X, labels)
    assert np.mean(function.predict(X) == dense.predict(X)) > 0.98
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(150)]
    y = np.array([s.count("AC") > 2 for s in strings])
    for landmarks in ("auto", 30, strings[:30]):
        model = SVC(kernel=Spectrum(3), landmarks=landmarks).fit(strings, y)
        assert model.certificate_.valid
        assert len(model.landmarks_) == model.n_landmarks_
        assert model.score(strings, y) > 0.8


def test_too_few_landmarks_are_said_with_numbers():
    """max_landmarks ends growth above landmark_tol: a warning names both, and what to do."""
    X, labels, _ = curved()
    with pytest.warns(ConvergenceWarning, match=r"30 landmarks are too few for landmark_tol=0.01.*Raise max_landmarks"):
        SVC(gamma=0.3, landmarks="auto", max_landmarks=30).fit(X, labels)
    with pytest.warns(ConvergenceWarning, match=r"All other samples depend on these.*precision='float64'"):
        KernelRidge(kernel="rbf", alpha=1e-12, landmarks="auto", precision="float32").fit(X[:300], X[:300, 0])
    KernelRidge(**RIDGE, landmarks=5).fit(X, X[:, 0])  # a number was asked for: no warning


def test_a_factor_in_float32_that_does_not_suffice_is_computed_in_float64():
    """A large C and a small λ enlarge the rounding of the factor: the machine meets its tolerance nevertheless."""
    X, labels, f = curved(300)
    assert SVC(C=1e6, landmarks="auto").fit(X, labels).certificate_.relative_gap <= 0.01
    assert KernelRidge(kernel="rbf", alpha=1e-12, landmarks="auto").fit(X, f).certificate_.relative_gap <= 0.01


def test_limits_leave_a_certified_machine():
    """A time limit of 0 ends after the first round, with a model and its certificate."""
    X, labels, f = curved()
    for machine, y in ((SVC(), labels), (SVR(), f)):
        with pytest.warns(ConvergenceWarning, match="time_limit"):
            model = machine.set_params(landmarks="auto", time_limit=0.0).fit(X, y)
        assert model.certificate_.valid
        assert len(model.predict(X)) == len(X)


@pytest.mark.parametrize("machine", [SVC(gamma=3.0, C=1e4), KernelRidge(kernel="rbf", gamma=3.0)], ids=named)
def test_a_limit_during_a_round_keeps_the_best_round(machine):
    """Wherever a run is cut, its machine is not worse than an earlier round, and its certificate is valid."""
    X, labels, f = curved()
    data = Data(Gaussian(3.0), X, len(X))
    loss, y = (Hinge(), np.where(labels == "yes", 1.0, -1.0)) if isinstance(machine, SVC) else (Squared(), f)
    rounds = set()
    for questions in (0, 5, 20, 40, 80, 160, 320, 640):
        problem = data, loss, y, np.full(len(X), 1e4), True, Options(precision="float64"), Countdown(questions), None
        found = LandmarkSolver(LandmarkOptions(tol=1e-9, most=800))(*problem)
        proof, earlier = found.certificate, [round.primal for round in found.growth[:-1]]
        assert proof.valid and found.growth[-1].primal == proof.primal
        assert proof.primal <= min(earlier, default=np.inf) * (1 + 1e-4)
        F = data.kernel.block(data.exact(np.arange(len(X))), data.exact(found.landmarks)) @ found.coef
        paid = loss.primal(found.size, y, F, np.full(len(X), 1e4), found.thresholds, np.zeros(1))
        assert paid == pytest.approx(proof.primal, rel=1e-9)
        rounds.add(len(found.growth))
    assert len(rounds) > 1


@pytest.mark.parametrize("landmarks", [60, "auto"])
def test_max_iter_ends_growth_and_is_said(landmarks):
    """The restricted problem is ended by max_iter: no further landmarks, and advice on max_iter."""
    X, labels, _ = curved()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2") as said:
        model = SVC(gamma=0.3, C=1e3, landmarks=landmarks, max_iter=2).fit(X, labels)
    assert model.fit_status_ == 1 and model.certificate_.valid and len(model.growth_) == 1
    assert not any("depend on these" in str(warning.message) for warning in said)


@pytest.mark.parametrize("C", [1e90, 1e160, 1e300])
def test_enormous_weights_are_refused_or_certified(C):
    """Up to sums of 1e100 there is a model with a certificate; beyond, an error that says the limit."""
    X, labels, f = curved(200)
    for machine, y in ((SVC(C=C), labels), (SVC(C=C, loss="squared_hinge"), labels), (SVR(C=C), f)):
        machine.set_params(landmarks=20)
        if C < 1e98:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                assert np.isfinite(machine.fit(X, y).certificate_.primal)
            continue
        with pytest.raises(InvalidInputError, match=r"their products overflow in a landmark machine, which takes sums"):
            machine.fit(X, y)


def test_half_of_a_small_number_of_landmarks_is_chosen():
    """A number below the first round's is not a random draw: the machine is better than one of random landmarks."""
    X, labels, _ = curved()
    chosen = SVC(gamma=0.3, landmarks=40).fit(X, labels)
    assert [round.n_landmarks for round in chosen.growth_] == [20, 40]
    draws = [np.random.default_rng(seed).choice(len(X), 40, replace=False) for seed in range(5)]
    random = [SVC(gamma=0.3, landmarks=X[index]).fit(X, labels).certificate_.primal for index in draws]
    assert chosen.certificate_.primal < min(random)


def test_the_same_seed_gives_the_same_machine_for_any_number_of_threads():
    """Landmarks do not depend on n_jobs; another seed draws others."""
    X, labels, _ = curved()
    models = [
        SVC(landmarks=40, n_jobs=jobs, random_state=seed).fit(X, labels) for jobs, seed in [(1, 0), (2, 0), (1, 1)]
    ]
    np.testing.assert_array_equal(models[0].support_, models[1].support_)
    np.testing.assert_allclose(models[0].dual_coef_, models[1].dual_coef_, rtol=1e-4, atol=1e-6)
    assert not np.array_equal(models[0].support_, models[2].support_)


def test_weights_of_zero_leave_samples_out():
    """A sample without weight is neither in the problem nor a landmark."""
    X, labels, f = curved(300)
    weight = np.where(np.arange(300) < 200, 1.0, 0.0)
    for machine, y in ((SVC(gamma=0.3), labels), (SVR(gamma=0.3), f), (KernelRidge(**RIDGE), f)):
        part = clone(machine).set_params(landmarks=40).fit(X[:200], y[:200])
        model = clone(machine).set_params(landmarks=40).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(model.predict(X[:5]) == part.predict(X[:5]), True)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (SVC(C=np.inf, landmarks=10), "A hard margin .* has no landmark machine"),
        (SVC(kernel="sigmoid", landmarks=10), "Landmarks need a positive semidefinite kernel"),
        (SVC(solver="qp", landmarks=10), "solver='qp' solves the exact problem"),
        (KernelRidge(alpha=0.0, landmarks=10), "Landmarks need alpha > 0"),
        (SVC(landmarks=np.ones((3, 5))), "landmarks has 5 features, but X has 3: landmarks must be samples"),
        (SVC(landmarks=np.full((3, 3), np.nan)), "NaN"),
        (SVC(landmarks=np.empty((0, 3))), "landmarks is empty: give at least one sample"),
        (SVC(landmarks=True), 'landmarks=True was given: use "auto", a number of landmarks'),
        (KernelRidge(landmarks=True), 'landmarks=True was given: use "auto", a number of landmarks'),
    ],
    ids=named,
)
def test_what_has_no_landmark_machine_is_refused(machine, message):
    """The error says what is wrong, and what to do."""
    X, labels, f = curved(100)
    with pytest.raises((InvalidInputError, ValueError), match=message):
        machine.fit(X, f if isinstance(machine, KernelRidge) else labels)


def test_features_beyond_float32():
    """Kernel values that are not finite numbers in float32 are an error that says so; float64 has them."""
    X, labels, _ = curved(100)
    with pytest.raises(InvalidInputError, match=r"not finite numbers in float32.*or use precision='float64'\.$"):
        SVC(landmarks=20, gamma=1.0).fit(1e150 * X, labels)
    assert SVC(landmarks=20, gamma=1.0, precision="float64").fit(1e150 * X, labels).certificate_.valid


@pytest.mark.parametrize("landmarks", [0, -1, "all", 2.5])
def test_landmarks_of_another_kind_are_refused(landmarks):
    """scikit-learn's message names the parameter and what it may be."""
    X, labels, _ = curved(50)
    with pytest.raises(ValueError, match="The 'landmarks' parameter of SVC must be"):
        SVC(landmarks=landmarks).fit(X, labels)
    with pytest.raises(InvalidInputError, match="chosen among the training samples"):
        SVC(kernel="precomputed", landmarks=[[1.0] * 50]).fit(Gaussian(1.0)(X, X), labels)
