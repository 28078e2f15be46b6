"""Linear support vector regression, and quantile regression."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import keep_parameters
from mercer.estimators.linear.linear_machine import LinearMachine, Prepared, Warm, linear_problem, wrong_scale
from mercer.estimators.linear.source_fit import constant_feature
from mercer.estimators.score_mixins import NumbersMixin
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Vector
from mercer.linear.linear_solution import LinearSolution
from mercer.losses import Loss
from mercer.losses.regression import regression_loss
from mercer.problems.clock import Clock
from mercer.problems.solution import Status
from mercer.validation import real_targets


class LinearSVR(NumbersMixin, LinearMachine):
    """Linear support vector regression: minimise P(w) + Σ Cᵢ ℓ(yᵢ, xᵢ·w + b).

    Parameters and attributes have the same meaning as in scikit-learn; additional ones are described below. Every
    combination of loss, penalty and intercept is supported. ``tol`` bounds the relative duality gap: the objective of
    the model is within this fraction of the optimum.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half the width of the tube. Errors up to epsilon cost nothing.
    tol, C, fit_intercept, intercept_scaling, dual, verbose, random_state, max_iter : as in ``LinearSVC``.
        With ``C=inf`` the result is the flattest function whose tube contains all samples.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "pinball"}, default="epsilon_insensitive"
        How errors are penalised. "epsilon_insensitive" and its square penalise errors beyond the tube. "pinball"
        costs quantile · (y - f) where f < y and (1 - quantile) · (f - y) where f > y, so the model estimates a quantile
        of y given x; it has no tube and ignores epsilon.
    quantile : float, default=0.5
        For loss="pinball": the quantile to estimate, in (0, 1). About this fraction of samples lies below the model.
    penalty, l1_ratio, penalize_intercept, n_jobs, time_limit, warm_start, solver, rule, checkpoint : as in
    ``LinearSVC``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights w.
    intercept_ : ndarray of shape (1,) or float
        b; 0.0 with ``fit_intercept=False``.
    certificate_, margin_, trace_, n_iter_, plan_, n_features_in_, feature_names_in_ : as in ``LinearSVC``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LinearSVR
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = LinearSVR(penalize_intercept=False, tol=1e-8).fit(X, 2 * X[:, 0] + 1)
    >>> model.coef_.round(3), model.intercept_.round(3)
    (array([2.]), array([1.]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearMachine._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive", "pinball"})],
        "quantile": [Interval(Real, 0.0, 1.0, closed="neither")],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: Any = "auto",
        verbose: Any = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        quantile: float = 0.5,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        penalize_intercept: bool = True,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        solver: str = "auto",
        rule: str = "random",
        checkpoint: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        y = real_targets(y)
        with np.errstate(over="ignore"):
            if not np.isfinite(y @ y):
                reason = "too large: the squares have no finite sum"
                raise wrong_scale("y", float(np.abs(y).max()), reason, "Divide y by a constant.")
        return y

    def _loss(self) -> Loss:
        return regression_loss(self)

    def _solve(self, data: Prepared, warm: Warm | None, clock: Clock) -> Sequence[LinearSolution]:
        self._check_hard_margin(data)
        solutions = self._run_all([linear_problem(self, data.rows, self._loss(), data.y, data.weight)], warm, clock)
        self._check_finite(data, solutions)
        if solutions[0].status is Status.UNBOUNDED:
            raise InvalidInputError(
                f"No linear function keeps all samples within the tube, which C={self.C:g} requires: the dual is "
                "unbounded. Use a finite C, a larger epsilon, or SVR with a kernel."
            )
        self._publish_one(solutions, data.rows.bias)
        return solutions

    def _publish_one(self, solutions: Sequence[LinearSolution], bias: float) -> None:
        """Set the fitted attributes."""
        self._publish(solutions[0].w[None, :], np.array([solutions[0].intercept]), bias)
        self.coef_ = self.coef_[0]
        self.n_iter_ = max(1, int(solutions[0].n_iter))
        self._publish_proof(solutions)

    def _publish_blocks(self, solutions: Sequence[LinearSolution]) -> None:
        self._publish_one(solutions, constant_feature(self))
