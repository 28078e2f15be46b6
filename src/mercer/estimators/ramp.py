"""Support vector classification with the ramp loss, which a few wrong labels cannot pull far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from mercer.estimators.one_vs_one import BaseSVC
from mercer.estimators.pairs import OneVsOne
from mercer.estimators.progress import warn_user
from mercer.gram.operator import product
from mercer.kernels.features import Vector
from mercer.losses import GivenUpHinge, Hinge, Loss, ramp
from mercer.solvers.base import Clock, Options, Solution, Status
from mercer.solvers.data import Data
from mercer.validation import thread_count

# a fall of the objective below this part of it is rounding, or the tolerance of the solver
PROGRESS = 1e-9


@dataclass
class RampSolution(Solution):
    """The solution of the last convex problem; the objectives before each; which samples it gave up."""

    objectives: tuple[float, ...] = ()
    given_up: Vector = ()  # type: ignore[assignment]
    stationary: bool = True

    def taken(self, order: Vector) -> RampSolution:
        """The same with its samples in another order: first the one that is now at order[0]."""
        given_up = np.zeros(len(order), bool)
        given_up[self.given_up] = True
        return replace(super().taken(order), given_up=np.flatnonzero(given_up[order]))


class RampSVC(BaseSVC):
    """Support vector classification with the ramp loss: ½|w|² + Σ Cᵢ min(clip, max(0, 1 - yᵢ(f(xᵢ) + b))).

    A sample on the wrong side costs no more than ``clip``, however far it is, so that it stops pulling at the separator
    ([SSBD] 15.2.3). The problem is not convex, and to find its optimum is intractable. The concave-convex procedure
    (Collobert, Sinz, Weston & Bottou, ICML 2006) goes downhill through convex problems: samples whose loss is above
    ``clip`` are given up (they pay only if they return beyond the other margin), the exact solver finds the optimum for
    the others, and so on until the same samples are given up twice. What it finds is a **stationary point**: no small
    change is better. There may be lower ones.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss; finite.
    clip : float, default=1.0
        The largest loss of a sample; 1 is the ramp loss of [SSBD]. With a very large value it is ``SVC``.
    start : {"svc", "means", "both"}, default="both"
        Where to begin: at the solution of ``SVC``; with those samples given up that are closer to the mean of the other
        class, which wrong labels move less; or at both, to take the lower end. If the solution of ``SVC`` has no loss
        above ``clip``, it is taken.
    max_rounds : int, default=50
        Convex problems at most, from each start.
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, class_weight, verbose, max_iter, decision_function_shape,
    break_ties, fit_intercept, n_jobs, time_limit, warm_start, precision, solver : as in ``SVC``.

    Attributes
    ----------
    objective_ : float
        The objective above, summed over all pairs of classes.
    objective_traces_ : list of tuple of float
        For each pair of classes, the objective after each convex problem from the better start; it never rises.
    given_up_ : ndarray of int
        Samples whose loss is above ``clip`` in some pair, in ascending order.
    stationary_ : bool
        Whether the procedure ended by itself in all pairs.
    certificate_, certificates_ : Certificate
        Of the **last convex problem** alone: how well the solver has solved it. They bound nothing of the ramp loss.
    n_rounds_ : ndarray of int
        Convex problems on the way from the better start, for each pair.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, classes_, class_weight_, margin_, rkhs_norm_,
    trace_, kernel_evaluations_, fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_ : as in ``SVC``.

    Examples
    --------
    >>> from mercer import RampSVC
    >>> X, y = [[-3], [-2], [-1], [1], [2], [3], [4]], [0, 0, 0, 1, 1, 1, 0]
    >>> model = RampSVC(kernel="linear").fit(X, y)
    >>> model.predict([[-4], [4]]), model.given_up_
    (array([0, 1]), array([6]))
    """

    _plain_pairs = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            key: value
            for key, value in BaseSVC._parameter_constraints.items()
            if key not in ("probability", "random_state")
        },
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "clip": [Interval(Real, 0.0, None, closed="neither")],
        "start": [StrOptions({"svc", "means", "both"})],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
    }
    probability = "deprecated"

    def __init__(
        self,
        *,
        C: float = 1.0,
        clip: float = 1.0,
        start: str = "both",
        max_rounds: int = 50,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: Any = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
    ) -> None:
        self.C = C
        self.clip = clip
        self.start = start
        self.max_rounds = max_rounds
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.precision = precision
        self.solver = solver

    def _loss(self) -> tuple[Loss, float]:
        return Hinge(), float(self.C)

    def _run(
        self, data: Data, loss: Loss, y: Vector, weight: Vector, options: Options, clock: Clock, start: Vector | None
    ) -> Solution:
        """The concave-convex procedure on one pair of classes, from each start; the lowest end counts."""
        first = super()._run(data, loss, y, weight, options, clock, start)
        up, objective = self._judge(first, y, weight)
        ends = []
        # the means need all kernel values
        limited = clock.left < np.inf
        in_time = not limited or clock.over_in(data.seconds(data.n, data.n, options.n_threads)) is None
        if self.start != "means" or not (up.any() and in_time):
            ends.append(self._descend(data, y, weight, options, clock, first, up, (objective,)))
        if self.start != "svc" and up.any() and in_time:
            ends.append(self._descend(data, y, weight, options, clock, first, self._far(data, y, weight), ()))
        best = min(ends, key=lambda end: end.objectives[-1])
        best.steps = first.steps + sum(end.steps for end in ends)
        best.trace = first.trace + [point for end in ends for point in end.trace]
        best.seconds = clock.seconds
        return best

    def _descend(
        self,
        data: Data,
        y: Vector,
        weight: Vector,
        options: Options,
        clock: Clock,
        solution: Solution,
        up: Vector,
        objectives: tuple[float, ...],
    ) -> RampSolution:
        """Downhill from a solution and the samples ``up`` that are to be given up, which are its own if it has a value.

        Each solution is where the next run starts.
        """
        given_up, stationary = np.zeros(len(y), dtype=bool), bool(objectives) and not up.any()
        steps, trace = 0, []
        while not stationary and len(objectives) < self.max_rounds and solution.status is Status.CONVERGED:
            labels, near = np.where(up, 2.0 * y, y), solution.beta / self._unit
            found = super()._run(data, GivenUpHinge(), labels, weight, options, clock, near)
            steps += found.steps
            trace += found.trace
            next_up, objective = self._judge(found, y, weight)
            converged = found.status is Status.CONVERGED
            if objectives and converged and objective > objectives[-1] + PROGRESS * abs(objectives[-1]):
                stationary = True  # within the tolerance of the solver there is nothing to gain
                break
            solution, given_up, objectives = found, up, (*objectives, objective)
            stationary, up = bool(np.array_equal(next_up, up)), next_up
        if not objectives:  # the time was over before the first
            objectives = (self._judge(solution, y, weight)[1],)
        return RampSolution(
            solution.beta,
            solution.F,
            solution.thresholds,
            solution.status,
            steps,
            clock.seconds,
            replace(solution.certificate, of="last convex problem of the ramp loss"),
            trace,
            objectives=objectives,
            given_up=np.flatnonzero(given_up),
            stationary=stationary,
        )

    def _far(self, data: Data, y: Vector, weight: Vector) -> Vector:
        """Samples that are closer to the mean of the other class ([SSBD] Exercise 16.6), which no sample moves far."""
        means = np.array([np.where(y == sign, weight, 0.0) for sign in (1.0, -1.0)])
        means /= means.sum(axis=1, keepdims=True)
        features = data.features(np.float64)
        scores = product(data.kernel, features, features, np.ascontiguousarray(means.T), thread_count(self.n_jobs))
        scores -= 0.5 * np.einsum("ij,ji->i", means, scores)
        return (y * (scores[:, 0] - scores[:, 1]) < 0) & (weight > 0)

    def _judge(self, solution: Solution, y: Vector, weight: Vector) -> tuple[Vector, float]:
        """Which samples cost more than ``clip``, and the objective of the ramp loss.

        F of samples far from every kink of the loss may be approximate, which changes neither.
        """
        b = solution.thresholds[0] if len(solution.thresholds) else 0.0
        f = solution.F + b
        paid = ramp(y, f, clip=self.clip)
        objective = 0.5 * max(0.0, solution.squared_norm) + float((weight * paid).sum())
        return (1.0 - y * f > self.clip) & (weight > 0), objective

    def _publish_pairs(self, problems: OneVsOne, solved: list[Solution | None]) -> None:
        super()._publish_pairs(problems, solved)
        found = [(pair, s) for pair, s in zip(problems.pairs, solved, strict=True) if isinstance(s, RampSolution)]
        self.objective_traces_ = [s.objectives for _, s in found]
        self.objective_ = float(sum(s.objectives[-1] for _, s in found))
        self.n_rounds_ = np.array([len(s.objectives) for _, s in found])
        self.stationary_ = all(s.stationary for _, s in found)
        self.given_up_ = np.unique(np.concatenate([problems.samples(*pair)[0][s.given_up] for pair, s in found]))

    def _warn_unfinished(self) -> None:
        super()._warn_unfinished()
        if not self.stationary_ and self.fit_status_ == 0:
            warn_user(
                f"The concave-convex procedure ended early (max_rounds={self.max_rounds}): samples are still being "
                f"given up or taken back. The objective is {self.objective_:.7g} and would fall further.",
                ConvergenceWarning,
            )
