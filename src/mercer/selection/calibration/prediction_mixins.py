"""Mixins that add probabilities, label sets and intervals to searches, from held-out decision values.

``ProbabilityMixin`` is for classifiers, ``IntervalMixin`` for regressors. The class must have, after fit,

    best_estimator_          the machine fitted to all samples
    cv_decision_function_    the decision values of each sample from a machine that was trained without it (NaN if there
                             is none), in the columns of ``Scheme``; for a regressor, the prediction

and must call ``_learn_probabilities`` or ``_learn_intervals`` at the end of its fit.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import svm
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer._sklearn_compat import available_if
from mercer.estimators.fitted_models import codes_of
from mercer.estimators.svc import BaseSVC
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.selection.calibration.class_probabilities import Calibration, Index, Scheme, calibrate, held_out
from mercer.selection.calibration.conformal import (
    ConformalIntervals,
    ConformalSets,
    conformal_intervals,
    conformal_sets,
)
from mercer.selection.calibration.venn_abers import venn_abers
from mercer.selection.search.search_cv import _is_refitted
from mercer.validation import real_targets


def problem_values(machine: Any, X: Any) -> Matrix:
    """Decision values of a fitted classifier in the columns of its ``Scheme``."""
    if isinstance(machine, BaseSVC):
        values = machine._values(X)
        # with two classes LIBSVM's first class is positive
        return -values if len(machine.classes_) == 2 else values
    # pairwise values of scikit-learn's SVC, regardless of decision_function_shape
    by_pairs = isinstance(machine, svm.SVC | svm.NuSVC)
    found = np.asarray(machine._decision_function(X) if by_pairs else machine.decision_function(X), dtype=np.float64)
    return found.reshape(len(found), -1)


class ProbabilityMixin:
    """Adds predict_proba, Venn–Abers intervals and conformal label sets, from held-out decision values."""

    _scheme: ClassVar[Scheme] = Scheme.PAIRS

    calibration: str
    classes_: Vector
    best_estimator_: Any
    cv_decision_function_: Matrix
    _calibration: Calibration | None
    _conformal: ConformalSets
    _held_out: tuple[Matrix, Index, Vector]

    def _learn_probabilities(self, codes: Index, weight: Vector) -> None:
        """Fit the calibration to ``cv_decision_function_``; ``weight`` includes class_weight."""
        k = len(self.classes_)
        values = np.asarray(self.cv_decision_function_, dtype=np.float64).reshape(len(codes), -1)
        known = held_out(values) & (weight > 0)
        self._held_out = values[known], codes[known], weight[known]
        self._calibration = None
        if known.any():
            self._calibration = calibrate(*self._held_out[:2], k, self.calibration, self._held_out[2], self._scheme)
        self._conformal = conformal_sets(self._scheme.margins(values[known], k), codes[known])

    @available_if(_is_refitted)
    def predict_proba(self, X: Any) -> Matrix:
        """Class probabilities, calibrated on the decision values of held-out samples.

        The class with the largest probability is always the one that ``predict`` returns.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        T : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        check_is_fitted(self)
        if self._calibration is None:
            raise InvalidInputError(
                "There are no probabilities because the search ended before any sample was held out. Raise time_limit."
            )
        winners = np.searchsorted(self.classes_, self.best_estimator_.predict(X))
        return self._calibration.probabilities(problem_values(self.best_estimator_, X), winners)

    @available_if(_is_refitted)
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
        return np.log(self.predict_proba(X))

    @available_if(_is_refitted)
    def predict_proba_interval(self, X: Any) -> Matrix:
        """Venn–Abers intervals for the probability of each class against all others.

        They are wide where few samples have similar decision values. Unlike ``predict_proba``, they assume nothing
        about the distribution of decision values, because they use isotonic regression only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        intervals : ndarray of shape (n_samples, n_classes, 2)
            The lower and the upper probability of each class.
        """
        scores = self._scores(X)
        values, codes, weight = self._held_out
        margins, k = self._scheme.margins(values, len(self.classes_)), len(self.classes_)
        # a new sample has the average weight
        weight = weight / weight.mean() if len(weight) else weight
        abers = [venn_abers(margins[:, c], codes == c, weight) for c in range(k)]
        return np.stack([one.interval(scores[:, c]) for c, one in enumerate(abers)], axis=1)

    @available_if(_is_refitted)
    def predict_set(
        self, X: Any, alpha: float = 0.1, mondrian: bool = False, *, as_mask: bool = False
    ) -> NDArray[np.object_] | NDArray[np.bool_]:
        """Sets of labels that contain the true label with probability 1 − alpha (conformal prediction).

        Difficult samples get several labels, and a sample unlike all others may get none. By default the sets are based
        on cross-validated scores and coverage is close to 1 − alpha; ``conformalize`` gives an exact guarantee.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        alpha : float, default=0.1
            The fraction of samples whose true label may be missed.
        mondrian : bool, default=False
            Whether coverage holds for each class separately, including rare ones.
        as_mask : bool, default=False
            Whether to return a boolean matrix instead of labels.

        Returns
        -------
        sets : ndarray of shape (n_samples,), dtype object
            A tuple of labels for each sample, in the order of ``classes_``: ``("cat",)``, ``("cat", "dog")`` or ``()``.
            With ``as_mask`` an ndarray of shape (n_samples, n_classes), dtype bool: whether each label is in the set.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import SVCCV
        >>> X, y = load_iris(return_X_y=True)
        >>> model = SVCCV(Cs=3, gammas=3).fit(X, y)
        >>> model.predict_set(X[[0, 133]], alpha=0.01)
        array([(0,), (1, 2)], dtype=object)
        """
        kept = self._conformal_fitted().sets(self._scores(X), alpha, mondrian)
        if as_mask:
            return kept
        labels = self.classes_.tolist()
        sets = np.empty(len(kept), dtype=object)
        sets[:] = [tuple(label for label, inside in zip(labels, row, strict=True) if inside) for row in kept]
        return sets

    @available_if(_is_refitted)
    def conformal_p_values(self, X: Any, mondrian: bool = False) -> Matrix:
        """The conformal p-value of each label; ``predict_set`` keeps the labels with p-values above alpha.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        mondrian : bool, default=False
            Whether to compare with held-out samples of the same class only.

        Returns
        -------
        p_values : ndarray of shape (n_samples, n_classes)
            For new samples like the training samples, P(p-value of the true label ≤ p) ≤ p.
        """
        return self._conformal_fitted().p_values(self._scores(X), mondrian)

    @available_if(_is_refitted)
    def conformalize(self, X: Any, y: Any) -> Any:
        """Base ``predict_set`` on fresh samples, which guarantees coverage of 1 − alpha for any distribution.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples that were not used in the fit.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        self : object
            The estimator; only its conformal scores have changed.
        """
        check_is_fitted(self)
        check_consistent_length(X, y)
        self._conformal = conformal_sets(self._scores(X), codes_of(self, y))
        return self

    def _conformal_fitted(self) -> ConformalSets:
        check_is_fitted(self)
        return self._conformal

    def _scores(self, X: Any) -> Matrix:
        """The margin of each class at new samples."""
        check_is_fitted(self)
        return self._scheme.margins(problem_values(self.best_estimator_, X), len(self.classes_))


class IntervalMixin:
    """Adds conformal prediction intervals to regressors, from the residuals of held-out samples."""

    best_estimator_: Any
    cv_decision_function_: Vector
    _conformal: ConformalIntervals

    def _learn_intervals(self, y: Vector, weight: Vector) -> None:
        """Collect the residuals of ``cv_decision_function_`` (the held-out predictions)."""
        predictions, used = np.asarray(self.cv_decision_function_, dtype=np.float64).ravel(), weight > 0
        self._conformal = conformal_intervals(predictions[used], y[used])

    @available_if(_is_refitted)
    def predict_interval(self, X: Any, alpha: float = 0.1, symmetric: bool = True) -> Matrix:
        """Intervals that contain the true value with probability 1 − alpha (conformal prediction).

        By default the intervals are based on cross-validated residuals and coverage is close to 1 − alpha;
        ``conformalize`` gives an exact guarantee.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        alpha : float, default=0.1
            The fraction of samples that may be missed.
        symmetric : bool, default=True
            Whether the prediction is in the middle. If False, each side is missed with probability alpha/2, which suits
            skewed errors.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2)
            Lower and upper ends; infinite if there are too few residuals for this alpha.
        """
        check_is_fitted(self)
        return self._conformal.interval(self.best_estimator_.predict(X), alpha, symmetric)

    @available_if(_is_refitted)
    def conformalize(self, X: Any, y: Any) -> Any:
        """Base ``predict_interval`` on fresh samples, which guarantees coverage of 1 − alpha for any distribution.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples that were not used in the fit.
        y : array-like of shape (n_samples,)
            Their target values.

        Returns
        -------
        self : object
            The estimator; only its conformal residuals have changed.
        """
        check_is_fitted(self)
        check_consistent_length(X, y)
        self._conformal = conformal_intervals(self.best_estimator_.predict(X), real_targets(y))
        return self
