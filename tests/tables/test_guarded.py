"""Guarded writes: each has a condition and an outcome of its own, in requests of up to 25."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from stator import Design, Entity, connect, ident
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    AccessDenied,
    InternalServerError,
    OutcomeUnknown,
    ReplyLost,
    RequestRefused,
    ServiceError,
    ThroughputExceeded,
    UnknownOperation,
    ValidationFailed,
)
from stator.model.values import Item, Value
from stator.tables.db import Db
from stator.tables.runner import Runner
from stator.tables.writes.guarded.guard_condition import GuardCondition
from stator.tables.writes.guarded.guarded_write import (
    AppliedProof,
    GuardedDelete,
    GuardedPut,
    GuardedUpdate,
    GuardedWrite,
)
from stator.tables.writes.guarded.outcomes import (
    Applied,
    Later,
    Outcome,
    Refused,
    Stale,
    Unknown,
)
from stator.tables.writes.guarded.writer import GuardedResult, GuardedWriter
from stator.testing.faults import Fault, Faults, FaultyTransport, InterceptedCall
from tests.targets import Target


class Reading(Entity):
    pk: str = ident()
    at: int = 0
    note: str | None = None


DESIGN = Design("guarded", entities=[Reading])
SHAPE = frozenset({"pk", "at", "note", "n", "position"})


def text(value: str) -> Value:
    return {"S": value}


def number(value: int) -> Value:
    return {"N": str(value)}


def plain_table(db: Db) -> str:
    """Create a table with the partition key ``pk`` beside the tables of the design."""
    name = f"{db.context.schema.of(Reading).table.name}-plain"
    db.runner.transport.call(
        "CreateTable",
        {
            "TableName": name,
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    return name


class Bench:
    """A table, a writer, and short names for what the tests do."""

    def __init__(self, transport: Any, table: str, **options: Any) -> None:
        self.transport = transport
        self.table = table
        self.clock = VirtualClock()
        self.calls: list[str] = []
        self.writer = GuardedWriter(random.Random(1), **options)

    @classmethod
    def at(cls, target: Target, **options: Any) -> Bench:
        db: Db = target.connect(DESIGN)
        return cls(db.runner.transport, plain_table(db), **options)

    @classmethod
    def in_memory(cls, engine: Engine, **options: Any) -> Bench:
        db = connect(DESIGN, engine)
        db.ensure()
        return cls(db.runner.transport, plain_table(db), **options)

    def call(self, operation: str, request: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        self.calls.append(operation)
        reply: dict[str, Any] = self.transport.call(operation, request, **options)
        return reply

    parallel = False

    def close(self) -> None: ...

    def run(self, *writes: GuardedWrite, settle: bool = False) -> GuardedResult:
        work = self.writer.settle(writes) if settle else self.writer.write(writes)
        return Runner(self, self.clock).run(work)

    def outcomes(self, *writes: GuardedWrite) -> list[Outcome]:
        return self.run(*writes).outcomes

    def put(self, pk: str, at: int, *, shape: frozenset[str] | None = SHAPE, **more: Value) -> Any:
        item = {"pk": text(pk), "at": number(at), **more}
        return GuardedPut(
            self.table, ("pk",), item, GuardCondition.newer("at", number(at)), shape=shape
        )

    def insert(self, pk: str, **more: Value) -> GuardedPut:
        item = {"pk": text(pk), **more}
        return GuardedPut(self.table, ("pk",), item, GuardCondition.absent("pk"))

    def count(self, pk: str, position: int, by: int = 1) -> GuardedUpdate:
        """Add to a counter under the position of a log, whose records all have a position."""
        value = number(position)
        return GuardedUpdate(
            self.table,
            {"pk": text(pk)},
            GuardCondition.newer("position", value),
            assigned={"position": value},
            added={"n": number(by)},
            created={"pk": text(pk), "position": value, "n": number(by)},
            proof=AppliedProof("position", value, reached=True),
        )

    def delete(self, pk: str, at: int) -> GuardedDelete:
        return GuardedDelete(self.table, {"pk": text(pk)}, GuardCondition.newer("at", number(at)))

    def stored(self, pk: str) -> Item | None:
        request = {"TableName": self.table, "Key": {"pk": text(pk)}, "ConsistentRead": True}
        found: Item | None = self.transport.call("GetItem", request).get("Item")
        return found

    def store(self, pk: str, **more: Value) -> None:
        item = {"pk": text(pk), **more}
        self.transport.call("PutItem", {"TableName": self.table, "Item": item})


@pytest.fixture
def bench(target: Target) -> Bench:
    return Bench.at(target)


# -- outcomes


def test_a_put_creates_replaces_and_is_stale_each_in_the_same_request(bench: Bench) -> None:
    bench.store("older", at=number(1), note=text("gone afterwards"))
    bench.store("same", at=number(5))
    bench.store("newer", at=number(9), note=text("kept"))

    found = bench.outcomes(*(bench.put(pk, 5) for pk in ("absent", "older", "same", "newer")))

    assert found[:2] == [Applied(), Applied()]
    assert isinstance(found[2], Stale) and isinstance(found[3], Stale)
    assert bench.stored("absent") == {"pk": text("absent"), "at": number(5)}
    assert bench.stored("older") == {"pk": text("older"), "at": number(5)}
    assert bench.stored("newer") == {"pk": text("newer"), "at": number(9), "note": text("kept")}
    assert set(bench.calls) == {"BatchExecuteStatement", "BatchGetItem"}


def test_a_stale_put_carries_the_stored_item(bench: Bench) -> None:
    bench.store("k", at=number(9), note=text("kept"))
    [stale] = bench.outcomes(bench.put("k", 5))
    assert isinstance(stale, Stale)
    assert stale.old == {"pk": text("k"), "at": number(9), "note": text("kept")}


def test_without_a_shape_an_existing_item_is_replaced_whole(bench: Bench) -> None:
    bench.store("k", at=number(1), unforeseen=text("x"))
    assert bench.outcomes(bench.put("k", 5, shape=None)) == [Applied()]
    assert bench.stored("k") == {"pk": text("k"), "at": number(5)}
    assert bench.calls == ["BatchExecuteStatement", "BatchGetItem", "PutItem"]


@pytest.mark.parametrize(
    ("stored", "new"), [({}, number(2)), ({"_v": number(2)}, None), ({"_v": number(3)}, number(2))]
)
def test_an_item_of_another_entity_version_is_replaced_whole(
    bench: Bench, stored: Item, new: Value | None
) -> None:
    own: dict[str, Any] = {} if new is None else {"_v": new}
    for pk in ("older", "newer"):
        at = number(1 if pk == "older" else 9)
        bench.store(pk, at=at, cents=number(500), **stored)
    first, second = bench.outcomes(bench.put("older", 5, **own), bench.put("newer", 5, **own))
    assert first == Applied() and isinstance(second, Stale)
    assert bench.stored("older") == {"pk": text("older"), "at": number(5), **own}
    assert bench.stored("newer") == {
        "pk": text("newer"), "at": number(9), "cents": number(500), **stored
    }  # fmt: skip


def test_an_item_of_the_same_entity_version_is_updated_in_the_batch(bench: Bench) -> None:
    bench.store("k", at=number(1), note=text("x"), _v=number(2))
    assert bench.outcomes(bench.put("k", 5, _v=number(2))) == [Applied()]
    assert bench.stored("k") == {"pk": text("k"), "at": number(5), "_v": number(2)}
    assert "PutItem" not in bench.calls


def test_inserts_apply_to_absent_items_only(bench: Bench) -> None:
    bench.store("there", at=number(1))
    assert bench.outcomes(bench.insert("there"), bench.insert("absent")) == [Stale(), Applied()]
    assert bench.calls == ["BatchExecuteStatement"]


def test_a_writer_that_is_asked_returns_the_items_in_the_way_of_inserts(target: Target) -> None:
    bench = Bench.at(target, old_items=True)
    bench.store("there", at=number(1))
    assert bench.outcomes(bench.insert("there")) == [Stale({"pk": text("there"), "at": number(1)})]


def test_deletes_remove_older_items_and_succeed_without_one(bench: Bench) -> None:
    bench.store("older", at=number(1))
    bench.store("newer", at=number(9))
    found = bench.outcomes(*(bench.delete(pk, 5) for pk in ("older", "newer", "absent")))
    assert found == [Applied(), Stale(), Applied()]
    assert bench.stored("older") is None
    assert bench.stored("newer") is not None


def test_updates_add_remove_and_set_under_their_guard(bench: Bench) -> None:
    bench.store("k", at=number(1), n=number(10), note=text("x"), tags={"SS": ["a", "b"]})
    guard = GuardCondition.newer("at", number(2))

    def update(pk: str) -> GuardedUpdate:
        return GuardedUpdate(
            bench.table,
            {"pk": text(pk)},
            guard,
            assigned={"at": number(2)},
            added={"n": number(5)},
            united={"tags": {"SS": ["b", "c"]}},
            removed=("note",),
        )

    assert bench.outcomes(update("k"), update("absent")) == [Applied(), Stale()]
    found = bench.stored("k") or {}
    assert sorted(found.pop("tags")["SS"]) == ["a", "b", "c"]
    assert found == {"pk": text("k"), "at": number(2), "n": number(15)}
    assert bench.stored("absent") is None
    assert bench.outcomes(update("k")) == [Stale()]


def test_writes_of_one_item_are_carried_out_one_after_the_other(bench: Bench) -> None:
    writes = [bench.count("k", position) for position in range(1, 6)]
    assert bench.outcomes(*writes, bench.put("other", 1)) == [Applied()] * 6
    found = bench.stored("k")
    assert found is not None and found["n"] == number(5)


def test_an_item_that_dynamodb_refuses_does_not_hold_up_the_others(bench: Bench) -> None:
    good = [bench.put(f"k{at}", 1) for at in range(20)]
    bad = [
        bench.put("large", 1, note=text("x" * 410_000)),
        bench.put("empty", 1, note={"SS": []}),
        bench.put("", 1),
    ]
    mixed: list[GuardedWrite] = [*good[:7], bad[0], *good[7:12], bad[1], *good[12:], bad[2]]
    for write, outcome in zip(mixed, bench.outcomes(*mixed)):
        if write in good:
            assert outcome == Applied()
        else:
            assert isinstance(outcome, Refused)
            assert isinstance(outcome.error, ValidationFailed)
    assert all(bench.stored(f"k{at}") is not None for at in range(20))


def test_a_missing_table_refuses_every_write(target: Target) -> None:
    bench = Bench.at(target)
    bench.table = "no-such-table"
    [outcome] = bench.outcomes(bench.put("k", 1))
    assert isinstance(outcome, Refused)
    assert "not" in str(outcome.error)


def test_an_update_that_changes_nothing_is_refused_before_it_is_sent() -> None:
    with pytest.raises(RequestRefused, match="changes nothing"):
        GuardedUpdate("t", {"pk": text("k")}, GuardCondition.absent("pk"))
    with pytest.raises(RequestRefused, match="twice"):
        GuardedUpdate(
            "t",
            {"pk": text("k")},
            GuardCondition.absent("pk"),
            assigned={"a": number(1)},
            removed=("a",),
        )


# -- statements

HOSTILE = [
    *('a"b', "a'b", "a.b", "a b", "a-b", "a[0]", "a\\b", "a`b", "x\ny", "9z", "$y", "?", '"', "''"),
    *("select", "null", "missing", "value", "naïve", "日本", "😀", "a--b", "/*x*/", ":v", "#n"),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_attribute_names_are_data_whatever_they_contain(bench: Bench, name: str) -> None:
    shape = frozenset({"pk", name, f"{name}2"})

    def put(value: int, **more: Value) -> GuardedPut:
        item = {"pk": text("k"), name: number(value), **more}
        guard = GuardCondition.newer(name, number(value))
        return GuardedPut(bench.table, ("pk",), item, guard, shape=shape)

    assert bench.outcomes(put(1, **{f"{name}2": text("x")})) == [Applied()]
    assert bench.outcomes(put(2)) == [Applied()]
    assert bench.stored("k") == {"pk": text("k"), name: number(2)}
    assert isinstance(bench.outcomes(put(1))[0], Stale)
    update = GuardedUpdate(
        bench.table,
        {"pk": text("k")},
        GuardCondition.newer(name, number(4)),
        added={name: number(2)},
    )
    assert bench.outcomes(update) == [Applied()]
    assert bench.stored("k") == {"pk": text("k"), name: number(4)}
    delete = GuardedDelete(bench.table, {"pk": text("k")}, GuardCondition.newer(name, number(9)))
    assert bench.outcomes(delete) == [Applied()]
    assert bench.stored("k") is None


CONDITIONS = [
    "attribute_not_exists(pk)",
    "attribute_exists(pk)",
    "attribute_not_exists(pk) OR #at < :at",
    "attribute_exists(pk) AND #at < :at",
    "attribute_exists(#at) AND #at < :at",
    "#at < :at",
    "#at <> :at",
    "NOT #at < :at",
    "NOT (attribute_exists(pk) AND #at >= :at)",
    "#at BETWEEN :low AND :at",
    "#at IN (:low, :at)",
    "begins_with(note, :text) OR attribute_not_exists(note)",
    "contains(note, :text)",
    "size(note) > :low",
    "attribute_type(note, :type)",
    "pk = :pk",
    "begins_with(pk, :pk) OR attribute_not_exists(pk)",
    ":at > #at",
    ":low < :at",
    "(attribute_not_exists(#at) OR #at < :at) AND (attribute_not_exists(note) OR note <> :text)",
]
VALUES = {
    ":at": number(5),
    ":low": number(1),
    ":text": text("x"),
    ":type": text("S"),
    ":pk": text("k"),
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("shape", [None, SHAPE])
def test_a_condition_means_the_same_in_a_batch_as_alone(
    bench: Bench, condition: str, shape: frozenset[str] | None
) -> None:
    """Every condition, against an absent item and stored ones, beside PutItem itself."""
    used = {name: value for name, value in VALUES.items() if name in condition}
    names = (("#at", "at"),) if "#at" in condition else ()
    stored: list[Item | None] = [
        None,
        *({"at": number(at)} for at in (1, 5, 9)),
        {},
        {"at": number(3), "note": text("xyz")},
        {"at": text("5"), "note": text("a")},
        {"note": number(1)},
    ]
    writes: list[GuardedWrite] = []
    alone: list[bool] = []
    for at, item in enumerate(stored):
        for pk in (f"k{at}", f"twin{at}"):
            if item is not None:
                bench.store(pk, **item)
        guard = GuardCondition(condition, names, used)
        values = dict(used)
        if ":pk" in values:  # each item is compared with its own key
            values[":pk"] = text(f"k{at}")
            guard = GuardCondition(condition, names, values)
        new = {"pk": text(f"k{at}"), "at": number(5), "position": number(at)}
        writes.append(GuardedPut(bench.table, ("pk",), new, guard, shape=shape))
        twin = GuardCondition(condition, names, values | {":pk": text(f"twin{at}")})
        if ":pk" not in used:
            twin = guard
        try:
            bench.transport.call(
                "PutItem",
                {"TableName": bench.table, "Item": {**new, "pk": text(f"twin{at}")}}
                | twin.parameters(),
            )
            alone.append(True)
        except ServiceError:
            alone.append(False)
    outcomes = bench.outcomes(*writes)
    assert [isinstance(each, Applied) for each in outcomes] == alone, condition
    for at in range(len(stored)):
        one, other = bench.stored(f"k{at}"), bench.stored(f"twin{at}")
        assert (one is None) == (other is None)
        assert (one or {}) | {"pk": text("")} == (other or {}) | {"pk": text("")}


def test_texts_are_built_once_for_each_set_of_attributes() -> None:
    with Engine.open() as engine:
        bench = Bench.in_memory(engine)
        first, second = bench.put("a", 1), bench.put("b", 2)
        texts = bench.writer._texts
        assert texts.of(first, "update") is texts.of(second, "update")
        assert texts.of(first, "insert") is texts.of(second, "insert")
        other = bench.put("a", 1, note=text("x"))
        assert texts.of(other, "update") != texts.of(first, "update")


def test_a_statement_that_would_be_too_long_is_sent_alone(bench: Bench) -> None:
    more = {f"attribute-number-{at:03}-{'x' * 40}": number(at) for at in range(200)}
    shape = SHAPE | frozenset(more)
    assert bench.outcomes(bench.put("k", 1, shape=shape, **more)) == [Applied()]
    assert bench.outcomes(bench.put("k", 2, shape=shape, **more)) == [Applied()]
    assert isinstance(bench.outcomes(bench.put("k", 1, shape=shape, **more))[0], Stale)
    assert set(bench.calls) == {"PutItem"}
    found = bench.stored("k")
    assert found is not None and found["at"] == number(2) and len(found) == 202


def test_requests_hold_25_statements_and_a_megabyte() -> None:
    with Engine.open() as engine:
        bench = Bench.in_memory(engine)
        sizes: list[int] = []

        class Counted(FaultyTransport):
            def call(self, operation: str, request: Any, **options: Any) -> Any:
                sizes.append(len(request["Statements"]))
                return super().call(operation, request, **options)

        bench.transport = Counted(bench.transport)
        bench.run(*(bench.put(f"k{at}", 1) for at in range(60)))
        assert sizes == [25, 25, 10]
        sizes.clear()
        bench.run(*(bench.put(f"l{at}", 1, note=text("x" * 300_000)) for at in range(7)))
        assert sizes == [3, 3, 1]


# -- the price


def test_the_price_names_refusals_the_guard_indexes_and_stream_records() -> None:
    bench = Bench(None, "t")
    write = bench.put("k", 5, note=text("x" * 1500))
    found = bench.writer.explain(write, whole_indexes=2, has_stream=True)
    assert (found.applied, found.refused, found.read) == (6, 2, 1.0)
    assert (found.guard_bytes, found.stream_records) == (4, 1)
    assert "4 write units and 1 read units" in str(found)
    assert bench.writer.explain(bench.count("n", 1)).guard_bytes == 10
    assert bench.writer.explain(bench.delete("k", 1)).applied == 1


def test_the_price_of_an_applied_write_is_what_the_engine_charges() -> None:
    with Engine.open() as engine:
        bench = Bench.in_memory(engine, measure=True)
        write = bench.put("k", 5, note=text("x" * 1500))
        assert bench.run(write).write_units == bench.writer.explain(write).applied


# -- fallbacks


def refusing(error: Callable[[], Exception]) -> Callable[[InterceptedCall], Fault | None]:
    def before(call: InterceptedCall) -> Fault | None:
        if call.operation == "BatchExecuteStatement":
            raise error()
        return None

    return before


@pytest.mark.parametrize("error", [AccessDenied, UnknownOperation])
def test_a_table_without_partiql_is_written_alone_and_remembered(
    bench: Bench, error: type[ServiceError]
) -> None:
    bench.transport = FaultyTransport(bench.transport, refusing(error))
    bench.store("newer", at=number(9))
    bench.store("older", at=number(1), note=text("x"))
    writes = [
        *(bench.put(pk, 5) for pk in ("absent", "older", "newer")),
        bench.count("n", 1),
        bench.count("n", 2),
        bench.count("n", 2),
        bench.insert("older"),
        bench.delete("newer", 5),
        bench.delete("absent", 9),
        bench.delete("nothing", 9),
    ]
    found = bench.outcomes(*writes)
    kinds = [type(each) for each in found]
    assert kinds == [
        Applied,
        Applied,
        Stale,
        Applied,
        Applied,
        Stale,
        Stale,
        Stale,
        Applied,
        Applied,
    ]
    assert isinstance(found[2], Stale) and found[2].old is not None
    assert bench.stored("older") == {"pk": text("older"), "at": number(5)}
    assert (bench.stored("n") or {})["n"] == number(2)
    assert bench.writer.writes_alone(bench.table)
    assert bench.calls.count("BatchExecuteStatement") == 1


def test_a_forbidden_statement_of_a_batch_is_sent_alone(bench: Bench) -> None:
    class Forbidding(FaultyTransport):
        def call(self, operation: str, request: Any, **options: Any) -> Any:
            if operation != "BatchExecuteStatement":
                return super().call(operation, request, **options)
            error = {"Code": "AccessDenied", "Message": "no"}
            return {"Responses": [{"Error": error} for _ in request["Statements"]]}

    bench.transport = Forbidding(bench.transport)
    assert bench.outcomes(bench.put("a", 1), bench.put("b", 1)) == [Applied(), Applied()]
    assert bench.calls == ["BatchExecuteStatement", "PutItem", "PutItem"]


def test_a_table_of_another_account_is_written_alone() -> None:
    with Engine.open() as engine:
        bench = Bench.in_memory(engine)
        described = bench.transport.call("DescribeTable", {"TableName": bench.table})
        bench.table = described["Table"]["TableArn"]
        assert bench.outcomes(bench.put("a", 1)) == [Applied()]
        assert bench.calls == ["PutItem"]


def test_without_permission_to_read_a_put_alone_finds_the_reason() -> None:
    with Engine.open() as engine:
        bench = Bench.in_memory(engine)

        def before(call: InterceptedCall) -> Fault | None:
            if call.operation == "BatchGetItem":
                raise AccessDenied
            return None

        bench.store("k", at=number(9))
        bench.transport = FaultyTransport(bench.transport, before)
        [stale] = bench.outcomes(bench.put("k", 5))
        assert isinstance(stale, Stale) and stale.old is not None
        assert bench.calls[-2:] == ["BatchGetItem", "PutItem"]


# -- throttling


def answering(code: str, which: set[int]) -> Callable[..., Any]:
    """Answer some statements of the next batch with an error, without carrying them out."""
    spent: list[int] = []

    class Partly(FaultyTransport):
        def call(self, operation: str, request: Any, **options: Any) -> Any:
            if operation != "BatchExecuteStatement" or spent:
                return super().call(operation, request, **options)
            spent.append(1)
            statements = request["Statements"]
            sent = [each for at, each in enumerate(statements) if at not in which]
            replies = iter(
                super().call(operation, {**request, "Statements": sent}, **options)["Responses"]
                if sent
                else ()
            )
            error = {"Error": {"Code": code, "Message": "try again"}}
            return {
                "Responses": [
                    error if at in which else next(replies) for at in range(len(statements))
                ]
            }

    return Partly


@pytest.mark.parametrize(
    "code", ["ProvisionedThroughputExceeded", "ThrottlingError", "RequestLimitExceeded"]
)
def test_a_throttled_statement_is_left_for_later(bench: Bench, code: str) -> None:
    bench.transport = answering(code, {1})(bench.transport)
    writes = [bench.put(f"k{at}", 1) for at in range(3)]
    found = bench.run(*writes).outcomes
    assert [type(each) for each in found] == [Applied, Later, Applied]
    assert bench.stored("k1") is None
    assert bench.run(*writes[1:2]).outcomes == [Applied()]


def test_a_failed_statement_is_repeated(bench: Bench) -> None:
    bench.transport = answering("InternalServerError", {0, 2})(bench.transport)
    assert bench.outcomes(*(bench.put(f"k{at}", 1) for at in range(3))) == [Applied()] * 3


def test_settling_repeats_what_was_left_for_later(bench: Bench) -> None:
    bench.transport = answering("ThrottlingError", {0, 1})(bench.transport)
    result = bench.run(*(bench.put(f"k{at}", 1) for at in range(3)), settle=True)
    assert result.all(Applied)


def test_a_throttled_request_leaves_every_write_for_later(bench: Bench) -> None:
    bench.transport = FaultyTransport(bench.transport, refusing(ThroughputExceeded))
    found = bench.outcomes(bench.put("a", 1), bench.count("n", 1), bench.count("n", 2))
    assert [type(each) for each in found] == [Later] * 3


def test_a_write_never_overtakes_an_earlier_one_of_its_item(bench: Bench) -> None:
    bench.transport = answering("ThrottlingError", {0})(bench.transport)
    writes = [bench.count("n", 1), bench.count("n", 2)]
    assert [type(each) for each in bench.outcomes(*writes)] == [Later, Later]
    assert bench.outcomes(*writes) == [Applied(), Applied()]
    assert (bench.stored("n") or {})["n"] == number(2)


# -- lost answers


def losing(
    arrived: bool, meanwhile: Callable[[], None] = lambda: None, times: int = 1
) -> Callable[[InterceptedCall], Fault | None]:
    """Lose the answers to the first writes; other writers act after each."""
    left = [times]

    def before(call: InterceptedCall) -> Fault | None:
        if call.operation in ("BatchGetItem", "GetItem"):
            return None
        left[0] -= 1
        if left[0] >= 0:
            return Fault("lost answer" if arrived else "lost request", error=ReplyLost("lost"))
        if left[0] == -1:
            meanwhile()
        return None

    return before


@pytest.mark.parametrize("arrived", [True, False])
def test_a_lost_answer_is_proven_by_a_unique_value(target: Target, arrived: bool) -> None:
    bench = Bench.at(target)
    bench.transport = FaultyTransport(bench.transport, losing(arrived))
    write = bench.put("k", 5, note=text("token-1"))
    write.proof = AppliedProof("note", text("token-1"))
    assert bench.outcomes(write) == [Applied()]
    assert (bench.stored("k") or {})["at"] == number(5)


@pytest.mark.parametrize("arrived", [True, False])
def test_a_lost_answer_without_proof_is_unknown_if_the_repetition_is_refused(
    target: Target, arrived: bool
) -> None:
    bench = Bench.at(target)
    inner = bench.transport

    def other_writer() -> None:
        item = {"pk": text("k"), "at": number(5)}
        inner.call("PutItem", {"TableName": bench.table, "Item": item})

    bench.transport = FaultyTransport(inner, losing(arrived, other_writer))
    [found] = bench.outcomes(bench.put("k", 5))
    assert isinstance(found, Unknown)
    assert found.stored == {"pk": text("k"), "at": number(5)}
    assert isinstance(found.error, OutcomeUnknown)


@pytest.mark.parametrize("arrived", [True, False])
def test_a_counter_is_exact_after_lost_answers(target: Target, arrived: bool) -> None:
    bench = Bench.at(target)
    bench.store("n", position=number(1), n=number(1))
    bench.transport = FaultyTransport(bench.transport, losing(arrived, times=2))
    assert bench.outcomes(bench.count("n", 2)) == [Applied()]
    assert (bench.stored("n") or {})["n"] == number(2)


def test_an_addition_without_proof_is_never_repeated(target: Target) -> None:
    bench = Bench.at(target)
    bench.store("n", n=number(1))
    bench.transport = FaultyTransport(bench.transport, losing(True))
    guard = GuardCondition("attribute_exists(n)")
    write = GuardedUpdate(bench.table, {"pk": text("n")}, guard, added={"n": number(1)})
    [found] = bench.outcomes(write)
    assert isinstance(found, Unknown)
    assert (bench.stored("n") or {})["n"] == number(2)
    assert bench.calls == ["BatchExecuteStatement"]


def test_answers_that_stay_lost_leave_the_write_for_later_and_uncertain() -> None:
    with Engine.open() as engine:
        bench = Bench.in_memory(engine)
        inner = bench.transport
        bench.transport = FaultyTransport(inner, losing(True, times=3))
        write = bench.put("k", 5)
        assert isinstance(bench.outcomes(write)[0], Later)
        assert write.uncertain
        assert isinstance(bench.outcomes(write)[0], Unknown)


def test_a_server_error_counts_as_a_lost_answer() -> None:
    with Engine.open() as engine:
        bench = Bench.in_memory(engine)
        spent: list[int] = []

        def before(call: InterceptedCall) -> Fault | None:
            if call.operation != "BatchExecuteStatement" or spent:
                return None
            spent.append(1)
            return Fault("server error", error=InternalServerError(), carried_out=True)

        bench.transport = FaultyTransport(bench.transport, before)
        assert isinstance(bench.outcomes(bench.insert("k"))[0], Unknown)


# -- several writers


def test_a_consumer_that_wakes_up_late_changes_nothing(bench: Bench) -> None:
    """Owner A reads positions 0 to 4 and stalls; B takes over and writes 0 to 9; A wakes up."""
    late = [bench.put("k", position) for position in range(5)]
    assert bench.outcomes(*(bench.put("k", position) for position in range(10))) == [Applied()] * 10
    assert all(isinstance(each, Stale) for each in bench.outcomes(*late))
    assert (bench.stored("k") or {})["at"] == number(9)


def test_a_counter_counts_what_two_consumers_read_once(bench: Bench) -> None:
    late = [bench.count("k", position) for position in range(5)]
    bench.run(*(bench.count("k", position) for position in range(10)))
    assert all(isinstance(each, Stale) for each in bench.outcomes(*late))
    assert (bench.stored("k") or {})["n"] == number(10)


def test_an_item_deleted_between_two_steps_is_created(bench: Bench) -> None:
    """An INSERT finds an item, another writer deletes it, and the UPDATE finds none."""
    inner = bench.transport
    bench.store("k", at=number(9))
    seen: list[str] = []

    def before(call: InterceptedCall) -> Fault | None:
        seen.append(call.operation)
        if len(seen) == 2:
            inner.call("DeleteItem", {"TableName": bench.table, "Key": {"pk": text("k")}})
        return None

    bench.transport = FaultyTransport(inner, before)
    assert bench.outcomes(bench.put("k", 5)) == [Applied()]
    assert bench.stored("k") == {"pk": text("k"), "at": number(5)}


@pytest.mark.parametrize("seed", range(40))
def test_totals_and_last_values_are_exact_in_every_schedule(seed: int) -> None:
    """Two owners read one log from different places, with faults, restarts and repetitions."""
    chance = random.Random(seed)
    keys = [f"k{at}" for at in range(4)]
    log = [(position, chance.choice(keys), chance.randint(1, 9)) for position in range(60)]
    with Engine.open() as engine:
        bench = Bench.in_memory(engine)
        bench.transport = FaultyTransport(
            bench.transport, Faults.mixed(seed, 0.3), clock=bench.clock
        )
        positions = [0, 0]
        while min(positions) < len(log):
            owner = chance.randrange(2)
            start = positions[owner]
            batch = log[start : start + chance.randint(1, 12)]
            writes: list[GuardedWrite] = []
            for position, key, value in batch:
                writes.append(bench.count(f"sum-{key}", position + 1, value))
                write = bench.put(f"last-{key}", position + 1, n=number(value))
                write.proof = AppliedProof("at", number(position + 1), reached=True)
                writes.append(write)
            outcomes = bench.run(*writes, settle=True).outcomes
            assert all(isinstance(each, (Applied, Stale, Later)) for each in outcomes)
            if chance.random() < 0.15:  # killed before it stored its position
                positions[owner] = max(0, start - chance.randint(0, 20))
            elif not any(isinstance(each, Later) for each in outcomes):
                positions[owner] = start + len(batch)
        bench.transport = bench.transport.inner
        for key in {key for _, key, _ in log}:
            own = [(position, value) for position, each, value in log if each == key]
            assert (bench.stored(f"sum-{key}") or {})["n"] == number(sum(v for _, v in own))
            last = bench.stored(f"last-{key}")
            assert last is not None
            assert (last["at"], last["n"]) == (number(own[-1][0] + 1), number(own[-1][1]))


def test_an_event_loop_runs_the_same_writes(target: Target) -> None:
    async def run() -> list[Outcome]:
        table = plain_table(target.connect(DESIGN))
        db = target.connect_async(DESIGN)
        writer = GuardedWriter(random.Random(1))
        bench = Bench(None, table)
        try:
            writes = [bench.put(f"k{at}", 1) for at in range(60)]
            first = await db.runner.run(writer.write(writes))
            second = await db.runner.run(writer.write(writes[:30]))
        finally:
            await db.close()
        return first.outcomes + second.outcomes

    kinds = [type(each) for each in asyncio.run(run())]
    assert kinds == [Applied] * 60 + [Stale] * 30
