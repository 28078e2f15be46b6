"""The formula of a kernel as plain text and as MathML, which browsers draw without a library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from mercer.kernels import Kernel


@dataclass(frozen=True)
class Formula:
    """A piece of a formula.

    Attributes
    ----------
    plain : the piece as text.
    mathml : the piece as MathML elements.
    rank : how tightly it binds: 0 a sum, 1 a product, 2 a power or a function, 3 a single symbol.
    """

    plain: str
    mathml: str
    rank: int = 3

    def bracketed(self, rank: int) -> Formula:
        """The piece in parentheses if it binds less tightly than ``rank``."""
        if self.rank >= rank:
            return self
        return Formula(f"({self.plain})", f"<mrow><mo>(</mo>{self.mathml}<mo>)</mo></mrow>")


def symbol(name: str) -> Formula:
    """A variable."""
    return Formula(name, f"<mi>{escape(name)}</mi>")


def value(given: Any) -> Formula:
    """A number with up to four digits; a text such as "scale" as it is."""
    if isinstance(given, tuple | list):
        parts = [value(one) for one in given]
        inner = "<mo>,</mo>".join(one.mathml for one in parts)
        return Formula(f"({', '.join(one.plain for one in parts)})", f"<mrow><mo>(</mo>{inner}<mo>)</mo></mrow>")
    if isinstance(given, bool) or not isinstance(given, int | float):
        return Formula(str(given), f"<mtext>{escape(str(given))}</mtext>")
    text = f"{given:.4g}".replace("-", "−")
    return Formula(text, f"<mn>{text}</mn>", 3 if given >= 0 else 0)


def row(*pieces: Formula | str, rank: int = 3) -> Formula:
    """Pieces side by side; a text is an operator."""
    plain = "".join(_operator_text(one) if isinstance(one, str) else one.plain for one in pieces)
    mathml = "".join(f"<mo>{escape(one)}</mo>" if isinstance(one, str) else one.mathml for one in pieces)
    return Formula(plain, f"<mrow>{mathml}</mrow>", rank)


def _operator_text(operator: str) -> str:
    return f" {operator} " if operator in "+−=·∕" else operator


def minus(piece: Formula) -> Formula:
    """The negative of a piece."""
    inner = piece.bracketed(1)
    return Formula(f"−{inner.plain}", f"<mrow><mo>−</mo>{inner.mathml}</mrow>", 0)


def plus(left: Formula, right: Formula) -> Formula:
    """A sum."""
    return row(left, "+", right.bracketed(1), rank=0)


def times(left: Formula, right: Formula) -> Formula:
    """A product, without a sign between its factors."""
    if left.plain == "1":
        return right
    first, second = left.bracketed(1), right.bracketed(1)
    gap = " " if first.plain[-1].isalnum() and second.plain[0].isalnum() else ""
    if second.plain[0].isdigit():
        return row(first, "·", second, rank=1)
    return Formula(f"{first.plain}{gap}{second.plain}", f"<mrow>{first.mathml}<mo>⁢</mo>{second.mathml}</mrow>", 1)


_RAISED = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def power(base: Formula, exponent: Formula) -> Formula:
    """A power."""
    inner = base.bracketed(3)
    simple = all(one in "0123456789−" for one in exponent.plain)
    plain = f"{inner.plain}{exponent.plain.translate(_RAISED) if simple else f'^{exponent.bracketed(3).plain}'}"
    return Formula(plain, f"<msup>{inner.mathml}{exponent.mathml}</msup>", 2)


def ratio(top: Formula, bottom: Formula) -> Formula:
    """A fraction."""
    plain = f"{top.bracketed(1).plain}/{bottom.bracketed(2).plain}"
    return Formula(plain, f"<mfrac>{top.mathml}{bottom.mathml}</mfrac>", 1)


def function(name: str, argument: Formula) -> Formula:
    """A named function of an argument."""
    mathml = f"<mi>{name}</mi><mo>⁡</mo><mrow><mo>(</mo>{argument.mathml}<mo>)</mo></mrow>"
    return Formula(f"{name}({argument.plain})", f"<mrow>{mathml}</mrow>", 2)


def total(term: Formula) -> Formula:
    """A sum over the coordinates k."""
    return Formula(f"Σₖ {term.plain}", f"<mrow><munder><mo>∑</mo><mi>k</mi></munder>{term.mathml}</mrow>", 1)


def length(inner: Formula, sub: str = "") -> Formula:
    """|…|, with an index such as 1 for the sum of absolute values."""
    bars = f"<mrow><mo>|</mo>{inner.mathml}<mo>|</mo></mrow>"
    if not sub:
        return Formula(f"|{inner.plain}|", bars)
    return Formula(f"|{inner.plain}|{sub}", f"<msub>{bars}<mn>{'1' if sub == '₁' else sub}</mn></msub>")


_X, _Z = symbol("x"), symbol("z")
_INNER = row("⟨", _X, ",", _Z, "⟩")
_INNER = Formula("⟨x, z⟩", _INNER.mathml)
_DIFFERENCE = row(_X, "−", _Z, rank=0)
_XK = Formula("xₖ", "<msub><mi>x</mi><mi>k</mi></msub>")
_ZK = Formula("zₖ", "<msub><mi>z</mi><mi>k</mi></msub>")
_TWO = value(2)
_SQUARE = power(length(_DIFFERENCE), _TWO)
_CHI = ratio(power(row(_XK, "−", _ZK, rank=0), _TWO), row(_XK, "+", _ZK, rank=0))

Parameter = Callable[[str, str], Formula]


def _matern(kernel: Any, of: Parameter) -> Formula:
    r = symbol("r")
    if kernel.nu == 0.5:
        return function("exp", minus(r))
    root = (
        Formula("√3", "<msqrt><mn>3</mn></msqrt>") if kernel.nu == 1.5 else Formula("√5", "<msqrt><mn>5</mn></msqrt>")
    )
    slope = times(root, r)
    first = plus(value(1), slope)
    if kernel.nu != 1.5:
        first = plus(first, times(ratio(value(5), value(3)), power(r, _TWO)))
    return times(first, function("exp", minus(slope)))


def _polynomial(kernel: Any, of: Parameter) -> Formula:
    scaled = _INNER if kernel.gamma == 1 else times(of("gamma", "γ"), _INNER)
    inner = scaled if kernel.coef0 == 0 else plus(scaled, of("coef0", "c"))
    return power(inner, value(kernel.degree))


def _series(kernel: Any, of: Parameter) -> Formula:
    terms = []
    for k, coefficient in enumerate(kernel.coefficients[:6]):
        if coefficient == 0:
            continue
        raised = value(1) if k == 0 else _INNER if k == 1 else power(_INNER, value(k))
        terms.append(
            value(coefficient) if k == 0 else raised if coefficient == 1 else times(value(coefficient), raised)
        )
    found = terms[0] if terms else value(0)
    for term in terms[1:]:
        found = plus(found, term)
    return found


# the formulas of single kernels
_SINGLE: dict[str, Callable[[Any, Parameter], Formula]] = {
    "Linear": lambda k, of: _INNER,
    "Gaussian": lambda k, of: function("exp", minus(times(of("gamma", "γ"), _SQUARE))),
    "Laplacian": lambda k, of: function("exp", minus(times(of("gamma", "γ"), length(_DIFFERENCE, "₁")))),
    "Polynomial": _polynomial,
    "Sigmoid": lambda k, of: function(
        "tanh", plus(times(of("gamma", "γ"), _INNER), of("coef0", "c")) if k.coef0 else times(of("gamma", "γ"), _INNER)
    ),
    "Constant": lambda k, of: value(k.value),
    "White": lambda k, of: times(of("noise", "σ²"), Formula("[x = z]", row("[", _X, "=", _Z, "]").mathml)),
    "Cosine": lambda k, of: ratio(_INNER, times(length(_X), length(_Z))),
    "Min": lambda k, of: total(function("min", row(_XK, ",", _ZK))),
    "Chi2": lambda k, of: function("exp", minus(times(of("gamma", "γ"), total(_CHI)))),
    "AdditiveChi2": lambda k, of: minus(total(_CHI)),
    "Matern": _matern,
    "RationalQuadratic": lambda k, of: power(
        plus(value(1), ratio(_SQUARE, times(times(_TWO, of("alpha", "α")), power(of("length_scale", "ℓ"), _TWO)))),
        minus(of("alpha", "α")),
    ),
    "Periodic": lambda k, of: function(
        "exp",
        minus(
            ratio(
                times(_TWO, total(power(function("sin", ratio(times(symbol("π"), row(_XK, "−", _ZK, rank=0)),
                                                              of("period", "p"))), _TWO))),
                power(of("length_scale", "ℓ"), _TWO),
            )
        ),
    ),
    "PowerSeries": _series,
}  # fmt: skip

_LETTERS = {"gamma": "γ", "coef0": "c", "alpha": "α", "length_scale": "ℓ", "period": "p", "noise": "σ²"}
_COMBINATIONS = ("Sum", "Product", "Scaled", "Power", "Normalized", "On", "Fixed", "Bounded", "LearnedKernel")


def formula_of(kernel: Kernel) -> Formula:
    """The right side of k(x, z) = …; a single kernel has letters, a combination has numbers."""
    return _formula(kernel, letters=type(kernel).__name__ not in _COMBINATIONS)


def parameters_of(kernel: Kernel) -> list[dict[str, Any]]:
    """The letters of a single kernel and their values."""
    if type(kernel).__name__ in _COMBINATIONS:
        return []
    found = []
    for name, letter in _LETTERS.items():
        if hasattr(kernel, name):
            given = getattr(kernel, name)
            found.append(
                {"letter": letter, "name": name, "value": given if isinstance(given, int | float) else str(given)}
            )
    return found


def _formula(kernel: Any, letters: bool) -> Formula:
    name = type(kernel).__name__
    if name == "Sum":
        return plus(_formula(kernel.left, letters), _formula(kernel.right, letters))
    if name == "Product":
        return row(
            _formula(kernel.left, letters).bracketed(1), "·", _formula(kernel.right, letters).bracketed(1), rank=1
        )
    if name == "Scaled":
        return times(value(kernel.factor), _formula(kernel.kernel, letters))
    if name == "Power":
        return power(_formula(kernel.kernel, letters), value(kernel.exponent))
    if name in ("Fixed", "Bounded"):
        return _formula(kernel.kernel, letters)
    if name == "On":
        return _on_columns(kernel)
    if name == "Normalized":
        product = Formula("√(k(x, x) k(z, z))", "<msqrt><mi>k</mi><mo>(</mo><mi>x</mi><mo>,</mo><mi>x</mi><mo>)</mo>"
                          "<mi>k</mi><mo>(</mo><mi>z</mi><mo>,</mo><mi>z</mi><mo>)</mo></msqrt>", 2)  # fmt: skip
        return ratio(_formula(kernel.kernel, letters), product)
    if name in _SINGLE:

        def of(parameter: str, letter: str) -> Formula:
            return symbol(letter) if letters else value(getattr(kernel, parameter))

        return _SINGLE[name](kernel, of)
    text = repr(kernel)
    return Formula(text, f"<mtext>{escape(text)}</mtext>")


def _on_columns(kernel: Any) -> Formula:
    """A kernel on one coordinate: x becomes x₁ or x₂."""
    inner = _formula(kernel.kernel, letters=False)
    columns = kernel.columns if isinstance(kernel.columns, tuple | list) else (kernel.columns,)
    if len(columns) == 1 and isinstance(columns[0], int) and 0 <= columns[0] <= 8:
        digit = columns[0] + 1
        below = "₁₂₃₄₅₆₇₈₉"[columns[0]]
        if type(kernel.kernel).__name__ == "Linear":
            pair = [f"<msub><mi>{one}</mi><mn>{digit}</mn></msub>" for one in "xz"]
            return Formula(f"x{below}z{below}", f"<mrow>{pair[0]}{pair[1]}</mrow>", 1)
        plain = inner.plain.replace("x", f"x{below}").replace("z", f"z{below}").replace(f"ex{below}p", "exp")
        mathml = inner.mathml
        for one in "xz":
            mathml = mathml.replace(f"<mi>{one}</mi>", f"<msub><mi>{one}</mi><mn>{digit}</mn></msub>")
        return Formula(plain, mathml, inner.rank)
    names = value(tuple(columns)).plain if all(isinstance(one, int | str) for one in columns) else str(kernel.columns)
    return Formula(
        f"{inner.plain} on columns {names}", f"<mrow>{inner.mathml}<mtext> on columns {escape(names)}</mtext></mrow>"
    )


def mathml_of(kernel: Kernel) -> str:
    """k(x, z) = … as a MathML element."""
    left = "<mi>k</mi><mo>(</mo><mi>x</mi><mo>,</mo><mi>z</mi><mo>)</mo>"
    body = f"<mrow><mrow>{left}</mrow><mo>=</mo>{formula_of(kernel).mathml}</mrow>"
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">{body}</math>'
