"""The messages of loss minimisation where rounding limits it, and which fit a prediction belongs to."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from mercer import InvalidInputError, KernelERM, KernelLogisticRegression, datasets, losses

X, y = load_iris(return_X_y=True)


@pytest.mark.parametrize("C", [1e14, 1e16, 1e20])
def test_a_gap_above_tol_is_not_called_converged(C):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelLogisticRegression(C=C, tol=1e-6).fit(X[:100], y[:100])
    assert model.fit_status_ == int(not model.certificate_.relative_gap <= 1e-6)


@pytest.mark.parametrize("C", [3e4, 1e6])
def test_rounding_is_not_called_a_wrong_conjugate(C):
    two = y > 0
    model = KernelLogisticRegression(kernel="linear", C=C).fit(X[two], y[two])
    assert model.certificate_.valid and 0 <= model.certificate_.relative_gap <= 1e-6


def test_predictions_belong_to_the_fit():
    labels = KernelERM(loss="hinge").fit(X[:100], y[:100])
    numbers = KernelERM(loss="squared").fit(X, X[:, 0])
    assert set(labels.set_params(loss="squared").predict(X[:100])) == {0, 1}
    assert np.corrcoef(numbers.set_params(loss="hinge").predict(X), X[:, 0])[0, 1] > 0.95


def test_a_function_is_no_loss():
    with pytest.raises(InvalidInputError, match="give its name, 'hinge'"):
        KernelERM(loss=losses.hinge).fit(X[:100], y[:100])


def test_a_share_of_wrong_labels():
    with pytest.raises(InvalidInputError, match=r"wrong=1\.5"):
        datasets.make_margin(wrong=1.5)
