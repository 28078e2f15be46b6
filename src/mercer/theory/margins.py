"""How far samples are from the separating hyperplane; [SSBD] Claim 15.1, Definition 15.3, [CS229] 6.

    functional margin    y (⟨w, φ(x)⟩ + b)            as the machine scales it: 1 on the edge of its margin
    geometric margin     y (⟨w, φ(x)⟩ + b) / |w|      the distance to the hyperplane, negative on the wrong side

The smallest geometric margin is γ, the largest |φ(x)| is ρ: the sample is separated with a (γ, ρ)-margin if γ > 0.
Scaling all samples scales both; what counts is ρ/γ. The strip of [M5] between the classes is 2γ wide.

A sample is inside the strip if it is on its own side, 0 < y (⟨w, φ(x)⟩ + b), and nearer than the edge by more than the
fit's tolerance: y (⟨w, φ(x)⟩ + b) < 1 - tol. A fit leaves the samples on the edge within tol of it, on either side.
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
    tolerance,
)

Index = NDArray[np.intp]

# how many of the samples that are closest are printed
SHOWN = 5


@dataclass(frozen=True, eq=False)
class Margins:
    """The margins of the samples of two classes, or of one class and the rest.

    Attributes
    ----------
    positive, negative : the labels of the two sides; negative is None for the rest.
    rows : the samples, by their numbers in X.
    functional : y (⟨w, φ(x)⟩ + b) of each.
    geometric : the same over |w|. Where w = 0 there is no hyperplane: ±inf, or 0 on neither side.
    gamma : the smallest geometric margin; negative where a sample is on the wrong side.
    rho : the largest |φ(x)|.
    norm : |w|.
    bias : b.
    edge : the functional margin below which a sample is inside the strip: 1 less the fit's tolerance. 0 for a model
        without a strip, such as the perceptron.
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
        """Which classes are separated."""
        return f"{self.positive!r} against " + ("the rest" if self.negative is None else repr(self.negative))

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
        """(ρ/γ)², which bounds the error and the updates of the Perceptron; inf where nothing is separated."""
        return (self.rho / self.gamma) ** 2 if self.gamma > 0 else np.inf

    @property
    def n_wrong(self) -> int:
        """Samples that are not strictly on their own side."""
        return int(np.count_nonzero(self.functional <= 0))

    @property
    def n_inside(self) -> int:
        """Samples on their own side, but nearer than the edge of the strip, 1/|w|, by more than the fit's tolerance."""
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
    """What ``margins`` found.

    Attributes
    ----------
    problems : the margins of each hyperplane: one, one per pair of classes, or one per class.
    functional, geometric : of each sample, the smallest over the hyperplanes that it takes part in.
    """

    problems: tuple[Margins, ...]
    functional: Vector
    geometric: Vector

    @property
    def gamma(self) -> float:
        """The smallest geometric margin of all."""
        return min(problem.gamma for problem in self.problems)

    @property
    def rho(self) -> float:
        """The largest |φ(x)|."""
        return max(problem.rho for problem in self.problems)

    @property
    def separates(self) -> bool:
        """Whether every hyperplane has every one of its samples strictly on its side."""
        return all(problem.separates for problem in self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"Margins of {self.problems[0]}"
        separated = sum(problem.separates for problem in self.problems)
        head = f"Margins of {len(self.problems)} problems, {separated} of them separated; (γ, ρ) = ({self.gamma:.4g}, "
        return "\n".join([f"{head}{self.rho:.4g})", *map(str, self.problems)])


def margins(model: Any, X: Any, y: Any, *, tol: float | None = None) -> MarginReport:
    """Functional and geometric margins of samples, and the (γ, ρ) of [SSBD] Definition 15.3.

    Parameters
    ----------
    model : fitted classifier
        SVC or NuSVC, of mercer or scikit-learn, or a linear model with ``coef_``, ``intercept_`` and
        ``decision_function``; or a pipeline or search that ends in one.
    X : the samples, the training samples or others.
    y : their labels.
    tol : float or None, default=None
        A sample counts as inside the strip (``n_inside``) if its functional margin is below 1 - tol; within tol of 1 it
        is on the edge. None takes the model's own ``tol``, or 1e-3 if it has none.

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
            f"{kernel!r} is not positive semidefinite: it has no feature space in which samples have distances. The "
            "values y · decision_function(X) exist all the same."
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
    """None if no sample belongs to either side."""
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
