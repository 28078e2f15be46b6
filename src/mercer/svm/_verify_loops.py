"""F = K b in float64 at the samples that decide a certificate: see `mercer.svm.verify`.

`exact_values` verifies a pair of classes in one call: threads that verify pairs side by side would wait for the
interpreter between the calls of `verify.exact_rows` (decision 012).
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.tiles import _pack, add_block_product, add_rows_product, fill_block
from mercer.problems._optimality_loops import SAFETY, fill_slack, optimality_sums, threshold

# rows of a block of values: few, since each block computes its part of the diagonal twice
HEIGHT = 48


@compiled()
def _take_rows(X, index, chosen, count, rows, norms):
    """Copy the samples X[index[chosen]], in the precision of ``rows``, and compute their squared norms."""
    for t in range(count):
        i, total = index[chosen[t]], 0.0
        for k in range(X.shape[1]):
            rows[t, k] = X[i, k]
            total += rows[t, k] * rows[t, k]
        norms[t] = total


@compiled(compact=True)
def exact_values(
    formula, X, index, beta, F, linear, l1, ridge, lower, upper, group, near, slack, groups, totals
):  # fmt: skip
    """Recompute F in float64 where loss or violation may not be zero. Returns the number of kernel values.

    The problem has the samples X[index]; F comes from float32 values. F is verified at samples with weight and at
    samples within a margin of a kink of the loss: ``near``, or SAFETY times the largest error of F seen if that is
    more. Edits F. Fills ``slack`` with -inf at verified samples, and groups and totals (see `optimality_sums`).
    """
    n, d, width = beta.shape[0], X.shape[1], 8
    support, level = np.empty(n, np.int64), np.empty(1)
    s = np.int64(0)
    for v in range(n):
        if beta[v] != 0.0:
            support[s] = v
            s += 1
    optimality_sums(beta, F, linear, l1, ridge, lower, upper, group, groups, totals)
    level[0] = threshold(groups[0])
    fill_slack(beta, F, linear, l1, ridge, lower, upper, group, level, slack)
    for v in range(n if s == 0 else 0):
        F[v], slack[v] = 0.0, -np.inf
    n_panels, zero = (s + width - 1) // width, np.int64(0)
    rows, norms, panels = np.empty((s, d)), np.empty(s), np.empty((n_panels, d, width))
    weights, exact, some = np.empty(s), np.empty(max(s, HEIGHT)), np.empty(HEIGHT, np.int64)
    _take_rows(X, index, support, s, rows, norms)
    _pack(rows, panels)
    for t in range(s):
        weights[t], exact[t] = beta[support[t]], 0.0
    for t in range(HEIGHT):
        some[t] = t
    values = 0
    for start in range(0, s, HEIGHT):
        height, length = min(HEIGHT, s - start), s - start
        block, mine, of_mine = np.empty((height, length)), exact[start:], weights[start:]
        stop = start + height
        fill_block(formula, rows[start:stop], norms[start:stop], panels, norms, start // width, n_panels, block)
        values += height * length
        add_block_product(block, of_mine, mine)
        add_rows_product(block, some[:height], of_mine, height, length, mine)
    error = 0.0
    for t in range(s):
        error = max(error, abs(exact[t] - F[support[t]]))
        F[support[t]] = exact[t]
    others, other_norms = np.empty((HEIGHT, d)), np.empty(HEIGHT)
    for _ in range(3):
        margin = max(near, SAFETY * error) if np.isfinite(error) else np.inf
        v, verified = 0, 0
        while v < n:
            count = 0
            while v < n and count < HEIGHT:
                if -np.inf < slack[v] < margin:
                    some[count], slack[v] = v, -np.inf
                    count += 1
                v += 1
            if count == 0:
                break
            _take_rows(X, index, some, count, others, other_norms)
            block = np.empty((count, s))
            fill_block(formula, others[:count], other_norms[:count], panels, norms, zero, n_panels, block)
            for t in range(count):
                exact[t] = 0.0
            add_block_product(block, weights, exact)
            for t in range(count):
                error = max(error, abs(exact[t] - F[some[t]]))
                F[some[t]] = exact[t]
            values, verified = values + count * s, verified + count
        if verified == 0:
            break
    optimality_sums(beta, F, linear, l1, ridge, lower, upper, group, groups, totals)
    return values
