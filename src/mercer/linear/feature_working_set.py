"""A working set over features: l1 penalties on many columns.

At the optimum of an l1 penalty a feature has a weight only if |X'β| reaches l1 there; most do not. So the problem is
solved on a few features, X'β is computed for all of them, and those beyond l1 come in, until the certificate of the
whole problem is within tol. Each round at least doubles what it takes in, so that there are few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mercer.linear.problem import LinearProblem, linear_certificate
from mercer.linear.solution import LinearOptions, LinearSolution
from mercer.losses.base import Index, Vector
from mercer.solvers.base import WITHOUT_MODEL, Clock, Status, TracePoint

Solve = Callable[[LinearProblem, LinearOptions, Clock, LinearSolution | None], LinearSolution]

# features of the first round; of a start those that have a weight or whose |X'β| is beyond this share of l1
FIRST, BEYOND = 100, 0.95
# while features are missing a gap of this size is good enough
ROUGH_TOL = 1e-2
# how much closer than tol a part is solved
SHARE = 0.5


def solve(
    problem: LinearProblem,
    options: LinearOptions,
    clock: Clock,
    solve_part: Solve,
    start: LinearSolution | None = None,
) -> LinearSolution:
    """The optimum over all features from those that matter: each part by ``solve_part``, from ``start`` if any."""
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
            # a part without a model needs more features, one that is only rough a closer look
            missing = len(features) if found.status in WITHOUT_MODEL else 0
            if tol <= 1e-3 * SHARE * options.tol:
                missing = max(missing, 1)
            tol = SHARE * options.tol if tol > SHARE * options.tol else 1e-1 * tol
        _admit(chosen, v, min(missing, len(features)))
    return best if not whole else replace(solution, n_iter=n_iter)


def beta_without_weights(problem: LinearProblem) -> Vector:
    """β for w = 0: at the end of the box that the best constant model asks for."""
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
    """Take in the features of largest |X'β| that are not yet there. Edits chosen in place."""
    outside = np.flatnonzero(~chosen)
    if count < len(outside):
        outside = outside[np.argpartition(v[outside], -count)[-count:]] if count else outside[:0]
    chosen[outside] = True


def _embed(problem: LinearProblem, options: LinearOptions, features: Index, found: LinearSolution) -> LinearSolution:
    """The solution on some features as one of the whole problem, with the whole's certificate."""
    if len(features) == problem.rows.d:
        return found
    w = np.zeros(problem.rows.d)
    w[features] = found.w
    proof = linear_certificate(problem, w, found.intercept, found.beta)
    done = proof.valid and proof.relative_gap <= options.tol
    status = Status.CONVERGED if done else (Status.STALLED if found.status is Status.CONVERGED else found.status)
    # more features may separate what these do not
    return replace(found, w=w, certificate=proof, status=status, separation=None)
