"""Classification with a machine for each pair of classes: training, decision values, labels, probabilities."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer._sklearn_compat import Hidden, StrOptions, available_if, deprecated, ovr_decision_function
from mercer.estimators.base import KernelMachine, norm
from mercer.estimators.machine import warn_user
from mercer.estimators.prediction import (
    FOLDS,
    SOLUTION_BYTES,
    check_memory,
    fit_sigmoids,
    pair_coefficients,
    pairwise_probabilities,
    votes,
)
from mercer.gram.data import Data
from mercer.kernels.features import Matrix, Vector
from mercer.losses import HardMargin, Loss
from mercer.problems.clock import Clock
from mercer.problems.solution import Solution
from mercer.svm.batch import OneVsOne, SolvePair, class_pairs
from mercer.svm.solve import solve_problem
from mercer.validation import check_weighted_classes, class_codes, class_weights


class BaseSVC(ClassifierMixin, KernelMachine):  # type: ignore[misc]
    """One-vs-one classification by LIBSVM's conventions: class i against class j > i, i being positive."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMachine._parameter_constraints,
        "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "random_state": ["random_state"],
    }

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        self.classes_, codes = class_codes(y)
        # each support vector has a coefficient for every other class
        check_memory(len(codes), len(self.classes_), SOLUTION_BYTES + 16 * len(codes) // len(self.classes_))
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes)
        if not hasattr(self, "nu"):  # LIBSVM calls nu infeasible then
            check_weighted_classes(codes, weight, self.class_weight_)
        if self.probability != "deprecated":
            name = type(self).__name__
            warn_user(
                "The `probability` parameter was deprecated in 1.9 and will be removed in version 1.11. "
                f"Use `CalibratedClassifierCV({name}(), ensemble=False)` instead of `{name}(probability=True)`",
                FutureWarning,
            )
        return codes.astype(np.float64)

    @abstractmethod
    def _loss(self) -> tuple[Loss, float]:
        """The loss and the factor C of its weights."""

    # ---- training --------------------------------------------------------------------------------------------

    def _problems(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> OneVsOne:
        """All pairs of classes."""
        codes, used = y.astype(np.intp), weight > 0
        members = [np.flatnonzero((codes == c) & used) for c in range(len(self.classes_))]
        loss, C = self._loss()
        # a hard margin weighs nothing
        factor = np.where(used, C, 0.0) if isinstance(loss, HardMargin) else C * weight * self.class_weight_[codes]
        return OneVsOne(
            data, members, loss, factor, bool(self.fit_intercept), self._options(), clock, self._pair_solver()
        )

    def _pair_solver(self) -> SolvePair:
        """What solves the problem of two classes."""
        return solve_problem

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        problems = self._problems(data, y, weight, clock)
        n_pairs = len(problems.pairs)
        warm = getattr(self, "_warm", None) if self.warm_start else None
        starts = [None] * n_pairs
        if warm is not None and len(warm) == n_pairs:
            starts = [None if start is None else self._unit * start for start in warm]
        if n_pairs == 1 and problems.solve_pair is solve_problem:
            self._probA = self._probB = np.empty(0)
            clock.to_attributes = lambda now: self._as_if(lambda machine: machine._publish_pairs(problems, [now]))
        calibrated = self.probability not in (False, "deprecated")
        with clock.share_of_time(1.0 / (1.0 + FOLDS) if calibrated else 1.0):
            solved = problems.solve_all(starts)
        clock.to_attributes = None  # what follows are other problems
        self._warm = [None if s is None else s.beta / self._unit for s in solved] if self.warm_start else None
        self._publish_pairs(problems, solved)
        self._probA = self._probB = np.empty(0)
        if calibrated:
            self._probA, self._probB = fit_sigmoids(problems, self.random_state)

    def _publish_pairs(self, problems: OneVsOne, solved: list[Solution | None]) -> None:
        """The coefficients of all pairs in LIBSVM's layout: a sample of class i takes part in n_classes - 1 pairs."""
        members, n_classes = problems.members, len(self.classes_)
        full = np.zeros((n_classes - 1, problems.data.n))
        intercept, norms, steps = np.zeros(len(solved)), np.zeros(len(solved)), np.zeros(len(solved), np.int32)
        for k, ((i, j), solution) in enumerate(zip(problems.pairs, solved, strict=True)):
            if solution is None:
                # a class without weight never wins
                intercept[k] = float(len(members[i]) > 0) - float(len(members[j]) > 0)
                continue
            published = problems.loss.publish(solution.beta, solution.thresholds)
            full[j - 1, members[i]] = published.beta[: len(members[i])]
            full[i, members[j]] = published.beta[len(members[i]) :]
            intercept[k], norms[k], steps[k] = published.intercept, norm(solution) / published.scale, solution.steps
        carries: Any = full.any(axis=0)
        support = [m[carries[m]] for m in members]
        order = np.concatenate(support)
        self._n_support = np.array([len(s) for s in support], dtype=np.int32)
        self.rkhs_norm_ = norms
        self._publish_support(problems.data, order)
        self._dual_coef_ = self._as_coef(full[:, order])
        self._intercept_ = intercept
        # of two classes the second is positive, against LIBSVM
        sign = -1.0 if n_classes == 2 else 1.0
        self.dual_coef_ = sign * self._dual_coef_
        self.intercept_ = sign * intercept + 0.0
        self.n_iter_ = steps
        self._publish_solutions([s for s in solved if s is not None])

    # ---- prediction ------------------------------------------------------------------------------------------

    def _coef_rows(self) -> Matrix:
        return pair_coefficients(super()._coef_rows(), np.concatenate([[0], np.cumsum(self._n_support)]))

    def _get_coef(self) -> Any:
        if self.dual_coef_.shape[0] == 1:
            return self.dual_coef_ @ self.support_vectors_
        ends = np.concatenate([[0], np.cumsum(self._n_support)])
        parts = [self._dual_coef_[:, a:b] @ self.support_vectors_[a:b] for a, b in pairwise(ends)]
        rows = [parts[i][[j - 1]] + parts[j][[i]] for i, j in class_pairs(len(self.classes_))]
        return sp.vstack(rows).tocsr() if sp.issparse(rows[0]) else np.vstack(rows)

    def decision_function(self, X: Any) -> Matrix:
        """Evaluate the decision function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        X : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_classes * (n_classes-1) / 2)
            One value per sample for two classes; else one per class (``decision_function_shape="ovr"``, a monotonic
            transformation of the pairwise values) or one per pair of classes (``"ovo"``).
        """
        values = self._values(X)
        if len(self.classes_) == 2:
            return -values[:, 0]
        if self.decision_function_shape == "ovr":
            return ovr_decision_function(values < 0, -values, len(self.classes_))
        return values

    def predict(self, X: Any) -> Vector:
        """The class label of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            The labels.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        n_classes = len(self.classes_)
        if self.break_ties and n_classes > 2:
            return self.classes_[np.argmax(self.decision_function(X), axis=1)]
        return self.classes_[votes(self._values(X, labels_only=True), n_classes).argmax(axis=1)]

    def _check_proba(self) -> bool:
        if self.probability == "deprecated" or not self.probability:
            name = type(self).__name__
            search = f"{name}CV, which also chooses the parameters, or " if name in ("SVC", "NuSVC") else ""
            raise AttributeError(
                f"predict_proba is not available when probability=False. Use {search}scikit-learn's "
                f"CalibratedClassifierCV({name}(), ensemble=False)."
            )
        return True

    @available_if(_check_proba)
    def predict_proba(self, X: Any) -> Matrix:
        """Probabilities of the classes, from a sigmoid of cross-validated decision values (Platt).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        T : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        values = self._values(X)
        if self._probA.size == 0:
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        return pairwise_probabilities(values, self._probA, self._probB, len(self.classes_))

    @available_if(_check_proba)
    def predict_log_proba(self, X: Any) -> Matrix:
        """Logarithms of ``predict_proba``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        T : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @deprecated(  # type: ignore[prop-decorator]
        "Attribute `probA_` was deprecated in version 1.9 and will be removed in "
        "1.11 as the `probability=True` option for SVC and NuSVC was deprecated "
        "and will be removed."
    )
    @property
    def probA_(self) -> Vector:
        """Slope of the sigmoid of each pair, learnt with ``probability=True``."""
        return self._probA

    @deprecated(  # type: ignore[prop-decorator]
        "Attribute `probB_` was deprecated in version 1.9 and will be removed in "
        "1.11 as the `probability=True` option for SVC and NuSVC was deprecated "
        "and will be removed."
    )
    @property
    def probB_(self) -> Vector:
        """Offset of the sigmoid of each pair, learnt with ``probability=True``."""
        return self._probB
