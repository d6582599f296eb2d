"""Hot key values, advice on identities, one-off writes, and messages of the planner."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

import pytest

from stator.design.design import Design
from stator.design.entities.conditions import attr
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import creates, updates, write
from stator.design.plan.lock_file import compare
from stator.design.planner.longer_identity import longer_identities
from stator.design.value_facts import distinct, largest, share
from stator.errors import DesignError, ScanNeeded


class Payout(Entity):
    payout_id: str = ident()
    day: date
    cents: int


class User(Entity):
    user_id: str = ident()
    workspace: str
    handle: str


class Message(Entity):
    message_id: str = ident()
    channel: str
    body: str
    seen: int = 0


class Device(Entity):
    device_id: str = ident()
    fleet_id: str
    status: Literal["on", "off"]
    archived: bool
    model: str
    site: str | None = None


class Category(Entity):
    category_id: str = ident()
    parent_id: str | None = None
    rank: int


@read(rps=0.01, paged=True)
def of_day(day: date) -> Query[Payout]:
    return find(Payout).where(Payout.day == day)


@write(rps=3_000)
def settle() -> object:
    return creates(Payout)


def payouts(*facts: Any) -> Design:
    return Design(
        "payouts",
        [Payout],
        [of_day, settle],
        volumes={Payout: 1_000_000_000},
        sizes={Payout: 200},
        facts=facts,
    )


def test_a_date_takes_all_writes_of_today() -> None:
    plan = payouts().plan()
    assert plan.pattern("of_day").steps[0].shards == 5
    assert (
        "5 shards: the busiest key value gets 3,000 write units" in plan.tables[0].indexes[0].reason
    )
    spread = payouts(largest(Payout.day, 0.01)).plan()
    assert spread.pattern("of_day").steps[0].shards == 1


def test_advice_on_an_identity_divides_a_hot_key_as_the_plan_would() -> None:
    for advice in longer_identities(payouts()):
        assert "{shard}" in advice.key[0] or "{payout_id}" in advice.key[0]


def test_shards_because_of_reads_name_the_pattern() -> None:
    @read(rps=40_000)
    def of_channel(channel: str) -> Query[Message]:
        return find(Message).where(Message.channel == channel).limit(10)

    design = Design(
        "chat",
        [Message],
        [of_channel],
        volumes={Message: 1_000_000},
        facts=[distinct(Message.channel, values=1_000), largest(Message.channel, 0.2)],
    )
    plan = design.plan()
    assert plan.pattern("of_channel").steps[0].shards > 1
    assert "read units from of_channel a second" in plan.tables[0].indexes[0].reason


# --- the largest value ----------------------------------------------------------------------------


def test_the_largest_value_also_pays_for_the_items_that_are_fetched() -> None:
    @read(rps=5)
    def recent(channel: str) -> Query[Message]:
        return find(Message).where(Message.channel == channel)

    @write(rps=900)
    def see() -> object:
        return updates(Message.seen)

    design = Design(
        "chat",
        [Message],
        [recent, see],
        volumes={Message: 10_000_000},
        sizes={Message: 900},
        facts=[distinct(Message.channel, values=500_000), largest(Message.channel, 0.001)],
    )
    found = design.plan().pattern("recent")
    assert found.steps[0].fetch
    assert "5,0" in found.reasons[-1]  # 10,000 items of half a unit, and the query


def test_a_pair_that_a_fact_makes_unique_has_no_largest_value() -> None:
    @read(rps=50)
    def by_handle(workspace: str, handle: str) -> Query[User]:
        return find(User).where(User.workspace == workspace, User.handle == handle)

    design = Design(
        "users",
        [User],
        [by_handle],
        volumes={User: 5_000_000},
        facts=[
            distinct(User.workspace, User.handle, values=5_000_000),
            distinct(User.workspace, values=20_000),
            largest(User.workspace, 0.06),
        ],
    )
    assert not any("largest value" in each for each in design.plan().pattern("by_handle").reasons)


# --- advice on identities -------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["status", "archived", "site", "model"])
def test_no_state_or_optional_field_is_proposed_for_an_identity(field: str) -> None:
    @read(rps=200)
    def listed(fleet_id: str, value: Any) -> Query[Device]:
        return find(Device).where(Device.fleet_id == fleet_id, getattr(Device, field) == value)

    @write(rps=500)
    def add() -> object:
        return creates(Device)

    design = Design("fleet", [Device], [listed, add], volumes={Device: 1_000_000})
    proposed = {name for each in longer_identities(design, 0.0) for name in each.fields}
    assert not proposed & {"status", "archived", "site"}
    assert proposed or field in ("status", "site")


# --- one-off writes -------------------------------------------------------------------------------


def test_a_new_index_on_stored_items_says_what_filling_it_costs() -> None:
    @read(rps=5)
    def of_channel(channel: str) -> Query[Message]:
        return find(Message).where(Message.channel == channel).limit(10)

    def chat(*patterns: Any) -> Design:
        return Design(
            "chat", [Message], patterns, volumes={Message: 4_000_000_000}, sizes={Message: 400}
        )

    @write(rps=1)
    def send() -> object:
        return creates(Message)

    before, after = chat(send), chat(send, of_channel)
    old, new = before.plan(), after.plan(before.plan())
    [change] = [each for each in compare(old, new) if each.subject.startswith("index")]
    assert "4,000,000,000 write units once, $2,500" in change.what
    from stator.design.cost.difference import compare_costs

    found = compare_costs(before.cost(), after.cost(), (old, new))
    assert found.filled_units == 4_000_000_000
    assert "once, $2,500" in found.sentence
    same = compare_costs(before.cost(), before.cost(), (old, old))
    assert "once" not in same.sentence


# --- messages -------------------------------------------------------------------------------------


def planned(pattern: Any, *entities: type[Entity]) -> None:
    Design("design", entities or [User], [pattern]).plan()


def test_an_argument_of_a_type_that_never_matches_is_refused_with_its_line() -> None:
    @read()
    def of_workspace(workspace: int) -> Query[User]:
        return find(User).where(User.workspace == workspace)  # type: ignore[comparison-overlap]

    with pytest.raises(
        DesignError, match=r"test_heat_and_advice.py:\d+: of_workspace: .*never equal"
    ):
        planned(of_workspace)


@pytest.mark.parametrize(
    "moment",
    [
        lambda: datetime.now(UTC),
        lambda: datetime.now(UTC) - timedelta(days=1),
        lambda: datetime.fromtimestamp(random.random() * 1e9, UTC),
    ],
)
def test_a_value_of_the_moment_in_a_pattern_is_refused(moment: Any) -> None:
    class Event(Entity):
        event_id: str = ident()
        owner: str
        at: datetime

    @read()
    def recent(owner: str) -> Query[Event]:
        return find(Event).where(Event.owner == owner, Event.at >= moment())

    with pytest.raises(
        DesignError, match=r"test_heat_and_advice.py:\d+: recent.*changes from call to call"
    ):
        planned(recent, Event)


def test_today_and_a_new_uuid_in_a_pattern_are_refused() -> None:
    @read()
    def today() -> Query[Payout]:
        return find(Payout).where(Payout.day == date.today())

    @read()
    def anyone() -> Query[User]:
        return find(User).where(User.handle == str(uuid.uuid4()))

    for pattern, entity in ((today, Payout), (anyone, User)):
        with pytest.raises(DesignError, match="changes from call to call"):
            planned(pattern, entity)


def test_a_constant_date_is_accepted() -> None:
    @read()
    def of_new_year() -> Query[Payout]:
        return find(Payout).where(Payout.day == date(2026, 1, 1))

    planned(of_new_year, Payout)


def test_a_time_without_a_zone_is_refused_with_its_line() -> None:
    class Event(Entity):
        event_id: str = ident()
        owner: str
        at: datetime

    @read()
    def recent(owner: str) -> Query[Event]:
        return find(Event).where(Event.owner == owner, Event.at >= datetime(2026, 1, 1))

    with pytest.raises(DesignError, match=r"test_heat_and_advice.py:\d+: recent: .*no time zone"):
        planned(recent, Event)


@pytest.mark.parametrize("method", ["sum", "group_by", "avg", "distinct", "join", "offset"])
def test_what_no_query_can_do_is_answered_with_what_can(method: str) -> None:
    with pytest.raises(DesignError, match=f"{method}\\(\\) does not exist") as caught:
        getattr(find(User), method)
    assert caught.value.hint
    assert not hasattr(find(User), "unknown")


def test_the_hint_for_a_count_of_everything_is_no_dearer_than_the_scan() -> None:
    @read(rps=10)
    def how_many() -> Any:
        return find(User).count()

    with pytest.raises(ScanNeeded) as caught:
        planned(how_many)
    assert "counter" in str(caught.value.hint) and "index=" not in str(caught.value.hint)


def test_a_guessed_presence_and_a_contradiction_are_shown() -> None:
    @read(rps=300, returns=12)
    def children(parent_id: str) -> Query[Category]:
        return find(Category).where(Category.parent_id == parent_id).order_by(Category.rank)

    def catalogue(*facts: Any) -> Design:
        facts = (distinct(Category.parent_id, values=700), *facts)
        return Design("shop", [Category], [children], volumes={Category: 8_000}, facts=facts)

    plan = catalogue().plan()
    assert any("parent_id: 50% of the items have it" in each for each in plan.guesses)
    assert any("returns=12 contradicts" in each for each in plan.pattern("children").warnings)
    known = catalogue(share(attr(Category.parent_id).exists(), 0.95)).plan()
    assert not any("50%" in each for each in known.guesses)
    assert not known.pattern("children").warnings


def test_reasons_of_a_write_count_how_often_it_writes() -> None:
    @read(rps=5)
    def of_channel(channel: str) -> Query[Message]:
        return find(Message).where(Message.channel == channel).limit(10)

    @write(rps=1)
    def send() -> object:
        return creates(Message, times=4), creates(User)

    found = Design("chat", [Message, User], [of_channel, send]).plan().pattern("send")
    assert any(each.endswith(", 4 times") for each in found.reasons)
