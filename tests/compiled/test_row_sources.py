"""Kernel values within compiled code: blocks by formula, and the cross block that is computed on demand."""

import numpy as np
import pytest
from tests.naming import named

from mercer._compiled.kernel_maps import map_address
from mercer._compiled.tiles import fill_block, formula_of
from mercer.gram.operator import ClassBlocks, Data
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial
from mercer.kernels.features import VectorFeatures
from mercer.selection._chain_loops import map_sums
from mercer.svm._lazy_pair_loops import VALUES, ClassBlock, LazyPair, add_lazy, read_lazy

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplacian(0.2), Polynomial(3, 0.2, 1.0), Linear()], ids=named)
def test_blocks_by_formula(kernel, dtype):
    """All rows against some panels, for the Gaussian kernel and for any other."""
    a, b = VectorFeatures(X[:20], dtype), VectorFeatures(X[20:], dtype)
    width = b.panels.shape[2]
    out = np.empty((20, 70 - width), dtype)
    fill_block(formula_of(*kernel.formula(b)), a.X, a.norms, b.panels, b.norms, 1, len(b.panels), out)
    np.testing.assert_allclose(out, kernel(X[:20], X[20:])[:, width:], rtol=1e-4, atol=1e-5)


def test_sums_are_mapped_row_by_row():
    """Some rows of squared distances become Gaussian values; the others stay."""
    _, code, params = Gaussian(0.7).formula(VectorFeatures(X, np.float64))
    params = np.asarray(params)
    params[0] = 0.0  # these are distances already
    sums, out = RNG.uniform(0.0, 9.0, size=(6, 40)), np.full((6, 40), -1.0)
    map_sums(map_address(code, params.dtype), params, sums, 2, 5, out)
    np.testing.assert_allclose(out[2:5], np.exp(-0.7 * sums[2:5]), rtol=1e-9)
    assert np.all(out[:2] == -1.0) and np.all(out[5:] == -1.0)


def lazy_pair(kernel, n_first=50):
    """The classes of X as a row source, and their whole matrix."""
    n, data = len(X), Data(kernel, X, len(X))
    blocks = ClassBlocks(data, [np.arange(n_first), np.arange(n_first, n)], np.float32, 1)
    classes = [
        ClassBlock(part.X, part.norms, part.panels, within)
        for part, within in zip(blocks.features, blocks.within, strict=True)
    ]
    rows = [np.full(shape, np.nan, np.float32) for shape in ((n_first, n - n_first), (n - n_first, n_first))]
    formula = formula_of(*kernel.formula(data.features(np.float32)))
    pair = LazyPair(
        formula, *classes, *rows, np.full(n, -1), np.zeros(3, np.int64), np.empty((3, n), np.int64),
        np.empty((6, 3, 30), np.int64), np.empty(n),
    )  # fmt: skip
    return pair, kernel(X)


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Polynomial(2, 0.2, 1.0)], ids=named)
def test_values_on_demand(kernel):
    """Rows of new members, with and without stored cross rows; F moves by K times the change; values are counted."""
    pair, K = lazy_pair(kernel)
    block, F, values = np.empty((30, 30), np.float32), np.zeros(90), 0
    for turn in range(4):
        members = np.random.default_rng(turn).permutation(90)[:30]
        first = pair.first.X.shape[0]
        without = members[pair.slots[members] < 0]
        values += np.count_nonzero(without < first) * np.count_nonzero(without >= first)
        new = np.arange(0, 30, 2)
        block[:] = np.nan
        read_lazy(pair, members, new, block)
        np.testing.assert_allclose(block[new], K[np.ix_(members[new], members)], rtol=1e-4, atol=1e-5)
        assert np.all(np.isnan(block[1::2]))
        moved, change = members[5:15], np.random.default_rng(turn + 9).normal(size=10)
        missing = moved[pair.slots[moved] < 0]
        values += np.count_nonzero(missing < first) * (90 - first) + np.count_nonzero(missing >= first) * first
        before = F.copy()
        assert add_lazy(pair, moved, change, F)
        np.testing.assert_allclose(F - before, K[:, moved] @ change, rtol=1e-4, atol=1e-4)
        assert pair.counts[VALUES] == values
    assert not add_lazy(pair, np.arange(90), np.zeros(90), F)  # nearly all cross rows are stored
