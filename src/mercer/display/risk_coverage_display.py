"""A picture of what a reject option saves: the mean cost of answers against the share of samples that are answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mercer.display.canvas import CHOSEN, axes, colour
from mercer.exceptions import InvalidInputError
from mercer.selection.reject_option import RejectOption, RiskCoverage


@dataclass(eq=False)
class RiskCoverageDisplay:
    """The mean cost of answers against the share of samples that are answered.

    A point marks the ``reject_cost`` of the model.

    Parameters
    ----------
    curve : RiskCoverage
        The curve, of ``RejectOption.risk_coverage``.
    coverage : float, default=None
        The share that the model answers; None marks nothing.

    Attributes
    ----------
    figure_, ax_, line_ : the figure, its axes and the line.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_moons
    >>> from mercer import KernelLogisticRegression, RejectOption, RiskCoverageDisplay
    >>> X, y = make_moons(300, noise=0.4, random_state=0)
    >>> model = RejectOption(KernelLogisticRegression(), reject_cost=0.1).fit(X[:200], y[:200])
    >>> display = RiskCoverageDisplay.from_estimator(model, X[200:], y[200:])
    >>> bool(display.curve.risk[-1] > display.curve.risk[len(display.curve.risk) // 2])
    True
    """

    curve: RiskCoverage
    coverage: float | None = None
    figure_: Any = field(default=None, init=False)
    ax_: Any = field(default=None, init=False)
    line_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **kwargs: Any) -> RiskCoverageDisplay:
        """Draw the curve of a fitted reject option on samples with known classes.

        Parameters
        ----------
        estimator : fitted RejectOption
            The model.
        X, y : samples and their classes, not those of ``fit``.
        ax : matplotlib axes, default=None
            The axes to draw on; None for new ones.
        **kwargs : properties of the line.

        Returns
        -------
        display : RiskCoverageDisplay
        """
        if not isinstance(estimator, RejectOption):
            raise InvalidInputError(
                f"{type(estimator).__name__} rejects no samples: give a fitted RejectOption around a classifier."
            )
        curve, answered = estimator.risk_coverage(X, y), None
        if estimator.reject_cost is not None:
            below = int(curve.reject_cost.searchsorted(estimator.reject_cost, side="right"))
            answered = float(curve.coverage[below - 1]) if below else 0.0
        return cls(curve, answered).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> RiskCoverageDisplay:
        """Draw, on the given axes or on new ones."""
        self.figure_, self.ax_ = axes(ax)
        coverage, risk = self.curve.coverage, self.curve.risk
        looks = {"color": colour(0), "lw": 1.6, "drawstyle": "steps-pre", **kwargs}
        (self.line_,) = self.ax_.plot(coverage, risk, **looks)
        if self.coverage:
            at = int(coverage.searchsorted(self.coverage))
            self.ax_.scatter(
                coverage[at], risk[at], color=CHOSEN, zorder=3,
                label=f"this model: {coverage[at]:.0%} answered, mean cost {risk[at]:.3g}",
            )  # fmt: skip
            self.ax_.legend()
        self.ax_.set(
            xlabel="share of samples answered", ylabel="mean cost of the answers", xlim=(0.0, 1.02), ylim=(0.0, None)
        )
        return self
