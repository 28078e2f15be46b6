"""The hard margin of Crammer & Singer's machine: all classes separated, each by its own linear function.

    min over W   ½ Σ_k |w_k|²     s.t.  f_{yᵢ}(xᵢ) − f_k(xᵢ) ≥ 1  for all i and all k ≠ yᵢ

A sample and a class it does not belong to are one row, with xᵢ in the columns of class yᵢ and −xᵢ in those of class k:
so written it is the hard margin of a single class through the origin (Kesler's construction). It begins with a random
part of these pairs; those that its model violates most come in until there are none. A part of the rows that cannot be
separated proves that all cannot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.exceptions import InvalidInputError
from mercer.linear.crammer_singer import JointProblem, JointSolution, joint_certificate
from mercer.linear.interior import solve
from mercer.linear.problem import LinearProblem, Rows
from mercer.linear.solution import LinearOptions
from mercer.losses import HardMargin
from mercer.solvers.base import Clock, Status, TracePoint

Matrix = NDArray[np.float64]
Index = NDArray[np.intp]

# pairs of the first model, and that may come in after each, at least, and for each column
FEWEST_PAIRS, PAIRS_PER_COLUMN = 200, 2
MAX_ROUNDS = 100


def largest_joint_margin(problem: JointProblem, options: LinearOptions, clock: Clock) -> JointSolution:
    """The separator of largest margin; with the status UNBOUNDED α that proves that there is none, or UNDECIDED."""
    if problem.intercept:
        raise InvalidInputError(
            "The hard margin of multi_class='crammer_singer' has no intercepts that nothing penalises: use "
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
        found = solve(inner, replace(options, max_iter=left), clock)
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
    # a part was solved, but the rest does not follow
    otherwise = Status.STALLED if found.status is Status.CONVERGED else found.status
    status = Status.CONVERGED if done else otherwise
    return replace(best, status=status, n_iter=n_iter, seconds=clock.seconds, trace=trace)


def _pairs(X: Any, labels: Index, of: Index, against: Index, n_classes: int) -> Any:
    """A row for each pair: the sample in the columns of its class, its negative in those of the other."""
    part = X[of].tocoo()
    d = X.shape[1]
    own, other = labels[of][part.row] * d + part.col, against[part.row] * d + part.col
    data = np.concatenate([part.data, -part.data]).astype(np.float64)
    places = np.concatenate([part.row, part.row]), np.concatenate([own, other])
    return sp.csr_array((data, places), shape=(len(of), n_classes * d))
