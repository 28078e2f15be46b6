"""Models on disk and in other tools: files without code, LIBSVM, LIBLINEAR, scikit-learn, ONNX, source text."""

from mercer.io.formats.sklearn_conversion import from_sklearn, to_sklearn
from mercer.io.formats.training_data import with_training_data
from mercer.io.model_file.classes import register
from mercer.io.model_file.compression import compress
from mercer.io.model_file.save_load import load, save

__all__ = ["compress", "from_sklearn", "load", "register", "save", "to_sklearn", "with_training_data"]
