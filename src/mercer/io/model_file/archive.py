"""The container of a model file: a zip archive of stored members, each with its size and SHA-256 in the manifest.

    manifest.json    format, version, who wrote it, and of each other member its bytes and checksum
    model.json       the model: plain values, and numbers of arrays
    arrays/0.npy …   NumPy's format, without objects

Nothing is compressed, so that no member can be larger than the file, and nothing is ever written to disk on reading.
The same model gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from mercer.exceptions import ModelFileError

FORMAT = "mercer model"
VERSION = 1
MANIFEST, MODEL = "manifest.json", "model.json"
MEMBER = re.compile(r"model\.json|arrays/(0|[1-9][0-9]{0,6})\.npy")
# members of a file at most
MEMBERS = 100_000
# the only date that the writer knows: equal models are equal files
DATE = (1980, 1, 1, 0, 0, 0)
# what zipfile raises for archives that were damaged or made up
DAMAGE = (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError, struct.error)


def write_archive(target: Any, members: dict[str, bytes], about: dict[str, Any]) -> None:
    """Write members and their manifest to a path, all or nothing, or to a binary file that is open for writing."""
    listed = {name: {"bytes": len(data), "sha256": checksum(data)} for name, data in members.items()}
    manifest = {"format": FORMAT, "version": VERSION, **about, "members": listed}
    text = json.dumps(manifest, indent=1, sort_keys=True, allow_nan=False).encode()
    with writable(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {MANIFEST: text, **members}.items():
            entry = zipfile.ZipInfo(name, date_time=DATE)
            entry.create_system, entry.external_attr = 3, 0o644 << 16  # the same on every system
            archive.writestr(entry, data)


@contextmanager
def writable(target: Any) -> Iterator[IO[bytes]]:
    """An open file, or a new one beside the target that takes its place at the end."""
    if hasattr(target, "write"):
        yield target
        return
    path = Path(target)
    try:
        # a link stays a link
        path = path.resolve()
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}.") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode(path))
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """The permissions of the file that is replaced, or those of a new file."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


class Archive:
    """The members of a model file that is open for reading; each is checked when it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        try:
            self._zip = zipfile.ZipFile(file)
        except DAMAGE as error:
            raise ModelFileError(f"it is not a zip archive, or only part of one ({error})") from None
        self._entries = _entries(self._zip.infolist(), size)
        if MANIFEST not in self._entries:
            raise ModelFileError(f"it has no {MANIFEST}: it was not written by mercer.save")
        self.manifest = _manifest(self._raw(MANIFEST))
        self._listed = self.manifest["members"]
        if set(self._listed) != set(self._entries) - {MANIFEST}:
            odd = sorted(set(self._listed) ^ (set(self._entries) - {MANIFEST}))
            raise ModelFileError(f"its manifest and its members differ: {odd[0]!r} is only in one of them")

    @property
    def names(self) -> set[str]:
        """All members but the manifest."""
        return set(self._listed)

    def read(self, name: str) -> bytearray:
        """The bytes of a member, if they are those that were written."""
        if name not in self._listed:
            raise ModelFileError(f"it has no member {name!r}")
        data = self._raw(name)
        described = self._listed[name]
        if described["bytes"] != len(data) or described["sha256"] != checksum(data):
            raise ModelFileError(f"the checksum of {name} is wrong: the file was damaged or changed")
        return data

    def _raw(self, name: str) -> bytearray:
        entry = self._entries[name]
        data = bytearray(entry.file_size)
        try:
            with self._zip.open(entry) as member:
                read = member.readinto(data)  # type: ignore[attr-defined]
                rest = member.read(1)  # where the checksum of the archive is looked at
        except (*DAMAGE, OSError) as error:
            raise ModelFileError(f"{name} cannot be read ({error})") from None
        if read != len(data) or rest:
            raise ModelFileError(f"{name} has another length than the archive says")
        return data


def _entries(infos: list[zipfile.ZipInfo], size: int) -> dict[str, zipfile.ZipInfo]:
    """The members by name, if all have names, sizes and storage that the writer gives."""
    if len(infos) > MEMBERS:
        raise ModelFileError(f"it has {len(infos)} members, but at most {MEMBERS} are allowed")
    entries: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = info.orig_filename
        if name != MANIFEST and not MEMBER.fullmatch(name):
            raise ModelFileError(f"it has a member {name!r}, which a model file may not have")
        if name in entries:
            raise ModelFileError(f"it has two members {name!r}")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
            raise ModelFileError(f"{name} is compressed or encrypted, but members of a model file must not be")
        entries[name] = info
    total = sum(info.file_size for info in infos)
    if total > size:
        raise ModelFileError(f"its members claim {total} bytes, but the file has {size}")
    return entries


def _manifest(data: bytearray) -> dict[str, Any]:
    """The manifest, if it is one of a version that can be read."""
    manifest = parse_json(data, MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"its {MANIFEST} does not describe a model file")
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{version!r} is not a valid version")
    if version > VERSION:
        raise ModelFileError(
            f"its version is {version}, written by mercer {manifest.get('mercer')!s:.40}; this mercer reads versions "
            f"up to {VERSION}: install a newer mercer"
        )
    members = manifest.get("members")
    if not isinstance(members, dict) or not all(
        isinstance(m, dict) and type(m.get("bytes")) is int and isinstance(m.get("sha256"), str)
        for m in members.values()
    ):
        raise ModelFileError(f"its {MANIFEST} does not list each member with its size and checksum")
    return manifest


def parse_json(data: bytes | bytearray, name: str) -> Any:
    """A JSON text without repeated keys and without NaN."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        raise ModelFileError(f"{name} is nested too deeply") from None
    except ValueError as error:
        raise ModelFileError(f"{name} is not valid JSON ({error})") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is repeated")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not allowed")


def checksum(data: bytes | bytearray) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
