"""The update of one item, by UpdateItem, a transaction or PartiQL's UPDATE.

AWS limits the updated item to 400 KB. A standalone UpdateItem has a second limit of the same size,
for the update expression with its values. AWS checks it before it evaluates the condition, and
counts the bytes by a rule of its own (``update_cost``). The public paritysuite conformance suite
captured the figures of this rule from AWS (eu-west-2, October 2026).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stator.engine.tables.item_keys import (
    ItemRefused,
    check_index_keys,
    check_key,
    check_key_paths,
    check_statement_key,
)
from stator.engine.tables.table import Table
from stator.errors import ValidationFailed
from stator.expr.lexer import ExpressionError
from stator.expr.tree import (
    AddAction,
    Arithmetic,
    Condition,
    DeleteAction,
    Function,
    Literal,
    Operand,
    Path,
    RemoveAction,
    SetAction,
    UpdateExpression,
)
from stator.expr.update import PlannedUpdate
from stator.model.limits import ITEM_SIZE_BYTES, NESTING_LEVELS
from stator.model.values import INVALID, TOO_DEEP, Item, item_size, kind_of, shared_size_bytes

UPDATE_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"
_OPERATOR_COST = {"+": 34, "-": 37, "if_not_exists": 39, "list_append": 37}


@dataclass(slots=True, init=False)
class ItemUpdate:
    table_name: str
    key: Item
    update: UpdateExpression | None
    condition: Condition | None
    return_item_on_failure: bool
    nested: Sequence[Path]
    is_legacy: bool
    # Only a standalone UpdateItem is charged for its clauses. Only one with large values can come
    # near the limit.
    charged: bool
    by_statement: bool

    def __init__(
        self,
        table_name: str,
        key: Item,
        update: UpdateExpression | None,
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

    def _check_targets(self, table: Table, update: UpdateExpression) -> None:
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
                "Key attributes must be scalars; list random access '[]' and map lookup '.' are "
                f"not allowed: IndexKey: {name}"
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
            return None, 0  # removing from an item that does not exist does not create it
        try:
            planned = PlannedUpdate(self.update, item)
        except ExpressionError as error:
            if self.is_legacy:
                raise ValidationFailed("Type mismatch for attribute to update") from None
            raise ValidationFailed(error.message) from None
        # The finished item is measured before it is made: a short expression may ask for gigabytes.
        size = (item_size(item) if old is None else old_size) + planned.growth
        if size > ITEM_SIZE_BYTES:
            raise ValidationFailed(UPDATE_TOO_LARGE)
        if planned.depth() > NESTING_LEVELS:
            raise ValidationFailed(TOO_DEEP)
        planned.carry_out(item)
        if table.index_key_names and any(
            action.path.parts[0] in table.index_key_names for action in self.update.actions
        ):
            self._check_index_values(table, item)
        return item, size

    def _check_index_values(self, table: Table, item: Item) -> None:
        for index in table.indexes:
            for name, kind in index.schema.attributes:
                value = item.get(name)
                if value is None:
                    continue
                if kind not in value:
                    raise ValidationFailed(
                        "The update expression attempted to update the secondary index "
                        "key to unsupported type"
                    )
                if kind != "N" and value[kind] == "":
                    word = "string" if kind == "S" else "binary"
                    raise ItemRefused(
                        "One or more parameter values are not valid. The update expression "
                        "attempted to update a secondary index key to a value that is not "
                        "supported. The AttributeValue for a key attribute cannot contain an "
                        f"empty {word} value."
                    )
        check_index_keys(table.indexes, item)

    def touched(self) -> list[Path]:
        return [] if self.update is None else [action.path for action in self.update.actions]


def update_cost(update: UpdateExpression) -> int:
    known: dict[int, int] = {}
    return 3 + sum([_action_cost(action, known) for action in update.actions])


def _action_cost(action: object, known: dict[int, int]) -> int:
    if isinstance(action, (SetAction, AddAction)):
        return 19 + _target(action.path) + _operand(action.value, known)
    return 1 + _target(action.path)  # type: ignore[attr-defined]


def _target(path: Path) -> int:
    first, *rest = path.parts
    return len(str(first).encode()) + sum(4 + len(str(part).encode()) for part in rest)


def _operand(node: Operand, known: dict[int, int]) -> int:
    match node:
        case Literal(value):
            return shared_size_bytes(value, known)
        case Path(parts):
            return 1 + sum(14 + len(str(part).encode()) for part in parts)
        case Arithmetic(operator, left, right):
            return _OPERATOR_COST[operator] + _operand(left, known) + _operand(right, known)
        case Function(name, arguments):
            return _OPERATOR_COST[name] + sum([_operand(each, known) for each in arguments])
    return 0
