"""Certificates of PegasosClassifier and of scikit-learn's SGDClassifier with a hinge loss.

Stochastic gradient descent minimises λ R(w) + (1/W) Σ weightᵢ ℓ(yᵢ, f(xᵢ)). Divided by λ this is the problem of a
linear machine with Cᵢ = weightᵢ / (λW). In Pegasos b is the weight of a constant feature ([D6] Note 26); in
scikit-learn b is free. mercer's exact solvers find β.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from mercer._sklearn_compat import compute_class_weight
from mercer.estimators.certification.linear_machines import certify_weights
from mercer.estimators.fitted_models import Kind, codes_of, different_classes
from mercer.estimators.linear.source_fit import one_vs_rest
from mercer.estimators.psd_check import seems_psd
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import budget_bytes
from mercer.gram.operator import Data
from mercer.kernels import Precomputed
from mercer.kernels.features import Matrix, Vector, count_samples
from mercer.linear.linear_problem import LinearProblem, Penalty, Rows
from mercer.losses import Hinge, Loss, SquaredHinge
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem, violation
from mercer.problems.solution import NOT_PSD, Certificate, Options, combine, with_dual
from mercer.svm.solve import solve
from mercer.validation import call_kernel, thread_count, validate_samples, validate_vectors, validate_weights

# the solver that finds β stops at this violation, or after this many seconds
TOL = 1e-6
SECONDS = 10.0


def certify_online(kind: Kind, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The certificate of the objective divided by λ, summed over one-vs-rest problems."""
    if kind.name == "SGDClassifier":
        return _certify_sgd(estimator, X, y, sample_weight)
    codes = codes_of(estimator, y)
    function = estimator._function_samples is not None
    samples = call_kernel(estimator.kernel, X, X) if function else validate_samples(estimator, X, None, reset=False)[0]
    n = count_samples(samples)
    weight = validate_weights(sample_weight, n, X) * estimator.class_weight_[codes]
    present = np.unique(codes[weight > 0])
    if len(present) < 2:
        raise different_classes(len(estimator.classes_), len(present))
    price = weight / (float(estimator.lam) * weight.sum())
    signs, b = estimator._signs(codes), estimator.intercept_
    if estimator._is_linear:
        rows = Rows.of(samples, float(estimator.fit_intercept))
        W = np.column_stack([estimator.coef_, b]) if estimator.fit_intercept else estimator.coef_
        seconds = SECONDS / len(W)
        linear = [LinearProblem(rows, Hinge(), y_k, price, False, Penalty()) for y_k in signs]
        found = [certify_weights(p, w, 0.0, seconds) for p, w in zip(linear, W, strict=True)]
    else:
        f, squares = _kernel_values(estimator, X, n)
        used = np.flatnonzero(price > 0)
        data = _with_constant(estimator, samples, n).take(used)
        problems = [DualProblem(None, Hinge(), y_k[used], price[used], False) for y_k in signs]
        found = [
            _certify_with_kernel(
                data, problem, f_k[used], float(square), thread_count(estimator.n_jobs), SECONDS / len(signs)
            )
            for problem, f_k, square in zip(problems, f, squares, strict=True)
        ]
    return _together(found)


def _together(found: list[Certificate]) -> Certificate:
    return combine(found, of=f"{len(found)} one-vs-rest problems" if len(found) > 1 else None)


def _kernel_values(estimator: Any, X: Any, n: int) -> tuple[Matrix, Vector]:
    """For each problem: a row with f of every sample, and |w|² including the constant feature."""
    b, coef = estimator.intercept_, estimator.dual_coef_
    f = np.asarray(estimator.decision_function(X), dtype=np.float64).reshape(n, -1).T
    if coef.shape[1] == 0:
        at = np.zeros(coef.shape)
    elif estimator._kernel.domain != "matrix":
        at = np.asarray(estimator.decision_function(estimator.support_vectors_)).reshape(coef.shape[1], -1).T
    elif n != estimator.shape_fit_[0]:
        raise InvalidInputError(
            f"X has {n} samples, but the estimator was fitted to {estimator.shape_fit_[0]}: pass the training data, in "
            "the same order."
        )
    else:
        at = f[:, estimator.support_]
    squares = np.maximum(0.0, np.einsum("ij,ij->i", coef, at - b[:, None]))
    return f, squares + (b**2 if estimator.fit_intercept else 0.0)


def _with_constant(estimator: Any, samples: Any, n: int) -> Data:
    """The samples and the kernel, plus 1 for the constant feature if there is an intercept."""
    kernel = Precomputed() if estimator._function_samples is not None else estimator._kernel
    data = Data(kernel + 1.0 if estimator.fit_intercept else kernel, samples, n)
    data.psd = data.psd and seems_psd(data)
    return data


def _certify_with_kernel(
    data: Data, problem: DualProblem, f: Vector, squared_norm: float, n_threads: int, seconds: float
) -> Certificate:
    """Certify one problem: primal value from the model's decision values, dual value from the exact solver's β."""
    none = np.empty(0)
    primal = problem.loss.primal(squared_norm, problem.y, f, problem.weight, none, none)
    options = Options(tol=TOL, n_threads=n_threads, budget=budget_bytes("auto"))
    solution = solve(data, problem, options, Clock(seconds))
    shown = Certificate(
        primal=float(primal),
        dual=solution.certificate.dual,
        gap=np.inf,
        relative_gap=np.inf,
        kkt_violation=violation(problem.qp, solution.beta, f),
        infeasibility=solution.certificate.infeasibility,
        valid=True,
        of=problem.loss.name,
    )
    return with_dual(shown, solution.certificate.dual, "" if data.psd else NOT_PSD)


def _certify_sgd(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """scikit-learn's SGDClassifier: its loss is Σ weightᵢ ℓᵢ / n, even if the weights do not sum to n."""
    loss, penalty = _sgd_loss(estimator), _sgd_penalty(estimator)
    X, _ = validate_vectors(estimator, X, None, reset=False)
    codes, classes = codes_of(estimator, y), estimator.classes_
    weight = validate_weights(sample_weight, X.shape[0], X)
    of_class = compute_class_weight(estimator.class_weight, classes=classes, y=column_or_1d(y))
    several = len(classes) > 2
    W, b = np.atleast_2d(estimator.coef_), np.ravel(estimator.intercept_)
    positives = range(len(classes)) if several else [1]
    if len(W) != len(positives):
        raise different_classes(len(W), len(classes))
    rows, found = Rows.of(X), []
    for k, w, b_k in zip(positives, W, b, strict=True):
        target, price = one_vs_rest(codes, weight, of_class, int(k), several)
        price = price / (float(estimator.alpha) * X.shape[0])
        problem = LinearProblem(rows, loss, target, price, bool(estimator.fit_intercept), penalty)
        found.append(certify_weights(problem, np.asarray(w, np.float64), float(b_k), SECONDS / len(W)))
    return _together(found)


def _sgd_loss(estimator: Any) -> Loss:
    known: dict[str, Loss] = {"hinge": Hinge(), "squared_hinge": SquaredHinge()}
    if estimator.loss not in known:
        raise InvalidInputError(
            f"certify supports SGDClassifier with loss 'hinge' or 'squared_hinge', but this one has "
            f"loss={estimator.loss!r}."
        )
    return known[estimator.loss]


def _sgd_penalty(estimator: Any) -> Penalty:
    if estimator.penalty is None or not estimator.alpha > 0:
        raise InvalidInputError(
            f"An SGDClassifier with penalty={estimator.penalty!r} and alpha={estimator.alpha:g} has no certificate: "
            "without a penalty on w its dual has no solution in general."
        )
    ratio = float(estimator.l1_ratio) if estimator.penalty == "elasticnet" else float(estimator.penalty == "l1")
    return Penalty(l1=ratio, l2=1.0 - ratio)
