"""Figures of procedures step by step: the perceptron, Pegasos, coordinate ascent and SMO."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.display.canvas import CHOSEN, GREY, colour
from mercer.display.figures.figure_data import bare, clouds, panels, separable
from mercer.display.plane import DecisionDisplay
from mercer.estimators.online.pegasos import PegasosClassifier
from mercer.estimators.online.perceptron import Perceptron
from mercer.estimators.svc import SVC
from mercer.kernels.features import Matrix, Vector

# points along each side of contour lines
GRID = 120
# steps among which the clearest ones of SMO are looked for
MOST_STEPS_DRAWN = 1000


def perceptron(mistakes: int = 5) -> Any:
    """The perceptron: each panel has the line after a mistake, with the sample that was on the wrong side before.

    The last panel has the line after the last mistake, which separates the samples.
    """
    X, y = separable(20, gap=0.15, seed=33)
    model = Perceptron(fit_intercept=False, shuffle=False, tol=None, trace=True).fit(X, y)
    visited = model.steps_.i[model.steps_.mistake]
    shown = [*range(min(mistakes, len(visited) - 1)), len(visited) - 1]
    figure, axes = panels(2, -(-len(shown) // 2), 2.9, 2.6)
    replay = Perceptron(fit_intercept=False)
    for k, i in enumerate(visited):
        # other samples change nothing: the steps of the fit are those of its mistakes
        replay.partial_fit(X[[i]], y[[i]], classes=[-1, 1])
        if k in shown:
            ax = axes[shown.index(k)]
            DecisionDisplay.from_estimator(replay, X, y, ax=ax, grid=80)
            ax.scatter(*X[i], s=90, facecolors="none", edgecolors=CHOSEN, linewidths=1.6)
            ax.set_title(f"mistake {k + 1}, step {model.steps_.t[model.steps_.mistake][k]}", fontsize="medium")
            bare(ax)
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    return figure


def pegasos(lam: float = 0.1, steps: tuple[int, ...] = (2, 4, 8, 32, 128, 512)) -> Any:
    """Pegasos: the iterates w⁽ᵗ⁾ with their margins, and the sample of the step before, red if it changed w."""
    X, y = clouds(40, 2.6, seed=1)
    options: dict[str, Any] = {"fit_intercept": False, "random_state": 3, "average": "last"}
    trace = PegasosClassifier(lam, n_steps=max(steps) + 1, trace=True, **options).fit(X, y).steps_
    figure, axes = panels(2, -(-len(steps) // 2), 2.9, 2.6)
    for t, ax in zip(steps, axes, strict=False):
        DecisionDisplay.from_estimator(PegasosClassifier(lam, n_steps=t, **options).fit(X, y), X, y, ax=ax, grid=80)
        if t > 1:
            last = trace[t - 2]
            edge = CHOSEN if last["updated"] else GREY
            ax.scatter(*X[last["i"]], s=90, facecolors="none", edgecolors=edge, linewidths=1.6)
        ax.set_title(f"t = {t}, objective {trace[t - 1]['objective']:.3f}", fontsize="medium")
        bare(ax)
    for ax in axes[len(steps) :]:
        ax.set_axis_off()
    return figure


def coordinate_ascent(C: float = 1.0) -> Any:
    """Coordinate ascent on the dual of two samples: each step goes along one axis, to its maximum or to the box."""
    y = np.array([1, -1])
    cases = (
        (np.array([[1.2, 0.0], [-0.84, -0.8]]), "the maximum is free"),
        (np.array([[1.2, 0.0], [-0.5, -0.45]]), "α₂ is clipped to the box"),
    )
    figure, axes = panels(1, 2, 3.9, 3.6)
    for ax, (X, title) in zip(axes, cases, strict=True):
        model = SVC(
            C=C, kernel="linear", solver="coordinate", rule="round-robin", fit_intercept=False, tol=1e-2, trace=True
        ).fit(X, y)
        alpha = np.zeros(2)
        path = [alpha]
        for i, value in zip(model.steps_.i, model.steps_.clipped, strict=True):
            alpha = alpha.copy()
            alpha[i] = value
            path.append(alpha)
        _contours(ax, X @ X.T, y, np.zeros(2), (0, 1), C, (-0.15 * C, 1.25 * C))
        ax.plot(*np.transpose(path), "o-", color=CHOSEN, ms=3.5, lw=1.4)
        ax.set(title=f"{title}: {len(model.steps_)} steps", xlabel="α₁", ylabel="α₂")
    return figure


def smo(C: float = 1.0) -> Any:
    """SMO's box: a pair (αᵢ, αⱼ) stays on a segment; its maximum there is taken, or the nearer end.

    Left a pair of different classes, right one of the same class; each is a step of a fit of a small data set.
    """
    X, y = clouds(12, 1.2, seed=18)
    X = 0.8 * X
    model = SVC(C=C, kernel="linear", solver="smo", trace=True, max_iter=MOST_STEPS_DRAWN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # two early steps are drawn
        steps, K = model.fit(X, y).steps_, X @ X.T
    differ = y[steps.i] != y[steps.j]
    clipped = steps.clipped != steps.unclipped
    # the clearest steps: a clipped one that ends outside of the box but near it, and a free one on a long segment
    outside = np.abs(steps.unclipped - steps.clipped)
    near = differ & clipped & (steps.H - steps.L > 0.2 * C)
    chosen = [int(np.argmin(np.where(near, np.abs(outside - 0.3 * C), np.inf)))]
    chosen.append(int(np.argmax(np.where(~differ & ~clipped, steps.H - steps.L, -np.inf))))
    figure, axes = panels(1, 2, 3.9, 3.6)
    for ax, k in zip(axes, chosen, strict=True):
        _smo_step(ax, K, y, steps, k, C)
    return figure


def _smo_step(ax: Any, K: Matrix, y: Vector, steps: Any, k: int, C: float) -> None:
    """Draw step k: the dual of the pair, its segment, its start, its unclipped and its clipped end."""
    alpha = np.zeros(len(y))
    for earlier in range(k):
        alpha[steps.i[earlier]], alpha[steps.j[earlier]] = steps.alpha_i[earlier], steps.clipped[earlier]
    i, j = int(steps.i[k]), int(steps.j[k])
    sign = y[i] * y[j]

    def on_line(alpha_j: float) -> tuple[float, float]:
        """The pair with this αⱼ: αᵢ + yᵢyⱼαⱼ is constant."""
        return alpha[i] + sign * (alpha[j] - alpha_j), alpha_j

    ends = np.array([on_line(value) for value in (alpha[j], steps.unclipped[k])])
    low, high = min(0.0, ends.min()) - 0.15 * C, max(C, ends.max()) + 0.15 * C
    _contours(ax, K, y, alpha, (i, j), C, (low, high))
    ax.plot(*np.transpose([on_line(steps.L[k]), on_line(steps.H[k])]), color="black", lw=2.0, label="segment")
    ax.plot(*np.transpose([on_line(alpha[j]), on_line(steps.unclipped[k])]), color=GREY, ls=":", lw=1.2)
    for point, look in (
        (on_line(alpha[j]), {"marker": "s", "color": colour(2), "label": "start"}),
        (on_line(steps.unclipped[k]), {"marker": "o", "color": colour(0), "label": "maximum on the line"}),
        (on_line(steps.clipped[k]), {"marker": "x", "color": CHOSEN, "label": "taken", "ms": 8, "mew": 2.2}),
    ):
        ax.plot(*point, ls="", **look)
    ax.set(xlabel="αᵢ", ylabel="αⱼ")
    ax.set_title(f"step {k + 1}, {'different classes' if sign < 0 else 'the same class'}", fontsize="medium")
    ax.legend(fontsize="x-small", framealpha=0.9)


def _contours(
    ax: Any, K: Matrix, y: Vector, alpha: Vector, pair: tuple[int, int], C: float, ends: tuple[float, float]
) -> None:
    """Draw the box and contour lines of the dual Σα − ½Σ αᵢαⱼyᵢyⱼKᵢⱼ over a pair; the other α are fixed."""
    side = np.linspace(ends[0], ends[1], GRID)
    first, second = np.meshgrid(side, side)
    others = alpha.copy()
    others[list(pair)] = 0.0
    i, j = pair
    f = K @ (others * y)
    value = (
        first * (1 - y[i] * f[i]) + second * (1 - y[j] * f[j])
        - 0.5 * (K[i, i] * first**2 + K[j, j] * second**2) - y[i] * y[j] * K[i, j] * first * second
    )  # fmt: skip
    ax.contour(first, second, value, levels=14, colors=GREY, linewidths=0.6, linestyles="solid")
    ax.fill([0, C, C, 0], [0, 0, C, C], color=colour(4), alpha=0.25, lw=0)
    ax.set(xlim=ends, ylim=ends)
    ax.set_aspect("equal")
    ax.set_xticks([0, C], ["0", "C"])
    ax.set_yticks([0, C], ["0", "C"])
