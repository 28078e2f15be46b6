"""Samples of hypothesis tests: their kernels by the median heuristic, and their Gram matrices, factored if possible."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from mercer._sklearn_compat import num_samples
from mercer.estimators.gaussian_process import check_memory, resolve_covariance
from mercer.exceptions import InvalidInputError
from mercer.gram.low_rank import pivoted_cholesky
from mercer.gram.operator import GramOperator
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.domains import check_no_objects, check_sequence
from mercer.kernels.features import Features, Matrix, Vector, as_csr, take_samples
from mercer.validation import is_pairwise, square_matrix

# samples between which the median distance is taken
MEDIAN_SAMPLES = 1000
# samples whose kernel values are compared with the transposed ones
COMPARED = 50
# a factor of K is used if the trace of its residual is at most this share of the trace
RESIDUAL = 1e-7
# a factor has at most RANK √n columns: with more, products with K itself are faster
RANK = 8.0


def samples_of(name: str, samples: Any, kernel: Any, smallest: int) -> Any:
    """Validated samples for the given kernel. A vector of numbers becomes one column."""
    domain = "vectors" if kernel is None else resolve_covariance(kernel).domain
    if domain not in ("vectors", "matrix"):
        check_sequence(partial(repr, kernel), domain, samples)
        found = samples
    else:
        if type(samples) is not np.ndarray:
            check_no_objects(lambda: repr(kernel or Gaussian()), samples)
        if not sp.issparse(samples) and np.ndim(samples) == 1:
            samples = np.asarray(samples).reshape(-1, 1)
        found = check_array(samples, dtype=np.float64, accept_sparse="csr", input_name=name, order="C")
        found = as_csr(found) if sp.issparse(found) else found
        if domain == "matrix":
            square_matrix(found)
    if num_samples(found) < smallest:
        raise InvalidInputError(f"{name} has {num_samples(found)} samples, but the test needs at least {smallest}.")
    return found


def check_same_length(**samples: Any) -> int:
    """The common number of samples; raise if they differ."""
    sizes = {name: num_samples(value) for name, value in samples.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name} has {n}" for name, n in sizes.items())
        raise InvalidInputError(f"The samples must be observed together, one row each, but {found} samples.")
    return next(iter(sizes.values()))


def check_draws(null: str, kinds: tuple[str, ...], count: Any) -> int:
    """The number of drawn values; raise if it or the kind of null distribution is not valid."""
    if null not in kinds:
        raise InvalidInputError(f"null={null!r} is not known: give {' or '.join(map(repr, kinds))}.")
    if not isinstance(count, int | np.integer) or count < 1:
        raise InvalidInputError(f"The number of drawn values is {count!r}: give a whole number, at least 1.")
    return int(count)


def bound_kernel(kernel: Any, samples: Any) -> Kernel:
    """The kernel with its parameters as numbers; None is the Gaussian kernel by the median heuristic."""
    if kernel is not None:
        return resolve_covariance(kernel).bind(samples)
    return Gaussian(gamma=median_gamma(samples))


def median_gamma(samples: Any) -> float:
    """1 / (2 median²) of the distances between different samples; of their mean where the median is 0.

    At most 1,000 samples, evenly spaced, are compared.

    >>> median_gamma(np.array([[0.0], [2.0]]))
    0.125
    """
    n = num_samples(samples)
    some = take_samples(samples, np.unique(np.linspace(0, n - 1, min(n, MEDIAN_SAMPLES)).astype(np.intp)))
    rows = some.toarray() if sp.issparse(some) else np.asarray(some)
    rows = rows - rows.mean(axis=0)  # far from the origin the distances would be lost to rounding
    squares = np.square(rows).sum(axis=1)
    distance = np.maximum(squares[:, None] + squares - 2.0 * rows @ rows.T, 0.0)[np.triu_indices(len(rows), 1)]
    middle = float(np.median(distance)) if len(distance) else 0.0
    # rounding leaves equal samples a small distance
    if middle <= 1e-12 * float(squares.max(initial=0.0)):
        middle = float(distance.mean()) if len(distance) else 0.0
    return 0.5 / middle if middle > 1e-12 * float(squares.max(initial=0.0)) and middle > 0 else 1.0


@dataclass(frozen=True)
class Gram:
    """K = UU' if ``factor`` is U, else ``matrix``; and its diagonal."""

    diagonal: Vector
    factor: Matrix | None = None
    matrix: Matrix | None = None

    @property
    def n(self) -> int:
        return len(self.diagonal)

    def forms(self, Z: Matrix) -> Vector:
        """z'Kz for each column z."""
        if self.factor is not None:
            return np.asarray(np.square(self.factor.T @ Z).sum(axis=0))
        assert self.matrix is not None
        return np.asarray(np.einsum("ij,ij->j", Z, self.matrix @ Z))

    def row_sums(self) -> Vector:
        """K1."""
        if self.factor is not None:
            return np.asarray(self.factor @ self.factor.sum(axis=0))
        assert self.matrix is not None
        return np.asarray(self.matrix.sum(axis=1))

    def centred(self) -> Gram:
        """HKH with H = I − 11'/n, the Gram matrix of samples whose mean in feature space is 0."""
        if self.factor is not None:
            U = self.factor - self.factor.mean(axis=0)
            return Gram(np.einsum("ij,ij->i", U, U), U)
        K = centred_matrix(self.dense())
        return Gram(np.diagonal(K).copy(), None, K)

    def dense(self) -> Matrix:
        """K."""
        if self.matrix is not None:
            return self.matrix
        assert self.factor is not None
        return np.asarray(self.factor @ self.factor.T)

    def square_norm(self) -> float:
        """Σ Kᵢⱼ²."""
        inner = self.dense() if self.factor is None else self.factor.T @ self.factor
        return float(np.vdot(inner, inner))


def centred_matrix(K: Matrix) -> Matrix:
    """HKH with H = I − 11'/n."""
    means = K.mean(axis=0)
    return np.asarray(K - means - means[:, None] + means.mean())


def check_symmetry(kernel: Kernel, samples: Any) -> None:
    """Raise if a function, taken for a kernel, depends on the order of its arguments; a few samples are compared."""
    if kernel.psd_is_assumed and not is_pairwise(kernel):
        n = num_samples(samples)
        few = kernel.prepare(take_samples(samples, np.unique(np.linspace(0, n - 1, min(n, COMPARED)).astype(np.intp))))
        square_matrix(kernel.block(few, few))


def gram_of(kernel: Kernel, samples: Any, n_threads: int, factored: bool = True) -> Gram:
    """The Gram matrix of samples: a factor if a short one is exact up to rounding, else the matrix."""
    check_symmetry(kernel, samples)
    features: Features = kernel.prepare(samples)
    gram = GramOperator(kernel, features, n_threads)
    diagonal = gram.diagonal().astype(np.float64)
    if not np.all(np.isfinite(diagonal)):
        raise InvalidInputError(f"{kernel!r} has values that are NaN or infinite: scale the samples.")
    if factored and not is_pairwise(kernel):
        rank = min(gram.n, int(RANK * np.sqrt(gram.n)))
        found = pivoted_cholesky(gram, rank, RESIDUAL * float(np.abs(diagonal).sum()), only_exact=True)
        if found.exact:
            return Gram(diagonal, np.ascontiguousarray(found.L))
    check_memory(gram.n, 2, "kernels whose matrix has a low rank, such as a wider Gaussian kernel")
    return Gram(diagonal, None, gram.dense())
