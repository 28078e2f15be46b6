"""Proximal points, faces and Newton systems of pinball losses in order agree with general solvers."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from mercer import Gaussian
from mercer.erm.face_system import newton_step
from mercer.erm.sorted_pinball import SortedPinball

TAUS = np.array([0.1, 0.3, 0.5, 0.9])
rng = np.random.default_rng(0)
n = 40
y = np.round(rng.normal(size=n), 1)
losses = SortedPinball(y, rng.uniform(0.1, 3.0, n), TAUS)
mu = rng.uniform(0.05, 0.5, n)
s = y[:, None] + rng.normal(size=(n, 4))
s[:10] = y[:10, None] + 0.01 * rng.normal(size=(10, 4))


def clarabel_nearest(i):
    """z, and both parts of y − z, as a quadratic program."""
    many = len(TAUS)
    P = sp.block_diag([sp.eye(many) / mu[i], sp.csc_matrix((2 * many, 2 * many))]).tocsc()
    linear = np.concatenate([-s[i] / mu[i], losses.weight[i] * TAUS, losses.weight[i] * (1 - TAUS)])
    equal = sp.hstack([sp.eye(many), sp.eye(many), -sp.eye(many)])
    positive = sp.hstack([sp.csc_matrix((2 * many, many)), -sp.eye(2 * many)])
    order = sp.hstack(
        [
            sp.diags([np.ones(many - 1), -np.ones(many - 1)], [0, 1], shape=(many - 1, many)),
            sp.csc_matrix((many - 1, 2 * many)),
        ]
    )
    A, right = sp.vstack([equal, positive, order]).tocsc(), np.append(np.full(many, y[i]), np.zeros(3 * many - 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(many), clarabel.NonnegativeConeT(3 * many - 1)]
    return np.array(clarabel.DefaultSolver(P, linear, A, right, cones, settings).solve().x)[:many]


def test_proximal_points():
    """A solver of quadratic programs finds the same nearest point for each sample."""
    found = losses.nearest(s, mu)
    assert (np.diff(found) >= -1e-12).all()
    np.testing.assert_allclose(found, [clarabel_nearest(i) for i in range(n)], atol=1e-5)


def test_the_face_is_where_the_proximal_point_does_not_move():
    """The derivative of the proximal point is 1 − UU', for samples at y, apart and together."""
    z = losses.nearest(s, mu)
    face = losses.face(z, s)
    assert sum(map(len, face.single)) > 20 and len(face.rows) > 10
    V = rng.normal(size=s.shape)
    moved = (losses.nearest(s + 1e-7 * V, mu) - losses.nearest(s - 1e-7 * V, mu)) / 2e-7
    np.testing.assert_allclose(moved, V - face.project(V, np.ones(n)), atol=1e-6)
    expected = sum(u.T @ u for u in dense_directions(face))
    np.testing.assert_allclose(face.total(np.ones(n)), expected, atol=1e-12)


def dense_directions(face):
    """Each direction as a matrix over samples and quantiles."""
    directions = [(i, np.eye(4)[q]) for q, at in enumerate(face.single) for i in at]
    for i, u in [*directions, *zip(face.rows, face.U, strict=True)]:
        yield np.where(np.arange(n)[:, None] == i, u, 0.0)


@pytest.mark.parametrize("pooled", [True, False])
def test_newton_system(pooled):
    """D and d solve D = ρ − W(KD + 1d') with sums of 0, with W as a dense matrix."""
    K = Gaussian(0.5)(rng.normal(size=(n, 2)))
    face = losses.face(losses.nearest(s, mu), s)
    if not pooled:
        face = face._replace(rows=face.rows[:0], U=face.U[:0])
    rho = rng.normal(size=(n, 4))
    D, d = newton_step(K, mu, face, rho, K @ rho)
    t = K @ D + d
    np.testing.assert_allclose(D, rho - face.project(t, 1.0 / mu), atol=1e-8)
    np.testing.assert_allclose(D.sum(axis=0), 0.0, atol=1e-9)
