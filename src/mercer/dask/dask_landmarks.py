"""The base of kernel machines over dask collections, by landmarks (`mercer.landmarks.over_parts`) or exact."""

from __future__ import annotations

from typing import Any, ClassVar

from mercer.dask.machine import DaskMachine, LazyValues
from mercer.estimators.landmark_machine import LandmarkMixin
from mercer.problems.clock import Clock


class DaskLandmarkMachine(LazyValues, LandmarkMixin, DaskMachine):
    """A kernel machine whose rows stay with the workers of a cluster."""

    _available: ClassVar[dict[str, Any]] = {
        "solver": "auto",
        "warm_start": False,
        "trace": False,
        "polish": False,
    }

    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        self._check_supported()
        parts = self._bring_parts(X, y, sample_weight)
        self._fit_parts(parts, clock)
        self._passes, self._traffic = parts.passes, parts.traffic
        self._warn_unfinished()
