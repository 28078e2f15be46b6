"""Certificates of KernelERM, KernelLogisticRegression and ExpectileSVR from their coefficients and the data.

The primal value is that of the published function and intercept. The gradient of a smooth loss at the best intercept is
a dual point; for other losses it is the published β, moved into its box. If they leave a gap, mercer solves the problem
itself and takes the better dual value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.erm.certificate import DualPoint, erm_certificate
from mercer.erm.convex_losses import Expectile, is_classification
from mercer.erm.logistic import logistic_certificate, logistic_sum
from mercer.erm.minimise import Problem, minimise
from mercer.erm.penalties import SQUARED, find_penalty
from mercer.erm.sums import OneFunction
from mercer.estimators.certification.kernel_machines import training_data
from mercer.estimators.fitted_models import Kind, codes_of, different_classes
from mercer.estimators.kernel_erm import loss_of_erm
from mercer.gram.operator import Data, product
from mercer.kernels.features import Matrix, Vector
from mercer.losses import Loss
from mercer.problems.clock import Clock
from mercer.problems.dual import feasible_start
from mercer.problems.solution import Certificate, with_dual
from mercer.validation import class_weights, real_targets, thread_count, validate_weights

# look for a better dual point if the relative gap is above this, for at most this many seconds
SHARP = 1e-6
SECONDS = 20.0


def certify_erm(kind: Kind, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The certificate of the published function on its training data."""
    data = training_data(estimator, X)
    weight = validate_weights(sample_weight, data.n, X)
    labels = kind.name != "ExpectileSVR" and (
        kind.name == "KernelLogisticRegression" or is_classification(estimator.loss)
    )
    targets = codes_of(estimator, y).astype(np.float64) if labels else real_targets(y)
    if labels:
        codes = targets.astype(np.intp)
        weight = weight * class_weights(estimator.class_weight, estimator.classes_, codes, weight)[codes]
        n_found = len(np.unique(codes[weight > 0]))
        if n_found < 2:
            raise different_classes(len(estimator.classes_), n_found)
    used = np.flatnonzero(weight > 0)
    coef = estimator._dual_coef_.toarray() if sp.issparse(estimator._dual_coef_) else estimator._dual_coef_
    beta = np.zeros((data.n, len(coef)))
    beta[np.asarray(estimator.support_, dtype=np.intp)] = np.asarray(coef, dtype=np.float64).T
    part = data if len(used) == data.n else data.take(used)
    n_threads = thread_count(estimator.n_jobs)
    beta, C = beta[used], float(estimator.C) * weight[used]
    F, b = _product(part, beta, n_threads), np.asarray(estimator._intercept_, dtype=np.float64)
    if kind.name == "KernelLogisticRegression":
        return _logistic(estimator, part, targets[used], C, beta, F, b, n_threads)
    y_used = 2.0 * targets[used] - 1.0 if labels else targets[used]
    return _erm(estimator, part, y_used, C, beta[:, 0], F[:, 0], float(b[0]), n_threads)


def _product(data: Data, beta: Matrix, n_threads: int) -> Matrix:
    features = data.features(np.float64)
    return product(data.kernel, features, features, np.ascontiguousarray(beta), n_threads)


def _logistic(
    model: Any, data: Data, codes: Vector, weight: Vector, beta: Matrix, F: Matrix, b: Vector, n_threads: int
) -> Certificate:
    smooth = logistic_sum(codes, len(model.classes_), weight)
    best = smooth.best_intercept(F, b) if model.fit_intercept else b
    dual = -smooth.evaluate(F + best)[1]
    dual_F = _product(data, dual, n_threads)
    return logistic_certificate(smooth, beta, F, b, dual, dual_F, bool(model.fit_intercept), data.psd)


def _erm(
    model: Any, data: Data, y: Vector, weight: Vector, beta: Vector, F: Vector, b: float, n_threads: int
) -> Certificate:
    if hasattr(model, "expectile"):
        loss, penalty = Expectile(float(model.expectile)), SQUARED
    else:
        loss, penalty = loss_of_erm(model), find_penalty(model.penalty)
    fits_intercept = bool(model.fit_intercept)
    norm = DualPoint(beta, F).norm
    stretch = float(penalty.derivative(norm)) / norm if norm > 0 else 0.0
    if callable(getattr(loss, "second_derivative", None)):
        smooth = OneFunction(loss, y, weight)
        best = float(smooth.best_intercept(F[:, None], np.array([b]))[0]) if fits_intercept else b
        point = -smooth.evaluate(F[:, None] + best)[1][:, 0]
    else:
        point = stretch * beta
        if isinstance(loss, Loss):
            point = feasible_start(loss.box_qp(y, weight, fits_intercept), point)
    dual = DualPoint(point, _product(data, point[:, None], n_threads)[:, 0])
    shown = erm_certificate(penalty, loss, y, weight, norm, F, b, dual, fits_intercept, data.psd)
    if not shown.valid or shown.relative_gap <= SHARP:
        return shown
    with Clock(SECONDS) as clock:
        found = minimise(Problem(data, loss, y, weight, fits_intercept, model._options(), clock), penalty, SHARP)
    better = found.certificate.valid and found.certificate.dual > shown.dual
    return with_dual(shown, found.certificate.dual, "") if better else shown
