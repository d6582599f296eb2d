"""The operations of ``Db`` and ``AsyncDb`` that write: one item, several, all of a pattern.

Each method plans, and does no I/O: ``db_operations`` says how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar, overload

from stator.design.entities.storable import Storable
from stator.design.patterns.query import Query, Selection
from stator.errors import ItemNotFound, RequestRefused
from stator.model.values import Item
from stator.tables.argument_rules import checks_arguments
from stator.tables.context import Context
from stator.tables.list_arguments import as_identity, identities_in, listed
from stator.tables.read_operations import ReadOperations
from stator.tables.reads import items
from stator.tables.work import Work
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

E = TypeVar("E", bound=Storable)


@checks_arguments("db")
class WriteOperations:
    """Plans the writes to one design's tables."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._writes = WritePlanner(context)
        self._reads = ReadOperations(context)

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
        you pass an object instead of a class, the stored item must still have the object's version,
        as in ``update``. ``when`` and ``once`` also have the same meaning as in ``update``.
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
            return self._reads.get_one(entity, consistent=True, **identity)

        restored: E = yield from write(
            self.context,
            lambda: self._writes.restore(of, of.given(identity)),
            f"restore {of.name}",
            read=read,
        )
        return restored

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
        several = listed("db.write_many", "changes", changes, "order")
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
        several = identities_in("delete_many", of, identities)
        return self.write_many(
            (Delete(entity, **as_identity(of.identity, each)) for each in several),
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
