"""RankSVC: learn to rank from pairs whose order is known, with kernels."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from mercer._sklearn_compat import Interval, num_samples
from mercer.estimators.base import keep_parameters
from mercer.estimators.ranking.pair_machine import PairMachine, group_codes
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels.features import Vector
from mercer.ordering.pair_losses import PairSum
from mercer.ordering.pair_order import PairOrder, concordance
from mercer.problems.clock import Clock
from mercer.validation import real_targets


class RankSVC(RegressorMixin, PairMachine):  # type: ignore[misc]
    """Ranking: minimise ½|f|² + C Σ max(0, 1 - (f(xᵢ) - f(xⱼ)))² over the pairs of one group with yᵢ > yⱼ.

    A larger y means a higher rank: relevance of a document to a query, preference, quality. Only samples of the same
    group (the documents of one query) are compared. The pairs are never formed: Newton's method takes sums over them in
    O(n log² n) operations (Chapelle & Keerthi 2010), and products with the kernel matrix. The duality gap of the
    problem over pairs certifies the solution.

    ``GridSearchCV`` and ``cross_val_score`` use groups for their folds only, and fit on the pairs of all samples,
    unless metadata routing is on and ``set_fit_request(groups=True)`` and ``set_score_request(groups=True)`` were
    called.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss of a pair; finite. A sample is in many pairs, so that small values suffice; with very large
        ones Newton steps are factored, which takes n³ operations each.
    kernel, degree, gamma, coef0 : as in ``SVC``.
    tol : float, default=1e-6
        The relative duality gap at which the fit ends.
    max_iter : int, default=-1
        Newton steps at most; -1 for as many as some minutes of products with the kernel matrix allow.
    cache_size : float or "auto", default="auto"
        Memory in MB for the kernel matrix; "auto" is half of the available memory.
    warm_start : bool, default=False
        Start from the last solution if it has the same number of samples.
    n_jobs, time_limit, verbose : as in ``SVC``.

    Attributes
    ----------
    n_pairs_ : int
        Number of ordered pairs.
    certificate_ : Certificate
        Primal value, dual value and their gap.
    dual_coef_ : ndarray of shape (1, n_support)
        The coefficients β of f = Σ βᵢ k(xᵢ, ·).
    support_, support_vectors_, n_support_, coef_, rkhs_norm_, function_, trace_, kernel_evaluations_, fit_status_,
    shape_fit_, n_iter_, n_features_in_, feature_names_in_ :
        As in ``SVR``.

    Examples
    --------
    >>> from mercer import RankSVC
    >>> X, y, queries = [[0.0], [1.0], [2.0], [7.0], [5.0], [6.0]], [1, 2, 3, 3, 1, 2], [0, 0, 0, 1, 1, 1]
    >>> model = RankSVC(kernel="linear").fit(X, y, groups=queries)
    >>> model.n_pairs_, model.score(X, y, groups=queries)
    (6, 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
    }
    fit_intercept = False
    _groups: Any = None

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: Any = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None
    ) -> RankSVC:
        """Fit the ranking function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples), or list of object
            Training samples; the kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Relevance, or any numbers whose order within a group is to be learnt.
        groups : array-like of shape (n_samples,), default=None
            The group (query) of each sample; None for one group.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of a pair is the product of the weights of its samples.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._groups = groups
        super().fit(X, y, sample_weight=sample_weight)
        return self

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        return real_targets(y)

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        # kept for certify, as numbers
        self._groups = None if self._groups is None else group_codes(self._groups, data.n)
        used = np.flatnonzero(weight > 0)
        smooth = rank_loss(self, y, weight, used)
        self._minimise(data, used, smooth, False, clock)

    def predict(self, X: Any) -> Vector:
        """The score f(x) of each sample: only the order of scores within a group has a meaning.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Higher for samples that rank higher.
        """
        return np.ravel(self._values(X))

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """The share of ordered pairs of a group whose scores have the right order; ties count half.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples.
        y : array-like of shape (n_samples,)
            Their relevance.
        groups : array-like of shape (n_samples,), default=None
            The group of each sample; None for one group.
        sample_weight : Ignored
            Present for API consistency.

        Returns
        -------
        score : float
            Between 0 and 1; 0.5 for constant scores.
        """
        scores = self.predict(X)
        targets = real_targets(y)
        order = PairOrder(targets, group_codes(groups, num_samples(X)))
        check_some_ordered(order, targets)
        return concordance(order, scores)


def rank_loss(machine: Any, y: Vector, weight: Vector, used: Vector) -> PairSum:
    """The sum over pairs of the samples ``used`` with positive weights."""
    groups = machine._groups
    order = PairOrder(y[used], None if groups is None else groups[used])
    check_some_ordered(order, y[used])
    return PairSum(order, weight[used], float(machine.C))


def check_some_ordered(order: PairOrder, y: Vector) -> None:
    """Raise if no pair is ordered."""
    if order.n_pairs == 0:
        raise InvalidInputError(
            f"No two of the {len(y)} sample(s) with a positive weight can be ordered: within each group y has one "
            "value only. Give samples of one group different values of y."
        )
