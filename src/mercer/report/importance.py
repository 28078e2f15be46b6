"""Which inputs matter: what a score loses without a column, and how steep the decision is along a feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.inspection import permutation_importance

from mercer.exceptions import InvalidInputError, MercerError
from mercer.io.machines import plain_model
from mercer.kernels.features import Matrix, Vector, as_matrix
from mercer.workflow.training import Outcome

# samples and repeats of the permutations
SAMPLES, REPEATS = 500, 5
# numbers of one problem's gradients at a time
ENTRIES = 5_000_000


def permuted(outcome: Outcome) -> list[tuple[str, float, float]]:
    """(column, mean loss of score, its spread) where the column's cells are shuffled, the largest first."""
    samples = outcome.samples
    if samples.kind == "strings":
        return []
    n = len(samples)
    chosen = np.random.default_rng(0).permutation(n)[:SAMPLES]
    X, y = samples.X, np.asarray(samples.y)[chosen]
    if samples.kind == "table":
        names = [c.name for c in samples.columns if c.kind != "left out"]
        part = X[names].iloc[chosen]
    else:
        if X.shape[1] > 200 or hasattr(X, "toarray"):
            return []
        names, part = [f"feature {j}" for j in range(X.shape[1])], X[chosen]
    found = permutation_importance(outcome.model, part, y, n_repeats=REPEATS, random_state=0)
    order = np.argsort(-found.importances_mean)
    return [(names[j], float(found.importances_mean[j]), float(found.importances_std[j])) for j in order]


def decision_gradients(model: Any, X: Any) -> Matrix:
    """∂f/∂x, exact, at each sample, for each decision value of a fitted model.

    Parameters
    ----------
    model : fitted estimator
        With any kernel on vectors, or linear; or a pipeline of StandardScaler, MinMaxScaler and MaxAbsScaler and one.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Where the slopes are taken.

    Returns
    -------
    gradients : ndarray of shape (n_problems, n_samples, n_features)
        One problem for two classes (of ``decision_function``), a regression or a novelty detector; one for each pair of
        classes, or for each class, of others.

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.report import decision_gradients
    >>> model = SVC(kernel="linear").fit([[0.0, 5.0], [2.0, 5.0]], [0, 1])
    >>> decision_gradients(model, [[3.0, 4.0]])
    array([[[1., 0.]]])
    """
    try:
        plain = plain_model(model)
    except InvalidInputError:
        raise InvalidInputError(
            f"{type(model).__name__} has no gradients here: machines that compare vectors have, whose kernel is a "
            "formula, alone or behind scalers."
        ) from None
    X = as_matrix(X)
    if X.shape[1] != plain.n_features:
        raise InvalidInputError(f"X has {X.shape[1]} features, but the model was fitted to {plain.n_features}.")
    scale = np.ones(plain.n_features) if plain.scale is None else plain.scale
    if plain.weights is not None:
        slopes = plain.weights * scale
        return np.repeat(slopes[:, None, :], X.shape[0], axis=1)
    assert plain.kernel is not None and plain.coef is not None
    if plain.scale is not None:
        X = (X.toarray() if sp.issparse(X) else X) * scale + plain.shift
    found = [
        plain.kernel.sample_gradients(X, plain.vectors, np.broadcast_to(coef, (X.shape[0], len(coef))))
        for coef in plain.coef
    ]
    return np.stack(found) * scale


def steepness(outcome: Outcome) -> Vector | None:
    """The root mean square over samples of ∂f/∂x_j, exact, for each feature as the machine sees it; None if unknown.

    For several decision functions their root mean square, too.
    """
    X = outcome.prepared
    if not hasattr(X, "shape") or X.shape[1] == 0:
        return None
    n, d = X.shape
    chosen = np.random.default_rng(0).permutation(n)[:SAMPLES]
    step = max(1, ENTRIES // d)
    squares, count = np.zeros(d), 0
    try:
        for start in range(0, len(chosen), step):
            gradients = decision_gradients(outcome.machine, X[chosen[start : start + step]])
            squares += np.square(gradients).sum(axis=(0, 1))
            count += gradients.shape[0] * gradients.shape[1]
    except MercerError:  # the machine is none of vectors
        return None
    return np.asarray(np.sqrt(squares / count))
