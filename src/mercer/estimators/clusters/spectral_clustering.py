"""Spectral clustering with any kernel as affinity."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_symmetric

from mercer._compiled.blas import one_blas_thread
from mercer._sklearn_compat import Interval, StrOptions, fit_context
from mercer.estimators.base import keep_parameters, warn_user
from mercer.estimators.clusters.graph_cut import (
    embed,
    given_neighbour_graph,
    neighbour_graph,
    pivoted_labels,
    rotated_labels,
)
from mercer.estimators.clusters.lloyd import lloyd, seeds
from mercer.estimators.transformers.training_gram import KERNEL_PARAMETERS, TrainingGram, check_count
from mercer.gram.products import FactorMatrix, StoredMatrix, TiledMatrix, fits
from mercer.kernels.features import Matrix, Vector
from mercer.validation import set_input_tags, square_matrix, thread_count, validate_vectors

# affinities that are graphs of neighbours
NEIGHBOURS = ("nearest_neighbors", "precomputed_nearest_neighbors")
# rounds of Lloyd's iteration on the eigenvectors
ROUNDS = 300
# a difference between W and its transpose up to this share of the largest affinity is rounding
ASYMMETRY = 1e-10
# residuals at which eigenvectors are accurate enough to be partitioned, for eigen_tol="auto"
AUTO_TOL = 1e-7


class SpectralClustering(TrainingGram, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Partition samples by the eigenvectors of L = I − D^(-½) K D^(-½), the normalised Laplacian of their affinities.

    The affinities are kernel values, of any kernel on vectors, strings, graphs, …, or a graph of neighbours. Parameters
    and attributes have the same meaning as in scikit-learn. The normalised cut that is approximated is not convex, so
    there is no duality gap; ``residuals_`` says how accurate the eigenvectors are.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    eigen_solver : {"arpack", "lobpcg", "amg"}, default=None
        Without effect: block Lanczos iteration is used for affinity matrices, on the inverse of L for sparse graphs,
        and LAPACK for few samples.
    n_components : int, default=None
        Number of eigenvectors; None is n_clusters.
    random_state : int, RandomState instance or None, default=None
        Seed of the eigensolver and of the partition.
    n_init : int, default=10
        Number of starts of k-means.
    gamma : float, default=1.0
        Parameter of "rbf", "poly", "sigmoid", "laplacian" and "chi2". "scale" and "auto" are allowed, too.
    affinity : str, callable or Kernel, default="rbf"
        A kernel as in ``KernelPCA`` without negative values; "nearest_neighbors", the graph that joins each sample to
        its neighbours; "precomputed", the matrix itself, dense or sparse, averaged with its transpose (and a warning)
        if it is not symmetric; "precomputed_nearest_neighbors", a sparse matrix of distances.
    n_neighbors : int, default=10
        Number of neighbours, including the sample itself.
    eigen_tol : float or "auto", default="auto"
        The largest residual of the eigenvectors; "auto" is 1e-7.
    assign_labels : {"kmeans", "discretize", "cluster_qr"}, default="kmeans"
        How eigenvectors become clusters: k-means, the best rotation (Yu & Shi, 2003), or pivoted QR (Damle, Minden &
        Ying, 2019), which needs no parameters and no random numbers.
    degree, coef0 : float, default=3, 1
        Parameters of "poly" and "sigmoid".
    kernel_params : dict, default=None
        Keyword arguments of a kernel function.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores, or one inside a joblib worker.
    verbose : bool, default=False
        Without effect; present for compatibility.
    cache_size : float or "auto", default="auto"
        Megabytes for the kernel matrix; "auto" is 40 % of the available memory. A larger matrix is computed again, tile
        by tile, for each product, and ``affinity_matrix_`` is not set.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each sample.
    affinity_matrix_ : {ndarray, sparse matrix} of shape (n_samples, n_samples)
        The affinities.
    eigenvalues_ : ndarray of shape (n_components,)
        The smallest eigenvalues of L. As many are close to 0 as there are well separated clusters.
    residuals_ : ndarray of shape (n_components,)
        |Lv − λv| for unit eigenvectors v, in float64.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from mercer import SpectralClustering
    >>> X, y = make_moons(300, noise=0.05, random_state=0)
    >>> model = SpectralClustering(n_clusters=2, gamma=30.0, random_state=0).fit(X)
    >>> adjusted_rand_score(y, model.labels_)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: KERNEL_PARAMETERS[name] for name in KERNEL_PARAMETERS if name not in ("kernel", "landmarks")},
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "eigen_solver": [StrOptions({"arpack", "lobpcg", "amg"}), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "affinity": KERNEL_PARAMETERS["kernel"],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "eigen_tol": [Interval(Real, 0.0, None, closed="left"), StrOptions({"auto"})],
        "assign_labels": [StrOptions({"kmeans", "discretize", "cluster_qr"})],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        eigen_solver: str | None = None,
        n_components: int | None = None,
        random_state: Any = None,
        n_init: int = 10,
        gamma: Any = 1.0,
        affinity: Any = "rbf",
        n_neighbors: int = 10,
        eigen_tol: float | str = "auto",
        assign_labels: str = "kmeans",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        verbose: Any = False,
        cache_size: float | str = "auto",
    ) -> None:
        keep_parameters(self, locals())

    @property
    def kernel(self) -> Any:
        """The affinity."""
        return self.affinity

    @kernel.setter
    def kernel(self, kernel: Any) -> None:
        self.affinity = kernel

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.affinity, str) and self.affinity in (*NEIGHBOURS, "precomputed"):
            set_input_tags(tags.input_tags, "vectors")
            tags.input_tags.pairwise = self.affinity != "nearest_neighbors"
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> SpectralClustering:
        """Find the clusters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples), or list of object
            Samples; affinities for "precomputed"; distances to neighbours for "precomputed_nearest_neighbors".
        y : ignored

        Returns
        -------
        self : object
            The fitted estimator.
        """
        random = check_random_state(self.random_state)
        self.__dict__.pop("affinity_matrix_", None)
        with one_blas_thread():
            W = self._affinities(X)
            n = W.shape[0] if sp.issparse(W) else W.n
            check_count("n_clusters", int(self.n_clusters), n, "each cluster has a sample")
            tol = AUTO_TOL if self.eigen_tol == "auto" else float(self.eigen_tol)
            found = embed(W, int(self.n_components or self.n_clusters), tol, random)
            self.labels_ = self._partition(found.nodes, random).astype(np.int32)
        self.eigenvalues_, self.residuals_ = found.eigenvalues, found.residuals
        if not found.converged:
            warn_user(
                f"The eigenvectors are not accurate: the largest residual is {found.residuals.max():.3g}, eigen_tol is "
                f"{tol:g}. Raise eigen_tol, or change gamma so that clusters are better separated.",
                ConvergenceWarning,
            )
        return self

    def _affinities(self, X: Any) -> Any:
        """The affinity matrix: sparse, stored, or computed tile by tile. Sets affinity_matrix_ unless in tiles."""
        name = self.affinity if isinstance(self.affinity, str) else None
        if name in (*NEIGHBOURS, "precomputed"):
            X, _ = validate_vectors(self, X, None, reset=True)
            if name != "nearest_neighbors" and X.shape[0] != X.shape[1]:
                square_matrix(np.empty(X.shape))
            check_count(
                "n_neighbors", int(self.n_neighbors) if name != "precomputed" else 1, X.shape[0], "it counts them"
            )
            if name == "precomputed":
                # a graph of neighbours has an edge from i to j without one from j to i
                W = check_symmetric(sp.csr_array(X) if sp.issparse(X) else X, tol=ASYMMETRY * float(abs(X).max()))
            else:
                W = (neighbour_graph if name == "nearest_neighbors" else given_neighbour_graph)(
                    X, int(self.n_neighbors)
                )
            self.affinity_matrix_ = W
            return W if sp.issparse(W) else StoredMatrix(np.asarray(W, np.float64), thread_count(self.n_jobs))
        _, gram = self._training_gram(X)
        if not fits(gram.n, self.cache_size):
            return TiledMatrix(gram)
        self.affinity_matrix_ = gram.dense()
        return StoredMatrix(self.affinity_matrix_, gram.n_threads)

    def _partition(self, nodes: Matrix, random: Any) -> Vector:
        """Labels from the eigenvectors."""
        k = int(self.n_clusters)
        if k == 1:
            return np.zeros(len(nodes), np.intp)
        if self.assign_labels == "cluster_qr":
            return pivoted_labels(nodes)
        if self.assign_labels == "discretize":
            return rotated_labels(nodes, random)
        K, weight = FactorMatrix(nodes / np.abs(nodes).max()), np.ones(len(nodes))
        return lloyd(K, weight, [seeds(K, weight, k, random) for _ in range(int(self.n_init))], k, ROUNDS).labels
