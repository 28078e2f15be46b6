"""Write small models as source code without dependencies, in Python or C99."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.io.formats.c_templates import C
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
    stored_units,
)
from mercer.io.formats.plain_model import PlainModel, label_array, plain_model
from mercer.io.formats.python_templates import PYTHON, Language
from mercer.io.formats.source_probabilities import probability_parts

__all__ = ["to_c", "to_python"]

# the largest count of numbers in source code: compilers read about a million of them in seconds
LARGEST = 2_000_000


def to_python(model: Any) -> str:
    """Return the source code of a Python module with the model's predictions. It needs only the standard library.

    The module has a function ``predict(x)`` for one sample, a sequence of numbers. Classifiers and novelty detectors
    also have ``decision(x)``, and classifiers with probabilities ``probabilities(x)``. Arithmetic is in float64; values
    differ from the model's by rounding errors.

    Parameters
    ----------
    model : fitted estimator
        A linear machine, a machine with any kernel on vectors, or a pipeline of StandardScaler, MinMaxScaler or
        MaxAbsScaler and one of these.

    Returns
    -------
    source : str
        The text of the module.

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.io.source import to_python
    >>> module = {}
    >>> exec(to_python(SVC().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])), module)
    >>> module["predict"]([2.7])
    'high'
    """
    return _write(PYTHON, plain_model(model))


def to_c(model: Any, prefix: str = "model") -> str:
    """Return the source code of a C99 file with the model's predictions. It needs only <math.h>.

    * ``int model_predict(const double *x)``: for a classifier the index of the class in ``model_classes``; for a
      novelty detector 1 or -1. A regression has ``double model_predict(const double *x)`` or, with several targets,
      ``void model_predict(const double *x, double *out)``.
    * ``void model_decision(const double *x, double *out)`` writes the ``MODEL_N_DECISION`` values of
      ``decision_function``.
    * ``void model_probabilities(const double *x, double *out)``, for classifiers with probabilities, writes
      ``MODEL_N_CLASSES`` numbers.

    Parameters
    ----------
    model : fitted estimator
        As in `to_python`.
    prefix : str, default="model"
        The prefix of all names.

    Returns
    -------
    source : str
        Compile it as C99 or later, with -lm.
    """
    if not prefix.isidentifier() or not prefix.isascii():
        raise InvalidInputError(
            f"prefix={prefix!r} cannot begin a name in C: use letters, digits and underscores, and no digit first."
        )
    return _write(C, plain_model(model)).replace("@U@", prefix.upper()).replace("@l@", prefix)


def _write(language: Language, plain: PlainModel) -> str:
    if plain.vectors is not None and len(plain.vectors) == 0:  # C has no empty arrays
        zeros = np.zeros((plain.n_problems, plain.n_features))
        plain = replace(plain, formula=None, vectors=None, coef=None, weights=zeros)
    size = sum(part.size for part in (plain.weights, plain.vectors, plain.coef) if part is not None)
    if size > LARGEST:
        raise InvalidInputError(
            f"The model has {size} numbers, but source code may have at most {LARGEST}. Reduce its support vectors "
            "with mercer.compress, or use mercer.save or mercer.io.onnx.to_onnx."
        )
    parts = [language.head, language.integer("N_FEATURES", plain.n_features)]
    parts += [language.integer("N_PROBLEMS", plain.n_problems), language.numbers("INTERCEPT", plain.intercept)]
    scaled = plain.scale is not None
    if plain.scale is not None and plain.shift is not None:
        parts += [language.numbers("SCALE", plain.scale), language.numbers("SHIFT", plain.shift)]
    if plain.weights is not None:
        parts += [language.matrix("WEIGHTS", plain.weights), language.prepare[scaled], language.linear]
    else:
        assert plain.vectors is not None and plain.coef is not None
        kernel = _Kernel(language, plain)
        parts += [language.integer("N_VECTORS", len(plain.vectors)), language.matrix("VECTORS", plain.vectors)]
        parts += [language.matrix("COEF", plain.coef.T), *kernel.tables, *(language.sums[s] for s in kernel.sums)]
        parts += [kernel.function(), language.prepare[scaled], language.kernel]
    parts += _answers(language, plain)
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


class _Kernel:
    """Writes k(x, z) as one statement per node of the formula, and the tables that the statements need."""

    def __init__(self, language: Language, plain: PlainModel) -> None:
        self.language, self.plain = language, plain
        self.tables: list[str] = []
        self.statements: list[str] = []
        self.sums: list[str] = []
        self._known: dict[tuple[int, bool], str] = {}
        self._tables: dict[Any, str] = {}
        assert plain.formula is not None
        self.result = self.name(plain.formula, own=False)

    def function(self) -> str:
        """Return the source of k as a function of a sample and the index of a support vector."""
        return self.language.function(self.statements, self.result)

    def name(self, formula: Formula, own: bool) -> str:
        """Return the variable that holds a formula; ``own``: of the pair (x, x) instead of (x, z)."""
        key = id(formula), own
        if key not in self._known:
            self._known[key] = f"t{len(self._known)}"
            text = self._text(formula, own)
            self.statements.append(self.language.assign(self._known[key], text))
        return self._known[key]

    def _text(self, formula: Formula, own: bool) -> str:
        language = self.language
        if isinstance(formula, Number):
            return language.number(formula.value)
        if isinstance(formula, Features):
            other = "x" if own else "z"
            count, columns, weights = self._columns(formula)
            return f"{self._sum(formula.term)}(x, {other}, {count}, {columns}, {weights})"
        if isinstance(formula, Add | Multiply):
            sign = "+" if isinstance(formula, Add) else "*"
            return f"{self.name(formula.left, own)} {sign} {self.name(formula.right, own)}"
        if isinstance(formula, Call):
            return f"{language.call(formula.function)}({self.name(formula.argument, own)})"
        if isinstance(formula, Whole):
            return f"{self._sum('power')}({self.name(formula.base, own)}, {formula.exponent})"
        if isinstance(formula, UnitStored) and not own:
            table = self._table("UNITS", id(formula), stored_units(formula, self.plain.vectors))  # type: ignore[arg-type]
            return f"{table}[i]"
        assert isinstance(formula, Unit | UnitStored)
        return f"{self._sum('unit')}({self.name(formula.own, own=True)})"

    def _sum(self, name: str) -> str:
        """Request a function of the language's templates; return its name."""
        if name not in self.sums:
            self.sums.append(name)
        return f"{self.language.inside}{name}"

    def _columns(self, formula: Features) -> tuple[int, str, str]:
        columns = self._table("COLUMNS", formula.columns, np.array(formula.columns))
        return len(formula.columns), columns, self._table("FACTORS", formula.weights, np.array(formula.weights))

    def _table(self, name: str, key: Any, values: Any) -> str:
        if (name, key) not in self._tables:
            table = f"{name}_{len(self._tables)}"
            self._tables[name, key] = self.language.ref(table)
            write = self.language.integers if values.dtype.kind == "i" else self.language.numbers
            self.tables.append(write(table, values))
        return self._tables[name, key]


def _answers(language: Language, plain: PlainModel) -> list[str]:
    """Return the functions that convert values to predictions."""
    rules = language.rules
    if plain.rule == "regression":
        return [rules["regression" if plain.flat else "regressions"]]
    if plain.rule == "novelty":
        return [rules["one"], rules["novelty"]]
    classes = label_array(plain.classes)
    parts = [language.labels("CLASSES", classes.tolist())]
    if plain.rule == "binary":
        parts += [rules["one"], rules["binary"].replace("COMPARE", ">=" if plain.tie else ">")]
    elif plain.rule == "largest":
        parts.append(rules["largest"])
    else:
        pairs = np.array(list(combinations(range(len(classes)), 2)))
        parts += [language.integers(name, pairs[:, k]) for k, name in enumerate(("FIRST", "SECOND"))]
        parts += [rules[plain.shape], rules["by_decision" if plain.by_decision else "by_votes"]]
    if plain.probabilities is not None:
        parts += probability_parts(language, plain.probabilities, len(classes), plain.rule == "pairs")
    return parts
