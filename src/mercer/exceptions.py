"""All exceptions and warnings of mercer.

    Exception
    └── MercerError                          the base class of all exceptions
        ├── InvalidInputError                (ValueError)  an argument or the data cannot be used
        │   ├── InfeasibleNuError            no β satisfies the constraints for this nu
        │   ├── NotSymmetricError            K[i, j] differs from K[j, i]
        │   ├── NotPositiveSemidefiniteError K has a negative eigenvalue
        │   └── ModelFileError               a file is damaged, or is not a model file
        ├── ClusterError                     (RuntimeError) workers of a cluster were lost, or none is left
        ├── NotSeparableError                (ValueError)  hard margin, but the convex hulls intersect
        └── MissingExtraError                (ImportError) an optional package is not installed

    UserWarning
    ├── NearDiagonalWarning                  the matrix of a learnt kernel is nearly diagonal
    └── NotPositiveSemidefiniteWarning       the fit continues, but its dual value is not a lower bound

A fit that ends before it reaches its tolerance warns with scikit-learn's ``ConvergenceWarning``.

Exceptions with attributes are created from numbers and build their own message. ``args`` holds the numbers, so that
these exceptions can be pickled and raised across processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ClusterError",
    "InfeasibleNuError",
    "InvalidInputError",
    "MercerError",
    "MissingExtraError",
    "ModelFileError",
    "NearDiagonalWarning",
    "NotPositiveSemidefiniteError",
    "NotPositiveSemidefiniteWarning",
    "NotSeparableError",
    "NotSymmetricError",
]


class MercerError(Exception):
    """The base class of all exceptions of mercer."""


class ClusterError(MercerError, RuntimeError):
    """A fit on a cluster cannot go on: its workers were lost. The message tells what happened and what to do."""


class InvalidInputError(MercerError, ValueError):
    """An argument or the data cannot be used. The message tells what was found, what is allowed and what to do.

    Examples
    --------
    >>> from mercer import Gaussian, InvalidInputError
    >>> try:
    ...     Gaussian(gamma=-1.0)
    ... except InvalidInputError as error:
    ...     print(error)
    gamma=-1.0 must be a finite number, at least 0, or one such number per feature.
    """


class InfeasibleNuError(InvalidInputError):
    """No β satisfies the constraints for this nu.

    ν-SVC fixes the sum of α in each class to ν n / 2, while each αᵢ is at most 1 (times its sample weight). So nu is at
    most ``2 min(n₊, n₋) / n``.

    >>> print(InfeasibleNuError(0.8, 0.5, n_positive=30, n_negative=90))
    specified nu is infeasible: nu=0.8, but with 30 positive and 90 negative samples it must be at most 0.5. Lower nu,
    or use SVC with class_weight.

    Attributes
    ----------
    nu : the requested value.
    nu_max : the largest feasible value.
    n_positive, n_negative : the size (or total sample weight) of the two classes; None without classes.
    """

    def __init__(
        self, nu: float, nu_max: float, n_positive: float | None = None, n_negative: float | None = None
    ) -> None:
        super().__init__(nu, nu_max, n_positive, n_negative)
        self.nu = nu
        self.nu_max = nu_max
        self.n_positive = n_positive
        self.n_negative = n_negative

    def __str__(self) -> str:
        if self.n_positive is None or self.n_negative is None:
            return (
                f"specified nu is infeasible: nu={self.nu:g}, but for these samples it must be at most "
                f"{self.nu_max:g}. Lower nu."
            )
        if self.nu_max == 0.0:
            return (
                f"specified nu is infeasible: with {self.n_positive:g} positive and {self.n_negative:g} negative "
                "samples of positive weight no nu is feasible. Remove the class without weight, or use SVC."
            )
        return (
            f"specified nu is infeasible: nu={self.nu:g}, but with {self.n_positive:g} positive and "
            f"{self.n_negative:g} negative samples "
            f"it must be at most {self.nu_max:g}. Lower nu, or use SVC with class_weight."
        )


class NotSymmetricError(InvalidInputError):
    """A kernel matrix differs from its transpose by more than rounding errors.

    >>> print(NotSymmetricError(0, 3, 0.5, 0.25))
    The kernel matrix is not symmetric: K[0, 3] = 0.5, but K[3, 0] = 0.25. A kernel must not depend on the order of its
    arguments: correct it, or use (K + K.T) / 2.

    Attributes
    ----------
    i, j : the indices of the largest difference.
    k_ij, k_ji : the two values, K[i, j] and K[j, i].
    """

    def __init__(self, i: int, j: int, k_ij: float, k_ji: float) -> None:
        super().__init__(i, j, k_ij, k_ji)
        self.i = i
        self.j = j
        self.k_ij = k_ij
        self.k_ji = k_ji

    def __str__(self) -> str:
        i, j = self.i, self.j
        return (
            f"The kernel matrix is not symmetric: K[{i}, {j}] = {self.k_ij:.9g}, but K[{j}, {i}] = {self.k_ji:.9g}. "
            "A kernel must not depend on the order of its arguments: correct it, or use (K + K.T) / 2."
        )


class NotPositiveSemidefiniteError(InvalidInputError):
    """A kernel matrix has a negative eigenvalue beyond rounding errors, so it is not a matrix of inner products.

    >>> print(NotPositiveSemidefiniteError(-0.25, 2.0))
    The kernel matrix is not positive semidefinite: its smallest eigenvalue is -0.25, its largest 2. The optimum need
    not exist or be unique: choose another kernel, or add at least 0.25 to the diagonal.

    Attributes
    ----------
    smallest_eigenvalue, largest_eigenvalue : of the matrix, or of the examined part of it.
    """

    def __init__(self, smallest_eigenvalue: float, largest_eigenvalue: float) -> None:
        super().__init__(smallest_eigenvalue, largest_eigenvalue)
        self.smallest_eigenvalue = smallest_eigenvalue
        self.largest_eigenvalue = largest_eigenvalue

    def __str__(self) -> str:
        return (
            "The kernel matrix is not positive semidefinite: "
            f"its smallest eigenvalue is {self.smallest_eigenvalue:.4g}, its largest {self.largest_eigenvalue:.4g}. "
            "The optimum need not exist or be unique: choose another kernel, "
            f"or add at least {-self.smallest_eigenvalue:.4g} to the diagonal."
        )


class ModelFileError(InvalidInputError):
    """A file cannot be read as a model: it is damaged, forged, or not a model file."""


class NotSeparableError(MercerError, ValueError):
    """A hard margin was requested, but no hyperplane separates the two classes.

    The exception contains a proof: a point in the convex hulls of both classes. Its weights β are positive in one
    class, where they sum to 1, and negative in the other, where they sum to -1:

        |Σ βᵢ φ(xᵢ)| = √(β'Kβ) = distance ≈ 0

    Without an intercept the hyperplane must pass through the origin. The proof is then a combination of the samples of
    one class and the negated samples of the other that equals the origin; the absolute weights sum to 2.

    If several classes are separated at once (Crammer and Singer), there is a weight for each sample and class: positive
    for the class of the sample, where they sum to 1 over all samples, negative for other classes, and with sum 0 for
    each sample. For each class, the weighted sum of the samples is 0.

    Classes that are separable, but not in float64 arithmetic, have no model either. Then ``proven`` is False, or
    ``margin`` is the margin of a hyperplane that separates them, but that a kernel machine cannot represent.

    Attributes
    ----------
    common_point_weights : β, one weight per sample; one per sample and class for several classes at once.
    distance : √(β'Kβ), the distance in feature space between the two combinations.
    intercept : whether the hyperplane may have an intercept.
    proven : whether the distance is 0 up to rounding errors of the samples or of their kernel values.
    margin : the margin of a separating hyperplane, if one was found; else None.

    Examples
    --------
    >>> from mercer import SVC, NotSeparableError
    >>> try:
    ...     SVC(kernel="linear", C=float("inf")).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    ... except NotSeparableError as error:
    ...     error.common_point_weights.round(2)
    array([ 0.5, -1. ,  0.5])
    """

    def __init__(
        self,
        common_point_weights: NDArray[np.float64],
        distance: float,
        intercept: bool = True,
        proven: bool = True,
        margin: float | None = None,
    ) -> None:
        super().__init__(common_point_weights, distance, intercept, proven, margin)
        self.common_point_weights = common_point_weights
        self.distance = distance
        self.intercept = intercept
        self.proven = proven
        self.margin = margin

    def __str__(self) -> str:
        if self.margin is not None:
            return (
                f"The two classes are separable, but their margin of {self.margin:.1e} is too small relative to the "
                "samples: no float64 coefficients of a kernel machine represent the hyperplane. Scale the features, "
                "for example with StandardScaler; or use a finite C, or LinearSVC(C=inf), which stores the weights of "
                "the features instead."
            )
        if not self.proven:
            met = "a common point of both convex hulls" if self.intercept else "the origin, with one class negated"
            if self.common_point_weights.ndim == 2:
                met = "0 for all classes"
            return (
                "Rounding errors hide whether the classes are separable: no separating hyperplane was found in "
                f"float64, and the samples combine to {met} only to within {self.distance:.1e} (see "
                "common_point_weights). Scale the features, for example with StandardScaler; or use a finite C, or a "
                "richer kernel."
            )
        if self.common_point_weights.ndim == 2:
            n, k = self.common_point_weights.shape
            n_used = int(self.common_point_weights.any(axis=1).sum())
            return (
                f"The {k} classes are not separable by one linear function per class: weighted sums of {n_used} of the "
                f"{n} samples are 0 for all classes (to within {self.distance:.1e}; see common_point_weights). Use a "
                "finite C, or other features."
            )
        n_used = int((self.common_point_weights != 0).sum())
        if not self.intercept:
            return (
                f"The two classes are not separable through the origin with this kernel: {n_used} of the "
                f"{len(self.common_point_weights)} samples, with one class negated, combine to the origin (to within "
                f"{self.distance:.1e}; see common_point_weights). Use fit_intercept=True, a finite C, or a richer "
                "kernel."
            )
        return (
            f"The two classes are not separable with this kernel: {n_used} of the {len(self.common_point_weights)} "
            f"samples combine to a common point of both convex hulls (to within {self.distance:.1e}; see "
            "common_point_weights). Use a finite C, or a richer kernel."
        )


class MissingExtraError(MercerError, ImportError):
    """An optional package is not installed.

    >>> print(MissingExtraError("The picture", package="matplotlib", extra="report"))
    The picture needs matplotlib, which is not installed: please run  pip install 'mercer[report]'

    Attributes
    ----------
    purpose : what needs the package; the subject of the sentence.
    package : the missing package.
    extra : the extra of mercer that installs it.
    """

    def __init__(self, purpose: str, package: str, extra: str) -> None:
        super().__init__(purpose, package, extra)
        self.purpose = purpose
        self.package = package
        self.extra = extra

    def __str__(self) -> str:
        return (
            f"{self.purpose} needs {self.package}, which is not installed: "
            f"please run  pip install 'mercer[{self.extra}]'"
        )


class NotPositiveSemidefiniteWarning(UserWarning):
    """The kernel is not positive semidefinite: the fit continues, but its dual value is not a bound on the optimum."""


class NearDiagonalWarning(UserWarning):
    """The matrix of the learnt kernel is nearly diagonal: the model memorises the samples instead of generalising."""
