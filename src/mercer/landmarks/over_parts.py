"""A landmark machine of rows in parts, with its certificate for the exact problem of all rows.

The steps are those of `solve`, and everything that belongs to a row stays with its part (`factor_part`): its row of L,
β and its residual. The machine over L is solved by `mercer.parts`. What travels are the drawn samples, vectors and a
matrix over the landmarks, and numbers.

Which samples are drawn depends on their numbers among all rows, not on the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes
from mercer.gram.operator import product
from mercer.kernels.base import Kernel
from mercer.kernels.features import Vector, take_samples
from mercer.landmarks import factor_part
from mercer.landmarks.landmark_certificate import (
    PAIRS_UP_TO,
    RISK,
    ROWS,
    ROWS_OF_ESTIMATE,
    Lost,
    bound,
    conclude_shares,
)
from mercer.landmarks.landmark_solver import (
    FIRST,
    GROWTH,
    LIMITS,
    MEMORY_SHARE,
    NEARLY,
    SHARE,
    GrowthRound,
    LandmarkOptions,
    LandmarkSolution,
    share_between,
)
from mercer.landmarks.nystroem_factor import LandmarkMap, coefficients, extend_root
from mercer.linear.linear_solution import LinearOptions, LinearSolution
from mercer.losses import EpsilonInsensitive, Hinge, Pinball, Squared, SquaredEpsilonInsensitive, SquaredHinge
from mercer.parts.bound_kernel import bind_to_parts
from mercer.parts.layout import Parts
from mercer.parts.linear_part import Statement
from mercer.parts.linear_run import stacked
from mercer.parts.linear_solver import solve_parts
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Status, TracePoint

LOSSES = (Hinge, SquaredHinge, EpsilonInsensitive, SquaredEpsilonInsensitive, Pinball, Squared)
# bytes of drawn samples that are sent in one pass
SENT = 1 << 23


@dataclass
class PartsSolution(LandmarkSolution):
    """A landmark machine of rows in parts. β and F stay with the parts: here they are empty.

    Attributes
    ----------
    samples : the landmarks themselves, in the order of ``coef``.
    rows : their numbers among all rows, in the order of the parts; numbers among the given landmarks, if there are.
    targets : their targets.
    evaluations : kernel values that were computed.
    """

    samples: Any = None
    rows: Vector = field(default_factory=lambda: np.empty(0, np.int64))
    targets: Vector = field(default_factory=lambda: np.empty(0))
    evaluations: int = 0


def bind_over_parts(parts: Parts, kernel: Kernel) -> Kernel:
    """`bind_to_parts` of a kernel that landmarks can use."""
    if kernel.domain == "vectors" and not kernel.positive_semidefinite:
        raise InvalidInputError(
            f"Landmarks need a positive semidefinite kernel, but {kernel!r} is not one: there is no feature space to "
            "project in. Use another kernel."
        )
    return bind_to_parts(parts, kernel)


class FactorParts(Parts):
    """The rows of L of all parts, for the solver of linear machines."""

    def __init__(self, parts: Parts, n: int) -> None:
        self.parts, self.n, self.budget = parts, n, parts.budget
        # whether all parts keep their rows of L, so that the samples are not read
        self.kept = False

    def map(self, function: Callable[..., Any], *args: Any, reads: bool = True) -> list[Any]:
        """function(part of L, *args) of each part with samples."""
        found = self.parts.map(factor_part.on_factor, function, args, reads=reads and not self.kept)
        return [result for result in found if not (isinstance(result, tuple) and not result)]

    def total(self, function: Callable[..., Any], *args: Any, reads: bool = True) -> tuple[Any, ...]:
        """The sums, added where the parts are."""
        return self.parts.total(factor_part.on_factor, function, args, reads=reads and not self.kept)


def solve_over_parts(
    parts: Parts,
    kernel: Kernel,
    statement: Statement,
    options: Options,
    clock: Clock,
    choice: LandmarkOptions,
    pairs_up_to: int = PAIRS_UP_TO,
) -> PartsSolution:
    """Choose landmarks among the rows of all parts, solve, and certify for the exact problem.

    The kernel is bound (`bind_over_parts`). Samples whose weight is 0 are left out. Given landmarks are the samples of
    ``choice.given``; ``choice.polish`` is not available. Up to so many pairs of support vectors β'Kβ is computed;
    beyond, it is bounded.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> from mercer.landmarks.over_parts import solve_over_parts
    >>> from mercer.landmarks.landmark_solver import LandmarkOptions
    >>> from mercer.losses import EpsilonInsensitive
    >>> from mercer.parts.layout import Held, LocalParts
    >>> from mercer.parts.linear_part import Statement
    >>> from mercer.problems.clock import Clock
    >>> from mercer.problems.solution import Options
    >>> X = np.linspace(0, 6, 300)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> parts = LocalParts([Held(X[:100], y[:100]), Held(X[100:], y[100:])])
    >>> statement = Statement(EpsilonInsensitive(0.1), intercept=True)
    >>> found = solve_over_parts(parts, Gaussian(1.0), statement, Options(), Clock(), LandmarkOptions())
    >>> found.certificate.valid and found.certificate.relative_gap <= 0.01
    True
    """
    if type(statement.loss) not in LOSSES:
        raise InvalidInputError(
            f"The loss {statement.loss.name!r} is not available for rows in parts: the linear solver over parts takes "
            "hinge, epsilon-insensitive and squared losses. Use the estimator of the same name in mercer."
        )
    if choice.polish:
        raise InvalidInputError(
            "polish=True continues to the exact machine, which is not available for rows in parts. Use polish=False "
            "with a smaller landmark_tol."
        )
    found = _Run(parts, kernel, statement, options, clock, choice, pairs_up_to).run()
    parts.map(factor_part.end_factor, reads=False)
    return found


class _Run:
    """The growth of one machine."""

    def __init__(
        self,
        parts: Parts,
        kernel: Kernel,
        statement: Statement,
        options: Options,
        clock: Clock,
        choice: LandmarkOptions,
        pairs_up_to: int,
    ) -> None:
        self.exact_up_to = int(np.sqrt(pairs_up_to))
        self.parts, self.kernel, self.statement = parts, kernel, statement
        self.options, self.clock, self.choice = options, clock, choice
        self.dtype = np.float64 if options.precision == "float64" else np.float32
        self.random = np.random.default_rng(options.seed)
        begun = parts.map(factor_part.begin_factor, statement, kernel, self.dtype)
        self.n = sum(own.n for own in begun)
        if self.n == 0:
            raise InvalidInputError("No sample has a positive weight: give at least one.")
        self.largest = max(own.largest for own in begun)
        self.largest_part = max(own.n for own in begun)
        # the number of the first sample of each part, among all rows and among those with a weight
        self.first_rows = _starts((own.part, own.rows) for own in begun)
        self.starts = _starts((own.part, own.n) for own in begun)
        self.L = FactorParts(parts, self.n)
        self.map = LandmarkMap(kernel, None, np.empty((0, 0)))
        self.rows, self.targets = np.empty(0, np.int64), np.empty(0)
        self.rounds: list[GrowthRound] = []
        self.trace: list[TracePoint] = []
        self.steps = self.evaluations = 0
        # L'β of the last solution, and what its landmarks lose
        self.v: Vector = np.empty(0)
        self.missing: Lost | None = None
        self.last: LinearSolution | None = None

    @property
    def m(self) -> int:
        """The number of landmarks."""
        return len(self.map.root)

    def run(self) -> PartsSolution:
        """Grow until the machine is near enough to the exact one, or until a limit."""
        given, tol = self.choice.given, self.choice.tol
        most, limit = self._most()
        added = self._add(self._first(most) if given is None else _given(given))
        while True:
            last = given is not None or self.m >= most or added == 0
            between = share_between(self.rounds, tol)
            found = self._solve(SHARE * tol if last else between)
            over = self.clock.over()
            if over is not None:
                return self._certified(found, over, "time_limit")
            near = self.choice.count is None and self.rounds[-1].lost <= NEARLY * tol
            if near and not last and found.certificate.relative_gap > 2.0 * SHARE * tol:
                found = self._solve(SHARE * tol)
            near = self.choice.count is None and self.rounds[-1].exact_relative_gap <= tol
            # the mean of few draws is not the bound that is published
            near = near and (last or self._bounded(found) <= tol)
            if near or last:
                solved = near or found.certificate.relative_gap <= 1.01 * SHARE * tol
                status = Status.CONVERGED if solved else Status.STALLED
                return self._certified(found, status, "landmark_tol" if near else limit)
            added = self._add(self._next(most))

    def _most(self) -> tuple[int, str]:
        """The largest number of landmarks, and what sets it: the rows of L of one part must fit into the memory."""
        choice = self.choice
        if choice.given is not None:
            return int(choice.given.n), "given"
        wanted = min(self.n, choice.most if choice.count is None else choice.count)
        size = np.dtype(self.dtype).itemsize * self.largest_part
        fits = max(1, int(MEMORY_SHARE * available_bytes() / size))
        if choice.count is None:
            return min(wanted, fits), "samples" if self.n <= min(choice.most, fits) else LIMITS[fits < wanted]
        if fits < wanted:
            raise InvalidInputError(
                f"{wanted} landmarks of the {self.largest_part:,} samples of one part take "
                f"{1e-9 * size * wanted / MEMORY_SHARE:.3g} GB, but {1e-9 * available_bytes():.3g} GB are available. "
                f"Use at most {fits} landmarks, or smaller parts."
            )
        return wanted, "count"

    # ---- landmarks -----------------------------------------------------------------------------------------------

    def _first(self, most: int) -> _Samples | None:
        """Samples drawn evenly."""
        numbers = np.sort(self.random.permutation(self.n)[: min(most, FIRST)])
        return self._joined(self.parts.map(factor_part.take_rows, _by_part(numbers, self.starts)))

    def _next(self, most: int) -> _Samples | None:
        """Samples drawn by their part of what is lost."""
        count = min(most, int(GROWTH * self.m)) - self.m
        arguments = count, self.options.seed, len(self.rounds), self.starts
        keys = np.sort(np.concatenate(self.parts.map(factor_part.landmark_keys, *arguments, reads=False)))
        if len(keys) == 0:
            return None
        limit = float(keys[min(count, len(keys)) - 1])
        return self._joined(self.parts.map(factor_part.take_smallest, limit))

    def _joined(self, found: list[Any]) -> _Samples | None:
        """The drawn samples of all parts."""
        drawn = [(first, part) for first, part in zip(self.first_rows.values(), found, strict=True) if part is not None]
        if not drawn:
            return None
        numbers = np.concatenate([first + part.at for first, part in drawn]).astype(np.int64)
        return _Samples(stacked([part.samples for _, part in drawn]), numbers, np.concatenate([p.y for _, p in drawn]))

    def _add(self, new: _Samples | None) -> int:
        """Make samples landmarks, and extend the rows of L. Returns how many were added."""
        if new is None:
            return 0
        old = None if self.m == 0 else self.kernel.prepare(self.map.landmarks, np.float64)
        offered = self.kernel.prepare(new.samples, np.float64)
        found = extend_root(self.kernel, self.map.root, old, offered, self.largest)
        self.evaluations += len(offered) * (len(offered) + self.m)
        if found is None:
            if self.m == 0:
                raise InvalidInputError(
                    f"{self.kernel!r} is 0 for all drawn samples: there is no landmark. Use another kernel, or scale X."
                )
            return 0
        chosen = take_samples(new.samples, found.chosen)
        landmarks = chosen if self.m == 0 else stacked([self.map.landmarks, chosen])
        self.map = LandmarkMap(self.kernel, landmarks, found.root)
        self.rows = np.concatenate([self.rows, new.rows[found.chosen]])
        self.targets = np.concatenate([self.targets, new.targets[found.chosen]])
        (computed_anew,) = self.parts.total(factor_part.grow_factor, self.map)
        self.L.kept = computed_anew == 0
        self.evaluations += self.n * len(found.chosen)
        return len(found.chosen)

    # ---- solve ---------------------------------------------------------------------------------------------------

    def _solve(self, tol: float) -> LinearSolution:
        """Solve the restricted problem to this relative gap, and record the round."""
        statement = Statement(self.statement.loss, 1.0, self.statement.intercept)
        options = LinearOptions(tol=tol, max_iter=self.options.max_iter, seed=self.options.seed)
        with self.clock.without_progress():
            found = solve_parts(self.L, statement, options, self.clock, self._start())
        self.last = found
        self.steps += found.n_iter
        proof = found.certificate
        (self.v,) = self.L.total(factor_part.feature_sum)
        self.missing = None
        about = 0.5 * self._lost(self.v, ROWS_OF_ESTIMATE).value
        distance = (proof.gap + about) / max(abs(proof.primal), np.finfo(np.float64).tiny)
        now = GrowthRound(self.m, self.clock.seconds, proof.relative_gap, distance, proof.primal)
        self.rounds.append(now)
        self.trace.append(TracePoint(now.seconds, self.steps, distance, proof.dual - about, self.n))
        self.clock.report(self.trace[-1])
        self.clock.log_once("landmarks", now)
        return found

    def _start(self) -> Vector | None:
        """The last model as one of the present landmarks: the columns of L before the new ones are the same."""
        if self.last is None:
            return None
        w = np.append(self.last.w, np.zeros(self.m - len(self.last.w)))
        return np.append(w, self.last.intercept) if self.statement.intercept else w

    def _bounded(self, found: LinearSolution) -> float:
        """The relative distance to the exact machine, from the bound of the certificate."""
        self.missing = self._lost(self.v, ROWS)
        proof = found.certificate
        return (proof.gap + 0.5 * self.missing.value) / max(abs(proof.primal), np.finfo(np.float64).tiny)

    def _lost(self, v: Vector, count: int) -> Lost:
        """β'(K − K̂)β or its bound for the certificate if ``count`` is `ROWS`; else an estimate from so many draws."""
        spread = self.parts.map(factor_part.sum_shares, self.largest, reads=False)
        support, scale = sum(part.support for part in spread), sum(part.scale for part in spread)
        if support == 0:
            return Lost(0.0, False)
        positions = None
        if support > (self.exact_up_to if count == ROWS else count):
            # draws are points of [0, S), divided into the intervals of the parts
            points = np.sort(np.random.default_rng(self.options.seed).random(count)) * scale
            ends = np.cumsum([part.scale for part in spread])
            cuts = np.searchsorted(points, ends[:-1])
            own = np.split(points, cuts)
            before = np.append(0.0, ends[:-1])
            positions = {part.part: x - a for part, x, a in zip(spread, own, before, strict=True)}
        found = [s for s in self.parts.map(factor_part.sample_support, self.largest, positions) if s is not None]
        samples = stacked([part.samples for part in found])
        beta, share, times = (np.concatenate([part[k] for part in found]) for k in (1, 2, 3))
        g = self._times_beta(samples)
        if positions is None:
            return Lost(max(0.0, float(beta @ g) - float(v @ v)), False)
        explained = product(
            self.kernel,
            self.kernel.prepare(samples, np.float64),
            self.kernel.prepare(self.map.landmarks, np.float64),
            coefficients(self.map.root, v),
            self.options.n_threads,
        )
        terms = np.repeat(beta * (g - explained) * scale / share, times)
        return bound(terms, scale) if count == ROWS else Lost(max(0.0, float(terms.mean())), True)

    def _times_beta(self, samples: Any) -> Vector:
        """K(samples, all support vectors) β, from passes that send few bytes."""
        n = samples.shape[0]
        step = max(1, SENT // (8 * samples.shape[1]))
        found = []
        for first in range(0, n, step):
            values, computed = self.parts.total(factor_part.times_beta, samples[first : first + step])
            found.append(values)
            self.evaluations += int(computed)
        return np.concatenate(found)

    def _certified(self, found: LinearSolution, status: Status, ended_by: str) -> PartsSolution:
        """The machine with both certificates; its decision values are computed in float64."""
        coef, b = coefficients(self.map.root, found.w), float(found.intercept)
        size = float(np.square(self.map.root.T @ coef).sum())
        v, missing = self.v, self.missing or self._lost(self.v, ROWS)
        note = f"of the exact machine, with probability {1.0 - RISK:g}," if missing.sampled else ""
        checked = self.parts.map(factor_part.check_function, self.map.landmarks, coef, b)
        shares = [share for share in checked if share is not None]
        self.evaluations += self.n * self.m
        sums, name, quadratic = np.zeros(int(self.statement.intercept)), self.statement.loss.name, float(v @ v)
        restricted = conclude_shares(shares, sums, name, size, quadratic)
        exact = conclude_shares(shares, sums, name, size, quadratic + missing.value, note)
        last = replace(self.rounds[-1], exact_relative_gap=exact.relative_gap, relative_gap=restricted.relative_gap)
        return PartsSolution(
            np.empty(0), np.empty(0), np.array([b]) if self.statement.intercept else np.empty(0), status, self.steps,
            self.clock.seconds, exact, self.trace, landmarks=np.arange(self.m), coef=coef, size=size,
            landmark_certificate=restricted, growth=(*self.rounds[:-1], last), pool=self.m, ended_by=ended_by,
            samples=self.map.landmarks, rows=self.rows, targets=self.targets, evaluations=self.evaluations,
        )  # fmt: skip


@dataclass(frozen=True)
class _Samples:
    """Samples, their numbers among all rows, and their targets."""

    samples: Any
    rows: Vector
    targets: Vector


def _given(data: Any) -> _Samples:
    """Given landmarks; they have no targets."""
    return _Samples(data.samples, np.arange(data.n, dtype=np.int64), np.zeros(data.n))


def _starts(sizes: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The number of the first sample of each part, by the index of the part."""
    found, total = {}, 0
    for index, size in sizes:
        found[index] = total
        total += size
    return found


def _by_part(numbers: Vector, starts: dict[int, int]) -> dict[int, Vector]:
    """Sorted numbers of samples, divided into positions in their parts."""
    cuts = np.searchsorted(numbers, list(starts.values())[1:])
    return {index: own - starts[index] for index, own in zip(starts, np.split(numbers, cuts), strict=True)}
