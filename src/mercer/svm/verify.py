"""Verify a float32 solution: recompute F = K b in float64 at the samples that decide its certificate.

A sample without weight that is far from every kink of the loss contributes neither loss nor violation. To know that it
is far, a float32 value of F is enough: its error is bounded by SAFETY times the largest error seen at other samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.gram.operator import Data, product, symmetric_product
from mercer.kernels.features import Matrix, Vector, VectorFeatures
from mercer.losses.base import BoxQP
from mercer.problems.dual import Survey, survey
from mercer.problems.solution import Options

BATCH = 8192


class ExactFormula(NamedTuple):
    """A kernel in its compiled form and its samples; verifies a pair of classes in one compiled call.

    X may be float32: samples are converted one by one. ``rows`` are the rows of X that belong to the data, in their
    order; None for all.
    """

    formula: Any
    X: Matrix
    rows: Vector | None

    def values(
        self, some: Vector, qp: BoxQP, beta: Vector, F: Vector, options: Options, slacks: Vector, groups: Matrix,
        totals: Vector,
    ) -> int:  # fmt: skip
        """Recompute F in float64 where it matters (see `exact_rows`). Returns the number of kernel values computed.

        The program has one variable for each of these samples. Edits F. Fills ``slacks`` with -inf where F is exact,
        and groups and totals for `survey_of`.
        """
        from mercer.svm._verify_loops import exact_values

        index = some if self.rows is None else self.rows[some]
        return int(exact_values(
            self.formula, self.X, index, beta, F, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, qp.group,
            nearness(options), slacks, groups, totals,
        ))  # fmt: skip


def exact_formula(data: Data) -> ExactFormula | None:
    """The kernel and samples of the data for compiled float64 loops; None if the kernel has no compiled form."""
    from mercer._compiled.tiles import formula_of

    index = None
    if data.compares_float32:
        # no float64 copy: each sample is converted when it is verified
        single = data.features(np.float32)
        assert isinstance(single, VectorFeatures)
        X, index = data.samples, data.index
        some = VectorFeatures(X[:1], np.float64, norm_range=single.norm_range)
    else:
        double = data.features(np.float64)
        if not isinstance(double, VectorFeatures):
            return None
        X, some = double.X, double
    found = data.kernel.formula(some)
    return None if found is None else ExactFormula(formula_of(*found), X, index)


def exact_rows(data: Data, qp: BoxQP, beta: Vector, F: Vector, options: Options) -> tuple[Vector, Vector]:
    """The samples whose loss or violation may not be zero, and F there in float64.

    These are the samples with weight, and the samples within a margin of a kink of the loss. The margin is at least
    SAFETY times the largest error of F seen. Without free variables the threshold is the middle of [m, M]: the samples
    within a margin of these ends decide it, and belong to the others.
    """
    from mercer.problems._optimality_loops import SAFETY, near_kinks

    weights = qp.at_samples(beta, data.n)
    columns = np.flatnonzero(weights)
    if len(columns) == 0:
        return np.arange(data.n), np.zeros(data.n)
    b_columns, weights = data.exact(columns), weights[columns]
    margin = nearness(options)
    gap = slack(qp, beta, F, *survey(qp, beta, F).threshold_ends)
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
    """F = K b at all samples in float64, prepared in batches."""
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
    """The smallest margin: F of samples this near to a kink of the loss is always computed in float64."""
    return max(10 * options.tol, 1e-4)


def slack(qp: BoxQP, beta: Vector, F: Vector, low: Vector, high: Vector) -> Vector:
    """For each sample without weight, how far its rates are from making it move; -inf for samples with weight.

    ``low`` and ``high`` are the ends of the intervals in which the thresholds of the groups lie.
    """
    out = _slack_at(qp, beta, F, low)
    if not np.array_equal(low, high):
        np.minimum(out, _slack_at(qp, beta, F, high), out=out)
    if qp.sample is None:
        return out
    least = np.full(len(F), np.inf)
    np.minimum.at(least, qp.sample, out)
    return least


def _slack_at(qp: BoxQP, beta: Vector, F: Vector, level: Vector) -> Vector:
    """The slack of each variable at these thresholds."""
    from mercer.problems._optimality_loops import fill_slack

    out = np.empty(qp.n_vars)
    fill_slack(
        beta, qp.at_variables(F), qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, qp.group,
        level if qp.n_groups else np.zeros(1), out,
    )  # fmt: skip
    return out


def _at_rows(qp: BoxQP, beta: Vector, F: Vector, rows: Vector | None) -> tuple[BoxQP, Vector, Vector]:
    """The program, beta and F restricted to these samples, or all if rows is None."""
    if rows is None:
        return qp, beta, F
    part, variables = qp.at_rows(rows, len(F))
    return part, beta[variables], F[rows]


def survey_at(qp: BoxQP, beta: Vector, F: Vector, rows: Vector | None) -> Survey:
    """The survey restricted to these samples, or of all if rows is None."""
    return survey(*_at_rows(qp, beta, F, rows))
