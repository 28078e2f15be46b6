"""The perceptron, linear or with any kernel, and the bound on its number of updates."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import keep_parameters, warn_user
from mercer.estimators.online.online_classifier import OnlineClassifier
from mercer.estimators.svc import SVC
from mercer.exceptions import InvalidInputError, NotSeparableError
from mercer.gram.operator import Data
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector
from mercer.online.sgd import Rule, Run
from mercer.problems.clock import Clock
from mercer.problems.solution import Status, TracePoint
from mercer.validation import call_kernel, thread_count, validate_samples


class Perceptron(OnlineClassifier):
    """Rosenblatt's perceptron: while some sample has yᵢ <w, φ(xᵢ)> ≤ 0, add yᵢ φ(xᵢ) to w.

    ``fit`` is the batch perceptron: it repeats passes over the samples until a pass makes no update ([SSBD] Remark
    15.1, Exercise 15.2; with kernels Exercise 16.2). ``partial_fit`` is the online perceptron: it visits each sample
    once. If a hyperplane through the origin separates the samples with margin γ, and |φ(x)| ≤ ρ, at most (ρ/γ)² updates
    are made in any order of the samples: see ``update_bound``. Several classes are handled one-vs-rest.

    Parameters have the same meaning as in scikit-learn, which has no ``kernel``. ``penalty`` must be None: with a
    penalty, w = 0 minimises the perceptron's loss max(0, -yf).

    Parameters
    ----------
    penalty, alpha, l1_ratio : None, float and float, default=None, 0.0001 and 0.15
        Present for compatibility with scikit-learn. penalty must be None; the other two are ignored. For a penalised
        classifier use ``PegasosClassifier``, ``SVC`` or ``LinearSVC``, whose losses require a margin.
    kernel, degree, gamma, coef0 : as in ``SVC``; the default is "linear".
    fit_intercept : bool, default=True
        Whether to add a constant feature 1, so that hyperplanes need not pass through the origin.
    max_iter : int, default=1000
        Maximum number of passes.
    tol : float or None, default=1e-3
        Stop if the fraction of mistakes in a pass has not improved by tol for ``n_iter_no_change`` passes. None
        continues until a pass makes no mistake, or until max_iter.
    early_stopping : bool, default=False
        Whether to hold out samples of each class and to use the fraction of mistakes on these instead.
    validation_fraction : float, default=0.1
        The fraction of samples held out for early stopping.
    n_iter_no_change : int, default=5
        Number of passes without improvement before the fit stops with a ConvergenceWarning (without a warning if
        early_stopping ended the fit). ``partial_fit`` never warns.
    shuffle : bool, default=True
        Whether to use a new random order in each pass instead of the given order.
    average : bool, default=False
        Whether to return the mean of all w instead of the last one.
    eta0 : float, default=1
        Factor of the updates. It only changes the length of w.
    class_weight : dict or "balanced", default=None
        Factors of the updates for each class. ``update_bound`` assumes that there are none, and no sample weights.
    warm_start : bool, default=False
        Whether to start from the w of the last fit; for the linear kernel only. With others use ``partial_fit``.
    cache_size, verbose, n_jobs, time_limit : as in ``SVC``.
    random_state : int, RandomState instance or None, default=0
        Seed of the order of the samples and of the choice of held-out samples.
    trace : bool, default=False
        Whether to keep every step in ``steps_``: for small problems, since such steps take longer.

    Attributes
    ----------
    steps_ : Steps, or a list of them with one for each problem
        With ``trace``: every visited sample i with the number t of its step and that of its pass (passes);
        yᵢ <w, φ(xᵢ)> before the step (margin); whether it was not above 0, so that the sample changed w (mistake); and
        the number of mistakes so far, this one included (mistakes).
    n_updates_ : ndarray
        Number of updates for each problem.
    n_iter_, t_ : number of passes and of visited samples.
    separated_ : bool
        Whether the last pass of ``fit`` made no mistake: w separates all classes (with early_stopping, on the samples
        that were not held out).
    mistakes_ : list of int
        Number of mistakes in each pass, over all problems.
    validation_mistakes_ : list of float
        With early_stopping: the weighted fraction of mistakes on the held-out samples after each pass.
    coef_, intercept_, support_, support_vectors_, dual_coef_, classes_, rkhs_norm_, function_,
    n_features_in_, feature_names_in_ : as in ``PegasosClassifier``.

    Examples
    --------
    >>> from mercer import Perceptron
    >>> X, y = [[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]], [1, 1, 1, 2, 2, 2]
    >>> model = Perceptron().fit(X, y)
    >>> model.predict([[-0.8, -1], [3, 2]])
    array([1, 2])
    >>> bool(model.n_updates_[0] <= model.update_bound(X, y)[0])
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OnlineClassifier._parameter_constraints,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "average": ["boolean"],
        "eta0": [Interval(Real, 0.0, None, closed="neither")],
        "penalty": [StrOptions({"l1", "l2", "elasticnet"}), None],
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "linear",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        penalty: str | None = None,
        alpha: float = 1e-4,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        average: bool = False,
        eta0: float = 1.0,
        class_weight: Any = None,
        warm_start: bool = False,
        cache_size: Any = "auto",
        verbose: Any = 0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        time_limit: float | None = None,
        trace: bool = False,
    ) -> None:
        keep_parameters(self, locals())

    def _rule(self, n_steps: int | None) -> Rule:
        if self.penalty is not None:
            raise InvalidInputError(
                f"penalty={self.penalty!r} cannot be used with the perceptron: with a penalty, w = 0 minimises its "
                "loss max(0, -yf). Use penalty=None, or PegasosClassifier, SVC or LinearSVC, whose losses require a "
                "margin."
            )
        return Rule(lam=0.0, bias=float(self.fit_intercept), start=0 if self.average else -1)

    def _train(self, data: Data, codes: Vector, weight: Vector, clock: Clock) -> Run:
        weight = float(self.eta0) * weight * self.class_weight_[codes]
        used, held = self._set_aside(codes, weight)
        run = self._begin(data, codes, weight, weight, self._rule(None), clock)
        self._record(run, len(used))
        self._warm_up(run)
        rng, n_threads = self._generator(), thread_count(self.n_jobs)
        self.__dict__.pop("validation_mistakes_", None)
        if len(held):
            self.validation_mistakes_: list[float] = []
        self.mistakes_: list[int] = []
        self.separated_, self._status = False, Status.MAX_ITER
        fewest, stale = np.inf, 0
        while len(self.mistakes_) < self.max_iter:
            before = int(run.n_updates.sum())
            order = rng.permutation(used) if self.shuffle else used
            while len(order):
                steps = self._steps(run, data, clock)
                if steps == 0:
                    self._status = clock.over() or Status.TIME_LIMIT
                    self.n_iter_ = len(self.mistakes_)
                    return run
                run.advance(order[:steps], n_threads)
                order = order[steps:]
            self.mistakes_.append(int(run.n_updates.sum()) - before)
            share = self.mistakes_[-1] / (len(used) * len(run.y))
            if len(held):
                share = self._share_of_mistakes(run, held, codes, weight, n_threads)
                self.validation_mistakes_.append(share)
            clock.report(TracePoint(clock.seconds, run.t, share, -share, len(used)), lambda: run)
            stale = 0 if self.tol is None or share < fewest - self.tol else stale + 1
            fewest = min(fewest, share)
            self.separated_ = self.mistakes_[-1] == 0
            if self.separated_ or stale >= self.n_iter_no_change:
                self._status = Status.CONVERGED
                break
        self.n_iter_ = len(self.mistakes_)
        return run

    def _set_aside(self, codes: Vector, weight: Vector) -> tuple[Vector, Vector]:
        """Indices of the training samples, and of those held out for early stopping."""
        used = np.flatnonzero(weight > 0)
        if not self.early_stopping:
            return used, used[:0]
        splitter = StratifiedShuffleSplit(test_size=self.validation_fraction, random_state=self.random_state)
        learn, held = next(splitter.split(np.zeros((len(used), 1)), codes[used]))
        return np.sort(used[learn]), np.sort(used[held])

    def _warm_up(self, run: Run) -> None:
        """Start the run from the w of the last fit if warm_start is set. Edits the run in place."""
        if not self.warm_start or not hasattr(self, "_memory"):
            return
        if not self._is_linear:
            raise InvalidInputError(
                "warm_start=True needs the linear kernel, whose w does not depend on the samples. With other kernels "
                "use partial_fit, or warm_start=False."
            )
        if self._memory.v.shape != run.v.shape:
            raise InvalidInputError(
                f"warm_start=True needs as many classes and features as in the last fit: w had the shape "
                f"{self._memory.v.shape}, and now it has {run.v.shape}. Use warm_start=False."
            )
        run.begin_with(self._memory)

    def _share_of_mistakes(self, run: Run, held: Vector, codes: Vector, weight: Vector, n_threads: int) -> float:
        """The weighted fraction of mistakes of the run's model on the held-out samples."""
        f = run.values(run.model(), n_threads)[:, held]
        said = (f[0] > 0).astype(np.intp) if self._n_problems == 1 else f.argmax(axis=0)
        return float(weight[held] @ (said != codes[held]) / weight[held].sum())

    def _warn_unfinished(self) -> None:
        """Warn unless the samples are separated, or early_stopping has ended the fit."""
        finished = self._status is Status.CONVERGED
        if finished and (self.separated_ or self.early_stopping):
            return
        passes = f"{self.n_iter_} {'pass' if self.n_iter_ == 1 else 'passes'}"
        done = f"after {passes} and {int(self.n_updates_.sum())} updates"
        left = f"the last pass made {self.mistakes_[-1]} mistakes" if self.mistakes_ else "no pass was completed"
        reason, more = {
            Status.CONVERGED: (
                f"the fraction of mistakes has not fallen by tol={self.tol} in "
                f"n_iter_no_change={self.n_iter_no_change} passes",
                "use tol=None to continue until max_iter",
            ),
            Status.MAX_ITER: (f"max_iter={self.max_iter} was reached", "raise max_iter"),
            Status.TIME_LIMIT: (f"time_limit={self.time_limit} s was reached", "raise time_limit"),
        }.get(self._status, ("it was interrupted", "fit again"))
        warn_user(
            f"The perceptron ended before it separated the classes: {reason}, {done}; {left}. The model fitted so far "
            f"is usable. If the classes are separable (see mercer.separability), {more}. If not, the perceptron never "
            "converges: use SVC, LinearSVC or PegasosClassifier, which tolerate mistakes.",
            ConvergenceWarning,
        )

    def update_bound(self, X: Any, y: Any) -> Vector:
        """The bound (ρ/γ)² of [SSBD] Remark 15.1 on the number of updates, for each problem.

        γ is the largest margin of a hyperplane through the origin, from ``SVC(C=inf)``; with an intercept, φ includes
        the constant feature. The bound is inf if the samples are not separable.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples of ``fit``.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        bound : ndarray of shape (1,) or (n_classes,)
            One for each problem.
        """
        check_is_fitted(self)
        check_consistent_length(X, y)
        codes = self._partial_targets(y, None)
        X, _ = validate_samples(self, X, None, reset=False)
        samples = call_kernel(self.kernel, X, X) if self._function_samples is not None else X
        kernel = self._kernel + 1.0 if self.fit_intercept else self._kernel
        features = kernel.prepare(samples)
        rho2 = float(kernel.diagonal(features).max())
        return np.array([_bound(kernel, samples, signs, rho2) for signs in self._signs(codes)])


def _bound(kernel: Kernel, samples: Matrix, y: Vector, rho2: float) -> float:
    """An upper bound of ρ²/γ² for labels ±1: the primal value ½|w|² of a feasible w is at least ½/γ²."""
    try:
        hard = SVC(C=np.inf, kernel=kernel, fit_intercept=False).fit(samples, y)
    except NotSeparableError:
        return np.inf
    return rho2 * 2.0 * float(hard.certificate_.primal)
