"""Equal samples with equal targets are solved as one sample of their total weight.

They have the same loss at every f, so that the primal is the same function of w and b. The dual variable of the one is
the sum of theirs: where losses have a ridge it is shared in proportion to their weights, which is optimal; else any
way within the bounds is, and as few as possible take part. Optimal or not, the value is the same, and no sample
violates more than the one it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.kernels.features import Vector
from mercer.problems.dual import DualProblem
from mercer.solvers.base import Solution
from mercer.solvers.data import Data
from mercer.solvers.plan import MERGED_SHARE

# what rounding of sums of bounds leaves of them, relative
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Merged:
    """A problem over samples that differ, and the way back to all.

    Attributes
    ----------
    data, problem : of the samples that differ.
    whole : the problem of all samples.
    one_of : for each sample, the one that it belongs to.
    """

    data: Data
    problem: DualProblem
    whole: DualProblem
    one_of: Vector

    def start(self, beta: Vector | None) -> Vector | None:
        """A start of all samples as one of those that differ."""
        return None if beta is None else np.bincount(self.one_of, beta, len(self.problem.y))

    def expand(self, solution: Solution) -> Solution:
        """The solution of the problem of all samples."""
        return replace(solution, beta=self._shared(solution.beta), F=solution.F[self.one_of])

    def _shared(self, beta: Vector) -> Vector:
        """Beta of each sample."""
        from mercer._numerics.equal import share_out

        qp, few = self.whole.qp, self.problem.qp
        if qp.ridge.any():
            weight, of_all = self.whole.weight, self.problem.weight[self.one_of]
            return beta[self.one_of] * np.divide(weight, of_all, out=np.zeros_like(weight), where=of_all > 0)
        full = np.where(beta > 0, beta >= few.upper, (beta <= few.lower) & (beta < 0))
        share = np.empty(len(self.one_of))
        share_out(beta, self.one_of, full, qp.upper, qp.lower, ROUNDING, share)
        return share


def merge(data: Data, problem: DualProblem) -> Merged | None:
    """The problem over the samples that differ, if enough are equal."""
    one_of, firsts = _equal(data.own_samples(), np.asarray(problem.y, np.float64))
    if len(firsts) > MERGED_SHARE * data.n:
        return None
    weight = np.bincount(one_of, problem.weight, len(firsts)).astype(np.float64)
    few = DualProblem(None, problem.loss, problem.y[firsts], weight, problem.intercept)
    return Merged(data.take(firsts), few, problem, one_of)


def _equal(X: Any, y: Vector) -> tuple[Vector, Vector]:
    """(for each row the number of those that equal it, the first row of each number); y belongs to the rows.

    Numbered by first appearance, so that the samples stay in their order.
    """
    from mercer._numerics.equal import number_rows, row_codes

    if sp.issparse(X):
        rows = X if X.format == "csr" else X.tocsr()
        parts = rows.indptr.astype(np.int64), rows.indices.astype(np.int64), _bits(rows.data)
    else:
        rows = np.ascontiguousarray(X)
        ends = np.arange(len(rows) + 1) * rows.shape[1]
        parts = ends, np.empty(0, np.int64), _bits(rows).ravel()
    targets = _bits(y)
    codes = np.empty(len(y), np.uint64)
    row_codes(*parts, targets, codes)
    one_of, firsts = np.empty(len(y), np.intp), np.empty(len(y), np.intp)
    count = number_rows(*parts, targets, codes, one_of, firsts)
    return one_of, firsts[:count]


def _bits(values: Vector) -> Vector:
    """The bits of numbers, as integers."""
    return np.ascontiguousarray(values).view(np.uint64 if values.itemsize == 8 else np.uint32)
