"""Choose a working set and copy its block of K: a dozen numpy calls would take longer than its solution."""

import numpy as np

from mercer._compiled.compile import compiled


@compiled()
def choose_members(beta, F, linear, l1, ridge, lower, upper, level, least, with_free, members, excess):
    """Fill ``members`` with variables that violate optimality by more than ``least``; returns their number.

    Free variables are members too if ``with_free``.

    A variable violates optimality by how much its rate (see `problems/dual.py`) is beyond ``level``, the threshold.
    Fills ``excess`` with the violation of each member, inf for free ones.
    """
    count = 0
    for v in range(beta.shape[0]):
        b = beta[v]
        found = -np.inf
        if with_free and lower[v] < b < upper[v] and (b != 0.0 or l1[v] == 0.0):
            found = np.inf
        else:
            s = linear[v] - F[v] - ridge[v] * b
            if b < upper[v]:
                found = s - level - (l1[v] if b >= 0.0 else -l1[v])
            if b > lower[v]:
                found = max(found, level - s - (l1[v] if b <= 0.0 else -l1[v]))
        if found > least:
            members[count], excess[count] = v, found
            count += 1
    return count


@compiled()
def copy_block(values, places, out):
    """out[s, t] = values[places[s], places[t]]."""
    for s in range(places.shape[0]):
        row, line = values[places[s]], out[s]
        for t in range(places.shape[0]):
            line[t] = row[places[t]]
