"""A Gram operator gives the kernel's values, however it is asked for them."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named

from mercer.gram.operator import Evaluations, GramOperator, product, symmetric_product
from mercer.kernels import CallableKernel, Gaussian, Laplacian, Linear, Normalized, Polynomial, Precomputed
from mercer.testing import check_gram

SIZES = [1, 5, 191, 192, 193, 400]
KERNELS = [
    Gaussian(0.3),
    Linear(),
    0.5 * Gaussian(0.1) + Linear() * Laplacian(0.2),
    Normalized(Polynomial(3, 0.5, 1.0)),
]
EPSILON = {np.float32: 1e-5, np.float64: 1e-12}
SHORT_RUNS = {np.float32: 1e-7, np.float64: 1e-13}


def overlap(X, Z):
    """A kernel on sets in pure Python."""
    return [[float(len(x & z)) for z in Z] for x in X]


def samples(n, storage, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 7)) < 0.3, rng.normal(size=(n, 7)), 0.0)
    return sp.csr_array(X) if storage == "csr" else X


def sets(n, seed=0):
    rng = np.random.default_rng(seed)
    return [frozenset(rng.integers(0, 30, size=8).tolist()) for _ in range(n)]


def operator(kernel, n, storage="dense", dtype=np.float64, n_threads=1):
    return GramOperator(kernel, kernel.prepare(samples(n, storage), dtype), n_threads)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_operators_keep_the_contract(kernel, storage, dtype):
    """Rows, blocks, parts, the mirrored matrix and threads agree with single pairs, beyond one mirrored block."""
    check_gram(operator(kernel, 250, storage, dtype))


@pytest.mark.parametrize("n", SIZES)
def test_the_contract_holds_at_the_edges_of_blocks(n):
    """check_gram passes for one sample, and for one less or more than a mirrored block."""
    check_gram(operator(Gaussian(0.3), n))
    check_gram(operator(Gaussian(0.3), n, "csr", np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_from_outside_keep_the_contract(dtype):
    """check_gram passes for a Python function on sets and for a matrix."""
    kernel = CallableKernel(overlap)
    check_gram(GramOperator(kernel, kernel.prepare(sets(60), dtype)))
    X = samples(200, "dense")
    matrix = Precomputed()
    check_gram(GramOperator(matrix, matrix.prepare(X @ X.T, dtype)))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_mirrored_matrix_is_exactly_symmetric(n, dtype):
    """Both triangles have the same bits, and those of the matrix that is computed in full."""
    for storage in ("dense", "csr"):
        gram = operator(Gaussian(0.3), n, storage, dtype)
        K = gram.dense()
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_array_equal(K, gram.rows(gram.features))


def test_a_block_of_no_samples_is_empty():
    """A block of no rows has the shape (0, n)."""
    assert operator(Linear(), 4).block(np.empty(0, np.intp), np.arange(4)).shape == (0, 4)


def test_no_samples_make_empty_results():
    """The matrix has the shape (0, 0), and products are zeros."""
    gram = operator(Linear(), 4)
    empty = np.empty(0, np.intp)
    assert gram.take(empty).dense().shape == (0, 0)
    assert product(Linear(), gram.features.take(empty), gram.features, np.ones(4)).shape == (0,)
    assert product(Linear(), gram.features, gram.features.take(empty), np.ones((0, 2))).tolist() == [[0.0, 0.0]] * 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("kernel", [Gaussian(0.3), KERNELS[2]], ids=named)
def test_products_equal_those_of_the_matrix(kernel, storage, dtype):
    """With one column, with several, and with both triangles from one: K @ weights, to rounding."""
    rng = np.random.default_rng(1)
    a, b = (kernel.prepare(samples(n, storage, seed), dtype) for n, seed in ((230, 2), (401, 3)))
    K = kernel.block(a, b).astype(np.float64)
    for weights in (rng.normal(size=401), rng.normal(size=(401, 1)), rng.normal(size=(401, 5))):
        found = product(kernel, a, b, weights)
        assert found.dtype == np.float64 and found.shape == (230, *weights.shape[1:])
        # of one column only short runs are summed in the values' dtype
        precision = SHORT_RUNS[dtype] if weights.ndim == 1 else EPSILON[dtype]
        allowed = precision * np.abs(K).max() * np.abs(weights).sum(axis=0).max()
        np.testing.assert_allclose(found, K @ weights, rtol=0, atol=allowed)
    square, w = GramOperator(kernel, b).dense().astype(np.float64), rng.normal(size=401)
    allowed = SHORT_RUNS[dtype] * np.abs(square).max() * np.abs(w).sum()
    np.testing.assert_allclose(symmetric_product(kernel, b, w), square @ w, rtol=0, atol=allowed)


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_products_do_not_depend_on_threads_or_batches(storage):
    """Same bits for 1, 2 and 3 threads, and for a sample alone or among others."""
    kernel = Gaussian(0.3)
    rng = np.random.default_rng(1)
    a, b = (kernel.prepare(samples(n, storage, seed), np.float32) for n, seed in ((500, 2), (401, 3)))
    for weights in (rng.normal(size=401), rng.normal(size=(401, 3))):
        one = product(kernel, a, b, weights)
        for n_threads in (2, 3):
            np.testing.assert_array_equal(product(kernel, a, b, weights, n_threads), one)
        some = np.array([499, 3, 250])
        np.testing.assert_array_equal(product(kernel, a.take(some), b, weights), one[some])
    w = rng.normal(size=500)
    one = symmetric_product(kernel, a, w)
    for n_threads in (2, 3):
        np.testing.assert_array_equal(symmetric_product(kernel, a, w, n_threads), one)


@pytest.mark.parametrize("n", SIZES)
def test_evaluations_are_counted(n):
    """All values of rows and products; of symmetric ones little more than a triangle."""
    gram = operator(Linear(), n)
    gram.rows(gram.features.take(np.arange(1)))
    assert gram.evaluations.count == n
    shared = Evaluations()
    product(Linear(), gram.features, gram.features, np.ones(n), 1, shared)
    assert shared.count == n * n
    shared = Evaluations()
    symmetric_product(Linear(), gram.features, np.ones(n), 1, shared)
    assert n * (n + 1) // 2 <= shared.count <= n * (n + 192)
    taken = gram.take(np.arange(n))
    assert taken.evaluations is gram.evaluations


def test_costly_values_have_many_terms():
    """As many as features, or as those that are not zero; none in a given matrix, no end of them in objects."""
    dense = np.ones((4, 130))
    for kernel, samples, terms in (
        (Gaussian(0.1), dense, 130),
        (Gaussian(0.1), dense[:, :7], 7),
        (Gaussian(0.1) + Linear(), dense, 130),
        (Gaussian(0.1), sp.csr_array(np.eye(4, 900)), 1),
        (CallableKernel(lambda a, b: a @ b.T), dense, np.inf),
        (Precomputed(), np.eye(4), 0),
    ):
        gram = GramOperator(kernel, kernel.prepare(samples))
        assert gram.terms == terms
        assert gram.costly == (terms >= 128)
