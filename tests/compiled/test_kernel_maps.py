"""Kernel values from sums over features: each map is its formula, NaN stays, and products need no block."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.compiled.test_tiles import TERMS, nonnegative, panels_of

from mercer._compiled import kernel_maps as maps
from mercer._compiled.sparse_tiles import add_sparse_product
from mercer._compiled.tiles import (
    CHI2,
    DOT,
    L1,
    SQUARE,
    gaussian_block,
    mapped_block,
    sums_address,
)

GAMMA, CONSTANT = 0.4, 1.5
# sums over features → kernel values; the rational map has the exponent CONSTANT
FORMULAS = {
    maps.IDENTITY: lambda s: s,
    maps.POLYNOMIAL: lambda s: (GAMMA * s + CONSTANT) ** 5,
    maps.SERIES: lambda s: 0.5 + 2.0 * s - 0.3 * s**2,
    maps.EXPONENTIAL: lambda s: np.exp(-GAMMA * s),
    maps.MATERN12: lambda s: np.exp(-GAMMA * np.sqrt(s)),
    maps.MATERN32: lambda s: (1 + GAMMA * np.sqrt(s)) * np.exp(-GAMMA * np.sqrt(s)),
    maps.MATERN52: lambda s: (1 + GAMMA * np.sqrt(s) + GAMMA**2 * s / 3) * np.exp(-GAMMA * np.sqrt(s)),
    maps.TANH: lambda s: np.tanh(GAMMA * s + CONSTANT),
    maps.RATIONAL: lambda s: (1 + GAMMA * s) ** -CONSTANT,
}
LOOPS = {
    maps.POLYNOMIAL: maps.polynomial,
    maps.SERIES: maps.series,
    maps.EXPONENTIAL: maps.exponential,
    maps.MATERN12: maps.matern12,
    maps.MATERN32: maps.matern32,
    maps.MATERN52: maps.matern52,
    maps.TANH: maps.tangent,
    maps.RATIONAL: maps.rational,
}
NAMES = ["identity", "polynomial", "series", "exponential", "matern12", "matern32", "matern52", "tanh", "rational"]
every_map = pytest.mark.parametrize("code", FORMULAS, ids=NAMES)
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
ERROR = {np.float32: 3e-6, np.float64: 1e-13}


def parameters(code, dtype, distances=False):
    """needs distances, gamma, constant, degree, coefficients."""
    return np.array([distances, GAMMA, CONSTANT, 5, *([0.5, 2.0, -0.3] if code == maps.SERIES else [])], dtype)


def mapped(code, params, values, norm, norms, out):
    """out = phi(values) of one row of sums."""
    out[:] = values
    maps.apply_map(maps.map_address(code, out.dtype), params, out, norm, norms)


@every_map
@both_dtypes
@pytest.mark.parametrize("n", [0, 1, 5, 67])
def test_maps(code, dtype, n):
    """Each map of sums, and of inner products that become squared distances."""
    rng = np.random.default_rng(0)
    sums = np.append(0.0, 9 * rng.random(n))[:n].astype(dtype)
    out = np.full(n, np.nan, dtype)
    mapped(code, parameters(code, dtype), sums.copy(), dtype(0), np.zeros(n, dtype), out)
    np.testing.assert_allclose(out, FORMULAS[code](sums.astype(np.float64)), rtol=ERROR[dtype])
    x, Z = rng.normal(size=3).astype(dtype), rng.normal(size=(n, 3)).astype(dtype)
    norm, norms = dtype(x @ x), (Z**2).sum(axis=1)
    mapped(code, parameters(code, dtype, True), Z @ x, norm, norms, out)
    squares = ((x - Z).astype(np.float64) ** 2).sum(axis=1)
    np.testing.assert_allclose(out, FORMULAS[code](squares), rtol=30 * ERROR[dtype])


@both_dtypes
@pytest.mark.parametrize("code", LOOPS, ids=NAMES[1:])
def test_loops_of_maps(code, dtype):
    """Called from Python each loop replaces sums by the formula's values, with the bits of a call by address."""
    sums = np.linspace(0, 9, 21).astype(dtype)
    values, same = sums.copy(), np.empty_like(sums)
    LOOPS[code](parameters(code, dtype), values)
    np.testing.assert_allclose(values, FORMULAS[code](sums.astype(np.float64)), rtol=ERROR[dtype])
    mapped(code, parameters(code, dtype), sums, dtype(0), np.zeros(21, dtype), same)
    np.testing.assert_array_equal(values, same)


@pytest.mark.parametrize("degree", range(8))
def test_powers(degree):
    """Every whole degree, 2 and 3 by loops of their own."""
    values = np.array([-2.0, 0.0, 0.5, 3.0])
    params, out = np.array([0.0, 1.0, 0.0, degree]), np.empty(4)
    mapped(maps.POLYNOMIAL, params, values.copy(), 0.0, np.zeros(4), out)
    np.testing.assert_allclose(out, values**degree, rtol=1e-14)


@every_map
@both_dtypes
def test_nan_and_far(code, dtype):
    """NaN stays NaN; far away there is neither NaN nor an overflow where the map is bounded."""
    values, out = np.array([1.0, np.nan, 1e30], dtype), np.empty(3, dtype)
    mapped(code, parameters(code, dtype), values.copy(), dtype(0), np.zeros(3, dtype), out)
    assert np.isfinite(out[0]) and np.isnan(out[1])
    bounded = code not in (maps.IDENTITY, maps.POLYNOMIAL, maps.SERIES)
    assert not bounded or out[2] == pytest.approx(FORMULAS[code](1e30), abs=1e-30)


@both_dtypes
def test_rounding_makes_no_negative_distance(dtype):
    """Equal samples whose inner product is rounded up have the distance 0."""
    out, above = np.empty(1, dtype), np.array([dtype(1) + 4 * np.finfo(dtype).eps], dtype)
    mapped(maps.MATERN12, parameters(maps.MATERN12, dtype, True), above, dtype(1), np.ones(1, dtype), out)
    assert out[0] == 1.0


@both_dtypes
@pytest.mark.parametrize("products", [True, False], ids=["products", "differences"])
@pytest.mark.parametrize(("m", "n", "d"), [(1, 1, 1), (7, 17, 4), (13, 33, 9)])
def test_gaussian_and_mapped_blocks(dtype, products, m, n, d):
    """exp(−γ|x − z|²) from registers, and the same by a tile of sums and the exponential map."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(m, d)).astype(dtype), rng.normal(size=(n, d)).astype(dtype)
    squares = ((A[:, None].astype(np.float64) - B) ** 2).sum(axis=2)
    norms, panels = [(X**2).sum(axis=1) for X in (A, B)], panels_of(B)
    found, same = np.full((2, m, n), np.nan, dtype)
    params, term = parameters(maps.EXPONENTIAL, dtype, products), DOT if products else SQUARE
    gaussian_block(term, 0, params, A, norms[0], panels, norms[1], 0, len(panels), found)
    exponential = maps.map_address(maps.EXPONENTIAL, np.dtype(dtype))
    sums = sums_address(term, np.dtype(dtype))
    mapped_block(sums, exponential, params, A, norms[0], panels, norms[1], 0, len(panels), same)
    for values in (found, same):
        np.testing.assert_allclose(values, np.exp(-GAMMA * squares), rtol=40 * ERROR[dtype])


@both_dtypes
@pytest.mark.parametrize(
    ("term", "code"), [(DOT, maps.POLYNOMIAL), (DOT, maps.EXPONENTIAL), (L1, maps.EXPONENTIAL), (CHI2, maps.IDENTITY)]
)
@pytest.mark.parametrize(("m", "n", "d"), [(1, 1, 1), (5, 15, 3), (40, 300, 7)])
def test_add_sparse_product(dtype, term, code, m, n, d):
    """Σ_j K[i, j] w_j of CSR samples is added to out, for any choice of rows."""
    rng = np.random.default_rng(1)
    A, B = nonnegative(rng, (m, d), dtype, 0.4), nonnegative(rng, (n, d), dtype, 0.4)
    a, b, rows = sp.csr_array(A), sp.csr_array(B), rng.integers(0, m, m + 2)
    distances = term == DOT and code == maps.EXPONENTIAL
    weights, out = rng.normal(size=n).astype(dtype), np.ones(m + 2)
    totals = A.sum(axis=1) if term in (L1, CHI2) else np.zeros(m, dtype)
    add_sparse_product(
        term, maps.map_address(code, np.dtype(dtype)), parameters(code, dtype, distances),
        a.indptr, a.indices, a.data, (A**2).sum(axis=1), totals, rows,
        b.indptr, b.indices, b.data, (B**2).sum(axis=1), weights, d, out,
    )  # fmt: skip
    sums = TERMS[1 if distances else term](A[:, None].astype(np.float64), B.astype(np.float64)).sum(axis=2)
    K = FORMULAS[code](sums)
    size = np.abs(K) @ np.abs(weights) + 1.0
    assert (np.abs(out - 1.0 - (K @ weights.astype(np.float64))[rows]) <= 20 * ERROR[dtype] * size[rows]).all()
