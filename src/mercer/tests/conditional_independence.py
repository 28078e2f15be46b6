"""The kernel-based conditional independence test."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigvalsh
from sklearn.utils import check_random_state

from mercer._compiled.blas import one_blas_thread
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
from mercer.tests.sample_grams import bound_kernel, centred_matrix, check_draws, check_same_length, gram_of, samples_of
from mercer.validation import thread_count

# eigenvalues below this share of the largest are left out of the null distribution
LEAST = 1e-3
# χ² variables drawn at a time
DRAWN = 1 << 22


@one_blas_thread()
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
    """Test whether X and Y are independent given Z, by T = 1'(K̈ ∘ L̈ ∘ M)1 / n of residual Gram matrices K̈, L̈.

    X ⊥ Y | Z holds if and only if it holds for X − m(Z) and Y − g(Z): vectors are first replaced by their residuals of
    kernel ridge regressions on Z. Then the features of both are regressed on Z; K̈ = RKR and L̈ are the Gram matrices of
    the residuals, and M is that of Z. Under the hypothesis T is about Σ λ χ² with λ the eigenvalues of
    W = K̈ ∘ L̈ ∘ M / n (Zhang, Peters, Janzing & Schölkopf, *Kernel-based conditional independence test*, UAI 2011;
    with this M, Pogodin et al., *Practical kernel tests of conditional independence*, 2024). The diagonal of W
    contributes its sum and no variance, and the mean is corrected for the degrees of freedom of the regressions.

    The regressions choose λ and the kernel of Z by generalised cross-validation, among Gaussian kernels of several
    widths, sums of one kernel per feature, and kernels whose metric is learnt; then λ is lowered to 0.3 of its value,
    for bias that X and Y share would be taken for dependence.

    Parameters
    ----------
    X, Y, Z : {array-like, sparse matrix} of shape (n_samples, n_features), or list of object
        Samples that were observed together, each of any type that its kernel supports. A vector of numbers is one
        feature.
    kernel_x, kernel_y, kernel_z : kernel, str or callable, default=None
        The kernels. None is the Gaussian kernel whose width is the median distance (for X and Y, of residuals);
        "precomputed" if the samples are a Gram matrix. With a given kernel_z the regressions use this kernel only; with
        a given kernel_x or kernel_y only features are regressed.
    epsilon : float, default=None
        The ridge λ of all regressions of features on Z, with the kernel of M; vectors are then not replaced by
        residuals. None chooses it.
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
    Measured level at a nominal 5 %, with noise of half the size of the signal and functions of Z (linear, sin, tanh; of
    a sum of features, and sums over features) that X and Y share: 3.6 to 6.4 % for n = 60 and 3.0 to 5.2 % for n = 200
    in 500 runs with 1, 2 and 4 features, 4.5 to 8.0 % for n = 400 in 200 runs, for both nulls. No test keeps its
    level for every dependence on Z (Shah & Peters, Annals of Statistics 48, 2020): where n samples do not suffice to
    learn the functions of Z, it rejects too often. With a given kernel or ``epsilon`` the level is that of its
    regression.

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
    n = check_same_length(X=samples[0], Y=samples[1], Z=samples[2])
    threads = thread_count(n_jobs)
    z = _Given(kernel_z, samples[2], epsilon, threads)
    x, y = (z.residuals_of(kernel, value) for kernel, value in zip(kernels[:2], samples[:2], strict=True))
    both = x.gram * y.gram * z.gram / n
    statistic = float(both.sum())
    both *= _inflation(x, y, z.gram)
    if null == "gamma":
        own = np.diagonal(both)
        mean, variance = float(own.sum()), 2.0 * float(np.vdot(both, both) - own @ own)
        distribution = NullDistribution.gamma(mean, variance)
    else:
        distribution = spectral_null(both, n_draws, check_random_state(random_state))
    method = f"Kernel conditional independence test ({null} null)"
    bound = x.kernel, y.kernel, z.kernel
    return result_of(statistic, distribution, method, "X and Y are independent given Z", (n,), bound)


class _Residuals(NamedTuple):
    """Residuals of features given Z: Gram matrix, kernel, the regression of the features, and that of vectors."""

    gram: Matrix
    kernel: Kernel
    regression: Regression
    first: Regression | None


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
        first = None
        if kernel is None and self.epsilon is None and not sp.issparse(samples):
            spread = samples.std(axis=0)
            columns = (samples - samples.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
            first = regression_of_columns(self.bases, columns, self.samples, self.n_threads)
            samples = first.residuals(columns)
        bound = bound_kernel(kernel, samples)
        K = centred_matrix(gram_of(bound, samples, self.n_threads, False).dense())
        if self.epsilon is None:
            regression = regression_of_gram(self.bases, K)
        else:
            regression = with_ridge(self.bases[0], float(self.epsilon))
        return _Residuals(regression.residual_gram(K), bound, regression, first)


def _inflation(x: _Residuals, y: _Residuals, M: Matrix) -> float:
    """E[T] over Σ λ for noise of constant variance, whose residuals have the covariances R².

    The null distribution takes residuals of different samples to be uncorrelated. After a regression with p degrees of
    freedom on n samples they are not: without M the ratio is about n / (n − p). Residuals of vectors were regressed
    before their features; Gaussian features of correlated residuals are less correlated, hence the root.
    """
    ratio = _ratio(x.regression.covariance(), y.regression.covariance(), M)
    if x.first is not None and y.first is not None:
        ratio *= np.sqrt(_ratio(x.first.covariance(), y.first.covariance(), M))
    return float(ratio)


def _ratio(P: Matrix, Q: Matrix, M: Matrix) -> float:
    products = P * Q * M
    diagonal = float(np.trace(products))
    return max(1.0, float(products.sum()) / diagonal) if diagonal > 0 else 1.0


def spectral_null(matrix: Matrix, count: int, random: Any) -> NullDistribution:
    """Values of tr W + Σ λ (χ² − 1), with λ the eigenvalues of W without its diagonal, which does not vary."""
    W = 0.5 * (matrix + matrix.T)
    total = float(np.trace(W))
    np.einsum("ii->i", W)[...] = 0.0
    values = eigvalsh(W)
    values = values[np.abs(values) > LEAST * np.abs(values).max(initial=0.0)]
    step = max(1, DRAWN // max(1, len(values)))
    parts = [
        (random.chisquare(1.0, size=(min(step, count - start), len(values))) - 1.0) @ values
        for start in range(0, count, step)
    ]
    return NullDistribution("spectral", total + np.concatenate(parts))
