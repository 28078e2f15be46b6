"""Write models as ONNX graphs, and read support vector machines from ONNX graphs."""

from mercer.io.formats.onnx_export import to_onnx
from mercer.io.formats.onnx_import import read_onnx

__all__ = ["read_onnx", "to_onnx"]
