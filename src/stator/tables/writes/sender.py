"""Sends statements: one alone, several as a transaction.

If a condition fails, the statement itself says which error to raise.

A transaction always carries a ClientRequestToken, so sending it again after a lost answer applies
it once. It is also sent again if it was cancelled only because another transaction held an item
(TransactionConflict) or an item was throttled.

**Lost answers.** Success is reported only if it is proven. If the answer to a single write is lost,
the client sends the write again and marks the second answer.

- The condition of the repeated write fails (``after_unknown``). Either another writer was first, or
  the write's own first attempt succeeded. An equal item proves nothing, because another writer may
  have stored the same values. So the write ends in OutcomeUnknown, unless the entity has a
  ``write_token()`` field and the stored item still has the token of this write.
- The repeated write succeeds (``ResentReply``). The old item in its answer may be the item that the
  first attempt stored. So a write with ``returns="old"`` ends in OutcomeUnknown.

Transactions need no such proof: DynamoDB remembers their token for ten minutes, and the client
stops repeating them before that.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from typing import Any, Literal, TypeVar

from stator.errors import (
    AccessDenied,
    ConditionFailed,
    ConnectionTrouble,
    DeadlineExceeded,
    DuplicateItem,
    InternalServerError,
    ItemCollectionTooLarge,
    OutcomeUnknown,
    RequestLimitExceeded,
    RequestRefused,
    ResourceNotFound,
    ServiceError,
    Throttled,
    ThroughputExceeded,
    TransactionCanceled,
    TransactionConflict,
    TransactionFailed,
    ValidationFailed,
)
from stator.model.limits import ITEM_SIZE_BYTES, TRANSACTION_ITEMS
from stator.model.numbers import OVERFLOW, TOO_PRECISE, UNDERFLOW
from stator.model.values import Item, Value, item_size, normalise_item, size_bytes
from stator.tables.blobs.blobs import kept, removed, unpacked
from stator.tables.context import Context
from stator.tables.schema.entity_map import EntityMap
from stator.tables.unknown_outcome import after_write
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.statements import LostRace, Prepare, Statement
from stator.throttle_reason import is_table_limit, may_be_hot_key, throttle_reasons
from stator.transport import ResentReply

E = TypeVar("E", bound=ServiceError | ConnectionTrouble)
Returns = Literal["old", "new"]
_RACES = 20
_CONFLICTS = 8
# How often a write is sent again because the value of an index has got, or gets, more shards. After
# that, throttling is left to the client, which slows down.
_GROWTHS = 20


def write(
    context: Context,
    prepare: Prepare,
    label: str,
    *,
    returns: Returns | None = None,
    once: bool = False,
    read: Callable[[list[Statement], Item | None], Work[Any]] | None = None,
) -> Work[Any]:
    """Plan and send a write. Return the item that ``returns`` asks for, or the result of ``read``.

    ``prepare`` plans the statements. If an item changed between its read and the write
    (``LostRace``), the write is planned and sent again. ``once`` sends even a single write as a
    transaction with a token. ``read`` makes the result from the applied statements and the item. It
    runs before obsolete blobs are deleted, because an old item may still name them.
    """
    attempt = growths = 0
    while attempt < _RACES:
        statements = yield from prepare()
        yield from context.index_shards.place(statements, may_grow=growths < _GROWTHS)
        try:
            item = yield from _sent(context, statements, label, returns, once)
        except (ServiceError, DeadlineExceeded) as failed:
            error = failed.failures[0][2] if isinstance(failed, TransactionFailed) else failed
            if (yield from context.index_shards.grown(statements, failed)):
                growths += 1
                continue
            if not isinstance(error, LostRace):
                if not error.sent:
                    yield from forget_blobs(context, statements, has_happened=False)
                raise error from None
            yield Pause(context.backoff(attempt))
            attempt += 1
        else:
            if not statements:  # nothing was written
                return (yield from _finished(context, statements, item, read))
            return (
                yield from after_write(
                    _finished(context, statements, item, read),
                    f"the write ({label}) is stored",
                    "do not send the write again; read the item for its result",
                )
            )
    raise TransactionConflict(
        f"{label}: other writers changed the item in each of {_RACES} attempts",
        hint="try the write again later",
    )


def _finished(
    context: Context,
    statements: list[Statement],
    item: Item | None,
    read: Callable[[list[Statement], Item | None], Work[Any]] | None,
) -> Work[Any]:
    result = item if read is None else (yield from read(statements, item))
    yield from forget_blobs(context, statements, has_happened=True)
    return result


def _sent(
    context: Context, statements: list[Statement], label: str, returns: Returns | None, once: bool
) -> Work[Item | None]:
    if not statements:
        return None
    if len(statements) == 1 and not once:
        return (yield from send_one(statements[0], label, returns))
    if once and returns == "old" and not statements[0].old:
        raise RequestRefused(
            "once=True sends a transaction, and a transaction cannot return the old item",
            hint="read the item with get_one(consistent=True), then write or delete that object "
            "with once=True; version() makes sure that it is still the stored one",
        )
    yield from send_all(context, statements, label)
    return statements[0].old if returns == "old" else None


def write_entity(
    context: Context,
    of: EntityMap,
    prepare: Prepare,
    label: str,
    *,
    returns: Returns | None = None,
    once: bool = False,
) -> Work[Any]:
    """Plan and send a write of an entity, with the retries and parameters of ``write``.

    Return the entity as stored, or None for a delete. With ``returns``, return instead the item
    before ("old") or after ("new") the write, decoded.
    """

    def read(statements: list[Statement], item: Item | None) -> Work[Any]:
        if returns is None:
            return statements[0].stored if statements else None
        if item is None:
            return None
        [whole] = yield from unpacked(of, [item], context.blobs)
        return of.decode(whole)

    return (yield from write(context, prepare, label, returns=returns, once=once, read=read))


_RETURNS = {"old": "ALL_OLD", "new": "ALL_NEW"}


def send_one(statement: Statement, label: str, returns: Returns | None) -> Work[Item | None]:
    request = statement.request
    if returns is not None:
        request = request | {"ReturnValues": _RETURNS[returns]}
    try:
        reply = yield Call(
            statement.operation,
            request,
            label,
            idempotent=not statement.relative,
            raise_hot_index=statement.raise_hot_index,
        )
    except ConditionFailed as failed:
        if not failed.after_unknown or statement.only_placed:
            raise statement.meaning(failed.item) from None
        reply = _proven(statement, failed, failed.item, returns)
    except (ServiceError, ConnectionTrouble) as error:
        if not error.sent:
            raise _explained(statement, error) from None
        stored = yield from _stored(statement, label)
        reply = _proven(statement, error, stored, returns)
    else:
        if returns == "old" and isinstance(reply, ResentReply):
            raise _old_item_lost(statement)
    if statement.done is not None:
        statement.done()
    found: Item | None = reply.get("Attributes")
    return found


def _stored(statement: Statement, label: str) -> Work[Item | None]:
    """Read the item after a lost answer, because its write token may prove that it was written.

    Returns None if the entity has no write token, if there is no item, or if the read fails.
    """
    proof = statement.proof
    if proof is None:
        return None
    request = {
        "TableName": statement.request["TableName"],
        "Key": proof.key,
        "ConsistentRead": True,
    }
    try:
        reply = yield Call("GetItem", request, label)
    except (ServiceError, ConnectionTrouble):
        return None  # nothing is proven
    found: Item | None = reply.get("Item")
    return found


def _proven(
    statement: Statement,
    error: ServiceError | ConnectionTrouble,
    stored: Item | None,
    returns: Returns | None,
) -> dict[str, Any]:
    """Return the reply of a write if the stored item proves that the write was applied.

    Otherwise raise OutcomeUnknown.
    """
    if isinstance(error, ConditionFailed):
        cause: BaseException | None = statement.meaning(stored)
        found = f"its answer was lost, and when it was sent again, {cause}"
    else:
        cause = error.__cause__ if isinstance(error, OutcomeUnknown) else error
        found = f"{cause or error}"
    if statement.proof is None or not statement.proof.is_in(stored):
        raise OutcomeUnknown(f"{statement.shown} may or may not have happened: {found}") from cause
    if returns == "old":
        raise _old_item_lost(statement) from cause
    return {"Attributes": stored}


def _old_item_lost(statement: Statement) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{statement.shown} has happened, but its answer was lost, and the old item with it: when "
        "the write was sent again, its own first attempt may have been the old item",
        hint="do not send the write again. Where the old item must not be lost, read it with "
        "get_one(consistent=True) and then delete or put that object: version() makes sure that "
        "it is still the stored one, and once=True proves the outcome",
    )


def _unknown(shown: str, error: ServiceError | ConnectionTrouble) -> OutcomeUnknown:
    if isinstance(error, OutcomeUnknown):
        return error
    return OutcomeUnknown(f"{shown} may or may not have happened: {error.message}")


def _explained(statement: Statement, refused: E) -> E | ValidationFailed:
    if not isinstance(refused, ValidationFailed):
        return refused
    if refused.message.startswith("Item size "):
        return too_large(statement.shown, statement.request.get("Item"), refused)
    if is_about_a_number(refused) and statement.kind in ("Put", "Update"):
        return with_number(statement.shown, statement.request.get("Item"), refused)
    if statement.of is not None and "empty string value" in refused.message:
        return _with_empty_key(statement, statement.of, refused)
    return refused if statement.explain is None else statement.explain(refused)


def _with_empty_key(
    statement: Statement, of: EntityMap, refused: ValidationFailed
) -> ValidationFailed:
    """Add entity and field to DynamoDB's refusal of an empty text as the key of an index."""
    item = statement.request.get("Item", {})
    for key in of.plan.keys:
        is_named = f"IndexKey: {key.name}" in refused.message
        if key.index is not None and (is_named or item.get(key.name) == {"S": ""}):
            return type(refused)(
                f"{statement.shown}: {of.name}.{key.name} is a key of the index {key.index}, and "
                "a key cannot be an empty text",
                hint="store None instead",
            )
    return refused


# The last one is DynamoDB Local's.
_NUMBER_REFUSALS = (TOO_PRECISE, OVERFLOW, UNDERFLOW, "precision up to 38 digits")


def is_about_a_number(refused: ValidationFailed) -> bool:
    """Whether DynamoDB refuses a number that it cannot store exactly."""
    return any(text in refused.message for text in _NUMBER_REFUSALS)


def with_number(shown: str, item: Item | None, refused: ValidationFailed) -> ValidationFailed:
    """Add the write and the attribute with the number to DynamoDB's refusal of a number.

    ``item`` is None for an update. If ``item`` has no such number, another item of the request was
    refused, and ``refused`` is returned unchanged.
    """
    where = shown
    if item is not None:
        found = next((name for name, value in item.items() if not _is_storable(value)), None)
        if found is None:
            return refused
        where = f"{found} of {shown}"
    return ValidationFailed(
        f"{refused.message}: {where}",
        hint="round the number, or store it as text; a number has up to 38 digits, and lies "
        "between 1e-130 and 9.99e125",
    )


def _is_storable(value: Value) -> bool:
    try:
        normalise_item({"value": deepcopy(value)})
    except ValidationFailed:
        return False
    return True


def too_large(shown: str, item: Item | None, refused: ValidationFailed) -> ValidationFailed:
    """Add the item's size and its largest attribute to DynamoDB's refusal of an item over 400 KB.

    ``item`` is None for an update: only DynamoDB knows the whole item. If ``item`` is not too
    large, another item of the request was refused, and ``refused`` is returned unchanged.
    """
    facts = shown
    if item:
        whole = item_size(item)
        if whole <= ITEM_SIZE_BYTES:
            return refused
        sizes = {name: size_bytes(value) for name, value in item.items()}
        largest = max(sizes, key=lambda name: sizes[name])
        facts += f" has {whole:,} bytes, of which {largest} takes {sizes[largest]:,}"
    return ValidationFailed(
        f"{refused.message}: {facts}; the limit is {ITEM_SIZE_BYTES:,} bytes",
        hint="declare the largest field as large(), which moves it to a blob store, or divide it",
    )


def items_equal(left: Any, right: Any) -> bool:
    """Whether items are equal. The order of sets and the spelling of numbers do not count."""
    return bool(_normal({"M": left}) == _normal({"M": right}))


def _normal(value: Any) -> Any:
    [(kind, content)] = value.items()
    match kind:
        case "M":
            return {name: _normal(inner) for name, inner in content.items()}
        case "L":
            return [_normal(inner) for inner in content]
        case "N":
            return ("N", Decimal(content))
        case "NS":
            return ("NS", frozenset(map(Decimal, content)))
        case "SS" | "BS":
            return (kind, frozenset(content))
    return (kind, content)


def send_all(
    context: Context,
    statements: list[Statement],
    label: str,
    *,
    token: str | None = None,
    on_conflict: int = _CONFLICTS,
    raise_hot_key: bool = False,
    raise_table_limit: bool = False,
) -> Work[None]:
    """Send statements as one transaction: all of them are applied, or none.

    ``token`` is DynamoDB's ClientRequestToken, by default a new one. ``on_conflict`` is how often
    the transaction is sent again after conflicts or throttling. With ``raise_hot_key``, throttling
    that may concern one partition is raised at once; with ``raise_table_limit``, throttling by a
    limit of a table.
    """
    if not statements:
        return
    if len(statements) > TRANSACTION_ITEMS:
        raise RequestRefused(
            f"the transaction has {len(statements)} writes, guards of unique fields included; "
            f"DynamoDB takes at most {TRANSACTION_ITEMS}",
            hint="split it, or use write_many for writes that need not be all or nothing",
        )
    request = {
        "TransactItems": [{statement.kind: statement.request} for statement in statements],
        "ClientRequestToken": token or context.token(),
    }
    for attempt in range(on_conflict + 1):
        try:
            yield Call(
                "TransactWriteItems",
                request,
                label,
                raise_hot_key=raise_hot_key,
                raise_table_limit=raise_table_limit,
            )
        except TransactionCanceled as canceled:
            is_final = attempt == on_conflict or not is_transient(canceled)
            reasons = throttle_reasons(canceled)
            is_spread = raise_hot_key and may_be_hot_key(reasons)
            if is_final or is_spread or (raise_table_limit and is_table_limit(reasons)):
                raise failed_transaction(canceled, statements) from None
            yield Pause(context.backoff(attempt))
        except ValidationFailed as refused:
            raise _refused_transaction(refused, statements) from None
        except (ServiceError, ConnectionTrouble) as error:
            if error.sent:
                raise _unknown(label, error) from error
            raise
        else:
            break
    for statement in statements:
        if statement.done is not None:
            statement.done()


def forget_blobs(
    context: Context, statements: list[Statement], *, has_happened: bool
) -> Work[None]:
    """Delete blobs that no item names, now that the outcome of the statements is known.

    If the statements were applied (``has_happened``), the obsolete blobs are deleted and the kept
    blobs are moved aside. Otherwise the new blobs are deleted.
    """
    keys = [
        key
        for each in statements
        for key in (each.obsolete_blobs if has_happened else each.new_blobs)
    ]
    if keys:
        yield from removed(context.blobs, keys)
    if has_happened:
        yield from kept(context.blobs, [key for each in statements for key in each.kept_blobs])


def is_transient(canceled: TransactionCanceled) -> bool:
    """Whether a retry may succeed: only conflicts or throttling cancelled the transaction."""
    codes = {reason["Code"] for reason in canceled.reasons}
    return codes <= _PASSING and codes != {"None"}


def failed_transaction(
    canceled: TransactionCanceled, statements: list[Statement]
) -> TransactionFailed:
    failures: list[tuple[int, str, ServiceError]] = []
    for at, (reason, statement) in enumerate(zip(canceled.reasons, statements)):
        code = reason["Code"]
        if code == "None":
            continue
        error: ServiceError
        if code == "ConditionalCheckFailed":
            error = statement.meaning(reason.get("Item"))
        else:
            error = reason_error(code, reason.get("Message"))
            if isinstance(error, ValidationFailed):
                error = _explained(statement, error)
        failures.append((at, statement.shown, error))
    if not failures:
        failures.append((0, "the transaction", canceled))
    told = "; ".join(f"{shown}: {error.message}" for _, shown, error in failures)
    return TransactionFailed(
        f"nothing was written: {told}", reasons=canceled.reasons, failures=failures
    )


def _refused_transaction(refused: ValidationFailed, statements: list[Statement]) -> ServiceError:
    """Return an error that names the statement at fault, if only one can be the cause.

    Otherwise return ``refused``. If an update names a path that the item lacks, AWS cancels the
    transaction and says which statement is at fault. DynamoDB Local refuses the whole request
    without saying so.
    """
    explained = [_explained(statement, refused) for statement in statements]
    meant = [at for at, error in enumerate(explained) if error is not refused]
    if len(meant) != 1:
        return refused
    reasons: list[dict[str, Any]] = [{"Code": "None"} for _ in statements]
    reasons[meant[0]] = {"Code": "ValidationError", "Message": refused.message}
    return failed_transaction(TransactionCanceled(refused.message, reasons=reasons), statements)


def reason_error(code: str, message: str | None) -> ServiceError:
    cls = _REASONS.get(code)
    return cls(message) if cls is not None else ServiceError(f"{code}: {message or ''}")


# Codes of the reasons of a cancelled transaction, and of the errors of a batch's statements, from
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html and
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementError.html
_REASONS: dict[str, type[ServiceError]] = {
    "ItemCollectionSizeLimitExceeded": ItemCollectionTooLarge,
    "TransactionConflict": TransactionConflict,
    "ProvisionedThroughputExceeded": ThroughputExceeded,
    "ThrottlingError": Throttled,
    "ValidationError": ValidationFailed,
    "DuplicateItem": DuplicateItem,
    "RequestLimitExceeded": RequestLimitExceeded,
    "InternalServerError": InternalServerError,
    "ResourceNotFound": ResourceNotFound,
    "AccessDenied": AccessDenied,
}
_PASSING = frozenset(
    {"None", "TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"}
)
