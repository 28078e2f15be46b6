"""A primal-dual interior-point method for the box QP with a small dense matrix.

    min  ½β'Qβ − linear'β + Σ l1|β| + ½Σ ridge β²    s.t.  lower ≤ β ≤ upper,  Aβ = sums  (one row of A per group)

Mehrotra's predictor-corrector (SIAM J. Optimization 2, 1992) in the form for quadratic programs of Nocedal & Wright,
*Numerical Optimization*, algorithm 16.4. Where l1 > 0 the variable is split, β = p − m with p, m ≥ 0, and the parts are
eliminated again from the Newton system, so that each iteration factors one matrix of the size of β:

    (Q + ridge + D) Δβ + A'Δb = r,     AΔβ = sums − Aβ

with D = Θ for a whole variable (Θ = multiplier/distance summed over its bounds) and D = 1/(1/Θ_p + 1/Θ_m) for a split
one. The cost is that of about 20 Cholesky factorisations, whatever C and the scaling.

An interior point is at no bound. At the end a variable is set to a bound if the multiplier outweighs its distance, and
the other variables are solved for on the resulting face (`mercer.problems.face`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mercer.losses.base import BoxQP, Index, Vector
from mercer.problems.clock import Clock
from mercer.problems.dual import dual_objective, feasible_start, infeasibility, violation
from mercer.problems.face import Saddle, polish

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

# factorisations of a whole run, and of one more step and the end of the run
INTERIOR_STEPS, STEPS_TO_FINISH = 25, 3
# the run ends after this many steps without an error below this share of the smallest one so far
PATIENCE, IMPROVED = 15, 0.9
# floating point operations of a factorisation per second, on one thread
SPEED = 8e9
# how far towards the nearest bound a step may go
TO_THE_BOUNDARY = 0.995
# added to the diagonal, relative to its largest entry: the barrier itself regularises most
REGULARISATION = 1e-14
# an eigenvalue below minus this, relative to the largest diagonal entry, is negative beyond rounding
INDEFINITE = 1e-9
# an objective below this, relative to the unit of the program, counts as zero
SMALLEST = 1e-6
# if rounding is more than this share of the objective, it is not subtracted from the error
ROUNDED = 1e-6
# objectives with a relative difference below this count as equal when one of two solutions is chosen
SAME = 1e-7
# an error of a sum below this, relative to the largest |β|, is rounding
SUM_ROUNDING = 1e-9
# bounds whose sum differs from the given one by less than this share are the only feasible point
AT_ALL_BOUNDS = 1e-13


class InteriorResult(NamedTuple):
    """The solution, the number of iterations, and whether it converged; if not, beta is the best point found."""

    beta: Vector
    n_iter: int
    converged: bool


def factor_seconds(n: int) -> float:
    """Estimate the seconds to factor a matrix of n rows on one thread."""
    return n**3 / 3 / SPEED


def interior_point(
    K: Matrix, qp: BoxQP, tol: float = 1e-9, max_iter: int = 100, clock: Clock | None = None
) -> InteriorResult:
    """Minimise until the duality gap is at most ``tol`` times the objective, or the time is over.

    K is the dense Gram matrix of the samples. The result has not converged if Q + ridge has a negative eigenvalue
    beyond rounding, if the box does not allow the sums, or if the objective is unbounded.
    """
    Q = np.asarray(K, dtype=np.float64)
    if qp.sample is not None:
        Q = Q[np.ix_(qp.sample, qp.sample)]
    beta, is_open = _presolve(qp)
    variables = np.flatnonzero(is_open)
    if len(variables) == 0 or not np.isfinite(Q).all():
        return InteriorResult(feasible_start(qp, near=beta), 0, len(variables) == 0 and _is_feasible(qp, beta))
    inner = replace(
        qp.take(variables, None),
        linear=(qp.linear - Q @ beta)[variables],
        sums=qp.sums - qp.group_sums(beta),
    )
    Q = Q[np.ix_(variables, variables)] + np.diag(inner.ridge)
    if not (Q.any() or inner.linear.any() or inner.l1.any()):
        beta[variables] = feasible_start(inner)
        return InteriorResult(beta, 0, _is_feasible(qp, beta))
    program = _Program.of(Q, inner)
    # the ridge is in Q now
    inner = replace(inner, ridge=np.zeros(len(variables)))
    with np.errstate(all="ignore"):
        start, point, n_iter, converged = _iterate(program, tol, max_iter, Clock() if clock is None else clock)
        beta[variables] = _finish(program, inner, start, point)
    return InteriorResult(beta, n_iter, bool(converged and _is_feasible(qp, beta) and _is_convex(Q)))


@dataclass(frozen=True, eq=False)
class _Program:
    """The program over parts: n unsplit variables or positive parts, then the negative parts of split variables.

    ``cost`` is the linear cost of each part; ``below`` and ``above`` mark finite bounds. ``alone`` is the approximate
    value of a variable if it were the only one, ``reach`` the distance that a part is expected to move, ``unit`` the
    expected size of the objective.
    """

    Q: Matrix
    cost: Vector
    lower: Vector
    upper: Vector
    below: Mask
    above: Mask
    split: Index
    A: Matrix
    sums: Vector
    reach: Vector
    alone: float
    unit: float

    @classmethod
    def of(cls, Q: Matrix, qp: BoxQP) -> _Program:
        """Split the variables that have an l1 term and may have both signs."""
        both = (qp.l1 > 0) & (qp.lower < 0) & (qp.upper > 0)
        split = np.flatnonzero(both)
        paid = np.where(both | (qp.lower >= 0), qp.l1, -qp.l1)
        lower = np.concatenate([np.where(both, 0.0, qp.lower), np.zeros(len(split))])
        upper = np.concatenate([qp.upper, -qp.lower[split]])
        return cls(
            Q=Q,
            cost=np.concatenate([paid - qp.linear, (paid + qp.linear)[split]]),
            lower=lower,
            upper=upper,
            below=np.isfinite(lower),
            above=np.isfinite(upper),
            split=split,
            A=qp.incidence(),
            sums=qp.sums,
            **_units(Q, qp, split),
        )

    @property
    def n(self) -> int:
        return len(self.Q)

    @property
    def steep(self) -> float:
        """The expected size of slopes and thresholds."""
        return self.unit / (self.alone * self.n)

    def whole(self, parts: Vector) -> Vector:
        """β = p − m."""
        beta = parts[: self.n].copy()
        beta[self.split] -= parts[self.n :]
        return beta

    def parts(self, per_variable: Vector) -> Vector:
        """The derivative with respect to the parts, from the derivative with respect to β."""
        return np.concatenate([per_variable, -per_variable[self.split]])


@dataclass(eq=False)
class _Point:
    """Parts x, their distances (down, up) to the bounds and the multipliers (z_down, z_up) of these, thresholds b.

    The distances are updated, not recomputed: upper − x would lose all digits near a large bound. For an infinite bound
    the distance is 1 and the multiplier 0.
    """

    x: Vector
    down: Vector
    up: Vector
    z_down: Vector
    z_up: Vector
    b: Vector

    def moved(self, step: _Point, length: float) -> _Point:
        return _Point(*(getattr(self, k) + length * getattr(step, k) for k in self.__dataclass_fields__))

    def complementarity(self) -> float:
        return float(self.down @ self.z_down + self.up @ self.z_up)

    def longest_step(self, step: _Point) -> float:
        """The largest multiple of ``step`` up to 1 that keeps every distance and multiplier from becoming negative."""
        longest = 1.0
        for k in ("down", "up", "z_down", "z_up"):
            value, change = getattr(self, k), getattr(step, k)
            falling = change < 0
            longest = min(longest, np.min(-value[falling] / change[falling], initial=1.0))
        return float(longest)


def _iterate(program: _Program, tol: float, max_iter: int, clock: Clock) -> tuple[_Point, _Point, int, bool]:
    """Follow the central path. Returns its start, the best point, the number of steps and whether it is within tol."""
    start = point = _start(program)
    n_bounds = int(program.below.sum() + program.above.sum())
    best, smallest, converged, stalled = point, np.inf, False, 0
    for n_iter in range(max_iter + 1):
        error, size = _error(program, point)
        stalled = 0 if error < IMPROVED * smallest else stalled + 1
        if error < smallest:
            best, smallest = point, error
            converged = error <= tol * size
        if converged or stalled >= PATIENCE or n_iter == max_iter or np.isnan(error):
            break
        if clock.over_in(STEPS_TO_FINISH * factor_seconds(program.n)) is not None:
            break
        newton = _newton(program, point)
        if newton is None:
            break
        mu = point.complementarity() / max(n_bounds, 1)
        predictor = newton.step(-point.down * point.z_down, -point.up * point.z_up)
        length = point.longest_step(predictor)
        mu_ahead = point.moved(predictor, length).complementarity() / max(n_bounds, 1)
        target = mu * (mu_ahead / mu) ** 3 if mu > 0 else 0.0
        corrector = newton.step(
            np.where(program.below, target - point.down * point.z_down - predictor.down * predictor.z_down, 0.0),
            np.where(program.above, target - point.up * point.z_up - predictor.up * predictor.z_up, 0.0),
        )
        length = point.longest_step(corrector)
        point = point.moved(corrector, length if length == 1.0 else TO_THE_BOUNDARY * length)
    return start, best, n_iter, converged


class _Units(TypedDict):
    reach: Vector
    alone: float
    unit: float


def _units(Q: Matrix, qp: BoxQP, split: Index) -> _Units:
    """The expected size of the parts and of the objective: see `_Program`."""
    curvature = float(np.abs(np.diag(Q)).mean())
    gradient = float(np.abs(qp.linear).max())
    room = qp.upper - qp.lower
    total = float(np.abs(qp.sums).max(initial=0.0))
    alone = float(min(gradient / curvature if curvature > 0 else np.inf, np.median(room)))
    if not 0 < alone < np.inf:
        alone = total / len(Q) or 1.0
    # a ridge bounds like a box: its slope exceeds the linear term beyond linear/ridge
    soft = np.divide(gradient, qp.ridge, out=np.full(len(Q), alone), where=(qp.ridge > 0) & (gradient > 0))
    reach = np.where(np.isfinite(room), 0.5 * room, np.maximum(soft, alone))
    unit = gradient * alone * len(Q) if gradient > 0 else curvature * total**2
    return _Units(reach=np.concatenate([reach, reach[split]]), alone=alone, unit=unit or 1.0)


def _start(program: _Program) -> _Point:
    """The middle of the box, with equal products of distances and multipliers.

    With multipliers of the size of the slope there, the first steps are long.
    """
    room = program.upper - program.lower
    distance = np.minimum(program.reach, 0.5 * room)
    x = np.where(program.below, program.lower + distance, np.where(program.above, program.upper - distance, 0.0))
    down = np.where(program.below, x - program.lower, 1.0)
    up = np.where(program.above, program.upper - x, 1.0)
    slope = program.parts(program.Q @ program.whole(x)) + program.cost
    largest = max(float(np.abs(slope).max()), float(np.abs(program.cost).max()), np.finfo(np.float64).tiny)
    product = float(np.median(distance)) * largest
    return _Point(
        x=x,
        down=down,
        up=up,
        z_down=np.where(program.below, product / down, 0.0),
        z_up=np.where(program.above, product / up, 0.0),
        b=np.zeros(len(program.sums)),
    )


def _residuals(program: _Program, point: _Point) -> tuple[Vector, Vector]:
    """The residuals of stationarity, per part, and of the sums."""
    beta = program.whole(point.x)
    slope = program.parts(program.Q @ beta + point.b @ program.A) + program.cost
    return point.z_down - point.z_up - slope, program.sums - program.A @ beta


def _error(program: _Program, point: _Point) -> tuple[float, float]:
    """(the duality gap plus a bound for the residuals, minus its rounding error; the size of the objective)."""
    beta = program.whole(point.x)
    value = 0.5 * float(beta @ program.Q @ beta) + float(program.cost @ point.x)
    stationarity, sums = _residuals(program, point)
    error = point.complementarity()
    error += float(np.abs(stationarity) @ np.maximum(np.abs(point.x), program.alone))
    error += float(np.abs(sums) @ np.maximum(np.abs(point.b), program.steep))
    size = max(abs(value), SMALLEST * program.unit)
    # each term of Qβ is at most √(Q_ii Q_jj) |β_j| and is rounded
    terms = float(np.sqrt(np.abs(np.diag(program.Q))) @ np.abs(beta)) ** 2 + float(np.abs(program.cost) @ point.x)
    rounding = np.finfo(np.float64).eps * terms
    return (max(0.0, error - rounding) if rounding < ROUNDED * size else error), size


@dataclass(eq=False)
class _Newton:
    """The factored Newton system at a point."""

    program: _Program
    point: _Point
    theta: Vector
    saddle: Saddle
    stationarity: Vector
    sums: Vector

    def step(self, down: Vector, up: Vector) -> _Point:
        """The direction in which distance · multiplier changes by ``down`` and ``up`` and the residuals vanish."""
        program, point, split, n = self.program, self.point, self.program.split, self.program.n
        r = self.stationarity + down / point.down - up / point.up
        plus, minus = self.theta[split], self.theta[n:]
        r_whole = r[:n].copy()
        r_whole[split] = (r[split] * minus - r[n:] * plus) / (plus + minus)
        d_beta, d_b = self.saddle.solve(r_whole, self.sums)
        dx = np.concatenate([d_beta, np.empty(len(split))])
        # compute the stiffer of the two parts from QΔβ + A'Δb; the other follows from Δβ
        pull = (r_whole - self.saddle.diagonal * d_beta)[split]
        d_minus = (r[n:] + pull) / minus
        d_plus = (r[split] - pull) / plus
        dx[n:] = np.where(minus >= plus, d_minus, d_plus - d_beta[split])
        dx[split] = np.where(minus >= plus, d_beta[split] + d_minus, d_plus)
        d_down = np.where(program.below, dx, 0.0)
        d_up = np.where(program.above, -dx, 0.0)
        return _Point(
            x=dx,
            down=d_down,
            up=d_up,
            z_down=(down - point.z_down * d_down) / point.down,
            z_up=(up - point.z_up * d_up) / point.up,
            b=d_b,
        )


def _newton(program: _Program, point: _Point) -> _Newton | None:
    """Factor the Newton system; None if that fails."""
    theta = point.z_down / point.down + point.z_up / point.up
    diagonal = theta[: program.n].copy()
    plus, minus = theta[program.split], theta[program.n :]
    diagonal[program.split] = plus * minus / (plus + minus)
    saddle = Saddle.build(program.Q, diagonal, program.A, REGULARISATION)
    return None if saddle is None else _Newton(program, point, theta, saddle, *_residuals(program, point))


def _finish(program: _Program, qp: BoxQP, start: _Point, point: _Point) -> Vector:
    """β with variables at the bounds that the multipliers indicate, optimal on that face; the interior point if better.

    The ridge is in program.Q, not in qp.
    """
    interior = feasible_start(qp, near=program.whole(point.x))
    # a multiplier is compared with a distance times the curvature, or with their ratio at the start
    curvature = float(np.diag(program.Q).mean())
    at_lower = program.below & (point.z_down > point.down * np.maximum(curvature, start.z_down / start.down))
    at_upper = program.above & (point.z_up > point.up * np.maximum(curvature, start.z_up / start.up)) & ~at_lower
    parts = np.where(at_lower, program.lower, np.where(at_upper, program.upper, point.x))
    fixed = at_lower | at_upper
    is_free = ~fixed[: program.n]
    is_free[program.split] |= ~fixed[program.n :]
    beta = np.clip(program.whole(parts), qp.lower, qp.upper)
    polish(program.Q, qp, beta, is_free)
    if not _is_feasible(qp, beta):
        return interior
    value, other = (dual_objective(qp, c, program.Q @ c) for c in (beta, interior))
    if not value >= other - SAME * abs(other):
        return interior
    return beta if violation(qp, beta, program.Q @ beta) <= violation(qp, interior, program.Q @ interior) else interior


def _presolve(qp: BoxQP) -> tuple[Vector, Mask]:
    """(β of variables that their bounds or their group's sum determine, 0 for the others; a mask of the others)."""
    is_open = qp.lower < qp.upper
    beta = np.where(is_open, 0.0, qp.lower)
    for g in range(qp.n_groups):
        members = qp.group == g
        for bound in (qp.lower, qp.upper):
            at_bound = bound[members]
            if not np.isfinite(at_bound).all():
                continue
            missing = float(abs(at_bound.sum() - qp.sums[g]))
            if missing <= AT_ALL_BOUNDS * float(np.abs(at_bound).sum() + abs(qp.sums[g])):
                beta[members] = at_bound
                is_open[members] = False
    return beta, is_open


def _is_feasible(qp: BoxQP, beta: Vector) -> bool:
    scale = max(np.abs(beta).max(initial=0.0), np.abs(qp.sums).max(initial=0.0))
    return bool(infeasibility(qp, beta) <= SUM_ROUNDING * scale)


def _is_convex(Q: Matrix) -> bool:
    """Whether Q has no negative eigenvalue beyond rounding."""
    shifted = Q + np.diag(np.full(len(Q), INDEFINITE * float(np.abs(np.diag(Q)).max())))
    try:
        linalg.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return not Q.any()
    return True
