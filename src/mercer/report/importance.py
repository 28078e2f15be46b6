"""Measure which inputs matter, and in which direction.

Three measures: the loss of score on held-out rows when a column is shuffled (permutation importance), and the exact
Shapley values and the signed slopes of the decision function of the fitted machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer._sklearn_compat import safe_indexing
from mercer.exceptions import InvalidInputError, MercerError
from mercer.explanation.explanation import Explanation
from mercer.explanation.shapley_values import explain, has_formula
from mercer.io.formats.plain_model import plain_model
from mercer.io.tables.preprocessing import PREPARE
from mercer.kernels.features import Matrix, Vector, as_matrix
from mercer.report.names import class_words
from mercer.svm.batch import class_pairs
from mercer.workflow.preparation import MACHINE
from mercer.workflow.training import Outcome

# columns are shuffled if there are at most this many
MOST_COLUMNS = 200
# up to this many rows, every fold of the search is used; beyond, only the first two
ALL_FOLDS_UP_TO, FEW_FOLDS = 3000, 2
# shuffles of each column; predictions over all columns and shuffles; fewest and most rows of a fold
REPEATS, PREDICTIONS, FEWEST_ROWS, MOST_ROWS = 5, 250_000, 50, 500
# slopes are computed at this many rows
SLOPE_ROWS = 500
# Shapley values: the most rows, the background rows, the fewest rows for which they are computed at all, and the most
# factors of their products
SHAPLEY_ROWS, BACKGROUND, FEWEST_EXPLAINED, FACTORS = 100, 30, 10, 5e9
# gradients are computed in batches of at most this many numbers
ENTRIES = 5_000_000


@dataclass(frozen=True, eq=False)
class Importance:
    """The loss of score on held-out rows when the cells of one column are shuffled.

    Attributes
    ----------
    columns : their names.
    loss : the mean loss of accuracy or R² over folds, for each column.
    spread : the standard deviation over folds.
    folds : the number of folds; for each, a machine with the chosen parameters was fitted to the other folds.
    rows : the number of held-out rows in which cells were shuffled.
    """

    columns: list[str]
    loss: Vector
    spread: Vector
    folds: int
    rows: int


def permutation_importance(outcome: Outcome) -> Importance | None:
    """Compute the permutation importance of each column.

    None for strings, sparse samples and more than `MOST_COLUMNS` columns.
    """
    X, y, names = inputs(outcome), targets(outcome), input_columns(outcome)
    if not 0 < len(names) <= MOST_COLUMNS:
        return None
    rng = np.random.default_rng(0)
    unit = float(np.var(y)) or 1.0 if outcome.task == "regression" else None
    folds = outcome.search.n_splits_ if len(y) <= ALL_FOLDS_UP_TO else min(FEW_FOLDS, outcome.search.n_splits_)
    most = min(max(PREDICTIONS // (len(names) * REPEATS * folds), FEWEST_ROWS), MOST_ROWS)
    found, rows = [], 0
    for model, held in _fold_models(outcome, X, y, folds):
        part = rng.permutation(held)[:most]
        rows += len(part)
        found.append(_losses(model, safe_indexing(X, part), y[part], unit, rng))
    if not found:
        return None
    losses = np.array(found)
    spread = losses.std(axis=0, ddof=1) if len(losses) > 1 else np.full(len(names), np.nan)
    return Importance(names, losses.mean(axis=0), spread, len(losses), rows)


def input_columns(outcome: Outcome) -> list[str]:
    """Return the names of the columns that can be shuffled; empty for strings and sparse samples."""
    samples = outcome.samples
    if samples.kind == "table":
        return [c.name for c in samples.columns if c.kind != "left out"]
    if samples.kind == "strings" or sp.issparse(samples.X):
        return []
    return [f"feature {j}" for j in range(samples.X.shape[1])]


def targets(outcome: Outcome) -> Vector:
    """Return the targets: labels, or float64 for regression."""
    return np.asarray(outcome.samples.y, dtype=np.float64 if outcome.task == "regression" else None)


def inputs(outcome: Outcome) -> Any:
    """Return the samples without the columns that the model does not use."""
    return outcome.samples.X[input_columns(outcome)] if outcome.samples.kind == "table" else outcome.samples.X


def with_cells(X: Any, j: int, cells: Any) -> Any:
    """Return a copy of a table or matrix with new cells in column j."""
    changed = X.copy()
    if hasattr(changed, "iloc"):
        changed[changed.columns[j]] = getattr(cells, "array", cells)
    else:
        changed[:, j] = cells
    return changed


def _fold_models(outcome: Outcome, X: Any, y: Vector, folds: int) -> Iterator[tuple[Any, Vector]]:
    """Yield, for each fold, the pipeline with the chosen parameters fitted to the other folds, and the fold's rows."""
    fold = np.asarray(outcome.search.cv_fold_)
    before = [(name, step) for name, step in outcome.model.steps if name == PREPARE]
    for f in range(folds):
        train, held = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        model = clone(Pipeline([*before, (MACHINE, outcome.machine)]))
        with warnings.catch_warnings():
            # the warnings of the fit to all rows are already on the page
            warnings.simplefilter("ignore")
            try:
                model.fit(safe_indexing(X, train), y[train])
            except MercerError:  # the other folds have a single class
                continue
        yield model, held


def _losses(model: Any, X: Any, y: Vector, unit: float | None, rng: np.random.Generator) -> Vector:
    """Return the mean loss of accuracy, or of R², for each shuffled column. ``unit`` is the variance of y."""

    def error(predicted: Vector, true: Vector) -> float:
        return float(np.mean(predicted != true) if unit is None else np.mean(np.square(predicted - true)) / unit)

    before, n = error(model.predict(X), y), len(y)
    copies, y = safe_indexing(X, np.tile(np.arange(n), REPEATS)), np.tile(y, REPEATS)
    losses = np.empty(X.shape[1])
    for j in range(X.shape[1]):
        order = np.concatenate([rng.permutation(n) for _ in range(REPEATS)])
        cells = safe_indexing(safe_indexing(X, j, axis=1), order)
        losses[j] = error(model.predict(with_cells(copies, j, cells)), y) - before
    return losses


def decision_gradients(model: Any, X: Any) -> Matrix:
    """Return the exact gradient ∂f/∂x of each decision value of a fitted model at each sample.

    Parameters
    ----------
    model : fitted estimator
        A linear machine, a machine with any kernel on vectors, or a pipeline of StandardScaler, MinMaxScaler or
        MaxAbsScaler and one of these.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples.

    Returns
    -------
    gradients : ndarray of shape (n_problems, n_samples, n_features)
        There is one problem for two classes, a regression or a novelty detector; with more classes, one for each pair
        of classes or for each class.

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.report import decision_gradients
    >>> model = SVC(kernel="linear").fit([[0.0, 5.0], [2.0, 5.0]], [0, 1])
    >>> decision_gradients(model, [[3.0, 4.0]])
    array([[[1., 0.]]])
    """
    try:
        plain = plain_model(model)
    except InvalidInputError:
        raise InvalidInputError(
            f"Gradients of {type(model).__name__} cannot be computed: give a linear machine or one with a kernel on "
            "vectors, alone or after scalers."
        ) from None
    X = as_matrix(X)
    if X.shape[1] != plain.n_features:
        raise InvalidInputError(f"X has {X.shape[1]} features, but the model was fitted to {plain.n_features}.")
    scale = np.ones(plain.n_features) if plain.scale is None else plain.scale
    if plain.weights is not None:
        slopes = plain.weights * scale
        return np.repeat(slopes[:, None, :], X.shape[0], axis=1)
    assert plain.kernel is not None and plain.coef is not None
    if plain.scale is not None:
        X = (X.toarray() if sp.issparse(X) else X) * scale + plain.shift
    found = [
        plain.kernel.sample_gradients(X, plain.vectors, np.broadcast_to(coef, (X.shape[0], len(coef))))
        for coef in plain.coef
    ]
    return np.stack(found) * scale


@dataclass(frozen=True, eq=False)
class Slopes:
    """Signed slopes of the decision function of the fitted machine along each preprocessed feature.

    Attributes
    ----------
    outputs : what a positive slope favours: the target of a regression, the second of two classes, or each class.
    mean : the average slope over rows, a row per output and a column per feature.
    rising : the share of rows with a positive slope.
    linear : whether the slope is the same in all rows; ``mean`` then holds the weights.
    """

    outputs: list[str]
    mean: Matrix
    rising: Matrix
    linear: bool


def slopes(outcome: Outcome) -> Slopes | None:
    """Compute the slopes at a random sample of the rows; None unless the kernel is on vectors."""
    X = outcome.prepared
    if not hasattr(X, "shape") or X.shape[1] == 0:
        return None
    classes = [class_words(c) for c in outcome.classes] if outcome.task == "classification" else []
    outputs = classes if len(classes) > 2 else [classes[1] if classes else str(outcome.samples.target)]
    total, rising = np.zeros((2, len(outputs), X.shape[1]))
    try:
        plain = plain_model(outcome.machine)
        # the gradient of a linear machine is the same everywhere
        count = 1 if plain.weights is not None else SLOPE_ROWS
        chosen = np.random.default_rng(0).permutation(X.shape[0])[:count]
        step = max(1, ENTRIES // (X.shape[1] * plain.n_problems))
        for start in range(0, len(chosen), step):
            gradients = decision_gradients(outcome.machine, X[chosen[start : start + step]])
            if plain.rule == "pairs":
                gradients = _by_class(gradients, len(classes))
            total += gradients.sum(axis=1)
            rising += (gradients > 0).sum(axis=1)
    except MercerError:  # the kernel is not on vectors
        return None
    return Slopes(outputs, total / len(chosen), rising / len(chosen), plain.weights is not None)


def shapley_values(machine: Any, X: Any) -> Explanation | None:
    """Explain a machine at a random sample of the rows; None if there is no exact formula, or it takes too long."""
    if not hasattr(X, "shape") or not 0 < X.shape[1] <= MOST_COLUMNS or X.shape[0] == 0 or not has_formula(machine):
        return None
    n, d = X.shape
    order = np.random.default_rng(0).permutation(n)
    points = getattr(machine, "support_vectors_", X)
    cost = BACKGROUND * points.shape[0] * d * -(-d // 2)
    count = SHAPLEY_ROWS if hasattr(machine, "coef_") else int(min(SHAPLEY_ROWS, FACTORS // cost))
    if count < FEWEST_EXPLAINED:
        return None
    # a single row would be its own background
    background = None if n == 1 else safe_indexing(X, order[-BACKGROUND:])
    return explain(machine, safe_indexing(X, order[:count]), background)


def _by_class(gradients: Matrix, n_classes: int) -> Matrix:
    """Average the gradients of each class over its one-vs-one problems."""
    found = np.zeros((n_classes, *gradients.shape[1:]))
    for gradient, (i, j) in zip(gradients, class_pairs(n_classes), strict=True):
        found[i] += gradient / (n_classes - 1)
        found[j] -= gradient / (n_classes - 1)
    return found
