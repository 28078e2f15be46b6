"""Partial dependence: the average prediction of the fitted model when one column is set to the same value in all rows.

g(v) = 1/n Σᵢ f(xᵢ with column j set to v)          Friedman, Annals of Statistics 29 (2001)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._sklearn_compat import safe_indexing
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.report.importance import input_columns, inputs, with_cells
from mercer.report.names import class_words, is_missing
from mercer.workflow.training import Outcome

# the largest numbers of rows to average over, of values of a numeric column, and of categories
ROWS, VALUES, CATEGORIES = 200, 15, 8
# kinds of columns with unordered values
CATEGORICAL = ("category", "boolean")
# the share of rows beyond each end of the drawn values
TAIL = 0.02
# a curve counts as rising if its total descent is at most this share of its total ascent
DETOUR = 0.1


@dataclass(frozen=True, eq=False)
class Dependence:
    """The average prediction for each value of one column.

    Attributes
    ----------
    column : the name of the column.
    values : numbers in ascending order, or categories, the most frequent first.
    kind : the kind of the column: "number", "date", "boolean" or "category".
    outputs : what is predicted: the target, the second of two classes, or each class.
    mean : the average prediction or probability, a row per output and a column per value.
    """

    column: str
    values: list[Any]
    kind: str
    outputs: list[str]
    mean: Matrix

    @property
    def categorical(self) -> bool:
        """Whether the values are unordered."""
        return self.kind in CATEGORICAL

    def words(self) -> str:
        """Describe the curve in words: its course for one output, or which of several outputs is most likely."""
        if len(self.outputs) > 1:
            first, last = (self.outputs[int(self.mean[:, place].argmax())] for place in (0, -1))
            if first != last and not self.categorical:
                return f"low values favour {first}, high values {last}"
            most = int(np.ptp(self.mean, axis=1).argmax())
            return f"P({self.outputs[most]}) {self._course(self.mean[most])}"
        return self._course(self.mean[0])

    def _course(self, mean: Vector) -> str:
        if self.categorical:
            low, high = (value_words(self.values[int(place)], self.kind) for place in (mean.argmin(), mean.argmax()))
            return f"is lowest for {low}, highest for {high}"
        steps = np.diff(mean)
        up, down = float(steps[steps > 0].sum()), float(-steps[steps < 0].sum())
        # round to three digits of the largest value, so that 1e-7 next to 1 is 0
        unit = 10.0 ** (np.floor(np.log10(np.abs(mean).max() or 1.0)) - 2)
        first, last, low, high = (f"{unit * round(v / unit):.4g}" for v in (mean[0], mean[-1], mean.min(), mean.max()))
        if down <= DETOUR * up:
            return f"rises from {first} to {last}"
        if up <= DETOUR * down:
            return f"falls from {first} to {last}"
        return f"goes up and down between {low} and {high}"


def value_words(value: Any, kind: str = "category") -> str:
    """Return a category or a boolean as text."""
    if is_missing(value):
        return "missing"
    return ("yes" if value else "no") if kind == "boolean" else str(value)


def partial_dependence(outcome: Outcome, column: str) -> Dependence | None:
    """Compute the partial dependence on one column.

    None for free text, columns with a single value, and classifiers without probabilities.
    """
    names = input_columns(outcome)
    j, kind = names.index(column), {c.name: c.kind for c in outcome.samples.columns}.get(column, "number")
    X = inputs(outcome)
    cells = np.asarray(safe_indexing(X, j, axis=1))
    if kind == "text":
        return None
    values = _frequent(cells) if kind in CATEGORICAL else _grid(cells)
    if len(values) < 2:
        return None
    rows = np.random.default_rng(0).permutation(len(cells))[:ROWS]
    part = safe_indexing(X, np.tile(rows, len(values)))
    replaced = np.empty(len(values), dtype=object if kind == "category" else np.float64)
    replaced[:] = values
    try:
        predicted, outputs = _predictions(outcome, with_cells(part, j, np.repeat(replaced, len(rows))))
    except InvalidInputError:  # the search ended before there were probabilities
        return None
    mean = predicted.reshape(len(values), len(rows), -1).mean(axis=1).T
    return Dependence(column, values, kind, outputs, mean)


def _predictions(outcome: Outcome, X: Any) -> tuple[Matrix, list[str]]:
    if outcome.task == "regression":
        return np.asarray(outcome.model.predict(X))[:, None], [str(outcome.samples.target)]
    probabilities = outcome.model.predict_proba(X)
    classes = [class_words(c) for c in outcome.classes]
    return (probabilities, classes) if len(classes) > 2 else (probabilities[:, 1:], classes[1:])


def _grid(cells: Vector) -> list[Any]:
    known = cells[~np.isnan(cells)]
    distinct = np.unique(known)
    if len(distinct) <= VALUES:
        return list(distinct.tolist())
    low, high = np.quantile(known, [TAIL, 1.0 - TAIL])
    return list(np.linspace(low, high, VALUES).tolist())


def _frequent(cells: Vector) -> list[Any]:
    """Return the categories, the most frequent first; missing cells count as a category."""
    counts: dict[str, tuple[Any, int]] = {}
    for cell in cells:
        key = value_words(cell)
        counts[key] = (cell, counts.get(key, (cell, 0))[1] + 1)
    ordered = sorted(counts.values(), key=lambda pair: -pair[1])
    return [cell for cell, _ in ordered[:CATEGORIES]]
