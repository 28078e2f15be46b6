"""Shapley values of products over features, and of polynomials of sums over features.

Shapley's weights are ∫₀¹ t^|S| (1-t)^(d-1-|S|) dt. So for a product over features with the factors a_l at x and c_l at
a background row,

    φ_j = (a_j - c_j) ∫₀¹ Π_{l≠j} (t a_l + (1-t) c_l) dt,

an integral of a polynomial of degree d - 1: Gauss and Legendre's rule with ⌈d/2⌉ nodes is exact. Products without
factor j are those of prefixes and suffixes, so nothing is divided by a small number.

A polynomial of degree p of a sum Σ u_l is a product over features as well, of power series in h up to h^p:

    (Σ u_l)^k = k! [h^k] Π_l exp(h u_l).
"""

import numpy as np

from mercer._compiled.compile import compiled

# support vectors that are handled together, and features in a block
LANES, BLOCK = 16, 4
# A record of a block has rows of LANES numbers: for each of its features c, a - c, the gain and the total; for each of
# two nodes the products of the factors before and behind the block. Indices are unsigned: numba's test for negative
# ones would keep LLVM from vectorising.
LEVEL, CHANGE, GAIN, TOTAL, PREFIX, SUFFIX, RECORD = 0, 4, 8, 12, 16, 18, 20
ROW = tuple(np.uint64(row * LANES) for row in range(RECORD + 1))
WIDTH = ROW[RECORD]


@compiled(fast=True)
def add_products(A, C, nodes, weights, out):
    """out[i, j, s] += Σ_z (a_j - c_j) Σ_q weights[q] Π_{l≠j} (c_l + nodes[q] (a_l - c_l)).

    A[i, l, s] are the factors of the rows, C[z, l, s] those of the background. The number of features is a multiple of
    BLOCK, that of support vectors of LANES, that of nodes is even: two nodes and four features share what they load.
    """
    n, d, size = A.shape
    blocks = d // BLOCK
    F = np.zeros((blocks + 2) * RECORD * LANES)
    records = F.reshape((blocks + 2, RECORD, LANES))
    for i in range(n):
        for start in range(0, size, LANES):
            records[:, TOTAL:PREFIX] = 0.0
            for z in range(C.shape[0]):
                for j in range(d):
                    record, k = records[1 + j // BLOCK], j % BLOCK
                    for b in range(LANES):
                        record[LEVEL + k, b] = C[z, j, start + b]
                        record[CHANGE + k, b] = A[i, j, start + b] - C[z, j, start + b]
                        record[GAIN + k, b] = 0.0
                for q in range(0, nodes.shape[0], 2):
                    t, u = nodes[q], nodes[q + 1]
                    records[1, PREFIX], records[1, PREFIX + 1] = weights[q], weights[q + 1]
                    records[blocks + 1, SUFFIX:] = 1.0
                    for j in range(1, blocks + 1):
                        at = np.uint64(j) * WIDTH
                        for b in range(at, at + ROW[1]):
                            c0, c1, c2, c3 = F[b], F[b + ROW[1]], F[b + ROW[2]], F[b + ROW[3]]
                            e0, e1, e2, e3 = F[b + ROW[4]], F[b + ROW[5]], F[b + ROW[6]], F[b + ROW[7]]
                            p = (c0 + t * e0) * (c1 + t * e1) * (c2 + t * e2) * (c3 + t * e3)
                            r = (c0 + u * e0) * (c1 + u * e1) * (c2 + u * e2) * (c3 + u * e3)
                            F[b + ROW[16] + WIDTH] = p * F[b + ROW[16]]
                            F[b + ROW[17] + WIDTH] = r * F[b + ROW[17]]
                    for j in range(blocks, 0, -1):
                        at = np.uint64(j) * WIDTH
                        for b in range(at, at + ROW[1]):
                            c0, c1, c2, c3 = F[b], F[b + ROW[1]], F[b + ROW[2]], F[b + ROW[3]]
                            e0, e1, e2, e3 = F[b + ROW[4]], F[b + ROW[5]], F[b + ROW[6]], F[b + ROW[7]]
                            f0, f1, f2, f3 = c0 + t * e0, c1 + t * e1, c2 + t * e2, c3 + t * e3
                            behind = F[b + ROW[18] + WIDTH]
                            left, right, rest = f0 * f1, f2 * f3, F[b + ROW[16]] * behind
                            g0, g1, g2, g3 = rest * f1 * right, rest * f0 * right, rest * left * f3, rest * left * f2
                            F[b + ROW[18]] = behind * left * right
                            f0, f1, f2, f3 = c0 + u * e0, c1 + u * e1, c2 + u * e2, c3 + u * e3
                            behind = F[b + ROW[19] + WIDTH]
                            left, right, rest = f0 * f1, f2 * f3, F[b + ROW[17]] * behind
                            F[b + ROW[19]] = behind * left * right
                            F[b + ROW[8]] += g0 + rest * f1 * right
                            F[b + ROW[9]] += g1 + rest * f0 * right
                            F[b + ROW[10]] += g2 + rest * left * f3
                            F[b + ROW[11]] += g3 + rest * left * f2
                for j in range(1, blocks + 1):
                    at = np.uint64(j) * WIDTH
                    for b in range(at, at + ROW[BLOCK]):
                        F[b + ROW[TOTAL]] += F[b + ROW[CHANGE]] * F[b + ROW[GAIN]]
            for j in range(d):
                for b in range(LANES):
                    out[i, j, start + b] += records[1 + j // BLOCK, TOTAL + j % BLOCK, b]


@compiled(fast=True)
def add_series(A, C, U, V, nodes, weights, g, out):
    """out[i, j, s] += Σ_z Σ_q weights[q] Σ_k g[k] k! [h^k] (a_j - c_j) Π_{l≠j} (c_l + nodes[q] (a_l - c_l)).

    Here a_l(h) = A[i, l, s] exp(h U[i, l, s]) and c_l(h) = C[z, l, s] exp(h V[z, l, s]), as power series up to the
    degree of the polynomial g.
    """
    n, d, size = A.shape
    terms = g.shape[0]
    scale = g.copy()  # g[k] k!
    for k in range(1, terms):
        for higher in range(k, terms):
            scale[higher] *= k
    first, second, mixed = np.empty((d, terms)), np.empty((d, terms)), np.empty((d, terms))
    prefix, run, rest = np.empty((d + 1, terms)), np.empty(terms), np.empty(terms)
    for i in range(n):
        for z in range(C.shape[0]):
            for s in range(size):
                for j in range(d):
                    a, c = A[i, j, s], C[z, j, s]
                    for k in range(terms):
                        first[j, k], second[j, k] = a, c
                        a *= U[i, j, s] / (k + 1)
                        c *= V[z, j, s] / (k + 1)
                for q in range(nodes.shape[0]):
                    t = nodes[q]
                    for j in range(d):
                        for k in range(terms):
                            mixed[j, k] = second[j, k] + t * (first[j, k] - second[j, k])
                    prefix[0] = 0.0
                    prefix[0, 0] = weights[q]
                    for j in range(d):
                        _multiply_series(prefix[j], mixed[j], prefix[j + 1])
                    run[:] = 0.0
                    run[0] = 1.0
                    for j in range(d - 1, -1, -1):
                        _multiply_series(prefix[j], run, rest)
                        total = 0.0
                        for k in range(terms):
                            part = 0.0
                            for other in range(k + 1):
                                part += rest[other] * (first[j, k - other] - second[j, k - other])
                            total += scale[k] * part
                        out[i, j, s] += total
                        _multiply_series(run, mixed[j], rest)
                        run[:] = rest


@compiled(fast=True, merged=True)
def _multiply_series(a, b, out):
    """The product of two power series, up to the same degree."""
    for k in range(out.shape[0]):
        total = 0.0
        for other in range(k + 1):
            total += a[other] * b[k - other]
        out[k] = total
