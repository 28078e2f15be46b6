"""λ and C: the same minimiser, whichever of them is given."""

import numpy as np
import pytest

from mercer import SVC
from mercer.exceptions import InvalidInputError
from mercer.theory import C_to_lambda, lambda_to_C


@pytest.mark.parametrize("convention", ["15.4", "15.12"])
@pytest.mark.parametrize("value", [1e-8, 0.3, 1.0, 1e5])
def test_there_and_back(value, convention):
    """One conversion undoes the other."""
    assert C_to_lambda(lambda_to_C(value, 7, convention), 7, convention) == pytest.approx(value, rel=1e-15)
    assert lambda_to_C(C_to_lambda(value, 7, convention), 7, convention) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("convention,factor", [("15.4", 1.0), ("15.12", 0.5)])
@pytest.mark.parametrize("lam", [0.1, 0.4, 2.0])
def test_the_minimiser_of_two_points(lam, convention, factor):
    """factor·λw² + max(0, 1 − w), what the samples ±1 with labels ±1 pay, is least at min(1, 1/(2·factor·λ))."""
    model = SVC(C=lambda_to_C(lam, 2, convention), kernel="linear", fit_intercept=False, tol=1e-10)
    model.fit([[-1.0], [1.0]], [-1, 1])
    assert model.coef_[0, 0] == pytest.approx(min(1.0, 1.0 / (2 * factor * lam)), rel=1e-8)


def test_the_ends():
    """The hard margin has no λ, an infinite λ no C."""
    assert C_to_lambda(np.inf, 10) == 0.0
    assert lambda_to_C(np.inf, 10) == 0.0
    assert C_to_lambda(1.0, 1) == 0.5


@pytest.mark.parametrize("lam", [0, -1.0, np.nan, "1", None])
def test_lambda_must_be_positive(lam):
    """Everything else has no minimiser."""
    with pytest.raises(InvalidInputError, match=r"^lam=.* was given: it must be a number greater than 0\.$"):
        lambda_to_C(lam, 10)


@pytest.mark.parametrize("n", [0, -3, 2.5, True, None])
def test_n_is_a_count(n):
    """The number of samples is a whole number."""
    with pytest.raises(InvalidInputError, match="the number of samples must be a whole number of at least 1"):
        C_to_lambda(1.0, n)


def test_conventions_are_named_in_the_error():
    """An unknown convention is answered with both that there are."""
    with pytest.raises(InvalidInputError) as found:
        lambda_to_C(1.0, 10, "15.5")
    assert str(found.value) == (
        "convention='15.5' is not known: it must be '15.4', for λ|w|² + (1/n) Σ ℓ, or '15.12', for "
        "(λ/2)|w|² + (1/n) Σ ℓ."
    )
