"""Prediction from support vectors: decision values, and probabilities by Platt's sigmoid and pairwise coupling.

Decision values are computed in tiles by several threads; the value of a sample does not depend on its batch.

Lin, Lin & Weng, "A note on Platt's probabilistic outputs for support vector machines", Machine Learning 68 (2007);
Wu, Lin & Weng, "Probability estimates for multi-class classification by pairwise coupling", JMLR 5 (2004), method 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state

from mercer._compiled.thread_pool import value_nanoseconds
from mercer.exceptions import InfeasibleNuError
from mercer.gram.operator import product
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures, count_samples, take_samples
from mercer.kernels.radial import CANCELLATION, SPARSE_CANCELLATION, rounding_of_distances
from mercer.kernels.user_defined import PrecomputedFeatures
from mercer.losses import Loss, NuHinge
from mercer.svm.batch import OneVsOne, class_pairs


def pair_coefficients(coef: Matrix, ends: Vector) -> Matrix:
    """LIBSVM's layout with a row for each pair of classes and a column for each support vector.

    The support vectors of class c are those from ends[c] to ends[c + 1]. β of the pair (i, j) is row j − 1 of the
    coefficients of class i, row i of those of class j, and 0 elsewhere.
    """
    pairs = class_pairs(len(ends) - 1)
    if len(pairs) <= 1:
        return coef
    rows = np.zeros((len(pairs), coef.shape[1]))
    for row, (i, j) in zip(rows, pairs, strict=True):
        row[ends[i] : ends[i + 1]] = coef[j - 1, ends[i] : ends[i + 1]]
        row[ends[j] : ends[j + 1]] = coef[i, ends[j] : ends[j + 1]]
    return rows


def class_layout(pairs: Matrix, ends: Vector) -> Matrix:
    """The inverse of `pair_coefficients`."""
    k = len(ends) - 1
    if k <= 2:
        return pairs
    coef = np.zeros((k - 1, pairs.shape[1]))
    for row, (i, j) in zip(pairs, class_pairs(k), strict=True):
        coef[j - 1, ends[i] : ends[i + 1]] = row[ends[i] : ends[i + 1]]
        coef[i, ends[j] : ends[j + 1]] = row[ends[j] : ends[j + 1]]
    return coef


def votes(values: Matrix, n_classes: int) -> Matrix:
    """Each pair (i, j) votes for i where its value is positive, else for j."""
    count = np.zeros((len(values), n_classes))
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        first = values[:, k] > 0
        count[:, i] += first
        count[:, j] += ~first
    return count


# samples prepared at a time
BATCH = 8192
# use float32 only for kernel values that take so many nanoseconds: checking it costs more for fewer
SINGLE_FROM = 2.5e4
# and if they are wrong by less than this
LARGEST_ERROR = 1e-3
# and if squared distances of the size 1/gamma are far from the limits of float32
SMALLEST_GAMMA = 1e-28
FOLDS = 5
SMALLEST = 1e-7
NEWTON_STEPS = 100
# a gradient below this size per sample counts as zero
FLAT = 1e-9
# entries of the systems that are solved at a time
COUPLED = 1 << 20


@dataclass(eq=False, repr=False)
class SupportVectors:
    """The support vectors of a model in LIBSVM's order, class by class."""

    kernel: Kernel
    vectors: Any  # the samples; empty for a precomputed kernel
    support: Vector  # their indices among the training samples
    ends: Vector  # those of class c are from ends[c] to ends[c + 1]
    n_train: int
    norms: Vector  # |w| of each problem
    _features: dict[tuple[np.dtype[Any], int], Features] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_features": {}}

    def number_anew(self) -> None:
        """Expect kernel rows with one column per support vector from now on, not one per training sample."""
        self.n_train = len(self.support)
        self.support = np.arange(self.n_train, dtype=np.int32)
        self._features = {}

    def features(self, dtype: Any, part: int = -1) -> Features:
        """The prepared features of all support vectors, or of class ``part``; computed once."""
        key = np.dtype(dtype), part
        if key not in self._features:
            if part >= 0:
                self._features[key] = self.features(dtype).take(np.arange(self.ends[part], self.ends[part + 1]))
            elif self.kernel.domain == "matrix":
                columns, n = self.support.astype(np.intp), self.n_train
                self._features[key] = PrecomputedFeatures(None, dtype, columns, columns, (n, n))
            else:
                self._features[key] = self.kernel.prepare(self.vectors, dtype)
        return self._features[key]

    def decision(self, X: Any, coef: Matrix, intercept: Vector, n_threads: int, labels_only: bool = False) -> Matrix:
        """The decision values of each sample, one column per problem (one, or one for each pair of classes).

        With ``labels_only`` only the signs have to be right: many values are computed in float32, and again in float64
        for samples whose sign float32 cannot decide.
        """
        n = count_samples(X)
        out = np.empty((n, len(intercept)))
        out[:] = intercept
        if coef.shape[1] == 0:
            return out
        doubtful = self._single_error(coef, n) if labels_only else None
        for start in range(0, n, BATCH):
            part = take_samples(X, np.arange(start, min(start + BATCH, n))) if n > BATCH else X
            values = out[start : start + BATCH]
            if doubtful is None:
                values += self._values(part, coef, np.float64, n_threads)
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                values += self._values(part, coef, np.float32, n_threads)
            unsure = np.flatnonzero(~(np.abs(values) > doubtful).all(axis=1))  # NaN counts as unsure
            if len(unsure):
                values[unsure] = intercept + self._values(take_samples(part, unsure), coef, np.float64, n_threads)
        return out

    def _values(self, X: Any, coef: Matrix, dtype: Any, n_threads: int) -> Matrix:
        """Decision values without the intercepts."""
        a = self.kernel.prepare(X, dtype)
        if coef.shape[0] == 1:
            return product(self.kernel, a, self.features(dtype), coef[0], n_threads)[:, None]
        parts = [
            product(self.kernel, a, self.features(dtype, c), coef[:, start:stop].T, n_threads)
            for c, (start, stop) in enumerate(pairwise(self.ends))
        ]
        return np.stack(pair_values(parts), axis=1)

    def _single_error(self, coef: Matrix, n: int) -> Vector | None:
        """A bound on the float32 error of each problem's value; None if it is too large, or not worth it for n samples.

        Rounding a sample x by δ changes the value by at most |w| |φ(x) - φ(x + δ)| ≤ |w| √(2γ) |δ|. The exponent of a
        Gaussian kernel has rounding errors from the support vectors, from the sum over features (random, so √d) and
        from cancellation in the difference of products. Errors of different support vectors are independent, so their
        squares add up. Beyond the support vectors the kernel decays faster than these errors grow.
        """
        if not isinstance(self.kernel, Gaussian):
            return None
        with np.errstate(over="ignore"):
            b = self.features(np.float32)
        assert isinstance(b, VectorFeatures)
        if value_nanoseconds(n * len(b), b.terms) < SINGLE_FROM:
            return None
        gamma = self.kernel.gamma if isinstance(self.kernel.gamma, float) else 1.0
        if not SMALLEST_GAMMA < gamma < 1.0 / SMALLEST_GAMMA:
            return None
        eps, length = float(np.finfo(np.float32).eps), np.sqrt(gamma * b.largest_norm)
        error = eps * (16.0 + np.sqrt(b.d) + 2.0 * length)
        error += min(rounding_of_distances(b, gamma), SPARSE_CANCELLATION if b.sparse else CANCELLATION)
        if not error < LARGEST_ERROR:
            return None
        if len(coef) == 1:
            squares = (coef**2).sum(axis=1)
        else:
            parts = [(coef[:, start:stop] ** 2).sum(axis=1)[None, :] for start, stop in pairwise(self.ends)]
            squares = np.concatenate(pair_values(parts))
            error += eps * np.sqrt(coef.shape[1])  # with several problems the sums are float32, too
        return error * np.sqrt(squares) + 2.0 * eps * length * self.norms


class Expansion(SupportVectors):
    """Several functions Σ βᵢ k(xᵢ, ·) over the same samples, one row of coefficients each."""

    @classmethod
    def over(cls, kernel: Kernel, vectors: Any, support: Vector, n_train: int) -> Expansion:
        """The functions over all of these samples."""
        return cls(kernel, vectors, support, np.array([0, len(support)]), n_train, np.empty(0))

    def _values(self, X: Any, coef: Matrix, dtype: Any, n_threads: int) -> Matrix:
        a, b = self.kernel.prepare(X, dtype), self.features(dtype)
        if coef.shape[0] == 1:
            return product(self.kernel, a, b, coef[0], n_threads)[:, None]
        return product(self.kernel, a, b, np.ascontiguousarray(coef.T), n_threads)


def pair_values(parts: list[Matrix]) -> list[Vector]:
    """Add up the parts of two classes for each pair of classes; a part has a row per sample and LIBSVM's columns.

    The pair (i, j) uses row j - 1 of the coefficients of class i and row i of those of class j.
    """
    return [parts[i][:, j - 1] + parts[j][:, i] for i, j in class_pairs(len(parts))]


# ---- probabilities ---------------------------------------------------------------------------------------------------


def fit_sigmoids(problems: OneVsOne, random_state: Any) -> tuple[Vector, Vector]:
    """Slope and offset of the sigmoid of each pair, fitted to decision values of 5-fold cross-validation.

    Both are 0 for pairs with an empty class.
    """
    random = check_random_state(random_state)
    A, B = np.zeros(len(problems.pairs)), np.zeros(len(problems.pairs))
    for k, (i, j) in enumerate(problems.pairs):
        index, y = problems.samples(i, j)
        if len(np.unique(y)) == 2:
            order = random.permutation(len(y))
            with problems.clock.share_of_time(1.0 / (len(A) - k)):
                values = _held_out_values(problems, index, y, order)
            A[k], B[k] = sigmoid(values, y)
    return A, B


def _held_out_values(problems: OneVsOne, index: Vector, y: Vector, order: Vector) -> Vector:
    """The decision value of each sample from a model that was trained without it; ``order`` defines the folds."""
    values, data = np.zeros(len(index)), problems.data
    for fold, test in enumerate(np.array_split(order, FOLDS)):
        train = np.setdiff1d(order, test, assume_unique=True)
        labels = np.unique(y[train])
        if len(labels) < 2:
            values[test] = labels.sum()  # as in LIBSVM if the fold has one class only
            continue
        loss = _feasible_loss(problems.loss, y[train], problems.factor[index[train]])
        with problems.clock.share_of_time(1.0 / (FOLDS - fold)):
            solution = problems.solve(index[train], y[train], loss)
        published = loss.publish(solution.beta, solution.thresholds)
        support = np.flatnonzero(published.beta)
        a, b = data.exact(index[test]), data.exact(index[train[support]])
        threads = problems.options.n_threads
        values[test] = product(data.kernel, a, b, published.beta[support], threads) + published.intercept
    return values


def _feasible_loss(loss: Loss, y: Vector, weight: Vector) -> Loss:
    """The loss, with nu lowered to the largest value that is feasible in this fold."""
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
    """Platt's targets (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2), which keep the fit finite if the classes do not overlap."""
    weight = np.ones(len(positive)) if weight is None else weight
    n_positive, n_negative = float(weight[positive].sum()), float(weight[~positive].sum())
    return np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))


def logistic_regression(Z: Matrix, target: Vector, weight: Vector | None = None) -> Vector:
    """Logistic regression: coefficients of the columns of Z, then the offset, that minimise the cross-entropy.

    Newton's method with backtracking, on columns scaled to unit size.
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
        # constant or equal columns leave a direction without curvature
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
    """The minimiser p of p'Qp on the simplex for each Q: the solution of  Qp = λe, e'p = 1, is non-negative."""
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
    """Class probabilities p from the pairwise ones in r, which has a column P(i | i or j) for each pair (i, j).

    p minimises  Σᵢ Σⱼ (rⱼᵢ pᵢ − rᵢⱼ pⱼ)² = p'Qp  on the simplex.
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
