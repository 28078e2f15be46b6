"""Check Mercer's condition: symmetry and eigenvalues of a Gram matrix; [CS229], [SSBD] Lemma 16.2, [M5].

A function is a kernel if and only if all of its Gram matrices are symmetric and positive semidefinite. One matrix can
refute that, but not prove it. A matrix that passes may still be useless: if it is almost diagonal, each sample
resembles only itself, and nothing can be learnt from one sample about another.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, log
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel
from mercer.kernels.features import Matrix, Vector, count_samples, take_samples
from mercer.kernels.parse import parse_kernel
from mercer.kernels.radial import Chi2, Gaussian, Laplacian
from mercer.kernels.user_defined import CallableKernel, Precomputed

# eigenvalues take time n³: a second or two for this many samples
MOST_SAMPLES = 2000
# a matrix is near-diagonal if the median similarity to the most similar other sample is below this
NEAR_DIAGONAL = 0.1


@dataclass(frozen=True)
class MercerReport:
    """The result of ``check_mercer``.

    Attributes
    ----------
    n, n_given : the number of samples examined, and of samples given; of more than 2000, a random subset is examined.
    symmetric : whether K equals its transpose to within rounding.
    asymmetry : the largest |K[i, j] - K[j, i]|.
    positive_semidefinite : whether no eigenvalue is below -rounding, and K is symmetric.
    smallest_eigenvalue, largest_eigenvalue : of the symmetric part (K + K') / 2.
    rounding : n eps times the largest |eigenvalue|: how far rounding can move an eigenvalue 0.
    near_diagonal : whether offdiagonal_ratio is below 0.1.
    offdiagonal_ratio : the similarity of the typical sample to the most similar other one: the median over i of the
        largest |K[i, j]| / sqrt(K[i, i] K[j, j]), j ≠ i. inf if there is no such pair.
    advice : sentences that say what to do; empty if all is well.
    witness : if an eigenvalue is below -rounding, a vector z of length 1 with z'Kz = smallest_eigenvalue < 0: the proof
        that K is not positive semidefinite. It has a number for each given sample, 0 for those not examined. Else None.

    Examples
    --------
    >>> from mercer import check_mercer
    >>> report = check_mercer([[1.0, 2.0], [2.0, 1.0]])
    >>> report.symmetric, report.positive_semidefinite
    (True, False)
    """

    n: int
    n_given: int
    symmetric: bool
    asymmetry: float
    positive_semidefinite: bool
    smallest_eigenvalue: float
    largest_eigenvalue: float
    rounding: float
    near_diagonal: bool
    offdiagonal_ratio: float
    advice: tuple[str, ...]
    witness: Vector | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        examined = f"{self.n} samples" if self.n == self.n_given else f"{self.n} of {self.n_given} samples, at random"
        eigenvalues = f"{self.smallest_eigenvalue:.3g} to {self.largest_eigenvalue:.3g}"
        rows = (
            ("symmetric", self.symmetric, f"largest difference {self.asymmetry:.3g}"),
            (
                "positive semidefinite",
                self.positive_semidefinite,
                f"eigenvalues {eigenvalues}, rounding {self.rounding:.1g}",
            ),
            (
                "near-diagonal",
                self.near_diagonal,
                f"median similarity to the nearest other {self.offdiagonal_ratio:.3g}",
            ),
        )
        lines = [f"Mercer's condition on {examined}: {'holds' if self.positive_semidefinite else 'VIOLATED'}"]
        lines += [f"  {name:<23} {'yes' if truth else 'no':<4} ({numbers})" for name, truth, numbers in rows]
        lines += [f"  → {sentence}" for sentence in self.advice]
        return "\n".join(lines)


def check_mercer(
    kernel_or_matrix: Any, samples: Any = None, *, random_state: int = 0, max_samples: int = MOST_SAMPLES
) -> MercerReport:
    """Examine a kernel matrix, or a kernel (an object, a function f(X, Z), or a text) on samples.

    Of more than ``max_samples`` samples that many are drawn at random: their eigenvalues take time n³.

    >>> print(check_mercer([[2.0, 1.0], [1.0, 2.0]]))
    Mercer's condition on 2 samples: holds
      symmetric               yes  (largest difference 0)
      positive semidefinite   yes  (eigenvalues 1 to 3, rounding 1e-15)
      near-diagonal           no   (median similarity to the nearest other 0.5)
    """
    kernel = as_kernel(kernel_or_matrix)
    if kernel is None:
        if samples is not None:
            raise InvalidInputError(
                "check_mercer was given a matrix and samples: give the matrix alone, or a kernel with samples."
            )
        kernel, samples = Precomputed(), as_square(kernel_or_matrix)
    elif samples is None:
        raise InvalidInputError(f"check_mercer needs samples to examine {kernel!r}: check_mercer(kernel, samples).")
    elif kernel.domain == "matrix":
        samples = as_square(samples)
    n_given = count_samples(samples)
    if n_given == 0:
        raise InvalidInputError("check_mercer needs at least one sample, but was given none.")
    kernel = kernel.bind(samples)
    given_single = kernel.domain == "matrix" and samples.dtype == np.float32
    chosen = np.arange(n_given)
    if n_given > max_samples:
        chosen = np.sort(np.random.default_rng(random_state).choice(n_given, max_samples, replace=False))
        samples = samples[np.ix_(chosen, chosen)] if kernel.domain == "matrix" else take_samples(samples, chosen)
    features = kernel.prepare(samples)
    K = kernel.block(features, features)
    report = _report(kernel, K, n_given, float(np.finfo(np.float32 if given_single else np.float64).eps))
    if report.smallest_eigenvalue >= -report.rounding:
        return report
    witness = np.zeros(n_given)
    witness[chosen] = la.eigh((K + K.T) / 2, subset_by_index=[0, 0])[1][:, 0]
    return replace(report, witness=witness)


def as_kernel(given: Any) -> Kernel | None:
    """The kernel that an object, a function or a text stands for; None for a matrix."""
    if isinstance(given, Kernel):
        return given
    if isinstance(given, str):
        return parse_kernel(given)
    return CallableKernel(given) if callable(given) else None


def as_square(matrix: Any) -> Matrix:
    """Return a dense square matrix of real numbers, or raise."""
    matrix = matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidInputError(
            f"A kernel matrix must be square, but the shape is {matrix.shape}. Give K[i, j] = k(x_i, x_j) for all "
            "pairs of samples, or a kernel and samples."
        )
    if matrix.dtype.kind not in "fiub":
        raise InvalidInputError(f"A kernel matrix must contain real numbers, but it is of type {matrix.dtype}.")
    return matrix


def _report(kernel: Kernel, K: Matrix, n_given: int, eps: float) -> MercerReport:
    """The report on a computed matrix."""
    n = len(K)
    if not np.all(np.isfinite(K)):
        i, j = (int(index) for index in np.argwhere(~np.isfinite(K))[0])
        raise InvalidInputError(
            f"The kernel matrix must be finite, but K[{i}, {j}] = {K[i, j]:g}. Look for missing or very large values "
            f"in samples {i} and {j}, or scale the samples."
        )
    asymmetry = float(np.abs(K - K.T).max())
    symmetric = asymmetry <= n * eps * float(np.abs(K).max())
    if asymmetry > 0:
        K = (K + K.T) / 2
    eigenvalues = np.linalg.eigvalsh(K)
    smallest, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    rounding = n * eps * max(abs(smallest), abs(largest))
    psd = symmetric and smallest >= -rounding
    ratio = offdiagonal_ratio(K)
    advice: list[str] = []
    if not symmetric:
        advice.append(
            f"K[i, j] and K[j, i] differ by up to {asymmetry:.3g}: a kernel must not depend on the order of its "
            "arguments. Correct it, or use (K + K.T) / 2."
        )
    if smallest < -rounding:
        advice.append(_eigenvalue_advice(kernel, n, smallest, largest))
    if ratio < NEAR_DIAGONAL:
        advice.append(_diagonal_advice(kernel, ratio))
    return MercerReport(
        n, n_given, symmetric, asymmetry, psd, smallest, largest, rounding, ratio < NEAR_DIAGONAL, ratio, tuple(advice)
    )


def offdiagonal_ratio(K: Matrix) -> float:
    """The median over samples of the largest cosine with another sample."""
    diagonal = np.diagonal(K)
    positive = np.flatnonzero(diagonal > 0)
    if len(positive) < 2:
        return inf
    length = np.sqrt(diagonal[positive])
    cosines = np.abs(K[np.ix_(positive, positive)]) / length / length[:, None]
    np.fill_diagonal(cosines, 0.0)
    return float(np.median(cosines.max(axis=1)))


def _eigenvalue_advice(kernel: Kernel, n: int, smallest: float, largest: float) -> str:
    shortfall = f"{-smallest:.3g}"
    if -smallest <= n * float(np.finfo(np.float32).eps) * max(abs(smallest), abs(largest)):
        return (
            f"The smallest eigenvalue, {smallest:.3g}, is of the size of float32 rounding errors: compute the matrix "
            f"in float64, or add {shortfall} to its diagonal."
        )
    if kernel.domain == "matrix":
        return (
            f"The smallest eigenvalue is {smallest:.3g}: use repair_mercer, which adds {shortfall} to the diagonal "
            "(shift) or replaces negative eigenvalues by 0 (clip). The optimum of an indefinite matrix need not be "
            "unique."
        )
    return (
        f"The smallest eigenvalue is {smallest:.3g}: this is not a kernel. Choose other parameters or another kernel, "
        f"or compute the matrix, add {shortfall} to its diagonal and use Precomputed()."
    )


def _diagonal_advice(kernel: Kernel, ratio: float) -> str:
    alone = (
        f"The typical sample has a similarity of {ratio:.2g} to the most similar other sample: the matrix is "
        "near-diagonal, and a model would memorise instead of learn."
    )
    gamma = getattr(kernel, "gamma", None)
    if isinstance(kernel, Gaussian | Laplacian | Chi2) and isinstance(gamma, float):
        # ratio = exp(-γ distance): the γ for which it is one half
        better = gamma * log(2.0) / -log(max(ratio, 1e-300))
        return f"{alone} Lower gamma from {gamma:.3g} to about {better:.1g}, which makes this similarity one half."
    if any(name.split("__")[-1] in ("gamma", "length_scale") for name in kernel.get_params()):
        return f"{alone} Make the kernel wider: lower gamma, or raise length_scale."
    return f"{alone} Choose a kernel that compares less strictly, or scale the features."
