"""Names of test cases that are the same in every process."""

import re

import pytest


def named(value):
    """repr without addresses in memory, which differ between the processes of one run; the type if it is long."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return text if len(text) <= 100 else type(value).__name__


def cases(**values):
    """The values as cases of a test, with these names."""
    return [pytest.param(value, id=name) for name, value in values.items()]
