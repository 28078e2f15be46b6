"""Kernels as values: frozen, compared by their parameters, printed as the expression that builds them.

A kernel holds no data. Training and test samples are prepared each by themselves; ``block`` is the only door to
kernel values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Features, Matrix, Vector

if TYPE_CHECKING:
    from mercer.kernels.feature_maps import FeatureMap


# scikit-learn's default; a value outside gets WIDER times more room on its side
LOWER, UPPER, WIDER = 1e-5, 1e5, 100.0


@dataclass(frozen=True)
class Hyperparameter:
    """One number: its name as in ``get_params``, with a position if there are several; its value and bounds."""

    name: str
    value: float
    lower: float
    upper: float


def numbers_of(name: str, value: Any) -> list[Hyperparameter]:
    """The positive numbers of one parameter, which is a number or a tuple of them."""
    if isinstance(value, tuple):
        return [_hyperparameter(f"{name}[{k}]", v) for k, v in enumerate(value) if v > 0]
    return [_hyperparameter(name, value)] if value > 0 else []


def replace_numbers(value: Any, numbers: Sequence[float]) -> Any:
    """The parameter with its positive numbers replaced by these."""
    if isinstance(value, tuple):
        rest = iter(numbers)
        return tuple(next(rest) if v > 0 else v for v in value)
    return numbers[0] if value > 0 else value


def _hyperparameter(name: str, value: float) -> Hyperparameter:
    lower = LOWER if value >= LOWER else value / WIDER
    upper = UPPER if value <= UPPER else value * WIDER
    return Hyperparameter(name, value, lower, upper)


@dataclass(frozen=True)
class Kernel(ABC):
    """A similarity k(x, z) = <φ(x), φ(z)>."""

    psd: ClassVar[bool] = True
    # parameters, in their order, whose positive values can be learnt
    learnable: ClassVar[tuple[str, ...]] = ()
    # whether K of all samples at once costs less than in parts
    whole: ClassVar[bool] = False
    # numpy's scalars leave ``np.float64(2) * kernel`` to the kernel
    __array_ufunc__: ClassVar[None] = None

    @abstractmethod
    def prepare(self, samples: Any, dtype: Any = np.float64) -> Features:
        """Everything needed once per sample, for values of this dtype."""

    @abstractmethod
    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        """K[i, j] = k(a_i, b_j), written to out if given (any strides between rows, contiguous rows)."""

    def add_product(self, a: Features, b: Features, weights: Vector, out: Vector, scratch: Matrix) -> None:
        """out[i] += Σ_j k(a_i, b_j) weights[j], the weights in the dtype of b; scratch has room for the block."""
        from mercer._numerics.tiles import add_block_product

        add_block_product(self.block(a, b, scratch), weights, out)

    @abstractmethod
    def diagonal(self, a: Features) -> Vector:
        """k(a_i, a_i) in float64."""

    def bind(self, samples: Any) -> Kernel:
        """The same kernel with parameters such as gamma="scale" made numbers."""
        return self

    def check_samples(self, samples: Any) -> None:  # noqa: B027 (most kernels are defined everywhere)
        """Raise InvalidInputError where the kernel is not defined for these samples."""

    def formula(self, b: Features) -> tuple[int, int, Vector] | None:
        """(term, map, parameters) by which compiled loops compute values with columns like b; None if they do not."""
        return None

    @property
    def domain(self) -> str:
        """What a set of samples is, by its name in ``mercer.kernels.domains``.

        "vectors": a matrix of numbers, dense or CSR; "matrix": rows of a kernel matrix; "strings", "sets", "graphs",
        "nodes", "series": a sequence of such objects; "records": a data frame or a sequence of mappings; "any":
        whatever the kernel understands, or does not look at.
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

    def triangle_rows(self, a: Features) -> int:
        """How many rows of K(a, a) to compute at a time where the lower triangle is copied from the upper one.

        Values next to the diagonal are computed twice, more of them the more rows there are; calls cost time, too.
        0 if all of K costs less than a triangle.
        """
        return 192

    @property
    def preparation(self) -> Hashable:
        """All that ``prepare`` depends on: kernels for which this is equal share their prepared samples."""
        return self

    def leaves(self) -> tuple[Kernel, ...]:
        """The kernels in this one that prepare samples, from left to right."""
        return (self,)

    # ---- what can be learnt ----------------------------------------------------------------------------------

    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        """The positive numbers of this kernel that can be learnt, in the order of its parameters, from left to right.

        A parameter that is 0 has no logarithm: it stays as it is. So do those inside of ``Fixed``.

        >>> from mercer.kernels import Gaussian, White
        >>> for parameter in (2.0 * Gaussian((0.5, 0.0, 3.0)) + White(0.1)).hyperparameters():
        ...     print(parameter.name, parameter.value)
        left__factor 2.0
        left__kernel__gamma[0] 0.5
        left__kernel__gamma[2] 3.0
        right__noise 0.1
        """
        found: list[Hyperparameter] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Kernel):
                found += [replace(h, name=f"{field.name}__{h.name}") for h in value.hyperparameters()]
            elif field.name in self.learnable:
                self._check_bound(field.name, value)
                found += numbers_of(field.name, value)
        return tuple(found)

    def with_values(self, values: Sequence[float]) -> Kernel:
        """The same kernel with other values of its ``hyperparameters()``, in their order."""
        expected = len(self.hyperparameters())
        if expected != len(values):
            raise InvalidInputError(f"{self!r} has {expected} hyper-parameters, but {len(values)} values were given.")
        changed: dict[str, Any] = {}
        start = 0
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Kernel):
                count = len(value.hyperparameters())
                changed[field.name] = value.with_values(values[start : start + count])
            elif field.name in self.learnable:
                count = len(numbers_of(field.name, value))
                changed[field.name] = replace_numbers(value, values[start : start + count])
            else:
                continue
            start += count
        return replace(self, **changed)

    @property
    def theta(self) -> Vector:
        """The logarithms of the hyper-parameters."""
        return np.log(np.array([h.value for h in self.hyperparameters()], dtype=np.float64))

    @property
    def bounds(self) -> Matrix:
        """The logarithms of their bounds, a row each."""
        limits = [(h.lower, h.upper) for h in self.hyperparameters()]
        return np.log(np.array(limits, dtype=np.float64).reshape(-1, 2))

    def with_theta(self, theta: Any) -> Kernel:
        """The same kernel with hyper-parameters exp(theta)."""
        with np.errstate(over="ignore"):
            return self.with_values(np.exp(np.asarray(theta, dtype=np.float64)).ravel().tolist())

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        """Σ weights[i, j] ∂k(a_i, b_j) / ∂theta, one number for each of the ``hyperparameters()``.

        The derivatives with respect to logarithms are summed as they are computed: no array holds them all.
        """
        if self.hyperparameters():
            raise NotImplementedError(f"{type(self).__name__} has hyper-parameters, but no gradient_products.")
        return np.empty(0)

    def value_and_gradient_products(self, a: Features, b: Features, weights: Matrix) -> tuple[float, Vector]:
        """Σ weights[i, j] k(a_i, b_j), and ``gradient_products``."""
        return float(np.vdot(weights, self.block(a, b))), self.gradient_products(a, b, weights)

    def add_block(self, a: Features, b: Features, out: Matrix) -> None:
        """out += K(a, b). Edits out."""
        out += self.block(a, b)

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        """Σ_j weights[i, j] ∂k(x_i, z_j) / ∂x_i, a row of d numbers for each sample x_i.

        Of a bound kernel on vectors. Where it has a kink, as |x_k - z_k| has at 0, a slope between those of both sides.

        >>> from mercer.kernels import Gaussian
        >>> import numpy as np
        >>> Gaussian(gamma=0.5).sample_gradients([[1.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]], np.array([[1.0, 1.0]]))
        array([[-0.60653066, -0.        ]])
        """
        raise no_gradients(self)

    def _check_bound(self, name: str, value: Any) -> None:
        if isinstance(value, str):
            raise InvalidInputError(
                f"{self!r} is not bound to samples: {name}={value!r} depends on them. Use kernel.bind(samples) first."
            )

    # ---- values, parameters, algebra -------------------------------------------------------------------------

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
        import mercer.kernels.objects.count_maps  # noqa: F401 (registers the maps of kernels that count)
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

    def brief(self) -> str:
        """The expression that builds this kernel, without options that have their default value."""
        values = [(getattr(self, field.name), field) for field in fields(self)]
        # what comes first says most, if it is more than yes or no
        said = [
            f"{field.name}={value!r}"
            for place, (value, field) in enumerate(values)
            if value != field.default or (place == 0 and not isinstance(value, bool))
        ]
        return f"{type(self).__name__}({', '.join(said)})"

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


def no_gradients(kernel: Kernel) -> InvalidInputError:
    """What to say of a kernel whose samples cannot be moved a little."""
    return InvalidInputError(
        f"{kernel!r} has no derivatives with respect to samples: kernels on vectors and combinations of them have."
    )
