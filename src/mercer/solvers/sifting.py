"""Two classes whose kernel values are costly, without most of the values between them.

What a class has with itself is known, and shared by all its pairs. Of the values between the classes, a sample with
weight needs those with all of the other class, any other sample only those with the members of a small problem. So
a few samples are solved; then those without weight go and those that violate the solution worst come in, until no
sample violates it.
"""

from __future__ import annotations

import numpy as np

from mercer.kernels.features import Features, Matrix, Vector
from mercer.losses.base import BoxQP
from mercer.problems.dual import rates, survey
from mercer.solvers.base import Clock
from mercer.solvers.data import ClassBlocks

# the first members: a share of the samples, at least so many; how far their problem is solved
SAMPLES_PER_FIRST, FEWEST_FIRST, FIRST_TOL = 8, 200, 0.1
# with more weights than this share of them, or lines of this share of all values, the whole matrix costs no more
MOSTLY_SUPPORT, MOSTLY_LINES = 0.7, 0.9
# newcomers: as many as there are support vectors, at least so many
FEWEST_NEW = 32
# a problem is solved to this share of the violation of all, and to the end once that is small
STAGE_TOL, LAST_FROM = 0.1, 0.3
STAGES, STEPS_PER_MEMBER, STEPS_AT_LEAST = 40, 100, 1000


class Between:
    """Kernel values of two classes: all within each, and lines between them for samples that have had weight.

    Samples of the second class are numbered on from those of the first. Lines and matrices are on the scratch memory
    of ``blocks``: the next pair of this thread overwrites them.
    """

    def __init__(self, blocks: ClassBlocks, i: int, j: int) -> None:
        self._blocks = blocks
        self._features, self._own = (blocks.features[i], blocks.features[j]), (blocks.own[i], blocks.own[j])
        first, second = len(self._own[0]), len(self._own[1])
        self.n, self._first = first + second, first
        memory, half = blocks.scratch(self.n**2), first * second
        self._lines = memory[:half].reshape(first, second), memory[half : 2 * half].reshape(second, first)
        self._room = memory[2 * half :]
        self._slots = np.full(first, -1), np.full(second, -1)
        self._used = [0, 0]

    @property
    def share(self) -> float:
        """Of the values between the classes, how many lines have been computed; each value is on two lines."""
        return sum(used / len(lines) for used, lines in zip(self._used, self._lines, strict=True))

    def matrix(self, members: Vector) -> Matrix | None:
        """The Gram matrix of some samples, in increasing order; None if there is no room for it."""
        from mercer._numerics.pairs import put_together

        m = len(members)
        if m * m > len(self._room):
            return None
        K = self._room[: m * m].reshape(m, m)
        sides = self._sides(members)
        bare = [side[slots[side] < 0] for side, slots in zip(sides, self._slots, strict=True)]
        fresh = self._values(self._features[0].take(bare[0]), self._features[1].take(bare[1]))
        put_together(*self._own, *sides, *self._slots, *self._lines, fresh, K)
        return K

    def product(self, beta: Vector) -> Vector:
        """K beta of all samples, in float64."""
        from mercer._numerics.tiles import add_rows_product

        F = np.zeros(self.n)
        parts = F[: self._first], F[self._first :]
        for side, support in enumerate(self._sides(np.flatnonzero(beta))):
            if len(support) == 0:
                continue
            own, lines, slots, other = self._own[side], self._lines[side], self._slots[side], 1 - side
            missing = support[slots[support] < 0]
            if len(missing):
                start = self._used[side]
                stop = self._used[side] = start + len(missing)
                self._values(self._features[side].take(missing), self._features[other], lines[start:stop])
                slots[missing] = np.arange(start, stop)
            weights = beta[side * self._first + support]
            add_rows_product(own, support, weights, 0, len(own), parts[side])
            add_rows_product(lines, slots[support], weights, 0, lines.shape[1], parts[other])
        return F

    def _sides(self, members: Vector) -> tuple[Vector, Vector]:
        """Of these samples, those of the first class and those of the second, each in the numbers of its class."""
        cut = int(np.searchsorted(members, self._first))
        return members[:cut], members[cut:] - self._first

    def _values(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        self._blocks.evaluations.add(len(a) * len(b))
        return self._blocks.kernel.block(a, b, out)


def sift(values: Between, qp: BoxQP, tol: float, clock: Clock) -> tuple[Vector, Vector, int] | None:
    """(beta, K beta, steps) of a program with a variable for each sample; None where this is not the way."""
    from mercer._numerics.smo import solve_block

    beta, F, steps = np.zeros(qp.n_vars), np.zeros(qp.n_vars), 0
    size = min(values.n, max(FEWEST_FIRST, values.n // SAMPLES_PER_FIRST))
    members = np.arange(size) * values.n // size
    stage_tol = FIRST_TOL
    for stage in range(STAGES):
        K = values.matrix(members)
        if K is None or clock.over() is not None:
            return None
        b, m = beta[members], len(members)
        score = (qp.linear - F - qp.ridge * beta)[members].astype(K.dtype)
        taken, _, unbounded = solve_block(
            K, b, score, qp.lower[members], qp.upper[members], qp.l1[members], qp.ridge[members], m,
            max(0.9 * tol, stage_tol), STEPS_PER_MEMBER * m + STEPS_AT_LEAST,
        )  # fmt: skip
        steps += taken
        beta[members] = b
        support = np.flatnonzero(beta)
        if unbounded or (stage == 0 and len(support) > MOSTLY_SUPPORT * m):
            return None
        F = values.product(beta)
        seen = survey(qp, beta, F)
        if seen.violation <= tol:
            return beta, F, steps
        if values.share > MOSTLY_LINES or not np.isfinite(seen.violation):
            return None
        stage_tol = STAGE_TOL * seen.violation if seen.violation > LAST_FROM else 0.0
        members = np.union1d(support, _worst(qp, beta, F, seen.thresholds[0], max(FEWEST_NEW, len(support))))
    return None


def _worst(qp: BoxQP, beta: Vector, F: Vector, level: float, count: int) -> Vector:
    """Of the samples without weight that violate the level, so many that do it most."""
    growing, shrinking = rates(qp, beta, F)
    beyond = np.where(beta == 0, np.maximum(growing - level, level - shrinking), 0.0)
    found = np.flatnonzero(beyond > 0)
    if len(found) <= count:
        return found
    return found[np.argpartition(-beyond[found], count)[:count]]
