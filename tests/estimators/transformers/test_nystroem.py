"""Nyström features: what they reproduce, what they lose, and that they are scikit-learn's for its parameters."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem as Theirs
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from tests.naming import named

from mercer import SVC, LinearSVC, Nystroem, load, save
from mercer.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mercer.kernels import Gaussian, Graph, Linear, On, Spectrum, WeisfeilerLehman

SELECTIONS = ("uniform", "kmeans++", "cholesky", "random_cholesky")


def samples(n=200, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("selection", SELECTIONS)
def test_conformance(selection):
    """scikit-learn's checks pass."""
    check_estimator(Nystroem(n_components=10, selection=selection))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"gamma": 0.3},
        {"kernel": "polynomial", "degree": 2, "coef0": 0.5},
        {"kernel": "laplacian"},
        {"kernel": "rbf", "kernel_params": {"gamma": 0.2}},
        {"kernel": lambda x, z, power: (x @ z) ** power, "kernel_params": {"power": 2}},
    ],
    ids=named,
)
def test_same_as_sklearn(params):
    """The same random_state gives the same landmarks and features."""
    X, new = samples(), samples(30, seed=1)
    ours, theirs = (kind(n_components=12, random_state=3, **params).fit(X) for kind in (Nystroem, Theirs))
    np.testing.assert_array_equal(ours.component_indices_, theirs.component_indices_)
    found, expected = ours.transform(new), theirs.transform(new)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("kernel", [Gaussian(0.2), On((0, 1), Gaussian(1.0)) + Linear()], ids=named)
def test_errors_are_what_is_said(kernel, selection):
    """Values with landmarks are exact; the trace that is lost and the largest error of all others are as stated."""
    X = samples()
    model = Nystroem(kernel, n_components=25, selection=selection, random_state=0).fit(X)
    K, phi = kernel(X), model.transform(X)
    rest = K - phi @ phi.T
    np.testing.assert_allclose(rest[model.component_indices_], 0.0, atol=1e-7)
    assert model.error_ == pytest.approx(np.trace(rest) / np.trace(K), abs=1e-9)
    assert np.abs(rest).max() <= model.largest_error_ + 1e-9
    assert model.largest_error_ == pytest.approx(np.diagonal(rest).max(), abs=1e-9)


def test_chosen_landmarks_lose_less():
    """On clusters of different sizes chosen landmarks represent more than random ones."""
    rng = np.random.default_rng(0)
    clusters = [rng.normal(size=(400, 2)), 0.1 * rng.normal(size=(8, 2)) + 20.0, rng.normal(size=(5, 2)) - 20.0]
    X = np.concatenate(clusters)
    errors = {}
    for selection in SELECTIONS:
        found = [Nystroem(Gaussian(0.5), n_components=40, selection=selection, random_state=s).fit(X) for s in range(3)]
        errors[selection] = np.mean([model.error_ for model in found])
    assert all(errors[selection] < 0.7 * errors["uniform"] for selection in SELECTIONS[1:])


@pytest.mark.parametrize("selection", ("kmeans++", "cholesky", "random_cholesky"))
def test_no_more_landmarks_than_needed(selection):
    """Repeated samples are represented by one of each; nothing is lost."""
    X = np.repeat(samples(7), 10, axis=0)
    model = Nystroem(Gaussian(0.2), n_components=30, selection=selection, random_state=0).fit(X)
    assert len(model.components_) == 7 and model.error_ < 1e-10
    assert model.transform(X).shape == (70, 7) and model.get_feature_names_out().shape == (7,)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_precomputed_and_sparse(selection):
    """The kernel matrix and CSR samples give what the array gives."""
    X, new = samples(), samples(20, seed=1)
    X[np.abs(X) < 0.8] = 0.0
    kernel = Gaussian(0.3)
    params = {"n_components": 15, "selection": selection, "random_state": 1}
    expected = Nystroem(kernel, **params).fit(X).transform(new)
    of_matrix = Nystroem("precomputed", **params).fit(kernel(X)).transform(kernel(new, X))
    of_csr = Nystroem(kernel, **params).fit(sp.csr_array(X)).transform(sp.csr_array(new))
    np.testing.assert_allclose(of_matrix @ of_matrix.T, expected @ expected.T, atol=1e-8)
    np.testing.assert_allclose(of_csr @ of_csr.T, expected @ expected.T, atol=1e-8)


def test_all_samples_are_the_kernel_machine():
    """With every sample as a landmark a linear machine on φ is the kernel machine."""
    X = samples(60)
    y = X[:, 0] * X[:, 1] > 0
    linear = LinearSVC(loss="hinge", C=1.0, penalize_intercept=False, tol=1e-8)
    machine = make_pipeline(Nystroem(Gaussian(0.5), n_components=60), linear).fit(X, y)
    plain = SVC(kernel=Gaussian(0.5), tol=1e-6).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), plain.decision_function(X), atol=1e-3)


class TestGivenLandmarks:
    def test_they_are_used_as_they_are(self):
        """Kernel values with them are exact, and φ is the projection on their span; n_components does not matter."""
        X, landmarks, kernel = samples(), samples(15, seed=1), Gaussian(0.3)
        model = Nystroem(kernel, landmarks=landmarks, n_components=1).fit(X)
        np.testing.assert_array_equal(model.components_, landmarks)
        assert model.components_ is not landmarks and not hasattr(model, "component_indices_")
        K = kernel(X, landmarks)
        phi = model.transform(X)
        np.testing.assert_allclose(phi @ phi.T, K @ np.linalg.solve(kernel(landmarks), K.T), atol=1e-8)
        np.testing.assert_allclose(phi @ model.transform(landmarks).T, K, atol=1e-8)
        rest = kernel(X) - phi @ phi.T
        assert model.error_ == pytest.approx(np.trace(rest) / len(X), abs=1e-9)
        assert model.largest_error_ == pytest.approx(np.diagonal(rest).max(), abs=1e-9)

    @pytest.mark.parametrize("selection", SELECTIONS)
    def test_those_of_another_fit(self, selection):
        """The landmarks that were chosen, given again, give the same features bit by bit."""
        X = samples()
        chosen = Nystroem(gamma=0.3, n_components=12, selection=selection, random_state=0).fit(X)
        given = Nystroem(gamma=0.3, landmarks=chosen.components_).fit(X)
        np.testing.assert_array_equal(given.transform(X), chosen.transform(X))
        assert given.error_ == chosen.error_

    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, pd.DataFrame, np.ndarray.tolist, np.float32])
    @pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
    def test_other_storage(self, kind, store):
        """Dense, sparse, frames and lists may be mixed, and more landmarks than samples may be given."""
        X, landmarks = samples(10), np.round(samples(20, seed=1), 1).astype(np.float32).astype(np.float64)
        landmarks[np.abs(landmarks) < 1.0] = 0.0
        expected = Nystroem(landmarks=landmarks).fit(X).transform(X)
        found = Nystroem(landmarks=kind(landmarks)).fit(store(X)).transform(store(X))
        np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-7)

    def test_strings_graphs_and_records(self):
        """Samples of any kind may be landmarks; those outside of the training set, too."""
        paths = [Graph([(i, i + 1) for i in range(n)]) for n in range(1, 8)]
        table = pd.DataFrame({"text": ["abc", "abd", "bcd", "cde"], "price": [1.0, 2.0, 4.0, 8.0]})
        both = On("text", Spectrum(2)) + On("price", Gaussian(0.1))
        for kernel, X, landmarks in (
            (Spectrum(2), ["abc", "abd", "bcd", "cde"], ["abc", "xabd"]),
            (Spectrum(2), np.array(["abc", "abd", "bcd", "cde"], dtype=object), ("abc", "xabd")),
            (WeisfeilerLehman(2), paths, paths[:3]),
            (both, table, table.iloc[:2]),
        ):
            model = Nystroem(kernel, landmarks=landmarks).fit(X)
            np.testing.assert_allclose(
                model.transform(X) @ model.transform(landmarks).T, kernel(X, landmarks), atol=1e-7
            )
            assert model.transform(X).shape == (len(X), len(landmarks))

    def test_indices_of_a_precomputed_kernel(self):
        """Indices choose rows of the matrix."""
        X, new, kernel = samples(), samples(9, seed=1), Gaussian(0.3)
        index = np.array([5, 2, 60])
        model = Nystroem("precomputed", landmarks=index).fit(kernel(X))
        expected = Nystroem(kernel, landmarks=X[index]).fit(X)
        np.testing.assert_allclose(model.transform(kernel(new, X)), expected.transform(new), atol=1e-10)
        np.testing.assert_array_equal(model.component_indices_, index)

    def test_refit_clone_and_files(self, tmp_path):
        """A second fit forgets the indices of the first; clones and model files keep the landmarks."""
        X = samples()
        model = Nystroem(n_components=5).fit(X)
        model.set_params(landmarks=X[:7]).fit(X)
        assert not hasattr(model, "component_indices_") and model.transform(X).shape == (200, 7)
        np.testing.assert_array_equal(clone(model).fit(X).transform(X), model.transform(X))
        save(model, tmp_path / "model.mercer")
        np.testing.assert_array_equal(load(tmp_path / "model.mercer").transform(X), model.transform(X))
        repeated = Nystroem(landmarks=np.repeat(X[:7], 2, axis=0)).fit_transform(X)
        np.testing.assert_allclose(repeated @ repeated.T, model.transform(X) @ model.transform(X).T, atol=1e-7)

    def test_bad_landmarks(self):
        """Wrong features, nothing, NaN, a number, a wrong kind, columns in another order, invalid indices."""
        X = samples(10)

        def refused(words, landmarks, kernel="rbf", samples=X):
            with pytest.raises(ValueError, match=words):
                Nystroem(kernel, landmarks=landmarks).fit(samples)

        refused("landmarks has 3 features, but X has 4: landmarks must be samples with the same features", X[:, :3])
        for nothing in ([], X[:0], sp.csr_array((0, 4))):
            refused("landmarks is empty: give at least one sample", nothing)
        refused("Input landmarks contains NaN", np.full((2, 4), np.nan))
        refused("Input landmarks contains infinity", sp.csr_array(np.full((2, 4), np.inf)))
        refused("landmarks=5 was given, but landmarks must be a sequence of samples. Use n_components", 5)
        refused("landmarks='auto' was given, but landmarks must be a sequence of samples", "auto")
        refused("Expected 2D array, got 1D array", X[0])
        refused("sample 0 is the string 'abc'", ["abc"])
        frame = pd.DataFrame(X, columns=list("abcd"))
        refused("landmarks has the columns d, c, b, a, but X has a, b, c, d", frame[list("dcba")], samples=frame)
        refused("compares strings, but sample 1 is the number 3", ["ab", 3], Spectrum(2), ["abc", "abd"])
        refused("landmarks is empty", [], Spectrum(2), ["abc", "abd"])
        K = X @ X.T
        refused(
            r"landmarks has the shape \(10, 10\) and the type float64, but with a precomputed kernel",
            K,
            "precomputed",
            K,
        )
        refused("landmarks contains 10, but .* whole numbers from 0 to 9", [0, 10], "precomputed", K)
        refused("landmarks contains -1, but", [-1], "precomputed", K)
        refused("landmarks is empty", [], "precomputed", K)


def test_bad_input():
    """Too many landmarks, parameters of another kernel, matrices that are no kernels, names that do not exist."""
    X = samples(10)
    with pytest.warns(UserWarning, match="n_components > n_samples"):
        assert Nystroem(n_components=20).fit(X).transform(X).shape == (10, 10)
    with pytest.raises(ValueError, match="Don't pass gamma"):
        Nystroem("precomputed", gamma=1.0, n_components=3).fit(X @ X.T)
    with pytest.raises(InvalidInputError, match="must be a square matrix"):
        Nystroem("precomputed", n_components=3).fit(X)
    with pytest.raises(NotPositiveSemidefiniteError):
        Nystroem("precomputed", n_components=10).fit(-np.eye(10))
    with pytest.raises(InvalidInputError, match="there is no kernel"):
        Nystroem("rbff", n_components=3).fit(X)
    for selection in SELECTIONS:
        zero = Nystroem("linear", n_components=3, selection=selection).fit(np.zeros((5, 2)))
        assert zero.error_ == 0.0 and not zero.transform(np.zeros((5, 2))).any()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_single_sample_and_single_precision(selection):
    """One sample is its own landmark; float32 stays float32."""
    assert Nystroem(n_components=1, selection=selection).fit_transform([[1.0, 2.0]]).shape == (1, 1)
    X = samples().astype(np.float32)
    assert Nystroem(n_components=5, selection=selection).fit_transform(X).dtype == np.float32
