"""Weighted ridge regressions over one kernel matrix agree with a dense solver, whatever the preconditioner."""

import numpy as np
import pytest

from mercer import Gaussian
from mercer.erm.weighted_ridge import StoredSystem, TiledSystem, solve_weighted
from mercer.gram.operator import Data
from mercer.problems.clock import Clock
from mercer.problems.solution import Options

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
r = rng.normal(size=300)
K = Gaussian(0.5)(X)


def dense(W, fits_intercept):
    """δ and c from the bordered matrix."""
    A, right = K + np.diag(1.0 / W), r
    if not fits_intercept:
        return np.linalg.solve(A, right), 0.0
    A = np.block([[A, np.ones((300, 1))], [np.ones((1, 300)), np.zeros((1, 1))]])
    found = np.linalg.solve(A, np.append(right, 0.0))
    return found[:-1], found[-1]


def system_of(kind, clock):
    data = Data(Gaussian(0.5), X, 300)
    return TiledSystem(data, Options(), clock) if kind == "tiled" else StoredSystem(data, Options())


@pytest.mark.parametrize("fits_intercept", [True, False])
@pytest.mark.parametrize("kind", ["stored", "tiled"])
@pytest.mark.parametrize("C", [0.01, 1.0, 1e3, 1e6])
def test_dense_solver(kind, C, fits_intercept):
    """δ, Kδ and c are those of the dense system, for several weights in turn: factors of former weights are used."""
    with Clock(None) as clock:
        system, W = system_of(kind, clock), C * rng.uniform(0.1, 1.0, 300)
        for changed in (0, 3, 200):
            W[:changed] *= 0.5
            found = solve_weighted(system, W.copy(), r, fits_intercept, 0.0, 1e-22 * C, clock)
            delta, c = dense(W, fits_intercept)
            scale = np.abs(delta).max()
            np.testing.assert_allclose(found.delta, delta, atol=1e-7 * scale)
            np.testing.assert_allclose(found.K_delta, K @ delta, atol=1e-7 * scale)
            assert found.c == pytest.approx(c, abs=1e-7 * scale)
            assert abs(found.delta.sum()) < 1e-9 * scale * 300 or not fits_intercept


def test_forcing_ends_early():
    """With a forcing of 0.1 the weighted residual is a tenth of the first one or less, after fewer products."""
    with Clock(None) as clock:
        counts = []
        for forcing in (0.1, 1e-8):
            system = system_of("stored", clock)
            W = np.full(300, 0.5)
            found = solve_weighted(system, W, r, False, forcing, 0.0, clock)
            left = r - found.K_delta - found.delta / W
            assert found.solved and W @ left**2 <= forcing**2 * (W @ r**2) * 1.001
            counts.append(system._products)
    assert counts[0] < counts[1]
