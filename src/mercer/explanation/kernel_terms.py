"""Kernels as sums of terms whose Shapley values have exact formulas.

    k(x, s) = Σ_terms  factor · Π_l w_l(x_l, s_l) · g(Σ_l u_l(x_l, s_l)),     g a polynomial

Gaussian, Laplacian, chi² and periodic kernels are products w_l = exp(-...); linear, Min and additive chi² kernels are
sums u_l with g(u) = u; polynomial kernels are powers of a sum. Sums, products and whole powers of such kernels are
again sums of terms, unless a product has two different sums.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.polynomial import polynomial

from mercer.io.formats.formulas import (
    Add,
    Call,
    Features,
    Formula,
    Multiply,
    Number,
    Unit,
    UnitStored,
    Whole,
    evaluate,
)
from mercer.kernels.features import Matrix, Vector

# a kernel with more terms, or with a polynomial of a higher degree, is explained by sampling
MOST_TERMS, HIGHEST_DEGREE = 100, 12


@dataclass(frozen=True, eq=False)
class Term:
    """factor · exp(Σ scale · features) · Π own · g(total).

    Attributes
    ----------
    factor : a number.
    exponents : pairs (sum over features, scale).
    own : formulas of a single column each.
    total : the sum over features that g is a function of; None if g is 1.
    g : coefficients of the polynomial, lowest degree first.
    """

    factor: float = 1.0
    exponents: tuple[tuple[Features, float], ...] = ()
    own: tuple[tuple[int, Formula], ...] = ()
    total: Features | None = None
    g: tuple[float, ...] = (1.0,)

    @property
    def key(self) -> Hashable:
        """Terms with equal keys differ in factor and g only."""
        return (
            tuple(sorted((_key(f), scale) for f, scale in self.exponents)),
            tuple(id(formula) for _, formula in self.own),
            None if self.total is None else _key(self.total),
        )

    @property
    def additive(self) -> bool:
        """Whether the term is a sum of functions of single features."""
        return not self.exponents and not self.own and len(self.g) <= 2

    @property
    def polynomial(self) -> bool:
        """Whether the term is a polynomial of an inner product of features."""
        return not self.exponents and not self.own and self.total is not None and self.total.term == "dot"

    def columns(self) -> list[int]:
        """The columns that the term depends on."""
        sums = [*(f for f, _ in self.exponents), *([] if self.total is None else [self.total])]
        found = {c for f in sums for c, weight in zip(f.columns, f.weights, strict=True) if weight != 0}
        return sorted(found | {c for c, _ in self.own})

    def weights(self, X: Matrix, S: Matrix, columns: list[int]) -> Matrix:
        """w_l(x_l, s_l) as an array of shape (rows, columns, vectors)."""
        logs = np.zeros((len(X), len(columns), len(S)))
        for features, scale in self.exponents:
            _add_sums(features, scale, X, S, columns, logs)
        values = np.exp(logs, out=logs)
        for c, formula in self.own:
            values[:, columns.index(c)] *= _table(formula, c, X, S)
        return values

    def sums(self, X: Matrix, S: Matrix, columns: list[int]) -> Matrix:
        """u_l(x_l, s_l) as an array of shape (rows, columns, vectors)."""
        values = np.zeros((len(X), len(columns), len(S)))
        if self.total is not None:
            _add_sums(self.total, 1.0, X, S, columns, values)
        return values


def _key(features: Features) -> tuple[str, tuple[int, ...], tuple[float, ...]]:
    return features.term, features.columns, features.weights


def _add_sums(features: Features, scale: float, X: Matrix, S: Matrix, columns: list[int], out: Matrix) -> None:
    """Add the terms of a sum over features to out, column by column."""
    for c, weight in zip(features.columns, features.weights, strict=True):
        if weight != 0:
            out[:, columns.index(c)] += scale * _table(Features(features.term, (c,), (weight,)), c, X, S)


def _table(formula: Formula, column: int, X: Matrix, S: Matrix) -> Matrix:
    """The formula of a single column for all pairs of rows of X and S."""
    shape = (len(X) * len(S), column + 1)
    x = np.broadcast_to(np.repeat(X[:, column], len(S))[:, None], shape)
    s = np.broadcast_to(np.tile(S[:, column], len(X))[:, None], shape)
    return evaluate(formula, x, s).reshape(len(X), len(S))


def terms_of(formula: Formula) -> list[Term] | None:
    """Write the formula of a kernel as a sum of terms; None if it has another form."""
    terms = _expand(formula)
    return None if terms is None or any(len(t.g) > HIGHEST_DEGREE + 1 for t in terms) else terms


def _expand(formula: Formula) -> list[Term] | None:
    if isinstance(formula, Number):
        return [Term(formula.value)]
    if isinstance(formula, Features):
        return [Term(total=formula, g=(0.0, 1.0))]
    if isinstance(formula, Add):
        left, right = _expand(formula.left), _expand(formula.right)
        found = None if left is None or right is None else _merged([*left, *right])
    elif isinstance(formula, Multiply):
        found = _times(_expand(formula.left), _expand(formula.right))
    elif isinstance(formula, Whole):
        found, base = [Term()], _expand(formula.base)
        for _ in range(formula.exponent):
            found = _times(found, base)
            if found is None:
                break
    elif isinstance(formula, Call) and formula.function == "exp":
        found = _exponential(_expand(formula.argument))
    else:
        found = None
    if found is None:
        columns = set(_columns(formula))
        if len(columns) == 1:  # any function of one feature
            return [Term(own=((columns.pop(), formula),))]
    return found


def _columns(formula: Formula) -> Iterator[int]:
    """The columns of all sums in a formula."""
    if isinstance(formula, Features):
        yield from formula.columns
    elif isinstance(formula, Add | Multiply):
        yield from _columns(formula.left)
        yield from _columns(formula.right)
    elif isinstance(formula, Call):
        yield from _columns(formula.argument)
    elif isinstance(formula, Whole):
        yield from _columns(formula.base)
    elif isinstance(formula, Unit | UnitStored):
        yield from _columns(formula.own)


def _exponential(terms: list[Term] | None) -> list[Term] | None:
    """exp of a sum over features."""
    if terms is None or not all(term.additive for term in terms):
        return None
    exponents = tuple((t.total, t.factor * t.g[1]) for t in terms if t.total is not None and len(t.g) == 2)
    return [Term(float(np.exp(sum(t.factor * t.g[0] for t in terms))), exponents)]


def _times(left: list[Term] | None, right: list[Term] | None) -> list[Term] | None:
    """The product of two sums of terms; None if it has a product of two different sums over features."""
    if left is None or right is None or len(left) * len(right) > MOST_TERMS:
        return None
    found = []
    for a, b in product(left, right):
        if a.total is not None and b.total is not None and _key(a.total) != _key(b.total):
            return None
        g = tuple(polynomial.polymul(a.g, b.g).tolist())
        total = b.total if a.total is None else a.total
        found.append(Term(a.factor * b.factor, a.exponents + b.exponents, a.own + b.own, total, g))
    return _merged(found)


def _merged(terms: list[Term]) -> list[Term]:
    """Add up the polynomials of terms that differ in nothing else; a constant joins any polynomial."""
    found: dict[Hashable, Term] = {}
    for term in sorted(terms, key=lambda t: t.total is None):
        key = next((k for k, other in found.items() if _joins(term, other)), term.key)
        if key in found:
            other = found[key]
            g: Vector = polynomial.polyadd(np.multiply(term.factor, term.g), np.multiply(other.factor, other.g))
            found[key] = replace(other, factor=1.0, g=tuple(g.tolist()))
        else:
            found[key] = term
    return list(found.values())


def _joins(term: Term, other: Term) -> bool:
    """Whether the two differ in factor and polynomial only."""
    return term.key[:2] == other.key[:2] and (term.total is None or term.key[2] == other.key[2])  # type: ignore[index]
