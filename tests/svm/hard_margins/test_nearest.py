"""The nearest point of a hull: its optimality condition is a certificate, and decides Gordan's alternative."""

import numpy as np
import pytest
from scipy.optimize import linprog

from mercer.svm.hard_margins.margin import nearest_point


def unit_rows(n, d, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) + shift * rng.normal(size=d)
    return Z / np.linalg.norm(Z, axis=1)[:, None]


@pytest.mark.parametrize("shift", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("n,d", [(1, 1), (2, 3), (10, 3), (40, 8), (300, 5), (60, 60)])
def test_the_condition_of_the_nearest_point(n, d, shift):
    """⟨zᵢ, p⟩ ≥ |p|² for every row, with equality where the row has weight; the weights are convex."""
    Z = unit_rows(n, d, n + d, shift)
    a, p = nearest_point(Z)
    assert (a >= 0).all() and a.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(a @ Z, p, atol=1e-14)
    assert (Z @ p >= p @ p - 1e-12).all()
    np.testing.assert_allclose((Z @ p)[a > 1e-9], p @ p, atol=1e-11)


@pytest.mark.parametrize("seed", range(20))
def test_the_alternative(seed):
    """p = 0 exactly where no v has ⟨zᵢ, v⟩ ≥ 1 for all i, by a linear program."""
    Z = unit_rows(12, 4, seed, shift=seed % 3)
    program = linprog(np.zeros(4), A_ub=-Z, b_ub=-np.ones(12), bounds=[(None, None)] * 4)
    _, p = nearest_point(Z)
    assert (np.linalg.norm(p) > 1e-8) == (program.status == 0)


def test_opposite_rows():
    """The origin is halfway between a row and its mirror image, however many copies there are."""
    Z = np.repeat([[1.0, 0.0], [-1.0, 0.0]], 5, axis=0)
    a, p = nearest_point(Z)
    np.testing.assert_allclose(p, 0.0, atol=1e-15)
    assert a[:5].sum() == pytest.approx(0.5)


def test_a_narrow_cone():
    """Rows almost opposite to each other still lie in a halfspace: |p| = sin of the angle, to its last digits."""
    angle = 1e-7
    Z = np.array([[np.cos(angle), np.sin(angle)], [-np.cos(angle), np.sin(angle)]])
    _, p = nearest_point(Z)
    assert np.linalg.norm(p) == pytest.approx(np.sin(angle), rel=1e-6)


@pytest.mark.parametrize("angle", [1e-4, 1e-7, 1e-10])
def test_rows_of_a_narrow_cone_are_on_one_side(angle):
    """The sum of the rows nearly cancels, and with it its direction; p is on the side of every row all the same."""
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    flat = np.array([[1.0, 0.0, angle], [-0.5, 0.8, angle], [-0.5, -0.8, angle], [0.0, 0.0, 1.0]])
    Z = flat / np.linalg.norm(flat, axis=1)[:, None] @ rotation
    assert (Z @ nearest_point(Z).p).min() > 0
