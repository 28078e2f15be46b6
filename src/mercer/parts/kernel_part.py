"""What a part computes for an exact kernel machine. Each function runs where the part is and edits ``part.state``.

β and F = Kβ of a part's rows stay in its `KernelState`. Samples travel only to and from the pool of the caller, who
solves the problem of these samples (`kernel_solver`). A part keeps the samples it was sent, so that each comes once;
the parts of one process share them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._compiled.program import Program
from mercer.gram.operator import check_finite, product
from mercer.kernels.base import Kernel
from mercer.kernels.features import Csr, Features, Matrix, Vector, take_samples
from mercer.losses.base import BoxQP, Index, Loss
from mercer.parts.layout import Part, keeps_state, nbytes, sets_state
from mercer.parts.linear_part import Statement, forget
from mercer.parts.linear_run import stacked
from mercer.problems.dual import fill_survey

# bytes of rows that are prepared for the kernel together
TILE_BYTES = 1 << 22
# a part names at least this many of its worst violators
FEWEST_NAMED = 16
NO_ROWS = np.empty(0, np.intp)
# the number of a message whose samples are not kept
ONCE = -1


@dataclass(eq=False)
class KernelState:
    """The vectors of a part: those of its samples with a positive weight, which are the rows ``used``."""

    kernel: Kernel
    loss: Loss
    used: Index
    y: Vector
    price: Vector
    qp: BoxQP
    beta: Vector
    F: Vector
    # the samples of this part that are in the pool, in the order of the caller
    pool: Index = field(default_factory=lambda: NO_ROWS)
    # the samples that came from the caller, by the number of their message
    sent: dict[int, Any] = field(default_factory=dict)
    reserved: int = 0

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.used)


def samples_at(part: Part, rows: Index | slice | None) -> Any:
    """Some rows of a part, or all, as an array or a scipy matrix."""
    X = part.block().X
    if isinstance(X, Csr):
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    if rows is None:
        return X
    return X[rows] if isinstance(rows, slice) else take_samples(X, rows)


def row_bytes(part: Part) -> float:
    """Bytes of a row in memory."""
    X = part.block().X
    return max(1.0, nbytes(X) / part.n if isinstance(X, Csr) else X.shape[1] * X.itemsize)


class Begun(NamedTuple):
    """A part whose problem is stated.

    Of its ``rows`` rows, ``n`` have a positive weight. ``sums`` is the part's share of the sums that β must have.
    """

    part: int
    n: int
    rows: int
    d: int
    row_bytes: float
    sums: Vector


@sets_state
def begin(part: Part, statement: Statement, kernel: Kernel) -> Begun:
    """State the problem of the samples with a positive weight: β = 0."""
    forget(part)
    block = part.block()
    y, price = statement.targets(block)
    used = np.flatnonzero(price > 0)
    y, price = y[used], price[used]
    qp = statement.loss.box_qp(y, price, statement.intercept)
    part.state = state = KernelState(
        kernel, statement.loss, used, y, price, qp, np.zeros(len(used)), np.zeros(len(used))
    )
    for _, rows in _tiles(part, np.float64):
        check_finite(np.asarray(kernel.diagonal(rows), np.float64))
    return Begun(part.index, state.n, part.n, int(block.X.shape[1]), row_bytes(part), qp.sums)


def _tiles(part: Part, dtype: Any) -> Any:
    """(positions, prepared samples) of the samples with a weight, some megabytes at a time."""
    state = part.state
    step = max(1, int(TILE_BYTES / row_bytes(part)))
    for first in range(0, state.n, step):
        here = slice(first, min(first + step, state.n))
        rows = here if state.n == part.n else state.used[here]
        yield here, state.kernel.prepare(samples_at(part, rows), dtype)


# ---- samples that travel -----------------------------------------------------------------------------------------


class Named(NamedTuple):
    """Samples that come to the caller: their positions in the part, and their entries in the program."""

    part: int
    at: Index
    rows: Index
    samples: Any
    y: Vector
    F: Vector
    beta: Vector
    # linear, l1, ridge, lower and upper
    vectors: Matrix


@keeps_state
def name_samples(part: Part, wanted: dict[int, Index]) -> Named | None:
    """The samples at these positions; None for none."""
    at = wanted.get(part.index, NO_ROWS)
    if len(at) == 0:
        return None
    state, qp = part.state, part.state.qp
    samples = samples_at(part, state.used[at])
    part.release()
    vectors = np.stack([values[at] for values in (qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper)])
    return Named(part.index, at, state.used[at], samples, state.y[at], state.F[at], state.beta[at], vectors)


class Message(NamedTuple):
    """The message that the caller sends in a pass.

    Attributes
    ----------
    number, samples : samples that the parts do not have, and the number of this message; None for none. They are
        kept, unless the number is `ONCE`.
    dropped : the numbers of messages whose samples are no longer needed.
    members : the samples whose kernel values are computed, as (message, positions in it).
    weights : their weights in the sum of kernel values.
    """

    number: int
    samples: Any
    dropped: tuple[int, ...]
    members: list[tuple[int, Index]]
    weights: Vector


def _receive(state: KernelState, message: Message, dtype: Any) -> Features:
    """Keep the new samples; returns the members, prepared for the kernel."""
    for number in message.dropped:
        state.sent.pop(number, None)
    if message.samples is not None:
        state.sent[message.number] = message.samples
    members = stacked([take_samples(state.sent[number], at) for number, at in message.members])
    state.sent.pop(ONCE, None)
    return state.kernel.prepare(members, dtype)


def add_product(part: Part, message: Message, anew: bool, dtype: Any) -> tuple[int]:
    """F += K(part, members) weights, or F = that if ``anew``. Returns the number of kernel values."""
    state = part.state
    if anew:
        state.F[:] = 0.0
    if len(message.weights) == 0:
        return (0,)
    members = _receive(state, message, dtype)
    for here, rows in _tiles(part, dtype):
        state.F[here] += product(state.kernel, rows, members, message.weights, part.n_threads)
    return (state.n * len(members),)


# ---- a round -----------------------------------------------------------------------------------------------------


class Pool(NamedTuple):
    """The pool as the parts know it, by the index of the part: positions, and their β."""

    at: dict[int, Index]
    beta: dict[int, Vector]


class Report(NamedTuple):
    """A part after a round.

    ``groups`` and ``totals`` are those of `fill_survey`, ``largest`` is the largest |β|, ``pool`` F of its samples in
    the pool. ``named`` are its worst violators outside of the pool.
    """

    groups: Matrix
    totals: Vector
    largest: float
    support: int
    pool: Vector
    named: Named | None
    evaluations: int


def set_pool(part: Part, pool: Pool) -> None:
    """Take β of the samples in the pool from the caller."""
    state = part.state
    state.pool = pool.at.get(part.index, NO_ROWS)
    state.beta[state.pool] = pool.beta.get(part.index, np.empty(0))


def advance(
    part: Part, message: Message, anew: bool, dtype: Any, pool: Pool, level: float, tol: float, share: float
) -> Report:
    """Add the change of the pool to F, and name the worst violators of this threshold.

    ``share`` is the number of violators to name for each sample; at least `FEWEST_NAMED` are named.
    """
    set_pool(part, pool)
    (evaluations,) = add_product(part, message, anew, dtype)
    state = part.state
    named = None
    if share > 0:
        at = worst_violators(state, level, tol, max(FEWEST_NAMED, int(np.ceil(share * state.n))))
        named = name_samples(part, {part.index: at})
    return look(part)._replace(named=named, evaluations=evaluations)


@keeps_state
def look(part: Part) -> Report:
    """Optimality of the part's β for its F."""
    state = part.state
    groups, totals = np.empty((1, 5)), np.empty(7)
    fill_survey(state.qp, state.beta, state.F, groups, totals)
    largest, support = float(np.abs(state.beta).max(initial=0.0)), int(np.count_nonzero(state.beta))
    return Report(groups, totals, largest, support, state.F[state.pool], None, 0)


def worst_violators(state: KernelState, level: float, tol: float, count: int) -> Index:
    """Up to ``count`` samples outside of the pool that should increase, and as many that should decrease."""
    from mercer.svm._round_loops import score_all

    qp, n = state.qp, state.n
    up, low = np.empty(n), np.empty(n)
    vectors = (qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper)
    score_all(Program(np.arange(n, dtype=np.intp), qp.group, *vectors), state.beta, state.F, up, low)
    excess = up - level, level - low
    chosen = []
    for values in excess:
        values[state.pool] = -np.inf
        at = np.flatnonzero(values > tol)
        chosen.append(at[np.argpartition(values[at], -count)[-count:]] if len(at) > count else at)
    return np.union1d(*chosen)


# ---- start and end -----------------------------------------------------------------------------------------------


@keeps_state
def room_below(part: Part, limits: Vector) -> tuple[Vector]:
    """The sum of the upper bounds of all samples whose F is below each of these limits."""
    state = part.state
    order = np.argsort(state.F, kind="stable")
    room = np.concatenate([[0.0], np.cumsum(state.qp.upper[order])])
    return (room[np.searchsorted(state.F[order], limits)],)


@keeps_state
def ends_of_F(part: Part) -> tuple[float, float]:
    """The smallest and the largest F."""
    F = part.state.F
    return float(F.min(initial=np.inf)), float(F.max(initial=-np.inf))


def start_below(part: Part, low: float, high: float, share: float) -> None:
    """β is at the upper bound where F is below ``low``, at this share of it up to ``high``, else 0."""
    state = part.state
    state.beta = np.select([low > state.F, high > state.F], [1.0, share], 0.0) * state.qp.upper


@keeps_state
def count_support(part: Part, outside: bool) -> tuple[int, int]:
    """The index of the part, and the number of samples with β ≠ 0; only those outside of the pool if asked."""
    return part.index, len(_support(part.state, outside))


@keeps_state
def name_support(part: Part, outside: bool, between: dict[int, tuple[int, int]]) -> Named | None:
    """The samples that `count_support` counts, those with numbers in the range that ``between`` has for this part."""
    first, last = between.get(part.index, (0, 0))
    return name_samples(part, {part.index: _support(part.state, outside)[first:last]}) if first < last else None


def _support(state: KernelState, outside: bool) -> Index:
    carries = state.beta != 0
    if outside:
        carries[state.pool] = False
    return np.flatnonzero(carries)


@keeps_state
def ends_of_kinks(part: Part) -> tuple[float, float]:
    """The smallest and the largest intercept at which some sample changes its side of a kink or its target."""
    state = part.state
    away = state.qp.linear - state.F
    width = float(state.qp.l1.max(initial=0.0))
    return float(away.min(initial=np.inf)) - width, float(away.max(initial=-np.inf)) + width


@keeps_state
def losses_at(part: Part, thresholds: Vector) -> tuple[Vector]:
    """The loss of the part's samples for each of these intercepts."""
    state = part.state
    none = np.zeros(state.qp.n_groups)
    return (
        np.array(
            [state.loss.primal(0.0, state.y, state.F, state.price, np.full(len(none), b), none) for b in thresholds]
        ),
    )
