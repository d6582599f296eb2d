"""Amazon Ion, through Amazon's own library: an extra, ``pip install 'stator[ion]'``.

Each DynamoDB type has an Ion type: S string, N decimal, B blob, BOOL bool, NULL null, L list, M
struct. A set is a list with the annotation ``$dynamodb_SS``, ``$dynamodb_NS`` or ``$dynamodb_BS``
("DynamoDB table export output format" in the Developer Guide). Exports are written in Ion's text
form, one value per line, each after a version marker. Both of Ion's forms, text and binary, can be
read.

    $ion_1_0 {Item:{pk:"a",total:12.50,tags:$dynamodb_SS::["x","y"]}}
    $ion_1_0 {Record:{Metadata:{WriteTimestampMicros:1680109764000000.},Keys:{...},NewImage:{...}}}
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, BinaryIO

from stator.errors import DataDamaged
from stator.formats.extras import library
from stator.model.values import Item

_SETS = {"SS": "S", "NS": "N", "BS": "B"}
_ANNOTATION = "$dynamodb_"
# Numbers with more digits before or after the point are written with an exponent.
_PLAIN_DIGITS = 38


class NotAnItem(ValueError):
    """An Ion value is not a struct of attributes, or has a type that DynamoDB does not have."""


# -- writing


def item_line(item: Item) -> bytes:
    return _line({"Item": encode_item(item)})


def change_line(keys: Item, images: dict[str, Item], micros: int) -> bytes:
    """Return the line of a change in an incremental export.

    ``images`` holds OldImage, NewImage or both. ``micros`` is the time of the change, in
    microseconds since 1970.
    """
    record: dict[str, Any] = {
        "Metadata": {"WriteTimestampMicros": Decimal(micros)},
        "Keys": encode_item(keys),
        **{name: encode_item(image) for name, image in images.items()},
    }
    return _line({"Record": record})


def _line(value: dict[str, Any]) -> bytes:
    text: str = library("amazon.ion.simpleion").dumps(value, binary=False)
    return text.encode() + b"\n"


def encode_item(item: Item) -> dict[str, Any]:
    """Return an item as Python values that Amazon's Ion library can write."""
    return {name: _encode_value(value) for name, value in item.items()}


def _encode_value(value: dict[str, Any]) -> Any:
    kind, content = next(iter(value.items()))
    match kind:
        case "N":
            return Decimal(content)
        case "B":
            return b64decode(content)
        case "NULL":
            return None
        case "L":
            return [_encode_value(member) for member in content]
        case "M":
            return encode_item(content)
        case "SS" | "NS" | "BS":
            members = [_encode_value({_SETS[kind]: member}) for member in content]
            types, core = library("amazon.ion.simple_types"), library("amazon.ion.core")
            return types.IonPyList.from_value(
                core.IonType.LIST, members, annotations=(_ANNOTATION + kind,)
            )
    return content


# -- reading


def read_values(stream: BinaryIO) -> Iterator[Any]:
    """Yield the values of a stream one by one. Raises DataDamaged where the stream is not Ion."""
    simpleion = library("amazon.ion.simpleion")
    exceptions = library("amazon.ion.exceptions")
    try:
        yield from simpleion.load(stream, single_value=False, parse_eagerly=False)
    except exceptions.IonException as error:
        raise DataDamaged(f"the data is not Ion, or is damaged: {str(error).strip()}") from error


def read_records(stream: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the records of an export, items or changes, in the same form as DynamoDB JSON."""
    for value in read_values(stream):
        if not isinstance(value, Mapping):
            raise DataDamaged(f"found an Ion {_type_name(value)} where a record should be")
        record = value.get("Record", value)
        yield {str(name): _decode_member(str(name), inner) for name, inner in record.items()}


def _decode_member(name: str, value: Any) -> Any:
    if name == "Metadata":
        return {str(inner): {"N": str(content)} for inner, content in value.items()}
    try:
        return decode_item(value)
    except NotAnItem as error:
        raise DataDamaged(f"a record's {name} is not an item: {error}") from None


def decode_item(struct: Any) -> Item:
    """Return the item in an Ion struct.

    Raises NotAnItem if the value is not a struct, or if DynamoDB has no type for a value in it.
    """
    if not isinstance(struct, Mapping):
        raise NotAnItem(f"found an Ion {_type_name(struct)} where a struct should be")
    return {str(name): _decode_value(value) for name, value in struct.items()}


def _decode_value(value: Any) -> dict[str, Any]:
    annotations = [each.text or "" for each in getattr(value, "ion_annotations", ())]
    kind = next(
        (text.removeprefix(_ANNOTATION) for text in annotations if text.startswith(_ANNOTATION)),
        None,
    )
    if kind in _SETS:
        return {kind: [_decode_member_of_set(kind, member) for member in value]}
    if value is None or type(value).__name__ == "IonPyNull":
        return {"NULL": True}
    if isinstance(value, bool) or type(value).__name__ == "IonPyBool":
        return {"BOOL": bool(value)}
    if isinstance(value, (int, Decimal)):
        return {"N": _number(Decimal(value))}
    if isinstance(value, str):
        return {"S": str(value)}
    if isinstance(value, bytes):
        return {"B": b64encode(bytes(value)).decode()}
    if isinstance(value, Mapping):
        return {"M": decode_item(value)}
    if isinstance(value, list):
        return {"L": [_decode_value(member) for member in value]}
    raise NotAnItem(f"DynamoDB has no type for an Ion {_type_name(value)}")


def _decode_member_of_set(kind: str, member: Any) -> Any:
    value = _decode_value(member)
    if _SETS[kind] not in value:
        raise NotAnItem(f"a set of type {kind} has a member that is an Ion {_type_name(member)}")
    return value[_SETS[kind]]


def _number(value: Decimal) -> str:
    return format(value, "f") if abs(value.adjusted()) < _PLAIN_DIGITS else str(value)


def _type_name(value: Any) -> str:
    return type(value).__name__.removeprefix("IonPy").lower()
