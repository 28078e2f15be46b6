"""Kernels on vectors as expression trees, which the exporters write as ONNX, Python or C.

A formula computes k(x, z) from sums over the features of a sample x and a support vector z. The exporters handle only
the node types of this module; they do not know individual kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels import (
    AdditiveChi2,
    Chi2,
    Constant,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Min,
    Normalized,
    On,
    Periodic,
    Polynomial,
    Power,
    PowerSeries,
    Product,
    RationalQuadratic,
    Scaled,
    Sigmoid,
    SklearnKernel,
    Sum,
    White,
)
from mercer.kernels.features import Matrix, Vector
from mercer.kernels.learnable import Transparent


class Formula:
    """A number for each pair (x, z)."""

    def __add__(self, other: Formula | float) -> Formula:
        return Add(self, other if isinstance(other, Formula) else Number(float(other)))

    def __mul__(self, other: Formula | float) -> Formula:
        return Multiply(self, other if isinstance(other, Formula) else Number(float(other)))


@dataclass(frozen=True, eq=False)
class Number(Formula):
    """A constant."""

    value: float


@dataclass(frozen=True, eq=False)
class Features(Formula):
    """Σ weight_k term(x_k, z_k) over some columns.

    term is "dot" (x z), "square" ((x - z)²), "absolute" (|x - z|), "min", "chi2" ((x - z)² / (x + z), 0 for 0/0), or
    "sine" (4 sin²(x - z)). ``columns`` are feature indices, ``weights`` one factor per column. ``small`` requires small
    sums to be accurate to full precision, because a square root follows.
    """

    term: str
    columns: tuple[int, ...]
    weights: tuple[float, ...]
    small: bool = False


@dataclass(frozen=True, eq=False)
class Add(Formula):
    """left + right."""

    left: Formula
    right: Formula


@dataclass(frozen=True, eq=False)
class Multiply(Formula):
    """left · right."""

    left: Formula
    right: Formula


@dataclass(frozen=True, eq=False)
class Call(Formula):
    """A function of one number: "exp", "tanh", "sqrt" or "log1p"."""

    function: str
    argument: Formula


@dataclass(frozen=True, eq=False)
class Whole(Formula):
    """base ** exponent for an integer exponent ≥ 0."""

    base: Formula
    exponent: int


@dataclass(frozen=True, eq=False)
class Unit(Formula):
    """1 / √v(x), or 0 if v(x) = 0, where v(x) is the formula ``own`` for the pair (x, x)."""

    own: Formula


@dataclass(frozen=True, eq=False)
class UnitStored(Formula):
    """`Unit` of the support vector z instead of x. The exporters store its value."""

    own: Formula


def formula_of(kernel: Kernel, n_features: int) -> Formula:
    """Return the formula of a bound kernel for vectors with ``n_features`` features."""
    return _formula(kernel, tuple(range(n_features)))


@singledispatch
def _formula(kernel: Kernel, columns: tuple[int, ...]) -> Formula:
    if hasattr(kernel, "expression"):  # the kernel is defined as a combination of others
        return _formula(kernel.expression(), columns)
    raise InvalidInputError(
        f"{kernel!r} cannot be exported. Kernels on vectors and combinations of them can; save models with other "
        "kernels with mercer.save."
    )


def _sum(term: str, columns: tuple[int, ...], width: Any = 1.0, power: float = 1.0, small: bool = False) -> Formula:
    """Σ width^power term, with one width or one per feature."""
    weights = np.broadcast_to(np.asarray(width, dtype=np.float64), len(columns)) ** power
    return Features(term, columns, tuple(weights.tolist()), small)


@_formula.register
def _(kernel: Linear, columns: tuple[int, ...]) -> Formula:
    return _sum("dot", columns)


@_formula.register
def _(kernel: Polynomial, columns: tuple[int, ...]) -> Formula:
    return Whole(_sum("dot", columns, kernel.gamma) + kernel.coef0, kernel.degree)


@_formula.register
def _(kernel: PowerSeries, columns: tuple[int, ...]) -> Formula:
    t = _sum("dot", columns)
    total: Formula = Number(kernel.coefficients[-1])
    for coefficient in kernel.coefficients[-2::-1]:  # by Horner's rule
        total = total * t + coefficient
    return total


@_formula.register
def _(kernel: Sigmoid, columns: tuple[int, ...]) -> Formula:
    return Call("tanh", _sum("dot", columns, kernel.gamma) + kernel.coef0)


@_formula.register
def _(kernel: Cosine, columns: tuple[int, ...]) -> Formula:
    t = _sum("dot", columns)
    return t * Unit(t) * UnitStored(t)


@_formula.register
def _(kernel: Min, columns: tuple[int, ...]) -> Formula:
    return _sum("min", columns)


@_formula.register
def _(kernel: Gaussian, columns: tuple[int, ...]) -> Formula:
    return Call("exp", _sum("square", columns, kernel.gamma) * -1.0)


@_formula.register
def _(kernel: Laplacian, columns: tuple[int, ...]) -> Formula:
    return Call("exp", _sum("absolute", columns, kernel.gamma) * -1.0)


@_formula.register
def _(kernel: Matern, columns: tuple[int, ...]) -> Formula:
    squares = _sum("square", columns, kernel.length_scale, -2.0, small=True)
    r = Call("sqrt", squares) * float(np.sqrt(2.0 * kernel.nu))
    factor = {0.5: Number(1.0), 1.5: r + 1.0, 2.5: r + 1.0 + r * r * (1.0 / 3.0)}[kernel.nu]
    return factor * Call("exp", r * -1.0)


@_formula.register
def _(kernel: RationalQuadratic, columns: tuple[int, ...]) -> Formula:
    u = _sum("square", columns, kernel.length_scale, -2.0) * (0.5 / kernel.alpha)
    return Call("exp", Call("log1p", u) * -kernel.alpha)


@_formula.register
def _(kernel: Chi2, columns: tuple[int, ...]) -> Formula:
    return Call("exp", _sum("chi2", columns) * -kernel.gamma)


@_formula.register
def _(kernel: AdditiveChi2, columns: tuple[int, ...]) -> Formula:
    return _sum("chi2", columns) * -1.0


@_formula.register
def _(kernel: Periodic, columns: tuple[int, ...]) -> Formula:
    sines = Features("sine", columns, (np.pi / kernel.period,) * len(columns))
    return Call("exp", sines * (-0.5 / kernel.length_scale**2))


@_formula.register
def _(kernel: Constant, columns: tuple[int, ...]) -> Formula:
    return Number(kernel.value)


@_formula.register
def _(kernel: White, columns: tuple[int, ...]) -> Formula:
    return Number(0.0)  # a new sample is not one of the support vectors


@_formula.register
def _(kernel: Sum, columns: tuple[int, ...]) -> Formula:
    return _formula(kernel.left, columns) + _formula(kernel.right, columns)


@_formula.register
def _(kernel: Product, columns: tuple[int, ...]) -> Formula:
    return _formula(kernel.left, columns) * _formula(kernel.right, columns)


@_formula.register
def _(kernel: Scaled, columns: tuple[int, ...]) -> Formula:
    return _formula(kernel.kernel, columns) * kernel.factor


@_formula.register
def _(kernel: Power, columns: tuple[int, ...]) -> Formula:
    return Whole(_formula(kernel.kernel, columns), kernel.exponent)


@_formula.register
def _(kernel: Transparent, columns: tuple[int, ...]) -> Formula:
    return _formula(kernel.kernel, columns)


@_formula.register
def _(kernel: Normalized, columns: tuple[int, ...]) -> Formula:
    if any(isinstance(inside, White) for inside in kernel.get_params().values()):
        raise InvalidInputError(
            f"{kernel!r} cannot be exported: White noise depends on which observations are the same. Save the model "
            "with mercer.save."
        )
    inner = _formula(kernel.kernel, columns)
    return inner * Unit(inner) * UnitStored(inner)


@_formula.register
def _(kernel: On, columns: tuple[int, ...]) -> Formula:
    if kernel.names:
        raise InvalidInputError(
            f"{kernel!r} selects columns by name and cannot be exported: select them by number, or use mercer.save."
        )
    chosen = kernel.columns if isinstance(kernel.columns, tuple) else (kernel.columns,)
    return _formula(kernel.kernel, tuple(columns[int(c)] for c in chosen))


@_formula.register
def _(kernel: SklearnKernel, columns: tuple[int, ...]) -> Formula:
    if kernel.equal is None:
        raise InvalidInputError(
            f"{kernel!r} is computed by scikit-learn and cannot be exported: use a kernel of mercer, or mercer.save."
        )
    return _formula(kernel.equal.kernel, columns)


# ---- evaluation, for values that are known when the model is exported ------------------------------------------------


def evaluate(formula: Formula, A: Matrix, B: Matrix) -> Matrix:
    """Evaluate the formula for each row of A paired with the same row of B."""
    if isinstance(formula, Number):
        return np.full(len(A), formula.value)
    if isinstance(formula, Features):
        a, b = (M[:, list(formula.columns)] for M in (A, B))
        return _terms(formula.term, a, b, np.array(formula.weights)).sum(axis=1)
    if isinstance(formula, Add):
        return evaluate(formula.left, A, B) + evaluate(formula.right, A, B)
    if isinstance(formula, Multiply):
        return evaluate(formula.left, A, B) * evaluate(formula.right, A, B)
    if isinstance(formula, Call):
        return {"exp": np.exp, "tanh": np.tanh, "sqrt": np.sqrt, "log1p": np.log1p}[formula.function](
            evaluate(formula.argument, A, B)
        )
    if isinstance(formula, Whole):
        return evaluate(formula.base, A, B) ** formula.exponent
    if isinstance(formula, Unit):
        return _reciprocal_root(evaluate(formula.own, A, A))
    assert isinstance(formula, UnitStored)
    return _reciprocal_root(evaluate(formula.own, B, B))


def stored_units(formula: UnitStored, vectors: Matrix) -> Vector:
    """Return the values of the formula for all support vectors."""
    return _reciprocal_root(evaluate(formula.own, vectors, vectors))


def _reciprocal_root(values: Vector) -> Vector:
    return np.divide(1.0, np.sqrt(values), out=np.zeros(len(values)), where=values > 0)


def _terms(term: str, a: Matrix, b: Matrix, weights: Vector) -> Matrix:
    if term == "dot":
        return weights * a * b
    if term == "min":
        return weights * np.minimum(a, b)
    if term == "sine":
        return 4.0 * np.sin(weights * (a - b)) ** 2
    if term == "absolute":
        return weights * np.abs(a - b)
    square = (a - b) ** 2
    if term == "chi2":
        square = np.divide(square, a + b, out=np.zeros(square.shape), where=a + b > 0)
    return weights * square
