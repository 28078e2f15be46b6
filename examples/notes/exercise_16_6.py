"""The closest class mean, by kernel values ([SSBD] Exercise 16.6).

    python examples/notes/exercise_16_6.py

Answer: |ψ(x) - c_-|² - |ψ(x) - c_+|² = 2<c_+ - c_-, ψ(x)> + |c_-|² - |c_+|² = 2(<w, ψ(x)> + b): closer to c_+ means a
positive sign. (The exercise has the labels 1 and 0 in one place, and a sign, 1 or -1, in the other.) With m_+ and m_-
samples

    <w, ψ(x)> = (1/m_+) Σ_+ k(x_i, x) - (1/m_-) Σ_- k(x_i, x)
    b         = (1/2m_-²) Σ_-- k(x_i, x_j) - (1/2m_+²) Σ_++ k(x_i, x_j)

Checked against the means of ψ(x) written out, and against KernelCentroid, which also takes kernels without a ψ that
could be written out, and strings.
"""

from __future__ import annotations

import numpy as np

from mercer import CommonSubstrings, Gaussian, KernelCentroid, Polynomial, datasets


def by_kernel_values(kernel, X, y, new) -> np.ndarray:
    """<w, ψ(x)> + b at new samples."""
    plus, minus = y > 0, y < 0
    K, k = kernel(X), kernel(new, X)
    b = 0.5 * (K[np.ix_(minus, minus)].mean() - K[np.ix_(plus, plus)].mean())
    return k[:, plus].mean(axis=1) - k[:, minus].mean(axis=1) + b


def main() -> None:
    """Print the differences, and how often the rule is right."""
    data, new = datasets.make_circle(100), datasets.make_circle(1000, seed=1)
    kernel = Polynomial.inhomogeneous(2)
    psi = kernel.feature_map(data.X)
    phi, phi_new = psi(data.X), psi(new.X)
    c_plus, c_minus = phi[data.y > 0].mean(axis=0), phi[data.y < 0].mean(axis=0)
    to_plus, to_minus = (((phi_new - c) ** 2).sum(axis=1) for c in (c_plus, c_minus))
    f = by_kernel_values(kernel, data.X, data.y, new.X)
    model = KernelCentroid(kernel=kernel).fit(data.X, data.y)
    print(f"|ψ(x) - c_-|² - |ψ(x) - c_+|² against 2f(x): at most {np.abs(to_minus - to_plus - 2 * f).max():.1e} apart")
    np.testing.assert_allclose(to_minus - to_plus, 2 * f, atol=1e-9)
    np.testing.assert_array_equal(np.where(to_plus <= to_minus, 1, -1), np.where(f >= 0, 1, -1))
    np.testing.assert_allclose(model.decision_function(new.X), f, atol=1e-9)
    np.testing.assert_array_equal(model.predict(new.X), np.where(f >= 0, 1, -1))

    files, new_files = datasets.make_signatures(200), datasets.make_signatures(200, seed=1)
    cases = (
        ("circle, (1 + <x, z>)²", kernel, data, new),
        ("circle, exp(-|x - z|²)", Gaussian(1.0), data, new),
        ("files, common substrings", CommonSubstrings(), files, new_files),
    )
    print("\nsamples and kernel            right on new samples")
    for name, k, train, test in cases:
        f = by_kernel_values(k, train.X, train.y, test.X)
        model = KernelCentroid(kernel=k).fit(train.X, train.y)
        right = np.mean(np.where(f >= 0, 1, -1) == test.y)
        print(f"{name:<27}   {right:20.1%}")
        np.testing.assert_allclose(model.decision_function(test.X), f, atol=1e-9)
        assert right == model.score(test.X, test.y) > 0.6


if __name__ == "__main__":
    main()
