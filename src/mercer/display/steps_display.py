"""Every step of a procedure: what it improves, and which sample moved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.display.canvas import CHOSEN, colour, machine_of, pyplot
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Vector
from mercer.problems.steps import Steps

# more steps than this are drawn as small points, and more than the second number as lines without points
FEW, POINTS = 2_000, 100
# falling numbers whose largest is this many times their smallest have a logarithmic axis
WIDE = 20.0
# relative difference of a clipped and an unclipped step up to which they are the same
ROUNDING = 1e-12
# parts of given axes: their upper and their lower panel, as left, bottom, width, height
UPPER, LOWER = (0.0, 0.5, 1.0, 0.5), (0.0, 0.0, 1.0, 0.4)
PALE = "#b0b0b0"


@dataclass(eq=False)
class StepsDisplay:
    """The steps of a procedure: above, its measure; below, the sample of each step.

    The measure is what the procedure improves: the dual value of SMO and of coordinate ascent, the objective of
    Pegasos, the mistakes of the perceptron, the error of kernel LMS. Below, a step that was clipped to the box is a
    cross and a free one a point; for Pegasos and the perceptron, a sample that changed w is a point. A step that
    changes nothing is a pale dot. A step of kernel LMS moves all samples, so that the length of the change is drawn
    instead.

    Parameters
    ----------
    steps : the steps.

    Attributes
    ----------
    figure_, axes_ : the figure and its two axes, the upper one first.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from mercer import Perceptron, StepsDisplay
    >>> model = Perceptron(trace=True).fit([[0.0], [1.0], [3.0]], [0, 0, 1])
    >>> StepsDisplay.from_estimator(model).steps.measure
    'mistakes'
    """

    steps: Steps
    figure_: Any = field(default=None, init=False, repr=False)
    axes_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, machine: int = 0, ax: Any = None) -> StepsDisplay:
        """Draw the ``steps_`` of a machine that was fitted with ``trace=True``.

        Parameters
        ----------
        estimator : a fitted machine, or a pipeline or search that ends in one.
        machine : int, default=0
            Which of its binary machines, if it has several classes.
        ax : axes to draw on, which are divided in two; None for a new figure.
        """
        return cls(steps_of(estimator, machine)).plot(ax=ax)

    @property
    def number(self) -> Vector:
        """The number of each step: column t, or 1, 2, …"""
        return self.steps.columns.get("t", np.arange(1, len(self.steps) + 1))

    @property
    def kinds(self) -> list[tuple[str, Vector, str]]:
        """The kinds of steps: a name, a mark for each step that is of the kind, and the look ("free", "clipped" or
        "still")."""
        columns = self.steps.columns
        for name, yes, no in (("updated", "updated w", "no update"), ("mistake", "mistake", "no mistake")):
            if name in columns:
                return [(yes, columns[name], "free"), (no, ~columns[name], "still")]
        if "clipped" not in columns or "unclipped" not in columns:
            return [("step", np.ones(len(self.steps), dtype=bool), "free")]
        clipped = ~np.isclose(columns["clipped"], columns["unclipped"], rtol=ROUNDING, atol=0.0)
        # a coordinate that stays at its bound leaves the measure as it is
        still = clipped & (np.diff(columns[self.steps.measure], prepend=0.0) == 0.0)
        found = [("free step", ~clipped, "free"), ("clipped to the box", clipped & ~still, "clipped")]
        return [*found, ("stays at its bound", still, "still")] if still.any() else found

    def plot(self, *, ax: Any = None) -> StepsDisplay:
        """Draw."""
        if ax is None:
            self.figure_, self.axes_ = pyplot().subplots(
                2, 1, sharex=True, figsize=(6.4, 4.8), layout="constrained", height_ratios=(3, 2)
            )
        else:
            pyplot()
            ax.set_axis_off()
            upper = ax.inset_axes(UPPER)
            self.figure_, self.axes_ = ax.figure, np.array([upper, ax.inset_axes(LOWER, sharex=upper)])
            upper.tick_params(labelbottom=False)
        upper, lower = self.axes_
        self._draw(upper, self.steps.measure, 0)
        noun = "step" if len(self.steps) == 1 else "steps"
        first = "" if self.steps.complete else "the first "
        upper.set_title(f"{first}{len(self.steps):,} {noun} of {self.steps.method}", fontsize="medium")
        if "i" in self.steps.columns:
            self._draw_samples(lower)
        else:
            self._draw(lower, "change", 1)
        lower.set_xlabel("step")
        lower.xaxis.get_major_locator().set_params(integer=True)
        return self

    def _draw(self, ax: Any, name: str, number: int) -> None:
        """A column against the number of the step."""
        values = self.steps.columns.get(name)
        if values is None:
            ax.set_visible(False)
            return
        style = {"marker": "o", "ms": 2.5} if len(self.steps) <= POINTS else {}
        ax.plot(self.number, values, color=colour(number), lw=1.2, **style)
        falls = values.dtype == np.float64 and len(values) > 0 and values[0] > values[-1] > 0
        if falls and values.min() > 0 and values.max() > WIDE * values.min():
            ax.set_yscale("log")
        ax.set_ylabel(name)

    def _draw_samples(self, ax: Any) -> None:
        """The samples of each step, by kind."""
        columns, few = self.steps.columns, len(self.steps) <= FEW
        looks: dict[str, dict[str, Any]] = {
            "free": {"marker": "o", "ms": 3.0 if few else 1.0, "color": colour(0), "zorder": 4},
            "clipped": {"marker": "x", "ms": 4.0 if few else 1.5, "color": CHOSEN, "zorder": 3},
            "still": {"marker": "o", "ms": 1.5 if few else 0.8, "color": PALE, "zorder": 2},
        }
        pairs = ["i", "j"] if "j" in columns else ["i"]
        if few and "j" in columns:
            ax.vlines(self.number, columns["i"], columns["j"], color=PALE, lw=0.5)
        for label, mark, look in self.kinds:
            for name in pairs:
                shown = f"{label} ({int(mark.sum()):,})" if name == "i" else None
                points = self.number[mark], columns[name][mark]
                ax.plot(*points, ls="", label=shown, **looks[look])
        ax.set_ylabel("samples i and j" if "j" in columns else "sample i")
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.legend(
            loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2, ncols=3, fontsize="x-small", frameon=False,
            markerscale=1.0 if few else 3.0,
        )  # fmt: skip


def steps_of(estimator: Any, machine: int = 0) -> Steps:
    """The steps of a fitted machine; of one of its binary machines if it has several."""
    check_is_fitted(estimator)
    model = machine_of(estimator)
    found = getattr(model, "steps_", None)
    if found is None:
        name = type(model).__name__
        hint = f"fit {name}(trace=True)" if hasattr(model, "trace") else "give a machine such as SVC(trace=True)"
        raise InvalidInputError(f"This {name} has no steps_: {hint}.")
    several = found if isinstance(found, list) else [found]
    if not 0 <= machine < len(several):
        raise InvalidInputError(
            f"machine={machine}: this {type(model).__name__} has {len(several)} binary machines, numbered from 0 to "
            f"{len(several) - 1}."
        )
    return several[machine]
