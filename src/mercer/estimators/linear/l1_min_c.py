"""The largest C for which an l1 penalty makes all weights zero."""

from __future__ import annotations

from numbers import Real
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.utils import check_array, check_consistent_length

from mercer._sklearn_compat import Interval, StrOptions, validate_params
from mercer.estimators.linear.source_fit import one_vs_rest
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Csr, Vector
from mercer.linear.feature_working_set import beta_without_weights
from mercer.linear.linear_problem import LinearProblem, Rows
from mercer.losses.classification import classification_loss
from mercer.losses.regression import regression_loss
from mercer.validation import class_weights, find_classes, real_targets, validate_weights

CLASSIFICATION = ("hinge", "squared_hinge", "log")
REGRESSION = ("epsilon_insensitive", "squared_epsilon_insensitive", "pinball")
# a sample closer to a kink of its loss than this, relative to the targets, counts as at the kink
AT_A_KINK = 1e-12


@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "y": ["array-like"],
        "loss": [StrOptions({*CLASSIFICATION, *REGRESSION})],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "penalize_intercept": ["boolean"],
        "l1_ratio": [Interval(Real, 0, 1, closed="right")],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "class_weight": [None, dict, StrOptions({"balanced"})],
        "sample_weight": ["array-like", None],
    },
    prefer_skip_nested_validation=True,
)
def l1_min_c(
    X: Any,
    y: Any,
    *,
    loss: str = "squared_hinge",
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
    penalize_intercept: bool = True,
    l1_ratio: float = 1.0,
    epsilon: float = 0.0,
    quantile: float = 0.5,
    class_weight: Any = None,
    sample_weight: Any = None,
) -> float:
    """The largest C for which all weights of ``LinearSVC`` or ``LinearSVR`` with an l1 penalty are 0.

    For any larger C some weight is not 0. This is scikit-learn's function of the same name, extended to every loss, to
    elastic nets, to sample and class weights, and to a penalised intercept (which counts as a weight), a free one or
    none.

    w = 0 is optimal if C |Σ βᵢ xᵢⱼ| ≤ l1_ratio for each feature j, where −βᵢ is the derivative of the loss of sample i
    at w = 0. For samples at a kink of their loss βᵢ can be chosen; the best choice solves a linear program.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training samples.
    y : array-like of shape (n_samples,)
        Class labels, or target values for the losses of ``LinearSVR``. Several classes are treated one-vs-rest.
    loss : {"squared_hinge", "hinge", "log", "epsilon_insensitive", "squared_epsilon_insensitive", "pinball"}, \
            default="squared_hinge"
        The loss; "log" is that of scikit-learn's LogisticRegression, with a penalised intercept or none.
    fit_intercept, intercept_scaling, penalize_intercept, class_weight : as in ``LinearSVC``.
    l1_ratio : float, default=1.0
        The fraction of the l1 penalty in an elastic net; 1 for penalty="l1".
    epsilon, quantile : as in ``LinearSVR``.
    sample_weight : array-like of shape (n_samples,), default=None
        Factors of C, one per sample.

    Returns
    -------
    C : float
        The largest C for which all weights are 0.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import LinearSVC, l1_min_c
    >>> X, y = load_iris(return_X_y=True)
    >>> C = l1_min_c(X, y > 0)
    >>> for factor in (0.999, 1.001):
    ...     print((LinearSVC(penalty="l1", C=factor * C).fit(X, y > 0).coef_ != 0).sum())
    0
    1
    """
    X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    check_consistent_length(X, y)
    free = fit_intercept and not penalize_intercept
    if loss == "log" and free:
        raise InvalidInputError('loss="log" was given with penalize_intercept=False: this loss needs True here.')
    rows = Rows.of(X, float(intercept_scaling) if fit_intercept and penalize_intercept else 0.0)
    weight = validate_weights(sample_weight, rows.n, X)
    if loss in REGRESSION:
        targets = [(real_targets(y), weight)]
    else:
        classes, codes = find_classes(y)
        of_class = class_weights(class_weight, classes, codes, weight)
        several = len(classes) > 2
        positives = range(len(classes)) if several else (len(classes) - 1,)
        targets = [one_vs_rest(codes, weight, of_class, k, several) for k in positives]
    if loss == "log":
        slopes = [np.abs(rows.tdot(0.5 * price * target)).max(initial=0.0) for target, price in targets]
    else:
        machine = SimpleNamespace(loss=loss, C=1.0, epsilon=epsilon, quantile=quantile)
        form = regression_loss(machine) if loss in REGRESSION else classification_loss(machine)
        slopes = [_least_slope(LinearProblem(rows, form, *target, free)) for target in targets]
    steepest = float(max(slopes))
    if not steepest > 0:
        raise ValueError(
            "Ill-posed l1_min_c calculation: l1 will always select zero coefficients for this data: every column is 0, "
            "or uncorrelated with y."
        )
    return float(l1_ratio) / steepest


def _least_slope(problem: LinearProblem) -> float:
    """The smallest |X'β|_∞ over all β that are optimal at w = 0, with C = 1."""
    qp, rows, zero = problem.qp, problem.rows, np.zeros(problem.n)
    b = problem.loss.best_intercept(problem.y, zero, problem.weight) if problem.intercept else 0.0
    beta, t = beta_without_weights(problem), qp.linear - b
    near = np.abs(np.abs(t) - qp.l1) <= AT_A_KINK * (np.abs(qp.linear) + abs(b) + qp.l1)
    at_kink = np.flatnonzero(near & (qp.ridge == 0) & (qp.lower < qp.upper))
    if len(at_kink) == 0:
        return float(np.abs(rows.tdot(beta)).max(initial=0.0))
    beta[at_kink] = 0.0
    above, below = (t > 0) | (qp.l1 == 0), (t < 0) | (qp.l1 == 0)
    bounds = np.column_stack([np.where(below, qp.lower, 0.0), np.where(above, qp.upper, 0.0)])[at_kink]
    return _least_largest(
        rows.take(at_kink), rows.tdot(beta), bounds, -float(beta.sum()) if problem.intercept else None
    )


def _least_largest(rows: Rows, fixed: Vector, bounds: Vector, total: float | None) -> float:
    """min over β of max |X'β + fixed|, with β within bounds and, if given, of this sum: a linear program."""
    X = rows.X
    A = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape) if isinstance(X, Csr) else sp.csr_array(X)
    A = sp.hstack([A, np.full((rows.n, 1), rows.bias)], format="csr") if rows.bias else A
    A = A.astype(np.float64).T
    ones = np.ones((A.shape[0], 1))
    sides = sp.vstack([sp.hstack([A, -ones]), sp.hstack([-A, -ones])], format="csr")
    cost = np.append(np.zeros(rows.n), 1.0)
    equal = {} if total is None else {"A_eq": np.append(np.ones(rows.n), 0.0)[None, :], "b_eq": [total]}
    found = linprog(
        cost, sides, np.concatenate([-fixed, fixed]), bounds=[*map(tuple, bounds), (0.0, None)], method="highs", **equal
    )
    if found.x is None:
        raise InvalidInputError(
            f"The linear program for the samples at a kink was not solved: {found.message} Scale the columns of X."
        )
    # evaluate β on the data instead of trusting the solver's objective
    return float(np.abs(rows.tdot(found.x[:-1]) + fixed).max(initial=0.0))
