"""One pair of classes, examined for hyperplanes between them.

The decision and its proofs are those of the hard-margin machines (`mercer.solvers.separation`). Where samples have few
dimensions the finite algorithm comes first, as it does not depend on the scales of features; the hard-margin solver
comes where that has not found the largest margin.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer.estimators import SVC
from mercer.kernels.features import Vector
from mercer.losses import HardMargin
from mercer.solvers.base import Clock
from mercer.solvers.data import Data
from mercer.solvers.margin import Candidate
from mercer.solvers.separation import Separation, TwoClasses

# up to this many dimensions the finite algorithm comes first, as it takes tenths of a second
FIRST_UP_TO = 120
# of the solver that looks for the largest margin
MARGIN_TOL = 1e-6


class Pair:
    """Samples of two classes with labels ±1, and the machine that looks for the largest margin."""

    def __init__(self, machine: SVC, data: Data, rows: Vector, y: Vector) -> None:
        self.machine = machine
        self.n_all, self.rows, self.y = data.n, rows, y
        self.data = data.take(rows)
        self.classes = TwoClasses.of(self.data, y)

    def separation(self, intercept: bool) -> Separation:
        """The best of what the candidates prove."""
        return self.classes.decide(self._candidates(intercept), intercept).placed(self.rows, self.n_all)

    def _candidates(self, intercept: bool) -> Iterator[Candidate]:
        classes = self.classes
        first = classes.X is not None and classes.dimensions <= FIRST_UP_TO
        if first:
            yield from classes.finite(intercept)
        yield self._largest_margin(intercept)
        if not first and classes.is_small:
            yield from classes.finite(intercept)

    def _largest_margin(self, intercept: bool) -> Candidate:
        """The solver of the hard margin; where it has no model, the weights of its proof."""
        self.machine.fit_intercept = intercept
        options = self.machine._options()
        with Clock(self.machine.time_limit) as clock:
            solution = self.machine._run(self.data, HardMargin(), self.y, np.ones(len(self.y)), options, clock, None)
        weights = solution.beta if solution.separation is None else solution.separation.weights
        return Candidate(coef=solution.beta, weights=weights)
