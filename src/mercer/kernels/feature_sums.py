"""Kernels on vectors of the form phi(Σ_k term(x_k, z_k)): blocks in compiled tiles, and derivatives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.polynomial import polynomial

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures, as_matrix

# Codes of compiled code for the term of the sum and for the function phi. They repeat those of
# ``mercer._compiled.tiles`` and ``mercer._compiled.kernel_maps``, so that building a kernel does not import numba; a
# test checks that they are equal.
DOT, SQUARE, L1, MIN, CHI2 = range(5)
IDENTITY, POLYNOMIAL, SERIES, EXPONENTIAL, MATERN12, MATERN32, MATERN52, TANH, RATIONAL = range(9)

# up to this u, moments of squared distances are computed from products: u then has a rounding error of 1e-12
LARGEST_U = 1e4
# number of features of sparse samples that are made dense at a time
COLUMNS_AT_A_TIME = 64

SumFormula = tuple[int, int, list[float] | Vector]


@dataclass(frozen=True)
class SumKernel(Kernel):
    """k(x, z) = phi(sum_k term(x_k, z_k)): one sum over features, one function of it.

    Subclasses choose the term and the function in ``sum_formula``; this class computes the values, for dense and for
    CSR samples.
    """

    nonnegative: ClassVar[bool] = False
    # the argument of phi is proportional to this power of the width parameter
    width_power: ClassVar[float] = 1.0

    @abstractmethod
    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        """(term, map, [needs distances, gamma, constant, degree, coefficients...]) for columns b.

        It depends only on the storage, the number of features and the range of norms, so that all parts of b share it.
        """

    def _sum_formula(self, b: VectorFeatures) -> SumFormula:
        """The formula with its numbers in the dtype of b. It is kept with b, since many rows meet the same columns."""
        kernel, formula = b.known_formula
        if kernel is not self:
            term, code, params = self.sum_formula(b)
            formula = term, code, np.array(params, b.dtype)
            b.known_formula = self, formula
        return formula

    def weights(self) -> Vector | None:
        """Factors by which ``prepare`` multiplies the features; None for none."""
        return None

    def needs_double(self, b: VectorFeatures) -> bool:
        """Whether CSR columns in float32 must be compared in float64 because of cancellation."""
        return False

    @property
    def preparation(self) -> Hashable:
        weights = self.weights()
        return "vectors", None if weights is None else tuple(weights.tolist())

    def check_samples(self, samples: Any) -> None:
        """Raise if a kernel on histograms is given negative features."""
        if not self.nonnegative:
            return
        samples = as_matrix(samples)
        smallest = (samples.data if sp.issparse(samples) else samples).min(initial=0)
        if smallest < 0:
            raise InvalidInputError(
                f"{type(self).__name__} compares histograms: it needs non-negative features, but the smallest value "
                f"is {smallest:g}. Shift or scale the features to be at least 0."
            )

    def prepare(self, samples: Any, dtype: Any = np.float64) -> VectorFeatures:
        """The vectors, with their features multiplied by the weights."""
        samples = as_matrix(samples)
        self.check_samples(samples)
        weights = self.weights()
        if weights is not None:
            if samples.shape[1] != len(weights):
                raise InvalidInputError(
                    f"{self!r} has {len(weights)} widths, but the samples have {samples.shape[1]} features. "
                    "Give one width per feature, or a single number."
                )
            samples = samples.multiply(weights[None, :]).tocsr() if sp.issparse(samples) else samples * weights
        # a CSR matrix that is half full takes more memory and time than the array
        if sp.issparse(samples) and samples.nnz >= 0.5 * samples.shape[0] * samples.shape[1]:
            samples = samples.toarray()
        return VectorFeatures(samples, dtype)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        """K[i, j] = k(a_i, b_j), tile by tile."""
        assert isinstance(a, VectorFeatures) and isinstance(b, VectorFeatures)
        if not (b.sparse and b.dtype != np.float64 and self.needs_double(b)):
            return self._compare(a, b, self._sum_formula(b), out)
        values = self._tiles(a.in_double, b.in_double, self._sum_formula(b.in_double))
        if out is None:
            return values.astype(b.dtype)
        out[...] = values
        return out

    def formula(self, b: Features) -> tuple[int, int, Vector] | None:
        """The formula, for dense samples; None for CSR."""
        if not isinstance(b, VectorFeatures) or b.sparse or type(self).block is not SumKernel.block:
            return None
        return self._sum_formula(b)  # type: ignore[return-value]

    def add_product(self, a: Features, b: Features, weights: Vector, out: Vector, scratch: Matrix) -> None:
        """For CSR samples the block is not stored: each value is added to the product at once."""
        from mercer._compiled.sparse_tiles import add_sparse_product

        assert isinstance(a, VectorFeatures) and isinstance(b, VectorFeatures)
        if not b.sparse or len(a) == 0 or (b.dtype != np.float64 and self.needs_double(b)):
            super().add_product(a, b, weights, out, scratch)
            return
        add_sparse_product(*self._of_csr(a.stored_like(b), b, self._sum_formula(b)), weights, b.d, out)

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        """With k = ψ(u) and u = (width)^power Σ term, each derivative is ψ'(u) times that of u."""
        if not self.hyperparameters():
            return np.empty(0)
        assert isinstance(a, VectorFeatures) and isinstance(b, VectorFeatures)
        a, b = a.in_double, b.in_double
        u, change = self._changes(a, b, weights)
        return self._derivatives(a, b, u, change)

    def value_and_gradient_products(self, a: Features, b: Features, weights: Matrix) -> tuple[float, Vector]:
        assert isinstance(a, VectorFeatures) and isinstance(b, VectorFeatures)
        if self.sum_formula(b.in_double)[1] != EXPONENTIAL or not self.hyperparameters():
            return super().value_and_gradient_products(a, b, weights)
        # the derivative of exp(-u) is -exp(-u)
        a, b = a.in_double, b.in_double
        u, change = self._changes(a, b, weights)
        return -float(change.sum()), self._derivatives(a, b, u, change)

    def _derivatives(self, a: VectorFeatures, b: VectorFeatures, u: Matrix | None, change: Matrix) -> Vector:
        return np.concatenate([self._derivative(name, a, b, u, change) for name in self.learnable])

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        """With k = ψ(u) and u a multiple of Σ term: ψ'(u) times the derivative of each feature's term."""
        a, b = self.prepare(X), self.prepare(Z)
        a = a.stored_like(b)
        term, _, params = self.sum_formula(b)
        _, change = self._changes(a, b, np.ascontiguousarray(weights, dtype=np.float64))
        change *= self._sum_factor(b)
        return self._before_preparation(X, a, term_gradients(SQUARE if params[0] else term, a, b, change))

    def _before_preparation(self, X: Any, a: VectorFeatures, gradients: Matrix) -> Matrix:
        """Turn derivatives with respect to prepared samples into those with respect to the samples."""
        weights = self.weights()
        return gradients if weights is None else gradients * weights

    def _sum_factor(self, b: VectorFeatures) -> float:
        """u / Σ term: 1 for maps without a factor."""
        return 1.0 if self.sum_formula(b)[1] in (IDENTITY, SERIES) else self.width_factor(b)

    def _changes(self, a: VectorFeatures, b: VectorFeatures, weights: Matrix) -> tuple[Matrix | None, Matrix]:
        """u and weights ψ'(u), in float64; no u for Gaussian values of dense samples, which need none."""
        term, code, params = self.sum_formula(b)
        # sparse samples keep u: moments of their features would need them dense
        if code == EXPONENTIAL and (term == SQUARE or params[0]) and not (a.sparse or b.sparse):
            change = self.block(a, b)
            change *= -weights
            return None, change
        from mercer.kernels._derivative_loops import slopes

        u = self._tiles(a, b, (term, IDENTITY, [params[0], 0.0, 0.0, 0.0]))
        if code == SERIES:
            return u, weights * polynomial.polyval(u, polynomial.polyder(params[4:]))
        change = np.empty_like(u)
        factor = self._sum_factor(b)
        slopes(code, factor, np.array(params), u.reshape(-1), weights.reshape(-1), change.reshape(-1))
        return u, change

    def width_factor(self, b: VectorFeatures) -> float:
        """u / Σ term: the factor that a single width gives to the argument of ψ."""
        return self.sum_formula(b)[2][1]

    def _derivative(self, name: str, a: VectorFeatures, b: VectorFeatures, u: Matrix | None, change: Matrix) -> Vector:
        """Σ change ∂u / ∂log(parameter), for the positive numbers of the parameter. Here for the width."""
        value, power = getattr(self, name), self.width_power
        if u is not None and not isinstance(value, tuple):
            return np.array([power * np.vdot(change, u)] if value > 0 else [])
        term, _, params = self.sum_formula(b)
        A, B = (features.X.toarray() if features.sparse else features.X for features in (a, b))
        factor = self.width_factor(b)
        moments = power * factor * feature_moments(SQUARE if params[0] else term, A, B, change, factor)
        if isinstance(value, tuple):  # one width per feature: ``prepare`` has multiplied the samples by it
            return np.asarray(moments[np.asarray(value) > 0])
        return np.array([moments.sum()] if value > 0 else [])

    def _compare(self, a: VectorFeatures, b: VectorFeatures, formula: SumFormula, out: Matrix | None) -> Matrix:
        """The kernel values by a formula. Subclasses may use different formulas for different rows."""
        return self._tiles(a, b, formula, out)

    def _tiles(self, a: VectorFeatures, b: VectorFeatures, formula: SumFormula, out: Matrix | None = None) -> Matrix:
        """phi(sum_k term(a_ik, b_jk)), with the term, phi and parameters of a formula."""
        (m, a_d), (n, b_d) = a.X.shape, b.X.shape
        if a_d != b_d:
            raise InvalidInputError(
                f"{self!r} compares vectors of equal length, but some samples have {a.d} features and others {b.d}."
            )
        if out is None:
            out = np.empty((m, n), b.dtype)
        if m == 0 or n == 0:
            return out
        a = a.stored_like(b)
        if b.sparse:
            from mercer._compiled.sparse_tiles import sparse_block

            sparse_block(*self._of_csr(a, b, formula), b.d, out)
        else:
            from mercer._compiled.shared_loops import dense_block

            term, code, params = formula
            a_norms, b_norms = self._norms(a, b, params)
            dense_block(term, code, np.asarray(params, b.dtype), a.X, a_norms, b.panels, b_norms, out)
        return out

    @staticmethod
    def _norms(a: VectorFeatures, b: VectorFeatures, params: list[float] | Vector) -> tuple[Vector, Vector]:
        """The squared norms of both sides, or placeholders if inner products are not turned into distances."""
        if params[0]:
            return a.norms, b.norms
        return a.some_norms, b.some_norms

    def _of_csr(self, a: VectorFeatures, b: VectorFeatures, formula: SumFormula) -> tuple[Any, ...]:
        """The arguments of the compiled loops for CSR samples."""
        from mercer._compiled.kernel_maps import map_address

        term, code, params = formula
        a_norms, b_norms = self._norms(a, b, params)
        # the terms of features in which b is zero: |a| for absolute and chi-squared distances
        totals = a.totals if term in (L1, CHI2) else np.zeros(len(a), b.dtype)
        left = a.X.indptr, a.X.indices, a.X.data, a_norms, totals, np.arange(len(a))
        phi = map_address(code, b.dtype)
        return term, phi, np.asarray(params, b.dtype), *left, b.X.indptr, b.X.indices, b.X.data, b_norms


def feature_moments(term: int, A: Matrix, B: Matrix, change: Matrix, factor: float) -> Vector:
    """Σ_ij change[i, j] term(A[i, k], B[j, k]) for each feature k; ``factor`` times the sum over k is u."""
    if term == SQUARE and len(A) and len(B):
        # from products of centred samples, unless cancellation would leave few digits of the u that matter
        middle = B.mean(axis=0)
        left, right = A - middle, B - middle
        with np.errstate(over="ignore"):
            largest = max(np.square(left).sum(axis=1).max(), np.square(right).sum(axis=1).max())
        if factor * largest <= LARGEST_U:
            squares = change.sum(axis=1) @ left**2 + change.sum(axis=0) @ right**2
            return np.asarray(squares - 2.0 * np.einsum("ik,ik->k", left, change @ right))
    from mercer.kernels._derivative_loops import add_moments

    moments = np.zeros(A.shape[1])
    add_moments(term, A, np.ascontiguousarray(B.T), change, moments)
    return moments


def term_gradients(term: int, a: VectorFeatures, b: VectorFeatures, change: Matrix) -> Matrix:
    """G[i, k] = Σ_j change[i, j] ∂term(a_ik, b_jk) / ∂a_ik for all features k.

    At a kink, a_ik = b_jk, the result is the mean of the slopes of the two sides. This is also the share of each
    argument in the derivative of k(x, x).
    """
    B = sp.csr_array((b.X.data, b.X.indices, b.X.indptr), shape=b.X.shape) if b.sparse else b.X
    A = sp.csr_array((a.X.data, a.X.indices, a.X.indptr), shape=a.X.shape) if a.sparse else a.X
    if term == DOT:
        return np.asarray(change @ B)
    if term == SQUARE:
        # dense samples are centred first, since a large common offset would lose digits
        if not b.sparse and len(b):
            middle = B.mean(axis=0)
            A, B = (A.toarray() if a.sparse else A) - middle, B - middle
        elif sp.issparse(A):
            A = A.toarray()
        return np.asarray(2.0 * (change.sum(axis=1)[:, None] * A - change @ B))
    slope = {L1: _absolute_slope, MIN: _min_slope, CHI2: _chi2_slope}[term]
    out = np.empty((len(a), a.d))
    A, B = (X.tocsc() if sp.issparse(X) else X for X in (A, B))
    for start in range(0, a.d, COLUMNS_AT_A_TIME):
        part = slice(start, min(start + COLUMNS_AT_A_TIME, a.d))
        left, right = (X[:, part].toarray() if sp.issparse(X) else X[:, part] for X in (A, B))
        for k in range(left.shape[1]):
            x, z = left[:, k, None], right[:, k]
            out[:, start + k] = np.einsum("ij,ij->i", change, slope(x, z))
    return out


def _absolute_slope(x: Matrix, z: Vector) -> Matrix:
    return np.asarray(np.sign(x - z))


def _min_slope(x: Matrix, z: Vector) -> Matrix:
    return np.asarray(0.5 - 0.5 * np.sign(x - z))


def _chi2_slope(x: Matrix, z: Vector) -> Matrix:
    """The derivative of (x - z)² / (x + z) with respect to x; 0 for x = z = 0."""
    total = x + z
    safe = np.where(total > 0, total, 1.0)
    return np.where(total > 0, (x - z) / safe * ((x + 3.0 * z) / safe), 0.0)
