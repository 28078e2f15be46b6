"""Steps of stochastic subgradient descent on the hinge loss, and of the perceptron.

    choose i;  if y_i <w_t, x_i> < 1:  theta += y_i x_i;    w_t = theta / (lam t)     [SSBD] 15.5, 16.3; [L8] Alg. 1
    choose i;  if y_i <w, x_i> <= 0:   w += y_i x_i                                   [SSBD] Remark 15.1

The second is the first with lam = 0. With projection, theta = scale v. Vectors are never scaled, so a step costs as
many operations as its samples have entries. Steps of given sizes eta_t are taken in the same way with w = scale v:

    choose i;  h = 1 if y_i <w, x_i> < 1 else 0;  w := (1 - eta_t lam) w + eta_t h y_i x_i     [D6] Note 26, corrected

The sum of all iterates is kept in the same way. Let c_t be the factor in w_t = c_t v and S_t = c_1 + ... + c_t. An
update u_j of v at step j is part of all iterates after j, so that  sum_t c_t v_t = S_T v - A  with A = sum_j S_j u_j.
Projections make the scale small, and then S_T v - A is a difference of large numbers: before that happens, the scale
is multiplied into v, and the sum so far is moved into A.

Samples are CSR arrays with unsigned column indices, which need no check for negative values. For a dense matrix indices
is empty, and each row is as long as v without the intercept. The state of a problem is: scale, S, |v|^2, number of
updates, intercept of v, and its A.
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.intrinsics import prefetch
from mercer._compiled.pointers import borrow
from mercer.linear._row_loops import dot, sparse_row_add, sparse_row_dot

# steps to prefetch ahead
AHEAD = 16
SMALLEST_SCALE = 0.125
# positions are unsigned: numba tests signed ones for negative values at each access. Functions take positions, not
# slices, since making a slice takes longer than reading a short sample
ZERO, ONE = np.uint64(0), np.uint64(1)
# entries of a sample to prefetch ahead, and numbers per cache line
SOON, NUMBERS = np.uint64(8), np.uint64(8)

SCALE, SUM, NORM, UPDATES, BIAS, BIAS_SUM = range(6)


@compiled(fast=True, merged=True)
def _dot(indices, data, start, stop, v, at):
    """<x, v> for the sample with the entries from start to stop (unsigned); a dense v begins at ``at``."""
    if indices.shape[0] == data.shape[0]:
        return sparse_row_dot(indices, data, start, stop, v)
    total = 0.0
    for p in range(start, stop):
        total += data[p] * v[p - start + at]
    return total


@compiled(fast=True, merged=True)
def _add(indices, data, start, stop, u, v, level, A, at):
    """v += u x and A += level u x. Edits v and A."""
    both = level * u
    if indices.shape[0] == data.shape[0]:
        for p in range(start, stop):
            v[indices[p]] += u * data[p]
            A[indices[p]] += both * data[p]
    else:
        for p in range(start, stop):
            v[p - start + at] += u * data[p]
            A[p - start + at] += both * data[p]


@compiled(fast=True, merged=True)
def _values_of(indices, data, start, stop, V, length, first, f):
    """f[c] = <x, v_c> for the problems from ``first`` on; V is flat, with rows of this ``length``."""
    if indices.shape[0] == data.shape[0]:
        f[:] = 0.0
        for p in range(start, stop):
            if p + SOON < stop:
                later = indices[p + SOON] * length + first
                for at in range(later, later + np.uint64(f.shape[0]), NUMBERS):
                    prefetch(V, at)
            x, at = data[p], indices[p] * length + first
            for c in range(f.shape[0]):
                f[c] += x * V[at + np.uint64(c)]
    else:
        for c in range(f.shape[0]):
            f[c] = _dot(indices, data, start, stop, V, (first + np.uint64(c)) * length)


@compiled(fast=True, merged=True)
def _add_to(indices, data, start, stop, members, count, u, level, V, A, length):
    """v_c += u x and A_c += level u x for each of these problems. Edits V and A."""
    if indices.shape[0] == data.shape[0]:
        for p in range(start, stop):
            x, at = data[p], indices[p] * length
            for h in range(count):
                change = u[h] * x
                V[at + members[h]] += change
                A[at + members[h]] += level[h] * change
    else:
        for h in range(count):
            _add(indices, data, start, stop, u[h], V, level[h], A, members[h] * length)


@compiled(fast=True)
def sparse_values(indptr, indices, data, V, out):
    """out[i, c] = <x_i, v_c>, where V has a row for each feature."""
    flat, m = V.reshape(-1), np.uint64(V.shape[1])
    f = np.zeros(V.shape[1])
    for i in range(out.shape[0]):
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        if m == ONE:
            out[i, 0] = _dot(indices, data, start, stop, flat, ZERO)
        else:
            _values_of(indices, data, start, stop, flat, m, ZERO, f)
            for c in range(f.shape[0]):  # assigning a slice would compile numpy's check of shapes, for seconds
                out[i, c] = f[c]


@compiled(fast=True)
def sparse_sums(indptr, indices, data, beta, V):
    """Add sum_i beta[i, c] x_i to v_c, where V has a row for each feature; skips zeros of beta. Edits V."""
    flat, m = V.reshape(-1), np.uint64(V.shape[1])
    members, b = np.zeros(V.shape[1], np.uint64), np.zeros(V.shape[1])
    for i in range(beta.shape[0]):
        start, stop, count = np.uint64(indptr[i]), np.uint64(indptr[i + 1]), 0
        for c in range(beta.shape[1]):
            if beta[i, c] != 0.0:
                members[count], b[count] = c, beta[i, c]
                count += 1
        if m == ONE and count == 1:
            sparse_row_add(indices, data, start, stop, b[0], flat)
        elif count > 0:
            for p in range(start, stop):
                if p + SOON < stop:
                    prefetch(flat, indices[p + SOON] * m + members[0])
                x, at = data[p], indices[p] * m
                for h in range(count):
                    flat[at + members[h]] += b[h] * x


@compiled()
def _project(state, lam, t):
    """Project w_{t+1} onto the ball of radius 1/sqrt(lam), which contains the optimum. Edits the scale."""
    length = state[SCALE] * np.sqrt(max(state[NORM], 0.0))
    longest = np.sqrt(lam) * (t + 1)
    if length > longest:
        state[SCALE] *= longest / length


@compiled()
def _fold_scale(state, v, A):
    """Reset the scale to 1 and the sum to 0 without changing the iterates or their sum. Edits v and A only."""
    for k in range(v.shape[0]):
        A[k] -= state[SUM] * v[k]
        v[k] *= state[SCALE]


@compiled()
def _fold_scale_of_state(state):
    """`_fold_scale` for the scalars of the state."""
    state[BIAS_SUM] -= state[SUM] * state[BIAS]
    state[BIAS] *= state[SCALE]
    state[NORM] *= state[SCALE] ** 2
    state[SUM] = 0.0
    state[SCALE] = 1.0


@compiled()
def _fold_problem(state, V, A, beta, k, by_feature):
    """`_fold_scale` for problem k: its part of V and A, its coefficients and its state. Edits all of them."""
    if by_feature:
        _fold_scale(state, V[:, k], A[:, k])
    else:
        _fold_scale(state, V[k], A[k])
    for i in range(beta.shape[0]):
        beta[i, k] *= state[SCALE]
    _fold_scale_of_state(state)


@compiled(merged=True)
def _prefetch_ahead(order, s, indptr, indices, data, push, beta, n_problems):
    """Prefetch the pointers of a sample AHEAD steps later, and the entries of one half as many steps later."""
    if s + AHEAD < order.shape[0]:
        i = np.uint64(order[s + AHEAD])
        prefetch(indptr, i)
        prefetch(push, i * n_problems)
        prefetch(beta, i * n_problems)
        i = np.uint64(order[s + AHEAD // 2])
        start, last = np.uint64(indptr[i]), np.uint64(indptr[i + ONE]) - ONE
        prefetch(data, start)
        prefetch(data, start + NUMBERS)
        prefetch(data, last)
        if indices.shape[0] > 0:
            prefetch(indices, start)
            prefetch(indices, last)


@compiled(fast=True)
def _plain_steps(indptr, indices, data, push, order, bias, lam, t, start, v, A, beta, state):
    """`linear_steps` for one problem, one sample per step and no projection: the scalars stay in registers."""
    indptr, indices, data, order = borrow(indptr), borrow(indices), borrow(data), borrow(order)
    push, v, A, beta = borrow(push), borrow(v), borrow(A), borrow(beta)
    scale, level, b, b_sum, updates = state[SCALE], state[SUM], state[BIAS], state[BIAS_SUM], 0
    for s in range(order.shape[0]):
        _prefetch_ahead(order, s, indptr, indices, data, push, beta, ONE)
        i = np.uint64(order[s])
        t += 1
        factor = scale / (lam * t) if lam > 0.0 else 1.0
        if t > start:
            level += factor
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        f = _dot(indices, data, begin, end, v, ZERO) + bias * b
        margin = f if push[i] > 0.0 else -f
        if margin * factor < 1.0 if lam > 0.0 else margin <= 0.0:
            u = push[i] / scale
            _add(indices, data, begin, end, u, v, level, A, ZERO)
            b += u * bias
            b_sum += level * u * bias
            beta[i] += u
            updates += 1
    state[SUM], state[BIAS], state[BIAS_SUM] = level, b, b_sum
    state[UPDATES] += updates


@compiled()
def linear_steps(
    indptr, indices, data, norms, push, order, eta, batch, bias, lam, project, t, start, V, A, beta, state, first, stop
):
    """Take steps with the samples in ``order``, ``batch`` per step, from step t on, for problems from first to stop.

    For sparse samples V and A have a row for each feature, so that an entry of a sample updates all problems in one
    place; for dense ones a row for each problem. push[i, c] is y_i times the factor of its updates; beta[i, c] is the
    coefficient of sample i in v_c. Iterates after step ``start`` are summed. ``eta`` has the size of each step, or is
    empty for w_t = theta / (lam t); steps of given sizes are not projected. Edits V, A, beta and the state.
    """
    flat, flat_A, length = V.reshape(-1), A.reshape(-1), np.uint64(V.shape[1])
    flat_push, flat_beta = push.reshape(-1), beta.reshape(-1)
    free, by_feature = eta.shape[0] > 0, indices.shape[0] == data.shape[0]
    if push.shape[1] == 1 and batch == 1 and not project and not free:
        _plain_steps(indptr, indices, data, flat_push, order, bias, lam, t, start, flat, flat_A, flat_beta, state[0])
        return
    indptr, indices, data, order = borrow(indptr), borrow(indices), borrow(data), borrow(order)
    flat, flat_A, flat_push, flat_beta = borrow(flat), borrow(flat_A), borrow(flat_push), borrow(flat_beta)
    m, n_problems = stop - first, np.uint64(push.shape[1])
    own = state[first:stop].copy()
    f, factor, u, level = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    members, hit = np.zeros(m, np.uint64), np.zeros((batch, m), np.bool_)
    for place in range(0, order.shape[0], batch):
        size = min(batch, order.shape[0] - place)
        t += 1
        for c in range(m):
            if free:
                factor[c] = own[c, SCALE]
            else:
                factor[c] = own[c, SCALE] / (lam * t) if lam > 0.0 else 1.0
            if t > start:
                own[c, SUM] += factor[c]
        for s in range(size):
            _prefetch_ahead(order, place + s, indptr, indices, data, flat_push, flat_beta, n_problems)
            i = np.uint64(order[place + s])
            begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
            _values_of(indices, data, begin, end, flat, length, np.uint64(first), f)
            for c in range(m):
                margin = f[c] + bias * own[c, BIAS]
                margin = margin if push[i, first + c] > 0.0 else -margin
                hit[s, c] = margin * factor[c] < 1.0 if lam > 0.0 else margin <= 0.0
        length_of_step = 1.0
        if free:
            length_of_step = eta[place // batch]
            for c in range(m):
                own[c, SCALE] *= 1.0 - length_of_step * lam
                if abs(own[c, SCALE]) < SMALLEST_SCALE:
                    _fold_problem(own[c], V, A, beta, first + c, by_feature)
        for s in range(size):
            i = np.uint64(order[place + s])
            begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
            if project and batch > 1:
                _values_of(indices, data, begin, end, flat, length, np.uint64(first), f)
            count = 0
            for c in range(m):
                if not hit[s, c]:
                    continue
                change = length_of_step * push[i, first + c] / (size * own[c, SCALE])
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
                _add_to(indices, data, begin, end, members, count, u, level, flat, flat_A, length)
        if project:
            for c in range(m):
                _project(own[c], lam, t)
                if own[c, SCALE] < SMALLEST_SCALE:
                    _fold_problem(own[c], V, A, beta, first + c, by_feature)
    for c in range(own.shape[0]):
        for k in range(own.shape[1]):
            state[first + c, k] = own[c, k]


@compiled()
def _remove_shortest(budget, v, A, diagonal):
    """While more than ``budget`` members have a coefficient, remove the shortest w_j phi(x_j); in a tie the oldest."""
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
def kernel_steps(K, position, eta, diagonal, y, weight, batch, bias, lam, project, t, start, budget, v, A, state):
    """`linear_steps` for coefficients over members: ``position[s]`` is the member drawn at s, K[s] its kernel row.

    y, v, A and state have a row per problem; all problems see the same samples. At most ``budget`` members have a
    coefficient, -1 for no limit. Edits v, A and the state.
    """
    n_classes, free = y.shape[0], eta.shape[0] > 0
    hit = np.zeros((batch, n_classes), np.bool_)
    for first in range(0, position.shape[0], batch):
        size = min(batch, position.shape[0] - first)
        t += 1
        length_of_step = eta[first // batch] if free else 1.0
        for c in range(n_classes):
            if free:
                factor = state[c, SCALE]
            else:
                factor = state[c, SCALE] / (lam * t) if lam > 0.0 else 1.0
            if t > start:
                state[c, SUM] += factor
            for s in range(size):
                margin = y[c, position[first + s]] * (dot(K[first + s], v[c]) + bias * state[c, BIAS])
                hit[s, c] = margin * factor < 1.0 if lam > 0.0 else margin <= 0.0
            if free:
                state[c, SCALE] *= 1.0 - length_of_step * lam
                if abs(state[c, SCALE]) < SMALLEST_SCALE:
                    _fold_scale(state[c], v[c], A[c])
                    _fold_scale_of_state(state[c])
        moved = False
        for s in range(size):
            j = position[first + s]
            for c in range(n_classes):
                if not hit[s, c]:
                    continue
                moved = True
                u = length_of_step * y[c, j] * weight[j] / (size * state[c, SCALE])
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
                    _fold_scale(state[c], v[c], A[c])
                    _fold_scale_of_state(state[c])
        if moved and budget >= 0:
            _remove_shortest(budget, v, A, diagonal)
            for c in range(n_classes):
                state[c, BIAS] = v[c].sum()


# ---- the hinge loss without a bias: losses, dual points and violations of many problems ------------------------------
#
#     1/2 |w|^2 + sum_i C_i max(0, 1 - y_i f_i),     C_i = unit weight_i,     0 <= y_i beta_i <= C_i
#
# y, f and beta have a row for each problem. The violations depend on whether beta is exactly at an end of its box, so
# `dual_points` and `hinge_violations` are compiled without reordering.


@compiled(fast=True)
def hinge_losses(y, f, weight, unit, out):
    """out[c] = sum_i C_i max(0, 1 - y_i f_i)."""
    for c in range(y.shape[0]):
        total = 0.0
        for i in range(y.shape[1]):
            loss = 1.0 - y[c, i] * f[c, i]
            # max would drop NaN
            total += weight[i] * (0.0 if loss <= 0.0 else loss)
        out[c] = unit * total


@compiled()
def dual_points(y, weight, unit, coefficients, drawn, step, batch, beta, slopes):
    """beta_i = y_i C_i times the share of draws of i that were hits, 0 without draws; slopes = sum |beta|.

    Coefficients are signed sums of the factors of the updates, divided by the samples per step.
    """
    for c in range(y.shape[0]):
        total = 0.0
        for i in range(y.shape[1]):
            often = drawn[i] * step[i]
            share = abs(coefficients[c, i]) * batch / often
            share = 1.0 if share > 1.0 else share
            size = weight[i] * unit * (share if often > 0.0 else 0.0)
            beta[c, i] = y[c, i] * size
            total += size
        slopes[c] = total


@compiled()
def hinge_violations(y, f, weight, unit, beta, part, out):
    """out[c]: the largest violation by part beta of  1 - y f <= 0 if y beta < C  and  1 - y f >= 0 if y beta > 0."""
    for c in range(y.shape[0]):
        worst = 0.0
        for i in range(y.shape[1]):
            size = part[c] * beta[c, i] * y[c, i]
            slack = 1.0 - y[c, i] * f[c, i]
            grow = slack if size < weight[i] * unit else -np.inf
            shrink = -slack if size > 0.0 else -np.inf
            # NaN stays NaN
            worst = grow if grow > worst or grow != grow else worst
            worst = shrink if shrink > worst or shrink != shrink else worst
        out[c] = worst
