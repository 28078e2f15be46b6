"""Low-rank approximations K ≈ LL' by blocked pivoted Cholesky, and the choice of landmarks.

The pivots of a block are the samples with the largest diagonal entries of the residual K − LL'. Their columns of the
residual are computed for all samples; a pivoted Cholesky factorisation inside the block drops columns that depend on
others of the block. The residual stays positive semidefinite, so its trace bounds its norm. Harbrecht, Peters &
Schneider, *On the low-rank approximation by the pivoted Cholesky decomposition* (2012).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from mercer._compiled.blas import one_blas_thread
from mercer.gram.operator import GramOperator
from mercer.kernels.features import Matrix, Vector

# ways to choose landmarks ([M5] "dictionary methods")
SELECTIONS = ("uniform", "kmeans++", "cholesky", "random_cholesky")
# pivots chosen together
BLOCK = 64
# a pivot of a block is used if it is at least this share of the first one
SHARE = 1e-2


class LowRank(NamedTuple):
    """L, its pivots, ``rest``: the trace of K − LL', which bounds its norm, and ``exact``: whether it is within tol."""

    L: Matrix
    pivots: Vector
    rest: float
    exact: bool


def whole_cholesky(K: Matrix) -> tuple[Matrix, Vector]:
    """(L, pivots) with LL' = K up to rounding, of a stored K: a column for each rank; L[pivots] is lower triangular."""
    with one_blas_thread():
        factored, order, rank, _ = linalg.lapack.dpstrf(K.T, lower=1)
    L = np.empty((len(K), rank))
    L[order - 1] = np.tril(factored)[:, :rank]
    return L, order[:rank] - 1


def pivoted_cholesky(
    gram: GramOperator,
    rank: int,
    tol: float,
    scale: Vector | None = None,
    only_exact: bool = False,
    block: int = BLOCK,
) -> LowRank:
    """K ≈ LL' in float64 with at most ``rank`` columns, fewer if the trace of the residual is at most ``tol``.

    With ``scale`` s, the matrix is s_i K[i, j] s_j. For an indefinite matrix the search ends when a pivot is negative.
    With ``only_exact`` it ends when the trace falls too slowly to reach tol. ``block`` pivots are chosen together:
    choosing them one by one gives better pivots, but is slower.
    """
    n = gram.n
    s = np.ones(n) if scale is None else scale
    left = gram.diagonal().astype(np.float64) * s**2
    total = float(np.abs(left).sum()) or 1.0
    # what rounding leaves of a diagonal entry whose exact residual is 0
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
            # the trace falls about geometrically: even at twice this rate there would be too many columns
            fallen, to_fall = np.log(rest / total), np.log(max(tol, rounding) / total)
            if done * to_fall < 2.0 * L.shape[1] * fallen:
                break
    rest = float(left.clip(min=0.0).sum())
    # a residual diagonal within rounding counts as 0; a clearly negative one means that K is indefinite
    explained = rest <= tol or not (left > rounding).any()
    is_kernel = not (left < -max(tol, 100.0 * rounding)).any()
    taken = np.concatenate(pivots) if pivots else np.empty(0, np.intp)
    return LowRank(L[:, :done], taken, rest, bool(explained and is_kernel))


def choose_landmarks(gram: GramOperator, count: int, selection: str, random: Any) -> Vector:
    """The indices of ``count`` samples, or of fewer if these represent all others exactly.

    "uniform" draws without replacement. "kmeans++" draws each with a probability proportional to its squared distance
    in feature space from the nearest landmark so far (Arthur & Vassilvitskii, 2007). "cholesky" takes the sample with
    the largest residual so far and is deterministic. "random_cholesky" draws each with a probability proportional to
    its residual (Chen, Epperly, Tropp & Webber, *Randomly pivoted Cholesky*, 2022).
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
        # rounding gives equal samples a small distance
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
    """Draw one position with a probability proportional to its weight."""
    ends = np.cumsum(weight)
    position = int(np.searchsorted(ends, random.uniform(0.0, ends[-1]), side="right"))
    # rounding at the end of the cumulative sums must not draw a position of weight 0
    return position if position < len(weight) and weight[position] > 0 else int(np.argmax(weight))
