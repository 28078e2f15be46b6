"""Solve piecewise linear losses with only the samples near a kink as variables.

A sample far from the kinks of its loss (hinge, ε-insensitive, pinball) has its β at a known end of the box and adds a
constant vector to the gradient. Hence:

1. Follow the central path on a random part of the samples, whose optimum is near that of all, unless a model near the
   optimum is known.
2. Classify all samples with that model. Those near a kink are free; the others are fixed at the end of their box.
   Follow the central path on the free ones.
3. The duality gap is now due to samples that were fixed at the wrong end. While it is above tol, repeat step 2 with
   them and with all samples that are as near to a kink.

A random part of m samples determines the decision values to about √(d/m); a multiple of this is the share of free
samples. Each round reads all rows twice, so they may be on disk; the free ones are copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mercer.linear.linear_problem import Rows
from mercer.losses.base import BoxQP, Index, Vector

if TYPE_CHECKING:
    from mercer.linear.interior import Run

# size of the random part: at least PART samples, PART_ROWS_PER_FEATURE per feature (if these are at most PART_UP_TO of
# all) and PART_SHARE of all. No part is used if it exceeds PART_UP_TO of all or has fewer than FEWEST_ROWS_PER_FEATURE
PART = 500
PART_ROWS_PER_FEATURE = 60
FEWEST_ROWS_PER_FEATURE = 15
PART_SHARE = 1 / 16
PART_UP_TO = 0.25
# the relative gap to which the part is solved
PART_TOL = 1e-2
# share of free samples, in units of √(d/m)
FREE = 3.0
# from this share on all samples are free: fixing the rest does not pay
MOST = 0.7
# the first μ (distance times multiplier), in units of box width times distance from the kink
MU = 1.0
# at least this many samples per feature are free in every round
FEWEST = 4
# if the samples fixed at the wrong end exceed this share of the free ones, the share of free samples is doubled
MANY = 0.1
MAX_ROUNDS = 10
# a given model replaces the random part if its relative gap is at most WARM_UP_TO; then this share of the samples is
# free, times √(gap / WARM_GAP) if that is below 1
WARM_UP_TO, WARM_FREE, WARM_GAP = 0.03, 0.4, 1e-3


class Held(NamedTuple):
    """The samples of a round: β of all (0 for free ones), the free samples, and X'β and the loss of the fixed ones."""

    beta: Vector
    free: Index
    fixed: Vector
    constant: float


def solve_near_kinks(run: Run, tol: float) -> tuple[Vector, Vector]:
    """w and β with a relative duality gap of about tol; all samples are variables if fixing some does not pay."""
    form, options = run.form, run.options
    usable, qp, d = form.usable, form.qp, form.rows.d
    n = len(usable)
    beta = np.zeros(form.rows.n)
    if run.start is not None and not qp.ridge.any():
        w, gap = run.start
        return _all_samples(run, tol, w, WARM_FREE * min(1.0, float(np.sqrt(gap / WARM_GAP))))
    size = int(max(PART, PART_SHARE * n, min(PART_ROWS_PER_FEATURE * d, PART_UP_TO * n)))
    # the rounds cost more than they save on sparse rows
    whole = form.rows.sparse or size > PART_UP_TO * n or size < FEWEST_ROWS_PER_FEATURE * d
    if whole or qp.ridge.any():
        path = run.follow(*form.part(usable), tol)
        beta[usable] = path.beta
        return path.w, beta
    chosen = np.random.default_rng(options.seed).choice(usable, size, replace=False, shuffle=False)
    path = run.follow(*form.part(np.sort(chosen), n / size), PART_TOL)
    return _all_samples(run, tol, path.w, FREE * float(np.sqrt(d / size)))


def _all_samples(run: Run, tol: float, w: Vector, share: float) -> tuple[Vector, Vector]:
    """Repeat rounds over all samples, from a good w, until the gap due to wrongly fixed samples is within tol."""
    form, qp, usable, threads = run.form, run.form.qp, run.form.usable, run.options.n_threads
    rows = form.rows
    slope = qp.linear - rows.dot(w, threads)
    is_usable = qp.lower < qp.upper
    free = usable[_nearest(_at(qp, usable), slope[usable], share)]
    beta = np.zeros(rows.n)
    for _ in range(MAX_ROUNDS):
        held = _hold(rows, qp, slope, free, threads)
        if run.stopped is not None:
            # out of time: return the ends of the boxes that w implies
            return w, held.beta
        inner, part = _inner(rows, qp, held)
        mu = _first_mu(qp, slope, free)
        path = run.follow(inner, part, tol, fixed=held.fixed, constant=held.constant, w=w, mu=mu)
        w, beta = path.w, held.beta
        beta[free] = path.beta
        slope = qp.linear - rows.dot(w, threads)
        ends = ends_of(qp, slope)
        is_free = np.zeros(rows.n, dtype=bool)
        is_free[free] = True
        crossed = np.flatnonzero(is_usable & ~is_free & (ends != beta))
        # the part of the gap of each wrongly fixed sample is its distance from the kink times the change of β
        distance = np.abs(np.abs(slope[crossed]) - qp.l1[crossed])
        gap = float(distance @ np.abs(ends[crossed] - beta[crossed]))
        if gap <= tol * abs(path.primal) or run.stopped is not None:
            break
        # samples as near to a kink as these may cross it, too; if many crossed, too few samples were free
        reach = 2.0 * float(distance.mean())
        near = np.flatnonzero(is_usable & (np.abs(np.abs(slope) - qp.l1) <= reach))
        share = max(FEWEST * rows.d / len(usable), 2.0 * share * (len(crossed) > MANY * len(free)))
        closest = usable[_nearest(_at(qp, usable), slope[usable], share)]
        free = np.union1d(np.union1d(near, closest), crossed)
    return w, beta


def _at(qp: BoxQP, samples: Index) -> BoxQP:
    """The program of some samples; qp itself for all of them."""
    return qp if len(samples) == qp.n_vars else qp.take(samples, None)


def ends_of(qp: BoxQP, slope: Vector) -> Vector:
    """The optimal β for the slope t = linear − f: an end of the box, or 0 at the kink."""
    return np.where(slope > qp.l1, qp.upper, np.where(slope < -qp.l1, qp.lower, 0.0))


def _nearest(qp: BoxQP, slope: Vector, share: float) -> Index:
    """The share of samples whose slope is nearest to a kink; all of them if the share is large."""
    n = qp.n_vars
    count = int(share * n)
    if share >= MOST or count >= n:
        return np.arange(n)
    distance = np.abs(np.abs(slope) - qp.l1)
    return np.flatnonzero(distance <= np.partition(distance, count)[count])


def _first_mu(qp: BoxQP, slope: Vector, free: Index) -> float:
    """μ for free samples at their average distance from the kink."""
    distance = float(np.abs(np.abs(slope[free]) - qp.l1[free]).mean())
    return MU * float((qp.upper[free] - qp.lower[free]).mean()) * distance or 1.0


def _hold(rows: Rows, qp: BoxQP, slope: Vector, free: Index, n_threads: int) -> Held:
    """Fix all samples except the free ones at the ends of their boxes."""
    beta = np.where(qp.lower < qp.upper, ends_of(qp, slope), 0.0)
    beta[free] = 0.0
    if len(free) == rows.n:
        return Held(beta, free, np.zeros(rows.d), 0.0)
    return Held(beta, free, rows.tdot(beta, n_threads), float(qp.linear @ beta - qp.l1 @ np.abs(beta)))


def _inner(rows: Rows, qp: BoxQP, held: Held) -> tuple[Rows, BoxQP]:
    """Rows and program of the free samples."""
    return (rows, qp) if len(held.free) == rows.n else (rows.take(held.free), qp.take(held.free, None))
