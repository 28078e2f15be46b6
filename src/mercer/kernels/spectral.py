"""Spectral measures: kernels as expectations of cosines.

A continuous kernel of x - z is, up to its value at 0, the characteristic function of a distribution of frequencies ω
(Bochner's theorem). So cosines and sines of drawn frequencies are random features (Rahimi & Recht, NIPS 2007):

    k(x, z) = k(0) E cos<ω, x - z>

    exp(-Σ γ_k (x_k - z_k)²)                 ω_k = √(2γ_k) times a standard normal number
    exp(-Σ γ_k |x_k - z_k|)                  ω_k = γ_k times a standard Cauchy number
    Matérn, smoothness ν, width ℓ            ω = g √(2ν/c) / ℓ with g standard normal and c from χ² with 2ν degrees
                                             of freedom: the multivariate t distribution
    (1 + r²/(2αℓ²))^-α                       ω = g √t / ℓ with t from the gamma distribution of shape and rate α
    exp(-2 Σ sin²(π (x_k - z_k) / p) / ℓ²)   ω_k = 2π (m - m') / p with Poisson numbers m, m' of mean 1/(2ℓ²)
    k₁ k₂                                    the sum of the frequencies of both

A sum of kernels is a sum of such terms. `spectral_sum` expands sums, products, multiples and whole powers into it;
constants and linear kernels, which need no draws, are kept apart.

Orthogonal draws (Yu et al., NIPS 2016): d standard normal vectors at a time are replaced by orthogonal ones, whose
lengths are drawn anew from the χ distribution. Each vector has the same distribution as before, so the expectation does
not change, and the variance falls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel
from mercer.kernels.combinators import Constant, LearnedKernel, Power, Product, Scaled, Sum
from mercer.kernels.features import Matrix, Vector
from mercer.kernels.learnable import Transparent
from mercer.kernels.radial import Gaussian, Laplacian, Matern, Periodic, RationalQuadratic
from mercer.kernels.vectors import Linear
from mercer.kernels.wrappers import Normalized, On

# largest number of terms that an expanded product of sums may have
LARGEST_SUM = 10_000
# Poisson numbers of a larger mean are drawn as rounded normal numbers
LARGEST_MEAN = 1e12


class Factor(NamedTuple):
    """A kernel with k(x, x) = 1 and a known spectral measure, on some columns, to a whole power."""

    kernel: Kernel
    columns: tuple[int, ...]
    power: int = 1


@dataclass(frozen=True)
class Term:
    """weight times the product of the factors. No factors: the constant ``weight``."""

    weight: float
    factors: tuple[Factor, ...] = ()

    def draw(self, d: int, count: int, random: Any, orthogonal: bool) -> Matrix:
        """Draw frequencies of samples with d features, one per column.

        A product of Gaussian kernels is one Gaussian kernel, whose frequencies can be orthogonal.
        """
        frequencies = np.zeros((d, count))
        gamma = np.zeros(d)
        with np.errstate(over="ignore", invalid="ignore"):
            for factor in self.factors:
                if isinstance(factor.kernel, Gaussian):
                    own = np.broadcast_to(factor.kernel.gamma, len(factor.columns))
                    np.add.at(gamma, list(factor.columns), factor.power * own)
                else:
                    np.add.at(frequencies, list(factor.columns), _draw(factor, count, random, orthogonal))
            used = np.flatnonzero(gamma)
            if len(used):
                widths = np.sqrt(2.0) * np.sqrt(gamma[used])
                frequencies[used] += widths[:, None] * normal_vectors(len(used), count, random, orthogonal)
        return frequencies


@dataclass(frozen=True)
class SpectralSum:
    """k(x, z) = Σ terms + constant + Σ_k linear[k] x_k z_k."""

    terms: tuple[Term, ...]
    constant: float
    linear: Vector


def spectral_sum(kernel: Kernel, d: int) -> SpectralSum:
    """Expand a kernel that is bound to samples with d features; raise if it has no known spectral measure.

    >>> found = spectral_sum((Gaussian(1.0) + 2.0) * (3.0 * Gaussian(0.5)) + Linear(), d=1)
    >>> [term.weight for term in found.terms], found.constant, found.linear
    ([3.0, 6.0], 0.0, array([1.]))
    """
    found = _expand(kernel, tuple(range(d)), d)
    weights = [term.weight for term in found.terms]
    if not np.isfinite([*weights, found.constant, *found.linear]).all():
        raise InvalidInputError(f"The multiples in {kernel!r} exceed the range of floating-point numbers: scale them.")
    return found


def normal_vectors(d: int, count: int, random: Any, orthogonal: bool) -> Matrix:
    """Draw standard normal vectors of d numbers, one per column: independent, or orthogonal in groups of d."""
    if not orthogonal:
        return np.asarray(random.normal(size=(d, count)))
    size = min(d, count)
    Q, R = np.linalg.qr(random.normal(size=(-(-count // size), d, size)))
    # with these signs Q is uniformly distributed among orthogonal matrices
    Q *= np.sign(np.einsum("bii->bi", R))[:, None, :]
    directions = Q.transpose(1, 0, 2).reshape(d, -1)[:, :count]
    return np.asarray(directions * np.sqrt(random.chisquare(d, size=count)))


def _draw(factor: Factor, count: int, random: Any, orthogonal: bool) -> Matrix:
    """Frequencies of a factor that is not Gaussian, a row for each of its columns."""
    kernel, d, power = factor.kernel, len(factor.columns), factor.power
    if isinstance(kernel, Laplacian):
        gamma = np.broadcast_to(kernel.gamma, d)
        return np.asarray(power * gamma[:, None] * random.standard_cauchy(size=(d, count)))
    if isinstance(kernel, Periodic):
        mean = power * 0.5 / kernel.length_scale / kernel.length_scale
        if mean <= LARGEST_MEAN:
            turns = random.poisson(mean, size=(d, count)) - random.poisson(mean, size=(d, count))
        else:
            turns = np.round(np.sqrt(2.0 * mean) * random.normal(size=(d, count)))
        return np.asarray(2.0 * np.pi / kernel.period * turns)
    assert isinstance(kernel, Matern | RationalQuadratic)
    total = np.zeros((d, count))
    for _ in range(power if isinstance(kernel, Matern) else 1):
        if isinstance(kernel, Matern):
            spread = 2.0 * kernel.nu / random.chisquare(2.0 * kernel.nu, size=count)
        else:  # a power is a kernel with a larger α and another width
            spread = random.gamma(power * kernel.alpha, size=count) / kernel.alpha
        total += normal_vectors(d, count, random, orthogonal) * np.sqrt(spread)
    return np.asarray(total / np.broadcast_to(kernel.length_scale, d)[:, None])


# ---- the terms of each kernel ----------------------------------------------------------------------------------------


@singledispatch
def _expand(kernel: Kernel, columns: tuple[int, ...], d: int) -> SpectralSum:
    """The terms of a kernel that sees these columns of samples with d features."""
    raise no_spectral_measure(kernel)


def no_spectral_measure(kernel: Kernel) -> InvalidInputError:
    """The error for a kernel without random features."""
    return InvalidInputError(
        f"{kernel!r} has no known spectral measure, so it has no random features. Kernels that have them are Gaussian, "
        "Laplacian, Matern, RationalQuadratic and Periodic, their products, powers, sums and multiples, Normalized of "
        "them, and On of them with columns by number; Constant and Linear may be added. Use Nystroem, which takes any "
        "kernel."
    )


@_expand.register
def _(kernel: Gaussian | Laplacian | Matern | RationalQuadratic | Periodic, columns: Any, d: int) -> SpectralSum:
    widths = None if isinstance(kernel, Periodic) else kernel.weights()
    if widths is not None and len(widths) != len(columns):
        raise InvalidInputError(
            f"{kernel!r} has {len(widths)} widths, but the samples have {len(columns)} features. "
            "Give one width per feature, or a single number."
        )
    return SpectralSum((Term(1.0, (Factor(kernel, columns),)),), 0.0, np.zeros(d))


@_expand.register
def _(kernel: Constant, columns: Any, d: int) -> SpectralSum:
    return SpectralSum((), _not_negative(kernel, kernel.value), np.zeros(d))


@_expand.register
def _(kernel: Linear, columns: Any, d: int) -> SpectralSum:
    return SpectralSum((), 0.0, np.bincount(columns, minlength=d).astype(np.float64))


@_expand.register
def _(kernel: Scaled, columns: Any, d: int) -> SpectralSum:
    return _multiple(_not_negative(kernel, kernel.factor), _expand(kernel.kernel, columns, d))


@_expand.register
def _(kernel: Sum, columns: Any, d: int) -> SpectralSum:
    return _add(kernel, [_expand(part, columns, d) for part in (kernel.left, kernel.right)])


@_expand.register
def _(kernel: LearnedKernel, columns: Any, d: int) -> SpectralSum:
    return _add(kernel, [_multiple(weight, _expand(part, columns, d)) for part, weight in kernel.terms()])


@_expand.register
def _(kernel: Product, columns: Any, d: int) -> SpectralSum:
    return _multiply(kernel, _expand(kernel.left, columns, d), _expand(kernel.right, columns, d))


@_expand.register
def _(kernel: Power, columns: Any, d: int) -> SpectralSum:
    square, power, rest = _expand(kernel.kernel, columns, d), None, kernel.exponent
    while True:  # by the bits of the exponent, lowest first
        if rest & 1:
            power = square if power is None else _multiply(kernel, power, square)
        rest >>= 1
        if rest == 0:
            assert power is not None
            return power
        square = _multiply(kernel, square, square)


@_expand.register
def _(kernel: Transparent, columns: Any, d: int) -> SpectralSum:
    return _expand(kernel.kernel, columns, d)


@_expand.register
def _(kernel: Normalized, columns: Any, d: int) -> SpectralSum:
    found = _expand(kernel.kernel, columns, d)
    largest = sum(term.weight for term in found.terms) + found.constant
    if found.linear.any():
        raise no_spectral_measure(kernel)
    return _multiple(1.0 / largest, found) if largest > 0 else found


@_expand.register
def _(kernel: On, columns: Any, d: int) -> SpectralSum:
    if kernel.names:
        raise no_spectral_measure(kernel)
    chosen = kernel.columns if isinstance(kernel.columns, tuple) else (kernel.columns,)
    return _expand(kernel.kernel, tuple(columns[c] for c in chosen), d)


# ---- sums and products of sums ---------------------------------------------------------------------------------------


def _not_negative(kernel: Kernel, factor: float) -> float:
    if factor < 0:
        raise InvalidInputError(
            f"{kernel!r} is not positive semidefinite, so it has no features. Multiples must be at least 0."
        )
    return factor


def _collect(kernel: Kernel, terms: Iterable[Term]) -> tuple[Term, ...]:
    """The terms with a positive weight; equal ones are added up."""
    weights: dict[frozenset[Factor], float] = {}
    factors: dict[frozenset[Factor], tuple[Factor, ...]] = {}
    for term in terms:
        if term.weight > 0:
            key = frozenset(term.factors)
            factors.setdefault(key, term.factors)
            weights[key] = weights.get(key, 0.0) + term.weight
    if len(weights) > LARGEST_SUM:
        raise _too_long(kernel)
    return tuple(Term(weight, factors[key]) for key, weight in weights.items())


def _too_long(kernel: Kernel) -> InvalidInputError:
    return InvalidInputError(
        f"{kernel!r} is a sum of more than {LARGEST_SUM:,} products, each of which needs random features of its own. "
        "Use Nystroem, which takes any kernel."
    )


def _multiple(factor: float, found: SpectralSum) -> SpectralSum:
    with np.errstate(over="ignore"):
        terms = tuple(Term(factor * term.weight, term.factors) for term in found.terms if factor > 0)
        return SpectralSum(terms, factor * found.constant, factor * found.linear)


def _add(kernel: Kernel, parts: list[SpectralSum]) -> SpectralSum:
    terms = _collect(kernel, (term for part in parts for term in part.terms))
    return SpectralSum(terms, sum(part.constant for part in parts), np.sum([part.linear for part in parts], axis=0))


def _multiply(kernel: Kernel, left: SpectralSum, right: SpectralSum) -> SpectralSum:
    if (left.linear.any() and (right.terms or right.linear.any())) or (right.linear.any() and left.terms):
        raise no_spectral_measure(kernel)  # no function of x - z
    if len(left.terms) * len(right.terms) > 10 * LARGEST_SUM:
        raise _too_long(kernel)
    pairs = [Term(a.weight * b.weight, _join(a.factors, b.factors)) for a in left.terms for b in right.terms]
    pairs += _multiple(right.constant, left).terms + _multiple(left.constant, right).terms
    linear = right.constant * left.linear + left.constant * right.linear
    return SpectralSum(_collect(kernel, pairs), left.constant * right.constant, linear)


def _join(left: tuple[Factor, ...], right: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """The factors of both. The powers of equal factors add up."""
    powers: dict[tuple[Kernel, tuple[int, ...]], int] = {}
    for factor in left + right:
        powers[factor[:2]] = powers.get(factor[:2], 0) + factor.power
    return tuple(Factor(*key, power) for key, power in powers.items())
