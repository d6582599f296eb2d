"""Guard conditions: the condition of a guarded write, as an expression and as PartiQL.

A condition is written in DynamoDB's expression language, with placeholders for names and values. A
write in a request of its own sends the expression unchanged. In a batch, a write is a PartiQL
statement. To choose the statement, the writer asks two questions about the condition:

- Is it true if there is no item? If so, an INSERT may create the item.
- What must a stored item meet? That becomes the WHERE clause of an UPDATE or DELETE.

For ``attribute_not_exists(pk) OR at < :at``, with ``pk`` in the table's key, the first answer is
yes. The second answer is ``"at" < ?``, because a stored item always has its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from stator.expr.bind import bind_condition
from stator.expr.condition import evaluate
from stator.expr.names import parse_with_names
from stator.expr.parser import parse_condition
from stator.expr.tree import (
    And,
    Between,
    Compare,
    Condition,
    Function,
    In,
    Not,
    Operand,
    Or,
    Path,
    Placeholder,
)
from stator.model.values import Item, Value, normalise, normalise_item
from stator.tables.writes.guarded.statement_text import NotInPartiQL, quoted_path

Names = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class GuardCondition:
    """The condition of one write: an expression, its names, and its values.

    ``names`` pairs each ``#placeholder`` with an attribute. The parsed condition is cached by
    ``text`` and ``names``, so put changing values into ``values``.
    """

    text: str
    names: Names = ()
    values: Mapping[str, Value] | None = None

    @classmethod
    def absent(cls, key_attribute: str) -> GuardCondition:
        """Return the condition that no item has the key. ``key_attribute`` is part of the key."""
        return cls("attribute_not_exists(#key)", (("#key", key_attribute),))

    @classmethod
    def newer(cls, attribute: str, value: Value) -> GuardCondition:
        """Return the condition that the stored ``attribute`` is lower than ``value``, or absent."""
        text = "attribute_not_exists(#guard) OR #guard < :guard"
        return cls(text, (("#guard", attribute),), {":guard": value})

    def parameters(self) -> dict[str, Any]:
        """Return the ConditionExpression with its names and values, as parameters of a request."""
        made: dict[str, Any] = {"ConditionExpression": self.text}
        if self.names:
            made["ExpressionAttributeNames"] = dict(self.names)
        if self.values:
            made["ExpressionAttributeValues"] = dict(self.values)
        return made

    def case(self, key_names: tuple[str, ...]) -> GuardCase:
        """Return for which items the condition is true, in a table with these key attributes."""
        return _guard_case(self.text, self.names, key_names)

    def allows_absent(self, case: GuardCase) -> bool:
        """Whether the condition is true for an absent item."""
        return self.holds(None) if case.absent is None else case.absent

    def holds(self, stored: Item | None) -> bool:
        """Whether the condition is true for an item that was read. Normalises the item in place."""
        values = {name: _normal(value) for name, value in (self.values or {}).items()}
        if stored:
            normalise_item(stored)
        parsed = parse_with_names(parse_condition, self.text, self.names)
        return evaluate(bind_condition(parsed, None, values), stored or {})


@dataclass(frozen=True, slots=True)
class GuardCase:
    """When a condition is true: for an absent item, and for a stored one.

    ``absent`` is the answer for an absent item, or None if the answer depends on the values.

    ``where`` is the condition on a stored item as PartiQL text. ``where`` is True or False if every
    stored item gives the same answer, and None if PartiQL cannot express the condition.
    ``parameters`` names the placeholder of each parameter in ``where``, in order.
    """

    absent: bool | None
    where: str | bool | None
    parameters: tuple[str, ...]


@lru_cache(maxsize=1024)
def _guard_case(text: str, names: Names, key_names: tuple[str, ...]) -> GuardCase:
    tree: Any = parse_with_names(parse_condition, text, names).tree
    try:
        left = _on_stored(tree, key_names)
        writer = _WhereWriter(key_names)
        where = left if isinstance(left, bool) else writer.condition(left)
    except NotInPartiQL:
        return GuardCase(_on_absent(tree), None, ())
    return GuardCase(_on_absent(tree), where, tuple(writer.parameters))


def _normal(value: Value) -> Value:
    copied = dict(value)
    normalise(copied)
    return copied


# -- an absent item


def _on_absent(node: Condition) -> bool | None:
    """Return the truth of a condition on an absent item, or None if it depends on values."""
    match node:
        case And(operands):
            found = [_on_absent(operand) for operand in operands]
            return False if False in found else None if None in found else True
        case Or(operands):
            found = [_on_absent(operand) for operand in operands]
            return True if True in found else None if None in found else False
        case Not(operand):
            inner = _on_absent(operand)
            return None if inner is None else not inner
        case Compare(operator, left, right):
            if _is_read(left) or _is_read(right):
                return operator == "<>"  # a missing value differs from every other
            return None
        case Between(operand, _, _) | In(operand, _):
            return False if _is_read(operand) else None
        case Function("attribute_not_exists", _):
            return True
        case Function(_, arguments):
            return False if any(map(_is_read, arguments)) else None
    raise AssertionError(node)


def _is_read(operand: Operand) -> bool:
    """Whether an operand reads the item: a path, or the size of one."""
    return isinstance(operand, Path) or (
        isinstance(operand, Function) and any(map(_is_read, operand.arguments))
    )


# -- a stored item


def _on_stored(node: Condition, key_names: tuple[str, ...]) -> Condition | bool:
    """Simplify a condition for an item that exists. Every stored item has its key attributes."""
    match node:
        case Function("attribute_exists" | "attribute_not_exists" as name, (Path((first,)),)):
            return name == "attribute_exists" if first in key_names else node
        case Not(operand):
            inner = _on_stored(operand, key_names)
            return not inner if isinstance(inner, bool) else Not(inner)
        case And(operands):
            return _joined(And, [_on_stored(each, key_names) for each in operands], decisive=False)
        case Or(operands):
            return _joined(Or, [_on_stored(each, key_names) for each in operands], decisive=True)
    return node


def _joined(
    junction: type[And] | type[Or], operands: list[Condition | bool], *, decisive: bool
) -> Condition | bool:
    """Join operands with AND or OR, and simplify operands that are True or False.

    ``decisive`` is the operand that decides the result alone: False for AND, True for OR. Operands
    with the opposite value are dropped.
    """
    if any(each is decisive for each in operands):
        return decisive
    left = [each for each in operands if not isinstance(each, bool)]
    if not left:
        return not decisive
    return left[0] if len(left) == 1 else junction(tuple(left))


class _WhereWriter:
    """Writes a condition as a WHERE clause. ``parameters`` collects its placeholders in order.

    A WHERE clause names the item by its key. AWS refuses further comparisons with key attributes,
    so a condition with one raises NotInPartiQL.
    """

    def __init__(self, key_names: tuple[str, ...]) -> None:
        self._key_names = key_names
        self.parameters: list[str] = []

    def condition(self, node: Condition) -> str:
        match node:
            case And(operands):
                return "(" + " AND ".join(map(self.condition, operands)) + ")"
            case Or(operands):
                return "(" + " OR ".join(map(self.condition, operands)) + ")"
            case Not(operand):
                return f"NOT ({self.condition(operand)})"
            case Compare(operator, left, right):
                return f"{self._operand(left)} {operator} {self._operand(right)}"
            case Between(operand, low, high):
                shown = self._operand(operand), self._operand(low), self._operand(high)
                return "{} BETWEEN {} AND {}".format(*shown)
            case In(operand, options):
                shown_operand = self._operand(operand)
                return f"{shown_operand} IN [{', '.join(map(self._operand, options))}]"
            case Function("attribute_exists", (path,)):
                return f"{self._operand(path)} IS NOT MISSING"
            case Function("attribute_not_exists", (path,)):
                return f"{self._operand(path)} IS MISSING"
            case Function(name, arguments):
                return f"{name}({', '.join(map(self._operand, arguments))})"
        raise AssertionError(node)

    def _operand(self, node: Operand) -> str:
        match node:
            case Path(parts):
                if parts[0] in self._key_names:
                    raise NotInPartiQL
                return quoted_path(parts)
            case Placeholder(name):
                self.parameters.append(name)
                return "?"
            case Function(name, arguments):
                return f"{name}({', '.join(map(self._operand, arguments))})"
        raise NotInPartiQL
