"""Models on disk and in other tools: model files without code, LIBSVM, LIBLINEAR, scikit-learn, ONNX and source text."""

from mercer.io.classes import register
from mercer.io.files import load, save

__all__ = ["load", "register", "save"]
