"""A saved model is the same model; a damaged file is an error, never a model."""

import io
import os
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils._testing import ignore_warnings
from tests.io.models import HISTOGRAM_KERNELS, MODELS, VECTOR_KERNELS, X, outputs
from tests.naming import named

import mercer
from mercer.exceptions import InvalidInputError, ModelFileError


def round_trip(model):
    file = io.BytesIO()
    mercer.save(model, file)
    return mercer.load(file)


def plain(params):
    return re.sub(r"0x[0-9a-fA-F]+", "", str(params))


def assert_same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert np.array_equal(a, b)


class TestRoundTrip:
    @ignore_warnings
    @pytest.mark.parametrize("name", MODELS)
    def test_estimators(self, name):
        """A loaded estimator predicts the same, bit by bit, and has the same parameters and certificate."""
        model, data = MODELS[name]()
        loaded = round_trip(model)
        assert type(loaded) is type(model)
        assert_same(outputs(loaded, data), outputs(model, data))
        assert plain(loaded.get_params()) == plain(model.get_params())
        assert getattr(loaded, "certificate_", None) == getattr(model, "certificate_", None)
        assert set(vars(loaded)) == set(vars(model))

    @pytest.mark.parametrize("kernel", VECTOR_KERNELS + HISTOGRAM_KERNELS, ids=named)
    def test_kernels(self, kernel):
        """A loaded kernel is equal."""
        loaded = round_trip(kernel)
        assert loaded == kernel and repr(loaded) == repr(kernel)
