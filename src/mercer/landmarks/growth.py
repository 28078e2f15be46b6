"""The growth of a landmark machine, wherever its rows are.

The first landmarks are drawn evenly. In each round the restricted problem is solved from the last solution, and the
distance to the exact machine is estimated (`landmark_certificate`). While it is above ``landmark_tol``, the number of
landmarks is doubled; a sample becomes a landmark with a probability proportional to βᵢ²rᵢ, its part of β'(K − K̂)β.

A round that a limit cuts short may be worse than the one before. A run that ends without its tolerance publishes the
function with the lowest primal value of all rounds and the β with the highest dual value: weak duality holds for every
pair.

`Growth` has the rounds, their limits and the certificate. `landmark_solver` adds what is computed for rows in one
array, `over_parts` for rows in parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels.features import Matrix, Vector
from mercer.landmarks.landmark_certificate import RISK, Lost, Share, conclude_shares
from mercer.landmarks.nystroem_factor import coefficients
from mercer.losses import HardMargin, Loss
from mercer.problems.clock import Clock
from mercer.problems.solution import Certificate, Options, Solution, Status, TracePoint

# landmarks of the first round, and the factor of each next one
FIRST, GROWTH = 100, 2.0
# the restricted problem is solved to this share of landmark_tol; between rounds, of the distance last estimated
SHARE, SHARE_BETWEEN = 0.05, 0.2
# the largest relative gap of a round
COARSEST = 1e-2
# share of the time left that a solution may take at least: the rest is for the certificate
LEAST_TIME = 0.2
# once the landmarks lose at most this share of landmark_tol, their problem is solved before more are added
NEARLY = 0.9
# the name of the limit of growth: the second one if it is memory
LIMITS = ("max_landmarks", "memory")
# share of the memory that the rows of L may take: growing them needs the old ones beside the new ones
MEMORY_SHARE = 0.6
# the largest sum of weights: a product of three β has a finite value
LARGEST = 1e100
# the certificate of a start
UNKNOWN = Certificate(np.inf, -np.inf, np.inf, np.inf, np.inf, 0.0, False, "a start", "it was not computed")


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
    primal : the objective of the machine; in the last round of the one that is published.
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


@dataclass(frozen=True)
class LandmarkSolution(Solution):
    """A machine in the span of landmarks: its function is Σ coef k(landmark, ·), while β certifies it.

    Attributes
    ----------
    landmarks : their numbers among the samples; in the pool of given landmarks, if there is one.
    coef : their coefficients.
    size : |f|².
    landmark_certificate : for the problem restricted to the landmarks; ``certificate`` is that of the exact problem.
    growth : the rounds.
    pool : the number of samples among which the landmarks are.
    ended_by : "landmark_tol", "count", "given", or what limits growth: "max_landmarks", "memory", "samples",
        "rounding" (the other samples depend on the landmarks), "max_iter" (of the restricted problem) or "time_limit".
    """

    landmarks: Vector = field(default_factory=lambda: np.empty(0, np.intp))
    coef: Vector = field(default_factory=lambda: np.empty(0))
    size: float = 0.0
    landmark_certificate: Certificate = UNKNOWN
    growth: tuple[GrowthRound, ...] = ()
    pool: int = 0
    ended_by: str = ""

    def reordered(self, order: Any) -> LandmarkSolution:
        """The solution with its samples in another order: sample order[0] comes first."""
        found = super().reordered(order)
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


class Restricted(NamedTuple):
    """A solution of the restricted problem: w, b, L'β, its certificate, its steps and how its solver ended.

    β stays with the rows.
    """

    w: Vector
    intercept: float
    v: Vector
    proof: Certificate
    steps: int
    status: Status = Status.CONVERGED

    def distance(self, lost: float) -> float:
        """The relative distance to the exact machine if the landmarks lose ``lost``."""
        return (self.proof.gap + 0.5 * lost) / max(abs(self.proof.primal), np.finfo(np.float64).tiny)


class Growth(ABC):
    """The growth of one machine.

    Attributes
    ----------
    n : the number of samples.
    rows_in_one_place, memory : how many of them have their rows of L in the same memory, and its bytes.
    loss, sums : the loss, and the sums that β must have.
    """

    n: int
    rows_in_one_place: int
    memory: int
    loss: Loss
    sums: Vector

    def __init__(self, options: Options, clock: Clock, choice: LandmarkOptions) -> None:
        self.options, self.clock, self.choice = options, clock, choice
        self.dtype = np.float64 if options.precision == "float64" else np.float32
        self.random = np.random.default_rng(options.seed)
        self.rounds: list[GrowthRound] = []
        self.trace: list[TracePoint] = []
        self.steps = 0
        # the bound on the loss by the landmarks of the last solution, once it is computed
        self._lost: Lost | None = None
        # the function with the lowest primal value, and the dual value of the β that `_keep_beta` kept
        self._best: Restricted | None = None
        self._best_dual = -np.inf

    # ---- where the rows are ----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def root(self) -> Matrix:
        """R, the factor of the landmarks' own matrix."""

    @abstractmethod
    def _begin(self, count: int) -> int:
        """Add the given landmarks, or ``count`` landmarks drawn evenly. Returns how many were added."""

    @abstractmethod
    def _extend(self, count: int) -> int:
        """Add ``count`` landmarks, drawn by their part of what is lost. Returns how many were added."""

    @abstractmethod
    def _solve(self, tol: float) -> Restricted:
        """Solve the restricted problem to this relative gap, from the last solution."""

    @abstractmethod
    def _keep_beta(self) -> None:
        """Remember β of the last solution."""

    @abstractmethod
    def _return_to(self, best: Restricted) -> Restricted:
        """Make the β that was kept the present one, and return this function over the present landmarks."""

    @abstractmethod
    def _lost_about(self, found: Restricted) -> float:
        """An estimate of β'(K − K̂)β from few rows."""

    @abstractmethod
    def _lost_at_most(self, found: Restricted) -> Lost:
        """β'(K − K̂)β, or a bound on it."""

    @abstractmethod
    def _check(self, coef: Vector, intercept: float) -> tuple[list[Share], float]:
        """The rows' shares of the certificate of Σ coef k(landmark, ·) + b in float64, and b, which may be improved."""

    @abstractmethod
    def _end_seconds(self) -> float:
        """Seconds that decision values and a certificate from few rows take; 0 without a time limit."""

    @abstractmethod
    def _publish(self, **common: Any) -> Any:
        """The solution, from the fields that do not depend on where the rows are."""

    # ---- rounds ----------------------------------------------------------------------------------------------

    def _check_weights(self, total: float) -> None:
        """Raise if products of weights, whose sum is given, may overflow."""
        if not total <= LARGEST:
            raise InvalidInputError(
                f"The sum of the weights, C · sample_weight or sample_weight / alpha, is {total:.3g}: their products "
                f"overflow in a landmark machine, which takes sums up to {LARGEST:g}. Lower C or the weights, or use "
                "landmarks=None."
            )

    @property
    def m(self) -> int:
        """The number of landmarks."""
        return len(self.root)

    @np.errstate(over="ignore", invalid="ignore")
    def run(self) -> Any:
        """Grow until the machine is near enough to the exact one, or until a limit."""
        tol, grows = self.choice.tol, self.choice.count is None
        most, limit = self._most()
        # at least half of the landmarks are chosen
        added = self._begin(min(most, FIRST, max(1, most // 2)))
        while True:
            last = self.choice.given is not None or self.m >= most or added == 0
            found = self._round(SHARE * tol if last else self._tol_between())
            over = self.clock.over_in(self._end_seconds())
            if over is not None:
                return self._certified(self._best_of_rounds(found), over, "time_limit")
            if (
                not last
                and grows
                and found.status is not Status.MAX_ITER
                and self.rounds[-1].lost <= NEARLY * tol
                and found.proof.relative_gap > 2 * SHARE * tol
            ):
                found = self._round(SHARE * tol)  # the landmarks suffice, but not their own solution
            near = grows and self.rounds[-1].exact_relative_gap <= tol
            # the mean of few draws is not the bound that is published
            near = near and (last or found.distance(self._bound(found).value) <= tol)
            if near:
                return self._certified(found, Status.CONVERGED, "landmark_tol")
            if found.status is Status.MAX_ITER:
                return self._certified(self._best_of_rounds(found), Status.MAX_ITER, "max_iter")
            if last:
                solved = found.proof.relative_gap <= 1.01 * SHARE * tol
                status = Status.CONVERGED if solved else Status.STALLED
                if limit == "time_limit":
                    status = Status.TIME_LIMIT
                return self._certified(found if solved else self._best_of_rounds(found), status, limit)
            begun = self.clock.seconds
            added = self._extend(min(most, int(GROWTH * self.m)) - self.m)
            if added == 0 and grows:
                limit = "rounding"
            # a factor of twice as many landmarks takes four times as long
            if self.clock.over_in(self._end_seconds() + 4.0 * (self.clock.seconds - begun)) is not None:
                most, limit = self.m, "time_limit"

    def _most(self) -> tuple[int, str]:
        """The largest number of landmarks, and the limit that sets it."""
        choice, rows = self.choice, self.rows_in_one_place
        if choice.given is not None:
            return int(choice.given.n), "given"
        wanted = min(self.n, choice.most if choice.count is None else choice.count)
        size = np.dtype(self.dtype).itemsize * rows
        fits = max(1, int(MEMORY_SHARE * self.memory / size))
        if choice.count is None:
            return min(wanted, fits), "samples" if self.n <= min(choice.most, fits) else LIMITS[fits < wanted]
        if fits < wanted:
            more = "a larger cache_size" if rows == self.n else "smaller parts"
            raise InvalidInputError(
                f"{wanted} landmarks of {rows:,} samples{'' if rows == self.n else ' of one part'} take "
                f"{1e-9 * size * wanted / MEMORY_SHARE:.3g} GB, but {1e-9 * self.memory:.3g} GB are available. Use at "
                f"most {fits} landmarks, or {more}."
            )
        return wanted, "count"

    def _tol_between(self) -> float:
        """The relative gap to which a round is solved that is not the last."""
        last = self.rounds[-1].exact_relative_gap if self.rounds else 1.0
        return float(np.clip(SHARE_BETWEEN * last, SHARE * self.choice.tol, COARSEST))

    def _round(self, tol: float) -> Restricted:
        """Solve to this relative gap, in a part of the time left, and record the round."""
        left = self.clock.left
        share = 1.0 if left == np.inf else max(LEAST_TIME, 1.0 - 2.0 * self._end_seconds() / max(left, 1e-9))
        with self.clock.reports.silenced(), self.clock.share_of_time(share):
            found = self._solve(tol)
        self._lost = None
        self.steps += found.steps
        about = self._lost_about(found)
        now = GrowthRound(
            self.m, self.clock.seconds, found.proof.relative_gap, found.distance(about), found.proof.primal
        )
        self.rounds.append(now)
        dual = found.proof.dual - 0.5 * about
        self.trace.append(TracePoint(now.seconds, self.steps, now.exact_relative_gap, dual, self.n))
        self.clock.report(self.trace[-1])
        self.clock.reports.log_once("landmarks", now)
        if self._best is None or found.proof.primal <= self._best.proof.primal:
            self._best = found
        if found.proof.valid and dual > self._best_dual:
            self._best_dual = dual
            self._keep_beta()
        return found

    def _best_of_rounds(self, found: Restricted) -> Restricted:
        """The best function and the best β of all rounds; ``found`` is the last round."""
        dual = self.trace[-1].dual
        if self._best is None or (self._best is found and dual >= self._best_dual):
            return found
        self._lost = None
        return self._return_to(self._best)

    def _bound(self, found: Restricted) -> Lost:
        """A bound on what the landmarks of the last solution lose; computed once."""
        if self._lost is None:
            self._lost = self._lost_at_most(found)
        return self._lost

    def _certified(self, found: Restricted, status: Status, ended_by: str) -> Any:
        """The machine with both certificates; its decision values are computed in float64."""
        coef = coefficients(self.root, found.w)
        shares, b = self._check(coef, found.intercept)
        lost = self._bound(found)
        note = f"of the exact machine, with probability {1.0 - RISK:g}," if lost.sampled else ""
        size, quadratic = float(np.square(self.root.T @ coef).sum()), float(found.v @ found.v)
        of = shares, self.sums, self.loss.name, size
        restricted, exact = conclude_shares(*of, quadratic), conclude_shares(*of, quadratic + lost.value, note)
        last = replace(
            self.rounds[-1], exact_relative_gap=exact.relative_gap, relative_gap=restricted.relative_gap,
            primal=exact.primal,
        )  # fmt: skip
        return self._publish(
            thresholds=np.array([b]) if len(self.sums) else np.empty(0), status=status, steps=self.steps,
            seconds=self.clock.seconds, certificate=exact, trace=self.trace, coef=coef, size=size,
            landmark_certificate=restricted, growth=(*self.rounds[:-1], last), ended_by=ended_by,
        )  # fmt: skip


def is_rounded(found: LandmarkSolution, tol: float) -> bool:
    """Whether the rounding of a factor in float32 keeps a machine from its tolerance.

    The run trusts decision values from this factor; the certificates are computed from values in float64.
    """
    if found.status is not Status.CONVERGED:
        return False
    missed = found.ended_by in ("landmark_tol", "rounding", "samples") and found.certificate.relative_gap > tol
    return missed or found.landmark_certificate.relative_gap > tol


def check_choice(loss: Loss, options: Options) -> None:
    """Raise for losses and options without a landmark machine."""
    if isinstance(loss, HardMargin):
        raise InvalidInputError(
            "A hard margin (C=inf) has no landmark machine: the span of the landmarks need not separate the classes. "
            "Use a large finite C, or landmarks=None."
        )
    if options.solver != "auto" or options.trace:
        what = "trace=True follows a procedure for" if options.trace else f"solver={options.solver!r} solves"
        raise InvalidInputError(
            f"{what} the exact problem, and landmarks restrict it. Use solver='auto' and "
            "trace=False with landmarks, or landmarks=None."
        )
