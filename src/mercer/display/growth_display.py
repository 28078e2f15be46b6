"""A picture of the growth of a landmark machine: how far it is from the exact machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mercer.display.canvas import CHOSEN, axes, colour, machine_of
from mercer.exceptions import InvalidInputError

LABELS = {"landmarks": "landmarks", "seconds": "seconds"}
# gaps of 0 are drawn at this level
LEAST = 1e-8


@dataclass(eq=False)
class GrowthDisplay:
    """The relative gaps of a landmark machine in each round, against its landmarks or seconds.

    One line is the certified gap to the exact machine, the other the gap to the best machine of the same landmarks.
    Between rounds the first is estimated from some rows; in the last round it is that of ``certificate_``.

    Parameters
    ----------
    growth : ``growth_`` of a fitted machine: the rounds, or a list of rounds for each pair of classes.
    tol : ``landmark_tol``; None for none.
    against : {"landmarks", "seconds"}
        The horizontal axis.

    Attributes
    ----------
    figure_, ax_, lines_ : the figure, its axes and lines.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SVC, GrowthDisplay
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> model = SVC(landmarks="auto").fit(X, y)
    >>> GrowthDisplay.from_estimator(model).against
    'landmarks'
    """

    growth: list[Any]
    tol: float | None = None
    against: str = "landmarks"
    figure_: Any = field(default=None, init=False)
    ax_: Any = field(default=None, init=False)
    lines_: list[Any] = field(default_factory=list, init=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, against: str = "landmarks", ax: Any = None, **kwargs: Any
    ) -> GrowthDisplay:
        """Draw the growth of a fitted landmark machine.

        Parameters
        ----------
        estimator : SVC, SVR, OneClassSVM or KernelRidge fitted with ``landmarks``, or a pipeline that ends in one
            The machine.
        against : {"landmarks", "seconds"}, default="landmarks"
            The horizontal axis.
        ax : matplotlib axes, default=None
            The axes to draw on; None for new ones.
        **kwargs : properties of the lines.

        Returns
        -------
        display : GrowthDisplay

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from sklearn.datasets import make_moons
        >>> from mercer import SVC, GrowthDisplay
        >>> X, y = make_moons(400, noise=0.3, random_state=0)
        >>> model = SVC(landmarks="auto").fit(X, y)
        >>> len(GrowthDisplay.from_estimator(model).lines_)
        2
        """
        machine = machine_of(estimator)
        growth = getattr(machine, "growth_", None)
        if growth is None:
            raise InvalidInputError(
                f"{type(machine).__name__} has no growth to draw: fit it with landmarks='auto' or a number of them."
            )
        tol = machine.landmark_tol if isinstance(machine.landmarks, str) else None
        return cls(growth, tol, against).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> GrowthDisplay:
        """Draw, on the given axes or on new ones."""
        if self.against not in LABELS:
            raise InvalidInputError(f"against={self.against!r} was given: use 'landmarks' or 'seconds'.")
        self.figure_, self.ax_ = axes(ax)
        several = isinstance(self.growth[0], list)
        for k, rounds in enumerate(self.growth if several else [self.growth]):
            x = [r.n_landmarks if self.against == "landmarks" else r.seconds for r in rounds]
            looks = {"marker": "o", "markersize": 4, "alpha": 0.4 if several else 1.0, **kwargs}
            for number, (name, gaps) in enumerate(
                {
                    "to the exact machine": [r.exact_relative_gap for r in rounds],
                    "to the best machine of these landmarks": [r.relative_gap for r in rounds],
                }.items()
            ):
                shown = [max(gap, LEAST) for gap in gaps]
                style = "-" if number == 0 else "--"
                label = name if k == 0 else None
                self.lines_ += self.ax_.plot(x, shown, style, color=colour(number), label=label, **looks)
        if self.tol is not None:
            self.ax_.axhline(self.tol, color=CHOSEN, linewidth=1, label=f"landmark_tol = {self.tol:g}")
        self.ax_.set_yscale("log")
        self.ax_.set_xlabel(LABELS[self.against])
        self.ax_.set_ylabel("relative gap")
        self.ax_.grid(alpha=0.25)
        self.ax_.legend()
        return self
