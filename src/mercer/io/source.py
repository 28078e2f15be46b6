"""Write small models as source code in Python or C, without dependencies."""

from mercer.io.formats.source_code import to_c, to_python

__all__ = ["to_c", "to_python"]
