"""What a machine has in addition if it may be restricted to the span of landmarks: see `mercer.landmarks`."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer._sklearn_compat import Interval, StrOptions, num_samples
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes, budget_bytes
from mercer.gram.operator import Data
from mercer.kernels.features import Vector, stack_samples
from mercer.problems.solution import Certificate, Solution, combine
from mercer.validation import validate_samples

if TYPE_CHECKING:
    from mercer.landmarks.growth import GrowthRound
    from mercer.landmarks.landmark_solver import LandmarkSolver

LANDMARK_PARAMETERS: dict[str, Any] = {
    "landmarks": [
        StrOptions({"auto"}),
        Interval(Integral, 1, None, closed="left"),
        "array-like",
        "sparse matrix",
        None,
    ],
    "landmark_tol": [Interval(Real, 0.0, 1.0, closed="neither")],
    "max_landmarks": [Interval(Integral, 1, None, closed="left")],
    "polish": ["boolean"],
}
# of the available memory, for cache_size="auto"
SHARE_OF_MEMORY = 0.4
# what the user can do if growth ended before landmark_tol was met
ADVICE = {
    "max_landmarks": "Raise max_landmarks (now {most}) or landmark_tol, or use landmarks=None for the exact machine.",
    "rounding": "All other samples depend on these, within the precision of the factor. Use precision='float64', or "
    "landmarks=None for the exact machine.",
    "samples": "All samples are landmarks. Use precision='float64', or landmarks=None for the exact machine.",
    "memory": "More landmarks do not fit into the memory. Raise cache_size or landmark_tol, or use fewer samples.",
}


class LandmarkMixin:
    """Landmarks of an estimator: its parameters, the solver that they ask for, and what is published of it."""

    # estimators without these parameters have exact machines only
    landmarks: Any = None
    landmark_tol: float = 1e-2
    max_landmarks: int = 2000
    polish: bool = False
    _given_pool: Any = None
    cache_size: Any
    # what the estimator itself publishes
    certificate_: Certificate
    support_: Vector
    support_vectors_: Any

    def _landmark_budget(self) -> int:
        """Bytes for the factor of the landmarks."""
        if self.cache_size == "auto":
            return int(SHARE_OF_MEMORY * available_bytes())
        return budget_bytes(self.cache_size)

    @property
    def _copies(self) -> int:
        """How often given landmarks are stored: LIBSVM's layout knows a coefficient by the class of its sample."""
        return max(1, len(getattr(self, "classes_", ())) - 1)

    def _landmark_solver(self) -> LandmarkSolver:
        """The solver that ``landmarks`` asks for."""
        from mercer.landmarks.growth import LandmarkOptions
        from mercer.landmarks.landmark_solver import LandmarkSolver

        count = int(self.landmarks) if isinstance(self.landmarks, Integral) else None
        return LandmarkSolver(
            LandmarkOptions(
                count, self._given_pool, float(self.landmark_tol), int(self.max_landmarks), bool(self.polish)
            )
        )

    def _given_landmarks(self, data: Data) -> Data | None:
        """The landmarks that are samples, with the kernel of the training samples; None if there are none."""
        if isinstance(self.landmarks, str | Integral):
            return None
        if data.kernel.domain == "matrix":
            raise InvalidInputError(
                "With a precomputed kernel or a kernel function the landmarks are chosen among the training samples. "
                'Use landmarks="auto", or the number of landmarks.'
            )
        given, _ = validate_samples(self, self.landmarks, None, reset=False, domain=data.kernel.domain)
        return Data(data.kernel, given, num_samples(given), data.psd)

    def _add_given_landmarks(self, data: Data, y: Vector, weight: Vector) -> tuple[Data, Vector, Vector]:
        """Append copies of given landmarks to the samples, with weight 0: a machine of theirs is one of all samples."""
        self._given_pool = self._given_landmarks(data)
        if self._given_pool is None:
            return data, y, weight
        samples = data.samples
        for _ in range(self._copies):
            samples = stack_samples(samples, self._given_pool.samples)
        extra = np.zeros(self._copies * self._given_pool.n)
        stacked = Data(data.kernel, samples, data.n + len(extra), data.psd)
        stacked.evaluations = data.evaluations
        return stacked, np.concatenate([y, extra]), np.concatenate([weight, extra])

    def _slots(self, n: int, copy: int = 0) -> Vector:
        """The numbers of one copy of the given landmarks among the n samples with all copies."""
        m = self._given_pool.n
        first = n - (self._copies - copy) * m
        return np.arange(first, first + m)

    def _forget_landmarks(self) -> None:
        """Delete the attributes of an earlier fit."""
        for name in ("landmarks_", "n_landmarks_", "landmark_certificate_", "growth_", "_ended_by"):
            self.__dict__.pop(name, None)

    def _publish_landmarks(self, solutions: list[Solution]) -> None:
        """Set the attributes of landmark machines whose landmarks are the support vectors."""
        self._forget_landmarks()
        grown = [s for s in solutions if hasattr(s, "landmark_certificate")]
        if grown:
            vectors = self.support_vectors_
            self._publish_growth(grown, vectors if num_samples(vectors) else self.support_, len(self.support_))

    def _publish_growth(self, solutions: list[Any], landmarks: Any, count: int) -> None:
        """Set the attributes of landmark machines."""
        self.landmarks_, self.n_landmarks_ = landmarks, count
        self.landmark_certificate_: Certificate = combine([s.landmark_certificate for s in solutions])
        rounds: list[tuple[GrowthRound, ...]] = [s.growth for s in solutions]
        self.growth_: Any = list(rounds[0]) if len(rounds) == 1 else [list(r) for r in rounds]
        self._ended_by = [s.ended_by for s in solutions]

    def _warn_of_few_landmarks(self) -> None:
        """Warn if a limit has ended growth above landmark_tol."""
        reason = next((r for r in getattr(self, "_ended_by", ()) if r in ADVICE), None)
        if reason is None or self.certificate_.relative_gap <= self.landmark_tol:
            return
        from mercer.estimators.base import warn_user

        warn_user(
            f"{self.n_landmarks_} landmarks are too few for landmark_tol={self.landmark_tol:g}: the machine is "
            f"{self.certificate_}. {ADVICE[reason].format(most=self.max_landmarks)}",
            ConvergenceWarning,
        )
