"""Every step of a run on a small problem: `Steps`, which ``trace=True`` keeps as ``steps_``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.kernels.features import Vector

# most steps of a run that are kept
MOST_STEPS = 1_000_000
# steps that printing shows at the beginning and at the end
SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class Steps:
    """Every step of a run, in order: an array for each quantity, with one entry per step.

    ``steps["i"]`` or ``steps.i`` is a quantity, ``steps[k]`` is step k as a dictionary, ``steps[:k]`` are the first k,
    ``len(steps)`` is the number of steps; ``pandas.DataFrame(steps.columns)`` is a table of all steps.

    Attributes
    ----------
    method : the name of the procedure.
    columns : dictionary of the arrays, which are read-only. Their names depend on the procedure.
    measure : the column that the procedure improves; displays draw it.
    complete : whether all steps were kept, rather than the first million.

    Examples
    --------
    >>> from mercer import SVC
    >>> model = SVC(kernel="linear", C=1.0, trace=True).fit([[0.0], [1.0], [3.0]], [0, 1, 1])
    >>> model.steps_
    Steps of SMO: 1 step with i, j, L, H, unclipped, clipped, alpha_i, dual
    >>> model.steps_[0]["H"]
    1.0
    """

    method: str
    columns: dict[str, Vector]
    measure: str
    complete: bool = True

    def __post_init__(self) -> None:
        columns = {}
        for name, values in self.columns.items():
            columns[name] = np.array(values)
            columns[name].flags.writeable = False
        if len({len(values) for values in columns.values()}) != 1:
            raise ValueError("all columns of steps must have the same length")
        object.__setattr__(self, "columns", columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, key: str | int | slice) -> Any:
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(f"steps have no {key!r}: they have {', '.join(self.columns)}")
            return self.columns[key]
        if isinstance(key, slice):
            return replace(self, columns={name: values[key] for name, values in self.columns.items()})
        return {name: values[key].item() for name, values in self.columns.items()}

    def __getattr__(self, name: str) -> Vector:
        if name.startswith("_") or name == "columns" or name not in self.columns:
            known = ", ".join(vars(self).get("columns", ()))
            raise AttributeError(f"steps have no {name!r}: they have {known}")
        return self.columns[name]

    def of_samples(self, index: Vector) -> Steps:
        """The same steps, where variable k is that of sample index[k]."""
        numbered = {name: index[values] for name, values in self.columns.items() if name in ("i", "j")}
        return replace(self, columns={**self.columns, **numbered})

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.columns]

    def __repr__(self) -> str:
        noun = "step" if len(self) == 1 else "steps"
        first = "" if self.complete else "the first "
        return f"Steps of {self.method}: {first}{len(self):,} {noun} with {', '.join(self.columns)}"

    def __str__(self) -> str:
        """A table of the first and the last steps."""
        n = len(self)
        shown = list(range(n)) if n <= 2 * SHOWN + 1 else [*range(SHOWN), *range(n - SHOWN, n)]
        rows = [["step", *self.columns], *([str(k), *(f"{v:.6g}" for v in self[k].values())] for k in shown)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        if len(shown) < n:
            lines.insert(1 + SHOWN, "...")
        return "\n".join([repr(self), *lines])
