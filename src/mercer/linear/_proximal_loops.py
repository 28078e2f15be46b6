"""Coordinate descent over features on the quadratic models of `mercer.linear.proximal`.

    min over u   -r'(u - w) + 1/2 sum q (u - w)^2 + 1/2 |M (u - w)|^2 + sum l1 |u|

Column k of M is values[indptr[k] : indptr[k + 1]] in the rows indices[...], or in all rows in turn if indices is empty:
columns are read as `mercer.linear._coordinate_loops` reads rows.
"""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.pointers import borrow
from mercer.linear._coordinate_loops import add_row, row_dot, shuffle

ONE = np.uint64(1)


@compiled()
def descend_features(indptr, indices, values, curvature, q, l1, r, w, u, z, order, goal, max_passes, seed, out):
    """Passes over the features until none violates optimality by more than ``goal``. Edits u, z = M (u - w) and order.

    Violations are divided by the root of the curvature: half their square is then what the objective gains.
    Features that rest at 0 more safely than the last pass violated optimality are left out until the others are done.
    out becomes (largest violation of the last pass, passes, changes of sign in the last pass, entries read).
    """
    indices, values, z = borrow(indices), borrow(values), borrow(z)
    m = order.shape[0]
    active, level, work = m, np.inf, 0.0
    largest, changed, done = np.inf, 0, 0
    while done < max_passes:
        whole = active == m
        shuffle(order[:active], seed + 2 * done)
        largest, changed, kept = 0.0, 0, 0
        for at in range(active):
            k = order[at]
            start, stop = indptr[k], indptr[k + ONE]
            old, price = u[k], l1[k]
            if curvature[k] <= 0.0:
                continue
            unit = 1.0 / np.sqrt(curvature[k])
            g = row_dot(indices, values, start, stop, z) + q[k] * (old - w[k]) - r[k]
            work += stop - start
            if old == 0.0:
                violation = (abs(g) - price) * unit
                if violation < -level:
                    continue
            else:
                violation = abs(g + (price if old > 0.0 else -price)) * unit
            order[at], order[kept] = order[kept], k
            kept += 1
            if violation <= 0.0:
                continue
            largest = max(largest, violation)
            x = curvature[k] * old - g
            new = (max(x - price, 0.0) + min(x + price, 0.0)) / curvature[k]
            if new != old:
                u[k] = new
                add_row(indices, values, start, stop, new - old, z)
                work += stop - start
                changed += (new > 0.0) != (old > 0.0) or (new < 0.0) != (old < 0.0)
        done += 1
        if largest <= goal:
            if whole:
                break
            active, level = m, np.inf
        else:
            active, level = kept, largest
    out[0], out[1], out[2], out[3] = largest, done, changed, work
