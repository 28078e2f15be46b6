"""SurvivalSVM: rank and predict right-censored survival times with kernels."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin

from mercer._sklearn_compat import Interval, num_samples
from mercer.estimators.base import keep_parameters
from mercer.estimators.ranking.pair_machine import PairMachine
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels.features import Vector
from mercer.ordering.pair_losses import PairSum
from mercer.ordering.pair_order import PairOrder, concordance
from mercer.problems.clock import Clock
from mercer.validation import real_targets

# survival times beyond this, as predicted logarithms, would overflow
LONGEST = 700.0


class SurvivalSVM(RegressorMixin, PairMachine):  # type: ignore[misc]
    """Survival: minimise ½|f|² + α/2 (r Σ max(0, 1 - (f(xᵢ) - f(xⱼ)))² + (1 - r) Σ ζᵢ²), with r the ``rank_ratio``.

    The first sum is over the pairs whose order is known: i has survived longer than j, whose event was observed. The
    second sum is a regression of the logarithm of the time, ζ = log t - f(x) - b, where for a censored time only a
    prediction that is too short is an error. This is the objective of scikit-survival's ``FastKernelSurvivalSVM``,
    solved to a duality gap. Two events at the same time have no order; a censored sample at the time of an event has
    survived longer.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the losses; finite. With very large values Newton steps are factored, which takes n³ operations each.
    rank_ratio : float, default=1.0
        1: ranking only; 0: regression only.
    fit_intercept : bool, default=False
        Whether the regression has an intercept b. Not with ``rank_ratio=1``.
    kernel, degree, gamma, coef0, tol, max_iter, cache_size, warm_start, n_jobs, time_limit, verbose : as in
        ``RankSVC``.

    Attributes
    ----------
    n_pairs_ : int
        Number of pairs whose order is known.
    certificate_ : Certificate
        Primal value, dual value and their gap.
    dual_coef_ : ndarray of shape (1, n_support)
        The coefficients β of f = Σ βᵢ k(xᵢ, ·).
    intercept_ : ndarray of shape (1,)
        The intercept b.
    support_, support_vectors_, n_support_, coef_, rkhs_norm_, function_, trace_, kernel_evaluations_, fit_status_,
    shape_fit_, n_iter_, n_features_in_, feature_names_in_ :
        As in ``SVR``.

    Examples
    --------
    >>> from mercer import SurvivalSVM
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> observed, time = [True, True, False, True], [1.0, 3.0, 4.0, 8.0]
    >>> model = SurvivalSVM(kernel="linear").fit(X, list(zip(observed, time)))
    >>> model.n_pairs_, model.score(X, list(zip(observed, time)))
    (5, 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairMachine._parameter_constraints,
        "alpha": [Interval(Real, 0.0, None, closed="neither")],
        "rank_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "fit_intercept": ["boolean"],
    }
    _problem = "survival loss over pairs"

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        rank_ratio: float = 1.0,
        fit_intercept: bool = False,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: Any = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SurvivalSVM:
        """Fit the model to survival times.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples), or list of object
            Training samples; the kernel matrix for ``kernel="precomputed"``.
        y : structured array of shape (n_samples,), or array-like of shape (n_samples, 2) or (n_samples,)
            Whether the event was observed, and the time of the event or of the censoring: as the two fields of
            scikit-survival's structured array, or as two columns. A single column has the times of observed events.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; that of a pair is the product.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        super().fit(X, y, sample_weight=sample_weight)
        return self

    def _validate(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        if not reset:
            return super()._validate(X, None, reset)
        if y is None:
            return super()._validate(X, y, reset)
        outcome = survival_times(y)
        X, _ = super()._validate(X, outcome.time, reset)
        return X, outcome

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        if self.fit_intercept and self.rank_ratio == 1:
            raise InvalidInputError(
                "fit_intercept=True was given with rank_ratio=1, but differences of ranks have no intercept. Use "
                "fit_intercept=False, or a rank_ratio below 1."
            )
        outcome = survival_times(y)
        if self.rank_ratio < 1 and not (outcome.time > 0).all():
            raise InvalidInputError(
                f"A time of {outcome.time.min():g} was found, but the regression of rank_ratio={self.rank_ratio:g} "
                "needs positive times, whose logarithm it predicts. Use rank_ratio=1, or correct the times."
            )
        self._outcome = outcome
        return outcome.time

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        outcome, used = self.__dict__.pop("_outcome"), np.flatnonzero(weight > 0)
        smooth = survival_loss(self, outcome, weight, used)
        self._minimise(data, used, smooth, bool(self.fit_intercept), clock)

    def predict(self, X: Any) -> Vector:
        """The risk -f(x) for ``rank_ratio=1``, else the predicted time exp(f(x) + b).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Risks, higher for earlier events, or times.
        """
        values = np.ravel(self._values(X))
        return -values if self.rank_ratio == 1 else np.exp(np.minimum(values, LONGEST))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The concordance index: the share of pairs of known order that are predicted in this order; ties count half.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples.
        y : structured array of shape (n_samples,), or array-like of shape (n_samples, 2) or (n_samples,)
            Their survival times, as in ``fit``.
        sample_weight : Ignored
            Present for API consistency.

        Returns
        -------
        score : float
            Between 0 and 1; 0.5 for constant predictions.
        """
        values = np.ravel(self._values(X))
        outcome = survival_times(y)
        if len(outcome.time) != num_samples(X):
            raise InvalidInputError(f"y has {len(outcome.time)} times, but X has {num_samples(X)} samples.")
        order = known_order(outcome)
        check_known(order)
        return concordance(order, values)


class Outcome(NamedTuple):
    """Whether each event was observed, and its time or that of the censoring."""

    observed: Vector
    time: Vector


def survival_times(y: Any) -> Outcome:
    """The outcome from a structured array, two columns or a single column of times."""
    if isinstance(y, Outcome):
        return y
    allowed = "y must be a structured array (event, time), two columns event and time, or one column of times"
    array = np.asarray(y)
    if array.dtype.kind == "c":
        raise InvalidInputError(f"Complex data not supported: y has complex numbers, but {allowed}.")
    if array.dtype.names is not None:
        if len(array.dtype.names) != 2 or array.ndim != 1:
            raise InvalidInputError(
                f"y has the shape {array.shape} and the fields {', '.join(array.dtype.names)}, but {allowed}."
            )
        event, time = (array[name] for name in array.dtype.names)
    elif array.ndim == 2 and array.shape[1] == 2:
        event, time = array[:, 0], array[:, 1]
    elif array.ndim == 2 and array.shape[1] > 2:
        raise InvalidInputError(f"y has the shape {array.shape}, but {allowed}.")
    else:
        time = real_targets(y)
        return Outcome(np.ones(len(time), bool), time)
    time, flags = real_targets(time), real_targets(event)
    unknown = flags[(flags != 0) & (flags != 1)]
    if len(unknown):
        raise InvalidInputError(
            f"The event of a sample is {unknown[0]:g}, but it must be 0 or False, 1 or True; {allowed}."
        )
    return Outcome(flags == 1, time)


def known_order(outcome: Outcome, used: Vector | slice = slice(None)) -> PairOrder:
    """The pairs of samples of which one is known to have survived longer."""
    observed, time = outcome.observed[used], outcome.time[used]
    # at equal times a censored sample comes after an event
    keys = np.stack([time, np.where(observed, 0.0, 1.0)], axis=1)
    rank = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    return PairOrder(rank, None, observed)


def survival_loss(machine: Any, outcome: Outcome, weight: Vector, used: Vector) -> PairSum:
    """The losses of the samples ``used``: pairs of known order, and logarithms of times."""
    ratio, alpha = float(machine.rank_ratio), float(machine.alpha)
    order = known_order(outcome, used)
    if ratio > 0:
        check_known(order)
    time = np.log(outcome.time[used]) if ratio < 1 else None
    own = 0.5 * alpha * (1.0 - ratio)
    return PairSum(order, weight[used], 0.5 * alpha * ratio, own, time, ~outcome.observed[used])


def check_known(order: PairOrder) -> None:
    """Raise if no pair has a known order."""
    if order.n_pairs == 0:
        raise InvalidInputError(
            f"No two of the {order.n} sample(s) with a positive weight have a known order of survival: at least one "
            "observed event must be earlier than another time: add samples with later times, or check which events are "
            "marked as observed."
        )
