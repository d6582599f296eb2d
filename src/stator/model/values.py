"""Attribute values in DynamoDB JSON: checked, normalised and measured in one pass.

A value has the form it has on the wire: ``{"S": "text"}``. ``check_types`` does what AWS's
deserialiser does: a wrong JSON type is a SerializationException and comes before every other check.
``normalise`` does what AWS's validator does. After it, numbers are canonical strings and sets are
sorted, so two values are equal exactly when Python says so.

These functions run once per attribute of every write: run ``bench/`` before changing their shape.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from stator.errors import SerializationFailed, ValidationFailed, ValueFailed
from stator.errors.service import MESSAGE_CHARACTERS
from stator.model import numbers
from stator.model.limits import ATTRIBUTE_NAME_BYTES, NESTING_LEVELS

Value = dict[str, Any]
Item = dict[str, Value]

INVALID: Final = "One or more parameter values were invalid: "
EMPTY_VALUE: Final = (
    "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
)
SEVERAL_TYPES: Final = (
    "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes"
)
NAME_TOO_LARGE: Final = "Attribute name is too large, must be less than 65536 bytes"
TOO_DEEP: Final = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)

_KINDS: Final = frozenset({"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"})
_PACKAGE: Final = "com.amazonaws.dynamodb.v20120810"


# --- the checks of AWS's deserialiser -------------------------------------------------------------


def check_types(value: Any) -> None:
    """Raise SerializationFailed if JSON is not an attribute value. Drop null or unknown members."""
    if type(value) is not dict:
        if isinstance(value, list):
            raise SerializationFailed(
                f"Unrecognized collection type class {_PACKAGE}.AttributeValue"
            )
        raise SerializationFailed("Unexpected value type in payload")
    for kind, content in value.items():
        if kind == "S" or kind == "N":
            if type(content) is not str:
                _check_other(value)
                return
        elif kind == "M":
            if type(content) is not dict:
                _check_other(value)
                return
            for inner in content.values():
                check_types(inner)
        elif kind == "L":
            if type(content) is not list:
                _check_other(value)
                return
            for inner in content:
                check_types(inner)
        else:
            _check_other(value)
            return


def _check_other(value: Value) -> None:
    for kind in [k for k, content in value.items() if content is None or k not in _KINDS]:
        del value[kind]
    for kind, content in value.items():
        match kind:
            case "S" | "N":
                check_string(content)
            case "B":
                value["B"] = _check_binary(content)
            case "BOOL" | "NULL":
                value[kind] = check_boolean(content)
            case "SS" | "NS":
                members = _check_list(content)
                if set(map(type, members)) != {str}:
                    for member in members:
                        check_string(member)
            case "BS":
                value["BS"] = _check_binaries(_check_list(content))
            case "L":
                for inner in _check_list(content):
                    check_types(inner)
            case _:
                if not isinstance(content, dict):
                    if isinstance(content, list):
                        raise SerializationFailed(
                            "Unrecognized collection type "
                            f"java.util.Map<java.lang.String, {_PACKAGE}.AttributeValue>"
                        )
                    raise SerializationFailed("Unexpected field type")
                for inner in content.values():
                    check_types(inner)


def json_kind(value: Any) -> str:
    """Return AWS's name for the JSON token of a scalar: ``NUMBER_VALUE`` for 1."""
    if value is True:
        return "TRUE_VALUE"
    if value is False:
        return "FALSE_VALUE"
    if isinstance(value, int):
        return "NUMBER_VALUE"
    if isinstance(value, float):
        return "DECIMAL_VALUE"
    return "STRING_VALUE"


def refuse_collection(value: Any, java_class: str) -> None:
    if isinstance(value, dict):
        raise SerializationFailed("Start of structure or map found where not expected")
    if isinstance(value, list):
        raise SerializationFailed(f"Unrecognized collection type class {java_class}")


def check_string(value: Any) -> None:
    if isinstance(value, str):
        return
    refuse_collection(value, "java.lang.String")
    raise SerializationFailed(f"{json_kind(value)} cannot be converted to String")


def check_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    refuse_collection(value, "java.lang.Boolean")
    if isinstance(value, str):
        if value.lower() in ("true", "1", "yes"):
            return True
        if value.lower() in ("false", "0", "no"):
            return False
        raise SerializationFailed("Unexpected token received from parser")
    raise SerializationFailed(f"{json_kind(value)} cannot be converted to Boolean")


def _check_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        raise SerializationFailed("Start of structure or map found where not expected")
    raise SerializationFailed("Unexpected field type")


def _check_binary(value: Any) -> str:
    refuse_collection(value, "java.nio.ByteBuffer")
    if not isinstance(value, str):
        raise SerializationFailed("only base-64-encoded strings are convertible to bytes")
    if len(value) % 4:
        raise SerializationFailed(
            f"Base64 encoded length is expected a multiple of 4 bytes but found: {len(value)}"
        )
    try:
        return b64encode(b64decode(value, validate=True)).decode()
    except (Base64Error, ValueError):
        raise SerializationFailed("Invalid last non-pad Base64 character dectected") from None


def _check_binaries(members: list[Any]) -> list[str]:
    if set(map(type, members)) != {str}:
        return [_check_binary(member) for member in members]
    # Each text once, in the order of the set: a request may repeat one millions of times.
    checked = {member: _check_binary(member) for member in dict.fromkeys(members)}
    return [checked[member] for member in members]


def well_typed(values: Any) -> bool:
    """Whether all values of a map have the right types and canonical form.

    This is the fast path around ``check_types`` for valid requests. It builds no messages and
    returns False when unsure.
    """
    return type(values) is dict and _all_well_typed(values.values())


def _all_well_typed(values: Iterable[Any]) -> bool:
    for value in values:
        if type(value) is not dict:
            return False
        for kind, content in value.items():
            if kind == "S" or kind == "N":
                if type(content) is not str:
                    return False
            elif kind == "M":
                if type(content) is not dict or not _all_well_typed(content.values()):
                    return False
            elif kind == "L":
                if type(content) is not list or not _all_well_typed(content):
                    return False
            elif kind == "BOOL" or kind == "NULL":
                if type(content) is not bool:
                    return False
            else:
                return False
    return True


def levels(node: Any) -> int:
    """Return how many lists and maps surround the deepest leaf of a request's values."""
    deepest = 0
    waiting = [(node, 0)]  # not recursive: JSON may nest five hundred values
    while waiting:
        inner, depth = waiting.pop()
        if isinstance(inner, dict):
            for kind, content in inner.items():
                level = depth + (kind == "L" or kind == "M")
                if level > deepest:
                    deepest = level
                if content and isinstance(content, (dict, list)):
                    waiting.append((content, level))
        else:  # most members of a large list are not looked at again
            waiting += [(each, depth) for each in inner if each and isinstance(each, (dict, list))]
    return deepest


# --- the checks of AWS's validator ----------------------------------------------------------------


def normalise(value: Value, depth: int = 1) -> int:
    """Check a value, normalise it in place, and return its size in bytes.

    ``check_types`` must have accepted the value before. ``depth`` is the value's level of nesting,
    counted from 1.
    """
    if len(value) != 1:
        _refuse_count(value, depth)
    [(kind, content)] = value.items()
    if kind == "S":
        return len(content) if content.isascii() else len(content.encode())
    if kind == "N":
        size = numbers.normal_size(content)
        if size == 0:
            number = value["N"] = numbers.normalise(content)
            size = numbers.size_bytes(number)
        return size
    if kind == "M":
        if depth >= NESTING_LEVELS:
            raise ValidationFailed(TOO_DEEP)
        size = 3
        for name, inner in content.items():
            size += (
                1
                + (len(name) if name.isascii() else len(name.encode()))
                + normalise(inner, depth + 1)
            )
        return size
    if kind == "L":
        if depth >= NESTING_LEVELS:
            raise ValidationFailed(TOO_DEEP)
        size = 3
        for inner in content:
            size += 1 + normalise(inner, depth + 1)
        return size
    if kind == "BOOL":
        return 1
    if kind == "B":
        return binary_size(content)
    if kind == "NULL":
        if not content:
            raise ValidationFailed(
                INVALID + "Null attribute value types must have the value of true"
            )
        return 1
    return _normalise_set(value, kind, content)


def _refuse_count(value: Value, depth: int) -> None:
    if not value:
        raise ValidationFailed(EMPTY_VALUE)
    for kind, content in value.items():
        normalise({kind: content}, depth)
    raise ValidationFailed(SEVERAL_TYPES)


def _normalise_set(value: Value, kind: str, members: list[str]) -> int:
    if not members:
        raise ValidationFailed(
            INVALID
            + {
                "SS": "An string set  may not be empty",
                "NS": "An number set  may not be empty",
                "BS": "Binary sets should not be empty",
            }[kind]
        )
    if kind == "NS":
        members = [numbers.normalise(member) for member in members]
    if len(set(members)) != len(members):
        raise _duplicates(kind, members)
    value[kind] = sort_set(kind, members)
    return set_size(kind, members)


def _duplicates(kind: str, members: list[str]) -> ValueFailed:
    if kind == "NS":
        return ValueFailed(
            f"{INVALID}Input collection contains duplicates.",
            older="Input collection contains duplicates",
        )
    tail = "of type BS contains duplicates." if kind == "BS" else " contains duplicates."
    # A message is cut after so many characters, and each member takes more than one.
    quoted = [f'"{member}"' for member in _up_to_repeat(kind, members)[:MESSAGE_CHARACTERS]]
    current = ("," if kind == "BS" else ", ").join(quoted)
    older = ", ".join(members[:MESSAGE_CHARACTERS])
    return ValueFailed(
        f"{INVALID}Input collection [{current}]{tail}",
        older=f"{INVALID}Input collection [{older}]{tail}",
    )


def _up_to_repeat(kind: str, members: list[str]) -> list[str]:
    """Return a set's members in the order in which AWS's error about duplicates lists them.

    Members before the first repeated one are sorted; the others stay as they were sent.
    """
    seen: set[str] = set()
    for index, member in enumerate(members):
        if member in seen:
            return sort_set(kind, members[:index]) + members[index:]
        seen.add(member)
    return members


def sort_set(kind: str, members: list[str]) -> list[str]:
    if kind == "NS":
        return sorted(members, key=Decimal)
    if kind == "BS":
        return sorted(members, key=b64decode)
    return sorted(members)


def set_size(kind: str, members: list[str]) -> int:
    if kind == "NS":
        return sum(map(numbers.size_bytes, members))
    if kind == "BS":
        return sum(map(binary_size, members))
    return sum(len(member.encode()) for member in members)


def binary_size(encoded: str) -> int:
    return len(encoded) * 3 // 4 - (encoded.count("=", -2) if encoded else 0)


def size_bytes(value: Value) -> int:
    """Return the size of a normalised value in bytes, as DynamoDB counts it."""
    [(kind, content)] = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return numbers.size_bytes(content)
        case "B":
            return binary_size(content)
        case "BOOL" | "NULL":
            return 1
        case "M":
            return 3 + sum(
                1 + len(name.encode()) + size_bytes(inner) for name, inner in content.items()
            )
        case "L":
            return 3 + sum(1 + size_bytes(inner) for inner in content)
        case _:
            return set_size(kind, content)


def shared_size_bytes(value: Value, known: dict[int, int]) -> int:
    """Return the size of a normalised value in bytes, and remember it in ``known``.

    ``known`` maps the ``id()`` of the content of a list, map or set to its size. Content that a
    request uses in several places is therefore measured once. The caller must keep the values
    alive and unchanged for as long as it uses ``known``.
    """
    [content] = value.values()
    if isinstance(content, (str, bool)):
        return size_bytes(value)
    size = known.get(id(content))
    if size is None:
        size = known[id(content)] = size_bytes(value)
    return size


def depth_of(value: Value) -> int:
    [(kind, content)] = value.items()
    if kind == "M":
        return 1 + max(map(depth_of, content.values()), default=0)
    if kind == "L":
        return 1 + max(map(depth_of, content), default=0)
    return 1


# --- items ----------------------------------------------------------------------------------------


def normalise_item(item: Item) -> int:
    """Normalise every attribute in place. Return the item's size: its names plus its values."""
    size = 0
    for name, value in item.items():
        size += len(name) if name.isascii() else len(name.encode())
        own = 0
        if len(value) == 1:  # most attributes take the short way
            text = value.get("S")
            if text is not None:
                own = len(text) if text.isascii() else 0
            else:
                number = value.get("N")
                own = 0 if number is None else numbers.normal_size(number)
        size += own or normalise(value)
    if size > ATTRIBUTE_NAME_BYTES:  # no name of a smaller item can be too large
        _check_names(item)
    return size


def _check_names(values: Item) -> None:
    for name, value in values.items():
        _check_name_size(name)
        _check_names_inside(value)


def _check_names_inside(value: Value) -> None:
    if "M" in value:
        _check_names(value["M"])
    for inner in value.get("L", ()):
        _check_names_inside(inner)


def check_name(name: str) -> None:
    """Check the name of an attribute that a request names outside of an expression."""
    if not name:
        raise ValidationFailed("Empty attribute name")
    _check_name_size(name)


def _check_name_size(name: str) -> None:
    if len(name) > ATTRIBUTE_NAME_BYTES or len(name.encode()) > ATTRIBUTE_NAME_BYTES:
        raise ValidationFailed(NAME_TOO_LARGE)


def item_size(item: Item) -> int:
    return sum(len(name.encode()) + size_bytes(value) for name, value in item.items())


def kind_of(value: Value) -> str:
    return next(iter(value))


def content_of(value: Value) -> Any:
    return next(iter(value.values()))
