"""Requests checked against DynamoDB's service model, with AWS's words.

For each operation the model's input shape is compiled once into a tree of closures. A check walks the request and

- raises SerializationFailed where JSON has the wrong type (AWS's deserialiser, which comes first);
- collects constraint violations (null, length, value, pattern, enum) and raises them together, ten at most, as
  ``N validation errors detected: ...``.

Most requests are right, and for those a second, faster set of closures (``_Fast``) only says yes. When one says no,
or is in doubt, the walk above finds out what to coerce or what to answer.

What the model cannot say lives here too, as data: the order in which AWS lists members, and the members whose words
changed in 2026 (``Value at 'Limit' ...`` with no value shown and the member's own spelling).

Unknown members are ignored and null members are absent, as on AWS.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import orjson

from stator.errors import SerializationFailed, ValidationFailed
from stator.model.service import service_model
from stator.model.values import (
    check_boolean,
    check_string,
    check_types,
    json_kind,
    levels,
    refuse_collection,
    well_typed,
)

_PACKAGE = "com.amazonaws.dynamodb.v20120810"
_MOST_ERRORS = 10

Errors = list[str]
# (value, path as AWS prints it, path in the member's own spelling, errors) -> the value, coerced
Check = Callable[[Any, str, str, Errors], Any]
Fast = Callable[[Any], bool]

# AWS lists violations in an order of its own; members not named here follow in the model's order.
_ORDER = {
    "CreateTable": (
        "AttributeDefinitions",
        "TableName",
        "BillingMode",
        "ProvisionedThroughput",
        "KeySchema",
        "GlobalSecondaryIndexes",
        "LocalSecondaryIndexes",
    ),
    "PutItem": ("ReturnConsumedCapacity", "TableName", "Item", "ConditionalOperator", "Expected", "ReturnValues"),
    "DeleteItem": ("ReturnConsumedCapacity", "TableName", "Key", "ConditionalOperator", "Expected", "ReturnValues"),
    "UpdateItem": (
        "ReturnValues",
        "ReturnConsumedCapacity",
        "TableName",
        "ReturnItemCollectionMetrics",
        "Key",
        "ConditionalOperator",
        "Expected",
        "AttributeUpdates",
    ),
    "GetItem": ("ReturnConsumedCapacity", "AttributesToGet", "TableName", "Key"),
    "Query": (
        "Limit",
        "ReturnConsumedCapacity",
        "AttributesToGet",
        "QueryFilter",
        "Select",
        "ConditionalOperator",
        "KeyConditions",
        "TableName",
        "IndexName",
    ),
    "Scan": (
        "Limit",
        "ReturnConsumedCapacity",
        "AttributesToGet",
        "Segment",
        "Select",
        "ScanFilter",
        "ConditionalOperator",
        "TotalSegments",
        "TableName",
        "IndexName",
    ),
}

# UpdateItem in its older form (see ``_older_form``) lists them so; captured from AWS by the paritysuite conformance suite.
_OLDER_ORDER = {
    "UpdateItem": (
        "ReturnConsumedCapacity",
        "TableName",
        "ReturnValues",
        "ReturnItemCollectionMetrics",
        "ConditionalOperator",
        "Expected",
        "AttributeUpdates",
        "Key",
    ),
}

# The same inside structures.
_INNER_ORDER = {"ProvisionedThroughput": ("WriteCapacityUnits", "ReadCapacityUnits")}

# Shapes whose constraints AWS checks later, with words of their own: the operations do.
_LATER = frozenset({"AttributeName", "Tag", "TagKeyString", "TagValueString", "TableClass"})

# Operations on tables as a whole answer a missing name before anything else.
_ON_TABLES = frozenset({"CreateTable", "UpdateTable", "DeleteTable", "DescribeTable"})

# Operations whose length and range violations read "Value at 'Limit' failed ..." since 2026.
_REWORDED = frozenset(
    {
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "GetItem",
        "Query",
        "Scan",
        "BatchGetItem",
        "TransactWriteItems",
        "TransactGetItems",
    }
)
# Past so many levels of nesting the services behind these answer in their older form.
_OLDER_FORM_LEVELS = 63
_LEVELLED = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
# Operations that have an enum's new text, too.
_NEW_ENUMS = frozenset({"PutItem", "UpdateItem", "DeleteItem", "Query"})
_ENUM_ORDER = {
    "ReturnConsumedCapacity": "INDEXES, TOTAL, NONE",
    "ReturnItemCollectionMetrics": "SIZE, NONE",
    "ReturnValue": "ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD, NONE",
    "Select": "SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES",
    "ConditionalOperator": "OR, AND",
    "ComparisonOperator": "IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, NOT_NULL, NE, LE, BEGINS_WITH, GE, CONTAINS",
    "KeyType": "HASH, RANGE",
    "ScalarAttributeType": "B, N, S",
    "ProjectionType": "ALL, INCLUDE, KEYS_ONLY",
    "BillingMode": "PROVISIONED, PAY_PER_REQUEST",
    "AttributeAction": "ADD, PUT, DELETE",
}
_NAME_PATTERN = "[a-zA-Z0-9_.-]+"
_TABLE_KEYS = (
    "Map keys must satisfy constraint: [Member must have length less than or equal to 255, "
    "Member must have length greater than or equal to 3, "
    f"Member must satisfy regular expression pattern: {_NAME_PATTERN}]"
)


def check_request(operation: str, request: Any) -> dict[str, Any]:
    """The request, coerced to the model's types; raises what AWS answers for a malformed one."""
    if _fast(operation)(request):
        return request  # type: ignore[no-any-return]
    if type(request) is not dict:
        raise SerializationFailed("" if not isinstance(request, list) else "Unexpected field type")
    errors: Errors = []
    if operation in _ON_TABLES and request.get("TableName") is None:
        raise ValidationFailed("The parameter 'TableName' is required but was not present in the request")
    older = _older_form(operation, request)
    _compiled(operation, older)(request, "", "", errors)
    if errors:
        raise violations(_reported(operation, older, errors))
    return request


def _reported(operation: str, older: bool, errors: Errors) -> Errors:
    """Which of the violations AWS lists, as captured by the paritysuite conformance suite."""
    if operation == "UpdateItem" and not older:
        return errors[:1]
    if operation == "BatchWriteItem":
        # A bad table name gives way to every other violation.
        return [error for error in errors if not error.endswith(_TABLE_KEYS)] or errors
    return errors


def _older_form(operation: str, request: dict[str, Any]) -> bool:
    """Whether AWS answers in the words of before 2026: an update without a key, a value nested 63 levels or more."""
    if operation == "UpdateItem" and request.get("Key") is None:
        return True
    return is_deep(operation, request)


def is_deep(operation: str, request: dict[str, Any]) -> bool:
    return operation in _LEVELLED and levels(request) >= _OLDER_FORM_LEVELS


def violations(errors: Errors) -> ValidationFailed:
    plural = "" if len(errors) == 1 else "s"
    listed = "; ".join(errors[:_MOST_ERRORS])
    return ValidationFailed(f"{len(errors)} validation error{plural} detected: {listed}")


@lru_cache(maxsize=128)
def _fast(operation: str) -> Fast:
    return _FastCompiler(service_model().shapes).structure(service_model().input_shape(operation))


@lru_cache(maxsize=128)
def _compiled(operation: str, older: bool) -> Check:
    return _Compiler(operation, older).structure(service_model().input_shape(operation), top=True)


def failed(value: Any, path: str, constraint: str) -> str:
    return f"Value {_shown(value)} at '{path}' failed to satisfy constraint: {constraint}"


def _shown(value: Any) -> str:
    return "null" if value is None else f"'{value}'"


def _camel(name: str) -> str:
    return name[0].lower() + name[1:]


class _Compiler:
    """Builds the checks of one operation; recursion in the model (AttributeValue) is cut by a hand-written check."""

    def __init__(self, operation: str, older: bool) -> None:
        self.operation = operation
        self.reworded = operation in _REWORDED and not older
        self.new_enums = operation in _NEW_ENUMS and not older
        self.orders = {**_ORDER, **_OLDER_ORDER} if older else _ORDER
        self.shapes = service_model().shapes

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
        order = self.orders.get(self.operation, ()) if top else _INNER_ORDER.get(name, ())
        names = [*order, *(member for member in shape["members"] if member not in order)]
        checks = {
            member: (self._member(member, shape["members"][member]["shape"], top), _camel(member)) for member in names
        }
        required = frozenset(() if name in _LATER else shape.get("required", ()))
        ranks = {member: rank for rank, member in enumerate(names)}

        def check(value: Any, path: str, own: str, errors: Errors) -> Any:
            if type(value) is not dict:
                _refuse_structure(value, name, element)
            dot, dot_own = (f"{path}.", f"{own}.") if path else ("", "")
            found: list[tuple[int, str]] = []
            for member, content in value.items():
                entry = checks.get(member)
                if entry is None or content is None:
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
        """A table's name or ARN; the model only says "1 to 1024 characters", AWS says more."""
        if type(value) is not str:
            check_string(value)
        if not value:
            if self.reworded and path == "tableName":
                # The one violation AWS reports alone.
                raise violations([_reworded(own, "Member must have length greater than or equal to 1")])
            errors.append(failed(value, path, "Member must have length greater than or equal to 1"))
        elif not value.startswith("arn:"):
            if len(value) > 255:
                errors.append(failed(value, path, "Member must have length less than or equal to 255"))
            elif not _NAME.fullmatch(value):
                errors.append(failed(value, path, f"Member must satisfy regular expression pattern: {_NAME_PATTERN}"))
        return value

    def string(self, name: str) -> Check:
        shape = {} if name in _LATER else self.shapes[name]
        low, high = shape.get("min"), shape.get("max")
        pattern = re.compile(shape["pattern"]) if "pattern" in shape else None
        allowed = frozenset(shape["enum"]) if "enum" in shape else None
        listed = _ENUM_ORDER.get(name) or ", ".join(shape.get("enum", ()))
        length = self._length("length")

        def check(value: Any, path: str, own: str, errors: Errors) -> Any:
            if type(value) is not str:
                check_string(value)
            if allowed is not None:
                if value not in allowed:
                    errors.append(failed(value, path, f"Member must satisfy enum value set: [{listed}]"))
                return value
            if pattern is not None and not pattern.fullmatch(value):
                errors.append(failed(value, path, f"Member must satisfy regular expression pattern: {pattern.pattern}"))
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
        # Of BatchWriteItem only this text is new.
        reworded = self.reworded or self.operation == "BatchWriteItem"

        def report(value: Any, size: int, low: Any, high: Any, path: str, own: str, errors: Errors) -> None:
            constraint = (
                f"Member must have {word} greater than or equal to {low}"
                if low is not None and size < low
                else f"Member must have {word} less than or equal to {high}"
            )
            errors.append(_reworded(own, constraint) if reworded else failed(value, path, constraint))

        return report

    def list(self, name: str, *, element: bool) -> Check:
        shape = self.shapes[name]
        member_shape = shape["member"]["shape"]
        member = self.check(member_shape, element=True)
        low, high = shape.get("min"), shape.get("max")
        length = self._length("length")

        def check(value: Any, path: str, own: str, errors: Errors) -> Any:
            if type(value) is not list:
                if isinstance(value, dict):
                    raise SerializationFailed("Start of structure or map found where not expected")
                raise SerializationFailed(_PARAMETERIZED if element else "Unexpected field type")
            for index, content in enumerate(value):
                if content is not None:
                    here = f".{index + 1}.member"
                    coerced = member(content, path + here, own + here, errors)
                    if coerced is not content:
                        value[index] = coerced
            size = len(value)
            if (low is not None and size < low) or (high is not None and size > high):
                length(self.rendered(name, value), size, low, high, path, own, errors)
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
                if content is None:
                    continue
                here = f".{key}.member"
                coerced = inner(content, path + here, own + here, reported)
                if coerced is not content:
                    value[key] = coerced
            if bounded_lists and any(not low_high(len(v)) for v in value.values() if v is not None):
                errors.append(failed(self.rendered(name, value), path, _list_bounds))
            elif bounded_lists:
                errors.extend(reported)
            if table_keys and not all(_is_table_key(key) for key in value):
                shown = orjson.dumps(value).decode() if self.reworded else self.rendered(name, value)
                errors.append(failed(shown, path, _TABLE_KEYS))
            size = len(value)
            if (low is not None and size < low) or (high is not None and size > high):
                length(self.rendered(name, value), size, low, high, path, own, errors)
            return value

        least, most = inner_shape.get("min", 0), inner_shape.get("max", 0)
        _list_bounds = (
            f"Map value must satisfy constraint: [Member must have length less than or equal to {most}, "
            f"Member must have length greater than or equal to {least}]"
        )

        def low_high(size: int) -> bool:
            return bool(least <= size <= most)

        return check

    def rendered(self, name: str, value: Any) -> str:
        """A value as AWS's Java objects print themselves in messages."""
        shape = self.shapes[name]
        if value is None:
            return "null"
        if name == "AttributeValue":
            return _rendered_attribute_value(value)
        match shape["type"]:
            case "list":
                return "[" + ", ".join(self.rendered(shape["member"]["shape"], inner) for inner in value) + "]"
            case "map":
                inner_name = shape["value"]["shape"]
                return "{" + ", ".join(f"{k}={self.rendered(inner_name, v)}" for k, v in value.items()) + "}"
            case "structure":
                members = [
                    f"{_camel(member)}={self.rendered(target['shape'], value.get(member))}"
                    for member, target in shape["members"].items()
                ]
                if name == "PutRequest":
                    members.append("workloadProfileName=null")
                return f"{name}({', '.join(members)})"
        return str(value)


class _FastCompiler:
    """Builds closures that say whether a request needs no coercion and violates nothing."""

    def __init__(self, shapes: dict[str, Any]) -> None:
        self.shapes = shapes

    def check(self, name: str) -> Fast:
        shape = self.shapes[name]
        low, high = shape.get("min"), shape.get("max")
        match shape["type"]:
            case "structure":
                return (lambda value: well_typed({"": value})) if name == "AttributeValue" else self.structure(name)
            case "list":
                return self.list(shape["member"]["shape"], low or 0, high)
            case "map":
                return self.map(name)
            case "string":
                return self.string(name)
            case "integer" | "long":
                return lambda value: (
                    type(value) is int and (low is None or value >= low) and (high is None or value <= high)
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
        required = frozenset(shape.get("required", ()))
        get = checks.get

        def valid(value: Any) -> bool:
            if type(value) is not dict:
                return False
            for member, content in value.items():
                check = get(member)
                if check is not None and not check(content):
                    return False
            return required <= value.keys()

        return valid

    def list(self, member: str, low: int, high: int | None) -> Fast:
        if self.shapes[member].get("value", {}).get("shape") == "AttributeValue":
            check: Fast = well_typed
        else:
            check = self.check(member)
        most = high if high is not None else 1 << 62
        return lambda value: type(value) is list and low <= len(value) <= most and all(map(check, value))

    def map(self, name: str) -> Fast:
        shape = self.shapes[name]
        if shape["value"]["shape"] == "AttributeValue":
            return well_typed
        check = self.check(shape["value"]["shape"])
        low, high = shape.get("min", 0), shape.get("max", 1 << 62)
        check_key: Fast = _is_table_key if shape["key"]["shape"] == "TableArn" else bool
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
                type(value) is str and low <= len(value) <= high and pattern.fullmatch(value) is not None
            )
        return lambda value: type(value) is str and low <= len(value) <= high


def _fast_table_name(value: Any) -> bool:
    return type(value) is str and len(value) <= 255 and _NAME.fullmatch(value) is not None


_NAME = re.compile(_NAME_PATTERN)
_PARAMETERIZED = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class "
    "(sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base "
    "of loader 'bootstrap')"
)


def _is_table_key(key: str) -> bool:
    return key.startswith("arn:") or (3 <= len(key) <= 255 and _NAME.fullmatch(key) is not None)


def _reworded(own: str, constraint: str) -> str:
    return f"Value at '{own}' failed to satisfy constraint: {constraint}"


def _refuse_structure(value: Any, name: str, element: bool) -> None:
    if isinstance(value, list):
        raise SerializationFailed(f"Unrecognized collection type class {_PACKAGE}.{name}")
    raise SerializationFailed("Unexpected value type in payload" if element else "Unexpected field type")


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
                f"Unrecognized collection type java.util.Map<java.lang.String, {_PACKAGE}.AttributeValue>"
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
    """Since 2026 AWS names neither member nor value of these, and its lists hold words it does not accept.

    A ``bare`` one is reported without the count of errors and without the others.
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
    """A check whose violations AWS reports without those of other members."""

    def check(value: Any, path: str, own: str, errors: Errors) -> Any:
        found: Errors = []
        coerced = inner(value, path, own, found)
        if found:
            raise violations(found)
        return coerced

    return check


_AV_MEMBERS = "s n b iNT dECIMAL dOUBLE sS nS bS iNTSET dECIMALSET dOUBLESET m l nULL bOOL".split()
_AV_KINDS = {
    "S": "s",
    "N": "n",
    "B": "b",
    "SS": "sS",
    "NS": "nS",
    "BS": "bS",
    "M": "m",
    "L": "l",
    "NULL": "nULL",
    "BOOL": "bOOL",
}


def _rendered_attribute_value(value: dict[str, Any]) -> str:
    shown: dict[str, str] = dict.fromkeys(_AV_MEMBERS, "null")
    for kind, content in value.items():
        shown[_AV_KINDS[kind]] = _rendered_content(kind, content)
    return "AttributeValue(" + ", ".join(f"{name}={text}" for name, text in shown.items()) + ")"


def _rendered_content(kind: str, content: Any) -> str:
    if kind == "M":
        return "{" + ", ".join(f"{name}={_rendered_attribute_value(inner)}" for name, inner in content.items()) + "}"
    if kind == "L":
        return "[" + ", ".join(map(_rendered_attribute_value, content)) + "]"
    if isinstance(content, list):
        return "[" + ", ".join(content) + "]"
    return str(content).lower() if isinstance(content, bool) else str(content)
