"""Support vector classification of dask collections, by landmarks or exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

import mercer.estimators.svc as local
from mercer.dask.dask_landmarks import DaskLandmarkMachine
from mercer.dask.machine import DaskClassifier
from mercer.estimators.base import keep_parameters
from mercer.estimators.over_parts.exact_over_parts import PairOfClasses
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import take_samples
from mercer.landmarks.over_parts import PartsSolution
from mercer.losses.base import Loss
from mercer.parts.linear_part import Statement
from mercer.parts.linear_run import stacked
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Solution
from mercer.svm.batch import OneVsOne, class_pairs
from mercer.validation import resolve_kernel


class SVC(DaskClassifier, DaskLandmarkMachine, local.SVC):
    """Support vector classification of rows on the workers of a cluster, certified for the exact machine of all rows.

    A machine in the span of landmarks, as `mercer.SVC` with ``landmarks``. Rows stay where they are, and so do their
    kernel values with the landmarks; drawn samples and a matrix over the landmarks are exchanged. More than two classes
    are solved one against one, each pair over the rows of its two classes.

    ``landmarks=None`` solves the exact machine: β and the decision values of a row stay with it, the worst violators of
    all parts come to the client, which solves their problem, and their changes go to all workers.

    Parameters
    ----------
    C, kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, class_weight, verbose, max_iter, \
decision_function_shape, break_ties, random_state, loss, fit_intercept, n_jobs, time_limit, warm_start, precision, \
solver, rule, trace, landmark_tol, max_landmarks, polish : as in ``mercer.SVC``.
        Only kernels on vectors, solver="auto", warm_start=False, trace=False, polish=False, probability=False and a
        finite C are available. ``cache_size`` and ``n_jobs`` are not used: each worker has its own memory and threads.
    landmarks : "auto", int, samples or None, default="auto"
        As in ``mercer.SVC``. None is the exact machine.
    client : distributed.Client or None, default=None
        The client of the cluster; None for the one that was made last. It is not pickled with the model.

    Attributes
    ----------
    support_ : ndarray
        The numbers of the landmarks, or the support vectors, among all rows, in the order of the parts.
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
        client: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def _check_supported(self) -> None:
        super()._check_supported()
        if self.probability not in (False, "deprecated"):
            raise InvalidInputError(
                "probability=True is not available for rows on several computers: use probability=False."
            )

    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        self._check_supported()
        parts = self._bring_parts(X, y, sample_weight)
        if self.landmarks is None:
            self._fit_exact(parts, clock)
            return
        choice = self._bind_parts(parts, resolve_kernel(self.kernel, self.degree, self.gamma, self.coef0))
        loss, C = self._loss()
        options, solved = self._options(), []
        for i, j in class_pairs(len(self.classes_)):
            found = None
            if min(self._weight_of_class[i], self._weight_of_class[j]) > 0:
                code = PairOfClasses(i, j, self.class_weight_)
                statement = Statement(loss, C, bool(self.fit_intercept), code=code)
                found = self._solve_parts(parts, statement, options, clock, choice)
                if choice.given is not None:
                    # LIBSVM's layout knows a coefficient by a class: a copy of the given ones for each class
                    found = replace(found, rows=i * choice.given.n + found.rows, targets=np.ones(len(found.rows)))
            solved.append(found)
        self._publish_parts(solved, loss, options, clock)
        self._passes, self._bytes_received = parts.passes, parts.received
        self._warn_unfinished()

    def _publish_parts(self, solved: list[PartsSolution | None], loss: Loss, options: Options, clock: Clock) -> None:
        """Publish the machines of all pairs with the landmarks of all of them as the samples."""
        pairs = class_pairs(len(self.classes_))
        found = [(pair, one) for pair, one in zip(pairs, solved, strict=True) if one is not None]
        rows, first = np.unique(np.concatenate([one.rows for _, one in found]), return_index=True)
        classes = np.concatenate([np.where(one.targets > 0, *pair) for pair, one in found])[first]
        samples = take_samples(stacked([one.samples for _, one in found]), first)
        members = [np.flatnonzero(classes == c) for c in range(len(self.classes_))]
        data = self._landmark_data(samples, [one for _, one in found])
        machines: list[Solution | None] = []
        for (i, j), one in zip(pairs, solved, strict=True):
            if one is None:
                machines.append(None)
                continue
            own = np.concatenate([members[i], members[j]])
            place = np.empty(len(rows), np.intp)
            place[own] = np.arange(len(own))
            machines.append(replace(one, landmarks=place[np.searchsorted(rows, one.rows)], pool=len(own)))
        self._probA = self._probB = np.empty(0)
        self._warm = None
        problems = OneVsOne(data, members, loss, np.zeros(data.n), bool(self.fit_intercept), options, clock)
        self._publish_pairs(problems, machines)
        self.support_ = rows[self.support_]

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
