"""Fit LinearSVC and LinearSVR to rows that stay on disk, block by block (see `mercer.open_rows`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from mercer.estimators.over_parts.rows_on_disk import (
    Targets,
    block_by_block,
    check_given,
    find_targets,
    identity,
    set_features,
    source_parts,
)
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.linear.linear_problem import Penalty
from mercer.linear.linear_solution import LinearSolution
from mercer.parts.linear_part import Statement
from mercer.parts.linear_solver import solve_parts
from mercer.problems.clock import Clock
from mercer.sources.checkpoint import Arrays, Checkpoint
from mercer.sources.row_source import RowSource
from mercer.validation import thread_count


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
    """Turns class indices into ±1, class k against the rest, with class weights as in `one_vs_rest`. Picklable."""

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
    """Solve the problems of a machine over the rows of a source; sets the attributes of features and classes."""
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


def solve_source(
    machine: Any, source: RowSource, targets: Targets, codes: Sequence[OneVsRest | None], clock: Clock
) -> list[LinearSolution]:
    """Solve a problem for each of ``codes``, one after the other; rows that fit into the memory are read once."""
    bias = constant_feature(machine)
    parts = source_parts(source, targets, thread_count(machine.n_jobs))
    options = machine._options()
    checkpoint = None
    if machine.checkpoint is not None:
        known = identity(machine, source, targets)
        checkpoint = Checkpoint(machine.checkpoint, known, len(codes), weights_of)
    first = vars(machine).pop("_first_weights", None)
    found: list[LinearSolution] = []
    for k, code in enumerate(codes):
        intercept = bool(machine.fit_intercept and not bias)
        statement = Statement(machine._loss(), float(machine.C), intercept, bias, Penalty(), code)
        if checkpoint is None:
            found.append(solve_parts(parts, statement, options, clock, None if first is None else first[k]))
            continue
        saved, keep = checkpoint.model(k), partial(keep_weights, checkpoint, k)
        found.append(solve_parts(parts, statement, options, clock, None if saved is None else saved["w"], keep))
        checkpoint.write()
    return found


def begin_at(machine: Any, coef: Matrix, intercept: Vector) -> None:
    """Let the next fit of rows on disk begin with these weights, one row for each problem."""
    bias = constant_feature(machine)
    last = [np.atleast_1d(intercept)[:, None] / (bias or 1.0)] if machine.fit_intercept else []
    machine._first_weights = np.hstack([np.atleast_2d(coef), *last])


def weights_of(model: Arrays) -> Vector:
    """The weights that a checkpoint has of a problem; KeyError if it has none."""
    return np.asarray(model["w"])


def keep_weights(checkpoint: Checkpoint, k: int, w: Vector) -> None:
    """Keep the weights of problem k."""
    checkpoint.keep(k, {"w": w})


def values_of(machine: Any, source: RowSource) -> Matrix:
    """Decision values of all rows, block by block."""
    from mercer.estimators.linear.linear_machine import products

    return block_by_block(machine, source, lambda X: products(X, machine.coef_) + machine.intercept_)
