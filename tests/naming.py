"""Names of test cases that are the same in every process."""

import re
from types import FunctionType

import pytest


def named(value):
    """repr without addresses in memory, which differ between the processes of one run; the type if it is long.

    Texts are their first 100 characters, functions their names, and lambdas the names that they use.
    """
    if isinstance(value, str):
        return value[:100]
    if isinstance(value, FunctionType):
        code = value.__code__
        words = ", ".join(code.co_varnames[: code.co_argcount])
        return " ".join(code.co_names[:6]) or f"lambda {words}" if value.__name__ == "<lambda>" else value.__name__
    if isinstance(value, type):
        return value.__name__
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(value)).replace("<function <lambda>>", "lambda")
    return text.replace("<lambda>", "lambda") if len(text) <= 100 and "\n" not in text else type(value).__name__


def cases(**values):
    """The values as cases of a test, with these names."""
    return [pytest.param(value, id=name) for name, value in values.items()]
