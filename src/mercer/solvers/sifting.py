"""Two classes whose Gram matrix is not put together: what one compiled call needs of a pair.

See ``_numerics.sift`` for the way, ``_numerics.judgement`` for the values of its certificate in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.gram.operator import Evaluations
from mercer.kernels.features import Matrix, Vector, VectorFeatures
from mercer.losses.base import BoxQP
from mercer.solvers.base import Options
from mercer.solvers.data import ClassBlocks, Data
from mercer.solvers.judge import ExactFormula, exact_formula


@dataclass(frozen=True, eq=False)
class Sieve:
    """All pairs of some classes.

    Attributes
    ----------
    blocks : what each class has with itself, and memory.
    sides : each class as the compiled call takes it.
    single, exact : the kernel in float32, for the solution, and in float64, for the judgement.
    options, evaluations : of the fit.
    """

    blocks: ClassBlocks
    sides: list[Any]
    single: Any
    exact: ExactFormula
    options: Options
    evaluations: Evaluations

    def solve(self, pair: tuple[int, int], qp: BoxQP, beta: Vector, F: Vector, groups: Matrix, totals: Vector) -> int:
        """Solve a program with a variable for each sample: the steps, -1 where this is not the way.

        Edits beta and F = K beta, and fills what `survey_of` makes a survey of.
        """
        from mercer._numerics.newton import with_newton
        from mercer._numerics.sift import NEVER_BEGUN, sift

        n = qp.n_vars
        wholes, reals = np.empty((8, 2 * n), np.int64), np.empty((8, n))

        def run(newton: int) -> tuple[int, int]:
            return sift(  # type: ignore[no-any-return]
                self.single, *(self.sides[c] for c in pair), qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, qp.group,
                self.options.tol, newton, self.blocks.scratch(n**2), wholes, reals, beta, F, groups, totals,
            )  # fmt: skip

        steps, values = with_newton(run, np.float32, np.float32, lambda found: found[0] == NEVER_BEGUN)
        self.evaluations.add(values)
        return int(steps)

    def judge(self, index: Vector, qp: BoxQP, beta: Vector, F: Vector, groups: Matrix, totals: Vector) -> None:
        """F in float64 where it matters; ``index`` are the samples of the program. Edits F, fills as `solve` does."""
        self.evaluations.add(self.exact.values(index, qp, beta, F, self.options, np.empty(qp.n_vars), groups, totals))


def sieve_of(data: Data, blocks: ClassBlocks, options: Options) -> Sieve | None:
    """For the pairs of these classes; None where compiled loops do not know the kernel."""
    from mercer._numerics.sift import Side
    from mercer._numerics.values import plan_of

    features = data.features(np.float32)
    single = data.kernel.formula(features)
    if single is None or blocks.dtype != np.float32:
        return None
    assert isinstance(features, VectorFeatures)
    exact = exact_formula(data)
    assert exact is not None
    sides = []
    for part, own in zip(blocks.features, blocks.own, strict=True):
        assert isinstance(part, VectorFeatures)
        sides.append(Side(part.X, part.norms, part.panels, own))
    return Sieve(blocks, sides, plan_of(*single), exact, options, data.evaluations)
