"""Block coordinate descent on the dual of the Crammer-Singer machine: all classes of a sample at once.

    min  1/2 sum_k |w_k|^2 + sum_ik (1 - [k = y_i]) a_ik     s.t.  a_ik <= C_i [k = y_i],  sum_k a_ik = 0

with w_k = sum_i a_ik x_i. W has a row per feature and a column per class. Rows of X are stored as in
`_coordinate_loops`.
"""

import numpy as np

from mercer._compiled.compile import compiled


@compiled()
def scores(indices, values, start, stop, bias, W, label, out):
    """out[k] = x.w_k + 1 - [k = label]."""
    last = W[W.shape[0] - 1]
    for k in range(out.shape[0]):
        out[k] = bias * last[k] + 1.0
    out[label] -= 1.0
    for t in range(np.intp(start), np.intp(stop)):
        column = np.intp(indices[t]) if indices.shape[0] > 0 else t - np.intp(start)
        line = W[column]
        value = np.float64(values[t])
        for k in range(out.shape[0]):
            out[k] += value * line[k]


@compiled()
def add_to_weights(indices, values, start, stop, bias, change, W):
    """Add x times change to W."""
    for t in range(np.intp(start), np.intp(stop)):
        column = np.intp(indices[t]) if indices.shape[0] > 0 else t - np.intp(start)
        line = W[column]
        value = np.float64(values[t])
        for k in range(change.shape[0]):
            line[k] += value * change[k]
    if bias != 0.0:
        line = W[W.shape[0] - 1]
        for k in range(change.shape[0]):
            line[k] += bias * change[k]


@compiled()
def project_sample(z, label, C, out):
    """out = the point of {a : a_k <= C [k = label], sum a = 0} closest to z.

    It is  min(C [k = label], z_k + t)  with the t for which the sum is 0. An entry that exceeds its bound for one t
    does so at the end (Michelot, JOTA 50, 1986). C is added only if the label is at its bound, so that a large C costs
    no digits.
    """
    K = z.shape[0]
    # -inf marks the entries below their bound
    out[:] = -np.inf
    free, fixed, t = K, 0.0, 0.0
    while free > 0:
        total = fixed
        for k in range(K):
            if out[k] == -np.inf:
                total += z[k]
        t = -total / free
        met = 0
        for k in range(K):
            bound = C if k == label else 0.0
            if out[k] == -np.inf and z[k] + t >= bound:
                out[k] = bound
                fixed += bound
                met += 1
        free -= met
        if met == 0:
            break
    # the free entry of largest size absorbs the rounding error of the sum
    rest, widest = 0.0, -1
    for k in range(K):
        if out[k] == -np.inf:
            out[k] = z[k] + t
            if widest < 0 or abs(out[k]) > abs(out[widest]):
                widest = k
        rest += out[k]
    if widest >= 0:
        out[widest] = min(out[widest] - rest, C if widest == label else 0.0)


@compiled()
def sample_violation(a, score, label, C):
    """The KKT violation of a sample: its largest score minus the smallest score of a class whose a may grow.

    If only the a of the label may grow (a = 0) and the label has the largest score, minus its lead over the second.
    """
    highest, lowest, second = -np.inf, np.inf, -np.inf
    for k in range(a.shape[0]):
        highest = max(highest, score[k])
        if a[k] < (C if k == label else 0.0):
            lowest = min(lowest, score[k])
        if k != label:
            second = max(second, score[k])
    if lowest == np.inf:
        return -np.inf
    if highest > lowest:
        return highest - lowest
    return second - lowest if a[label] == 0.0 else 0.0


@compiled()
def descend_samples(indptr, indices, values, bias, W, alpha, norms, labels, weight, order, level, out):
    """One pass over the samples in this order. Edits W, alpha and order; returns how many remain active.

    Fills out with (largest violation, gap, decrease of the objective, samples whose free classes have changed, entries
    of X read).
    """
    K = W.shape[1]
    score, target, new = np.empty(K), np.empty(K), np.empty(K)
    largest, gap, decrease, crossed, work, kept = 0.0, 0.0, 0.0, 0, 0.0, 0
    for position in range(order.shape[0]):
        i = order[position]
        start, stop = indptr[i], indptr[i + np.uint64(1)]
        label, C, A = labels[i], weight[i], norms[i]
        a = alpha[i]
        scores(indices, values, start, stop, bias, W, label, score)
        work += float(stop - start)
        violation = sample_violation(a, score, label, C)
        if violation < -level:
            continue
        order[kept] = i
        kept += 1
        if violation <= 0.0:
            continue
        largest = max(largest, violation)
        highest, product = -np.inf, 0.0
        for k in range(K):
            highest = max(highest, score[k])
            product += a[k] * score[k]
        # Fenchel-Young: the loss, its term in the dual, and a.f; the sum of a is 0
        gap += C * (highest - score[label]) + product
        if A > 0.0:
            for k in range(K):
                target[k] = a[k] - score[k] / A
            project_sample(target, label, C, new)
        else:
            # an empty row: only the loss depends on it. Put all on one wrong class
            new[:] = 0.0
            new[0 if label != 0 else 1] = -C
            new[label] = C
        changed, free_changed = False, False
        for k in range(K):
            bound = C if k == label else 0.0
            free_changed |= (a[k] < bound) != (new[k] < bound)
            step = new[k] - a[k]
            changed |= step != 0.0
            decrease -= step * (score[k] + 0.5 * A * step)
            target[k] = step
            a[k] = new[k]
        if changed:
            add_to_weights(indices, values, start, stop, bias, target, W)
            work += float(stop - start)
        crossed += free_changed
    out[0], out[1], out[2], out[3], out[4] = largest, gap, decrease, crossed, work
    return kept


@compiled()
def check_samples(indptr, indices, values, bias, W, alpha, labels, weight, level, order, out):
    """Find the samples to visit next: fill order with them and return their number.

    Fills out with (largest violation, sum of the losses, dual value without -1/2|W|^2).
    """
    K = W.shape[1]
    score = np.empty(K)
    largest, loss, value, kept = 0.0, 0.0, 0.0, 0
    for i in range(alpha.shape[0]):
        label = labels[i]
        scores(indices, values, indptr[i], indptr[i + 1], bias, W, label, score)
        violation = sample_violation(alpha[i], score, label, weight[i])
        largest = max(largest, violation)
        highest = score[0]
        for k in range(1, K):
            highest = max(highest, score[k])
        loss += weight[i] * (highest - score[label])
        value += alpha[i, label]
        if violation >= -level:
            order[kept] = i
            kept += 1
    out[0], out[1], out[2] = largest, loss, value
    return kept


@compiled()
def _project_to_face(a, label, C, p):
    """Project p onto the face: 0 for the classes at their bound, and a sum of 0. Edits p."""
    total, free = 0.0, 0
    for k in range(a.shape[0]):
        if a[k] < (C if k == label else 0.0):
            total += p[k]
            free += 1
        else:
            p[k] = 0.0
    for k in range(a.shape[0]):
        if a[k] < (C if k == label else 0.0):
            p[k] -= total / free


@compiled()
def face_step_samples(indptr, indices, values, bias, W, alpha, norms, labels, weight, goal, max_steps, out):
    """A Newton step on the free a by conjugate gradients, projected onto the feasible set. Edits W and alpha.

    The iteration ends when the gap due to the residual is at most ``goal``. The step is halved until the objective
    decreases. Fills out with (iterations, share of the step taken, decrease, entries of X read).
    """
    m, K = alpha.shape
    r, z, p, step = np.empty((m, K)), np.empty((m, K)), np.empty((m, K)), np.zeros((m, K))
    U, line, change_of = np.empty_like(W), np.empty(K), np.empty(K)
    rz, entries = 0.0, float(indptr[m] - indptr[0])
    work = entries
    for i in range(m):
        scores(indices, values, indptr[i], indptr[i + 1], bias, W, labels[i], r[i])
        _project_to_face(alpha[i], labels[i], weight[i], r[i])
        for k in range(K):
            r[i, k] = -r[i, k]
            z[i, k] = r[i, k] / norms[i]
            p[i, k] = z[i, k]
            rz += r[i, k] * z[i, k]
    done, gap = 0, np.inf
    while done < max_steps and rz > 0.0 and gap > goal:
        U[:] = 0.0
        for i in range(m):
            add_to_weights(indices, values, indptr[i], indptr[i + 1], bias, p[i], U)
        # |X'p|^2 is the curvature
        curvature = 0.0
        for t in range(W.shape[0]):
            for k in range(K):
                curvature += U[t, k] * U[t, k]
        work += 2.0 * entries
        if not curvature > 0.0:
            break
        a = rz / curvature
        new, gap = 0.0, 0.0
        for i in range(m):
            scores(indices, values, indptr[i], indptr[i + 1], bias, U, labels[i], line)
            # remove the terms 1 - [k = label] that scores adds
            for k in range(K):
                line[k] -= 0.0 if k == labels[i] else 1.0
            _project_to_face(alpha[i], labels[i], weight[i], line)
            widest = 0.0
            for k in range(K):
                step[i, k] += a * p[i, k]
                r[i, k] -= a * line[k]
                z[i, k] = r[i, k] / norms[i]
                new += r[i, k] * z[i, k]
                widest = max(widest, abs(r[i, k]))
            gap += 2.0 * weight[i] * widest
        for i in range(m):
            for k in range(K):
                p[i, k] = z[i, k] + new / rz * p[i, k]
        rz = new
        done += 1
    share, decrease = 1.0, 0.0
    for _ in range(12):
        U[:] = 0.0
        change = 0.0
        work += entries
        for i in range(m):
            for k in range(K):
                line[k] = alpha[i, k] + share * step[i, k]
            project_sample(line, labels[i], weight[i], z[i])
            for k in range(K):
                change_of[k] = z[i, k] - alpha[i, k]
                if k != labels[i]:
                    change += change_of[k]
            add_to_weights(indices, values, indptr[i], indptr[i + 1], bias, change_of, U)
        for t in range(W.shape[0]):
            for k in range(K):
                change += U[t, k] * (W[t, k] + 0.5 * U[t, k])
        if change < 0.0:
            decrease = -change
            for i in range(m):
                for k in range(K):
                    alpha[i, k] = z[i, k]
            for t in range(W.shape[0]):
                for k in range(K):
                    W[t, k] += U[t, k]
            break
        share *= 0.5
    out[0], out[1], out[2], out[3] = done, share, decrease, work
