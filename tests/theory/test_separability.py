"""Separability: against a linear program, and every proof checked by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from mercer import SVC, Gaussian, Linear, Polynomial
from mercer.exceptions import InvalidInputError
from mercer.theory import separability


def by_linear_program(X, y, bias):
    """Whether some w, b have y(⟨w, x⟩ + b) ≥ 1; separability does not depend on the scales of columns."""
    n, d = X.shape
    scale = np.abs(X).max(axis=0)
    Z = X / np.where(scale > 0, scale, 1.0)
    A = -np.column_stack([y[:, None] * Z, y * bias])
    return linprog(np.zeros(d + 1), A_ub=A, b_ub=-np.ones(n), bounds=[(None, None)] * (d + 1)).status == 0


def assert_proven(found, X, y, tol=1e-9):
    """The proof of a separation for the linear kernel, recomputed from its definition."""
    rho = np.linalg.norm(X, axis=1).max()
    beta = found.weights
    assert (y * beta >= 0).all() and np.abs(beta).sum() == pytest.approx(2.0)
    if found.intercept:
        assert beta.sum() == pytest.approx(0.0, abs=1e-12)
    else:
        assert found.bias == 0.0
    residual = np.linalg.norm(beta @ X)
    assert found.decided
    assert found.residual == pytest.approx(max(residual, 2 * found.margin), abs=tol * rho, rel=1e-9)
    if not found.separable:
        assert residual <= tol * rho
        assert found.margin == 0.0 and not found.coef.any() and found.normal is None
        return
    assert np.linalg.norm(found.normal) == pytest.approx(1.0)
    distance = y * (X @ found.normal + found.bias)
    assert distance.min() >= found.margin > 0
    assert distance.min() == pytest.approx(found.margin, abs=1e-12 * rho)
    assert found.margin <= found.margin_bound


def small_set(seed):
    """Small and nasty: integers (hulls that touch), columns or rows of very different scales, far from the origin."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 25)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, d))
    kind = seed % 4
    if kind == 0:
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
    elif kind == 2:
        X *= 10.0 ** rng.integers(-3, 4, size=d)
    elif kind == 3:
        X = X * 10.0 ** rng.integers(-3, 4, size=(n, 1)) + rng.choice([0.0, 0.0, 1e4])
    y = np.where(X @ rng.normal(size=d) + 0.3 > 0, 1, -1) if seed % 3 else np.where(rng.random(n) < 0.5, 1, -1)
    if abs(y.sum()) == n:
        y[0] = -y[0]
    return X, y


@pytest.mark.parametrize("part", range(8))
def test_against_a_linear_program(part):
    """On 320 small data sets, with a bias and without, the answer is the linear program's, and proven."""
    for seed in range(40 * part, 40 * part + 40):
        X, y = small_set(seed)
        (pair,) = separability(X, y).pairs
        for bias, found in ((1, pair.biased), (0, pair.homogeneous)):
            assert found.separable == by_linear_program(X, y, bias), seed
            assert_proven(found, X, y)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_margin_is_the_largest(seed, intercept):
    """Where columns have similar scales the two ends of its interval meet, at the margin of the hard-margin SVC."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 4))
    w = rng.normal(size=4)
    y = np.where(X @ w > 0, 1, -1)
    X += 0.2 * np.outer(y, w / np.linalg.norm(w))
    (pair,) = separability(X, y).pairs
    found = pair.biased if intercept else pair.homogeneous
    assert found.margin == pytest.approx(found.margin_bound, rel=1e-4)
    model = SVC(C=np.inf, kernel="linear", fit_intercept=intercept, tol=1e-8).fit(X, y)
    assert found.margin == pytest.approx(model.margin_[0], rel=1e-4)


class TestKernels:
    def test_exclusive_or(self):
        """Four corners of a square: not by a line, but by ⟨x, z⟩², whose feature x₁x₂ is the answer."""
        X, y = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]), np.array([1, 1, -1, -1])
        assert not separability(X, y).separable
        report = separability(X, y, Polynomial(2, 1.0, 0.0))
        assert report.separable and report.homogeneous
        # √2 x₁x₂ is ±√2
        assert report.margin == pytest.approx(np.sqrt(2), rel=1e-6)

    @pytest.mark.parametrize("seed", range(12))
    def test_the_same_as_with_its_features(self, seed):
        """⟨x, z⟩² is the linear kernel of all products of two features."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(int(rng.integers(4, 16)), 2))
        y = np.where(rng.random(len(X)) < 0.5, 1, -1)
        y[:2] = 1, -1
        phi = np.column_stack([X[:, 0] ** 2, X[:, 1] ** 2, np.sqrt(2) * X[:, 0] * X[:, 1]])
        by_kernel, by_features = separability(X, y, Polynomial(2, 1.0, 0.0)), separability(phi, y)
        assert by_kernel.separable == by_features.separable == by_linear_program(phi, y, 1)
        assert by_kernel.homogeneous == by_features.homogeneous == by_linear_program(phi, y, 0)
        assert by_kernel.decided
        if by_kernel.separable:
            pair, other = by_kernel.pairs[0].biased, by_features.pairs[0].biased
            assert pair.margin <= other.margin_bound * (1 + 1e-6) and other.margin <= pair.margin_bound * (1 + 1e-6)
            K = (X @ X.T) ** 2
            assert pair.coef @ K @ pair.coef == pytest.approx(1.0, rel=1e-6)
            assert (y * (K @ pair.coef + pair.bias) > 0).all()

    def test_a_gaussian_separates_whatever_differs(self):
        """Distinct samples have a matrix of full rank; equal ones with two labels have a common point."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(80, 2)), np.arange(80) % 2
        assert separability(X, y, Gaussian(50.0)).homogeneous
        X[1] = X[0]
        report = separability(X, y, Gaussian(50.0))
        assert not report.separable and report.decided
        np.testing.assert_allclose(np.abs(report.pairs[0].biased.weights[:2]), 1.0, atol=1e-5)

    def test_a_kernel_matrix(self):
        """The answer of a matrix is that of the samples that it was made of."""
        X, y = small_set(5)
        of_matrix, of_samples = separability(X @ X.T, y, "precomputed"), separability(X, y)
        assert of_matrix.separable == of_samples.separable
        assert of_matrix.homogeneous == of_samples.homogeneous

    @pytest.mark.parametrize("storage", [sp.csr_array, np.float32], ids=["csr", "float32"])
    def test_storage(self, storage):
        """Sparse and single-precision samples have the same answer."""
        X, y = np.array([[0.0, 1.0], [0.0, 2.0], [3.0, 0.0]]), [0, 0, 1]
        assert separability(storage(X), y).margin == pytest.approx(separability(X, y).margin, rel=1e-6)


class TestSmall:
    def test_two_points(self):
        """Half their distance, with a bias; through the origin both are on one side."""
        (pair,) = separability([[1.0], [2.0]], ["a", "b"]).pairs
        assert pair.biased.margin == pytest.approx(0.5) == pytest.approx(pair.biased.margin_bound)
        assert (pair.positive, pair.negative) == ("b", "a")
        np.testing.assert_allclose(pair.biased.normal, [1.0])
        assert pair.biased.bias == pytest.approx(-1.5)
        assert not pair.homogeneous.separable
        # 2·1 = 1·2
        np.testing.assert_allclose(pair.homogeneous.weights, [-4 / 3, 2 / 3])

    def test_touching_hulls(self):
        """A sample on the edge of the other class's hull belongs to both: no strict separation."""
        X, y = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.0], [1.0, 5.0]]), np.array([-1, -1, 1, 1])
        (pair,) = separability(X, y).pairs
        assert not pair.biased.separable and pair.biased.residual <= 1e-14
        np.testing.assert_allclose(pair.biased.weights, [-0.5, -0.5, 1.0, 0.0], atol=1e-12)

    def test_a_hair_apart(self):
        """The same sample lifted by 1e-9 is separable, with half of that as its margin."""
        X, y = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1e-9], [1.0, 5.0]]), np.array([-1, -1, 1, 1])
        (pair,) = separability(X, y).pairs
        assert pair.biased.separable
        assert pair.biased.margin <= 5e-10 <= pair.biased.margin_bound * (1 + 1e-6)

    def test_a_sample_at_the_origin(self):
        """It is on no side of any hyperplane through the origin."""
        X, y = np.array([[0.0], [1.0], [-1.0]]), np.array([1, 1, -1])
        report = separability(X, y)
        assert report.separable and not report.homogeneous
        np.testing.assert_allclose(report.pairs[0].homogeneous.weights, [2.0, 0.0, 0.0])

    def test_samples_that_do_not_differ(self):
        """Constant samples cannot be told apart, nor can samples without size."""
        for X in (np.zeros((4, 3)), np.full((4, 3), 7.0), np.full((4, 3), 1e-200)):
            report = separability(X, [0, 1, 0, 1])
            assert not report.separable and not report.homogeneous and report.decided

    @pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e20, 1e200])
    def test_extreme_scales(self, scale):
        """Where squares leave the range of float64, answers and margins scale all the same."""
        X, y = np.array([[1.0, 5.0], [2.0, 0.0], [4.0, 1.0], [5.0, 3.0]]), np.array([0, 0, 1, 1])
        found, reference = separability(scale * X, y).pairs[0].biased, separability(X, y).pairs[0].biased
        assert found.separable and found.margin == pytest.approx(scale * reference.margin, rel=1e-4)
        assert found.rho == pytest.approx(scale * reference.rho)
        assert not separability(scale * X, [0, 1, 0, 1]).homogeneous

    def test_constant_and_huge_columns(self):
        """A constant column, and one far from the origin, do not hide the one that separates."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=40)
        X = np.column_stack([np.full(40, 1e6), 1e6 + rng.normal(size=40), 1e-3 * x])
        report = separability(X, x > 0)
        assert report.separable and report.decided

    def test_several_classes(self):
        """Each pair has its answer, with weights at its own samples."""
        X = np.array([[0.0], [1.0], [10.0], [11.0], [0.5], [20.0]])
        y = np.array([0, 0, 1, 1, 2, 3])
        report = separability(X, y)
        answers = {(p.positive, p.negative): p.biased.separable for p in report.pairs}
        assert answers == {(0, 1): True, (0, 2): False, (0, 3): True, (1, 2): True, (1, 3): True, (2, 3): True}
        assert not report.separable and report.margin == 0.0
        for pair in report.pairs:
            assert set(y[pair.biased.weights != 0]) == {pair.positive, pair.negative}
        assert str(report).startswith("Separability with Linear(): 5 of 6 pairs of classes are separable\n0 against 1")

    def test_text(self):
        """The report of one pair, in full."""
        report = separability([[0.0], [1.0], [3.0]], [0, 0, 1])
        assert str(report) == (
            "Separability with Linear(), 1 against 0, 3 samples\n"
            "  with a bias         separable, margin between 1 and 1, radius 3\n"
            "  through the origin  NOT separable: 1 sample combines to the origin, one class mirrored, to within 0 "
            "(radius 3)"
        )


class TestErrors:
    def test_one_class(self):
        """There is nothing to separate."""
        with pytest.raises(InvalidInputError, match="The number of classes has to be greater than one"):
            separability([[0.0], [1.0]], [1, 1])

    def test_no_kernel(self):
        """An indefinite kernel has no feature space."""
        with pytest.raises(InvalidInputError, match="is not positive semidefinite, so there is no feature space"):
            separability([[0.0], [1.0]], [0, 1], "sigmoid")

    @pytest.mark.parametrize("X", [[[np.nan], [1.0]], [[np.inf], [1.0]], [["a"], ["b"]], [], [1.0, 2.0]], ids=repr)
    def test_no_samples(self, X):
        """scikit-learn's errors for what is no matrix of numbers."""
        with pytest.raises(ValueError):
            separability(X, [0, 1])

    def test_different_lengths(self):
        """As many labels as samples."""
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            separability([[0.0], [1.0]], [0, 1, 1])

    def test_a_kernel_class(self):
        """A class is no kernel."""
        with pytest.raises(InvalidInputError, match="write Linear"):
            separability([[0.0], [1.0]], [0, 1], Linear)
