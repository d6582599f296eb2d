"""Faults by a seed: each kind does what it says, repeats itself, and reaches Db and AsyncDb."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from stator import connect, connect_async
from stator.addresses import AsyncEngineTransport, EngineTransport
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    ConditionFailed,
    ConfigurationError,
    ConnectionTrouble,
    InternalServerError,
    OutcomeUnknown,
    ReplyLost,
    ServiceError,
    ThroughputExceeded,
    TransactionCanceled,
    Unreachable,
)
from stator.testing import Fault, Faults, FaultyTransport, InjectedFault, InterceptedCall, faulty

from .club import PLAN, Account, bank

TABLE = {
    "TableName": "sums",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
KINDS = (
    "lost_request",
    "lost_answer",
    "duplicated",
    "late",
    "throttled",
    "server_error",
    "conflict",
    "unprocessed",
)


def item(key: str, n: int = 0) -> dict[str, Any]:
    return {"pk": {"S": key}, "n": {"N": str(n)}}


@pytest.fixture
def engine() -> Any:
    with Engine.open() as made:
        made.call("CreateTable", TABLE)
        yield made


def with_fault(engine: Engine, fault: Fault, clock: VirtualClock | None = None) -> FaultyTransport:
    return FaultyTransport(
        EngineTransport(engine, owned=False),
        lambda call: fault if call.number == 1 else None,
        clock=clock,
    )


def add(transport: Any, **options: Any) -> Any:
    """Add one to a number: a request whose repetition shows."""
    request = {
        "TableName": "sums",
        "Key": {"pk": {"S": "a"}},
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    return transport.call("UpdateItem", request, **options)


def total(engine: Engine) -> int:
    found = engine.call("GetItem", {"TableName": "sums", "Key": {"pk": {"S": "a"}}})
    return int(found["Item"]["n"]["N"]) if "Item" in found else 0


@pytest.mark.parametrize(
    ("fault", "idempotent", "error", "expected"),
    [
        (Fault("lost request"), True, Unreachable, 0),
        (Fault("lost request"), False, Unreachable, 0),
        (Fault("lost answer"), True, ReplyLost, 1),
        (Fault("lost answer"), False, OutcomeUnknown, 1),
        (Fault("throttled"), True, ThroughputExceeded, 0),
        (Fault("server error"), True, InternalServerError, 0),
        (Fault("server error", carried_out=True), True, InternalServerError, 1),
        (Fault("server error", carried_out=True), False, OutcomeUnknown, 1),
        (Fault("duplicated"), True, None, 2),
        (Fault("duplicated"), False, None, 1),
        (Fault("lost request", error=ReplyLost("mine")), True, ReplyLost, 0),
    ],
)
def test_what_each_fault_does(
    engine: Engine, fault: Fault, idempotent: bool, error: type[Exception] | None, expected: int
) -> None:
    transport = with_fault(engine, fault)
    if error is None:
        add(transport, idempotent=idempotent)
    else:
        with pytest.raises(error):
            add(transport, idempotent=idempotent)
    assert total(engine) == expected
    assert [each.kind for each in transport.injected] == [fault.kind]
    add(transport)
    assert (total(engine), transport.calls) == (expected + 1, 2)


def test_a_repeated_request_that_fails_says_that_it_was_repeated(engine: Engine) -> None:
    transport = with_fault(engine, Fault("duplicated"))
    request = {
        "TableName": "sums",
        "Item": item("a"),
        "ConditionExpression": "attribute_not_exists(pk)",
    }
    with pytest.raises(ConditionFailed) as raised:
        transport.call("PutItem", request)
    assert raised.value.after_unknown


@pytest.mark.parametrize("carried_out", [False, True])
def test_a_late_call_takes_virtual_time(engine: Engine, carried_out: bool) -> None:
    clock = VirtualClock()
    started = clock.now()
    add(with_fault(engine, Fault("late", seconds=30.0, carried_out=carried_out), clock))
    assert clock.now() - started == 30.0
    assert total(engine) == 1


def test_a_conflict_cancels_a_transaction(engine: Engine) -> None:
    puts = [{"Put": {"TableName": "sums", "Item": item(key)}} for key in "ab"]
    with pytest.raises(TransactionCanceled) as raised:
        with_fault(engine, Fault("conflict")).call("TransactWriteItems", {"TransactItems": puts})
    assert [each["Code"] for each in raised.value.reasons] == ["None", "TransactionConflict"]
    assert engine.call("Scan", {"TableName": "sums"})["Items"] == []


@pytest.mark.parametrize("processed", [0.0, 0.3, 1.0])
def test_part_of_a_batch_is_left_unprocessed(engine: Engine, processed: float) -> None:
    puts = [{"PutRequest": {"Item": item(str(number))}} for number in range(10)]
    transport = with_fault(engine, Fault("unprocessed", processed=processed))
    reply = transport.call("BatchWriteItem", {"RequestItems": {"sums": puts}})
    written = engine.call("Scan", {"TableName": "sums"})["Count"]
    assert written == {0.0: 0, 0.3: 3, 1.0: 9}[processed]  # at least one is left
    assert reply["UnprocessedItems"]["sums"] == puts[written:]
    assert not transport.call("BatchWriteItem", {"RequestItems": reply["UnprocessedItems"]})[
        "UnprocessedItems"
    ]
    keys = [{"pk": {"S": str(number)}} for number in range(10)]
    transport = with_fault(engine, Fault("unprocessed", processed=processed))
    reply = transport.call("BatchGetItem", {"RequestItems": {"sums": {"Keys": keys}}})
    found = reply["Responses"]["sums"]
    left = reply["UnprocessedKeys"]["sums"]["Keys"]
    assert (len(found), len(found) + len(left)) == (written, 10)


def schedule(faults: Faults, calls: int = 300) -> list[tuple[int, str]]:
    """What a program meets that makes calls of every kind."""
    made = (
        InterceptedCall(number, ["PutItem", "TransactWriteItems", "BatchGetItem"][number % 3], {})
        for number in range(1, calls + 1)
    )
    return [(call.number, fault.kind) for call in made if (fault := faults(call)) is not None]


def test_a_seed_decides_every_fault() -> None:
    assert schedule(Faults.mixed(7)) == schedule(Faults.mixed(7))
    assert schedule(Faults.mixed(7)) != schedule(Faults.mixed(8))
    assert schedule(Faults(seed=7)) == []


@pytest.mark.parametrize("name", KINDS)
def test_a_rate_is_the_share_of_the_calls_that_can_meet_the_fault(name: str) -> None:
    rates: Any = {name: 0.3}
    found = schedule(Faults(seed=3, **rates), 3000)
    assert {kind for _, kind in found} == {name.replace("_", " ")}
    possible = 1000 if name in ("conflict", "unprocessed") else 3000
    assert 0.25 < len(found) / possible < 0.35


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), float("inf"), "0.5", None, True])
@pytest.mark.parametrize("name", [*KINDS, "processed"])
def test_a_rate_is_a_number_from_0_to_1(name: str, rate: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is .* from 0 to 1"):
        Fault("unprocessed", processed=rate) if name == "processed" else Faults(**{name: rate})


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "10"])
def test_a_delay_is_a_number_of_seconds(seconds: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"late_seconds is .* must be a number of seconds"):
        Faults(late_seconds=seconds)
    with pytest.raises(ConfigurationError, match=r"seconds is .* must be a number of seconds"):
        Fault("late", seconds=seconds)


def test_the_rates_that_a_call_can_meet_add_up_to_1_at_most() -> None:
    with pytest.raises(ConfigurationError, match=r"add up to 1\.2"):
        Faults(lost_request=0.6, late=0.6)
    with pytest.raises(ConfigurationError, match=r"add up to 1\.1"):
        Faults(duplicated=0.6, unprocessed=0.5, conflict=0.1)
    Faults(lost_request=0.5, conflict=0.5, unprocessed=0.5)  # no call can meet the last two
    sixths: Any = dict.fromkeys(KINDS[:6], 1 / 6)
    Faults(**sixths)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_mixed_faults_take_every_rate(rate: float) -> None:
    found = schedule(Faults.mixed(3, rate), 3000)
    assert len({number for number, _ in found if number % 3 == 0}) / 1000 == pytest.approx(
        rate, abs=0.06
    )


def test_mixed_faults_refuse_other_rates() -> None:
    for rate in (-0.1, 1.5, float("nan")):
        with pytest.raises(ConfigurationError, match="rate is"):
            Faults.mixed(1, rate)


def test_operations_and_kinds_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="no operation 'PutItm'"):
        Faults(operations=frozenset({"PutItm"}))
    text: Any = "PutItem"
    with pytest.raises(ConfigurationError, match="operations is 'PutItem'"):
        Faults(operations=text)
    kind: Any = "lost"
    with pytest.raises(ConfigurationError, match="no fault of kind 'lost'"):
        Fault(kind)


def test_tables_are_left_alone_unless_asked_for() -> None:
    call = InterceptedCall(1, "CreateTable", {})
    assert Faults(lost_request=1.0)(call) is None
    assert Faults(lost_request=1.0, operations=frozenset({"CreateTable"}))(call) is not None


def test_a_db_meets_faults_inside_the_block_only() -> None:
    clock = VirtualClock()
    with connect(bank, clock=clock, plan=PLAN) as db:
        healthy = db.runner.transport
        with faulty(db, Faults(seed=1, throttled=1.0)) as transport:
            with pytest.raises(ThroughputExceeded):
                db.put(Account(account_id="a"))
            with pytest.raises(ThroughputExceeded):
                db.within(5).get(Account, account_id="a")
            assert transport.calls == 2
        assert db.runner.transport is healthy
        db.put(Account(account_id="a"))
        started = clock.now()
        with faulty(db, Faults(seed=1, late=1.0, late_seconds=100)):
            assert db.get(Account, account_id="a") is not None
        assert clock.now() > started


def test_an_async_db_meets_the_same_faults() -> None:
    accounts = [Account(account_id=str(number)) for number in range(40)]
    faults = Faults.mixed(5, 0.5)

    async def run_async() -> list[InjectedFault]:
        async with connect_async(bank, clock=VirtualClock(), plan=PLAN) as db:
            with faulty(db, faults) as transport:
                for account in accounts:
                    with suppress(ConnectionTrouble, ServiceError):
                        await db.upsert(account)
                return list(transport.injected)

    def run() -> list[InjectedFault]:
        with connect(bank, clock=VirtualClock(), plan=PLAN) as db:
            with faulty(db, faults) as transport:
                for account in accounts:
                    with suppress(ConnectionTrouble, ServiceError):
                        db.upsert(account)
            return list(transport.injected)

    first = asyncio.run(run_async())
    assert first
    assert first == asyncio.run(run_async()) == run()


def test_bare_transports_meet_faults(engine: Engine) -> None:
    inner, inner_async = (
        EngineTransport(engine, owned=False),
        AsyncEngineTransport(engine, owned=False),
    )
    with faulty(inner, Faults(lost_answer=1.0)) as transport, pytest.raises(ReplyLost):
        add(transport)
    assert total(engine) == 1

    async def run() -> None:
        with faulty(inner_async, Faults(lost_answer=1.0)) as transport:
            await add(transport, idempotent=False)

    with pytest.raises(OutcomeUnknown):
        asyncio.run(run())
    assert total(engine) == 2


def test_hooks_of_ones_own_may_raise_and_change_replies(engine: Engine) -> None:
    seen: list[str] = []

    def before(call: InterceptedCall) -> Fault | None:
        if call.number == 1:
            raise ValueError("not sent")
        return None

    def after(call: InterceptedCall, reply: Mapping[str, Any]) -> dict[str, Any]:
        seen.append(call.operation)
        return {**reply, "seen": True}

    with faulty(EngineTransport(engine, owned=False), before, after) as transport:
        with pytest.raises(ValueError, match="not sent"):
            add(transport)
        assert add(transport)["seen"] is True
    assert (seen, total(engine)) == (["UpdateItem"], 1)
