"""Cross-validation with parts as folds: the parts of a collection on the workers, and scores of held-out parts.

Part i belongs to fold i mod k. Rows stay where they are: a fold's machine is fitted to the other parts, and its parts
are predicted by their workers. Accuracy and R² are sums over parts; other scores bring the predictions to the client.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring

from mercer.dask.cluster_parts import gather
from mercer.dask.collections import aligned_parts, check_part, numeric
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector, take_samples
from mercer.losses.base import Index
from mercer.parts.linear_run import stacked
from mercer.selection.calibration.class_probabilities import Scheme
from mercer.selection.calibration.prediction_mixins import problem_values
from mercer.selection.evaluation import Recorded

# rows from which the ranges of parameters are found
SAMPLE = 2000
# held-out decision values that come to the client, which learns probabilities from them: 16 MB
HELD_OUT = 1 << 21


class Columns(NamedTuple):
    """X, y and weights of some parts, as arguments of fit; weights are None if none were given."""

    X: list[Future]
    y: list[Future]
    weight: list[Future] | None


@dataclass(frozen=True, eq=False)
class PartFolds:
    """The parts that have rows, and the fold of each."""

    client: Client
    columns: Columns
    sizes: list[int]
    fold: Index

    @classmethod
    def of(cls, client: Client, X: Any, y: Any, sample_weight: Any, cv: Any) -> PartFolds:
        """Compute the parts and keep them with the workers."""
        n_folds = 5 if cv is None else cv
        if not isinstance(n_folds, Integral) or isinstance(n_folds, bool) or int(n_folds) < 2:
            raise InvalidInputError(
                f"cv={cv!r}: parts are the folds of rows on several computers, so give a whole number of at least 2."
            )
        pieces = [client.compute(piece) for piece in aligned_parts(X, y, sample_weight)]
        sizes = gather(client, client.map(check_part, range(len(pieces[0])), *pieces, pure=False))
        filled = [k for k, n in enumerate(sizes) if n]
        if len(filled) < int(n_folds):
            raise InvalidInputError(
                f"X has {len(filled)} parts with rows, but cv={n_folds} folds of whole parts are asked for: give more "
                "parts, for example with rechunk or repartition, or a smaller cv."
            )
        own = [[piece[k] for k in filled] for piece in pieces]
        columns = Columns(own[0], own[1], own[2] if len(own) > 2 else None)
        return cls(client, columns, [sizes[k] for k in filled], np.arange(len(filled)) % int(n_folds))

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return int(self.fold.max()) + 1

    def held_out(self, f: int) -> Columns:
        """The parts of a fold."""
        return self._at(np.flatnonzero(self.fold == f))

    def others(self, f: int) -> Columns:
        """The parts of all other folds."""
        return self._at(np.flatnonzero(self.fold != f))

    def _at(self, parts: Index) -> Columns:
        X, y, weight = self.columns
        chosen = [None if column is None else [column[k] for k in parts] for column in (X, y, weight)]
        return Columns(*chosen)  # type: ignore[arg-type]

    def sample(self) -> Any:
        """Random rows of all parts, the same for the same parts."""
        share = min(1.0, SAMPLE / sum(self.sizes))
        indices = list(range(len(self.sizes)))
        return stacked(
            gather(self.client, self.client.map(_some_rows, indices, self.columns.X, share=share, pure=False))
        )


class Score(NamedTuple):
    """A score, and the sums Σ weight and Σ weight² of the scored samples."""

    value: float
    weight: float
    squares: float


def score_parts(client: Client, model: Any, columns: Columns, scoring: Any) -> Score:
    """The score of a local model on these parts. ``scoring`` None is accuracy or R²."""
    name = scoring or ("accuracy" if is_classifier(model) else "r2")
    weights: Sequence[Any] = columns.weight or [None] * len(columns.X)
    # a task, which dask can repeat if its worker dies, instead of scattered data
    sent = client.submit(_itself, model, pure=False)
    by_sums = isinstance(name, str) and name in ("accuracy", "r2")
    function = _sums if by_sums else _answers
    found = gather(
        client,
        [
            client.submit(function, sent, X, y, weight, pure=False)
            for X, y, weight in zip(columns.X, columns.y, weights, strict=True)
        ],
    )
    if by_sums:
        total, squares, right, _, spread, left = np.sum(found, axis=0)
        if name == "accuracy":
            return Score(right / total if total > 0 else np.nan, total, squares)
        # the squared deviations from the mean of all: within the parts, and of their means
        own, means = np.array(found)[:, 0], np.array(found)[:, 3]
        spread += own @ (means - own @ means / total) ** 2 if total > 0 else np.nan
        return Score(1.0 - left / spread if spread > 0 else np.nan, total, squares)
    answers = {key: np.concatenate([one[0][key] for one in found]) for key in found[0][0]}
    y, weight = (np.concatenate([one[k] for one in found]) for k in (1, 2))
    placeholder = np.empty((len(y), 0))
    recorded = Recorded(model, placeholder, answers=answers)
    scorer = check_scoring(recorded, scoring=name)
    with_weight = {} if columns.weight is None else {"sample_weight": weight}
    return Score(float(scorer(recorded, placeholder, y, **with_weight)), float(weight.sum()), float(weight @ weight))


class HeldOutRows(NamedTuple):
    """Decision values of rows from machines that were fitted without them, positions of their classes, and weights."""

    values: Matrix
    codes: Index
    weight: Vector


def held_out_rows(folds: PartFolds, models: Sequence[Any], search: Any, most: int = HELD_OUT) -> HeldOutRows:
    """The values of the rows of each fold by its local model; of random rows if these are more than ``most`` numbers.

    ``search`` is a local search with ``classes_``, whose columns the values have. A pair of classes that a model does
    not know has the value NaN.
    """
    client, share = folds.client, min(1.0, most / (sum(folds.sizes) * max(1, search._columns())))
    tasks = []
    for f, model in enumerate(models):
        sent = client.submit(_itself, (model, search), pure=False)
        X, y, weight = folds.held_out(f)
        tasks += [
            client.submit(_held_out, sent, int(k), *columns, share=share, pure=False)
            for k, *columns in zip(np.flatnonzero(folds.fold == f), X, y, weight or [None] * len(X), strict=True)
        ]
    return HeldOutRows(*(np.concatenate(column) for column in zip(*gather(client, tasks), strict=True)))


def _held_out(sent: tuple[Any, Any], index: int, X: Any, y: Any, weight: Any, share: float) -> HeldOutRows:
    """The held-out rows of a part, or a random share of them."""
    model, search = sent
    targets, w = _targets(y, weight)
    if share < 1.0:
        kept = np.flatnonzero(np.random.default_rng([1, index]).random(len(targets)) < share)
        X = X.iloc[kept] if hasattr(X, "iloc") else take_samples(X, kept)
        targets, w = targets[kept], w[kept]
    codes = np.searchsorted(search.classes_, targets)
    if not len(targets):
        values = np.empty((0, search._columns()))
    elif search._scheme is Scheme.REST:
        values = search._values(model, X)
    elif len(model.classes_) == len(search.classes_):
        values = problem_values(model, X)
    else:
        values = np.full((len(targets), search._columns()), np.nan)
    return HeldOutRows(values, codes, w)


def _itself(model: Any) -> Any:
    return model


def _size(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _some_rows(index: int, X: Any, share: float) -> Any:
    """A random share of the rows of a part, as numbers."""
    rng, n = np.random.default_rng([0, index]), _size(X)
    chosen = np.sort(rng.permutation(n)[: int(share * n + rng.random())])
    return take_samples(numeric(index, X), chosen)


def _targets(y: Any, weight: Any) -> tuple[Vector, Vector]:
    targets = np.asarray(y).reshape(-1)
    return targets, np.ones(len(targets)) if weight is None else np.asarray(weight, dtype=np.float64).reshape(-1)


def _sums(model: Any, X: Any, y: Any, weight: Any) -> Vector:
    """Σw, Σw², Σw[right]; for regression the mean of y, Σw(y − mean)², Σw(y − f)²."""
    targets, w = _targets(y, weight)
    predicted = model.predict(X)
    if is_classifier(model):
        return np.array([w.sum(), w @ w, w @ (predicted == targets), 0.0, 0.0, 0.0])
    values, total = targets.astype(np.float64), w.sum()
    mean = w @ values / total if total > 0 else 0.0
    return np.array([total, w @ w, 0.0, mean, w @ (values - mean) ** 2, w @ (values - predicted) ** 2])


def _answers(model: Any, X: Any, y: Any, weight: Any) -> tuple[dict[str, Any], Vector, Vector]:
    """The predictions of a part, which a scorer may ask for, with its targets and weights."""
    targets, w = _targets(y, weight)
    names = ("predict", "decision_function") if is_classifier(model) else ("predict",)
    return {name: getattr(model, name)(X) for name in names}, targets, w
