"""Certificates of landmark machines for the exact problem.

The machine gives the primal value. Its coefficients are those of a function, not a feasible β: that comes from fitting
the same landmarks once more, whose dual value is a lower bound on the exact optimum.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer.estimators.certification.kernel_machines import stated_problems
from mercer.estimators.fitted_models import Kind, loss_of
from mercer.estimators.kernel_ridge import target_alphas
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector, count_samples
from mercer.losses import Loss, Squared
from mercer.problems.solution import Certificate, combine, with_dual
from mercer.validation import target_matrix, validate_weights


def certify_landmarks(kind: Kind, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The distance of a landmark machine from the exact machine of its training data."""
    n, n_fitted = count_samples(X), estimator.shape_fit_[0]
    if n != n_fitted:
        raise InvalidInputError(
            f"X has {n} samples, but the estimator was fitted to {n_fitted}: pass the training data, in the same order."
        )
    matrix = estimator._kernel.domain == "matrix"
    again = clone(estimator).set_params(
        landmarks=estimator.n_landmarks_ if matrix else estimator.landmarks_, polish=False, verbose=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again.fit(X, y, sample_weight=sample_weight)
    primals = _primals(kind, estimator, X, y, validate_weights(sample_weight, n, X))
    proofs = []
    for primal, found in zip(primals, again.certificates_, strict=True):
        proofs.append(with_dual(replace(found, primal=primal, of=kind.name), found.dual, found.reason))
    return combine(proofs)


def _primals(kind: Kind, estimator: Any, X: Any, y: Any, weight: Vector) -> list[float]:
    """The objective of each problem: one, one for each pair of classes, or one for each target."""
    sizes = np.atleast_1d(estimator.rkhs_norm_) ** 2
    if kind.name == "KernelRidge":
        Y, f = target_matrix(y), np.asarray(estimator.predict(X)).reshape(len(weight), -1)
        alpha = target_alphas(estimator.alpha, Y.shape[1])
        used = weight > 0
        return [
            a * _primal(Squared(), Y[used, t], f[used, t], weight[used] / a, size)
            for t, (a, size) in enumerate(zip(alpha, sizes, strict=True))
        ]
    loss, values = loss_of(kind, estimator), estimator._values(X)
    found = [
        _primal(loss, own.y, values[own.rows, own.k], own.weight, sizes[own.k])
        for own in stated_problems(kind, estimator, y, weight)
    ]
    if kind.name == "OneClassSVM":
        # the term ρ Σβ of the primal
        found[0] += float(loss.nu * weight[weight > 0].sum() * estimator._intercept_[0])  # type: ignore[attr-defined]
    return found


def _primal(loss: Loss, y: Vector, f: Matrix, weight: Vector, size: float) -> float:
    """½|f|² + Σ weight · loss(y, f), where f includes the intercept."""
    return float(0.5 * size + weight @ loss.value(y, f))
