"""Certify a fitted model of mercer or scikit-learn from its coefficients and the data alone.

The primal value is that of the published model: its own w and b (for ν-SVC after LIBSVM's division by the margin). The
dual value is that of a feasible β near the published coefficients. For every feasible β

    dual(β) ≤ optimum ≤ primal(w, b)

so the gap bounds the distance from the optimum, whichever solver fitted the model and wherever it stopped.
"""

from __future__ import annotations

from typing import Any

from mercer.estimators.certification.kernel_machines import certify_problem, fitted_problems
from mercer.estimators.certification.landmark_machines import certify_landmarks
from mercer.estimators.certification.linear_machines import certify_linear
from mercer.estimators.certification.loss_minimisation import certify_erm
from mercer.estimators.certification.manifold_machines import certify_laplacian
from mercer.estimators.certification.ordering_machines import certify_ordering
from mercer.estimators.certification.output_code_machines import certify_output_codes
from mercer.estimators.certification.quantile_machines import certify_quantiles
from mercer.estimators.certification.ridge_regressions import certify_ridge
from mercer.estimators.certification.stochastic_descent import certify_online
from mercer.estimators.fitted_models import (
    ERM,
    KERNEL,
    LINEAR,
    MANIFOLD,
    ONLINE,
    ORDERING,
    SEVERAL,
    check_fitted,
    unwrap,
)
from mercer.problems.solution import Certificate, combine


def certify(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
    """Bound how far a fitted estimator is from the optimum of its own problem on its training data.

    Everything is recomputed in float64, on all rows, from the data and the coefficients. Published coefficients that
    violate a bound or a sum constraint are moved to feasible ones before the dual value is computed, so the gap remains
    a valid bound. The reported infeasibility is that of the published coefficients; so is the KKT violation, except for
    the models of the next paragraph.

    ``LinearSVC``, ``LinearSVR``, ``SGDClassifier`` and a linear ``PegasosClassifier`` publish w but no β. For them, and
    for a ``PegasosClassifier`` with a kernel, mercer solves the problem itself to find β, for at most 20 seconds. Any β
    gives a valid bound and a better β a tighter one, so on very large problems part of the gap may be due to this β.
    The KKT violation is that of the model's decision values together with this β. A machine with ``landmarks`` is
    compared with the exact machine; its landmarks are fitted once more for a β.

    The objective of ridge regression is λ/2 |f|² + ½ Σ w (y - f - b)². The objective of stochastic gradient descent is
    divided by λ (``lam`` or ``alpha``), which gives ½|w|² + Σ C max(0, 1 - yf).

    Parameters
    ----------
    estimator : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR, KernelRidge, KernelRidgeCV, LSSVC,
        OutputCodeSVC, KernelERM, KernelLogisticRegression, ExpectileSVR, QuantileSVR, SVDD, OrdinalSVC, RankSVC,
        SurvivalSVM, LaplacianSVC, PegasosClassifier or SGDClassifier (with a hinge loss), or a pipeline or search that
        ends in one
        From mercer or scikit-learn. For a search, its ``best_estimator_`` is certified.
    X, y, sample_weight : the data that the estimator was fitted to, in the same order.
        For a pipeline, the data that the pipeline was given. Samples without positive weight are left out, as in fit.

    Returns
    -------
    certificate : Certificate
        With several classes it certifies the sum of all pairwise problems (one-vs-rest problems for linear and online
        machines), with several targets the sum over the targets.

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
    if hasattr(estimator, "landmarks_"):
        return certify_landmarks(kind, estimator, X, y, sample_weight)
    if kind.name in KERNEL:
        return combine([certify_problem(fitted) for fitted in fitted_problems(estimator, X, y, sample_weight)])
    if kind.name in SEVERAL:
        several = certify_quantiles if kind.name == "QuantileSVR" else certify_output_codes
        return several(estimator, X, y, sample_weight)
    if kind.name in ERM:
        return certify_erm(kind, estimator, X, y, sample_weight)
    if kind.name in MANIFOLD:
        return certify_laplacian(estimator, X, y, sample_weight)
    if kind.name in ORDERING:
        return certify_ordering(kind, estimator, X, y, sample_weight)
    certified = certify_linear if kind.name in LINEAR else certify_online if kind.name in ONLINE else certify_ridge
    return certified(kind, estimator, X, y, sample_weight)
