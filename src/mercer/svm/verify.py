"""F = K b recomputed in float64 where it matters: what a certificate is made of.

The loss of a sample without weight that is far from every kink of the loss is zero, and so is its violation: a
float32 value of its F, with the error seen at thousands of other samples, is enough to know that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.gram.data import Data
from mercer.gram.operator import product, symmetric_product
from mercer.kernels.features import Matrix, Vector, VectorFeatures
from mercer.losses.base import BoxQP
from mercer.problems.dual import Survey, survey, thresholds
from mercer.problems.solution import Options
from mercer.svm.plan import VERIFY_AT_ONCE_UP_TO

# F tracked in float32 is trusted this many times the largest error seen
SAFETY = 4.0
BATCH = 8192


class ExactFormula(NamedTuple):
    """A kernel that compiled loops know, and the samples, in float64 or to be converted one by one.

    ``rows`` are those of X that the data have, in their order; None for all.
    """

    plan: Any
    X: Matrix
    rows: Vector | None

    def values(
        self, some: Vector | None, qp: BoxQP, beta: Vector, F: Vector, options: Options, slacks: Vector, groups: Matrix,
        totals: Vector,
    ) -> int:  # fmt: skip
        """Make F of a program with a variable for each of these samples, or for all, exact: see `exact_rows`.

        How many kernel values that took. Edits F, fills slacks with -inf where it is exact, and what `survey_of` makes
        a survey of.
        """
        from mercer.svm._verify_loops import exact_values

        index = np.arange(len(beta)) if some is None else some
        if self.rows is not None:
            index = self.rows[index]
        return int(exact_values(
            self.plan, self.X, index, beta, F, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, qp.group,
            nearness(options), slacks, groups, totals,
        ))  # fmt: skip


def exact_formula(data: Data) -> ExactFormula | None:
    """The kernel of the data in float64; None where compiled loops do not know it."""
    from mercer._compiled.kernel_blocks import plan_of

    index = None
    if data.compares_float32:
        # no float64 copy: each sample is converted when it is judged
        single = data.features(np.float32)
        assert isinstance(single, VectorFeatures)
        X, index = data.samples, data.index
        some = VectorFeatures(X[:1], np.float64, norm_range=single.norm_range)
    else:
        double = data.features(np.float64)
        if not isinstance(double, VectorFeatures):
            return None
        X, some = double.X, double
    plan = data.kernel.formula(some)
    return None if plan is None else ExactFormula(plan_of(*plan), X, index)


def _in_one_call(data: Data, qp: BoxQP, options: Options) -> bool:
    """Whether a program is so small, and plain, that calls from Python are most of the judgement."""
    plain = qp.sample is None and qp.n_groups == 1 and data.matrix_dtype is None
    return plain and options.n_threads == 1 and data.n <= VERIFY_AT_ONCE_UP_TO and isinstance(data.samples, np.ndarray)


def exact_rows(data: Data, qp: BoxQP, beta: Vector, F: Vector, options: Options) -> tuple[Vector, Vector]:
    """The samples whose loss or violation may not be zero, and F there in float64.

    Samples with weight, and those within a margin of a kink of the loss: at least SAFETY times the largest error of
    the given F.
    """
    from mercer.svm._round_loops import near_kinks

    formula = exact_formula(data) if _in_one_call(data, qp, options) else None
    if formula is not None:
        F, slacks = F.copy(), np.empty(data.n)
        found = np.empty((1, 5)), np.empty(7)
        data.evaluations.add(formula.values(None, qp, beta, F, options, slacks, *found))
        rows = np.flatnonzero(slacks == -np.inf)
        return rows, F[rows]
    weights = qp.at_samples(beta, data.n)
    columns = np.flatnonzero(weights)
    if len(columns) == 0:
        return np.arange(data.n), np.zeros(data.n)
    b_columns, weights = data.exact(columns), weights[columns]
    margin = nearness(options)
    gap = slack(qp, beta, F, thresholds(qp, beta, F))
    exact = np.zeros(data.n)
    exact[columns] = symmetric_product(data.kernel, b_columns, weights, options.n_threads, data.evaluations)
    done, near = np.zeros(data.n, np.bool_), np.empty(data.n, np.intp)
    done[columns] = True
    for _ in range(3):
        count, margin = near_kinks(gap, F, exact, done, margin, SAFETY, near)
        if count == 0:
            break
        todo = near[:count]
        exact[todo] = product(data.kernel, data.exact(todo), b_columns, weights, options.n_threads, data.evaluations)
        done[todo] = True
    rows = np.flatnonzero(done)
    return rows, exact[rows]


def exact_product(data: Data, qp: BoxQP, beta: Vector, options: Options) -> Vector:
    """F = K b at all samples in float64, some thousands of them prepared at a time."""
    weights = qp.at_samples(beta, data.n)
    columns = np.flatnonzero(weights)
    b_columns = data.exact(columns)
    parts = [np.arange(start, min(start + BATCH, data.n)) for start in range(0, data.n, BATCH)]
    return np.concatenate(
        [
            product(data.kernel, data.exact(part), b_columns, weights[columns], options.n_threads, data.evaluations)
            for part in parts
        ]
    )


def nearness(options: Options) -> float:
    """How near to a kink of the loss F of a sample must be known in float64, at least."""
    return max(10 * options.tol, 1e-4)


def slack(qp: BoxQP, beta: Vector, F: Vector, level: Vector) -> Vector:
    """For each sample without weight, how far its score is from making it move; -inf for samples with weight.

    ``level`` are the thresholds of the groups.
    """
    from mercer.svm._round_loops import slack_of

    out = np.empty(qp.n_vars)
    slack_of(
        beta, qp.at_variables(F), qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, qp.group,
        level if qp.n_groups else np.zeros(1), out,
    )  # fmt: skip
    if qp.sample is None:
        return out
    least = np.full(len(F), np.inf)
    np.minimum.at(least, qp.sample, out)
    return least


def _at_rows(qp: BoxQP, beta: Vector, F: Vector, rows: Vector | None) -> tuple[BoxQP, Vector, Vector]:
    """The program at some samples."""
    if rows is None:
        return qp, beta, F
    part, variables = qp.at_rows(rows, len(F))
    return part, beta[variables], F[rows]


def survey_at(qp: BoxQP, beta: Vector, F: Vector, rows: Vector | None) -> Survey:
    """What is to be seen at some samples."""
    return survey(*_at_rows(qp, beta, F, rows))
