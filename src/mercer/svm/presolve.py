"""Smaller problems with the same optimum: equal samples merged, or a linear kernel solved over its features.

Equal samples with equal targets have the same loss at every f, so that one sample of their total weight poses the same
problem. Its dual variable is the sum of theirs: where losses have a ridge it is shared in proportion to their weights,
which is optimal; otherwise any split within the bounds is, and as few as possible take part.

A linear kernel with many more samples n than features d is solved over its d weights. Pair steps would need very many
rounds: the matrix has rank d, and the coefficients of all samples at the margin move together. The interior-point
method takes a few dozen steps, whatever C. From w back to β:

1. a sample away from every kink of its loss has its β at a known end of the box;
2. the others, about as many as there are features, keep the β of the interior point, corrected in units of the room
   that each has in its box: so that X'β = w and Σβ = 0, or so that they come to lie at their kinks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._compiled.blas import one_blas_thread
from mercer.gram.data import Data
from mercer.kernels.features import Vector
from mercer.linear.interior import least
from mercer.linear.near_kinks import ends_of
from mercer.linear.plan import solve_linear
from mercer.linear.problem import LinearProblem, Rows
from mercer.linear.solution import LinearOptions, LinearSolution
from mercer.linear.systems import weighted_gram
from mercer.losses.base import Index
from mercer.problems.certificate import FEASIBILITY
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem, Survey, survey
from mercer.problems.solution import Options, Solution
from mercer.svm.plan import FACE_UP_TO, MERGED_SHARE

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
        from mercer.svm._merge_loops import share_out

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
    from mercer.svm._merge_loops import number_rows, row_codes

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


# the relative gap asked for: what is left must not be seen in F
GAP = 1e-9
# a sample nearer to a kink than this share of tol keeps a β inside its box
AT_KINK = 0.3
CORRECTIONS = 4
# samples that may take up the rounding of a sum
BALANCED_BY = 3


class Found(NamedTuple):
    """β, F = Kβ, the steps that they took, and what is to be seen of them."""

    beta: Vector
    F: Vector
    steps: int
    seen: Survey

    @property
    def violation(self) -> float:
        """The largest KKT violation; inf where β is not feasible."""
        feasible = self.seen.infeasibility <= FEASIBILITY * float(np.abs(self.beta).max(initial=0.0))
        return self.seen.violation if feasible else np.inf


def solve_over_features(data: Data, problem: DualProblem, options: Options, clock: Clock) -> Found | None:
    """β next to the optimum of a problem that suits; None where its numbers are too large to be squared."""
    rows = Rows.of(data.own_samples())
    linear = LinearProblem(rows, problem.loss, problem.y, problem.weight, problem.intercept)
    asked = LinearOptions(tol=GAP, n_threads=options.n_threads, budget=options.budget)
    with np.errstate(over="ignore", invalid="ignore"):
        solution = solve_linear("auto", linear, asked, clock)
        if not (np.isfinite(solution.w).all() and np.isfinite(solution.beta).all()):
            return None
        way = WayBack(linear, solution, AT_KINK * options.tol, options.n_threads)
        for improve in (way.to_weights, way.to_kinks):
            for _ in range(CORRECTIONS):
                if way.found.violation <= options.tol:
                    break
                improve()
    return way.found._replace(steps=solution.n_iter) if np.isfinite(way.found.F).all() else None


class WayBack:
    """From w to β: at the ends of its box but for samples within ``width`` of a kink.

    ``found`` is the best one so far.
    """

    def __init__(self, problem: LinearProblem, solution: LinearSolution, width: float, n_threads: int) -> None:
        self.rows, self.qp, self.intercept = problem.rows, problem.qp, problem.intercept
        self.w, self.n_threads = solution.w, n_threads
        qp = self.qp
        t = qp.linear - self.rows.dot(self.w, n_threads) - solution.intercept
        inside = (qp.ridge > 0) | (np.abs(np.abs(t) - qp.l1) <= width)
        # next to the kink at t = ±l1 β has the sign of t: a β of 1e-9 on the other side of 0 would violate by 2 l1
        apart = qp.l1 > width
        self.lower = np.where(apart & (t > 0), np.maximum(qp.lower, 0.0), qp.lower)
        self.upper = np.where(apart & (t < 0), np.minimum(qp.upper, 0.0), qp.upper)
        beta = np.where(inside, np.clip(solution.beta, self.lower, self.upper), ends_of(qp, t))
        beta[qp.lower == qp.upper] = 0.0
        # those that may move: inside the box and off the kink at 0
        self.free: Index = np.flatnonzero(inside & (beta > qp.lower) & (beta < qp.upper) & (beta != 0))
        self.part = self.rows.take(self.free)
        self.found = self._judged(beta)

    def to_weights(self) -> None:
        """Correct β so that X'β = w and Σβ = 0, as far as the free ones allow: many of them, if samples are alike."""
        part = Rows(self.part.X, 1.0) if self.intercept else self.part
        missing = self.w - self.rows.tdot(self.found.beta, self.n_threads)
        if self.intercept:
            missing = np.append(missing, -self.found.beta.sum())
        room = self._room()
        with one_blas_thread():
            G = weighted_gram(part, room**2, self.n_threads)
            x = least(G, missing)
        self._move(room**2 * part.dot(x, self.n_threads))

    def to_kinks(self) -> None:
        """Newton's step on the face: all free samples at their kinks, whatever w this gives."""
        m = len(self.free)
        if not 0 < m <= FACE_UP_TO:
            return
        qp, free, beta = self.qp, self.free, self.found.beta[self.free]
        t = qp.linear[free] - self.found.F[free] - qp.ridge[free] * beta - qp.l1[free] * np.sign(beta)
        room = self._room()
        X = self.part.dense() * room[:, None]
        M = np.zeros((m + self.intercept, m + self.intercept))
        with one_blas_thread():
            M[:m, :m] = X @ X.T
            M[np.arange(m), np.arange(m)] += qp.ridge[free] * room**2
            rest = room * t
            if self.intercept:
                M[:m, m] = M[m, :m] = room
                rest = np.append(rest, -self.found.beta.sum())
            size = np.sqrt(np.maximum(np.abs(np.diag(M)), np.abs(M).max(axis=1) ** 2))
            size[size == 0] = 1.0
            try:
                step = np.linalg.lstsq(M / size / size[:, None], rest / size, rcond=1e-15)[0] / size
            except np.linalg.LinAlgError:
                return
        self._move(room * step[:m])

    def _room(self) -> Vector:
        """How far each free β may move without leaving its box or the side of its kink."""
        qp, free = self.qp, self.free
        b = self.found.beta[free]
        ends = np.minimum(b - qp.lower[free], qp.upper[free] - b)
        return np.where((qp.l1[free] > 0) | ~np.isfinite(ends), np.minimum(ends, np.abs(b)), ends)

    def _move(self, change: Vector) -> None:
        """Take this step, cut to the boxes, if the violation is smaller after it."""
        beta, free = self.found.beta.copy(), self.free
        beta[free] = np.clip(beta[free] + change, self.lower[free], self.upper[free])
        judged = self._judged(beta)
        if judged.violation < self.found.violation:
            self.found = judged

    def _judged(self, beta: Vector) -> Found:
        """β with the sum that it must have, as far as it can be had. Edits beta."""
        if self.intercept and len(self.free):
            # what rounding has left of the sum goes where there is the most room
            room = np.minimum(beta - self.lower, self.upper - beta)[self.free]
            for v in self.free[np.argsort(-np.minimum(room, np.abs(beta[self.free])))[:BALANCED_BY]]:
                beta[v] = np.clip(beta[v] - beta.sum(), self.lower[v], self.upper[v])
        F = self.rows.dot(self.rows.tdot(beta, self.n_threads), self.n_threads)
        return Found(beta, F, 0, survey(self.qp, beta, F))
