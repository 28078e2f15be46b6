"""Novelty detection: OneClassSVM finds a small region that contains most of the samples."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from mercer._sklearn_compat import Interval
from mercer.estimators.base import KernelMachine, keep_parameters
from mercer.estimators.enclosing.region_mixin import RegionMixin
from mercer.estimators.exact_updates.updates_mixin import UPDATABLE, MachineUpdatesMixin
from mercer.estimators.landmark_machine import LANDMARK_PARAMETERS
from mercer.gram.operator import Data
from mercer.kernels.features import Vector
from mercer.losses import Loss, OneClass
from mercer.problems.clock import Clock
from mercer.problems.solution import Solution


class OneClassSVM(MachineUpdatesMixin, RegionMixin, KernelMachine):
    """Estimate the support of a distribution: minimise ½|w|² - ρ ν n + Σ max(0, ρ - f(xᵢ)) over w and ρ.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol : as in ``SVC``.
    nu : float, default=0.5
        In (0, 1]: an upper bound on the fraction of training samples outside the region, and a lower bound on the
        fraction of support vectors.
    shrinking, cache_size, verbose, max_iter, n_jobs, time_limit, warm_start, precision, solver :
        As in ``SVC``.
    landmarks, landmark_tol, max_landmarks, polish, checkpoint, updatable : as in ``SVC``.

    Attributes
    ----------
    offset_ : float
        The threshold ρ: ``decision_function = score_samples - offset_``.

    Examples
    --------
    >>> from mercer import OneClassSVM
    >>> X = [[0], [0.44], [0.45], [0.46], [1]]
    >>> OneClassSVM(gamma="auto").fit(X).predict(X)
    array([-1,  1,  1,  1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{key: value for key, value in KernelMachine._parameter_constraints.items() if key != "fit_intercept"},
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        **LANDMARK_PARAMETERS,
        **UPDATABLE,
    }
    fit_intercept = True
    _uses_targets = False
    _solves_parts = True

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: Any = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
        landmarks: Any = None,
        landmark_tol: float = 1e-2,
        max_landmarks: int = 2000,
        polish: bool = False,
        checkpoint: Any = None,
        updatable: bool = False,
    ) -> None:
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Find the region that contains most of the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        super().fit(X, None, sample_weight=sample_weight)
        return self

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        return np.ones(len(weight))

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        self._fit_one(data, OneClass(float(self.nu)), y, weight, clock)

    def _single_loss(self) -> tuple[Loss, float]:
        return OneClass(float(self.nu)), 1.0

    def _publish_one(self, data: Data, loss: Loss, used: Vector, solution: Solution) -> None:
        super()._publish_one(data, loss, used, solution)
        self.offset_ = -self._intercept_

    def _region_values(self, X: Any, labels_only: bool) -> Vector:
        return self._values(X, labels_only=labels_only)[:, 0]
