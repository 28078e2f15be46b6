"""Figures of losses, margins, slack, support vectors and the lift to feature space."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.display.canvas import CHOSEN, GREY, colour, marker, pyplot
from mercer.display.figures.figure_data import bare, clouds, disc, panels, separable
from mercer.display.plane import DecisionDisplay
from mercer.estimators.svc import SVC
from mercer.kernels import Polynomial
from mercer.losses import epsilon_insensitive, hinge, ramp, zero_one
from mercer.theory import kkt_report


def losses(epsilon: float = 0.5) -> Any:
    """Losses of classification against the margin yf, and of regression against the residual y - f.

    The hinge and the ramp loss lie above the 0-1 loss; of these three, the hinge loss alone is convex. The
    ε-insensitive loss pays nothing within ε.
    """
    figure, (left, right) = panels(1, 2, 4.2, 3.2)
    margin = np.linspace(-2.0, 3.0, 501)
    one = np.ones_like(margin)
    by_margin = (
        ("0-1", zero_one(one, margin), "-"),
        ("hinge", hinge(one, margin), "-"),
        ("ramp", ramp(one, margin), "--"),
        ("squared", (1.0 - margin) ** 2, ":"),
    )
    for number, (name, values, style) in enumerate(by_margin):
        left.plot(margin, values, style, color=colour(number), lw=1.8, label=name)
    left.set(xlabel="margin yf", ylabel="loss", ylim=(-0.1, 3.2))
    residual = np.linspace(-2.0, 2.0, 401)
    by_residual = (
        (f"ε-insensitive, ε = {epsilon:g}", epsilon_insensitive(residual, 0.0 * residual, epsilon=epsilon), "-"),
        ("absolute", np.abs(residual), "--"),
        ("squared", residual**2, ":"),
    )
    for number, (name, values, style) in enumerate(by_residual):
        right.plot(residual, values, style, color=colour(number), lw=1.8, label=name)
    right.set(xlabel="residual y − f", ylim=(-0.1, 3.2))
    for ax in (left, right):
        ax.legend(fontsize="small")
    return figure


def separating_lines() -> Any:
    """Two lines that separate the samples, each with its margin; and the widest street, which Hard-SVM finds."""
    X, y = separable(16)
    figure, (left, right) = panels(1, 2, 4.2, 3.6)
    model = SVC(C=np.inf, kernel="linear", tol=1e-6).fit(X, y)
    w = model.coef_[0]
    for c, sign in enumerate((-1, 1)):
        left.scatter(*X[y == sign].T, s=24, c=colour(c), marker=marker(c), edgecolors="white", linewidths=0.5)
    ends = np.array([X[:, 0].min() - 0.4, X[:, 0].max() + 0.4])
    for number, turn in enumerate((-0.5, 0.45)):
        v, a = _turned(w, turn, X, y)
        closest = float(np.min(y * (X @ v + a)))
        left.plot(ends, -(a + v[0] * ends) / v[1], color=colour(2 + number), lw=1.6, label=f"margin {closest:.2f}")
    left.set(ylim=(X[:, 1].min() - 0.4, X[:, 1].max() + 0.4), title="two separating lines")
    left.legend(fontsize="small")
    bare(left, legend=True)
    DecisionDisplay.from_estimator(model, X, y, ax=right)
    right.set_title(f"the widest street: margin {1 / np.hypot(*w):.2f}")
    bare(right)
    return figure


def _turned(w: Any, angle: float, X: Any, y: Any) -> tuple[Any, float]:
    """The unit normal w/|w|, turned; and the threshold in the middle between the classes."""
    v = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ w / np.hypot(*w)
    f = X @ v
    return v, -0.5 * float(f[y > 0].min() + f[y < 0].max())


def support_vectors() -> Any:
    """Hard-SVM: the support vectors lie at the distance 1/|w| from the line, all other samples further away."""
    X, y = separable()
    model = SVC(C=np.inf, kernel="linear", tol=1e-6).fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    figure, (ax,) = panels(1, 1, 5.2, 4.2)
    DecisionDisplay.from_estimator(model, X, y, ax=ax)
    for i in model.support_:
        foot = X[i] - (X[i] @ w + b) / (w @ w) * w
        ax.plot(*np.column_stack([X[i], foot]), color=CHOSEN, lw=1.2)
    ax.set_title(f"each red line is 1/|w| = {1 / np.hypot(*w):.2f} long")
    ax.set_aspect("equal")
    return figure


def slack(C: float = 1.0) -> Any:
    """Soft-SVM: ξ is how far a sample is on the wrong side of its margin; where ξ > 1 it is misclassified."""
    X, y = clouds(26, 3.2, seed=6)
    model = SVC(C=C, kernel="linear", tol=1e-6).fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    (found,) = kkt_report(model, X, y).problems
    xi = np.zeros(len(y))
    xi[found.rows] = found.xi
    figure, (ax,) = panels(1, 1, 5.6, 4.4)
    DecisionDisplay.from_estimator(model, X, y, ax=ax)
    for i in np.flatnonzero(xi > 0.01):
        edge = X[i] + (y[i] - (X[i] @ w + b)) / (w @ w) * w
        ax.plot(*np.column_stack([X[i], edge]), color=CHOSEN if xi[i] > 1 else GREY, lw=1.2)
        ax.annotate(f"{xi[i]:.1f}", X[i], textcoords="offset points", xytext=(5, -9), fontsize="x-small")
    ax.set_title(f"C = {C:g}: slack ξ, red where ξ > 1; the sum is {xi.sum():.1f}")
    ax.set_aspect("equal")
    return figure


def lift() -> Any:
    """A disc and a ring, which no line separates; ψ(x) = (x₁², √2 x₁x₂, x₂²) of the kernel ⟨x, z⟩² makes it a plane."""
    X, y = disc()
    kernel = Polynomial(2, 1.0, 0.0)
    psi = np.asarray(kernel.feature_map(X)(X))
    figure = pyplot().figure(figsize=(9.2, 4.0), layout="constrained")
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2, projection="3d")
    DecisionDisplay.from_estimator(SVC(C=np.inf, kernel=kernel).fit(X, y), X, y, ax=left)
    left.set_title("the plane of x, with the kernel ⟨x, z⟩²")
    left.set_aspect("equal")
    bare(left)
    model = SVC(C=np.inf, kernel="linear").fit(psi, y)
    for c, sign in enumerate((-1, 1)):
        right.scatter(*psi[y == sign].T, s=14, c=colour(c), marker=marker(c), depthshade=False)
    (w, b), ends = (model.coef_[0], model.intercept_[0]), (psi.min(axis=0), psi.max(axis=0))
    # the normal is (1, 0, 1) but for rounding: solve for the last coordinate, and cut the plane at the frame
    across, along = np.meshgrid(*(np.linspace(ends[0][k], ends[1][k], 60) for k in (0, 1)))
    height = -(b + w[0] * across + w[1] * along) / w[2]
    height[(height < ends[0][2]) | (height > ends[1][2])] = np.nan
    right.plot_surface(across, along, height, color=GREY, alpha=0.4, lw=0)
    right.set(
        title="the features, and the plane that separates them",
        xlabel="x₁²",
        ylabel="√2 x₁x₂",
        zlabel="x₂²",
        yticks=[-1, 0, 1],
    )
    right.view_init(elev=14, azim=-72)
    return figure
