"""The kernel that CONTRIBUTING.md asks a reader to write first: a few lines make a kernel for every machine."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.kernels.feature_sums import DOT, POLYNOMIAL, SumKernel
from mercer.kernels.radial import RadialKernel
from mercer.testing import check_kernel

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Toy(SumKernel):
    """k(x, z) = (1 + <x, z>)^2."""

    def sum_formula(self, b):
        return DOT, POLYNOMIAL, [0.0, 1.0, 1.0, 2.0]

    def diagonal(self, a):
        return (1.0 + a.norms.astype(np.float64)) ** 2


def test_a_term_a_map_and_a_diagonal_are_a_kernel():
    """A `SumKernel` with `sum_formula` and `diagonal` passes the conformance check and has its values."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    check_kernel(Toy(), X)
    np.testing.assert_allclose(Toy()(X), (1.0 + X @ X.T) ** 2, rtol=1e-13)
    y = X[:, 0] * X[:, 1] > 0
    own, known = (mercer.SVC(kernel=kernel).fit(X, y) for kernel in (Toy(), mercer.Polynomial(2, 1.0, 1.0)))
    np.testing.assert_allclose(own.decision_function(X), known.decision_function(X), atol=1e-6)


def test_the_page_names_what_must_be_written():
    """Without `diagonal` a `SumKernel` is abstract; a `RadialKernel` has it. CONTRIBUTING.md says both."""
    assert "diagonal" in SumKernel.__abstractmethods__ and "diagonal" not in RadialKernel.__abstractmethods__
    page = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert "`diagonal(a)` gives k(x, x) (a `RadialKernel` has it)" in page
    with pytest.raises(TypeError, match="abstract"):
        type("NoDiagonal", (SumKernel,), {"sum_formula": Toy.sum_formula})()
