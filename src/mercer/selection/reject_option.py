"""Decisions by expected cost: a cost for each kind of mistake, and one for no answer."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d

from mercer._sklearn_compat import Interval, fit_context
from mercer.estimators.base import KnownParameters, keep_parameters
from mercer.estimators.fitted_models import codes_of
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.selection.svc_cv import SVCCV

# the labels of rejected samples, unless they are classes
NUMBER, NAME = -1, "rejected"


class RejectOption(MetaEstimatorMixin, ClassifierMixin, KnownParameters):  # type: ignore[misc]
    """Predict the class j of least expected cost Σᵢ p(i | x) cost[i, j], or reject if even that cost is too high.

    With equal costs this is Chow's rule (IEEE Transactions on Information Theory 16, 1970): answer only where the
    largest probability is at least 1 − ``reject_cost``. If the probabilities are right, no other rule has a smaller
    mean cost.

    Parameters
    ----------
    estimator : classifier with predict_proba, default=None
        Its clone is fitted. None is ``SVCCV()``, whose probabilities come from held-out decision values.
    cost_matrix : array-like of shape (n_classes, n_classes), default=None
        The cost of predicting ``classes_[j]`` for a sample of ``classes_[i]`` in row i, column j; at least 0. None: 1
        for each mistake.
    reject_cost : float, default=None
        The cost of no answer: samples whose least expected cost is higher are rejected. None never rejects.
    reject_label : default=None
        The label that ``predict`` gives to rejected samples. None is -1 for classes that are numbers and "rejected" for
        names.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier; ``certify`` takes it.
    classes_ : ndarray of shape (n_classes,)
        The classes, without the label of rejected samples.
    cost_matrix_ : ndarray of shape (n_classes, n_classes)
        The costs.
    reject_label_ : the label of rejected samples.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mercer import KernelLogisticRegression, RejectOption
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(0)) / X.std(0)
    >>> model = RejectOption(KernelLogisticRegression(C=10), reject_cost=0.1).fit(X[::2], y[::2])
    >>> rejected = model.rejects(X[1::2])
    >>> bool(0 < rejected.mean() < 0.2)
    True
    >>> bool((model.predict(X[1::2])[rejected] == -1).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [BaseEstimator, None],
        "cost_matrix": ["array-like", None],
        "reject_cost": [Interval(Real, 0.0, None, closed="left"), None],
        "reject_label": "no_validation",
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        cost_matrix: Any = None,
        reject_cost: float | None = None,
        reject_label: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self._unfitted().__sklearn_tags__()
        tags.input_tags, tags.classifier_tags = inner.input_tags, inner.classifier_tags
        return tags

    def _unfitted(self) -> Any:
        return SVCCV() if self.estimator is None else self.estimator

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RejectOption:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of object
            Training samples, as the classifier takes them.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, as the classifier takes them.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        estimator = clone(self._unfitted())
        estimator.fit(X, y) if sample_weight is None else estimator.fit(X, y, sample_weight=sample_weight)
        if not hasattr(estimator, "predict_proba"):
            name = type(estimator).__name__
            raise InvalidInputError(
                f"{name} has no predict_proba, from which expected costs are computed. Use SVCCV, "
                f"KernelLogisticRegression, or scikit-learn's CalibratedClassifierCV({name}(), ensemble=False)."
            )
        self.estimator_, self.classes_ = estimator, estimator.classes_
        self.cost_matrix_ = self._costs()
        self.reject_label_ = self._label()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
        return self

    def _costs(self) -> Matrix:
        n = len(self.classes_)
        if self.cost_matrix is None:
            return 1.0 - np.eye(n)
        costs: Matrix = check_array(self.cost_matrix, dtype=np.float64, input_name="cost_matrix")
        if costs.shape != (n, n):
            raise InvalidInputError(
                f"cost_matrix has the shape {costs.shape}, but there are {n} classes: give a row and a column for "
                f"each, in the order {self.classes_.tolist()}."
            )
        if costs.min() < 0:
            raise InvalidInputError(
                f"cost_matrix has the entry {costs.min():g}, but costs must be at least 0. Add a constant to each row: "
                "it does not change which class costs least."
            )
        return costs

    def _label(self) -> Any:
        label = self.reject_label
        if label is None:
            label = NUMBER if self.classes_.dtype.kind in "biuf" else NAME
        if self.reject_cost is not None and label in self.classes_.tolist():
            raise InvalidInputError(
                f"Rejected samples would be labelled {label!r}, which is one of the classes. Choose another "
                "reject_label."
            )
        return label

    # ---- decisions -----------------------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Matrix:
        """Probabilities of the classes, by the classifier.

        Parameters
        ----------
        X : samples, as the classifier takes them.

        Returns
        -------
        T : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    def expected_costs(self, X: Any) -> Matrix:
        """The expected cost of each answer.

        Parameters
        ----------
        X : samples, as the classifier takes them.

        Returns
        -------
        costs : ndarray of shape (n_samples, n_classes)
            Σᵢ p(i | x) cost[i, j] for each sample x and class j.
        """
        return self.predict_proba(X) @ self.cost_matrix_

    def decision_function(self, X: Any) -> Matrix:
        """How much less the second class costs than the first; for more classes minus the expected costs.

        Parameters
        ----------
        X : samples, as the classifier takes them.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The class of the largest value is predicted, unless the sample is rejected.
        """
        costs = self.expected_costs(X)
        return costs[:, 0] - costs[:, 1] if costs.shape[1] == 2 else -costs

    def rejects(self, X: Any) -> Vector:
        """Which samples are rejected.

        Parameters
        ----------
        X : samples, as the classifier takes them.

        Returns
        -------
        rejected : ndarray of bool, of shape (n_samples,)
            True where the least expected cost is above ``reject_cost``.
        """
        return self._rejected(self.expected_costs(X))

    def _rejected(self, costs: Matrix) -> Vector:
        limit = np.inf if self.reject_cost is None else float(self.reject_cost)
        return costs.min(axis=1) > limit

    def predict(self, X: Any) -> Vector:
        """The class of least expected cost, or ``reject_label_``.

        Parameters
        ----------
        X : samples, as the classifier takes them.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            The labels. If some are rejected and the label is not of the classes' type, they are objects.
        """
        costs = self.expected_costs(X)
        labels, rejected = self.classes_[costs.argmin(axis=1)], self._rejected(costs)
        if not rejected.any():
            return labels
        label = np.asarray([self.reject_label_])
        same = label.dtype.kind == labels.dtype.kind or (label.dtype.kind in "iu" and labels.dtype.kind in "iuf")
        kind = np.result_type(labels.dtype, label.dtype) if same else np.dtype(object)
        return np.where(rejected, label.astype(kind), labels.astype(kind))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of samples that get the right answer; a rejected sample does not.

        Parameters
        ----------
        X : samples, as the classifier takes them.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples in the mean.

        Returns
        -------
        accuracy : float
        """
        check_consistent_length(X, y, sample_weight)
        # as objects: the label of rejected samples need not be of the classes' type
        right = self.predict(X).astype(object) == column_or_1d(y, warn=True).astype(object)
        return float(np.average(right, weights=sample_weight))

    # ---- what it costs -------------------------------------------------------------------------------------------

    def mean_cost(self, X: Any, y: Any) -> float:
        """The mean cost of the decisions on samples with known classes.

        Parameters
        ----------
        X : samples, as the classifier takes them.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        cost : float
            ``cost_matrix_`` for answers, ``reject_cost`` for rejected samples.
        """
        expected, paid = self._expected_and_paid(X, y)
        return float(np.where(self._rejected(expected), float(self.reject_cost or 0.0), paid).mean())

    def _expected_and_paid(self, X: Any, y: Any) -> tuple[Matrix, Vector]:
        """The expected cost of each answer, and the actual cost of the answer of least expected cost."""
        check_consistent_length(X, y)
        expected = self.expected_costs(X)
        return expected, self.cost_matrix_[codes_of(self, y), expected.argmin(axis=1)]

    def risk_coverage(self, X: Any, y: Any) -> RiskCoverage:
        """The mean cost of answers against the share of samples that are answered, for every ``reject_cost``.

        Parameters
        ----------
        X : samples, as the classifier takes them. Not those of ``fit``, whose classes the model has seen.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        curve : RiskCoverage
            `RiskCoverageDisplay` draws it.
        """
        expected, paid = self._expected_and_paid(X, y)
        least = expected.min(axis=1)
        order = np.argsort(least, kind="stable")
        answered = np.arange(1, len(order) + 1)
        risk = np.cumsum(paid[order]) / answered
        # samples of equal expected cost are answered together
        last = np.append(np.diff(least[order]) > 0, True)
        return RiskCoverage((answered / len(order))[last], risk[last], least[order][last])


@dataclass(frozen=True, repr=False)
class RiskCoverage:
    """The mean cost of answers against the share of samples that are answered.

    Attributes
    ----------
    coverage : the share of samples that are answered, increasing up to 1.
    risk : the mean cost of these answers.
    reject_cost : the smallest ``reject_cost`` with this coverage.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import KernelLogisticRegression, RejectOption
    >>> X, y = make_moons(300, noise=0.4, random_state=0)
    >>> curve = RejectOption(KernelLogisticRegression()).fit(X[:200], y[:200]).risk_coverage(X[200:], y[200:])
    >>> bool(curve.risk[len(curve.risk) // 2] < curve.risk[-1])
    True
    """

    coverage: Vector
    risk: Vector
    reject_cost: Vector

    def __repr__(self) -> str:
        at = int(np.searchsorted(self.coverage, 0.9))
        return (
            f"RiskCoverage(all samples: mean cost {self.risk[-1]:.3g}; the surest {self.coverage[at]:.0%}: "
            f"{self.risk[at]:.3g}, with reject_cost={self.reject_cost[at]:.3g})"
        )
