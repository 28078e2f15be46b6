"""Convert user input to arrays and kernels. No other module does this."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from mercer._compiled.thread_pool import available_cores
from mercer._sklearn_compat import compute_class_weight, num_samples
from mercer.exceptions import InvalidInputError, NotSymmetricError
from mercer.kernels import (
    CallableKernel,
    Gaussian,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    White,
    parse_kernel,
)
from mercer.kernels.combinators import common_domain
from mercer.kernels.domains import check_no_objects, check_sequence, is_objects, tags_of
from mercer.kernels.features import Matrix, Vector, as_csr, take_samples
from mercer.kernels.sklearn import is_sklearn_kernel
from mercer.kernels.user_defined import check_takes_sets
from mercer.sources.row_source import RowSource

# K[i, j] may differ from K[j, i] by this share of the largest entry
ASYMMETRY = 1e-6
# number of rows that are compared with the transpose at a time
MIRRORED = 256
# domains of the kernels that scikit-learn has names for
SKLEARN_DOMAINS = {
    "linear": "vectors",
    "poly": "vectors",
    "rbf": "vectors",
    "sigmoid": "vectors",
    "precomputed": "matrix",
}
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# arguments of scikit-learn's validation for vectors
_VECTORS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "order": "C",
    "accept_sparse": "csr",
}


def resolve_kernel(kernel: Any, degree: int, gamma: Any, coef0: float) -> Kernel:
    """Return the kernel for scikit-learn's parameters, an expression or a Kernel."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise InvalidInputError(f"kernel={kernel.__name__} is a class, not a kernel: write {kernel.__name__}().")
    if callable(kernel):
        return Precomputed()  # scikit-learn's contract: the function is called with all samples at once
    if kernel == "linear":
        return Linear()
    if kernel == "poly":
        return Polynomial(degree=int(degree), gamma=gamma, coef0=coef0)
    if kernel == "inhomogeneous":
        return Polynomial.inhomogeneous(int(degree))
    if kernel == "rbf":
        return Gaussian(gamma=gamma)
    if kernel == "sigmoid":
        return Sigmoid(gamma=gamma, coef0=coef0)
    if kernel == "precomputed":
        return Precomputed()
    return parse_kernel(kernel)


def resolve_kernels(kernels: Any) -> tuple[Kernel, ...]:
    """Return the kernels for a list, or a single one, of names, expressions, Kernel objects and functions.

    Names mean the same as for ``SVC`` with its default parameters.
    """
    several = isinstance(kernels, list | tuple)
    listed = list(kernels) if several else [kernels]
    if len(listed) == 0:
        raise InvalidInputError("kernels is empty: give at least one kernel, such as kernels=['linear', 'rbf'].")
    found = []
    for position, kernel in enumerate(listed):
        is_function = callable(kernel) and not isinstance(kernel, Kernel | type)
        if not (is_function or isinstance(kernel, str | Kernel | type)):
            raise InvalidInputError(
                f"kernels[{position}] is {kernel!r}: give a name, an expression, a kernel object or a function."
            )
        found.append(CallableKernel(kernel) if is_function else resolve_kernel(kernel, 3, "scale", 0.0))
    common_domain(tuple(found))
    return tuple(found)


def domain_of(kernel: Any) -> str:
    """Return the domain of the samples for this kernel, as in ``Kernel.domain``; "any" for a function."""
    if isinstance(kernel, Kernel):
        return kernel.domain
    if kernel is None or (not isinstance(kernel, str) and is_sklearn_kernel(kernel)):  # kernels of a Gaussian process
        return "vectors" if getattr(kernel, "requires_vector_input", True) else "any"
    if callable(kernel):
        return "any"
    if kernel in SKLEARN_DOMAINS:
        return SKLEARN_DOMAINS[kernel]
    try:
        return parse_kernel(kernel).domain
    except InvalidInputError:
        return "vectors"  # an invalid expression: fit raises the error


def set_input_tags(tags: Any, domain: str) -> None:
    """Set scikit-learn's ``input_tags`` for samples of a domain. Edits tags."""
    tags.sparse = True
    for name, value in tags_of(domain):
        setattr(tags, name, value)


def is_pairwise(kernel: Any) -> bool:
    """Whether samples are rows of a kernel matrix."""
    return domain_of(kernel) == "matrix"


def validate_samples(
    estimator: Any, X: Any, y: Any, *, reset: bool, domain: str | None = None, **targets: Any
) -> tuple[Any, Any]:
    """Validate samples and targets. Vectors become an array or CSR matrix, float32 or float64; others stay unchanged.

    ``reset`` is true for training samples. New samples must match the training samples, and y is not checked.
    ``domain`` overrides the domain of the estimator's kernel; ``targets`` are arguments of scikit-learn's validation
    of y.
    """
    domain = domain_of(estimator.kernel) if domain is None else domain
    if domain == "matrix" and sp.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported.")
    if domain == "vectors":
        if type(X) is not np.ndarray or X.ndim != 2:
            check_no_objects(partial(_kernel_of, estimator), X)
    elif is_objects(domain):
        check_sequence(partial(_kernel_of, estimator), domain, X)
        if reset:
            _check_objects(type(estimator).__name__, X, y, estimator.__sklearn_tags__().target_tags.required)
        if domain == "records" and hasattr(X, "columns"):
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X, y
    return validate_vectors(estimator, X, y, reset=reset, **targets)


def _kernel_of(estimator: Any) -> str:
    """Return the expression of an estimator's kernel, for messages. Raise if the kernel is an invalid expression."""
    kernel = getattr(estimator, "kernel", None)
    if isinstance(kernel, str):
        kernel = parse_kernel(kernel)
    return repr(kernel) if isinstance(kernel, Kernel) else f"kernel={kernel!r}"


def validate_vectors(
    estimator: Any, X: Any, y: Any, *, reset: bool, canonical: bool = True, **targets: Any
) -> tuple[Any, Any]:
    """`validate_samples` for an estimator without a kernel. A memory map is not copied into memory.

    Sparse rows get sorted entries without duplicates, unless ``canonical`` is false.
    """
    if _is_plain(estimator, X, y, reset, bool(targets.get("multi_output"))):
        pass
    elif isinstance(X, RowSource):
        np.asarray(X)  # raises
    elif not reset:
        X = validate_data(estimator, X, reset=False, **_VECTORS)
    else:
        checked = validate_data(estimator, X, y, **_VECTORS, **targets)
        X, y = checked if isinstance(checked, tuple) else (checked, y)
    X = as_csr(X) if sp.issparse(X) else X
    return (_canonical(X) if canonical else X), y


def _is_plain(estimator: Any, X: Any, y: Any, reset: bool, multi_output: bool) -> bool:
    """Whether scikit-learn's validation would accept and return these arrays unchanged. If so, sets n_features_in_.

    Its checks take a third of a small fit. Unusual input and all errors are left to it.
    """
    numbers = X.data if type(X) in (sp.csr_array, sp.csr_matrix) else X
    if type(numbers) is not np.ndarray or numbers.dtype not in _FLOATS or not numbers.flags.c_contiguous:
        return False
    if X.ndim != 2 or 0 in X.shape or (numbers is not X and {X.indices.dtype, X.indptr.dtype} != {np.dtype(np.int32)}):
        return False
    has_targets = reset and y is not None
    if has_targets:
        if type(y) is not np.ndarray or y.dtype.kind not in "biuf" or not 1 <= y.ndim <= 1 + multi_output:
            return False
        if len(y) != X.shape[0]:
            return False
    elif reset:
        if estimator.__sklearn_tags__().target_tags.required:
            return False
    elif getattr(estimator, "n_features_in_", None) != X.shape[1] or hasattr(estimator, "feature_names_in_"):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        total = numbers.sum() + (y.sum() if has_targets else 0.0)
    if not np.isfinite(total):
        return False
    if reset:
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
    return True


def validate_landmarks(estimator: Any, landmarks: Any, domain: str) -> Any:
    """Return a copy of landmarks that are samples of the same kind as the training samples.

    The estimator has validated the training samples before. Vectors become an array or CSR matrix.
    """
    if isinstance(landmarks, str | Number):
        raise InvalidInputError(
            f"landmarks={landmarks!r} was given, but landmarks must be a sequence of samples. Use n_components for a "
            "number of landmarks."
        )
    if num_samples(landmarks) == 0:
        raise InvalidInputError("landmarks is empty: give at least one sample, or landmarks=None.")
    if domain != "vectors":
        check_sequence(partial(_kernel_of, estimator), domain, landmarks)
        return take_samples(landmarks, np.arange(num_samples(landmarks)))
    if type(landmarks) is not np.ndarray:
        check_no_objects(partial(_kernel_of, estimator), landmarks)
    found = check_array(landmarks, input_name="landmarks", estimator=estimator, **_VECTORS)
    if found.shape[1] != estimator.n_features_in_:
        raise InvalidInputError(
            f"landmarks has {found.shape[1]} features, but X has {estimator.n_features_in_}: landmarks must be samples "
            "with the same features."
        )
    names = [str(column) for column in getattr(landmarks, "columns", [])]
    expected = [str(column) for column in getattr(estimator, "feature_names_in_", names)]
    if names and names != expected:
        raise InvalidInputError(
            f"landmarks has the columns {', '.join(names)}, but X has {', '.join(expected)}: give the same columns in "
            "the same order."
        )
    return _canonical(as_csr(found.copy())) if sp.issparse(found) else found.copy()


def validate_indices(name: str, indices: Any, n: int) -> Vector:
    """Return indices of training samples, such as the landmarks among the rows of a kernel matrix."""
    found = np.asarray(indices)
    allowed = f"{name} must be indices of training samples, whole numbers from 0 to {n - 1}"
    if found.size == 0:
        raise InvalidInputError(f"{name} is empty: with a precomputed kernel {allowed}, at least one of them.")
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{name} has the shape {found.shape} and the type {found.dtype}, but with a precomputed kernel {allowed}."
        )
    wrong = found[(found < 0) | (found >= n)]
    if len(wrong):
        raise InvalidInputError(f"{name} contains {wrong[0]}, but with a precomputed kernel {allowed}.")
    return found.astype(np.int64)


def validate_stack(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
    """`validate_samples` for kernel matrices: one, or several stacked along the last axis."""
    if sp.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported.")
    checked = validate_data(
        estimator, X, y if reset else "no_validation", reset=reset, dtype=[np.float64, np.float32], allow_nd=True
    )
    X, y = checked if isinstance(checked, tuple) else (checked, y)
    if X.ndim > 3:
        raise InvalidInputError(
            f"X has the shape {X.shape}, but kernel matrices must be one matrix or an array of three axes. Use "
            "np.stack(matrices, axis=2)."
        )
    return X, y


def _check_objects(name: str, X: Any, y: Any, needs_y: bool) -> None:
    """Raise if training samples that are not vectors are empty or do not match y."""
    if num_samples(X) == 0:
        raise InvalidInputError(f"Found array with 0 sample(s) while a minimum of 1 is required by {name}.")
    if y is not None:
        check_consistent_length(X, y)
    elif needs_y:
        raise InvalidInputError(f"{name} requires y to be passed, but the target y is None.")


def _canonical(X: Any) -> Any:
    """Return X, or a copy with sorted entries and without duplicates if it is sparse and needs it."""
    if sp.issparse(X) and not X.has_canonical_format:
        # conversion to CSC and back takes half the time of sorting each row
        X = X.copy() if X.has_sorted_indices else X.tocsc().tocsr()
        X.sum_duplicates()
    return X


def find_classes(y: Any) -> tuple[Vector, Vector]:
    """Return the sorted classes, possibly only one, and the index of each sample's class."""
    plain = type(y) is np.ndarray and y.ndim == 1  # column_or_1d would return it unchanged, but is slow
    labels = y if plain else column_or_1d(y, warn=True)
    found_at_once = two_integer_classes(labels)
    if found_at_once is not None:
        return found_at_once
    if labels.dtype.kind not in "biuU":  # integers and strings are always classes
        try:
            check_classification_targets(y)
        except TypeError:
            found = sorted({type(label).__name__ for label in labels})
            if len(found) == 1:
                raise
            raise InvalidInputError(
                f"y mixes labels that cannot be compared: their types are {', '.join(found)}. Use labels of one type, "
                "and remove samples without a label."
            ) from None
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes


def two_integer_classes(labels: Vector) -> tuple[Vector, Vector] | None:
    """`find_classes` without sorting, for at most two classes that are integers; else None."""
    if labels.dtype.kind not in "biuf" or not len(labels):
        return None
    low, high = labels.min(), labels.max()
    is_high = labels == high
    if not (float(low).is_integer() and float(high).is_integer() and (is_high | (labels == low)).all()):
        return None
    classes = np.array([low, high] if low < high else [low], dtype=labels.dtype)
    return classes, (is_high if low < high else np.zeros(len(labels), bool)).astype(np.intp)


def class_codes(y: Any) -> tuple[Vector, Vector]:
    """`find_classes`; raises if there is only one."""
    classes, codes = find_classes(y)
    if len(classes) < 2:
        raise InvalidInputError(f"The number of classes has to be greater than one; got {len(classes)} class")
    return classes, codes


def class_weights(class_weight: Any, classes: Vector, codes: Vector, weight: Vector | None = None) -> Vector:
    """Return the factor of each class for scikit-learn's class_weight. ``weight``: sample weights for "balanced"."""
    if class_weight is None:
        return np.ones(len(classes))
    with np.errstate(divide="ignore"):  # a class with total weight 0 gets the factor 1 below
        weights: Vector = compute_class_weight(class_weight, classes=classes, y=classes[codes], sample_weight=weight)
    if weight is not None:
        weights[np.bincount(codes, weight, len(classes)) == 0] = 1.0
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise InvalidInputError(
            f"class_weight gives the class {classes[wrong[0]]} the weight {weights[wrong[0]]:g}: class weights must be "
            "finite and not negative."
        )
    positive = classes[weights > 0].tolist()
    if len(positive) < 2 <= len(classes):
        found = f"only the class {positive[0]!r} has a positive weight" if positive else "every class has the weight 0"
        raise InvalidInputError(
            f"class_weight={class_weight!r} leaves no two classes to separate: {found}. Give at least two of the "
            f"{len(classes)} classes a positive weight, or use class_weight=None."
        )
    return weights


def check_weighted_classes(codes: Vector, weight: Vector, class_weight: Vector | None = None) -> None:
    """Raise unless two classes have samples with positive weight. ``class_weight`` holds the factor of each class."""
    counted = weight > 0 if class_weight is None else weight * class_weight[codes] > 0
    if not counted.all():
        codes = codes[counted]
    if len(codes) == 0 or codes.min() == codes.max():
        raise InvalidInputError(
            "Invalid input - all samples with positive weights belong to the same class, but there must be at "
            "least two."
        )


def real_targets(y: Any) -> Vector:
    """Return the targets of a regression as float64."""
    plain = isinstance(y, np.ndarray) and y.ndim == 1  # scikit-learn's checks are slow and not needed here
    values: Vector = (y if plain else column_or_1d(y, warn=True)).astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        assert_all_finite(values, input_name="y")
    return values


def target_matrix(y: Any) -> Matrix:
    """Return the targets of a regression as a float64 matrix, a column for each target."""
    values = np.asarray(y)
    if values.dtype.kind not in "fiub":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"y has the type {values.dtype}, but targets of a regression must be numbers."
            ) from None
    if values.ndim not in (1, 2) or values.shape[-1] == 0:
        raise InvalidInputError(f"y has the shape {values.shape}: give one number, or one row of numbers, per sample.")
    values = values.reshape(len(values), -1).astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        assert_all_finite(values, input_name="y")
    return values


def square_matrix(K: Matrix, samples: Vector | None = None) -> None:
    """Raise unless a kernel matrix is square and symmetric. ``samples`` are the indices of its rows if not 0, 1, …"""
    if K.shape[0] != K.shape[1]:
        raise InvalidInputError(
            f"Precomputed matrix must be a square matrix. Input is a {K.shape[0]}x{K.shape[1]} matrix."
        )
    worst, place = ASYMMETRY * float(max(K.max(), -K.min())), None
    for start in range(0, len(K), MIRRORED):
        rows, mirrored = K[start : start + MIRRORED], K[:, start : start + MIRRORED].T
        difference = np.abs(rows - mirrored)
        if difference.max() > worst:
            i, j = (int(v) for v in np.unravel_index(int(difference.argmax()), difference.shape))
            worst, place = float(difference[i, j]), (start + i, j)
    if place is not None:
        i, j = place
        names = np.arange(len(K)) if samples is None else samples
        raise NotSymmetricError(int(names[i]), int(names[j]), float(K[i, j]), float(K[j, i]))


def check_pairwise_kernel(kernel: Kernel) -> None:
    """Raise unless predictions need only the kernel values of new samples with the training samples."""
    if not all(isinstance(leaf, Precomputed | White) for leaf in kernel.leaves()):
        raise InvalidInputError(
            f"{kernel!r} needs more than the rows of a kernel matrix to predict. Compute its matrix, and use "
            "kernel='precomputed'."
        )


def training_matrix(function: Any, X: Any) -> Matrix:
    """Return the matrix of a user's kernel function for all training samples.

    Raise if the function compares two samples instead of two sets of samples.
    """
    check_takes_sets(f"The kernel function {getattr(function, '__qualname__', repr(function))}", function, X, False)
    return call_kernel(function, X, X)


def call_kernel(function: Any, X: Any, Z: Any) -> Matrix:
    """Return the matrix of a user's kernel function for X and Z, and check its shape and values."""
    expected = (num_samples(X), num_samples(Z))
    if expected[1] == 0:
        return np.empty(expected)  # a model without support vectors
    K = function(X, Z)
    K = np.asarray(K.toarray() if sp.issparse(K) else K, dtype=np.float64, order="C")
    if K.shape != expected:
        raise InvalidInputError(
            f"The kernel function returned an array of shape {K.shape} for {expected[0]} and {expected[1]} samples: it "
            f"must return a matrix of shape {expected}, one row for each sample of its first argument."
        )
    if not np.all(np.isfinite(K)):
        raise InvalidInputError(
            "The kernel function returned values that are NaN or infinite. Return finite numbers, or scale the samples."
        )
    return K


def validate_weights(sample_weight: Any, n: int, X: Any) -> Vector:
    """Return one weight per sample. Errors about shapes have scikit-learn's wording."""
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


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for n_jobs: None is all cores, -1 too, -2 all but one, and so on.

    Within a joblib worker None is one thread, so that workers do not compete for cores.
    """
    cores = available_cores()
    if n_jobs is None:
        from joblib.parallel import get_active_backend

        backend, _ = get_active_backend()
        return 1 if backend.nesting_level else cores
    if not isinstance(n_jobs, Integral):
        raise InvalidInputError(f"n_jobs={n_jobs!r} is no number of threads: give a whole number, or None.")
    if n_jobs == 0:
        raise InvalidInputError("n_jobs=0 has no meaning: give a number of threads, -1 for all cores, or None.")
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else int(n_jobs)
