"""The base of kernel machines over dask collections, by landmarks (`mercer.landmarks.over_parts`) or exact."""

from __future__ import annotations

from typing import Any, ClassVar

from mercer.dask.cluster_checkpoint import open_checkpoint
from mercer.dask.machine import DaskMachine, LazyValues
from mercer.estimators.landmark_machine import LandmarkMixin
from mercer.exceptions import InvalidInputError
from mercer.landmarks.saved_growth import SavedGrowth
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
        if self.checkpoint is not None and self.landmarks is None:
            raise InvalidInputError(
                f"checkpoint={str(self.checkpoint)!r} needs landmarks: the exact machine over parts keeps no state. "
                "Use landmarks='auto' or checkpoint=None."
            )
        parts = self._bring_parts(X, y, sample_weight)
        n_classes = len(getattr(self, "classes_", (0, 1)))
        with open_checkpoint(self, parts, n_classes * (n_classes - 1) // 2, SavedGrowth.of) as checkpoint:
            self._fit_parts(parts, clock, checkpoint)
        self._passes, self._traffic = parts.passes, parts.traffic
        self._warn_unfinished()
