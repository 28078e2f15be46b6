"""Fit LinearSVC and LinearSVR to rows that stay on disk, block by block (see `mercer.open_rows`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.multiclass import check_classification_targets

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.linear.linear_problem import Penalty
from mercer.linear.linear_solution import LinearSolution
from mercer.parts.layout import LocalParts
from mercer.parts.linear_part import Statement
from mercer.parts.linear_solver import solve_parts
from mercer.problems.clock import Clock
from mercer.sources.checkpoint import Checkpoint
from mercer.sources.row_source import BLOCK_SHARE, RowSource, loaders
from mercer.validation import check_weighted_classes, class_weights, real_targets, thread_count, validate_weights

# blocks in memory beside those that are kept: the present one, and the next one that is read ahead
BLOCKS = 2
# more classes than this take so many passes that they are likely numbers to be predicted
MOST_CLASSES = 1000


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

    def __call__(self, y: Any, weight: Any, start: int, stop: int) -> tuple[Vector, Vector]:
        """Targets and weights of the rows from start to before stop."""
        weight = weight if self.weight is None else self.weight[start:stop]
        return np.ones(stop - start), np.ones(stop - start) if weight is None else weight


@dataclass(frozen=True, eq=False)
class OneVsRest:
    """Class indices into ±1 of class k against the rest, with class weights as in `one_vs_rest`. Picklable."""

    k: int
    class_weight: Vector
    several: bool

    def __call__(self, codes: Vector, weight: Vector) -> tuple[Vector, Vector]:
        """Labels and weights."""
        return one_vs_rest(codes.astype(np.intp), weight, self.class_weight, self.k, self.several)


def one_vs_rest(codes: Vector, weight: Vector, of_class: Vector, k: int, several: bool) -> tuple[Vector, Vector]:
    """Labels ±1 and weights of class k against the rest.

    As in LIBLINEAR, with more than two classes the class weight applies to class k, not to the rest.
    """
    positive = codes == k
    y = 2.0 * positive - 1.0
    if (of_class == 1.0).all():
        return y, weight
    return y, weight * (np.where(positive, of_class[k], 1.0) if several else of_class[codes])


def constant_feature(machine: Any) -> float:
    """The value of the feature whose weight is a penalised intercept; 0 if there is none."""
    penalised = machine.fit_intercept and getattr(machine, "penalize_intercept", True)
    return float(machine.intercept_scaling) if penalised else 0.0


def fit_source(machine: Any, source: RowSource, y: Any, sample_weight: Any, clock: Clock) -> list[LinearSolution]:
    """Solve the problems of a machine over the rows of a source; sets what belongs to features and classes."""
    check_parameters(machine, source, y, sample_weight)
    set_features(machine, source)
    classifies = is_classifier(machine)
    targets = find_targets(machine, source, y, sample_weight, classifies)
    codes: list[OneVsRest | None] = [None]
    if classifies:
        several = len(machine.classes_) > 2
        positives = range(len(machine.classes_)) if several else (1,)
        codes = [OneVsRest(k, machine.class_weight_, several) for k in positives]
    return solve_source(machine, source, targets, codes, clock)


def check_parameters(machine: Any, source: RowSource, y: Any, sample_weight: Any) -> None:
    """Raise for parameters that need all rows in memory, and for targets or weights given twice or not at all."""
    name = type(machine).__name__
    wanted = {
        "penalty": machine.penalty == "l2" or (machine.penalty == "elasticnet" and machine.l1_ratio == 0),
        "C": np.isfinite(machine.C),
        "multi_class": getattr(machine, "multi_class", "ovr") == "ovr",
        "solver": machine.solver == "auto",
    }
    for parameter, possible in wanted.items():
        if not possible:
            raise InvalidInputError(
                f"{name}({parameter}={getattr(machine, parameter)!r}) needs all rows in memory or in an np.memmap, but "
                f"{source.name} is read block by block. On rows on disk use penalty='l2', a finite C, "
                "multi_class='ovr' and solver='auto'."
            )
    check_given(machine, source, y, sample_weight)


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

    Sets classes_, class_weight_, which may depend on the weights of the classes (``_balances_weights``) or the numbers
    of their samples, and ``_weight_of_class``, the weight of each class with its class weight.
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
                f"{', '.join(map(repr, list(totals)[:3]))}. For a regression use LinearSVR."
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


def solve_source(
    machine: Any, source: RowSource, targets: Targets, codes: Sequence[OneVsRest | None], clock: Clock
) -> list[LinearSolution]:
    """Solve a problem for each of ``codes``, one after the other; rows that fit into the memory are read once."""
    bias = constant_feature(machine)
    budget = int((1.0 - BLOCKS * BLOCK_SHARE) * source.memory)
    parts = LocalParts(loaders(source, targets), thread_count(machine.n_jobs), budget)
    options = machine._options()
    checkpoint = None
    if machine.checkpoint is not None:
        checkpoint = Checkpoint(machine.checkpoint, identity(machine, source, targets), len(codes))
    found: list[LinearSolution] = []
    for k, code in enumerate(codes):
        intercept = bool(machine.fit_intercept and not bias)
        statement = Statement(machine._loss(), float(machine.C), intercept, bias, Penalty(), code)
        start = None if checkpoint is None else checkpoint.model(k)
        keep = None if checkpoint is None else partial(checkpoint.keep, k)
        found.append(solve_parts(parts, statement, options, clock, start, keep))
        if checkpoint is not None:
            checkpoint.write()
    return found


def identity(machine: Any, source: RowSource, targets: Targets) -> dict[str, str]:
    """What a checkpoint belongs to: the data, and every parameter on which the optimum depends."""
    found = {"data": source.fingerprint()}
    for name in ("y", "weight"):
        values = getattr(targets, name)
        if values is not None:
            found[name] = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
    free = {"tol", "max_iter", "time_limit", "n_jobs", "verbose", "warm_start", "checkpoint", "random_state", "rule"}
    return found | {name: repr(value) for name, value in machine.get_params().items() if name not in free | {"dual"}}


def values_of(machine: Any, source: RowSource) -> Matrix:
    """Decision values of all rows, block by block."""
    from mercer.estimators.linear.linear_machine import products

    if source.n_columns != machine.n_features_in_:
        raise InvalidInputError(
            f"{source.name} has {source.n_columns} features, but {type(machine).__name__} is expecting "
            f"{machine.n_features_in_} features as input."
        )
    names = getattr(machine, "feature_names_in_", None)
    if names is not None and source.columns is not None and tuple(names) != source.columns:
        wrong = next(j for j, (a, b) in enumerate(zip(names, source.columns, strict=True)) if a != b)
        raise InvalidInputError(
            f"Column {wrong} of {source.name} is {source.columns[wrong]!r}, but the model was fitted to "
            f"{names[wrong]!r} there. Open the table with columns=[...] in the order of feature_names_in_."
        )
    out: Matrix | None = None
    for block in source.blocks():
        values = products(block.X, machine.coef_)
        out = np.empty((source.n, *values.shape[1:])) if out is None else out
        out[block.start : block.stop] = values + machine.intercept_
    assert out is not None
    return out
