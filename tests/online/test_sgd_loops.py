"""Steps of stochastic descent, by the plain algorithm that scales vectors and sums iterates."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.linear.loop_data import SHAPES, csr, matrix

from mercer.online import _sgd_loops as loops

LAM = 0.3


# steps of given sizes: the second makes w = 0, and others change its sign
FREE = np.r_[0.5, 1 / LAM, 1.9 / LAM, np.full(60, 0.7)]


def plain(X, y, weight, order, batch, bias, lam, project, start, eta=()):
    """(w, sum of the iterates after ``start``, β, updates) of one problem, with w = (weights, intercept).

    After t steps w = θ/(λt). Each step adds y weight x/batch of its samples inside the margin to θ; with ``project`` θ
    is then scaled so that |w| ≤ 1/√λ. With ``eta`` θ is w itself: (1 − ηλ)w + η Σ y weight x/batch.
    """
    n, d = X.shape
    theta, total, beta, updates = np.zeros(d + 1), np.zeros(d + 1), np.zeros(n), 0
    whole = np.column_stack([X, np.full(n, bias)])
    for t, first in enumerate(range(0, len(order), batch), 1):
        some = order[first : first + batch]
        w = theta / (lam * t) if lam > 0 and not len(eta) else theta
        if t > start:
            total += w
        f = whole[some] @ w
        hit = some[y[some] * f < 1.0] if lam > 0 else some[y[some] * f <= 0.0]
        if len(eta):
            theta, beta = (1 - eta[t - 1] * lam) * theta, (1 - eta[t - 1] * lam) * beta
        for i in hit:
            change = y[i] * weight[i] / len(some) * (eta[t - 1] if len(eta) else 1.0)
            theta += change * whole[i]
            beta[i] += change
            updates += 1
        if project:
            length = np.linalg.norm(theta)
            longest = np.sqrt(lam) * (t + 1)
            if length > longest:
                theta, beta = theta * longest / length, beta * longest / length
    return theta, total, beta, updates


def state(n_problems):
    """The state at the start: scale 1, the rest 0."""
    found = np.zeros((n_problems, 6))
    found[:, loops.SCALE] = 1.0
    return found


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize(
    ("lam", "project", "eta"),
    [(LAM, False, np.empty(0)), (LAM, True, np.empty(0)), (0.0, False, np.empty(0)), (LAM, False, FREE)],
    ids=["pegasos", "project", "perceptron", "free"],
)
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_linear_steps(kind, m, batch, lam, project, eta, bias):
    """θ, the sum of iterates, β and the number of updates are those of the plain algorithm."""
    rng = np.random.default_rng(0)
    X = matrix(25, 6) + 0.1
    labels, weight = np.where(rng.random((25, m)) < 0.5, -1.0, 1.0), rng.uniform(0.5, 1.5, 25)
    order, start = rng.integers(0, 25, 40), 3
    rows = sp.csr_array(X)
    indices = rows.indices.astype(np.uint32) if kind == "sparse" else np.empty(0, np.uint32)
    given = (rows.indptr, indices, rows.data) if kind == "sparse" else (np.arange(26) * 6, indices, X.ravel())
    V, A = np.zeros((2, 6, m) if kind == "sparse" else (2, m, 6))
    beta, own, push = np.zeros((25, m)), state(m), labels * weight[:, None]
    norms = (X**2).sum(axis=1)
    loops.linear_steps(*given, norms, push, order, eta, batch, bias, lam, project, 0, start, V, A, beta, own, 0, m)
    for c in range(m):
        theta, total, mine, updates = plain(X, labels[:, c], weight, order, batch, bias, lam, project, start, eta)
        v, a = (V[:, c], A[:, c]) if kind == "sparse" else (V[c], A[c])
        scale, level, _, done, b, b_sum = own[c]
        np.testing.assert_allclose(scale * v, theta[:-1], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(level * v - a, total[:-1], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(scale * beta[:, c], mine, rtol=1e-9, atol=1e-10)
        assert done == updates
        if bias:
            np.testing.assert_allclose([scale * b, level * b - b_sum], [theta[-1], total[-1]], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("lam", "project", "eta"),
    [(LAM, False, np.empty(0)), (LAM, True, np.empty(0)), (0.0, False, np.empty(0)), (LAM, False, FREE)],
    ids=["pegasos", "project", "perceptron", "free"],
)
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("m", [1, 2])
def test_kernel_steps(lam, project, eta, batch, m):
    """The same with coefficients over members: θ = Σ v φ for the kernel ⟨x, z⟩."""
    rng = np.random.default_rng(1)
    X, weight = matrix(20, 5) + 0.1, rng.uniform(0.5, 1.5, 20)
    labels, position = np.where(rng.random((m, 20)) < 0.5, -1.0, 1.0), rng.integers(0, 20, 35)
    K = X @ X.T
    v, A = np.zeros((2, m, 20))
    own = state(m)
    loops.kernel_steps(
        K[position], position, eta, np.diag(K).copy(), labels, weight, batch, 0.0, lam, project, 0, 2, -1, v, A, own
    )
    for c in range(m):
        theta, total, _, updates = plain(X, labels[c], weight, position, batch, 0.0, lam, project, 2, eta)
        np.testing.assert_allclose(own[c, loops.SCALE] * v[c] @ X, theta[:-1], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose((own[c, loops.SUM] * v[c] - A[c]) @ X, total[:-1], rtol=1e-9, atol=1e-10)
        assert own[c, loops.UPDATES] == updates


@pytest.mark.parametrize("budget", [0, 1, 3])
def test_a_budget_of_members(budget):
    """After each step the shortest members go: at most ``budget`` have a coefficient."""
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(20, 5)), np.where(rng.random((1, 20)) < 0.5, -1.0, 1.0)
    K, position = X @ X.T, rng.integers(0, 20, 30)
    v, A, own = np.zeros((1, 20)), np.zeros((1, 20)), state(1)
    coefficients = np.zeros(20)
    for j in position:
        if labels[0, j] * (K[j] @ coefficients) <= 0:
            coefficients[j] += labels[0, j]
            while np.count_nonzero(coefficients) > budget:
                lengths = np.where(coefficients != 0, coefficients**2 * np.diag(K), np.inf)
                coefficients[np.argmin(lengths)] = 0.0
    loops.kernel_steps(
        K[position], position, np.empty(0), np.diag(K).copy(), labels, np.ones(20),
        1, 0.0, 0.0, False, 0, 0, budget, v, A, own,
    )  # fmt: skip
    np.testing.assert_allclose(v[0], coefficients)
    assert np.count_nonzero(v) <= budget


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_sparse_products(n, d, m):
    """XV and X'β of CSR rows, for one problem and for several."""
    rng = np.random.default_rng(0)
    X, V, out = matrix(n, d), rng.normal(size=(d, m)), np.full((n, m), np.nan)
    loops.sparse_values(*csr(X), V, out)
    np.testing.assert_allclose(out, X @ V, rtol=1e-12, atol=1e-13)
    beta = rng.normal(size=(n, m)) * (rng.random((n, m)) < 0.5)
    expected = V + X.T @ beta
    loops.sparse_sums(*csr(X), beta, V)
    np.testing.assert_allclose(V, expected, rtol=1e-12, atol=1e-13)


def many(n, m=3):
    """(y, f, weight, β with y β in [0, C]) of m problems, some samples at the kink and at the ends."""
    rng = np.random.default_rng(n)
    y, weight = np.where(rng.random((m, n)) < 0.5, -1.0, 1.0), rng.uniform(0.5, 1.5, n)
    return y, np.round(rng.normal(size=(m, n)), 1), weight, y * weight * 0.7 * rng.choice([0.0, 0.4, 1.0], (m, n))


@pytest.mark.parametrize("n", [0, 1, 60])
def test_hinge_sums(n):
    """The losses, and the largest violation by a multiple of β."""
    y, f, weight, beta = many(n)
    C, out = 0.7 * weight, np.full(3, np.nan)
    loops.hinge_losses(y, f, weight, 0.7, out)
    np.testing.assert_allclose(out, (C * np.maximum(0.0, 1.0 - y * f)).sum(axis=1), rtol=1e-12, atol=1e-14)
    part = np.array([1.0, 0.5, 0.0])
    loops.hinge_violations(y, f, weight, 0.7, beta, part, out)
    slack, size = 1.0 - y * f, part[:, None] * beta * y
    each = np.maximum(np.where(size < C, slack, 0.0), np.where(size > 0, -slack, 0.0))
    np.testing.assert_allclose(out, np.maximum(0.0, each.max(axis=1, initial=0.0)), rtol=1e-13)


def test_nan_stays():
    """A NaN among the decision values is not lost in a sum or in a maximum."""
    for place in (0, 4, 8):
        y, f, weight, beta = many(9)
        f[1, place], out = np.nan, np.zeros(3)
        loops.hinge_losses(y, f, weight, 0.7, out)
        assert np.isnan(out).tolist() == [False, True, False]
        loops.hinge_violations(y, f, weight, 0.7, 0.5 * beta, np.ones(3), out)
        assert np.isnan(out).tolist() == [False, True, False]


@pytest.mark.parametrize("n", [0, 1, 60])
def test_dual_points(n):
    """β is y C times the share of draws that were hits, at most 1, and 0 where there were none."""
    rng = np.random.default_rng(n)
    y, _, weight, _ = many(n)
    drawn, step, coefficients = rng.integers(0, 3, n).astype(float), rng.uniform(0.5, 2.0, n), rng.normal(size=(3, n))
    beta, slopes = np.full((3, n), np.nan), np.full(3, np.nan)
    with np.errstate(all="ignore"):
        share = np.where(drawn > 0, np.minimum(1.0, np.abs(coefficients) * 2 / (drawn * step)), 0.0)
    loops.dual_points(y, weight, 0.7, coefficients, drawn, step, 2, beta, slopes)
    np.testing.assert_allclose(beta, y * 0.7 * weight * share, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(slopes, np.abs(beta).sum(axis=1), rtol=1e-13)
