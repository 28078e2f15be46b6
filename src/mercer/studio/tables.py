"""Tables of the user: open a file, and draw some of its rows on the plane."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
import shutil
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.io.tables import read_samples
from mercer.io.tables.preprocessing import column_transformer
from mercer.kernels import parse_kernel
from mercer.kernels.features import Matrix, Vector
from mercer.studio.panels.fitted_machine import quietly, refusal
from mercer.studio.state import MOST_CLASSES, MOST_POINTS, StateError, kind, shorten
from mercer.studio.table_files import check_table_file

# tables that are kept open
KEPT = 4
# rows of kernel principal components: eigenvectors take time n³; string kernels take longer
MOST_COMPONENTS, MOST_STRINGS, LONGEST_STRING = 800, 300, 2000
# names of columns that are likely to be the target
TARGETS = ("target", "class", "label", "y", "species", "outcome", "diagnosis", "quality", "price")


@dataclass(eq=False)
class OpenTable:
    """A table that was opened: its file, and its samples for each target that was asked for."""

    id: str
    name: str
    path: Path
    default: str
    samples: dict[str, Any] = field(default_factory=dict)

    def read(self, target: str) -> Any:
        """The samples with this target."""
        if target not in self.samples:
            try:
                with quietly():
                    self.samples[target] = read_samples(str(self.path), target=target, na_target="drop")
            except InvalidInputError as error:
                raise StateError(self.told(error), "table") from None
            except (ValueError, OverflowError, TypeError) as error:
                raise StateError(f"{self.name} cannot be read: {refusal(error)}", "table") from None
        return self.samples[target]

    def told(self, error: Exception) -> str:
        """The message of an error, with the name of the file instead of its path."""
        return str(error).replace(str(self.path), self.name)


class Tables:
    """The open tables of this process, in a temporary folder that is deleted when the process ends."""

    def __init__(self) -> None:
        self._tables: OrderedDict[str, OpenTable] = OrderedDict()
        self._lock = threading.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path:
        """The folder of copies, made when it is first needed."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="mercer-studio-", ignore_cleanup_errors=True)
        return Path(self._folder.name)

    def add(self, name: str, data: bytes | Path) -> OpenTable:
        """Open a table from its bytes, or from a file."""
        shown = Path(name.replace("\\", "/")).name[:100] or "table.csv"
        safe = re.sub(r"[^A-Za-z0-9._-]", "_", shown)
        identity = secrets.token_hex(8)
        path = self.folder / f"{identity}-{safe}"
        if isinstance(data, bytes):
            path.write_bytes(data)
        else:
            shutil.copyfile(data, path)
        try:
            check_table_file(path, shown)
            table = OpenTable(identity, shown, path, "")
            table.default = guess_target(table)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        with self._lock:
            self._tables[identity] = table
            while len(self._tables) > KEPT:
                _, old = self._tables.popitem(last=False)
                old.path.unlink(missing_ok=True)
        return table

    def get(self, identity: Any) -> OpenTable:
        """An open table by its id."""
        with self._lock:
            if not isinstance(identity, str) or identity not in self._tables:
                raise StateError("This table is no longer open: open the file again.", "table")
            self._tables.move_to_end(identity)
            return self._tables[identity]


TABLES = Tables()


def guess_target(table: OpenTable) -> str:
    """The column that is likely to be predicted: by its name, else the last one."""
    samples = table.read("-1")
    if samples.kind != "table":
        raise StateError(f"{table.name} is not a table with named columns.", "table")
    names = [column.name for column in samples.columns]
    for wanted in TARGETS:
        for name in names:
            if name.lower() == wanted:
                return str(name)
    return str(samples.target)


def described(table: OpenTable) -> dict[str, Any]:
    """The answer to `table_open`."""
    samples = table.read(table.default)
    columns = [*samples.columns, samples.target_column]
    return {
        "table": table.id,
        "name": table.name,
        "columns": [
            {
                "name": column.name,
                "kind": _kind(samples, column),
                "distinct": column.different,
                "missing": column.missing,
                "note": "; ".join(text for text in (column.why, column.note) if text) or None,
            }
            for column in columns
        ],
        "rows": len(samples),
        "target": table.default,
        "notes": [note.replace(str(table.path), table.name) for note in samples.notes],
    }


def _kind(samples: Any, column: Any) -> str:
    """The kind of a column; strings that a fit leaves out, such as sequences that are all different, are text here."""
    if column.kind == "left out" and column.name in samples.X and samples.X[column.name].dtype == object:
        return "text"
    return str(column.kind)


def open_json(payload: dict[str, Any]) -> dict[str, Any]:
    """The answer to `table_open`."""
    name, text = payload.get("name"), payload.get("base64")
    if not isinstance(name, str) or not isinstance(text, str):
        raise StateError("table_open needs a name and the bytes of the file as base64.", "table")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise StateError("The bytes of the file are not base64.", "base64") from None
    return described(TABLES.add(name, data))


# ---- rows on the plane ------------------------------------------------------------------------------------------


def plane_json(payload: dict[str, Any]) -> dict[str, Any]:
    """The answer to `table_plane`."""
    table = TABLES.get(payload.get("table"))
    target = _name(payload, "target", table.default)
    samples = table.read(target)
    rows = np.arange(len(samples))
    if payload.get("components"):
        rows, less = _drawn(rows, MOST_COMPONENTS)
        labels, classes, more = _labels(samples, rows)
        rows, labels = rows[labels >= 0], labels[labels >= 0]
        with quietly():
            prepared = column_transformer(samples.columns).fit_transform(samples.X)
        dense = np.asarray(prepared.todense() if hasattr(prepared, "todense") else prepared, dtype=np.float64)[rows]
        XY = components(dense, _kernel(payload, "gaussian()"))
        axes = ["component 1", "component 2"]
        return _points(XY, labels, classes, axes, [*less, *more], len(samples), len(rows))
    x = _name(payload, "x", "")
    y = _name(payload, "y", target)
    rows, less = _drawn(rows, MOST_POINTS)
    if y == target and samples.target_column.kind == "number":
        values = np.asarray(samples.y, dtype=np.float64)[rows]
        XY, names, about = _standard(np.column_stack([_numbers(samples, x, rows), values]), [x, target])
        found = _points(XY, np.zeros(len(rows), np.intp), [], names, [*less, *about], len(samples), len(rows))
        return found | {"mode": "regress"}
    labels, classes, more = _labels(samples, rows)
    rows, labels = rows[labels >= 0], labels[labels >= 0]
    both = np.column_stack([_numbers(samples, one, rows) for one in (x, y)])
    XY, names, about = _standard(both, [x, y])
    return _points(XY, labels, classes, names, [*less, *more, *about], len(samples), len(rows))


def strings_json(payload: dict[str, Any]) -> dict[str, Any]:
    """The answer to `table_strings`: texts of a column by two kernel principal components."""
    table = TABLES.get(payload.get("table"))
    samples = table.read(_name(payload, "target", table.default))
    name = _name(payload, "column", "")
    if name not in list(samples.X.columns):
        raise StateError(f"{table.name} has no column {shorten(name)} beside the target.", "column")
    texts = np.array(["" if one is None else str(one)[:LONGEST_STRING] for one in samples.X[name]], dtype=object)
    rows, less = _drawn(np.arange(len(samples)), MOST_STRINGS)
    labels, classes, more = _labels(samples, rows)
    rows, labels = rows[labels >= 0], labels[labels >= 0]
    kernel = _kernel(payload, "spectrum(3, normalize=True)", domain="strings")
    XY = components([str(one) for one in texts[rows]], kernel)
    axes = [f"{name}: component 1", f"{name}: component 2"]
    found = _points(XY, labels, classes, axes, [*less, *more], len(samples), len(rows))
    return found | {"texts": [str(one)[:80] for one in texts[rows]]}


def components(samples: Any, kernel: Any) -> Matrix:
    """Two kernel principal components of samples, each with standard deviation 1."""
    try:
        with quietly():
            kernel = kernel.bind(samples)
            features = kernel.prepare(samples)
            K = np.asarray(kernel.block(features, features), dtype=np.float64)
    except (ValueError, ArithmeticError, TypeError) as error:
        raise StateError(refusal(error), "kernel") from None
    if not np.isfinite(K).all():
        raise StateError("The kernel matrix has values that are not finite: choose another kernel.", "kernel")
    n = len(K)
    length = np.sqrt(np.maximum(np.diagonal(K), 1e-300))
    if K.shape[0] and np.ptp(length) > 1e-9 * float(length.max()) and not isinstance(samples, np.ndarray):
        K = K / length / length[:, None]  # long texts would be far away from all others
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    _, vectors = np.linalg.eigh((centred + centred.T) / 2)
    XY = np.zeros((n, 2))
    for k in range(min(2, n)):
        vector = vectors[:, -1 - k]
        XY[:, k] = vector * np.sqrt(n) * (1.0 if vector[np.argmax(np.abs(vector))] > 0 else -1.0)
    return XY


def _kernel(payload: dict[str, Any], default: str, domain: str = "vectors") -> Any:
    text = payload.get("kernel") or default
    if not isinstance(text, str) or len(text) > 500:
        raise StateError(f"kernel must be a short text, but {kind(text)} was given.", "kernel")
    try:
        kernel = parse_kernel(text)
    except InvalidInputError as error:
        raise StateError(str(error), "kernel") from None
    except Exception as error:
        raise StateError(f"Cannot build the kernel {text!r}: {error}.", "kernel") from None
    if kernel.domain not in (domain, "any"):
        raise StateError(f"{kernel!r} does not compare {domain}: choose another kernel.", "kernel")
    return kernel


def _name(payload: dict[str, Any], key: str, default: str) -> str:
    given = payload.get(key, default)
    if not isinstance(given, str) or not given:
        raise StateError(f"{key} must be the name of a column.", key)
    return given


def _drawn(rows: Any, most: int) -> tuple[Any, list[str]]:
    """At most ``most`` rows, drawn at random with a fixed seed, and a note about the draw."""
    if len(rows) <= most:
        return rows, []
    chosen = np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))
    return rows[chosen], [f"{most:,} of {len(rows):,} rows, drawn at random."]


def _labels(samples: Any, rows: Any) -> tuple[Vector, list[str], list[str]]:
    """The class of each row as 0 to 9, the names of the classes, and notes; −1 for classes that are left out."""
    y = np.asarray([str(one) for one in np.asarray(samples.y, dtype=object)[rows]], dtype=object)
    names, counts = np.unique(y.astype(str), return_counts=True)
    if len(names) > max(MOST_CLASSES, len(rows) // 2) and samples.target_column.kind == "number":
        # many different numbers: below and above the median
        numbers = np.asarray(samples.y, dtype=np.float64)[rows]
        middle = float(np.median(numbers))
        classes = [f"{samples.target} ≤ {middle:g}", f"{samples.target} > {middle:g}"]
        return (numbers > middle).astype(np.intp), classes, ["The target is a number: it is split at its median."]
    order = names[np.argsort(-counts, kind="stable")][:MOST_CLASSES]
    kept = sorted(order.tolist())
    place = {name: k for k, name in enumerate(kept)}
    labels = np.array([place.get(one, -1) for one in y], dtype=np.intp)
    left = len(names) - len(kept)
    notes = [f"The {len(kept)} largest of {len(names)} classes are shown."] if left else []
    return labels, [str(one) for one in kept], notes


def _numbers(samples: Any, name: str, rows: Any) -> Vector:
    """A column of numbers at some rows; missing cells are its median."""
    if name not in list(samples.X.columns):
        raise StateError(f"There is no column {shorten(name)} beside the target.", "x")
    values = samples.X[name].to_numpy()[rows]
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise StateError(f"The column {shorten(name)} holds no numbers.", "x") from None
    known = np.isfinite(numbers)
    if not known.any():
        raise StateError(f"The column {shorten(name)} has no numbers in these rows.", "x")
    return np.where(known, numbers, np.median(numbers[known]))


def _standard(XY: Matrix, names: list[str]) -> tuple[Matrix, list[str], list[str]]:
    """Columns with mean 0 and standard deviation 1, so that one kernel width suits both."""
    mean, spread = XY.mean(axis=0), XY.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    about = [f"{name}: 0 is {m:.4g}, 1 unit is {s:.4g}." for name, m, s in zip(names, mean, spread, strict=True)]
    return (XY - mean) / spread, [f"{name} (standardised)" for name in names], about


def _points(
    XY: Matrix, labels: Vector, classes: list[str], axes: list[str], notes: list[str], total: int, shown: int
) -> dict[str, Any]:
    if shown == 0:
        raise StateError("No rows are left to show.", "table")
    XY = np.clip(np.nan_to_num(XY), -1e5, 1e5)
    points = [[round(float(x), 5), round(float(y), 5), int(k)] for (x, y), k in zip(XY, labels, strict=True)]
    return {
        "mode": "classify",
        "points": points,
        "axes": axes,
        "classes": classes,
        "notes": notes,
        "rows": total,
        "shown": shown,
    }
