"""The operations of ``Db`` and ``AsyncDb`` that read: items by identity, patterns, scans.

Each method plans, and does no I/O: ``db_operations`` says how.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, overload

from stator.design.entities.storable import Storable
from stator.design.patterns.explanation import Explanation
from stator.design.patterns.query import (
    Bundle2,
    Bundle3,
    Bundle4,
    BundleMany,
    Count,
    Query,
    Question,
    Selection,
)
from stator.errors import ItemNotFound
from stator.tables.argument_rules import checks_arguments
from stator.tables.context import Context
from stator.tables.list_arguments import as_identity, identities_in, listed
from stator.tables.reads import items, pattern_read
from stator.tables.reads.item_list import ItemList
from stator.tables.reads.pattern_read import Page, PatternFetch, PatternRead, ReadOptions
from stator.tables.reads.scan import EntityScan
from stator.tables.reads.snapshot import Get, read_snapshot
from stator.tables.work import Pages, Work

A = TypeVar("A", bound=Storable)
B = TypeVar("B", bound=Storable)
C = TypeVar("C", bound=Storable)
D = TypeVar("D", bound=Storable)
E = TypeVar("E", bound=Storable)
F = TypeVar("F")


@checks_arguments("db")
class ReadOperations:
    """Plans the reads of one design's tables."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def get(
        self,
        entity: type[E],
        /,
        *,
        consistent: bool = False,
        include_expired: bool = False,
        include_deleted: bool = False,
        **identity: Any,
    ) -> Work[E | None]:
        """Return the item with this identity, or None: ``db.get(User, user_id="u1")``.

        ``consistent`` asks for a strongly consistent read. An item past its ``ttl()`` counts as
        absent, unless ``include_expired`` is set. So does an item that is marked as deleted in its
        ``soft_delete()`` field, unless ``include_deleted`` is set.
        """
        of = self.context.schema.of_class(entity)
        return items.get(
            self.context,
            of,
            of.given(identity),
            consistent=consistent,
            include_expired=include_expired,
            include_deleted=include_deleted,
        )

    def get_one(
        self,
        entity: type[E],
        /,
        *,
        consistent: bool = False,
        include_expired: bool = False,
        include_deleted: bool = False,
        **identity: Any,
    ) -> Work[E]:
        """Return the item with this identity. Raises ItemNotFound if there is none.

        The arguments are those of ``get``.
        """
        found = yield from self.get(
            entity,
            consistent=consistent,
            include_expired=include_expired,
            include_deleted=include_deleted,
            **identity,
        )
        if found is None:
            of = self.context.schema.of_class(entity)
            shown = of.shown(of.given(identity))
            raise ItemNotFound(f"{shown} does not exist", item=None)
        return found

    def get_many(
        self,
        entity: type[E],
        identities: Iterable[Any],
        *,
        consistent: bool = False,
        include_expired: bool = False,
        include_deleted: bool = False,
    ) -> Work[list[E | None]]:
        """Return items in the order of ``identities``, with None for each missing item.

        An identity is a mapping of fields: ``{"user_id": "u1"}``. If the identity is a single
        field, its value is enough: ``"u1"``. The other arguments are those of ``get``.
        """
        of = self.context.schema.of_class(entity)
        return items.get_many(
            self.context,
            of,
            [
                of.given(as_identity(of.identity, each))
                for each in identities_in("get_many", of, identities)
            ],
            consistent=consistent,
            include_expired=include_expired,
            include_deleted=include_deleted,
        )

    @overload
    def snapshot(
        self, a: Get[A], b: Get[B], /, *, include_expired: bool = False
    ) -> Work[tuple[A | None, B | None]]: ...
    @overload
    def snapshot(
        self, a: Get[A], b: Get[B], c: Get[C], /, *, include_expired: bool = False
    ) -> Work[tuple[A | None, B | None, C | None]]: ...
    @overload
    def snapshot(
        self, a: Get[A], b: Get[B], c: Get[C], d: Get[D], /, *, include_expired: bool = False
    ) -> Work[tuple[A | None, B | None, C | None, D | None]]: ...
    @overload
    def snapshot(
        self, gets: Iterable[Get[E]], /, *, include_expired: bool = False
    ) -> Work[list[E | None]]: ...
    def snapshot(self, *gets: Any, include_expired: bool = False) -> Work[Any]:
        """Return up to 100 items as they were at one moment, with None for each missing item.

        Two to four items of any entities come as a tuple, in the order of the arguments:
        ``user, order = db.snapshot(Get(User, user_id="u1"), Get(Order, order_id="o1"))``. A list of
        ``Get`` gives a list. A transaction is seen as a whole or not at all. The read is strongly
        consistent and costs twice the units of ``get_many(..., consistent=True)``.
        """
        if len(gets) == 1 and not isinstance(gets[0], Get):
            several = list(listed("db.snapshot", "Get", gets[0], 'Get(User, user_id="u1")'))
            return (
                yield from read_snapshot(self.context, several, include_expired=include_expired)
            )
        found = yield from read_snapshot(self.context, gets, include_expired=include_expired)
        return tuple(found)

    def exists(
        self, entity: type[Any], /, *, consistent: bool = False, **identity: Any
    ) -> Work[bool]:
        """Return whether an item with this identity exists.

        An item that has expired, or is marked as deleted, counts as absent.
        """
        found = yield from self.get(entity, consistent=consistent, **identity)
        return found is not None

    def fetch(
        self,
        query: Selection[F],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Pages[F]:
        """Iterate over everything a pattern finds.

        Pages are read as they are needed. ``limit`` limits the number of items, in addition to the
        pattern's own limit. ``consistent`` overrides the pattern's choice. Expired items are
        skipped unless ``include_expired`` is set.
        """
        return PatternFetch(
            PatternRead(self.context, query, ReadOptions(consistent, include_expired)), limit
        )

    def page(
        self,
        query: Selection[F],
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Work[Page[F]]:
        """Return up to ``limit`` items, with cursors to the next page and the page before.

        ``cursor=page.cursor`` reads the next page. ``page.cursor`` is None on the last page.
        ``cursor=page.previous`` reads the page before, in the same order. ``page.previous`` is None
        on the first page. A pattern that is planned as a Scan can only be read forward. The other
        arguments are those of ``fetch``.
        """
        return pattern_read.page(
            self.context, query, limit, cursor, ReadOptions(consistent, include_expired)
        )

    def first(
        self, query: Selection[F], *, consistent: bool | None = None, include_expired: bool = False
    ) -> Work[F | None]:
        """Return the first item a pattern finds, or None.

        The other arguments are those of ``fetch``.
        """
        return pattern_read.first(self.context, query, ReadOptions(consistent, include_expired))

    def first_or_raise(
        self, query: Selection[F], *, consistent: bool | None = None, include_expired: bool = False
    ) -> Work[F]:
        """Return the first item a pattern finds. Raises ItemNotFound if it finds none.

        The other arguments are those of ``fetch``.
        """
        found = yield from self.first(query, consistent=consistent, include_expired=include_expired)
        if found is None:
            raise ItemNotFound(f"{pattern_read.shown(query)} finds no item", item=None)
        return found

    def all(
        self,
        query: Selection[F],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Work[list[F]]:
        """Return everything a pattern finds, as a list. The arguments are those of ``fetch``."""
        pages = self.fetch(
            query, limit=limit, consistent=consistent, include_expired=include_expired
        )
        found: list[F] = ItemList()
        while not pages.is_done:
            found += yield from pages.page()
        return found

    @overload
    def grouped(
        self,
        query: Bundle2[A, B],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Work[tuple[list[A], list[B]]]: ...
    @overload
    def grouped(
        self,
        query: Bundle3[A, B, C],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Work[tuple[list[A], list[B], list[C]]]: ...
    @overload
    def grouped(
        self,
        query: Bundle4[A, B, C, D],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Work[tuple[list[A], list[B], list[C], list[D]]]: ...
    @overload
    def grouped(
        self,
        query: BundleMany,
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Work[tuple[list[Any], ...]]: ...
    def grouped(
        self,
        query: Selection[Any],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Work[tuple[list[Any], ...]]:
        """Return everything a ``together`` pattern finds, as one list for each of its entities.

        ``[user], orders = db.grouped(profile("u1"))``: the lists have the order of ``together(User,
        Order)``, and the items in a list have the pattern's order. ``fetch`` gives all items in
        one order, page by page.
        """
        found = yield from self.all(
            query, limit=limit, consistent=consistent, include_expired=include_expired
        )
        return pattern_read.by_entity(self.context, query, found)

    def count(
        self,
        query: Query[Any] | Count[Any],
        *,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Work[int]:
        """Count the items a pattern finds.

        DynamoDB reads and bills the items, but sends none of them. If an index of an earlier plan
        does not hold the expiry time, expired items are counted until DynamoDB deletes them. The
        other arguments are those of ``fetch``.
        """
        return PatternRead(self.context, query, ReadOptions(consistent, include_expired)).count()

    def explain(self, query: Question) -> Explanation:
        """Return the requests of a pattern, with index, cost and reasons. Nothing is sent."""
        return pattern_read.explained(self.context, query)

    def scan(
        self,
        entity: type[E],
        /,
        *,
        allow: bool = False,
        segments: int = 1,
        consistent: bool = False,
        include_expired: bool = False,
        include_deleted: bool = False,
    ) -> Pages[E]:
        """Iterate over every item of an entity by reading its whole table.

        ``allow=True`` confirms that reading, and paying for, the whole table is intended.
        ``segments`` is the number of segments that are scanned in parallel. The other arguments are
        those of ``get``.
        """
        return EntityScan(
            self.context,
            self.context.schema.of_class(entity),
            allow=allow,
            segments=segments,
            options=ReadOptions(consistent, include_expired, include_deleted),
        )
