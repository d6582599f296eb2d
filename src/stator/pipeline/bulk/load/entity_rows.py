"""Rows as entities of a design: values are coerced to the fields' types.

The data layer's own functions then set versions and times, and write keys and attributes.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

import orjson

from stator.design.entities.packed_numbers import PackedType
from stator.design.entities.shapes import (
    CLASS_TAG,
    Anything,
    Choice,
    Coded,
    Epoch,
    ListOf,
    MapOf,
    Maybe,
    Nested,
    OneOf,
    Scalar,
    SetOf,
    Shape,
    TypedMap,
)
from stator.errors import ConfigurationError, ItemMismatch, RowRefused, StatorError
from stator.formats.dynamodb_json import unwrap
from stator.formats.exact_json import loads_exact
from stator.pipeline.bulk.job.dead_letters import LetterContent
from stator.pipeline.bulk.job.pending_rows import Block, PendingEntity, PendingRow
from stator.pipeline.bulk.load.attribute_types import check_names
from stator.pipeline.bulk.load.columns import Dead
from stator.pipeline.bulk.load.flat_rows import flattened, map_members
from stator.pipeline.bulk.load.lines import rename
from stator.pipeline.bulk.load.readers import RawRows
from stator.tables.schema import EntityMap

Coerce = Callable[[Any], Any]
_FAULTS = (StatorError, TypeError, ValueError, ArithmeticError, RecursionError)
_PREFIX = len(b'{"PutRequest":{"Item":')


class EntityEncoder:
    """Encodes rows, in any input format, as items of one entity type.

    ``is_dynamodb`` says that the rows are lines of DynamoDB JSON. ``now`` returns the time for
    creation, update and expiry times. ``flatten`` turns nested objects into dotted names.
    """

    def __init__(
        self,
        of: EntityMap,
        renamed: Mapping[str, str],
        is_dynamodb: bool,
        now: Callable[[], float],
        *,
        flatten: bool = False,
    ) -> None:
        self._flatten = flatten
        self._of = of
        self._renamed = renamed
        self._is_dynamodb = is_dynamodb
        self._now = now
        self._coerce = {name: coercion(field.shape) for name, field in of.fields.items()}

    def entries(self, rows: RawRows, block: Block, dead: Dead) -> list[PendingRow]:
        pending = []
        contents: Iterable[Any] = zip(*rows.columns) if rows.lines is None else rows.lines
        for at, content in zip(rows.places, contents):
            try:
                pending.append(self._entry(_row(rows, content), at, block))
            except _FAULTS as error:
                reason = getattr(error, "message", None) or str(error) or type(error).__name__
                dead(block, at, self._content(rows, content), reason)
        return pending

    def _content(self, rows: RawRows, content: Any) -> LetterContent:
        if rows.lines is None:
            return rows.content(content)
        return LetterContent.of_line("dynamodb-json" if self._is_dynamodb else "jsonl", content)

    def _entry(self, row: dict[str, Any], at: int, block: Block) -> PendingRow:
        entity = self.entity(row)
        of = _variant_of(self._of, getattr(entity, CLASS_TAG, None))
        if of.is_written_alone:
            item = of.item(of.stamped_or_refused(entity, self._now(), fresh=True).made)
            return PendingEntity(of.key_values(item), orjson.dumps(item), at, block, entity)
        if of.has_stamps:
            entity = of.stamped_or_refused(entity, self._now(), fresh=True).made
        key, put = of.bulk_entry(entity)
        return PendingRow(key, put[_PREFIX:-2], at, block)

    def entity(self, row: dict[str, Any]) -> Any:
        of = self._of
        if self._is_dynamodb:
            item = unwrap(row)[0]
            if self._flatten:
                item = flattened(item, self._renamed, map_members)
            # A row makes a new object: attributes that are no fields stay behind.
            renamed = rename(item, self._renamed)
            of = _variant_of(of, (renamed.get(CLASS_TAG) or {}).get("S"))
            return of.codec.decode(of.current(renamed))
        if self._flatten:
            row = flattened(row, self._renamed)
        values = {}
        for name, value in of.given(rename(row, self._renamed)).items():
            coerce = self._coerce.get(name)
            if coerce is None:
                raise RowRefused(
                    f"{of.name} has no field {name}: rename it with --map {name}=field,"
                    f" or drop it with --map {name}="
                )
            if value is not None:
                values[name] = _coerced(of.name, name, coerce, value)
        return _create(_variant_of(of, values.pop(CLASS_TAG, None)), values)


def _row(rows: RawRows, content: Any) -> dict[str, Any]:
    """Return the fields that are present in a row."""
    if rows.lines is not None:
        row = loads_exact(content)
        if type(row) is not dict:
            raise RowRefused("a line must hold one JSON object")
        return row
    gap = "" if "csv" in rows.kinds else None
    return {
        name: value
        for name, value in zip(rows.names, content)
        if value is not None and value != gap
    }


def _coerced(entity: str, name: str, coerce: Coerce, value: Any) -> Any:
    try:
        return coerce(value)
    except (TypeError, ValueError, ArithmeticError, KeyError) as error:
        reason = (
            "the value does not fit the field's type" if isinstance(error, KeyError) else str(error)
        )
        raise ItemMismatch(entity, name, reason, value) from None


def _variant_of(of: EntityMap, tag: str | None) -> EntityMap:
    """Return the map of the variant that a row names in ``_class``, or ``of`` without one."""
    if tag is None or not of.variants:
        return of
    found = of.variants.get(tag)
    if found is None:
        raise RowRefused(f"{of.name} has no variant {tag!r}, only {', '.join(of.variants)}")
    return found


def _create(of: EntityMap, values: dict[str, Any]) -> Any:
    python = of.info.python_names
    if python:
        values = {python.get(name, name): value for name, value in values.items()}
    try:
        return of.cls(**values)
    except TypeError:
        needed = [
            field.name
            for field in (fields(of.cls) if is_dataclass(of.cls) else ())
            if field.default is MISSING
            and field.default_factory is MISSING
            and field.name not in values
        ]
        raise RowRefused(
            f"{of.name}.{needed[0]} is missing"
            if needed
            else f"{of.name} cannot be created from the row"
        ) from None


def check_columns(of: EntityMap, names: tuple[str, ...], renamed: Mapping[str, str]) -> None:
    """Raise ConfigurationError if a column is not a field of the entity, before any row is read."""
    check_names(names, renamed)
    for name in names:
        target = renamed.get(name, name)
        if target and of.info.stored_names.get(target, target) not in of.fields:
            raise ConfigurationError(
                f"{of.name} has no field {target} for the column {name}",
                hint=f"rename it with --map {name}=FIELD, or drop it with --map {name}=;"
                f" the fields are {of.info.listed(of.fields)}",
            )


# -- values


def coercion(shape: Shape) -> Coerce:
    """Return the function that turns a value from a file, typed or text, into a field's value."""
    match shape:
        case Maybe(inner):
            present = coercion(inner)
            return lambda value: None if value is None else present(value)
        case Scalar(python):
            return _SCALARS[python]
        case Choice():
            return _choice(shape)
        case ListOf(elements, container, fixed):
            each = [coercion(element) for element in elements]
            return lambda value: container(
                one(member)
                for one, member in zip(
                    each if fixed else each * len(_listed(value)), _listed(value)
                )
            )
        case SetOf(element, frozen):
            one = coercion(element)
            container = frozenset if frozen else set
            return lambda value: container(one(member) for member in _members(value))
        case MapOf(values):
            inner_of = coercion(values)
            return lambda value: {
                str(name): inner_of(inner) for name, inner in _mapped(value).items()
            }
        case Coded(PackedType() as packed):
            return packed.from_file
        case Coded(python, stored):
            return _coded(python, coercion(stored), shape.decode)
        case OneOf(tag, variants):
            by_tag = {value: coercion(member) for value, member in variants}
            return lambda value: _variant(tag, by_tag, _mapped(value))
        case TypedMap(_, members):
            typed = {name: coercion(inner) for name, inner, _ in members}
            return lambda value: {
                name: typed[name](inner) for name, inner in _mapped(value).items()
            }
        case Nested(cls, members):
            known = {name: coercion(inner) for name, inner, _ in members}
            return lambda value: cls(
                **{
                    name: known[name](inner)
                    for name, inner in _mapped(value).items()
                    if inner is not None
                }
            )
        case Anything():
            return lambda value: value
    raise AssertionError(shape)


def _coded(python: Any, stored: Coerce, decode: Coerce) -> Coerce:
    def coerce(value: Any) -> Any:
        is_one = isinstance(python, type) and isinstance(value, python)
        return value if is_one else decode(stored(value))

    return coerce


def _variant(tag: str, by_tag: dict[Any, Coerce], row: dict[str, Any]) -> Any:
    if row.get(tag) not in by_tag:
        raise ValueError(f"{tag} must be one of {', '.join(map(repr, by_tag))}")
    coerce = by_tag[row[tag]]
    try:
        return coerce(row)
    except KeyError:  # the tag is not a field of the class
        return coerce({name: inner for name, inner in row.items() if name != tag})


def _choice(shape: Choice) -> Coerce:
    inner, enum = coercion(shape.scalar), shape.enum

    def coerce(value: Any) -> Any:
        if enum is not None and isinstance(value, enum):
            return value
        choice = inner(value)
        if choice not in shape.values:
            raise ValueError(f"expected one of {', '.join(map(repr, shape.values))}")
        return choice if enum is None else enum(choice)

    return coerce


def _json(value: Any) -> Any:
    return loads_exact(value.encode()) if isinstance(value, str) else value


def _listed(value: Any) -> Any:
    members = _json(value)
    if not isinstance(members, (list, tuple)):
        raise ValueError("expected a list")
    return members


def _members(value: Any) -> Any:
    """Return the members of a set. Text is a JSON list, or has members separated by commas."""
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return [part.strip() for part in value.split(",")]
    return value if isinstance(value, (set, frozenset)) else _listed(value)


def _mapped(value: Any) -> dict[str, Any]:
    mapping = _json(value)
    if not isinstance(mapping, dict):
        raise ValueError("expected a map")
    return mapping


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, bytes, list, dict)):
        raise ValueError("expected text")
    return str(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool):
        raise ValueError("expected a whole number")
    if isinstance(value, str):
        value = Decimal(value.strip())
    if int(value) != value:
        raise ValueError("expected a whole number")
    return int(value)


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    try:
        return value if isinstance(value, Decimal) else Decimal(str(value).strip())
    except InvalidOperation:
        raise ValueError("expected a number") from None


def _boolean(value: Any) -> bool:
    word = str(value).strip().lower()
    if word in ("true", "1", "yes", "t"):
        return True
    if word in ("false", "0", "no", "f"):
        return False
    raise ValueError("expected true or false")


def _moment(value: Any) -> datetime:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return datetime.fromtimestamp(float(value), UTC)
    if isinstance(value, str) and value.strip().isdecimal():
        return datetime.fromtimestamp(int(value), UTC)
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _day(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(value.strip())


_SCALARS: dict[type, Coerce] = {
    str: _text,
    int: _whole,
    float: lambda value: float(_decimal(value)),
    Decimal: _decimal,
    bool: _boolean,
    bytes: lambda value: (
        bytes(value) if isinstance(value, (bytes, bytearray)) else b64decode(value, validate=True)
    ),
    datetime: _moment,
    Epoch: _moment,
    date: _day,
    time: lambda value: value if isinstance(value, time) else time.fromisoformat(value.strip()),
    UUID: lambda value: value if isinstance(value, UUID) else UUID(str(value)),
}
