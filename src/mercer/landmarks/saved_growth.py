"""The state of growth that a checkpoint keeps: the landmarks and the machine in their span."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.kernels.features import Vector


@dataclass(frozen=True)
class SavedGrowth:
    """Landmarks with the coefficients of a function, from which growth continues.

    Attributes
    ----------
    samples, rows, targets, coef : the landmarks, their numbers and targets, and their coefficients.
    intercept : b.
    turn : the number of rounds before this state.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.landmarks.saved_growth import SavedGrowth
    >>> state = SavedGrowth(np.ones((1, 2)), np.array([7]), np.ones(1), np.array([0.5]), 0.1, 3)
    >>> SavedGrowth.of(state.arrays()).rows.tolist()
    [7]
    """

    samples: Any
    rows: Vector
    targets: Vector
    coef: Vector
    intercept: float
    turn: int

    def arrays(self) -> dict[str, Any]:
        """The state as named arrays."""
        X = self.samples
        numbers = {"samples": X}
        if sp.issparse(X):
            numbers = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        others = {"rows": self.rows, "targets": self.targets, "coef": self.coef}
        return numbers | others | {"intercept": np.array(self.intercept), "turn": np.array(self.turn)}

    @classmethod
    def of(cls, arrays: dict[str, Any]) -> SavedGrowth:
        """The state from its arrays. Raises ValueError or KeyError if they do not belong together."""
        if "samples" in arrays:
            X = arrays["samples"]
        else:
            parts = arrays["data"], arrays["indices"], arrays["indptr"]
            X = sp.csr_array(parts, shape=tuple(int(size) for size in arrays["shape"]))
            X.check_format()
        rows, targets, coef = arrays["rows"], arrays["targets"], arrays["coef"]
        if X.ndim != 2 or len({X.shape[0], len(rows), len(targets), len(coef)}) != 1:
            raise ValueError("its landmarks and coefficients differ in number")
        return cls(X, rows, targets, coef, float(arrays["intercept"]), int(arrays["turn"]))
