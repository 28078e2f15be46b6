"""Stochastic subgradient descent for the soft-margin machine, as the notes' pseudo-code has it, line by line.

``order`` has the samples that are drawn, a list for each step. Each function returns all iterates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def procedure(X: Vector, y: Vector, lam: float, order: Sequence[Sequence[int]]) -> list[Vector]:
    """[SSBD] 15.5: w⁽¹⁾, …, w⁽ᵀ⁾."""
    theta = np.zeros(X.shape[1])
    iterates = []
    for t, (i,) in enumerate(order, start=1):
        w = theta / (lam * t)
        iterates.append(w)
        if y[i] * (w @ X[i]) < 1:
            theta = theta + y[i] * X[i]
    return iterates


def procedure_with_kernels(K: Vector, y: Vector, lam: float, order: Sequence[Sequence[int]]) -> list[Vector]:
    """[SSBD] 16.3 and [L8] Algorithm 1: α⁽¹⁾, …, α⁽ᵀ⁾."""
    beta = np.zeros(len(y))
    iterates = []
    for t, (i,) in enumerate(order, start=1):
        alpha = beta / (lam * t)
        iterates.append(alpha)
        if y[i] * (K[i] @ alpha) < 1:
            beta = beta.copy()
            beta[i] += y[i]
    return iterates


def descent(
    X: Vector, y: Vector, lam: float, order: Sequence[Sequence[int]], eta: Callable[[int], float]
) -> list[Vector]:
    """[D6] Note 26 with the subgradient of (λ/2)|w|² + mean hinge loss of the samples of step t: w⁽¹⁾, …, w⁽ᵀ⁾."""
    w = np.zeros(X.shape[1])
    iterates = []
    for t, batch in enumerate(order, start=1):
        iterates.append(w)
        subgradients = [lam * w - (y[i] * X[i] if y[i] * (w @ X[i]) < 1 else 0.0) for i in batch]
        w = w - eta(t) * np.mean(subgradients, axis=0)
    return iterates
