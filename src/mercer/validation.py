"""The only module that turns what users pass into arrays and kernels."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _num_samples, check_consistent_length, validate_data

from mercer._numerics.pool import available_cores
from mercer.exceptions import InvalidInputError, NotSymmetricError
from mercer.kernels import Kernel, Linear, Polynomial, Precomputed, Sigmoid, parse_kernel
from mercer.kernels.features import Matrix, Vector
from mercer.kernels.radial import Gaussian
from mercer.kernels.vectors import gamma_of

# entries of a kernel matrix may differ from their mirror image by this share of the largest
ASYMMETRY = 1e-6
BUILT_IN = ("linear", "poly", "rbf", "sigmoid", "precomputed")


def resolve_kernel(kernel: Any, degree: int, gamma: Any, coef0: float) -> Kernel:
    """The kernel that scikit-learn's parameters, an expression or a Kernel describe."""
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Precomputed()  # scikit-learn's contract: the function is called with all samples at once
    if kernel == "linear":
        return Linear()
    if kernel == "poly":
        return Polynomial(degree=int(degree), gamma=gamma, coef0=coef0)
    if kernel == "rbf":
        return Gaussian(gamma=gamma)
    if kernel == "sigmoid":
        return Sigmoid(gamma=gamma, coef0=coef0)
    if kernel == "precomputed":
        return Precomputed()
    return parse_kernel(kernel)


def is_pairwise(kernel: Any) -> bool:
    """Whether samples are rows of a kernel matrix."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def validate_samples(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
    """X as a C-ordered float array or CSR matrix in its own precision, y as given; any objects for other domains."""
    kernel = estimator.kernel
    if _takes_objects(kernel):
        if y is not None:
            check_consistent_length(X, y)
        if _num_samples(X) == 0:
            raise InvalidInputError(f"Found array with 0 sample(s) while a minimum of 1 is required by {estimator!r}.")
        return X, y
    options: dict[str, Any] = {
        "dtype": [np.float64, np.float32],
        "order": "C",
        "accept_sparse": "csr",
        "accept_large_sparse": False,
        "reset": reset,
    }
    if y is None:
        X = validate_data(estimator, X, **options)
    else:
        X, y = validate_data(estimator, X, y, **options)
    if sp.issparse(X) and not X.has_sorted_indices:
        X = X.sorted_indices()
    return X, y


def _takes_objects(kernel: Any) -> bool:
    if isinstance(kernel, Kernel):
        return kernel.domain == "any"
    return callable(kernel)


def square_matrix(K: Matrix) -> None:
    """Raise unless a precomputed matrix is square and symmetric."""
    if K.shape[0] != K.shape[1]:
        raise InvalidInputError(
            f"Precomputed matrix must be a square matrix. Input is a {K.shape[0]}x{K.shape[1]} matrix."
        )
    difference = np.abs(K - K.T)
    worst = float(difference.max(initial=0.0))
    if worst > ASYMMETRY * float(np.abs(K).max(initial=0.0)):
        i, j = (int(v) for v in np.unravel_index(int(difference.argmax()), K.shape))
        raise NotSymmetricError(i, j, float(K[i, j]), float(K[j, i]))


def call_kernel(function: Any, X: Any, Z: Any) -> Matrix:
    """The matrix that a user's function gives for all of X against all of Z."""
    K = function(X, Z)
    K = np.asarray(K.toarray() if sp.issparse(K) else K, dtype=np.float64, order="C")
    expected = (_num_samples(X), _num_samples(Z))
    if K.shape != expected:
        raise InvalidInputError(
            f"The kernel function returned an array of shape {K.shape} for {expected[0]} and {expected[1]} samples: it "
            f"must return a matrix of shape {expected}, one row for each sample of its first argument."
        )
    if not np.all(np.isfinite(K)):
        raise InvalidInputError("The kernel function returned values that are NaN or infinite.")
    return K


def validate_weights(sample_weight: Any, n: int, X: Any) -> Vector:
    """One number per sample; scikit-learn's words where the shapes do not fit."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.ndim != 1:
        raise InvalidInputError("Sample weights must be 1D array or scalar")
    if weight.shape[0] != n:
        shape = X.shape if hasattr(X, "shape") else (n,)
        raise InvalidInputError(
            f"sample_weight and X have incompatible shapes: {weight.shape!r} vs {shape!r}\n"
            "Note: Sparse matrices cannot be indexed w/boolean masks (use `indices=True` in CV)."
        )
    if not np.all(np.isfinite(weight)):
        raise InvalidInputError("Input sample_weight contains NaN or infinity.")
    if not np.any(weight > 0):
        raise InvalidInputError("Invalid input - all samples have zero or negative weights.")
    return np.maximum(weight, 0.0)


def gamma_number(gamma: Any, X: Any) -> float:
    """scikit-learn's ``_gamma``."""
    if isinstance(gamma, str):
        return gamma_of(X, gamma)
    return float(gamma) if isinstance(gamma, Real) else float("nan")


def thread_count(n_jobs: int | None) -> int:
    """Threads for n_jobs: None is all cores (results do not depend on it), negative counts from the number of cores.

    Within a joblib worker None is one thread, so that processes do not fight for cores.
    """
    cores = available_cores()
    if n_jobs is None:
        from joblib import effective_n_jobs
        from joblib.parallel import get_active_backend

        backend, _ = get_active_backend()
        nested = getattr(backend, "nesting_level", 0) or 0
        return 1 if nested > 0 and effective_n_jobs(-1) <= 1 else cores
    if n_jobs == 0:
        raise InvalidInputError("n_jobs=0 has no meaning: give a number of threads, -1 for all cores, or None.")
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs
