"""Tables and indexes in memory: their declarations, and everything derived from them.

``TableDefinition`` is plain data, stored in the catalogue as JSON. ``Table`` adds what requests
need: key encoders, indexes, current counts. It is rebuilt whenever the definition changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from struct import Struct
from typing import Any

from stator.engine import keyspace
from stator.engine.tables.key_schema import (
    SHORT_KEY,
    KeyAttribute,
    KeySchema,
    entry_encoder,
    key_encoder,
)
from stator.engine.tables.traffic import TableTraffic
from stator.errors import ResourceInUse
from stator.model.limits import PARTITION_KEY_BYTES, SORT_KEY_BYTES
from stator.model.scope import Scope
from stator.model.values import Item


@dataclass(slots=True)
class IndexDefinition:
    name: str
    number: int
    is_global: bool
    key_schema: list[dict[str, str]]
    projection_type: str
    non_key_attributes: list[str]
    read_units: int = 0
    write_units: int = 0
    on_demand: dict[str, int] | None = None
    warm: dict[str, int] | None = None
    # During a backfill: the storage key up to which the index is complete, as hex. Items beyond it
    # are not in the index yet, and writes to them leave it alone. None once the index is complete.
    backfilled_to: str | None = None
    last_increase: float | None = None
    last_decrease: float | None = None
    decreases_today: int = 0
    # CREATING, UPDATING or DELETING until the table's ``status_until``. None is ACTIVE, once the
    # backfill is done.
    status: str | None = None


@dataclass(slots=True)
class TableDefinition:
    name: str
    number: int
    table_id: str
    account: str
    region: str
    created: float
    key_schema: list[dict[str, str]]
    attributes: dict[str, str]
    indexes: list[IndexDefinition] = field(default_factory=list)
    next_index: int = 1
    billing_mode: str = "PROVISIONED"
    billing_changed: float | None = None
    read_units: int = 0
    write_units: int = 0
    last_increase: float | None = None
    last_decrease: float | None = None
    decreases_today: int = 0
    on_demand: dict[str, int] | None = None
    warm: dict[str, int] | None = None
    table_class: str | None = None
    table_class_changed: float | None = None
    deletion_protection: bool = False
    stream: dict[str, Any] | None = None
    stream_label: str | None = None
    sse: dict[str, Any] | None = None
    ttl_attribute: str | None = None
    # The attribute before the last change, and when that was: on AWS a change takes up to an hour.
    ttl_before: str | None = None
    ttl_changed: float | None = None
    # While older items are added to the expiry list: the storage key reached so far, as hex.
    ttl_filled_to: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    resource_policy: str | None = None
    # Continuous backups: since when (seconds), and for how many days changes are kept. None is off.
    recovery: dict[str, Any] | None = None
    # Contributor Insights by global index, "" for the table; see ``contributor_insights``.
    insights: dict[str, dict[str, Any]] = field(default_factory=dict)
    # How many backups, restores and exports are copying the items now.
    captures: int = 0
    # What a restored table came from, as RestoreSummary shows it.
    restored: dict[str, Any] | None = None
    # CREATING, UPDATING or DELETING, until ``status_until``. None is ACTIVE.
    status: str | None = None
    status_until: float = 0.0

    @property
    def scope(self) -> Scope:
        return Scope(self.account, self.region)

    @property
    def in_transition(self) -> bool:
        return self.status is not None or any(index.status is not None for index in self.indexes)

    def index(self, name: str) -> IndexDefinition | None:
        return next((index for index in self.indexes if index.name == name), None)

    def drop_indexes(self, numbers: set[int]) -> None:
        """Remove indexes, and the definitions of attributes that only they used."""
        for index in self.indexes:
            if index.number in numbers:
                self.insights.pop(index.name, None)
        self.indexes = [index for index in self.indexes if index.number not in numbers]
        schemas = [self.key_schema, *(index.key_schema for index in self.indexes)]
        used = {element["AttributeName"] for schema in schemas for element in schema}
        self.attributes = {name: kind for name, kind in self.attributes.items() if name in used}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TableDefinition:
        indexes = [IndexDefinition(**index) for index in data["indexes"]]
        return cls(**{**data, "indexes": indexes})


@dataclass(slots=True)
class ItemCounts:
    """The number of items or entries and their size in bytes, as DescribeTable reports them."""

    items: int = 0
    size_bytes: int = 0


class Index:
    """A secondary index, ready for reads and writes."""

    __slots__ = (
        "_encode",
        "backfilled_to",
        "counts",
        "definition",
        "is_global",
        "name",
        "prefix",
        "projected",
        "schema",
    )

    def __init__(
        self, definition: IndexDefinition, table: TableDefinition, table_schema: KeySchema
    ) -> None:
        self.definition = definition
        self.name = definition.name
        self.is_global = definition.is_global
        self.prefix = keyspace.data_prefix(table.number, definition.number)
        self.schema = read_schema(definition.key_schema, table.attributes)
        self._encode: Callable[[Item], bytes | None] = entry_encoder(self.schema, self.prefix)
        self.counts = ItemCounts()
        self.projected: frozenset[str] | None = None
        if definition.projection_type != "ALL":
            self.projected = frozenset(
                {*table_schema.names, *self.schema.names, *definition.non_key_attributes}
            )
        cursor = definition.backfilled_to
        self.backfilled_to = None if cursor is None else bytes.fromhex(cursor)

    def entry_key(self, item: Item, table_key: bytes) -> bytes | None:
        """Return the key of the item's entry, or None if the index leaves the item out.

        An index leaves out items that lack a key attribute. It also leaves out items older than the
        index if their value cannot be a key. The table's key ends the entry: the whole key in a
        global index, the sort key in a local one.
        """
        own = self._encode(item)
        if own is None or not _fits_keys(self.schema, item):
            return None
        return own + (
            keyspace.after_hash(table_key) if self.is_global else keyspace.sort_part(table_key)
        )

    def same_key(self, old: Item, new: Item) -> bool:
        return all(old.get(name) == new.get(name) for name in self.schema.names)

    def project(self, item: Item) -> Item:
        projected = self.projected
        assert projected is not None
        return {name: value for name, value in item.items() if name in projected}


def _fits_keys(schema: KeySchema, item: Item) -> bool:
    """Whether the key values are neither empty nor too long. Most pass one cheap test."""
    for name, kind in schema.attributes:
        if kind != "N" and not 0 < len(item[name][kind]) <= SHORT_KEY:
            most = PARTITION_KEY_BYTES if (name, kind) in schema.partition else SORT_KEY_BYTES
            if not 0 < len(keyspace.RAW[kind](item[name][kind])) <= most:
                return False
    return True


class Table:
    """A table, ready for reads and writes."""

    __slots__ = (
        "_pack_stats",
        "counts",
        "definition",
        "encode_key",
        "global_indexes",
        "index_key_names",
        "indexes",
        "is_observed",
        "local_indexes",
        "name",
        "prefix",
        "schema",
        "scope",
        "stats_key",
        "traffic",
    )

    def __init__(self, definition: TableDefinition) -> None:
        self.definition = definition
        self.name = definition.name
        self.scope = definition.scope
        self.schema = read_schema(definition.key_schema, definition.attributes)
        self.prefix = keyspace.data_prefix(definition.number, 0)
        self.stats_key = keyspace.stats_key(definition.number)
        self.encode_key: Callable[[Item], bytes] = key_encoder(self.schema, self.prefix)
        # Whether write observers record every change: a stream, an expiry list, the recovery log or
        # a backup in progress.
        self.is_observed = (
            definition.stream is not None
            or definition.ttl_attribute is not None
            or definition.recovery is not None
            or definition.captures > 0
        )
        self.counts = ItemCounts()
        self.traffic = TableTraffic()
        self._pack_stats = Struct(f">{2 + 3 * len(definition.indexes)}Q").pack
        # AWS names the alphabetically first index when a value fits none of several.
        self.indexes = sorted(
            (Index(index, definition, self.schema) for index in definition.indexes),
            key=lambda i: i.name,
        )
        self.index_key_names = frozenset(
            name for index in self.indexes for name in index.schema.names
        )
        self.local_indexes = [index for index in self.indexes if not index.is_global]
        self.global_indexes = [index for index in self.indexes if index.is_global]

    @property
    def arn(self) -> str:
        return self.scope.table_arn(self.name)

    def index(self, name: str) -> Index | None:
        return next((index for index in self.indexes if index.name == name), None)

    # -- counts at rest: one record per table, in the same batch as every write

    def stats_record(self) -> bytes:
        numbers = [self.counts.items, self.counts.size_bytes]
        for index in self.indexes:
            numbers += (index.definition.number, index.counts.items, index.counts.size_bytes)
        return self._pack_stats(*numbers)

    def load_stats(self, record: bytes | None) -> None:
        if record is None:
            return
        numbers = [int.from_bytes(record[at : at + 8], "big") for at in range(0, len(record), 8)]
        self.counts = ItemCounts(numbers[0], numbers[1])
        by_number = {
            numbers[at]: ItemCounts(numbers[at + 1], numbers[at + 2])
            for at in range(2, len(numbers), 3)
        }
        for index in self.indexes:
            index.counts = by_number.get(index.definition.number, ItemCounts())


def read_schema(elements: list[dict[str, str]], attributes: dict[str, str]) -> KeySchema:
    def of_type(key_type: str) -> tuple[KeyAttribute, ...]:
        return tuple(
            KeyAttribute(element["AttributeName"], attributes[element["AttributeName"]])
            for element in elements
            if element["KeyType"] == key_type
        )

    return KeySchema(of_type("HASH"), of_type("RANGE"))


# -- states that forbid a change

_IN_USE = "Attempt to change a resource which is still in use: "
_COMING_AND_GOING = {"CREATING": "created", "DELETING": "deleted"}


def in_use(reason: str) -> ResourceInUse:
    return ResourceInUse(_IN_USE + reason)


def check_changeable(definition: TableDefinition) -> None:
    """Refuse to change a table that is being created or deleted."""
    word = _COMING_AND_GOING.get(definition.status or "")
    if word is not None:
        raise in_use(f"Table is being {word}: {definition.name}")
