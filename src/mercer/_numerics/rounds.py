"""One round of decomposition: a working set is taken from stored rows and solved."""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.smo import solve_block


@compiled()
def gather(values, slots, positions, known, old, block):
    """block[a, b] = values[slots[a], positions[b]]; a slot of -1 is the null sample: zeros.

    Member a was member known[a] of the old block, where its values with other old members are, or is new (-1): only
    rows of new members are read, since the block is symmetric.
    """
    n = slots.shape[0]
    # unsigned numbers spare the test for a negative index
    position, before = np.empty(n, np.uint64), np.empty(n, np.uint64)
    for a in range(n):
        position[a], before[a] = positions[a], known[a]
    for a in range(n):
        line = block[a]
        if slots[a] < 0:
            for b in range(n):
                line[b] = 0.0
        elif known[a] < 0:
            row = values[slots[a]]
            for b in range(n):
                line[b] = row[position[b]]
    for a in range(n):
        if known[a] >= 0 and slots[a] >= 0:
            line, row = block[a], old[known[a]]
            for b in range(n):
                line[b] = row[before[b]] if known[b] >= 0 else block[b, a]
    for a in range(n):
        if slots[a] < 0:
            for b in range(n):
                block[b, a] = 0.0


@compiled()
def solve_members(
    values, slots, members, last, old, block, beta, F, sample, linear, l1, ridge, lower, upper, group, tol, max_steps,
    change,
):  # fmt: skip
    """Solve the problem of a working set to tol: (steps, what the objective gained, whether it has no bound).

    ``members`` are variables, those of the first group first; ``slots`` where the rows of their samples are in
    ``values``, -1 for the null sample; ``last`` the members whose block is ``old``. Fills ``block`` and ``change``, how
    far each member moves. Edits beta.
    """
    m = members.shape[0]
    place = np.empty(beta.shape[0], np.int32)
    for v in range(beta.shape[0]):
        place[v] = -1
    for t in range(last.shape[0]):
        place[last[t]] = t
    known, position = np.empty(m, np.int64), np.empty(m, np.int64)
    b, start = np.empty(m), np.empty(m)
    m_linear, m_l1, m_ridge, m_lower, m_upper = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    score = np.empty(m, block.dtype)
    n_first = 0
    for t in range(m):
        v = members[t]
        known[t] = place[v]
        position[t] = max(0, sample[v]) if slots[t] >= 0 else 0
        b[t], m_linear[t], m_l1[t], m_ridge[t] = beta[v], linear[v], l1[v], ridge[v]
        m_lower[t], m_upper[t] = lower[v], upper[v]
        start[t] = linear[v] - F[sample[v]] - ridge[v] * beta[v]
        score[t] = start[t]
        n_first += group[v] == 0
    gather(values, slots, position, known, old, block)
    steps, _, unbounded = solve_block(block, b, score, m_lower, m_upper, m_l1, m_ridge, n_first, tol, max_steps)
    gained = 0.0
    for t in range(m):
        v = members[t]
        change[t] = b[t] - beta[v]
        # exact along the path: the mean of the slopes at both ends times the change
        gained += 0.5 * (start[t] + score[t]) * change[t] - l1[v] * (abs(b[t]) - abs(beta[v]))
        beta[v] = b[t]
    return steps, gained, unbounded


@compiled()
def by_group(chosen, group):
    """The variables of the first group, then the others, each in their order."""
    ordered = np.empty(chosen.shape[0], chosen.dtype)
    count = 0
    for g in range(2):
        for t in range(chosen.shape[0]):
            if (group[chosen[t]] == 0) == (g == 0):
                ordered[count] = chosen[t]
                count += 1
    return ordered
