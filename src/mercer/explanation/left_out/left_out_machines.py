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
from mercer.exceptions import InvalidInputError
from mercer.explanation.left_out.left_out_nu_machines import LeftOutNuProblem
from mercer.gram.memory import available_bytes
from mercer.gram.operator import Data
from mercer.kernels.features import Matrix, Vector, count_samples
from mercer.losses import NuHinge, NuInsensitive
from mercer.losses.base import Published
from mercer.problems.clock import Clock
from mercer.problems.dual import settled_at_bounds, survey
from mercer.problems.solution import Options
from mercer.selection.left_out_problem import LeftOutProblem
from mercer.svm.batch import class_pairs
from mercer.validation import call_kernel, thread_count, validate_samples

# fraction of the available memory for the kernel matrices of all problems
MEMORY = 0.25
# numbers of a batch of left-out samples whose solutions are checked together
NUMBERS = 1 << 22
# how far coefficients may be outside of their box or from their sum, relative to the largest
FEASIBLE = 1e-12
# coefficients this far outside of their box, relative to the largest, or a violation of this many times tol, show that
# targets or weights are not those of the fit
WRONG_BOX, WRONG_VIOLATION = 1e-4, 100.0


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


def _check_training(model: Any, samples: Any) -> None:
    """Raise if the support vectors of the model are not among the samples, at the places where fit saw them."""
    known = model.support_vectors_
    if not isinstance(known, np.ndarray) or known.size == 0 or not isinstance(samples, np.ndarray):
        return
    given = samples[np.asarray(model.support_, np.intp)]
    if given.shape == known.shape and not np.allclose(given, known, rtol=1e-5, equal_nan=True):
        wrong = int(np.argmax(np.abs(given - known).max(axis=1)))
        raise InvalidInputError(
            f"X_train is not what the model was fitted to: sample {model.support_[wrong]} differs from the support "
            "vector that the model keeps of it. Pass the training data, in the same order."
        )


def _check_targets(model: Any, fitted: list[FittedProblem]) -> None:
    """Raise if the published coefficients are no solution of the problems with these targets and weights."""
    if getattr(model, "fit_status_", 0) != 0:  # a fit that was cut short is no solution of any
        return
    for p in fitted:
        found = survey(p.problem.qp, p.beta, p.F)
        # coefficients may be outside of their box by rounding
        rounding = WRONG_BOX * float(np.abs(p.beta).max(initial=0.0)) * max(1.0, np.sqrt(len(p.beta)))
        if found.infeasibility > rounding or found.violation > WRONG_VIOLATION * model.tol:
            raise InvalidInputError(
                "X_train, y_train and sample_weight are not what the model was fitted to: with them its coefficients "
                f"violate the optimality conditions by {found.violation:.3g} and their bounds by "
                f"{found.infeasibility:.3g}. Pass the training data, targets and weights of the fit, in the same order."
            )


def left_out_machine(model: Any, X: Any, X_train: Any, y: Any, sample_weight: Any, limits: Limits) -> LeftOut:
    """The changes of all decision functions at X, one for each pair of classes where there are several."""
    fitted = fitted_problems(model, X_train, y, sample_weight)
    _check_training(model, fitted[0].machine.data.samples)
    _check_targets(model, fitted)
    options = Options(tol=limits.tol, time_limit=limits.time_limit, n_threads=fitted[0].machine.n_threads)
    at = _Rows(model, X, fitted[0].machine.data, X_train)
    n_classes = len(model.classes_) if hasattr(model, "classes_") else 0
    n_functions = max(1, n_classes * (n_classes - 1) // 2)
    with Clock(limits.time_limit) as clock, one_blas_thread():
        whole = sum(8 * len(p.rows) ** 2 for p in fitted) <= MEMORY * available_bytes()
        found = [_changes(p, whole, options, clock, at) for p in fitted]
        _refit(found, limits.max_refits, clock, options.n_threads)
        values = np.zeros((at.n, fitted[0].machine.data.n, n_functions))
        exact = np.ones(values.shape[1], np.bool_)
        for changed in found:
            p, column, sign = changed.problem, *_place(model, changed.problem.labels, n_classes)
            values[:, p.rows[changed.index], column] = sign * changed.values
            exact[p.rows[changed.index[~changed.exact]]] = False
    n_refits, wanted = sum(c.n_refits for c in found), sum(c.n_wanted for c in found)
    if not exact.all():
        _warn_incomplete(clock, limits, n_refits, wanted)
    for changed in found:
        exact[changed.problem.rows[changed.index[changed.undefined]]] = False
    undefined = len(np.unique(np.concatenate([c.problem.rows[c.index[c.undefined]] for c in found])))
    if undefined:
        warn_user(
            f"Without {undefined} of the training samples the machine is not determined: a class has no other "
            "sample, or the margin of a NuSVC is 0. Their values are estimates, and exact is False.",
            UserWarning,
        )
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

    def block(self, rows: Vector) -> Matrix:
        """K(X, training[rows])."""
        if self.features is None:
            assert self.matrix is not None
            return self.matrix[:, rows]
        return self.data.kernel.block(self.features, self.data.exact(rows))


class _Changes:
    """Changes of one function at the rows, a column for each training sample whose removal changes it."""

    def __init__(self, problem: LeftOutProblem, at: _Rows) -> None:
        self.problem, self.index = problem, problem.affected
        # the samples whose coefficients change without a change of state
        self.known = np.union1d(problem.support, self.index)
        self.K = at.block(problem.rows)
        self.values, self.exact = np.zeros((at.n, len(self.index))), np.zeros(len(self.index), np.bool_)
        # without these samples the machine is not determined
        self.undefined = np.isin(self.index, _only_of_class(problem))
        self.n_refits = 0
        step = max(1, NUMBERS // max(1, len(problem.rows)))
        for start in range(0, len(self.index), step):
            self._by_formula(np.arange(start, min(start + step, len(self.index))))
        self.n_wanted = int(np.count_nonzero(~self.exact))

    def _by_formula(self, columns: Vector) -> None:
        """The solutions without state changes, and whether they are optimal."""
        p, index = self.problem, self.index[columns]
        delta, shift = p.moves(index)
        # where the formula is undefined: only the sample itself is left out
        undefined = ~np.isfinite(shift)
        delta[:, undefined], shift[undefined] = 0.0, 0.0
        change = np.zeros((len(self.known), len(index)))
        change[np.searchsorted(self.known, p.free)] = delta
        change[np.searchsorted(self.known, index), np.arange(len(index))] = -p.beta[index]
        self.values[:, columns] = self.K[:, self.known] @ change + shift
        F = p.F[:, None] + p.times(self.known, change)
        for k in np.flatnonzero(~undefined).tolist():
            beta = p.beta.copy()
            beta[self.known] += change[:, k]
            qp = p.left(int(index[k])).qp
            beta = settled_at_bounds(qp, beta)
            found = survey(qp, beta, np.ascontiguousarray(F[:, k]))
            if p.problem.intercept and found.n_free[0] == 0:
                # b is the middle of an interval, as a fit chooses it
                self.values[:, columns[k]] += float(found.thresholds.sum()) - p.b - shift[k]
            rounding = FEASIBLE * max(1.0, float(np.abs(beta).max(initial=0.0)))
            self.exact[columns[k]] = found.violation <= p.options.tol and found.infeasibility <= rounding

    def refit(self, column: int) -> None:
        """Solve the problem without this column's sample."""
        p, i = self.problem, int(self.index[column])
        beta, _, b = p.solved_without(i, p.step(i)[0])
        if p.clock.over() is not None:
            return
        self.values[:, column], self.exact[column] = self.K @ (beta - p.beta) + (b - p.b), True


def _only_of_class(problem: LeftOutProblem) -> Vector:
    """The samples that are the only ones of their class with a weight."""
    if not problem.labels:
        return np.empty(0, np.intp)
    used = np.flatnonzero(problem.problem.weight > 0)
    sides = [used[problem.problem.y[used] * side > 0] for side in (1, -1)]
    return np.concatenate([side for side in sides if len(side) == 1] or [np.empty(0, np.intp)])


class _NuChanges(_Changes):
    """Changes of one function of a ν-machine: all samples change it, and its scale."""

    problem: LeftOutNuProblem

    def _by_formula(self, columns: Vector) -> None:
        p, index = self.problem, self.index[columns]
        beta, F = p.without_changes(index)
        defined = np.asarray(np.isfinite(beta).all(axis=0))
        for k in range(len(index)):
            if not defined[k]:
                # no threshold is determined: only the sample itself is left out
                before, i = p.published, int(index[k])
                self.values[:, columns[k]] = -self.K[:, i] * before.beta[i]
                continue
            left = p.left(int(index[k]))
            # a variable that meets its bound determines no threshold
            own, own_F = settled_at_bounds(left.qp, beta[:, k]), np.ascontiguousarray(F[:, k])
            found = survey(left.qp, own, own_F)
            rounding = FEASIBLE * max(1.0, float(np.abs(own).max(initial=0.0)))
            self.exact[columns[k]] = found.violation <= p.options.tol and found.infeasibility <= rounding
            self.values[:, columns[k]] = self._change(p.publish(left, own, own_F))
            self.undefined[columns[k]] |= p.has_no_margin(left, own, own_F)

    def refit(self, column: int) -> None:
        p, i = self.problem, int(self.index[column])
        left = p.left(i)
        start = p.beta.copy()
        start[p.variables(i)] = 0.0
        beta, F, _ = p.solved_without(i, start)
        if p.clock.over() is not None:
            return
        self.values[:, column], self.exact[column] = self._change(p.publish(left, beta, F)), True
        self.undefined[column] |= p.has_no_margin(left, beta, F)

    def _change(self, found: Published) -> Vector:
        before = self.problem.published
        return np.asarray(self.K @ (found.beta - before.beta) + (found.intercept - before.intercept))


def _changes(fitted: FittedProblem, whole: bool, options: Options, clock: Clock, at: _Rows) -> _Changes:
    if isinstance(fitted.problem.loss, NuHinge | NuInsensitive):
        return _NuChanges(LeftOutNuProblem(fitted, whole, options, clock), at)
    return _Changes(LeftOutProblem(fitted, whole, options, clock), at)


def _refit(found: list[_Changes], max_refits: int | None, clock: Clock, n_threads: int) -> None:
    """Solve the problems whose support vectors change their state, as far as allowed."""
    tasks = [(c, column) for c in found for column in np.flatnonzero(~c.exact).tolist()][:max_refits]

    def one(task: int) -> None:
        if clock.over() is None:
            changes, column = tasks[task]
            changes.refit(column)

    run_tasks(one, len(tasks), n_threads)
    for changes in found:
        changes.n_refits = changes.n_wanted - int(np.count_nonzero(~changes.exact))
