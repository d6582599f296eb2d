"""The planner's keys beside those of an expert who had not seen it (``expert``)."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Final

import pytest

from stator.design.entities.entity import info
from stator.design.plan.plan import IndexPlan, PatternPlan, Plan, Step
from tests.design import expert

NAMES = sorted(each.name for each in pkgutil.iter_modules(expert.__path__))

# Where the planner differs, and why that convinces.
_STATUS = (
    "A customer has a handful of bookings, and each is confirmed once. With the status in the key, "
    "that would rewrite the index entry; a filter over a few items costs less."
)
_STOCK = (
    "The list of a warehouse has 3,000 items and is read from the table; the list of a product is "
    "short, so an index with keys alone serves it."
)
_FLEET: Final = (
    "Updates of the firmware would move entries of an index sorted by it. A filter over the 500 "
    "devices of a fleet costs less than these moves."
)
_FINEST: Final = (
    "Nothing lists the items of the expert's partition in this order, and items are got by their "
    "whole identity: the finest partition spreads them, and a list has an index either way."
)
_SHARED_LOOKUP: Final = (
    "Few items and rare changes: an entry in an index that other entities need anyway answers in "
    "one request for less than a guard, which is read before the item."
)
_WHOLE_ITEMS: Final = (
    "The pattern returns whole items. Copying them into the index at each write costs more than "
    "fetching the few that a call returns."
)
_RARE_LISTS: Final = (
    "Each state change of 130 rides a second would rewrite an entry that shows the state; the "
    "lists are read 120 times a second, and fetch what they show."
)
OURS: Final[dict[tuple[str, str], str]] = {
    ("second_catalogue", "Review"): _FINEST,
    ("second_catalogue", "reviews_by"): _WHOLE_ITEMS,
    ("second_chat", "Member"): _FINEST,
    ("second_chat", "Mention"): _FINEST,
    ("second_chat", "thread"): _WHOLE_ITEMS,
    ("second_chat", "workspace_by_slug"): _SHARED_LOOKUP,
    ("second_codehost", "Star"): _FINEST,
    ("second_flags", "Audit"): _FINEST,
    ("second_flags", "Flag"): _FINEST,
    ("second_flags", "Segment"): _FINEST,
    ("second_flags", "audit_of_project"): _WHOLE_ITEMS,
    ("second_flags", "env_by_key"): _SHARED_LOOKUP,
    ("second_flags", "segments"): (
        "A segment has 12 KB of members, and the list shows two names: ten segments cost 15 read "
        "units from the table, and half a unit from an index of names."
    ),
    ("second_fleet", "Command"): _FINEST,
    ("second_metering", "keys_of"): (
        "The index is shared with open invoices and tenants, so it shows whole items; one of its "
        "own for two fields less would cost more than these."
    ),
    ("second_metering", "tenant_by_ref"): _SHARED_LOOKUP,
    ("second_rides", "current_ride"): (
        "The expert's index needs a field that says whether a ride is active. Without it, the plan "
        "cannot keep done rides out of an index for two states."
    ),
    ("second_rides", "driver_by_phone"): _SHARED_LOOKUP,
    ("second_rides", "rides_of_driver"): _RARE_LISTS,
    ("second_rides", "rides_of_rider"): _RARE_LISTS,
    ("aws_airline", "bookings_by_status"): _STATUS,
    ("aws_airline", "bookings_of"): _STATUS,
    ("aws_relational_hr", "Stock"): _STOCK,
    ("aws_relational_hr", "stock_in"): _STOCK,
    ("aws_relational_hr", "stock_of"): _STOCK,
    ("book_ecommerce", "order_with_items"): (
        "Two requests side by side: the order by an index of keys, its items from the table. An "
        "index that holds both would copy every item."
    ),
    ("book_github", "issues_by_status"): (
        "Of the newest issues, enough are open that a filter reads less than an index costs."
    ),
    ("fleet", "Firmware"): (
        "Both lists of a model use the index that the order by time needs, so the table has the "
        "finest partition; there are few models."
    ),
    ("flags", "audit_of_actor"): (
        "A call every five seconds: the project's entries with a filter cost $12 a month, an index "
        "$17. The pair fact says that one entry in ten is the actor's."
    ),
    ("fleet", "devices_of_fleet"): _FLEET,
    ("fleet", "devices_on_firmware"): _FLEET,
    ("metering", "invoice_page"): (
        "A GetItem and a Query side by side, both on the table: invoices lie with their tenant, "
        "which lists them without an index."
    ),
}


def planned(name: str) -> tuple[dict[str, Any], Plan]:
    module = importlib.import_module(f"tests.design.expert.{name}")
    return module.EXPECTED, module.design.plan()


def key_of(plan: Plan, entity: str, index: str | None) -> tuple[set[str], list[str]]:
    """Return the fields of a key: the partition with its constants, and the sort key."""
    found = plan.entity(entity)
    # Python names: the expert does not speak of stored ones.
    partition: set[str] = set()
    sort: list[str] = []
    for key in found.keys:
        if key.index != index:
            continue
        names = [part.value for part in key.template.parts if part.kind == "field"]
        if key.is_sort:
            sort += names
        else:
            constants = [
                part.value for test, wanted in key.when for part in test.parts if wanted is not None
            ]
            partition |= {*names, *constants}
    return partition, sort


def named(plan: Plan, design: Any, entity: str, fields: Any) -> list[str]:
    cls = next(each for each in design.entities if info(each).name == entity)
    python = info(cls).python_names
    return [python.get(each, each) for each in fields]


def without_identity(fields: list[str], identity: list[str]) -> list[str]:
    kept = list(fields)
    while kept and kept[-1] in identity:
        kept.pop()
    return kept


def kind_of(pattern: PatternPlan) -> str:
    step = pattern.steps[0]
    if step.guard is not None:
        return "guard"
    if len(pattern.steps) > 1 or step.alternatives or step.lists:
        return "legs"
    return "index" if step.index else "base"


def index_of(plan: Plan, step: Step) -> IndexPlan | None:
    found = (each for each in plan.table(step.table).indexes if each.name == step.index)
    return next(found, None)


def fits(plan: Plan, design: Any, pattern: PatternPlan, wanted: dict[str, Any]) -> bool:
    step, kind = pattern.steps[0], kind_of(pattern)
    if wanted["by"] == "filter":
        return step.filter is not None
    if wanted["by"] != kind:
        return False
    if kind != "index":
        return True
    entity = step.entities[0]
    partition, sort = key_of(plan, entity, step.index)
    identity = named(plan, design, entity, plan.entity(entity).identity)
    mine = without_identity(named(plan, design, entity, sort), identity)
    theirs = without_identity(list(wanted.get("sort", [])), identity)
    same = set(named(plan, design, entity, partition)) == set(wanted.get("partition", partition))
    return same and mine[: len(theirs)] == theirs


@pytest.mark.parametrize("name", NAMES)
def test_base_keys_are_those_of_the_expert(name: str) -> None:
    expected, plan = planned(name)
    design = importlib.import_module(f"tests.design.expert.{name}").design
    differing = {}
    for entity in plan.entities:
        wanted = expected["entities"][entity.name]
        partition, sort = key_of(plan, entity.name, None)
        mine = (
            set(named(plan, design, entity.name, partition)),
            named(plan, design, entity.name, sort),
        )
        accepted = [
            (set(each["partition"]), each["sort"]) for each in (wanted, *wanted.get("or", ()))
        ]
        if mine not in accepted and (name, entity.name) not in OURS:
            differing[entity.name] = (mine, accepted)
    assert differing == {}


@pytest.mark.parametrize("name", NAMES)
def test_patterns_are_served_as_the_expert_would(name: str) -> None:
    expected, plan = planned(name)
    design = importlib.import_module(f"tests.design.expert.{name}").design
    differing = {}
    for pattern in plan.patterns:
        wanted = expected["patterns"].get(pattern.name)
        if wanted is None or (name, pattern.name) in OURS:
            continue
        if not any(fits(plan, design, pattern, each) for each in (wanted, *wanted.get("or", ()))):
            step = pattern.steps[0]
            key = key_of(plan, step.entities[0], step.index)
            differing[pattern.name] = (kind_of(pattern), key, str(step.filter), wanted)
        if "shards" not in wanted:
            assert pattern.steps[0].shards == 1, pattern.name
    assert differing == {}


@pytest.mark.parametrize("name", NAMES)
def test_indexes_hold_what_the_expert_would_copy(name: str) -> None:
    expected, plan = planned(name)
    for pattern in plan.patterns:
        wanted = expected["patterns"].get(pattern.name, {})
        index = index_of(plan, pattern.steps[0])
        if "projection" in wanted and index is not None and (name, pattern.name) not in OURS:
            accepted = {wanted["projection"], *wanted.get("projection_or", ())}
            assert index.projection in accepted, pattern.name
    for table in plan.tables:
        for index in table.indexes:
            assert not set(index.included) & set(expected.get("no_index_has", ())), index.name


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_stays_as_it_is_under_its_own_lock(name: str) -> None:
    design = importlib.import_module(f"tests.design.expert.{name}").design
    first = design.plan()
    assert design.plan(previous=first) == first


def test_the_reasons_are_about_designs_that_exist() -> None:
    assert {name for name, _ in OURS} <= set(NAMES)
    assert all(reason.endswith(".") for reason in OURS.values())
