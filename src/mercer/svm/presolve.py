"""Presolve: replace a problem by a smaller one with the same optimum.

**Equal samples** with equal targets have the same loss at every f. One sample with their total weight gives the same
problem; its dual variable is the sum of theirs. If the loss has a ridge, the optimal split is in proportion to the
weights. Otherwise any split within the bounds is optimal, and as few samples as possible get a weight.

**A linear kernel** with many more samples n than features d is solved over its d weights. SMO would need very many
rounds: the Gram matrix has rank d, and the coefficients of all samples at the margin move together. The interior-point
method of `mercer.linear` takes a few dozen steps, whatever C. β follows from w:

1. a sample away from every kink of its loss has its β at a known bound;
2. the others, about as many as there are features, keep the β of the interior point. It is corrected, in units of the
   room that each has in its box, so that X'β = w and Σβ = 0, or so that these samples lie at their kinks.

For ordered classes, a sample has a copy for each of its thresholds. The copies have one more feature per threshold: 1
for copies of that threshold, with a weight that is not penalised. Then Σβ = 0 over each group, as for one intercept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._compiled.blas import one_blas_thread
from mercer.gram.operator import Data
from mercer.kernels.features import Csr, Vector
from mercer.linear.central_path import Path, follow
from mercer.linear.interior import least
from mercer.linear.linear_plan import solve_linear
from mercer.linear.linear_problem import LinearProblem, Rows
from mercer.linear.linear_solution import LinearOptions
from mercer.linear.near_kinks import ends_of
from mercer.linear.systems import weighted_gram
from mercer.losses.base import BoxQP, Index
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem, Survey, survey
from mercer.problems.solution import FEASIBILITY, Options, Solution, TracePoint
from mercer.svm.plan import FACE_UP_TO, MERGED_SHARE

# relative rounding error of sums of bounds
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Merged:
    """A problem over distinct samples, and the map back to all samples.

    Attributes
    ----------
    data, problem : of the distinct samples.
    whole : the problem of all samples.
    inverse : for each sample, the number of the distinct sample that equals it.
    """

    data: Data
    problem: DualProblem
    whole: DualProblem
    inverse: Vector

    def start(self, beta: Vector | None) -> Vector | None:
        """The start of all samples, as a start of the distinct samples."""
        return None if beta is None else np.bincount(self.inverse, beta, len(self.problem.y))

    def expand(self, solution: Solution) -> Solution:
        """The solution of the problem of all samples."""
        return replace(solution, beta=self._split(solution.beta), F=solution.F[self.inverse])

    def _split(self, beta: Vector) -> Vector:
        """Split β of the distinct samples among all samples."""
        from mercer.svm._merge_loops import split_totals

        qp, few = self.whole.qp, self.problem.qp
        if qp.ridge.any():
            weight, of_all = self.whole.weight, self.problem.weight[self.inverse]
            return beta[self.inverse] * np.divide(weight, of_all, out=np.zeros_like(weight), where=of_all > 0)
        full = np.where(beta > 0, beta >= few.upper, (beta <= few.lower) & (beta < 0))
        share = np.empty(len(self.inverse))
        split_totals(beta, self.inverse, full, qp.upper, qp.lower, ROUNDING, share)
        return share


def merge(data: Data, problem: DualProblem) -> Merged | None:
    """The problem over distinct samples; None if too few samples are equal."""
    X, y, most = data.own_samples(), np.asarray(problem.y, np.float64), MERGED_SHARE * data.n
    hashes = _hash_rows(X, y)
    if 1 + np.count_nonzero(np.diff(np.sort(hashes))) > most:
        return None  # there are at least as many distinct samples as hashes
    inverse, firsts = _number_distinct(X, y, hashes)
    if len(firsts) > most:
        return None
    weight = np.bincount(inverse, problem.weight, len(firsts)).astype(np.float64)
    few = DualProblem(None, problem.loss, problem.y[firsts], weight, problem.intercept)
    return Merged(data.take(firsts), few, problem, inverse)


# entries that are hashed at a time: they stay in cache
HASHED = 1 << 15
HALF = np.uint64(32)


def _hash_rows(X: Any, y: Vector) -> Vector:
    """A hash of each row (X[i], y[i]): the sum of its entries' bits, each times an odd random number of its column."""
    n, d = X.shape
    factors = np.random.default_rng(0).integers(0, 1 << 64, d + 1, np.uint64) | np.uint64(1)
    hashes, targets = np.empty(n, np.uint64), _bits(y)
    rows: Any = X.tocsr() if sp.issparse(X) else np.ascontiguousarray(X)
    step = max(1, HASHED * n // max(1, X.nnz if sp.issparse(X) else X.size))
    for start in range(0, n, step):
        part = slice(start, start + step)
        if sp.issparse(X):
            ends = rows.indptr[start : start + step + 1]
            entries = slice(ends[0], ends[-1])
            until = np.zeros(ends[-1] - ends[0] + 1, np.uint64)
            np.cumsum(_mixed(_bits(rows.data[entries])) * factors[rows.indices[entries]], out=until[1:])
            sums = np.diff(until[ends - ends[0]])
        else:
            sums = _mixed(_bits(rows[part])) @ factors[:d]
        sums += _mixed(targets[part]) * factors[d]
        hashes[part] = _mixed(sums)
    return hashes


def _mixed(bits: Vector) -> Vector:
    """64 bits each, with the upper half added to the lower one: sums and products of integers never move bits down."""
    bits = bits.astype(np.uint64, copy=False)
    mixed = bits >> HALF
    mixed ^= bits
    return mixed


def _number_distinct(X: Any, y: Vector, hashes: Vector) -> tuple[Vector, Vector]:
    """Number the distinct rows (X[i], y[i]): (number of each row, first row of each number).

    Numbers follow the first appearance, so that samples keep their order.
    """
    from mercer.svm._merge_loops import number_rows

    if sp.issparse(X):
        rows = X.tocsr()
        parts = rows.indptr.astype(np.int64), rows.indices.astype(np.int64), _bits(rows.data)
    else:
        ends = np.arange(len(X) + 1) * X.shape[1]
        parts = ends, np.empty(0, np.int64), _bits(X).ravel()
    inverse, firsts = np.empty(len(y), np.intp), np.empty(len(y), np.intp)
    count = number_rows(*parts, _bits(y), hashes, inverse, firsts)
    return inverse, firsts[:count]


def _bits(values: Vector) -> Vector:
    """The bits of floats, as unsigned integers."""
    return np.ascontiguousarray(values).view(np.uint64 if values.itemsize == 8 else np.uint32)


# relative gap of the solution over features: too small to be seen in F
GAP = 1e-9
# a sample nearer to a kink than this share of tol keeps its β inside the box
AT_KINK = 0.3
# most corrections of β by each method
CORRECTIONS = 4
# samples that take up the rounding of the sum of β
BALANCED_BY = 3


class DualPoint(NamedTuple):
    """β, F = Kβ, the number of steps taken, and the survey of β."""

    beta: Vector
    F: Vector
    steps: int
    seen: Survey

    @property
    def violation(self) -> float:
        """The largest KKT violation; inf if β is not feasible."""
        feasible = self.seen.infeasibility <= FEASIBILITY * float(np.abs(self.beta).max(initial=0.0))
        return self.seen.violation if feasible else np.inf


def solve_over_features(
    data: Data,
    problem: DualProblem,
    options: Options,
    clock: Clock,
    gap: float = GAP,
    corrections: int = CORRECTIONS,
) -> DualPoint | None:
    """Solve a linear kernel over its features: β near the optimum; None if squares of the data overflow.

    w is found to the relative ``gap``; β is corrected at most ``corrections`` times by each of two methods.
    """
    samples = Rows.of(data.own_samples())
    qp = problem.qp
    with np.errstate(over="ignore", invalid="ignore"):
        if qp.sample is None and qp.n_groups <= 1:
            linear = LinearProblem(samples, problem.loss, problem.y, problem.weight, problem.intercept)
            asked = LinearOptions(tol=gap, n_threads=options.n_threads, budget=options.budget)
            solution = solve_linear("auto", linear, asked, clock)
            rows, weights = samples, solution.w
            if problem.intercept:
                rows, weights = Rows(samples.X, 1.0), np.append(weights, solution.intercept)
            beta, steps = solution.beta, solution.n_iter
        else:
            rows = _copies(samples, qp)
            path = _follow_copies(rows, qp, gap, options.n_threads, clock)
            weights, beta, steps = path.w, path.beta, path.n_iter
        if not (np.isfinite(weights).all() and np.isfinite(beta).all()):
            return None
        recovery = DualRecovery(samples, rows, qp, weights, beta, AT_KINK * options.tol, options.n_threads)
        for improve in (recovery.to_weights, recovery.to_kinks):
            for _ in range(corrections):
                if recovery.point.violation <= options.tol:
                    break
                improve()
    return recovery.point._replace(steps=steps) if np.isfinite(recovery.point.F).all() else None


def _copies(samples: Rows, qp: BoxQP) -> Rows:
    """The row of each variable: the row of its sample, with a 1 for its threshold."""
    sample = np.arange(samples.n) if qp.sample is None else qp.sample
    thresholds = np.eye(qp.n_groups)[qp.group]
    if isinstance(samples.X, Csr):
        X = sp.csr_matrix((samples.X.data, samples.X.indices, samples.X.indptr), samples.X.shape)
        return Rows.of(sp.hstack([X[sample], sp.csr_matrix(thresholds)], format="csr"))
    return Rows.of(np.hstack([samples.X[sample], thresholds]))


def _follow_copies(rows: Rows, qp: BoxQP, gap: float, n_threads: int, clock: Clock) -> Path:
    """The central path of the copies whose boxes are not empty; thresholds are not penalised."""
    q = np.ones(rows.d)
    q[rows.d - qp.n_groups :] = 0.0
    used = np.flatnonzero(qp.lower < qp.upper)

    def over(path: Path) -> bool:
        relative = path.gap / max(abs(path.primal), np.finfo(np.float64).tiny)
        clock.report(TracePoint(clock.seconds, path.n_iter, relative, path.primal - path.gap, rows.n))
        return clock.over() is not None

    with one_blas_thread():
        known = (rows.take(used), qp.take(used, None), q, np.zeros(rows.d))
        path = follow(*known, tol=gap, n_threads=n_threads, over=over)
    beta = np.zeros(rows.n)
    beta[used] = path.beta
    return replace(path, beta=beta)


class DualRecovery:
    """Recovers β from w: at a bound, except for samples within ``width`` of a kink.

    ``rows`` has a row per variable, with a feature for each threshold; ``weights`` are w and the thresholds.
    ``point`` is the best β so far.
    """

    def __init__(
        self, samples: Rows, rows: Rows, qp: BoxQP, weights: Vector, beta: Vector, width: float, n_threads: int
    ) -> None:
        self.samples, self.rows, self.qp, self.n_threads = samples, rows, qp, n_threads
        # X'β = w, and the sum of each group is 0
        self.goal = np.where(np.arange(rows.d) < samples.d, weights, 0.0)
        t = qp.linear - self.rows.dot(weights, n_threads)
        inside = (qp.ridge > 0) | (np.abs(np.abs(t) - qp.l1) <= width)
        # near the kink at t = ±l1, β has the sign of t: a β of 1e-9 with the other sign would violate by 2 l1
        apart = qp.l1 > width
        self.lower = np.where(apart & (t > 0), np.maximum(qp.lower, 0.0), qp.lower)
        self.upper = np.where(apart & (t < 0), np.minimum(qp.upper, 0.0), qp.upper)
        beta = np.where(inside, np.clip(beta, self.lower, self.upper), ends_of(qp, t))
        beta[qp.lower == qp.upper] = 0.0
        # variables that may move: inside the box and off the kink at 0
        self.free: Index = np.flatnonzero(inside & (beta > qp.lower) & (beta < qp.upper) & (beta != 0))
        self.part = self.rows.take(self.free)
        self.point = self._balanced(beta)

    def to_weights(self) -> None:
        """Correct the free β so that X'β = w and the sums are 0, as nearly as they can."""
        missing = self.goal - self.rows.tdot(self.point.beta, self.n_threads)
        room = self._room()
        with one_blas_thread():
            G = weighted_gram(self.part, room**2, self.n_threads)
            x = least(G, missing)
        self._move(room**2 * self.part.dot(x, self.n_threads))

    def to_kinks(self) -> None:
        """Newton's step on the face: put all free samples at their kinks; w follows from β."""
        m = len(self.free)
        if not 0 < m <= FACE_UP_TO:
            return
        qp, free, beta = self.qp, self.free, self.point.beta[self.free]
        F = qp.at_variables(self.point.F)[free]
        t = qp.linear[free] - F - qp.ridge[free] * beta - qp.l1[free] * np.sign(beta)
        room = self._room()
        X, thresholds = np.split(self.part.dense() * room[:, None], [self.samples.d], axis=1)
        M = np.zeros((m + qp.n_groups, m + qp.n_groups))
        with one_blas_thread():
            M[:m, :m] = X @ X.T
            M[np.arange(m), np.arange(m)] += qp.ridge[free] * room**2
            M[:m, m:], M[m:, :m] = thresholds, thresholds.T
            rest = np.append(room * t, -qp.group_sums(self.point.beta))
            size = np.sqrt(np.maximum(np.abs(np.diag(M)), np.abs(M).max(axis=1) ** 2))
            size[size == 0] = 1.0
            try:
                step = np.linalg.lstsq(M / size / size[:, None], rest / size, rcond=1e-15)[0] / size
            except np.linalg.LinAlgError:
                return
        self._move(room * step[:m])

    def _room(self) -> Vector:
        """How far each free β may move within its box and on its side of the kink."""
        qp, free = self.qp, self.free
        b = self.point.beta[free]
        ends = np.minimum(b - qp.lower[free], qp.upper[free] - b)
        return np.where((qp.l1[free] > 0) | ~np.isfinite(ends), np.minimum(ends, np.abs(b)), ends)

    def _move(self, change: Vector) -> None:
        """Take this step, clipped to the box, if it reduces the violation."""
        beta, free = self.point.beta.copy(), self.free
        beta[free] = np.clip(beta[free] + change, self.lower[free], self.upper[free])
        moved = self._balanced(beta)
        if moved.violation < self.point.violation:
            self.point = moved

    def _balanced(self, beta: Vector) -> DualPoint:
        """The point of β, after a correction of its sums. Edits beta."""
        qp = self.qp
        for g in range(qp.n_groups):
            # the variables with the most room take up the rounding of the sum
            free = self.free if qp.n_groups == 1 else self.free[qp.group[self.free] == g]
            room = np.minimum(beta - self.lower, self.upper - beta)[free]
            for v in free[np.argsort(-np.minimum(room, np.abs(beta[free])))[:BALANCED_BY]]:
                beta[v] = np.clip(beta[v] - qp.group_sums(beta)[g], self.lower[v], self.upper[v])
        of_samples = qp.at_samples(beta, self.samples.n)
        F = self.samples.dot(self.samples.tdot(of_samples, self.n_threads), self.n_threads)
        return DualPoint(beta, F, 0, survey(qp, beta, F))
