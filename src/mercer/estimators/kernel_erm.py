"""KernelERM: regularised loss minimisation with any convex loss and any non-decreasing convex penalty of the norm."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags

from mercer._sklearn_compat import Interval, available_if
from mercer.erm.convex_losses import check_loss, find_loss, is_classification, name_of
from mercer.erm.minimise import Problem, minimise
from mercer.erm.penalties import find_penalty
from mercer.estimators.base import keep_parameters, norm, warn_user
from mercer.estimators.loss_minimiser import LossMinimiser
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import budget_bytes
from mercer.gram.operator import Data
from mercer.kernels.features import Vector
from mercer.losses import Loss, Squared
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Solution
from mercer.validation import check_weighted_classes, class_weights, find_classes, real_targets, thread_count


def _predicts_labels(machine: Any) -> bool:
    return is_classification(machine.loss)


def loss_of_erm(machine: Any) -> Any:
    """The loss object that the parameters of a KernelERM describe."""
    return find_loss(machine.loss, machine.epsilon, machine.quantile, machine.delta)


class KernelERM(LossMinimiser):
    """Minimise g(|f|) + C Σ sᵢ ℓ(yᵢ, f(xᵢ) + b) over the functions f of a kernel and b.

    ℓ is a convex loss, g a non-decreasing convex penalty of the norm, s the sample weights ([SSBD] (16.2)–(16.3), [L8]
    (2)). The solution is a sum over the samples, f = Σ βᵢ k(xᵢ, ·): the representer theorem ([M5] Theorem 1). Where the
    conjugates of ℓ and g are known, the duality gap certifies it.

    The loss decides what the estimator is. With a loss for labels it is a classifier for two classes, which are ±1
    inside; for more classes, wrap it in scikit-learn's ``OneVsRestClassifier``, or use ``KernelLogisticRegression``.
    With a loss for numbers it is a regressor.

    Parameters
    ----------
    loss : str or object, default="squared"
        For labels "hinge" max(0, 1 − yf), "squared_hinge" max(0, 1 − yf)², "logistic" log(1 + exp(−yf)). For numbers
        "squared" ½(y − f)², "huber" (``delta``), "epsilon_insensitive" (``epsilon``), "pinball" (``quantile``).
        A loss of your own is an object with the methods value(y, f) and derivative(y, f), on arrays; at a kink the
        derivative is any number between the two slopes. With a method conjugate(y, u), the largest ut − ℓ(y, t) over t
        (inf where there is none), the model is certified; with second_derivative(y, f) it is found faster. Its
        attribute ``classification`` says whether y is ±1 (default False).
    penalty : str, float or object, default="squared"
        "squared" is ½|f|², "norm" is |f|, a number p ≥ 1 is |f|^p / p. A penalty of your own is an object with the
        methods value(t) and derivative(t) for t ≥ 0, and if possible conjugate(s), the largest st − g(t) over t ≥ 0.
        With "norm" and a small C the optimum may be f = 0.
    C : float, default=1.0
        Weight of the loss. Finite.
    epsilon, quantile, delta : float, default=0.1, 0.5 and 1.35
        The half width of the tube of "epsilon_insensitive", the quantile of "pinball", the residual from which "huber"
        is linear.
    kernel, degree, gamma, coef0 : as in ``SVC``.
    fit_intercept : bool, default=True
        Whether there is a b, which is not penalised.
    class_weight : dict or "balanced", default=None
        Factors of C for each class; for losses for labels only.
    tol : float, default=1e-6
        The relative duality gap at which the fit ends. Without a conjugate it is computed from the derivative of the
        loss, and certifies nothing.
    max_iter : int, default=-1
        Steps of the solver at most, -1 for no limit.
    cache_size : float or "auto", default="auto"
        Memory in MB for the kernel matrix ("auto" is half of the available memory), or for kernel rows where the loss
        is that of a support vector machine, as in ``SVC``.
    warm_start : bool, default=False
        Start from the last solution if it has the same number of samples.
    n_jobs, time_limit, verbose : as in ``SVC``.

    Attributes
    ----------
    certificate_ : Certificate
        Primal value, dual value and their gap. Not valid if a conjugate is missing; ``reason`` says so.
    dual_coef_ : ndarray of shape (1, n_support)
        The coefficients β that are not 0.
    intercept_ : ndarray of shape (1,)
        The intercept b.
    rkhs_norm_ : ndarray of shape (1,)
        The norm |f|.
    classes_, class_weight_ : for losses for labels; ``classes_[1]`` is positive.
    n_iter_ : int
        Steps of the solver, over all problems that it has solved.
    support_, support_vectors_, n_support_, coef_, margin_, plan_, trace_, kernel_evaluations_, fit_status_, shape_fit_,
    n_features_in_, feature_names_in_ : as in ``SVR``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelERM
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[::10] = 5.0
    >>> model = KernelERM(loss="huber", delta=0.1, penalty="norm", C=10.0).fit(X, y)
    >>> bool(abs(model.predict([[2.5]])[0] - np.sin(2.5)) < 0.2)
    True
    >>> model.certificate_.relative_gap <= 1e-6
    True

    A loss of one's own, log cosh:

    >>> class LogCosh:
    ...     def value(self, y, f):
    ...         return np.logaddexp(f - y, y - f) - np.log(2)
    ...     def derivative(self, y, f):
    ...         return np.tanh(f - y)
    ...     def second_derivative(self, y, f):
    ...         return 1 - np.tanh(f - y) ** 2
    >>> model = KernelERM(loss=LogCosh(), C=10.0).fit(X, y)
    >>> model.certificate_.reason
    'the LogCosh gives no conjugate'
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LossMinimiser._parameter_constraints,
        "loss": "no_validation",
        "penalty": "no_validation",
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "quantile": [Interval(Real, 0.0, 1.0, closed="neither")],
        "delta": [Interval(Real, 0.0, None, closed="neither")],
    }

    def __init__(
        self,
        loss: Any = "squared",
        penalty: Any = "squared",
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        quantile: float = 0.5,
        delta: float = 1.35,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: Any = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if _predicts_labels(self):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(multi_class=False)
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    # ---- fit -------------------------------------------------------------------------------------------------

    def _options(self) -> Options:
        loss = loss_of_erm(self)
        by_rows = isinstance(loss, Loss) and not isinstance(loss, Squared)
        return Options(
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            time_limit=self.time_limit,
            budget=budget_bytes(self.cache_size) if by_rows else self._matrix_budget(),
            costly_budget=budget_bytes(self.cache_size, costly=True),
            n_threads=thread_count(self.n_jobs),
        )

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        loss = loss_of_erm(self)
        find_penalty(self.penalty)
        if _predicts_labels(self):
            targets = self._validate_labels(y, weight)
        elif self.class_weight is not None:
            raise InvalidInputError(
                f"class_weight={self.class_weight!r} was given, but the {name_of(loss)} has no classes: "
                "use sample_weight."
            )
        else:
            self.__dict__.pop("classes_", None)
            targets = real_targets(y)
        check_loss(loss, targets)
        return targets

    def _validate_labels(self, y: Any, weight: Vector) -> Vector:
        self.classes_, codes = find_classes(y)
        if len(self.classes_) != 2:
            if len(self.classes_) < 2:
                raise InvalidInputError(
                    f"The number of classes has to be greater than one; got {len(self.classes_)} class"
                )
            raise InvalidInputError(
                "Only binary classification is supported. The type of the target is multiclass: y has "
                f"{len(self.classes_)} classes. Use OneVsRestClassifier(KernelERM(...)), or KernelLogisticRegression."
            )
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes, weight)
        check_weighted_classes(codes, weight, self.class_weight_)
        return 2.0 * codes - 1.0

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        if _predicts_labels(self):
            weight = weight * self.class_weight_[(y > 0).astype(np.intp)]
        used = np.flatnonzero(weight > 0)
        part = data if len(used) == data.n else data.take(used)
        loss, penalty, options = loss_of_erm(self), find_penalty(self.penalty), self._options()
        C = float(self.C) * weight[used]
        problem = Problem(part, loss, y[used], C, bool(self.fit_intercept), options, clock)
        start = getattr(self, "_warm", None) if self.warm_start else None
        start = None if start is None or len(start) != len(used) else start
        solution = minimise(problem, penalty, options.tol, start)
        self._warm = solution.beta if self.warm_start else None
        self._publish(data, used, solution)

    def _publish(self, data: Data, used: Vector, solution: Solution) -> None:
        intercept = float(solution.thresholds.sum())
        self._publish_function(data, used, solution.beta, intercept, norm(solution), solution)
        proof = self.certificate_
        if not proof.valid and proof.gap < 0:
            warn_user(f"The fit is not certified: {proof.reason}. The model is {proof}.", UserWarning)

    # ---- prediction ------------------------------------------------------------------------------------------

    @available_if(_predicts_labels)
    def decision_function(self, X: Any) -> Vector:
        """f(x) + b; positive for ``classes_[1]``. For losses for labels only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            The decision values.
        """
        return self._values(X)[:, 0]

    def predict(self, X: Any) -> Vector:
        """The labels, or for losses for numbers the values f(x) + b.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Labels or numbers.
        """
        values = self._values(X)[:, 0]
        return self.classes_[(values > 0).astype(np.intp)] if hasattr(self, "classes_") else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of right labels, or R² for losses for numbers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples.
        y : array-like of shape (n_samples,)
            The true labels or values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            At most 1.
        """
        measure = accuracy_score if hasattr(self, "classes_") else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))
