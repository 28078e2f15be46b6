"""Few samples: pair steps on their kernel matrix.

A step of the interior-point method takes a tenth of a millisecond of Python however small the problem, while the matrix
of two hundred samples is solved by pair steps in less than one. They are told a KKT violation, not a gap: a tenth of it
is asked for until the gap is within tol.
"""

from __future__ import annotations

import numpy as np

from mercer.problems.dual import feasible_start, survey
from mercer.problems.linear import LinearProblem, linear_certificate
from mercer.solvers.base import Clock, Options, Status
from mercer.solvers.blas import one_blas_thread
from mercer.solvers.linear.base import LinearOptions, LinearSolution
from mercer.solvers.whole import WholeMatrix

# the violation asked for first, in units of tol and of the mean loss of w = 0, and how often a tenth of it
FIRST, ATTEMPTS = 1.0, 3
# pair steps at most, in all and for each sample: a problem that takes more is left to another solver
STEPS, STEPS_PER_SAMPLE = 1000, 10


def solve(
    problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None = None
) -> LinearSolution:
    """The optimum, or as near to it as a limited number of pair steps leads. An iteration is as many as samples."""
    qp, l2, n = problem.qp, problem.penalty.l2, problem.n
    X = problem.rows.dense()
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        K = X @ X.T / l2
    beta = feasible_start(qp, None if start is None else start.beta)
    limit = STEPS + STEPS_PER_SAMPLE * n
    if options.max_iter >= 0:
        limit = min(limit, options.max_iter * n)
    run = WholeMatrix(K, qp, beta, Options(max_iter=limit), clock, rescue=False)
    nothing = np.zeros(problem.rows.d)
    b = problem.loss.best_intercept(problem.y, np.zeros(n), problem.weight) if problem.intercept else 0.0
    size = problem.primal(nothing, b, np.zeros(n)) / max(float(problem.weight.sum()), np.finfo(np.float64).tiny)
    violation = FIRST * options.tol * size if np.isfinite(size) and size > 0 else options.tol
    for _ in range(ATTEMPTS):
        status = run.run(violation)
        w = problem.rows.tdot(run.beta) / l2
        b = float(survey(qp, run.beta, run.F).thresholds[0]) if problem.intercept else 0.0
        proof = linear_certificate(problem, w, b, run.beta)
        if proof.valid and proof.relative_gap <= options.tol:
            status = Status.CONVERGED
            break
        if status is not Status.CONVERGED:
            break
        status = Status.STALLED
        violation *= 0.1
    n_iter = -(-run.steps // n)
    if status is Status.MAX_ITER and not 0 <= options.max_iter <= n_iter:
        status = Status.STALLED  # a limit of its own, not the user's
    return LinearSolution(w, b, run.beta, status, n_iter, clock.seconds, proof, run.trace)
