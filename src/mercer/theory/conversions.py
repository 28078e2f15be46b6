"""Convert between λ of the textbooks and C or alpha of the machines; [SSBD] (15.4), (15.6) and (15.12), (16.5), (16.8).

All machines of mercer minimise ½|w|² + C Σ ℓ. The notes put a weight on the norm and average the loss over n samples:

    convention "15.4"     λ|w|² + (1/n) Σ ℓ        C = 1/(2λn)       also (15.5), (15.6), (16.4), [D6] Alg. 22
    convention "15.12"    (λ/2)|w|² + (1/n) Σ ℓ    C = 1/(λn)        also (16.5), Pegasos

The minimisers are the same; the objectives differ by the factor 2λ or λ.

Ridge regression minimises (α/2)|f|² + ½ Σ (y − f)², so that β = (K + αI)⁻¹y. Exercise 16.3 has a λ on the norm and
averages the loss, too:

    (16.8)                λ|w|² + 1/(2n) Σ (y − f)²    α = 2λn
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from mercer.exceptions import InvalidInputError

# 1/C = factor · λn, by convention
FACTORS = {"15.4": 2.0, "15.12": 1.0}


def lambda_to_C(lam: float, n: int, convention: str = "15.4") -> float:
    """The C for which ½|w|² + C Σ ℓ has the same minimiser as the notes' objective with λ.

    Parameters
    ----------
    lam : float
        λ > 0. λ = inf gives C = 0.
    n : int
        Number of training samples.
    convention : {"15.4", "15.12"}, default="15.4"
        "15.4" for λ|w|² + (1/n) Σ ℓ, "15.12" for (λ/2)|w|² + (1/n) Σ ℓ.

    Returns
    -------
    C : float

    Examples
    --------
    >>> from mercer.theory import lambda_to_C
    >>> lambda_to_C(0.01, n=100), lambda_to_C(0.01, n=100, convention="15.12")
    (0.5, 1.0)
    """
    return _inverse("lam", lam, n, convention)


def C_to_lambda(C: float, n: int, convention: str = "15.4") -> float:
    """The λ for which the notes' objective has the same minimiser as ½|w|² + C Σ ℓ.

    Parameters
    ----------
    C : float
        C > 0. inf, the hard margin, gives λ = 0.
    n : int
        Number of training samples.
    convention : {"15.4", "15.12"}, default="15.4"
        As in ``lambda_to_C``.

    Returns
    -------
    lam : float

    Examples
    --------
    >>> from mercer.theory import C_to_lambda
    >>> C_to_lambda(0.5, n=100), C_to_lambda(float("inf"), n=100)
    (0.01, 0.0)
    """
    return _inverse("C", C, n, convention)


def lambda_to_alpha(lam: float, n: int) -> float:
    """The ``alpha`` of ``KernelRidge`` that has the same minimiser as (16.8), λ|w|² + 1/(2n) Σ (y − f)², with this λ.

    Parameters
    ----------
    lam : float
        λ ≥ 0.
    n : int
        Number of training samples.

    Returns
    -------
    alpha : float
        2λn.

    Examples
    --------
    >>> from mercer.theory import alpha_to_lambda, lambda_to_alpha
    >>> lambda_to_alpha(0.01, n=100), alpha_to_lambda(2.0, n=100)
    (2.0, 0.01)
    """
    return 2.0 * sample_count(n) * _at_least_zero("lam", lam)


def alpha_to_lambda(alpha: float, n: int) -> float:
    """The λ for which (16.8), λ|w|² + 1/(2n) Σ (y − f)², has the same minimiser as ``KernelRidge`` with this alpha.

    Parameters
    ----------
    alpha : float
        α ≥ 0.
    n : int
        Number of training samples.

    Returns
    -------
    lam : float
        α/(2n).

    Examples
    --------
    >>> from mercer.theory import alpha_to_lambda
    >>> alpha_to_lambda(2.0, n=100)
    0.01
    """
    return _at_least_zero("alpha", alpha) / (2.0 * sample_count(n))


def _at_least_zero(name: str, value: float) -> float:
    if not isinstance(value, Real) or not value >= 0:
        raise InvalidInputError(f"{name}={value!r} was given: it must be a number of at least 0.")
    return float(value)


def _inverse(name: str, value: float, n: int, convention: str) -> float:
    """1/(factor · n · value), the same in both directions."""
    if convention not in FACTORS:
        raise InvalidInputError(
            f"convention={convention!r} is not known: it must be '15.4', for λ|w|² + (1/n) Σ ℓ, or '15.12', for "
            "(λ/2)|w|² + (1/n) Σ ℓ."
        )
    if not isinstance(value, Real) or not value > 0:
        raise InvalidInputError(f"{name}={value!r} was given: it must be a number greater than 0.")
    return 1.0 / (FACTORS[convention] * sample_count(n) * float(value))


def sample_count(n: Any) -> int:
    """n as an int; raise if it is not a positive integer."""
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise InvalidInputError(f"n={n!r} was given: the number of samples must be a whole number of at least 1.")
    return int(n)
