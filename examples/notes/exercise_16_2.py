"""The perceptron with kernel values alone ([SSBD] Exercise 16.2).

    python examples/notes/exercise_16_2.py

Answer: w is always a sum of yψ(x) over the updates, w = Σ β_j ψ(x_j) with β_j = y_j times the updates at j. Then <w,
ψ(x)> = Σ β_j k(x_j, x), and an update at i is β_i += y_i. The feature space is never entered.

Checked step by step: the same samples are updated in the same order as with ψ written out, here the monomials up to
order 2 for points in and around an ellipse; and the class of the library makes as many updates and predicts the same.
"""

from __future__ import annotations

import numpy as np

from mercer import Perceptron, Polynomial, datasets


def with_features(psi: np.ndarray, y: np.ndarray) -> tuple[list[int], np.ndarray]:
    """The samples that are updated, in order, and w; sweeps until a sweep has no update."""
    w, order = np.zeros(psi.shape[1]), []
    while True:
        before = len(order)
        for i in range(len(y)):
            if y[i] * (psi[i] @ w) <= 0:
                w = w + y[i] * psi[i]
                order.append(i)
        if len(order) == before:
            return order, w


def with_kernel(K: np.ndarray, y: np.ndarray) -> tuple[list[int], np.ndarray]:
    """The same with β instead of w."""
    beta, order = np.zeros(len(y)), []
    while True:
        before = len(order)
        for i in range(len(y)):
            if y[i] * (K[i] @ beta) <= 0:
                beta[i] += y[i]
                order.append(i)
        if len(order) == before:
            return order, beta


def main() -> None:
    """Print the numbers of updates, and how far the decision functions differ."""
    data = datasets.make_ellipse(100, gap=0.5)
    kernel = Polynomial.inhomogeneous(2)
    psi = kernel.feature_map(data.X)
    order, w = with_features(psi(data.X), data.y)
    other, beta = with_kernel(kernel(data.X), data.y)
    model = Perceptron(kernel=kernel, fit_intercept=False, shuffle=False, tol=None, max_iter=10_000).fit(data.X, data.y)
    print(f"updates with ψ(x) of dimension {psi.dimension}: {len(order)}, with kernel values: {len(other)}, ", end="")
    print(f"Perceptron(kernel={kernel!r}): {int(model.n_updates_[0])}")
    assert order == other and len(order) == model.n_updates_[0]
    np.testing.assert_allclose(beta @ psi(data.X), w)

    new = datasets.make_ellipse(1000, gap=0.5, seed=1)
    f = psi(new.X) @ w
    apart = max(np.abs(kernel(new.X, data.X) @ beta - f).max(), np.abs(model.decision_function(new.X) - f).max())
    print(f"decision functions at {len(f)} new points: at most {apart / np.abs(f).max():.1e} apart, relatively")
    print(f"right on {np.mean(np.sign(f) == new.y):.1%} of the new points")
    assert apart < 1e-9 * np.abs(f).max()
    assert model.separated_ and np.mean(np.sign(f) == new.y) > 0.9


if __name__ == "__main__":
    main()
