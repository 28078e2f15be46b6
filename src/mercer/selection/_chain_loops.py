"""Solve a chain of quadratic programs on one stored Gram matrix: a fold or a pair of classes for increasing C.

    min  1/2 b'Kb - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,  sum over each group fixed

Each program is solved by decomposition (see `mercer.svm._round_loops`), from the rescaled solution of the program
before it: a warm start. F = Kb is kept at the test samples, too, so that held-out decision values cost no further
kernel values.
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.kernel_maps import apply_map
from mercer._compiled.program import Program
from mercer._compiled.stored_rows import read_rows
from mercer._compiled.tiles import add_rows_product
from mercer.problems._optimality_loops import optimality_sums
from mercer.svm._round_loops import (
    BINS,
    by_group,
    group_extremes,
    mirror_rows,
    place_members,
    score_all,
    select_working_set,
    sort_members,
)
from mercer.svm._smo_loops import solve_members

# a block is solved to this share of the violation, or of tol if that is more
BLOCK_TOL, LAST_TOL = 0.06, 0.8
STEPS_PER_MEMBER = 200
# new members of a working set: a share of the variables, at least so many
VARIABLES_PER_NEW, FEWEST_NEW = 32, 32
# or a share of the free variables, if that is more
FREE_PER_NEW = 2
# share of bounded support vectors from which the solution is scaled with the box
MOSTLY_BOUNDED = 0.5
# the start at bounds: samples of each class that estimate F; it is dropped if gain / square (see there) is below this
SAMPLED, LEAST_RATIO = 64, 0.9
# relative rounding error of sums of bounds
ROUNDING = 1e-12
# state between two calls: current program, whether its start was made, its rounds so far, whether it is stuck
PROGRAM, STARTED, ROUNDS, STUCK = range(4)
# rounds without an improvement of the violation, after which rounding of the matrix allows no more
PATIENCE = 40


@compiled()
def _rescale_start(beta, F, test_beta, lower_before, upper_before, lower, upper):
    """Warm start: turn the solution in one box into a feasible point of another box. Edits beta, F, test_beta.

    If most support vectors are at their bounds, beta is multiplied by the largest factor that the new box allows.
    Otherwise it stays, or shrinks to fit the box. Sums must be zero, which any factor keeps.
    """
    longest, bounded, support = np.inf, 0, 0
    for v in range(beta.shape[0]):
        b = beta[v]
        if b != 0.0:
            longest = min(longest, (upper[v] if b > 0.0 else lower[v]) / b)
            bounded += b == lower_before[v] or b == upper_before[v]
            support += 1
    mostly = support > 0 and bounded >= MOSTLY_BOUNDED * support and longest < np.inf
    factor = longest if mostly else min(1.0, longest)
    for v in range(beta.shape[0]):
        b = beta[v]
        if b != 0.0:
            at_bound = b == lower_before[v] or b == upper_before[v]
            b *= factor
            if at_bound and factor == longest:  # exactly at the bound, not within rounding of it
                b = upper[v] if b > 0.0 else lower[v]
            beta[v] = min(max(b, lower[v]), upper[v])
    if factor != 1.0:
        for j in range(F.shape[0]):
            F[j] *= factor
        for v in range(test_beta.shape[0]):
            test_beta[v] *= factor


@compiled()
def _sample_classes(sample, linear, total, weights, rows):
    """Fill rows and weights with up to about SAMPLED evenly spaced samples of each class; their number.

    The weights of a class are equal and sum to total, or -total for the second class.
    """
    count = 0
    for g in range(2):
        members, first = 0, count
        for v in range(linear.shape[0]):
            members += (linear[v] > 0.0) == (g == 0)
        apart, seen = max(1, members // SAMPLED), 0
        for v in range(linear.shape[0]):
            if (linear[v] > 0.0) == (g == 0):
                if seen % apart == 0:
                    rows[count] = sample[v]
                    count += 1
                seen += 1
        for t in range(first, count):
            weights[t] = (total if g == 0 else -total) / (count - first)
    return count


@compiled()
def _set_to_bounds(priority, linear, lower, upper, total, beta):
    """In each class set the variables of highest priority to their bounds, until they sum to ``total``. Edits beta."""
    least, most = np.inf, -np.inf
    for v in range(priority.shape[0]):
        least, most = min(least, priority[v]), max(most, priority[v])
    scale = BINS / (most - least) if most > least else 0.0
    mass = np.empty(BINS + 1)
    for g in range(2):
        for t in range(BINS + 1):
            mass[t] = 0.0
        for v in range(priority.shape[0]):
            if (linear[v] > 0.0) == (g == 0):
                mass[int((priority[v] - least) * scale)] += upper[v] - lower[v]
        left, threshold = total, BINS
        while threshold > 0 and mass[threshold] <= left:
            left -= mass[threshold]
            threshold -= 1
        for v in range(priority.shape[0]):
            place = int((priority[v] - least) * scale)
            if (linear[v] > 0.0) == (g == 0) and place >= threshold:
                size = upper[v] - lower[v]
                if place == threshold:
                    # a variable within rounding of its bound, or of zero, is set to it
                    size = size if left > (1.0 - ROUNDING) * size else (left if left > ROUNDING * size else 0.0)
                    left -= size
                beta[v] = size if g == 0 else -size


@compiled()
def _start_at_bounds(K, sample, beta, F, linear, l1, lower, upper, n_groups, null, train_ranges, reals, rows):
    """Start for a small C: set the samples that are hardest to classify to their bounds. Edits beta and F.

    For a small C nearly all samples of the smaller class are at their bounds, and so is the same total of the larger
    class. Reaching this from beta = 0 by working sets would take ten times as long. First F is estimated from a few
    samples of each class; then the samples with the smallest margin are set to their bounds. If the objective would
    overshoot its maximum along this beta, beta stays zero. Only for hinge-like problems with one sum, from beta = 0.
    """
    n = beta.shape[0]
    priority, weights = reals[0, :n], reals[1, :n]
    first, second = 0.0, 0.0
    for v in range(n):
        if beta[v] != 0.0 or l1[v] != 0.0 or linear[v] == 0.0 or (lower[v] if linear[v] > 0.0 else upper[v]) != 0.0:
            return
        first += upper[v]
        second -= lower[v]
    total = min(first, second)
    # equal totals: all variables would be at their bounds, and rounding would decide b
    if n_groups > 1 or null >= 0 or not 0.0 < total < np.inf or abs(first - second) <= ROUNDING * total:
        return
    for attempt in range(2):
        if attempt == 0:
            count = _sample_classes(sample, linear, total, weights, rows)
        else:
            for v in range(n):
                priority[v] = -F[sample[v]] if linear[v] > 0.0 else F[sample[v]]
            _set_to_bounds(priority, linear, lower, upper, total, beta)
            count = 0
            for v in range(n):
                if beta[v] != 0.0:
                    rows[count], weights[count] = sample[v], beta[v]
                    count += 1
        for r in range(train_ranges.shape[0]):
            for j in range(train_ranges[r, 0], train_ranges[r, 1]):
                F[j] = 0.0
            add_rows_product(K, rows[:count], weights[:count], train_ranges[r, 0], train_ranges[r, 1], F)
        # along this beta the objective is largest at the factor gain / square
        gain, square = 0.0, 0.0
        for t in range(count):
            gain += abs(weights[t])
            square += weights[t] * F[rows[t]]
        if attempt == 0 and gain < square:
            total *= gain / square
    if not gain >= LEAST_RATIO * square:
        for v in range(n):
            beta[v] = 0.0
        for r in range(train_ranges.shape[0]):
            for j in range(train_ranges[r, 0], train_ranges[r, 1]):
                F[j] = 0.0


@compiled()
def _restride(memory, m, before, after):
    """Change the row length of the m x m block at the start of ``memory`` from ``before`` to ``after``, in place."""
    for k in range(m):
        t = m - 1 - k if after > before else k
        for u in range(m):
            c = m - 1 - u if after > before else u
            memory[t * after + c] = memory[t * before + c]


@compiled()
def solve_chain(
    K, sample, beta, F, linear, l1, ridge, lower, upper, group, n_groups, null, train_ranges, test_ranges, test_beta,
    size, memory, reals, counts, tol, newton, max_rounds, state, test, values, groups, totals,
):  # fmt: skip
    """Solve one program after the other, each from the solution of the last; the first from a feasible beta.

    Program s has the vectors linear[s], l1[s], ... ``sample`` are the rows of K of the variables. ``null`` is the
    variable of the null sample, the last one, or -1. F = K beta is kept at the columns in ``train_ranges``, (start,
    stop) each, which must hold all samples. At ``test_ranges`` F = K test_beta; both are updated when a program is
    solved. F has one more entry, for the null sample.

    A working set has at most ``size`` variables: the worst violators, the free variables and the last members.
    Scratch space, which would take long to compile if it were allocated here: ``memory`` (size (size + 1) entries),
    ``reals`` and ``counts`` (rows of at least 2 (variables + size) + 4 entries).

    A program is solved when its violation is at most tol. Then values[s] is F at ``test``, and groups[s] and totals[s]
    are filled (see `optimality_sums`). The call ends after ``max_rounds`` rounds, or when a program is stuck; ``state``
    (see PROGRAM, ...) lets the next call go on. Edits beta, F, test_beta, state.
    """
    n, extremes = beta.shape[0], np.empty((n_groups, 2))
    up, low, at_samples, change, moves = reals[0, :n], reals[1, :n], reals[2, :n], reals[3], reals[10]
    score = memory[size * size :]
    place, members, rows = counts[0, :n], counts[1, :size], counts[2]
    position, previous, new_places, order, column = counts[3], counts[4], counts[5], counts[6], counts[7]
    for v in range(n):
        place[v] = -1
    # literals would compile the callees twice
    m, stride = np.int64(0), np.int64(0)
    left = max_rounds
    while state[PROGRAM] < linear.shape[0]:
        s = state[PROGRAM]
        program = Program(sample, group, linear[s], l1[s], ridge[s], lower[s], upper[s])
        c, c_l1, c_ridge, c_lower, c_upper = linear[s], l1[s], ridge[s], lower[s], upper[s]
        if state[STARTED] == 0:
            if s == 0:
                _start_at_bounds(
                    K, sample, beta, F, c, c_l1, c_lower, c_upper, n_groups, null, train_ranges, reals, rows
                )
            else:
                _rescale_start(beta, F, test_beta, lower[s - 1], upper[s - 1], c_lower, c_upper)
            state[STARTED], state[ROUNDS], state[STUCK] = 1, 0, 0
        best, idle = np.inf, 0
        while True:
            score_all(program, beta, F, up, low)
            group_extremes(up, low, group, extremes)
            violation = extremes[0, 0] - extremes[0, 1]
            for g in range(1, n_groups):
                violation = max(violation, extremes[g, 0] - extremes[g, 1])
            if not violation > tol:
                state[STUCK] = violation != violation
                break
            idle = 0 if violation < 0.95 * best else idle + 1
            best = min(best, violation)
            if idle > PATIENCE or violation == np.inf:
                state[STUCK] = 1
                break
            if left == 0:
                return
            left -= 1
            state[ROUNDS] += 1
            # candidates to stay: the free variables, then the last members
            n_free = 0
            for v in range(n):
                previous[n_free] = v
                n_free += (c_lower[v] < beta[v]) & (beta[v] < c_upper[v]) & ((beta[v] != 0.0) | (c_l1[v] == 0.0))
            n_new = max(FEWEST_NEW, min(max(n // VARIABLES_PER_NEW, n_free // FREE_PER_NEW), size // 2))
            for t in range(m):
                previous[n_free + t] = members[t]
            chosen = select_working_set(
                up, low, group, n_groups, extremes, previous[: n_free + m], n_new, min(size, n_free + n_new), null
            )
            count = chosen.shape[0]
            if n_groups > 1:  # the groups must be contiguous: place all members again
                chosen = by_group(chosen, group)
                for t in range(m):
                    place[members[t]] = -1
                m = np.int64(0)
            # rows of the block are a little longer than the set, so that it may change its size without moving them
            if max(count, m) > stride or stride > 32 + 3 * max(count, m) // 2:
                wider = min(size, max(count, m) + max(count, m) // 4 + 8)
                _restride(memory, m, stride, wider)
                stride = wider
            block = memory[: stride * stride].reshape((stride, stride))
            m, n_added = place_members(chosen, place, members, m, block, new_places)
            for t in range(m):
                position[t] = -1 if members[t] == null else sample[members[t]]
            sort_members(place, position, order, column)
            read_rows(K, position[:m], order, column, new_places, np.int64(0), n_added, block)
            mirror_rows(position[:m], new_places[:n_added], block)
            _, _, unbounded = solve_members(
                members[:m], block, program, beta, F, max(LAST_TOL * tol, BLOCK_TOL * violation), STEPS_PER_MEMBER * m,
                newton, reals[4:10], score, moves,
            )  # fmt: skip
            if unbounded:
                state[STUCK] = 1
                break
            count = 0
            for t in range(m):
                v = members[t]
                if moves[t] != 0.0 and v != null:
                    rows[count], change[count] = sample[v], moves[t]
                    count += 1
            for r in range(train_ranges.shape[0]):
                add_rows_product(K, rows[:count], change[:count], train_ranges[r, 0], train_ranges[r, 1], F)
        n_real = n if null < 0 else n - 1
        count = 0
        for v in range(n_real):
            if beta[v] != test_beta[v]:
                rows[count], change[count] = sample[v], beta[v] - test_beta[v]
                test_beta[v] = beta[v]
                count += 1
        for r in range(test_ranges.shape[0]):
            add_rows_product(K, rows[:count], change[:count], test_ranges[r, 0], test_ranges[r, 1], F)
        for v in range(n_real):
            at_samples[v] = F[sample[v]]
        optimality_sums(
            beta[:n_real], at_samples[:n_real], c[:n_real], c_l1[:n_real], c_ridge[:n_real], c_lower[:n_real],
            c_upper[:n_real], group[:n_real], groups[s], totals[s],
        )  # fmt: skip
        for t in range(test.shape[0]):
            values[s, t] = F[test[t]]
        if state[STUCK] == 1:
            return
        state[PROGRAM] += 1
        state[STARTED] = 0


@compiled()
def map_sums(code, params, sums, start, stop, out):
    """out[start:stop] = phi(sums[start:stop]), entry by entry (see `kernel_maps`)."""
    line, norms = np.empty(sums.shape[1], sums.dtype), np.empty(0, sums.dtype)
    for i in range(start, stop):
        for j in range(sums.shape[1]):  # assigning a slice would compile numpy's check of shapes, for seconds
            line[j] = sums[i, j]
        apply_map(code, params, line, sums.dtype.type(0.0), norms, out[i])
