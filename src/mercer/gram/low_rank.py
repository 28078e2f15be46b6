"""A kernel matrix as the product of a few columns: K ≈ LL', by pivoted Cholesky in blocks.

The samples that are explained worst so far are the pivots of a block. Their columns, less what L explains of them, are
computed for all samples; a Cholesky factorisation with pivots inside the block leaves out those that others of the
block explain. What is left, K − LL', stays positive semidefinite, so its trace bounds its norm. Harbrecht, Peters &
Schneider, *On the low-rank approximation by the pivoted Cholesky decomposition* (2012).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from mercer.gram.operator import GramOperator
from mercer.kernels.features import Matrix, Vector

# ways to choose landmarks ([M5] "dictionary methods")
SELECTIONS = ("uniform", "kmeans++", "cholesky", "random_cholesky")
# pivots chosen together
BLOCK = 64
# inside a block a pivot counts if it is at least this share of the first
SHARE = 1e-2


class LowRank(NamedTuple):
    """L, its pivots, and the trace of K − LL', which bounds the norm; exact: whether the trace is within tol."""

    L: Matrix
    pivots: Vector
    rest: float
    exact: bool


def pivoted_cholesky(
    gram: GramOperator,
    rank: int,
    tol: float,
    scale: Vector | None = None,
    only_exact: bool = False,
    block: int = BLOCK,
) -> LowRank:
    """K ≈ LL' in float64 with at most ``rank`` columns, or fewer if the trace of the rest is at most ``tol``.

    ``scale`` s stands for the matrix s_i K[i, j] s_j. An indefinite matrix ends the search where a pivot is negative.
    With ``only_exact`` it ends when the trace falls too slowly to reach tol. ``block`` pivots are chosen together: one
    by one they are better, and slower.
    """
    n = gram.n
    s = np.ones(n) if scale is None else scale
    left = gram.diagonal().astype(np.float64) * s**2
    total = float(np.abs(left).sum()) or 1.0
    # what subtracting leaves of a diagonal entry that is explained in full
    rounding = 4.0 * np.finfo(np.float64).eps * float(np.abs(left).max(initial=0.0))
    L = np.empty((n, max(0, min(rank, n))), order="F")
    pivots: list[Vector] = []
    done = 0
    while done < L.shape[1]:
        size = min(block, L.shape[1] - done)
        chosen = np.argpartition(left, n - size)[n - size :]
        chosen = chosen[np.argsort(-left[chosen], kind="stable")]
        chosen = chosen[left[chosen] > max(rounding, SHARE * left[chosen[0]])]
        if len(chosen) == 0 or left.clip(min=0.0).sum() <= tol:
            break
        columns = gram.rows(gram.features.take(chosen)).T * s[:, None] * s[chosen]
        columns -= L[:, :done] @ L[chosen, :done].T
        U, order, kept, _ = linalg.lapack.dpstrf(
            np.asfortranarray(columns[chosen]), lower=1, tol=SHARE * left[chosen[0]]
        )
        if kept == 0:
            break
        first = order[:kept] - 1
        new = linalg.blas.dtrsm(1.0, U[:kept, :kept], columns[:, first], side=1, lower=1, trans_a=1)
        # exactly triangular at the pivots
        L[:, done : done + kept] = new
        pivots.append(chosen[first])
        left -= np.einsum("ij,ij->i", new, new)
        left[chosen[first]] = 0.0
        done += kept
        rest = float(left.clip(min=0.0).sum())
        if only_exact and rest > tol:
            # it falls about geometrically: even at twice the speed there would be too many columns
            fallen, to_fall = np.log(rest / total), np.log(max(tol, rounding) / total)
            if done * to_fall < 2.0 * L.shape[1] * fallen:
                break
    rest = float(left.clip(min=0.0).sum())
    # a diagonal that is only rounding is explained; one that is negative beyond it belongs to no kernel
    explained = rest <= tol or not (left > rounding).any()
    is_kernel = not (left < -max(tol, 100.0 * rounding)).any()
    taken = np.concatenate(pivots) if pivots else np.empty(0, np.intp)
    return LowRank(L[:, :done], taken, rest, bool(explained and is_kernel))


def choose_landmarks(gram: GramOperator, count: int, selection: str, random: Any) -> Vector:
    """The numbers of ``count`` samples, or of fewer if these represent all others exactly.

    "uniform" draws without replacement. "kmeans++" draws each with a probability in proportion to its squared distance,
    in feature space, from the nearest one drawn so far (Arthur & Vassilvitskii, 2007). "cholesky" takes those that are
    represented worst so far, which is not random. "random_cholesky" draws each with a probability in proportion to what
    those before do not represent of it (Chen, Epperly, Tropp & Webber, *Randomly pivoted Cholesky*, 2022).
    """
    if selection == "uniform":
        chosen: Vector = random.permutation(gram.n)[:count]
        return chosen
    if selection == "cholesky":
        return pivoted_cholesky(gram, count, 0.0, block=1).pivots
    if selection == "random_cholesky":
        return _random_pivots(gram, count, random)
    diagonal = gram.diagonal()
    taken = [int(random.randint(gram.n))]
    distance = np.full(gram.n, np.inf)
    while len(taken) < count:
        last = np.array(taken[-1:])
        column = gram.rows(gram.features.take(last))[0].astype(np.float64)
        distance = np.minimum(distance, diagonal + diagonal[last] - 2.0 * column)
        # of equal samples rounding leaves a distance
        distance[distance <= 1e-12 * np.abs(diagonal).max()] = 0.0
        distance[taken] = 0.0
        total = distance.sum()
        if total <= 0:
            break
        taken.append(_draw(distance, random))
    return np.array(taken)


def _random_pivots(gram: GramOperator, count: int, random: Any) -> Vector:
    left = gram.diagonal().astype(np.float64)
    rounding = 1e-12 * float(np.abs(left).max(initial=0.0))
    L = np.empty((gram.n, count), order="F")
    taken: list[int] = []
    while len(taken) < count:
        left[left <= rounding] = 0.0
        if not left.any():
            break
        pivot = _draw(left, random)
        done = len(taken)
        column = gram.rows(gram.features.take(np.array([pivot])))[0] - L[:, :done] @ L[pivot, :done]
        L[:, done] = column / np.sqrt(left[pivot])
        left -= L[:, done] ** 2
        left[pivot] = 0.0
        taken.append(pivot)
    return np.array(taken, dtype=np.intp)


def _draw(weight: Vector, random: Any) -> int:
    """One position, with a probability in proportion to its weight."""
    ends = np.cumsum(weight)
    position = int(np.searchsorted(ends, random.uniform(0.0, ends[-1]), side="right"))
    # rounding at the end of the sums must not take one of weight 0
    return position if position < len(weight) and weight[position] > 0 else int(np.argmax(weight))
