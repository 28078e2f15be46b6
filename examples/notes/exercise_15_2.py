"""The perceptron makes at most (ρ/γ)² updates ([SSBD] Exercise 15.2, Remark 15.1).

    python examples/notes/exercise_15_2.py

Answer: let w* of length 1 have the margin γ. An update adds yx with y<w, x> <= 0, so that after T updates

    <w*, w> >= γT    as each adds y<w*, x> >= γ
    |w|²    <= ρ²T   as each adds 2y<w, x> + |x|² <= ρ²

and γT <= <w*, w> <= |w| <= ρ√T gives T <= (ρ/γ)². Both inequalities are checked after every update. The bound is
attained: the unit vectors of R^n, with any labels, have ρ = 1 and γ = 1/√n, and take n updates.
"""

from __future__ import annotations

import numpy as np

from mercer import Perceptron, datasets, separability


def updates(X: np.ndarray, y: np.ndarray, w_star: np.ndarray, gamma: float, rho: float) -> int:
    """Run the perceptron through the origin, check both inequalities at each update, and count these."""
    w, T = np.zeros(X.shape[1]), 0
    while (wrong := np.flatnonzero(y * (X @ w) <= 0)).size:
        w, T = w + y[wrong[0]] * X[wrong[0]], T + 1
        assert w_star @ w >= gamma * T * (1 - 1e-9)
        assert w @ w <= rho**2 * T * (1 + 1e-9)
    return T


def main() -> None:
    """Print the updates beside the bound for several margins, and where they are equal."""
    print("margin of the set   (ρ/γ)² of the largest margin   updates, first wrong one   updates, Perceptron")
    for gamma in (0.5, 0.2, 0.1, 0.05, 0.02):
        data = datasets.make_margin(100, d=5, gamma=gamma)
        best = separability(data.X, data.y).pairs[0].homogeneous
        bound = (best.rho / best.margin) ** 2
        plain = updates(data.X, data.y, best.normal, best.margin, best.rho)
        model = Perceptron(fit_intercept=False, tol=None).fit(data.X, data.y)
        print(f"{gamma:17.2f}   {bound:29.1f}   {plain:24d}   {int(model.n_updates_[0]):19d}")
        assert best.margin >= gamma * (1 - 1e-6) and model.separated_
        assert plain <= bound and model.n_updates_[0] <= bound

    print("\nunit vectors   (ρ/γ)²   updates")
    for n in (4, 16, 64):
        y = np.where(np.arange(n) % 3 == 0, -1, 1)
        best = separability(np.eye(n), y).pairs[0].homogeneous
        bound = (best.rho / best.margin) ** 2
        model = Perceptron(fit_intercept=False, tol=None).fit(np.eye(n), y)
        print(f"{n:12d}   {bound:6.2f}   {int(model.n_updates_[0]):7d}")
        assert model.n_updates_[0] == n == round(bound) and abs(bound - n) < 1e-3 * n


if __name__ == "__main__":
    main()
