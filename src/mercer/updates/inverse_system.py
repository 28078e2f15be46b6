"""The solutions of (K + D) S = B while samples come and leave, in O(n²) each.

With M = (K + D)⁻¹ known, the block inverse (Schur complement) gives, for a sample that comes with kernel values k and
κ = k(x, x) + d,

    v = Mk,   s = κ − k'v,   M ← M + vv'/s  bordered by −v/s and 1/s,   S ← S − vc'  with the new row c = (b − k'S)/s

and for sample r that leaves, with the column m = M[:, r],

    M ← M − mm'/m_r,      S ← S − m S_r/m_r.

Changes of M are collected as Σ d_j u_j u_j' and added to it a few at a time. Rounding errors grow slowly: the residual
is computed with the stored K after each change, and corrected by refinement, S ← S + M(B − (K + D)S).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from mercer.kernels.features import Matrix, Vector

# rank-one changes of M that are collected
COLLECTED = 32
# room for new samples: this many, and this share of them
SPARE, SPARE_SHARE = 64, 0.03
# most refinements of a solution
REFINEMENTS = 4
# a refinement helps if the largest error falls below this share
REFINED = 0.5
# a sample depends on the others if its Schur complement is below this many times the rounding of its terms
SINGULAR = 8
EPS = float(np.finfo(np.float64).eps)
# a residual above this, relative to the right side, is not accepted as rounding
ROUNDED = 1e-6


class InverseSystem:
    """K and M = (K + D)⁻¹ in the two triangles of one matrix, with the solutions S of (K + D) S = B.

    Samples are numbered 0, 1, … in the user's order. The matrix has an order of its own (``place``), so that a removed
    sample is overwritten by the last one. Entries without a sample are 0.

    Attributes
    ----------
    values : K below the diagonal, M on and above it; column-major.
    diagonal, noise : the diagonals of K and of D.
    changes, signs : the vectors u and the numbers d of the collected changes of M.
    solutions : S, a row for each place.
    log_determinant : log det(K + D).
    """

    def __init__(self, K: Matrix, noise: Vector, B: Matrix) -> None:
        n = len(K)
        size = n + SPARE + int(SPARE_SHARE * n)
        self.place = np.arange(n)
        self.values = np.zeros((size, size), order="F")
        self.diagonal, self.noise = np.zeros(size), np.zeros(size)
        self.diagonal[:n], self.noise[:n] = np.diagonal(K), noise
        A = np.array(K, order="F")
        A[np.diag_indices(n)] += noise
        factor, failed = lapack.dpotrf(A, lower=0, overwrite_a=1, clean=0)
        self.is_regular = failed == 0 and bool(np.isfinite(np.diagonal(factor)).all())
        self.changes, self.signs = np.zeros((size, COLLECTED), order="F"), np.zeros(COLLECTED)
        self.count = 0
        self.solutions = np.zeros((size, B.shape[1]))
        if not self.is_regular:
            return
        self.log_determinant = 2.0 * float(np.log(np.diagonal(factor)).sum())
        self.solutions[:n] = lapack.dpotrs(factor, B, lower=0)[0]
        inverse, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
        self.values[:n, :n] = np.tril(K, -1) + np.triu(inverse)

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.place)

    @property
    def has_room(self) -> bool:
        """Whether one more sample fits into the memory."""
        return self.n < len(self.values)

    # ---- products --------------------------------------------------------------------------------------------

    def times_kernel(self, V: Matrix) -> Matrix:
        """K V, over places."""
        out = np.column_stack([blas.dsymv(1.0, self.values, v, lower=1) for v in V.T])
        # the diagonal of the matrix is that of M
        return out + (self.diagonal - np.diagonal(self.values))[:, None] * V

    def times_inverse(self, V: Matrix) -> Matrix:
        """M V, over places."""
        out = np.column_stack([blas.dsymv(1.0, self.values, v, lower=0) for v in V.T])
        return out + self.changes @ (self.signs[:, None] * (self.changes.T @ V))

    # ---- changes ---------------------------------------------------------------------------------------------

    def append(self, k: Vector, itself: float, noise: float, b: Vector) -> bool:
        """Add a sample with these kernel values at the others (in their order) and right side; False if singular."""
        new = self.n
        row = np.zeros(len(self.values))
        row[self.place] = k
        v = self.times_inverse(row[:, None])[:, 0]
        s = itself + noise - float(row @ v)
        if not s > SINGULAR * EPS * abs(itself + noise):
            return False
        c = (b - row @ self.solutions) / s
        self.solutions -= np.outer(v, c)
        self.solutions[new] = c
        self.values[new, :new] = row[:new]
        self.diagonal[new], self.noise[new] = itself, noise
        v[new] = -1.0
        self.log_determinant += float(np.log(s))
        self.place = np.append(self.place, new)
        self._collect(v, 1.0 / s)
        return True

    def remove(self, i: int) -> None:
        """Remove sample i and overwrite its values."""
        r, last = int(self.place[i]), self.n - 1
        m = np.concatenate([self.values[:r, r], self.values[r, r:]])
        m = m + self.changes @ (self.signs * self.changes[r])
        self.solutions -= np.outer(m, self.solutions[r] / m[r])
        self.log_determinant += float(np.log(m[r]))
        self._collect(m, -1.0 / m[r])
        self._move(last, r)
        self.place[self.place == last] = r
        self.place = np.delete(self.place, i)

    def _collect(self, u: Vector, sign: float) -> None:
        if self.count == COLLECTED:
            scaled = self.changes * self.signs
            # M += U diag(d) U', in slices that write its triangle only
            for top in range(0, len(self.values), 256):
                end = min(top + 256, len(self.values))
                block = scaled[:end] @ self.changes[top:end].T
                block[top:] = np.triu(block[top:])
                self.values[:end, top:end] += block
            self.changes[:], self.signs[:], self.count = 0.0, 0.0, 0
        self.changes[:, self.count], self.signs[self.count] = u, sign
        self.count += 1

    def _move(self, last: int, r: int) -> None:
        """Move the last sample to place r, and set its old place to 0."""
        A = self.values
        if last != r:
            # K[last, :] is below the diagonal, M[:, last] above it
            kernel, inverse = A[last, :last].copy(), A[: last + 1, last].copy()
            A[r, :r], A[r + 1 : last, r] = kernel[:r], kernel[r + 1 :]
            A[:r, r], A[r, r], A[r, r + 1 : last] = inverse[:r], inverse[last], inverse[r + 1 : last]
            for part in (self.diagonal, self.noise, self.changes, self.solutions):
                part[r] = part[last]
        A[last, :], A[:, last] = 0.0, 0.0
        for part in (self.diagonal, self.noise, self.changes, self.solutions):
            part[last] = 0.0

    def permute(self, order: Vector) -> None:
        """Number the samples anew: sample order[0] comes first."""
        self.place = self.place[order]

    # ---- solutions -------------------------------------------------------------------------------------------

    def refine(self, B: Matrix) -> tuple[Matrix, Matrix, float] | None:
        """(S, KS, largest residual) for the right sides B, in the samples' order; None if rounding spoils them."""
        right = np.zeros((len(self.values), B.shape[1]))
        right[self.place] = B
        size = np.abs(B).max(axis=0)
        norm = float(np.abs(self.diagonal).sum()) + float(self.noise.max())
        best = np.inf
        for _ in range(REFINEMENTS + 1):
            product = self.times_kernel(self.solutions)
            residual = right - product - self.noise[:, None] * self.solutions
            found = np.abs(residual).max(axis=0)
            goal = np.minimum(np.sqrt(self.n) * EPS * norm * np.abs(self.solutions).max(axis=0), ROUNDED * size)
            if np.all(found <= goal):
                return self.solutions[self.place], product[self.place], float(found.max())
            if not float(found.max()) < REFINED * best:
                return None
            best = float(found.max())
            self.solutions += self.times_inverse(residual)
        return None
