"""Certificates of kernel machines: restate the dual problem of each pair of classes and evaluate it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer.estimators.fitted_models import (
    ERM,
    KERNEL,
    LEAST_SQUARES,
    Kind,
    check_fitted,
    codes_of,
    different_classes,
    loss_of,
)
from mercer.estimators.psd_check import seems_psd
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data, product
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector, count_samples
from mercer.losses import BoxQP, NuHinge, NuInsensitive, tube
from mercer.problems.dual import DualProblem, at_bounds, thresholds
from mercer.problems.solution import FEASIBILITY, ROUNDING, Certificate, certificate, with_dual
from mercer.svm.batch import class_pairs
from mercer.validation import (
    call_kernel,
    real_targets,
    resolve_kernel,
    square_matrix,
    thread_count,
    validate_samples,
    validate_weights,
)


class FittedMachine(NamedTuple):
    """A fitted kernel machine with its training data, shared by all its problems."""

    kind: Kind
    estimator: Any
    data: Data
    n_threads: int

    def problem(self, y: Vector, weight: Vector) -> DualProblem:
        """The dual problem for these targets and weights."""
        loss = loss_of(self.kind, self.estimator)
        return DualProblem(None, loss, y, weight, bool(getattr(self.estimator, "fit_intercept", True)))

    def product(self, rows: Vector, beta: Vector) -> Vector:
        """K[rows, rows] @ beta in float64."""
        carries = np.flatnonzero(beta)
        a, b = self.data.exact(rows), self.data.exact(rows[carries])
        return product(self.data.kernel, a, b, beta[carries], self.n_threads)


# why the conditions of single samples are not those of one problem with a box and a sum
WITHOUT_CONDITIONS = {
    "QuantileSVR": "solves one problem for all quantiles, with several coefficients for each sample",
    "OutputCodeSVC": "solves a problem for each word of its code, and not for each pair of classes",
    "SVDD": "finds a ball, and the conditions are those of hyperplanes and tubes",
    "OrdinalSVC": "has a loss at several thresholds for each sample, and one coefficient for their sum",
    "RankSVC": "has losses of pairs, not of samples",
    "SurvivalSVM": "has losses of pairs, not of samples",
    "LaplacianSVC": "has the coefficients of all samples, not the multipliers of the labelled ones",
}


class FittedProblem(NamedTuple):
    """One problem of a fitted kernel machine, with the solution that the machine has published.

    Attributes
    ----------
    machine : the machine and its data.
    labels : the positive and the negative class; empty for regression and novelty detection.
    rows : indices into X of the samples of this problem.
    problem : loss, targets and weights.
    beta : one coefficient per variable. May violate bounds and sums slightly if the machine is not exact.
    F : Kβ at the rows, without thresholds.
    thresholds : one per group of variables.
    """

    machine: FittedMachine
    labels: tuple[Any, ...]
    rows: Vector
    problem: DualProblem
    beta: Vector
    F: Vector
    thresholds: Vector


def fitted_problems(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> list[FittedProblem]:
    """The problems of a kernel machine fitted to these samples: one, or one for each pair of classes."""
    kind = check_fitted(estimator, X, y)
    if kind.name not in KERNEL:
        what = WITHOUT_CONDITIONS.get(kind.name, "publishes no dual coefficients")
        if kind.name in LEAST_SQUARES:
            what = "has no bounds for its coefficients"
        elif kind.name in ERM:
            what = "is no support vector machine"
        raise InvalidInputError(
            f"The optimality conditions of single samples are not available: {type(estimator).__name__} {what}. Use "
            "certify for its distance from the optimum."
        )
    data = training_data(estimator, X)
    machine = FittedMachine(kind, estimator, data, thread_count(getattr(estimator, "n_jobs", None)))
    weight = validate_weights(sample_weight, data.n, X)
    coef = coefficients(machine, weight)
    found = []
    for k, labels, rows, target, price in stated_problems(kind, estimator, y, weight):
        beta, names = coef[0, rows], ()
        if labels is not None:
            # the coefficients of class i are in row j − 1, those of class j in row i
            (i, j), (first, second) = labels.pair, labels.codes
            beta = np.where(target > 0, coef[j - 1, rows], coef[i, rows])
            names = tuple(estimator.classes_[[first, second]].tolist())
        b = float(estimator._intercept_[k])
        found.append(fitted_problem(machine, names, rows, machine.problem(target, price), beta, b))
    return found


def training_data(estimator: Any, X: Any) -> Data:
    """The samples and the kernel with the parameters that fit has bound."""
    X, _ = validate_samples(estimator, X, None, reset=False)
    n, n_fitted = count_samples(X), estimator.shape_fit_[0]
    if n != n_fitted:
        raise InvalidInputError(
            f"X has {n} samples, but the estimator was fitted to {n_fitted}: pass the training data, in the same order."
        )
    kernel = getattr(estimator, "_kernel", None)
    if kernel is None:
        kernel = resolve_kernel(estimator.kernel, estimator.degree, estimator._gamma, estimator.coef0)
    if callable(estimator.kernel) and not isinstance(estimator.kernel, Kernel):
        X = call_kernel(estimator.kernel, X, X)
    if kernel.domain == "matrix":
        square_matrix(X)
    data = Data(kernel.bind(X), X, n)
    data.features(np.float64)  # once, for all products
    data.psd = data.psd and seems_psd(data)
    return data


def coefficients(machine: FittedMachine, weight: Vector) -> Matrix:
    """The dual coefficients in LIBSVM's layout, one column for each training sample."""
    support = np.asarray(machine.estimator.support_, dtype=np.intp)
    if machine.kind.package == "sklearn":
        # LIBSVM drops samples without weight before it numbers them
        used = np.flatnonzero(weight > 0)
        if support.max(initial=-1) >= len(used):
            raise InvalidInputError(
                f"sample_weight leaves {len(used)} samples, but the estimator was fitted to at least "
                f"{support.max() + 1} with a positive weight: pass the weights that it was fitted with."
            )
        support = used[support]
    coef = _dense(machine.estimator._dual_coef_)
    full = np.zeros((len(coef), machine.data.n))
    full[:, support] = coef
    return full


def _dense(coef: Any) -> Matrix:
    return np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)


class Labels(NamedTuple):
    """A pair of classes: their numbers among those that the machine has, and their positions in ``classes_``."""

    pair: tuple[int, int]
    codes: tuple[int, int]


class StatedProblem(NamedTuple):
    """One problem of a kernel machine: its number, its classes (None without), and rows, targets and weights."""

    k: int
    labels: Labels | None
    rows: Vector
    y: Vector
    weight: Vector


def stated_problems(kind: Kind, estimator: Any, y: Any, weight: Vector) -> list[StatedProblem]:
    """The problems that a kernel machine solves: one, or one for each pair of classes i < j, with i positive.

    Samples without weight and pairs of which one class has none are left out.
    """
    used = weight > 0
    if kind.name not in ("SVC", "NuSVC"):
        is_novelty = kind.name == "OneClassSVM"
        target, C = (np.ones(len(weight)), 1.0) if is_novelty else (real_targets(y), float(estimator.C))
        rows = np.flatnonzero(used)
        return [StatedProblem(0, None, rows, target[rows], C * weight[rows])]
    codes, n_pairs = codes_of(estimator, y), len(estimator._intercept_)
    # scikit-learn does not pass class_weight on to LIBSVM's ν-SVC
    factor = weight if kind == ("NuSVC", "sklearn") else weight * estimator.class_weight_[codes]
    if kind.name == "SVC":
        factor = np.where(used, np.inf, 0.0) if np.isinf(estimator.C) else estimator.C * factor
    # LIBSVM drops classes without weight; mercer keeps their index
    present = np.unique(codes[used])
    own = present if kind.package == "sklearn" else np.arange(len(estimator.classes_))
    pairs = class_pairs(len(own))
    if len(pairs) != n_pairs or len(present) < 2:
        raise different_classes(int(np.sqrt(2 * n_pairs)) + 1, len(present))
    found = []
    for k, (i, j) in enumerate(pairs):
        first, second = int(own[i]), int(own[j])
        rows = np.flatnonzero(used & ((codes == first) | (codes == second)))
        target = np.where(codes[rows] == first, 1.0, -1.0)
        if abs(target.sum()) < len(rows):
            found.append(StatedProblem(k, Labels((i, j), (first, second)), rows, target, factor[rows]))
    return found


def fitted_problem(
    machine: FittedMachine, labels: tuple[Any, ...], rows: Vector, problem: DualProblem, beta: Vector, b: float
) -> FittedProblem:
    """The problem with the dual variables that published coefficients and an intercept stand for."""
    program = _dual_variables(problem, beta, machine.product(rows, beta), b)
    return FittedProblem(machine, labels, rows, problem, *program)


def certify_problem(fitted: FittedProblem) -> Certificate:
    """Certificate from the primal value of the published model and the dual value of a feasible β near it."""
    machine, _, rows, problem, beta, F, b_groups = fitted
    qp = problem.qp
    known = (qp, problem.loss, problem.y, problem.weight)
    of, psd = machine.kind.name, machine.data.psd
    shown = certificate(*known, beta, F, b_groups, psd, of=of)
    size = max(np.abs(beta).max(initial=0.0), np.abs(qp.sums).max(initial=0.0))
    if shown.infeasibility <= ROUNDING * size:
        return shown
    feasible = _feasible(qp, beta)
    F = F + machine.product(rows, qp.at_samples(feasible - beta, len(rows)))
    bound = certificate(*known, feasible, F, b_groups, psd, of=of)
    if shown.infeasibility > FEASIBILITY * size:
        # a variable beyond its bound has no KKT violation of its own: take the feasible one into account
        shown = replace(shown, kkt_violation=max(shown.kkt_violation, bound.kkt_violation))
    return with_dual(shown, bound.dual, bound.reason)


def _dual_variables(problem: DualProblem, beta: Vector, F: Vector, b: float) -> tuple[Vector, Vector, Vector]:
    """Undo `Loss.publish`: β over the variables of the dual, F = Kβ, and the threshold of each group."""
    qp, loss, b_groups = problem.qp, problem.loss, np.array([b])
    if isinstance(loss, NuHinge):
        # β and b were divided by the margin; before the division Σα of each class was νW/2
        total = abs(float(beta[problem.y > 0].sum()))
        margin = float(qp.sums[0]) / total if total > 0 else 1.0
        beta, F, b = margin * beta, margin * F, margin * b
        # no division was done if the margin was 1, or 0: take the better of the two
        margins = [margin, 0.0] if abs(margin - 1.0) <= ROUNDING else [margin]
        norm, data = float(beta @ F), (problem.y, F, problem.weight)
        b_groups = min((np.array([b - m, b + m]) for m in margins), key=lambda c: loss.primal(norm, *data, c, qp.sums))
    if not isinstance(loss, NuInsensitive):
        return at_bounds(qp, beta), F, b_groups
    beta = at_bounds(qp, loss.restored(beta, problem.y, F, problem.weight))
    # the width of the tube is not published: recover it from the free variables, as LIBSVM does
    width, _ = tube(thresholds(qp, beta, F))
    return beta, F, np.array([b + width, b - width])


def _feasible(qp: BoxQP, beta: Vector) -> Vector:
    """Project β onto its box, then restore the sum of each group.

    The free variables are shifted first, and all variables if that is not enough. The shift is shared equally among
    variables that have room, which gives the nearest point on their face of the box.
    """
    beta = np.clip(beta, qp.lower, qp.upper)
    free = (beta > qp.lower) & (beta < qp.upper)
    for g, total in enumerate(qp.sums):
        member = qp.group == g
        for moving in (member & free, member):
            missing = total - beta[member].sum()
            end = (qp.upper if missing > 0 else qp.lower)[moving]
            step = np.clip(end - beta[moving], -abs(missing), abs(missing))
            # a difference within rounding does not justify a new support vector
            if abs(missing) > ROUNDING * np.abs(beta).max() and step.any():
                beta[moving] += step * min(1.0, missing / step.sum())
    return np.clip(beta, qp.lower, qp.upper)
