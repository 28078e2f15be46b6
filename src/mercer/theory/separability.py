"""Decide whether a hyperplane separates the classes, with a proof either way; [SSBD] 15.1, [D6] Definition 6.

The decision and its proofs are those of the hard-margin machines (`mercer.svm.hard_margins.separation`). In few
dimensions the finite algorithm runs first, because it does not depend on the scales of features; the hard-margin
solver runs if that has not found the largest margin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.estimators.svc import SVC
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels import Linear
from mercer.kernels.features import Vector, count_samples
from mercer.losses import HardMargin
from mercer.problems.clock import Clock
from mercer.svm.batch import class_pairs
from mercer.svm.hard_margins.margin import Candidate
from mercer.svm.hard_margins.separation import Separation, TwoClasses
from mercer.validation import validate_samples

# up to this many dimensions the finite algorithm runs first: it takes tenths of a second
FIRST_UP_TO = 120
# tolerance of the hard-margin solver
MARGIN_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class PairSeparability:
    """The result for one pair of classes.

    Attributes
    ----------
    positive, negative : the labels.
    n : the number of samples.
    biased, homogeneous : the results for hyperplanes with a bias, and for hyperplanes through the origin.
    """

    positive: Any
    negative: Any
    n: int
    biased: Separation
    homogeneous: Separation

    def __str__(self) -> str:
        head = f"{self.positive!r} against {self.negative!r}, {self.n} samples"
        return f"{head}\n  {self.biased}\n  {self.homogeneous}"


@dataclass(frozen=True, eq=False)
class SeparabilityReport:
    """The result of ``separability``.

    Attributes
    ----------
    kernel : the kernel, bound to the samples.
    pairs : the results for each pair of classes.
    """

    kernel: Any
    pairs: tuple[PairSeparability, ...]

    @property
    def separable(self) -> bool:
        """Whether each pair of classes is separable by a hyperplane with a bias."""
        return all(pair.biased.separable for pair in self.pairs)

    @property
    def homogeneous(self) -> bool:
        """Whether each pair of classes is separable by a hyperplane through the origin."""
        return all(pair.homogeneous.separable for pair in self.pairs)

    @property
    def decided(self) -> bool:
        """Whether every result is proven."""
        return all(pair.biased.decided and pair.homogeneous.decided for pair in self.pairs)

    @property
    def margin(self) -> float:
        """The smallest margin over all pairs, with a bias; 0 if a pair is not separable."""
        return min(pair.biased.margin for pair in self.pairs)

    def __str__(self) -> str:
        head = f"Separability with {self.kernel!r}"
        if len(self.pairs) == 1:
            return f"{head}, {self.pairs[0]}"
        separable = sum(pair.biased.separable for pair in self.pairs)
        lines = [f"{head}: {separable} of {len(self.pairs)} pairs of classes are separable"]
        return "\n".join(lines + [str(pair) for pair in self.pairs])


def separability(X: Any, y: Any, kernel: Any = None, *, time_limit: float | None = 10.0) -> SeparabilityReport:
    """Decide whether the classes are separable in the feature space of a kernel, with a proof either way.

    Parameters
    ----------
    X : the samples.
    y : their labels. More than two classes are examined in pairs.
    kernel : str, callable, Kernel or None, default=None
        As in ``SVC``; None is the linear kernel. It must be positive semidefinite; otherwise there is no feature space.
    time_limit : float or None, default=10.0
        Seconds for each search for the largest margin; there are two searches for each pair of classes. A search that
        ends early gives a wider interval for the margin and may leave the question undecided.

    Returns
    -------
    report : SeparabilityReport
        Prints as text; its proofs are attributes.

    Examples
    --------
    >>> from mercer.theory import separability
    >>> corners, labels = [[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1]
    >>> print(separability(corners, labels))
    Separability with Linear(), 1 against 0, 4 samples
      with a bias         NOT separable: 4 samples combine to one point of both convex hulls, to within ...
      through the origin  NOT separable: ...
    >>> separability(corners, labels, kernel="poly").separable
    True
    """
    machine = SVC(C=np.inf, kernel="linear" if kernel is None else kernel, tol=MARGIN_TOL, time_limit=time_limit)
    machine._validate_params()
    X, y = validate_samples(machine, X, y, reset=True)
    n = count_samples(X)
    codes = machine._validate_targets(y, np.ones(n)).astype(np.intp)
    unit = _unit(X) if machine.kernel == "linear" or isinstance(machine.kernel, Linear) else 1.0
    data = machine._bind(X / unit if unit != 1.0 else X, n)
    if not data.psd:
        raise InvalidInputError(
            f"{data.kernel!r} is not positive semidefinite, so there is no feature space in which classes could be "
            "separated. Choose another kernel; check_mercer shows its negative eigenvalues."
        )
    classes = machine.classes_.tolist()
    pairs = []
    for i, j in class_pairs(len(classes)):
        # as in decision_function, the second of two classes is positive
        i, j = (j, i) if len(classes) == 2 else (i, j)
        rows = np.flatnonzero((codes == i) | (codes == j))
        samples = Pair(machine, data, rows, np.where(codes[rows] == i, 1.0, -1.0))
        homogeneous, biased = (samples.separation(intercept) for intercept in (False, True))
        if homogeneous.separable and not biased.separable:
            bound = max(biased.margin_bound, homogeneous.margin)
            biased = replace(homogeneous, intercept=True, margin_bound=bound, weights=biased.weights)
        homogeneous, biased = homogeneous.scaled(unit), biased.scaled(unit)
        pairs.append(PairSeparability(classes[i], classes[j], len(rows), biased, homogeneous))
    return SeparabilityReport(data.kernel, tuple(pairs))


def _unit(X: Any) -> float:
    """A power of two near the largest number in X if its square is outside the range of float64; else 1."""
    largest = float(abs(X).max()) if X.shape[1] else 0.0
    return 1.0 if largest == 0 or 1e-100 < largest < 1e100 else 2.0 ** round(np.log2(largest))


class Pair:
    """Samples of two classes with labels ±1, and the machine that finds the largest margin."""

    def __init__(self, machine: SVC, data: Data, rows: Vector, y: Vector) -> None:
        self.machine = machine
        self.n_all, self.rows, self.y = data.n, rows, y
        self.data = data.take(rows)
        self.classes = TwoClasses.of(self.data, y)

    def separation(self, intercept: bool) -> Separation:
        """The strongest result that the candidates prove."""
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
        """The result of the hard-margin solver; if it found no model, the weights of its proof."""
        self.machine.fit_intercept = intercept
        options = self.machine._options()
        with Clock(self.machine.time_limit) as clock:
            solution = self.machine._run(self.data, HardMargin(), self.y, np.ones(len(self.y)), options, clock, None)
        weights = solution.beta if solution.separation is None else solution.separation.weights
        return Candidate(coef=solution.beta, weights=weights)
