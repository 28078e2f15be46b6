"""Change of ridge regressions and Gaussian processes when single training samples are left out, in closed form.

Their coefficients solve A β = y − b with A = K + Λ; with an intercept also Σβ = 0. Let S be the upper left block of the
inverse of A bordered by ones, or A⁻¹ without an intercept. Without sample i the function changes at x by

    − βᵢ (V)ₓᵢ / Sᵢᵢ,      V = k(x, ·) S + u'/Σu,  u = A⁻¹1   (without the second term if there is no intercept)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from mercer.estimators.certification.ridge_regressions import fitted_ridge
from mercer.estimators.fitted_models import Kind
from mercer.estimators.gaussian_process import resolve_covariance
from mercer.exceptions import InvalidInputError
from mercer.explanation.left_out.left_out_machines import LeftOut
from mercer.gram.memory import available_bytes
from mercer.kernels.features import Matrix, Vector
from mercer.kernels.features import count_samples as count
from mercer.validation import validate_samples, validate_weights


def left_out_ridge(kind: Kind, model: Any, X: Any, X_train: Any, sample_weight: Any) -> LeftOut:
    """The changes of KernelRidge or KernelRidgeCV, one function for each target."""
    if hasattr(model, "landmarks_"):
        raise InvalidInputError(
            "This KernelRidge is a landmark machine: its function depends on all samples through a few landmarks. Fit "
            "it with landmarks=None, or with polish=True."
        )
    X_train = model.X_fit_ if X_train is None else X_train
    n_targets = np.asarray(model.dual_coef_).reshape(len(model.dual_coef_), -1).shape[1]
    ridge = fitted_ridge(kind, model, X_train, n_targets)
    _check_memory(ridge.data.n)
    weight = validate_weights(sample_weight, ridge.data.n, X_train)
    used = np.flatnonzero(weight > 0)
    part = ridge.data if len(used) == len(weight) else ridge.data.take(used)
    domain = ridge.data.kernel.domain
    X, _ = validate_samples(model, X, None, reset=False, domain=getattr(model, "_domain_fit", None))
    if domain == "matrix":
        cross = np.asarray(X, dtype=np.float64)[:, used]
    else:
        cross = part.kernel.block(part.kernel.prepare(X, np.float64), part.features(np.float64))
    K = part.matrix(np.float64, ridge.n_threads)
    values = np.zeros((count(X), ridge.data.n, n_targets))
    for alpha in np.unique(ridge.alpha):
        A = K.copy()
        A[np.diag_indices_from(A)] += alpha / weight[used]
        V, S = _responses(_factor(A), cross, ridge.fits_intercept)
        for t in np.flatnonzero(ridge.alpha == alpha):
            values[:, used, t] = -V * (ridge.coef[used, t] / S)
    return _all_closed(values, len(used))


def left_out_process(model: Any, X: Any, X_train: Any) -> LeftOut:
    """The changes of the posterior mean of a GaussianProcessRegressor, whose kernel keeps its parameters."""
    n = count(model.X_train_)
    if X_train is not None and count(X_train) != n:
        raise InvalidInputError(
            f"X_train has {count(X_train)} samples, but the process was fitted to {n}: pass the training data, in the "
            "same order, or None."
        )
    kernel = getattr(model, "_kernel", None)
    if kernel is None:
        kernel = resolve_covariance(model.kernel_)
        X = np.asarray(X, dtype=np.float64)
    else:
        X, _ = validate_samples(model, X, None, reset=False)
    cross = kernel.block(kernel.prepare(X, np.float64), kernel.prepare(model.X_train_, np.float64))
    V, S = _responses(np.asarray(model.L_), cross, False)
    coef = (model._y_train_std * np.asarray(model.alpha_)).reshape(n, -1)
    return _all_closed(-V[:, :, None] * (coef / S[:, None]), n)


def _all_closed(values: Any, n_closed: int) -> LeftOut:
    return LeftOut(values, np.ones(values.shape[1], np.bool_), n_closed, 0)


def _check_memory(n: int) -> None:
    """Raise if the matrix, its factor and its inverse do not fit into the available memory."""
    needed, available = 24 * n * n, available_bytes()
    if needed > available:
        raise InvalidInputError(
            f"The influence on a ridge regression needs the inverse of its matrix: {n:,} training samples take "
            f"{needed / 1e9:,.1f} GB, but {available / 1e9:,.1f} GB are available. Fit it on a part of the samples, or "
            "use SVR, which has few support vectors."
        )


def _factor(A: Matrix) -> Matrix:
    try:
        factor: Matrix = linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        raise InvalidInputError(
            "K + alpha is singular to working precision, so that leaving out a row has no defined effect. Raise alpha."
        ) from None
    return factor


def _responses(L: Matrix, cross: Matrix, intercept: bool) -> tuple[Matrix, Vector]:
    """V and the diagonal of S, from the factor A = LL' and the kernel values of new and training samples."""
    inverse, _ = lapack.dpotri(L, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    if not intercept:
        return cross @ inverse, np.diagonal(inverse)
    u = inverse.sum(axis=1)
    S = inverse - np.outer(u, u) / u.sum()
    return cross @ S + u / u.sum(), np.diagonal(S)
