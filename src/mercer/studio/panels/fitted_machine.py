"""The machine of a state: the estimator that the mode asks for, fitted once and kept for later questions."""

from __future__ import annotations

import math
import sys
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mercer.estimators.gaussian_process import GaussianProcessRegressor
from mercer.estimators.one_class import OneClassSVM
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR
from mercer.exceptions import MercerError, NotSeparableError
from mercer.kernels.features import Matrix
from mercer.problems.solution import Certificate
from mercer.studio.state import State, StateError

# violation of the optimality conditions at which a fit ends; a tenth of a pixel
TOL = 1e-6
# seconds after which a fit is shown as it is
TIME_LIMIT = 10.0
# relative gap at which a fit that rounding has stopped is as good as optimal
CLOSE = 1e-9
# the largest relative gap of a fit that is shown as optimal: with a huge C, small violations make a large gap
SMALL = 1e-4
# fitted machines that are kept
KEPT = 16
# significant digits of numbers in an answer
DIGITS = 7

Found = TypeVar("Found")


class Cache:
    """The results of the last calls, by key. Threads may share it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._found: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, compute: Callable[[], Found]) -> Found:
        """The kept result for the key; computed if there is none."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                kept: Found = self._found[key]
                return kept
        found = compute()  # outside the lock: other questions need not wait
        with self._lock:
            self._found[key] = found
            while len(self._found) > self.size:
                self._found.popitem(last=False)
        return found


_MACHINES = Cache(KEPT)


def key_of(state: State) -> tuple[Hashable, ...]:
    """All values that a fit depends on, as a key of the cache."""
    own: dict[str, tuple[Hashable, ...]] = {
        "classify": (state.C, state.loss, state.bias),
        "regress": (state.C, state.loss, state.bias, state.epsilon),
        "quantiles": (state.C, state.bias, state.quantiles),
        "one_class": (state.nu,),
        "process": (state.noise,),
    }
    return (state.mode, state.points, state.kernel, *own[state.mode])


def estimator(state: State, quantile: float | None = None) -> Any:
    """The unfitted machine of a state; in the mode "quantiles" that of one quantile."""
    kernel = state.machine_kernel
    limits: dict[str, Any] = {"tol": TOL, "time_limit": TIME_LIMIT}
    if state.mode == "classify":
        return SVC(kernel=kernel, C=state.C, loss=state.loss, fit_intercept=state.bias, **limits)
    if state.mode == "one_class":
        return OneClassSVM(kernel=kernel, nu=state.nu, **limits)
    if state.mode == "process":
        return GaussianProcessRegressor(kernel, alpha=state.noise**2, optimizer=None)
    if state.mode == "quantiles":
        given = 0.5 if quantile is None else quantile
        return SVR(kernel=kernel, C=state.C, loss="pinball", quantile=given, fit_intercept=state.bias, **limits)
    loss = "epsilon_insensitive" if state.loss == "hinge" else "squared_epsilon_insensitive"
    return SVR(kernel=kernel, C=state.C, epsilon=state.epsilon, loss=loss, fit_intercept=state.bias, **limits)


def fitted(state: State) -> Any:
    """The fitted machine of a state; in the mode "quantiles" a list with one for each quantile.

    Raises NotSeparableError for a hard margin that does not exist, and StateError if the points do not suffice.
    """
    why = too_few(state)
    if why is not None:
        raise StateError(why, "points")
    return _MACHINES.get(key_of(state), lambda: _fit(state))


def _fit(state: State) -> Any:
    with quietly():
        try:
            if state.mode == "quantiles":
                return [estimator(state, q).fit(state.X, state.y) for q in state.quantiles]
            model = estimator(state)
            return model.fit(state.X) if state.mode == "one_class" else model.fit(state.X, state.y)
        except NotSeparableError:
            raise
        except (MercerError, ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            raise StateError(refusal(error), "kernel") from None


def reached(model: Any) -> bool:
    """Whether a fit reached its tolerance with a small gap, or came so close that rounding allows no more."""
    shown = model.certificate_
    if not shown.valid:  # the kernel is indefinite: there is no gap
        return bool(model.fit_status_ == 0)
    return bool(shown.relative_gap <= (SMALL if model.fit_status_ == 0 else CLOSE))


def unfinished(models: list[Any]) -> str:
    """The message for fits that are not shown as optimal."""
    gap = max(model.certificate_.relative_gap for model in models)
    return f"The fit ended before it reached the optimum; its relative gap is {short(gap)}. Lower C."


def refusal(error: Exception) -> str:
    """Why a kernel or a fit refuses these points, in the words of the error."""
    text = str(error) or type(error).__name__
    return text if len(text) <= 1000 else f"{text[:997]}..."


def too_few(state: State) -> str | None:
    """The points that are missing for a fit, as a sentence; None if there are enough."""
    if state.mode == "classify":
        return None if len(state.classes) >= 2 else "Place points of at least two classes."
    return None if state.n >= 1 else "Place at least one point."


# ---- numbers in answers -----------------------------------------------------------------------------------------


def plain(value: Any) -> float | None:
    """A number for JSON: None if it is undefined."""
    value = float(value)
    return value if math.isfinite(value) else None


def rounded(values: ArrayLike) -> list[Any]:
    """Numbers for JSON, rounded relative to the largest; undefined ones are None. Rows become lists."""
    array = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(array)
    largest = float(np.abs(array[finite]).max(initial=0.0))
    if largest > 0:
        digits = DIGITS - 1 - math.floor(math.log10(largest))
        if abs(digits) < 300:
            array = np.round(array, digits) + 0.0
    if finite.all():
        listed: list[Any] = array.tolist()
        return listed
    return _with_none(array.tolist())


def _with_none(values: list[Any]) -> list[Any]:
    return [_with_none(one) if isinstance(one, list) else (one if math.isfinite(one) else None) for one in values]


def short(value: float) -> str:
    """A number as a person reads it."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "undefined"
    text = f"{value:.4g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        text = f"{mantissa}·10{raised}"
    return text.replace("-", "−")


def item(name: str, value: float, help: str, text: str | None = None) -> dict[str, Any]:
    """One number of the list beside the picture."""
    return {"name": name, "value": plain(value), "text": short(value) if text is None else text, "help": help}


def certificate_json(shown: Certificate | None, why: str | None = None) -> dict[str, Any] | None:
    """A certificate as JSON."""
    if shown is None:
        return None
    return {
        "primal": plain(shown.primal),
        "dual": plain(shown.dual),
        "gap": plain(shown.gap),
        "relative_gap": plain(shown.relative_gap),
        "kkt_violation": plain(shown.kkt_violation),
        "valid": shown.valid,
        "text": str(shown),
        "why": why or shown.reason or None,
    }


# ---- grids ------------------------------------------------------------------------------------------------------


def lattice(state: State, grid: tuple[int, int]) -> Matrix:
    """The points of a grid over the view, row by row from y_min up."""
    x_min, x_max, y_min, y_max = state.view
    x, y = np.meshgrid(np.linspace(x_min, x_max, grid[0]), np.linspace(y_min, y_max, grid[1]))
    return np.column_stack([x.ravel(), y.ravel()])


def axis(state: State, columns: int) -> Matrix:
    """Evenly spaced x over the view, as a column."""
    return np.linspace(state.view[0], state.view[1], columns)[:, None]


def grid_json(state: State, grid: tuple[int, int], values: Sequence[float] | Any) -> dict[str, Any]:
    """Values at the points of `lattice`."""
    columns, rows = grid
    shown = np.asarray(values).reshape(rows, columns)
    return {"columns": columns, "rows": rows, "view": list(state.view), "values": rounded(shown)}


# ---- warnings and time ------------------------------------------------------------------------------------------


class _Quiet:
    """The number of blocks that ignore warnings, and the context that restores the filters after the last block."""

    def __init__(self) -> None:
        self.lock, self.depth = threading.Lock(), 0
        self.filters: Any = None


_QUIET = _Quiet()


@contextmanager
def quietly() -> Iterator[None]:
    """Ignore warnings in a block, also in several threads at once: status and certificate tell the same.

    With `warnings.catch_warnings` in each thread, threads that leave in another order would restore the wrong filters.
    Here only the first thread enters it, and the last one leaves it.
    """
    if getattr(sys.flags, "context_aware_warnings", False):  # each thread has filters of its own
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
        return
    with _QUIET.lock:
        if _QUIET.depth == 0:
            _QUIET.filters = warnings.catch_warnings()
            _QUIET.filters.__enter__()
            warnings.simplefilter("ignore")
        _QUIET.depth += 1
    try:
        yield
    finally:
        with _QUIET.lock:
            _QUIET.depth -= 1
            if _QUIET.depth == 0:
                _QUIET.filters.__exit__(None, None, None)


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds so far, rounded to microseconds."""
        return round(time.perf_counter() - self.start, 6)
