"""Sequential minimal optimisation on a small dense block.

    min  1/2 b'Kb - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,  sum over each group fixed

The state is the score s = linear - Kb - ridge b, the negative gradient without l1. Increasing a member gains at the
rate

    up = s - l1  (b >= 0)   or   s + l1  (b < 0)

and decreasing it loses at the rate low = s + l1 (b <= 0) or s - l1 (b > 0). At the optimum no ``up`` of a group is
above a ``low``: the largest up minus the smallest low is the violation.

Pairs are chosen by WSS 2 of Fan, Chen & Lin, JMLR 6 (2005): i has the largest up, j the largest second-order gain;
[M5] "SMO (I-III)", [CS229] section on SMO. Rates are score + addend: ``grow`` is -inf for a member at its upper bound,
``shrink`` is +inf at its lower bound, so the vector loops have no branches. Newton's step on the free members
(`_block_newton_loops`) replaces the many pair steps that an ill-conditioned block would need.

The two vector loops, `update_scores` and `best_partner`, are LLVM code written by hand (`_compiled/pair_passes.py`).
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.pair_passes import best_partner, update_scores
from mercer._compiled.pointers import borrow
from mercer.svm._block_newton_loops import AT_BOUND, NEEDS_NEWTON, call_newton

# Newton's step is tried after this share of its cost in pair steps that met no bound, at first and at most; a fixed
# number of pair steps is added to the cost
WAIT, LONGEST_WAIT, LEAST_WAIT = 0.5, 20.0, 60
# below this tol Newton's step is not tried: pair steps find the last digits of beta
SMALLEST_NEWTON_TOL = 1e-7
# a curvature below this, relative to the diagonal entries of the pair, is rounding
SMALLEST_CURVATURE = 1e-12


@compiled(merged=True)
def _set_addends(k, beta, lower, upper, l1, grow, shrink):
    """Set the addends of member k: see the head of the file."""
    b = beta[k]
    grow[k] = -np.inf if b >= upper[k] else (-l1[k] if b >= 0.0 else l1[k])
    shrink[k] = np.inf if b <= lower[k] else (l1[k] if b <= 0.0 else -l1[k])


@compiled()
def _newton_cost(beta, lower, upper):
    """About how many pair steps take as long as one Newton step on the free members."""
    n, m = beta.shape[0], 0
    for k in range(n):
        m += (lower[k] < beta[k]) & (beta[k] < upper[k])
    # measured: m³/100 + 5m² for the factor, 0.4mn for the product, in units of a pair step of 70 + 0.42n
    return LEAST_WAIT + int((m * m * (m / 100.0 + 5.0) + 0.4 * m * n) / (70.0 + 0.42 * n))


@compiled()
def solve_block(K, beta, score, lower, upper, l1, ridge, ends, tol, max_steps, newton):
    """Descend until the violation is at most tol: (steps, violation, unbounded). Edits beta and score in place.

    Group h has the members from ends[h] to ends[h + 1]. Pair steps find out which members are free. Once pair steps
    that met no bound have taken about as long as Newton's step would, it is tried; it counts as one step. ``newton`` is
    the address of its machine code. It takes long to compile and many problems never need it. With address 0 the run
    ends with NEEDS_NEWTON steps when it would be tried; the caller repeats the run with the address.
    """
    n = beta.shape[0]
    kind = score.dtype.type
    rounding_error = 1e-6 if score.itemsize == 4 else 1e-13  # relative rounding error of a curvature
    memory = np.empty(3 * n, score.dtype)
    # borrowed views: counting references would take as long as a pair step. The use of memory at the end keeps it alive
    K, score, parts = borrow(K), borrow(score), borrow(memory)
    grow, shrink, diagonal = parts[:n], parts[n : 2 * n], parts[2 * n :]
    for k in range(n):
        diagonal[k] = K[k, k] + kind(ridge[k])
    n_groups = ends.shape[0] - 1
    ups, lows, tops = np.empty(n_groups, score.dtype), np.empty(n_groups, score.dtype), np.empty(n_groups, np.int64)
    steps, stuck, unbounded, rescan = 0, 0, False, True
    wait, free_steps, last_newton, gained, rounding = WAIT, 0, 0, 0.0, 0.0
    cost = _newton_cost(beta, lower, upper)
    violation = kind(0.0)
    while True:
        if rescan:  # all members, at the start and after Newton's step
            for k in range(n):
                _set_addends(k, beta, lower, upper, l1, grow, shrink)
            for h in range(n_groups):
                ups[h], tops[h], lows[h] = update_scores(
                    score, score, score, kind(0.0), grow, shrink, ends[h], ends[h + 1]
                )
            rescan = False
        h = 0
        for g in range(1, n_groups):
            if ups[g] - lows[g] > ups[h] - lows[h]:
                h = g
        violation = ups[h] - lows[h]
        if not violation > tol or steps >= max_steps:
            break
        if free_steps >= wait * cost and tol >= SMALLEST_NEWTON_TOL:
            if newton == 0:
                memory[0] = 0.0
                return NEEDS_NEWTON, float(violation), False
            newton_gain = call_newton(newton, K, beta, score, lower, upper, l1, ridge, ends)
            # if it gained less than pair steps in the same time, it is tried half as often
            wait = WAIT if newton_gain * (steps - last_newton) > gained * cost else min(2.0 * wait, LONGEST_WAIT)
            steps += 1
            free_steps, last_newton, gained, rescan, rounding = 0, steps, 0.0, True, AT_BOUND
            cost = _newton_cost(beta, lower, upper)
            continue
        up, i = ups[h], tops[h]
        if i < 0:
            break  # the scores are NaN
        j = best_partner(score, shrink, diagonal, K[i], up, diagonal[i], ends[h], ends[h + 1])
        if j < 0 or i == j:
            break
        slope = float(up) - float(score[j] + shrink[j])
        curvature = float(diagonal[i]) + float(diagonal[j]) - 2.0 * float(K[i, j])
        room_i = upper[i] - beta[i]
        if l1[i] > 0.0 and beta[i] < 0.0:
            room_i = -beta[i]
        room_j = beta[j] - lower[j]
        if l1[j] > 0.0 and beta[j] > 0.0:
            room_j = beta[j]
        room = min(room_i, room_j)
        # curvature below rounding: the objective is linear along the pair, so step to the nearer bound. But if the
        # matrix is not indefinite, the curvature is at least that of the ridges, which rounding of the diagonal may
        # hide
        size, least = abs(diagonal[i]) + abs(diagonal[j]), ridge[i] + ridge[j]
        if curvature > SMALLEST_CURVATURE * size:
            step = slope / curvature
        elif least > 0.0 and curvature > -rounding_error * size:
            step = slope / max(least, curvature)
        else:
            step = np.inf
        if step < room:
            free_steps += 1
        else:
            step = room
            if step == np.inf:
                unbounded = True
                break
        gained += step * (slope - 0.5 * curvature * step)
        before_i, before_j = beta[i], beta[j]
        # Newton's step rounds: a member within rounding of its bound, or of its kink, is set to it
        end_i, end_j = before_i + step, before_j - step
        near_i, near_j = rounding * (abs(before_i) + step), rounding * (abs(before_j) + step)
        beta[i] = upper[i] if step == upper[i] - before_i or end_i >= upper[i] - near_i else end_i
        beta[j] = lower[j] if step == before_j - lower[j] or end_j <= lower[j] + near_j else end_j
        if l1[i] > 0.0 and before_i < 0.0 and end_i >= -near_i:
            beta[i] = 0.0
        if l1[j] > 0.0 and before_j > 0.0 and end_j <= near_j:
            beta[j] = 0.0
        # rounding hides the step: after three of them no pair can improve the block
        stuck = stuck + 1 if beta[i] == before_i and beta[j] == before_j else 0
        if stuck > 2:
            break
        score[i] -= kind(ridge[i] * step)
        score[j] += kind(ridge[j] * step)
        _set_addends(i, beta, lower, upper, l1, grow, shrink)
        _set_addends(j, beta, lower, upper, l1, grow, shrink)
        for h in range(n_groups):
            ups[h], tops[h], lows[h] = update_scores(score, K[i], K[j], kind(step), grow, shrink, ends[h], ends[h + 1])
        steps += 1
    memory[0] = 0.0
    return steps, float(violation), unbounded


@compiled()
def solve_members(members, block, program, beta, F, tol, max_steps, newton, scratch, score, change):
    """Solve a working set to tol: (steps, gain of the objective, whether it is unbounded).

    ``members`` are variables, those of a group side by side; ``block`` is their matrix. ``scratch`` (six rows) and
    ``score``, whose dtype is the precision of the scores, are scratch space. Fills ``change`` with the change of each
    member. Edits beta, unless the steps are NEEDS_NEWTON (see `solve_block`).
    """
    m = members.shape[0]
    b, start, l1, ridge = scratch[0, :m], scratch[1, :m], scratch[2, :m], scratch[3, :m]
    lower, upper, score = scratch[4, :m], scratch[5, :m], score[:m]
    ends, n_groups = np.zeros(m + 2, np.int64), 0
    for t in range(m):
        v = members[t]
        b[t], l1[t], ridge[t] = beta[v], program.l1[v], program.ridge[v]
        lower[t], upper[t] = program.lower[v], program.upper[v]
        start[t] = program.linear[v] - F[program.sample[v]] - ridge[t] * b[t]
        score[t] = start[t]
        n_groups += t == 0 or program.group[v] != program.group[members[t - 1]]
        ends[n_groups] = t + 1
    ends = ends[: max(1, n_groups) + 1]
    steps, _, unbounded = solve_block(block, b, score, lower, upper, l1, ridge, ends, tol, max_steps, newton)
    if steps == NEEDS_NEWTON:
        return steps, 0.0, False
    gained = 0.0
    for t in range(m):
        v = members[t]
        change[t] = b[t] - beta[v]
        # the objective is quadratic: the mean of the slopes at both ends times the change is exact
        gained += 0.5 * (start[t] + score[t]) * change[t] - l1[t] * (abs(b[t]) - abs(beta[v]))
        beta[v] = b[t]
    return steps, gained, unbounded
