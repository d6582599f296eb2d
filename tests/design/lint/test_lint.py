"""Every rule finds the problem on its page in docs/lint, and not in the better design there."""

from __future__ import annotations

import re
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest

from stator import (
    Count,
    Entity,
    Query,
    attr,
    creates,
    distinct,
    find,
    hour_of,
    ident,
    largest,
    read,
    share,
    updates,
    write,
)
from stator.design.cost.report import cost
from stator.design.declaration import Per
from stator.design.design import Design
from stator.design.lint.catalogue import CATALOGUE, CODES
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding
from stator.design.lint.location import class_location, function_location
from stator.errors import ConfigurationError

from .. import models, shop

PAGES = Path(__file__).parents[3] / "docs" / "lint"
_IMPORTS = re.search(r"```python\n(.*?)```", (PAGES / "README.md").read_text(), re.DOTALL)


def example(code: str, heading: str = "Found in", changes: dict[str, str] | None = None) -> Design:
    """The design under a heading of a code's page, some of its words replaced."""
    block = re.search(
        rf"## {heading}\n```py\n(.*?)```", (PAGES / f"{code}.md").read_text(), re.DOTALL
    )
    assert block is not None and _IMPORTS is not None
    source = block[1]
    for old, new in (changes or {}).items():
        assert old in source
        source = source.replace(old, new)
    names: dict[str, Any] = {"__name__": f"{code}_{heading}"}
    exec(compile(_IMPORTS[1] + source, "<example>", "exec", dont_inherit=True), names)
    found: Design = names["design"]
    return found


def finding(design: Design, code: str) -> Finding:
    return next(each for each in design.check().findings if each.code == code)


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_rule_finds_what_its_page_shows(code: str) -> None:
    found = finding(example(code), code)
    assert found.message and found.fix and found.subject


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_rule_does_not_find_the_better_design(code: str) -> None:
    report = example(code, "Better").check()
    assert code not in report.codes()
    assert not [each for each in report.findings if each.severity == "error"]


# --- pages and codes


def test_every_code_has_its_page_and_every_page_its_code() -> None:
    assert {page.stem for page in PAGES.glob("ST*.md")} == CODES


def test_pages_have_the_titles_of_the_catalogue() -> None:
    index = (PAGES / "README.md").read_text()
    for entry in CATALOGUE:
        assert (
            (PAGES / f"{entry.code}.md").read_text().startswith(f"# {entry.code}: {entry.title}\n")
        )
        assert f"[{entry.code}]({entry.code}.md) | {entry.title} |" in index


def test_codes_are_in_order_and_differ() -> None:
    codes = [entry.code for entry in CATALOGUE]
    assert codes == sorted(set(codes))


# --- severities


def severity(code: str, changes: dict[str, str] | None = None) -> str:
    return finding(example(code, changes=changes), code).severity


def test_a_key_of_few_values_is_a_note_until_it_is_busy() -> None:
    assert severity("ST101") == "warning"
    assert severity("ST101", {"rps=900": "rps=30"}) == "note"


def test_a_day_as_partition_key_is_a_warning_and_has_shards_when_the_writes_do_not_fit() -> None:
    assert severity("ST102") == "warning"
    assert severity("ST102", {"rps=400": "rps=1400"}) == "note"  # planned with enough shards
    assert severity("ST102", {"rps=400": "rps=40"}) == "note"


def test_counting_up_is_a_note_when_it_is_slow() -> None:
    assert severity("ST103") == "warning"
    assert severity("ST103", {"rps=200": "rps=2"}) == "note"


def test_a_hot_key_is_an_error_above_the_limit_and_a_warning_near_it() -> None:
    assert severity("ST104") == "error"
    assert severity("ST104", {"rps=8000": "rps=5000"}) == "warning"


def test_a_large_item_is_a_warning_before_it_is_an_error() -> None:
    assert severity("ST203") == "error"
    assert severity("ST203", {"500_000": "300_000"}) == "warning"


def test_a_transaction_is_a_warning_before_it_is_an_error() -> None:
    assert severity("ST501") == "error"
    assert severity("ST501", {"120": "70"}) == "warning"


def test_a_counter_that_one_item_cannot_take_is_an_error() -> None:
    assert severity("ST502") == "warning"
    assert severity("ST502", {"Video: 100_000": "Video: 2"}) == "error"


def test_an_index_written_by_hand_that_holds_large_items_is_a_warning() -> None:
    assert severity("ST303") == "note"
    assert (
        severity(
            "ST303", {"(Entity)": '(Entity, index={"by_team": ("TEAM#{team}", "{report_id}")})'}
        )
        == "warning"
    )


def test_more_indexes_than_dynamodb_allows_are_an_error() -> None:
    more = "".join(f'    "by_{at}": ("X{at}#{{make}}", "CAR#{{car_id}}"),\n' for at in range(16))
    assert severity("ST301") == "warning"
    assert severity("ST301", {"    },\n):": more + "}):"}) == "error"


def test_a_misspelt_ignore_is_a_warning() -> None:
    assert severity("ST004") == "note"
    assert severity("ST004", {"ST104:User": "ST1O4"}) == "warning"


# --- ignoring


def test_a_code_can_be_ignored_and_so_can_one_finding() -> None:
    for ignore in ("ST304", "ST304:Post.likes"):
        report = models.social(ignore=[ignore]).check()
        assert "ST304" not in report.codes()
        assert [each.code for each in report.ignored] == ["ST304"]
    assert "ST304" in models.social(ignore=["ST304:Post.at"]).check().codes()


def test_a_refusal_can_be_ignored_like_any_finding() -> None:
    design = example("ST002")
    design.ignore = ("ST002:orders_since",)
    report = design.check()
    assert report.ok
    assert report.plan is None


# --- reports


def test_published_models_have_no_errors() -> None:
    for design in (models.shop(), models.social(), models.routers(), shop.shop):
        assert not [each for each in design.check().findings if each.severity == "error"]


def test_all_refusals_are_found_at_once_and_other_rules_still_run() -> None:
    first = example("ST002")
    second = example("ST402")
    both = Design(
        "both",
        [*first.entities, *second.entities],
        [*first.reads, *second.reads, *second.write_patterns],
        sizes={second.entities[0]: 500_000},
    )
    report = both.check()
    assert {"ST002", "ST402", "ST203"} <= report.codes()
    assert report.plan is None
    assert not report.ok


def test_findings_point_at_the_lines_of_a_file() -> None:
    found = finding(models.social(), "ST304")
    assert found.subject == "Post.likes"
    assert found.location is not None
    assert found.location.excerpt.strip() == "likes: int = 0"
    assert str(found).startswith(f"{found.location}: ST304 ")


def test_places_are_found_and_what_has_no_file_has_no_place() -> None:
    where = class_location(shop.Order)
    assert where is not None and where.excerpt == "class Order(Entity):"
    assert function_location(shop.orders_of_user.function).excerpt.startswith("def orders_of_user")
    assert finding(example("ST203"), "ST203").location is None


def test_a_report_is_data() -> None:
    data = models.social().check().to_data()
    assert data["ok"] is True
    assert data["findings"][0]["code"] == "ST304"
    assert data["findings"][0]["field"] == "Post.likes"
    assert data["findings"][0]["file"].endswith("models.py")


def test_equal_designs_have_equal_reports() -> None:
    assert models.routers().check() == models.routers().check()


def test_a_lock_of_another_design_is_compared() -> None:
    design = models.shop()
    assert design.check(design.plan()).changes == ()
    assert {
        change.risk for change in design.check(models.shop("table-per-entity").plan()).changes
    } >= {"orphans"}


# --- money


def test_findings_about_cents_are_left_out() -> None:
    slow = example("ST407", changes={"rps=200": "rps=0.1"})
    assert "ST407" not in slow.check().codes()
    [cheap] = [each for each in slow.check().cheap if each.code == "ST407"]
    assert cheap.dollars is not None and 0 < cheap.dollars < 5
    assert "ST407" in slow.check(at_least=0).codes()
    assert "ST407" not in example("ST407").check(at_least=1_000_000).codes()


def test_an_error_is_reported_whatever_it_costs() -> None:
    assert "ST203" in example("ST203").check(at_least=1_000_000).codes()


def test_a_sum_below_zero_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at_least=-1"):
        example("ST407").check(at_least=-1)


def test_an_ignored_finding_about_cents_still_matches_its_entry() -> None:
    changes = {"rps=200": "rps=0.1", "    volumes=": '    ignore=["ST407"],\n    volumes='}
    assert "ST004" not in example("ST407", changes=changes).check().codes()


def monthly(design: Design) -> float:
    return float(cost(design).total)


@pytest.mark.parametrize(
    "code",
    [
        "ST201", "ST202", "ST207", "ST208", "ST209", "ST210", "ST303", "ST304", "ST306", "ST401",
        "ST407", "ST503",
    ],
)  # fmt: skip
def test_the_better_design_saves_about_what_the_finding_says(code: str) -> None:
    found = finding(example(code), code)
    assert found.dollars is not None
    saved = monthly(example(code)) - monthly(example(code, "Better"))
    assert saved == pytest.approx(found.dollars, rel=0.3)


def test_a_transaction_with_many_conditions_is_found() -> None:
    class Account(Entity):
        account_id: str = ident()
        state: Literal["open", "held", "closed"] = "open"

    @write(rps=50)
    def transfer() -> object:
        held = updates(Account.state, before=Account.state == "open", after=Account.state == "held")
        return held, held, held, held, held

    design = Design("bank", [Account], [transfer])
    found = finding(design, "ST504")
    assert "checks 5 conditions in one transaction" in found.message


def test_a_count_pays_for_the_index_that_nothing_else_reads() -> None:
    class Job(Entity):
        job_id: str = ident()
        queue: str

    @read(rps=20)
    def waiting(queue: str) -> Count[Job]:
        return find(Job).where(Job.queue == queue).count()

    @write(rps=50)
    def add() -> object:
        return creates(Job)

    volumes: dict[type[Entity], float | Per] = {Job: 5_000_000}
    design = Design(
        "jobs", [Job], [waiting, add], volumes=volumes, facts=[distinct(Job.queue, values=1_000)]
    )
    plan = design.plan()
    [index] = plan.tables[0].indexes
    found = finding(design, "ST407")
    assert f"for the index {index.name}, which nothing else reads" in found.message
    reads = plan.pattern("waiting").dollars_per_month
    assert found.dollars == pytest.approx(reads + index.dollars_per_month, rel=0.05)


def test_a_smaller_transaction_saves_a_part_of_what_the_finding_says() -> None:
    found = finding(example("ST504"), "ST504")
    assert found.dollars is not None
    saved = monthly(example("ST504")) - monthly(example("ST504", "Better"))
    assert saved == pytest.approx(found.dollars / 2)  # two of the four items left it


def test_a_moved_entry_is_blamed_on_the_field_that_changes_most() -> None:
    moved = "@write(rps=20)\ndef moved() -> object:\n    return updates(Player.arena)\n\n\n"
    changes = {
        "    score: int": "    arena: str = ''\n    score: int",
        "leaders(game: str)": "leaders(game: str, arena: str)",
        "Player.game == game)": "Player.game == game, Player.arena == arena)",
        "[leaders, scored]": "[leaders, scored, moved]",
        "design =": f"{moved}design =",
    }
    design = example("ST304", changes=changes)
    found = finding(design, "ST304")
    assert found.subject == "Player.score"
    assert "changes 300 times a second" in found.message
    uses = [each for each in design.plan().uses if each.pattern == "scored" and each.index]
    units = sum(each.units for each in uses)
    assert found.dollars == pytest.approx(units * 730 * 3600 * 0.625e-6)


def test_a_key_that_is_hardly_used_is_not_reported() -> None:
    quiet = example("ST102", changes={"rps=400": "rps=5"})
    assert not {"ST101", "ST102", "ST104"} & quiet.check().codes()


@pytest.mark.parametrize(
    ("size", "is_found", "words"),
    [
        (900, False, ""),
        (975, True, "below the end of 1 KB"),
        (988, True, "more than 1 KB: a write costs 2 units instead of 1"),
        (1_010, False, ""),
        (2_010, True, "more than 2 KB: a write costs 3 units instead of 2"),
        (9_180, False, ""),  # one unit of ten
    ],
)
def test_items_at_a_unit_boundary_are_told_apart(size: int, is_found: bool, words: str) -> None:
    report = example("ST208", changes={"990": str(size)}).check()
    found = [each for each in report.findings if each.code == "ST208"]
    assert bool(found) is is_found
    assert all(words in each.message and not each.fails for each in found)


def test_a_guessed_size_is_at_no_boundary() -> None:
    design = example("ST208", changes={", sizes={Event: 990}": ""})
    assert "ST208" not in design.check(at_least=0).codes()


# --- sparse indexes


class Stage(Enum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"


class Job(Entity):
    job_id: str = ident()
    queue: str
    stage: Stage
    state: Literal["queued", "running", "done"]
    is_open: bool
    rank: int
    worker: str | None = None
    created_at: datetime


def newest(*conditions: Any) -> Any:
    return find(Job).where(*conditions).newest_first(Job.created_at).limit(10)


@read(rps=900)
def of_stage(queue: str) -> Query[Job]:
    found: Query[Job] = newest(Job.queue == queue, Job.stage == Stage.QUEUED)
    return found


@read(rps=900)
def of_state(queue: str) -> Query[Job]:
    found: Query[Job] = newest(Job.queue == queue, Job.state == "queued")
    return found


@read(rps=900)
def still_open(queue: str) -> Query[Job]:
    found: Query[Job] = newest(Job.queue == queue, Job.is_open == True)  # noqa: E712
    return found


@read(rps=900)
def of_worker(worker: str) -> Query[Job]:
    found: Query[Job] = newest(Job.worker == worker)
    return found


@read(rps=900)
def by_rank(queue: str) -> Query[Job]:
    return find(Job).where(Job.queue == queue).order_by(Job.rank).limit(10)


SPARSE: list[tuple[Any, Any, Any]] = [
    (of_stage, Job.stage, Job.stage == Stage.QUEUED),
    (of_state, Job.state, Job.state == "queued"),
    (still_open, Job.is_open, Job.is_open == True),  # noqa: E712
    (of_worker, Job.worker, attr(Job.worker).exists()),
]


def jobs(pattern: Any, changed: Any, facts: Any = (), rate: float = 1_000) -> Design:
    @write(rps=rate)
    def submit() -> object:
        return creates(Job)

    @write(rps=2 * rate)
    def move() -> object:
        return updates(changed)

    return Design(
        "jobs",
        [Job],
        [pattern, submit, move],
        volumes={Job: 90_000_000},
        sizes={Job: 500},
        facts=[distinct(Job.queue, values=40), distinct(Job.worker, values=40), *facts],
    )


@pytest.mark.parametrize(("pattern", "field", "condition"), SPARSE, ids=repr)
@pytest.mark.parametrize("part", [0.0001, 0.4])
def test_a_sparse_index_has_the_declared_share_of_the_items(
    pattern: Any, field: Any, condition: Any, part: float
) -> None:
    design = jobs(pattern, field, [share(condition, part)])
    facts = Facts(design, design.plan())
    [held] = [each for each in facts.collections if each.index is not None]
    assert facts.presence(held, Job) == pytest.approx(part)
    found = [each for each in design.check(at_least=0).findings if each.code == "ST101"]
    assert bool(found) is (90_000_000 * part / held.values >= 1_000)
    for each in found:
        assert "for 36,000,000 items" in each.message


@pytest.mark.parametrize(("pattern", "field", "condition"), SPARSE, ids=repr)
def test_a_queue_costs_what_it_is_for_and_fails_no_check(
    pattern: Any, field: Any, condition: Any
) -> None:
    report = jobs(pattern, field, [share(condition, 0.001)]).check()
    for each in report.findings:
        if each.code == "ST304":
            assert each.severity == "note"
            assert "inserts or deletes an index entry" in each.message
            assert "coarser" not in each.fix
    assert report.ok, report.findings


def test_an_index_whose_entries_move_all_the_time_still_fails_the_check() -> None:
    found = finding(jobs(by_rank, Job.rank), "ST304")
    assert found.severity == "warning" and "coarser value" in found.fix


# --- collections that grow


class MonthlyEvent(Entity):
    month: str = ident()
    tenant: str = ident()
    event_id: str = ident()


class DailyEvent(Entity):
    day: date = ident()
    tenant: str = ident()
    event_id: str = ident()


class Event(Entity):
    tenant: str = ident()
    event_id: str = ident()
    at: datetime


@read(rps=1, returns=100)
def of_month(tenant: str, month: str) -> Query[MonthlyEvent]:
    return find(MonthlyEvent).where(MonthlyEvent.tenant == tenant, MonthlyEvent.month == month)


@read(rps=1, returns=100)
def of_day(tenant: str, day: date) -> Query[DailyEvent]:
    return find(DailyEvent).where(DailyEvent.tenant == tenant, DailyEvent.day == day)


@read(rps=1, returns=100)
def of_tenant(tenant: str) -> Query[Event]:
    return find(Event).where(Event.tenant == tenant).limit(100)


def events(entity: Any, pattern: Any, facts: Any = ()) -> Design:
    @write(rps=4_000)
    def put() -> object:
        return creates(entity)

    return Design(
        "events",
        [entity],
        [pattern, put],
        volumes={entity: 1_000_000},
        sizes={entity: 500},
        facts=[distinct(entity.tenant, values=100), *facts],
    )


def gigabytes(text: str) -> float:
    found = re.search(r"grows to ([\d,.]+) (GB|TB)", text)
    assert found is not None, text
    return float(found[1].replace(",", "")) * (1024 if found[2] == "TB" else 1)


def test_a_collection_of_a_month_grows_for_a_month_and_a_shorter_period_helps() -> None:
    design = events(MonthlyEvent, of_month)
    found = finding(design, "ST105")
    plan = design.plan().entity("MonthlyEvent")
    month = 4_000 * plan.item_bytes * 365 / 12 * 86_400 / 100 / 1024**3
    assert gigabytes(found.message) == pytest.approx(month, rel=0.01)
    assert "in its month" in found.message
    assert found.fix.startswith("use a day instead of the month")
    assert "ST105" not in events(DailyEvent, of_day).check().codes()


@pytest.mark.parametrize("part", [0.02, 0.5])
def test_the_largest_collection_grows_by_its_share(part: float) -> None:
    even = finding(events(Event, of_tenant), "ST105")
    skewed = events(Event, of_tenant, [largest(Event.tenant, part)])
    found = finding(skewed, "ST105")
    [held] = Facts(skewed, skewed.plan()).collections
    assert "the largest item collection" in found.message
    assert gigabytes(found.message) == pytest.approx(
        gigabytes(even.message) * part * 100 / held.shards, rel=0.02
    )
    assert "to the partition key" not in even.fix  # its identity has no time: a guard for each item
    assert even.severity == "note"


class Reading(Entity):
    device: str = ident()
    at: datetime = ident()
    value: int


@read(rps=1)
def of_hour(hour: str) -> Query[Reading]:
    return find(Reading).where(hour_of(Reading.at) == hour).limit(100)


@pytest.mark.parametrize("rate", [400, 6_000, 20_000])
def test_a_time_that_the_planner_sharded_is_a_note_about_all_its_shards(rate: float) -> None:
    @write(rps=rate)
    def put() -> object:
        return creates(Reading)

    design = Design(
        "readings",
        [Reading],
        [of_hour, put],
        volumes={Reading: 50_000_000},
        sizes={Reading: 60},
    )
    [held] = Facts(design, design.plan()).collections
    found = finding(design, "ST102")
    if rate == 400:
        assert held.shards == 1
        assert found.severity == "warning" and "over 2 shards" in found.fix
        return
    assert held.shards > 6
    assert found.severity == "note"
    assert f"go to {held.shards} partitions" in found.message
    assert f"its {held.shards} shards suffice" in found.fix


# --- the largest value

SINCE = "Message.sent_at > last_read)"


def units_in(text: str) -> float:
    found = re.search(r"reads ([\d,.]+) units|a call takes ([\d,.]+) RCU", text)
    assert found is not None
    return float((found[1] or found[2]).replace(",", ""))


def test_the_units_of_the_largest_value_are_those_that_the_plan_shows() -> None:
    design = example("ST408")
    [reason] = [
        each for each in design.plan().pattern("since").reasons if "for the largest value" in each
    ]
    found = finding(design, "ST408")
    assert units_in(found.message) == pytest.approx(units_in(reason), rel=0.01)
    assert "the average call reads 1.5" in found.message


@pytest.mark.parametrize(
    "changes",
    [
        {"values=500_000": "values=50"},  # no value is much larger than the others
        {", largest(Message.channel_id, 0.02)": ""},
        {"rps=50, ": "rps=50, paged=True, "},
        {SINCE: f"{SINCE}.limit(100)"},
        {"Message: 1_000_000_000": "Message: 500_000", "values=500_000": "values=25_000"},
    ],
    ids=["few", "even", "paged", "limited", "small"],
)
def test_the_largest_value_may_be_small_or_read_in_part(changes: dict[str, str]) -> None:
    assert "ST408" not in example("ST408", changes=changes).check().codes()


def test_a_count_of_the_largest_value_reads_it_however_callers_page() -> None:
    changes = {
        "returns=20)": "returns=20, paged=True)",
        "-> Query[Message]": "-> Count[Message]",
        SINCE: f"{SINCE}.count()",
    }
    found = finding(example("ST408", changes=changes), "ST408")
    assert "DynamoDB counts by reading every item" in found.message
    assert "counter" not in found.message and "keep the count" in found.fix


def test_a_call_that_is_large_on_average_is_reported_once() -> None:
    changes = {"returns=20": "returns=500_000", "values=500_000": "values=1_000"}
    assert {"ST406", "ST408"} & example("ST408", changes=changes).check().codes() == {"ST406"}


def test_long_names_are_stored_short_and_kept_in_the_program() -> None:
    found = finding(example("ST205"), "ST205")
    assert 'measured_temperature_celsius = stored("mtc")' in found.fix
    assert "shorten" not in found.fix


class Beat(Entity):
    device_id: str = ident()
    fleet: str
    status: Literal["online", "offline"] = "online"
    since: datetime


@read(rps=1, returns=50)
def offline(fleet: str) -> Query[Beat]:
    found = find(Beat).where(Beat.fleet == fleet, Beat.status == "offline")
    return found.newest_first(Beat.since).limit(50)


def beats(*more: Any) -> Design:
    @write(rps=120)
    def drop() -> object:
        return updates(
            Beat.status,
            Beat.since,
            before=Beat.status == "online",
            after=Beat.status == "offline",
        )

    @write(rps=120)
    def back() -> object:
        return updates(
            Beat.status,
            Beat.since,
            before=Beat.status == "offline",
            after=Beat.status == "online",
        )

    return Design(
        "fleet",
        [Beat],
        [offline, drop, back, *more],
        volumes={Beat: 2_000_000},
        sizes={Beat: 200},
        facts=[share(Beat.status == "offline", 0.02)],
    )


def test_a_time_that_changes_only_with_the_state_of_a_sparse_index_moves_no_entry() -> None:
    """Each update inserts an entry or deletes one, whatever orders the index: nothing is saved."""
    found = finding(beats(), "ST304")
    assert found.severity == "note"
    assert "inserts or deletes" in found.message and "no saving" in found.fix

    @write(rps=500)
    def stamp() -> object:
        return updates(Beat.since, before=Beat.status == "offline", after=Beat.status == "offline")

    moved = finding(beats(stamp), "ST304")
    assert (moved.severity, moved.subject) == ("warning", "Beat.since")


def test_indexes_of_different_entities_do_not_add_up() -> None:
    from tests.design.expert import second_rides

    design = second_rides.design
    [table] = design.plan().tables
    assert len(table.indexes) > 5
    assert "ST301" not in design.check().codes()


class Entry(Entity):
    entry_id: str = ident()
    text: str


def test_an_entity_that_is_written_and_never_read_is_reported_with_its_whole_price() -> None:
    @write(rps=200)
    def log() -> object:
        return creates(Entry)

    def a_design(*reads: Any) -> Design:
        return Design(
            "logs",
            [Beat, Entry],
            [offline, *reads, log],
            volumes={Beat: 1_000, Entry: 50_000_000},
            sizes={Beat: 200, Entry: 500},
        )

    found = finding(a_design(), "ST210")
    assert (found.severity, found.subject) == ("note", "Entry")
    whole = a_design().cost(pitr=False).by_entity()["Entry"]
    assert found.dollars == pytest.approx(float(whole), rel=0.02)

    @read(rps=1)
    def entry(entry_id: str) -> Query[Entry]:
        return find(Entry).where(Entry.entry_id == entry_id)

    assert "ST210" not in a_design(entry).check().codes()
