"""Tokens: a transaction that is asked for again, with the same token, is carried out once.

DynamoDB has tokens of its own, but they compare the whole request, and a request made a second time differs in its times and versions. So a token
given by the user is an item, written in the transaction it belongs to, on condition that it is not there:

    PK  TOKEN#payment-17    SK  TOKEN    sum  <checksum of what was asked for>    <ttl>  a day from now

If it is there with the same checksum, the transaction has been carried out; with another, the token was used for something else.
"""

from __future__ import annotations

import hashlib

from stator.errors import ConditionFailed, IdempotentParameterMismatch, TransactionFailed
from stator.model.values import Item
from stator.tables.context import Context
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.statements import Statement

REMEMBERED_SECONDS = 86_400


def token_statement(context: Context, token: str, intents: list[str]) -> Statement:
    place, now = context.schema.place, context.now()
    written = Expressions()
    partition, expires = written.name(place.partition), written.name(place.ttl)
    item: Item = place.key(f"TOKEN#{token}", "TOKEN") | {
        "sum": {"S": checksum(intents)},
        place.ttl: {"N": str(int(now) + REMEMBERED_SECONDS)},
    }
    request = {
        "TableName": place.table,
        "Item": item,
        "ConditionExpression": f"attribute_not_exists({partition}) OR {expires} <= {written.value({'N': str(int(now))})}",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    return Statement("Put", written.into(request), f"token {token}", _used)


def _used(item: Item | None) -> ConditionFailed:
    return ConditionFailed("the token has been used", item=item)


def checksum(intents: list[str]) -> str:
    return hashlib.sha256("\n".join(intents).encode()).hexdigest()


def is_done_before(failed: TransactionFailed, place_of_token: int, intents: list[str]) -> bool:
    """Whether a transaction failed because its token says that it has been carried out."""
    error = next((error for at, _, error in failed.failures if at == place_of_token), None)
    if not isinstance(error, ConditionFailed) or not error.item:
        return False
    if error.item.get("sum") != {"S": checksum(intents)}:
        raise IdempotentParameterMismatch
    return True
