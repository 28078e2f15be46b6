"""Interior-point method for several quantiles that must not cross at the samples.

    min over f_q, b_q   Σ_q ½|f_q|² + Σ_q Σ_i C_i pinball_τq(y_i − f_q(x_i) − b_q)
    s.t.                f_q(x_i) + b_q ≤ f_{q+1}(x_i) + b_{q+1}               Takeuchi, Le, Sears & Smola, JMLR 7 (2006)

With α_q in the box [(τ_q − 1)C, τ_q C] for the losses and μ_q ≥ 0 for the constraints, the dual is

    min over α, μ   Σ_q ½ β_q'Kβ_q − y'α_q      s.t.  β_q = α_q + μ_{q−1} − μ_q,   Σ_i β_qi = 0

Mehrotra's predictor-corrector method (SIAM Journal on Optimization 2, 1992). Per sample the matrix T of the second
derivatives of the barrier is tridiagonal over the quantiles. With K = LL' and L̃ = [L 1] the Newton system over the
changes of L'β_q and b_q is block tridiagonal with the blocks L̃' T_qp L̃ (plus 1 for L'β_q), whose factor takes time in
proportion to the number of quantiles.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from scipy import linalg

from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Status, TracePoint

# most iterations; 15 to 40 are usual
MOST_STEPS = 200
# a step goes this share of the way to the nearest bound
SHARE = 0.995
# after so many iterations without a smaller gap rounding allows no more
PATIENCE = 15


@dataclass
class _Point:
    """α and its multipliers for both bounds, μ and its slack, b: a row for each quantile."""

    alpha: Matrix
    low: Matrix
    up: Matrix
    mu: Matrix
    slack: Matrix
    b: Vector

    def moved(self, step: _Point, length: float) -> _Point:
        """The point at this share of a step."""
        names = [field.name for field in fields(self)]
        return _Point(**{name: getattr(self, name) + length * getattr(step, name) for name in names})


class JointResult(NamedTuple):
    """β and b of each quantile (rows), how the run ended, iterations and trace."""

    beta: Matrix
    b: Vector
    status: Status
    steps: int
    trace: list[TracePoint]


class _Problem(NamedTuple):
    """A factor of K, with a column of ones; targets, bounds of α."""

    L: Matrix
    y: Vector
    lower: Matrix
    upper: Matrix

    def coefficients(self, alpha: Matrix, mu: Matrix) -> Matrix:
        """β_q = α_q + μ_{q−1} − μ_q."""
        beta = alpha.copy()
        beta[1:] += mu
        beta[:-1] -= mu
        return beta

    def values(self, beta: Matrix, b: Vector) -> Matrix:
        """f_q + b_q at the samples."""
        return (beta @ self.L[:, :-1]) @ self.L[:, :-1].T + b[:, None]


def solve_joint(
    L: Matrix, y: Vector, weight: Vector, quantiles: Vector, tol: float, max_iter: int, clock: Clock
) -> JointResult:
    """Solve for all quantiles, in rising order, to a relative gap of ``tol``; K = LL', all weights are positive."""
    lower, upper = (quantiles[:, None] - 1.0) * weight, quantiles[:, None] * weight
    problem = _Problem(np.column_stack([L, np.ones(len(y))]), y, lower, upper)
    point, trace = _start(problem, weight), list[TracePoint]()
    limit = MOST_STEPS if max_iter < 0 else max_iter
    best, since, status, steps = (np.inf, point), 0, None, 0
    while status is None:
        beta = problem.coefficients(point.alpha, point.mu)
        f = problem.values(beta, point.b)
        error, dual = _error(problem, point, beta, f, quantiles, weight)
        trace.append(TracePoint(clock.seconds, steps, error, dual, len(y)))
        clock.report(trace[-1])
        since = 0 if error < 0.9 * best[0] else since + 1
        best = min(best, (error, point), key=lambda pair: pair[0])
        if error <= tol:
            status = Status.CONVERGED
        elif since >= PATIENCE:
            status = Status.STALLED
        else:
            status = clock.over() or (Status.MAX_ITER if steps >= limit else None)
        if status is None:
            moved = _iterate(problem, point, beta, f)
            status = Status.STALLED if moved is None else None
            point, steps = point if moved is None else moved, steps + 1
    point = best[1]
    return JointResult(problem.coefficients(point.alpha, point.mu), point.b, status, steps, trace)


def _start(problem: _Problem, weight: Vector) -> _Point:
    """Constant quantiles around the median; multipliers of the size of the residuals."""
    size = float(np.std(problem.y)) or 1.0
    n_quantiles, n = problem.lower.shape
    b = np.quantile(problem.y, 0.5) + size * np.linspace(-0.5, 0.5, n_quantiles)
    pairs = np.ones((n_quantiles - 1, n))
    residual = problem.y - b[:, None]
    return _Point(
        alpha=np.zeros((n_quantiles, n)),
        low=np.maximum(-residual, 0.0) + 0.1 * size,
        up=np.maximum(residual, 0.0) + 0.1 * size,
        mu=0.01 * weight * pairs,
        slack=0.5 * size * pairs,
        b=b,
    )


def _error(
    problem: _Problem, point: _Point, beta: Matrix, f: Matrix, quantiles: Vector, weight: Vector
) -> tuple[float, float]:
    """The relative gap of the point, with its violation of the constraints priced by their multipliers; the dual."""
    residual = problem.y - f
    energy = 0.5 * float(np.vdot(beta, f - point.b[:, None]))
    loss = float((np.maximum(quantiles[:, None] * residual, (quantiles[:, None] - 1.0) * residual) @ weight).sum())
    dual = float((point.alpha @ problem.y).sum()) - energy
    crossing = np.maximum(f[:-1] - f[1:], 0.0)
    # a crossing is mended by a shift of the intercepts, which costs at most the weight of all samples
    shift = float(crossing.max(axis=1, initial=0.0).sum()) * float(weight.sum())
    sums = float(np.abs(beta.sum(axis=1)) @ (np.abs(point.b) + float(np.std(problem.y))))
    gap = abs(energy + loss - dual) + shift + sums
    return gap / max(abs(dual), abs(energy + loss), float(np.finfo(np.float64).tiny)), dual


def _iterate(problem: _Problem, point: _Point, beta: Matrix, f: Matrix) -> _Point | None:
    """A predictor step to the boundary, then one with its second-order terms; None if rounding spoils the system."""
    above, below = point.alpha - problem.lower, problem.upper - point.alpha
    newton = _Newton.of(problem, point, above, below)
    if newton is None:
        return None
    products = [(above, point.low), (below, point.up), (point.mu, point.slack)]
    count = sum(a.size for a, _ in products)
    complementarity = sum(float(np.vdot(a, z)) for a, z in products) / count
    zero = (np.zeros_like(above), np.zeros_like(above), np.zeros_like(point.mu))
    predicted = newton.step(point, beta, f, zero)
    reached = point.moved(predicted, _length(point, predicted, above, below))
    after = (
        np.vdot(reached.alpha - problem.lower, reached.low)
        + np.vdot(problem.upper - reached.alpha, reached.up)
        + np.vdot(reached.mu, reached.slack)
    )
    centre = max(0.0, float(after) / count / complementarity) ** 3 * complementarity
    target = (
        centre - predicted.alpha * predicted.low,
        centre + predicted.alpha * predicted.up,
        centre - predicted.mu * predicted.slack,
    )
    step = newton.step(point, beta, f, target)
    length = _length(point, step, above, below)
    moved = point.moved(step, SHARE * length if length < 1.0 else 1.0)
    return moved if np.isfinite(moved.b).all() and np.isfinite(moved.alpha).all() else None


def _length(point: _Point, step: _Point, above: Matrix, below: Matrix) -> float:
    """How far all variables and multipliers can go until one is at its bound; at most 1."""
    pairs = (
        (above, step.alpha), (below, -step.alpha), (point.mu, step.mu),
        (point.low, step.low), (point.up, step.up), (point.slack, step.slack),
    )  # fmt: skip
    return min([1.0, *(float((-a[d < 0] / d[d < 0]).min(initial=np.inf)) for a, d in pairs)])


@dataclass
class _Newton:
    """The factored Newton system at a point: D of α and μ, and the blocks of a block tridiagonal factor."""

    problem: _Problem
    above: Matrix
    below: Matrix
    inverse_alpha: Matrix
    inverse_mu: Matrix
    factors: list[Matrix]
    couplings: list[Matrix]

    @classmethod
    def of(cls, problem: _Problem, point: _Point, above: Matrix, below: Matrix) -> _Newton | None:
        """Factor the system; None if a block is not positive definite to rounding."""
        inverse_alpha = 1.0 / (point.low / above + point.up / below)
        inverse_mu = point.mu / point.slack
        newton = cls(problem, above, below, inverse_alpha, inverse_mu, [], [])
        L, n_quantiles = problem.L, len(point.b)
        for q in range(n_quantiles):
            T = inverse_alpha[q].copy()
            T += inverse_mu[q - 1] if q > 0 else 0.0
            T += inverse_mu[q] if q < n_quantiles - 1 else 0.0
            block = linalg.blas.dsyrk(1.0, (L * np.sqrt(T)[:, None]).T, lower=1)
            rank = len(block) - 1
            block[np.arange(rank), np.arange(rank)] += 1.0
            if q > 0:
                # the block beside the diagonal is −L̃' D_μ⁻¹ L̃
                beside = np.asfortranarray(L.T @ (L * -inverse_mu[q - 1][:, None]))
                coupling = linalg.blas.dtrsm(1.0, newton.factors[-1], beside, lower=1, overwrite_b=1)
                newton.couplings.append(coupling)
                block = linalg.blas.dsyrk(-1.0, coupling, trans=1, lower=1, beta=1.0, c=block, overwrite_c=1)
            factor, info = linalg.lapack.dpotrf(block, lower=1, clean=1, overwrite_a=1)
            if info != 0 or not np.isfinite(factor.diagonal()).all():
                return None
            newton.factors.append(factor)
        return newton

    def _solve(self, right: Matrix) -> Matrix:
        """The solution of the block tridiagonal system, a row for each quantile."""
        parts: list[Vector] = []
        for q, factor in enumerate(self.factors):
            r = right[q] - (self.couplings[q - 1].T @ parts[-1] if q > 0 else 0.0)
            parts.append(linalg.solve_triangular(factor, r, lower=True, check_finite=False))
        for q in range(len(parts) - 1, -1, -1):
            r = parts[q] - (self.couplings[q] @ parts[q + 1] if q < len(parts) - 1 else 0.0)
            parts[q] = linalg.solve_triangular(self.factors[q], r, lower=True, trans=1, check_finite=False)
        return np.array(parts)

    def step(self, point: _Point, beta: Matrix, f: Matrix, target: tuple[Matrix, Matrix, Matrix]) -> _Point:
        """The Newton step to products of bounds and multipliers with these values."""
        problem, (low, up, pair) = self.problem, target
        r_alpha = problem.y - f + low / self.above - up / self.below
        r_mu = f[:-1] - f[1:] + pair / point.mu
        change = problem.coefficients(self.inverse_alpha * r_alpha, self.inverse_mu * r_mu)
        right = change @ problem.L
        # the last entry belongs to b: the sums of β become 0
        right[:, -1] += beta.sum(axis=1)
        found = self._solve(right)
        g = found @ problem.L.T
        alpha = self.inverse_alpha * (r_alpha - g)
        mu = self.inverse_mu * (r_mu - (g[1:] - g[:-1]))
        return _Point(
            alpha=alpha,
            mu=mu,
            low=(low - point.low * (self.above + alpha)) / self.above,
            up=(up - point.up * (self.below - alpha)) / self.below,
            slack=(pair - point.slack * (point.mu + mu)) / point.mu,
            b=found[:, -1],
        )
