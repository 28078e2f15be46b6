"""One stored kernel matrix for several machines over the same samples: code words, targets.

The matrix is in the precision of the solver, usually float32; each machine is verified in float64 with the kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.erm.kernel_matrix import matrix_in_time
from mercer.gram.operator import ClassBlocks, Data
from mercer.kernels.features import Matrix, Vector
from mercer.losses import BoxQP
from mercer.problems.clock import Clock
from mercer.problems.solution import Options
from mercer.svm.plan import can_use_features, plan_descent


class StoredBlock(ClassBlocks):
    """A Gram matrix that is known, where solvers expect the blocks of two classes."""

    def __init__(self, K: Matrix) -> None:
        self.K, self.dtype = K, K.dtype

    def matrix(self, i: int, j: int) -> Matrix:
        """The matrix."""
        return self.K


class SharedMatrix:
    """The samples of several problems, whose matrix is computed once if it fits into memory and time.

    ``qp`` is the program of one of them, which decides on the precision.
    """

    def __init__(self, data: Data, qp: BoxQP, options: Options, clock: Clock) -> None:
        self.data = data
        self.K: Matrix | None = None
        dtype: Any = plan_descent(data, qp, options, np.inf, False).dtype
        fits = dtype.itemsize * data.n**2 <= options.budget
        # linear kernels of few features have solvers that need no matrix
        if fits and not can_use_features(data, qp, options) and matrix_in_time(data, options, clock):
            self.K = data.matrix(dtype, options.n_threads)

    def take(self, index: Vector) -> Data:
        """Some of the samples, in rising order, with their part of the matrix."""
        everything = len(index) == self.data.n
        if self.K is None:
            return self.data if everything else self.data.take(index)
        part = self.K if everything else np.ascontiguousarray(self.K[np.ix_(index, index)])
        return self.data.take(index, (StoredBlock(part), 0, 0))
