"""Machines that learn the weights of a sum of kernels: multiple kernel learning."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from mercer.estimators.base import KernelMachine
from mercer.estimators.nested import KernelParameters
from mercer.estimators.pairs import OneVsOne
from mercer.estimators.progress import warn_user
from mercer.estimators.psd import find_indefinite
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR
from mercer.exceptions import InvalidInputError, NearDiagonalWarning, NotPositiveSemidefiniteWarning
from mercer.gram.alignment import NO_SPREAD, Alignments, alignments, best_alignment
from mercer.gram.memory import available_bytes, budget_bytes
from mercer.gram.several import SeveralGrams
from mercer.kernels import Kernel, LearnedKernel, Precomputed, PrecomputedLayer
from mercer.kernels.features import Matrix, Vector
from mercer.kernels.mercer_check import MOST_SAMPLES, NEAR_DIAGONAL, offdiagonal_ratio
from mercer.problems.dual import DualProblem
from mercer.problems.mixture import ball_norm
from mercer.solvers.base import Clock, Solution, Status
from mercer.solvers.data import Data
from mercer.solvers.mixture import Mixture, MixtureSolver, Task
from mercer.validation import (
    check_pairwise_kernel,
    is_pairwise,
    resolve_kernels,
    square_matrix,
    thread_count,
    validate_samples,
    validate_stack,
)

# of the memory that is available, what the matrices may take
SHARE = 0.5
# samples of which it means something that none is similar to another
ENOUGH = 20

LEARNED, ALIGNMENT, INDEPENDENT, UNIFORM = "learned", "alignment", "independent_alignment", "uniform"


class _Tasks(NamedTuple):
    """The machines that share the kernel."""

    tasks: Sequence[Task]
    problems: Any


class KernelLearner(KernelMachine):
    """What both have in common: the kernels, their scales and weights, and the search for these.

    A subclass comes before the machine that it makes of the learnt kernel.
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
        """The sum of all kernels, each once; None if they cannot be read or combined."""
        try:
            found = resolve_kernels(self.kernels)
            return LearnedKernel(found, (1.0,) * len(found))
        except InvalidInputError:
            return None

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name; ``kernels`` are replaced as a whole."""
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
        """Whether all kernels seem to be positive semidefinite, which weights that are learnt need."""
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
                f"{message} The fit ends at a stationary point and its certificate is no bound.",
                NotPositiveSemidefiniteWarning,
            )
        return psd

    def _scales(self, grams: SeveralGrams, share: Vector) -> Vector:
        """What each kernel is divided by."""
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
        share = weight / weight.sum()
        automatic = self.cache_size == "auto"
        budget = int(SHARE * available_bytes()) if automatic else budget_bytes(self.cache_size)
        n_threads = thread_count(self.n_jobs)
        grams = SeveralGrams(self._candidates, data.samples, data.n, budget, n_threads, data.evaluations)
        self.kernel_scales_ = grams.scale = self._scales(grams, share)
        found = alignments(grams, self._ideal(y), share, self._mode == ALIGNMENT)
        self.alignments_ = found.values
        tasks = self._tasks(data, y, weight, clock)

        def solve(weights: Vector, tol: float, starts: Sequence[Vector | None]) -> Sequence[Solution]:
            with clock.silently():
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
        self._warn_near_diagonal(grams, weight)

    @property
    def _mode(self) -> str:
        """How weights are found; "given" if they are."""
        return self.weights if isinstance(self.weights, str) else "given"

    def _at(self, weights: Vector, grams: SeveralGrams, data: Data) -> Data:
        """The samples with the weighted sum of all kernels: its matrix if matrices are kept, else the formula."""
        if grams.kept:
            return Data(Precomputed(), grams.weighted_sum(weights), data.n, data.psd)
        at = Data(LearnedKernel(self._candidates, tuple((weights / grams.scale).tolist())), data.samples, data.n)
        at.psd, at.evaluations = data.psd, data.evaluations
        return at

    def _mixture(self, solver: MixtureSolver, found: Alignments, tasks: Sequence[Task]) -> Mixture:
        """The weights that are asked for, and their machines."""
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
            weights = np.ones(n)  # no kernel has to do with the targets
        return solver.fixed(weights if mode == "given" else weights / weights.sum())

    def _start(self, n: int, tasks: Sequence[Task]) -> tuple[Vector, list[Vector | None]]:
        """Equal weights, or those of the last fit if its problem had the same size."""
        warm = getattr(self, "_warm", None) if self.warm_start else None
        sizes = [len(task.index) for task in tasks]
        if warm is not None and len(warm[0]) == n and [len(beta) for beta in warm[1]] == sizes:
            # a weight of 0 could not grow
            weights = np.maximum(warm[0], 1e-6 * warm[0].max())
            return weights / ball_norm(weights, float(self.norm)), [self._unit * beta for beta in warm[1]]
        norm = float(self.norm)
        return np.full(n, 1.0 if norm == np.inf else n ** (-1.0 / norm)), [None] * len(tasks)

    def _given(self, n: int) -> Vector:
        """The weights that the user has given."""
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
                f"The typical sample has a similarity of {ratio:.2g} to its most similar other one: the matrix of the "
                "learnt kernel is near-diagonal, and the model memorises instead of learning. The kernel with the "
                f"largest weight is {heaviest!r}: offer wider kernels, lower C, or raise norm.",
                NearDiagonalWarning,
            )

    def _too_few_iterations(self, advice: str) -> str:
        return f"Solver terminated early (max_rounds={self.max_rounds}, max_iter={self.max_iter}).  {advice}"

    # ---- what classification and regression differ in ---------------------------------------------------------

    @abstractmethod
    def _ideal(self, y: Vector) -> Matrix:
        """Vectors whose inner products are the kernel that would fit the targets best."""

    @abstractmethod
    def _tasks(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> _Tasks:
        """The machines that share the weights."""

    @abstractmethod
    def _machines(
        self, tasks: _Tasks, data: Data, tol: float, starts: Sequence[Vector | None], clock: Clock
    ) -> Sequence[Solution]:
        """Solve them all."""

    @abstractmethod
    def _steps(self, steps: Vector) -> Any:
        """The steps of each machine in all rounds, as ``n_iter_`` shows them."""

    @abstractmethod
    def _publish(self, tasks: _Tasks, data: Data, solutions: Sequence[Solution]) -> None:
        """The fitted attributes of the machines."""


class MKLClassifier(KernelLearner, SVC):
    """Support vector classification with a kernel that is learnt: a weighted sum of given ones.

    With weights η ≥ 0, |η|_p ≤ 1, the machine and its kernel Σ η_m k_m are optimal together:

        min over η, w, b of  ½ Σ_m |w_m|² / η_m + Σᵢ Cᵢ ℓ(yᵢ, Σ_m <w_m, φ_m(xᵢ)> + b)

    [M5] "learning a kernel from data"; Lanckriet et al., JMLR 5 (2004); Kloft et al., JMLR 12 (2011). The problem is
    convex: ``certificate_`` bounds the distance to the optimum over all weights and machines. Several classes are pairs
    of classes as in ``SVC``, which share the weights: what is minimised is the sum over all pairs.

    Parameters
    ----------
    kernels : list of str, Kernel or callable, default=("linear", "rbf")
        The kernels: names and expressions as in ``SVC`` (with its default parameters), kernel objects, for example
        ``On(columns, kernel)`` for groups of columns, or functions of two sets of samples. With ``"precomputed"`` X has
        the shape (n_samples, n_samples, n_kernels): matrices stacked along the last axis.
    weights : {"learned", "alignment", "independent_alignment", "uniform"} or array-like, default="learned"
        "learned": as above. The others are faster, and known before a machine is trained: "alignment" makes the centred
        alignment of the sum with the labels as large as possible, "independent_alignment" weighs each kernel by its own
        alignment (Cortes, Mohri & Rostamizadeh, JMLR 13, 2012), "uniform" weighs all alike; these sum to 1. An array
        gives the weights of the normalised kernels.
    norm : float, default=1.0
        p of the norm that bounds learnt weights, from 1 to inf. With 1 many weights are 0; the larger it is, the more
        equal they become; with inf they are all 1.
    normalize : {"variance", "trace"} or None, default="variance"
        What kernels are divided by first, so that their weights can be compared: the variance of the samples in feature
        space, the mean of k(x, x), or nothing. A kernel without variance is left as it is. The divisors are kept in
        ``kernel_scales_`` and are part of ``kernel_``.
    C : float, default=1.0
        Weight of the loss; finite.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a violated margin costs.
    tol : float, default=1e-3
        Relative gap of weights and machines together at which learning ends, and the largest violation of the
        optimality conditions of each machine, in units of the decision function.
    max_rounds : int, default=200
        Weights that are tried at most.
    cache_size : float or "auto", default="auto"
        Megabytes for the matrices of all kernels; "auto" is half of the available memory. If they do not fit, kernel
        values are computed again in each round.
    warm_start : bool, default=False
        Start from the last weights and machines if the problem has the same size.
    class_weight, decision_function_shape, break_ties, fit_intercept, shrinking, verbose, max_iter, n_jobs, time_limit,
    precision, solver : as in ``SVC``, of which each machine is one.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        η, of the normalised kernels.
    kernel_scales_ : ndarray of shape (n_kernels,)
        What the kernels were divided by.
    kernel_ : LearnedKernel
        Σ η_m / scale_m k_m over the kernels that have a weight: for use in any other machine.
    alignments_ : ndarray of shape (n_kernels,)
        The centred alignment of each kernel with the labels, between 0 and 1.
    certificate_ : Certificate
        Of weights and machines together, in float64; with weights that were not learnt, of the machines alone.
    certificates_ : list of Certificate
        Of the machine of each pair of classes, for the kernel as it is.
    n_rounds_ : int
        Weights that were tried.
    trace_ : list of TracePoint
        Seconds, steps, relative gap, lower bound and kernels with a weight, of each round.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, classes_, class_weight_, margin_, rkhs_norm_,
    kernel_evaluations_, fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_ : as in ``SVC``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MKLClassifier, Gaussian, On
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> y = X[:, 1] ** 2 > 0.5
    >>> model = MKLClassifier(kernels=[On(column, Gaussian()) for column in range(3)], C=10).fit(X, y)
    >>> model.kernel_weights_.argmax()
    np.int64(1)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            key: value
            for key, value in SVC._parameter_constraints.items()
            if key not in ("kernel", "degree", "gamma", "coef0", "probability", "random_state")
        },
        **KernelLearner._parameter_constraints,
    }
    probability = "deprecated"

    def __init__(
        self,
        kernels: Any = ("linear", "rbf"),
        *,
        weights: Any = LEARNED,
        norm: float = 1.0,
        normalize: str | None = "variance",
        C: float = 1.0,
        loss: str = "hinge",
        tol: float = 1e-3,
        max_rounds: int = 200,
        class_weight: Any = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        fit_intercept: bool = True,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: Any = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
    ) -> None:
        self.kernels = kernels
        self.weights = weights
        self.norm = norm
        self.normalize = normalize
        self.C = C
        self.loss = loss
        self.tol = tol
        self.max_rounds = max_rounds
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.fit_intercept = fit_intercept
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.precision = precision
        self.solver = solver

    def _ideal(self, y: Vector) -> Matrix:
        return np.eye(len(self.classes_))[y.astype(np.intp)]

    def _tasks(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> _Tasks:
        problems = self._problems(data, y, weight, clock)
        tasks = []
        for i, j in problems.pairs:
            index, labels = problems.samples(i, j)
            if abs(labels.sum()) < len(labels):
                qp = DualProblem(None, problems.loss, labels, problems.factor[index], bool(self.fit_intercept)).qp
                tasks.append(Task(index, qp))
        return _Tasks(tasks, problems)

    def _machines(
        self, tasks: _Tasks, data: Data, tol: float, starts: Sequence[Vector | None], clock: Clock
    ) -> Sequence[Solution]:
        problems: OneVsOne = replace(tasks.problems, data=data, options=replace(tasks.problems.options, tol=tol))
        near = iter([None if start is None else start / self._unit for start in starts])
        solved = problems.solve_all([next(near) if self._both(problems, pair) else None for pair in problems.pairs])
        return [solution for solution in solved if solution is not None]

    def _publish(self, tasks: _Tasks, data: Data, solutions: Sequence[Solution]) -> None:
        problems = replace(tasks.problems, data=data)
        found = iter(solutions)
        solved = [next(found) if self._both(problems, pair) else None for pair in problems.pairs]
        self._publish_pairs(problems, solved)
        self._trained = np.array([solution is not None for solution in solved])
        self._probA = self._probB = np.empty(0)

    def _steps(self, steps: Vector) -> Any:
        shown = np.zeros_like(self.n_iter_)
        shown[np.flatnonzero(self._trained)] = steps
        return shown

    @staticmethod
    def _both(problems: OneVsOne, pair: tuple[int, int]) -> bool:
        """Whether both classes of a pair have samples."""
        return all(len(problems.members[c]) > 0 for c in pair)


class MKLRegressor(KernelLearner, SVR):
    """Support vector regression with a kernel that is learnt: a weighted sum of given ones.

    The problem is that of ``MKLClassifier`` with a loss of ``SVR``.

    Parameters
    ----------
    kernels, weights, norm, normalize, C, tol, max_rounds, cache_size, warm_start : as in ``MKLClassifier``.
    epsilon, loss, quantile : as in ``SVR``.
    fit_intercept, shrinking, verbose, max_iter, n_jobs, time_limit, precision, solver : as in ``SVC``.

    Attributes
    ----------
    kernel_weights_, kernel_scales_, kernel_, alignments_, certificate_, n_rounds_, trace_ : as in ``MKLClassifier``.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, margin_, rkhs_norm_, certificates_,
    kernel_evaluations_, fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_ : as in ``SVR``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MKLRegressor
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> model = MKLRegressor(["linear", "gaussian(gamma=10)"], C=10, epsilon=0.01).fit(X, 2 * X[:, 0])
    >>> model.kernel_weights_
    array([1., 0.])
    >>> model.kernel_.kernels
    (Linear(),)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            key: value
            for key, value in SVR._parameter_constraints.items()
            if key not in ("kernel", "degree", "gamma", "coef0")
        },
        **KernelLearner._parameter_constraints,
    }

    def __init__(
        self,
        kernels: Any = ("linear", "rbf"),
        *,
        weights: Any = LEARNED,
        norm: float = 1.0,
        normalize: str | None = "variance",
        C: float = 1.0,
        epsilon: float = 0.1,
        loss: str = "epsilon_insensitive",
        quantile: float = 0.5,
        tol: float = 1e-3,
        max_rounds: int = 200,
        fit_intercept: bool = True,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: Any = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
    ) -> None:
        self.kernels = kernels
        self.weights = weights
        self.norm = norm
        self.normalize = normalize
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.quantile = quantile
        self.tol = tol
        self.max_rounds = max_rounds
        self.fit_intercept = fit_intercept
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.precision = precision
        self.solver = solver

    def _ideal(self, y: Vector) -> Matrix:
        # of the order 1, whatever the unit of y
        return (y / max(np.abs(y).max(), np.finfo(np.float64).tiny))[:, None]

    def _tasks(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> _Tasks:
        used = np.flatnonzero(weight > 0)
        problem = DualProblem(None, self._loss(), y[used], float(self.C) * weight[used], bool(self.fit_intercept))
        return _Tasks([Task(used, problem.qp)], problem)

    def _machines(
        self, tasks: _Tasks, data: Data, tol: float, starts: Sequence[Vector | None], clock: Clock
    ) -> Sequence[Solution]:
        problem, (task,), (start,) = tasks.problems, tasks.tasks, starts
        part = data if len(task.index) == data.n else data.take(task.index)
        near = None if start is None else start / self._unit
        options = replace(self._options(), tol=tol)
        return [self._run(part, problem.loss, problem.y, problem.weight, options, clock, near)]

    def _publish(self, tasks: _Tasks, data: Data, solutions: Sequence[Solution]) -> None:
        (task,), (solution,) = tasks.tasks, solutions
        self._publish_one(data, tasks.problems.loss, task.index, solution)

    def _steps(self, steps: Vector) -> Any:
        return int(steps[0])
