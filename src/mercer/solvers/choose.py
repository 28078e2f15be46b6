"""The only place that ranks solvers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.losses.base import Vector
from mercer.problems.certificate import certificate
from mercer.problems.dual import DualProblem, thresholds, violation
from mercer.solvers import exact
from mercer.solvers.base import Clock, Options, Solution, Status
from mercer.solvers.blas import one_blas_thread
from mercer.solvers.data import Data
from mercer.solvers.hard_margin import settle
from mercer.solvers.interior import INTERIOR_STEPS, factor_seconds, interior_point
from mercer.solvers.judge import check_finite

# a dense factorisation per iteration: beyond this, decomposition is the tool
QP_UP_TO = 5000

Solve = Callable[[Data, DualProblem, Options, Clock, Vector | None], Solution]


def choose_solver(name: str) -> Solve:
    """ "auto" and "decomposition" are the exact solver for all sizes; "qp" is the interior-point method."""
    return solve_qp if name == "qp" else exact.solve


def solve_qp(data: Data, problem: DualProblem, options: Options, clock: Clock, start: Vector | None = None) -> Solution:
    """The interior-point method on the dense matrix, for small problems; [M5] "dual QP by a standard package".

    Where the time limit allows too few of its steps, pair steps make the better model of it.
    """
    if problem.qp.n_vars > QP_UP_TO:
        raise InvalidInputError(
            f"solver='qp' factors a dense matrix of all {problem.qp.n_vars} variables: it takes at most {QP_UP_TO}. "
            "Use solver='auto'."
        )
    if clock.left < np.inf:
        needed = data.seconds(data.n, 0.5 * data.n, options.n_threads)
        if clock.over_in(needed + INTERIOR_STEPS * factor_seconds(problem.qp.n_vars)) is not None:
            return exact.solve(data, problem, options, clock, start)
    K = data.matrix(np.float64, options.n_threads)
    check_finite(K)
    limit = 100 if options.max_iter < 0 else options.max_iter
    with one_blas_thread():  # its threads take longer to meet than to compute
        beta, n_iter, _ = interior_point(K, problem.qp, 1e-10, limit, clock)
    qp = problem.qp
    F = K @ qp.at_samples(beta, data.n)
    beta = problem.loss.restored(beta, problem.y, F, problem.weight)
    b = thresholds(qp, beta, F)
    proof = certificate(qp, problem.loss, problem.y, problem.weight, beta, F, b, data.psd)
    done = violation(qp, beta, F) <= options.tol
    ended = Status.MAX_ITER if n_iter >= limit else clock.over() or Status.STALLED
    solution = Solution(beta, F, b, Status.CONVERGED if done else ended, n_iter, clock.seconds, proof)
    return settle(exact.solve, data, problem, options, solution)
