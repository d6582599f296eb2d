"""Checks requests against DynamoDB's service model, with AWS's error texts.

The model's input shape of each operation is compiled once into a tree of closures. A check walks
the request. It raises SerializationFailed where JSON has the wrong type, as AWS's deserialiser does
before all other checks. It collects constraint violations (null, length, value, pattern, enum) and
raises up to ten of them together, as ``N validation errors detected: ...``.

Most requests are valid. A second, faster set of closures (``fast_shapes``) recognises them. If it
does not recognise a request, the walk finds what to convert, or which error to return.

``shape_rules`` holds, as data, what the model does not express. It has the order in which AWS lists
members, and the members whose error texts changed in 2026. The new texts (``Value at 'Limit' ...``)
leave out the value and keep the member's own spelling.

Unknown members are ignored, as on AWS. A null member is absent, and is removed, so that operations
never meet a null. A null in a list or a map is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import orjson

from stator.engine.requests.fast_shapes import fast_check
from stator.engine.requests.java_text import camel, rendered
from stator.engine.requests.shape_rules import (
    ENUM_ORDER,
    INNER_ORDER,
    LATER,
    LEVELLED,
    NAME,
    NAME_PATTERN,
    NEW_ENUMS,
    NULL_TEXTS,
    OLDER_FORM_LEVELS,
    OLDER_ORDER,
    ON_TABLES,
    ORDER,
    REWORDED,
    TABLE_KEYS,
    is_table_key,
)
from stator.errors import SerializationFailed, ValidationFailed
from stator.model.service import model_of
from stator.model.values import (
    check_boolean,
    check_string,
    check_types,
    json_kind,
    levels,
    refuse_collection,
)

_PACKAGE = "com.amazonaws.dynamodb.v20120810"
_MOST_ERRORS = 10
# Past these, a request is refused without reading on: the answer would be larger than the request.
_MOST_COLLECTED = 1_000
_LONG_LIST = 10_000

Errors = list[str]
# (value, path as AWS prints it, path in the member's own spelling, errors) -> the coerced value
Check = Callable[[Any, str, str, Errors], Any]


def check_request(operation: str, request: Any) -> dict[str, Any]:
    """Return the request, converted to the model's types. Raises AWS's error if it is malformed."""
    if fast_check(operation)(request):
        return request  # type: ignore[no-any-return]
    if type(request) is not dict:
        raise SerializationFailed("" if not isinstance(request, list) else "Unexpected field type")
    errors: Errors = []
    if operation in ON_TABLES and request.get("TableName") is None:
        raise ValidationFailed(
            "The parameter 'TableName' is required but was not present in the request"
        )
    older = _older_form(operation, request)
    _compiled(operation, older)(request, "", "", errors)
    if errors:
        raise violations(_reported(operation, older, errors))
    return request


def _reported(operation: str, older: bool, errors: Errors) -> Errors:
    """Return the violations that AWS reports for this operation.

    UpdateItem reports only the first violation. BatchWriteItem reports a bad table name only if
    nothing else is wrong. The paritysuite conformance suite captured this from AWS.
    """
    if operation == "UpdateItem" and not older:
        return errors[:1]
    if operation == "BatchWriteItem":
        # A bad table name is reported only if nothing else is wrong.
        return [error for error in errors if not error.endswith(TABLE_KEYS)] or errors
    return errors


def _older_form(operation: str, request: dict[str, Any]) -> bool:
    """Whether AWS words the errors for this request as before 2026.

    AWS does so for an UpdateItem without a key. It also does so for a PutItem, UpdateItem or
    DeleteItem with a value nested 63 levels or deeper.
    """
    if operation == "UpdateItem" and request.get("Key") is None:
        return True
    return is_deep(operation, request)


def is_deep(operation: str, request: dict[str, Any]) -> bool:
    return operation in LEVELLED and levels(request) >= OLDER_FORM_LEVELS


def violations(errors: Errors) -> ValidationFailed:
    plural = "" if len(errors) == 1 else "s"
    listed = "; ".join(errors[:_MOST_ERRORS])
    return ValidationFailed(f"{len(errors)} validation error{plural} detected: {listed}")


@lru_cache(maxsize=128)
def _compiled(operation: str, older: bool) -> Check:
    return _Compiler(operation, older).structure(
        model_of(operation).input_shape(operation), top=True
    )


def failed(value: Any, path: str, constraint: str) -> str:
    return f"Value {_shown(value)} at '{path}' failed to satisfy constraint: {constraint}"


def _null(shape: str, key: str, path: str) -> str:
    """Return the violation for a null in a list or map.

    For the shapes in ``NULL_TEXTS``, AWS reports a null alone and with another text. This error is
    raised at once.
    """
    if shape in NULL_TEXTS:
        raise ValidationFailed(NULL_TEXTS[shape].format(key=key))
    return failed(None, path, "Member must not be null")


def _shown(value: Any) -> str:
    return "null" if value is None else f"'{value}'"


class _Compiler:
    """Builds the checks of one operation.

    AttributeValue, which the model defines recursively, has a hand-written check.
    """

    def __init__(self, operation: str, older: bool) -> None:
        self.operation = operation
        self.reworded = operation in REWORDED and not older
        self.new_enums = operation in NEW_ENUMS and not older
        self.orders = {**ORDER, **OLDER_ORDER} if older else ORDER
        self.shapes = model_of(operation).shapes

    def check(self, name: str, *, element: bool) -> Check:
        shape = self.shapes[name]
        if name == "AttributeValue":
            return _attribute_value if element else _attribute_value_field
        match shape["type"]:
            case "structure":
                return self.structure(name, element=element)
            case "list":
                return self.list(name, element=element)
            case "map":
                return self.map(name)
            case "string":
                return self.string(name)
            case "integer":
                return self.number(name, "Integer")
            case "long":
                return self.number(name, "Long")
            case "double" | "float":
                return self.number(name, "Double")
            case "boolean":
                return _boolean
            case "timestamp":
                return self.number(name, "Double")
        return _anything

    def structure(self, name: str, *, element: bool = False, top: bool = False) -> Check:
        shape = self.shapes[name]
        order = self.orders.get(self.operation, ()) if top else INNER_ORDER.get(name, ())
        names = [*order, *(member for member in shape["members"] if member not in order)]
        checks = {
            member: (self._member(member, shape["members"][member]["shape"], top), camel(member))
            for member in names
        }
        required = frozenset(() if name in LATER else shape.get("required", ()))
        ranks = {member: rank for rank, member in enumerate(names)}

        def check(value: Any, path: str, own: str, errors: Errors) -> Any:
            if type(value) is not dict:
                _refuse_structure(value, name, element)
            dot, dot_own = (f"{path}.", f"{own}.") if path else ("", "")
            found: list[tuple[int, str]] = []
            for member in [member for member, content in value.items() if content is None]:
                del value[member]
            for member, content in value.items():
                entry = checks.get(member)
                if entry is None:
                    continue
                inner: Errors = []
                coerced = entry[0](content, dot + entry[1], dot_own + member, inner)
                if coerced is not content:
                    value[member] = coerced
                if inner:
                    found.extend((ranks[member], error) for error in inner)
            found.extend(
                (ranks[member], failed(None, dot + checks[member][1], "Member must not be null"))
                for member in required
                if value.get(member) is None
            )
            if found:
                found.sort(key=lambda pair: pair[0])
                errors.extend(error for _, error in found)
            return value

        return check

    def _member(self, member: str, shape: str, top: bool) -> Check:
        if member == "TableName" and shape == "TableArn":
            return self.table_name
        if top and self.new_enums:
            if member == "ReturnValues":
                return _enum(_RETURN_VALUES, "ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE")
            if member == "ConditionalOperator":
                return _enum(frozenset({"AND", "OR"}), "ALL, OR", bare=self.operation == "Query")
        if member == "ClientRequestToken" and self.reworded:
            return _alone(self.check(shape, element=False))
        return self.check(shape, element=False)

    def table_name(self, value: Any, path: str, own: str, errors: Errors) -> Any:
        """Check a table's name or ARN.

        The model only says "1 to 1024 characters"; AWS checks more.
        """
        if type(value) is not str:
            check_string(value)
        if not value:
            if self.reworded and path == "tableName":
                # AWS reports this violation alone.
                raise violations(
                    [_reworded(own, "Member must have length greater than or equal to 1")]
                )
            errors.append(failed(value, path, "Member must have length greater than or equal to 1"))
        elif not value.startswith("arn:"):
            if len(value) > 255:
                errors.append(
                    failed(value, path, "Member must have length less than or equal to 255")
                )
            elif not NAME.fullmatch(value):
                errors.append(
                    failed(
                        value,
                        path,
                        f"Member must satisfy regular expression pattern: {NAME_PATTERN}",
                    )
                )
        return value

    def string(self, name: str) -> Check:
        shape = {} if name in LATER else self.shapes[name]
        low, high = shape.get("min"), shape.get("max")
        pattern = re.compile(shape["pattern"]) if "pattern" in shape else None
        allowed = frozenset(shape["enum"]) if "enum" in shape else None
        listed = ENUM_ORDER.get(name) or ", ".join(shape.get("enum", ()))
        length = self._length("length")

        def check(value: Any, path: str, own: str, errors: Errors) -> Any:
            if type(value) is not str:
                check_string(value)
            if allowed is not None:
                if value not in allowed:
                    errors.append(
                        failed(value, path, f"Member must satisfy enum value set: [{listed}]")
                    )
                return value
            if pattern is not None and not pattern.fullmatch(value):
                errors.append(
                    failed(
                        value,
                        path,
                        f"Member must satisfy regular expression pattern: {pattern.pattern}",
                    )
                )
            if (low is not None and len(value) < low) or (high is not None and len(value) > high):
                length(value, len(value), low, high, path, own, errors)
            return value

        return check

    def number(self, name: str, java: str) -> Check:
        shape = self.shapes[name]
        low, high = shape.get("min"), shape.get("max")
        length = self._length("value")

        def check(value: Any, path: str, own: str, errors: Errors) -> Any:
            if type(value) is not int:
                refuse_collection(value, f"java.lang.{java}")
                if isinstance(value, (str, bool)):
                    raise SerializationFailed(f"{json_kind(value)} cannot be converted to {java}")
                if java != "Double":
                    value = int(value // 1)
            if (low is not None and value < low) or (high is not None and value > high):
                length(value, value, low, high, path, own, errors)
            return value

        return check

    def _length(self, word: str) -> Callable[..., None]:
        # BatchWriteItem has only this one of the new texts.
        reworded = self.reworded or self.operation == "BatchWriteItem"

        def report(
            value: Any, size: int, low: Any, high: Any, path: str, own: str, errors: Errors
        ) -> None:
            constraint = (
                f"Member must have {word} greater than or equal to {low}"
                if low is not None and size < low
                else f"Member must have {word} less than or equal to {high}"
            )
            errors.append(
                _reworded(own, constraint) if reworded else failed(value, path, constraint)
            )

        return report

    def list(self, name: str, *, element: bool) -> Check:
        shape = self.shapes[name]
        member_shape = shape["member"]["shape"]
        member = self.check(member_shape, element=True)
        is_value = member_shape == "AttributeValue"  # its own check refuses null
        low, high = shape.get("min"), shape.get("max")
        length = self._length("length")

        def check(value: Any, path: str, own: str, errors: Errors) -> Any:
            if type(value) is not list:
                if isinstance(value, dict):
                    raise SerializationFailed("Start of structure or map found where not expected")
                raise SerializationFailed(_PARAMETERIZED if element else "Unexpected field type")
            size = len(value)
            if high is not None and size > max(high, _LONG_LIST):
                length("[...]", size, low, high, path, own, errors)
                raise violations(errors)
            for index, content in enumerate(value):
                here = f".{index + 1}.member"
                if content is None and not is_value:
                    errors.append(_null(name, "", path + here))
                    continue
                coerced = member(content, path + here, own + here, errors)
                if coerced is not content:
                    value[index] = coerced
                if len(errors) > _MOST_COLLECTED:
                    raise violations(errors)
            if (low is not None and size < low) or (high is not None and size > high):
                length(rendered(self.shapes, name, value), size, low, high, path, own, errors)
            return value

        return check

    def map(self, name: str) -> Check:
        shape = self.shapes[name]
        value_shape = shape["value"]["shape"]
        low, high = shape.get("min"), shape.get("max")
        java = _java_map(self.shapes, value_shape)
        length = self._length("length")
        if value_shape == "AttributeValue":
            return _attribute_map
        inner = self.check(value_shape, element=True)
        inner_shape = self.shapes[value_shape]
        bounded_lists = inner_shape["type"] == "list" and "max" in inner_shape
        table_keys = shape["key"]["shape"] == "TableArn"

        def check(value: Any, path: str, own: str, errors: Errors) -> Any:
            if type(value) is not dict:
                if isinstance(value, list):
                    raise SerializationFailed(f"Unrecognized collection type {java}")
                raise SerializationFailed("Unexpected field type")
            reported: Errors = [] if bounded_lists else errors
            for key, content in value.items():
                here = f".{key}.member"
                if content is None:
                    errors.append(_null(name, key, path + here))
                    continue
                coerced = inner(content, path + here, own + here, reported)
                if coerced is not content:
                    value[key] = coerced
            if bounded_lists and any(not low_high(len(v)) for v in value.values() if v is not None):
                errors.append(failed(rendered(self.shapes, name, value), path, _list_bounds))
            elif bounded_lists:
                errors.extend(reported)
            if table_keys and not all(is_table_key(key) for key in value):
                shown = (
                    orjson.dumps(value).decode()
                    if self.reworded
                    else rendered(self.shapes, name, value)
                )
                errors.append(failed(shown, path, TABLE_KEYS))
            size = len(value)
            if (low is not None and size < low) or (high is not None and size > high):
                length(rendered(self.shapes, name, value), size, low, high, path, own, errors)
            return value

        least, most = inner_shape.get("min", 0), inner_shape.get("max", 0)
        _list_bounds = (
            "Map value must satisfy constraint: [Member must have length less than or equal to "
            f"{most}, Member must have length greater than or equal to {least}]"
        )

        def low_high(size: int) -> bool:
            return bool(least <= size <= most)

        return check


_PARAMETERIZED = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class "
    "java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and "
    "java.lang.Class are in module java.base of loader 'bootstrap')"
)


def _reworded(own: str, constraint: str) -> str:
    return f"Value at '{own}' failed to satisfy constraint: {constraint}"


def _refuse_structure(value: Any, name: str, element: bool) -> None:
    if isinstance(value, list):
        raise SerializationFailed(f"Unrecognized collection type class {_PACKAGE}.{name}")
    raise SerializationFailed(
        "Unexpected value type in payload" if element else "Unexpected field type"
    )


def _java_map(shapes: dict[str, Any], value_shape: str) -> str:
    shape = shapes[value_shape]
    if shape["type"] == "string":
        inner = "java.lang.String"
    elif shape["type"] == "list":
        inner = f"java.util.List<{_PACKAGE}.{shape['member']['shape']}>"
    else:
        inner = f"{_PACKAGE}.{value_shape}"
    return f"java.util.Map<java.lang.String, {inner}>"


def _attribute_value(value: Any, path: str, own: str, errors: Errors) -> Any:
    check_types(value)
    return value


def _attribute_value_field(value: Any, path: str, own: str, errors: Errors) -> Any:
    if type(value) is not dict:
        _refuse_structure(value, "AttributeValue", False)
    check_types(value)
    return value


def _attribute_map(value: Any, path: str, own: str, errors: Errors) -> Any:
    if type(value) is not dict:
        if isinstance(value, list):
            raise SerializationFailed(
                "Unrecognized collection type java.util.Map<java.lang.String, "
                f"{_PACKAGE}.AttributeValue>"
            )
        raise SerializationFailed("Unexpected field type")
    for inner in value.values():
        check_types(inner)
    return value


def _boolean(value: Any, path: str, own: str, errors: Errors) -> Any:
    return check_boolean(value)


def _anything(value: Any, path: str, own: str, errors: Errors) -> Any:
    return value


_RETURN_VALUES = frozenset({"NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"})


def _enum(allowed: frozenset[str], listed: str, *, bare: bool = False) -> Check:
    """Return a check of an enum with AWS's error text since 2026.

    The text names neither the member nor the value. It shows ``listed`` as the allowed values,
    because AWS's list differs from what AWS accepts. A ``bare`` error is reported alone and without
    the count of errors.
    """

    def check(value: Any, path: str, own: str, errors: Errors) -> Any:
        check_string(value)
        if value not in allowed:
            text = f"Failed to satisfy constraint: Member must satisfy enum value set: [{listed}]"
            if bare:
                raise ValidationFailed(text)
            errors.append(text)
        return value

    return check


def _alone(inner: Check) -> Check:
    """Return a check whose violations AWS reports without the violations of other members."""

    def check(value: Any, path: str, own: str, errors: Errors) -> Any:
        found: Errors = []
        coerced = inner(value, path, own, found)
        if found:
            raise violations(found)
        return coerced

    return check
