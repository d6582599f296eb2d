"""A condition for every row, in DynamoDB's expression language.

``:name`` stands for the row's value of ``name``:

    attribute_not_exists(pk)                                 only new items
    attribute_not_exists(pk) OR updated_at < :updated_at     also rows newer than the stored item

``#name`` stands for the attribute's name itself, for names that are reserved words.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from stator.errors import ConfigurationError, RowRefused, ServiceError
from stator.expr.parser import parse_condition

_PLACEHOLDER = re.compile(r"[:#][A-Za-z0-9_]+")


class RowCondition:
    """A condition, parsed once for the job; ``parameters`` fills in the values of one row."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            parse_condition(text)
        except ServiceError as error:
            raise ConfigurationError(
                f"the condition {text!r} cannot be parsed: {error.message}",
                hint="write it as attribute_not_exists(pk), or as updated_at < :updated_at, where"
                " :updated_at stands for the row's value of updated_at",
            ) from None
        found = sorted(set(_PLACEHOLDER.findall(text)))
        self._names = {each: each[1:] for each in found if each[0] == "#"}
        self._values = [each for each in found if each[0] == ":"]

    def parameters(self, item: bytes) -> dict[str, Any]:
        """Return the condition of one row: ConditionExpression with its names and values."""
        parameters: dict[str, Any] = {"ConditionExpression": self.text}
        if self._names:
            parameters["ExpressionAttributeNames"] = self._names
        if self._values:
            parameters["ExpressionAttributeValues"] = _values(self._values, orjson.loads(item))
        return parameters


def _values(placeholders: list[str], item: dict[str, Any]) -> dict[str, Any]:
    missing = [each for each in placeholders if each[1:] not in item]
    if missing:
        raise RowRefused(
            f"the condition uses {missing[0]}, but the row has no attribute {missing[0][1:]}"
        )
    return {each: item[each[1:]] for each in placeholders}
