"""The bias as the weight of one more feature, beside the free bias ([SSBD] 15.1.1).

    python examples/notes/bias_as_a_feature.py

A halfspace with a bias is one through the origin if each sample gets one more feature, the constant c: <w, x> + b is
<(w, b/c), (x, c)>. But (15.3) then minimises |w|² + (b/c)²: it pays for the bias, (15.2) does not. With c = 1 this
matters if the samples are far from the origin; with a large c it does not, nor if the samples are centred.

The same three ways: the feature written out, the kernel <x, z> + c², and LinearSVC with intercept_scaling=c.
"""

from __future__ import annotations

import numpy as np

from mercer import SVC, Linear, LinearSVC

NORMAL, AWAY = np.array([0.6, 0.8]), np.array([1.0, 0.0])


def two_classes(n: int, gap: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Samples on both sides of a line through the origin, as far away from it as gap."""
    X = rng.normal(size=(n, 2))
    y = np.where(X @ NORMAL > 0, 1, -1)
    return X + np.outer(gap * y, NORMAL), y


def margin(w: np.ndarray, b: float, X: np.ndarray, y: np.ndarray) -> float:
    """The distance of the closest sample from the hyperplane, in the space of x."""
    return float((y * (X @ w + b)).min() / np.linalg.norm(w))


def main() -> None:
    """Print margins and biases of Hard-SVM, and the errors of Soft-SVM."""
    rng = np.random.default_rng(0)
    centred, y = two_classes(40, 0.3, rng)
    print("Hard-SVM on 40 samples: distance of the closest one")
    print("shift   free bias    c = 1   c = 10   c = 100   bias: free      c = 1   c = 100")
    for shift in (0.0, 2.0, 10.0):
        X = centred + shift * AWAY
        free = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
        largest = margin(free.coef_[0], free.intercept_[0], X, y)
        found, biases = [], []
        for c in (1.0, 10.0, 100.0):
            longer = np.column_stack([X, np.full(len(y), c)])
            model = SVC(C=np.inf, kernel="linear", fit_intercept=False, tol=1e-9).fit(longer, y)
            by_kernel = SVC(C=np.inf, kernel=Linear() + c**2, fit_intercept=False, tol=1e-9).fit(X, y)
            np.testing.assert_allclose(by_kernel.decision_function(X), model.decision_function(longer), atol=1e-5)
            w, b = model.coef_[0, :2], c * model.coef_[0, 2]
            # (15.3) has no smaller value than the free bias at the same price
            assert (
                model.coef_[0] @ model.coef_[0] <= free.coef_[0] @ free.coef_[0] + (free.intercept_[0] / c) ** 2 + 1e-6
            )
            found.append(margin(w, b, X, y))
            biases.append(b)
        print(f"{shift:5.0f}   {largest:9.4f}   {found[0]:6.4f}   {found[1]:6.4f}   {found[2]:7.4f}   ", end="")
        print(f"{free.intercept_[0]:10.2f}   {biases[0]:8.2f}   {biases[2]:7.2f}")
        assert max(found) <= largest * (1 + 1e-6) and found[0] <= found[1] * (1 + 1e-6) <= found[2] * (1 + 2e-6)
        assert abs(found[2] - largest) < 0.01 * largest
        assert abs(biases[2] - free.intercept_[0]) < 0.01 * max(1.0, abs(free.intercept_[0]))

    print("\nSoft-SVM, C = 0.1, 200 samples: error on 10,000 new samples")
    print("shift   free bias   c = 1   c = 10")
    (centred, y), (centred_new, y_new) = two_classes(200, 0.0, rng), two_classes(10_000, 0.0, rng)
    free_errors = []
    for shift in (0.0, 2.0, 10.0):
        X, X_new = centred + shift * AWAY, centred_new + shift * AWAY
        free = LinearSVC(C=0.1, loss="hinge", penalize_intercept=False, tol=1e-8).fit(X, y)
        errors = [1 - free.score(X_new, y_new)]
        for c in (1.0, 10.0):
            model = LinearSVC(C=0.1, loss="hinge", intercept_scaling=c, tol=1e-8).fit(X, y)
            longer = np.column_stack([X, np.full(len(y), c)])
            written = SVC(C=0.1, kernel="linear", fit_intercept=False, tol=1e-8).fit(longer, y)
            np.testing.assert_allclose(model.decision_function(X), written.decision_function(longer), atol=1e-3)
            errors.append(1 - model.score(X_new, y_new))
        print(f"{shift:5.0f}   {errors[0]:9.2%}   {errors[1]:5.2%}   {errors[2]:6.2%}")
        free_errors.append(errors[0])
        assert abs(errors[2] - errors[0]) < 0.05
        assert (errors[1] > errors[0] + 0.03) == (shift > 0)  # the price of b counts when b is large
    assert max(free_errors) - min(free_errors) < 1e-3  # the free bias does not see where the origin is
    print("Centre the columns, or leave the bias free.")


if __name__ == "__main__":
    main()
