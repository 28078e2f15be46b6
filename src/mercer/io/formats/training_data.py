"""Which training samples the support vectors of a model are, where its file does not say."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.estimators import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from mercer.estimators.kinds import codes_of
from mercer.exceptions import InvalidInputError
from mercer.io.formats.from_parts import assemble
from mercer.kernels.features import Matrix, Vector, as_matrix
from mercer.validation import real_targets

# what no file says of each machine
NEEDED: dict[type, tuple[str, ...]] = {
    SVC: ("C",),
    NuSVC: ("nu",),
    SVR: ("C", "epsilon"),
    NuSVR: ("C", "nu"),
    OneClassSVM: ("nu",),
    LinearSVC: ("C",),
    LinearSVR: ("C", "epsilon"),
}
# how far a support vector may be from its sample, relative to the largest number of each feature: float32, or 8 digits
DIGITS = 2e-6
# kernel values between support vectors and samples at a time
ENTRIES = 4_000_000


def with_training_data(
    model: Any, X: Any, y: Any = None, *, class_weight: dict[Any, float] | None = None, **parameters: float
) -> Any:
    """A model that was read from a file of LIBSVM, LIBLINEAR or ONNX, with what these files leave out.

    They keep neither C, ε and ν nor which samples the support vectors are. Each support vector is looked for among the
    samples of its class, to the digits that such files have; ``mercer.certify`` then tells how far the model is from
    its optimum. It is judged with the samples themselves instead of their rounded copies.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC or LinearSVR
        As ``mercer.io.libsvm.read_model`` or ``mercer.io.onnx.read_onnx`` returns it.
    X, y : the samples that it was fitted to, as they were then (scaled, for instance).
    class_weight : dict, default=None
        The weights of classes by label, where they were not 1.
    parameters : C, epsilon, nu
        Those that the model was fitted with: C of an SVC, C and epsilon of an SVR, nu of a NuSVC or OneClassSVM, C and
        nu of a NuSVR.

    Returns
    -------
    model : the same class
        A copy that knows its training samples.

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
        raise InvalidInputError(f"A {type(model).__name__} says itself what it was fitted to.")
    missing = [name for name in needed if parameters.get(name) is None]
    surplus = [name for name, value in parameters.items() if value is not None and name not in needed]
    if missing or surplus:
        raise InvalidInputError(
            f"The file does not say with which {' and '.join(needed)} this {type(model).__name__} was fitted: "
            + (f"give {' and '.join(missing)}." if missing else f"{surplus[0]} is not one of its parameters.")
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
        found.shape_fit_ = (len(X), len(X))  # the file has the numbers of the samples
        return found
    X = as_matrix(X)
    if X.shape[1] != found.n_features_in_:
        raise InvalidInputError(
            f"The samples have {X.shape[1]} features, but the support vectors have {found.n_features_in_}: give the "
            "samples as they were when the model was fitted."
        )
    support = _places(found, X, y, classes)
    vectors = X[support]
    coef = found._dual_coef_.toarray() if sp.issparse(found._dual_coef_) else found._dual_coef_
    _check_bounds(found, coef)
    kept = {name: getattr(found, name, None) for name in ("_probA", "_probB", "class_weight_", "certificate_")}
    assemble(
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
            raise InvalidInputError(f"The weight of {label!r} was given, but the classes are {classes.tolist()}.")
        weights[places] = float(weight)
    return weights


def _check_bounds(model: Any, coef: Matrix) -> None:
    """A coefficient above C says that C is another one."""
    if not isinstance(model, SVC | SVR):
        return
    factor = model.C * float(np.max(getattr(model, "class_weight_", 1.0)))
    largest = float(np.abs(coef).max(initial=0.0))
    if largest > factor * (1.0 + DIGITS):
        raise InvalidInputError(
            f"C={model.C:g} cannot be what the model was fitted with: its largest coefficient is {largest:g}, and C "
            "times the weight of the class bounds them all."
        )


def _places(model: Any, X: Any, y: Any, classes: Vector | None) -> Vector:
    """The sample that each support vector is."""
    groups: list[tuple[Vector, Vector]]
    if classes is None:
        groups = [(np.arange(len(model.support_)), np.arange(X.shape[0]))]
    else:
        codes = codes_of(model, y)
        if len(codes) != X.shape[0]:
            raise InvalidInputError(f"X has {X.shape[0]} samples, y {len(codes)}.")
        ends = np.concatenate([[0], np.cumsum(model._n_support)])
        groups = [(np.arange(ends[c], ends[c + 1]), np.flatnonzero(codes == c)) for c in range(len(classes))]
    places = np.empty(len(model.support_), dtype=np.int64)
    size = _column_sizes(X)
    for members, rows in groups:
        if len(members) > len(rows):
            raise InvalidInputError(
                f"The model has {len(members)} support vectors where there are {len(rows)} samples"
                + (" of their class" if classes is not None else "")
                + ": give all samples that it was fitted to."
            )
        if len(members):
            places[members] = rows[_match(model.support_vectors_[members], X[rows], size)]
    return _by_target(model, X, real_targets(y), places) if isinstance(model, SVR | NuSVR) else places


def _by_target(model: Any, X: Any, y: Vector, places: Vector) -> Vector:
    """The same samples, but that of equal ones with other targets larger ones have larger coefficients.

    At the optimum they have: the function is the same for all of them, so that β does not fall with y.
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
        # the negative ones from below, the others from above, those without a coefficient between them
        found[members] = [*ranked[:negative], *ranked[len(ranked) - len(members) + negative :]]
    return found


def _column_sizes(X: Any) -> Vector:
    sizes: Any = abs(X).max(axis=0) if X.shape[0] else np.ones(X.shape[1])
    sizes = np.ravel(sizes.toarray() if sp.issparse(sizes) else sizes).astype(np.float64)
    sizes[sizes == 0] = 1.0
    return sizes


def _match(vectors: Any, X: Any, size: Vector) -> Vector:
    """Of each vector the nearest row of X that is not yet another one's: equal rows in their order."""
    # features of one size, so that each of them counts
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
            # rounding of the products hides distances below it
            near = np.flatnonzero(row <= row.min() + 1e-11 * (1.0 + squares_v[start + i]) + A.shape[1] * DIGITS**2)
            found[start + i] = _nearest_free(V, A, start + i, near, used, row)
    return found


def _nearest_free(V: Any, A: Any, i: int, near: Vector, used: Vector, distances: Vector) -> int:
    """The first row, of those that are equal to a vector to its digits, that is free. Edits used."""
    one, rows = _dense(V[[i]]), _dense(A[near])
    off = np.abs(rows - one).max(axis=1, initial=0.0)
    fits = near[(off <= DIGITS) & ~used[near]]
    if len(fits) == 0:
        if np.any(off <= DIGITS):
            raise InvalidInputError(
                f"Support vector {i + 1} occurs more often in the model than among the samples of its class: give all "
                "samples that it was fitted to."
            )
        nearest = int(np.argmin(distances))
        gap = np.abs(_dense(A[[nearest]]) - one)[0]
        raise InvalidInputError(
            f"Support vector {i + 1} of its class is not among the samples: the nearest one differs from it by up to "
            f"{100 * gap.max():.2g} % of the largest value, in feature {int(gap.argmax()) + 1}. Give the samples as "
            "they were when the model was fitted: scaled, encoded and in the same columns."
        )
    best = off[np.searchsorted(near, fits)]
    # equal rows, in their order; else the one that is nearer
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
