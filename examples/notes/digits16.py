"""Digits of 16 × 16 pixels, from their pixels alone ([CS229] 5.4).

    python examples/notes/digits16.py

A sample is a vector of 256 grey values, and neither kernel is told which pixels are neighbours: (<x, z>)³ and exp(-γ|x
- z|²). Ten classes are 45 pairs of classes, each solved to a certified gap. The scans are scikit-learn's digits of 8 ×
8 pixels, enlarged. If the pixels change places, in all images in the same way, nothing changes.
"""

from __future__ import annotations

import numpy as np

from mercer import SVC, Gaussian, Polynomial, datasets


def main() -> None:
    """Print accuracies, support vectors and gaps for both kernels and the linear one."""
    digits = datasets.load("digits16")
    X, y, X_new, y_new = digits.X[::2], digits.y[::2], digits.X[1::2], digits.y[1::2]
    print(f"{len(X)} images of {X.shape[1]} pixels")
    shuffled = np.random.default_rng(0).permutation(X.shape[1])
    print(
        "kernel           right on new images   support vectors   largest relative gap   the same with pixels shuffled"
    )
    kernels = {
        "<x, z>": "linear",
        "(<x, z>)³": Polynomial(3, 1 / 64, 0.0),
        "exp(-γ|x - z|²)": Gaussian("scale"),
    }
    right = {}
    for name, kernel in kernels.items():
        model = SVC(C=10.0, kernel=kernel, tol=1e-5).fit(X, y)
        other = SVC(C=10.0, kernel=kernel, tol=1e-5).fit(X[:, shuffled], y)
        right[name] = model.score(X_new, y_new)
        same = np.mean(model.predict(X_new) == other.predict(X_new[:, shuffled]))
        gap = max(certificate.relative_gap for certificate in model.certificates_)
        print(f"{name:<15}   {right[name]:18.1%}   {model.n_support_.sum():15d}   {gap:20.1e}   {same:29.1%}")
        assert len(model.certificates_) == 45 and gap < 0.01
        assert same > 0.995
    assert min(right["(<x, z>)³"], right["exp(-γ|x - z|²)"]) > max(0.97, right["<x, z>"])


if __name__ == "__main__":
    main()
