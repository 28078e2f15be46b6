"""Certificates of SVDD and of the machines that order samples, from their coefficients and the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.certification.kernel_machines import Machine, certify_problem, coefficients, training_data
from mercer.estimators.certification.kernel_machines import fitted_problem as fitted
from mercer.estimators.enclosing.svdd import ball_labels, ball_price
from mercer.estimators.fitted_models import Kind
from mercer.losses.smallest_ball import SmallestBall, ball_targets
from mercer.problems.dual import DualProblem
from mercer.problems.solution import Certificate
from mercer.validation import thread_count, validate_weights


def certify_ordering(kind: Kind, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The certificate of the published function on its training data."""
    data = training_data(estimator, X)
    machine = Machine(kind, estimator, data, thread_count(estimator.n_jobs))
    weight = validate_weights(sample_weight, data.n, X)
    return _certify_ball(machine, y, weight)


def _certify_ball(machine: Machine, y: Any, weight: Any) -> Certificate:
    """The gap of the smallest ball: half of R² + Σ C max(0, s(|φ(x) − a|² − R²)), and its dual value."""
    data, rows = machine.data, np.flatnonzero(weight > 0)
    labels = ball_labels(y, data.n)
    targets = ball_targets(data.kernel.diagonal(data.features(np.float64)), labels)
    C = weight * ball_price(machine.estimator, labels, weight)
    problem = DualProblem(None, SmallestBall(), targets[rows], C[rows])
    b = float(machine.estimator._intercept_[0])
    return certify_problem(fitted(machine, (), rows, problem, coefficients(machine, weight)[0, rows], b))
