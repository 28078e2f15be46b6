"""The base classes of all machines.

`Machine` has the steps around every solver: callbacks, time limits and interrupts, the certificate, the warning.
`KernelEstimator` adds a kernel. `KernelMachine` is a machine whose model is a few support vectors: it implements
scikit-learn's contract and mercer's additions to it.
"""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from numbers import Integral, Real
from types import FrameType
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._sklearn_compat import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    fit_context,
    in_configured_interface,
    num_samples,
)
from mercer.estimators.inspection.feature_importances import ImportancesMixin
from mercer.estimators.inspection.model_function import FunctionMixin
from mercer.estimators.inspection.notebook_line import NotebookLineMixin
from mercer.estimators.landmark_machine import LandmarkMixin
from mercer.estimators.over_parts.rows_on_disk import block_by_block
from mercer.estimators.parameters import KernelParameters
from mercer.estimators.prediction import SupportVectors
from mercer.estimators.psd_check import find_indefinite
from mercer.exceptions import InvalidInputError, NotPositiveSemidefiniteWarning
from mercer.gram.memory import budget_bytes
from mercer.gram.operator import Data
from mercer.kernels import CallableKernel, Kernel, Linear
from mercer.kernels.features import Matrix, Vector, take_samples, without_index
from mercer.kernels.user_defined import depends_on_sets
from mercer.linear.linear_solution import LinearSolution
from mercer.linear.multiclass.crammer_singer import JointSolution
from mercer.losses import Loss
from mercer.parts.layout import Parts
from mercer.parts.linear_part import Statement
from mercer.problems.clock import Clock, Progress, ended_outside
from mercer.problems.solution import RULES, Certificate, Options, Solution, Status, TracePoint, combine
from mercer.sources.checkpoint import Checkpoint
from mercer.sources.row_source import RowSource, gather
from mercer.svm.plan import Plan
from mercer.svm.solve import solve_problem
from mercer.validation import (
    call_kernel,
    check_pairwise_kernel,
    domain_of,
    is_pairwise,
    resolve_kernel,
    set_input_tags,
    square_matrix,
    thread_count,
    training_matrix,
    validate_samples,
    validate_weights,
)

logger = logging.getLogger("mercer")


def watcher(
    estimator: Any, context: Any, clock: Clock, task: dict[str, Any], measure: str = "violation"
) -> Progress | None:
    """Report each round: to the log if verbose, and to scikit-learn's callbacks if there are any.

    ``task`` has the arguments of the callbacks. ``measure`` names the quantity that the run reduces to tol. Callbacks
    that ask for a fitted estimator get the one of this round if the run solves a single problem, else None.
    """
    verbose, has_callbacks = bool(estimator.verbose), bool(getattr(estimator, "_skl_callbacks", None))
    if not verbose and not has_callbacks:
        return None
    if verbose:
        show_log()
    lock = threading.Lock()  # pairs of classes may be solved side by side

    def watch(point: TracePoint) -> bool:
        with lock:
            if verbose:
                line = f"%8.2f s  %9d steps  {measure} %.3e  dual %.8g  active %d"
                logger.info(line, *point)
            if not has_callbacks:
                return False
            here = context.subcontext(task_name="round")
            here.call_on_fit_task_begin(**task)
            return bool(here.call_on_fit_task_end(**task, reconstruction_attributes=clock.reports.attributes()))

    return watch


def show_log() -> None:
    """Show mercer's log on standard error unless the application has configured logging."""
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[mercer] %(message)s"))
        logger.addHandler(handler)
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn with the location of the first caller outside mercer and scikit-learn."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("mercer", "sklearn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


# equal values of these types need to be validated only once
_PLAIN = (str, int, float, bool, type(None))
MOST_KNOWN = 10_000
# a primal value of so many times the dual one is far from the optimum, whatever tol says
UNSOLVED = 100.0


def keep_parameters(estimator: BaseEstimator, arguments: dict[str, Any]) -> None:
    """Set every argument of a constructor as an attribute. ``arguments`` are the constructor's ``locals()``.

    scikit-learn's contract lets a constructor do nothing else; ``fit`` validates.
    """
    attributes = vars(estimator)
    attributes.update(arguments)
    del attributes["self"]


class KnownParameters(BaseEstimator):  # type: ignore[misc]
    """scikit-learn's base of all estimators, which caches parameter names and validated parameter values."""

    _param_names: list[str]
    _known_params: ClassVar[set[tuple[Any, ...]]] = set()

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The parameter names, cached: reading the signature takes a tenth of a small fit."""
        if "_param_names" not in cls.__dict__:
            cls._param_names = super()._get_param_names()
        return list(cls._param_names)

    def _validate_params(self) -> None:
        """Skip plain values that were validated before: scikit-learn's validation takes a tenth of a small fit."""
        names = type(self)._get_param_names()
        values = [getattr(self, name) for name in names]
        known: set[tuple[Any, ...]] = type(self).__dict__.get("_known_params", set())
        key = tuple((type(value), value) for value in values) if all(type(v) in _PLAIN for v in values) else ()
        if key and key in known:
            return
        super()._validate_params()
        if key:
            type(self)._known_params = known if len(known) < MOST_KNOWN else set()
            type(self)._known_params.add(key)


class Machine(NotebookLineMixin, CallbackSupportMixin, KnownParameters, ABC):  # type: ignore[misc]
    """Base of all estimators that solve a problem to a tolerance and certify the solution.

    Ctrl-C during ``fit`` ends it with a usable model and a warning; a second one within five seconds is a
    KeyboardInterrupt, even if the next fit has begun. Within searches, cross-validation and ensembles of scikit-learn
    the first one is a KeyboardInterrupt (see `Clock`).
    """

    # the log's name for the quantity that the tolerance bounds
    _measure: ClassVar[str] = "violation"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Machine:
        """Fit the model to the training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples), or list of object
            Training samples; the kernel matrix for ``kernel="precomputed"``; any objects (strings, sets, graphs,
            records) for a kernel on these, or for a kernel function. Rows of `mercer.open_rows` are read block by block
            by machines with ``landmarks``, and into memory by others; if they do not fit, SVC, SVR and OneClassSVM read
            them block by block in each round.
        y : array-like of shape (n_samples,)
            Class labels or target values. None if rows on disk have them.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C, one per sample.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        context = self._init_callback_context(max_subtasks=None)
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        context.call_on_fit_task_begin(estimator=self, X=X, y=y, metadata=metadata)
        with Clock(self.time_limit) as clock:
            task = {"estimator": self, "X": X, "y": y, "metadata": metadata}
            clock.reports.callback = watcher(self, context, clock, task, self._measure)
            if self.verbose:
                clock.reports.log = logger.info
            self._fit(X, y, sample_weight, clock)
        # a fitted estimator is a copy of self, which has all attributes by now
        context.call_on_fit_task_end(estimator=self, X=X, y=y, metadata=metadata, reconstruction_attributes={})
        return self

    def _as_if(self, publish: Callable[[Any], None]) -> dict[str, Any]:
        """The attributes that ``publish`` would set, for the copy of the estimator that callbacks may ask for."""
        shell = copy(self)
        publish(shell)
        before = vars(self)
        return {name: value for name, value in vars(shell).items() if before.get(name, shell) is not value}

    @abstractmethod
    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        """Validate, solve, publish and warn."""

    def _publish_proof(
        self, solutions: Sequence[Solution | LinearSolution | JointSolution], of: str | None = None
    ) -> None:
        """Set the certificates, the trace and the statuses of the runs."""
        self.certificates_: list[Certificate] = [s.certificate for s in solutions]
        self.certificate_ = combine(self.certificates_, of=of)
        self.trace_: list[TracePoint] = [point for s in solutions for point in s.trace]
        self._statuses = [s.status for s in solutions]

    def _warn_unfinished(self) -> None:
        """Say in numbers how far a run that ended early is from the optimum."""
        status = next((s for s in self._statuses if s is not Status.CONVERGED), None)
        if status is Status.INTERRUPTED and ended_outside():
            return  # an interrupted fit within a search: the search drops this fit and reports it
        if status is None:
            self._warn_far()
            return
        reached = f" The model is {self.certificate_}; tol is {self.tol:g}."
        scale = "Consider pre-processing your data with StandardScaler or MinMaxScaler."
        message = {
            Status.MAX_ITER: self._too_few_iterations(scale),
            Status.TIME_LIMIT: f"Solver terminated early (time_limit={self.time_limit} s).  {scale}",
            Status.INTERRUPTED: "Solver was interrupted; the model fitted so far is usable.",
        }.get(status, self._no_progress(scale))
        warn_user(message + reached, ConvergenceWarning)

    def _warn_far(self) -> None:
        """Say that a model within tol is far from the optimum: a violation of tol costs C times as much."""
        proof = self.certificate_
        # landmarks are as near to the exact machine as their number allows: landmark_tol has a warning of its own
        exact = getattr(self, "n_landmarks_", None) is None
        if exact and proof.valid and 0.0 < UNSOLVED * proof.dual < proof.primal < np.inf:
            warn_user(
                f"The optimality conditions hold to within tol={self.tol:g}, but the model is far from the optimum: it "
                f"is {proof}. Small violations cost much when C is large: lower C or tol.",
                ConvergenceWarning,
            )

    def _too_few_iterations(self, advice: str) -> str:
        """scikit-learn's message for a run that max_iter has ended."""
        return f"Solver terminated early (max_iter={self.max_iter}).  {advice}"

    def _no_progress(self, advice: str) -> str:
        """The message for a run that rounding has ended."""
        return f"Solver stopped where rounding allows no further progress.  {advice}"


class KernelEstimator(KernelParameters, ImportancesMixin, FunctionMixin, Machine):
    """Base of machines that compare samples with a kernel."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [str, callable, Kernel],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left"), tuple, list, np.ndarray],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "n_jobs": [Integral, None],
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "precision": [StrOptions({"auto", "float32", "float64"})],
    }

    kernel: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_input_tags(tags.input_tags, self._domain())
        return tags

    def _domain(self) -> str:
        """The type of the samples, as in ``Kernel.domain``."""
        return domain_of(self.kernel)

    def _bind_kernel(self, kernel: Kernel, samples: Any, X: Any, n: int) -> Data:
        """Bind the kernel to ``samples``: the samples that it compares, or its matrix for the samples X."""
        if is_pairwise(kernel):
            square_matrix(samples)
            check_pairwise_kernel(kernel)
        self._kernel = kernel.bind(samples)
        self._gamma = getattr(self._kernel, "gamma", 0.0)
        self._sparse = sp.issparse(samples)
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (n,)
        return Data(self._kernel, samples, n, psd=self._seems_psd(samples, n))

    def _seems_psd(self, samples: Any, n: int) -> bool:
        """Spot-check a kernel that is only assumed to be positive semidefinite; warn if the check fails."""
        found = find_indefinite(self._kernel, samples, n) if self._kernel.psd_is_assumed else None
        if found is not None:
            warn_user(
                f"The kernel matrix is not positive semidefinite: the smallest eigenvalue of {found.n_examined} of its "
                f"{n} rows is {found.smallest:.4g}, the largest {found.largest:.4g}. The fit ends at a stationary "
                f"point and its certificate bounds nothing. Use another kernel, or add {-found.smallest:.4g} to the "
                "diagonal.",
                NotPositiveSemidefiniteWarning,
            )
        return found is None

    @property
    def coef_(self) -> Any:
        """Weights of the features, for a linear kernel."""
        if not isinstance(self._kernel, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self._get_coef()
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    @abstractmethod
    def _get_coef(self) -> Any:
        """Weights of the features, of a linear kernel."""


# additional parameters of machines that the textbook's procedures can solve
STEPWISE_PARAMETERS: dict[str, Any] = {
    "solver": [StrOptions({"auto", "decomposition", "qp", "coordinate", "smo"})],
    "rule": [StrOptions(set(RULES))],
    "trace": ["boolean"],
}


class KernelMachine(LandmarkMixin, KernelEstimator):
    """Everything that SVC, NuSVC, SVR, NuSVR and OneClassSVM share.

    ``fit`` goes in one direction: validate, bind the kernel, state the problem, solve, publish.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelEstimator._parameter_constraints,
        "shrinking": ["boolean"],
        "warm_start": ["boolean"],
        "solver": [StrOptions({"auto", "decomposition", "qp"})],
    }

    _warm: Any
    # whether to keep all training samples: see UpdatesMixin
    updatable: bool = False
    # the plan to use instead of the one that the sizes suggest
    _plan: ClassVar[Plan | None] = None
    # whether the loss can be solved over rows in parts
    _solves_parts: ClassVar[bool] = False

    def _options(self) -> Options:
        solver, random = self._solver(), getattr(self, "random_state", None)
        drawn = (solver == "coordinate" or self.landmarks is not None) and random is not None
        return Options(
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            time_limit=self.time_limit,
            budget=budget_bytes(self.cache_size) if self.landmarks is None else self._landmark_budget(),
            costly_budget=budget_bytes(self.cache_size, costly=True),
            shrinking=bool(self.shrinking),
            n_threads=thread_count(self.n_jobs),
            precision=self.precision,
            solver=solver,
            rule=getattr(self, "rule", "random"),
            seed=int(check_random_state(random).randint(2**31 - 1)) if drawn else 0,
            trace=bool(getattr(self, "trace", False)),
            plan=self._plan,
        )

    def _solver(self) -> str:
        """The requested solver; with ``trace`` "auto" is the procedure that records its steps."""
        if not getattr(self, "trace", False) or self.solver in ("coordinate", "smo"):
            return str(self.solver)
        if self.solver != "auto":
            raise InvalidInputError(
                f"trace=True keeps the steps of solver='smo' or 'coordinate', but solver={self.solver!r} has other "
                "steps. Use solver='auto', which chooses between these two, or trace=False."
            )
        return "smo" if self.fit_intercept else "coordinate"

    # ---- fit -------------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        if self.checkpoint is not None:
            self._check_checkpoint(X)
        self.__dict__.pop("_updates", None)
        if self.updatable:
            self._check_updatable(X)
        if isinstance(X, RowSource):
            if self.landmarks is not None or self._exceeds_memory(X):
                self._fit_source(X, y, sample_weight, clock)
                self._warn_unfinished()
                return
            X, y, sample_weight = gather(X, y, sample_weight, type(self).__name__)
        X, y = self._validate(X, y, reset=True)
        n = num_samples(X)
        weight = validate_weights(sample_weight, n, X)
        targets = self._validate_targets(y, weight)
        data = self._bind(X, n)
        if self.landmarks is not None:
            data, targets, weight = self._add_given_landmarks(data, targets, weight)
        self._solve(data, targets, weight, clock)
        self._given_pool = None
        self._forget_others()
        self.kernel_evaluations_ = data.evaluations.count
        if self.updatable:
            self._keep_training(X, targets, weight, data.psd)
        self._warn_unfinished()

    def _exceeds_memory(self, source: RowSource) -> bool:
        """Whether rows on disk exceed the memory for rows, and the exact machine can be solved block by block."""
        return self._solves_parts and source.n * source.bytes_per_row > source.memory

    def _validate(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        """Samples and targets as `validate_samples` gives them."""
        return validate_samples(self, X, y, reset=reset)

    def _parts_kernel(self) -> Kernel:
        return resolve_kernel(self.kernel, self.degree, self.gamma, self.coef0)

    def _bind(self, X: Any, n: int) -> Data:
        """Bind the kernel to the samples, which set its data-dependent parameters."""
        kernel = self._parts_kernel()
        is_function = callable(self.kernel) and not isinstance(self.kernel, Kernel)
        self._function_samples = X if is_function else None
        return self._bind_kernel(kernel, training_matrix(self.kernel, X) if is_function else X, X, n)

    def _forget_others(self) -> None:
        """Keep only the support vectors of a kernel function's samples, unless its values depend on the others."""
        samples = self._function_samples
        if samples is not None and not depends_on_sets(self.kernel, samples, self.support_):
            self._function_samples = take_samples(samples, self.support_)
            self._support.number_anew()

    @abstractmethod
    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        """Targets of the weighted samples as float64; sets the attributes that follow from them, such as classes_."""

    @abstractmethod
    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        """State the problem, solve it and publish the fitted attributes."""

    def _run(
        self, data: Data, loss: Loss, y: Vector, weight: Vector, options: Options, clock: Clock, start: Vector | None
    ) -> Solution:
        """Solve one problem, starting near ``start`` (in units of C) if it is given and has the right size."""
        start = None if start is None else self._unit * start
        solve = solve_problem if self.landmarks is None else self._landmark_solver()
        return solve(data, loss, y, weight, bool(self.fit_intercept), options, clock, start)

    @property
    def _unit(self) -> float:
        """The unit of the solution that a warm start keeps: coefficients at their bound stay there when C changes."""
        C = float(getattr(self, "C", 1.0))
        return C if np.isfinite(C) else 1.0

    def _fit_one(self, data: Data, loss: Loss, y: Vector, weight: Vector, clock: Clock) -> None:
        """Solve a single problem and publish it: regression and novelty detection."""
        used = np.flatnonzero(weight > 0)
        part = data if len(used) == data.n else data.take(used)
        start = getattr(self, "_warm", None) if self.warm_start else None
        clock.reports.to_attributes = lambda now: self._as_if(
            lambda machine: machine._publish_one(data, loss, used, now)
        )
        solution = self._run(part, loss, y[used], weight[used], self._options(), clock, start)
        self._check_bounded(solution)
        self._warm = solution.beta / self._unit if self.warm_start else None
        self._publish_one(data, loss, used, solution)

    def _check_bounded(self, solution: Solution) -> None:
        """Raise if a hard tube has no solution."""
        if solution.status is Status.UNBOUNDED:
            raise InvalidInputError(
                f"No function of this kernel keeps all samples within the tube, which C={self.C:g} asks for: the dual "
                "grows without limit. Use a finite C, a larger epsilon or a richer kernel."
            )

    def _check_updatable(self, X: Any) -> None:
        """Raise if a model with these parameters cannot be updated; for machines with `UpdatesMixin`."""

    def _keep_training(self, X: Any, targets: Vector, weight: Vector, psd: bool) -> None:
        """Keep the training data that updates need."""

    def _fit_parts(self, parts: Parts, clock: Clock, checkpoint: Checkpoint | None = None) -> None:
        """Solve and publish a single problem of rows in parts."""
        choice = self._bind_parts(parts)
        loss, C = self._single_loss()
        statement = Statement(loss, C, bool(self.fit_intercept))
        found = self._solve_parts(parts, statement, self._options(), clock, choice, checkpoint)
        data = self._parts_data(found.samples, [found])
        self._warm = None
        self._publish_one(data, loss, np.arange(data.n), found)
        self.support_ = self._row_numbers(found.rows[self.support_])

    def _single_loss(self) -> tuple[Loss, float]:
        """The loss of a machine with a single problem, and the factor C of its weights."""
        raise NotImplementedError

    def _publish_one(self, data: Data, loss: Loss, used: Vector, solution: Solution) -> None:
        """Publish the model of a single problem over the samples ``used``."""
        # polished machines are exact, even if landmarks were given
        at = self._slots(data.n) if solution.given else used
        published = loss.publish(solution.coefficients, solution.thresholds)
        size = norm(solution) / published.scale
        self._publish_function(data, at, published.beta, published.intercept, size, solution)

    def _publish_function(
        self, data: Data, used: Vector, beta: Vector, intercept: float, size: float, solution: Solution
    ) -> None:
        """Publish the model Σ βᵢ k(xᵢ, ·) + b over the samples ``used``, whose function has the norm ``size``."""
        support = beta.nonzero()[0]
        self._n_support = np.array([len(support)], dtype=np.int32)
        self.rkhs_norm_ = np.array([size])
        self._publish_support(data, used[support])
        self.dual_coef_ = self._dual_coef_ = self._as_coef(beta[support][None, :])
        self.intercept_ = np.array([intercept])
        self._intercept_ = self.intercept_.copy()
        self.n_iter_: Any = int(solution.steps)
        self._publish_solutions([solution])
        if solution.path is not None:
            self.steps_: Any = solution.path.of_samples(used)

    # ---- publishing ------------------------------------------------------------------------------------------

    def _publish_support(self, data: Data, support: Vector) -> None:
        """Set the support vectors. ``_n_support`` and ``rkhs_norm_`` must be set before."""
        self.support_ = support.astype(np.int32)
        pairwise = is_pairwise(data.kernel)
        vectors = np.empty((0, 0)) if pairwise else without_index(take_samples(data.samples, support))
        self.support_vectors_ = in_configured_interface(vectors) if self._sparse else vectors
        self._support = SupportVectors(
            data.kernel, self.support_vectors_, self.support_, class_ends(self._n_support), data.n, self.rkhs_norm_
        )

    def _publish_solutions(self, solutions: list[Solution]) -> None:
        self._publish_proof(solutions)
        self.__dict__.pop("steps_", None)
        self.plan_ = next((s.plan for s in solutions if s.plan is not None), None)
        with np.errstate(divide="ignore"):
            self.margin_ = 1.0 / self.rkhs_norm_
        self.fit_status_ = int(any(status is not Status.CONVERGED for status in self._statuses))
        if self.landmarks is not None or hasattr(self, "growth_"):
            self._publish_landmarks(list(solutions))

    def _warn_unfinished(self) -> None:
        super()._warn_unfinished()
        if self.landmarks is not None:
            self._warn_of_few_landmarks()

    def _as_coef(self, coef: Matrix) -> Any:
        return in_configured_interface(sp.csr_array(coef)) if self._sparse else coef

    # ---- prediction ------------------------------------------------------------------------------------------

    def _validate_for_predict(self, X: Any) -> Any:
        check_is_fitted(self)
        if self._function_samples is not None:
            return call_kernel(self.kernel, X, self._function_samples)
        X = self._as_trained(self._validate(X, None, reset=False)[0])
        vectors = self.support_vectors_
        if isinstance(vectors, np.ndarray) and vectors.size > 0 and self.n_support_.sum() != len(vectors):
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")
        return X

    def _as_trained(self, X: Any) -> Any:
        """Samples stored as the training samples were."""
        if self._sparse and not sp.issparse(X):
            X = sp.csr_array(X)
        if sp.issparse(X) and not self._sparse:
            raise ValueError(f"cannot use sparse input in {type(self).__name__!r} trained on dense data")
        return X

    def _values(self, X: Any, labels_only: bool = False) -> Matrix:
        """Decision values in LIBSVM's convention, one column per problem."""
        if isinstance(X, RowSource):
            check_is_fitted(self)
            return block_by_block(self, X, lambda block: self._decide(self._as_trained(block), labels_only))
        return self._decide(self._validate_for_predict(X), labels_only)

    def _decide(self, X: Any, labels_only: bool) -> Matrix:
        """Decision values of validated samples."""
        coef = self._dual_coef_.toarray() if sp.issparse(self._dual_coef_) else self._dual_coef_
        return self._support.decision(X, coef, self._intercept_, thread_count(self.n_jobs), labels_only)

    # ---- attributes ------------------------------------------------------------------------------------------

    def _expansion(self) -> tuple[Kernel, Any, Matrix]:
        rows = self._coef_rows()
        coef = rows[0] if len(rows) == 1 else rows
        samples = self._function_samples
        if samples is None:
            return self._kernel, self.support_vectors_, coef
        # values that depend on sets of samples need all of them: see _forget_others
        forgot = num_samples(samples) == len(self.support_)
        return CallableKernel(self.kernel), samples if forgot else take_samples(samples, self.support_), coef

    def _coef_rows(self) -> Matrix:
        """β of the support vectors, a row for each decision function."""
        return self.dual_coef_.toarray() if sp.issparse(self.dual_coef_) else self.dual_coef_

    def _get_coef(self) -> Any:
        product = self._dual_coef_ @ self.support_vectors_
        return product if sp.issparse(product) else np.asarray(product)

    @property
    def n_support_(self) -> Vector:
        """Number of support vectors, for each class where there are classes."""
        try:
            check_is_fitted(self)
        except NotFittedError:
            raise AttributeError("n_support_ is available after fit") from None
        n_support: Vector = self._n_support
        return n_support


def class_ends(n_support: Vector) -> Vector:
    """The support vectors of class c are those from ends[c] to ends[c + 1]."""
    ends = np.zeros(len(n_support) + 1, np.intp)
    np.cumsum(n_support, out=ends[1:])
    return ends


def norm(solution: Solution) -> float:
    """|w|, in the scale of the solved problem."""
    return float(np.sqrt(max(0.0, solution.squared_norm)))
