"""Models on disk and in other tools: files without code, LIBSVM, LIBLINEAR, scikit-learn, ONNX, source text."""

from mercer.io.classes import register
from mercer.io.compression import compress
from mercer.io.exchange import from_sklearn, to_sklearn
from mercer.io.files import load, save
from mercer.io.training_data import with_training_data

__all__ = ["compress", "from_sklearn", "load", "register", "save", "to_sklearn", "with_training_data"]
