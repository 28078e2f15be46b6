"""Certificates of OutputCodeSVC from its coefficients and the data: one for each code word, added up."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.certification.kernel_machines import training_data
from mercer.estimators.fitted_models import codes_of
from mercer.gram.operator import product
from mercer.losses import Hinge
from mercer.problems.dual import DualProblem, feasible_start
from mercer.problems.solution import Certificate, certificate, combine, with_dual
from mercer.validation import class_weights, thread_count, validate_weights


def certify_output_codes(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The certificate of ½|f|² + Σ C max(0, 1 − M[y, m] (f + b)), summed over the words m."""
    data, codes = training_data(estimator, X), codes_of(estimator, y)
    weight = validate_weights(sample_weight, data.n, X)
    weight = (
        float(estimator.C) * weight * class_weights(estimator.class_weight, estimator.classes_, codes, weight)[codes]
    )
    beta = np.zeros((data.n, len(estimator.dual_coef_)))
    beta[np.asarray(estimator.support_, dtype=np.intp)] = estimator.dual_coef_.T
    features, n_threads, found = data.features(np.float64), thread_count(estimator.n_jobs), []
    for m, labels in enumerate(estimator.code_[codes].T):
        rows = np.flatnonzero((labels != 0) & (weight > 0))
        problem = DualProblem(None, Hinge(), labels[rows], weight[rows], bool(estimator.fit_intercept))
        known = (problem.qp, problem.loss, problem.y, problem.weight)
        b = np.asarray(estimator.intercept_[m : m + 1], dtype=np.float64)[: problem.qp.n_groups]
        part = features if len(rows) == data.n else features.take(rows)
        word = np.ascontiguousarray(beta[rows, m])
        shown = certificate(*known, word, product(data.kernel, part, part, word, n_threads), b, data.psd)
        if not shown.valid and data.psd:
            # published coefficients outside their bounds: the bound is that of the nearest feasible ones
            inside = feasible_start(problem.qp, word)
            bound = certificate(*known, inside, product(data.kernel, part, part, inside, n_threads), b, data.psd)
            shown = with_dual(shown, bound.dual, bound.reason)
        found.append(shown)
    return combine(found, of="OutputCodeSVC" if len(found) == 1 else f"{len(found)} code words")
