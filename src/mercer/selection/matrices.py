"""Gram matrices of all samples for many kernels; kernels that are functions of the same sums share these."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._compiled.thread_pool import run_shares
from mercer.gram.memory import Loan
from mercer.gram.operator import Evaluations, GramOperator, check_finite
from mercer.kernels import Kernel
from mercer.kernels.feature_sums import IDENTITY, SumKernel
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures


@dataclass(frozen=True)
class Sums(SumKernel):
    """The sum over features of which a kernel is a function: a distance, an inner product, …"""

    of: SumKernel

    def prepare(self, samples: Any, dtype: Any = np.float64) -> VectorFeatures:
        return self.of.prepare(samples, dtype)

    def needs_double(self, b: VectorFeatures) -> bool:
        return self.of.needs_double(b)

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        term, _, params = self.of.sum_formula(b)
        return term, IDENTITY, [params[0], 0.0, 0.0, 0.0]

    def diagonal(self, a: Features) -> Vector:
        one_by_one = (a.take(np.array([i])) for i in range(len(a)))
        return np.array([self.block(one, one)[0, 0] for one in one_by_one], a.dtype)


class Matrices:
    """The Gram matrix of each kernel, computed at its first use and freed after ``uses`` uses.

    Kernels that are functions of the same sums over features, such as Gaussian kernels of all widths, share these sums.
    Then a matrix takes one function evaluation per entry.

    Parameters
    ----------
    kernels : the kernels, with numbers for all parameters.
    samples : the samples.
    n : their number.
    uses : how often each matrix will be used.
    dtype : dtype of the matrices.
    budget : bytes for all matrices together.
    n_threads : threads that use matrices at the same time.
    """

    def __init__(
        self, kernels: Sequence[Kernel], samples: Any, n: int, uses: int, dtype: Any, budget: int, n_threads: int
    ) -> None:
        self.kernels, self.samples, self.n, self.uses = list(kernels), samples, n, uses
        self.dtype, self.n_threads = np.dtype(dtype), n_threads
        self.evaluations = Evaluations()
        self._lock = threading.Lock()
        self._features: dict[Hashable, Features] = {}
        self._kept: dict[int, tuple[Loan, Matrix]] = {}
        self._left: dict[int, int] = {}
        self._sums: dict[Hashable, tuple[Loan, Matrix]] = {}
        one = n * n * self.dtype.itemsize
        # how many matrices fit: none, one, or one for each thread
        self._at_once = budget // max(1, one)
        self.fitting = int(min(n_threads, self._at_once))
        self._shared: dict[int, Hashable] = {}
        if self.fitting and budget >= (self.fitting + 1) * one and len(self.kernels) > 1:
            groups = [self._group(kernel) for kernel in self.kernels]
            many = Counter(group for group in groups if group is not None)
            # there is memory for the sums of one group: take the largest group
            best = max(many, key=lambda group: many[group], default=None)
            if best is not None and many[best] > 1:
                self._shared = {k: best for k, group in enumerate(groups) if group == best}

    def room_for(self, several: int) -> bool:
        """Whether ``several`` matrices fit, besides the shared sums."""
        return self._at_once > several

    def _group(self, kernel: Kernel) -> Hashable | None:
        """The key of the sums of a kernel; None if it is not a function of such a sum."""
        if not isinstance(kernel, SumKernel):
            return None
        features = self.features(kernel)
        assert isinstance(features, VectorFeatures)
        term, _, params = kernel.sum_formula(features)
        doubled = features.sparse and self.dtype != np.float64 and kernel.needs_double(features)
        return None if doubled else (kernel.preparation, term, params[0])

    def features(self, kernel: Kernel) -> Features:
        """The samples, prepared for this kernel; kernels with the same preparation share them."""
        key = kernel.preparation
        if key not in self._features:
            with np.errstate(over="ignore"):  # overflow in float32 is reported by `acquire`
                self._features[key] = kernel.prepare(self.samples, self.dtype)
        return self._features[key]

    def acquire(self, k: int, n_threads: int = 1) -> Matrix:
        """The matrix of kernel k. Several threads may call at the same time, with one thread each."""
        with self._lock:
            if k not in self._kept:
                loan = Loan(self.n * self.n, self.dtype)
                K = loan.array.reshape(self.n, self.n)
                self._compute(k, K, n_threads)
                check_finite(np.diagonal(K))
                self._kept[k], self._left[k] = (loan, K), self.uses
            return self._kept[k][1]

    def release(self, k: int) -> None:
        """End one use of the matrix of kernel k."""
        with self._lock:
            if k not in self._kept:
                return
            self._left[k] -= 1
            if self._left[k] == 0:
                del self._kept[k]

    def share(self) -> None:
        """Compute the sums that several kernels share, with all threads."""
        for k, group in self._shared.items():
            if group not in self._sums:
                kernel = self.kernels[k]
                assert isinstance(kernel, SumKernel)
                loan = Loan(self.n * self.n, self.dtype)
                sums = loan.array.reshape(self.n, self.n)
                GramOperator(Sums(kernel), self.features(kernel), self.n_threads, self.evaluations).dense(sums)
                self._sums[group] = loan, sums

    def _compute(self, k: int, K: Matrix, n_threads: int) -> None:
        kernel = self.kernels[k]
        features = self.features(kernel)
        if self._shared.get(k) not in self._sums:
            GramOperator(kernel, features, n_threads, self.evaluations).dense(K)
            return
        from mercer._compiled.kernel_maps import map_address
        from mercer.selection._chain_loops import map_sums

        assert isinstance(kernel, SumKernel) and isinstance(features, VectorFeatures)
        sums = self._sums[self._shared[k]][1]
        _, code, params = kernel.sum_formula(features)
        constants = np.array([0.0, *params[1:]], self.dtype)
        phi = map_address(code, constants.dtype)
        run_shares(lambda start, stop: map_sums(phi, constants, sums, start, stop, K), self.n, n_threads)
