"""A primal-dual interior-point method for linear machines, with systems over the p features or the n samples.

    min over w   ½Σ qⱼwⱼ² − v₀·w + Σ conjᵢ(linearᵢ − aᵢ·w),     conjᵢ(t) = max over the box of tβ − l1ᵢ|β| − ½ridgeᵢβ²

with rows aᵢ; at the optimum  q∘w = v₀ + A'β. v₀ is the contribution of samples whose β is fixed. Mehrotra's
predictor-corrector method (SIAM J. Optimization 2, 1992), as for the kernel machines, but with the samples eliminated:

    (diag q + A'DA) Δw = v₀ + A'(β + Dg) − q∘w,     Δβ = D (g − AΔw)

where D and g follow from the multipliers of each sample (see `mercer.linear._interior_loops`). An l1 penalty λ|wⱼ| is
the absolute loss of an additional sample with the row eⱼ: it only adds to the diagonal.

Each iteration costs n p² operations and four products with A. Their number hardly depends on C or on feature scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from mercer.linear.problem import Rows
from mercer.linear.systems import Tall, Wide
from mercer.losses.base import BoxQP, Vector

# a step may go this share of the way to the nearest bound
TO_THE_BOUNDARY = 0.995
# up to this many features the system over features is cheap, and better conditioned without a quadratic penalty
TALL_UP_TO = 300
# the first μ (distance times multiplier), in units of box width times slope; half or twice this is slower
FIRST = 0.25
# the run ends after this many iterations in a row without a better point: rounding prevents progress
PATIENCE = 12
# β of a point that is not the best one so far
NOT_YET = np.empty(0)


@dataclass(eq=False)
class Samples:
    """β and its multipliers for some samples, with work arrays for one step.

    ``parts`` are the distances to the bounds and their multipliers; ``wanted`` are the products that a step aims at.
    """

    linear: Vector
    l1: Vector
    ridge: Vector
    lower: Vector
    upper: Vector
    t: Vector = field(init=False)
    beta: Vector = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.linear)
        split = (self.l1 > 0) & (self.lower < 0) & (self.upper > 0)
        if split.any():
            bounds = [(np.zeros(n), self.upper), (np.zeros(n), 0.0 - self.lower)]
        else:
            # l1 |β| is linear if β has only one sign
            self.linear = self.linear - np.where(self.lower >= 0, self.l1, -self.l1)
            self.l1 = np.zeros(n)
            bounds = [(self.lower, self.upper)]
        parts = len(bounds)
        self.finite = [np.array([np.isfinite(pair[side]) for pair in bounds], dtype=np.float64) for side in (0, 1)]
        self.n_bounds = int(self.finite[0].sum() + self.finite[1].sum())
        self.t, self.beta = np.empty(n), np.empty(n)
        self.parts = [np.empty((parts, n)) for _ in range(4)]
        self.wanted = [np.zeros((parts, n)) for _ in range(2)]
        self.D, self.Dg, self.dbeta = np.empty(n), np.empty(n), np.empty(n)
        self.change = [np.empty((parts, n)) for _ in range(3)]

    def start(self, f: Vector, mu: float) -> None:
        """Set β and the multipliers to the point of the central path at decision values f."""
        from mercer.linear._interior_loops import centre

        np.subtract(self.linear, f, out=self.t)
        centre(self.t, self.l1, self.ridge, self.lower, self.upper, mu, self.beta, *self.parts)

    def curvature(self) -> Vector:
        """D, the derivative of β with respect to t on the central path."""
        self.aim(0.0)
        self.weigh()
        return self.D.copy()

    def weigh(self) -> None:
        """Compute D and Dg for the wanted products."""
        from mercer.linear._interior_loops import weights

        if not len(self.t):
            return
        weights(self.t, self.l1, self.ridge, self.beta, *self.parts, *self.wanted, self.D, self.Dg)

    def step(self, a: Vector) -> Vector:
        """Compute the step for the change a of f; returns [rate, products, slope, bend] of the compiled function."""
        from mercer.linear._interior_loops import step

        if not len(self.t):
            return np.zeros(4)
        args = (self.t, self.l1, self.ridge, self.beta, *self.parts, *self.finite, *self.wanted)
        return np.array(step(*args, a, self.D, self.Dg, self.dbeta, *self.change))

    def aim(self, target: float) -> None:
        """Set the wanted products to ``target`` less the second-order terms of the current step; to 0 for target 0."""
        from mercer.linear._interior_loops import corrections

        if not len(self.t):
            return
        if target == 0:
            for wanted in self.wanted:
                wanted[:] = 0.0
        else:
            corrections(target, *self.finite, *self.change, *self.wanted)

    def move(self, length: float, a: Vector) -> None:
        """Move along the step."""
        from mercer.linear._interior_loops import move

        if not len(self.t):
            return
        move(length, a, self.dbeta, *self.change, *self.finite, self.t, self.beta, *self.parts)

    def loss_and_gap(self) -> tuple[float, float]:
        """The loss of these samples and their part of the duality gap."""
        from mercer.linear._interior_loops import loss_and_gap

        if not len(self.t):
            return 0.0, 0.0
        value, gap = loss_and_gap(self.t, self.l1, self.ridge, self.lower, self.upper, self.beta)
        return value, gap

    @classmethod
    def of(cls, qp: BoxQP) -> Samples:
        """The samples of a box program in which every infinite bound comes with a ridge."""
        return cls(qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper)

    @classmethod
    def absolute(cls, price: Vector) -> Samples:
        """Samples with the loss price · |f|, by which an l1 penalty is expressed."""
        zero = np.zeros(len(price))
        return cls(zero, zero, zero, 0.0 - price, price)


class SampleSystem(Protocol):
    """The samples of a central path: their β and multipliers, products with their rows, and the Newton system.

    `RowSystem` holds them in memory; `mercer.parts` leaves them where the rows are.

    Attributes
    ----------
    d : the number of features.
    n_bounds : the number of finite bounds.
    first_mu : the product of distance and multiplier at which a run begins.
    """

    d: int
    n_bounds: int
    first_mu: float

    def start_at_kinks(self, mu: float) -> tuple[Vector, Vector]:
        """Place every sample on the central path at its kink; returns A'β and A'D linear, and sets D."""

    def start(self, w: Vector, mu: float) -> Vector:
        """Place every sample on the central path at Aw; returns A'β."""

    def loss_and_gap(self) -> tuple[float, float]:
        """The loss of the samples and their part of the duality gap."""

    def keep(self) -> None:
        """Remember the present β as the best one."""

    def best(self) -> Vector:
        """The β that was remembered last."""

    def weigh(self, target: float) -> Vector:
        """Compute D and Dg for products of distance and multiplier near the target; returns A'(β + Dg)."""

    def factor(self, diagonal: Vector) -> bool:
        """Factor diag + A'DA for the D of the last ``weigh(0)``; False if that fails."""

    def solve(self, r: Vector) -> Vector:
        """Solve the factored system."""

    def apply(self, x: Vector) -> Vector:
        """A'DA x."""

    def step(self, dw: Vector) -> Vector:
        """Compute the step for the change dw of w; returns [rate, products, slope, bend] as `Samples.step`."""

    def move(self, length: float) -> None:
        """Move along the last step."""


class RowSystem:
    """Samples in memory, with a system over features or over samples."""

    def __init__(self, rows: Rows, qp: BoxQP, q: Vector, n_threads: int, other_system: bool) -> None:
        self.rows, self.n_threads, self.d = rows, n_threads, rows.d
        self.first_mu = first_mu(mu_sums(qp))
        self.samples = Samples.of(qp)
        self.n_bounds = self.samples.n_bounds
        # for n < p the n × n system is smaller and, if all features have a quadratic penalty, better conditioned
        wide = rows.n < rows.d and (bool(q[: rows.d - 1].all()) or rows.d > TALL_UP_TO)
        self.system = (Wide if wide != other_system else Tall)(rows, n_threads)
        self.solve, self.apply = self.system.solve, self.system.apply
        self.loss_and_gap = self.samples.loss_and_gap

    def start_at_kinks(self, mu: float) -> tuple[Vector, Vector]:
        """A'β and A'D linear with every sample at its kink."""
        samples = self.samples
        samples.start(samples.linear, mu)
        D = samples.curvature()
        return self._tdot(samples.beta), self._tdot(D * samples.linear)

    def start(self, w: Vector, mu: float) -> Vector:
        """A'β with every sample on the central path at Aw."""
        self.samples.start(self.rows.dot(w, self.n_threads), mu)
        return self._tdot(self.samples.beta)

    def keep(self) -> None:
        """Copy β."""
        self.kept = self.samples.beta.copy()

    def best(self) -> Vector:
        """The copy of β."""
        return self.kept

    def weigh(self, target: float) -> Vector:
        """A'(β + Dg) for the wanted products."""
        self.samples.aim(target)
        self.samples.weigh()
        return self._tdot(self.samples.beta + self.samples.Dg)

    def factor(self, diagonal: Vector) -> bool:
        """Factor the smaller system."""
        return self.system.factor(self.samples.D, diagonal)

    def step(self, dw: Vector) -> Vector:
        """The step for the change A dw of the decision values."""
        self.change = self.rows.dot(dw, self.n_threads)
        return self.samples.step(self.change)

    def move(self, length: float) -> None:
        """Move along the step."""
        self.samples.move(length, self.change)

    def _tdot(self, beta: Vector) -> Vector:
        return self.rows.tdot(beta, self.n_threads)


@dataclass
class Path:
    """The best point of a run.

    Attributes
    ----------
    w, beta : the primal and the dual variables; β is set at the end of the run.
    gap, primal : the duality gap, including a bound for the residual of q∘w = v₀ + A'β, and the primal value.
    n_iter : iterations so far.
    """

    w: Vector
    beta: Vector
    gap: float
    primal: float
    n_iter: int


def follow(
    rows: Rows,
    qp: BoxQP,
    q: Vector,
    l1: Vector,
    *,
    n_threads: int = 1,
    other_system: bool = False,
    **more: Any,
) -> Path:
    """`follow_path` for rows in memory. ``other_system`` exchanges the systems over features and over samples."""
    return follow_path(RowSystem(rows, qp, q, n_threads, other_system), q, l1, **more)


def follow_path(
    samples: SampleSystem,
    q: Vector,
    l1: Vector,
    *,
    tol: float,
    fixed: Vector | None = None,
    constant: float = 0.0,
    w: Vector | None = None,
    mu: float | None = None,
    max_iter: int = 200,
    over: Callable[[Path], bool] | None = None,
) -> Path:
    """Follow the central path until the duality gap is at most tol times the primal.

    ``q`` and ``l1`` have one entry per feature; ``fixed`` is v₀, and ``constant`` the loss of its samples at w = 0. The
    run starts at ``w`` (by default a least-squares solution) with products ``mu`` of distance and multiplier. The run
    ends if ``over(best)`` is true.
    """
    state = _State(samples, q, l1, fixed, constant, w, mu)
    best = state.evaluate(0)
    samples.keep()
    waited = 0
    for n_iter in range(1, max_iter + 1):
        if best.gap <= tol * abs(best.primal) or waited >= PATIENCE or (over is not None and over(best)):
            break
        if not state.advance():
            break
        here = state.evaluate(n_iter)
        if not np.isfinite(here.gap):
            break
        waited = 0 if here.gap < 0.9 * best.gap else waited + 1
        if here.gap < best.gap:
            best = here
            samples.keep()
    return replace(best, beta=samples.best())


class _State:
    """A point inside the boxes, v = v₀ + A'β, and the Newton system."""

    def __init__(
        self,
        samples: SampleSystem,
        q: Vector,
        l1: Vector,
        fixed: Vector | None,
        constant: float,
        w: Vector | None,
        mu: float | None,
    ) -> None:
        self.samples, self.q, self.constant = samples, q, constant
        # the features with an l1 penalty, and the samples that express it
        self.at = np.flatnonzero(l1 > 0)
        self.lasso = Samples.absolute(l1[self.at])
        self.w = np.zeros(samples.d) if w is None else w.copy()
        self.fixed = np.zeros(samples.d) if fixed is None else fixed
        self.n_bounds = max(1, samples.n_bounds + self.lasso.n_bounds)
        mu = samples.first_mu if mu is None else mu
        if w is None:
            # start from least squares, with every sample at its kink
            v, weighted = samples.start_at_kinks(mu)
            self.lasso.start(self.w[self.at], mu)
            diagonal = self.q.copy()
            diagonal[self.at] += self.lasso.curvature()
            if samples.factor(diagonal):
                self.w = samples.solve(self.fixed + v + weighted)
        self.v = self.fixed + samples.start(self.w, mu)
        self.lasso.start(self.w[self.at], mu)
        self.v[self.at] += self.lasso.beta
        # scale of the unpenalised weights in the bound on the gap
        self.unit = np.ones(samples.d)

    def evaluate(self, n_iter: int) -> Path:
        """This point with its primal value and gap."""
        q, w = self.q, self.w
        loss, gap = self.samples.loss_and_gap()
        lasso_loss, lasso_gap = self.lasso.loss_and_gap()
        free = q == 0
        missing = q * w - self.v
        gap += lasso_gap + 0.5 * float((missing[~free] ** 2 / q[~free]).sum())
        gap += float(np.abs(self.v[free]) @ (np.abs(w[free]) + self.unit[free]))
        primal = self.constant + 0.5 * float(q @ (w * w)) - float(self.fixed @ w) + loss + lasso_loss
        return Path(w.copy(), NOT_YET, gap, primal, n_iter)

    def advance(self) -> bool:
        """Take one predictor-corrector step; False if rounding prevents it."""
        samples, lasso = self.samples, self.lasso
        total = self._weigh(0.0)
        diagonal = self.q.copy()
        diagonal[self.at] += lasso.D
        if not samples.factor(diagonal):
            return False
        dw = samples.solve(total - self.q * self.w)
        rate, now, slope, bend = self._step(dw)
        length = min(1.0, 1.0 / rate) if rate > 0 else 1.0
        ahead = max(0.0, now + length * (slope + length * bend))
        # Mehrotra's choice of the centring parameter
        target = now / self.n_bounds * (ahead / now) ** 3 if now > 0 else 0.0
        if target > 0:
            total = self._weigh(target)
            dw = samples.solve(total - self.q * self.w)
            rate, *_ = self._step(dw)
        length = 1.0 if rate < TO_THE_BOUNDARY else TO_THE_BOUNDARY / rate
        if not (np.isfinite(length) and np.isfinite(dw).all()):
            return False
        ahead_v = total - samples.apply(dw)
        ahead_v[self.at] -= lasso.D * dw[self.at]
        self.v += length * (ahead_v - self.v)
        self.w += length * dw
        samples.move(length)
        lasso.move(length, dw[self.at])
        return True

    def _weigh(self, target: float) -> Vector:
        """v₀ + A'(β + Dg) for the wanted products."""
        self.lasso.aim(target)
        self.lasso.weigh()
        total = self.fixed + self.samples.weigh(target)
        total[self.at] += self.lasso.beta + self.lasso.Dg
        return total

    def _step(self, dw: Vector) -> tuple[float, float, float, float]:
        """The inverse of the longest step, and the sum of products with its slope and curvature, over all samples."""
        first, second = self.samples.step(dw), self.lasso.step(dw[self.at])
        now, slope, bend = first[1:] + second[1:]
        return max(first[0], second[0]), now, slope, bend


def mu_sums(qp: BoxQP) -> Vector:
    """The sums over samples from which `first_mu` follows; those of several parts are added."""
    room = qp.upper - qp.lower
    bounded = np.isfinite(room)
    soft = np.divide(1.0, qp.ridge, out=np.zeros_like(room), where=(qp.ridge > 0) & ~bounded)
    return np.array([len(room), np.abs(qp.linear).sum() + qp.l1.sum(), room[bounded].sum(), soft.sum()])


def first_mu(sums: Vector) -> float:
    """Distance times multiplier in the middle of a typical box, for the slopes at w = 0."""
    n, slopes, rooms, softness = map(float, sums)
    slope = slopes / max(1.0, n) or 1.0
    return FIRST * (rooms + 2.0 * slope * softness) / max(1.0, n) * slope or 1.0
