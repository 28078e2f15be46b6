"""The state of a fit to rows on disk, written now and then so that a killed run can be continued.

The file has the arrays of each problem as they were last, such as its weights: the solvers start from them, so the
continued run ends within ``tol`` of the same optimum. It is written to a temporary file that replaces the old one, so
it is never half written.
"""

from __future__ import annotations

import json
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError

# seconds between two writes
EVERY = 60.0
FORMAT = "mercer checkpoint 2"

Arrays = dict[str, Any]


class Checkpoint:
    """A file with the named arrays of several problems.

    Parameters
    ----------
    path : the file; it is read if it exists.
    identity : texts that say which data and parameters the arrays belong to.
    n_problems : the number of problems.
    check : is called with the arrays of each problem that is read; raises ValueError or KeyError if they are wrong.
    """

    def __init__(self, path: Any, identity: dict[str, str], n_problems: int, check: Callable[[Arrays], Any]) -> None:
        self.path, self._identity, self._check = Path(path), identity, check
        self._models: list[Arrays | None] = [None] * n_problems
        self._written = -np.inf
        if self.path.is_dir():
            raise InvalidInputError(f"checkpoint={str(path)!r} is a folder: give the path of a file in it.")
        if self.path.exists():
            self._read()
        elif not self.path.parent.is_dir():
            raise InvalidInputError(f"checkpoint={str(path)!r}: there is no folder {self.path.parent}.")

    def model(self, k: int) -> Arrays | None:
        """Return the last arrays of problem k; None if it has not begun."""
        return self._models[k]

    def keep(self, k: int, model: Arrays) -> None:
        """Remember the arrays of problem k, and write all if the last write was a minute ago."""
        if not all(np.isfinite(array).all() for array in model.values()):
            return
        self._models[k] = {name: np.array(array) for name, array in model.items()}
        if time.monotonic() - self._written >= EVERY:
            self.write()

    def write(self) -> None:
        """Replace the file."""
        arrays = {f"{k}.{name}": array for k, model in enumerate(self._models) for name, array in (model or {}).items()}
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        try:
            with open(temporary, "wb") as file:
                np.savez(
                    file,
                    format=np.array(FORMAT),
                    identity=np.array(json.dumps(self._identity, sort_keys=True)),
                    n_problems=np.array(len(self._models)),
                    **arrays,
                )
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise InvalidInputError(
                f"The checkpoint {self.path} cannot be written: {error.strerror or error}. Free some space, or use "
                "another path or checkpoint=None."
            ) from None
        self._written = time.monotonic()

    def _read(self) -> None:
        """Read the file. Raise if it is damaged or belongs to another fit."""
        try:
            if not zipfile.is_zipfile(self.path):
                raise ValueError("it is not an archive of arrays")
            with open(self.path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
                if str(file["format"]) != FORMAT:
                    raise ValueError(f"its format is {str(file['format'])[:40]!r}, not {FORMAT!r}")
                identity = json.loads(str(file["identity"]))
                n_problems = int(file["n_problems"])
                models: dict[int, Arrays] = {}
                for key in set(file.files) - {"format", "identity", "n_problems"}:
                    number, _, name = key.partition(".")
                    models.setdefault(int(number), {})[name] = file[key]
                for model in models.values():
                    if not all(np.isfinite(array).all() for array in model.values()):
                        raise ValueError("it has numbers that are not finite")
                    self._check(model)
                if not models.keys() <= set(range(n_problems)):
                    raise ValueError("it numbers its problems wrongly")
        except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, TypeError) as error:
            raise InvalidInputError(
                f"{self.path} is not a checkpoint, or is damaged: {str(error).rstrip('.')}. Remove it to begin anew, "
                "or give another path."
            ) from None
        different = [
            name for name in sorted({*identity, *self._identity}) if identity.get(name) != self._identity.get(name)
        ]
        if different or n_problems != len(self._models):
            what = ", ".join(
                name if len(str(identity.get(name))) > 40 else f"{name} was {identity.get(name)}" for name in different
            )
            raise InvalidInputError(
                f"The checkpoint {self.path} belongs to another fit (different: {what or 'the number of classes'}). "
                "Fit the same data with the same parameters, remove the file to begin anew, or give another path."
            )
        for k, model in models.items():
            self._models[k] = model
