"""The columns of an entity's items: one for each field, in the type that the design gives it.

The table's keys and the discriminator are left out: a load with ``--entity`` builds them again.
Attributes that the class does not know follow the fields, in types that fit their values.

| Field | Column |
|---|---|
| str, UUID and other types stored as text | string |
| int | int64 |
| float | double |
| Decimal | decimal128, with as many decimal places as the values have; else decimal256, or text |
| bool, bytes | bool, binary |
| datetime, also with ttl() | timestamp in microseconds, UTC |
| date, time | date32, time64 |
| list, set | list; a Decimal inside is text |
| dataclass, model | struct |
| dict, TypedDict, union, tuple of fixed length | JSON text |
| packed numbers | the numbers |

A field with a value that does not fit, because another program wrote it, gets the type that holds
all values of the column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from stator.design.entities.packed_numbers import PackedType
from stator.design.entities.shapes import (
    Choice,
    Coded,
    Epoch,
    ListOf,
    Maybe,
    Nested,
    Scalar,
    SetOf,
    Shape,
)
from stator.errors import ConfigurationError
from stator.formats.extras import pyarrow
from stator.formats.parquet_columns import (
    ColumnFacts,
    ColumnType,
    Unfit,
    binary,
    content_of,
    double,
    inferred_types,
    text_column,
    whole,
)
from stator.model.values import Item, Value
from stator.tables.blobs.blobs import blob_keys, plain
from stator.tables.blobs.stores import BlobStore
from stator.tables.schema.entity_map import EntityMap

_MEMBERS: Final = {"SS": "S", "NS": "N", "BS": "B"}


class FieldColumns:
    """The columns of one entity's items in CSV and Parquet files.

    ``store`` is the blob store that holds the offloaded values of ``large()`` fields.
    """

    def __init__(self, of: EntityMap, store: BlobStore | None = None) -> None:
        self._of = of
        self._store = store
        python = of.info.python_names
        self._shapes = {python.get(name, name): field.shape for name, field in of.fields.items()}
        self.names = tuple(self._shapes)
        """The names of the fields, in the order of the class."""

    def row(self, item: Item) -> Item:
        """Return the fields of an item, without its keys and with its large values unpacked."""
        if self._of.large:
            item = plain(self._of, item, self._blobs(item))
        return self._of.without_keys(item)

    def _blobs(self, item: Item) -> dict[str, bytes]:
        keys = blob_keys(self._of, item)
        if keys and self._store is None:
            raise ConfigurationError(
                f"a {self._of.name} has values in a blob store, but no blob store was named",
                hint="name the store with --blobs, or use --format dynamodb-json, which exports"
                " the names of the blobs",
            )
        return {} if self._store is None else {key: self._store.get(key) for key in keys}

    def types(
        self, facts: Mapping[str, ColumnFacts], loose: Container[str] = ()
    ) -> dict[str, ColumnType]:
        """Return the type of each column: first the fields in the class's order, then the others.

        ``facts`` says what the values of each column have in common. Columns in ``loose`` have a
        value that does not fit the type of their field, so their values decide the type.
        """
        found = {}
        for name, shape in self._shapes.items():
            own = facts.get(name, ColumnFacts())
            typed = None if name in loose else _field_type(shape, own)
            found[name] = own.type if typed is None else typed
        rest = {name: own for name, own in facts.items() if name not in found}
        return found | inferred_types(rest)


def _field_type(shape: Shape, facts: ColumnFacts) -> ColumnType | None:
    """Return the column type for a field's Python type; None if the values decide the type."""
    inner = shape.inner if isinstance(shape, Maybe) else shape
    if inner == Scalar(Decimal):
        return facts.decimal
    if inner == Scalar(int) and facts.kinds <= {"N", "NULL"} and not facts.is_whole:
        return facts.decimal
    found = _type_of(inner)
    if found is not None and isinstance(shape, SetOf):  # an empty set is no attribute
        return ColumnType(found.arrow, found.cell, [])
    return found


def _type_of(shape: Shape) -> ColumnType | None:
    arrow = pyarrow()
    match shape:
        case Maybe(inner):
            return _type_of(inner)
        case Scalar(python):
            make = _SCALARS.get(python)
            return None if make is None else make(arrow)
        case Choice():
            return _type_of(shape.scalar)
        case Coded(PackedType() as packed):
            return _packed(packed, arrow)
        case Coded():
            return _type_of(shape.stored)
        case ListOf(elements, _, fixed):
            element = None if fixed else _type_of(elements[0])
            return None if element is None else _list(element, arrow)
        case SetOf(element_shape):
            element = _type_of(element_shape)
            return None if element is None else _set(element, arrow)
        case Nested(_, members):
            return _struct(members, arrow)
    return None


def _list(element: ColumnType, arrow: Any) -> ColumnType:
    return ColumnType(
        arrow.list_(element.arrow), lambda value: element.cells(content_of(value, "L"))
    )


def _set(element: ColumnType, arrow: Any) -> ColumnType:
    def cell(value: Value) -> list[Any]:
        [(kind, content)] = value.items()
        if value == {"L": []}:
            return []
        if kind not in _MEMBERS:
            raise Unfit
        return element.cells({_MEMBERS[kind]: member} for member in content)

    return ColumnType(arrow.list_(element.arrow), cell)


def _struct(members: tuple[tuple[str, Shape, bool], ...], arrow: Any) -> ColumnType | None:
    types = {name: _type_of(shape) for name, shape, _ in members}
    known = {name: kind for name, kind in types.items() if kind is not None}
    if not types or len(known) < len(types):
        return None

    def cell(value: Value) -> dict[str, Any]:
        content = content_of(value, "M")
        if not content.keys() <= known.keys():
            raise Unfit
        return {name: kind.cells([content.get(name)])[0] for name, kind in known.items()}

    return ColumnType(arrow.struct([(name, kind.arrow) for name, kind in known.items()]), cell)


def _packed(packed: PackedType, arrow: Any) -> ColumnType:
    if packed.number is float:
        number = arrow.float64()
    else:
        number = arrow.uint64() if packed.packing.kind == "uint64" else arrow.int64()

    def cell(value: Value) -> Any:
        stored = binary(value)
        found = packed.decode(stored)
        if packed.encode(found) != stored:
            raise Unfit
        return found if packed.container is None else list(found)

    return ColumnType(number if packed.container is None else arrow.list_(number), cell)


# -- scalars


_TOO_FINE: Final = re.compile(r"\.[0-9]{7}")
"""Digits of a second that a Python time cannot hold."""


def _read_by(read: Callable[[str], Any]) -> Callable[[Value], Any]:
    """Return a function that turns ISO text in an attribute value into a cell, with ``read``.

    The function raises Unfit for times finer than a microsecond.
    """

    def cell(value: Value) -> Any:
        text = content_of(value, "S")
        if _TOO_FINE.search(text) is not None:
            raise Unfit
        return read(text)

    return cell


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise Unfit
    return moment.astimezone(UTC)


def _second(value: Value) -> datetime:
    return datetime.fromtimestamp(whole(value), UTC)


def _time(text: str) -> time:
    found = time.fromisoformat(text)
    if found.tzinfo is not None:  # a column of times has no zone
        raise Unfit
    return found


def _text(_: Any) -> ColumnType:
    return text_column()


_SCALARS: Final[dict[Any, Callable[[Any], ColumnType]]] = {
    str: _text,
    UUID: _text,
    int: lambda arrow: ColumnType(arrow.int64(), whole),
    float: lambda arrow: ColumnType(arrow.float64(), double),
    Decimal: lambda arrow: ColumnType(arrow.string(), lambda value: str(content_of(value, "N"))),
    bool: lambda arrow: ColumnType(arrow.bool_(), lambda value: content_of(value, "BOOL")),
    bytes: lambda arrow: ColumnType(arrow.binary(), binary),
    datetime: lambda arrow: ColumnType(arrow.timestamp("us", "UTC"), _read_by(_moment)),
    Epoch: lambda arrow: ColumnType(arrow.timestamp("us", "UTC"), _second),
    date: lambda arrow: ColumnType(arrow.date32(), _read_by(date.fromisoformat)),
    time: lambda arrow: ColumnType(arrow.time64("us"), _read_by(_time)),
}
