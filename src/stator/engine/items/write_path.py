"""The write path that every write takes.

The idea. Every write, from a PutItem to a transaction of a hundred actions, is a list of
``Mutation`` objects. A mutation says that an item of a table was ``old`` and becomes ``new``.
``Writer`` turns mutations into one set of changes: the item's record, the index entries it leaves
and enters, and the table's counts. Storage writes the set as one atomic batch. After a crash either
all of it is stored or none of it, so no part can disagree with another.

Invariants.

- An index holds an entry for exactly those items that have all its key attributes, of the right
  types. During a backfill this holds for items below ``backfilled_to``; the index has no entries of
  items above it.
- Counts match the entries that exist: both change in the same batch.
- An entry whose key and content stay the same is neither written nor charged.
- For a table that is observed, every mutation also becomes an ``ItemChange`` with the record before
  and after. Observers (streams, expiry, recovery) add their own records to the same batch.

Example. Table T (PK) with index GSI1 (GPK); the item {PK: a, GPK: x} becomes {PK: a, GPK: y}:

    d T 0 <a>          the new record          d T 1 <x> <a>      deleted
    s T                counts, unchanged       d T 1 <y> <a>      the new entry

Failure. If storage refuses the batch, nothing was written and ``undo`` restores the counts in
memory. There is nothing to recover at start-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.items import records
from stator.engine.items.capacity import Consumed, write_units
from stator.engine.partitions.charges import Charge
from stator.engine.tables.table import Index, Table
from stator.model.values import Item, item_size
from stator.storage import Changes


@dataclass(slots=True, init=False)
class Mutation:
    """The change to one item.

    ``old_item`` may be None if the table has no index and the answer does not need the old item.
    """

    table: Table
    key: bytes
    old: bytes | None
    old_item: Item | None
    new_item: Item | None
    new_size: int

    def __init__(
        self,
        table: Table,
        key: bytes,
        old: bytes | None,
        old_item: Item | None,
        new_item: Item | None,
        new_size: int = 0,
    ) -> None:
        self.table = table
        self.key = key
        self.old = old
        self.old_item = old_item
        self.new_item = new_item
        self.new_size = new_size


@dataclass(slots=True, init=False)
class ItemChange:
    """A change to an item of an observed table.

    ``old`` and ``new`` are the item's records (see records.py) before and after the change. None
    means that there was no item.
    """

    table: Table
    key: bytes
    old: bytes | None
    new: bytes | None
    item: Item

    def __init__(
        self, table: Table, key: bytes, old: bytes | None, new: bytes | None, item: Item
    ) -> None:
        self.table = table
        self.key = key
        self.old = old
        self.new = new
        # The item after the change, or else before it: its key attributes are the same in both.
        self.item = item


class Writer:
    """Collects the changes of one request. They become visible when storage has written them.

    ``by_service`` means that the engine itself writes, for example to delete expired items.
    ``charges`` is a list that receives the charges of the write, key by key. It is None if the
    write is not charged.
    """

    __slots__ = (
        "_counts",
        "_tables",
        "by_service",
        "changes",
        "charges",
        "growing",
        "item_changes",
    )

    def __init__(self, *, by_service: bool = False, charges: list[Charge] | None = None) -> None:
        self.charges = charges
        # Items that grow in tables with local indexes, whose collections have a largest size.
        self.growing: list[Mutation] = []
        self.changes: Changes = {}
        self.item_changes: list[ItemChange] = []
        self.by_service = by_service
        self._counts: list[tuple[Any, int, int]] = []
        self._tables: dict[bytes, Table] = {}

    def add(self, mutation: Mutation, consumed: Consumed | None = None) -> Consumed:
        """Add one mutation, and charge its capacity to ``consumed``, which is returned.

        Without ``consumed``, a new ``Consumed`` with only this mutation's capacity is returned.
        """
        table, old, new_item = mutation.table, mutation.old, mutation.new_item
        old_size = 0 if old is None else records.size_of(old)
        record: bytes | None = None
        new_size = mutation.new_size
        if new_item is not None:
            record = records.pack(new_item, new_size)
            self.changes[mutation.key] = record
            self._counts.append((table.counts, 1 if old is None else 0, new_size - old_size))
        elif old is not None:
            self.changes[mutation.key] = None
            self._counts.append((table.counts, -1, -old_size))
        if consumed is None:
            consumed = Consumed()
        units = write_units(max(old_size, new_size))
        consumed.table += units
        if self.charges is not None:
            self.charges.append((table, None, mutation.key, float(units)))
            if table.local_indexes and new_size > old_size:
                self.growing.append(mutation)
        if old is not None or record is not None:
            self._tables[table.stats_key] = table
            if table.is_observed:
                item = new_item or mutation.old_item or records.unpack(old or b"")
                self.item_changes.append(ItemChange(table, mutation.key, old, record, item))
            if table.indexes:
                self._index(mutation, record, consumed)
        return consumed

    def _index(self, mutation: Mutation, record: bytes | None, consumed: Consumed) -> None:
        table, old_item, new_item = mutation.table, mutation.old_item, mutation.new_item
        for index in table.indexes:
            if index.backfilled_to is not None and mutation.key >= index.backfilled_to:
                continue
            before = None if old_item is None else index.entry_key(old_item, mutation.key)
            if new_item is None:
                after = None
            elif old_item is not None and index.same_key(old_item, new_item):
                after = before
            else:
                after = index.entry_key(new_item, mutation.key)
            if before is None and after is None:
                continue
            units = self._replace_entry(index, mutation, record, before, after)
            if units:
                consumed.indexes[index.name] = consumed.indexes.get(index.name, 0.0) + units

    def _replace_entry(
        self,
        index: Index,
        mutation: Mutation,
        record: bytes | None,
        before: bytes | None,
        after: bytes | None,
    ) -> int:
        """Replace an index entry with another one. Return the write units this takes.

        ``before`` and ``after`` are the keys of the two entries; None means that there is none.
        ``record`` is the item's new record, or None if the item is deleted.
        """
        old_size = new_size = 0
        old_content: Item | None = None
        if before is not None:
            assert mutation.old is not None and mutation.old_item is not None
            if index.projected is None:
                old_content, old_size = mutation.old_item, records.size_of(mutation.old)
            else:
                old_content = index.project(mutation.old_item)
                old_size = item_size(old_content)
        if after is not None:
            assert mutation.new_item is not None and record is not None
            if index.projected is None:
                content, new_size, entry = mutation.new_item, mutation.new_size, record
            else:
                content = index.project(mutation.new_item)
                new_size = item_size(content)
                entry = records.pack(content, new_size)
            if before == after:
                if content == old_content:
                    return 0
                self.changes[after] = entry
                self._counts.append((index.counts, 0, new_size - old_size))
                units = write_units(max(old_size, new_size))
                self._charge_entry(index, mutation, after, units)
                return units
            self.changes[after] = entry
            self._counts.append((index.counts, 1, new_size))
        units = 0
        if after is not None:
            units = write_units(new_size)
            self._charge_entry(index, mutation, after, units)
        if before is not None:
            self.changes[before] = None
            self._counts.append((index.counts, -1, -old_size))
            removed = write_units(old_size)
            self._charge_entry(index, mutation, before, removed)
            units += removed
        return units

    def _charge_entry(self, index: Index, mutation: Mutation, entry: bytes, units: int) -> None:
        """Charge an index entry. An entry of a local index is charged to the item's partition."""
        if self.charges is None:
            return
        if index.is_global:
            self.charges.append((mutation.table, index, entry, float(units)))
        else:
            self.charges.append((mutation.table, None, mutation.key, float(units)))

    def take_over(self, part: Writer) -> None:
        """Add everything that another writer has collected."""
        self.changes.update(part.changes)
        self.growing += part.growing
        self.item_changes += part.item_changes
        self._counts += part._counts
        self._tables.update(part._tables)

    def copy(self, table: Table, key: bytes, record: bytes) -> None:
        """Add a stored record, with its index entries, under a key that has no item yet.

        Restores and imports use this. Observers do not see these items.
        """
        size = records.size_of(record)
        self.changes[key] = record
        self._counts.append((table.counts, 1, size))
        self._tables[table.stats_key] = table
        if table.indexes:
            item = records.unpack(record)
            self._index(Mutation(table, key, None, None, item, size), record, Consumed(0.0))

    def enter(self, index: Index, mutation: Mutation, record: bytes, entry: bytes) -> None:
        """Add an existing item to an index during the index's backfill.

        ``record`` is the item's record, and ``entry`` is the key of the new index entry.
        """
        self._replace_entry(index, mutation, record, None, entry)

    def finish(self) -> Changes:
        """Apply the counts, add them to the changes, and return the changes.

        Call it once, right before the batch is written.
        """
        for counts, items, size in self._counts:
            counts.items += items
            counts.size_bytes += size
        for key, table in self._tables.items():
            self.changes[key] = table.stats_record()
        return self.changes

    def undo(self) -> None:
        """Restore the counts after storage refused the batch."""
        for counts, items, size in self._counts:
            counts.items -= items
            counts.size_bytes -= size
