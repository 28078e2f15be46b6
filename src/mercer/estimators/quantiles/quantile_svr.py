"""QuantileSVR: several quantiles of y given x at once, which do not cross at the training samples."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_pinball_score

from mercer._sklearn_compat import Interval
from mercer.erm.non_crossing import solve_quantiles
from mercer.estimators.base import keep_parameters, warn_user
from mercer.estimators.loss_minimiser import LossMinimiser
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.validation import real_targets


class QuantileSVR(RegressorMixin, LossMinimiser):  # type: ignore[misc]
    """Quantile regression: minimise Σ_q ½|f_q|² + Σ_q Σᵢ Cᵢ pinball_τq(yᵢ − f_q(xᵢ) − b_q), without crossings.

    The constraints f_q(xᵢ) + b_q ≤ f_{q+1}(xᵢ) + b_{q+1} keep the quantiles in order at the training samples (Takeuchi,
    Le, Sears & Smola, JMLR 7, 2006). The quantiles are solved one by one with a shared kernel matrix; if their
    solutions do not cross, they solve the joint problem, else it is solved from there by the method of multipliers.
    That takes memory for 2 + 2 · n_quantiles kernel matrices at most, and 10 to 30 Newton steps, each a linear system
    over the samples that lie on a quantile or where quantiles meet.

    At new points nothing forbids a crossing, though it is rare near the training samples. ``rearrange=True`` sorts the
    predicted quantiles of each point, which never increases their error (Chernozhukov, Fernández-Val & Galichon,
    Econometrica 78, 2010).

    Parameters
    ----------
    quantiles : float or sequence of float, default=(0.1, 0.5, 0.9)
        The quantiles, each in (0, 1), all different. A single number gives predictions with one dimension.
    C : float, default=1.0
        Weight of the losses. Finite.
    kernel, degree, gamma, coef0 : as in ``SVC``.
    rearrange : bool, default=False
        Whether ``predict`` sorts the quantiles of each sample.
    tol : float, default=1e-4
        The relative duality gap at which the fit ends.
    max_iter : int, default=-1
        Steps of the solvers at most, -1 for no limit.
    cache_size : float or "auto", default="auto"
        Memory for kernel matrices in MB; "auto" is half of the available memory. If quantiles cross and the joint
        problem does not fit, their intercepts are moved apart, and a warning says how far the model is from the
        optimum.
    n_jobs, time_limit, verbose : as in ``SVC``.

    Attributes
    ----------
    certificate_ : Certificate
        Primal value, dual value and gap of the joint problem with its constraints. ``kkt_violation`` is the largest
        crossing at the training samples, before the intercepts were moved apart by it.
    quantiles_ : ndarray of shape (n_quantiles,)
        The quantiles, in the order of the columns of ``predict``.
    dual_coef_ : ndarray of shape (n_quantiles, n_support)
        The coefficients β.
    intercept_ : ndarray of shape (n_quantiles,)
        The intercepts b.
    rkhs_norm_ : ndarray of shape (n_quantiles,)
        The norms |f|.
    support_, support_vectors_ : the samples with positive weight.
    n_iter_, function_, coef_, trace_, kernel_evaluations_, fit_status_, shape_fit_, n_features_in_, feature_names_in_ :
        as in ``SVR``; a function for each quantile.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import QuantileSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 3, (200, 1))
    >>> y = X[:, 0] + (0.2 + 0.3 * X[:, 0]) * rng.normal(size=200)
    >>> model = QuantileSVR([0.1, 0.5, 0.9], C=10.0).fit(X, y)
    >>> model.predict(X).shape
    (200, 3)
    >>> (y[:, None] < model.predict(X)).mean(axis=0).round(1)
    array([0.1, 0.5, 0.9])
    >>> model.certificate_.relative_gap < 1e-4
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            key: value
            for key, value in LossMinimiser._parameter_constraints.items()
            if key not in ("warm_start", "class_weight", "fit_intercept")
        },
        "quantiles": [Interval(Real, 0.0, 1.0, closed="neither"), "array-like"],
        "rearrange": ["boolean"],
    }
    _measure: ClassVar[str] = "violation or relative gap"

    def __init__(
        self,
        quantiles: Any = (0.1, 0.5, 0.9),
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        rearrange: bool = False,
        tol: float = 1e-4,
        max_iter: int = -1,
        cache_size: Any = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    # ---- fit -------------------------------------------------------------------------------------------------

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        self.quantiles_ = checked_quantiles(self.quantiles)
        return real_targets(y)

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        used = np.flatnonzero(weight > 0)
        part = data if len(used) == data.n else data.take(used)
        order = np.argsort(self.quantiles_)
        solution, self._apart = solve_quantiles(
            part, y[used], float(self.C) * weight[used], self.quantiles_[order], self._options(), clock
        )
        as_given = np.argsort(order)
        beta, F = solution.beta[as_given].T, solution.F[as_given].T
        self._publish_expansion(data, used, [solution], beta, F, solution.thresholds[as_given])

    def _warn_unfinished(self) -> None:
        if not self._apart:
            super()._warn_unfinished()
            return
        warn_user(
            f"The quantiles cross, and cache_size={self.cache_size!r} has no room for their joint problem; their "
            f"intercepts were moved apart. The model is {self.certificate_}. Raise cache_size, or use fewer samples.",
            ConvergenceWarning,
        )

    # ---- prediction ------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Matrix:
        """The quantiles of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples, n_quantiles), or (n_samples,) if ``quantiles`` is a number
            f_q(x) + b_q, a column for each quantile.
        """
        values = self._values(X)
        if self.rearrange:
            as_given = np.argsort(np.argsort(self.quantiles_))
            values = np.sort(values, axis=1)[:, as_given]
        return values[:, 0] if np.ndim(self.quantiles) == 0 else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The mean over the quantiles of D²: 1 − pinball loss / pinball loss of the best constant.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples.
        y : array-like of shape (n_samples,)
            The true values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            At most 1; 0 for constant quantiles.
        """
        values = np.reshape(self.predict(X), (-1, len(self.quantiles_)))
        scores = [
            d2_pinball_score(y, column, sample_weight=sample_weight, alpha=float(quantile))
            for column, quantile in zip(values.T, self.quantiles_, strict=True)
        ]
        return float(np.mean(scores))


def checked_quantiles(quantiles: Any) -> Vector:
    """The quantiles as a vector; raise unless they are different numbers between 0 and 1."""
    try:
        found = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    except (TypeError, ValueError):
        found = np.empty((0, 0))
    inside = found.ndim == 1 and len(found) > 0 and bool(((found > 0) & (found < 1)).all())
    if not inside or len(np.unique(found)) < len(found):
        raise InvalidInputError(
            f"quantiles={quantiles!r} was given: give a number between 0 and 1, or a list of different ones, such as "
            "[0.1, 0.5, 0.9]."
        )
    return found
