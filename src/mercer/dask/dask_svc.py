"""Support vector classification of dask collections, by landmarks or exact."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import mercer.estimators.svc as local
from mercer.dask.dask_landmarks import DaskLandmarkMachine
from mercer.dask.machine import DaskClassifier
from mercer.estimators.base import keep_parameters
from mercer.exceptions import InvalidInputError


class SVC(DaskClassifier, DaskLandmarkMachine, local.SVC):
    """Support vector classification of rows on the workers of a cluster, certified for the exact machine of all rows.

    A machine in the span of landmarks, as `mercer.SVC` with ``landmarks``. Rows stay where they are, and so do their
    kernel values with the landmarks; drawn samples and a matrix over the landmarks are exchanged. More than two classes
    are solved one against one, each pair over the rows of its two classes.

    ``landmarks=None`` solves the exact machine: β and the decision values of a row stay on its worker. The client
    collects the worst violators of all parts, solves their problem, and sends their changes to all workers.

    Parameters
    ----------
    C, kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, class_weight, verbose, max_iter, \
decision_function_shape, break_ties, random_state, loss, fit_intercept, n_jobs, time_limit, warm_start, precision, \
solver, rule, trace, landmark_tol, max_landmarks, polish : as in ``mercer.SVC``.
        Only kernels on vectors, solver="auto", warm_start=False, trace=False, polish=False, probability=False and a
        finite C are available. ``cache_size`` and ``n_jobs`` are not used: each worker has its own memory and threads.
    landmarks : "auto", int, samples or None, default="auto"
        As in ``mercer.SVC``. None is the exact machine.
    checkpoint : path or None, default=None
        A file in which the client keeps the state of the fit: once a minute, when a problem is solved, and if the
        cluster fails. The same call continues from it.
    client : distributed.Client or None, default=None
        The client of the cluster; None for the one that was made last. It is not pickled with the model.

    Attributes
    ----------
    support_ : ndarray
        The indices of the landmarks, or of the support vectors, among all rows, in the order of the parts.
    support_vectors_, dual_coef_, intercept_, classes_, class_weight_, certificate_, certificates_, landmarks_, \
n_landmarks_, landmark_certificate_, growth_, margin_, rkhs_norm_, function_, trace_, n_iter_, n_features_in_, \
feature_names_in_ : as in ``mercer.SVC``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mercer.dask import SVC
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    >>> X = da.random.default_rng(0).normal(size=(1000, 2), chunks=(300, 2))
    >>> model = SVC().fit(X, X[:, 0] * X[:, 1] > 0)
    >>> model.certificate_.relative_gap <= 0.01
    True
    >>> model.predict(X[:4])
    dask.array<...shape=(4,), dtype=bool...>
    >>> client.close()
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **local.SVC._parameter_constraints,
        **DaskLandmarkMachine._parameter_constraints,
    }
    _local = local.SVC
    _balances_weights = False

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: Any = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        loss: str = "hinge",
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
        rule: str = "random",
        trace: bool = False,
        landmarks: Any = "auto",
        landmark_tol: float = 1e-2,
        max_landmarks: int = 2000,
        polish: bool = False,
        checkpoint: Any = None,
        client: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def _check_supported(self) -> None:
        super()._check_supported()
        if self.probability not in (False, "deprecated"):
            raise InvalidInputError(
                "probability=True is not available for rows on several computers: use probability=False."
            )

    def decision_function(self, X: Any) -> Any:
        """Evaluate the decision function lazily, part by part.

        Parameters
        ----------
        X : dask array, dask frame or list of delayed parts
            The samples. Data in memory are evaluated at once.

        Returns
        -------
        scores : a collection of the same kind and parts
            One value per sample for two classes, else one per class or per pair of classes, as in ``mercer.SVC``.
        """
        k = len(self.to_local().classes_)
        n_columns = 0 if k == 2 else k if self.decision_function_shape == "ovr" else k * (k - 1) // 2
        return self._predicted(X, local.SVC.decision_function, np.float64, n_columns)
