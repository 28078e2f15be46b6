"""The interface of a target language for generated source code, and its templates in Python; `c_templates` has C."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.kernels.features import Matrix, Vector

WIDTH = 110


def wrapped(words: Iterable[str], indent: str) -> str:
    """Join words with commas, on lines of at most `WIDTH` characters."""
    lines, line = [], indent
    for word in words:
        if len(line) + len(word) + 2 > WIDTH and line != indent:
            lines.append(line.rstrip())
            line = indent
        line += f"{word}, "
    return "\n".join([*lines, line.rstrip()]).rstrip(",")


@dataclass(frozen=True)
class Language:
    """How numbers and tables are written, and templates of functions.

    ``sums`` are functions that kernels use, ``rules`` functions that convert values to predictions.
    """

    head: str
    inside: str
    prepare: dict[bool, str]
    linear: str
    kernel: str
    sums: dict[str, str]
    rules: dict[str, str]
    indent: str = field(default="    ")

    def ref(self, name: str) -> str:
        """Return the reference to a table."""
        return name

    def number(self, value: float) -> str:
        """Write a number with full precision."""
        return repr(value) if np.isfinite(value) else f'float("{value}")'

    def integer(self, name: str, value: int) -> str:
        """Define a named integer."""
        return f"{name} = {value}"

    def _table(self, kind: str, name: str, words: Iterable[str], size: str) -> str:
        return f"{name} = [\n{wrapped(words, self.indent)},\n]"

    def numbers(self, name: str, values: Vector) -> str:
        """Define a table of numbers."""
        words = (self.number(v) for v in np.asarray(values, dtype=np.float64).tolist())
        return self._table("double", name, words, str(len(values)))

    def integers(self, name: str, values: Vector) -> str:
        """Define a table of integers."""
        return self._table("int", name, (str(v) for v in values.tolist()), str(len(values)))

    def matrix(self, name: str, values: Matrix) -> str:
        """Define a matrix."""
        rows = ",\n".join(
            f"{self.indent}[\n{wrapped((self.number(v) for v in row), 2 * self.indent)},\n{self.indent}]"
            for row in values.tolist()
        )
        return f"{name} = [\n{rows},\n]"

    def labels(self, name: str, values: list[Any]) -> str:
        """Define the number of classes and their labels."""
        words = (self.number(v) if isinstance(v, float) else repr(v) for v in values)
        return f"{self.integer('N_CLASSES', len(values))}\n{self._table('', name, words, '')}"

    def call(self, function: str) -> str:
        """Return the name of a function of the standard library."""
        return f"math.{function}"

    def assign(self, name: str, text: str) -> str:
        """Write an assignment."""
        return f"{self.indent}{name} = {text}"

    def function(self, statements: list[str], result: str) -> str:
        """Define k(x, z) for the support vector z with index i."""
        body = "\n".join(statements)
        return f"def _k(x, i):\n    z = VECTORS[i]\n{body}\n    return {result}"


_PY_SUM = '''
def _{name}(x, z, n, columns, factors):
    total = 0.0
    for k in range(n):
        a, b = x[columns[k]], z[columns[k]]
        {body}
    return total
'''  # fmt: skip
_PY_TERMS = {
    "dot": "total += factors[k] * a * b",
    "square": "total += factors[k] * (a - b) * (a - b)",
    "absolute": "total += factors[k] * abs(a - b)",
    "min": "total += factors[k] * min(a, b)",
    "chi2": "total += factors[k] * (a - b) * (a - b) / (a + b) if a + b > 0.0 else 0.0",
    "sine": "total += 4.0 * math.sin(factors[k] * (a - b)) ** 2",
}
PYTHON = Language(
    head='"""A model written by mercer. predict(x) takes one sample, a sequence of numbers."""\n\nimport math',
    inside="_",
    prepare={
        False: """
def _prepared(x):
    x = [float(v) for v in x]
    if len(x) != N_FEATURES:
        raise ValueError(f"x has {len(x)} features, but the model needs {N_FEATURES}")
    return x
""",
        True: """
def _prepared(x):
    x = [float(v) for v in x]
    if len(x) != N_FEATURES:
        raise ValueError(f"x has {len(x)} features, but the model needs {N_FEATURES}")
    return [v * a + b for v, a, b in zip(x, SCALE, SHIFT)]
""",
    },
    linear="""
def values(x):
    x = _prepared(x)
    return [b + sum(w * v for w, v in zip(row, x)) for row, b in zip(WEIGHTS, INTERCEPT)]
""",
    kernel="""
def values(x):
    x = _prepared(x)
    out = [0.0] * N_PROBLEMS
    for i, row in enumerate(COEF):
        k = _k(x, i)
        for p in range(N_PROBLEMS):
            out[p] += row[p] * k
    return [v + b for v, b in zip(out, INTERCEPT)]
""",
    sums={
        **{name: _PY_SUM.format(name=name, body=body) for name, body in _PY_TERMS.items()},
        "power": """
def _power(base, exponent):
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result
""",
        "unit": """
def _unit(v):
    return 1.0 / math.sqrt(v) if v > 0.0 else 0.0
""",
    },
    rules={
        "regression": "def predict(x):\n    return values(x)[0]",
        "regressions": "def predict(x):\n    return values(x)",
        "one": "def decision(x):\n    return values(x)[0]",
        "novelty": "def predict(x):\n    return 1 if decision(x) >= 0.0 else -1",
        "binary": "def predict(x):\n    return CLASSES[1 if decision(x) COMPARE 0.0 else 0]",
        "largest": """
def decision(x):
    return values(x)


def predict(x):
    found = decision(x)
    return CLASSES[found.index(max(found))]
""",
        "ovo": "def decision(x):\n    return values(x)",
        "ovr": """
def decision(x):
    votes, sums = [0.0] * N_CLASSES, [0.0] * N_CLASSES
    for v, i, j in zip(values(x), FIRST, SECOND):
        votes[j if v < 0.0 else i] += 1.0
        sums[i] += v
        sums[j] -= v
    return [n + s / (3.0 * (abs(s) + 1.0)) for n, s in zip(votes, sums)]
""",
        "by_votes": """
def predict(x):
    votes = [0] * N_CLASSES
    for v, i, j in zip(values(x), FIRST, SECOND):
        votes[i if v > 0.0 else j] += 1
    return CLASSES[votes.index(max(votes))]
""",
        "by_decision": """
def predict(x):
    found = decision(x)
    return CLASSES[found.index(max(found))]
""",
    },
)
