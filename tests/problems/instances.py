"""Small random problems, one for each loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.losses import (
    BoxQP,
    EpsilonInsensitive,
    HardMargin,
    Hinge,
    Huber,
    Loss,
    NuHinge,
    NuInsensitive,
    OneClass,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from mercer.problems import Certificate, certificate

Matrix = NDArray[np.float64]

# every loss with the forms that it has: with an intercept and, where nu is not a parameter, without
FORMS = [
    (loss, intercept)
    for loss in (
        Hinge(),
        SquaredHinge(),
        HardMargin(),
        EpsilonInsensitive(0.2),
        EpsilonInsensitive(0.0),
        SquaredEpsilonInsensitive(0.2),
        SquaredEpsilonInsensitive(0.0),
        Huber(0.5),
        Pinball(0.3),
        OneClass(0.3),
        NuHinge(0.3),
        NuInsensitive(0.4),
    )
    for intercept in ((True,) if hasattr(loss, "nu") else (True, False))
]


@dataclass(frozen=True, eq=False)
class Instance:
    """A kernel matrix with targets, weights and the program that they give."""

    K: Matrix
    loss: Loss
    y: Matrix
    weight: Matrix
    qp: BoxQP

    def F(self, beta: Matrix) -> Matrix:
        return self.K @ self.qp.at_samples(beta, len(self.y))

    def certificate(self, beta: Matrix, **options: object) -> Certificate:
        return certificate(self.qp, self.loss, self.y, self.weight, beta, self.F(beta), **options)


def gaussian_kernel(X: Matrix, gamma: float = 0.5) -> Matrix:
    squares = (X**2).sum(axis=1)
    return np.exp(-gamma * np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0))


def features(kind: str, n: int, rng: np.random.Generator) -> Matrix:
    """Samples in general position, on a line, in many dimensions, repeated or all the same."""
    X = rng.normal(size=(n, {"line": 1, "wide": n}.get(kind, 4)))
    if kind == "repeated":
        X = X[rng.integers(0, max(2, n // 5), size=n)]
    return np.ones_like(X) if kind == "constant" else X


def targets(loss: Loss, X: Matrix, rng: np.random.Generator) -> Matrix:
    """Noisy labels or values that depend on the first feature; both labels occur."""
    value = X[:, 0] + 0.7 * rng.normal(size=len(X))
    if isinstance(loss, OneClass):
        return np.ones(len(X))
    if isinstance(loss, (EpsilonInsensitive, SquaredEpsilonInsensitive, Huber, Pinball, NuInsensitive)):
        return value
    return np.where(value > np.median(value), 1.0, -1.0)


def instance(
    loss: Loss, intercept: bool = True, n: int = 30, C: float = 2.0, seed: int = 0, kind: str = "gaussian"
) -> Instance:
    """A problem with unequal weights, one of them 0."""
    rng = np.random.default_rng(seed)
    X = features(kind, n, rng)
    K = gaussian_kernel(X) if kind == "gaussian" else X @ X.T
    y = targets(loss, X, rng)
    weight = C * rng.uniform(0.3, 2.0, size=n)
    weight[n // 2] = 0.0
    return Instance(K, loss, y, weight, loss.box_qp(y, weight, intercept))
