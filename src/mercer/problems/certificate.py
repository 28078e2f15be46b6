"""Certificates: how far a model is from the optimum, computed from the data, β and F = Kβ alone.

For every feasible β and every threshold, weak duality ([D6] §5, [M5] "duality") gives

    dual(β) ≤ optimum ≤ primal(w, b),     so     primal − optimum ≤ gap = primal − dual

as long as K is positive semidefinite. Nothing that the solver reports is used.

A model with a hard tube (C = ∞) misses the tube by rounding or by tol, so its primal is ∞. It is feasible for a tube
that is wider by the excess, whose dual value is lower by |β|₁ times the excess. The certificate is that of this tube.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from mercer.losses.base import BoxQP, Index, Loss, Vector
from mercer.problems.dual import Survey, survey

# a negative gap of at most this size, relative to the terms of which it is the difference, is rounding
ROUNDING = 1e-12
# the same if primal and dual belong to different β, whose kernel values were summed in a different order
NEGATIVE = 1e-9
# if a sum or bound is violated by more than this, relative to the largest |β|, the gap is not a bound
FEASIBILITY = 1e-6
# a hard tube may be widened by at most this share of its own width or of half the range of the targets
WIDENED = 1e-2

# from this relative gap on, a model is reported as "not solved"
FAR = 0.5

NOT_PSD = "the kernel is not positive semidefinite"
NOT_FEASIBLE = "beta is not feasible"


@dataclass(frozen=True)
class Certificate:
    """Bounds on the distance to the optimum. Undefined numbers are inf.

    Attributes
    ----------
    primal, dual : the two objective values; the optimum lies between them.
    gap : primal − dual.
    relative_gap : the gap divided by the larger of |primal| and |dual|.
    kkt_violation : the largest violation of the optimality conditions, in units of the decision function.
    infeasibility : the largest violation of a bound or a sum by β.
    valid : whether the gap bounds the distance to the optimum.
    of : the problem that is certified.
    reason : why the gap is not a bound; empty if it is one.
    note : how the certified problem differs from the given one; empty if it does not.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    kkt_violation: float
    infeasibility: float
    valid: bool
    of: str
    reason: str = ""
    note: str = ""

    def __str__(self) -> str:
        values = f"primal {self.primal:.7g}, dual {self.dual:.7g}"
        residuals = f"KKT violation {_short(self.kkt_violation)}, infeasibility {_short(self.infeasibility)}"
        if not self.valid:
            return f"no bound on the distance to the optimum, because {self.reason} ({values}), {residuals}"
        if not np.isfinite(self.relative_gap):
            return f"at an unknown distance from the optimum ({values}), {residuals}"
        if self.relative_gap >= FAR:
            return f"not solved (relative gap {_short(self.relative_gap)}; {values}), {residuals}"
        note = f" {self.note}" if self.note else ""
        return f"within {_short(self.relative_gap)} of the optimum{note} (relative gap; {values}), {residuals}"


def certificate(
    qp: BoxQP,
    loss: Loss,
    y: Vector,
    weight: Vector,
    beta: Vector,
    F: Vector,
    intercept: ArrayLike | None = None,
    psd: bool = True,
    *,
    rows: Index | None = None,
    of: str | None = None,
) -> Certificate:
    """The certificate of β, where ``qp`` is ``loss.box_qp(y, weight, …)``.

    ``beta`` has one number per variable of qp. ``F`` is Kβ in float64, one number per sample, without the intercept.

    ``intercept`` is the threshold of each group in the scale of β: a number for one group, (b₊, b₋) for ν-SVC and
    (b₀, b₁) for ν-SVR. None: the thresholds are computed by `thresholds`.

    ``psd`` says whether the kernel is known to be positive semidefinite. ``of`` names the problem, by default by its
    loss.

    ``rows`` are the samples at which F is exact. They must include all samples with β ≠ 0, and all others must be known
    to have neither a loss nor a KKT violation: F is not read there. None: all samples.
    """
    beta = np.asarray(beta, dtype=np.float64)
    if rows is not None:
        total = np.count_nonzero(beta)
        qp, variables = qp.at_rows(rows, len(y))
        y, weight, beta, F = y[rows], weight[rows], beta[variables], F[rows]
        if np.count_nonzero(beta) < total:
            raise ValueError("rows must contain every sample with a nonzero beta: F is needed there.")
    F = np.asarray(F, dtype=np.float64)
    found = survey(qp, beta, F)
    b = found.thresholds if intercept is None else _per_group(qp, intercept)
    primal, note = loss.primal(found.squared_norm, y, F, weight, b, qp.sums), ""
    if np.isinf(primal):
        excess = loss.excess(y, F + b.sum(), weight)
        if 0 < excess <= WIDENED * max(float(qp.l1.max(initial=0.0)), 0.5 * float(np.ptp(y))):
            kept = np.isfinite(weight)
            primal = loss.primal(found.squared_norm, y[kept], F[kept], weight[kept], b, qp.sums)
            paid = excess * float(np.abs(beta[~kept]).sum())
            found = found._replace(dual=found.dual - paid, terms=found.terms + paid)
            note = f"for a tube that is {excess:.1e} wider"
    largest = np.abs(beta).max(initial=0.0)
    shown = conclude(found, primal, b, qp.sums, largest, psd, loss.name if of is None else of)
    return replace(shown, note=note) if note else shown


def conclude(
    found: Survey, primal: float, thresholds: Vector, sums: Vector, largest: float, psd: bool, of: str
) -> Certificate:
    """The certificate from a survey and the primal value at these thresholds; ``largest`` is the largest |β|."""
    infeasible = found.infeasibility
    feasible = infeasible <= FEASIBILITY * max(largest, *np.abs(sums), 0.0)
    dual, primal = _defined(found.dual, -np.inf), _defined(primal, np.inf)
    gap = _defined(primal - dual, np.inf)
    # the size of the terms of both values, which may cancel
    terms = found.terms + float(np.abs(thresholds * sums).sum()) + abs(primal)
    if -ROUNDING * terms <= gap < 0:
        gap = 0.0
    # for β in the box each sample's part of the gap is nonnegative by the Fenchel-Young inequality, for any K: a
    # negative gap means that the sums are violated
    reason = NOT_PSD if not psd else ("" if feasible and gap >= 0 else NOT_FEASIBLE)
    return finished(primal, dual, gap, found.violation, infeasible, of, reason)


def finished(
    primal: float,
    dual: float,
    gap: float,
    kkt_violation: float,
    infeasibility: float,
    of: str,
    reason: str,
    note: str = "",
) -> Certificate:
    """The certificate with these numbers. It is valid if ``reason`` is empty."""
    relative = _relative(gap, primal, dual)
    return Certificate(primal, dual, gap, relative, kkt_violation, infeasibility, not reason, of, reason, note)


def combine(certificates: Sequence[Certificate], of: str | None = None) -> Certificate:
    """The certificate of several independent problems: values are added, violations are the largest ones."""
    if len(certificates) == 1 and of is None:
        return certificates[0]
    return finished(
        primal=float(sum(c.primal for c in certificates)),
        dual=float(sum(c.dual for c in certificates)),
        gap=float(sum(c.gap for c in certificates)),
        kkt_violation=max((c.kkt_violation for c in certificates), default=0.0),
        infeasibility=max((c.infeasibility for c in certificates), default=0.0),
        of=f"{len(certificates)} pairwise problems" if of is None else of,
        reason=next((c.reason for c in certificates if not c.valid), ""),
        note=next((c.note for c in certificates if c.note), ""),
    )


def with_dual(shown: Certificate, dual: float, reason: str) -> Certificate:
    """A certificate with the dual value of another β; valid if ``reason`` is empty and the gap is not negative."""
    gap = shown.primal - dual
    if not np.isfinite(gap):
        gap = np.inf
    elif gap < 0 and not reason:
        # a dual above the primal is rounding, or the kernel is indefinite
        reason = "" if gap >= -NEGATIVE * max(abs(shown.primal), abs(dual)) else NOT_PSD
        gap = gap if reason else 0.0
    return combine([replace(shown, dual=dual, gap=gap, valid=not reason, reason=reason)], of=shown.of)


def _per_group(qp: BoxQP, intercept: ArrayLike) -> Vector:
    """The thresholds as a vector with one entry per group. Without groups, an intercept of 0 is allowed."""
    b = np.atleast_1d(np.asarray(intercept, dtype=np.float64))
    if qp.n_groups == 0 and not b.any():
        return np.empty(0)
    if len(b) != qp.n_groups:
        raise ValueError(f"intercept has {len(b)} entries, but the problem has {qp.n_groups} groups: give one each.")
    return b


def _defined(value: float, otherwise: float) -> float:
    """The value if it is finite, else ``otherwise``."""
    return value if np.isfinite(value) else otherwise


def _relative(gap: float, primal: float, dual: float) -> float:
    """The gap over max(|primal|, |dual|), with 0/0 = 0."""
    if gap == 0 or not np.isfinite(gap):
        return gap
    return gap / max(abs(primal), abs(dual), np.finfo(np.float64).tiny)


def _short(value: float) -> str:
    """Two digits, and a plain 0."""
    return "0" if value == 0 else f"{value:.1e}"
