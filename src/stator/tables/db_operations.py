"""Every operation of ``Db`` and ``AsyncDb``, defined and documented once.

A method here plans: it checks its arguments and returns ``Work``, or an object with work inside it
(pages to fetch, an update, a transaction). It does no I/O. ``db`` builds ``Db`` and ``AsyncDb``
from these methods, with their signatures, types and docstrings. ``db.operations`` is a
``DbOperations``, so work of your own can include an operation:
``user = yield from db.operations.get(User, ...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar, overload

from stator.design.entities.storable import Storable
from stator.design.patterns.explanation import Explanation
from stator.design.patterns.pattern import (
    Bundle2,
    Bundle3,
    Bundle4,
    BundleMany,
    Count,
    Query,
    Question,
    Selection,
)
from stator.design.table_settings import TableSettings
from stator.errors import ItemNotFound, RequestRefused
from stator.model.values import Item
from stator.tables.argument_rules import checks_arguments
from stator.tables.context import Context
from stator.tables.lifecycle import TableSetup
from stator.tables.reads import items, pattern_read
from stator.tables.reads.item_list import ItemList
from stator.tables.reads.pattern_read import Page, PatternFetch, PatternRead, ReadOptions
from stator.tables.reads.scan import EntityScan
from stator.tables.reads.snapshot import Get, read_snapshot
from stator.tables.schema import EntityMap
from stator.tables.work import Call, Pages, Work
from stator.tables.writes.batches import Batch, BatchResult, Delete, OnError, check_on_error
from stator.tables.writes.open_update import OpenUpdate
from stator.tables.writes.pattern_write import (
    PatternDelete,
    PatternUpdate,
    PatternWrite,
    PatternWriteOptions,
    PatternWritePreview,
    PatternWriteResult,
)
from stator.tables.writes.sender import Returns, write, write_entity
from stator.tables.writes.statements import Statement
from stator.tables.writes.transactions import Transaction, target
from stator.tables.writes.writes import WritePlanner

A = TypeVar("A", bound=Storable)
B = TypeVar("B", bound=Storable)
C = TypeVar("C", bound=Storable)
D = TypeVar("D", bound=Storable)
E = TypeVar("E", bound=Storable)
F = TypeVar("F")


@checks_arguments("db")
class DbOperations:
    """Plans the operations on one design's tables."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._writes = WritePlanner(context)

    def call(
        self, operation: str, request: Mapping[str, Any], *, idempotent: bool | None = None
    ) -> Work[dict[str, Any]]:
        """Send one DynamoDB operation by name, in DynamoDB JSON, and return its answer.

        ``idempotent`` says whether the call may be sent again when its answer is lost. The default
        is False for UpdateItem, for PartiQL statements and for writes that return the old item
        (``ReturnValues``), and True for all other operations. A transaction gets a
        ClientRequestToken if ``request`` has none, so that it can be sent again safely.
        """
        given: Any = request
        if not isinstance(operation, str) or not isinstance(given, Mapping):
            wrong = ("name", operation) if isinstance(given, Mapping) else ("request", given)
            raise RequestRefused(
                f"db.call(): the {wrong[0]} of the operation is a {type(wrong[1]).__name__}",
                hint='pass a name and a dict: db.call("DescribeTable", {"TableName": "shop"})',
            )
        sent = dict(request)
        if operation in _TAKE_A_TOKEN:
            sent.setdefault("ClientRequestToken", self.context.token())
        if idempotent is None:
            returns = str(sent.get("ReturnValues", ""))
            idempotent = operation not in _NOT_IDEMPOTENT and not returns.endswith("_OLD")
        reply: dict[str, Any] = yield Call(operation, sent, operation, idempotent)
        return reply

    def ensure(self, settings: TableSettings | None = None) -> Work[list[str]]:
        """Create the tables, or adjust them to the design.

        ``settings`` replaces the table settings of the design. Return one line for each change. A
        change that would lose data raises DestructiveChange before anything is changed.
        """
        declared = self.context.schema.design.settings
        return TableSetup(self.context, settings or declared or TableSettings()).run()

    # -- single items

    def create(self, entity: E, *, when: Any = None, once: bool = False) -> Work[E]:
        """Write a new item, and return the entity as stored.

        Sets version, times and expiry on ``entity``, which is also the result. A frozen entity
        stays as it is, and the result is a copy. Raises ItemExists if the item already exists,
        UniqueTaken if another item has one of its unique values, and ConditionFailed if ``when``
        does not hold.

        If DynamoDB's answer is lost, the client sends the write again. If its condition is then
        false, the first attempt may or may not have succeeded, and the call raises OutcomeUnknown.
        With ``once``, the write is sent as a transaction with a token, which DynamoDB applies only
        once in ten minutes. It costs twice the write units. A ``write_token()`` field is another
        way to learn the outcome.
        """
        of = self.context.schema.of_object(entity)
        return write_entity(
            self.context,
            of,
            lambda: self._writes.create(entity, when),
            f"create {of.name}",
            once=once,
        )

    @overload
    def put(
        self, entity: E, *, when: Any = None, returns: None = None, once: bool = False
    ) -> Work[E]: ...
    @overload
    def put(
        self, entity: E, *, when: Any = None, returns: Literal["old"], once: bool = False
    ) -> Work[E | None]: ...
    def put(
        self,
        entity: E,
        *,
        when: Any = None,
        returns: Literal["old"] | None = None,
        once: bool = False,
    ) -> Work[E | None]:
        """Write an item, whether it exists or not, and return the entity as stored.

        Sets version, times and expiry on ``entity``, which is also the result. A frozen entity
        stays as it is, and the result is a copy. With ``returns="old"``, return the replaced item
        instead, or None if there was none. Raises VersionConflict if the entity has a version and
        the stored version differs, and ConditionFailed if ``when`` does not hold for the stored
        item. ``once`` sends a transaction with a token, as in ``create``.
        """
        of = self.context.schema.of_object(entity)
        return write_entity(
            self.context,
            of,
            lambda: self._writes.put(entity, when),
            f"put {of.name}",
            returns=returns,
            once=once,
        )

    def upsert(self, entity: E, *, when: Any = None, once: bool = False) -> Work[E]:
        """Create an item, or set every field of the existing one.

        Return the item as stored. The time of creation does not change, nor do attributes that are
        not fields of the entity. Sets version, times and expiry on ``entity``, unless it is frozen.
        Raises ConditionFailed if ``when`` does not hold for the stored item, and ItemNotFound if
        another writer deletes the item before the result is read. ``once`` sends a transaction with
        a token, as in ``create``.
        """
        of = self.context.schema.of_object(entity)

        def read(statements: list[Statement], item: Item | None) -> Work[Any]:
            if item is None:  # it was sent as a transaction, which returns nothing
                item = yield from self._writes.stored(of, of.key_of(entity))
            if item is None:
                raise ItemNotFound(
                    f"{of.shown_entity(entity)} was written, and deleted by another writer before "
                    "it could be read",
                    item=None,
                )
            [stored] = yield from items.decoded(self.context, of, [item])
            return stored

        stored = yield from write(
            self.context,
            lambda: self._writes.upsert(entity, when),
            f"upsert {of.name}",
            returns="new",
            once=once,
            read=read,
        )
        names = of.own_fields if of.before_write else of.stamps
        of.write_back(entity, {name: getattr(stored, name) for name in names})
        result: E = stored
        return result

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
                of.given(_as_identity(of.identity, each))
                for each in _identities("get_many", of, identities)
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
            several = list(_several("snapshot", "Get", gets[0], 'Get(User, user_id="u1")'))
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

    @overload
    def update(
        self,
        entity: type[E],
        /,
        *,
        when: Any = None,
        or_create: bool = False,
        returns: Returns | None = None,
        once: bool = False,
        **identity: Any,
    ) -> OpenUpdate[E]: ...
    @overload
    def update(
        self, entity: E, /, *, when: Any = None, returns: Returns | None = None, once: bool = False
    ) -> OpenUpdate[E]: ...
    def update(
        self,
        entity: Any,
        /,
        *,
        when: Any = None,
        or_create: bool = False,
        returns: Returns | None = None,
        once: bool = False,
        **identity: Any,
    ) -> OpenUpdate[Any]:
        """Change parts of an item: ``with db.update(User, user_id="u1") as u: u.name = "Anna"``.

        The block records the changes. At its end they are sent as one UpdateItem. The item is read
        first only if that is necessary, for example to free an old unique value. With ``AsyncDb``,
        write ``async with``.

        If you pass an object instead of a class, the update applies only if the stored item still
        has the object's version. Afterwards the new values are copied to the object. With
        ``returns="old"``, values that DynamoDB computes are not copied.

        Raises ConditionFailed if ``when`` (``User.name == "Ann"``) does not hold for the stored
        item. ``or_create`` creates a missing item from the changes and the fields' defaults. With
        ``returns`` ("old" or "new"), the update's ``result`` is the item before or after the
        update. ``once`` sends a transaction with a token, as in ``create``. The update is then
        never applied twice.
        """
        return OpenUpdate(
            self.context,
            entity,
            identity,
            when=when,
            or_create=or_create,
            returns=returns,
            once=once,
        )

    @overload
    def patch(
        self,
        entity: object,
        changes: Mapping[str, Any],
        /,
        *,
        when: Any = None,
        returns: None = None,
        once: bool = False,
        **identity: Any,
    ) -> Work[None]: ...
    @overload
    def patch(
        self,
        entity: type[E],
        changes: Mapping[str, Any],
        /,
        *,
        when: Any = None,
        returns: Returns,
        once: bool = False,
        **identity: Any,
    ) -> Work[E]: ...
    @overload
    def patch(
        self,
        entity: E,
        changes: Mapping[str, Any],
        /,
        *,
        when: Any = None,
        returns: Returns,
        once: bool = False,
    ) -> Work[E]: ...
    def patch(
        self,
        entity: Any,
        changes: Mapping[str, Any],
        /,
        *,
        when: Any = None,
        returns: Returns | None = None,
        once: bool = False,
        **identity: Any,
    ) -> Work[Any]:
        """Change the fields that a dict names: ``db.patch(User, {"name": "Anna"}, user_id="u1")``.

        ``changes`` may be the JSON of an HTTP PATCH: times and dates as ISO text, decimals as
        numbers or text, sets as lists, nested objects as dicts. None removes an optional field.
        Unknown names, fields of the key, and fields that Stator sets raise UpdateRefused. A value
        that does not fit its field raises ItemMismatch, and a missing item raises ItemNotFound.

        Returns None, or with ``returns`` the item before ("old") or after ("new") the update. If
        you pass an object instead of a class, the stored item must still have the object's
        version, as in ``update``. ``when`` and ``once`` have the same meaning as there, too.
        """
        update: OpenUpdate[Any] = OpenUpdate(
            self.context, entity, identity, when=when, returns=returns, once=once
        )
        update.patch(changes)
        yield from update.work()
        return update.result

    @overload
    def delete(
        self,
        entity: type[E],
        /,
        *,
        when: Any = None,
        must_exist: bool = False,
        keep_blobs: bool = False,
        purge: bool = False,
        returns: Literal["old"] | None = None,
        once: bool = False,
        **identity: Any,
    ) -> Work[E | None]: ...
    @overload
    def delete(
        self,
        entity: E,
        /,
        *,
        when: Any = None,
        must_exist: bool = False,
        keep_blobs: bool = False,
        purge: bool = False,
        returns: Literal["old"] | None = None,
        once: bool = False,
    ) -> Work[E | None]: ...
    def delete(
        self,
        entity: Any,
        /,
        *,
        when: Any = None,
        must_exist: bool = False,
        keep_blobs: bool = False,
        purge: bool = False,
        returns: Literal["old"] | None = None,
        once: bool = False,
        **identity: Any,
    ) -> Work[Any]:
        """Delete an item: by class and identity, or as an object that was read.

        An object is deleted only if the stored item still has its version. Raises ConditionFailed
        if ``when`` does not hold for the stored item. With ``must_exist``, a missing item raises
        ItemNotFound. With ``keep_blobs``, the item's blobs (``large()`` values that are stored
        outside the table) are moved under ``kept/`` instead of deleted. With ``returns="old"``,
        return the deleted item, or None if there was none. ``once`` sends a transaction with a
        token, as in ``create``.

        If the entity has a ``soft_delete()`` field, the item is marked as deleted instead.
        ``restore`` brings it back, and ``purge`` really removes it.
        """
        of, values, read = target(self.context, entity, identity)
        return write_entity(
            self.context,
            of,
            lambda: self._writes.delete(
                of,
                values,
                entity=read,
                when=when,
                must_exist=must_exist,
                keep_blobs=keep_blobs,
                purge=purge,
            ),
            f"delete {of.name}",
            returns=returns,
            once=once,
        )

    def restore(self, entity: type[E], /, **identity: Any) -> Work[E]:
        """Bring back an item that ``delete`` marked in its ``soft_delete()`` field, and return it.

        An item that is not deleted is returned as it is. Raises ItemNotFound if there is no item,
        and UniqueTaken if another item has one of its unique values by now.
        """
        of = self.context.schema.of_class(entity)

        def read(statements: list[Statement], item: Item | None) -> Work[E]:
            return self.get_one(entity, consistent=True, **identity)

        restored: E = yield from write(
            self.context,
            lambda: self._writes.restore(of, of.given(identity)),
            f"restore {of.name}",
            read=read,
        )
        return restored

    # -- patterns

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

        DynamoDB reads and bills the items, but sends none of them. If the index does not hold the
        expiry time, expired items are counted until DynamoDB deletes them. The other arguments are
        those of ``fetch``.
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

    # -- several at once

    def transaction(self, *, token: str | None = None) -> Transaction:
        """Collect the writes of a ``with`` block and send them as one transaction: all or none.

        Nothing is sent if the block raises. A transaction with a ``token`` is applied once, no
        matter how often it is sent within a day.
        """
        return Transaction(self.context, token)

    def write_many(
        self, changes: Iterable[Storable | Delete], *, on_error: OnError = "raise"
    ) -> Work[BatchResult]:
        """Write any number of changes in batches.

        A change is an entity to put, or a ``Delete(...)``. Every change is tried. If some changes
        fail, the call raises BatchFailed at its end, whose ``failures`` names each failed change
        and the reason. With ``on_error="collect"``, the result has these ``failures`` instead.
        """
        check_on_error(on_error)
        if isinstance(changes, Delete) or type(changes) in self.context.schema.maps:
            raise RequestRefused(
                f"db.write_many() takes a list of changes, not one {type(changes).__name__}",
                hint="put it into a list: db.write_many([order])",
            )
        several = _several("write_many", "changes", changes, "order")
        batch, result = Batch(self.context, several), BatchResult()
        while (window := (yield from batch.window())) is not None:
            result.add(window)
        return result.settled(on_error)

    def delete_many(
        self, entity: type[Any], identities: Iterable[Any], *, on_error: OnError = "raise"
    ) -> Work[BatchResult]:
        """Delete items in batches. Identities have the same form as in ``get_many``.

        Items that could not be deleted raise BatchFailed, as in ``write_many``.
        """
        of = self.context.schema.of_class(entity)
        several = _identities("delete_many", of, identities)
        return self.write_many(
            (Delete(entity, **_as_identity(of.identity, each)) for each in several),
            on_error=on_error,
        )

    @overload
    def delete_where(
        self,
        query: Selection[Any],
        *,
        dry_run: Literal[False] = False,
        cursor: str | None = None,
        limit: int | None = None,
        parallel: int = 16,
        max_failures: int = 100,
        include_expired: bool = False,
        keep_blobs: bool = False,
        on_progress: Callable[[PatternWriteResult], None] | None = None,
    ) -> Work[PatternWriteResult]: ...
    @overload
    def delete_where(
        self,
        query: Selection[Any],
        *,
        dry_run: Literal[True],
        cursor: str | None = None,
        limit: int | None = None,
        include_expired: bool = False,
        keep_blobs: bool = False,
    ) -> Work[PatternWritePreview]: ...
    def delete_where(
        self,
        query: Selection[Any],
        *,
        dry_run: bool = False,
        cursor: str | None = None,
        limit: int | None = None,
        parallel: int = 16,
        max_failures: int = 100,
        include_expired: bool = False,
        keep_blobs: bool = False,
        on_progress: Callable[[PatternWriteResult], None] | None = None,
    ) -> Work[PatternWriteResult | PatternWritePreview]:
        """Delete every item that a pattern finds, each as ``delete`` would.

        An item is deleted only if it still meets the pattern's conditions and has the version that
        was read; otherwise it is counted as skipped. ``dry_run`` deletes nothing: it returns the
        number of items, a sample of their identities, and the cost.

        ``parallel`` is the number of items that are deleted at the same time. ``limit`` ends the
        call after that many items, ``max_failures`` after that many failures.

        ``on_progress`` receives the result so far after every hundred items or so. To continue
        after the process was killed, pass the ``cursor`` of the last such result to a new call. No
        item is left out. If a call ends early, its own result has a cursor as well.
        """
        kind = PatternDelete(self.context, query, keep_blobs=keep_blobs)
        options = PatternWriteOptions(
            cursor, limit, parallel, max_failures, include_expired, on_progress
        )
        run = PatternWrite(self.context, kind, options)
        return run.preview() if dry_run else run.run()

    @overload
    def update_where(
        self,
        query: Query[E],
        change: Callable[[E], None],
        *,
        dry_run: Literal[False] = False,
        cursor: str | None = None,
        limit: int | None = None,
        parallel: int = 16,
        max_failures: int = 100,
        include_expired: bool = False,
        on_progress: Callable[[PatternWriteResult], None] | None = None,
    ) -> Work[PatternWriteResult]: ...
    @overload
    def update_where(
        self,
        query: Query[E],
        change: Callable[[E], None],
        *,
        dry_run: Literal[True],
        cursor: str | None = None,
        limit: int | None = None,
        include_expired: bool = False,
    ) -> Work[PatternWritePreview]: ...
    def update_where(
        self,
        query: Query[Any],
        change: Callable[[Any], None],
        *,
        dry_run: bool = False,
        cursor: str | None = None,
        limit: int | None = None,
        parallel: int = 16,
        max_failures: int = 100,
        include_expired: bool = False,
        on_progress: Callable[[PatternWriteResult], None] | None = None,
    ) -> Work[PatternWriteResult | PatternWritePreview]:
        """Apply the same update to every item that a pattern finds.

        ``change`` is a function that changes its argument, as the block of ``update`` does: ``def
        close(order: Order) -> None: order.status = "closed"``. The function records changes and
        cannot read the item. Each call of ``update_where`` updates an item once, even if the update
        changes the key by which the pattern finds the item.

        As with ``delete_where``, an item is skipped if it no longer meets the pattern's conditions
        or has another version. The other arguments are the same, too. If a killed run is continued,
        relative changes (``+=``) may be applied twice to the last hundred items or so.
        """
        kind = PatternUpdate(self.context, query, change)
        options = PatternWriteOptions(
            cursor, limit, parallel, max_failures, include_expired, on_progress
        )
        run = PatternWrite(self.context, kind, options)
        return run.preview() if dry_run else run.run()


def _several(call: str, what: str, given: Any, example: str) -> Iterable[Any]:
    """Return an argument that must be a list or another iterable. Raises RequestRefused if not.

    Text, bytes and mappings are refused, although Python can iterate over them: they are single
    values here. ``call``, ``what`` and ``example`` are words for the message.
    """
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes, bytearray, Mapping)):
        return given
    raise RequestRefused(
        f"db.{call}() takes a list of {what}, not one {type(given).__name__}",
        hint=f"pass a list: [{example}]",
    )


def _identities(call: str, of: EntityMap, given: Any) -> Iterable[Any]:
    """Return the identities that a caller passed in ``given``.

    If ``given`` is a dict by identity, such as ``{"u1": ..., "u2": ...}``, its keys are taken. A
    single identity, such as ``{"user_id": "u1"}``, is refused with RequestRefused.
    """
    if isinstance(given, Mapping) and not set(given) <= set(of.identity):
        given = list(given)
    example = ", ".join(f'"{name}": ...' for name in of.identity)
    return _several(call, f"identities of {of.name}", given, f"{{{example}}}")


def _as_identity(names: tuple[str, ...], value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {names[0]: value}


_NOT_IDEMPOTENT = frozenset({"UpdateItem", "ExecuteStatement", "BatchExecuteStatement"})
_TAKE_A_TOKEN = frozenset({"TransactWriteItems", "ExecuteTransaction"})
