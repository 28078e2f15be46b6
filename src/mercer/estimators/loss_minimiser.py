"""What the machines of regularised loss minimisation share: parameters, memory, and a warning of their own."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import KernelMachine, warn_user
from mercer.estimators.kernel_ridge import SHARE
from mercer.exceptions import NotPositiveSemidefiniteWarning
from mercer.gram.memory import AT_LEAST, available_bytes, budget_bytes
from mercer.problems.solution import Status


class LossMinimiser(KernelMachine):
    """Base of KernelERM and KernelLogisticRegression."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            key: KernelMachine._parameter_constraints[key]
            for key in (
                "kernel", "degree", "gamma", "coef0", "tol", "cache_size", "verbose", "fit_intercept", "n_jobs",
                "time_limit", "warm_start",
            )
        },
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
    }  # fmt: skip

    def _matrix_budget(self) -> int:
        """Bytes for a kernel matrix: ``cache_size`` in MB, for "auto" half of the available memory."""
        if self.cache_size == "auto":
            return max(AT_LEAST, int(SHARE * available_bytes()))
        return budget_bytes(self.cache_size)

    def _warn_unfinished(self) -> None:
        if Status.INDEFINITE not in self._statuses:
            super()._warn_unfinished()
            return
        warn_user(
            "The fit met a direction in which the kernel matrix is not positive semidefinite, so that its objective "
            f"has no minimum. The model is {self.certificate_}. Use another kernel, or repair_mercer.",
            NotPositiveSemidefiniteWarning,
        )
