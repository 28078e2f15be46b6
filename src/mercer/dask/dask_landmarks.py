"""The base of kernel machines over dask collections, by landmarks (`mercer.landmarks.over_parts`) or exact."""

from __future__ import annotations

from typing import Any, ClassVar

import scipy.sparse as sp

from mercer.dask.cluster_parts import ClusterParts
from mercer.dask.machine import DaskMachine, LazyValues
from mercer.estimators.landmark_machine import LandmarkMixin
from mercer.estimators.over_parts.exact_over_parts import fit_exact
from mercer.gram.operator import Data
from mercer.kernels import Kernel
from mercer.landmarks.landmark_solver import LandmarkOptions
from mercer.landmarks.over_parts import PartsSolution, bind_over_parts, solve_over_parts
from mercer.parts.linear_part import Statement
from mercer.problems.clock import Clock
from mercer.problems.solution import Options


class DaskLandmarkMachine(LazyValues, LandmarkMixin, DaskMachine):
    """A kernel machine whose rows stay with the workers of a cluster."""

    _available: ClassVar[dict[str, Any]] = {
        "solver": "auto",
        "warm_start": False,
        "trace": False,
        "polish": False,
    }
    _kernel: Kernel
    shape_fit_: Any

    def _fit_exact(self, parts: ClusterParts, clock: Clock) -> None:
        """Fit the machine without landmarks."""
        fit_exact(self, parts, clock)
        self._passes, self._bytes_received = parts.passes, parts.received
        self._warn_unfinished()

    def _bind_parts(self, parts: ClusterParts, kernel: Kernel) -> LandmarkOptions:
        """Bind the kernel to all rows; returns how the landmarks are chosen."""
        self._kernel = bind_over_parts(parts, kernel)
        self._gamma = getattr(self._kernel, "gamma", 0.0)
        self._function_samples = None
        self.shape_fit_ = (parts.n, self.n_features_in_)
        self._given_pool = self._given_landmarks(Data(self._kernel, None, 0))
        choice = self._landmark_solver().options
        self._given_pool = None
        return choice

    def _solve_parts(
        self, parts: ClusterParts, statement: Statement, options: Options, clock: Clock, choice: LandmarkOptions
    ) -> PartsSolution:
        """One machine."""
        return solve_over_parts(parts, self._kernel, statement, options, clock, choice)

    def _landmark_data(self, samples: Any, solutions: list[PartsSolution]) -> Data:
        """The landmarks as the samples of the local model."""
        self._sparse = sp.issparse(samples)
        data = Data(self._kernel, samples, int(samples.shape[0]))
        data.evaluations.add(sum(solution.evaluations for solution in solutions))
        self.kernel_evaluations_ = data.evaluations.count
        return data
