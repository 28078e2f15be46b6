"""The bases of all machines over dask collections: their client, their parts, and the local model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from distributed import Client, default_client
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from mercer.dask.cluster_parts import ClusterParts
from mercer.dask.collections import Chunks, chunks_of, coded, numbered, predicted
from mercer.estimators.base import Machine
from mercer.exceptions import ClusterError, InvalidInputError
from mercer.losses.base import Vector
from mercer.validation import check_weighted_classes, class_weights


class OnCluster(BaseEstimator):  # type: ignore[misc]
    """The base of machines and searches over dask collections: a client, which is never pickled."""

    # the only value of some parameters
    _available: ClassVar[dict[str, Any]] = {}
    client: Any

    def _find_client(self) -> Client:
        """The client that was given, or the default one."""
        if self.client is not None:
            if not isinstance(self.client, Client):
                raise InvalidInputError(
                    f"client is of the type {type(self.client).__name__}: give a distributed.Client, or None."
                )
            return self._running(self.client)
        try:
            return self._running(default_client())
        except ValueError:
            raise ClusterError(
                "No client was found: make one first, such as client = distributed.Client(), or give client=."
            ) from None

    @staticmethod
    def _running(client: Client) -> Client:
        """The client. Raises if it is closed."""
        if client.status not in ("running", "connecting"):
            raise ClusterError(f"The client is {client.status}: make another one, and give it as client=.")
        return client

    def _check_supported(self) -> None:
        """Raise for parameters that need the rows in one place."""
        for name, value in self._available.items():
            found = getattr(self, name, value)
            if found != value:
                raise InvalidInputError(
                    f"{name}={found!r} is not available for rows on several computers: use {name}={value!r}, or "
                    f"mercer.{type(self).__name__} on one of them."
                )
        if not np.isfinite(getattr(self, "C", 1.0)):
            raise InvalidInputError("C=inf is not available for rows on several computers: give a finite C.")

    def __getstate__(self) -> Any:
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> Any:
        own = self.get_params(deep=False)
        client = own.pop("client")
        return type(self)(**{name: clone(value, safe=False) for name, value in own.items()}, client=client)


class DaskMachine(OnCluster, Machine):
    """A machine whose rows stay with the workers of a cluster."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {"client": "no_validation"}
    # the ordinary class with the same parameters
    _local: ClassVar[type[Any]]

    # ---- fit -----------------------------------------------------------------------------------------------------

    def _bring_parts(self, X: Any, y: Any, sample_weight: Any) -> ClusterParts:
        """X, y and weights of each part with one worker. Sets the number and the names of the columns."""
        client = self._find_client()
        chunks = chunks_of(client, X, y, sample_weight, has_classes=isinstance(self, DaskClassifier))
        first = next(fact for fact in chunks.facts if fact.n)
        self.n_features_in_ = first.d
        if first.names is not None:
            self.feature_names_in_ = np.array(first.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self._with_targets(chunks)

    def _with_targets(self, chunks: Chunks) -> ClusterParts:
        """The parts, targets as numbers. Classifiers code and set their classes."""
        return chunks.parts(numbered)

    # ---- the model -------------------------------------------------------------------------------------------------

    def to_local(self) -> Any:
        """The ordinary mercer estimator of this model: it predicts arrays, saves, exports and has the certificate.

        Returns
        -------
        model : the estimator of the same name in mercer
            With the same parameters and fitted attributes.
        """
        check_is_fitted(self)
        own = self.get_params(deep=False)
        for name in ("client", "checkpoint"):  # the local fit of an array has neither
            own.pop(name, None)
        model = self._local(**own)
        names = set(vars(self)) - set(own) - {"client", "checkpoint", "_passes", "_traffic", "_last_models"}
        for name in names:
            setattr(model, name, getattr(self, name))
        return model

    def _predicted(self, X: Any, function: Any, dtype: Any, n_columns: int) -> Any:
        """Lazily for a collection, at once for data in memory."""
        return predicted(X, function, self.to_local(), dtype, n_columns)


class LazyValues:
    """Lazy predictions of numbers. As the first base, it overrides the predictions of the local class."""

    _local: ClassVar[type[Any]]
    _predicted: Callable[..., Any]

    def predict(self, X: Any) -> Any:
        """The predicted values, computed lazily, part by part.

        Parameters
        ----------
        X : dask array, dask frame or list of delayed parts
            The samples. Data in memory are predicted at once.

        Returns
        -------
        y_pred : a collection of the same kind and parts
            The predictions.
        """
        return self._predicted(X, self._local.predict, np.float64, 0)


class DaskClassifier(DaskMachine):
    """A machine with classes."""

    classes_: Vector
    class_weight: Any
    # whether class_weight="balanced" counts the weights of the samples instead of the samples
    _balances_weights: ClassVar[bool] = True

    def predict(self, X: Any) -> Any:
        """The class labels, computed lazily, part by part.

        Parameters
        ----------
        X : dask array, dask frame or list of delayed parts
            The samples. Data in memory are predicted at once.

        Returns
        -------
        y_pred : a collection of the same kind and parts
            The labels.
        """
        return self._predicted(X, self._local.predict, self.to_local().classes_.dtype, 0)

    def _with_targets(self, chunks: Chunks) -> ClusterParts:
        """Targets as positions in ``classes_``, which one pass over all parts has found."""
        filled = [fact.labels for fact in chunks.facts if fact.labels is not None and fact.n]
        self.classes_ = np.unique(np.concatenate([part.classes for part in filled]))
        if len(self.classes_) < 2:
            raise InvalidInputError(
                "This solver needs samples of at least 2 classes in the data, but the data contains only one class: "
                f"{self.classes_[0]!r}"
            )
        weight, count = np.zeros(len(self.classes_)), np.zeros(len(self.classes_))
        for part in filled:
            at = np.searchsorted(self.classes_, part.classes)
            weight[at] += part.weights
            count[at] += part.counts
        codes = np.arange(len(self.classes_))
        balanced = weight if self._balances_weights else count
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes, balanced)
        check_weighted_classes(codes, weight, self.class_weight_)
        self._weight_of_class = weight * self.class_weight_
        return chunks.parts(partial(coded, classes=self.classes_))
