"""Ridge regression with kernels, in closed form ([SSBD] Exercise 16.3).

    python examples/notes/exercise_16_3.py

    f(w) = λ|w|² + (1/2m) Σ (<w, ψ(x_i)> - y_i)²          (16.8)
    g(α) = λ α'Gα + (1/2m) |Gα - y|²                      (16.9)

Answer: g(α) is f at w = Σ α_i ψ(x_i), and by the representer theorem a minimum of f is of this form: the least g is
the least f. The gradient of g is G(2λα + (Gα - y)/m), which is 0 at

    α* = (G + 2λm I)⁻¹ y

also if G is singular; then there are other minima, with the same w. The predictor is h(x) = <w, ψ(x)> = Σ α_i k(x_i,
x): the exercise has <w, x>, without ψ.

Checked against the normal equations with ψ written out, and against KernelRidge.
"""

from __future__ import annotations

import numpy as np

from mercer import KernelRidge, Polynomial, lambda_to_alpha


def f(w: np.ndarray, psi: np.ndarray, y: np.ndarray, lam: float) -> float:
    """(16.8)."""
    return float(lam * w @ w + ((psi @ w - y) ** 2).mean() / 2)


def g(alpha: np.ndarray, G: np.ndarray, y: np.ndarray, lam: float) -> float:
    """(16.9)."""
    return float(lam * alpha @ G @ alpha + ((G @ alpha - y) ** 2).mean() / 2)


def main() -> None:
    """Print both minima, and what is left of the gradient."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(40, 2))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=40)
    m, kernel = len(y), Polynomial.inhomogeneous(3)
    G, feature_map = kernel(X), kernel.feature_map(X)
    psi = feature_map(X)
    new = rng.uniform(-1, 1, size=(500, 2))
    print(f"{m} samples, {psi.shape[1]} features: G has the rank {np.linalg.matrix_rank(G)}")
    print("      λ   g(α*)      f(w*)      |gradient of f|   largest difference of predictions")
    for lam in (1e-4, 1e-2, 1.0):
        alpha = np.linalg.solve(G + 2 * lam * m * np.eye(m), y)
        w = alpha @ psi
        slope = 2 * lam * w + psi.T @ (psi @ w - y) / m
        explicit = np.linalg.solve(psi.T @ psi + 2 * lam * m * np.eye(psi.shape[1]), psi.T @ y)
        model = KernelRidge(alpha=lambda_to_alpha(lam, m), kernel=kernel).fit(X, y)
        h = kernel(new, X) @ alpha
        apart = max(np.abs(h - feature_map(new) @ explicit).max(), np.abs(h - model.predict(new)).max())
        least, by_w = g(alpha, G, y, lam), f(w, psi, y, lam)
        print(f"{lam:7.0e}   {least:.6f}   {by_w:.6f}   {np.abs(slope).max():15.1e}   {apart:33.1e}")
        assert abs(least - by_w) < 1e-12 and np.abs(slope).max() < 1e-10
        assert apart < 1e-8
        for _ in range(100):  # no other α, and no other w at all, is better
            assert g(alpha + 0.1 * rng.normal(size=m), G, y, lam) > least
            assert f(w + 0.1 * rng.normal(size=len(w)), psi, y, lam) > least

    # G is singular: α* + z with Gz = 0 is another minimum of g with the same w
    z = np.linalg.eigh(G)[1][:, 0]
    assert np.abs(G @ z).max() < 1e-10
    assert abs(g(alpha + z, G, y, lam) - least) < 1e-12 and np.abs(z @ psi).max() < 1e-6
    print("G is singular: α* is one of many minima of g, all with the same w.")


if __name__ == "__main__":
    main()
