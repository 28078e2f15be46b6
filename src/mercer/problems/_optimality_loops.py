"""The sums of the optimality conditions in one pass: a dozen numpy calls would take longer than a small problem."""

import numpy as np

from mercer._compiled.compile import compiled

# of each group: the largest rate of variables that may increase, the smallest rate of variables that may decrease, the
# sum of s - l1 sign(beta) over the free variables, the number of these, the sum of beta
M_UP, M_LOW, LEVELS, N_FREE, TOTAL = range(5)
# of all variables: the largest distance of beta from the box, and the sums of F beta, |F beta|, linear beta,
# |linear beta|, l1 |beta| and ridge beta^2
OUTSIDE, NORM, ABS_NORM, LINEAR, ABS_LINEAR, PAID, RIDGE = range(7)


@compiled()
def optimality_sums(beta, F, linear, l1, ridge, lower, upper, group, groups, totals):
    """Fill groups[g] and totals (see above). A NaN in beta or in a rate stays NaN.

    No branch depends on the state of a variable: states are in no order, so every other branch would be mispredicted.
    """
    outside, norm, abs_norm, line, abs_line, paid, squares = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for g in range(groups.shape[0]):
        m, M, levels, n_free, total = -np.inf, np.inf, 0.0, 0.0, 0.0
        for v in range(beta.shape[0]):
            if group[v] != g:
                continue
            b, low, high, kink = beta[v], lower[v], upper[v], l1[v]
            s = linear[v] - F[v] - ridge[v] * b
            rate = -np.inf if b >= high else s - (kink if b >= 0.0 else -kink)
            m = rate if (rate > m) | (rate != rate) else m
            rate = np.inf if b <= low else s + (kink if b <= 0.0 else -kink)
            M = rate if (rate < M) | (rate != rate) else M
            free = (low < b) & (b < high) & ((b != 0.0) | (kink == 0.0))
            levels += s - (kink if b > 0.0 else -kink) if free else 0.0
            n_free += free
            total += b
            value, given = F[v] * b, linear[v] * b
            norm += value
            abs_norm += abs(value)
            line += given
            abs_line += abs(given)
            paid += kink * abs(b)
            squares += ridge[v] * b * b
            distance = max(low - b, b - high)
            outside = distance if (distance > outside) | (distance != distance) else outside
        mine = groups[g]
        mine[M_UP], mine[M_LOW], mine[LEVELS], mine[N_FREE], mine[TOTAL] = m, M, levels, n_free, total
    totals[OUTSIDE], totals[NORM], totals[ABS_NORM], totals[LINEAR] = outside, norm, abs_norm, line
    totals[ABS_LINEAR], totals[PAID], totals[RIDGE] = abs_line, paid, squares


@compiled()
def threshold(sums):
    """The threshold of a group from its sums, groups[g]: see ``Survey.thresholds``."""
    if sums[N_FREE] > 0.0:
        return sums[LEVELS] / sums[N_FREE]
    low, high = sums[M_UP], sums[M_LOW]
    if np.isfinite(low) and np.isfinite(high):
        return 0.5 * (low + high)
    return low if np.isfinite(low) else (high if np.isfinite(high) else 0.0)


# ---- samples whose loss or violation may not be zero -----------------------------------------------------------------

# the error of an F that is not recomputed in float64 is assumed to be at most this many times the largest error seen
SAFETY = 4.0


@compiled()
def fill_slack(beta, F, linear, l1, ridge, lower, upper, group, level, slack):
    """slack[v] = how far the rates of a variable at zero are from making it move; -inf if beta[v] != 0."""
    for v in range(beta.shape[0]):
        s = linear[v] - F[v] - ridge[v] * beta[v]
        slack[v] = np.inf
        if beta[v] != 0.0:
            slack[v] = -np.inf
        if beta[v] < upper[v]:
            slack[v] = min(slack[v], level[group[v]] - (s - l1[v]))
        if beta[v] > lower[v]:
            slack[v] = min(slack[v], s + l1[v] - level[group[v]])


@compiled()
def near_kinks(slack, F, exact, done, margin, safety, near):
    """Find samples not yet verified whose slack is below the margin; (their number, the margin).

    For samples that are ``done``, ``exact`` is F in float64. The margin is at least safety times the largest error
    |exact - F| of these. Fills the beginning of ``near`` with the samples found.
    """
    error = 0.0
    for i in range(F.shape[0]):
        if done[i]:
            off = abs(exact[i] - F[i])
            if off > error or off != off:
                error = off
    margin = max(margin, safety * error) if error < np.inf else np.inf  # NaN: the error is unknown
    count = 0
    for i in range(F.shape[0]):
        if not done[i] and slack[i] < margin:
            near[count] = i
            count += 1
    return count, margin
