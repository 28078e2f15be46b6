"""Two ways to write the rule of the widest margin ([SSBD] Exercise 15.1).

    python examples/notes/exercise_15_1.py

    (a)  max min |<w, x> + b|    over |w| = 1 and those (w, b) that separate the samples
    (b)  max min y(<w, x> + b)   over |w| = 1                                                     (15.13)

Answer: a hyperplane that separates has y(<w, x> + b) = |<w, x> + b|, so both have the same values there. The minimum of
(b) is positive for a separating hyperplane and not positive for any other: the maximum of (b) separates. Without its
condition (a) has no maximum: a hyperplane far away from all samples is far away from the closest.

Checked on random hyperplanes, on all directions of the plane, and against the machine that solves (15.2).
"""

from __future__ import annotations

import numpy as np

from mercer import SVC, datasets, unit_hyperplanes


def smallest(w: np.ndarray, b: np.ndarray, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The minima of (a), without its condition, and of (b), for each of many hyperplanes."""
    f = w @ X.T + b[:, None]
    return np.abs(f).min(axis=1), (y * f).min(axis=1)


def best_of_all_directions(X: np.ndarray, y: np.ndarray, n: int = 20_000) -> float:
    """The maximum of (b) over n directions of the plane, each with the b halfway between the classes."""
    angle = np.linspace(0.0, 2 * np.pi, n)
    w = np.column_stack([np.cos(angle), np.sin(angle)])
    f = w @ X.T
    b = -0.5 * (f[:, y > 0].min(axis=1) + f[:, y < 0].max(axis=1))
    return float(smallest(w, b, X, y)[1].max())


def main() -> None:
    """Print how often the two agree, and the three maxima."""
    data = datasets.make_margin(30, d=2, gamma=0.4)
    X, y = data.X + np.array([0.3, 0.0]), data.y
    rng = np.random.default_rng(0)
    w = rng.normal(size=(100_000, 2))
    w /= np.linalg.norm(w, axis=1)[:, None]
    b = rng.normal(size=len(w))
    of_a, of_b = smallest(w, b, X, y)
    separates = (y * np.sign(w @ X.T + b[:, None]) > 0).all(axis=1)
    print(f"{len(w):,} random hyperplanes, {separates.sum():,} of which separate {len(y)} samples:")
    print(f"  largest difference of (a) and (b) where they separate     {np.abs(of_a - of_b)[separates].max():.1e}")
    print(f"  largest minimum of (b) where they do not                  {of_b[~separates].max():.1e}")
    print(f"  largest minimum of (a) where they do not                  {of_a[~separates].max():.4f}")
    assert separates.any() and not separates.all()
    assert np.abs(of_a - of_b)[separates].max() < 1e-12
    assert of_b[~separates].max() <= 0 < of_b[separates].min()
    assert of_a[~separates].max() > of_a[separates].max()  # the condition of (a) is needed

    best = best_of_all_directions(X, y)
    model = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
    unit = unit_hyperplanes(model)[0]
    margin = float((y * (X @ unit.normal + unit.bias)).min())
    print(
        f"\nbest of the random hyperplanes {of_b.max():.5f}, of all directions {best:.5f}, Hard-SVM (15.2) {margin:.5f}"
    )
    assert of_b.max() <= best <= margin + 1e-9
    assert margin - best < 1e-4


if __name__ == "__main__":
    main()
