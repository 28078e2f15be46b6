"""k-means clustering in feature space, with a lower bound on the best inertia."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from mercer._compiled.blas import one_blas_thread
from mercer._sklearn_compat import Interval, StrOptions, fit_context
from mercer.estimators.base import keep_parameters, warn_user
from mercer.estimators.clusters.lloyd import lloyd, seeds, spectral_bound
from mercer.estimators.transformers.training_gram import KERNEL_PARAMETERS, TrainingGram, check_count
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import GramOperator, check_finite, product
from mercer.gram.products import FactorMatrix, Products, products_of
from mercer.kernels import Linear
from mercer.kernels.features import Matrix, Vector
from mercer.validation import validate_weights


class KernelKMeans(TrainingGram, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Partition samples into k clusters: min Σ_c Σ_{i in c} wᵢ |φ(xᵢ) − m_c|² over the partitions and means m_c.

    k-means in the feature space of any kernel, on vectors, strings, graphs, … (Dhillon, Guan & Kulis, 2004): Lloyd's
    iteration from several k-means++ starts. The problem is not convex, so there is no duality gap. Still, no partition
    has a smaller inertia than ``lower_bound_``, from the relaxation of the partition to orthonormal vectors: the found
    partition can be improved by at most the fraction ``relative_gap_`` of its inertia. The bound is as reliable as its
    eigenvalues: their residuals are subtracted from it, but a missed eigenvector would not be noticed. It is weak, down
    to 0, where k − 1 directions also hold most of the variance within clusters, as with the linear kernel on few
    features.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : str, callable or Kernel, default="rbf"
        A name from scikit-learn, "precomputed", an expression, a kernel object, or a function of two samples. "linear"
        is ordinary k-means.
    gamma : float, "scale" or "auto", default="scale"
        Parameter of the named kernels.
    degree, coef0 : float, default=3, 1
        Parameters of "poly" and "sigmoid".
    kernel_params : dict, default=None
        Keyword arguments of a kernel function.
    init : "k-means++" or array of int of shape (n_samples,), default="k-means++"
        The first labels: the nearest of k samples that are drawn far from each other, or given labels.
    n_init : int, default=10
        Number of starts, of which the best is kept. They share products with the kernel matrix.
    max_iter : int, default=300
        The largest number of rounds of each start.
    tol : float, default=0.0
        A start ends when a round lowers its inertia by at most this fraction; with 0, when no label changes.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of the choice of landmarks.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores, or one inside a joblib worker.
    landmarks : int, samples or None, default=None
        Restrict the means to the span of this many training samples, or of these samples (indices if the kernel is
        precomputed). Time and memory then grow linearly with n_samples.
    cache_size : float or "auto", default="auto"
        Megabytes for the kernel matrix; "auto" is 40 % of the available memory. A larger matrix is computed again, tile
        by tile, in each round.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each training sample.
    inertia_ : float
        The weighted sum of squared distances in feature space to the nearest mean.
    lower_bound_ : float
        No partition has a smaller inertia: tr A − λ₁ − … − λ_{k−1} of the centred, weighted kernel matrix A. With
        landmarks, it is that of the projections onto their span, which is smaller.
    relative_gap_ : float
        (inertia_ − lower_bound_) / inertia_: the best inertia is at most this fraction smaller.
    n_iter_ : int
        Rounds of the best start.
    X_fit_ : the samples that new ones are compared with: the training samples, or the landmarks.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from mercer import KernelKMeans
    >>> from mercer.kernels import Normalized, Spectrum
    >>> words = ["kernel", "kernels", "kernelled", "margin", "margins", "marginal"]
    >>> model = KernelKMeans(n_clusters=2, kernel=Normalized(Spectrum(3)), random_state=0).fit(words)
    >>> len(set(model.labels_[:3])), len(set(model.labels_[3:])), bool(model.labels_[0] != model.labels_[3])
    (1, 1, True)
    >>> bool(model.labels_[0] == model.predict(["kern"])[0])
    True
    >>> bool(model.lower_bound_ <= model.inertia_)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KERNEL_PARAMETERS,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 0.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        landmarks: Any = None,
        cache_size: float | str = "auto",
    ) -> None:
        keep_parameters(self, locals())

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelKMeans:
        """Find the clusters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list of object
            Training samples; the kernel matrix for ``kernel="precomputed"``.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the squared distances.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, gram = self._training_gram(X)
        n, k = gram.n, int(self.n_clusters)
        check_count("n_clusters", k, n, "each cluster has a sample")
        weight = validate_weights(sample_weight, n, X)
        random = check_random_state(self.random_state)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            K, root, lost = self._matrix(X, gram, weight)
            found = lloyd(K, weight, self._starts(K, weight, k, random), k, int(self.max_iter), float(self.tol))
            bound = spectral_bound(K, weight, k, random)
        check_finite(found.inertia)
        self.labels_ = found.labels.astype(np.int32)
        self.inertia_ = found.inertia + lost
        self.lower_bound_ = min(bound.value, self.inertia_)
        self.relative_gap_ = 1.0 - self.lower_bound_ / self.inertia_ if self.inertia_ > 0 else 0.0
        self.n_iter_ = found.n_iter
        self._set_means(K, weight, found.labels, k, root)
        self._warn(k, found.converged)
        return self

    def _matrix(self, X: Any, gram: GramOperator, weight: Vector) -> tuple[Products, Matrix | None, float]:
        """The matrix between training samples; for landmarks, the root of their matrix and the lost inertia."""
        if self.landmarks is not None:
            phi = self._landmark_features(X, gram)
            factor = product(self._kernel, gram.features, phi.prepared, phi.root.T, gram.n_threads)
            lost = weight @ np.maximum(gram.diagonal() - np.einsum("ij,ij->i", factor, factor), 0.0)
            self.X_fit_ = phi.samples
            self._keep(phi.samples, phi.prepared)
            return FactorMatrix(factor), phi.root, float(lost)
        self.X_fit_ = X
        self._keep(X, gram.features)
        if isinstance(self._kernel, Linear) and isinstance(X, np.ndarray) and X.shape[1] < gram.n:
            # distances do not change when the mean is removed, and are more accurate
            return FactorMatrix(X - X.mean(axis=0, dtype=np.float64)), None, 0.0
        return products_of(gram, self.cache_size), None, 0.0

    def _starts(self, K: Products, weight: Vector, k: int, random: Any) -> list[Vector]:
        if isinstance(self.init, str):
            return [seeds(K, weight, k, random) for _ in range(int(self.n_init))]
        given = np.asarray(self.init)
        if given.shape != (K.n,) or given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= k:
            raise InvalidInputError(
                f"init has the shape {given.shape} and the type {given.dtype}: give a label from 0 to {k - 1} for "
                f"each of the {K.n} samples, or 'k-means++'."
            )
        return [given.astype(np.intp)]

    def _set_means(self, K: Products, weight: Vector, labels: Vector, k: int, root: Matrix | None) -> None:
        """Set the coefficients of the means, and their squared norms."""
        totals = np.bincount(labels, weight, k)
        means = np.zeros((K.n, k))
        means[np.arange(K.n), labels] = weight / np.where(totals > 0, totals, 1.0)[labels]
        if root is not None:
            assert isinstance(K, FactorMatrix)
            means = root.T @ (K.factor.T @ means)
        features = self._training.features()
        if root is None and isinstance(K, FactorMatrix):  # its factor is centred, new samples are not
            points = np.asarray(self.X_fit_, np.float64).T @ means
            squares = np.einsum("ij,ij->j", points, points)
        elif root is None:
            squares = np.einsum("ij,ij->j", means, K.product(means))
        else:
            squares = np.einsum("ij,ij->j", means, product(self._kernel, features, features, means, 1))
        self._coef = means
        self._squares = np.where(totals > 0, squares, np.inf)

    def _warn(self, k: int, converged: bool) -> None:
        found = len(np.unique(self.labels_))
        if found < k:
            warn_user(
                f"Number of distinct clusters ({found}) found smaller than n_clusters ({k}). Possibly due to duplicate "
                "points in X.",
                ConvergenceWarning,
            )
        if not converged:
            warn_user(
                f"The best start was ended by max_iter={self.max_iter}: labels would still change. The inertia is "
                f"{self.inertia_:.6g}. Raise max_iter or tol.",
                ConvergenceWarning,
            )

    def _own_squares(self, features: Any) -> Vector:
        """k(x, x); 0 for rows of a kernel matrix, which do not have it."""
        pairwise = self.__sklearn_tags__().input_tags.pairwise
        return np.zeros(len(features)) if pairwise else self._kernel.diagonal(features)

    def predict(self, X: Any) -> Vector:
        """The cluster with the nearest mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples_fit)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            A number from 0 to n_clusters − 1 for each sample.
        """
        _, features = self._new_samples(X)
        values = self._squares - 2.0 * self._compared(features, self._coef)
        return np.argmin(values, axis=1).astype(np.int32)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The negative inertia of these samples; for a precomputed kernel, up to the constant Σ k(x, x).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the squared distances.

        Returns
        -------
        score : float
            The larger the better.
        """
        _, features = self._new_samples(X)
        values = (self._squares - 2.0 * self._compared(features, self._coef)).min(axis=1)
        return -float(validate_weights(sample_weight, len(values), X) @ (values + self._own_squares(features)))
