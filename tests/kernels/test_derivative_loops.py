"""Derivatives of kernel maps are those of finite differences; sums over pairs are those of NumPy."""

import numpy as np
import pytest
from tests.compiled.test_kernel_maps import CONSTANT, NAMES

from mercer._compiled import kernel_maps as maps
from mercer._compiled.tiles import DOT, L1, SQUARE
from mercer.kernels import _derivative_loops as loops

# ψ(u) of each map, u being the scaled sum over features
PSI = {
    maps.IDENTITY: lambda u: u,
    maps.POLYNOMIAL: lambda u: (u + CONSTANT) ** 4,
    maps.EXPONENTIAL: lambda u: np.exp(-u),
    maps.MATERN12: lambda u: np.exp(-np.sqrt(u)),
    maps.MATERN32: lambda u: (1 + np.sqrt(u)) * np.exp(-np.sqrt(u)),
    maps.MATERN52: lambda u: (1 + np.sqrt(u) + u / 3) * np.exp(-np.sqrt(u)),
    maps.TANH: lambda u: np.tanh(u + CONSTANT),
    maps.RATIONAL: lambda u: (1 + u) ** -CONSTANT,
}


@pytest.mark.parametrize("code", PSI, ids=lambda code: NAMES[code])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_slopes(code, n):
    """Sums are scaled in place, and weights ψ'(u) written."""
    rng = np.random.default_rng(0)
    sums, weights = rng.uniform(0.1, 5.0, n), rng.normal(size=n)
    values, out = sums.copy(), np.full(n, np.nan)
    loops.slopes(code, 0.7, np.array([0.0, 0.0, CONSTANT, 4.0]), values, weights, out)
    np.testing.assert_allclose(values, 0.7 * sums, rtol=1e-15)
    step = 1e-5
    slope = (PSI[code](values + step) - PSI[code](values - step)) / (2 * step)
    np.testing.assert_allclose(out, weights * slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("code", PSI, ids=lambda code: NAMES[code])
def test_ends(code):
    """At a distance of 0 and very far away the slopes are numbers."""
    values, out = np.array([0.0, 1e200, np.inf]), np.full(3, np.nan)
    loops.slopes(code, 1.0, np.array([0.0, 0.0, CONSTANT, 1.0]), values, np.ones(3), out)
    assert np.isfinite(out).all() and (values <= 1e300).all()


def test_a_power_of_0():
    """Its derivative is 0."""
    out = np.full(2, np.nan)
    loops.slopes(maps.POLYNOMIAL, 1.0, np.zeros(4), np.array([0.0, 2.0]), np.ones(2), out)
    assert not out.any()


@pytest.mark.parametrize("term", [SQUARE, L1, DOT], ids=["square", "l1", "dot"])
@pytest.mark.parametrize(("m", "n", "d"), [(0, 3, 2), (1, 1, 1), (5, 7, 3), (20, 33, 6)])
def test_add_moments(term, m, n, d):
    """Σ_ij weights term(a_ik, b_jk) of each feature k is added."""
    rng = np.random.default_rng(0)
    A, B, weights, out = rng.normal(size=(m, d)), rng.normal(size=(n, d)), rng.normal(size=(m, n)), np.ones(d)
    formula = {SQUARE: lambda a, b: (a - b) ** 2, L1: lambda a, b: np.abs(a - b), DOT: lambda a, b: a * b}[term]
    loops.add_moments(term, A, np.ascontiguousarray(B.T), weights, out)
    np.testing.assert_allclose(out, 1.0 + (weights[:, :, None] * formula(A[:, None], B)).sum(axis=(0, 1)), rtol=1e-11)
