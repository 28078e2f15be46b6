"""Updates of SVC, SVR and OneClassSVM: one problem, or one for each pair of classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import column_or_1d

from mercer._sklearn_compat import num_samples
from mercer.estimators.exact_updates.updates_mixin import Change, new_weights
from mercer.estimators.prediction import pair_coefficients
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data, check_finite, product
from mercer.kernels import Kernel, Linear
from mercer.kernels.features import Features, Matrix, Vector, take_samples
from mercer.losses.base import BoxQP, Loss
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem, survey
from mercer.problems.solution import Options, Solution, Status, TracePoint, conclude
from mercer.svm.batch import OneVsOne, class_pairs
from mercer.svm.plan import over_features
from mercer.svm.verify import exact_product
from mercer.updates.free_set import MOST_FAILURES, FreeSet
from mercer.updates.kernel_columns import KernelColumns
from mercer.updates.warm_descent import (
    ROUNDS,
    SUM_ROUNDING,
    Columns,
    Ended,
    Problem,
    add_columns,
    descend,
    follow,
    restore_sums,
)
from mercer.validation import check_weighted_classes, class_weights, find_classes, real_targets

# if so many samples come or leave at once, the exact solver is begun at the present solution instead
MOST_AT_ONCE = 200
# the parameters on which the options of a solver depend
OPTIONS = ("tol", "max_iter", "time_limit", "cache_size", "shrinking", "n_jobs", "precision", "solver")
# most rounds of a problem that can be solved over its features instead
FEW_ROUNDS = 3


class Statement(NamedTuple):
    """One problem of a machine: targets and weights of the samples ``rows`` (None for all)."""

    loss: Loss
    rows: Vector | None
    y: Vector
    weight: Vector
    intercept: bool

    def of(self, values: Vector) -> Vector:
        """The numbers of the samples of the problem."""
        return values if self.rows is None else values[self.rows]


class MachineUpdates:
    """The training samples of a kernel machine with their targets and weights, and the solution of its problems.

    ``targets`` are class numbers of a classifier. The solution (``beta`` and F = Kβ, a row for each problem, and stored
    columns of K) is not part of pickles and files: it is computed at the next update.
    """

    def __init__(self, samples: Any, targets: Vector, weight: Vector, psd: bool) -> None:
        self.samples = samples
        self.targets = targets
        self.weight = weight
        self.psd = psd
        self.version = 0
        self._begin()

    def _begin(self) -> None:
        self.beta: Matrix | None = None
        self.F = np.empty((0, 0))
        self.columns = KernelColumns(0)
        self.free: dict[int, FreeSet] = {}
        self.solved_with: tuple[Any, ...] = ()
        self._options: tuple[tuple[Any, ...], Options] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("samples", "targets", "weight", "psd", "version")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._begin()
        vars(self).update(state)

    @property
    def n(self) -> int:
        """The number of training samples."""
        return len(self.weight)

    def options_of(self, model: Any) -> Options:
        """The options of the model's parameters; an update is too short to find out about cores and memory each time."""
        key = tuple(getattr(model, name) for name in OPTIONS)
        if self._options is None or self._options[0] != key:
            self._options = key, model._options()
        return self._options[1]

    # ---- the change ------------------------------------------------------------------------------------------

    def change_of(self, model: Any, removed: Vector, X: Any, y: Any, sample_weight: Any) -> Change:
        """Validate new samples. Targets of a classifier are labels."""
        X = model._as_trained(model._validate(X, None, reset=False)[0])
        n = num_samples(X)
        return Change(removed, X, new_targets(model, y, n), new_weights(sample_weight, n, X))

    def apply(self, model: Any, change: Change) -> None:
        """Solve the changed problem and publish it; after an error everything is as it was."""
        classes, targets = self._targets_after(model, change)
        weight = change.of_vector(self.weight, change.weight)
        if not np.any(weight > 0):
            raise InvalidInputError("No sample with a positive weight would be left: give at least one a weight.")
        if self.beta is None:
            self._restore(model)
        before, attributes = dict(vars(self)), dict(vars(model))
        try:
            run = Run(self, model, change, Clock(model.time_limit))
            if classes is not None:
                run.change_classes(classes, targets, weight)
            run.move(targets, weight)
            run.solve()
        except BaseException:
            vars(self).update(before)
            self.columns, self.free = KernelColumns(self.n), {}
            vars(model).clear()
            vars(model).update(attributes)
            raise
        self.version += 1  # a copy that shares these samples has the old version
        model._updates_version = self.version
        model._warn_unfinished()

    def _targets_after(self, model: Any, change: Change) -> tuple[Vector | None, Vector]:
        """(the classes of a classifier, the targets of all samples after the change)."""
        old = getattr(model, "classes_", None)
        if old is None:
            return None, change.of_vector(self.targets, change.targets)
        classes, codes, own = old, None, self.targets
        if change.n_new:
            known = np.minimum(np.searchsorted(old, change.targets), len(old) - 1)
            codes = known.astype(np.float64)
            if np.any(old[known] != change.targets):
                classes = find_classes(np.concatenate([old, change.targets]))[0]
                codes = np.searchsorted(classes, change.targets).astype(np.float64)
                own = np.searchsorted(classes, old)[own.astype(np.intp)].astype(np.float64)
        targets = change.of_vector(own, codes)
        for c in sorted(set(own[change.removed].tolist())):
            if not np.any(targets == c):
                raise InvalidInputError(
                    f"The update would leave no sample of the class {classes[[int(c)]].tolist()[0]!r}. Keep one of "
                    "them, or fit a model without this class."
                )
        return classes, targets

    def _restore(self, model: Any) -> None:
        """β from the published coefficients and F = Kβ in float64, for each problem at all samples."""
        coef, support = model._dual_coef_, model.support_.astype(np.intp)
        coef = coef.toarray() if sp.issparse(coef) else coef
        if hasattr(model, "classes_"):
            coef = pair_coefficients(coef, np.concatenate([[0], np.cumsum(model._n_support)]))
        kernel: Kernel = model._kernel
        beta = np.zeros((len(coef), self.n))
        beta[:, support] = coef
        features = kernel.prepare(self.samples, np.float64)
        self.F = np.ascontiguousarray(product(kernel, features, features.take(support), coef.T).T)
        self.columns = KernelColumns(self.n)
        self.beta = beta  # last: Ctrl-C may have ended the above


class Run:
    """One update of a machine."""

    def __init__(self, state: MachineUpdates, model: Any, change: Change, clock: Clock) -> None:
        self.state, self.model, self.change, self.clock = state, model, change, clock
        self.kernel: Kernel = model._kernel
        self.options = Options()
        self.many = len(change.removed) + change.n_new > MOST_AT_ONCE
        self.touched: Vector = state.targets[change.removed]
        self.near: Vector | None = None
        self.carried = self.many
        self.known: dict[tuple[int, int], Solution] = {}

    def change_classes(self, classes: Vector, targets: Vector, weight: Vector) -> None:
        """Set the classes and their weights; pairs with a new class begin at β = 0."""
        state, model = self.state, self.model
        old = model.classes_
        plain = model.class_weight is None and np.all(model.class_weight_ == 1.0) and weight.all()
        if len(classes) > len(old) or not plain:
            codes = targets.astype(np.intp)
            model.class_weight_ = class_weights(model.class_weight, classes, codes)
            check_weighted_classes(codes, weight, model.class_weight_)
        if len(classes) == 2:
            return
        kept = np.searchsorted(classes, old)
        self._remember_pairs(kept)
        if len(classes) > len(old):
            assert state.beta is not None
            pairs = class_pairs(len(classes))
            beta, F = np.zeros((2, len(pairs), state.n))
            for p, (i, j) in enumerate(class_pairs(len(old))):
                at = pairs.index((int(kept[i]), int(kept[j])))
                beta[at], F[at] = state.beta[p], state.F[p]
            state.beta, state.F, state.targets = beta, F, kept[state.targets.astype(np.intp)].astype(np.float64)
            state.free = {}
            self.touched = state.targets[self.change.removed]
        model.classes_ = classes

    def _remember_pairs(self, kept: Vector) -> None:
        """The published solutions of pairs, without β and F; ``kept`` are the new numbers of the old classes."""
        state, model = self.state, self.model
        used = np.bincount(state.targets.astype(np.intp), state.weight > 0, len(kept)) > 0
        proofs = zip(model.certificates_, model._statuses, strict=True)
        none = np.empty(0)
        for p, (i, j) in enumerate(class_pairs(len(kept))):
            if used[i] and used[j]:
                proof, status = next(proofs)
                b = model._intercept_[p : p + 1] if model.fit_intercept else none
                steps = int(model.n_iter_[p])
                self.known[int(kept[i]), int(kept[j])] = Solution(none, none, b, status, steps, 0.0, proof)

    def move(self, targets: Vector, weight: Vector) -> None:
        """Let samples leave and come: β of new samples is 0, F follows. Sums of β may be violated afterwards."""
        state, change = self.state, self.change
        beta, F = state.beta, state.F
        assert beta is not None
        removed = change.removed
        gone = np.zeros((0, state.n))
        if len(removed) and not self.many:
            carries = removed[beta[:, removed].any(axis=0)]
            self.carried = len(carries) > 0
            if self.carried:
                gone = self._columns_of(carries)
                F = F - beta[:, carries] @ gone
        samples = change.of_samples(state.samples)
        beta = change.of_vector(beta)
        self.data = Data(self.kernel, samples, len(weight), self.state.psd)
        for free in state.free.values():
            free.samples = change.of_numbers(free.samples)
        new = np.arange(len(weight) - change.n_new, len(weight))
        if change.order is not None:
            new = np.argsort(change.order)[len(weight) - change.n_new :]
        F = change.of_vector(F)
        if self.many:
            state.columns, state.free = KernelColumns(len(weight)), {}
        else:
            state.columns.remove(removed)
            self.near = change.of_vector(gone.sum(axis=0)) if len(gone) else None
            if change.n_new:
                self._let_come(beta, F, new)
            if change.order is not None:
                state.columns.permute(change.order)
        self.touched = np.append(self.touched, targets[new])
        state.samples, state.targets, state.weight, state.beta, state.F = samples, targets, weight, beta, F

    def _let_come(self, beta: Matrix, F: Matrix, new: Vector) -> None:
        """Compute F of new samples, and their values in stored columns. Edits F.

        Both need their kernel values with samples that have weight or a stored column only.
        """
        order, columns = self.change.order, self.state.columns
        wanted: Any = beta.any(axis=0)
        # where the samples that stay are by now
        kept = np.arange(columns.n) if order is None else np.argsort(order)[: columns.n]
        stored = kept[columns.sample[: columns.count]]
        wanted[stored] = True
        some = np.flatnonzero(wanted)
        a, b = (self.kernel.prepare(take_samples(self.data.samples, index), np.float64) for index in (some, new))
        coming = self.kernel.block(a, b)
        check_finite(coming)
        self.data.evaluations.add(coming.size)
        F[:, new] = beta[:, some] @ coming
        columns.append(coming[np.searchsorted(some, stored)])
        if self.near is None:
            self.near = np.zeros(self.data.n)
        self.near[some] += coming.sum(axis=1)

    def _columns_of(self, index: Vector) -> Matrix:
        """K[index, :] before the change."""
        state = self.state
        if np.all(state.columns.has(index)):
            return state.columns.columns(index)
        features = self.kernel.prepare(state.samples, np.float64)
        return self.kernel.block(features, features.take(index)).T

    @cached_property
    def features(self) -> Features:
        """All samples after the change, prepared in float64."""
        return self.kernel.prepare(self.data.samples, np.float64)

    # ---- problems --------------------------------------------------------------------------------------------

    def solve(self) -> None:
        """Solve the problems that have changed, and publish all."""
        state, model = self.state, self.model
        model.shape_fit_ = (state.n, *model.shape_fit_[1:])
        model.kernel_evaluations_ = self.data.evaluations.count
        if self._is_settled():
            return
        if hasattr(model, "classes_"):
            self._solve_pairs()
        else:
            loss, C = model._single_loss()
            self.options = state.options_of(model)
            used = np.flatnonzero(state.weight > 0)
            rows = None if len(used) == state.n else used
            factor = np.multiply(C, state.weight, out=np.zeros(state.n), where=state.weight > 0)
            y = state.targets
            if rows is not None:
                y, factor = y[rows], factor[rows]
            statement = Statement(loss, rows, y, factor, bool(model.fit_intercept))
            part = self.data if rows is None else self.data.take(rows)

            def exactly(start: Vector | None) -> Solution:
                start = None if start is None else start / model._unit
                return model._run(part, loss, y, factor, self.options, self.clock, start)

            solution = self._solved(0, statement, exactly)
            model._check_bounded(solution)
            model._publish_one(self.data, loss, used, solution)
            model._warm = solution.beta / model._unit if model.warm_start else None
        model.kernel_evaluations_ = self.data.evaluations.count

    def _is_settled(self) -> bool:
        """Whether the present β is optimal without a change, as it is if no support vector has left and none came.

        Then the model stays as it is, with other numbers of its support vectors and a new certificate.
        """
        state, model, change = self.state, self.model, self.change
        if self.carried or len(model._statuses) != 1 or model.fit_status_ or not state.psd or not state.weight.all():
            return False
        is_classifier = hasattr(model, "classes_")
        loss, C = model._loss() if is_classifier else model._single_loss()
        if hasattr(loss, "nu") or not np.isfinite(C):
            return False
        y, factor = state.targets, C * state.weight
        if is_classifier:
            if len(model.classes_) > 2 or model.class_weight == "balanced":
                return False
            if model.class_weight is not None:
                factor = factor * model.class_weight_[y.astype(np.intp)]
            y = 1.0 - 2.0 * y
        assert state.beta is not None
        beta, F, qp = state.beta[0], state.F[0], loss.box_qp(y, factor, bool(model.fit_intercept))
        seen = survey(qp, beta, F)
        if seen.outside > 0 or not seen.violation <= float(model.tol) or (qp.n_groups and seen.n_free[0] == 0):
            return False
        if change.order is None:  # else the samples that stay have their old numbers
            support = model.support_ - np.searchsorted(change.removed, model.support_).astype(np.int32)
            model.support_ = support
        b = seen.thresholds
        model._support = replace(model._support, support=model.support_, n_train=state.n)
        primal = loss.primal(seen.squared_norm, y, F, factor, b, qp.sums)
        proof = conclude(seen, primal, b, qp.sums, float(np.abs(beta).max()), state.psd, loss.name)
        seconds = self.clock.seconds
        point = TracePoint(seconds, 0, proof.kkt_violation, proof.dual, state.n)
        model._publish_solutions([Solution(beta, F, b, Status.CONVERGED, 0, seconds, proof, [point])])
        model.n_iter_ = np.zeros(1, np.int32) if is_classifier else 0
        if model.warm_start:
            model._warm = None
        return True

    def _solve_pairs(self) -> None:
        state, model = self.state, self.model
        self.options = state.options_of(model)
        problems: OneVsOne = model._problems(self.data, state.targets, state.weight, self.clock, self.options)
        assert state.beta is not None
        found: list[Solution | None] = []
        # parameters may have been changed, and balanced weights of all classes change
        parameters = (model.C, model.loss, model.fit_intercept, model.tol, *model.class_weight_.tolist())
        touched = set(self.touched.astype(np.intp).tolist()) if parameters == state.solved_with else None
        state.solved_with = parameters
        for p, (i, j) in enumerate(problems.pairs):
            index, _ = problems.samples(i, j)
            if len(problems.members[i]) == 0 or len(problems.members[j]) == 0:
                found.append(None)
                continue
            known = self.known.get((i, j))
            if known is not None and touched is not None and i not in touched and j not in touched:
                found.append(replace(known, beta=state.beta[p, index], F=state.F[p, index]))
                continue
            rows = None if len(index) == state.n else np.sort(index)
            codes = state.targets if rows is None else state.targets[rows]
            factor = problems.factor if rows is None else problems.factor[rows]
            statement = Statement(problems.loss, rows, np.where(codes == i, 1.0, -1.0), factor, problems.intercept)
            back = index if rows is None else np.searchsorted(rows, index)

            def exactly(start: Vector | None, pair: tuple[int, int] = (i, j), back: Vector = back) -> Solution:
                solution = problems._solve_pair(None, pair, None if start is None else start[back])
                assert solution is not None
                return solution.taken(np.argsort(back))

            is_new = known is None and len(problems.pairs) > 1
            found.append(self._solved(p, statement, exactly, is_new).taken(back))
        model._publish_pairs(problems, found)
        model._warm = [None if s is None else s.beta / model._unit for s in found] if model.warm_start else None

    def _solved(
        self, p: int, statement: Statement, exactly: Callable[[Vector | None], Solution], is_new: bool = False
    ) -> Solution:
        """Solve problem p from its present β. ``exactly`` is the exact solver, for what has changed a lot."""
        state, (loss, rows, y, weight, intercept) = self.state, statement
        assert state.beta is not None
        qp = DualProblem(None, loss, y, weight, intercept or hasattr(loss, "nu")).qp
        beta, F = statement.of(state.beta[p]), statement.of(state.F[p])
        problem = Problem(qp, rows, beta, F)
        ended = None
        # a linear kernel is solved over its features in a few milliseconds
        linear = over_features(self.data, len(beta), qp, self.options)
        if not (self.many or is_new or qp.has_open_box or not self.data.psd):
            ended = self._descend(p, problem, FEW_ROUNDS if linear else ROUNDS)
        if ended is None or ended.status is None:
            with self.clock:
                solution = exactly(None if linear else beta)
            part = self.data if rows is None else self.data.take(rows)
            beta, F = solution.beta, self._product(part, qp, solution.beta)
        else:
            b = ended.seen.thresholds
            if ended.status is not Status.CONVERGED:
                # far from the optimum free variables say little about b: minimise the loss over b
                b = loss.best_thresholds(y, F, weight)[: qp.n_groups]
            primal = loss.primal(ended.seen.squared_norm, y, F, weight, b, qp.sums)
            largest = float(np.abs(beta).max())
            proof = conclude(ended.seen, primal, b, qp.sums, largest, self.data.psd, loss.name)
            point = TracePoint(self.clock.seconds, ended.steps, proof.kkt_violation, proof.dual, len(beta))
            solution = Solution(beta, F, b, ended.status, ended.steps, self.clock.seconds, proof, [point])
        if rows is not None or solution.beta is not beta:
            at: Any = slice(None) if rows is None else rows
            state.beta[p, at], state.F[p, at] = beta, F
        return solution

    def _product(self, part: Data, qp: BoxQP, beta: Vector) -> Vector:
        """F = Kβ in float64; for a linear kernel X(X'β)."""
        if not isinstance(self.kernel, Linear):
            return exact_product(part, qp, beta, self.options)
        X = part.own_samples().astype(np.float64, copy=False)
        product: Vector = X @ (X.T @ beta)
        return product

    def _descend(self, p, problem: Problem, rounds: int) -> Ended | None:
        """Correct the sums and descend; None if β has left its box, as after a change of C."""
        qp, rows, beta, F = problem
        seen = survey(qp, beta, F)
        if seen.outside > 0:
            return None
        columns = Columns(self.data, lambda: self.features, self.state.columns, self.options.budget)
        free = self.state.free.setdefault(p, FreeSet())
        if free.failures < MOST_FAILURES:
            with self.clock:
                ended = follow(problem, seen, columns, self.options, self.clock, free, rounds)
            if ended.status is not None:
                return ended
            seen = ended.seen
        if np.any(np.abs(seen.missing) > SUM_ROUNDING * np.abs(beta).sum()):
            near = self.near if rows is None or self.near is None else self.near[rows]
            before = beta.copy()
            moved = restore_sums(qp, beta, near)
            samples = moved if rows is None else rows[moved]
            if not columns.ensure(samples):
                return None
            add_columns(problem, samples, (beta - before)[moved], columns)
            seen = survey(qp, beta, F)
        if seen.violation <= self.options.tol:
            return Ended(Status.CONVERGED, 0, seen)
        with self.clock:
            return descend(problem, seen, columns, self.options, self.clock, rounds)


def new_targets(model: Any, y: Any, n: int) -> Vector:
    """The labels of new samples, or their targets as float64."""
    if not getattr(model, "_uses_targets", True):
        return np.ones(n)
    if y is None:
        raise InvalidInputError(f"{type(model).__name__} requires y to be passed, but the target y is None.")
    if type(y) is not np.ndarray or y.ndim != 1:
        y = column_or_1d(y, warn=True)
    if len(y) != n:
        raise InvalidInputError(f"X has {n} samples, but y has {len(y)}: give one target for each sample.")
    if not hasattr(model, "classes_"):
        return real_targets(y)
    known = model.classes_
    if (y.dtype.kind in "biuf") != (known.dtype.kind in "biuf"):
        raise InvalidInputError(
            f"y has labels of type {y.dtype}, but the model was fitted to labels of type {known.dtype}: give labels of "
            "the same kind."
        )
    if y.dtype.kind not in "biuU":
        find_classes(y)  # raises for labels that are no classes, such as NaN
    return y
