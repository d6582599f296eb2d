"""Parts derived from fields: months, days and prefixes that patterns compare and keys hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator import (
    Design,
    Entity,
    IndexKey,
    Query,
    creates,
    day_of,
    distinct,
    find,
    hour_of,
    ident,
    largest,
    month_of,
    prefix_of,
    read,
    share,
    ttl,
    updates,
    write,
    year_of,
)
from stator.design.entities.derived_parts import argument_text, derived_part
from stator.design.plan import key_text as keys
from stator.design.plan.plan import Plan
from stator.errors import DesignError, RequestRefused
from stator.verification import verify

from .test_read_estimates import about_values


class Order(Entity):
    order_id: str = ident()
    user_id: str
    placed_at: datetime
    total: int


class Shop(Entity):
    shop_id: str = ident()
    cell: str
    rating: int


class Reading(Entity):
    device: str = ident()
    at: datetime = ident()
    value: int


class Bill(Entity):
    bill_id: str = ident()
    day: date
    gone: datetime | None = ttl()
    shipped_at: datetime | None = None


@read(rps=20)
def orders_of_month(month: str) -> Query[Order]:
    return find(Order).where(month_of(Order.placed_at) == month).newest_first(Order.placed_at)


@read(rps=20)
def month_of_user(user_id: str, month: date) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id, month_of(Order.placed_at) == month)


@read(rps=20)
def day_of_user(user_id: str, day: date) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id, day_of(Order.placed_at) == day)


@read(rps=20)
def dearest_of_month(user_id: str, month: str) -> Query[Order]:
    mine = find(Order).where(Order.user_id == user_id, month_of(Order.placed_at) == month)
    return mine.order_by(Order.total, descending=True).limit(10)


@read(rps=20)
def shops_in(cell: str) -> Query[Shop]:
    return find(Shop).where(prefix_of(Shop.cell, 5) == cell).order_by(Shop.rating)


def keys_of(plan: Plan, entity: type[Any], index: str | None = None) -> list[str]:
    return [str(key.template) for key in plan.entity(entity).keys if key.index == index]


def test_a_month_alone_becomes_the_partition_of_an_index() -> None:
    plan = Design("shop", [Order], [orders_of_month]).plan()
    pattern = plan.pattern("orders_of_month")
    partition, sort = keys_of(plan, Order, pattern.index)
    assert partition.startswith("PLACED_AT_MONTH#{month_of(placed_at)}")
    assert sort == "ORDER#{placed_at}"
    [request, *_] = pattern.requests(month="2026-11")
    assert request["ExpressionAttributeValues"][":k0"]["S"].startswith("PLACED_AT_MONTH#2026-11")
    assert pattern.requests(month="2026-11") == pattern.requests(month=date(2026, 11, 30))


def test_a_range_of_the_field_itself_is_cheaper_where_the_owner_is_known() -> None:
    plan = Design("shop", [Order], [month_of_user, day_of_user]).plan()
    assert len(plan.tables[0].indexes) == 1, "one key serves the month and the day"
    for name, given_, start in (
        ("month_of_user", {"month": "2026-11"}, "2026-11"),
        ("day_of_user", {"day": date(2026, 11, 5)}, "2026-11-05"),
    ):
        request = plan.pattern(name).request(user_id="u1", **given_)
        assert "begins_with(#k1, :k1)" in request["KeyConditionExpression"]
        assert request["ExpressionAttributeValues"][":k1"]["S"].endswith(start)


def test_another_order_within_a_month_needs_the_month_in_the_key() -> None:
    plan = Design("shop", [Order], [dearest_of_month], volumes={Order: 5_000_000}).plan()
    written = "".join(keys_of(plan, Order, plan.pattern("dearest_of_month").index))
    assert written.index("{month_of(placed_at)}") < written.index("{total}")


def test_a_prefix_becomes_a_key_and_its_length_is_checked_in_a_call() -> None:
    plan = Design("map", [Shop], [shops_in], volumes={Shop: 100_000}).plan()
    pattern = plan.pattern("shops_in")
    assert keys_of(plan, Shop, pattern.index)[0] == "CELL_5#{prefix_of(cell, 5)}"
    assert pattern.request(cell="a#b12")["ExpressionAttributeValues"][":k0"] == {
        "S": "CELL_5#a$23b12"
    }
    for wrong in ("u33d", "u33dbc"):
        with pytest.raises(RequestRefused, match="is not a prefix of 5 characters"):
            pattern.request(cell=wrong)


def test_the_base_key_holds_a_part_of_an_identity_field_where_only_that_is_consistent() -> None:
    @read(rps=5, consistent=True)
    def of_month(month: str) -> Query[Reading]:
        return find(Reading).where(month_of(Reading.at) == month).newest_first(Reading.at)

    @read(rps=5)
    def one(device: str, at: datetime) -> Query[Reading]:
        return find(Reading).where(Reading.device == device, Reading.at == at)

    plan = Design("iot", [Reading], [of_month, one], volumes={Reading: 100_000}).plan()
    assert keys_of(plan, Reading) == ["AT_MONTH#{month_of(at)}", "READING#{at}#{device}"]
    assert not plan.entity(Reading).is_guarded
    assert plan.pattern("one").operation == "GetItem"
    at = datetime(2026, 11, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    key = plan.entity(Reading).base_key(device="d", at=at)
    assert key["PK"] == {"S": "AT_MONTH#2026-10"}, "months are counted in UTC"
    assert plan.pattern("one").request(device="d", at=at)["Key"] == key


def test_a_coarser_part_serves_a_finer_comparison() -> None:
    @read(rps=5, consistent=True)
    def of_month(month: str) -> Query[Reading]:
        return find(Reading).where(month_of(Reading.at) == month)

    @read(rps=5, consistent=True)
    def of_day(day: str) -> Query[Reading]:
        return find(Reading).where(day_of(Reading.at) == day)

    plan = Design("iot", [Reading], [of_month, of_day], volumes={Reading: 100_000}).plan()
    assert keys_of(plan, Reading)[0] == "AT_MONTH#{month_of(at)}"
    values = plan.pattern("of_day").request(day="2026-11-05")["ExpressionAttributeValues"]
    assert values == {":k0": {"S": "AT_MONTH#2026-11"}, ":k1": {"S": "READING#2026-11-05"}}


def test_a_part_that_no_key_serves_is_a_filter() -> None:
    @read(rps=1)
    def early(user_id: str, year: str) -> Query[Order]:
        return (
            find(Order)
            .where(Order.user_id == user_id, year_of(Order.placed_at) == year)
            .order_by(Order.total)
        )

    @read(rps=100)
    def by_total(user_id: str) -> Query[Order]:
        return find(Order).where(Order.user_id == user_id).order_by(Order.total)

    plan = Design("shop", [Order], [early, by_total], volumes={Order: 10_000}).plan()
    request = plan.pattern("early").request(user_id="u", year=date(2026, 1, 1))
    assert "begins_with" in request["FilterExpression"]
    assert {"S": "2026"} in request["ExpressionAttributeValues"].values()


# --- the lock file --------------------------------------------------------------------------------


def test_a_lock_stores_parts_and_keeps_their_keys() -> None:
    design = Design("shop", [Order, Shop], [orders_of_month, shops_in, dearest_of_month])
    plan = design.plan()
    assert Plan.from_json(plan.to_json()) == plan
    design.keep_to(plan)
    assert design.plan() == plan

    @write(rps=50)
    def place() -> object:
        return creates(Order)

    more = Design(
        "shop", [Order, Shop], [orders_of_month, shops_in, dearest_of_month, month_of_user, place]
    )
    more.keep_to(plan)
    kept = {each for each in plan.entity(Order).keys if each.index is not None}
    assert kept <= set(more.plan().entity(Order).keys)


def test_equal_designs_give_equal_plans_in_any_order_of_patterns() -> None:
    reads: list[Any] = [orders_of_month, month_of_user, day_of_user, dearest_of_month]
    first = Design("shop", [Order], reads).plan().to_json()
    assert Design("shop", [Order], reads[::-1]).plan().to_json() == first


# --- numbers --------------------------------------------------------------------------------------


def test_the_number_of_months_is_a_guess_that_a_fact_replaces() -> None:
    guessed = Design("shop", [Order], [orders_of_month], volumes={Order: 36_000})
    [guess] = about_values(guessed.plan())
    assert guess == (
        "month_of(Order.placed_at): about 36 distinct values is a guess; "
        "declare distinct(month_of(Order.placed_at), values=...)"
    )
    facts = [distinct(month_of(Order.placed_at), values=4)]
    told = Design("shop", [Order], [orders_of_month], volumes={Order: 36_000}, facts=facts)
    assert about_values(told.plan()) == []
    units = guessed.plan().pattern("orders_of_month").units_per_call
    assert told.plan().pattern("orders_of_month").units_per_call == pytest.approx(9 * units, 0.1)


def test_a_fact_about_days_says_how_many_months_there_are() -> None:
    facts = [distinct(day_of(Order.placed_at), values=365)]
    design = Design("shop", [Order], [orders_of_month], volumes={Order: 36_000}, facts=facts)
    assert about_values(design.plan()) == []
    assert Design("shop", [Order], volumes={Order: 36_000}, facts=facts).facts.all == tuple(facts)


def test_all_writes_of_now_go_to_one_month_unless_a_fact_says_otherwise() -> None:
    @write(rps=3_000)
    def place() -> object:
        return creates(Order)

    volumes: Any = {Order: 5_000_000}
    hot = Design("shop", [Order], [orders_of_month, place], volumes=volumes).plan()
    facts = [largest(month_of(Order.placed_at), 0.03)]
    cool = Design("shop", [Order], [orders_of_month, place], volumes=volumes, facts=facts).plan()
    shards = [
        len(plan.pattern("orders_of_month").requests(month="2026-11")) for plan in (hot, cool)
    ]
    assert shards[0] > shards[1]


def test_a_share_may_be_about_a_part() -> None:
    facts = [share(month_of(Order.placed_at) == "2026-11", 0.5)]

    @read(rps=1)
    def november() -> Query[Order]:
        return find(Order).where(month_of(Order.placed_at) == date(2026, 11, 7))

    plan = Design("shop", [Order], [november], volumes={Order: 10_000}, facts=facts).plan()
    assert about_values(plan) == []
    [partition, _] = [key for key in plan.entity(Order).keys if key.index is not None]
    assert partition.condition == "{month_of(placed_at)} is 2026-11", "the index is sparse"


def test_the_estimates_of_parts_are_measured() -> None:
    @write(rps=5)
    def move() -> object:
        return updates(Order.placed_at)

    design = Design(
        "shop",
        [Order, Shop, Reading],
        [orders_of_month, month_of_user, day_of_user, dearest_of_month, shops_in, move],
        volumes={Order: 40_000, Shop: 10_000, Reading: 1_000},
        facts=[distinct(Order.user_id, values=50), distinct(prefix_of(Shop.cell, 5), values=400)],
    )
    report = verify(design, most_items=8_000)
    assert report.failed == ()
    assert len(report.rows) >= 5


# --- written by hand ------------------------------------------------------------------------------


def test_a_key_written_by_hand_may_hold_parts() -> None:
    class Event(
        Entity,
        key=("DEVICE#{device}#{month_of(at)}", "EVENT#{at}"),
        index={"by_cell": IndexKey(("CELL#{prefix_of(cell, 3)}", "{prefix_of(cell,6)}#{at}"))},
    ):
        device: str = ident()
        at: datetime = ident()
        cell: str

    @read(rps=9)
    def month_of_device(device: str, month: str) -> Query[Event]:
        return find(Event).where(Event.device == device, month_of(Event.at) == month)

    @read(rps=9)
    def in_cell(cell: str) -> Query[Event]:
        return find(Event).where(prefix_of(Event.cell, 6) == cell)

    plan = Design("events", [Event], [month_of_device, in_cell]).plan()
    assert [str(key.template) for key in plan.entity(Event).keys] == [
        "DEVICE#{device}#{month_of(at)}",
        "EVENT#{at}",
        "CELL#{prefix_of(cell, 3)}",
        "{prefix_of(cell, 6)}#{at}",
    ]
    assert plan.pattern("month_of_device").index is None
    values = plan.pattern("in_cell").request(cell="u33dbc")["ExpressionAttributeValues"]
    assert values == {":k0": {"S": "CELL#u33"}, ":k1": {"S": "u33dbc#"}}


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("X#{month_of(device)}", "has no such part"),
        ("X#{hour_of(day)}", "has no such part"),
        ("X#{month_of(nothing)}", "is not a field"),
        ("X#{month_of(at)}{device}", "# is missing between a field and 'device'"),
    ],
)
def test_a_wrong_part_written_by_hand_is_refused(template: str, message: str) -> None:
    class Event(Entity, index={"by_x": (template, "{at}")}):
        device: str = ident()
        at: datetime
        day: date

    with pytest.raises(DesignError, match=message):
        Design("events", [Event]).plan()


# --- what is refused ------------------------------------------------------------------------------

anything: Any = None
_WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: month_of(Order.total) == "2026-11", "is int, which has no such part"),  # type: ignore[arg-type]
    (lambda: day_of(Bill.day) == "2026-11-01", "a date has a year and a month"),  # type: ignore[arg-type]
    (lambda: month_of(Bill.gone) == "2026-11", r"a ttl\(\) field is stored as a number"),
    (lambda: prefix_of(Order.total, 5) == "12345", "has no such part"),  # type: ignore[arg-type]
    (lambda: month_of(Order.placed_at) == "2026-13", "'2026-13' is not a month"),
    (lambda: month_of(Order.placed_at) == "2026-1", "'2026-1' is not a month"),
    (lambda: hour_of(Order.placed_at) == date(2026, 1, 1), "is not an hour"),
    (lambda: day_of(Order.placed_at) == datetime(2026, 1, 1), "zone"),
    (lambda: month_of(Order.placed_at) == Order.user_id, "cannot be compared with Order.user_id"),
    (lambda: month_of(Order.placed_at) == None, "cannot be compared with None"),  # noqa: E711
    (lambda: anything_of(month_of(Order.placed_at)) < "2026", "can only be compared with =="),
    (lambda: prefix_of(Shop.cell, 0) == "", "the length is 0"),
    (lambda: prefix_of(Shop.cell, 5) == "u33d", "is not a prefix of 5 characters"),
    (lambda: month_of(anything) == "2026-11", r"month_of\(\) takes a field of an entity"),
]


def anything_of(value: Any) -> Any:
    return value


@pytest.mark.parametrize(("condition", "message"), _WRONG, ids=[text for _, text in _WRONG])
def test_a_part_that_cannot_be_is_refused(condition: Callable[[], Any], message: str) -> None:
    with pytest.raises(DesignError) as refused:
        find(anything_of(Bill if "date has" in message or "ttl" in message else Order)).where(
            condition()
        )
    assert re.search(message, f"{refused.value.message} {refused.value.hint}")


@pytest.mark.parametrize("annotation", [int, Order, list[str], bool])
def test_an_argument_of_another_type_is_refused(annotation: Any) -> None:
    def of_month(month: Any) -> Query[Order]:
        return find(Order).where(month_of(Order.placed_at) == month)

    of_month.__annotations__["month"] = annotation
    with pytest.raises(DesignError, match="'month', which is declared as") as refused:
        Design("shop", [Order], [read()(of_month)]).plan()
    assert refused.value.hint == "declare the argument as str or date"


# --- texts ----------------------------------------------------------------------------------------

_TIMES = st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31)).map(
    lambda each: each.replace(tzinfo=UTC)
)


@given(_TIMES, st.sampled_from(["year", "month", "day", "hour"]))
def test_a_part_is_the_start_of_the_key_text_of_its_time(moment: datetime, part: str) -> None:
    for inverted in (False, True):
        whole = keys.encode("datetime", moment, inverted=inverted)
        text = keys.encode(f"datetime.{part}", moment, inverted=inverted)
        assert whole.startswith(text)
    assert keys.encode(f"{part}.{part}", argument_text(part, moment)) == keys.encode(
        f"datetime.{part}", moment
    )


@given(st.text(), st.integers(1, 8))
def test_a_prefix_is_the_start_of_the_key_text(value: str, length: int) -> None:
    text = keys.encode(f"str.prefix{length}", value)
    assert keys.encode("str", value).startswith(text)
    assert keys.decode(f"str.prefix{length}", text) == value[:length]
    assert "#" not in text


@pytest.mark.parametrize("name", ["month_of(placed_at)", "prefix_of(cell, 5)", "hour_of(a b)"])
def test_the_name_of_a_part_is_read_back(name: str) -> None:
    assert str(derived_part(name)) == name
    assert derived_part(name.removesuffix(")")) is None
