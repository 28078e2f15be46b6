"""Kernels between distributions are the functions of the Bhattacharyya coefficient that they say they are."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named
from tests.reference import structured as reference

from mercer import SVC, NotPositiveSemidefiniteWarning
from mercer.exceptions import InvalidInputError
from mercer.kernels import Hellinger, InformationDiffusion, Min, check_mercer
from mercer.testing import check_kernel

rng = np.random.default_rng(0)
X = rng.poisson(0.7, size=(12, 8)).astype(float)
X[3] = 0
Z = rng.exponential(size=(5, 8))


@pytest.mark.parametrize(
    ("kernel", "k"),
    [(Hellinger(), reference.bhattacharyya)]
    + [(InformationDiffusion(t), reference.information_diffusion(t)) for t in (0.01, 0.25, 3.0)],
    ids=named,
)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, np.ndarray.tolist], ids=named)
def test_the_definition(kernel, k, storage):
    """Samples are divided by their sums; one of zeros is no distribution."""
    np.testing.assert_allclose(kernel(storage(X), Z), reference.gram(k, X.tolist(), Z.tolist()), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(kernel(storage(X)), reference.gram(k, X.tolist(), X.tolist()), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("kernel", [Hellinger(), InformationDiffusion(0.1), InformationDiffusion(1.0)], ids=named)
def test_the_contract(kernel):
    """check_kernel passes, dense and CSR, with a sample of zeros."""
    check_kernel(kernel, X)


def test_scale_does_not_matter():
    """Counts and shares are the same distribution, also where their sum would overflow."""
    for kernel in (Hellinger(), InformationDiffusion(0.1)):
        np.testing.assert_allclose(kernel(X * 1e300), kernel(X), rtol=1e-12)
        np.testing.assert_allclose(kernel(X * 1e-300), kernel(X), rtol=1e-12)
        np.testing.assert_allclose(kernel(sp.csr_array(X * 1e300)), kernel(X), rtol=1e-12)


def test_hellinger_features():
    """√θ is the feature map of Hellinger."""
    psi = Hellinger().feature_map(X)
    np.testing.assert_allclose(psi(X) @ psi(Z).T, Hellinger()(X, Z), rtol=1e-14)
    assert psi.dimension == 8


def taylor(t, degree):
    """Coefficients of exp(-arccos²(s)/t) at s = 0, by the differential equation of its exponent."""
    from math import pi

    # u = arccos²(s) has (1 - s²) u'' - s u' = 2, so that its coefficients follow from each other
    u = [pi**2 / 4, -pi]
    for k in range(degree):
        two = 2.0 if k == 0 else 0.0
        u.append((two + k * k * u[k]) / ((k + 1) * (k + 2)))
    f = [np.exp(-u[0] / t)]
    for k in range(1, degree + 1):  # f' = -u' f / t
        f.append(-sum(j * u[j] * f[k - j] for j in range(1, k + 1)) / (k * t))
    return np.array(f)


def test_where_diffusion_is_positive_semidefinite():
    """Powers of cosines are kernels: for t ≤ 0.25 no Taylor coefficient is negative beyond rounding."""
    for t in (0.05, 0.1, 0.25):
        f = taylor(t, 400)
        assert f.min() > -1e-16 and abs(np.polyval(f[::-1], 0.7) - np.exp(-(np.arccos(0.7) ** 2) / t)) < 1e-12
        assert not InformationDiffusion(t).psd_is_assumed
        assert check_mercer(InformationDiffusion(t), rng.exponential(size=(200, 3))).positive_semidefinite
    assert taylor(1.0, 400).min() < -1e-8
    assert InformationDiffusion(1.0).psd_is_assumed


def test_a_fit_looks_first_where_it_is_not_certain():
    """A fit warns if eigenvalues are negative, and only then."""
    y = np.arange(60) % 2
    S = rng.exponential(size=(60, 3)) + y[:, None] * [2.0, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotPositiveSemidefiniteWarning)
        model = SVC(kernel=InformationDiffusion(0.2), C=10).fit(S, y)
    assert model.score(S, y) > 0.6 and model.certificate_.relative_gap < 1e-2


@pytest.mark.parametrize("kernel", [Hellinger(), InformationDiffusion()], ids=named)
def test_histograms_have_no_negative_entries(kernel):
    """Negative entries raise the same error as for Min."""
    with pytest.raises(InvalidInputError, match="compares histograms: it needs non-negative features"):
        kernel([[1.0, -0.5]])
    assert Min.nonnegative and kernel.nonnegative


@pytest.mark.parametrize("t", [0.0, -1.0, np.inf, "a"])
def test_times(t):
    """t must be a positive number."""
    with pytest.raises(InvalidInputError, match="t="):
        InformationDiffusion(t)
