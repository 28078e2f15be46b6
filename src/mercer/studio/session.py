"""The session of one studio process: the table of the command line, and whether loops are compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mercer
from mercer.studio.warming import Warming


@dataclass
class Session:
    """The session of this process.

    Attributes
    ----------
    table : the id of the table that the command line named; None if it named none.
    warming : compilation in the background; None if there is none.
    """

    table: str | None = None
    warming: Warming | None = None

    def to_json(self) -> dict[str, Any]:
        """The answer to `session`, without limits."""
        found = None
        if self.table is not None:
            from mercer.studio.tables import TABLES, described

            found = described(TABLES.get(self.table))
        return {
            "table": found,
            "version": mercer.__version__,
            "ready": self.warming is None or self.warming.done.is_set(),
            "line": "" if self.warming is None else self.warming.line,
        }


SESSION = Session()
