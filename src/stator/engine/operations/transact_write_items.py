"""TransactWriteItems: up to a hundred writes, of which all or none take effect.

Actions are parsed in the order of the request, and the first fault refuses the request. Once the
tables are known, three steps follow: the key of each action is checked, its condition is evaluated
on the stored item, and its result is computed. A failure in one of these steps cancels the
transaction, with one reason per action. The exceptions are the few faults of an item for which AWS
refuses the whole request (``ItemRefused``). If nothing fails, everything is written as one batch,
together with the client's token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stator.engine.items import capacity, records
from stator.engine.items.actions import (
    ItemAction,
    ItemCheck,
    ItemDelete,
    ItemPut,
    check_condition,
    mutate,
)
from stator.engine.items.capacity import Consumed
from stator.engine.items.item_update import ItemUpdate, update_cost
from stator.engine.items.request_tokens import fingerprint
from stator.engine.items.transactions import NO_REASON, check_distinct, check_payload, read_report
from stator.engine.items.write_path import Mutation, Writer
from stator.engine.items.write_report import collection_metrics
from stator.engine.operation import Operation, RequestContext
from stator.engine.partitions.charges import Charge
from stator.engine.partitions.throttle_errors import cancellation_reason
from stator.engine.requests.expression_parameters import Placeholders
from stator.engine.tables.item_keys import ItemRefused
from stator.engine.tables.table import Table
from stator.errors import (
    ConditionFailed,
    DuplicateItem,
    ItemCollectionTooLarge,
    SlowDown,
    TransactionCanceled,
    TransactionConflict,
    ValidationFailed,
)
from stator.expr.tree import Condition, Path
from stator.model.heat.limits import WRITE
from stator.model.values import item_size, normalise_item

_OUTGROWN = {
    "Code": "ItemCollectionSizeLimitExceeded",
    "Message": ItemCollectionTooLarge.default_message,
}
_KINDS = ("ConditionCheck", "Put", "Delete", "Update")


@dataclass(slots=True)
class TransactWriteItemsRequest:
    actions: list[ItemAction]
    options: dict[str, Any]
    fingerprint: str


def parse(request: dict[str, Any]) -> TransactWriteItemsRequest:
    identity = fingerprint(request["TransactItems"]) if request.get("ClientRequestToken") else ""
    return TransactWriteItemsRequest(
        [_parse_action(entry) for entry in request["TransactItems"]], request, identity
    )


def _parse_action(entry: dict[str, Any]) -> ItemAction:
    kinds = [kind for kind in _KINDS if entry.get(kind) is not None]
    if not kinds:
        raise ValidationFailed(
            "1 validation error detected: Value '' at 'transactItems' failed to satisfy "
            "constraint: TransactWriteRequest should contain Delete or Put or Update or "
            "ConditionCheck"
        )
    if len(kinds) > 1:
        raise ValidationFailed("TransactItems can only contain one of Check, Put, Update or Delete")
    [kind] = kinds
    member = entry[kind]
    name = member["TableName"]
    on_failure = member.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    if kind == "Put":
        item = member["Item"]
        if "" in item:
            raise ValidationFailed("Empty attribute name")
        size = normalise_item(item)
        condition, nested = _condition(member)
        return ItemPut(name, item, size, condition, on_failure, nested)
    # AWS checks an action's expressions before its key (captured by the paritysuite conformance
    # suite).
    if kind == "Update":
        action = _update(member, on_failure)
        normalise_item(member["Key"])
        return action
    condition, nested = _condition(member)
    normalise_item(member["Key"])
    return (ItemDelete if kind == "Delete" else ItemCheck)(
        name, member["Key"], condition, on_failure, nested
    )


def _update(member: dict[str, Any], on_failure: bool) -> ItemUpdate:
    placeholders = Placeholders(member)
    update = placeholders.update(member["UpdateExpression"])
    condition = placeholders.condition(member.get("ConditionExpression"))
    placeholders.check_all_used()
    return ItemUpdate(
        member["TableName"], member["Key"], update, condition, on_failure, placeholders.nested
    )


def _condition(member: dict[str, Any]) -> tuple[Condition | None, Sequence[Path]]:
    """Return the condition of an action, or None, and its paths into nested attributes.

    Unlike in other operations, unused names and values are allowed if there is no expression.
    """
    text = member.get("ConditionExpression")
    placeholders = Placeholders(member)
    condition = placeholders.condition(text)
    if text is not None:
        placeholders.check_all_used()
    return condition, placeholders.nested


def run(context: RequestContext, request: TransactWriteItemsRequest) -> dict[str, Any]:
    return transact(context, request.actions, request.options, request.fingerprint)


def transact(
    context: RequestContext, actions: list[ItemAction], options: dict[str, Any], identity: str
) -> dict[str, Any]:
    """Run parsed actions as one transaction, and return the answer.

    ``identity`` is the fingerprint of the request: a repeated ClientRequestToken must come with the
    same one. ExecuteTransaction calls this function, too.
    """
    token = options.get("ClientRequestToken")
    tables = [context.table(action.table_name) for action in actions]
    if token and context.parts.tokens.seen(context.scope, token, identity):
        return _replayed(context, actions, tables, options)
    check_payload(sum(map(_payload_bytes, actions)))
    located = _locate(actions, tables)
    mutations = _mutations(context, actions, tables, located)
    writer = Writer()
    used: dict[str, Consumed] = {}
    metered = context.database.meter.is_needed
    parts: list[list[Charge]] = []
    outgrown: list[bool] = []
    for table, mutation in zip(tables, mutations):
        part = context.writer() if metered else writer
        consumed = _charge(part, mutation)
        used.setdefault(table.name, Consumed()).add(consumed)
        if metered:
            parts.append([_twice(charge) for charge in part.charges or ()])
            outgrown.append(_outgrows(context, part))
            writer.take_over(part)
    if any(outgrown):
        raise TransactionCanceled(reasons=[_OUTGROWN if each else NO_REASON for each in outgrown])
    if metered:
        cancel_if_refused(context.database.meter.try_together(WRITE, parts))
    if token:
        context.parts.tokens.remember(context.scope, token, identity, writer.changes)
    context.database.transaction_locks.take(located)
    context.commit(writer)
    return _report(context, actions, tables, used, options)


def _outgrows(context: RequestContext, part: Writer) -> bool:
    try:
        context.check_collections(part)
    except ItemCollectionTooLarge:
        return True
    return False


def _twice(charge: Charge) -> Charge:
    """Return a charge as a transaction pays it: twice for the item, once for an index entry."""
    table, index, key, units = charge
    return (table, index, key, units * 2 if index is None else units)


def cancel_if_refused(errors: list[SlowDown | None]) -> None:
    """Raise TransactionCanceled if a limit refuses any action, with a reason for each one."""
    if any(error is not None for error in errors):
        raise TransactionCanceled(
            reasons=[NO_REASON if error is None else cancellation_reason(error) for error in errors]
        )


def _locate(actions: list[ItemAction], tables: list[Table]) -> list[bytes]:
    """Return the storage key of each action's item. The keys must be distinct.

    Raises TransactionCanceled if a table refuses an action. As on AWS, only the first such action
    gets a reason.
    """
    keys: list[bytes] = []
    refusal: list[dict[str, Any]] | None = None
    for at, (action, table) in enumerate(zip(actions, tables)):
        try:
            keys.append(action.locate(table))
        except ItemRefused:
            raise
        except ValidationFailed as error:
            if refusal is None:
                refusal = [NO_REASON] * len(actions)
                refusal[at] = {"Code": "ValidationError", "Message": error.message}
    check_distinct(keys)
    if refusal is not None:
        raise TransactionCanceled(reasons=refusal)
    return keys


def _mutations(
    context: RequestContext, actions: list[ItemAction], tables: list[Table], keys: list[bytes]
) -> list[Mutation]:
    """Return the mutation of each action.

    If any action fails, raises TransactionCanceled with the reason for each action that failed.
    """
    mutations: list[Mutation] = []
    reasons = [NO_REASON] * len(actions)
    for at, (action, table, key) in enumerate(zip(actions, tables, keys)):
        try:
            mutation = _mutation(context, action, table, key)
        except ItemRefused:
            raise
        except ConditionFailed as error:
            reasons[at] = {
                "Code": "ConditionalCheckFailed",
                "Message": error.message,
                **error.facts(),
            }
        except TransactionConflict as error:
            reasons[at] = {"Code": "TransactionConflict", "Message": error.message}
        except DuplicateItem as error:
            reasons[at] = {"Code": "DuplicateItem", "Message": error.message}
        except ValidationFailed as error:
            reasons[at] = {"Code": "ValidationError", "Message": error.message}
        else:
            mutations.append(mutation)
    if len(mutations) < len(actions):
        raise TransactionCanceled(reasons=reasons)
    return mutations


def _payload_bytes(action: ItemAction) -> int:
    if isinstance(action, ItemPut):
        return action.size
    size = item_size(action.keyed)
    return (
        size + update_cost(action.update)
        if isinstance(action, ItemUpdate) and action.update is not None
        else size
    )


def _mutation(context: RequestContext, action: ItemAction, table: Table, key: bytes) -> Mutation:
    if context.database.transaction_locks.holds(key):
        raise TransactionConflict
    old = context.database.storage.get(key)
    if isinstance(action, ItemCheck):
        old_item = None if old is None else records.unpack(old)
        check_condition(action, old_item)
        # A check writes nothing: the record is the same before and after.
        return Mutation(table, key, None, None, None, 0 if old is None else records.size_of(old))
    mutation, _ = mutate(table, action, key, old, needs_old=False)
    return mutation


def _charge(writer: Writer, mutation: Mutation) -> Consumed:
    """Add a mutation to the batch, and return its capacity.

    The item is charged twice, to prepare and to commit, and each index entry once.
    """
    consumed = writer.add(mutation)
    return Consumed(consumed.table * 2, consumed.indexes)


def _replayed(
    context: RequestContext, actions: list[ItemAction], tables: list[Table], options: dict[str, Any]
) -> dict[str, Any]:
    """Answer a request whose token was used before, without writing.

    The items are read only to report the consumed capacity.
    """
    mode = options.get("ReturnConsumedCapacity", "NONE")
    response: dict[str, Any] = {}
    if mode != "NONE":
        keys = [action.locate(table) for action, table in zip(actions, tables)]
        response["ConsumedCapacity"] = read_report(
            tables, context.database.storage.get_many(keys), mode
        )
    return response


def _report(
    context: RequestContext,
    actions: list[ItemAction],
    tables: list[Table],
    used: dict[str, Consumed],
    options: dict[str, Any],
) -> dict[str, Any]:
    response: dict[str, Any] = {}
    by_name = {table.name: table for table in tables}
    mode = options.get("ReturnConsumedCapacity", "NONE")
    if mode != "NONE":
        response["ConsumedCapacity"] = [
            capacity.report(by_name[name], name, consumed, mode, kind="Write")
            for name, consumed in used.items()
        ]
    if options.get("ReturnItemCollectionMetrics") == "SIZE":
        metrics: dict[str, list[dict[str, Any]]] = {}
        for action, table in zip(actions, tables):
            if table.local_indexes and not isinstance(action, ItemCheck):
                metrics.setdefault(table.name, []).append(
                    collection_metrics(context.database.storage, table, action.keyed)
                )
        if metrics:
            response["ItemCollectionMetrics"] = metrics
    return response


OPERATIONS = (Operation("TransactWriteItems", parse, run),)
