"""The earlier address of `mercer.io.onnx.read_onnx`."""

from mercer.io.formats.onnx_import import read_onnx

__all__ = ["read_onnx"]
