"""How far a sample is from the decision boundary: a certified lower bound, and a counterexample."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.estimators.fitted_models import unwrap
from mercer.estimators.prediction import votes
from mercer.exceptions import InvalidInputError
from mercer.explanation.decision_functions import DecisionFunctions, decision_functions
from mercer.explanation.robust.certified_radius import Decision, certified_radii, voted_radii
from mercer.explanation.robust.counterexample_search import beyond_rounding, nearest_other
from mercer.gram.operator import product
from mercer.kernels.features import Matrix, Vector
from mercer.svm.batch import class_pairs
from mercer.validation import validate_samples

SUPPORTED = ("SVC", "NuSVC", "OneClassSVM")


@dataclass(frozen=True, eq=False, repr=False)
class Robustness:
    """The result of ``robustness``: lower ≤ distance of each row to the nearest other label ≤ upper.

    Attributes
    ----------
    lower : ndarray of shape (n_rows,)
        No point nearer than this (in Euclidean distance) has another label: proved, rounding errors included.
    upper : ndarray of shape (n_rows,)
        The distance to ``counterexamples``; inf if none was found.
    counterexamples : ndarray of shape (n_rows, n_features)
        A point with another label for each row; NaN if none was found.
    labels, other_labels : ndarray of shape (n_rows,)
        The label of each row, and of its counterexample.

    Examples
    --------
    >>> from mercer import SVC, robustness
    >>> model = SVC(kernel="linear", C=100).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> robustness(model, [[0.0], [2.5]]).lower.round(3)
    array([2. , 0.5])
    """

    lower: Vector
    upper: Vector
    counterexamples: Matrix
    labels: Any
    other_labels: Any

    def __repr__(self) -> str:
        known = np.isfinite(self.upper) & (self.upper > 0)
        ratio = f"{np.median(self.lower[known] / self.upper[known]):.2f}" if known.any() else "unknown"
        lines = [f"robustness of {len(self.lower)} rows: lower / upper is {ratio} in the median"]
        for row in range(min(5, len(self.lower))):
            other = f", then {self.other_labels[row]}" if np.isfinite(self.upper[row]) else ""
            lines.append(f"  row {row}: {self.labels[row]} up to {self.lower[row]:.4g} … {self.upper[row]:.4g}{other}")
        return "\n".join([*lines, *(["  …"] if len(self.lower) > 5 else [])])


def robustness(model: Any, X: Any) -> Robustness:
    """lower ≤ min {|z − x| : label(z) ≠ label(x)} ≤ upper: the distance to the decision boundary in input space.

    For a linear kernel both are |f|/|w|. For other kernels the lower bound is the largest radius for which one of
    several bounds proves that f keeps its sign in the ball: from the ranges of the kernel values in the ball, from
    lines that bound Gaussian kernels, from the gradient and a bound on the curvature, and from the norm of f.
    The upper bound is the distance to a point with another label, found by bisection and steps along tangent planes.

    With several classes the lower bound is the radius within which so few pairs of classes can change their vote that
    the predicted class still wins.

    Parameters
    ----------
    model : fitted SVC, NuSVC or OneClassSVM, of mercer or scikit-learn, or a pipeline or search that ends in one
        With a kernel ``Linear``, ``Polynomial``, ``Gaussian`` or ``Laplacian``, or sums, products and multiples.
    X : array-like of shape (n_rows, n_features)
        The samples. For a pipeline, its input; distances and counterexamples are those after its other steps.

    Returns
    -------
    found : Robustness

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SVC, robustness
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> model = SVC(C=10).fit(X, y)
    >>> found = robustness(model, X[:20])
    >>> bool((found.lower <= found.upper).all())
    True
    >>> bool((model.predict(found.counterexamples) != model.predict(X[:20])).all())
    True
    """
    machine, inner, _ = unwrap(model, X)
    found = decision_functions(machine, "robustness", SUPPORTED)
    if found.kernel.domain not in ("vectors", "any"):
        raise InvalidInputError(
            f"robustness is a distance between vectors, but {found.kernel!r} compares other objects. See contributions "
            "for the parts of an object that made the decision."
        )
    rows, _ = validate_samples(machine, inner, None, reset=False)
    rows, points = _dense(rows), _dense(found.points)
    with np.errstate(over="ignore", invalid="ignore"):  # of rows at 1e200
        view = _Machine(machine, found, points)
        radii = np.column_stack([certified_radii(f, rows) for f in view.functions])
        own = view.labels(rows)
        lower = radii[:, 0] if len(view.functions) == 1 else view.voted(rows, radii, own)
        pool = np.unique(np.vstack([points, rows]), axis=0)
        others = beyond_rounding(
            rows, nearest_other(rows, view.labels, view.gradients, pool, view.n_labels), view.predicted, pool
        )
        upper = np.where(np.isnan(others[:, 0]), np.inf, np.linalg.norm(np.nan_to_num(others) - rows, axis=1))
        there = view.predicted(np.where(np.isnan(others), rows, others))
    return Robustness(np.minimum(lower, upper), upper, others, view.predicted(rows), there)


def _dense(X: Any) -> Matrix:
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


class _Machine:
    """Labels as numbers, and gradients of the functions that decide between two of them."""

    def __init__(self, machine: Any, found: DecisionFunctions, points: Matrix) -> None:
        self.machine, self.found = machine, found
        self.points, self.coef = found.kernel.prepare(points), np.ascontiguousarray(found.coef.T)
        self.functions = [
            Decision.of(found.kernel, points, beta, float(b))
            for beta, b in zip(found.coef, found.intercept, strict=True)
        ]
        self.classes: Any = getattr(machine, "classes_", None)
        self.pairs = class_pairs(len(self.classes)) if self.classes is not None else []
        self.n_labels = 2 if self.classes is None else len(self.classes)
        self.first_wins = not getattr(machine, "break_ties", False)

    def labels(self, Z: Matrix) -> Vector:
        """The number of the class that is predicted; 0 and 1 for outliers and inliers."""
        if len(self.functions) == 1:
            f = self._values(Z)[:, 0]
            return (f >= 0 if self.classes is None else f > 0).astype(np.intp)
        if not self.first_wins:
            return np.asarray(np.searchsorted(self.classes, self.machine.predict(Z)))
        return np.asarray(votes(self._values(Z), len(self.classes)).argmax(axis=1))

    def _values(self, Z: Matrix) -> Matrix:
        return product(self.found.kernel, self.found.kernel.prepare(Z), self.points, self.coef) + self.found.intercept

    def predicted(self, Z: Matrix) -> Any:
        """The labels as predict gives them, for rows as the machine was trained on."""
        sparse = sp.issparse(getattr(self.machine, "support_vectors_", None))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # of a machine trained on a frame
            return np.asarray(self.machine.predict(sp.csr_array(Z) if sparse else Z))

    def gradients(self, Z: Matrix, own: Vector, other: Vector) -> Matrix:
        """The direction in which the other label gains on the own one."""
        if len(self.functions) == 1:
            return np.where(own == 1, -1.0, 1.0)[:, None] * self.functions[0].gradients(Z)
        out = np.zeros(Z.shape)
        low, high = np.minimum(own, other), np.maximum(own, other)
        for p, (i, j) in enumerate(self.pairs):
            rows = np.flatnonzero((low == i) & (high == j))
            sign = np.where(own[rows] == self.pairs[p][0], -1.0, 1.0)
            out[rows] = sign[:, None] * self.functions[p].gradients(Z[rows])
        return out

    def voted(self, rows: Matrix, radii: Matrix, own: Vector) -> Vector:
        """The radius within which the votes keep their winner."""
        return voted_radii(radii, self._values(rows), self.pairs, own, self.first_wins)
