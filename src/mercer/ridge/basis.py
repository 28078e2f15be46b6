"""Orthonormal columns as what made them: reflections, or the columns themselves.

    √w K √w = P' B P,     B with a few diagonals,     P = … H_2 H_1,     H_c = I − τ_c v_c v_c'

Making B leaves the v_c behind, and to apply P to a few vectors takes them alone. P itself is as much work as B. Some
reflections together are H_a … H_b = I − V S V' with a triangular S, whose inverse has 1/τ on its diagonal and V'V
above.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from mercer._numerics.pool import run_tasks
from mercer.kernels.features import Matrix, Vector
from mercer.solvers.inplace import add_product

# reflections applied together
BLOCK = 96
# rows of P moved together, whatever the number of threads: so rounding does not depend on it
ROWS = 256


class Columns:
    """P itself, with a row for each row of B."""

    def __init__(self, P: Matrix) -> None:
        self.P = P

    def inward(self, R: Matrix) -> Matrix:
        """P R."""
        return self.P @ R

    def outward(self, M: Matrix) -> Matrix:
        """P' M."""
        return self.P.T @ M


class Block(NamedTuple):
    """Some reflections: which, the first coordinates of V' (as many as it has rows), and S."""

    at: slice
    head: Matrix
    S: Matrix


def block_of(rows: Matrix, tau: Vector, at: slice) -> Block:
    """Reflections that are stored right of the diagonal of these rows."""
    tau, tail = tau[at], rows[at, at.stop :]
    head = np.triu(rows[at, at], 1)
    np.fill_diagonal(head, tau != 0.0)  # else it is no reflection
    inverse = np.triu(head @ head.T + tail @ tail.T, 1)
    np.fill_diagonal(inverse, 1.0 / np.where(tau != 0.0, tau, 1.0))
    return Block(at, head, linalg.lapack.dtrtri(inverse)[0])


class Reflections:
    """P of a square matrix whose memory, K, now holds v_c in row c, right of column c + width, where it has a one."""

    def __init__(self, K: Matrix, tau: Vector, width: int) -> None:
        self.K = K
        self.tau = tau
        self.width = width
        # without the first coordinates, which no reflection changes, and the last rows, which hold none
        self._rows = K[:-width, width:]

    @cached_property
    def _blocks(self) -> list[Block]:
        n = len(self.tau)
        return [block_of(self._rows, self.tau, slice(c, min(c + BLOCK, n))) for c in range(0, n, BLOCK)]

    def inward(self, R: Matrix) -> Matrix:
        """P R."""
        out = np.array(R, dtype=np.float64)
        for block in self._blocks:
            self._reflect(block, block.S.T, out[self.width :])
        return out

    def outward(self, M: Matrix) -> Matrix:
        """P' M."""
        out = np.array(M, dtype=np.float64)
        for block in reversed(self._blocks):
            self._reflect(block, block.S, out[self.width :])
        return out

    def _reflect(self, block: Block, S: Matrix, R: Matrix) -> None:
        """R −= V S V' R. Edits R."""
        at, head, _ = block
        tail = self._rows[at, at.stop :]
        change = S @ (head @ R[at] + tail @ R[at.stop :])
        R[at] -= head.T @ change
        R[at.stop :] -= tail.T @ change

    def columns(self, n_threads: int) -> Columns:
        """P in the memory of the reflections, which are then gone."""
        return Columns(self._form(self.K, n_threads))

    def rounded(self, n_threads: int) -> Matrix:
        """P in float32, in memory of its own."""
        return self._form(np.empty(self.K.shape, np.float32), n_threads)

    def _form(self, out: Matrix, n_threads: int) -> Matrix:
        """Write P to out: from the last reflections to the first, each block moves the rows behind it."""
        n, width = len(self.tau), self.width
        P = out[width:, width:]
        for at, head, S in reversed(self._blocks):
            V = self._rows[at, at.start :].astype(out.dtype)
            V[:, : len(V)] = head
            turned = S.T.astype(out.dtype) @ V
            tail = V[:, len(V) :]

            def move(task: int, end: int = at.stop, m: int = len(V), tail: Any = tail, turned: Any = turned) -> None:
                first = end + task * ROWS
                rows = P[first : first + ROWS]
                shift = rows[:, end:] @ tail.T
                add_product(rows[:, end:], shift, turned[:, m:], -1.0)
                rows[:, end - m : end] = -shift @ turned[:, :m]

            run_tasks(move, -(-(n - at.stop) // ROWS), n_threads)
            P[at, at.start :] = -V[:, : len(V)].T @ turned
            P[range(at.start, at.stop), range(at.start, at.stop)] += 1.0
        out[:width], out[:, :width] = 0.0, 0.0
        np.fill_diagonal(out[:width, :width], 1.0)
        return out
