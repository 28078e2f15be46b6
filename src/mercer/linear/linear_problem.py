"""The problem of a linear machine, its data matrix, and its certificate.

    min over w, b   P(w) + Σ weightᵢ ℓ(yᵢ, xᵢ·w + b),     P(w) = l1 |w|₁ + ½ l2 |w|²

The loss enters through its box QP (see `mercer.losses.base`). With β in the box of the loss the dual is

    max over β   linear'β − Σ l1ᵢ|βᵢ| − ½Σ ridgeᵢ βᵢ² − P*(X'β),     Σβ = 0 if b is free,

    P*(v) = |soft(v, l1)|² / (2 l2),     soft(v, l1) = sign(v) max(0, |v| − l1),

and for l2 = 0 the constraint |v|_∞ ≤ l1. Every box contains 0, so any β becomes feasible when it is scaled down.

A penalised intercept is one more feature of constant value, whose weight is part of P(w).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._compiled.thread_pool import cached_property, run_shares
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Csr, Matrix
from mercer.losses.base import BoxQP, Index, Loss, Vector
from mercer.problems.solution import FEASIBILITY, NOT_FEASIBLE, ROUNDING, Certificate, finished

# a product uses one thread per this many stored numbers
DENSE_PER_THREAD, SPARSE_PER_THREAD = 1 << 20, 1 << 18


class Penalty(NamedTuple):
    """P(w) = l1 |w|₁ + ½ l2 |w|²; l1 and l2 are not both 0."""

    l1: float = 0.0
    l2: float = 1.0

    def value(self, w: Vector) -> float:
        """P(w)."""
        return float((self.l1 * np.abs(w).sum() if self.l1 else 0.0) + 0.5 * self.l2 * (w @ w))

    def conjugate(self, v: Vector) -> float:
        """P*(v), the maximum over w of v·w − P(w)."""
        beyond = np.maximum(0.0, np.abs(v) - self.l1) if self.l1 else v
        if self.l2 == 0:
            return np.inf if beyond.any() else 0.0
        return float(0.5 / self.l2 * (beyond @ beyond))

    def feasible_scale(self, v: Vector) -> float:
        """The largest t ≤ 1 for which P*(tv) is finite."""
        if self.l2 > 0:
            return 1.0
        largest = float(np.abs(v).max(initial=0.0))
        return 1.0 if largest <= self.l1 else self.l1 / largest


# the standard penalty, ½|w|²
RIDGE = Penalty()


class Rows:
    """The data matrix: dense in C order, a memory map or CSR, with an optional constant last feature.

    Data are copied only if their storage requires it. Products are summed in float64.

    Attributes
    ----------
    n, d : number of samples, and of features including the constant one.
    dtype : of the stored numbers.
    sparse : whether they are stored as CSR.
    bias : the value of the constant feature; 0 for none.
    X : the stored numbers without the constant feature, an array or a `Csr`.
    """

    def __init__(self, X: NDArray[Any] | Csr, bias: float = 0.0) -> None:
        self.X = X
        self.bias = float(bias)
        self.sparse = isinstance(X, Csr)
        self.dtype: np.dtype[Any] = X.data.dtype if isinstance(X, Csr) else X.dtype
        self.n = int(X.shape[0])
        self.d = int(X.shape[1]) + (bias != 0)

    @classmethod
    def of(cls, X: Any, bias: float = 0.0) -> Rows:
        """The rows of an array, a memory map or a sparse matrix; other numbers than float32 become float64."""
        if isinstance(X, Csr):
            return cls(X, bias)
        dtype = np.dtype(X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
        if sp.issparse(X):
            return cls(_stored_once(X, dtype), bias)
        return cls(np.ascontiguousarray(X, dtype=dtype), bias)

    def dot(self, w: Vector, n_threads: int = 1) -> Vector:
        """Xw."""
        from mercer.linear._row_loops import dense_dot, sparse_dot

        w = np.ascontiguousarray(w, dtype=np.float64)
        out = np.empty(self.n)
        X = self.X

        def part(start: int, stop: int) -> None:
            if isinstance(X, Csr):
                sparse_dot(X.indptr[start : stop + 1], unsigned(X.indices), X.data, w, out[start:stop])
            else:
                dense_dot(X[start:stop], w, out[start:stop])

        run_shares(part, self.n, self.threads(n_threads))
        if self.bias:
            out += self.bias * w[-1]
        return out

    def tdot(self, beta: Vector, n_threads: int = 1) -> Vector:
        """X'β."""
        from mercer.linear._row_loops import dense_tdot, sparse_tdot

        beta = np.ascontiguousarray(beta, dtype=np.float64)
        X = self.X
        parts: dict[int, Vector] = {} if self.n else {0: np.zeros(self.d)}

        def part(start: int, stop: int) -> None:
            out = np.zeros(self.d)
            if isinstance(X, Csr):
                sparse_tdot(X.indptr[start : stop + 1], unsigned(X.indices), X.data, beta[start:stop], out)
            else:
                dense_tdot(X[start:stop], beta[start:stop], out)
            parts[start] = out

        run_shares(part, self.n, self.threads(n_threads))
        # in the order of the rows: the same bits for the same number of threads
        total, *others = (parts[start] for start in sorted(parts))
        for other in others:
            total += other
        if self.bias:
            total[-1] = self.bias * beta.sum()
        return total

    def threads(self, most: int) -> int:
        """The number of threads for a product with the rows, at most ``most``; one if there are few numbers."""
        per_thread = SPARSE_PER_THREAD if self.sparse else DENSE_PER_THREAD
        return max(1, min(most, int(self.numbers_per_row * self.n) // per_thread))

    @property
    def can_be_squared(self) -> bool:
        """Whether the sum of squares of all stored numbers is finite in float64, as it always is for float32."""
        with np.errstate(over="ignore"):
            return self.dtype == np.float32 or bool(np.isfinite(self._stored @ self._stored))

    @property
    def largest(self) -> float:
        """The largest absolute stored value."""
        stored = self._stored
        return max(float(stored.max(initial=0.0)), -float(stored.min(initial=0.0)))

    @property
    def _stored(self) -> Any:
        """The stored numbers as a vector, without a copy."""
        return self.X.data if isinstance(self.X, Csr) else self.X.reshape(-1)

    @property
    def numbers_per_row(self) -> float:
        """The mean count of stored numbers per row."""
        X = self.X
        return (X.data.size if isinstance(X, Csr) else X.size) / max(1, self.n)

    def take(self, rows: Index) -> Rows:
        """A copy with some of the rows."""
        rows = np.asarray(rows)
        return Rows(self.X.take(rows) if isinstance(self.X, Csr) else np.asarray(self.X[rows]), self.bias)

    def dense(self) -> Matrix:
        """All features, including the constant one, as a float64 array."""
        X = np.asarray(self.X.toarray() if isinstance(self.X, Csr) else self.X, dtype=np.float64)
        return np.column_stack([X, np.full(self.n, self.bias)]) if self.bias else X

    def plain(self) -> Any:
        """All features, including the constant one, as a float64 array or a scipy matrix."""
        if not isinstance(self.X, Csr):
            return self.dense()
        X = sp.csr_array((self.X.data.astype(np.float64), self.X.indices, self.X.indptr), shape=self.X.shape)
        return sp.csr_array(sp.hstack([X, np.full((self.n, 1), self.bias)])) if self.bias else X

    def columns(self, features: Index) -> Rows:
        """A copy with some of the features; the constant one, if included, must come last."""
        features = np.asarray(features)
        with_bias = bool(self.bias) and len(features) > 0 and features[-1] == self.d - 1
        stored = features[:-1] if with_bias else features
        bias = self.bias if with_bias else 0.0
        if isinstance(self.X, Csr):
            X = sp.csr_array((self.X.data, self.X.indices, self.X.indptr), shape=self.X.shape)
            return Rows(Csr.of(X[:, stored], self.dtype), bias)
        return Rows(np.ascontiguousarray(self.X[:, stored]), bias)


def unsigned(indices: Any) -> Any:
    """The same column indices as unsigned integers, which compiled loops read fastest."""
    return indices.view(np.uint32 if indices.dtype.itemsize == 4 else np.uint64)


def _stored_once(X: Any, dtype: np.dtype[Any]) -> Csr:
    """A scipy matrix as CSR without duplicate entries; the entries of a row may be in any order."""
    from mercer.linear._row_loops import repeats

    X = X if X.format == "csr" else X.tocsr()
    # scipy's own test reports unsorted rows as not canonical
    once = X.has_sorted_indices and X.has_canonical_format
    if not once and repeats(X.indptr, unsigned(X.indices), X.shape[1]):
        X = X.copy()
        X.sum_duplicates()
    return Csr(X.indptr, X.indices, X.data.astype(dtype, copy=False), X.shape)


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """Everything that determines the optimum: rows, targets, weights, loss and penalty.

    Attributes
    ----------
    rows : the samples.
    loss, y, weight : the primal is P(w) + Σ weight · loss(y, Xw + b).
    intercept : whether there is a free b, which P does not penalise.
    penalty : P.
    """

    rows: Rows
    loss: Loss
    y: Vector
    weight: Vector
    intercept: bool = False
    penalty: Penalty = RIDGE

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.rows.n

    @cached_property
    def qp(self) -> BoxQP:
        """The box QP of the loss, built once."""
        qp = self.loss.box_qp(self.y, self.weight, self.intercept)
        if qp.sample is not None or qp.sums.any() or qp.n_groups > 1:
            raise InvalidInputError(
                f"The {self.loss.name} has thresholds of its own: the linear solvers take losses of one intercept only."
            )
        return qp

    def with_rows(self, rows: Rows) -> LinearProblem:
        """The same samples with other features; the program is shared."""
        found = replace(self, rows=rows)
        vars(found)["qp"] = self.qp
        return found

    def primal(self, w: Vector, intercept: float, f: Vector | None = None) -> float:
        """P(w) + Σ weight · loss(y, f + b) with f = Xw.

        For a hard margin it is the value of the model scaled up to feasibility, inf where that fails.
        """
        f = self.rows.dot(w) if f is None else f
        b = np.full(self.qp.n_groups, float(intercept))
        scale = self.loss.feasible_scale(self.y, f + b[0] if len(b) else f, self.weight)
        if not scale > 0:
            return np.inf
        if scale != 1.0:
            w, f, b = w / scale, f / scale, b / scale
        value = self.loss.primal(2.0 * self.penalty.value(w), self.y, f, self.weight, b, self.qp.sums)
        return value if np.isfinite(value) else np.inf

    def dual(self, beta: Vector, v: Vector | None = None) -> float:
        """The dual value of β, after scaling β down to a finite P* if necessary.

        It is a lower bound on the primal if β is in the box and, for a free b, sums to 0.
        """
        qp = self.qp
        v = self.rows.tdot(beta) if v is None else v
        t = self.penalty.feasible_scale(v)
        if t != 1.0:
            beta, v = t * beta, t * v
        # after scaling, |v| may exceed l1 by rounding: do not let P* become infinite
        conjugate = 0.0 if self.penalty.l2 == 0 else self.penalty.conjugate(v)
        gain = (qp.linear - 0.5 * qp.ridge * beta) @ beta - qp.l1 @ np.abs(beta)
        value = float(gain - conjugate)
        return value if np.isfinite(value) else -np.inf


def linear_certificate(
    problem: LinearProblem,
    w: Vector,
    intercept: float,
    beta: Vector,
    *,
    f: Vector | None = None,
    v: Vector | None = None,
    of: str | None = None,
) -> Certificate:
    """Bound the distance of the model (w, b) from the optimum by the duality gap to a feasible β.

    w need not be the maximiser of P* at X'β: weak duality holds for every pair. ``f`` = Xw and ``v`` = X'β are
    computed in float64 unless they are given. The KKT violation is in units of the decision function. If the β of a
    sample is at the wrong end of its box, its violation is the distance of its decision value from the kink; it goes
    to 0 as β approaches the right end. For piecewise linear losses it is the sample's part of the gap divided by its
    weight.
    """
    from mercer.linear._row_loops import check_optimality

    qp, loss = problem.qp, problem.loss
    w, beta = np.asarray(w, dtype=np.float64), np.asarray(beta, dtype=np.float64)
    f = problem.rows.dot(w) if f is None else f
    v = problem.rows.tdot(beta) if v is None else v
    largest = float(np.abs(beta).max(initial=0.0))
    vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper
    decision = f + intercept if intercept else f
    violation, outside, total = check_optimality(np.ascontiguousarray(beta), decision, *vectors, largest)
    del decision  # a vector over all rows
    infeasible = max(outside, abs(total)) if problem.intercept else outside
    infeasible = np.inf if np.isnan(total) else infeasible
    primal, dual = problem.primal(w, intercept, f), problem.dual(beta, v)
    # both values are sums of terms of this size, which may cancel
    terms = 0.0 if primal >= dual else float(np.abs(qp.linear * beta).sum() + np.abs(v) @ np.abs(w))
    return conclude_linear(primal, dual, terms, violation, infeasible, largest, loss.name if of is None else of)


def conclude_linear(
    primal: float, dual: float, terms: float, violation: float, infeasible: float, largest: float, of: str
) -> Certificate:
    """The certificate from its sums; ``terms`` is the size of the added terms, ``largest`` the largest |β|."""
    feasible = infeasible <= FEASIBILITY * largest
    gap = primal - dual if np.isfinite(primal) and np.isfinite(dual) else np.inf
    if -ROUNDING * (terms + abs(primal)) <= gap < 0:
        gap = 0.0
    reason = "" if feasible and gap >= 0 else NOT_FEASIBLE
    violation = np.inf if np.isnan(violation) else violation
    return finished(primal, dual, gap, violation, infeasible, of, reason)


def balanced(qp: BoxQP, beta: Vector) -> Vector:
    """β with Σβ = 0: free variables take up the excess in proportion to their room, else all variables of its sign."""
    total = float(beta.sum())
    if total == 0:
        return beta
    beta = beta.copy()
    free = np.flatnonzero((beta > qp.lower) & (beta < qp.upper) & (beta != 0))
    room = np.abs(beta[free])
    opposite = np.sign(beta[free]) != np.sign(total)
    # towards 0, or away from it up to the bound
    bound = np.where(beta[free] > 0, qp.upper[free], -qp.lower[free])
    room[opposite] = np.minimum(bound - room, room)[opposite]
    if room.sum() >= abs(total):
        beta[free] -= total * room / room.sum()
        return beta
    side = np.sign(total) * beta > 0  # not empty, and 0 is in every box
    beta[side] *= 1.0 - total / float(beta[side].sum())
    return beta
