"""``mercer.explain``: Shapley values of the decision functions of a fitted model."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from mercer.exceptions import InvalidInputError
from mercer.explanation.exact_values import exact_values, method_of
from mercer.explanation.explained_model import ExplainedModel, explained_model
from mercer.explanation.explanation import Explanation
from mercer.explanation.hybrid_rows import as_rows, choose_background, is_frame, numbers
from mercer.explanation.sampled_values import enumerated_values, permutation_values
from mercer.kernels.features import Matrix, Vector
from mercer.validation import thread_count

# the largest number of features whose 2^d coalitions may be enumerated
MOST_ENUMERATED = 20


def explain(
    model: Any,
    X: Any,
    background: Any = None,
    *,
    n_samples: int = 25,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Explanation:
    """Compute φ_j(x) = Σ_S |S|! (d - |S| - 1)! / d! (v(S ∪ j) - v(S)), Shapley's value of each feature j at each row x.

    v(S) is the mean of f over rows with the features S of x and the other features of a background row
    ("interventional"). The values of a row and the base, the mean of f over the background rows, add up to f(x).

    They are exact, up to rounding, for linear machines, for kernels that are products over features (Gaussian,
    Laplacian, chi², periodic, with one width or one per feature), sums over features (linear, Min, additive chi²) or
    polynomials of such a sum, for any kernel on a single column, and for sums, multiples, whole powers and most
    products of these. A product costs O(rows · background rows · support vectors · d²). For other kernels, and for
    pipelines with other steps than scalers, f is called with rows made of x and of background rows: for all 2^d
    coalitions if that takes no more calls than permutations would, which is exact, else for random permutations, with
    a standard error.

    Parameters
    ----------
    model : fitted estimator
        A machine of mercer on vectors or tables, a pipeline that ends in one, or a search; also other estimators with
        ``decision_function`` or, for regression, ``predict``. A pipeline is explained in the features that it is
        given: StandardScaler, MinMaxScaler and MaxAbsScaler are part of the formulas.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The rows to explain.
    background : array-like of shape (n_background, n_features), "mean" or None, default=None
        The rows with which features are replaced, a sample of the data, such as 100 rows of the training data. None
        takes at most 100 of the rows that the model keeps (support vectors; all training rows for ridge regression and
        Gaussian processes), evenly spaced, and if it keeps none in the space of X (linear machines, pipelines with
        other steps than scalers), at most 100 rows of X, if it has more than one. "mean" is one row, the mean of all
        these rows.
    n_samples : int, default=25
        Pairs of permutations for each row and background row, at least 2, if the values are sampled.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the permutations. None gives the same values each time.
    n_jobs : int or None, default=None
        Threads; None is all cores.

    Returns
    -------
    explanation : Explanation
        Values, base and how they were computed. The functions are those of ``decision_function`` (of regressions,
        ``predict``). An SVC of more than two classes has one for each pair of classes, as
        ``decision_function_shape="ovo"`` gives them, positive for the first class; its values per class
        (``"ovr"``) count votes and are not explained.

    See Also
    --------
    SVC.feature_importances_ : one number per feature, without rows to explain.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR, explain
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> model = SVR(gamma=0.3).fit(X, X[:, 0] ** 2 + X[:, 1])
    >>> found = explain(model, X[:4], background=X)
    >>> found
    Explanation(4 rows × 3 features, exact by quadrature, 80 background rows)
    >>> bool(np.allclose(found.values.sum(axis=1) + found.base, model.predict(X[:4])))
    True
    """
    if not isinstance(n_samples, Integral) or n_samples < 2:
        raise InvalidInputError(f"n_samples={n_samples!r} must be a whole number, at least 2.")
    known = explained_model(model)
    rows = _checked(as_rows(X), "X")
    fx = known.values(X)  # also validates X as the model does
    others = choose_background(background, rows, known.kept_rows())
    others = _like(_checked(others, "background", rows.shape[1]), rows)
    base = known.values(others).mean(axis=0)
    error: Matrix | None = None
    if known.formula:
        values, method = _by_formula(known, numbers(rows), numbers(others), thread_count(n_jobs))
    elif rows.shape[1] <= MOST_ENUMERATED and 2 ** rows.shape[1] <= 2 * rows.shape[1] * n_samples:
        values, method = enumerated_values(known.values, rows, others), "enumeration"
    else:
        values, error = permutation_values(known.values, rows, others, int(n_samples), _generator(random_state))
        method = "permutations"
    return _published(known, X, rows, values, error, base, fx, method, others.shape[0])


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(0 if random_state is None else random_state).randint(2**31 - 1))


def has_formula(model: Any) -> bool:
    """Whether `explain` has an exact formula for this model, so that it need not call the model often."""
    try:
        known = explained_model(model)
    except InvalidInputError:
        return False
    return known.formula


def _by_formula(known: ExplainedModel, X: Matrix, others: Matrix, n_threads: int) -> tuple[Matrix, str]:
    """The exact values of a linear or kernel machine, after scaling if there is any."""
    plain = known.plain
    assert plain is not None
    if plain.scale is not None and plain.shift is not None:
        X, others = X * plain.scale + plain.shift, others * plain.scale + plain.shift
    if plain.weights is not None:
        return (X - others.mean(axis=0))[:, :, None] * plain.weights.T, "a linear formula"
    assert known.terms is not None and plain.vectors is not None and plain.coef is not None
    values = exact_values(known.terms, X, others, plain.vectors, plain.coef, n_threads)
    return values, method_of(known.terms)


def _published(
    known: ExplainedModel, X: Any, rows: Any, values: Matrix, error: Matrix | None, base: Vector, fx: Matrix,
    method: str, n_background: int,
) -> Explanation:  # fmt: skip
    error, exact = np.zeros_like(values) if error is None else error, error is None
    names = known.output_names(values.shape[2])
    single = values.shape[2] == 1
    return Explanation(
        values=values[:, :, 0] if single else values,
        base=float(base[0]) if single else base,
        data=np.asarray(rows),
        feature_names=_feature_names(known.model, X, values.shape[1]),
        exact=exact,
        error=error[:, :, 0] if single else error,
        method=method,
        output_names=names,
        n_background=n_background,
        outputs=fx[:, 0] if single else fx,
    )


def _feature_names(model: Any, X: Any, d: int) -> tuple[str, ...]:
    names = list(X.columns) if is_frame(X) else getattr(model, "feature_names_in_", None)
    return tuple(f"x{j}" for j in range(d)) if names is None or len(names) != d else tuple(map(str, names))


def _checked(rows: Any, name: str, d: int | None = None) -> Any:
    """Raise unless these are rows, at least one, with d features."""
    if len(rows.shape) != 2 or 0 in rows.shape:
        raise InvalidInputError(
            f"{name} has the shape {tuple(rows.shape)}, but explain needs rows and columns, at least one of each. "
            "Pass a matrix; a single row x as [x]."
        )
    if d is not None and rows.shape[1] != d:
        raise InvalidInputError(
            f"The background has {rows.shape[1]} features, but X has {d}: give background rows with the columns of X."
        )
    return rows


def _like(others: Any, rows: Any) -> Any:
    """The background as a data frame if X is one."""
    if not is_frame(rows):
        return as_rows(numbers(others) if is_frame(others) or sp.issparse(others) else others)
    if is_frame(others):  # in the order of the columns of X
        missing = [name for name in rows.columns if name not in list(others.columns)]
        if missing:
            raise InvalidInputError(f"The background has no column {missing[0]!r}: give one with the columns of X.")
        return others[list(rows.columns)]
    return type(rows)(dict(zip(rows.columns, np.asarray(others).T, strict=True)))
