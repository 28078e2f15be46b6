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
from mercer.linear.systems import Matrix, column_squares, weighted_gram
from mercer.losses import EpsilonInsensitive, Hinge, OneClass, Pinball, Squared, SquaredEpsilonInsensitive, SquaredHinge
from mercer.losses.base import BoxQP, Index, Loss, Vector
from mercer.parts.layout import Block, Part, added, keeps_state, nbytes, sets_state

# losses of machines over parts
LOSSES = (Hinge, SquaredHinge, EpsilonInsensitive, SquaredEpsilonInsensitive, Pinball, Squared, OneClass)
# X'DX, its diagonal, or nothing
Curvature = Literal["full", "diagonal", "none"]
# rows of a slice that is computed at once: see `_blocks`
BLOCK = 1 << 12
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

    @property
    def constant(self) -> float:
        """The value of the constant feature of any intercept; 0 for none."""
        return ONE if self.intercept else self.bias

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
    # samples of the central path, their rows if these are kept, and whether each sample was fixed at the wrong end
    free: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    inner: Rows | None = None
    reserved: int = 0
    crossed: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    samples: Any = None
    best: Vector = field(default_factory=lambda: np.empty(0))
    change: Vector = field(default_factory=lambda: np.empty(0))
    # decision values of the last model; of Newton's method also those at the end of a step, and second derivatives
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
    """Facts about a part whose problem is stated.

    ``largest`` is the largest absolute value of X if that of the squares may overflow, else 0. ``low`` and ``high``:
    the loss of the part at w = 0 is 0 for an intercept between these. ``total``: the part's share of the required Σβ.
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
    return Rows(part.block().X, part.state.statement.constant)


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
        low = max(low, float(np.where(qp.upper[here] > 0, linear - l1, -np.inf).max()))
        high = min(high, float(np.where(qp.lower[here] < 0, linear + l1, np.inf).min()))
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
    """Compute the decision values at w; unless ``is_first``, compare β of the fixed samples with the implied ends."""
    state, qp = part.state, part.state.qp
    state.f = all_rows(part).dot(w, part.n_threads)
    some = state.usable[::every]
    near = np.abs(np.abs(qp.linear[some] - state.f[some]) - qp.l1[some])
    state.crossed = np.empty(0, dtype=np.intp)
    if is_first:
        return Classified(near, 0, 0.0, 0.0)
    crossed, distances, gap = [], 0.0, 0.0
    for here in _blocks(part.n):
        own, t, distance = _slopes(state, here)
        ends, beta = ends_of(own, t), state.beta[here]
        wrong = (own.lower < own.upper) & (ends != beta)
        wrong[state.free[slice(*np.searchsorted(state.free, (here.start, here.stop)))] - here.start] = False
        at = np.flatnonzero(wrong)
        crossed.append(at + here.start)
        distances += float(distance[at].sum())
        gap += float(distance[at] @ np.abs(ends[at] - beta[at]))
    state.crossed = np.concatenate(crossed)
    return Classified(near, len(state.crossed), distances, gap)


def _slopes(state: LinearState, here: slice) -> tuple[BoxQP, Vector, Vector]:
    """The program of some rows, t = linear − f, and the distances from their kinks."""
    own = state.qp.take(here, None)
    t = own.linear - state.f[here]
    return own, t, np.abs(np.abs(t) - own.l1)


def hold(part: Part, radius: float) -> tuple[Any, ...]:
    """Fix all samples except those within the radius of a kink, and those that were fixed at the wrong end.

    Returns X'β and the loss of the fixed ones at w = 0, whether the free rows must be read again, the sums of
    `mu_sums` over the free ones, and of their number, rooms, distances and finite bounds.
    """
    state, qp = part.state, part.state.qp
    rows = all_rows(part)
    state.beta, distance, constant = np.zeros(part.n), 0.0, 0.0
    if radius == np.inf:
        state.free = state.usable
    else:
        found = []
        for here in _blocks(part.n):
            own, t, distances = _slopes(state, here)
            usable = own.lower < own.upper
            free = usable & (distances <= radius)
            again = state.crossed[slice(*np.searchsorted(state.crossed, (here.start, here.stop)))] - here.start
            free[again] = usable[again]
            beta = np.where(usable & ~free, ends_of(own, t), 0.0)
            state.beta[here] = beta
            constant += float(own.linear @ beta - own.l1 @ np.abs(beta))
            distance += float(distances @ free)
            found.append(np.flatnonzero(free) + here.start)
        state.free = np.concatenate(found)
    _keep_inner(part, rows)
    own = qp if len(state.free) == part.n else qp.take(state.free, None)
    state.samples = Samples.of(own)
    fixed = rows.tdot(state.beta, part.n_threads) if state.beta.any() else np.zeros(rows.d)
    room = float(np.sum(own.upper - own.lower)) if own.is_bounded else 0.0
    sums = np.array([len(state.free), room, distance, state.samples.n_bounds])
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


@keeps_state
def free_samples(part: Part) -> tuple[int, Any, Matrix]:
    """The index of the part, its free rows, which are kept, and their linear, l1, ridge, lower and upper."""
    state = part.state
    return part.index, state.inner.X, np.stack([vector[state.free] for vector in state.vectors])


def end_path_with(part: Part, beta: dict[int, Vector]) -> None:
    """End a path that was followed elsewhere; β of the free samples, by the index of their part."""
    part.state.best = beta[part.index]
    end_path(part, False)


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


def certify_part(part: Part, w: Vector, intercept: float, has_f: bool, has_v: bool) -> Checked:
    """The share of primal and dual of the part's rows, from w, b, β and the rows alone.

    ``has_f``: the last pass has computed the decision values of this model. ``has_v``: and also X'β; then ``v`` is 0.
    """
    state, qp = part.state, part.state.qp
    beta = np.clip(state.beta, qp.lower, qp.upper, out=state.beta)
    v = np.zeros(len(w)) if has_v else own_rows(part).tdot(beta, part.n_threads)
    decision = state.f if has_f else own_rows(part).dot(w, part.n_threads)
    if not has_f:
        decision += intercept
    largest = max(float(beta.max(initial=0.0)), -float(beta.min(initial=0.0)))
    found = [_check_rows(state, decision, here, largest) for here in _blocks(part.n)]
    paid, gain, terms, total = added(sums for sums, _ in found)
    violation, outside = (max(column) for column in zip(*(worst for _, worst in found), strict=True))
    return Checked(v, paid, gain, terms, total, violation, outside, largest)


def _check_rows(
    state: LinearState, decision: Vector, here: slice, largest: float
) -> tuple[tuple[float, ...], tuple[float, float]]:
    """For some rows: the loss, their share of the dual, the size of its terms, Σβ; the worst violation of each kind."""
    from mercer.linear._row_loops import check_optimality

    qp, loss, f, beta = state.qp, state.statement.loss, decision[here], state.beta[here]
    linear, l1, ridge, lower, upper = (vector[here] for vector in state.vectors)
    violation, outside, total = check_optimality(beta, f, linear, l1, ridge, lower, upper, largest)
    paid = loss.primal(0.0, state.y[here], f, state.price[here], np.zeros(qp.n_groups), np.zeros(qp.n_groups))
    gain = (linear - 0.5 * ridge * beta) @ beta - l1 @ np.abs(beta)
    return (paid, float(gain), float(np.abs(linear * beta).sum()), float(total)), (float(violation), float(outside))


def _blocks(n: int) -> Iterator[slice]:
    """Slices of all rows whose vectors stay in the cache: with longer ones, memory access would cost the most."""
    for first in range(0, n, BLOCK):
        yield slice(first, min(first + BLOCK, n))
