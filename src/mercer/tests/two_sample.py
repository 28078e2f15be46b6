"""The two-sample test of the maximum mean discrepancy."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mercer._compiled.blas import one_blas_thread
from mercer._sklearn_compat import num_samples
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector, stack_samples
from mercer.tests.null_distribution import KernelTestResult, NullDistribution, result_of
from mercer.tests.sample_grams import Gram, bound_kernel, check_draws, gram_of, samples_of
from mercer.validation import is_pairwise, thread_count

# bytes of permuted assignments held at a time
BATCH_BYTES = 64 << 20


@one_blas_thread()
def mmd_test(
    X: Any,
    Y: Any,
    kernel: Any = None,
    *,
    statistic: str = "unbiased",
    null: str = "permutation",
    n_permutations: int = 1000,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> KernelTestResult:
    """Test whether two samples have one distribution, by MMD² = |mean φ(X) − mean φ(Y)|².

    The maximum mean discrepancy is the distance between the means of the two samples in the feature space of the
    kernel. For a characteristic kernel, such as the Gaussian, it is 0 for equal distributions only (Gretton, Borgwardt,
    Rasch, Schölkopf & Smola, JMLR 2012).

    Parameters
    ----------
    X, Y : {array-like, sparse matrix} of shape (n_samples, n_features), or list of object
        The two samples, of any type that the kernel supports. A vector of numbers is one feature.
    kernel : kernel, str or callable, default=None
        None is the Gaussian kernel whose width is the median distance between the samples of both.
    statistic : {"unbiased", "biased"}, default="unbiased"
        The U-statistic, whose mean is 0 for equal distributions, or the V-statistic, which is never negative.
    null : {"permutation", "gamma"}, default="permutation"
        Whether the statistic is compared with those of random assignments of the samples, a test that keeps its level
        at any sample size, or with a gamma distribution of the same mean and variance, which is faster.
    n_permutations : int, default=1000
        Number of random assignments.
    random_state : int, RandomState instance or None, default=None
        Seed of the assignments.
    n_jobs : int, default=None
        Number of threads; None uses all cores.

    Returns
    -------
    result : KernelTestResult
        Statistic, p-value and null distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.tests import mmd_test
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(100, 2)), rng.normal(0.0, 2.0, size=(120, 2))
    >>> mmd_test(X, Y, random_state=0).p_value < 0.01  # equal means, other variances
    True
    >>> mmd_test(X, X + 0.01, random_state=0).p_value > 0.5
    True
    """
    n_permutations = check_draws(null, ("permutation", "gamma"), n_permutations)
    if statistic not in ("unbiased", "biased"):
        raise InvalidInputError(f"statistic={statistic!r} is not known: give 'unbiased' or 'biased'.")
    if is_pairwise(kernel):
        raise InvalidInputError(
            "The test compares all samples of X and Y with each other, so kernel='precomputed' cannot be used. Pass "
            "the kernel, or CallableKernel(function)."
        )
    X, Y = samples_of("X", X, kernel, 2), samples_of("Y", Y, kernel, 2)
    if hasattr(X, "shape") and hasattr(Y, "shape") and X.shape[1:] != Y.shape[1:]:
        raise InvalidInputError(f"X has {X.shape[1]} features, but Y has {Y.shape[1]}: both need the same features.")
    m, n = num_samples(X), num_samples(Y)
    both = stack_samples(X, Y)
    bound = bound_kernel(kernel, both)
    gram = gram_of(bound, both, thread_count(n_jobs))
    unbiased = statistic == "unbiased"
    first = np.zeros((m + n, 1))
    first[:m] = 1.0
    sums = gram.row_sums()
    observed = float(discrepancies(gram, sums, first, unbiased)[0])
    if null == "gamma":
        distribution = gamma_null(gram, m, n, unbiased)
    else:
        random = check_random_state(random_state)
        distribution = NullDistribution("permutation", permuted(gram, sums, m, unbiased, n_permutations, random))
    method = f"MMD² two-sample test ({statistic}, {null} null)"
    return result_of(observed, distribution, method, "X and Y have the same distribution", (m, n), (bound,))


def discrepancies(gram: Gram, sums: Vector, Z: Matrix, unbiased: bool) -> Vector:
    """MMD² for each column of Z, which is 1 for samples of the first group and 0 for those of the second.

    ``sums`` are the row sums of K. One product with K serves all columns.
    """
    m = Z[:, 0].sum()
    n = len(Z) - m
    inside, cross = gram.forms(Z), sums @ Z
    first, second, between = inside, sums.sum() - 2.0 * cross + inside, cross - inside
    if not unbiased:
        return np.asarray(first / m**2 + second / n**2 - 2.0 * between / (m * n))
    own = gram.diagonal @ Z
    other = gram.diagonal.sum() - own
    return np.asarray((first - own) / (m * (m - 1)) + (second - other) / (n * (n - 1)) - 2.0 * between / (m * n))


def permuted(gram: Gram, sums: Vector, m: int, unbiased: bool, count: int, random: Any) -> Vector:
    """MMD² of random groups of m and N − m samples."""
    found, step = [], max(1, BATCH_BYTES // (8 * gram.n))
    for start in range(0, count, step):
        Z = np.zeros((gram.n, min(step, count - start)))
        for column in Z.T:
            column[random.permutation(gram.n)[:m]] = 1.0
        found.append(discrepancies(gram, sums, Z, unbiased))
    return np.concatenate(found)


def gamma_null(gram: Gram, m: int, n: int, unbiased: bool) -> NullDistribution:
    """The limit (1/m + 1/n) Σ λ χ² of MMD², with λ the eigenvalues of the centred K / N, by its first two moments."""
    centred, total = gram.centred(), m + n
    width = 1.0 / m + 1.0 / n
    mean = width * float(centred.diagonal.sum()) / (total - 1)
    variance = 2.0 * (width / total) ** 2 * centred.square_norm()
    return NullDistribution.gamma(mean, variance, -mean if unbiased else 0.0)
