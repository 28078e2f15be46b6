"""Multiple kernel learning: the optimum over weights and machines, its proof, and what a user may ask of it."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from tests.naming import named
from tests.reference.mkl import best_value

import mercer
from mercer import SVC, SVR, MKLClassifier, MKLRegressor
from mercer.exceptions import InvalidInputError, NearDiagonalWarning, NotPositiveSemidefiniteWarning
from mercer.kernels import Constant, Gaussian, LearnedKernel, Linear, On, Polynomial, Precomputed, parse_kernel
from mercer.losses import EpsilonInsensitive, Hinge, Pinball, SquaredEpsilonInsensitive, SquaredHinge
from mercer.mkl.mkl_problem import ball_norm, dual_norm, mixture_certificate
from mercer.problems.dual import DualProblem

NORMS = (1.0, 1.5, 2.0, 4.0, 1000.0)
KERNELS = (On(0, Linear()), On(1, Linear()), Gaussian(0.1), Gaussian(1.0), On((0, 2), Gaussian(3.0)), Polynomial(2))
TOL = 1e-5


def problem(seed, n=30, n_classes=2):
    """Samples of three features, labels and targets that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=n)
    edges = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    return X, np.searchsorted(edges, score), score


def normalised(kernels, X, share=None):
    """The matrices, each divided by the variance of the samples in feature space."""
    share = np.full(len(X), 1.0 / len(X)) if share is None else share
    matrices = [kernel(X) for kernel in kernels]
    return [K / (np.diagonal(K) @ share - share @ K @ share) for K in matrices]


def classification_tasks(y, loss, weight):
    classes = np.unique(y)
    tasks = []
    for a in range(len(classes)):
        for b in range(a + 1, len(classes)):
            index = np.flatnonzero((y == classes[a]) | (y == classes[b]))
            labels = np.where(y[index] == classes[a], 1.0, -1.0)
            tasks.append((index, DualProblem(None, loss, labels, weight[index], True).qp))
    return tasks


# ---- the optimum -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(6))
def test_optimum_of_two_classes(norm, seed):
    """The certificate encloses what a conic solver finds."""
    rng = np.random.default_rng(seed)
    X, y, _ = problem(seed, n=int(rng.integers(12, 40)))
    C = float(10.0 ** rng.uniform(-1, 2))
    loss = (Hinge(), SquaredHinge())[seed % 2]
    kernels = [KERNELS[m] for m in rng.permutation(len(KERNELS))[: rng.integers(2, 7)]]
    name = "squared_hinge" if seed % 2 else "hinge"
    model = MKLClassifier(kernels, norm=norm, C=C, loss=name, tol=TOL).fit(X, y)
    optimum = best_value(normalised(kernels, X), classification_tasks(y, loss, np.full(len(y), C)), norm)
    check_enclosed(model, optimum, norm)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (EpsilonInsensitive(0.2), "epsilon_insensitive"),
        (SquaredEpsilonInsensitive(0.2), "squared_epsilon_insensitive"),
        (Pinball(0.3), "pinball"),
    ],
    ids=named,
)
def test_optimum_of_regression(norm, loss, name):
    """The certificate encloses what a conic solver finds."""
    X, _, z = problem(3)
    model = MKLRegressor(list(KERNELS), norm=norm, C=5.0, epsilon=0.2, quantile=0.3, loss=name, tol=TOL).fit(X, z)
    tasks = [(np.arange(len(z)), DualProblem(None, loss, z, np.full(len(z), 5.0), True).qp)]
    check_enclosed(model, best_value(normalised(KERNELS, X), tasks, norm), norm)


@pytest.mark.parametrize("norm", (1.0, 2.0))
def test_optimum_of_three_classes_with_weights(norm):
    """All pairs share the weights; samples and classes have weights, one sample none."""
    X, y, _ = problem(5, n=36, n_classes=3)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(y))
    weight[4] = 0.0
    class_weight = {0: 1.0, 1: 2.0, 2: 0.5}
    model = MKLClassifier(list(KERNELS), norm=norm, C=2.0, class_weight=class_weight, tol=TOL).fit(X, y, weight)
    used = weight > 0
    factor = 2.0 * weight * np.array([class_weight[c] for c in y])
    matrices = [K[np.ix_(used, used)] for K in normalised(KERNELS, X, weight / weight.sum())]
    optimum = best_value(matrices, classification_tasks(y[used], Hinge(), factor[used]), norm)
    check_enclosed(model, optimum, norm)
    assert len(model.certificates_) == 3


@pytest.mark.parametrize("seed", range(3))
def test_optimum_without_intercept(seed):
    """Without an intercept no sum is fixed."""
    X, _, z = problem(seed)
    model = MKLRegressor(list(KERNELS), C=3.0, fit_intercept=False, tol=TOL).fit(X, z)
    tasks = [(np.arange(len(z)), DualProblem(None, EpsilonInsensitive(0.1), z, np.full(len(z), 3.0), False).qp)]
    check_enclosed(model, best_value(normalised(KERNELS, X), tasks, 1.0), 1.0)


def check_enclosed(model, optimum, norm):
    proof = model.certificate_
    slack = 1e-6 * abs(optimum)
    assert proof.valid and 0.0 <= proof.relative_gap <= TOL
    assert proof.dual - slack <= optimum <= proof.primal + slack
    weights = model.kernel_weights_
    assert weights.min() >= 0.0 and ball_norm(weights, norm) <= 1.0 + 1e-12


def test_low_rank_kernels_of_single_columns():
    """With linear kernels on columns no single β proves the optimum: a mixture of several does."""
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = MKLClassifier([On(column, Linear()) for column in range(13)], C=100.0).fit(X, y > 0)
    assert model.certificate_.relative_gap <= 1e-3
    assert 0 < np.count_nonzero(model.kernel_weights_) < 13


def test_larger_norms_make_weights_equal():
    """From a few kernels at p = 1 to all alike at p = inf."""
    X, y, _ = problem(0, n=60)
    spread = []
    for norm in (1.0, 1.5, 3.0, 20.0, np.inf):
        weights = MKLClassifier(list(KERNELS), norm=norm).fit(X, y).kernel_weights_
        spread.append(weights.std() / weights.mean())
    assert np.all(np.diff(spread) < 0) and spread[-1] == 0.0


# ---- the certificate -------------------------------------------------------------------------------------------------


def test_certificate_of_disturbed_weights_grows():
    """The machines at other weights have a larger primal, and the same lower bound holds for them."""
    X, y, _ = problem(1)
    model = MKLClassifier(list(KERNELS), tol=TOL).fit(X, y)
    rng = np.random.default_rng(0)
    for size in (0.1, 0.5, 2.0):
        weights = model.kernel_weights_ * np.exp(size * rng.normal(size=6)) + 1e-9
        other = MKLClassifier(list(KERNELS), tol=TOL, weights=weights / weights.sum()).fit(X, y)
        assert other.certificate_.primal >= model.certificate_.dual
        proof = mixture_certificate([other.certificate_], model.certificate_.dual)
        assert proof.gap >= 0 and proof.primal > model.certificate_.primal - 1e-9


def test_certificate_is_never_negative_and_encloses_at_every_end():
    """However early the search ends, the bounds hold, and come closer."""
    X, y, _ = problem(2)
    optimum = MKLClassifier(list(KERNELS), C=10.0, tol=1e-7).fit(X, y).certificate_
    gaps = []
    for rounds in (1, 2, 4, 8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            proof = MKLClassifier(list(KERNELS), C=10.0, tol=1e-7, max_rounds=rounds).fit(X, y).certificate_
        assert proof.dual <= optimum.primal and proof.primal >= optimum.dual and proof.gap >= 0
        gaps.append(proof.gap)
    assert gaps[0] > gaps[1] > gaps[-1] > 0


def test_norms_are_dual():
    """|S|_q is the largest η'S over the ball, and reached."""
    S = np.array([0.3, 0.0, 2.0, 1.0])
    for p in (1.0, 1.2, 2.0, 7.0, np.inf):
        candidates = np.random.default_rng(0).uniform(size=(2000, 4))
        reached = max(eta @ S / ball_norm(eta, p) for eta in candidates)
        if p == 1.0:
            reached = max(reached, S.max())
        assert reached <= dual_norm(S, p) * (1 + 1e-12)
        assert reached >= 0.9 * dual_norm(S, p)


def test_certify_agrees_about_the_machine():
    """mercer.certify judges the machine with the learnt kernel, from its coefficients alone."""
    X, y, _ = problem(4)
    model = MKLClassifier(list(KERNELS)).fit(X, y)
    proof = mercer.certify(model, X, y)
    assert proof.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert proof.relative_gap <= 1e-3


# ---- special kernels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", (1.0, 2.0, np.inf))
def test_single_kernel_is_the_plain_machine(norm):
    """One kernel has the weight 1, and the machine is SVC's or SVR's with that kernel."""
    X, y, z = problem(0)
    model = MKLClassifier("rbf", normalize=None, norm=norm).fit(X, y)
    plain = SVC().fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-12)
    assert model.kernel_weights_ == [1.0]
    regression = MKLRegressor(Gaussian(0.5), normalize=None, norm=norm).fit(X, z)
    plain = SVR(kernel=Gaussian(0.5)).fit(X, z)
    np.testing.assert_allclose(regression.predict(X), plain.predict(X), atol=1e-12)


@pytest.mark.parametrize("norm", (1.0, 2.0))
def test_equal_kernels_share_their_weight(norm):
    """A kernel that is given twice is as good as once (p = 1), and both have the same weight."""
    X, y, _ = problem(0)
    once = MKLClassifier([Gaussian(0.3), Linear()], norm=norm, tol=TOL).fit(X, y)
    twice = MKLClassifier([Gaussian(0.3), Linear(), Gaussian(0.3)], norm=norm, tol=TOL).fit(X, y)
    assert twice.kernel_weights_[0] == pytest.approx(twice.kernel_weights_[2], rel=1e-3)
    if norm == 1:
        assert twice.certificate_.primal == pytest.approx(once.certificate_.primal, rel=3 * TOL)


@pytest.mark.parametrize("weights", ("learned", "alignment", "independent_alignment", "uniform"))
def test_kernel_without_spread(weights):
    """A kernel that is 0, or the same for all samples, does no harm and gets no learnt weight."""
    X, y, _ = problem(0)
    model = MKLClassifier([Gaussian(0.3), 0.0 * Linear(), Constant(3.0)], weights=weights).fit(X, y)
    assert model.score(X, y) > 0.8
    if weights != "uniform":
        np.testing.assert_array_equal(np.flatnonzero(model.kernel_weights_), [0])


def test_indefinite_kernels_are_named():
    """Weights cannot be learnt with a matrix that is no kernel; fixed weights warn."""
    X, y, _ = problem(0)
    message = r"kernels\[1\] = Sigmoid\(.*\) is not positive semidefinite: the smallest eigenvalue of 30 of its 30 rows"
    kernels = ["rbf", "sigmoid(gamma=2.0, coef0=-3.0)"]
    for weights in ("learned", "alignment", "independent_alignment"):
        with pytest.raises(InvalidInputError, match=message):
            MKLClassifier(kernels, weights=weights).fit(X, y)
    with pytest.warns(NotPositiveSemidefiniteWarning, match=message):
        model = MKLClassifier(kernels, weights="uniform").fit(X, y)
    assert not model.certificate_.valid


def test_near_diagonal_kernel_is_reported():
    """A kernel that finds no sample similar to another is warned of, with its name."""
    X, y, _ = problem(0)
    with pytest.warns(NearDiagonalWarning, match=r"largest weight is Gaussian\(gamma=1000\.0\)"):
        MKLClassifier([Gaussian(1000.0)]).fit(X, y)


# ---- fixed weights ---------------------------------------------------------------------------------------------------


def centred_alignment(K, T, share):
    root = np.sqrt(np.outer(share, share))
    centre = np.eye(len(share)) - np.outer(np.ones(len(share)), share)
    K, T = (root * (centre @ A @ centre.T) for A in (K, T))
    return (K * T).sum() / np.sqrt((K * K).sum() * (T * T).sum())


@pytest.mark.parametrize("weighted", (False, True))
def test_alignments_are_those_of_the_definition(weighted):
    """For labels and for real targets, and for weighted samples."""
    X, y, z = problem(7)
    weight = np.random.default_rng(1).uniform(size=len(y)) if weighted else np.ones(len(y))
    share = weight / weight.sum()
    model = MKLClassifier(list(KERNELS), weights="uniform").fit(X, y, weight)
    sign = np.where(y > 0, 1.0, -1.0)
    expected = [centred_alignment(kernel(X), np.outer(sign, sign), share) for kernel in KERNELS]
    np.testing.assert_allclose(model.alignments_, expected, rtol=1e-9)
    model = MKLRegressor(list(KERNELS), weights="independent_alignment").fit(X, z, weight)
    expected = np.array([centred_alignment(kernel(X), np.outer(z, z), share) for kernel in KERNELS])
    np.testing.assert_allclose(model.alignments_, expected, rtol=1e-9)
    np.testing.assert_allclose(model.kernel_weights_, expected / expected.sum(), rtol=1e-9)


def test_alignment_is_the_largest():
    """No other weights of at least 0 give a sum of kernels that is better aligned."""
    X, _, z = problem(7)
    model = MKLRegressor(list(KERNELS), weights="alignment").fit(X, z)
    matrices, share = np.array(normalised(KERNELS, X)), np.full(len(z), 1.0 / len(z))

    def alignment(weights):
        return centred_alignment(np.tensordot(weights, matrices, 1), np.outer(z, z), share)

    best, rng = alignment(model.kernel_weights_), np.random.default_rng(0)
    assert best >= model.alignments_.max()
    for _ in range(300):
        near = np.maximum(model.kernel_weights_ + 0.1 * rng.normal(size=6), 0.0)
        assert alignment(near) <= best + 1e-9
        assert alignment(rng.exponential(size=6)) <= best + 1e-9


def test_given_weights():
    """The weights of the normalised kernels; wrong ones are named."""
    X, y, _ = problem(0)
    model = MKLClassifier([Linear(), Gaussian(1.0)], weights=[0.2, 3.0]).fit(X, y)
    expected = LearnedKernel((Linear(), Gaussian(1.0)), tuple(np.array([0.2, 3.0]) / model.kernel_scales_))
    assert model.kernel_ == expected
    for wrong in ([1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0]):
        with pytest.raises(InvalidInputError, match="was given for 2 kernels"):
            MKLClassifier([Linear(), Gaussian(1.0)], weights=wrong).fit(X, y)


# ---- the kernel ------------------------------------------------------------------------------------------------------


def test_learnt_kernel_makes_the_same_machine():
    """kernel_ prints as what builds it, and SVC with it is the same model, on new samples too."""
    X, y, _ = problem(0, n=60)
    model = MKLClassifier(list(KERNELS), tol=TOL, C=3.0).fit(X, y)
    assert parse_kernel(repr(model.kernel_)) == model.kernel_
    plain = SVC(kernel=model.kernel_, C=3.0, tol=1e-7).fit(X, y)
    new = np.random.default_rng(9).normal(size=(50, 3))
    np.testing.assert_allclose(model.decision_function(new), plain.decision_function(new), atol=3e-3)
    assert len(model.kernel_.kernels) == np.count_nonzero(model.kernel_weights_) < 6


@pytest.mark.parametrize("normalize", ("variance", "trace", None))
def test_scales(normalize):
    """The kernels are divided by their variance, by their mean diagonal, or not at all."""
    X, y, _ = problem(0)
    model = MKLClassifier(list(KERNELS), normalize=normalize).fit(X, y)
    matrices = [kernel(X) for kernel in KERNELS]
    traces = np.array([np.trace(K) / len(K) for K in matrices])
    means = np.array([K.mean() for K in matrices])
    expected = {"variance": traces - means, "trace": traces, None: np.ones(6)}[normalize]
    np.testing.assert_allclose(model.kernel_scales_, expected)


def test_memory_does_not_change_the_result():
    """Where the matrices do not fit, kernel values are computed again, to the same end."""
    X, y, z = problem(0, n=80)
    for machine, target in ((MKLClassifier(list(KERNELS), tol=TOL), y), (MKLRegressor(list(KERNELS), tol=TOL), z)):
        kept = clone(machine).fit(X, target)
        again = clone(machine).set_params(cache_size=1e-3).fit(X, target)
        assert again.certificate_.primal == pytest.approx(kept.certificate_.primal, rel=2 * TOL)
        assert again.kernel_evaluations_ > kept.kernel_evaluations_
        assert kept.kernel_evaluations_ <= 1.1 * 6 * 80**2


def test_precomputed_matrices():
    """Matrices stacked along the last axis give what the kernels give, in cross-validation, too."""
    X, y, _ = problem(0, n=60)
    new = np.random.default_rng(1).normal(size=(20, 3))
    stack = np.stack([kernel(X) for kernel in KERNELS], axis=2)
    model = MKLClassifier("precomputed").fit(stack, y)
    plain = MKLClassifier(list(KERNELS)).fit(X, y)
    np.testing.assert_allclose(model.kernel_weights_, plain.kernel_weights_, atol=1e-9)
    between = np.stack([kernel(new, X) for kernel in KERNELS], axis=2)
    np.testing.assert_allclose(model.decision_function(between), plain.decision_function(new), atol=1e-9)
    np.testing.assert_allclose(
        cross_val_score(MKLClassifier("precomputed"), stack, y), cross_val_score(MKLClassifier(list(KERNELS)), X, y)
    )
    single = MKLClassifier("precomputed", normalize=None).fit(stack[:, :, 2], y)
    np.testing.assert_allclose(
        single.decision_function(stack[:, :, 2]), SVC(kernel=KERNELS[2]).fit(X, y).decision_function(X)
    )
    assert isinstance(single.kernel_.kernels[0], Precomputed)


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ([], "kernels is empty"),
        (["rbf", 3], r"kernels\[1\] is 3: give a name"),
        (["rbf", "rbff"], "there is no kernel 'rbff'"),
        (["rbf", "precomputed"], "cannot be combined"),
        ([Gaussian], "is a class, not a kernel"),
        ([On(7, Linear())], "needs column 7"),
    ],
    ids=named,
)
def test_kernels_that_cannot_be_used(kernels, message):
    """Each has a sentence of its own."""
    X, y, _ = problem(0)
    with pytest.raises(InvalidInputError, match=message):
        MKLClassifier(kernels).fit(X, y)


@pytest.mark.parametrize(
    ("shape", "message"),
    [((5, 6, 2), "must be a square matrix"), ((5, 5, 2, 1), "np.stack"), ((5, 5, 2), "not symmetric")],
    ids=named,
)
def test_matrices_that_cannot_be_used(shape, message):
    """A matrix is refused if it is not square, has too many axes, or is not symmetric."""
    with pytest.raises(InvalidInputError, match=message):
        MKLClassifier("precomputed").fit(np.random.default_rng(0).uniform(size=shape), [0, 1, 0, 1, 0])


def test_kernels_of_any_kind():
    """Functions, names, expressions, columns of a data frame and texts."""
    import pandas as pd

    X, y, _ = problem(0)
    kernels = ["linear", "0.5*gaussian(gamma=0.1) + 1", lambda A, B: np.tanh(A) @ np.tanh(B).T, On(1, Gaussian())]
    assert MKLClassifier(kernels).fit(X, y).score(X, y) > 0.8
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named_columns = MKLClassifier([On("b", Gaussian(1.0)), On(("a", "c"), Linear())]).fit(frame, y)
    numbered = MKLClassifier([On(1, Gaussian(1.0)), On((0, 2), Linear())]).fit(X, y)
    np.testing.assert_allclose(named_columns.kernel_weights_, numbered.kernel_weights_)
    np.testing.assert_array_equal(named_columns.predict(frame), numbered.predict(X))


def test_sparse_samples():
    """CSR gives what the array gives."""
    X, y, _ = problem(0)
    X[np.abs(X) < 0.7] = 0.0
    model, plain = (MKLClassifier(["linear", "rbf"], tol=TOL).fit(A, y) for A in (sp.csr_array(X), X))
    np.testing.assert_allclose(model.kernel_weights_, plain.kernel_weights_, atol=1e-3)
    np.testing.assert_allclose(model.decision_function(sp.csr_array(X)), plain.decision_function(X), atol=1e-2)


# ---- invariances -----------------------------------------------------------------------------------------------------


def test_weights_are_repetitions():
    """A sample of weight 2 is the same as two samples."""
    X, y, _ = problem(3)
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    kernels = [Gaussian(0.5), Linear(), On(1, Gaussian(2.0))]
    weighted = MKLClassifier(kernels, tol=1e-6).fit(X, y, weight)
    repeated = MKLClassifier(kernels, tol=1e-6).fit(X[twice], y[twice])
    np.testing.assert_allclose(weighted.kernel_scales_, repeated.kernel_scales_)
    np.testing.assert_allclose(weighted.alignments_, repeated.alignments_)
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=3e-6)


def test_order_of_kernels_and_rows():
    """Neither changes the optimum."""
    X, y, _ = problem(3)
    plain = MKLClassifier(list(KERNELS), tol=TOL).fit(X, y)
    rows = np.random.default_rng(0).permutation(len(y))
    turned = MKLClassifier(list(KERNELS[::-1]), tol=TOL).fit(X[rows], y[rows])
    assert turned.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2 * TOL)


def test_multiples_of_kernels_do_not_matter():
    """Normalised kernels forget their unit."""
    X, y, _ = problem(3)
    plain = MKLClassifier([Gaussian(0.5), Linear()], tol=TOL).fit(X, y)
    scaled = MKLClassifier([1e6 * Gaussian(0.5), 1e-6 * Linear()], tol=TOL).fit(X, y)
    np.testing.assert_allclose(scaled.kernel_weights_, plain.kernel_weights_, atol=1e-6)


# ---- small and hard samples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ("learned", "alignment", "uniform"))
def test_two_samples(weights):
    """One row per class is enough."""
    model = MKLClassifier(["linear", "rbf"], weights=weights).fit([[0.0], [1.0]], ["a", "b"])
    assert model.predict([[-1.0], [2.0]]).tolist() == ["a", "b"]


def test_one_row_per_class():
    """Five classes of one sample each."""
    X = np.eye(5)
    model = MKLClassifier(["linear", Gaussian(0.1)]).fit(X, np.arange(5))
    np.testing.assert_array_equal(model.predict(X), np.arange(5))


def test_duplicate_rows_and_contradictions():
    """The same samples in both classes: the machine is constant, and certified."""
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 2)), 2, axis=0)
    model = MKLClassifier(["linear", "rbf"]).fit(X, [0, 1] * 5)
    assert model.certificate_.relative_gap <= 1e-3


def test_constant_targets_and_constant_samples():
    """Nothing is to be learnt, and nothing fails."""
    X, _, _ = problem(0)
    model = MKLRegressor(["linear", "rbf"]).fit(X, np.full(len(X), 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0, atol=0.11)
    model = MKLRegressor(["linear", "poly"]).fit(np.zeros((10, 2)), np.arange(10.0))
    assert model.certificate_.valid


@pytest.mark.parametrize("unit", (1e-12, 1e12))
def test_targets_of_any_unit(unit):
    """Where the targets are far smaller than tol, the gap still comes down."""
    X, _, z = problem(0)
    model = MKLRegressor([Gaussian(0.5), Linear()], C=unit, epsilon=0.0).fit(X, unit * z)
    assert model.certificate_.relative_gap <= 1e-3
    assert model.score(X, unit * z) > 0.5


@pytest.mark.parametrize("C", (1e-6, 1e6))
def test_extreme_C(C):
    """Tiny and huge weights of the loss end, with a proof."""
    X, y, _ = problem(0)
    model = MKLClassifier([Gaussian(0.5), Gaussian(5.0)], C=C).fit(X, y)
    assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-3


# ---- ends ------------------------------------------------------------------------------------------------------------


def test_too_few_rounds_warn_in_numbers():
    """The model is usable, and the warning says how far it is from the optimum."""
    X, y, _ = problem(0)
    message = r"max_rounds=2, max_iter=-1.*within .* of the optimum .* tol is 1e-09"
    with pytest.warns(ConvergenceWarning, match=message):
        model = MKLClassifier(list(KERNELS), max_rounds=2, tol=1e-9).fit(X, y)
    assert model.fit_status_ == 1 and model.n_rounds_ == 2 and model.score(X, y) > 0.7


def test_time_limit():
    """No time at all still leaves a certified model."""
    X, y, _ = problem(0)
    with pytest.warns(ConvergenceWarning, match="time_limit=0"):
        model = MKLClassifier(list(KERNELS), time_limit=0).fit(X, y)
    assert model.certificate_.valid and model.certificate_.gap > 0
    assert model.predict(X).shape == y.shape


def test_interrupt(ctrl_c):
    """Ctrl-C ends the search with a usable model."""
    X, y = load_wine(return_X_y=True)
    kernels = [On(column, Gaussian(gamma)) for column in range(13) for gamma in (0.1, 1.0, 10.0)]
    MKLClassifier(kernels, max_rounds=200).fit(X, y)  # compiled now
    ctrl_c(0.05)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = MKLClassifier(kernels, tol=1e-12).fit(X, y)
    assert model.certificate_.valid


def test_steps_of_the_machines_can_be_limited():
    """max_iter is that of each machine."""
    X, y, _ = problem(0)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model = MKLClassifier(list(KERNELS), max_iter=3, C=100.0).fit(X, y)
    assert model.certificate_.valid


def test_warm_start():
    """A second fit starts where the first one ended."""
    X, y, _ = problem(0, n=80)
    model = MKLClassifier(list(KERNELS), warm_start=True, tol=1e-4).fit(X, y)
    first, primal = model.n_rounds_, model.certificate_.primal
    model.fit(X, y)
    assert model.n_rounds_ <= first and model.certificate_.primal == pytest.approx(primal, rel=2e-4)
    assert model.set_params(C=2.0).fit(X, y).certificate_.relative_gap <= 1e-4


def test_log_and_trace(caplog):
    """One line for each round; the gap falls to tol."""
    X, y, _ = problem(0)
    with caplog.at_level("INFO", logger="mercer"):
        model = MKLClassifier(list(KERNELS), verbose=True).fit(X, y)
    assert len(caplog.messages) == len(model.trace_) >= model.n_rounds_
    assert "relative gap" in caplog.messages[0]
    assert model.trace_[-1].violation <= 1e-3


# ---- scikit-learn ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "estimator",
    [
        MKLClassifier(),
        MKLClassifier(weights="alignment"),
        MKLRegressor(norm=2.0),
    ],
    ids=named,
)
def test_conformance(estimator):
    """Every check passes but those of weights, whose fits stop at tol at different points, as SVC's."""
    names = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    expected = dict.fromkeys(names, "gamma='scale' is not the same for repeated samples")
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


def test_ecosystem():
    """Clone, pickle, pipelines and grids over C, norm and kernels."""
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), MKLClassifier(["linear", "rbf"]))
    grid = {
        "mklclassifier__C": [1.0, 10.0],
        "mklclassifier__norm": [1.0, 2.0],
        "mklclassifier__kernels": [["linear", "rbf"], [Gaussian(0.1), Gaussian(1.0)]],
    }
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.94
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    assert clone(again).get_params()["mklclassifier__C"] == search.best_params_["mklclassifier__C"]
    with pytest.raises(ValueError, match="Invalid parameter"):
        MKLClassifier().set_params(kernel__gamma=3.0)


def test_regression_beats_the_worse_kernel():
    """On ten features of diabetes patients the learnt sum is about as good as the better kernel alone."""
    X, y = load_diabetes(return_X_y=True)
    X, scores = X * 20, {}
    for kernels in (["linear"], [Gaussian(1.0)], ["linear", Gaussian(1.0)]):
        model = MKLRegressor(kernels, C=100.0, epsilon=5.0)
        scores[len(kernels), str(kernels[0])] = cross_val_score(model, X, y, cv=3).mean()
    best, worst = max(scores.values()), min(scores.values())
    assert scores[2, "linear"] > worst and scores[2, "linear"] > best - 0.05


def test_a_weight_that_was_near_zero_comes_back():
    """Linear kernels on single columns, three of them the same: none is given up too early."""
    X, _, z = problem(4, n=73)
    kernels = [On(1, Linear()), On(1, Linear()), On(2, Linear()), On(1, Linear()), On(0, Linear())]
    model = MKLRegressor(kernels, C=1.0761890816653088, epsilon=0.0).fit(X, z)
    assert model.certificate_.relative_gap <= 1e-3
