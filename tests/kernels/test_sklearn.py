"""scikit-learn's kernels, translated or asked, have scikit-learn's values and derivatives."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as theirs
from tests.naming import named

from mercer import GaussianProcessRegressor
from mercer.exceptions import InvalidInputError
from mercer.kernels import SklearnKernel

X, Z = np.random.default_rng(0).normal(size=(2, 9, 2))
FIXED = "fixed"
TRANSLATED = [
    theirs.ConstantKernel(2.0) * theirs.RBF(0.7) + theirs.WhiteKernel(0.1),
    theirs.RBF([0.7, 2.0]) * theirs.ConstantKernel(3.0),
    theirs.RBF(0.7, FIXED) + theirs.WhiteKernel(0.1),
    theirs.ConstantKernel(2.0, FIXED) * theirs.Matern(0.9, nu=1.5),
    theirs.Matern([0.5, 2.0], nu=2.5) + theirs.Matern(0.9, nu=0.5) + theirs.Matern(0.9, nu=np.inf),
    theirs.RationalQuadratic(0.7, 1.3),
    theirs.RationalQuadratic(0.7, 1.3, alpha_bounds=FIXED, length_scale_bounds=FIXED) * theirs.DotProduct(0.4),
    theirs.DotProduct(0.4) ** 2,
]
ASKED = [
    theirs.Matern(0.9, nu=0.8),
    theirs.ExpSineSquared(1.2, 0.9),  # of two features
    theirs.PairwiseKernel(metric="laplacian", gamma=0.5) + theirs.WhiteKernel(0.1),
    theirs.DotProduct(0.4) ** 1.5 + theirs.ConstantKernel(30.0),
]


@pytest.mark.parametrize("theirs", TRANSLATED + ASKED, ids=named)
class TestEquality:
    def test_values(self, theirs):
        """The matrix, the matrix between two sets, and the diagonal are scikit-learn's."""
        ours = SklearnKernel(theirs).bind(X)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(ours.diagonal(ours.prepare(X)), theirs.diag(X), rtol=1e-12)

    def test_derivatives(self, theirs):
        """Σ weights ∂K, in scikit-learn's order, also for a part of the matrix."""
        ours = SklearnKernel(theirs).bind(X)
        with np.errstate(invalid="ignore"):
            _, gradient = theirs(X, eval_gradient=True)
            features = ours.prepare(X)
            weights = np.random.default_rng(1).normal(size=(9, 9))
            found = ours.gradient_products(features, features, weights)
            np.testing.assert_allclose(found, np.einsum("ij,ijk->k", weights, gradient), rtol=2e-4, atol=1e-8)
            rows, columns = np.array([7, 2, 4]), np.array([1, 4, 5, 8])
            found = ours.gradient_products(features.take(rows), features.take(columns), weights[:3, :4])
            expected = np.einsum("ij,ijk->k", weights[:3, :4], gradient[np.ix_(rows, columns)])
            np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-8)

    def test_parameters(self, theirs):
        """theta, bounds and names are scikit-learn's, and it is not touched."""
        before = theirs.theta.copy()
        ours = SklearnKernel(theirs)
        np.testing.assert_array_equal(ours.theta, theirs.theta)
        np.testing.assert_array_equal(ours.bounds, theirs.bounds)
        changed = ours.with_theta(ours.theta + 0.5)
        np.testing.assert_allclose(changed.theta, before + 0.5)
        np.testing.assert_array_equal(theirs.theta, before)
        assert [h.value for h in ours.hyperparameters()] == pytest.approx(np.exp(before).tolist())


@pytest.mark.parametrize("theirs", TRANSLATED, ids=named)
def test_what_has_an_equal_is_computed_by_it(theirs):
    """Kernels with an equivalent of mercer do not call scikit-learn."""
    assert SklearnKernel(theirs).bind(X).equal is not None


def test_one_periodic_feature_has_an_equal():
    """With one feature, scikit-learn's ExpSineSquared equals Periodic."""
    kernel, x = theirs.ExpSineSquared(1.2, 0.9, periodicity_bounds=FIXED), X[:, :1]
    ours = SklearnKernel(kernel).bind(x)
    assert ours.equal is not None
    np.testing.assert_allclose(ours(x), kernel(x), rtol=1e-12)


@pytest.mark.parametrize("theirs", ASKED, ids=named)
def test_others_are_asked(theirs):
    """Kernels without an equivalent compute their values themselves."""
    assert SklearnKernel(theirs).bind(X).equal is None


def test_it_is_a_value_in_the_algebra():
    """Sums of scikit-learn's and mercer's kernels, equality, hashing."""
    from mercer.kernels import Linear

    a, b = SklearnKernel(theirs.RBF(2.0)), SklearnKernel(theirs.RBF(2.0))
    assert a == b and hash(a) == hash(b) and a != SklearnKernel(theirs.RBF(3.0))
    np.testing.assert_allclose((a + Linear())(X), theirs.RBF(2.0)(X) + X @ X.T)
    with pytest.raises(InvalidInputError, match=r"SklearnKernel takes a kernel of sklearn.gaussian_process.kernels"):
        SklearnKernel(len)


@pytest.mark.parametrize(
    "compound",
    [
        theirs.CompoundKernel([theirs.RBF(), theirs.RBF(2.0)]),
        theirs.RBF() + theirs.CompoundKernel([theirs.RBF(), theirs.RBF(2.0)]),
        theirs.Exponentiation(theirs.CompoundKernel([theirs.RBF(), theirs.RBF(2.0)]), 2),
    ],
    ids=["alone", "in_a_sum", "in_a_power"],
)
def test_several_kernels_are_no_covariance(compound):
    """CompoundKernel has a matrix for each of its kernels: the error says what to do, also from an estimator."""
    for make in (SklearnKernel, lambda kernel: GaussianProcessRegressor(kernel).fit(X, X[:, 0])):
        with pytest.raises(InvalidInputError) as caught:
            make(compound)
        assert str(caught.value) == (
            "CompoundKernel holds several kernels with a matrix each: scikit-learn's GaussianProcessClassifier builds "
            "it from the kernels of its classes. One process has one covariance: add or multiply the kernels, or fit "
            "one process per kernel."
        )


class Cube(theirs.RBF):
    """A kernel of a user's, which returns something else than a matrix."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return np.ones((len(X), len(X if Y is None else Y), 2))


def test_what_is_no_matrix():
    """The error names the shape found and the shape needed."""
    with pytest.raises(InvalidInputError, match=r"returned an array of shape \(9, 9, 2\) for 9 and 9 samples: it must"):
        SklearnKernel(Cube())(X)
