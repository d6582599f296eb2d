"""Statements: single writes with their conditions, and what a failed condition means.

Every write becomes one statement, or several if a unique value is guarded. One statement is sent
alone, as PutItem, UpdateItem or DeleteItem; several are sent as one transaction. In both cases the
statement says what its failed condition means: the item already exists, another writer changed it,
or the value is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stator.design.entities.entity_versions import VERSION_ATTRIBUTE
from stator.design.entities.shapes import CLASS_TAG
from stator.errors import (
    ConditionFailed,
    ItemExists,
    ItemNotFound,
    NewerVersion,
    ValidationFailed,
    VersionConflict,
)
from stator.model.values import Item, Value
from stator.tables.blobs.blobs import blob_keys, plain
from stator.tables.schema.entity_map import EntityMap
from stator.tables.work import Work
from stator.tables.writes.expressions import Expressions, joined


class LostRace(ConditionFailed):
    """The item changed between read and write, so the write is planned again."""

    code = "StatorLostRace"


Kind = Literal["Put", "Update", "Delete", "ConditionCheck"]
Meaning = Callable[[Item | None], ConditionFailed]


@dataclass(slots=True)
class Guard:
    """The guard of a unique value that a statement writes (takes the value) or deletes (frees it).

    ``owner`` is the item that takes or frees the value. ``taking`` is None if the statement frees
    the value. Otherwise ``taking(other)`` returns a statement that also succeeds if the item
    ``other`` has the value. It is used if ``other`` frees the value in the same transaction.
    """

    key: bytes
    owner: Value
    taking: Callable[[Value], Statement] | None


@dataclass(frozen=True, slots=True)
class WriteProof:
    """The write token that a write puts into its item.

    As long as the stored item carries the token, the write has certainly been applied.
    """

    key: Item
    attribute: str
    token: Value

    def is_in(self, item: Item | None) -> bool:
        return bool(item) and item is not None and item.get(self.attribute) == self.token


@dataclass(slots=True)
class Statement:
    """One write, check or guard, which is a request of its own or part of a transaction.

    ``shown`` describes the statement in messages. ``meaning`` turns a failed condition into an
    error, based on the stored item. ``done`` is called once the statement is applied. ``wanted`` is
    the item afterwards and ``old`` the item before, if known. ``stored`` is the entity that a put
    stores. Once the statement is applied, ``obsolete_blobs`` are deleted and ``kept_blobs`` moved
    aside. If it certainly was not applied, ``new_blobs`` are deleted.
    """

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
    """Turns DynamoDB's refusal of the request into an error in terms of the entity."""
    relative: bool = False
    """Whether applying the statement twice differs from applying it once, as with ``+=``."""
    proof: WriteProof | None = None
    stored: Any = None
    of: EntityMap | None = None
    """The entity of the item, if the statement writes an item of the design."""
    spread: tuple[tuple[str, Any], ...] = ()
    """The indexes whose keys have adaptive shards, with the values that the statement writes."""
    only_placed: bool = False
    """Whether its only condition is that the item stays in its shards of these values."""
    raise_hot_index: bool = False
    """Whether more shards may help if a partition of one of these indexes is hot."""
    replaces_gone: bool = False
    """Whether the write replaces an expired or deleted item, which then is not its old item."""

    @property
    def operation(self) -> str:
        return f"{self.kind}Item"


Prepare = Callable[[], Work[list[Statement]]]
"""Plans the statements of a write. It is called again after a ``LostRace``."""


@dataclass(slots=True)
class Terms:
    """The conditions of one statement."""

    of: EntityMap
    expressions: Expressions = field(default_factory=Expressions)
    terms: list[str] = field(default_factory=list)

    def add(self, term: str) -> None:
        self.terms.append(term)

    def user(self, condition: Any, *, creates: bool = False) -> None:
        """Require a user's condition. With ``creates``, a missing item has the defaults."""
        if condition is not None:
            self.terms.append(self.expressions.condition(condition, self.of, creates=creates))

    def absent(self, now: float) -> None:
        """Require that there is no item.

        An item that has expired and is not yet deleted counts as absent.
        """
        name = self.expressions.name
        self._unless_gone(f"attribute_not_exists({name(self.of.table.partition)})", now)

    def _unless_gone(self, term: str, now: float) -> None:
        """Require a term, unless the item has expired or is marked as deleted."""
        written, options = self.expressions, [term]
        if self.of.ttl is not None:
            late = written.value({"N": str(int(now))})
            options.append(f"{written.name(self.of.ttl)} <= {late}")
        if self.of.deleted is not None:
            options.append(f"attribute_exists({written.name(self.of.deleted)})")
        self.terms.append(f"({' OR '.join(options)})" if len(options) > 1 else term)

    def not_deleted(self) -> None:
        """Require that the item is not marked as deleted."""
        if self.of.deleted is not None:
            self.equal(self.of.deleted, None)

    def present(self) -> None:
        self.terms.append(f"attribute_exists({self.expressions.name(self.of.table.partition)})")

    def version(self, expected: int, now: float | None = None) -> None:
        """Require that the stored version is ``expected``.

        If ``expected`` is 0, require that there is no item, or an item without a version. With
        ``now``, an expired or deleted item passes, too.
        """
        assert self.of.version is not None
        name = self.expressions.name(self.of.version)
        if expected == 0 and now is not None:
            self._unless_gone(f"attribute_not_exists({name})", now)
        elif expected == 0:
            self.terms.append(f"attribute_not_exists({name})")
        else:
            self.terms.append(f"{name} = {self.expressions.value({'N': str(expected)})}")

    def equal(self, attribute: str, value: Any) -> None:
        """Require that the attribute has this value, which is DynamoDB JSON.

        None requires that the attribute does not exist.
        """
        name = self.expressions.name(attribute)
        if value is None:
            self.terms.append(f"attribute_not_exists({name})")
        else:
            self.terms.append(f"{name} = {self.expressions.value(value)}")

    def missing_or_equal(self, attribute: str, value: Value) -> None:
        """Require that the attribute has this value or does not exist."""
        name = self.expressions.name(attribute)
        bound = self.expressions.value(value)
        self.terms.append(f"(attribute_not_exists({name}) OR {name} = {bound})")

    def stored(self, values: Mapping[str, Value | None]) -> None:
        """Require that the item has these attribute values. None requires a missing attribute."""
        for name, value in values.items():
            self.equal(name, value)

    def variant(self, tags: tuple[str, ...]) -> None:
        """Require that the item is of one of the variants with these tags. Empty allows any."""
        if tags:
            name = self.expressions.name(CLASS_TAG)
            values = ", ".join(self.expressions.value({"S": tag}) for tag in tags)
            self.terms.append(f"{name} IN ({values})")

    def absent_or_stored(self, values: Mapping[str, Value | None]) -> None:
        """Require that there is no item, or that it has these attribute values (see ``stored``)."""
        if values:
            inner = Terms(self.of, self.expressions)
            inner.stored(values)
            absent = f"attribute_not_exists({self.expressions.name(self.of.table.partition)})"
            self.terms.append(
                f"({absent} OR ({joined(inner.terms)}))"
                if len(values) > 1
                else f"({absent} OR {inner.terms[0]})"
            )

    def shape(self, version: Value | None, *, may_be_absent: bool) -> None:
        """Require that the item's shape has this version. ``may_be_absent`` also allows no item.

        None stands for version 1, whose items carry no version.
        """
        if may_be_absent and version is not None:
            self.absent_or_stored({VERSION_ATTRIBUTE: version})
        else:
            self.equal(VERSION_ATTRIBUTE, version)

    def into(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.terms:
            request["ConditionExpression"] = joined(self.terms)
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return self.expressions.into(request)


def read_as_far_as_possible(of: EntityMap, item: Item | None) -> Any:
    """Decode the item. Returns None if there is no item, or if it has values in a blob store."""
    return of.decode(plain(of, item, {})) if item and not blob_keys(of, item) else None


def meaning_of(
    of: EntityMap,
    shown: str,
    *,
    creates: bool = False,
    must_exist: bool = False,
    expected: int | None = None,
) -> Meaning:
    """Return the function that turns a failed condition into an error, based on the stored item.

    ``shown`` names the item in messages. ``creates``, ``must_exist`` and ``expected`` say what the
    condition required: no item, an item, or an item with this version.
    """

    def means(item: Item | None) -> ConditionFailed:
        try:
            entity = read_as_far_as_possible(of, item)
        except NewerVersion:
            if not creates:
                raise
            entity = None  # the item exists, even if this class cannot read it
        is_there = bool(item) and item is not None and not of.is_deleted(item)
        if creates and is_there:
            exists = ItemExists(f"{shown} exists already", item=item)
            exists.entity = entity
            return exists
        if must_exist and not is_there:
            why = "is deleted" if item else "does not exist"
            return ItemNotFound(f"{shown} {why}", item=None)
        if expected is not None and of.version is not None:
            stored = int(item[of.version]["N"]) if item and of.version in item else 0
            if stored != expected:
                conflict = VersionConflict(
                    f"{shown} has version {stored}, not {expected}: another writer changed it"
                    if item
                    else f"{shown} does not exist any more; version {expected} was expected",
                    item=item,
                    expected=expected,
                )
                conflict.entity = entity
                return conflict
        # Values may be personal data, and messages reach logs: the item is in error.entity.
        missing = ": it does not exist" if entity is None else ""
        failed = ConditionFailed(f"the condition of {shown} does not hold{missing}", item=item)
        failed.entity = entity
        return failed

    return means
