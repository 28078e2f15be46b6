"""Leave-one-out predictions of a fitted machine: exact, or estimated without another fit.

Leaving out a sample with β = 0 does not change the solution, so only support vectors need a new solution. Let M be the
kernel matrix of the free support vectors, bordered by ones if there is an intercept. If leaving out i changes no other
state (zero, free, bound), the solution without i follows from M⁻¹ alone:

    f₋ᵢ(xᵢ) = f(xᵢ) − βᵢ Sᵢ²,      Sᵢ² = 1/(M⁻¹)ᵢᵢ − ridgeᵢ if i is free,   k(xᵢ, xᵢ) − v'M⁻¹v if not

where v is the column that i would have in M.

Sᵢ is the span of Vapnik & Chapelle, Neural Computation 12 (2000); Chapelle, Vapnik, Bousquet & Mukherjee, Machine
Learning 46 (2002). The exact method starts the solver at this solution, which often is already optimal.

The ξα estimate counts the samples with 2αᵢR² + ξᵢ ≥ 1, R² = max k(x, x) − k(x, z): all other samples are still correct
when left out. Joachims, "Estimating the generalization performance of an SVM efficiently", ICML (2000). Without an
intercept, α k(x, x) replaces 2αR² (Jaakkola & Haussler, 1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.thread_pool import run_tasks
from mercer.estimators.base import warn_user
from mercer.estimators.certification.kernel_machines import fitted_problems
from mercer.estimators.prediction import votes
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes
from mercer.kernels.features import Matrix, Vector
from mercer.losses import Hinge
from mercer.problems.clock import Clock
from mercer.problems.solution import Options
from mercer.selection.calibration.prediction_mixins import problem_values
from mercer.selection.left_out_problem import LeftOutProblem
from mercer.svm.batch import class_pairs
from mercer.validation import real_targets, thread_count, validate_weights

METHODS = ("exact", "span", "xi-alpha")
# fraction of the available memory for the kernel matrices of all problems
MEMORY = 0.25


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """The result of ``leave_one_out``.

    Attributes
    ----------
    method : "exact", "span" or "xi-alpha".
    error : the weighted fraction of samples that are wrong when left out ("xi-alpha": that may be wrong); for
        regression the mean squared error.
    wrong : for a classifier, whether each sample is (may be) wrong when left out.
    predictions : the label or value of each sample from the machine without it; None for "xi-alpha".
    decision_function : its decision value: one for two classes, positive for the second; one per pair for several
        classes. None for "xi-alpha".
    n_support : the number of samples that are support vectors in some problem.
    n_solved : the number of solved problems.
    complete : whether all problems were solved in time; if not, the span estimate is used for the others.

    Examples
    --------
    >>> from mercer import SVC, leave_one_out
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> leave_one_out(SVC(kernel="linear").fit(X, y), X, y).error
    0.0
    """

    method: str
    error: float
    wrong: NDArray[np.bool_] | None
    predictions: NDArray[Any] | None
    decision_function: Matrix | None
    n_support: int
    n_solved: int
    complete: bool = True

    def __str__(self) -> str:
        n = len(self.wrong) if self.wrong is not None else len(self.predictions if self.predictions is not None else ())
        what = "mean squared error" if self.wrong is None else "error"
        how = {
            "exact": f"exact, {self.n_solved} problems solved",
            "span": "span estimate",
            "xi-alpha": "upper bound by ξα",
        }[self.method]
        unfinished = "" if self.complete else "; out of time, the rest by the span"
        return (
            f"leave-one-out {what} {self.error:.4g} on {n} samples, {self.n_support} of them support vectors "
            f"({how}{unfinished})"
        )


def leave_one_out(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    method: str = "exact",
    tol: float = 1e-4,
    time_limit: float | None = None,
) -> LeaveOneOut:
    """The leave-one-out error of a fitted machine, without fitting it once per sample.

    Parameters that depend on the data, such as ``gamma="scale"`` and ``class_weight="balanced"``, keep the values of
    the fit.

    Parameters
    ----------
    model : fitted SVC or SVR
        From mercer or scikit-learn; of a fitted search, its ``best_estimator_``.
    X, y, sample_weight : the data that the model was fitted to, in the same order.
    method : {"exact", "span", "xi-alpha"}, default="exact"
        "exact" solves the problem without each support vector, starting from the span estimate. "span" returns the span
        estimate. "xi-alpha" is an upper bound on the error of a classifier with hinge loss (Joachims 2000); it is 1 if
        the machine has an intercept but no free support vector, which the theorem needs. The last two cost less
        than a fit.
    tol : float, default=1e-4
        Largest violation of the optimality conditions in the solved problems.
    time_limit : float or None, default=None
        After this many seconds "exact" uses the span estimate for the remaining samples, with a warning.

    Returns
    -------
    report : LeaveOneOut
        Prints as text; its numbers are attributes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC, leave_one_out
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10).fit(X, y)
    >>> print(leave_one_out(model, X, y))
    leave-one-out error 0.02667 on 150 samples, 27 of them support vectors (exact, 29 problems solved)
    >>> float(leave_one_out(model, X, y, method="xi-alpha").error) >= 0.0267
    True
    """
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, SVC | SVR | svm.SVC | svm.SVR):
        raise InvalidInputError(
            f"leave_one_out supports SVC and SVR, but was given {type(model).__name__}: use cross-validation, or "
            "KernelRidgeCV and LSSVC(leave_one_out=True), which have leave-one-out values in closed form."
        )
    if method not in METHODS:
        raise InvalidInputError(f"method={method!r} is not known: use one of {', '.join(map(repr, METHODS))}.")
    fitted = fitted_problems(model, X, y, sample_weight)
    if method == "xi-alpha" and not all(isinstance(p.problem.loss, Hinge) for p in fitted):
        raise InvalidInputError("The xi-alpha bound needs a classifier with hinge loss and a finite C: use 'exact'.")
    weight = validate_weights(sample_weight, fitted[0].machine.data.n, X)
    options = Options(tol=tol, time_limit=time_limit, n_threads=thread_count(getattr(model, "n_jobs", None)))
    with Clock(time_limit) as clock, one_blas_thread():
        whole = sum(8 * len(p.rows) ** 2 for p in fitted) <= MEMORY * available_bytes()
        problems = [LeftOutProblem(p, whole, options, clock) for p in fitted]
        if method == "xi-alpha":
            return _flagged(problems, weight)
        report = _left_out(model, X, y, problems, weight, method)
    if not report.complete:
        reason = "it was interrupted" if clock.interrupted else f"time_limit={time_limit} s"
        warn_user(
            f"leave_one_out ended early ({reason}): {report.n_solved} of {sum(len(p.support) for p in problems)} "
            "problems were solved; the span estimate is used for the others.",
            ConvergenceWarning,
        )
    stalled = sum(len(p.stalled) for p in problems)
    if stalled:
        warn_user(
            f"{stalled} of the problems that leave_one_out solved did not reach tol={tol:g}: rounding allows no "
            "further progress. Lower C, raise tol, or scale the features.",
            ConvergenceWarning,
        )
    return report


def _left_out(model: Any, X: Any, y: Any, problems: list[LeftOutProblem], weight: Vector, method: str) -> LeaveOneOut:
    """Leave-one-out decision values of all samples: those of support vectors come from machines without them."""
    tasks = [(p, i) for p in problems for i in p.support.tolist()]
    estimates = np.array([p.step(i)[1] for p, i in tasks])
    solved = np.zeros(len(tasks), np.bool_)
    if method == "exact":
        clock = problems[0].clock

        def one(task: int) -> None:
            if clock.over() is None:
                p, i = tasks[task]
                value = p.without(i)
                if clock.over() is None:
                    estimates[task], solved[task] = value, True

        # compute cached properties before threads use them
        for p in problems:
            _ = p.inverse, p.diagonal
        run_tasks(one, len(tasks), problems[0].options.n_threads)
    n = len(weight)
    is_classifier = hasattr(model, "classes_")
    values = problem_values(model, X) if is_classifier else np.asarray(model.predict(X))[:, None]
    n_classes = len(model.classes_) if is_classifier else 0
    place = {pair: k for k, pair in enumerate(class_pairs(n_classes))} if is_classifier else {}
    start = 0
    for p in problems:
        column = place[tuple(np.searchsorted(model.classes_, p.labels).tolist())] if is_classifier else 0
        # with two classes the second is positive in the result, the first in the problem
        sign = -1.0 if n_classes == 2 else 1.0
        own = p.decision.copy()
        own[p.support] = estimates[start : start + len(p.support)]
        values[p.rows, column] = sign * own
        start += len(p.support)
    n_support = len(np.unique(np.concatenate([p.rows[p.support] for p in problems])))
    found = n_support, int(solved.sum()), method != "exact" or bool(solved.all())
    if not is_classifier:
        error = float(np.average((real_targets(y) - values[:, 0]) ** 2, weights=weight))
        return LeaveOneOut(method, error, None, values[:, 0], values[:, 0], *found)
    pairwise = -values if n_classes == 2 else values
    predictions = model.classes_[votes(pairwise, n_classes).argmax(axis=1)]
    wrong = predictions != np.asarray(y).reshape(n)
    shown = values[:, 0] if n_classes == 2 else values
    return LeaveOneOut(method, float(np.average(wrong, weights=weight)), wrong, predictions, shown, *found)


def _flagged(problems: list[LeftOutProblem], weight: Vector) -> LeaveOneOut:
    """The ξα result. A sample that is flagged in no problem of its class wins all its votes and is correct."""
    wrong = np.zeros(len(weight), np.bool_)
    for p in problems:
        wrong[p.rows] |= p.may_be_wrong()
    n_support = len(np.unique(np.concatenate([p.rows[p.support] for p in problems])))
    return LeaveOneOut("xi-alpha", float(np.average(wrong, weights=weight)), wrong, None, None, n_support, 0)
