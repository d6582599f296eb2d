"""What the single-item writes and transactions have in common: an action on one item.

An action knows its table's name and its condition, finds its key once the table is known, and turns the item as it
was into the item as it will be, without touching storage: the write path does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stator.engine.items import records
from stator.engine.items.item_reads import check_key_paths
from stator.engine.items.transaction_locks import TransactionLocks
from stator.engine.items.update_cost import update_cost
from stator.engine.items.write_path import Mutation
from stator.engine.tables.key_schema import (
    ItemRefused,
    check_index_keys,
    check_item_key,
    check_key,
    check_statement_key,
)
from stator.engine.tables.table import Table
from stator.errors import ConditionFailed, DuplicateItem, TransactionConflict, ValidationFailed
from stator.expr import update as updates
from stator.expr.condition import evaluate
from stator.expr.lexer import ExpressionError
from stator.expr.paths import project
from stator.expr.tree import (
    AddAction,
    Arithmetic,
    Condition,
    DeleteAction,
    Literal,
    Path,
    RemoveAction,
    SetAction,
    Update,
)
from stator.model.limits import ITEM_SIZE_BYTES, NESTING_LEVELS
from stator.model.values import INVALID, TOO_DEEP, Item, depth_of, item_size, kind_of, size_bytes
from stator.storage import Storage

PUT_TOO_LARGE = "Item size has exceeded the maximum allowed size"
UPDATE_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"


class ItemAction(Protocol):
    """One write of one item, parsed but not yet looked at with its table."""

    table_name: str
    condition: Condition | None
    return_item_on_failure: bool

    @property
    def keyed(self) -> Item:
        """Attributes among which the item's key is."""
        ...

    def locate(self, table: Table) -> bytes:
        """Check what concerns the table's schema, and give the item's storage key."""
        ...

    def apply(self, table: Table, old: Item | None) -> tuple[Item | None, int]:
        """The item after this action and its size; None for no item."""
        ...

    def touched(self) -> list[Path]:
        """The paths this action names, of which an UPDATED_ return tells."""
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
        if not table.schema.plainly_keyed(self.item):
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
    """A transaction's ConditionCheck: it is located as a delete is, and changes nothing."""

    def apply(self, table: Table, old: Item | None) -> tuple[Item | None, int]:
        raise AssertionError("a condition check changes nothing")


@dataclass(slots=True, init=False)
class ItemUpdate:
    table_name: str
    key: Item
    update: Update | None
    condition: Condition | None
    return_item_on_failure: bool
    nested: Sequence[Path]
    is_legacy: bool
    # Only a standalone ItemUpdate is charged for its clauses against the 400 KB limit, and only one with large values
    # can come near it.
    charged: bool
    by_statement: bool

    def __init__(
        self,
        table_name: str,
        key: Item,
        update: Update | None,
        condition: Condition | None,
        return_item_on_failure: bool = False,
        nested: Sequence[Path] = (),
        is_legacy: bool = False,
        charged: bool = False,
        by_statement: bool = False,
    ) -> None:
        self.table_name = table_name
        self.key = key
        self.update = update
        self.condition = condition
        self.return_item_on_failure = return_item_on_failure
        self.nested = nested
        self.is_legacy = is_legacy
        self.charged = charged
        self.by_statement = by_statement

    @property
    def keyed(self) -> Item:
        return self.key

    def locate(self, table: Table) -> bytes:
        if self.by_statement:
            check_statement_key(table.schema, self.key)
        check_key(table.schema, self.key)
        if self.update is not None:
            self._check_targets(table, self.update)
        else:
            check_key_paths(table.schema, self.nested)
        if self.charged and self.update is not None and update_cost(self.update) > ITEM_SIZE_BYTES:
            raise ValidationFailed(UPDATE_TOO_LARGE)
        return table.encode_key(self.key)

    def _check_targets(self, table: Table, update: Update) -> None:
        for action in update.actions:
            name = str(action.path.parts[0])
            if name in table.schema.names:
                raise ValidationFailed(
                    f"{INVALID}Cannot update attribute {name}. This attribute is part of the key"
                )
        check_key_paths(table.schema, self.nested)
        for action in update.actions:
            if action.path.parts[0] in table.index_key_names:
                for index in table.indexes:
                    self._check_index_target(index, action)

    def _check_index_target(self, index: Any, action: Any) -> None:
        name = str(action.path.parts[0])
        kind = next((key.kind for key in index.schema.attributes if key.name == name), None)
        if kind is None:
            return
        if len(action.path.parts) > 1:
            raise ValidationFailed(
                "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
                f"IndexKey: {name}"
            )
        if isinstance(action, (SetAction, AddAction)) and isinstance(action.value, Literal):
            actual = kind_of(action.value.value)
            if actual != kind:
                raise ValidationFailed(
                    f"{INVALID}Type mismatch for Index Key {name} Expected: {kind} "
                    f"Actual: {actual} IndexName: {index.name}"
                )

    def apply(self, table: Table, old: Item | None, old_size: int = 0) -> tuple[Item | None, int]:
        item = dict(self.key if old is None else old)
        if self.update is None:
            return item, old_size or item_size(item)
        if old is None and all(
            isinstance(action, (RemoveAction, DeleteAction)) for action in self.update.actions
        ):
            return None, 0  # nothing to take away, at whatever path, does not make an item
        try:
            updates.apply(self.update, item)
        except ExpressionError as error:
            if self.is_legacy:
                raise ValidationFailed("Type mismatch for attribute to update") from None
            raise ValidationFailed(error.message) from None
        size = item_size(item) if old is None else old_size + self._growth(old, item)
        if size > ITEM_SIZE_BYTES:
            raise ValidationFailed(UPDATE_TOO_LARGE)
        self._check_depth(item)
        if table.index_key_names and any(
            action.path.parts[0] in table.index_key_names for action in self.update.actions
        ):
            self._check_index_values(table, item)
        return item, size

    def _check_depth(self, item: Item) -> None:
        assert self.update is not None
        for action in self.update.actions:
            if isinstance(action, SetAction) and not isinstance(action.value, Arithmetic):
                value = item.get(str(action.path.parts[0]))
                if value is not None and depth_of(value) > NESTING_LEVELS:
                    raise ValidationFailed(TOO_DEEP)

    def _growth(self, old: Item, new: Item) -> int:
        """How much larger the item became: only the attributes the update names can have changed."""
        assert self.update is not None
        growth = 0
        for name in {str(action.path.parts[0]) for action in self.update.actions}:
            for item, sign in ((new, 1), (old, -1)):
                if name in item:
                    growth += sign * (len(name.encode()) + size_bytes(item[name]))
        return growth

    def _check_index_values(self, table: Table, item: Item) -> None:
        for index in table.indexes:
            for name, kind in index.schema.attributes:
                value = item.get(name)
                if value is None:
                    continue
                if kind not in value:
                    raise ValidationFailed(
                        "The update expression attempted to update the secondary index key to unsupported type"
                    )
                if kind != "N" and value[kind] == "":
                    word = "string" if kind == "S" else "binary"
                    raise ItemRefused(
                        "One or more parameter values are not valid. The update expression attempted to update a "
                        "secondary index key to a value that is not supported. The AttributeValue for a key "
                        f"attribute cannot contain an empty {word} value."
                    )
        check_index_keys(table.indexes, item)

    def touched(self) -> list[Path]:
        return [] if self.update is None else [action.path for action in self.update.actions]


def prepare(
    storage: Storage, locks: TransactionLocks, table: Table, action: ItemAction, *, needs_old: bool
) -> tuple[Mutation, Item | None]:
    """Locate, check the condition and apply one action of a request of its own."""
    key = action.locate(table)
    if locks.holds(key):
        raise TransactionConflict
    old = storage.get(key)
    return mutate(table, action, key, old, needs_old=needs_old)


def mutate(
    table: Table, action: ItemAction, key: bytes, old: bytes | None, *, needs_old: bool
) -> tuple[Mutation, Item | None]:
    """The mutation an action makes of a stored record, and the item before it where somebody needs that."""
    if old is not None and isinstance(action, ItemInsert):
        raise DuplicateItem
    old_item: Item | None = None
    if old is not None and (needs_old or table.indexes or action.condition is not None):
        old_item = records.unpack(old)
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
    wanted: str, old: Item | None, new: Item | None, touched: list[Path]
) -> Item | None:
    """The Attributes of a reply, by ReturnValues; None when there are none to return."""
    match wanted:
        case "ALL_OLD":
            return old
        case "ALL_NEW":
            return new
        case "UPDATED_OLD":
            return project(old, touched) if old else None
        case "UPDATED_NEW":
            return project(new, touched) if new else None
    return None
