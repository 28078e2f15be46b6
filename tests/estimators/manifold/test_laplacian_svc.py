"""LaplacianSVC solves manifold regularisation: a support vector machine in a deformed kernel."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_moons
from sklearn.neighbors import kneighbors_graph
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils.estimator_checks import check_estimator

from mercer import SVC, Gaussian, LaplacianSVC, OutputCodeSVC, Spectrum, certify
from mercer.estimators.manifold.neighbour_graph import deformation, neighbour_graph, normalised_laplacian


def moons(n=120, labels=3, noise=0.08, seed=0):
    """Two moons, of which a few samples of each are labelled; the others have −1."""
    X, y = make_moons(n, noise=noise, random_state=seed)
    given = np.full(n, -1)
    for c in (0, 1):
        given[np.flatnonzero(y == c)[:labels]] = c
    return X, y, given


X, y, GIVEN = moons()


@pytest.mark.filterwarnings("ignore")
def test_sklearn_checks():
    """scikit-learn's own checks pass, but for labels -1, and for weights: a repeated sample is another graph."""
    expected = {
        f"check_sample_weight_equivalence_on_{kind}_data": "a repeated sample is another graph"
        for kind in ("dense", "sparse")
    }
    expected["check_classifiers_classes"] = "-1 means unlabelled"
    check_estimator(LaplacianSVC(kernel=Gaussian(0.1)), expected_failed_checks=expected)


def clarabel_optimum(K, L, labels, C, s):
    """½a'Ka + s/2 a'KLKa + C Σξ over a, b and ξ ≥ 0 with y(Ka + b) ≥ 1 − ξ, ξ at the labelled samples."""
    n, rows = len(K), np.flatnonzero(labels)
    m, t = len(rows), labels[rows]
    P = sp.block_diag([sp.csc_matrix(K + s * K @ L @ K + 1e-11 * np.eye(n)), sp.csc_matrix((1 + m, 1 + m))]).tocsc()
    margins = sp.hstack([-t[:, None] * K[rows], -t[:, None], -sp.eye(m)])
    A = sp.vstack([margins, sp.hstack([sp.csc_matrix((m, n + 1)), -sp.eye(m)])]).tocsc()
    right, settings = np.concatenate([-np.ones(m), np.zeros(m)]), clarabel.DefaultSettings()
    settings.verbose = False
    linear = np.concatenate([np.zeros(n + 1), np.full(m, C)])
    return clarabel.DefaultSolver(P, linear, A, right, [clarabel.NonnegativeConeT(2 * m)], settings).solve().obj_val


@pytest.mark.parametrize("power", [1, 2])
def test_clarabel_finds_the_same_optimum(power):
    """The program over all coefficients has the objective of the machine in the deformed kernel."""
    model = LaplacianSVC(5.0, smoothness=3.0, power=power, kernel=Gaussian(4.0), tol=1e-8).fit(X, GIVEN)
    K = Gaussian(4.0)(X)
    L = normalised_laplacian(neighbour_graph(K, 7)).toarray()
    labels = np.where(GIVEN == 1, 1.0, np.where(GIVEN == 0, -1.0, 0.0))
    expected = clarabel_optimum(K, np.linalg.matrix_power(L, power), labels, 5.0, 3.0)
    np.testing.assert_allclose(model.certificate_.primal, expected, rtol=1e-4)
    a = model.dual_coef_[0]
    f = K @ a
    losses = np.maximum(0.0, 1.0 - labels * (f + model.intercept_[0]))[labels != 0].sum()
    value = 0.5 * a @ f + 1.5 * f @ np.linalg.matrix_power(L, power) @ f + 5.0 * losses
    np.testing.assert_allclose(value, model.certificate_.primal, rtol=1e-8)
    assert model.certificate_.relative_gap < 1e-7


def test_the_graph_of_a_gaussian_kernel_is_the_euclidean_one():
    """Neighbours in feature space are those of scikit-learn; the Laplacian is that of the definition."""
    found = neighbour_graph(Gaussian(2.0)(X), 5).toarray()
    expected = kneighbors_graph(X, 5).toarray()
    np.testing.assert_array_equal(found, np.maximum(expected, expected.T))
    root = 1.0 / np.sqrt(found.sum(axis=1))
    expected = np.eye(len(X)) - root[:, None] * found * root
    np.testing.assert_allclose(normalised_laplacian(neighbour_graph(Gaussian(2.0)(X), 5)).toarray(), expected)


def test_the_deformed_kernel_is_that_of_the_paper():
    """k̃ = k − k_x'(I + MK)⁻¹ M k_z."""
    K = Gaussian(2.0)(X)
    L = normalised_laplacian(neighbour_graph(K, 5))
    P = deformation(K, L, 1, 0.7, np.arange(4))
    M = 0.7 * L.toarray()
    expected = K - K @ np.linalg.solve(np.eye(len(K)) + M @ K, M @ K)
    np.testing.assert_allclose(K @ P, expected[:, :4], atol=1e-9)


def test_without_smoothness_it_is_svc_on_the_labels():
    """s = 0 leaves the machine of the labelled samples, for two classes and for three."""
    model = LaplacianSVC(2.0, smoothness=0.0, kernel=Gaussian(1.0), tol=1e-8).fit(X, GIVEN)
    known = GIVEN >= 0
    alone = SVC(C=2.0, kernel=Gaussian(1.0), tol=1e-8).fit(X[known], GIVEN[known])
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-6)
    three = np.where(known, np.arange(len(X)) % 3, -1)
    model = LaplacianSVC(2.0, smoothness=0.0, kernel=Gaussian(1.0), tol=1e-8).fit(X, three)
    alone = OutputCodeSVC(C=2.0, kernel=Gaussian(1.0), tol=1e-8).fit(X[known], three[known])
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-5)


def test_unlabelled_samples_help():
    """Few labels of two moons suffice with the others' positions, also for new samples; labels alone do not."""
    model = LaplacianSVC(100.0, smoothness=100.0, gamma=5.0, n_neighbors=5).fit(X, GIVEN)
    assert (model.transduction_ == y).mean() > 0.98
    np.testing.assert_array_equal(model.predict(X), model.transduction_)
    new, target, _ = moons(seed=1)
    known = GIVEN >= 0
    alone = SVC(C=100.0, gamma=5.0).fit(X[known], GIVEN[known]).score(new, target)
    assert model.score(new, target) > 0.97 > 0.95 > alone


@pytest.mark.parametrize("kernel", [Gaussian(5.0), "precomputed"])
def test_samples_without_weight_are_predicted(kernel):
    """Samples of weight 0 are no part of the problem; ``transduction_`` has their predicted labels."""
    samples = Gaussian(5.0)(X) if kernel == "precomputed" else X
    weight = (np.arange(len(X)) % 3 > 0) | (GIVEN >= 0)
    model = LaplacianSVC(100.0, kernel=kernel).fit(samples, GIVEN, sample_weight=weight.astype(float))
    np.testing.assert_array_equal(model.transduction_, model.predict(samples))
    assert (model.transduction_ == y)[~weight].mean() > 0.8


@pytest.mark.slow
def test_digits():
    """With three labels for each digit it is at least as good as LabelSpreading on the same graph."""
    A, t = load_digits(return_X_y=True)
    A, t, rng = A[:900] / 16.0, t[:900], np.random.default_rng(0)
    given = np.full(len(t), -1)
    for c in range(10):
        given[rng.choice(np.flatnonzero(t == c), 3, replace=False)] = c
    rest = given < 0
    ours = LaplacianSVC(10.0, gamma=0.05).fit(A, given).transduction_
    theirs = LabelSpreading(kernel="knn", n_neighbors=7).fit(A, given).transduction_
    assert (ours == t)[rest].mean() >= (theirs == t)[rest].mean()


def test_names_and_objects():
    """Texts beside -1 are an array of objects; kernels on strings give a graph of strings."""
    names = np.array(["low", "high"], dtype=object)[y]
    names[GIVEN < 0] = -1
    model = LaplacianSVC(100.0, gamma=5.0).fit(X, names)
    assert set(model.predict(X)) == {"low", "high"}
    words = ["abab", "baba", "ccdd", "ddcc"] * 3
    model = LaplacianSVC(kernel=Spectrum(2), n_neighbors=2).fit(words, [0, -1, 1, -1] + [-1] * 8)
    np.testing.assert_array_equal(model.transduction_[:4], [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("given", "parameters", "message"),
    [
        (np.full(120, -1), {}, "y has no labelled sample with positive weight"),
        (np.where(GIVEN == 0, 0, -1), {}, "All 3 labelled samples are of the class 0; -1 means unlabelled."),
        (np.where(y == 1, 1, -1), {}, "If -1 is one of your classes, give it another name, such as 0."),
        (np.where(GIVEN < 0, np.nan, GIVEN), {}, "y contains 114 missing labels .None or NaN., the first in row"),
        (np.where(GIVEN < 0, None, GIVEN.astype(object)), {}, "Unlabelled samples have the label -1: use y.astype"),
        (np.zeros(120), {}, "The number of classes has to be greater than one; got 1 class"),
        (GIVEN, {"cache_size": 0.1}, "The kernel matrix of 120 samples"),
        (GIVEN, {"n_neighbors": 0}, "'n_neighbors' parameter of LaplacianSVC must be"),
        (GIVEN, {"smoothness": -1.0}, "'smoothness' parameter of LaplacianSVC must be"),
        (GIVEN, {"smoothness": np.nan}, "'smoothness' parameter of LaplacianSVC must be"),
    ],
)
def test_bad_input(given, parameters, message):
    """Each mistake has a message."""
    with pytest.raises(ValueError, match=message):
        LaplacianSVC(**parameters).fit(X, given)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("power", [1, 2])
def test_certify_recomputes_the_certificate(power, weighted):
    """From coefficients, data and graph it finds the values of fit; other coefficients have a larger primal."""
    labels = np.where(GIVEN >= 0, np.arange(len(X)) % 3, -1)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X)) if weighted else None
    for given in (GIVEN, labels):
        model = LaplacianSVC(5.0, power=power, class_weight="balanced").fit(X, given, sample_weight=weight)
        found = certify(model, X, given, weight)
        assert found.valid and found.relative_gap < 1e-3
        np.testing.assert_allclose(found.primal, model.certificate_.primal, rtol=1e-9)
        np.testing.assert_allclose(found.dual, model.certificate_.dual, rtol=1e-9)
        np.testing.assert_allclose(found.kkt_violation, model.certificate_.kkt_violation, atol=1e-6)
        model.dual_coef_ = 1.1 * model.dual_coef_
        worse = certify(model, X, given, weight)
        assert worse.valid and worse.primal > found.primal and worse.dual <= found.primal * (1 + 1e-12)
