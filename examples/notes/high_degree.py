"""A high enough degree separates anything, and this alone is worth nothing ([L8] 1).

    python examples/notes/high_degree.py

Points of the plane get labels by tossing a coin: there is nothing to learn. A polynomial of degree k has D = (k + 2
choose 2) coefficients. As soon as D is as large as the number n of points, the vectors ψ(x) of points in general
position are linearly independent, and every labelling is separable; by Cover's theorem half of the labellings already
if n = 2D. The margin is small against the length of ψ(x) however, and new points are right as often as coins are.
"""

from __future__ import annotations

from math import comb

import numpy as np

from mercer import SVC, Gaussian, Polynomial, separability

N, DRAWS, NEW = 12, 60, 500


def share_of_separable(D: int, n: int) -> float:
    """Cover's theorem: the share of the labellings of n points in general position in R^D that are separable."""
    return sum(comb(n - 1, k) for k in range(D)) / 2 ** (n - 1)


def coin_tosses(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points and labels; again if all labels are equal, which is one case in 2048."""
    X, y = rng.uniform(-1, 1, size=(N, 2)), rng.choice([-1, 1], N)
    return (X, y) if 0 < (y > 0).sum() < N else coin_tosses(rng)


def main() -> None:
    """Print, for each degree, the share of separable labellings beside Cover's, the margin, and the error."""
    rng = np.random.default_rng(0)
    sets = [coin_tosses(rng) for _ in range(DRAWS)]
    new = rng.uniform(-1, 1, size=(NEW, 2))
    coins = rng.choice([-1, 1], NEW)
    print(f"{DRAWS} sets of {N} points with the labels of coins")
    print("degree   features D   separable   Cover's share   median of ρ/γ   right on new points")
    for degree in range(1, 6):
        D, kernel = comb(degree + 2, 2), Polynomial.inhomogeneous(degree)
        separable, ratios, right = [], [], []
        for X, y in sets:
            found = separability(X, y, kernel).pairs[0].homogeneous
            separable.append(found.separable)
            if found.separable:
                ratios.append(found.rho / found.margin)
                model = SVC(C=np.inf, kernel=kernel, fit_intercept=False).fit(X, y)
                right.append(model.score(new, coins))
            if D >= N:
                assert np.linalg.matrix_rank(kernel(X)) == N
        share, expected = np.mean(separable), share_of_separable(D, N)
        shown = f"{np.median(ratios):13.0f}   {np.mean(right):19.1%}" if ratios else f"{'-':>13}   {'-':>19}"
        print(f"{degree:6d}   {D:10d}   {share:9.0%}   {expected:13.0%}   {shown}")
        # four standard deviations of a mean of draws, and no doubt where the share is 1
        assert abs(share - expected) <= 4 * np.sqrt(expected * (1 - expected) / DRAWS)
        assert D < N or share == 1.0
        assert not right or abs(np.mean(right) - 0.5) < 0.1
        # the bound (ρ/γ)² > n of Theorem 15.4 promises nothing
        assert not ratios or np.median(ratios) ** 2 > N

    assert all(separability(X, y, Gaussian(1.0)).separable for X, y in sets)
    print("The Gaussian kernel separates all of them: its matrix has full rank for any different points.")


if __name__ == "__main__":
    main()
