"""Exceptions keep their numbers and build their message from them."""

import pickle

import numpy as np
import pytest

from mercer import exceptions

EXAMPLES = [
    (
        exceptions.InfeasibleNuError(0.8, 0.5, n_positive=30, n_negative=90),
        ValueError,
        "specified nu is infeasible: nu=0.8, but with 30 positive and 90 negative samples it must be at most 0.5. "
        "Lower nu, or use SVC with class_weight.",
    ),
    (
        exceptions.InfeasibleNuError(0.8, 0.5),
        ValueError,
        "specified nu is infeasible: nu=0.8, but for these samples it must be at most 0.5. Lower nu.",
    ),
    (
        exceptions.NotSymmetricError(0, 3, 0.5, 0.25),
        ValueError,
        "The kernel matrix is not symmetric: K[0, 3] = 0.5, but K[3, 0] = 0.25. A kernel must not depend on the order "
        "of its arguments: correct it, or use (K + K.T) / 2.",
    ),
    (
        exceptions.NotPositiveSemidefiniteError(-0.25, 2.0),
        ValueError,
        "The kernel matrix is not positive semidefinite: its smallest eigenvalue is -0.25, its largest 2. The optimum "
        "need not exist or be unique: choose another kernel, or add at least 0.25 to the diagonal.",
    ),
    (
        exceptions.NotSeparableError(np.array([0.5, 0.5, -1.0, 0.0]), 1e-9),
        ValueError,
        "The two classes are not separable with this kernel: 3 of the 4 samples combine to a common point of both "
        "convex hulls (to within 1.0e-09; see common_point_weights). Use a finite C, or a richer kernel.",
    ),
    (
        exceptions.MissingExtraError("The picture", package="matplotlib", extra="report"),
        ImportError,
        "The picture needs matplotlib, which is not installed: please run  pip install 'mercer[report]'",
    ),
]


@pytest.mark.parametrize(("error", "builtin", "message"), EXAMPLES, ids=lambda value: type(value).__name__)
class TestNumbers:
    def test_the_message_is_built_from_the_numbers(self, error, builtin, message):
        """str() is the whole sentence: what was found, what is allowed, what to do."""
        assert str(error) == message

    def test_both_families_catch_it(self, error, builtin, message):
        """Python's built-in exception types catch it, too."""
        assert isinstance(error, exceptions.MercerError)
        assert isinstance(error, builtin)

    def test_it_survives_pickling(self, error, builtin, message):
        """An exception from another process has the same type, message and numbers."""
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert str(copy) == message
        assert vars(copy).keys() == vars(error).keys()


def test_the_tree_in_the_docstring_is_complete():
    """Every public name is drawn in the module's docstring."""
    assert [name for name in exceptions.__all__ if name not in exceptions.__doc__] == []
