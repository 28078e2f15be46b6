"""A line, a circle and an ellipse: not separable, but among their squares ([SSBD] 16.1, 16.2.1, [L8] 1).

    python examples/notes/curves.py

    -10, …, 10, positive where |x| > 2           ψ(x) = (x, x²)
    the plane, positive outside a circle         ψ(x) = (1, x₁², x₂²), w = (-1, 1, 1)
    the plane, positive inside an ellipse        ψ(x) = (1, x₁, x₂, x₁², x₁x₂, x₂²)

For each set: a proof that no hyperplane separates the samples themselves, and the largest margin among the features.
The kernel (1 + <x, z>)² does the same without ψ, and does not have to be told which curve it is.
"""

from __future__ import annotations

import numpy as np

from mercer import SVC, Polynomial, datasets, separability


def main() -> None:
    """Print the margins, and how often a kernel machine is right on new samples."""
    kernel = Polynomial.inhomogeneous(2)
    print("separable by  x       ψ(x)   margin of the w given   largest margin   right on new samples, (1 + <x, z>)²")
    for name, make in (
        ("line", datasets.make_line),
        ("circle", datasets.make_circle),
        ("ellipse", datasets.make_ellipse),
    ):
        data = make()
        plain, curved = separability(data.X, data.y), separability(data.psi, data.y)
        # the proof: weights that combine the samples of each class to the same point
        weights = plain.pairs[0].biased.weights
        assert not plain.separable and np.abs(weights @ data.X).max() < 1e-9 and abs(weights.sum()) < 1e-9
        assert curved.separable

        given = float((data.y * (data.psi @ data.w + data.get("b", 0.0))).min() / np.linalg.norm(data.w))
        assert 0 < given <= curved.margin * (1 + 1e-6)
        model = SVC(C=np.inf, kernel=kernel).fit(data.X, data.y)
        assert model.score(data.X, data.y) == 1.0
        new = data if name == "line" else make(2000, seed=1)
        right = model.score(new.X, new.y)
        shown = "(no others)" if name == "line" else f"{right:.1%}"
        print(f"{name:<12}  {plain.separable!s:<5}   {curved.separable!s:<4}   ", end="")
        print(f"{given:21.4f}   {curved.margin:14.4f}   {shown:>36}")
        assert right > 0.97

    circle = datasets.make_circle()
    found = separability(circle.psi, circle.y).pairs[0].homogeneous.normal
    print(f"\nThe circle's w of length 1: found {np.round(found, 2)}, given {np.round(circle.w / np.sqrt(3), 2)}.")
    assert found @ circle.w / np.sqrt(3) > 0.98


if __name__ == "__main__":
    main()
