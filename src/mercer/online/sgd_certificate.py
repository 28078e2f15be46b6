"""Objectives, bounds and certificates of stochastic subgradient descent.

Certificates are for ½|w|² + Σ C_i max(0, 1 − y_i f_i). The problem of `online.sgd`, divided by lam, has this form with
C_i = weight_i / (lam W). The coefficients of the last iterate, theta / (lam T), lie in the box 0 <= y_i beta_i <= C_i
unless a sample was drawn more often than the others; scaled to the box they are a feasible dual point of each run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.kernels.features import Matrix, Vector
from mercer.losses import Hinge
from mercer.online.sgd import Model, ObjectivePoint, Run
from mercer.problems.solution import NOT_PSD, Certificate, finished

# limit on the decision values in memory at a time
EVALUATED_VALUES = 1 << 22


class Evaluation(NamedTuple):
    """The model after t steps, its decision values f, and ½|w|² + Σ Cᵢ max(0, 1 − yᵢ fᵢ) of each problem."""

    t: int
    model: Model
    f: Matrix
    primal: Vector


def evaluate(run: Run, n_threads: int = 1) -> Evaluation:
    """The model of a run with its decision values and objective."""
    return evaluate_all(run, [(run.t, run.model())], n_threads)[0]


def evaluate_all(run: Run, seen: list[tuple[int, Model]], n_threads: int = 1) -> list[Evaluation]:
    """`evaluate` for several models of a run, given as (steps, model): the samples are read once for many."""
    found: list[Evaluation] = []
    m = len(run.y)
    together = max(1, EVALUATED_VALUES // run.y.size)
    for start in range(0, len(seen), together):
        part = seen[start : start + together]
        models = Model(*(np.concatenate(parts) for parts in zip(*(model for _, model in part), strict=True)))
        values = run.values(models, n_threads)
        squares = run.squared_norms(models, values)
        for k, (t, model) in enumerate(part):
            own = slice(k * m, (k + 1) * m)
            found.append(Evaluation(t, model, values[own], primal(run, squares[own], values[own])))
    return found


def primal(run: Run, squares: Vector, f: Matrix) -> Vector:
    """½|w|² + Σ Cᵢ max(0, 1 − yᵢ fᵢ) of each problem, from its |w|² and decision values."""
    from mercer.online._sgd_loops import hinge_losses

    losses = np.empty(len(run.y))
    hinge_losses(run.y, f, run.weight, run.unit, losses)
    with np.errstate(over="ignore", invalid="ignore"):
        return 0.5 * squares + losses


def objective_point(run: Run, evaluated: Evaluation) -> ObjectivePoint:
    """The objective, summed over the problems, with its bound."""
    return bounded_point(run, evaluated.t, evaluated.primal)


def bounded_point(run: Run, t: int, primal: Vector) -> ObjectivePoint:
    """The objective after t steps, from ½|w|² + Σ Cᵢ max(0, 1 − yᵢ fᵢ) of each problem, with its bound.

    With rho = max |φ(x)|, |w*| ≤ rho/lam and |v_t + lam w_t| ≤ 2 rho, follow-the-leader on the losses
    <v_t, w> + lam/2 |w|² has the regret bound 4 rho²/lam (1 + log T) of [SSBD] 14.5.3; for w_t = theta_t/(lam t) the
    constants are:

        E[objective(mean of w_1, …, w_T)] - optimum ≤ rho²/(lam T) (1/2 + 2 log(T + 1))

    The expectation is over independently drawn samples. For the last iterate, for a mean over the tail and for steps of
    other sizes there is no bound: inf.
    """
    lam, bound = run.rule.lam, np.inf
    if run.rule.start == 0 and run.rule.budget < 0 and run.rule.eta is None and t > 0:
        rho2 = float(run.squared_lengths.max(initial=0.0)) + run.rule.bias
        bound = float(len(run.y) * rho2 / (lam * t) * (0.5 + 2.0 * np.log1p(t)))
    return ObjectivePoint(t, lam * float(primal.sum()), bound)


def certificates(run: Run, evaluated: Evaluation, psd: bool = True, n_threads: int = 1) -> list[Certificate]:
    """The certificate of the model for each problem.

    The dual point β is y_i C_i times the share of draws of i that were hits (updates), which is in the box however
    often i was drawn. If all were drawn equally often, it is the coefficients of the last iterate, hits/(lam T). It is
    then scaled by the s that maximises the dual, slope·s − ½ curvature·s².
    """
    from mercer.online._sgd_loops import hinge_violations

    beta, slope = run.dual_points()
    curvature = run.squared_norms(run.from_coefficients(beta), None, n_threads)
    part, best = scaled_duals(slope, curvature)
    worst = np.empty(len(part))
    hinge_violations(run.y, evaluated.f, run.weight, run.unit, beta, part, worst)
    return conclude(evaluated.primal, best, worst, psd)


def scaled_duals(slope: Vector, curvature: Vector) -> tuple[Vector, Vector]:
    """The s in [0, 1] that maximises slope·s − ½ curvature·s², and that maximum."""
    part = np.divide(slope, curvature, out=np.ones_like(slope), where=curvature > slope)
    with np.errstate(over="ignore", invalid="ignore"):
        return part, part * slope - 0.5 * part**2 * curvature


def conclude(primals: Vector, duals: Vector, violations: Vector, psd: bool = True) -> list[Certificate]:
    """The certificate of each problem."""
    found = []
    for p, d, violation in zip(primals, duals, violations, strict=True):
        primal, dual = _finite(p, d)
        reason = "" if psd else NOT_PSD
        gap, most = max(0.0, primal - dual), np.inf if np.isnan(violation) else float(violation)
        found.append(finished(primal, dual, gap, most, 0.0, Hinge.name, reason))
    return found


def _finite(primal: float, dual: float) -> tuple[float, float]:
    """Values that overflowed become inf and -inf, which bound nothing."""
    return (float(primal) if np.isfinite(primal) else np.inf), (float(dual) if np.isfinite(dual) else -np.inf)
