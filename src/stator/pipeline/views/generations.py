"""The generations of a view: the one that is read, and the one that is being built, if any.

Workers read the head when they start with a shard and then every few seconds (``attend``). When a
worker first sees that a new generation is being built, it stores its position in the shard. It does
so in one transaction with a check of its lease. From then on it writes to both generations. So the
new generation includes every change after that position once, and no change up to that position.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from stator.coordination.stored_format import StoredFormat
from stator.errors import ConditionFailed, ConfigurationError, LeaseLost, TransactionCanceled
from stator.model.values import Item
from stator.patterns.item_pages import prefix_query, query_all
from stator.pipeline.views.layout import LABEL, ViewLayout
from stator.pipeline.workers.handlers.subscribers import HandlerScope
from stator.pipeline.workers.shards.leases import OLDEST
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions

_FORMAT = StoredFormat("view")

log = logging.getLogger("stator.views")


@dataclass(frozen=True, slots=True)
class GenerationHead:
    """The content of a view's head item.

    ``process`` is the process that builds a generation, if it is known. ``numbered`` is the highest
    number that any generation has had, failed ones included.
    """

    app: str
    generation: int
    building: int | None = None
    numbered: int = 1
    process: str = ""

    @property
    def written(self) -> tuple[int, ...]:
        """The generations to which workers write changes.

        This is the generation in use and, during a rebuild, also the generation being built.
        """
        return (self.generation,) if self.building is None else (self.generation, self.building)


class GenerationHeads:
    def __init__(self, layout: ViewLayout) -> None:
        self._layout = layout

    def load(self) -> Work[GenerationHead | None]:
        request = {
            "TableName": self._layout.place.table,
            "Key": self._layout.head(),
            "ConsistentRead": True,
        }
        reply = yield Call("GetItem", request, LABEL)
        return _read_head(reply["Item"], self._layout.name) if "Item" in reply else None

    def attend(self, scope: HandlerScope, position: str) -> Work[GenerationHead]:
        """Return the view's head item. Create it if it is missing.

        If a generation is being built, also store ``position`` as its start in this shard: the
        generation counts the changes after it. A start that is already stored stays.
        """
        head = yield from self.begun(scope.group, position)
        if head.building is not None:
            yield from self._start(scope, head.building, position)
        return head

    def begun(self, app: str, position: str = OLDEST) -> Work[GenerationHead]:
        """Return the view's head item. Create it if it is missing.

        Raises ConfigurationError if the view belongs to another app than ``app``. If this creates
        the head, and ``position`` is not the oldest, the view lacks the items that were written
        earlier. A warning in the log says so.
        """
        head = yield from self.load()
        if head is None:
            head = yield from self._create(app)
            if position != OLDEST:
                log.warning(
                    "%s is new and counts from now on; `stator views rebuild` adds earlier items",
                    self._layout.name,
                )
        if head.app != app:
            raise ConfigurationError(
                f"the view {self._layout.name} belongs to the app {head.app}, not {app}",
                hint="a view belongs to one app: use another name here",
            )
        return head

    def _create(self, app: str) -> Work[GenerationHead]:
        written = Expressions()
        item: Item = {
            **self._layout.head(),
            "app": {"S": app},
            "generation": {"N": "1"},
            **_FORMAT.attributes(),
        }
        request = {
            "TableName": self._layout.place.table,
            "Item": item,
            "ConditionExpression": f"attribute_not_exists({written.name('app')})",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            yield Call("PutItem", written.into(request), LABEL)
        except ConditionFailed as refused:
            if refused.item:
                return _read_head(refused.item, self._layout.name)
            return (yield from self.load()) or GenerationHead(app, 1)
        return _read_head(item, self._layout.name)

    def _start(self, scope: HandlerScope, generation: int, position: str) -> Work[None]:
        assert scope.guard is not None
        written = Expressions()
        put: dict[str, Any] = {
            "TableName": self._layout.place.table,
            "Item": {**self._layout.start(generation, scope.shard), "position": {"S": position}},
            "ConditionExpression": f"attribute_not_exists({written.name('position')})",
        }
        try:
            yield Call(
                "TransactWriteItems",
                {"TransactItems": [scope.guard(), {"Put": written.into(put)}]},
                LABEL,
            )
        except TransactionCanceled as cancelled:
            codes = [reason.get("Code") for reason in cancelled.reasons]
            if codes[0] == "ConditionalCheckFailed":
                raise LeaseLost(
                    f"the lease on shard {scope.shard} was lost",
                    hint="nothing to do: another worker continues from its checkpoint",
                ) from None
            if codes[1] != "ConditionalCheckFailed":
                raise

    def starts(self, generation: int) -> Work[dict[str, str]]:
        """Return, for each shard, the position after which the generation counts changes."""
        prefix = self._layout.start_prefix(generation)
        items = yield from query_all(
            prefix_query(self._layout.place, self._layout.directory, prefix), LABEL
        )
        sort = self._layout.place.sort
        return {item[sort]["S"].removeprefix(prefix): item["position"]["S"] for item in items}


def _read_head(item: Item, view: str) -> GenerationHead:
    _FORMAT.check(item, view)
    building = int(item["building"]["N"]) if "building" in item else None
    generation = int(item["generation"]["N"])
    return GenerationHead(
        app=item["app"]["S"],
        generation=generation,
        building=building,
        numbered=max(generation, int(item["numbered"]["N"]) if "numbered" in item else 0),
        process=item["process"]["S"] if "process" in item else "",
    )
