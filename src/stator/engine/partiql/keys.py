"""Reads the keys from a WHERE clause: the one item of a write, or the key ranges of a read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from stator.engine.tables.item_keys import wrong_statement_kind
from stator.engine.tables.key_schema import KeySchema
from stator.errors import ValidationFailed
from stator.expr.key_condition import KeyTest
from stator.expr.tree import (
    And,
    Between,
    Compare,
    Condition,
    Function,
    In,
    Literal,
    Not,
    Operand,
    Or,
    Path,
)
from stator.model.values import INVALID, Item, Value

NO_FULL_KEY: Final = "Where clause does not contain a mandatory equality on all key attributes"
_FLIPPED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Nested alternatives multiply. Beyond this many ranges a branch is read whole and filtered.
_MOST_BOXES: Final = 256


def conjuncts(condition: Condition | None) -> list[Condition]:
    if condition is None:
        return []
    if isinstance(condition, And):
        return [inner for operand in condition.operands for inner in conjuncts(operand)]
    return [condition]


def all_of(conditions: list[Condition]) -> Condition | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return And(tuple(conditions))


def split_key(
    condition: Condition | None, schema: KeySchema
) -> tuple[Item | None, list[Condition]]:
    """Return the primary key that the condition fixes, and the terms that are not part of the key.

    The key is None unless every key attribute is compared for equality. If a key attribute is
    compared with two values, the second comparison is one of the returned terms.
    """
    key: Item = {}
    rest: list[Condition] = []
    for term in conjuncts(condition):
        pinned = _equality(term)
        if pinned is None or pinned[0] not in schema.names or key.setdefault(*pinned) != pinned[1]:
            rest.append(term)
    return (key if len(key) == len(schema.names) else None), rest


def full_key(condition: Condition | None, schema: KeySchema) -> tuple[Item, list[Condition]]:
    """Return the primary key of the item that a statement writes, and the condition's other terms.

    Raises ValidationFailed unless the condition compares each key attribute with one value.
    """
    key, rest = split_key(condition, schema)
    for term in rest:
        pinned = _equality(term)
        if pinned is not None and pinned[0] in schema.names:
            raise ValidationFailed(
                f"Multiple conditions on same key {pinned[0]}. Only single item "
                "Update/Insert/Delete are supported"
            )
    if key is None:
        raise ValidationFailed(NO_FULL_KEY)
    return key, rest


def _equality(term: Condition) -> tuple[str, Value] | None:
    tested = key_test(term)
    if tested is None or tested[1].operator != "=":
        return None
    return tested[0], tested[1].values[0]


def key_test(term: Condition) -> tuple[str, KeyTest] | None:
    """Return the attribute and the key test of a term, or None if no key range can serve it.

    A key range can serve BETWEEN, begins_with and every comparison but ``<>``, if they compare a
    whole attribute with literals.
    """
    match term:
        case Compare("<>", _, _):
            return None
        case Compare(operator, Path((str() as name,)), Literal(value)):
            return name, KeyTest(operator, (value,))
        case Compare(operator, Literal(value), Path((str() as name,))):
            return name, KeyTest(_FLIPPED[operator], (value,))
        case Between(Path((str() as name,)), Literal(low), Literal(high)):
            return name, KeyTest("BETWEEN", (low, high))
        case Function("begins_with", (Path((str() as name,)), Literal(prefix))):
            return name, KeyTest("begins_with", (prefix,))
    return None


# -- ranges


@dataclass(frozen=True, slots=True)
class KeyBox:
    """A part of the table: one partition, or all of them, narrowed by tests of the sort key.

    ``partition`` is the partition key's value; None means all partitions.
    """

    partition: Value | None = None
    tests: tuple[KeyTest, ...] = ()

    def within(self, other: KeyBox) -> KeyBox | None:
        """Return the intersection of two boxes, or None if they name different partitions."""
        if (
            self.partition is not None
            and other.partition is not None
            and self.partition != other.partition
        ):
            return None
        partition = other.partition if self.partition is None else self.partition
        return KeyBox(partition, self.tests + other.tests)


def boxes(condition: Condition, schema: KeySchema) -> list[KeyBox]:
    """Return key boxes that together contain every item that can meet the condition."""
    match condition:
        case And(operands):
            found = [KeyBox()]
            for operand in operands:
                crossed = _crossed(found, boxes(operand, schema))
                found = found if crossed is None else crossed
            return found
        case Or(operands):
            return [box for operand in operands for box in boxes(operand, schema)]
        case In(Path((str() as name,)), options):
            values = [option.value for option in options if isinstance(option, Literal)]
            if len(values) == len(options):
                return [_box(schema, name, KeyTest("=", (value,))) for value in values]
    tested = key_test(condition)
    return [KeyBox() if tested is None else _box(schema, *tested)]


def _crossed(left: list[KeyBox], right: list[KeyBox]) -> list[KeyBox] | None:
    if len(left) * len(right) > _MOST_BOXES and len(right) > 1:
        return None
    pairs = (one.within(other) for one in left for other in right)
    return [box for box in pairs if box is not None]


def _box(schema: KeySchema, name: str, test: KeyTest) -> KeyBox:
    if name == schema.partition[0].name and test.operator == "=":
        return KeyBox(test.values[0])
    if schema.sort and name == schema.sort[0].name:
        return KeyBox(None, (test,))
    return KeyBox()


# -- operand types


def check_compared_kinds(condition: Condition, schema: KeySchema, *, keyed: bool) -> None:
    """Check that key attributes are compared only with values of their own type.

    AWS has one error text for statements that read by key (``keyed``) and another for scans.
    """
    kinds = dict(schema.attributes)
    for name, values in _compared(condition):
        if name in kinds and any(kinds[name] not in value for value in values):
            if keyed:
                raise wrong_statement_kind(name)
            raise ValidationFailed(f"{INVALID}Condition parameter type does not match schema type")


def _compared(node: Any) -> Iterator[tuple[str, list[Value]]]:
    match node:
        case And(operands) | Or(operands):
            for operand in operands:
                yield from _compared(operand)
        case Not(operand):
            yield from _compared(operand)
        case Compare(_, left, right):
            yield from _pair((left, right))
            yield from _pair((right, left))
        case Between(operand, low, high):
            yield from _pair((operand, low, high))
        case In(operand, options):
            yield from _pair((operand, *options))
        case Function("begins_with" | "contains", arguments):
            yield from _pair(arguments)


def _pair(operands: tuple[Operand, ...]) -> Iterator[tuple[str, list[Value]]]:
    first, *rest = operands
    if isinstance(first, Path) and len(first.parts) == 1:
        yield (
            str(first.parts[0]),
            [operand.value for operand in rest if isinstance(operand, Literal)],
        )
