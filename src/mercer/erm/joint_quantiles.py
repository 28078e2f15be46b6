"""Several quantiles that must not cross at the samples, by the method of multipliers.

    min over f_q, b_q   Σ_q ½|f_q|² + Σ_i h_i(z_i)   s.t.  z_iq = f_q(x_i) + b_q

where h_i has the pinball losses of sample i and is ∞ unless z_i1 ≤ z_i2 ≤ ... (`sorted_pinball`). Takeuchi, Le, Sears &
Smola, JMLR 7 (2006).

Each round minimises over f, b and z the objective plus λ'(f + b − z) + |f + b − z|²/(2μ), a smooth function of f and b
with the gradient G = λ + (f + b − z)/μ, by a semismooth Newton method; then λ becomes G and μ smaller (Li, Sun & Toh,
SIAM J. Optimization 28, 2018). The loss is curved only where a value is at its kink or quantiles are together, so that
a Newton step is a system over these few directions (`face_system`). −G is feasible for the dual, so that each round has
a certificate. The independent solutions are a good start. A round begins with a step on the face where the last one
ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mercer.erm.face_system import newton_step
from mercer.erm.sorted_pinball import Face, SortedPinball
from mercer.gram.products import StoredMatrix
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Certificate, Status, TracePoint

# the first μ, in units of the spread of the residuals over C; its factor after a round with few steps, and with many
FIRST, SHRINK, FEW, SHRINK_LESS = 0.2, 0.1, 6, 0.3
# steps of a round after which it begins again with another μ, this factor larger
MOST_STEPS, LARGER = 60, 5.0
# most rounds, and rounds without a smaller gap after which rounding allows no more
ROUNDS, PATIENCE = 60, 6
# a round ends at a gap of this share of |f + b − z|²/(2μ), or if the error of f costs this share of the goal
SHARE_OF_DISTANCE, SHARE_OF_GOAL = 0.05, 0.1
# or after this many steps that lower neither gap nor objective, if the gap is within this share of the objective
STANDSTILL, ROUNDED = 2, 1e-9
# μ stays as it is if the largest |f + b − z| at all samples costs this share of the goal
CLOSE = 0.1
# share of the predicted decrease that a step must reach; the shortest step; rounding of the objective
DECREASE, SHORTEST, ROUNDING = 1e-4, 1e-10, 1e-13
# the sums of the gradients count as 0 up to this share of their terms; most steps to reach it
BALANCED, SEARCH = 1e-14, 50


class JointResult(NamedTuple):
    """β, F = Kβ (columns for quantiles) and b, how the run ended, Newton steps and trace."""

    beta: Matrix
    F: Matrix
    b: Vector
    status: Status
    steps: int
    trace: list[TracePoint]


class _Point(NamedTuple):
    """β, F = Kβ and b."""

    beta: Matrix
    F: Matrix
    b: Vector


class _Value(NamedTuple):
    """The value, gradient G and face of the losses in a round."""

    loss: float
    G: Matrix
    face: Face


class _Round(NamedTuple):
    """The losses with multipliers λ and μ."""

    losses: SortedPinball
    multiplier: Matrix
    mu: Vector

    def loss(self, t: Matrix) -> float:
        """The least h(z) + λ'(t − z) + |t − z|²/(2μ) over z."""
        z = self.losses.nearest(t + self.mu[:, None] * self.multiplier, self.mu)
        return self._paid(t - z) + self.losses.value(z)

    def _paid(self, away: Matrix) -> float:
        return float(np.vdot(self.multiplier, away)) + 0.5 * float(np.sum(away**2 / self.mu[:, None]))

    def evaluate(self, t: Matrix) -> _Value:
        """The loss at t with its gradient and its face."""
        s = t + self.mu[:, None] * self.multiplier
        z = self.losses.nearest(s, self.mu)
        face = self.losses.face(z, s)
        return _Value(self._paid(t - z) + self.losses.value(z), (s - z) / self.mu[:, None], face)

    def distance(self, G: Matrix) -> float:
        """|t − z|²/(2μ)."""
        return 0.5 * float(np.sum(self.mu[:, None] * (G - self.multiplier) ** 2))

    def balanced(self, F: Matrix, b: Vector) -> Vector:
        """The b for which the gradients of each quantile add up to 0: Newton's method, steps halved if sums grow."""
        found = self.evaluate(F + b)
        for _ in range(SEARCH):
            sums = found.G.sum(axis=0)
            if np.abs(sums).max() <= BALANCED * np.abs(found.G).sum():
                break
            step = np.linalg.lstsq(found.face.total(1.0 / self.mu), -sums, rcond=1e-12)[0]
            length, moved = 1.0, found
            while length >= SHORTEST:
                moved = self.evaluate(F + b + length * step)
                if np.linalg.norm(moved.G.sum(axis=0)) < np.linalg.norm(sums):
                    break
                length *= 0.5
            else:
                break
            b, found = b + length * step, moved
        return b


def solve_joint(
    gram: StoredMatrix,
    losses: SortedPinball,
    start: tuple[Matrix, Matrix, Vector],
    certify: Callable[[Matrix, Matrix, Vector], Certificate],
    tol: float,
    max_iter: int,
    clock: Clock,
) -> JointResult:
    """Solve from β, F and b of the independent problems until the relative gap of a model is at most ``tol``."""
    point = _Point(*start)
    spread = float(np.std(losses.y[:, None] - point.F - point.b)) or 1.0
    best, smallest, since, trace, steps = point, np.inf, 0, list[TracePoint](), 0
    smooth = _Round(losses, -point.beta, np.full(gram.n, FIRST * spread / float(losses.weight.mean())))
    status: Status | None = None
    for _ in range(ROUNDS):
        first, limit = steps, steps + MOST_STEPS if max_iter < 0 else min(max_iter, steps + MOST_STEPS)
        point, steps, solved = _minimised(gram, smooth, point, tol, steps, limit, clock)
        b = smooth.balanced(point.F, point.b)
        found = smooth.evaluate(point.F + b)
        beta = -found.G + found.G.mean(axis=0)  # sums that are 0 beyond rounding
        # −G is feasible at any time, but has the rounding of f divided by μ; β itself is as exact as the Newton system
        models = (point, _Point(beta, gram.product(beta), b))
        proof, model = min(((certify(*m), m) for m in models), key=_gap_of)
        gap = _gap_of((proof, model))
        trace.append(TracePoint(clock.seconds, steps, gap, proof.dual, gram.n))
        clock.report(trace[-1])
        since = 0 if gap < 0.9 * smallest else since + 1
        if gap < smallest:
            smallest, best = gap, model
        if gap <= tol:
            status = Status.CONVERGED
        else:
            status = clock.over() or (Status.MAX_ITER if 0 <= max_iter <= steps else None)
        if status is not None or since >= PATIENCE:
            break
        if not solved:
            smooth = smooth._replace(mu=LARGER * smooth.mu)
            continue
        # once the crossings cost less than the goal, a smaller μ gains nothing but rounding
        near = float(np.abs(smooth.mu[:, None] * (found.G - smooth.multiplier)).max()) * losses.weight.sum()
        factors = (1.0,) if near <= CLOSE * tol * abs(proof.primal) else (SHRINK, SHRINK_LESS)
        for factor in factors if steps - first <= FEW else factors[-1:]:
            following = _Round(losses, found.G, factor * smooth.mu)
            moved = _along_face(gram, following, point, found.face)
            steps += 1
            if moved is not None:
                break
        smooth, point = following, point if moved is None else moved
    return JointResult(*best, status or Status.STALLED, steps, trace)


def _gap_of(judged: tuple[Certificate, _Point]) -> float:
    proof = judged[0]
    return proof.relative_gap if proof.valid else np.inf


def _minimised(
    gram: StoredMatrix, smooth: _Round, point: _Point, tol: float, steps: int, limit: int, clock: Clock
) -> tuple[_Point, int, bool]:
    """The minimum of a round by Newton's method, all steps so far, and whether it was reached."""
    smallest, lowest, since = np.inf, np.inf, 0
    largest = float(np.abs(gram.diagonal).max(initial=0.0)) or 1.0
    while True:
        beta, F, b = point
        found = smooth.evaluate(F + b)
        rho = -(beta + found.G)
        K_rho, energy = gram.product(rho), 0.5 * float(np.vdot(beta, F))
        value, gap = energy + found.loss, 0.5 * float(np.vdot(rho, K_rho))
        # an error of f at all samples costs at most its size times all weights
        size = SHARE_OF_GOAL * tol * abs(value) / float(smooth.losses.weight.sum())
        goal = max(SHARE_OF_DISTANCE * smooth.distance(found.G), 0.5 * size**2 / largest)
        # the gain from the intercepts alone
        sums = found.G.sum(axis=0)
        slack = 0.5 * float(sums @ np.linalg.lstsq(found.face.total(1.0 / smooth.mu), sums, rcond=1e-12)[0])
        since = 0 if gap + slack < 0.5 * smallest or value < lowest - ROUNDING * abs(value) else since + 1
        smallest, lowest = min(smallest, gap + slack), min(lowest, value)
        if gap + slack <= goal or (since >= STANDSTILL and smallest <= ROUNDED * abs(value)):
            return point, steps, True
        if steps >= limit or clock.over() is not None:
            return point, steps, False
        direction = newton_step(gram.K, smooth.mu, found.face, rho, K_rho)
        if direction is None:
            return point, steps, False
        D, d = direction
        KD, steps = gram.product(D), steps + 1
        slope = float(sums @ d) - float(np.vdot(rho, KD))
        moved = _search(smooth, point, _Point(D, KD, d), value, slope)
        if moved is None:
            return point, steps, False
        point = moved


def _search(smooth: _Round, point: _Point, step: _Point, value: float, slope: float) -> _Point | None:
    """The point along a step with a sufficiently lower objective; None if there is none beyond rounding."""
    linear, square = float(np.vdot(point.beta, step.F)), float(np.vdot(step.beta, step.F))
    energy, length = 0.5 * float(np.vdot(point.beta, point.F)), 1.0
    while length >= SHORTEST:
        F, b = point.F + length * step.F, point.b + length * step.b
        now = energy + length * linear + 0.5 * length**2 * square + smooth.loss(F + b)
        if now <= value + DECREASE * length * slope + ROUNDING * abs(value):
            return _Point(point.beta + length * step.beta, F, b)
        length *= 0.5
    return None


def _along_face(gram: StoredMatrix, smooth: _Round, point: _Point, face: Face) -> _Point | None:
    """The minimum of a round as if its face were this one, if that lowers the objective; otherwise None.

    With the new μ the gradient of the point is far away, since the last round has moved it for the old one.
    """
    beta, F, b = point
    away = F + b - smooth.losses.y[:, None]
    rho = -(beta + smooth.multiplier + face.project(away, 1.0 / smooth.mu))
    direction = newton_step(gram.K, smooth.mu, face, rho, gram.product(rho))
    if direction is None:
        return None
    D, d = direction
    moved = _Point(beta + D, F + gram.product(D), b + d)
    before, after = (0.5 * float(np.vdot(p.beta, p.F)) + smooth.loss(p.F + p.b) for p in (point, moved))
    return moved if after < before else None
