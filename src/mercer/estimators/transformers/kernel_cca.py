"""Kernel canonical correlation analysis: directions of two feature spaces whose projections are correlated most."""

from __future__ import annotations

from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, MultiOutputMixin, TransformerMixin
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from mercer._compiled.blas import one_blas_thread
from mercer._sklearn_compat import Interval, fit_context, num_samples
from mercer.estimators.base import keep_parameters
from mercer.estimators.kernel_ridge import TrainingSamples, domain_of_ridge, resolve_pairwise
from mercer.estimators.transformers.training_gram import KERNEL_PARAMETERS, TrainingGram
from mercer.exceptions import InvalidInputError
from mercer.gram.low_rank import pivoted_cholesky
from mercer.gram.operator import GramOperator, check_finite, product
from mercer.gram.products import fits
from mercer.kernels import Kernel
from mercer.kernels.domains import is_objects
from mercer.kernels.features import Features, Matrix, Vector, take_samples
from mercer.kernels.user_defined import PrecomputedFeatures
from mercer.validation import is_pairwise, square_matrix, thread_count

# the factor of a kernel matrix is exact when it loses at most this share of the trace
EXACT = 1e-12
# a diagonal entry of K − LL' below minus this share of the mean one of K is more than rounding
INDEFINITE = 1e-6


class View(NamedTuple):
    """One of two views: K ≈ LL' at the pivots, features L centred, and the trace of K − LL'."""

    kernel: Kernel
    features: Features
    pivots: Vector
    inverse: Matrix
    centred: Matrix
    mean: Vector
    lost: float


class KernelCCA(TrainingGram, ClassNamePrefixFeaturesOutMixin, MultiOutputMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Correlated directions of two views: max_{u, v} u'C_xy v with u'(C_xx + κ_x I)u = v'(C_yy + κ_y I)v = 1.

    C are the covariances of φ_x(x) and φ_y(y), for any two kernels: on vectors, strings, graphs, … (Hardoon, Szedmak &
    Shawe-Taylor, 2004; Bach & Jordan, 2002). Each kernel matrix is factorised, K = LL', by pivoted Cholesky, exactly or
    at landmarks; the problem is then the singular value decomposition of R_x^(-T) C_xy R_y^(-1) with R'R = C + κI.
    There is no duality gap, since nothing convex is minimised; ``residuals_`` has the error of each pair of directions
    in the generalised eigenvalue problem.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs of directions; fewer if a view has fewer dimensions.
    regularization : float or pair of floats, default=0.1
        κ of each view as a fraction of its variance in feature space, tr(HKH)/n. It must be positive: without it every
        correlation of a kernel of full rank is 1. With linear kernels and κ towards 0 it is ordinary CCA.
    kernel_x, kernel_y : str, callable or Kernel, default="rbf"
        The kernels: a name from scikit-learn, "precomputed", an expression, a kernel object, or a function of two
        samples.
    gamma_x, gamma_y : float, "scale" or "auto", default=None
        gamma of the named kernels; None is 1 / n_features.
    degree, coef0 : float, default=3, 1
        Parameters of "poly" and "sigmoid".
    kernel_params : dict, default=None
        Keyword arguments of kernel functions.
    landmarks : int, default=None
        The largest number of columns of each factor. Time and memory then grow linearly with n_samples, and
        ``lost_trace_`` says what is lost.
    random_state : int, RandomState instance or None, default=None
        Without effect; pivots are chosen by their residuals.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores, or one inside a joblib worker.
    cache_size : float or "auto", default="auto"
        Megabytes for the factor of a view; "auto" is 40 % of the available memory.

    Attributes
    ----------
    correlations_ : ndarray of shape (n_components,)
        The regularised correlations, in descending order.
    residuals_ : ndarray of shape (n_components,)
        |(C_xy v − ρ(C_xx + κ_x)u, C_yx u − ρ(C_yy + κ_y)v)|, in float64.
    x_scores_, y_scores_ : ndarray of shape (n_samples, n_components)
        The projections of the training samples.
    lost_trace_ : tuple of two floats
        The fraction of the trace of each kernel matrix that its factor loses.
    X_fit_, Y_fit_ : the samples at the pivots, with which new ones are compared.
    n_features_in_, feature_names_in_ : as in scikit-learn, of X.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelCCA
    >>> t = np.random.default_rng(0).uniform(-3, 3, size=200)
    >>> X, Y = np.c_[t, np.sin(5 * t)], np.c_[t**2]
    >>> model = KernelCCA(n_components=1, regularization=1e-3).fit(X, Y)
    >>> bool(model.score(X, Y) > 0.99)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            name: KERNEL_PARAMETERS[name]
            for name in ("degree", "coef0", "kernel_params", "random_state", "n_jobs", "cache_size")
        },
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "regularization": [Interval(Real, 0, None, closed="neither"), tuple, list],
        "kernel_x": KERNEL_PARAMETERS["kernel"],
        "kernel_y": KERNEL_PARAMETERS["kernel"],
        "gamma_x": KERNEL_PARAMETERS["gamma"],
        "gamma_y": KERNEL_PARAMETERS["gamma"],
        "landmarks": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        regularization: Any = 0.1,
        kernel_x: Any = "rbf",
        kernel_y: Any = "rbf",
        gamma_x: Any = None,
        gamma_y: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        landmarks: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        cache_size: float | str = "auto",
    ) -> None:
        keep_parameters(self, locals())

    @property
    def kernel(self) -> Any:
        """The kernel of X."""
        return self.kernel_x

    @kernel.setter
    def kernel(self, kernel: Any) -> None:
        self.kernel_x = kernel

    @property
    def gamma(self) -> Any:
        """gamma of the kernel of X."""
        return self.gamma_x

    @property
    def _n_features_out(self) -> int:
        return len(self.correlations_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, Y: Any = None) -> KernelCCA:
        """Find the directions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list of object
            Samples of the first view; the kernel matrix for ``kernel_x="precomputed"``.
        y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_targets), or list of object
            Samples of the second view, which ``kernel_y`` compares.
        Y : as y, default=None
            Another name of y.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        y = Y if y is None else y
        if y is None:
            raise InvalidInputError("KernelCCA requires y to be passed, but the target y is None.")
        check_consistent_length(X, y)
        X, gram = self._training_gram(X, y if is_objects(domain_of_ridge(self.kernel_x)) else "no_validation")
        Z, other = self._second_gram(y)
        if gram.n < 2:
            raise InvalidInputError(
                f"Found array with {gram.n} sample(s) while a minimum of 2 is required by KernelCCA."
            )
        with one_blas_thread():
            views = [self._factorise(g, name) for g, name in ((gram, "X"), (other, "Y"))]
            self._solve(views, gram.n)
        self.lost_trace_ = tuple(view.lost for view in views)
        self.X_fit_, self.Y_fit_ = (kept_samples(samples, view) for samples, view in zip((X, Z), views, strict=True))
        self._keep(self.X_fit_, views[0].features)
        self._training_y = TrainingSamples(views[1].kernel, self.Y_fit_)
        second = views[1].features
        self._training_y._features = second.without_matrix() if isinstance(second, PrecomputedFeatures) else second
        return self

    def _second_samples(self, y: Any) -> Any:
        """Validate samples of the second view."""
        domain = domain_of_ridge(self.kernel_y)
        if domain not in ("vectors", "matrix"):
            return y
        found = check_array(
            y, accept_sparse="csr", ensure_2d=False, dtype=[np.float64, np.float32], input_name="y", estimator=self
        )
        return found.reshape(-1, 1) if found.ndim == 1 else found

    def _second_gram(self, y: Any) -> tuple[Any, GramOperator]:
        Z = self._second_samples(y)
        model = SimpleNamespace(
            gamma=self.gamma_y, degree=self.degree, coef0=self.coef0, kernel_params=self.kernel_params
        )
        kernel = resolve_pairwise(self.kernel_y, model)
        if is_pairwise(kernel):
            square_matrix(Z)
        kernel = kernel.bind(Z)
        return Z, GramOperator(kernel, kernel.prepare(Z, np.float64), thread_count(self.n_jobs))

    def _factorise(self, gram: GramOperator, name: str) -> View:
        """K ≈ LL' with at most ``landmarks`` columns, exactly without this limit."""
        n = gram.n
        total = float(gram.diagonal().sum())
        check_finite(total)
        if self.landmarks is None and not fits(n, self.cache_size):
            raise InvalidInputError(
                f"The factor of {name} may take {8 * n * n / 2**30:,.3g} GB for {n:,} samples, more than cache_size "
                "allows. Set landmarks, for example landmarks=500, or raise cache_size."
            )
        rank = n if self.landmarks is None else min(n, int(self.landmarks))
        found = pivoted_cholesky(gram, rank, EXACT * total)
        left = gram.diagonal() - np.einsum("ij,ij->i", found.L, found.L)
        if left.min(initial=0.0) < -INDEFINITE * max(total, 0.0) / n:
            raise InvalidInputError(
                f"The kernel matrix of {name} is not positive semidefinite: a diagonal entry of what its factor "
                f"leaves is {left.min():.3g}. Use another kernel, or mercer.repair_mercer."
            )
        L, pivots = found.L, found.pivots
        if len(pivots) == 0:  # the kernel is 0
            L, pivots = np.zeros((n, 1)), np.zeros(1, np.intp)
            inverse = np.zeros((1, 1))
        else:
            inverse = linalg.solve_triangular(np.tril(L[pivots]), np.eye(len(pivots)), lower=True).T
        mean = L.mean(axis=0)
        features = gram.features.take(pivots)
        lost = found.rest / total if total > 0 else 0.0
        return View(gram.kernel, features, pivots, inverse, L - mean, mean, lost)

    def _kappas(self) -> tuple[float, float]:
        given = self.regularization
        pair: tuple[Any, ...] = (given, given) if isinstance(given, Real) else tuple(given)
        if len(pair) != 2 or not all(isinstance(v, Real) and 0 < float(v) < np.inf for v in pair):
            raise InvalidInputError(
                f"regularization={given!r} was given: it must be a positive number, or two of them, for X and for Y."
            )
        return float(pair[0]), float(pair[1])

    def _solve(self, views: list[View], n: int) -> None:
        """Set correlations, directions and scores."""
        x, y = views
        covariances, roots = [], []
        for view, share in zip(views, self._kappas(), strict=True):
            C = view.centred.T @ view.centred / n
            variance = float(np.trace(C))
            C.flat[:: len(C) + 1] += share * variance if variance > 0 else 1.0
            covariances.append(C)
            try:
                roots.append(linalg.cholesky(C, check_finite=False))
            except linalg.LinAlgError:
                raise InvalidInputError(
                    f"regularization={self.regularization!r} is lost to rounding: the covariance of the features is "
                    "singular without it. Raise it, for example to 1e-10."
                ) from None
        cross = x.centred.T @ y.centred / n
        M = linalg.solve_triangular(roots[0], cross, trans=1)
        M = linalg.solve_triangular(roots[1], M.T, trans=1).T
        U, values, Vt = linalg.svd(M, full_matrices=False)
        count = min(int(self.n_components), len(values))
        u = linalg.solve_triangular(roots[0], U[:, :count])
        v = linalg.solve_triangular(roots[1], Vt[:count].T)
        scores = x.centred @ u
        signs = np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(count)])
        signs[signs == 0] = 1.0
        u, v = u * signs, v * signs
        self.correlations_ = values[:count]
        rest = np.concatenate(
            [cross @ v - covariances[0] @ u * self.correlations_, cross.T @ u - covariances[1] @ v * self.correlations_]
        )
        self.residuals_ = np.linalg.norm(rest, axis=0)
        self.x_scores_, self.y_scores_ = x.centred @ u, y.centred @ v
        self._coef, self._offset = x.inverse @ u, x.mean @ u
        self._coef_y, self._offset_y = y.inverse @ v, y.mean @ v

    def transform(self, X: Any, y: Any = None, Y: Any = None) -> Any:
        """The projections of new samples of one view, or of both.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list of object
            Samples of the first view.
        y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_targets), or list of object, default=None
            Samples of the second view.
        Y : as y, default=None
            Another name of y.

        Returns
        -------
        x_scores : ndarray of shape (n_samples, n_components), or a pair of these if y is given
            The projections.
        """
        X, features = self._new_samples(X)
        scores = self._compared(features, self._coef) - self._offset
        y = Y if y is None else y
        if y is None:
            return scores
        Z = self._second_samples(y)
        training = self._training_y
        other = product(
            training.kernel, training.kernel.prepare(Z, np.float64), training.features(), self._coef_y,
            thread_count(self.n_jobs),
        )  # fmt: skip
        return scores, other - self._offset_y

    def fit_transform(self, X: Any, y: Any = None, Y: Any = None) -> Matrix:
        """Find the directions, and return the projections of X.

        scikit-learn's CCA returns those of both views, and so cannot be a step of a pipeline; here the others are
        ``y_scores_``.

        Parameters
        ----------
        X, y, Y : as in ``fit``.

        Returns
        -------
        x_scores : ndarray of shape (n_samples, n_components)
            The projections of X.
        """
        return self.fit(X, y, Y).x_scores_

    def score(self, X: Any, y: Any = None, Y: Any = None) -> float:
        """The mean correlation of the projections of these samples.

        Parameters
        ----------
        X, y, Y : as in ``fit``.

        Returns
        -------
        score : float
            The mean over the components of the correlation of x_scores and y_scores; 0 for constant ones.
        """
        check_is_fitted(self)
        y = Y if y is None else y
        if y is None or num_samples(X) != num_samples(y):
            raise InvalidInputError("score compares two views: pass X and y with the same number of samples.")
        a, b = (part - part.mean(axis=0) for part in self.transform(X, y))
        lengths = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
        return float(np.mean(np.divide((a * b).sum(axis=0), lengths, out=np.zeros(len(lengths)), where=lengths > 0)))


def kept_samples(samples: Any, view: View) -> Any:
    """The samples at the pivots; the numbers of the pivots for rows of a kernel matrix."""
    return view.pivots if is_pairwise(view.kernel) else take_samples(samples, view.pivots)
