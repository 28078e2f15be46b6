"""How far the variable of each sample is from what its decision value asks for (see `mercer.linear.problem`)."""

import numpy as np

from mercer._numerics.compile import compiled


@compiled()
def examine(beta, f, linear, l1, ridge, lower, upper, largest):
    """(largest violation, largest distance from the box, sum of beta); NaN stays NaN. ``largest`` is that of |beta|.

    With t = linear - f the sample pays conj(t), the largest value of  t b - l1 |b| - ridge b^2 / 2  over the box. Where
    beta could still gain at a certain rate, its violation is that rate if it has the longer side of its box before it,
    else the part of it that corresponds to the room that is left: of that side, or of what ``ridge`` makes of the rate.
    """
    worst, outside, total = 0.0, 0.0, 0.0
    for i in range(beta.shape[0]):
        b = beta[i]
        s = linear[i] - f[i] - ridge[i] * b
        grow = s - (l1[i] if b >= 0.0 else -l1[i])
        shrink = -s - (l1[i] if b <= 0.0 else -l1[i])
        rate, room = (grow, upper[i] - b) if grow >= shrink else (shrink, b - lower[i])
        # down to the kink at 0, where the rate changes
        if l1[i] > 0.0 and rate < 2.0 * l1[i] and ((grow >= shrink and b < 0.0) or (grow < shrink and b > 0.0)):
            room = min(room, abs(b))
        if (rate > 0.0 and room > 0.0) or rate != rate:
            width = max(upper[i], -lower[i])
            if ridge[i] > 0.0:
                rate = rate if not rate > ridge[i] * room else ridge[i] * room
            else:
                rate *= min(1.0, room / (width if width < np.inf else max(largest, 1e-300)))
            if not rate <= worst and worst == worst:
                worst = rate
        distance = max(lower[i] - b, b - upper[i])
        if not distance <= outside and outside == outside:
            outside = distance
        total += b
    return worst, outside, total
