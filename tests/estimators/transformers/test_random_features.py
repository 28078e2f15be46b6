"""Random features: unbiased, with the stated error, in scikit-learn's world."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from tests.naming import named

import mercer
from mercer import SVC, LinearSVC, RandomFeatures
from mercer.estimators.transformers.random_features import cosines_and_sines, split
from mercer.exceptions import InvalidInputError
from mercer.kernels import Gaussian, Laplacian, Linear, Matern, On, Periodic, RationalQuadratic

KERNELS = [
    Gaussian(0.3),
    Laplacian(0.3),
    Matern(0.5, 1.5),
    Matern(1.5, (1.0, 2.0, 3.0, 4.0)),
    Matern(2.5, 2.0),
    RationalQuadratic(0.7, 1.3),
    Periodic(1.2, 2.5),
    2.0 * Gaussian(0.2) + 0.5 * Laplacian(0.1),
    Gaussian(0.1) * Matern(1.5, 2.0),
    (Gaussian(0.1) + 0.5) * (Laplacian(0.2) + 1.0),
    On((0, 1), Gaussian(0.4)) + On((2, 3), Linear()) + 0.5,
]


def samples(n=200, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def products(model, X):
    phi = model.transform(X)
    return phi @ phi.T


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [
        RandomFeatures(n_components=10),
        RandomFeatures("laplacian", n_components=7, orthogonal=False),
        RandomFeatures(Matern(1.5) + Linear() + 1.0, n_components=5),
    ],
    ids=named,
)
def test_conformance(model):
    """scikit-learn's checks pass."""
    check_estimator(model)


@pytest.mark.parametrize("n_components", [20, 21])
@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_unbiased(kernel, n_components):
    """The mean of <φ(x), φ(z)> over seeds is k(x, z), within five standard errors, for even and odd numbers."""
    X = samples(10)
    fits = [RandomFeatures(kernel, n_components=n_components, random_state=s).fit(X) for s in range(300)]
    found = np.array([products(model, X) for model in fits])
    error = found.std(axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - kernel(X)) <= 5.0 * error + 1e-10)
    if n_components % 2 == 0:
        np.testing.assert_allclose(np.diagonal(found[0]), np.diagonal(kernel(X)), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_error_is_what_is_said(kernel):
    """error_ is the root mean square over pairs of different samples, and falls like 1/√m."""
    X = samples()
    errors = []
    for n_components in (200, 10_000):
        model = RandomFeatures(kernel, n_components=n_components, random_state=0).fit(X)
        lost = (products(model, X) - kernel(X))[np.triu_indices(len(X), 1)]
        assert model.error_ == pytest.approx(np.sqrt(np.mean(lost**2)), rel=1e-9)
        errors.append(model.error_)
    assert 3.0 < errors[0] / errors[1] < 17.0


def test_error_of_many_samples_is_that_of_some():
    """256 random samples of many give about the error of all."""
    X = samples(1500)
    model = RandomFeatures(gamma=0.3, n_components=50, random_state=0).fit(X)
    lost = (products(model, X) - Gaussian(0.3)(X))[np.triu_indices(len(X), 1)]
    assert model.error_ == pytest.approx(np.sqrt(np.mean(lost**2)), rel=0.1)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(2.5, 1.0), RationalQuadratic(2.0, 0.7)], ids=named)
def test_orthogonal_frequencies_have_a_smaller_error(kernel):
    """At d frequencies of d features, over forty seeds, the squared error is at least a third smaller."""
    d = 20
    X = samples(200, d) / np.sqrt(d)

    def square(orthogonal, seed):
        model = RandomFeatures(kernel, n_components=2 * d, orthogonal=orthogonal, random_state=seed)
        return model.fit(X).error_ ** 2

    mean = {orthogonal: np.mean([square(orthogonal, seed) for seed in range(40)]) for orthogonal in (True, False)}
    assert mean[True] < (0.67 if isinstance(kernel, Gaussian) else 0.9) * mean[False]


def test_smaller_error_than_independent_offsets():
    """Cosine and sine of each frequency lose less than scikit-learn's single cosines with random offsets."""
    X = samples(200, 4) / 4.0
    ours = np.mean([RandomFeatures(gamma=1.0, random_state=s).fit(X).error_ ** 2 for s in range(20)])
    pairs, K = np.triu_indices(len(X), 1), Gaussian(1.0)(X)
    theirs = [products(RBFSampler(gamma=1.0, random_state=s).fit(X), X) - K for s in range(20)]
    assert ours < 0.5 * np.mean([np.mean(lost[pairs] ** 2) for lost in theirs])


def test_attributes_rebuild_the_features():
    """Cosines of all frequencies, sines of the first, then Constant and Linear."""
    X, new = samples(), samples(30, seed=1)
    kernel = 2.0 * Gaussian(0.3) + Laplacian(0.1) + Linear() + 0.25
    model = RandomFeatures(kernel, n_components=31, random_state=0).fit(X)
    assert model.random_weights_.shape == (4, 16)
    phases = new @ model.random_weights_ + model.random_offset_
    parts = [model.feature_scale_ * np.cos(phases), model.feature_scale_[:15] * np.sin(phases[:, :15])]
    expected = np.hstack([*parts, np.full((30, 1), 0.5), new])
    np.testing.assert_allclose(model.transform(new), expected, atol=1e-12)
    assert np.flatnonzero(model.random_offset_).tolist() == [15]
    assert list(model.get_feature_names_out()[[0, -1]]) == ["randomfeatures0", "randomfeatures35"]


def test_names_and_expressions():
    """A name, its expression and the kernel object draw the same features; gamma=None is 1/d."""
    X = samples()
    expected = RandomFeatures(Laplacian(0.25), random_state=0).fit(X)
    for kernel, gamma in (("laplacian", None), ("laplacian", "auto"), ("laplacian", 0.25), ("laplacian(0.25)", None)):
        model = RandomFeatures(kernel, gamma=gamma, random_state=0).fit(X)
        np.testing.assert_array_equal(model.transform(X), expected.transform(X))
        assert model.kernel_ == Laplacian(0.25)
    scaled = RandomFeatures(gamma="scale", random_state=0).fit(X)
    assert scaled.kernel_ == Gaussian("scale").bind(X)


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Matern(0.5) + Linear()], ids=named)
def test_sparse_single_precision_and_frames(kernel):
    """CSR rows and frames give what the array gives; float32 stays float32, wherever it is computed."""
    X = samples()
    X[np.abs(X) < 0.8] = 0.0
    model = RandomFeatures(kernel, n_components=30, random_state=0).fit(X)
    expected = model.transform(X)
    for other in (sp.csr_array(X), sp.csc_matrix(X), pd.DataFrame(X)):
        found = RandomFeatures(kernel, n_components=30, random_state=0).fit(other).transform(other)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    single = RandomFeatures(kernel, n_components=30, random_state=0).fit(X.astype(np.float32))
    for other in (X.astype(np.float32), sp.csr_array(X.astype(np.float32))):
        assert single.transform(other).dtype == np.float32
        np.testing.assert_allclose(single.transform(other), expected, atol=1e-4)
    assert single.random_weights_.dtype == np.float32
    table = RandomFeatures(kernel, n_components=30).set_output(transform="pandas").fit_transform(pd.DataFrame(X))
    assert list(table.columns)[:2] == ["randomfeatures0", "randomfeatures1"]


def test_high_frequencies_of_single_precision_are_drawn_in_double():
    """Phases of 1e6 would be noise in float32: kernel values near the diagonal keep their accuracy."""
    X = (1e4 + samples(50)).astype(np.float32)
    model = RandomFeatures(gamma=100.0, n_components=2000, random_state=0).fit(X)
    assert model.random_weights_.dtype == np.float64
    near = X + np.float32(1e-2)
    found = np.einsum("ij,ij->i", model.transform(X), model.transform(near))
    difference = near.astype(np.float64) - X
    np.testing.assert_allclose(found, np.exp(-100.0 * (difference**2).sum(axis=1)), atol=0.1)


def test_blocks_and_threads_do_not_matter():
    """A row's features do not depend on the other rows, up to rounding, nor at all on the number of threads."""
    X = samples(9000)
    model = RandomFeatures(n_components=64, random_state=0, n_jobs=1).fit(X)
    whole = model.transform(X)
    np.testing.assert_allclose(model.transform(X[5000:5003]), whole[5000:5003], atol=1e-13)
    np.testing.assert_array_equal(model.set_params(n_jobs=2).transform(X), whole)


def test_cosines_and_sines():
    """Half-angle formulas agree with NumPy to rounding, at multiples of π and for large phases, too."""
    angles = np.concatenate([np.linspace(-20.0, 20.0, 999), np.pi * np.arange(-6, 7), [0.0, 1e-300, 1e5, -1e9]])
    for dtype, accuracy in ((np.float64, 1e-15), (np.float32, 1e-6)):
        phases = angles.astype(dtype)
        cosines, sines = cosines_and_sines(phases.copy())
        assert cosines.dtype == sines.dtype == dtype
        np.testing.assert_allclose(cosines, np.cos(phases.astype(np.float64)), atol=accuracy)
        np.testing.assert_allclose(sines, np.sin(phases.astype(np.float64)), atol=accuracy)


def test_shares_of_terms():
    """All features are shared out, every term has one, pairs stay together, and shares follow the weights."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        weights = rng.exponential(size=rng.integers(1, 8)) ** 3
        n = int(rng.integers(len(weights), 60))
        counts = split(n, weights.tolist())
        assert sum(counts) == n and min(counts) >= 1
        if n >= 2 * len(weights):
            assert sum(count % 2 for count in counts) == n % 2
            assert all(count >= 2 for count in counts)
    assert split(1000, [1e308, 1e308]) == [500, 500]
    assert split(10, []) == []


def test_a_linear_machine_becomes_the_kernel_machine():
    """With many features the decision values of a linear machine approach those of the kernel machine."""
    X = samples(100, 2)
    y = X[:, 0] * X[:, 1] > 0
    exact = SVC(gamma=0.5).fit(X, y).decision_function(X)
    lost = []
    for n_components in (50, 2000):
        linear = LinearSVC(loss="hinge", C=1.0, penalize_intercept=False, tol=1e-6)
        features = RandomFeatures(gamma=0.5, n_components=n_components, random_state=0)
        values = make_pipeline(features, linear).fit(X, y).decision_function(X)
        lost.append(np.sqrt(np.mean((values - exact) ** 2)))
    assert lost[1] < 0.5 * lost[0] and lost[1] < 0.1


def test_pickles_and_model_files(tmp_path):
    """Copies give the same features, bit by bit, also within a pipeline."""
    X = samples()
    y = X[:, 0] > 0
    model = RandomFeatures(Gaussian("scale") + Linear(), n_components=15, random_state=0).fit(X)
    mercer.save(model, tmp_path / "features.mercer")
    for copy in (pickle.loads(pickle.dumps(model)), mercer.load(tmp_path / "features.mercer")):
        np.testing.assert_array_equal(copy.transform(X), model.transform(X))
        assert copy.error_ == model.error_ and copy.kernel_ == model.kernel_
    machine = make_pipeline(model, LinearSVC()).fit(X, y)
    mercer.save(machine, tmp_path / "machine.mercer")
    loaded = mercer.load(tmp_path / "machine.mercer")
    np.testing.assert_array_equal(loaded.decision_function(X), machine.decision_function(X))


def test_odd_cases():
    """One sample, one feature, one component, kernels that need no draws, and the kernel 0."""
    assert RandomFeatures(n_components=1).fit_transform([[1.0]]).shape == (1, 1)
    one = RandomFeatures(n_components=2).fit([[1.0, 2.0]])
    assert one.error_ < 1e-12
    X = samples(20)
    exact = RandomFeatures(2.0 * Linear() + 3.0).fit(X)
    assert exact.transform(X).shape == (20, 5) and exact.error_ < 1e-12
    nothing = RandomFeatures(0.0 * Gaussian(1.0)).fit(X)
    assert nothing.transform(X).tolist() == 20 * [[0.0]] and nothing.error_ == 0.0
    flat = RandomFeatures(gamma=0.0).fit(X)
    assert flat.error_ < 1e-12


def test_refit():
    """A second fit, on other samples with another kernel, forgets the first."""
    model = RandomFeatures(Gaussian(1.0) + Linear(), n_components=5, random_state=0).fit(samples())
    again = model.set_params(kernel="laplacian").fit(samples(20, 2))
    fresh = RandomFeatures("laplacian", n_components=5, random_state=0).fit(samples(20, 2))
    np.testing.assert_array_equal(again.transform(samples(5, 2)), fresh.transform(samples(5, 2)))


@pytest.mark.parametrize("kernel", ["poly", "precomputed", "cosine", "spectrum(3)", lambda x, z: x @ z], ids=named)
def test_kernels_without_random_features(kernel):
    """Polynomials, matrices, strings and functions are referred to Nystroem, before the samples are looked at."""
    X = ["abc", "abd"] if kernel == "spectrum(3)" else samples(10)
    with pytest.raises(InvalidInputError, match=r"has no random features\. .* Use Nystroem, which takes any kernel\."):
        RandomFeatures(kernel).fit(X)


def test_bad_input():
    """NaN, infinity, no samples, strings, wrong widths, too few components, numbers beyond the range."""
    X = samples(10)
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        RandomFeatures().fit(broken)
    model = RandomFeatures().fit(X)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.transform(broken)
    with pytest.raises(ValueError, match="X has 3 features, but RandomFeatures is expecting 4 features"):
        model.transform(X[:, :3])
    with pytest.raises(ValueError, match="Found array with 0 sample"):
        RandomFeatures().fit(X[:0])
    with pytest.raises(InvalidInputError, match="sample 0 is the string 'abc'"):
        RandomFeatures().fit(["abc", "abd"])
    with pytest.raises(InvalidInputError, match="has 2 widths, but the samples have 4 features"):
        RandomFeatures(Gaussian((1.0, 2.0))).fit(X)
    with pytest.raises(InvalidInputError, match="n_components=1 is too small: the kernel is a sum of 2 terms"):
        RandomFeatures(Gaussian(1.0) + Laplacian(1.0), n_components=1).fit(X)
    with pytest.raises(ValueError, match="The 'n_components' parameter"):
        RandomFeatures(n_components=0).fit(X)
    with pytest.raises(ValueError, match="The 'orthogonal' parameter"):
        RandomFeatures(orthogonal="yes").fit(X)
    with pytest.raises(InvalidInputError, match="there is no kernel"):
        RandomFeatures("rbff").fit(X)
    with pytest.raises(InvalidInputError, match="products of samples and random frequencies exceed the range"):
        RandomFeatures(gamma=1e100).fit(1e300 * X)
    with pytest.raises(InvalidInputError, match=r"The random frequencies of .* its widths are too small"):
        RandomFeatures(Laplacian(1e308)).fit(X)
    with pytest.raises(InvalidInputError, match="has values that are NaN or infinite: scale the features"):
        RandomFeatures(Linear()).fit(1e300 * X)
