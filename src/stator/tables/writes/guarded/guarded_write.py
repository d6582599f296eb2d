"""Guarded writes as a caller describes them: a put, an update or a delete of one item.

Each is carried out in steps. A step is one conditional request about the item:

    insert    creates the item if it does not exist
    update    changes the stored item if the guard condition is true for it
    delete    removes the stored item if the guard condition is true for it
    put       stores the item, whether or not it exists; always a request of its own
    read      reads the item, to find out why a step was refused

PartiQL has no put: an UPDATE cannot create an item, and it keeps attributes that it does not name.
A put therefore becomes an insert, and an update if the item exists. The update must name every
attribute that the stored item may have: ``shape``. Items of another entity version have another
shape, so the update also requires that the stored item has the version of the new one. An item of
another version, or any item if there is no shape, is replaced by a PutItem of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

from stator.design.entities.entity_versions import VERSION_ATTRIBUTE
from stator.errors import RequestRefused
from stator.expr.compare import compare
from stator.model.values import Item, Value, item_size, normalise
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.guarded.guard_condition import GuardCondition
from stator.tables.writes.guarded.statement_text import (
    NotInPartiQL,
    delete_text,
    insert_text,
    quoted,
    update_text,
)

Step = Literal["insert", "update", "delete", "put", "read"]
# The key under which a PartiQL text is cached. It has everything on which the text depends except
# the table; values are parameters and do not matter.
TextKey = tuple[Any, ...]
_STORED = "#__stored"


@dataclass(frozen=True, slots=True)
class AppliedProof:
    """Evidence in the stored item that a write was applied, although its answer was lost.

    The write stores ``value`` in ``attribute``. If no other write stores this value (a write
    token), an equal stored value is the proof. ``reached`` says that a higher stored value is a
    proof, too. This needs writers that store rising values in order, without gaps, such as
    positions in a log.
    """

    attribute: str
    value: Value
    reached: bool = False

    def is_in(self, stored: Item | None) -> bool:
        found = None if stored is None else stored.get(self.attribute)
        if found is None:
            return False
        left, right = dict(found), dict(self.value)
        normalise(left)
        normalise(right)
        return compare("=", left, right) or (self.reached and compare(">", left, right))


@dataclass(slots=True, eq=False)
class GuardedPut:
    """Stores a whole item if the guard condition is true for the stored item, or for its absence.

    ``key_names`` are the attributes of the table's key, the partition key first. ``shape`` names
    every attribute that a stored item of this kind may have, if that is known. ``size_bytes`` is
    the item's size, if the caller knows it. ``expects_item`` says that an item probably exists, so
    that an INSERT would be refused.
    """

    table: str
    key_names: tuple[str, ...]
    item: Item
    guard: GuardCondition
    shape: frozenset[str] | None = None
    proof: AppliedProof | None = None
    size_bytes: int = 0
    expects_item: bool = False
    uncertain: bool = False
    """Set by the writer: an earlier attempt may have been applied."""

    @property
    def key(self) -> Item:
        return {name: self.item[name] for name in self.key_names}

    @property
    def size(self) -> int:
        return self.size_bytes or item_size(self.item)

    @property
    def repeatable(self) -> bool:
        return True

    def can(self, step: Step) -> bool:
        case = self.guard.case(self.key_names)
        if step == "insert":
            return self.guard.allows_absent(case)
        if step == "update":
            return self.shape is not None and case.where not in (None, False)
        return step == "put"

    def text_key(self, step: Step) -> TextKey:
        if step == "insert":
            return ("insert", *self.item)
        guard = self.guard
        return ("update", self.key_names, self.shape, guard.text, guard.names, *self.item)

    def text(self, step: Step) -> str:
        if step == "insert":
            return insert_text(self.table, self.item)
        if self.shape is None:
            raise NotInPartiQL
        assigned = [name for name in self.item if name not in self.key_names]
        removed = sorted(self.shape.difference(self.item))
        guard = _where(self.guard, self.key_names)
        same = "= ?" if VERSION_ATTRIBUTE in self.item else "IS MISSING"
        where = f"{quoted(VERSION_ATTRIBUTE)} {same}" + (f" AND ({guard})" if guard else "")
        return update_text(self.table, assigned, (), (), removed, self.key_names, where)

    def parameters(self, step: Step) -> list[Value]:
        item = self.item
        if step == "insert":
            return list(item.values())
        assigned = [value for name, value in item.items() if name not in self.key_names]
        return [
            *assigned,
            *(item[name] for name in self.key_names),
            *((item[VERSION_ATTRIBUTE],) if VERSION_ATTRIBUTE in item else ()),
            *_values(self.guard, self.key_names),
        ]

    def has_version_of(self, stored: Item) -> bool:
        """Whether the stored item has the entity version of the new one, so that UPDATE fits."""
        return stored.get(VERSION_ATTRIBUTE) == self.item.get(VERSION_ATTRIBUTE)

    def call(self, step: Step) -> tuple[str, dict[str, Any]]:
        """Return the operation and request of a step without PartiQL: a PutItem for every step."""
        request = {"TableName": self.table, "Item": self.item, **self.guard.parameters()}
        return "PutItem", request


@dataclass(slots=True, eq=False)
class GuardedUpdate:
    """Changes some attributes of an item if the guard condition is true for the stored item.

    ``assigned`` sets attributes, ``added`` adds to numbers that the item has, ``united`` adds
    members to sets, and ``removed`` removes attributes. ``created`` is the whole item to store if
    there is none and the condition is true for an absent item. Without it, an item that does not
    exist makes the write stale.

    ``added`` needs a ``proof`` to be exact: without one, a lost answer leaves the outcome unknown.
    """

    table: str
    key: Item
    guard: GuardCondition
    assigned: Mapping[str, Value] = field(default_factory=dict)
    added: Mapping[str, Value] = field(default_factory=dict)
    united: Mapping[str, Value] = field(default_factory=dict)
    removed: Sequence[str] = ()
    created: Item | None = None
    proof: AppliedProof | None = None
    uncertain: bool = False
    """Set by the writer: an earlier attempt may have been applied."""

    def __post_init__(self) -> None:
        if not (self.assigned or self.added or self.united or self.removed):
            raise RequestRefused(
                f"a guarded update of {self.table} changes nothing",
                hint="give it something to set, to add or to remove",
            )
        named = [*self.assigned, *self.added, *self.united, *self.removed]
        twice = sorted({name for name in named if named.count(name) > 1 or name in self.key})
        if twice:
            raise RequestRefused(
                f"a guarded update of {self.table} cannot change {twice[0]!r}: the attribute is "
                "named twice, or is part of the key",
                hint="name each attribute once, and none of the key",
            )

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(self.key)

    @property
    def size(self) -> int:
        parts = (self.key, dict(self.assigned), dict(self.added), dict(self.united))
        sizes = map(item_size, parts)
        return max(sum(sizes), 0 if self.created is None else item_size(self.created))

    @property
    def repeatable(self) -> bool:
        return not self.added or self.proof is not None

    def can(self, step: Step) -> bool:
        if step == "insert":
            case = self.guard.case(self.key_names)
            return self.created is not None and self.guard.allows_absent(case)
        return step == "update"

    def text_key(self, step: Step) -> TextKey:
        if step == "insert":
            return ("insert", *(self.created or ()))
        names = tuple(self.assigned), tuple(self.added), tuple(self.united), tuple(self.removed)
        return ("update", self.key_names, self.guard.text, self.guard.names, *names)

    def text(self, step: Step) -> str:
        if step == "insert":
            return insert_text(self.table, self.created or ())
        where = _where(self.guard, self.key_names)
        return update_text(
            self.table, self.assigned, self.added, self.united, self.removed, self.key_names, where
        )

    def parameters(self, step: Step) -> list[Value]:
        if step == "insert":
            return list((self.created or {}).values())
        return [
            *self.assigned.values(),
            *self.added.values(),
            *self.united.values(),
            *self.key.values(),
            *_values(self.guard, self.key_names),
        ]

    def call(self, step: Step) -> tuple[str, dict[str, Any]]:
        """Return the operation and request that carry out a step without PartiQL."""
        if step == "insert":
            absent = GuardCondition.absent(self.key_names[0])
            return "PutItem", {
                "TableName": self.table,
                "Item": self.created,
                **absent.parameters(),
            }
        return "UpdateItem", _stored_and(self.guard, self.key, self._update_request())

    def _update_request(self) -> dict[str, Any]:
        written = Expressions()
        changes = [
            f"{written.name(name)} = {written.value(value)}"
            for name, value in self.assigned.items()
        ]
        changes += [
            f"{written.name(name)} = {written.name(name)} + {written.value(value)}"
            for name, value in self.added.items()
        ]
        text = f"SET {', '.join(changes)}" if changes else ""
        if self.removed:
            text += f" REMOVE {', '.join(map(written.name, self.removed))}"
        if self.united:
            members = [
                f"{written.name(name)} {written.value(value)}"
                for name, value in self.united.items()
            ]
            text += f" ADD {', '.join(members)}"
        return written.into({"TableName": self.table, "UpdateExpression": text.strip()})


@dataclass(slots=True, eq=False)
class GuardedDelete:
    """Deletes an item if the guard condition is true for it. Deleting no item succeeds."""

    table: str
    key: Item
    guard: GuardCondition
    proof: AppliedProof | None = None
    uncertain: bool = False
    """Set by the writer: an earlier attempt may have been applied."""

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(self.key)

    @property
    def size(self) -> int:
        return item_size(self.key)

    @property
    def repeatable(self) -> bool:
        return True

    def can(self, step: Step) -> bool:
        return step == "delete"

    def text_key(self, step: Step) -> TextKey:
        return ("delete", self.key_names, self.guard.text, self.guard.names)

    def text(self, step: Step) -> str:
        return delete_text(self.table, self.key_names, _where(self.guard, self.key_names))

    def parameters(self, step: Step) -> list[Value]:
        return [*self.key.values(), *_values(self.guard, self.key_names)]

    def call(self, step: Step) -> tuple[str, dict[str, Any]]:
        """Return the operation and request that carry out a step without PartiQL."""
        return "DeleteItem", _unless_absent(self.guard, self.key, {"TableName": self.table})


GuardedWrite = Union[GuardedPut, GuardedUpdate, GuardedDelete]


def _where(guard: GuardCondition, key_names: tuple[str, ...]) -> str | None:
    """Return the guard condition on a stored item in PartiQL, or None if it is always true.

    Raises NotInPartiQL if PartiQL cannot express it, or if it is never true.
    """
    where = guard.case(key_names).where
    if where is None or where is False:
        raise NotInPartiQL
    return None if where is True else where


def _values(guard: GuardCondition, key_names: tuple[str, ...]) -> list[Value]:
    values = guard.values or {}
    return [values[name] for name in guard.case(key_names).parameters]


def _stored_and(guard: GuardCondition, key: Item, request: dict[str, Any]) -> dict[str, Any]:
    """Return the request with a condition that the item exists and meets the guard.

    Without this condition, UpdateItem would create a missing item. PartiQL's UPDATE never does.
    """
    return _conditional(guard, key, request, f"attribute_exists({_STORED}) AND ({guard.text})")


def _unless_absent(guard: GuardCondition, key: Item, request: dict[str, Any]) -> dict[str, Any]:
    """Return the request with a condition that the item is absent or meets the guard.

    A DeleteItem then succeeds if there is no item, like PartiQL's DELETE.
    """
    return _conditional(guard, key, request, f"attribute_not_exists({_STORED}) OR ({guard.text})")


def _conditional(
    guard: GuardCondition, key: Item, request: dict[str, Any], condition: str
) -> dict[str, Any]:
    names = dict(request.get("ExpressionAttributeNames") or {}) | dict(guard.names)
    made = request | {
        "Key": key,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names | {_STORED: next(iter(key))},
    }
    values = dict(request.get("ExpressionAttributeValues") or {}) | dict(guard.values or {})
    if values:
        made["ExpressionAttributeValues"] = values
    return made
