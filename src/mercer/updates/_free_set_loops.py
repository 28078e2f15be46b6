"""Newton's steps over the free variables, with the inverse of their matrix. In R, row and column 0 are the border.

    R = [0  1']⁻¹      or, without a sum,      R = [0    0   ]
        [1  K ]                                    [0   K⁻¹ ]

K are the kernel values of the free variables plus their ridge. A variable that joins or leaves changes R by rank one.
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.tiles import add_rows_product
from mercer.problems._optimality_loops import LEVELS, M_LOW, M_UP, N_FREE, OUTSIDE, TOTAL, optimality_sums

# a Schur complement below this share of a variable's own kernel value counts as 0
SINGULAR = 1e-9
# the sum may differ by so much, relative to the sum of absolute values
SUM_ROUNDING = 1e-13
# no finite violation is larger: only free variables join
ONLY_FREE = float(np.finfo(np.float64).max)
# rounds without progress after which `follow` gives up
MOST_IDLE = 4
# how `follow` ends: the violation is at most tol, steps or rounds are used up, no progress, R is spoilt, variables that
# join need columns or are many
DONE, LIMIT, STUCK, SPOILT, NEEDS = range(5)


@compiled()
def _choose_joins(beta, F, linear, l1, ridge, lower, upper, level, least, most, members, count, joins, found):
    """Fill ``joins`` with free variables that are no members, and those that violate optimality by more than ``least``.

    A variable violates optimality by how much its rate (see `problems/dual.py`) is beyond ``level``, the threshold. Of
    more than ``most`` violating variables the worst join. Returns how many join. Writes to ``found``.
    """
    for v in range(beta.shape[0]):
        b, low, high, kink = beta[v], lower[v], upper[v], l1[v]
        s = linear[v] - F[v] - ridge[v] * b - level
        up = s - (kink if b >= 0.0 else -kink) if b < high else -np.inf
        down = -s - (kink if b <= 0.0 else -kink) if b > low else -np.inf
        free = (b > low) & (b < high) & ((b != 0.0) | (kink == 0.0))
        found[v] = np.inf if free else max(up, down)
    for t in range(count):
        if members[t] >= 0:
            found[members[t]] = -np.inf
    for attempt in range(8):
        chosen, violating, largest = 0, 0, least
        for v in range(beta.shape[0]):
            if found[v] > least and (found[v] == np.inf or attempt < 7 or violating < most):
                joins[chosen] = v
                chosen += 1
                if found[v] < np.inf:
                    violating += 1
                    largest = max(largest, found[v])
        if violating <= most:
            break
        least = 0.5 * (least + largest)
    return chosen


@compiled(fast=True)
def _times(R, size, h, out):
    """out = R h."""
    for i in range(size):
        row, total = R[i], 0.0
        for j in range(size):
            total += row[j] * h[j]
        out[i] = total


@compiled(fast=True)
def _append(R, count, k, itself, work):
    """Let a variable join the others, with which it has the kernel values k (k[0] is the border); False if singular."""
    size = count + 1
    if count == 0:
        if k[0] != 0.0:
            R[0, 0], R[0, 1], R[1, 0], R[1, 1] = -itself, 1.0, 1.0, 0.0
        else:
            R[0, 0], R[0, 1], R[1, 0], R[1, 1] = 0.0, 0.0, 0.0, 1.0 / itself
        return itself > 0.0
    _times(R, size, k, work)
    s = itself
    for i in range(size):
        s -= k[i] * work[i]
    if not s > SINGULAR * itself:
        return False
    for i in range(size):
        row, share = R[i], work[i] / s
        for j in range(size):
            row[j] += share * work[j]
        row[size] = -share
        R[size, i] = -share
    R[size, size] = 1.0 / s
    return True


@compiled(fast=True)
def _drop(R, count, i, work):
    """Let the variable with slot i leave; the last variable takes its slot. False if the inverse is spoilt."""
    last = count
    if count > 1:
        pivot = R[i, i]
        if not pivot > 0.0:
            return False
        for j in range(last + 1):
            work[j] = R[i, j]
        for a in range(last + 1):
            row, share = R[a], work[a] / pivot
            for j in range(last + 1):
                row[j] -= share * work[j]
    for j in range(last + 1):
        R[i, j] = R[last, j]
    for j in range(last):
        R[j, i] = R[j, last]
    R[i, i] = R[last, last]
    return True


@compiled()
def _is_free(b, low, high, kink):
    return low < b < high and (b != 0.0 or kink == 0.0)


@compiled()
def _end(d, side, low, high):
    """Where a variable that moves in direction d ends: at its bound, or at the kink."""
    if d > 0.0:
        return min(high, 0.0) if side < 0.0 else high
    return max(low, 0.0) if side > 0.0 else low


@compiled()
def _newton_steps(
    values, width, place, R, members, count, joins, beta, F, linear, l1, ridge, lower, upper, bordered, missing, level,
    limit,
):  # fmt: skip
    """Minimise over the free variables and those that join. Edits β and F, ``members`` and R.

    ``members[t]`` is the variable with slot t + 1, or -1 if its sample has left. Kernel values of all members are rows
    of ``values`` (of ``width`` numbers), at their places. A step that would leave the box ends at its bound: the
    variable that meets it is free no longer, and the others go on. Returns the number of members (-1 if R is spoilt)
    and of steps.
    """
    h, delta, work, begin, side, change = np.empty((6, len(R)))
    moved, n_moved = np.empty(len(R), place.dtype), 0
    for t in range(count - 1, -1, -1):
        v = members[t]
        if v < 0 or not _is_free(beta[v], lower[v], upper[v], l1[v]):
            if not _drop(R, count, t + 1, work):
                return -1, 0
            count -= 1
            members[t] = members[count]
    for v in joins:
        h[0] = 1.0 if bordered else 0.0
        row = values[place[v]]
        for t in range(count):
            h[t + 1] = row[place[members[t]]]
        if _append(R, count, h, row[place[v]] + ridge[v], work):
            members[count] = v
            count += 1
    h[0] = missing
    for t in range(count):
        v = members[t]
        b, s = beta[v], linear[v] - F[v] - ridge[v] * beta[v]
        side[t] = 0.0 if l1[v] == 0.0 else (np.sign(b) if b != 0.0 else np.sign(s - level))
        h[t + 1] = s - l1[v] * side[t]
        begin[t] = b
    steps = 0
    while count > 0 and steps < limit:
        steps += 1
        _times(R, count + 1, h, delta)
        length, who, end = 1.0, -1, 0.0
        for t in range(count):
            v, d = members[t], delta[t + 1]
            bound = _end(d, side[t], lower[v], upper[v])
            if abs(d) * length > abs(bound - beta[v]):
                length, who, end = abs(bound - beta[v]) / abs(d), t, bound
        for t in range(count):
            v, d = members[t], delta[t + 1]
            bound, b = _end(d, side[t], lower[v], upper[v]), beta[v] + length * d
            beta[v] = min(b, bound) if d > 0.0 else max(b, bound)  # rounding may lead beyond the bound
            h[t + 1] -= length * (h[t + 1] - delta[0])
        h[0] *= 1.0 - length
        if who < 0:
            break
        v = members[who]
        beta[v] = end
        moved[n_moved], change[n_moved] = place[v], end - begin[who]
        n_moved += 1
        if not _drop(R, count, who + 1, work):
            count = -count
            break
        count -= 1
        members[who], side[who], begin[who], h[who + 1] = members[count], side[count], begin[count], h[count + 1]
    for t in range(abs(count)):
        v = members[t]
        if beta[v] != begin[t] and not (count < 0 and t == who):
            moved[n_moved], change[n_moved] = place[v], beta[v] - begin[t]
            n_moved += 1
    total = np.zeros(width)
    add_rows_product(values, moved[:n_moved], change[:n_moved], 0, width, total)
    for v in range(len(F)):
        F[v] += total[place[v]]
    return max(count, -1), steps


@compiled()
def follow(
    values, width, stored, place, R, members, count, beta, F, linear, l1, ridge, lower, upper, group, bordered, total,
    tol, least, most, many, limit, rounds, first, joins, groups, totals,
):  # fmt: skip
    """Rounds of Newton's steps until the violation is at most tol and the sum is ``total``. Edits β, F, R and members.

    Fills groups and totals (see `optimality_sums`). ``first`` is whether this is the first call: as long as the sum is
    wrong then, only free variables are members. The first ``stored`` places have stored columns. Returns how it ended,
    and the number of members, of steps, and of variables in ``joins`` that need columns or more room.
    """
    steps, idle, previous, found = 0, 0, np.inf, np.empty(len(beta))
    for k in range(rounds + 1):
        optimality_sums(beta, F, linear, l1, ridge, lower, upper, group, groups, totals)
        m, M, missing = groups[0, M_UP], groups[0, M_LOW], 0.0
        violation, size = m - M if bordered else max(m, -M), 0.0
        if bordered:
            missing = total - groups[0, TOTAL]
            for v in range(len(beta)):
                size += abs(beta[v])
        whole = abs(missing) <= SUM_ROUNDING * size
        if not totals[OUTSIDE] <= 0.0 or not np.isfinite(violation):
            return STUCK, count, steps, 0
        if violation <= tol and whole:
            return DONE, count, steps, 0
        idle = 0 if violation < 0.9 * previous else idle + 1
        previous = min(previous, violation)
        if idle > MOST_IDLE:
            return STUCK, count, steps, 0
        if k == rounds or steps >= limit:
            return LIMIT, count, steps, 0
        level = 0.0
        if bordered:
            level = groups[0, LEVELS] / groups[0, N_FREE] if groups[0, N_FREE] > 0.0 else 0.5 * (m + M)
        # before the free variables have made up for the samples that left, others violate optimality for a while
        above = ONLY_FREE if first and k == 0 and not whole else least
        chosen = _choose_joins(
            beta, F, linear, l1, ridge, lower, upper, level, above, most, members, count, joins, found
        )
        ready = chosen <= many and count + chosen < len(R)
        for t in range(chosen):
            ready = ready and place[joins[t]] < stored
        if not ready:
            return NEEDS, count, steps, chosen
        count, taken = _newton_steps(
            values, width, place, R, members, count, joins[:chosen], beta, F, linear, l1, ridge, lower, upper, bordered,
            missing, level, limit - steps,
        )  # fmt: skip
        steps += taken
        if count < 0:
            optimality_sums(beta, F, linear, l1, ridge, lower, upper, group, groups, totals)
            return SPOILT, 0, steps, 0
    return LIMIT, count, steps, 0
