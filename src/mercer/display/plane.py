"""Pictures of models with one or two features: class regions with margins, ε-tubes, bands of Gaussian processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.utils.validation import check_is_fitted

from mercer.display.canvas import CHOSEN, GREY, axes, colour, machine_of, marker
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.theory.model_geometry import has_margin

# the border around the samples, as a share of their range
BORDER = 0.08
# number of points of a curve, and along each side of a grid
CURVE, GRID = 400, 160


def _ends(values: Vector) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    space = BORDER * (high - low) or 1.0
    return low - space, high + space


def _samples(X: Any, features: int, what: str) -> Matrix:
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != features:
        shape = f"{X.shape[1]} features" if X.ndim == 2 else f"the shape {X.shape}"
        wanted = "one feature" if features == 1 else f"{features} features"
        raise InvalidInputError(
            f"{what} is drawn for samples with {wanted}, but these have {shape}. Fit a model to {wanted}, or use "
            "another display."
        )
    return X


def _like(X: Any, points: Matrix) -> Any:
    """Convert the points to a data frame with the columns of X, if X is one: models check the names of features."""
    return type(X)(points, columns=X.columns) if hasattr(X, "columns") else points


def _names(estimator: Any, count: int) -> list[str]:
    names = getattr(estimator, "feature_names_in_", None)
    return [str(name) for name in names] if names is not None else [f"feature {j}" for j in range(count)]


@dataclass(eq=False)
class DecisionDisplay:
    """The plane of two features: the region of each class, the margins, the samples and the support vectors.

    Parameters
    ----------
    x, y : the coordinates of the grid.
    regions : the index of the predicted class at each point of the grid.
    values : the decision values on the grid, for two classes or a novelty detector; else None.
    X, labels : the samples, and the index of the class of each.
    classes : the labels.
    support : the indices of the support vectors; empty for a model without support vectors.
    names : the names of the features.
    margins : whether to draw the decision values -1 and 1, the edges of the margin of a support vector machine.

    Attributes
    ----------
    figure_, ax_ : the figure and its axes.
    support_, contours_ : the rings around support vectors, or None; the boundary and the margins, or None.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SVC, DecisionDisplay
    >>> X, y = make_moons(60, noise=0.1, random_state=0)
    >>> display = DecisionDisplay.from_estimator(SVC(C=10).fit(X, y), X, y)
    >>> display.classes
    [0, 1]
    """

    x: Vector
    y: Vector
    regions: Matrix
    values: Matrix | None
    X: Matrix
    labels: Vector
    classes: list[Any]
    support: Vector
    names: list[str]
    margins: bool = True
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)
    support_: Any = field(default=None, init=False, repr=False)
    contours_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, grid: int = GRID, ax: Any = None
    ) -> DecisionDisplay:
        """Draw a fitted classifier or novelty detector.

        Parameters
        ----------
        estimator : a fitted classifier, novelty detector, or pipeline that ends in one.
        X : array-like of shape (n_samples, 2)
            The training samples.
        y : array-like of shape (n_samples,)
            Their labels; None for a novelty detector.
        grid : number of points along each side.
        ax : axes to draw on; None for new ones.
        """
        check_is_fitted(estimator)
        samples = _samples(X, 2, "A decision region")
        (x0, x1), (y0, y1) = _ends(samples[:, 0]), _ends(samples[:, 1])
        x, across = np.linspace(x0, x1, grid), np.linspace(y0, y1, grid)
        points = _like(X, np.stack(np.meshgrid(x, across), axis=-1).reshape(-1, 2))
        if is_outlier_detector(estimator):
            classes: list[Any] = ["novel", "usual"]
            codes = (estimator.predict(points) > 0).astype(np.intp)
            labels = (estimator.predict(X) > 0).astype(np.intp)
        elif is_classifier(estimator):
            if y is None:
                raise InvalidInputError("A classifier is drawn with the labels of the samples: give y.")
            known = np.asarray(estimator.classes_)
            classes, codes = known.tolist(), np.searchsorted(known, estimator.predict(points))
            labels = np.searchsorted(known, np.asarray(y))
        else:
            raise InvalidInputError(
                f"{type(estimator).__name__} is not a classifier: use TubeDisplay for a regression."
            )
        values = None
        if len(classes) == 2 and hasattr(estimator, "decision_function"):
            values = np.asarray(estimator.decision_function(points)).reshape(grid, grid)
        machine = machine_of(estimator)
        support = np.asarray(getattr(machine, "support_", np.empty(0)), dtype=np.intp)
        display = cls(
            x, across, codes.reshape(grid, grid), values, samples, labels, classes, support[support < len(samples)],
            _names(estimator, 2), has_margin(machine),
        )  # fmt: skip
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> DecisionDisplay:
        """Draw."""
        self.figure_, self.ax_ = axes(ax)
        k = len(self.classes)
        self.ax_.contourf(
            self.x,
            self.y,
            self.regions,
            levels=np.arange(k + 1) - 0.5,
            colors=[colour(c) for c in range(k)],
            alpha=0.22,
        )
        if self.values is not None:
            levels, styles = ([-1.0, 0.0, 1.0], ["--", "-", "--"]) if self.margins else ([0.0], ["-"])
            self.contours_ = self.ax_.contour(
                self.x, self.y, self.values, levels=levels, linestyles=styles, colors="black", linewidths=1.0
            )
        for c, name in enumerate(self.classes):
            own = self.X[self.labels == c]
            self.ax_.scatter(
                own[:, 0],
                own[:, 1],
                s=24,
                c=colour(c),
                marker=marker(c),
                edgecolors="white",
                linewidths=0.5,
                label=str(name),
            )
        if len(self.support):
            rings = self.X[self.support]
            self.support_ = self.ax_.scatter(
                rings[:, 0], rings[:, 1], s=70, facecolors="none", edgecolors="black", linewidths=0.8,
                label=f"support vectors ({len(rings)})",
            )  # fmt: skip
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        self.ax_.legend(loc="best", fontsize="small", framealpha=0.9)
        return self


@dataclass(eq=False)
class TubeDisplay:
    """A regression with one feature: the function, its ε-tube, the samples and the support vectors.

    Parameters
    ----------
    x, f : the curve.
    epsilon : half the width of the tube; 0 for a machine without a tube.
    X, y : the samples and their targets.
    support : the indices of the support vectors.
    name : the name of the feature.

    Attributes
    ----------
    figure_, ax_, tube_ : the figure, its axes and the tube.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("Agg")
    >>> from mercer import SVR, TubeDisplay
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> TubeDisplay.from_estimator(SVR(C=10).fit(X, np.sin(X[:, 0])), X, np.sin(X[:, 0])).epsilon
    0.1
    """

    x: Vector
    f: Vector
    epsilon: float
    X: Vector
    y: Vector
    support: Vector
    name: str
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)
    tube_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> TubeDisplay:
        """Draw a fitted regression with one feature.

        Parameters
        ----------
        estimator : a fitted regression.
        X : array-like of shape (n_samples, 1)
            The training samples.
        y : array-like of shape (n_samples,)
            Their targets.
        ax : axes to draw on; None for new ones.
        """
        check_is_fitted(estimator)
        if not is_regressor(estimator):
            raise InvalidInputError(
                f"{type(estimator).__name__} is not a regression: use DecisionDisplay for a classifier."
            )
        samples = _samples(X, 1, "A tube")
        x = np.linspace(*_ends(samples[:, 0]), CURVE)
        machine = machine_of(estimator)
        support = np.asarray(getattr(machine, "support_", np.empty(0)), dtype=np.intp)
        # other losses have no tube, and ignore epsilon
        has_tube = "epsilon_insensitive" in str(getattr(machine, "loss", "epsilon_insensitive"))
        epsilon = float(getattr(machine, "epsilon_", getattr(machine, "epsilon", 0.0)) or 0.0) if has_tube else 0.0
        f = np.asarray(estimator.predict(_like(X, x[:, None]))).ravel()
        targets = np.asarray(y, dtype=np.float64).ravel()
        return cls(x, f, epsilon, samples[:, 0], targets, support, _names(estimator, 1)[0]).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> TubeDisplay:
        """Draw."""
        self.figure_, self.ax_ = axes(ax)
        if self.epsilon > 0:
            self.tube_ = self.ax_.fill_between(
                self.x, self.f - self.epsilon, self.f + self.epsilon, color=colour(0), alpha=0.18, lw=0,
                label=f"tube of ±{self.epsilon:.3g}",
            )  # fmt: skip
        self.ax_.plot(self.x, self.f, color=colour(0), lw=1.6, label="prediction")
        self.ax_.scatter(self.X, self.y, s=14, color=GREY, label="samples")
        if len(self.support):
            self.ax_.scatter(
                self.X[self.support], self.y[self.support], s=52, facecolors="none", edgecolors=CHOSEN, linewidths=0.9,
                label=f"support vectors ({len(self.support)})",
            )  # fmt: skip
        self.ax_.set(xlabel=self.name, ylabel="target")
        self.ax_.legend(loc="best", fontsize="small")
        return self


@dataclass(eq=False)
class BandDisplay:
    """A Gaussian process with one feature: its mean, and a band of some standard deviations around it.

    Parameters
    ----------
    x, mean, std : the curve.
    width : half the width of the band, in standard deviations.
    X, y : the samples and their targets.
    name : the name of the feature.

    Attributes
    ----------
    figure_, ax_, band_ : the figure, its axes and the band.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("Agg")
    >>> from mercer import BandDisplay, Gaussian, GaussianProcessRegressor, White
    >>> X = np.linspace(0, 6, 15)[:, None]
    >>> model = GaussianProcessRegressor(Gaussian(1.0) + White(0.01)).fit(X, np.sin(X[:, 0]))
    >>> BandDisplay.from_estimator(model, X, np.sin(X[:, 0])).width
    2.0
    """

    x: Vector
    mean: Vector
    std: Vector
    width: float
    X: Vector
    y: Vector
    name: str
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)
    band_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, width: float = 2.0, ax: Any = None) -> BandDisplay:
        """Draw a fitted Gaussian process with one feature.

        Parameters
        ----------
        estimator : a regression whose ``predict`` takes ``return_std``.
        X : array-like of shape (n_samples, 1)
            The training samples.
        y : array-like of shape (n_samples,)
            Their targets.
        width : half the width of the band, in standard deviations.
        ax : axes to draw on; None for new ones.
        """
        check_is_fitted(estimator)
        samples = _samples(X, 1, "A band")
        x = np.linspace(*_ends(samples[:, 0]), CURVE)
        try:
            mean, std = estimator.predict(_like(X, x[:, None]), return_std=True)
        except TypeError:
            raise InvalidInputError(
                f"{type(estimator).__name__} gives no standard deviations: use TubeDisplay, or a Gaussian process."
            ) from None
        if np.ndim(mean) != 1:
            raise InvalidInputError("A band is drawn for one target, but this process has several: fit one target.")
        targets = np.asarray(y, dtype=np.float64).ravel()
        return cls(x, mean, std, float(width), samples[:, 0], targets, _names(estimator, 1)[0]).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> BandDisplay:
        """Draw."""
        self.figure_, self.ax_ = axes(ax)
        reach = self.width * self.std
        self.band_ = self.ax_.fill_between(
            self.x, self.mean - reach, self.mean + reach, color=colour(0), alpha=0.2, lw=0,
            label=f"±{self.width:g} standard deviations",
        )  # fmt: skip
        self.ax_.plot(self.x, self.mean, color=colour(0), lw=1.6, label="mean")
        self.ax_.scatter(self.X, self.y, s=14, color="black", zorder=3, label="samples")
        self.ax_.set(xlabel=self.name, ylabel="target")
        self.ax_.legend(loc="best", fontsize="small")
        return self
