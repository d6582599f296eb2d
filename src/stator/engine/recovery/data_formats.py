"""The data formats of exports and imports: AWS's names for them, and AWS's rules for bad data.

The formats themselves are in ``stator.formats``. An import reads DynamoDB JSON, Ion or CSV, plain
or compressed. For each item of an object, the reader yields the item or the reason why it is
refused. If damage makes the rest of an object unreadable, the reader raises ``DataDamaged``. It
also does so at a JSON line or an Ion value without an ``Item``: as on AWS, the rest of the object
is not read.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO, cast

from stator.errors import ConfigurationError, DataDamaged, ServiceError, ValidationFailed
from stator.formats import csv_rows, dynamodb_json, ion
from stator.formats.compression import open_decompressed
from stator.formats.extras import library
from stator.model.values import INVALID, TOO_DEEP, Item, check_types, normalise_item

_BUFFER_BYTES = 64 * 1024
_COMPRESSIONS = {"GZIP": "gzip", "ZSTD": "zstd"}
_LIBRARIES = {"ION": "amazon.ion.simpleion", "ZSTD": "zstandard"}


def check_available(*names: str | None) -> None:
    """Refuse a format or compression whose library is not installed."""
    for name in names:
        if name in _LIBRARIES:
            try:
                library(_LIBRARIES[name])
            except ConfigurationError as error:
                raise ValidationFailed(
                    f"{name} is not available here: {error.message}", hint=error.hint
                ) from None


# -- exports


def item_writer(export_format: str) -> Callable[[Item], bytes]:
    """Return the function that encodes an item as one line of an export."""
    return ion.item_line if export_format == "ION" else dynamodb_json.item_line


def change_line(
    export_format: str, keys: Item, old: Item | None, new: Item | None, micros: int
) -> bytes:
    """Return the line of an incremental export that describes one change."""
    images = {
        name: image for name, image in (("OldImage", old), ("NewImage", new)) if image is not None
    }
    write = ion.change_line if export_format == "ION" else dynamodb_json.change_line
    return write(keys, images, micros)


# -- imports


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """An item and its size, or the problem that keeps it out of the table."""

    item: Item | None
    size: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class InputFormat:
    """The format of an import.

    ``types`` are the types of key attributes. CSV needs them, because its values are all text.
    """

    name: str
    compression: str = "NONE"
    delimiter: str = ","
    headers: tuple[str, ...] | None = None
    types: tuple[tuple[str, str], ...] = ()

    def check(self) -> None:
        check_available(self.name, self.compression)


class ObjectContent(RawIOBase):
    """The decompressed content of an object. ``size_bytes`` is how much has been read so far."""

    def __init__(self, file: BinaryIO, compression: str = "NONE") -> None:
        self._file = open_decompressed(file, _COMPRESSIONS.get(compression))
        self.size_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.size_bytes += len(data)
        return len(data)


def read_items(content: ObjectContent, input_format: InputFormat) -> Iterator[ImportedItem]:
    """Yield every item of an object. Raises DataDamaged where the rest cannot be read."""
    stream = cast("BinaryIO", BufferedReader(content, _BUFFER_BYTES))
    return _READERS[input_format.name](stream, input_format)


def checked(item: Item) -> ImportedItem:
    """Return the normalised item with its size, or the problem that PutItem would report.

    Only names and values are checked. The table checks the item's keys later.
    """
    try:
        if "" in item:
            raise ValidationFailed("Empty attribute name")
        for value in item.values():
            check_types(value)
        return ImportedItem(item, normalise_item(item))
    except ServiceError as error:
        # The text may quote a value that is not valid Unicode.
        return ImportedItem(None, problem=error.message.encode(errors="replace").decode())
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can escape
        return ImportedItem(None, problem=f"{INVALID}A text is not valid Unicode")
    except RecursionError:
        return ImportedItem(None, problem=TOO_DEEP)


def _read_json(stream: BinaryIO, input_format: InputFormat) -> Iterator[ImportedItem]:
    return map(checked, dynamodb_json.read_items(stream))


def _read_ion(stream: BinaryIO, input_format: InputFormat) -> Iterator[ImportedItem]:
    for value in ion.read_values(stream):
        if not isinstance(value, Mapping) or "Item" not in value:
            raise DataDamaged(
                'an Ion value has no field Item; it should look like {Item:{pk:"user-1"}}'
            )
        try:
            item = ion.decode_item(value["Item"])
        except ion.NotAnItem as error:
            yield ImportedItem(None, problem=str(error))
            continue
        yield checked(item)


def _read_csv(stream: BinaryIO, input_format: InputFormat) -> Iterator[ImportedItem]:
    types = dict(input_format.types)
    headers = input_format.headers
    try:
        for block in csv_rows.CsvReader(stream, input_format.delimiter).blocks():
            for at, row in enumerate(block.rows):
                if at in block.bad:
                    yield ImportedItem(None, problem=block.bad[at].reason)
                elif headers is None:
                    headers = tuple(row)
                elif row:
                    yield _read_row(headers, row, types)
    except csv_rows.DAMAGE as error:
        raise DataDamaged(f"the data is not CSV, or is damaged: {error}") from error


def _read_row(headers: Sequence[str], row: list[str], types: dict[str, str]) -> ImportedItem:
    if len(row) != len(headers):
        problem = f"The row has {len(row)} columns, and the header {len(headers)}"
        return ImportedItem(None, problem=problem)
    item: Item = {
        name: {types.get(name, "S"): text} for name, text in zip(headers, row, strict=True)
    }
    for name, kind in types.items():
        if kind == "B" and name in item and not _is_base64(item[name]["B"]):
            return ImportedItem(None, problem=f"{INVALID}The column {name} is not base64")
    return checked(item)


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except ValueError:
        return False
    return True


_READERS = {"DYNAMODB_JSON": _read_json, "ION": _read_ion, "CSV": _read_csv}
