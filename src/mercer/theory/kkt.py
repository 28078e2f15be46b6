"""The optimality conditions of a fitted machine, sample by sample; [SSBD] 15.3–15.4, [D6] §4–5, [M5] "KKT".

β is optimal if and only if every variable satisfies

    m ≤ b ≤ M

where b is the threshold of its group, and m and M are the rates of `mercer.problems.dual`. For the hinge loss, α = yβ,
this is complementary slackness:

    α = 0        y(f + b) ≥ 1        outside the margin, not a support vector
    0 < α < C    y(f + b) = 1        a free support vector, exactly on the margin
    α = C        y(f + b) ≤ 1        inside the margin or on the wrong side

In the notes' variables, with the slack ξ ≥ 0 and its multiplier μ = C − α: α (y(f + b) − 1 + ξ) = 0 and μξ = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.certification.kernel_machines import FittedProblem, certify_problem, fitted_problems
from mercer.estimators.fitted_models import unwrap
from mercer.kernels.features import Vector
from mercer.losses import (
    EpsilonInsensitive,
    HardMargin,
    NuHinge,
    NuInsensitive,
    OneClass,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    nu_scale,
    tube,
)
from mercer.losses.base import Loss
from mercer.problems.dual import DualProblem, infeasibility, rates
from mercer.problems.solution import Certificate

STATES = ("zero", "free", "bound")
# number of worst samples to print
SHOWN = 5


@dataclass(frozen=True, eq=False)
class Optimality:
    """The optimality conditions of one problem, with one entry per sample.

    Attributes
    ----------
    labels : the positive and the negative class; empty for regression and novelty detection.
    rows : indices of the samples in X.
    beta : their signed coefficients.
    state : "zero", "free" or "bound", by the value of β.
    decision : f + b.
    violation : the violation of the condition of the sample's state, in units of the decision function.
    alpha : the multipliers α ≥ 0 of the notes, |β|. For regression one of the two multipliers is 0, and this is the
        other one.
    xi : the slack ξ: how far the sample is on the wrong side of the edge of its margin, tube or region; 0 if it is not.
        For the pinball loss, which has no tube, |y − f − b|.
    mu : the multipliers μ of ξ ≥ 0: C − α, where C includes the weight of the sample. 0 for squared losses, for which
        ξ ≥ 0 is no constraint, and inf for a hard margin.
    infeasibility : the largest violation of a bound or a sum by β.
    certificate : primal value, dual value and gap of the problem.
    conditions : the condition for each state, as text.
    """

    labels: tuple[Any, ...]
    rows: NDArray[np.intp]
    beta: Vector
    state: NDArray[np.str_]
    decision: Vector
    violation: Vector
    alpha: Vector
    xi: Vector
    mu: Vector
    infeasibility: float
    certificate: Certificate
    conditions: tuple[str, str, str]

    @property
    def name(self) -> str:
        """The two classes as text; the loss if there are no classes."""
        return " against ".join(map(repr, self.labels)) or self.certificate.of

    @property
    def largest(self) -> float:
        """The largest violation."""
        return float(self.violation.max(initial=0.0))

    def count(self, state: str) -> int:
        """The number of samples in a state."""
        return int(np.count_nonzero(self.state == state))

    def violators(self, tol: float = 0.0) -> NDArray[np.intp]:
        """Indices in X of the samples that violate their condition by more than tol, worst first."""
        order = np.argsort(-self.violation, kind="stable")
        return self.rows[order[self.violation[order] > tol]]

    def __str__(self) -> str:
        width = max(map(len, (*self.conditions, "condition")))
        lines = [
            f"{self.name}, {len(self.rows)} samples: every condition holds to within {_short(self.largest)}",
            f"  {'coefficient':<12} {'samples':>8}   {'condition':<{width}}   largest violation",
        ]
        for state, name, condition in zip(STATES, ("at zero", "free", "at the bound"), self.conditions, strict=True):
            worst = float(self.violation[self.state == state].max(initial=0.0))
            lines.append(f"  {name:<12} {self.count(state):>8}   {condition:<{width}}   {_short(worst)}")
        worst_rows = self.violators()[:SHOWN]
        if len(worst_rows):
            lines.append(f"  worst samples: {', '.join(map(str, worst_rows))}")
        return "\n".join([*lines, f"  {self.certificate}"])


@dataclass(frozen=True, eq=False)
class KKTReport:
    """The result of ``kkt_report``.

    Attributes
    ----------
    problems : the conditions of each problem: one, or one per pair of classes.
    """

    problems: tuple[Optimality, ...]

    @property
    def largest(self) -> float:
        """The largest violation over all problems."""
        return max(problem.largest for problem in self.problems)

    def count(self, state: str) -> int:
        """The number of samples in a state ("zero", "free" or "bound"), summed over all problems."""
        return sum(problem.count(state) for problem in self.problems)

    def violators(self, tol: float = 0.0) -> NDArray[np.intp]:
        """Indices of the samples that violate a condition of some problem by more than tol, ascending."""
        return np.unique(np.concatenate([problem.violators(tol) for problem in self.problems]))

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"Optimality of {self.problems[0]}"
        head = f"Optimality of {len(self.problems)} problems: every condition holds to within {_short(self.largest)}"
        return "\n".join([head, *map(str, self.problems)])


def kkt_report(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> KKTReport:
    """Check the optimality (KKT) conditions of a fitted machine for each training sample.

    Everything is recomputed in float64 from the data and the published coefficients, as in ``certify``.

    Parameters
    ----------
    model : fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM, or a pipeline or search that ends in one
        From mercer or scikit-learn.
    X, y, sample_weight : the data that the model was fitted to, in the same order.

    Returns
    -------
    report : KKTReport
        Prints as text; its numbers are attributes.

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.theory import kkt_report
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [-1, -1, 1, 1]
    >>> print(kkt_report(SVC(kernel="linear", C=10).fit(X, y), X, y))
    Optimality of 1 against -1, 4 samples: every condition holds to within ...
      coefficient   samples   condition    largest violation
      at zero             2   y(f+b) ≥ 1   0
      free                2   y(f+b) = 1   ...
      at the bound        0   y(f+b) ≤ 1   0...
      within ... of the optimum (relative gap; primal 0.5, dual 0.5), KKT violation ..., infeasibility 0
    """
    machine, X, _ = unwrap(model, X)
    problems = fitted_problems(machine, X, y, sample_weight)
    return KKTReport(tuple(_optimality(fitted) for fitted in problems))


def _optimality(fitted: FittedProblem) -> Optimality:
    problem, beta, F, b = fitted.problem, fitted.beta, fitted.F, fitted.thresholds
    qp, n = problem.qp, problem.n
    level = b[qp.group] if len(b) else np.zeros(qp.n_vars)
    growing, shrinking = rates(qp, beta, F)
    excess = np.maximum(0.0, np.maximum(growing - level, level - shrinking))
    at_bound = (beta != 0) & ((beta >= qp.upper) | (beta <= qp.lower))
    violation, bound = np.zeros(n), np.zeros(n, np.bool_)
    sample = np.arange(n) if qp.sample is None else qp.sample
    np.maximum.at(violation, sample, excess)
    np.logical_or.at(bound, sample, at_bound)
    net = qp.at_samples(beta, n)
    # with two classes the second is positive in public attributes, the first in the dual problem
    flip = len(fitted.labels) == 2 and len(fitted.machine.estimator.classes_) == 2
    sign = -1.0 if flip else 1.0
    return Optimality(
        labels=fitted.labels[::-1] if flip else fitted.labels,
        rows=fitted.rows,
        beta=sign * net + 0.0,
        state=np.where(net == 0, "zero", np.where(bound, "bound", "free")),
        decision=sign * (F + (float(b.mean()) if len(b) else 0.0)),
        violation=violation,
        alpha=np.abs(net),
        xi=_slack(problem, F, b),
        mu=_multiplier(problem, net),
        infeasibility=infeasibility(qp, beta),
        certificate=certify_problem(fitted),
        conditions=_conditions(problem.loss),
    )


def _slack(problem: DualProblem, F: Vector, b: Vector) -> Vector:
    """ξ of each sample."""
    loss, y, f = problem.loss, problem.y, F + (float(b.mean()) if len(b) else 0.0)
    if isinstance(loss, HardMargin):
        return np.maximum(0.0, 1.0 - y * f)
    if isinstance(loss, SquaredHinge | SquaredEpsilonInsensitive):
        return np.sqrt(loss.value(y, f))
    if isinstance(loss, NuHinge):
        return loss.value(y, f, nu_scale(b)[0])
    if isinstance(loss, NuInsensitive):
        return loss.value(y, f, tube(b)[0])
    return np.abs(y - f) if isinstance(loss, Pinball) else loss.value(y, f)


def _multiplier(problem: DualProblem, net: Vector) -> Vector:
    """μ of each sample: how far β is from the bound on its side; at 0, from the farther one."""
    qp, n = problem.qp, problem.n
    if qp.is_smooth:
        return np.zeros(n)
    lower, upper = qp.lower[-n:], qp.upper[:n]  # with two variables each, those that can fall are last
    with np.errstate(invalid="ignore"):
        return np.where(net > 0, upper - net, np.where(net < 0, net - lower, np.maximum(upper, -lower)))


def _conditions(loss: Loss) -> tuple[str, str, str]:
    """The conditions for samples at zero, free and at the bound, as text."""
    if isinstance(loss, EpsilonInsensitive | NuInsensitive):
        return "|y-f-b| ≤ ε", "|y-f-b| = ε", "|y-f-b| ≥ ε"
    if isinstance(loss, SquaredEpsilonInsensitive):
        return "|y-f-b| ≤ ε", "|y-f-b| = ε + |β|/2C", "none"
    if isinstance(loss, OneClass):
        return "f+b ≥ 0", "f+b = 0", "f+b ≤ 0"
    if isinstance(loss, SquaredHinge):
        return "y(f+b) ≥ 1", "y(f+b) = 1 - |β|/2C", "none"
    # ν-SVC is divided by its margin, so its margin is 1, too
    return "y(f+b) ≥ 1", "y(f+b) = 1", "y(f+b) ≤ 1"


def _short(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}"
