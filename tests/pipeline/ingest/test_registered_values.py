"""Values with the header of a schema registry, and a registry that is down."""

from __future__ import annotations

import io
import json
import struct
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from stator import Db, connect
from stator.errors import ConfigurationError, RegistryUnavailable, RowRefused
from stator.pipeline import (
    Avro,
    DeadRecordList,
    Ingest,
    JsonSchema,
    Protobuf,
    SchemaRegistry,
    SourceRecord,
)
from tests.ports import free_port

from .meters import Reading, meters

SITE = {"type": "enum", "name": "Site", "symbols": ["north", "none"]}
OLD = {
    "type": "record",
    "name": "Reading",
    "fields": [{"name": "meter", "type": "string"}, {"name": "value", "type": "int"}],
}
NEW = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "meter", "type": "string"},
        {"name": "value", "type": ["null", "long"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "site", "type": "Site"},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        },
    ],
}


class Registry:
    """A schema registry over HTTP, with what the client asks for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()
        self.answers: dict[str, tuple[int, dict[str, Any]]] = {
            "/schemas/ids/1": (200, {"schema": json.dumps(OLD)}),
            "/schemas/ids/2": (
                200,
                {
                    "schema": json.dumps(NEW),
                    "references": [{"name": "Site", "subject": "a/site", "version": 3}],
                },
            ),
            "/subjects/a%2Fsite/versions/3": (200, {"schema": json.dumps(SITE), "version": 3}),
            "/schemas/ids/4": (200, {"schema": "{}", "schemaType": "JSON"}),
            "/schemas/ids/5": (500, {"message": "down"}),
            "/schemas/ids/6": (401, {"message": "who?"}),
        }
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                registry.tokens.add(self.headers.get("Authorization"))
                code, answer = registry.answers.get(self.path, (404, {"error_code": 40403}))
                body = json.dumps(answer).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *given: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def registry() -> Iterator[Registry]:
    running = Registry()
    yield running
    running.server.shutdown()
    running.server.server_close()


@pytest.fixture
def db() -> Iterator[Db]:
    with connect(meters, ":memory:") as opened:
        opened.ensure()
        yield opened


def framed(number: int, body: bytes) -> bytes:
    return struct.pack(">bI", 0, number) + body


def avro(number: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    named: dict[str, Any] = {}
    fastavro.parse_schema(SITE, named_schemas=named)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema, named_schemas=named), value)
    return framed(number, out.getvalue())


def record(value: bytes, offset: int = 0) -> SourceRecord:
    return SourceRecord("readings", 0, offset, None, value)


def test_avro_values_of_several_versions_become_entities(db: Db, registry: Registry) -> None:
    at = datetime(2026, 11, 19, 10, tzinfo=UTC)
    new = {"meter": "m2", "value": 7, "at": at, "site": "north", "price": Decimal("1.25")}
    values = [
        avro(1, OLD, {"meter": "m1", "value": 5}),
        avro(2, NEW, new),
        avro(1, OLD, {"meter": "m3", "value": 6}),
        b"{}",
        framed(1, b""),
        framed(9, b""),
        framed(4, b""),
        avro(1, OLD, {"meter": "m4", "value": 6}) + b"x",
        avro(2, NEW, {**new, "value": None}),
    ]
    app = Ingest(meters, "avro")
    app.put(Reading, topic="readings", decode=Avro(registry.url))
    letters = DeadRecordList()
    app.write(db, [record(value, at) for at, value in enumerate(values)], dead_letters=letters)
    found = {each.meter: each for each in db.scan(Reading, allow=True)}
    assert found.keys() == {"m1", "m2", "m3"}
    assert (found["m1"].value, found["m1"].site) == (5, "none")
    assert (found["m2"].value, found["m2"].site, found["m2"].at) == (7, "north", at)
    assert [letter.record.offset for letter in letters.letters] == [3, 4, 5, 6, 7, 8]
    reasons = [letter.reason for letter in letters.letters]
    for part, reason in zip(
        ("header", "does not fit", "has no", "not AVRO", "longer", "Reading.value"), reasons
    ):
        assert part in reason
    assert registry.asked.count("/schemas/ids/1") == 1


@pytest.mark.parametrize("number", [5, 6])
def test_a_registry_that_does_not_answer_ends_the_ingest(
    db: Db, registry: Registry, number: int
) -> None:
    app = Ingest(meters, "avro")
    app.put(Reading, topic="readings", decode=Avro(SchemaRegistry(registry.url, user="u")))
    letters = DeadRecordList()
    with pytest.raises(RegistryUnavailable, match="does not answer"):
        app.write(db, [record(framed(number, b""))], dead_letters=letters)
    assert letters.letters == []
    assert registry.tokens == {"Basic dTo="}
    with pytest.raises(RegistryUnavailable, match="refused"):
        SchemaRegistry(f"http://127.0.0.1:{free_port()}").schema(1)
    with pytest.raises(ConfigurationError, match="not the URL"):
        Avro("registry:8081")


def test_json_with_a_header_is_decoded() -> None:
    assert JsonSchema().decode(record(framed(7, b'{"a": 1}'))) == {"a": 1}
    with pytest.raises(RowRefused, match="not JSON"):
        JsonSchema().decode(record(framed(7, b"{")))


def message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="meters.proto", package="meters")
    message = file.message_type.add(name="Reading")
    for number, (name, kind) in enumerate(
        (("meter", "STRING"), ("value", "INT64"), ("site", "STRING")), 1
    ):
        message.field.add(
            name=name,
            number=number,
            type=getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{kind}"),
            label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
        )
    file.syntax = "proto3"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("meters.Reading"))


@pytest.mark.parametrize("path", [b"\x00", b"\x02\x00", b"\x04\x02\x00"])
def test_protobuf_messages_become_entities(db: Db, path: bytes) -> None:
    cls = message_class()
    body = cls(meter="m1", value=2**53 + 1, site="north").SerializeToString()
    app = Ingest(meters, "protobuf")
    app.put(Reading, topic="readings", decode=Protobuf(cls))
    letters = DeadRecordList()
    values = [framed(3, path + body), framed(3, path + b"\xff"), framed(3, b"\x80")]
    app.write(db, [record(value, at) for at, value in enumerate(values)], dead_letters=letters)
    found = db.get_one(Reading, meter="m1")
    assert (found.value, found.site) == (2**53 + 1, "north")
    assert [letter.record.offset for letter in letters.letters] == [1, 2]
    assert Protobuf(cls, header=False).decode(record(body))["meter"] == "m1"
    with pytest.raises(ConfigurationError, match="not a generated message class"):
        Protobuf(dict)
