"""The hinge loss without a bias: losses, dual points and violations of many problems, each in one pass.

    1/2 |w|^2 + sum_i C_i max(0, 1 - y_i f_i),     C_i = unit weight_i,     0 <= y_i beta_i <= C_i

y, f and beta have a row for each problem. Whether beta is at the end of its box decides what may violate the optimality
conditions: no sum here is reordered.
"""

import numpy as np

from mercer._numerics.compile import compiled


@compiled(fast=True)
def hinge_losses(y, f, weight, unit, out):
    """out[c] = sum_i C_i max(0, 1 - y_i f_i)."""
    for c in range(y.shape[0]):
        total = 0.0
        for i in range(y.shape[1]):
            loss = 1.0 - y[c, i] * f[c, i]
            # not max, which may lose NaN
            total += weight[i] * (0.0 if loss <= 0.0 else loss)
        out[c] = unit * total


@compiled()
def dual_points(y, weight, unit, coefficients, drawn, step, batch, beta, slopes):
    """beta_i = y_i C_i times the share of the draws of i that were hits, 0 where there were none; slopes = sum |beta|.

    Coefficients are signed sums of the steps' factors, divided by the samples of a step.
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
