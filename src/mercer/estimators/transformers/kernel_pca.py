"""Kernel principal component analysis, with residuals of its eigenvalues."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._compiled.blas import blas_threads, one_blas_thread
from mercer._sklearn_compat import Interval, StrOptions, fit_context
from mercer.estimators.base import keep_parameters, warn_user
from mercer.estimators.kernel_ridge import domain_of_ridge
from mercer.estimators.transformers.pre_images import PRE_IMAGES, PreImages, ridge_coefficients
from mercer.estimators.transformers.training_gram import KERNEL_PARAMETERS, TrainingGram
from mercer.exceptions import InvalidInputError
from mercer.gram.eigenpairs import (
    ACCURATE,
    EPS,
    Eigenpairs,
    dense_eigenpairs,
    factor_eigenpairs,
    largest_eigenpairs,
    prefers_dense,
)
from mercer.gram.low_rank import BLOCK, LowRank, pivoted_cholesky
from mercer.gram.operator import GramOperator, check_finite, product
from mercer.gram.products import FactorMatrix, StoredMatrix, TiledMatrix, fits, products_of
from mercer.kernels import Gaussian
from mercer.kernels.features import Features, Matrix, Vector
from mercer.validation import is_pairwise, thread_count

# an eigenvalue below -this share of the largest means that K is not positive semidefinite; one below the second is 0
NEGATIVE, ZERO = 1e-5, 1e-12
# a factor K = LL' is tried from FACTOR_FROM samples on, with at most n / FACTOR_SHARE columns, and at most MOST_RANK
FACTOR_FROM, FACTOR_SHARE, MOST_RANK = 1000, 10, 1500


class KernelPCA(TrainingGram, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Coordinates of φ(x) along the directions of largest variance in feature space: HKH v = λ v, H = I − 11'/n.

    The j-th coordinate of a training sample is √λⱼ vⱼ, that of a new one is Σᵢ vᵢⱼ k̃(xᵢ, x)/√λⱼ with the centred
    kernel k̃ (Schölkopf, Smola & Müller, 1998). Any kernel will do: on vectors, strings, graphs, …. Parameters and
    attributes have the same meaning as in scikit-learn, and so have the signs.

    There is no duality gap, since nothing convex is minimised; instead ``residuals_`` has |HKHv − λv| of each
    component, so that an eigenvalue of the matrix lies within this distance of each of ``eigenvalues_``, and
    ``next_eigenvalue_bound_`` bounds all eigenvalues that were left out.

    Parameters
    ----------
    n_components : int, default=None
        Number of components. None keeps all whose eigenvalue is not zero, which needs the whole kernel matrix and a
        time that grows with the cube of n_samples.
    kernel : str, callable or Kernel, default="linear"
        A name from scikit-learn, "precomputed", an expression, a kernel object, or a function of two samples.
    gamma : float, "scale" or "auto", default=None
        Parameter of the named kernels; None is 1 / n_features.
    degree, coef0 : float, default=3, 1
        Parameters of "poly" and "sigmoid".
    kernel_params : dict, default=None
        Keyword arguments of a kernel function.
    alpha : float, default=1.0
        Ridge penalty of ``inverse_transform`` with ``pre_image="ridge"``.
    fit_inverse_transform : bool, default=False
        Whether ``inverse_transform`` is wanted. It needs a kernel on vectors.
    eigen_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        "dense" is LAPACK on the stored matrix. "arpack" and "randomized" both name block Lanczos iteration here, which
        needs few products with the kernel matrix; if this does not fit into ``cache_size``, it is computed again for
        each product. "auto" takes it for more than 300 samples and few components.
    tol : float, default=0
        The iteration ends when all residuals are at most tol times the largest eigenvalue; values below 1e-9 count as
        1e-9, which makes the eigenvalues exact to rounding.
    max_iter : int, default=None
        The largest number of rounds of the iteration; None is 300.
    iterated_power : int or "auto", default="auto"
        With ``eigen_solver="randomized"``, a number q ends the iteration after q + 1 rounds without a warning, accurate
        or not.
    remove_zero_eig : bool, default=False
        Whether components with eigenvalue 0 are left out, so that there may be fewer than n_components.
    random_state : int, RandomState instance or None, default=None
        Seed of the first block of the iteration, and of the choice of landmarks.
    copy_X : bool, default=True
        Without effect, since X is never changed.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores, or one inside a joblib worker; in scikit-learn None means one job.
    landmarks : int, samples or None, default=None
        Restrict the components to the span of this many training samples, or of these samples (indices of training
        samples if the kernel is precomputed). Time and memory then grow linearly with n_samples. ``lost_trace_`` says
        how much is lost.
    pre_image : {"ridge", "fixed_point", "distances"}, default="ridge"
        How ``inverse_transform`` finds a sample. "ridge": scikit-learn's regression of samples on components. The other
        two need a Gaussian kernel and fit nothing: "distances" places the sample by its distances to ten neighbours
        (Kwok & Tsang, 2004), "fixed_point" improves this place by the iteration of Mika et al. (1999).
    cache_size : float or "auto", default="auto"
        Megabytes for the kernel matrix; "auto" is 40 % of the available memory.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the centred kernel matrix in descending order.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Its eigenvectors, as columns of length 1.
    residuals_ : ndarray of shape (n_components,)
        The norms |HKHv − λv|, in float64, or bounds of them where a factor of K was enough. With landmarks, those of
        the matrix of the landmarks' features.
    next_eigenvalue_bound_ : float
        No other eigenvalue of HKH is larger. If it is below the last of ``eigenvalues_``, no component was missed.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Eigenvalues as fractions of the trace of HKH, the variance in feature space.
    lost_trace_ : float
        The trace of K minus the trace of its approximation by landmarks. Each exact eigenvalue is at least the one
        found, and larger by no more than this. 0 without landmarks.
    X_fit_ : the samples that new ones are compared with: the training samples, or the landmarks.
    X_transformed_fit_, dual_coef_ : ndarray
        The components and coefficients of ``inverse_transform`` with "ridge".
    gamma_ : float
        gamma as a number.
    n_products_ : int
        Number of vectors that were multiplied with the kernel matrix.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> X = load_digits().data / 16.0
    >>> pca = KernelPCA(n_components=5, kernel="rbf", gamma=0.05).fit(X)
    >>> pca.transform(X[:3]).shape
    (3, 5)
    >>> bool((pca.residuals_ < 1e-6 * pca.eigenvalues_).all())
    True

    Words, compared by their pairs of letters:

    >>> from mercer.kernels import Normalized, Spectrum
    >>> words = ["kernel", "kernels", "colonel", "margin", "margins", "imagine"]
    >>> KernelPCA(n_components=2, kernel=Normalized(Spectrum(2))).fit_transform(words).shape
    (6, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KERNEL_PARAMETERS,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_inverse_transform": ["boolean"],
        "eigen_solver": [StrOptions({"auto", "dense", "arpack", "randomized"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "iterated_power": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "remove_zero_eig": ["boolean"],
        "copy_X": ["boolean"],
        "pre_image": [StrOptions(set(PRE_IMAGES))],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: int | str = "auto",
        remove_zero_eig: bool = False,
        random_state: Any = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
        landmarks: Any = None,
        pre_image: str = "ridge",
        cache_size: float | str = "auto",
    ) -> None:
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Compute the components.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list of object
            Training samples; the kernel matrix for ``kernel="precomputed"``.
        y : ignored

        Returns
        -------
        self : object
            The fitted transformer.
        """
        if self.fit_inverse_transform and is_pairwise(self.kernel):
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        X, gram = self._training_gram(X)
        self._check_pre_image(X)
        self.gamma_ = self._gamma_number()
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            (self._fit_exact if self.landmarks is None else self._fit_landmarks)(X, gram)
        if self.fit_inverse_transform:
            self._fit_inverse()
        return self

    def _gamma_number(self) -> Any:
        """gamma of the bound kernel; for kernels without one, that of scikit-learn."""
        if self.gamma is None or isinstance(self.gamma, str):
            return getattr(self._kernel, "gamma", 1.0 / getattr(self, "n_features_in_", 1))
        return self.gamma

    # ---- components ------------------------------------------------------------------------------------------

    def _fit_exact(self, X: Any, gram: GramOperator) -> None:
        n = gram.n
        count = n if self.n_components is None else min(int(self.n_components), n)
        dense = self.eigen_solver == "dense" or (self.eigen_solver == "auto" and prefers_dense(n, count))
        if dense and not fits(n, self.cache_size):
            raise InvalidInputError(
                f"The kernel matrix of {n:,} samples takes {8 * n * n / 2**30:,.3g} GB, more than cache_size allows, "
                f"and LAPACK needs all of it for n_components={self.n_components}. Ask for fewer components (at most a "
                "tenth of the samples), set landmarks, or raise cache_size."
            )
        factor = self._factor(gram, count) if not dense else None
        K: Any = products_of(gram, self.cache_size) if factor is None else FactorMatrix(factor.L)
        row_sums = K.product(np.ones((n, 1)))[:, 0]
        means, mean = row_sums / n, float(row_sums.sum()) / n**2
        squares = K.squares()
        trace = float(gram.diagonal().sum()) - n * mean
        if factor is not None:
            found = factor_eigenpairs(factor.L - factor.L.mean(axis=0), count)
            # |HKHv - HLL'Hv| is at most the trace of K - LL'
            found = found._replace(residuals=found.residuals + factor.rest)
        elif dense:
            found = self._decompose(K.K, means, mean, count)
        else:
            found = self._iterate(K, count)
        # |HKH|² without the found part bounds the square of any other eigenvalue (Weyl)
        rest = squares - 2.0 * n * float(means @ means) + (n * mean) ** 2 - float(np.square(found.values).sum())
        lost = 0.0 if factor is None else factor.rest
        bound = np.sqrt(max(rest, 0.0) + 8.0 * EPS * squares) + lost if len(found.values) < n else 0.0
        if self._is_psd():  # the trace that is left bounds them, too
            bound = min(bound, max(trace - float(found.values.sum()), 0.0) + 8.0 * EPS * n * float(K.diagonal.max()))
        self.next_eigenvalue_bound_ = float(bound)
        self._publish(found, trace)
        vectors = self.eigenvectors_ - self.eigenvectors_.mean(axis=0)
        self._coef = divided(vectors, np.sqrt(self.eigenvalues_))
        self._offset = means @ self._coef
        self._mean_coef = np.full(n, 1.0 / n)
        self.lost_trace_ = 0.0
        self.X_fit_ = X
        self._keep(X, gram.features)

    def _is_psd(self) -> bool:
        """Whether K is known to be positive semidefinite."""
        return self._kernel.positive_semidefinite and not self._kernel.psd_is_assumed

    def _factor(self, gram: GramOperator, count: int) -> LowRank | None:
        """K = LL' with few columns and an error below the tolerance, if there is such a factor; else None."""
        rank = min(gram.n // FACTOR_SHARE, MOST_RANK)
        if gram.n < FACTOR_FROM or self.eigen_solver != "auto" or not self._is_psd() or rank < 2 * count:
            return None
        first = pivoted_cholesky(gram, BLOCK, 0.0)
        # LL' <= K, so its largest eigenvalue is at most that of K
        largest = factor_eigenpairs(first.L - first.L.mean(axis=0), 1).values[0] if first.L.shape[1] else 0.0
        factor = pivoted_cholesky(gram, rank, max(float(self.tol), ACCURATE) * largest, only_exact=True)
        return factor if factor.exact and factor.L.shape[1] >= count else None

    def _decompose(self, K: Matrix, means: Vector, mean: float, count: int) -> Eigenpairs:
        """LAPACK on the centred matrix. Edits K."""
        K -= means
        K -= means[:, None]
        K += mean
        with blas_threads(thread_count(self.n_jobs)):
            return dense_eigenpairs(K, count)

    def _iterate(self, K: StoredMatrix | TiledMatrix, count: int) -> Eigenpairs:
        """Block Lanczos iteration with the centred matrix."""
        limited = self.eigen_solver == "randomized" and self.iterated_power != "auto"
        rounds = int(self.iterated_power) + 1 if limited else self.max_iter

        def centred(V: Matrix) -> Matrix:
            out = K.product(V - V.mean(axis=0))
            out -= out.mean(axis=0)
            return out

        random = check_random_state(self.random_state)
        found = largest_eigenpairs(centred, K.n, count, random, float(self.tol), rounds)
        if not found.converged and not limited:
            warn_user(
                f"The eigenvalues are not accurate after max_iter={self.max_iter} rounds: the largest residual is "
                f"{found.residuals.max():.3g}, the largest eigenvalue {found.values[0]:.3g}. Raise max_iter or tol, or "
                "use eigen_solver='dense'.",
                ConvergenceWarning,
            )
        return found

    def _fit_landmarks(self, X: Any, gram: GramOperator) -> None:
        n, phi = gram.n, self._landmark_features(X, gram)
        m = len(phi.mean)
        count = m if self.n_components is None else min(int(self.n_components), m)
        found = dense_eigenpairs(phi.second - n * np.outer(phi.mean, phi.mean), m)
        following = float(found.values[count]) if count < m else 0.0
        self.next_eigenvalue_bound_ = max(following, 0.0) + phi.lost
        W = found.vectors[:, :count]
        root = phi.root @ W
        offset = phi.mean @ W
        rows = product(self._kernel, gram.features, phi.prepared, root, gram.n_threads) - offset
        largest = float(found.values[0])
        values = np.where(found.values[:count] > ZERO * largest, found.values[:count], 0.0)
        trace = float(np.trace(phi.second)) - n * float(phi.mean @ phi.mean) + phi.lost
        signs = self._publish(
            Eigenpairs(values, divided(rows, np.sqrt(values)), found.residuals[:count], n * m, True), trace
        )
        self._coef, self._offset = root[:, : len(signs)] * signs, offset[: len(signs)] * signs
        self._mean_coef = phi.root @ phi.mean
        self.lost_trace_ = phi.lost
        self.X_fit_ = phi.samples
        self._keep(phi.samples, phi.prepared)

    def _publish(self, found: Eigenpairs, trace: float) -> Vector:
        """Set the eigenvalues and eigenvectors, without noise and with scikit-learn's signs, which are returned."""
        check_finite(found.values)
        values = np.where(np.abs(found.values) <= ZERO * np.abs(found.values).max(initial=0.0), 0.0, found.values)
        if values.min() < -NEGATIVE * max(values.max(), 0.0):
            raise InvalidInputError(
                f"There are significant negative eigenvalues ({values.min():.4g}, the largest is {values.max():.4g}). "
                "Either the matrix is not PSD, or there was an issue while computing the eigendecomposition of the "
                "matrix. Use another kernel, or mercer.repair_mercer for a matrix."
            )
        values = np.maximum(values, 0.0)
        kept = values > 0 if self.remove_zero_eig or self.n_components is None else np.ones(len(values), bool)
        vectors = found.vectors
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
        signs[signs == 0] = 1.0
        self.eigenvalues_ = values[kept]
        self.eigenvectors_ = (vectors * signs)[:, kept]
        self.residuals_ = found.residuals[kept]
        self.n_products_ = found.n_products
        self.explained_variance_ratio_ = self.eigenvalues_ / trace if trace > 0 else np.zeros(int(kept.sum()))
        return signs[kept]

    # ---- new samples -----------------------------------------------------------------------------------------

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Matrix:
        """Compute the components and the coordinates of the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list of object
            Training samples; the kernel matrix for ``kernel="precomputed"``.
        y : ignored
        **params : dict
            Arguments of ``fit``.

        Returns
        -------
        X_transformed : ndarray of shape (n_samples, n_components)
            √λ v, in the precision of X.
        """
        self.fit(X, **params)
        return like(self.eigenvectors_ * np.sqrt(self.eigenvalues_), X)

    def transform(self, X: Any) -> Matrix:
        """Compute the coordinates of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples_fit)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        X_transformed : ndarray of shape (n_samples, n_components)
            One row per sample, in the precision of X.
        """
        X, features = self._new_samples(X)
        return like(self._compared(features, self._coef) - self._offset, X)

    # ---- pre-images ------------------------------------------------------------------------------------------

    def _check_pre_image(self, X: Any) -> None:
        """Raise if inverse_transform is wanted but not defined."""
        if not self.fit_inverse_transform:
            return
        if hasattr(X, "tocsr"):
            raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
        if domain_of_ridge(self.kernel) != "vectors":
            raise InvalidInputError(
                f"fit_inverse_transform needs a kernel on vectors, but {self._kernel!r} compares "
                f"{self._kernel.domain}. "
                "Use fit_inverse_transform=False."
            )
        if self.pre_image != "ridge" and not (isinstance(self._kernel, Gaussian) and np.isscalar(self._kernel.gamma)):
            raise InvalidInputError(
                f"pre_image={self.pre_image!r} needs a Gaussian kernel with one gamma, but kernel={self.kernel!r}. Use "
                "pre_image='ridge'."
            )

    def _fit_inverse(self) -> None:
        """Regress samples on their components; other pre-images need no fit."""
        for name in ("dual_coef_", "X_transformed_fit_"):
            self.__dict__.pop(name, None)
        if self.pre_image != "ridge":
            return
        exact = self.landmarks is None
        Z = self.eigenvectors_ * np.sqrt(self.eigenvalues_) if exact else self.transform(self.X_fit_)
        self.X_transformed_fit_ = Z
        gram = GramOperator(self._kernel, self._kernel.prepare(Z, np.float64), thread_count(self.n_jobs))
        if not fits(len(Z), self.cache_size):
            raise InvalidInputError(
                f"pre_image='ridge' needs a matrix of {len(Z):,} × {len(Z):,} numbers, more than cache_size allows. "
                "Set landmarks, use pre_image='distances' with a Gaussian kernel, or raise cache_size."
            )
        with blas_threads(gram.n_threads):
            self.dual_coef_ = ridge_coefficients(gram.dense(), float(self.alpha), np.asarray(self.X_fit_, np.float64))

    def inverse_transform(self, X: Any) -> Matrix:
        """Find samples whose coordinates are close to the given ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates, as returned by ``transform``.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            The samples.
        """
        check_is_fitted(self)
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The fit_inverse_transform parameter was not set to True when instantiating and hence the inverse "
                "transform is not available."
            )
        given = check_array(X, dtype=[np.float64, np.float32], accept_sparse="csr", estimator=self)
        if given.shape[1] != len(self.eigenvalues_):
            raise InvalidInputError(
                f"X has {given.shape[1]} columns, but there are {len(self.eigenvalues_)} components: pass what "
                "transform returns."
            )
        threads = thread_count(self.n_jobs)
        if self.pre_image == "ridge":
            a, b = (self._kernel.prepare(part, np.float64) for part in (given, self.X_transformed_fit_))
            return like(product(self._kernel, a, b, self.dual_coef_, threads), given)
        Z = given.toarray() if hasattr(given, "toarray") else given
        return like(self._pre_image_finder().find(Z, self.pre_image == "fixed_point", threads), given)

    def _pre_image_finder(self) -> PreImages:
        features: Features = self._training.features()
        assert isinstance(self._kernel, Gaussian)
        return PreImages(self._kernel, np.asarray(self.X_fit_, np.float64), features, self._coef, self._mean_coef)


def divided(vectors: Matrix, lengths: Vector) -> Matrix:
    """The columns divided by these numbers; 0 where the number is 0."""
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def like(values: Matrix, X: Any) -> Matrix:
    """The values in single precision if X is."""
    return values.astype(np.float32) if getattr(X, "dtype", None) == np.float32 else values
