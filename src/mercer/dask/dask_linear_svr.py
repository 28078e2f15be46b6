"""Linear support vector regression of dask collections."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import mercer.estimators.linear.linear_svr as local
from mercer.dask.dask_linear import DaskLinearMachine
from mercer.linear.linear_solution import LinearSolution
from mercer.parts.linear_part import Statement


class LinearSVR(DaskLinearMachine, local.LinearSVR):
    """Linear support vector regression of rows on the workers of a cluster, with the certificate of all rows.

    The same problem, model and certificate as `mercer.LinearSVR` on one array, to ``tol``, whatever the number of parts
    and workers.

    Parameters
    ----------
    epsilon, tol, C, loss, fit_intercept, intercept_scaling, dual, verbose, random_state, max_iter, quantile, penalty, \
l1_ratio, penalize_intercept, n_jobs, time_limit, warm_start, solver, rule : as in ``mercer.LinearSVR``.
        Only penalty="l2", solver="auto", warm_start=False and a finite C are available. ``n_jobs`` is not used: each
        worker has its own number of threads.
    checkpoint : path or None, default=None
        A file in which the client keeps the state of the fit: once a minute, when a problem is solved, and if the
        cluster fails. The same call continues from it.
    client : distributed.Client or None, default=None
        The client of the cluster; None for the one that was made last. It is not pickled with the model.

    Attributes
    ----------
    coef_, intercept_, certificate_, margin_, trace_, n_iter_, plan_, n_features_in_, feature_names_in_ : as in \
``mercer.LinearSVR``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mercer.dask import LinearSVR
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    >>> X = da.linspace(0, 6, 60, chunks=25)[:, None]
    >>> model = LinearSVR(penalize_intercept=False, tol=1e-8).fit(X, 2 * X[:, 0] + 1)
    >>> model.coef_.round(3), model.intercept_.round(3)
    (array([2.]), array([1.]))
    >>> client.close()
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **local.LinearSVR._parameter_constraints,
        **DaskLinearMachine._parameter_constraints,
    }
    _local = local.LinearSVR

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
        client: Any = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            tol=tol,
            C=C,
            loss=loss,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            dual=dual,
            verbose=verbose,
            random_state=random_state,
            max_iter=max_iter,
            quantile=quantile,
            penalty=penalty,
            l1_ratio=l1_ratio,
            penalize_intercept=penalize_intercept,
            n_jobs=n_jobs,
            time_limit=time_limit,
            warm_start=warm_start,
            solver=solver,
            rule=rule,
            checkpoint=checkpoint,
        )
        self.client = client

    def _statements(self) -> list[Statement]:
        return [self._statement()]

    def _publish_solutions(self, solutions: list[LinearSolution]) -> None:
        self._publish(solutions[0].w[None, :], np.array([solutions[0].intercept]), self._statement().bias)
        self.coef_ = self.coef_[0]
        self.n_iter_ = max(1, int(solutions[0].n_iter))
        self._publish_proof(solutions)
