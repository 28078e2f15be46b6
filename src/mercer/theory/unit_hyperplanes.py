"""Hyperplanes with a normal vector of length 1; [SSBD] (15.2), [D6] Algorithm 13.

ŵ = w/|w|,  b̂ = b/|w|:        ⟨ŵ, φ(x)⟩ + b̂ is the signed distance of x from the hyperplane
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitted_models import unwrap
from mercer.exceptions import InvalidInputError
from mercer.kernels import RKHSFunction
from mercer.kernels.features import Vector
from mercer.svm.batch import class_pairs
from mercer.theory.model_geometry import PAIRWISE


@dataclass(frozen=True, eq=False)
class UnitHyperplane:
    """⟨ŵ, φ(x)⟩ + b̂ = 0 with |ŵ| = 1, between one class and another, or between one class and the rest.

    Attributes
    ----------
    positive, negative : the labels on the two sides; negative is None for "the rest".
    normal : ŵ, an array with a weight for each feature if the kernel is linear, else an ``RKHSFunction`` of norm 1.
    bias : b̂.
    norm : |w|, the length before the division. 1/|w| is the margin of a support vector machine.
    """

    positive: Any
    negative: Any
    normal: Vector | RKHSFunction
    bias: float
    norm: float

    def distances(self, X: Any) -> Vector:
        """The signed distances of samples from the hyperplane, positive on the side of ``positive``."""
        if isinstance(self.normal, RKHSFunction):
            return self.normal(X) + self.bias
        return np.asarray((X if sp.issparse(X) else np.asarray(X)) @ self.normal + self.bias)


def unit_hyperplanes(model: Any) -> tuple[UnitHyperplane, ...]:
    """The normalised hyperplanes (ŵ, b̂) = (w, b)/|w| of a fitted classifier.

    Parameters
    ----------
    model : fitted classifier
        A linear model of mercer or scikit-learn with ``coef_`` and ``intercept_``, or a kernel machine of mercer with
        ``function_``; or a pipeline or search that ends in one.

    Returns
    -------
    planes : tuple of UnitHyperplane
        One for two classes; else one for each pair of classes or for each class, in the order of ``intercept_``.

    Examples
    --------
    >>> from mercer import SVC, unit_hyperplanes
    >>> model = SVC(C=float("inf"), kernel="linear").fit([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0]], [0, 0, 1])
    >>> (plane,) = unit_hyperplanes(model)
    >>> plane.normal.round(6), round(plane.bias, 6), round(1 / plane.norm, 6)
    (array([1., 0.]), -2.0, 2.0)
    """
    model = unwrap(model).machine
    check_is_fitted(model)
    if not hasattr(model, "classes_") or not hasattr(model, "intercept_"):
        raise InvalidInputError(
            f"unit_hyperplanes needs a fitted classifier such as SVC, but was given {type(model).__name__}."
        )
    normals = _normals(model)
    # without an intercept scikit-learn gives a single 0.0 for all classes
    bias = np.broadcast_to(np.ravel(model.intercept_), len(normals))
    found = []
    for (positive, negative), w, b in zip(_sides(model, len(normals)), normals, bias, strict=True):
        norm = w.norm() if isinstance(w, RKHSFunction) else float(np.linalg.norm(w))
        if norm == 0:
            raise InvalidInputError("w is 0, so there is no hyperplane: the model predicts the same class everywhere.")
        found.append(UnitHyperplane(positive, negative, w / norm, float(b) / norm, norm))
    return tuple(found)


def _normals(model: Any) -> list[Any]:
    """w of each hyperplane."""
    if hasattr(model, "coef_"):
        coef = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_, dtype=np.float64)
        return list(np.atleast_2d(coef))
    if not hasattr(model, "function_"):
        raise InvalidInputError(
            f"The normal vector of this {type(model).__name__} is not known: it has neither coef_ nor function_. Use "
            "margins(model, X, y), whose geometric margins are the distances; or from_sklearn, if the model is "
            "scikit-learn's."
        )
    functions = model.function_
    return functions if isinstance(functions, list) else [functions]


def _sides(model: Any, n: int) -> list[tuple[Any, Any]]:
    """The labels on the two sides of each hyperplane."""
    classes = model.classes_.tolist()
    if len(classes) == 2:
        return [(classes[1], classes[0])]
    if isinstance(model, PAIRWISE):
        return [(classes[i], classes[j]) for i, j in class_pairs(len(classes))]
    return [(label, None) for label in classes]
