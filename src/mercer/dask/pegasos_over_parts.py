"""Pegasos over rows in parts: the steps of `mercer.online.sgd`, with the rows left on their workers.

    min  lam/2 |w|² + (1/W) Σ weightᵢ max(0, 1 − yᵢ ⟨w, xᵢ⟩),   W = Σ weightᵢ                          [SSBD] 15.12

Steps depend on each other, and each needs one row or a batch of rows. So the client draws the rows of many steps from
all rows, as it would in memory; the parts send these rows, and the client takes the steps. The run is that of
`LinearRun` for the same seed, whatever the parts. The drawn rows are sent to the client, d numbers for each; for each
certificate, two numbers for each row and problem are sent to every worker.

Objectives and certificates are sums over all rows, which the parts compute. The client keeps two numbers for each row
and problem: how often it was drawn, and how often it changed w.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer._compiled.thread_pool import cached_property
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Csr, Matrix, Vector
from mercer.linear.linear_problem import Rows
from mercer.online.sgd import LinearRun, Memory, Model, ObjectivePoint, Rule, Run
from mercer.online.sgd_certificate import bounded_point, conclude, scaled_duals
from mercer.parts.layout import Part, Parts, keeps_state, sets_state
from mercer.parts.linear_run import stacked
from mercer.problems.solution import Certificate

# the most numbers of rows that come to the client at once: 8 MB
BLOCK_NUMBERS = 1 << 20


@dataclass(frozen=True)
class Problems:
    """The problems without their rows.

    ``of_class`` are the weights of the classes; ``starts`` is the number of the first row of each part, by its index.
    """

    n_problems: int
    of_class: Vector
    starts: dict[int, int]

    def signs(self, codes: Vector) -> Matrix:
        """Labels ±1, one row per problem; with two classes the second is positive."""
        positive = np.arange(self.n_problems)[:, None] if self.n_problems > 1 else np.array([[1]])
        return np.where(codes == positive, 1.0, -1.0)


@dataclass(eq=False)
class DescentState:
    """The rows of a part: labels of each problem, weights, factors of updates, coefficients in v, numbers of draws."""

    start: int
    y: Matrix
    weight: Vector
    step: Vector
    hits: Matrix
    drawn: Vector


class PartFacts(NamedTuple):
    """A part's index, size and columns; sum, minimum and maximum of weight · class weight; the largest |x|²."""

    number: int
    n: int
    d: int
    total: float
    least: float
    most: float
    squared_length: float


def updates(weight: Vector, size: float, total: float) -> Vector:
    """The factors of updates: 1, or weight · size / total for shuffled rows, which are used equally often."""
    return weight * size / total if size else np.ones(len(weight))


@keeps_state
def part_facts(part: Part, of_class: Vector) -> PartFacts:
    """The facts of a part that the client needs."""
    block = part.block()
    weight = block.weight * of_class[block.y.astype(np.intp)]
    stored = block.X.data if isinstance(block.X, Csr) else np.ascontiguousarray(block.X).reshape(-1)
    with np.errstate(over="ignore"):
        if isinstance(block.X, Csr):
            sums = np.bincount(
                np.repeat(np.arange(part.n), np.diff(block.X.indptr)), np.square(stored, dtype=np.float64), part.n
            )
        else:
            sums = np.einsum("ij,ij->i", block.X, block.X, dtype=np.float64)
    largest = float(sums.max(initial=0.0))
    return PartFacts(
        part.index, part.n, block.X.shape[1], float(weight.sum()), float(weight.min()), float(weight.max()), largest
    )


@keeps_state
def weights_of(part: Part, of_class: Vector) -> Vector:
    """The weights of a part."""
    block = part.block()
    return np.asarray(block.weight * of_class[block.y.astype(np.intp)])


@keeps_state
def drawn_rows(part: Part, problems: Problems, rows: Vector) -> tuple[Any, Matrix, Vector]:
    """X, labels and weights of the rows that belong to the part. ``rows`` is sorted."""
    start = problems.starts[part.index]
    own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + part.n)] - start
    block = part.block()
    codes = block.y[own].astype(np.intp)
    return Rows(block.X).take(own).X, problems.signs(codes), block.weight[own] * problems.of_class[codes]


@sets_state
def place_draws(part: Part, problems: Problems, size: float, total: float, hits: Matrix, drawn: Vector) -> None:
    """Set the state of a part from the coefficients and draws of all rows; ``size``, ``total`` as in `updates`."""
    block, start = part.block(), problems.starts[part.index]
    codes = block.y.astype(np.intp)
    weight = block.weight * problems.of_class[codes]
    own = slice(start, start + part.n)
    step = updates(weight, size, total)
    part.state = DescentState(
        start, problems.signs(codes), weight, step, np.ascontiguousarray(hits[:, own]), np.ascontiguousarray(drawn[own])
    )


@keeps_state
def losses_of(part: Part, problems: Problems, models: list[Model], unit: float) -> tuple[Matrix]:
    """Σ Cᵢ max(0, 1 − yᵢ fᵢ) of each model and problem."""
    from mercer.online._sgd_loops import hinge_losses

    block = part.block()
    codes = block.y.astype(np.intp)
    y, weight = problems.signs(codes), block.weight * problems.of_class[codes]
    found = np.empty((len(models), len(y)))
    for k, model in enumerate(models):
        hinge_losses(y, _values(part, model), weight, unit, found[k])
    return (found,)


@keeps_state
def dual_sums(part: Part, unit: float, batch: int) -> tuple[Matrix, Vector, Vector]:
    """Σ βᵢxᵢ, Σ βᵢ and Σ|βᵢ| of each problem, for the feasible β of `Run.dual_points`."""
    beta, sizes = _dual_point(part, unit, batch)
    rows = Rows(part.block().X)
    return np.array([rows.tdot(one, part.n_threads) for one in beta]), beta.sum(axis=1), sizes


@keeps_state
def worst_of(part: Part, model: Model, unit: float, batch: int, scale: Vector) -> Vector:
    """The largest violation of each problem."""
    from mercer.online._sgd_loops import hinge_violations

    state, worst = part.state, np.empty(len(scale))
    beta, _ = _dual_point(part, unit, batch)
    hinge_violations(state.y, _values(part, model), state.weight, unit, beta, scale, worst)
    return worst


def _values(part: Part, model: Model) -> Matrix:
    """The decision values of each problem."""
    rows = Rows(part.block().X)
    f = np.array([rows.dot(w, part.n_threads) for w in model.w], dtype=np.float64)
    return np.ascontiguousarray(f + model.intercept[:, None])


def _dual_point(part: Part, unit: float, batch: int) -> tuple[Matrix, Vector]:
    from mercer.online._sgd_loops import dual_points

    state = part.state
    beta, sizes = np.zeros(state.y.shape), np.zeros(len(state.y))
    dual_points(state.y, state.weight, unit, state.hits, state.drawn, state.step, batch, beta, sizes)
    return beta, sizes


class RunOverParts(Run):
    """[SSBD] 15.5 on rows in parts; ``size`` and ``total`` as in `updates`."""

    def __init__(self, parts: Parts, problems: Problems, facts: list[PartFacts], weight: Vector, rule: Rule) -> None:
        super().__init__(np.empty((problems.n_problems, 0)), weight, np.empty(0), rule, facts[0].d)
        self.parts, self.problems = parts, problems
        self.squared_length = max(fact.squared_length for fact in facts)
        if not np.isfinite(self.squared_length):
            raise InvalidInputError(
                "Kernel values are not finite: the numbers of X are too large to be squared. Scale the columns of X."
            )
        self.size = self.total = 0.0
        self.hits = np.zeros((problems.n_problems, len(weight)))
        self.drawn = np.zeros(len(weight), dtype=np.intp)

    def take_steps(self, order: Vector, n_threads: int = 1) -> None:
        """Take steps with these rows, ``rule.batch`` per step."""
        self._made = None
        width, batch = self.v.shape[1], self.rule.batch
        size = max(1, BLOCK_NUMBERS // width // batch) * batch
        for first in range(0, len(order), size):
            self._advance(order[first : first + size], n_threads)

    def _advance(self, order: Vector, n_threads: int) -> None:
        rows, place, count = np.unique(order, return_inverse=True, return_counts=True)
        found = self.parts.map(drawn_rows, self.problems, rows)
        X, y, weight = zip(*found, strict=True)
        weights = np.concatenate(weight)
        step = updates(weights, self.size, self.total)
        block = LinearRun(stacked(list(X)), np.concatenate(y, axis=1), weights, step, self.rule)
        block.go_on_from(Memory(self.t, self.v, self.A, self.state))
        block.take_steps(place, n_threads)
        self.t, self.v, self.A, self.state = block.t, block.v, block.A, block.state
        self.hits[:, rows] += block.beta
        self.drawn[rows] += count

    @property
    def coefficients(self) -> Matrix:
        """The coefficients of the rows in v."""
        return self.hits

    @cached_property
    def squared_lengths(self) -> Vector:
        """The largest |x|² alone."""
        return np.array([self.squared_length])

    def squared_norms(self, model: Model, f: Matrix | None = None, n_threads: int = 1) -> Vector:
        """|w|² of each problem, including the constant feature."""
        with np.errstate(over="ignore"):
            return np.einsum("ij,ij->i", model.w, model.w) + model.intercept**2

    def _make(self, last: bool) -> Model:
        return Model(self._mix(self.v, self.A, last), np.empty((len(self.y), 0)), self._intercepts(last))

    def values(self, model: Model, n_threads: int = 1, rows: Vector | None = None) -> Matrix:
        """Not available: the rows are not here."""
        raise NotImplementedError("decision values are computed by the parts")

    def from_coefficients(self, beta: Matrix) -> Model:
        """Not available: the rows are not here."""
        raise NotImplementedError("sums over rows are computed by the parts")

    def judged(self, seen: list[tuple[int, Model]]) -> tuple[list[ObjectivePoint], list[Certificate]]:
        """The objectives of these models, given as (steps, model), and the certificates of the last one."""
        models = [model for _, model in seen]
        (losses,) = self.parts.total(losses_of, self.problems, models, self.unit)
        with np.errstate(over="ignore", invalid="ignore"):
            primals = [0.5 * self.squared_norms(model) + own for model, own in zip(models, losses, strict=True)]
        points = [bounded_point(self, t, primal) for (t, _), primal in zip(seen, primals, strict=True)]
        self.parts.map(place_draws, self.problems, self.size, self.total, self.hits, self.drawn)
        v, total, slope = self.parts.total(dual_sums, self.unit, self.rule.batch)
        curvature = self.squared_norms(Model(v, np.empty(0), self.rule.bias * total))
        scale, duals = scaled_duals(slope, curvature)
        worst = np.max(self.parts.map(worst_of, models[-1], self.unit, self.rule.batch, scale), axis=0)
        return points, conclude(primals[-1], duals, worst)
