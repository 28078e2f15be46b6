"""Make an indefinite matrix positive semidefinite by changing its eigenvalues.

Chen, Garcia, Gupta, Rahimi & Cazzanti, *Similarity-based classification*, JMLR 10 (2009).

    K = U diag(λ) U'        clip: max(λ, 0)        flip: |λ|        shift: λ - min λ

Similarities given by people or by alignment programs are often indefinite. ``clip`` gives the nearest positive
semidefinite matrix, ``flip`` keeps the information in negative eigenvalues, ``shift`` changes only the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, count_samples
from mercer.kernels.mercer_check import as_kernel, as_square

WAYS = ("clip", "flip", "shift")


@dataclass(frozen=True, eq=False)
class MercerRepair:
    """The result of ``repair_mercer``: the repaired matrix, and how much was changed.

    Attributes
    ----------
    matrix : the positive semidefinite matrix.
    how : "clip", "flip" or "shift".
    n_negative : the number of eigenvalues that were negative by more than rounding.
    smallest_eigenvalue, largest_eigenvalue : of the given matrix.
    largest_change : the largest |change| of an entry.
    relative_change : |change| / |matrix given|, both Frobenius norms.

    Examples
    --------
    >>> from mercer import repair_mercer
    >>> repair_mercer([[1.0, 2.0], [2.0, 1.0]]).matrix
    array([[1.5, 1.5],
           [1.5, 1.5]])
    """

    matrix: Matrix
    how: str
    n_negative: int
    smallest_eigenvalue: float
    largest_eigenvalue: float
    largest_change: float
    relative_change: float
    _factor: Matrix | None = field(repr=False, default=None)

    def rows(self, values: Any) -> Matrix:
        """Apply the same change to similarities of new samples (rows) to the samples of the matrix (columns).

        Rows of the given matrix become rows of ``matrix``; with "shift", except for the diagonal.
        """
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.matrix):
            raise InvalidInputError(
                f"This repair is for rows of {len(self.matrix)} similarities, one to each sample of the matrix, but "
                f"was given an array of shape {values.shape}."
            )
        return values.copy() if self._factor is None else values @ self._factor

    def __str__(self) -> str:
        n = len(self.matrix)
        if self.n_negative == 0:
            return f"Nothing to repair: no eigenvalue of {n} is negative (smallest {self.smallest_eigenvalue:.3g})."
        done = {
            "clip": "were made 0",
            "flip": "became positive",
            "shift": f"and all others were raised by {-self.smallest_eigenvalue:.3g}, on the diagonal",
        }[self.how]
        return (
            f"{self.n_negative} negative eigenvalues of {n} {done} ({self.how}): they went down to "
            f"{self.smallest_eigenvalue:.3g}, where the largest is {self.largest_eigenvalue:.3g}. Entries changed by "
            f"up to {self.largest_change:.3g}, the matrix by {100 * self.relative_change:.2g} % of its norm."
        )


def repair_mercer(
    kernel_or_matrix: Any, samples: Any = None, *, how: Literal["clip", "flip", "shift"] = "clip"
) -> MercerRepair:
    """Make a kernel matrix positive semidefinite, and report the change.

    Parameters
    ----------
    kernel_or_matrix : square matrix, Kernel, function f(X, Z) or text
        A kernel is computed on ``samples`` first. A matrix that is not symmetric is replaced by its symmetric part.
    samples : samples, default=None
        The samples of a kernel; None for a matrix.
    how : {"clip", "flip", "shift"}, default="clip"
        Negative eigenvalues become 0, or change their sign, or all eigenvalues are raised until none is negative.

    Returns
    -------
    repair : MercerRepair
        With ``matrix`` for ``fit`` and ``rows(values)`` for ``predict`` of machines with ``kernel="precomputed"``.

    Examples
    --------
    >>> repair = repair_mercer([[1.0, 2.0], [2.0, 1.0]])
    >>> print(repair)
    1 negative eigenvalues of 2 were made 0 (clip): they went down to -1, where the largest is 3. Entries changed by \
up to 0.5, the matrix by 32 % of its norm.
    >>> repair.matrix
    array([[1.5, 1.5],
           [1.5, 1.5]])
    """
    if how not in WAYS:
        raise InvalidInputError(f"how={how!r} must be one of {', '.join(repr(way) for way in WAYS)}.")
    K = _matrix(kernel_or_matrix, samples)
    K = (K + K.T) / 2
    eigenvalues, U = np.linalg.eigh(K)
    smallest, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    negative = eigenvalues < -len(K) * np.finfo(np.float64).eps * np.abs(eigenvalues).max()
    if not negative.any():
        return MercerRepair(K, how, 0, smallest, largest, 0.0, 0.0)
    factor = None
    if how == "shift":
        repaired = K - smallest * np.eye(len(K))
    else:
        # f(λ)/λ: 0 or -1 where λ is negative, else 1
        factor = (U * np.where(negative, 0.0 if how == "clip" else -1.0, 1.0)) @ U.T
        repaired = (U * np.where(negative, 0.0 if how == "clip" else -eigenvalues, eigenvalues)) @ U.T
        repaired = (repaired + repaired.T) / 2
    change = np.abs(repaired - K)
    relative = float(np.linalg.norm(change) / np.linalg.norm(K))
    return MercerRepair(repaired, how, int(negative.sum()), smallest, largest, float(change.max()), relative, factor)


def _matrix(kernel_or_matrix: Any, samples: Any) -> Matrix:
    """The given matrix, or that of a kernel on the samples, in float64; raises unless it is finite and square."""
    kernel = as_kernel(kernel_or_matrix)
    if kernel is None and samples is not None:
        raise InvalidInputError(
            "repair_mercer was given a matrix and samples: give the matrix alone, or a kernel with samples."
        )
    if kernel is not None and samples is None:
        raise InvalidInputError(f"repair_mercer needs samples to compute {kernel!r}: repair_mercer(kernel, samples).")
    if kernel is None or kernel.domain == "matrix":
        K = as_square(kernel_or_matrix if kernel is None else samples).astype(np.float64)
    else:
        K = kernel(samples) if count_samples(samples) else np.empty((0, 0))
    if len(K) == 0:
        raise InvalidInputError("repair_mercer needs at least one sample, but was given none.")
    if not np.all(np.isfinite(K)):
        i, j = (int(index) for index in np.argwhere(~np.isfinite(K))[0])
        raise InvalidInputError(f"The kernel matrix must be finite, but K[{i}, {j}] = {K[i, j]:g}.")
    return K
