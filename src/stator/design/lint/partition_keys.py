"""Rules about partition keys: enough values, even traffic, and not too much data under one value.

One partition serves 3,000 read units and 1,000 write units a second ("Best practices for designing
and using partition keys" in the Developer Guide). One key value lives in one partition until
DynamoDB splits it between sort keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, time
from typing import Final

from stator.design.entities.derived_parts import derived_part
from stator.design.entities.entity import Entity, EntityField, info
from stator.design.entities.shapes import Maybe, Scalar
from stator.design.lint.facts import Collection, Facts
from stator.design.lint.finding import Finding, Severity
from stator.design.planner.cost_model import READ_LIMIT, WRITE_LIMIT, shards_for
from stator.design.planner.weights import FEW_VALUES
from stator.model.quantities import amount, size

_CROWDED_ITEMS: Final = 1_000
"""Items under one value from which a key with few values is reported."""
_IDLE: Final = 0.01
"""A key that uses less than this part of a partition is not reported, whatever its values."""
_EARLY: Final = 0.25
_WARM: Final = 0.75
"""The planner fills shards to 70 %. Rules report what is above 75 %."""
_COLLECTION_BYTES: Final = 10 * 1024**3
_YEAR_SECONDS: Final = 365 * 24 * 3600
_YEARS: Final = 5
_COUNTED_RATE: Final = 100.0
_TIME_WORDS: Final = re.compile(r"(^|_)(day|date|month|year|hour|minute|week|today|bucket)(_|$)")
_COUNT_WORDS: Final = re.compile(r"(^|_)(id|no|nr|num|number|seq|sequence|serial|counter|index)$")


def low_cardinality(facts: Facts) -> Iterator[Finding]:
    for each in facts.collections:
        if each.values >= FEW_VALUES or _is_time(facts, each):
            continue
        items = sum(facts.design.volume(one) * facts.presence(each, one) for one in each.entities)
        if items / each.values < _CROWDED_ITEMS:
            continue
        busy = max(
            facts.read_units_per_value(each) / READ_LIMIT,
            facts.write_units_per_value(each) / WRITE_LIMIT,
        )
        if busy < _IDLE:
            continue
        severity: Severity = "warning" if busy > _EARLY and each.shards == 1 else "note"
        yield facts.on_collection(
            "ST101",
            severity,
            each,
            f"the partition key {each.name} has about {amount(each.values)} "
            f"value{'s' if each.values > 1 else ''} for {amount(items)} items: each value is "
            f"limited to 1,000 write units and 3,000 read units a second, and {busy:.0%} of that "
            "is used",
            "put a field with many values in front, or declare the real rate with @write(rps=) "
            "so that the planner shards the key",
        )


def _is_time(facts: Facts, collection: Collection) -> bool:
    return any(_time_fields(entity, collection.fields[entity]) for entity in collection.entities)


def _time_fields(entity: type[Entity], names: tuple[str, ...]) -> list[str]:
    found = []
    for name in names:
        part = derived_part(name)
        if part.is_time if part is not None else _tells_time(info(entity).fields[name]):
            found.append(name)
    return found


def _tells_time(field: EntityField) -> bool:
    """Whether a field holds a day, an hour or another period, whose value all new items share.

    A full timestamp does not count, because no two items share it.
    """
    shape = field.shape.inner if isinstance(field.shape, Maybe) else field.shape
    if not isinstance(shape, Scalar):
        return False
    return shape.python in (date, time) or (
        shape.python in (str, int) and bool(_TIME_WORDS.search(field.name))
    )


def time_based(facts: Facts) -> Iterator[Finding]:
    for each in facts.collections:
        for entity in each.entities:
            times = _time_fields(entity, each.fields[entity])
            others = tuple(name for name in each.fields[entity] if name not in times)
            if not times or facts.distinct(entity, others) >= FEW_VALUES:
                continue
            # All current writes go to the current value, no matter how many values history has.
            values = facts.distinct(entity, others) * each.shards
            now = (
                facts.rate(entity, "create")
                * facts.write_units(entity)
                * facts.presence(each, entity)
                / values
            )
            if now < WRITE_LIMIT * _IDLE:
                continue
            yield facts.on_field(
                "ST102",
                _time_severity(now),
                entity,
                times[0],
                f"the partition key {each.name} is a time: all current writes go to one partition, "
                f"{amount(now)} of its 1,000 write units a second, while older partitions are idle",
                f"put another field in front of the time ({_in_front(entity, times)}), or "
                f"spread it over {max(2, shards_for(now, WRITE_LIMIT))} shards with a field of "
                "your own",
            )


def _time_severity(units: float) -> Severity:
    if units > WRITE_LIMIT:
        return "error"
    return "warning" if units > WRITE_LIMIT * _EARLY else "note"


def _in_front(entity: type[Entity], times: list[str]) -> str:
    names = [name for name in info(entity).identity if name not in times]
    return f"{names[0]} and {times[0]}" if names else f"a device or user and {times[0]}"


def monotonic(facts: Facts) -> Iterator[Finding]:
    for entity in facts.design.entities:
        known = info(entity)
        rate = facts.rate(entity, "create")
        if len(known.identity) != 1 or not rate:
            continue
        field = known.fields[known.identity[0]]
        if (
            isinstance(field.shape, Scalar)
            and field.shape.python is int
            and _COUNT_WORDS.search(field.name)
        ):
            yield facts.on_field(
                "ST103",
                "warning" if rate >= _COUNTED_RATE else "note",
                entity,
                field.name,
                f"{known.name}.{field.name} looks like a sequence that grows {amount(rate)} times "
                f"a second: the item that hands out its numbers allows 1,000 writes a second",
                f"make {field.name} a UUID or a ULID, which every program can generate",
            )


def hot_key(facts: Facts) -> Iterator[Finding]:
    for each in facts.collections:
        reads, writes = facts.read_units_per_value(each), facts.write_units_per_value(each)
        for units, limit, what in ((reads, READ_LIMIT, "read"), (writes, WRITE_LIMIT, "write")):
            if units <= limit * _WARM:
                continue
            shards = each.shards * max(2, shards_for(units, limit))
            ways = "cache it, or copy it to" if what == "read" else "spread the writes over"
            yield facts.on_collection(
                "ST104",
                "error" if units > limit else "warning",
                each,
                f"{_which(facts, each)} of the partition key {each.name} gets {amount(units)} "
                f"{what} units a second; a partition serves {limit:,.0f}",
                f"{ways} {shards} keys, or put a field with more values in front",
            )


def _which(facts: Facts, collection: Collection) -> str:
    return "the largest value" if facts.hottest(collection) > 1.0001 else "each value"


def large_collection(facts: Facts) -> Iterator[Finding]:
    for each in facts.collections:
        if each.index is not None:
            continue
        now = (
            sum(
                facts.design.volume(one) * facts.entity_plan(one).item_bytes
                for one in each.entities
            )
            / each.values
        )
        growing = [entity for entity in each.entities if _grows(facts, each, entity)]
        later = sum(
            facts.rate(one, "create") * _YEAR_SECONDS * _YEARS * facts.entity_plan(one).item_bytes
            for one in growing
        )
        total = now + later / each.values
        if total <= _COLLECTION_BYTES:
            continue
        local = [index.name for index in each.table.indexes if index.kind == "LSI"]
        heaviest = max(growing or each.entities, key=lambda one: facts.design.volume(one))
        when = (
            f"holds {size(now)}"
            if now > _COLLECTION_BYTES
            else f"grows to {size(total)} in {_YEARS} years"
        )
        limit = (
            f"; because of the local index {', '.join(local)}, writes fail at 10 GB"
            if local
            else "; above 10 GB it spans several partitions, and nothing is ever removed"
        )
        yield facts.on_entity(
            "ST105",
            "error" if local else "warning",
            heaviest,
            f"an item collection {each.name} {when}{limit}",
            f"add a day or a month of {info(heaviest).name} to the partition key, "
            f"or expire old items with ttl()",
        )


def _grows(facts: Facts, collection: Collection, entity: type[Entity]) -> bool:
    """Whether the number of items under one key value keeps growing.

    It does if items of the entity are created, none is deleted or expires, and several share a
    value.
    """
    known = info(entity)
    leaves = facts.rate(entity, "delete") > 0 or any(
        each.role == "ttl" for each in known.fields.values()
    )
    single = set(known.identity) <= set(collection.fields[entity])
    return not leaves and not single and facts.rate(entity, "create") > 0


def beyond_identity(facts: Facts) -> Iterator[Finding]:
    for entity in facts.design.entities:
        known = info(entity)
        more = sorted(facts.key_fields(entity, None) - set(known.identity))
        if not more:
            continue
        names, identity = ", ".join(more), ", ".join(known.identity)
        yield facts.on_entity(
            "ST106",
            "warning",
            entity,
            f"the base key of {known.name} holds {names} in addition to its identity: {names} "
            f"cannot change, every create and delete is a transaction that also writes a guard, "
            f"and a get by {identity} alone takes more than one request",
            f"mark {names} with ident() if an item is never known without it; "
            f"otherwise keep it out of key= and let an index serve the pattern",
        )
