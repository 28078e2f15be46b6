"""Nyström's method: features whose inner products approximate kernel values, from a subset of the samples."""

from __future__ import annotations

from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._sklearn_compat import Interval, StrOptions, fit_context, num_samples
from mercer.estimators.base import keep_parameters, warn_user
from mercer.estimators.kernel_ridge import domain_of_ridge, resolve_pairwise
from mercer.estimators.parameters import KernelParameters
from mercer.estimators.prediction import Expansion
from mercer.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mercer.gram.low_rank import SELECTIONS, choose_landmarks
from mercer.gram.operator import GramOperator, product
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector, take_samples
from mercer.validation import (
    check_pairwise_kernel,
    is_pairwise,
    square_matrix,
    thread_count,
    validate_indices,
    validate_landmarks,
    validate_samples,
)

# eigenvalues below this fraction of the largest are rounding
RANK = 1e-12
# number of samples for the error estimate
EXAMINED = 2000


class Nystroem(KernelParameters, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Approximate feature map: φ(x) with <φ(x), φ(z)> ≈ k(x, z), for use before a linear machine.

    Some samples are chosen as landmarks, or given. φ(x) is the projection of x, in the kernel's feature space, onto the
    span of the landmarks, so K ≈ K·ₘ Kₘₘ⁻¹ Kₘ· ([M5] "dictionary methods"; Williams & Seeger, 2001). Kernel values with
    a landmark are exact; ``error_`` measures the loss for the others. Parameters and attributes have the same meaning
    as in scikit-learn.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="rbf"
        A name from scikit-learn, "precomputed", an expression, a kernel object, or a function of two samples.
    gamma, coef0, degree : float, default=None
        Parameters of the named kernels; None for scikit-learn's defaults. gamma may be "scale" or "auto".
    kernel_params : dict, default=None
        Keyword arguments of a kernel function.
    n_components : int, default=100
        Number of landmarks.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of landmarks.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores, or one inside a joblib worker; in scikit-learn None means one job. The
        result does not depend on it.
    selection : {"uniform", "kmeans++", "cholesky", "random_cholesky"}, default="uniform"
        How landmarks are chosen. "uniform": at random, as in scikit-learn. "kmeans++": at random, but far from each
        other in feature space. "cholesky": greedily, always the sample with the largest approximation error (pivoted
        Cholesky factorisation). It prefers outliers, so with few landmarks it reduces ``largest_error_`` rather than
        ``error_``. "random_cholesky": at random with probabilities proportional to the approximation errors; often the
        best choice. All but "uniform" compute n_samples × n_components kernel values, and stop early if the
        approximation is exact.
    landmarks : samples, array of int or None, default=None
        The landmarks themselves, as samples of the same kind as X: rows of features, dense or sparse, strings, graphs,
        …. They need not be among the training samples, and all of them are used as they are: n_components, selection
        and random_state are then ignored. With kernel="precomputed", whose samples have no representation of their
        own, they are indices of training samples. None: choose them from X.

    Attributes
    ----------
    components_ : the landmarks.
    component_indices_ : ndarray of shape (n_components,)
        Indices of the landmarks in the training set. Not set if ``landmarks`` are samples, since these need not be in
        the training set.
    normalization_ : ndarray of shape (n_components, n_components)
        Kₘₘ^(-½). φ(x) is this matrix times the kernel values with the landmarks.
    error_ : float
        The lost fraction of the trace of the kernel matrix, Σ (k(x, x) − |φ(x)|²) / Σ k(x, x), over the training
        samples or a random subset of 2000.
    largest_error_ : float
        The largest k(x, x) − |φ(x)|² among these samples. It bounds the error of every kernel value between them.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from mercer import LinearSVC, Nystroem
    >>> X, y = load_digits(return_X_y=True)
    >>> machine = make_pipeline(Nystroem(gamma=0.1, n_components=200, random_state=0), LinearSVC())
    >>> machine.fit(X / 16.0, y).score(X / 16.0, y) > 0.98
    True
    >>> machine[0].error_ < 0.2
    True

    Landmarks of your own, such as the centres of clusters:

    >>> from sklearn.cluster import KMeans
    >>> centres = KMeans(100, n_init=1, random_state=0).fit(X / 16.0).cluster_centers_
    >>> Nystroem(gamma=0.1, landmarks=centres).fit_transform(X / 16.0).shape
    (1797, 100)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [str, callable, Kernel],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="left"), None],
        "coef0": [Interval(Real, None, None, closed="neither"), None],
        "degree": [Interval(Real, 1, None, closed="left"), None],
        "kernel_params": [dict, None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "selection": [StrOptions(set(SELECTIONS))],
        "landmarks": "no_validation",
    }

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: dict[str, Any] | None = None,
        n_components: int = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
        selection: str = "uniform",
        landmarks: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = domain_of_ridge(self.kernel) == "matrix"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _resolve(self) -> Kernel:
        """The kernel given by the parameters."""
        is_function = callable(self.kernel) and not isinstance(self.kernel, Kernel)
        given = self.gamma is not None or self.coef0 is not None or self.degree is not None
        if given and (is_function or domain_of_ridge(self.kernel) == "matrix"):
            raise ValueError("Don't pass gamma, coef0 or degree to Nystroem if using a callable or precomputed kernel")
        params = {} if is_function else dict(self.kernel_params or {})
        model = SimpleNamespace(
            gamma=params.get("gamma", self.gamma),
            coef0=params.get("coef0", 1.0 if self.coef0 is None else self.coef0),
            degree=params.get("degree", 3 if self.degree is None else self.degree),
            kernel_params=self.kernel_params,
        )
        return resolve_pairwise(self.kernel, model)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Nystroem:
        """Choose the landmarks, unless they are given.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training samples; the kernel matrix for ``kernel="precomputed"``.
        y : ignored

        Returns
        -------
        self : object
            The fitted transformer.
        """
        X, _ = validate_samples(self, X, None, reset=True, domain=domain_of_ridge(self.kernel))
        n = num_samples(X)
        kernel = self._resolve()
        if is_pairwise(kernel):
            square_matrix(X)
            check_pairwise_kernel(kernel)
        self._kernel = kernel.bind(X)
        if self.landmarks is not None and not is_pairwise(kernel):
            self.components_ = validate_landmarks(self, self.landmarks, domain_of_ridge(self.kernel))
            chosen = np.arange(num_samples(self.components_))
            self.__dict__.pop("component_indices_", None)  # of an earlier fit
        else:
            given = self.landmarks is not None
            chosen = validate_indices("landmarks", self.landmarks, n) if given else self._choose(X, n)
            self.component_indices_ = np.asarray(chosen, dtype=np.int64)
            self.components_ = take_samples(X, self.component_indices_)
        self._landmarks = Expansion.over(self._kernel, self.components_, chosen, n)
        self.normalization_ = self._inverse_root(X, chosen)
        self._n_features_out = len(chosen)
        self._measure_errors(X, n)
        return self

    def _choose(self, X: Any, n: int) -> Vector:
        """The indices of n_components landmarks."""
        count = int(self.n_components)
        if count > n:
            warn_user(
                "n_components > n_samples. This is not possible.\n"
                "n_components was set to n_samples, which results in inefficient evaluation of the full kernel.",
                UserWarning,
            )
            count = n
        random = check_random_state(self.random_state)
        if self.selection == "uniform":
            return np.asarray(random.permutation(n)[:count])  # needs no kernel values
        gram = GramOperator(self._kernel, self._kernel.prepare(X), thread_count(self.n_jobs))
        chosen = choose_landmarks(gram, count, self.selection, random)
        return chosen if len(chosen) else np.arange(1)  # the kernel is 0: any landmark will do

    def _inverse_root(self, X: Any, chosen: Vector) -> Matrix:
        """Kₘₘ^(-½), without eigenvalues that are rounding."""
        inside = self._kernel.prepare(X).take(chosen) if is_pairwise(self._kernel) else None
        a = self._landmarks.features(np.float64) if inside is None else inside
        K = self._kernel.block(a, self._landmarks.features(np.float64))
        if not np.all(np.isfinite(K)):
            raise InvalidInputError(
                f"{self._kernel!r} has values that are NaN or infinite: scale the features, for example with "
                "StandardScaler."
            )
        values, vectors = np.linalg.eigh(0.5 * (K + K.T))
        largest = float(np.abs(values).max())
        if values[0] < -1e-7 * largest:
            raise NotPositiveSemidefiniteError(float(values[0]), float(values[-1]))
        kept = values > RANK * largest
        root: Matrix = (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
        return root

    def _measure_errors(self, X: Any, n: int) -> None:
        """Set error_ and largest_error_ from the training samples or a random subset."""
        part = np.arange(n) if n <= EXAMINED else np.sort(np.random.default_rng(0).choice(n, EXAMINED, replace=False))
        samples = X if n <= EXAMINED or is_pairwise(self._kernel) else take_samples(X, part)
        features = self._kernel.prepare(samples)
        if is_pairwise(self._kernel):
            features = features.take(part)
        diagonal = self._kernel.diagonal(features)
        phi = product(
            self._kernel, features, self._landmarks.features(np.float64), self.normalization_.T,
            thread_count(self.n_jobs),
        )  # fmt: skip
        lost: Vector = np.maximum(diagonal - np.einsum("ij,ij->i", phi, phi), 0.0)
        total = float(diagonal.sum())
        self.error_ = float(lost.sum()) / total if total > 0 else 0.0
        self.largest_error_ = float(lost.max())

    def transform(self, X: Any) -> Matrix:
        """Compute φ of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples_fit)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        X_transformed : ndarray of shape (n_samples, n_components)
            One row per sample, in the precision of X.
        """
        check_is_fitted(self)
        X, _ = validate_samples(self, X, None, reset=False, domain=domain_of_ridge(self.kernel))
        features = self._kernel.prepare(X)
        landmarks = self._landmarks.features(np.float64)
        phi = product(self._kernel, features, landmarks, self.normalization_.T, thread_count(self.n_jobs))
        return phi.astype(np.float32) if getattr(X, "dtype", None) == np.float32 else phi
