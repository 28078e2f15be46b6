"""Pegasos for dask collections."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import mercer.estimators.online.pegasos as local
from mercer._compiled.blas import one_blas_thread
from mercer.dask.machine import DaskClassifier
from mercer.dask.pegasos_over_parts import Problems, RunOverParts, drawn_rows, part_facts, weights_of
from mercer.estimators.base import keep_parameters
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels import Linear
from mercer.kernels.features import Vector
from mercer.online.sgd import Model, ObjectivePoint, Rule, Run
from mercer.problems.clock import Clock
from mercer.problems.solution import Certificate
from mercer.validation import resolve_kernel


class PegasosClassifier(DaskClassifier, local.PegasosClassifier):
    """Soft-SVM by stochastic subgradient descent over rows on the workers of a cluster.

    The run of `mercer.PegasosClassifier` for the same ``random_state``, whatever the number of parts and workers: the
    client draws from all rows, the workers send the drawn rows, and the client takes the steps. Every drawn row is
    sent, so give ``n_steps`` if there are many rows: the number of steps that a model needs does not depend on the
    number of rows. The objective and the certificate are those of all rows, which the workers compute. The client keeps
    two numbers for each row, and one more if rows have different weights or ``sampling="shuffled"``.

    Parameters
    ----------
    lam, kernel, degree, gamma, coef0, max_iter, n_steps, tol, step_size, average, batch_size, project, sampling, \
budget, fit_intercept, class_weight, cache_size, random_state, verbose, n_jobs, time_limit, trace : as in \
``mercer.PegasosClassifier``.
        Only kernel="linear", step_size="pegasos", project=False, budget=None and trace=False are available.
        ``cache_size`` is not used.
    client : distributed.Client or None, default=None
        The client of the cluster; None for the one that was made last. It is not pickled with the model.

    Attributes
    ----------
    coef_, intercept_, classes_, class_weight_, certificate_, certificates_, objective_trace_, n_iter_, t_, \
n_updates_, rkhs_norm_, n_features_in_, feature_names_in_ : as in ``mercer.PegasosClassifier``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mercer.dask import PegasosClassifier
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(300, 3))
    >>> model = PegasosClassifier(n_steps=20_000, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    >>> model.certificate_.relative_gap < 0.1
    True
    >>> model.predict(X[:4])
    dask.array<...shape=(4,), dtype=bool...>
    >>> client.close()
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **local.PegasosClassifier._parameter_constraints,
        **DaskClassifier._parameter_constraints,
    }
    _local = local.PegasosClassifier
    _balances_weights = False
    _available: ClassVar[dict[str, Any]] = {"step_size": "pegasos", "project": False, "budget": None, "trace": False}

    def __init__(
        self,
        lam: float = 0.01,
        *,
        kernel: Any = "linear",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        max_iter: int = 20,
        n_steps: int | None = None,
        tol: float | None = None,
        step_size: Any = "pegasos",
        average: str = "all",
        batch_size: int = 1,
        project: bool = False,
        sampling: str = "uniform",
        budget: int | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        cache_size: Any = "auto",
        random_state: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        trace: bool = False,
        client: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def _check_supported(self) -> None:
        super()._check_supported()
        if not isinstance(resolve_kernel(self.kernel, self.degree, self.gamma, self.coef0), Linear):
            raise InvalidInputError(
                f"kernel={self.kernel!r} is not available for Pegasos over rows on several computers: use "
                "kernel='linear', mercer.dask.SVC, or mercer.PegasosClassifier on one computer."
            )

    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        self._check_supported()
        self._parts = parts = self._bring_parts(X, y, sample_weight)
        try:
            self._facts = facts = parts.map(part_facts, self.class_weight_)
            ends = np.cumsum([fact.n for fact in facts])
            starts = {fact.number: int(end) - fact.n for fact, end in zip(facts, ends, strict=True)}
            self._problems = Problems(self._n_problems, self.class_weight_, starts)
            (row, *_), *_ = parts.map(drawn_rows, self._problems, np.array([0]))
            data = self._bind(row, parts.n)
            equal = min(fact.least for fact in facts) == max(fact.most for fact in facts)
            weight = (
                np.broadcast_to(facts[0].least, parts.n)
                if equal
                else np.concatenate(parts.map(weights_of, self.class_weight_))
            )
            with one_blas_thread():
                self._publish_run(self._train(data, np.empty(0), weight, clock), row)
            self._passes, self._traffic = parts.passes, parts.traffic
        finally:
            del self._parts
            self.__dict__.pop("_facts", None)
            self.__dict__.pop("_problems", None)
        self._warn_unfinished()

    def _weighted(self, codes: Vector, weight: Vector) -> Vector:
        return weight  # the parts have multiplied the weights of the classes

    def _begin(
        self,
        data: Data,
        codes: Vector,
        weight: Vector,
        step: Vector,
        rule: Rule,
        clock: Clock | None = None,
        stored: bool = True,
    ) -> Run:
        run = RunOverParts(self._parts, self._problems, self._facts, weight, rule)
        if self.sampling == "shuffled":
            run.size, run.total = float(np.count_nonzero(weight)), float(weight.sum())
        return run

    def _judged(
        self, run: Run, seen: list[tuple[int, Model]], psd: bool, n_threads: int
    ) -> tuple[list[ObjectivePoint], list[Certificate]]:
        assert isinstance(run, RunOverParts)
        return run.judged(seen)

    def decision_function(self, X: Any) -> Any:
        """Evaluate the decision function ⟨w, x⟩ + b lazily, part by part.

        Parameters
        ----------
        X : dask array, dask frame or list of delayed parts
            The samples. Data in memory are evaluated at once.

        Returns
        -------
        scores : a collection of the same kind and parts
            One value per sample for two classes, else one per class.
        """
        k = len(self.to_local().classes_)
        return self._predicted(X, local.PegasosClassifier.decision_function, np.float64, 0 if k == 2 else k)
