"""Read and write model files of LIBSVM and LIBLINEAR, and data files in their format."""

from mercer.io.formats.libsvm_files import read_data, read_model, training_order, write_data, write_model

__all__ = ["read_data", "read_model", "training_order", "write_data", "write_model"]
