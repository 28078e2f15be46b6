"""Few samples and features: Newton's method within the method of multipliers, in one compiled run.

    min over w, b   ½ l2 |w|² + Σ conjᵢ(linearᵢ − xᵢ·w − b),     conjᵢ(t) = max over the box of  tβ − l1|β| − ½ ridge β²

An iteration of the other solvers takes at least 0.1 ms of Python time; here it takes a few microseconds.

Squared losses have a ridge, and Newton's method is that of `mercer.linear.newton`. Other losses get a ridge, as in
`mercer.linear.proximal`: ½δ|β − c|² is added to the dual; after each round c is set to the β found and δ is reduced.
For piecewise linear losses a few rounds reach the exact optimum (Rockafellar, SIAM J. Control 14, 1976); each takes two
or three Newton steps from the result of the last one.

With fewer samples than features w is restricted to the span of the samples, which contains the optimum.
"""

from __future__ import annotations

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer.linear.linear_problem import LinearProblem, balanced, linear_certificate
from mercer.linear.linear_solution import LinearOptions, LinearSolution
from mercer.problems.clock import Clock
from mercer.problems.solution import Status, TracePoint

# the first δ, in units of the mean target divided by the box, and its factor from round to round
FIRST, LESS = 1.0, 0.2
# limits; beyond them another solver continues
ROUNDS, STEPS = 15, 300
# the target gap, in units of tol
CLOSER = 0.5


def solve(
    problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None = None
) -> LinearSolution:
    """Minimise within a limited number of Newton steps, which are the iterations."""
    from mercer.linear._newton_loops import solve_few

    qp, l2, n = problem.qp, problem.penalty.l2, problem.n
    X, span = problem.rows.dense(), None
    with one_blas_thread(), np.errstate(all="ignore"):
        if X.shape[1] > n:
            span, triangle = np.linalg.qr(X.T)
            X = triangle.T
        d = X.shape[1]
        u, beta = np.zeros(d + problem.intercept), np.zeros(n)
        penalty = np.full(len(u), l2)
        if problem.intercept:
            X = np.column_stack([X, np.ones(n)])
            penalty[-1] = 0.0
            u[-1] = problem.loss.best_intercept(problem.y, np.zeros(n), problem.weight)
        if start is not None:
            u[:d] = start.w if span is None else span.T @ start.w
            u[d:] = start.intercept
            beta = np.clip(start.beta, qp.lower, qp.upper)
        limit = STEPS if options.max_iter < 0 else min(STEPS, options.max_iter)
        delta, out = FIRST * (float(np.abs(qp.linear).mean()) or 1.0), np.zeros(2)
        vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper
        solve_few(
            np.ascontiguousarray(X), penalty, *vectors, delta, LESS, CLOSER * options.tol, ROUNDS, limit, u, beta, out
        )
        w, b = u[:d] if span is None else span @ u[:d], 0.0
        if problem.intercept:
            b = problem.loss.best_intercept(problem.y, problem.rows.dot(w), problem.weight)
            beta = balanced(qp, beta)
        proof = linear_certificate(problem, w, b, beta)
    steps = int(out[0])
    status = clock.over() or (Status.MAX_ITER if 0 <= options.max_iter <= steps else Status.STALLED)
    if proof.valid and proof.relative_gap <= options.tol:
        status = Status.CONVERGED
    point = TracePoint(clock.seconds, steps, proof.relative_gap, proof.dual, n)
    clock.report(point)
    return LinearSolution(w, b, beta, status, steps, clock.seconds, proof, [point])
