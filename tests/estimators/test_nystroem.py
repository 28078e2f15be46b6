"""Nyström features: what they reproduce, what they lose, and that they are scikit-learn's for its parameters."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem as Theirs
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from tests.naming import named

from mercer import SVC, LinearSVC, Nystroem
from mercer.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mercer.kernels import Gaussian, Linear, On

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
