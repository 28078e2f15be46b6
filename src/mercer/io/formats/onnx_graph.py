"""Build an ONNX graph: nodes, constants, inputs and outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

# versions old enough for every runtime of recent years
OPSET, ML_OPSET, IR = 17, 3, 8
ML = "ai.onnx.ml"


class Graph:
    """Nodes, constants and inputs. Generated names begin with an underscore.

    ``dtype`` is the type of all arithmetic, ``outside`` the type of inputs and outputs.
    """

    def __init__(self, onnx: Any, dtype: np.dtype[Any], outside: np.dtype[Any]) -> None:
        self.onnx, self.dtype = onnx, dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.element = onnx.helper.np_dtype_to_tensor_dtype(dtype)
        self.outside = onnx.helper.np_dtype_to_tensor_dtype(outside)

    def constant(self, value: Any, exact: bool = False) -> str:
        """Add a constant. Floats take the type of the graph, or float64 if ``exact``; other types stay as they are."""
        array = np.asarray(value)
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                array = array.astype(np.float64 if exact else self.dtype)
        name = f"_c{len(self.constants)}"
        if array.dtype.kind in "U":
            texts = [text.encode() for text in array.ravel().tolist()]
            tensor = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, array.shape, texts)
        else:
            tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        self.constants.append(tensor)
        return name

    def op(self, kind: str, *inputs: Any, output: str | None = None, exact: bool = False, **attributes: Any) -> str:
        """Add a node and return the name of its output. Inputs that are not names become constants."""
        names = [i if isinstance(i, str) else self.constant(i, exact) for i in inputs]
        output = f"_t{len(self.nodes)}" if output is None else output
        self.nodes.append(self.onnx.helper.make_node(kind, names, [output], **attributes))
        return output

    def total(self, name: str, axis: int, keep: int = 1) -> str:
        """Sum along an axis."""
        return self.op("ReduceSum", name, np.array([axis], np.int64), keepdims=keep)

    def take(self, name: str, shape: list[Any]) -> str:
        """Add a numeric input and return its name after conversion to the type of the graph."""
        self.inputs.append(self.describe(name, self.outside, shape))
        return self.op("Cast", name, to=self.element) if self.outside != self.element else name

    def publish(self, name: str, output: str, shape: list[Any]) -> Any:
        """Add a numeric output."""
        self.op("Cast", name, to=self.outside, output=output)
        return self.describe(output, self.outside, shape)

    def describe(self, name: str, element: int, shape: list[Any]) -> Any:
        """Describe an input or output."""
        return self.onnx.helper.make_tensor_value_info(name, element, shape)

    def model(self, name: str, outputs: list[Any]) -> Any:
        """Return the finished and checked ONNX model."""
        helper = self.onnx.helper
        made = helper.make_graph(self.nodes, name, self.inputs, outputs, self.constants)
        versions = [helper.make_opsetid("", OPSET)]
        if any(node.domain == ML for node in self.nodes):
            versions.append(helper.make_opsetid(ML, ML_OPSET))
        found = helper.make_model(made, opset_imports=versions, producer_name="mercer")
        found.ir_version = IR
        self.onnx.checker.check_model(found)
        return found
