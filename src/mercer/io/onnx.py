"""Models as ONNX graphs of basic operators, so that every kernel on vectors runs wherever ONNX does."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError, MissingExtraError
from mercer.io.formulas import Add, Call, Features, Formula, Multiply, Number, Unit, UnitStored, Whole, stored_units
from mercer.io.machines import PlainModel, plain_model
from mercer.kernels.features import Matrix, Vector

__all__ = ["to_onnx"]

# an old enough version of both for every runtime of the last years
OPSET, IR = 17, 8
# squared distances by inner products may lose this much of a kernel's exponent, in the precision of the graph
CANCELLATION = 1e-6


def to_onnx(model: Any, *, dtype: Any = np.float32, name: str = "mercer") -> Any:
    """A fitted model as an ONNX graph.

    Classifiers have the outputs ``label`` and ``decision`` (what ``decision_function`` returns), novelty detectors too,
    regressors ``prediction``; of a Gaussian process that is the mean. The input ``X`` has a row for each sample.

    Parameters
    ----------
    model : fitted estimator
        Of any kernel on vectors, or linear; or a pipeline of StandardScaler, MinMaxScaler and MaxAbsScaler and one.
    dtype : numpy.float32 or numpy.float64, default=numpy.float32
        Of the input and all arithmetic. In float32 a value is right to about 1e-6 times the sum of all absolute
        coefficients; labels differ where the decision function is that close to 0.
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
        raise InvalidInputError(f"dtype={dtype!r} was given: an ONNX graph is in numpy.float32 or numpy.float64.")
    plain = plain_model(model)
    graph = _Graph(onnx, precision)
    outputs = _outputs(graph, plain, graph.values(plain))
    element = onnx.helper.np_dtype_to_tensor_dtype(precision)
    inputs = [onnx.helper.make_tensor_value_info("X", element, ["n", plain.n_features])]
    made = onnx.helper.make_graph(graph.nodes, name, inputs, outputs, graph.constants)
    found = onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", OPSET)], producer_name="mercer")
    found.ir_version = IR
    onnx.checker.check_model(found)
    return found


class _Graph:
    """Nodes and constants; each formula is written once."""

    def __init__(self, onnx: Any, dtype: np.dtype[Any]) -> None:
        self.onnx, self.dtype = onnx, dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.x = "X"
        self.vectors = np.empty((0, 0))
        self._known: dict[Any, str] = {}

    def constant(self, value: Any) -> str:
        """A tensor: numbers in the precision of the graph, labels and positions as they are."""
        array = np.asarray(value)
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                array = array.astype(self.dtype)
        name = f"c{len(self.constants)}"
        if array.dtype.kind in "U":
            texts = [text.encode() for text in array.ravel().tolist()]
            tensor = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, array.shape, texts)
        else:
            tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        self.constants.append(tensor)
        return name

    def op(self, kind: str, *inputs: Any, output: str | None = None, **attributes: Any) -> str:
        """A node; inputs that are no names are constants."""
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        output = f"t{len(self.nodes)}" if output is None else output
        self.nodes.append(self.onnx.helper.make_node(kind, names, [output], **attributes))
        return output

    def total(self, name: str, axis: int, keep: int = 1) -> str:
        return self.op("ReduceSum", name, np.array([axis], np.int64), keepdims=keep)

    # ---- values of each problem ------------------------------------------------------------------------------

    def values(self, plain: PlainModel) -> str:
        """f(x), a column for each problem."""
        if plain.scale is not None and plain.shift is not None:
            # by the centre of the data first: a large shift would lose digits
            centre = np.divide(-plain.shift, plain.scale, out=np.zeros(plain.n_features), where=plain.scale != 0)
            rest = plain.shift + plain.scale * centre
            self.x = self.op("Mul", self.op("Sub", self.x, centre), plain.scale)
            if np.any(rest):
                self.x = self.op("Add", self.x, rest)
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
        """The formula for all pairs of a sample and a support vector; ``own``: for each sample with itself."""
        key = id(formula), own
        if key not in self._known:
            self._known[key] = self._formula(formula, own)
        return self._known[key]

    def _formula(self, formula: Formula, own: bool) -> str:
        if isinstance(formula, Number):
            # a row and not one number: onnxruntime would make that a float32 attribute of a product next to it
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
        """The columns of the samples and of the support vectors that a sum is over."""
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
            # distances do not depend on the origin: the one in the middle loses the fewest digits
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
        """Samples as (n, 1, d), to be compared with all support vectors."""
        return self.op("Unsqueeze", name, np.array([1], np.int64))


def _has_pairs(formula: Formula) -> bool:
    """Whether the formula has a value for each pair by itself, and not one that is the same for several."""
    if isinstance(formula, Features):
        return True
    inside = [getattr(formula, name, None) for name in ("left", "right", "argument", "base")]
    return any(_has_pairs(part) for part in inside if part is not None)


# ---- answers ---------------------------------------------------------------------------------------------------------


def _outputs(graph: _Graph, plain: PlainModel, values: str) -> list[Any]:
    """The nodes that turn values into answers, and their descriptions."""
    helper, element = graph.onnx.helper, graph.onnx.helper.np_dtype_to_tensor_dtype(graph.dtype)
    k = plain.n_problems
    if plain.rule == "regression":
        _flat(graph, values, "prediction") if plain.flat else graph.op("Identity", values, output="prediction")
        return [helper.make_tensor_value_info("prediction", element, ["n"] if plain.flat else ["n", k])]
    width, labels = None, graph.onnx.TensorProto.INT64
    if plain.rule == "novelty":
        inside = graph.op("Not", graph.op("Less", _flat(graph, values, "decision"), np.array(0.0)))
        graph.op("Where", inside, np.array(1, np.int64), np.array(-1, np.int64), output="label")
    else:
        classes = label_array(plain.classes)
        labels = helper.np_dtype_to_tensor_dtype(classes.dtype) if classes.dtype.kind != "U" else 8
        if plain.rule == "binary":
            flat = _flat(graph, values, "decision")
            second = (
                graph.op("Not", graph.op("Less", flat, np.array(0.0)))
                if plain.tie
                else graph.op("Greater", flat, np.array(0.0))
            )
            winner = graph.op("Cast", second, to=graph.onnx.TensorProto.INT64)
        elif plain.rule == "largest":
            width = k
            graph.op("Identity", values, output="decision")
            winner = graph.op("ArgMax", values, axis=1, keepdims=0)
        else:
            width = k if plain.shape == "ovo" else len(classes)
            winner = _pairs(graph, plain, values, len(classes))
        graph.op("Gather", graph.constant(classes), winner, axis=0, output="label")
    shape = ["n"] if width is None else ["n", width]
    return [
        helper.make_tensor_value_info("label", labels, ["n"]),
        helper.make_tensor_value_info("decision", element, shape),
    ]


def _flat(graph: _Graph, values: str, output: str) -> str:
    return graph.op("Squeeze", values, np.array([1], np.int64), output=output)


def _pairs(graph: _Graph, plain: PlainModel, values: str, n_classes: int) -> str:
    """Votes of all pairs, and scikit-learn's decision function of them."""
    first, second = np.zeros((plain.n_problems, n_classes)), np.zeros((plain.n_problems, n_classes))
    for p, (i, j) in enumerate(combinations(range(n_classes), 2)):
        first[p, i] = second[p, j] = 1.0
    zero, element = np.array(0.0), graph.onnx.helper.np_dtype_to_tensor_dtype(graph.dtype)

    def votes(condition: str, if_true: Matrix, if_false: Matrix) -> str:
        chosen = graph.op("Cast", condition, to=element)
        return graph.op("Add", graph.op("MatMul", chosen, if_true - if_false), if_false.sum(axis=0))

    counted = votes(graph.op("Greater", values, zero), first, second)
    if plain.shape == "ovo":
        graph.op("Identity", values, output="decision")
        return graph.op("ArgMax", counted, axis=1, keepdims=0)
    negative = votes(graph.op("Less", values, zero), second, first)
    confidence = graph.op("MatMul", values, first - second)
    size = graph.op("Add", graph.op("Abs", confidence), np.array(1.0))
    share = graph.op("Div", confidence, graph.op("Mul", size, np.array(3.0)))
    decision = graph.op("Add", negative, share, output="decision")
    return graph.op("ArgMax", decision if plain.by_decision else counted, axis=1, keepdims=0)


def label_array(classes: Vector | None) -> Vector:
    """Labels as an array of text or numbers."""
    assert classes is not None
    if classes.dtype == object and all(isinstance(c, str) for c in classes):
        return classes.astype(str)
    if classes.dtype.kind == "i":
        return classes.astype(np.int64)
    if classes.dtype.kind in "Ubuf":
        return classes
    raise InvalidInputError(f"Labels of the type {classes.dtype} cannot be written out: use texts or numbers.")
