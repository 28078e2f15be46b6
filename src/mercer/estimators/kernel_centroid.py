"""KernelCentroid predicts the class with the closest mean in feature space."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import KernelMachine, keep_parameters
from mercer.estimators.prediction import Expansion
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data, check_finite, product
from mercer.kernels.features import Matrix, Vector, take_samples
from mercer.problems.clock import Clock
from mercer.validation import check_weighted_classes, class_codes, is_pairwise, thread_count


class KernelCentroid(ClassifierMixin, KernelMachine):  # type: ignore[misc]
    """Predict the class whose mean in feature space is closest: c_y = (1/m_y) Σ φ(xᵢ) over the samples of class y.

    The closest mean maximises <c_y, φ(x)> - ½|c_y|², and both terms are sums of kernel values. For two classes this is
    the sign of <w, φ(x)> + b with w = c₊ - c₋ and b = ½(|c₋|² - |c₊|²): [SSBD] Exercise 16.6. Nothing is optimised; a
    fit costs as much as computing the kernel matrix once.

    Parameters
    ----------
    kernel, degree, gamma, coef0 : as in ``SVC``.
    normalize : bool, default=False
        Whether to compare angles instead of distances: predict the class with the largest <c_y, φ(x)>/|c_y|.
    shrinkage : float or "auto", default=0.0
        In [0, 1]: move each class mean by this fraction of the way to the mean c of all samples. "auto" estimates for
        each class the fraction that minimises the expected squared distance to the true mean, V/(V + |c_y - c|²), where
        V is the variance of c_y. Small classes shrink most (James and Stein; Muandet et al., JMLR 17, 2016).
    verbose : bool, default=False
        Has no effect; present for compatibility.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores, or one inside a joblib worker; in scikit-learn None means one job.

    Attributes
    ----------
    centroid_norms_ : ndarray of shape (n_classes,)
        The norms |c_y| after shrinking.
    shrinkage_ : ndarray of shape (n_classes,)
        The fraction by which each mean was moved.
    centroid_distances_ : ndarray of shape (n_classes, n_classes)
        The distances |c_y - c_z|.
    rkhs_norm_ : ndarray
        |w| for two classes, |c_y| for more.
    function_ : RKHSFunction, or a list of them
        w for two classes, a list of the c_y for more (divided by |c_y| if ``normalize``).
    coef_, intercept_, dual_coef_, support_, support_vectors_, classes_, n_features_in_, feature_names_in_ :
        As in ``SVC``, with one row for two classes, and one row per class for more.

    Examples
    --------
    >>> from mercer import KernelCentroid
    >>> X = [[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]]
    >>> KernelCentroid(kernel="linear").fit(X, [1, 1, 1, 2, 2, 2]).predict([[-0.8, -1], [3, 2]])
    array([1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            key: KernelMachine._parameter_constraints[key]
            for key in ("kernel", "degree", "gamma", "coef0", "verbose", "n_jobs")
        },
        "normalize": ["boolean"],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0.0, 1.0, closed="both")],
    }
    time_limit = None

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        normalize: bool = False,
        shrinkage: Any = 0.0,
        verbose: Any = False,
        n_jobs: int | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        self.classes_, codes = class_codes(y)
        check_weighted_classes(codes, weight)
        return codes.astype(np.float64)

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        codes, used = y.astype(np.intp), np.flatnonzero(weight > 0)
        part = data if len(used) == data.n else data.take(used)
        features, n_threads = part.features(np.float64), thread_count(self.n_jobs)
        diagonal = part.kernel.diagonal(features)
        check_finite(diagonal)
        # a class without weight has no mean and is never predicted
        present = np.unique(codes[used])
        means = np.where(codes[used] == present[:, None], weight[used], 0.0)
        means /= means.sum(axis=1, keepdims=True)
        products = product(part.kernel, features, features, np.ascontiguousarray(means.T), n_threads, data.evaluations)
        check_finite(products)
        overall = weight[used] / weight[used].sum()
        inner = means @ products
        self.shrinkage_ = np.zeros(len(self.classes_))
        self.shrinkage_[present] = moved = self._moved(means, diagonal, inner, products, overall)
        # inner products of (1 - s) c_y + s c follow from those of the means
        mix = (1.0 - moved)[:, None] * np.eye(len(present))
        totals = np.array([weight[used][codes[used] == c].sum() for c in present])
        mix += moved[:, None] * (totals / totals.sum())
        coef, inner = mix @ means, mix @ inner @ mix.T
        check_finite(inner)
        norms = np.sqrt(np.maximum(np.diag(inner), 0.0))
        self.centroid_norms_ = np.zeros(len(self.classes_))
        self.centroid_norms_[present] = norms
        self.centroid_distances_ = np.full((len(self.classes_), len(self.classes_)), np.inf)
        squares = np.maximum(norms[:, None] ** 2 + norms**2 - 2 * inner, 0.0)
        self.centroid_distances_[np.ix_(present, present)] = np.sqrt(squares)
        offset = -0.5 * norms**2
        if self.normalize:
            if norms.min() <= 0:
                zero = self.classes_[present[int(np.argmin(norms))]].item()
                raise InvalidInputError(
                    f"normalize=True divides by the norm of each class mean, but the mean of class {zero!r} is 0: its "
                    "samples cancel. Use normalize=False, or another kernel."
                )
            coef, offset = coef / norms[:, None], np.zeros(len(present))
            inner = inner / np.outer(norms, norms)
        self._publish(data, used, present, coef, offset, inner)

    def _moved(self, means: Matrix, diagonal: Vector, inner: Matrix, products: Matrix, overall: Vector) -> Vector:
        """The fraction of the way to the overall mean by which each class mean is moved."""
        if not isinstance(self.shrinkage, str):
            return np.full(len(means), float(self.shrinkage))
        # a mean with weights p has the variance (Σ p k(x, x) - |c|²) Σ p² / (1 - Σ p²)
        sizes = (means**2).sum(axis=1)
        spread = np.maximum(means @ diagonal - np.diag(inner), 0.0)
        variance = np.divide(spread * sizes, 1.0 - sizes, out=np.zeros(len(means)), where=sizes < 1.0)
        # |c_y - c|² for the overall mean c; <c, c_y> is the overall mean of the products
        cross = overall @ products
        share = np.array([overall[row > 0].sum() for row in means])
        distance = np.maximum(np.diag(inner) - 2.0 * cross + share @ inner @ share, 0.0)
        # the variance of a class with a single sample is unknown
        lonely = sizes >= 1.0 - 1e-12
        shrink = np.divide(variance, variance + distance, out=np.zeros(len(means)), where=variance + distance > 0)
        return np.where(lonely, 0.0, shrink)

    def _publish(self, data: Data, used: Vector, present: Vector, coef: Matrix, offset: Vector, inner: Matrix) -> None:
        if len(self.classes_) == 2:
            coef, offset = coef[[1]] - coef[[0]], offset[[1]] - offset[[0]]
            self.rkhs_norm_ = np.sqrt(np.maximum([inner[0, 0] + inner[1, 1] - 2 * inner[0, 1]], 0.0))
        else:
            self.rkhs_norm_ = np.zeros(len(self.classes_))
            self.rkhs_norm_[present] = np.sqrt(np.maximum(np.diag(inner), 0.0))
            every, b = np.zeros((len(self.classes_), coef.shape[1])), np.full(len(self.classes_), -np.inf)
            every[present], b[present] = coef, offset
            coef, offset = every, b
        self.support_ = used.astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if is_pairwise(data.kernel) else take_samples(data.samples, used)
        self._n_support = np.array([len(used)], dtype=np.int32)
        self._support = Expansion.over(data.kernel, self.support_vectors_, self.support_, data.n)
        self.dual_coef_ = self._dual_coef_ = coef
        self.intercept_ = self._intercept_ = offset

    def _warn_unfinished(self) -> None:
        """Nothing is iterated, so there is nothing to warn about."""

    def decision_function(self, X: Any) -> Matrix:
        """<w, φ(x)> + b for two classes; <c_y, φ(x)> - ½|c_y|² for each of more classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Larger values mean closer to the class.
        """
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> Vector:
        """The class with the closest mean; in a tie between two classes the second.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            The labels.
        """
        values = self.decision_function(X)
        return self.classes_[(values >= 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)]
