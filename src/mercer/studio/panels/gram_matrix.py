"""The Gram matrix of the points, ordered by class and position, so that its blocks can be read."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels.features import Matrix
from mercer.studio.panels.fitted_machine import quietly, refusal, rounded
from mercer.studio.state import State, StateError

MOST_ROWS = 200


def matrix_of(state: State, rows: Any = None) -> Matrix:
    """The kernel values between points, of all points or of some."""
    X = state.X
    try:
        with quietly():
            kernel = state.machine_kernel.bind(X)
            features = kernel.prepare(X if rows is None else X[rows])
            K: Matrix = kernel.block(features, features)
    except (ValueError, ArithmeticError) as error:
        raise StateError(refusal(error), "kernel") from None
    return np.asarray(K, dtype=np.float64)


def gram_json(state: State) -> dict[str, Any]:
    """The answer to `gram`."""
    if state.n == 0:
        return {"order": [], "matrix": [], "low": 0.0, "high": 0.0, "labels": [], "shown": 0}
    order = ordered(state)
    if len(order) > MOST_ROWS:  # evenly over the order, so that each class keeps its share
        order = order[np.linspace(0, len(order) - 1, MOST_ROWS).round().astype(np.intp)]
    K = matrix_of(state, order)
    finite = K[np.isfinite(K)]
    return {
        "order": order.tolist(),
        "matrix": rounded(K),
        "low": float(finite.min(initial=np.inf)) if finite.size else 0.0,
        "high": float(finite.max(initial=-np.inf)) if finite.size else 0.0,
        "labels": [int(state.points[i][2]) for i in order],
        "shown": len(order),
    }


def ordered(state: State) -> Any:
    """Indices of the points: by class, then along the line on which the points of the class vary most."""
    if not state.in_plane:
        return np.argsort(state.X[:, 0], kind="stable")
    parts = []
    for label in state.classes:
        members = np.flatnonzero(state.y == label)
        centred = state.X[members] - state.X[members].mean(axis=0)
        _, _, directions = np.linalg.svd(centred, full_matrices=False)
        along = centred @ directions[0]
        # the same direction for neighbouring states
        parts.append(members[np.argsort(along * (1.0 if directions[0].sum() >= 0 else -1.0), kind="stable")])
    return np.concatenate(parts)
