"""Newton's steps over the free variables, with the inverse of their matrix. In R, row and column 0 are the border.

    R = [0  1']⁻¹      or, without a sum,      R = [0    0   ]
        [1  K ]                                    [0   K⁻¹ ]

K are the kernel values of the free variables plus their ridge. A variable that joins or leaves changes R by rank one.
"""

from typing import Any, NamedTuple

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.tiles import _dot, add_rows_product
from mercer.problems._optimality_loops import LEVELS, M_LOW, M_UP, N_FREE, OUTSIDE, TOTAL, optimality_sums
from mercer.svm._block_newton_loops import _add

# a Schur complement below this share of a variable's own kernel value counts as 0
SINGULAR = 1e-9
# the sum may differ by this share of the sum of absolute values
SUM_ROUNDING = 1e-13
# attempts to find a violation above which few enough variables are
ATTEMPTS = 8
# no finite violation is larger: only free variables join
ONLY_FREE = float(np.finfo(np.float64).max)
# most variables that meet their bounds in a round
STEPS_AT_ONCE = 64
# a round makes progress if the violation falls below this share; rounds without after which `follow` gives up
PROGRESS, MOST_IDLE = 0.9, 8
# how `follow` ends: the violation is at most tol, steps or rounds are used up, no progress, R is spoilt, variables that
# join need columns or are many
DONE, LIMIT, STUCK, SPOILT, NEEDS = range(5)


class StoredColumns(NamedTuple):
    """Columns of K, each as a row of ``values`` with ``width`` numbers; the first ``count`` places have them.

    In the program that comes with them, ``sample[v]`` is the place of the sample of variable v.
    """

    values: Any
    width: Any
    count: Any


class Inverse(NamedTuple):
    """R, and the variables of its rows: ``members[t]`` has row t + 1, or is -1 if its sample has left."""

    R: Any
    members: Any


class Bounds(NamedTuple):
    """When a descent ends, and how many variables may join.

    Attributes
    ----------
    tol : the violation at which it ends.
    least : the violation above which a variable joins.
    most : how many violating variables join in a round.
    many : how many variables join without a new inverse.
    steps, rounds : at most so many.
    """

    tol: Any
    least: Any
    most: Any
    many: Any
    steps: Any
    rounds: Any


class Found(NamedTuple):
    """What a descent fills: the variables that would join, and groups and totals of `optimality_sums`."""

    joins: Any
    groups: Any
    totals: Any


@compiled()
def _choose_joins(program, beta, F, level, least, most, members, count, joins, found):
    """Fill ``joins`` with free variables that are no members, and those that violate optimality by more than ``least``.

    A variable violates optimality by how much its rate (see `problems/dual.py`) is beyond ``level``, the threshold. Of
    more than ``most`` violating variables the worst join. Returns how many join. Writes to ``found``.
    """
    linear, l1, ridge, lower, upper = program.linear, program.l1, program.ridge, program.lower, program.upper
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
    for attempt in range(ATTEMPTS):
        chosen, violating, largest = 0, 0, least
        for v in range(beta.shape[0]):
            if found[v] > least and (found[v] == np.inf or attempt < ATTEMPTS - 1 or violating < most):
                joins[chosen] = v
                chosen += 1
                if found[v] < np.inf:
                    violating += 1
                    largest = max(largest, found[v])
        if violating <= most:
            break
        least = 0.5 * (least + largest)
    return chosen


@compiled()
def _add_changes(R, size, U, factors, n_changes):
    """R += sum_c factors[c] U[c] U[c]', in one pass over R."""
    for i in range(size):
        row = R[i, :size]
        for c in range(n_changes):
            if U[c, i] != 0.0:
                _add(factors[c] * U[c, i], U[c, :size], row)


@compiled()
def _join(R, count, members, joins, values, place, ridge, bordered):
    """Let variables join, unless the matrix would be singular. Edits R and members; returns the number of members.

    A variable with the kernel values k at the others, and κ with itself, changes R by vv' / s with v = [Rk; -1] and the
    Schur complement s = κ - k'Rk.
    """
    if len(joins) == 0:
        return count
    first, m, size = 0, len(joins), count + 1
    if count == 0:
        v = joins[0]
        itself = values[place[v], place[v]] + ridge[v]
        R[:2, :2] = 0.0
        if bordered:
            R[0, 0], R[0, 1], R[1, 0] = -itself, 1.0, 1.0
        elif itself > 0.0:
            R[1, 1] = 1.0 / itself
        else:
            return count
        members[0], first, count, size = v, 1, 1, 2
    U, k, factors, joined = np.zeros((m, size + m)), np.zeros((m, size + m)), np.empty(m), 0
    for c in range(first, m):
        row = values[place[joins[c]]]
        k[c, 0] = 1.0 if bordered else 0.0
        for t in range(count):
            k[c, t + 1] = row[place[members[t]]]
    for i in range(size):
        row = R[i, :size]
        for c in range(first, m):
            U[c, i] = _dot(row, k[c, :size])
    for c in range(first, m):
        v, row, end = joins[c], values[place[joins[c]]], size + joined
        for t in range(joined):
            k[c, size + t] = row[place[members[count + t]]]
        u = U[c]
        for t in range(joined):
            _add(factors[t] * _dot(U[t, :end], k[c, :end]), U[t, :end], u[:end])
        itself = row[place[v]] + ridge[v]
        s = itself - _dot(k[c, :end], u[:end])
        if s > SINGULAR * itself:
            u[end] = -1.0
            U[joined], factors[joined], members[count + joined] = u, 1.0 / s, v
            joined += 1
    R[size : size + joined, : size + joined] = 0.0
    R[:size, size : size + joined] = 0.0
    _add_changes(R, size + joined, U, factors, joined)
    return count + joined


@compiled()
def _column(R, size, i, U, factors, n_changes, out):
    """out = column i of R + sum_c factors[c] U[c] U[c]'; returns its entry i."""
    out[:size] = R[i, :size]
    for c in range(n_changes):
        _add(factors[c] * U[c, i], U[c, :size], out[:size])
    return out[i]


@compiled()
def _leave(R, count, members, leaving, U, factors, n_leaving):
    """Let the members ``leaving`` leave, which change R by the columns U. Edits R and members; returns their number."""
    _add_changes(R, count + 1, U, factors, n_leaving)
    for c in range(n_leaving):
        members[leaving[c]] = -1
    # the last members take the places of those that left
    t = 0
    while t < count:
        if members[t] >= 0:
            t += 1
            continue
        count -= 1
        if t < count:
            members[t] = members[count]
            i, last = t + 1, count + 1
            R[i, : last + 1] = R[last, : last + 1]
            for j in range(last + 1):
                R[j, i] = R[i, j] if j != i else R[last, last]
            R[i, i] = R[last, last]
    return count


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
def _newton_steps(columns, program, inverse, count, joins, beta, F, bordered, missing, level, limit):
    """Minimise over the free variables and those that join. Edits β, F and the inverse, which has ``count`` members.

    Kernel values of all members are stored. The step is δ = R h, with h the rates of the members and what is missing
    of the sum. If it would leave the box, it ends at its bound, after a part τ of δ. The variable i that meets it is
    free no longer: what is left of the step is (1 - τ)δ, changed by the multiple of column i of R that makes δ_i zero.
    Returns the number of members (-1 if R is spoilt) and of steps.
    """
    values, width, place, R, members = columns.values, columns.width, program.sample, inverse.R, inverse.members
    linear, l1, ridge, lower, upper = program.linear, program.l1, program.ridge, program.lower, program.upper
    n_leaving, room = 0, min(limit, count + len(joins))
    U, factors = np.empty((min(room, STEPS_AT_ONCE), len(R))), np.empty(min(room, STEPS_AT_ONCE))
    leaving = np.empty(min(room, STEPS_AT_ONCE), place.dtype)
    for t in range(count):
        v = members[t]
        if v < 0 or not _is_free(beta[v], lower[v], upper[v], l1[v]):
            if n_leaving == len(U):
                return -1, 0
            pivot = _column(R, count + 1, t + 1, U, factors, n_leaving, U[n_leaving])
            if not pivot > 0.0 and count - n_leaving > 1:
                return -1, 0
            leaving[n_leaving], factors[n_leaving] = t, -1.0 / pivot if pivot > 0.0 else 0.0
            n_leaving += 1
    count = _leave(R, count, members, leaving, U, factors, n_leaving)
    count = _join(R, count, members, joins, values, place, ridge, bordered)
    if count == 0:
        return 0, 0
    size, n_leaving, steps = count + 1, 0, 0
    h, delta, begin, side = np.empty((4, size))
    h[0] = missing
    for t in range(count):
        v = members[t]
        b, s = beta[v], linear[v] - F[v] - ridge[v] * beta[v]
        side[t] = 0.0 if l1[v] == 0.0 else (np.sign(b) if b != 0.0 else np.sign(s - level))
        # without the level, which only changes the threshold, so that rounding vanishes with the step
        h[t + 1] = s - l1[v] * side[t] - level
        begin[t] = b
    for i in range(size):
        delta[i] = _dot(R[i, :size], h)
    while True:
        steps += 1
        length, who, end = 1.0, -1, 0.0
        for t in range(count):
            v, d = members[t], delta[t + 1]
            bound = _end(d, side[t], lower[v], upper[v])
            if abs(d) * length > abs(bound - beta[v]):
                length, who, end = abs(bound - beta[v]) / abs(d), t, bound
        for t in range(count):
            v, d = members[t], delta[t + 1]
            if d != 0.0:
                bound, b = _end(d, side[t], lower[v], upper[v]), beta[v] + length * d
                beta[v] = min(b, bound) if d > 0.0 else max(b, bound)  # rounding may lead beyond the bound
        if who < 0:
            break
        beta[members[who]] = end
        u = U[n_leaving]
        pivot = _column(R, size, who + 1, U, factors, n_leaving, u)
        for c in range(n_leaving):
            u[leaving[c] + 1] = 0.0  # it is 0 but for rounding
        if count - n_leaving == 1:
            leaving[n_leaving], factors[n_leaving] = who, 0.0
            n_leaving += 1
            break
        if not pivot > 0.0:
            count = -count
            break
        leaving[n_leaving], factors[n_leaving] = who, -1.0 / pivot
        n_leaving += 1
        for i in range(size):
            delta[i] *= 1.0 - length
        _add(-delta[who + 1] / pivot, u[:size], delta)
        delta[who + 1] = 0.0
        if steps == limit or n_leaving == len(U):
            break
    places, change, n_moved = np.empty(size, place.dtype), np.empty(size), 0
    for t in range(abs(count)):
        v = members[t]
        if beta[v] != begin[t]:
            places[n_moved], change[n_moved] = place[v], beta[v] - begin[t]
            n_moved += 1
    total = np.zeros(width)
    add_rows_product(values, places[:n_moved], change[:n_moved], 0, width, total)
    for v in range(len(F)):
        F[v] += total[place[v]]
    if count < 0:
        return -1, steps
    return _leave(R, count, members, leaving, U, factors, n_leaving), steps


@compiled()
def follow(columns, program, inverse, count, beta, F, bordered, total, bounds, first, found):
    """Rounds of Newton's steps until the violation is at most tol and the sum is ``total``.

    ``first`` is whether this is the first call: as long as the sum is wrong then, only free variables are members.
    Returns how it ended, and the number of members, of steps, and of variables in ``found.joins`` that need columns or
    more room. Edits β, F, ``inverse``, which has ``count`` members, and ``found``.
    """
    linear, l1, ridge, lower, upper = program.linear, program.l1, program.ridge, program.lower, program.upper
    place, group, joins, groups, totals = program.sample, program.group, found.joins, found.groups, found.totals
    steps, idle, previous, excess = 0, 0, np.inf, np.empty(len(beta))
    for k in range(bounds.rounds + 1):
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
        if violation <= bounds.tol and whole:
            return DONE, count, steps, 0
        idle = 0 if violation < PROGRESS * previous else idle + 1
        previous = min(previous, violation)
        if idle > MOST_IDLE:
            return STUCK, count, steps, 0
        if k == bounds.rounds or steps >= bounds.steps:
            return LIMIT, count, steps, 0
        level = 0.0
        if bordered:
            level = groups[0, LEVELS] / groups[0, N_FREE] if groups[0, N_FREE] > 0.0 else 0.5 * (m + M)
        # before the free variables have made up for the samples that left, others violate optimality for a while
        above = ONLY_FREE if first and k == 0 and not whole else bounds.least
        chosen = _choose_joins(program, beta, F, level, above, bounds.most, inverse.members, count, joins, excess)
        ready = chosen <= bounds.many and count + chosen < len(inverse.R)
        for t in range(chosen):
            ready = ready and place[joins[t]] < columns.count
        if not ready:
            return NEEDS, count, steps, chosen
        count, taken = _newton_steps(
            columns, program, inverse, count, joins[:chosen], beta, F, bordered, missing, level, bounds.steps - steps
        )
        steps += taken
        if count < 0:
            optimality_sums(beta, F, linear, l1, ridge, lower, upper, group, groups, totals)
            return SPOILT, 0, steps, 0
    return LIMIT, count, steps, 0
