"""Transactions: writes collected in a ``with`` block and sent as one when it ends."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar, overload

from stator.design.entities.storable import Storable
from stator.errors import RequestRefused, TransactionConflict, TransactionFailed
from stator.tables.argument_rules import checks_arguments, named
from stator.tables.blocks import WithBlock
from stator.tables.context import Context
from stator.tables.schema.entity_map import EntityMap
from stator.tables.work import Pause, Work
from stator.tables.writes.recorder import Recorder, Recording
from stator.tables.writes.sender import forget_blobs, send_all
from stator.tables.writes.statements import LostRace, Prepare, Statement
from stator.tables.writes.transaction_tokens import is_done_before, token_statement
from stator.tables.writes.unique_guards import merge_guard_handovers
from stator.tables.writes.writes import WritePlanner

E = TypeVar("E")
_RACES = 20
_MOST_SHOWN = 10


@checks_arguments("tx")
class Transaction:
    """Up to 100 writes and checks, all or nothing.

    A ``token`` makes it idempotent for a day: sent again with the same token, it is applied once.
    """

    def __init__(self, context: Context, token: str | None = None) -> None:
        self._context = context
        self._token = token
        self._preparation = WritePlanner(context)
        self._prepared: list[Prepare] = []
        self._intents: list[str] = []
        self._shown: list[Callable[[], str]] = []
        self._open: list[tuple[EntityMap, list[Any]]] = []
        self._sent = False

    def create(self, entity: Storable, *, when: Any = None) -> None:
        """Write a new item. The transaction fails if the item exists."""
        of = self._context.schema.of_object(entity)
        self._add(
            lambda: f"create {of.shown_entity(entity)}",
            lambda: self._preparation.create(entity, when),
            lambda: f"create {self._given(entity)} {when!r}",
        )

    def put(self, entity: Storable, *, when: Any = None) -> None:
        """Add a write of an item, whether it exists or not, as ``db.put`` does."""
        of = self._context.schema.of_object(entity)
        self._add(
            lambda: f"put {of.shown_entity(entity)}",
            lambda: self._preparation.put(entity, when),
            lambda: f"put {self._given(entity)} {when!r}",
        )

    def delete(
        self,
        entity: Any,
        /,
        *,
        when: Any = None,
        must_exist: bool = False,
        purge: bool = False,
        **identity: Any,
    ) -> None:
        """Delete an item: by class and identity, or as an object that was read.

        With ``purge``, an item with a ``soft_delete()`` field is really removed.
        """
        of, values, given = target(self._context, entity, identity)
        self._add(
            lambda: f"delete {of.shown(values)}",
            lambda: self._preparation.delete(
                of, values, entity=given, when=when, must_exist=must_exist, purge=purge
            ),
            lambda: f"delete {of.name} {sorted(values.items())} {when!r}",
        )

    def check(
        self, entity: Any, /, *, when: Any = None, must_exist: bool = True, **identity: Any
    ) -> None:
        """Write nothing, but fail the transaction unless the item exists and ``when`` holds.

        With ``must_exist=False``, only ``when`` must hold.
        """
        of, values, _ = target(self._context, entity, identity)
        if when is None and not must_exist:
            raise RequestRefused(
                f"this check of {of.name} can never fail: it has no condition",
                hint="pass when=..., or must_exist=True",
            )
        self._add(
            lambda: f"check {of.shown(values)}",
            lambda: self._preparation.check(of, values, when, must_exist),
            lambda: f"check {of.name} {sorted(values.items())} {when!r}",
        )

    @overload
    def update(
        self, entity: type[E], /, *, when: Any = None, or_create: bool = False, **identity: Any
    ) -> AbstractContextManager[E]: ...
    @overload
    def update(self, entity: E, /, *, when: Any = None) -> AbstractContextManager[E]: ...
    def update(
        self, entity: Any, /, *, when: Any = None, or_create: bool = False, **identity: Any
    ) -> Any:
        """Change parts of an item: ``with tx.update(Product, sku="s1") as p: p.stock -= 2``."""
        conditions = [] if when is None else [when]
        return WithBlock(self._update(entity, identity, conditions, or_create), "tx.update(...)")

    @contextmanager
    def _update(
        self, entity: Any, identity: dict[str, Any], conditions: list[Any], or_create: bool
    ) -> Iterator[Any]:
        of, values, given = target(self._context, entity, identity)
        recording = Recording(of)
        self._open.append((of, conditions))
        try:
            yield Recorder(recording)
        finally:
            self._open.pop()
            recording.is_over = True
        self._add(
            lambda: f"update {of.shown(values)}",
            lambda: self._preparation.update(
                of, recording, values, entity=given, when=conditions, or_create=or_create
            ),
            lambda: (
                f"update {of.name} {sorted(values.items())} "
                f"{list(recording.actions.values())!r} {conditions!r}"
            ),
        )

    def require(self, condition: Any) -> None:
        """Make the transaction fail unless this condition holds for the item of the open update."""
        if not self._open:
            raise RequestRefused(
                "require() adds a condition to an open update, and no update is open",
                hint="use it inside `with tx.update(...)`, or tx.check(Product, sku=..., when=...)",
            )
        self._open[-1][1].append(condition)

    def include(self, prepare: Prepare) -> None:
        """Add the statements of a pattern object, such as an outbox, to the transaction.

        ``prepare`` plans them when the transaction is sent, and again after a ``LostRace``.
        """
        self._add(lambda: "the writes of a pattern", prepare, lambda: "a pattern's")

    def _add(self, shown: Callable[[], str], prepare: Prepare, intent: Callable[[], str]) -> None:
        if self._sent:
            raise RequestRefused("this transaction has been sent already", hint="start a new one")
        self._shown.append(shown)
        self._prepared.append(prepare)
        self._intents.append(intent() if self._token is not None else "")

    @property
    def is_empty(self) -> bool:
        """Whether the transaction has no writes and no checks yet."""
        return not self._prepared

    def __repr__(self) -> str:
        """Return the writes so far, each with the identity of its item, without other values."""
        shown = [each() for each in self._shown[:_MOST_SHOWN]]
        if len(self._shown) > _MOST_SHOWN:
            shown.append(f"and {len(self._shown) - _MOST_SHOWN} more")
        state = "sent" if self._sent else "open"
        return f"<Transaction, {state}: {', '.join(shown) or 'nothing yet'}>"

    def _given(self, entity: Any) -> str:
        """Return an entity as text for the token's checksum.

        Fields that a write sets by itself are left out.
        """
        of = self._context.schema.of_object(entity)
        values = {name: getattr(entity, name) for name in of.own_fields if name not in of.stamps}
        return f"{of.name} {values}"

    # -- the end of it

    def commit(self) -> Work[None]:
        self._sent = True
        for attempt in range(_RACES):
            statements = yield from self._statements()
            yield from self._context.index_shards.place(statements)
            try:
                yield from send_all(self._context, statements, "transaction")
                yield from forget_blobs(self._context, statements, has_happened=True)
                return
            except TransactionFailed as failed:
                if self._token is not None and is_done_before(
                    failed, len(statements) - 1, self._intents
                ):
                    yield from forget_blobs(self._context, statements, has_happened=False)
                    return
                if not all(isinstance(error, LostRace) for _, _, error in failed.failures):
                    if not failed.sent:
                        yield from forget_blobs(self._context, statements, has_happened=False)
                    raise
                yield Pause(self._context.backoff(attempt))
        raise TransactionConflict(
            f"other writers changed items of the transaction in each of {_RACES} attempts",
            hint="try the transaction again later",
        )

    def _statements(self) -> Work[list[Statement]]:
        statements: list[Statement] = []
        for prepare in self._prepared:
            work: Any = prepare()
            if not isinstance(work, Generator):
                raise RequestRefused(
                    f"tx.include() got a function that returns {named(type(work))}",
                    hint="pass a function that returns work, which plans statements",
                )
            statements += yield from work
        statements = merge_guard_handovers(statements)
        _refuse_two_of_one_item(self._context, statements)
        if statements and self._token is not None:
            statements.append(token_statement(self._context, self._token, self._intents))
        return statements


def _refuse_two_of_one_item(context: Context, statements: list[Statement]) -> None:
    """Raise RequestRefused if two statements are about one item, which DynamoDB does not take."""
    schema, seen = context.schema, dict[str, Statement]()
    for each in statements:
        request = each.request
        name = request["TableName"]
        table = schema.tables.get(name)
        if table is not None:
            names = (table.partition, *((table.sort,) if table.sort is not None else ()))
        elif name == schema.place.table:
            names = (schema.place.partition, schema.place.sort)
        else:
            continue  # a table of a pattern object, which makes no two writes of an item
        item = request.get("Key") or request["Item"]
        key = f"{name} {[item[part] for part in names]!r}"
        first = seen.setdefault(key, each)
        if first is each:
            continue
        if first.guard is not None:
            raise RequestRefused(
                f"two items of the transaction have one identity or unique value: {first.shown}",
                hint="give them different values",
            )
        raise RequestRefused(
            f"the transaction has two statements about one item: {first.shown}, and {each.shown}",
            hint="DynamoDB takes one write or check for each item of a transaction: make them one, "
            "for example an update with when=, or send two transactions",
        )


def target(
    context: Context, entity: Any, identity: dict[str, Any]
) -> tuple[EntityMap, dict[str, Any], Any]:
    """Return the entity that a write changes, and the values that identify the item.

    The third result is the object that was passed, or None if a class was passed.
    """
    if isinstance(entity, type):
        of = context.schema.of_class(entity)
        return of, dict(of.given(identity)), None
    if identity:
        raise RequestRefused(
            "identity fields were passed together with an object, which has its own identity",
            hint="pass the class and the identity, or the object alone",
        )
    of = context.schema.of_object(entity)
    return of, {name: getattr(entity, name) for name in {*of.identity, *of.base_fields}}, entity
