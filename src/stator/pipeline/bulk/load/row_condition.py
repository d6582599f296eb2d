"""A condition for every row: an expression in DynamoDB's language in which ``:name`` stands for the row's own attribute of that name.

    attribute_not_exists(pk)                                     only what is not there yet
    attribute_not_exists(pk) OR updated_at < :updated_at         only what is newer than what is there

``#name`` stands for the attribute's name itself, for names that are reserved words.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from stator.errors import ConfigurationError, RowRefused, ServiceError
from stator.expr.parser import parse_condition

_PLACEHOLDER = re.compile(r"[:#][A-Za-z0-9_]+")


class Condition:
    def __init__(self, text: str) -> None:
        self.text = text
        try:
            parse_condition(text)
        except ServiceError as error:
            raise ConfigurationError(
                f"the condition {text!r} cannot be read: {error.message}",
                hint="as in attribute_not_exists(pk), or updated_at < :updated_at for the row's own updated_at",
            ) from None
        found = sorted(set(_PLACEHOLDER.findall(text)))
        self._names = {each: each[1:] for each in found if each[0] == "#"}
        self._values = [each for each in found if each[0] == ":"]

    def parameters(self, item: bytes) -> dict[str, Any]:
        """What a request takes for this row."""
        made: dict[str, Any] = {"ConditionExpression": self.text}
        if self._names:
            made["ExpressionAttributeNames"] = self._names
        if self._values:
            made["ExpressionAttributeValues"] = _values(self._values, orjson.loads(item))
        return made


def _values(placeholders: list[str], item: dict[str, Any]) -> dict[str, Any]:
    missing = [each for each in placeholders if each[1:] not in item]
    if missing:
        raise RowRefused(
            f"the condition asks for {missing[0]}, and the row has no attribute {missing[0][1:]}"
        )
    return {each: item[each[1:]] for each in placeholders}
