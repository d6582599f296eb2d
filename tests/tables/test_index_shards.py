"""Index keys with adaptive shards: hot values get more, and no reader misses or doubles an item."""

from __future__ import annotations

import logging
import os
import random
from typing import Any

import pytest

from stator import Design, Query, connect, find, read
from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ConditionFailed, DesignError, ItemExists, ThroughputExceeded
from stator.tables.db import Db
from stator.tables.runner import Runner
from stator.testing import (
    Fault,
    FaultyTransport,
    InterceptedCall,
    heat,
    kill_points,
    run_schedules,
)
from tests.tables.tickets import (
    HOT_INDEX,
    T0,
    Ticket,
    TicketWorld,
    design,
    enforced,
    entries_of,
    made,
    shards_of,
    ticket,
    tickets_by_status,
)

SEEDS = int(os.environ.get("STATOR_SCHEDULES", "10"))
LARGE = "x" * 10_000


def is_hot(call: InterceptedCall) -> Fault | None:
    """Refuse what goes into shard 0 of the index."""
    written = call.request.get("Item") or call.request.get("ExpressionAttributeValues") or {}
    if any(each.get("S") == "STATUS#open#0" for each in written.values()):
        return Fault("throttled", error=ThroughputExceeded(throttling_reasons=HOT_INDEX))
    return None


def on(db: Db, transport: Any) -> Db:
    """Return another process on the same tables: a connection with a memory of its own."""
    context = connect(design(), Engine.open(), clock=db.context.clock).context
    return Db(context, Runner(transport, context.clock, threads=1))


def throttled_once(db: Db, engine: Engine) -> Db:
    """Return a process whose first write is refused, because a partition of the index is hot."""
    refused: list[str] = []

    def refuse(call: InterceptedCall) -> Fault | None:
        if refused or is_hot(call) is None:
            return None
        refused.append(call.operation)
        return is_hot(call)

    return on(db, FaultyTransport(EngineTransport(engine, owned=False), refuse))


def spread(db: Db, engine: Engine) -> list[Ticket]:
    """Write tickets to one shard of a status, and then tickets to two."""
    hot = throttled_once(db, engine)
    found = [made(number) for number in range(60)]
    for each in found[:20]:
        db.put(each)
    for each in found[20:]:
        hot.put(each)
    assert set(shards_of(engine).values()) == {"0", "1"}
    return found


# --- hot values ---------------------------------------------------------------------------------


def test_the_rate_of_this_process_spreads_a_value_before_it_is_throttled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "stator.shards")
    clock, engine, db = enforced()
    for number in range(400):
        db.put(made(number, note=LARGE))
        clock.advance(1 / 200)  # some 2,000 units a second
    assert set(shards_of(engine).values()) == {"0", "1", "2", "3"}
    assert "key STATUS#open spread over 4 shards, before 2: the rate of writes" in caplog.text
    assert sum(heat(engine, "tickets", index="GSI1").refused.values()) < 20
    assert db.all(tickets_by_status("open")) == [made(n, note=LARGE) for n in range(400)]


def test_only_the_hot_value_is_spread() -> None:
    clock, engine, db = enforced()
    for number in range(300):
        db.put(made(number, "closed" if number % 20 == 0 else "open", LARGE))
        clock.advance(1 / 200)
    keys = {each["GSI1PK"]["S"] for each in entries_of(engine)}
    assert len(keys - {"STATUS#closed#0"}) >= 4 and "STATUS#closed#1" not in keys
    assert db.count(tickets_by_status("closed")) == 15


def test_a_throttled_value_is_spread_by_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    """Four processes that write 600 units a second each: none of them is near the limit."""
    caplog.set_level(logging.INFO, "stator.shards")
    clock, engine, db = enforced()
    writers = [connect(design(), engine, clock=clock, random=random.Random(n)) for n in range(4)]
    for number in range(480):
        writers[number % 4].put(made(number, note=LARGE))
        clock.advance(1 / 220)
    assert "spread over 2 shards, before 1: a partition was throttled (Index" in caplog.text
    assert 2 <= len(set(shards_of(engine).values())) <= 16
    assert sum(heat(engine, "tickets", index="GSI1").refused.values()) < 60
    assert len(db.all(tickets_by_status("open"))) == 480


def test_another_limit_spreads_nothing() -> None:
    reasons = [{"reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn"}]
    clock = VirtualClock(T0.timestamp())
    engine = Engine.open(clock=clock)
    db = connect(design(), engine, clock=clock)
    refused: list[str] = []

    def once(call: InterceptedCall) -> Fault | None:
        if call.operation == "PutItem" and not refused:
            refused.append(call.operation)
            return Fault("throttled", error=ThroughputExceeded(throttling_reasons=reasons))
        return None

    with pytest.raises(ThroughputExceeded):
        on(db, FaultyTransport(EngineTransport(engine, owned=False), once)).put(made(1))
    assert refused
    db.put(made(1))
    assert shards_of(engine) == {"t1": "0"}


def test_a_cool_value_gets_new_entries_in_fewer_shards(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is closed for readers: entries stay where they are until they leave the value."""
    caplog.set_level(logging.INFO, "stator.shards")
    clock, engine, db = enforced()
    for number in range(400):
        db.put(made(number, note=LARGE))
        clock.advance(1 / 200)
    for number in range(400, 1_300):
        db.put(made(number))
        clock.advance(1)
    assert "narrowed to 2 shards, before 4: fewer are enough now" in caplog.text
    assert "narrowed to 1 shard, before 2" in caplog.text
    last = [shard for each, shard in shards_of(engine).items() if int(each[1:]) > 1_250]
    assert set(last) == {"0"}
    assert [each.ticket_id for each in db.all(tickets_by_status("open"))] == [
        f"t{number}" for number in range(1_300)
    ]


def test_a_cool_value_costs_its_writers_nothing() -> None:
    engine = Engine.open()
    calls: list[str] = []

    def seen(call: InterceptedCall) -> Fault | None:
        calls.append(call.operation)
        return None

    db = on(connect(design(), engine), FaultyTransport(EngineTransport(engine, owned=False), seen))
    db.put(made(1))
    with db.update(Ticket, ticket_id="t1") as each:
        each.status = "closed"
    assert calls == ["PutItem", "UpdateItem"]


# --- entries stay where they are ------------------------------------------------------------------


def test_a_process_that_knows_nothing_leaves_entries_in_their_shards() -> None:
    engine = Engine.open()
    db = connect(design(), engine)
    found = spread(db, engine)
    before = shards_of(engine)
    assert set(before.values()) == {"0", "1"}
    late = connect(design(), engine)
    for each in found:
        late.put(each)
        late.upsert(each)
        with late.update(Ticket, ticket_id=each.ticket_id) as changed:
            changed.status = "open"
    late.write_many(found)
    assert shards_of(engine) == before
    assert late.all(tickets_by_status("open")) == found


def test_a_transaction_leaves_entries_in_their_shards() -> None:
    engine = Engine.open()
    db = connect(design(), engine)
    found = spread(db, engine)
    before = shards_of(engine)
    late = connect(design(), engine)
    with late.transaction() as tx:
        for each in found:
            tx.put(each)
    assert shards_of(engine) == before


def test_an_item_that_leaves_its_value_and_comes_back_may_have_another_shard() -> None:
    engine = Engine.open()
    db = connect(design(), engine)
    found = spread(db, engine)
    late = connect(design(), engine)
    for each in found:
        for status in ("closed", "open"):
            with late.update(Ticket, ticket_id=each.ticket_id) as changed:
                changed.status = status
    assert set(shards_of(engine).values()) == {"0"}
    assert late.all(tickets_by_status("open")) == found


def test_refusals_mean_what_they_mean_without_shards() -> None:
    engine = Engine.open()
    db = connect(design(), engine)
    [first, *_] = [each for each in spread(db, engine) if shards_of(engine)[each.ticket_id] == "1"]
    late = connect(design(), engine)
    with pytest.raises(ItemExists):
        late.create(first)
    with pytest.raises(ConditionFailed):
        late.put(first, when=Ticket.note == "another")
    late.put(first, when=Ticket.note == "")
    assert late.all(ticket(first.ticket_id)) == [first]


def test_a_repeated_put_whose_answer_was_lost_is_not_of_unknown_outcome() -> None:
    engine = Engine.open()
    db = connect(design(), engine)
    found = [each for each in spread(db, engine) if shards_of(engine)[each.ticket_id] == "1"]
    lost: list[str] = []

    def lose(call: InterceptedCall) -> Fault | None:
        if call.operation == "PutItem" and not lost:
            lost.append(call.operation)
            return Fault("lost answer")
        return None

    late = on(db, FaultyTransport(EngineTransport(engine, owned=False), lose))
    late.put(found[0])
    assert late.all(tickets_by_status("open"))


def test_updates_and_deletes_by_pattern_find_every_shard() -> None:
    engine = Engine.open()
    db = connect(design(), engine)
    found = spread(db, engine)
    before = shards_of(engine)
    late = connect(design(), engine)

    def note(each: Ticket) -> None:
        each.note = "seen"

    def close(each: Ticket) -> None:
        each.status = "closed"

    planned = late.update_where(tickets_by_status("open"), note, dry_run=True)
    assert planned.count == len(found)
    assert late.update_where(tickets_by_status("open"), note).written == len(found)
    assert shards_of(engine) == before
    first = late.update_where(tickets_by_status("open"), close, limit=25)
    assert first.written == 25 and late.count(tickets_by_status("closed")) == 25
    rest = late.update_where(tickets_by_status("open"), close, cursor=first.cursor)
    assert first.written + rest.written == len(found)
    assert late.delete_where(tickets_by_status("closed")).written == len(found)
    assert shards_of(engine) == {}


# --- pages --------------------------------------------------------------------------------------


def test_a_cursor_from_before_a_growth_leads_through_the_new_shards() -> None:
    engine = Engine.open()
    db = connect(design(), engine)
    for number in range(0, 40, 2):
        db.put(made(number))
    page = db.page(tickets_by_status("open"), limit=5)
    hot = throttled_once(db, engine)
    for number in range(1, 41, 2):
        hot.put(made(number))
    items, cursor = list(page.items), page.cursor
    while cursor is not None:
        page = db.page(tickets_by_status("open"), limit=5, cursor=cursor)
        items += page.items
        cursor = page.cursor
    ids = [int(each.ticket_id[1:]) for each in items]
    assert set(shards_of(engine).values()) == {"0", "1"}
    assert ids == [0, 2, 4, 6, *range(8, 40)]  # in order, new ones behind the cursor left out
    back: list[Ticket] = list(page.items)
    while page.previous is not None:
        page = db.page(tickets_by_status("open"), limit=5, cursor=page.previous)
        back = [*page.items, *back]
    assert back == [made(number) for number in range(40)]


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_pages_lead_to_the_end_and_back(size: int) -> None:
    engine = Engine.open()
    db = connect(design(), engine)
    found = spread(db, engine)
    there: list[Ticket] = []
    cursor: str | None = None
    while True:
        page = db.page(tickets_by_status("open"), limit=size, cursor=cursor)
        there += page.items
        if page.cursor is None:
            break
        cursor = page.cursor
    assert there == found
    back = list(page.items)
    while page.previous is not None:
        page = db.page(tickets_by_status("open"), limit=size, cursor=page.previous)
        back = [*page.items, *back]
    assert back == found


# --- any order ------------------------------------------------------------------------------------


def test_no_order_of_writers_and_readers_loses_or_doubles_a_ticket() -> None:
    shards, seen = [], []

    def schedule(seed: int) -> None:
        world = TicketWorld(seed)
        world.run(400)
        shards.append(world.shards())
        seen.append(world.seen)

    ran = run_schedules(schedule, SEEDS)
    assert sum(shards) > 2 * ran and sum(seen) > 2 * ran


def test_a_process_that_dies_at_any_call_of_a_growth_loses_nothing() -> None:
    engine = Engine.open()
    db = connect(design(), engine)
    inner = FaultyTransport(EngineTransport(engine, owned=False), is_hot)
    points = number = 0

    def grow(dying: Any) -> None:
        dying.put(made(number))

    for _ in kill_points(on(db, inner), grow):
        late = connect(design(), engine)
        late.put(made(number))
        assert made(number) in late.all(tickets_by_status("open"))
        assert late.count(tickets_by_status("open")) == number + 1
        number += 1
        points += 1
    assert points >= 3


# --- what is planned ------------------------------------------------------------------------------


def test_explain_says_what_adaptive_shards_cost() -> None:
    text = str(connect(design()).explain(tickets_by_status("open")))
    assert "one query for each shard that the value has had, at least 1" in text


def test_opting_in_gives_a_pattern_an_index_of_its_own() -> None:
    """Programs that were deployed before go on with the old index."""
    before = connect(stored("plain")).context.schema.plan
    after = stored("adaptive").plan(previous=before)
    [old], [new] = before.table("tickets").indexes, after.table("tickets").indexes
    assert (old.name, new.name) == ("GSI1", "GSI2")
    assert after.pattern("tickets_of").steps[0].is_adaptive
    [step] = stored("plain").plan(previous=after).pattern("tickets_of").steps
    assert step.is_adaptive or step.index != new.name  # its entries are in many shards


def test_a_pattern_that_no_index_of_its_own_serves_says_so() -> None:
    @read(shards="adaptive")
    def one(ticket_id: str) -> Query[Ticket]:
        return find(Ticket).where(Ticket.ticket_id == ticket_id)

    plan = Design("one", [Ticket], [one]).plan()
    assert any("has no effect" in each for each in plan.pattern("one").warnings)


def stored(shards: str) -> Design:
    option: Any = "adaptive" if shards == "adaptive" else None

    @read(rps=5, returns=50, shards=option, paged=True)
    def tickets_of(status: str) -> Query[Ticket]:
        return find(Ticket).where(Ticket.status == status).order_by(Ticket.at)

    return Design("tickets", [Ticket], [tickets_of], volumes={Ticket: 10_000})


def test_wrong_declarations_are_refused() -> None:
    with pytest.raises(DesignError, match="the planner chooses the number"):
        read(shards=4)  # type: ignore[arg-type]
    with pytest.raises(DesignError, match="never strongly consistent"):
        read(shards="adaptive", consistent=True)
