"""Charges requests to the partitions of tables and indexes, and refuses those beyond a limit.

Each limit is a token bucket (``stator.model.heat``): the limit of a partition, the provisioned
units with their burst, a maximum that a user set, and the account's quota. The level of a bucket is
the number of units that it has left.

A meter has one of three modes:

- "off" charges nothing. It counts only the writes of tables with a stream, because the stream's
  shards split with the table's partitions.
- "observed" charges requests and counts those that it would refuse. It refuses none.
- "enforced" refuses. A refused request reads and writes nothing and costs nothing.

State. When the partitions of a table or index change, they are stored under ``h | table | index``,
together with the levels of the buckets. The levels are stored again when the engine closes. After
a crash they are as old as the last change, so a burst may then be larger than it should be.

The caller holds the engine's lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

import orjson

from stator.clock import Clock
from stator.engine import keyspace
from stator.engine.keyspace import PREFIX_BYTES
from stator.engine.partitions.charges import Charge
from stator.engine.partitions.throttle_errors import refusal
from stator.engine.tables.contributor_insights import WRITE_WEIGHT, watched_keys
from stator.engine.tables.table import Index, IndexDefinition, Table, TableDefinition
from stator.engine.tables.throughput import warm_settings
from stator.engine.tables.traffic import KeyTraffic
from stator.errors import SlowDown, StorageError
from stator.model.heat.limits import PARTITION_BYTES, QUOTA_UNITS, READ, WRITE
from stator.model.heat.resource import ThroughputResource, ThroughputSettings
from stator.model.heat.splits import middle
from stator.model.heat.throttle_cause import (
    ACCOUNT_LIMIT,
    KEY_RANGE,
    MAXIMUM,
    PROVISIONED,
    ThrottleCause,
)
from stator.storage import Changes, Storage
from stator.storage.protocol import after_prefix

OFF: Final = "off"
OBSERVED: Final = "observed"
ENFORCED: Final = "enforced"
MODES: Final = (OFF, OBSERVED, ENFORCED)
# How the metrics of throttling name the limits: ReadKeyRangeThroughputThrottleEvents and so on.
_LIMIT_METRICS: Final = {
    ACCOUNT_LIMIT: "AccountLimit",
    MAXIMUM: "MaxOnDemandThroughput",
    PROVISIONED: "ProvisionedThroughput",
    KEY_RANGE: "KeyRangeThroughput",
}


class TableThroughput:
    """The throughput of one table: a ``ThroughputResource`` for it, and for each global index."""

    __slots__ = ("indexes", "resource", "source")

    def __init__(self, source: Table, resource: ThroughputResource) -> None:
        self.source = source
        self.resource = resource
        self.indexes: dict[str, ThroughputResource] = {}

    def all(self) -> Iterator[ThroughputResource]:
        yield self.resource
        yield from self.indexes.values()


class CapacityMeter:
    """Admits, charges and refuses requests; see the module's header."""

    __slots__ = (
        "_clock",
        "_forced",
        "_known_lows",
        "_last",
        "_storage",
        "_tables",
        "charges_keys",
        "collection_bytes",
        "counts_units",
        "enforces",
        "initial_burst_seconds",
        "is_needed",
        "is_on",
        "mode",
        "quota",
    )

    def __init__(
        self, storage: Storage, clock: Clock, mode: str, initial_burst_seconds: float
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._tables: dict[int, TableThroughput] = {}
        # The table of the last request: finding it again costs less than a look into ``_tables``.
        self._last: TableThroughput | None = None
        # Refusals that a test has asked for, by table number: the causes and how many are left.
        self._forced: dict[int, tuple[list[ThrottleCause], int]] = {}
        # Where partitions of tables start whose own state is not stored, by table number.
        self._known_lows: dict[int, list[bytes]] = {}
        self.mode = mode
        self.is_on = mode != OFF
        # Whether requests are charged key by key, or refused because a test asked for it.
        self.charges_keys = self.is_on
        # Whether the units of requests are counted for metrics (``Database.record_traffic``).
        self.counts_units = False
        # Whether either of them is true, so that requests must say what they consume.
        self.is_needed = self.is_on
        self.enforces = mode == ENFORCED
        self.quota = (QUOTA_UNITS, QUOTA_UNITS)
        # The largest item collection of a table with local indexes; tests lower it.
        self.collection_bytes = PARTITION_BYTES
        self.initial_burst_seconds = initial_burst_seconds

    # -- requests

    def read(self, table: Table, index: Index | None, key: bytes, units: float) -> None:
        """Charge a read of one item, given its storage key.

        Raises SlowDown if a limit refuses the read.
        """
        if not self.charges_keys:  # only metrics are kept
            self.count_read(table, index, units)
            if table.traffic.keys is not None:
                _note_keys(READ, [(table, index, key, units)])
            return
        if not self._forced:  # every GetItem: no list, no tuple
            last = self._last
            if last is not None and last.source is table and index is None:
                resource = last.resource
            else:
                resource = self._resource(table, index)
            now = self._clock.now()
            if resource.admit(READ, key[PREFIX_BYTES:], units, now):
                if resource.generation != resource.stored_generation:
                    self._store(table, resource, now)
                if self.counts_units:
                    self.count_read(table, index, units)
                    if table.traffic.keys is not None:
                        _note_keys(READ, [(table, index, key, units)])
                return
        error = self.try_read([(table, index, key, units)])
        if error is not None:
            raise error

    def try_read(
        self, charges: list[Charge], entries: list[Charge] | None = None
    ) -> SlowDown | None:
        """Charge a read, or return the error if a limit refuses it.

        ``entries`` are the same charges for each single entry of a page, if they differ.
        """
        error = self._try(READ, charges) if self.charges_keys else None
        if self.counts_units and error is None:
            self.count(READ, charges, entries)
        return error

    def write(self, charges: list[Charge]) -> None:
        """Charge a write. Raises SlowDown if a limit refuses it."""
        error = self.try_write(charges)
        if error is not None:
            raise error

    def try_write(self, charges: list[Charge]) -> SlowDown | None:
        """Charge a write, or return the error if a limit refuses it."""
        error = self._try(WRITE, charges) if self.charges_keys else None
        if self.counts_units and error is None:
            self.count(WRITE, charges)
        return error

    def try_together(self, kind: int, parts: list[list[Charge]]) -> list[SlowDown | None]:
        """Charge all parts of a transaction, or none if a limit refuses any of them.

        ``kind`` is READ or WRITE. Returns one entry for each part: the error that refuses it, or
        None.
        """
        if not self.charges_keys:
            for charges in parts:
                self.count(kind, charges)
            return [None] * len(parts)
        now = self._clock.now()
        charged: list[list[Charge]] = []
        errors: list[SlowDown | None] = []
        for charges in parts:
            error = self._try(kind, charges)
            errors.append(error)
            if error is None:
                charged.append(charges)
        if self.enforces and len(charged) < len(parts):
            for charges in charged:
                for table, index, key, units in charges:
                    self._resource(table, index).refund(kind, key[PREFIX_BYTES:], units, now)
        elif self.counts_units:
            for charges in charged:
                self.count(kind, charges)
        return errors

    def _try(self, kind: int, charges: list[Charge]) -> SlowDown | None:
        now = self._clock.now()
        if self._forced:
            error = self._forced_refusal(kind, charges)
            if error is not None or not self.is_on:
                return error
        if len(charges) == 1:  # most requests: one item, and no index entry changes
            table, index, key, units = charges[0]
            resource = self._resource(table, index)
            if not resource.admit(kind, key[PREFIX_BYTES:], units, now):
                return self._refuse(kind, charges, now)
            if resource.generation != resource.stored_generation:
                self._store(table, resource, now)
            return None
        refused = False
        for table, index, key, _ in charges:
            if self._resource(table, index).room(kind, key[PREFIX_BYTES:], now) <= 0.0:
                refused = True
                break
        if refused:
            return self._refuse(kind, charges, now)
        for table, index, key, units in charges:
            resource = self._resource(table, index)
            resource.charge(kind, key[PREFIX_BYTES:], units, now)
            if resource.generation != resource.stored_generation:
                self._store(table, resource, now)
        return None

    def _refuse(self, kind: int, charges: list[Charge], now: float) -> SlowDown | None:
        causes: list[ThrottleCause] = []
        for table, index, key, units in charges:
            resource = self._resource(table, index)
            found = resource.causes(kind, key[PREFIX_BYTES:], now)
            if found:
                resource.refuse(kind, key[PREFIX_BYTES:], units, found, now)
                causes += found
                if self.counts_units and self.enforces:
                    _note_throttling(table, found)
                    # An index that cannot keep up with the table's writes is no key's fault.
                    if table.traffic.keys is not None and (index is None or kind == READ):
                        _note_throttled_key(table, index, key)
                if resource.generation != resource.stored_generation:
                    self._store(table, resource, now)
        return refusal(causes, charges[0][0].arn) if self.enforces else None

    def _forced_refusal(self, kind: int, charges: list[Charge]) -> SlowDown | None:
        table = charges[0][0]
        forced = self._forced.get(table.definition.number)
        if forced is None:
            return None
        causes, left = forced
        if causes[0].kind != kind:
            return None
        if left > 1:
            self._forced[table.definition.number] = (causes, left - 1)
        else:
            self.force(table, causes, 0)
        if self.counts_units:
            _note_throttling(table, causes)
            if table.traffic.keys is not None:
                _note_throttled_key(table, charges[0][1], charges[0][2])
        return refusal(causes, table.arn)

    # -- metrics: the units of requests, without partitions and buckets

    def count_read(self, table: Table, index: Index | None, units: float) -> None:
        """Count the read units of one request, without charging them."""
        if index is None or not index.is_global:
            table.traffic.reads.append(units)
        else:
            table.traffic.read(index.name, units)

    def count(self, kind: int, charges: list[Charge], entries: list[Charge] | None = None) -> None:
        """Count the units of one request: one sample for each table and global index."""
        if charges and charges[0][0].traffic.keys is not None:
            _note_keys(kind, charges if entries is None else entries)
        if len(charges) == 1:
            table, index, _, units = charges[0]
            if index is None and kind == WRITE:  # most writes: one item, and no index entry
                table.traffic.writes.append(units)
            else:
                _sample(
                    table, kind, "" if index is None or not index.is_global else index.name, units
                )
            return
        sums: dict[tuple[Table, str], float] = {}
        for table, index, _, units in charges:
            key = (table, "" if index is None or not index.is_global else index.name)
            sums[key] = sums.get(key, 0.0) + units
        for (table, name), units in sums.items():
            _sample(table, kind, name, units)

    def watch_keys(self, tables: Iterable[Table]) -> None:
        """Note the keys of tables and indexes with Contributor Insights, and of no others.

        Only an engine with metrics notes keys.
        """
        for table in tables:
            modes = watched_keys(table.definition) if self.counts_units else {}
            keys = table.traffic.keys or {}
            for name, counts_access in modes.items():
                if name not in keys or (keys[name].accessed is not None) != counts_access:
                    keys[name] = KeyTraffic(counts_access=counts_access)
            table.traffic.keys = {name: keys[name] for name in modes} or None

    def count_stream_write(self, table: Table, key: bytes, units: float) -> None:
        """Count a write of a table with a stream, if the meter is off.

        The shards of a stream split with the table's partitions, so partitions must know their
        load.
        """
        if self.is_on:
            return
        resource = self.resource(table)
        now = self._clock.now()
        resource.settle(now)
        resource.count(WRITE, key[PREFIX_BYTES:], units, now)
        if resource.generation != resource.stored_generation:
            self._store(table, resource, now)

    # -- tests

    def force(self, table: Table, causes: list[ThrottleCause], count: int) -> None:
        """Refuse the next ``count`` charges of a table because of ``causes``, in any mode."""
        if count > 0:
            self._forced[table.definition.number] = (causes, count)
        else:
            self._forced.pop(table.definition.number, None)
        self.charges_keys = self.is_on or bool(self._forced)
        self.is_needed = self.charges_keys or self.counts_units

    def split(self, table: Table, index: Index | None, key: bytes) -> None:
        """Split the partition that holds a key at the key, at once. For tests."""
        resource = self._resource(table, index)
        now = self._clock.now()
        resource.split(key[PREFIX_BYTES:], now)
        self._store(table, resource, now)

    def halve(self, table: Table, low: bytes) -> None:
        """Split the partition that starts at ``low`` in two, for tests.

        The cut is in the middle of the partition's key hashes. Raises ValueError if it holds only
        one hash.
        """
        resource = self.resource(table)
        now = self._clock.now()
        cut = middle(*resource.bounds_of(low))
        if cut is None:
            raise ValueError("a partition of one key hash cannot be halved; split it at a key")
        resource.split(cut, now)
        self._store(table, resource, now)

    def change_quota(self, quota: tuple[float, float]) -> None:
        """Change the account's quota of every on-demand table and index, for tests."""
        self.quota = quota
        now = self._clock.now()
        for entry in self._tables.values():
            for resource in entry.all():
                resource.change(replace(resource.settings, quota=quota), now)

    # -- resources

    def bounds(self, table: Table, index: Index | None, key: bytes) -> tuple[bytes, bytes | None]:
        """Return the keys at which the partition of a storage key starts and ends.

        Both lack the prefix of the table or index. The end is None for the last partition.
        """
        return self._resource(table, index).bounds_of(key[PREFIX_BYTES:])

    def of(self, table: Table) -> TableThroughput:
        """Return a table's throughput, after carrying out all splits and growth that are due."""
        entry = self._of(table)
        now = self._clock.now()
        for index in table.global_indexes:
            self._resource(table, index)
        for resource in entry.all():
            resource.settle(now)
            if resource.generation != resource.stored_generation:
                self._store(table, resource, now)
        return entry

    def used(self) -> list[TableThroughput]:
        """Return the throughput of every table that was used, by name."""
        return sorted(self._tables.values(), key=lambda entry: entry.source.name)

    def resource(self, table: Table) -> ThroughputResource:
        """Return the throughput resource of the table itself, without its indexes."""
        return self._of(table).resource

    def know(self, table_number: int, lows: list[bytes]) -> None:
        """Remember where a stream's shards start, for a table whose partitions are not stored.

        The table's partitions then start at the same keys, ``lows``. Data folders of format 2 store
        the shards of streams, but no partitions.
        """
        self._known_lows[table_number] = lows

    def lows_of(self, definition: TableDefinition) -> list[bytes]:
        """Return the keys at which a table's partitions start, even before it is created."""
        entry = self._tables.get(definition.number)
        if entry is not None:
            return entry.resource.lows
        return self._open(definition, None, None).lows

    def adopt(self, table: Table, at: float) -> None:
        """Apply the settings of a table whose change was complete at ``at``.

        Otherwise the next request would apply them, from then on, and a further change before it
        would hide them.
        """
        if self.is_on:
            self._refreshed(self._tables.get(table.definition.number), table, at)

    def _of(self, table: Table) -> TableThroughput:
        entry = self._tables.get(table.definition.number)
        if entry is None or entry.source is not table:
            return self._refreshed(entry, table)
        return entry

    def _resource(self, table: Table, index: Index | None) -> ThroughputResource:
        entry = self._tables.get(table.definition.number)
        if entry is None or entry.source is not table:
            entry = self._refreshed(entry, table)
        self._last = entry
        if index is None or not index.is_global:
            return entry.resource
        resource = entry.indexes.get(index.name)
        if resource is None:
            resource = entry.indexes[index.name] = self._open(
                table.definition, index.definition, index.name
            )
        return resource

    def _refreshed(
        self, entry: TableThroughput | None, table: Table, at: float | None = None
    ) -> TableThroughput:
        """Open the throughput of a new table, or adapt it to a changed table definition.

        ``at`` is when the change was complete; None is now.
        """
        number = table.definition.number
        if entry is None:
            entry = TableThroughput(table, self._open(table.definition, None, None))
            self._tables[number] = entry
            return entry
        if table.definition.status == "UPDATING":  # the former settings apply until it is done
            return entry
        now = self._clock.now()
        known = {index.name: index for index in table.global_indexes}
        entry.indexes = {
            name: resource for name, resource in entry.indexes.items() if name in known
        }
        is_adopted = True
        for resource in entry.all():
            name = resource.index
            holder = table.definition if name is None else known[name].definition
            since = now if at is None else at
            if name is not None and holder.status == "UPDATING":
                if now < table.definition.status_until:  # its former settings apply until then
                    is_adopted = False
                    continue
                since = table.definition.status_until
            settings = self._settings(table.definition, holder)
            if settings != resource.settings:  # most changes are others, such as a backfill's
                resource.change(settings, since)
                self._store(table, resource, now)
        if is_adopted:
            entry.source = table
        return entry

    def _open(
        self, definition: TableDefinition, index: IndexDefinition | None, name: str | None
    ) -> ThroughputResource:
        now = self._clock.now()
        settings = self._settings(definition, definition if index is None else index)
        # Burst adds up from the creation of the table on, not from its first request.
        resource = ThroughputResource(settings, min(definition.created, now), index=name)
        number = 0 if index is None else index.number
        stored = self._storage.get(_state_key(definition.number, number))
        if stored is not None:
            resource.restore(orjson.loads(stored), now)
        elif index is None and definition.number in self._known_lows:
            resource.start_from(self._known_lows[definition.number], now)
        resource.stored_generation = resource.generation
        return resource

    def _settings(
        self, definition: TableDefinition, holder: TableDefinition | IndexDefinition
    ) -> ThroughputSettings:
        on_demand = definition.billing_mode == "PAY_PER_REQUEST"
        maxima = holder.on_demand or {}
        return ThroughputSettings(
            units=None if on_demand else (float(holder.read_units), float(holder.write_units)),
            maxima=(
                (maxima.get("MaxReadRequestUnits"), maxima.get("MaxWriteRequestUnits"))
                if on_demand
                else (None, None)
            ),
            warm=warm_settings(holder.warm),
            quota=self.quota,
            has_local_index=holder is definition
            and any(not index.is_global for index in definition.indexes),
            initial_burst_seconds=self.initial_burst_seconds,
        )

    # -- at rest

    def _store(self, table: Table, resource: ThroughputResource, now: float) -> None:
        """Store the partitions of a resource. If storage fails, the request still succeeds.

        Each change stores the whole state, so the next change makes up for the failure.
        """
        number = 0
        if resource.index is not None:
            index = table.index(resource.index)
            if index is None:
                return
            number = index.definition.number
        state = orjson.dumps(resource.to_json(now))
        resource.stored_generation = resource.generation
        with suppress(StorageError):
            key = _state_key(table.definition.number, number)
            self._storage.write({key: state}, undoable=True)

    def save(self) -> None:
        """Store the partitions and bucket levels of all tables, before the engine closes."""
        if not self.is_on:
            return
        now = self._clock.now()
        for entry in self._tables.values():
            for resource in entry.all():
                self._store(entry.source, resource, now)

    def settle_all(self) -> None:
        """Carry out splits and growth that are due, and store what changed."""
        for entry in list(self._tables.values()):
            entry.resource.hold(entry.source.counts.size_bytes, self._clock.now())
            for index in entry.source.global_indexes:
                if index.name in entry.indexes:
                    entry.indexes[index.name].hold(index.counts.size_bytes, self._clock.now())
            self.of(entry.source)

    def forget(self, table: Table, changes: Changes) -> None:
        """Remove the state of a deleted table; the caller writes ``changes``."""
        number = table.definition.number
        self._tables.pop(number, None)
        self._last = None
        self.force(table, [], 0)
        prefix = keyspace.heat_prefix(number)
        for key, _ in self._storage.scan(prefix, after_prefix(prefix)):
            changes[key] = None


def _note_keys(kind: int, charges: list[Charge]) -> None:
    """Note the keys of a request for the tables and indexes with Contributor Insights."""
    for table, index, key, units in charges:
        watched = table.traffic.keys
        if watched is None:
            continue
        keys = watched.get("" if index is None or not index.is_global else index.name)
        if keys is not None and keys.accessed is not None:
            keys.accessed.append((key, units if kind == READ else WRITE_WEIGHT * units))


def _note_throttled_key(table: Table, index: Index | None, key: bytes) -> None:
    watched = table.traffic.keys or {}
    keys = watched.get("" if index is None or not index.is_global else index.name)
    if keys is not None:
        keys.throttled.append(key)


def _sample(table: Table, kind: int, index_name: str, units: float) -> None:
    if kind == READ:
        table.traffic.read(index_name, units)
    else:
        table.traffic.write(index_name, units)


def _note_throttling(table: Table, causes: list[ThrottleCause]) -> None:
    """Note that one item was throttled: an event of its table or index, and one for each limit."""
    seen: list[str] = []
    for cause in causes:
        kind = "Read" if cause.kind == READ else "Write"
        index_name = cause.index or ""
        if index_name not in seen:
            seen.append(index_name)
            table.traffic.count(f"{kind}ThrottleEvents", index_name)
        table.traffic.count(f"{kind}{_LIMIT_METRICS[cause.limit]}ThrottleEvents", index_name)


def _state_key(table_number: int, index_number: int) -> bytes:
    return keyspace.heat_prefix(table_number) + index_number.to_bytes(2, "big")
