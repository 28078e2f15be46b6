"""λ and C: the same minimiser, whichever of them is given."""

import numpy as np
import pytest

from mercer import SVC, KernelRidge
from mercer.exceptions import InvalidInputError
from mercer.theory import C_to_lambda, alpha_to_lambda, lambda_to_alpha, lambda_to_C


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


@pytest.mark.parametrize("lam", [0.0, 1e-3, 2.0])
def test_ridge_regression(lam):
    """(16.8): the gradient of λ|w|² + 1/(2n) Σ (y − ⟨w, x⟩)² vanishes at the w of alpha = 2λn; and back."""
    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(8, 8)), 8
    y = rng.normal(size=n)
    w = KernelRidge(alpha=lambda_to_alpha(lam, n), kernel="linear").fit(X, y).coef_
    np.testing.assert_allclose(2 * lam * w + X.T @ (X @ w - y) / n, 0.0, atol=1e-9)
    assert alpha_to_lambda(lambda_to_alpha(lam, n), n) == lam
    assert lambda_to_alpha(np.inf, n) == alpha_to_lambda(np.inf, n) == np.inf


@pytest.mark.parametrize("value", [-1.0, np.nan, "1", None])
def test_ridge_needs_a_number_of_at_least_zero(value):
    """The name of the argument and what it may be."""
    for convert, name in ((lambda_to_alpha, "lam"), (alpha_to_lambda, "alpha")):
        with pytest.raises(InvalidInputError) as found:
            convert(value, 10)
        assert str(found.value) == f"{name}={value!r} was given: it must be a number of at least 0."
    with pytest.raises(InvalidInputError, match="whole number of at least 1"):
        lambda_to_alpha(1.0, 0)
