"""A landmark machine of rows in parts, with its certificate for the exact problem of all rows.

The rounds are those of `growth`. Everything that belongs to a row stays with its part (`factor_part`): its row of L, β
and its residual. The machine over L is solved by `mercer.parts`. Only the drawn samples, vectors and a matrix over the
landmarks, and numbers travel.

Which samples are drawn depends on their numbers among all rows, not on the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg

from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes
from mercer.gram.operator import product
from mercer.kernels.base import Kernel
from mercer.kernels.features import Matrix, Vector, take_samples
from mercer.landmarks import factor_part
from mercer.landmarks.growth import Growth, LandmarkOptions, LandmarkSolution, Restricted, check_choice, is_rounded
from mercer.landmarks.landmark_certificate import PAIRS_UP_TO, ROWS, ROWS_OF_ESTIMATE, Lost, Share, bound
from mercer.landmarks.matching_pursuit import candidate_count, pursue
from mercer.landmarks.nystroem_factor import LandmarkMap, coefficients, dependent, extend_root
from mercer.landmarks.saved_growth import SavedGrowth
from mercer.linear.linear_solution import LinearOptions
from mercer.parts.bound_kernel import bind_to_parts
from mercer.parts.layout import Layout, Parts, Reads
from mercer.parts.linear_part import LOSSES, Statement
from mercer.parts.linear_run import stacked
from mercer.parts.linear_solver import solve_parts
from mercer.problems.clock import Clock
from mercer.problems.parts_plan import SENT_BYTES, PartsPlan
from mercer.problems.solution import Options


@dataclass(frozen=True)
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

    def placed(self, rows: Vector, own: Vector) -> PartsSolution:
        """The solution whose pool are the samples at ``own`` among the samples with these sorted numbers."""
        place = np.empty(len(rows), np.intp)
        place[own] = np.arange(len(own))
        return replace(self, landmarks=place[np.searchsorted(rows, self.rows)], pool=len(own))


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

    def map(self, function: Callable[..., Any], *args: Any, reads: Reads = True) -> list[Any]:
        """function(part of L, *args) of each part with samples."""
        found = self.parts.map(factor_part.on_factor, function, args, reads=reads and not self.kept)
        return [result for result in found if not (isinstance(result, tuple) and not result)]

    def layout(self) -> Layout:
        """The layout of the samples."""
        return self.parts.layout()

    def total(self, function: Callable[..., Any], *args: Any, reads: Reads = True) -> tuple[Any, ...]:
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
    saved: SavedGrowth | None = None,
    keep: Callable[[SavedGrowth], None] | None = None,
) -> PartsSolution:
    """Choose landmarks among the rows of all parts, solve, and certify for the exact problem.

    The kernel is bound (`bind_over_parts`). Samples whose weight is 0 are left out. Given landmarks are the samples of
    ``choice.given``; ``choice.polish`` is not available. Up to ``pairs_up_to`` pairs of support vectors β'Kβ is
    computed; beyond, it is bounded. ``keep`` is called with the state of each step; a later run that gets it as
    ``saved`` continues there.

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
    check_choice(statement.loss, options)
    if type(statement.loss) not in LOSSES:
        raise InvalidInputError(
            f"The loss {statement.loss.name!r} is not available for rows in parts: the linear solver over parts takes "
            "hinge, epsilon-insensitive, squared and one-class losses. Use the estimator of the same name in mercer."
        )
    if choice.polish:
        raise InvalidInputError(
            "polish=True continues to the exact machine, which is not available for rows in parts. Use polish=False "
            "with a smaller landmark_tol."
        )
    more = clock, choice, pairs_up_to, saved, keep
    growth = PartsGrowth(parts, kernel, statement, options, *more)
    found: PartsSolution = growth.run()
    if options.precision == "auto" and is_rounded(found, choice.tol) and clock.over() is None:
        growth = PartsGrowth(parts, kernel, statement, replace(options, precision="float64"), *more)
        found = growth.run()
    parts.map(factor_part.end_factor, reads=False)
    return replace(found, plan=growth.plan)


class PartsGrowth(Growth):
    """The growth of one machine of rows in parts."""

    def __init__(
        self,
        parts: Parts,
        kernel: Kernel,
        statement: Statement,
        options: Options,
        clock: Clock,
        choice: LandmarkOptions,
        pairs_up_to: int,
        saved: SavedGrowth | None,
        keep: Callable[[SavedGrowth], None] | None,
    ) -> None:
        super().__init__(options, clock, choice)
        self.exact_up_to, self.saved, self.keep = int(np.sqrt(pairs_up_to)), saved, keep
        self.parts, self.kernel, self.statement = parts, kernel, statement
        self.loss = statement.loss
        begun = parts.map(factor_part.begin_factor, statement, kernel, self.dtype)
        self.n = sum(own.n for own in begun)
        self.sums = np.full(int(statement.intercept), sum(own.total for own in begun))
        self.weight = sum(own.weight for own in begun)
        self._check_weights(self.weight)
        if self.n == 0:
            raise InvalidInputError("No sample has a positive weight: give at least one.")
        layout = parts.layout()._asdict()
        self.plan = PartsPlan(n_samples=self.n, method="landmarks", precision=np.dtype(self.dtype).name, **layout)
        clock.reports.log_once("plan", self.plan)
        self.largest = max(own.largest for own in begun)
        self.rows_in_one_place, self.memory = max(own.n for own in begun), available_bytes()
        if parts.work is not None:
            self.rows_in_one_place, self.memory = self.n, min(parts.work, self.memory)
        # the number of the first sample of each part, among all rows and among those with a weight
        self.first_rows = _starts((own.part, own.rows) for own in begun)
        self.starts = _starts((own.part, own.n) for own in begun)
        self.L = FactorParts(parts, self.n)
        self.map = LandmarkMap(kernel, None, np.empty((0, 0)))
        self.rows, self.targets = np.empty(0, np.int64), np.empty(0)
        self.evaluations = 0
        # w and b of the last solution, and its L'β
        self.last: tuple[Vector, float] | None = None
        self.v: Vector = np.empty(0)
        # seconds that one landmark took for all rows, and an estimate of what is lost
        self.landmark_seconds = self.estimate_seconds = 0.0
        # the number of support vectors of the last solution
        self.support = 0

    @property
    def root(self) -> Matrix:
        return self.map.root

    def _end_seconds(self) -> float:
        # values in float64 take twice as long as those of the rows of L
        return 2.0 * self.m * self.landmark_seconds + self.estimate_seconds

    # ---- landmarks -----------------------------------------------------------------------------------------------

    def _begin(self, count: int) -> int:
        given, saved = self.choice.given, self.saved
        if saved is not None:
            chosen = self._add(_Samples(saved.samples, saved.rows, saved.targets))
            self.last = self.root.T @ saved.coef[chosen], saved.intercept
        elif given is not None:
            chosen = self._add(_Samples(given.samples, np.arange(given.n, dtype=np.int64), np.zeros(given.n)))
        else:
            numbers = np.sort(self.random.permutation(self.n)[:count])
            chosen = self._add(self._joined(self.parts.map(factor_part.take_rows, _by_part(numbers, self.starts))))
        return len(chosen)

    def _extend(self, count: int) -> int:
        of_parts = self.parts.map(factor_part.sum_residuals, reads=False)
        paid, total = (float(sum(part[k] for part in of_parts)) for k in (0, 1))
        arguments = candidate_count(count), self.options.seed, self._turn, self.starts, paid, total
        keys = np.sort(np.concatenate(self.parts.map(factor_part.candidate_keys, *arguments, reads=False)))
        if len(keys) == 0:
            return 0
        limit = float(keys[min(candidate_count(count), len(keys)) - 1])
        found = self.parts.map(factor_part.take_smallest, limit)
        drawn = self._joined(found)
        assert drawn is not None
        chosen = np.sort(self._pursue(drawn.samples, count))
        is_chosen = np.isin(np.arange(len(drawn.rows)), chosen)
        ends = np.cumsum([0 if part is None else len(part.numbers) for part in found])
        taken = {
            number: part.numbers[own]
            for number, part, own in zip(self.first_rows, found, np.split(is_chosen, ends[:-1]), strict=True)
            if part is not None
        }
        self.parts.map(factor_part.mark_taken, taken, reads=False)
        return len(self._add(drawn.take(chosen)))

    def _pursue(self, candidates: Any, count: int) -> Vector:
        """The candidates that lower β'(K − K̂)β most."""
        a, landmarks = (self.kernel.prepare(rows, np.float64) for rows in (candidates, self.map.landmarks))
        g = -product(self.kernel, a, landmarks, coefficients(self.root, self.v), self.options.n_threads)
        for some in np.array_split(np.arange(len(g)), -(-len(g) // self._rows_at_once)):
            K_beta, computed = self.parts.total(factor_part.times_beta, take_samples(candidates, some))
            g[some] += K_beta
            self.evaluations += int(computed)
        K, K_m = (np.asarray(self.kernel.block(b, a), np.float64) for b in (a, landmarks))
        V = linalg.solve_triangular(self.root, K_m, lower=True, check_finite=False)
        self.evaluations += len(g) * (len(g) + 2 * self.m)
        return pursue(g, K - V.T @ V, count, dependent(self.largest, self.dtype))

    @property
    def _turn(self) -> int:
        """The number of rounds so far, with those before the saved state."""
        return len(self.rounds) + (0 if self.saved is None else self.saved.turn)

    def _joined(self, found: list[Any]) -> _Samples | None:
        """The drawn samples of all parts."""
        drawn = [(first, part) for first, part in zip(self.first_rows.values(), found, strict=True) if part is not None]
        if not drawn:
            return None
        numbers = np.concatenate([first + part.at for first, part in drawn]).astype(np.int64)
        return _Samples(stacked([part.samples for _, part in drawn]), numbers, np.concatenate([p.y for _, p in drawn]))

    def _add(self, new: _Samples | None) -> Vector:
        """Make samples landmarks, and extend the rows of L. Returns which of them were added."""
        if new is None:
            return np.empty(0, np.intp)
        old = None if self.m == 0 else self.kernel.prepare(self.map.landmarks, np.float64)
        offered = self.kernel.prepare(new.samples, np.float64)
        found = extend_root(self.kernel, self.map.root, old, offered, self.largest, self.dtype)
        self.evaluations += len(offered) * (len(offered) + self.m)
        if found is None:
            if self.m == 0:
                raise InvalidInputError(
                    f"{self.kernel!r} is 0 for all drawn samples: there is no landmark. Use another kernel, or scale X."
                )
            return np.empty(0, np.intp)
        chosen = take_samples(new.samples, found.chosen)
        landmarks = chosen if self.m == 0 else stacked([self.map.landmarks, chosen])
        self.map = LandmarkMap(self.kernel, landmarks, found.root)
        self.rows = np.concatenate([self.rows, new.rows[found.chosen]])
        self.targets = np.concatenate([self.targets, new.targets[found.chosen]])
        begun = self.clock.seconds
        (computed_anew,) = self.parts.total(factor_part.grow_factor, self.map)
        self.landmark_seconds = (self.clock.seconds - begun) / len(found.chosen)
        self.L.kept = computed_anew == 0
        self.evaluations += self.n * len(found.chosen)
        return found.chosen

    # ---- solve ---------------------------------------------------------------------------------------------------

    def _solve(self, tol: float) -> Restricted:
        statement = Statement(self.loss, 1.0, self.statement.intercept)
        options = LinearOptions(tol=tol, max_iter=self.options.max_iter, seed=self.options.seed)
        found = solve_parts(self.L, statement, options, self.clock, self._start(), self._keep if self.keep else None)
        self.last = found.w, found.intercept
        (self.v,) = self.L.total(factor_part.feature_sum)
        return Restricted(found.w, found.intercept, self.v, found.certificate, found.n_iter, found.status)

    def _keep_beta(self) -> None:
        self.L.map(factor_part.keep_beta, reads=False)

    def _return_to(self, best: Restricted) -> Restricted:
        self.L.map(factor_part.return_to_beta, reads=False)
        w = np.append(best.w, np.zeros(self.m - len(best.w)))
        self.last = w, best.intercept
        (self.v,) = self.L.total(factor_part.feature_sum)
        return best._replace(w=w, v=self.v)

    def _start(self) -> Vector | None:
        """The last model as one of the present landmarks: the columns of L before the new ones are the same."""
        if self.last is None and self.sums.any():
            # one class: β = ν weight is feasible, and ρ = |w|²/νW if all samples are on the border
            (weighted,) = self.L.total(factor_part.weight_sum)
            w = weighted * (self.sums[0] / self.weight)
            self.last = w, -float(w @ w) / float(self.sums[0])
        if self.last is None:
            return None
        w = np.append(self.last[0], np.zeros(self.m - len(self.last[0])))
        return np.append(w, self.last[1]) if self.statement.intercept else w

    def _keep(self, w: Vector) -> None:
        """Pass on the state of a step."""
        assert self.keep is not None
        weights, b = (w[:-1], float(w[-1])) if self.statement.intercept else (w, 0.0)
        coef = coefficients(self.root, weights)
        self.keep(SavedGrowth(self.map.landmarks, self.rows, self.targets, coef, b, self._turn))

    def _lost_about(self, found: Restricted) -> float:
        begun = self.clock.seconds
        terms, _ = self._terms(found.v, ROWS_OF_ESTIMATE, ROWS_OF_ESTIMATE)
        self.estimate_seconds = self.clock.seconds - begun
        return max(0.0, float(terms.mean()))

    def _lost_at_most(self, found: Restricted) -> Lost:
        count, exact_up_to = ROWS, self.exact_up_to
        rows = self.support if self.support <= exact_up_to else count
        if self.clock.left < self.estimate_seconds * rows / ROWS_OF_ESTIMATE:
            count, exact_up_to = ROWS_OF_ESTIMATE, 0
        terms, scale = self._terms(found.v, count, exact_up_to)
        return bound(terms, scale) if scale else Lost(max(0.0, float(terms[0])), False)

    def _terms(self, v: Vector, count: int, exact_up_to: int) -> tuple[Vector, float]:
        """(βᵢgᵢ/pᵢ of ``count`` drawn rows, S) for `bound`; up to ``exact_up_to`` support vectors (β'(K − K̂)β, 0)."""
        spread = self.parts.map(factor_part.sum_shares, self.largest, reads=False)
        self.support, scale = sum(part.support for part in spread), sum(part.scale for part in spread)
        if self.support == 0:
            return np.zeros(1), 0.0
        is_exact = self.support <= exact_up_to
        # draws are points of [0, S), divided into the intervals of the parts; or all support vectors by their numbers
        points: Vector = np.arange(self.support)
        if not is_exact:
            points = np.sort(np.random.default_rng(self.options.seed).random(count)) * scale
        sizes = np.array([part.support if is_exact else part.scale for part in spread])
        ends, terms = np.cumsum(sizes), []
        for some in np.array_split(points, -(-len(points) // self._rows_at_once)):
            own = np.split(some, np.searchsorted(some, ends[:-1]))
            wanted = {part.part: x - a for part, x, a in zip(spread, own, ends - sizes, strict=True)}
            terms.append(self._terms_at(wanted, is_exact, scale, coefficients(self.root, v)))
        if is_exact:
            return np.array([sum(float(own.sum()) for own in terms) - v @ v]), 0.0
        return np.concatenate(terms), scale

    def _terms_at(self, wanted: dict[int, Vector], is_exact: bool, scale: float, coef: Vector) -> Vector:
        """βᵢgᵢ/pᵢ of some rows; βᵢ(Kβ)ᵢ if they are all support vectors."""
        found = self.parts.map(factor_part.sample_support, self.largest, wanted, is_exact)
        drawn = [own for own in found if own is not None]
        samples = stacked([own.samples for own in drawn])
        beta, share, times = (np.concatenate([own[k] for own in drawn]) for k in (1, 2, 3))
        g, computed = self.parts.total(factor_part.times_beta, samples)
        self.evaluations += int(computed)
        if is_exact:
            return np.asarray(beta * g)
        a, b = (self.kernel.prepare(rows, np.float64) for rows in (samples, self.map.landmarks))
        explained = product(self.kernel, a, b, coef, self.options.n_threads)
        return np.repeat(beta * (g - explained) * scale / share, times)

    @property
    def _rows_at_once(self) -> int:
        """Drawn rows that come to the caller, and go to all parts, in one pass."""
        landmarks = self.map.landmarks
        stored = landmarks.data.size if sp.issparse(landmarks) else landmarks.size
        bytes_at_once = SENT_BYTES if self.parts.work is None else max(SENT_BYTES, self.parts.budget // 8)
        return max(1, int(bytes_at_once / 8 / (stored / self.m + 1)))

    def _check(self, coef: Vector, intercept: float) -> tuple[list[Share], float]:
        checked = self.parts.map(factor_part.check_function, self.map.landmarks, coef, float(intercept))
        self.evaluations += self.n * self.m
        return [share for share in checked if share is not None], float(intercept)

    def _publish(self, **common: Any) -> PartsSolution:
        return PartsSolution(
            np.empty(0), np.empty(0), **common, landmarks=np.arange(self.m), pool=self.m, samples=self.map.landmarks,
            rows=self.rows, targets=self.targets, evaluations=self.evaluations,
        )  # fmt: skip


@dataclass(frozen=True)
class _Samples:
    """Samples, their numbers among all rows, and their targets."""

    samples: Any
    rows: Vector
    targets: Vector

    def take(self, index: Vector) -> _Samples:
        """Some of them."""
        return _Samples(take_samples(self.samples, index), self.rows[index], self.targets[index])


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
