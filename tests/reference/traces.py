"""The notes' procedures with everything that a trace has, line by line: a dictionary for each drawn sample.

``order`` has the samples that are drawn, a list for each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Trace = list[dict[str, Any]]


def objective(X: Vector, y: Vector, lam: float, w: Vector) -> float:
    """(λ/2)|w|² + (1/m) Σ max(0, 1 − yᵢ⟨w, xᵢ⟩), [SSBD] (15.12)."""
    return float(lam / 2 * (w @ w) + np.mean([max(0.0, 1 - y[i] * (w @ X[i])) for i in range(len(y))]))


def pegasos(X: Vector, y: Vector, lam: float, order: Sequence[Sequence[int]]) -> Trace:
    """[SSBD] 15.5; the step from w⁽ᵗ⁾ to w⁽ᵗ⁺¹⁾ has the size 1/(λ(t + 1))."""
    theta = np.zeros(X.shape[1])
    trace = []
    for t, (i,) in enumerate(order, start=1):
        w = theta / (lam * t)
        margin = y[i] * (w @ X[i])
        updated = margin < 1
        if updated:
            theta = theta + y[i] * X[i]
        trace.append(
            dict(t=t, i=i, margin=margin, updated=updated, step_size=1 / (lam * (t + 1)),
                 objective=objective(X, y, lam, w))
        )  # fmt: skip
    return trace


def pegasos_with_kernels(K: Vector, y: Vector, lam: float, order: Sequence[Sequence[int]]) -> Trace:
    """[SSBD] 16.3 and [L8] Algorithm 1."""
    m = len(y)
    beta = np.zeros(m)
    trace = []
    for t, (i,) in enumerate(order, start=1):
        alpha = beta / (lam * t)
        margin = y[i] * sum(alpha[j] * K[j, i] for j in range(m))
        value = lam / 2 * (alpha @ K @ alpha) + np.mean([max(0.0, 1 - y[j] * (K[j] @ alpha)) for j in range(m)])
        updated = margin < 1
        if updated:
            beta[i] += y[i]
        trace.append(dict(t=t, i=i, margin=margin, updated=updated, step_size=1 / (lam * (t + 1)), objective=value))
    return trace


def descent(X: Vector, y: Vector, lam: float, order: Sequence[Sequence[int]], eta: Callable[[int], float]) -> Trace:
    """[D6] Note 26 with the subgradient of (λ/2)|w|² + mean hinge loss of the samples of step t."""
    w = np.zeros(X.shape[1])
    trace = []
    for t, batch in enumerate(order, start=1):
        value, subgradients = objective(X, y, lam, w), []
        for i in batch:
            margin = y[i] * (w @ X[i])
            subgradients.append(lam * w - (y[i] * X[i] if margin < 1 else 0.0))
            trace.append(dict(t=t, i=i, margin=margin, updated=margin < 1, step_size=eta(t), objective=value))
        w = w - eta(t) * np.mean(subgradients, axis=0)
    return trace


def perceptron(X: Vector, y: Vector, order: Sequence[int]) -> Trace:
    """[SSBD] Remark 15.1 and the batch perceptron of chapter 9: while a sample has yᵢ⟨w, xᵢ⟩ ≤ 0, add yᵢxᵢ to w."""
    w, mistakes = np.zeros(X.shape[1]), 0
    trace = []
    for t, i in enumerate(order, start=1):
        margin = y[i] * (w @ X[i])
        mistake = margin <= 0
        if mistake:
            w = w + y[i] * X[i]
            mistakes += 1
        trace.append(
            dict(t=t, passes=(t - 1) // len(y) + 1, i=i, margin=margin, mistake=mistake, mistakes=mistakes)
        )  # fmt: skip
    return trace


def kernel_perceptron(K: Vector, y: Vector, order: Sequence[int]) -> Trace:
    """[SSBD] Exercise 16.2: w = Σ βⱼ ψ(xⱼ) is never formed."""
    beta, mistakes = np.zeros(len(y)), 0
    trace = []
    for t, i in enumerate(order, start=1):
        margin = y[i] * sum(beta[j] * K[j, i] for j in range(len(y)))
        mistake = margin <= 0
        if mistake:
            beta[i] += y[i]
            mistakes += 1
        trace.append(
            dict(t=t, passes=(t - 1) // len(y) + 1, i=i, margin=margin, mistake=mistake, mistakes=mistakes)
        )  # fmt: skip
    return trace


def kernel_lms(phi: Vector, y: Vector, alpha: float, n_steps: int) -> Trace:
    """[CS229] (5.7): θ := θ + α Σ (yᵢ − ⟨θ, φ(xᵢ)⟩) φ(xᵢ), on explicit features φ."""
    theta = np.zeros(phi.shape[1])
    trace = []
    for t in range(1, n_steps + 1):
        residual = y - phi @ theta
        new = theta + alpha * sum(residual[i] * phi[i] for i in range(len(y)))
        trace.append(dict(t=t, error=0.5 * sum(residual**2), change=np.linalg.norm(new - theta)))
        theta = new
    return trace
