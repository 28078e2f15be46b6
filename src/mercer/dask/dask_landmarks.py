"""The base of the landmark machines over dask collections: see `mercer.landmarks.over_parts`."""

from __future__ import annotations

from typing import Any, ClassVar

from mercer.dask.machine import DaskMachine, LazyValues
from mercer.estimators.landmark_machine import LandmarkMixin
from mercer.exceptions import InvalidInputError
from mercer.problems.clock import Clock


class DaskLandmarkMachine(LazyValues, LandmarkMixin, DaskMachine):
    """A landmark machine whose rows stay with the workers of a cluster."""

    _available: ClassVar[dict[str, Any]] = {
        "solver": "auto",
        "warm_start": False,
        "trace": False,
        "polish": False,
    }

    def _check_supported(self) -> None:
        if self.landmarks is None:
            raise InvalidInputError(
                "landmarks=None asks for the exact machine, which is not available for rows on several computers. Use "
                f'landmarks="auto" with the landmark_tol that you need, or mercer.{type(self).__name__} on one of them.'
            )
        super()._check_supported()

    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        self._check_supported()
        parts = self._bring_parts(X, y, sample_weight)
        self._fit_parts(parts, clock)
        self._passes, self._bytes_received = parts.passes, parts.received
        self._warn_unfinished()
