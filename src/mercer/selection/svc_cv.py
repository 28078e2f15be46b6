"""SVCCV and NuSVCCV: support vector classification that chooses C (or nu) and the kernel by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import keep_parameters
from mercer.estimators.svc import SOLUTION_BYTES, SVC, NuSVC, check_memory
from mercer.kernels.features import Matrix, Vector
from mercer.losses import NuHinge
from mercer.losses.classification import classification_loss
from mercer.selection.calibration.class_probabilities import METHODS
from mercer.selection.calibration.prediction_mixins import ProbabilityMixin
from mercer.selection.chains import Setting
from mercer.selection.folds import ClassifierFolds, Folds
from mercer.selection.search.candidates import KernelChoice, SettingChoice
from mercer.selection.search.grids import NU_RANGE, C_range, largest_nu, values_of
from mercer.selection.search.kernel_search_cv import KernelSearchCV
from mercer.selection.search.scoring import HeldOutClassifier, Score, accuracy, predicted_codes, score_models
from mercer.selection.search.search_cv import DecisionMixin
from mercer.svm.batch import class_pairs
from mercer.validation import check_weighted_classes, class_codes, class_weights


class BaseSVCCV(ProbabilityMixin, ClassifierMixin, DecisionMixin, KernelSearchCV):  # type: ignore[misc]
    """Base of SVCCV and NuSVCCV: a search over one-vs-one classifiers."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelSearchCV._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "calibration": [StrOptions(set(METHODS))],
        "prune": [StrOptions({"bound", "race"}), None],
    }

    def _validate(self, X: Any, y: Any) -> tuple[Any, Vector]:
        X, y = self._validate_samples(X, y)
        self.classes_, codes = class_codes(y)
        # held-out values of each sample, for all candidates of a fold and for the best one
        check_memory(len(codes), len(self.classes_), SOLUTION_BYTES + 24 * len(codes))
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes)
        return X, codes

    def _family(self, folds: Folds, y: Vector, weight: Vector) -> ClassifierFolds:
        check_weighted_classes(y, weight, self.class_weight_)
        return ClassifierFolds(folds, y, self.classes_, weight, self.class_weight, bool(self._intercept))

    def _score(self, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]]) -> Score:
        k = len(self.classes_)
        if self.scoring in (None, "accuracy"):

            def fast(values: Matrix, f: int) -> list[float]:
                test = folds[f][1]
                flat = predicted_codes(values.reshape(-1, values.shape[2]), k, self._break_ties)
                predicted, failed = flat.reshape(values.shape[:2]), [bool(np.isnan(part).any()) for part in values]
                found = [accuracy(row, y[test], weight[test]) for row in predicted]
                return [np.nan if gone else score for gone, score in zip(failed, found, strict=True)]

            return fast
        return score_models(self.scoring, self._held_out_model, X, self.classes_[y], weight, folds)

    def _held_out_model(self, values: Matrix) -> HeldOutClassifier:
        return HeldOutClassifier(self.classes_, self.decision_function_shape, self._break_ties, values)

    @property
    def _break_ties(self) -> bool:
        return bool(self.break_ties) and len(self.classes_) > 2

    def _columns(self) -> int:
        return len(class_pairs(len(self.classes_)))

    def _as_decision(self, values: Matrix) -> Matrix:
        # with two classes the second is positive, unlike in LIBSVM
        return -values if len(self.classes_) == 2 else values

    def _learn(self, y: Vector, weight: Vector) -> None:
        self._publish_names()
        self._learn_probabilities(y, weight * self.class_weight_[y])


class SVCCV(BaseSVCCV):
    """``SVC`` that chooses C and the kernel's parameters by cross-validation and learns class probabilities.

    It gives the scores of ``GridSearchCV(SVC())``, up to samples within ``tol`` of the decision boundary, but shares
    computations: all gamma share distances; all folds, pairs of classes and C share the kernel matrix; neighbouring C
    share solutions.

    Parameters
    ----------
    kernel : str, callable, Kernel or a list of these, default="rbf"
        As in ``SVC``; from a list the best kernel is chosen.
    Cs : int or array-like, default=8
        The values of C, or their number: then they range from 0.01 to 1000 divided by the mean of k(x, x).
    gammas : int or array-like, default=8
        The values of gamma for "rbf", "poly" and "sigmoid", or their number: then they are spread around the inverse
        squared distances between samples ("rbf") or inverse squared norms. Other kernels keep their parameters.
    kernel_grid : dict or list of dict, default=None
        Values of other kernel parameters by name; all combinations are tried.
    degree, coef0 : parameters of "poly" and "sigmoid".
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The penalty on samples that violate the margin.
    class_weight : dict or "balanced", default=None
        Factors of C for each class; "balanced" is computed from the training samples of each fold.
    cv : int, splitter or iterable, default=5
        The number of (stratified) folds, a splitter, or (train, test) pairs.
    scoring : str or callable, default=None
        A scorer of labels or decision values; None is accuracy. Sample weights also apply to scores.
    search : {"grid", "local"}, default="grid"
        "grid" tries all combinations. "local" tries a coarse grid and refines it three times around the best candidate.
    prune : {None, "bound", "race"}, default=None
        Whether to give up candidates before they were tried in all folds. "bound" gives up candidates that cannot beat
        the best one even with the highest possible score in all remaining folds, if the same holds for all larger C of
        the kernel; the choice does not change. "race" gives up candidates that are significantly behind the best one
        (paired t-test, 95 %); the choice may change to a candidate with nearly the same score. In ``cv_results_`` such
        candidates have no mean, the last rank and the ``status`` "given up".
    refit : bool, default=True
        Whether to fit the best machine to all samples; required for ``predict``.
    calibration : {"sigmoid", "isotonic", "beta", "venn_abers"}, default="sigmoid"
        How held-out decision values are turned into probabilities.
    tol : float, default=1e-3
        As in ``SVC``, for every machine.
    cache_size : float or "auto", default="auto"
        Memory for kernel matrices in MB; "auto" is half of the available memory. Matrices that do not fit are computed
        row by row.
    decision_function_shape, break_ties, fit_intercept : as in ``SVC``.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores, or one inside a joblib worker; in scikit-learn None means one job. The
        result does not depend on it.
    time_limit : float or None, default=None
        Stop the search after this many seconds; the best candidate so far is then fitted to all samples.
    verbose : bool, default=False
        Log the progress of the search and the estimated remaining time under the name "mercer".
    precision : {"auto", "float32", "float64"}, default="auto"
        Precision of the kernel matrices.

    Attributes
    ----------
    best_estimator_ : SVC
        The best machine, fitted to all samples, with its certificate.
    best_params_, best_score_, best_index_, cv_results_, n_splits_, refit_time_ : as in ``GridSearchCV``.
    C_, gamma_ : float
        The values in ``best_params_``.
    cv_decision_function_ : ndarray of shape (n_samples, 1) or (n_samples, n_pairs)
        The held-out decision values of the best candidate: those of each sample come from the fold that did not train
        on it; NaN if there is none. The columns are those of ``SVC(decision_function_shape="ovo")``.
    cv_fold_ : ndarray of shape (n_samples,)
        The index of that fold; -1 if there is none.
    certificate_ : Certificate
        The certificate of ``best_estimator_``.
    classes_, n_features_in_, feature_names_in_ : as in ``SVC``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVCCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2))
    >>> y = (X**2).sum(axis=1) > 1.4
    >>> model = SVCCV(Cs=4, gammas=4).fit(X, y)
    >>> bool(model.best_score_ > 0.9)
    True
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    >>> sorted(model.best_params_)
    ['C', 'gamma']
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSVCCV._parameter_constraints,
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like", Interval(Real, 0, None, closed="neither")],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        Cs: Any = 8,
        gammas: Any = 8,
        kernel_grid: Any = None,
        degree: int = 3,
        coef0: float = 0.0,
        loss: str = "hinge",
        class_weight: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        search: str = "grid",
        prune: str | None = None,
        refit: bool = True,
        calibration: str = "sigmoid",
        tol: float = 1e-3,
        cache_size: Any = "auto",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
        precision: str = "auto",
    ) -> None:
        keep_parameters(self, locals())

    @property
    def _intercept(self) -> bool:  # type: ignore[override]
        return bool(self.fit_intercept)

    def _machine(self) -> SVC:
        return SVC(
            kernel=self.kernel, degree=self.degree, coef0=self.coef0, loss=self.loss, class_weight=self.class_weight,
            tol=self.tol, decision_function_shape=self.decision_function_shape, break_ties=self.break_ties,
            fit_intercept=self.fit_intercept, n_jobs=self.n_jobs, precision=self.precision,
        )  # fmt: skip

    def _settings(self, X: Any, y: Vector, kernels: Sequence[KernelChoice]) -> list[SettingChoice]:
        limits = C_range([choice.kernel for choice in kernels], X)
        return [self._setting({"C": C}) for C in values_of("Cs", self.Cs, limits)]

    def _setting(self, params: dict[str, Any]) -> SettingChoice:
        return SettingChoice(Setting(classification_loss(SVC(loss=self.loss)), float(params["C"])), params)


class NuSVCCV(BaseSVCCV):
    """``NuSVC`` that chooses nu and the kernel's parameters by cross-validation; see ``SVCCV``.

    Parameters
    ----------
    nus : int or array-like, default=8
        The values of nu, or their number: then they range up to nearly the largest feasible nu. Values that are
        infeasible in a fold have no score.
    kernel, gammas, kernel_grid, degree, coef0, class_weight, cv, scoring, search, prune, refit, calibration, tol,
    cache_size, decision_function_shape, break_ties, n_jobs, time_limit, verbose, precision : as in ``SVCCV``.

    Attributes
    ----------
    best_estimator_ : NuSVC
        The best machine, fitted to all samples, with its certificate.
    nu_, gamma_ : float
        The values in ``best_params_``.
    best_params_, best_score_, cv_results_, cv_decision_function_, cv_fold_, … : as in ``SVCCV``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NuSVCCV
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> model = NuSVCCV(nus=[0.1, 0.3], gammas=3).fit(X, X[:, 0] > 0)
    >>> model.nu_ in (0.1, 0.3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSVCCV._parameter_constraints,
        "nus": [Interval(Integral, 1, None, closed="left"), "array-like", Interval(Real, 0, 1, closed="right")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        nus: Any = 8,
        gammas: Any = 8,
        kernel_grid: Any = None,
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        search: str = "grid",
        prune: str | None = None,
        refit: bool = True,
        calibration: str = "sigmoid",
        tol: float = 1e-3,
        cache_size: Any = "auto",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
        precision: str = "auto",
    ) -> None:
        keep_parameters(self, locals())

    def _machine(self) -> NuSVC:
        return NuSVC(
            kernel=self.kernel, degree=self.degree, coef0=self.coef0, class_weight=self.class_weight, tol=self.tol,
            decision_function_shape=self.decision_function_shape, break_ties=self.break_ties, n_jobs=self.n_jobs,
            precision=self.precision,
        )  # fmt: skip

    def _settings(self, X: Any, y: Vector, kernels: Sequence[KernelChoice]) -> list[SettingChoice]:
        most = largest_nu(np.bincount(y) * self.class_weight_)
        limits = NU_RANGE[0] * most, NU_RANGE[1] * most
        return [self._setting({"nu": nu}) for nu in values_of("nus", self.nus, limits, high=1.0)]

    def _setting(self, params: dict[str, Any]) -> SettingChoice:
        return SettingChoice(Setting(NuHinge(float(params["nu"])), 1.0), params)
