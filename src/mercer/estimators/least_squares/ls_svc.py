"""LSSVC: the least-squares support vector machine, a ridge regression of labels ±1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mercer._sklearn_compat import StrOptions
from mercer.estimators.base import keep_parameters
from mercer.estimators.least_squares.one_vs_rest import OneVsRestMixin, label_columns, predicted_codes
from mercer.estimators.loss_minimiser import LossMinimiser
from mercer.gram.operator import Data
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Solution, Status
from mercer.ridge.press import left_out_values
from mercer.ridge.solver import solve
from mercer.validation import check_weighted_classes, class_codes, class_weights


class LSSVC(OneVsRestMixin, LossMinimiser):
    """Least-squares SVM: minimise ½|f|² + ½ Σ Cᵢ (yᵢ − f(xᵢ) − b)² over labels y = ±1, one class against the rest.

    The optimum is the solution of a linear system, (K + 1/C) β + b = y with Σβ = 0 (Suykens & Vandewalle, Neural
    Processing Letters 9, 1999). All classes share one factor of its matrix. All samples are support vectors: prediction
    takes longer than with ``SVC``, and samples far on their own side are pulled back to ±1.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss; the γ of Suykens, 1/λ of ``KernelRidge``. Finite.
    kernel, degree, gamma, coef0 : as in ``SVC``.
    fit_intercept : bool, default=True
        Whether there is a b, which is not penalised.
    class_weight : dict or "balanced", default=None
        Factors of C for the samples of each class, the same in the problems of all classes.
    leave_one_out : bool, default=False
        Whether to compute the decision values of each sample by the model without it, exactly, from the diagonal of the
        inverse of the matrix. This takes the time of about two more fits, not of n.
    solver, tol, max_iter, cache_size, precision : as in ``KernelRidge``.
    n_jobs, time_limit, verbose : as in ``SVC``.

    Attributes
    ----------
    certificate_, certificates_ : Certificate and list of Certificate
        Primal value, dual value and gap of the objective above: for all classes together, and for each.
    dual_coef_ : ndarray of shape (1, n_support) or (n_classes, n_support)
        The coefficients β. For two classes those of the function that is positive for ``classes_[1]``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts b.
    left_out_decision_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        With ``leave_one_out``: the decision values of each sample by the model without it. NaN for samples without a
        weight, and for all if time was over or the kernel matrix is not positive semidefinite.
    left_out_score_ : float
        With ``leave_one_out``: the (weighted) share of samples whose class the model without them predicts.
    support_, support_vectors_, rkhs_norm_, n_iter_, classes_, class_weight_, coef_, function_, trace_,
    kernel_evaluations_, fit_status_, shape_fit_, n_features_in_, feature_names_in_ : as in
        ``KernelLogisticRegression``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import LSSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LSSVC(C=10.0, leave_one_out=True).fit(X, y)
    >>> round(model.left_out_score_, 2)
    0.98
    >>> model.certificate_.relative_gap < 1e-9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{key: value for key, value in LossMinimiser._parameter_constraints.items() if key != "warm_start"},
        "leave_one_out": ["boolean"],
        "solver": [StrOptions({"auto", "cholesky", "cg"})],
        "precision": [StrOptions({"auto", "float32", "float64"})],
    }
    _measure: ClassVar[str] = "residual"

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        leave_one_out: bool = False,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: Any = "auto",
        precision: str = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    def _options(self) -> Options:
        return replace(super()._options(), precision=self.precision)

    # ---- fit -------------------------------------------------------------------------------------------------

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        self.classes_, codes = class_codes(y)
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes, weight)
        check_weighted_classes(codes, weight, self.class_weight_)
        return codes.astype(np.float64)

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        codes, options, fits = y.astype(np.intp), self._options(), bool(self.fit_intercept)
        weight = weight * self.class_weight_[codes]
        used = np.flatnonzero(weight > 0)
        part = data if len(used) == data.n else data.take(used)
        Y, C = label_columns(codes[used], len(self.classes_)), float(self.C) * weight[used]
        found = solve(part, Y, C, np.ones(Y.shape[1]), fits, options, clock, self.solver)
        found = [replace(solution, status=as_certified(solution, options.tol)) for solution in found]
        beta, F = (np.column_stack([getattr(s, name) for s in found]) for name in ("beta", "F"))
        intercept = np.array([float(s.thresholds.sum()) for s in found])
        several = f"{len(found)} classes against the rest" if len(found) > 1 else None
        self._publish_expansion(data, used, found, beta, F, intercept, several)
        for name in ("left_out_decision_", "left_out_score_"):
            self.__dict__.pop(name, None)
        if self.leave_one_out:
            left_out = left_out_values(part, Y, beta, C, 1.0, fits, options, clock)
            self._publish_left_out(data.n, used, codes, weight, left_out)

    def _publish_left_out(self, n: int, used: Vector, codes: Vector, weight: Vector, values: Matrix | None) -> None:
        """Publish decision values and score of the models without each sample; ``values`` is None if there are none."""
        all_values = np.full((n, 1 if len(self.classes_) == 2 else len(self.classes_)), np.nan)
        self.left_out_score_ = np.nan
        if values is not None:
            all_values[used] = values
            right = predicted_codes(values) == codes[used]
            self.left_out_score_ = float(np.average(right, weights=weight[used]))
        self.left_out_decision_ = all_values[:, 0] if all_values.shape[1] == 1 else all_values


def as_certified(solution: Solution, tol: float) -> Status:
    """How a run ended, as its certificate tells: a singular matrix may give the optimum, a factor may round it away."""
    proof = solution.certificate
    reached = proof.valid and proof.relative_gap <= tol
    if solution.status is Status.SINGULAR and reached:
        return Status.CONVERGED
    return Status.STALLED if solution.status is Status.CONVERGED and not reached else solution.status
