"""The state of the page: points, kernel and parameters. `parse_state` checks what a browser or a file sends.

A state is JSON, so that it fits into a URL or a file. All fields are checked here, once; the other modules take a valid
`State`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from mercer._compiled.thread_pool import cached_property
from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel, parse_kernel
from mercer.kernels.features import Matrix, Vector

VERSION = 1
MODES = ("classify", "regress", "one_class", "quantiles", "process")
LOSSES = ("hinge", "squared_hinge")
PROCEDURES = ("smo", "coordinate", "pegasos", "perceptron", "lms")
SHOWN = ("margins", "slack", "support", "regions")
MOST_POINTS, MOST_CLASSES, MOST_QUANTILES = 2000, 10, 9
# coordinates beyond this lose their differences to rounding
LARGEST = 1e6
# a longer text or a larger expression takes too long to evaluate on a grid
LONGEST_KERNEL, MOST_KERNELS, LARGEST_EXPONENT = 500, 20, 1000
ON_POINTS = (
    "Kernels on points: linear, polynomial, gaussian, laplacian, matern, rational_quadratic, periodic, cosine, sigmoid."
)


class StateError(InvalidInputError):
    """A part of a request cannot be used. ``where`` names the part, for example "kernel" or "points"."""

    def __init__(self, what: str, where: str | None) -> None:
        super().__init__(what, where)
        self.what, self.where = what, where

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True)
class State:
    """The content of the page. The defaults are those of an empty page.

    Attributes
    ----------
    mode : which machine: one of `MODES`.
    points : (x, y, label) each. In the modes over one variable, (x, target, 0).
    view : the visible rectangle: x_min, x_max, y_min, y_max.
    kernel : text for `mercer.parse_kernel`.
    C : the weight of the loss; inf is the hard margin, "inf" in JSON.
    loss, bias : of classification and regression.
    epsilon, nu, quantiles, noise : of regression, one-class machines, quantiles, and Gaussian processes, where noise is
        the standard deviation of the targets.
    procedure : the procedure that the step mode shows, or None.
    lesson, selected : the open lesson card and the selected point, or None.
    show : which parts of the picture are drawn.
    """

    version: int = VERSION
    mode: str = "classify"
    points: tuple[tuple[float, float, int], ...] = ()
    view: tuple[float, float, float, float] = (-3.0, 3.0, -3.0, 3.0)
    kernel: str = "gaussian(gamma=1.0)"
    C: float = 1.0
    loss: str = "hinge"
    bias: bool = True
    epsilon: float = 0.1
    nu: float = 0.1
    quantiles: tuple[float, ...] = (0.1, 0.5, 0.9)
    noise: float = 0.1
    procedure: dict[str, Any] | None = None
    lesson: str | None = None
    selected: int | None = None
    show: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(SHOWN, True))

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.points)

    @property
    def in_plane(self) -> bool:
        """Whether samples have two coordinates; else one coordinate and a target."""
        return self.mode in ("classify", "one_class")

    @cached_property
    def X(self) -> Matrix:
        """The samples."""
        return self._table[:, :2] if self.in_plane else self._table[:, :1]

    @cached_property
    def y(self) -> Vector:
        """The labels, or the targets in the modes over one variable."""
        return self._table[:, 2].astype(np.intp) if self.in_plane else self._table[:, 1]

    @cached_property
    def classes(self) -> list[int]:
        """The labels that occur, ascending."""
        return sorted({label for _, _, label in self.points})

    @cached_property
    def machine_kernel(self) -> Kernel:
        """The kernel that the text describes."""
        return read_kernel(self.kernel)

    @cached_property
    def _table(self) -> Matrix:
        return np.array(self.points, dtype=np.float64).reshape(-1, 3)

    def to_json(self) -> dict[str, Any]:
        """The state as JSON; `parse_state` reads it back."""
        plain = asdict(self)
        plain["points"] = [list(point) for point in self.points]
        plain["view"], plain["quantiles"] = list(self.view), list(self.quantiles)
        plain["C"] = "inf" if math.isinf(self.C) else self.C
        return plain


FIELDS = tuple(one.name for one in fields(State))


def parse_state(given: Any) -> State:
    """The state that JSON describes; omitted fields have their defaults. Raises StateError."""
    if not isinstance(given, dict):
        raise StateError(f"A state is a JSON object, but {kind(given)} was given.", "state")
    unknown = [name for name in given if name not in FIELDS]
    if unknown:
        raise StateError(f"A state has no {shorten(unknown[0])}: it has {', '.join(FIELDS)}.", shorten(unknown[0]))
    if given.get("version", VERSION) != VERSION:
        raise StateError(f"This page reads states of version {VERSION}, not {shorten(given['version'])}.", "version")
    read = {name: READERS[name](value) for name, value in given.items() if name != "version"}
    state = State(**read)
    if state.selected is not None and state.selected >= state.n:
        raise StateError(f"Point {state.selected} is selected, but there are {state.n} points.", "selected")
    return state


def read_kernel(given: Any) -> Kernel:
    """The kernel of a text, if it is defined on points and small enough."""
    if not isinstance(given, str):
        raise StateError(f"A kernel is a text such as 'gaussian(gamma=1.0)', but {kind(given)} was given.", "kernel")
    if len(given) > LONGEST_KERNEL:
        raise StateError(f"A kernel has at most {LONGEST_KERNEL} characters here, not {len(given)}.", "kernel")
    try:
        kernel = parse_kernel(given)
    except InvalidInputError as error:
        # the library knows kernels on strings and graphs, too; the page has those on points in its list
        what = str(error).partition(" Known kernels:")[0]
        raise StateError(what if what == str(error) else f"{what} {ON_POINTS}", "kernel") from None
    except Exception as error:  # numbers that overflow, for example
        raise StateError(f"Cannot build the kernel {given!r}: {error}.", "kernel") from None
    size = count_kernels(kernel)
    if size > MOST_KERNELS:
        raise StateError(f"A kernel combines at most {MOST_KERNELS} kernels here, not {size}.", "kernel")
    if kernel.domain not in ("vectors", "any"):
        raise StateError(f"{kernel!r} does not compare points of the plane: choose a kernel on vectors.", "kernel")
    return kernel


def count_kernels(kernel: Kernel) -> int:
    """The number of kernels in an expression. Raises StateError at exponents that are too large."""
    count = 1
    for one in fields(kernel):
        value = getattr(kernel, one.name)
        parts = value if isinstance(value, tuple) else (value,)
        count += sum(count_kernels(part) for part in parts if isinstance(part, Kernel))
        if one.name in ("exponent", "degree") and isinstance(value, int) and value > LARGEST_EXPONENT:
            raise StateError(f"The {one.name} of a kernel is at most {LARGEST_EXPONENT} here.", "kernel")
    return count


# ---- readers of the fields --------------------------------------------------------------------------------------


def kind(value: Any) -> str:
    """The kind of a JSON value, in words."""
    if value is None:
        return "null"
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)


def shorten(value: Any) -> str:
    """A value as text of at most 60 characters."""
    try:
        text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "a very large number"
    except (ValueError, RecursionError):
        text = kind(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def number(value: Any, where: str, low: float = -LARGEST, high: float = LARGEST, *, open_low: bool = False) -> float:
    """A finite number within limits, as float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StateError(f"{where} must be a number, but {kind(value)} was given.", where.split(" ")[0])
    inside = (low < value if open_low else low <= value) and value <= high
    if not inside:  # NaN is outside, too
        above = "greater than" if open_low else "at least"
        raise StateError(
            f"{where} must be {above} {low:g} and at most {high:g}, but {shorten(value)} was given.",
            where.split(" ")[0],
        )
    return float(value)


def whole(value: Any, where: str, low: int, high: int) -> int:
    """A whole number within limits."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise StateError(
            f"{where} must be a whole number from {low} to {high}, but {shorten(value)} was given.", where.split(" ")[0]
        )
    return value


def one_of(value: Any, where: str, allowed: tuple[str, ...]) -> str:
    """One of some texts."""
    if not isinstance(value, str) or value not in allowed:
        raise StateError(f"{where} must be one of {', '.join(allowed)}, but {shorten(value)} was given.", where)
    return value


def truth(value: Any, where: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise StateError(f"{where} must be true or false, but {kind(value)} was given.", where)
    return value


def _points(value: Any) -> tuple[tuple[float, float, int], ...]:
    if not isinstance(value, list):
        raise StateError(f"points must be a list, but {kind(value)} was given.", "points")
    if len(value) > MOST_POINTS:
        raise StateError(
            f"There are {len(value):,} points, but the page holds at most {MOST_POINTS:,}. Open larger data as a "
            "table: it draws a sample for the plane and fits all rows.",
            "points",
        )
    points = []
    for k, point in enumerate(value):
        if not isinstance(point, list) or len(point) != 3:
            raise StateError(f"Point {k} must be [x, y, label], but it is {shorten(point)}.", "points")
        x, y = (number(coordinate, f"points {k}") for coordinate in point[:2])
        label = point[2]
        if isinstance(label, float) and label.is_integer():
            label = int(label)
        points.append((x, y, whole(label, f"points {k}: the label", 0, MOST_CLASSES - 1)))
    return tuple(points)


def _view(value: Any) -> tuple[float, float, float, float]:
    if not isinstance(value, list) or len(value) != 4:
        raise StateError(f"view must be [x_min, x_max, y_min, y_max], but it is {shorten(value)}.", "view")
    x_min, x_max, y_min, y_max = (number(edge, "view") for edge in value)
    if not (x_max - x_min > 1e-9 and y_max - y_min > 1e-9):
        raise StateError("view must have x_min < x_max and y_min < y_max.", "view")
    return x_min, x_max, y_min, y_max


def _kernel(value: Any) -> str:
    read_kernel(value)
    return str(value)


def read_C(value: Any) -> float:
    """C as a number; "inf" is the hard margin."""
    return math.inf if value == "inf" else number(value, "C", 0.0, 1e12, open_low=True)


def _quantiles(value: Any) -> tuple[float, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_QUANTILES:
        raise StateError(f"quantiles must be a list of 1 to {MOST_QUANTILES} numbers.", "quantiles")
    return tuple(sorted({number(one, "quantiles", 0.001, 0.999) for one in value}))


def _procedure(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise StateError(f"procedure must be an object or null, but {kind(value)} was given.", "procedure")
    one_of(value.get("name"), "procedure", PROCEDURES)
    for name, one in value.items():
        if not isinstance(one, str | int | float | bool | None) and not _short_list(one):
            raise StateError(f"procedure: {shorten(name)} must be a text or a number.", "procedure")
        if (isinstance(one, str) and len(one) > 60) or (isinstance(one, float) and not math.isfinite(one)):
            raise StateError(f"procedure: {shorten(name)} cannot be {shorten(one)}.", "procedure")
    return dict(value)


def _short_list(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 2 and all(isinstance(one, int) for one in value)


def _lesson(value: Any) -> str | None:
    if value is not None and not (isinstance(value, str) and len(value) <= 100):
        raise StateError("lesson must be the id of a lesson, or null.", "lesson")
    return value


def _show(value: Any) -> dict[str, bool]:
    if not isinstance(value, dict) or any(name not in SHOWN for name in value):
        raise StateError(f"show must be an object with some of {', '.join(SHOWN)}.", "show")
    return dict.fromkeys(SHOWN, True) | {name: truth(one, "show") for name, one in value.items()}


READERS: dict[str, Any] = {
    "mode": lambda value: one_of(value, "mode", MODES),
    "points": _points,
    "view": _view,
    "kernel": _kernel,
    "C": read_C,
    "loss": lambda value: one_of(value, "loss", LOSSES),
    "bias": lambda value: truth(value, "bias"),
    "epsilon": lambda value: number(value, "epsilon", 0.0),
    "nu": lambda value: number(value, "nu", 0.0, 1.0, open_low=True),
    "quantiles": _quantiles,
    "noise": lambda value: number(value, "noise", 1e-6),
    "procedure": _procedure,
    "lesson": _lesson,
    "selected": lambda value: None if value is None else whole(value, "selected", 0, MOST_POINTS - 1),
    "show": _show,
}
