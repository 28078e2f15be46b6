"""What a part computes for a linear machine. Each function runs where the part is and edits ``part.state``.

    min over w, b   P(w) + Σ Cᵢ ℓ(yᵢ, xᵢ·w + b)

Only scalars, vectors over the features and matrices over pairs of features are returned. β, the multipliers and the
decision values of a part's rows stay in its `LinearState`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from mercer.linear.central_path import Samples, mu_sums
from mercer.linear.linear_problem import RIDGE, Penalty, Rows
from mercer.linear.near_kinks import ends_of
from mercer.linear.newton import newton_pass
from mercer.linear.systems import column_squares, weighted_gram
from mercer.losses import EpsilonInsensitive, Hinge, OneClass, Pinball, Squared, SquaredEpsilonInsensitive, SquaredHinge
from mercer.losses.base import BoxQP, Index, Loss, Vector
from mercer.parts.layout import Block, Part, added, keeps_state, nbytes, sets_state

# losses of machines over parts
LOSSES = (Hinge, SquaredHinge, EpsilonInsensitive, SquaredEpsilonInsensitive, Pinball, Squared, OneClass)
# X'DX, its diagonal, or nothing
Curvature = Literal["full", "diagonal", "none"]
# rows of which some numbers each are computed together
BLOCK = 1 << 14
# the constant feature that stands for a free intercept has this value
ONE = 1.0


@dataclass(frozen=True)
class Statement:
    """The problem without its rows. Picklable.

    Attributes
    ----------
    loss, C : the loss of a sample and its price, which the sample's weight multiplies.
    intercept : whether there is a free b.
    bias : the value of a constant feature, whose weight is a penalised intercept; 0 for none.
    penalty : P; without an l1 part.
    code : turns the loaded (y, weight) into targets and weights, such as one class against the rest; None to use them.
    """

    loss: Loss
    C: float = 1.0
    intercept: bool = False
    bias: float = 0.0
    penalty: Penalty = RIDGE
    code: Callable[[Vector, Vector], tuple[Vector, Vector]] | None = None

    def targets(self, block: Block) -> tuple[Vector, Vector]:
        """Targets and C times the weights."""
        y, weight = (block.y, block.weight) if self.code is None else self.code(block.y, block.weight)
        return y, self.C * weight


@dataclass(eq=False)
class LinearState:
    """The vectors of a part. ``beta`` is the present β of all its rows."""

    statement: Statement
    y: Vector
    price: Vector
    qp: BoxQP
    beta: Vector
    # linear − Xw − b of the last model
    slope: Vector = field(default_factory=lambda: np.empty(0))
    # samples of the central path, their rows if these are kept, and whether each sample was fixed at the wrong end
    free: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    inner: Rows | None = None
    reserved: int = 0
    crossed: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    samples: Any = None
    best: Vector = field(default_factory=lambda: np.empty(0))
    change: Vector = field(default_factory=lambda: np.empty(0))
    # Newton's method: decision values here and at the other end of a step, and second derivatives
    f: Vector = field(default_factory=lambda: np.empty(0))
    f_from: Vector = field(default_factory=lambda: np.empty(0))
    D: Vector = field(default_factory=lambda: np.empty(0))
    # coordinate descent
    work: Any = None

    @property
    def vectors(self) -> tuple[Vector, ...]:
        """linear, l1, ridge, lower and upper."""
        qp = self.qp
        return qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper

    @property
    def usable(self) -> Index:
        """The samples with lower < upper."""
        return np.flatnonzero(self.qp.lower < self.qp.upper)


class Facts(NamedTuple):
    """What is known of a part once its problem is stated.

    ``largest`` is the largest absolute value of X if that of the squares may overflow, else 0.
    ``low`` and ``high``: the loss of the part at w = 0 is 0 for an intercept between these. ``total``: the part's share
    of what Σβ must be.
    """

    n: int
    d: int
    usable: int
    smooth: bool
    squares: float
    largest: float
    low: float
    high: float
    sparse: bool
    row_bytes: float
    total: float


def own_rows(part: Part) -> Rows:
    """The rows with the constant feature of a penalised intercept, or none."""
    return Rows(part.block().X, part.state.statement.bias)


def all_rows(part: Part) -> Rows:
    """The rows with the constant feature of any intercept."""
    statement = part.state.statement
    return Rows(part.block().X, ONE if statement.intercept else statement.bias)


@sets_state
def state_problem(part: Part, statement: Statement) -> Facts:
    """Begin a problem: β = 0."""
    forget(part)
    block = part.block()
    y, price = statement.targets(block)
    qp = statement.loss.box_qp(y, price, statement.intercept)
    part.state = LinearState(statement, y, price, qp, np.zeros(part.n))
    rows = all_rows(part)
    with np.errstate(over="ignore"):
        squares = part.squares + float(y @ y)
    # smaller sums of squares of any number of parts have a finite sum
    largest = 0.0 if squares < 1e300 else rows.largest
    low, high = -np.inf, np.inf
    for here in _blocks(part.n):
        linear, l1 = qp.linear[here], qp.l1[here]
        low = max(low, float((linear - l1)[qp.upper[here] > 0].max(initial=-np.inf)))
        high = min(high, float((linear + l1)[qp.lower[here] < 0].min(initial=np.inf)))
    usable = int(np.count_nonzero(qp.lower < qp.upper))
    row_bytes, total = nbytes(block.X) / part.n, float(qp.sums.sum())
    return Facts(part.n, rows.d, usable, qp.is_smooth, squares, largest, low, high, rows.sparse, row_bytes, total)


@sets_state
def forget(part: Part) -> None:
    """Drop the vectors of the last problem."""
    if part.state is not None and part.state.reserved:
        part.budget.give_back(part.state.reserved)
    part.state = None


@keeps_state
def sample_rows(part: Part, share: float, seed: int) -> tuple[Any, Vector, Vector]:
    """X, targets and prices of a random share of the usable rows."""
    state, usable = part.state, part.state.usable
    rng = np.random.default_rng([seed, part.index])
    count = int(share * len(usable) + rng.random())
    chosen = np.sort(rng.choice(usable, min(count, len(usable)), replace=False, shuffle=False))
    return Rows(part.block().X).take(chosen).X, state.y[chosen], state.price[chosen]


# ---- central path ------------------------------------------------------------------------------------------------


class Classified(NamedTuple):
    """How a model divides a part: some distances from the kinks, and the samples that were fixed at the wrong end.

    ``distance`` is the sum of their distances, ``gap`` their part of the duality gap.
    """

    some: Vector
    crossed: int
    distance: float
    gap: float


def classify(part: Part, w: Vector, every: int, is_first: bool) -> Classified:
    """Compute the slopes at w; unless ``is_first``, compare β of the fixed samples with the ends that these imply."""
    state, qp = part.state, part.state.qp
    state.slope = qp.linear - all_rows(part).dot(w, part.n_threads)
    distance = np.abs(np.abs(state.slope) - qp.l1)
    ends = ends_of(qp, state.slope)
    wrong = (qp.lower < qp.upper) & (ends != state.beta)
    wrong[state.free] = False
    if is_first:
        wrong[:] = False
    state.crossed = crossed = np.flatnonzero(wrong)
    gap = float(distance[crossed] @ np.abs(ends[crossed] - state.beta[crossed]))
    return Classified(distance[state.usable][::every], len(crossed), float(distance[crossed].sum()), gap)


def hold(part: Part, radius: float) -> tuple[Any, ...]:
    """Fix all samples except those within the radius of a kink, and those that were fixed at the wrong end.

    Returns X'β and the loss of the fixed ones at w = 0, whether the free rows must be read again, the sums of
    `mu_sums` over the free ones, and of their number, rooms, distances and finite bounds.
    """
    state, qp = part.state, part.state.qp
    usable = qp.lower < qp.upper
    if radius == np.inf:
        free = usable
        distance = np.zeros(part.n)
    else:
        distance = np.abs(np.abs(state.slope) - qp.l1)
        free = usable & (distance <= radius)
        free[state.crossed] = usable[state.crossed]
    rows = all_rows(part)
    state.free = np.flatnonzero(free)
    state.beta = np.zeros(part.n) if radius == np.inf else np.where(usable & ~free, ends_of(qp, state.slope), 0.0)
    _keep_inner(part, rows)
    own = qp if len(state.free) == part.n else qp.take(state.free, None)
    state.samples = Samples.of(own)
    fixed, constant = np.zeros(rows.d), 0.0
    if state.beta.any():
        fixed = rows.tdot(state.beta, part.n_threads)
        constant = float(qp.linear @ state.beta - qp.l1 @ np.abs(state.beta))
    room = float(np.sum(own.upper - own.lower)) if own.is_bounded else 0.0
    sums = np.array([len(state.free), room, float(distance[state.free].sum()), state.samples.n_bounds])
    return fixed, constant, int(state.inner is None), mu_sums(own), sums


def _keep_inner(part: Part, rows: Rows) -> None:
    """Copy the free rows if they are not all and fit into the budget."""
    state = part.state
    part.budget.give_back(state.reserved)
    state.inner, state.reserved = None, 0
    if len(state.free) == part.n:
        state.inner = rows if part.in_memory else None
        return
    size = int(nbytes(rows.X) * len(state.free) / part.n)
    if part.budget.take(size):
        state.inner, state.reserved = rows.take(state.free), size


def _inner(part: Part) -> Rows:
    """The rows of the free samples."""
    state = part.state
    if state.inner is not None:
        return state.inner
    rows = all_rows(part)
    return rows if len(state.free) == part.n else rows.take(state.free)


def start_at_kinks(part: Part, mu: float) -> tuple[Any, ...]:
    """A'β, A'D linear and A'DA with every sample at its kink."""
    samples, rows = part.state.samples, _inner(part)
    samples.start(samples.linear, mu)
    D = samples.curvature()
    v, weighted = rows.tdot(samples.beta, part.n_threads), rows.tdot(D * samples.linear, part.n_threads)
    return v, weighted, weighted_gram(rows, D, part.n_threads)


def start(part: Part, w: Vector, mu: float) -> tuple[Any, ...]:
    """A'β with every sample on the central path at Aw; the loss, the gap and the sums of `_predict`."""
    samples, rows = part.state.samples, _inner(part)
    samples.start(rows.dot(w, part.n_threads), mu)
    return rows.tdot(samples.beta, part.n_threads), *samples.loss_and_gap(), *_predict(part, rows)


def _predict(part: Part, rows: Rows) -> tuple[Any, Any]:
    """A'(β + Dg) and A'DA for the predictor, whose wanted products are 0."""
    samples = part.state.samples
    samples.aim(0.0)
    samples.weigh()
    total = rows.tdot(samples.beta + samples.Dg, part.n_threads)
    return total, weighted_gram(rows, samples.D, part.n_threads)


def correct(part: Part, target: float) -> tuple[Any]:
    """A'(β + Dg) for the corrector."""
    samples = part.state.samples
    samples.aim(target)
    samples.weigh()
    return (_inner(part).tdot(samples.beta + samples.Dg, part.n_threads),)


def step(part: Part, dw: Vector) -> Vector:
    """[rate, products, slope, bend] of the step for the change dw of w."""
    state = part.state
    state.change = _inner(part).dot(dw, part.n_threads)
    return np.asarray(state.samples.step(state.change))


def move(part: Part, length: float, keep: bool) -> tuple[Any, ...]:
    """Move along the last step; returns the loss, the gap and the sums of `_predict`.

    ``keep`` remembers the β before the move as the best one.
    """
    if keep:
        keep_best(part)
    part.state.samples.move(length, part.state.change)
    return *part.state.samples.loss_and_gap(), *_predict(part, _inner(part))


def keep_best(part: Part) -> None:
    """Remember β."""
    part.state.best = part.state.samples.beta.copy()


def end_path(part: Part, keep: bool) -> None:
    """Put the best β of the path into that of the part, and drop what only the path needs."""
    if keep:
        keep_best(part)
    state = part.state
    state.beta[state.free] = state.best
    part.budget.give_back(state.reserved)
    state.samples, state.inner, state.reserved = None, None, 0
    state.best = state.change = np.empty(0)


# ---- Newton's method ---------------------------------------------------------------------------------------------


def newton_point(part: Part, u: Vector, is_new_step: bool, matrix: Curvature) -> tuple[Any, ...]:
    """The loss at u, X'β, the curvature and the number of samples with D > 0, in one pass over the rows.

    ``is_new_step`` makes the decision values of the last point those from which the step begins.
    """
    state, rows = part.state, all_rows(part)
    if is_new_step:
        state.f_from, state.f = state.f, state.f_from
    # new memory costs as much as the pass writes to it
    if len(state.f) != part.n:
        state.f = np.empty(part.n)
    if len(state.D) != part.n:
        state.D = np.empty(part.n)
    loss, v = newton_pass(rows, u, state.vectors, state.f, state.beta, state.D, part.n_threads)
    return loss, v, _curvature(part, rows, matrix), int(np.count_nonzero(state.D))


def _curvature(part: Part, rows: Rows, matrix: Curvature) -> Any:
    if matrix == "none":
        return np.empty((0, 0))
    D = part.state.D
    return weighted_gram(rows, D, part.n_threads) if matrix == "full" else column_squares(rows, D)


@keeps_state
def curvature(part: Part) -> tuple[Any]:
    """X'DX at the last point."""
    return (_curvature(part, all_rows(part), "full"),)


@keeps_state
def curvature_product(part: Part, p: Vector) -> tuple[Vector]:
    """X'DX p."""
    rows = all_rows(part)
    return (rows.tdot(part.state.D * rows.dot(p, part.n_threads), part.n_threads),)


def begin_line(part: Part) -> None:
    """Keep the change of the decision values along the step, before another point of the line is tried."""
    part.state.change = part.state.f - part.state.f_from


@keeps_state
def line_point(part: Part, s: float) -> tuple[float, float]:
    """The derivatives of the loss along the step."""
    from mercer.linear._newton_loops import line_derivatives

    state = part.state
    first, second = line_derivatives(state.f_from, state.change, s, *state.vectors)
    return float(first), float(second)


# ---- certificate -------------------------------------------------------------------------------------------------


def room_in_box(part: Part) -> tuple[float, float, float]:
    """Put β into its box; returns Σβ, Σ|β| and Σ room², where room is the distance to the nearer bound."""
    state = part.state
    state.beta = np.clip(state.beta, state.qp.lower, state.qp.upper)
    room, size = _room(state), np.abs(state.beta)
    return float(state.beta.sum()), float(size.sum()), float(room @ room)


def shift_to_balance(part: Part, x: float) -> None:
    """Add x room² to β, within the box."""
    state = part.state
    state.beta = np.clip(state.beta + x * _room(state) ** 2, state.qp.lower, state.qp.upper)


@keeps_state
def sum_of_sign(part: Part, sign: float) -> tuple[float]:
    """The sum of the β of this sign."""
    beta = part.state.beta
    return (float(beta[sign * beta > 0].sum()),)


def scale_to_balance(part: Part, sign: float, factor: float) -> None:
    """Multiply the β of this sign."""
    beta = part.state.beta
    beta[sign * beta > 0] *= factor


def room_above(part: Part) -> tuple[float]:
    """Σ (upper − β)."""
    return (float((part.state.qp.upper - part.state.beta).sum()),)


def raise_to_balance(part: Part, share: float) -> None:
    """Move each β by this share of its distance to the upper bound."""
    state = part.state
    state.beta = state.beta + share * (state.qp.upper - state.beta)


def _room(state: LinearState) -> Vector:
    room = np.minimum(state.beta - state.qp.lower, state.qp.upper - state.beta)
    # β without bounds has room in proportion to its size
    return np.where(np.isfinite(room), room, np.abs(state.beta))


class Checked(NamedTuple):
    """A part's share of the certificate."""

    v: Vector
    loss: float
    gain: float
    terms: float
    total: float
    violation: float
    outside: float
    largest: float


def certify_part(part: Part, w: Vector, intercept: float, is_last_point: bool = False) -> Checked:
    """The share of primal and dual of the part's rows, from w, b, β and the rows alone.

    If w is that of the last `newton_point`, this has stored the decision values and returned X'β: no row is read, and
    ``v`` is 0.
    """
    state, qp = part.state, part.state.qp
    beta = np.clip(state.beta, qp.lower, qp.upper, out=state.beta)
    if is_last_point:
        decision, v = state.f, np.zeros(len(w))
    else:
        rows = own_rows(part)
        decision, v = rows.dot(w, part.n_threads), rows.tdot(beta, part.n_threads)
        decision += intercept
    largest = max(float(beta.max(initial=0.0)), -float(beta.min(initial=0.0)))
    found = [_check_rows(state, decision, here, largest) for here in _blocks(part.n)]
    paid, gain, terms, total = added(sums for sums, _ in found)
    violation, outside = (max(column) for column in zip(*(worst for _, worst in found), strict=True))
    return Checked(v, paid, gain, terms, total, violation, outside, largest)


def _check_rows(
    state: LinearState, decision: Vector, here: slice, largest: float
) -> tuple[tuple[float, ...], tuple[float, float]]:
    """Of some rows: the loss, their share of the dual, the size of its terms and Σβ; the worst violation of each kind."""
    from mercer.linear._row_loops import check_optimality

    qp, loss, f, beta = state.qp, state.statement.loss, decision[here], state.beta[here]
    linear, l1, ridge, lower, upper = (vector[here] for vector in state.vectors)
    violation, outside, total = check_optimality(beta, f, linear, l1, ridge, lower, upper, largest)
    paid = loss.primal(0.0, state.y[here], f, state.price[here], np.zeros(qp.n_groups), np.zeros(qp.n_groups))
    gain = (linear - 0.5 * ridge * beta) @ beta - l1 @ np.abs(beta)
    return (paid, float(gain), float(np.abs(linear * beta).sum()), float(total)), (float(violation), float(outside))


def _blocks(n: int) -> Iterator[slice]:
    """All rows, so many at a time that vectors over them stay in the cache: memory for more would cost the most."""
    for first in range(0, n, BLOCK):
        yield slice(first, min(first + BLOCK, n))
