"""The kernel-based conditional independence test."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigvalsh
from sklearn.utils import check_random_state

from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix
from mercer.tests.null_distribution import KernelTestResult, NullDistribution, result_of
from mercer.tests.regression_on_z import (
    Regression,
    bases_of_vectors,
    basis_of_matrix,
    regression_of_columns,
    regression_of_gram,
    with_ridge,
)
from mercer.tests.sample_grams import bound_kernel, centred_matrix, check_draws, check_pairs, gram_of, samples_of
from mercer.validation import thread_count

# eigenvalues below this share of the largest are left out of the null distribution
LEAST = 1e-6
# χ² variables drawn at a time
DRAWN = 1 << 22


def conditional_independence_test(
    X: Any,
    Y: Any,
    Z: Any,
    kernel_x: Any = None,
    kernel_y: Any = None,
    kernel_z: Any = None,
    *,
    epsilon: float | None = None,
    null: str = "gamma",
    n_draws: int = 5000,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> KernelTestResult:
    """Test whether X and Y are independent given Z, by T = tr(K̈ L̈) / n of residual Gram matrices.

    The features of (X, Z) and of Y are regressed on Z by kernel ridge regression; R = ε (M + εI)⁻¹, with M the centred
    Gram matrix of Z, maps them to residuals, with Gram matrices K̈ = R K R and L̈ = R L R. Under the hypothesis
    these are uncorrelated, and T is asymptotically Σ λ χ² with λ the eigenvalues of (K̈ ∘ L̈) / n (Zhang, Peters,
    Janzing & Schölkopf, *Kernel-based conditional independence test*, UAI 2011).

    Parameters
    ----------
    X, Y, Z : {array-like, sparse matrix} of shape (n_samples, n_features), or list of object
        Samples that were observed together, each of any type that its kernel supports. A vector of numbers is one
        feature.
    kernel_x, kernel_y, kernel_z : kernel, str or callable, default=None
        The kernels. None is the Gaussian kernel whose width is the median distance; "precomputed" if the samples are a
        Gram matrix. The kernel of (X, Z) is the product of those of X and Z.
    epsilon : float, default=1e-3
        ε, the regularisation of the regression on Z.
    null : {"gamma", "spectral"}, default="gamma"
        Whether Σ λ χ² is approximated by a gamma distribution of the same mean and variance, or drawn with all its
        eigenvalues.
    n_draws : int, default=5000
        Number of values drawn for the spectral null distribution.
    random_state : int, RandomState instance or None, default=None
        Seed of these values.
    n_jobs : int, default=None
        Number of threads; None uses all cores.

    Returns
    -------
    result : KernelTestResult
        Statistic, p-value and null distribution.

    Notes
    -----
    The level is kept as far as the regression removes the influence of Z: with few samples or a Z of many features it
    does so in part only, and the test then rejects too often.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.tests import conditional_independence_test
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=200)
    >>> x, y = np.sin(z) + 0.3 * rng.normal(size=200), z + 0.3 * rng.normal(size=200)
    >>> conditional_independence_test(x, y, z).p_value > 0.05
    True
    >>> conditional_independence_test(x, y + x, z).p_value < 0.01
    True
    """
    n_draws = check_draws(null, ("gamma", "spectral"), n_draws)
    if epsilon is not None and not (isinstance(epsilon, int | float | np.number) and 0 < epsilon < np.inf):
        raise InvalidInputError(f"epsilon={epsilon!r} is the regularisation of a regression: it must be positive.")
    kernels = kernel_x, kernel_y, kernel_z
    samples = [
        samples_of(name, value, kernel, 6)
        for name, value, kernel in zip(("X", "Y", "Z"), (X, Y, Z), kernels, strict=True)
    ]
    n = check_pairs(X=samples[0], Y=samples[1], Z=samples[2])
    threads = thread_count(n_jobs)
    z = _Given(kernel_z, samples[2], epsilon, threads)
    x, y = (z.residuals_of(kernel, value) for kernel, value in zip(kernels[:2], samples[:2], strict=True))
    both = x.gram * y.gram * z.gram / n
    statistic = float(both.sum())
    both *= _inflation(x.regression, y.regression, z.gram)
    if null == "gamma":
        mean, variance = float(np.trace(both)), 2.0 * float(np.vdot(both, both))
        distribution = NullDistribution.gamma(mean, variance)
    else:
        distribution = spectral_null(both, n_draws, check_random_state(random_state))
    method = f"Kernel conditional independence test ({null} null)"
    bound = x.kernel, y.kernel, z.kernel
    return result_of(statistic, distribution, method, "X and Y are independent given Z", (n,), bound)


class _Residuals(NamedTuple):
    """Residuals of features given Z: their Gram matrix, the regression of the features, and their kernel."""

    gram: Matrix
    regression: Regression
    kernel: Kernel


class _Given:
    """Z: its Gram matrix, and regressions on it."""

    def __init__(self, kernel: Any, samples: Any, epsilon: float | None, n_threads: int) -> None:
        self.samples, self.epsilon, self.n_threads = samples, epsilon, n_threads
        self.kernel = bound_kernel(kernel, samples)
        self.gram = gram_of(self.kernel, samples, n_threads, False).dense()
        chosen = kernel is None and epsilon is None
        self.bases = bases_of_vectors(samples, n_threads) if chosen else [basis_of_matrix(self.gram)]

    def residuals_of(self, kernel: Any, samples: Any) -> _Residuals:
        """Subtract the regression of vectors on Z, if no kernel was given, then that of their features."""
        if kernel is None and self.epsilon is None and not sp.issparse(samples):
            spread = samples.std(axis=0)
            columns = (samples - samples.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
            regression = regression_of_columns(self.bases, columns, self.samples, self.n_threads)
            samples = regression.residuals(columns)
        bound = bound_kernel(kernel, samples)
        K = centred_matrix(gram_of(bound, samples, self.n_threads, False).dense())
        if self.epsilon is None:
            regression = regression_of_gram(self.bases, K)
        else:
            regression = with_ridge(self.bases[0], float(self.epsilon))
        return _Residuals(regression.residual_gram(K), regression, bound)


def _inflation(x: Regression, y: Regression, M: Matrix) -> float:
    """E[T] over the mean of Σ λ χ² for noise of constant variance, whose residuals have the covariances R².

    The null distribution takes residuals of different samples to be uncorrelated. After a regression with p degrees of
    freedom on n samples they are not: without M the ratio is about n / (n − p).
    """
    products = x.covariance() * y.covariance() * M
    diagonal = float(np.trace(products))
    return max(1.0, float(products.sum()) / diagonal) if diagonal > 0 else 1.0


def spectral_null(matrix: Matrix, count: int, random: Any) -> NullDistribution:
    """Values of Σ λ χ², with λ the eigenvalues of a matrix."""
    values = eigvalsh(0.5 * (matrix + matrix.T))
    values = values[values > LEAST * max(values[-1], 0.0)]
    step = max(1, DRAWN // max(1, len(values)))
    parts = [
        random.chisquare(1.0, size=(min(step, count - start), len(values))) @ values for start in range(0, count, step)
    ]
    return NullDistribution("spectral", np.concatenate(parts))
