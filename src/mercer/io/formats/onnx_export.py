"""Write models as ONNX graphs of basic operators, so that every kernel on vectors runs in every ONNX runtime."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer.exceptions import InvalidInputError, MissingExtraError
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
from mercer.io.formats.onnx_graph import Graph
from mercer.io.formats.onnx_probabilities import write_probabilities
from mercer.io.formats.onnx_steps import write_steps
from mercer.io.formats.plain_model import PlainModel, label_array, plain_model
from mercer.kernels.features import Matrix

__all__ = ["to_onnx"]

# squared distances are computed by inner products if that changes a kernel's exponent by at most this much
CANCELLATION = 1e-6
# arithmetic is in float64 if float32 would change a decision value by more than this
ROUNDING = 2e-6


def to_onnx(model: Any, *, dtype: Any = np.float32, name: str = "mercer") -> Any:
    """Convert a fitted model to an ONNX graph.

    Outputs have the names, order and shapes of skl2onnx (with its option ``zipmap=False``):

    * Classifiers with probabilities (a search such as `SVCCV`, or ``probability=True``): ``label`` of shape (n,),
      ``probabilities`` of shape (n, n_classes), and ``scores``, the values of ``decision_function``.
    * Other classifiers: ``label`` and ``scores``. (skl2onnx names these scores ``probabilities``, which they are not.)
    * Novelty detectors: ``label`` and ``scores``, both of shape (n, 1).
    * Regressors: ``variable`` of shape (n, n_targets); for a Gaussian process, the mean.

    The input ``X`` has a row for each sample. A pipeline that was fitted to a data frame has an input of shape (n, 1)
    for each column that it uses, named after the column: numbers (NaN if missing) or strings (empty if missing). A
    column with the name of an output gets an underscore appended. Cells that `mercer fit` reads as numbers are numeric
    inputs: 4733 for "$4,733.00", 1 for "yes", and days since 1970-01-01 (UTC) for a date. The description of each input
    documents this.

    Parameters
    ----------
    model : fitted estimator
        A linear machine, a machine with any kernel on vectors, or a pipeline that ends in one. The steps before may be
        ColumnTransformer, SimpleImputer, OneHotEncoder, StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler and
        pipelines of these, as ``mercer fit`` builds them for tables without free text.
    dtype : numpy.float32 or numpy.float64, default=numpy.float32
        The type of inputs and outputs. Arithmetic is in float64 if float32 would change decision values by more than
        about 1e-5, because coefficients are large.
    name : str, default="mercer"
        Name of the graph.

    Returns
    -------
    onnx_model : onnx.ModelProto
        Write it with ``onnx.save(onnx_model, path)``, or run ``onnx_model.SerializeToString()`` in onnxruntime.
    """
    try:
        import onnx
    except ImportError:
        raise MissingExtraError("An ONNX export", package="onnx", extra="onnx") from None
    precision = np.dtype(dtype)
    if precision not in (np.float32, np.float64):
        raise InvalidInputError(f"dtype={dtype!r} was given: it must be numpy.float32 or numpy.float64.")
    check_is_fitted(model)
    steps = model.steps[:-1] if isinstance(model, Pipeline) else []
    plain = plain_model(model.steps[-1][1] if steps else model)
    graph = _Graph(onnx, precision if _is_enough(plain) else np.dtype(np.float64), precision)
    graph.x = write_steps(graph, model, steps, plain.n_features)
    return graph.model(name, _outputs(graph, plain, graph.values(plain)))


class _Graph(Graph):
    """Writes the nodes of a machine; each formula is written once."""

    def __init__(self, onnx: Any, dtype: np.dtype[Any], outside: np.dtype[Any]) -> None:
        super().__init__(onnx, dtype, outside)
        self.x = "X"
        self.vectors = np.empty((0, 0))
        self._known: dict[Any, str] = {}

    # ---- values of each problem ------------------------------------------------------------------------------

    def values(self, plain: PlainModel) -> str:
        """Write f(x), a column for each problem."""
        if plain.weights is not None:
            return self.op("Add", self.op("MatMul", self.x, plain.weights.T), plain.intercept)
        assert plain.formula is not None and plain.vectors is not None and plain.coef is not None
        if len(plain.vectors) == 0:
            zeros = np.zeros((plain.n_features, plain.n_problems))
            return self.op("Add", self.op("MatMul", self.x, zeros), plain.intercept)
        self.vectors = plain.vectors
        K = self.formula(plain.formula)
        if not _has_pairs(plain.formula):
            nothing = self.op("MatMul", self.x, np.zeros((plain.n_features, len(plain.vectors))))
            K = self.op("Add", K, nothing)
        return self.op("Add", self.op("MatMul", K, plain.coef.T), plain.intercept)

    def formula(self, formula: Formula, own: bool = False) -> str:
        """Write the formula for all pairs of sample and support vector, or, if ``own``, of each sample with itself."""
        key = id(formula), own
        if key not in self._known:
            self._known[key] = self._formula(formula, own)
        return self._known[key]

    def _formula(self, formula: Formula, own: bool) -> str:
        if isinstance(formula, Number):
            # a row instead of a scalar: onnxruntime would fuse a scalar into an adjacent product as a float32 attribute
            return self.constant(np.full((1, 1 if own else len(self.vectors)), formula.value))
        if isinstance(formula, Features):
            return self._own(formula) if own else self._pairs(formula)
        if isinstance(formula, Add | Multiply):
            kind = "Add" if isinstance(formula, Add) else "Mul"
            return self.op(kind, self.formula(formula.left, own), self.formula(formula.right, own))
        if isinstance(formula, Call):
            argument = self.formula(formula.argument, own)
            if formula.function == "log1p":
                return self.op("Log", self.op("Add", argument, np.array(1.0)))
            return self.op({"exp": "Exp", "tanh": "Tanh", "sqrt": "Sqrt"}[formula.function], argument)
        if isinstance(formula, Whole):
            return self.op("Pow", self.formula(formula.base, own), np.array(float(formula.exponent)))
        if isinstance(formula, UnitStored):
            return self._unit(formula.own) if own else self.constant(stored_units(formula, self.vectors)[None, :])
        assert isinstance(formula, Unit)
        return self._unit(formula.own)

    def _unit(self, formula: Formula) -> str:
        length = self.formula(formula, own=True)
        positive = self.op("Greater", length, np.array(0.0))
        root = self.op("Sqrt", self.op("Where", positive, length, np.array(1.0)))
        return self.op("Where", positive, self.op("Reciprocal", root), np.array(0.0))

    def _columns(self, formula: Features) -> tuple[str, Matrix]:
        """Return the columns of the samples and of the support vectors over which a sum runs."""
        Z = self.vectors[:, list(formula.columns)]
        if formula.columns == tuple(range(self.vectors.shape[1])):
            return self.x, Z
        key = ("columns", formula.columns)
        if key not in self._known:
            self._known[key] = self.op("Gather", self.x, np.array(formula.columns, np.int64), axis=1)
        return self._known[key], Z

    def _own(self, formula: Features) -> str:
        x, _ = self._columns(formula)
        weights = np.array(formula.weights)
        if formula.term == "dot":
            return self.total(self.op("Mul", self.op("Mul", x, x), weights), 1)
        if formula.term == "min":
            return self.total(self.op("Mul", x, weights), 1)
        return self.constant(np.zeros((1, 1)))

    def _pairs(self, formula: Features) -> str:
        x, Z = self._columns(formula)
        weights, term = np.array(formula.weights), formula.term
        if term == "dot":
            return self.op("MatMul", x, (Z * weights).T)
        if term == "square":
            # distances do not depend on the origin: centring keeps rounding errors small
            centre, root = Z.mean(axis=0).astype(self.dtype).astype(np.float64), np.sqrt(weights)
            A, B = self.op("Mul", self.op("Sub", x, centre), root), (Z - centre) * root
            squares = (B**2).sum(axis=1)
            if not formula.small and 4.0 * np.finfo(self.dtype).eps * squares.max() <= CANCELLATION:
                sums = self.op("Add", self.total(self.op("Mul", A, A), 1), squares[None, :])
                distance = self.op("Sub", sums, self.op("MatMul", A, 2.0 * B.T))
                return self.op("Max", distance, np.array(0.0))
            difference = self.op("Sub", self._rows(A), B[None, :, :])
            return self.total(self.op("Mul", difference, difference), 2, keep=0)
        rows, Z = self._rows(x), Z[None, :, :]
        if term == "min":
            return self.total(self.op("Mul", self.op("Min", rows, Z), weights), 2, keep=0)
        difference = self.op("Sub", rows, Z)
        if term == "absolute":
            return self.total(self.op("Mul", self.op("Abs", difference), weights), 2, keep=0)
        if term == "sine":
            sine = self.op("Sin", self.op("Mul", difference, weights))
            return self.op("Mul", self.total(self.op("Mul", sine, sine), 2, keep=0), np.array(4.0))
        both = self.op("Add", rows, Z)
        both = self.op("Where", self.op("Greater", both, np.array(0.0)), both, np.array(1.0))
        parts = self.op("Div", self.op("Mul", difference, difference), both)
        return self.total(self.op("Mul", parts, weights), 2, keep=0)

    def _rows(self, name: str) -> str:
        """Reshape samples to (n, 1, d), to compare them with all support vectors."""
        return self.op("Unsqueeze", name, np.array([1], np.int64))


def _has_pairs(formula: Formula) -> bool:
    """Whether the formula depends on both x and z, so that its result has the shape (samples, support vectors)."""
    if isinstance(formula, Features):
        return True
    inside = [getattr(formula, name, None) for name in ("left", "right", "argument", "base")]
    return any(_has_pairs(part) for part in inside if part is not None)


# ---- predictions -----------------------------------------------------------------------------------------------------


def _outputs(graph: _Graph, plain: PlainModel, values: str) -> list[Any]:
    """Write the nodes that convert values to predictions; return the descriptions of the outputs."""
    k = plain.n_problems
    if plain.rule == "regression":
        return [graph.publish(values, "variable", ["n", k])]
    if plain.rule == "novelty":
        inside = graph.op("Not", graph.op("Less", values, np.array(0.0)))
        graph.op("Where", inside, np.array(1, np.int64), np.array(-1, np.int64), output="label")
        label = graph.describe("label", graph.onnx.TensorProto.INT64, ["n", 1])
        return [label, graph.publish(values, "scores", ["n", 1])]
    shape: list[Any] = ["n"]
    classes = label_array(plain.classes)
    if plain.rule == "binary":
        decision = _flat(graph, values)
        zero = np.array(0.0)
        below = graph.op("Less", decision, zero) if plain.tie else graph.op("LessOrEqual", decision, zero)
        winner = graph.op("Cast", graph.op("Not", below), to=graph.onnx.TensorProto.INT64)
    elif plain.rule == "largest":
        decision, shape = values, ["n", k]
        winner = graph.op("ArgMax", values, axis=1, keepdims=0)
    else:
        decision, winner = _pairs(graph, plain, values, len(classes))
        shape = ["n", k if plain.shape == "ovo" else len(classes)]
    graph.op("Gather", graph.constant(classes), winner, axis=0, output="label")
    labels = 8 if classes.dtype.kind == "U" else graph.onnx.helper.np_dtype_to_tensor_dtype(classes.dtype)
    outputs = [graph.describe("label", labels, ["n"])]
    if plain.probabilities is not None:
        p = write_probabilities(graph, plain.probabilities, values, winner, len(classes))
        outputs.append(graph.publish(p, "probabilities", ["n", len(classes)]))
    return [*outputs, graph.publish(decision, "scores", shape)]


def _flat(graph: _Graph, values: str) -> str:
    return graph.op("Squeeze", values, np.array([1], np.int64))


def _pairs(graph: _Graph, plain: PlainModel, values: str, n_classes: int) -> tuple[str, str]:
    """Write scikit-learn's decision function from the votes of all pairs, and the index of the winning class."""
    first, second = np.zeros((plain.n_problems, n_classes)), np.zeros((plain.n_problems, n_classes))
    for p, (i, j) in enumerate(combinations(range(n_classes), 2)):
        first[p, i] = second[p, j] = 1.0
    zero = np.array(0.0)

    def votes(condition: str, if_true: Matrix, if_false: Matrix) -> str:
        chosen = graph.op("Cast", condition, to=graph.element)
        return graph.op("Add", graph.op("MatMul", chosen, if_true - if_false), if_false.sum(axis=0))

    counted = votes(graph.op("Greater", values, zero), first, second)
    if plain.shape == "ovo":
        return values, graph.op("ArgMax", counted, axis=1, keepdims=0)
    negative = votes(graph.op("Less", values, zero), second, first)
    confidence = graph.op("MatMul", values, first - second)
    size = graph.op("Add", graph.op("Abs", confidence), np.array(1.0))
    share = graph.op("Div", confidence, graph.op("Mul", size, np.array(3.0)))
    decision = graph.op("Add", negative, share)
    return decision, graph.op("ArgMax", decision if plain.by_decision else counted, axis=1, keepdims=0)


def _is_enough(plain: PlainModel) -> bool:
    """Whether float32 is accurate enough for decision values, judged by its average rounding error, and probabilities.

    If decision values hardly differ, as with a tiny C, the map to probabilities is steep and magnifies rounding errors.
    """
    eps = float(np.finfo(np.float32).eps)
    rounding = np.zeros(plain.n_problems)
    if plain.kernel is not None and plain.coef is not None and plain.vectors is not None:
        size = np.sqrt(np.abs(plain.kernel.diagonal(plain.kernel.prepare(plain.vectors))))
        rounding = eps * np.linalg.norm(plain.coef * size, axis=1) * size.max(initial=0.0)
    if not np.all(rounding <= ROUNDING):
        return False
    # without maps it is the softmax, whose steepness is at most ½
    steep = max((one.steepness for one in plain.probabilities.maps), default=0.5) if plain.probabilities else 0.0
    return bool(steep * (float(rounding.max(initial=0.0)) + eps * float(np.abs(plain.intercept).max())) <= ROUNDING)
