"""Kernels as values: frozen, compared by their parameters, printed as the expression that builds them.

A kernel holds no data. Training and test samples are prepared each by themselves; ``block`` is the only door to
kernel values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels import codes
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures, as_matrix

if TYPE_CHECKING:
    from mercer.kernels.feature_maps import FeatureMap


@dataclass(frozen=True)
class Kernel(ABC):
    """A similarity k(x, z) = <φ(x), φ(z)>."""

    psd: ClassVar[bool] = True
    # numpy's scalars leave ``np.float64(2) * kernel`` to the kernel
    __array_ufunc__: ClassVar[None] = None

    @abstractmethod
    def prepare(self, samples: Any, dtype: Any = np.float64) -> Features:
        """Everything needed once per sample, for values of this dtype."""

    @abstractmethod
    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        """K[i, j] = k(a_i, b_j), written to out if given (any strides between rows, contiguous rows)."""

    @abstractmethod
    def diagonal(self, a: Features) -> Vector:
        """k(a_i, a_i) in float64."""

    def bind(self, samples: Any) -> Kernel:
        """The same kernel with parameters such as gamma="scale" made numbers."""
        return self

    def check_samples(self, samples: Any) -> None:  # noqa: B027 (most kernels are defined everywhere)
        """Raise InvalidInputError where the kernel is not defined for these samples."""

    @property
    def domain(self) -> str:
        """What a set of samples is.

        "vectors": a matrix of numbers, dense or CSR; "frame": a data frame whose columns are asked for by name;
        "matrix": rows of a kernel matrix; "any": whatever the kernel understands, or does not look at.
        """
        return "vectors"

    @property
    def positive_semidefinite(self) -> bool:
        """Whether every Gram matrix of this kernel has only non-negative eigenvalues."""
        return self.psd

    @property
    def psd_is_assumed(self) -> bool:
        """Whether ``positive_semidefinite`` is the user's promise: a function or a matrix that was not examined."""
        return False

    @property
    def preparation(self) -> Hashable:
        """All that ``prepare`` depends on: kernels for which this is equal share their prepared samples."""
        return self

    def leaves(self) -> tuple[Kernel, ...]:
        """The kernels in this one that prepare samples, from left to right."""
        return (self,)

    def __call__(self, X: Any, Z: Any = None) -> Matrix:
        """The Gram matrix between X and Z (or X and X) in float64."""
        kernel = self.bind(X)
        a = kernel.prepare(X)
        return kernel.block(a, a if Z is None else kernel.prepare(Z))

    def feature_map(
        self, samples: Any, *, degree: int | None = None, error: float = 1e-6, max_dimension: int = 100_000
    ) -> FeatureMap:
        """ψ with <ψ(x), ψ(z)> = k(x, z), where it can be written down ([SSBD] 16.1, 16.2, [CS229] 5.4).

        Parameters
        ----------
        samples : samples like those that it will be applied to
            They give the number of features, what ``bind`` needs, the largest number for ``Min``, and the radius for
            ``Gaussian``.
        degree : int, default=None
            For ``Gaussian``, the degree up to which Taylor's series is taken; None for the lowest whose ``error`` is
            small enough.
        error : float, default=1e-6
            What <ψ(x), ψ(z)> may differ from k(x, z) by, for ``Gaussian`` and samples that are no longer than these.
        max_dimension : int, default=100_000
            Features at most; more raise an error that says how many there would be.

        Returns
        -------
        psi : FeatureMap
            A function of samples, with ``dimension`` and a bound ``error``, which is 0 where ψ is exact.

        Examples
        --------
        >>> from mercer.kernels import Polynomial
        >>> psi = Polynomial(degree=2, coef0=1.0).feature_map([[1.0, 2.0]])
        >>> psi([[1.0, 2.0]]).round(3)
        array([[1.   , 1.414, 2.828, 1.   , 2.828, 4.   ]])
        """
        from mercer.kernels.feature_maps import feature_map

        return feature_map(self, samples, degree, error, max_dimension)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; those of nested kernels as ``name__parameter``."""
        params: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        if deep:
            for name, value in list(params.items()):
                if isinstance(value, Kernel):
                    params.update({f"{name}__{key}": inner for key, inner in value.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Kernel:
        """A new kernel with these parameters changed; this one stays as it is."""
        own: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        valid = self.get_params(deep=False)
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if name not in valid or (rest and not isinstance(params.get(name, valid[name]), Kernel)):
                raise InvalidInputError(
                    f"Invalid parameter {key!r} for kernel {self!r}. Valid parameters are: {sorted(self.get_params())}."
                )
            if rest:
                nested.setdefault(name, {})[rest] = value
            else:
                own[name] = value
        for name, inner in nested.items():
            own[name] = own.get(name, valid[name]).set_params(**inner)
        return replace(self, **own)

    def __sklearn_clone__(self) -> Kernel:
        return self  # a value: nothing in it can change

    def __add__(self, other: Any) -> Kernel:
        from mercer.kernels.combinators import add

        return add(self, other)

    def __radd__(self, other: Any) -> Kernel:
        from mercer.kernels.combinators import add

        return add(other, self)

    def __mul__(self, other: Any) -> Kernel:
        from mercer.kernels.combinators import multiply

        return multiply(self, other)

    def __rmul__(self, other: Any) -> Kernel:
        from mercer.kernels.combinators import multiply

        return multiply(other, self)

    def __pow__(self, exponent: Any) -> Kernel:
        from mercer.kernels.combinators import Power

        return Power(self, exponent)


@dataclass(frozen=True)
class SumKernel(Kernel):
    """k(x, z) = phi(sum_k term(x_k, z_k)): one sum over features, one function of it.

    Subclasses say which sum and which function; the tiles do the rest, for dense and CSR samples alike.
    """

    nonnegative: ClassVar[bool] = False

    @abstractmethod
    def plan(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        """(term, map, [needs distances, gamma, constant, degree, coefficients...]) for columns b."""

    def weights(self) -> Vector | None:
        """Factors by which each feature is multiplied first, if any."""
        return None

    def needs_double(self, b: VectorFeatures) -> bool:
        """Whether CSR columns in float32 must be compared in float64, because their sums would cancel."""
        return False

    @property
    def preparation(self) -> Hashable:
        weights = self.weights()
        return "vectors", None if weights is None else tuple(weights.tolist())

    def check_samples(self, samples: Any) -> None:
        """Histograms have no negative entries."""
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
        # CSR that is half full takes more room than the array, and more time
        if sp.issparse(samples) and samples.nnz >= 0.5 * samples.shape[0] * samples.shape[1]:
            samples = samples.toarray()
        return VectorFeatures(samples, dtype)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        """K[i, j] = k(a_i, b_j), tile by tile."""
        assert isinstance(a, VectorFeatures) and isinstance(b, VectorFeatures)
        from mercer._numerics.tiles import dense_block, sparse_block

        if a.d != b.d:
            raise InvalidInputError(
                f"{self!r} compares vectors of one length, but some samples have {a.d} features and others {b.d}."
            )
        if out is None:
            out = np.empty((len(a), len(b)), b.dtype)
        if len(a) == 0 or len(b) == 0:
            return out
        if b.sparse and b.dtype != np.float64 and self.needs_double(b):
            out[...] = self.block(a.in_double, b.in_double)
            return out
        a = a.stored_like(b)
        term, code, params = self.plan(b)
        constants = np.array(params, b.dtype)
        if b.sparse:
            # what the features add in which b is zero: |a| for absolute and chi-squared distances
            totals = a.totals if term in (codes.L1, codes.CHI2) else np.zeros(len(a), b.dtype)
            A, B = a.X, b.X
            sparse_block(
                term, code, constants, A.indptr, A.indices, A.data, a.norms, totals, np.arange(len(a)),
                B.indptr, B.indices, B.data, b.norms, 0, len(b), b.d, out,
            )  # fmt: skip
        else:
            dense_block(term, code, constants, a.X, a.norms, b.panels, b.norms, 0, len(b.panels), out)
        return out
