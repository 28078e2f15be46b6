"""Stochastic subgradient descent (Pegasos) for the soft-margin SVM, and the perceptron; linear or with a kernel.

    min  lam/2 |w|^2 + (1/W) sum_i weight_i max(0, 1 - y_i <w, phi(x_i)>),   W = sum_i weight_i       [SSBD] 15.12, 16.5

`LinearRun` is the procedure of [SSBD] 15.5, `KernelRun` that of 16.3 and of [L8] Algorithm 1. For the same samples in
the same order both give the same iterates (Lemma 16.3). `Rule.eta` gives steps of other sizes ([D6] Note 26). With
lam = 0 they are the perceptron of [SSBD] Remark 15.1 and Exercise 16.2. The steps are in `online._sgd_loops`, the
certificates in `online.sgd_certificate`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._compiled.thread_pool import cached_property, run_shares
from mercer.gram.operator import Evaluations, GramOperator, product
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Matrix, Vector
from mercer.losses import Hinge
from mercer.losses.base import finite_weight

if TYPE_CHECKING:
    from mercer.online.sgd_trace import Recorder

# kernel values per block of steps; least and largest number of steps in a block
BLOCK_VALUES = 1 << 20
BLOCK_STEPS = (16, 256)
# scale, S, |v|², updates, intercept of v and its A: see `_sgd_loops`
STATE = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class ObjectivePoint(NamedTuple):
    """After ``steps`` steps: the objective (15.12), and an upper bound on its expected excess over the optimum."""

    steps: int
    objective: float
    bound: float


@dataclass(frozen=True)
class Rule:
    """The update rule of a step.

    Attributes
    ----------
    lam : the weight of the norm; 0 for the perceptron.
    bias : 1 for a constant feature 1, else 0.
    batch : samples per step.
    project : whether iterates are projected onto the ball of radius 1/sqrt(lam).
    start : iterates after this step are averaged; -1 for the last iterate without averaging.
    budget : limit on the samples with a coefficient, -1 for none; kernels only.
    eta : the sizes of the steps, by their numbers 1, 2, …; None for w = theta / (lam t), that is 1 / (lam (t + 1)).
    """

    lam: float
    bias: float = 0.0
    batch: int = 1
    project: bool = False
    start: int = 0
    budget: int = -1
    eta: Callable[[int], float] | None = None

    def sizes(self, t: int, n_steps: int) -> Vector:
        """The sizes of the next n_steps steps after step t; empty for those of Pegasos."""
        if self.eta is None:
            return np.empty(0)
        return np.array([self.eta(s) for s in range(t + 1, t + n_steps + 1)], dtype=np.float64)


class Model(NamedTuple):
    """An iterate, or the mean of iterates; a row for each problem.

    ``w`` is empty in kernel runs; ``beta`` is empty for the mean of a linear run.
    """

    w: Matrix
    beta: Matrix
    intercept: Vector


class Memory(NamedTuple):
    """The state from which another run can continue: steps taken, v and A, and the scalars of each problem."""

    t: int
    v: Matrix
    A: Matrix
    state: Matrix


class Run(ABC):
    """The state of all problems of a fit: v and A, from which the last iterate and the mean are computed.

    ``y`` has a row of labels for each problem; ``weight`` are the weights of the samples in the objective, ``step`` the
    factors of their updates. A ``recorder`` keeps every step; None for none.
    """

    recorder: Recorder | None = None

    def __init__(self, y: Matrix, weight: Vector, step: Vector, rule: Rule, width: int) -> None:
        self.y = np.ascontiguousarray(y, dtype=np.float64)
        self.weight = weight
        self.step = np.ascontiguousarray(step, dtype=np.float64)
        self.rule = rule
        self.drawn = np.empty(0, np.intp)
        self.t = 0
        self.v = np.zeros((len(y), width))
        self.A = np.zeros((len(y), width))
        self.state = np.tile(np.array(STATE), (len(y), 1))
        self._made: Model | None = None

    def frozen(self) -> Run:
        """A copy of the current state, which further steps do not change."""
        run = copy(self)
        run.v, run.A, run.state = self.v.copy("K"), self.A.copy("K"), self.state.copy()
        return run

    def memory(self, carries: Vector | None = None) -> Memory:
        """The state to continue from; for a kernel run restricted to the samples at these positions."""
        v, A = (self.v, self.A) if carries is None else (self.v[:, carries], self.A[:, carries])
        return Memory(self.t, v, A, self.state)

    def go_on_from(self, memory: Memory) -> None:
        """Continue another run; for a kernel run its samples must come first."""
        width = memory.v.shape[1]
        self.v[:, :width], self.A[:, :width] = memory.v, memory.A
        self.t, self.state = memory.t, memory.state.copy()
        self._made = None

    def begin_with(self, memory: Memory) -> None:
        """Start at the last w of another run over the same features. For runs with lam = 0."""
        self.v[:] = memory.v * memory.state[:, :1]
        self.state[:, 4] = memory.state[:, 4] * memory.state[:, 0]
        self._made = None

    @cached_property
    def unit(self) -> float:
        """Cᵢ / weightᵢ in the convention of the certificates, ½|w|² + Σ Cᵢ max(0, 1 − yᵢ f): 1 / (lam W)."""
        with np.errstate(over="ignore", divide="ignore"):
            unit = 1.0 / (np.float64(self.rule.lam) * self.weight.sum())
            finite_weight(unit * self.weight.max(keepdims=True), Hinge())
        return float(unit)

    @property
    def n_updates(self) -> Vector:
        """The number of updates of each problem."""
        return self.state[:, 3].astype(np.int64)

    def advance(self, order: Vector, n_threads: int = 1) -> None:
        """Take steps with these samples, ``rule.batch`` per step."""
        if self.recorder is None:
            self.take_steps(order, n_threads)
        else:
            self.recorder.advance(self, order, n_threads)

    def take_steps(self, order: Vector, n_threads: int = 1) -> None:
        """`advance` without a record."""
        self._made = None
        self._advance(order, n_threads)
        drawn = np.bincount(order, minlength=len(self.weight))
        self.drawn = drawn + self.drawn if len(self.drawn) else drawn

    @abstractmethod
    def _advance(self, order: Vector, n_threads: int) -> None:
        """Take the steps of `advance`."""

    @property
    @abstractmethod
    def coefficients(self) -> Matrix:
        """The coefficients of the samples in v."""

    def dual_points(self) -> tuple[Matrix, Vector]:
        """A feasible β of each problem, and Σ|β|: βᵢ is yᵢCᵢ times the share of the draws of i that updated w.

        For steps of given sizes, it is the coefficient of the last w, at most Cᵢ.
        """
        from mercer.online._sgd_loops import dual_points

        beta, sizes = np.zeros(self.y.shape), np.zeros(len(self.y))
        if self.rule.eta is not None:
            # the coefficients of the last w, in the box
            alpha = self.y * self.state[:, :1] * self.coefficients
            np.clip(alpha, 0.0, self.unit * self.weight, out=alpha)
            return self.y * alpha, alpha.sum(axis=1)
        if len(self.drawn):
            hits = np.ascontiguousarray(self.coefficients)
            dual_points(
                self.y, self.weight, self.unit, hits, self.drawn, self.step, self.rule.batch, beta, sizes
            )  # fmt: skip
        return beta, sizes

    @property
    @abstractmethod
    def squared_lengths(self) -> Vector:
        """|φ(x)|² of each sample, without the constant feature."""

    @abstractmethod
    def squared_norms(self, model: Model, f: Matrix | None = None, n_threads: int = 1) -> Vector:
        """|w|² of each problem, including the constant feature; ``f`` are the values of the model if known."""

    def model(self, last: bool = False) -> Model:
        """The model by the rule: the mean of the iterates so far, or the iterate after the last step."""
        with np.errstate(over="ignore", invalid="ignore"):  # overflow shows in the values of the model
            if last:
                return self._make(last=True)
            if self._made is None:
                self._made = self._make(last=False)
        return self._made

    @abstractmethod
    def _make(self, last: bool) -> Model:
        """The mean of the iterates, or the last one."""

    @abstractmethod
    def values(self, model: Model, n_threads: int = 1, rows: Vector | None = None) -> Matrix:
        """The decision values of all samples, or of the samples ``rows``; a row for each problem."""

    def values_of_last(self, model: Model, n_threads: int = 1) -> Matrix:
        """`values` of ``model(last=True)``, for a run that asks for them after each step."""
        return self.values(model, n_threads)

    @abstractmethod
    def from_coefficients(self, beta: Matrix) -> Model:
        """The model with these coefficients."""

    def _mix(self, v: Matrix, A: Matrix, last: bool) -> Matrix:
        """The mean of the iterates w_1, …, w_t, or the one after the last step, w_{t+1} = theta / (lam (t + 1))."""
        scale, total = self.state[:, :1], self.state[:, 1:2]
        if self.t == 0 and self.rule.lam > 0:
            return np.zeros_like(v)
        if last or self.rule.start < 0 or self.t <= self.rule.start:
            if self.rule.eta is not None:
                return v * scale
            return v * (scale / (self.rule.lam * (self.t + 1)) if self.rule.lam > 0 else 1.0)
        mean = total * v
        mean -= A
        mean /= self.t - self.rule.start
        return mean

    def _intercepts(self, last: bool) -> Vector:
        return self.rule.bias * self._mix(self.state[:, 4:5], self.state[:, 5:6], last)[:, 0]


class LinearRun(Run):
    """[SSBD] 15.5 on vectors, dense or CSR."""

    def __init__(self, X: Any, y: Matrix, weight: Vector, step: Vector, rule: Rule) -> None:
        super().__init__(y, weight, step, rule, X.shape[1])
        self.X = X
        if sp.issparse(X):
            # stored by feature, so that an entry of a sample updates all problems in one place
            self.v, self.A = np.zeros((2, X.shape[1], len(y))).swapaxes(1, 2)
        self.beta = np.zeros((X.shape[0], len(y))).T
        self._push = np.ascontiguousarray((self.y * self.step).T)

    @cached_property
    def _arrays(self) -> tuple[Vector, Vector, Vector]:
        if sp.issparse(self.X):
            return self.X.indptr, self.X.indices.astype(np.int32, copy=False).view(np.uint32), self.X.data
        n, d = self.X.shape
        return np.arange(n + 1) * d, np.empty(0, np.uint32), np.ascontiguousarray(self.X).reshape(-1)

    @property
    def coefficients(self) -> Matrix:
        return self.beta

    @cached_property
    def squared_lengths(self) -> Vector:
        from mercer.linear._coordinate_loops import row_norms

        out = np.empty(self.X.shape[0])
        row_norms(self._arrays[0], self._arrays[2], out)
        return out

    def squared_norms(self, model: Model, f: Matrix | None = None, n_threads: int = 1) -> Vector:
        with np.errstate(over="ignore"):
            return np.einsum("ij,ij->i", model.w, model.w) + model.intercept**2

    def _advance(self, order: Vector, n_threads: int) -> None:
        from mercer.online._sgd_loops import linear_steps

        rule, arrays = self.rule, self._arrays
        norms = self.squared_lengths if rule.project else np.empty(0)
        start = rule.start if rule.start >= 0 else np.iinfo(np.int64).max
        n_steps = -(-len(order) // rule.batch)
        eta = rule.sizes(self.t, n_steps)
        V, A = (self.v.T, self.A.T) if sp.issparse(self.X) else (self.v, self.A)

        def some(first: int, stop: int) -> None:
            linear_steps(
                *arrays, norms, self._push, order, eta, rule.batch, rule.bias, rule.lam, rule.project, self.t,
                start, V, A, self.beta.T, self.state, first, stop,
            )  # fmt: skip

        run_shares(some, len(self.y), n_threads)
        self.t += n_steps

    def _make(self, last: bool) -> Model:
        # the coefficients of the mean are not needed
        beta = self._mix(self.beta, self.beta, last) if last else np.empty((len(self.y), 0))
        return Model(self._mix(self.v, self.A, last), beta, self._intercepts(last))

    def values(self, model: Model, n_threads: int = 1, rows: Vector | None = None) -> Matrix:
        if rows is not None:
            f = self.X[rows] @ model.w.T
        elif sp.issparse(self.X):
            from mercer.online._sgd_loops import sparse_values

            f = np.empty((self.X.shape[0], len(model.w)))
            sparse_values(*self._arrays, np.ascontiguousarray(model.w.T), f)
        else:
            f = self.X @ model.w.T
        f = np.ascontiguousarray(f.T, dtype=np.float64)
        f += model.intercept[:, None]
        return f

    def from_coefficients(self, beta: Matrix) -> Model:
        intercept = self.rule.bias * beta.sum(axis=1)
        if not sp.issparse(self.X):
            return Model(np.asarray(beta @ self.X, dtype=np.float64), beta, intercept)
        from mercer.online._sgd_loops import sparse_sums

        V = np.zeros((self.X.shape[1], len(beta)))
        sparse_sums(*self._arrays, np.ascontiguousarray(beta.T), V)
        return Model(V.T, beta, intercept)


class KernelRun(Run):
    """[SSBD] 16.3 on prepared samples.

    Steps are taken in blocks: the kernel values of the block's samples with each other and with all samples that have a
    coefficient are computed together.
    """

    def __init__(
        self,
        kernel: Kernel,
        features: Features,
        y: Matrix,
        weight: Vector,
        step: Vector,
        rule: Rule,
        evaluations: Evaluations | None = None,
    ) -> None:
        super().__init__(y, weight, step, rule, len(features))
        self.gram = GramOperator(kernel, features, evaluations=evaluations)
        self.diagonal = self.gram.diagonal()

    @property
    def coefficients(self) -> Matrix:
        return self.v

    @property
    def squared_lengths(self) -> Vector:
        return self.diagonal

    def squared_norms(self, model: Model, f: Matrix | None = None, n_threads: int = 1) -> Vector:
        carries = np.flatnonzero(model.beta.any(axis=0))
        f = self._values(model, carries, carries, n_threads) if f is None else f[:, carries]
        return np.maximum(0.0, np.einsum("ij,ij->i", model.beta[:, carries], f))

    def _advance(self, order: Vector, n_threads: int) -> None:
        self.gram.n_threads = n_threads
        done = 0
        while done < len(order):
            stored = np.flatnonzero(self.v.any(axis=0))
            size = int(np.clip(BLOCK_VALUES // (len(stored) + BLOCK_STEPS[1]), *BLOCK_STEPS))
            size = max(1, size // self.rule.batch) * self.rule.batch
            self._advance_block(stored, order[done : done + size])
            done += size

    def _advance_block(self, stored: Vector, drawn: Vector) -> None:
        from mercer.online._sgd_loops import kernel_steps

        rule = self.rule
        # the oldest come first: they are removed first
        members = np.concatenate([stored, np.setdiff1d(drawn, stored)])
        place = np.argsort(members, kind="stable")
        position = place[np.searchsorted(members, drawn, sorter=place)]
        K = self.gram.rows(self.gram.features.take(drawn), self.gram.features.take(members))
        v, A = self.v[:, members], self.A[:, members]
        n_steps = -(-len(drawn) // rule.batch)
        kernel_steps(
            K, position, rule.sizes(self.t, n_steps), self.diagonal[members],
            np.ascontiguousarray(self.y[:, members]), self.step[members],
            rule.batch, rule.bias, rule.lam, rule.project, self.t,
            rule.start if rule.start >= 0 else np.iinfo(np.int64).max, rule.budget, v, A, self.state,
        )  # fmt: skip
        self.v[:, members], self.A[:, members] = v, A
        self.t += n_steps

    def _make(self, last: bool) -> Model:
        return self.from_coefficients(self._mix(self.v, self.A, last))

    def values(self, model: Model, n_threads: int = 1, rows: Vector | None = None) -> Matrix:
        return self._values(model, rows, np.flatnonzero(model.beta.any(axis=0)), n_threads)

    def values_of_last(self, model: Model, n_threads: int = 1) -> Matrix:
        # K v by the columns that have changed: a step changes one coefficient of v, and the factor of v
        changed = np.flatnonzero((self.v != self._last_v).any(axis=0))
        if len(changed):
            b, change = self.gram.features.take(changed), np.ascontiguousarray((self.v - self._last_v)[:, changed].T)
            moved = product(self.gram.kernel, self.gram.features, b, change, n_threads, self.gram.evaluations)
            self._last_F = self._last_F + moved.T
            self._last_v = self.v.copy()
        return self._mix(self._last_F, self.A, last=True) + model.intercept[:, None]

    @cached_property
    def _last_v(self) -> Matrix:
        return np.zeros_like(self.v)

    @cached_property
    def _last_F(self) -> Matrix:
        return np.zeros_like(self.v)

    def _values(self, model: Model, rows: Vector | None, carries: Vector, n_threads: int) -> Matrix:
        a, b = self.gram.features, self.gram.features.take(carries)
        a = a if rows is None else a.take(rows)
        weights = np.ascontiguousarray(model.beta[:, carries].T)
        found = product(self.gram.kernel, a, b, weights, n_threads, self.gram.evaluations)
        return np.ascontiguousarray(found.T) + model.intercept[:, None]

    def from_coefficients(self, beta: Matrix) -> Model:
        return Model(np.empty((len(beta), 0)), beta, self.rule.bias * beta.sum(axis=1))
