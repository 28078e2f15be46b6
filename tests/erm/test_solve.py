"""Certified minima of g(|f|) + Σ C ℓ, against SciPy's general minimisers on tiny problems."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import xlogy

from mercer.erm.convex_losses import Logistic, check_loss, conjugates, find_loss
from mercer.erm.minimise import Problem, minimise
from mercer.erm.penalties import NORM, SQUARED, Power, find_penalty
from mercer.erm.sums import OneFunction
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels import Gaussian
from mercer.losses import NuHinge, SquaredEpsilonInsensitive
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Status

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
LABELS = np.where(X[:, 0] + 0.5 * RNG.normal(size=24) > 0, 1.0, -1.0)
NUMBERS = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=24)
NUMBERS[3] = 4.0
WEIGHT = RNG.uniform(0.5, 2.0, size=24)
KERNEL = Gaussian(gamma=0.5)
K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))


class Absolute:
    """|y − f|, with a kink and without a second derivative."""

    name = "absolute error"

    def value(self, y, f):
        return np.abs(y - f)

    def derivative(self, y, f):
        return np.sign(f - y)

    def conjugate(self, y, u):
        return np.where(np.abs(u) <= 1 + 1e-12, u * y, np.inf)


class LogCosh:
    """log cosh(y − f), smooth."""

    def value(self, y, f):
        return np.logaddexp(f - y, y - f) - np.log(2)

    def derivative(self, y, f):
        return np.tanh(f - y)

    def second_derivative(self, y, f):
        return 1.0 - np.tanh(f - y) ** 2

    def conjugate(self, y, u):
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = 0.5 * ((1 + u) * np.log1p(u) + (1 - u) * np.log1p(-u))
        return np.where(np.abs(u) < 1, entropy, np.log(2)) + u * y


class Cosh:
    """g(t) = cosh t − 1, with g* by its derivative arsinh."""

    def value(self, t):
        return np.cosh(t) - 1.0

    def derivative(self, t):
        return np.sinh(t)

    def conjugate(self, s):
        return s * np.arcsinh(s) - np.sqrt(1.0 + s * s) + 1.0


def name_of(value):
    """The id of a parameter: the class of an object, and else the value itself."""
    return str(value) if isinstance(value, str | float | int) else type(value).__name__


LOSSES = ["hinge", "squared_hinge", "logistic", "squared", "huber", "epsilon_insensitive", "pinball"]
OWN = [Absolute(), LogCosh()]


def targets(loss):
    return LABELS if loss in ("hinge", "squared_hinge", "logistic") else NUMBERS


def solved(loss, penalty, C=1.0, intercept=True, tol=1e-8, **options):
    found = find_loss(loss)
    check_loss(found, targets(loss))
    problem = Problem(Data(KERNEL, X, len(X)), found, targets(loss), C * WEIGHT, intercept, Options(**options), Clock())
    return found, minimise(problem, find_penalty(penalty), tol)


def objective(loss, penalty, y, weight, v, intercept):
    """g(|f|) + Σ C ℓ for the coefficients and b in v."""
    beta, b = (v[:-1], v[-1]) if intercept else (v, 0.0)
    F = K @ beta
    return penalty.value(np.sqrt(max(0.0, beta @ F))) + weight @ loss.value(y, F + b)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", ["squared", "norm", 1.5, 3, Cosh()], ids=name_of)
@pytest.mark.parametrize("loss", [*LOSSES, *OWN], ids=name_of)
def test_nothing_is_lower(loss, penalty, intercept):
    """The gap is at most tol, the primal is that of the coefficients, and no nearby coefficients have a lower value."""
    C = 2.0
    found, solution = solved(loss, penalty, C, intercept, tol=1e-7)
    proof, g, y = solution.certificate, find_penalty(penalty), targets(loss)
    assert solution.status is Status.CONVERGED and proof.valid
    assert proof.relative_gap <= 1e-7
    v = np.append(solution.beta, solution.thresholds)
    here = objective(found, g, y, C * WEIGHT, v, intercept)
    assert here == pytest.approx(proof.primal, rel=1e-9)
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 1e-1):
        for _ in range(20):
            there = objective(found, g, y, C * WEIGHT, v + size * rng.normal(size=len(v)), intercept)
            assert there >= proof.dual * (1 - 1e-12) and there >= here - 1e-7 * here


@pytest.mark.parametrize("penalty", ["squared", "norm", 3], ids=name_of)
@pytest.mark.parametrize("loss", ["logistic", "squared", "huber", "squared_hinge", LogCosh()], ids=name_of)
def test_scipy_agrees(loss, penalty):
    """BFGS on the eigenvectors of K finds the same optimum of smooth losses."""
    found, solution = solved(loss, penalty, C=3.0)
    g, y = find_penalty(penalty), targets(loss)
    values, vectors = np.linalg.eigh(K)
    L = vectors * np.sqrt(np.maximum(values, 0.0))

    def primal(v):
        return g.value(np.sqrt(v[:-1] @ v[:-1])) + 3.0 * WEIGHT @ found.value(y, L @ v[:-1] + v[-1])

    start = np.append(L.T @ solution.beta, 0.0) + 0.1
    best = minimize(primal, start, method="BFGS", options={"gtol": 1e-7, "maxiter": 5000})
    assert solution.certificate.primal == pytest.approx(best.fun, rel=1e-6)
    assert solution.certificate.dual <= best.fun * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_large_targets_with_the_norm(loss):
    """With the penalty |f| the solution is that of ½|f|² for c = |f|, which may be large."""
    found = find_loss(loss, delta=1e6)
    problem = Problem(Data(KERNEL, X, 24), found, 1e7 * NUMBERS, WEIGHT, True, Options(), Clock())
    solution = minimise(problem, NORM, 1e-6)
    assert solution.status is Status.CONVERGED and solution.certificate.relative_gap <= 1e-6
    assert np.sqrt(solution.beta @ K @ solution.beta) > 1e9


class Poisson:
    """exp(f) − yf, which overflows from f = 710 on."""

    def value(self, y, f):
        return np.exp(f) - y * f

    def derivative(self, y, f):
        return np.exp(f) - y

    def second_derivative(self, y, f):
        return np.exp(f)

    def conjugate(self, y, u):
        inside = np.maximum(u + y, 0.0)
        return np.where(u + y >= 0, xlogy(inside, inside) - inside, np.inf)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("size", [1.0, 100.0, 1e5])
def test_counts_of_any_size(size, intercept):
    """A loss that overflows far from the solution; one sample has a much larger count than the others."""
    counts = np.floor(size * np.exp(NUMBERS))
    counts[0] = 1000 * size
    check_loss(Poisson(), counts)
    problem = Problem(Data(KERNEL, X, 24), Poisson(), counts, WEIGHT, intercept, Options(), Clock())
    solution = minimise(problem, SQUARED, 1e-8)
    assert solution.status is Status.CONVERGED and solution.certificate.relative_gap <= 1e-8
    v = np.append(solution.beta, solution.thresholds)
    found = minimize(lambda v: objective(Poisson(), SQUARED, counts, WEIGHT, v, intercept), v, options={"maxiter": 20})
    assert found.fun >= solution.certificate.dual - 1e-9 * abs(found.fun)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("level", [1.0, 4.0])
def test_counts_without_a_second_derivative(level):
    """The method of multipliers finds what Newton's method finds."""

    class First:
        value, derivative, conjugate = Poisson.value, Poisson.derivative, Poisson.conjugate

    rng = np.random.default_rng(0)
    samples = rng.normal(size=(80, 2))
    counts = rng.poisson(np.exp(level + samples[:, 0])).astype(float)
    found = []
    for loss in (Poisson(), First()):
        problem = Problem(Data(KERNEL, samples, 80), loss, counts, np.ones(80), True, Options(), Clock())
        found.append(minimise(problem, SQUARED, 1e-8))
    assert found[1].status is Status.CONVERGED and found[1].certificate.relative_gap <= 1e-7
    assert found[1].certificate.primal == pytest.approx(found[0].certificate.primal, rel=1e-7)


def test_a_search_for_the_intercept_leaves_the_overflow():
    """The slope at the start is infinite; the best b of Σ exp(F + b) − yb is log(Σy / Σ exp(F))."""
    y, F = np.array([1.0, 2.0, 3.0]), np.array([[0.0], [1.0], [-1.0]])
    (b,) = OneFunction(Poisson(), y, np.ones(3)).best_intercept(F, np.array([800.0]))
    assert b == pytest.approx(np.log(6.0 / np.exp(F).sum()))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loss", ["squared", "huber", LogCosh()], ids=name_of)
def test_powers_that_overflow(loss):
    """|f|^1000 is infinite for many f of the search; the optimum has a norm near 1."""
    problem = Problem(Data(KERNEL, X, 24), find_loss(loss), 100.0 * NUMBERS, WEIGHT, True, Options(), Clock())
    solution = minimise(problem, Power(1000.0), 1e-6)
    assert solution.status is Status.CONVERGED and solution.certificate.relative_gap <= 1e-6
    assert np.sqrt(solution.beta @ K @ solution.beta) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("loss", [*LOSSES, Absolute()], ids=name_of)
def test_zero_is_the_optimum_of_the_norm_for_a_small_C(loss):
    """With g = |f| and a small C nothing pays for leaving f = 0, which a certificate proves."""
    found, solution = solved(loss, "norm", C=1e-3, tol=1e-6)
    assert solution.status is Status.CONVERGED
    assert np.all(solution.beta == 0) and solution.certificate.relative_gap <= 1e-6
    y = targets(loss)
    best = minimize_scalar(lambda b: WEIGHT @ found.value(y, np.full(24, b)), bounds=(-5, 5), method="bounded")
    assert solution.certificate.primal == pytest.approx(1e-3 * best.fun, rel=1e-4)


def test_losses_of_mercer():
    """Loss objects of mercer.losses are taken as they are; equal samples with Huber's are one of their weight."""
    _, solution = solved(SquaredEpsilonInsensitive(0.2), "norm", tol=1e-7)
    assert solution.certificate.valid and solution.certificate.relative_gap <= 1e-7
    twice = np.repeat(np.arange(24), 2)
    huber = find_loss("huber", delta=0.3)
    one = Problem(Data(KERNEL, X, 24), huber, NUMBERS, 2 * WEIGHT, True, Options(), Clock())
    two = Problem(Data(KERNEL, X[twice], 48), huber, NUMBERS[twice], WEIGHT[twice], True, Options(), Clock())
    primals = [minimise(problem, SQUARED, 1e-9).certificate.primal for problem in (one, two)]
    assert primals[0] == pytest.approx(primals[1], rel=1e-8)


def test_multipliers_are_the_box_solver():
    """A user's absolute error has the optimum of the ε-insensitive loss with ε = 0, which the exact solver finds."""
    _, ours = solved(Absolute(), "squared")
    data = Data(KERNEL, X, len(X))
    tube = Problem(data, find_loss("epsilon_insensitive", epsilon=0.0), NUMBERS, WEIGHT, True, Options(), Clock())
    exact = minimise(tube, SQUARED, 1e-10)
    assert ours.certificate.primal == pytest.approx(exact.certificate.primal, rel=1e-7)
    np.testing.assert_allclose(ours.F + ours.thresholds, exact.F + exact.thresholds, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_conjugates(loss):
    """C ℓ*(−β/C) is the largest −βt/C − ℓ(t), times C, for every β in its domain."""
    found, y = find_loss(loss), targets(loss)[:6]
    slopes = np.array([0.1, 0.3, 0.4, 0.05, 0.2, 0.45])
    beta = y * slopes if loss in ("hinge", "squared_hinge", "logistic") else slopes * np.array([1, -1, 1, -1, 1, 1])
    paid = conjugates(found, y, np.ones(6), beta)
    t = np.linspace(-60, 60, 1_200_001)
    for i in range(6):
        values = -beta[i] * t - found.value(np.full_like(t, y[i]), t)
        assert paid[i] == pytest.approx(values.max(), abs=1e-4)  # the grid misses kinks
    outside = conjugates(Logistic(), np.ones(2), np.ones(2), np.array([1.1, -0.1]))
    assert np.all(outside == np.inf)


@pytest.mark.parametrize("penalty", [SQUARED, NORM, Power(1.5), Power(3.0), Cosh()], ids=name_of)
def test_conjugates_of_penalties(penalty):
    """g*(s) is the largest st − g(t) over t ≥ 0."""
    t = np.linspace(0, 40, 400_001)
    for s in (0.0, 0.3, 0.9, 1.0):
        assert penalty.conjugate(s) == pytest.approx(max(s * t - [penalty.value(v) for v in t]), abs=1e-6)
    assert NORM.conjugate(1.5) == np.inf


class Shifted(LogCosh):
    """A conjugate that is too small: the dual would lie above the primal."""

    def conjugate(self, y, u):
        return super().conjugate(y, u) - 1.0


class Concave:
    def value(self, y, f):
        return -((y - f) ** 2)

    def derivative(self, y, f):
        return 2 * (y - f)


class Falling:
    def value(self, t):
        return -t

    def derivative(self, t):
        return -1.0


def test_wrong_losses_and_penalties():
    """A conjugate, a derivative or a shape that cannot be right is named with numbers."""
    for loss, message in (
        (Shifted(), r"The conjugate of the Shifted does not belong to its value: at y = -1.*but it is"),
        (Concave(), r"The Concave is not convex, or its derivative is wrong: at y = .*below the tangent"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            check_loss(loss, NUMBERS)
    with pytest.raises(InvalidInputError, match=r"The penalty Falling decreases: its derivative at t = 0 is -1"):
        find_penalty(Falling())
    for penalty, message in (
        ("l1", r"penalty='l1' is not known"),
        (0.5, r"penalty=0.5 is the power p of \|f\|\^p / p"),
        (Cosh, r"penalty=Cosh is a class, not a penalty: write Cosh\(\)"),
        (3j, r"penalty=3j has no method value"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            find_penalty(penalty)
    for loss, message in (
        ("l1", r"loss='l1' is not known"),
        (Absolute, r"loss=Absolute is a class, not a loss: write Absolute\(\)"),
        (3, r"loss=3 has no method value"),
        (NuHinge(0.5), r"has an estimator of its own. Use NuSVC, NuSVR, OneClassSVM"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            find_loss(loss)


def test_dual_above_primal_is_reported():
    """A conjugate that is wrong only where it was not probed leaves a certificate that says so."""

    class Late(LogCosh):
        def conjugate(self, y, u):
            return super().conjugate(y, u) - (np.abs(np.abs(u) - 0.05) < 0.04) * 5.0

    problem = Problem(Data(KERNEL, X, 24), Late(), NUMBERS, WEIGHT, True, Options(), Clock())
    proof = minimise(problem, SQUARED, 1e-8).certificate
    assert not proof.valid and proof.gap < 0
    assert "the conjugate of the Late does not belong to its value" in proof.reason


def test_without_a_conjugate():
    """The model is the same, and the certificate says that it proves nothing."""

    class Silent:
        value, derivative = Absolute.value, Absolute.derivative

    for penalty in ("squared", "norm"):
        _, known = solved(Absolute(), penalty, tol=1e-7)
        _, silent = solved(Silent(), penalty, tol=1e-7)
        assert silent.certificate.reason == "the Silent gives no conjugate"
        assert not silent.certificate.valid and silent.certificate.primal == pytest.approx(known.certificate.primal)
    _, zero = solved(Silent(), "norm", C=1e-3, tol=1e-7)
    assert zero.status is Status.CONVERGED and not zero.beta.any()


@pytest.mark.parametrize("loss", ["logistic", "hinge", Absolute()], ids=name_of)
def test_early_ends(loss):
    """max_iter and a time limit of 0 leave a feasible model with a valid certificate."""
    for penalty in ("squared", "norm"):
        _, solution = solved(loss, penalty, max_iter=1)
        assert solution.status is Status.MAX_ITER and solution.certificate.valid
        assert solution.certificate.gap > 0
        problem = Problem(Data(KERNEL, X, 24), find_loss(loss), targets(loss), WEIGHT, True, Options(), Clock(0.0))
        stopped = minimise(problem, find_penalty(penalty), 1e-6)
        assert stopped.status is Status.TIME_LIMIT and stopped.certificate.valid
