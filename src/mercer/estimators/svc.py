"""Support vector classification, one machine for each pair of classes.

SVC has a penalty C, NuSVC a bound nu on the share of errors.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer._sklearn_compat import Hidden, Interval, StrOptions, available_if, deprecated, ovr_decision_function
from mercer.estimators.base import STEPWISE_PARAMETERS, KernelMachine, class_ends, keep_parameters, norm, warn_user
from mercer.estimators.exact_updates.updates_mixin import UPDATABLE, MachineUpdatesMixin
from mercer.estimators.landmark_machine import LANDMARK_PARAMETERS
from mercer.estimators.prediction import (
    FOLDS,
    fit_sigmoids,
    pair_coefficients,
    pairwise_probabilities,
    votes,
)
from mercer.estimators.score_mixins import ClassScoreMixin
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes
from mercer.gram.operator import Data
from mercer.kernels.features import Matrix, Vector
from mercer.losses import HardMargin, Loss, NuHinge
from mercer.losses.classification import classification_loss
from mercer.parts.layout import Parts
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Solution
from mercer.sources.checkpoint import Checkpoint
from mercer.svm.batch import OneVsOne, SolvePair, class_pairs
from mercer.svm.solve import solve_problem
from mercer.validation import check_weighted_classes, class_codes, class_weights

# this many pairs of classes always fit into memory; the fewest bytes that the solution of a pair takes
PAIRS_UNCHECKED, SOLUTION_BYTES = 500, 4000


def check_memory(n_samples: int, n_classes: int, per_pair: int) -> None:
    """Raise if a machine for each pair of classes, with ``per_pair`` bytes each, does not fit into the memory."""
    pairs = n_classes * (n_classes - 1) // 2
    if pairs <= PAIRS_UNCHECKED:
        return
    needed, available = pairs * per_pair, available_bytes()
    if needed > available:
        raise InvalidInputError(
            f"{n_classes:,} classes are {pairs:,} pairs, each with a machine of its own: for {n_samples:,} samples "
            f"that takes about {needed / 1e9:,.1f} GB, but {available / 1e9:,.1f} GB are available. Use fewer classes, "
            "or a linear machine (LinearSVC, LinearSVCCV, mercer fit --kernel linear), which has one for each class."
        )


class BaseSVC(ClassScoreMixin, KernelMachine):
    """One-vs-one classification by LIBSVM's conventions: class i against class j > i, i being positive."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMachine._parameter_constraints,
        "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "random_state": ["random_state"],
    }
    # class_weight="balanced" counts samples, not their weights
    _balances_weights: ClassVar[bool] = False

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        self.classes_, codes = class_codes(y)
        # each support vector has a coefficient for every other class
        check_memory(len(codes), len(self.classes_), SOLUTION_BYTES + 16 * len(codes) // len(self.classes_))
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes)
        if not hasattr(self, "nu"):  # LIBSVM reports an infeasible nu instead
            check_weighted_classes(codes, weight, self.class_weight_)
        if self.probability != "deprecated":
            name = type(self).__name__
            warn_user(
                "The `probability` parameter was deprecated in 1.9 and will be removed in version 1.11. "
                f"Use `CalibratedClassifierCV({name}(), ensemble=False)` instead of `{name}(probability=True)`",
                FutureWarning,
            )
        return codes.astype(np.float64)

    @abstractmethod
    def _loss(self) -> tuple[Loss, float]:
        """The loss and the factor C of its weights."""

    # ---- training --------------------------------------------------------------------------------------------

    def _problems(
        self, data: Data, y: Vector, weight: Vector, clock: Clock, options: Options | None = None
    ) -> OneVsOne:
        """The problems of all pairs of classes."""
        codes, used = y.astype(np.intp), weight > 0
        members = [np.flatnonzero((codes == c) & used) for c in range(len(self.classes_))]
        loss, C = self._loss()
        # a hard margin ignores the sizes of the weights
        factor = np.where(used, C, 0.0) if isinstance(loss, HardMargin) else C * weight * self.class_weight_[codes]
        options = self._options() if options is None else options
        return OneVsOne(data, members, loss, factor, bool(self.fit_intercept), options, clock, self._pair_solver())

    def _pair_solver(self) -> SolvePair:
        """The function that solves the problem of two classes."""
        return solve_problem if self.landmarks is None else self._landmark_solver()

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        problems = self._problems(data, y, weight, clock)
        n_pairs = len(problems.pairs)
        warm = getattr(self, "_warm", None) if self.warm_start else None
        starts = [None] * n_pairs
        if warm is not None and len(warm) == n_pairs:
            starts = [None if start is None else self._unit * start for start in warm]
        if n_pairs == 1 and problems.solve_pair is solve_problem:
            self._probA = self._probB = np.empty(0)
            clock.reports.to_attributes = lambda now: self._as_if(
                lambda machine: machine._publish_pairs(problems, [now])
            )
        calibrated = self.probability not in (False, "deprecated")
        with clock.share_of_time(1.0 / (1.0 + FOLDS) if calibrated else 1.0):
            solved = problems.solve_all(starts)
        clock.reports.to_attributes = None  # the sigmoids are fitted on other problems
        self._warm = [None if s is None else s.beta / self._unit for s in solved] if self.warm_start else None
        self._publish_pairs(problems, solved)
        self._probA = self._probB = np.empty(0)
        if calibrated:
            self._probA, self._probB = fit_sigmoids(problems, self.random_state)

    def _fit_parts(self, parts: Parts, clock: Clock, checkpoint: Checkpoint | None = None) -> None:
        from mercer.estimators.over_parts.pairs_over_parts import fit_pairs

        fit_pairs(self, parts, clock, checkpoint)

    def _publish_pairs(self, problems: OneVsOne, solved: list[Solution | None]) -> None:
        """Publish all pairs' coefficients in LIBSVM's layout: a sample of class i takes part in n_classes - 1 pairs."""
        members, n_classes = problems.members, len(self.classes_)
        full = np.zeros((n_classes - 1, problems.data.n))
        intercept, norms, steps = np.zeros(len(solved)), np.zeros(len(solved)), np.zeros(len(solved), np.int32)
        for k, ((i, j), solution) in enumerate(zip(problems.pairs, solved, strict=True)):
            if solution is None:
                # a class without weight never wins
                intercept[k] = float(len(members[i]) > 0) - float(len(members[j]) > 0)
                continue
            published = problems.loss.publish(solution.coefficients, solution.thresholds)
            if solution.given:
                full[j - 1, self._slots(problems.data.n, i)] = published.beta
            else:
                full[j - 1, members[i]] = published.beta[: len(members[i])]
                full[i, members[j]] = published.beta[len(members[i]) :]
            intercept[k], norms[k], steps[k] = published.intercept, norm(solution) / published.scale, solution.steps
        if self._given_pool is not None:
            copies = [self._slots(problems.data.n, c) for c in range(n_classes - 1)]
            members = [*(np.append(*both) for both in zip(members[:-1], copies, strict=True)), members[-1]]
        carries: Any = full[0] != 0 if n_classes == 2 else full.any(axis=0)
        support = [m[carries[m]] for m in members]
        order = np.concatenate(support)
        self._n_support = np.array([len(s) for s in support], dtype=np.int32)
        self.rkhs_norm_ = norms
        self._publish_support(problems.data, order)
        self._dual_coef_ = self._as_coef(full[:, order])
        self._intercept_ = intercept
        # with two classes the second is positive, unlike in LIBSVM
        sign = -1.0 if n_classes == 2 else 1.0
        self.dual_coef_ = sign * self._dual_coef_
        self.intercept_ = sign * intercept + 0.0
        self.n_iter_ = steps
        self._publish_solutions([s for s in solved if s is not None])
        paths = [
            s.path.of_samples(problems.samples(*pair)[0])
            for pair, s in zip(problems.pairs, solved, strict=True)
            if s is not None and s.path is not None
        ]
        if paths:
            self.steps_ = paths[0] if n_classes == 2 else paths

    # ---- prediction ------------------------------------------------------------------------------------------

    def _coef_rows(self) -> Matrix:
        return pair_coefficients(super()._coef_rows(), class_ends(self._n_support))

    def _get_coef(self) -> Any:
        if self.dual_coef_.shape[0] == 1:
            return self.dual_coef_ @ self.support_vectors_
        ends = class_ends(self._n_support)
        parts = [self._dual_coef_[:, a:b] @ self.support_vectors_[a:b] for a, b in pairwise(ends)]
        rows = [parts[i][[j - 1]] + parts[j][[i]] for i, j in class_pairs(len(self.classes_))]
        return sp.vstack(rows).tocsr() if sp.issparse(rows[0]) else np.vstack(rows)

    def decision_function(self, X: Any) -> Matrix:
        """Evaluate the decision function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        X : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_classes * (n_classes-1) / 2)
            One value per sample for two classes; else one per class (``decision_function_shape="ovr"``, a monotonic
            transformation of the pairwise values) or one per pair of classes (``"ovo"``).
        """
        values = self._values(X)
        if len(self.classes_) == 2:
            return -values[:, 0]
        if self.decision_function_shape == "ovr":
            return ovr_decision_function(values < 0, -values, len(self.classes_))
        return values

    def predict(self, X: Any) -> Vector:
        """The class label of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            The labels.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        n_classes = len(self.classes_)
        if self.break_ties and n_classes > 2:
            return self.classes_[np.argmax(self.decision_function(X), axis=1)]
        return self.classes_[votes(self._values(X, labels_only=True), n_classes).argmax(axis=1)]

    def _check_proba(self) -> bool:
        if self.probability == "deprecated" or not self.probability:
            name = type(self).__name__
            search = f"{name}CV, which also chooses the parameters, or " if name in ("SVC", "NuSVC") else ""
            raise AttributeError(
                f"predict_proba is not available when probability=False. Use {search}scikit-learn's "
                f"CalibratedClassifierCV({name}(), ensemble=False)."
            )
        return True

    @available_if(_check_proba)
    def predict_proba(self, X: Any) -> Matrix:
        """Probabilities of the classes, from a sigmoid of cross-validated decision values (Platt).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        T : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        values = self._values(X)
        if self._probA.size == 0:
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        return pairwise_probabilities(values, self._probA, self._probB, len(self.classes_))

    @available_if(_check_proba)
    def predict_log_proba(self, X: Any) -> Matrix:
        """Logarithms of ``predict_proba``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        T : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @deprecated(  # type: ignore[prop-decorator]
        "Attribute `probA_` was deprecated in version 1.9 and will be removed in "
        "1.11 as the `probability=True` option for SVC and NuSVC was deprecated "
        "and will be removed."
    )
    @property
    def probA_(self) -> Vector:
        """Slope of the sigmoid of each pair, learnt with ``probability=True``."""
        return self._probA

    @deprecated(  # type: ignore[prop-decorator]
        "Attribute `probB_` was deprecated in version 1.9 and will be removed in "
        "1.11 as the `probability=True` option for SVC and NuSVC was deprecated "
        "and will be removed."
    )
    @property
    def probB_(self) -> Vector:
        """Offset of the sigmoid of each pair, learnt with ``probability=True``."""
        return self._probB


class SVC(MachineUpdatesMixin, BaseSVC):
    """C-support vector classification: ½|w|² + Σ Cᵢ max(0, 1 - yᵢ(f(xᵢ) + b)).

    scikit-learn's parameters and attributes keep their meaning; the others are described below. ``C=inf`` asks for
    the hard margin: the model is the certified maximum-margin separator, or ``NotSeparableError`` is raised with a
    proof.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss. May be inf.
    kernel : str, callable or Kernel, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", an expression such as "0.5*gaussian(gamma=0.1) + linear()",
        a kernel object, or a function f(X, Z) of two sets of samples that returns the matrix of all k(x, z);
        ``predict`` calls it with the support vectors alone. A function k(x, z) of two samples is given as
        ``CallableKernel(k, pairwise=True)``. The kernel decides what samples are: rows of numbers, or any objects, such
        as strings for ``Spectrum(3)``, sets for ``Jaccard()``, graphs for ``WeisfeilerLehman()``, and records for
        ``On("title", Spectrum(4)) + On("price", Gaussian())``.
        "poly" is (γ⟨x, z⟩ + coef0)^degree with scikit-learn's defaults, that is without a constant term;
        "inhomogeneous" is the (1 + ⟨x, z⟩)^degree of the textbooks.
    degree : int, default=3
        Degree of "poly" and "inhomogeneous". Other kernels ignore it.
    gamma : {"scale", "auto"} or float, default="scale"
        γ of "rbf", exp(-γ|x - z|²), of "poly", (γ⟨x, z⟩ + coef0)^degree, and of "sigmoid", tanh(γ⟨x, z⟩ + coef0). With
        "rbf" and a larger γ, samples must be nearer to count as similar. "scale" is 1 / (n_features * X.var()), "auto"
        is 1 / n_features; a number is at least 0. Kernel objects and expressions have a gamma of their own.
    coef0 : float, default=0.0
        Constant term of "poly" and "sigmoid". Other kernels ignore it.
    shrinking : bool, default=True
        Leave out samples that seem settled while solving; they are checked at the end.
    probability : bool, default="deprecated"
        Fit sigmoids on cross-validated decision values for ``predict_proba``.
    tol : float, default=1e-3
        Largest violation of the optimality conditions, in units of the decision function.
    cache_size : float or "auto", default="auto"
        Memory for kernel rows in MB, a hard limit; "auto" is a 64th of what is available, at least 64, and an eighth
        where values are costly: 128 features and more, or kernels on anything but vectors. With ``landmarks`` it is the
        memory for their factor, n_samples × n_landmarks float32 numbers; "auto" is then 0.4 of what is available.
    class_weight : dict or "balanced", default=None
        Factors of C for each class.
    verbose : bool, default=False
        Log the plan, then every round, through Python's logging, under the name "mercer".
    max_iter : int, default=-1
        Steps at most for each pair of classes, -1 for no limit. A pair step of SMO, as in LIBSVM, is one step; so is a
        Newton step on all free variables, which replaces many of them, and a step of the interior-point method.
    decision_function_shape : {"ovo", "ovr"}, default="ovr"
        Shape of the decision function for more than two classes.
    break_ties : bool, default=False
        Predict by the decision function instead of by votes.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds of ``probability=True``, and of ``rule="random"``, where None is 0; nothing else is random.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a violated margin costs.
    fit_intercept : bool, default=True
        Whether to fit b; without it the separator passes through the origin of the feature space.
    n_jobs : int or None, default=None
        Threads. None is all cores, and one within a joblib worker; in scikit-learn None is one job. The result does not
        depend on it.
    time_limit : float or None, default=None
        Stop after this many seconds and keep the current model, with its certificate and a warning.
    warm_start : bool, default=False
        Start from the last solution if the problem has the same size.
    precision : {"auto", "float32", "float64"}, default="auto"
        Precision of the stored kernel rows; the certificate is always in float64.
    solver : {"auto", "decomposition", "qp", "coordinate", "smo"}, default="auto"
        "decomposition" is "auto" without batches of pairs of classes: each pair is a run of its own. "qp" is the
        interior-point method on the dense matrix, for small problems. "coordinate" and "smo" are the procedures of
        [M5], to study them: coordinate ascent (needs ``fit_intercept=False``) and SMO with pair steps only (needs an
        intercept). They are slower than "auto" and reach the same optimum.
    rule : {"round-robin", "random", "greedy"}, default="random"
        The order of coordinates for solver="coordinate": that of the samples, a new random order in each pass, or
        always the coordinate whose step gains most.
    trace : bool, default=False
        Keep every step of solver="smo" or "coordinate" in ``steps_``; "auto" then chooses one of these two. For at most
        5,000 samples.
    landmarks : None, "auto", int or samples, default=None
        Restrict the machine to the span of some samples, for large training sets. None: the exact machine. "auto": as
        many landmarks as ``landmark_tol`` asks for. A number: this many for each pair of classes, at least half of
        them chosen by how much each reduces the distance to the exact machine. Samples (rows, strings, …): these.
        Prediction then costs one kernel value per landmark, and ``certificate_`` bounds the distance to the exact
        machine.
    landmark_tol : float, default=0.01
        For "auto": the relative gap to the exact machine at which growth ends.
    max_landmarks : int, default=2000
        For "auto": the largest number of landmarks, for each pair of classes.
    polish : bool, default=False
        Continue from the landmark machine to the exact one.
    checkpoint : str, path or None, default=None
        For landmarks of rows on disk (`mercer.open_rows`): a file to which landmarks and weights are written once a
        minute. A fit that finds it continues there.
    updatable : bool, default=False
        Keep all training samples, so that ``add``, ``remove`` and ``replace`` can change them later. The model is then
        that of a fit to the changed samples, to ``tol``. The kernel keeps the gamma that ``fit`` has computed.

    Attributes
    ----------
    certificate_ : Certificate
        Primal and dual value, gap, relative gap and violations of the sum of all pairwise problems, in float64.
    certificates_ : list of Certificate
        One for each pair of classes.
    margin_ : ndarray
        1/|w| for each pair: the distance from the separator to the margin in feature space.
    rkhs_norm_ : ndarray
        |w| for each pair.
    function_ : RKHSFunction, or a list of them
        w as a function Σ βᵢ k(xᵢ, ·), whose norm is |w|: the decision function without the intercept. For more than two
        classes a list with one for each pair, as in ``intercept_``. Not available for a precomputed kernel.
    plan_ : Plan
        How the problem was solved: presolve, storage, precision, working set, threads. Prints as one line. A run that
        goes on in another precision has its last plan. For rows on disk that are read block by block it says how parts
        are kept. None with ``landmarks``, and for two classes with ``solver="qp"``, "smo" or "coordinate".
    trace_ : list of TracePoint
        Seconds, steps, violation, dual value and active samples of every round.
    steps_ : Steps, or a list of them
        With ``trace=True``, every step: for SMO the pair i, j, the bounds L and H of αⱼ, its optimum before and after
        clipping, αᵢ and the dual value; for coordinate ascent i, its optimum before and after clipping and the dual
        value. For more than two classes a list with one for each pair.
    landmarks_, n_landmarks_, landmark_certificate_, growth_ :
        With ``landmarks``: the landmarks, which are the support vectors; their number; the certificate of the problem
        restricted to their span (``certificate_`` is that of the exact problem); and the rounds of growth, each with
        landmarks, seconds and gaps.
    kernel_evaluations_ : int
        Kernel values computed by the fit.
    n_iter_ : ndarray of shape (n_classes * (n_classes - 1) // 2,)
        Steps taken for each pair of classes, as ``max_iter`` counts them.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, classes_, class_weight_, fit_status_,
    shape_fit_, n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from mercer import SVC
    >>> X = [[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]]
    >>> model = SVC(kernel="linear").fit(X, [1, 1, 1, 2, 2, 2])
    >>> model.predict([[-0.8, -1], [3, 2]])
    array([1, 2])
    >>> model.certificate_.gap
    0.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSVC._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        **STEPWISE_PARAMETERS,
        **LANDMARK_PARAMETERS,
        **UPDATABLE,
    }

    _solves_parts = True

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: Any = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        loss: str = "hinge",
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
        rule: str = "random",
        trace: bool = False,
        landmarks: Any = None,
        landmark_tol: float = 1e-2,
        max_landmarks: int = 2000,
        polish: bool = False,
        checkpoint: Any = None,
        updatable: bool = False,
    ) -> None:
        keep_parameters(self, locals())

    def _loss(self) -> tuple[Loss, float]:
        return classification_loss(self), float(self.C)


class NuSVC(BaseSVC):
    """ν-support vector classification: nu bounds the share of margin errors from above, of support vectors from below.

    Parameters are those of ``SVC`` with ``nu`` in place of ``C`` and ``loss``, and without ``fit_intercept``. Unlike
    scikit-learn's, it respects ``class_weight``: with "balanced" every nu is feasible.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]. Too large a value for unbalanced classes raises ``InfeasibleNuError`` with the largest feasible one.
    kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, class_weight, verbose, max_iter,
    decision_function_shape, break_ties, random_state, n_jobs, time_limit, warm_start, precision, solver :
        As in ``SVC``.

    Examples
    --------
    >>> from mercer import NuSVC
    >>> model = NuSVC(nu=0.5).fit([[-1, -1], [-2, -1], [1, 1], [2, 1]], [1, 1, 2, 2])
    >>> model.predict([[-0.8, -1]])
    array([1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{key: value for key, value in BaseSVC._parameter_constraints.items() if key != "fit_intercept"},
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }
    fit_intercept = True

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: Any = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
    ) -> None:
        keep_parameters(self, locals())

    def _loss(self) -> tuple[Loss, float]:
        return NuHinge(float(self.nu)), 1.0
