"""A scan of one entity's table, for callers who confirm it with ``allow=True``."""

from __future__ import annotations

from typing import Any

from stator.design.entities.shapes import CLASS_TAG
from stator.errors import DesignError, RequestRefused
from stator.model.values import Item
from stator.tables.context import Context
from stator.tables.reads.items import decoded
from stator.tables.reads.pattern_read import ReadOptions
from stator.tables.schema.entity_map import EntityMap
from stator.tables.work import Call, Gather, Work, gathered


class EntityScan:
    """The pages of a scan. Segments are read in parallel."""

    def __init__(
        self, context: Context, of: EntityMap, *, allow: bool, segments: int, options: ReadOptions
    ) -> None:
        if not allow:
            raise RequestRefused(
                f"db.scan({of.name}) reads, and pays for, every item of table {of.table.name}",
                hint="declare a pattern for what you look for; pass allow=True to read everything",
            )
        given: Any = segments
        if type(given) is not int or not 1 <= given <= 1_000_000:
            shown = given if type(given) is int else f"a {type(given).__name__}"
            raise DesignError(
                f"a scan has 1 to 1,000,000 segments, not {shown}",
                hint="use a few segments per core",
            )
        self.context = context
        self.of = of
        self.options = options
        self._starts: list[Item | None] = [None] * segments
        self._open = list(range(segments))
        self._segments = segments

    @property
    def is_done(self) -> bool:
        return not self._open

    def page(self) -> Work[list[Any]]:
        """Read the next page of every segment that has not ended."""
        replies = gathered((yield Gather([self._call(segment) for segment in self._open])))
        found: list[Any] = []
        for segment, reply in zip(list(self._open), replies):
            self._starts[segment] = reply.get("LastEvaluatedKey")
            if self._starts[segment] is None:
                self._open.remove(segment)
            found += yield from self._entities(reply["Items"])
        return found

    def _call(self, segment: int) -> Call:
        of = self.of
        request: dict[str, Any] = {"TableName": of.table.name}
        if self._segments > 1:
            request |= {"Segment": segment, "TotalSegments": self._segments}
        if self.options.consistent:
            request["ConsistentRead"] = True
        if of.plan.discriminator is not None:
            request["FilterExpression"] = "#t = :t"
            request["ExpressionAttributeNames"] = {"#t": of.plan.discriminator}
            request["ExpressionAttributeValues"] = {":t": {"S": of.name}}
        start = self._starts[segment]
        if start is not None:
            request["ExclusiveStartKey"] = start
        return Call("Scan", request, f"scan {of.name}")

    def _entities(self, items: list[Item]) -> Work[list[Any]]:
        now = self.context.now()
        live = [
            item
            for item in items
            if not self.of.is_hidden(
                item,
                now,
                include_expired=self.options.include_expired,
                include_deleted=self.options.include_deleted,
            )
        ]
        if self.of.told_by_key is not None:
            live = [item for item in live if self.of.told_by_key(item)]
        tag = self.of.tag.get(CLASS_TAG)
        if tag is not None:
            live = [item for item in live if item.get(CLASS_TAG) == {"S": tag}]
        return (yield from decoded(self.context, self.of, live))
