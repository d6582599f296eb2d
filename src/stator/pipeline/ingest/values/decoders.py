"""Decoders: from a record's bytes to a value, and from a decoded value to an event of a class.

A decoder raises any error for bytes that it cannot read. The record then becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from stator.design.entities.shapes import CLASS_TAG, Nested, shape_of
from stator.errors import DesignError, RowRefused
from stator.formats.exact_json import loads_exact
from stator.pipeline.bulk.load.entity_rows import EntityEncoder, coercion
from stator.pipeline.ingest.source_record import SourceRecord
from stator.tables.schema.entity_map import EntityMap

UnknownFields = Literal["drop", "refuse"]
Reader = Callable[[Any], Any]


@runtime_checkable
class Decoder(Protocol):
    """Decodes the values of a topic's records. ``Json()`` is one."""

    def decode(self, record: SourceRecord) -> Any:
        """Return the decoded value. The record has a value: deletions are not decoded."""
        ...


class Json:
    """Decodes values that are JSON. Numbers keep all their digits."""

    def decode(self, record: SourceRecord) -> Any:
        """Return the value as Python data."""
        assert record.value is not None
        try:
            return loads_exact(record.value)
        except ValueError as error:
            raise RowRefused(f"the value is not JSON: {error}") from None

    def __repr__(self) -> str:
        return "Json()"


class FunctionDecoder:
    """Decodes values with a function of the user, which gets the record."""

    def __init__(self, function: Callable[[SourceRecord], Any]) -> None:
        self._function = function

    def decode(self, record: SourceRecord) -> Any:
        return self._function(record)

    def __repr__(self) -> str:
        return getattr(self._function, "__name__", repr(self._function))


def decoder_of(given: Any) -> Decoder:
    """Return a decoder for what a user passed as ``decode=``."""
    if given is None:
        return Json()
    if isinstance(given, type) or not (isinstance(given, Decoder) or callable(given)):
        raise DesignError(
            f"decode={given!r} is not a decoder", hint="use Json(), or a function of a record"
        )
    return given if isinstance(given, Decoder) else FunctionDecoder(given)


def unknown_fields(given: str) -> UnknownFields:
    if given not in get_args(UnknownFields):
        raise DesignError(f"unknown={given!r} is not supported", hint="use drop or refuse")
    return given  # type: ignore[return-value]


def entity_reader(of: EntityMap, unknown: UnknownFields, now: Callable[[], float]) -> Reader:
    """Return a function that turns a decoded value into an entity."""
    encoder = EntityEncoder(of, {}, False, now)
    stored = of.info.stored_names
    known = {*of.all_fields, *stored, CLASS_TAG}

    def read(value: Any) -> Any:
        row = _members(value)
        if unknown == "drop" and not row.keys() <= known:
            row = {name: inner for name, inner in row.items() if name in known}
        return encoder.entity(row)

    return read


def class_reader(cls: type[Any] | None, unknown: UnknownFields) -> Reader:
    """Return a function that turns a decoded value into an event of a dataclass.

    If ``cls`` is None, the function returns the value unchanged. Entities are dataclasses, too.
    """
    if cls is None:
        return lambda value: value
    if not (isinstance(cls, type) and is_dataclass(cls)):
        raise DesignError(
            f"event={cls!r} is not a dataclass",
            hint="pass a dataclass or an entity, or leave it out to get what the decoder returns",
        )
    shape = shape_of(cls, cls.__name__)
    if not isinstance(shape, Nested):
        raise DesignError(f"event={cls!r} is not a plain dataclass", hint="use one with fields")
    members = {name: coercion(inner) for name, inner, _ in shape.fields}
    needed = [
        each.name
        for each in fields(cls)
        if each.init and each.default is MISSING and each.default_factory is MISSING
    ]

    def read(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        row = _members(value)
        values = {}
        for name, inner in row.items():
            coerce = members.get(name)
            if coerce is None:
                if unknown == "refuse":
                    raise RowRefused(f"{cls.__name__} has no field {name}")
            elif inner is not None:
                values[name] = _coerced(cls, name, coerce, inner)
        missing = [name for name in needed if name not in values]
        if missing:
            raise RowRefused(f"{cls.__name__}.{missing[0]} is missing")
        return cls(**values)

    return read


def _coerced(cls: type[Any], name: str, coerce: Reader, value: Any) -> Any:
    try:
        return coerce(value)
    except (TypeError, ValueError, ArithmeticError, KeyError) as error:
        raise RowRefused(f"{cls.__name__}.{name}: {error}, got {value!r:.60}") from None


def _members(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RowRefused(f"the value is a {type(value).__name__}, not an object with fields")
    return value
