"""F = K b of one small problem in float64 where it matters, in one call: see ``solvers.judge``."""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.optimality import survey, threshold
from mercer._numerics.tiles import add_block_product, add_rows_product, pack
from mercer._numerics.values import fill_block
from mercer._numerics.working_set import slack_of

# rows of a block of values: low steps of the triangle compute few values twice
HEIGHT = 48
# F that was tracked is trusted this many times the largest error seen
SAFETY = 4.0


@compiled()
def _take_rows(X, index, rows, norms):
    """Copy some samples, in the precision of ``rows``, and compute their squared norms."""
    for t in range(index.shape[0]):
        source, target = X[index[t]], rows[t]
        total = 0.0
        for k in range(source.shape[0]):
            target[k] = source[k]
            total += target[k] * target[k]
        norms[t] = total


@compiled()
def exact_values(
    plan, X, index, beta, F, linear, l1, ridge, lower, upper, group, near, groups, totals
):  # fmt: skip
    """Make F exact where a loss or a violation may not be zero; how many values that took.

    The problem is that of the samples X[index]. F is tracked; samples with weight are judged, and those within a
    margin of a kink of the loss: at least ``near``, and SAFETY times the largest error of F that was seen. Then fills
    what `survey` finds in groups and totals.
    """
    n, d, width = beta.shape[0], X.shape[1], 8
    support, weights = np.empty(n, np.int64), np.empty(n)
    s = 0
    for v in range(n):
        if beta[v] != 0.0:
            support[s], weights[s] = v, beta[v]
            s += 1
    support, weights = support[:s], weights[:s]
    slack, level = np.empty(n), np.empty(1)
    survey(beta, F, linear, l1, ridge, lower, upper, group, groups, totals)
    level[0] = threshold(groups[0])
    slack_of(beta, F, linear, l1, ridge, lower, upper, group, level, slack)
    rows, norms, exact = np.empty((s, d)), np.empty(s), np.zeros(s)
    _take_rows(X, index[support], rows, norms)
    n_panels, zero = (s + width - 1) // width, np.int64(0)
    panels = np.empty((n_panels, d, width))
    pack(rows, zero, n_panels, panels)
    memory, some = np.empty(HEIGHT * s), np.arange(HEIGHT)
    values = 0
    for start in range(0, s, HEIGHT):
        stop = min(start + HEIGHT, s)
        height, length = stop - start, s - start
        block = memory[: height * length].reshape((height, length))
        fill_block(plan, rows[start:stop], norms[start:stop], panels, norms, start // width, n_panels, block)
        values += height * length
        add_block_product(block, weights[start:], exact[start:stop])
        add_rows_product(block, some[:height], weights[start:stop], height, length, exact[start:])
    error = 0.0
    for t in range(s):
        error = max(error, abs(exact[t] - F[support[t]]))
        F[support[t]] = exact[t]
    todo, found = np.empty(HEIGHT, np.int64), np.empty(HEIGHT)
    others, other_norms = np.empty((HEIGHT, d)), np.empty(HEIGHT)
    for _ in range(3):
        margin = max(near, SAFETY * error) if np.isfinite(error) else np.inf
        v, judged = 0, 0
        while v < n:
            count = 0
            while v < n and count < HEIGHT:
                if beta[v] == 0.0 and slack[v] < margin:
                    todo[count], slack[v] = v, np.inf  # but once
                    count += 1
                v += 1
            if count == 0 or s == 0:
                break
            _take_rows(X, index[todo[:count]], others, other_norms)
            block = memory[: count * s].reshape((count, s))
            fill_block(plan, others[:count], other_norms[:count], panels, norms, zero, n_panels, block)
            for t in range(count):
                found[t] = 0.0
            add_block_product(block, weights, found[:count])
            for t in range(count):
                error = max(error, abs(found[t] - F[todo[t]]))
                F[todo[t]] = found[t]
            values, judged = values + count * s, judged + count
        if judged == 0:
            break
    survey(beta, F, linear, l1, ridge, lower, upper, group, groups, totals)
    return values
