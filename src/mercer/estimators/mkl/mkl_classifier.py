"""Support vector classification that learns the weights of a sum of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mercer.estimators.mkl.kernel_learner import LEARNED, KernelLearner, Tasks
from mercer.estimators.svc import SVC
from mercer.kernels.features import Matrix, Vector
from mercer.mkl.mixture import Task
from mercer.problems.dual import DualProblem
from mercer.solvers.base import Clock, Solution
from mercer.solvers.batch import OneVsOne
from mercer.solvers.data import Data


class MKLClassifier(KernelLearner, SVC):
    """Support vector classification with a kernel that is learnt: a weighted sum of given ones.

    With weights η ≥ 0, |η|_p ≤ 1, the machine and its kernel Σ η_m k_m are optimal together:

        min over η, w, b of  ½ Σ_m |w_m|² / η_m + Σᵢ Cᵢ ℓ(yᵢ, Σ_m <w_m, φ_m(xᵢ)> + b)

    [M5] "learning a kernel from data"; Lanckriet et al., JMLR 5 (2004); Kloft et al., JMLR 12 (2011). The problem is
    convex: ``certificate_`` bounds the distance to the optimum over all weights and machines. Several classes are pairs
    of classes as in ``SVC``, which share the weights: what is minimised is the sum over all pairs.

    Parameters
    ----------
    kernels : list of str, Kernel or callable, default=("linear", "rbf")
        The kernels: names and expressions as in ``SVC`` (with its default parameters), kernel objects, for example
        ``On(columns, kernel)`` for groups of columns, or functions of two sets of samples. With ``"precomputed"`` X has
        the shape (n_samples, n_samples, n_kernels): matrices stacked along the last axis.
    weights : {"learned", "alignment", "independent_alignment", "uniform"} or array-like, default="learned"
        "learned": as above. The others are faster, and known before a machine is trained: "alignment" makes the centred
        alignment of the sum with the labels as large as possible, "independent_alignment" weighs each kernel by its own
        alignment (Cortes, Mohri & Rostamizadeh, JMLR 13, 2012), "uniform" weighs all alike; these sum to 1. An array
        gives the weights of the normalised kernels.
    norm : float, default=1.0
        p of the norm that bounds learnt weights, from 1 to inf. With 1 many weights are 0; the larger it is, the more
        equal they become; with inf they are all 1.
    normalize : {"variance", "trace"} or None, default="variance"
        What kernels are divided by first, so that their weights can be compared: the variance of the samples in feature
        space, the mean of k(x, x), or nothing. A kernel without variance is left as it is. The divisors are kept in
        ``kernel_scales_`` and are part of ``kernel_``.
    C : float, default=1.0
        Weight of the loss; finite.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a violated margin costs.
    tol : float, default=1e-3
        Relative gap of weights and machines together at which learning ends, and the largest violation of the
        optimality conditions of each machine, in units of the decision function.
    max_rounds : int, default=200
        Weights that are tried at most.
    cache_size : float or "auto", default="auto"
        Megabytes for the matrices of all kernels; "auto" is half of the available memory. If they do not fit, kernel
        values are computed again in each round.
    warm_start : bool, default=False
        Start from the last weights and machines if the problem has the same size.
    class_weight, decision_function_shape, break_ties, fit_intercept, shrinking, verbose, max_iter, n_jobs, time_limit,
    precision, solver : as in ``SVC``, of which each machine is one.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        η, of the normalised kernels.
    kernel_scales_ : ndarray of shape (n_kernels,)
        What the kernels were divided by.
    kernel_ : LearnedKernel
        Σ η_m / scale_m k_m over the kernels that have a weight: for use in any other machine.
    alignments_ : ndarray of shape (n_kernels,)
        The centred alignment of each kernel with the labels, between 0 and 1.
    certificate_ : Certificate
        Of weights and machines together, in float64; with weights that were not learnt, of the machines alone.
    certificates_ : list of Certificate
        Of the machine of each pair of classes, for the kernel as it is.
    n_rounds_ : int
        Weights that were tried.
    trace_ : list of TracePoint
        Seconds, steps, relative gap, lower bound and kernels with a weight, of each round.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, classes_, class_weight_, margin_, rkhs_norm_,
    kernel_evaluations_, fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_ : as in ``SVC``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MKLClassifier, Gaussian, On
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> y = X[:, 1] ** 2 > 0.5
    >>> model = MKLClassifier(kernels=[On(column, Gaussian()) for column in range(3)], C=10).fit(X, y)
    >>> model.kernel_weights_.argmax()
    np.int64(1)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            key: value
            for key, value in SVC._parameter_constraints.items()
            if key not in ("kernel", "degree", "gamma", "coef0", "probability", "random_state")
        },
        **KernelLearner._parameter_constraints,
    }
    probability = "deprecated"

    def __init__(
        self,
        kernels: Any = ("linear", "rbf"),
        *,
        weights: Any = LEARNED,
        norm: float = 1.0,
        normalize: str | None = "variance",
        C: float = 1.0,
        loss: str = "hinge",
        tol: float = 1e-3,
        max_rounds: int = 200,
        class_weight: Any = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        fit_intercept: bool = True,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: Any = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
    ) -> None:
        self.kernels = kernels
        self.weights = weights
        self.norm = norm
        self.normalize = normalize
        self.C = C
        self.loss = loss
        self.tol = tol
        self.max_rounds = max_rounds
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.fit_intercept = fit_intercept
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.precision = precision
        self.solver = solver

    def _ideal(self, y: Vector) -> Matrix:
        return np.eye(len(self.classes_))[y.astype(np.intp)]

    def _tasks(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> Tasks:
        problems = self._problems(data, y, weight, clock)
        tasks = []
        for i, j in problems.pairs:
            index, labels = problems.samples(i, j)
            if abs(labels.sum()) < len(labels):
                qp = DualProblem(None, problems.loss, labels, problems.factor[index], bool(self.fit_intercept)).qp
                tasks.append(Task(index, qp))
        return Tasks(tasks, problems)

    def _machines(
        self, tasks: Tasks, data: Data, tol: float, starts: Sequence[Vector | None], clock: Clock
    ) -> Sequence[Solution]:
        problems: OneVsOne = replace(tasks.problems, data=data, options=replace(tasks.problems.options, tol=tol))
        near = iter(starts)
        solved = problems.solve_all([next(near) if self._both(problems, pair) else None for pair in problems.pairs])
        return [solution for solution in solved if solution is not None]

    def _publish(self, tasks: Tasks, data: Data, solutions: Sequence[Solution]) -> None:
        problems = replace(tasks.problems, data=data)
        found = iter(solutions)
        solved = [next(found) if self._both(problems, pair) else None for pair in problems.pairs]
        self._publish_pairs(problems, solved)
        self._trained = np.array([solution is not None for solution in solved])
        self._probA = self._probB = np.empty(0)

    def _steps(self, steps: Vector) -> Any:
        shown = np.zeros_like(self.n_iter_)
        shown[np.flatnonzero(self._trained)] = steps
        return shown

    @staticmethod
    def _both(problems: OneVsOne, pair: tuple[int, int]) -> bool:
        """Whether both classes of a pair have samples."""
        return all(len(problems.members[c]) > 0 for c in pair)
