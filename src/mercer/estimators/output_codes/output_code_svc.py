"""OutputCodeSVC: several classes by any code of binary support vector machines, with one kernel matrix."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mercer._sklearn_compat import StrOptions
from mercer.erm.shared_matrix import SharedMatrix
from mercer.estimators.base import keep_parameters
from mercer.estimators.loss_minimiser import LossMinimiser
from mercer.estimators.output_codes.code_matrix import code_matrix
from mercer.estimators.score_mixins import LabelsMixin
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels.features import Matrix, Vector
from mercer.losses import Hinge
from mercer.problems.clock import Clock
from mercer.problems.solution import Solution
from mercer.svm.solve import solve_problem
from mercer.validation import check_weighted_classes, class_codes, class_weights


class OutputCodeSVC(LabelsMixin, LossMinimiser):
    """Classes by code words: for each column m of a code, minimise ½|f_m|² + Σ Cᵢ max(0, 1 − M[yᵢ, m] (f_m(xᵢ) + b_m)).

    M has a row for each class with entries −1, 0 and 1; a 0 leaves the class out. A sample belongs to the class whose
    row is closest to its decision values (Dietterich & Bakiri, JAIR 2, 1995; Allwein, Schapire & Singer, JMLR 1, 2000).
    All binary machines share one kernel matrix if it fits into ``cache_size``, and predictions share kernel values.

    ``SVC`` (one against one) is faster to fit and usually as accurate. One against the rest has one machine for each
    class, whose value is the decision value; redundant codes may correct mistakes of single machines.

    Parameters
    ----------
    code : {"ovr", "ovo", "dense", "sparse"} or array-like of shape (n_classes, n_words), default="ovr"
        One class against the rest, pairs of classes, random codes with 10 log2(n_classes) columns of ±1 or 15
        log2(n_classes) columns of which half of the entries are 0, or a matrix. Two classes are one problem.
    decoding : {"loss", "hamming"}, default="loss"
        "loss" adds up the hinge losses max(0, 1 − M[c, m] f_m) of a class c over the words, "hamming" counts the words
        with the wrong sign; a 0 counts ½.
    C : float, default=1.0
        Weight of the loss. Finite.
    kernel, degree, gamma, coef0 : as in ``SVC``.
    fit_intercept : bool, default=True
        Whether there are b_m, which are not penalised.
    class_weight : dict or "balanced", default=None
        Factors of C for the samples of each class.
    tol : float, default=1e-3
        The largest violation of the optimality conditions, as in ``SVC``.
    max_iter : int, default=-1
        Steps of each machine at most, -1 for no limit.
    cache_size : float or "auto", default="auto"
        Memory for the kernel matrix in MB; "auto" is half of the available memory.
    random_state : int, RandomState or None, default=None
        Seed of the codes "dense" and "sparse".
    n_jobs, time_limit, verbose : as in ``SVC``.

    Attributes
    ----------
    code_ : ndarray of shape (n_classes, n_words)
        The code.
    certificates_ : list of Certificate
        One for each word; ``certificate_`` is that of their sum.
    dual_coef_ : ndarray of shape (n_words, n_support)
        The coefficients β of the samples that are a support vector of at least one machine.
    intercept_ : ndarray of shape (n_words,)
        The intercepts b.
    support_, support_vectors_, rkhs_norm_, n_iter_, classes_, class_weight_, coef_, function_, trace_,
    kernel_evaluations_, fit_status_, shape_fit_, n_features_in_, feature_names_in_ : as in
        ``KernelLogisticRegression``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import OutputCodeSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OutputCodeSVC("dense", random_state=0).fit(X, y)
    >>> model.code_.shape
    (3, 3)
    >>> model.score(X, y) > 0.9
    True
    >>> model.certificate_.relative_gap < 1e-2
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{key: value for key, value in LossMinimiser._parameter_constraints.items() if key != "warm_start"},
        "code": [str, "array-like"],
        "decoding": [StrOptions({"loss", "hamming"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        code: Any = "ovr",
        *,
        decoding: str = "loss",
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    # ---- fit -------------------------------------------------------------------------------------------------

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        self.classes_, codes = class_codes(y)
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes, weight)
        check_weighted_classes(codes, weight, self.class_weight_)
        self.code_ = code_matrix(self.code, len(self.classes_), self.random_state)
        return codes.astype(np.float64)

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        codes, options, loss, fits = y.astype(np.intp), self._options(), Hinge(), bool(self.fit_intercept)
        weight = float(self.C) * weight * self.class_weight_[codes]
        used = np.flatnonzero(weight > 0)
        part, words, C = data if len(used) == data.n else data.take(used), self.code_[codes[used]], weight[used]
        self._check_words(words)
        shared = SharedMatrix(part, loss.box_qp(np.where(words[:, 0] > 0, 1.0, -1.0), C, fits), options, clock)
        beta, F = np.zeros(words.shape), np.zeros(words.shape)
        found: list[Solution] = []
        for m, labels in enumerate(words.T):
            rows = np.flatnonzero(labels)
            with clock.share_of_time(1.0 / (words.shape[1] - m)):
                found.append(solve_problem(shared.take(rows), loss, labels[rows], C[rows], fits, options, clock, None))
            beta[rows, m], F[rows, m] = found[-1].beta, found[-1].F
        support = np.flatnonzero(beta.any(axis=1))
        intercept = np.array([float(s.thresholds.sum()) for s in found])
        several = f"{len(found)} code words" if len(found) > 1 else None
        self._publish_expansion(data, used[support], found, beta[support], F[support], intercept, several)

    def _check_words(self, words: Matrix) -> None:
        """Raise if the weights leave a word without samples on one side."""
        empty = np.flatnonzero(~((words > 0).any(axis=0) & (words < 0).any(axis=0)))
        if len(empty):
            raise InvalidInputError(
                f"Word {empty[0]} of the code has no samples with positive weight on one of its two sides. Give its "
                "classes a weight, or leave them out of y."
            )

    # ---- prediction ------------------------------------------------------------------------------------------

    def word_values(self, X: Any) -> Matrix:
        """The decision values of the binary machines, f_m(x) + b_m.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        values : ndarray of shape (n_samples, n_words)
            A column for each column of ``code_``.
        """
        return self._values(X)

    def decision_function(self, X: Any) -> Matrix:
        """Minus the distance of the decision values from the word of each class; for one word, its decision value.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes and one word, positive for ``classes_[1]``; else the largest value is that of the predicted
            class.
        """
        values = self._values(X)
        if self.code_.shape == (2, 1):
            return values[:, 0] * self.code_[1, 0]
        if self.decoding == "hamming":
            return 0.5 * (np.sign(values) @ self.code_.T - self.code_.shape[1])
        if isinstance(self.code, str) and self.code == "ovr":
            return values
        losses = [np.maximum(0.0, 1.0 - values * word).sum(axis=1) for word in self.code_]
        return -np.column_stack(losses)
