"""Base class of machines with a loss over pairs of samples: parameters, options, the run and fitted attributes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mercer.estimators.base import norm
from mercer.estimators.loss_minimiser import LossMinimiser
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels.features import Vector
from mercer.ordering.pair_losses import PairSum
from mercer.ordering.pair_solver import solve_smooth
from mercer.problems.clock import Clock
from mercer.problems.solution import Options
from mercer.validation import thread_count


class PairMachine(LossMinimiser):
    """Base of RankSVC and SurvivalSVM."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        key: value
        for key, value in LossMinimiser._parameter_constraints.items()
        if key not in ("C", "class_weight", "fit_intercept")
    }
    # the name of the problem in the certificate
    _problem: ClassVar[str] = "squared hinge loss over pairs"

    def _options(self) -> Options:
        return Options(
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            time_limit=self.time_limit,
            budget=self._matrix_budget(),
            n_threads=thread_count(self.n_jobs),
        )

    def _minimise(self, data: Data, used: Vector, smooth: PairSum, fits_intercept: bool, clock: Clock) -> None:
        """Solve the problem of the samples ``used`` and publish the machine."""
        part = data if len(used) == data.n else data.take(used)
        start = getattr(self, "_warm", None) if self.warm_start else None
        solution = solve_smooth(part, smooth, fits_intercept, self._options(), clock, self._problem, start)
        self._warm = solution.beta if self.warm_start else None
        self.n_pairs_ = smooth.order.n_pairs
        b = float(solution.thresholds.sum())
        self._publish_function(data, used, solution.beta, b, norm(solution), solution)

    def _too_few_iterations(self, advice: str) -> str:
        if self.max_iter >= 0:
            return f"Solver terminated early (max_iter={self.max_iter}): raise max_iter or tol.  {advice}"
        weight, value = self._loss_weight()
        return (
            f"Solver terminated early: {weight}={value:g} makes the problem so stiff that conjugate gradients take "
            f"minutes. Lower {weight}, raise tol, or use fewer samples.  {advice}"
        )

    def _no_progress(self, advice: str) -> str:
        weight, value = self._loss_weight()
        return (
            f"Solver stopped where rounding allows no further progress: {weight}={value:g} is more than float64 "
            f"resolves here. Lower {weight}, or raise tol.  {advice}"
        )

    def _loss_weight(self) -> tuple[str, float]:
        """The parameter that weighs the losses, and its value."""
        name = next(name for name in ("C", "alpha") if name in self._get_param_names())
        return name, float(getattr(self, name))


def group_codes(groups: Any, n: int) -> Vector:
    """The number of each sample's group; 0 for all if ``groups`` is None."""
    if groups is None:
        return np.zeros(n, np.intp)
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise InvalidInputError(
            f"groups has the shape {labels.shape}, but X has {n} samples: give the group of each sample, such as its "
            "query."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InvalidInputError("groups contains NaN or infinity: give each sample the label of its group.")
    try:
        codes: Vector = np.unique(labels, return_inverse=True)[1]
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise InvalidInputError(
            f"groups mixes labels that cannot be compared ({kinds}): give all samples numbers, or all of them texts."
        ) from None
    return codes
