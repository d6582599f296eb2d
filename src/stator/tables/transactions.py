"""Transactions: statements collected in a ``with`` block, sent once when it ends well, and not at all when it does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar, overload

from stator.errors import RequestRefused, TransactionConflict, TransactionFailed
from stator.tables.context import Context
from stator.tables.recording import Recorder, Recording
from stator.tables.schema import EntityMap
from stator.tables.sending import forget_blobs, send_all
from stator.tables.statements import Statement
from stator.tables.work import Pause, Work
from stator.tables.writes import Preparation, Prepare, Raced

E = TypeVar("E")
_RACES = 20


class Transaction:
    """Up to 100 writes and checks, all or nothing. ``token`` makes it idempotent for ten minutes: the same token does it once."""

    def __init__(self, context: Context, token: str | None = None) -> None:
        self._context = context
        self._token = token
        self._preparation = Preparation(context)
        self._prepared: list[Prepare] = []
        self._open: list[tuple[EntityMap, list[Any]]] = []
        self._sent = False

    def create(self, entity: Any, *, when: Any = None) -> None:
        """Write a new item; the transaction fails if there is one."""
        self._add(lambda: self._preparation.create(entity, when))

    def put(self, entity: Any, *, when: Any = None) -> None:
        self._add(lambda: self._preparation.put(entity, when))

    def delete(self, entity: Any, /, *, when: Any = None, must_exist: bool = False, **identity: Any) -> None:
        """By class and identity, or an object as it was read."""
        of, values, given = target(self._context, entity, identity)
        self._add(lambda: self._preparation.delete(of, values, entity=given, when=when, must_exist=must_exist))

    def check(self, entity: Any, /, *, when: Any = None, must_exist: bool = True, **identity: Any) -> None:
        """Write nothing, but fail the transaction unless this holds."""
        of, values, _ = target(self._context, entity, identity)
        if when is None and not must_exist:
            raise RequestRefused("this check always holds", hint="say when=..., or must_exist=True")
        self._add(lambda: self._preparation.check(of, values, when, must_exist))

    @overload
    def update(
        self, entity: type[E], /, *, when: Any = None, or_create: bool = False, **identity: Any
    ) -> AbstractContextManager[E]: ...
    @overload
    def update(self, entity: E, /, *, when: Any = None) -> AbstractContextManager[E]: ...
    def update(self, entity: Any, /, *, when: Any = None, or_create: bool = False, **identity: Any) -> Any:
        """``with tx.update(Product, sku="s1") as p: p.stock -= 2``."""
        return self._update(entity, identity, [] if when is None else [when], or_create)

    @contextmanager
    def _update(self, entity: Any, identity: dict[str, Any], conditions: list[Any], or_create: bool) -> Iterator[Any]:
        of, values, given = target(self._context, entity, identity)
        recording = Recording(of)
        self._open.append((of, conditions))
        try:
            yield Recorder(recording)
        finally:
            self._open.pop()
        self._add(
            lambda: self._preparation.update(of, recording, values, entity=given, when=conditions, or_create=or_create)
        )

    def require(self, condition: Any) -> None:
        """What must hold of the item whose update is open, or the whole transaction fails."""
        if not self._open:
            raise RequestRefused(
                "require() is about the update that is open, and none is",
                hint="use it inside `with tx.update(...)`, or tx.check(Product, sku=..., when=...)",
            )
        self._open[-1][1].append(condition)

    def include(self, prepare: Prepare) -> None:
        """Statements of a pattern's, such as an outbox's. They are made when the transaction is sent, and made anew if one of them fails as ``Raced``."""
        self._add(prepare)

    def _add(self, prepare: Prepare) -> None:
        if self._sent:
            raise RequestRefused("this transaction has been sent already", hint="begin a new one")
        self._prepared.append(prepare)

    # -- the end of it

    def commit(self) -> Work[None]:
        self._sent = True
        for attempt in range(_RACES):
            statements: list[Statement] = []
            for prepare in self._prepared:
                statements += yield from prepare()
            try:
                yield from send_all(self._context, statements, "transaction", token=self._token)
                yield from forget_blobs(self._context, statements, has_happened=True)
                return
            except TransactionFailed as failed:
                if not all(isinstance(error, Raced) for _, _, error in failed.failures):
                    yield from forget_blobs(self._context, statements, has_happened=False)
                    raise
                yield Pause(self._context.backoff(attempt))
        raise TransactionConflict("the unique values in this transaction are changed by others all the time")


def target(context: Context, entity: Any, identity: dict[str, Any]) -> tuple[EntityMap, dict[str, Any], Any]:
    """What a write is about: the entity, the fields that find it, and the object if one was given."""
    if isinstance(entity, type):
        return context.schema.of(entity), identity, None
    if identity:
        raise RequestRefused(
            "an object has its identity already", hint="pass the class and the identity, or the object alone"
        )
    of = context.schema.of_object(entity)
    return of, {name: getattr(entity, name) for name in {*of.identity, *of.base_fields}}, entity
