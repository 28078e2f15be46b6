"""The base class of PegasosClassifier and Perceptron, which learn from one sample at a time.

Several classes are handled one-vs-rest. All problems see the same samples in the same order, so they share their kernel
values.
"""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mercer._compiled.blas import one_blas_thread
from mercer._sklearn_compat import Interval, StrOptions, available_if, fit_context, num_samples
from mercer.estimators.base import KernelMachine
from mercer.estimators.prediction import Expansion
from mercer.estimators.score_mixins import LabelsMixin
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import budget_bytes
from mercer.gram.operator import Data, check_finite, product
from mercer.kernels import Kernel, Linear, Precomputed
from mercer.kernels.features import Matrix, Vector, stack_samples, take_samples
from mercer.online.sgd import KernelRun, LinearRun, Memory, Rule, Run
from mercer.online.sgd_trace import Recorder
from mercer.problems.clock import Clock
from mercer.validation import (
    check_weighted_classes,
    class_codes,
    class_weights,
    is_pairwise,
    thread_count,
    validate_samples,
    validate_weights,
)

# steps between two checks of the time limit
LINEAR_STEPS, KERNEL_STEPS, TRACED_STEPS = 1 << 17, 1 << 11, 1 << 5


class OnlineClassifier(LabelsMixin, KernelMachine):
    """f(x) = <w, φ(x)> + b. The model is w itself for the linear kernel, and coefficients of samples for others."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            key: KernelMachine._parameter_constraints[key]
            for key in ("kernel", "degree", "gamma", "coef0", "cache_size", "verbose", "fit_intercept", "n_jobs")
        },
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "random_state": ["random_state"],
        "trace": ["boolean"],
    }

    _norms: Any

    @abstractmethod
    def _rule(self, n_steps: int | None) -> Rule:
        """The update rule for a run of ``n_steps`` steps; None if the number is unknown."""

    # ---- training --------------------------------------------------------------------------------------------

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        self.classes_, codes = class_codes(y)
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes)
        check_weighted_classes(codes, weight, self.class_weight_)
        return codes

    @property
    def _is_linear(self) -> bool:
        return isinstance(self._kernel, Linear)

    @property
    def _n_problems(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _signs(self, codes: Vector) -> Matrix:
        """Labels ±1, one row per problem; with two classes the second is positive."""
        positive = np.arange(len(self.classes_))[:, None] if self._n_problems > 1 else np.array([[1]])
        return np.where(codes == positive, 1.0, -1.0)

    def _begin(
        self,
        data: Data,
        codes: Vector,
        weight: Vector,
        step: Vector,
        rule: Rule,
        clock: Clock | None = None,
        stored: bool = True,
    ) -> Run:
        """Start a run over these samples. ``stored``: compute the kernel matrix first if memory and time allow."""
        y = self._signs(codes)
        if self._is_linear:
            linear = LinearRun(data.samples, y, weight, step, rule)
            check_finite(linear.squared_lengths)
            return linear
        kernel, features = data.kernel, data.features(np.float64)
        stored = stored and not is_pairwise(kernel) and 8 * data.n**2 <= budget_bytes(self.cache_size)
        if stored and (clock is None or data.in_time(thread_count(self.n_jobs), clock.left)):
            K = data.matrix(np.float64, thread_count(self.n_jobs))
            check_finite(K)
            kernel, features = Precomputed(), Precomputed().prepare(K)
        run = KernelRun(kernel, features, y, weight, step, rule, data.evaluations)
        check_finite(run.diagonal)
        return run

    def _record(self, run: Run, per_pass: int, offset: int = 0) -> None:
        """Let the run keep its steps if ``trace`` asks for it. Edits the run."""
        if self.trace:
            run.recorder = Recorder(offset, per_pass)

    def _steps(self, run: Run, data: Data, clock: Clock) -> int:
        """Steps until the next check of the clock; 0 if no time is left for steps and for the certificate."""
        if clock.over() is not None:
            return 0
        if run.recorder is not None and not run.recorder.full:
            return TRACED_STEPS
        if self._is_linear or clock.left == np.inf:
            return LINEAR_STEPS if self._is_linear else KERNEL_STEPS
        carried, threads = int(np.count_nonzero(run.v.any(axis=0))), thread_count(self.n_jobs)
        # time for the certificate: values at all samples, norms of the model and of a dual point
        end = data.seconds(data.n, carried, threads) + data.seconds(carried, 2 * carried, threads)
        each = data.column_seconds(data.n, threads) + data.seconds(1, carried, threads)
        return int(max(0.0, min(KERNEL_STEPS, 0.5 * (clock.left - end) / each)))

    def _takes_parts(self) -> bool:
        if is_pairwise(self.kernel) or (callable(self.kernel) and not isinstance(self.kernel, Kernel)):
            raise AttributeError(
                f"partial_fit is not available for kernel={self.kernel!r}: it needs kernel values between new and "
                "earlier samples. Use a kernel object, such as CallableKernel(function), or fit."
            )
        return True

    @available_if(_takes_parts)
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> OnlineClassifier:
        """Continue training with new samples: one pass over them in random order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New samples. Samples of earlier calls matter only through the current model.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), default=None
            All classes that can occur; required in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of the updates.

        Returns
        -------
        self : object
            The estimator. With ``trace=True``, its ``steps_`` are those of this call: t and the number of mistakes go
            on from earlier calls, i counts the samples of this one, and an objective is that of these samples.
        """
        first = not hasattr(self, "_memory")
        X, y = validate_samples(self, X, y, reset=first)
        n = num_samples(X)
        weight = validate_weights(sample_weight, n, X)
        codes = self._partial_targets(y, classes)
        weight = weight * self.class_weight_[codes]
        if first:
            self._bind(X, n)
        elif sp.issparse(X) != self._sparse:
            now, before = ("sparse", "dense") if sp.issparse(X) else ("dense", "sparse")
            raise InvalidInputError(f"X is {now}, but earlier samples were {before}: pass the same format each time.")
        memory: Memory | None = None if first else self._memory
        kept = 0 if memory is None or self._is_linear else memory.v.shape[1]
        if kept:
            # samples of earlier calls get weight 0, so they are not drawn again
            X = stack_samples(self._memory_samples, X)
            codes = np.concatenate([np.zeros(kept, np.intp), codes])
            weight = np.concatenate([np.zeros(kept), weight])
        drawn = self._generator().permutation(np.flatnonzero(weight > 0))
        # each new sample is used once: storing the kernel matrix would not pay
        run = self._begin(Data(self._kernel, X, kept + n), codes, weight, weight, self._rule(None), stored=False)
        if memory is not None:
            run.go_on_from(memory)
        self._record(run, len(drawn), kept)
        run.advance(drawn, thread_count(self.n_jobs))
        for name in ("certificate_", "certificates_", "objective_trace_", "n_iter_"):
            self.__dict__.pop(name, None)  # they belong to samples that are not available any more
        self._publish(run, X)
        self._norms = None  # computed on request: it costs more than a step
        return self

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31))

    def _partial_targets(self, y: Any, classes: Any) -> Vector:
        """The index of each label in classes_."""
        if not hasattr(self, "_memory"):
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            self.classes_, _ = class_codes(classes)
            if self.class_weight == "balanced":
                raise ValueError(
                    "class_weight 'balanced' is not supported for partial_fit. Compute the weights from a large enough "
                    "sample, and pass them as class_weight."
                )
            self.class_weight_ = class_weights(self.class_weight, self.classes_, np.arange(len(self.classes_)))
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError(f"classes={classes!r} is not the same as on last call to partial_fit: {self.classes_!r}")
        labels = column_or_1d(y, warn=True)
        unknown = np.setdiff1d(labels, self.classes_).tolist()
        if unknown:
            raise ValueError(f"y contains the label {unknown[0]!r}, but the classes are {self.classes_.tolist()}.")
        return np.searchsorted(self.classes_, labels)

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        clock.reports.to_attributes = lambda run: self._as_if(
            lambda machine: machine._publish_run(run.frozen(), data.samples)
        )
        # BLAS computes small sums only here: its threads would cost more than they gain
        with one_blas_thread():
            self._publish_run(self._train(data, y, weight, clock), data.samples)

    def _publish_run(self, run: Run, samples: Any) -> None:
        """Set the fitted attributes and the norm of the model."""
        self._publish(run, samples)
        model = run.model()
        with np.errstate(over="ignore", invalid="ignore"):
            squares = run.squared_norms(model) - model.intercept**2
        self._norms = np.sqrt(np.maximum(0.0, squares))

    @abstractmethod
    def _train(self, data: Data, codes: Vector, weight: Vector, clock: Clock) -> Run:
        """Take all steps. Sets attributes of the run, such as n_iter_."""

    # ---- publishing ------------------------------------------------------------------------------------------

    def _publish(self, run: Run, samples: Any) -> None:
        """Set the fitted attributes, and the state that a later partial_fit needs."""
        model = run.model()
        self.intercept_ = model.intercept
        self.n_updates_ = run.n_updates
        self.t_ = run.t
        self.__dict__.pop("steps_", None)  # those of an earlier fit
        if run.recorder is not None:
            self.steps_ = run.recorder.steps(run)
        if self._is_linear:
            self._w = model.w
            self._memory = run.memory()
            return
        support = np.flatnonzero(model.beta.any(axis=0))
        carries = np.flatnonzero(run.v.any(axis=0) | run.A.any(axis=0))
        pairwise = is_pairwise(self._kernel)
        self.support_ = support.astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if pairwise else take_samples(samples, support)
        self._memory_samples = None if pairwise else take_samples(samples, carries)
        self._memory = run.memory(carries)
        self._n_support = np.array([len(support)], dtype=np.int32)
        self._support = Expansion.over(self._kernel, self.support_vectors_, self.support_, run.v.shape[1])
        self._dual_coef_ = self.dual_coef_ = np.ascontiguousarray(model.beta[:, support])

    @property
    def rkhs_norm_(self) -> Vector:  # type: ignore[override]
        """|w| of each problem, without the intercept."""
        if self._norms is None:
            if self._is_linear:
                self._norms = np.linalg.norm(self._w, axis=1)
            else:
                features, beta = self._support.features(np.float64), np.ascontiguousarray(self._dual_coef_.T)
                F = product(self._kernel, features, features, beta, thread_count(self.n_jobs))
                self._norms = np.sqrt(np.maximum(0.0, np.einsum("ij,ij->j", beta, F)))
        return self._norms

    def _expansion(self) -> tuple[Kernel, Any, Matrix]:
        if not self._is_linear:
            return super()._expansion()
        # ⟨w, x⟩ = k(w, x)
        return self._kernel, self._w, np.ones(1) if self._n_problems == 1 else np.eye(self._n_problems)

    def _get_coef(self) -> Any:
        return self._w

    # ---- prediction ------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Vector:
        """The decision values: positive for the second of two classes, one column per class for more.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            <w, φ(x)> + b.
        """
        check_is_fitted(self)
        if self._is_linear:
            X, _ = validate_samples(self, X, None, reset=False)
            values = np.asarray(X @ self._w.T + self.intercept_)
        else:
            X = self._validate_for_predict(X)
            values = self._support.decision(X, self._dual_coef_, self.intercept_, thread_count(self.n_jobs))
        return values[:, 0] if self._n_problems == 1 else values
