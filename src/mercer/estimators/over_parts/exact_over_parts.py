"""Exact kernel machines of rows in parts as fitted estimators: rows on disk, or on the workers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from mercer.estimators.linear.source_fit import (
    BLOCKS,
    Targets,
    Unlabelled,
    check_given,
    find_targets,
    set_features,
)
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import MEGABYTE
from mercer.gram.operator import Data
from mercer.kernels.features import Vector, take_samples
from mercer.parts.bound_kernel import bind_to_parts
from mercer.parts.kernel_solver import KernelPartsSolution, solve_kernel_parts
from mercer.parts.layout import LocalParts, Parts
from mercer.parts.linear_part import Statement
from mercer.parts.linear_run import stacked
from mercer.problems.clock import Clock
from mercer.sources.row_source import BLOCK_SHARE, RowSource, loaders
from mercer.svm.batch import OneVsOne, class_pairs
from mercer.validation import resolve_kernel, thread_count, validate_weights

# of the memory for rows on disk, for the samples of the pool and their copies
POOL_SHARE = 0.25
# what some parameters may be if the rows stay on disk
IN_BLOCKS: dict[str, tuple[Any, ...]] = {
    "probability": (False, "deprecated"),
    "solver": ("auto", "decomposition"),
    "trace": (False,),
    "warm_start": (False,),
}


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


def fit_exact(machine: Any, parts: Parts, clock: Clock) -> None:
    """Fit the exact SVC, SVR or OneClassSVM of these rows; of a classifier the classes are known.

    ``support_`` are the numbers of the support vectors among all rows.
    """
    machine._kernel = bind_to_parts(parts, resolve_kernel(machine.kernel, machine.degree, machine.gamma, machine.coef0))
    machine._gamma = getattr(machine._kernel, "gamma", 0.0)
    machine._function_samples = machine._warm = None
    machine.shape_fit_ = (parts.n, machine.n_features_in_)
    if is_classifier(machine):
        _fit_pairs(machine, parts, clock)
        return
    loss, C = machine._single_loss()
    found = _solve(machine, parts, Statement(loss, C, bool(machine.fit_intercept)), clock)
    data = _support_data(machine, found.samples, [found])
    machine._publish_one(data, loss, np.arange(data.n), found)
    machine.support_ = found.rows[machine.support_]


def fit_exact_source(machine: Any, source: RowSource, y: Any, sample_weight: Any, clock: Clock) -> None:
    """Fit the exact machine of rows that stay on disk."""
    for name, allowed in IN_BLOCKS.items():
        value = getattr(machine, name, allowed[0])
        if value not in allowed:
            raise InvalidInputError(
                f"{name}={value!r} needs all rows in memory, but {source.name} takes "
                f"{source.n * source.bytes_per_row / MEGABYTE:,.0f} MB and memory is "
                f"{source.memory / MEGABYTE:,.0f} MB. Use {name}={allowed[0]!r}, or open it with a larger memory=..."
            )
    labelled = machine._uses_targets
    check_given(machine, source, y if labelled else None, sample_weight, labelled)
    set_features(machine, source)
    targets: Targets | Unlabelled
    if labelled:
        targets = find_targets(machine, source, y, sample_weight, is_classifier(machine))
    else:
        targets = Unlabelled(None if sample_weight is None else validate_weights(sample_weight, source.n, source))
    budget = int((1.0 - BLOCKS * BLOCK_SHARE - POOL_SHARE) * source.memory)
    fit_exact(machine, LocalParts(loaders(source, targets), thread_count(machine.n_jobs), budget), clock)


def _solve(machine: Any, parts: Parts, statement: Statement, clock: Clock) -> KernelPartsSolution:
    return solve_kernel_parts(parts, machine._kernel, statement, machine._options(), clock)


def _support_data(machine: Any, samples: Any, solutions: list[KernelPartsSolution]) -> Data:
    """The support vectors as the samples of the model."""
    machine._sparse = sp.issparse(samples)
    data = Data(machine._kernel, samples, int(samples.shape[0]))
    data.evaluations.add(sum(solution.evaluations for solution in solutions))
    machine.kernel_evaluations_ = data.evaluations.count
    return data


def _fit_pairs(machine: Any, parts: Parts, clock: Clock) -> None:
    """All pairs of classes, one against one, each over the rows of its two classes."""
    (loss, C), pairs = machine._loss(), class_pairs(len(machine.classes_))
    solved: list[KernelPartsSolution | None] = []
    for i, j in pairs:
        weighted = min(machine._weight_of_class[i], machine._weight_of_class[j]) > 0
        code = PairOfClasses(i, j, machine.class_weight_)
        statement = Statement(loss, C, bool(machine.fit_intercept), code=code)
        solved.append(_solve(machine, parts, statement, clock) if weighted else None)
    found = [(pair, one) for pair, one in zip(pairs, solved, strict=True) if one is not None]
    # the support vectors of all pairs are the samples of the model
    rows, first = np.unique(np.concatenate([one.rows for _, one in found]), return_index=True)
    classes = np.concatenate([np.where(one.targets > 0, *pair) for pair, one in found])[first]
    samples = [one.samples for _, one in found]
    # the rows of one pair are in order already: a copy would double the memory of a large model
    joined = samples[0] if len(samples) == 1 else take_samples(stacked(samples), first)
    data = _support_data(machine, joined, [one for _, one in found])
    members = [np.flatnonzero(classes == c) for c in range(len(machine.classes_))]
    machines = []
    for (i, j), one in zip(pairs, solved, strict=True):
        own = np.concatenate([members[i], members[j]])
        machines.append(None if one is None else _placed(one, rows, own))
    del machine._weight_of_class
    machine._probA = machine._probB = np.empty(0)
    options, intercept = machine._options(), bool(machine.fit_intercept)
    machine._publish_pairs(OneVsOne(data, members, loss, np.zeros(data.n), intercept, options, clock), machines)
    machine.support_ = rows[machine.support_]


def _placed(one: KernelPartsSolution, rows: Vector, own: Vector) -> KernelPartsSolution:
    """The solution of a pair with β and F of all support vectors of its two classes, those at ``own`` in ``rows``."""
    beta, F = np.zeros(len(rows)), np.zeros(len(rows))
    at = np.searchsorted(rows, one.rows)
    beta[at], F[at] = one.beta, one.F
    return replace(one, beta=beta[own], F=F[own])
