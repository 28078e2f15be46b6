"""Mixin of machines that may be restricted to the span of landmarks: see `mercer.landmarks`."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from mercer._sklearn_compat import Interval, StrOptions, num_samples
from mercer.estimators.over_parts.rows_on_disk import (
    Targets,
    Unlabelled,
    check_given,
    find_targets,
    identity,
    set_features,
    source_parts,
)
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes, budget_bytes
from mercer.gram.operator import Data
from mercer.kernels import Kernel
from mercer.kernels.features import Vector, stack_samples
from mercer.parts.layout import Parts
from mercer.parts.linear_part import Statement
from mercer.problems.clock import Clock
from mercer.problems.solution import Certificate, Options, Solution, combine
from mercer.sources.checkpoint import Checkpoint
from mercer.sources.row_source import RowSource
from mercer.validation import thread_count, validate_landmarks, validate_weights

if TYPE_CHECKING:
    from mercer.landmarks.growth import GrowthRound, LandmarkOptions
    from mercer.landmarks.landmark_solver import LandmarkSolver
    from mercer.landmarks.over_parts import PartsSolution
    from mercer.landmarks.saved_growth import SavedGrowth
    from mercer.parts.kernel_solver import KernelPartsSolution

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
    "checkpoint": [str, PathLike, None],
}
# share of the available memory for cache_size="auto"
SHARE_OF_MEMORY = 0.4
# share of the memory for rows on disk that an exact machine's pool and its copies take
POOL_SHARE = 0.25
# allowed values of some parameters if rows are read block by block
IN_BLOCKS: dict[str, tuple[Any, ...]] = {
    "probability": (False, "deprecated"),
    "solver": ("auto", "decomposition"),
    "trace": (False,),
    "warm_start": (False,),
}
# what the user can do if growth ended before landmark_tol was met
ADVICE = {
    "max_landmarks": "Raise max_landmarks (now {most}) or landmark_tol, or use landmarks=None for the exact machine.",
    "rounding": "All other samples depend on these, within the precision of the factor. Use precision='float64', or "
    "landmarks=None for the exact machine.",
    "samples": "All samples are landmarks. Use precision='float64', or landmarks=None for the exact machine.",
    "memory": "More landmarks do not fit into the memory. Raise cache_size or landmark_tol, or use fewer samples.",
}


class LandmarkMixin:
    """Landmarks of an estimator: their parameters, their solver and the fitted attributes."""

    # estimators without these parameters have exact machines only
    landmarks: Any = None
    landmark_tol: float = 1e-2
    max_landmarks: int = 2000
    polish: bool = False
    checkpoint: Any = None
    _given_pool: Any = None
    # whether y is used
    _uses_targets: ClassVar[bool] = True
    cache_size: Any
    n_jobs: Any
    # attributes that the estimator itself publishes
    _kernel: Kernel
    n_features_in_: int
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
        """How often given landmarks are stored: LIBSVM's layout finds a coefficient by the class of its sample."""
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
        """The landmarks that were given as samples, with the kernel of the training samples; None if there are none."""
        if isinstance(self.landmarks, bool):  # Python counts it as a number
            raise InvalidInputError(
                f'landmarks={self.landmarks} was given: use "auto", a number of landmarks, samples, or None for the '
                "exact machine."
            )
        if isinstance(self.landmarks, str | Integral):
            return None
        if data.kernel.domain == "matrix":
            raise InvalidInputError(
                "With a precomputed kernel or a kernel function the landmarks are chosen among the training samples. "
                'Use landmarks="auto", or the number of landmarks.'
            )
        given = validate_landmarks(self, self.landmarks, data.kernel.domain)
        return Data(data.kernel, given, num_samples(given), data.psd)

    def _add_given_landmarks(self, data: Data, y: Vector, weight: Vector) -> tuple[Data, Vector, Vector]:
        """Append given landmarks to the samples, with weight 0, so that a machine over them is one over all samples."""
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
        """The indices of one copy of the given landmarks among the n samples, which include all copies."""
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
        if not grown:
            return
        if any(hasattr(s, "landmarks") for s in grown):
            vectors = self.support_vectors_
            self._publish_growth(grown, vectors if num_samples(vectors) else self.support_, len(self.support_))
        else:
            self._publish_rounds(grown)

    def _publish_growth(self, solutions: list[Any], landmarks: Any, count: int) -> None:
        """Set the attributes of landmark machines."""
        self.landmarks_, self.n_landmarks_ = landmarks, count
        self._publish_rounds(solutions)

    def _publish_rounds(self, solutions: list[Any]) -> None:
        """Set the record of growth, which polished machines have, too."""
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

    # ---- rows in parts -------------------------------------------------------------------------------------------

    def _fit_source(self, source: RowSource, y: Any, sample_weight: Any, clock: Clock) -> None:
        """Fit rows on disk, block by block."""
        self._check_blockwise(source)
        labelled, classifies = self._uses_targets, is_classifier(self)
        check_given(self, source, y if labelled else None, sample_weight, labelled)
        set_features(self, source)
        targets: Targets | Unlabelled
        if labelled:
            targets = find_targets(self, source, y, sample_weight, classifies)
        else:
            targets = Unlabelled(None if sample_weight is None else validate_weights(sample_weight, source.n, source))
        threads = thread_count(self.n_jobs)
        if self.landmarks is None:
            parts = source_parts(source, targets, threads, reserved=POOL_SHARE)
        else:
            parts = source_parts(source, targets, threads, self._landmark_budget())
        checkpoint = None
        if self.checkpoint is not None:
            from mercer.landmarks.saved_growth import SavedGrowth

            n_classes = len(getattr(self, "classes_", ())) if classifies else 2
            known = identity(self, source, targets)
            checkpoint = Checkpoint(self.checkpoint, known, n_classes * (n_classes - 1) // 2, SavedGrowth.of)
        self._fit_parts(parts, clock, checkpoint)

    def _check_blockwise(self, source: RowSource) -> None:
        """Raise for parameters that need all rows in memory."""
        # the solver of landmarks checks the other parameters itself
        names = IN_BLOCKS if self.landmarks is None else ("probability",)
        for name in names:
            allowed = IN_BLOCKS[name]
            value = getattr(self, name, allowed[0])
            if value not in allowed:
                raise InvalidInputError(
                    f"{name}={value!r} needs all rows in memory, but {source.name} is read block by block. Use "
                    f"{name}={allowed[0]!r}, or give the rows to fit as an array."
                )

    def _fit_parts(self, parts: Parts, clock: Clock, checkpoint: Checkpoint | None = None) -> None:
        """Solve and publish the machine of rows in parts, whose targets are known."""
        raise NotImplementedError

    def _check_checkpoint(self, X: Any) -> None:
        """Raise if a checkpoint was given and cannot be used."""
        if self.landmarks is None or not isinstance(X, RowSource):
            raise InvalidInputError(
                f"checkpoint={str(self.checkpoint)!r} is for rows on disk with landmarks, but X is of type "
                f"{type(X).__name__} and landmarks is {'None' if self.landmarks is None else 'given'}. Open the rows "
                "with mercer.open_rows and use landmarks, or use checkpoint=None."
            )

    def _parts_kernel(self) -> Kernel:
        """The kernel that the parameters describe, not yet bound to samples."""
        raise NotImplementedError

    def _bind_parts(self, parts: Parts) -> LandmarkOptions | None:
        """Bind the kernel to all rows; returns how the landmarks are chosen, None for the exact machine."""
        if self.landmarks is None:
            from mercer.parts.bound_kernel import bind_to_parts as bind
        else:
            from mercer.landmarks.over_parts import bind_over_parts as bind
        self._kernel = bind(parts, self._parts_kernel())
        self._gamma = getattr(self._kernel, "gamma", 0.0)
        self._function_samples = None
        self.shape_fit_: Any = (parts.n, self.n_features_in_)
        if self.landmarks is None:
            return None
        self._given_pool = self._given_landmarks(Data(self._kernel, None, 0))
        choice = self._landmark_solver().options
        self._given_pool = None
        return choice

    def _solve_parts(
        self,
        parts: Parts,
        statement: Statement,
        options: Options,
        clock: Clock,
        choice: LandmarkOptions | None,
        checkpoint: Checkpoint | None = None,
        k: int = 0,
    ) -> PartsSolution | KernelPartsSolution:
        """Solve one machine, which is problem k of the checkpoint; the exact one if ``choice`` is None."""
        if choice is None:
            from mercer.parts.kernel_solver import solve_kernel_parts

            return solve_kernel_parts(parts, self._kernel, statement, options, clock)
        from mercer.landmarks.over_parts import solve_over_parts
        from mercer.landmarks.saved_growth import SavedGrowth

        problem = parts, self._kernel, statement, options, clock, choice
        if checkpoint is None:
            return solve_over_parts(*problem)
        model = checkpoint.model(k)
        saved = None if model is None else SavedGrowth.of(model)
        found = solve_over_parts(*problem, saved=saved, keep=partial(_keep, checkpoint, k))
        checkpoint.write()
        return found

    def _row_numbers(self, rows: Vector) -> Vector:
        """Numbers among all rows, as int32 wherever that suffices."""
        return rows.astype(np.int32 if self.shape_fit_[0] <= np.iinfo(np.int32).max else np.int64)

    def _parts_data(self, samples: Any, solutions: list[Any]) -> Data:
        """The landmarks, or the support vectors, as the samples of the model."""
        self._sparse = sp.issparse(samples)
        data = Data(self._kernel, samples, int(samples.shape[0]))
        data.evaluations.add(sum(solution.evaluations for solution in solutions))
        self.kernel_evaluations_ = data.evaluations.count
        return data


def _keep(checkpoint: Checkpoint, k: int, state: SavedGrowth) -> None:
    """Keep the state of problem k."""
    checkpoint.keep(k, state.arrays())
