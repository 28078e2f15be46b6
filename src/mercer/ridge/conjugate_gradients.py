"""Preconditioned conjugate gradients for several right-hand sides.

    A X = B,     A symmetric and positive definite, given by its products

Algorithm 10.3.1 of Golub & Van Loan, *Matrix Computations*; each column has its own step lengths. With a float32 factor
of A as preconditioner it is a form of iterative refinement that converges more often than plain refinement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Status, TracePoint

Linear = Callable[[Matrix], Matrix]

# residuals are recomputed when they seem small enough, at most this many times
RESTARTS = 5
# a restart must reduce the residual to this share, otherwise rounding prevents progress
GAIN = 0.5
# the iteration ends after this many steps without a smaller residual
PATIENCE = 300


class Converged(NamedTuple):
    """The result of the iteration: status, number of products, and the largest entry of each residual."""

    status: Status
    steps: int
    residual: Vector
    trace: list[TracePoint]


class IndefiniteError(ArithmeticError):
    """A direction v of curvature v'Av / v'v <= 0 was found; ``ended`` is the result so far."""

    def __init__(self, curvature: float, ended: Converged) -> None:
        super().__init__(curvature, ended)
        self.curvature = curvature
        self.ended = ended


def conjugate_gradients(
    product: Linear,
    precondition: Linear,
    B: Matrix,
    X: Matrix,
    goal: Callable[[Matrix], Vector],
    max_iter: int,
    clock: Clock,
    scale: float = 1.0,
    factored: bool = False,
    seconds: float = 0.0,
) -> Converged:
    """Improve X until the largest entry of each column of B − AX is at most goal(X). Edits X in place.

    If the iteration diverges, X is its best point. ``max_iter`` limits the products, not counting those that recompute
    residuals; ``scale`` multiplies the dual value ΣX'B − ½X'AX that is reported after each step. If the preconditioner
    is a factor of A itself (``factored``), the first point is its solution. ``seconds`` is the approximate time of a
    product: with a time limit the iteration leaves enough time for one more by the caller.
    """
    steps = 0
    trace: list[TracePoint] = []

    def report(X: Matrix, R: Matrix, largest: Vector) -> None:
        dual = scale * 0.5 * float(np.sum(X * (B + R)))
        point = TracePoint(clock.seconds, steps, float(largest.max()), dual, len(B))
        trace.append(point)
        clock.report(point)

    if factored and max_iter > 0 and clock.over() is None:
        X[:], steps = precondition(B), 1
        R = B - product(X)
        if np.isfinite(R).all():
            report(X, R, np.abs(R).max(axis=0))
        else:
            X[:], steps, R = 0.0, 0, B.copy()
    else:
        R = B - product(X) if X.any() else B.copy()
    previous = np.full(B.shape[1], np.inf)
    for _ in range(RESTARTS):
        largest = np.abs(R).max(axis=0)
        open_columns = ~(largest <= goal(X))
        if not open_columns.any():
            return Converged(Status.CONVERGED, steps, largest, trace)
        if not np.isfinite(largest).all() or (open_columns & ~(largest < GAIN * previous)).any():
            return Converged(Status.STALLED, steps, largest, trace)
        previous = largest
        Z = precondition(R)
        P, along = Z, np.einsum("ij,ij->j", R, Z)
        best, best_step, best_X = float(largest[open_columns].max()), steps, X.copy()
        while open_columns.any():
            status = Status.MAX_ITER if steps >= max_iter else clock.over_in(2.0 * seconds)
            if status is not None:
                return Converged(status, steps, largest, trace)
            AP = product(P)
            curvature = np.einsum("ij,ij->j", P, AP)
            if (curvature[open_columns] <= 0).any():
                worst = int(np.argmin(np.where(open_columns, curvature, np.inf)))
                if not AP[:, worst].any() and not R[:, worst].any():
                    break
                X[:] = best_X
                ended = Converged(Status.STALLED, steps, np.abs(B - product(X)).max(axis=0), trace)
                raise IndefiniteError(float(curvature[worst] / np.square(P[:, worst]).sum()), ended)
            # a converged column stays unchanged
            length = np.divide(along, curvature, out=np.zeros_like(along), where=open_columns & (curvature != 0))
            X += length * P
            R -= length * AP
            steps += 1
            largest = np.abs(R).max(axis=0)
            report(X, R, largest)
            if largest[open_columns].max() < best:
                best, best_step, best_X[:] = float(largest[open_columns].max()), steps, X
            if not np.isfinite(largest).all() or steps > best_step + PATIENCE:
                X[:] = best_X
                return Converged(Status.STALLED, steps, np.abs(B - product(X)).max(axis=0), trace)
            open_columns &= ~(largest <= goal(X))
            if not open_columns.any():
                break
            Z = precondition(R)
            before, along = along, np.einsum("ij,ij->j", R, Z)
            P = Z + np.divide(along, before, out=np.zeros_like(along), where=before != 0) * P
        # the updated residual may differ from the true one
        R = B - product(X)
    largest = np.abs(R).max(axis=0)
    done = bool((largest <= goal(X)).all())
    return Converged(Status.CONVERGED if done else Status.STALLED, steps, largest, trace)
