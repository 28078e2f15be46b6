"""The kernel-based conditional independence test."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigvalsh, lapack
from sklearn.utils import check_random_state

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix
from mercer.tests.null_distribution import KernelTestResult, NullDistribution, result_of
from mercer.tests.sample_grams import bound_kernel, centred_matrix, check_draws, check_same_length, gram_of, samples_of
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
    epsilon: float = 1e-3,
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
    if not (isinstance(epsilon, int | float | np.number) and np.isfinite(epsilon) and epsilon > 0):
        raise InvalidInputError(f"epsilon={epsilon!r} is the regularisation of a regression: it must be positive.")
    kernels = kernel_x, kernel_y, kernel_z
    samples = [
        samples_of(name, value, kernel, 6)
        for name, value, kernel in zip(("X", "Y", "Z"), (X, Y, Z), kernels, strict=True)
    ]
    n = check_same_length(X=samples[0], Y=samples[1], Z=samples[2])
    bound = tuple(bound_kernel(kernel, value) for kernel, value in zip(kernels, samples, strict=True))
    threads = thread_count(n_jobs)
    K, L, M = (gram_of(kernel, value, threads, False).dense() for kernel, value in zip(bound, samples, strict=True))
    R = residual_map(centred_matrix(M), float(epsilon))
    with_z = R @ centred_matrix(K * M) @ R
    both = with_z * (R @ centred_matrix(L) @ R)
    statistic = float(both.sum()) / n
    if null == "gamma":
        mean, variance = float(np.trace(both)) / n, 2.0 * float(np.vdot(both, both)) / n**2
        distribution = NullDistribution.gamma(mean, variance)
    else:
        distribution = spectral_null(both / n, n_draws, check_random_state(random_state))
    method = f"Kernel conditional independence test ({null} null)"
    return result_of(statistic, distribution, method, "X and Y are independent given Z", (n,), bound)


def residual_map(M: Matrix, epsilon: float) -> Matrix:
    """R = ε (M + εI)⁻¹, which maps features to their residuals given Z."""
    A = M.copy()
    np.einsum("ii->i", A)[...] += epsilon
    L, failed = lapack.dpotrf(A.T, lower=1, overwrite_a=1)
    if not failed:
        inverse, failed = lapack.dpotri(L, lower=1, overwrite_c=1)
    if failed:
        raise InvalidInputError(
            "The kernel of Z is not positive semidefinite, or its values are too large for epsilon: increase epsilon, "
            "or choose another kernel_z."
        )
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    return np.asarray(epsilon * inverse)


def spectral_null(matrix: Matrix, count: int, random: Any) -> NullDistribution:
    """Values of Σ λ χ², with λ the eigenvalues of a matrix."""
    values = eigvalsh(0.5 * (matrix + matrix.T))
    values = values[values > LEAST * max(values[-1], 0.0)]
    step = max(1, DRAWN // max(1, len(values)))
    parts = [
        random.chisquare(1.0, size=(min(step, count - start), len(values))) @ values for start in range(0, count, step)
    ]
    return NullDistribution("spectral", np.concatenate(parts))
