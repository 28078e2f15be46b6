"""Small linear problems, degenerate ones among them, and their optimum by an independent QP solver."""

import numpy as np
import scipy.sparse as sp
from tests.reference.qp import objective, solve_qp

from mercer.linear.linear_problem import LinearProblem, Penalty, Rows
from mercer.losses import EpsilonInsensitive, Hinge, Pinball, SquaredEpsilonInsensitive, SquaredHinge

SMOOTH = [SquaredHinge(), SquaredEpsilonInsensitive(0.1)]
LOSSES = [Hinge(), EpsilonInsensitive(0.1), Pinball(0.3), *SMOOTH]
REGRESSION = (EpsilonInsensitive, Pinball, SquaredEpsilonInsensitive)
SHAPES = ("tall", "wide", "sparse", "zero rows", "empty columns", "opposite", "equal", "scaled", "zero weights")


def matrix(shape, rng):
    """(X, whether each row occurs twice in a row)."""
    if shape == "tall":
        return rng.normal(size=(60, 4))
    if shape == "wide":
        return rng.normal(size=(15, 40))
    if shape == "equal":
        return np.ones((20, 3))
    if shape == "opposite":
        return np.repeat(rng.normal(size=(20, 5)), 2, axis=0)
    if shape == "scaled":
        return rng.normal(size=(40, 4)) * [30.0, 1.0, 0.03, 1.0]
    X = rng.normal(size=(40, 12)) * (rng.random((40, 12)) < 0.3)
    if shape == "zero rows":
        X[::4] = 0.0
    if shape == "empty columns":
        X[:, ::2] = 0.0
    return X


def make(shape, loss, C, bias, intercept=False, seed=0, penalty=None, stored=sp.csr_array, dtype=np.float64):
    """A problem of this shape; the labels of "opposite" rows contradict each other."""
    rng = np.random.default_rng(seed)
    X = matrix(shape, rng).astype(dtype)
    n = len(X)
    signal = X @ rng.normal(size=X.shape[1]) / max(1.0, np.abs(X).max()) + 0.5 * rng.normal(size=n) + 0.2
    if isinstance(loss, REGRESSION):
        y = signal
    else:
        y = np.tile([1.0, -1.0], n // 2 + 1)[:n] if shape in ("opposite", "equal") else np.where(signal > 0, 1.0, -1.0)
    weight = C * rng.uniform(0.5, 1.5, size=n)
    if shape == "zero weights":
        weight[::3] = 0.0
    return LinearProblem(Rows.of(stored(X), bias), loss, y, weight, intercept, penalty or Penalty())


def optimum(problem):
    """The optimal value, from the dual's reference solution and its own value there."""
    X = problem.rows.X.toarray() if problem.rows.sparse else np.asarray(problem.rows.X)
    X = X.astype(np.float64)
    K = (X @ X.T + problem.rows.bias**2) / problem.penalty.l2
    return -objective(K, problem.qp, solve_qp(K, problem.qp))


def check(problem, solution, tol):
    """The certificate is of this solution, within tol, and brackets the reference optimum."""
    proof = solution.certificate
    assert solution.status.name == "CONVERGED", (solution.status, str(proof))
    assert proof.valid and proof.relative_gap <= tol
    best = optimum(problem)
    size = max(abs(best), 1e-12 * float(np.abs(problem.qp.linear).sum()))
    # the reference is known to about 1e-9
    assert abs(proof.primal - best) <= (tol + 2e-9) * size, (proof.primal, best)
    assert abs(proof.dual - best) <= (tol + 2e-9) * size
