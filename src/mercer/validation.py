"""The only module that turns what users pass into arrays and kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d, validate_data

from mercer._numerics.pool import available_cores
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
from mercer.kernels.features import Matrix, Vector, as_csr
from mercer.kernels.sklearn import is_sklearn_kernel
from mercer.kernels.user_defined import check_takes_sets

# entries of a kernel matrix may differ from their mirror image by this share of the largest
ASYMMETRY = 1e-6
# rows of a matrix compared with their mirror images at a time
MIRRORED = 256
# of the kernels that scikit-learn has names for
SKLEARN_DOMAINS = {
    "linear": "vectors",
    "poly": "vectors",
    "rbf": "vectors",
    "sigmoid": "vectors",
    "precomputed": "matrix",
}
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# what scikit-learn is asked to make of vectors
_VECTORS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "order": "C",
    "accept_sparse": "csr",
}


def resolve_kernel(kernel: Any, degree: int, gamma: Any, coef0: float) -> Kernel:
    """The kernel that scikit-learn's parameters, an expression or a Kernel describe."""
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
    if kernel == "rbf":
        return Gaussian(gamma=gamma)
    if kernel == "sigmoid":
        return Sigmoid(gamma=gamma, coef0=coef0)
    if kernel == "precomputed":
        return Precomputed()
    return parse_kernel(kernel)


def resolve_kernels(kernels: Any) -> tuple[Kernel, ...]:
    """The kernels that one, or a list of several, describes: names, expressions, Kernel objects and functions.

    Names mean what they mean for ``SVC`` with its default parameters.
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
    """What the samples of an estimator with this kernel are, as in ``Kernel.domain``; "any" for a function."""
    if isinstance(kernel, Kernel):
        return kernel.domain
    if kernel is None or is_sklearn_kernel(kernel):  # of a Gaussian process
        return "vectors" if getattr(kernel, "requires_vector_input", True) else "any"
    if callable(kernel):
        return "any"
    if kernel in SKLEARN_DOMAINS:
        return SKLEARN_DOMAINS[kernel]
    try:
        return parse_kernel(kernel).domain
    except InvalidInputError:
        return "vectors"  # an expression that cannot be read: fit says so


def set_input_tags(tags: Any, domain: str) -> None:
    """Say in scikit-learn's ``input_tags`` what samples of a domain are. Edits tags."""
    tags.sparse = True
    for name, value in tags_of(domain):
        setattr(tags, name, value)


def is_pairwise(kernel: Any) -> bool:
    """Whether samples are rows of a kernel matrix."""
    return domain_of(kernel) == "matrix"


def validate_samples(
    estimator: Any, X: Any, y: Any, *, reset: bool, domain: str | None = None, **targets: Any
) -> tuple[Any, Any]:
    """Vectors as an array or CSR matrix in their own precision, other samples as they are; y of the same length.

    ``reset`` is true for training samples. Others must be like those, and y is not looked at. ``domain`` says what
    the samples are if not what the estimator's kernel compares; ``targets`` what scikit-learn is told of y.
    """
    domain = domain_of(estimator.kernel) if domain is None else domain
    if domain == "matrix" and sp.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported.")
    if is_objects(domain):
        check_sequence(partial(_kernel_of, estimator), domain, X)
        if reset:
            _check_objects(type(estimator).__name__, X, y, estimator.__sklearn_tags__().target_tags.required)
        if domain == "records" and hasattr(X, "columns"):
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X, y
    if domain == "vectors":
        check_no_objects(partial(_kernel_of, estimator), X)
    return validate_vectors(estimator, X, y, reset=reset, **targets)


def _kernel_of(estimator: Any) -> str:
    """What messages call an estimator's kernel: the expression that builds it. One that cannot be read is an error."""
    kernel = getattr(estimator, "kernel", None)
    if isinstance(kernel, str):
        kernel = parse_kernel(kernel)
    return repr(kernel) if isinstance(kernel, Kernel) else f"kernel={kernel!r}"


def validate_vectors(
    estimator: Any, X: Any, y: Any, *, reset: bool, canonical: bool = True, **targets: Any
) -> tuple[Any, Any]:
    """`validate_samples` for an estimator without a kernel. A memory map is not read into memory.

    Sparse rows come with their entries in order and each stored once, unless ``canonical`` is false.
    """
    if _is_plain(estimator, X, y, reset, bool(targets.get("multi_output"))):
        pass
    elif not reset:
        X = validate_data(estimator, X, reset=False, **_VECTORS)
    else:
        checked = validate_data(estimator, X, y, **_VECTORS, **targets)
        X, y = checked if isinstance(checked, tuple) else (checked, y)
    X = as_csr(X) if sp.issparse(X) else X
    return (_canonical(X) if canonical else X), y


def _is_plain(estimator: Any, X: Any, y: Any, reset: bool, multi_output: bool) -> bool:
    """Whether these are arrays that scikit-learn would return as they are. Notes the number of features then.

    Its many checks take a third of a small fit. Whatever is unusual, and each error, is left to it.
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
            f"Kernel matrices are given as one matrix or as an array of three axes, but X has the shape {X.shape}. "
            "Use np.stack(matrices, axis=2)."
        )
    return X, y


def _check_objects(name: str, X: Any, y: Any, needs_y: bool) -> None:
    """Raise where training samples that only their kernel understands cannot be used."""
    if num_samples(X) == 0:
        raise InvalidInputError(f"Found array with 0 sample(s) while a minimum of 1 is required by {name}.")
    if y is not None:
        check_consistent_length(X, y)
    elif needs_y:
        raise InvalidInputError(f"{name} requires y to be passed, but the target y is None.")


def _canonical(X: Any) -> Any:
    """X itself, or a CSR matrix with its entries in order and each stored once."""
    if sp.issparse(X) and not X.has_canonical_format:
        # through the columns and back is half the work of sorting each row
        X = X.copy() if X.has_sorted_indices else X.tocsc().tocsr()
        X.sum_duplicates()
    return X


def find_classes(y: Any) -> tuple[Vector, Vector]:
    """The classes in order, perhaps only one, and the number of each sample's class."""
    plain = type(y) is np.ndarray and y.ndim == 1  # which column_or_1d would return as it is, after a long look
    labels = y if plain else column_or_1d(y, warn=True)
    if labels.dtype.kind in "biuf" and len(labels):
        # two numbers are found without sorting
        low, high = labels.min(), labels.max()
        is_high = labels == high
        if float(low).is_integer() and float(high).is_integer() and (is_high | (labels == low)).all():
            classes = np.array([low, high] if low < high else [low], dtype=labels.dtype)
            return classes, (is_high if low < high else np.zeros(len(labels), bool)).astype(np.intp)
    if labels.dtype.kind not in "biuU":  # whole numbers and strings are classes, whatever they are
        check_classification_targets(y)
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes


def class_codes(y: Any) -> tuple[Vector, Vector]:
    """`find_classes`; raises if there is only one."""
    classes, codes = find_classes(y)
    if len(classes) < 2:
        raise InvalidInputError(f"The number of classes has to be greater than one; got {len(classes)} class")
    return classes, codes


def class_weights(class_weight: Any, classes: Vector, codes: Vector, weight: Vector | None = None) -> Vector:
    """The factor of each class that scikit-learn's class_weight asks for; ``weight``: what samples count to balance."""
    if class_weight is None:
        return np.ones(len(classes))
    with np.errstate(divide="ignore"):  # a class without weight is not balanced
        weights: Vector = compute_class_weight(class_weight, classes=classes, y=classes[codes], sample_weight=weight)
    if weight is not None:
        weights[np.bincount(codes, weight, len(classes)) == 0] = 1.0
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise InvalidInputError(
            f"class_weight gives the class {classes[wrong[0]]} the weight {weights[wrong[0]]:g}: weights of classes "
            "are finite numbers of at least 0."
        )
    positive = classes[weights > 0].tolist()
    if len(positive) < 2 <= len(classes):
        found = f"only the class {positive[0]!r} has a positive weight" if positive else "every class has the weight 0"
        raise InvalidInputError(
            f"class_weight={class_weight!r} leaves nothing to tell apart: {found}. Give at least two of the "
            f"{len(classes)} classes a positive weight, or use class_weight=None."
        )
    return weights


def check_weighted_classes(codes: Vector, weight: Vector, class_weight: Vector | None = None) -> None:
    """Raise unless two classes have samples of positive weight; ``class_weight`` has the factor of each class."""
    counted = weight > 0 if class_weight is None else weight * class_weight[codes] > 0
    if not counted.all():
        codes = codes[counted]
    if len(codes) == 0 or codes.min() == codes.max():
        raise InvalidInputError(
            "Invalid input - all samples with positive weights belong to the same class, but there must be at "
            "least two."
        )


def real_targets(y: Any) -> Vector:
    """Targets of a regression."""
    plain = isinstance(y, np.ndarray) and y.ndim == 1  # for which scikit-learn's many checks are too slow
    values: Vector = (y if plain else column_or_1d(y, warn=True)).astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        assert_all_finite(values, input_name="y")
    return values


def target_matrix(y: Any) -> Matrix:
    """Targets of a regression, a column for each of them, as float64."""
    values = np.asarray(y)
    if values.dtype.kind not in "fiub":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"Targets of a regression are real numbers, but y is of type {values.dtype}."
            ) from None
    if values.ndim not in (1, 2) or values.shape[-1] == 0:
        raise InvalidInputError(f"y has the shape {values.shape}: give one number, or one row of numbers, per sample.")
    values = values.reshape(len(values), -1).astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        assert_all_finite(values, input_name="y")
    return values


def square_matrix(K: Matrix, samples: Vector | None = None) -> None:
    """Raise unless a kernel matrix is square and symmetric. ``samples`` are the numbers of its rows if not 0, 1, …"""
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
    """Raise unless a kernel needs nothing of new samples but their kernel values with the training samples."""
    if not all(isinstance(leaf, Precomputed | White) for leaf in kernel.leaves()):
        raise InvalidInputError(
            f"{kernel!r} needs more than the rows of a kernel matrix to predict. Compute its matrix, and use "
            "kernel='precomputed'."
        )


def training_matrix(function: Any, X: Any) -> Matrix:
    """A user's function for all training samples. Raise if it compares two samples, not two sets of them."""
    check_takes_sets(f"The kernel function {getattr(function, '__qualname__', repr(function))}", function, X, False)
    return call_kernel(function, X, X)


def call_kernel(function: Any, X: Any, Z: Any) -> Matrix:
    """The matrix that a user's function gives for all of X against all of Z."""
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


def thread_count(n_jobs: int | None) -> int:
    """Threads for n_jobs: None is all cores (results do not depend on it), negative counts from the number of cores.

    Within a joblib worker None is one thread, so that workers do not fight for cores.
    """
    cores = available_cores()
    if n_jobs is None:
        from joblib.parallel import get_active_backend

        backend, _ = get_active_backend()
        return 1 if backend.nesting_level else cores
    if n_jobs == 0:
        raise InvalidInputError("n_jobs=0 has no meaning: give a number of threads, -1 for all cores, or None.")
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else int(n_jobs)
