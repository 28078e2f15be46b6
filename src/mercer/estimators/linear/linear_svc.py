"""Linear support vector classification: one-vs-rest, or all classes in one problem (Crammer and Singer)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer._sklearn_compat import StrOptions
from mercer.estimators.base import keep_parameters
from mercer.estimators.linear.linear_machine import LinearMachine, Prepared, Warm, linear_problem, prices
from mercer.estimators.linear.source_fit import constant_feature, one_vs_rest
from mercer.estimators.score_mixins import LabelsMixin
from mercer.exceptions import InvalidInputError, NotSeparableError
from mercer.kernels.features import Matrix, Vector
from mercer.linear.linear_solution import LinearSolution
from mercer.linear.multiclass.crammer_singer import JointProblem, JointSolution, solve_jointly
from mercer.losses import Loss
from mercer.losses.classification import classification_loss
from mercer.problems.clock import Clock
from mercer.problems.solution import WITHOUT_MODEL, Status
from mercer.svm.batch import not_separable
from mercer.validation import check_weighted_classes, class_weights, find_classes


class LinearSVC(LabelsMixin, LinearMachine):
    """Linear support vector classification: minimise P(w) + Σ Cᵢ ℓ(yᵢ (xᵢ·w + b)).

    Parameters and attributes have the same meaning as in scikit-learn; additional ones are described below. Every
    combination of loss, penalty and intercept is supported, so ``dual`` is not needed. ``tol`` bounds the relative
    duality gap: the objective of the model is within this fraction of the optimum. ``C=inf`` gives the hard margin: the
    certified maximum-margin separator, or ``NotSeparableError`` with a proof that there is none.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet"}, default="l2"
        P(w) is |w|₁, ½|w|² or l1_ratio · |w|₁ + ½(1 - l1_ratio) |w|². With an l1 part, weights that are 0 at the
        optimum are exactly 0 whatever ``tol`` is: the fit continues beyond ``tol`` until they are known ("zeros" in
        ``plan_``). ``l1_min_c`` returns the largest C for which all weights are 0.
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
        The penalty on samples that violate the margin.
    dual : "auto" or bool, default="auto"
        Accepted for compatibility and ignored: the solver is chosen from the data.
    tol : float, default=1e-4
        The relative duality gap at which the solver stops.
    C : float, default=1.0
        Weight of the loss. May be inf.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        With several classes: one problem for each class against the rest, or one joint problem for all classes with
        hinge loss and penalty ½|w|². With C=inf the joint problem needs a penalised intercept or none.
    fit_intercept : bool, default=True
        Whether to fit b; without it the separating hyperplane passes through the origin ([SSBD] 15.6).
    intercept_scaling : float, default=1.0
        The constant value of the additional feature whose penalised weight gives b.
    class_weight : dict or "balanced", default=None
        Factors of C for each class. In one-vs-rest problems the factor applies to the class, not to the rest.
    verbose : int, default=0
        Log every round, and at the end the solvers that ran, with Python's logging under the name "mercer".
    random_state : int, RandomState instance or None, default=None
        Seed of the coordinate order. With None the order is fixed: the same data give the same model.
    max_iter : int, default=1000
        Maximum number of iterations: passes over n_samples coordinates for solver="coordinate", Newton or
        interior-point steps for the others. With solver="auto" the iterations of all solvers are added up.
    l1_ratio : float, default=0.5
        For ``penalty="elasticnet"``: 0 is "l2", 1 is "l1".
    penalize_intercept : bool, default=True
        Whether P includes b, as in scikit-learn. If False, b is free, as in SVC and in textbooks ([SSBD] 15.4).
    n_jobs : int or None, default=None
        Number of threads. None uses all cores, or one inside a joblib worker; in scikit-learn None means one job.
    time_limit : float or None, default=None
        Stop after this many seconds and return the current model with its certificate and a warning.
    warm_start : bool, default=False
        Start from the last solution if the problem has the same size. The interior-point method does so only for
        piecewise linear losses, and only if that solution is within 3 % of the optimum.
    solver : {"auto", "interior", "coordinate", "newton", "proximal"}, default="auto"
        "interior" is the interior-point method, "coordinate" plain coordinate descent on the dual, "newton" Newton's
        method for the squared losses, "proximal" the proximal Newton method for penalties with an l1 part. A solver
        given by name runs alone until ``tol``, or until ``max_iter`` or ``time_limit`` with a warning. "auto" may
        switch between solvers; ``plan_`` lists those that ran. ``multi_class="crammer_singer"`` ignores this parameter
        and uses a solver of its own.
    rule : {"round-robin", "random", "greedy"}, default="random"
        The order of coordinates for solver="coordinate" ([M5]): in the given order, in a new random order in each pass,
        or always the coordinate whose step gains most. A pass has n_samples steps for every rule, so ``n_iter_`` can be
        compared; a greedy step examines all samples and costs n_samples times as much.
    checkpoint : str, path or None, default=None
        For samples on disk (``mercer.open_rows``): a file to which the state of the fit is written once a minute, and
        when it ends. A fit that finds the file continues from there. A file of other data or parameters is an error.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) for two classes, else (n_classes, n_features)
        The weights w.
    intercept_ : ndarray of shape (1,) or (n_classes,), or float
        b; 0.0 with ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    class_weight_ : ndarray of shape (n_classes,)
        The factors of C.
    certificate_ : Certificate
        Primal value, dual value, gap, relative gap and violations in float64, for the sum of all problems.
    certificates_ : list of Certificate
        One for each problem.
    margin_ : ndarray
        1/|w| for each row of coef_: the distance from the hyperplane to the margin.
    trace_ : list of TracePoint
        Seconds, steps, relative gap, dual value and number of active samples of every round.
    n_iter_ : int
        The iterations of the longest run, at least 1, counted as in ``max_iter``.
    plan_ : LinearPlan
        The solvers that ran, with their iterations and the relative gap that each has reached; can be printed. Some
        names are used by "auto" only: "small" is one compiled run for few samples and features, "hybrid" is coordinate
        descent with shrinking and Newton steps on the free samples. "largest_margin" is an exact method that decides
        small hard-margin problems which "interior" could not solve. "zeros" determines by linear equations and Newton
        steps which weights an l1 penalty sets to 0; it can follow any solver.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC().fit(X, y)
    >>> model.coef_.shape, model.certificate_.relative_gap <= 1e-4
    ((3, 4), True)

    Rows on disk are read block by block:

    >>> import os, tempfile, numpy as np
    >>> from mercer import open_rows
    >>> path = os.path.join(tempfile.mkdtemp(), "X.npy")
    >>> np.save(path, X)
    >>> same = LinearSVC().fit(open_rows(path, target=y))
    >>> bool((same.predict(X) == model.predict(X)).mean() > 0.99)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearMachine._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "class_weight": [None, dict, StrOptions({"balanced"})],
    }

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        verbose: Any = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        l1_ratio: float = 0.5,
        penalize_intercept: bool = True,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        solver: str = "auto",
        rule: str = "random",
        checkpoint: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    # ---- training --------------------------------------------------------------------------------------------

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        self.classes_, codes = find_classes(y)
        if len(self.classes_) < 2:
            raise InvalidInputError(
                "This solver needs samples of at least 2 classes in the data, but the data contains only one class: "
                f"{self.classes_[0]!r}"
            )
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes, weight)
        check_weighted_classes(codes, weight, self.class_weight_)
        return codes.astype(np.float64)

    def _loss(self) -> Loss:
        return classification_loss(self)

    def _solve(self, data: Prepared, warm: Warm | None, clock: Clock) -> Sequence[LinearSolution | JointSolution]:
        self._check_hard_margin(data)
        if self.multi_class == "crammer_singer":
            return self._solve_jointly(data, warm, clock)
        codes, several = data.y.astype(np.intp), len(self.classes_) > 2
        positives = range(len(self.classes_)) if several else (1,)
        targets = [one_vs_rest(codes, data.weight, self.class_weight_, k, several) for k in positives]
        problems = [linear_problem(self, data.rows, self._loss(), *target) for target in targets]
        solutions = self._run_all(problems, warm, clock)
        self._check_finite(data, solutions)
        for solution in solutions:
            if solution.separation is not None:
                raise not_separable(replace(solution.separation, intercept=bool(self.fit_intercept)))
        self._publish_rest(solutions, data.rows.bias)
        return solutions

    def _publish_rest(self, solutions: Sequence[LinearSolution], bias: float) -> None:
        """Set the fitted attributes of one-vs-rest problems."""
        self._publish(np.array([s.w for s in solutions]), np.array([s.intercept for s in solutions]), bias)
        self.n_iter_ = max(1, *(int(s.n_iter) for s in solutions))
        of = f"{len(solutions)} one-vs-rest problems" if len(solutions) > 1 else None
        self._publish_proof(solutions, of=of)

    def _publish_blocks(self, solutions: Sequence[LinearSolution]) -> None:
        self._publish_rest(solutions, constant_feature(self))

    def _solve_jointly(self, data: Prepared, warm: Warm | None, clock: Clock) -> Sequence[JointSolution]:
        """All classes in one problem; with two classes coef_ is the difference of their weights."""
        free = bool(self.fit_intercept and not self.penalize_intercept)
        codes, n_classes = data.y.astype(np.intp), len(self.classes_)
        price = prices(self.C, data.weight * self.class_weight_[codes])
        problem = JointProblem(data.rows, codes, n_classes, price, free)
        start = warm.solutions[0] if warm is not None and len(warm.solutions) == 1 else None
        if not isinstance(start, JointSolution) or start.alpha.shape != (data.rows.n, n_classes):
            start = None
        elif warm is not None and np.isfinite(self.C) and np.isfinite(warm.C):
            start = replace(start, alpha=start.alpha * (self.C / warm.C))
        solution = solve_jointly(problem, self._options(), clock, start)
        self._check_finite(data, [solution])
        if solution.status in WITHOUT_MODEL:
            own = solution.alpha[np.arange(len(codes)), codes]
            weights = solution.alpha / float(own.sum())
            distance = np.linalg.norm([data.rows.tdot(np.ascontiguousarray(column)) for column in weights.T])
            proven = solution.status is Status.UNBOUNDED
            raise NotSeparableError(weights, float(distance), bool(self.fit_intercept), proven)
        W, intercepts = solution.W, solution.intercepts
        if n_classes == 2:
            W, intercepts = W[1:] - W[:1], intercepts[1:] - intercepts[:1]
        self._publish(W, intercepts, data.rows.bias)
        self.n_iter_ = max(1, int(solution.n_iter))
        self._publish_proof([solution])
        return [solution]

    # ---- prediction ------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Matrix:
        """Evaluate the decision function: xw + b.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or RowSource
            The samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            One value per sample for two classes, positive for ``classes_[1]``; else one per class.
        """
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def sparsify(self) -> LinearSVC:
        """Store ``coef_`` as a sparse matrix, which saves memory if an l1 penalty has made most weights 0.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        check_is_fitted(self, msg="Estimator, %(name)s, must be fitted before sparsifying.")
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> LinearSVC:
        """Store ``coef_`` as an array again.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        check_is_fitted(self, msg="Estimator, %(name)s, must be fitted before densifying.")
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self
