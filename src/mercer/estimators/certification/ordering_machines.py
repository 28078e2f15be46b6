"""Certificates of SVDD and of the machines that order samples, from their coefficients and the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer.erm.direct_newton import FactorDual
from mercer.erm.kernel_matrix import stored_gram
from mercer.estimators.certification.kernel_machines import (
    FittedMachine,
    certify_problem,
    coefficients,
    training_data,
)
from mercer.estimators.certification.kernel_machines import fitted_problem as fitted
from mercer.estimators.enclosing.svdd import ball_labels, ball_price
from mercer.estimators.fitted_models import Kind, codes_of
from mercer.estimators.ranking.ordinal_svc import ordinal_loss
from mercer.estimators.ranking.rank_svc import rank_loss
from mercer.estimators.ranking.survival_svm import survival_loss, survival_times
from mercer.gram.memory import available_bytes
from mercer.kernels.features import Vector
from mercer.losses.ordinal import ExplicitOrdinal
from mercer.losses.smallest_ball import SmallestBall, ball_targets
from mercer.ordering.explicit_order import solve_explicit
from mercer.ordering.pair_solver import factor_of, smooth_certificate
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem
from mercer.problems.solution import Certificate, Options, with_dual
from mercer.svm.solve import solve_problem
from mercer.validation import real_targets, thread_count, validate_weights

# the dual variables of ordinal machines are not published: they are solved for again, for at most this many seconds
SECONDS = 20.0
# up to this many samples K is factored where that certifies a smaller gap
CERTIFY_UP_TO = 3000


def certify_ordering(kind: Kind, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The certificate of the published function on its training data."""
    data = training_data(estimator, X)
    machine = FittedMachine(kind, estimator, data, thread_count(estimator.n_jobs))
    weight = validate_weights(sample_weight, data.n, X)
    if kind.name == "SVDD":
        return _certify_ball(machine, y, weight)
    return _certify_ordinal(machine, y, weight) if kind.name == "OrdinalSVC" else _certify_pairs(machine, y, weight)


def _certify_ball(machine: FittedMachine, y: Any, weight: Vector) -> Certificate:
    """The gap of the smallest ball: half of R² + Σ C max(0, s(|φ(x) − a|² − R²)), and its dual value."""
    data, rows = machine.data, np.flatnonzero(weight > 0)
    labels = ball_labels(y, data.n)
    targets = ball_targets(data.kernel.diagonal(data.features(np.float64)), labels)
    C = weight * ball_price(machine.estimator, labels, weight)
    problem = DualProblem(None, SmallestBall(), targets[rows], C[rows])
    b = float(machine.estimator._intercept_[0])
    return certify_problem(fitted(machine, (), rows, problem, coefficients(machine, weight)[0, rows], b))


def _certify_ordinal(machine: FittedMachine, y: Any, weight: Vector) -> Certificate:
    """The primal value of the published function and thresholds, and the dual value of copies that are solved for."""
    estimator, rows = machine.estimator, np.flatnonzero(weight > 0)
    codes = codes_of(estimator, y)
    C = (float(estimator.C) * estimator.class_weight_[codes] * weight)[rows]
    targets, loss = codes.astype(np.float64)[rows], ordinal_loss(estimator)
    beta = coefficients(machine, weight)[0, rows]
    F = machine.product(rows, beta)
    thresholds = -estimator.thresholds_
    primal = loss.primal(float(beta @ F), targets, F, C, thresholds, np.zeros(len(thresholds)))
    data = machine.data if len(rows) == machine.data.n else machine.data.take(rows)
    options = Options(tol=float(estimator.tol), n_threads=machine.n_threads)
    with Clock(SECONDS) as clock:
        if isinstance(loss, ExplicitOrdinal):
            found = solve_explicit(data, loss, targets, C, options, clock)
        else:
            found = solve_problem(data, loss, targets, C, True, options, clock)
    proof = found.certificate
    return with_dual(replace(proof, primal=primal, of=machine.kind.name), proof.dual, proof.reason)


def _certify_pairs(machine: FittedMachine, y: Any, weight: Vector) -> Certificate:
    """The gap between the published function and the dual point that the gradient of its loss gives."""
    estimator, rows = machine.estimator, np.flatnonzero(weight > 0)
    if machine.kind.name == "RankSVC":
        smooth = rank_loss(estimator, real_targets(y), weight, rows)
    else:
        smooth = survival_loss(estimator, survival_times(y), weight, rows)
    beta, b = coefficients(machine, weight)[0, rows], float(estimator._intercept_[0])
    F, fits_intercept = machine.product(rows, beta), bool(estimator.fit_intercept)
    best = smooth.best_intercept(F[:, None], np.array([b])) if fits_intercept else np.zeros(1)
    gradient = smooth.evaluate((F + best)[:, None])[1][:, 0]
    K_gradient = machine.product(rows, gradient)
    whose = (fits_intercept, machine.data.psd, machine.kind.name)
    proof = smooth_certificate(smooth, beta, F, b, K_gradient, *whose)
    if not proof.valid or proof.relative_gap <= float(estimator.tol):
        return proof
    # a large weight multiplies the rounding of Kβ: a factor of K keeps more digits
    options = Options(n_threads=machine.n_threads, budget=available_bytes() // 2)
    data = machine.data if len(rows) == machine.data.n else machine.data.take(rows)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        factor = factor_of(stored_gram(data, options), options) if len(rows) <= CERTIFY_UP_TO else None
        if factor is None:
            return proof
        dual = FactorDual.of(factor, smooth, fits_intercept, factor.L.T @ beta, np.array([b]))
        other = smooth_certificate(smooth, beta, F, b, dual.K_gradient[:, 0], *whose, dual.values, dual.square)
    return other if other.valid and other.gap <= proof.gap else proof
