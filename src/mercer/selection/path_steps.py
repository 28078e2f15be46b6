"""Follow the solution path of a two-class SVC in C; β is linear in C between finitely many breaks.

Hastie, Rosset, Tibshirani & Zhu, "The entire regularization path for the support vector machine", JMLR 5 (2004), in C
instead of λ = 1/C. With α = yβ and weights wᵢ, a sample is at zero, at its bound wᵢC, or free with y(f + b) = 1. While
no sample changes its state, the derivatives d of β and e of b with respect to C solve

    K_FF d_F + e = −K_FB (yw)_B,     Σ d_F = −Σ (yw)_B        F the free samples, B those at the bound

until a free sample reaches an end of its box or another sample reaches y(f + b) = 1: a break. Samples that are both at
an end of their box and at y(f + b) = 1 may become free or stay. The direction d of the next segment solves a small QP,

    min ½ d'Kd    s.t.  d_B = (yw)_B,   d = 0 elsewhere,   yd ≥ 0 at zero,   yd ≤ w at the bound,   Σd = 0

It has a solution however many samples meet at a break (duplicates, collinear samples, both classes), so the algorithm
does not cycle. Without free samples b can be any number of an interval, and β grows in proportion to C until the
interval has shrunk to a point.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mercer.gram.operator import Data
from mercer.kernels.features import Vector
from mercer.losses import Hinge
from mercer.losses.base import BoxQP
from mercer.problems.clock import Clock
from mercer.problems.dual import survey
from mercer.problems.solution import Options, Status
from mercer.svm.dense import DenseRun
from mercer.svm.solve import near

Mask = NDArray[np.bool_]
# a decision value this close to the margin is on it; a coefficient this close to an end of its box (over C) is at it
ON_MARGIN = 1e-8
AT_END = 1e-10
# derivatives below this, relative to the largest, count as zero
NO_RATE = 1e-9
# singular values below this, relative to the largest, count as zero
SINGULAR = 1e-11
# limit on changes of the set of moving samples at a break
FLIPS = 50
# give up after this many breaks per sample
BREAKS_PER_SAMPLE = 50


@dataclass(frozen=True, eq=False)
class Break:
    """The solution at one C."""

    C: float
    beta: Vector
    n_free: int


class PathFollower:
    """Follows the path in increasing C and records β at each break. The first class is positive here."""

    def __init__(self, data: Data, rows: Vector, y: Vector, w: Vector, intercept: bool, options: Options) -> None:
        self.whole, self.rows, self.y, self.w = data, rows, y, w
        self.intercept, self.options = bool(intercept), options
        self.data = data if len(rows) == data.n else data.take(rows)
        self.K = self.data.matrix(np.float64, options.n_threads)
        self.largest = float(np.abs(self.K).max())
        # the samples in the order of SVC.fit: the first class first
        self.order = np.concatenate([rows[y > 0], rows[y < 0]])
        self.breaks: list[Break] = []
        self.constant = False

    # ---- following the path --------------------------------------------------------------------------------------

    def run(self, C: float, end: float, clock: Clock) -> Status:
        """Follow the path from C to ``end``. Appends to ``breaks``."""
        beta = self._solve(C, None, clock)
        limit = BREAKS_PER_SAMPLE * len(beta) + 100
        while True:
            beta = self.at_ends(beta, C)
            F = self.K @ beta
            b = float(survey(self.program(C), beta, F).thresholds.sum())
            self.breaks.append(Break(C, beta, int(np.count_nonzero(self._free(beta, C)))))
            if end <= C:
                return Status.CONVERGED
            over = clock.over()
            if over is not None:
                return over
            if len(self.breaks) > limit:
                return Status.MAX_ITER
            moved = self._step(C, end, beta, F, b)
            if moved is None:
                # rounding hides which samples move: restart from a new solution at a slightly larger C
                C = min(end, C * (1.0 + 1e-7))
                beta = self._solve(C, beta, clock)
                continue
            C, beta = moved
            if np.isinf(C):
                self.constant = True
                return Status.CONVERGED

    def _step(self, C: float, end: float, beta: Vector, F: Vector, b: float) -> tuple[float, Vector] | None:
        """The next break and its β; None if no consistent direction was found."""
        alpha, free = self.y * beta, self._free(beta, C)
        at_bound = ~free & (alpha > 0)
        margin = self.y * (F + b)
        rounding = ON_MARGIN * max(1.0, float(np.abs(F).max()))
        if not free.any() and self.intercept:
            closed = self._until_closed(C, end, beta, F, at_bound)
            if closed[0] > C * (1.0 + 1e-12):
                return closed
        on_margin = ~free & (np.abs(margin - 1.0) <= rounding)
        found = self._direction(free, at_bound, on_margin)
        if found is None:
            return None
        moving, d, g = found
        if not (at_bound & ~moving).any():
            return np.inf, beta  # no sample is inside the margin: d = 0
        # step lengths until a coefficient reaches an end of its box, and until a sample reaches the margin
        with np.errstate(divide="ignore", invalid="ignore"):
            rate, gap = self.y * d, self.w * C - alpha
            # a moving sample at an end of its box leaves it: no step of length 0
            to_zero = np.where(moving & (rate < 0) & (alpha > 0), alpha / -rate, np.inf)
            to_bound = np.where(moving & (rate > self.w) & (gap > 0), gap / (rate - self.w), np.inf)
            turn, distance = self.y * g, margin - 1.0
            slow = NO_RATE * max(float(np.abs(turn).max()), np.finfo(np.float64).tiny)
            # samples that stay on the margin are known to move away from it
            leaving = ~moving & np.where(at_bound, turn > slow, turn < -slow) & ~on_margin
            to_margin = np.where(leaving, np.abs(distance / turn), np.inf)
        length = float(min(to_zero.min(), to_bound.min(), to_margin.min()))
        length = min(length, end - C)
        if length <= 1e-13 * C and length < end - C:
            return None
        C_next = C + length
        if C_next > end * (1 - 1e-15):
            C_next = end
        moved = self.y * np.clip(alpha + length * rate, 0.0, self.w * C_next)
        # set coefficients that have reached an end of their box exactly to it
        reached = length * (1.0 + 1e-9)
        moved = np.where(to_zero <= reached, 0.0, np.where(to_bound <= reached, self.y * self.w * C_next, moved))
        moved = np.where(at_bound & ~moving, self.y * self.w * C_next, moved)
        return C_next, self._corrected(self.at_ends(moved, C_next), C_next)

    def _direction(self, free: Mask, at_bound: Mask, on_margin: Mask) -> tuple[Mask, Vector, Vector] | None:
        """The moving samples, and the derivatives of β and of the decision values; None if nothing is consistent.

        At first all samples on the margin move; then one sample at a time is switched while a sign is wrong.
        """
        moving = free | on_margin
        seen: set[bytes] = set()
        for flip in range(FLIPS + 2 * int(on_margin.sum())):
            d, g = self._derivatives(moving, at_bound & ~moving)
            rate, turn = self.y * d, self.y * g
            no_rate = NO_RATE * max(float(np.abs(rate).max()), float(self.w.max()))
            no_turn = NO_RATE * max(float(np.abs(turn).max()), self.largest * float(self.w.max()))
            wrong = np.where(at_bound, rate - self.w > no_rate, rate < -no_rate) & moving & on_margin
            stuck = np.where(at_bound, turn > no_turn, turn < -no_turn) & ~moving & on_margin
            if not (wrong | stuck).any():
                return moving, d, g
            key = moving.tobytes()
            if key in seen and flip > FLIPS:
                return None
            candidates = np.flatnonzero(wrong | stuck)
            # switch the worst one, or the first one if this set was seen before
            size = np.where(wrong, np.abs(rate) / no_rate, np.abs(turn) / no_turn)[candidates]
            chosen = candidates[0] if key in seen else candidates[np.argmax(size)]
            seen.add(key)
            moving = moving.copy()
            moving[chosen] = ~moving[chosen]
        return None

    def _derivatives(self, moving: Mask, at_bound: Mask) -> tuple[Vector, Vector]:
        """The derivatives d of β and g of the decision values, for these sets."""
        d = np.where(at_bound, self.y * self.w, 0.0)
        from_bound = self.K @ d
        index = np.flatnonzero(moving)
        e = 0.0
        if len(index):
            d[index], e = self._saddle(index, -from_bound[index], -float(d.sum()))
            from_bound = from_bound + self.K[:, index] @ d[index]
        return d, from_bound + e

    def _saddle(self, index: Vector, r: Vector, s: float) -> tuple[Vector, float]:
        """Solve  K x + e = r, Σx = s  at the samples ``index``; the shortest solution if there are several."""
        m = len(index)
        # divide by the largest entry of K, so that the border has the same size for every scale of the kernel
        unit = self.largest or 1.0
        M = np.zeros((m + self.intercept, m + self.intercept))
        M[:m, :m] = self.K[np.ix_(index, index)] / unit
        right = r
        if self.intercept:
            M[:m, m] = M[m, :m] = 1.0
            right = np.append(r, unit * s)
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            try:
                x = linalg.solve(M, right, assume_a="sym", check_finite=False)
                x += linalg.solve(M, right - M @ x, assume_a="sym", check_finite=False)
            except (linalg.LinAlgError, linalg.LinAlgWarning):
                x = linalg.lstsq(M, right, cond=SINGULAR, check_finite=False)[0]
                x += linalg.lstsq(M, right - M @ x, cond=SINGULAR, check_finite=False)[0]
        return x[:m] / unit, float(x[m]) if self.intercept else 0.0

    def _corrected(self, beta: Vector, C: float) -> Vector:
        """β with rounding errors removed: free samples exactly on the margin, Σβ = 0."""
        index = np.flatnonzero(self._free(beta, C))
        if len(index) == 0:
            return beta
        F = self.K @ beta
        x, _ = self._saddle(index, (self.y - F)[index], -float(beta.sum()))
        corrected = beta.copy()
        corrected[index] += x
        alpha, room = self.y * corrected, self.w * C
        return corrected if bool(((alpha >= 0) & (alpha <= room)).all()) else beta

    def _until_closed(self, C: float, end: float, beta: Vector, F: Vector, at_bound: Mask) -> tuple[float, Vector]:
        """Without free samples: β grows in proportion to C until only one intercept is optimal.

        b is at least y − f of every β that may grow, and at most y − f of every β that may shrink. The difference of
        the two limits is convex in C, so Newton's steps from the right do not pass its zero.
        """
        if not at_bound.any():
            return np.inf, beta
        positive = self.y > 0
        may_grow, may_shrink = np.where(positive, ~at_bound, at_bound), np.where(positive, at_bound, ~at_bound)
        slope = F / C

        def ends(c: float) -> tuple[int, int, float]:
            level = self.y - c * slope
            i = int(np.argmax(np.where(may_grow, level, -np.inf)))
            j = int(np.argmin(np.where(may_shrink, level, np.inf)))
            return i, j, float(level[i] - level[j])

        c = end
        for _ in range(100):
            i, j, excess = ends(c)
            if excess <= 0:
                break
            fall = slope[j] - slope[i]
            if not fall > 0:
                break
            following = c - excess / fall
            if not C <= following < c:
                c = max(C, following) if following < C else c
                break
            c = following
        return c, beta * (c / C)

    # ---- sets and solutions --------------------------------------------------------------------------------------

    def _free(self, beta: Vector, C: float) -> Mask:
        alpha = self.y * beta
        return np.asarray((alpha > 0) & (alpha < self.w * C))

    def at_ends(self, beta: Vector, C: float) -> Vector:
        """β with coefficients that are within rounding of an end of their box set exactly to it."""
        alpha, room = self.y * beta, self.w * C
        alpha = np.where(alpha <= AT_END * room, 0.0, np.where(alpha >= room * (1.0 - AT_END), room, alpha))
        return self.y * alpha

    def program(self, C: float) -> BoxQP:
        """The dual problem at C."""
        return Hinge().box_qp(self.y, C * self.w, self.intercept)

    def _solve(self, C: float, start: Vector | None, clock: Clock) -> Vector:
        """Solve the problem at C directly."""
        qp = self.program(C)
        beta = near(qp, np.zeros(len(self.y)) if start is None else start)
        assert beta is not None
        run = DenseRun(self.K, qp, beta, self.options, clock)
        run.run(self.options.tol)
        return run.beta
