"""Pictures of solution paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.display.canvas import axes, colour
from mercer.estimators.fitted_models import unwrap
from mercer.exceptions import InvalidInputError
from mercer.selection.solution_path import SolutionPath, solution_path

# the largest number of drawn lines
LINES = 400


@dataclass(eq=False)
class PathDisplay:
    """A solution path: the coefficients |β|/C, or the number of support vectors, against C.

    Parameters
    ----------
    path : SolutionPath
        The result of ``solution_path``.
    quantity : {"coefficients", "support"}
        The quantity to draw.

    Attributes
    ----------
    figure_, ax_, lines_ : the figure, its axes and lines.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from mercer import SVC, PathDisplay, solution_path
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> display = PathDisplay.from_path(solution_path(SVC(kernel="linear"), X, y))
    >>> len(display.lines_)
    4
    """

    path: SolutionPath
    quantity: str = "coefficients"
    figure_: Any = field(default=None, init=False)
    ax_: Any = field(default=None, init=False)
    lines_: list[Any] = field(default_factory=list, init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        quantity: str = "coefficients",
        C_min: float | None = None,
        C_max: float | None = None,
        time_limit: float | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> PathDisplay:
        """Compute the solution path of a two-class SVC and draw it.

        Parameters
        ----------
        estimator : SVC, or a fitted pipeline or search that ends in one
            As in ``solution_path``. An SVC need not be fitted, and is not changed.
        X, y, sample_weight : the training data; for a pipeline, its input.
        quantity, ax, **kwargs : as in ``from_path``.
        C_min, C_max, time_limit : as in ``solution_path``.

        Returns
        -------
        display : PathDisplay
            The display; its ``path`` is the solution path.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from sklearn.datasets import make_moons
        >>> from mercer import SVC, PathDisplay
        >>> X, y = make_moons(40, noise=0.2, random_state=0)
        >>> PathDisplay.from_estimator(SVC(), X, y).path.dual_coef.shape[1]
        40
        """
        machine, X, _ = unwrap(estimator, X)
        path = solution_path(machine, X, y, sample_weight, C_min=C_min, C_max=C_max, time_limit=time_limit)
        return cls.from_path(path, quantity=quantity, ax=ax, **kwargs)

    @classmethod
    def from_path(
        cls, path: SolutionPath, *, quantity: str = "coefficients", ax: Any = None, **kwargs: Any
    ) -> PathDisplay:
        """Draw a path.

        Parameters
        ----------
        path : SolutionPath
            The result of ``solution_path``.
        quantity : {"coefficients", "support"}, default="coefficients"
            "coefficients" draws |β|/C of each sample, from 0 to 1 (times its weight), in the colour of its class;
            "support" draws the number of support vectors and the number of free ones.
        ax : matplotlib axes, default=None
            The axes to draw on; None for new ones.
        **kwargs : properties of the lines.

        Returns
        -------
        display : PathDisplay
        """
        return cls(path, quantity).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> PathDisplay:
        """Draw, on the given axes or on new ones."""
        if self.quantity not in ("coefficients", "support"):
            raise InvalidInputError(f"quantity={self.quantity!r} was given: use 'coefficients' or 'support'.")
        self.figure_, self.ax_ = axes(ax)
        (self._coefficients if self.quantity == "coefficients" else self._support)(kwargs)
        self.ax_.set_xscale("log")
        self.ax_.set_xlabel("C")
        self.ax_.margins(x=0)
        self.ax_.grid(alpha=0.25)
        return self

    def _coefficients(self, kwargs: dict[str, Any]) -> None:
        path = self.path
        # between breaks β is linear in C, so β/C is curved: extra points show it
        C = np.unique(np.concatenate([path.C, np.geomspace(path.C[0], path.C[-1], 200)]))
        shares = np.abs(np.array([path.coefficients(c) for c in C])) / C[:, None]
        used = np.flatnonzero(shares.any(axis=0))
        if len(used) > LINES:
            used = used[np.linspace(0, len(used) - 1, LINES).round().astype(int)]
        sign = np.sign(path.dual_coef.sum(axis=0))
        for k, label in enumerate(path.classes):
            own = used[sign[used] == (-1.0 if k == 0 else 1.0)]
            style = {"color": colour(k), "linewidth": 0.8, "alpha": 0.6, **kwargs}
            drawn = self.ax_.plot(C, shares[:, own], **style)
            if drawn:
                drawn[0].set_label(f"class {label}")
            self.lines_ += drawn
        self.ax_.set_ylabel("|β| / C")
        self.ax_.legend(fontsize="small", loc="best")

    def _support(self, kwargs: dict[str, Any]) -> None:
        path = self.path
        style = {"drawstyle": "steps-post", **kwargs}
        for k, (label, count) in enumerate((("support vectors", path.n_support), ("free", path.n_free))):
            self.lines_ += self.ax_.plot(path.C, count, **{"color": colour(k), "label": label, **style})
        self.ax_.set_ylabel("samples")
        self.ax_.set_ylim(bottom=0)
        self.ax_.legend(fontsize="small", loc="best")
