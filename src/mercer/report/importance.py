"""Which inputs matter: what a score loses without a column, and how steep the decision is along a feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.inspection import permutation_importance

from mercer.estimators.pairs import pair_coefficients
from mercer.kernels import Gaussian, Kernel, Linear
from mercer.kernels.features import Matrix, Vector
from mercer.workflow.training import Outcome

# samples and repeats of the permutations
SAMPLES, REPEATS = 500, 5


def permuted(outcome: Outcome) -> list[tuple[str, float, float]]:
    """(column, mean loss of score, its spread) where the column's cells are shuffled, the largest first."""
    samples = outcome.samples
    if samples.kind == "strings":
        return []
    n = len(samples)
    chosen = np.random.default_rng(0).permutation(n)[:SAMPLES]
    X, y = samples.X, np.asarray(samples.y)[chosen]
    if samples.kind == "table":
        names = [c.name for c in samples.columns if c.kind != "left out"]
        part = X[names].iloc[chosen]
    else:
        if X.shape[1] > 200 or hasattr(X, "toarray"):
            return []
        names, part = [f"feature {j}" for j in range(X.shape[1])], X[chosen]
    found = permutation_importance(outcome.model, part, y, n_repeats=REPEATS, random_state=0)
    order = np.argsort(-found.importances_mean)
    return [(names[j], float(found.importances_mean[j]), float(found.importances_std[j])) for j in order]


def steepness(outcome: Outcome) -> Vector | None:
    """The root mean square over samples of ∂f/∂x_j, exact, for each feature as the machine sees it; None if unknown.

    For several decision functions their root mean square, too.
    """
    machine = outcome.machine
    coef = getattr(machine, "coef_", None) if not hasattr(machine, "_kernel") else None
    if coef is not None:
        return np.asarray(np.sqrt(np.mean(np.square(np.atleast_2d(coef)), axis=0)))
    kernel: Kernel | None = getattr(machine, "_kernel", None)
    if not isinstance(kernel, Gaussian | Linear):
        return None
    X = _dense(outcome.prepared)
    if X is None:
        return None
    X = X[np.random.default_rng(0).permutation(len(X))[:SAMPLES]]
    support, weights = _dense(machine.support_vectors_), _weights(machine)
    if support is None:
        return None
    squares = np.zeros(X.shape[1])
    for beta in weights:
        squares += np.mean(np.square(_gradients(kernel, X, support, beta)), axis=0)
    return np.asarray(np.sqrt(squares / len(weights)))


def _gradients(kernel: Kernel, X: Matrix, support: Matrix, beta: Vector) -> Matrix:
    """∂/∂x Σ βᵢ k(xᵢ, x) at each row of X."""
    if isinstance(kernel, Linear):
        return np.broadcast_to(beta @ support, X.shape)
    assert isinstance(kernel, Gaussian)
    gamma = np.asarray(kernel.gamma, dtype=np.float64)
    K = kernel(X, support) * beta
    return np.asarray(2.0 * gamma * (K @ support - K.sum(axis=1)[:, None] * X))


def _dense(X: Any) -> Matrix | None:
    if hasattr(X, "toarray"):
        return np.asarray(X.toarray()) if X.shape[0] * X.shape[1] <= 5_000_000 else None
    return np.asarray(X, dtype=np.float64)


def _weights(machine: Any) -> Matrix:
    """A row of coefficients of all support vectors for each decision function."""
    coef = machine.dual_coef_
    coef = np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef)
    if len(coef) == 1:  # one function, whatever the number of classes that its vectors come from
        return coef
    return pair_coefficients(coef, np.concatenate([[0], np.cumsum(machine.n_support_)]))
