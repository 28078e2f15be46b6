"""RampSVC: support vector classification with the ramp loss, which is robust against wrong labels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import keep_parameters, warn_user
from mercer.estimators.svc import BaseSVC
from mercer.losses import Hinge, Loss
from mercer.problems.solution import Solution
from mercer.svm.batch import OneVsOne, SolvePair
from mercer.svm.ramp import RampSolution, RampSolver


class RampSVC(BaseSVC):
    """Support vector classification with the ramp loss: minimise ½|w|² + Σ Cᵢ min(clip, max(0, 1 - yᵢ(f(xᵢ) + b))).

    The loss of a sample never exceeds ``clip``, so samples far on the wrong side do not influence the hyperplane
    ([SSBD] 15.2.3). The problem is not convex, and finding its optimum is intractable. The concave-convex procedure
    (Collobert, Sinz, Weston & Bottou, ICML 2006) solves a sequence of convex problems. In each, samples whose loss is
    above ``clip`` are given up: they have no loss unless they move beyond the opposite margin. The exact solver finds
    the optimum of the convex problem. The procedure ends when the set of given-up samples does not change. The result
    is a **stationary point**; there may be better ones.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss; finite.
    clip : float, default=1.0
        The largest loss of a sample; 1 is the ramp loss of [SSBD]. A very large value gives ``SVC``.
    start : {"svc", "means", "both"}, default="both"
        The starting point. "svc": the solution of ``SVC``. "means": give up the samples that are closer to the mean of
        the other class; means are less sensitive to wrong labels. "both": run from both and keep the better result. If
        the solution of ``SVC`` has no loss above ``clip``, it is the result.
    max_rounds : int, default=50
        Maximum number of convex problems from each start.
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, class_weight, verbose, max_iter, decision_function_shape,
    break_ties, fit_intercept, n_jobs, time_limit, warm_start, precision, solver : as in ``SVC``.

    Attributes
    ----------
    objective_ : float
        The value of the objective, summed over all pairs of classes.
    objective_traces_ : list of tuple of float
        For each pair of classes, the objective after each convex problem from the better start; it never increases.
    given_up_ : ndarray of int
        Indices of samples whose loss is above ``clip`` in some pair, in ascending order.
    stationary_ : bool
        Whether a stationary point was reached in all pairs.
    certificate_, certificates_ : Certificate
        Certificates of the **last convex problem**. They do not bound the distance from the optimum of the ramp loss.
    n_rounds_ : ndarray of int
        Number of convex problems from the better start, for each pair.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, classes_, class_weight_, margin_, rkhs_norm_,
    function_, trace_, kernel_evaluations_, fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_ :
        As in ``SVC``.

    Examples
    --------
    >>> from mercer import RampSVC
    >>> X, y = [[-3], [-2], [-1], [1], [2], [3], [4]], [0, 0, 0, 1, 1, 1, 0]
    >>> model = RampSVC(kernel="linear").fit(X, y)
    >>> model.predict([[-4], [4]]), model.given_up_
    (array([0, 1]), array([6]))
    """

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
        keep_parameters(self, locals())

    def _loss(self) -> tuple[Loss, float]:
        return Hinge(), float(self.C)

    def _pair_solver(self) -> SolvePair:
        return RampSolver(float(self.clip), int(self.max_rounds), self.start)

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
                f"The concave-convex procedure ended early (max_rounds={self.max_rounds}): the set of given-up samples "
                f"still changes. The objective is {self.objective_:.7g} and would fall further.",
                ConvergenceWarning,
            )
