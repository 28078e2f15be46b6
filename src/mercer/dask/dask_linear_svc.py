"""Linear support vector classification of dask collections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import mercer.estimators.linear.linear_svc as local
from mercer.dask.dask_linear import DaskLinearMachine
from mercer.dask.machine import DaskClassifier
from mercer.estimators.linear.source_fit import one_vs_rest
from mercer.linear.linear_solution import LinearSolution
from mercer.losses.base import Vector
from mercer.parts.linear_part import Statement


@dataclass(frozen=True)
class ClassAgainstRest:
    """Turns class positions into ±1, and multiplies weights by class weights."""

    k: int
    of_class: Any
    several: bool

    def __call__(self, codes: Vector, weight: Vector) -> tuple[Vector, Vector]:
        """Targets and weights of one problem."""
        return one_vs_rest(codes.astype(np.intp), weight, self.of_class, self.k, self.several)


class LinearSVC(DaskClassifier, DaskLinearMachine, local.LinearSVC):
    """Linear support vector classification of rows on the workers of a cluster, with the certificate of all rows.

    The same problem, model and certificate as `mercer.LinearSVC` on one array, to ``tol``, whatever the number of parts
    and workers. Rows stay where they are; a step exchanges vectors and a matrix over the columns.

    Parameters
    ----------
    penalty, loss, dual, tol, C, multi_class, fit_intercept, intercept_scaling, class_weight, verbose, random_state, \
max_iter, l1_ratio, penalize_intercept, n_jobs, time_limit, warm_start, solver, rule : as in ``mercer.LinearSVC``.
        Only penalty="l2", multi_class="ovr", solver="auto", warm_start=False and a finite C are available. ``n_jobs``
        is not used: each worker has its own number of threads.
    checkpoint : path or None, default=None
        A file in which the client keeps the state of the fit: once a minute, when a problem is solved, and if the
        cluster fails. The same call continues from it.
    client : distributed.Client or None, default=None
        The client of the cluster; None for the one that was made last. It is not pickled with the model.

    Attributes
    ----------
    coef_, intercept_, classes_, class_weight_, certificate_, certificates_, margin_, trace_, n_iter_, plan_, \
n_features_in_, feature_names_in_ : as in ``mercer.LinearSVC``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mercer.dask import LinearSVC
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(300, 3))
    >>> model = LinearSVC().fit(X, X[:, 0] + X[:, 1] > 0)
    >>> model.certificate_.relative_gap <= 1e-4
    True
    >>> model.predict(X[:4])
    dask.array<...shape=(4,), dtype=bool...>
    >>> type(model.to_local()).__module__
    'mercer.estimators.linear.linear_svc'
    >>> client.close()
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **local.LinearSVC._parameter_constraints,
        **DaskLinearMachine._parameter_constraints,
    }
    _local = local.LinearSVC

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        verbose: Any = 0,
        random_state: Any = None,
        max_iter: int = 1000,
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
            penalty,
            loss,
            dual=dual,
            tol=tol,
            C=C,
            multi_class=multi_class,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            class_weight=class_weight,
            verbose=verbose,
            random_state=random_state,
            max_iter=max_iter,
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
        several = len(self.classes_) > 2
        positives = range(len(self.classes_)) if several else (1,)
        return [self._statement(ClassAgainstRest(k, self.class_weight_, several)) for k in positives]

    def _publish_solutions(self, solutions: list[LinearSolution]) -> None:
        several = len(solutions) > 1
        W, intercepts = np.array([s.w for s in solutions]), np.array([s.intercept for s in solutions])
        self._publish(W, intercepts, self._statement().bias)
        self.n_iter_ = max(1, *(int(s.n_iter) for s in solutions))
        self._publish_proof(solutions, of=f"{len(solutions)} one-vs-rest problems" if several else None)

    def decision_function(self, X: Any) -> Any:
        """Evaluate the decision function xw + b lazily, part by part.

        Parameters
        ----------
        X : dask array, dask frame or list of delayed parts
            The samples. Data in memory are evaluated at once.

        Returns
        -------
        scores : a collection of the same kind and parts
            One value per sample for two classes, else one per class.
        """
        several = len(self.to_local().classes_) > 2
        return self._predicted(X, local.LinearSVC.decision_function, np.float64, len(self.classes_) if several else 0)
