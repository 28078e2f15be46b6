"""scikit-learn's kernels for Gaussian processes as kernels of mercer.

If mercer has an equivalent kernel, it computes the values. Derivatives follow by the chain rule, since each of mercer's
hyper-parameters is a multiple of a power of scikit-learn's. Any other kernel, including the user's own classes,
computes its values and derivatives itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._compiled.thread_pool import cached_property
from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Hyperparameter, Kernel, no_gradients
from mercer.kernels.combinators import Constant
from mercer.kernels.features import Features, Matrix, Vector, as_matrix, count_samples, take_samples
from mercer.kernels.learnable import Fixed
from mercer.kernels.noise import White
from mercer.kernels.radial import Gaussian, Matern, Periodic, RationalQuadratic
from mercer.kernels.vectors import Linear


def is_sklearn_kernel(kernel: Any) -> bool:
    """Whether this is a kernel object of scikit-learn, decided by its attributes, without an import."""
    return not isinstance(kernel, type) and all(
        hasattr(kernel, name) for name in ("clone_with_theta", "requires_vector_input", "diag")
    )


def _has_compound(kernel: Any) -> bool:
    """Whether some part of a scikit-learn kernel is a CompoundKernel."""
    from sklearn.gaussian_process.kernels import CompoundKernel

    parts = [getattr(kernel, name) for name in ("k1", "k2", "kernel") if hasattr(kernel, name)]
    return isinstance(kernel, CompoundKernel) or any(map(_has_compound, parts))


class Observations:
    """Samples unchanged, with their numbers among the samples prepared together."""

    def __init__(self, samples: Any, numbers: Vector, origin: object, dtype: Any) -> None:
        self.samples = samples
        self.numbers = numbers
        self.origin = origin
        self.dtype = np.dtype(dtype)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, index: Vector) -> Observations:
        """The samples at these positions."""
        return Observations(take_samples(self.samples, index), self.numbers[index], self.origin, self.dtype)

    def union(self, other: Observations) -> tuple[Any, Vector, Vector]:
        """(samples, rows, columns): the samples of both without repeats, and the positions of each side in them."""
        numbers, first, place = np.unique(
            np.concatenate([self.numbers, other.numbers]), return_index=True, return_inverse=True
        )
        if len(numbers) == len(self) and np.array_equal(place[: len(self)], np.arange(len(self))):
            return self.samples, place[: len(self)], place[len(self) :]
        both = [take_samples(s, index) for s, index in (
            (self.samples, first[first < len(self)]), (other.samples, first[first >= len(self)] - len(self))
        )]  # fmt: skip
        where = np.argsort(np.concatenate([np.flatnonzero(first < len(self)), np.flatnonzero(first >= len(self))]))
        joined = np.concatenate(both) if isinstance(both[0], np.ndarray) else [*both[0], *both[1]]
        return take_samples(joined, where), place[: len(self)], place[len(self) :]


@dataclass(frozen=True, repr=False)
class SklearnKernel(Kernel):
    """A kernel of ``sklearn.gaussian_process.kernels``, or of a subclass of its ``Kernel``.

    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> SklearnKernel(RBF(2.0) + WhiteKernel(0.1))([[0.0], [2.0]]).round(3)
    array([[1.1  , 0.607],
           [0.607, 1.1  ]])
    """

    kernel: Any
    n_features: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not is_sklearn_kernel(self.kernel):
            raise InvalidInputError(
                f"SklearnKernel takes a kernel of sklearn.gaussian_process.kernels, but was given {self.kernel!r}."
            )
        if _has_compound(self.kernel):
            raise InvalidInputError(
                "CompoundKernel holds several kernels with a matrix each: scikit-learn's GaussianProcessClassifier "
                "builds it from the kernels of its classes. One process has one covariance: add or multiply the "
                "kernels, or fit one process per kernel."
            )
        from sklearn.base import clone

        object.__setattr__(self, "kernel", clone(self.kernel))  # a copy that the caller cannot change

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"SklearnKernel({self.kernel!r})"

    @cached_property
    def equal(self) -> Translation | None:
        """The equivalent kernel of mercer; None if there is none."""
        found = translate(self.kernel, self.n_features)
        return found if found is not None and len(found.kernel.hyperparameters()) == len(self.theta) else None

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return self.equal is None

    @property
    def domain(self) -> str:
        return "vectors" if self.kernel.requires_vector_input else "any"

    @property
    def psd_is_assumed(self) -> bool:
        return self.equal is None

    @property
    def positive_semidefinite(self) -> bool:
        return self.equal is None or self.equal.kernel.positive_semidefinite

    @property
    def preparation(self) -> Hashable:
        return ("observations",) if self.equal is None else ("sklearn", self.equal.kernel.preparation)

    def bind(self, samples: Any) -> Kernel:
        if self.domain != "vectors":
            return self
        return replace(self, n_features=int(as_matrix(samples).shape[1]))

    def prepare(self, samples: Any, dtype: Any = np.float64) -> Features:
        if self.equal is not None:
            return self.equal.kernel.prepare(samples, dtype)
        dense = samples.toarray() if sp.issparse(samples) else samples
        return Observations(dense, np.arange(count_samples(samples)), object(), dtype)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        if self.equal is not None:
            return self.equal.kernel.block(a, b, out)
        assert isinstance(a, Observations) and isinstance(b, Observations)
        if out is None:
            out = np.empty((len(a), len(b)), b.dtype)
        if len(a) == 0 or len(b) == 0:
            return out
        if a.origin is b.origin:
            samples, rows, columns = a.union(b)
            out[...] = self._matrix(samples)[np.ix_(rows, columns)]
        else:
            out[...] = self._matrix(a.samples, b.samples)
        return out

    def _matrix(self, X: Any, Z: Any = None) -> Matrix:
        """The kernel matrix between X and Z, or of X alone."""
        K = np.asarray(self.kernel(X) if Z is None else self.kernel(X, Z))
        expected = (count_samples(X), count_samples(X if Z is None else Z))
        if K.shape != expected:
            raise InvalidInputError(
                f"{self.kernel!r} returned an array of shape {K.shape} for {expected[0]} and {expected[1]} samples: it "
                f"must return a matrix of shape {expected}."
            )
        return K

    def diagonal(self, a: Features) -> Vector:
        if self.equal is not None:
            return self.equal.kernel.diagonal(a)
        assert isinstance(a, Observations)
        return np.array(self.kernel.diag(a.samples), dtype=np.float64)

    # ---- hyper-parameters ------------------------------------------------------------------------------------

    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        found: list[Hyperparameter] = []
        values = iter(np.exp(self.kernel.theta).tolist())
        for h in self.kernel.hyperparameters:
            if h.fixed:
                continue
            for k, (lower, upper) in enumerate(np.broadcast_to(h.bounds, (h.n_elements, 2)).tolist()):
                name = f"{h.name}[{k}]" if h.n_elements > 1 else h.name
                found.append(Hyperparameter(name, next(values), lower, upper))
        return tuple(found)

    @property
    def theta(self) -> Vector:
        return np.array(self.kernel.theta, dtype=np.float64)

    @property
    def bounds(self) -> Matrix:
        return np.array(self.kernel.bounds, dtype=np.float64).reshape(-1, 2)

    def with_theta(self, theta: Any) -> Kernel:
        return replace(self, kernel=self.kernel.clone_with_theta(np.asarray(theta, dtype=np.float64)))

    def with_values(self, values: Sequence[float]) -> Kernel:
        return self.with_theta(np.log(values))

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        if self.equal is not None:
            return self.equal.powers * self.equal.kernel.gradient_products(a, b, weights)
        assert isinstance(a, Observations) and isinstance(b, Observations)
        if a.origin is not b.origin:
            a, b = (Observations(f.samples, f.numbers + k, a, f.dtype) for f, k in ((a, 0), (b, 1 + a.numbers.max())))
        samples, rows, columns = a.union(b)
        _, gradient = self.kernel(samples, eval_gradient=True)
        return np.einsum("ij,ijk->k", weights, np.asarray(gradient)[np.ix_(rows, columns)])

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        if self.equal is None:
            raise no_gradients(self)
        return self.equal.kernel.sample_gradients(X, Z, weights)


class Translation(NamedTuple):
    """A kernel of mercer, and for each free hyper-parameter the power of scikit-learn's that it is proportional to."""

    kernel: Kernel
    powers: Vector


class _Leaf(NamedTuple):
    """A kernel of mercer, and for each parameter of scikit-learn's: its name there, its name here, and the power."""

    kernel: Kernel
    parameters: tuple[tuple[str, str, float], ...]


def translate(kernel: Any, n_features: int | None = None) -> Translation | None:
    """The kernel of mercer with the same values as one of scikit-learn; None if there is none."""
    from sklearn.gaussian_process import kernels as theirs

    if type(kernel) in (theirs.Sum, theirs.Product):
        left, right = translate(kernel.k1, n_features), translate(kernel.k2, n_features)
        if left is None or right is None:
            return None
        if type(kernel) is theirs.Sum:
            both = left.kernel + right.kernel
        elif isinstance(left.kernel, Constant):
            both = left.kernel.value * right.kernel
        else:
            both = left.kernel * right.kernel
        return Translation(both, np.concatenate([left.powers, right.powers]))
    if type(kernel) is theirs.Exponentiation:
        inner = translate(kernel.kernel, n_features)
        if inner is None or kernel.exponent < 1 or kernel.exponent != int(kernel.exponent):
            return None
        return Translation(inner.kernel ** int(kernel.exponent), inner.powers)
    leaf = _leaf(kernel, n_features)
    if leaf is None:
        return None
    ours, powers = leaf.kernel, []
    described = {h.name: h for h in kernel.hyperparameters}
    for name, own, power in leaf.parameters:
        if described[name].fixed:
            ours = Fixed(ours, f"kernel__{own}" if isinstance(ours, Fixed) else own)
        else:
            powers += [power] * described[name].n_elements
    return Translation(ours, np.array(powers))


def _leaf(kernel: Any, n_features: int | None) -> _Leaf | None:
    from sklearn.gaussian_process import kernels as theirs

    kind = type(kernel)
    if kind is theirs.ConstantKernel:
        return _Leaf(Constant(kernel.constant_value), (("constant_value", "value", 1.0),))
    if kind is theirs.WhiteKernel:
        return _Leaf(White(kernel.noise_level), (("noise_level", "noise", 1.0),))
    if kind is theirs.DotProduct:
        return _Leaf(Linear() + Constant(kernel.sigma_0**2), (("sigma_0", "right__value", 2.0),))
    if kind is theirs.RationalQuadratic:
        ours: Kernel = RationalQuadratic(kernel.alpha, kernel.length_scale)
        return _Leaf(ours, (("alpha", "alpha", 1.0), ("length_scale", "length_scale", 1.0)))
    if kind is theirs.ExpSineSquared and n_features == 1:  # theirs takes the sine of the distance, ours of each feature
        ours = Periodic(kernel.length_scale, kernel.periodicity)
        return _Leaf(ours, (("length_scale", "length_scale", 1.0), ("periodicity", "period", 1.0)))
    if kind not in (theirs.RBF, theirs.Matern):
        return None
    scale: Any = np.asarray(kernel.length_scale, dtype=np.float64)
    if scale.size != 1 and n_features is not None and scale.size != n_features:
        return None  # scikit-learn raises the error
    scale = float(scale.item()) if scale.size == 1 else tuple(scale.tolist())
    if kind is theirs.RBF or kernel.nu == np.inf:
        return _Leaf(Gaussian.from_sigma(scale), (("length_scale", "gamma", -2.0),))
    if kernel.nu not in (0.5, 1.5, 2.5):
        return None
    return _Leaf(Matern(kernel.nu, scale), (("length_scale", "length_scale", 1.0),))
