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
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.thread_pool import run_tasks
from mercer.estimators.base import warn_user
from mercer.estimators.certification.kernel_machines import FittedProblem, fitted_problems
from mercer.estimators.prediction import votes
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes
from mercer.kernels.features import Matrix, Vector
from mercer.losses import BoxQP, Hinge
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem, survey
from mercer.problems.solution import Options, Status
from mercer.selection.calibration.prediction_mixins import problem_values
from mercer.svm.batch import class_pairs
from mercer.svm.dense import DenseRun
from mercer.svm.solve import near, solve
from mercer.validation import real_targets, thread_count, validate_weights

METHODS = ("exact", "span", "xi-alpha")
# fraction of the available memory for the kernel matrices of all problems
MEMORY = 0.25
# a coefficient closer to its bound than this fraction of the box counts as at the bound
AT_BOUND = 1e-10


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
            f"leave_one_out supports SVC and SVR, but was given {type(model).__name__}: use cross-validation, or for "
            "ridge regression KernelRidgeCV, which computes leave-one-out errors in closed form."
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
        problems = [_Problem(p, whole, options, clock) for p in fitted]
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


class _Problem:
    """One problem of the machine, solved to the tolerance, with its kernel matrix if that fits into memory."""

    def __init__(self, fitted: FittedProblem, whole: bool, options: Options, clock: Clock) -> None:
        data, n = fitted.machine.data, len(fitted.rows)
        self.rows, self.labels, self.problem = fitted.rows, fitted.labels, fitted.problem
        self.options, self.clock = options, clock
        self.stalled: list[int] = []  # one entry for each run that stalled
        self.data = data if n == data.n else data.take(fitted.rows)
        self.K = self.data.matrix(np.float64, options.n_threads) if whole else None
        self.beta, self.F, self.b = self._solve(fitted.problem, near(fitted.problem.qp, fitted.beta))
        self.decision = self.F + self.b
        self.support = np.flatnonzero(self.beta)

    def _solve(self, problem: DualProblem, start: Vector | None) -> tuple[Vector, Vector, float]:
        """β, F and b of a problem on these samples."""
        if self.K is None:
            found = solve(self.data, problem, self.options, self.clock, start)
            self.stalled += [1] if found.status is Status.STALLED else []
            return found.beta, found.F, float(found.thresholds.sum())
        run = DenseRun(self.K, problem.qp, problem.start() if start is None else start, self.options, self.clock)
        self.stalled += [1] if run.run(self.options.tol) is Status.STALLED else []
        beta = _at_bounds(problem.qp, run.beta)
        return beta, run.F, float(survey(problem.qp, beta, run.F).thresholds.sum())

    def columns(self, index: Vector) -> Matrix:
        """These columns of K."""
        if self.K is not None:
            return self.K[:, index]
        return self.data.kernel.block(self.data.features(np.float64), self.data.exact(index))

    @cached_property
    def diagonal(self) -> Vector:
        """k(x, x) of each sample."""
        return self.data.kernel.diagonal(self.data.exact(np.arange(len(self.rows))))

    @cached_property
    def free(self) -> Vector:
        """Indices of the support vectors strictly inside their box."""
        qp, beta = self.problem.qp, self.beta
        return np.flatnonzero((beta != 0) & (beta > qp.lower) & (beta < qp.upper))

    @cached_property
    def inverse(self) -> Matrix:
        """M⁻¹ of the free support vectors, the border last; an empty matrix if there are none."""
        m, border = len(self.free), int(self.problem.intercept)
        if m == 0:
            return np.zeros((0, 0))
        M = np.zeros((m + border, m + border))
        M[:m, :m] = self.columns(self.free)[self.free]
        # a ridge of the size of rounding errors keeps M invertible
        M[np.arange(m), np.arange(m)] += self.problem.qp.ridge[self.free] + 1e-13 * np.trace(M) / m
        if border:
            M[:m, m] = M[m, :m] = 1.0
        inverse: Matrix = linalg.inv(M)
        return inverse

    def step(self, i: int) -> tuple[Vector, float]:
        """The solution without i if no other sample changes its state, and the decision value of i there."""
        beta, qp, free = self.beta.copy(), self.problem.qp, self.free
        place = np.flatnonzero(free == i)
        m, inverse = len(free), self.inverse
        if m == 0:
            # only the intercept can change: bounded by the largest squared distance
            beta[i] = 0.0
            return beta, float(self.decision[i] - self.beta[i] * self.spread)
        if len(place):
            p = int(place[0])
            beta[free] -= inverse[:m, p] / inverse[p, p] * self.beta[i]
            beta[i] = 0.0
            span = 1.0 / inverse[p, p] - qp.ridge[i]
        else:
            v = np.append(self.columns(np.array([i]))[free, 0], np.ones(len(inverse) - m))
            moved = inverse @ v
            beta[free] += moved[:m] * self.beta[i]
            beta[i] = 0.0
            span = self.diagonal[i] - v @ moved
        return beta, float(self.decision[i] - self.beta[i] * max(span, 0.0))

    @cached_property
    def spread(self) -> float:
        """The largest squared distance between two samples, or an upper bound."""
        if self.K is None:
            return 4.0 * float(np.abs(self.diagonal).max())
        return float(max(0.0, (self.diagonal[:, None] + self.diagonal - 2.0 * self.K).max()))

    def without(self, i: int) -> float:
        """The decision value of i from the solution without i."""
        weight = self.problem.weight.copy()
        weight[i] = 0.0
        problem = DualProblem(None, self.problem.loss, self.problem.y, weight, self.problem.intercept)
        start, _ = self.step(i)
        _, F, b = self._solve(problem, near(problem.qp, start))
        return float(F[i] + b)

    def may_be_wrong(self) -> NDArray[np.bool_]:
        """Whether each sample may be wrong when left out, by the ξα criterion."""
        alpha, y = np.abs(self.beta), self.problem.y
        slack = self.problem.loss.value(y, self.decision)
        if not self.problem.intercept:
            return np.asarray(alpha * self.diagonal + slack >= 1.0)
        if len(self.free) == 0:
            # an interval of intercepts is optimal, any sample may move the chosen one: Joachims' theorem does not hold
            return np.ones(len(alpha), np.bool_)
        if self.K is None:
            radius = 2.0 * float(np.abs(self.diagonal).max())
        else:
            radius = float((self.diagonal - self.K.min(axis=1)).max())
        return np.asarray(2.0 * alpha * radius + slack >= 1.0)


def _at_bounds(qp: BoxQP, beta: Vector) -> Vector:
    """Set coefficients that are within rounding of a bound, or of 0, exactly to it; else they would count as free."""
    width = qp.upper - qp.lower
    near_bound = np.where(np.isfinite(width), AT_BOUND * width, 0.0)
    for bound in (qp.lower, qp.upper, np.zeros(len(beta))):
        beta = np.where(np.abs(beta - bound) <= near_bound, bound, beta)
    return beta


def _left_out(model: Any, X: Any, y: Any, problems: list[_Problem], weight: Vector, method: str) -> LeaveOneOut:
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


def _flagged(problems: list[_Problem], weight: Vector) -> LeaveOneOut:
    """The ξα result. A sample that is flagged in no problem of its class wins all its votes and is correct."""
    wrong = np.zeros(len(weight), np.bool_)
    for p in problems:
        wrong[p.rows] |= p.may_be_wrong()
    n_support = len(np.unique(np.concatenate([p.rows[p.support] for p in problems])))
    return LeaveOneOut("xi-alpha", float(np.average(wrong, weights=weight)), wrong, None, None, n_support, 0)
