"""Pictures of any fitted machine: convergence, margins, kernel matrix, support vectors."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer.display.canvas import CHOSEN, GREY, axes, colour, machine_of, pyplot
from mercer.estimators.fitted_models import unwrap
from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector, count_samples, take_samples
from mercer.problems.steps import Steps
from mercer.theory.model_geometry import has_margin, kernel_of

# smaller values than this share of the tolerance, or than this number, are rounding errors and drawn at that level
FLOOR_SHARE, SMALLEST = 1e-3, 1e-12
# longer lines are drawn without marks at their points
MARKED = 500
# the smallest distance from the optimum, in percent, that is stated in words
LEAST_PERCENT = 0.001
# colours end at this quantile of a kernel matrix if the largest value is more than CROWDED times as large
SHOWN_SHARE, CROWDED = 0.98, 4.0
# the largest number of rows of a drawn kernel matrix
ROWS = 600
# the largest number of support vectors in a gallery, and of characters of a string
GALLERY, CHARACTERS = 24, 60


@dataclass(eq=False)
class ConvergenceDisplay:
    """The convergence of a fit: the largest violation and a bound on the distance from the optimum, against time.

    The bound is (P - D) / |P|, where P is the objective of the fitted model and D the dual value at that time: the
    optimum lies between D and P. Values below a thousandth of the tolerance are rounding errors and drawn at that
    level.

    A ``PegasosClassifier`` is drawn by its ``objective_trace_``: the bound (P - D) / |P|, with P the objective after
    each number of steps and D the dual value of the fitted model. A model that has ``steps_`` alone, such as a
    ``Perceptron`` or ``KernelLMS`` fitted with ``trace=True``, is drawn by the measure of these steps.

    Parameters
    ----------
    seconds, violation, dual : the points of the trace, in order of time.
    tol : the tolerance of the fit; None for none.
    measure : the quantity that the tolerance bounds.
    certificate : the certificate of the model; None for a model without one.
    unit : "seconds", or "steps" if the points are numbers of steps.

    Attributes
    ----------
    distance : the bound on the distance from the optimum at each point; None if the certificate gives no bound.
    figure_, ax_ : the figure and its axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mercer import ConvergenceDisplay, SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ConvergenceDisplay.from_estimator(SVC().fit(X, y)).tol
    0.001
    """

    seconds: Vector
    violation: Vector
    dual: Vector
    tol: float | None
    measure: str
    certificate: Any
    unit: str = "seconds"
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ConvergenceDisplay:
        """Draw the ``trace_``, ``objective_trace_`` or ``steps_`` of a fitted machine, the first of these it has."""
        check_is_fitted(estimator)
        machine = machine_of(estimator)
        trace = [point for point in getattr(machine, "trace_", []) if hasattr(point, "violation")]
        if not trace and getattr(machine, "objective_trace_", []):
            return cls._of_objectives(machine).plot(ax=ax)
        if not trace and hasattr(machine, "steps_"):
            return cls._of_steps(machine).plot(ax=ax)
        if not trace:
            raise InvalidInputError(
                f"{type(machine).__name__} has no trace of its fit: give a machine with trace_, such as SVC, or one "
                "with steps_, such as Perceptron(trace=True)."
            )
        if len(getattr(machine, "certificates_", [None])) > 1:
            raise InvalidInputError(
                f"This {type(machine).__name__} consists of {len(machine.certificates_)} machines, which were not "
                "fitted on a common time axis: give a model of two classes."
            )
        seconds, violation, dual = (
            np.array([getattr(point, name) for point in trace], dtype=np.float64)
            for name in ("seconds", "violation", "dual")
        )
        measure = getattr(machine, "_measure", "violation")
        return cls(seconds, violation, dual, float(machine.tol), measure, machine.certificate_).plot(ax=ax)

    @classmethod
    def _of_objectives(cls, machine: Any) -> ConvergenceDisplay:
        """The relative gap between recorded objectives and the dual value of the model."""
        steps, objective = (
            np.array([getattr(point, name) for point in machine.objective_trace_], dtype=np.float64)
            for name in ("steps", "objective")
        )
        # certificates are for the objective divided by lam
        dual = np.full(len(steps), machine.lam * machine.certificate_.dual)
        if not machine.certificate_.valid or not np.isfinite(dual).all():
            return cls(steps, objective, dual, None, "objective", None, "steps")
        gap = np.maximum(0.0, objective - dual) / np.maximum(np.abs(objective), SMALLEST)
        return cls(steps, gap, dual, machine.tol, "relative gap", machine.certificate_, "steps")

    @classmethod
    def _of_steps(cls, machine: Any) -> ConvergenceDisplay:
        """The measure of the steps."""
        if isinstance(machine.steps_, list):
            raise InvalidInputError(
                f"This {type(machine).__name__} consists of {len(machine.steps_)} machines with steps of their own: "
                "give a model of two classes, or use StepsDisplay with machine=0, 1, …"
            )
        steps: Steps = machine.steps_
        number = np.asarray(steps.columns.get("t", np.arange(1, len(steps) + 1)), dtype=np.float64)
        values = np.asarray(steps[steps.measure], dtype=np.float64)
        return cls(number, values, np.full(len(steps), np.nan), None, steps.measure, None, "steps")

    @property
    def distance(self) -> Vector | None:
        """(P - D) / |P| at each point; None if the certificate gives no bound."""
        if self.certificate is None:
            return None
        primal = float(self.certificate.primal)
        if not self.certificate.valid or not np.isfinite(primal) or not np.isfinite(self.dual).all():
            return None
        return np.asarray((primal - self.dual) / (abs(primal) or 1.0))

    def plot(self, *, ax: Any = None) -> ConvergenceDisplay:
        """Draw."""
        self.figure_, self.ax_ = axes(ax)
        floor = max(FLOOR_SHARE * (self.tol or 0.0), SMALLEST)
        lines = [(self.measure if self.certificate is None else f"largest {self.measure}", self.violation, "o")]
        if self.distance is not None and self.measure != "relative gap":
            lines.append(("bound on the distance from the optimum (relative)", self.distance, "s"))
        # counts and dual values are not errors that fall to 0
        falls = len(self.violation) > 0 and self.violation.min() > 0 and self.violation[0] > self.violation[-1]
        log = self.certificate is not None or falls
        for number, (label, values, sign) in enumerate(lines):
            style = {"marker": sign, "ms": 3} if len(values) <= MARKED else {}
            drawn = np.maximum(values, floor) if log else values
            self.ax_.plot(self.seconds, drawn, color=colour(number), label=label, **style)
        if self.tol is not None:
            label = f"tolerance of the {self.measure}: {self.tol:g}"
            self.ax_.axhline(max(self.tol, floor), color=GREY, ls="--", lw=1, label=label)
        self.ax_.set(xlabel=self.unit, ylabel="value")
        self.ax_.locator_params(axis="x", nbins=6)
        if log:
            self._log_scale(floor, cut=any(np.any(values < floor) for _, values, _ in lines))
        self.ax_.legend(loc="best", fontsize="small")
        if self.certificate is not None:
            self.ax_.set_title(f"objective {distance_words(self.certificate)}", fontsize="medium")
        return self

    def _log_scale(self, floor: float, cut: bool) -> None:
        self.ax_.set_yscale("log")
        # show at least two decades and label only decades: labels within a decade overlap
        low, high = self.ax_.get_ylim()
        self.ax_.set_ylim(min(low, high / 100), high)
        self.ax_.yaxis.set_minor_formatter("")
        self.ax_.set_ylabel("value (log scale" + (f", cut at {floor:.0e})" if cut else ")"))


def distance_words(certificate: Any) -> str:
    """Describe in words how far a certified objective is from the best possible value."""
    if not certificate.valid or not np.isfinite(certificate.relative_gap):
        return "at an unknown distance from the best possible value"
    percent = 100.0 * certificate.relative_gap
    if percent < LEAST_PERCENT:
        return f"within {LEAST_PERCENT:g} % of the best possible value"
    return f"within {percent:.2g} % of the best possible value" if percent < 99 else "far from the best possible value"


@dataclass(eq=False)
class MarginDisplay:
    """The distribution of functional margins y f(x): errors below 0, margin violations below 1.

    Parameters
    ----------
    margins : one per sample; with more than two classes, the decision value of the true class minus the largest other.
    correct : the share of samples with a positive margin.
    unit : whether 1 is the edge of the margin, as for a support vector machine of two classes.
    several : whether there are more than two classes.

    Attributes
    ----------
    figure_, ax_ : the figure and its axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mercer import LinearSVC, MarginDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> display = MarginDisplay.from_estimator(LinearSVC().fit(X / X.max(axis=0), y), X / X.max(axis=0), y)
    >>> display.margins.shape
    (569,)
    """

    margins: Vector
    correct: float
    unit: bool
    several: bool = False
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> MarginDisplay:
        """Draw the margins of samples of a fitted classifier."""
        check_is_fitted(estimator)
        if not is_classifier(estimator) or not hasattr(estimator, "decision_function"):
            raise InvalidInputError(
                f"{type(estimator).__name__} has no margins: give a classifier with decision_function."
            )
        values = np.asarray(estimator.decision_function(X), dtype=np.float64)
        codes = np.searchsorted(np.asarray(estimator.classes_), np.asarray(y))
        unit = values.ndim == 1 and has_margin(machine_of(estimator))
        if values.ndim == 1:
            margins = np.where(codes == 1, values, -values)
        else:
            if values.shape[1] != len(estimator.classes_):
                raise InvalidInputError(
                    "Margins of more than two classes need one decision value per class: set "
                    'decision_function_shape="ovr".'
                )
            own = values[np.arange(len(codes)), codes]
            others = values.copy()
            others[np.arange(len(codes)), codes] = -np.inf
            margins = own - others.max(axis=1)
        return cls(margins, float(np.mean(margins > 0)), unit, values.ndim > 1).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> MarginDisplay:
        """Draw."""
        self.figure_, self.ax_ = axes(ax)
        low, high = min(float(self.margins.min()), 0.0), max(float(self.margins.max()), 0.0)
        edges = np.linspace(low, high, 41) if high > low else np.array([low - 0.5, low + 0.5])
        counts, _ = np.histogram(self.margins, edges)
        middles = 0.5 * (edges[1:] + edges[:-1])
        colours = [CHOSEN if m < 0 else colour(1) if self.unit and m < 1 else colour(0) for m in middles]
        self.ax_.bar(middles, counts, width=np.diff(edges), color=colours, edgecolor="white", linewidth=0.4)
        self.ax_.axvline(0.0, color="black", lw=1.2)
        if self.unit:
            self.ax_.axvline(1.0, color="black", lw=1.0, ls="--")
        self.ax_.set(
            xlabel="decision value of the true class minus the largest other" if self.several else "margin y f(x)",
            ylabel="samples",
        )
        wrong = int(np.sum(self.margins <= 0))
        self.ax_.set_title(f"{wrong:,} of {len(self.margins):,} on the wrong side", fontsize="medium")
        return self


@dataclass(eq=False)
class GramDisplay:
    """The kernel matrix of samples, ordered by class: bright diagonal blocks mean that the kernel separates classes.

    Parameters
    ----------
    K : the drawn values.
    order : the indices of the samples, in the order of the rows.
    edges : the end of each class.
    classes : the labels.
    kernel : the kernel as text.

    Attributes
    ----------
    figure_, ax_, image_, colorbar_ : the figure and its parts.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from mercer import Gaussian, GramDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> GramDisplay.from_kernel(Gaussian(0.5), X, y).K.shape
    (150, 150)
    """

    K: Matrix
    order: Vector
    edges: list[int]
    classes: list[Any]
    kernel: str
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)
    image_: Any = field(default=None, init=False, repr=False)
    colorbar_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> GramDisplay:
        """Draw the kernel matrix of samples for a fitted machine, or for the machine in a pipeline or search."""
        check_is_fitted(estimator)
        machine, X, _ = unwrap(estimator, X)
        return cls.from_kernel(kernel_of(machine), X, y, ax=ax)

    @classmethod
    def from_kernel(cls, kernel: Kernel, X: Any, y: Any = None, *, ax: Any = None) -> GramDisplay:
        """Draw the matrix of a kernel, ordered by y (classes or numbers)."""
        n = count_samples(X)
        labels = np.zeros(n, dtype=np.intp) if y is None else np.asarray(y)
        order = np.argsort(labels, kind="stable")
        if n > ROWS:
            order = order[np.linspace(0, n - 1, ROWS).round().astype(np.intp)]
        part = take_samples(X, order)
        K = np.asarray(kernel(part), dtype=np.float64)
        if not np.all(np.isfinite(K)):
            raise InvalidInputError(
                f"{kernel!r} gives NaN or infinite values for these samples: scale them, or use another kernel."
            )
        drawn = labels[order]
        classes, counts = np.unique(drawn, return_counts=True)
        few = y is not None and len(classes) <= 20
        edges = np.cumsum(counts).tolist() if few else []
        return cls(K, order, edges, classes.tolist() if few else [], str(kernel)).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> GramDisplay:
        """Draw."""
        self.figure_, self.ax_ = axes(ax, (5.6, 4.8))
        both = self.K.min() < 0
        sizes = np.abs(self.K)
        # without a limit, a few very large values would leave a single colour for all others
        limit, largest = float(np.quantile(sizes, SHOWN_SHARE)), float(sizes.max())
        cut = 0 < limit < largest / CROWDED
        limit = (limit if cut else largest) or 1.0
        self.image_ = self.ax_.imshow(
            self.K, cmap="PuOr" if both else "viridis", interpolation="nearest",
            vmin=-limit if both else float(self.K.min()), vmax=limit if both else max(limit, float(self.K.min())),
        )  # fmt: skip
        for edge in self.edges[:-1]:
            self.ax_.axhline(edge - 0.5, color="white", lw=0.8)
            self.ax_.axvline(edge - 0.5, color="white", lw=0.8)
        if self.edges:
            middles = [0.5 * (a + b) - 0.5 for a, b in zip([0, *self.edges[:-1]], self.edges, strict=True)]
            self.ax_.set_yticks(middles, [str(c) for c in self.classes])
            self.ax_.set_xticks([])
        ordered = "class" if self.edges else "sample"
        self.ax_.set(xlabel="samples in the same order" if self.edges else ordered, ylabel=ordered)
        # four digits of a parameter are enough for a title
        short = re.sub(r"\d+\.\d{4,}(e-?\d+)?", lambda found: f"{float(found[0]):.4g}", self.kernel)
        name = textwrap.fill(short, 48, max_lines=2, placeholder=" …", break_long_words=False)
        self.ax_.set_title(name, fontsize="small")
        ends = "neither" if not cut else "both" if both else "max"
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=self.ax_, label="k(x, z)", extend=ends)
        return self


@dataclass(eq=False)
class SupportVectorDisplay:
    """A gallery of the support vectors with the largest weights: images, strings, or rows of numbers.

    Parameters
    ----------
    vectors : the drawn support vectors.
    weights : the sum of |dual coefficients| of each.
    titles : the title of each.
    shape : the shape of images; None for other samples.

    Attributes
    ----------
    figure_, axes_ : the figure and its axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_digits
    >>> from mercer import SVC, SupportVectorDisplay
    >>> X, y = load_digits(n_class=3, return_X_y=True)
    >>> display = SupportVectorDisplay.from_estimator(SVC().fit(X, y), y, shape=(8, 8), count=6)
    >>> len(display.vectors)
    6
    """

    vectors: list[Any]
    weights: Vector
    titles: list[str]
    shape: tuple[int, ...] | None
    figure_: Any = field(default=None, init=False, repr=False)
    axes_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, y: Any = None, *, shape: tuple[int, ...] | None = None, count: int = 12
    ) -> SupportVectorDisplay:
        """Draw the support vectors of a fitted machine.

        Parameters
        ----------
        estimator : a fitted machine with support vectors.
        y : the labels of the training samples, for titles.
        shape : the shape of samples that are images; None draws strings as text and numbers as bars.
        count : the largest number of support vectors.
        """
        check_is_fitted(estimator)
        machine = machine_of(estimator)
        vectors = getattr(machine, "support_vectors_", None)
        if vectors is None or count_samples(vectors) == 0:
            raise InvalidInputError(
                f"{type(machine).__name__} has no support vectors: give a kernel machine such as SVC."
            )
        coef = machine.dual_coef_
        size = np.abs(np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef)).sum(axis=0)
        order = np.argsort(-size, kind="stable")[: min(count, GALLERY)]
        part = take_samples(vectors, order)
        rows = part.toarray() if hasattr(part, "toarray") else part
        shown = [row if isinstance(row, str) else np.asarray(row) for row in rows]
        if shape is not None and (isinstance(shown[0], str) or np.prod(shape) != np.size(shown[0])):
            raise InvalidInputError(
                f"The support vectors have {np.size(shown[0])} numbers each and cannot be drawn as images of shape "
                f"{shape}."
            )
        labels = None if y is None else np.asarray(y)[machine.support_[order]]
        titles = [f"{'' if labels is None else f'{labels[i]}: '}{size[j]:.3g}" for i, j in enumerate(order)]
        return cls(shown, size[order], titles, shape).plot()

    def plot(self) -> SupportVectorDisplay:
        """Draw."""
        plt = pyplot()
        if isinstance(self.vectors[0], str):
            return self._text(plt)
        columns = min(6, len(self.vectors))
        rows = -(-len(self.vectors) // columns)
        self.figure_, found = plt.subplots(
            rows, columns, figsize=(1.25 * columns, 1.45 * rows), squeeze=False, layout="constrained"
        )
        self.axes_ = found.ravel()
        for ax in self.axes_:
            ax.axis("off")
        for ax, vector, title in zip(self.axes_, self.vectors, self.titles, strict=False):
            if self.shape is not None:
                ax.imshow(vector.reshape(self.shape), cmap="gray_r")
            else:
                ax.bar(np.arange(vector.size), vector.ravel(), color=colour(0))
            ax.set_title(title, fontsize="small")
        self.figure_.suptitle("support vectors of the largest weights |β|", fontsize="medium")
        return self

    def _text(self, plt: Any) -> SupportVectorDisplay:
        self.figure_, ax = plt.subplots(figsize=(8.0, 0.6 + 0.26 * len(self.vectors)), layout="constrained")
        self.axes_ = np.array([ax])
        ax.axis("off")
        ax.set_title("support vectors of the largest weights |β|", fontsize="medium")
        for i, (text, title) in enumerate(zip(self.vectors, self.titles, strict=True)):
            shown = text if len(text) <= CHARACTERS else text[: CHARACTERS - 1] + "…"
            height = 1.0 - (i + 0.5) / len(self.vectors)
            ax.text(0.0, height, title, va="center", family="monospace", color=GREY, fontsize="small")
            ax.text(0.18, height, shown, va="center", family="monospace", fontsize="small")
        return self
