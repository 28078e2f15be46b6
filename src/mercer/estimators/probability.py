"""Probabilities from decision values: Platt's sigmoid for a pair, pairwise coupling for several classes.

Lin, Lin & Weng, "A note on Platt's probabilistic outputs for support vector machines", Machine Learning 68 (2007);
Wu, Lin & Weng, "Probability estimates for multi-class classification by pairwise coupling", JMLR 5 (2004), method 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state

from mercer.estimators.pairs import OneVsOne, class_pairs
from mercer.exceptions import InfeasibleNuError
from mercer.gram.operator import product
from mercer.kernels.features import Matrix, Vector
from mercer.losses import Loss, NuHinge

FOLDS = 5
SMALLEST = 1e-7


def fit_sigmoids(problems: OneVsOne, random_state: Any) -> tuple[Vector, Vector]:
    """The slope and offset of each pair's sigmoid, from five-fold decision values; 0 where a class is empty."""
    random = check_random_state(random_state)
    A, B = np.zeros(len(problems.pairs)), np.zeros(len(problems.pairs))
    for k, (i, j) in enumerate(problems.pairs):
        index, y = problems.samples(i, j)
        if len(np.unique(y)) == 2:
            A[k], B[k] = sigmoid(_held_out_values(problems, index, y, random.permutation(len(y))), y)
    return A, B


def _held_out_values(problems: OneVsOne, index: Vector, y: Vector, order: Vector) -> Vector:
    """Decision values of each sample by a model that has not seen it; ``order`` deals the samples to the folds."""
    values, data = np.zeros(len(index)), problems.data
    for test in np.array_split(order, FOLDS):
        train = np.setdiff1d(order, test, assume_unique=True)
        labels = np.unique(y[train])
        if len(labels) < 2:
            values[test] = labels.sum()  # LIBSVM's answer where a fold has only one class
            continue
        loss = _feasible_loss(problems.loss, y[train], problems.factor[index[train]])
        solution = problems.solve(index[train], y[train], loss)
        published = loss.publish(solution.beta, solution.thresholds)
        support = np.flatnonzero(published.beta)
        a, b = data.exact(index[test]), data.exact(index[train[support]])
        threads = problems.options.n_threads
        values[test] = product(data.kernel, a, b, published.beta[support], threads) + published.intercept
    return values


def _feasible_loss(loss: Loss, y: Vector, weight: Vector) -> Loss:
    """The loss, with nu as large as the classes' shares in this fold allow."""
    if isinstance(loss, NuHinge):
        try:
            loss.class_total(y, weight)
        except InfeasibleNuError as error:
            return NuHinge(error.nu_max)
    return loss


def sigmoid(values: Vector, y: Vector, max_iter: int = 100) -> tuple[float, float]:
    """(A, B) of P(y = 1 | f) = 1 / (1 + exp(A f + B)), by Newton's method with backtracking on smoothed targets."""
    positive = float(np.count_nonzero(y > 0))
    negative = float(len(y)) - positive
    high, low = (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0)
    target = np.where(y > 0, high, low)
    A, B = 0.0, float(np.log((negative + 1.0) / (positive + 1.0)))

    def objective(A: float, B: float) -> float:
        z = A * values + B
        # t z + log(1 + exp(-z)) for either sign of z without overflow
        return float(np.sum(target * z + np.logaddexp(0.0, -z)))

    current = objective(A, B)
    for _ in range(max_iter):
        p = expit(-(A * values + B))
        curvature = p * (1.0 - p)
        h11 = float(curvature @ values**2) + 1e-12
        h22 = float(curvature.sum()) + 1e-12
        h21 = float(curvature @ values)
        g1, g2 = float((target - p) @ values), float((target - p).sum())
        if max(abs(g1), abs(g2)) < 1e-5:
            break
        determinant = h11 * h22 - h21 * h21
        dA, dB = -(h22 * g1 - h21 * g2) / determinant, -(h11 * g2 - h21 * g1) / determinant
        slope = g1 * dA + g2 * dB
        step = 1.0
        while step >= 1e-10:
            proposed = objective(A + step * dA, B + step * dB)
            if proposed < current + 1e-4 * step * slope:
                A, B, current = A + step * dA, B + step * dB, proposed
                break
            step /= 2.0
        else:
            break
    return A, B


def pairwise_probabilities(values: Matrix, A: Vector, B: Vector, n_classes: int) -> Matrix:
    """Class probabilities from the pairwise ones."""
    r = np.clip(expit(-(A * values + B)), SMALLEST, 1.0 - SMALLEST)
    if n_classes == 2:
        return np.column_stack([r[:, 0], 1.0 - r[:, 0]])
    n = len(values)
    R = np.zeros((n, n_classes, n_classes))
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        R[:, i, j], R[:, j, i] = r[:, k], 1.0 - r[:, k]
    return _couple(R)


def _couple(R: Matrix) -> Matrix:
    """The p that minimises sum_i sum_j (r_ji p_i - r_ij p_j)^2 on the simplex, by its fixed-point iteration."""
    n, k, _ = R.shape
    Q = -R * R.transpose(0, 2, 1)
    diagonal = np.arange(k)
    Q[:, diagonal, diagonal] = (R.transpose(0, 2, 1) ** 2).sum(axis=2)
    p = np.full((n, k), 1.0 / k)
    open_rows = np.arange(n)  # each sample stops by itself, whatever its batch
    for _ in range(max(100, k)):
        q, part = Q[open_rows], p[open_rows]
        Qp = np.einsum("nij,nj->ni", q, part)
        pQp = np.einsum("ni,ni->n", part, Qp)
        going = np.abs(Qp - pQp[:, None]).max(axis=1) >= 0.005 / k
        open_rows, q, part, Qp, pQp = open_rows[going], q[going], part[going], Qp[going], pQp[going]
        if len(open_rows) == 0:
            break
        for t in range(k):
            change = (pQp - Qp[:, t]) / q[:, t, t]
            part[:, t] += change
            pQp = (pQp + change * (change * q[:, t, t] + 2.0 * Qp[:, t])) / (1.0 + change) ** 2
            Qp = (Qp + change[:, None] * q[:, t, :]) / (1.0 + change)[:, None]
            part /= (1.0 + change)[:, None]
        p[open_rows] = part
    return p
