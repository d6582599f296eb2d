"""What metrics count of a call: its labels, capped, and its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from stator.design.plan.own_table import own_table
from stator.design.plan.plan import Plan
from stator.errors import ServiceError
from stator.metrics.busy_keys import hashed_key
from stator.metrics.label_cap import MAX_LABELS, LabelCap
from stator.model.values import item_size
from stator.tables.observers import WRITES, CallRecord, UsedUnits

_VERBS: Final = frozenset({"create", "put", "get", "update", "delete", "upgrade", "upsert"})
"""First words of labels that name a kind of write or read, before the entity's name."""
UNPROCESSED: Final = "Unprocessed"
UNNAMED_REASON: Final = "Unnamed"


@dataclass(frozen=True, slots=True)
class CallFacts:
    """The labels and numbers of one call.

    ``pattern`` is the name of a pattern or the kind of a write (``put Order``). ``entity`` is empty
    if the call names none. ``result`` is "ok", or the error's code. ``throttles`` are pairs of an
    index, empty for the table, and a reason. ``keys`` are pairs of a partition key and its units.
    """

    operation: str
    table: str
    pattern: str
    entity: str
    result: str
    seconds: float
    is_write: bool
    used: tuple[UsedUnits, ...]
    throttles: tuple[tuple[str, str], ...]
    retries: int
    is_page: bool
    item_count: int
    scanned_count: int
    item_bytes: int | None
    keys: tuple[tuple[str, float], ...]

    @property
    def units(self) -> float:
        return sum(each.units for each in self.used)


class FactReader:
    """Reads the facts of calls.

    ``plan`` tells the entity of a pattern, and which attribute of an item is its partition key.
    Without it, calls have no keys. ``prefix`` is the text before the plan's table names. Keys are
    hashed unless ``show_keys``: they often identify people.
    """

    def __init__(
        self,
        plan: Plan | None = None,
        *,
        prefix: str = "",
        max_labels: int = MAX_LABELS,
        show_keys: bool = False,
    ) -> None:
        self._tables = LabelCap(max_labels)
        self._patterns = LabelCap(max_labels)
        self._entities = LabelCap(max_labels)
        self._indexes = LabelCap(max_labels)
        self._show_keys = show_keys
        self._entity_of: dict[str, str] = {}
        self._partition_of: dict[str, str] = {}
        if plan is not None:
            for pattern in plan.patterns:
                entities = [name for step in pattern.steps for name in step.entities]
                self._entity_of[pattern.name] = "+".join(dict.fromkeys(entities))
            tables = (*plan.tables, own_table(plan.name))
            self._partition_of = {prefix + each.name: each.partition for each in tables}

    def of(self, record: CallRecord) -> CallFacts:
        error = record.error
        return CallFacts(
            operation=record.operation,
            table=self._tables.capped(record.table),
            pattern=self._patterns.capped(record.label),
            entity=self._entities.capped(self._entity(record.label)),
            result="ok" if error is None else result_of(error),
            seconds=record.seconds,
            is_write=record.operation in WRITES,
            used=tuple(
                UsedUnits(
                    self._tables.capped(each.table),
                    None if each.index is None else self._indexes.capped(each.index),
                    each.units,
                )
                for each in record.used
            ),
            throttles=tuple(self._throttles(record)),
            retries=record.attempts - 1,
            is_page=record.is_page,
            item_count=record.item_count,
            scanned_count=record.scanned_count,
            item_bytes=_sampled_bytes(record),
            keys=tuple(self._keys(record)),
        )

    def _entity(self, label: str) -> str:
        known = self._entity_of.get(label)
        if known is not None:
            return known
        verb, _, rest = label.partition(" ")
        return rest if verb in _VERBS else ""

    def _throttles(self, record: CallRecord) -> Iterator[tuple[str, str]]:
        for each in record.throttles:
            # The reason is a word such as TableReadKeyRangeThroughputExceeded; without one, the
            # text is a sentence, which would be a bad label.
            reason = each.text if each.text.isalnum() else UNNAMED_REASON
            yield self._indexes.capped(each.index or ""), reason
        if record.reply.get("UnprocessedItems"):
            yield "", UNPROCESSED

    def _keys(self, record: CallRecord) -> Iterator[tuple[str, float]]:
        partition = self._partition_of.get(record.table)
        if partition is None:
            return
        found = list(_partition_values(record, partition))
        units = record.read_units + record.write_units
        for value in found:
            yield self._shown(value), units / len(found)

    def _shown(self, value: Mapping[str, Any]) -> str:
        text = str(next(iter(value.values())))
        return text if self._show_keys else hashed_key(text)


def result_of(error: BaseException) -> str:
    """Return DynamoDB's code of an error, or the name of its class."""
    return error.code if isinstance(error, ServiceError) else type(error).__name__


def _partition_values(record: CallRecord, partition: str) -> Iterator[Mapping[str, Any]]:
    request = record.request
    if "Key" in request or "Item" in request:
        value = (request.get("Key") or request["Item"]).get(partition)
        if value:
            yield value
    elif record.operation == "Query" and "IndexName" not in request:
        # The first comparison of a key condition that the data layer writes is the partition key's.
        first = str(request.get("KeyConditionExpression", "")).partition(" AND ")[0]
        name, _, value_name = first.partition(" = ")
        value = request.get("ExpressionAttributeValues", {}).get(value_name)
        if value and request.get("ExpressionAttributeNames", {}).get(name, name) == partition:
            yield value
    elif record.operation == "BatchWriteItem":
        for written in request["RequestItems"].get(record.table, ()):
            change = _decoded(written)
            item = change["PutRequest"]["Item"] if "PutRequest" in change else None
            value = (item or change["DeleteRequest"]["Key"]).get(partition)
            if value:
                yield value


def _decoded(change: Any) -> Mapping[str, Any]:
    """Return one change of a batch as a mapping, decoded if the data layer has encoded it."""
    if not isinstance(change, orjson.Fragment):
        found: Mapping[str, Any] = change
        return found
    decoded: Mapping[str, Any] = orjson.loads(orjson.dumps(change))
    return decoded


def _sampled_bytes(record: CallRecord) -> int | None:
    """Return the size of one whole item that the call wrote or read, or None if it has none.

    Indexes and projections return parts of items.
    """
    request, reply = record.request, record.reply
    if record.error is not None:
        return None
    if "Item" in request:
        return item_size(request["Item"])
    if "ProjectionExpression" in request or "IndexName" in request:
        return None
    items: Any = ()
    if record.operation == "BatchWriteItem":
        changes: list[Any] = next(iter(request["RequestItems"].values()))
        put = _decoded(changes[0]).get("PutRequest")
        items = [] if put is None else [put["Item"]]
    elif "Item" in reply:
        items = [reply["Item"]]
    elif "Items" in reply:
        items = reply["Items"]
    return item_size(items[0]) if items else None
