"""Steps of stochastic subgradient descent on the hinge loss, and of the perceptron.

    choose i;  if y_i <w_t, x_i> < 1:  theta += y_i x_i;    w_t = theta / (lam t)     [SSBD] 15.5, 16.3; [L8] Alg. 1
    choose i;  if y_i <w, x_i> <= 0:   w += y_i x_i                                   [SSBD] Remark 15.1

The second is the first with lam = 0. With projection theta = scale v. No vector is ever scaled: a step costs as much as
its samples have entries.

The sum of all iterates is kept in the same way. Let c_t be the factor in w_t = c_t v and S_t = c_1 + ... + c_t. What is
added to v at step j counts in all iterates after j, so that  sum_t c_t v_t = S_T v - A  with A = sum_j S_j u_j.
Projections make the scale small, and S_T v - A a difference of large numbers: before that, the scale is moved into v,
and the sum so far into A.

Samples are CSR arrays with unsigned column numbers, which need no check for negative ones; a dense matrix has none, and
its rows are as long as v, but for the intercept. State of a run: scale, S, |v|^2, number of updates, intercept of v and
its A.
"""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.linear_rows import dot, sparse_row_dot
from mercer._numerics.prefetch import prefetch

# steps to look ahead, and bytes of a cache line
AHEAD = 16
LINE = 64
SMALLEST_SCALE = 0.125
# positions are unsigned: signed ones would be tested for negative values at each term
ZERO = np.uint64(0)

SCALE, SUM, NORM, UPDATES, BIAS, BIAS_SUM = range(6)


@compiled(fast=True)
def _dot(columns, values, v):
    """<x, v> for one sample."""
    if columns.shape[0] == values.shape[0]:
        return sparse_row_dot(columns, values, ZERO, np.uint64(columns.shape[0]), v)
    return dot(values, v)


@compiled(fast=True)
def _add(columns, values, u, v, level, A):
    """v += u x and A += level u x. Edits v and A."""
    if columns.shape[0] == values.shape[0]:
        for p in range(columns.shape[0]):
            k = columns[p]
            change = u * values[p]
            v[k] += change
            A[k] += level * change
    else:
        for p in range(values.shape[0]):
            change = u * values[p]
            v[p] += change
            A[p] += level * change


@compiled(fast=True)
def _values_of(columns, values, V, flat, first, f):
    """f[c] = <x, v_c> for the problems from ``first`` on; flat is V in one dimension."""
    if columns.shape[0] == values.shape[0]:
        f[:] = 0.0
        n_problems, stop = V.shape[1], first + f.shape[0]
        for p in range(columns.shape[0]):
            if p + AHEAD // 2 < columns.shape[0]:
                later = columns[p + AHEAD // 2] * n_problems
                for at in range(later + first, later + stop, LINE // 8):
                    prefetch(flat, at)
            x, row = values[p], V[columns[p], first:stop]
            for c in range(f.shape[0]):
                f[c] += x * row[c]
    else:
        for c in range(f.shape[0]):
            f[c] = dot(values, V[first + c])


@compiled(fast=True)
def _add_to(columns, values, members, u, level, V, A):
    """v_c += u x and A_c += level u x for each of these problems. Edits V and A."""
    if columns.shape[0] == values.shape[0]:
        for p in range(columns.shape[0]):
            x, v, a = values[p], V[columns[p]], A[columns[p]]
            for h in range(members.shape[0]):
                change = u[h] * x
                v[members[h]] += change
                a[members[h]] += level[h] * change
    else:
        for h in range(members.shape[0]):
            _add(columns, values, u[h], V[members[h]], level[h], A[members[h]])


@compiled(fast=True)
def sparse_values(indptr, indices, data, V, out):
    """out[i, c] = <x_i, v_c>, where V has a row for each feature."""
    flat = V.reshape(-1)
    for i in range(out.shape[0]):
        columns, values = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        if out.shape[1] == 1:
            out[i, 0] = _dot(columns, values, flat)
        else:
            _values_of(columns, values, V, flat, 0, out[i])


@compiled(fast=True)
def sparse_sums(indptr, indices, data, beta, V):
    """Add sum_i beta[i, c] x_i to v_c, where V has a row for each feature and most of beta is zero. Edits V."""
    m, flat = V.shape[1], V.reshape(-1)
    members = np.zeros(m, np.uint32)
    for i in range(beta.shape[0]):
        columns, values = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        count = 0
        for c in range(m):
            if beta[i, c] != 0.0:
                members[count] = c
                count += 1
        if m == 1 and count == 1:
            for p in range(columns.shape[0]):
                flat[columns[p]] += beta[i, 0] * values[p]
        elif count > 0:
            for p in range(columns.shape[0]):
                if p + AHEAD // 2 < columns.shape[0]:
                    prefetch(flat, columns[p + AHEAD // 2] * m + members[0])
                x, v = values[p], V[columns[p]]
                for h in range(count):
                    v[members[h]] += beta[i, members[h]] * x


@compiled()
def _project(state, lam, t):
    """Shorten w_{t+1} to the ball of radius 1/sqrt(lam), in which the optimum lies. Edits the scale."""
    length = state[SCALE] * np.sqrt(max(state[NORM], 0.0))
    longest = np.sqrt(lam) * (t + 1)
    if length > longest:
        state[SCALE] *= longest / length


@compiled()
def _settle(state, v, A):
    """Begin a new sum, with a scale of 1, without a change of any iterate or of their sum. Edits v and A only."""
    for k in range(v.shape[0]):
        A[k] -= state[SUM] * v[k]
        v[k] *= state[SCALE]


@compiled()
def _settle_state(state):
    """The same for the scalars."""
    state[BIAS_SUM] -= state[SUM] * state[BIAS]
    state[BIAS] *= state[SCALE]
    state[NORM] *= state[SCALE] ** 2
    state[SUM] = 0.0
    state[SCALE] = 1.0


@compiled()
def _foresee(order, first, batch, indptr, indices, data, push, beta):
    """Prefetch where the samples of later steps begin, and before that, where this is written, and their numbers."""
    n_problems = push.shape[0] // (indptr.shape[0] - 1)
    for s in range(first, min(first + batch, order.shape[0] - AHEAD)):
        prefetch(indptr, order[s + AHEAD])
        prefetch(push, order[s + AHEAD] * n_problems)
        prefetch(beta, order[s + AHEAD] * n_problems)
    for s in range(first, min(first + batch, order.shape[0] - AHEAD // 2)):
        i = order[s + AHEAD // 2]
        start, last = indptr[i], indptr[i + 1] - 1
        prefetch(data, start)
        prefetch(data, start + LINE // data.itemsize)
        prefetch(data, last)
        if indices.shape[0] > 0:
            prefetch(indices, start)
            prefetch(indices, last)


@compiled(fast=True)
def _plain_steps(indptr, indices, data, push, order, bias, lam, t, start, v, A, beta, state):
    """`linear_steps` of one sample each, without projection: the scalars stay in registers."""
    scale, level, b, b_sum, updates = state[SCALE], state[SUM], state[BIAS], state[BIAS_SUM], 0
    for s in range(order.shape[0]):
        _foresee(order, s, 1, indptr, indices, data, push, beta)
        i = order[s]
        t += 1
        factor = scale / (lam * t) if lam > 0.0 else 1.0
        if t > start:
            level += factor
        columns, values = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        f = _dot(columns, values, v) + bias * b
        margin = f if push[i] > 0.0 else -f
        if margin * factor < 1.0 if lam > 0.0 else margin <= 0.0:
            u = push[i] / scale
            _add(columns, values, u, v, level, A)
            b += u * bias
            b_sum += level * u * bias
            beta[i] += u
            updates += 1
    state[SUM], state[BIAS], state[BIAS_SUM] = level, b, b_sum
    state[UPDATES] += updates


@compiled()
def linear_steps(
    indptr, indices, data, norms, push, order, batch, bias, lam, project, t, start, V, A, beta, state, first, stop
):
    """Take the steps that ``order`` asks for, ``batch`` samples each, from step t on, for problems from first to stop.

    V and A have a row for each feature if samples are sparse, so that an entry of a sample meets all problems in one
    place, else one for each problem. push[i, c] is y_i times the factor of its steps; beta[i, c] is the coefficient of
    sample i in v_c. Iterates after step ``start`` are summed. Edits V, A, beta and the state.
    """
    if push.shape[1] == 1 and batch == 1 and not project:
        _plain_steps(
            indptr, indices, data, push.reshape(-1), order, bias, lam, t, start, V.reshape(-1), A.reshape(-1),
            beta.reshape(-1), state[0],
        )  # fmt: skip
        return
    m = stop - first
    own, flat = state[first:stop].copy(), V.reshape(-1)
    f, factor, u, level = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    members, hit = np.zeros(m, np.uint32), np.zeros((batch, m), np.bool_)
    for begin in range(0, order.shape[0], batch):
        chosen = order[begin : begin + batch]
        t += 1
        for c in range(m):
            factor[c] = own[c, SCALE] / (lam * t) if lam > 0.0 else 1.0
            if t > start:
                own[c, SUM] += factor[c]
        _foresee(order, begin, batch, indptr, indices, data, push.reshape(-1), beta.reshape(-1))
        for s in range(chosen.shape[0]):
            i = chosen[s]
            columns, values = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
            _values_of(columns, values, V, flat, first, f)
            for c in range(m):
                margin = f[c] + bias * own[c, BIAS]
                margin = margin if push[i, first + c] > 0.0 else -margin
                hit[s, c] = margin * factor[c] < 1.0 if lam > 0.0 else margin <= 0.0
        for s in range(chosen.shape[0]):
            i = chosen[s]
            columns, values = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
            if project and batch > 1:
                _values_of(columns, values, V, flat, first, f)
            count = 0
            for c in range(m):
                if not hit[s, c]:
                    continue
                change = push[i, first + c] / (chosen.shape[0] * own[c, SCALE])
                if project:
                    g = f[c] + bias * own[c, BIAS]
                    own[c, NORM] += change * (2.0 * g + change * (norms[i] + bias))
                members[count], u[count], level[count] = first + c, change, own[c, SUM]
                own[c, BIAS] += change * bias
                own[c, BIAS_SUM] += own[c, SUM] * change * bias
                beta[i, first + c] += change
                own[c, UPDATES] += 1.0
                count += 1
            if count > 0:
                _add_to(columns, values, members[:count], u, level, V, A)
        if project:
            for c in range(m):
                _project(own[c], lam, t)
                if own[c, SCALE] < SMALLEST_SCALE:
                    k = first + c
                    if indices.shape[0] == data.shape[0]:
                        _settle(own[c], V[:, k], A[:, k])
                    else:
                        _settle(own[c], V[k], A[k])
                    beta[:, k] *= own[c, SCALE]
                    _settle_state(own[c])
    state[first:stop] = own


@compiled()
def _forget(budget, v, A, diagonal):
    """While more members than the budget carry weight, forget the shortest w_j phi(x_j), the oldest of equals."""
    n_classes, n = v.shape
    while True:
        kept, least, place = 0, np.inf, -1
        for j in range(n):
            size = 0.0
            for c in range(n_classes):
                size += v[c, j] * v[c, j]
            if size > 0.0:
                kept += 1
                size *= diagonal[j]
                if size < least:
                    least, place = size, j
        if kept <= budget or place < 0:
            return
        for c in range(n_classes):
            v[c, place] = 0.0
            A[c, place] = 0.0


@compiled()
def kernel_steps(K, position, diagonal, y, weight, batch, bias, lam, project, t, start, budget, v, A, state):
    """The same for coefficients over members: ``position[s]`` is the member drawn at place s, whose kernel row is K[s].

    y, v and A have a row per problem, state too; all problems see the same samples. ``budget`` members at most carry
    weight, -1 for any number. Edits v, A and the state.
    """
    n_classes = y.shape[0]
    hit = np.zeros((batch, n_classes), np.bool_)
    for first in range(0, position.shape[0], batch):
        size = min(batch, position.shape[0] - first)
        t += 1
        for c in range(n_classes):
            factor = state[c, SCALE] / (lam * t) if lam > 0.0 else 1.0
            if t > start:
                state[c, SUM] += factor
            for s in range(size):
                margin = y[c, position[first + s]] * (dot(K[first + s], v[c]) + bias * state[c, BIAS])
                hit[s, c] = margin * factor < 1.0 if lam > 0.0 else margin <= 0.0
        moved = False
        for s in range(size):
            j = position[first + s]
            for c in range(n_classes):
                if not hit[s, c]:
                    continue
                moved = True
                u = y[c, j] * weight[j] / (size * state[c, SCALE])
                if project:
                    f = dot(K[first + s], v[c]) + bias * state[c, BIAS]
                    state[c, NORM] += u * (2.0 * f + u * (diagonal[j] + bias))
                v[c, j] += u
                A[c, j] += state[c, SUM] * u
                state[c, BIAS] += u
                state[c, UPDATES] += 1.0
        if project:
            for c in range(n_classes):
                _project(state[c], lam, t)
                if state[c, SCALE] < SMALLEST_SCALE:
                    _settle(state[c], v[c], A[c])
                    _settle_state(state[c])
        if moved and budget >= 0:
            _forget(budget, v, A, diagonal)
            for c in range(n_classes):
                state[c, BIAS] = v[c].sum()
