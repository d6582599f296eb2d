"""Links: many-to-many relations, read from both ends, with copies of fields of the other end.

    PK                         SK      attributes
    LINK#enrolments#L#s1       R#c1    _attributes {grade: 2}  _copy {title: "Algebra"}  _stamp a17
    LINK#enrolments#R#c1       L#s1    _attributes {grade: 2}  _copy {name: "Anna"}      _stamp a13

A link is two items, one under each end, written and deleted in one transaction. The courses of a
student are one Query, the students of a course another. Each item holds a copy of those fields of
the *other* end that a list shows, so that a list needs no second read.

Invariants:

- Both items of a link exist, or neither.
- A link connects entities that exist, and its copies equal their stored fields: the transaction
  checks both. Deleting an entity and then calling ``unlink_all`` therefore leaves no link behind.
  Changing an entity and then calling ``refresh`` leaves no stale copy behind.
- ``refresh`` copies the entity as stored. At the end it reads the entity again and starts over if
  it has changed, so that of several concurrent refreshes the last to finish leaves the newest
  copies. If the entity has a ``version()`` or ``updated()`` field, the copy carries it as a stamp.
  Then no process replaces a copy with an older one, no matter how long it was suspended.

Failure and recovery: ``refresh`` and ``unlink_all`` go through any number of links, and the process
may die half-way. A second call does the rest: it skips copies that are fresh and links that are
deleted. Copies are stale between a change and its refresh. Call ``refresh`` after the change, or
let a worker call ``settle`` for every change for which ``copies_changed`` returns fields:
``app.refresh(links)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from stator.design.entities.conditions import FieldRef
from stator.design.plan import key_text as keys
from stator.errors import (
    ConditionFailed,
    DesignError,
    ItemExists,
    ItemNotFound,
    RequestRefused,
    TransactionFailed,
)
from stator.model.values import Item, Value
from stator.patterns.explanation import OperationCost, PatternExplanation, item_layout
from stator.patterns.identities import Identities
from stator.patterns.item_pages import ItemPages, prefix_query, query_count, query_page
from stator.patterns.plain_values import decode_plain, encode_plain
from stator.tables.argument_rules import checks_arguments
from stator.tables.operation import D, OnDb, iteration, operation
from stator.tables.reads.cursors import make_cursor, read_cursor
from stator.tables.reads.items import batch_get
from stator.tables.reads.pattern_read import Page, check_limit
from stator.tables.schema.entity_map import EntityMap
from stator.tables.schema.missing_attributes import missing_attribute, with_defaults
from stator.tables.unknown_outcome import several_writes
from stator.tables.work import Call, Gather, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import items_equal, send_all, write
from stator.tables.writes.shape_upgrade import ShapeUpgrade
from stator.tables.writes.statements import Statement, Terms

L = TypeVar("L")
R = TypeVar("R")
_PAIRS = 50  # of two items each: a transaction holds 100


@dataclass(frozen=True, slots=True)
class Link:
    """A link as seen from one of its two ends.

    ``copy`` has the fields copied from the other end; ``attributes`` belong to the link itself.
    """

    left: Any
    right: Any
    copy: Mapping[str, Any]
    attributes: Mapping[str, Any]


@checks_arguments("Links")
class Links(OnDb[D], Generic[D, L, R]):
    """Many-to-many links between two entities.

    ``Links(db, Student, Course, copy_left=[Student.name], copy_right=[Course.title])``

    ``link`` takes two objects. The other methods accept an object or its identity.
    """

    def __init__(
        self,
        db: D,
        left: type[L],
        right: type[R],
        *,
        name: str | None = None,
        copy_left: Sequence[Any] = (),
        copy_right: Sequence[Any] = (),
    ) -> None:
        super().__init__(db)
        schema = self.context.schema
        self.name = name or f"{left.__name__}-{right.__name__}"
        self._left = _End("L", schema.of(left), copy_left)
        self._right = _End("R", schema.of(right), copy_right)
        self._place = schema.place
        self._label = f"links {self.name}"

    def is_end(self, entity: type[Any]) -> bool:
        """Whether objects of this class can be linked: it is the left or the right entity."""
        return entity in (self._left.of.cls, self._right.of.cls)

    # -- one link

    @operation
    def link(self, left: L, right: R, /, **attributes: Any) -> Work[None]:
        """Link two objects, or replace the attributes of their link.

        Raises ItemNotFound if one of the objects is not stored, and ConditionFailed if a field to
        be copied differs from the stored field.
        """
        for end, given in ((self._left, left), (self._right, right)):
            if not end.identities.owns(given):
                raise RequestRefused(
                    f"a {type(given).__name__} is not an object of {end.of.name}",
                    hint=f"pass a {end.of.name} object: its fields are copied into the link",
                )
        given_attributes = encode_plain(attributes)

        pairs = ((self._left, left, right), (self._right, right, left))
        puts = [self._put(end, mine, other, given_attributes) for end, mine, other in pairs]
        copied: list[tuple[_End, Any, Iterable[str]]] = [
            (self._left, left, self._left.copied),
            (self._right, right, self._right.copied),
        ]
        if self._left.of is self._right.of and self._left.text(left) == self._right.text(right):
            copied = [(self._left, left, {*self._left.copied, *self._right.copied})]
        upgrade = ShapeUpgrade(self.context)

        def prepare() -> Work[list[Statement]]:
            statements = list(puts)
            for end, entity, fields in copied:
                # Upgrades the stored item if the last attempt found one of an earlier version.
                yield from upgrade.shape(end.of, end.of.key_of(entity))
                statements.append(end.check(entity, fields, upgrade))
            return statements

        yield from write(self.context, prepare, self._label)

    def _put(self, end: _End, mine: Any, other: Any, attributes: Value) -> Statement:
        far = self._far(end)
        item = self._key(end, end.text(mine), far.text(other)) | {
            "_attributes": attributes,
            "_copy": far.copy(other),
        }
        stamp = far.stamp(far.of.codec.encode(other))
        if stamp is not None:
            item["_stamp"] = stamp
        return Statement(
            "Put", {"TableName": self._place.table, "Item": item}, f"link {self.name}", _not_written
        )

    @operation
    def unlink(self, left: Any, right: Any) -> Work[None]:
        """Delete the link between a left and a right entity, if there is one."""
        pair = (self._left.text(left), self._right.text(right))
        yield from send_all(self.context, self._deletes(*pair), self._label)

    @operation
    def get(self, left: Any, right: Any) -> Work[Link | None]:
        """Return the link between a left and a right entity, as seen from the left, or None."""
        text = self._left.text(left)
        key = self._key(self._left, text, self._right.text(right))
        request = {"TableName": self._place.table, "Key": key, "ConsistentRead": True}
        item = (yield Call("GetItem", request, self._label)).get("Item")
        return None if item is None else self._read(self._left, text, item)

    @operation
    def exists(self, left: Any, right: Any) -> Work[bool]:
        """Return whether a left and a right entity are linked, by one strongly consistent read."""
        return (yield from self.get.work(left, right)) is not None

    # -- lists

    @iteration
    def of_left(self, left: Any) -> ItemPages[Link]:
        """Return all links of a left entity, ordered by the identities of its right entities."""
        return self._pages(self._left, self._left.text(left))

    @iteration
    def of_right(self, right: Any) -> ItemPages[Link]:
        """Return all links of a right entity, ordered by the identities of its left entities."""
        return self._pages(self._right, self._right.text(right))

    def _pages(self, end: _End, text: str) -> ItemPages[Link]:
        return ItemPages(
            self._query(end, text), self._label, lambda item: self._read(end, text, item)
        )

    @operation
    def page(
        self, *, left: Any = None, right: Any = None, limit: int, cursor: str | None = None
    ) -> Work[Page[Link]]:
        """Return up to ``limit`` links of one entity, and the cursor of the next page.

        Pass the entity as ``left=`` or ``right=``: ``page(left="s1", limit=20, cursor=...)``. The
        links are in the order of ``of_left`` and ``of_right``. The cursor is None after the last
        page, and is valid for the same entity only. Links are paged forward only: ``previous`` of
        the page is always None.
        """
        check_limit(limit)
        [(end, text)] = self._ends_of(None, left, right)
        bound, key = {end.letter: text}, self.context.cursor_key
        start: Any = None
        if cursor is not None:
            [start] = read_cursor(cursor, self._label, bound, key).positions
        items, has_more = yield from query_page(self._query(end, text), self._label, limit, start)
        after = None
        if has_more:
            last = {name: items[-1][name] for name in (self._place.partition, self._place.sort)}
            after = make_cursor([last], self._label, bound, key)
        return Page([self._read(end, text, item) for item in items], after)

    @operation
    def count(self, *, left: Any = None, right: Any = None) -> Work[int]:
        """Return the number of links of one entity: ``count(left="s1")``, ``count(right="c1")``."""
        [(end, text)] = self._ends_of(None, left, right)
        return (yield from query_count(self._query(end, text), self._label))

    # -- all links of one end

    def copies_changed(self, old: L | R | None, new: L | R | None) -> tuple[str, ...]:
        """Return the names of the copied fields that a change of an entity has changed.

        If there are any, call ``refresh``. Pass None as ``old`` for a new entity, and as ``new``
        for a deleted one. The result is then empty: a new entity has no links, and the links of a
        deleted entity need ``unlink_all``.
        """
        if old is None or new is None:
            return ()
        ends = [end for end in (self._left, self._right) if end.identities.owns(new)]
        if not ends or not ends[0].identities.owns(old):
            raise RequestRefused(
                f"links {self.name!r}: cannot compare a {type(old).__name__} with a"
                f" {type(new).__name__}",
                hint=f"pass two {self._left.of.name} objects, or two {self._right.of.name} objects",
            )
        copied = dict.fromkeys(name for end in ends for name in end.copied)
        return tuple(name for name in copied if getattr(old, name) != getattr(new, name))

    @operation
    @several_writes("some copies are refreshed", "call refresh() again")
    def refresh(self, entity: Any = None, *, left: Any = None, right: Any = None) -> Work[int]:
        """Copy an entity's stored fields to all its links. Return how many copies were stale.

        Pass an object, or an identity as ``left=`` or ``right=``. Raises ItemNotFound if the entity
        is not stored.
        """
        done = 0
        for end, text in self._ends_of(entity, left, right):
            if end.copied:
                done += yield from self._refresh(end, text)
        return done

    def _refresh(self, end: _End, text: str) -> Work[int]:
        done = 0
        now = yield from self._stored(end, text)
        while True:
            was = now
            pages = ItemPages[Item](self._query(end, text), self._label, lambda item: item)
            while not pages.is_done:
                done += yield from self._refresh_page(end, text, (yield from pages.page()), was)
            now = yield from self._stored(end, text)
            if items_equal(end.copied_of(was)["M"], end.copied_of(now)["M"]):
                return done

    def _refresh_page(self, end: _End, text: str, items: list[Item], source: Item) -> Work[int]:
        far = self._far(end)
        others = [self._other(end, item) for item in items]
        wanted = [self._key(far, other, text) for other in others]
        done = 0
        for at in range(0, len(wanted), 100):
            chunk = wanted[at : at + 100]
            found = yield from batch_get(
                self.context, self._place.table, chunk, self._label, consistent=True
            )
            copy = end.copied_of(source)
            stale = [item for item in found if not items_equal(item["_copy"]["M"], copy["M"])]
            calls = [
                Call("UpdateItem", self._recopy(item, copy, end.stamp(source)), self._label)
                for item in stale
            ]
            for result in (yield Gather(calls)) if calls else ():
                # A failed condition means that the pair was unlinked or has a newer copy.
                if isinstance(result, BaseException) and not isinstance(result, ConditionFailed):
                    raise result
            done += len(stale)
        return done

    def _recopy(self, item: Item, copy: Value, stamp: Value | None) -> dict[str, Any]:
        written = Expressions()
        sets = f"SET {written.name('_copy')} = {written.value(copy)}"
        condition = f"attribute_exists({written.name(self._place.partition)})"
        if stamp is not None:
            name, value = written.name("_stamp"), written.value(stamp)
            sets += f", {name} = {value}"
            condition += f" AND (attribute_not_exists({name}) OR {name} <= {value})"
        key = {name: item[name] for name in (self._place.partition, self._place.sort)}
        request = {"TableName": self._place.table, "Key": key, "UpdateExpression": sets}
        return written.into(request | {"ConditionExpression": condition})

    @operation
    @several_writes("some links are deleted", "call unlink_all() again")
    def unlink_all(self, entity: Any = None, *, left: Any = None, right: Any = None) -> Work[int]:
        """Delete all links of an entity. Return how many links were deleted.

        Delete the entity first, so that no new links are created meanwhile. This method does not
        check whether the entity still exists.
        """
        done = 0
        for end, text in self._ends_of(entity, left, right):
            while True:
                reply = yield Call("Query", self._query(end, text) | {"Limit": _PAIRS}, self._label)
                others = [self._other(end, item) for item in reply["Items"]]
                if not others:
                    break
                pairs = [(text, other) if end is self._left else (other, text) for other in others]
                pairs = list(dict.fromkeys(pairs))
                statements = [statement for pair in pairs for statement in self._deletes(*pair)]
                yield from send_all(self.context, statements, self._label)
                done += len(pairs)
        return done

    @operation
    @several_writes("some links are settled", "call settle() again")
    def settle(self, entity: Any) -> Work[int]:
        """Refresh or delete the links of an entity after a change. Return how many links changed.

        If the entity is stored, the copies of its fields are refreshed. If not, its links are
        deleted.
        """
        while True:
            try:
                return (yield from self.refresh.work(entity))
            except ItemNotFound:
                pass
            done = yield from self._unlink_gone(entity)
            if done is not None:
                return done  # None: the entity exists again

    def _unlink_gone(self, entity: Any) -> Work[int | None]:
        """Delete the links of a deleted entity. Return how many were deleted.

        Returns None if the entity has been created again meanwhile.

        Each transaction checks that the entity is absent, because an entity that was created again
        may have new links.
        """
        done = 0
        for end, text in self._ends_of(entity, None, None):
            while True:
                reply = yield Call(
                    "Query", self._query(end, text) | {"Limit": _PAIRS - 1}, self._label
                )
                others = [self._other(end, item) for item in reply["Items"]]
                if not others:
                    break
                pairs = dict.fromkeys(
                    (text, other) if end is self._left else (other, text) for other in others
                )
                statements = [statement for pair in pairs for statement in self._deletes(*pair)]
                try:
                    yield from send_all(
                        self.context, [*statements, end.absent(entity)], self._label
                    )
                except TransactionFailed as failed:
                    if any(not isinstance(error, ItemExists) for _, _, error in failed.failures):
                        raise
                    return None
                done += len(pairs)
        return done

    # -- items

    def _far(self, end: _End) -> _End:
        return self._right if end is self._left else self._left

    def _partition(self, end: _End, text: str) -> str:
        return f"LINK#{keys.escape(self.name)}#{end.letter}#{text}"

    def _key(self, end: _End, mine: str, other: str) -> Item:
        return self._place.key(self._partition(end, mine), f"{self._far(end).letter}#{other}")

    def _query(self, end: _End, text: str) -> dict[str, Any]:
        return prefix_query(self._place, self._partition(end, text), f"{self._far(end).letter}#")

    def _other(self, end: _End, item: Item) -> str:
        return str(item[self._place.sort]["S"][2:])

    def _deletes(self, left: str, right: str) -> list[Statement]:
        wanted = (self._key(self._left, left, right), self._key(self._right, right, left))
        return [
            Statement(
                "Delete",
                {"TableName": self._place.table, "Key": key},
                f"unlink {self.name}",
                _not_written,
            )
            for key in wanted
        ]

    def _read(self, end: _End, text: str, item: Item) -> Link:
        far = self._far(end)
        mine, other = end.identities.value(text), far.identities.value(self._other(end, item))
        left, right = (mine, other) if end is self._left else (other, mine)
        return Link(left, right, far.decode_copy(item["_copy"]), decode_plain(item["_attributes"]))

    def _stored(self, end: _End, text: str) -> Work[Item]:
        key = end.key(text)
        request = {"TableName": end.of.table.name, "Key": key, "ConsistentRead": True}
        item: Item | None = (yield Call("GetItem", request, self._label)).get("Item")
        if item is None:
            raise ItemNotFound(f"{end.shown(text)} does not exist", item=None)
        return end.of.current_item(item)

    def _ends_of(self, entity: Any, left: Any, right: Any) -> list[tuple[_End, str]]:
        """Return the named ends (left, right), each with the entity's identity as key text.

        An entity has both ends if links connect objects of one class.
        """
        if sum(given is not None for given in (entity, left, right)) != 1:
            raise RequestRefused(
                f"links {self.name!r}: exactly one end must be given",
                hint="pass an object, or left=..., or right=...",
            )
        if entity is None:
            return [
                (self._left, self._left.text(left))
                if right is None
                else (self._right, self._right.text(right))
            ]
        found = [
            (end, end.text(entity))
            for end in (self._left, self._right)
            if end.identities.owns(entity)
        ]
        if not found:
            raise RequestRefused(
                f"a {type(entity).__name__} is neither a {self._left.of.name} nor a "
                f"{self._right.of.name}",
                hint="pass an object of one of them, or its identity as left=... or right=...",
            )
        return found

    def explain(self) -> PatternExplanation:
        """Return the keys of a link's items, and the units and cost of each operation."""
        place, start = self._place, f"LINK#{keys.escape(self.name)}"
        return PatternExplanation(
            f"links {self.name} of {self._left.of.name} and {self._right.of.name} in {place.table}",
            (
                item_layout(
                    place,
                    f"{start}#L#<{self._left.of.name}>",
                    f"R#<{self._right.of.name}>",
                    "_attributes, _copy",
                ),
                item_layout(
                    place,
                    f"{start}#R#<{self._right.of.name}>",
                    f"L#<{self._left.of.name}>",
                    "_attributes, _copy",
                ),
            ),
            (
                OperationCost("link", "TransactWriteItems of 4", 0, 8),
                OperationCost("unlink", "TransactWriteItems of 2", 0, 4),
                OperationCost("of_left, of_right, page", "Query", 1, note="per 4 KB"),
                OperationCost("exists", "GetItem", 1),
                OperationCost(
                    "refresh",
                    "Query, BatchGetItem, and UpdateItem for each stale copy",
                    1,
                    1,
                    "per link",
                ),
                OperationCost(
                    "unlink_all", "Query and TransactWriteItems for every 50", 0, 4, "per link"
                ),
            ),
            ("copies are stale between a change and the refresh() after it",),
        )


class _End:
    """The left or right entity of the links, and the fields that links copy from it."""

    def __init__(self, letter: str, of: EntityMap, copied: Sequence[Any]) -> None:
        self.letter = letter
        self.of = of
        self.identities = Identities(of.info)
        self.copied = tuple(self._copied(each) for each in copied)
        if set(of.base_fields) - set(of.identity):
            raise DesignError(
                f"the key of {of.name} contains more than its identity:"
                f" {', '.join(of.base_fields)}",
                hint=f"declare a pattern that reads {of.name} by its identity, as links do",
            )

    def _copied(self, reference: Any) -> str:
        if (
            not isinstance(reference, FieldRef)
            or len(reference.path) != 1
            or reference.name not in self.of.fields
            or reference.owner is not self.of.cls
        ):
            raise DesignError(
                f"{reference!r} is not a field of {self.of.name}",
                hint=f"pass fields by reference, for example {self.of.name}.name",
            )
        if reference.name in self.of.large:
            raise DesignError(
                f"{reference!r} is large() and cannot be copied into links",
                hint="copy only the short fields that lists show",
            )
        return reference.name

    def text(self, given: Any) -> str:
        return self.identities.text(given)

    def key(self, text: str) -> Item:
        return self.of.key_from(self._identity(text))

    def shown(self, text: str) -> str:
        """Return the entity whose identity is ``text`` for messages: ``Order(order_id='o1')``."""
        return self.of.shown(self._identity(text))

    def _identity(self, text: str) -> dict[str, Any]:
        value = self.identities.value(text)
        values = value if isinstance(value, tuple) else (value,)
        return dict(zip(self.of.identity, values, strict=True))

    def copy(self, entity: Any) -> Value:
        return self.copied_of(self.of.codec.encode(entity))

    def copied_of(self, item: Item) -> Value:
        """Return the copies of an item's fields. A missing attribute gives the field's default."""
        item = with_defaults(self.of, item, self.copied)
        return {"M": {name: item[name] for name in self.copied if name in item}}

    def decode_copy(self, copy: Value) -> dict[str, Any]:
        found = with_defaults(self.of, copy["M"], self.copied)
        decode = self.of.codec.decode_field
        return {name: decode[name](found[name]) if name in found else None for name in self.copied}

    def stamp(self, item: Item) -> Value | None:
        """Return an item's version or update time as text in which later states sort later.

        Returns None if the item has neither.
        """
        for name, kind in ((self.of.version, "int"), (self.of.updated, "datetime")):
            if name is not None and name in item:
                return {"S": keys.encode(kind, self.of.codec.decode_field[name](item[name]))}
        return None

    def check(self, entity: Any, copied: Iterable[str], upgrade: ShapeUpgrade) -> Statement:
        """Return a check that the stored entity has the values that a link is about to copy.

        If the check fails for an item of an earlier entity version, ``upgrade`` remembers it.
        """
        shown = self.of.shown_entity(entity)
        terms = Terms(self.of)
        terms.present()
        item = self.of.codec.encode(entity)
        for name in copied:
            value = item.get(name)
            if value is not None and value == missing_attribute(self.of, name, item):
                terms.missing_or_equal(name, value)
            else:
                terms.equal(name, value)

        def means(found: Item | None) -> ConditionFailed:
            if not found:
                return ItemNotFound(f"{shown} does not exist", item=None)
            return ConditionFailed(
                f"{shown} has changed: its stored fields differ from those to be copied", item=found
            )

        key = self.of.key_of(entity)
        request = terms.into({"TableName": self.of.table.name, "Key": key})
        meaning = upgrade.meaning(self.of, key, means)
        return Statement("ConditionCheck", request, f"check {shown}", meaning)

    def absent(self, entity: Any) -> Statement:
        shown = self.of.shown_entity(entity)
        written = Expressions()
        condition = f"attribute_not_exists({written.name(self.of.table.partition)})"
        request = {
            "TableName": self.of.table.name,
            "Key": self.of.key_of(entity),
            "ConditionExpression": condition,
        }
        return Statement(
            "ConditionCheck",
            written.into(request),
            f"check {shown}",
            lambda item: ItemExists(f"{shown} exists", item=item),
        )


def _not_written(item: Item | None) -> ConditionFailed:
    return ConditionFailed("the link was not written", item=item)
