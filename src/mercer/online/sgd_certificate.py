"""How good the iterates of stochastic subgradient descent are: objectives, bounds and certificates.

In the convention of the certificates the problem of `online.sgd`, divided by lam, has the weights
C_i = weight_i / (lam W). The coefficients of the last iterate, theta / (lam T), then lie in the box
0 <= y_i beta_i <= C_i as long as no sample was drawn more often than its share; what exceeds the box is cut off. So
each run has a feasible dual point, and a gap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.kernels.features import Matrix, Vector
from mercer.losses import Hinge
from mercer.online.sgd import Model, ObjectivePoint, Run
from mercer.problems.certificate import NOT_PSD, Certificate, finished

# values of models at samples that are held together
JUDGED_VALUES = 1 << 22


class Judgement(NamedTuple):
    """The model of a run after t steps with its values f, and ½|w|² + Σ Cᵢ max(0, 1 − yᵢ f) of each problem."""

    t: int
    model: Model
    f: Matrix
    primal: Vector


def judge(run: Run, n_threads: int = 1) -> Judgement:
    """The run's model and its objective, in the convention of the certificates."""
    return judge_all(run, [(run.t, run.model())], n_threads)[0]


def judge_all(run: Run, seen: list[tuple[int, Model]], n_threads: int = 1) -> list[Judgement]:
    """The objectives of models that the run has had after so many steps: the samples are read once for many."""
    from mercer.online._sgd_loops import hinge_losses

    found: list[Judgement] = []
    m = len(run.y)
    together = max(1, JUDGED_VALUES // run.y.size)
    for start in range(0, len(seen), together):
        part = seen[start : start + together]
        models = Model(*(np.concatenate(parts) for parts in zip(*(model for _, model in part), strict=True)))
        values = run.values(models, n_threads)
        squares = run.squared_norms(models, values)
        for k, (t, model) in enumerate(part):
            f, losses = values[k * m : (k + 1) * m], np.empty(m)
            hinge_losses(run.y, f, run.weight, run.unit, losses)
            with np.errstate(over="ignore", invalid="ignore"):
                found.append(Judgement(t, model, f, 0.5 * squares[k * m : (k + 1) * m] + losses))
    return found


def objective_point(run: Run, judged: Judgement) -> ObjectivePoint:
    """The objective, summed over the problems, and the bound that the number of steps gives.

    With rho = max |φ(x)|, |w*| ≤ rho/lam and |v_t + lam w_t| ≤ 2 rho, following the leader of the losses
    <v_t, w> + lam/2 |w|² has the regret that [SSBD] 14.5.3 states as 4 rho²/lam (1 + log T); the constants here are
    those of w_t = theta_t/(lam t):

        E[objective(mean of w_1, …, w_T)] - optimum ≤ rho²/(lam T) (1/2 + 2 log(T + 1))

    The expectation is over samples drawn independently. For the last iterate and the tail it is not known: inf.
    """
    lam, t, bound = run.rule.lam, judged.t, np.inf
    if run.rule.start == 0 and run.rule.budget < 0 and t > 0:
        rho2 = float(run.squared_lengths.max(initial=0.0)) + run.rule.bias
        bound = float(len(run.y) * rho2 / (lam * t) * (0.5 + 2.0 * np.log1p(t)))
    return ObjectivePoint(t, lam * float(judged.primal.sum()), bound)


def certificates(run: Run, judged: Judgement, psd: bool = True, n_threads: int = 1) -> list[Certificate]:
    """How far the run's model is from the optimum of each problem.

    The dual point takes of each C_i the share of draws of i that were hits, which is in the box however often i was
    drawn. Where all were drawn equally often these are the coefficients of the last iterate, hits/(lam T). The best
    multiple is taken, at which the dual, slope·s − ½ curvature·s², is largest.
    """
    from mercer.online._sgd_loops import hinge_violations

    beta, slope = run.dual_points()
    curvature = run.squared_norms(run.from_coefficients(beta), None, n_threads)
    part = np.divide(slope, curvature, out=np.ones_like(slope), where=curvature > slope)
    with np.errstate(over="ignore", invalid="ignore"):
        best = part * slope - 0.5 * part**2 * curvature
    worst = np.empty(len(part))
    hinge_violations(run.y, judged.f, run.weight, run.unit, beta, part, worst)
    found = []
    for p, d, violation in zip(judged.primal, best, worst, strict=True):
        primal, dual = _finite(p, d)
        reason = "" if psd else NOT_PSD
        gap, most = max(0.0, primal - dual), np.inf if np.isnan(violation) else float(violation)
        found.append(finished(primal, dual, gap, most, 0.0, Hinge.name, reason))
    return found


def _finite(primal: float, dual: float) -> tuple[float, float]:
    """Values that have left the range of numbers bound nothing."""
    return (float(primal) if np.isfinite(primal) else np.inf), (float(dual) if np.isfinite(dual) else -np.inf)
