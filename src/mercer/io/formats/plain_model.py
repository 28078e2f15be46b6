"""Reduce fitted models to what prediction needs: the values f(x) of each problem, and a rule that gives predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.gaussian_process import GaussianProcessRegressor
from mercer.estimators.kernel_centroid import KernelCentroid
from mercer.estimators.kernel_erm import KernelERM
from mercer.estimators.kernel_lms import KernelLMS
from mercer.estimators.kernel_logistic import KernelLogisticRegression
from mercer.estimators.kernel_ridge import BaseRidge
from mercer.estimators.least_squares.expectile_svr import ExpectileSVR
from mercer.estimators.least_squares.one_vs_rest import OneVsRestMixin
from mercer.estimators.linear.linear_machine import LinearMachine
from mercer.estimators.one_class import OneClassSVM
from mercer.estimators.online.online_classifier import OnlineClassifier
from mercer.estimators.prediction import pair_coefficients
from mercer.estimators.svc import BaseSVC
from mercer.estimators.svr import BaseSVR
from mercer.exceptions import InvalidInputError
from mercer.io.formats.formulas import Formula, formula_of
from mercer.io.formats.plain_probabilities import PlainProbabilities, plain_probabilities
from mercer.kernels import Kernel, Linear
from mercer.kernels.features import Matrix, Vector

# exported support vectors have at most this many numbers in all
LARGEST = 50_000_000


@dataclass(frozen=True, eq=False)
class PlainModel:
    """f(x) = b + W x, or f(x) = b + Σ coef_i k(x_i, x), with a row of W or coef for each problem.

    Attributes
    ----------
    rule : how values become predictions.
        "regression": the value is the prediction. "novelty": 1 if f ≥ 0, else -1. "binary": the second class if f > 0,
        or if f = 0 and ``tie`` is 1. "largest": the class with the largest value. "pairs": the value of each pair
        (i, j) of classes votes for i if it is positive, else for j; the first class with the most votes wins.
    n_features : number of features of a sample.
    intercept : b of each problem.
    weights : W, or None.
    kernel, formula, vectors, coef : of a kernel model, or None.
    classes : the labels, or None.
    tie : for "binary", the index of the class if f = 0.
    by_decision : for "pairs", whether the class with the largest decision value wins (``break_ties``).
    shape : for "pairs", the shape of the decision function: "ovr" or "ovo".
    flat : whether the prediction of a regression is a number instead of a row.
    scale, shift : samples are first transformed to scale · x + shift; or None.
    probabilities : how the values of a classifier become probabilities, or None.
    """

    rule: str
    n_features: int
    intercept: Vector
    weights: Matrix | None = None
    kernel: Kernel | None = None
    formula: Formula | None = None
    vectors: Matrix | None = None
    coef: Matrix | None = None
    classes: Vector | None = None
    tie: int = 0
    by_decision: bool = False
    shape: str = "ovr"
    flat: bool = True
    scale: Vector | None = None
    shift: Vector | None = None
    probabilities: PlainProbabilities | None = None

    @property
    def n_problems(self) -> int:
        """The number of values of a sample."""
        return len(self.intercept)


def plain_model(model: Any) -> PlainModel:
    """Reduce a fitted estimator, or a pipeline of scalers and an estimator, to a `PlainModel`."""
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        return _pipeline(model)
    if hasattr(model, "best_estimator_") and (is_classifier(model) or is_regressor(model)):
        best = plain_model(model.best_estimator_)
        return replace(best, probabilities=plain_probabilities(model) or best.probabilities)
    if isinstance(model, LinearMachine):
        return _linear(model)
    if isinstance(model, BaseRidge):
        coef = np.atleast_2d(model.dual_coef_.T)
        b = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(coef)).copy()
        flat = model.dual_coef_.ndim == 1
        return _kernel_model(model._kernel, model._training.samples, coef, b, model, rule="regression", flat=flat)
    if isinstance(model, GaussianProcessRegressor):
        return _process(model)
    if getattr(model, "_function_samples", None) is not None:
        raise InvalidInputError(
            "The kernel is a Python function, so the model cannot be exported. Use a kernel object of mercer."
        )
    if isinstance(model, OnlineClassifier):
        return _online(model)
    if not hasattr(model, "_support"):
        raise InvalidInputError(f"{type(model).__name__} cannot be exported: give a fitted estimator of mercer.")
    coef = model._dual_coef_.toarray() if sp.issparse(model._dual_coef_) else model._dual_coef_
    known = (model._kernel, model.support_vectors_)
    b = np.asarray(model._intercept_, dtype=np.float64)
    if isinstance(model, BaseSVC):
        more: dict[str, Any] = {"classes": model.classes_, "probabilities": plain_probabilities(model)}
        if len(model.classes_) == 2:
            return _kernel_model(*known, -coef, -b + 0.0, model, rule="binary", tie=1, **more)
        pairs = pair_coefficients(coef, model._support.ends)
        by_decision, shape = bool(model.break_ties), model.decision_function_shape
        return _kernel_model(*known, pairs, b, model, rule="pairs", by_decision=by_decision, shape=shape, **more)
    if isinstance(model, OneClassSVM):
        return _kernel_model(*known, coef, b, model, rule="novelty")
    if isinstance(model, KernelCentroid):
        if len(model.classes_) == 2:
            return _kernel_model(*known, coef, b, model, rule="binary", classes=model.classes_, tie=1)
        return _kernel_model(*known, coef, b, model, rule="largest", classes=model.classes_)
    if isinstance(model, KernelLogisticRegression):
        rule = "binary" if len(model.classes_) == 2 else "largest"
        chances = plain_probabilities(model)
        return _kernel_model(*known, coef, b, model, rule=rule, classes=model.classes_, probabilities=chances)
    if isinstance(model, OneVsRestMixin):
        rule = "binary" if len(model.classes_) == 2 else "largest"
        return _kernel_model(*known, coef, b, model, rule=rule, classes=model.classes_)
    if isinstance(model, KernelERM) and is_classifier(model):
        return _kernel_model(*known, coef, b, model, rule="binary", classes=model.classes_)
    if isinstance(model, BaseSVR | KernelLMS | KernelERM | ExpectileSVR):
        return _kernel_model(*known, coef, b, model, rule="regression")
    raise InvalidInputError(f"{type(model).__name__} cannot be exported. Save it with mercer.save.")


def _kernel_model(kernel: Kernel, vectors: Any, coef: Matrix, b: Vector, model: Any, **rule: Any) -> PlainModel:
    if kernel.domain == "matrix":
        raise InvalidInputError(
            "A model with a precomputed kernel cannot be exported: it needs the kernel values of each new sample. Fit "
            "it with a kernel object."
        )
    formula = formula_of(kernel, int(model.n_features_in_)) if hasattr(model, "n_features_in_") else None
    if kernel.domain != "vectors" or formula is None:
        raise InvalidInputError(
            f"{kernel!r} is not a kernel on vectors, so the model cannot be exported. Save it with mercer.save."
        )
    d = int(model.n_features_in_)
    if np.prod(vectors.shape, dtype=np.float64) > LARGEST:
        raise InvalidInputError(
            f"The model has {vectors.shape[0]} support vectors with {d} features, but at most {LARGEST:,} numbers can "
            "be exported. Reduce the support vectors with mercer.compress, or use mercer.save."
        )
    if isinstance(kernel, Linear):
        return PlainModel(n_features=d, intercept=b, weights=np.asarray(coef @ vectors, dtype=np.float64), **rule)
    dense = vectors.toarray() if sp.issparse(vectors) else np.asarray(vectors)
    used = np.flatnonzero(np.any(coef != 0, axis=0))
    dense = np.asarray(dense, dtype=np.float64)[used]
    return PlainModel(
        n_features=d, intercept=b, kernel=kernel, formula=formula, vectors=dense,
        coef=np.ascontiguousarray(coef[:, used]), **rule,
    )  # fmt: skip


def _linear(model: LinearMachine) -> PlainModel:
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    W = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    b = np.broadcast_to(np.ravel(np.asarray(model.intercept_, dtype=np.float64)), len(W)).copy()
    classes = getattr(model, "classes_", None)
    rule = "regression" if classes is None else "binary" if len(classes) == 2 else "largest"
    return PlainModel(rule, W.shape[1], b, weights=W, classes=classes)


def _online(model: OnlineClassifier) -> PlainModel:
    rule: dict[str, Any] = {"rule": "binary" if len(model.classes_) == 2 else "largest", "classes": model.classes_}
    b = np.asarray(model.intercept_, dtype=np.float64)
    if model._is_linear:
        return PlainModel(n_features=int(model.n_features_in_), intercept=b, weights=model._w, **rule)
    return _kernel_model(model._kernel, model.support_vectors_, model._dual_coef_, b, model, **rule)


def only_scales(model: Any) -> bool:
    """Whether `plain_model` accepts a model: its steps before the estimator, if any, are scalers."""
    known = (StandardScaler, MinMaxScaler, MaxAbsScaler, type(None))
    steps = [step for _, step in model.steps[:-1]] if isinstance(model, Pipeline) else []
    return all(isinstance(step, known) or step == "passthrough" for step in steps)


def _pipeline(model: Pipeline) -> PlainModel:
    """Combine all scalers into one multiplication and one shift."""
    last = plain_model(model.steps[-1][1])
    d = int(model.n_features_in_)
    scale, shift = np.ones(d), np.zeros(d)
    for _, step in model.steps[:-1]:
        if step is None or (isinstance(step, str) and step == "passthrough"):
            continue
        if isinstance(step, StandardScaler):
            factor = 1.0 / step.scale_ if step.scale_ is not None else np.ones(d)
            move = -step.mean_ * factor if step.mean_ is not None else np.zeros(d)
        elif isinstance(step, MinMaxScaler) and not step.clip:
            factor, move = step.scale_, step.min_
        elif isinstance(step, MaxAbsScaler) and not getattr(step, "clip", False):
            factor, move = 1.0 / step.scale_, np.zeros(d)
        else:
            raise InvalidInputError(
                f"{type(step).__name__} cannot be exported. Steps that can: StandardScaler, MinMaxScaler and "
                "MaxAbsScaler. Export the last step alone, model[-1], and transform samples yourself."
            )
        scale, shift = scale * factor, shift * factor + move
    return replace(last, scale=scale, shift=shift)


def _process(model: GaussianProcessRegressor) -> PlainModel:
    """Reduce a Gaussian process to its mean."""
    alpha = np.atleast_2d(model.alpha_.T) if model.alpha_.ndim == 1 else model.alpha_.T
    scale, shift = (np.broadcast_to(v, len(alpha)) for v in (model._y_train_std, model._y_train_mean))
    coef, flat = scale[:, None] * alpha, len(alpha) == 1
    return _kernel_model(model._kernel, model.X_train_, coef, shift.copy(), model, rule="regression", flat=flat)


def label_array(classes: Vector | None) -> Vector:
    """Return the labels as an array of strings or numbers."""
    assert classes is not None
    if classes.dtype == object and all(isinstance(c, str) for c in classes):
        return classes.astype(str)
    if classes.dtype.kind == "i":
        return classes.astype(np.int64)
    if classes.dtype.kind in "Ubuf":
        return classes
    raise InvalidInputError(f"Labels of type {classes.dtype} cannot be exported: use strings or numbers.")
