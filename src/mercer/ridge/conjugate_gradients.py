"""Conjugate gradients for several right sides, with a preconditioner that is nearly the inverse.

    A X = B,     A symmetric and positive definite, known by its products alone

Algorithm 10.3.1 of Golub & Van Loan, *Matrix Computations*; each column has its own step lengths. With a factor of A
in float32 as preconditioner this is iterative refinement that also converges where plain refinement does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mercer.kernels.features import Matrix, Vector
from mercer.solvers.base import Clock, Status, TracePoint

Linear = Callable[[Matrix], Matrix]

# residuals are computed anew when they seem small enough, so many times
RESTARTS = 5
# a restart must make the residual smaller than this share of what it was, or rounding stands in the way
GAIN = 0.5
# steps without a smaller residual after which there will be none
PATIENCE = 300


class Converged(NamedTuple):
    """How the iteration ended: its status, the number of products and the largest entry of each residual."""

    status: Status
    steps: int
    residual: Vector
    trace: list[TracePoint]


class IndefiniteError(ArithmeticError):
    """A direction of curvature <= 0 was met: ``curvature`` is v'Av / v'v; ``ended`` is how far it came before."""

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

    Where it goes astray, X is the best that was met. ``max_iter`` products at most, not counting those that only
    verify; ``scale`` multiplies the dual value ΣX'B − ½X'AX that is reported after each step. Where the preconditioner
    comes from a factor of A itself (``factored``) the first step, from X = 0, is as long as it says. ``seconds`` is
    about how long a product takes: with a time limit there is one left for the caller.
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
            # a column that has arrived stays as it is
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
        # what was tracked may have drifted from the truth
        R = B - product(X)
    largest = np.abs(R).max(axis=0)
    done = bool((largest <= goal(X)).all())
    return Converged(Status.CONVERGED if done else Status.STALLED, steps, largest, trace)
