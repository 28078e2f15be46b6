"""KernelCentroid predicts the closest class mean, as it can be seen where features are explicit."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import StandardScaler
from tests.naming import named

from mercer import InvalidInputError, KernelCentroid
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial


def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def explicit_means(psi, X, y):
    return np.array([psi(X[y == c]).mean(axis=0) for c in np.unique(y)])


class TestMeans:
    @pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2, coef0=1.0)], ids=named)
    def test_explicit(self, kernel):
        """Predictions, lengths and distances are those of the means of explicit features."""
        X, y = wine()
        psi = kernel.feature_map(X)
        means = explicit_means(psi, X, y)
        model = KernelCentroid(kernel=kernel).fit(X, y)
        distances = np.linalg.norm(psi(X)[:, None] - means, axis=2)
        np.testing.assert_array_equal(model.predict(X), distances.argmin(axis=1))
        np.testing.assert_allclose(model.centroid_norms_, np.linalg.norm(means, axis=1))
        expected = np.linalg.norm(means[:, None] - means, axis=2)
        np.testing.assert_allclose(model.centroid_distances_, expected, rtol=1e-9, atol=1e-6)

    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
    def test_same_as_sklearn(self, storage):
        """With the linear kernel it is scikit-learn's NearestCentroid."""
        X, y = load_iris(return_X_y=True)
        ours, theirs = KernelCentroid(kernel="linear").fit(storage(X), y), NearestCentroid().fit(X, y)
        np.testing.assert_array_equal(ours.predict(storage(X)), theirs.predict(X))
        coef = ours.coef_.toarray() if sp.issparse(ours.coef_) else ours.coef_
        np.testing.assert_allclose(coef, theirs.centroids_)

    def test_two_classes(self):
        """w = c₊ − c₋ and b = ½(|c₋|² − |c₊|²): [SSBD] Exercise 16.6."""
        X, y = load_iris(return_X_y=True)
        X, y = X[50:], y[50:]
        negative, positive = X[y == 1].mean(axis=0), X[y == 2].mean(axis=0)
        model = KernelCentroid(kernel="linear").fit(X, y)
        np.testing.assert_allclose(model.coef_[0], positive - negative)
        assert model.intercept_[0] == pytest.approx(0.5 * (negative @ negative - positive @ positive))
        assert model.rkhs_norm_[0] == pytest.approx(np.linalg.norm(positive - negative))
        assert model.decision_function(X).shape == (100,)

    def test_a_tie_is_positive(self):
        """A sample as far from both means belongs to the second class."""
        assert KernelCentroid(kernel="linear").fit([[-1.0], [1.0]], ["a", "b"]).predict([[0.0]]) == ["b"]

    def test_weights_are_repetitions(self):
        """Weights 0, 1, 2, … are as many repetitions; a class without weight is never predicted."""
        X, y = wine()
        weight = np.random.default_rng(0).integers(0, 3, len(y))
        again = np.repeat(np.arange(len(y)), weight)
        ours = KernelCentroid(kernel=Gaussian(gamma=0.1)).fit(X, y, weight)
        theirs = KernelCentroid(kernel=Gaussian(gamma=0.1)).fit(X[again], y[again])
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-9, atol=1e-12)
        two = KernelCentroid().fit(X, y, sample_weight=(y != 1).astype(float))
        assert set(two.predict(X)) == {0, 2}


class TestVariants:
    def test_normalize(self):
        """The largest cosine with a mean wins, whatever the lengths of the means."""
        X, y = wine()
        kernel = Polynomial(degree=2, coef0=1.0)
        psi = kernel.feature_map(X)
        means = explicit_means(psi, X, y)
        model = KernelCentroid(kernel=kernel, normalize=True).fit(X, y)
        np.testing.assert_allclose(
            model.decision_function(X), psi(X) @ (means / np.linalg.norm(means, axis=1)[:, None]).T, rtol=1e-8
        )
        with pytest.raises(InvalidInputError, match="the mean of class 'a' is 0: its samples cancel"):
            KernelCentroid(kernel="linear", normalize=True).fit([[-1.0], [1.0], [2.0]], ["a", "a", "b"])

    @pytest.mark.parametrize("shrinkage", [0.0, 0.3, 1.0])
    def test_shrinkage(self, shrinkage):
        """Means are moved by this part of the way to the mean of all samples."""
        X, y = wine()
        means = explicit_means(lambda part: part, X + 1.0, y)
        moved = (1 - shrinkage) * means + shrinkage * (X + 1.0).mean(axis=0)
        model = KernelCentroid(kernel="linear", shrinkage=shrinkage).fit(X + 1.0, y)
        np.testing.assert_allclose(model.coef_, moved, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(model.centroid_norms_, np.linalg.norm(moved, axis=1), rtol=1e-9)

    def test_automatic_shrinkage(self):
        """V/(V + |c_y − c|²) with the unbiased variance V of each mean, as for explicit features."""
        X, y = wine()
        model = KernelCentroid(kernel="linear", shrinkage="auto").fit(X, y)
        for c, shrinkage in enumerate(model.shrinkage_):
            part = X[y == c]
            variance = part.var(axis=0, ddof=1).sum() / len(part)
            distance = np.sum((part.mean(axis=0) - X.mean(axis=0)) ** 2)
            assert shrinkage == pytest.approx(variance / (variance + distance), rel=1e-8)

    def test_small_classes_gain(self):
        """Means of few samples in many dimensions come nearer to the truth by automatic shrinkage."""
        rng = np.random.default_rng(0)
        truth = rng.normal(size=(2, 50)) * 0.3
        y = np.repeat([0, 1], [6, 200])
        X = truth[y] + rng.normal(size=(206, 50))
        model = KernelCentroid(kernel="linear", shrinkage="auto").fit(X, y)
        assert 0.2 < model.shrinkage_[0] < 1.0
        shrunken = (1 - model.shrinkage_[0]) * X[y == 0].mean(axis=0) + model.shrinkage_[0] * X.mean(axis=0)
        assert np.linalg.norm(shrunken - truth[0]) < np.linalg.norm(X[y == 0].mean(axis=0) - truth[0])

    @pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
    @pytest.mark.parametrize("normalize", [False, True])
    @pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", Gaussian(0.1), Laplacian(0.1)], ids=str)
    @pytest.mark.parametrize("size", [1e150, 1e153, 1e160, 1e200, 1e306])
    def test_huge(self, size, kernel, normalize):
        """Samples whose kernel values overflow are an error; where they do not, the model is that of scaled samples."""
        X, y = wine()
        X = X[:, :6] + y[:, None]
        model = KernelCentroid(kernel=kernel, normalize=normalize)
        try:
            model.fit(size * X, y)
        except ValueError as error:
            assert str(error).startswith("The dual coefficients or intercepts are not finite.")
            return
        published = (model.centroid_norms_, model.intercept_, model.dual_coef_, model.rkhs_norm_)
        assert all(np.isfinite(values).all() for values in (*published, model.decision_function(size * X)))
        if isinstance(kernel, str):
            other = KernelCentroid(kernel=kernel, normalize=normalize).fit(X, y)
            np.testing.assert_array_equal(model.predict(size * X), other.predict(X))

    def test_ecosystem(self):
        """Searches over kernels and variants; pickles; a kernel matrix in place of the kernel."""
        X, y = wine()
        grid = {"kernel__gamma": [0.01, 0.1], "normalize": [True, False], "shrinkage": [0.0, "auto"]}
        search = GridSearchCV(KernelCentroid(kernel=Gaussian()), grid, cv=3).fit(X, y)
        assert search.best_score_ > 0.95
        model = search.best_estimator_
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
        K = Gaussian(gamma=0.1)(X)
        known = KernelCentroid(kernel="precomputed").fit(K, y).decision_function(K[:5])
        other = KernelCentroid(kernel=Gaussian(gamma=0.1)).fit(X, y).decision_function(X[:5])
        np.testing.assert_allclose(known, other, rtol=1e-9)
