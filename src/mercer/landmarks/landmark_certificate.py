"""The certificate of a landmark machine for the exact problem, whose Gram matrix is K and not its approximation K̂.

A function in the span of the landmarks has the same primal value in both problems. A feasible β is feasible in both,
and its dual values differ by ½β'(K − K̂)β, so

    gap to the exact machine = gap to the best machine of these landmarks + ½β'(K − K̂)β.

β'Kβ takes a kernel value for each pair of samples with β ≠ 0. Where these are too many, q = β'(K − K̂)β is bounded from
some of its rows. With R = K − K̂, g = Rβ and residuals rᵢ = Rᵢᵢ, row i is drawn with the probability pᵢ ∝ |βᵢ|√rᵢ. The
mean of βᵢgᵢ/pᵢ is q, and since R is positive semidefinite |gᵢ| ≤ √(rᵢq), so no term exceeds S√q, S = Σ|βᵢ|√rᵢ. Bets
against large q then bound it from above (Waudby-Smith & Ramdas, JRSS B 86, 2024): see `bound`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.gram.operator import product, symmetric_product
from mercer.kernels.features import Features, Vector
from mercer.landmarks.nystroem_factor import Factor
from mercer.losses.base import BoxQP, Loss
from mercer.problems.solution import FEASIBILITY, NOT_FEASIBLE, Certificate, finished

# up to this many pairs of samples β'Kβ is computed; beyond, it is bounded from this many rows
PAIRS_UP_TO, ROWS = 1_000_000_000, 8_000
# support vectors that are prepared together for kernel values with drawn rows
COLUMNS = 1 << 17
# rows for an estimate between two rounds of growth
ROWS_OF_ESTIMATE = 500
# the probability that the bound does not hold
RISK = 1e-6
# stakes of the bets, as shares of the largest; ratios of the ends of the intervals that are refuted one after another:
# the short ones divide the long ones, so that q lies in one of each, whatever was drawn
STAKES, CELLS = 0.98 * 0.5 ** np.arange(6), (1.3, 1.3 ** (1 / 26))
# a negative gap of this size, relative to its terms, is the rounding of L in float32
ROUNDED = 1e-5


class Lost(NamedTuple):
    """What the landmarks lose: β'(K − K̂)β or a bound on it, and whether it holds with probability 1 − RISK only."""

    value: float
    sampled: bool


def lost(
    factor: Factor, beta: Vector, v: Vector, pairs_up_to: int = PAIRS_UP_TO, seed: int = 0, rows: int = ROWS
) -> Lost:
    """β'(K − K̂)β, or beyond ``pairs_up_to`` pairs of samples an upper bound from ``rows`` rows; ``v`` is L'β."""
    used = np.flatnonzero(beta)
    if len(used) == 0:
        return Lost(0.0, False)
    data = factor.data
    if len(used) ** 2 <= pairs_up_to:
        weights = beta[used]
        F = symmetric_product(data.kernel, data.exact(used), weights, factor.n_threads, data.evaluations)
        return Lost(max(0.0, float(weights @ F) - float(v @ v)), False)
    return bound(*_terms(factor, beta, v, used, rows, seed))


def bound(terms: Vector, scale: float) -> Lost:
    """An upper bound on q from terms βᵢgᵢ/pᵢ of drawn rows and S, from S² downwards."""
    top = scale**2
    for ratio in CELLS:
        while top > np.finfo(np.float64).eps * scale**2 and _is_refuted(terms, scale, top / ratio, top):
            top /= ratio
    return Lost(max(top, float(terms.mean())), True)


def _is_refuted(terms: Vector, scale: float, low: float, high: float) -> bool:
    """Whether low ≤ q ≤ high is refuted, with a probability of error of half of RISK, since it is asked in two lengths.

    Then E term ≥ low and term ≤ S√high, so for 0 ≤ λ ≤ 1/(S√high − low) the wealth Π(1 + λ(low − term)) is not negative
    and has an expectation of at most 1, and so has the mean of several λ. By Markov's inequality it exceeds 2/RISK with
    a probability of at most RISK/2.
    """
    stakes = STAKES / (scale * np.sqrt(high) - low)
    wealth = np.array([np.log1p(stake * (low - terms)).sum() for stake in stakes])
    most = float(wealth.max())
    return most + float(np.log(np.exp(wealth - most).mean())) >= np.log(2.0 / RISK)


def drawing_shares(beta: Vector, residual: Vector, dtype: Any, largest: float) -> Vector:
    """|βᵢ|√rᵢ, the weights with which rows are drawn; ``largest`` is the largest k(x, x)."""
    # residuals that rounding has hidden keep a small probability, so that no row is left out
    return np.abs(beta) * np.sqrt(np.maximum(residual, np.finfo(dtype).eps * largest))


def lost_about(factor: Factor, beta: Vector, v: Vector, seed: int = 0) -> float:
    """An estimate of β'(K − K̂)β from few rows; the value itself if there are few."""
    used = np.flatnonzero(beta)
    if len(used) <= ROWS_OF_ESTIMATE:
        return lost(factor, beta, v).value
    return max(0.0, float(_terms(factor, beta, v, used, ROWS_OF_ESTIMATE, seed, factor.L.dtype)[0].mean()))


def _terms(
    factor: Factor, beta: Vector, v: Vector, used: Vector, count: int, seed: int, dtype: Any = np.float64
) -> tuple[Vector, float]:
    """(βᵢgᵢ/pᵢ of drawn rows i, S = Σ|βᵢ|√rᵢ), from kernel values of this dtype."""
    data, weights = factor.data, beta[used]
    share = drawing_shares(weights, factor.residual[used], factor.L.dtype, factor.largest)
    scale = float(share.sum())
    drawn = np.random.default_rng(seed).choice(len(used), count, p=share / scale)
    rows, times = np.unique(drawn, return_counts=True)
    at = used[rows]

    def prepared(index: Vector) -> Features:
        return data.exact(index) if dtype == np.float64 else data.features(dtype).take(index)

    a, K_beta = prepared(at), np.zeros(len(at))
    for first in range(0, len(used), COLUMNS):
        some = slice(first, first + COLUMNS)
        K_beta += product(data.kernel, a, prepared(used[some]), weights[some], factor.n_threads, data.evaluations)
    g = K_beta - factor.L[at].astype(np.float64) @ v
    return np.repeat(weights[rows] * g * scale / share[rows], times), scale


class Share(NamedTuple):
    """The contribution of some samples to a certificate: sums over them, then maxima."""

    loss: float
    # linear'β − l1'|β|, and β'ridge β
    gain: float
    ridge: float
    terms: float
    total: float
    violation: float
    outside: float
    largest: float


def share_of(qp: BoxQP, loss: Loss, y: Vector, weight: Vector, beta: Vector, F: Vector, intercept: float) -> Share:
    """The part of these samples, with decision values F + b."""
    from mercer.linear._row_loops import check_optimality

    largest = float(np.abs(beta).max(initial=0.0))
    vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper
    violation, outside, total = check_optimality(np.ascontiguousarray(beta), F + intercept, *vectors, largest)
    paid = loss.primal(0.0, y, F, weight, np.full(qp.n_groups, intercept), qp.sums)
    gain, ridge = float(qp.linear @ beta - qp.l1 @ np.abs(beta)), float(qp.ridge @ beta**2)
    return Share(paid, gain, ridge, float(np.abs(qp.linear * beta).sum()), total, violation, outside, largest)


def certify(
    qp: BoxQP,
    loss: Loss,
    y: Vector,
    weight: Vector,
    beta: Vector,
    F: Vector,
    intercept: float,
    squared_norm: float,
    quadratic: float,
) -> Certificate:
    """The gap between a function f, with |f|² and decision values F + b, and a feasible β with β'Kβ = ``quadratic``."""
    shares = [share_of(qp, loss, y, weight, beta, F, intercept)]
    return conclude_shares(shares, qp.sums, loss.name, squared_norm, quadratic)


def conclude_shares(
    shares: Sequence[Share], sums: Vector, name: str, squared_norm: float, quadratic: float, note: str = ""
) -> Certificate:
    """The certificate of all samples from the shares of some of them; ``sums`` are those that β must have.

    f need not be that of β: weak duality holds for every pair. Where the sums are 0 and the landmarks lose much, a
    multiple of β below 1 has a higher dual value; the best one is taken.
    """
    columns = list(zip(*shares, strict=True))
    paid, gain, ridge, terms, total = (float(sum(column)) for column in columns[:5])
    violation, outside, largest = (float(np.max(column)) for column in columns[5:])
    missed = abs(total - float(sums.sum())) if len(sums) else 0.0
    infeasible = max(outside, missed) if np.isfinite(total) else np.inf
    primal, curvature = 0.5 * squared_norm + paid, ridge + quadratic
    share = 1.0 if sums.any() or gain >= curvature else max(gain, 0.0) / curvature
    dual = share * gain - 0.5 * share**2 * curvature
    gap = primal - dual if np.isfinite(primal) and np.isfinite(dual) else np.inf
    if gap < 0:
        gap = 0.0 if -ROUNDED * (terms + quadratic + abs(primal)) <= gap else gap
    feasible = infeasible <= FEASIBILITY * max(largest, *np.abs(sums), 0.0)
    reason = "" if feasible and gap >= 0 else NOT_FEASIBLE
    violation = np.inf if np.isnan(violation) else violation
    return finished(primal, dual, gap, violation, infeasible, name, reason, note)
