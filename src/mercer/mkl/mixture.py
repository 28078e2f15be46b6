"""Learn the weights of a sum of kernels jointly with its machines, by a bundle method with second derivatives.

`mkl.mkl_problem` states the problem. Solving the machines at weights η gives the value J(η), its gradient −½S and a
cut: a linear function that is a lower bound of J everywhere. The minimum of the largest cut is a lower bound on the
optimum; a convex combination of the β proves it. The next weights minimise the largest cut plus a quadratic term around
the best weights so far (a bundle method). The matrix of this term is the second derivative of J for a fixed free set,

    ∂²J/∂η_m∂η_n = u_m'(K_η)⁻¹u_n,   u_m = K_mβ,   on the free samples, with the sum of β fixed,

plus κ diag(S_m/η_m), for changes of the free set. With κ = 1 and without the first part, one cut would give the
closed-form step of Kloft et al. (2011), whose model is an upper bound of J. κ is adapted to the accuracy of the last
prediction. Chapelle & Rakotomamonjy, *Second order optimization of kernel parameters* (2008).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import linalg

from mercer._compiled.blas import one_blas_thread
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.losses.base import BoxQP
from mercer.mkl.cuts import lowest_weights
from mercer.mkl.grams import SeveralGrams
from mercer.mkl.mkl_problem import ball_norm, dual_norm, mixture_certificate, value_without_kernel
from mercer.problems.clock import Clock
from mercer.problems.dual import infeasibility
from mercer.problems.solution import Certificate, Solution, Status, TracePoint

# the first κ and its limits; it changes by FALL or RISE if the decrease is above GOOD or below POOR of the prediction
KAPPA, LEAST_KAPPA, LARGEST_KAPPA = 0.1, 1e-3, 3.0
GOOD, POOR, FALL, RISE = 0.5, 0.1, 0.3, 3.0
# the machines' own gaps may be this share of the allowed gap
OWN_SHARE = 0.2
TIGHTEST = 1e-10
# with more free samples the second derivative costs more than solving a machine
MOST_FREE = 1500
# the curvature is limited as if weights were at least this share of the largest, so that small ones can grow again
NEAR_ZERO = 0.03
# number of cuts kept
MOST_CUTS = 120
# the search stalls after this many rounds without a smaller gap
PATIENCE = 25
# after every IMPATIENT of these rounds, the machines are solved more accurately
IMPATIENT = 4
# weights are set to 0 if their kernels together contribute at most this share of the allowed gap
NEGLIGIBLE = 0.1
# share of the remaining time for the machines; the rest is for the lower bound
MACHINES_SHARE = 0.7

Solve = Callable[[Vector, float, Sequence[Vector | None]], Sequence[Solution]]


@dataclass(frozen=True, eq=False)
class Task:
    """One of the machines that share the kernel: its samples and its box QP."""

    index: Vector
    qp: BoxQP


@dataclass
class Mixture:
    """Weights of kernels with their machines and certificate.

    Attributes
    ----------
    weights : η, of norm 1.
    solutions : the machines at these weights.
    certificate : of weights and machines together.
    status : how the search ended.
    rounds : how often all machines were solved.
    trace : seconds, steps, relative gap, lower bound and number of kernels with a weight, for each round.
    """

    weights: Vector
    solutions: Sequence[Solution]
    certificate: Certificate
    status: Status
    rounds: int
    trace: list[TracePoint] = field(default_factory=list)


class _Value:
    """The machines at some weights: an upper bound of J there, and a cut."""

    def __init__(self, weights: Vector, solutions: Sequence[Solution], energies: Vector, tasks: Sequence[Task]) -> None:
        self.weights = weights
        self.solutions = solutions
        self.betas = [solution.beta for solution in solutions]
        self.energies = energies
        self.primal = float(sum(s.certificate.primal for s in solutions))
        self.constant = sum(value_without_kernel(t.qp, b) for t, b in zip(tasks, self.betas, strict=True))
        # the dual value of the machines: less sensitive to errors of β than the primal
        self.level = self.constant - 0.5 * float(weights @ energies)
        self.own_gap = self.primal - self.level


class MixtureSolver:
    """The search over weights.

    ``solve(weights, tol, starts)`` solves the machines of the tasks; ``p`` is the norm of the weights. ``tol`` is the
    relative gap of weights and machines together at which the search ends, and the largest tol of the machines.
    """

    def __init__(
        self, grams: SeveralGrams, tasks: Sequence[Task], solve: Solve, p: float, tol: float, clock: Clock
    ) -> None:
        self.grams = grams
        self.tasks = tasks
        self.solve = solve
        self.p = p
        self.tol = tol
        self.machine_tol = tol
        # decision values have the size of the targets
        size = max((float(np.abs(task.qp.linear).max(initial=0.0)) for task in tasks), default=1.0)
        self.tightest = min(TIGHTEST * min(size, 1.0), tol)
        self.clock = clock
        self.values: list[_Value] = []
        self.best: _Value | None = None
        self.lower = -np.inf
        self.proof: list[tuple[float, _Value]] = []
        self.steps = np.zeros(len(tasks), dtype=np.int64)
        self.trace: list[TracePoint] = []
        self._machine_seconds = 0.0

    def fixed(self, weights: Vector) -> Mixture:
        """Solve the machines at given weights; the certificate is for the machines alone."""
        value = self.best = self._value(weights, self.tol, [None] * len(self.tasks))
        certificates = [s.certificate for s in value.solutions]
        self.lower = float(sum(c.dual for c in certificates))
        proof = mixture_certificate(certificates, self.lower, of="machines at given weights")
        self._report(value)
        return Mixture(weights, value.solutions, proof, _status(value.solutions), 1, self.trace)

    def learn(self, start: Vector, starts: Sequence[Vector | None], max_rounds: int) -> Mixture:
        """Find the best weights, from given weights and coefficients."""
        with one_blas_thread():
            status, rounds = self._search(start, list(starts), max_rounds)
            if status is Status.CONVERGED and self.p == 1:
                self._drop_negligible()
        assert self.best is not None
        return Mixture(self.best.weights, self.best.solutions, self.prove(), status, rounds, self.trace)

    def _search(self, weights: Vector, starts: list[Vector | None], max_rounds: int) -> tuple[Status, int]:
        kappa, predicted, since = KAPPA, np.inf, 0
        centre: _Value | None = None
        only_one = len(self.grams) == 1 or self.p == np.inf  # then the weights are known
        curvature = np.zeros((len(self.grams), len(self.grams)))
        for rounds in range(1, max_rounds + 1):
            begun = self.clock.seconds
            value = self._value(weights, self.machine_tol, starts)
            gap_before = self.upper - self.lower
            if value.primal < self.upper:
                self.best = value
            assert self.best is not None
            better = centre is None or value.level < centre.level
            if centre is not None and np.isfinite(predicted):
                gained = (centre.level - value.level) / predicted
                kappa *= FALL if gained > GOOD else (RISE if gained < POOR else 1.0)
                kappa = min(max(kappa, LEAST_KAPPA), LARGEST_KAPPA)
            centre = value if better or centre is None else centre
            starts = list(centre.betas)
            self._bound()
            self._report(value)
            size = max(abs(self.upper), abs(self.lower), np.finfo(np.float64).tiny)
            if self.upper - self.lower <= self.tol * size:
                return Status.CONVERGED, rounds
            # the time of a round without its machines, which check the clock themselves
            over = self.clock.over_in(self.clock.seconds - begun - self._machine_seconds)
            ended = _status(value.solutions)
            if over is not None or ended not in (Status.CONVERGED, Status.STALLED):
                return over or ended, rounds
            if only_one:
                return ended, rounds
            since = 0 if self.upper - self.lower < 0.99 * gap_before else since + 1
            if since >= PATIENCE:
                return Status.STALLED, rounds
            if self.best.own_gap > OWN_SHARE * self.tol * size and self.machine_tol > self.tightest:
                # the machines are not solved accurately enough to compare weights
                far = self.best.own_gap > 10.0 * OWN_SHARE * self.tol * size
                self._tighten(0.01 if far else 0.1)
                # the lower value of the centre may be due to the error of its machines
                weights, centre, predicted = centre.weights, None, np.inf
                continue
            if since and since % IMPATIENT == 0:
                self._tighten(0.1)
            if better:
                curvature = self._curvature(centre)
            energies, middle = np.maximum(centre.energies, 0.0), centre.weights
            W = curvature + np.diag(kappa * energies / (middle + 1e-3 * middle.max()))
            a, S = self._cuts(size)
            weights = lowest_weights(a, S, self.p, middle, W / size + 1e-9 * np.eye(len(middle))).weights
            predicted = max(centre.level - size * float((a - 0.5 * S @ weights).max()), 1e-12 * size)
        return Status.MAX_ITER, max_rounds

    def _tighten(self, factor: float) -> None:
        self.machine_tol = max(factor * self.machine_tol, self.tightest)

    @property
    def upper(self) -> float:
        """The lowest primal value so far."""
        return np.inf if self.best is None else self.best.primal

    def _value(self, weights: Vector, tol: float, starts: Sequence[Vector | None]) -> _Value:
        """Solve the machines at some weights and keep the cut."""
        begun = self.clock.seconds
        with self.clock.share_of_time(MACHINES_SHARE):
            solutions = self.solve(weights, tol, starts)
        self._machine_seconds = self.clock.seconds - begun
        self.steps += [s.steps for s in solutions]
        value = _Value(weights, solutions, self.energies([s.beta for s in solutions]), self.tasks)
        if not np.isfinite(value.primal + value.constant + value.energies.sum()):
            raise InvalidInputError(
                "The machines have values that are not finite numbers: kernel values are too large. Scale the features "
                "or use normalize='variance'."
            )
        self.values.append(value)
        return value

    def energies(self, betas: Sequence[Vector]) -> Vector:
        """S_m = Σ_t β_t'K_mβ_t in float64."""
        S = np.zeros(len(self.grams))
        for task, beta in zip(self.tasks, betas, strict=True):
            carries = np.flatnonzero(beta)
            if len(carries):
                S += [self.grams.energy(m, task.index[carries], beta[carries]) for m in range(len(S))]
        return S

    def _cuts(self, size: float) -> tuple[Vector, Matrix]:
        """All cuts in units of ``size``."""
        a = np.array([value.constant for value in self.values]) / size
        return a, np.maximum(np.array([value.energies for value in self.values]), 0.0) / size

    def _bound(self) -> None:
        """Improve the lower bound by the last cut alone and by the minimum of all cuts."""
        last, multipliers = self.values[-1], self._multipliers()
        a, S = self._cuts(1.0)
        for share in (np.eye(len(self.values))[-1], multipliers):
            bound = float(share @ a) - 0.5 * dual_norm(share @ S, self.p)
            if bound > self.lower:
                self.lower, self.proof = bound, [(s, v) for s, v in zip(share, self.values, strict=True) if s > 0]
        if len(self.values) > MOST_CUTS:
            kept = [value for value in self.values if value is not self.best and value is not last]
            least = min(kept, key=lambda value: multipliers[self.values.index(value)])
            self.values.remove(least)

    def _multipliers(self) -> Vector:
        """The multipliers of the cuts at the minimum of the largest cut."""
        n = len(self.grams)
        if len(self.values) == 1 or self.p == np.inf:
            return np.eye(len(self.values))[-1]
        size = max(abs(self.upper), np.finfo(np.float64).tiny)
        a, S = self._cuts(size)
        assert self.best is not None
        return lowest_weights(a, S, self.p, self.best.weights, 1e-9 * np.eye(n)).multipliers

    def _curvature(self, value: _Value) -> Matrix:
        """The second derivative of J while the same variables are free."""
        H = np.zeros((len(self.grams), len(self.grams)))
        for task, beta in zip(self.tasks, value.betas, strict=True):
            qp = task.qp
            room = 1e-8 * float(np.abs(beta).max(initial=0.0))
            free = np.flatnonzero((beta > qp.lower + room) & (beta < qp.upper - room) & ((qp.l1 == 0) | (beta != 0)))
            carries = np.flatnonzero(beta)
            if not 0 < len(free) <= MOST_FREE:
                continue
            rows, columns = task.index[free], task.index[carries]
            K = np.diag(qp.ridge[free])
            slopes = np.empty((len(free), len(self.grams)))
            for m, weight in enumerate(value.weights):
                slopes[:, m] = self.grams.product(m, rows, columns, beta[carries])
                if weight > 0:
                    K += weight * self.grams.block(m, rows, rows)
            K[np.arange(len(free)), np.arange(len(free))] += 1e-8 * np.trace(K) / len(free)
            try:
                factor = linalg.cho_factor(K, lower=True)
            except linalg.LinAlgError:
                continue
            solved = linalg.cho_solve(factor, slopes)
            if qp.n_groups:
                # project onto changes whose sum is 0
                ones = linalg.cho_solve(factor, np.ones(len(free)))
                solved -= np.outer(ones, solved.sum(axis=0)) / ones.sum()
            H += slopes.T @ solved
        # near η = 0 the free set changes at the smallest step: limit the curvature to S/η, that of an upper bound
        most = np.maximum(value.energies, 0.0) / (value.weights + NEAR_ZERO * value.weights.max())
        own = np.diagonal(H)
        shrink = np.sqrt(np.divide(most, own, out=np.ones(len(own)), where=own > most))
        return 0.5 * (H + H.T) * shrink * shrink[:, None]

    def _drop_negligible(self) -> None:
        """Set small weights to 0 if the model remains within tol: most of them are 0 at the optimum."""
        best = self.best
        assert best is not None
        worth = np.maximum(best.weights * best.energies, 0.0)
        order = np.argsort(worth, kind="stable")
        small = order[np.cumsum(worth[order]) <= NEGLIGIBLE * self.tol * abs(best.primal)]
        small = small[best.weights[small] > 0]
        if len(small) == 0 or len(small) == np.count_nonzero(best.weights) or self.clock.over() is not None:
            return
        weights = best.weights.copy()
        weights[small] = 0.0
        value = self._value(weights / ball_norm(weights, self.p), self.machine_tol, best.betas)
        size = max(abs(value.primal), abs(self.lower))
        if _status(value.solutions) is Status.CONVERGED and value.primal - self.lower <= self.tol * size:
            self.best = value
            self._report(value)

    def prove(self) -> Certificate:
        """The certificate, with the better lower bound of the model's β and the convex combination of all β."""
        best = self.best
        assert best is not None
        mixed = [np.sum([s * value.betas[t] for s, value in self.proof], axis=0) for t in range(len(self.tasks))]
        found = []
        for betas in (best.betas, mixed):
            inside = [np.clip(b, task.qp.lower, task.qp.upper) for task, b in zip(self.tasks, betas, strict=True)]
            same = all(np.array_equal(b, own) for b, own in zip(inside, best.betas, strict=True))
            energies = best.energies if same else self.energies(inside)
            constant = sum(value_without_kernel(task.qp, b) for task, b in zip(self.tasks, inside, strict=True))
            off = max((infeasibility(task.qp, b) for task, b in zip(self.tasks, inside, strict=True)), default=0.0)
            found.append((constant - 0.5 * dual_norm(energies, self.p), off))
        dual, off = max(found)
        return mixture_certificate([s.certificate for s in best.solutions], dual, off)

    def _report(self, value: _Value) -> None:
        gap = (self.upper - self.lower) / max(abs(self.upper), abs(self.lower), np.finfo(np.float64).tiny)
        active = int(np.count_nonzero(value.weights > 1e-3 * value.weights.max(initial=0.0)))
        point = TracePoint(self.clock.seconds, int(self.steps.sum()), gap, self.lower, active)
        self.trace.append(point)
        self.clock.report(point)


def _status(solutions: Sequence[Solution]) -> Status:
    """The status of the first machine that did not converge, else CONVERGED."""
    return next((s.status for s in solutions if s.status is not Status.CONVERGED), Status.CONVERGED)
