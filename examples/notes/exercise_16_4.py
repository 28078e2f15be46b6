"""min(x, x') is a kernel on {1, …, N} ([SSBD] Exercise 16.4).

    python examples/notes/exercise_16_4.py

Answer: ψ(x) = (1, …, 1, 0, …, 0) with x ones in R^N, as two such vectors have min(x, x') ones in common. The rows of
ψ(1), …, ψ(N) are a lower triangular matrix L of ones and K = LL': its determinant is 1, so that K is even positive
definite.

Checked for several N, with the class Min and its feature map; for numbers that are not whole the steps are functions
instead of vectors, and Min is a kernel as well.
"""

from __future__ import annotations

import numpy as np

from mercer import Min, check_mercer


def main() -> None:
    """Print the smallest eigenvalue and the determinant for several N."""
    print("   N   det K   smallest eigenvalue   1/(4 sin²)")
    for N in (2, 5, 20, 100):
        x = np.arange(1, N + 1)
        K, L = np.minimum.outer(x, x), np.tril(np.ones((N, N)))
        values = np.linalg.eigvalsh(K)
        # K⁻¹ is the second difference with one free end, whose eigenvalues are 4 sin²((2j - 1)π/(2(2N + 1)))
        known = 1 / (4 * np.sin((2 * N - 1) * np.pi / (2 * (2 * N + 1))) ** 2)
        det = np.linalg.slogdet(K)[1]
        print(f"{N:4d}   {np.exp(det):5.2f}   {values[0]:19.6f}   {known:10.6f}")
        assert (K == L @ L.T).all() and abs(det) < 1e-9
        assert abs(values[0] - known) < 1e-9 and values[0] > 0.25

        samples = x[:, None].astype(float)
        np.testing.assert_array_equal(Min()(samples), K)
        report = check_mercer(Min(), samples)
        assert report.positive_semidefinite and report.witness is None
        features = Min().feature_map(samples)(samples)
        np.testing.assert_array_equal(features @ features.T, K)

    fractions = np.random.default_rng(0).uniform(0, 3, size=(30, 2))
    np.testing.assert_allclose(Min()(fractions), np.minimum(fractions[:, None], fractions).sum(axis=2))
    report = check_mercer(Min(), fractions)
    print(f"30 points of the plane, not whole: smallest eigenvalue of Σ min(x_j, z_j) {report.smallest_eigenvalue:.4f}")
    assert report.positive_semidefinite


if __name__ == "__main__":
    main()
