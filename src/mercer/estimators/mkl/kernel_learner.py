"""The base class of MKLClassifier and MKLRegressor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import KernelMachine, warn_user
from mercer.estimators.parameters import KernelParameters
from mercer.estimators.psd_check import find_indefinite
from mercer.exceptions import InvalidInputError, NearDiagonalWarning, NotPositiveSemidefiniteWarning
from mercer.gram.memory import available_bytes, budget_bytes
from mercer.gram.operator import Data
from mercer.kernels import Kernel, LearnedKernel, Precomputed, PrecomputedLayer
from mercer.kernels.features import Matrix, Vector
from mercer.kernels.mercer_check import MOST_SAMPLES, NEAR_DIAGONAL, offdiagonal_ratio
from mercer.mkl.alignment import NO_SPREAD, Alignments, alignments, best_alignment
from mercer.mkl.grams import SeveralGrams
from mercer.mkl.mixture import Mixture, MixtureSolver, Task
from mercer.mkl.mkl_problem import ball_norm
from mercer.problems.clock import Clock
from mercer.problems.solution import Solution, Status
from mercer.validation import (
    check_pairwise_kernel,
    is_pairwise,
    resolve_kernels,
    square_matrix,
    thread_count,
    validate_samples,
    validate_stack,
)

# fraction of the available memory for the kernel matrices
SHARE = 0.5
# warn about a near-diagonal matrix only with at least this many samples
ENOUGH = 20
# with a time limit, the largest fractions of it for computing stored matrices, and for scales and alignments; the
# smallest number of samples for the latter
MATRICES_SHARE, STATISTICS_SHARE, FEWEST_COUNTED = 0.05, 0.05, 200

LEARNED, ALIGNMENT, INDEPENDENT, UNIFORM = "learned", "alignment", "independent_alignment", "uniform"


class Tasks(NamedTuple):
    """The SVM problems that share the learnt kernel, and the estimator's own description of them."""

    tasks: Sequence[Task]
    problems: Any


class KernelLearner(KernelMachine):
    """Base of MKLClassifier and MKLRegressor: kernels, their scales, and the optimisation of their weights.

    Put it before the base class SVC or SVR.
    """

    _measure: ClassVar[str] = "relative gap"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernels": [str, callable, Kernel, list, tuple],
        "weights": [StrOptions({LEARNED, ALIGNMENT, INDEPENDENT, UNIFORM}), "array-like"],
        "norm": [Interval(Real, 1.0, None, closed="both")],
        "normalize": [StrOptions({"variance", "trace"}), None],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
    }

    kernels: Any
    weights: Any

    # ---- parameters ------------------------------------------------------------------------------------------

    @property
    def kernel(self) -> Any:
        """The unweighted sum of all kernels; None if the parameter is invalid."""
        try:
            found = resolve_kernels(self.kernels)
            return LearnedKernel(found, (1.0,) * len(found))
        except InvalidInputError:
            return None

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name; ``kernels`` can only be replaced as a whole."""
        return super(KernelParameters, self).set_params(**params)

    # ---- samples and kernels ---------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        domain = self._domain()
        if domain == "matrix":
            return validate_stack(self, X, y, reset=reset)
        return validate_samples(self, X, y, reset=reset, domain=domain)

    def _bind(self, X: Any, n: int) -> Data:
        kernels = resolve_kernels(self.kernels)
        self._function_samples = None
        if getattr(X, "ndim", 2) == 3 and kernels == (Precomputed(),):
            kernels = tuple(PrecomputedLayer(m) for m in range(X.shape[2]))
        for kernel in kernels:
            if is_pairwise(kernel):
                check_pairwise_kernel(kernel)
        if self._domain() == "matrix":
            for m in range(X.shape[2] if X.ndim == 3 else 1):
                square_matrix(X[:, :, m] if X.ndim == 3 else X)
        self._candidates = tuple(kernel.bind(X) for kernel in kernels)
        self._sparse = sp.issparse(X)
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (n,)
        psd = self._examine(X, n)
        return Data(LearnedKernel(self._candidates, (1.0,) * len(self._candidates)), X, n, psd)

    def _examine(self, X: Any, n: int) -> bool:
        """Whether all kernels pass the check for positive semidefiniteness, which learning weights requires."""
        psd = True
        for position, kernel in enumerate(self._candidates):
            if kernel.positive_semidefinite and not kernel.psd_is_assumed:
                continue
            found = find_indefinite(kernel, X, n)
            if found is None:
                continue
            psd = False
            message = (
                f"kernels[{position}] = {kernel!r} is not positive semidefinite: the smallest eigenvalue of "
                f"{found.n_examined} of its {n} rows is {found.smallest:.4g}, the largest {found.largest:.4g}."
            )
            if isinstance(self.weights, str) and self.weights != UNIFORM:
                raise InvalidInputError(
                    f"{message} Weights cannot be learnt with it: leave it out, add {-found.smallest:.4g} to its "
                    "diagonal, or use weights='uniform'."
                )
            warn_user(
                f"{message} The fit ends at a stationary point and its certificate bounds nothing.",
                NotPositiveSemidefiniteWarning,
            )
        return psd

    def _scales(self, grams: SeveralGrams, share: Vector) -> Vector:
        """The divisor of each kernel, as given by ``normalize``."""
        if self.normalize is None:
            return np.ones(len(grams))
        moments = grams.moments(share)
        if not np.isfinite(moments.trace).all() or not np.isfinite(moments.mean).all():
            m = int(np.argmin(np.isfinite(moments.trace) & np.isfinite(moments.mean)))
            raise InvalidInputError(
                f"kernels[{m}] = {grams.kernels[m]!r} has values that are not finite numbers: scale the features, for "
                "example with StandardScaler."
            )
        spread = moments.variance if self.normalize == "variance" else moments.trace
        return np.where(spread > NO_SPREAD * np.abs(moments.trace), spread, 1.0)

    # ---- fit -------------------------------------------------------------------------------------------------

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        automatic = self.cache_size == "auto"
        budget = int(SHARE * available_bytes()) if automatic else budget_bytes(self.cache_size)
        n_threads = thread_count(self.n_jobs)
        counted = weight
        if clock.left < np.inf:
            if data.seconds(data.n, 0.5 * data.n, n_threads) > MATRICES_SHARE * clock.left:
                budget = 0  # do not store matrices
            counted = self._counted(data, weight, n_threads, clock.left)
        share = counted / counted.sum()
        grams = SeveralGrams(self._candidates, data.samples, data.n, budget, n_threads, data.evaluations)
        self.kernel_scales_ = grams.scale = self._scales(grams, share)
        found = alignments(grams, self._ideal(y), share, self._mode == ALIGNMENT)
        self.alignments_ = found.values
        tasks = self._tasks(data, y, weight, clock)

        def solve(weights: Vector, tol: float, starts: Sequence[Vector | None]) -> Sequence[Solution]:
            with clock.reports.silenced():
                return self._machines(tasks, self._at(weights, grams, data), tol, starts, clock)

        solver = MixtureSolver(grams, tasks.tasks, solve, float(self.norm), float(self.tol), clock)
        mixture = self._mixture(solver, found, tasks.tasks)
        self.kernel_weights_ = mixture.weights
        used = np.flatnonzero(mixture.weights)
        learnt = tuple((mixture.weights / grams.scale)[used].tolist())
        self.kernel_ = self._kernel = LearnedKernel(tuple(self._candidates[m] for m in used), learnt)
        self._gamma = 0.0
        final = Data(self._kernel, data.samples, data.n, data.psd)
        final.evaluations = data.evaluations
        self._publish(tasks, final, mixture.solutions)
        self.certificate_ = mixture.certificate
        self.trace_, self.n_rounds_, self.n_iter_ = mixture.trace, mixture.rounds, self._steps(solver.steps)
        self._statuses = [mixture.status]
        self.fit_status_ = int(mixture.status is not Status.CONVERGED)
        n_looked = min(data.n, MOST_SAMPLES)
        if clock.left == np.inf or clock.over_in(data.seconds(n_looked, n_looked, n_threads)) is None:
            self._warn_near_diagonal(grams, weight)

    def _counted(self, data: Data, weight: Vector, n_threads: int, left: float) -> Vector:
        """Sample weights for scales and alignments: 0 outside a random subset if time is short."""
        used = np.flatnonzero(weight)
        value = data.column_seconds(data.n, n_threads) / data.n
        most = max(FEWEST_COUNTED, int(np.sqrt(STATISTICS_SHARE * max(0.0, left) / value)))
        if len(used) <= most:
            return weight
        part = np.random.default_rng(0).permutation(used)[:most]
        counted = np.zeros(len(weight))
        counted[part] = weight[part]
        return counted

    @property
    def _mode(self) -> str:
        """How weights are found; "given" if they are an array."""
        return self.weights if isinstance(self.weights, str) else "given"

    def _at(self, weights: Vector, grams: SeveralGrams, data: Data) -> Data:
        """The samples with the weighted sum of kernels: as a matrix if matrices are stored, else as a kernel."""
        if grams.kept:
            return Data(Precomputed(), grams.weighted_sum(weights), data.n, data.psd)
        at = Data(LearnedKernel(self._candidates, tuple((weights / grams.scale).tolist())), data.samples, data.n)
        at.psd, at.evaluations = data.psd, data.evaluations
        at.speeds = data.speeds  # the cost does not depend on the weights
        return at

    def _mixture(self, solver: MixtureSolver, found: Alignments, tasks: Sequence[Task]) -> Mixture:
        """The weights that the parameter ``weights`` asks for, and their machines."""
        n, mode = len(self._candidates), self._mode
        if mode == LEARNED:
            weights, starts = self._start(n, tasks)
            mixture = solver.learn(weights, starts, int(self.max_rounds))
            betas = [s.beta / self._unit for s in mixture.solutions]
            self._warm = (mixture.weights, betas) if self.warm_start else None
            return mixture
        if mode == ALIGNMENT:
            weights = best_alignment(found)
        elif mode == INDEPENDENT:
            weights = np.maximum(found.values, 0.0)
        else:
            weights = np.ones(n) if mode == UNIFORM else self._given(n)
        if not weights.any():
            weights = np.ones(n)  # no kernel is aligned with the targets
        return solver.fixed(weights if mode == "given" else weights / weights.sum())

    def _start(self, n: int, tasks: Sequence[Task]) -> tuple[Vector, list[Vector | None]]:
        """Equal weights, or with warm_start those of the last fit if its problem had the same size."""
        warm = getattr(self, "_warm", None) if self.warm_start else None
        sizes = [len(task.index) for task in tasks]
        if warm is not None and len(warm[0]) == n and [len(beta) for beta in warm[1]] == sizes:
            # a weight of exactly 0 could not grow
            weights = np.maximum(warm[0], 1e-6 * warm[0].max())
            return weights / ball_norm(weights, float(self.norm)), [self._unit * beta for beta in warm[1]]
        norm = float(self.norm)
        return np.full(n, 1.0 if norm == np.inf else n ** (-1.0 / norm)), [None] * len(tasks)

    def _given(self, n: int) -> Vector:
        """The weights given by the user, validated."""
        try:
            weights = np.asarray(self.weights, dtype=np.float64)
        except (TypeError, ValueError):
            weights = np.empty((0, 0))
        if weights.shape != (n,) or not np.isfinite(weights).all() or weights.min() < 0 or not weights.any():
            raise InvalidInputError(
                f"weights={self.weights!r} was given for {n} kernels: give one number of at least 0 for each of them, "
                "not all 0, or 'learned', 'alignment', 'independent_alignment', 'uniform'."
            )
        return weights

    def _warn_near_diagonal(self, grams: SeveralGrams, weight: Vector) -> None:
        part = np.flatnonzero(weight > 0)
        if len(part) > MOST_SAMPLES:
            part = np.sort(np.random.default_rng(0).choice(part, MOST_SAMPLES, replace=False))
        K = np.zeros((len(part), len(part)))
        for m in np.flatnonzero(self.kernel_weights_).tolist():
            K += self.kernel_weights_[m] * grams.block(m, part, part)
        ratio = offdiagonal_ratio(K)
        if len(part) >= ENOUGH and ratio < NEAR_DIAGONAL:
            heaviest = self._candidates[int(np.argmax(self.kernel_weights_))]
            warn_user(
                f"The typical sample has a similarity of {ratio:.2g} to its most similar other sample: the matrix of "
                "the learnt kernel is near-diagonal, and the model memorises instead of learning. The kernel with the "
                f"largest weight is {heaviest!r}: add wider kernels, lower C, or raise norm.",
                NearDiagonalWarning,
            )

    def _too_few_iterations(self, advice: str) -> str:
        return f"Solver terminated early (max_rounds={self.max_rounds}, max_iter={self.max_iter}).  {advice}"

    # ---- defined by MKLClassifier and MKLRegressor -------------------------------------------------------------

    @abstractmethod
    def _ideal(self, y: Vector) -> Matrix:
        """Vectors whose inner products are the ideal kernel for the targets, used for alignments."""

    @abstractmethod
    def _tasks(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> Tasks:
        """State the problems that share the weights."""

    @abstractmethod
    def _machines(
        self, tasks: Tasks, data: Data, tol: float, starts: Sequence[Vector | None], clock: Clock
    ) -> Sequence[Solution]:
        """Solve all problems with the kernel of ``data``."""

    @abstractmethod
    def _steps(self, steps: Vector) -> Any:
        """The total steps of each machine, in the layout of ``n_iter_``."""

    @abstractmethod
    def _publish(self, tasks: Tasks, data: Data, solutions: Sequence[Solution]) -> None:
        """Set the fitted attributes of the machines."""
