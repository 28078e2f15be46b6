"""Figures of what C, γ and ε do, and of the symptoms of overfitting."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.display.canvas import GREY, colour
from mercer.display.figures.figure_data import bare, clouds, curve, moons, panels
from mercer.display.fitted_model import GramDisplay
from mercer.display.plane import DecisionDisplay, TubeDisplay
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR
from mercer.kernels import Gaussian


def effect_of_C(values: tuple[float, ...] = (0.01, 1.0, 100.0)) -> Any:
    """Small C: a wide margin and much slack. Large C: a narrow margin, if that helps to classify more samples."""
    X, y = clouds(40, 2.8, seed=2)
    figure, axes = panels(1, len(values))
    for ax, C in zip(axes, values, strict=True):
        model = SVC(C=C, kernel="linear").fit(X, y)
        DecisionDisplay.from_estimator(model, X, y, ax=ax)
        ax.set_title(f"C = {C:g}: margin {model.margin_[0]:.2f}", fontsize="medium")
        bare(ax)
    return figure


def effect_of_gamma(values: tuple[float, ...] = (0.1, 2.0, 100.0), C: float = 10.0) -> Any:
    """A wide Gaussian (small γ) is biased towards smooth borders; a narrow one encloses each sample by itself."""
    X, y = moons()
    figure, axes = panels(1, len(values))
    for ax, gamma in zip(axes, values, strict=True):
        model = SVC(C=C, gamma=gamma).fit(X, y)
        DecisionDisplay.from_estimator(model, X, y, ax=ax)
        ax.set_title(f"γ = {gamma:g}: {len(model.support_)} support vectors", fontsize="medium")
        bare(ax)
    return figure


def effect_of_epsilon(values: tuple[float, ...] = (0.05, 0.3, 0.8)) -> Any:
    """As ε grows, the function moves away from the samples, and fewer of them are support vectors."""
    X, y = curve()
    figure, axes = panels(1, len(values))
    for ax, epsilon in zip(axes, values, strict=True):
        model = SVR(C=10.0, gamma=0.5, epsilon=epsilon).fit(X, y)
        TubeDisplay.from_estimator(model, X, y, ax=ax)
        ax.set_title(f"ε = {epsilon:g}: {len(model.support_)} support vectors", fontsize="medium")
        ax.set_ylim(-2.1, 2.1)
        bare(ax)
    return figure


def overfitting(values: Any = None) -> Any:
    """Symptoms of overfitting: a small margin, and a large share of the samples are support vectors.

    Gaussian kernels of several widths, from biased (small γ) to overfitted (large γ). Beyond the best γ the margin
    falls, the number of support vectors grows, and so do the errors of new samples, while training samples have none.
    """
    gammas = np.geomspace(0.1, 1000.0, 21) if values is None else np.asarray(values, dtype=np.float64)
    (X, y), (new, labels) = moons(), moons(1000, seed=1)
    models = [SVC(C=10.0, gamma=gamma).fit(X, y) for gamma in gammas]
    count = [len(model.support_) for model in models]
    figure, (left, middle, right) = panels(1, 3, 3.2, 2.9)
    left.plot(count, [float(model.margin_[0]) for model in models], color=GREY, lw=0.6)
    points = left.scatter(
        count, [float(m.margin_[0]) for m in models], c=np.log10(gammas), cmap="viridis", s=20, zorder=3
    )
    figure.colorbar(points, ax=left, label="log₁₀ γ")
    left.set(xlabel="support vectors", ylabel="margin 1/|w|", ylim=(0.0, None))
    middle.plot(gammas, count, "o-", color=colour(0), ms=2.5, lw=1.4)
    middle.set(xscale="log", xlabel="γ", ylabel=f"support vectors of {len(y)} samples", ylim=(0, None))
    for number, (label, of) in enumerate((("training samples", (X, y)), ("new samples", (new, labels)))):
        errors = [1.0 - model.score(*of) for model in models]
        right.plot(gammas, errors, "o-", color=colour(number), ms=2.5, lw=1.4, label=label)
    right.set(xscale="log", xlabel="γ", ylabel="share of errors", ylim=(0.0, None))
    right.legend(fontsize="small")
    return figure


def near_diagonal(values: tuple[float, ...] = (0.1, 2.0, 100.0)) -> Any:
    """A narrow Gaussian makes each sample similar to itself alone: the kernel matrix is close to the identity.

    The number above each matrix is the mean of its values off the diagonal.
    """
    X, y = moons(60)
    figure, axes = panels(1, len(values), 3.5, 2.9)
    for ax, gamma in zip(axes, values, strict=True):
        display = GramDisplay.from_kernel(Gaussian(gamma), X, y, ax=ax)
        off = display.K[~np.eye(len(y), dtype=bool)]
        ax.set_title(f"γ = {gamma:g}, off the diagonal {off.mean():.2f}", fontsize="medium")
    return figure
