"""Statements: single writes with their conditions, and what a failed condition means.

Every write becomes one statement, or several where a unique value has to be guarded. One is sent by itself, as PutItem, UpdateItem or
DeleteItem; several are sent as one transaction. Either way a condition that fails is told by its statement what it means: the item was
there already, somebody else has changed it, the value is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stator.errors import (
    ConditionFailed,
    ItemExists,
    ItemNotFound,
    ValidationFailed,
    VersionConflict,
)
from stator.model.values import Item, Value
from stator.tables.blobs.blobs import blob_keys, plain
from stator.tables.schema import EntityMap
from stator.tables.writes.expressions import Expressions, joined

Kind = Literal["Put", "Update", "Delete", "ConditionCheck"]
Meaning = Callable[[Item | None], ConditionFailed]


@dataclass(slots=True)
class Guard:
    """What a statement about a guard of a unique value is about. ``taking`` makes it anew for a value that the given owner gives free; None
    where the statement gives it free itself."""

    key: bytes
    owner: Value
    taking: Callable[[Value], Statement] | None


@dataclass(slots=True)
class Statement:
    """``shown`` says what it does, for messages; ``meaning`` makes the error of a failed condition from the stored item;
    ``done`` is called once it has happened; ``wanted`` is the item as it is afterwards, and ``old`` as it was before, where that is known.
    ``obsolete_blobs`` are named by nobody once it has happened, and ``new_blobs`` if it surely has not."""

    kind: Kind
    request: dict[str, Any]
    shown: str
    meaning: Meaning
    done: Callable[[], None] | None = None
    wanted: Item | None = None
    old: Item | None = None
    obsolete_blobs: tuple[str, ...] = ()
    new_blobs: tuple[str, ...] = ()
    kept_blobs: tuple[str, ...] = ()
    guard: Guard | None = None
    explain: Callable[[ValidationFailed], ValidationFailed] | None = None
    """What DynamoDB's refusal of the request means in words of the entity."""
    relative: bool = False
    """Whether doing it twice is not the same as doing it once."""

    @property
    def operation(self) -> str:
        return f"{self.kind}Item"


@dataclass(slots=True)
class Terms:
    """The conditions of one statement."""

    of: EntityMap
    expressions: Expressions = field(default_factory=Expressions)
    terms: list[str] = field(default_factory=list)

    def add(self, term: str) -> None:
        self.terms.append(term)

    def user(self, condition: Any) -> None:
        if condition is not None:
            self.terms.append(self.expressions.condition(condition, self.of))

    def absent(self, now: float) -> None:
        """No item is there; one that has expired and waits for its deletion does not count."""
        name = self.expressions.name
        term = f"attribute_not_exists({name(self.of.table.partition)})"
        if self.of.ttl is not None:
            term = (
                f"({term} OR {name(self.of.ttl)} <= {self.expressions.value({'N': str(int(now))})})"
            )
        self.terms.append(term)

    def present(self) -> None:
        self.terms.append(f"attribute_exists({self.expressions.name(self.of.table.partition)})")

    def version(self, expected: int, now: float | None = None) -> None:
        """The stored version is ``expected``; 0 stands for an item that was never stored, has none yet, or has expired by ``now``."""
        assert self.of.version is not None
        name = self.expressions.name(self.of.version)
        if expected == 0 and self.of.ttl is not None and now is not None:
            late = self.expressions.value({"N": str(int(now))})
            self.terms.append(
                f"(attribute_not_exists({name}) OR {self.expressions.name(self.of.ttl)} <= {late})"
            )
        elif expected == 0:
            self.terms.append(f"attribute_not_exists({name})")
        else:
            self.terms.append(f"{name} = {self.expressions.value({'N': str(expected)})}")

    def equal(self, attribute: str, value: Any) -> None:
        """The attribute has this wire value; None stands for none."""
        name = self.expressions.name(attribute)
        if value is None:
            self.terms.append(f"attribute_not_exists({name})")
        else:
            self.terms.append(f"{name} = {self.expressions.value(value)}")

    def stored(self, values: Mapping[str, Value | None]) -> None:
        """The item has these attributes."""
        for name, value in values.items():
            self.equal(name, value)

    def absent_or_stored(self, values: Mapping[str, Value | None]) -> None:
        """There is no item, or it has these attributes."""
        if values:
            inner = Terms(self.of, self.expressions)
            inner.stored(values)
            absent = f"attribute_not_exists({self.expressions.name(self.of.table.partition)})"
            self.terms.append(
                f"({absent} OR ({joined(inner.terms)}))"
                if len(values) > 1
                else f"({absent} OR {inner.terms[0]})"
            )

    def into(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.terms:
            request["ConditionExpression"] = joined(self.terms)
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return self.expressions.into(request)


def read_as_far_as_possible(of: EntityMap, item: Item | None) -> Any:
    """The entity, unless parts of it are elsewhere."""
    return of.decode(plain(of, item, {})) if item and not blob_keys(of, item) else None


def meaning_of(
    of: EntityMap,
    shown: str,
    *,
    creates: bool = False,
    must_exist: bool = False,
    expected: int | None = None,
) -> Meaning:
    """What a failed condition of a statement about ``of`` means, judged by the item that was in the way."""

    def means(item: Item | None) -> ConditionFailed:
        entity = read_as_far_as_possible(of, item)
        if creates and item:
            exists = ItemExists(f"{shown} exists already", item=item)
            exists.entity = entity
            return exists
        if must_exist and not item:
            return ItemNotFound(f"{shown} does not exist", item=None)
        if expected is not None and of.version is not None:
            stored = int(item[of.version]["N"]) if item and of.version in item else 0
            if stored != expected:
                conflict = VersionConflict(
                    f"{shown} has version {stored}, not {expected}: somebody else wrote it meanwhile"
                    if item
                    else f"{shown} is gone: it was to have version {expected}",
                    item=item,
                    expected=expected,
                )
                conflict.entity = entity
                return conflict
        there = repr(entity) if entity is not None else "not there"
        there = there if len(there) <= 160 else f"{there[:157]}..."
        failed = ConditionFailed(
            f"the condition of {shown} does not hold: it is {there}", item=item
        )
        failed.entity = entity
        return failed

    return means
