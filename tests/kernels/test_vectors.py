"""Every kernel on vectors equals its formula, in every storage and precision."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named
from tests.reference import formulas as reference

from mercer.exceptions import InvalidInputError
from mercer.kernels import (
    AdditiveChi2,
    Chi2,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Min,
    Polynomial,
    PowerSeries,
    Sigmoid,
    feature_sums,
)
from mercer.kernels.base import gamma_of
from mercer.testing import check_kernel

WIDTHS = (0.5, 2.0, 0.1)
CASES = [
    (Linear(), reference.linear()),
    (Polynomial(0, 0.5, 1.0), reference.polynomial(0, 0.5, 1.0)),
    (Polynomial(1, 0.5, 1.0), reference.polynomial(1, 0.5, 1.0)),
    (Polynomial(2, 0.5, 1.0), reference.polynomial(2, 0.5, 1.0)),
    (Polynomial(3, 0.2, 0.0), reference.polynomial(3, 0.2, 0.0)),
    (Polynomial(7, 0.1, 0.5), reference.polynomial(7, 0.1, 0.5)),
    (Polynomial(3, WIDTHS, 1.0), reference.weighted_polynomial(3, WIDTHS, 1.0)),
    (PowerSeries(), reference.power_series((1, 1, 1, 1))),
    (PowerSeries((0.5,)), reference.power_series((0.5,))),
    (PowerSeries((0.0, 1.0, -0.2)), reference.power_series((0.0, 1.0, -0.2))),
    (Sigmoid(0.3, -0.5), reference.sigmoid(0.3, -0.5)),
    (Cosine(), reference.cosine()),
    (Min(), reference.minimum()),
    (Gaussian(0.3), reference.gaussian(0.3)),
    (Gaussian(WIDTHS), reference.weighted_gaussian(WIDTHS)),
    (Laplacian(0.3), reference.laplacian(0.3)),
    (Laplacian(WIDTHS), reference.weighted_laplacian(WIDTHS)),
    (Matern(0.5, 1.5), reference.matern(0.5, 1.5)),
    (Matern(1.5, 0.7), reference.matern(1.5, 0.7)),
    (Matern(2.5, 2.0), reference.matern(2.5, 2.0)),
    (Matern(2.5, WIDTHS), reference.matern(2.5, WIDTHS)),
    (Chi2(0.4), reference.chi2(0.4)),
    (AdditiveChi2(), reference.additive_chi2()),
]
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}


def samples(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Non-negative, a third of it zero, a row of zeros, a repeated row; exact in float32."""
    random = np.random.default_rng(seed)
    X = random.exponential(1.0 / np.sqrt(d), size=(n, d)) * (random.random((n, d)) < 0.67)
    if n > 3:
        X[1] = 0.0
        X[3] = X[0]
    return X.astype(np.float32).astype(np.float64)


def close(values: np.ndarray, expected: list[list[float]], tolerance: float) -> None:
    expected = np.array(expected)
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize(
    ("kernel", "formula"),
    CASES,
    ids=lambda value: "" if callable(value) and not hasattr(value, "block") else named(value),
)
class TestFormula:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("storage", ["dense", "csr", "dense-csr", "csr-dense"])
    def test_blocks_equal_the_double_loop(self, kernel, formula, dtype, storage):
        """K[i, j] is the formula of samples i and j, whatever the storage of either side."""
        X, Z = samples(17, 3), samples(33, 3, seed=1)
        left, right = (storage.split("-") * 2)[:2]
        a, b = (kernel.prepare(sp.csr_array(S) if kind == "csr" else S, dtype) for S, kind in ((X, left), (Z, right)))
        values = kernel.block(a, b)
        assert values.dtype == dtype
        # the root of a distance that comes from inner products has half of the digits
        rooted = right == "csr" and isinstance(kernel, Matern)
        close(values, reference.gram(formula, X.tolist(), Z.tolist()), 1e-6 if rooted else TOLERANCE[dtype])
        assert kernel.diagonal(a).dtype == np.float64
        close(kernel.diagonal(a), [formula(x, x) for x in X.tolist()], TOLERANCE[dtype])

    def test_it_conforms(self, kernel, formula):
        """check_kernel passes."""
        check_kernel(kernel, samples(12, 3))


SIZES = [Linear(), Gaussian(0.3), Laplacian(0.2), Min(), Chi2(0.5), Matern(1.5, 2.0)]
FORMULAS = dict(CASES) | {
    Laplacian(0.2): reference.laplacian(0.2),
    Chi2(0.5): reference.chi2(0.5),
    Matern(1.5, 2.0): reference.matern(1.5, 2.0),
}


@pytest.mark.parametrize("kernel", SIZES, ids=named)
@pytest.mark.parametrize("d", [1, 3, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_size_of_block_is_filled_exactly(kernel, d, dtype):
    """Sizes around the register tiles give the formula everywhere, and nothing is written beside the block."""
    X = samples(33, d)
    K = np.array(reference.gram(FORMULAS[kernel], X.tolist(), X.tolist()))
    for S, tolerance in ((X, TOLERANCE[dtype]), (sp.csr_array(X), 1e-6 if dtype == np.float64 else 2e-5)):
        features = kernel.prepare(S, dtype)
        for m in (1, 5, 16, 17, 33):
            for n in (1, 5, 16, 17, 33):
                around = np.full((m + 2, n), 7, dtype)
                a, b = features.take(np.arange(33 - m, 33)), features.take(np.arange(n))
                assert np.shares_memory(kernel.block(a, b, around[1:-1]), around)
                close(around[1:-1], K[33 - m :, :n].tolist(), tolerance)
                assert np.all(around[[0, -1]] == 7)


def test_a_block_of_many_tiles_equals_matrix_algebra():
    """More rows and columns than one tile holds: the formula in matrix form."""
    random = np.random.default_rng(0)
    X, Z = random.normal(size=(301, 40)), random.normal(size=(1029, 40))
    np.testing.assert_allclose(Linear()(X, Z), X @ Z.T, atol=1e-12)
    squares = (X**2).sum(1)[:, None] + (Z**2).sum(1) - 2 * X @ Z.T
    np.testing.assert_allclose(Gaussian(0.02)(X, Z), np.exp(-0.02 * squares), atol=1e-13)
    np.testing.assert_allclose(Gaussian(0.02)(sp.csr_array(X), sp.csr_array(Z)), np.exp(-0.02 * squares), atol=1e-13)


def test_the_repeated_codes_are_those_of_the_compiled_code():
    """kernels.feature_sums repeats the numbers of _compiled.tiles and _compiled.kernel_maps."""
    from mercer._compiled import kernel_maps as maps
    from mercer._compiled import tiles

    terms = ("DOT", "SQUARE", "L1", "MIN", "CHI2")
    functions = [name for name in vars(maps) if name in vars(feature_sums) and name.isupper()]
    assert len(functions) == 9
    for module, names in ((tiles, terms), (maps, functions)):
        for name in names:
            assert getattr(feature_sums, name) == getattr(module, name), name


def test_duplicates_in_csr_count_as_their_sum():
    """A position stored twice means the sum of both, also for minima and absolute values."""
    twice = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    dense = np.array([[3.0, 0.0], [0.0, 4.0]])
    for kernel in (Linear(), Min(), Laplacian(0.1), Gaussian(0.01)):
        np.testing.assert_allclose(kernel(twice), kernel(dense), rtol=1e-14)
    assert twice.nnz == 3


def test_parts_use_the_formula_of_the_whole():
    """K[i, j] has the same bits in every block, although large norms choose another formula."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 30)).astype(np.float32)
    X[0] *= 100
    kernel = Gaussian(0.05)
    features = kernel.prepare(X, np.float32)
    whole = kernel.block(features, features)
    part = np.arange(5, 25)
    np.testing.assert_array_equal(kernel.block(features.take(part), features.take(part)), whole[np.ix_(part, part)])


class TestGammaRules:
    def test_scale_and_auto_are_those_of_scikit_learn(self):
        """scale is 1 / (d var(X)) over all entries, zeros of CSR included; auto is 1 / d."""
        X = samples(20, 4)
        assert Gaussian("scale").bind(X) == Gaussian(1 / (4 * X.var()))
        assert Gaussian("scale").bind(sp.csr_array(X)).gamma == pytest.approx(1 / (4 * X.var()), rel=1e-14)
        assert Laplacian("auto").bind(X) == Laplacian(0.25)
        assert Polynomial(2, "auto", 1.0).bind(X.tolist()) == Polynomial(2, 0.25, 1.0)
        assert Sigmoid("scale", 0.5).bind(X) == Sigmoid(1 / (4 * X.var()), 0.5)

    def test_scale_of_constant_samples_is_one(self):
        """If the variance is 0, gamma="scale" is 1, as in scikit-learn."""
        assert gamma_of(np.ones((5, 2)), "scale") == 1.0
        assert gamma_of(sp.csr_array(np.ones((5, 2))), "scale") == 1.0

    @pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
    def test_scale_of_a_variance_beyond_float64(self, kind):
        """An infinite variance would make gamma 0 and every kernel value 1: an error instead."""
        with pytest.raises(InvalidInputError) as found:
            gamma_of(kind(1e160 * samples(20, 4)), "scale")
        assert str(found.value) == (
            "The dual coefficients or intercepts are not finite. The input data may contain large values and need to "
            "be preprocessed: gamma='scale' is 1 / (d var(X)), and the variance of values up to "
            f"{1e160 * abs(samples(20, 4)).max():.1e} is beyond float64. Scale the features, for example with "
            "StandardScaler."
        )

    def test_scale_of_almost_constant_samples_is_finite(self):
        """A variance below 1e-308 has no finite inverse, but the kernel of equal samples is still 1."""
        X = np.array([[0.0], [1e-160], [0.0]])
        kernel = Gaussian("scale").bind(X)
        assert np.isfinite(kernel.gamma)
        assert kernel(X)[0, 2] == 1.0

    def test_an_unbound_kernel_says_so(self):
        """Using gamma="scale" before bind raises an error."""
        kernel = Gaussian()
        features = kernel.prepare(samples(5, 2))
        with pytest.raises(InvalidInputError) as error:
            kernel.block(features, features)
        assert str(error.value) == (
            "Gaussian(gamma='scale') is not bound to samples: gamma='scale' depends on them. Use kernel.bind(samples) "
            "first."
        )


def _messages():
    width = "must be a finite number, at least 0, or one such number per feature."
    yield (
        lambda: Gaussian("wide"),
        "gamma='wide' is not known: give a number, one number per feature, 'scale' or 'auto'.",
    )
    yield lambda: Gaussian(-1.0), f"gamma=-1.0 {width}"
    yield lambda: Gaussian(np.nan), f"gamma=nan {width}"
    yield lambda: Gaussian(None), f"gamma=None {width}"
    yield lambda: Gaussian(()), f"gamma=() {width}"
    yield lambda: Laplacian((1.0, -2.0)), f"gamma=(1.0, -2.0) {width}"
    yield (
        lambda: Gaussian.from_sigma(0.0),
        "sigma=0.0 must be a finite number, positive, or one such number per feature.",
    )
    yield (
        lambda: Matern(1.5, "scale"),
        "length_scale='scale' must be a finite number, positive, or one such number per feature.",
    )
    yield lambda: Matern(2.0), "nu=2.0 is not available: Matern has nu=0.5, 1.5 and 2.5."
    yield lambda: Chi2((1.0, 2.0)), "gamma=(1.0, 2.0) must be one number for Chi2."
    yield lambda: Polynomial(2.5), "degree=2.5 must be a whole number, at least 0."
    yield lambda: Polynomial(-1), "degree=-1 must be a whole number, at least 0."
    yield lambda: Polynomial(2, 1.0, "one"), "coef0='one' must be a finite number."
    yield lambda: PowerSeries(()), "PowerSeries needs at least one coefficient."
    yield (
        lambda: Gaussian((1.0, 2.0))(np.zeros((4, 3))),
        "Gaussian(gamma=(1.0, 2.0)) has 2 widths, but the samples have 3 features. Give one width per feature, or a "
        "single number.",
    )
    yield (
        lambda: Min()(np.array([[1.0, -0.5]])),
        "Min compares histograms: it needs non-negative features, but the smallest value is -0.5. Shift or scale the "
        "features to be at least 0.",
    )
    yield (
        lambda: Linear()(np.zeros((2, 3)), np.zeros((2, 4))),
        "Linear() compares vectors of equal length, but some samples have 3 features and others 4.",
    )
    yield (
        lambda: Linear()([1.0, 2.0]),
        "Vectors must be given as a matrix with a row per sample, but these samples have the shape (2,). Use "
        "X.reshape(-1, 1) if each sample is one number, X.reshape(1, -1) if this is one sample.",
    )
    yield (
        lambda: Linear()([["a", "b"]]),
        "Vectors must consist of real numbers, but these samples are of type <U1. Encode them as "
        "numbers, choose columns with On(columns, kernel), or use a kernel on such objects.",
    )
    yield (
        lambda: Linear().set_params(gamma=1.0),
        "Invalid parameter 'gamma' for kernel Linear(). Valid parameters are: [].",
    )
    yield (
        lambda: Gaussian(1.0).set_params(gamma__inner=1.0),
        "Invalid parameter 'gamma__inner' for kernel Gaussian(gamma=1.0). Valid parameters are: ['gamma'].",
    )


@pytest.mark.parametrize(("call", "message"), list(_messages()), ids=named)
def test_what_cannot_be_is_said_in_full(call, message):
    """Errors say what was found, what is allowed and what to do."""
    with pytest.raises(InvalidInputError) as error:
        call()
    assert str(error.value) == message


def test_parameters_are_plain_numbers():
    """numpy's numbers and arrays become Python's, so that kernels print, compare and hash alike."""
    assert repr(Polynomial(np.int64(2), np.float64(0.5), 1)) == "Polynomial(degree=2, gamma=0.5, coef0=1.0)"
    assert repr(Gaussian(np.array([1.0, 2.0]))) == "Gaussian(gamma=(1.0, 2.0))"
    assert Gaussian([1, 2]) == Gaussian((1.0, 2.0))
    assert {Gaussian(np.float32(0.5)): 1}[Gaussian(0.5)] == 1
    assert repr(PowerSeries([1, 2])) == "PowerSeries(coefficients=(1.0, 2.0))"


def test_from_sigma_is_the_notes_parameter():
    """exp(-|x - z|² / (2σ²))."""
    assert Gaussian.from_sigma(2.0) == Gaussian(0.125)
    assert Gaussian.from_sigma((1.0, 2.0)) == Gaussian((0.5, 0.125))


def test_which_are_positive_semidefinite():
    """The property positive_semidefinite follows from the parameters."""
    yes = [Linear(), Polynomial(2, 1.0, 0.0), Polynomial(0, 1.0, -1.0), PowerSeries(), Cosine(), Min(), Gaussian()]
    no = [Polynomial(2, 1.0, -1.0), PowerSeries((1.0, -1.0)), Sigmoid()]
    assert all(kernel.positive_semidefinite for kernel in yes)
    assert not any(kernel.positive_semidefinite for kernel in no)


def test_frames_and_lists_are_matrices_too():
    """Data frames and nested lists are read as matrices."""
    import pandas as pd
    import polars as pl

    X = samples(6, 2)
    for kernel in (Gaussian(), Min(), Gaussian((1.0, 2.0))):
        K = kernel(X)
        for S in (X.tolist(), pd.DataFrame(X), pl.DataFrame(X), sp.coo_array(X), sp.csc_matrix(X), X.astype(object)):
            np.testing.assert_allclose(kernel(S), K, rtol=1e-12)


def test_kernels_on_objects_are_imported_when_asked_for():
    """A machine on vectors loads none of them; every name is there, also for a text or a star."""
    code = """
import sys
from mercer import SVC
import mercer.kernels as kernels

objects = {f"mercer.kernels.{name}" for name in ("strings", "sets", "graphs", "series", "sequences")}
assert not objects & sys.modules.keys()
names = {}
exec("from mercer.kernels import *", names)
assert set(kernels.__all__) <= names.keys() & set(dir(kernels))
assert kernels.parse_kernel("jaccard") == kernels.Jaccard()
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


def test_importing_kernels_does_not_import_numba():
    """Building a kernel does not import numba."""
    code = "import sys, mercer.kernels; sys.exit('numba' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
