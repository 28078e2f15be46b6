"""The independence test of the Hilbert-Schmidt independence criterion."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mercer._compiled.blas import one_blas_thread
from mercer.kernels.features import Vector
from mercer.tests.null_distribution import KernelTestResult, NullDistribution, result_of
from mercer.tests.sample_grams import Gram, bound_kernel, check_draws, check_same_length, gram_of, samples_of
from mercer.validation import thread_count

# multiplications of a product that take as long as one entry of a permuted matrix
ENTRY = 40.0


@one_blas_thread()
def hsic_test(
    X: Any,
    Y: Any,
    kernel_x: Any = None,
    kernel_y: Any = None,
    *,
    null: str = "permutation",
    n_permutations: int = 1000,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> KernelTestResult:
    """Test whether paired samples are independent, by HSIC = tr(K H L H) / n², H = I − 11'/n.

    The Hilbert-Schmidt independence criterion is the squared norm of the covariance between the features of X (Gram
    matrix K) and of Y (L). For characteristic kernels, such as the Gaussian, it is 0 for independent variables only
    (Gretton, Fukumizu, Teo, Song, Schölkopf & Smola, NIPS 2007).

    Parameters
    ----------
    X, Y : {array-like, sparse matrix} of shape (n_samples, n_features), or list of object
        Samples that were observed together, each of any type that its kernel supports. A vector of numbers is one
        feature.
    kernel_x, kernel_y : kernel, str or callable, default=None
        The kernels. None is the Gaussian kernel whose width is the median distance; "precomputed" if X or Y is a Gram
        matrix.
    null : {"permutation", "gamma"}, default="permutation"
        Whether HSIC is compared with that of randomly permuted pairs, a test that keeps its level at any sample size,
        or with a gamma distribution of the same mean and variance, which is faster.
    n_permutations : int, default=1000
        Number of permutations.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutations.
    n_jobs : int, default=None
        Number of threads; None uses all cores.

    Returns
    -------
    result : KernelTestResult
        Statistic, p-value and null distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.tests import hsic_test
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 100)
    >>> x, y = np.cos(angle), np.sin(angle)  # uncorrelated, but not independent
    >>> hsic_test(x, y, random_state=0).p_value < 0.01
    True
    >>> hsic_test(x, rng.permutation(y), random_state=0).p_value > 0.05
    True
    """
    n_permutations = check_draws(null, ("permutation", "gamma"), n_permutations)
    X, Y = samples_of("X", X, kernel_x, 6), samples_of("Y", Y, kernel_y, 6)
    n = check_same_length(X=X, Y=Y)
    bound = bound_kernel(kernel_x, X), bound_kernel(kernel_y, Y)
    K, L = (gram_of(kernel, samples, thread_count(n_jobs)) for kernel, samples in zip(bound, (X, Y), strict=True))
    K, Lc = matched(K.centred(), L.centred())
    if null == "gamma":
        observed = products(K, Lc, np.arange(n)[None])[0] / n**2
        distribution = gamma_null(K, Lc)
    else:
        random = check_random_state(random_state)
        orders = np.vstack([np.arange(n)[None], [random.permutation(n) for _ in range(n_permutations)]])
        values = products(K, Lc, orders) / n**2
        observed, distribution = values[0], NullDistribution("permutation", values[1:])
    return result_of(
        observed, distribution, f"HSIC independence test ({null} null)", "X and Y are independent", (n,), bound
    )


def matched(K: Gram, L: Gram) -> tuple[Gram, Gram]:
    """Both factored, or both as matrices: the faster form of the two for permuted products."""
    if K.factor is not None and L.factor is not None and K.factor.shape[1] * L.factor.shape[1] <= ENTRY * K.n:
        return K, L
    return tuple(Gram(g.diagonal, None, g.dense()) for g in (K, L))  # type: ignore[return-value]


def products(K: Gram, L: Gram, orders: Vector) -> Vector:
    """tr(K P L P') for each permutation (a row of ``orders``): with factors U, V it is |U' P V|²."""
    if K.factor is not None and L.factor is not None:
        U, V = np.ascontiguousarray(K.factor.T), L.factor
        return np.array([np.square(U @ V.take(order, axis=0)).sum() for order in orders])
    assert K.matrix is not None and L.matrix is not None
    rows = np.empty_like(L.matrix)
    found = np.empty(len(orders))
    for k, order in enumerate(orders):
        L.matrix.take(order, axis=0, out=rows, mode="clip")
        found[k] = np.vdot(K.matrix, rows.take(order, axis=1))
    return found


def gamma_null(K: Gram, L: Gram) -> NullDistribution:
    """The limit of HSIC, a weighted sum of χ² variables, by the mean and variance of a random permutation.

    The mean over all permutations is exact: tr K tr L / ((n − 1) n²) for centred matrices. The variance is that of
    Gretton et al. (2007), theorem 4; for independent samples the mean of (KᵢⱼLᵢⱼ)² is that of Kᵢⱼ² times that of Lᵢⱼ².
    """
    n = K.n
    mean = float(K.diagonal.sum()) * float(L.diagonal.sum()) / ((n - 1) * float(n) ** 2)
    pairs = n * (n - 1.0)
    squares = [(g.square_norm() - float(np.square(g.diagonal).sum())) / pairs for g in (K, L)]
    variance = 2.0 * (n - 4.0) * (n - 5.0) / (pairs * (n - 2.0) * (n - 3.0)) * squares[0] * squares[1]
    return NullDistribution.gamma(mean, variance)
