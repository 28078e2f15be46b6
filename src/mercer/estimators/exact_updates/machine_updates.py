"""Updates of SVC, SVR and OneClassSVM: one problem, or one for each pair of classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
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
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures
from mercer.losses.base import BoxQP, Loss, Published
from mercer.problems.clock import Clock
from mercer.problems.dual import DUST, settled_at_bounds, survey
from mercer.problems.solution import Options, Solution, Status, TracePoint, conclude
from mercer.svm.batch import OneVsOne, class_pairs
from mercer.svm.plan import over_features
from mercer.svm.verify import exact_product
from mercer.updates.free_set import MOST_FAILURES, FreeSet
from mercer.updates.kernel_columns import KernelColumns, kernel_columns
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

# if more samples than this come or leave at once, the exact solver starts from the present solution instead
MOST_AT_ONCE = 200
# the parameters on which the options of a solver depend
OPTIONS = attrgetter("tol", "max_iter", "time_limit", "cache_size", "shrinking", "n_jobs", "precision", "solver")
# an intercept that differs by less, absolutely or relatively, is the same
SAME_INTERCEPT = 1e-9
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
        """The entries of ``values`` for the samples of the problem."""
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
        self.features: Features | None = None
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
        """The options of the model's parameters; counting cores and memory would take a tenth of an update."""
        key = OPTIONS(model)
        if self._options is None or self._options[0] != key:
            self._options = key, model._options()
        return self._options[1]

    def prepared(self, kernel: Kernel) -> Features:
        """All samples, prepared in float64."""
        if self.features is None:
            self.features = kernel.prepare(self.samples, np.float64)
        return self.features

    def change_samples(self, change: Change, kernel: Kernel) -> None:
        """Set the samples after the change. Prepared vectors are kept: their norms take longer than an update."""
        before, known = self.samples, self.features
        self.samples, self.features = change.of_samples(before), None
        if not isinstance(known, VectorFeatures) or known.X is not before:
            return
        norms, (common, largest) = known.norms, known.norm_range
        new = norms[:0]
        if change.n_new:
            coming = kernel.prepare(change.samples, np.float64)  # raises for features that the kernel does not allow
            assert isinstance(coming, VectorFeatures)
            new = coming.norms
        widest = max(largest, float(new.max(initial=0.0)))
        features = VectorFeatures(self.samples, np.float64, change.of_vector(norms, new), (common, widest))
        if widest == largest:
            features.known_formula = known.known_formula
        self.features = features

    # ---- the change ------------------------------------------------------------------------------------------

    def samples_of(self, model: Any, X: Any) -> Any:
        """Samples as the model keeps them, validated."""
        return model._as_trained(model._validate(X, None, reset=False)[0])

    def change_of(self, model: Any, removed: Vector, X: Any, y: Any, sample_weight: Any) -> Change:
        """Validate new samples. Targets of a classifier are labels."""
        X = self.samples_of(model, X)
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
        self.features = features
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
        self.carried = self.many
        self.known: dict[tuple[int, int], Solution] = {}
        # kernel values: of samples that leave with β ≠ 0; between samples that come and some of the others
        self.gone, self.coming = np.empty((0, 0)), (np.empty(0, np.intp), np.empty((0, 0)))
        self.is_settled = False

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
        """Remove and add samples: β of new samples is 0, and F is updated. Sums of β may be violated afterwards."""
        state, change = self.state, self.change
        beta, F = state.beta, state.F
        assert beta is not None
        removed = change.removed
        if len(removed) and not self.many:
            carries = removed[beta[:, removed].any(axis=0)]
            self.carried = len(carries) > 0
            if self.carried:
                self.gone = self._columns_of(carries)
                F = F - beta[:, carries] @ self.gone
        state.change_samples(change, self.kernel)
        beta = change.of_vector(beta)
        self.data = Data(self.kernel, state.samples, len(weight), self.state.psd)
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
            if change.n_new:
                self._let_come(beta, F, new)
            if change.order is not None:
                state.columns.permute(change.order)
        self.touched = np.concatenate((self.touched, targets[new]))
        state.targets, state.weight, state.beta, state.F = targets, weight, beta, F

    def _let_come(self, beta: Matrix, F: Matrix, new: Vector) -> None:
        """Compute F of new samples, and their values in stored columns. Edits F.

        Both need only their kernel values with samples that have β ≠ 0 or a stored column.
        """
        order, columns = self.change.order, self.state.columns
        wanted: Any = beta.any(axis=0) if len(beta) > 1 else beta[0] != 0
        # the numbers of the samples with stored columns, after the change
        stored = columns.sample[: columns.count]
        stored = stored if order is None else np.argsort(order)[stored]
        wanted[stored] = True
        some = wanted.nonzero()[0]
        features = self.state.prepared(self.kernel)
        values = self.kernel.block(features.take(some), features.take(new))
        check_finite(values)
        self.data.evaluations.add(values.size)
        F[:, new] = beta[:, some] @ values
        columns.append(values[np.searchsorted(some, stored)])
        self.coming = some, values

    def _near(self, rows: Vector | None) -> Vector:
        """The sum of kernel values with samples that left with β ≠ 0, and with samples that came."""
        near = self.change.of_vector(self.gone.sum(axis=0)) if len(self.gone) else np.zeros(self.data.n)
        some, values = self.coming
        near[some] += values.sum(axis=1)
        return near if rows is None else near[rows]

    def _columns_of(self, index: Vector) -> Matrix:
        """K[index, :] before the change."""
        state = self.state
        if np.all(state.columns.has(index)):
            return state.columns.columns(index)
        return kernel_columns(self.kernel, state.prepared(self.kernel), index)

    def _compute(self, index: Vector) -> Matrix:
        """K[index, :] after the change."""
        self.data.evaluations.add(len(index) * self.data.n)
        return kernel_columns(self.kernel, self.state.prepared(self.kernel), index)

    # ---- problems --------------------------------------------------------------------------------------------

    def solve(self) -> None:
        """Solve the problems that have changed, and publish all."""
        state, model = self.state, self.model
        model.shape_fit_ = (state.n, *model.shape_fit_[1:])
        self.options = state.options_of(model)
        if len(getattr(model, "classes_", ())) > 2:
            self._solve_pairs()
        else:
            self._solve_one()
        model.kernel_evaluations_ = self.data.evaluations.count

    def _solve_one(self) -> None:
        """Regression, novelty detection, and two classes."""
        state, model = self.state, self.model
        is_classifier = hasattr(model, "classes_")
        loss, C = model._loss() if is_classifier else model._single_loss()
        y, factor, rows = state.targets, state.weight, None
        if is_classifier:
            if np.any(model.class_weight_ != 1.0):
                factor = factor * model.class_weight_[y.astype(np.intp)]
            y = 1.0 - 2.0 * y
        if not state.weight.all():
            rows = np.flatnonzero(state.weight > 0)
            y, factor = y[rows], factor[rows]
        statement = Statement(loss, rows, y, C * factor, bool(model.fit_intercept))
        part = self.data if rows is None else self.data.take(rows)

        def exactly(start: Vector | None) -> Solution:
            if not is_classifier:
                start = None if start is None else start / model._unit
                return model._run(part, loss, y, statement.weight, self.options, self.clock, start)
            pair, order = self._as_pair(statement)
            solution = pair._solve_pair(None, (0, 1), None if start is None else start[order])
            assert solution is not None
            return solution.reordered(np.argsort(order))

        solution = self._solved(0, statement, exactly)
        if self.is_settled and model.fit_status_ == 0:
            self._publish_same([solution], np.zeros(1, np.int32) if is_classifier else 0)
        elif is_classifier:
            pair, order = self._as_pair(statement)
            model._publish_pairs(pair, [solution.reordered(order)])
            model._warm = [solution.beta[order] / model._unit] if model.warm_start else None
        else:
            model._check_bounded(solution)
            model._publish_one(self.data, loss, np.arange(state.n) if rows is None else rows, solution)
            model._warm = solution.beta / model._unit if model.warm_start else None

    def _as_pair(self, statement: Statement) -> tuple[OneVsOne, Vector]:
        """Two classes as a pair of classes, and the order of its samples: the first class first."""
        loss, rows, y, weight, intercept = statement
        first, second = (y > 0).nonzero()[0], (y < 0).nonzero()[0]
        order, n_first = np.concatenate((first, second)), len(first)
        index, factor = (order, weight) if rows is None else (rows[order], np.zeros(self.state.n))
        if rows is not None:
            factor[rows] = weight
        members = index[:n_first], index[n_first:]
        solver = self.model._pair_solver()
        return OneVsOne(self.data, members, loss, factor, intercept, self.options, self.clock, solver), order

    def _publish_same(self, solutions: list[Solution], steps: Any) -> None:
        """Publish β that have not changed: support vectors have other numbers, and there are new certificates."""
        model, change, n = self.model, self.change, self.state.n
        if change.order is None:  # else the samples that stay have their old numbers
            model.support_ = model.support_ - np.searchsorted(change.removed, model.support_).astype(np.int32)
        model._support = replace(model._support, support=model.support_, n_train=n)
        model._publish_solutions(solutions)
        model.n_iter_ = steps
        if model.warm_start:
            model._warm = None

    def _solve_pairs(self) -> None:
        state, model = self.state, self.model
        problems: OneVsOne = model._problems(self.data, state.targets, state.weight, self.clock, self.options)
        assert state.beta is not None
        found: list[Solution | None] = []
        # parameters may have been changed, and balanced weights of all classes change
        parameters = (model.C, model.loss, model.fit_intercept, model.tol, *model.class_weight_.tolist())
        touched = set(self.touched.astype(np.intp).tolist()) if parameters == state.solved_with else None
        state.solved_with = parameters
        used = state.weight > 0
        members = [(state.targets == c) & used for c in range(len(model.classes_))]
        is_same = True
        for p, (i, j) in enumerate(problems.pairs):
            if len(problems.members[i]) == 0 or len(problems.members[j]) == 0:
                found.append(None)
                continue
            known = self.known.get((i, j))
            is_done = known is not None and known.status is Status.CONVERGED
            if is_done and touched is not None and i not in touched and j not in touched:
                found.append(known)
                continue
            rows = (members[i] | members[j]).nonzero()[0]
            y = np.where(members[i][rows], 1.0, -1.0)
            statement = Statement(problems.loss, rows, y, problems.factor[rows], problems.intercept)

            def exactly(start: Vector | None, pair: tuple[int, int] = (i, j), rows: Vector = rows) -> Solution:
                back = np.searchsorted(rows, problems.samples(*pair)[0])
                solution = problems._solve_pair(None, pair, None if start is None else start[back])
                assert solution is not None
                return solution.reordered(np.argsort(back))

            self.is_settled = False
            found.append(self._solved(p, statement, exactly, known is None))
            is_same = is_same and self.is_settled
        if is_same and model.fit_status_ == 0:
            steps = np.array([0 if s is None else s.steps for s in found], np.int32)
            self._publish_same([s for s in found if s is not None], steps)
            return
        for p, (solution, pair) in enumerate(zip(found, problems.pairs, strict=True)):
            if solution is not None:
                index, _ = problems.samples(*pair)
                found[p] = replace(solution, beta=state.beta[p, index], F=state.F[p, index])
        model._publish_pairs(problems, found)
        model._warm = [None if s is None else s.beta / model._unit for s in found] if model.warm_start else None

    def _solved(
        self, p: int, statement: Statement, exactly: Callable[[Vector | None], Solution], is_new: bool = False
    ) -> Solution:
        """Solve problem p from its present β. ``exactly`` is the exact solver, for a problem that has changed a lot."""
        state, (loss, rows, y, weight, intercept) = self.state, statement
        assert state.beta is not None
        beta, F = statement.of(state.beta[p]), statement.of(state.F[p])
        qp = loss.box_qp(y, weight, intercept or hasattr(loss, "nu"))
        problem = Problem(qp, rows, beta, F)
        before, ended = beta.copy(), None
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
            at_bounds = settled_at_bounds(qp, beta, DUST)
            settled = at_bounds is not beta
            if settled:
                beta[:] = at_bounds
            seen = survey(qp, beta, F) if settled else ended.seen
            b = seen.thresholds
            if ended.status is not Status.CONVERGED:
                # far from the optimum free variables say little about b: minimise the loss over b
                b = loss.best_thresholds(y, F, weight)[: qp.n_groups]
            # the sum of a one-class machine changes with the number of samples: that may move β without a step
            moved = ended.steps > 0 or self.carried or not np.array_equal(beta, before)
            self.is_settled = not moved and self._has_published(p, loss.publish(beta, b))
            primal = loss.primal(seen.squared_norm, y, F, weight, b, qp.sums)
            largest = float(np.abs(beta).max())
            proof = conclude(seen, primal, b, qp.sums, largest, self.data.psd, loss.name)
            point = TracePoint(self.clock.seconds, ended.steps, proof.kkt_violation, proof.dual, len(beta))
            solution = Solution(beta, F, b, ended.status, ended.steps, self.clock.seconds, proof, [point])
        if beta.base is not state.beta:  # else they were edited in place
            at: Any = slice(None) if rows is None else rows
            state.beta[p, at], state.F[p, at] = beta, F
        return solution

    def _has_published(self, p: int, found: Published) -> bool:
        """Whether the published intercept of problem p is the one that was found."""
        known = self.model._intercept_
        return p < len(known) and bool(abs(known[p] - found.intercept) <= SAME_INTERCEPT * max(1.0, abs(known[p])))

    def _product(self, part: Data, qp: BoxQP, beta: Vector) -> Vector:
        """F = Kβ in float64; for a linear kernel X(X'β)."""
        if not isinstance(self.kernel, Linear):
            return exact_product(part, qp, beta, self.options)
        X = part.own_samples().astype(np.float64, copy=False)
        product: Vector = X @ (X.T @ beta)
        return product

    def _descend(self, p: int, problem: Problem, rounds: int) -> Ended | None:
        """Descend; None if β has left its box, as after a change of C, or does not fit into the budget."""
        qp, rows, beta, F = problem
        columns = Columns(self.state.columns, self._compute, self.options.budget)
        free = self.state.free.get(p)
        if free is None:
            free = self.state.free[p] = FreeSet()
        with self.clock:
            if free.failures < MOST_FAILURES:
                ended = follow(problem, columns, self.options, self.clock, free, rounds)
                if ended.status is not None:
                    return ended
                seen = ended.seen
            else:
                seen = survey(qp, beta, F)
            if seen.outside > 0:
                return None
            if np.any(np.abs(seen.missing) > SUM_ROUNDING * np.abs(beta).sum()):
                before = beta.copy()
                moved = restore_sums(qp, beta, self._near(rows))
                samples = moved if rows is None else rows[moved]
                if not columns.ensure(samples):
                    return None
                add_columns(problem, samples, (beta - before)[moved], columns)
                seen = survey(qp, beta, F)
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
