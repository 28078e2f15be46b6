"""Decide whether a hyperplane separates two classes, with a proof either way; [SSBD] 15.1.

For every β that is ≥ 0 on the positive class, ≤ 0 on the negative one, with Σ|β| = 2 (and Σβ = 0 if there is a bias),
every hyperplane with |w| = 1 and every b satisfy

    smallest geometric margin  ≤  ½ |Σ βᵢ φ(xᵢ)|

because the right side is at least half the sum of |βᵢ| times the margins. So a hyperplane bounds the largest margin
from below and β bounds it from above; at the optimum both bounds are equal. If they are 0, the β with Σ βᵢ φ(xᵢ) = 0
proves that the convex hulls of the classes meet. Without a bias it proves that the origin is in the hull of one class
and the negatives of the other (Gordan's theorem).

Only this module decides whether classes are separable. Solvers and algorithms (`mercer.svm.hard_margins.margin`) give
candidates, a hyperplane or weights β, each of which is verified on the given samples in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._compiled.blas import one_blas_thread
from mercer.gram.operator import Data, product
from mercer.kernels import Linear
from mercer.kernels.features import Vector
from mercer.svm.hard_margins.margin import EPS, Candidate, largest_margin, matrix_features, row_coefficients
from mercer.svm.plan import FINITE_NUMBERS_UP_TO, FINITE_UP_TO

# weights prove that hulls meet if each Σᵢ βᵢ xᵢⱼ is rounding: below this share of the largest |xᵢⱼ| of its column
COLUMN_ROUNDING = 1e-12
# the same for a kernel: β'Kβ relative to the largest kernel value
KERNEL_ROUNDING = 1e-13
# the search ends at a margin of this share of its bound, or at weights with this residual relative to the radius
CLOSE, CERTAIN = 0.99, 1e-12


@dataclass(frozen=True, eq=False)
class Separation:
    """Whether one hyperplane can separate two classes, with its proof.

    Attributes
    ----------
    intercept : whether the hyperplane may be anywhere; if not, it passes through the origin.
    separable : whether a hyperplane with every sample strictly on its side was found.
    decided : whether the proof holds. If not, rounding hides the answer, and ``separable`` is False.
    margin : the smallest geometric margin of the hyperplane found; 0 if none was.
    margin_bound : ½|Σ βᵢ φ(xᵢ)|: no hyperplane has a larger margin.
    rho : the largest |φ(x)|.
    coef, bias : the hyperplane Σ coefᵢ k(xᵢ, ·) + bias, scaled to |w| = 1; zero if there is none.
    normal : w itself, if the kernel is linear and there is a hyperplane; else None.
    weights : β, which proves ``margin_bound``. For inseparable classes it gives a common point of the hulls.
    """

    intercept: bool
    separable: bool
    decided: bool
    margin: float
    margin_bound: float
    rho: float
    coef: Vector
    bias: float
    normal: Vector | None
    weights: Vector

    @property
    def residual(self) -> float:
        """|Σ βᵢ φ(xᵢ)|: the distance of the two weighted means of the classes."""
        return 2.0 * self.margin_bound

    @property
    def complete(self) -> bool:
        """Whether the search can end: the margin is nearly the largest, or the hulls are proven to meet."""
        return self.margin >= CLOSE * self.margin_bound or (self.decided and self.residual <= CERTAIN * self.rho)

    def scaled(self, unit: float) -> Separation:
        """The separation of samples multiplied by ``unit``, with a linear kernel."""
        return replace(
            self,
            margin=unit * self.margin,
            margin_bound=unit * self.margin_bound,
            rho=unit * self.rho,
            coef=self.coef / unit,
            bias=unit * self.bias,
        )

    def placed(self, rows: Vector, n: int) -> Separation:
        """The separation with coefficients and weights of n samples, of which these are ``rows``."""
        coef, weights = np.zeros(n), np.zeros(n)
        coef[rows], weights[rows] = self.coef, self.weights
        return replace(self, coef=coef, weights=weights)

    def better(self, other: Separation) -> Separation:
        """Combine two separations: the hyperplane with the larger margin, the weights with the smaller bound."""
        hyperplane = self if self.margin >= other.margin else other
        proof = self if self.margin_bound <= other.margin_bound else other
        proof = other if other.decided and not self.decided and not hyperplane.separable else proof
        return replace(
            hyperplane,
            decided=hyperplane.separable or proof.decided,
            margin_bound=max(proof.margin_bound, hyperplane.margin),
            weights=proof.weights,
        )

    def __str__(self) -> str:
        kind = "with a bias" if self.intercept else "through the origin"
        if self.separable:
            proof = f"margin between {self.margin:.6g} and {self.margin_bound:.6g}, radius {self.rho:.4g}"
            return f"{kind:<19} separable, {proof}"
        used = int(np.count_nonzero(self.weights))
        combine = "1 sample combines" if used == 1 else f"{used} samples combine"
        met = "one point of both convex hulls" if self.intercept else "the origin, one class mirrored"
        proof = f"{combine} to {met}, to within {f'{self.residual:.1e}' if self.residual else 0}"
        verdict = "NOT separable" if self.decided else "UNDECIDED, rounding hides the answer"
        return f"{kind:<19} {verdict}: {proof} (radius {self.rho:.4g})"


def is_small(shape: tuple[int, ...]) -> bool:
    """Whether the finite algorithm takes seconds at most, for features of shape (n, d) or a kernel on (n,) samples."""
    return min(shape) <= FINITE_UP_TO and (len(shape) == 1 or math.prod(shape) <= FINITE_NUMBERS_UP_TO)


class TwoClasses:
    """Samples of two classes with labels ±1, in feature space: rows X, or a kernel on ``data``."""

    def __init__(self, y: Vector, X: Any = None, data: Data | None = None) -> None:
        self.y, self.X, self.data = y, X, data
        if X is not None:
            self.X = X.astype(np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
            squares = self.X.multiply(self.X) if sp.issparse(self.X) else self.X**2
            self.lengths = np.sqrt(np.asarray(squares.sum(axis=1))).ravel()
            largest = abs(self.X).max(axis=0)
            self.largest = largest.toarray().ravel() if sp.issparse(largest) else largest
        else:
            assert data is not None
            self.features = data.exact(np.arange(len(y)))
            self.lengths = np.sqrt(np.maximum(data.kernel.diagonal(self.features), 0.0))
        self.rho = float(self.lengths.max())

    @classmethod
    def of(cls, data: Data, y: Vector) -> TwoClasses:
        """The two classes of these data: by their features if the kernel is linear, else by the kernel."""
        return cls(y, X=data.own_samples()) if isinstance(data.kernel, Linear) else cls(y, data=data)

    @property
    def dimensions(self) -> int:
        """An upper bound of the dimension of the space that the samples span."""
        return len(self.y) if self.X is None else min(self.X.shape)

    @property
    def is_small(self) -> bool:
        """Whether `finite` takes seconds at most."""
        return is_small((len(self.y),) if self.X is None else self.X.shape)

    def decide(self, candidates: Iterable[Candidate], intercept: bool) -> Separation:
        """Verify candidates until the separation is complete, and combine what they prove."""
        best: Separation | None = None
        for candidate in candidates:
            verified = self.verify(candidate, intercept)
            best = verified if best is None else best.better(verified)
            if best.complete:
                break
        assert best is not None
        return best

    def finite(self, intercept: bool) -> Iterable[Candidate]:
        """The candidates of the finite algorithm of `mercer.svm.hard_margins.margin`."""
        if self.X is not None:
            yield from largest_margin(self.X, self.y, intercept)
            return
        assert self.data is not None
        L = matrix_features(self.data.matrix(np.float64, 1))
        for candidate in largest_margin(L, self.y, intercept):
            normal, coef = candidate.normal, candidate.coef
            if coef is None and normal is not None:
                coef = row_coefficients(L, normal)
            yield candidate._replace(normal=None, coef=coef)

    def verify(self, candidate: Candidate, intercept: bool) -> Separation:
        """The separation that a candidate proves, recomputed from the samples in float64."""
        weights, residual, meets = self._combination(candidate.weights, intercept)
        margin, coef, normal, bias = self._hyperplane(candidate, intercept)
        separable = margin > 0
        return Separation(
            intercept=intercept,
            separable=separable,
            decided=separable or meets,
            margin=margin if separable else 0.0,
            margin_bound=max(0.5 * residual, margin),
            rho=self.rho,
            coef=coef if separable and coef is not None else np.zeros(len(self.y)),
            bias=bias if separable else 0.0,
            normal=normal if separable else None,
            weights=weights,
        )

    def _combination(self, weights: Vector | None, intercept: bool) -> tuple[Vector, float, bool]:
        """β with the right signs and sums, |Σ βᵢ φ(xᵢ)|, and whether that is 0 to within rounding."""
        alpha = np.zeros(len(self.y)) if weights is None else np.maximum(np.nan_to_num(self.y * weights), 0.0)
        positive = self.y > 0
        for part in (positive, ~positive) if intercept else (np.ones(len(self.y), np.bool_),):
            total = float(alpha[part].sum())
            share = 1.0 if intercept else 2.0
            # any weights give a bound: equal ones the distance of the class means
            alpha[part] = share * (alpha[part] / total) if total > 0 else share / part.sum()
        beta = self.y * alpha
        if self.X is not None:
            rest = np.asarray(beta @ self.X)
            return beta, float(np.linalg.norm(rest)), bool(np.all(np.abs(rest) <= COLUMN_ROUNDING * self.largest))
        square = max(0.0, float(beta @ self._product(beta)))
        return beta, float(np.sqrt(square)), square <= KERNEL_ROUNDING * self.rho**2

    def _hyperplane(self, candidate: Candidate, intercept: bool) -> tuple[float, Vector | None, Vector | None, float]:
        """(smallest geometric margin minus its rounding error, coef, w, b), scaled to |w| = 1."""
        coef, normal = candidate.coef, candidate.normal
        if normal is None and coef is not None and self.X is not None:
            normal = np.asarray(coef @ self.X)
        if normal is not None:
            norm = float(np.linalg.norm(normal))
            F = np.asarray(self.X @ normal)
            rounding = EPS * np.asarray(abs(self.X) @ np.abs(normal))
            rounding *= 4 + np.sqrt(self.X.shape[1])
        elif coef is not None:
            F = self._product(coef)
            norm = float(np.sqrt(max(0.0, coef @ F)))
            rounding = 8 * EPS * self.lengths * float(np.abs(coef) @ self.lengths)
        else:
            return -np.inf, None, None, 0.0
        if not 0 < norm < np.inf:
            return -np.inf, None, None, 0.0
        b = 0.0
        if intercept:
            positive = self.y > 0
            b = -0.5 * float(F[positive].min() + F[~positive].max())
        margin = float(np.min(self.y * (F + b) - rounding - EPS * abs(b))) / norm
        if normal is not None and coef is None:
            with one_blas_thread():
                coef = row_coefficients(self.X, normal)
        return margin, None if coef is None else coef / norm, None if normal is None else normal / norm, b / norm

    def _product(self, beta: Vector) -> Vector:
        """Kβ."""
        assert self.data is not None
        carries = np.flatnonzero(beta)
        return product(self.data.kernel, self.features, self.features.take(carries), beta[carries], 1)
