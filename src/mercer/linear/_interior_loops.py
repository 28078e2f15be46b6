"""Passes over all samples of the interior-point method for linear machines (see `mercer.linear.central_path`).

A sample has one variable b in [lower, upper] or, with an l1 term, two parts: b = x0 - x1 with x0, x1 >= 0. Part k has
the distances dn, up to its bounds and their multipliers zd, zu. For an infinite bound the distance is 1 and the
multiplier 0; fd, fu are 1 for finite bounds and 0 for infinite ones. With t = linear - f the conditions are

    t - ridge b + zd - zu = 0                          one part
    t - ridge b - l1 + zd0 - zu0 = 0,  -(t - ridge b) - l1 + zd1 - zu1 = 0      two parts

and a Newton step in which f changes by a is  db = D (g - a); `weights` computes D and D g.
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.intrinsics import larger
from mercer.linear._row_loops import sparse_row_add

# rows per block in `dense_gram`
GATHERED = 128


@compiled()
def _between(t, room, mu):
    """(dn, up) with dn + up = room and  mu/up - mu/dn = t,  each without cancellation."""
    half = 0.5 * room
    x = t * half * half / (mu + np.sqrt(mu * mu + t * t * half * half))
    if t < 0.0:
        up = half - x
        return mu / (mu / up - t), up
    dn = half + x
    return dn, mu / (mu / dn + t)


@compiled()
def _beyond(t, curvature, mu):
    """The distance y from the only bound with  curvature y - mu/y = t."""
    root = np.sqrt(t * t + 4.0 * curvature * mu)
    return 2.0 * mu / (root - t) if t < 0.0 else (t + root) / (2.0 * curvature)


@compiled()
def _place(k, i, lower, upper, t, ridge, mu, dn, up, zd, zu):
    """Set part k of sample i to its point of the central path for the slope t; return its value."""
    dn[k, i], up[k, i], zd[k, i], zu[k, i] = 1.0, 1.0, 0.0, 0.0
    if lower > -np.inf and upper < np.inf:
        dn[k, i], up[k, i] = _between(t, upper - lower, mu)
        zd[k, i], zu[k, i] = mu / dn[k, i], mu / up[k, i]
        return lower + dn[k, i] if dn[k, i] < up[k, i] else upper - up[k, i]
    if lower > -np.inf:
        dn[k, i] = _beyond(t - ridge * lower, ridge, mu)
        zd[k, i] = mu / dn[k, i]
        return lower + dn[k, i]
    if upper < np.inf:
        up[k, i] = _beyond(ridge * upper - t, ridge, mu)
        zu[k, i] = mu / up[k, i]
        return upper - up[k, i]
    return t / ridge


@compiled()
def centre(t, l1, ridge, lower, upper, mu, beta, dn, up, zd, zu):
    """Fill beta and the parts with the point of the central path at mu for the given t."""
    split = dn.shape[0] == 2
    for i in range(t.shape[0]):
        if split:
            positive = _place(0, i, 0.0, upper[i], t[i] - l1[i], ridge[i], mu, dn, up, zd, zu)
            beta[i] = positive - _place(1, i, 0.0, -lower[i], -t[i] - l1[i], ridge[i], mu, dn, up, zd, zu)
        else:
            beta[i] = _place(0, i, lower[i], upper[i], t[i], ridge[i], mu, dn, up, zd, zu)


@compiled(fast=True)
def _weights_whole(t, ridge, beta, dn, up, zd, zu, rd, ru, D, Dg):
    for i in range(t.shape[0]):
        D[i] = 1.0 / (ridge[i] + zd[i] / dn[i] + zu[i] / up[i])
        Dg[i] = D[i] * (t[i] - ridge[i] * beta[i] + rd[i] / dn[i] - ru[i] / up[i])


@compiled(fast=True)
def _weights_split(t, l1, ridge, beta, dn, up, zd, zu, rd, ru, D, Dg):
    dn0, dn1, up0, up1 = dn[0], dn[1], up[0], up[1]
    zd0, zd1, zu0, zu1 = zd[0], zd[1], zu[0], zu[1]
    rd0, rd1, ru0, ru1 = rd[0], rd[1], ru[0], ru[1]
    for i in range(t.shape[0]):
        s = t[i] - ridge[i] * beta[i]
        inverse_0 = 1.0 / (zd0[i] / dn0[i] + zu0[i] / up0[i])
        inverse_1 = 1.0 / (zd1[i] / dn1[i] + zu1[i] / up1[i])
        g0 = s - l1[i] + rd0[i] / dn0[i] - ru0[i] / up0[i]
        g1 = -s - l1[i] + rd1[i] / dn1[i] - ru1[i] / up1[i]
        total = inverse_0 + inverse_1
        shared = 1.0 / (1.0 + ridge[i] * total)
        D[i] = total * shared
        Dg[i] = (g0 * inverse_0 - g1 * inverse_1) * shared


@compiled()
def weights(t, l1, ridge, beta, dn, up, zd, zu, rd, ru, D, Dg):
    """Fill D and D g for a step after which the products distance * multiplier are rd and ru (0 for the predictor)."""
    if dn.shape[0] == 2:
        _weights_split(t, l1, ridge, beta, dn, up, zd, zu, rd, ru, D, Dg)
    else:
        _weights_whole(t, ridge, beta, dn[0], up[0], zd[0], zu[0], rd[0], ru[0], D, Dg)


@compiled(fast=True)
def _part_step(dx, dn, up, zd, zu, fd, fu, rd, ru, dzd, dzu):
    """Fill the change of the multipliers for the change dx of a part; (rate, products, slope, bend) as `step`."""
    # v > 0 with change d reaches 0 at the step length 1 / max(0, -d/v): rate is the largest -d/v
    rate = 0.0
    now, slope, bend = 0.0, 0.0, 0.0
    for i in range(dx.shape[0]):
        down, upward = fd[i] * dx[i], -fu[i] * dx[i]
        inverse_dn, inverse_up = 1.0 / dn[i], 1.0 / up[i]
        dzd[i] = fd[i] * ((rd[i] - zd[i] * down) * inverse_dn - zd[i])
        dzu[i] = fu[i] * ((ru[i] - zu[i] * upward) * inverse_up - zu[i])
        rate = larger(rate, larger(-down * inverse_dn, -upward * inverse_up))
        rate = larger(rate, larger(-dzd[i] / larger(zd[i], 1e-300), -dzu[i] / larger(zu[i], 1e-300)))
        now += dn[i] * zd[i] + up[i] * zu[i]
        slope += dn[i] * dzd[i] + zd[i] * down + up[i] * dzu[i] + zu[i] * upward
        bend += down * dzd[i] + upward * dzu[i]
    return rate, now, slope, bend


@compiled(fast=True)
def _split_step(t, l1, ridge, beta, dn, up, zd, zu, rd, ru, a, dbeta, dx):
    """Fill dx of the two parts, whose difference changes by dbeta."""
    dn0, dn1, up0, up1 = dn[0], dn[1], up[0], up[1]
    zd0, zd1, zu0, zu1 = zd[0], zd[1], zu[0], zu[1]
    rd0, rd1, ru0, ru1 = rd[0], rd[1], ru[0], ru[1]
    dx0, dx1 = dx[0], dx[1]
    for i in range(t.shape[0]):
        s = t[i] - ridge[i] * beta[i] - a[i] - ridge[i] * dbeta[i]
        theta_0 = zd0[i] / dn0[i] + zu0[i] / up0[i]
        theta_1 = zd1[i] / dn1[i] + zu1[i] / up1[i]
        first = (s - l1[i] + rd0[i] / dn0[i] - ru0[i] / up0[i]) / theta_0
        second = (-s - l1[i] + rd1[i] / dn1[i] - ru1[i] / up1[i]) / theta_1
        # compute the stiffer part, which is more accurate; the other follows from the difference
        stiff = theta_0 >= theta_1
        dx0[i] = first if stiff else dbeta[i] + second
        dx1[i] = first - dbeta[i] if stiff else second


@compiled(fast=True)
def _whole_step(a, D, Dg, dbeta):
    for i in range(a.shape[0]):
        dbeta[i] = Dg[i] - D[i] * a[i]


@compiled()
def step(t, l1, ridge, beta, dn, up, zd, zu, fd, fu, rd, ru, a, D, Dg, dbeta, dx, dzd, dzu):
    """Fill dbeta, dx, dzd, dzu for the change a of f. Returns (rate, products, slope, bend).

    The longest feasible step is 1/rate. The sum of the products after a step s is products + s (slope + s bend).
    """
    _whole_step(a, D, Dg, dbeta)
    if dn.shape[0] == 1:
        for i in range(dbeta.shape[0]):  # assigning a slice would compile numpy's check of shapes, for seconds
            dx[0, i] = dbeta[i]
    else:
        _split_step(t, l1, ridge, beta, dn, up, zd, zu, rd, ru, a, dbeta, dx)
    rate, now, slope, bend = 0.0, 0.0, 0.0, 0.0
    for k in range(dn.shape[0]):
        r, p, s, c = _part_step(dx[k], dn[k], up[k], zd[k], zu[k], fd[k], fu[k], rd[k], ru[k], dzd[k], dzu[k])
        rate, now, slope, bend = max(rate, r), now + p, slope + s, bend + c
    return rate, now, slope, bend


@compiled(fast=True)
def corrections(target, fd, fu, dx, dzd, dzu, rd, ru):
    """Fill rd, ru with the wanted products: target minus the second-order terms of the predictor."""
    for k in range(dx.shape[0]):
        f0, f1, x, z0, z1, r0, r1 = fd[k], fu[k], dx[k], dzd[k], dzu[k], rd[k], ru[k]
        for i in range(x.shape[0]):
            r0[i] = f0[i] * (target - x[i] * z0[i])
            r1[i] = f1[i] * (target + x[i] * z1[i])


@compiled(fast=True)
def move(length, a, dbeta, dx, dzd, dzu, fd, fu, t, beta, dn, up, zd, zu):
    """Move along the step. Edits t, beta, dn, up, zd and zu in place."""
    for i in range(t.shape[0]):
        t[i] -= length * a[i]
        beta[i] += length * dbeta[i]
    for k in range(dn.shape[0]):
        f0, f1, x, z0, z1, n0, n1, m0, m1 = fd[k], fu[k], dx[k], dzd[k], dzu[k], dn[k], up[k], zd[k], zu[k]
        for i in range(x.shape[0]):
            n0[i] += length * f0[i] * x[i]
            n1[i] -= length * f1[i] * x[i]
            m0[i] += length * z0[i]
            m1[i] += length * z1[i]


@compiled()
def loss_and_gap(t, l1, ridge, lower, upper, beta):
    """(sum of conj(t), sum of conj(t) - t b + l1 |b| + ridge b^2 / 2): the loss and the samples' part of the gap.

    conj(t) is the largest value of  t b - l1 |b| - ridge b^2 / 2  over the box.
    """
    value, gap = 0.0, 0.0
    for i in range(t.shape[0]):
        slope = abs(t[i]) - l1[i]
        conj = 0.0
        if slope > 0.0:
            # the box contains 0
            best = upper[i] if t[i] > 0.0 else -lower[i]
            if ridge[i] > 0.0:
                best = min(best, slope / ridge[i])
            conj = slope * best - 0.5 * ridge[i] * best * best
        b = beta[i]
        value += conj
        gap += conj - t[i] * b + l1[i] * abs(b) + 0.5 * ridge[i] * b * b
    return value, gap


@compiled(fast=True)
def sparse_gram(indptr, indices, data, D, H, h):
    """Add X'DX to H, each off-diagonal product to only one of its two places, and X'D1 to h; indices are unsigned."""
    for i in range(D.shape[0]):
        if D[i] == 0.0:
            continue
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        sparse_row_add(indices, data, begin, end, D[i], h)
        for s in range(begin, end):
            sparse_row_add(indices, data, s, end, D[i] * np.float64(data[s]), H[indices[s]])


@compiled(fast=True)
def _four_products(a0, a1, b0, b1):
    """a0.b0, a0.b1, a1.b0 and a1.b1: each number read is used in two products."""
    s00, s01, s10, s11 = 0.0, 0.0, 0.0, 0.0
    for i in range(a0.shape[0]):
        s00 += a0[i] * b0[i]
        s01 += a0[i] * b1[i]
        s10 += a1[i] * b0[i]
        s11 += a1[i] * b1[i]
    return s00, s01, s10, s11


@compiled(fast=True)
def dense_gram(X, D, bias, H):
    """H = X'DX for few columns, with a constant last column of value ``bias`` unless it is 0; D >= 0.

    Rows with D > 0 are scaled by the root of D and transposed in blocks that fit the L1 cache.
    """
    n, stored = X.shape
    d = H.shape[0]
    even = d + d % 2
    A, S = np.zeros((even, GATHERED)), np.zeros((even, even))
    i = 0
    while i < n:
        count = 0
        while i < n and count < GATHERED:
            if D[i] != 0.0:
                root, row = np.sqrt(D[i]), X[i]
                for j in range(stored):
                    A[j, count] = root * np.float64(row[j])
                if bias != 0.0:
                    A[stored, count] = root * bias
                count += 1
            i += 1
        for j in range(0, even, 2):
            a0, a1 = A[j, :count], A[j + 1, :count]
            for k in range(0, j + 2, 2):
                s00, s01, s10, s11 = _four_products(a0, a1, A[k, :count], A[k + 1, :count])
                S[j, k] += s00
                S[j, k + 1] += s01
                S[j + 1, k] += s10
                S[j + 1, k + 1] += s11
    for j in range(d):
        for k in range(j + 1):
            H[j, k] = H[k, j] = S[j, k]
