"""The base of the linear machines over dask collections."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mercer.dask.cluster_checkpoint import open_checkpoint
from mercer.dask.machine import DaskMachine, LazyValues
from mercer.estimators.base import logger
from mercer.estimators.linear.linear_machine import LinearMachine
from mercer.estimators.linear.source_fit import keep_weights, weights_of
from mercer.linear.linear_solution import LinearSolution
from mercer.losses.base import Vector
from mercer.parts.linear_part import Statement
from mercer.parts.linear_solver import solve_parts
from mercer.problems.clock import Clock


class DaskLinearMachine(LazyValues, DaskMachine, LinearMachine):
    """A linear machine whose rows stay with the workers of a cluster."""

    _available: ClassVar[dict[str, Any]] = {
        "penalty": "l2",
        "solver": "auto",
        "multi_class": "ovr",
        "warm_start": False,
    }

    # in a search: the models of the last fit, from which the next fit starts; None to start anew
    _last_models: list[Vector] | None = None

    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        self._check_supported()
        parts, options = self._bring_parts(X, y, sample_weight), self._options()
        statements = self._statements()
        starts = (
            self._last_models if self._last_models is not None and len(self._last_models) == len(statements) else None
        )
        solutions = []
        with open_checkpoint(self, parts, len(statements), weights_of) as checkpoint:
            for k, statement in enumerate(statements):
                saved = None if checkpoint is None else checkpoint.model(k)
                start = saved["w"] if saved is not None else None if starts is None else starts[k]
                keep = None if checkpoint is None else partial(keep_weights, checkpoint, k)
                solutions.append(solve_parts(parts, statement, options, clock, start, keep))
                if checkpoint is not None:
                    checkpoint.write()
        if self._last_models is not None:
            self._last_models = [np.append(s.w, s.intercept) if statements[0].intercept else s.w for s in solutions]
        self._publish_solutions(solutions)
        self._passes, self._traffic = parts.passes, parts.traffic
        if self.verbose:
            logger.info("%s", self.plan_)
        self._warn_unfinished()

    def _statement(self, code: Any = None) -> Statement:
        """The problem of this machine."""
        free = bool(self.fit_intercept and not self.penalize_intercept)
        bias = float(self.intercept_scaling) if self.fit_intercept and self.penalize_intercept else 0.0
        return Statement(self._loss(), float(self.C), free, bias, code=code)

    @abstractmethod
    def _statements(self) -> list[Statement]:
        """The problems to solve."""

    @abstractmethod
    def _publish_solutions(self, solutions: list[LinearSolution]) -> None:
        """Set the fitted attributes."""
