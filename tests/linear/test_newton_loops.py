"""Each pass of Newton's method has the values of its formula in NumPy."""

import numpy as np
import pytest
from tests.linear.loop_data import SHAPES, boxes, csr, matrix
from tests.reference.qp import objective, solve_qp

from mercer.linear import _newton_loops as loops
from mercer.losses import Hinge, SquaredHinge

SMOOTH = (0.2, 0.5)  # ridges


def maximiser(t, l1, ridge, lower, upper):
    """(β, its derivative by t, the loss): the c of the box that maximises t c − l1|c| − ½ ridge c²."""
    free = np.sign(t) * np.maximum(np.abs(t) - l1, 0.0) / ridge
    beta = np.clip(free, lower, upper)
    slope = np.where((lower < free) & (free < upper) & (free != 0), 1.0 / ridge, 0.0)
    return beta, slope, t * beta - l1 * np.abs(beta) - 0.5 * ridge * beta**2


@pytest.mark.parametrize("n", [0, 1, 300])
def test_differentiate(n):
    """β, the second derivative, and the sum of the losses; the first derivative is −β."""
    vectors, f = boxes(n, ridges=SMOOTH), np.random.default_rng(1).normal(size=n)
    beta, D = np.full((2, n), np.nan)
    total = loops.differentiate(f, *vectors, beta, D)
    expected = maximiser(vectors[0] - f, *vectors[1:])
    np.testing.assert_allclose(beta, expected[0], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(D, expected[1], rtol=1e-13)
    assert total == pytest.approx(expected[2].sum(), rel=1e-12, abs=1e-14)
    if n:
        step = 1e-6
        ahead = [loops.differentiate(f + s, *vectors, np.empty(n), np.empty(n)) for s in (-step, step)]
        assert (ahead[1] - ahead[0]) / (2 * step) == pytest.approx(-beta.sum(), rel=1e-5)


def test_a_box_of_one_point():
    """Without a ridge a variable must not move: β is its only value."""
    zero = np.zeros(2)
    beta, D = np.full((2, 2), np.nan)
    assert loops.differentiate(np.array([-3.0, 5.0]), zero, zero, zero, zero, zero, beta, D) == 0.0
    assert not beta.any() and not D.any()


@pytest.mark.parametrize("bias", [0.0, 0.7])
@pytest.mark.parametrize("n, d", [*SHAPES, (2500, 20)])
def test_passes(n, d, bias):
    """f, β, D, the losses and X'β in one pass, dense and sparse, in several blocks of rows."""
    X, vectors = matrix(n, d), boxes(n, ridges=SMOOTH)
    whole = np.column_stack([X, np.full(n, bias)]) if bias else X
    u = np.random.default_rng(1).normal(size=whole.shape[1])
    beta, D, losses = maximiser(vectors[0] - whole @ u, *vectors[1:])
    for loop, rows in ((loops.dense_pass, (X,)), (loops.sparse_pass, csr(X))):
        f, b, second = np.full((3, n), np.nan)
        v = np.zeros(whole.shape[1])
        total = loop(*rows, u, bias, *vectors, f, b, second, v)
        np.testing.assert_allclose(f, whole @ u, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(b, beta, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(second, D)
        np.testing.assert_allclose(v, whole.T @ beta, rtol=1e-9, atol=1e-10)
        assert total == pytest.approx(losses.sum(), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("n", [0, 1, 200])
def test_line_derivatives(n):
    """The derivatives along a line are those of the sum of the losses."""
    vectors, (f, q) = boxes(n, ridges=SMOOTH), np.random.default_rng(2).normal(size=(2, n))
    for s in (0.0, 0.5, -2.0):
        beta, D, _ = maximiser(vectors[0] - f - s * q, *vectors[1:])
        expected = [-beta @ q, D @ q**2]
        np.testing.assert_allclose(loops.line_derivatives(f, q, s, *vectors), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("n, d", SHAPES)
def test_column_squares(n, d):
    """The diagonal of X'DX is added."""
    X, D, out = matrix(n, d), np.random.default_rng(1).random(n), np.ones(d)
    loops.column_squares(*csr(X), D, out)
    np.testing.assert_allclose(out, 1.0 + (X**2).T @ D, rtol=1e-12)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=["hinge", "squared hinge"])
@pytest.mark.parametrize("n, d", [(1, 1), (12, 3), (60, 8)])
def test_solve_few(n, d, loss):
    """The optimum of the reference, a gap within tol, and β of the box; a limit ends it."""
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, d)), np.where(rng.random(n) < 0.5, -1.0, 1.0)
    qp = loss.box_qp(y, np.full(n, 2.0), False)
    vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper
    u, beta, out = np.zeros(d), np.zeros(n), np.zeros(2)
    loops.solve_few(X, np.ones(d), *vectors, 1.0, 0.1, 1e-8, 60, 500, u, beta, out)
    best = -objective(X @ X.T, qp, solve_qp(X @ X.T, qp))
    primal = 0.5 * u @ u + 2.0 * loss.value(y, X @ u).sum()
    assert 0 < out[0] < 500 and out[1] <= 1e-8
    assert primal == pytest.approx(best, rel=1e-7)
    assert (beta >= qp.lower).all() and (beta <= qp.upper).all()
    u[:], beta[:] = 0.0, 0.0
    loops.solve_few(X, np.ones(d), *vectors, 1.0, 0.1, 1e-12, 60, 1, u, beta, out)
    assert out[0] == 1
