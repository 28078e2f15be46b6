"""The free variables of a problem, with the inverse of their matrix."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mercer.kernels.features import Vector
from mercer.losses.base import BoxQP
from mercer.updates.kernel_columns import KernelColumns

# new memory is this many times the memory that is needed
GROWTH = 1.25
# if more variables than this join at once, the inverse is computed anew
MANY_AT_ONCE = 48
# an inverse that rounding has spoilt this many times is not kept any more
MOST_FAILURES = 3


class FreeSet:
    """Samples whose variables are free, and R, the inverse of their bordered matrix: see `_free_set_loops.py`.

    Attributes
    ----------
    samples : the sample of each row of R but the first, -1 if it has left.
    R : the inverse, in the first rows and columns of a larger matrix.
    failures : how often R was spoilt by rounding, as it is if the matrix is singular.
    """

    def __init__(self) -> None:
        self.samples = np.empty(0, np.intp)
        self.R = np.zeros((1, 1))
        self.failures = 0

    def members(self, rows: Vector | None) -> Vector:
        """The variable of each member, in an array with room for more; -1 if its sample is not in the problem."""
        found = np.empty(len(self.R), np.intp)
        variables = self.samples
        if rows is not None:
            variables = np.minimum(np.searchsorted(rows, self.samples), len(rows) - 1)
            variables = np.where(rows[variables] == self.samples, variables, -1)
        found[: len(variables)] = variables
        return found

    def has_columns(self, stored: KernelColumns) -> bool:
        """Whether the columns of all samples that have not left are stored, as steps need them."""
        return bool(stored.has(self.samples[self.samples >= 0]).all())

    def keep(self, members: Vector, rows: Vector | None) -> None:
        """Set the samples to those of these variables."""
        self.samples = members if rows is None else np.where(members < 0, -1, rows[members])

    def forget(self) -> None:
        """Forget the inverse: the set is empty."""
        self.samples = np.empty(0, np.intp)

    def fail(self) -> None:
        """Forget the inverse, which rounding has spoilt."""
        self.forget()
        self.failures += 1

    def reserve(self, count: int) -> None:
        """Enlarge the memory if it has no room for ``count`` variables."""
        if count < len(self.R):
            return
        size, used = int(GROWTH * count) + 32, len(self.samples) + 1
        R = np.zeros((size, size))
        R[:used, :used] = self.R[:used, :used]
        self.R = R

    def invert(self, qp: BoxQP, variables: Vector, samples: Vector, stored: KernelColumns) -> bool:
        """Begin with these variables, whose columns are stored; False if their matrix is singular."""
        m = len(variables)
        self.samples = np.empty(0, np.intp)
        self.reserve(m)
        K = stored.block(samples)
        K[np.diag_indices(m)] += qp.ridge[variables]
        factor, failed = lapack.dpotrf(K.T, lower=0, overwrite_a=1, clean=0)
        if failed or not np.isfinite(factor).all():
            return False
        inverse = np.triu(lapack.dpotri(factor, lower=0, overwrite_c=1)[0])
        inverse += np.triu(inverse, 1).T
        R = self.R[: m + 1, : m + 1]
        R[:] = 0.0
        R[1:, 1:] = inverse
        if qp.n_groups:
            ones = inverse.sum(axis=1)  # K⁻¹ 1
            total = float(ones.sum())
            if not total > 0:
                return False
            R[1:, 1:] -= np.outer(ones, ones / total)
            R[0, 1:] = R[1:, 0] = ones / total
            R[0, 0] = -1.0 / total
        self.samples = samples
        return True
