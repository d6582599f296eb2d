"""Tokens: a transaction sent again with the same token is applied once.

DynamoDB accepts a ClientRequestToken again only with the same request. A transaction that is
planned a second time has other times and versions, so its request differs. Therefore a user's token
is stored as an item. The transaction writes this item, on condition that it does not exist:

    PK  TOKEN#payment-17    SK  TOKEN    sum  <checksum of its writes>    <ttl>  a day from now

If the token exists with the same checksum, the transaction has been applied. With another checksum,
the token was used for other writes. The checksum covers the ``repr`` of conditions and recorded
actions. The form of these texts must not change, because stored checksums depend on it.
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
        "ConditionExpression": (
            f"attribute_not_exists({partition}) "
            f"OR {expires} <= {written.value({'N': str(int(now))})}"
        ),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    return Statement("Put", written.into(request), f"token {token}", _used)


def _used(item: Item | None) -> ConditionFailed:
    return ConditionFailed("the token has been used already", item=item)


def checksum(intents: list[str]) -> str:
    return hashlib.sha256("\n".join(intents).encode()).hexdigest()


def is_done_before(failed: TransactionFailed, place_of_token: int, intents: list[str]) -> bool:
    """Whether a transaction failed because its token shows that it was already applied.

    ``place_of_token`` is the index of the token's statement in the transaction; ``intents`` are the
    writes as text, for the checksum. Raises IdempotentParameterMismatch if the token was used for
    other writes.
    """
    error = next((error for at, _, error in failed.failures if at == place_of_token), None)
    if not isinstance(error, ConditionFailed) or not error.item:
        return False
    if error.item.get("sum") != {"S": checksum(intents)}:
        raise IdempotentParameterMismatch
    return True
