"""Decoders for values with the header of a schema registry: Avro, JSON Schema and Protobuf."""

from __future__ import annotations

import io
import json
from typing import Any

from stator.errors import ConfigurationError, RowRefused
from stator.formats.exact_json import loads_exact
from stator.pipeline.ingest.source_record import SourceRecord
from stator.pipeline.ingest.values.schema_registry import (
    RegisteredSchema,
    SchemaRegistry,
    split_header,
)


class Avro:
    """Decodes Avro values with a schema registry: ``Avro("http://registry:8081")``.

    The writer's schema is read from the registry, so every version of a topic's schema is decoded.
    The entity, or the dataclass of the event, decides which fields it takes, and has the defaults.
    Logical types become datetimes, dates, Decimals and UUIDs. It needs ``pip install
    'stator[avro]'``.
    """

    def __init__(self, registry: str | SchemaRegistry) -> None:
        self._registry = SchemaRegistry(registry) if isinstance(registry, str) else registry
        self._library = _avro()
        self._parsed: dict[int, Any] = {}

    def decode(self, record: SourceRecord) -> Any:
        """Return the value as Python data."""
        number, body = split_header(record.value or b"")
        schema = self._parsed.get(number)
        if schema is None:
            schema = self._parsed[number] = self._parse(self._registry.schema(number))
        stream = io.BytesIO(body)
        try:
            found = self._library.schemaless_reader(stream, schema)
        except Exception as error:  # of many kinds, also IndexError and struct.error
            raise RowRefused(
                f"the value does not fit Avro schema {number}: {type(error).__name__}: {error}"
            ) from None
        if stream.read(1):
            raise RowRefused(f"the value is longer than Avro schema {number} says")
        return found

    def _parse(self, schema: RegisteredSchema) -> Any:
        if schema.kind != "AVRO":
            raise RowRefused(f"the schema is {schema.kind}, not AVRO")
        named: dict[str, Any] = {}
        self._parse_references(schema, named)
        return self._library.parse_schema(json.loads(schema.text), named_schemas=named)

    def _parse_references(self, schema: RegisteredSchema, named: dict[str, Any]) -> None:
        for each in schema.references:
            self._parse_references(each, named)
            self._library.parse_schema(json.loads(each.text), named_schemas=named)

    def __repr__(self) -> str:
        return f"Avro({self._registry.url!r})"


class JsonSchema:
    """Decodes JSON with the header of a schema registry, as JSON Schema serializers write it.

    The registry is not asked: the entity's own types check the values.
    """

    def decode(self, record: SourceRecord) -> Any:
        """Return the value as Python data."""
        _, body = split_header(record.value or b"")
        try:
            return loads_exact(body)
        except ValueError as error:
            raise RowRefused(f"the value is not JSON: {error}") from None

    def __repr__(self) -> str:
        return "JsonSchema()"


class Protobuf:
    """Decodes Protobuf messages of a generated class: ``Protobuf(tests_pb2.Test)``.

    The value has the header of a schema registry, with the path of the message in its file. With
    ``header=False``, it is the message alone. The registry is not asked: Protobuf messages can be
    read with other versions of their schema. Fields have their names in the schema. Enums are
    names, bytes are base64, and 64-bit numbers are text, which fields of a class convert. It needs
    ``pip install 'stator[protobuf]'``.
    """

    def __init__(self, message: type[Any], *, header: bool = True) -> None:
        self._json, self._error = _protobuf()
        if not hasattr(message, "FromString"):
            raise ConfigurationError(
                f"{message!r} is not a generated message class",
                hint="pass a class that protoc generated, such as tests_pb2.Test",
            )
        self._message = message
        self._has_header = header

    def decode(self, record: SourceRecord) -> Any:
        """Return the message as a dictionary."""
        body = record.value or b""
        if self._has_header:
            _, body = split_header(body)
            body = _without_path(body)
        try:
            message = self._message.FromString(body)
        except self._error as error:
            raise RowRefused(f"the value is not a {self._message.__name__}: {error}") from None
        return self._json.MessageToDict(
            message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )

    def __repr__(self) -> str:
        return f"Protobuf({self._message.__name__})"


def _without_path(body: bytes) -> bytes:
    """Return the message behind its path: a count, and as many indexes, as zigzag varints.

    The path of a file's first message, [0], is written as a single 0.
    """
    count, at = _varint(body, 0)
    for _ in range(count):
        _, at = _varint(body, at)
    return body[at:]


def _varint(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(body) or shift > 63:
            raise RowRefused("the path of the Protobuf message is cut off")
        byte = body[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), at


def _avro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise ConfigurationError(
            "fastavro is not installed", hint="pip install 'stator[avro]'"
        ) from None
    return fastavro


def _protobuf() -> tuple[Any, type[Exception]]:
    try:
        from google.protobuf import json_format
        from google.protobuf.message import DecodeError
    except ImportError:
        raise ConfigurationError(
            "protobuf is not installed", hint="pip install 'stator[protobuf]'"
        ) from None
    return json_format, DecodeError
