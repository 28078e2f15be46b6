"""Each pass of the interior-point method solves the equations that its file states."""

import numpy as np
import pytest
from tests.linear.loop_data import SHAPES, boxes, csr, inside, matrix

from mercer.linear import _interior_loops as loops

SPLIT = pytest.mark.parametrize("split", [False, True], ids=["one part", "two parts"])
N = 40


def program(split, seed=0):
    """(l1, ridge, lower, upper): boxes with room; a side of some of those with a ridge has no end."""
    rng = np.random.default_rng(seed)
    l1 = rng.choice([0.0, 0.3], N) if split else np.zeros(N)
    ridge = np.where(np.arange(N) % 2, 0.4, 0.0)
    lower, upper = -rng.uniform(0.5, 2.0, N), rng.uniform(0.5, 2.0, N)
    if not split:
        lower[1::8], upper[3::8] = -np.inf, np.inf
        lower[5::8], upper[5::8] = -np.inf, np.inf
    return l1, ridge, lower, upper


def finite(split, lower, upper):
    """(fd, fu): which bounds of the parts exist."""
    if split:
        return np.ones((2, N)), np.ones((2, N))
    return np.isfinite(lower).astype(float)[None], np.isfinite(upper).astype(float)[None]


def centred(split, mu=0.1, seed=0):
    """A point of the central path: (t, l1, ridge, lower, upper, β, dn, up, zd, zu)."""
    l1, ridge, lower, upper = program(split, seed)
    t = np.random.default_rng(seed + 1).normal(size=N)
    if split:
        ridge = np.zeros(N)  # with two parts and a ridge `centre` is the point of each part alone
    beta, parts = np.empty(N), np.empty((4, 2 if split else 1, N))
    loops.centre(t, l1, ridge, lower, upper, mu, beta, *parts)
    return t, l1, ridge, lower, upper, beta, *parts


def residuals(split, t, l1, ridge, beta, zd, zu):
    """The residuals of the conditions of each part."""
    s = t - ridge * beta
    return np.array([s - l1 + zd[0] - zu[0], -s - l1 + zd[1] - zu[1]]) if split else (s + zd[0] - zu[0])[None]


@SPLIT
@pytest.mark.parametrize("mu", [1e-6, 0.1, 10.0])
def test_centre(split, mu):
    """Products of distance and multiplier are μ, distances add up to the box, and the conditions hold."""
    t, l1, ridge, lower, upper, beta, dn, up, zd, zu = centred(split, mu)
    fd, fu = finite(split, lower, upper)
    np.testing.assert_allclose(dn * zd, mu * fd, rtol=1e-9)
    np.testing.assert_allclose(up * zu, mu * fu, rtol=1e-9)
    if split:
        x = np.array([dn[0], dn[1]])
        np.testing.assert_allclose(beta, x[0] - x[1], atol=1e-12)
        np.testing.assert_allclose(dn + up, np.array([upper, -lower]), rtol=1e-12)
    else:
        closed = (fd * fu)[0] > 0
        np.testing.assert_allclose((dn + up)[0, closed], (upper - lower)[closed], rtol=1e-12)
        np.testing.assert_allclose(beta[fd[0] > 0], (lower + dn[0])[fd[0] > 0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(beta[fu[0] > 0], (upper - up[0])[fu[0] > 0], rtol=1e-9, atol=1e-12)
        # a closed box has no ridge in this point: `centre` spreads it over the bounds
        ridge = np.where(closed, 0.0, ridge)
    left = residuals(split, t, l1, ridge, beta, zd, zu)
    np.testing.assert_allclose(left, 0.0, atol=1e-8 * (1.0 + np.abs(zd) + np.abs(zu)).max())


@SPLIT
def test_a_newton_step(split):
    """After the step the linearised conditions and products hold; rate, products, slope and bend are its numbers."""
    t, l1, ridge, lower, upper, beta, dn, up, zd, zu = centred(split)
    rng = np.random.default_rng(3)
    if split:
        ridge = np.where(np.arange(N) % 2, 0.4, 0.0)
    fd, fu = finite(split, lower, upper)
    a, rd, ru = rng.normal(size=N), fd * rng.uniform(0.01, 0.2, fd.shape), fu * rng.uniform(0.01, 0.2, fu.shape)
    D, Dg, dbeta = np.empty((3, N))
    dx, dzd, dzu = np.empty((3, *dn.shape))
    loops.weights(t, l1, ridge, beta, dn, up, zd, zu, rd, ru, D, Dg)
    rate, products, slope, bend = loops.step(
        t, l1, ridge, beta, dn, up, zd, zu, fd, fu, rd, ru, a, D, Dg, dbeta, dx, dzd, dzu
    )
    np.testing.assert_allclose(dbeta, Dg - D * a, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dbeta, dx[0] - dx[1] if split else dx[0], rtol=1e-9, atol=1e-11)
    after = residuals(split, t - a, l1, ridge, beta + dbeta, zd + dzd, zu + dzu)
    np.testing.assert_allclose(after, 0.0, atol=1e-9)
    down, upward = fd * dx, -fu * dx
    np.testing.assert_allclose(fd * (dn * zd + zd * down + dn * dzd), rd, atol=1e-10)
    np.testing.assert_allclose(fu * (up * zu + zu * upward + up * dzu), ru, atol=1e-10)
    # a multiplier without a bound is 0 and stays so
    changes = (down, dn), (upward, up), (fd * dzd, zd + 1 - fd), (fu * dzu, zu + 1 - fu)
    shrinks = [-change / size for change, size in changes]
    assert rate == pytest.approx(max(0.0, np.max(shrinks)), rel=1e-10)
    for length in (0.0, 0.4, 1.0):
        total = np.sum((dn + length * down) * (zd + length * dzd) + (up + length * upward) * (zu + length * dzu))
        assert products + length * (slope + length * bend) == pytest.approx(total, rel=1e-9)


@SPLIT
def test_corrections_and_move(split):
    """The wanted products are the target minus second-order terms; a move adds its length times the step."""
    rng = np.random.default_rng(0)
    parts = 2 if split else 1
    fd, fu = rng.integers(0, 2, (2, parts, N)).astype(float)
    dx, dzd, dzu, dn, up, zd, zu = rng.normal(size=(7, parts, N))
    rd, ru = np.full((2, parts, N), np.nan)
    loops.corrections(0.3, fd, fu, dx, dzd, dzu, rd, ru)
    np.testing.assert_allclose(rd, fd * (0.3 - dx * dzd), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(ru, fu * (0.3 + dx * dzu), rtol=1e-13, atol=1e-15)
    a, dbeta, t, beta = rng.normal(size=(4, N))
    steps = (-a, dbeta, fd * dx, -fu * dx, dzd, dzu)
    expected = [x + 0.7 * step for x, step in zip((t, beta, dn, up, zd, zu), steps, strict=True)]
    loops.move(0.7, a, dbeta, dx, dzd, dzu, fd, fu, t, beta, dn, up, zd, zu)
    for found, right in zip((t, beta, dn, up, zd, zu), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("n", [0, 1, 50])
def test_loss_and_gap(n):
    """conj(t) is the largest value over the box, here by a fine grid; the gap is what β misses of it."""
    linear, l1, ridge, lower, upper = boxes(n)
    beta, t = inside(lower, upper), linear
    value, gap = loops.loss_and_gap(t, l1, ridge, lower, upper, beta)
    grid = np.array([np.append(np.linspace(low, high, 20001), 0.0) for low, high in zip(lower, upper, strict=True)])
    conj = np.array([(t[i] * b - l1[i] * np.abs(b) - 0.5 * ridge[i] * b**2).max() for i, b in enumerate(grid)])
    own = t * beta - l1 * np.abs(beta) - 0.5 * ridge * beta**2
    np.testing.assert_allclose([value, gap], [conj.sum(), (conj - own).sum()], rtol=1e-6, atol=1e-9)
    assert gap >= 0


def test_loss_of_an_open_box():
    """With a ridge and no bound, conj(t) = (|t| − l1)² / (2 ridge)."""
    t, one = np.array([-2.0, 0.1, 3.0]), np.ones(3)
    value, gap = loops.loss_and_gap(t, 0.5 * one, 2.0 * one, -np.inf * one, np.inf * one, np.zeros(3))
    assert value == gap == pytest.approx((1.5**2 + 2.5**2) / 4.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n, d", [*SHAPES, (300, 7)])
def test_grams(n, d, dtype):
    """X'DX of dense rows with a constant column; of sparse rows each product once, and X'D1; some D are 0."""
    X = matrix(n, d, dtype=dtype)
    D = np.random.default_rng(1).random(n) * (np.arange(n) % 3 > 0)
    exact = X.astype(np.float64)
    for bias in (0.0, 0.7):
        whole = np.column_stack([exact, np.full(n, bias)]) if bias else exact
        H = np.full((whole.shape[1],) * 2, np.nan)
        loops.dense_gram(X, D, bias, H)
        np.testing.assert_allclose(H, (whole.T * D) @ whole, rtol=1e-11, atol=1e-12)
    H, h = np.zeros((d, d)), np.zeros(d)
    loops.sparse_gram(*csr(X), D, H, h)
    np.testing.assert_allclose(h, exact.T @ D, rtol=1e-11, atol=1e-12)
    expected = (exact.T * D) @ exact
    np.testing.assert_allclose(H + H.T - np.diag(np.diag(H)), expected, rtol=1e-11, atol=1e-12)
