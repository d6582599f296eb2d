"""Builds the expressions of a request, with placeholders for names and values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stator.design.entities.conditions import Condition, as_condition
from stator.design.patterns.condition_contents import references
from stator.design.patterns.filter_writer import FilterWriter
from stator.errors import DesignError
from stator.model.values import Value
from stator.tables.schema.entity_map import EntityMap


class Expressions:
    """The names and values of one request, under placeholders."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Value] = {}
        # Its placeholders (#f, :f) differ from ours (#n, :v) by their letter.
        self._conditions = FilterWriter()

    def name(self, attribute: str) -> str:
        return self._names.setdefault(attribute, f"#n{len(self._names)}")

    def value(self, value: Value) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = value
        return placeholder

    def path(self, steps: Iterable[str | int]) -> str:
        written = ""
        for step in steps:
            written += (
                f"[{step}]" if isinstance(step, int) else ("." if written else "") + self.name(step)
            )
        return written

    def condition(self, given: Any, of: EntityMap, *, creates: bool = False) -> str:
        """Return the text of a user's condition, so that AND can join it to other conditions.

        A condition that AND would split, such as ``a OR b``, is put in parentheses. It treats an
        attribute that a stored item lacks as the field's default, as reads do. With ``creates``, a
        missing item counts as one with all defaults.
        """
        condition: Condition = as_condition(given)
        for reference in references(condition):
            if reference.name not in of.fields:
                raise DesignError(
                    f"{reference!r} is not a field of {of.name}",
                    hint=f"compare fields of {of.name}",
                )
            if reference.name in of.large:
                raise DesignError(
                    f"{reference!r} is large(), compressed or outside the table: "
                    f"DynamoDB cannot compare it",
                    hint="store the value to compare in a field of its own",
                )
        return self._conditions.term(condition, of.info, of.table.partition, creates=creates)

    def into(self, request: dict[str, Any]) -> dict[str, Any]:
        names = {
            placeholder: name for name, placeholder in self._names.items()
        } | self._conditions.names
        values = self._values | self._conditions.values
        if names:
            request["ExpressionAttributeNames"] = names
        if values:
            request["ExpressionAttributeValues"] = values
        return request


def joined(terms: Iterable[str]) -> str:
    return " AND ".join(term for term in terms if term)
