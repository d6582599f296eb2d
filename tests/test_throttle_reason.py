"""Whose limit a refusal names, in every form in which DynamoDB refuses."""

from __future__ import annotations

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    ConditionFailed,
    DeadlineExceeded,
    RequestLimitExceeded,
    SlowDown,
    Throttled,
    ThroughputExceeded,
    TransactionCanceled,
)
from stator.testing import throttle
from stator.throttle_reason import is_hot_key, throttle_reasons, throttle_scope

ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/shop"


def refusal(*reasons: str, resource: str = ARN) -> ThroughputExceeded:
    return ThroughputExceeded(
        throttling_reasons=[{"reason": reason, "resource": resource} for reason in reasons]
    )


@pytest.mark.parametrize(
    ("reason", "scope", "kind"),
    [
        ("TableWriteKeyRangeThroughputExceeded", "key range", "write"),
        ("TableReadProvisionedThroughputExceeded", "table", "read"),
        ("IndexWriteMaxOnDemandThroughputExceeded", "table", "write"),
        ("TableWriteAccountLimitExceeded", "account", "write"),
        ("SomethingNew", None, None),
    ],
)
def test_a_reason_names_the_limit(reason: str, scope: str | None, kind: str | None) -> None:
    [found] = throttle_reasons(refusal(reason))
    assert (found.scope, found.kind, found.table) == (scope, kind, "shop")
    assert throttle_scope(refusal(reason)) == scope


def test_an_index_is_named_by_its_arn() -> None:
    error = refusal("IndexWriteKeyRangeThroughputExceeded", resource=f"{ARN}/index/by-city")
    [found] = throttle_reasons(error)
    assert (found.table, found.index) == ("shop", "by-city")
    assert not is_hot_key([found])  # shards of the table's key do not spread the index's key


def test_the_widest_limit_counts() -> None:
    both = refusal("TableWriteKeyRangeThroughputExceeded", "TableWriteAccountLimitExceeded")
    assert throttle_scope(both) == "account"
    assert not is_hot_key(throttle_reasons(both))
    assert is_hot_key(throttle_reasons(refusal("TableWriteKeyRangeThroughputExceeded")))


def test_refusals_without_a_reason_have_no_scope() -> None:
    assert throttle_scope(Throttled("slow")) is None
    assert len(throttle_reasons(Throttled("slow"))) == 1  # it is throttled, for an unknown reason
    assert throttle_scope(RequestLimitExceeded("slow")) == "account"
    assert throttle_reasons(ConditionFailed()) == () and throttle_reasons(None) == ()


def test_throttling_is_found_in_causes_and_cancellations() -> None:
    late = DeadlineExceeded("late")
    late.__cause__ = refusal("TableWriteKeyRangeThroughputExceeded")
    assert throttle_scope(late) == "key range"
    canceled = TransactionCanceled(
        reasons=[
            {"Code": "None"},
            {"Code": "ThrottlingError", "Message": "... check if you have a hot key: https://x"},
        ]
    )
    assert throttle_scope(canceled) == "key range"
    conflict = TransactionCanceled(reasons=[{"Code": "TransactionConflict"}])
    assert throttle_reasons(conflict) == ()


@pytest.mark.parametrize(
    ("reason", "scope"),
    [
        ("TableWriteKeyRangeThroughputExceeded", "key range"),
        ("TableWriteMaxOnDemandThroughputExceeded", "table"),
        ("TableWriteAccountLimitExceeded", "account"),
    ],
)
@pytest.mark.parametrize("operation", ["PutItem", "TransactWriteItems"])
def test_the_engines_refusals_are_read(reason: str, scope: str, operation: str) -> None:
    """A cancelled transaction names no reason, but its messages differ by limit."""
    with Engine.open(clock=VirtualClock()) as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "shop",
                "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        throttle(engine, "shop", reason=reason, requests=5)
        put = {"TableName": "shop", "Item": {"p": {"S": "1"}}}
        request = put if operation == "PutItem" else {"TransactItems": [{"Put": put}]}
        with pytest.raises((SlowDown, TransactionCanceled)) as caught:
            engine.call(operation, request)
        assert throttle_scope(caught.value) == scope
