"""The geometry of a fitted model in feature space: its kernel, the lengths |φ(x)|, its hyperplanes with |w| and b."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import svm
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.linear_model import SGDClassifier
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from mercer.estimators.base import class_ends
from mercer.estimators.kernel_centroid import KernelCentroid
from mercer.estimators.kernel_ridge import resolve_pairwise
from mercer.estimators.linear.linear_svc import LinearSVC
from mercer.estimators.manifold.laplacian_svc import LaplacianSVC
from mercer.estimators.online.pegasos import PegasosClassifier
from mercer.estimators.output_codes.output_code_svc import OutputCodeSVC
from mercer.estimators.prediction import SupportVectors, pair_coefficients
from mercer.estimators.ramp_svc import RampSVC
from mercer.estimators.ranking.ordinal_svc import OrdinalSVC
from mercer.estimators.svc import BaseSVC
from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel, Linear
from mercer.kernels.features import Matrix, Vector, count_samples
from mercer.svm.batch import class_pairs
from mercer.validation import call_kernel, resolve_kernel, thread_count

# classifiers with a hyperplane for each pair of classes
PAIRWISE = (BaseSVC, svm.SVC, svm.NuSVC)
# classifiers whose loss requires y f(x) >= 1, so that f = -1 and f = 1 are the edges of a margin
WITH_MARGIN = (
    *PAIRWISE, LaplacianSVC, LinearSVC, OrdinalSVC, OutputCodeSVC, PegasosClassifier, RampSVC, svm.LinearSVC,
)  # fmt: skip
# the tolerance for models without a parameter ``tol``
TOL = 1e-3


@dataclass(frozen=True, eq=False)
class Hyperplane:
    """⟨w, φ(x)⟩ + b = 0 between one class and another, between one class and the rest, or between several classes.

    Attributes
    ----------
    positive, negative : the labels on the two sides, a tuple of labels for several; negative is None for "the rest".
    norm : |w|.
    bias : b.
    values : ⟨w, φ(x)⟩ + b at the given samples.
    """

    positive: Any
    negative: Any
    norm: float
    bias: float
    values: Vector

    def signs(self, labels: Vector) -> Vector:
        """+1 and −1 on the two sides, 0 for samples of other classes."""
        other = -1.0 if self.negative is None else np.where(is_one_of(labels, self.negative), -1.0, 0.0)
        return np.where(is_one_of(labels, self.positive), 1.0, other)

    @property
    def name(self) -> str:
        """The classes that it separates, as text."""
        return names_of_sides(self.positive, self.negative)


def is_one_of(labels: Vector, side: Any) -> Vector:
    """Which labels are on a side: one label, or a tuple of labels."""
    found: Vector = np.any([labels == label for label in (side if isinstance(side, tuple) else (side,))], axis=0)
    return found


def names_of_sides(positive: Any, negative: Any) -> str:
    """Both sides of a hyperplane as text."""
    texts = [" or ".join(map(repr, side if isinstance(side, tuple) else (side,))) for side in (positive, negative)]
    return f"{texts[0]} against " + ("the rest" if negative is None else texts[1])


def check_classifier(model: Any, X: Any, y: Any, asked: str) -> Vector:
    """The validated labels y; raise if the model is not a fitted classifier, or a label is unknown."""
    check_is_fitted(model)
    if not hasattr(model, "classes_") or not hasattr(model, "decision_function"):
        raise InvalidInputError(f"{asked} needs a fitted classifier such as SVC, but was given {type(model).__name__}.")
    check_consistent_length(X, y)
    labels: Vector = column_or_1d(y, warn=True)
    unknown = np.setdiff1d(labels, model.classes_).tolist()
    if unknown:
        raise InvalidInputError(
            f"y contains the label {unknown[0]!r}, but the model was fitted to the classes {model.classes_.tolist()}."
        )
    return labels


def has_margin(machine: Any) -> bool:
    """Whether y f(x) = 1 is the edge of a margin: for support vector machines, not for perceptrons or class means."""
    if isinstance(machine, SGDClassifier):
        return machine.loss in ("hinge", "squared_hinge")
    return isinstance(machine, WITH_MARGIN)


def tolerance(machine: Any) -> float:
    """The tolerance of the fit in units of y f(x): samples within it are on the edge of the margin."""
    tol = getattr(machine, "tol", None)
    return float(tol) if isinstance(tol, Real) else TOL


def hyperplanes(model: Any, X: Any) -> list[Hyperplane]:
    """The hyperplanes of a fitted classifier with their values at X.

    There is one for each pair of classes, for each class, for each threshold between ordered classes, or for each word
    of a code.
    """
    classes = model.classes_.tolist()
    if isinstance(model, OrdinalSVC):
        return _per_threshold(model, X, classes)
    if isinstance(model, OutputCodeSVC):
        return _per_word(model, X, classes)
    if not isinstance(model, PAIRWISE):
        return _one_per_class(model, X, classes)
    values, bias, norms = _values(model, X), np.ravel(model._intercept_), _norms(model, X)
    found = []
    for k, (i, j) in enumerate(class_pairs(len(classes))):
        if len(classes) == 2:  # with two classes the second is positive, as in decision_function
            found.append(Hyperplane(classes[1], classes[0], norms[0], -float(bias[0]) + 0.0, -values[:, 0]))
        else:
            found.append(Hyperplane(classes[i], classes[j], norms[k], float(bias[k]), values[:, k]))
    return found


def _one_per_class(model: Any, X: Any, classes: list[Any]) -> list[Hyperplane]:
    """Hyperplanes of linear models and of models with ``rkhs_norm_``: one for two classes, else one-vs-rest."""
    if isinstance(model, KernelCentroid) and len(classes) > 2:
        raise InvalidInputError(
            f"KernelCentroid compares the distances to {len(classes)} class means: with more than two classes it has "
            "no hyperplane between one class and the rest. Use two classes."
        )
    if hasattr(model, "rkhs_norm_"):
        norms = np.ravel(model.rkhs_norm_)
    elif hasattr(model, "coef_"):
        coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
        norms = np.linalg.norm(np.atleast_2d(coef), axis=1)
    else:
        raise InvalidInputError(
            f"The margins of {type(model).__name__} are not known: it has neither coef_ nor rkhs_norm_."
        )
    bias = np.broadcast_to(np.ravel(model.intercept_), len(norms))
    values = np.asarray(model.decision_function(X)).reshape(count_samples(X), -1)
    sides = [(classes[1], classes[0])] if len(norms) == 1 else [(label, None) for label in classes]
    return [
        Hyperplane(positive, negative, float(norms[k]), float(bias[k]), values[:, k])
        for k, (positive, negative) in enumerate(sides)
    ]


def _per_threshold(model: OrdinalSVC, X: Any, classes: list[Any]) -> list[Hyperplane]:
    """f = b_j between the classes above each threshold and those below: the same w, another bias."""
    f, norm, found = model.latent(X), float(model.rkhs_norm_[0]), []
    for j, b in enumerate(model.thresholds_):
        above, below = _sides(classes[j + 1 :], classes[: j + 1])
        found.append(Hyperplane(above, below, norm, -float(b), f - b))
    return found


def _per_word(model: OutputCodeSVC, X: Any, classes: list[Any]) -> list[Hyperplane]:
    """The machine of each word of the code, between the classes that have +1 in it and those that have −1."""
    values, found = model.word_values(X), []
    for m, word in enumerate(model.code_.T):
        above, below = ([label for label, sign in zip(classes, word, strict=True) if sign * s > 0] for s in (1, -1))
        one_against_rest = len(above) == 1 < len(below) == len(classes) - 1
        positive, negative = (above[0], None) if one_against_rest else _sides(above, below)
        norm, bias = float(model.rkhs_norm_[m]), float(model.intercept_[m])
        found.append(Hyperplane(positive, negative, norm, bias, values[:, m]))
    return found


def _sides(positive: list[Any], negative: list[Any]) -> tuple[Any, Any]:
    """The labels of two sides: a tuple where there are several."""
    first, second = (tuple(side) if len(side) > 1 else side[0] for side in (positive, negative))
    return first, second


def kernel_of(model: Any) -> Kernel:
    """The kernel with the parameters of the fit; Linear() for linear models."""
    kernel = getattr(model, "_kernel", None)
    if kernel is not None:
        return kernel
    if hasattr(model, "processes_"):  # of a Gaussian process classifier: with several classes, the first one's
        return model.processes_[0].kernel
    if not hasattr(model, "dual_coef_"):
        return Linear()
    if isinstance(model, SklearnKernelRidge):
        return resolve_pairwise(model.kernel, model).bind(model.X_fit_)
    return resolve_kernel(model.kernel, model.degree, model._gamma, model.coef0)


def own_matrix(model: Any, X: Any) -> Matrix:
    """The kernel matrix of X with itself, for a model with a precomputed kernel or a kernel function.

    For a precomputed kernel X must be this matrix.
    """
    if callable(model.kernel) and not isinstance(model.kernel, Kernel):
        return call_kernel(model.kernel, X, X)
    if X.shape[0] != X.shape[1]:
        raise InvalidInputError(
            f"The kernel values of {X.shape[0]} samples with each other are needed, but X has their values with the "
            f"{X.shape[1]} training samples: with a precomputed kernel pass the square matrix of the training samples."
        )
    return np.asarray(X, dtype=np.float64)


def lengths(model: Any, X: Any) -> Vector:
    """|φ(x)| of the samples X."""
    kernel = kernel_of(model)
    diagonal = np.diagonal(own_matrix(model, X)) if kernel.domain == "matrix" else kernel.diagonal(kernel.prepare(X))
    return np.sqrt(np.maximum(np.asarray(diagonal, dtype=np.float64), 0.0))


def _coef(model: Any) -> Matrix:
    coef = model._dual_coef_
    return np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)


def _values(model: Any, X: Any) -> Matrix:
    """Decision values in LIBSVM's convention, one column per pair of classes."""
    if hasattr(model, "_values"):
        values: Matrix = model._values(X)
        return values
    if len(model.classes_) == 2:
        return -np.asarray(model.decision_function(X))[:, None]
    return np.asarray(model._decision_function(X))  # scikit-learn's pairwise values


def _norms(model: Any, X: Any) -> list[float]:
    """|w| of each pair of classes. X is used only for scikit-learn's models with a precomputed kernel matrix."""
    if hasattr(model, "rkhs_norm_"):
        return [float(norm) for norm in model.rkhs_norm_]
    coef, n_train, vectors_ = _coef(model), model.shape_fit_[0], model.support_vectors_
    if kernel_of(model).domain == "matrix":
        if count_samples(X) != n_train:
            raise InvalidInputError(
                f"|w| of scikit-learn's {type(model).__name__} with a precomputed kernel needs the matrix of its "
                f"{n_train} training samples, but {count_samples(X)} samples were given: pass the training samples, or "
                "use mercer's class."
            )
        vectors_ = own_matrix(model, X)[model.support_]
    vectors = SupportVectors(
        kernel_of(model), vectors_, model.support_, class_ends(model._n_support), n_train, np.empty(0)
    )
    F = vectors.decision(vectors_, coef, np.zeros(len(model._intercept_)), thread_count(None))
    if len(model.classes_) == 2:
        return [float(np.sqrt(max(0.0, float(coef[0] @ F[:, 0]))))]
    pairs = pair_coefficients(coef, vectors.ends)
    return [float(np.sqrt(max(0.0, float(beta @ F[:, k])))) for k, beta in enumerate(pairs)]
