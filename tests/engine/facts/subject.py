"""A table to try expressions on, with Python values for DynamoDB's."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

from stator.engine import Engine
from stator.errors import ServiceError, ValidationFailed

ENVELOPE = "1 validation error detected: "


def value(given: Any) -> dict[str, Any]:
    """A Python value as an attribute value; a set takes its type from a member."""
    match given:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": given}
        case str():
            return {"S": given}
        case int() | float():
            return {"N": str(given)}
        case bytes():
            return {"B": b64encode(given).decode()}
        case list():
            return {"L": [value(element) for element in given]}
        case dict():
            return {"M": attributes(**given)}
    members = [value(member) for member in sorted(given)]
    [kind] = {kind for member in members for kind in member}
    return {f"{kind}S": [member[kind] for member in members]}


def attributes(**given: Any) -> dict[str, Any]:
    return {name: value(content) for name, content in given.items()}


def operator(name: str, *operands: Any) -> dict[str, Any]:
    """A condition in the style from before expressions."""
    return {
        "ComparisonOperator": name,
        "AttributeValueList": [value(operand) for operand in operands],
    }


def refusal(
    engine: Engine,
    operation: str,
    request: dict[str, Any],
    error: type[ServiceError] = ValidationFailed,
) -> str:
    """The message the request is refused with; a subclass of the error is the error, too."""
    try:
        engine.call(operation, request)
    except error as refused:
        return refused.message
    raise AssertionError(f"{operation} was accepted")


@dataclass(slots=True)
class Subject:
    """One table with the partition key ``p``, a string."""

    engine: Engine
    table: str = "facts"

    def put(self, p: str = "p", **given: Any) -> None:
        self.engine.call("PutItem", {"TableName": self.table, "Item": attributes(p=p, **given)})

    def get(self, p: str = "p", **options: Any) -> dict[str, Any] | None:
        request = {"TableName": self.table, "Key": attributes(p=p), **options}
        item: dict[str, Any] | None = self.engine.call("GetItem", request).get("Item")
        return item

    def request(
        self, p: str = "p", values: dict[str, Any] | None = None, **options: Any
    ) -> dict[str, Any]:
        request = {"TableName": self.table, "Key": attributes(p=p), **options}
        if values:
            request["ExpressionAttributeValues"] = attributes(**values)
        return request

    def update(self, expression: str, values: dict[str, Any] | None = None, **options: Any) -> Any:
        """The attributes that an update returns."""
        request = self.request(values=values, UpdateExpression=expression, **options)
        return self.engine.call("UpdateItem", request).get("Attributes")

    def refused_update(
        self, expression: str, values: dict[str, Any] | None = None, **options: Any
    ) -> str:
        message = refusal(
            self.engine,
            "UpdateItem",
            self.request(values=values, UpdateExpression=expression, **options),
        )
        return message.removeprefix(ENVELOPE).removeprefix("Invalid UpdateExpression: ")

    def holds(self, condition: str, values: dict[str, Any] | None = None) -> bool:
        """Whether a filter lets the one item of the table through."""
        request: dict[str, Any] = {"TableName": self.table, "FilterExpression": condition}
        if values:
            request["ExpressionAttributeValues"] = attributes(**values)
        return bool(self.engine.call("Scan", request)["Count"])

    def refused_condition(self, condition: str, values: dict[str, Any] | None = None) -> str:
        message = refusal(
            self.engine, "DeleteItem", self.request(values=values, ConditionExpression=condition)
        )
        return message.removeprefix(ENVELOPE).removeprefix("Invalid ConditionExpression: ")
