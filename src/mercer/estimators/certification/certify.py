"""Judge a fitted model, mercer's own or scikit-learn's, from its coefficients and the data alone.

The primal is the value of the model as it is published: its own w and b, and for ν-SVC the margin 1 that LIBSVM
divides by. The dual is the value at a feasible β next to the published coefficients. For every feasible β

    dual(β) ≤ optimum ≤ primal(w, b)

so the gap bounds how far the model is from the optimum, whatever solver made it and wherever it stopped.
"""

from __future__ import annotations

from typing import Any

from mercer.estimators.certification.kernel_machines import certify_problem, fitted_problems
from mercer.estimators.certification.linear_machines import certify_linear
from mercer.estimators.certification.ridge_regressions import certify_ridge
from mercer.estimators.certification.stochastic_descent import certify_online
from mercer.estimators.fitted_models import KERNEL, LINEAR, ONLINE, check_fitted, unwrap
from mercer.problems.certificate import Certificate, combine


def certify(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
    """How far a fitted estimator is from the optimum of its own problem on its training data.

    Everything is recomputed in float64, on all rows, from the data and the coefficients. The infeasibility and, but for
    linear models, the KKT violation are those of the published coefficients. Where these miss a bound or a sum, they
    are moved to feasible ones for the dual value, so that the gap remains a bound.

    ``LinearSVC``, ``LinearSVR``, ``SGDClassifier`` and a linear ``PegasosClassifier`` publish w, but no β. Theirs is
    looked for, as is that of a ``PegasosClassifier`` with a kernel: mercer solves the problem, for at most 20 seconds.
    Any β gives a bound, and a better one a sharper bound; on very large problems part of the gap may be due to β. Their
    KKT violation is that of the model's decision values with this β.

    The values of ridge regressions are those of λ/2 |f|² + ½ Σ w (y - f - b)², those of stochastic gradient descent of
    its objective divided by λ (``lam`` or ``alpha``), which is ½|w|² + Σ C max(0, 1 - yf).

    Parameters
    ----------
    estimator : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR, KernelRidge, KernelRidgeCV,
        PegasosClassifier or SGDClassifier (with a hinge loss), or a pipeline or search that ends in one
        Of mercer or of scikit-learn. Of a search, its ``best_estimator_`` is judged.
    X, y, sample_weight : the data that it was fitted to, in the same order; for a pipeline, what it was given.
        Samples whose weight is not positive are left out, as in fit.

    Returns
    -------
    certificate : Certificate
        For several classes, of the sum of the pairwise (linear and online machines: one-vs-rest) problems; for several
        targets, of their sum.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from mercer import certify
    >>> X, y = load_iris(return_X_y=True)
    >>> certify(SVC().fit(X, y), X, y).relative_gap < 1e-3
    True
    """
    estimator, X, _ = unwrap(estimator, X)
    kind = check_fitted(estimator, X, y)
    if kind.name in KERNEL:
        return combine([certify_problem(fitted) for fitted in fitted_problems(estimator, X, y, sample_weight)])
    certified = certify_linear if kind.name in LINEAR else certify_online if kind.name in ONLINE else certify_ridge
    return certified(kind, estimator, X, y, sample_weight)
