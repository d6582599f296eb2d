"""Item actions: one write of one item, by a single-item operation, a transaction or PartiQL.

An action holds its table's name and its condition. Given the table, ``locate`` returns the item's
storage key. Given the item before the write, ``apply`` returns the item after it. Actions do not
touch storage; the write path does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stator.engine.items import records
from stator.engine.items.item_update import ItemUpdate
from stator.engine.items.transaction_locks import TransactionLocks
from stator.engine.items.write_path import Mutation
from stator.engine.tables.item_keys import (
    ItemRefused,
    check_index_keys,
    check_item_key,
    check_key,
    check_key_paths,
    check_statement_key,
)
from stator.engine.tables.table import Table
from stator.errors import ConditionFailed, DuplicateItem, TransactionConflict
from stator.expr.condition import evaluate
from stator.expr.paths import project
from stator.expr.tree import (
    Condition,
    Path,
)
from stator.model.limits import ITEM_SIZE_BYTES
from stator.model.values import Item
from stator.storage import Storage

PUT_TOO_LARGE = "Item size has exceeded the maximum allowed size"


class ItemAction(Protocol):
    """One write of one item, parsed but not yet checked against its table."""

    table_name: str
    condition: Condition | None
    return_item_on_failure: bool

    @property
    def keyed(self) -> Item:
        """The attributes from which the item's key is taken."""
        ...

    def locate(self, table: Table) -> bytes:
        """Check the action against the table's schema. Return the item's storage key."""
        ...

    def apply(self, table: Table, old: Item | None) -> tuple[Item | None, int]:
        """Return the item after this action, and its size. None means that no item remains."""
        ...

    def touched(self) -> list[Path]:
        """Return the paths that an update names as targets; other actions have none.

        UPDATED_OLD and UPDATED_NEW return the values at these paths.
        """
        ...


@dataclass(slots=True, init=False)
class ItemPut:
    table_name: str
    item: Item
    size: int
    condition: Condition | None
    return_item_on_failure: bool
    nested: Sequence[Path]

    def __init__(
        self,
        table_name: str,
        item: Item,
        size: int,
        condition: Condition | None,
        return_item_on_failure: bool = False,
        nested: Sequence[Path] = (),
    ) -> None:
        self.table_name = table_name
        self.item = item
        self.size = size
        self.condition = condition
        self.return_item_on_failure = return_item_on_failure
        self.nested = nested

    def locate(self, table: Table) -> bytes:
        if not table.schema.has_plain_key(self.item):
            check_item_key(table.schema, self.item)
        if self.size > ITEM_SIZE_BYTES:
            raise ItemRefused(PUT_TOO_LARGE)
        if table.indexes:
            check_index_keys(table.indexes, self.item)
        if self.nested:
            check_key_paths(table.schema, self.nested)
        return table.encode_key(self.item)

    @property
    def keyed(self) -> Item:
        return self.item

    def apply(self, table: Table, old: Item | None) -> tuple[Item | None, int]:
        return self.item, self.size

    def touched(self) -> list[Path]:
        return []


class ItemInsert(ItemPut):
    """PartiQL's INSERT: a put that never replaces an item."""

    def locate(self, table: Table) -> bytes:
        check_statement_key(table.schema, self.item)
        return ItemPut.locate(self, table)


@dataclass(slots=True, init=False)
class ItemDelete:
    table_name: str
    key: Item
    condition: Condition | None
    return_item_on_failure: bool
    nested: Sequence[Path]
    # Whether a PartiQL statement names the key: AWS words errors about its types differently.
    by_statement: bool

    def __init__(
        self,
        table_name: str,
        key: Item,
        condition: Condition | None,
        return_item_on_failure: bool = False,
        nested: Sequence[Path] = (),
        by_statement: bool = False,
    ) -> None:
        self.table_name = table_name
        self.key = key
        self.condition = condition
        self.return_item_on_failure = return_item_on_failure
        self.nested = nested
        self.by_statement = by_statement

    @property
    def keyed(self) -> Item:
        return self.key

    def locate(self, table: Table) -> bytes:
        if self.by_statement:
            check_statement_key(table.schema, self.key)
        check_key(table.schema, self.key)
        check_key_paths(table.schema, self.nested)
        return table.encode_key(self.key)

    def apply(self, table: Table, old: Item | None) -> tuple[Item | None, int]:
        return None, 0

    def touched(self) -> list[Path]:
        return []


class ItemCheck(ItemDelete):
    """A transaction's ConditionCheck. Like a delete, it names an item by key; it writes nothing."""

    def apply(self, table: Table, old: Item | None) -> tuple[Item | None, int]:
        raise AssertionError("a condition check changes nothing")


def prepare(
    storage: Storage, locks: TransactionLocks, table: Table, action: ItemAction, *, needs_old: bool
) -> tuple[Mutation, Item | None]:
    """Apply the action of a single-item request. Return the mutation and the item before it.

    ``needs_old`` has the same meaning as in ``mutate``. Nothing is written. Raises ConditionFailed
    if the condition does not hold, and TransactionConflict if a transaction holds the item.
    """
    key = action.locate(table)
    if locks.holds(key):
        raise TransactionConflict
    old = storage.get(key)
    return mutate(table, action, key, old, needs_old=needs_old)


def mutate(
    table: Table, action: ItemAction, key: bytes, old: bytes | None, *, needs_old: bool
) -> tuple[Mutation, Item | None]:
    """Apply an action to a stored record. Return the mutation and the item before it.

    With ``needs_old``, the old item is always decoded. Otherwise it is decoded only if the action
    has a condition or the table has an index. An old item that is not decoded is returned as None.
    """
    if old is not None and isinstance(action, ItemInsert):
        raise DuplicateItem
    old_item: Item | None = None
    if old is not None and (needs_old or table.indexes or action.condition is not None):
        old_item = records.unpack(old)
    if action.condition is not None:
        check_condition(action, old_item)
    if isinstance(action, ItemUpdate):
        if old is None:
            new_item, size = action.apply(table, None)
        else:
            new_item, size = action.apply(
                table, old_item or records.unpack(old), records.size_of(old)
            )
    else:
        new_item, size = action.apply(table, old_item)
    return Mutation(table, key, old, old_item, new_item, size), old_item


def check_condition(action: ItemAction, old_item: Item | None) -> None:
    condition = action.condition
    if condition is None or evaluate(condition, old_item or {}):
        return
    item = old_item if action.return_item_on_failure else None
    raise ConditionFailed(item=item)


def returned_values(
    returns: str, old: Item | None, new: Item | None, touched: list[Path]
) -> Item | None:
    """Return the Attributes of an answer according to ReturnValues, or None if there are none.

    ``touched`` are the target paths of an update (see ``ItemAction.touched``).
    """
    match returns:
        case "ALL_OLD":
            return old
        case "ALL_NEW":
            return new
        case "UPDATED_OLD":
            return project(old, touched) if old else None
        case "UPDATED_NEW":
            return project(new, touched) if new else None
    return None
