"""Recognise fitted estimators of mercer and scikit-learn: unwrap pipelines and searches, find the kind and the loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Vector
from mercer.losses import (
    Loss,
    NuHinge,
    NuInsensitive,
    OneClass,
)
from mercer.losses.classification import classification_loss
from mercer.losses.regression import regression_loss

KERNEL = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
LINEAR = ("LinearSVC", "LinearSVR")
RIDGE = ("KernelRidge", "KernelRidgeCV")
# ridge regressions of targets, and of labels
LEAST_SQUARES = (*RIDGE, "LSSVC")
ONLINE = ("PegasosClassifier", "SGDClassifier")
ERM = ("KernelERM", "KernelLogisticRegression", "ExpectileSVR")
# several problems on one matrix
SEVERAL = ("QuantileSVR", "OutputCodeSVC")
# the smallest ball, and machines that order samples
ORDERING = ("SVDD", "OrdinalSVC", "RankSVC", "SurvivalSVM")
# machines that also use samples without labels
MANIFOLD = ("LaplacianSVC",)
KINDS = (*KERNEL, *LINEAR, *LEAST_SQUARES, *ONLINE, *ERM, *SEVERAL, *ORDERING, *MANIFOLD)
# machines that need no targets
NOVELTY = ("OneClassSVM", "SVDD")
# estimators without a certificate: the reason, and an alternative
WITHOUT = {
    "Perceptron": "It minimises nothing: it stops at any w without mistakes. Use score; mercer's Perceptron also has "
    "separated_, mistakes_ and update_bound.",
    "KernelLMS": "It descends towards the least-squares solution but is meant to stop early, so the distance from "
    "that solution does not measure the model. loss_curve_ has the objective after each step; for an optimum use "
    "KernelRidge.",
    "KernelCentroid": "Its class means are given by a formula: nothing is minimised.",
    "RejectOption": "It decides by the probabilities of another classifier: certify its estimator_.",
    "KernelCCA": "Its components are singular vectors: residuals_ says how accurate they are.",
    "KernelKMeans": "Its problem is not convex. lower_bound_ is below the inertia of every partition, and "
    "relative_gap_ says how far the found one can be from the best.",
    "SpectralClustering": "The cut that it approximates is not convex. residuals_ says how accurate its eigenvectors "
    "are.",
    "KernelPCA": "Its components are eigenvectors: residuals_ says how accurate they are, and next_eigenvalue_bound_ "
    "how large those may be that were left out.",
    "RampSVC": "The ramp loss is not convex, so no dual value bounds its optimum. certificate_ is that of the last "
    "convex problem, objective_ the value that was reached.",
    "GaussianProcessRegressor": "The likelihood of its kernel is not concave, so no dual value bounds its optimum. For "
    "a given kernel its mean is that of KernelRidge, which certify supports.",
    "GaussianProcessClassifier": "The likelihood of its kernel is not concave, so no dual value bounds its optimum. "
    "For a given kernel, certificate_ bounds the distance of the mode from its optimum.",
    "SparseGaussianProcessRegressor": "The likelihood of its kernel is not concave, so no dual value bounds its "
    "optimum. For a given kernel, evidence_bounds_ has a lower and an upper bound of the exact log likelihood.",
}


class Kind(NamedTuple):
    """The class name of a machine and its package, "mercer" or "sklearn"."""

    name: str
    package: str


class Unwrapped(NamedTuple):
    """The machine inside pipelines and searches, its input, and the names of the parameters that were searched."""

    machine: Any
    X: Any
    searched: frozenset[str]


def unwrap(model: Any, X: Any = None) -> Unwrapped:
    """Apply the steps of fitted pipelines to X (unless it is None), and take the best estimator of fitted searches."""
    searched: frozenset[str] = frozenset()
    while True:
        if isinstance(model, Pipeline):
            if X is not None and len(model) > 1:
                X = model[:-1].transform(X)
            model = model[-1]
        elif hasattr(model, "best_estimator_"):
            searched |= {name.rpartition("__")[2] for name in getattr(model, "best_params_", {})}
            model = model.best_estimator_
        else:
            return Unwrapped(model, X, searched)


def kind_of(estimator: Any) -> Kind:
    """The kind of the first base class that certify supports; an error if there is none."""
    for base in type(estimator).__mro__:
        package = base.__module__.partition(".")[0]
        if package not in ("mercer", "sklearn"):
            continue
        if base.__name__ in KINDS:
            return Kind(base.__name__, package)
        if base.__name__ in WITHOUT:
            raise InvalidInputError(f"A {base.__name__} has no certificate. {WITHOUT[base.__name__]}")
    raise InvalidInputError(
        f"certify supports {', '.join(KINDS)}, of mercer or scikit-learn, but was given {type(estimator).__name__}. "
        "Pass one of these, or a pipeline or search that ends in one."
    )


def why_not_certified(estimator: Any) -> str:
    """Why a predictor of mercer has no certificate; empty if it has one, or is not known."""
    for base in type(estimator).__mro__:
        if base.__module__.partition(".")[0] == "mercer" and base.__name__ in WITHOUT and hasattr(estimator, "predict"):
            return WITHOUT[base.__name__]
        if base.__name__ in KINDS:
            return ""
    return ""


def check_fitted(estimator: Any, X: Any, y: Any) -> Kind:
    """The kind of a fitted estimator; raise if it is not fitted, or if y is missing or of another length than X."""
    kind = kind_of(estimator)
    check_is_fitted(estimator)
    if kind.name not in NOVELTY:
        if y is None:
            raise InvalidInputError(
                f"The targets of this {kind.name} are needed, but y is None: pass the y that it was fitted to."
            )
        check_consistent_length(X, y)
    return kind


def loss_of(kind: Kind, estimator: Any) -> Loss:
    """The loss of an estimator of mercer or scikit-learn."""
    if kind.name == "NuSVC":
        return NuHinge(float(estimator.nu))
    if kind.name == "NuSVR":
        return NuInsensitive(float(estimator.nu))
    if kind.name == "OneClassSVM":
        return OneClass(float(estimator.nu))
    return (regression_loss if kind.name in ("SVR", "LinearSVR") else classification_loss)(estimator)


def codes_of(estimator: Any, y: Any) -> Vector:
    """The index of each label in ``classes_``."""
    labels, classes = column_or_1d(y, warn=True), estimator.classes_
    unknown = np.setdiff1d(labels, classes).tolist()
    if unknown:
        raise InvalidInputError(
            f"y contains the label {unknown[0]!r}, but the estimator was fitted to the classes {classes.tolist()}: "
            "pass the y that it was fitted to."
        )
    order = np.argsort(classes)  # classes of a LIBSVM model file need not be sorted
    codes: Vector = order[np.searchsorted(classes, labels, sorter=order)]
    return codes


def different_classes(n_fitted: int, n_found: int) -> InvalidInputError:
    """The error for labels and weights that do not leave the classes of fit."""
    return InvalidInputError(
        f"The estimator was fitted to {n_fitted} classes, but y and sample_weight leave {n_found}: pass those that it "
        "was fitted to."
    )
