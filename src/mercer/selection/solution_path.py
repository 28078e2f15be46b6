"""All solutions of a two-class SVC at once: β as a function of C, which is linear between finitely many breaks.

Hastie, Rosset, Tibshirani & Zhu, "The entire regularization path for the support vector machine", JMLR 5 (2004), in C
instead of λ = 1/C. With α = yβ and weights wᵢ, a sample is at zero, at its bound wᵢC or free, and then y(f + b) = 1.
While no sample changes its state, the derivatives d of β and e of b solve

    K_FF d_F + e = −K_FB (yw)_B,     Σ d_F = −Σ (yw)_B        F the free samples, B those at the bound

until a free sample reaches an end of its box or another one reaches y(f + b) = 1. What happens then is a small problem
by itself: of the samples that are at an end of their box and at y(f + b) = 1 as well, some move on with the free ones
and some stay,

    min ½ d'Kd    s.t.  d_B = (yw)_B,   d = 0 elsewhere,   yd ≥ 0 at zero,   yd ≤ w at the bound,   Σd = 0

This has a solution however many samples meet at a break, be they equal, in line, or of both classes: nothing cycles.
Without free samples b is any number of an interval, and β grows in proportion to C until that interval has closed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer.estimators.certification import posed_problems
from mercer.estimators.progress import warn_user
from mercer.estimators.svc import SVC
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes
from mercer.gram.operator import product
from mercer.kernels.features import Matrix, Vector
from mercer.losses import Hinge
from mercer.problems.certificate import Certificate, certificate
from mercer.problems.dual import survey
from mercer.solvers.base import Clock, Options, Status
from mercer.solvers.blas import one_blas_thread
from mercer.solvers.data import Data
from mercer.solvers.whole import WholeMatrix
from mercer.validation import thread_count

Mask = NDArray[np.bool_]
# C to begin and to end with, over the mean of k(x, x)
RANGE = (1e-3, 1e3)
# a decision value nearer to the margin is on it; a coefficient nearer to an end of its box, relative to C, is at it
ON_MARGIN = 1e-8
AT_END = 1e-10
# rates below this, relative to the largest, have no sign
NO_RATE = 1e-9
# changes of mind about which samples move on
FLIPS = 50
# of the solution that the path begins with, and goes on with where rounding has lost it
TOL = 1e-10
# breaks per sample after which a path is given up
BREAKS_PER_SAMPLE = 50
# share of the free memory that the matrix and the path may take
MEMORY = 0.25


@dataclass(frozen=True, eq=False)
class SolutionPath:
    """What ``solution_path`` found: every C between the first and the last break has its exact solution.

    Attributes
    ----------
    C : the breaks, ascending; the first and the last are the ends of the path.
    dual_coef : β at each break, a row with one number per sample; the second class is positive.
    intercept : b at each break; the middle of all that are optimal where there are several.
    n_support, n_free : samples that carry weight at each break, and those of them within their box.
    classes : the two labels.
    constant : whether the last solution stays optimal for every larger C: no sample is inside the margin.
    """

    C: Vector
    dual_coef: Matrix
    intercept: Vector
    n_support: NDArray[np.intp]
    n_free: NDArray[np.intp]
    classes: NDArray[Any]
    constant: bool
    _walk: _Walk = field(repr=False)
    _source: tuple[Any, Any, Any, Any] = field(repr=False)

    def __len__(self) -> int:
        return len(self.C)

    def __str__(self) -> str:
        end = " and does not change beyond" if self.constant else ""
        return (
            f"{len(self.C)} breaks from C = {self.C[0]:.4g} to {self.C[-1]:.4g}{end}; {self.n_support[0]} to "
            f"{self.n_support[-1]} of {self.dual_coef.shape[1]} samples are support vectors"
        )

    def coefficients(self, C: float) -> Vector:
        """β at any C of the path; the second class is positive."""
        C = min(self._inside(C), float(self.C[-1]))
        k = int(np.clip(np.searchsorted(self.C, C) - 1, 0, max(0, len(self.C) - 2)))
        after = min(k + 1, len(self.C) - 1)
        width = self.C[after] - self.C[k]
        share = (C - self.C[k]) / width if width > 0 else 0.0
        between: Vector = (1.0 - share) * self.dual_coef[k] + share * self.dual_coef[after]
        return between

    def decision_function(self, X: Any, C: float) -> Vector:
        """Decision values of samples at any C of the path."""
        model = self._source[0]
        beta, walk = self.coefficients(C), self._walk
        X = model._validate_for_predict(X)
        carries = np.flatnonzero(beta)
        kernel, threads = walk.data.kernel, walk.options.n_threads
        if kernel.domain == "matrix":
            values = np.asarray(X, dtype=np.float64)[:, carries] @ beta[carries]
        else:
            features = kernel.prepare(X, np.float64)
            values = product(kernel, features, walk.whole.exact(carries), beta[carries], threads)
        found: Vector = values + self.certified(C)[1]
        return found

    def certified(self, C: float) -> tuple[Certificate, float]:
        """How far the solution at C is from the optimum, by the data alone, and its intercept."""
        C = self._inside(C)
        walk = self._walk
        # in the problem the first class is positive
        beta = -self.coefficients(C)[walk.rows]
        loss, weight = Hinge(), C * walk.w
        qp = loss.box_qp(walk.y, weight, walk.intercept)
        beta = walk.at_ends(beta, C)
        F = walk.K @ beta
        b = survey(qp, beta, F).thresholds
        proof = certificate(qp, loss, walk.y, weight, beta, F, b, walk.data.psd)
        return proof, -float(b.sum())

    def model(self, C: float) -> SVC:
        """A fitted and certified ``SVC`` of this C, which has nothing left to solve."""
        source, X, y, sample_weight = self._source
        machine = clone(source).set_params(C=self._inside(C), warm_start=True)
        machine._warm = [-self.coefficients(C)[self._walk.order] / C]
        machine.fit(X, y, sample_weight)
        return machine.set_params(warm_start=source.warm_start)

    def _inside(self, C: float) -> float:
        last = np.inf if self.constant else self.C[-1]
        if not self.C[0] <= C <= last:
            raise InvalidInputError(f"C={C:g} is outside of the path, which goes from {self.C[0]:g} to {self.C[-1]:g}.")
        return float(C)


def solution_path(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    C_min: float | None = None,
    C_max: float | None = None,
    time_limit: float | None = None,
) -> SolutionPath:
    """The exact solutions of a two-class SVC for all C in a range.

    Between two breaks β is linear in C, so that the path is known everywhere. It costs about as much as some fits for
    each sample: meant for up to one or two thousand of them.

    Parameters
    ----------
    model : SVC
        Its kernel, class_weight and fit_intercept are used; it need not be fitted, and is not changed.
    X, y, sample_weight : the data.
    C_min, C_max : float, default=None
        The range; None is 1/1000 and 1000, over the mean of k(x, x).
    time_limit : float or None, default=None
        Seconds after which the path ends where it is, with a warning.

    Returns
    -------
    path : SolutionPath
        Its breaks, and the solution, the decision function and the fitted SVC of any C between them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC, solution_path
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> path = solution_path(SVC(kernel="linear"), X, [0, 0, 1, 1], C_min=0.1, C_max=10.0)
    >>> path.C
    array([0.1       , 0.16666667, 0.66666667, 2.        ])
    >>> path.coefficients(1.0)
    array([ 0., -1.,  1.,  0.])
    >>> path.constant
    True
    """
    if not isinstance(model, SVC) or model.loss != "hinge":
        found = f"{type(model).__name__} with loss={getattr(model, 'loss', None)!r}"
        raise InvalidInputError(f"A path in C is that of mercer's SVC with hinge loss, but {found} was given.")
    first = clone(model).set_params(C=1.0, tol=1e-3, warm_start=False, time_limit=time_limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # only its kernel and its classes are used
        first.fit(X, y, sample_weight)
    if len(first.classes_) != 2:
        raise InvalidInputError(f"A path in C is that of two classes, but y has {len(first.classes_)}: take a pair.")
    (posed,) = posed_problems(first, X, y, sample_weight)
    n = len(posed.rows)
    needed = 8 * n**2 * 6
    if needed > MEMORY * available_bytes():
        raise InvalidInputError(
            f"The path of {n} samples takes about {needed / 2**30:.1f} GB. Use fewer samples, or fits with "
            "warm_start=True at the C of interest."
        )
    options = Options(tol=TOL, n_threads=thread_count(model.n_jobs))
    with Clock(time_limit) as clock, one_blas_thread():
        problem = posed.problem
        walk = _Walk(posed.machine.data, posed.rows, problem.y, problem.weight, problem.intercept, options)
        unit = max(float(np.mean(np.diagonal(walk.K))), np.finfo(np.float64).tiny)
        low = RANGE[0] / unit if C_min is None else float(C_min)
        high = max(RANGE[1] / unit, low) if C_max is None else float(C_max)
        if not 0 < low <= high < np.inf:
            raise InvalidInputError(f"C_min={low:g} and C_max={high:g}: give 0 < C_min <= C_max < inf.")
        status = walk.run(low, high, clock)
    if status is not Status.CONVERGED:
        reason = {Status.TIME_LIMIT: f"time_limit={time_limit} s", Status.INTERRUPTED: "interrupted"}
        why = reason.get(status, f"{len(walk.breaks)} breaks")
        warn_user(
            f"The path ended early ({why}): it goes from C = {low:g} to {walk.breaks[-1].C:g} instead of {high:g}.",
            ConvergenceWarning,
        )
    return walk.path(first, (first, X, y, sample_weight))


@dataclass(frozen=True, eq=False)
class _Break:
    """The solution at one C."""

    C: float
    beta: Vector
    n_free: int


class _Walk:
    """The walk along C: sets of samples, and β at each break. The first class is positive here."""

    def __init__(self, data: Data, rows: Vector, y: Vector, w: Vector, intercept: bool, options: Options) -> None:
        self.whole, self.rows, self.y, self.w = data, rows, y, w
        self.intercept, self.options = bool(intercept), options
        self.data = data if len(rows) == data.n else data.take(rows)
        self.K = self.data.matrix(np.float64, options.n_threads)
        self.largest = float(np.abs(self.K).max())
        # the samples in the order of a fit: the first class first
        self.order = np.concatenate([rows[y > 0], rows[y < 0]])
        self.breaks: list[_Break] = []
        self.constant = False

    def path(self, model: SVC, source: tuple[Any, Any, Any, Any]) -> SolutionPath:
        """The breaks, with the second class positive."""
        beta = np.zeros((len(self.breaks), self.whole.n))
        beta[:, self.rows] = [-one.beta for one in self.breaks]
        C = np.array([one.C for one in self.breaks])
        found = SolutionPath(
            C=C,
            dual_coef=beta + 0.0,
            intercept=np.zeros(len(C)),
            n_support=np.count_nonzero(beta, axis=1),
            n_free=np.array([one.n_free for one in self.breaks]),
            classes=model.classes_,
            constant=self.constant,
            _walk=self,
            _source=source,
        )
        found.intercept[:] = [found.certified(c)[1] for c in C]
        return found

    # ---- the walk ------------------------------------------------------------------------------------------------

    def run(self, C: float, end: float, clock: Clock) -> Status:
        """From C to the end."""
        beta = self._solve(C, None, clock)
        limit = BREAKS_PER_SAMPLE * len(beta) + 100
        while True:
            beta = self.at_ends(beta, C)
            F = self.K @ beta
            b = float(survey(self._qp(C), beta, F).thresholds.sum())
            self.breaks.append(_Break(C, beta, int(np.count_nonzero(self._free(beta, C)))))
            if end <= C:
                return Status.CONVERGED
            over = clock.over()
            if over is not None:
                return over
            if len(self.breaks) > limit:
                return Status.MAX_ITER
            moved = self._step(C, end, beta, F, b)
            if moved is None:
                # rounding has hidden which samples move on: the solution a little farther along is solved for
                C = min(end, C * (1.0 + 1e-7))
                beta = self._solve(C, beta, clock)
                continue
            C, beta = moved
            if np.isinf(C):
                self.constant = True
                return Status.CONVERGED

    def _step(self, C: float, end: float, beta: Vector, F: Vector, b: float) -> tuple[float, Vector] | None:
        """The next break and its β; None if no direction is consistent."""
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
            return np.inf, beta  # nothing is inside the margin: d = 0
        # of β, then of the margin: how far until something changes
        with np.errstate(divide="ignore", invalid="ignore"):
            rate, gap = self.y * d, self.w * C - alpha
            to_zero = np.where(moving & (rate < 0), alpha / -rate, np.inf)
            to_bound = np.where(moving & (rate > self.w), gap / (rate - self.w), np.inf)
            turn, distance = self.y * g, margin - 1.0
            slow = NO_RATE * max(float(np.abs(turn).max()), np.finfo(np.float64).tiny)
            # those on the margin that stay are known to turn away from it
            leaving = ~moving & np.where(at_bound, turn > slow, turn < -slow) & ~on_margin
            to_margin = np.where(leaving, np.abs(distance / turn), np.inf)
        length = float(min(to_zero.min(), to_bound.min(), to_margin.min()))
        length = min(length, end - C)
        if length <= 1e-13 * C and length < end - C:
            return None
        C_next = C + length
        if C_next > end * (1 - 1e-15):
            C_next = end
        moved = beta + length * d
        # exactly at the end of the box where the step has brought it there
        reached = length * (1.0 + 1e-9)
        moved = np.where(to_zero <= reached, 0.0, np.where(to_bound <= reached, self.y * self.w * C_next, moved))
        moved = np.where(at_bound & ~moving, self.y * self.w * C_next, moved)
        return C_next, self._corrected(moved, C_next)

    def _direction(self, free: Mask, at_bound: Mask, on_margin: Mask) -> tuple[Mask, Vector, Vector] | None:
        """Who moves, and the derivatives of β and of the decision values; None if nothing is consistent.

        Of those on the margin, first all move; then one after the other changes its mind where a sign is wrong.
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
            # the worst one, or the first where the worst has been tried before
            size = np.where(wrong, np.abs(rate) / no_rate, np.abs(turn) / no_turn)[candidates]
            chosen = candidates[0] if key in seen else candidates[np.argmax(size)]
            seen.add(key)
            moving = moving.copy()
            moving[chosen] = ~moving[chosen]
        return None

    def _derivatives(self, moving: Mask, at_bound: Mask) -> tuple[Vector, Vector]:
        """d of β and g of the decision values, for given sets."""
        d = np.where(at_bound, self.y * self.w, 0.0)
        from_bound = self.K @ d
        index = np.flatnonzero(moving)
        e = 0.0
        if len(index):
            d[index], e = self._saddle(index, -from_bound[index], -float(d.sum()))
            from_bound = from_bound + self.K[:, index] @ d[index]
        return d, from_bound + e

    def _saddle(self, index: Vector, r: Vector, s: float) -> tuple[Vector, float]:
        """x and e of  K x + e = r, Σx = s  at some samples; of several solutions the shortest."""
        m = len(index)
        M = np.zeros((m + self.intercept, m + self.intercept))
        M[:m, :m] = self.K[np.ix_(index, index)]
        right = r
        if self.intercept:
            M[:m, m] = M[m, :m] = 1.0
            right = np.append(r, s)
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            try:
                x = linalg.solve(M, right, assume_a="sym", check_finite=False)
            except (linalg.LinAlgError, linalg.LinAlgWarning):
                x = linalg.lstsq(M, right, cond=1e-11, check_finite=False)[0]
        return x[:m], float(x[m]) if self.intercept else 0.0

    def _corrected(self, beta: Vector, C: float) -> Vector:
        """β moved back to the margin and the sum, from which rounding has taken it."""
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
        """Without free samples: β grows in proportion to C until no intercept is left but one.

        b is at least y − f of every β that may grow, and at most that of every β that may shrink. Their difference is
        convex in C: from the right, Newton's steps do not pass its zero.
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
        """β, exactly at an end of its box where only rounding keeps it off."""
        alpha, room = self.y * beta, self.w * C
        alpha = np.where(alpha <= AT_END * room, 0.0, np.where(alpha >= room * (1.0 - AT_END), room, alpha))
        return self.y * alpha

    def _qp(self, C: float) -> Any:
        return Hinge().box_qp(self.y, C * self.w, self.intercept)

    def _solve(self, C: float, start: Vector | None, clock: Clock) -> Vector:
        """β at C, without a path."""
        from mercer.estimators.base import near

        qp = self._qp(C)
        beta = near(qp, np.zeros(len(self.y)) if start is None else start)
        assert beta is not None
        run = WholeMatrix(self.K, qp, beta, self.options, clock)
        run.run(self.options.tol)
        return run.beta
