"""Certificates of QuantileSVR from its coefficients and the data.

The primal value is that of the published functions and intercepts, moved apart if they cross at a sample. The published
β give the dual value if they are feasible; if they leave a gap, mercer solves the problem itself for a better one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.erm.non_crossing import dual_value, feasible_certificate, solve_quantiles
from mercer.estimators.certification.kernel_machines import training_data
from mercer.gram.operator import product
from mercer.problems.clock import Clock
from mercer.problems.solution import NOT_PSD, Certificate, with_dual
from mercer.validation import real_targets, thread_count, validate_weights

# look for a better dual value if the relative gap is above this, for at most this many seconds
SHARP = 1e-3
SECONDS = 20.0


def certify_quantiles(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The certificate of the joint problem, with its constraints at the training samples."""
    data = training_data(estimator, X)
    weight = validate_weights(sample_weight, data.n, X)
    used = np.flatnonzero(weight > 0)
    part = data if len(used) == data.n else data.take(used)
    order = np.argsort(estimator.quantiles_)
    beta = np.zeros((len(order), data.n))
    beta[:, np.asarray(estimator.support_, dtype=np.intp)] = estimator.dual_coef_[order]
    beta, targets, C = beta[:, used], real_targets(y)[used], float(estimator.C) * weight[used]
    features = part.features(np.float64)
    F = product(part.kernel, features, features, np.ascontiguousarray(beta.T), thread_count(estimator.n_jobs)).T
    known = (targets, C, estimator.quantiles_[order])
    dual, reason = dual_value(beta, F, *known)
    b = np.asarray(estimator.intercept_, dtype=np.float64)[order]
    _, shown = feasible_certificate(beta, F, b, *known, dual, reason if part.psd else NOT_PSD)
    if part.psd and (reason or shown.relative_gap > SHARP):
        options = replace(estimator._options(), tol=0.1 * SHARP)
        with Clock(SECONDS) as clock:
            own = solve_quantiles(part, *known, options, clock)[0].certificate
        if own.valid and (reason or own.dual > shown.dual):
            return with_dual(shown, own.dual, "")
    return shown
