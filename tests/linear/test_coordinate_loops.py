"""Each loop of coordinate descent does what a few lines of NumPy do, on dense and sparse rows."""

import numpy as np
import pytest
from tests.linear.loop_data import KINDS, SHAPES, boxes, inside, matrix, stored

from mercer.linear import _coordinate_loops as loops

BIAS = 0.6


def objective(b, g, l1, curvature, at):
    """The objective as a function of one variable, up to a constant, from its derivative g at b."""
    return g * (at - b) + 0.5 * curvature * (at - b) ** 2 + l1 * np.abs(at)


def state(n, d, kind, seed=0, ridges=(0.0, 0.5)):
    """(X with its constant feature, arrays of the rows, vectors of the boxes, table, w = X'β)."""
    X, vectors = matrix(n, d, seed), boxes(n, seed, ridges)
    rows = stored(X, kind)
    norms, table = np.empty(n), np.empty((n, loops.WIDTH))
    loops.row_norms(rows[0], rows[2], norms)
    loops.fill_table(*vectors, norms, BIAS, table)
    table[:, loops.BETA] = inside(*vectors[3:], seed)
    whole = np.column_stack([X, np.full(n, BIAS)])
    return whole, rows, vectors, table, whole.T @ table[:, loops.BETA]


def value(whole, vectors, beta):
    """The objective ½|X'β|² − linear'β + Σ l1|β| + ½ Σ ridge β²."""
    linear, l1, ridge, _, _ = vectors
    return 0.5 * np.sum((whole.T @ beta) ** 2) - linear @ beta + l1 @ np.abs(beta) + 0.5 * ridge @ beta**2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, d", SHAPES)
def test_rows(n, d, kind):
    """The product of each row with w, a multiple of it added to w, and its squared norm."""
    X, w = matrix(n, d), np.random.default_rng(1).normal(size=d + 1)
    indptr, indices, values = stored(X, kind)
    norms = np.full(n, np.nan)
    loops.row_norms(indptr, values, norms)
    np.testing.assert_allclose(norms, (X**2).sum(axis=1), rtol=1e-13)
    for i in range(n):
        row = indices, values, indptr[i], indptr[i + 1]
        assert loops.row_dot(*row, w) == pytest.approx(X[i] @ w[:d], rel=1e-12, abs=1e-14)
        expected = w + 0.3 * np.append(X[i], 0.0)
        loops.add_row(*row, 0.3, w)
        np.testing.assert_allclose(w, expected, rtol=1e-13, atol=1e-15)


def test_fill_table():
    """The vectors side by side with β = 0, the curvature, and its inverse, which is 0 for 0."""
    vectors, norms, table = boxes(6), np.array([0.0, 1.0, 2.0, 0.0, 5.0, 1e-3]), np.full((6, loops.WIDTH), np.nan)
    for bias in (0.0, BIAS):
        loops.fill_table(*vectors, norms, bias, table)
        curvature = norms + bias**2 + vectors[2]
        inverse = [1.0 / c if c > 0 else 0.0 for c in curvature]
        np.testing.assert_allclose(table, np.column_stack([np.zeros(6), *vectors, curvature, inverse]), rtol=1e-15)


def test_one_variable():
    """`slopes`, `gain` and `best_value` against the objective of the variable on a fine grid of its box."""
    rng = np.random.default_rng(0)
    for trial in range(300):
        (l1,), (ridge,), (lower,), (upper,) = boxes(1, trial)[1:]
        b, g = inside(np.array([lower]), np.array([upper]), trial)[0], rng.normal()
        curvature = rng.choice([0.0, 0.7])
        grid = np.unique(np.clip(np.append(np.linspace(lower, upper, 4001), [b, 0.0]), lower, upper))
        best = loops.best_value(b, g, l1, lower, upper, 1.0 / curvature if curvature else 0.0)
        values = objective(b, g, l1, curvature, grid)
        assert lower <= best <= upper
        assert objective(b, g, l1, curvature, best) <= values.min() + 1e-12
        assert objective(b, g, l1, curvature, best) >= values.min() - 1e-6
        rate, room = loops.slopes(b, g, l1, lower, upper)
        tiny, rates = 1e-7, []
        for end, sign in ((upper, 1.0), (lower, -1.0)):
            down = objective(b, g, l1, 0.0, b) - objective(b, g, l1, 0.0, b + sign * tiny)
            rates.append((down / tiny, abs(end - b)) if end != b else (-np.inf, 0.0))
        expected = max(rates)
        if expected[0] == -np.inf:
            assert rate == -np.inf
        else:
            assert rate == pytest.approx(expected[0], abs=1e-6)
            assert rates[0][0] == pytest.approx(rates[1][0], abs=1e-6) or room == expected[1]
        if rate > 0:
            steps = np.linspace(0.0, room, 4001)
            assert loops.gain(rate, room, ridge) == pytest.approx(
                (steps * (rate - 0.5 * ridge * steps)).max(), rel=1e-5
            )


def test_shuffle():
    """A permutation that depends on the seed, by Fisher and Yates with Marsaglia's xorshift numbers."""
    for n, seed in ((0, 1), (1, 5), (2, 9), (50, 123456789)):
        order, expected, number = np.arange(n, dtype=np.uint32), list(range(n)), seed
        loops.shuffle(order, seed)
        for k in range(n - 1, 0, -1):
            for shift in (13, -7, 17):
                number ^= (number << shift) % 2**64 if shift > 0 else number >> -shift
            j = ((number >> 32) * (k + 1)) >> 32
            expected[k], expected[j] = expected[j], expected[k]
        assert order.tolist() == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, d", SHAPES)
@pytest.mark.parametrize("level", [np.inf, 0.2])
def test_descend(n, d, kind, level):
    """One pass: exact steps in the given order, w follows, and the numbers that describe the pass."""
    whole, (indptr, indices, values), vectors, table, w = state(n, d, kind)
    linear, l1, ridge, lower, upper = vectors
    beta = table[:, loops.BETA].copy()
    order = np.random.default_rng(2).permutation(n).astype(np.uint32)
    entries = np.diff(indptr.astype(np.int64))
    before, kept, largest, gap, crossed, work, free, read = value(whole, vectors, beta), [], 0.0, 0.0, 0, 0, 0, 0
    for i in order:
        g = whole[i] @ (whole.T @ beta) - linear[i] + ridge[i] * beta[i]
        rate, room = loops.slopes(beta[i], g, l1[i], lower[i], upper[i])
        work += entries[i]
        if rate < -level:
            continue
        kept.append(i)
        if rate <= 0:
            continue
        curvature = whole[i] @ whole[i] + ridge[i]
        new = loops.best_value(beta[i], g, l1[i], lower[i], upper[i], 1 / curvature if curvature else 0.0)
        largest, gap = max(largest, rate), gap + loops.gain(rate, room, ridge[i])
        if new != beta[i]:
            was_inside, is_inside = lower[i] < beta[i] < upper[i], lower[i] < new < upper[i]
            crossed, work = crossed + (was_inside != is_inside), work + entries[i]
            free, read = free + is_inside, read + is_inside * entries[i]
            beta[i] = new
    out = np.full(7, np.nan)
    count = loops.descend(indptr, indices, values, BIAS, w, table, order, level, out)
    assert order[:count].tolist() == kept
    np.testing.assert_allclose(table[:, loops.BETA], beta, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(w, whole.T @ beta, rtol=1e-10, atol=1e-12)
    expected = [largest, gap, before - value(whole, vectors, beta), crossed, work, free, read]
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n", [0, 1, 80])
def test_check_variables(n):
    """The variables to visit, the largest violation, the gap and the value of the dual."""
    whole, _, vectors, table, w = state(n, 5, "dense")
    linear, l1, ridge, lower, upper = vectors
    beta, F = table[:, loops.BETA], whole @ w
    found = [loops.slopes(*numbers) for numbers in zip(beta, F - linear + ridge * beta, l1, lower, upper, strict=True)]
    for level in (np.inf, 0.3, 0.0):
        order, out = np.zeros(n, np.uint32), np.full(3, np.nan)
        count = loops.check_variables(F, table, level, order, out)
        assert order[:count].tolist() == [i for i, (rate, _) in enumerate(found) if rate >= -level]
        gains = [loops.gain(*pair, ridge[i]) for i, pair in enumerate(found) if pair[0] > 0]
        dual = linear @ beta - l1 @ np.abs(beta) - 0.5 * ridge @ beta**2
        np.testing.assert_allclose(
            out, [max([r for r, _ in found if r > 0], default=0.0), sum(gains), dual], rtol=1e-12
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, d", SHAPES[1:])
def test_greedy_steps(n, d, kind):
    """Each step is the one that decreases the objective most; F, w and the decrease follow."""
    whole, rows, vectors, table, w = state(n, d, kind)
    linear, l1, ridge, lower, upper = vectors
    beta, F, gained, row = table[:, loops.BETA].copy(), whole @ w, np.zeros(1), np.zeros(d + 1)
    before = value(whole, vectors, beta)
    for _ in range(3):
        tries = []
        for i in range(n):
            g = whole[i] @ (whole.T @ beta) - linear[i] + ridge[i] * beta[i]
            curvature = whole[i] @ whole[i] + ridge[i]
            other = beta.copy()
            other[i] = loops.best_value(beta[i], g, l1[i], lower[i], upper[i], 1 / curvature if curvature else 0.0)
            tries.append(other)
        beta = min(tries, key=lambda other: value(whole, vectors, other))
    taken = loops.greedy_steps(*rows, BIAS, F, w, table, row, 3, gained)
    assert taken <= 3 and not row.any()
    np.testing.assert_allclose(table[:, loops.BETA], beta, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(w, whole.T @ beta, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(F, whole @ w, rtol=1e-9, atol=1e-11)
    assert gained[0] == pytest.approx(before - value(whole, vectors, beta), rel=1e-9, abs=1e-12)
    table[:, loops.LOWER] = table[:, loops.UPPER] = table[:, loops.BETA]
    assert loops.greedy_steps(*rows, BIAS, F, w, table, row, 3, gained) == 0  # no variable can move


@pytest.mark.parametrize("kind", KINDS)
def test_face_step_without_bounds(kind):
    """Where no bound or kink is near, one Newton step reaches the optimum of the free variables."""
    n, d = 12, 20
    X, l1 = np.random.default_rng(0).normal(size=(n, d)), np.full(n, 0.2)
    whole, ridge, best = np.column_stack([X, np.full(n, BIAS)]), np.full(n, 0.3), np.linspace(1.0, 2.0, n)
    linear = (whole @ whole.T + np.diag(ridge)) @ best + l1
    vectors = linear, l1, ridge, np.full(n, -50.0), np.full(n, 50.0)
    rows, norms, table = stored(X, kind), np.empty(n), np.empty((n, loops.WIDTH))
    loops.row_norms(rows[0], rows[2], norms)
    loops.fill_table(*vectors, norms, BIAS, table)
    beta = np.full(n, 1.0)
    table[:, loops.BETA] = beta
    w, out = whole.T @ beta, np.zeros(5)
    loops.face_step(*rows, BIAS, w, table, 0.0, 200, out)
    found = table[:, loops.BETA]
    np.testing.assert_allclose(found, best, rtol=1e-7)
    assert out[1] == 1.0 and out[2] == 0
    assert out[3] == pytest.approx(value(whole, vectors, beta) - value(whole, vectors, found), rel=1e-9)
    np.testing.assert_allclose(w, whole.T @ found, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_face_step_with_bounds(kind, seed):
    """The objective falls by what is reported, no bound or kink is crossed, and w follows."""
    whole, _, vectors, table, w = state(40, 9, kind, seed)
    beta, (lower, upper) = table[:, loops.BETA], vectors[3:]
    free = np.flatnonzero((beta > lower) & (beta < upper) & (beta != 0) & (table[:, loops.DIAGONAL] > 0))
    some = tuple(vector[free] for vector in vectors)
    part, mine, out = stored(matrix(40, 9, seed)[free], kind), table[free].copy(), np.full(5, np.nan)
    # the others are fixed: their part of w is a linear term
    outside = whole.T @ np.where(np.isin(np.arange(40), free), 0.0, beta)
    shifted = (some[0] - whole[free] @ outside, *some[1:])
    loops.face_step(*part, BIAS, w, mine, 0.0, 100, out)
    new, old = mine[:, loops.BETA], beta[free]
    fall = value(whole[free], shifted, old) - value(whole[free], shifted, new)
    assert out[3] == pytest.approx(fall, rel=1e-9, abs=1e-12) and fall >= 0
    assert ((new >= some[3]) & (new <= some[4])).all()
    assert ((np.sign(new) == np.sign(old)) | (new == 0) | (some[1] == 0)).all()
    np.testing.assert_allclose(w, outside + whole[free].T @ new, rtol=1e-9, atol=1e-11)
    assert 0 < out[0] <= 100 and out[1] in 0.5 ** np.arange(13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 7, 30])
def test_descend_features(kind, m):
    """The minimum of the quadratic model over features, z = M (u − w), and the violations at the end."""
    rng = np.random.default_rng(m)
    M = matrix(m, 25, seed=m)  # a row for each feature
    if m > 1:
        M[1] = 0.0  # its curvature is that of q
    q, l1, r, w = rng.uniform(0.01, 0.2, m), rng.choice([0.0, 0.4], m), rng.normal(size=m), rng.normal(size=m)
    curvature = (M**2).sum(axis=1) + q
    u, z, order, out = w.copy(), np.zeros(25), np.arange(m, dtype=np.uint32), np.full(4, np.nan)
    loops.descend_features(*stored(M, kind), curvature, q, l1, r, w, u, z, order, 1e-10, 5000, 12345, out)
    np.testing.assert_allclose(z, M.T @ (u - w), rtol=1e-9, atol=1e-11)
    g = M @ z + q * (u - w) - r
    violation = np.where(u == 0, np.maximum(0.0, np.abs(g) - l1), np.abs(g + np.sign(u) * l1)) / np.sqrt(curvature)
    assert violation.max() <= 1e-9 and out[0] <= 1e-10 and 0 < out[1] < 5000
    assert sorted(order) == list(range(m)) and out[3] > 0
