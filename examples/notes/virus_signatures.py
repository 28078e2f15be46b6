"""Virus signatures in files, with strings as samples ([SSBD] 16.2.1).

    python examples/notes/virus_signatures.py

A file is infected if it contains a certain substring, which nobody knows. ψ(x) has a coordinate for each string of at
most d letters, 1 if it is a substring of x: far too many to be written down. The kernel is the number of common
substrings, and takes O(d²) steps or fewer. Hard-SVM with this kernel is compared with the counts of single letters and
of pairs.

The weight of a string u in w = Σ β ψ(x) is the sum of β over the files that contain u: so the signature can be read
off.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from mercer import SVC, CommonSubstrings, Spectrum, datasets
from mercer.theory import bounds

LENGTH, LETTERS = 30, 16


def substrings(x: str) -> set[str]:
    """All but the empty one."""
    return {x[p:q] for p in range(len(x)) for q in range(p + 1, len(x) + 1)}


def weights(model: SVC) -> Counter[str]:
    """The coordinates of w that are not 0."""
    found: Counter[str] = Counter()
    for x, beta in zip(model.support_vectors_, model.dual_coef_[0], strict=True):
        for u in substrings(x):
            found[u] += beta
    return found


def main() -> None:
    """Print the accuracy on new files, and the heaviest strings."""
    new = datasets.make_signatures(1000, LENGTH, seed=1)
    kernels = {"letters": Spectrum(1), "pairs of letters": Spectrum(2), "common substrings": CommonSubstrings()}
    features = sum(LETTERS**k for k in range(LENGTH + 1))
    print(f"strings of at most {LENGTH} letters: ψ has 10^{np.log10(float(features)):.0f} coordinates")
    print("files   " + "   ".join(f"{name:>17}" for name in kernels) + "   (right on new files)")
    for n in (50, 100, 200, 400):
        data = datasets.make_signatures(n, LENGTH)
        right = {}
        for name, kernel in kernels.items():
            C = np.inf if name == "common substrings" else 1.0  # letters alone are not separable
            model = SVC(kernel=kernel, C=C).fit(data.X, data.y)
            right[name] = model.score(new.X, new.y)
        print(f"{n:5d}   " + "   ".join(f"{value:17.1%}" for value in right.values()))
    assert right["letters"] < 0.85 and right["common substrings"] > max(0.95, right["pairs of letters"])

    # the last model: all common substrings of 400 files
    K = CommonSubstrings()(data.X)
    assert K[0, 1] == len(substrings(data.X[0]) & substrings(data.X[1]))
    rho = float(np.sqrt(K.diagonal().max()))
    print(
        f"\nmargin {model.margin_[0]:.3f}, that of e_v is 1/2; longest ψ(x) {rho:.1f}, at most √(d(d + 1)/2) = ", end=""
    )
    print(f"{np.sqrt(LENGTH * (LENGTH + 1) / 2):.1f}")
    assert model.margin_[0] >= 0.5 * (1 - 1e-3)
    assert rho <= np.sqrt(LENGTH * (LENGTH + 1) / 2)
    # through the origin, with the constant feature: margin 1/√5, so that the bound is polynomial in d
    needed = next(m for m in (10**k for k in range(12)) if bounds.hard_margin(5**-0.5, np.sqrt(rho**2 + 1), m) < 0.1)
    print(f"Theorem 15.4 promises an error below 10% from about {needed:,} files on, whatever the alphabet.")
    heaviest = weights(model).most_common(5)
    print("strings of the largest weights: " + ", ".join(f"{u} {value:.3f}" for u, value in heaviest))
    assert all(u in data.signature for u, _ in heaviest[:3])
    f = sum(value for u, value in weights(model).items() if u in substrings(new.X[0])) + model.intercept_[0]
    assert abs(f - model.decision_function(new.X[:1])[0]) < 1e-6


if __name__ == "__main__":
    main()
