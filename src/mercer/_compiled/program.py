"""What compiled loops know of a quadratic program."""

from typing import Any, NamedTuple


class Program(NamedTuple):
    """The variables of a quadratic program: five vectors, and the sample and the group of each variable.

    ``sample`` are positions in F = Kb, those of the null sample at its end. Groups are 0 and 1.
    """

    sample: Any
    group: Any
    linear: Any
    l1: Any
    ridge: Any
    lower: Any
    upper: Any
