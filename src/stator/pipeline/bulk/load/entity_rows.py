"""Rows as entities of a design: values are coerced to the fields' types.

The data layer's own functions then set versions and times, and write keys and attributes.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from math import isfinite
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
from stator.tables.schema.entity_map import EntityMap

Coerce = Callable[[Any], Any]
_LAST_SECOND = 16_725_225_600
"""The end of the year 2499. A larger number of seconds is one of milliseconds, by mistake."""
_FAULTS = (StatorError, TypeError, ValueError, ArithmeticError, RecursionError)
_PREFIX = len(b'{"PutRequest":{"Item":')


class EntityEncoder:
    """Encodes rows, in any input format, as items of one entity.

    ``renamed`` holds the ``--map`` options. ``is_dynamodb`` says that the rows are lines of
    DynamoDB JSON. ``now`` returns the time for creation, update and expiry times. ``flatten`` turns
    nested objects into dotted names.
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
    """Return the values of a row by name. Empty cells are left out."""
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
    """Return the schema of the subclass that a row names in ``_class``, a variant of the entity.

    Returns ``of``, the entity's own schema, if the row names none. Raises RowRefused for an unknown
    name.
    """
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
        needed = [name for name in _needed(of) if name not in values]
        raise RowRefused(
            f"{of.name}.{needed[0]} is missing"
            if needed
            else f"{of.name} cannot be created from the row"
        ) from None


def check_columns(
    of: EntityMap,
    source: str,
    names: tuple[str, ...],
    renamed: Mapping[str, str],
    *,
    complete: bool = True,
) -> None:
    """Raise ConfigurationError if the columns of an input do not fit the fields of the entity.

    The error names every column that is not a field. If ``complete``, the columns must also have
    every field without a default. The check needs only the names, so it comes before any row.
    """
    check_names(names, renamed)
    targets = {name: renamed.get(name, name) for name in names}
    stored = of.info.stored_names
    unknown = {
        name: target
        for name, target in targets.items()
        if target and stored.get(target, target) not in of.fields
    }
    if unknown:
        raise ConfigurationError(
            f"{source}: {of.name} has no field"
            f" {', '.join(_with_guess(of, *each) for each in unknown.items())}",
            hint="drop them with "
            + " ".join(f"--map {name}=" for name in unknown)
            + ", or rename one with --map COLUMN=FIELD;"
            f" the fields are {of.info.listed(of.fields)}",
        )
    given = {stored.get(target, target) for target in targets.values()}
    missing = [name for name in _needed(of) if stored.get(name, name) not in given]
    if complete and missing and not of.variants:
        raise ConfigurationError(
            f"{source}: no column has {of.name}.{', '.join(missing)},"
            f" and {'these fields have' if len(missing) > 1 else 'the field has'} no default",
            hint="rename columns with --map COLUMN=FIELD, or give the fields defaults;"
            f" the columns are {', '.join(names)}",
        )


def _with_guess(of: EntityMap, name: str, target: str) -> str:
    python = of.info.python_names
    fields = {_plain(field): field for field in (python.get(each, each) for each in of.fields)}
    close = get_close_matches(_plain(target), fields, n=1, cutoff=0.75)
    shown = target if name == target else f"{target} (the column {name})"
    return f"{shown} (did you mean {fields[close[0]]}?)" if close else shown


def _plain(name: str) -> str:
    """Return a name in the form in which similar names are equal.

    OrderId, order-id and order_id all become ``orderid``.
    """
    return name.replace("_", "").replace("-", "").replace(" ", "").lower()


def _needed(of: EntityMap) -> list[str]:
    """Return the names of the fields that have no default."""
    return [
        field.name
        for field in (fields(of.cls) if is_dataclass(of.cls) else ())
        if field.init and field.default is MISSING and field.default_factory is MISSING
    ]


# -- values


def coercion(shape: Shape) -> Coerce:
    """Return the function that turns a value from a file into a value of a field.

    The function accepts typed values and text. ``shape`` is the field's type.
    """
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
            raise _expected(f"one of {', '.join(map(repr, shape.values))}", choice)
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
    """Return the members of a set that a file holds as a list, a set or text.

    Text that begins with ``[`` is parsed as a JSON list; other text is split at commas.
    """
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
    number = _decimal(value, "a whole number")
    if not number.is_finite() or number != number.to_integral_value():
        raise _expected("a whole number", value)
    return int(number)


def _decimal(value: Any, wanted: str = "a number") -> Decimal:
    if isinstance(value, bool):
        raise _expected(wanted, value)
    try:
        return value if isinstance(value, Decimal) else Decimal(str(value).strip())
    except InvalidOperation:
        raise _expected(wanted, value) from None


def _finite(value: Any) -> Decimal:
    number = _decimal(value)
    if not number.is_finite():
        raise _expected("a number that is finite", value)
    return number


def _expected(wanted: str, value: Any) -> ValueError:
    shown = str(value) if isinstance(value, (Decimal, float)) else repr(value)
    return ValueError(f"expected {wanted}, got {shown:.60}")


def _boolean(value: Any) -> bool:
    word = str(value).strip().lower()
    if word in ("true", "1", "yes", "t"):
        return True
    if word in ("false", "0", "no", "f"):
        return False
    raise _expected("true or false", value)


def _moment(value: Any) -> datetime:
    """Convert a value from a file to a datetime in UTC.

    A time without a zone is taken as UTC, and a number as seconds since 1970.
    """
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return _since_1970(float(value), value)
    if isinstance(value, str) and value.strip().isdecimal():
        return _since_1970(int(value), value)
    try:
        moment = (
            value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
        )
    except ValueError:
        raise _expected("a time such as 2026-03-01T10:00:00Z", value) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _since_1970(seconds: float, value: Any) -> datetime:
    if not isfinite(seconds):
        raise _expected("a time", value)
    if abs(seconds) > _LAST_SECOND:
        raise ValueError(
            f"expected seconds since 1970, got {value}, which looks like milliseconds:"
            " divide by 1000, or write times as text"
        )
    return datetime.fromtimestamp(seconds, UTC)


def _day(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(value.strip())


_SCALARS: dict[type, Coerce] = {
    str: _text,
    int: _whole,
    float: lambda value: float(_finite(value)),
    Decimal: _finite,
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
