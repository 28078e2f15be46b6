"""Kernels on some columns, and kernels of angles."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from tests.reference import formulas as reference

from mercer.exceptions import InvalidInputError
from mercer.kernels import CallableKernel, Cosine, Gaussian, Linear, Min, Normalized, On, Polynomial, Sigmoid
from mercer.testing import check_kernel

X = np.random.default_rng(0).exponential(size=(8, 4))


class TestNormalized:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_it_divides_by_both_lengths(self, dtype):
        """k(x, z) / sqrt(k(x, x) k(z, z)), by the double loop."""
        kernel = Normalized(Polynomial(3, 0.5, 1.0))
        features = kernel.prepare(X, dtype)
        K = reference.gram(reference.normalized(reference.polynomial(3, 0.5, 1.0)), X.tolist(), X.tolist())
        np.testing.assert_allclose(kernel.block(features, features), K, rtol=1e-5 if dtype == np.float32 else 1e-12)
        np.testing.assert_array_equal(kernel.diagonal(features), 1.0)

    def test_normalised_linear_is_cosine(self):
        """Normalized(Linear()) equals Cosine(); rows of zeros give 0."""
        S = X.copy()
        S[2] = 0
        np.testing.assert_allclose(Normalized(Linear())(S), Cosine()(S), atol=1e-14)
        assert Normalized(Linear())(S)[2, 2] == 0
        assert Normalized(Linear()).diagonal(Normalized(Linear()).prepare(S))[2] == 0

    def test_parts_keep_their_lengths(self):
        """take() does not compute diagonals again."""
        kernel = Normalized(Linear())
        features = kernel.prepare(X)
        part = features.take(np.array([5, 1]))
        np.testing.assert_array_equal(part.scale, features.scale[[5, 1]])
        np.testing.assert_allclose(kernel.block(part, features), kernel(X)[[5, 1]])

    def test_a_negative_length_is_refused(self):
        """k(x, x) < 0 raises an error."""
        with pytest.raises(InvalidInputError) as error:
            Normalized(Sigmoid(1.0, -10.0))(np.array([[3.0], [1.0]]))
        assert str(error.value) == (
            "Normalized(Sigmoid(gamma=1.0, coef0=-10.0)) divides by the square root of k(x, x), but k(x, x) = -1 for "
            "sample 1. A kernel has k(x, x) >= 0: choose other parameters, or another kernel."
        )


def same_letters(X, Z):
    return np.array([[len(set(x) & set(z)) for z in Z] for x in X])


class TestOn:
    @pytest.mark.parametrize(
        ("columns", "expected"),
        [
            (2, [2]),
            (-1, [3]),
            ((0, 3), [0, 3]),
            ([3, 0], [3, 0]),
            (slice(1, 3), [1, 2]),
            (slice(0, 4, 2), [0, 2]),
            (range(2), [0, 1]),
            (np.array([1, 2]), [1, 2]),
            (np.array([True, False, False, True]), [0, 3]),
        ],
    )
    @pytest.mark.parametrize(
        "storage", [np.asarray, sp.csr_array, sp.coo_array, pd.DataFrame, pl.DataFrame, np.ndarray.tolist]
    )
    def test_columns_of_every_storage(self, columns, expected, storage):
        """On gives the values of the inner kernel on the chosen columns."""
        np.testing.assert_allclose(On(columns, Linear())(storage(X)), X[:, expected] @ X[:, expected].T, rtol=1e-12)

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_columns_by_name(self, frame):
        """Numbers and texts of one data frame have a kernel each."""
        samples = frame({"title": ["abc", "bcd", "xyz"], "price": [1.0, 2.0, 4.0], "size": [0.5, 0.25, 0.0]})
        kernel = On("title", CallableKernel(same_letters)) + 2.0 * On(["price", "size"], Linear())
        numbers = np.array([[1.0, 0.5], [2.0, 0.25], [4.0, 0.0]])
        expected = np.array([[3, 2, 0], [2, 3, 0], [0, 0, 3]]) + 2 * numbers @ numbers.T
        np.testing.assert_allclose(kernel(samples), expected)
        check_kernel(kernel, samples)

    def test_records_are_samples_too(self):
        """Columns of a list of tuples are chosen by number."""
        records = [("abc", 1.0), ("bcd", 2.0), ("xyz", 4.0)]
        kernel = On(0, CallableKernel(same_letters)) + On(1, CallableKernel(lambda X, Z: np.outer(X, Z)))
        expected = np.array([[3, 2, 0], [2, 3, 0], [0, 0, 3]]) + np.outer([1, 2, 4], [1, 2, 4])
        np.testing.assert_allclose(kernel(records), expected)

    def test_one_column_of_an_array_is_plain_for_a_function(self):
        """A function of texts is given texts, not rows of one text; several columns stay a table."""
        texts = np.array([["abc", "x"], ["bcd", "y"]], dtype=object)
        np.testing.assert_allclose(On(0, CallableKernel(same_letters))(texts), [[3, 2], [2, 3]])
        several = On((0, 1), CallableKernel(lambda X, Z: np.full((len(X), len(Z)), X.shape[1])))
        np.testing.assert_allclose(several(texts), 2.0)

    def test_negative_numbers_are_refused_only_where_they_are_seen(self):
        """Min allows negative numbers in columns that it does not see."""
        S = X.copy()
        S[:, 0] *= -1
        On((1, 2), Min())(S)
        with pytest.raises(InvalidInputError, match="Min compares histograms"):
            On((0, 1), Min())(S)

    @pytest.mark.parametrize(
        ("columns", "samples", "message"),
        [
            (4, X, "On(4, Linear()) needs column 4, but the samples have 4 columns, numbered 0 to 3."),
            ((0, -5), X, "On((0, -5), Linear()) needs column -5, but the samples have 4 columns, numbered 0 to 3."),
            (
                9,
                pd.DataFrame({"a": [1.0]}),
                "On(9, Linear()) needs column 9, but the samples have 1 columns, numbered 0 to 0.",
            ),
            (
                "titel",
                pd.DataFrame({"title": [1.0], "price": [2.0]}),
                "On('titel', Linear()) needs the column 'titel', but the data frame has only: 'title', 'price'.",
            ),
            (
                "title",
                X,
                "On('title', Linear()) chooses columns by name, but the samples are of type ndarray, whose columns "
                "have no names. Pass a data frame or a list of dicts, or choose columns by number.",
            ),
            (0, X[0], "On(0, Linear()) needs a matrix, but the samples have the shape (4,)."),
        ],
    )
    def test_missing_columns_are_named(self, columns, samples, message):
        """The error names the missing column and the existing ones."""
        with pytest.raises(InvalidInputError) as error:
            On(columns, Linear())(samples)
        assert str(error.value) == message

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            (
                slice(2, None),
                "columns=slice(2, None, None) depends on the number of columns. Give a start and an end from 0 on, "
                "such as slice(2, 10).",
            ),
            (
                (),
                "columns=() is not a valid choice: give a column number or name, a list of "
                "numbers or of names, or a slice.",
            ),
            (
                (0, "a"),
                "columns=(0, 'a') is not a valid choice: give a column number or name, a list of "
                "numbers or of names, or a slice.",
            ),
            (
                1.5,
                "columns=1.5 is not a valid choice: give a column number or name, a list of "
                "numbers or of names, or a slice.",
            ),
        ],
    )
    def test_what_chooses_no_columns_is_refused(self, columns, message):
        """The constructor raises an error, before any samples are given."""
        with pytest.raises(InvalidInputError) as error:
            On(columns, Gaussian())
        assert str(error.value) == message

    def test_every_choice_of_columns_can_be_hashed(self):
        """Slices, lists and arrays become tuples, so that kernels can be hashed."""
        assert On(slice(0, 2), Linear()) == On([0, 1], Linear()) == On(np.array([0, 1]), Linear())
        assert hash(On(slice(0, 2), Linear())) == hash(On((0, 1), Linear()))
