"""FilterSpecification: which items an export contains, and which of their attributes.

A key condition limits the export to a range of one partition, a filter tests each item, and a
projection selects attributes. An incremental export contains a change if the item matched before it
or matches after it; AWS does not document this case.
"""

from __future__ import annotations

from typing import Any

from stator.engine.items.key_ranges import Range, query_range
from stator.engine.requests.expression_parameters import Placeholders, check_placeholder_use
from stator.engine.tables.key_schema import KeySchema
from stator.errors import ValidationFailed
from stator.expr import key_condition
from stator.expr.condition import evaluate
from stator.expr.key_condition import KeyTest
from stator.expr.paths import project
from stator.expr.tree import Condition, ProjectionExpression, attribute_names
from stator.model.values import Item
from stator.storage.protocol import after_prefix

_EXPRESSIONS = ("ProjectionExpression", "FilterExpression", "KeyConditionExpression")


class ExportFilter:
    def __init__(self, specification: dict[str, Any] | None) -> None:
        given = specification or {}
        check_placeholder_use(given, _EXPRESSIONS, ("FilterExpression", "KeyConditionExpression"))
        placeholders = Placeholders(given)
        keys = placeholders.condition(given.get("KeyConditionExpression"), "KeyConditionExpression")
        self._filter: Condition | None = placeholders.condition(
            given.get("FilterExpression"), "FilterExpression"
        )
        self._projection: ProjectionExpression | None = placeholders.projection(
            given.get("ProjectionExpression")
        )
        placeholders.check_all_used()
        self._tests: dict[str, KeyTest] | None = (
            None if keys is None else key_condition.key_tests(keys)
        )

    @property
    def keeps_all(self) -> bool:
        return self._filter is None and self._projection is None

    def check(self, schema: KeySchema) -> None:
        """Make the checks that depend on the table's keys."""
        if self._tests is None:
            return
        query_range(schema, b"", self._tests)
        for name in schema.names:
            if self._filter is not None and name in attribute_names(self._filter):
                raise ValidationFailed(
                    "Filter Expression can only contain non-primary key attributes: "
                    f"Primary key attribute: {name}"
                )

    def span(self, schema: KeySchema, area: bytes) -> Range:
        """Return the range of an area that can contain matching items."""
        if self._tests is None:
            return Range(area, after_prefix(area))
        return query_range(schema, area, self._tests)

    def matches(self, item: Item) -> bool:
        return self._filter is None or evaluate(self._filter, item)

    def projected(self, item: Item) -> Item:
        return item if self._projection is None else project(item, self._projection.paths)
