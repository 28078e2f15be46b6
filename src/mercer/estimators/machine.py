"""What every machine does around its solver: callbacks, time and interrupts, the certificate, the warning."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from types import FrameType
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from mercer._sklearn_compat import CallbackSupportMixin, fit_context
from mercer.linear.crammer_singer import JointSolution
from mercer.linear.solution import LinearSolution
from mercer.problems.certificate import Certificate, combine
from mercer.problems.clock import Clock, Progress, ended_outside
from mercer.problems.solution import Solution, Status, TracePoint

logger = logging.getLogger("mercer")


def watcher(
    estimator: Any, context: Any, clock: Clock, task: dict[str, Any], measure: str = "violation"
) -> Progress | None:
    """What is told of each round: the log if verbose, and scikit-learn's callbacks if there are any.

    ``task`` is what callbacks are told of the fit, ``measure`` names what the run brings down to tol. Callbacks that
    ask for a fitted estimator get that of the round where the run is one problem, else None.
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
            return bool(here.call_on_fit_task_end(**task, reconstruction_attributes=clock.attributes()))

    return watch


def show_log() -> None:
    """Let the log be seen if nobody has set one up."""
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[mercer] %(message)s"))
        logger.addHandler(handler)
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line outside of mercer and scikit-learn that has called them."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("mercer", "sklearn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


# parameters of these types say everything by their value
_PLAIN = (str, int, float, bool, type(None))
MOST_KNOWN = 10_000


class KnownParameters(BaseEstimator):  # type: ignore[misc]
    """scikit-learn's base of all estimators, which remembers what it has found out about parameters."""

    _param_names: list[str]
    _known_params: ClassVar[set[tuple[Any, ...]]] = set()

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """scikit-learn's, remembered: reading the signature takes a tenth of a small fit."""
        if "_param_names" not in cls.__dict__:
            cls._param_names = super()._get_param_names()
        return list(cls._param_names)

    def _validate_params(self) -> None:
        """scikit-learn's, but for plain values that have been validated before, which takes a tenth of a small fit."""
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


class Machine(CallbackSupportMixin, KnownParameters, ABC):  # type: ignore[misc]
    """The base of all estimators that solve a problem to a tolerance and certify what they have found.

    Ctrl-C during ``fit`` ends it with a usable model and a warning; a second one within five seconds is a
    KeyboardInterrupt, even if the next fit has begun. Within searches, cross-validation and ensembles of scikit-learn
    the first one is a KeyboardInterrupt (see `Clock`).
    """

    # what the tolerance bounds, as the log of a run calls it
    _measure: ClassVar[str] = "violation"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Machine:
        """Fit the model to the training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples), or list of object
            Training samples; the kernel matrix for ``kernel="precomputed"``; any objects (strings, sets, graphs,
            records) for a kernel on these, or for a kernel function.
        y : array-like of shape (n_samples,)
            Class labels or target values.
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
            clock.progress = watcher(self, context, clock, task, self._measure)
            if self.verbose:
                clock.log = logger.info
            self._fit(X, y, sample_weight, clock)
        # a fitted estimator is a copy of self, which has all attributes by now
        context.call_on_fit_task_end(estimator=self, X=X, y=y, metadata=metadata, reconstruction_attributes={})
        return self

    def _as_if(self, publish: Callable[[Any], None]) -> dict[str, Any]:
        """The attributes that publishing something would set, for a copy that callbacks may ask."""
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
        """The certificates, the trace and how the runs ended."""
        self.certificates_: list[Certificate] = [s.certificate for s in solutions]
        self.certificate_ = combine(self.certificates_, of=of)
        self.trace_: list[TracePoint] = [point for s in solutions for point in s.trace]
        self._statuses = [s.status for s in solutions]

    def _warn_unfinished(self) -> None:
        """Say in numbers how far a run that ended early is from the optimum."""
        status = next((s for s in self._statuses if s is not Status.CONVERGED), None)
        if status is None or (status is Status.INTERRUPTED and ended_outside()):
            return  # in the second case the search that began this fit drops it, and says so
        reached = f" The model is {self.certificate_}; tol is {self.tol:g}."
        scale = "Consider pre-processing your data with StandardScaler or MinMaxScaler."
        message = {
            Status.MAX_ITER: self._too_few_iterations(scale),
            Status.TIME_LIMIT: f"Solver terminated early (time_limit={self.time_limit} s).  {scale}",
            Status.INTERRUPTED: "Solver was interrupted; the model fitted so far is usable.",
        }.get(status, f"Solver stopped where rounding allows no further progress.  {scale}")
        warn_user(message + reached, ConvergenceWarning)

    def _too_few_iterations(self, advice: str) -> str:
        """scikit-learn's words for a run that max_iter has ended."""
        return f"Solver terminated early (max_iter={self.max_iter}).  {advice}"
