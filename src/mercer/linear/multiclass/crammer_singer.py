"""The multi-class machine of Crammer & Singer (JMLR 2, 2001): one weight vector per class, in one joint problem.

    min over W, b   ½ Σ_k |w_k|² + Σ Cᵢ max over k of (1 − [k = yᵢ] + f_k(xᵢ) − f_{yᵢ}(xᵢ)),     f_k(x) = w_k·x + b_k

Its dual has a variable per sample and class, with w_k = Σᵢ αᵢₖ xᵢ:

    max  Σᵢ αᵢ,yᵢ − ½ Σ_k |w_k|²     s.t.  αᵢₖ ≤ Cᵢ [k = yᵢ],  Σ_k αᵢₖ = 0  (Σᵢ αᵢₖ = 0 if the b_k are free)

A step moves all variables of one sample to their joint optimum, a projection onto a simplex (Keerthi, Sundararajan,
Chang, Hsieh & Lin, KDD 14, 2008). Samples classified with a margin to spare are left out until the next check of all
samples (shrinking). Once few variables meet or leave a bound, a Newton step on the free ones follows, by conjugate
gradients. A run ends when the duality gap is within tol. Free intercepts are found by the method of multipliers, as in
`coordinate`. Hard margins are solved by `largest_joint_margin`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._compiled.blas import one_blas_thread
from mercer.exceptions import InvalidInputError
from mercer.linear import interior
from mercer.linear.coordinate import MAX_PASSES, PATIENCE, ROUNDING, TINY, Storage
from mercer.linear.hybrid import MOST_STEPS
from mercer.linear.linear_problem import LinearProblem, Rows
from mercer.linear.linear_solution import LinearOptions, LinearStage
from mercer.losses import HardMargin
from mercer.losses.base import Index, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import NOT_FEASIBLE, Certificate, Status, TracePoint, finished
from mercer.problems.solution import ROUNDING as NEGATIVE_GAP

Matrix = NDArray[np.float64]
Labels = NDArray[np.intp]

# as in `hybrid`; with several free classes per sample, Newton steps start later and are solved more accurately
SETTLED, FEWEST_STEPS, FACE_GAP = 0.05, 8, 0.1

# the last check and the certificate take as long as this many passes over all samples
ENDING = 2.0
# a hard margin may be violated by this
HARD_ROUNDING = 1e-9
# sums of α above this, relative to its largest entry, are not yet 0
UNBALANCED = 1e-9
# an α that violates its bounds or sums by more than this, relative to its largest entry, certifies nothing
FEASIBILITY = 1e-6
# hard margin: pairs in the first model, and added after each: at least FEWEST_PAIRS, and this many per column
FEWEST_PAIRS, PAIRS_PER_COLUMN = 200, 2
MAX_ROUNDS = 100


@dataclass(frozen=True, eq=False)
class JointProblem:
    """Rows with their classes 0, …, K − 1 and weights Cᵢ, and whether there are free (unpenalised) intercepts."""

    rows: Rows
    labels: Labels
    n_classes: int
    weight: Vector
    intercept: bool = False


@dataclass
class JointSolution:
    """W with a row per class over the features (including a constant one), the dual α, and their certificate.

    ``intercepts`` are the free b_k; 0 if there are none.
    """

    W: Matrix
    intercepts: Vector
    alpha: Matrix
    status: Status
    n_iter: int
    seconds: float
    certificate: Certificate
    trace: list[TracePoint] = field(default_factory=list)

    @property
    def stages(self) -> tuple[LinearStage, ...]:
        """The only solver of this problem."""
        return (LinearStage.of("crammer_singer", self),)


def joint_certificate(problem: JointProblem, W: Matrix, alpha: Matrix, intercepts: Vector | float = 0.0) -> Certificate:
    """Bound the distance of W from the optimum by the duality gap to α, in float64 from the data alone."""
    n = len(problem.labels)
    every = np.arange(n)
    F = np.column_stack([problem.rows.dot(w) for w in W]) + intercepts
    V = np.array([problem.rows.tdot(np.ascontiguousarray(a)) for a in alpha.T])
    margin_terms = F + 1.0
    margin_terms[every, problem.labels] -= 1.0
    own = F[every, problem.labels]
    losses = np.where(problem.weight > 0, margin_terms.max(axis=1) - own, 0.0)
    # with an infinite weight a loss of rounding size counts as 0, and a larger one makes the primal infinite
    paid = losses > HARD_ROUNDING * np.isinf(problem.weight)
    primal = float(0.5 * np.sum(W * W) + problem.weight[paid] @ losses[paid])
    dual = float(alpha[every, problem.labels].sum() - 0.5 * np.sum(V * V))
    bound = np.zeros_like(alpha)
    bound[every, problem.labels] = problem.weight
    infeasible = float(max(np.max(alpha - bound, initial=0.0), np.abs(alpha.sum(axis=1)).max(initial=0.0)))
    if problem.intercept:
        infeasible = max(infeasible, float(np.abs(alpha.sum(axis=0)).max(initial=0.0)))
    gap = primal - dual if np.isfinite(primal) and np.isfinite(dual) else np.inf
    terms = float(np.abs(alpha).sum() + np.sum(np.abs(V) * np.abs(W))) + abs(primal)
    if -NEGATIVE_GAP * terms <= gap < 0:
        gap = 0.0
    valid = gap >= 0 and infeasible <= FEASIBILITY * float(np.abs(alpha).max(initial=0.0))
    if np.isinf(problem.weight).any():
        # the violation of a constraint, or the distance from equality of a constraint with α ≠ 0
        share = np.abs(alpha) / max(float(np.abs(alpha).max(initial=0.0)), np.finfo(np.float64).tiny)
        share[every, problem.labels] = 0.0
        violation = np.maximum((share * np.abs(own[:, None] - margin_terms)).max(axis=1), losses)
    else:
        # as for the other linear machines: the sample's part of the gap divided by its weight
        part = problem.weight * losses - alpha[every, problem.labels] + (alpha * F).sum(axis=1)
        violation = np.divide(part, problem.weight, out=np.zeros(n), where=problem.weight > 0)
    largest, reason = float(np.max(violation, initial=0.0)), "" if valid else NOT_FEASIBLE
    return finished(primal, dual, gap, largest, infeasible, "Crammer-Singer loss", reason)


def solve_jointly(
    problem: JointProblem, options: LinearOptions, clock: Clock, start: JointSolution | None = None
) -> JointSolution:
    """Minimise, from the α of ``start`` if given. Iterations are passes; for a hard margin interior-point steps."""
    if problem.n_classes < 2:
        raise InvalidInputError(f"{problem.n_classes} class was found: at least two are needed.")
    used = problem.weight != 0
    if used.any() and np.isposinf(problem.weight[used]).all():
        with one_blas_thread():
            return largest_joint_margin(problem, options, clock)
    if not (np.isfinite(problem.weight) & (problem.weight >= 0)).all():
        found = problem.weight[~(np.isfinite(problem.weight) & (problem.weight >= 0))][0]
        raise InvalidInputError(
            f"A weight C * sample_weight of {found:g} was found: the Crammer-Singer loss needs finite weights of at "
            "least 0. Correct C or sample_weight."
        )
    with one_blas_thread():
        run = _Run(problem, options, clock, start)
        status = run.run()
    assert run.best is not None  # every return of run certifies a model
    W, intercepts, alpha, proof = run.best
    return JointSolution(W, intercepts, alpha, status, run.passes, clock.seconds, proof, run.trace)


def balanced_classes(alpha: Matrix, bound: Matrix) -> Matrix:
    """α with Σᵢ αᵢₖ = 0 for each class: move α from classes with a positive sum to those with a negative one."""
    total = alpha.sum(axis=0)
    spare = np.maximum(total, 0.0)
    if not spare.any():
        return alpha
    # each α may rise to 0, or for the label double: this is enough, since the sum of the class is negative
    room = np.where(total < 0, np.minimum(bound - alpha, np.abs(alpha)), 0.0)
    size = room.sum(axis=0)
    more = room * np.divide(-total, size, out=np.zeros_like(size), where=size > 0)
    return np.asarray(alpha + more - np.outer(more.sum(axis=1), spare / spare.sum()))


class _Run:
    """The state of one run. With free intercepts the last row of W is cΣα + b/c for the constant feature c."""

    def __init__(
        self, problem: JointProblem, options: LinearOptions, clock: Clock, start: JointSolution | None
    ) -> None:
        from mercer.linear import _coordinate_loops
        from mercer.linear.multiclass import _crammer_singer_loops

        self.loops, self.shuffle = _crammer_singer_loops, _coordinate_loops.shuffle
        self.problem, self.options, self.clock = problem, options, clock
        self.storage = Storage(problem.rows)
        n, K = problem.rows.n, problem.n_classes
        self.norms = np.empty(n)
        _coordinate_loops.row_norms(self.storage.indptr, self.storage.values, self.norms)
        self.norms[self.norms < TINY] = 0.0
        # the constant feature belongs to the problem, or to the method of multipliers
        self.bias = float(np.sqrt(self.norms.mean() or 1.0)) if problem.intercept else problem.rows.bias
        self.norms += self.bias**2
        self.multipliers, self.stretch = np.zeros(K), 1.0
        self.W = np.zeros((self.storage.stored + 1, K))
        self.alpha = np.zeros((n, K))
        self.labels = np.ascontiguousarray(problem.labels, dtype=np.intp)
        self.weight = np.ascontiguousarray(problem.weight, dtype=np.float64)
        self.start_given = start is not None
        if start is not None:
            for i in range(n):
                self.loops.project_sample(start.alpha[i], self.labels[i], self.weight[i], self.alpha[i])
            if problem.intercept:
                self.multipliers = start.intercepts / self.bias
            self._recompute()
        self.order = np.arange(n, dtype=np.uint32)
        self.active, self.level = n, np.inf
        self.random = np.random.default_rng(options.seed)
        self.passes, self.work, self.value = 0, 0.0, 0.0
        self.steps, self.settled = FEWEST_STEPS, False
        self.trace: list[TracePoint] = []
        self.best: tuple[Matrix, Vector, Matrix, Certificate] | None = None

    def run(self) -> Status:
        """Descend until the gap is within tol or the run stalls."""
        out, tol = np.zeros(5), self.options.tol
        limit = MAX_PASSES if self.options.max_iter < 0 else self.options.max_iter
        check_at, last, lowest, since_gain = np.inf, np.inf, np.inf, 0
        first_pass = last_pass = 0.0  # seconds
        if self.start_given and self._check():
            return Status.CONVERGED
        while True:
            ended = self.clock.over_in(last_pass + ENDING * first_pass)
            if ended is None and self.passes >= limit:
                ended = Status.MAX_ITER
            if ended is not None:
                return Status.CONVERGED if self._check(publish=True) else ended
            begun = self.clock.seconds
            self._pass(out)
            last_pass = self.clock.seconds - begun
            first_pass = first_pass or last_pass
            self.level = out[0] if out[0] > 0 else np.inf
            # if no α moves although their sums are not 0, move the intercepts by longer steps
            self.stretch = 2.0 * self.stretch if out[2] <= 0 else 1.0
            unbalanced = self._shift(self.stretch)
            self.work += out[4]
            self.passes += 1
            estimate, decrease = float(out[1]), float(out[2])
            self.value += decrease
            scale = abs(self.value) + estimate
            self._report(estimate / scale if scale > 0 else 0.0)
            lowest, progress = min(lowest, estimate), decrease > ROUNDING * abs(self.value) or estimate < lowest
            since_gain = 0 if progress or unbalanced else since_gain + 1
            ahead = estimate * min(1.0, estimate / last) if 0 < last < np.inf else estimate
            last = estimate
            if (ahead <= tol * scale and estimate <= check_at) or since_gain >= PATIENCE:
                before = self.active
                if self._check(publish=since_gain >= PATIENCE):
                    return Status.CONVERGED
                if since_gain >= PATIENCE and self.active <= before:
                    return Status.STALLED
                check_at, last = (np.inf if self.active > before else 0.5 * estimate), np.inf
            elif out[3] <= SETTLED * self.active and self.passes >= 4:
                self._face()

    def _pass(self, out: Vector) -> None:
        """One pass over the active samples in random order. Fills ``out`` with the statistics of the compiled loop."""
        order = self.order[: self.active]
        self.shuffle(order, int(self.random.integers(1, 1 << 62)))
        self.active = self.loops.descend_samples(
            *self._data, self.W, self.alpha, self.norms, self.labels, self.weight, order, self.level, out
        )

    @property
    def _data(self) -> tuple[Any, ...]:
        """The first arguments of the compiled loops."""
        return (*self.storage.arrays, self.bias)

    def _recompute(self) -> None:
        """Recompute W = X'α from α."""
        self.W[: self.problem.rows.d] = self._weights_of(self.alpha).T
        if self.problem.intercept:
            self.W[-1] = self.multipliers + self.bias * self.alpha.sum(axis=0)

    def _weights_of(self, alpha: Matrix) -> Matrix:
        """The weights of each class, a row each."""
        rows, threads = self.problem.rows, self.options.n_threads
        return np.array([rows.tdot(np.ascontiguousarray(column), threads) for column in alpha.T])

    def _shift(self, stretch: float = 1.0) -> bool:
        """Move the free intercepts by the multiplier step c²Σα; return whether the sums are far from 0."""
        if not self.problem.intercept:
            return False
        excess = self.W[-1] - self.multipliers
        self.multipliers = self.multipliers + stretch * excess
        self.W[-1] = self.multipliers + excess
        largest = float(np.abs(self.alpha).max(initial=0.0))
        return bool(np.abs(excess).max() > UNBALANCED * self.bias * largest and np.isfinite(self.multipliers).all())

    def _check(self, publish: bool = False) -> bool:
        """Compute the gap over all samples and reset the active ones; return whether the gap is within tol.

        The model is certified if its gap is, or if ``publish``.
        """
        out = np.zeros(3)
        self.active = self.loops.check_samples(
            *self._data, self.W, self.alpha, self.labels, self.weight, self.level, self.order, out
        )
        self.level = np.inf
        penalised = self.W[: self.problem.rows.d]
        half = 0.5 * float(np.sum(penalised * penalised))
        self.value, primal = float(out[2]) - half, float(out[1]) + half
        close = abs(primal - self.value) <= self.options.tol * max(abs(primal), abs(self.value))
        if not (close or publish):
            return False
        alpha, intercepts = self.alpha, np.zeros(self.problem.n_classes)
        if self.problem.intercept:
            alpha, intercepts = balanced_classes(alpha, self._bound()), self.bias * self.multipliers
        self._recompute()
        W = self._weights_of(alpha)
        proof = joint_certificate(self.problem, W, alpha, intercepts)
        if self.best is None or proof.gap <= self.best[3].gap:
            self.best = W, intercepts, alpha.copy(), proof
        return proof.valid and proof.relative_gap <= self.options.tol

    def _bound(self) -> Matrix:
        """The upper bounds of α."""
        bound = np.zeros_like(self.alpha)
        bound[np.arange(len(bound)), self.labels] = self.weight
        return bound

    def _face(self) -> None:
        """Take a Newton step on the free variables, if the passes since the last one have cost enough."""
        free = np.flatnonzero(((self.alpha < self._bound()).sum(axis=1) > 1) & (self.norms > 0))
        indptr = self.storage.indptr
        entries = float((indptr[free + 1] - indptr[free]).sum())
        if len(free) == 0 or self.work < (1.0 if self.settled else 2.0 * self.steps) * entries:
            return
        part, out = Storage(self.problem.rows.take(free)), np.zeros(4)
        alpha = self.alpha[free]
        arguments = alpha, self.norms[free], self.labels[free], self.weight[free]
        goal = FACE_GAP * self.options.tol * abs(self.value)
        self.loops.face_step_samples(*part.arrays, self.bias, self.W, *arguments, goal, self.steps, out)
        self.alpha[free] = alpha
        self.value += out[2]
        self._shift()
        self.work, self.level = 0.0, np.inf
        self.settled = out[1] == 1.0
        self.steps = min(2 * self.steps, MOST_STEPS) if self.settled else max(self.steps // 2, FEWEST_STEPS)

    def _report(self, gap: float) -> None:
        """Append a point to the trace and report it."""
        point = TracePoint(self.clock.seconds, self.passes, gap, self.value, self.active)
        self.trace.append(point)
        self.clock.report(point)


# ---- hard margin ---------------------------------------------------------------------------------------------------


def largest_joint_margin(problem: JointProblem, options: LinearOptions, clock: Clock) -> JointSolution:
    """The hard margin: all classes separated, each by its own linear function.

        min over W   ½ Σ_k |w_k|²     s.t.  f_{yᵢ}(xᵢ) − f_k(xᵢ) ≥ 1  for all i and all k ≠ yᵢ

    Each pair of a sample and another class is one row, with xᵢ in the columns of class yᵢ and −xᵢ in those of class k.
    This is a hard margin of a single class through the origin (Kesler's construction). The first model uses a random
    part of the pairs; the pairs that a model violates most are added until there are none. If some of the pairs are not
    separable, all are not: the status is UNBOUNDED with an α that proves it, or UNDECIDED.
    """
    if problem.intercept:
        raise InvalidInputError(
            "The hard margin of multi_class='crammer_singer' does not support unpenalised intercepts: use "
            "penalize_intercept=True with a large intercept_scaling, fit_intercept=False, a finite C, or "
            "multi_class='ovr'."
        )
    rows, K = problem.rows, problem.n_classes
    X = sp.csr_array(rows.plain())
    samples = np.flatnonzero(problem.weight > 0)
    others = np.arange(K) != problem.labels[samples, None]
    at, of_class = np.nonzero(others)
    every = samples[at], of_class.astype(np.intp)
    size = max(FEWEST_PAIRS, PAIRS_PER_COLUMN * K * rows.d)
    chosen = np.zeros(len(at), dtype=bool)
    chosen[np.random.default_rng(options.seed).permutation(len(at))[:size]] = True
    n_iter, trace = 0, list[TracePoint]()
    best: JointSolution | None = None
    for _ in range(MAX_ROUNDS):
        pairs = np.flatnonzero(chosen)
        of, against = every[0][pairs], every[1][pairs]
        part = _pairs(X, problem.labels, of, against, K)
        inner = LinearProblem(Rows.of(part), HardMargin(), np.ones(len(pairs)), np.full(len(pairs), np.inf))
        left = -1 if options.max_iter < 0 else max(0, options.max_iter - n_iter)
        found = interior.solve(inner, replace(options, max_iter=left), clock)
        n_iter, trace = n_iter + found.n_iter, [*trace, *found.trace]
        alpha = np.zeros((rows.n, K))
        np.add.at(alpha, (of, problem.labels[of]), found.beta)
        np.subtract.at(alpha, (of, against), found.beta)
        W = found.w.reshape(K, rows.d)
        scores = np.column_stack([rows.dot(np.ascontiguousarray(w), options.n_threads) for w in W])
        margins = scores[every[0], problem.labels[every[0]]] - scores[every]
        least = float(margins.min(initial=np.inf))
        if found.separation is None and 0 < least < np.inf:
            W = W / least
        proof = joint_certificate(problem, W, alpha)
        done = proof.valid and proof.relative_gap <= options.tol
        solution = JointSolution(W, np.zeros(K), alpha, found.status, n_iter, clock.seconds, proof, trace)
        if found.separation is not None:
            return solution
        if best is None or done or proof.relative_gap <= best.certificate.relative_gap:
            best = solution
        violated = np.flatnonzero((margins < 1.0) & ~chosen)
        if done or len(violated) == 0 or found.status is not Status.CONVERGED:
            break
        chosen[violated[np.argsort(margins[violated], kind="stable")[:size]]] = True
    assert best is not None
    # the part was solved, but its model violates other pairs
    otherwise = Status.STALLED if found.status is Status.CONVERGED else found.status
    status = Status.CONVERGED if done else otherwise
    return replace(best, status=status, n_iter=n_iter, seconds=clock.seconds, trace=trace)


def _pairs(X: Any, labels: Index, of: Index, against: Index, n_classes: int) -> Any:
    """A row for each pair: the sample in the columns of its class, its negative in those of the other class."""
    part = X[of].tocoo()
    d = X.shape[1]
    own, other = labels[of][part.row] * d + part.col, against[part.row] * d + part.col
    data = np.concatenate([part.data, -part.data]).astype(np.float64)
    places = np.concatenate([part.row, part.row]), np.concatenate([own, other])
    return sp.csr_array((data, places), shape=(len(of), n_classes * d))
