"""What a part of the rows computes for a landmark machine. Each function runs where the part is.

The state of a part is a `FactorPart`: a part of its own, whose rows are those of the factor L of the samples with a
positive weight. The functions of `mercer.parts` run on it by `on_factor`, so that a linear machine over L is solved as
any other one. Samples travel only if they are drawn: to become landmarks, or for the certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mercer.gram.memory import available_bytes
from mercer.gram.operator import check_finite, product
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Vector
from mercer.landmarks.landmark_certificate import Share, drawing_shares, share_of
from mercer.landmarks.matching_pursuit import candidate_shares
from mercer.landmarks.nystroem_factor import LandmarkMap
from mercer.linear.linear_problem import Rows
from mercer.parts.kernel_part import samples_at
from mercer.parts.layout import Block, Part, keeps_state, runs_another, sets_state
from mercer.parts.linear_part import Statement, forget

# share of the available memory that the factor of a part may take
MEMORY_SHARE = 0.6
# samples whose decision values are computed together in float64
EXACT_ROWS = 1 << 16


class FactorRows:
    """A loader of rows of L, computed from the samples each time it is called."""

    def __init__(self, outer: Part, used: Vector, y: Vector, price: Vector, kernel: Kernel, dtype: Any) -> None:
        self.outer, self.used, self.y, self.price = outer, used, y, price
        self.kernel, self.dtype, self.n = kernel, dtype, len(used)
        self.map: LandmarkMap | None = None

    def samples(self, index: Vector | None = None) -> Any:
        """The samples, or some of them, as an array or a scipy matrix."""
        if index is None:
            return samples_at(self.outer, None if self.n == self.outer.n else self.used)
        return samples_at(self.outer, self.used[index])

    def features(self, index: Vector | None = None, dtype: Any = np.float64) -> Features:
        """The same, prepared for the kernel."""
        return self.kernel.prepare(self.samples(index), dtype)

    def __call__(self) -> tuple[Any, Vector, Vector]:
        """(L, targets, prices)."""
        assert self.map is not None
        empty, residual = np.empty((self.n, 0), self.dtype), np.zeros(self.n)
        L = self.map.extend(self.features(dtype=self.dtype), empty, residual, self.outer.n_threads)
        return L, self.y, self.price


class FactorPart(Part):
    """The rows of L of a part, kept in memory if they fit, and the vectors of these rows.

    Attributes
    ----------
    residual : k(x, x) − |row of L|².
    taken : whether a sample was offered as a landmark.
    keys : random numbers of the samples that may be landmarks next.
    beta : the β that was kept; None for none.
    """

    def __init__(self, rows: FactorRows) -> None:
        super().__init__(rows.outer.index, rows, rows.outer.work)
        self.rows = rows
        diagonal = rows.kernel.diagonal(rows.features(dtype=rows.dtype)) if rows.n else np.empty(0)
        self.residual: Vector = np.maximum(np.asarray(diagonal, np.float64), 0.0)
        check_finite(self.residual)
        self.taken = np.zeros(rows.n, dtype=bool)
        self.keys: Vector = np.empty(0)
        self.beta: Vector | None = None
        self._reserved = 0

    def block(self) -> Block:
        """The rows of L: from memory if they were kept, else from the samples."""
        if self._block is None:
            self._block = self._load()
        return self._block

    def grow(self, to_rows: LandmarkMap) -> bool:
        """Extend L to more landmarks. Returns whether it is kept."""
        old = self._block.X if self._block is not None else np.empty((self.n, 0), self.rows.dtype)
        if not self._keeps:
            # what the first landmarks explain is subtracted again
            self.residual = np.maximum(np.asarray(self.rows.kernel.diagonal(self._prepared()), np.float64), 0.0)
        self.rows.map = to_rows
        L = to_rows.extend(self._prepared(), old, self.residual, self.n_threads)
        self.forget_rows()
        size = int(L.nbytes)
        self._keeps = size <= MEMORY_SHARE * available_bytes() and self.budget.take(size)
        self._reserved = size if self._keeps else 0
        self._block = Block(L, self.rows.y, self.rows.price) if self._keeps else None
        return self._keeps

    def _prepared(self) -> Features:
        return self.rows.features(dtype=self.rows.dtype)

    def forget_rows(self) -> None:
        """Drop L, its reservation, and the vectors of the last linear problem."""
        forget(self)
        self.budget.give_back(self._reserved)
        self._block, self._keeps, self._reserved = None, False, 0


class Begun(NamedTuple):
    """The samples of a part: how many have a positive weight, and how many there are; the largest k(x, x).

    ``weight`` is the sum of the weights, ``total`` their share of the required Σβ.
    """

    part: int
    n: int
    rows: int
    largest: float
    weight: float
    total: float


@sets_state
def begin_factor(part: Part, statement: Statement, kernel: Kernel, dtype: Any) -> Begun:
    """State the problem for the samples with a positive weight."""
    end_factor(part)
    y, price = statement.targets(part.block())
    used = np.flatnonzero(price > 0)
    part.state = FactorPart(FactorRows(part, used, y[used], price[used], kernel, dtype))
    total = float(statement.loss.box_qp(y[used], price[used], statement.intercept).sums.sum())
    largest, weight = float(part.state.residual.max(initial=0.0)), float(price[used].sum())
    return Begun(part.index, len(used), part.n, largest, weight, total)


@sets_state
def end_factor(part: Part) -> None:
    """Drop everything that belongs to the last machine."""
    if isinstance(part.state, FactorPart):
        part.state.forget_rows()
    part.state = None


def grow_factor(part: Part, to_rows: LandmarkMap) -> tuple[int]:
    """Extend L. Returns 1 if it is not kept."""
    own = part.state
    own.n_threads = part.n_threads
    return (int(own.n > 0 and not own.grow(to_rows)),)


@runs_another
def on_factor(part: Part, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """function(part of L, *args); an empty tuple if there are no samples."""
    own = part.state
    if own.n == 0:
        return ()
    own.n_threads = part.n_threads
    result = function(own, *args)
    own.release()
    return result


# ---- landmarks ---------------------------------------------------------------------------------------------------


class Drawn(NamedTuple):
    """Samples that came to the caller, and their targets.

    ``at`` are their positions among the rows of their part, ``numbers`` among those with a positive weight.
    """

    samples: Any
    at: Vector
    numbers: Vector
    y: Vector


def _draw(own: FactorPart, index: Vector) -> Drawn:
    return Drawn(own.rows.samples(index), own.rows.used[index], index, own.rows.y[index])


def take_rows(part: Part, wanted: dict[int, Vector]) -> Drawn | None:
    """The samples at these positions, which become landmarks; None for none."""
    own, index = part.state, wanted.get(part.index, np.empty(0, np.intp))
    if len(index) == 0:
        return None
    own.taken[index] = True
    return _draw(own, index)


@keeps_state
def sum_residuals(part: Part) -> tuple[float, float]:
    """(Σβ²r, Σr) of the samples that may be landmarks."""
    own = part.state
    if own.n == 0:
        return 0.0, 0.0
    left = np.where(own.taken, 0.0, own.residual)
    return float(own.state.beta**2 @ left), float(left.sum())


def candidate_keys(
    part: Part, count: int, seed: int, turn: int, starts: dict[int, int], paid: float, total: float
) -> Vector:
    """Draw a key for each sample, and return the smallest ones; ``paid`` and ``total`` are those of all parts.

    The keys are Eᵢ/pᵢ with E exponential: the samples with the smallest ones of all are drawn without replacement with
    probabilities ∝ pᵢ (Efraimidis & Spirakis, 2006), those of `matching_pursuit`. Eᵢ depends on the number of the
    sample among all of them (``starts``), not on the parts.
    """
    own = part.state
    if own.n == 0:
        return np.empty(0)
    share = candidate_shares(own.state.beta, np.where(own.taken, 0.0, own.residual), paid, total)
    start = starts[part.index]
    random = np.random.Philox(key=[seed, turn])
    random.advance(start // 4)  # each state of the generator gives four numbers
    uniform = np.random.Generator(random).random(start % 4 + own.n)[start % 4 :]
    own.keys = np.full(own.n, np.inf)
    np.divide(-np.log1p(-uniform), share, out=own.keys, where=share > 0)
    finite = own.keys[np.isfinite(own.keys)]
    return np.sort(np.partition(finite, count - 1)[:count] if len(finite) > count else finite)


def take_smallest(part: Part, limit: float) -> Drawn | None:
    """The samples whose key is at most the limit: candidates."""
    own = part.state
    index = np.flatnonzero(own.keys <= limit)
    own.keys = np.empty(0)
    return _draw(own, index) if len(index) else None


def mark_taken(part: Part, index: dict[int, Vector]) -> None:
    """The samples at these positions are no candidates any more."""
    part.state.taken[index.get(part.index, np.empty(0, np.intp))] = True


@keeps_state
def weight_sum(own: Part) -> tuple[Vector]:
    """L'weight, where the part is that of L."""
    block = own.block()
    return (Rows(block.X).tdot(block.weight, own.n_threads),)


# ---- certificate -------------------------------------------------------------------------------------------------


@keeps_state
def feature_sum(own: Part) -> tuple[Vector]:
    """L'β, where the part is that of L."""
    return (Rows(own.block().X).tdot(own.state.beta, own.n_threads),)


def keep_beta(own: FactorPart) -> None:
    """Remember β, where the part is that of L."""
    own.beta = own.state.beta.copy()


def return_to_beta(own: FactorPart) -> None:
    """Make the β that was kept the present one, where the part is that of L."""
    if own.beta is not None:
        own.state.beta = own.beta


class Spread(NamedTuple):
    """The number of support vectors of a part, and the sum of their |β|√r."""

    part: int
    support: int
    scale: float


def _shares(own: FactorPart, largest: float) -> Vector:
    return drawing_shares(own.state.beta, own.residual, own.rows.dtype, largest)


@keeps_state
def sum_shares(part: Part, largest: float) -> Spread:
    """The part's share of the probabilities with which support vectors are drawn."""
    own = part.state
    if own.n == 0:
        return Spread(part.index, 0, 0.0)
    return Spread(part.index, int(np.count_nonzero(own.state.beta)), float(_shares(own, largest).sum()))


class Sampled(NamedTuple):
    """Samples for the certificate: β, |β|√r, and how often each was drawn."""

    samples: Any
    beta: Vector
    share: Vector
    times: Vector


@keeps_state
def sample_support(part: Part, largest: float, wanted: dict[int, Vector], is_exact: bool) -> Sampled | None:
    """The samples at these positions of the cumulated |β|√r; if ``is_exact``, the support vectors of these numbers."""
    own, positions = part.state, wanted[part.index]
    if own.n == 0 or len(positions) == 0:
        return None
    beta, share, support = own.state.beta, _shares(own, largest), np.flatnonzero(own.state.beta)
    if is_exact:
        index, times = support[positions], np.ones(len(positions), np.intp)
    else:
        at = np.searchsorted(np.cumsum(share[support]), positions, side="right")
        index, times = np.unique(support[np.minimum(at, len(support) - 1)], return_counts=True)
    return Sampled(own.rows.samples(index), beta[index], share[index], times)


@keeps_state
def times_beta(part: Part, samples: Any) -> tuple[Any, ...]:
    """K(samples, support vectors of the part) β, and the number of kernel values."""
    own = part.state
    support = np.flatnonzero(own.state.beta) if own.n else ()
    if len(support) == 0:
        return ()
    kernel = own.rows.kernel
    rows, columns = kernel.prepare(samples, np.float64), own.rows.features(support)
    found = product(kernel, rows, columns, own.state.beta[support], part.n_threads)
    return found, len(rows) * len(columns)


@keeps_state
def check_function(part: Part, landmarks: Any, coef: Vector, intercept: float) -> Share | None:
    """The part's share of the certificate of Σ coef k(landmark, ·) + b, in float64."""
    own = part.state
    if own.n == 0:
        return None
    kernel, linear = own.rows.kernel, own.state
    columns, F = kernel.prepare(landmarks, np.float64), np.empty(own.n)
    for first in range(0, own.n, EXACT_ROWS):
        rows = np.arange(first, min(first + EXACT_ROWS, own.n))
        F[rows] = product(kernel, own.rows.features(rows), columns, coef, part.n_threads)
    return share_of(linear.qp, linear.statement.loss, linear.y, linear.price, linear.beta, F, intercept)
