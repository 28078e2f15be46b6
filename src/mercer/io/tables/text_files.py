"""Read the bytes or the text of a data file, compressed or not, in any encoding."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import sys
import zlib
from pathlib import Path

from mercer.exceptions import InvalidInputError

# file name suffixes of compressed files
COMPRESSED = (".gz", ".xz", ".bz2")
# the first bytes of compressed files
MAGIC = ((b"\x1f\x8b", gzip.decompress), (b"\xfd7zXZ\x00", lzma.decompress), (b"BZh", bz2.decompress))
# byte order marks; UTF-32 first, because UTF-16's mark is a prefix of it
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip


def shown(path: str) -> str:
    """Return the name of a file for messages."""
    return "The standard input" if path == "-" else path


def read_bytes(path: str) -> bytes:
    """Read a whole file, or standard input, and decompress it."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}.") from None
    for magic, decompress in MAGIC:
        if data.startswith(magic):
            try:
                return bytes(decompress(data))
            except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                raise InvalidInputError(
                    f"{shown(path)} cannot be decompressed: {error}. The file is damaged or incomplete: get a new copy."
                ) from None
    return data


def read_text(path: str, encoding: str | None = None) -> tuple[str, str]:
    """Read a text file. Also returns a note if the encoding was guessed, else an empty string."""
    data = read_bytes(path)
    if data.startswith(b"PK\x03\x04"):
        raise InvalidInputError(
            f"{shown(path)} is a zip archive or an Excel file, not text. Unpack it, or save the sheet as CSV."
        )
    note = ""
    if encoding is None:
        encoding, note = _guess(data, shown(path))
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except LookupError:
        raise InvalidInputError(
            f"The encoding {encoding!r} is unknown: use a name that Python knows, such as utf-8, latin-1, cp1252 or "
            "utf-16."
        ) from None
    except UnicodeError as error:
        raise InvalidInputError(
            f"{shown(path)} is not text in the encoding {encoding}: {error}. Try another --encoding, such as latin-1."
        ) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InvalidInputError(
            f"{shown(path)}, line {line}: found a zero byte, which text files do not contain. If the file is UTF-16, "
            "use --encoding utf-16-le; if it is not text, convert it to CSV first."
        )
    return text, note


def _guess(data: bytes, name: str) -> tuple[str, str]:
    """Guess the encoding: by the byte order mark, else UTF-8, else Windows-1252 or Latin-1 with a note."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return encoding, ""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        encoding = "cp1252" if _decodes(data, "cp1252") else "latin-1"
        return encoding, (
            f"{name} is not in UTF-8 (line {line} has the byte {data[error.start]:#04x}): read as {encoding}, in which "
            f"it is {data[error.start : error.start + 1].decode(encoding)!r}. Use --encoding if that is wrong."
        )
    return "utf-8", ""


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
