"""Which parts of a string, a graph or a set made the decision: f is linear in the counts of a count kernel."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._compiled.thread_pool import cached_property
from mercer.estimators.fitted_models import unwrap
from mercer.exceptions import InvalidInputError
from mercer.explanation.decision_functions import decision_functions
from mercer.explanation.objects.part_features import Leaf, leaves, part_places, part_texts, part_weights
from mercer.explanation.objects.part_pictures import coloured_html, draw_parts
from mercer.kernels.combinators import Constant
from mercer.kernels.features import Matrix, Vector
from mercer.validation import validate_samples

# samples shown by the text and in a notebook
SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """The result of ``contributions``: f(x) = b + Σ_p c_p(x) W_p, a sum over the parts p of each sample.

    Attributes
    ----------
    values : sparse array of shape (n_samples, n_parts)
        The contribution of each part to each sample; ``of(function)`` gives those of other functions.
    parts : list of str
        A description of each part: the substring (with its position for ``WeightedDegree``), the subtree, the item.
    functions : tuple of str
        The names of the functions: one, or one for each pair of classes "a / b" (positive values are votes for a) or
        for each target.
    intercept : ndarray of shape (n_functions,)
        b.
    samples : the samples that were given.

    Examples
    --------
    >>> from mercer import SVC, Spectrum, contributions
    >>> machine = SVC(kernel=Spectrum(2)).fit(["banana", "bandana", "tomato", "potato"], [0, 0, 1, 1])
    >>> found = contributions(machine, ["tomatana"])
    >>> len(found.by_place(0))
    8
    """

    functions: tuple[str, ...]
    intercept: Vector
    samples: Any
    leaves: tuple[Leaf, ...]
    weights: tuple[Matrix, ...]

    @cached_property
    def values(self) -> Any:
        """The contributions to the first function, or to the only one."""
        return self.of(0)

    @cached_property
    def parts(self) -> list[str]:
        """The description of each part."""
        return [text for leaf in self.leaves for text in part_texts(leaf.names)]

    def of(self, function: int = 0) -> Any:
        """The contributions to one function, a sparse array of shape (n_samples, n_parts)."""
        self._check("function", function, len(self.functions))
        blocks = []
        for leaf, weights in zip(self.leaves, self.weights, strict=True):
            counts = leaf.counts
            data = counts.data * weights[function][counts.indices]
            blocks.append(sp.csr_array((data, counts.indices, counts.indptr), shape=counts.shape))
        return sp.csr_array(sp.hstack(blocks, format="csr"))

    @property
    def decision_function(self) -> Matrix:
        """b + Σ_p c_p(x) W_p of each sample, a column for each function."""
        sums = [np.asarray(self.of(t).sum(axis=1)).ravel() for t in range(len(self.functions))]
        return np.column_stack(sums) + self.intercept

    def top(self, row: int = 0, k: int = 10, function: int = 0) -> list[tuple[str, float]]:
        """The k parts of a sample that contribute most, the largest |contribution| first."""
        self._check("row", row, len(self))
        if not isinstance(k, Integral) or k < 1:
            raise InvalidInputError(f"k={k!r} was given: it must be a whole number of at least 1.")
        values = self.of(function)
        start, stop = values.indptr[row], values.indptr[row + 1]
        data, places = values.data[start:stop], values.indices[start:stop]
        order = np.argsort(-np.abs(data), kind="stable")[: int(k)]
        return [(self.parts[places[i]], float(data[i])) for i in order if data[i] != 0]

    def by_place(self, row: int = 0, function: int = 0) -> Vector:
        """The contribution of each letter of a string, or of each node of a graph.

        The letters of a substring share its contribution equally, as do its occurrences; a subtree belongs to its root.
        The sum is f(x) − b, without the contribution of a constant that was added to the kernel.
        """
        self._check("row", row, len(self))
        self._check("function", function, len(self.functions))
        total: Vector | None = None
        for leaf, weights in zip(self.leaves, self.weights, strict=True):
            if isinstance(leaf.kernel, Constant):
                continue
            counts, c = leaf.counts, np.zeros(len(leaf.names))
            span = slice(counts.indptr[row], counts.indptr[row + 1])
            c[counts.indices[span]] = counts.data[span]
            found = part_places(leaf, int(row), c * weights[function])
            if found is None:
                raise InvalidInputError(
                    f"The parts that {leaf.kernel!r} counts have no place in a sample. by_place supports Spectrum, "
                    "Mismatch, CommonSubstrings, WeightedDegree and WeisfeilerLehman; use top for the parts."
                )
            total = found if total is None else total + found
        return np.zeros(0) if total is None else total

    def plot(self, row: int = 0, *, k: int = 10, function: int = 0) -> Any:
        """Draw one sample: its letters or nodes in colours, and bars of the parts that contribute most.

        Parameters
        ----------
        row : int, default=0
            The sample.
        k : int, default=10
            How many parts.
        function : int, default=0
            Which function, if there are several.

        Returns
        -------
        figure : the matplotlib figure.
        """
        return draw_parts(self, row, k, function)

    def __len__(self) -> int:
        return self.leaves[0].counts.shape[0]

    def __repr__(self) -> str:
        several = f", {len(self.functions)} functions" if len(self.functions) > 1 else ""
        sizes = [f"{n} {word}" + "s" * (n != 1) for n, word in ((len(self.parts), "part"), (len(self), "sample"))]
        lines = [f"contributions of {sizes[0]} to {sizes[1]}{several}"]
        values = self.decision_function[:, 0]
        for row in range(min(SHOWN, len(self))):
            told = ", ".join(f"{part} ({value:+.3g})" for part, value in self.top(row, 4))
            lines.append(f"  sample {row}: f = {values[row]:+.3g}: {told or 'no parts'}")
        return "\n".join([*lines, *(["  …"] if len(self) > SHOWN else [])])

    def _repr_html_(self) -> str:
        return coloured_html(self, SHOWN)

    def _check(self, name: str, number: Any, size: int) -> None:
        if not isinstance(number, Integral) or not 0 <= int(number) < size:
            raise InvalidInputError(f"{name}={number!r} was given: allowed are whole numbers from 0 to {size - 1}.")


def contributions(model: Any, samples: Any) -> Contributions:
    """f(x) − b = Σ_p c_p(x) W_p: the contribution of each substring, subtree or item of a sample to its prediction.

    A kernel that counts parts makes f linear in the counts, W_p = Σᵢ βᵢ c_p(xᵢ), so that the contributions sum to
    f(x) − b up to rounding: nothing is approximated or sampled. Parts that no support vector has contribute 0.

    Parameters
    ----------
    model : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge, KernelRidgeCV, GaussianProcessRegressor, KernelERM
        or KernelLogisticRegression, or a pipeline or search that ends in one
        With a kernel ``Spectrum``, ``Mismatch``, ``CommonSubstrings``, ``WeightedDegree``, ``WeisfeilerLehman``,
        ``ShortestPath`` or ``Intersection``, or sums, multiples, ``Normalized`` and ``On`` of them.
    samples : the strings, graphs or sets to be explained.

    Returns
    -------
    found : Contributions

    Examples
    --------
    >>> from mercer import SVC, Spectrum, contributions
    >>> machine = SVC(kernel=Spectrum(2)).fit(["banana", "bandana", "tomato", "potato"], [0, 0, 1, 1])
    >>> found = contributions(machine, ["panama", "automat"])
    >>> bool(abs(found.values.sum(axis=1) + machine.intercept_ - machine.decision_function(found.samples)).max() < 1e-9)
    True
    >>> [part for part, _ in found.top(0, 2)]
    ['an', 'na']
    >>> found.by_place(1).round(2)
    array([0.  , 0.  , 0.11, 0.14, 0.06, 0.11, 0.08])
    """
    machine, inner, _ = unwrap(model, samples)
    functions = decision_functions(machine, "contributions")
    inner, _ = validate_samples(machine, inner, None, reset=False, domain=functions.kernel.domain)
    trained, new = leaves(functions.kernel, functions.points), leaves(functions.kernel, inner)
    weights = tuple(part_weights(n, t, functions.coef) for n, t in zip(new, trained, strict=True))
    return Contributions(functions.names, functions.intercept, samples, tuple(new), weights)
