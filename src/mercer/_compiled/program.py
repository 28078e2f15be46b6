"""The form in which compiled loops receive a quadratic program."""

from typing import Any, NamedTuple


class Program(NamedTuple):
    """min 1/2 b'Kb - linear'b + sum l1|b| + 1/2 sum ridge b^2  s.t. lower <= b <= upper, the sum over each group fixed.

    ``sample[v]`` is the position of variable v's sample in F = Kb, the last for the null sample. Groups are numbered
    from 0.
    """

    sample: Any
    group: Any
    linear: Any
    l1: Any
    ridge: Any
    lower: Any
    upper: Any
