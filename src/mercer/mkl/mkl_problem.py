"""Multiple kernel learning: machines that share a weighted sum of kernels, and the best weights for all of them.

With weights η ≥ 0, |η|_p ≤ 1, and machines t with the same kernel Σ η_m k_m, the problem is

    min over η of  J(η) = Σ_t  min  ½ Σ_m |w_tm|² / η_m + Σ_i C_ti ℓ(y_ti, Σ_m <w_tm, φ_m(x_i)> + b_t)

It is jointly convex in η and w. Let D_t(β) = linear'β − Σ l1|β| − ½Σ ridge β² be the part of the dual of machine t that
does not depend on the kernel, and S_m = Σ_t β_t'K_mβ_t the energies. Then for any feasible β

    J(η) ≥ Σ_t D_t(β_t) − ½ η'S          for each η: a cut
    min J ≥ Σ_t D_t(β_t) − ½ |S|_q       1/p + 1/q = 1, by Hölder's inequality

Lanckriet et al., JMLR 5 (2004); Kloft, Brefeld, Sonnenburg & Zien, *lp-norm multiple kernel learning*, JMLR 12 (2011).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.losses.base import BoxQP, Vector
from mercer.problems.solution import NOT_FEASIBLE, Certificate, combine, finished

# a negative gap of at most this share of its terms is rounding
ROUNDING = 1e-10


def ball_norm(weights: Vector, p: float) -> float:
    """|weights|_p."""
    largest = float(np.max(weights, initial=0.0))
    if largest == 0 or p == np.inf:
        return largest
    return largest * float(((weights / largest) ** p).sum()) ** (1.0 / p)


def dual_norm(energies: Vector, p: float) -> float:
    """|S|_q with 1/p + 1/q = 1: the largest η'S over η ≥ 0, |η|_p ≤ 1. A negative S (by rounding) counts as 0."""
    S = np.maximum(energies, 0.0)
    return ball_norm(S, np.inf if p == 1 else (1.0 if p == np.inf else p / (p - 1.0)))


def value_without_kernel(qp: BoxQP, beta: Vector) -> float:
    """D(β) = linear'β − Σ l1|β| − ½Σ ridge β²."""
    return float(qp.linear @ beta - qp.l1 @ np.abs(beta) - 0.5 * (qp.ridge * beta) @ beta)


def mixture_certificate(
    machines: Sequence[Certificate], dual: float, infeasibility: float = 0.0, of: str = "weights and machines together"
) -> Certificate:
    """The certificate of machines and weights together.

    The primal is that of the machines. ``dual`` is a lower bound on the optimum over all weights, which may belong to
    another β; ``infeasibility`` is that of this β.
    """
    shown = combine(machines, of=of)
    gap = shown.primal - dual
    # the gap of the machines is nonnegative, and so is the part that the weights add
    if -ROUNDING * max(abs(shown.primal), abs(dual)) <= gap < 0:
        gap = 0.0
    reason = shown.reason if not shown.valid else ("" if gap >= 0 else NOT_FEASIBLE)
    worst = max(shown.infeasibility, infeasibility)
    return finished(shown.primal, dual, gap, shown.kkt_violation, worst, of, reason)
