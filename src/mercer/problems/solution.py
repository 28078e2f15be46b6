"""The input and the output of a solver: `Options`, `Status`, `TracePoint`, `Solution`, and its `Certificate`.

A certificate tells how far a model is from the optimum. It is computed from the data, β and F = Kβ alone; nothing that
the solver reports is used. For every feasible β and every threshold, weak duality ([D6] §5, [M5] "duality") gives

    dual(β) ≤ optimum ≤ primal(w, b),     so     primal − optimum ≤ gap = primal − dual

as long as K is positive semidefinite.

A model with a hard tube (C = ∞) misses the tube by rounding or by tol, so its primal is ∞. It is feasible for a tube
that is wider by the excess, whose dual value is lower by |β|₁ times the excess. The certificate is for this wider tube.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer.exceptions import InvalidInputError
from mercer.losses.base import BoxQP, Index, Loss, Vector
from mercer.problems.dual import Survey, survey

if TYPE_CHECKING:
    from mercer.problems.parts_plan import PartsPlan
    from mercer.problems.steps import Steps
    from mercer.svm.hard_margins.separation import Separation
    from mercer.svm.plan import Plan

# a gap of at most this size, relative to the terms of which it is the difference, is rounding
EPS = float(np.finfo(np.float64).eps)
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

    As text it says "not solved" from a relative gap of 0.5 on. That happens within ``tol``, too, where C is large: a
    violation of ``tol`` costs C times as much. ``fit`` warns of it if ``primal`` is above 100 times ``dual``.

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

    Examples
    --------
    >>> from mercer import SVC
    >>> certificate = SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).certificate_
    >>> certificate.dual <= certificate.primal, certificate.valid
    (True, True)
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
    seen: Survey | None = None,
) -> Certificate:
    """The certificate of β, where ``qp`` is ``loss.box_qp(y, weight, …)``.

    ``beta`` has one number per variable of qp. ``F`` is Kβ in float64, one number per sample, without the intercept.

    ``intercept`` is the threshold of each group in the scale of β: a number for one group, (b₊, b₋) for ν-SVC and
    (b₀, b₁) for ν-SVR. None: the thresholds are computed by `thresholds`.

    ``psd`` says whether the kernel is known to be positive semidefinite. ``of`` names the problem, by default by its
    loss.

    ``rows`` are the samples at which F is exact. They must include all samples with β ≠ 0, and all others must be known
    to have neither a loss nor a KKT violation: F is not read there. None: all samples. ``seen`` is the survey of β and
    F at these samples, if it is known.
    """
    beta = np.asarray(beta, dtype=np.float64)
    if rows is not None:
        total = np.count_nonzero(beta)
        qp, variables = qp.at_rows(rows, len(y))
        y, weight, beta, F = y[rows], weight[rows], beta[variables], F[rows]
        if np.count_nonzero(beta) < total:
            raise ValueError("rows must contain every sample with a nonzero beta: F is needed there.")
    F = np.asarray(F, dtype=np.float64)
    found = survey(qp, beta, F) if seen is None else seen
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
    infeasible, total = found.infeasibility, np.abs(sums).tolist()
    feasible = infeasible <= FEASIBILITY * max(largest, *total, 0.0)
    dual, primal = _defined(found.dual, -np.inf), _defined(primal, np.inf)
    gap = _defined(primal - dual, np.inf)
    # the size of the terms of both values, which may cancel
    terms = found.terms + sum(abs(b) * size for b, size in zip(thresholds.tolist(), total, strict=False)) + abs(primal)
    if -ROUNDING * terms <= gap < 0 or (gap < np.inf and 0 < gap <= EPS * terms):
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
    return value if isfinite(value) else otherwise


def _relative(gap: float, primal: float, dual: float) -> float:
    """The gap over max(|primal|, |dual|), with 0/0 = 0."""
    if gap == 0 or not np.isfinite(gap):
        return gap
    return gap / max(abs(primal), abs(dual), np.finfo(np.float64).tiny)


def _short(value: float) -> str:
    """Two digits, and a plain 0."""
    return "0" if value == 0 else f"{value:.1e}"


class Status(Enum):
    """How a run ended. All but UNBOUNDED and UNDECIDED leave a feasible, certified model."""

    CONVERGED = "the certificate is within tol"
    MAX_ITER = "max_iter steps were taken"
    TIME_LIMIT = "the time limit was reached"
    INTERRUPTED = "the run was interrupted"
    STALLED = "rounding does not allow further progress"
    SINGULAR = "the matrix is singular: the least-squares solution was taken"
    INDEFINITE = "the matrix is not a kernel matrix: a stationary point was taken"
    UNBOUNDED = "the dual grows without limit: no model meets the constraints"
    UNDECIDED = "rounding hides whether a model meets the constraints"


# there is no model, or rounding hides whether there is one
WITHOUT_MODEL = (Status.UNBOUNDED, Status.UNDECIDED)


class TracePoint(NamedTuple):
    """The progress of a run at one point: seconds, steps, KKT violation, dual value, number of active samples."""

    seconds: float
    steps: int
    violation: float
    dual: float
    active: int


# the orders in which coordinate ascent takes its variables
RULES = ("round-robin", "random", "greedy")


def check_rule(rule: str) -> None:
    """Raise unless this is the name of an order of variables."""
    if rule not in RULES:
        raise InvalidInputError(f"rule={rule!r} is not known: choose one of {', '.join(map(repr, RULES))}.")


@dataclass(frozen=True)
class Options:
    """The settings of a run.

    Attributes
    ----------
    tol : the largest KKT violation allowed, in units of the decision function.
    max_iter : most steps, -1 for no limit. A pair step, a Newton step on the free variables and a step of an
        interior-point method count as one each.
    time_limit : most seconds, or None.
    budget, costly_budget : bytes for kernel rows; the second for kernels whose values take long to compute, if it is
        larger.
    shrinking : make samples inactive that seem settled at a bound, and check them at the end.
    working_set : members of a working set; 0 to choose.
    n_threads : threads for kernel rows and products.
    precision : "float32", "float64" or "auto".
    solver : "auto" or "decomposition" for the exact solver, "qp" for the interior-point method, "coordinate" and "smo"
        for the textbook's procedures.
    rule, seed : the order of coordinates for "coordinate", and the seed of a random order.
    trace : keep every step of "coordinate" or "smo".
    plan : forces a plan for the problem, or for all pairs of classes (``Plan.pairs``); None to choose.
    """

    tol: float = 1e-3
    max_iter: int = -1
    time_limit: float | None = None
    budget: int = 1 << 30
    costly_budget: int = 0
    shrinking: bool = True
    working_set: int = 0
    n_threads: int = 1
    precision: str = "auto"
    solver: str = "auto"
    rule: str = "random"
    seed: int = 0
    trace: bool = False
    plan: Plan | None = None

    def shared(self, n_runs: int) -> Options:
        """The options of one of ``n_runs`` runs in parallel, each on one thread with its share of the memory."""
        budget, costly_budget = self.budget // n_runs, self.costly_budget // n_runs
        return replace(self, n_threads=1, budget=budget, costly_budget=costly_budget)


@dataclass(frozen=True)
class Solution:
    """A feasible β, F = Kβ, the thresholds, and the certificate.

    ``separation`` is set for hard margins without a model: the proof that the classes are not separable, or what is
    known instead. ``plan`` is the plan that was followed, if there was a choice. ``path`` are all steps, if they were
    kept. ``given`` says whether ``coefficients`` belong to given landmarks, not to the samples.
    """

    beta: Vector
    F: Vector
    thresholds: Vector
    status: Status
    steps: int
    seconds: float
    certificate: Certificate
    trace: list[TracePoint] = field(default_factory=list)
    separation: Separation | None = None
    plan: Plan | PartsPlan | None = None
    path: Steps | None = None
    given: bool = False

    def reordered(self, order: Any) -> Self:
        """The solution with its samples in another order: sample order[0] comes first."""
        found = self.separation
        if found is not None:
            found = replace(found, coef=found.coef[order], weights=found.weights[order])
        path = self.path
        if path is not None:
            path = path.of_samples(np.argsort(np.arange(len(self.beta))[order]))
        return replace(self, beta=self.beta[order], F=self.F[order], separation=found, path=path)

    @property
    def coefficients(self) -> Vector:
        """The coefficients of the function, one per sample: β."""
        n = len(self.F)
        return self.beta.reshape(-1, n).sum(axis=0) if len(self.beta) > n else self.beta

    @property
    def squared_norm(self) -> float:
        """|w|² = β'Kβ, in the scale of the solved problem."""
        return float(self.coefficients @ self.F)


def unfinished(
    beta: Vector, F: Vector, thresholds: Vector, steps: int, seconds: float, violation: float, dual: float
) -> Solution:
    """The present state of a run, for callbacks."""
    undefined = float("inf")
    proof = Certificate(undefined, dual, undefined, undefined, violation, 0.0, False, "a run", "the run goes on")
    return Solution(beta.copy(), F.copy(), thresholds, Status.INTERRUPTED, steps, seconds, proof)
