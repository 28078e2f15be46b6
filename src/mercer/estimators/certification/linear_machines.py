"""Certificates of LinearSVC and LinearSVR, of mercer or scikit-learn, from their weights and the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import column_or_1d

from mercer._sklearn_compat import BALANCES_SAMPLE_WEIGHTS, compute_class_weight
from mercer.estimators.fitted_models import Kind, codes_of, different_classes, loss_of
from mercer.estimators.linear.linear_machine import linear_problem, linear_rows, prices
from mercer.estimators.linear.source_fit import one_vs_rest
from mercer.kernels.features import Matrix, Vector
from mercer.linear.linear_plan import solve_linear
from mercer.linear.linear_problem import LinearProblem, Rows, linear_certificate
from mercer.linear.linear_solution import LinearOptions
from mercer.linear.multiclass.crammer_singer import JointProblem, joint_certificate, solve_jointly
from mercer.problems.clock import WorkClock
from mercer.problems.solution import Certificate, combine
from mercer.validation import real_targets, thread_count, validate_vectors, validate_weights

# the solver that finds β stops at this relative gap, or after this many seconds
DUAL_TOL = 1e-8
DUAL_SECONDS = 10.0


def certify_linear(kind: Kind, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """Certificate from the primal value of the published weights and the dual value of a β that mercer computes."""
    X, _ = validate_vectors(estimator, X, None, reset=False, canonical=False)
    weight = validate_weights(sample_weight, X.shape[0], X)
    rows, loss = linear_rows(estimator, X), loss_of(kind, estimator)
    W, b = _weights(estimator, rows)
    if kind.name == "LinearSVR":
        return certify_weights(linear_problem(estimator, rows, loss, real_targets(y), weight), W[0], b[0], DUAL_SECONDS)
    codes, classes = codes_of(estimator, y), estimator.classes_
    balanced = sample_weight if BALANCES_SAMPLE_WEIGHTS or kind.package != "sklearn" else None
    of_class = compute_class_weight(estimator.class_weight, classes=classes, y=column_or_1d(y), sample_weight=balanced)
    present = np.unique(codes[weight > 0])
    # LIBLINEAR drops classes without weight; mercer keeps their index
    labels = present if kind.package == "sklearn" or len(present) < 2 else np.arange(len(classes))
    several = len(labels) > 2
    if getattr(estimator, "multi_class", "ovr") == "crammer_singer":
        return _certify_jointly(estimator, rows, codes, len(classes), prices(estimator.C, weight * of_class[codes]))
    positives = labels if several else labels[1:]
    if len(positives) != len(W):
        raise different_classes(len(W) if len(W) > 1 else 2, len(present))
    certificates = []
    for k, w, b_k in zip(positives, W, b, strict=True):
        target = one_vs_rest(codes, weight, of_class, int(k), several)
        problem = linear_problem(estimator, rows, loss, *target)
        certificates.append(certify_weights(problem, w, b_k, DUAL_SECONDS / len(W)))
    return combine(certificates, of=f"{len(W)} one-vs-rest problems" if several else None)


def _weights(estimator: Any, rows: Rows) -> tuple[Matrix, Vector]:
    """w and the free intercept of each problem; w ends with the weight of the constant feature if there is one."""
    coef = estimator.coef_.toarray() if sp.issparse(estimator.coef_) else estimator.coef_
    W = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    b = np.broadcast_to(np.ravel(np.asarray(estimator.intercept_, dtype=np.float64)), (len(W),))
    if not rows.bias:
        return W, b
    return np.column_stack([W, b / rows.bias]), np.zeros(len(W))


def _certify_jointly(estimator: Any, rows: Rows, codes: Vector, n_classes: int, weight: Vector) -> Certificate:
    """Crammer and Singer's machine. With two classes only w₁ − w₀ is published, and w₁ = −w₀ is optimal."""
    W, b = _weights(estimator, rows)
    if n_classes == 2:
        W, b = np.vstack([-0.5 * W, 0.5 * W]), np.concatenate([-0.5 * b, 0.5 * b])
    if len(W) != n_classes:
        raise different_classes(len(W), n_classes)
    free = bool(estimator.fit_intercept and not getattr(estimator, "penalize_intercept", True))
    problem = JointProblem(rows, codes.astype(np.intp), n_classes, weight, free)
    options = LinearOptions(tol=DUAL_TOL, n_threads=thread_count(None))
    found = solve_jointly(problem, options, WorkClock(DUAL_SECONDS))
    return joint_certificate(problem, W, found.alpha, b)


def certify_weights(problem: LinearProblem, w: Vector, b: float, seconds: float) -> Certificate:
    """The certificate of w and b, with the β that the solver finds within this many seconds."""
    options = LinearOptions(tol=DUAL_TOL, n_threads=thread_count(None))
    found = solve_linear("auto", problem, options, WorkClock(seconds))
    beta = np.clip(found.beta, problem.qp.lower, problem.qp.upper)
    v = problem.rows.tdot(beta)
    t = _best_part(problem, beta, v)
    return linear_certificate(problem, w, float(b), t * beta, v=t * v)


def _best_part(problem: LinearProblem, beta: Vector, v: Vector) -> float:
    """The t in [0, 1] that maximises the dual value of tβ, by ternary search; 1 unless the solver ran out of time.

    tβ is feasible because every box contains 0, and the dual value is concave in t.
    """
    low, high = 0.0, 1.0
    if problem.dual(beta, v) >= problem.dual(0.999 * beta, 0.999 * v):
        return 1.0
    for _ in range(40):
        third = (high - low) / 3
        one, two = low + third, high - third
        if problem.dual(one * beta, one * v) < problem.dual(two * beta, two * v):
            low = one
        else:
            high = two
    return 0.5 * (low + high)
