"""Machines of all pairs of classes of rows in parts: on disk, or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.kernels.features import Vector, take_samples
from mercer.landmarks.over_parts import PartsSolution
from mercer.losses.base import Loss
from mercer.parts.kernel_solver import KernelPartsSolution
from mercer.parts.layout import Parts
from mercer.parts.linear_part import Statement
from mercer.parts.linear_run import stacked
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Solution
from mercer.sources.checkpoint import Checkpoint
from mercer.svm.batch import OneVsOne, class_pairs


@dataclass(frozen=True)
class PairOfClasses:
    """Turns class positions into 1 for class i and -1 for class j; other classes get the weight 0. Picklable."""

    i: int
    j: int
    of_class: Any

    def __call__(self, codes: Vector, weight: Vector) -> tuple[Vector, Vector]:
        """Targets and weights of one problem."""
        classes = codes.astype(np.intp)
        members = (classes == self.i) | (classes == self.j)
        return np.where(classes == self.i, 1.0, -1.0), np.where(members, weight * self.of_class[classes], 0.0)


def fit_pairs(machine: Any, parts: Parts, clock: Clock, checkpoint: Checkpoint | None) -> None:
    """Fit an SVC whose classes and ``_weight_of_class`` are known, one against one."""
    choice = machine._bind_parts(parts)
    (loss, C), options = machine._loss(), machine._options()
    solved: list[PartsSolution | KernelPartsSolution | None] = []
    for k, (i, j) in enumerate(class_pairs(len(machine.classes_))):
        if not min(machine._weight_of_class[i], machine._weight_of_class[j]) > 0:
            solved.append(None)
            continue
        statement = Statement(loss, C, bool(machine.fit_intercept), code=PairOfClasses(i, j, machine.class_weight_))
        found = machine._solve_parts(parts, statement, options, clock, choice, checkpoint, k)
        if choice is not None and choice.given is not None:
            # LIBSVM's layout finds a coefficient by a class: each class gets a copy of the given landmarks
            found = replace(found, rows=i * choice.given.n + found.rows, targets=np.ones(len(found.rows)))
        solved.append(found)
    del machine._weight_of_class
    _publish(machine, solved, loss, options, clock)


def _publish(machine: Any, solved: Sequence[Any], loss: Loss, options: Options, clock: Clock) -> None:
    """Publish the machines of all pairs; their samples are the landmarks, or the support vectors, of all of them."""
    n_classes = len(machine.classes_)
    pairs = class_pairs(n_classes)
    found = [(pair, one) for pair, one in zip(pairs, solved, strict=True) if one is not None]
    rows, first = np.unique(np.concatenate([one.rows for _, one in found]), return_index=True)
    classes = np.concatenate([np.where(one.targets > 0, *pair) for pair, one in found])[first]
    samples = [one.samples for _, one in found]
    # a copy would double the memory of a large model
    in_order = len(samples) == 1 and np.array_equal(first, np.arange(len(first)))
    joined = samples[0] if in_order else take_samples(stacked(samples), first)
    members = [np.flatnonzero(classes == c) for c in range(n_classes)]
    data = machine._parts_data(joined, [one for _, one in found])
    machines: list[Solution | None] = []
    for (i, j), one in zip(pairs, solved, strict=True):
        own = np.concatenate([members[i], members[j]])
        machines.append(None if one is None else one.placed(rows, own))
    machine._probA = machine._probB = np.empty(0)
    machine._warm = None
    problems = OneVsOne(data, members, loss, np.zeros(data.n), bool(machine.fit_intercept), options, clock)
    machine._publish_pairs(problems, machines)
    machine.support_ = machine._row_numbers(rows[machine.support_])
