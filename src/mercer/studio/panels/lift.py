"""The points in feature space, as far as three dimensions show it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.exceptions import NotSeparableError
from mercer.kernels import Linear, Polynomial, parse_kernel
from mercer.kernels.features import Matrix, Vector
from mercer.studio.panels.fitted_machine import fitted, quietly, rounded
from mercer.studio.panels.gram_matrix import matrix_of
from mercer.studio.presets import DISC_KERNEL
from mercer.studio.state import State, StateError

# points of the kernel principal components: their eigenvectors take time n³
MOST_POINTS = 1000
# directions with a smaller share of the largest eigenvalue are rounding
ROUNDING = 1e-10


def lift_json(state: State) -> dict[str, Any]:
    """The answer to `lift`: (a, b, c) of each point, and the hyperplane of the machine in the same coordinates."""
    if not state.in_plane:
        raise StateError("The lifted picture is for points of the plane.", "mode")
    if state.n == 0:
        return {"points": [], "plane": None, "axes": ["", "", ""], "exact": True, "text": "There are no points."}
    known = _known_map(state)
    if known is not None:
        return known
    return _components(state)


def _known_map(state: State) -> dict[str, Any] | None:
    """The exact picture, for kernels whose feature space has at most three dimensions besides a constant."""
    kernel, (x, y) = state.machine_kernel, state.X.T
    if isinstance(kernel, Linear):
        plane = _hyperplane(state, lambda Z: np.column_stack([Z, np.zeros(len(Z))]), np.array([True, True, False]))
        points = np.column_stack([x, y, np.zeros(state.n)])
        return _shown(points, plane, ["x₁", "x₂", "0"], "φ(x) = x: the plane itself.")
    if kernel == parse_kernel(DISC_KERNEL):

        def disc(Z: Matrix) -> Matrix:
            return np.column_stack([Z[:, 0] ** 2, Z[:, 1] ** 2, np.ones(len(Z))])

        plane = _hyperplane(state, disc, np.array([True, True, False]))
        return _shown(disc(state.X), plane, ["x₁²", "x₂²", "1"], "φ(x) = (1, x₁², x₂²): a circle becomes a line.")
    if isinstance(kernel, Polynomial) and kernel.degree == 2 and isinstance(kernel.gamma, int | float):
        gamma = float(kernel.gamma)

        def quadratic(Z: Matrix) -> Matrix:
            return gamma * np.column_stack([Z[:, 0] ** 2, math.sqrt(2.0) * Z[:, 0] * Z[:, 1], Z[:, 1] ** 2])

        if kernel.coef0 == 0:
            plane = _hyperplane(state, quadratic, np.ones(3, np.bool_))
            text = "φ(x) = γ(x₁², √2 x₁x₂, x₂²): all of the feature space."
            return _shown(quadratic(state.X), plane, ["x₁²", "√2 x₁x₂", "x₂²"], text)
        text = "The three quadratic features of six; the linear ones and the constant are not drawn."
        return {**_shown(quadratic(state.X), None, ["x₁²", "√2 x₁x₂", "x₂²"], text), "exact": False}
    return None


def _shown(points: Matrix, plane: dict[str, Any] | None, axes: list[str], text: str) -> dict[str, Any]:
    return {"points": rounded(points), "plane": plane, "axes": axes, "exact": True, "text": text}


def _machine(state: State) -> Any:
    """The machine, if it is one hyperplane; else None."""
    if state.mode == "classify" and len(state.classes) != 2:
        return None
    try:
        return fitted(state)
    except (NotSeparableError, StateError):
        return None


def _hyperplane(state: State, phi: Any, drawn: Any) -> dict[str, Any] | None:
    """⟨normal, φ⟩ + offset = 0 in the drawn coordinates; coordinates that are constant count to the offset."""
    model = _machine(state)
    if model is None:
        return None
    images = phi(np.asarray(model.support_vectors_))
    w = np.asarray(model.dual_coef_).ravel() @ images
    offset = float(np.atleast_1d(model.intercept_)[0])
    offset += float(w[~drawn] @ images[0][~drawn]) if len(images) else 0.0
    return {"normal": rounded(np.where(drawn, w, 0.0)), "offset": offset}


def _components(state: State) -> dict[str, Any]:
    """Kernel principal components: the three directions of feature space in which the points vary most."""
    if state.n > MOST_POINTS:
        raise StateError(f"The lifted picture is computed for at most {MOST_POINTS:,} points.", "points")
    K = matrix_of(state)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    values, vectors = np.linalg.eigh((centred + centred.T) / 2)
    total = float(np.maximum(values, 0.0).sum())
    points, kept = np.zeros((state.n, 3)), 0.0
    directions = np.zeros((state.n, 3))
    for k in range(min(3, state.n)):
        value, vector = float(values[-1 - k]), vectors[:, -1 - k]
        if value <= ROUNDING * max(float(values[-1]), 1e-300):
            break
        vector = vector * (1.0 if vector[np.argmax(np.abs(vector))] > 0 else -1.0)
        points[:, k], kept = math.sqrt(value) * vector, kept + value
        directions[:, k] = vector / math.sqrt(value)
    share = kept / total if total > 0 else 1.0
    return {
        "points": rounded(points),
        "plane": _projected(state, K, directions),
        "axes": ["component 1", "component 2", "component 3"],
        "exact": share > 1 - 1e-9,
        "text": f"Kernel principal components: {100 * share:.0f} % of the variance in feature space.",
    }


def _projected(state: State, K: Matrix, directions: Matrix) -> dict[str, Any] | None:
    """The hyperplane at points of the drawn three-dimensional space: w in the directions, f at the mean."""
    model = _machine(state)
    if model is None:
        return None
    beta: Vector = np.zeros(state.n)
    beta[np.asarray(model.support_)] = np.asarray(model.dual_coef_).ravel()
    with quietly():
        f = K @ beta
    # the direction is Σ dᵢ (φ(xᵢ) − mean): ⟨w, direction⟩ = Σ dᵢ (f(xᵢ) − mean f)
    normal = directions.T @ (f - f.mean())
    return {"normal": rounded(normal), "offset": float(f.mean() + np.atleast_1d(model.intercept_)[0])}
