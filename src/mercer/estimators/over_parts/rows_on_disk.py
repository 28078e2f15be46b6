"""Steps of all fits to rows on disk: targets and classes in one pass, parts, predictions by blocks, checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.parts.layout import LocalParts
from mercer.sources.row_source import BLOCK_SHARE, RowSource, loaders
from mercer.validation import check_weighted_classes, class_weights, real_targets, validate_weights

# blocks in memory beside those that are kept: the present one, and the next one that is read ahead
BLOCKS = 2
# more classes than this would take too many passes: they are probably the targets of a regression
MOST_CLASSES = 1000
# parameters on which the optimum does not depend
FREE = {
    "tol", "max_iter", "time_limit", "n_jobs", "verbose", "warm_start", "checkpoint", "random_state", "rule", "dual",
    "landmark_tol", "max_landmarks", "cache_size", "precision", "shrinking", "trace", "decision_function_shape",
    "break_ties", "probability", "client",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets and weights of a fit: those of the source, or those given to ``fit``. Picklable.

    Attributes
    ----------
    classes : the sorted labels, which become their positions; None for numbers.
    y, weight : the targets and sample weights given to ``fit``; None: those of the source, or weights of 1.
    """

    classes: Vector | None = None
    y: Vector | None = None
    weight: Vector | None = None

    def __call__(self, y: Any, weight: Any, start: int, stop: int) -> tuple[Vector, Vector]:
        """Class indices or values, and weights, of the rows from start to before stop, as float64."""
        y = y if self.y is None else self.y[start:stop]
        weight = weight if self.weight is None else self.weight[start:stop]
        return self.coded(y), np.ones(stop - start) if weight is None else weight

    def coded(self, y: Any) -> Vector:
        """Class indices or values as float64."""
        if self.classes is None:
            return real_targets(y)
        codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        if not (self.classes[codes] == y).all():
            raise InvalidInputError("A class label has appeared that was not there before: the source has changed.")
        return codes.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Targets of 1, for machines that ignore them, and weights. Picklable."""

    weight: Vector | None = None
    y: None = None

    def __call__(self, y: Any, weight: Any, start: int, stop: int) -> tuple[Vector, Vector]:
        """Targets and weights of the rows from start to before stop."""
        weight = weight if self.weight is None else self.weight[start:stop]
        return np.ones(stop - start), np.ones(stop - start) if weight is None else weight


def check_given(machine: Any, source: RowSource, y: Any, sample_weight: Any, needs_target: bool = True) -> None:
    """Raise for targets or weights given twice or not at all."""
    if y is None and not source.has_target and needs_target:
        raise InvalidInputError(
            f"{type(machine).__name__} requires y to be passed, but the target y is None and {source.name} has no "
            "targets. Name them in open_rows(..., target=...), or give y to fit."
        )
    for what, given, inside in (("y", y, source.has_target), ("sample_weight", sample_weight, source.has_weight)):
        if given is not None and inside:
            raise InvalidInputError(f"{what} was given to fit, but {source.name} has its own: give only one of them.")
    if y is not None and len(y) != source.n:
        raise InvalidInputError(f"y has {len(y):,} values, but {source.name} has {source.n:,} rows.")


def set_features(machine: Any, source: RowSource) -> None:
    """Set n_features_in_ and, if the columns have names, feature_names_in_."""
    machine.n_features_in_ = source.n_columns
    vars(machine).pop("feature_names_in_", None)
    if source.columns is not None and source.are_inputs:
        machine.feature_names_in_ = np.array(source.columns, dtype=object)


def find_targets(machine: Any, source: RowSource, y: Any, sample_weight: Any, classes: bool) -> Targets:
    """Find the classes in one pass over the targets, without the samples.

    Sets ``classes_``, ``class_weight_`` and ``_weight_of_class``, the weight of each class with its class weight. Class
    weights may depend on the weights of the classes (``_balances_weights``) or on the numbers of their samples.
    """
    weight = None if sample_weight is None else validate_weights(sample_weight, source.n, source)
    given = None if y is None else np.asarray(y)
    if given is not None and given.ndim != 1:
        raise InvalidInputError(f"y has the shape {given.shape}: give one value for each row.")
    if not classes:
        targets = Targets(None, None if given is None else real_targets(given), weight)
        _check_weights(_weight_sums(source, targets))
        return targets
    totals: dict[Any, float] = {}
    counts: dict[Any, int] = {}
    for labels, weights in _target_blocks(source, given, weight):
        check_classification_targets(labels)
        found, codes = np.unique(labels, return_inverse=True)
        sums, numbers = np.bincount(codes, weights, len(found)), np.bincount(codes, minlength=len(found))
        for label, total, count in zip(found.tolist(), sums, numbers, strict=True):
            totals[label] = totals.get(label, 0.0) + float(total)
            counts[label] = counts.get(label, 0) + int(count)
        if len(totals) > MOST_CLASSES:
            raise InvalidInputError(
                f"{source.name} has more than {MOST_CLASSES:,} classes, such as "
                f"{', '.join(map(repr, list(totals)[:3]))}. For a regression use LinearSVR or SVR."
            )
    _check_weights(totals.values())
    machine.classes_ = np.unique(np.array(list(totals)))
    if len(machine.classes_) < 2:
        raise InvalidInputError(
            "This solver needs samples of at least 2 classes in the data, but the data contains only one class: "
            f"{machine.classes_[0]!r}"
        )
    labels = machine.classes_.tolist()
    sums, each = np.array([totals[label] for label in labels]), np.arange(len(labels))
    balanced = (
        sums if getattr(machine, "_balances_weights", True) else np.array([float(counts[label]) for label in labels])
    )
    machine.class_weight_ = class_weights(machine.class_weight, machine.classes_, each, balanced)
    check_weighted_classes(each, sums, machine.class_weight_)
    machine._weight_of_class = sums * machine.class_weight_
    return Targets(machine.classes_, given, weight)


def _target_blocks(source: RowSource, y: Vector | None, weight: Vector | None) -> Iterator[tuple[Any, Vector]]:
    """Labels and weights of the blocks."""
    if y is not None and not source.has_weight:
        yield y, np.ones(source.n) if weight is None else weight
        return
    for start, stop, own, own_weight in source.targets():
        weights = own_weight if weight is None else weight[start:stop]
        yield own if y is None else y[start:stop], np.ones(stop - start) if weights is None else weights


def _weight_sums(source: RowSource, targets: Targets) -> list[float]:
    if not source.has_weight:
        return [1.0]
    return [float(weight.sum()) for _, _, _, weight in source.targets() if weight is not None]


def _check_weights(totals: Any) -> None:
    if not sum(totals) > 0:
        raise InvalidInputError("Invalid input - all samples have zero or negative weights.")


def source_parts(
    source: RowSource, targets: Any, n_threads: int, work: int | None = None, reserved: float = 0.0
) -> LocalParts:
    """The blocks of a source as parts, kept in memory within its budget; ``work`` is that of computed rows.

    ``reserved`` is the share of the memory that is needed for other data.
    """
    budget = int((1.0 - BLOCKS * BLOCK_SHARE - reserved) * source.memory)
    return LocalParts(loaders(source, targets), n_threads, budget, work=work)


def identity(machine: Any, source: RowSource, targets: Targets | Unlabelled) -> dict[str, str]:
    """Identifies the fit of a checkpoint: the data, and every parameter on which the optimum depends."""
    found = {"data": source.fingerprint()}
    for name in ("y", "weight"):
        values = getattr(targets, name)
        if values is not None:
            found[name] = text_of(np.asarray(values))
    return found | stated(machine)


def stated(machine: Any) -> dict[str, str]:
    """The parameters of a machine on which its optimum depends, as texts."""
    return {name: text_of(value) for name, value in machine.get_params(deep=False).items() if name not in FREE}


def text_of(value: Any) -> str:
    """A text that differs for different values of a parameter, which may be samples."""
    if sp.issparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray) and value.size > 1:
        # the bytes of objects are addresses, which differ between processes
        raw = repr(value.tolist()).encode() if value.dtype.hasobject else np.ascontiguousarray(value).tobytes()
        return hashlib.sha256(raw).hexdigest()
    return repr(value)


def block_by_block(machine: Any, source: RowSource, function: Callable[[Any], Matrix]) -> Matrix:
    """function(X) of all blocks, one below the other. Raises if the columns are not those of the training samples."""
    names = getattr(machine, "feature_names_in_", None)
    if source.n_columns != machine.n_features_in_:
        found = f"{source.name} has {source.n_columns} features, but {type(machine).__name__} is expecting "
        advice = ""
        if names is not None and source.columns is not None:
            missing = [name for name in names if name not in source.columns]
            advice = (
                f" It lacks the column {missing[0]!r}."
                if missing
                else " Open the table with columns=[...] in the order of feature_names_in_."
            )
        raise InvalidInputError(f"{found}{machine.n_features_in_} features as input.{advice}")
    if names is not None and source.columns is not None and tuple(names) != source.columns:
        wrong = next(j for j, (a, b) in enumerate(zip(names, source.columns, strict=True)) if a != b)
        raise InvalidInputError(
            f"Column {wrong} of {source.name} is {source.columns[wrong]!r}, but the model was fitted to "
            f"{names[wrong]!r} there. Open the table with columns=[...] in the order of feature_names_in_."
        )
    out: Matrix | None = None
    for block in source.blocks():
        values = function(block.X)
        out = np.empty((source.n, *values.shape[1:])) if out is None else out
        out[block.start : block.stop] = values
    assert out is not None
    return out
