"""Data files into samples: find the format, the columns and their kinds."""

from mercer.io.tables.samples import Samples, read_samples

__all__ = ["Samples", "read_samples"]
