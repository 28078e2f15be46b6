"""scikit-learn's contract for all kernel machines, and what they add to it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted

from mercer.estimators.decision import SupportVectors
from mercer.estimators.machine import Machine
from mercer.estimators.nested import KernelParameters
from mercer.estimators.progress import warn_user
from mercer.exceptions import InvalidInputError, NotPositiveSemidefiniteError, NotPositiveSemidefiniteWarning
from mercer.gram.memory import budget_bytes
from mercer.kernels import Kernel, Linear, check_mercer
from mercer.kernels.features import Matrix, Vector, take_samples
from mercer.losses import BoxQP, Loss
from mercer.problems.dual import DualProblem, feasible_start, infeasibility
from mercer.solvers.base import Clock, Options, Solution, Status
from mercer.solvers.choose import choose_solver
from mercer.solvers.data import Data
from mercer.validation import (
    call_kernel,
    check_pairwise_kernel,
    domain_of,
    is_pairwise,
    resolve_kernel,
    set_input_tags,
    square_matrix,
    thread_count,
    validate_samples,
    validate_weights,
)

# samples of a kernel that nobody vouches for whose eigenvalues are looked at
EXAMINED = 300


class KernelMachine(KernelParameters, Machine):
    """Everything that SVC, NuSVC, SVR, NuSVR and OneClassSVM share.

    ``fit`` goes in one direction: validate, bind the kernel, state the problem, solve, publish.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [str, callable, Kernel],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left"), tuple, list, np.ndarray],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "shrinking": ["boolean"],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "n_jobs": [Integral, None],
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "warm_start": ["boolean"],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "solver": [StrOptions({"auto", "decomposition", "qp"})],
    }

    kernel: Any
    _warm: Any

    # ---- parameters ------------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_input_tags(tags.input_tags, self._domain())
        return tags

    def _domain(self) -> str:
        """What the samples are, as in ``Kernel.domain``."""
        return domain_of(self.kernel)

    def _options(self) -> Options:
        return Options(
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            time_limit=self.time_limit,
            budget=budget_bytes(self.cache_size),
            shrinking=bool(self.shrinking),
            n_threads=thread_count(self.n_jobs),
            precision=self.precision,
        )

    # ---- fit -------------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        X, y = validate_samples(self, X, y, reset=True)
        n = _num_samples(X)
        weight = validate_weights(sample_weight, n, X)
        targets = self._validate_targets(y, weight)
        data = self._bind(X, n)
        self._solve(data, targets, weight, clock)
        self.kernel_evaluations_ = data.evaluations.count
        self._warn_unfinished()

    def _bind(self, X: Any, n: int) -> Data:
        """The samples with the kernel whose parameters they decide."""
        kernel = resolve_kernel(self.kernel, self.degree, self.gamma, self.coef0)
        is_function = callable(self.kernel) and not isinstance(self.kernel, Kernel)
        self._function_samples = X if is_function else None
        return self._bind_kernel(kernel, call_kernel(self.kernel, X, X) if is_function else X, X, n)

    def _bind_kernel(self, kernel: Kernel, samples: Any, X: Any, n: int) -> Data:
        """The samples that the kernel compares, which may be its matrix for the samples X."""
        if is_pairwise(kernel):
            square_matrix(samples)
            check_pairwise_kernel(kernel)
        self._kernel = kernel.bind(samples)
        self._gamma = getattr(self._kernel, "gamma", 0.0)
        self._sparse = sp.issparse(samples)
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (n,)
        return Data(self._kernel, samples, n, psd=self._seems_psd(samples, n))

    @abstractmethod
    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        """Targets of the weighted samples as float64; sets what belongs to them, such as classes_."""

    @abstractmethod
    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        """State the problem, solve it and publish the fitted attributes."""

    def _run(
        self, data: Data, loss: Loss, y: Vector, weight: Vector, options: Options, clock: Clock, start: Vector | None
    ) -> Solution:
        """Solve one problem, beginning near ``start`` if it is given and of the right size."""
        intercept = bool(self.fit_intercept) or hasattr(loss, "nu")  # these losses have no form without
        problem = DualProblem(None, loss, y, weight, intercept)
        beta = None if start is None else near(problem.qp, self._unit * start)
        over = clock.over()
        if over is not None:
            # one of many pairs or folds, after the time of all has passed: its start is taken as it is
            solution = choose_solver("auto")(data, problem, replace(options, max_iter=0), clock, beta)
            solution.status = over
            return solution
        solution = choose_solver(self.solver)(data, problem, options, clock, beta)
        if solution.status is Status.UNBOUNDED and not data.psd:
            report = check_mercer(data.kernel, data.samples)
            if not report.positive_semidefinite:
                raise NotPositiveSemidefiniteError(report.smallest_eigenvalue, report.largest_eigenvalue)
        return solution

    @property
    def _unit(self) -> float:
        """Of the solution that a warm start keeps: coefficients at their bound stay there when C changes."""
        C = float(getattr(self, "C", 1.0))
        return C if np.isfinite(C) else 1.0

    def _fit_one(self, data: Data, loss: Loss, y: Vector, weight: Vector, clock: Clock) -> None:
        """Solve a single problem and publish it: regression and novelty detection."""
        used = np.flatnonzero(weight > 0)
        part = data if len(used) == data.n else data.take(used)
        start = getattr(self, "_warm", None) if self.warm_start else None
        clock.shown = lambda now: self._as_if(lambda machine: machine._publish_one(data, loss, used, now))
        solution = self._run(part, loss, y[used], weight[used], self._options(), clock, start)
        if solution.status is Status.UNBOUNDED:
            raise InvalidInputError(
                f"No function of this kernel keeps all samples within the tube, which C={self.C:g} asks for: the dual "
                "grows without limit. Use a finite C, a larger epsilon or a richer kernel."
            )
        self._warm = solution.beta / self._unit if self.warm_start else None
        self._publish_one(data, loss, used, solution)

    def _publish_one(self, data: Data, loss: Loss, used: Vector, solution: Solution) -> None:
        """The attributes of a machine with a single problem."""
        beta = solution.beta if len(solution.beta) == len(used) else solution.beta.reshape(2, -1).sum(axis=0)
        published = loss.publish(beta, solution.thresholds)
        support = np.flatnonzero(published.beta)
        self._n_support = np.array([len(support)], dtype=np.int32)
        self.rkhs_norm_ = np.array([norm(solution) / published.scale])
        self._publish_support(data, used[support])
        self.dual_coef_ = self._dual_coef_ = self._as_coef(published.beta[support][None, :])
        self.intercept_ = np.array([published.intercept])
        self._intercept_ = self.intercept_.copy()
        self.n_iter_: Any = int(solution.steps)
        self._publish_solutions([solution])

    # ---- publishing ------------------------------------------------------------------------------------------

    def _publish_support(self, data: Data, support: Vector) -> None:
        """The support vectors, where ``_n_support`` and ``rkhs_norm_`` are known."""
        self.support_ = support.astype(np.int32)
        pairwise = is_pairwise(data.kernel)
        self.support_vectors_ = np.empty((0, 0)) if pairwise else take_samples(data.samples, support)
        self._support = SupportVectors(
            data.kernel, self.support_vectors_, self.support_, self._n_support, data.n, self.rkhs_norm_
        )

    def _publish_solutions(self, solutions: list[Solution]) -> None:
        self._publish_proof(solutions)
        with np.errstate(divide="ignore"):
            self.margin_ = 1.0 / self.rkhs_norm_
        self.fit_status_ = int(any(status is not Status.CONVERGED for status in self._statuses))

    def _as_coef(self, coef: Matrix) -> Any:
        return sp.csr_array(coef) if self._sparse else coef

    # ---- warnings --------------------------------------------------------------------------------------------

    def _seems_psd(self, samples: Any, n: int) -> bool:
        """Look at a part of a matrix whose positive semidefiniteness nobody vouches for; warn if it is not."""
        if not self._kernel.psd_is_assumed:
            return True
        part = np.arange(n) if n <= EXAMINED else np.sort(np.random.default_rng(0).permutation(n)[:EXAMINED])
        # a float32 matrix is judged by its own rounding
        single = getattr(samples, "dtype", None) == np.float32
        examined = samples[np.ix_(part, part)] if is_pairwise(self._kernel) else take_samples(samples, part)
        features = self._kernel.prepare(examined, np.float32 if single else np.float64)
        K = self._kernel.block(features, features)
        if not np.all(np.isfinite(K)):
            raise InvalidInputError(f"{self._kernel!r} returned values that are NaN or infinite.")
        square_matrix(K, part)
        rounding = len(part) * np.finfo(np.float32).eps if single else 1e-8
        try:
            np.linalg.cholesky(K + rounding * np.abs(np.diag(K)).max() * np.eye(len(part)))
        except np.linalg.LinAlgError:
            report = check_mercer(K)
            if not report.positive_semidefinite:
                smallest, largest = report.smallest_eigenvalue, report.largest_eigenvalue
                warn_user(
                    f"The kernel matrix is not positive semidefinite: the smallest eigenvalue of {len(part)} of its "
                    f"{n} rows is {smallest:.4g}, the largest {largest:.4g}. The fit ends at a stationary point and "
                    f"its certificate is no bound. Use another kernel, or add {-smallest:.4g} to the diagonal.",
                    NotPositiveSemidefiniteWarning,
                )
                return False
        return True

    # ---- prediction ------------------------------------------------------------------------------------------

    def _validate_for_predict(self, X: Any) -> Any:
        check_is_fitted(self)
        if self._function_samples is not None:
            return call_kernel(self.kernel, X, self._function_samples)
        X, _ = validate_samples(self, X, None, reset=False)
        if self._sparse and not sp.issparse(X):
            X = sp.csr_array(X)
        if sp.issparse(X) and not self._sparse:
            raise ValueError(f"cannot use sparse input in {type(self).__name__!r} trained on dense data")
        vectors = self.support_vectors_
        if isinstance(vectors, np.ndarray) and vectors.size > 0 and self.n_support_.sum() != len(vectors):
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")
        return X

    def _values(self, X: Any, labels_only: bool = False) -> Matrix:
        """Decision values in LIBSVM's convention, one column per problem."""
        X = self._validate_for_predict(X)
        coef = self._dual_coef_.toarray() if sp.issparse(self._dual_coef_) else self._dual_coef_
        return self._support.decision(X, coef, self._intercept_, thread_count(self.n_jobs), labels_only)

    # ---- attributes ------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> Any:
        """Weights of the features, for a linear kernel."""
        if not isinstance(self._kernel, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self._get_coef()
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

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


def seems_psd(data: Data) -> bool:
    """Where nobody vouches for the kernel: whether it is positive semidefinite on a part of the samples."""
    if not data.kernel.psd_is_assumed:
        return True
    part = np.sort(np.random.default_rng(0).permutation(data.n)[:EXAMINED])
    features = data.exact(part)
    K = data.kernel.block(features, features)
    try:
        np.linalg.cholesky(K + 1e-8 * np.abs(np.diag(K)).max() * np.eye(len(part)))
    except np.linalg.LinAlgError:
        return check_mercer(K).positive_semidefinite
    return True


def norm(solution: Solution) -> float:
    """|w|, in the scale of the solved problem."""
    return float(np.sqrt(max(0.0, solution.squared_norm)))


def near(qp: BoxQP, beta: Vector) -> Vector | None:
    """A feasible β near the solution of another problem; None if that has another size.

    Only the first few coefficients are moved to correct the sums: scaling them all would take them off their bounds.
    """
    if len(beta) != qp.n_vars:
        return None
    inside = np.clip(beta, qp.lower, qp.upper)
    if infeasibility(qp, inside) <= 1e-12 * np.abs(inside).sum():
        return inside  # nothing moves for what is only rounding
    return feasible_start(qp, near=inside)
