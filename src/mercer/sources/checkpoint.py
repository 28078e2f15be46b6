"""The state of a fit to rows on disk, written now and then so that a killed run can be continued.

The file has the weights of each problem as they were last: the solvers start from them, so the continued run ends
within ``tol`` of the same optimum. It is written to a temporary file that replaces the old one, so it is never half
written.
"""

from __future__ import annotations

import json
import os
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Vector

# seconds between two writes
EVERY = 60.0
FORMAT = "mercer checkpoint 1"


class Checkpoint:
    """A file with the weights of several problems.

    Parameters
    ----------
    path : the file; it is read if it exists.
    identity : texts that say which data and parameters the weights belong to.
    n_problems : the number of problems.
    """

    def __init__(self, path: Any, identity: dict[str, str], n_problems: int) -> None:
        self.path, self._identity = Path(path), identity
        self._models: list[Vector | None] = [None] * n_problems
        self._written = -np.inf
        if self.path.exists():
            self._read()
        elif not self.path.parent.is_dir():
            raise InvalidInputError(f"checkpoint={str(path)!r}: there is no folder {self.path.parent}.")

    def model(self, k: int) -> Vector | None:
        """Return the last weights of problem k; None if it has not begun."""
        return self._models[k]

    def keep(self, k: int, w: Vector) -> None:
        """Remember the weights of problem k, and write all if the last write was a minute ago."""
        if not np.isfinite(w).all():
            return
        self._models[k] = np.array(w, dtype=np.float64)
        if time.monotonic() - self._written >= EVERY:
            self.write()

    def write(self) -> None:
        """Replace the file."""
        known = [k for k, model in enumerate(self._models) if model is not None]
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        try:
            with open(temporary, "wb") as file:
                np.savez(
                    file,
                    format=np.array(FORMAT),
                    identity=np.array(json.dumps(self._identity, sort_keys=True)),
                    n_problems=np.array(len(self._models)),
                    known=np.array(known, dtype=np.int64),
                    models=np.array([self._models[k] for k in known], dtype=np.float64),
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
            with open(self.path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
                if str(file["format"]) != FORMAT:
                    raise ValueError(f"its format is {str(file['format'])[:40]!r}, not {FORMAT!r}")
                identity = json.loads(str(file["identity"]))
                n_problems, known, models = int(file["n_problems"]), file["known"], file["models"]
                if models.ndim != 1 + (len(known) > 0) or len(known) != len(models) or not np.isfinite(models).all():
                    raise ValueError("its weights are not numbers")
                if len(known) and not 0 <= known.min() <= known.max() < n_problems:
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
        for k, model in zip(known.tolist(), models, strict=True):
            self._models[k] = model
