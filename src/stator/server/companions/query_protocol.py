"""AWS's query protocol: requests are forms, and answers are XML. Older SDKs use it.

A member of a list is ``Name.member.1``, and one of a structure ``Name.Member``. Texts become
numbers, booleans and times as the service's model says.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from stator.errors import CompanionRefused
from stator.model.companion_service import CompanionService
from stator.model.service import ServiceModel
from stator.server.companions.wire_protocol import WireError, model_of

_TREE = dict[str, Any]
_WHOLE: Final = ("integer", "long")
_FRACTION: Final = ("double", "float")


class QueryProtocol:
    def read(self, service: CompanionService, operation: str, body: bytes) -> Any:
        tree: _TREE = {}
        for name, value in parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True):
            if name not in ("Action", "Version"):
                _plant(tree, name, value)
        model = model_of(service)
        entry = model.operations[operation].get("input")
        return {} if entry is None else _value(model, entry["shape"], tree, "")

    def write(self, service: CompanionService, operation: str, answer: dict[str, Any]) -> bytes:
        model = model_of(service)
        output = model.operations[operation].get("output")
        result = ""
        if output is not None:
            wrapper = output.get("resultWrapper", f"{operation}Result")
            result = f"<{wrapper}>{_xml(model, output['shape'], answer)}</{wrapper}>"
        return (
            f'<{operation}Response xmlns="{model.metadata["xmlNamespace"]}">{result}'
            f"<ResponseMetadata><RequestId>{uuid.uuid4()}</RequestId></ResponseMetadata>"
            f"</{operation}Response>"
        ).encode()

    def refuse(self, service: CompanionService, error: WireError) -> bytes:
        namespace = model_of(service).metadata["xmlNamespace"]
        return (
            f'<ErrorResponse xmlns="{namespace}"><Error><Type>{error.fault}</Type>'
            f"<Code>{escape(error.query_code)}</Code><Message>{escape(error.message)}</Message>"
            f"</Error><RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>"
        ).encode()

    def content_type(self, requested: bytes) -> bytes:
        return b"text/xml"


def _plant(tree: _TREE, name: str, value: str) -> None:
    """Put the value of a form's field at its place, one level for each part of its name."""
    *parents, leaf = name.split(".")
    for parent in parents:
        below = tree.setdefault(parent, {})
        if not isinstance(below, dict):
            raise _malformed(name)
        tree = below
    tree[leaf] = value


def _value(model: ServiceModel, name: str, given: Any, path: str) -> Any:
    shape = model.shapes[name]
    kind = shape["type"]
    if kind == "structure":
        if not isinstance(given, dict):
            raise _malformed(path)
        return {
            member: _value(model, entry["shape"], given[member], f"{path}.{member}".strip("."))
            for member, entry in shape["members"].items()
            if member in given
        }
    if kind == "list":
        if given == "":  # how SDKs send an empty list
            return []
        members = given.get("member", {}) if isinstance(given, dict) else None
        if not isinstance(members, dict) or not all(each.isdecimal() for each in members):
            raise _malformed(path)
        inner = shape["member"]["shape"]
        return [_value(model, inner, members[at], path) for at in sorted(members, key=int)]
    if kind == "map":
        entries = given.get("entry", {}) if isinstance(given, dict) else {}
        return {
            each["key"]: _value(model, shape["value"]["shape"], each["value"], path)
            for each in entries.values()
        }
    if not isinstance(given, str):
        raise _malformed(path)
    return _scalar(kind, given, path)


def _scalar(kind: str, text: str, path: str) -> Any:
    try:
        if kind in _WHOLE:
            return int(text)
        if kind in _FRACTION:
            return float(text)
    except ValueError:
        raise _malformed(path) from None
    if kind == "boolean":
        if text not in ("true", "false"):
            raise _malformed(path)
        return text == "true"
    return text  # the check of the request reads times


def _malformed(name: str) -> CompanionRefused:
    return CompanionRefused("MalformedInput", f"The field {name} of the form is malformed.")


def _xml(model: ServiceModel, name: str, value: Any) -> str:
    shape = model.shapes[name]
    kind = shape["type"]
    if kind == "structure":
        return "".join(
            f"<{member}>{_xml(model, entry['shape'], value[member])}</{member}>"
            for member, entry in shape["members"].items()
            if value.get(member) is not None
        )
    if kind == "list":
        inner = shape["member"]["shape"]
        return "".join(f"<member>{_xml(model, inner, each)}</member>" for each in value)
    if kind == "map":
        inner = shape["value"]["shape"]
        return "".join(
            f"<entry><key>{escape(key)}</key><value>{_xml(model, inner, each)}</value></entry>"
            for key, each in value.items()
        )
    if kind == "timestamp":
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
    if kind == "boolean":
        return "true" if value else "false"
    return escape(str(value))
