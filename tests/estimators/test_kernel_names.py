"""Kernels by name: the same for every machine, every search and the command."""

import numpy as np
import pytest
from sklearn.base import clone
from tests.naming import named

from mercer import SVC, SVCCV, SVR, KernelRidge, OneClassSVM, Perceptron, Polynomial
from mercer.exceptions import InvalidInputError


@pytest.mark.parametrize("model", [SVC(), SVR(), KernelRidge(), OneClassSVM(), Perceptron(tol=None)], ids=named)
def test_the_inhomogeneous_polynomial_by_name(model):
    """kernel="inhomogeneous" with degree is (1 + <x, z>)^degree, for every machine, and so is the expression."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.where((X**2).sum(axis=1) > 1.5, 1, -1)
    given = [
        dict(kernel="inhomogeneous", degree=2),
        dict(kernel="inhomogeneous(2)"),
        dict(kernel=Polynomial(2, 1.0, 1.0)),
    ]
    by_name, by_text, by_object = (clone(model).set_params(**params).fit(X, y) for params in given)
    np.testing.assert_array_equal(by_name.predict(X), by_object.predict(X))
    np.testing.assert_array_equal(by_text.predict(X), by_object.predict(X))
    assert by_name._kernel == by_text._kernel == Polynomial.inhomogeneous(2)


def test_poly_is_another_kernel():
    """kernel="poly" has no constant term: with b it is a parabola around 0, which cannot turn between 1 and 3."""
    X, y = np.array([[1.0], [2.0], [3.0]]), [0, 1, 0]
    assert SVC(C=1e6, kernel="inhomogeneous", degree=2).fit(X, y).score(X, y) == 1.0
    assert SVC(C=1e6, kernel="poly", degree=2).fit(X, y).score(X, y) < 1.0


def test_the_degree_of_ridge_is_whole():
    """A power of a negative number is defined for whole exponents only."""
    with pytest.raises(InvalidInputError, match=r"^degree=2\.5 is not a whole number"):
        KernelRidge(kernel="inhomogeneous", degree=2.5).fit([[1.0], [2.0]], [0.0, 1.0])


def test_a_search_by_name():
    """SVCCV takes the name and its degree."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X**2).sum(axis=1) > 1.5
    search = SVCCV(kernel="inhomogeneous", degree=2, Cs=[1.0, 10.0], cv=3).fit(X, y)
    assert search.best_estimator_._kernel == Polynomial.inhomogeneous(2)
    assert search.score(X, y) > 0.95
