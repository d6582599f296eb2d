"""``app.refresh(links)``: keeps links up to date when the entities that they connect change.

A link stores copies of some fields of both entities. If such a field changes, its copies are
refreshed. If an entity is deleted, its links are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stator.design.table_settings import StreamView
from stator.errors import LeaseLost, StatorError
from stator.patterns.links import Links
from stator.pipeline.maintenance.pattern_factory import PatternFactory
from stator.pipeline.workers.handlers.change import Change, Record, entity_of
from stator.pipeline.workers.handlers.subscribers import (
    HandlerFailure,
    HandlerScope,
    lanes,
    typed_all,
)
from stator.tables.context import Context
from stator.tables.work import Work

AnyLinks = Links[Any, Any, Any]


class LinkRefresher:
    """The subscriber that refreshes the links of changed entities.

    It copies the fields that are stored now, not those in the change. A change that arrives again
    or late therefore does no harm.
    """

    def __init__(self, links: AnyLinks | Callable[[Any], AnyLinks], name: str | None) -> None:
        self._links: PatternFactory[AnyLinks] = PatternFactory(links, Links, "links")
        self.name = self._links.name(name)

    def needs(self, table: str, context: Context) -> StreamView | None:
        links = self._links.of(context)
        has_ends = any(
            links.is_end(of.cls) and of.table.name == table for of in context.schema.maps.values()
        )
        return "NEW_AND_OLD_IMAGES" if has_ends else "KEYS_ONLY"

    def wants(self, record: Record, context: Context) -> bool:
        if record.kind == "INSERT":
            return False
        of = entity_of(record, context)
        return of is not None and self._links.of(context).is_end(of.cls)

    def handle(self, records: Sequence[Record], scope: HandlerScope) -> Work[list[HandlerFailure]]:
        links = self._links.of(scope.context)
        changes = yield from typed_all(records, scope.context)
        failures: list[HandlerFailure] = []
        for lane in lanes(records):
            scope.check()
            for record in lane:
                try:
                    entity = _changed(links, changes[id(record)])
                    if entity is None:
                        continue
                    yield from links.settle.work(entity)
                except LeaseLost:
                    raise
                except StatorError as error:
                    failures.append(HandlerFailure(record, error))
                break  # later changes to the item are already in what is stored
        return failures


def _changed(links: AnyLinks, change: Change[Any]) -> Any:
    """Return the entity whose links a change affects, or None if it affects none."""
    if change.kind == "REMOVE":
        return change.old
    return change.new if links.copies_changed(change.old, change.new) else None
