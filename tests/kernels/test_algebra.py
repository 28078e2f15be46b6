"""Kernels made of kernels: values, memory, printing, and what they know of themselves."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.naming import named

from mercer.exceptions import InvalidInputError
from mercer.kernels import (
    CallableKernel,
    Constant,
    Cosine,
    Gaussian,
    Laplacian,
    LearnedKernel,
    Linear,
    Min,
    Normalized,
    On,
    Polynomial,
    Power,
    Precomputed,
    Product,
    Scaled,
    Sigmoid,
    Sum,
    parse_kernel,
)
from mercer.kernels.features import JointFeatures, VectorFeatures
from mercer.testing import check_kernel

X = np.random.default_rng(0).exponential(size=(9, 3)).astype(np.float32).astype(np.float64)
Z = np.random.default_rng(1).exponential(size=(5, 3)).astype(np.float32).astype(np.float64)


def product_of_rows(X, Z):
    return X @ Z.T


LEAVES = st.sampled_from(
    [
        Linear(),
        Gaussian(0.5),
        Gaussian((0.1, 0.2, 0.3)),
        Laplacian(0.3),
        Cosine(),
        Min(),
        Polynomial(2, 0.5, 1.0),
        Constant(0.5),
        On((0, 2), Gaussian(1.0)),
        On(1, Linear()),
    ]
)
FACTORS = st.sampled_from([0.0, 0.5, 2.0, 1e-3])


def compound(inner):
    return st.one_of(
        st.builds(Sum, inner, inner),
        st.builds(Product, inner, inner),
        st.builds(Scaled, FACTORS, inner),
        st.builds(Power, inner, st.integers(1, 3)),
        st.builds(Normalized, inner),
    )


KERNELS = st.recursive(LEAVES, compound, max_leaves=6)


def by_matrices(kernel, A, B):
    """Evaluate the same expression on whole matrices."""
    if isinstance(kernel, Sum):
        return by_matrices(kernel.left, A, B) + by_matrices(kernel.right, A, B)
    if isinstance(kernel, Product):
        return by_matrices(kernel.left, A, B) * by_matrices(kernel.right, A, B)
    if isinstance(kernel, Scaled):
        return kernel.factor * by_matrices(kernel.kernel, A, B)
    if isinstance(kernel, Power):
        return by_matrices(kernel.kernel, A, B) ** kernel.exponent
    if isinstance(kernel, Constant):
        return np.full((len(A), len(B)), kernel.value)
    if isinstance(kernel, On):
        columns = [kernel.columns] if isinstance(kernel.columns, int) else list(kernel.columns)
        return by_matrices(kernel.kernel, A[:, columns], B[:, columns])
    if isinstance(kernel, Normalized):
        lengths = [np.sqrt(np.diagonal(by_matrices(kernel.kernel, S, S))) for S in (A, B)]
        inverse = [np.where(length > 0, 1 / np.maximum(length, 1e-300), 0) for length in lengths]
        return by_matrices(kernel.kernel, A, B) * inverse[0][:, None] * inverse[1]
    return kernel(A, B)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(KERNELS)
def test_values_are_those_of_the_matrices(kernel):
    """Sums of kernels are sums of matrices, and so on, however deep, dense or CSR; nothing else is written."""
    expected = by_matrices(kernel, X, Z)
    scale = np.abs(by_matrices(kernel, np.vstack([X, Z]), np.vstack([X, Z]))).max()
    np.testing.assert_allclose(kernel(X, Z), expected, atol=1e-12 * scale)
    a, b = kernel.prepare(sp.csr_array(X)), kernel.prepare(sp.csr_array(Z))
    around = np.full((11, 5), 7.0)
    kernel.block(a, b, around[1:-1])
    np.testing.assert_allclose(around[1:-1], expected, atol=1e-10 * scale)
    assert np.all(around[[0, -1]] == 7)
    order = np.array([3, 0, 8])
    np.testing.assert_allclose(kernel.block(a.take(order), b), expected[order], atol=1e-10 * scale)
    np.testing.assert_allclose(kernel.diagonal(a), np.diagonal(by_matrices(kernel, X, X)), atol=1e-10 * scale)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(KERNELS)
def test_the_printed_expression_builds_the_kernel(kernel):
    """By eval and by parse_kernel; copies are equal and have the same hash."""
    import mercer.kernels

    names = {name: getattr(mercer.kernels, name) for name in mercer.kernels.__all__}
    assert eval(repr(kernel), names) == kernel
    assert parse_kernel(repr(kernel)) == kernel
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy == kernel
    assert hash(copy) == hash(kernel)
    assert kernel.set_params(**kernel.get_params()) == kernel


@settings(max_examples=30, deadline=None, derandomize=True)
@given(KERNELS)
def test_sums_products_multiples_and_powers_stay_positive_semidefinite(kernel):
    """The property positive_semidefinite is true, and the eigenvalues agree."""
    assert kernel.positive_semidefinite
    K = kernel(X)
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -1e-12 * max(eigenvalues[-1], 1e-300)


CONFORMING = [
    0.5 * Gaussian() + Linear(),
    (Linear() + 1.0) ** 5,
    Gaussian((0.1, 0.2, 0.3)) + Min() * Laplacian() + 2.0 * Normalized(Linear() + Gaussian()),
    On((0, 2), Gaussian()) * On(1, Min()),
    On(slice(0, 3), Linear() + Gaussian((0.1, 0.2, 0.3))),
    Normalized(Polynomial(2, "scale", 1.0)),
    CallableKernel(product_of_rows) + Linear(),
    Constant(2.0),
    Constant(1.0) + 2.0,
    -1.0 * Linear() + Sigmoid(0.1),
]


@pytest.mark.parametrize("kernel", CONFORMING, ids=named)
def test_combinations_conform(kernel):
    """check_kernel passes for combinations."""
    check_kernel(kernel, X)


class TestOperators:
    def test_numbers_are_constants_and_factors(self):
        """k + 1 adds a constant kernel, 2 k scales, on either side, numpy's numbers too."""
        k = Linear()
        assert k + 1 == Sum(k, Constant(1.0))
        assert 1.0 + k == Sum(Constant(1.0), k)
        assert 2 * k == k * 2.0 == np.float64(2) * k == k * np.float32(2) == Scaled(2.0, k)
        assert k**3 == k ** np.int64(3) == Power(k, 3)
        assert k + k * k == Sum(k, Product(k, k))

    def test_python_can_sum_kernels(self):
        """sum() starts from 0, which adds nothing to the kernel."""
        assert sum([Linear(), Gaussian(), Min()]) == Linear() + Gaussian() + Min()

    @pytest.mark.parametrize("other", ["linear", None, np.ones(3), [Linear()]])
    def test_other_operands_are_refused(self, other):
        """Other operands raise Python's TypeError."""
        for operation in (lambda: Linear() + other, lambda: other * Linear()):
            with pytest.raises(TypeError):
                operation()

    @pytest.mark.parametrize(
        ("kernel", "text"),
        [
            (0.5 * Gaussian(0.1) + Linear(), "0.5 * Gaussian(gamma=0.1) + Linear()"),
            (Linear() + (Min() + Cosine()), "Linear() + (Min() + Cosine())"),
            (Linear() + Min() + Cosine(), "Linear() + Min() + Cosine()"),
            (Linear() * (Min() * Cosine()), "Linear() * (Min() * Cosine())"),
            ((Linear() + Min()) * Cosine(), "(Linear() + Min()) * Cosine()"),
            (2 * (Linear() + Min()), "2.0 * (Linear() + Min())"),
            (2 * (Linear() * Min()), "2.0 * (Linear() * Min())"),
            (2 * Linear() * Min(), "2.0 * Linear() * Min()"),
            (0.5 * (2 * Linear()), "0.5 * (2.0 * Linear())"),
            (2 * Linear() ** 3, "2.0 * Linear() ** 3"),
            ((2 * Linear()) ** 3, "(2.0 * Linear()) ** 3"),
            ((Linear() ** 2) ** 3, "(Linear() ** 2) ** 3"),
            (Linear() + 1, "Linear() + 1.0"),
            (1 + Linear(), "1.0 + Linear()"),
            (Linear() + -1.5, "Linear() + -1.5"),
            (Linear() * Constant(2.0), "Linear() * Constant(value=2.0)"),
            (Constant(1.0) + 2, "Constant(value=1.0) + 2.0"),
            (-2 * Linear() + Min(), "-2.0 * Linear() + Min()"),
            (Normalized(Linear() + 1), "Normalized(Linear() + 1.0)"),
            (On([3, 4, 5, 6], Linear()), "On(slice(3, 7), Linear())"),
            (On(("a", "b"), Linear()), "On(('a', 'b'), Linear())"),
        ],
        ids=named,
    )
    def test_expressions_are_printed_with_as_few_parentheses_as_possible(self, kernel, text):
        """Parentheses are printed only where Python's precedence needs them."""
        assert repr(kernel) == str(kernel) == text


class TestSharing:
    def test_operands_that_prepare_alike_share_their_samples(self):
        """Unweighted vectors are prepared once, for all of a sum: no wrapper is left."""
        kernel = 0.5 * Gaussian(0.1) + Linear() * Min() + 1.0
        assert isinstance(kernel.prepare(X), VectorFeatures)

    def test_each_way_is_prepared_once(self):
        """Equal widths and equal columns are shared, others are not."""
        weighted = Gaussian((0.1, 0.2, 0.3))
        kernel = weighted + Linear() + weighted * Min() + On((0, 1), Linear()) + On((0, 1), Laplacian(0.1))
        features = kernel.prepare(X)
        assert isinstance(features, JointFeatures)
        assert [part.d for part in features.parts] == [3, 3, 2]

    def test_shared_samples_are_still_checked(self):
        """Min refuses negative numbers, also where Linear has prepared them."""
        with pytest.raises(InvalidInputError, match="Min compares histograms"):
            (Linear() + Min()).prepare(-X)
        with pytest.raises(InvalidInputError, match="Min compares histograms"):
            (On(0, Linear()) + On(0, Normalized(Linear()) + Min())).prepare(-X)

    def test_one_more_block_per_level_at_most(self):
        """A sum of eight kernels needs one block beside its result."""
        n = 400
        S = np.random.default_rng(0).normal(size=(n, 3))
        kernel = sum(Gaussian(g) for g in range(8)) ** 3
        features = kernel.prepare(S)
        out = np.empty((n, n))
        kernel.block(features, features, out)
        tracemalloc.start()
        kernel.block(features, features, out)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1.2 * out.nbytes


class TestPositiveSemidefinite:
    def test_it_composes(self):
        """Sums and products need both operands to be psd, multiples a non-negative factor."""
        good, bad = Linear(), Sigmoid()
        assert (good + good).positive_semidefinite and (good * good).positive_semidefinite
        assert not (good + bad).positive_semidefinite and not (bad * good).positive_semidefinite
        assert (2 * good).positive_semidefinite and not (-2 * good).positive_semidefinite
        assert (0 * bad).positive_semidefinite
        assert (good**2).positive_semidefinite and not (bad**2).positive_semidefinite
        assert Constant(1.0).positive_semidefinite and not Constant(-1.0).positive_semidefinite
        assert not Normalized(bad).positive_semidefinite and not On(0, bad).positive_semidefinite

    def test_whether_it_is_assumed_composes_too(self):
        """It is assumed if a function or a matrix is anywhere inside."""
        function = CallableKernel(product_of_rows)
        assert not (Linear() + Min() * 2).psd_is_assumed
        for kernel in (function, function + Linear(), Normalized(2 * function) ** 2, On(0, function), Precomputed()):
            assert kernel.psd_is_assumed


def test_parameters_of_nested_kernels_have_paths():
    """left__kernel__gamma, as scikit-learn's grids name them; the kernel itself never changes."""
    kernel = 0.5 * Gaussian(0.1) + Linear()
    assert kernel.get_params()["left__kernel__gamma"] == 0.1
    changed = kernel.set_params(left__kernel__gamma=0.2, left__factor=2.0)
    assert changed == 2.0 * Gaussian(0.2) + Linear()
    assert kernel == 0.5 * Gaussian(0.1) + Linear()
    assert kernel.set_params(left=Min(), right=Gaussian(), right__gamma=0.5) == Min() + Gaussian(0.5)


def test_binding_reaches_every_kernel():
    """bind sets gamma="scale" of each operand from the columns that it sees."""
    kernel = On(0, Gaussian()) + 2 * Normalized(Laplacian())
    bound = kernel.bind(X)
    assert bound == On(0, Gaussian(1 / X[:, 0].var())) + 2 * Normalized(Laplacian(1 / 3))


def test_domains_combine():
    """A combination has the domain of its most specific operand."""
    function = CallableKernel(product_of_rows)
    assert (Linear() + 1).domain == (function * Linear()).domain == On(0, Linear()).domain == "vectors"
    assert function.domain == Constant(1.0).domain == (function + 1).domain == "any"
    assert On("price", Linear()).domain == (On("price", Linear()) + Linear()).domain == "records"
    assert (Precomputed() + 1).domain == "matrix"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Linear() ** 0.5, "exponent=0.5 must be a whole number, at least 1."),
        (lambda: Linear() ** 0, "exponent=0 must be a whole number, at least 1."),
        (lambda: np.inf * Linear(), "factor=inf must be a finite number."),
        (lambda: Linear() + np.nan, "value=nan must be a finite number."),
        (
            lambda: Sum(Linear(), "linear"),
            "Sum is made of kernels, but right is 'linear'. Write a text as parse_kernel(text), a function as "
            "CallableKernel(function), a number as Constant(number).",
        ),
        (
            lambda: 2 * Precomputed() + Gaussian(0.5),
            "2.0 * Precomputed() takes the rows of a kernel matrix, Gaussian(gamma=0.5) takes the samples themselves: "
            "they cannot be combined. Compute the second matrix too, combine the two matrices and use Precomputed().",
        ),
    ],
    ids=named,
)
def test_what_cannot_be_combined_is_said_in_full(call, message):
    """Errors say what was found, what is allowed and what to do."""
    with pytest.raises(InvalidInputError) as error:
        call()
    assert str(error.value) == message


def test_learned_kernel_is_the_weighted_sum():
    """Values, diagonal, printing and conformance of Σ weight k, whose kernels without a weight are not computed."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    kernels = (Gaussian(0.5), Linear(), On(1, Gaussian(2.0)))
    kernel = LearnedKernel(kernels, (0.5, 0.0, 2.0))
    np.testing.assert_allclose(kernel(X), 0.5 * kernels[0](X) + 2.0 * kernels[2](X), rtol=1e-14)
    assert len(kernel.leaves()) == 2
    np.testing.assert_allclose(kernel.expression()(X), kernel(X), rtol=1e-14)
    check_kernel(kernel, X)
    check_kernel(LearnedKernel((Gaussian(), Linear()), (1.0, 1e-3)), X)
    np.testing.assert_array_equal(LearnedKernel((Linear(),), (0.0,))(X), 0.0)


@pytest.mark.parametrize(
    ("kernels", "weights", "message"),
    [
        ((Linear(),), (1.0, 2.0), "1 kernels and 2 weights"),
        ((), (), "0 kernels and 0 weights"),
        ((Linear(),), (-1.0,), "The weight -1 was given"),
        (("linear",), (1.0,), "is made of kernels, but was given 'linear'"),
        (Linear(), (1.0,), "needs a tuple of kernels"),
        ((Linear(), Precomputed()), (1.0, 1.0), "cannot be combined"),
    ],
    ids=named,
)
def test_learned_kernels_that_cannot_be(kernels, weights, message):
    """Invalid kernels and weights raise an error that says what is wrong."""
    with pytest.raises(InvalidInputError, match=message):
        LearnedKernel(kernels, weights)
