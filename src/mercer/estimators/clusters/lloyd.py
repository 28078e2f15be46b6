"""k-means in feature space.

    min over partitions   Σ_c Σ_{i in c} wᵢ |φ(xᵢ) − m_c|²,     m_c = Σ_{i in c} wᵢ φ(xᵢ) / Σ_{i in c} wᵢ

Starts are drawn by k-means++ (Arthur & Vassilvitskii, 2007) and improved by Lloyd's iteration, which needs only
products with K (Dhillon, Guan & Kulis, *Kernel k-means, spectral clustering and normalized cuts*, 2004). All starts
share each product. When few samples move, only their columns of K are read. The best start is improved by moves of
single samples."""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import numpy as np

from mercer.gram.eigenpairs import dense_eigenpairs, factor_eigenpairs, largest_eigenpairs, prefers_dense
from mercer.gram.products import FactorMatrix, Products, StoredMatrix
from mercer.kernels.features import Matrix, Vector

# if at most this share of the samples moves, the sums are updated with their columns
FEW = 0.1
# a step must lower the inertia by more than this share of the trace, or it is rounding
ROUNDING = 1e-13
# moves of single samples after the last round: at most this many, and at most this many over n
MOST_MOVES, MOVED_ROWS = 500, 2_000_000


class Partition(NamedTuple):
    """Labels, the inertia, the number of rounds, and whether the last round changed no label."""

    labels: Vector
    inertia: float
    n_iter: int
    converged: bool


class Bound(NamedTuple):
    """A lower bound on the inertia of every partition, and the largest residual of its eigenvalues."""

    value: float
    residual: float


class _Run:
    """One start: labels, and sums Σ_{j in c} w_j K[i, j] for each sample i and cluster c."""

    def __init__(self, K: Products, weight: Vector, labels: Vector, k: int) -> None:
        self.K, self.weight, self.labels, self.k = K, weight, labels, k
        self.sums = np.zeros((K.n, k))
        self.inertia, self.n_iter, self.done, self.converged = np.inf, 0, False, False
        self._moved: Vector | None = None
        self._before = labels

    def indicator(self) -> Matrix:
        """The weight of each sample in the column of its cluster."""
        M = np.zeros((self.K.n, self.k))
        M[np.arange(self.K.n), self.labels] = self.weight
        return M

    @property
    def wants_product(self) -> bool:
        """Whether the sums are to be computed anew."""
        return self._moved is None or len(self._moved) > FEW * self.K.n

    def update(self) -> None:
        """Update the sums for the samples that have moved."""
        moved = self._moved
        assert moved is not None
        change, rows = np.zeros((len(moved), self.k)), np.arange(len(moved))
        change[rows, self.labels[moved]] = self.weight[moved]
        change[rows, self._before[moved]] -= self.weight[moved]
        self.sums += self.K.part(moved, change)

    def geometry(self) -> tuple[Matrix, Vector]:
        """<φ(xᵢ), m_c>, and |m_c|² with inf for empty clusters."""
        totals = np.bincount(self.labels, self.weight, self.k)
        filled = totals > 0
        inner = self.sums / np.where(filled, totals, 1.0)
        squares = np.bincount(self.labels, self.weight * inner[np.arange(self.K.n), self.labels], self.k)
        return inner, np.where(filled, squares / np.where(filled, totals, 1.0), np.inf)

    def step(self, max_iter: int, tol: float) -> None:
        """Assign each sample to the nearest mean. ``sums`` are those of the labels before the step."""
        inner, squares = self.geometry()
        rows = np.arange(self.K.n)
        own = (
            self.K.diagonal - 2.0 * inner[rows, self.labels] + np.where(np.isfinite(squares), squares, 0.0)[self.labels]
        )
        inertia = float(self.weight @ np.maximum(own, 0.0))
        least = max(ROUNDING * float(self.weight @ np.abs(self.K.diagonal)), tol * inertia)
        if self.inertia - inertia <= least and self.n_iter > 0:
            # a step that has raised the inertia is taken back
            if inertia > self.inertia:
                self.labels = self._before
            else:
                self.inertia = inertia
            self.done = self.converged = True
            return
        self.inertia = inertia
        if self.n_iter >= max_iter:
            self.done = True
            return
        labels = np.argmin(squares - 2.0 * inner, axis=1)
        _fill_empty(labels, self.weight * np.maximum(own, 0.0), self.k)
        self.n_iter += 1
        self._moved, self._before = np.flatnonzero(labels != self.labels), self.labels
        self.labels = labels
        if len(self._moved) == 0:
            self.done = self.converged = True


def lloyd(K: Products, weight: Vector, starts: list[Vector], k: int, max_iter: int, tol: float = 0.0) -> Partition:
    """The best partition that Lloyd's iteration reaches from these labels."""
    runs = [_Run(K, weight, labels.copy(), k) for labels in starts]
    while active := [run for run in runs if not run.done]:
        anew = [run for run in active if run.wants_product]
        if anew:
            sums = K.product(np.concatenate([run.indicator() for run in anew], axis=1))
            for number, run in enumerate(anew):
                run.sums = np.ascontiguousarray(sums[:, number * k : (number + 1) * k])
        for run in active:
            if not run.wants_product:
                run.update()
            run.step(max_iter, tol)
    best = min(runs, key=lambda run: run.inertia)
    if best.converged and tol == 0.0:
        _move_singly(best)
    return Partition(best.labels, best.inertia, best.n_iter, best.converged)


def _move_singly(run: _Run) -> None:
    """Move one sample at a time while this lowers the inertia; Lloyd's iteration misses such moves.

    Leaving a cluster of total weight W lowers the inertia by w W/(W − w) d², joining one raises it by w W/(W + w) d²
    (Hartigan, 1975; Dhillon, Guan & Kogan, 2002). Edits the run.
    """
    if run.wants_product:
        run.sums = run.K.product(run.indicator())
    rows, w = np.arange(run.K.n), run.weight
    least = ROUNDING * 1e3 * float(w @ np.abs(run.K.diagonal))
    for _ in range(min(MOST_MOVES, MOVED_ROWS // run.K.n)):
        inner, squares = run.geometry()
        totals = np.bincount(run.labels, w, run.k)
        away = np.maximum(run.K.diagonal[:, None] - 2.0 * inner + np.where(np.isfinite(squares), squares, 0.0), 0.0)
        own = totals[run.labels]
        alone = own <= w * (1.0 + 1e-12)
        leaving = np.where(alone, 0.0, w * own / np.where(alone, 1.0, own - w)) * away[rows, run.labels]
        joining = (w[:, None] * totals / np.maximum(totals + w[:, None], np.finfo(float).tiny)) * away
        joining[rows, run.labels] = np.inf
        gain = leaving - joining.min(axis=1)
        i = int(gain.argmax())
        if not gain[i] > least:
            break
        run._moved, run._before = np.array([i]), run.labels.copy()
        run.labels = run.labels.copy()
        run.labels[i] = joining[i].argmin()
        run.update()
        run.inertia -= float(gain[i])


def _fill_empty(labels: Vector, cost: Vector, k: int) -> None:
    """Move the samples with the largest cost to clusters without samples. Edits labels."""
    counts = np.bincount(labels, minlength=k)
    empty = np.flatnonzero(counts == 0)
    if len(empty) == 0:
        return
    for i in np.argsort(-cost, kind="stable"):
        if len(empty) == 0 or cost[i] <= 0:
            return
        if counts[labels[i]] > 1:
            counts[labels[i]] -= 1
            labels[i], empty = empty[0], empty[1:]


def seeds(K: Products, weight: Vector, k: int, random: Any) -> Vector:
    """Labels of the nearest of k samples, drawn by greedy k-means++.

    Each seed is the best of 2 + log k candidates, drawn with probabilities proportional to the weighted squared
    distance from the nearest seed so far.
    """
    trials = 2 + int(log(k))
    labels, distance = np.zeros(K.n, np.intp), np.full(K.n, np.inf)
    for c in range(k):
        chance = weight if c == 0 else weight * distance
        total = chance.sum()
        if not total > 0:
            break
        draws = random.uniform(0.0, total, size=1 if c == 0 else trials)
        candidates = np.minimum(np.searchsorted(np.cumsum(chance), draws, side="right"), K.n - 1)
        away = K.diagonal[:, None] + K.diagonal[candidates] - 2.0 * K.columns(candidates)
        away = np.minimum(np.maximum(away, 0.0), distance[:, None])
        best = int(np.argmin(weight @ away))
        closer = away[:, best] < distance
        labels[closer], distance = c, away[:, best]
    return labels


def spectral_bound(K: Products, weight: Vector, k: int, random: Any) -> Bound:
    """No partition into k clusters has a smaller inertia: tr A − λ₁ − … − λ_{k−1} for A = P W½ K W½ P.

    P removes √w, which lies in the span of the indicators of every partition (Ding & He, *K-means clustering via
    principal component analysis*, 2004).
    """
    root = np.sqrt(weight)
    unit = root / np.linalg.norm(root)

    def project(V: Matrix) -> Matrix:
        return V - np.outer(unit, unit @ V)

    mean = float(unit @ (root * K.product((root * unit)[:, None])[:, 0]))
    trace = float(weight @ K.diagonal) - mean
    count = min(k - 1, K.n)
    if count == 0:
        return Bound(max(trace, 0.0), 0.0)
    if isinstance(K, FactorMatrix) and K.factor.shape[1] < K.n:
        found = factor_eigenpairs(project(root[:, None] * K.factor), min(count, K.factor.shape[1]))
    elif isinstance(K, StoredMatrix) and prefers_dense(K.n, count):
        A = project(project(root[:, None] * K.K * root).T)
        found = dense_eigenpairs(0.5 * (A + A.T), count)
    else:
        found = largest_eigenpairs(
            lambda V: project(root[:, None] * K.product(root[:, None] * project(V))), K.n, count, random
        )
    residual = float(found.residuals.sum())
    return Bound(max(trace - float(np.maximum(found.values, 0.0).sum()) - residual, 0.0), residual)
