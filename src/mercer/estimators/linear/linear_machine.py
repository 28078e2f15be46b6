"""The base class of LinearSVC and LinearSVR.

    min over w, b   P(w) + Σ Cᵢ ℓ(yᵢ, xᵢ·w + b),     P(w) = ½|w|²,  |w|₁  or  r|w|₁ + ½(1 − r)|w|²

By default b is penalised, as in scikit-learn: it is the weight of an additional feature with the constant value
``intercept_scaling``. With ``penalize_intercept=False`` b is free, as in [SSBD] (15.4) and in SVC.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.thread_pool import run_tasks
from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import Machine, logger
from mercer.estimators.linear.source_fit import fit_source, values_of
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.linear.linear_plan import NAMES, solve_linear
from mercer.linear.linear_problem import LinearProblem, Penalty, Rows
from mercer.linear.linear_solution import LinearOptions, LinearPlan, LinearSolution
from mercer.linear.multiclass.crammer_singer import JointSolution
from mercer.losses import Loss
from mercer.problems.clock import Clock
from mercer.sources.row_source import RowSource
from mercer.validation import thread_count, validate_vectors, validate_weights

# numbers per block of rows that prediction converts to float64
BLOCK = 1 << 18
# solve problems in parallel if together they have at least this many numbers
THREADS_FROM = 300_000


# with C = inf the weights of smaller numbers would overflow when squared
TOO_SMALL = 1e-150
COLUMNS = "Scale the columns of X, for example with StandardScaler."


class Prepared(NamedTuple):
    """Validated training data: rows, targets (class indices or values) and sample weights (without C)."""

    rows: Rows
    y: Vector
    weight: Vector


class Warm(NamedTuple):
    """State for a warm start: the last solutions of all problems and their C."""

    C: float
    solutions: Sequence[LinearSolution | JointSolution]


class LinearMachine(Machine):
    """Base of LinearSVC and LinearSVR.

    ``fit`` runs top down: validate, state the problems, solve them, set the fitted attributes.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [StrOptions({"l1", "l2", "elasticnet"})],
        "dual": ["boolean", StrOptions({"auto"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "C": [Interval(Real, 0.0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "penalize_intercept": ["boolean"],
        "n_jobs": [Integral, None],
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "warm_start": ["boolean"],
        "solver": [StrOptions(set(NAMES))],
        "rule": [StrOptions({"round-robin", "random", "greedy"})],
        "checkpoint": [str, PathLike, None],
    }
    _measure = "relative gap"

    coef_: Any
    intercept_: Any
    plan_: LinearPlan
    _warm: Warm | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- fit -------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearMachine:
        """Fit the model to the training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or RowSource
            Training samples. Those of `mercer.open_rows` stay on disk and are read block by block.
        y : array-like of shape (n_samples,), default=None
            Class labels or target values. None if a RowSource has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C, one per sample.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        super().fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        if isinstance(X, RowSource):
            self._publish_blocks(fit_source(self, X, y, sample_weight, clock))
            if self.verbose:
                logger.info("%s", self.plan_)
            self._warm = None
            self._warn_unfinished()
            return
        if self.checkpoint is not None:
            raise InvalidInputError(
                f"checkpoint={str(self.checkpoint)!r} is for rows on disk, but X is of type {type(X).__name__}. Open "
                "the rows with mercer.open_rows, or use checkpoint=None."
            )
        data = self._prepare(X, y, sample_weight)
        warm = getattr(self, "_warm", None) if self.warm_start else None
        solutions = self._solve(data, warm, clock)
        if self.verbose:
            logger.info("%s", self.plan_)
        self._warm = Warm(float(self.C), solutions) if self.warm_start else None
        self._warn_unfinished()

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        X, y = validate_vectors(self, X, y, reset=True, canonical=False)
        weight = validate_weights(sample_weight, X.shape[0], X)
        data = Prepared(linear_rows(self, X), self._validate_targets(y, weight), weight)
        if not data.rows.can_be_squared:
            raise wrong_scale("X", data.rows.largest, "too large: the squares have no finite sum", COLUMNS)
        return data

    @abstractmethod
    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        """Class indices or target values as float64. Sets related attributes such as ``classes_``."""

    @abstractmethod
    def _solve(self, data: Prepared, warm: Warm | None, clock: Clock) -> Sequence[LinearSolution | JointSolution]:
        """Solve all problems, set the fitted attributes and return the solutions for a warm start."""

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss of each problem."""

    @abstractmethod
    def _publish_blocks(self, solutions: Sequence[LinearSolution]) -> None:
        """Set the fitted attributes of a fit to rows on disk."""

    def _options(self) -> LinearOptions:
        # deterministic unless random_state is given
        seed = 0 if self.random_state is None else check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return LinearOptions(
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            time_limit=self.time_limit,
            n_threads=thread_count(self.n_jobs),
            rule=self.rule,
            seed=int(seed),
        )

    def _run_all(self, problems: Sequence[LinearProblem], warm: Warm | None, clock: Clock) -> list[LinearSolution]:
        """Solve independent problems: several in parallel, a single one with all threads."""
        options, k = self._options(), len(problems)
        starts = self._starts(warm, problems)
        n_threads = options.n_threads
        if k > 1:
            options = replace(options, n_threads=1)
        found: list[Any] = [None] * k

        def one(i: int) -> None:
            try:
                # on overflow the solver stops with status STALLED
                with np.errstate(over="ignore", invalid="ignore"):
                    found[i] = solve_linear(self.solver, problems[i], options, clock, starts[i])
            except BaseException:
                clock.interrupted = True  # stop the other threads
                raise

        rows = problems[0].rows
        with one_blas_thread():
            run_tasks(one, k, n_threads if k * rows.n * rows.d >= THREADS_FROM else 1)
        return found

    def _check_hard_margin(self, data: Prepared) -> None:
        """Raise if C is infinite and the numbers in X are too small for a hard margin."""
        largest = data.rows.largest if np.isinf(self.C) else 1.0
        if 0 < largest < TOO_SMALL:
            raise wrong_scale("X", largest, f"too small for C={self.C:g}: the weights would be too large", COLUMNS)

    def _check_finite(self, data: Prepared, solutions: Sequence[LinearSolution | JointSolution]) -> None:
        """Raise for weights that are not finite."""
        for s in solutions:
            numbers = (s.w, s.intercept) if isinstance(s, LinearSolution) else (s.W, s.intercepts)
            if not all(np.isfinite(part).all() for part in numbers):
                price = float(np.max(prices(self.C, data.weight)))
                raise InvalidInputError(
                    f"No finite weights were found: X has values up to {data.rows.largest:g}, C * sample_weight is up "
                    f"to {price:g}, and their products are beyond float64. {COLUMNS}"
                )

    def _starts(self, warm: Warm | None, problems: Sequence[LinearProblem]) -> list[LinearSolution | None]:
        """The starting points of all problems. β is rescaled with C, so coefficients at their bound stay there."""
        if warm is None or len(warm.solutions) != len(problems):
            return [None] * len(problems)
        ratio = float(self.C) / warm.C
        ratio = ratio if np.isfinite(ratio) and ratio > 0 else 1.0
        return [
            replace(s, beta=ratio * s.beta)
            if isinstance(s, LinearSolution) and len(s.w) == p.rows.d and len(s.beta) == p.n
            else None
            for s, p in zip(warm.solutions, problems, strict=True)
        ]

    def _publish(self, W: Matrix, intercepts: Vector, bias: float) -> None:
        """Set coef_, intercept_ and margin_. With a bias the last column of W is the weight of the constant feature."""
        self.coef_ = W[:, :-1].copy() if bias else W
        if bias:
            self.intercept_ = bias * W[:, -1]
        else:
            self.intercept_ = intercepts if self.fit_intercept else 0.0
        with np.errstate(divide="ignore", over="ignore"):
            self.margin_ = 1.0 / np.linalg.norm(self.coef_, axis=1)

    def _publish_proof(self, solutions: Sequence[Any], of: str | None = None) -> None:
        super()._publish_proof(solutions, of=of)
        self.plan_ = LinearPlan(tuple(solution.stages for solution in solutions))

    def _too_few_iterations(self, advice: str) -> str:
        return f"Liblinear failed to converge, increase the number of iterations. max_iter={self.max_iter} was reached."

    # ---- path ------------------------------------------------------------------------------------------------

    def path(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> list[LinearMachine]:
        """Fit one model for each C, each warm-started from the previous one.

        Parameters
        ----------
        X, y, sample_weight : the training data, as in ``fit``; validated once.
        Cs : array-like of shape (n_Cs,)
            The values of C in any order; the smallest is solved first. ``time_limit`` applies to the whole path.

        Returns
        -------
        models : list
            A fitted copy of this estimator for each C, in the order of ``Cs``. The estimator itself is not fitted.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import LinearSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> for model in LinearSVC().path(X, y > 0, [0.001, 0.1, 10]):
        ...     print(model.C, model.margin_.round(1))
        0.001 [4.4]
        0.1 [1.2]
        10.0 [0.8]
        """
        given = np.asarray(Cs, dtype=np.float64)
        if given.ndim != 1 or len(given) == 0 or not np.all(given > 0):
            raise InvalidInputError(f"Cs={Cs!r} was given: a path needs a list of at least one positive number.")
        first = clone(self)
        first._validate_params()
        data = first._prepare(X, y, sample_weight)
        models: list[Any] = [None] * len(given)
        warm: Warm | None = None
        with Clock(self.time_limit) as clock:
            for i in np.argsort(given, kind="stable"):
                model = copy(first)
                model.C = float(given[i])
                warm = Warm(model.C, model._solve(data, warm, clock))
                model._warn_unfinished()
                models[i] = model
        return models

    # ---- prediction ------------------------------------------------------------------------------------------

    def _values(self, X: Any) -> Matrix:
        """Decision values Xw + b, one column per problem."""
        check_is_fitted(self)
        if isinstance(X, RowSource):
            return values_of(self, X)
        X, _ = validate_vectors(self, X, None, reset=False, canonical=False)
        return products(X, self.coef_) + self.intercept_


def wrong_scale(name: str, largest: float, reason: str, advice: str) -> InvalidInputError:
    """The error for numbers that are too large or too small to compute with."""
    return InvalidInputError(f"The largest absolute value of {name} is {largest:g}, which is {reason}. {advice}")


def linear_rows(machine: Any, X: Any) -> Rows:
    """The samples of a linear machine, with a constant feature if its intercept is penalised."""
    penalised = machine.fit_intercept and getattr(machine, "penalize_intercept", True)
    return Rows.of(X, float(machine.intercept_scaling) if penalised else 0.0)


def linear_problem(machine: Any, rows: Rows, loss: Loss, y: Vector, weight: Vector) -> LinearProblem:
    """The problem of a linear machine; y is ±1 or real, ``weight`` does not include C."""
    price = prices(machine.C, weight)
    free = bool(machine.fit_intercept and not getattr(machine, "penalize_intercept", True))
    kind = getattr(machine, "penalty", "l2")
    ratio = float(machine.l1_ratio) if kind == "elasticnet" else float(kind == "l1")
    return LinearProblem(rows, loss, y, price, free, Penalty(l1=ratio, l2=1.0 - ratio))


def prices(C: float, weight: Vector) -> Vector:
    """C times the sample weight; 0 for samples of weight 0 even if C is infinite."""
    return float(C) * weight if np.isfinite(C) else np.where(weight > 0, np.inf, 0.0)


def products(X: Any, coef: Any) -> Matrix:
    """X W' in float64. Works on blocks of rows, so float32 data are never copied as a whole."""
    W = coef.T if sp.issparse(coef) else np.asarray(coef, dtype=np.float64).T
    if sp.issparse(X):
        out = X @ W
        return np.asarray(out.toarray() if sp.issparse(out) else out, dtype=np.float64)
    n = X.shape[0]
    out = np.empty((n, *W.shape[1:]))
    step = max(1, BLOCK // max(1, X.shape[1]))
    for start in range(0, n, step):
        out[start : start + step] = X[start : start + step].astype(np.float64, copy=False) @ W
    return out
