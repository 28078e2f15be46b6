"""Support vector regression: SVR with a given tube width ε, NuSVR with a bound nu on the fraction outside the tube."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import STEPWISE_PARAMETERS, KernelMachine, keep_parameters
from mercer.estimators.exact_updates.updates_mixin import UPDATABLE, MachineUpdatesMixin
from mercer.estimators.landmark_machine import LANDMARK_PARAMETERS
from mercer.estimators.score_mixins import NumbersMixin
from mercer.gram.operator import Data
from mercer.kernels.features import Vector
from mercer.losses import Loss, NuInsensitive
from mercer.losses.regression import regression_loss, tube
from mercer.problems.clock import Clock
from mercer.problems.solution import Solution
from mercer.validation import real_targets


class BaseSVR(NumbersMixin, KernelMachine):
    """Base of SVR and NuSVR: one problem with real targets."""

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        return real_targets(y)

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss of the problem."""

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        # samples of weight 0 are left out even if C is infinite
        factor = np.multiply(float(self.C), weight, out=np.zeros(data.n), where=weight > 0)
        self._fit_one(data, self._loss(), y, factor, clock)


class SVR(MachineUpdatesMixin, BaseSVR):
    """ε-support vector regression: minimise ½|w|² + Σ Cᵢ max(0, |yᵢ - f(xᵢ) - b| - ε).

    A larger ε gives fewer support vectors and a flatter function ([M5] "Effect of ε").

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol : as in ``SVC``.
    C : float, default=1.0
        Weight of the loss. With inf the result is the flattest function whose tube contains all samples.
    epsilon : float, default=0.1
        Half the width of the tube. Errors up to epsilon cost nothing.
    shrinking, cache_size, verbose, max_iter, fit_intercept, n_jobs, time_limit, warm_start, precision, solver, rule,
    trace : as in ``SVC``; the steps are those of β = α⁺ − α⁻.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "pinball"}, default="epsilon_insensitive"
        How errors are penalised. "epsilon_insensitive" and its square penalise errors beyond the tube. "pinball"
        costs quantile · (y - f) where f < y and (1 - quantile) · (f - y) where f > y, so the model estimates a quantile
        of y given x; it has no tube and ignores epsilon.
    quantile : float, default=0.5
        For loss="pinball": the quantile to estimate, in (0, 1). About this fraction of samples lies below the model.
    landmarks, landmark_tol, max_landmarks, polish, checkpoint, updatable : as in ``SVC``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = SVR(C=10, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.06)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive", "pinball"})],
        "quantile": [Interval(Real, 0.0, 1.0, closed="neither")],
        **STEPWISE_PARAMETERS,
        **LANDMARK_PARAMETERS,
        **UPDATABLE,
    }

    _solves_parts = True

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: Any = False,
        max_iter: int = -1,
        loss: str = "epsilon_insensitive",
        quantile: float = 0.5,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
        rule: str = "random",
        trace: bool = False,
        landmarks: Any = None,
        landmark_tol: float = 1e-2,
        max_landmarks: int = 2000,
        polish: bool = False,
        checkpoint: Any = None,
        updatable: bool = False,
    ) -> None:
        keep_parameters(self, locals())

    def _loss(self) -> Loss:
        return regression_loss(self)

    def _single_loss(self) -> tuple[Loss, float]:
        return self._loss(), float(self.C)


class NuSVR(BaseSVR):
    """ν-support vector regression: the width of the tube is learnt so that at most a fraction nu lies outside.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: an upper bound on the fraction of samples outside the tube, and a lower bound on the fraction of
        support vectors.
    C : float, default=1.0
        Weight of the loss.
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, verbose, max_iter, n_jobs, time_limit, warm_start,
    precision, solver : as in ``SVC``.

    Attributes
    ----------
    epsilon_ : float
        Half the width of the learnt tube.
    certificate_, support_, dual_coef_, intercept_, and others : as in ``SVR``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NuSVR
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = NuSVR(nu=0.3, C=10).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.0]]).shape
    (1,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{key: value for key, value in KernelMachine._parameter_constraints.items() if key != "fit_intercept"},
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }
    fit_intercept = True

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        verbose: Any = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
    ) -> None:
        keep_parameters(self, locals())

    def _loss(self) -> Loss:
        return NuInsensitive(float(self.nu))

    def _publish_one(self, data: Data, loss: Loss, used: Vector, solution: Solution) -> None:
        super()._publish_one(data, loss, used, solution)
        self.epsilon_ = tube(solution.thresholds)[0]
