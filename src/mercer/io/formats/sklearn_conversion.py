"""Convert fitted models of mercer to fitted models of scikit-learn, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import kernel_ridge, svm
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer._sklearn_compat import in_configured_interface
from mercer.estimators.kernel_ridge import SKLEARN_KERNELS, KernelRidge, TrainingSamples
from mercer.estimators.linear.linear_machine import LinearMachine
from mercer.exceptions import InvalidInputError
from mercer.io.formats.from_parts import make_fitted, mark_uncertified
from mercer.kernels import (
    AdditiveChi2,
    Chi2,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from mercer.kernels.features import Matrix, count_samples
from mercer.linear.linear_solution import LinearPlan
from mercer.validation import resolve_kernel

NAMES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR", "KernelRidge")
# scikit-learn's kernel names
_KERNELS: dict[type, str] = {
    Linear: "linear",
    Polynomial: "poly",
    Gaussian: "rbf",
    Sigmoid: "sigmoid",
    Precomputed: "precomputed",
}
_RIDGE_KERNELS = {**_KERNELS, Laplacian: "laplacian", Cosine: "cosine", Chi2: "chi2", AdditiveChi2: "additive_chi2"}


def to_sklearn(model: Any) -> Any:
    """Return a fitted scikit-learn estimator with the same predictions.

    Kernels that scikit-learn lacks become callables. Parameters that it lacks, such as ``loss="squared_hinge"`` of SVC,
    are lost: predictions stay the same, but a new ``fit`` would solve a different problem.

    Parameters
    ----------
    model : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR or KernelRidge
        An estimator of mercer.

    Returns
    -------
    estimator : scikit-learn's class of the same name
        With all fitted attributes.

    Examples
    --------
    >>> import mercer
    >>> model = mercer.SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> theirs = mercer.to_sklearn(model)
    >>> type(theirs).__module__, theirs.predict([[2.5]])
    ('sklearn.svm._classes', array([1]))
    """
    name = _name(model, "mercer", "to_sklearn")
    check_is_fitted(model)
    if name in ("LinearSVC", "LinearSVR"):
        return _linear_to_sklearn(name, model)
    if name == "KernelRidge":
        return _ridge_to_sklearn(model)
    return _machine_to_sklearn(name, model)


def from_sklearn(estimator: Any) -> Any:
    """Return a fitted mercer estimator with the same predictions as scikit-learn's.

    Its certificate is unknown; ``mercer.certify(model, X, y)`` computes it from the training data.

    Parameters
    ----------
    estimator : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR or KernelRidge
        An estimator of scikit-learn.

    Returns
    -------
    model : mercer's class of the same name
        With all fitted attributes.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> import mercer
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> model = mercer.from_sklearn(SVC().fit(X, y))
    >>> model.predict([[2.5]]), mercer.certify(model, X, y).relative_gap < 1e-3
    (array([1]), True)
    """
    name = _name(estimator, "sklearn", "from_sklearn")
    check_is_fitted(estimator)
    if name in ("LinearSVC", "LinearSVR"):
        return _linear_from_sklearn(name, estimator)
    if name == "KernelRidge":
        return _ridge_from_sklearn(estimator)
    return _machine_from_sklearn(name, estimator)


def _name(model: Any, package: str, function: str) -> str:
    """Return the name of the supported class of a model; raise if it is not supported."""
    for base in type(model).__mro__:
        if base.__name__ in NAMES and base.__module__.partition(".")[0] == package:
            return base.__name__
    library = "mercer" if package == "mercer" else "scikit-learn"
    raise InvalidInputError(
        f"{function} converts {', '.join(NAMES)} of {library}, but was given {type(model).__module__}."
        f"{type(model).__name__}. For a pipeline, pass its last step, model[-1]."
    )


def _common_parameters(source: BaseEstimator, target: type) -> dict[str, Any]:
    """The parameters that both classes have.

    If the model has no probabilities, ``probability`` keeps the target's default: False before scikit-learn 1.9,
    "deprecated" since.
    """
    names = target._get_param_names()  # type: ignore[attr-defined]
    found = {name: value for name, value in source.get_params(deep=False).items() if name in names}
    if found.get("probability") in (False, "deprecated"):
        del found["probability"]
    return found


def _copy_names(source: Any, target: Any) -> None:
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(source, name):
            setattr(target, name, getattr(source, name))


# ---- kernel machines -------------------------------------------------------------------------------------------------


def _machine_to_sklearn(name: str, model: Any) -> Any:
    kernel: Kernel = model._kernel
    params = _common_parameters(model, getattr(svm, name)) | _kernel_parameters(kernel, _KERNELS)
    if params.get("cache_size") == "auto":
        params["cache_size"] = 200
    if params.get("C") == np.inf:
        params["C"] = float(np.finfo(np.float64).max)  # scikit-learn requires a finite C
    theirs = getattr(svm, name)(**params)
    own = params["kernel"] in _KERNELS.values()
    function = model._function_samples is not None
    vectors, support = model.support_vectors_, model.support_
    if function:
        theirs.kernel, theirs._BaseLibSVM__Xfit = model.kernel, model._function_samples
        support = model._support.support
    elif not own:
        # scikit-learn calls the function with the training samples: the support vectors suffice
        theirs._BaseLibSVM__Xfit, support = vectors, np.arange(len(support), dtype=np.int32)
    elif not sp.issparse(vectors) and kernel.domain != "matrix":
        vectors = np.asarray(vectors, dtype=np.float64, order="C")
    if sp.issparse(vectors):
        vectors = sp.csr_array(vectors, dtype=np.float64) if own else vectors
        vectors.sort_indices()
    theirs._sparse = bool(sp.issparse(vectors)) and own
    theirs.shape_fit_ = model.shape_fit_ if own and not function else 2 * (count_samples(theirs._BaseLibSVM__Xfit),)
    if not own:
        vectors = np.empty((0, 0))
    theirs.support_, theirs.support_vectors_ = support, in_configured_interface(vectors)
    theirs._n_support = model._n_support if name.endswith("SVC") else np.array([len(support), 0], dtype=np.int32)
    coef = model._dual_coef_
    dense = coef.toarray() if sp.issparse(coef) else np.ascontiguousarray(coef)
    classifier = name.endswith("SVC")
    sign = -1.0 if classifier and len(model.classes_) == 2 else 1.0
    stored = _all_stored(dense) if theirs._sparse else dense
    theirs._effective_probability = params.get("probability", False) is True
    theirs._dual_coef_, theirs._intercept_ = stored, np.ascontiguousarray(model._intercept_)
    theirs.dual_coef_, theirs.intercept_ = sign * stored, sign * model._intercept_ + 0.0
    gamma = getattr(kernel, "gamma", None)
    theirs._gamma = gamma if own and isinstance(gamma, float) else 0.0
    theirs._probA = theirs._probB = np.empty(0)
    theirs.fit_status_, theirs.n_iter_ = model.fit_status_, model.n_iter_
    theirs._num_iter = np.ravel(model.n_iter_)
    theirs.class_weight_ = np.empty(0)
    if classifier:
        theirs.classes_, theirs.class_weight_ = model.classes_, model.class_weight_
        theirs._probA, theirs._probB = model._probA, model._probB
    if name == "OneClassSVM":
        theirs.offset_ = model.offset_
    _copy_names(model, theirs)
    return theirs


def _all_stored(coef: Matrix) -> Any:
    """Return a CSR matrix with explicit zeros: LIBSVM reads the stored numbers as a dense array."""
    rows, columns = coef.shape
    indices = np.tile(np.arange(columns, dtype=np.int32), rows)
    indptr = columns * np.arange(rows + 1, dtype=np.int32)
    return in_configured_interface(sp.csr_array((coef.ravel(), indices, indptr), shape=coef.shape))


def _machine_from_sklearn(name: str, theirs: Any) -> Any:
    cls = getattr(mercer, name)
    model = cls(**_common_parameters(theirs, cls))
    function = callable(theirs.kernel)
    kernel = resolve_kernel(theirs.kernel, theirs.degree, getattr(theirs, "_gamma", 0.0), theirs.coef0)
    coef = theirs._dual_coef_
    classes = getattr(theirs, "classes_", None)
    vectors = theirs.support_vectors_
    vectors = sp.csr_array(vectors) if sp.issparse(vectors) else vectors
    n_support = theirs._n_support if classes is not None else [len(theirs.support_)]
    coef = np.asarray(coef.toarray() if sp.issparse(coef) else coef)
    if classes is not None and len(classes) != len(coef) + 1:
        raise InvalidInputError(
            f"The estimator has {len(classes)} classes, but coefficients for {len(coef) + 1}: all samples of a class "
            "had weight 0 in its fit. Fit mercer's estimator instead."
        )
    width = theirs.shape_fit_[1] if len(theirs.shape_fit_) > 1 else theirs.shape_fit_[0]
    make_fitted(
        model, kernel, vectors, coef, theirs._intercept_, support=theirs.support_, n_support=n_support,
        n_train=theirs.shape_fit_[0], n_features=int(getattr(theirs, "n_features_in_", width)), classes=classes,
    )  # fmt: skip
    if function:
        model._function_samples = theirs._BaseLibSVM__Xfit
        model.shape_fit_ = theirs.shape_fit_
        model._forget_others()
    if classes is not None:
        model.class_weight_ = theirs.class_weight_
        model._probA, model._probB = theirs._probA, theirs._probB
    model.n_iter_ = theirs.n_iter_
    _copy_names(theirs, model)
    return model


def _kernel_parameters(kernel: Kernel, names: dict[type, str]) -> dict[str, Any]:
    """scikit-learn's parameters for a kernel; the kernel object, which is callable, if it has no name there."""
    gamma = getattr(kernel, "gamma", None)
    if type(kernel) not in names or isinstance(gamma, tuple):
        return {"kernel": kernel}
    found: dict[str, Any] = {"kernel": names[type(kernel)]}
    for name in ("gamma", "degree", "coef0"):
        if hasattr(kernel, name):
            found[name] = getattr(kernel, name)
    return found


# ---- linear machines -------------------------------------------------------------------------------------------------


def _linear_to_sklearn(name: str, model: LinearMachine) -> Any:
    params = _common_parameters(model, getattr(svm, name))
    if params.get("penalty") == "elasticnet":
        params["penalty"] = "l2"
    if params.get("loss") == "pinball":
        params["loss"] = "epsilon_insensitive"
    theirs = getattr(svm, name)(**params)
    coef = model.coef_
    theirs.coef_ = coef.copy() if sp.issparse(coef) else np.array(coef)
    theirs.intercept_ = np.array(model.intercept_) if np.ndim(model.intercept_) else model.intercept_
    theirs.n_iter_ = model.n_iter_
    if hasattr(model, "classes_"):
        theirs.classes_ = model.classes_
    _copy_names(model, theirs)
    return theirs


def _linear_from_sklearn(name: str, theirs: Any) -> Any:
    cls = getattr(mercer, name)
    model = cls(**_common_parameters(theirs, cls))
    coef = theirs.coef_
    model.coef_ = coef.copy() if sp.issparse(coef) else np.array(coef, dtype=np.float64)
    model.intercept_ = (
        np.array(theirs.intercept_, dtype=np.float64) if np.ndim(theirs.intercept_) else theirs.intercept_
    )
    model.n_iter_, model._warm = theirs.n_iter_, None
    W = np.atleast_2d(coef.toarray() if sp.issparse(coef) else coef)
    with np.errstate(divide="ignore"):
        model.margin_ = 1.0 / np.linalg.norm(W, axis=1)
    if hasattr(theirs, "classes_"):
        model.classes_ = theirs.classes_
        model.class_weight_ = np.ones(len(theirs.classes_))
    mark_uncertified(model, len(W))
    model.plan_ = LinearPlan(())
    _copy_names(theirs, model)
    return model


# ---- ridge regression ------------------------------------------------------------------------------------------------


def _ridge_to_sklearn(model: Any) -> Any:
    if np.any(model.intercept_):
        raise InvalidInputError(
            "scikit-learn's KernelRidge has no intercept, but the intercept of this model is not 0: fit it with "
            "fit_intercept=False, or subtract the mean from the targets."
        )
    params = _common_parameters(model, kernel_ridge.KernelRidge)
    found = _kernel_parameters(model._kernel, _RIDGE_KERNELS)
    named = isinstance(model.kernel, str) and model.kernel in (*SKLEARN_KERNELS, "precomputed")
    if not named and isinstance(found["kernel"], Kernel) and not callable(model.kernel):
        found["kernel"] = _OfPairs(found["kernel"])
    elif isinstance(found["kernel"], Kernel):
        given = not isinstance(model.kernel, Kernel) and callable(model.kernel)
        found["kernel"] = model.kernel if given else _OfPairs(found["kernel"])
    theirs = kernel_ridge.KernelRidge(**(params | found))
    theirs.dual_coef_, theirs.X_fit_ = model.dual_coef_.copy(), model.X_fit_
    _copy_names(model, theirs)
    return theirs


class _OfPairs:
    """Turns a kernel into a function of two samples."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __call__(self, x: Any, z: Any) -> float:
        a, b = (self.kernel.prepare(np.reshape(v, (1, -1))) for v in (x, z))
        return float(self.kernel.block(a, b)[0, 0])


def _ridge_from_sklearn(theirs: Any) -> Any:
    cls = KernelRidge
    model = cls(**_common_parameters(theirs, cls))
    X = theirs.X_fit_
    X = sp.csr_array(X) if sp.issparse(X) else X
    model._domain_fit = model._domain()
    model._kernel = model._resolve(model.kernel).bind(X)
    model._gamma, model._sparse = getattr(model._kernel, "gamma", 0.0), bool(sp.issparse(X))
    model._function_samples, model.shape_fit_ = None, X.shape
    model.X_fit_, model._training = X, TrainingSamples(model._kernel, X)
    model.dual_coef_ = np.array(theirs.dual_coef_, dtype=np.float64)
    model._ravel = model.dual_coef_.ndim == 1
    model.intercept_ = 0.0 if model._ravel else np.zeros(model.dual_coef_.shape[1])
    targets = 1 if model._ravel else model.dual_coef_.shape[1]
    features = model._training.features()
    if model._kernel.domain == "matrix":
        model.rkhs_norm_ = np.inf if model._ravel else np.full(targets, np.inf)
    else:
        from mercer.gram.operator import product

        F = product(model._kernel, features, features, model.dual_coef_)
        squares = np.maximum(0.0, (model.dual_coef_ * F).sum(axis=0))
        model.rkhs_norm_ = float(np.sqrt(squares)) if model._ravel else np.sqrt(squares)
    model.n_iter_ = model.fit_status_ = model.kernel_evaluations_ = 0
    mark_uncertified(model, targets)
    _copy_names(theirs, model)
    return model
