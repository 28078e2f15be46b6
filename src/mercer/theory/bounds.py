"""Bounds on the error on unseen samples from the margin, the norm or the dimension; [SSBD] 15.1.2, 15.2.1–15.2.2.

With ρ the largest |φ(x)|, γ the margin, B a bound on |w| and n training samples:

    hard_margin    √(4(ρ/γ)²/n) + √(2 log(2/δ)/n)              Theorem 15.4, with probability 1 − δ
    soft_margin    L(u) + λ|u|² + 2ρ²/(λn)                     Corollary 15.7, in expectation, for every u
                   L(u) + √(8ρ²B²/n)                           the same with the λ that is best for |u| ≤ B
    best_lambda    √(2ρ²/(B²n))                                that λ
    vc             L₀₁ + √(2D log(en/D)/n) + √(log(1/δ)/(2n))  halfspaces of VC dimension D, with probability 1 − δ

ρ enters the bounds as the Lipschitz constant of the loss as a function of w (Claim 15.6): the constant of the loss in
f, 1 for hinge and ramp loss, times |φ(x)|. For another convex loss of constant L, Corollary 13.8, from which 15.7
follows, has Lρ in place of ρ.

The first two do not depend on the dimension of the feature space; the last depends on it alone. The last is Corollary
3.19 of Mohri, Rostamizadeh & Talwalkar, *Foundations of Machine Learning*; the notes give its order, √(D/n). The
theorems are about homogeneous halfspaces. `error_bounds` therefore treats a bias as the weight of an additional feature
with the constant value ρ.

A bound of 1 or more on an error is vacuous. Theorem 15.4 needs γ and ρ of the distribution, Corollary 15.7 the true
loss of u. `error_bounds` uses the values of the sample instead, so its results are estimates of the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, e, inf, log, sqrt
from numbers import Real
from typing import Any

import numpy as np

from mercer.estimators.fitted_models import unwrap
from mercer.estimators.ramp_svc import RampSVC
from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel, Linear, Polynomial
from mercer.losses import Hinge, Loss, SquaredHinge, hinge, ramp
from mercer.losses.classification import classification_loss
from mercer.theory.conversions import lambda_to_C, sample_count
from mercer.theory.margins import Margins, margins
from mercer.theory.model_geometry import kernel_of

__all__ = [
    "Bound",
    "BoundReport",
    "BoundReports",
    "best_lambda",
    "compare",
    "error_bounds",
    "hard_margin",
    "soft_margin",
    "vc",
]


def hard_margin(gamma: float, rho: float, n: int, delta: float = 0.05) -> float:
    """Bound the error of Hard-SVM on a distribution that is separable with a (γ, ρ)-margin, with probability 1 − δ.

    √(4(ρ/γ)²/n) + √(2 log(2/δ)/n): [SSBD] Theorem 15.4, for homogeneous halfspaces.

    Parameters
    ----------
    gamma : float
        The margin γ > 0.
    rho : float
        The radius: no sample is longer.
    n : int
        Number of training samples.
    delta : float, default=0.05
        The probability, in (0, 1), that the bound fails.

    Returns
    -------
    error : float
        A bound on the 0–1 loss. It is vacuous if it exceeds 1.

    Examples
    --------
    >>> from mercer.theory import bounds
    >>> round(bounds.hard_margin(gamma=0.5, rho=1.0, n=10_000), 4)
    0.0672
    """
    gamma, rho, n = _positive("gamma", gamma), _nonnegative("rho", rho), sample_count(n)
    # the ramp loss of w with |w| = 1/γ is 0 on the samples, and bounds the error: twice its Rademacher complexity
    complexity = ramp.lipschitz * rho / gamma / sqrt(n)
    return 2.0 * complexity + sqrt(2.0 * log(2.0 / _probability(delta)) / n)


def soft_margin(
    loss: float, norm: float, rho: float, n: int, lam: float | None = None, *, lipschitz: float = hinge.lipschitz
) -> float:
    """Bound the expected loss of Soft-SVM by the hinge loss and the norm of any vector u.

    loss + λ|u|² + 2ρ²/(λn): [SSBD] Corollary 15.7, for λ|w|² + (1/n) Σ hinge and homogeneous halfspaces. It bounds the
    hinge loss, and therefore the error. With another ``lipschitz`` it bounds the loss that has this constant.

    Parameters
    ----------
    loss : float
        The hinge loss of u on the distribution.
    norm : float
        |u|; a bound B on it if lam is None.
    rho : float
        The radius: no sample is longer.
    n : int
        Number of training samples.
    lam : float or None, default=None
        λ > 0 in the convention of (15.4). None takes ``best_lambda``, which gives loss + √(8ρ²B²/n).
    lipschitz : float, default=1.0
        The Lipschitz constant of a convex loss, such as ``mercer.losses.EpsilonInsensitive().lipschitz``. The default
        is that of the hinge loss.

    Returns
    -------
    loss : float

    Examples
    --------
    >>> from mercer.theory import bounds
    >>> bounds.soft_margin(0.1, norm=10.0, rho=1.0, n=80_000)
    0.2
    """
    loss, norm = _nonnegative("loss", loss), _nonnegative("norm", norm)
    n, steepest = sample_count(n), _steepest(lipschitz, rho)
    if lam is None:
        return loss + sqrt(8.0 * steepest**2 * norm**2 / n)
    lam = _positive("lam", lam)
    return loss + (lam * norm**2 if norm > 0 else 0.0) + 2.0 * steepest**2 / (lam * n)


def best_lambda(norm: float, rho: float, n: int, *, lipschitz: float = hinge.lipschitz) -> float:
    """The λ that minimises the bound of Corollary 15.7 over all |u| ≤ B: √(2ρ²/(B²n)).

    Parameters
    ----------
    norm : float
        B > 0.
    rho : float
        The radius: no sample is longer.
    n : int
        Number of training samples.
    lipschitz : float, default=1.0
        As in ``soft_margin``.

    Returns
    -------
    lam : float
        In the convention of (15.4): ``lambda_to_C(lam, n)`` is the C of the machines.

    Examples
    --------
    >>> from mercer.theory import bounds, lambda_to_C
    >>> lam = bounds.best_lambda(norm=10.0, rho=1.0, n=20_000)
    >>> lam, lambda_to_C(lam, 20_000)
    (0.001, 0.025)
    """
    return sqrt(2.0 * _steepest(lipschitz, rho) ** 2 / (_positive("norm", norm) ** 2 * sample_count(n)))


def vc(dimension: float, n: int, delta: float = 0.05, error: float = 0.0) -> float:
    """Bound the error of any halfspace, however it was chosen, with probability 1 − δ.

    error + √(2D log(en/D)/n) + √(log(1/δ)/(2n)). The VC dimension D of halfspaces is the number of features, plus one
    with a bias. The bound is vacuous for n ≤ D.

    Parameters
    ----------
    dimension : float
        D ≥ 1; inf for kernels with an infinite-dimensional feature space.
    n : int
        Number of training samples.
    delta : float, default=0.05
        The probability, in (0, 1), that the bound fails.
    error : float, default=0.0
        The fraction of training samples on the wrong side.

    Returns
    -------
    error : float
        A bound on the 0–1 loss; inf if n < D.

    Examples
    --------
    >>> from mercer.theory import bounds
    >>> bounds.vc(dimension=3, n=10_000) < 0.1 < bounds.vc(dimension=100, n=10_000)
    True
    """
    if not isinstance(dimension, Real) or not dimension >= 1:
        raise InvalidInputError(f"dimension={dimension!r} was given: a VC dimension is a number of at least 1, or inf.")
    n, delta, error = sample_count(n), _probability(delta), _nonnegative("error", error)
    if n < dimension:
        return inf
    D = float(dimension)
    return error + sqrt(2.0 * D * log(e * n / D) / n) + sqrt(log(1.0 / delta) / (2.0 * n))


@dataclass(frozen=True)
class Bound:
    """One bound of a report.

    Attributes
    ----------
    name : "hard margin", "soft margin" or "VC dimension".
    value : the bound; inf if its theorem does not apply.
    remark : the theorem, or why it does not apply.
    """

    name: str
    value: float
    remark: str


@dataclass(frozen=True)
class BoundReport:
    """The bounds of one hyperplane.

    Attributes
    ----------
    of : the classes that it separates.
    n, gamma, rho, norm : number of samples, smallest geometric margin, radius and |w|.
    loss, error : the mean hinge loss and the fraction of errors on the samples.
    dimension : the VC dimension of halfspaces in the feature space.
    bounds : hard margin, soft margin with the model's C, soft margin with the best λ, VC dimension.
    best_lambda, best_C : the best λ of Corollary 15.7 for B = |w| (w includes a bias), and its C.
    delta : the probability that a bound fails.
    """

    of: str
    n: int
    gamma: float
    rho: float
    norm: float
    loss: float
    error: float
    dimension: float
    bounds: tuple[Bound, ...]
    best_lambda: float
    best_C: float
    delta: float

    @property
    def smallest(self) -> Bound:
        """The smallest bound."""
        return min(self.bounds, key=lambda bound: bound.value)

    def __str__(self) -> str:
        lines = [
            f"Bounds on the error of {self.of} ({self.n} samples, {1 - self.delta:.0%} confidence)",
            f"  margin γ {self.gamma:.4g}, radius ρ {self.rho:.4g}, |w| {self.norm:.4g}, hinge loss {self.loss:.4g}, "
            f"error {self.error:.4g}",
        ]
        for bound in self.bounds:
            value = "      -" if bound.value == inf else f"{bound.value:7.4g}"
            verdict = "smallest" if bound is self.smallest and bound.value < inf else ""
            if 1 <= bound.value < inf:
                verdict = f"{verdict}, says nothing".lstrip(", ")
            lines.append(f"  {bound.name:<24} {value}  {verdict:<22} {bound.remark}".rstrip())
        lines.append(f"  for |w| ≤ {self.norm:.4g} the best λ is {self.best_lambda:.4g}, that is C = {self.best_C:.4g}")
        return "\n".join(lines)


class BoundReports(tuple[BoundReport, ...]):
    """The result of ``error_bounds``: a tuple of reports, one for each hyperplane, that prints as text."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))


def error_bounds(model: Any, X: Any, y: Any, delta: float = 0.05) -> BoundReports:
    """All bounds for a fitted classifier, estimated from its training samples.

    Parameters
    ----------
    model : fitted classifier
        As in ``margins``.
    X, y : the training samples and their labels.
    delta : float, default=0.05
        The probability, in (0, 1), that a bound fails.

    Returns
    -------
    reports : BoundReports
        A tuple with a BoundReport for each hyperplane of the model; prints as text.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer import error_bounds
    >>> X = np.repeat([[1.0, 0.5], [1.0, -0.5], [-1.0, 0.5], [-1.0, -0.5]], 1000, axis=0)
    >>> y = np.where(X[:, 0] > 0, 1, -1)
    >>> model = SVC(C=float("inf"), kernel="linear", fit_intercept=False).fit(X, y)
    >>> print(error_bounds(model, X, y))
    Bounds on the error of 1 against -1 (4000 samples, 95% confidence)
      margin γ 1, radius ρ 1.118, |w| 1, hinge loss 0, error 0
      hard margin               0.0783                         Theorem 15.4
      soft margin, C of model        -                         Corollary 15.7: no λ belongs to C = inf
      soft margin, best λ         0.05  smallest               Corollary 15.7, in expectation, for that λ
      VC dimension 2            0.1121                         any halfspace
      for |w| ≤ 1 the best λ is 0.025, that is C = 0.005
    """
    _probability(delta)
    model, X, _ = unwrap(model, X)
    kernel, n_features = kernel_of(model), getattr(model, "n_features_in_", None)
    dimension = feature_dimension(kernel, n_features)
    C = getattr(model, "C", None)
    minimised = _minimised(model) if isinstance(C, Real) else ""
    return BoundReports(_report(problem, dimension, C, minimised, delta) for problem in margins(model, X, y).problems)


# an alias
compare = error_bounds


def _minimised(model: Any) -> Loss | str:
    """The loss that the model minimises beside ½|w|², or why Corollary 15.7 does not apply to the model."""
    from mercer.erm.convex_losses import name_of
    from mercer.erm.penalties import SQUARED, find_penalty
    from mercer.estimators.kernel_erm import KernelERM, loss_of_erm
    from mercer.estimators.least_squares.ls_svc import LSSVC
    from mercer.estimators.manifold.laplacian_svc import LaplacianSVC
    from mercer.estimators.ranking.ordinal_svc import OrdinalSVC

    if isinstance(model, RampSVC):
        return "the ramp loss is not convex"
    if isinstance(model, LSSVC):
        return "the squared loss is not Lipschitz"
    if isinstance(model, LaplacianSVC) and model.smoothness > 0:
        return "the model also makes f smooth"
    if isinstance(model, OrdinalSVC) and len(model.classes_) > 2:
        return "the losses of all thresholds have one w"
    if type(model).__name__ in ("KernelLogisticRegression", "LogisticRegression"):
        return "the model minimises the logistic loss"
    if not isinstance(model, KernelERM):
        loss = classification_loss(model)
    else:
        loss = loss_of_erm(model)
        if not isinstance(loss, Hinge | SquaredHinge):
            return f"the model minimises the {name_of(loss)}"
        if find_penalty(model.penalty) != SQUARED:
            return "the penalty is not ½|w|²"
    return loss if loss.lipschitz < inf else f"the {loss.name} is not Lipschitz"


def _report(problem: Margins, dimension: float, C: Any, minimised: Loss | str, delta: float) -> BoundReport:
    """All bounds of one hyperplane; ``minimised`` is the loss that was minimised with C, or why there is no bound."""
    n, rho = len(problem.rows), problem.rho
    loss = float(np.maximum(0.0, 1.0 - problem.functional).mean())
    error = problem.n_wrong / n
    biased = not problem.homogeneous
    # the bias as the weight b/ρ of a feature of constant value ρ
    norm = sqrt(problem.norm**2 + (problem.bias / rho) ** 2) if biased and rho > 0 else problem.norm
    radius = sqrt(2.0) * rho if biased else rho
    gamma = problem.gamma * problem.norm / norm if norm > 0 else -inf
    added = ", with the bias as a feature" if biased else ""
    found = [
        Bound("hard margin", hard_margin(gamma, radius, n, delta), f"Theorem 15.4{added}")
        if gamma > 0
        else Bound("hard margin", inf, "Theorem 15.4: the samples are not separated")
    ]
    if not isinstance(C, Real) or not 0 < float(C) < inf:
        found.append(Bound("soft margin, C of model", inf, f"Corollary 15.7: no λ belongs to C = {C}"))
    elif isinstance(minimised, str):
        found.append(Bound("soft margin, C of model", inf, f"Corollary 15.7: {minimised}"))
    else:
        lam = 1.0 / (2.0 * float(C) * n)
        value = soft_margin(loss, norm, radius, n, lam, lipschitz=minimised.lipschitz)
        found.append(Bound("soft margin, C of model", value, f"Corollary 15.7, in expectation, λ = {lam:.4g}{added}"))
    remark = f"Corollary 15.7, in expectation, for that λ{added}"
    found.append(Bound("soft margin, best λ", soft_margin(loss, norm, radius, n), remark))
    D = max(1.0, dimension + biased)
    if np.isinf(D):
        found.append(Bound("VC dimension", inf, "the feature space has no finite dimension"))
    else:
        remark = "any halfspace" if n >= D else "fewer samples than dimensions"
        found.append(Bound(f"VC dimension {D:.6g}", vc(D, n, delta, error), remark))
    lam = best_lambda(norm, radius, n) if norm > 0 and radius > 0 else inf
    C_best = lambda_to_C(lam, n) if 0 < lam < inf else inf
    return BoundReport(
        problem.name, n, problem.gamma, rho, problem.norm, loss, error, D, tuple(found), lam, C_best, delta
    )


def feature_dimension(kernel: Kernel, n_features: int | None) -> float:
    """The dimension of the feature space of linear and polynomial kernels; inf for all others.

    d features have (d+k−1 choose k) monomials of degree k, and (d+k choose k) up to degree k ([CS229] 5.4).
    """
    if n_features is None:
        return inf
    if isinstance(kernel, Linear):
        return float(n_features)
    if isinstance(kernel, Polynomial):
        up_to = kernel.coef0 != 0
        return float(comb(n_features + kernel.degree - (0 if up_to else 1), kernel.degree))
    return inf


def _steepest(lipschitz: float, rho: float) -> float:
    """The Lipschitz constant of the loss as a function of w, for |φ(x)| ≤ ρ (Claim 15.6)."""
    if lipschitz == inf:
        raise InvalidInputError(
            "lipschitz=inf was given: the corollary holds for losses with a Lipschitz constant, such as the hinge "
            "loss, not for squared losses."
        )
    return _positive("lipschitz", lipschitz) * _nonnegative("rho", rho)


def _positive(name: str, value: float) -> float:
    if not isinstance(value, Real) or not 0 < value < inf:
        raise InvalidInputError(f"{name}={value!r} was given: it must be a finite number greater than 0.")
    return float(value)


def _nonnegative(name: str, value: float) -> float:
    if not isinstance(value, Real) or not 0 <= value < inf:
        raise InvalidInputError(f"{name}={value!r} was given: it must be a finite number of at least 0.")
    return float(value)


def _probability(delta: float) -> float:
    if not isinstance(delta, Real) or not 0 < delta < 1:
        raise InvalidInputError(f"delta={delta!r} was given: it must be a probability strictly between 0 and 1.")
    return float(delta)
