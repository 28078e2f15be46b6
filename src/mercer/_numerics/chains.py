"""One of many problems on parts of the same matrix: folds, pairs of classes, values of C."""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.maps import apply_map
from mercer._numerics.rounds import by_group, gather
from mercer._numerics.smo import solve_block
from mercer._numerics.tiles import add_rows_product
from mercer._numerics.working_set import choose, group_extremes, score_all

# a block is solved to this share of the violation, and at last of tol
BLOCK_TOL, LAST_TOL = 0.1, 0.8
STEPS_PER_MEMBER = 200
# new members of a working set: a share of the variables, at least so many
VARIABLES_PER_NEW, FEWEST_NEW = 16, 32
# rounds without an improvement of the violation after which the run has come as far as float32 allows
PATIENCE = 40


@compiled()
def advance(
    K, sample, beta, F, linear, l1, ridge, lower, upper, group, n_groups, null, ranges, memory, tol, max_rounds
):  # fmt: skip
    """Descend until the violation is at most tol, from a feasible beta. Edits beta and F; (steps, violation, rounds).

    ``sample`` are the rows of K of the variables. F = K beta is kept at the columns in ``ranges``, (start, stop) each,
    which must hold all samples; it has one entry more, for the null sample (``null`` is its variable or -1). ``memory``
    is for two blocks, each the square of a working set, which holds the worst violators and, if there is room,
    the free variables and the last members.
    """
    n = beta.shape[0]
    up, low, extremes = np.empty(n), np.empty(n), np.empty((2, 2))
    size = int(np.sqrt(memory.shape[1]))
    which, place = 0, np.full(n, -1, np.int32)
    last = np.empty(0, np.int64)
    steps, violation, best, idle = 0, np.inf, np.inf, 0
    rounds = 0
    while rounds < max_rounds:
        score_all(beta, F, sample, linear, l1, ridge, lower, upper, up, low)
        group_extremes(up, low, group, extremes)
        violation = extremes[0, 0] - extremes[0, 1]
        if n_groups > 1:
            violation = max(violation, extremes[1, 0] - extremes[1, 1])
        if not violation > tol:
            break
        idle = 0 if violation < 0.95 * best else idle + 1
        best = min(best, violation)
        if idle > PATIENCE or violation == np.inf:
            break
        rounds += 1
        # the free variables stay in, then the last members: what was of use will be again
        previous, n_free = np.empty(n, np.int64), 0
        for v in range(n):
            if lower[v] < beta[v] < upper[v] and (beta[v] != 0.0 or l1[v] == 0.0):
                previous[n_free] = v
                n_free += 1
        n_new = max(FEWEST_NEW, min(n // VARIABLES_PER_NEW, size // 2))
        room = min(size, n_free + 2 * n_new)
        rest = min(n - n_free, last.shape[0])
        for t in range(rest):
            previous[n_free + t] = last[t]
        members = by_group(
            choose(up, low, group, n_groups, extremes, previous[: n_free + rest], n_new, room, null), group
        )
        m = members.shape[0]
        for t in range(last.shape[0]):
            place[last[t]] = t
        known, slots, positions = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
        b, begin, score = np.empty(m), np.empty(m), np.empty(m, K.dtype)
        m_l1, m_ridge, m_lower, m_upper = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
        n_first = np.int64(0)  # a literal 0 would compile the block's solver twice
        for t in range(m):
            v = members[t]
            known[t] = place[v]
            slots[t] = -1 if v == null else sample[v]
            positions[t] = max(0, slots[t])
            b[t], m_l1[t], m_ridge[t], m_lower[t], m_upper[t] = beta[v], l1[v], ridge[v], lower[v], upper[v]
            begin[t] = beta[v]
            score[t] = linear[v] - F[sample[v]] - ridge[v] * beta[v]
            n_first += group[v] == 0
        for t in range(last.shape[0]):
            place[last[t]] = -1
        old = memory[which, : last.shape[0] ** 2].reshape((last.shape[0], last.shape[0]))
        which = 1 - which
        block = memory[which, : m * m].reshape((m, m))
        gather(K, slots, positions, known, old, block)
        last = members
        taken, _, unbounded = solve_block(
            block, b, score, m_lower, m_upper, m_l1, m_ridge, n_first,
            max(LAST_TOL * tol, BLOCK_TOL * violation), STEPS_PER_MEMBER * m,
        )  # fmt: skip
        steps += taken
        if unbounded:
            return steps, np.inf, rounds
        moved = np.empty(m, np.int64)
        count = 0
        for t in range(m):
            beta[members[t]] = b[t]
            if b[t] != begin[t] and slots[t] >= 0:
                moved[count] = t
                count += 1
        rows, change = np.empty(count, np.int64), np.empty(count)
        for t in range(count):
            rows[t] = slots[moved[t]]
            change[t] = b[moved[t]] - begin[moved[t]]
        for r in range(ranges.shape[0]):
            add_rows_product(K, rows, change, ranges[r, 0], ranges[r, 1], F)
    return steps, violation, rounds


@compiled()
def map_sums(code, params, sums, start, stop, out):
    """out[start:stop] = phi of these rows of sums, which are distances where phi needs them (see maps)."""
    line, norms = np.empty(sums.shape[1], sums.dtype), np.empty(0, sums.dtype)
    for i in range(start, stop):
        for j in range(sums.shape[1]):  # a slice would compile numpy's message about shapes, for seconds
            line[j] = sums[i, j]
        apply_map(code, params, line, sums.dtype.type(0.0), norms, out[i])
