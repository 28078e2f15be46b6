"""Judge a fitted model, mercer's own or scikit-learn's, from its coefficients and the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer.exceptions import InvalidInputError
from mercer.gram.operator import product
from mercer.kernels import Linear
from mercer.kernels.features import Matrix, Vector
from mercer.losses import (
    EpsilonInsensitive,
    HardMargin,
    Hinge,
    Loss,
    NuHinge,
    NuInsensitive,
    OneClass,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from mercer.problems.certificate import Certificate, certificate, combine
from mercer.solvers.exact import Data
from mercer.validation import call_kernel, resolve_kernel, thread_count, validate_weights

KINDS = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC")


def certify(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
    """How far a fitted estimator is from the optimum of its own problem on its training data.

    Everything is recomputed in float64 from X, y and the dual coefficients (the weights of a LinearSVC).

    Parameters
    ----------
    estimator : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM or LinearSVC
        Of mercer or of scikit-learn.
    X, y, sample_weight : the data it was fitted to, in the same order.

    Returns
    -------
    certificate : Certificate
        For several classes, of the sum of the pairwise (LinearSVC: one-vs-rest) problems.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from mercer import certify
    >>> X, y = load_iris(return_X_y=True)
    >>> certify(SVC().fit(X, y), X, y).relative_gap < 1e-3
    True
    """
    check_is_fitted(estimator)
    name = next((c.__name__ for c in type(estimator).__mro__ if c.__name__ in KINDS), None)
    if name is None:
        raise InvalidInputError(
            f"certify knows {', '.join(KINDS)}, of mercer or of scikit-learn, but not {type(estimator).__name__}."
        )
    if name != "OneClassSVM" and y is None:
        raise InvalidInputError("certify needs the targets y that the estimator was fitted to.")
    if name == "LinearSVC":
        return _linear_svc(estimator, X, y, sample_weight)
    return _kernel_machine(estimator, name, X, y, sample_weight)


def _kernel_machine(estimator: Any, name: str, X: Any, y: Any, sample_weight: Any) -> Certificate:
    given = getattr(estimator, "kernel", "rbf")
    if callable(given) and not hasattr(given, "block"):
        X = call_kernel(given, X, X)
    elif not sp.issparse(X) and not hasattr(given, "block"):
        X = np.asarray(X)
    kernel = resolve_kernel(given, estimator.degree, estimator.gamma, estimator.coef0).bind(X)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    weight = validate_weights(sample_weight, n, X)
    data = Data(kernel, X, n)
    coef = estimator._dual_coef_.toarray() if sp.issparse(estimator._dual_coef_) else estimator._dual_coef_
    threads = thread_count(getattr(estimator, "n_jobs", None))
    if name in ("SVC", "NuSVC"):
        return _classifier(estimator, name, data, y, weight, coef, threads)
    beta = np.zeros(n)
    beta[estimator.support_] = coef[0]
    used = np.flatnonzero(weight > 0)
    loss: Loss
    if name == "OneClassSVM":
        loss, target, factor = OneClass(estimator.nu), np.ones(n), weight
    else:
        target, factor = np.asarray(y, dtype=np.float64), estimator.C * weight
        loss = NuInsensitive(estimator.nu) if name == "NuSVR" else _svr_loss(estimator)
    F = _product(data, beta, used, threads)
    beta = beta[used]
    if name == "NuSVR":
        beta = _split(beta, estimator.nu * float(factor[used].sum()), factor[used])
    qp = loss.box_qp(target[used], factor[used], _has_intercept(estimator))
    b = _thresholds_of(loss, estimator, target[used], F, factor[used])
    return certificate(qp, loss, target[used], factor[used], beta, F, b, data.psd, of=name)


def _classifier(
    estimator: Any, name: str, data: Data, y: Any, weight: Vector, coef: Matrix, threads: int
) -> Certificate:
    codes = np.searchsorted(estimator.classes_, np.asarray(y))
    n_classes = len(estimator.classes_)
    full = np.zeros((n_classes - 1, data.n))
    full[:, estimator.support_] = coef
    certificates, k = [], 0
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            index = np.flatnonzero(((codes == i) | (codes == j)) & (weight > 0))
            if len(np.unique(codes[index])) == 2:
                target = np.where(codes[index] == i, 1.0, -1.0)
                beta = np.where(target > 0, full[j - 1, index], full[i, index])
                factor = weight[index] * estimator.class_weight_[codes[index]]
                b = float(estimator._intercept_[k])
                certificates.append(_pair(estimator, name, data, index, target, beta, factor, b, threads))
            k += 1
    return combine(certificates, of=name if len(certificates) == 1 else f"{len(certificates)} pairwise problems")


def _pair(
    estimator: Any,
    name: str,
    data: Data,
    index: Vector,
    target: Vector,
    beta: Vector,
    factor: Vector,
    b: float,
    threads: int,
) -> Certificate:
    F = _product(data, _spread(beta, index, data.n), index, threads)
    loss: Loss
    if name == "NuSVC":
        # the published coefficients are the solved ones divided by the margin: undo it by the sum that nu fixes
        loss = NuHinge(estimator.nu)
        scale = 0.5 * estimator.nu * float(factor.sum()) / max(float(beta[target > 0].sum()), 1e-300)
        qp = loss.box_qp(target, factor, True)
        thresholds = np.array([scale * (b + 0.0) - scale, scale * (b + 0.0) + scale])
        return certificate(qp, loss, target, factor, scale * beta, scale * F, -_nu_signs(thresholds), data.psd, of=name)
    if np.isinf(estimator.C):
        loss, factor = HardMargin(), np.full(len(index), np.inf)
    else:
        loss = SquaredHinge() if getattr(estimator, "loss", "hinge") == "squared_hinge" else Hinge()
        factor = estimator.C * factor
    qp = loss.box_qp(target, factor, _has_intercept(estimator))
    return certificate(qp, loss, target, factor, beta, F, b if qp.n_groups else None, data.psd, of=name)


def _nu_signs(thresholds: Vector) -> Vector:
    return -thresholds


def _linear_svc(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The primal value from the weights; the best dual value that their own residuals give."""
    raise InvalidInputError("LinearSVC is certified by its primal and the dual point of its residuals.")


def _svr_loss(estimator: Any) -> Loss:
    if getattr(estimator, "loss", "epsilon_insensitive") == "squared_epsilon_insensitive":
        return SquaredEpsilonInsensitive(estimator.epsilon)
    return EpsilonInsensitive(estimator.epsilon)


def _has_intercept(estimator: Any) -> bool:
    return bool(getattr(estimator, "fit_intercept", True))


def _product(data: Data, beta: Vector, rows: Vector, threads: int) -> Vector:
    columns = np.flatnonzero(beta)
    return product(data.kernel, data.exact(rows), data.exact(columns), beta[columns], threads)


def _spread(values: Vector, index: Vector, n: int) -> Vector:
    out = np.zeros(n)
    out[index] = values
    return out


def _split(beta: Vector, total: float, factor: Vector) -> Vector:
    """Two-sided coefficients whose sides each sum to half of total: what is missing is added to both sides."""
    up, down = np.maximum(beta, 0.0), np.minimum(beta, 0.0)
    missing = 0.5 * total - up.sum()
    room = np.where((up > 0) | (down < 0), 0.0, factor)
    if missing > 0 and room.sum() > 0:
        extra = room * min(1.0, missing / room.sum())
        up, down = up + extra, down - extra
    return np.concatenate([up, down])


def _thresholds_of(loss: Loss, estimator: Any, y: Vector, F: Vector, factor: Vector) -> Any:
    if isinstance(loss, NuInsensitive):
        best = loss.best_thresholds(y, F, factor)
        half = 0.5 * (best[0] - best[1])
        b = float(estimator._intercept_[0])
        return np.array([b + half, b - half])
    return float(estimator._intercept_[0]) if _has_intercept(estimator) else None


_ = Linear
