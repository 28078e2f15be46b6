"""Two classes and a hyperplane between them, with a proof that there is one, or that there is none; [SSBD] 15.1.

For every β that is ≥ 0 on the positive class, ≤ 0 on the negative one, with Σ|β| = 2 (and Σβ = 0 if there is a bias),
every hyperplane with |w| = 1 and every b satisfy

    smallest geometric margin  ≤  ½ |Σ βᵢ φ(xᵢ)|

because the right side is at least half the sum of |βᵢ| times the margins. A hyperplane therefore proves from below what
β proves from above, and at the optimum both are the same number, the largest margin. If it is 0, the β with
Σ βᵢ φ(xᵢ) = 0 says that the convex hulls of the classes meet; without a bias, that the origin is in the hull of the
samples of one class and the mirrored ones of the other (Gordan's theorem).

Whether the classes are separable does not depend on the scales of features or samples, the margin does. Samples of few
dimensions are therefore first made as well-conditioned as possible (orthonormal columns, rows of unit length), and
decided there by a finite algorithm (`mercer.solvers.nearest`). The largest margin is left to the hard-margin solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.estimators import SVC
from mercer.gram.operator import product
from mercer.kernels import Linear
from mercer.kernels.features import Matrix, Vector
from mercer.losses import HardMargin
from mercer.solvers.base import Clock
from mercer.solvers.data import Data
from mercer.solvers.margin import EPS, RANK, nearest_separator, orthonormal

# up to this many dimensions the finite algorithm comes first, as it takes tenths of a second
FIRST_UP_TO = 120
# up to this many dimensions, or samples where the kernel gives none, it comes at last, and takes some seconds
LAST_UP_TO = 300
# hulls that are nearer to each other than this, relative to the radius, meet: rounding of kernel values allows no more
MEETING = 1e-6
# so near that nobody need look any more
CERTAIN = 1e-12
# of the solver that looks for the largest margin
MARGIN_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class Separation:
    """Whether one hyperplane can separate two classes, with its proof.

    Attributes
    ----------
    intercept : whether the hyperplane may be anywhere; if not, it passes through the origin.
    separable : whether there is one with every sample strictly on its side.
    decided : whether the proof holds. If not, rounding hides the answer, and ``separable`` is False.
    margin : the smallest geometric margin of the hyperplane that was found; 0 if none was.
    margin_bound : ½|Σ βᵢ φ(xᵢ)|: no hyperplane has a larger margin.
    rho : the largest |φ(x)|.
    coef, bias : the hyperplane Σ coefᵢ k(xᵢ, ·) + bias, scaled to |w| = 1, a coefficient for each sample in X; zero
        if there is none.
    normal : w itself, where the kernel is linear and there is a hyperplane; else None.
    weights : β, a weight for each sample in X: the proof from above, which for classes that are not separable combines
        them to a common point.
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
        """|Σ βᵢ φ(xᵢ)|: how far the two combinations of samples are from being one point."""
        return 2.0 * self.margin_bound

    def scaled(self, unit: float) -> Separation:
        """The same for samples that are ``unit`` times as long, with a linear kernel."""
        return replace(
            self,
            margin=unit * self.margin,
            margin_bound=unit * self.margin_bound,
            rho=unit * self.rho,
            coef=self.coef / unit,
            bias=unit * self.bias,
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


class _Candidate:
    """A hyperplane w = Σ coefᵢ φ(xᵢ) (or w itself), b, and weights β; each may be None."""

    def __init__(
        self, coef: Vector | None = None, normal: Vector | None = None, bias: float = 0.0, weights: Vector | None = None
    ) -> None:
        self.coef, self.normal, self.bias, self.weights = coef, normal, bias, weights


class Pair:
    """Samples of two classes with labels ±1, and everything that is computed of them."""

    def __init__(self, machine: SVC, data: Data, rows: Vector, y: Vector) -> None:
        self.machine = machine
        self.data = data.take(rows)
        self.n_all, self.rows, self.y = data.n, rows, y
        self.features = self.data.exact(np.arange(len(rows)))
        self.lengths = np.sqrt(np.maximum(data.kernel.diagonal(self.features), 0.0))
        self.rho = float(self.lengths.max())
        self.X: Any = None
        if isinstance(data.kernel, Linear):
            self.X = data.samples[rows]
            self.X = self.X.astype(np.float64) if sp.issparse(self.X) else np.asarray(self.X, dtype=np.float64)

    def separation(self, intercept: bool) -> Separation:
        """The best of what the candidates prove."""
        best: Separation | None = None
        for candidate in self._candidates(intercept):
            best = self._better(best, self._verify(candidate, intercept))
            if best.margin >= 0.99 * best.margin_bound or best.residual <= CERTAIN * self.rho:
                break  # there is nothing more to be found
        assert best is not None
        return best

    # ---- where candidates come from ----------------------------------------------------------------------------

    def _candidates(self, intercept: bool) -> Iterator[_Candidate]:
        dimensions = len(self.y) if self.X is None else min(self.X.shape)
        first = self.X is not None and dimensions <= FIRST_UP_TO
        if first:
            yield self._finite(intercept)
        yield self._largest_margin(intercept)
        if not first and dimensions <= LAST_UP_TO:
            yield self._finite(intercept)

    def _largest_margin(self, intercept: bool) -> _Candidate:
        """The solver of the hard margin; where it diverges, β is what grows."""
        self.machine.fit_intercept = intercept
        options = self.machine._options()
        with Clock(self.machine.time_limit) as clock:
            solution = self.machine._run(self.data, HardMargin(), self.y, np.ones(len(self.y)), options, clock, None)
        return _Candidate(coef=solution.beta, weights=solution.beta)

    def _finite(self, intercept: bool) -> _Candidate:
        """Gordan's alternative for the samples in orthonormal coordinates, each divided by its length there.

        With a bias, samples have one more feature of constant value: β then sums to 0 in both cases.
        """
        if self.X is not None:
            U, back = orthonormal(self.X, intercept)
        else:
            K = self.data.matrix(np.float64, 1)
            U, back = _orthonormal_of_matrix(K, self.rho**2 if intercept else 0.0)
        nearest = nearest_separator(U, self.y)
        if nearest is None:
            # a sample at the origin is on no side of it
            smallest = int(np.argmin(np.linalg.norm(U, axis=1)))
            return _Candidate(weights=np.where(np.arange(len(U)) == smallest, self.y, 0.0))
        weights = self.y * nearest.a
        v = back @ nearest.p
        if self.X is None:
            return _Candidate(coef=v, weights=weights)
        d = self.X.shape[1]
        return _Candidate(normal=v[:d], bias=float(v[d]) if intercept else 0.0, weights=weights)

    # ---- what they prove ---------------------------------------------------------------------------------------

    def _verify(self, candidate: _Candidate, intercept: bool) -> Separation:
        """Everything recomputed from the samples in float64."""
        weights, residual = self._combination(candidate.weights, intercept)
        margin, coef, normal, bias = self._hyperplane(candidate, intercept)
        separable = margin > 0
        full_weights, full_coef = np.zeros(self.n_all), np.zeros(self.n_all)
        full_weights[self.rows] = weights
        if separable and coef is not None:
            full_coef[self.rows] = coef
        return Separation(
            intercept=intercept,
            separable=separable,
            decided=separable or residual <= MEETING * self.rho,
            margin=max(margin, 0.0),
            margin_bound=max(0.5 * residual, margin),
            rho=self.rho,
            coef=full_coef,
            bias=bias if separable else 0.0,
            normal=normal if separable else None,
            weights=full_weights,
        )

    def _combination(self, weights: Vector | None, intercept: bool) -> tuple[Vector, float]:
        """β with the right signs and sums, and |Σ βᵢ φ(xᵢ)|."""
        alpha = np.zeros(len(self.y)) if weights is None else np.maximum(self.y * weights, 0.0)
        positive = self.y > 0
        for part in (positive, ~positive) if intercept else (np.ones(len(self.y), np.bool_),):
            total = float(alpha[part].sum())
            share = 1.0 if intercept else 2.0
            # any weights prove something: equal ones the distance of the classes' means
            alpha[part] = share * alpha[part] / total if total > 0 else share / part.sum()
        beta = self.y * alpha
        if self.X is not None:
            return beta, float(np.linalg.norm(beta @ self.X))
        return beta, float(np.sqrt(max(0.0, beta @ self._product(beta))))

    def _hyperplane(self, candidate: _Candidate, intercept: bool) -> tuple[float, Vector | None, Vector | None, float]:
        """(smallest geometric margin less what rounding may have added, coef, w, b), scaled to |w| = 1."""
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
        if normal is not None:
            coef = self._coef_of(normal) if coef is None else coef
        return margin, None if coef is None else coef / norm, None if normal is None else normal / norm, b / norm

    def _coef_of(self, normal: Vector) -> Vector:
        """Coefficients of the samples whose combination is w, which lies in their span ([SSBD] Theorem 16.1)."""
        X = self.X.toarray() if sp.issparse(self.X) else self.X
        scale = np.abs(X).max(axis=0)
        scale[scale == 0] = 1.0
        coef: Vector = np.linalg.lstsq((X / scale).T, normal / scale, rcond=RANK)[0]
        return coef

    def _product(self, beta: Vector) -> Vector:
        """Kβ."""
        carries = np.flatnonzero(beta)
        return product(self.data.kernel, self.features, self.features.take(carries), beta[carries], 1)

    @staticmethod
    def _better(one: Separation | None, other: Separation) -> Separation:
        """The hyperplane of the one with the larger margin, the weights of the one with the smaller bound."""
        if one is None:
            return other
        hyperplane = one if one.margin >= other.margin else other
        proof = one if one.margin_bound <= other.margin_bound else other
        return replace(
            hyperplane,
            decided=hyperplane.separable or proof.decided,
            margin_bound=max(proof.margin_bound, hyperplane.margin),
            weights=proof.weights,
        )


def _orthonormal_of_matrix(K: Matrix, constant: float) -> tuple[Matrix, Matrix]:
    """(U, T): U = (K + constant) T has orthonormal columns that span those of K + constant."""
    values, vectors = np.linalg.eigh(K + constant)
    kept = values > len(K) * EPS * values.max(initial=0.0)
    U = vectors[:, kept]
    return U, U / values[kept]
