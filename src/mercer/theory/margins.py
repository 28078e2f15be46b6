"""Margins: the distances of samples from the separating hyperplane; [SSBD] Claim 15.1, Definition 15.3, [CS229] 6.

    functional margin    y (⟨w, φ(x)⟩ + b)            as the machine scales it: 1 on the edge of its margin
    geometric margin     y (⟨w, φ(x)⟩ + b) / |w|      the distance to the hyperplane, negative on the wrong side

γ is the smallest geometric margin and ρ the largest |φ(x)|. The samples are separated with a (γ, ρ)-margin if γ > 0.
Scaling all samples scales both, so only ρ/γ matters. The strip of [M5] between the classes is 2γ wide.

A sample is inside the strip if 0 < y (⟨w, φ(x)⟩ + b) < 1 - tol: on its own side, and closer than the edge by more than
the tolerance of the fit. Samples on the edge are within tol of it, on either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitted_models import unwrap
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Vector
from mercer.theory.model_geometry import (
    Hyperplane,
    check_classifier,
    has_margin,
    hyperplanes,
    kernel_of,
    lengths,
    names_of_sides,
    tolerance,
)

Index = NDArray[np.intp]

# number of closest samples to print
SHOWN = 5


@dataclass(frozen=True, eq=False)
class Margins:
    """The margins of the samples for one hyperplane: between two classes, one class and the rest, or several classes.

    Attributes
    ----------
    positive, negative : the labels on the two sides, a tuple of labels for several; negative is None for "the rest".
    rows : indices of the samples in X.
    functional : y (⟨w, φ(x)⟩ + b) of each sample.
    geometric : functional / |w|. If w = 0: ±inf by the sign of the functional margin, or 0.
    gamma : the smallest geometric margin; negative if a sample is on the wrong side.
    rho : the largest |φ(x)|.
    norm : |w|.
    bias : b.
    edge : the functional margin below which a sample is inside the strip, 1 − tol; 0 for models without a strip, such
        as the perceptron.
    """

    positive: Any
    negative: Any
    rows: Index
    functional: Vector
    geometric: Vector
    gamma: float
    rho: float
    norm: float
    bias: float
    edge: float

    @property
    def name(self) -> str:
        """The classes on the two sides, as text."""
        return names_of_sides(self.positive, self.negative)

    @property
    def homogeneous(self) -> bool:
        """Whether the hyperplane passes through the origin."""
        return self.bias == 0

    @property
    def separates(self) -> bool:
        """Whether every sample is strictly on its own side."""
        return self.gamma > 0

    @property
    def ratio(self) -> float:
        """(ρ/γ)², which bounds the error and the updates of the perceptron; inf if the samples are not separated."""
        return (self.rho / self.gamma) ** 2 if self.gamma > 0 else np.inf

    @property
    def n_wrong(self) -> int:
        """The number of samples that are not strictly on their own side."""
        return int(np.count_nonzero(self.functional <= 0))

    @property
    def n_inside(self) -> int:
        """The number of samples on their own side, but inside the strip by more than the tolerance."""
        return int(np.count_nonzero((self.functional > 0) & (self.functional < self.edge)))

    def __str__(self) -> str:
        verdict = "separated" if self.separates else f"NOT separated, {self.n_wrong} on the wrong side"
        where = "through the origin" if self.homogeneous else f"bias {self.bias:.4g}"
        order = self.rows[np.argsort(self.geometric, kind="stable")[:SHOWN]]
        quantiles = np.quantile(self.geometric, [0.0, 0.25, 0.5, 0.75, 1.0]) if self.norm > 0 else [np.nan] * 5
        lines = [
            f"{self.name}, {len(self.rows)} samples: {verdict}",
            f"  margin γ {self.gamma:.4g}, radius ρ {self.rho:.4g}, (ρ/γ)² {self.ratio:.4g}, "
            f"|w| {self.norm:.4g}, {where}",
            "  distances: smallest {:.4g}, quarter {:.4g}, median {:.4g}, three quarters {:.4g}, largest {:.4g}".format(
                *quantiles
            ),
            f"  {f'inside the strip: {self.n_inside}; ' if self.edge > 0 else ''}closest samples: "
            f"{', '.join(map(str, order))}",
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class MarginReport:
    """The result of ``margins``.

    Attributes
    ----------
    problems : the margins for each hyperplane: one, one per pair of classes, per class, per threshold between ordered
        classes, or per word of a code.
    functional, geometric : the smallest margin of each sample over its hyperplanes.
    """

    problems: tuple[Margins, ...]
    functional: Vector
    geometric: Vector

    @property
    def gamma(self) -> float:
        """The smallest geometric margin over all hyperplanes."""
        return min(problem.gamma for problem in self.problems)

    @property
    def rho(self) -> float:
        """The largest |φ(x)|."""
        return max(problem.rho for problem in self.problems)

    @property
    def separates(self) -> bool:
        """Whether every sample is strictly on its own side of every hyperplane."""
        return all(problem.separates for problem in self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"Margins of {self.problems[0]}"
        separated = sum(problem.separates for problem in self.problems)
        head = f"Margins of {len(self.problems)} problems, {separated} of them separated; (γ, ρ) = ({self.gamma:.4g}, "
        return "\n".join([f"{head}{self.rho:.4g})", *map(str, self.problems)])


def margins(model: Any, X: Any, y: Any, *, tol: float | None = None) -> MarginReport:
    """Functional and geometric margins of samples, and (γ, ρ) of [SSBD] Definition 15.3.

    Parameters
    ----------
    model : fitted classifier
        SVC or NuSVC of mercer or scikit-learn, another classifier with hyperplanes such as OrdinalSVC (one per
        threshold) and OutputCodeSVC (one per word), or a linear model with ``coef_``, ``intercept_`` and
        ``decision_function``; or a pipeline or search that ends in one.
    X : training samples or others.
    y : their labels.
    tol : float or None, default=None
        A sample is inside the strip (``n_inside``) if its functional margin is below 1 - tol. None is the model's own
        ``tol``, or 1e-3 if it has none.

    Returns
    -------
    report : MarginReport
        Prints as text; its numbers are attributes.

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.theory import margins
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [2.0, 0.0]], [0, 0, 1]
    >>> print(margins(SVC(C=float("inf"), kernel="linear").fit(X, y), X, y))
    Margins of 1 against 0, 3 samples: separated
      margin γ 1, radius ρ 2, (ρ/γ)² 4, |w| 1, bias -1
      distances: smallest 1, quarter 1, median 1, three quarters 1, largest 1
      inside the strip: 0; closest samples: 0, 1, 2
    """
    check_is_fitted(model)
    model, X, _ = unwrap(model, X)
    labels = check_classifier(model, X, y, "margins")
    kernel = kernel_of(model)
    if not kernel.positive_semidefinite:
        raise InvalidInputError(
            f"{kernel!r} is not positive semidefinite, so there is no feature space with distances. Use the values "
            "y · decision_function(X) instead."
        )
    planes = hyperplanes(model, X)
    length = lengths(model, X)
    edge = 1.0 - (tolerance(model) if tol is None else float(tol)) if has_margin(model) else 0.0
    problems = [found for plane in planes if (found := _margins(plane, labels, length, edge)) is not None]
    functional, geometric = np.full(len(labels), np.inf), np.full(len(labels), np.inf)
    for problem in problems:
        functional[problem.rows] = np.minimum(functional[problem.rows], problem.functional)
        geometric[problem.rows] = np.minimum(geometric[problem.rows], problem.geometric)
    return MarginReport(tuple(problems), functional, geometric)


def _margins(plane: Hyperplane, labels: Vector, length: Vector, edge: float) -> Margins | None:
    """The margins for one hyperplane; None if no sample belongs to either side."""
    sign = plane.signs(labels)
    rows = np.flatnonzero(sign)
    if len(rows) == 0:
        return None
    functional = sign[rows] * plane.values[rows]
    if plane.norm > 0:
        geometric = functional / plane.norm
    else:
        geometric = np.where(functional == 0, 0.0, np.copysign(np.inf, functional))
    return Margins(
        plane.positive, plane.negative, rows, functional, geometric, float(geometric.min()),
        float(length[rows].max()), plane.norm, plane.bias, edge,
    )  # fmt: skip
