"""Pegasos: stochastic subgradient descent for the support vector machine, linear or with any kernel."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import keep_parameters, warn_user
from mercer.estimators.online.online_classifier import OnlineClassifier
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels.features import Vector
from mercer.online.sgd import Model, ObjectivePoint, Rule, Run
from mercer.online.sgd_certificate import certificates, evaluate_all, objective_point
from mercer.problems.clock import Clock
from mercer.problems.solution import Certificate, Status, TracePoint, combine
from mercer.validation import thread_count


class PegasosClassifier(OnlineClassifier):
    """Soft-SVM by stochastic subgradient descent: minimise λ/2 |w|² + (1/m) Σ max(0, 1 - yᵢ <w, φ(xᵢ)>).

    The problem is [SSBD] (15.12), the algorithm [SSBD] 15.5, and with kernels [SSBD] 16.3 and [L8] Algorithm 1. Step t
    draws a sample i; if yᵢ <w, φ(xᵢ)> < 1 for w = θ/(λt), it adds yᵢ φ(xᵢ) to θ. The result is the mean of all w. The
    cost of a linear step is the number of non-zeros of its sample; a kernel step needs one kernel value for each sample
    with a non-zero coefficient. Several classes are handled one-vs-rest.

    Parameters
    ----------
    lam : float, default=0.01
        λ, the weight of the norm. Without an intercept it corresponds to C = 1/(λm) of ``SVC`` for m samples.
    kernel, degree, gamma, coef0 : as in ``SVC``; the default is "linear".
    max_iter : int, default=20
        Number of passes, of m steps each (m / batch_size with larger batches).
    n_steps : int or None, default=None
        The number of steps T; overrides max_iter.
    tol : float or None, default=None
        Stop when the relative duality gap is at most tol; checked after 1, 2, 4, 8, … passes. None takes all steps.
    step_size : "pegasos", float or callable, default="pegasos"
        The sizes η_t of the steps w := w - η_t (λw - (1/k) Σ yᵢ φ(xᵢ)), where the sum is over those of the k samples of
        step t that have yᵢ <w, φ(xᵢ)> < 1 ([D6] Note 26). A number is the size of all steps, a function is called with
        t = 1, 2, …; λη_t must be above 0 and below 2. "pegasos" is w = θ/(λt), that is η_t = 1/(λ(t + 1)), without
        computing it; ``lambda t: 1 / (lam * t)`` is the sequence from which [SSBD] 15.5 derives it.
    average : {"all", "tail", "last"}, default="all"
        The result of T steps, of which w⁽¹⁾ = 0, …, w⁽ᵀ⁾ are the iterates: the mean of all of them, the mean of the
        second half, or w⁽ᵀ⁾.
    batch_size : int, default=1
        Number k of samples whose mean subgradient makes a step.
    project : bool, default=False
        Whether to project each iterate onto the ball of radius 1/√λ, which contains the optimum.
    sampling : {"uniform", "shuffled"}, default="uniform"
        "uniform" draws samples independently with probabilities proportional to their weights. "shuffled" takes all
        samples in a new order in each pass, with step sizes proportional to their weights.
    budget : int or None, default=None
        For kernels: the maximum number of samples with non-zero coefficients. If it is exceeded, the sample with the
        smallest contribution to w is removed (Wang, Crammer & Vucetic, JMLR 13, 2012), also from the mean.
    fit_intercept : bool, default=True
        Whether to add a constant feature 1, as in [D6] Note 26; its weight b is regularised like the others. Without it
        the hyperplane passes through the origin.
    class_weight : dict or "balanced", default=None
        Factors of the sample weights for each class.
    cache_size : float or "auto", default="auto"
        Memory for the kernel matrix in MB. If the matrix does not fit, kernel values are computed when needed.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.
    verbose, n_jobs, time_limit : as in ``SVC``.
    trace : bool, default=False
        Whether to keep every step in ``steps_``. Each step then evaluates its objective on all samples, which takes
        about as long as a pass: for small problems.

    Attributes
    ----------
    steps_ : Steps, or a list of them with one for each problem
        With ``trace``: every drawn sample i with the number t of its step; yᵢ <w, φ(xᵢ)> for the w = w⁽ᵗ⁾ before the
        step (margin); whether it was below 1, so that the sample changed w (updated); η_t (step_size), which is
        1/(λ(t + 1)) for "pegasos"; and the objective of w⁽ᵗ⁾. Samples of a batch have the same t.
    objective_trace_ : list of ObjectivePoint
        After 1, 2, 4, 8, … passes and at the end: the number of steps, the objective (summed over one-vs-rest
        problems), and a bound on its expected excess over the optimum, ρ²(1/2 + 2 log(T + 1)) / (λT) with
        ρ = max |φ(x)|; inf if no such bound holds.
    certificate_, certificates_ : Certificate
        The duality gap of the objective divided by λ, which is the convention of ``SVC``; the dual point comes from the
        coefficients of the run. Not available after ``partial_fit``, which does not keep all samples.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        w, for the linear kernel.
    support_, support_vectors_, dual_coef_ : for other kernels, the samples with non-zero coefficients.
    intercept_, classes_, class_weight_, rkhs_norm_, function_, n_features_in_, feature_names_in_ : as in ``SVC``.
    n_iter_, t_ : number of passes and of steps.
    n_updates_ : ndarray, number of steps that changed w, for each problem.

    Examples
    --------
    >>> from mercer import PegasosClassifier
    >>> X = [[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]]
    >>> model = PegasosClassifier(lam=0.1, max_iter=500, random_state=0).fit(X, [1, 1, 1, 2, 2, 2])
    >>> model.predict([[-0.8, -1], [3, 2]])
    array([1, 2])
    >>> model.certificate_.relative_gap < 0.1
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OnlineClassifier._parameter_constraints,
        "lam": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0.0, None, closed="left"), None],
        "step_size": [StrOptions({"pegasos"}), Interval(Real, 0.0, None, closed="neither"), callable],
        "average": [StrOptions({"all", "tail", "last"})],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "project": ["boolean"],
        "sampling": [StrOptions({"uniform", "shuffled"})],
        "budget": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        lam: float = 0.01,
        *,
        kernel: Any = "linear",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        max_iter: int = 20,
        n_steps: int | None = None,
        tol: float | None = None,
        step_size: Any = "pegasos",
        average: str = "all",
        batch_size: int = 1,
        project: bool = False,
        sampling: str = "uniform",
        budget: int | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        cache_size: Any = "auto",
        random_state: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        trace: bool = False,
    ) -> None:
        keep_parameters(self, locals())

    certificates_: list[Certificate]

    def _rule(self, n_steps: int | None) -> Rule:
        if self.average == "tail" and n_steps is None:
            raise InvalidInputError(
                "average='tail' needs the total number of steps, which partial_fit does not know: use 'all' or 'last'."
            )
        if self.budget is not None and (self._is_linear or self.project):
            other = "the linear kernel, whose model is w itself" if self._is_linear else "project=True"
            raise InvalidInputError(f"budget={self.budget} cannot be used with {other}: use budget=None.")
        eta = None if isinstance(self.step_size, str) else self._size_of_step
        if eta is not None and self.project:
            raise InvalidInputError(
                f"project=True cannot be used with step_size={self.step_size!r}: use step_size='pegasos', or "
                "project=False."
            )
        return Rule(
            lam=float(self.lam),
            bias=float(self.fit_intercept),
            batch=int(self.batch_size),
            project=bool(self.project),
            start={"all": 0, "last": -1}.get(self.average, (n_steps or 0) // 2),
            budget=-1 if self.budget is None else int(self.budget),
            eta=eta,
        )

    def _size_of_step(self, t: int) -> float:
        """η_t, checked."""
        eta = self.step_size(t) if callable(self.step_size) else self.step_size
        if not isinstance(eta, Real) or not 0.0 < float(self.lam) * float(eta) < 2.0:
            given = f"step_size({t})" if callable(self.step_size) else "step_size"
            raise InvalidInputError(
                f"{given} is {eta!r}: with lam={self.lam:g} it must be a number above 0 and below 2/lam = "
                f"{2.0 / self.lam:g}, or the steps diverge."
            )
        return float(eta)

    def _weighted(self, codes: Vector, weight: Vector) -> Vector:
        """The weights of the samples times those of their classes."""
        return weight if self.class_weight is None else weight * self.class_weight_[codes]

    def _train(self, data: Data, codes: Vector, weight: Vector, clock: Clock) -> Run:
        weight = self._weighted(codes, weight)
        draws = Draws(self._generator(), weight, self.sampling == "shuffled", int(self.batch_size))
        per_pass = -(-draws.size // int(self.batch_size))
        n_steps = int(self.max_iter) * per_pass if self.n_steps is None else int(self.n_steps)
        if self.average == "last":
            n_steps -= 1  # T iterates take T − 1 steps, since the first is 0
        # shuffled samples are used equally often, so their weights scale the steps
        step = weight * draws.size / weight.sum() if draws.shuffled else np.broadcast_to(1.0, data.n)
        run = self._begin(data, codes, weight, step, self._rule(n_steps), clock)
        self._record(run, draws.size)
        n_threads = thread_count(self.n_jobs)
        self.objective_trace_: list[ObjectivePoint] = []
        look, reached, self._status = per_pass, False, Status.CONVERGED
        # models whose objectives are recorded; evaluated at the end unless tol or a callback needs them earlier
        seen: list[tuple[int, Model]] = []
        closely = self.tol is not None or clock.reports.callback is not None
        while run.t < n_steps:
            steps = self._steps(run, data, clock)
            if steps == 0:
                self._status = clock.over() or Status.TIME_LIMIT
                break
            run.advance(draws.take(min(n_steps - run.t, max(1, look - run.t), steps)), n_threads)
            if run.t >= look and run.t < n_steps:
                look *= 2
                seen.append((run.t, run.model()))
                reached = closely and self._look(run, seen, data.psd, clock, n_threads)
                if reached:
                    break
        if not self.objective_trace_ or self.objective_trace_[-1].steps < run.t:
            reached = self._look(run, [*seen, (run.t, run.model())], data.psd, clock, n_threads)
        if self._status is Status.CONVERGED and self.tol is not None and not reached:
            self._status = Status.MAX_ITER
        self.n_iter_ = int(np.ceil(run.t / per_pass))
        return run

    def _look(self, run: Run, seen: list[tuple[int, Model]], psd: bool, clock: Clock, n_threads: int) -> bool:
        """Evaluate these models, the last of which is the current one; return whether its gap is at most tol.

        Extends ``objective_trace_``, sets the certificates and empties ``seen``.
        """
        points, self.certificates_ = self._judged(run, seen, psd, n_threads)
        seen.clear()
        self.objective_trace_ += points
        several = f"{len(self.certificates_)} one-vs-rest problems" if len(self.certificates_) > 1 else None
        self.certificate_ = found = combine(self.certificates_, of=several)
        clock.report(TracePoint(clock.seconds, run.t, found.kkt_violation, found.dual, len(run.weight)), lambda: run)
        return self.tol is not None and found.valid and found.relative_gap <= self.tol

    def _judged(
        self, run: Run, seen: list[tuple[int, Model]], psd: bool, n_threads: int
    ) -> tuple[list[ObjectivePoint], list[Certificate]]:
        """The objectives of these models, and the certificates of the last one."""
        evaluated = evaluate_all(run, seen, n_threads)
        return [objective_point(run, one) for one in evaluated], certificates(run, evaluated[-1], psd, n_threads)

    def _warn_unfinished(self) -> None:
        if self._status is Status.CONVERGED:
            return
        limit = f"max_iter={self.max_iter}" if self.n_steps is None else f"n_steps={self.n_steps}"
        message = {
            Status.MAX_ITER: f"Pegasos ended before its tolerance was reached ({limit}, tol={self.tol}).",
            Status.TIME_LIMIT: f"Pegasos ended early (time_limit={self.time_limit} s), after {self.t_} steps.",
        }.get(self._status, f"Pegasos was interrupted after {self.t_} steps; the model fitted so far is usable.")
        warn_user(f"{message} The model is {self.certificate_}.", ConvergenceWarning)


class Draws:
    """Draws the sample indices of the steps; ``size`` is the number of samples with positive weight."""

    def __init__(self, rng: np.random.Generator, weight: Vector, shuffled: bool, batch: int) -> None:
        self.rng = rng
        self.shuffled = shuffled
        self.batch = batch
        self.size = int(np.count_nonzero(weight))
        self.used = None if self.size == len(weight) else np.flatnonzero(weight)
        kept = weight if self.used is None else weight[self.used]
        self.share = None if np.ptp(kept) == 0 else kept / kept.sum()
        self._left = np.empty(0, dtype=np.intp)

    def take(self, n_steps: int) -> Vector:
        """Indices for the next n_steps steps; the last batch of a pass may be smaller."""
        if not self.shuffled:
            drawn = self._independent(n_steps * self.batch)
            return drawn if self.used is None else self.used[drawn]
        if len(self._left) == 0:
            self._left = self.rng.permutation(self.size if self.used is None else self.used)
        taken, self._left = np.split(self._left, [min(len(self._left), n_steps * self.batch)])
        return taken

    def _independent(self, size: int) -> Vector:
        if self.share is None:
            return self.rng.integers(0, self.size, size)
        return self.rng.choice(self.size, size, p=self.share)


__all__ = ["ObjectivePoint", "PegasosClassifier"]
