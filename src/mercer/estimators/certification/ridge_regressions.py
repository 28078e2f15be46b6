"""Certificates of KernelRidge and KernelRidgeCV, of mercer or scikit-learn, and of LSSVC, from coefficients and data.

With a squared loss every β is feasible, up to Σβ = 0 if there is an intercept, so the published coefficients give both
the primal and the dual value. If they leave a gap, mercer also solves the problem and takes the better dual value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mercer.estimators.certification.kernel_machines import training_data
from mercer.estimators.fitted_models import Kind, codes_of
from mercer.estimators.kernel_ridge import KernelRidge, target_alphas
from mercer.estimators.least_squares.one_vs_rest import label_columns
from mercer.estimators.psd_check import seems_psd
from mercer.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mercer.gram.operator import Data, product
from mercer.kernels.features import Matrix, Vector, count_samples
from mercer.losses import Squared
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem
from mercer.problems.solution import NOT_PSD, ROUNDING, Certificate, certificate, combine, with_dual
from mercer.ridge.solver import LARGEST, in_units_of, ridge_certificate, solve
from mercer.validation import (
    class_weights,
    square_matrix,
    target_matrix,
    thread_count,
    validate_samples,
    validate_weights,
)

# look for a better β if the relative gap is above this, for at most this many seconds
SHARP = 1e-6
SECONDS = 10.0


class FittedRidge(NamedTuple):
    """A fitted ridge regression: a column of coefficients, a λ and a b for each target."""

    data: Data
    coef: Matrix
    alpha: Vector
    intercept: Vector
    fits_intercept: bool
    n_threads: int


def certify_ridge(kind: Kind, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The certificate of λ/2 |f|² + ½ Σ w (y − f − b)², summed over the targets."""
    if kind.name == "LSSVC":
        return _certify_labels(estimator, X, y, sample_weight)
    Y = target_matrix(y)
    ridge = fitted_ridge(kind, estimator, X, Y.shape[1])
    weight = validate_weights(sample_weight, ridge.data.n, X)
    found = _certify_targets(ridge, Y, weight)
    return combine(found, of=kind.name if len(found) == 1 else f"{len(found)} targets")


def _certify_labels(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The certificate of ½|f|² + ½ Σ C (y − f − b)² for y = ±1, summed over the classes against the rest."""
    data, codes = training_data(estimator, X), codes_of(estimator, y)
    weight = validate_weights(sample_weight, data.n, X)
    weight = weight * class_weights(estimator.class_weight, estimator.classes_, codes, weight)[codes]
    Y = label_columns(codes, len(estimator.classes_))
    coef = np.zeros(Y.shape)
    coef[np.asarray(estimator.support_, dtype=np.intp)] = estimator.dual_coef_.T
    b, fits, threads = np.ravel(estimator.intercept_), bool(estimator.fit_intercept), thread_count(estimator.n_jobs)
    ridge = FittedRidge(data, coef, np.ones(Y.shape[1]), b, fits, threads)
    found = _certify_targets(ridge, Y, float(estimator.C) * weight)
    return combine(found, of="LSSVC" if len(found) == 1 else f"{len(found)} classes against the rest")


def _certify_targets(ridge: FittedRidge, Y: Matrix, weight: Vector) -> list[Certificate]:
    """A certificate for each target, over the samples with positive weight."""
    used = np.flatnonzero(weight > 0)
    if len(used) < len(weight):
        ridge = ridge._replace(data=ridge.data.take(used), coef=ridge.coef[used])
        Y, weight = Y[used], weight[used]
    features = ridge.data.features(np.float64)
    F = product(ridge.data.kernel, features, features, ridge.coef, ridge.n_threads)
    found = [_certify_target(ridge, k, Y[:, k], weight, F[:, k]) for k in range(Y.shape[1])]
    if any(proof.relative_gap > SHARP and proof.valid for proof in found):
        found = _with_better_duals(ridge, Y, weight, found)
    return found


def fitted_ridge(kind: Kind, estimator: Any, X: Any, n_targets: int) -> FittedRidge:
    """The coefficients, and the samples with the kernel as fit has bound it."""
    # scikit-learn's class keeps no bound kernel, but has the same parameters
    names = ("kernel", "gamma", "degree", "coef0", "kernel_params")
    own = estimator if kind.package == "mercer" else KernelRidge(**{name: getattr(estimator, name) for name in names})
    X, _ = validate_samples(estimator, X, None, reset=False, domain=own._domain())
    n, n_fitted = count_samples(X), len(estimator.dual_coef_)
    if n != n_fitted:
        raise InvalidInputError(
            f"X has {n} samples, but the estimator was fitted to {n_fitted}: pass the training data, in the same order."
        )
    coef = np.asarray(estimator.dual_coef_, dtype=np.float64).reshape(n, -1)
    if coef.shape[1] != n_targets:
        raise InvalidInputError(
            f"y has {n_targets} target(s), but the estimator was fitted to {coef.shape[1]}: pass the y that it was "
            "fitted to."
        )
    kernel = estimator._kernel if kind.package == "mercer" else own._resolve(own.kernel).bind(X)
    if kernel.domain == "matrix":
        square_matrix(X)
    data = Data(kernel, X, n)
    data.features(np.float64)  # once, for all products
    data.psd = data.psd and seems_psd(data)
    alpha = target_alphas(estimator.alpha_ if kind.name == "KernelRidgeCV" else estimator.alpha, n_targets)
    b = np.broadcast_to(np.ravel(getattr(estimator, "intercept_", 0.0)), n_targets).astype(np.float64)
    fits = bool(getattr(estimator, "fit_intercept", False))
    return FittedRidge(data, coef, alpha, b, fits, thread_count(getattr(estimator, "n_jobs", None)))


def _certify_target(ridge: FittedRidge, k: int, y: Vector, weight: Vector, F: Vector) -> Certificate:
    """Certify one target. With an intercept the dual value is that of β − mean(β), whose sum is 0."""
    alpha, beta, data = float(ridge.alpha[k]), ridge.coef[:, k], ridge.data
    if alpha <= float(weight.max()) / LARGEST:
        # without λ the dual bound comes from the residual, not from β
        b = ridge.intercept[k] if ridge.fits_intercept else 0.0
        return ridge_certificate(y - b, weight, alpha, False, beta, F, "" if data.psd else NOT_PSD)[1]
    problem = DualProblem(None, Squared(), y, weight / alpha, ridge.fits_intercept)
    known = (problem.qp, problem.loss, y, problem.weight)
    b_groups = ridge.intercept[k : k + 1][: problem.qp.n_groups]
    shown = certificate(*known, beta, F, b_groups, data.psd)
    if ridge.fits_intercept and shown.infeasibility > ROUNDING * float(np.abs(beta).max(initial=0.0)):
        features = data.features(np.float64)
        summed = product(data.kernel, features, features, np.ones(data.n), ridge.n_threads)
        mean = float(beta.mean())
        bound = certificate(*known, beta - mean, F - mean * summed, b_groups, data.psd)
        shown = with_dual(shown, bound.dual, bound.reason)
    return in_units_of(shown, alpha, y, weight, F)


def _with_better_duals(ridge: FittedRidge, Y: Matrix, weight: Vector, found: list[Certificate]) -> list[Certificate]:
    """Replace dual values by those of mercer's own solutions where these are better."""
    own = KernelRidge(fit_intercept=ridge.fits_intercept, n_jobs=ridge.n_threads)
    options = replace(own._options(), time_limit=SECONDS)
    try:
        solutions = solve(ridge.data, Y, weight, ridge.alpha, ridge.fits_intercept, options, Clock(SECONDS), "auto")
    except NotPositiveSemidefiniteError:
        return [with_dual(proof, proof.dual, NOT_PSD) for proof in found]
    sharper = []
    for proof, solution in zip(found, solutions, strict=True):
        best = solution.certificate
        better = best.valid and best.dual > proof.dual
        sharper.append(with_dual(proof, best.dual, "") if better else with_dual(proof, proof.dual, best.reason))
    return sharper
