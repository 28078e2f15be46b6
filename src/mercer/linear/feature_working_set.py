"""A working set over features, for l1 penalties on many columns.

At the optimum of an l1 penalty a feature has a weight only if |X'β| = l1, which few features reach. So the problem is
solved on a few features, X'β is computed for all, and features with |X'β| > l1 are added, until the certificate of the
whole problem is within tol. The working set may double in each round, so there are few rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mercer.linear.linear_problem import LinearProblem, linear_certificate
from mercer.linear.linear_solution import LinearOptions, LinearSolution
from mercer.losses.base import Index, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import WITHOUT_MODEL, Status, TracePoint

Solve = Callable[[LinearProblem, LinearOptions, Clock, LinearSolution | None], LinearSolution]

# features of the first round; with a start, the features with a weight or with |X'β| above this share of l1
FIRST, BEYOND = 100, 0.95
# the relative gap of a round while features are missing
ROUGH_TOL = 1e-2
# later rounds are solved to this share of tol
SHARE = 0.5


def solve(
    problem: LinearProblem,
    options: LinearOptions,
    clock: Clock,
    solve_part: Solve,
    start: LinearSolution | None = None,
) -> LinearSolution:
    """Solve growing sets of features with ``solve_part`` until the model is optimal over all features."""
    rows, l1 = problem.rows, problem.penalty.l1
    v = np.abs(rows.tdot(beta_without_weights(problem) if start is None else start.beta, options.n_threads))
    chosen = np.zeros(rows.d, dtype=bool)
    if rows.bias:
        chosen[-1] = True
    if start is None:
        _admit(chosen, v, FIRST)
    else:
        chosen |= (start.w != 0) | (v > BEYOND * l1)
    tol = max(ROUGH_TOL if start is None else 0.0, SHARE * options.tol)
    n_iter, trace = 0, list[TracePoint]()
    best: LinearSolution | None = None
    while True:
        features = np.flatnonzero(chosen)
        whole = len(features) == rows.d
        part = problem if whole else replace(problem, rows=rows.columns(features))
        left = -1 if options.max_iter < 0 else max(0, options.max_iter - n_iter)
        near = None if start is None else replace(start, w=start.w[features])
        found = solve_part(part, replace(options, tol=options.tol if whole else tol, max_iter=left), clock, near)
        n_iter += found.n_iter
        trace += found.trace
        solution = replace(_embed(problem, options, features, found), n_iter=n_iter, trace=trace)
        if best is None or solution.certificate.relative_gap <= best.certificate.relative_gap:
            best = solution
        if start is not None and solution.certificate.relative_gap < start.certificate.relative_gap:
            start = solution
        if whole or best.status is Status.CONVERGED or found.status not in (Status.CONVERGED, *WITHOUT_MODEL):
            break
        v = np.abs(rows.tdot(found.beta, options.n_threads))
        missing = int((v[~chosen] > l1).sum())
        if missing == 0 or found.status in WITHOUT_MODEL:
            # without a model: add features; else solve the same features more accurately
            missing = len(features) if found.status in WITHOUT_MODEL else 0
            if tol <= 1e-3 * SHARE * options.tol:
                missing = max(missing, 1)
            tol = SHARE * options.tol if tol > SHARE * options.tol else 1e-1 * tol
        _admit(chosen, v, min(missing, len(features)))
    return best if not whole else replace(solution, n_iter=n_iter)


def beta_without_weights(problem: LinearProblem) -> Vector:
    """The optimal β for w = 0 and the best constant model."""
    qp = problem.qp
    zero = np.zeros(problem.n)
    b = problem.loss.best_intercept(problem.y, zero, problem.weight) if problem.intercept else 0.0
    t = qp.linear - b
    slope = np.sign(t) * np.maximum(0.0, np.abs(t) - qp.l1)
    end = np.where(slope > 0, qp.upper, qp.lower)
    soft = np.divide(slope, qp.ridge, out=slope.copy(), where=qp.ridge > 0)
    beta = np.where(slope == 0, 0.0, np.where(np.isfinite(end), end, soft))
    return np.asarray(np.where(qp.lower < qp.upper, beta, 0.0))


def _admit(chosen: Index, v: Vector, count: int) -> None:
    """Add the ``count`` features of largest |X'β| that are not chosen yet. Edits chosen in place."""
    outside = np.flatnonzero(~chosen)
    if count < len(outside):
        outside = outside[np.argpartition(v[outside], -count)[-count:]] if count else outside[:0]
    chosen[outside] = True


def _embed(problem: LinearProblem, options: LinearOptions, features: Index, found: LinearSolution) -> LinearSolution:
    """The solution on some features as a certified solution of the whole problem."""
    if len(features) == problem.rows.d:
        return found
    w = np.zeros(problem.rows.d)
    w[features] = found.w
    proof = linear_certificate(problem, w, found.intercept, found.beta)
    done = proof.valid and proof.relative_gap <= options.tol
    status = Status.CONVERGED if done else (Status.STALLED if found.status is Status.CONVERGED else found.status)
    # classes that are not separable by these features may be by all
    return replace(found, w=w, certificate=proof, status=status, separation=None)
