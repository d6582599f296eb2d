"""The fast check of requests, made of closures that recognise a valid request.

Most requests are valid and need no other check. A closure returns False when unsure. Then
``shapes`` finds what to convert, or which error to return.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from stator.engine.requests.shape_rules import NAME, is_table_key
from stator.model.service import model_of
from stator.model.values import well_typed

Fast = Callable[[Any], bool]


@lru_cache(maxsize=128)
def fast_check(operation: str) -> Fast:
    """Return the closure that says whether a request of this operation is surely valid."""
    model = model_of(operation)
    return _FastCompiler(model.shapes).structure(model.input_shape(operation))


class _FastCompiler:
    """Builds closures that tell whether a request is valid and needs no conversion."""

    def __init__(self, shapes: dict[str, Any]) -> None:
        self.shapes = shapes

    def check(self, name: str) -> Fast:
        shape = self.shapes[name]
        low, high = shape.get("min"), shape.get("max")
        match shape["type"]:
            case "structure":
                return (
                    (lambda value: well_typed({"": value}))
                    if name == "AttributeValue"
                    else self.structure(name)
                )
            case "list":
                return self.list(shape["member"]["shape"], low or 0, high)
            case "map":
                return self.map(name)
            case "string":
                return self.string(name)
            case "integer" | "long":
                return lambda value: (
                    type(value) is int
                    and (low is None or value >= low)
                    and (high is None or value <= high)
                )
            case "boolean":
                return lambda value: value is True or value is False
        return lambda value: False

    def structure(self, name: str) -> Fast:
        shape = self.shapes[name]
        checks = {
            member: _fast_table_name
            if member == "TableName" and target["shape"] == "TableArn"
            else self.check(target["shape"])
            for member, target in shape["members"].items()
        }
        required: list[str] = shape.get("required", [])
        get = checks.get

        def valid(value: Any) -> bool:
            if type(value) is not dict:
                return False
            for member, content in value.items():
                check = get(member)
                if check is not None and not check(content):
                    return False
            return all(member in value for member in required)

        return valid

    def list(self, member: str, low: int, high: int | None) -> Fast:
        if self.shapes[member].get("value", {}).get("shape") == "AttributeValue":
            check: Fast = well_typed
        else:
            check = self.check(member)
        most = high if high is not None else 1 << 62
        return lambda value: (
            type(value) is list and low <= len(value) <= most and all(map(check, value))
        )

    def map(self, name: str) -> Fast:
        shape = self.shapes[name]
        if shape["value"]["shape"] == "AttributeValue":
            return well_typed
        check = self.check(shape["value"]["shape"])
        low, high = shape.get("min", 0), shape.get("max", 1 << 62)
        check_key: Fast = is_table_key if shape["key"]["shape"] == "TableArn" else bool
        return lambda value: (
            type(value) is dict
            and low <= len(value) <= high
            and all(map(check, value.values()))
            and all(map(check_key, value))
        )

    def string(self, name: str) -> Fast:
        shape = self.shapes[name]
        if "enum" in shape:
            allowed = frozenset(shape["enum"])
            return lambda value: type(value) is str and value in allowed
        low, high = shape.get("min", 0), shape.get("max", 1 << 62)
        if "pattern" in shape:
            pattern = re.compile(shape["pattern"])
            return lambda value: (
                type(value) is str
                and low <= len(value) <= high
                and pattern.fullmatch(value) is not None
            )
        return lambda value: type(value) is str and low <= len(value) <= high


def _fast_table_name(value: Any) -> bool:
    return type(value) is str and len(value) <= 255 and _is_name(value)


@lru_cache(maxsize=1024)
def _is_name(value: str) -> bool:
    return NAME.fullmatch(value) is not None
