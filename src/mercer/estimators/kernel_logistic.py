"""KernelLogisticRegression: probabilities of classes by regularised maximum likelihood in the space of a kernel."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit, log_softmax

from mercer.erm.kernel_matrix import check_room, matrix_in_time, stored_gram
from mercer.erm.logistic import logistic_sum, solve_logistic
from mercer.erm.sums import probabilities
from mercer.estimators.base import keep_parameters
from mercer.estimators.loss_minimiser import LossMinimiser
from mercer.estimators.score_mixins import LabelsMixin
from mercer.gram.operator import Data
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Solution
from mercer.validation import check_weighted_classes, class_codes, class_weights


class KernelLogisticRegression(LabelsMixin, LossMinimiser):
    """Logistic regression with a kernel: ½|f|² + Σ Cᵢ log(1 + exp(−yᵢ(f(xᵢ) + b))), by softmax for more classes.

    The model is P(y = 1 | x) = 1 / (1 + exp(−f(x) − b)): the further a sample is on one side, the more confident is the
    model ([CS229] 6.1). With more classes there is a function for each, P(c | x) is proportional to exp(f_c(x) + b_c),
    and the penalty is ½ Σ_c |f_c|² (multinomial, not one class against the rest). With ``kernel="linear"`` it is
    scikit-learn's ``LogisticRegression``, whose parameters keep their meaning.

    Newton's method finds the optimum in a few steps. It stores the kernel matrix; for more samples than fit into memory
    use ``make_pipeline(Nystroem(), LogisticRegression())``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss: the inverse of the strength of regularisation. Finite.
    kernel, degree, gamma, coef0 : as in ``SVC``.
    fit_intercept : bool, default=True
        Whether there is a b, which is not penalised.
    class_weight : dict or "balanced", default=None
        Factors of C for each class; "balanced" makes their total weights equal.
    tol : float, default=1e-6
        The relative duality gap at which the fit ends.
    max_iter : int, default=100
        Newton steps at most, -1 for no limit.
    cache_size : float or "auto", default="auto"
        Memory for the kernel matrix in MB; "auto" is half of the available memory. A larger matrix is an error.
    random_state : default=None
        Has no effect, since nothing is random; present for compatibility.
    warm_start : bool, default=False
        Start from the last solution if it has the same number of samples and classes.
    n_jobs, time_limit, verbose : as in ``SVC``.

    Attributes
    ----------
    certificate_ : Certificate
        Primal value, dual value and their gap, from the conjugate of the loss (minus the entropy), in float64.
    dual_coef_ : ndarray of shape (1, n_support) or (n_classes, n_support)
        The coefficients β. For two classes those of the function that is positive for ``classes_[1]``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts; with several classes their mean is 0.
    support_, support_vectors_ : the samples with positive weight, of which the functions are sums.
    rkhs_norm_ : ndarray of shape (1,) or (n_classes,)
        The norms |f|.
    n_iter_ : int
        Newton steps.
    classes_, class_weight_, coef_, trace_, kernel_evaluations_, fit_status_, shape_fit_, n_features_in_,
    feature_names_in_ : as in ``SVC``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticRegression(C=10.0).fit(X, y)
    >>> model.predict_proba(X[[0, 60, 140]]).round(1)
    array([[1. , 0. , 0. ],
           [0. , 0.9, 0. ],
           [0. , 0. , 1. ]])
    >>> model.certificate_.relative_gap < 1e-6
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LossMinimiser._parameter_constraints,
        "random_state": ["random_state"],
    }
    _measure: ClassVar[str] = "relative gap"

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
        tol: float = 1e-6,
        max_iter: int = 100,
        cache_size: Any = "auto",
        random_state: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    # ---- fit -------------------------------------------------------------------------------------------------

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        self.classes_, codes = class_codes(y)
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes, weight)
        check_weighted_classes(codes, weight, self.class_weight_)
        return codes.astype(np.float64)

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        codes, options = y.astype(np.intp), self._options()
        weight = weight * self.class_weight_[codes]
        used = np.flatnonzero(weight > 0)
        check_room(len(used), options.budget)
        part = data if len(used) == data.n else data.take(used)
        smooth = logistic_sum(codes[used], len(self.classes_), float(self.C) * weight[used])
        start = getattr(self, "_warm", None) if self.warm_start else None
        if start is not None and start.shape != (smooth.n, smooth.n_functions):
            start = None
        gram = stored_gram(part, options) if matrix_in_time(part, options, clock) else None
        known = (bool(self.fit_intercept), options.tol, options.max_iter, clock)
        solution = solve_logistic(gram, smooth, *known, start, part.psd)
        self._warm = solution.beta if self.warm_start else None
        self._publish(data, used, solution)

    def _publish(self, data: Data, used: Vector, solution: Solution) -> None:
        self._publish_expansion(data, used, [solution], solution.beta, solution.F, solution.thresholds)

    def _too_few_iterations(self, advice: str) -> str:
        return f"Newton's method ended early (max_iter={self.max_iter}): raise max_iter or tol, or lower C.  {advice}"

    # ---- prediction ------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Matrix:
        """The functions with their intercepts, of which ``predict_proba`` is the sigmoid or the softmax.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the logarithm of P(classes_[1]) / P(classes_[0]).
        """
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict_proba(self, X: Any) -> Matrix:
        """The probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        P : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        values = self.decision_function(X)
        return np.column_stack([expit(-values), expit(values)]) if values.ndim == 1 else probabilities(values)

    def predict_log_proba(self, X: Any) -> Matrix:
        """The logarithms of ``predict_proba``, exact also for probabilities that are 0 in float64.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        P : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.column_stack([log_expit(-values), log_expit(values)])
        return log_softmax(values, axis=1)
