"""Match the support vectors of a model with the training samples, if its file does not identify them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.estimators.fitted_models import codes_of
from mercer.estimators.linear.linear_svc import LinearSVC
from mercer.estimators.linear.linear_svr import LinearSVR
from mercer.estimators.one_class import OneClassSVM
from mercer.estimators.svc import SVC, NuSVC
from mercer.estimators.svr import SVR, NuSVR
from mercer.exceptions import InvalidInputError
from mercer.io.formats.from_parts import make_fitted
from mercer.kernels.features import Matrix, Vector, as_matrix
from mercer.validation import real_targets

# the parameters that files lack
NEEDED: dict[type, tuple[str, ...]] = {
    SVC: ("C",),
    NuSVC: ("nu",),
    SVR: ("C", "epsilon"),
    NuSVR: ("C", "nu"),
    OneClassSVM: ("nu",),
    LinearSVC: ("C",),
    LinearSVR: ("C", "epsilon"),
}
# the largest difference between a support vector and its sample, relative to the largest value of each feature: files
# have float32 precision or 8 digits
DIGITS = 2e-6
# the largest number of distances computed at a time
ENTRIES = 4_000_000


def with_training_data(
    model: Any, X: Any, y: Any = None, *, class_weight: dict[Any, float] | None = None, **parameters: float
) -> Any:
    """Complete a model read from a LIBSVM, LIBLINEAR or ONNX file with its training data, so that it can be certified.

    These files contain neither C, ε and ν nor the indices of the support vectors. Each support vector is matched with a
    sample of its class, to the precision of the file. ``mercer.certify`` then computes the distance from the optimum,
    with the samples themselves instead of their rounded copies in the file.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC or LinearSVR
        The result of ``mercer.io.libsvm.read_model`` or ``mercer.io.onnx.read_onnx``.
    X, y : the training data, preprocessed (scaled, for instance) as in the fit.
    class_weight : dict, default=None
        Class weights by label, if they were not 1.
    parameters : C, epsilon, nu
        The parameters of the fit: C of an SVC, C and epsilon of an SVR, nu of a NuSVC or OneClassSVM, C and nu of a
        NuSVR.

    Returns
    -------
    model : the same class
        A copy with the indices of its support vectors.

    Examples
    --------
    >>> import io, mercer
    >>> from mercer.io import with_training_data
    >>> from mercer.io.libsvm import read_model, write_model
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> text = io.StringIO()
    >>> write_model(mercer.SVC(C=2.0, tol=1e-6).fit(X, y), text)
    >>> model = with_training_data(read_model(io.StringIO(text.getvalue())), X, y, C=2.0)
    >>> mercer.certify(model, X, y).relative_gap < 1e-5
    True
    """
    needed = next((names for cls, names in NEEDED.items() if type(model) is cls), None)
    if needed is None:
        raise InvalidInputError(
            f"with_training_data completes models from LIBSVM, LIBLINEAR and ONNX files, but was given a "
            f"{type(model).__name__}. Call mercer.certify(model, X, y) directly."
        )
    missing = [name for name in needed if parameters.get(name) is None]
    surplus = [name for name, value in parameters.items() if value is not None and name not in needed]
    if missing or surplus:
        raise InvalidInputError(
            f"The file of this {type(model).__name__} does not contain {' and '.join(needed)}: "
            + (f"give {' and '.join(missing)}." if missing else f"give only {' and '.join(needed)}, not {surplus[0]}.")
        )
    found = copy.copy(model)
    found.set_params(**{name: float(parameters[name]) for name in needed})
    classes = getattr(found, "classes_", None)
    if classes is not None:
        found.set_params(class_weight=class_weight)
        found.class_weight_ = _class_weights(classes, class_weight)
    if isinstance(found, LinearSVC | LinearSVR):
        return found
    if found._kernel.domain == "matrix":
        found.shape_fit_ = (len(X), len(X))  # the file contains the indices of the samples
        return found
    X = as_matrix(X)
    if X.shape[1] != found.n_features_in_:
        raise InvalidInputError(
            f"The samples have {X.shape[1]} features, but the support vectors have {found.n_features_in_}: preprocess "
            "the samples as in the fit."
        )
    support = _places(found, X, y, classes)
    vectors = X[support]
    coef = found._dual_coef_.toarray() if sp.issparse(found._dual_coef_) else found._dual_coef_
    _check_bounds(found, coef)
    kept = {name: getattr(found, name, None) for name in ("_probA", "_probB", "class_weight_", "certificate_")}
    make_fitted(
        found, found._kernel, vectors, coef, found._intercept_, support=support, n_support=found._n_support.tolist(),
        n_train=X.shape[0], n_features=X.shape[1], classes=classes,
    )  # fmt: skip
    for name, value in kept.items():
        if value is not None:
            setattr(found, name, value)
    return found


def _class_weights(classes: Vector, given: dict[Any, float] | None) -> Vector:
    weights = np.ones(len(classes))
    for label, weight in (given or {}).items():
        places = [i for i, known in enumerate(classes.tolist()) if known == label or str(known) == str(label)]
        if not places:
            raise InvalidInputError(
                f"class_weight has a weight for {label!r}, but the classes are {classes.tolist()}: remove it, or use "
                "the label as it is in y."
            )
        weights[places] = float(weight)
    return weights


def _check_bounds(model: Any, coef: Matrix) -> None:
    """Raise if a coefficient exceeds C, which then cannot be the C of the fit."""
    if not isinstance(model, SVC | SVR):
        return
    factor = model.C * float(np.max(getattr(model, "class_weight_", 1.0)))
    largest = float(np.abs(coef).max(initial=0.0))
    if largest > factor * (1.0 + DIGITS):
        raise InvalidInputError(
            f"The model was not fitted with C={model.C:g}: coefficients are at most C times the class weight, but its "
            f"largest coefficient is {largest:g}. Give the C of the fit."
        )


def _places(model: Any, X: Any, y: Any, classes: Vector | None) -> Vector:
    """Return the index of the training sample of each support vector."""
    groups: list[tuple[Vector, Vector]]
    if classes is None:
        groups = [(np.arange(len(model.support_)), np.arange(X.shape[0]))]
    else:
        codes = codes_of(model, y)
        if len(codes) != X.shape[0]:
            raise InvalidInputError(
                f"X has {X.shape[0]} samples, but y has {len(codes)}: give one label for each sample."
            )
        ends = np.concatenate([[0], np.cumsum(model._n_support)])
        groups = [(np.arange(ends[c], ends[c + 1]), np.flatnonzero(codes == c)) for c in range(len(classes))]
    places = np.empty(len(model.support_), dtype=np.int64)
    size = _column_sizes(X)
    for members, rows in groups:
        if len(members) > len(rows):
            raise InvalidInputError(
                f"The model has {len(members)} support vectors"
                + (" of a class" if classes is not None else "")
                + f", but there are only {len(rows)} samples"
                + (" of that class" if classes is not None else "")
                + ": give all training samples."
            )
        if len(members):
            places[members] = rows[_match(model.support_vectors_[members], X[rows], size)]
    return _by_target(model, X, real_targets(y), places) if isinstance(model, SVR | NuSVR) else places


def _by_target(model: Any, X: Any, y: Vector, places: Vector) -> Vector:
    """Reassign support vectors among equal samples, so that larger targets get larger coefficients.

    f is the same for equal samples, so at the optimum β does not decrease with y.
    """
    coef = np.ravel(model._dual_coef_.toarray() if sp.issparse(model._dual_coef_) else model._dual_coef_)
    groups: dict[bytes, list[int]] = {}
    for i in range(X.shape[0]):
        row = X[[i]]
        key = row.indices.tobytes() + row.data.tobytes() if sp.issparse(row) else np.asarray(row).tobytes()
        groups.setdefault(key, []).append(i)
    owner = {int(row): i for i, row in enumerate(places)}
    found = places.copy()
    for rows in groups.values():
        members = sorted((i for i in map(owner.get, rows) if i is not None), key=lambda i: coef[i])
        if not members or len(rows) < 2:
            continue
        ranked = sorted(rows, key=lambda i: y[i])
        negative = sum(coef[i] < 0 for i in members)
        # negative coefficients go to the smallest targets, positive ones to the largest
        found[members] = [*ranked[:negative], *ranked[len(ranked) - len(members) + negative :]]
    return found


def _column_sizes(X: Any) -> Vector:
    sizes: Any = abs(X).max(axis=0) if X.shape[0] else np.ones(X.shape[1])
    sizes = np.ravel(sizes.toarray() if sp.issparse(sizes) else sizes).astype(np.float64)
    sizes[sizes == 0] = 1.0
    return sizes


def _match(vectors: Any, X: Any, size: Vector) -> Vector:
    """Match each vector with the nearest unused row of X; equal rows are used in order."""
    # scale features to equal size, so that all of them count
    V: Any = _divided(vectors, size)
    A: Any = _divided(X, size)
    if sp.issparse(V) != sp.issparse(A):
        V, A = _dense(V), _dense(A)
    squares_v, squares_a = _squares(V), _squares(A)
    n, m = A.shape[0], V.shape[0]
    step = max(1, ENTRIES // max(1, n))
    found = np.full(m, -1, dtype=np.int64)
    used = np.zeros(n, dtype=bool)
    for start in range(0, m, step):
        part = slice(start, min(start + step, m))
        distances = squares_v[part, None] + squares_a - 2.0 * _dense(V[part] @ A.T)
        for i, row in enumerate(distances):
            # rounding errors of the products hide smaller differences between distances
            near = np.flatnonzero(row <= row.min() + 1e-11 * (1.0 + squares_v[start + i]) + A.shape[1] * DIGITS**2)
            found[start + i] = _nearest_free(V, A, start + i, near, used, row)
    return found


def _nearest_free(V: Any, A: Any, i: int, near: Vector, used: Vector, distances: Vector) -> int:
    """Return the first unused row that equals a vector to the precision of the file. Edits used."""
    one, rows = _dense(V[[i]]), _dense(A[near])
    off = np.abs(rows - one).max(axis=1, initial=0.0)
    fits = near[(off <= DIGITS) & ~used[near]]
    if len(fits) == 0:
        if np.any(off <= DIGITS):
            raise InvalidInputError(
                f"Support vector {i + 1} occurs more often in the model than among the samples of its class: give all "
                "training samples."
            )
        nearest = int(np.argmin(distances))
        gap = np.abs(_dense(A[[nearest]]) - one)[0]
        raise InvalidInputError(
            f"Support vector {i + 1} of its class is not among the samples: the nearest sample differs from it by up "
            f"to {100 * gap.max():.2g} % of the largest value, in feature {int(gap.argmax()) + 1}. Preprocess the "
            "samples as in the fit: the same scaling, encoding and columns."
        )
    best = off[np.searchsorted(near, fits)]
    # the first of equal rows; else the nearest
    chosen = int(fits[np.argmax(best <= best.min() + 1e-3 * DIGITS)])
    used[chosen] = True
    return chosen


def _divided(M: Any, size: Vector) -> Any:
    return sp.csr_array(M).multiply(1.0 / size).tocsr() if sp.issparse(M) else np.asarray(M) / size


def _dense(M: Any) -> Matrix:
    return np.asarray(M.toarray() if sp.issparse(M) else M)


def _squares(M: Any) -> Vector:
    if sp.issparse(M):
        return np.asarray(M.multiply(M).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", M, M)
