"""A condition for every row, in DynamoDB's expression language.

``:name`` stands for the row's value of ``name``:

    attribute_not_exists(pk)                                 only new items
    attribute_not_exists(pk) OR updated_at < :updated_at     also rows newer than the stored item

``#name`` stands for the attribute's name itself, for names that are reserved words.
"""

from __future__ import annotations

import re

import orjson

from stator.errors import ConfigurationError, RowRefused, ServiceError
from stator.expr.parser import parse_condition
from stator.model.values import Item, Value
from stator.tables.writes.guarded.guard_condition import GuardCondition
from stator.tables.writes.guarded.guarded_write import GuardedPut

_PLACEHOLDER = re.compile(r"[:#][A-Za-z0-9_]+")


class RowCondition:
    """A condition on every put of a job, parsed once. ``write`` inserts the values of a row."""

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
        self._names = tuple((each, each[1:]) for each in found if each[0] == "#")
        self._values = [each for each in found if each[0] == ":"]
        self._unbound = GuardCondition(text, self._names)

    def write(
        self, table: str, key_names: tuple[str, ...], shape: frozenset[str] | None, item: bytes
    ) -> GuardedPut:
        """Return a put of one row, under the condition with the row's values in it.

        ``item`` is the row as DynamoDB JSON. ``shape`` names every attribute that the stored item
        may have, or is None if they are unknown. Raises RowRefused if the row lacks a value that
        the condition uses.
        """
        content: Item = orjson.loads(item)
        guard = self._unbound
        if self._values:
            guard = GuardCondition(self.text, self._names, _values(self._values, content))
        return GuardedPut(table, key_names, content, guard, shape=shape, size_bytes=len(item))


def _values(placeholders: list[str], item: Item) -> dict[str, Value]:
    missing = [each for each in placeholders if each[1:] not in item]
    if missing:
        raise RowRefused(
            f"the condition uses {missing[0]}, but the row has no attribute {missing[0][1:]}"
        )
    return {each: item[each[1:]] for each in placeholders}
