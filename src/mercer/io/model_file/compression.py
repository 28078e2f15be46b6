"""Approximate a model by one with fewer support vectors, with a bound on the change of every decision value.

f = Σ βᵢ φ(xᵢ) is replaced by its projection g on the span of some of the φ(xᵢ). By the Cauchy-Schwarz inequality

    |f(x) - g(x)| = |⟨f - g, φ(x)⟩| ≤ |f - g| √k(x, x)

for every x, and |f - g|² = δ'Kδ with δ = β - γ is computed, not estimated. Orthogonal matching pursuit chooses the
samples: each step adds the sample that reduces the residual most, and a column to a Cholesky factor.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import singledispatch
from itertools import combinations, pairwise
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.base import KernelMachine, class_ends
from mercer.estimators.kernel_ridge import BaseRidge, TrainingSamples
from mercer.estimators.prediction import Expansion, SupportVectors, class_layout, pair_coefficients
from mercer.estimators.svc import BaseSVC
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import product
from mercer.io.formats.from_parts import mark_uncertified
from mercer.kernels import Constant, Cosine, Kernel, Normalized, On, Power, Product, Scaled, Sum, White
from mercer.kernels.features import Features, Matrix, Vector, take_samples
from mercer.kernels.learnable import Transparent
from mercer.kernels.radial import RadialKernel
from mercer.validation import thread_count

COMPRESSED = "support vectors were removed: mercer.certify(model, X, y) computes the distance from the optimum"
# a sample depends on the span if its squared distance to it is at most this share of k(x, x)
DEPENDENT = 1e-10
# a bound on the rounding error of δ'Kδ, relative to (Σ |δᵢ| √kᵢᵢ)²
ROUNDING = 64 * float(np.finfo(np.float64).eps)
# the search stops slightly below the allowed distance
MARGIN = 0.98
ATTEMPTS = 4


@dataclass(frozen=True)
class Compression:
    """The result of `compress`.

    Attributes
    ----------
    before, after : the numbers of support vectors.
    distances : |f - g| in feature space, for each problem (pair of classes, or target).
    radius : ``bound`` holds for all x with √k(x, x) ≤ radius; for kernels with bounded k(x, x) these are all x.
    bound : no decision value has changed by more than this.
    """

    before: int
    after: int
    distances: tuple[float, ...]
    radius: float
    bound: float

    def __str__(self) -> str:
        return (
            f"{self.after} of {self.before} support vectors; no decision value has changed by more than "
            f"{self.bound:.2e} where k(x, x) is at most {self.radius**2:.4g}"
        )


def compress(model: Any, *, max_error: float, radius: float | None = None) -> Any:
    """Return a copy of a model with fewer support vectors, whose decision values change by at most ``max_error``.

    Parameters
    ----------
    model : fitted estimator with a kernel
        With support vectors (SVC, NuSVC, SVR, NuSVR, OneClassSVM, …) or a KernelRidge. The kernel must be positive
        semidefinite.
    max_error : float
        The largest allowed change of a decision value; with more than two classes, of the value of each pair.
    radius : float, default=None
        The bound holds for samples with √k(x, x) ≤ radius. None: the maximum of √k(x, x) over all x for kernels with
        bounded k(x, x), such as Gaussian, and over the support vectors for other kernels. For any other sample the
        change is at most ``compression_.distances[i] * sqrt(k(x, x))``.

    Returns
    -------
    compressed : estimator
        With ``compression_``: numbers of support vectors before and after, and the bound. Its certificate is unknown,
        because it is no longer the optimum of its problem.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = mercer.SVR(epsilon=0.0).fit(X, np.sin(X[:, 0]))
    >>> small = mercer.compress(model, max_error=0.01)
    >>> small.compression_.before > 150, small.compression_.after < 20, small.compression_.bound <= 0.01
    (True, True, True)
    >>> bool(np.abs(small.predict(X) - model.predict(X)).max() <= 0.01)
    True
    """
    check_is_fitted(model)
    if not isinstance(max_error, Real) or not 0 < max_error < np.inf:
        raise InvalidInputError(f"max_error={max_error!r} was given: it must be a positive number.")
    kernel, vectors, coef, members = _parts(model)
    threads = thread_count(model.n_jobs)
    features = kernel.prepare(vectors, np.float64)
    root = np.sqrt(np.maximum(kernel.diagonal(features), 0.0))
    reach = _radius(kernel, root, radius)
    allowed = max_error / reach if reach > 0 else np.inf
    found = _Reduction(kernel, features, root, coef, members, threads).run(allowed)
    used = np.flatnonzero(found.any(axis=0))
    if len(used) == np.count_nonzero(coef.any(axis=0)):
        found = coef  # no support vector was removed: keep the exact coefficients
    distances = tuple(_distance(kernel, features, root, d, threads) for d in coef - found)
    record = Compression(coef.shape[1], len(used), distances, reach, reach * max(distances, default=0.0))
    return _published(model, kernel, take_samples(vectors, used), found[:, used], used, record)


def _parts(model: Any) -> tuple[Kernel, Any, Matrix, list[Vector]]:
    """Return the kernel, the samples, a row of coefficients per problem, and the samples each problem may use."""
    known = isinstance(model, BaseRidge) or (isinstance(model, KernelMachine) and hasattr(model, "_support"))
    if not known:
        raise InvalidInputError(
            f"{type(model).__name__} has no support vectors to compress: pass a fitted machine with a kernel."
        )
    kernel: Kernel = model._kernel
    if kernel.domain == "matrix":
        raise InvalidInputError(
            "A model with a precomputed kernel or a kernel function cannot be compressed: the kernel values between "
            "support vectors are not known. Fit it with a kernel object."
        )
    if not kernel.positive_semidefinite:
        raise InvalidInputError(
            f"{kernel!r} is not positive semidefinite, so the change of decision values cannot be bounded. Use a "
            "positive semidefinite kernel."
        )
    if isinstance(model, BaseRidge):
        coef = np.array(np.atleast_2d(model.dual_coef_.T), dtype=np.float64)
        return kernel, model.X_fit_, coef, [np.arange(coef.shape[1])] * len(coef)
    coef = model._dual_coef_.toarray() if sp.issparse(model._dual_coef_) else np.array(model._dual_coef_)
    every = np.arange(coef.shape[1])
    if not isinstance(model, BaseSVC) or isinstance(model._support, Expansion):
        return kernel, model.support_vectors_, coef, [every] * len(coef)
    ends = model._support.ends
    classes = [np.arange(a, b) for a, b in pairwise(ends)]
    members = [np.concatenate(pair) for pair in combinations(classes, 2)]
    return kernel, model.support_vectors_, pair_coefficients(coef, ends), members


class _Reduction:
    """Searches one set of samples that serves all problems."""

    def __init__(
        self, kernel: Kernel, features: Features, root: Vector, coef: Matrix, members: list[Vector], threads: int
    ) -> None:
        self.kernel, self.features, self.root, self.threads = kernel, features, root, threads
        self.coef, self.members = coef, members

    def run(self, allowed: float) -> Matrix:
        """Return new coefficients of all problems, each within the allowed distance of the original function."""
        chosen = np.zeros(len(self.root), dtype=bool)
        found, known = np.zeros_like(self.coef), np.zeros(len(self.coef), dtype=np.intp)
        # in the second pass every problem uses the samples that all problems have chosen
        for p in [*range(len(self.coef)), *range(len(self.coef))]:
            inside = self.members[p]
            if known[p] == 0 or known[p] < 1 + np.count_nonzero(chosen[inside]):
                found[p] = self._grow(p, chosen, allowed)
                known[p] = 1 + np.count_nonzero(chosen[inside])
        return found

    def _grow(self, p: int, chosen: Vector, allowed: float) -> Vector:
        """Add samples until the projection is close enough; return its coefficients. Edits ``chosen``."""
        inside, beta = self.members[p], self.coef[p]
        target = MARGIN * allowed
        for _ in range(ATTEMPTS):
            projection = self._project(inside, beta[inside], chosen, target)
            gamma = np.zeros(len(beta))
            gamma[inside] = projection
            missed = _distance(self.kernel, self.features, self.root, beta - gamma, self.threads)
            if missed <= allowed:
                return gamma
            target *= 0.3  # rounding made the running residual too small: aim lower
        chosen[inside[beta[inside] != 0]] = True
        return beta

    def _project(self, inside: Vector, beta: Vector, chosen: Vector, target: float) -> Vector:
        """Project on the chosen samples and add samples until |residual| ≤ target. Return the coefficients."""
        features = self.features if len(inside) == len(self.root) else self.features.take(inside)
        squares = self.root[inside] ** 2
        rest = product(self.kernel, features, features, beta, self.threads)  # ⟨residual, φ(xᵢ)⟩
        left = float(beta @ rest)
        order: list[int] = []
        heights = squares.copy()  # squared distances to the span
        G = np.empty((len(inside), 16))
        parts: list[float] = []
        waiting = list(np.flatnonzero(chosen[inside]))
        gain = np.zeros(len(inside))
        while waiting or left > target**2:
            if waiting:
                j = int(waiting.pop())
            else:
                free = heights > DEPENDENT * squares
                np.divide(rest**2, heights, out=gain, where=free)
                gain[~free] = 0.0
                j = int(np.argmax(gain))
                if gain[j] <= 0:
                    break
            if heights[j] <= DEPENDENT * squares[j]:
                continue
            s = len(order)
            if s == G.shape[1]:
                G = np.hstack([G, np.empty_like(G)])
            column = self.kernel.block(features, features.take(np.array([j])))[:, 0].astype(np.float64)
            column -= G[:, :s] @ G[j, :s]
            column /= np.sqrt(heights[j])
            G[:, s] = column
            part = float(rest[j] / np.sqrt(heights[j]))
            rest -= part * column
            heights -= column**2
            heights[j] = 0.0
            left -= part**2
            parts.append(part)
            order.append(j)
        gamma = np.zeros(len(inside))
        if order:
            gamma[order] = solve_triangular(G[order, : len(order)].T, np.array(parts), lower=False)
        chosen[inside[order]] = True
        return gamma


def _distance(kernel: Kernel, features: Features, root: Vector, delta: Vector, threads: int) -> float:
    """√(δ'Kδ) plus a bound on its rounding error."""
    used = np.flatnonzero(delta)
    if len(used) == 0:
        return 0.0
    part, values = features.take(used), delta[used]
    square = float(values @ product(kernel, part, part, values, threads))
    return float(np.sqrt(max(0.0, square) + ROUNDING * float(np.abs(values) @ root[used]) ** 2))


def _radius(kernel: Kernel, root: Vector, radius: float | None) -> float:
    if radius is not None:
        if not isinstance(radius, Real) or not 0 < radius < np.inf:
            raise InvalidInputError(f"radius={radius!r} was given: it must be a positive number.")
        return float(radius)
    largest = largest_square(kernel)
    return float(root.max(initial=0.0)) if largest is None else float(np.sqrt(largest))


@singledispatch
def largest_square(kernel: Kernel) -> float | None:
    """Return the maximum of k(x, x) over all x; None if it is unbounded or unknown."""
    return largest_square(kernel.expression()) if hasattr(kernel, "expression") else None


@largest_square.register(RadialKernel)
@largest_square.register(Normalized)
@largest_square.register(Cosine)
def _(kernel: Kernel) -> float | None:
    return 1.0


@largest_square.register
def _(kernel: Constant) -> float | None:
    return kernel.value


@largest_square.register
def _(kernel: White) -> float | None:
    return kernel.noise


@largest_square.register(Transparent)
@largest_square.register(On)
def _(kernel: Any) -> float | None:
    return largest_square(kernel.kernel)


@largest_square.register
def _(kernel: Scaled) -> float | None:
    inner = largest_square(kernel.kernel)
    return None if inner is None or kernel.factor < 0 else kernel.factor * inner


@largest_square.register
def _(kernel: Power) -> float | None:
    inner = largest_square(kernel.kernel)
    return None if inner is None else inner**kernel.exponent


@largest_square.register(Sum)
@largest_square.register(Product)
def _(kernel: Any) -> float | None:
    left, right = largest_square(kernel.left), largest_square(kernel.right)
    if left is None or right is None:
        return None
    return left + right if isinstance(kernel, Sum) else left * right


def _published(model: Any, kernel: Kernel, vectors: Any, coef: Matrix, used: Vector, record: Compression) -> Any:
    """Return a copy of the model with these support vectors."""
    small = copy(model)
    small.compression_ = record
    if isinstance(model, BaseRidge):
        small.dual_coef_ = coef[0].copy() if model.dual_coef_.ndim == 1 else np.ascontiguousarray(coef.T)
        small.X_fit_, small._training = vectors, TrainingSamples(kernel, vectors)
    else:
        n_support = np.diff(np.searchsorted(used, model._support.ends)).astype(np.int32)
        small.support_, small.support_vectors_, small._n_support = model.support_[used], vectors, n_support
        ends = np.concatenate([[0], np.cumsum(n_support)])
        several = isinstance(model, BaseSVC) and not isinstance(model._support, Expansion)
        layout = class_layout(coef, ends) if several else coef
        store = type(model._dual_coef_) if sp.issparse(model._dual_coef_) else np.ascontiguousarray
        layout = store(layout)
        small._dual_coef_ = layout
        flipped = several and len(model.classes_) == 2
        small.dual_coef_ = -layout if flipped else layout
        n_train = model._support.n_train
        if isinstance(model._support, Expansion):
            small._support = Expansion.over(kernel, vectors, small.support_, n_train)
        else:
            # the old norms stay upper bounds: |g| ≤ |f| for a projection g of f
            norms = model._support.norms
            small._support = SupportVectors(kernel, vectors, small.support_, class_ends(n_support), n_train, norms)
    if hasattr(model, "certificate_"):
        mark_uncertified(small, len(coef), COMPRESSED)
    return small
