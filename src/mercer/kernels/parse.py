"""Kernels from text: the expressions that kernels print, and short names.

    0.5 * gaussian(gamma=0.1) + linear()          rbf          poly(degree=2) ** 2          on((0, 3), min)

The text is parsed by Python's ``ast`` and then built from a list of allowed forms; nothing is evaluated.
"""

from __future__ import annotations

import ast
from dataclasses import fields
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel

# longer texts could exhaust the parser's stack
LONGEST = 10_000

# the kernels that a text may name, by the module that defines them; `mercer.kernels` imports from them on first use
_MODULES = {
    "combinators": ("Constant", "LearnedKernel", "Power", "Product", "Scaled", "Sum"),
    "learnable": ("Bounded", "Fixed"),
    "noise": ("White",),
    "objects.distributions": ("Hellinger", "InformationDiffusion"),
    "objects.graph_kernels": ("RandomWalk", "ShortestPath", "WeisfeilerLehman"),
    "objects.sequences": ("Subsequence", "WeightedDegree", "Window"),
    "objects.series": ("GlobalAlignment",),
    "objects.sets": ("Intersection", "Jaccard", "SetOf"),
    "objects.substrings": ("CommonSubstrings", "Mismatch", "Spectrum"),
    "radial": ("AdditiveChi2", "Chi2", "Gaussian", "Laplacian", "Matern", "Periodic", "RationalQuadratic"),
    "user_defined": ("Precomputed", "PrecomputedLayer"),
    "vectors": ("Cosine", "Linear", "Min", "Polynomial", "PowerSeries", "Sigmoid"),
    "wrappers": ("Normalized", "On"),
}
KERNELS = {name.lower(): (module, name) for module, names in _MODULES.items() for name in names}
ALIASES = {
    "additive_chi2": "additivechi2",
    "common_substrings": "commonsubstrings",
    "global_alignment": "globalalignment",
    "histogram": "min",
    "information_diffusion": "informationdiffusion",
    "laplace": "laplacian",
    "normalised": "normalized",
    "poly": "polynomial",
    "power_series": "powerseries",
    "random_walk": "randomwalk",
    "rational_quadratic": "rationalquadratic",
    "rbf": "gaussian",
    "set_of": "setof",
    "shortest_path": "shortestpath",
    "tanh": "sigmoid",
    "weighted_degree": "weighteddegree",
    "weisfeiler_lehman": "weisfeilerlehman",
}

# kernels without a text: a text has numbers, strings and kernels, but they take another object
OBJECT_TAKEN = {
    "GraphDiffusion": "graph",
    "SklearnKernel": "kernel of scikit-learn",
}

# names of kernels with some parameters set
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "inhomogeneous": ("polynomial", {"gamma": 1.0, "coef0": 1.0}),
}


def kernel_class(name: str) -> type[Kernel]:
    """The class of a kernel by its name in lower case, imported on first use."""
    module, title = KERNELS[name]
    found: type[Kernel] = getattr(import_module(f"mercer.kernels.{module}"), title)
    return found


def parse_kernel(text: str) -> Kernel:
    """The kernel that a text describes.

    >>> parse_kernel("0.5*rbf(gamma=0.1) + linear")
    0.5 * Gaussian(gamma=0.1) + Linear()

    Names are not case-sensitive, and a kernel with default parameters needs no parentheses. Numbers, strings, tuples,
    slice(start, stop), the operators + and * (between numbers also - and /), and ** with a whole exponent are allowed.
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"A kernel expression must be a string, but {text!r} was given.")
    if len(text) > LONGEST:
        raise InvalidInputError(f"A kernel expression has at most {LONGEST} characters, but this one has {len(text)}.")
    return _Reader(text).kernel()


class _Reader:
    """Walks the syntax tree of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        # line breaks become spaces; control characters become "?", which Python's parser rejects
        self.line = "".join(" " if c.isspace() else c if c.isprintable() else "?" for c in text).strip()
        self.indent = len(text) - len(text.lstrip())

    def fail(self, node: ast.AST | None, problem: str) -> NoReturn:
        """Raise, naming the position of the node in the text, counted from 1."""
        # the parser counts bytes
        start = 1 + self.indent
        before = "" if node is None else self.line.encode()[: node.col_offset].decode()  # type: ignore[attr-defined]
        place = "" if node is None else f" at position {start + len(before)}"
        raise InvalidInputError(f"Cannot read the kernel {self.text!r}{place}: {problem}")

    def kernel(self) -> Kernel:
        """The kernel that the text describes."""
        example = "Write it like 0.5 * gaussian(gamma=0.1) + linear()."
        if not self.line:
            self.fail(None, f"it is empty. {example}")
        try:
            tree = ast.parse(self.line, mode="eval")
            value = self.value(tree.body)
        except SyntaxError as error:
            place = f" at position {self.indent + error.offset}" if error.offset else ""
            raise InvalidInputError(f"Cannot read the kernel {self.text!r}{place}: {error.msg}. {example}") from None
        except (RecursionError, MemoryError):
            self.fail(None, "it is nested too deeply.")
        if not isinstance(value, Kernel):
            hint = f" A constant kernel is constant({value!r})." if isinstance(value, int | float) else ""
            self.fail(tree.body, f"{value!r} is not a kernel. {_known()}{hint}")
        return value

    def value(self, node: ast.AST) -> Any:
        """A kernel, number, string, tuple or slice."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | None):
            return node.value
        if isinstance(node, ast.Name):
            return self.build(node, node.id, [], {})
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(self.value(element) for element in node.elts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            number = self.value(node.operand)
            if isinstance(number, int | float):
                return -number if isinstance(node.op, ast.USub) else number
            self.fail(node, "a sign can only stand before a number. To subtract a kernel, add -1 times it.")
        if isinstance(node, ast.BinOp):
            return self.operation(node)
        self.fail(
            node,
            f"{ast.unparse(node)!r} is not allowed: use kernels, numbers, strings, tuples and the operators +, *, **.",
        )

    def call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name):
            self.fail(node.func, f"{ast.unparse(node.func)!r} is not the name of a kernel. {_known()}")
        arguments = [self.value(argument) for argument in node.args]
        named = {keyword.arg: self.value(keyword.value) for keyword in node.keywords}
        if None in named:
            self.fail(node, "** is not allowed in the parameters: write each one as name=value.")
        if node.func.id == "slice":
            if named or not 1 <= len(arguments) <= 3 or not all(a is None or isinstance(a, int) for a in arguments):
                self.fail(node, "a slice is slice(stop), slice(start, stop) or slice(start, stop, step).")
            return slice(*arguments)
        return self.build(node, node.func.id, arguments, named)  # type: ignore[arg-type]

    def build(self, node: ast.AST, name: str, arguments: list[Any], named: dict[str, Any]) -> Kernel:
        said = ALIASES.get(name.lower(), name.lower())
        key, preset = PRESETS.get(said, (said, {}))
        for title, taken in OBJECT_TAKEN.items():
            if key.replace("_", "") == title.lower():
                self.fail(
                    node,
                    f"{title} has no text, because it takes a {taken}. Build it in Python, "
                    f"mercer.kernels.{title}(...), and pass the object.",
                )
        if key not in KERNELS:
            close = get_close_matches(key, [*KERNELS, *ALIASES, *PRESETS], n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            self.fail(node, f"there is no kernel {name!r}.{hint} {_known()}")
        kernel = kernel_class(key)
        parameters = [field.name for field in fields(kernel) if field.name not in preset]
        unknown = [parameter for parameter in named if parameter not in parameters]
        allowed = f"Its parameters are: {', '.join(parameters)}." if parameters else "It has no parameters."
        if unknown:
            self.fail(node, f"{said} has no parameter {unknown[0]!r}. {allowed}")
        try:
            return kernel(*arguments, **named, **preset)
        except InvalidInputError as error:
            self.fail(node, str(error))
        except TypeError:
            self.fail(node, f"{said} cannot be built from these parameters. {allowed}")

    def operation(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        numbers = [isinstance(operand, int | float) for operand in (left, right)]
        for operand, side, is_number in zip((left, right), (node.left, node.right), numbers, strict=True):
            if not is_number and not isinstance(operand, Kernel):
                self.fail(side, f"{operand!r} is neither a kernel nor a number.")
        try:
            if isinstance(node.op, ast.Add):
                return left + right
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.Pow) and numbers == [False, True]:
                return left**right
            if isinstance(node.op, ast.Sub) and all(numbers):
                return left - right
            if isinstance(node.op, ast.Div) and all(numbers):
                return left / right
        except (InvalidInputError, ArithmeticError) as error:
            self.fail(node, str(error))
        self.fail(
            node,
            f"{ast.unparse(node)!r} is not allowed: kernels are combined by +, * and ** with a whole exponent, numbers "
            "by +, -, * and /.",
        )


def _known() -> str:
    """The sentence that lists all names; of two names that differ by underscores only, the one with underscores."""
    joined = {alias.replace("_", "") for alias in ALIASES if "_" in alias}
    return f"Known kernels: {', '.join(sorted([*(KERNELS.keys() - joined), *ALIASES, *PRESETS]))}."
