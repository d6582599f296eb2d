"""Checks a companion's request against the service's model: shapes, types, enums and lengths.

Unknown members are refused by no AWS service; they are left out here. A null member is absent. The
form of the messages is that of AWS's framework ("2 validation errors detected: Value ..."), which
DynamoDB uses, too. A member of the wrong type is a SerializationException.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from stator.errors import CompanionRefused
from stator.model.companion_service import CompanionService
from stator.model.service import service_model

_WRONG_TYPE: Final = "SerializationException"
_MOST_ERRORS: Final = 10
_NOT_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")
_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "double": (int, float),
    "float": (int, float),
    "boolean": (bool,),
}


def check_companion_request(
    service: CompanionService, operation: str, request: Any
) -> dict[str, Any]:
    """Return the request with only the model's members, and times as epoch seconds.

    Raises CompanionRefused if it does not fit the model.
    """
    model = service_model(service.name, service.version)
    if not isinstance(request, dict):
        raise CompanionRefused(_WRONG_TYPE, "The request is not an object.")
    entry = model.operations[operation].get("input")
    if entry is None:
        return {}
    check = _Check(model.shapes)
    checked: dict[str, Any] = check.structure(entry["shape"], request, "")
    if check.errors:
        count = len(check.errors)
        listed = "; ".join(check.errors[:_MOST_ERRORS])
        plural = "error" if count == 1 else "errors"
        raise CompanionRefused(
            service.invalid_code, f"{count} validation {plural} detected: {listed}"
        )
    return checked


class _Check:
    """Walks one request, and collects what is wrong with it."""

    def __init__(self, shapes: dict[str, Any]) -> None:
        self._shapes = shapes
        self.errors: list[str] = []

    def value(self, name: str, value: Any, path: str) -> Any:
        shape = self._shapes[name]
        kind = shape["type"]
        if kind == "structure":
            return self.structure(name, value, path)
        if kind == "list":
            return self._list(shape, value, path)
        if kind == "map":
            return self._map(shape, value, path)
        if kind == "timestamp":
            return _seconds(value, path)
        if kind == "double" and isinstance(value, str) and value in _NOT_NUMBERS:
            value = float(value)  # JSON has no numbers for these; operations refuse them
        accepted = _KINDS[kind]
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind != "boolean"):
            raise _wrong_type(value, path, kind)
        self._constrain(shape, value, path)
        return value

    def structure(self, name: str, value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong_type(value, path, "structure")
        shape = self._shapes[name]
        required = shape.get("required", ())
        checked: dict[str, Any] = {}
        for member, entry in shape["members"].items():
            where = f"{path}.{_camel(member)}" if path else _camel(member)
            given = value.get(member)
            if given is not None:
                checked[member] = self.value(entry["shape"], given, where)
            elif member in required:
                self._add("null", where, "Member must not be null")
        return checked

    def _list(self, shape: dict[str, Any], value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong_type(value, path, "list")
        self._constrain(shape, value, path)
        member = shape["member"]["shape"]
        return [self.value(member, each, f"{path}.{at}.member") for at, each in enumerate(value, 1)]

    def _map(self, shape: dict[str, Any], value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong_type(value, path, "map")
        self._constrain(shape, value, path)
        for key in value:
            self._constrain(self._shapes[shape["key"]["shape"]], key, f"{path}.{key}.key")
        member = shape["value"]["shape"]
        return {key: self.value(member, each, f"{path}.{key}.value") for key, each in value.items()}

    def _constrain(self, shape: dict[str, Any], value: Any, path: str) -> None:
        if "enum" in shape and value not in shape["enum"]:
            listed = ", ".join(shape["enum"])
            self._add(f"'{value}'", path, f"Member must satisfy enum value set: [{listed}]")
            return
        if isinstance(value, bool):
            return
        is_number = isinstance(value, (int, float))
        size = value if isinstance(value, (int, float)) else len(value)
        what = "value" if is_number else "length"
        shown = f"'{value}'" if isinstance(value, (str, int, float)) else "'[...]'"
        low, high = shape.get("min"), shape.get("max")
        if low is not None and size < low:
            rule = f"Member must have {what} greater than or equal to {low}"
            self._add(shown, path, rule)
        if high is not None and size > high:
            self._add(shown, path, f"Member must have {what} less than or equal to {high}")
        pattern = shape.get("pattern")
        if isinstance(value, str) and pattern and not _compiled(pattern).fullmatch(value):
            rule = f"Member must satisfy regular expression pattern: {pattern}"
            self._add(shown, path, rule)

    def _add(self, shown: str, path: str, rule: str) -> None:
        self.errors.append(f"Value {shown} at '{path}' failed to satisfy constraint: {rule}")


# What Java's regular expressions spell differently from Python's: classes of characters, and the
# surrogate pairs that stand for all characters beyond U+FFFF.
_JAVA_CLASSES: Final = {
    "\\p{L}": "\\w",
    "\\p{N}": "\\w",
    "\\p{Print}": "[ -~]",
    "\\uD800\\uDC00-\\uDBFF\\uDFFF": "\\U00010000-\\U0010FFFF",
}


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    for java, python in _JAVA_CLASSES.items():
        pattern = pattern.replace(java, python)
    return re.compile(pattern, re.DOTALL)


def _seconds(value: Any, path: str) -> float:
    """Return a time as epoch seconds. JSON has numbers, and older SDKs ISO 8601 texts."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise _wrong_type(value, path, "timestamp") from None
        return (
            moment.timestamp()
            if moment.tzinfo
            else datetime.fromisoformat(value + "+00:00").timestamp()
        )
    raise _wrong_type(value, path, "timestamp")


def _wrong_type(value: Any, path: str, kind: str) -> CompanionRefused:
    shown = type(value).__name__
    return CompanionRefused(_WRONG_TYPE, f"The value at '{path}' is a {shown}, not a {kind}.")


def _camel(member: str) -> str:
    """Return a member as AWS's messages spell it: ``MetricName`` becomes ``metricName``."""
    return member[:1].lower() + member[1:]
