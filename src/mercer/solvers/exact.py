"""The exact solver: a certified optimum for any kernel and loss.

Small problems are solved whole, on their float64 matrix. Larger ones by decomposition on float32 kernel rows,
whose result is then judged in float64: F = K b is recomputed at every sample with weight and at every sample near a
kink of the loss. If the violation found there is above tol, the exact values replace the tracked ones and the run
goes on (refinement in mixed precision), at last in float64 throughout.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.gram.operator import Evaluations, GramOperator, product
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Vector, take_samples
from mercer.losses.base import BoxQP
from mercer.problems.certificate import certificate
from mercer.problems.dual import (
    DualProblem,
    diverges,
    dual_objective,
    has_open_box,
    slopes,
    thresholds,
    violation,
)
from mercer.solvers.base import Clock, Options, Solution, Status, TracePoint
from mercer.solvers.decomposition import Decomposition

# up to this many variables the whole matrix is the block
WHOLE_BELOW = 768
# below this tolerance rounding of float32 rows costs more rounds than it saves
SINGLE_FROM = 2e-6
# largest kernel value at which float32 rows keep their meaning
SINGLE_UP_TO = 1e30
REFINEMENTS = 4


class Data:
    """Samples and the kernel that compares them, prepared in each precision at most once.

    ``psd`` says whether the kernel's dual bounds anything. A part shares the samples of the whole.
    """

    def __init__(self, kernel: Kernel, samples: Any, n: int, psd: bool = True) -> None:
        self.kernel = kernel
        self.samples = samples
        self.n = n
        self.psd = psd and kernel.positive_semidefinite
        self.evaluations = Evaluations()
        self._index: Vector | None = None
        self._features: dict[np.dtype[Any], Features] = {}

    def features(self, dtype: Any) -> Features:
        """All samples, prepared for values of this dtype."""
        dtype = np.dtype(dtype)
        if dtype not in self._features:
            samples = self.samples if self._index is None else take_samples(self.samples, self._index)
            self._features[dtype] = self.kernel.prepare(samples, dtype)
        return self._features[dtype]

    def exact(self, index: Vector) -> Features:
        """Some samples in float64, without a float64 copy of all."""
        double = self._features.get(np.dtype(np.float64))
        if double is None and self.kernel.domain == "matrix":
            double = self.features(np.float64)
        if double is not None:
            return double.take(index)
        index = index if self._index is None else self._index[index]
        return self.kernel.prepare(take_samples(self.samples, index), np.float64)

    def take(self, index: Vector) -> Data:
        """A part of the samples, with what is prepared of them."""
        part = Data(self.kernel, self.samples, len(index), self.psd)
        part.evaluations = Evaluations()
        part._index = index if self._index is None else self._index[index]
        if self.kernel.domain == "matrix":
            self.features(np.float64)
        part._features = {dtype: features.take(index) for dtype, features in self._features.items()}
        return part


def solve(data: Data, problem: DualProblem, options: Options, clock: Clock, start: Vector | None = None) -> Solution:
    """The optimum of the problem over the data, from a feasible start if given."""
    beta = problem.start() if start is None else start.copy()
    before = data.evaluations.count
    if problem.qp.n_vars <= WHOLE_BELOW:
        solution = _solve_whole(data, problem, options, clock, beta)
    else:
        solution = _solve_parts(data, problem, options, clock, beta)
    solution.evaluations = data.evaluations.count - before
    return solution


def _solve_whole(data: Data, problem: DualProblem, options: Options, clock: Clock, beta: Vector) -> Solution:
    """SMO on the whole matrix in float64."""
    from mercer._numerics.smo import solve_block

    qp = problem.qp
    n = qp.n_vars
    features = data.features(np.float64)
    K = GramOperator(data.kernel, features, options.n_threads, data.evaluations).dense()
    check_finite(K)
    null = qp.n_groups == 0
    order = np.argsort(qp.group, kind="stable")
    sample = np.arange(n) if qp.sample is None else qp.sample
    if null or qp.n_groups == 2 or qp.sample is not None:
        block = np.zeros((n + null, n + null))
        block[:n, :n] = K[np.ix_(sample[order], sample[order])]
    else:
        order, block = np.arange(n), K

    def column(values: Vector, extra: float) -> Vector:
        return np.append(values[order], extra) if null else values[order]

    b = column(beta, 0.0)
    lower, upper = column(qp.lower, -np.inf), column(qp.upper, np.inf)
    l1, ridge = column(qp.l1, 0.0), column(qp.ridge, 0.0)
    linear = column(qp.linear, 0.0)
    first_group = len(b) if qp.n_groups < 2 else int(np.count_nonzero(qp.group == 0))
    steps, trace = 0, []
    status: Status | None = None
    best, idle = np.inf, 0
    chunk = 100 * n + 1000
    while status is None:
        score = linear - block @ b - ridge * b
        limit = chunk if options.max_iter < 0 else min(chunk, options.max_iter - steps)
        taken, seen, unbounded = solve_block(
            block, b, score, lower, upper, l1, ridge, first_group, options.tol, max(limit, 0)
        )
        steps += taken
        beta[order] = b[:n]
        F = K @ qp.at_samples(beta, data.n)
        found = violation(qp, beta, F)
        trace.append(TracePoint(clock.seconds, steps, found, dual_objective(qp, beta, F), n))
        clock.report(trace[-1])
        idle = 0 if found < 0.99 * best else idle + 1
        best = min(best, found)
        if found <= options.tol:
            status = Status.CONVERGED
        elif unbounded or diverges(qp, beta, F, float(np.abs(np.diag(K)).max())):
            status = Status.UNBOUNDED
        elif 0 <= options.max_iter <= steps:
            status = Status.MAX_ITER
        elif not np.isfinite(found) or idle > 3 or taken == 0:
            status = Status.STALLED
        else:
            status = clock.over()
            if status is None:
                _newton(block, b, linear, ridge, lower, upper, l1, first_group)
    b_groups = thresholds(qp, beta, F)
    proof = certificate(
        qp, problem.loss, problem.y, problem.weight, beta, F, b_groups, data.psd
    )
    return Solution(beta, F, b_groups, status, steps, clock.seconds, proof, trace)


def _newton(
    K: Vector, b: Vector, linear: Vector, ridge: Vector, lower: Vector, upper: Vector, l1: Vector, first_group: int
) -> None:
    """One step to the optimum of the free variables, as far as their bounds allow. Edits b in place.

    SMO needs many steps where the matrix of the free variables is ill-conditioned; solving their equations

        K_FF d + sum constraints = score_F,     d summing to zero in each group

    takes one. A step that does not raise the objective is not taken.
    """
    free = np.flatnonzero((b > lower) & (b < upper) & ((b != 0) | (l1 == 0)))
    if len(free) < 2:
        return
    groups = [free < first_group, free >= first_group]
    groups = [g for g in groups if g.any()]
    m = len(free)
    score = linear - K @ b - ridge * b - l1 * np.sign(b)
    M = np.zeros((m + len(groups), m + len(groups)))
    M[:m, :m] = K[np.ix_(free, free)]
    # as much as rounding has already added
    M[np.arange(m), np.arange(m)] += ridge[free] + 1e-14 * np.trace(M[:m, :m]) / m
    for g, member in enumerate(groups):
        M[:m, m + g] = M[m + g, :m] = member
    try:
        step = np.linalg.solve(M, np.append(score[free], np.zeros(len(groups))))[:m]
    except np.linalg.LinAlgError:
        return
    if not np.all(np.isfinite(step)) or not step @ score[free] > 0:
        return
    low = np.where(b[free] < 0, lower[free], np.where(l1[free] > 0, 0.0, lower[free]))
    high = np.where(b[free] > 0, upper[free], np.where(l1[free] > 0, 0.0, upper[free]))
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step > 0, (high - b[free]) / step, np.where(step < 0, (low - b[free]) / step, np.inf))
    length = min(1.0, float(room.min()))
    curvature = step @ (K[np.ix_(free, free)] @ step) + ridge[free] @ step**2
    gain = length * (step @ score[free]) - 0.5 * length**2 * curvature
    if gain > 0:
        b[free] = np.clip(b[free] + length * step, low, high)


def _solve_parts(data: Data, problem: DualProblem, options: Options, clock: Clock, beta: Vector) -> Solution:
    """Decomposition, judged and if need be refined in float64."""
    qp = problem.qp
    dtype = np.dtype(_precision(data, qp, options))
    F = _start_product(data, qp, beta, dtype, options)
    run = _decomposition(data, qp, beta, F, options, clock, dtype)
    trace: list[TracePoint] = []
    previous = np.inf
    for attempt in range(REFINEMENTS + 1):
        status = run.run(options.tol * (0.9 if dtype == np.float32 else 1.0))
        trace += run.trace
        run.trace = []
        rows, exact = _exact_rows(data, qp, run.beta, run.F, options)
        run.F[rows] = exact
        found = _violation_at(qp, run.beta, run.F, rows)
        if found <= options.tol or status is not Status.CONVERGED or attempt == REFINEMENTS:
            break
        if dtype == np.float32 and (found > 0.5 * previous or attempt == REFINEMENTS - 1):
            # rounding of the float32 rows, not of F, stands in the way
            dtype = np.dtype(np.float64)
            F = _start_product(data, qp, run.beta, dtype, options)
            run = _decomposition(data, qp, run.beta, F, options, clock, dtype, run.steps)
        else:
            run.restart()
        previous = found
    if status is Status.CONVERGED and found > options.tol:
        status = Status.STALLED
    index = None if len(rows) == data.n else rows
    part = _thresholds_at(qp, run.beta, run.F, index)
    proof = certificate(
        qp, problem.loss, problem.y, problem.weight, run.beta, run.F, part, data.psd, rows=index
    )
    return Solution(run.beta, run.F, part, status, run.steps, clock.seconds, proof, trace)


def _decomposition(
    data: Data, qp: BoxQP, beta: Vector, F: Vector, options: Options, clock: Clock, dtype: Any, steps: int = 0
) -> Decomposition:
    gram = GramOperator(data.kernel, data.features(dtype), options.n_threads, data.evaluations)
    return Decomposition(gram, qp, beta, F, options, clock, steps)


def _precision(data: Data, qp: BoxQP, options: Options) -> str:
    if options.precision != "auto":
        return options.precision
    if options.tol < SINGLE_FROM or has_open_box(qp):
        return "float64"
    diagonal = data.kernel.diagonal(data.features(np.float32))
    check_finite(diagonal)
    return "float32" if np.abs(diagonal).max() < SINGLE_UP_TO else "float64"


def _start_product(data: Data, qp: BoxQP, beta: Vector, dtype: Any, options: Options) -> Vector:
    """F = K beta at all samples."""
    weights = qp.at_samples(beta, data.n)
    columns = np.flatnonzero(weights)
    if len(columns) == 0:
        return np.zeros(data.n)
    features = data.features(dtype)
    return product(
        data.kernel, features, features.take(columns), weights[columns], options.n_threads, data.evaluations
    )


def _exact_rows(data: Data, qp: BoxQP, beta: Vector, F: Vector, options: Options) -> tuple[Vector, Vector]:
    """The samples whose loss or violation may not be zero, and F there in float64.

    Samples with weight, and those within a margin of a kink of the loss. The margin is four times the largest
    error of the tracked F seen at thousands of samples, so that the others are on the flat part for certain.
    """
    weights = qp.at_samples(beta, data.n)
    columns = np.flatnonzero(weights)
    b_columns = data.exact(columns)
    margin = max(10 * options.tol, 1e-4)
    gap = _slack(qp, beta, F)
    done = np.zeros(data.n, np.bool_)
    exact = np.zeros(data.n)
    for _ in range(3):
        todo = np.flatnonzero(~done & (gap < margin))
        exact[todo] = product(
            data.kernel, data.exact(todo), b_columns, weights[columns], options.n_threads, data.evaluations
        )
        done[todo] = True
        error = float(np.abs(exact[done] - F[done]).max(initial=0.0))
        if not 4 * error > margin:
            break
        margin = 4 * error if np.isfinite(error) else np.inf
    rows = np.flatnonzero(done)
    return rows, exact[rows]


def _slack(qp: BoxQP, beta: Vector, F: Vector) -> Vector:
    """For each sample without weight, how far its score is from making it move; -inf for samples with weight."""
    b = thresholds(qp, beta, F)
    level = b[qp.group] if len(b) else np.zeros(qp.n_vars)
    s = slopes(qp, beta, F)
    slack = np.minimum(
        np.where(beta < qp.upper, level - (s - qp.l1), np.inf), np.where(beta > qp.lower, s + qp.l1 - level, np.inf)
    )
    slack[beta != 0] = -np.inf
    if qp.sample is None:
        return slack
    out = np.full(len(F), np.inf)
    np.minimum.at(out, qp.sample, slack)
    return out


def _restrict(qp: BoxQP, beta: Vector, F: Vector, rows: Vector | None) -> tuple[BoxQP, Vector, Vector]:
    """The program at some samples."""
    if rows is None:
        return qp, beta, F
    if qp.sample is None:
        return qp.take(rows, None), beta[rows], F[rows]
    position = np.full(len(F), -1, np.intp)
    position[rows] = np.arange(len(rows))
    variables = np.flatnonzero(position[qp.sample] >= 0)
    return qp.take(variables, position[qp.sample[variables]]), beta[variables], F[rows]


def _violation_at(qp: BoxQP, beta: Vector, F: Vector, rows: Vector | None) -> float:
    return violation(*_restrict(qp, beta, F, rows))


def _thresholds_at(qp: BoxQP, beta: Vector, F: Vector, rows: Vector | None) -> Vector:
    return thresholds(*_restrict(qp, beta, F, rows))


def check_finite(values: Vector) -> None:
    """scikit-learn's words for kernel values that are not numbers."""
    if not np.all(np.isfinite(values)):
        raise ValueError(
            "The dual coefficients or intercepts are not finite. The input data may contain large values and need to "
            "be preprocessed: the kernel gives values that are not finite numbers. Scale the features, for example "
            "with StandardScaler."
        )
