"""Change of the decision functions of a support vector machine when single training samples are left out.

If no other sample changes its state (zero, free, bound), the change follows from the bordered inverse of the free
support vectors: see `LeftOutProblem`. The optimality conditions of the problem without the sample decide whether it
does; where they fail, the problem is solved, starting from that solution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.thread_pool import run_tasks
from mercer.estimators.base import warn_user
from mercer.estimators.certification.kernel_machines import FittedProblem, fitted_problems
from mercer.gram.memory import available_bytes
from mercer.gram.operator import Data, product
from mercer.kernels.features import Matrix, Vector, count_samples
from mercer.problems.clock import Clock
from mercer.problems.dual import survey
from mercer.problems.solution import Options
from mercer.selection.left_out_problem import LeftOutProblem
from mercer.svm.batch import class_pairs
from mercer.validation import call_kernel, thread_count, validate_samples

# fraction of the available memory for the kernel matrices of all problems
MEMORY = 0.25
# left-out samples whose solutions are checked at a time
BATCH = 256


class LeftOut(NamedTuple):
    """Changes of decision values: rows × training samples × functions, and how they were found."""

    values: NDArray[np.float64]
    exact: NDArray[np.bool_]
    n_closed: int
    n_refits: int


class Limits(NamedTuple):
    """When to stop solving problems anew, and how accurately to solve them."""

    tol: float
    max_refits: int | None
    time_limit: float | None


def left_out_machine(model: Any, X: Any, X_train: Any, y: Any, sample_weight: Any, limits: Limits) -> LeftOut:
    """The changes of all decision functions at X, one for each pair of classes where there are several."""
    fitted = fitted_problems(model, X_train, y, sample_weight)
    options = Options(tol=limits.tol, time_limit=limits.time_limit, n_threads=fitted[0].machine.n_threads)
    at = _Rows(model, X, fitted[0].machine.data, X_train)
    n_classes = len(model.classes_) if hasattr(model, "classes_") else 0
    n_functions = max(1, n_classes * (n_classes - 1) // 2)
    with Clock(limits.time_limit) as clock, one_blas_thread():
        whole = sum(8 * len(p.rows) ** 2 for p in fitted) <= MEMORY * available_bytes()
        found = _all_problems(fitted, whole, options, clock, limits.max_refits)
        values = np.zeros((at.n, fitted[0].machine.data.n, n_functions))
        exact = np.ones(values.shape[1], np.bool_)
        for changed in found:
            p, column, sign = changed.problem, *_place(model, changed.problem.labels, n_classes)
            values[:, p.rows[changed.index], column] = sign * (at.times(p.rows, changed.beta) + changed.intercept)
            exact[p.rows[changed.index[~changed.exact]]] = False
    n_refits, wanted = sum(c.n_refits for c in found), sum(c.n_wanted for c in found)
    if not exact.all():
        _warn_incomplete(clock, limits, n_refits, wanted)
    stalled = sum(len(c.problem.stalled) for c in found)
    if stalled:
        warn_user(
            f"{stalled} of the problems that influence solved did not reach tol={limits.tol:g}: rounding allows no "
            "further progress. Lower C, raise tol, or scale the features.",
            ConvergenceWarning,
        )
    n_closed = sum(len(c.index) - c.n_wanted for c in found)
    return LeftOut(values, exact, n_closed, n_refits)


def _warn_incomplete(clock: Clock, limits: Limits, n_refits: int, wanted: int) -> None:
    reason = "it was interrupted" if clock.interrupted else f"time_limit={limits.time_limit} s"
    if limits.max_refits is not None and n_refits >= limits.max_refits:
        reason = f"max_refits={limits.max_refits}"
    warn_user(
        f"influence ended early ({reason}): {n_refits} of {wanted} problems whose support vectors change their state "
        "were solved; the values of the others are estimates by the span.",
        ConvergenceWarning,
    )


def _place(model: Any, labels: tuple[Any, ...], n_classes: int) -> tuple[int, float]:
    """The column of a pair's function, and its sign: with two classes the second is positive in decision values."""
    if n_classes == 0:
        return 0, 1.0
    pair = tuple(np.searchsorted(model.classes_, labels).tolist())
    return list(class_pairs(n_classes)).index(pair), -1.0 if n_classes == 2 else 1.0


class _Rows:
    """The samples at which the changes are asked for, and their kernel values with training samples."""

    def __init__(self, model: Any, X: Any, data: Data, X_train: Any) -> None:
        X, _ = validate_samples(model, X, None, reset=False)
        if data.kernel.domain == "matrix" and callable(model.kernel):
            X = call_kernel(model.kernel, X, X_train)
        self.n, self.data, self.n_threads = count_samples(X), data, thread_count(getattr(model, "n_jobs", None))
        self.matrix = np.asarray(X, dtype=np.float64) if data.kernel.domain == "matrix" else None
        self.features = None if self.matrix is not None else data.kernel.prepare(X, np.float64)

    def times(self, rows: Vector, beta: Matrix) -> Matrix:
        """K(X, training[rows]) @ beta, for a matrix beta with few rows that are not 0."""
        used = np.flatnonzero(beta.any(axis=1))
        if self.features is None:
            assert self.matrix is not None
            return self.matrix[:, rows[used]] @ beta[used]
        return product(self.data.kernel, self.features, self.data.exact(rows[used]), beta[used], self.n_threads)


class _Changes:
    """Changes of β and of the intercept of one problem, a column for each sample whose removal changes it."""

    def __init__(self, problem: LeftOutProblem) -> None:
        self.problem, self.index = problem, problem.affected
        n, count = len(problem.rows), len(self.index)
        self.beta, self.intercept = np.zeros((n, count)), np.zeros(count)
        self.exact = np.zeros(count, np.bool_)
        self.n_refits = 0
        for start in range(0, count, BATCH):
            self._by_formula(np.arange(start, min(start + BATCH, count)))
        self.n_wanted = int(np.count_nonzero(~self.exact))

    def _by_formula(self, columns: Vector) -> None:
        """The solutions without state changes, and whether they are optimal."""
        p, index = self.problem, self.index[columns]
        delta, shift = p.moves(index)
        # where the formula is undefined: only the sample itself is left out
        undefined = ~np.isfinite(shift)
        delta[:, undefined], shift[undefined] = 0.0, 0.0
        own = p.beta[index]
        change = self.beta[:, columns]
        change[p.free] = delta
        change[index, np.arange(len(index))] = -own
        self.beta[:, columns], self.intercept[columns] = change, shift
        F = p.F[:, None] + p.times(p.support, np.ascontiguousarray(change[p.support]))
        for k in np.flatnonzero(~undefined).tolist():
            beta = p.beta + change[:, k]
            found = survey(p.left(int(index[k])).qp, beta, np.ascontiguousarray(F[:, k]))
            allowed = p.options.tol * max(1.0, float(np.abs(beta).max(initial=0.0)))
            self.exact[columns[k]] = found.violation <= p.options.tol and found.infeasibility <= 1e-9 * allowed

    def refit(self, column: int) -> None:
        """Solve the problem without this column's sample."""
        p, i = self.problem, int(self.index[column])
        beta, _, b = p.solved_without(i, p.beta + self.beta[:, column])
        if p.clock.over() is None:
            self.beta[:, column], self.intercept[column] = beta - p.beta, b - p.b
            self.exact[column] = True
            self.n_refits += 1


def _all_problems(
    fitted: list[FittedProblem], whole: bool, options: Options, clock: Clock, max_refits: int | None
) -> list[_Changes]:
    """The changes of every problem; those whose support vectors change their state are solved, as far as allowed."""
    found = [_Changes(LeftOutProblem(p, whole, options, clock)) for p in fitted]
    tasks = [(c, column) for c in found for column in np.flatnonzero(~c.exact).tolist()][:max_refits]

    def one(task: int) -> None:
        if clock.over() is None:
            changes, column = tasks[task]
            changes.refit(column)

    run_tasks(one, len(tasks), options.n_threads)
    return found
