"""Absolute against squared error, with outliers ([M5] support vector regression).

    python examples/notes/outliers.py

Targets on a line, with a little noise, and outliers far above it at one end. The squared error follows the outliers: a
target that is 20 away pulls with a force of 20. The absolute error pulls with a force of 1 however far away a target
is: the line stays where it is until the outliers are too many. LinearSVR has both:
loss="epsilon_insensitive" with ε = 0 is the absolute error, loss="squared_epsilon_insensitive" the squared one; here C
is so large that the norm does not count.

Checked against least squares and against a linear program.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from mercer import LinearSVR, datasets


def line(X: np.ndarray, y: np.ndarray, loss: str) -> np.ndarray:
    """(slope, bias) of the least loss."""
    model = LinearSVR(epsilon=0.0, C=1e4, loss=loss, penalize_intercept=False, tol=1e-9, max_iter=100_000).fit(X, y)
    return np.array([np.ravel(model.coef_)[0], np.ravel(model.intercept_)[0]])


def least_absolute(X: np.ndarray, y: np.ndarray) -> float:
    """min Σ|y - wx - b|, as a linear program: min Σt with -t <= y - wx - b <= t."""
    n = len(y)
    design = np.column_stack([X, np.ones(n)])
    A = np.block([[design, -np.eye(n)], [-design, -np.eye(n)]])
    cost = np.concatenate([np.zeros(2), np.ones(n)])
    free = [(None, None)] * 2 + [(0, None)] * n
    return float(linprog(cost, A, np.concatenate([y, -y]), bounds=free).fun)


def main() -> None:
    """Print both lines for a growing share of outliers, and their distance from the true line."""
    print("            absolute error              squared error")
    print("outliers    slope    bias   distance    slope    bias   distance")
    off: dict[str, list[float]] = {"absolute": [], "squared": []}
    for share in (0.0, 0.02, 0.05, 0.1, 0.15, 0.4):
        data = datasets.make_outliers(share=share)
        design = np.column_stack([data.X, np.ones(len(data.y))])
        absolute, squared = (line(data.X, data.y, f"{kind}epsilon_insensitive") for kind in ("", "squared_"))
        least = np.linalg.lstsq(design, data.y, rcond=None)[0]
        np.testing.assert_allclose(squared, least, atol=1e-3)
        paid = np.abs(data.y - design @ absolute).sum()
        assert paid <= least_absolute(data.X, data.y) * (1 + 1e-4) <= np.abs(data.y - design @ squared).sum()

        shown = f"{share:8.0%}"
        for name, found in (("absolute", absolute), ("squared", squared)):
            off[name].append(float(np.sqrt(((design @ found - data.truth) ** 2).mean())))
            shown += f"    {found[0]:5.2f}   {found[1]:5.2f}   {off[name][-1]:8.3f}"
        print(shown)
    print(f"the true line: slope {data.w}, bias {data.b}")
    assert off["squared"][0] < off["absolute"][0] < 0.05  # of normal noise alone squares are the better choice
    assert max(off["absolute"][:4]) < 0.1 and min(off["squared"][1:]) > 0.5
    assert off["absolute"][-1] > 1.0  # too many


if __name__ == "__main__":
    main()
