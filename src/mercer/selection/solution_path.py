"""The solution path of a two-class SVC: β as a piecewise linear function of C.

`mercer.selection.path_steps` has the algorithm.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer._compiled.blas import one_blas_thread
from mercer._sklearn_compat import num_samples
from mercer.estimators.base import warn_user
from mercer.estimators.certification.kernel_machines import fitted_problems
from mercer.estimators.svc import SVC
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes
from mercer.gram.operator import product
from mercer.kernels.features import Matrix, Vector
from mercer.losses import Hinge
from mercer.problems.clock import Clock
from mercer.problems.dual import survey
from mercer.problems.solution import Certificate, Options, Status, certificate
from mercer.selection.path_steps import PathFollower
from mercer.validation import thread_count

# default range of C, divided by the mean of k(x, x)
RANGE = (1e-3, 1e3)
# tolerance of the first solution, and of restarts after rounding errors
TOL = 1e-10
# fraction of the available memory for the matrix and the path
MEMORY = 0.25
# estimated memory in n × n matrices: K, and several breaks per sample
MATRICES = 6


@dataclass(frozen=True, eq=False)
class SolutionPath:
    """The result of ``solution_path``: the exact solution for every C between the first and the last break.

    Attributes
    ----------
    C : the breaks, ascending; the first and the last are the ends of the path.
    dual_coef : β at each break, one row per break and one column per sample; the second class is positive.
    intercept : b at each break; the middle of the interval if several b are optimal.
    n_support, n_free : the number of support vectors at each break, and of free ones.
    classes : the two labels.
    constant : whether the last solution is optimal for every larger C, because no sample is inside the margin.

    Examples
    --------
    >>> from mercer import SVC, solution_path
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> path = solution_path(SVC(kernel="linear"), X, y, C_min=0.1, C_max=10.0)
    >>> path.model(1.0).predict([[1.4], [1.6]])
    array([0, 1])
    """

    C: Vector
    dual_coef: Matrix
    intercept: Vector
    n_support: NDArray[np.intp]
    n_free: NDArray[np.intp]
    classes: NDArray[Any]
    constant: bool
    _path: PathFollower = field(repr=False)
    _source: tuple[Any, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.C)

    def __str__(self) -> str:
        end = " and does not change beyond" if self.constant else ""
        return (
            f"{len(self.C)} breaks from C = {self.C[0]:.4g} to {self.C[-1]:.4g}{end}; {self.n_support[0]} to "
            f"{self.n_support[-1]} of {self.dual_coef.shape[1]} samples are support vectors"
        )

    def coefficients(self, C: float) -> Vector:
        """β at any C of the path; the second class is positive."""
        C = min(self._inside(C), float(self.C[-1]))
        k = int(np.clip(np.searchsorted(self.C, C) - 1, 0, max(0, len(self.C) - 2)))
        after = min(k + 1, len(self.C) - 1)
        width = self.C[after] - self.C[k]
        share = (C - self.C[k]) / width if width > 0 else 0.0
        between: Vector = (1.0 - share) * self.dual_coef[k] + share * self.dual_coef[after]
        return between

    def decision_function(self, X: Any, C: float) -> Vector:
        """The decision values of samples at any C of the path."""
        model = self._source[0]
        beta, path = self.coefficients(C), self._path
        X = model._validate_for_predict(X)
        carries = np.flatnonzero(beta)
        kernel, threads = path.data.kernel, path.options.n_threads
        if kernel.domain == "matrix":
            values = np.asarray(X, dtype=np.float64)[:, carries] @ beta[carries]
        else:
            features = kernel.prepare(X, np.float64)
            values = product(kernel, features, path.whole.exact(carries), beta[carries], threads)
        found: Vector = values + self.certified(C)[1]
        return found

    def certified(self, C: float) -> tuple[Certificate, float]:
        """The certificate of the solution at C, recomputed from the data, and its intercept."""
        C = self._inside(C)
        path = self._path
        # the problem has the first class positive
        beta = -self.coefficients(C)[path.rows]
        qp = path.program(C)
        beta = path.at_ends(beta, C)
        F = path.K @ beta
        b = survey(qp, beta, F).thresholds
        proof = certificate(qp, Hinge(), path.y, C * path.w, beta, F, b, path.data.psd)
        return proof, -float(b.sum())

    def model(self, C: float) -> SVC:
        """A fitted and certified ``SVC`` with this C, warm-started at the solution of the path."""
        _, source, X, y, sample_weight = self._source
        machine = clone(source).set_params(C=self._inside(C), warm_start=True)
        machine._warm = [-self.coefficients(C)[self._path.order] / C]
        machine.fit(X, y, sample_weight)
        return machine.set_params(warm_start=source.warm_start)

    def _inside(self, C: float) -> float:
        last = np.inf if self.constant else self.C[-1]
        if not self.C[0] <= C <= last:
            raise InvalidInputError(f"C={C:g} is outside of the path, which goes from {self.C[0]:g} to {self.C[-1]:g}.")
        return float(C)


def solution_path(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    C_min: float | None = None,
    C_max: float | None = None,
    time_limit: float | None = None,
) -> SolutionPath:
    """The exact solutions of a two-class SVC for all C in a range.

    β is linear in C between two breaks, so the solution is known for every C. The cost is about that of a few fits per
    sample; use it for up to one or two thousand samples.

    Parameters
    ----------
    model : SVC
        Its kernel, class_weight and fit_intercept are used. It need not be fitted and is not changed. Of a fitted
        search, ``best_estimator_`` is used.
    X, y, sample_weight : the data.
    C_min, C_max : float, default=None
        The range of C; None is 1/1000 and 1000, divided by the mean of k(x, x).
    time_limit : float or None, default=None
        Stop after this many seconds, with a warning; the path then ends at the C reached.

    Returns
    -------
    path : SolutionPath
        The breaks, and methods for the solution, the decision function and the fitted SVC at any C between them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC, solution_path
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> path = solution_path(SVC(kernel="linear"), X, [0, 0, 1, 1], C_min=0.1, C_max=10.0)
    >>> path.C
    array([0.1       , 0.16666667, 0.66666667, 2.        ])
    >>> path.coefficients(1.0)
    array([ 0., -1.,  1.,  0.])
    >>> path.constant
    True
    """
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, SVC) or model.loss != "hinge":
        found = f"{type(model).__name__} with loss={getattr(model, 'loss', None)!r}"
        raise InvalidInputError(f"solution_path needs mercer's SVC with hinge loss, but {found} was given.")
    n = num_samples(X)
    needed = MATRICES * 8 * n**2
    if needed > MEMORY * available_bytes():
        raise InvalidInputError(
            f"The path of {n} samples takes about {needed / 2**30:.1f} GB, more than a quarter of the available "
            "memory. Use fewer samples, or fits with warm_start=True at the C of interest."
        )
    first = clone(model).set_params(C=1.0, tol=1e-3, max_iter=1, warm_start=False, time_limit=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # only its kernel and its classes are used
        first.fit(X, y, sample_weight)
    if len(first.classes_) != 2:
        raise InvalidInputError(f"solution_path needs two classes, but y has {len(first.classes_)}: pass one pair.")
    (fitted,) = fitted_problems(first, X, y, sample_weight)
    options = Options(tol=TOL, n_threads=thread_count(model.n_jobs))
    with Clock(time_limit) as clock, one_blas_thread():
        problem = fitted.problem
        path = PathFollower(fitted.machine.data, fitted.rows, problem.y, problem.weight, problem.intercept, options)
        unit = max(float(np.mean(np.diagonal(path.K))), np.finfo(np.float64).tiny)
        low = RANGE[0] / unit if C_min is None else float(C_min)
        high = max(RANGE[1] / unit, low) if C_max is None else float(C_max)
        if not 0 < low <= high < np.inf:
            raise InvalidInputError(f"C_min={low:g} and C_max={high:g}: give 0 < C_min <= C_max < inf.")
        status = path.run(low, high, clock)
    if status is not Status.CONVERGED:
        reason = {Status.TIME_LIMIT: f"time_limit={time_limit} s", Status.INTERRUPTED: "interrupted"}
        why = reason.get(status, f"{len(path.breaks)} breaks")
        warn_user(
            f"The path ended early ({why}): it goes from C = {low:g} to {path.breaks[-1].C:g} instead of {high:g}.",
            ConvergenceWarning,
        )
    return _published(path, (first, model, X, y, sample_weight))


def _published(path: PathFollower, source: tuple[Any, ...]) -> SolutionPath:
    """The result, with the second class positive."""
    beta = np.zeros((len(path.breaks), path.whole.n))
    beta[:, path.rows] = [-one.beta for one in path.breaks]
    found = SolutionPath(
        C=np.array([one.C for one in path.breaks]),
        dual_coef=beta + 0.0,
        intercept=np.zeros(len(path.breaks)),
        n_support=np.count_nonzero(beta, axis=1),
        n_free=np.array([one.n_free for one in path.breaks]),
        classes=source[0].classes_,
        constant=path.constant,
        _path=path,
        _source=source,
    )
    found.intercept[:] = [found.certified(C)[1] for C in found.C]
    return found
