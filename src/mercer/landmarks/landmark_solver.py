"""A kernel machine restricted to the span of landmarks, with as many landmarks as its certificate asks for.

    min over f in the span of the landmarks, b   ½|f|² + Σ weightᵢ ℓ(yᵢ, f(xᵢ) + b)

is a linear machine on the rows of the factor L of K̂ (`nystroem_factor`), solved by `mercer.linear`; [M5] "dictionary
methods".

Growth: the first landmarks are drawn evenly. In each round the restricted problem is solved from the last β, and the
distance to the exact machine is estimated (`landmark_certificate`). While it is above ``landmark_tol``, the number of
landmarks is doubled; a sample becomes a landmark with a probability proportional to βᵢ²rᵢ, its part of β'(K − K̂)β.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes
from mercer.gram.operator import Data, product
from mercer.kernels.features import Vector
from mercer.landmarks.landmark_certificate import (
    RISK,
    ROWS_OF_ESTIMATE,
    certify,
    conclude_shares,
    lost,
    lost_about,
    share_of,
)
from mercer.landmarks.nystroem_factor import Factor
from mercer.linear import hybrid
from mercer.linear.central_path import follow
from mercer.linear.linear_plan import solve_linear
from mercer.linear.linear_problem import LinearProblem, Rows
from mercer.linear.linear_solution import LinearOptions, LinearSolution
from mercer.losses import HardMargin, Loss, OneClass
from mercer.problems.clock import Clock
from mercer.problems.dual import feasible_start
from mercer.problems.solution import Certificate, Options, Solution, Status, TracePoint
from mercer.svm.solve import solve_problem

# landmarks of the first round, and the factor of each next one
FIRST, GROWTH = 100, 2.0
# the restricted problem is solved to this share of landmark_tol; between rounds, of the distance last estimated
SHARE, SHARE_BETWEEN = 0.05, 0.2
# passes of coordinate descent before the interior-point method continues
PASSES = 300
# share of the time left that a solution may take at least: the rest is for the certificate
LEAST_TIME = 0.2
# once the landmarks lose at most this share of landmark_tol, their problem is solved before more are added
NEARLY = 0.9
# runs of the central path of a one-class machine, each to a hundredth of the gap of the one before
ATTEMPTS = 3
# the largest relative gap of a round
COARSEST = 1e-2
# decision values of so many samples are computed together in float64
EXACT_ROWS = 1 << 16
# what limits growth, by whether memory does
LIMITS = ("max_landmarks", "memory")
# a small cache_size does not limit the factor below this many bytes
LEAST_BUDGET = 1 << 28
# of a start
UNKNOWN = Certificate(np.inf, -np.inf, np.inf, np.inf, np.inf, 0.0, False, "a start", "it was not computed")
# share of the memory budget that the factor may take: growing it needs the old one beside the new one
MEMORY_SHARE = 0.6


@dataclass(frozen=True)
class LandmarkOptions:
    """How landmarks are chosen.

    Attributes
    ----------
    count : the number of landmarks; None to grow until ``tol`` is met.
    given : the prepared pool of given landmarks, all of which are used; None to choose among the samples.
    tol : the relative distance to the exact machine at which growth ends.
    most : the largest number of landmarks for ``count`` None.
    polish : whether to continue to the exact machine.
    """

    count: int | None = None
    given: Data | None = None
    tol: float = 1e-2
    most: int = 2000
    polish: bool = False


@dataclass(frozen=True)
class GrowthRound:
    """One round of growth.

    Attributes
    ----------
    n_landmarks : landmarks so far.
    seconds : since the start of the fit.
    relative_gap : of the restricted problem.
    exact_relative_gap : to the exact machine; estimated from some rows in all rounds but the last.
    primal : the objective of the machine.
    """

    n_landmarks: int
    seconds: float
    relative_gap: float
    exact_relative_gap: float
    primal: float

    @property
    def lost(self) -> float:
        """The part of the gap that is due to the landmarks."""
        return self.exact_relative_gap - self.relative_gap

    def __str__(self) -> str:
        near = f"relative gap {self.relative_gap:.1e}, {self.exact_relative_gap:.1e} from the exact machine"
        return f"{self.n_landmarks}, {near}"


@dataclass
class LandmarkSolution(Solution):
    """A machine in the span of landmarks: its function is Σ coef k(landmark, ·), while β certifies it.

    Attributes
    ----------
    landmarks : their numbers among the samples; in the pool of given landmarks, if there is one.
    coef : their coefficients.
    size : |f|².
    landmark_certificate : for the problem restricted to the landmarks; ``certificate`` is that of the exact problem.
    growth : the rounds.
    given : whether the landmarks were given.
    pool : the number of samples among which the landmarks are.
    ended_by : "landmark_tol", "count", "given", or what limits growth: "max_landmarks", "memory", "samples",
        "rounding" (the other samples depend on the landmarks) or "time_limit".
    """

    landmarks: Vector = field(default_factory=lambda: np.empty(0, np.intp))
    coef: Vector = field(default_factory=lambda: np.empty(0))
    size: float = 0.0
    landmark_certificate: Certificate = UNKNOWN
    growth: tuple[GrowthRound, ...] = ()
    given: bool = False
    pool: int = 0
    ended_by: str = ""

    def taken(self, order: Any) -> LandmarkSolution:
        """The solution with its samples in another order: sample order[0] comes first."""
        found = super().taken(order)
        if self.given:
            return found
        place = np.empty(len(self.beta), np.intp)
        place[np.arange(len(self.beta))[order]] = np.arange(len(self.beta))
        return replace(found, landmarks=place[self.landmarks])

    @property
    def coefficients(self) -> Vector:
        """The coefficients of the function: one per sample, or one per given landmark."""
        full = np.zeros(self.pool)
        full[self.landmarks] = self.coef
        return full

    @property
    def squared_norm(self) -> float:
        """|f|²."""
        return self.size


@dataclass(frozen=True)
class LandmarkSolver:
    """Solves the problem of one machine in the span of landmarks."""

    options: LandmarkOptions

    def _is_rounded(self, found: LandmarkSolution) -> bool:
        """Whether the rounding of a factor in float32 keeps the machine from its tolerance.

        The run trusts decision values from this factor; the certificates are computed from values in float64.
        """
        tol = self.options.tol
        if found.status is not Status.CONVERGED:
            return False
        missed = found.ended_by in ("landmark_tol", "rounding", "samples") and found.certificate.relative_gap > tol
        return missed or found.landmark_certificate.relative_gap > tol

    def __call__(
        self,
        data: Data,
        loss: Loss,
        y: Vector,
        weight: Vector,
        intercept: bool,
        options: Options,
        clock: Clock,
        start: Vector | None,
    ) -> Solution:
        """Choose landmarks, solve, certify for the exact problem, and polish if asked."""
        _check(data, loss, options)
        problem = data, loss, y, weight, intercept
        found = _Run(*problem, options, clock, self.options, start).run()
        if options.precision == "auto" and self._is_rounded(found) and clock.over() is None:
            found = _Run(*problem, replace(options, precision="float64"), clock, self.options, found.beta).run()
        if not self.options.polish or clock.over() is not None:
            return found
        exact = solve_problem(data, loss, y, weight, intercept, options, clock, found.beta)
        return replace(exact, trace=found.trace + exact.trace, steps=found.steps + exact.steps)


def _check(data: Data, loss: Loss, options: Options) -> None:
    if isinstance(loss, HardMargin):
        raise InvalidInputError(
            "A hard margin (C=inf) has no landmark machine: the span of the landmarks need not separate the classes. "
            "Use a large finite C, or landmarks=None."
        )
    if not data.psd:
        raise InvalidInputError(
            f"Landmarks need a positive semidefinite kernel, but {data.kernel!r} is not one: there is no feature space "
            "to project in. Use another kernel, or landmarks=None."
        )
    if options.solver != "auto" or options.trace:
        raise InvalidInputError(
            f"solver={options.solver!r} solves the exact problem, and landmarks restrict it. Use solver='auto' and "
            "trace=False with landmarks, or landmarks=None."
        )


def share_between(rounds: Sequence[GrowthRound], tol: float) -> float:
    """The relative gap of a round that is followed by others."""
    last = rounds[-1].exact_relative_gap if rounds else 1.0
    return float(np.clip(SHARE_BETWEEN * last, SHARE * tol, COARSEST))


class _Run:
    """The growth of one machine."""

    def __init__(
        self,
        data: Data,
        loss: Loss,
        y: Vector,
        weight: Vector,
        intercept: bool,
        options: Options,
        clock: Clock,
        choice: LandmarkOptions,
        start: Vector | None,
    ) -> None:
        self.data, self.loss, self.y, self.weight = data, loss, y, weight
        self.intercept = intercept or isinstance(loss, OneClass)
        self.qp = loss.box_qp(y, weight, self.intercept)
        self.options, self.clock, self.choice = options, clock, choice
        self.dtype = np.float64 if options.precision == "float64" else np.float32
        self.random = np.random.default_rng(options.seed)
        self.beta = None if start is None or len(start) != data.n else start
        self.rounds: list[GrowthRound] = []
        self.trace: list[TracePoint] = []
        self.steps = 0

    def run(self) -> LandmarkSolution:
        """Grow until the machine is near enough to the exact one, or until a limit."""
        given, tol = self.choice.given, self.choice.tol
        self.factor = Factor(self.data, self.dtype, self.options.n_threads, given)
        most, limit = self._most()
        first = np.arange(given.n) if given is not None else self.random.permutation(self.data.n)[: min(most, FIRST)]
        added = self.factor.add(first)
        while True:
            last = given is not None or self.factor.m >= most or added == 0
            state = self._solve(SHARE * tol if last else share_between(self.rounds, tol))
            over = self.clock.over_in(self._end_seconds())
            if over is not None:
                return self._certified(state, over, "time_limit")
            near = self.choice.count is None and self.rounds[-1].lost <= NEARLY * tol
            if near and not last and state.relative_gap > 2.0 * SHARE * tol:
                state = self._solve(SHARE * tol)  # the landmarks suffice: what is missing is their own solution
            near = self.choice.count is None and self.rounds[-1].exact_relative_gap <= tol
            if near or last:
                solved = near or state.relative_gap <= 1.01 * SHARE * tol
                status = Status.CONVERGED if solved else Status.STALLED
                if limit == "time_limit" and not near:
                    status = Status.TIME_LIMIT
                return self._certified(state, status, "landmark_tol" if near else limit)
            begun = self.clock.seconds
            added = self.factor.add(self._next(state.beta, most))
            if added == 0 and self.choice.count is None:
                limit = "rounding"
            spent = self.clock.seconds - begun
            # a factor of twice as many landmarks takes four times as long
            if self.clock.over_in(self._end_seconds() + 4.0 * spent) is not None:
                most, limit = self.factor.m, "time_limit"

    def _most(self) -> tuple[int, str]:
        """The largest number of landmarks, and what sets it."""
        n, size, choice = self.data.n, np.dtype(self.dtype).itemsize, self.choice
        if choice.given is not None:
            return choice.given.n, "given"
        wanted = min(n, choice.most if choice.count is None else choice.count)
        memory = min(available_bytes(), max(self.options.budget, LEAST_BUDGET))
        fits = max(1, int(MEMORY_SHARE * memory / (n * size)))
        if choice.count is None:
            return min(wanted, fits), "samples" if n <= min(choice.most, fits) else LIMITS[fits < wanted]
        if fits < wanted:
            raise InvalidInputError(
                f"{wanted} landmarks of {n:,} samples take {1e-9 * size * n * wanted / MEMORY_SHARE:.3g} GB, but "
                f"{1e-9 * memory:.3g} GB are available. Use at most {fits} landmarks, or a larger cache_size."
            )
        return wanted, "count"

    def _next(self, beta: Vector, most: int) -> Vector:
        """The next landmarks: samples drawn by their part of what is lost."""
        count = min(most, int(GROWTH * self.factor.m)) - self.factor.m
        share = beta**2 * self.factor.residual
        share[self.factor.index] = 0.0
        total = float(share.sum())
        if not total > 0:
            return np.empty(0, np.intp)
        possible = int(np.count_nonzero(share))
        return np.sort(self.random.choice(self.data.n, min(count, possible), replace=False, p=share / total))

    def _end_seconds(self) -> float:
        """Seconds that decision values and a certificate from few rows take; 0 without a time limit."""
        if self.clock.left == np.inf:
            return 0.0
        n, threads = self.data.n, self.options.n_threads
        return self.data.seconds(n, self.factor.m, threads) + self.data.seconds(ROWS_OF_ESTIMATE, n, threads)

    def _solve(self, tol: float) -> _State:
        """Solve the restricted problem to this relative gap, from the last β, and record the round."""
        rows, threads = Rows(self.factor.L), self.options.n_threads
        if isinstance(self.loss, OneClass):
            w, b, beta, steps, proof = self._one_class(rows, tol)
        else:
            found = self._linear(rows, tol)
            w, b, beta, steps, proof = found.w, found.intercept, found.beta, found.n_iter, found.certificate
        self.beta = beta
        self.steps += steps
        v = rows.tdot(beta, threads)
        state = _State(w, b, beta, v, proof.relative_gap)
        about = 0.5 * lost_about(self.factor, beta, v, self.options.seed)
        distance = (proof.gap + about) / max(abs(proof.primal), np.finfo(np.float64).tiny)
        now = GrowthRound(self.factor.m, self.clock.seconds, proof.relative_gap, distance, proof.primal)
        self.rounds.append(now)
        self.trace.append(TracePoint(now.seconds, self.steps, distance, proof.dual - about, self.data.n))
        self.clock.report(self.trace[-1])
        self.clock.log_once("landmarks", now)
        return state

    def _linear(self, rows: Rows, tol: float) -> LinearSolution:
        """A linear machine over the rows of L: coordinate descent from the last β, then what `linear_plan` ranks."""
        settings = self.options
        options = LinearOptions(
            tol=tol,
            max_iter=settings.max_iter,
            n_threads=settings.n_threads,
            seed=settings.seed,
            budget=settings.budget,
        )
        problem = LinearProblem(rows, self.loss, self.y, self.weight, self.intercept)
        start = None
        if self.beta is not None:
            w = rows.tdot(self.beta, settings.n_threads)
            start = LinearSolution(w, 0.0, self.beta, Status.CONVERGED, 0, 0.0, UNKNOWN)
        left = self.clock.left
        share = 1.0 if left == np.inf else max(LEAST_TIME, 1.0 - 2.0 * self._end_seconds() / max(left, 1e-9))
        with self.clock.without_progress(), self.clock.share_of_time(share):
            if not problem.qp.is_smooth:
                start = hybrid.solve(problem, options, self.clock, start, worth=lambda passes, _: passes < PASSES)
                if start.status is not Status.STALLED:
                    return start
            return solve_linear("auto", problem, options, self.clock, start)

    def _one_class(self, rows: Rows, tol: float) -> tuple[Vector, float, Vector, int, Certificate]:
        """The one-class machine: Σβ = νW is the constant feature of a central path, with v₀ = −νW."""
        with_bias = Rows(rows.X, 1.0)
        q, fixed = np.ones(with_bias.d), np.zeros(with_bias.d)
        q[-1], fixed[-1] = 0.0, -float(self.qp.sums[0])
        steps, asked = 0, 0.2 * tol
        for _ in range(ATTEMPTS):
            path = follow(
                with_bias, self.qp, q, np.zeros(with_bias.d), tol=asked, fixed=fixed, n_threads=self.options.n_threads,
                over=lambda _: self.clock.over() is not None,
            )  # fmt: skip
            steps += path.n_iter
            # β is moved to the sum; the path must be near enough to its end for that to matter little
            w, b, beta = path.w[:-1], float(path.w[-1]), feasible_start(self.qp, near=path.beta)
            v = rows.tdot(beta, self.options.n_threads)
            F, known = rows.dot(w, self.options.n_threads), (self.qp, self.loss, self.y, self.weight)
            proof = certify(*known, beta, F, b, float(w @ w), float(v @ v))
            if proof.relative_gap <= tol or self.clock.over() is not None:
                break
            asked *= 0.01
        return w, b, beta, steps, proof

    def _certified(self, state: _State, status: Status, ended_by: str) -> LandmarkSolution:
        """The machine with both certificates; its decision values are computed in float64."""
        data, factor, threads = self.data, self.factor, self.options.n_threads
        coef = factor.coefficients(state.w)
        F, beta = np.empty(data.n), state.beta
        landmarks = factor.features()
        for first in range(0, data.n, EXACT_ROWS):
            rows = np.arange(first, min(first + EXACT_ROWS, data.n))
            F[rows] = product(data.kernel, data.exact(rows), landmarks, coef, threads, data.evaluations)
        b = state.intercept
        if self.intercept:
            b = float(self.loss.best_thresholds(self.y, F, self.weight)[0])
        size, v = float(np.square(factor.root.T @ coef).sum()), state.v
        n_used, seed = int(np.count_nonzero(beta)), self.options.seed
        if self.clock.left == np.inf or self.clock.left > data.seconds(n_used, 0.5 * n_used, threads):
            missing = lost(factor, beta, v, seed=seed)
        else:  # no time for all pairs
            missing = lost(factor, beta, v, 0, seed, ROWS_OF_ESTIMATE)
        note = f"of the exact machine, with probability {1.0 - RISK:g}," if missing.sampled else ""
        shares = [share_of(self.qp, self.loss, self.y, self.weight, beta, F, b)]
        quadratic, of = float(v @ v), (shares, self.qp.sums, self.loss.name, size)
        restricted, exact = conclude_shares(*of, quadratic), conclude_shares(*of, quadratic + missing.value, note)
        last = replace(self.rounds[-1], exact_relative_gap=exact.relative_gap, relative_gap=restricted.relative_gap)
        thresholds = np.array([b]) if self.intercept else np.empty(0)
        return LandmarkSolution(
            beta, F, thresholds, status, self.steps, self.clock.seconds, exact, self.trace, landmarks=factor.index,
            coef=coef, size=size, landmark_certificate=restricted, growth=(*self.rounds[:-1], last),
            given=self.choice.given is not None, pool=factor.pool.n, ended_by=ended_by,
        )  # fmt: skip


class _State(NamedTuple):
    """A solution of the restricted problem: w, b, β, L'β, and its relative gap."""

    w: Vector
    intercept: float
    beta: Vector
    v: Vector
    relative_gap: float
