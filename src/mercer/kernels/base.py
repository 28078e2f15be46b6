"""Kernels as values: frozen, compared by their parameters, printed as the expression that builds them.

A kernel holds no data. Training and test samples are prepared separately, and all kernel values come from ``block``.
The end of this file checks parameters that many kernels have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Features, Matrix, Vector, as_matrix

if TYPE_CHECKING:
    from mercer.kernels.feature_maps import FeatureMap


# scikit-learn's default bounds; for a value outside of them, the bound is WIDER times beyond the value
LOWER, UPPER, WIDER = 1e-5, 1e5, 100.0


@dataclass(frozen=True)
class Hyperparameter:
    """One positive number of a kernel that can be learnt, and the bounds of the search for it.

    ``name`` is that of ``get_params``, with a position such as [0] if the parameter has several numbers.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> Gaussian(gamma=0.5).hyperparameters()
    (Hyperparameter(name='gamma', value=0.5, lower=1e-05, upper=100000.0),)
    """

    name: str
    value: float
    lower: float
    upper: float


def numbers_of(name: str, value: Any) -> list[Hyperparameter]:
    """The positive numbers of one parameter, which is a number or a tuple of numbers."""
    if isinstance(value, tuple):
        return [_hyperparameter(f"{name}[{k}]", v) for k, v in enumerate(value) if v > 0]
    return [_hyperparameter(name, value)] if value > 0 else []


def replace_numbers(value: Any, numbers: Sequence[float]) -> Any:
    """The parameter with its positive numbers replaced by the given ones."""
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
    """A similarity k(x, z) = <φ(x), φ(z)>.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> kernel = 0.5 * Gaussian(gamma=0.1) + Linear()
    >>> kernel([[0.0], [1.0]], [[1.0]]).round(3)
    array([[0.452],
           [1.5  ]])
    >>> kernel == 0.5 * Gaussian(gamma=0.1) + Linear()
    True
    """

    psd: ClassVar[bool] = True
    # names of the parameters that can be learnt (their positive numbers), in the order of the fields
    learnable: ClassVar[tuple[str, ...]] = ()
    # whether computing K in one call is cheaper than in blocks
    whole: ClassVar[bool] = False
    # makes numpy leave ``np.float64(2) * kernel`` to the kernel's own operators
    __array_ufunc__: ClassVar[None] = None

    @abstractmethod
    def prepare(self, samples: Any, dtype: Any = np.float64) -> Features:
        """Compute what is needed once per sample; ``dtype`` is that of the kernel values."""

    @abstractmethod
    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        """K[i, j] = k(a_i, b_j), written to ``out`` if given, whose rows must be contiguous (with any row stride)."""

    def add_product(self, a: Features, b: Features, weights: Vector, out: Vector, scratch: Matrix) -> None:
        """out[i] += Σ_j k(a_i, b_j) weights[j]. Weights have the dtype of b; ``scratch`` has room for the block."""
        from mercer._compiled.tiles import add_block_product

        add_block_product(self.block(a, b, scratch), weights, out)

    @abstractmethod
    def diagonal(self, a: Features) -> Vector:
        """k(a_i, a_i) in float64."""

    def bind(self, samples: Any) -> Kernel:
        """The same kernel with parameters that depend on the data, such as gamma="scale", replaced by numbers."""
        return self

    def check_samples(self, samples: Any) -> None:  # noqa: B027 (most kernels are defined everywhere)
        """Raise InvalidInputError if the kernel is not defined for these samples."""

    def formula(self, b: Features) -> tuple[int, int, Vector] | None:
        """(term, map, parameters) with which compiled loops compute values with columns b; None if they cannot."""
        return None

    @property
    def domain(self) -> str:
        """The kind of samples that this kernel compares, by its name in ``mercer.kernels.domains``.

        "vectors": a matrix of numbers, dense or CSR; "matrix": rows of a kernel matrix; "strings", "sets", "graphs",
        "nodes", "series": a sequence of such objects; "records": a data frame or a sequence of mappings; "any": objects
        of any kind.
        """
        return "vectors"

    @property
    def positive_semidefinite(self) -> bool:
        """Whether every Gram matrix of this kernel has only non-negative eigenvalues."""
        return self.psd

    @property
    def psd_is_assumed(self) -> bool:
        """Whether ``positive_semidefinite`` is an assumption: the user's function or matrix was not checked."""
        return False

    def triangle_rows(self, a: Features) -> int:
        """How many rows of K(a, a) to compute per call when the lower triangle is copied from the upper one.

        Values next to the diagonal are computed twice. More rows per call means more such values, but fewer calls.
        0 if computing all of K is cheaper than one triangle and a copy.
        """
        return 192

    @property
    def preparation(self) -> Hashable:
        """A key for ``prepare``: kernels with equal keys prepare samples in the same way and share the result."""
        return self

    def leaves(self) -> tuple[Kernel, ...]:
        """The kernels in this one that prepare samples, from left to right."""
        return (self,)

    # ---- hyper-parameters ------------------------------------------------------------------------------------

    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        """The positive numbers of this kernel that can be learnt, in the order of its parameters, from left to right.

        Parameters inside ``Fixed`` are left out, and parameters of value 0, which have no logarithm.

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
        """The logarithms of the bounds of the hyper-parameters, one row each."""
        limits = [(h.lower, h.upper) for h in self.hyperparameters()]
        return np.log(np.array(limits, dtype=np.float64).reshape(-1, 2))

    def with_theta(self, theta: Any) -> Kernel:
        """The same kernel with hyper-parameters exp(theta)."""
        with np.errstate(over="ignore"):
            return self.with_values(np.exp(np.asarray(theta, dtype=np.float64)).ravel().tolist())

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        """Σ weights[i, j] ∂k(a_i, b_j) / ∂theta, one number for each of the ``hyperparameters()``.

        theta are their logarithms. The derivatives are summed as they are computed: no array holds all of them.
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

        The kernel must be bound and must compare vectors. At a kink, such as that of |x_k - z_k| at 0, the result is a
        slope between those of the two sides.

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
        """An explicit feature map ψ with <ψ(x), ψ(z)> = k(x, z), if one is known ([SSBD] 16.1, 16.2, [CS229] 5.4).

        Parameters
        ----------
        samples : samples like those that it will be applied to
            They determine the number of features, the parameters that ``bind`` sets, the largest value for ``Min``,
            and the radius for ``Gaussian``.
        degree : int, default=None
            For ``Gaussian``, the degree of the Taylor polynomial; None for the lowest degree that keeps to ``error``.
        error : float, default=1e-6
            For ``Gaussian``, the largest |<ψ(x), ψ(z)> - k(x, z)| for samples that are no longer than the given ones.
        max_dimension : int, default=100_000
            The largest number of features. A larger map raises an error that says how many it would have.

        Returns
        -------
        psi : FeatureMap
            A function of samples with the attributes ``dimension`` and ``error``, a bound that is 0 if ψ is exact.

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
        """A new kernel with these parameters changed. This kernel does not change."""
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
        # the first parameter is always printed, unless it is a flag at its default
        said = [
            f"{field.name}={value!r}"
            for place, (value, field) in enumerate(values)
            if value != field.default or (place == 0 and not isinstance(value, bool))
        ]
        return f"{type(self).__name__}({', '.join(said)})"

    def __sklearn_clone__(self) -> Kernel:
        return self  # kernels are immutable

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
    """The error for a kernel without derivatives with respect to samples."""
    return InvalidInputError(
        f"{kernel!r} has no derivatives with respect to samples: only kernels on vectors and combinations of them do."
    )


# ---- parameters of kernels -------------------------------------------------------------------------------------------

Width = float | Literal["scale", "auto"] | tuple[float, ...]
K = TypeVar("K", bound=Kernel)

LARGEST_GAMMA = float(np.finfo(np.float64).max)
ENTRIES_AT_A_TIME = 1 << 20


def gamma_of(samples: Any, rule: str) -> float:
    """scikit-learn's rules: "scale" is 1 / (d var(X)), "auto" is 1 / d."""
    samples = as_matrix(samples)
    n, d = samples.shape
    if rule == "auto" or n == 0:
        return 1.0 / d
    if sp.issparse(samples):
        values = samples.data.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = values.sum() / (n * d)
            squares = float(np.square(values - mean).sum()) + float((n * d - len(values)) * np.square(mean))
        variance = squares / (n * d)
    else:
        # in parts, so that float32 samples are not all copied to float64 at once
        step = max(1, ENTRIES_AT_A_TIME // d)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(samples.mean(dtype=np.float64))
            parts = (np.subtract(samples[i : i + step], mean, dtype=np.float64) for i in range(0, n, step))
            variance = float(sum(np.square(part).sum() for part in parts) / (n * d))
    if not np.isfinite(variance):
        raise InvalidInputError(
            "The dual coefficients or intercepts are not finite. The input data may contain large values and need to "
            "be preprocessed: gamma='scale' is 1 / (d var(X)), and the variance of values up to "
            f"{abs(samples).max():.1e} is beyond float64. Scale the features, for example with StandardScaler."
        )
    # for almost equal samples the largest finite number: infinity times a distance of 0 would be NaN
    return min(1.0 / (d * variance), LARGEST_GAMMA) if variance > 0 else 1.0


def bind_gamma(kernel: K, samples: Any) -> K:
    """The kernel with gamma="scale" or "auto" replaced by a number."""
    gamma = kernel.gamma  # type: ignore[attr-defined]
    if not isinstance(gamma, str):
        return kernel
    return replace(kernel, gamma=gamma_of(samples, gamma))  # type: ignore[call-arg]


def gamma_number(kernel: Kernel, gamma: Width) -> float:
    """The single gamma of all features; 1 if there is one per feature, since ``prepare`` has applied them."""
    if isinstance(gamma, str):
        raise InvalidInputError(
            f"{kernel!r} is not bound to samples: gamma={gamma!r} depends on them. Use kernel.bind(samples) first."
        )
    return 1.0 if isinstance(gamma, tuple) else gamma


def check_width(name: str, value: Any, smallest: float = 0.0) -> Any:
    """Return a width as a float, or as a tuple with one number per feature; raise if it is neither."""
    if type(value) is float and smallest <= value < np.inf:
        return value
    try:
        array = np.asarray(value, dtype=np.float64)
        valid = array.ndim <= 1 and array.size > 0 and bool(np.all(np.isfinite(array)) and np.all(array >= smallest))
    except (TypeError, ValueError):
        valid = False
    if not valid:
        bound = "at least 0" if smallest == 0 else "positive"
        raise InvalidInputError(f"{name}={value!r} must be a finite number, {bound}, or one such number per feature.")
    return float(array) if array.ndim == 0 else tuple(array.tolist())


def check_gamma(value: Any) -> Any:
    """Return a width, or the name of a rule for it; raise if it is neither."""
    if not isinstance(value, str):
        return check_width("gamma", value)
    if value not in ("scale", "auto"):
        raise InvalidInputError(
            f"gamma={value!r} is not known: give a number, one number per feature, 'scale' or 'auto'."
        )
    return str(value)


def check_number(name: str, value: Any) -> float:
    """Return a finite float, or raise."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.inf
    if not np.isfinite(number):
        raise InvalidInputError(f"{name}={value!r} must be a finite number.")
    return number


def check_positive(name: str, value: Any) -> float:
    """Return a finite float above 0, or raise."""
    number = check_number(name, value)
    if number <= 0:
        raise InvalidInputError(f"{name}={value!r} must be positive.")
    return number


def check_whole(name: str, value: Any, smallest: int) -> int:
    """Return an int of at least ``smallest``, or raise."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = smallest - 1
    if isinstance(value, str) or number != value or number < smallest:
        raise InvalidInputError(f"{name}={value!r} must be a whole number, at least {smallest}.")
    return number
