"""Solve a chain of quadratic programs on one stored Gram matrix: a fold or a pair of classes for increasing C.

    min  1/2 b'Kb - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,  sum over each group fixed

Each program is solved by `mercer.svm._driver_loops.drive`, from the rescaled solution of the program
before it: a warm start. F = Kb is kept at the test samples, too, so that held-out decision values cost no further
kernel values.
"""

from typing import Any, NamedTuple

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.kernel_maps import apply_map
from mercer._compiled.program import Program
from mercer._compiled.tiles import add_rows_product
from mercer.problems._optimality_loops import optimality_sums
from mercer.svm._driver_loops import STUCK as STUCK_RUN
from mercer.svm._driver_loops import UNFINISHED, drive
from mercer.svm._round_loops import BINS

# share of bounded support vectors from which the solution is scaled with the box
MOSTLY_BOUNDED = 0.5
# the start at bounds: samples of each class that estimate F; it is dropped if gain / square (see there) is below this
SAMPLED, LEAST_RATIO = 64, 0.9
# relative rounding error of sums of bounds
ROUNDING = 1e-12
# counters between two calls: current program, whether its start was made, its rounds so far, whether it is stuck
PROGRAM, STARTED, ROUNDS, STUCK = range(4)


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
    """Fill rows and weights with up to about SAMPLED evenly spaced samples of each class; returns their number.

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
def _start_at_bounds(K, program, n_groups, null, train_ranges, beta, F, reals, rows):
    """Start for a small C: set the samples that are hardest to classify to their bounds. Edits beta and F.

    For a small C nearly all samples of the smaller class are at their bounds, and so is the same total of the larger
    class. Reaching this from beta = 0 by working sets would take ten times as long. First F is estimated from a few
    samples of each class; then the samples with the smallest margin are set to their bounds. If the objective would
    overshoot its maximum along this beta, beta stays zero. Only for hinge-like problems with one sum, from beta = 0.
    """
    n, sample, linear, l1 = beta.shape[0], program.sample, program.linear, program.l1
    lower, upper, priority, weights = program.lower, program.upper, reals[0], reals[1]
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


class ChainSamples(NamedTuple):
    """Where the samples of a chain stand in K.

    ``train_ranges`` and ``test_ranges`` are columns, (start, stop) each: the first contain all training samples, both
    together all of ``test``, the held-out samples.
    """

    train_ranges: Any
    test_ranges: Any
    test: Any


class ChainState(NamedTuple):
    """Where a chain stands: counters (see PROGRAM, ...), the beta of F at the test columns, and scratch space.

    ``numbers`` and ``reals`` (two rows) have an entry for each variable.
    """

    counters: Any
    test_beta: Any
    numbers: Any
    reals: Any


class ChainResults(NamedTuple):
    """What `solve_chain` fills, a row for each program: F at the held-out samples, and see `optimality_sums`."""

    values: Any
    groups: Any
    totals: Any


@compiled(compact=True)
def solve_chain(K, programs, null, samples, beta, F, tol, newton, max_rounds, state, space, results):
    """Solve one program after the other, each from the solution of the last; the first from a feasible beta.

    Row s of ``programs.linear``, ``programs.l1``, ... belongs to program s. ``null`` is the variable of the null
    sample, the last one, or -1. F = K beta is kept at the training columns. At the test columns F = K test_beta; both
    are updated when a program is solved. F has one more entry, for the null sample. ``space`` is that of `drive`.

    A program is solved when its violation is at most tol. Then its row of the results is filled. The call ends after
    ``max_rounds`` rounds, or when a program is stuck; ``state`` lets the next call go on. Edits beta, F, state, space
    and results.
    """
    sample, group, linear, l1, ridge = programs.sample, programs.group, programs.linear, programs.l1, programs.ridge
    lower, upper, groups, totals = programs.lower, programs.upper, results.groups, results.totals
    counters, test_beta, numbers, reals = state.counters, state.test_beta, state.numbers, state.reals
    n_groups, n_real = groups.shape[1], beta.shape[0] if null < 0 else beta.shape[0] - 1
    left, weights, at_samples = max_rounds, reals[0], reals[1, :n_real]
    while counters[PROGRAM] < linear.shape[0]:
        s = counters[PROGRAM]
        program = Program(sample, group, linear[s], l1[s], ridge[s], lower[s], upper[s])
        if counters[STARTED] == 0:
            if s == 0:
                _start_at_bounds(K, program, n_groups, null, samples.train_ranges, beta, F, reals, numbers)
            else:
                _rescale_start(beta, F, test_beta, lower[s - 1], upper[s - 1], lower[s], upper[s])
            counters[STARTED], counters[ROUNDS] = 1, 0
            space.progress[0], space.progress[1] = np.inf, 0.0
        ended, rounds, _ = drive(K, samples.train_ranges, None, program, null, beta, F, tol, newton, left, space)
        left -= rounds
        counters[ROUNDS] += rounds
        counters[STUCK] = ended == STUCK_RUN
        if ended == UNFINISHED:
            return
        count = 0
        for v in range(n_real):
            if beta[v] != test_beta[v]:
                numbers[count], weights[count] = sample[v], beta[v] - test_beta[v]
                test_beta[v] = beta[v]
                count += 1
        for r in range(samples.test_ranges.shape[0]):
            start, stop = samples.test_ranges[r, 0], samples.test_ranges[r, 1]
            add_rows_product(K, numbers[:count], weights[:count], start, stop, F)
        for v in range(n_real):
            at_samples[v] = F[sample[v]]
        optimality_sums(
            beta[:n_real], at_samples, linear[s, :n_real], l1[s, :n_real], ridge[s, :n_real], lower[s, :n_real],
            upper[s, :n_real], group[:n_real], groups[s], totals[s],
        )  # fmt: skip
        for t in range(samples.test.shape[0]):
            results.values[s, t] = F[samples.test[t]]
        if counters[STUCK] == 1:
            return
        counters[PROGRAM] += 1
        counters[STARTED] = 0


@compiled()
def map_sums(phi, params, sums, start, stop, out):
    """out[start:stop] = phi(sums[start:stop]), entry by entry; ``phi`` is the address of a map (`map_address`)."""
    norms = np.empty(0, sums.dtype)
    for i in range(start, stop):
        line = out[i]
        for j in range(sums.shape[1]):  # assigning a slice would compile numpy's check of shapes, for seconds
            line[j] = sums[i, j]
        apply_map(phi, params, line, sums.dtype.type(0.0), norms)
