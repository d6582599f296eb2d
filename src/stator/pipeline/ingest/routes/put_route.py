"""Puts: each record is an entity that replaces the one with its key.

Of several records of a key that wait, only the one that counts is written: the last, the newest
version, or the first id. A record without a value deletes. It leaves a *tombstone*: key, guard and
an end of life, without the fields, so it is in no index, and typed reads leave it out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from stator.design.entities.conditions import FieldRef
from stator.design.entities.entity_versions import VERSION_ATTRIBUTE
from stator.errors import DesignError, OutcomeUnknown, RowRefused, StatorError
from stator.model.values import Item, Value, item_size
from stator.pipeline.bulk.load.entity_rows import coercion
from stator.pipeline.ingest.routes.guards import (
    CHECKSUM,
    PutGuard,
    checksum_guard,
    checksum_of,
    mark_attribute,
    offset_value,
    position_guard,
    version_guard,
)
from stator.pipeline.ingest.routes.route import (
    RouteOptions,
    RunOutcome,
    reason_of,
    refuse_unsupported,
)
from stator.pipeline.ingest.source_record import PendingEvent, SourceRecord
from stator.pipeline.ingest.values.decoders import class_reader, entity_reader
from stator.tables.context import Context
from stator.tables.schema.entity_map import INGESTED, TOMBSTONE, EntityMap
from stator.tables.writes.guarded.guard_condition import GuardCondition
from stator.tables.writes.guarded.guarded_write import AppliedProof, GuardedPut, GuardedWrite
from stator.tables.writes.guarded.outcomes import Applied, Later, Outcome, Refused, Stale, Unknown

TOMBSTONE_SECONDS: Final = 7 * 24 * 3600
"""How long a tombstone stays: longer than a suspended consumer, or a replay from old offsets."""


@dataclass(frozen=True, slots=True)
class PutRoute:
    """Each record is an entity that replaces the one with its key."""

    entity: type[Any]
    options: RouteOptions
    guard: PutGuard
    version: FieldRef | None = None
    convert: Callable[[Any], Any] | None = None
    event: type[Any] | None = None
    key: Callable[[SourceRecord], Mapping[str, Any]] | None = None

    @property
    def name(self) -> str:
        return f"put {self.entity.__name__}"

    def bind(self, context: Context, app: str) -> BoundPut:
        of = context.schema.of(self.entity)
        refuse_unsupported(of, "put")
        return BoundPut(self, of, context, app)

    @property
    def leaves_tombstones(self) -> bool:
        """Whether a record without a value leaves a tombstone."""
        return self.guard not in ("id", "none")


class BoundPut:
    def __init__(self, route: PutRoute, of: EntityMap, context: Context, app: str) -> None:
        self.route = route
        self.options = route.options
        self.of = of
        self._context = context
        self._app = app
        self.ttl = context.schema.ttl_of(of.table.name)
        self.version = None if route.version is None else route.version.name
        if route.leaves_tombstones:
            self._refuse_tombstones_in_indexes()
        self._reader = (
            class_reader(route.event, route.options.unknown)
            if route.convert is not None
            else entity_reader(of, route.options.unknown, context.now)
        )
        self._key_reader = entity_reader(of, "refuse", context.now)
        own = {TOMBSTONE, INGESTED, CHECKSUM, *([self.ttl] if self.ttl else ())}
        family = (of, *of.variants.values())
        self._shape = frozenset({*own, *(name for each in family for name in each.attributes)})

    def _refuse_tombstones_in_indexes(self) -> None:
        """Refuse an index whose keys a tombstone has: readers of the index would find it."""
        table = self.of.table
        stays = {*self.of.key_names, self.ttl, self.version}
        for index in table.indexes:
            if stays.issuperset((*index.partition, *index.sort)):
                raise DesignError(
                    f"a tombstone of {self.of.name} would be in index {index.name}, whose keys it"
                    " keeps",
                    hint="use guard='id' or guard='none', or change the index",
                )

    def event(self, record: SourceRecord, value: Any) -> tuple[Any, Any] | None:
        if value is None:
            return self._deletion(record)
        event = self._reader(value)
        if self.options.when is not None and not self.options.when(event):
            return None
        entity = event
        if self.route.convert is not None:
            entity = self.route.convert(event)
            if entity is None:
                return None
            if self._context.schema.maps.get(type(entity)) is None:
                raise RowRefused(
                    f"convert= returned a {type(entity).__name__}, not a {self.of.name}"
                )
        of = self._context.schema.of_object(entity)
        item = of.item(of.stamped_or_refused(entity, self._context.now(), fresh=True).made)
        if of.table.name != self.of.table.name or of.name != self.of.name:
            raise RowRefused(f"convert= returned a {of.name}, not a {self.of.name}")
        if self.version is not None and self.version not in item:
            raise RowRefused(f"{self.of.name}.{self.version} is missing: it is the version")
        return of.key_values(item), item

    def _deletion(self, record: SourceRecord) -> tuple[Any, Any]:
        if self.route.guard == "id":
            raise RowRefused("guard='id' only adds items, and the record deletes one")
        if record.key is None:
            raise RowRefused("the record has neither a key nor a value")
        identity = self.route.key(record) if self.route.key else self._identity(record.key)
        item: Item = dict(self.of.key_from(self.of.given(identity)))
        if self.route.guard == "none":
            return self.of.key_values(item), item
        item[TOMBSTONE] = {"BOOL": True}
        item[INGESTED] = {"S": self._app}
        if self.of.shape_version.value is not None:
            item[VERSION_ATTRIBUTE] = self.of.shape_version.value
        if self.ttl is not None:
            expiry = math.ceil(self._context.now()) + TOMBSTONE_SECONDS
            item[self.ttl] = {"N": str(expiry)}
        if self.version is not None:
            item[self.version] = self._time_of(record)
        return self.of.key_values(item), item

    def _identity(self, key: bytes) -> Mapping[str, Any]:
        if len(self.of.identity) != 1:
            raise RowRefused(
                f"{self.of.name} has several identity fields: pass key= to read them from the"
                " key of a deletion"
            )
        name = self.of.identity[0]
        try:
            text = key.decode()
        except UnicodeDecodeError:
            raise RowRefused("the key of the deletion is not text: pass key= to read it") from None
        return {self.of.info.listed([name]): self._coerced(name, text)}

    def _coerced(self, name: str, text: str) -> Any:
        try:
            return coercion(self.of.fields[name].shape)(text)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise RowRefused(f"the key of the deletion: {error}") from None

    def _time_of(self, record: SourceRecord) -> Value:
        assert self.version is not None
        moment = datetime.fromtimestamp(record.at, UTC)
        try:
            return self.of.codec.encode_field[self.version](moment)
        except StatorError:
            raise RowRefused(
                f"a deletion has no {self.of.name}.{self.version}, and the time of the record does"
                " not fit the field"
            ) from None

    def plan(self, events: Sequence[PendingEvent]) -> tuple[GuardedWrite, int]:
        guard = self.route.guard
        chosen = events[-1]
        if guard == "id":
            chosen = events[0]
        elif self.version is not None:
            chosen = max(events, key=self._age)
        item: Item = chosen.content
        mark = mark_attribute(self.options.source, chosen.record.partition)
        condition = self._condition(events, chosen, mark)
        if guard != "id":
            item = item | {mark: offset_value(chosen.offset)}
        if guard == "checksum":
            item[CHECKSUM] = checksum_of(chosen.content)
        write = GuardedPut(
            self.of.table.name,
            self.of.key_names,
            item,
            condition,
            shape=self._shape,
            proof=AppliedProof(mark, offset_value(chosen.offset), reached=guard != "version")
            if guard != "id"
            else None,
            size_bytes=item_size(item),
        )
        return write, len(events)

    def _age(self, event: PendingEvent) -> tuple[Any, int]:
        assert self.version is not None
        [(kind, content)] = event.content[self.version].items()
        return (Decimal(content) if kind == "N" else content), event.offset

    def _condition(
        self, events: Sequence[PendingEvent], chosen: PendingEvent, mark: str
    ) -> GuardCondition:
        if self.route.guard == "id":
            return GuardCondition.absent(self.of.key_names[0])
        if self.version is not None:
            value = chosen.content[self.version]
            return version_guard(self.version, value, mark, chosen.offset)
        if self.route.guard == "checksum":
            # Only if all are equal: else the mark must rise, or an old record could come back.
            first = checksum_of(events[0].content)
            if TOMBSTONE not in chosen.content and all(
                checksum_of(each.content) == first for each in events[1:]
            ):
                return checksum_guard(mark, chosen.offset, first)
        return position_guard(mark, chosen.offset)

    def after(self, events: Sequence[PendingEvent], outcome: Outcome) -> RunOutcome:
        match outcome:
            case Applied():
                return RunOutcome(applied=1, folded=len(events) - 1)
            case Stale() | Unknown(OutcomeUnknown(), _):
                # The guard is false: the item has these records, or newer ones.
                return RunOutcome(stale=len(events))
            case Later(error):
                return RunOutcome(left=events, error=error)
            case Refused(error) | Unknown(error, _):
                return RunOutcome(left=events[1:], dead=[(events[0], reason_of(error))])
        raise AssertionError(outcome)
