"""Dry runs: the exact request of a write, its conditions and its price, with nothing sent.

    dry = db.dry_run()
    print(dry.put(order, once=True))
    changing = dry.update(Order, order_id="o1")
    with changing as o:
        o.total += 5
    print(changing.explanation)

A dry run plans a write as ``Db`` does, up to its first request that writes, and stops there. So
nothing is stored, and the caller's objects stay as they are. Some writes read the item first, for
example to free an old unique value. A dry run does not send such reads either. It shows them, and
plans the write as if they had found nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from stator.design.capacity_units import index_write_units, write_units
from stator.errors import ItemNotFound, RequestRefused
from stator.model.values import Item, item_size
from stator.tables.context import Context
from stator.tables.db_operations import DbOperations
from stator.tables.observers import WRITES
from stator.tables.schema.entity_map import EntityMap
from stator.tables.work import BlockingCall, Call, Gather, Work
from stator.tables.writes.open_update import OpenUpdate
from stator.tables.writes.transactions import Transaction
from stator.tables.writes.write_units import index_entry
from stator.tables.writes.writes import WRITE_TOKEN_CHARACTERS

E = TypeVar("E")
P = ParamSpec("P")
_SNAPSHOT_UNITS = 2
"""A transactional read costs two read units for each 4 KB of an item."""
_NOTHING = (
    "the write depends on the stored item, which a dry run does not read: if there is no item, "
    "nothing would be written"
)
_TRANSACTIONS = ("TransactWriteItems", "TransactGetItems")


@dataclass(frozen=True, slots=True)
class WriteExplanation:
    """The request that a write would send, and its price.

    ``operation`` is None if nothing would be written. If there are ``reads``, that is true only if
    they find nothing: a soft delete marks the item that it reads. ``reads`` are the requests that
    would be sent before the write. ``conditions`` are the write's conditions, with names and values
    filled in.

    ``units`` is the price in write units; for a snapshot, in read units. ``is_least`` says that the
    price is a lower bound, because it depends on the stored item. ``units_once`` is the price with
    ``once=True``, and ``units_with_token`` the price with a ``write_token()`` field. ``blobs``
    counts the values that would be offloaded.
    """

    operation: str | None
    request: dict[str, Any] = field(default_factory=dict)
    reads: tuple[tuple[str, dict[str, Any]], ...] = ()
    conditions: tuple[str, ...] = ()
    units: int = 0
    is_least: bool = False
    units_once: int = 0
    units_with_token: int = 0
    blobs: int = 0

    def __str__(self) -> str:
        if self.operation is None:
            return "\n".join(
                [_NOTHING if self.reads else "nothing would be written", *self._reads()]
            )
        lines = [
            self.operation,
            *(f"  condition  {condition}" for condition in self.conditions),
            f"  costs      {self._price(self.units)}",
            *(f"  proof      {line}" for line in self._proofs()),
        ]
        if self.blobs:
            lines.append(f"  offloads   {self.blobs} to the blob store")
        return "\n".join([*lines, *self._reads(), "  request", *_shown(self.request)])

    def _reads(self) -> list[str]:
        lines = []
        for operation, request in self.reads:
            lines.append(f"  reads      {operation}, shown as if it found nothing")
            lines += _shown(request)
        return lines

    def _price(self, units: int) -> str:
        kind = "read" if self.operation == "TransactGetItems" else "write"
        least = "at least " if self.is_least else ""
        return f"{least}{units} {kind} unit{'s' if units != 1 else ''}"

    def _proofs(self) -> list[str]:
        if self.operation == "TransactGetItems":
            return []
        if self.operation == "TransactWriteItems":
            return ["the transaction's token proves the outcome for ten minutes"]
        proofs = [f"once=True proves the outcome for ten minutes: {self._price(self.units_once)}"]
        if self.operation != "DeleteItem":
            proofs.append(
                "a write_token() field proves success while the token is in the item: "
                f"{self._price(self.units_with_token)}"
            )
        return proofs


def _shown(request: dict[str, Any]) -> list[str]:
    return [f"    {line}" for line in json.dumps(request, indent=2).splitlines()]


def explain_write(context: Context, work: Work[Any]) -> WriteExplanation:
    """Explain the first request of ``work`` that writes, without sending any request."""
    run = _Run()
    try:
        call = run.until_write(work)
    except ItemNotFound:
        if not run.reads:
            raise
        raise RequestRefused(
            "a dry run sends no requests, but this write must look up the item's key by a query",
            hint="pass all fields of the key",
        ) from None
    finally:
        work.close()
    reads = tuple((each.operation, each.request) for each in run.reads)
    if call is None:
        return WriteExplanation(None, reads=reads)
    parts = _parts(call)
    return WriteExplanation(
        call.operation,
        call.request,
        reads,
        tuple(_condition(request) for _, request in parts if "ConditionExpression" in request),
        is_least=any(not _creates(kind, request) for kind, request in parts),
        units=_units(context, call, parts),
        units_once=_units(context, call, parts, transactional=True),
        units_with_token=_units(context, call, parts, token=True),
        blobs=run.blobs,
    )


class _Run:
    """Runs work up to its first write, without I/O.

    Every read gets an empty answer, as if nothing were stored. ``reads`` lists the reads.
    """

    def __init__(self) -> None:
        self.reads: list[Call] = []
        self.blobs = 0

    def until_write(self, work: Work[Any]) -> Call | None:
        try:
            effect = next(work)
            while True:
                if isinstance(effect, Call) and _is_last(effect):
                    return effect
                effect = work.send(self._answer(effect))
        except StopIteration:
            return None

    def _answer(self, effect: Any) -> Any:
        if isinstance(effect, Call):
            self.reads.append(effect)
            return {"Items": [], "Responses": {}}
        if isinstance(effect, Gather):
            for part in effect.parts:
                if isinstance(part, Call):
                    self._answer(part)
                else:
                    self.until_write(part)
            return [None] * len(effect.parts)
        if isinstance(effect, BlockingCall):
            self.blobs += 1
        return None


def _is_last(call: Call) -> bool:
    return call.operation in WRITES or call.operation == "TransactGetItems"


def _parts(call: Call) -> list[tuple[str, dict[str, Any]]]:
    """Return the single writes or reads of a request, each with its kind: Put, Update, Delete..."""
    if call.operation in _TRANSACTIONS:
        return [next(iter(entry.items())) for entry in call.request["TransactItems"]]
    return [(call.operation.removesuffix("Item"), call.request)]


def _creates(kind: str, request: dict[str, Any]) -> bool:
    """Whether a write succeeds only if there is no item, so that its price is known exactly."""
    condition = request.get("ConditionExpression", "")
    return kind == "Put" and condition.startswith("attribute_not_exists(")


def _units(
    context: Context,
    call: Call,
    parts: list[tuple[str, dict[str, Any]]],
    *,
    transactional: bool = False,
    token: bool = False,
) -> int:
    transactional = transactional or call.operation in _TRANSACTIONS
    return sum(_part_units(context, kind, part, transactional, token) for kind, part in parts)


def _part_units(
    context: Context, kind: str, request: dict[str, Any], transactional: bool, token: bool
) -> int:
    if kind == "Get":
        return _SNAPSHOT_UNITS
    item = request.get("Item")
    if item is None:  # the size of the stored item counts, and is not known
        return write_units(item_size(request["Key"]), transactional=transactional)
    table, schema = request["TableName"], context.schema
    of = schema.of_item(item, table) if table in schema.tables else None
    if of is None:  # an item of Stator's own
        return write_units(item_size(item), transactional=transactional)
    if token and of.write_token is None:
        item = item | {"write_token": {"S": "0" * WRITE_TOKEN_CHARACTERS}}
    return write_units(item_size(item), transactional=transactional) + _index_units(of, item)


def _index_units(of: EntityMap, item: Item) -> int:
    entries = (index_entry(of, each, item) for each in of.table.indexes if of.name in each.entities)
    return sum(
        index_write_units(None, item_size(entry), key_changes=False, changes=True)
        for entry in entries
        if entry is not None
    )


def _condition(request: dict[str, Any]) -> str:
    """Return a request's condition with its names and values filled in."""
    names = request.get("ExpressionAttributeNames", {})
    values = request.get("ExpressionAttributeValues", {})

    def filled(found: re.Match[str]) -> str:
        word = found[0]
        if word in names:
            return str(names[word])
        return json.dumps(next(iter(values[word].values()))) if word in values else word

    return re.sub(r"[#:]\w+", filled, request["ConditionExpression"])


# -- what users hold


def _explain(
    plan: Callable[Concatenate[DbOperations, P], Work[Any]],
) -> Callable[Concatenate[DryRun, P], WriteExplanation]:
    def explain(dry: DryRun, /, *args: P.args, **kwargs: P.kwargs) -> WriteExplanation:
        return explain_write(dry.operations.context, plan(dry.operations, *args, **kwargs))

    explain.__name__ = plan.__name__
    explain.__qualname__ = f"DryRun.{plan.__name__}"
    explain.__doc__ = f"Explain ``db.{plan.__name__}`` with the same arguments. Nothing is sent."
    return explain


def _explain_update(
    plan: Callable[Concatenate[DbOperations, P], OpenUpdate[E]],
) -> Callable[Concatenate[DryRun, P], ExplainedUpdate[E]]:
    def update(dry: DryRun, /, *args: P.args, **kwargs: P.kwargs) -> ExplainedUpdate[E]:
        return ExplainedUpdate(dry.operations.context, plan(dry.operations, *args, **kwargs))

    update.__doc__ = "Explain ``db.update`` with the same arguments. Nothing is sent."
    return update


class _Explained:
    """A block whose writes are explained when it ends."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._explanation: WriteExplanation | None = None

    @property
    def explanation(self) -> WriteExplanation:
        """The explanation of the block's writes.

        Raises RequestRefused before the block has ended.
        """
        if self._explanation is None:
            raise RequestRefused(
                "there is no explanation before the with block has ended",
                hint="read it after the block",
            )
        return self._explanation

    def _work(self) -> Work[None]:
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._explanation = explain_write(self._context, self._work())


class ExplainedUpdate(_Explained, Generic[E]):
    """The context manager of ``with dry.update(...)``; ``explanation`` then explains the update."""

    def __init__(self, context: Context, update: OpenUpdate[E]) -> None:
        super().__init__(context)
        self._update = update

    def __enter__(self) -> E:
        return self._update.recorder()

    def require(self, condition: Any) -> None:
        """Add a condition to the update, as ``OpenUpdate.require`` does."""
        self._update.require(condition)

    def _work(self) -> Work[None]:
        return self._update.work()


class ExplainedTransaction(_Explained):
    """The context manager of ``with dry.transaction()``; ``explanation`` then explains it."""

    def __init__(self, context: Context, transaction: Transaction) -> None:
        super().__init__(context)
        self._transaction = transaction

    def __enter__(self) -> Transaction:
        return self._transaction

    def _work(self) -> Work[None]:
        return self._transaction.commit()


class DryRun:
    """The writes of a Db as explanations: exact requests, conditions and units. Nothing is sent.

    ``db.dry_run()`` returns one, for ``Db`` and ``AsyncDb`` alike. Its methods are not awaited.
    """

    def __init__(self, operations: DbOperations) -> None:
        self.operations = operations

    create = _explain(DbOperations.create)
    put = _explain(DbOperations.put)
    upsert = _explain(DbOperations.upsert)
    patch = _explain(DbOperations.patch)
    delete = _explain(DbOperations.delete)
    snapshot = _explain(DbOperations.snapshot)
    update = _explain_update(DbOperations.update)

    def transaction(self, *, token: str | None = None) -> ExplainedTransaction:
        """Explain ``db.transaction`` with the same writes. Nothing is sent."""
        operations = self.operations
        return ExplainedTransaction(operations.context, operations.transaction(token=token))
