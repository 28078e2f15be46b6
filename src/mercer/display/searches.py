"""Pictures of parameter searches.

``from_estimator`` creates a display. It draws on ``ax`` if given, and keeps the drawn numbers, ``figure_`` and ``ax_``.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from mercer.display.canvas import CHOSEN, axes, colour
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector

# the largest number of lines, one for each value of a second parameter
VALUES = 12
# scores further below the best than this many times the distance of the median share the last colour
CONTRAST = 3.0
# labels below a map are horizontal if they have at most this many characters in all
CHARACTERS = 26
# characters per line of an axis label, and of the title
WIDEST, TITLE = 16, 44


@dataclass(eq=False)
class _Results:
    """The candidates of a search: values of each parameter, and their scores."""

    params: dict[str, list[Any]]
    mean: Vector
    std: Vector
    best: int
    name: str

    @classmethod
    def of(cls, search: Any) -> _Results:
        """Read a fitted search with ``cv_results_`` in GridSearchCV's format."""
        check_is_fitted(search)
        table = getattr(search, "cv_results_", None)
        if not isinstance(table, dict) or "mean_test_score" not in table:
            raise InvalidInputError(
                f"{type(search).__name__} has no cv_results_ with mean_test_score: give a fitted search with one "
                "score, such as SVCCV or GridSearchCV."
            )
        names = [key.removeprefix("param_") for key in table if key.startswith("param_")]
        params = {name: [one.get(name) for one in table["params"]] for name in names}
        mean = np.asarray(table["mean_test_score"], dtype=np.float64)
        if np.isnan(mean).all():
            raise InvalidInputError("No candidate of this search has a score: allow more time.")
        std = np.asarray(table.get("std_test_score", np.zeros(len(mean))), dtype=np.float64)
        scoring = getattr(search, "scoring", None)
        default = "accuracy" if is_classifier(search) else "R²" if is_regressor(search) else "score"
        name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", None) or default
        return cls(params, mean, std, int(getattr(search, "best_index_", np.nanargmax(mean))), name.replace("_", " "))

    def column(self, name: str) -> list[Any]:
        """Return the values of one parameter."""
        if name not in self.params:
            known = ", ".join(map(repr, self.params)) or "none"
            raise InvalidInputError(f"The search has no parameter {name!r}; it has {known}.")
        return self.params[name]

    def usual(self, skip: str | None = None) -> str:
        """Return the parameter with the most values, except ``skip``."""
        counts = {name: len(set(map(str, values))) for name, values in self.params.items() if name != skip}
        if not counts:
            raise InvalidInputError(
                "The search has too few parameters for this picture: a SearchMapDisplay needs two, a "
                "SearchCurveDisplay one."
            )
        return max(counts, key=lambda name: counts[name])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))


def _ordered(values: list[Any]) -> list[Any]:
    """Return distinct values: numbers in ascending order, others in order of appearance."""
    distinct = list({str(v): v for v in values if v is not None}.values())
    return sorted(distinct) if all(map(_is_number, distinct)) else distinct


def _is_geometric(values: list[Any]) -> bool:
    """Whether an axis of these values should be logarithmic."""
    numbers = all(map(_is_number, values)) and len(values) > 1
    return numbers and min(values) > 0 and max(values) / min(values) >= 20


def _text(value: Any) -> str:
    return f"{float(f'{value:.3g}'):g}" if _is_number(value) else str(value)


def _score_label(name: str) -> str:
    return f"cross-validated {name}"


@dataclass(eq=False)
class SearchCurveDisplay:
    """Scores of a search against one parameter: the best over all others, or a line for each value of a second one.

    Parameters
    ----------
    param : the parameter of the axis.
    by : the parameter with a line for each value, or None.
    values : the values on the axis.
    lines : for each line its label, the best mean score at each value, and its standard deviation over folds.
    best : the value and the score of the best candidate.
    name : the name of the score.

    Attributes
    ----------
    figure_, ax_, lines_ : the figure, its axes and lines.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from mercer import SVC, SearchCurveDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(SVC(), {"C": [0.1, 1, 10, 100], "gamma": [0.01, 0.1, 1]}).fit(X, y)
    >>> SearchCurveDisplay.from_estimator(search, "C", by="gamma").values
    [0.1, 1, 10, 100]
    """

    param: str
    by: str | None
    values: list[Any]
    lines: list[tuple[str, Vector, Vector]]
    best: tuple[Any, float]
    name: str = "score"
    figure_: Any = field(default=None, init=False)
    ax_: Any = field(default=None, init=False)
    lines_: list[Any] = field(default_factory=list, init=False)

    @classmethod
    def from_estimator(
        cls, search: Any, param: str | None = None, *, by: str | None = None, ax: Any = None, **kwargs: Any
    ) -> SearchCurveDisplay:
        """Draw the scores of a fitted search.

        Parameters
        ----------
        search : fitted SVCCV, GridSearchCV or any other search with ``cv_results_``
        param : str, default=None
            The parameter of the axis; None is the one with the most values.
        by : str, default=None
            A second parameter with a line for each of its values; None draws the best over all other parameters.
        ax : matplotlib axes, default=None
            The axes to draw on; None for new ones.
        **kwargs : properties of the lines.

        Returns
        -------
        display : SearchCurveDisplay
        """
        table = _Results.of(search)
        param = table.usual(by) if param is None else param
        column, values = table.column(param), _ordered(table.column(param))
        groups = [None] if by is None else _ordered(table.column(by))
        if len(groups) > VALUES:
            groups = [groups[i] for i in np.linspace(0, len(groups) - 1, VALUES).round().astype(int)]
        lines = []
        for group in groups:
            mean, std = np.full(len(values), np.nan), np.full(len(values), np.nan)
            for i, score in enumerate(table.mean):
                if column[i] is None or (by is not None and str(table.params[by][i]) != str(group)):
                    continue
                at = [str(v) for v in values].index(str(column[i]))
                if not mean[at] >= score:
                    mean[at], std[at] = score, table.std[i]
            lines.append(("" if by is None else f"{by} = {_text(group)}", mean, std))
        best = (column[table.best], float(table.mean[table.best]))
        return cls(param, by, values, lines, best, table.name).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> SearchCurveDisplay:
        """Draw, on the given axes or on new ones."""
        self.figure_, self.ax_ = axes(ax)
        numeric = all(map(_is_number, self.values))
        at = np.array(self.values, dtype=np.float64) if numeric else np.arange(len(self.values))
        import matplotlib as mpl

        shades = mpl.colormaps["viridis"](np.linspace(0.05, 0.85, len(self.lines)))
        for (label, mean, std), shade in zip(self.lines, shades, strict=True):
            style = {"color": colour(0) if len(self.lines) == 1 else shade, "marker": "o", "markersize": 4}
            style |= {} if numeric else {"linestyle": "none"}
            style |= kwargs
            known = np.isfinite(mean)
            drawn = self.ax_.plot(at[known], mean[known], label=label or None, **style)
            self.lines_ += drawn
            if len(self.lines) == 1:
                own = drawn[0].get_color()
                if numeric:
                    low, high = (mean - std)[known], (mean + std)[known]
                    self.ax_.fill_between(at[known], low, high, alpha=0.2, color=own, linewidth=0)
                else:
                    self.ax_.errorbar(at[known], mean[known], std[known], color=own, linestyle="none", capsize=4)
        value, score = self.best
        place = float(value) if numeric and value is not None else [str(v) for v in self.values].index(str(value))
        chosen = f"best: {self.param} = {_text(value)}, {score:.3f}"
        ring = {"marker": "o", "s": 110, "facecolors": "none", "edgecolors": CHOSEN, "linewidths": 1.8, "zorder": 5}
        self.ax_.scatter([place], [score], label=chosen, **ring)
        if numeric and _is_geometric(self.values):
            self.ax_.set_xscale("log")
        elif not numeric:
            self.ax_.set_xticks(at, [_text(v) for v in self.values])
        self.ax_.set_xlabel(self.param)
        self.ax_.set_ylabel(_score_label(self.name))
        self.ax_.grid(alpha=0.25)
        self.ax_.legend(fontsize="small", loc="best")
        return self


@dataclass(eq=False)
class SearchMapDisplay:
    """Scores of a search over two parameters, the best over all others, as a heat map with the best cell marked.

    Parameters
    ----------
    x, y : the parameters of the axes.
    x_values, y_values : their values.
    scores : the best mean score of each cell, a row for each value of y; NaN for cells that were not tried.
    best : the values of x and y of the best candidate.
    name : the name of the score.

    Attributes
    ----------
    figure_, ax_, image_, colorbar_ : the figure and its parts.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVCCV, SearchMapDisplay
    >>> search = SVCCV(Cs=3, gammas=3).fit(*load_iris(return_X_y=True))
    >>> SearchMapDisplay.from_estimator(search).scores.shape
    (3, 3)
    """

    x: str
    y: str
    x_values: list[Any]
    y_values: list[Any]
    scores: Matrix
    best: tuple[Any, Any]
    name: str = "score"
    figure_: Any = field(default=None, init=False)
    ax_: Any = field(default=None, init=False)
    image_: Any = field(default=None, init=False)
    colorbar_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls, search: Any, x: str | None = None, y: str | None = None, *, ax: Any = None, **kwargs: Any
    ) -> SearchMapDisplay:
        """Draw the scores of a fitted search.

        Parameters
        ----------
        search : fitted SVCCV, GridSearchCV or any other search with ``cv_results_``
        x, y : str, default=None
            The parameters of the axes; None are those with the most values.
        ax : matplotlib axes, default=None
            The axes to draw on; None for new ones.
        **kwargs : arguments of ``pcolormesh``, such as ``cmap`` and ``vmin``.

        Returns
        -------
        display : SearchMapDisplay
        """
        table = _Results.of(search)
        x = table.usual(y) if x is None else x
        y = table.usual(x) if y is None else y
        columns = table.column(x), table.column(y)
        x_values, y_values = _ordered(columns[0]), _ordered(columns[1])
        names = [str(v) for v in x_values], [str(v) for v in y_values]
        scores = np.full((len(y_values), len(x_values)), np.nan)
        for i, score in enumerate(table.mean):
            if columns[0][i] is not None and columns[1][i] is not None:
                cell = names[1].index(str(columns[1][i])), names[0].index(str(columns[0][i]))
                scores[cell] = np.fmax(scores[cell], score)
        best = columns[0][table.best], columns[1][table.best]
        return cls(x, y, x_values, y_values, scores, best, table.name).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> SearchMapDisplay:
        """Draw, on the given axes or on new ones."""
        self.figure_, self.ax_ = axes(ax)
        edges = np.arange(len(self.x_values) + 1) - 0.5, np.arange(len(self.y_values) + 1) - 0.5
        shown = np.ma.masked_invalid(self.scores)
        known = self.scores[np.isfinite(self.scores)]
        style = {"cmap": "viridis", **kwargs}
        if len(known) and "norm" not in style:
            # very low scores must not use up the range of colours
            far = known.max() - CONTRAST * (known.max() - np.median(known))
            style.setdefault("vmin", max(known.min(), far))
        self.image_ = self.ax_.pcolormesh(*edges, shown, **style)
        self.ax_.set_facecolor("#e8e8e8")
        cut = len(known) > 0 and style.get("vmin", -np.inf) > known.min()
        label, extend = _score_label(self.name), "min" if cut else "neither"
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=self.ax_, label=label, extend=extend)
        for values, ticks in ((self.x_values, self.ax_.set_xticks), (self.y_values, self.ax_.set_yticks)):
            every = max(1, -(-len(values) // 12))
            ticks(np.arange(0, len(values), every), [textwrap.fill(_text(v), WIDEST) for v in values[::every]])
        if sum(len(label.get_text()) for label in self.ax_.get_xticklabels()) > CHARACTERS:
            self.ax_.tick_params(axis="x", labelrotation=90)
        if None not in self.best:
            column = [str(v) for v in self.x_values].index(str(self.best[0]))
            row = [str(v) for v in self.y_values].index(str(self.best[1]))
            style = {"fill": False, "edgecolor": CHOSEN, "linewidth": 2.2}
            from matplotlib.patches import Rectangle

            self.ax_.add_patch(Rectangle((column - 0.5, row - 0.5), 1.0, 1.0, **style))
            score = self.scores[row, column]
            title = f"best: {self.x} = {_text(self.best[0])}, {self.y} = {_text(self.best[1])}: {score:.3f}"
            self.ax_.set_title(textwrap.fill(title, TITLE), fontsize="medium")
        self.ax_.set_xlabel(self.x)
        self.ax_.set_ylabel(self.y)
        return self
