"""What imports read: items in DynamoDB JSON, Ion or CSV, plain or compressed with gzip or zstd.

A reader gives, for each item of an object, the item or the reason why it is none. What makes the rest of an object unreadable,
as damaged compression does, ends it with ``ObjectDamaged``. So does, as on AWS, a line of JSON or a value of Ion that has no
``Item``: whatever follows it in the object is not read.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader, RawIOBase, TextIOWrapper
from typing import Any, BinaryIO, cast

import orjson

from stator.engine.recovery import ion
from stator.errors import ConfigurationError, ServiceError, ValidationFailed
from stator.model.values import INVALID, Item, check_types, normalise_item

_CSV_FIELD_BYTES = 512 * 1024
_BUFFER_BYTES = 64 * 1024
# What the decompressors and the parsers of these formats raise on damaged input.
_DAMAGE = (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error)


@dataclass(frozen=True, slots=True)
class Read:
    """An item with its size, or what is wrong with it."""

    item: Item | None
    size: int = 0
    problem: str | None = None


class ObjectDamaged(Exception):
    """Nothing more can be read from an object."""


@dataclass(frozen=True, slots=True)
class InputFormat:
    """``types`` are those of key attributes, which CSV, where all is text, cannot tell."""

    name: str
    compression: str = "NONE"
    delimiter: str = ","
    headers: tuple[str, ...] | None = None
    types: tuple[tuple[str, str], ...] = ()

    def check(self) -> None:
        """Refuse a request for what is not installed."""
        ion.check_ion(self.name)
        if self.compression == "ZSTD":
            try:
                _zstandard()
            except ConfigurationError as error:
                raise ValidationFailed(
                    f"ZSTD is not available here: {error.message}", hint=error.hint
                ) from None


class Contents(RawIOBase):
    """An object without its compression; ``size_bytes`` is how much of it has been read."""

    def __init__(self, file: BinaryIO, compression: str = "NONE") -> None:
        self._file = _decompressed(file, compression)
        self.size_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.size_bytes += len(data)
        return len(data)


def read_items(contents: Contents, chosen: InputFormat) -> Iterator[Read]:
    try:
        yield from _READERS[chosen.name](BufferedReader(contents, _BUFFER_BYTES), chosen)
    except _DAMAGE as error:
        raise ObjectDamaged(str(error)) from error
    except Exception as error:
        if type(error).__module__.startswith(("amazon.ion", "zstandard")):
            raise ObjectDamaged(str(error)) from error
        raise


def _decompressed(file: BinaryIO, compression: str) -> BinaryIO:
    if compression == "GZIP":
        return cast("BinaryIO", gzip.GzipFile(fileobj=file, mode="rb"))
    if compression == "ZSTD":
        return cast(
            "BinaryIO", _zstandard().ZstdDecompressor().stream_reader(file, read_across_frames=True)
        )
    return file


def _zstandard() -> Any:
    try:
        return import_module("zstandard")
    except ImportError:
        raise ConfigurationError(
            "zstd is not installed", hint="pip install 'stator[blobs]'"
        ) from None


# -- DynamoDB JSON


def _json(file: BinaryIO, chosen: InputFormat) -> Iterator[Read]:
    for line in _text_lines(file):
        if line.strip():
            yield _read_line(line)


def _text_lines(file: BinaryIO) -> Iterator[str]:
    # A byte order mark is not part of the data; lines end at newlines alone, which JSON escapes inside values.
    with TextIOWrapper(file, encoding="utf-8-sig", newline="\n") as text:
        yield from text


def _read_line(line: str) -> Read:
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ObjectDamaged(f"A line is not JSON: {error}") from None
    item = document.get("Item") if isinstance(document, dict) else None
    if not isinstance(item, dict):
        raise ObjectDamaged("A line has no Item")
    return checked(item)


def checked(item: Item) -> Read:
    """An item that DynamoDB would take, as far as its values go."""
    try:
        if "" in item:
            raise ValidationFailed("Empty attribute name")
        for value in item.values():
            check_types(value)
        return Read(item, normalise_item(item))
    except ServiceError as error:
        return Read(None, problem=error.message)


# -- Ion


def _ion(file: BinaryIO, chosen: InputFormat) -> Iterator[Read]:
    for struct in ion.read_structs(file):
        if not isinstance(struct, Mapping) or "Item" not in struct:
            raise ObjectDamaged("A value has no Item")
        try:
            item = ion.from_ion(struct["Item"])
        except ion.NotAnItem as error:
            yield Read(None, problem=str(error))
            continue
        yield checked(item)


# -- CSV


def _csv(file: BinaryIO, chosen: InputFormat) -> Iterator[Read]:
    types = dict(chosen.types)
    csv.field_size_limit(_CSV_FIELD_BYTES)
    with TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        rows = csv.reader(text, delimiter=chosen.delimiter)
        headers = list(chosen.headers) if chosen.headers is not None else next(rows, [])
        for row in rows:
            if row:
                yield _read_row(headers, row, types)


def _read_row(headers: list[str], row: list[str], types: dict[str, str]) -> Read:
    if len(row) != len(headers):
        return Read(None, problem=f"The row has {len(row)} columns, and the header {len(headers)}")
    item: Item = {
        name: {types.get(name, "S"): text} for name, text in zip(headers, row, strict=True)
    }
    for name, kind in types.items():
        if kind == "B" and name in item and not _is_base64(item[name]["B"]):
            return Read(None, problem=f"{INVALID}The column {name} is not base64")
    return checked(item)


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except ValueError:
        return False
    return True


_READERS = {"DYNAMODB_JSON": _json, "ION": _ion, "CSV": _csv}
