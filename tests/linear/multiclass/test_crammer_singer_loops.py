"""Each loop of the Crammer-Singer machine does what a few lines of NumPy do, on dense and sparse rows."""

import numpy as np
import pytest
from tests.linear.loop_data import KINDS, SHAPES, matrix, stored

from mercer.linear.multiclass import _crammer_singer_loops as loops

BIAS, K = 0.6, 4


def feasible(n, labels, C, seed=0):
    """α with α_k ≤ C [k = label] and sums of 0: some of them 0, some with the label at its bound."""
    rng = np.random.default_rng(seed)
    alpha = np.zeros((n, K))
    for i in range(n):
        paid = C[i] * rng.choice([0.0, 0.5, 1.0])
        share = rng.random(K) * (rng.random(K) < 0.6)
        share[labels[i]] = 0.0
        if share.sum() > 0:
            alpha[i] = -paid * share / share.sum()
            alpha[i, labels[i]] = paid
    return alpha


def state(n, d, kind, seed=0):
    """(X with its constant feature, arrays of the rows, labels, C, α, W = X'α, squared norms)."""
    rng = np.random.default_rng(seed)
    X = matrix(n, d, seed)
    labels, C = rng.integers(0, K, n), rng.uniform(0.5, 2.0, n)
    alpha, whole = feasible(n, labels, C, seed), np.column_stack([X, np.full(n, BIAS)])
    return whole, stored(X, kind), labels, C, alpha, whole.T @ alpha, (whole**2).sum(axis=1)


def scores_of(whole, W, labels):
    """x·w_k + 1 − [k = label]."""
    return whole @ W + 1.0 - np.eye(K)[labels]


def value(whole, labels, alpha):
    """½ Σ |w_k|² + Σ_k≠y α_k, which is minimised."""
    return 0.5 * np.sum((whole.T @ alpha) ** 2) + np.sum(alpha) - alpha[np.arange(len(alpha)), labels].sum()


def projected(z, label, C):
    """The nearest feasible α, by bisection on the shift t of min(bound, z + t)."""
    bound = C * (np.arange(len(z)) == label)
    low, high = -np.abs(z).max() - C - 1.0, np.abs(z).max() + C + 1.0
    for _ in range(200):
        t = 0.5 * (low + high)
        low, high = (t, high) if np.minimum(bound, z + t).sum() < 0 else (low, t)
    return np.minimum(bound, z + high)


def violation_of(a, score, label, C):
    """The largest score minus the smallest of a class that may grow; or minus the lead of the label."""
    may_grow = score[a < C * (np.arange(K) == label)]
    if len(may_grow) == 0:
        return -np.inf
    if score.max() > may_grow.min():
        return score.max() - may_grow.min()
    return np.delete(score, label).max() - may_grow.min() if a[label] == 0 else 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, d", SHAPES)
def test_scores_and_weights(n, d, kind):
    """The scores of each row, and a row times a change added to W, with and without a constant feature."""
    whole, (indptr, indices, values), labels, _, _, W, _ = state(n, d, kind)
    W += np.random.default_rng(1).normal(size=W.shape)
    for bias in (BIAS, 0.0):
        rows = np.column_stack([whole[:, :-1], np.full(n, bias)])
        expected, score = scores_of(rows, W, labels), np.full(K, np.nan)
        for i in range(n):
            loops.scores(indices, values, indptr[i], indptr[i + 1], bias, W, labels[i], score)
            np.testing.assert_allclose(score, expected[i], rtol=1e-12, atol=1e-13)
        for i in range(n):
            change, after = np.arange(K) - 1.5, W + np.outer(rows[i], np.arange(K) - 1.5)
            loops.add_to_weights(indices, values, indptr[i], indptr[i + 1], bias, change, W)
            np.testing.assert_allclose(W, after, rtol=1e-12, atol=1e-13)


def test_project_sample():
    """The nearest point of the feasible set: for ties, for C = 0, and for a C so large that digits would be lost."""
    rng = np.random.default_rng(0)
    out = np.empty(K)
    for C in (0.0, 0.3, 1.0, 50.0):
        for trial in range(100):
            z, label = rng.normal(size=K), int(rng.integers(K))
            if trial % 4 == 0:
                z = np.round(z)
            loops.project_sample(z, label, C, out)
            np.testing.assert_allclose(out, projected(z, label, C), atol=1e-12)
            assert out.sum() == pytest.approx(0.0, abs=1e-14) and (out <= C * (np.arange(K) == label)).all()
    z = np.array([1.0, 2.0, 3.0, 4.0]) * 1e-8
    loops.project_sample(z, 3, 1e12, out)
    np.testing.assert_allclose(out, projected(z, 3, 1.0), rtol=1e-9)


def test_sample_violation():
    """Its definition, for α at its bounds and inside."""
    rng = np.random.default_rng(0)
    for trial in range(300):
        label, C = int(rng.integers(K)), rng.choice([0.0, 1.0])
        a = feasible(1, [label], [C], trial)[0]
        score = np.round(rng.normal(size=K), 0 if trial % 3 == 0 else 9)
        assert loops.sample_violation(a, score, label, C) == violation_of(a, score, label, C)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, d", SHAPES)
@pytest.mark.parametrize("level", [np.inf, 0.5])
def test_descend_samples(n, d, kind, level):
    """One pass: each sample to its optimum, W follows, and the numbers that describe the pass."""
    whole, rows, labels, C, alpha, W, norms = state(n, d, kind)
    order = np.random.default_rng(2).permutation(n).astype(np.uint32)
    mine, before = alpha.copy(), value(whole, labels, alpha)
    entries = np.diff(rows[0].astype(np.int64))
    kept, largest, gap, crossed, work = [], 0.0, 0.0, 0, 0
    for i in order:
        score = scores_of(whole[i : i + 1], whole.T @ mine, labels[i : i + 1])[0]
        bound = C[i] * (np.arange(K) == labels[i])
        violation = violation_of(mine[i], score, labels[i], C[i])
        work += entries[i]
        if violation < -level:
            continue
        kept.append(i)
        if violation <= 0:
            continue
        largest = max(largest, violation)
        gap += C[i] * (score.max() - score[labels[i]]) + mine[i] @ score
        new = projected(mine[i] - score / norms[i], labels[i], C[i])
        free = [a < bound - 1e-12 for a in (mine[i], new)]
        crossed += bool((free[0] != free[1]).any())
        work += entries[i]
        mine[i] = new
    out = np.full(5, np.nan)
    count = loops.descend_samples(*rows, BIAS, W, alpha, norms, labels, C, order, level, out)
    assert order[:count].tolist() == kept
    np.testing.assert_allclose(alpha, mine, atol=1e-9)
    np.testing.assert_allclose(W, whole.T @ alpha, atol=1e-10)
    np.testing.assert_allclose(out[:3], [largest, gap, before - value(whole, labels, mine)], rtol=1e-8, atol=1e-9)
    assert out[3] == crossed and out[4] <= work


def test_an_empty_row():
    """Without a feature only the loss counts: all of C goes to one wrong class."""
    indptr, out = np.zeros(2, np.uint64), np.empty(5)
    alpha, W, order = np.zeros((1, K)), np.zeros((3, K)), np.zeros(1, np.uint32)
    given = indptr, np.empty(0, np.uint32), np.empty(0), 0.0, W, alpha, np.zeros(1), np.array([0]), np.array([2.0])
    assert loops.descend_samples(*given, order, np.inf, out) == 1
    assert alpha[0].tolist() == [2.0, -2.0, 0.0, 0.0] and out[2] == 2.0 and not W.any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, d", SHAPES)
def test_check_samples(n, d, kind):
    """The samples to visit, the largest violation, the losses and the value of the dual."""
    whole, rows, labels, C, alpha, W, _ = state(n, d, kind)
    score = scores_of(whole, W, labels)
    violations = [violation_of(alpha[i], score[i], labels[i], C[i]) for i in range(n)]
    mine = np.arange(n), labels
    for level in (np.inf, 0.3):
        order, out = np.zeros(n, np.uint32), np.full(3, np.nan)
        count = loops.check_samples(*rows, BIAS, W, alpha, labels, C, level, order, out)
        assert order[:count].tolist() == [i for i in range(n) if violations[i] >= -level]
        losses = C @ (score.max(axis=1, initial=-np.inf) - score[mine]) if n else 0.0
        expected = [max(0.0, *violations) if n else 0.0, losses, alpha[mine].sum()]
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_face_step(kind, seed):
    """The objective falls by what is reported, α stays feasible, and W follows."""
    whole, _, labels, C, alpha, W, norms = state(30, 8, kind, seed)
    free = np.flatnonzero(((alpha < np.where(np.eye(K)[labels] > 0, C[:, None], 0.0)).sum(axis=1) > 1) & (norms > 0))
    before, part = alpha.copy(), stored(whole[free, :-1], kind)
    mine, out = alpha[free].copy(), np.full(4, np.nan)
    loops.face_step_samples(*part, BIAS, W, mine, norms[free], labels[free], C[free], 0.0, 200, out)
    alpha[free] = mine
    assert (alpha <= np.where(np.eye(K)[labels] > 0, C[:, None], 0.0) + 1e-12).all()
    np.testing.assert_allclose(alpha.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(W, whole.T @ alpha, atol=1e-10)
    fall = value(whole, labels, before) - value(whole, labels, alpha)
    assert fall >= 0 and out[2] == pytest.approx(fall, rel=1e-8, abs=1e-10)
    assert out[0] > 0 and out[1] in 0.5 ** np.arange(13)


def test_face_step_to_the_minimum():
    """Where no α meets its bound, the scores of all classes of a sample are equal afterwards."""
    rng = np.random.default_rng(0)
    X, labels, C = rng.normal(size=(5, 1000)), np.array([0, 1, 2, 3, 0]), np.full(5, 1e6)
    alpha = np.where(np.eye(K)[labels] > 0, 3.0, -1.0)
    W, out = np.vstack([X.T @ alpha, np.zeros(K)]), np.zeros(4)
    loops.face_step_samples(*stored(X, "dense"), 0.0, W, alpha, (X**2).sum(axis=1), labels, C, 0.0, 500, out)
    assert out[1] == 1.0 and ((alpha < 0) | (np.eye(K)[labels] > 0)).all()
    score = scores_of(np.column_stack([X, np.zeros(5)]), W, labels)
    np.testing.assert_allclose(score, np.repeat(score.mean(axis=1, keepdims=True), K, axis=1), atol=1e-9)
