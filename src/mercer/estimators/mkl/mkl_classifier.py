"""Support vector classification that learns the weights of a sum of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mercer.estimators.base import keep_parameters
from mercer.estimators.mkl.kernel_learner import LEARNED, KernelLearner, Tasks
from mercer.estimators.svc import SVC
from mercer.gram.operator import Data
from mercer.kernels.features import Matrix, Vector
from mercer.mkl.mixture import Task
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem
from mercer.problems.solution import Solution
from mercer.svm.batch import OneVsOne


class MKLClassifier(KernelLearner, SVC):
    """Support vector classification with a learnt kernel, a weighted sum of given kernels.

    The classifier and the weights η of its kernel Σ η_m k_m, with η ≥ 0 and |η|_p ≤ 1, are optimised together:

        min over η, w, b of  ½ Σ_m |w_m|² / η_m + Σᵢ Cᵢ ℓ(yᵢ, Σ_m <w_m, φ_m(xᵢ)> + b)

    [M5] "learning a kernel from data"; Lanckriet et al., JMLR 5 (2004); Kloft et al., JMLR 12 (2011). The problem is
    convex, and ``certificate_`` bounds the distance from the joint optimum. With several classes there is one machine
    for each pair of classes as in ``SVC``; all share the weights, and the sum of their objectives is minimised.

    Parameters
    ----------
    kernels : list of str, Kernel or callable, default=("linear", "rbf")
        The kernels: names and expressions as in ``SVC`` (with its default parameters), kernel objects such as
        ``On(columns, kernel)`` for groups of columns, or functions of two sets of samples. With ``"precomputed"`` X is
        an array of shape (n_samples, n_samples, n_kernels): the matrices are stacked along the last axis.
    weights : {"learned", "alignment", "independent_alignment", "uniform"} or array-like, default="learned"
        "learned" solves the problem above. The others are faster because they are computed before training. "alignment"
        maximises the centred alignment of the sum with the labels; "independent_alignment" weights each kernel by its
        own alignment (Cortes, Mohri & Rostamizadeh, JMLR 13, 2012); "uniform" gives all kernels the same weight. These
        weights sum to 1. An array gives the weights of the normalised kernels.
    norm : float, default=1.0
        The p of the norm constraint on learnt weights, from 1 to inf. With 1 many weights are 0; with larger values
        they become more equal; with inf all are 1.
    normalize : {"variance", "trace"} or None, default="variance"
        How kernels are scaled so that their weights can be compared: divide by the variance of the samples in feature
        space, by the mean of k(x, x), or not at all. A kernel without variance is not scaled. The divisors are stored
        in ``kernel_scales_`` and are part of ``kernel_``.
    C : float, default=1.0
        Weight of the loss; must be finite.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The penalty on samples that violate the margin.
    tol : float, default=1e-3
        The relative gap of the joint problem at which learning stops, and the largest violation of the optimality
        conditions of each machine, in units of the decision function.
    max_rounds : int, default=200
        Maximum number of weight updates.
    cache_size : float or "auto", default="auto"
        Memory for the matrices of all kernels in MB; "auto" is half of the available memory. If they do not fit, kernel
        values are recomputed in each round.
    warm_start : bool, default=False
        Start from the last weights and machines if the problem has the same size.
    class_weight, decision_function_shape, break_ties, fit_intercept, shrinking, verbose, max_iter, n_jobs, time_limit,
    precision, solver : as in ``SVC``.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        The weights η of the normalised kernels.
    kernel_scales_ : ndarray of shape (n_kernels,)
        The divisors of the kernels.
    kernel_ : LearnedKernel
        The learnt kernel Σ η_m / scale_m k_m over kernels with non-zero weight; can be used in any other machine.
    alignments_ : ndarray of shape (n_kernels,)
        The centred alignment of each kernel with the labels, between 0 and 1.
    certificate_ : Certificate
        Certificate of the joint problem in float64; if the weights were not learnt, of the machines alone.
    certificates_ : list of Certificate
        Certificates of the machine of each pair of classes, for the given kernel.
    n_rounds_ : int
        Number of weight updates.
    trace_ : list of TracePoint
        Seconds, steps, relative gap, lower bound and number of kernels with a weight, for each round.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, classes_, class_weight_, margin_, rkhs_norm_,
    function_, kernel_evaluations_, fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_ : as in ``SVC``.

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

    _solves_parts = False

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
        keep_parameters(self, locals())

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
