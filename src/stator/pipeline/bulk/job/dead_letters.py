"""Dead letters: the rows that could not be written, one JSON object per line.

    {"source": "orders.csv", "row": 17, "format": "csv", "content": {"pk": "a", "total": "x"},
     "reason": "total: 'x' is not a number", "types": {"pk": "S", "total": "N"}}

``content`` holds what was read, without loss. ``format`` says how to read it: ``csv`` and
``values`` are the fields of a row (``values`` come from Parquet and Arrow), ``jsonl`` is a line of
JSON, and ``dynamodb-json`` is an item or a line with one. ``types`` are the attribute types of CSV
columns. A value that JSON cannot hold is an object with one name:

    {"$base64": "Y2Fm6Q=="}    bytes, or text that is not UTF-8
    {"$number": "NaN"}         NaN, infinity, or a number with many digits
    {"$map": {"$number": 1}}   a map that looks like one of these

A repaired file is loaded with ``--format dead-letters`` (``load.letter_rows``).

The letters of a block are written when every block before it is done, so the file's length always
agrees with the journal's position. A resumed job first cuts the file to the length in the journal,
so the file has each letter once.
"""

from __future__ import annotations

import math
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from stator.errors import BulkError, RowRefused
from stator.formats.plain import text_of
from stator.pipeline.bulk.job.journal import unwritable
from stator.pipeline.bulk.job.pending_rows import DeadLetter


@dataclass(frozen=True, slots=True)
class LetterContent:
    """A row of the input as it was read, for a dead letter.

    ``format`` says how to read ``value``: ``csv``, ``values``, ``jsonl`` or ``dynamodb-json``.
    ``types`` are the attribute types of CSV columns.
    """

    format: str
    value: Any
    types: Mapping[str, str] | None = None

    @classmethod
    def of_line(cls, format_name: str, line: bytes) -> LetterContent:
        """Return a line of an input as the content of a dead letter.

        The line becomes text if it is UTF-8, and stays bytes otherwise.
        """
        line = line.rstrip(b"\r\n")
        try:
            return cls(format_name, line.decode())
        except UnicodeDecodeError:
            return cls(format_name, line)


def letter_data(letter: DeadLetter) -> dict[str, Any]:
    """Return a dead letter as the data that is stored as JSON in one line of the file."""
    content = letter.content
    if not isinstance(content, LetterContent):
        content = LetterContent("dynamodb-json", content)
    data = {
        "source": _printable(letter.source),
        "row": letter.row,
        "format": content.format,
        "content": encode_content(content.value),
        "reason": _printable(letter.reason),
    }
    return data if not content.types else {**data, "types": dict(content.types)}


def encode_content(value: Any) -> Any:
    """Return a value as JSON data from which ``decode_content`` returns an equal value.

    Dates, times and UUIDs become the text that a load stores for them.
    """
    match value:
        case None | bool():
            return value
        case str():
            return value if _is_utf8(value) else _base64(value.encode("utf-8", "surrogateescape"))
        case int():
            return value if -(1 << 63) <= value < 1 << 63 else {"$number": str(value)}
        case float():
            return value if math.isfinite(value) else {"$number": str(Decimal(value))}
        case Decimal():
            return {"$number": str(value)}
        case bytes() | bytearray() | memoryview():
            return _base64(bytes(value))
        case list() | tuple() | set() | frozenset():
            return [encode_content(each) for each in value]
        case dict():
            encoded = {str(name): encode_content(each) for name, each in value.items()}
            is_marked = len(encoded) == 1 and next(iter(encoded)).startswith("$")
            return {"$map": encoded} if is_marked else encoded
    try:
        return text_of(value)
    except RowRefused:
        return str(value)


def decode_content(data: Any) -> Any:
    """Return the value that ``encode_content`` encoded as ``data``.

    Raises an error such as ValueError if text in ``data`` is not valid base64 or not a number.
    """
    match data:
        case {"$base64": str(text), **rest} if not rest:
            return b64decode(text, validate=True)
        case {"$number": str(text), **rest} if not rest:
            return _number(text)
        case {"$map": dict(inner), **rest} if not rest:
            return {name: decode_content(each) for name, each in inner.items()}
        case dict():
            return {name: decode_content(each) for name, each in data.items()}
        case list():
            return [decode_content(each) for each in data]
    return data


def _number(text: str) -> int | float | Decimal:
    number = Decimal(text)
    return number if number.is_finite() else float(number)


def _base64(content: bytes) -> dict[str, str]:
    return {"$base64": b64encode(content).decode()}


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


class DeadLetterFile:
    """The file to which one job writes its dead letters; None as ``path`` discards them.

    ``keep_bytes`` is the length in the journal, to which a resumed job cuts the file.
    """

    def __init__(self, path: Path | None, keep_bytes: int = 0) -> None:
        self.path = path
        self.length = keep_bytes
        self._file: BinaryIO | None = None
        if path is None:
            return
        try:
            if keep_bytes:
                os.truncate(path, keep_bytes)
                self._file = path.open("ab")
            else:
                self._file = path.open("wb")
        except OSError as error:
            raise BulkError(
                f"{path} cannot be written: {error.strerror or error}",
                hint="name another file with --dead-letters",
            ) from None

    def add(self, letters: list[DeadLetter]) -> None:
        if self._file is not None and letters:
            text = b"".join(
                orjson.dumps(letter_data(letter), None, orjson.OPT_APPEND_NEWLINE)
                for letter in letters
            )
            with self._writing():
                self._file.write(text)
            self.length += len(text)

    def flush(self) -> None:
        if self._file is not None:
            with self._writing():
                self._file.flush()
                os.fsync(self._file.fileno())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        assert self.path is not None
        try:
            yield
        except OSError as error:
            raise unwritable(self.path, error) from None

    def close(self) -> None:
        """Flush and close the file. The file is closed even if flushing fails."""
        file, self._file = self._file, None
        if file is not None:
            with self._writing(), file:
                file.flush()
                os.fsync(file.fileno())
