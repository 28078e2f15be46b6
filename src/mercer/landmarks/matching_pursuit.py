"""Which samples become landmarks next: orthogonal matching pursuit of what the landmarks lose.

With R = K − K̂ and g = Rβ, a further landmark i turns R into R − RₑᵢRᵢₑ/rᵢ, where rᵢ = Rᵢᵢ, and lowers q = β'Rβ by
gᵢ²/rᵢ. Candidates are drawn, g is computed for them, and they are taken one after the other by this gain: a pivoted
Cholesky factorisation of their part of R whose pivots are the largest gains (Pati, Rezaiifar & Krishnaprasad, 1993;
Smola & Schölkopf, 2000, for kernels). Half of the candidates are drawn ∝ β²r, their own part of q; the other half ∝ r,
since the samples that pay most need not span best: in noisy sets they are outliers.
"""

from __future__ import annotations

import numpy as np

from mercer.kernels.features import Matrix, Vector

# candidates for each landmark, and at most this many beyond the landmarks themselves
CANDIDATES, MOST_CANDIDATES = 6, 1500
# pivots between two updates of R
STEP = 64


def candidate_count(count: int) -> int:
    """How many samples are drawn to choose ``count`` landmarks."""
    return max(count, min(CANDIDATES * count, count + MOST_CANDIDATES))


def candidate_shares(beta: Vector, residual: Vector, paid: float, total: float) -> Vector:
    """Probabilities of the candidates up to a factor; ``paid`` is Σβ²r of all samples, ``total`` Σr."""
    share = residual / total if total > 0 else np.zeros(len(residual))
    return share + beta**2 * residual / paid if paid > 0 else share


def pursue(g: Vector, R: Matrix, count: int, least: float) -> Vector:
    """The numbers of at most ``count`` candidates, the best first, from their g and their matrix R. Edits both.

    A candidate whose residual is at most ``least`` depends on those that were taken, and is left out.
    """
    r = np.diagonal(R).copy()
    chosen: list[int] = []
    while len(chosen) < min(count, len(g)):
        columns = np.empty((0, len(g)))
        for _ in range(min(STEP, count - len(chosen))):
            gain = np.where(r > least, g**2 / np.maximum(r, least), -1.0)
            j = int(gain.argmax())
            if gain[j] < 0:
                return np.array(chosen, dtype=np.intp)
            column = (R[j] - columns[:, j] @ columns) / np.sqrt(r[j])
            g -= column * (g[j] / np.sqrt(r[j]))
            r -= column**2
            r[j] = 0.0
            columns = np.vstack([columns, column])
            chosen.append(j)
        R -= columns.T @ columns
    return np.array(chosen, dtype=np.intp)
