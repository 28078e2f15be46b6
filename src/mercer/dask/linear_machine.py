"""The base of the linear machines over dask collections."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from distributed import Client, Future, default_client
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mercer.dask.cluster_parts import ClusterParts
from mercer.dask.collections import Chunks, apply_lazily, chunks_of, is_collection
from mercer.estimators.linear.linear_machine import LinearMachine
from mercer.exceptions import ClusterError, InvalidInputError
from mercer.linear.solution import LinearSolution
from mercer.parts.linear_part import Statement
from mercer.parts.linear_solver import solve_parts
from mercer.problems.clock import Clock


class DaskLinearMachine(LinearMachine):
    """A linear machine whose rows stay with the workers of a cluster."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {"client": "no_validation"}
    # the ordinary class with the same parameters
    _local: ClassVar[type]

    client: Any

    # ---- fit -----------------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        self._check_supported()
        client = self._find_client()
        chunks = chunks_of(client, X, y, sample_weight)
        first = next(fact for fact in chunks.facts if fact.n)
        self.n_features_in_ = first.d
        if first.names is not None:
            self.feature_names_in_ = np.array(first.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        loaders = self._loaders(client, chunks)
        parts = ClusterParts(client, loaders, chunks.sizes)
        options = self._options()
        # the raw parts are no longer needed: their rows belong to the loaders now
        del chunks, loaders
        solutions = [solve_parts(parts, statement, options, clock) for statement in self._statements()]
        self._publish_solutions(solutions)
        self._passes, self._bytes_received = parts.passes, parts.received
        self._warn_unfinished()

    def _find_client(self) -> Client:
        """The client that was given, or the default one."""
        if self.client is not None:
            if not isinstance(self.client, Client):
                raise InvalidInputError(
                    f"client is of the type {type(self.client).__name__}: give a distributed.Client, or None."
                )
            return self.client
        try:
            return default_client()
        except ValueError:
            raise ClusterError(
                "No client was found: make one first, such as client = distributed.Client(), or give client=."
            ) from None

    def _check_supported(self) -> None:
        """Raise for parameters that need the rows in one place."""
        allowed = {"penalty": "l2", "solver": "auto", "multi_class": "ovr", "warm_start": False}
        for name, value in allowed.items():
            found = getattr(self, name, value)
            if found != value:
                raise InvalidInputError(
                    f"{name}={found!r} is not available for rows on several computers: use {name}={value!r}, or "
                    f"mercer.{type(self).__name__} on one of them."
                )
        if not np.isfinite(self.C):
            raise InvalidInputError("C=inf is not available for rows on several computers: give a finite C.")

    def _statement(self, code: Any = None) -> Statement:
        """The problem of this machine."""
        free = bool(self.fit_intercept and not self.penalize_intercept)
        bias = float(self.intercept_scaling) if self.fit_intercept and self.penalize_intercept else 0.0
        return Statement(self._loss(), float(self.C), free, bias, code=code)

    @abstractmethod
    def _loaders(self, client: Client, chunks: Chunks) -> list[Future]:
        """Futures of the loaders of all parts, targets coded. Sets ``classes_`` where there are classes."""

    @abstractmethod
    def _statements(self) -> list[Statement]:
        """The problems to solve."""

    @abstractmethod
    def _publish_solutions(self, solutions: list[LinearSolution]) -> None:
        """Set the fitted attributes."""

    # ---- the model -------------------------------------------------------------------------------------------------

    def to_local(self) -> Any:
        """The ordinary mercer estimator of this model: it predicts arrays, saves, exports and has the certificate.

        Returns
        -------
        model : mercer.LinearSVC or mercer.LinearSVR
            With the same parameters and fitted attributes.
        """
        check_is_fitted(self)
        own = self.get_params(deep=False)
        own.pop("client")
        model = self._local(**own)
        names = set(vars(self)) - set(own) - {"client", "_passes", "_bytes_received"}
        for name in names:
            setattr(model, name, getattr(self, name))
        return model

    def _predicted(self, X: Any, function: Any, dtype: Any, n_columns: int) -> Any:
        """Lazily for a collection, at once for data in memory."""
        model = self.to_local()
        return apply_lazily(X, function, model, dtype, n_columns) if is_collection(X) else function(model, X)

    def __getstate__(self) -> Any:
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> Any:
        own = self.get_params(deep=False)
        client = own.pop("client")
        return type(self)(**{name: clone(value, safe=False) for name, value in own.items()}, client=client)
