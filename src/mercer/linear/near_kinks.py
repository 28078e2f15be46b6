"""The optimum of a loss of straight pieces from the samples near its kinks.

A sample that is not near a kink of its loss (hinge, ε-insensitive, pinball) has its β at a known end of the box and
adds a constant vector to the gradient. So

1. the central path is followed on a random part of the samples, whose optimum is near that of all, unless a model that
   is near it is known;
2. of all samples those near a kink are left free, the others are held at the end where they are, and the path is
   followed again;
3. samples that were held at the wrong end open the duality gap, and nothing else does. While it is above tol, step 2 is
   repeated with them and with those that are as near to a kink as they were.

A random part of m samples determines the decision values to about √(d/m): a multiple of this is the share of samples
that are left free. All rows are read twice a round, so that they may well be on disk; those that are free are copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mercer.linear.problem import Rows
from mercer.losses.base import BoxQP, Index, Vector

if TYPE_CHECKING:
    from mercer.linear.interior import Run

# samples of the part, at least, for each feature, and as a share of all; it is not worth while above the last share, or
# with fewer for each feature
PART = 500
PART_ROWS_PER_FEATURE = 60
FEWEST_ROWS_PER_FEATURE = 15
PART_SHARE = 1 / 16
PART_UP_TO = 0.25
# the gap at which the part is good enough
PART_TOL = 1e-2
# samples left free, in units of √(d/m)
FREE = 3.0
# from this share on, leaving samples out does not pay
MOST = 0.7
# the first products of distance and multiplier, in units of box times distance from the kink
MU = 1.0
# samples for each feature that are free in every round
FEWEST = 4
# of the free ones, how many may cross before more are left free
MANY = 0.1
MAX_ROUNDS = 10
# a model with a relative gap up to the first number takes the place of the first part; it leaves this share of the
# samples free, fewer where its gap is below the last number, as its root
WARM_UP_TO, WARM_FREE, WARM_GAP = 0.03, 0.4, 1e-3


class Held(NamedTuple):
    """A round: β of all samples (0 where they are free), the free samples, and what the others contribute."""

    beta: Vector
    free: Index
    fixed: Vector
    constant: float


def rounds(run: Run, tol: float) -> tuple[Vector, Vector]:
    """w and β with a duality gap of about tol, by parts of the samples where that pays."""
    form, options = run.form, run.options
    usable, qp, d = form.usable, form.qp, form.rows.d
    n = len(usable)
    beta = np.zeros(form.rows.n)
    if run.start is not None and not qp.ridge.any():
        w, gap = run.start
        return _all_samples(run, tol, w, WARM_FREE * min(1.0, float(np.sqrt(gap / WARM_GAP))))
    size = int(max(PART, PART_SHARE * n, min(PART_ROWS_PER_FEATURE * d, PART_UP_TO * n)))
    # the products of a sparse row cost less than the rounds
    whole = form.rows.sparse or size > PART_UP_TO * n or size < FEWEST_ROWS_PER_FEATURE * d
    if whole or qp.ridge.any():
        path = run.follow(*form.part(usable), tol)
        beta[usable] = path.beta
        return path.w, beta
    chosen = np.random.default_rng(options.seed).choice(usable, size, replace=False, shuffle=False)
    path = run.follow(*form.part(np.sort(chosen), n / size), PART_TOL)
    return _all_samples(run, tol, path.w, FREE * float(np.sqrt(d / size)))


def _all_samples(run: Run, tol: float, w: Vector, share: float) -> tuple[Vector, Vector]:
    """Rounds over all samples from a good w until the gap is small or no sample is held at a wrong end."""
    form, qp, usable, threads = run.form, run.form.qp, run.form.usable, run.options.n_threads
    rows = form.rows
    slope = qp.linear - rows.dot(w, threads)
    is_usable = qp.lower < qp.upper
    free = usable[_nearest(_at(qp, usable), slope[usable], share)]
    beta = np.zeros(rows.n)
    for _ in range(MAX_ROUNDS):
        held = _hold(rows, qp, slope, free, threads)
        if run.stopped is not None:
            # nothing more is computed: the ends that w asks for are as good as any
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
        # what a sample held at one end loses by not being at the other
        distance = np.abs(np.abs(slope[crossed]) - qp.l1[crossed])
        gap = float(distance @ np.abs(ends[crossed] - beta[crossed]))
        if gap <= tol * abs(path.primal) or run.stopped is not None:
            break
        # as far as these went beyond their kink, others may go as well; if many did, the free ones were too few
        reach = 2.0 * float(distance.mean())
        near = np.flatnonzero(is_usable & (np.abs(np.abs(slope) - qp.l1) <= reach))
        share = max(FEWEST * rows.d / len(usable), 2.0 * share * (len(crossed) > MANY * len(free)))
        closest = usable[_nearest(_at(qp, usable), slope[usable], share)]
        free = np.union1d(np.union1d(near, closest), crossed)
    return w, beta


def _at(qp: BoxQP, samples: Index) -> BoxQP:
    """The program of some samples, itself if they are all."""
    return qp if len(samples) == qp.n_vars else qp.take(samples, None)


def ends_of(qp: BoxQP, slope: Vector) -> Vector:
    """β at the end of the box, or at the kink at 0, that the slope t = linear − f asks for."""
    return np.where(slope > qp.l1, qp.upper, np.where(slope < -qp.l1, qp.lower, 0.0))


def _nearest(qp: BoxQP, slope: Vector, share: float) -> Index:
    """The samples whose slope is nearest to a kink; all of them if the share is large."""
    n = qp.n_vars
    count = int(share * n)
    if share >= MOST or count >= n:
        return np.arange(n)
    distance = np.abs(np.abs(slope) - qp.l1)
    return np.flatnonzero(distance <= np.partition(distance, count)[count])


def _first_mu(qp: BoxQP, slope: Vector, free: Index) -> float:
    """Products as they are where a free sample is as far from its kink as they are on average."""
    distance = float(np.abs(np.abs(slope[free]) - qp.l1[free]).mean())
    return MU * float((qp.upper[free] - qp.lower[free]).mean()) * distance or 1.0


def _hold(rows: Rows, qp: BoxQP, slope: Vector, free: Index, n_threads: int) -> Held:
    """Hold all samples but the free ones at the ends where they are."""
    beta = np.where(qp.lower < qp.upper, ends_of(qp, slope), 0.0)
    beta[free] = 0.0
    if len(free) == rows.n:
        return Held(beta, free, np.zeros(rows.d), 0.0)
    return Held(beta, free, rows.tdot(beta, n_threads), float(qp.linear @ beta - qp.l1 @ np.abs(beta)))


def _inner(rows: Rows, qp: BoxQP, held: Held) -> tuple[Rows, BoxQP]:
    """Rows and program of the free samples."""
    return (rows, qp) if len(held.free) == rows.n else (rows.take(held.free), qp.take(held.free, None))
