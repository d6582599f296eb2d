"""What a client slows down for which limit: a key, a table's reads or writes, or everything."""

from __future__ import annotations

from typing import Any

import pytest

from stator.addresses import EngineTransport
from stator.client.request_pace import ACCOUNT, PacedLimit, RequestPaces
from stator.client.retry import Attempts, RetryPolicy, SharedRetries
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import DeadlineExceeded, SlowDown, ThroughputExceeded
from stator.testing import heat, set_quota
from stator.throttle_reason import throttle_reasons

PUT = {"TableName": "shop", "Item": {}}
GET = {"TableName": "shop", "Key": {}}


def refusal(reason: str, index: str = "") -> ThroughputExceeded:
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/shop" + index
    return ThroughputExceeded(throttling_reasons=[{"reason": reason, "resource": arn}])


def paced(reason: str, index: str = "") -> RequestPaces:
    """A client's pacing after a hundred writes in a second and one refusal."""
    pacing = RequestPaces()
    for number in range(100):
        pacing.succeeded("PutItem", PUT, 1000 + number / 100)
    pacing.throttled("PutItem", PUT, throttle_reasons(refusal(reason, index)), 1001.0)
    return pacing


def test_a_key_range_paces_nothing() -> None:
    pacing = paced("TableWriteKeyRangeThroughputExceeded")
    assert pacing.limits == ()


def test_a_tables_limit_paces_the_requests_of_its_kind() -> None:
    pacing = paced("TableWriteProvisionedThroughputExceeded")
    assert pacing.limits == (PacedLimit("shop", None, "write"),)
    assert pacing.before("PutItem", PUT, 1001.0) > 0
    assert pacing.before("GetItem", GET, 1001.0) == 0
    assert pacing.before("PutItem", {"TableName": "other"}, 1001.0) == 0


def test_an_index_at_its_limit_paces_the_writes_of_its_table() -> None:
    pacing = paced("IndexWriteProvisionedThroughputExceeded", "/index/by-city")
    assert pacing.limits == (PacedLimit("shop", None, "write"),)


def test_reads_of_an_index_are_paced_apart() -> None:
    pacing = paced("IndexReadProvisionedThroughputExceeded", "/index/by-city")
    query = {"TableName": "shop", "IndexName": "by-city"}
    assert pacing.before("Query", query, 1001.0) > 0
    assert pacing.before("Query", {"TableName": "shop"}, 1001.0) == 0


def test_an_account_limit_paces_everything() -> None:
    pacing = paced("TableWriteAccountLimitExceeded")
    assert pacing.limits == (ACCOUNT,)
    assert pacing.before("GetItem", {"TableName": "other"}, 1001.0) > 0


def test_the_pace_starts_below_the_measured_rate_and_comes_back() -> None:
    pacing = paced("TableWriteProvisionedThroughputExceeded")
    sent, now = 0, 1001.0
    while now < 1002.0:
        now += pacing.before("PutItem", PUT, now)
        pacing.succeeded("PutItem", PUT, now)
        sent += 1
    assert 60 < sent < 85
    while now < 1010.0:
        now += pacing.before("PutItem", PUT, now)
        pacing.succeeded("PutItem", PUT, now)
    begun, sent = now, 0
    while now < begun + 1.0:
        now += pacing.before("PutItem", PUT, now)
        pacing.succeeded("PutItem", PUT, now)
        sent += 1
    assert sent > 95


def test_a_limit_that_refuses_nothing_for_a_minute_is_forgotten() -> None:
    pacing = paced("TableWriteProvisionedThroughputExceeded")
    assert pacing.before("PutItem", PUT, 1100.0) == 0
    assert pacing.limits == ()


def attempts(shared: SharedRetries, **options: Any) -> Attempts:
    given = {"idempotent": True, "deadline": None, **options}
    return Attempts(shared, "PutItem", PUT, **given)


def test_a_hot_key_does_not_use_up_the_retries_of_others() -> None:
    shared = SharedRetries(RetryPolicy(), lambda: 0.5)
    hot = refusal("TableWriteKeyRangeThroughputExceeded")
    with pytest.raises(SlowDown):
        for _ in range(1000):
            attempts(shared).after(hot, 1000.0)
    assert attempts(shared).after(refusal("SomethingElse"), 1000.0) > 0


def test_a_caller_that_spreads_hot_keys_gets_the_refusal_at_once() -> None:
    shared = SharedRetries(RetryPolicy(), lambda: 0.5)
    with pytest.raises(SlowDown):
        attempts(shared, raise_hot_key=True).after(
            refusal("TableWriteKeyRangeThroughputExceeded"), 1000.0
        )
    other = refusal("TableWriteProvisionedThroughputExceeded")
    assert attempts(shared, raise_hot_key=True).after(other, 1000.0) > 0


@pytest.mark.parametrize(
    "reason",
    [
        "TableWriteProvisionedThroughputExceeded",
        "TableWriteMaxOnDemandThroughputExceeded",
        "TableWriteAccountLimitExceeded",
    ],
)
def test_a_caller_with_further_tables_gets_the_refusal_of_a_table_at_once(reason: str) -> None:
    shared = SharedRetries(RetryPolicy(), lambda: 0.5)
    with pytest.raises(SlowDown):
        attempts(shared, raise_table_limit=True).after(refusal(reason), 1000.0)
    assert shared.pacing.limits == (), "the caller moves its writes, so nothing is paced"
    hot = refusal("TableWriteKeyRangeThroughputExceeded")
    assert attempts(shared, raise_table_limit=True).after(hot, 1000.0) > 0
    of_index = refusal(reason.replace("Table", "Index"))
    assert attempts(shared, raise_table_limit=True).after(of_index, 1000.0) > 0


def test_a_pace_does_not_outlast_the_deadline() -> None:
    shared = SharedRetries(RetryPolicy(), lambda: 0.5)
    error = refusal("TableWriteProvisionedThroughputExceeded")
    attempts(shared).after(error, 1000.0)
    with pytest.raises(DeadlineExceeded):
        attempts(shared, deadline=1000.01).before(1000.0)


# --- on the engine, in virtual time ------------------------------------------------------------


def created(clock: VirtualClock, **table: Any) -> Engine:
    engine = Engine.open(clock=clock, throughput="enforced")
    for name in ("shop", "other"):
        engine.call(
            "CreateTable",
            {
                "TableName": name,
                "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
                **(table if name == "shop" else {}),
            },
        )
    return engine


def put(transport: EngineTransport, table: str, key: str) -> None:
    transport.call("PutItem", {"TableName": table, "Item": {"p": {"S": key}}})


def test_writes_to_a_full_table_settle_at_its_rate_with_few_refusals() -> None:
    clock = VirtualClock(1_790_000_000.0)
    units = {"ReadCapacityUnits": 10, "WriteCapacityUnits": 50}
    engine = created(clock, BillingMode="PROVISIONED", ProvisionedThroughput=units)
    transport = EngineTransport(engine)
    began = clock.now()
    for number in range(2_000):
        put(transport, "shop", str(number))
        clock.advance(0.001)
    assert 35 < clock.now() - began < 60
    assert sum(heat(engine, "shop").refused.values()) < 200
    paused = clock.now()
    for number in range(100):
        put(transport, "other", str(number))
    assert clock.now() == paused  # another table is not slowed down


def test_a_quota_slows_down_every_table() -> None:
    clock = VirtualClock(1_790_000_000.0)
    engine = created(clock)
    set_quota(engine, write_units=100)
    transport = EngineTransport(engine)
    for number in range(500):
        put(transport, "shop", str(number))
        clock.advance(0.001)
    paused = clock.now()
    for number in range(50):
        put(transport, "other", str(number))
    assert clock.now() > paused + 0.2
