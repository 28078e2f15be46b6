"""Build fitted kernel machines from coefficients that another program computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._sklearn_compat import in_configured_interface
from mercer.estimators.base import class_ends
from mercer.estimators.prediction import SupportVectors, pair_coefficients
from mercer.estimators.svc import BaseSVC
from mercer.gram.operator import product
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector
from mercer.problems.solution import Certificate

UNKNOWN = "another program fitted the model: mercer.certify(model, X, y) computes the distance from the optimum"
# |w| is computed for models with at most this many support vectors
LARGEST_NORMS = 20_000


def unknown_certificate(of: str, reason: str = UNKNOWN) -> Certificate:
    """Return the certificate of a model whose distance from the optimum has not been computed."""
    inf = float("inf")
    return Certificate(inf, -inf, inf, inf, inf, inf, valid=False, of=of, reason=reason)


def mark_uncertified(model: Any, n_problems: int, reason: str = UNKNOWN) -> None:
    """Give the model an unknown certificate and no solver trace. Edits the model."""
    model.certificate_ = unknown_certificate(type(model).__name__, reason)
    model.certificates_ = [model.certificate_] * n_problems
    model.trace_ = []
    model._statuses = []


def make_fitted(
    model: Any,
    kernel: Kernel,
    vectors: Any,
    coef: Matrix,
    intercept: Vector,
    *,
    support: Vector,
    n_support: Sequence[int],
    n_train: int,
    n_features: int,
    classes: Vector | None = None,
) -> Any:
    """Set all fitted attributes of an estimator. Coefficients and intercepts are in LIBSVM's layout and signs.

    ``vectors`` is an array or CSR matrix, ignored for a precomputed kernel; ``support`` holds the indices of the
    support vectors among the ``n_train`` training samples. Edits the model and returns it.
    """
    pairwise = kernel.domain == "matrix"
    vectors = np.empty((0, 0)) if pairwise else vectors
    model._kernel, model._gamma = kernel, getattr(kernel, "gamma", 0.0)
    model._sparse, model._function_samples, model._warm = bool(sp.issparse(vectors)), None, None
    model.shape_fit_ = (n_train, n_features)
    model.n_features_in_ = n_features
    model._n_support = np.asarray(n_support, dtype=np.int32)
    model.support_ = np.asarray(support, dtype=np.int32)
    model.support_vectors_ = in_configured_interface(vectors)
    coef = np.ascontiguousarray(coef, dtype=np.float64)
    intercept = np.ascontiguousarray(intercept, dtype=np.float64)
    stored = model._as_coef(coef)
    flipped = classes is not None and len(classes) == 2
    sign = -1.0 if flipped else 1.0
    model._dual_coef_, model._intercept_ = stored, intercept
    model.dual_coef_, model.intercept_ = (sign * stored if flipped else stored), sign * intercept + 0.0
    model.fit_status_ = 0
    model.kernel_evaluations_ = 0
    model.n_iter_ = np.zeros(len(intercept), np.int32) if classes is not None else 0
    if classes is not None:
        model.classes_ = classes
        model.class_weight_ = np.ones(len(classes))
        model._probA = model._probB = np.empty(0)
    if not isinstance(model, BaseSVC) and hasattr(model, "nu") and hasattr(model, "score_samples"):
        model.offset_ = -intercept
    model._support = SupportVectors(kernel, vectors, model.support_, class_ends(model._n_support), n_train, np.empty(0))
    model.rkhs_norm_ = model._support.norms = weight_norms(model._support, coef, len(intercept))
    with np.errstate(divide="ignore"):
        model.margin_ = 1.0 / model.rkhs_norm_
    mark_uncertified(model, len(intercept))
    return model


def weight_norms(support: SupportVectors, coef: Matrix, n_problems: int) -> Vector:
    """|w| of each problem, which bounds on rounding errors need; inf where it is unknown."""
    m = len(support.support)
    if support.kernel.domain == "matrix" or m > LARGEST_NORMS:
        return np.full(n_problems, np.inf)
    whole = pair_coefficients(coef, support.ends) if n_problems > 1 else coef
    features = support.features(np.float64)
    F = product(support.kernel, features, features, np.ascontiguousarray(whole.T))
    return np.sqrt(np.maximum(0.0, np.einsum("pi,ip->p", whole, F)))
