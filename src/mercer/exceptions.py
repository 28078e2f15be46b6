"""Every exception and warning that mercer defines.

    Exception
    └── MercerError                          catches all of the below
        ├── InvalidInputError                (ValueError)  an argument or the data cannot be used
        │   ├── InfeasibleNuError            no β satisfies the constraints that nu asks for
        │   ├── NotSymmetricError            K[i, j] differs from K[j, i]
        │   ├── NotPositiveSemidefiniteError K has a negative eigenvalue
        │   └── ModelFileError               a model file is damaged, or none
        ├── NotSeparableError                (ValueError)  hard margin, but the two hulls meet
        └── MissingExtraError                (ImportError) an optional package is not installed

    UserWarning
    ├── NearDiagonalWarning                  a learnt kernel finds hardly any sample similar to another
    └── NotPositiveSemidefiniteWarning       the fit goes on, its dual value bounds nothing

A fit that ends before its tolerance is reached warns with scikit-learn's ``ConvergenceWarning``.

The exceptions that carry numbers write their own message: pass the numbers, not a sentence. The numbers are kept in
``args``, so that these exceptions survive the way back from another process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
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
    """The root of every exception that mercer defines."""


class InvalidInputError(MercerError, ValueError):
    """An argument or the data cannot be used; the message says what was found, what is allowed and what to do."""


class InfeasibleNuError(InvalidInputError):
    """No β satisfies the constraints that nu asks for.

    ν-SVC fixes the sum of α in each class to ν n / 2 while each αᵢ is at most 1 (times its sample weight), so nu can
    be at most ``2 min(n₊, n₋) / n``.

    >>> print(InfeasibleNuError(0.8, 0.5, n_positive=30, n_negative=90))
    specified nu is infeasible: nu=0.8, but with 30 positive and 90 negative samples it must be at most 0.5. Lower nu,
    or use SVC with class_weight.

    Attributes
    ----------
    nu : the value that was asked for.
    nu_max : the largest feasible value.
    n_positive, n_negative : the size (or total sample weight) of the two classes; None where there are no classes.
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
                "samples of positive weight no nu is feasible. Leave out the class without weight, or use SVC."
            )
        return (
            f"specified nu is infeasible: nu={self.nu:g}, but with {self.n_positive:g} positive and "
            f"{self.n_negative:g} negative samples "
            f"it must be at most {self.nu_max:g}. Lower nu, or use SVC with class_weight."
        )


class NotSymmetricError(InvalidInputError):
    """A kernel matrix differs from its transpose by more than rounding explains.

    >>> print(NotSymmetricError(0, 3, 0.5, 0.25))
    The kernel matrix is not symmetric: K[0, 3] = 0.5, but K[3, 0] = 0.25. A kernel must not depend on the order of its
    arguments: correct it, or use (K + K.T) / 2.

    Attributes
    ----------
    i, j : where the largest difference is.
    k_ij, k_ji : the two values found there.
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
    """A kernel matrix has a negative eigenvalue that rounding does not explain: no feature space has such products.

    >>> print(NotPositiveSemidefiniteError(-0.25, 2.0))
    The kernel matrix is not positive semidefinite: its smallest eigenvalue is -0.25, its largest 2. The optimum need
    not exist or be unique: choose another kernel, or add at least 0.25 to the diagonal.

    Attributes
    ----------
    smallest_eigenvalue, largest_eigenvalue : of the matrix, or of the part of it that was examined.
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
    """A file cannot be read as a model: it was damaged, was made up, or is of another kind."""


class NotSeparableError(MercerError, ValueError):
    """A hard margin was asked for, but no hyperplane separates the two classes.

    The proof comes with it: a point common to the convex hulls of both classes. Its weights are written like β,
    positive on one class, where they sum to 1, and negative on the other, where they sum to -1:

        |Σ βᵢ φ(xᵢ)| = √(β'Kβ) = distance ≈ 0

    Without an intercept the hyperplane must pass through the origin. It is then the origin that is a combination of the
    samples of one class and the mirror images of the others; the absolute weights sum to 2.

    Several classes that are to be separated at once (Crammer and Singer) have a weight for each sample and class:
    positive for the class of the sample, where they sum to 1 over all samples, negative for others, and 0 in sum for
    each sample. The combination of the samples that belongs to each class vanishes.

    Classes that are separable only by digits that float64 does not keep have no model either. Then ``proven`` is False,
    or ``margin`` is that of a hyperplane that separates them, but that a kernel machine cannot represent.

    Attributes
    ----------
    common_point_weights : β, one weight per sample; one per sample and class for several classes at once.
    distance : √(β'Kβ), the distance in feature space between the two combinations.
    intercept : whether the hyperplane could be anywhere.
    proven : whether the distance is 0 to within the rounding of the samples, or of their kernel values.
    margin : of a hyperplane that separates the samples as they are, if one was found; else None.
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
                f"The two classes are separable, but their margin of {self.margin:.1e} is so small against the samples "
                "that no float64 coefficients of a kernel machine represent the hyperplane. Scale the features, for "
                "example with StandardScaler; or use a finite C, or LinearSVC(C=inf), which stores the weights of the "
                "features themselves."
            )
        if not self.proven:
            met = "one point of both convex hulls" if self.intercept else "the origin, one class mirrored"
            if self.common_point_weights.ndim == 2:
                met = "0 for all classes"
            return (
                "Rounding hides whether the classes are separable: no hyperplane in float64 was found that separates "
                f"them, and the samples combine to {met} only to within {self.distance:.1e} (see "
                "common_point_weights). Scale the features, for example with StandardScaler; or use a finite C, or a "
                "richer kernel."
            )
        if self.common_point_weights.ndim == 2:
            n, k = self.common_point_weights.shape
            n_used = int(self.common_point_weights.any(axis=1).sum())
            return (
                f"The {k} classes are not separable by linear functions, one for each: {n_used} of the {n} samples "
                f"have weights whose combinations vanish for all classes (to within {self.distance:.1e}; see "
                "common_point_weights). Use a finite C, or features in which the classes are apart."
            )
        n_used = int((self.common_point_weights != 0).sum())
        if not self.intercept:
            return (
                f"The two classes are not separable through the origin with this kernel: {n_used} of the "
                f"{len(self.common_point_weights)} samples, mirrored in one class, combine to the origin (to within "
                f"{self.distance:.1e}; see common_point_weights). Use fit_intercept=True, a finite C, or a richer "
                "kernel."
            )
        return (
            f"The two classes are not separable with this kernel: {n_used} of the {len(self.common_point_weights)} "
            f"samples combine to one point of both convex hulls (to within {self.distance:.1e}; see "
            "common_point_weights). Use a finite C, or a richer kernel."
        )


class MissingExtraError(MercerError, ImportError):
    """An optional package is not installed.

    >>> print(MissingExtraError("The picture", package="matplotlib", extra="report"))
    The picture needs matplotlib, which is not installed: please run  pip install 'mercer[report]'

    Attributes
    ----------
    purpose : what cannot be done without it, the subject of the sentence.
    package : the package that is missing.
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
    """The kernel is not positive semidefinite: the fit goes on, but its dual value is no bound on the optimum."""


class NearDiagonalWarning(UserWarning):
    """The learnt kernel finds hardly any sample similar to another: the model memorises instead of learning."""
