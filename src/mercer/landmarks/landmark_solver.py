"""A kernel machine restricted to the span of landmarks, of rows in one array.

    min over f in the span of the landmarks, b   ½|f|² + Σ weightᵢ ℓ(yᵢ, f(xᵢ) + b)

is a linear machine on the rows of the factor L of K̂ (`nystroem_factor`), solved by `mercer.linear`; [M5] "dictionary
methods". `growth` says how many landmarks there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes
from mercer.gram.operator import Data, product, terms_of
from mercer.kernels.features import Matrix, Vector
from mercer.landmarks.growth import (
    FIRST,
    GROWTH,
    NEARLY,
    SHARE,
    UNKNOWN,
    Growth,
    GrowthRound,
    LandmarkOptions,
    LandmarkSolution,
    Restricted,
    check_choice,
    is_rounded,
)
from mercer.landmarks.landmark_certificate import ROWS_OF_ESTIMATE, Lost, Share, certify, lost, lost_about, share_of
from mercer.landmarks.matching_pursuit import candidate_count, candidate_shares, pursue
from mercer.landmarks.nystroem_factor import Factor, coefficients, dependent
from mercer.linear import hybrid
from mercer.linear.central_path import follow
from mercer.linear.linear_plan import solve_linear
from mercer.linear.linear_problem import LinearProblem, Rows
from mercer.linear.linear_solution import LinearOptions, LinearSolution
from mercer.linear.near_kinks import ends_of
from mercer.losses import Loss, OneClass
from mercer.losses.base import BoxQP
from mercer.problems.clock import Clock
from mercer.problems.dual import feasible_start
from mercer.problems.solution import Certificate, Options, Solution, Status
from mercer.svm.solve import solve_problem

# landmarks are chosen on a random part of the samples: at least PART, and PART_ROWS_PER_LANDMARK for each possible
# landmark; on all samples if these are not PART_FROM times as many
PART, PART_ROWS_PER_LANDMARK, PART_FROM = 10_000, 8, 2
# passes of coordinate descent before the interior-point method continues
PASSES = 300
# runs of the central path of a one-class machine, each to a hundredth of the gap of the one before
ATTEMPTS = 3
# samples whose decision values are computed together in float64
EXACT_ROWS = 1 << 16
# samples whose decision value is further than this from a loss are left out, if they are at least this share of all
LEFT_OUT, LEAST_LEFT_OUT = 0.3, 0.1
# and if their rows of L take this many times the memory of the other samples' copies, with their bytes of a program,
WORTH_COPIES, PROGRAM_BYTES = 2.0, 120
# and if kernel values, which they need several times, are cheaper than rows of L: sums of at most this many terms
FEW_TERMS = 100
# the largest loss of samples that stay left out, as a share of landmark_tol; samples from which the error of their
# values is estimated
MOST_LEFT_OUT, SEEN = 0.25, 1000
# a sample is far from paying beyond this distance, and beyond SAFETY times the largest error of L
FAR = 0.05
# a small cache_size does not limit the factor below this many bytes
LEAST_BUDGET = 1 << 28


@dataclass(frozen=True)
class LandmarkSolver:
    """Solves the problem of one machine in the span of landmarks."""

    options: LandmarkOptions

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
        check_choice(loss, options)
        if not data.psd:
            raise InvalidInputError(
                f"Landmarks need a positive semidefinite kernel, but {data.kernel!r} is not one: there is no feature "
                "space to project in. Use another kernel, or landmarks=None."
            )
        problem = data, loss, y, weight, intercept
        found = ArrayGrowth(*problem, options, clock, self.options, start).run()
        if options.precision == "auto" and is_rounded(found, self.options.tol) and clock.over() is None:
            found = ArrayGrowth(*problem, replace(options, precision="float64"), clock, self.options, found.beta).run()
        if not self.options.polish or clock.over() is not None:
            return found
        exact = solve_problem(data, loss, y, weight, intercept, options, clock, found.beta)
        steps = replace(exact, trace=found.trace + exact.trace, steps=found.steps + exact.steps)
        return PolishedSolution(**vars(steps), landmark_certificate=found.landmark_certificate, growth=found.growth)


@dataclass(frozen=True)
class PolishedSolution(Solution):
    """An exact machine that continued from a landmark machine, with the record of the latter (`LandmarkSolution`)."""

    landmark_certificate: Certificate = UNKNOWN
    growth: tuple[GrowthRound, ...] = ()
    ended_by: str = ""


class Every(NamedTuple):
    """All samples of a machine, and their program."""

    data: Data
    y: Vector
    weight: Vector
    qp: BoxQP


class ArrayGrowth(Growth):
    """The growth of one machine of rows in one array.

    Samples that a first model puts far from any loss may be left out: their β is 0, and they have no row of L. The last
    model decides whether some of them return.

    Attributes
    ----------
    every : all samples and their program; ``data``, ``y``, ``weight`` and ``qp`` are those of the kept ones.
    kept : their numbers; None for all.
    stands_for : how many samples of the training set each sample stands for.
    """

    stands_for = 1.0

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
        super().__init__(options, clock, choice)
        self.loss, self.intercept = loss, intercept or isinstance(loss, OneClass)
        self.kept: Vector | None = None
        self._check_weights(float(weight.sum()))
        self._state(data, y, weight)
        self.every = Every(data, y, weight, self.qp)
        self.n, self.rows_in_one_place, self.sums = data.n, data.n, self.qp.sums
        self.memory = min(available_bytes(), max(options.budget, LEAST_BUDGET))
        self.beta = np.empty(0) if start is None or len(start) != data.n else start
        self.F: Vector = np.empty(0)
        self._kept_beta = self.beta
        self.last = Restricted(np.empty(0), 0.0, np.empty(0), UNKNOWN, 0)

    def _state(self, data: Data, y: Vector, weight: Vector) -> None:
        """State the problem of these samples, without landmarks."""
        self.data, self.y, self.weight = data, y, weight
        # the rows are those of the factor, once it has some
        self.problem = LinearProblem(Rows(np.empty((data.n, 0), self.dtype)), self.loss, y, weight, self.intercept)
        self.qp = self.loss.box_qp(y, weight, True) if isinstance(self.loss, OneClass) else self.problem.qp
        self.factor = Factor(data, self.dtype, self.options.n_threads, self.choice.given)

    @property
    def root(self) -> Matrix:
        return self.factor.root

    def _begin(self, count: int) -> int:
        given, most = self.choice.given, self._most()[0]
        if given is not None:
            return self.factor.add(np.arange(given.n))
        size = max(PART, PART_ROWS_PER_LANDMARK * most)
        if self.n < PART_FROM * size:
            return self.factor.add(self.random.permutation(self.n)[:count])
        part = PartGrowth(self, np.sort(self.random.choice(self.n, size, replace=False)))
        found = part.grow(max(1, int(most / GROWTH)))
        self.rounds, self.trace, self.steps = part.rounds, part.trace, part.steps
        landmarks = part.numbers[part.factor.index]
        if self._leaves_out:
            coef = coefficients(part.root, found.w)
            landmarks = self._leave_out(landmarks, self._values(None, part.factor, coef) + found.intercept)
        self.factor.begin(landmarks, part.root)
        if not isinstance(self.loss, OneClass):
            decision = Rows(self.factor.L).dot(found.w, self.options.n_threads) + found.intercept
            if not len(self.beta):
                self.beta = implied_beta(self.qp, self.qp.linear - decision)
            # the first round of all samples may be cut short
            self._best = found._replace(proof=replace(UNKNOWN, primal=self._primal(found, decision)))
        return self.m

    def _primal(self, found: Restricted, decision: Vector) -> float:
        """The primal value of a function with these decision values."""
        b = np.full(self.qp.n_groups, found.intercept)
        value = self.loss.primal(
            float(found.w @ found.w), self.y, decision - found.intercept, self.weight, b, self.qp.sums
        )
        return float(value)

    @property
    def _leaves_out(self) -> bool:
        """Whether samples without a row of L are worth the kernel values that they need instead."""
        data = self.data
        of_vectors = data.kernel.domain == "vectors" and not isinstance(self.loss, OneClass)
        return of_vectors and terms_of(data.kernel, data.features(self.dtype)) <= FEW_TERMS

    def _leave_out(self, landmarks: Vector, decision: Vector) -> Vector:
        """Leave out the samples whose decision values are far from a loss. Returns the landmarks as kept samples."""
        far = slack_at_zero(self.qp, self.beta if len(self.beta) else np.zeros(self.n), decision) > LEFT_OUT
        far[landmarks] = False
        size, terms = np.dtype(self.dtype).itemsize, terms_of(self.data.kernel, self.data.features(self.dtype))
        copied, spared = terms * size + PROGRAM_BYTES, self._most()[0] * size
        share = far.mean()
        if share < LEAST_LEFT_OUT or share * spared < WORTH_COPIES * (1.0 - share) * copied:
            return landmarks
        kept = self.kept = np.flatnonzero(~far)
        self.beta = self.beta[kept] if len(self.beta) else self.beta
        self._state(self.data.take(kept), self.y[kept], self.weight[kept])
        return np.searchsorted(kept, landmarks)

    def _values(self, samples: Vector | None, landmarks: Factor, coef: Vector) -> Vector:
        """Σ coef k(landmark, ·) at some samples, or at all, from kernel values in the precision of L."""
        data, dtype = self.every.data, self.dtype
        rows = data.features(dtype) if samples is None else data.features(dtype).take(samples)
        columns = landmarks.pool.features(dtype).take(landmarks.index)
        return product(data.kernel, rows, columns, coef, self.options.n_threads, data.evaluations)

    def _certified(self, found: Restricted, status: Status, ended_by: str) -> LandmarkSolution:
        tol = self.choice.tol
        allowed = min(0.5 * SHARE * max(tol, self.rounds[-1].exact_relative_gap), MOST_LEFT_OUT * tol)
        back = self._returning(FAR, allowed * abs(found.proof.primal))
        if len(back) and self.clock.over_in(self._end_seconds()) is None:
            self._take_back(back)
            found = self._round(SHARE * tol)
            over = self.clock.over()
            if over is not None:
                found, status = self._best_of_rounds(found), over
        return cast(LandmarkSolution, super()._certified(found, status, ended_by))

    def _returning(self, distance: float, allowed: float = 0.0) -> Vector:
        """The left-out samples within ``distance`` of a loss in the last model, if all pay more than ``allowed``."""
        if self.kept is None:
            return np.empty(0, np.intp)
        left_out = self._left_out
        decision = self._values(left_out, self.factor, coefficients(self.root, self.last.w)) + self.last.intercept
        slack = slack_at_zero(self.every.qp.take(left_out, None), np.zeros(len(left_out)), decision)
        paid = float(self.every.weight[left_out] @ np.maximum(-slack, 0.0))
        return left_out[slack <= distance] if paid > allowed else np.empty(0, np.intp)

    @property
    def _left_out(self) -> Vector:
        kept = np.arange(self.n) if self.kept is None else self.kept
        return np.setdiff1d(np.arange(self.n), kept, assume_unique=True)

    def _take_back(self, samples: Vector) -> None:
        """Add left-out samples to the kept ones, after the others."""
        assert self.kept is not None
        more, own = (
            Factor(self.every.data.take(samples), self.dtype, self.options.n_threads, self.factor.pool),
            self.factor,
        )
        more.begin(own.index, own.root)
        self.kept = np.concatenate([self.kept, samples])
        every = self.every
        self._state(every.data.take(self.kept), every.y[self.kept], every.weight[self.kept])
        self.factor.L, self.factor.root, self.factor.index = np.concatenate([own.L, more.L]), own.root, own.index
        self.factor.residual = np.concatenate([own.residual, more.residual])
        self.beta = np.concatenate([self.beta, np.zeros(len(samples))])
        if self._best is not None:  # the samples may pay
            w = np.append(self._best.w, np.zeros(self.m - len(self._best.w)))
            decision = Rows(self.factor.L).dot(w, self.options.n_threads) + self._best.intercept
            proof = replace(self._best.proof, primal=self._primal(self._best, decision))
            self._best = self._best._replace(proof=proof)

    def _extend(self, count: int) -> int:
        back = self._returning(LEFT_OUT / 2)
        if len(back):
            self._take_back(back)
        factor, data = self.factor, self.data
        residual = factor.residual.copy()
        residual[factor.index] = 0.0
        share = candidate_shares(self.beta, residual, float(self.beta**2 @ residual), float(residual.sum()))
        total, possible = float(share.sum()), int(np.count_nonzero(share))
        if not total > 0:
            return 0
        count = min(count, possible)
        drawn = self.random.choice(data.n, min(candidate_count(count), possible), replace=False, p=share / total)
        at = np.sort(drawn)
        rows, exact, used = factor.L[at].astype(np.float64), data.exact(at), np.flatnonzero(self.beta)
        prepared = data.features(self.dtype)
        g = product(
            data.kernel, prepared.take(at), prepared.take(used), self.beta[used], factor.n_threads, data.evaluations
        )
        # a sample that stands for several has a β as large as all of theirs, but only its own part is its own
        g -= (1.0 - 1.0 / self.stands_for) * self.beta[at] * residual[at]
        g -= rows @ Rows(factor.L).tdot(self.beta, factor.n_threads)
        R = np.asarray(data.kernel.block(exact, exact), np.float64) - rows @ rows.T
        return factor.add(at[pursue(g, R, count, dependent(factor.largest, self.dtype))])

    def _end_seconds(self) -> float:
        return 0.0 if self.clock.left == np.inf else self.end_seconds(self.m)

    def end_seconds(self, m: int) -> float:
        """Seconds that decision values from m landmarks and a certificate from few rows take."""
        n, threads = self.n, self.options.n_threads
        return self.data.seconds(n, m, threads) + self.data.seconds(ROWS_OF_ESTIMATE, n, threads)

    def _solve(self, tol: float) -> Restricted:
        rows = Rows(self.factor.L)
        self.last = self._one_class(rows, tol) if isinstance(self.loss, OneClass) else self._linear(rows, tol)
        return self.last

    def _linear(self, rows: Rows, tol: float) -> Restricted:
        """A linear machine over the rows of L: coordinate descent from the last β, then the "auto" plan."""
        own, threads = self.options, self.options.n_threads
        options = LinearOptions(tol=tol, max_iter=own.max_iter, n_threads=threads, seed=own.seed, budget=own.budget)
        problem = self.problem.with_rows(rows)
        start = None
        if len(self.beta):
            w = rows.tdot(self.beta, threads)
            start = LinearSolution(w, 0.0, self.beta, Status.CONVERGED, 0, 0.0, UNKNOWN)
        if not problem.qp.is_smooth:
            start = hybrid.solve(problem, options, self.clock, start, worth=lambda passes, _: passes < PASSES)
        if start is None or problem.qp.is_smooth or start.status is Status.STALLED:
            start = solve_linear("auto", problem, options, self.clock, start)
        self.beta = start.beta
        v = rows.tdot(start.beta, threads)
        return Restricted(start.w, start.intercept, v, start.certificate, start.n_iter, start.status)

    def _keep_beta(self) -> None:
        self._kept_beta = self.beta.copy()

    def _return_to(self, best: Restricted) -> Restricted:
        # samples that came back since then come last
        if len(self._kept_beta):
            self.beta = np.append(self._kept_beta, np.zeros(self.data.n - len(self._kept_beta)))
        w = np.append(best.w, np.zeros(self.m - len(best.w)))
        self.last = best._replace(w=w, v=Rows(self.factor.L).tdot(self.beta, self.options.n_threads))
        return self.last

    def _one_class(self, rows: Rows, tol: float) -> Restricted:
        """The one-class machine: Σβ = νW is the constant feature of a central path, with v₀ = −νW."""
        threads, known = self.options.n_threads, (self.qp, self.loss, self.y, self.weight)
        with_bias = Rows(rows.X, 1.0)
        q, fixed = np.ones(with_bias.d), np.zeros(with_bias.d)
        q[-1], fixed[-1] = 0.0, -float(self.sums[0])
        # decision values are of the size of Σβ: those of some β show how far from its bounds the path begins
        beta = self.beta if len(self.beta) else self.weight * (self.sums[0] / self.weight.sum())
        w = rows.tdot(beta, threads)
        F = rows.dot(w, threads)
        b = float(self.loss.best_thresholds(self.y, F, self.weight)[0])
        start, mu = np.append(w, b), float(self.weight.mean() * np.abs(F + b).mean()) or 1.0
        steps, asked = 0, 0.2 * tol
        for _ in range(ATTEMPTS):
            path = follow(
                with_bias, self.qp, q, np.zeros(with_bias.d), tol=asked, fixed=fixed, n_threads=threads, w=start, mu=mu,
                over=lambda _: self.clock.over() is not None,
            )  # fmt: skip
            steps += path.n_iter
            # β is moved to the sum; the path must be near enough to its end for that to matter little
            w, b, beta = path.w[:-1], float(path.w[-1]), feasible_start(self.qp, near=path.beta)
            v = rows.tdot(beta, threads)
            proof = certify(*known, beta, rows.dot(w, threads), b, float(w @ w), float(v @ v))
            if proof.relative_gap <= tol or self.clock.over() is not None:
                break
            asked *= 0.01
        self.beta = beta
        return Restricted(w, b, v, proof, steps)

    def _lost_about(self, found: Restricted) -> float:
        return lost_about(self.factor, self.beta, found.v, self.options.seed)

    def _lost_at_most(self, found: Restricted) -> Lost:
        n_used, seed, left = int(np.count_nonzero(self.beta)), self.options.seed, self.clock.left
        if left == np.inf or left > self.data.seconds(n_used, 0.5 * n_used, self.options.n_threads):
            return lost(self.factor, self.beta, found.v, seed=seed)
        return lost(self.factor, self.beta, found.v, 0, seed, ROWS_OF_ESTIMATE)  # no time for all pairs

    def _check(self, coef: Vector, intercept: float) -> tuple[list[Share], float]:
        from mercer.problems._optimality_loops import SAFETY

        # F of a sample that is far from paying is exact enough from values in float32 (see `mercer.svm.verify`)
        of, beta, b = self.every, self._of_every(self.beta), intercept
        rough = self._of_every(Rows(self.factor.L).dot(self.root.T @ coef, self.options.n_threads))
        error, done, todo = 0.0, np.zeros(self.n, dtype=bool), np.empty(0, np.intp)
        if self.kept is not None:
            left_out = self._left_out
            rough[left_out] = self._values(left_out, self.factor, coef)
            todo = left_out[:: max(1, len(left_out) // SEEN)]
        self.F = rough.copy()
        while True:
            self._compute_exactly(todo, coef)
            done[todo] = True
            error = max(error, float(np.abs(self.F[todo] - rough[todo]).max(initial=0.0)))
            if self.intercept and len(todo):
                b = float(self.loss.best_thresholds(of.y, self.F, of.weight)[0])
            far = slack_at_zero(of.qp, beta, self.F + b) > max(FAR, SAFETY * error)
            todo = np.flatnonzero(~done & ~far)
            if len(todo) == 0:
                return [share_of(of.qp, self.loss, of.y, of.weight, beta, self.F, b)], b

    def _of_every(self, values: Vector) -> Vector:
        """Values of the kept samples as values of all, 0 for the others."""
        if self.kept is None:
            return values
        found = np.zeros(self.n)
        found[self.kept] = values
        return found

    def _compute_exactly(self, samples: Vector, coef: Vector) -> None:
        """F of these samples from float64 kernel values."""
        data, threads, landmarks = self.every.data, self.options.n_threads, self.factor.features()
        for first in range(0, len(samples), EXACT_ROWS):
            some = samples[first : first + EXACT_ROWS]
            self.F[some] = product(data.kernel, data.exact(some), landmarks, coef, threads, data.evaluations)

    def _publish(self, **common: Any) -> LandmarkSolution:
        index, given = self.factor.index, self.choice.given
        return LandmarkSolution(
            self._of_every(self.beta), self.F, **common, landmarks=index if self.kept is None else self.kept[index],
            given=given is not None, pool=self.n if given is None else given.n,
        )  # fmt: skip


class PartGrowth(ArrayGrowth):
    """The growth of a machine on a random part of its samples, which chooses landmarks for all of them.

    The weights are those of all samples, so that the primal is an estimate of theirs.
    """

    def __init__(self, whole: ArrayGrowth, numbers: Vector) -> None:
        self.whole, self.numbers, self.stands_for = whole, numbers, whole.n / len(numbers)
        data, weight = whole.data.take(numbers), whole.weight[numbers] * self.stands_for
        of = whole.intercept, whole.options, whole.clock, whole.choice, None
        super().__init__(data, whole.loss, whole.y[numbers], weight, *of)
        self.begun = self.clock.seconds

    def grow(self, most: int) -> Restricted:
        """Add landmarks until they seem to suffice for all samples, or until a limit. Returns the last solution."""
        added = self._begin(min(most, FIRST))
        while True:
            found = self._round(self._tol_between())
            enough = self.choice.count is None and self.rounds[-1].lost <= NEARLY * self.choice.tol
            if self.clock.over_in(self._end_seconds()) is not None:
                return self._best_of_rounds(found)
            if enough or added == 0 or self.m >= most or found.status is Status.MAX_ITER:
                return found
            added = self._extend(min(most, int(GROWTH * self.m)) - self.m)

    def _end_seconds(self) -> float:
        if self.clock.left == np.inf:
            return 0.0
        # all samples take the same steps, once
        return self.whole.end_seconds(self.m) + self.stands_for * (self.clock.seconds - self.begun)

    def _lost_about(self, found: Restricted) -> float:
        # E β'Rβ of the part is that of all samples, but its diagonal, whose terms are squares, is as much larger as
        # each sample stands for others
        diagonal = float(self.beta**2 @ self.factor.residual)
        return max(super()._lost_about(found) - diagonal, 0.0) + diagonal / self.stands_for


def slack_at_zero(qp: BoxQP, beta: Vector, decision: Vector) -> Vector:
    """How far each decision value is from a loss, where β = 0; -inf elsewhere."""
    slope = qp.linear - decision
    above, below = np.where(qp.upper > 0, qp.l1 - slope, np.inf), np.where(qp.lower < 0, qp.l1 + slope, np.inf)
    return np.where(beta == 0, np.minimum(above, below), -np.inf)


def implied_beta(qp: BoxQP, slope: Vector) -> Vector:
    """The optimal β for the slope linear − f: an end of the box, or for squared losses the slope beyond l1 / ridge."""
    if not qp.is_smooth:
        return ends_of(qp, slope)
    beyond = np.sign(slope) * np.maximum(np.abs(slope) - qp.l1, 0.0)
    return np.asarray(np.clip(beyond / qp.ridge, qp.lower, qp.upper))
