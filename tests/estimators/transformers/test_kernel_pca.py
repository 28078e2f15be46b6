"""Kernel PCA: scikit-learn's components, residuals that are true, landmarks, pre-images and clear errors."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_circles
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Theirs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator
from tests.naming import named

from mercer import KernelPCA, certify, load, save
from mercer.exceptions import InvalidInputError
from mercer.kernels import CallableKernel, Gaussian, Graph, Normalized, Spectrum, WeisfeilerLehman


def digits(n=500):
    return load_digits().data[:n] / 16.0


def centred(K):
    H = np.eye(len(K)) - 1.0 / len(K)
    return H @ K @ H


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model", [KernelPCA(), KernelPCA(2, kernel="rbf", landmarks=5), KernelPCA(2, eigen_solver="arpack")], ids=named
)
def test_conformance(model):
    """scikit-learn's checks pass."""
    check_estimator(model)


@pytest.mark.parametrize(
    "params",
    [
        {"n_components": 4},
        {"n_components": 6, "kernel": "rbf", "gamma": 0.05},
        {"n_components": 60, "kernel": "poly", "degree": 2, "coef0": 0.5},
        {"n_components": 5, "kernel": "sigmoid", "gamma": 1e-3},
        {"kernel": "cosine"},
        {"n_components": 3, "kernel": "rbf", "eigen_solver": "dense"},
        {"n_components": 3, "kernel": "rbf", "eigen_solver": "arpack"},
        {"n_components": 3, "kernel": "rbf", "eigen_solver": "randomized", "random_state": 0},
        {"n_components": 3, "kernel": lambda x, z: (x @ z) ** 2},
    ],
    ids=named,
)
def test_same_as_sklearn(params):
    """Eigenvalues, coordinates and signs are scikit-learn's, for training samples and for new ones."""
    X, new = digits(350), digits(400)[350:]
    ours, theirs = KernelPCA(**params), Theirs(**params)
    Z, expected = ours.fit_transform(X), theirs.fit_transform(X)
    # components whose eigenvalues differ clearly are unique
    shown = slice(0, 10)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-7, atol=1e-9 * theirs.eigenvalues_[0])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(Z[:, shown], expected[:, shown], atol=1e-5 * scale)
    np.testing.assert_allclose(ours.transform(new)[:, shown], theirs.transform(new)[:, shown], atol=1e-5 * scale)
    assert list(ours.get_feature_names_out()[:1]) == ["kernelpca0"]


def test_linear_kernel_is_pca():
    """With the linear kernel the coordinates and ratios are those of PCA, up to signs."""
    X = digits()
    ours, theirs = KernelPCA(4).fit(X), PCA(4).fit(X)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), atol=1e-7)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-8)


@pytest.mark.parametrize(("gamma", "cache_size"), [(1e-3, "auto"), (0.05, 0.1), (5.0, "auto")])
def test_residuals_and_bound(gamma, cache_size):
    """Residuals are those of the matrix or bound them, and no other eigenvalue exceeds the bound."""
    X = digits(1000)
    model = KernelPCA(5, kernel="rbf", gamma=gamma, cache_size=cache_size, random_state=0).fit(X)
    A = centred(Gaussian(gamma)(X))
    actual = np.linalg.norm(A @ model.eigenvectors_ - model.eigenvectors_ * model.eigenvalues_, axis=0)
    assert (actual <= model.residuals_ + 1e-12 * np.linalg.norm(A)).all()
    assert model.residuals_.max() <= 1e-7 * model.eigenvalues_[0]
    exact = np.linalg.eigvalsh(A)[::-1]
    np.testing.assert_allclose(model.eigenvalues_, exact[:5], rtol=1e-8)
    assert exact[5] <= model.next_eigenvalue_bound_
    np.testing.assert_allclose(model.explained_variance_ratio_, exact[:5] / np.trace(A), rtol=1e-8)


def test_smooth_kernels_need_no_matrix():
    """A kernel matrix of low rank is factorised: no product with the matrix, and the same components."""
    X = np.random.default_rng(0).normal(size=(1000, 2))
    quick = KernelPCA(4, kernel="rbf", gamma=0.05).fit(X)
    dense = KernelPCA(4, kernel="rbf", gamma=0.05, eigen_solver="dense").fit(X)
    assert quick.n_products_ == 0
    np.testing.assert_allclose(quick.eigenvalues_, dense.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(quick.transform(X[:9]), dense.transform(X[:9]), atol=1e-6)


def test_landmarks_bound_the_eigenvalues():
    """Each exact eigenvalue is between that of landmarks and the same plus the lost trace."""
    X = digits(600)
    exact = KernelPCA(6, kernel="rbf", gamma=0.02).fit(X)
    for landmarks in (50, 200, X[::4]):
        model = KernelPCA(6, kernel="rbf", gamma=0.02, landmarks=landmarks, random_state=0).fit(X)
        assert (model.eigenvalues_ <= exact.eigenvalues_ * (1 + 1e-9)).all()
        assert (exact.eigenvalues_ <= model.eigenvalues_ + model.lost_trace_).all()
        assert exact.eigenvalues_[-1] <= model.next_eigenvalue_bound_ + exact.eigenvalues_[-1]
        np.testing.assert_allclose(model.transform(X), model.eigenvectors_ * np.sqrt(model.eigenvalues_), atol=1e-8)
    every = KernelPCA(6, kernel="rbf", gamma=0.02, landmarks=X).fit(X)
    np.testing.assert_allclose(every.transform(X), exact.transform(X), atol=1e-6)


def test_many_samples_build_no_square_matrix():
    """100,000 samples with landmarks take memory in proportion to their number."""
    X = np.random.default_rng(0).normal(size=(100_000, 3)).astype(np.float32)
    model = KernelPCA(2, kernel="rbf", gamma=0.1, landmarks=30, random_state=0)
    assert model.fit_transform(X).dtype == np.float32
    assert model.X_fit_.shape == (30, 3)
    assert 0 < model.lost_trace_ < 0.1 * 100_000


def test_precomputed_objects_and_functions():
    """A kernel matrix, strings, graphs and functions are read as they are elsewhere in mercer."""
    words = ["kernel", "kernels", "colonel", "margin", "margins", "imagine", "image"]
    kernel = Normalized(Spectrum(2))
    model = KernelPCA(2, kernel=kernel).fit(words)
    from_matrix = KernelPCA(2, kernel="precomputed").fit(kernel(words))
    np.testing.assert_allclose(model.transform(words), from_matrix.transform(kernel(words)), atol=1e-10)
    np.testing.assert_allclose(
        KernelPCA(2, kernel=CallableKernel(kernel)).fit_transform(words), model.transform(words), atol=1e-10
    )
    graphs = [Graph([(0, 1), (1, 2), (2, k % 3)], node_labels={0: "C", 1: "O", 2: "N"}) for k in range(6)]
    assert KernelPCA(2, kernel=WeisfeilerLehman(2)).fit_transform(graphs).shape == (6, 2)
    landmarks = KernelPCA(2, kernel="precomputed", landmarks=np.arange(7)).fit(kernel(words))
    np.testing.assert_allclose(landmarks.transform(kernel(words)), model.transform(words), atol=1e-6)


def test_sparse_and_frames():
    """Sparse rows and data frames give what arrays give."""
    X = digits(200)
    model = KernelPCA(3, kernel="rbf")
    expected = model.fit_transform(X)
    np.testing.assert_allclose(KernelPCA(3, kernel="rbf").fit_transform(sp.csr_array(X)), expected, atol=1e-8)
    np.testing.assert_allclose(
        KernelPCA(3, kernel="rbf").fit_transform(pd.DataFrame(X).add_prefix("p")), expected, atol=1e-8
    )


def test_circles_become_separable():
    """Two circles are separated by a line in the coordinates of a Gaussian kernel, not in those of PCA."""
    X, y = make_circles(400, factor=0.3, noise=0.05, random_state=0)
    scores = {
        kernel: LogisticRegression().fit(Z, y).score(Z, y)
        for kernel in ("linear", "rbf")
        for Z in [KernelPCA(2, kernel=kernel, gamma=2.0).fit_transform(X)]
    }
    assert scores["rbf"] > 0.99 > 0.75 > scores["linear"]


# ---- pre-images --------------------------------------------------------------------------------------------------


def test_ridge_pre_images_are_those_of_sklearn():
    """The default inverse_transform is scikit-learn's."""
    X, new = digits(300), digits(350)[300:]
    params = {"n_components": 8, "kernel": "rbf", "gamma": 0.05, "alpha": 0.1, "fit_inverse_transform": True}
    ours, theirs = KernelPCA(**params).fit(X), Theirs(**params).fit(X)
    np.testing.assert_allclose(
        ours.inverse_transform(ours.transform(new)), theirs.inverse_transform(theirs.transform(new)), atol=1e-6
    )
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-6)


@pytest.mark.parametrize("landmarks", [None, 300])
def test_gaussian_pre_images(landmarks):
    """Noisy digits are closer to the clean ones after projection; the fixed point best reproduces the coordinates."""
    X = digits(900)
    train, clean = X[:800], X[800:]
    noisy = clean + 0.3 * np.random.default_rng(0).normal(size=clean.shape)
    errors, misses = {}, {}
    for way in ("ridge", "distances", "fixed_point"):
        model = KernelPCA(
            16, kernel="rbf", gamma=0.02, alpha=0.1, fit_inverse_transform=True, pre_image=way, landmarks=landmarks,
            random_state=0,
        ).fit(train)  # fmt: skip
        Z = model.transform(noisy)
        found = model.inverse_transform(Z)
        errors[way] = np.mean((found - clean) ** 2)
        misses[way] = np.linalg.norm(model.transform(found) - Z)
    assert max(errors.values()) < 0.5 * np.mean((noisy - clean) ** 2)
    assert misses["fixed_point"] < misses["distances"]


def test_pre_images_of_samples():
    """With all components, the pre-image of a training sample is the sample."""
    X = digits(60)
    model = KernelPCA(kernel="rbf", gamma=0.05, fit_inverse_transform=True, pre_image="fixed_point").fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-3)


# ---- files, errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"landmarks": 20}, {"fit_inverse_transform": True}], ids=named)
def test_files(tmp_path, params):
    """A saved model gives the same coordinates, bit by bit."""
    X = digits(100)
    model = KernelPCA(3, kernel="rbf", random_state=0, **params).fit(X)
    save(model, tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    if params.get("fit_inverse_transform"):
        Z = model.transform(X)
        np.testing.assert_array_equal(again.inverse_transform(Z), model.inverse_transform(Z))


def test_bad_input():
    """Errors name what was found and what to do."""
    X = digits(50)
    with pytest.raises(ValueError, match=r"Cannot fit_inverse_transform with a precomputed kernel\."):
        KernelPCA(kernel="precomputed", fit_inverse_transform=True).fit(np.eye(3))
    with pytest.raises(InvalidInputError, match="must be a square matrix"):
        KernelPCA(kernel="precomputed").fit(np.ones((3, 2)))
    with pytest.raises(NotImplementedError, match="not implemented for sparse"):
        KernelPCA(fit_inverse_transform=True).fit(sp.csr_array(X))
    with pytest.raises(InvalidInputError, match="There are significant negative eigenvalues"):
        KernelPCA(kernel="precomputed").fit(np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    with pytest.raises(InvalidInputError, match="needs a Gaussian kernel with one gamma"):
        KernelPCA(fit_inverse_transform=True, pre_image="distances").fit(X)
    with pytest.raises(InvalidInputError, match="needs a kernel on vectors"):
        KernelPCA(kernel=Spectrum(2), fit_inverse_transform=True).fit(["ab", "bc"])
    with pytest.raises(InvalidInputError, match="more than cache_size allows"):
        KernelPCA(cache_size=0.001).fit(X)
    with pytest.raises(NotFittedError, match="fit_inverse_transform parameter was not"):
        KernelPCA(2).fit(X).inverse_transform(np.zeros((1, 2)))
    with pytest.raises(InvalidInputError, match="there are 2 components"):
        KernelPCA(2, fit_inverse_transform=True).fit(X).inverse_transform(np.zeros((1, 3)))
    with pytest.raises(InvalidInputError, match=r"alpha=0 is too small"):
        KernelPCA(2, fit_inverse_transform=True, alpha=0.0).fit(X)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        KernelPCA().fit(np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="not finite"):
        KernelPCA(1, kernel="poly", degree=3000).fit(10 * X)
    with pytest.raises(InvalidInputError, match=r"A KernelPCA has no certificate\."):
        certify(KernelPCA(2).fit(X), X)


def test_few_and_equal_samples():
    """One sample, or equal ones, have no variance: coordinates of 0, no division by 0."""
    for X in (np.ones((1, 2)), np.ones((5, 2))):
        model = KernelPCA(1, kernel="rbf").fit(X)
        np.testing.assert_allclose(model.eigenvalues_, 0.0, atol=1e-12)
        np.testing.assert_allclose(model.transform(X), 0.0, atol=1e-7)
        assert KernelPCA(kernel="rbf").fit(X).eigenvalues_.shape == (0,) or len(X) > 1


def test_unfinished_iteration_is_said():
    """max_iter=1 warns with the residual."""
    with pytest.warns(ConvergenceWarning, match=r"not accurate after max_iter=1 rounds: the largest residual is"):
        KernelPCA(3, kernel="rbf", gamma=0.2, max_iter=1).fit(digits(600))


def test_equal_eigenvalues():
    """Samples at equal distances have as many components as were asked for."""
    assert KernelPCA(2).fit(np.eye(60)).eigenvalues_.shape == (2,)
    X = np.random.default_rng(0).normal(size=(290, 5))
    for n_components in (2, 10):
        model = KernelPCA(n_components, kernel="rbf", gamma=1e6).fit(X)
        np.testing.assert_allclose(model.eigenvalues_, np.ones(n_components))
