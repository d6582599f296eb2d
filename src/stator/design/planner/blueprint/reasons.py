"""The planner in words: why a key, why an index, what a pattern costs and what the runner-up would have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stator.design.entities.entity import Entity, info
from stator.design.plan.plan import Step
from stator.design.planner.access_paths import Service, is_ordered
from stator.design.planner.assignment import EntityDesign
from stator.design.planner.choices import Choices
from stator.design.planner.cost_model import Costing, Facility
from stator.design.planner.search import GroupDesign
from stator.design.planner.weights import INDEX_DOLLARS
from stator.model.limits import PAGE_BYTES, READ_UNIT_BYTES
from stator.model.wording import dollars as in_dollars

QUICK: Final = "single-digit milliseconds"
TWO_TRIPS: Final = "two round trips, about ten milliseconds"
MANY_PAGES: Final = "tens of milliseconds for each page"
SLOW: Final = "seconds to minutes, growing with the table"


def described(facility: Facility) -> str:
    path = facility.path
    shown = [f"{name} = {source.same}" for name, source in path.constants] + list(path.partition)
    tail = f" then {', '.join(path.sort)}" if path.sort else ""
    held = {
        "base": "the table's key",
        "native base": "the table's key",
        "concatenated": f"an index ({facility.projection})",
        "native": f"an index on the attributes themselves ({facility.projection})",
        "local": f"a local index ({facility.projection})",
    }[facility.holding]
    return f"{held} by {', '.join(shown) or 'one fixed value'}{tail}"


# --- entities and indexes -----------------------------------------------------------------------------------


def base_reasons(design: EntityDesign, served: list[str], partition: str) -> list[str]:
    if design.base.path.handwritten:
        return ["the key was written by hand"]
    reasons = [
        f"{partition} serves {', '.join(served)}" if served else f"{partition} identifies the item"
    ]
    path = design.base.path
    if path.shards > 1:
        reasons.append(
            f"{path.shards} shards: one key value would be asked for more than a partition can do"
        )
    return reasons


def entity_warnings(
    choices: Choices, design: EntityDesign, lookup: str | None, costing: Costing
) -> Iterable[str]:
    if lookup is not None:
        yield (
            f"updates and deletes by {', '.join(info(choices.entity).identity)} alone first look for the key in {lookup}; "
            f"with the item at hand they need not"
        )
    identity = info(choices.entity).identity
    more = [name for name in design.base.path.fields if name not in identity]
    if more and design.base.path.handwritten is None:
        yield (
            f"the key holds {', '.join(more)} beside the identity: two items with the same {', '.join(identity)} and "
            f"another {', '.join(more)} are not refused"
        )
    if any(each.holding == "local" for each in design.opened):
        yield "a local index limits each item collection to 10 GB, for every entity in the partition"


def index_reason(facilities: list[Facility], patterns: tuple[str, ...], costing: Costing) -> str:
    parts = []
    for facility in facilities:
        present = costing.presence(facility.path)
        sparse = f", sparse: {present:.0%} of the items" if present < 1 else ""
        parts.append(f"{info(facility.path.entity).name}: {described(facility)}{sparse}")
    without = (
        f"; without it {', '.join(patterns)} would scan"
        if patterns
        else "; written by hand, and no pattern uses it"
    )
    return "; ".join(parts) + without


# --- patterns -----------------------------------------------------------------------------------------------


def latency_of(steps: tuple[Step, ...]) -> str:
    if any(step.operation == "Scan" for step in steps):
        return SLOW
    if any(
        step.units * READ_UNIT_BYTES * 2 > PAGE_BYTES * step.shards * len(step.conditions)
        for step in steps
    ):
        return MANY_PAGES
    return TWO_TRIPS if any(step.fetch for step in steps) else QUICK


def read_reasons(service: Service, facility: Facility, step: Step, costing: Costing) -> list[str]:
    reasons = []
    if step.operation == "GetItem":
        reasons.append("the arguments are the whole key: one GetItem")
    else:
        reasons.append(f"served by {described(facility)}")
    if step.alternatives:
        reasons.append(
            f"one query for each of {len(step.conditions)} values, answers merged by the reader"
        )
    if step.shards > 1:
        reasons.append(f"one query for each of {step.shards} shards, answers merged by the reader")
    if step.fetch:
        reasons.append(
            "the index holds keys only, which is cheaper to write; the items are fetched afterwards"
        )
    if facility.path.constants:
        reasons.append("sparse: only the items that the constants hold for are in the index")
    if step.filter is not None:
        matched = costing.matched(service)
        reasons.append(
            f"filter on {step.filter}: reads about {matched:.0f} for {service.need.wanted:.0f} wanted"
        )
    return reasons


def read_warnings(
    service: Service,
    facility: Facility,
    step: Step,
    costing: Costing,
    strangers: list[type[Entity]],
) -> list[str]:
    warnings = []
    if strangers and step.operation == "Query":
        also = ", ".join(info(each).name for each in strangers)
        limited = (
            "; a limit would count them, so none is sent" if service.need.limit is not None else ""
        )
        warnings.append(
            f"keys written by hand put {also} among what it reads, to be filtered out{limited}"
        )
    matched, wanted = costing.matched(service), service.need.wanted
    if matched > 3 * wanted and step.operation == "Query":
        warnings.append(f"reads {matched / wanted:.0f} items for each one it returns")
    if service.need.is_count and matched > 10_000:
        warnings.append(
            f"counting reads everything it counts, about {matched:,.0f} entries: keep a counter instead"
        )
    if step.shards > 1 and service.need.limit is not None:
        warnings.append("each shard reads up to the limit")
    if step.alternatives and service.need.limit is not None:
        warnings.append("the query for each value reads up to the limit")
    return warnings


def group_reasons(
    placed: GroupDesign, step: Step, strangers: list[type[Entity]]
) -> tuple[list[str], list[str]]:
    where = "the table itself" if placed.in_base else f"index {step.index}"
    names = " and ".join(step.entities)
    reasons = [f"{names} share a partition of {where}: one Query reads them all"]
    warnings = []
    if strangers:
        also = ", ".join(info(each).name for each in strangers)
        warnings.append(
            f"{also} lives in the same partition between them, and is read and filtered out"
        )
    members = placed.group.members
    inverted = any(each.path.inverted for each in placed.facilities)
    if inverted:
        reasons.append(
            "times are written inverted, so that what belongs to all comes first and the newest follow"
        )
    elif step.limit and not (len(members) == 2 and sum(is_ordered(each) for each in members) == 1):
        warnings.append("the limit counts items of all entities, in the order of their sort keys")
    return reasons, warnings


def runner_up(choices: Choices, design: EntityDesign, at: int) -> str:
    """The next best way to serve one need, all else as it is."""
    chosen = design.assigned[at]
    best: tuple[float, tuple[object, ...], Facility] | None = None
    for facility in (design.base, *design.opened, *choices.secondary):
        use = choices.use[facility][at]
        if facility == chosen or use is None or facility.holding == "local":
            continue
        if (
            chosen is not None
            and facility.path == chosen.path
            and facility.holding == chosen.holding
            and best
        ):
            continue
        extra = 0.0 if facility in (design.base, *design.opened) else choices.keep[facility]
        extra += INDEX_DOLLARS if facility.shares_slot and extra else 0.0
        entry = (round(use + extra, 6), facility.rank, facility)
        best = min(best, entry, key=lambda each: each[:2]) if best else entry
    if best is None:
        return ""
    return f"{described(best[2])}, {in_dollars(best[0])} a month"
