"""SVRCV: support vector regression that chooses C, epsilon and the kernel by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import keep_parameters
from mercer.estimators.svr import SVR
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.losses.regression import regression_loss
from mercer.selection.calibration.prediction_mixins import IntervalMixin
from mercer.selection.chains import Setting
from mercer.selection.folds import Folds, SingleFolds
from mercer.selection.search.candidates import KernelChoice, SettingChoice
from mercer.selection.search.grids import EPSILON_RANGE, C_range, spread_of, values_of
from mercer.selection.search.kernel_search_cv import KernelSearchCV
from mercer.selection.search.scoring import HeldOutRegressor, Score, determination, score_models
from mercer.validation import real_targets


def regression_score(scoring: Any, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]]) -> Score:
    """A function that turns the held-out predictions of a fold into scores: R², or the user's scoring."""
    if scoring in (None, "r2"):

        def fast(values: Matrix, f: int) -> list[float]:
            test = folds[f][1]
            if len(test) < 2:
                raise InvalidInputError(
                    f"R² is not defined for fold {f}, which has {len(test)} test sample. Use fewer folds, or another "
                    "scoring such as 'neg_mean_squared_error'."
                )
            return [determination(part[:, 0], y[test], weight[test]) for part in values]

        return fast
    return score_models(scoring, HeldOutRegressor, X, y, weight, folds)


class SVRCV(IntervalMixin, RegressorMixin, KernelSearchCV):  # type: ignore[misc]
    """``SVR`` that chooses C, epsilon and the kernel's parameters by cross-validation; see ``SVCCV``.

    Parameters
    ----------
    kernel, gammas, kernel_grid, degree, coef0, cv, search, prune, refit, tol, cache_size, n_jobs, time_limit, verbose,
    precision, fit_intercept : as in ``SVCCV``.
    Cs : int or array-like, default=8
        The values of C, or their number: then they range from 0.01 to 1000 times the standard deviation of y, divided
        by the mean of k(x, x).
    epsilons : int or array-like, default=3
        The values of epsilon, or their number: then they range from 0.01 to 0.5 times the standard deviation of y.
    loss, quantile : as in ``SVR``.
    scoring : str or callable, default=None
        A scorer of predictions; None is R². Sample weights also apply to scores.

    Attributes
    ----------
    best_estimator_ : SVR
        The best machine, fitted to all samples, with its certificate.
    C_, epsilon_, gamma_ : float
        The values in ``best_params_``.
    cv_decision_function_ : ndarray of shape (n_samples, 1)
        The held-out predictions of the best candidate: each sample by the machine that was not trained on it.
    best_params_, best_score_, cv_results_, cv_fold_, certificate_, … : as in ``SVCCV``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (100, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=100)
    >>> model = SVRCV(Cs=4, gammas=4).fit(X, y)
    >>> bool(model.best_score_ > 0.9)
    True
    >>> model.predict_interval([[1.0]], alpha=0.2).shape
    (1, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelSearchCV._parameter_constraints,
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like", Interval(Real, 0, None, closed="neither")],
        "epsilons": [Interval(Integral, 1, None, closed="left"), "array-like", Interval(Real, 0, None, closed="left")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive", "pinball"})],
        "quantile": [Interval(Real, 0.0, 1.0, closed="neither")],
        "fit_intercept": ["boolean"],
        "prune": [StrOptions({"bound", "race"}), None],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        Cs: Any = 8,
        epsilons: Any = 3,
        gammas: Any = 8,
        kernel_grid: Any = None,
        degree: int = 3,
        coef0: float = 0.0,
        loss: str = "epsilon_insensitive",
        quantile: float = 0.5,
        cv: Any = 5,
        scoring: Any = None,
        search: str = "grid",
        prune: str | None = None,
        refit: bool = True,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
        precision: str = "auto",
    ) -> None:
        keep_parameters(self, locals())

    @property
    def _intercept(self) -> bool:  # type: ignore[override]
        return bool(self.fit_intercept)

    def _validate(self, X: Any, y: Any) -> tuple[Any, Vector]:
        X, y = self._validate_samples(X, y)
        return X, real_targets(y)

    def _machine(self) -> SVR:
        return SVR(
            kernel=self.kernel, degree=self.degree, coef0=self.coef0, loss=self.loss, quantile=self.quantile,
            tol=self.tol, fit_intercept=self.fit_intercept, n_jobs=self.n_jobs, precision=self.precision,
        )  # fmt: skip

    def _family(self, folds: Folds, y: Vector, weight: Vector) -> SingleFolds:
        return SingleFolds(folds, y, weight, bool(self.fit_intercept))

    def _held_out_model(self, values: Matrix) -> HeldOutRegressor:
        return HeldOutRegressor(values)

    def _score(self, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]]) -> Score:
        return regression_score(self.scoring, X, y, weight, folds)

    def _settings(self, X: Any, y: Vector, kernels: Sequence[KernelChoice]) -> list[SettingChoice]:
        spread = spread_of(y)
        Cs = values_of("Cs", self.Cs, C_range([choice.kernel for choice in kernels], X, spread))
        if self.loss == "pinball":
            return [self._setting({"C": C}) for C in Cs]
        limits = EPSILON_RANGE[0] * spread, EPSILON_RANGE[1] * spread
        tubes = values_of("epsilons", self.epsilons, limits, low=-np.finfo(float).tiny)
        return [self._setting({"C": C, "epsilon": epsilon}) for epsilon in tubes for C in Cs]

    def _setting(self, params: dict[str, Any]) -> SettingChoice:
        machine = SVR(loss=self.loss, quantile=self.quantile, epsilon=params.get("epsilon", 0.0))
        return SettingChoice(Setting(regression_loss(machine), float(params["C"])), params)

    def _learn(self, y: Vector, weight: Vector) -> None:
        self._publish_names()
        self._learn_intervals(y, weight)
