"""``feature_importances_`` of kernel machines: mean |∂f/∂xⱼ| · std(xⱼ) over the support vectors, as shares of 1.

The criterion of Guyon et al. (Machine Learning 46, 2002), the change of |w|² when a feature is left out, was measured
to choose irrelevant features for Gaussian kernels: leaving a feature out may raise or lower |w|², so the change of a
relevant feature can be 0 (docs/design/decisions/035). For a linear kernel and features of the same scale both give the
order of |wⱼ|.
"""

from __future__ import annotations

import operator
import threading
from abc import abstractmethod
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer.exceptions import MercerError
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector, as_matrix

NAME = "feature_importances_"
# kernel values, and derivatives of a feature, that are computed at a time
VALUES = 2_000_000
# per thread: whether the names of an estimator are being listed
_listing = threading.local()


# a kernel, points, and their coefficients
Expansion = tuple[Kernel, Any, Matrix]


class ImportancesMixin:
    """For estimators whose decision functions are f(x) + b with f = Σ βᵢ k(xᵢ, ·)."""

    @abstractmethod
    def _expansion(self) -> Expansion:
        """The kernel, the points, and their coefficients: a vector for one function, else a row for each."""

    @property
    def feature_importances_(self) -> Vector:
        """Importance of each feature: mean |∂f/∂xⱼ| · std(xⱼ) over the support vectors, as shares of 1.

        How much the decision function changes with feature j, in units of the spread of the feature; with several
        decision functions, their sum. It is computed at the first access, in O(n² d) for n support vectors. For a
        Gaussian process these are the importances of its mean (for a classifier, of the latent mean) over all training
        samples, or over its inducing points. ``sklearn.feature_selection.RFE`` and ``SelectFromModel`` use it, and
        ``coef_`` instead if the kernel is linear. Only for kernels on vectors that have derivatives. For single rows
        use ``mercer.explain``.
        """
        if getattr(_listing, "active", False):
            raise AttributeError("feature_importances_ is not computed for a list of names")
        try:
            check_is_fitted(self)
        except NotFittedError:
            raise AttributeError("feature_importances_ is available after fit") from None
        expansions = self._expansions()
        kernels, digest = [kernel for kernel, _, _ in expansions], joblib.hash([part[1:] for part in expansions])
        known = self.__dict__.get("_importances_of")
        if known is None or known[1] != digest or not all(map(operator.is_, known[0], kernels)):
            try:
                total = sum(_importances(kernel, points, np.atleast_2d(coef)) for kernel, points, coef in expansions)
            except MercerError as error:
                raise AttributeError(f"feature_importances_ needs derivatives of the kernel. {error}") from None
            values = np.asarray(total)
            values = values / values.sum() if values.sum() > 0 else np.zeros(len(values))
            # a digest, not the points: an update may remove them from the model
            known = self._importances_of = kernels, digest, values
        return known[2].copy()

    def _expansions(self) -> list[Expansion]:
        """The functions by their kernels; one expansion unless each function has a kernel of its own."""
        return [self._expansion()]

    def __dir__(self) -> list[str]:
        """All names but feature_importances_, which would be computed.

        scikit-learn's own list of names evaluates all properties, and its notebook diagram all properties in the list.
        """
        _listing.active = True
        try:
            return [name for name in super().__dir__() if name != NAME]
        finally:
            _listing.active = False


def _importances(kernel: Kernel, points: Any, coef: Matrix) -> Vector:
    """Mean |∂f/∂xⱼ| · std(xⱼ) of all features, added over the functions."""
    if kernel.domain != "vectors":
        raise AttributeError(
            f"feature_importances_ needs a kernel on vectors that has derivatives, but the kernel is {kernel!r}. "
            "mercer.influence tells which training samples matter."
        )
    X = as_matrix(points)
    used = np.flatnonzero(np.any(coef != 0, axis=0))
    X = X.tocsr()[used] if sp.issparse(X) else np.asarray(X, dtype=np.float64)[used]
    coef = coef[:, used]
    n, d = X.shape
    if n == 1:
        raise AttributeError(
            "feature_importances_ needs the spread of the features, but the model keeps a single vector. Use coef_ of "
            "a linear kernel, or mercer.explain."
        )
    total, step = np.zeros(d), max(1, VALUES // max(n, d, 1))
    for start in range(0, n, step):
        rows = X[start : start + step]
        for beta in coef:
            slopes = kernel.sample_gradients(rows, X, np.broadcast_to(beta, (rows.shape[0], n)))
            total += np.abs(slopes).sum(axis=0)
    return total * _spread(X) / max(1, n)


def _spread(X: Any) -> Vector:
    """The standard deviation of each feature."""
    if X.shape[0] == 0:
        return np.zeros(X.shape[1])
    if not sp.issparse(X):
        return np.asarray(X.std(axis=0))
    mean, squares = (np.asarray(M.mean(axis=0)).ravel() for M in (X, X.multiply(X)))
    return np.sqrt(np.maximum(squares - mean**2, 0.0))
