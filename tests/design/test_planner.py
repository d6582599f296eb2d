"""What the planner chooses, and why."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from stator.design.design import Design, per
from stator.design.entities.conditions import attr
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident, unique, updated
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Bundle2, Query, find, together
from stator.design.patterns.write_pattern import creates, deletes, updates, write
from stator.design.plan.plan import EntityPlan, Plan
from stator.errors import DesignError, PatternRefused, ScanNeeded

from . import models, shop
from .models import START
from .test_planner_engine import answer, check, filled


def keys_of(entity: EntityPlan, index: str | None = None) -> list[str]:
    return [str(key.template) for key in entity.keys if key.index == index]


class Account(Entity):
    account_id: str = ident()
    owner: str
    plan: Literal["free", "paid"] = "free"


class Event(Entity):
    event_id: str = ident()
    account_id: str
    at: datetime
    kind: str
    level: Literal["info", "error"] = "info"
    size: int | None = None


@read(rps=10)
def account(account_id: str) -> Query[Account]:
    return find(Account).where(Account.account_id == account_id)


@read(rps=10, returns=20)
def events(account_id: str) -> Query[Event]:
    return find(Event).where(Event.account_id == account_id).newest_first(Event.at).limit(20)


@read(rps=10, returns=21)
def account_page(account_id: str) -> Bundle2[Account, Event]:
    return (
        together(Account, Event)
        .where(Account.account_id == account_id)
        .newest_first(Event.at)
        .limit(21)
    )


def design_of(*patterns: Any, **options: Any) -> Design:
    options.setdefault("volumes", {Account: 10_000, Event: per(Account, 100)})
    return Design("log", [Account, Event], patterns, **options)


# --- the shapes that articles show ----------------------------------------------------------------


def test_the_shop_has_the_keys_that_are_published_for_it() -> None:
    """USER#id, PRODUCT#id with its REVIEW#s, ORDER#id with its ITEM#s; indexes by email, by user
    and time, by state and time, by product and time. Ours keeps one copy of an order where the
    article writes two, shares an index among three entities, and where attributes themselves can
    be keys, spares items the key attributes.
    """
    plan = models.shop().plan()
    assert keys_of(plan.entity("Customer")) == ["USER#{user_id}", "CUSTOMER"]
    assert keys_of(plan.entity("Product")) == ["PRODUCT#{sku}", "PRODUCT"]
    assert keys_of(plan.entity("Review")) == ["PRODUCT#{sku}", "REVIEW#{user_id}"]
    assert keys_of(plan.entity("Purchase")) == ["PURCHASE#{order_id}", "PURCHASE"]
    assert keys_of(plan.entity("Line")) == ["PURCHASE#{order_id}", "LINE#{sku}"]
    assert keys_of(plan.entity("Customer"), "GSI1") == ["EMAIL#{email}", "CUSTOMER"]
    assert keys_of(plan.entity("Purchase"), "GSI1") == ["USER#{user_id}", "PURCHASE#{placed_at}"]
    [table] = plan.tables
    assert [(index.name, index.partition, index.sort, index.native) for index in table.indexes] == [
        ("GSI1", ("GSI1PK",), ("GSI1SK",), False),
        ("GSI2", ("sku",), ("sold_at",), True),
        ("GSI3", ("state",), ("placed_at",), True),
    ]
    assert table.indexes[0].entities == ("Customer", "Product", "Purchase")
    assert plan.pattern("customer_by_id").operation == "GetItem"
    assert plan.pattern("order_page").index is None
    assert plan.proven


def test_router_tests_are_a_collection_in_time_order_and_failures_a_sparse_sharded_index() -> None:
    plan = models.routers().plan()
    probe = plan.entity("Probe")
    assert keys_of(probe) == ["ROUTER#{router_id}", "PROBE#{at}"]
    [partition, sort] = [key for key in probe.keys if key.index == "GSI1"]
    assert str(partition.template) == "OK#0#{shard}"
    assert str(sort.template) == "PROBE#{at}"
    # 9,000 writes a second, half of them failures by the estimate: 4,500 on one key, which takes
    # 1,000.
    [step] = plan.pattern("failures_since").steps
    assert step.shards == 7
    good = models.Probe(router_id=1, at=START, kind="latency", ok=True)
    bad = models.Probe(router_id=1, at=START, kind="latency", ok=False)
    assert set(probe.item_keys(good)) == {"PK", "SK"}
    assert set(probe.item_keys(bad)) == {"PK", "SK", "GSI1PK", "GSI1SK"}
    assert len(plan.pattern("failures_since").requests(start=START)) == 7
    with pytest.raises(DesignError, match="takes 7 requests"):
        plan.pattern("failures_since").request(start=START)


def test_a_second_consistent_order_is_a_local_index() -> None:
    plan = models.social().plan()
    step = plan.pattern("latest_comments").steps[0]
    assert (step.index, step.consistent, step.forward, step.limit) == ("LSI1", True, False, 5)
    [local] = [index for index in plan.tables[0].indexes if index.kind == "LSI"]
    assert (local.partition, local.sort, local.entities) == (("PK",), ("LSI1SK",), ("Comment",))
    assert not plan.pattern("timeline").consistent
    assert any("10 GB" in warning for warning in plan.warnings)


def test_many_to_many_is_the_base_and_its_mirror() -> None:
    follow = models.social().plan().entity("Follow")
    assert keys_of(follow) == ["FOLLOWER#{follower}", "FOLLOW#{followed}"]
    assert keys_of(follow, "GSI1") == ["FOLLOWED#{followed}", "FOLLOW"]
    alone = models.social("table-per-entity").plan().entity("Follow")
    assert keys_of(alone) == ["{follower}", "{followed}"]
    assert [(key.name, key.template.native) for key in alone.keys if key.index] == [
        ("followed", True),
        ("follower", True),
    ]


# --- equal inputs, equal designs ------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["single-table", "aggregate", "table-per-entity"])
def test_the_order_of_declaration_does_not_matter(layout: Any) -> None:
    entities, patterns = models.SHOP
    volumes = {models.Customer: 1000, models.Product: 500}
    first = Design("shop", entities, patterns, volumes=volumes, layout=layout).plan()
    chance = random.Random(3)
    for _ in range(3):
        again = Design(
            "shop", chance.sample(entities, len(entities)), chance.sample(patterns, len(patterns)),
            volumes=dict(chance.sample(sorted(volumes.items(), key=str), 2)), layout=layout,
        ).plan()  # fmt: skip
        assert again.to_json() == first.to_json()


def test_a_plan_survives_the_lock_file() -> None:
    for design in (
        models.shop(),
        models.social("aggregate"),
        models.routers("table-per-entity"),
        shop.shop,
    ):
        plan = design.plan()
        again = Plan.from_json(plan.to_json())
        assert again == plan
        assert again.to_json() == plan.to_json()
    with pytest.raises(DesignError, match="format 8"):
        Plan.from_json('{"format": 8}')


# --- layouts --------------------------------------------------------------------------------------


def test_aggregates_are_entities_that_are_read_together() -> None:
    tables = {table.name: table.entities for table in models.shop("aggregate").plan().tables}
    assert tables == {
        "shop-customer": ("Customer",),
        "shop-purchase": ("Line", "Purchase"),
        "shop-product": ("Product", "Review"),
    }


def test_a_table_per_entity_is_keyed_by_the_attributes_themselves() -> None:
    plan = models.shop("table-per-entity").plan()
    line = plan.table("shop-line")
    assert (line.partition, line.sort) == ("order_id", "sku")
    assert plan.entity("Line").discriminator is None
    steps = plan.pattern("order_page").steps
    assert [(step.operation, step.table) for step in steps] == [
        ("Query", "shop-line"),
        ("GetItem", "shop-purchase"),
    ]
    page = plan.pattern("product_page").requests(sku="s")
    assert [request["TableName"] for request in page] == ["shop-product", "shop-review"]
    request = plan.pattern("customer_by_id").request(user_id="u1")
    assert request == {"TableName": "shop-customer", "Key": {"user_id": {"S": "u1"}}}


# --- groups ---------------------------------------------------------------------------------------


def test_a_parent_comes_before_its_newest_children() -> None:
    """ACCOUNT sorts before EVENT, so newest-first needs inverted times; a range and a plain order
    work on them, too.
    """

    @read(rps=5, returns=5)
    def events_between(account_id: str, start: datetime, end: datetime) -> Query[Event]:
        return (
            find(Event)
            .where(Event.account_id == account_id, Event.at > start, Event.at <= end)
            .oldest_first(Event.at)
        )

    design = design_of(account, events, account_page, events_between)
    plan = design.plan()
    key = next(key for key in plan.entity("Event").keys if key.name == "GSI1SK")
    assert key.template.parts[1].inverted
    objects: list[Any] = [Account(account_id=name, owner="o") for name in "ab"]
    objects += [
        Event(event_id=f"{name}{at}", account_id=name, at=START + timedelta(hours=at), kind="k")
        for name in "ab"
        for at in range(40)
    ]
    with filled(plan, objects) as engine:
        page = engine.call("Query", plan.pattern("account_page").request(account_id="a"))["Items"]
        assert [item["_type"]["S"] for item in page] == ["Account"] + ["Event"] * 20
        assert [item["event_id"]["S"] for item in page[1:]] == [
            f"a{at}" for at in range(39, 19, -1)
        ]
        for pattern, arguments in (
            (events, {"account_id": "b"}),
            (
                events_between,
                {"account_id": "b", "start": START, "end": START + timedelta(hours=9)},
            ),
        ):
            check(
                engine,
                plan,
                design,
                pattern.name,
                arguments,
                pattern.function(**arguments).ask,
                objects,
            )


def test_entities_that_cannot_share_the_base_share_an_index() -> None:
    @read(rps=1000, returns=20)
    def page(account_id: str) -> Bundle2[Account, Event]:
        return together(Account, Event).where(Account.account_id == account_id)

    @write(rps=1)
    def move() -> object:
        return updates(Event.account_id)

    design = design_of(account, page, move)
    plan = design.plan()
    assert plan.pattern("page").index == "GSI1"
    assert keys_of(plan.entity("Account"), "GSI1") == ["ACCOUNT#{account_id}", "ACCOUNT"]
    assert keys_of(plan.entity("Event"), "GSI1")[0] == "ACCOUNT#{account_id}"
    objects: list[Any] = [Account(account_id=name, owner="o") for name in "ab"]
    levels: list[Any] = ["info", "error"]
    objects += [
        Event(
            event_id=f"{at}", account_id="ab"[at % 2], at=START, kind="k", level=levels[at // 2 % 2]
        )
        for at in range(9)
    ]
    with filled(plan, objects) as engine:
        got = engine.call("Query", plan.pattern("page").request(account_id="a"))["Items"]
    assert sorted(item["_type"]["S"] for item in got) == ["Account", *["Event"] * 5]


def test_entities_that_are_rarely_read_together_take_a_request_each() -> None:
    """An index that holds every account and event again would cost more than the requests."""

    @read(rps=0.1, returns=20)
    def page(account_id: str) -> Bundle2[Account, Event]:
        return together(Account, Event).where(
            Account.account_id == account_id, Event.level == "error"
        )

    @write(rps=100)
    def add() -> object:
        return creates(Event)

    design = design_of(account, page, add)
    plan = design.plan()
    steps = plan.pattern("page").steps
    assert [(step.operation, step.entities) for step in steps] == [
        ("GetItem", ("Account",)),
        ("Query", ("Event",)),
    ]
    assert "side by side" in plan.pattern("page").reasons[0]
    assert not [key for key in plan.entity("Account").keys if key.index]
    objects: list[Any] = [Account(account_id=name, owner="o") for name in "ab"]
    levels: list[Any] = ["info", "error"]
    objects += [
        Event(
            event_id=f"{at}", account_id="ab"[at % 2], at=START, kind="k", level=levels[at // 2 % 2]
        )
        for at in range(9)
    ]
    with filled(plan, objects) as engine:
        got = answer(engine, plan, design, "page", {"account_id": "a"})
    assert [type(each).__name__ for each in got] == ["Account", "Event", "Event"]


def test_a_consistent_read_of_several_entities_takes_a_request_each() -> None:
    class Entry(Entity):
        account_id: str = ident()
        number: int = ident()

    class Setting(Entity):
        account_id: str = ident()
        name: str = ident()

    @read(rps=10, returns=20, consistent=True)
    def page(account_id: str, name: str) -> Bundle2[Entry, Setting]:
        return together(Entry, Setting).where(
            Entry.account_id == account_id,
            Setting.account_id == account_id,
            Setting.name == name,
        )

    @read(rps=10)
    def setting(account_id: str, name: str) -> Query[Setting]:
        return find(Setting).where(Setting.account_id == account_id, Setting.name == name)

    steps = Design("log", [Entry, Setting], [page, setting]).plan().pattern("page").steps
    assert all(step.consistent and step.index is None for step in steps)


def test_others_in_the_partition_are_kept_out() -> None:
    class Badge(Entity):
        account_id: str = ident()
        badge: str = ident()

    class Zone(Entity):
        account_id: str = ident()
        zone: str = ident()

    class Entry(Entity):
        account_id: str = ident()
        number: int = ident()

    @read(rps=10, returns=20)
    def page(account_id: str) -> Bundle2[Account, Entry]:
        return together(Account, Entry).where(Account.account_id == account_id)

    @read(rps=10, returns=2)
    def badges(account_id: str) -> Query[Badge]:
        return find(Badge).where(Badge.account_id == account_id)

    @read(rps=10, returns=2)
    def zones(account_id: str) -> Query[Zone]:
        return find(Zone).where(Zone.account_id == account_id)

    volumes: dict[Any, Any] = {Account: 10_000, Entry: per(Account, 20)}
    volumes[Badge] = volumes[Zone] = per(Account, 2)
    entities = [Account, Entry, Badge, Zone]
    plan = Design("log", entities, [account, page, badges, zones], volumes=volumes).plan()
    [step] = plan.pattern("page").steps
    assert step.key_condition == 'PK = "ACCOUNT#{account_id}" AND SK BETWEEN "ACCOUNT" AND "ENTRY$"'
    assert str(step.filter) == "_type IN ('Account', 'Entry')"
    assert plan.pattern("page").warnings == (
        "items of Badge lie between them in the same partition, and are read and filtered out",
    )


def test_groups_meet_by_differently_named_fields() -> None:
    @read(rps=10, returns=20)
    def page(who: str) -> Bundle2[Account, Event]:
        return together(Account, Event).where(Account.owner == who, Event.kind == who)

    plan = design_of(page).plan()
    assert keys_of(plan.entity("Account"), "GSI1")[0] == "OWNER#{owner}"
    assert keys_of(plan.entity("Event"), "GSI1")[0] == "OWNER#{kind}"

    @read()
    def strangers(who: str) -> Bundle2[Account, Event]:
        return together(Account, Event).where(Account.owner == who)

    with pytest.raises(DesignError, match="compares no field that all"):
        design_of(strangers).plan()


# --- what decides ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.1, 10, 5000])
def test_the_base_key_is_made_of_the_identity_alone(rate: float) -> None:
    """At no rate is a field frozen, or a get by identity made indirect, to save an index."""
    plan = design_of(read(rps=rate, returns=20)(events.function)).plan()
    assert keys_of(plan.entity("Event")) == ["EVENT#{event_id}", "EVENT"]
    assert plan.pattern("events").index is not None


def test_the_finest_partition_wins_a_tie_with_its_parts_as_declared() -> None:
    class Issue(Entity):
        owner: str = ident()
        repo: str = ident()
        number: int = ident()

    class Comment(Entity):
        owner: str = ident()
        repo: str = ident()
        number: int = ident()
        at: datetime = ident()

    @read(rps=10)
    def issue(number: int, owner: str, repo: str) -> Query[Issue]:
        return find(Issue).where(Issue.number == number, Issue.owner == owner, Issue.repo == repo)

    @read(rps=10, returns=20)
    def comments(number: int, owner: str, repo: str) -> Query[Comment]:
        return (
            find(Comment)
            .where(Comment.number == number, Comment.owner == owner, Comment.repo == repo)
            .oldest_first(Comment.at)
        )

    volumes: dict[Any, Any] = {Issue: 100_000, Comment: per(Issue, 20)}
    plan = Design("host", [Issue, Comment], [issue, comments], volumes=volumes).plan()
    partition = "OWNER#{owner}#REPO#{repo}#NUMBER#{number}"
    assert keys_of(plan.entity("Issue")) == [partition, "ISSUE"]
    assert keys_of(plan.entity("Comment")) == [partition, "COMMENT#{at}"]


def test_an_index_that_is_written_much_and_read_little_holds_keys_only() -> None:
    class Blob(Entity):
        blob_id: str = ident()
        owner: str
        body: str

    @read(rps=0.1, returns=2)
    def of_owner(owner: str) -> Query[Any]:
        return find(Blob).where(Blob.owner == owner)

    @read(rps=100)
    def blob(blob_id: str) -> Query[Any]:
        return find(Blob).where(Blob.blob_id == blob_id)

    @write(rps=50)
    def rewrite() -> object:
        return updates(Blob.body)

    design = Design(
        "blobs", [Blob], [of_owner, blob, rewrite], volumes={Blob: 100_000}, sizes={Blob: 9000}
    )
    plan = design.plan()
    [index] = plan.tables[0].indexes
    assert index.projection == "KEYS_ONLY"
    [step] = plan.pattern("of_owner").steps
    assert step.fetch == ("PK", "SK")
    assert plan.pattern("of_owner").latency.startswith("two round trips")
    busy = Design(
        "blobs",
        [Blob],
        [read(rps=1000, returns=20)(of_owner.function), blob],
        volumes={Blob: 100_000},
        sizes={Blob: 9000},
    )
    assert [index.projection for index in busy.plan().tables[0].indexes] != ["KEYS_ONLY"]


def test_filters_can_be_answered_by_what_an_index_includes() -> None:
    @read(rps=50, returns=1)
    def big(owner: str) -> Query[Any]:
        return (
            find(Doc).where(Doc.owner == owner).filter(attr(Doc.tags).contains("x"), Doc.size > 5)
        )

    class Doc(Entity):
        doc_id: str = ident()
        owner: str
        tags: list[str]
        size: int
        body: str

    @read(rps=100)
    def doc(doc_id: str) -> Query[Any]:
        return find(Doc).where(Doc.doc_id == doc_id)

    @write(rps=50)
    def rewrite() -> object:
        return updates(Doc.body)

    plan = Design(
        "docs", [Doc], [big, doc, rewrite], volumes={Doc: 100_000}, sizes={Doc: 20_000}
    ).plan()
    [index] = plan.tables[0].indexes
    assert (index.projection, index.included) == ("INCLUDE", ("size", "tags"))
    request = plan.pattern("big").request(owner="o")
    assert request["FilterExpression"] == "contains(#f0, :f0) AND #f1 > :f1"
    assert request["ExpressionAttributeValues"][":f1"] == {"N": "5"}


def test_an_optional_field_in_an_index_never_hides_items_from_others() -> None:
    @read(rps=10, returns=20)
    def by_size(account_id: str, over: int) -> Query[Event]:
        larger = Event.size > over  # type: ignore[operator]  # the field is optional
        return find(Event).where(Event.account_id == account_id, larger)

    @read(rps=10, returns=20)
    def all_of(account_id: str) -> Query[Event]:
        return find(Event).where(Event.account_id == account_id)

    design = design_of(by_size, all_of)
    plan = design.plan()
    objects: list[Any] = [
        Event(event_id=f"{at}", account_id="a", at=START, kind="k", size=at if at % 3 else None)
        for at in range(12)
    ]
    with filled(plan, objects) as engine:
        for pattern, arguments in (
            (by_size, {"account_id": "a", "over": 4}),
            (all_of, {"account_id": "a"}),
        ):
            check(
                engine,
                plan,
                design,
                pattern.name,
                arguments,
                pattern.function(**arguments).ask,
                objects,
            )


def test_native_keys_are_not_used_where_another_entity_would_fall_in() -> None:
    class Other(Entity):
        other_id: str = ident()
        owner: int

    @read(rps=10)
    def of_owner(owner: str) -> Query[Account]:
        return find(Account).where(Account.owner == owner)

    alone = Design("things", [Account], [account, of_owner]).plan()
    assert alone.tables[0].indexes[0].native
    beside = Design("things", [Account, Other], [account, of_owner]).plan()
    assert (
        not beside.tables[0].indexes[0].native
    )  # Other.owner is a number: its items would be refused


def test_shards_follow_the_peak_on_one_key() -> None:
    @read(rps=1, returns=10)
    def errors(since: datetime) -> Query[Event]:
        return find(Event).where(Event.level == "error", Event.at >= since)

    def shards(rps: float) -> int:
        log = write(rps=rps)(lambda: creates(Event))
        return design_of(errors, log).plan().pattern("errors").steps[0].shards

    assert [shards(rps) for rps in (100, 2000, 2002, 20_000)] == [1, 1, 2, 15]


def test_hot_base_keys_are_sharded_by_identity_so_that_gets_stay_gets() -> None:
    class Vote(Entity):
        poll: Literal["one", "two"] = ident()
        voter: str = ident()

    @read(rps=1, returns=100)
    def votes(poll: str) -> Query[Any]:
        return find(Vote).where(Vote.poll == poll)

    @read(rps=10)
    def vote(poll: str, voter: str) -> Query[Any]:
        return find(Vote).where(Vote.poll == poll, Vote.voter == voter)

    cast = write(rps=8000)(lambda: creates(Vote))
    design = Design("votes", [Vote], [votes, vote, cast], volumes={Vote: 1_000_000})
    plan = design.plan()
    objects = [Vote(poll="one" if at % 3 else "two", voter=f"v{at}") for at in range(40)]
    assert plan.pattern("votes").steps[0].shards == 6
    assert plan.pattern("vote").operation == "GetItem"
    with filled(plan, objects) as engine:
        for pattern, arguments in (
            (votes, {"poll": "one"}),
            (vote, {"poll": "two", "voter": "v3"}),
        ):
            check(
                engine,
                plan,
                design,
                pattern.name,
                arguments,
                pattern.function(**arguments).ask,
                objects,
            )


def test_updates_that_know_only_the_identity_are_warned_about_a_lookup() -> None:
    class Visit(Entity, key=("ACCOUNT#{account_id}", "VISIT#{visit_id}")):
        visit_id: str = ident()
        account_id: str
        kind: str = ""

    @write(rps=1)
    def relabel() -> object:
        return updates(Visit.kind)

    plan = Design("log", [Visit], [relabel]).plan()
    assert any(
        "first look up the key in GSI1" in warning for warning in plan.entity("Visit").warnings
    )


def test_writes_are_priced_with_their_indexes() -> None:
    plan = models.shop().plan()
    moved = plan.pattern("move_order")
    assert (moved.operation, moved.units_per_call) == (
        "UpdateItem",
        4.0,
    )  # the item, GSI1 twice (its key changes), GSI2
    placed = plan.pattern("place_order")
    assert (placed.operation, placed.transaction) == ("TransactWriteItems", True)
    assert placed.units_per_call == 2 * 4 + 2 + 3
    assert plan.pattern("forget_customer").operation == "DeleteItem"
    big = write(rps=1)(lambda: (creates(Event, 101), updates(Account.plan)))
    assert any("101" in warning or "102" in warning for warning in design_of(big).plan().warnings)


def test_the_runner_up_and_the_reasons_are_told() -> None:
    pattern = models.shop().plan().pattern("customer_by_email")
    assert "an index (ALL) by email" in pattern.reasons[0]
    assert "the attributes themselves" in pattern.runner_up
    assert pattern.example == 'GSI1PK = "EMAIL#email1" AND GSI1SK = "CUSTOMER"'
    assert (pattern.latency, pattern.units_per_call) == ("single-digit milliseconds", 0.5)


# --- refusals -------------------------------------------------------------------------------------


def test_a_pattern_that_needs_a_scan_is_refused_with_the_price_of_what_would_serve_it() -> None:
    @read(rps=2, returns=50)
    def recent(since: datetime) -> Query[Event]:
        return find(Event).where(Event.at >= since)

    with pytest.raises(ScanNeeded) as caught:
        design_of(recent).plan()
    error = caught.value
    assert error.pattern == "recent"
    assert "test_planner.py:" in error.message and "would read the whole table" in error.message
    assert error.hint is not None
    assert 'index={"by_at": ("EVENT", "{at}#{event_id}")} on Event' in error.hint
    assert f"${error.dollars:,.2f}" in error.hint and f"${error.scan_dollars:,.2f}" in error.hint
    assert error.dollars is not None and error.dollars < error.scan_dollars

    class Listed(Entity, index={"by_at": ("EVENT", "{at}#{event_id}")}):
        event_id: str = ident()
        at: datetime

    @read(rps=2, returns=50)
    def recent_listed(since: datetime) -> Query[Any]:
        return find(Listed).where(Listed.at >= since)

    assert (
        Design("things", [Listed], [recent_listed]).plan().pattern("recent_listed").index == "by_at"
    )


def test_a_scan_that_is_allowed_is_loud_and_priced() -> None:
    @read(rps=0.001, returns=50, allow_scan=True)
    def everything(kind: str) -> Query[Event]:
        return find(Event).filter(Event.kind == kind)

    design = design_of(account, everything)
    plan = design.plan()
    scanned = plan.pattern("everything")
    assert scanned.operation == "Scan"
    assert scanned.warnings[0].startswith("SCAN: every call reads the whole table")
    assert scanned.dollars_per_month > 0
    objects: list[Any] = [Account(account_id="a", owner="o")]
    objects += [
        Event(event_id=f"{at}", account_id="a", at=START, kind="xy"[at % 2]) for at in range(6)
    ]
    with filled(plan, objects) as engine:
        check(
            engine,
            plan,
            design,
            "everything",
            {"kind": "x"},
            everything.function(kind="x").ask,
            objects,
        )

    @read(rps=1000, returns=50, allow_scan=True)
    def served(account_id: str) -> Query[Event]:
        return find(Event).where(Event.account_id == account_id)

    assert design_of(served).plan().pattern("served").operation == "Query"


def test_consistent_reads_of_a_field_that_changes_are_refused() -> None:
    @read(rps=1, consistent=True)
    def of_owner(owner: str) -> Query[Account]:
        return find(Account).where(Account.owner == owner)

    sell = write(rps=1)(lambda: updates(Account.owner))
    with pytest.raises(PatternRefused, match="a global index is never consistent") as caught:
        design_of(of_owner, sell).plan()
    assert caught.value.hint is not None and "remove consistent=True" in caught.value.hint

    @read(rps=1, consistent=True)
    def of_plan(plan: str) -> Query[Account]:
        return find(Account).where(Account.plan == plan)

    with pytest.raises(PatternRefused, match="cannot all read consistently"):
        design_of(of_owner, of_plan, read(consistent=True)(account.function)).plan()


def test_identities_must_stay_and_must_be_keys() -> None:
    class Odd(Entity):
        parts: list[str] = ident()

    with pytest.raises(DesignError, match=r"Odd\.parts cannot identify an item"):
        Design("things", [Odd]).plan()
    with pytest.raises(DesignError, match="part of the identity"):
        design_of(write()(lambda: updates(Event.event_id))).plan()


def test_too_many_indexes_are_refused() -> None:
    class Wide(Entity):
        a: str = ident()
        f0: str
        f1: str
        f2: str
        f3: str
        f4: str
        f5: str
        f6: str
        f7: str
        f8: str
        f9: str
        f10: str
        f11: str
        f12: str
        f13: str
        f14: str
        f15: str
        f16: str
        f17: str
        f18: str
        f19: str
        f20: str
        f21: str
        f22: str

    def pattern(at: int) -> Any:
        def ask(value: str) -> Any:
            return find(Wide).where(getattr(Wide, f"f{at}") == value)

        ask.__name__ = f"by{at}"
        return read()(ask)

    with pytest.raises(DesignError, match=r"needs 2[0-9] global"):
        Design(
            "things",
            [Wide],
            [pattern(at) for at in range(23)] + [write(rps=1)(lambda: deletes(Wide))],
        ).plan()


# --- overrides ------------------------------------------------------------------------------------


class Note(
    Entity,
    key=("USER#{user_id}", "NOTE#{written}#{note_id}"),
    index={"ByTag": ("TAG#{tag}", "{written}")},
):
    note_id: int = ident()
    user_id: str
    written: datetime
    tag: str | None = None
    touched: datetime = updated()


class Person(Entity, key=("USER#{user_id}", "PROFILE")):
    user_id: str = ident()
    name: str


@read(rps=5, returns=10)
def notes(user_id: str, since: datetime) -> Query[Note]:
    return (
        find(Note).where(Note.user_id == user_id, Note.written >= since).newest_first(Note.written)
    )


@read(rps=5, returns=10)
def tagged(tag: str, until: datetime) -> Query[Note]:
    return find(Note).where(Note.tag == tag, Note.written < until)


@read(rps=5, returns=10)
def desk(user_id: str) -> Bundle2[Person, Note]:
    return together(Person, Note).where(Person.user_id == user_id)


def test_keys_written_by_hand_are_kept_and_served() -> None:
    design = Design("notes", [Note, Person], [notes, tagged, desk])
    plan = design.plan()
    assert keys_of(plan.entity("Note")) == ["USER#{user_id}", "NOTE#{written}#{note_id}"]
    assert keys_of(plan.entity("Note"), "ByTag") == ["TAG#{tag}", "{written}"]
    assert plan.pattern("notes").index is None
    assert plan.pattern("tagged").index == "ByTag"
    assert plan.pattern("desk").index is None
    objects: list[Any] = [Person(user_id=name, name=name) for name in "ab"]
    objects += [
        Note(
            note_id=at,
            user_id="ab"[at % 2],
            written=START + timedelta(days=at % 7),
            tag=[None, "x", "y"][at % 3],
        )
        for at in range(30)
    ]
    with filled(plan, objects) as engine:
        for pattern, arguments in (
            (notes, {"user_id": "a", "since": START + timedelta(days=2)}),
            (tagged, {"tag": "x", "until": START + timedelta(days=3)}),
            (desk, {"user_id": "b"}),
        ):
            check(
                engine,
                plan,
                design,
                pattern.name,
                arguments,
                pattern.function(**arguments).ask,
                objects,
            )


def test_keys_written_by_hand_are_checked() -> None:
    class Run(Entity, key=("{a}{b}",)):
        a: str = ident()
        b: str = ident()

    class Lost(Entity, key=("X#{a}",)):
        a: str
        b: str = ident()

    class Wrong(Entity, key=("X#{c}",)):
        b: str = ident()

    class Short(Entity, index={"i": ("",)}):
        b: str = ident()

    for entity, problem in (
        (Run, "# is missing between a field and 'b' in '{a}{b}'"),
        (Lost, "leaves out b"),
        (Wrong, "{c} is not a field"),
        (Short, "the key is empty"),
    ):
        with pytest.raises(DesignError) as caught:
            Design("things", [entity]).plan()
        assert problem in caught.value.message
        assert caught.value.hint


def test_names_of_your_own() -> None:
    names = {
        "PK": "pk",
        "SK": "sk",
        "GSI1": "by_mail",
        "GSI1PK": "mail_pk",
        "GSI1SK": "mail_sk",
        "_type": "kind",
        "shop": "Shop",
    }
    plan = models.shop(names=names).plan()
    [table] = plan.tables
    assert (table.name, table.partition, table.sort, table.indexes[0].name) == (
        "Shop",
        "pk",
        "sk",
        "by_mail",
    )
    customer = models.Customer(user_id="u", email="e", name="n")
    item = plan.entity(models.Customer).item(customer)
    assert item["mail_pk"] == {"S": "EMAIL#e"} and item["kind"] == {"S": "Customer"}

    class Clash(Entity):
        PK: str = ident()

    with pytest.raises(DesignError, match="has the same name as an attribute"):
        Design("things", [Clash]).plan()


# --- requests -------------------------------------------------------------------------------------


def test_requests_are_ready_to_be_sent() -> None:
    plan = models.shop().plan()
    start = datetime(2026, 3, 1, tzinfo=UTC)
    request = plan.pattern("purchases_between").request(
        user_id="u1", start=start, end=start + timedelta(days=1)
    )
    assert request == {
        "TableName": "shop",
        "IndexName": "GSI1",
        "KeyConditionExpression": "#k0 = :k0 AND #k1 BETWEEN :k1 AND :k2",
        "ExpressionAttributeNames": {"#k0": "GSI1PK", "#k1": "GSI1SK"},
        "ExpressionAttributeValues": {
            ":k0": {"S": "USER#u1"},
            ":k1": {"S": "PURCHASE#2026-03-01T00:00:00.000000Z"},
            ":k2": {"S": "PURCHASE#2026-03-01T23:59:59.999999Z$"},
        },
    }
    with pytest.raises(DesignError, match="is missing start, end"):
        plan.pattern("purchases_between").request(user_id="u1")
    with pytest.raises(DesignError, match="made from an item"):
        plan.pattern("reprice").request()
    with pytest.raises(DesignError, match="a key needs str here"):
        plan.pattern("customer_by_id").request(user_id=5)


def test_a_base_key_is_made_from_its_fields() -> None:
    plan = models.shop().plan()
    line = plan.entity("Line")
    assert line.base_fields == ("order_id", "sku")
    assert line.base_key(order_id="o", sku="a#b") == {
        "PK": {"S": "PURCHASE#o"},
        "SK": {"S": "LINE#a$23b"},
    }
    with pytest.raises(DesignError, match="the key of Line needs sku"):
        line.base_key(order_id="o")


def test_the_next_best_is_never_cheaper_than_what_was_chosen() -> None:
    """Ten orders of 300 bytes fill a read unit, unless each carries 70 bytes of key attributes."""

    class Buyer(Entity):
        buyer_id: str = ident()
        email: str = unique()

    class Sale(Entity):
        sale_id: str = ident()
        buyer_id: str
        sold_at: datetime

    @read(rps=120, returns=10)
    def sales_of(buyer_id: str) -> Query[Sale]:
        return find(Sale).where(Sale.buyer_id == buyer_id).newest_first(Sale.sold_at).limit(10)

    @read(rps=20)
    def by_email(email: str) -> Query[Buyer]:
        return find(Buyer).where(Buyer.email == email)

    plan = Design(
        "shop",
        [Buyer, Sale],
        [sales_of, by_email],
        volumes={Buyer: 200_000, Sale: per(Buyer, 12)},
        sizes={Buyer: 400, Sale: 300},
    ).plan()
    assert plan.pattern("sales_of").units_per_call == 0.5
    for pattern in plan.patterns:
        [price] = re.findall(r"\$([\d,.]+) a month", pattern.runner_up)
        assert float(price.replace(",", "")) >= pattern.dollars_per_month
