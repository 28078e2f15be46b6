"""The container of a model file: a zip archive of uncompressed members, with their sizes and SHA-256 in a manifest.

    manifest.json    format, version, versions of mercer and scikit-learn, size and checksum of each other member
    model.json       the model: plain values, and references to arrays
    arrays/0.npy …   NumPy's format, without Python objects

Members are not compressed, so none can be larger than the file. Reading writes nothing to disk. The same model gives
the same bytes.
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
# the largest number of members
MEMBERS = 100_000
# a fixed time stamp, so that equal models give equal files
DATE = (1980, 1, 1, 0, 0, 0)
# exceptions that zipfile raises for damaged or forged archives
DAMAGE = (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError, struct.error)


def write_archive(target: Any, members: dict[str, bytes], about: dict[str, Any]) -> None:
    """Write members and their manifest to a path, completely or not at all, or to an open binary file."""
    listed = {name: {"bytes": len(data), "sha256": checksum(data)} for name, data in members.items()}
    manifest = {"format": FORMAT, "version": VERSION, **about, "members": listed}
    text = json.dumps(manifest, indent=1, sort_keys=True, allow_nan=False).encode()
    with writable(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {MANIFEST: text, **members}.items():
            entry = zipfile.ZipInfo(name, date_time=DATE)
            entry.create_system, entry.external_attr = 3, 0o644 << 16  # the same bytes on every system
            archive.writestr(entry, data)


@contextmanager
def writable(target: Any) -> Iterator[IO[bytes]]:
    """Yield the open file, or a temporary file that replaces the target path when the block succeeds."""
    if hasattr(target, "write"):
        yield target
        return
    path = Path(target)
    try:
        # replace the file that a link points to, not the link
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
    """The permissions of the existing file, or the default permissions of a new one."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


class Archive:
    """The members of an open model file. Each member is checked when it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        try:
            self._zip = zipfile.ZipFile(file)
        except DAMAGE as error:
            raise ModelFileError(f"it is not a zip archive or is incomplete ({error})") from None
        self._entries = _entries(self._zip.infolist(), size)
        if MANIFEST not in self._entries:
            raise ModelFileError(f"it has no {MANIFEST}: it was not written by mercer.save")
        self.manifest = _manifest(self._raw(MANIFEST))
        self._listed = self.manifest["members"]
        if set(self._listed) != set(self._entries) - {MANIFEST}:
            odd = sorted(set(self._listed) ^ (set(self._entries) - {MANIFEST}))
            raise ModelFileError(f"its manifest does not match its members: {odd[0]!r} is only in one of the two")

    @property
    def names(self) -> set[str]:
        """The names of all members except the manifest."""
        return set(self._listed)

    def read(self, name: str) -> bytearray:
        """Return the bytes of a member; raise if its size or checksum is wrong."""
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
                rest = member.read(1)  # reading past the end makes zipfile verify its CRC
        except (*DAMAGE, OSError) as error:
            raise ModelFileError(f"{name} cannot be read ({error})") from None
        if read != len(data) or rest:
            raise ModelFileError(f"{name} does not have the length that the archive declares")
        return data


def _entries(infos: list[zipfile.ZipInfo], size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name; raise if a name, a size or a storage method is not one that `save` writes."""
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
            raise ModelFileError(f"{name} is compressed or encrypted, which members of a model file may not be")
        entries[name] = info
    total = sum(info.file_size for info in infos)
    if total > size:
        raise ModelFileError(f"its members declare {total} bytes in all, but the file has {size}")
    return entries


def _manifest(data: bytearray) -> dict[str, Any]:
    """Parse the manifest; raise if it is not valid or its version is not supported."""
    manifest = parse_json(data, MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"its {MANIFEST} does not describe a model file")
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{version!r} is not a valid version")
    if version > VERSION:
        raise ModelFileError(
            f"it has version {version} of the format, written by mercer {manifest.get('mercer')!s:.40}; this mercer "
            f"reads versions up to {VERSION}: install a newer mercer"
        )
    members = manifest.get("members")
    if not isinstance(members, dict) or not all(
        isinstance(m, dict) and type(m.get("bytes")) is int and isinstance(m.get("sha256"), str)
        for m in members.values()
    ):
        raise ModelFileError(f"its {MANIFEST} does not list each member with its size and checksum")
    return manifest


def parse_json(data: bytes | bytearray, name: str) -> Any:
    """Parse JSON; repeated keys and NaN are errors."""
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
    """Return the SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
