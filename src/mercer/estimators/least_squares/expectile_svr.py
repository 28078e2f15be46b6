"""ExpectileSVR: expectiles of y given x, by asymmetric least squares in the space of a kernel."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from mercer._sklearn_compat import Interval
from mercer.erm.convex_losses import Expectile
from mercer.erm.expectiles import solve_expectile
from mercer.estimators.base import keep_parameters, norm
from mercer.estimators.loss_minimiser import LossMinimiser
from mercer.estimators.score_mixins import NumbersMixin
from mercer.gram.operator import Data
from mercer.kernels.features import Vector
from mercer.problems.clock import Clock
from mercer.validation import real_targets


class ExpectileSVR(NumbersMixin, LossMinimiser):
    """Expectile regression: minimise ½|f|² + Σ Cᵢ |τ − 1{yᵢ < f(xᵢ) + b}| (yᵢ − f(xᵢ) − b)².

    The τ-expectile is to the mean what the τ-quantile is to the median: errors above the function are weighted τ,
    errors below it 1 − τ (Newey & Powell, Econometrica 55, 1987). In contrast to a quantile it depends on how far the
    samples lie outside. For τ = ½ this is kernel ridge regression with λ = 1/C and an intercept.

    The solver is Newton's method: a weighted ridge regression for each change of the residuals' signs, usually 4 to 10,
    by conjugate gradients, or by a Cholesky factor where C is so large that it pays.

    Parameters
    ----------
    expectile : float, default=0.5
        τ in (0, 1).
    C : float, default=1.0
        Weight of the loss. Finite.
    kernel, degree, gamma, coef0 : as in ``SVC``.
    fit_intercept : bool, default=True
        Whether there is a b, which is not penalised.
    tol : float, default=1e-6
        The relative duality gap at which the fit ends.
    max_iter : int, default=-1
        Steps of Newton's method at most, -1 for no limit.
    cache_size : float or "auto", default="auto"
        Memory for the kernel matrix in MB; "auto" is half of the available memory. A larger matrix is not stored.
    n_jobs, time_limit, verbose : as in ``SVC``.

    Attributes
    ----------
    certificate_ : Certificate
        Primal value, dual value and gap of the objective above.
    dual_coef_ : ndarray of shape (1, n_support)
        The coefficients β that are not 0: all but those of samples on the function.
    intercept_ : ndarray of shape (1,)
        The intercept b.
    n_iter_ : int
        Steps of Newton's method.
    support_, support_vectors_, n_support_, rkhs_norm_, coef_, function_, trace_, kernel_evaluations_, fit_status_,
    shape_fit_, n_features_in_, feature_names_in_ : as in ``SVR``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import ExpectileSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (200, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=200)
    >>> low, high = (ExpectileSVR(tau, C=10.0).fit(X, y) for tau in (0.1, 0.9))
    >>> bool((low.predict(X) < high.predict(X)).all())
    True
    >>> high.certificate_.relative_gap < 1e-6
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            key: value
            for key, value in LossMinimiser._parameter_constraints.items()
            if key not in ("warm_start", "class_weight")
        },
        "expectile": [Interval(Real, 0.0, 1.0, closed="neither")],
    }
    _measure: ClassVar[str] = "relative gap"

    def __init__(
        self,
        expectile: float = 0.5,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: Any = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        return real_targets(y)

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        used = np.flatnonzero(weight > 0)
        part = data if len(used) == data.n else data.take(used)
        C, fits = float(self.C) * weight[used], bool(self.fit_intercept)
        solution = solve_expectile(part, y[used], C, Expectile(float(self.expectile)), fits, self._options(), clock)
        intercept = float(solution.thresholds.sum())
        self._publish_function(data, used, solution.beta, intercept, norm(solution), solution)
