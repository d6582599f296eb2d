"""Sends statements: one alone, several as a transaction.

If a condition fails, the statement itself says which error to raise.

A transaction always carries a token, so that sending it again after a lost answer applies it once.
It is also sent again if it was cancelled only because another transaction held an item
(TransactionConflict) or an item was throttled.

Success is reported only where it is proven. If the answer to a single conditional write is lost,
the client sends the write again and marks the answer (``after_unknown``). If the condition fails
then, either another writer was first, or the write's own first attempt succeeded. An equal item
proves nothing, because another writer may have stored the same values. So the write ends in
OutcomeUnknown, unless the entity has a ``write_token()`` and the stored item still carries the
token of this write. Transactions need no such proof: DynamoDB remembers their token for ten
minutes, and the client stops repeating them before that.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal, TypeVar

from stator.errors import (
    AccessDenied,
    ConditionFailed,
    ConnectionTrouble,
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
from stator.model.limits import TRANSACTION_ITEMS
from stator.model.values import Item
from stator.tables.blobs.blobs import kept, removed, unpacked
from stator.tables.context import Context
from stator.tables.schema import EntityMap
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.statements import LostRace, Prepare, Statement

E = TypeVar("E", bound=ServiceError | ConnectionTrouble)
Returns = Literal["old", "new"]
_RACES = 20
_CONFLICTS = 8


def write(
    context: Context,
    prepare: Prepare,
    label: str,
    *,
    returns: Returns | None = None,
    once: bool = False,
    read: Callable[[list[Statement], Item | None], Work[Any]] | None = None,
) -> Work[Any]:
    """Plan and send a write. Return the item that ``returns`` asks for.

    If an item changed between its read and the write (``LostRace``), the write is planned and sent
    again. ``once`` sends even a single write as a transaction with a token. ``read`` returns the
    result, given the statements that were applied and the item. It runs before obsolete blobs are
    deleted, because the item may need them.
    """
    for attempt in range(_RACES):
        statements = yield from prepare()
        try:
            item = yield from _sent(context, statements, label, returns, once)
        except ServiceError as failed:
            error = failed.failures[0][2] if isinstance(failed, TransactionFailed) else failed
            if not isinstance(error, LostRace):
                if certainly_not_applied(error):
                    yield from forget_blobs(context, statements, has_happened=False)
                raise error from None
            yield Pause(context.backoff(attempt))
        else:
            result = item if read is None else (yield from read(statements, item))
            yield from forget_blobs(context, statements, has_happened=True)
            return result
    raise TransactionConflict(f"{label}: other writers changed its unique values {_RACES} times")


def _sent(
    context: Context, statements: list[Statement], label: str, returns: Returns | None, once: bool
) -> Work[Item | None]:
    if not statements:
        return None
    if len(statements) == 1 and not once:
        return (yield from send_one(statements[0], label, returns))
    if once and returns == "old" and not statements[0].old:
        raise RequestRefused(
            "a transaction cannot return the item it replaces",
            hint="leave out once=True or returns='old'",
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
    """Plan and send a write like ``write``.

    Return the old item, decoded, if ``returns`` asks for it. Otherwise return the entity as stored,
    or None for a delete.
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
        reply = yield Call(statement.operation, request, label, idempotent=not statement.relative)
    except ConditionFailed as failed:
        if not failed.after_unknown:
            raise statement.meaning(failed.item) from None
        reply = _proven(statement, failed, failed.item, returns)
    except (ServiceError, ConnectionTrouble) as error:
        if not _may_have_happened(error):
            raise _explained(statement, error) from None
        stored = yield from _stored(statement, label)
        reply = _proven(statement, error, stored, returns)
    if statement.done is not None:
        statement.done()
    found: Item | None = reply.get("Attributes")
    return found


def _may_have_happened(error: ServiceError | ConnectionTrouble) -> bool:
    """Whether a write that ended with this error may have been applied nevertheless."""
    if isinstance(error, ConnectionTrouble):
        return error.sent
    return not certainly_not_applied(error)


def _stored(statement: Statement, label: str) -> Work[Item | None]:
    """Read the item of a write whose outcome is not known, if a write token could prove it."""
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
    """Return the reply of a write if the stored item proves it. Otherwise raise OutcomeUnknown."""
    if isinstance(error, ConditionFailed):
        cause: BaseException | None = statement.meaning(stored)
        found = f"its answer was lost, and when it was sent again, {cause}"
    else:
        cause = error.__cause__ if isinstance(error, OutcomeUnknown) else error
        found = f"{cause or error}"
    if statement.proof is None or not statement.proof.is_in(stored):
        raise OutcomeUnknown(f"{statement.shown} may or may not have happened: {found}") from cause
    if returns == "old":
        raise OutcomeUnknown(
            f"{statement.shown} has happened, but its answer was lost, and with it the old item",
            hint="read the item; the write needs no repetition",
        ) from cause
    return {"Attributes": stored}


def _unknown(shown: str, error: ServiceError | ConnectionTrouble) -> OutcomeUnknown:
    if isinstance(error, OutcomeUnknown):
        return error
    return OutcomeUnknown(f"{shown} may or may not have happened: {error.message}")


def _explained(statement: Statement, refused: E) -> E | ValidationFailed:
    if statement.explain is None or not isinstance(refused, ValidationFailed):
        return refused
    return statement.explain(refused)


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
) -> Work[None]:
    """Send statements as one transaction: all of them are applied, or none.

    ``token`` is DynamoDB's ClientRequestToken, by default a new one. ``on_conflict`` is how often
    the transaction is sent again after conflicts or throttling.
    """
    if not statements:
        return
    if len(statements) > TRANSACTION_ITEMS:
        raise RequestRefused(
            f"the transaction has {len(statements)} writes, guards of unique fields included; "
            f"DynamoDB takes {TRANSACTION_ITEMS}",
            hint="split it, or use write_many for writes that need not be all or nothing",
        )
    request = {
        "TransactItems": [{statement.kind: statement.request} for statement in statements],
        "ClientRequestToken": token or context.token(),
    }
    for attempt in range(on_conflict + 1):
        try:
            yield Call("TransactWriteItems", request, label)
        except TransactionCanceled as canceled:
            if attempt == on_conflict or not is_transient(canceled):
                raise failed_transaction(canceled, statements) from None
            yield Pause(context.backoff(attempt))
        except ValidationFailed as refused:
            raise _refused_transaction(refused, statements) from None
        except (ServiceError, ConnectionTrouble) as error:
            if _may_have_happened(error):
                raise _unknown(label, error) from error
            raise
        else:
            break
    for statement in statements:
        if statement.done is not None:
            statement.done()


def certainly_not_applied(error: ServiceError) -> bool:
    """Whether this error proves that the write was not applied.

    A server fault does not prove it, nor does the failure of a retry whose first attempt got no
    answer.
    """
    return error.status < 500 and not error.after_unknown


def forget_blobs(
    context: Context, statements: list[Statement], *, has_happened: bool
) -> Work[None]:
    """Delete blobs that no item names, now that the outcome of the statements is known.

    If they were applied (``has_happened``), the obsolete blobs are deleted and the kept ones are
    moved aside. Otherwise the new blobs are deleted.
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

    Otherwise return ``refused``. AWS cancels a transaction for a missing path and names the
    statement; DynamoDB Local refuses the whole request.
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
