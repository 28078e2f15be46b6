"""The central path over parts, with only the samples near a kink of their loss as variables.

The method is that of `mercer.linear.near_kinks`: a model of a random sample of rows; all other samples at the ends of
their boxes; the central path on the samples near a kink; once more with the samples that were fixed at the wrong end.
Squared losses and few rows per column take the path over all samples.

A round reads all rows twice. A step of the path is four passes over the free rows, which are copied if the budget of
their process allows it: the move of the last step is one pass with the weights of the next. Each part returns X'β, X'DX
and scalars. Where a pass is a message (`Parts.path_numbers`) and the free rows are few, they are brought to the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.linear.central_path import Path, RowSystem, first_mu, follow_path
from mercer.linear.interior import ATTEMPTS, LESS, SHARE
from mercer.linear.linear_problem import Rows
from mercer.linear.linear_solution import LinearSolution
from mercer.linear.near_kinks import (
    FEWEST,
    FEWEST_ROWS_PER_FEATURE,
    FREE,
    MANY,
    MAX_ROUNDS,
    MOST,
    MU,
    PART,
    PART_ROWS_PER_FEATURE,
    PART_SHARE,
    PART_TOL,
    PART_UP_TO,
    WARM_FREE,
)
from mercer.linear.systems import GramSystem
from mercer.losses.base import BoxQP, Vector
from mercer.parts import linear_part
from mercer.parts.linear_part import Classified
from mercer.parts.linear_run import PartsRun, stacked
from mercer.problems.solution import Status

# distances that are brought to the caller, whose quantile is the radius of the free samples
DISTANCES = 50_000
# passes of a step of the path
STEP = 4
# a radius that contains all samples
FAR = float(np.finfo(np.float64).max)


def solve(run: PartsRun) -> LinearSolution:
    """Minimise: attempts of increasing accuracy until the certificate is within tol."""
    best: LinearSolution | None = None
    tol = SHARE * run.options.tol
    for _ in range(ATTEMPTS):
        w = _all_samples(run, tol) if run.smooth or best is not None else _near_kinks(run, tol)
        solution = run.publish(w, "interior")
        if best is None or solution.certificate.relative_gap < best.certificate.relative_gap:
            best = solution
        if solution.status is not Status.STALLED:
            break
        tol *= LESS
    assert best is not None
    return replace(best, n_iter=run.n_iter)


class PartSystem:
    """The samples of a central path, in parts (see `central_path.SampleSystem`)."""

    def __init__(self, run: PartsRun, n_bounds: int, mu: float, reads: bool) -> None:
        self.parts, self.d = run.parts, run.d
        self.n_bounds, self.first_mu, self.reads = n_bounds, mu, reads
        self.system = GramSystem()
        self.solve, self.apply = self.system.solve, self.system.apply
        # β is the best so far and not yet remembered: the next pass remembers it
        self.better = False

    def start_at_kinks(self, mu: float) -> tuple[Vector, Vector]:
        """A'β and A'D linear."""
        v, weighted, self.gram = self.parts.total(linear_part.start_at_kinks, mu, reads=self.reads)
        return v, weighted

    def start(self, w: Vector, mu: float) -> Vector:
        """A'β with every sample on the central path at Aw."""
        v, *found = self.parts.total(linear_part.start, w, mu, reads=self.reads)
        self._keep_values(found)
        return np.asarray(v)

    def loss_and_gap(self) -> tuple[float, float]:
        """The loss and the gap that the last start or move found."""
        return self.values

    def keep(self) -> None:
        """Remember β, with the next pass."""
        self.better = True

    def best(self) -> Vector:
        """Put the best β into that of each part; returns nothing."""
        self.parts.map(linear_part.end_path, self.better, reads=False)
        self.better = False
        return np.empty(0)

    def weigh(self, target: float) -> Vector:
        """A'(β + Dg); for target 0 as the last start or move found it."""
        if target == 0:
            return self.predicted
        (total,) = self.parts.total(linear_part.correct, target, reads=self.reads)
        return np.asarray(total)

    def factor(self, diagonal: Vector) -> bool:
        """Factor the sum of the parts' matrices."""
        return self.system.factor_gram(self.gram, diagonal)

    def step(self, dw: Vector) -> Vector:
        """The largest rate, and the sums of the other numbers."""
        found = np.array(self.parts.map(linear_part.step, dw, reads=self.reads))
        return np.array([found[:, 0].max(), *found[:, 1:].sum(axis=0)])

    def move(self, length: float) -> None:
        """Move along the step, and begin the next one."""
        self._keep_values(self.parts.total(linear_part.move, length, self.better, reads=self.reads))
        self.better = False

    def _keep_values(self, found: Sequence[Any]) -> None:
        """Keep the loss and the gap, and A'(β + Dg) and A'DA of the next step."""
        loss, gap, self.predicted, self.gram = found
        self.values = loss, gap


class BroughtSystem(RowSystem):
    """The samples of a central path, brought to the caller: a step takes no message, and one β goes back."""

    def __init__(self, run: PartsRun) -> None:
        self.parts = run.parts
        self.indices, X, vectors = zip(*run.parts.map(linear_part.free_samples, reads=False), strict=True)
        self.ends = np.cumsum([own.shape[1] for own in vectors])
        linear, l1, ridge, lower, upper = np.concatenate(vectors, axis=1)
        qp = BoxQP(linear, l1, ridge, lower, upper, np.zeros(len(linear), np.int8), np.zeros(0))
        rows = Rows.of(stacked(list(X)), run.statement.constant)
        super().__init__(rows, qp, run.q, run.options.n_threads, other_system=False)

    def best(self) -> Vector:
        """The best β. Puts it into that of each part, too."""
        beta = super().best()
        own = dict(zip(self.indices, np.split(beta, self.ends[:-1]), strict=True))
        self.parts.map(linear_part.end_path_with, own, reads=False)
        return beta


def _all_samples(run: PartsRun, tol: float, w: Vector | None = None) -> Vector:
    """The central path with all samples as variables, from a model, or from that of least squares."""
    # decision values of a one-class machine are of the size of Σβ, which least squares do not know
    w = run.start if w is None and run.total else w
    if w is None:
        return _path(run, tol, np.inf, None).w
    _classify(run, w, max(1, run.usable), True)
    return _path(run, tol, FAR, w).w


def _near_kinks(run: PartsRun, tol: float) -> Vector:
    """Rounds over the samples near a kink, from a model, or from that of a random sample of rows."""
    n, d = run.usable, run.d
    size = run.sample_size(max(PART, PART_SHARE * n, min(PART_ROWS_PER_FEATURE * d, PART_UP_TO * n)))
    is_warm = run.start is not None and len(run.start) == d
    has_many_columns = size > PART_UP_TO * n or size < FEWEST_ROWS_PER_FEATURE * d
    # with two kinks few samples are far from both
    if has_many_columns and (not is_warm or getattr(run.statement.loss, "epsilon", 0.0) > 0):
        return _all_samples(run, tol, run.start if is_warm else None)
    w = run.sample_model(size, PART_TOL)
    if w is None:
        return _all_samples(run, tol)
    share = FREE * float(np.sqrt(d / max(1, size)))
    share = min(share, WARM_FREE) if is_warm else share
    least, every = 0.0, max(1, n // DISTANCES)
    seen = _classify(run, w, every, True)
    for _ in range(MAX_ROUNDS):
        # a path begins with a pass over all rows
        run.stopped = run.stopped or run.clock.over_in(run.pass_seconds + run.ending)
        if run.stopped is not None:
            # out of time: the ends of the boxes that w implies
            run.parts.map(linear_part.hold, -1.0)
            break
        radius = max(least, _radius(seen, share))
        path = _path(run, tol, radius, w)
        w = path.w
        if radius == np.inf or run.stopped is not None:
            break
        seen = _classify(run, w, every, False)
        crossed = sum(part.crossed for part in seen)
        if sum(part.gap for part in seen) <= tol * abs(path.primal):
            break
        # others may cross their kink as far as these did; if many crossed, too few samples were free
        least = 2.0 * sum(part.distance for part in seen) / max(1, crossed)
        share = max(FEWEST * d / n, 2.0 * share * (crossed > MANY * path.beta[0]))
    return w


def _classify(run: PartsRun, w: Vector, every: int, is_first: bool) -> list[Classified]:
    """Decision values of all rows at w."""
    run.values_of = w
    found: list[Classified] = run.read_rows(run.parts.map, linear_part.classify, w, every, is_first)
    return found


def _radius(seen: list[Classified], share: float) -> float:
    """The distance from a kink within which this share of the samples lies; inf if that is most of them."""
    distances = np.concatenate([part.some for part in seen])
    count = int(share * len(distances))
    if share >= MOST or count >= len(distances):
        return np.inf
    return float(np.partition(distances, count)[count])


def _path(run: PartsRun, tol: float, radius: float, w: Vector | None) -> Path:
    """Follow the central path on the samples within the radius; ``beta`` of the result is only their number."""
    fixed, constant, unkept, mu_sums, sums = run.read_rows(run.parts.total, linear_part.hold, radius)
    n_free, room, distance, n_bounds = sums
    fixed[-1] -= run.total  # the gradient of the term b Σβ
    mu = None
    if w is not None and radius < np.inf and n_free > 0:
        mu = MU * (room / n_free) * (distance / n_free) or 1.0
    start, n_before = w, run.n_iter

    def over(path: Path) -> bool:
        run.n_iter = n_before + path.n_iter
        gap = path.gap / max(abs(path.primal), np.finfo(np.float64).tiny)
        run.report(gap, path.primal - path.gap, int(n_free), path.w)
        return run.stopped is not None

    run.last = run.clock.seconds
    run.least_step = STEP * run.pass_seconds if unkept else 0.0
    system: PartSystem | BroughtSystem
    if not unkept and 0 < n_free * run.d <= run.parts.path_numbers:
        system = BroughtSystem(run)
    else:
        system = PartSystem(run, int(n_bounds), first_mu(mu_sums), reads=bool(unkept))
    path = follow_path(
        system,
        run.q,
        np.zeros(run.d),
        tol=tol,
        fixed=fixed,
        constant=constant,
        w=start,
        mu=mu,
        max_iter=max(0, run.limit - run.n_iter),
        over=over,
    )
    run.n_iter = n_before + path.n_iter
    if run.stopped is None and run.n_iter >= run.limit and path.gap > tol * abs(path.primal):
        run.stopped = Status.MAX_ITER
    return replace(path, beta=np.array([n_free]))
