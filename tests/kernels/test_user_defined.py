"""Kernels that come from outside: functions and matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named

from mercer.exceptions import InvalidInputError
from mercer.kernels import CallableKernel, Gaussian, Normalized, Precomputed
from mercer.testing import check_kernel

WORDS = ["kernel", "colonel", "margin", "imagine", "dual", "", "primal", "support", "vector", "sector", "a", "aa",
         "aaa", "b", "ab", "ba", "bb", "abab", "baba", "x"]  # fmt: skip


def common_letters(X, Z):
    return np.array([[sum(min(x.count(c), z.count(c)) for c in set(x)) for z in Z] for x in X])


class TestCallable:
    def test_samples_are_handed_over_as_they_came(self):
        """The function gets lists of a list, arrays of an array, CSR of CSR."""
        seen = []

        def function(X, Z):
            seen.append((type(X), type(Z)))
            return np.ones(
                (len(X) if isinstance(X, list) else X.shape[0], len(Z) if isinstance(Z, list) else Z.shape[0])
            )

        kernel = CallableKernel(function)
        for samples, kind in (
            (WORDS, list),
            (np.ones((4, 2)), np.ndarray),
            (sp.csr_array(np.ones((4, 2))), sp.csr_array),
        ):
            features = kernel.prepare(samples)
            kernel.block(features.take(np.array([1, 0])), features)
            kernel.diagonal(features)
            assert set(seen) == {(kind, kind)}
            seen.clear()

    def test_strings_conform(self):
        """check_kernel passes for a pure Python kernel on strings."""
        check_kernel(CallableKernel(common_letters), WORDS)
        check_kernel(Normalized(CallableKernel(common_letters)) ** 2 + 1.0, WORDS)

    def test_the_diagonal_of_many_samples(self):
        """The diagonal is right for several blocks and an incomplete one."""
        kernel = CallableKernel(common_letters)
        words = WORDS * 2
        np.testing.assert_array_equal(kernel.diagonal(kernel.prepare(words)), [len(word) for word in words])

    def test_the_function_keeps_its_matrix(self):
        """What a function returns is copied: scaling a kernel does not change it."""
        matrix = np.ones((2, 2))
        kernel = 3.0 * CallableKernel(lambda X, Z: matrix)
        kernel([1, 2])
        np.testing.assert_array_equal(matrix, 1.0)

    def test_lists_and_sparse_matrices_are_matrices(self):
        """The function may return a list or a sparse matrix of the right shape."""
        for result in ([[1, 2], [3, 4]], sp.csr_array([[1, 2], [3, 4]])):
            np.testing.assert_array_equal(CallableKernel(lambda X, Z, r=result: r)("ab"), [[1.0, 2.0], [3.0, 4.0]])

    def test_equal_functions_are_equal_kernels(self):
        """Kernels are equal if their functions are the same object."""
        assert CallableKernel(common_letters) == CallableKernel(common_letters)
        assert repr(CallableKernel(common_letters)) == "CallableKernel(common_letters)"
        assert CallableKernel(common_letters) != CallableKernel(np.dot)

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (
                lambda X, Z: np.ones((len(Z), len(X))),
                "returned a matrix of shape (3, 2) for 2 and 3 samples: the shape must be (2, 3), one row for each "
                "sample of the first argument, one column for each of the second.",
            ),
            (
                lambda X, Z: np.ones(2),
                "returned a matrix of shape (2,) for 2 and 3 samples: the shape must be (2, 3), one row for each "
                "sample of the first argument, one column for each of the second.",
            ),
            (
                lambda X, Z: np.full((2, 3), "a"),
                "must return real numbers, but returned a matrix of <U1.",
            ),
            (
                lambda X, Z: np.full((2, 3), 1j),
                "must return real numbers, but returned a matrix of complex128.",
            ),
        ],
        ids=named,
    )
    def test_what_is_no_matrix_of_the_pairs_is_refused(self, function, message):
        """The error names the shape found and the shape needed."""
        function.__qualname__ = "f"
        with pytest.raises(InvalidInputError) as error:
            CallableKernel(function)(["a", "b"], ["a", "b", "c"])
        assert str(error.value) == f"CallableKernel(f) {message}"

    def test_what_is_no_function_is_refused(self):
        """The constructor raises if it is not given a function."""
        with pytest.raises(InvalidInputError) as error:
            CallableKernel("rbf")
        assert str(error.value) == "CallableKernel needs a function f(X, Z) that returns a matrix, but was given 'rbf'."


class TestPrecomputed:
    X = np.random.default_rng(0).normal(size=(30, 3))
    Z = np.random.default_rng(1).normal(size=(7, 3))
    K = Gaussian(0.3)(X)
    KZ = Gaussian(0.3)(Z, X)

    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, np.asfortranarray])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_a_sample_keeps_its_column(self, storage, dtype):
        """In a fit, rows i against columns j are K[i, j]; in a prediction, new rows against support vectors."""
        kernel = Precomputed()
        train, test = kernel.prepare(storage(self.K), dtype), kernel.prepare(storage(self.KZ), dtype)
        for support in (np.array([3, 17, 4]), np.arange(5, 20), np.arange(30), np.array([], int)):
            b = train.take(support)
            np.testing.assert_array_equal(kernel.block(train, b), self.K[:, support].astype(dtype))
            np.testing.assert_array_equal(kernel.block(test, b), self.KZ[:, support].astype(dtype))
            few = np.array([2, 0])
            expected = self.KZ[np.ix_(few, support)].astype(dtype)
            np.testing.assert_array_equal(kernel.block(test.take(few), b), expected)
            out = np.full((4, len(support)), 7, dtype)
            kernel.block(test.take(few), b.without_matrix(), out[1:3])
            np.testing.assert_array_equal(out[1:3], expected)
            assert np.all(out[[0, -1]] == 7)
        again = train.take(np.array([9, 3, 5])).take(np.array([2, 0]))
        np.testing.assert_array_equal(kernel.block(again, again), self.K[np.ix_([5, 9], [5, 9])].astype(dtype))
        np.testing.assert_array_equal(kernel.diagonal(again), self.K[[5, 9], [5, 9]])

    def test_a_square_matrix_of_new_samples(self):
        """As many new samples as training samples: their own columns are not used."""
        kernel = Precomputed()
        square = Gaussian(0.3)(self.Z, self.Z + 1)
        train, test = kernel.prepare(Gaussian(0.3)(self.Z)), kernel.prepare(square)
        np.testing.assert_array_equal(kernel.block(test, train.take(np.array([1, 4]))), square[:, [1, 4]])

    def test_the_matrix_is_not_copied(self):
        """prepare and take do not copy the matrix; block always does."""
        train = Precomputed().prepare(self.K, np.float32)
        assert train.matrix is self.K
        assert train.take(np.arange(3)).matrix is self.K
        assert not np.shares_memory(Precomputed()(self.K), self.K)

    def test_it_conforms(self):
        """The public conformance check finds nothing, in combinations too."""
        check_kernel(Precomputed(), self.K)
        check_kernel(0.5 * Normalized(Precomputed()) + Precomputed() ** 2 + 1.0, self.K)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (
                lambda train, test: Precomputed().block(test, test),
                "Precomputed() needs the square matrix K[i, j] = k(x_i, x_j) between the training samples, but the "
                "matrix has the shape (7, 30).",
            ),
            (
                lambda train, test: Precomputed().diagonal(test),
                "Precomputed() needs the square matrix K[i, j] = k(x_i, x_j) between the training samples, but the "
                "matrix has the shape (7, 30).",
            ),
            (
                lambda train, test: Precomputed().block(
                    Precomputed().prepare(np.ones((7, 12))), train.take(np.arange(12))
                ),
                "Precomputed() was given rows of 12 values, but there are 30 training samples. Give one column for "
                "each training sample, in the same order, whether or not it is a support vector.",
            ),
            (
                lambda train, test: Precomputed().prepare(np.ones(3)),
                "Precomputed() takes a kernel matrix, but the array has the shape (3,). Give K[i, j] = k(x_i, x_j) "
                "with a row for each sample and a column for each training sample.",
            ),
        ],
        ids=named,
    )
    def test_other_shapes_are_refused(self, call, message):
        """Errors say what was found, what is allowed and what to do."""
        with pytest.raises(InvalidInputError) as error:
            call(Precomputed().prepare(self.K), Precomputed().prepare(self.KZ))
        assert str(error.value) == message
