"""Support vector regression that learns the weights of a sum of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mercer.estimators.base import keep_parameters
from mercer.estimators.mkl.kernel_learner import LEARNED, KernelLearner, Tasks
from mercer.estimators.svr import SVR
from mercer.gram.operator import Data
from mercer.kernels.features import Matrix, Vector
from mercer.mkl.mixture import Task
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem
from mercer.problems.solution import Solution


class MKLRegressor(KernelLearner, SVR):
    """Support vector regression with a learnt kernel, a weighted sum of given kernels.

    The problem is that of ``MKLClassifier`` with a loss of ``SVR``.

    Parameters
    ----------
    kernels, weights, norm, normalize, C, tol, max_rounds, cache_size, warm_start : as in ``MKLClassifier``.
    epsilon, loss, quantile : as in ``SVR``.
    fit_intercept, shrinking, verbose, max_iter, n_jobs, time_limit, precision, solver : as in ``SVC``.

    Attributes
    ----------
    kernel_weights_, kernel_scales_, kernel_, alignments_, certificate_, n_rounds_, trace_ : as in ``MKLClassifier``.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, margin_, rkhs_norm_, certificates_,
    function_, kernel_evaluations_, fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_ : as in ``SVR``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MKLRegressor
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> model = MKLRegressor(["linear", "gaussian(gamma=10)"], C=10, epsilon=0.01).fit(X, 2 * X[:, 0])
    >>> model.kernel_weights_
    array([1., 0.])
    >>> model.kernel_.kernels
    (Linear(),)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            key: value
            for key, value in SVR._parameter_constraints.items()
            if key not in ("kernel", "degree", "gamma", "coef0")
        },
        **KernelLearner._parameter_constraints,
    }

    _solves_parts = False

    def __init__(
        self,
        kernels: Any = ("linear", "rbf"),
        *,
        weights: Any = LEARNED,
        norm: float = 1.0,
        normalize: str | None = "variance",
        C: float = 1.0,
        epsilon: float = 0.1,
        loss: str = "epsilon_insensitive",
        quantile: float = 0.5,
        tol: float = 1e-3,
        max_rounds: int = 200,
        fit_intercept: bool = True,
        shrinking: bool = True,
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

    def _ideal(self, y: Vector) -> Matrix:
        # scaled to the order of 1
        return (y / max(np.abs(y).max(), np.finfo(np.float64).tiny))[:, None]

    def _tasks(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> Tasks:
        used = np.flatnonzero(weight > 0)
        problem = DualProblem(None, self._loss(), y[used], float(self.C) * weight[used], bool(self.fit_intercept))
        return Tasks([Task(used, problem.qp)], problem)

    def _machines(
        self, tasks: Tasks, data: Data, tol: float, starts: Sequence[Vector | None], clock: Clock
    ) -> Sequence[Solution]:
        problem, (task,), (start,) = tasks.problems, tasks.tasks, starts
        part = data if len(task.index) == data.n else data.take(task.index)
        near = None if start is None else start / self._unit
        options = replace(self._options(), tol=tol)
        return [self._run(part, problem.loss, problem.y, problem.weight, options, clock, near)]

    def _publish(self, tasks: Tasks, data: Data, solutions: Sequence[Solution]) -> None:
        (task,), (solution,) = tasks.tasks, solutions
        self._publish_one(data, tasks.problems.loss, task.index, solution)

    def _steps(self, steps: Vector) -> Any:
        return int(steps[0])
