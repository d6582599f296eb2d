"""Items as Amazon Ion, by Amazon's own library: an extra, ``pip install 'stator[ion]'``.

DynamoDB's types and Ion's correspond: S string, N decimal, B blob, BOOL bool, NULL null, L list, M struct; a set is a list with the
annotation ``$dynamodb_SS``, ``$dynamodb_NS`` or ``$dynamodb_BS``. Exports are in Ion's text form, one value to a line, each
after a version marker; imports may be in either form.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from decimal import Decimal
from importlib import import_module
from typing import Any, BinaryIO

from stator.errors import ConfigurationError, ValidationFailed
from stator.model.values import Item

_SETS = {"SS": "S", "NS": "N", "BS": "B"}
_ANNOTATION = "$dynamodb_"


class NotAnItem(ValueError):
    """An Ion value that DynamoDB has no type for."""


def check_ion(data_format: str | None) -> None:
    """Refuse a request for Ion where the library is not there."""
    if data_format != "ION":
        return
    try:
        _library("simpleion")
    except ConfigurationError as error:
        raise ValidationFailed(
            f"ION is not available here: {error.message}", hint=error.hint
        ) from None


def _library(name: str) -> Any:
    try:
        return import_module(f"amazon.ion.{name}")
    except ImportError:
        raise ConfigurationError(
            "Amazon Ion is not installed", hint="pip install 'stator[ion]'"
        ) from None


def encode_line(value: dict[str, Any]) -> bytes:
    """A struct, made with ``to_ion``, as a line of an export."""
    text: str = _library("simpleion").dumps(value, binary=False)
    return text.encode() + b"\n"


def to_ion(item: Item) -> dict[str, Any]:
    return {name: _to_value(value) for name, value in item.items()}


def _to_value(value: dict[str, Any]) -> Any:
    kind, content = next(iter(value.items()))
    match kind:
        case "N":
            return Decimal(content)
        case "B":
            return b64decode(content)
        case "NULL":
            return None
        case "L":
            return [_to_value(member) for member in content]
        case "M":
            return to_ion(content)
        case "SS" | "NS" | "BS":
            members = [_to_value({_SETS[kind]: member}) for member in content]
            types, core = _library("simple_types"), _library("core")
            return types.IonPyList.from_value(
                core.IonType.LIST, members, annotations=(_ANNOTATION + kind,)
            )
    return content


def read_structs(file: BinaryIO) -> Iterator[Any]:
    """The values of a file one by one, in Ion's text or binary form."""
    values: Iterator[Any] = _library("simpleion").load(
        file, single_value=False, parse_eagerly=False
    )
    return values


def from_ion(struct: Any) -> Item:
    if not isinstance(struct, Mapping):
        raise NotAnItem("the value of Item is no struct")
    return {str(name): _from_value(value) for name, value in struct.items()}


def _from_value(value: Any) -> dict[str, Any]:
    annotations = [each.text or "" for each in getattr(value, "ion_annotations", ())]
    kind = next(
        (text.removeprefix(_ANNOTATION) for text in annotations if text.startswith(_ANNOTATION)),
        None,
    )
    if kind in _SETS:
        return {kind: [_from_value(member)[_SETS[kind]] for member in value]}
    if value is None or type(value).__name__ == "IonPyNull":
        return {"NULL": True}
    if isinstance(value, bool) or type(value).__name__ == "IonPyBool":
        return {"BOOL": bool(value)}
    if isinstance(value, (int, Decimal)):
        return {
            "N": format(Decimal(value), "f")
            if abs(Decimal(value).adjusted()) < 38
            else str(Decimal(value))
        }
    if isinstance(value, str):
        return {"S": str(value)}
    if isinstance(value, bytes):
        return {"B": b64encode(bytes(value)).decode()}
    if isinstance(value, Mapping):
        return {"M": from_ion(value)}
    if isinstance(value, list):
        return {"L": [_from_value(member) for member in value]}
    raise NotAnItem(
        f"Ion's {type(value).__name__.removeprefix('IonPy').lower()} has no type in DynamoDB"
    )
