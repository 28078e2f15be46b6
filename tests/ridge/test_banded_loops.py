"""Systems with band matrices for many λ, by dense inverses."""

import numpy as np
import pytest

from mercer.ridge import _banded_loops as loops

SHIFTS = np.array([0.1, 1.0, 50.0])


def system(n, width, seed=0):
    """(the band of a definite matrix B, B, rows and weights for all λ)."""
    rng = np.random.default_rng(seed)
    B = np.zeros((n, n))
    band = np.zeros((n, width + 1))
    for d in range(min(width + 1, n)):
        values = rng.normal(size=n - d) + (4.0 + 2 * width) * (d == 0)
        band[: n - d, d] = values
        B[np.arange(d, n), np.arange(n - d)] = B[np.arange(n - d), np.arange(d, n)] = values
    padded = -(-n // loops.STEPS) * loops.STEPS
    rows, weights = np.zeros((3, padded, width + loops.FRONT)), np.zeros((3, padded))
    loops.factor(band, SHIFTS, rows, weights)
    return band, B, rows, weights


SIZES = pytest.mark.parametrize(("n", "width"), [(1, 1), (2, 1), (7, 1), (64, 1), (5, 2), (33, 4), (70, 32)])


@SIZES
def test_factor(n, width):
    """B + λ = L diag(1/weights) L', the rows of L left of its diagonal in ``rows``; the padding stays 0."""
    _, B, rows, weights = system(n, width)
    for s, shift in enumerate(SHIFTS):
        L = np.eye(n)
        for k in range(n):
            for j in range(max(0, k - width), k):
                L[k, j] = rows[s, k, loops.FRONT + width - (k - j)]
        np.testing.assert_allclose((L / weights[s, :n]) @ L.T, B + shift * np.eye(n), rtol=1e-11, atol=1e-11)
        assert not rows[s, n:].any() and not weights[s, n:].any() and not rows[s, :, : loops.FRONT].any()


@SIZES
def test_substitute(n, width):
    """(B + λ)⁻¹ of several right-hand sides, and of none."""
    _, B, rows, weights = system(n, width)
    for right in (np.random.default_rng(1).normal(size=(3, n)), np.empty((0, n))):
        for s, shift in enumerate(SHIFTS):
            out = np.full_like(right, np.nan)
            loops.substitute(rows[s], weights[s], right, out)
            np.testing.assert_allclose(out, np.linalg.solve(B + shift * np.eye(n), right.T).T, rtol=1e-10, atol=1e-12)


@SIZES
def test_inverse_traces(n, width):
    """tr (B + λ)⁻¹ for each λ."""
    _, B, rows, weights = system(n, width)
    out = np.full(3, np.nan)
    loops.inverse_traces(rows, weights, n, out)
    expected = [np.trace(np.linalg.inv(B + shift * np.eye(n))) for shift in SHIFTS]
    np.testing.assert_allclose(out, expected, rtol=1e-11)


@SIZES
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse_diagonals(n, width, dtype):
    """p'(B + λ)⁻¹p for some columns p of P; the others are not touched."""
    _, B, rows, weights = system(n, width)
    P = np.random.default_rng(2).normal(size=(n, 150)).astype(dtype)
    for start, stop in ((0, 150), (0, 1), (64, 130), (7, 7)):
        out = np.full((3, 150), np.nan)
        loops.inverse_diagonals(P, rows.astype(dtype), weights.astype(dtype), start, stop, out)
        for s, shift in enumerate(SHIFTS):
            expected = np.einsum("ki,ki->i", P, np.linalg.solve(B + shift * np.eye(n), P.astype(np.float64)))
            tolerance = 1e-4 if dtype == np.float32 else 1e-10
            np.testing.assert_allclose(out[s, start:stop], expected[start:stop], rtol=tolerance)
        assert np.isnan(np.delete(out, np.s_[start:stop], axis=1)).all()
