"""All streams of an engine: the write observer that fills them, and lookups for the operations."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from stator.engine.database import Database
from stator.engine.items import records
from stator.engine.items.capacity import write_units
from stator.engine.items.write_path import ItemChange, Writer
from stator.engine.keyspace import PREFIX_BYTES
from stator.engine.streams import events
from stator.engine.streams.stream import (
    RETENTION_SECONDS,
    STREAMS,
    OpenShards,
    Shard,
    Stream,
)
from stator.engine.tables.table import Table, TableDefinition
from stator.errors import ResourceNotFound
from stator.model.heat.resource import ThroughputResource
from stator.model.scope import Scope
from stator.storage import Changes
from stator.storage.protocol import after_prefix


class Streams:
    """Fills streams as a write observer, and finds, rolls, splits and trims them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._storage = database.storage
        self._streams: dict[str, Stream] = {}
        self._live: dict[int, _Live] = {}
        for _, value in self._storage.scan(STREAMS, after_prefix(STREAMS)):
            self._take_over(self._continued(Stream.from_json(orjson.loads(value))))
        for number, live in self._live.items():
            lows = [shard.low for shard in live.stream.shards if shard.is_open]
            database.meter.know(number, lows)

    def _continued(self, stream: Stream) -> Stream:
        """Move the stream's sequence counter past every stored record, and return the stream."""
        for shard in stream.shards:
            prefix = stream.shard_prefix(shard)
            for key, _ in self._storage.scan(prefix, after_prefix(prefix), reverse=True):
                stream.next_sequence = max(
                    stream.next_sequence, int.from_bytes(key[-8:], "big") + 1
                )
                break
        return stream

    def _take_over(self, stream: Stream) -> None:
        self._streams[stream.arn] = stream
        if stream.disabled is None:
            before = self._live.get(stream.table_number)
            self._live[stream.table_number] = _Live(stream, before)
        else:
            live = self._live.get(stream.table_number)
            if live is not None and live.stream.number == stream.number:
                del self._live[stream.table_number]

    def any(self) -> bool:
        return bool(self._streams)

    # -- writing

    def observe(self, writer: Writer, changes: Changes) -> None:
        now = self._database.clock.now()
        for change in writer.item_changes:
            live = self._live.get(change.table.definition.number)
            if live is None or events.is_unchanged(change.old, change.new):
                continue
            if not writer.by_service:
                self._database.meter.count_stream_write(change.table, change.key, _units(change))
            throughput = self._database.meter.resource(change.table)
            if now >= live.shards.rolls_at or throughput.generation != live.generation:
                live = self._reshaped(live, throughput, now)
            live.last_time = max(live.last_time, now)
            shard = live.shards.of(change.key[PREFIX_BYTES:])
            sequence = live.stream.take_sequence()
            record = events.render(
                live.stream, sequence, change, live.last_time, by_service=writer.by_service
            )
            changes[live.stream.record_key(shard, sequence)] = record

    def _reshaped(self, live: _Live, throughput: ThroughputResource, now: float) -> _Live:
        """Roll due shards, split shards whose partitions have split, and return the new stream.

        The stream's definition is written before any record goes into the new shards.
        """
        stream = live.stream.copy()
        generation = throughput.generation
        rolled = stream.roll(now)
        if stream.follow(throughput.lows, now) or rolled:
            self._write(stream)
        live = self._live[stream.table_number]
        live.generation = generation
        return live

    def _write(self, stream: Stream) -> None:
        # Memory changes only afterwards, so a full disk has nothing to undo.
        self._database.storage.write({stream.key: _stored(stream)}, undoable=True)
        self._take_over(stream)

    # -- switching on and off: each adds what storage must hold to ``changes``, and applies in
    # memory at once

    def apply_definition(self, definition: TableDefinition, changes: Changes) -> None:
        """Start or end a table's stream according to a definition that is about to be written."""
        live = self._live.get(definition.number)
        label = None if definition.stream is None else definition.stream_label
        if live is not None and live.stream.label != label:
            self.end(definition.number, changes)
            live = None
        if label is not None and live is None:
            self._start(definition, label, changes)

    def _start(self, definition: TableDefinition, label: str, changes: Changes) -> None:
        assert definition.stream is not None
        now = self._database.clock.now()
        stream = Stream(
            self._database.catalog.take_number(changes),
            label,
            definition.number,
            definition.name,
            definition.account,
            definition.region,
            definition.key_schema,
            definition.stream["StreamViewType"],
            now,
        )
        for low in self._database.meter.lows_of(definition):
            stream.open_shard(low, now)
        changes[stream.key] = _stored(stream)
        self._take_over(stream)

    def end(self, table_number: int, changes: Changes) -> None:
        """Close the stream of a table. Its records stay for a day."""
        live = self._live.get(table_number)
        if live is None:
            return
        stream = live.stream.copy()
        stream.disable(self._database.clock.now())
        changes[stream.key] = _stored(stream)
        self._take_over(stream)

    # -- reading; the caller holds the engine's lock

    def of_scope(self, scope: Scope) -> list[Stream]:
        self.settle_all()
        found = [
            stream for stream in self._streams.values() if (stream.account, stream.region) == scope
        ]
        return sorted(found, key=lambda stream: (stream.created, stream.number))

    def find(self, arn: str) -> Stream:
        """Return the stream after rolling and trimming its shards up to now.

        Raises ResourceNotFound if there is no such stream.
        """
        stream = self._streams.get(arn)
        if stream is not None:
            self.settle(stream)
            stream = self._streams.get(arn)
        if stream is not None:
            return stream
        raise ResourceNotFound(f"Requested resource not found: Stream: {arn} not found")

    def split(self, arn: str, shard_id: str) -> list[Shard]:
        """Split the partition of an open shard in two, and return the shards of the two halves.

        This is for tests and simulations.
        """
        with self._database.lock:
            stream = self.find(arn)
            shard = stream.shard(shard_id)
            if shard is None or not shard.is_open:
                raise ResourceNotFound(
                    f"Requested resource not found: Shard: {shard_id} is not open"
                )
            self._database.meter.halve(self._table(stream), shard.low)
            stream = self.find(arn)
            return [child for child in stream.shards if child.parent == shard_id]

    def _table(self, stream: Stream) -> Table:
        scope = Scope(stream.account, stream.region)
        return self._database.catalog.get(scope, stream.table_name)

    def roll(self, arn: str) -> list[Shard]:
        """Close every open shard now, open a child for each, and return the children.

        This is for tests, which then need not wait four hours.
        """
        with self._database.lock:
            stream = self.find(arn).copy()
            now = self._database.clock.now()
            children = []
            for shard in [shard for shard in stream.shards if shard.is_open]:
                stream.close_shard(shard, now)
                children.append(stream.open_shard(shard.low, now, shard.id))
            self._write(stream)
            return children

    # -- the passing of time

    def settle_all(self) -> None:
        for stream in list(self._streams.values()):
            self.settle(stream)

    def settle(self, stream: Stream) -> None:
        """Roll due shards, and delete records that are a day old.

        A stream that was disabled a day ago is removed.
        """
        now = self._database.clock.now()
        live = self._live.get(stream.table_number)
        if live is not None and live.stream is stream:
            throughput = self._database.meter.of(self._table(stream)).resource
            if now >= live.shards.rolls_at or throughput.generation != live.generation:
                stream = self._reshaped(live, throughput, now).stream
        oldest = now - RETENTION_SECONDS
        if stream.disabled is not None and stream.disabled <= oldest:
            self._remove(stream)
        elif any(shard.opened <= oldest for shard in stream.shards):
            self._trim(stream, oldest)

    def _remove(self, stream: Stream) -> None:
        del self._streams[stream.arn]
        self._database.storage.write({stream.key: None})
        self._storage.delete_range(stream.prefix, after_prefix(stream.prefix))

    def _trim(self, stream: Stream, oldest: float) -> None:
        trimmed = stream.copy()
        trimmed.shards = [
            shard for shard in trimmed.shards if shard.closed is None or shard.closed > oldest
        ]
        for shard in trimmed.shards:
            if shard.opened <= oldest:
                shard.horizon = self._horizon(stream, shard, oldest)
        if trimmed == stream:
            return
        self._write(trimmed)
        left = {shard.number: shard for shard in trimmed.shards}
        for shard in stream.shards:
            remaining = left.get(shard.number)
            prefix = stream.shard_prefix(shard)
            end = (
                after_prefix(prefix)
                if remaining is None
                else stream.record_key(shard, remaining.horizon)
            )
            self._storage.delete_range(prefix, end)

    def _horizon(self, stream: Stream, shard: Shard, oldest: float) -> int:
        """Return the sequence number of the first record created after the time ``oldest``."""
        found = self._bisect(stream, shard, lambda created: created > oldest)
        return found if found > shard.first else shard.horizon

    def first_at(self, stream: Stream, shard: Shard, timestamp: float) -> int:
        """Return the sequence number of the first record created at ``timestamp`` or later.

        Creation times are cut to whole seconds before the comparison, as GetRecords shows them.
        """
        return self._bisect(stream, shard, lambda created: int(created) >= timestamp)

    def _bisect(self, stream: Stream, shard: Shard, is_late_enough: Callable[[float], bool]) -> int:
        """Return the sequence number of the first record whose time is late enough.

        Returns the end of the shard if there is none. Times rise with the sequence numbers.
        """
        low = max(shard.horizon, shard.first)
        high = stream.next_sequence if shard.last is None else shard.last
        while low < high:
            middle = (low + high) // 2
            after = self._first_record(stream, shard, middle, high)
            if after is None or is_late_enough(after[1]):
                high = middle
            else:
                low = after[0] + 1
        return low

    def _first_record(
        self, stream: Stream, shard: Shard, low: int, high: int
    ) -> tuple[int, float] | None:
        for key, record in self._storage.scan(
            stream.record_key(shard, low), stream.record_key(shard, high)
        ):
            return int.from_bytes(key[-8:], "big"), events.created_at(record)
        return None


class _Live:
    """The stream that a table writes to, with the values that every write looks up."""

    __slots__ = ("generation", "last_time", "shards", "stream")

    def __init__(self, stream: Stream, before: _Live | None) -> None:
        self.stream = stream
        self.shards = OpenShards(stream)
        # The generation of the table's partitions that the shards follow.
        self.generation: int = -1
        self.last_time: float = 0.0 if before is None else before.last_time


def _stored(stream: Stream) -> bytes:
    return orjson.dumps(stream.to_json())


def _units(change: ItemChange) -> float:
    """Return the write units of a change: those of the larger of the item before and after."""
    sizes = [records.size_of(record) for record in (change.old, change.new) if record is not None]
    return float(write_units(max(sizes, default=0)))
