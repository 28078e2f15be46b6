"""OneClassSVMCV: novelty detection that chooses gamma and its threshold from held-out samples."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer._sklearn_compat import Interval, StrOptions, available_if
from mercer.estimators.base import keep_parameters
from mercer.estimators.one_class import OneClassSVM
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.losses import OneClass
from mercer.selection.chains import Setting
from mercer.selection.folds import Folds, SingleFolds
from mercer.selection.search.candidates import Candidate, KernelChoice, SettingChoice, Table, better_mean
from mercer.selection.search.grids import NOVELTY_RANGE, values_of
from mercer.selection.search.kernel_search_cv import KernelSearchCV
from mercer.selection.search.scoring import HeldOutDetector, Score, score_models
from mercer.selection.search.search_cv import _is_refitted

# the fraction of rejected held-out samples may exceed nu by this many standard errors
CONSISTENT = 2.0


class OneClassSVMCV(OutlierMixin, KernelSearchCV):  # type: ignore[misc]
    """``OneClassSVM`` that chooses gamma, and sets the threshold so that a fraction nu of held-out samples is rejected.

    Without labels, a model is consistent if the fraction of held-out samples that it rejects exceeds nu by at most two
    standard errors. Among the consistent models the one with the largest gamma is chosen, because it describes the data
    most tightly (Tax & Müller, ICPR 2004). With labels and a scorer the best score decides.

    Parameters
    ----------
    nus : float, int or array-like, default=0.1
        The fraction of samples to reject. Several values, or an integer number of values, need labels and ``scoring``.
    threshold : {"held_out", "training"}, default="held_out"
        The zero of the decision function. "held_out": a fraction nu of the held-out samples is rejected. "training": as
        in ``OneClassSVM``, at most a fraction nu of the training samples is rejected.
    scoring : str or callable, default=None
        A scorer of labels (1 inside, -1 outside) or decision values; requires y in ``fit``.
    kernel, gammas, kernel_grid, degree, coef0, cv, search, refit, tol, cache_size, n_jobs, time_limit, verbose,
    precision : as in ``SVCCV``.

    Attributes
    ----------
    best_estimator_ : OneClassSVM
        The best machine, fitted to all samples, with its certificate; its own threshold is not changed.
    nu_, gamma_ : float
        The chosen values.
    offset_ : float
        ``decision_function = score_samples - offset_``.
    rejected_ : float
        The fraction of held-out samples that the best machines reject with their own thresholds.
    best_params_, best_score_, cv_results_, cv_decision_function_, cv_fold_, certificate_, … : as in ``SVCCV``.
        Without a scorer the score of a fold is −|fraction of rejected samples − nu|.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OneClassSVMCV
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OneClassSVMCV(nus=0.1, gammas=6).fit(X)
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelSearchCV._parameter_constraints,
        "nus": [Interval(Integral, 1, None, closed="left"), "array-like", Interval(Real, 0, 1, closed="right")],
        "threshold": [StrOptions({"held_out", "training"})],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        nus: Any = 0.1,
        gammas: Any = 8,
        kernel_grid: Any = None,
        degree: int = 3,
        coef0: float = 0.0,
        threshold: str = "held_out",
        cv: Any = 5,
        scoring: Any = None,
        search: str = "grid",
        refit: bool = True,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
        precision: str = "auto",
    ) -> None:
        keep_parameters(self, locals())

    def _validate(self, X: Any, y: Any) -> tuple[Any, Vector]:
        X, _ = self._validate_samples(X, None)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if self.scoring is None:
            return X, np.ones(n)
        labels = np.ones(0) if y is None else np.asarray(y).ravel()
        if len(labels) != n or not np.isin(labels, (-1, 1)).all():
            raise InvalidInputError(
                f"scoring={self.scoring!r} needs a label for each of the {n} samples, 1 inside and -1 outside, but y "
                f"has {len(labels)} values" + (f" such as {labels[0]!r}." if len(labels) else ".")
            )
        return X, labels.astype(np.float64)

    def _machine(self) -> OneClassSVM:
        return OneClassSVM(
            kernel=self.kernel, degree=self.degree, coef0=self.coef0, tol=self.tol, n_jobs=self.n_jobs,
            precision=self.precision,
        )  # fmt: skip

    def _settings(self, X: Any, y: Vector, kernels: Sequence[KernelChoice]) -> list[SettingChoice]:
        nus = values_of("nus", self.nus, NOVELTY_RANGE, high=1.0)
        if len(nus) > 1 and self.scoring is None:
            raise InvalidInputError(
                f"nus asks for {len(nus)} values, but only labels can tell which fraction of samples to reject. Give "
                "one nu, or scoring and y."
            )
        return [self._setting({"nu": nu}) for nu in nus]

    def _setting(self, params: dict[str, Any]) -> SettingChoice:
        return SettingChoice(Setting(OneClass(float(params["nu"])), 1.0), params)

    def _family(self, folds: Folds, y: Vector, weight: Vector) -> SingleFolds:
        self._weight, self._pairs = weight, folds.pairs
        return SingleFolds(folds, np.ones(len(y)), weight, True)

    def _table(self, n_folds: int) -> Table:
        if self.scoring is not None:
            return Table(n_folds)
        return Table(n_folds, self._tighter)

    def _held_out_model(self, values: Matrix) -> HeldOutDetector:
        return HeldOutDetector(values)

    def _score(self, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]]) -> Score:
        if self.scoring is None:
            nus = [choice.params["nu"] for choice in self._settings(X, y, [])]

            def share(values: Matrix, f: int) -> list[float]:
                w = weight[folds[f][1]]
                total = max(float(w.sum()), 1e-300)
                outside = [float(w @ (part[:, 0] < 0)) / total for part in values]
                return [-abs(found - nus[0]) for found in outside]

            return share
        return score_models(self.scoring, self._held_out_model, X, y.astype(np.intp), weight, folds)

    def _tighter(self, a: Candidate, b: Candidate) -> bool:
        """Whether a is better than b: consistent models first, then the larger gamma, then the better score."""
        n = max(1.0, float(self._weight.sum()))
        room = [CONSISTENT * np.sqrt(c.params["nu"] * (1 - c.params["nu"]) / n) for c in (a, b)]
        consistent = [-c.mean <= r for c, r in zip((a, b), room, strict=True)]
        gammas: list[Any] = [c.params.get("gamma") for c in (a, b)]
        if consistent[0] and consistent[1] and all(isinstance(g, Real) for g in gammas) and gammas[0] != gammas[1]:
            return bool(gammas[0] > gammas[1])
        if consistent[0] != consistent[1]:
            return bool(consistent[0])
        return better_mean(a, b)

    def _learn(self, y: Vector, weight: Vector) -> None:
        self._publish_names()
        self.nu_ = self.best_params_["nu"]
        values, known = self.cv_decision_function_[:, 0], np.isfinite(self.cv_decision_function_[:, 0])
        known &= weight > 0
        w = weight[known]
        self.rejected_ = float(w @ (values[known] < 0) / w.sum()) if known.any() else np.nan
        # decision values scale with the total training weight, which is smaller in a fold
        size = np.array([weight[train].sum() for train, _ in self._pairs])
        relative = values[known] / size[self.cv_fold_[known]]
        shift = 0.0
        if self.threshold == "held_out" and known.any():
            order = np.argsort(relative)
            reached = np.searchsorted(np.cumsum(w[order]), self.nu_ * w.sum())
            shift = float(relative[order][min(reached, len(order) - 1)]) * float(weight.sum())
        del self._weight, self._pairs
        if self.refit:
            self.offset_ = self.best_estimator_.offset_ + shift

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> OneClassSVMCV:
        """Choose the best model by cross-validation and fit it to all samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,), default=None
            Labels for ``scoring``: 1 inside, -1 outside. The fits do not use them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        groups : array-like of shape (n_samples,), default=None
            Groups of samples for the splitter, which keeps them together.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        super().fit(X, None if self.scoring is None else y, sample_weight=sample_weight, groups=groups)
        return self

    @available_if(_is_refitted)
    def score_samples(self, X: Any) -> Vector:
        """The decision function without the offset.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The scores.
        """
        check_is_fitted(self)
        return self.best_estimator_.score_samples(X)

    @available_if(_is_refitted)
    def decision_function(self, X: Any) -> Vector:
        """The decision value of each sample: positive inside the region, negative outside.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            ``score_samples - offset_``.
        """
        return self.score_samples(X) - self.offset_

    @available_if(_is_refitted)
    def predict(self, X: Any) -> Vector:
        """1 for inliers, -1 for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            The labels.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)
