"""Probabilities from decision values: Platt's sigmoid for a pair, pairwise coupling for several classes.

Lin, Lin & Weng, "A note on Platt's probabilistic outputs for support vector machines", Machine Learning 68 (2007);
Wu, Lin & Weng, "Probability estimates for multi-class classification by pairwise coupling", JMLR 5 (2004), method 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state

from mercer.estimators.pairs import class_pairs
from mercer.exceptions import InfeasibleNuError
from mercer.gram.operator import product
from mercer.kernels.features import Matrix, Vector
from mercer.losses import Loss, NuHinge
from mercer.solvers.batch import OneVsOne

FOLDS = 5
SMALLEST = 1e-7
NEWTON_STEPS = 100
# a gradient of this size, per sample, is none
FLAT = 1e-9
# entries of the systems that are solved at a time
COUPLED = 1 << 20


def fit_sigmoids(problems: OneVsOne, random_state: Any) -> tuple[Vector, Vector]:
    """The slope and offset of each pair's sigmoid, from five-fold decision values; 0 where a class is empty."""
    random = check_random_state(random_state)
    A, B = np.zeros(len(problems.pairs)), np.zeros(len(problems.pairs))
    for k, (i, j) in enumerate(problems.pairs):
        index, y = problems.samples(i, j)
        if len(np.unique(y)) == 2:
            order = random.permutation(len(y))
            with problems.clock.within(1.0 / (len(A) - k)):
                values = _held_out_values(problems, index, y, order)
            A[k], B[k] = sigmoid(values, y)
    return A, B


def _held_out_values(problems: OneVsOne, index: Vector, y: Vector, order: Vector) -> Vector:
    """Decision values of each sample by a model that has not seen it; ``order`` deals the samples to the folds."""
    values, data = np.zeros(len(index)), problems.data
    for fold, test in enumerate(np.array_split(order, FOLDS)):
        train = np.setdiff1d(order, test, assume_unique=True)
        labels = np.unique(y[train])
        if len(labels) < 2:
            values[test] = labels.sum()  # LIBSVM's answer where a fold has only one class
            continue
        loss = _feasible_loss(problems.loss, y[train], problems.factor[index[train]])
        with problems.clock.within(1.0 / (FOLDS - fold)):
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


def sigmoid(values: Vector, y: Vector) -> tuple[float, float]:
    """(A, B) of P(y = 1 | f) = 1 / (1 + exp(A f + B)), from Platt's smoothed targets."""
    slope, offset = logistic_regression(values[:, None], smoothed_targets(y > 0))
    return -float(slope), -float(offset)


def smoothed_targets(positive: Vector, weight: Vector | None = None) -> Vector:
    """Platt's targets, (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2): with them a fit is finite on classes that do not overlap."""
    weight = np.ones(len(positive)) if weight is None else weight
    n_positive, n_negative = float(weight[positive].sum()), float(weight[~positive].sum())
    return np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))


def logistic_regression(Z: Matrix, target: Vector, weight: Vector | None = None) -> Vector:
    """The coefficients of the columns of Z, and last the offset, that minimise the cross-entropy with the targets.

    Newton's method with backtracking, on columns of unit size so that no scale of the values is too large.
    """
    weight = np.ones(len(target)) if weight is None else weight
    scale = np.abs(Z).max(axis=0, initial=0.0)
    scale[~(scale > np.finfo(np.float64).tiny)] = 1.0
    design = np.column_stack([Z / scale, np.ones(len(Z))])
    share = float(np.clip(weight @ target / weight.sum(), SMALLEST, 1.0 - SMALLEST))
    coef = np.append(np.zeros(Z.shape[1]), np.log(share / (1.0 - share)))

    def entropy(coef: Vector) -> float:
        z = design @ coef
        # log(1 + exp(z)) - t z for either sign of z without overflow
        return float(weight @ (np.logaddexp(0.0, z) - target * z))

    current = entropy(coef)
    for _ in range(NEWTON_STEPS):
        p = expit(design @ coef)
        gradient = design.T @ (weight * (p - target))
        if np.abs(gradient).max() < FLAT * weight.sum():
            break
        curvature = design.T @ (design * (weight * p * (1.0 - p))[:, None])
        # columns that are constant, or equal, leave a direction without curvature
        curvature[np.diag_indices_from(curvature)] += 1e-12 * weight.sum()
        step = -np.linalg.solve(curvature, gradient)
        length = 1.0
        while length >= 1e-10 and not entropy(coef + length * step) < current + 1e-4 * length * float(gradient @ step):
            length /= 2.0
        if length < 1e-10:
            break  # no further progress within rounding
        coef = coef + length * step
        current = entropy(coef)
    result: Vector = coef / np.append(scale, 1.0)
    return result


def pairwise_probabilities(values: Matrix, A: Vector, B: Vector, n_classes: int) -> Matrix:
    """Class probabilities from the pairwise ones."""
    return couple(expit(-(A * values + B)), n_classes)


def minimum(Q: Matrix) -> Matrix:
    """The p on the simplex with the least p'Qp, for each Q: the solution of  Qp = λe, e'p = 1, is not negative."""
    n, k = Q.shape[:2]
    system = np.zeros((n, k + 1, k + 1))
    system[:, :k, :k] = Q
    system[:, :k, k] = system[:, k, :k] = 1.0
    right = np.zeros((n, k + 1, 1))
    right[:, k] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :k, 0], 0.0)
    result: Matrix = p / p.sum(axis=1, keepdims=True)
    return result


def couple(r: Matrix, n_classes: int, minimise: Callable[[Matrix], Matrix] = minimum) -> Matrix:
    """Class probabilities p from r, a column for each pair (i, j) with P(i | i or j).

    They minimise  Σᵢ Σⱼ (rⱼᵢ pᵢ − rᵢⱼ pⱼ)² = p'Qp  on the simplex.
    """
    r = np.clip(r, SMALLEST, 1.0 - SMALLEST)
    if n_classes == 2:
        return np.column_stack([r[:, 0], 1.0 - r[:, 0]])
    size = max(1, COUPLED // n_classes**2)
    starts = range(0, max(1, len(r)), size)
    return np.concatenate([minimise(_quadratic(r[start : start + size], n_classes)) for start in starts])


def _quadratic(r: Matrix, k: int) -> Matrix:
    """Q for each row of r."""
    R = np.zeros((len(r), k, k))
    for column, (i, j) in enumerate(class_pairs(k)):
        R[:, i, j], R[:, j, i] = r[:, column], 1.0 - r[:, column]
    Q = -R * R.transpose(0, 2, 1)
    Q[:, np.arange(k), np.arange(k)] = (R**2).sum(axis=1)
    return Q
