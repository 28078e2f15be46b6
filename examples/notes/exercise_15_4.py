"""Weak duality: min max f >= max min f, for any f ([SSBD] Exercise 15.4).

    python examples/notes/exercise_15_4.py

Answer: for any x' and y', max_y f(x', y) >= f(x', y') >= min_x f(x, y'). The left side does not depend on y', nor the
right side on x': take the least of the one and the largest of the other.

Checked on matrices f(x, y) = F[x, y], where the two sides mostly differ; then on (15.8), where every w that satisfies
the constraints has a value not below that of any α >= 0, and the best of both meet.
"""

from __future__ import annotations

import numpy as np

from mercer import SVC, datasets


def main() -> None:
    """Print how far the two sides are apart."""
    rng = np.random.default_rng(0)
    F = rng.normal(size=(10_000, 4, 4))
    upper, lower = F.max(axis=2).min(axis=1), F.min(axis=1).max(axis=1)
    equal = np.isclose(upper, lower)
    print(f"{len(F):,} random games of 4 × 4: min max >= max min in all of them, equal in {equal.mean():.1%}")
    assert (upper >= lower).all()
    assert 0 < equal.mean() < 1  # a gap is the rule, no gap is possible
    pennies = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert pennies.max(axis=1).min() == 1 > -1 == pennies.min(axis=0).max()

    data = datasets.make_margin(30, d=3, gamma=0.3)
    signed = data.y[:, None] * data.X
    model = SVC(C=np.inf, kernel="linear", fit_intercept=False, tol=1e-9).fit(data.X, data.y)
    # w with y<w, x> >= 1: any direction that separates, made long enough
    directions = data.w + 0.3 * rng.normal(size=(5_000, 3))
    reach = (directions @ signed.T).min(axis=1)
    w = directions[reach > 0] / reach[reach > 0, None]
    primal = 0.5 * (w**2).sum(axis=1)
    alpha = rng.exponential(size=(5_000, 1)) * rng.dirichlet(np.full(30, 0.1), 5_000)
    dual = alpha.sum(axis=1) - 0.5 * ((alpha @ signed) ** 2).sum(axis=1)
    best = model.certificate_
    print(f"\nHard-SVM (15.8): {len(w):,} feasible w have values from {primal.min():.4f} to {primal.max():.1e},")
    print(f"                 {len(alpha):,} α >= 0 have values from {dual.min():.1f} to {dual.max():.4f};")
    print(f"                 the best: primal {best.primal:.6f}, dual {best.dual:.6f}, gap {best.gap:.1e}")
    assert dual.max() <= best.dual * (1 + 1e-9) <= best.primal * (1 + 2e-9) <= primal.min() * (1 + 3e-9)
    assert best.relative_gap < 1e-6  # strong duality


if __name__ == "__main__":
    main()
