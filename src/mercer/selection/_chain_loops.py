"""One of many problems on parts of the same matrix: folds, pairs of classes, values of C."""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.kernel_maps import apply_map
from mercer._compiled.program import Program
from mercer._compiled.stored_rows import read_rows
from mercer._compiled.tiles import add_rows_product
from mercer.problems._optimality_loops import survey
from mercer.svm._round_loops import BINS, by_group, choose, group_extremes, line_up, reflect, score_all, seat
from mercer.svm._smo_loops import solve_members

# a block is solved to this share of the violation, and at last of tol
BLOCK_TOL, LAST_TOL = 0.06, 0.8
STEPS_PER_MEMBER = 200
# new members of a working set: a share of the variables, at least so many
VARIABLES_PER_NEW, FEWEST_NEW = 32, 32
# and of the free ones
FREE_PER_NEW = 2
# the share of bounded variables from which a larger box is taken to scale the whole solution
MOSTLY_BOUNDED = 0.5
# samples of either class that stand for all of it in a first guess, which may be beyond the best of its ray by so much
STAND_INS, NOT_BEYOND = 64, 0.9
# of sums of bounds
ROUNDING = 1e-12
# what is kept between two calls: the program, whether its start was made, rounds spent on it, no way to go on
PROGRAM, STARTED, ROUNDS, STUCK = range(4)
# rounds without an improvement of the violation after which the run has come as far as float32 allows
PATIENCE = 40


@compiled()
def _rescale(beta, F, held, lower_before, upper_before, lower, upper):
    """Turn the solution of one box into a feasible start for another, without a sum to keep but zero.

    Edits beta, F, held.

    Bounded variables grow with the box and stay bounded where most are, and all others are multiplied with them; else
    all are left as they are, or made smaller until they are in the box.
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
            if at_bound and factor == longest:  # rounding must not leave bounded ones beside their bound
                b = upper[v] if b > 0.0 else lower[v]
            beta[v] = min(max(b, lower[v]), upper[v])
    if factor != 1.0:
        for j in range(F.shape[0]):
            F[j] *= factor
        for v in range(held.shape[0]):
            held[v] *= factor


@compiled()
def _stand_in(sample, linear, total, weights, rows):
    """A few samples of either sign in the place of all: (rows, weights) of the same total; how many there are."""
    count = 0
    for g in range(2):
        members, first = 0, count
        for v in range(linear.shape[0]):
            members += (linear[v] > 0.0) == (g == 0)
        apart, seen = max(1, members // STAND_INS), 0
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
def _fill(want, linear, lower, upper, total, beta):
    """Set those of either sign that want it most to their bounds, up to this total of each. Edits beta."""
    least, most = np.inf, -np.inf
    for v in range(want.shape[0]):
        least, most = min(least, want[v]), max(most, want[v])
    scale = BINS / (most - least) if most > least else 0.0
    mass = np.empty(BINS + 1)
    for g in range(2):
        for t in range(BINS + 1):
            mass[t] = 0.0
        for v in range(want.shape[0]):
            if (linear[v] > 0.0) == (g == 0):
                mass[int((want[v] - least) * scale)] += upper[v] - lower[v]
        left, threshold = total, BINS
        while threshold > 0 and mass[threshold] <= left:
            left -= mass[threshold]
            threshold -= 1
        for v in range(want.shape[0]):
            place = int((want[v] - least) * scale)
            if (linear[v] > 0.0) == (g == 0) and place >= threshold:
                size = upper[v] - lower[v]
                if place == threshold:
                    # rounding of the sums must not leave one beside its bound
                    size = size if left > (1.0 - ROUNDING) * size else (left if left > ROUNDING * size else 0.0)
                    left -= size
                beta[v] = size if g == 0 else -size


@compiled()
def _guess(K, sample, beta, F, linear, l1, lower, upper, n_groups, null, ranges, reals, rows):
    """A start for classes in a small box, from beta = 0: those that are hard to tell at their bounds. Edits beta, F.

    In a small box nearly all of the smaller class are at their bounds, and as many of the larger one: violators that
    come in round by round take ten times as long. Beta is left at zero if that overshoots.
    """
    n = beta.shape[0]
    want, weights = reals[0, :n], reals[1, :n]
    first, second = 0.0, 0.0
    for v in range(n):
        if beta[v] != 0.0 or l1[v] != 0.0 or linear[v] == 0.0 or (lower[v] if linear[v] > 0.0 else upper[v]) != 0.0:
            return
        first += upper[v]
        second -= lower[v]
    total = min(first, second)
    # with all of both classes at their bounds, rounding alone would decide which b is taken
    if n_groups > 1 or null >= 0 or not 0.0 < total < np.inf or abs(first - second) <= ROUNDING * total:
        return
    for attempt in range(2):
        if attempt == 0:
            count = _stand_in(sample, linear, total, weights, rows)
        else:
            for v in range(n):
                want[v] = -F[sample[v]] if linear[v] > 0.0 else F[sample[v]]
            _fill(want, linear, lower, upper, total, beta)
            count = 0
            for v in range(n):
                if beta[v] != 0.0:
                    rows[count], weights[count] = sample[v], beta[v]
                    count += 1
        for r in range(ranges.shape[0]):
            for j in range(ranges[r, 0], ranges[r, 1]):
                F[j] = 0.0
            add_rows_product(K, rows[:count], weights[:count], ranges[r, 0], ranges[r, 1], F)
        # along this beta the objective grows up to gain / square of it
        gain, square = 0.0, 0.0
        for t in range(count):
            gain += abs(weights[t])
            square += weights[t] * F[rows[t]]
        if attempt == 0 and gain < square:
            total *= gain / square
    if not gain >= NOT_BEYOND * square:
        for v in range(n):
            beta[v] = 0.0
        for r in range(ranges.shape[0]):
            for j in range(ranges[r, 0], ranges[r, 1]):
                F[j] = 0.0


@compiled()
def _set_apart(memory, m, before, after):
    """Move the first m lines, which are ``before`` long, to where they are if lines are ``after`` long."""
    for k in range(m):
        t = m - 1 - k if after > before else k
        for u in range(m):
            c = m - 1 - u if after > before else u
            memory[t * after + c] = memory[t * before + c]


@compiled()
def follow(
    K, sample, beta, F, linear, l1, ridge, lower, upper, group, n_groups, null, ranges, beyond, held, size, memory,
    reals, counts, tol, newton, max_rounds, state, test, values, groups, totals,
):  # fmt: skip
    """Solve one program after the other, each from the solution of the one before, from a feasible beta of the first.

    Program s has the vectors linear[s], l1[s], ... ``sample`` are the rows of K of the variables. F = K beta is kept at
    the columns in ``ranges``, (start, stop) each, which must hold all samples; at those in ``beyond`` it is K held, and
    brought up to date when a program is solved. It has one entry more, for the null sample (``null`` is its variable,
    the last one, or -1). A working set of at most ``size`` variables holds the worst
    violators and, if there is room, the free variables and the last members. ``memory`` (of size (size + 1)),
    ``reals`` and ``counts`` (lines of twice the variables and twice size at least, and four more) are for its matrix
    and what belongs to it: allocating them here would take long to compile.

    A program is solved when its violation is at most tol: then values[s] is F at ``test``, and groups[s] and totals[s]
    are what `survey` finds. The call ends after so many rounds, or where no more can be gained; ``state`` is where:
    the program, whether its start was made, rounds spent on it, whether it is stuck. Edits beta, F, held,
    state.
    """
    n, extremes = beta.shape[0], np.empty((n_groups, 2))
    up, low, at_samples, change, moves = reals[0, :n], reals[1, :n], reals[2, :n], reals[3], reals[10]
    score = memory[size * size :]
    place, members, rows = counts[0, :n], counts[1, :size], counts[2]
    position, previous, fresh, order, column = counts[3], counts[4], counts[5], counts[6], counts[7]
    for v in range(n):
        place[v] = -1
    # literals would compile what they are passed to twice
    m, stride = np.int64(0), np.int64(0)
    left = max_rounds
    while state[PROGRAM] < linear.shape[0]:
        s = state[PROGRAM]
        program = Program(sample, group, linear[s], l1[s], ridge[s], lower[s], upper[s])
        c, c_l1, c_ridge, c_lower, c_upper = linear[s], l1[s], ridge[s], lower[s], upper[s]
        if state[STARTED] == 0:
            if s == 0:
                _guess(K, sample, beta, F, c, c_l1, c_lower, c_upper, n_groups, null, ranges, reals, rows)
            else:
                _rescale(beta, F, held, lower[s - 1], upper[s - 1], c_lower, c_upper)
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
            # the free variables stay in, then the last members: what was of use will be again
            n_free = 0
            for v in range(n):
                previous[n_free] = v
                n_free += (c_lower[v] < beta[v]) & (beta[v] < c_upper[v]) & ((beta[v] != 0.0) | (c_l1[v] == 0.0))
            n_new = max(FEWEST_NEW, min(max(n // VARIABLES_PER_NEW, n_free // FREE_PER_NEW), size // 2))
            for t in range(m):
                previous[n_free + t] = members[t]
            chosen = choose(
                up, low, group, n_groups, extremes, previous[: n_free + m], n_new, min(size, n_free + n_new), null
            )
            count = chosen.shape[0]
            if n_groups > 1:  # in the order of the groups: all anew
                chosen = by_group(chosen, group)
                for t in range(m):
                    place[members[t]] = -1
                m = np.int64(0)
            # lines are a little longer than the set, which may grow or shrink a little before they are moved
            if max(count, m) > stride or stride > 32 + 3 * max(count, m) // 2:
                wider = min(size, max(count, m) + max(count, m) // 4 + 8)
                _set_apart(memory, m, stride, wider)
                stride = wider
            block = memory[: stride * stride].reshape((stride, stride))
            m, newcomers = seat(chosen, place, members, m, block, fresh)
            for t in range(m):
                position[t] = -1 if members[t] == null else sample[members[t]]
            line_up(place, position, order, column)
            read_rows(K, position[:m], order, column, fresh, np.int64(0), newcomers, block)
            reflect(position[:m], fresh[:newcomers], block)
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
            for r in range(ranges.shape[0]):
                add_rows_product(K, rows[:count], change[:count], ranges[r, 0], ranges[r, 1], F)
        n_real = n if null < 0 else n - 1
        count = 0
        for v in range(n_real):
            if beta[v] != held[v]:
                rows[count], change[count] = sample[v], beta[v] - held[v]
                held[v] = beta[v]
                count += 1
        for r in range(beyond.shape[0]):
            add_rows_product(K, rows[:count], change[:count], beyond[r, 0], beyond[r, 1], F)
        for v in range(n_real):
            at_samples[v] = F[sample[v]]
        survey(
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
    """out[start:stop] = phi of these rows of sums, which are distances where phi needs them (see maps)."""
    line, norms = np.empty(sums.shape[1], sums.dtype), np.empty(0, sums.dtype)
    for i in range(start, stop):
        for j in range(sums.shape[1]):  # a slice would compile numpy's message about shapes, for seconds
            line[j] = sums[i, j]
        apply_map(code, params, line, sums.dtype.type(0.0), norms, out[i])
