"""Base class of the machines of regularised loss minimisation: parameters, memory, and a warning of their own."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import KernelMachine, warn_user
from mercer.estimators.kernel_ridge import SHARE
from mercer.estimators.prediction import Expansion
from mercer.exceptions import NotPositiveSemidefiniteWarning
from mercer.gram.memory import AT_LEAST, available_bytes, budget_bytes
from mercer.gram.operator import Data
from mercer.kernels.features import Matrix, Vector, take_samples
from mercer.problems.solution import Options, Solution, Status
from mercer.validation import is_pairwise, thread_count


class LossMinimiser(KernelMachine):
    """Base of KernelERM, KernelLogisticRegression and the machines with squared or several losses."""

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

    def _options(self) -> Options:
        return Options(
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            time_limit=self.time_limit,
            budget=self._matrix_budget(),
            n_threads=thread_count(self.n_jobs),
        )

    def _matrix_budget(self) -> int:
        """Bytes for a kernel matrix: ``cache_size`` in MB, for "auto" half of the available memory."""
        if self.cache_size == "auto":
            return max(AT_LEAST, int(SHARE * available_bytes()))
        return budget_bytes(self.cache_size)

    def _publish_expansion(
        self,
        data: Data,
        used: Vector,
        solutions: Sequence[Solution],
        beta: Matrix,
        F: Matrix,
        intercept: Vector,
        of: str | None = None,
    ) -> None:
        """Publish the functions Σ βᵢ k(xᵢ, ·) over all samples ``used``, a column of β and of F = Kβ for each."""
        self.support_ = used.astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if is_pairwise(data.kernel) else take_samples(data.samples, used)
        self._n_support = np.array([len(used)], dtype=np.int32)
        self._support = Expansion.over(data.kernel, self.support_vectors_, self.support_, data.n)
        self.dual_coef_ = self._dual_coef_ = np.ascontiguousarray(beta.T)
        self.intercept_ = self._intercept_ = intercept
        self.rkhs_norm_ = np.sqrt(np.maximum(np.einsum("ij,ij->j", beta, F), 0.0))
        self.n_iter_: Any = max(solution.steps for solution in solutions)
        self._publish_proof(solutions, of)
        self.fit_status_ = int(any(status is not Status.CONVERGED for status in self._statuses))

    def _too_few_iterations(self, advice: str) -> str:
        return f"Solver terminated early (max_iter={self.max_iter}): raise max_iter or tol, or lower C.  {advice}"

    def _no_progress(self, advice: str) -> str:
        return f"Solver stopped where rounding allows no further progress: lower C, or raise tol.  {advice}"

    def _warn_unfinished(self) -> None:
        if Status.INDEFINITE not in self._statuses:
            super()._warn_unfinished()
            return
        warn_user(
            "The fit met a direction in which the kernel matrix is not positive semidefinite, so that its objective "
            f"has no minimum. The model is {self.certificate_}. Use another kernel, or repair_mercer.",
            NotPositiveSemidefiniteWarning,
        )
