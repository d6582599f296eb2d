"""Rules about partition keys: enough values, even traffic, and not too much data under one value.

One partition serves 3,000 read units and 1,000 write units a second ("Best practices for designing
and using partition keys" in the Developer Guide). One key value lives in one partition until
DynamoDB splits it between sort keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Final

from stator.design.entities.derived_parts import derived_part
from stator.design.entities.entity import Entity, EntityField, info
from stator.design.entities.shapes import Epoch, Maybe, Scalar
from stator.design.lint.facts import Collection, Facts
from stator.design.lint.finding import Finding, Severity
from stator.design.planner.cost_model import READ_LIMIT, WRITE_LIMIT, shards_for
from stator.design.planner.weights import FEW_VALUES
from stator.model.heat.limits import SHARD_FILL
from stator.model.quantities import amount, size

_CROWDED_ITEMS: Final = 1_000
"""A key with few values is reported only if at least this many items share a value."""
_IDLE: Final = 0.01
"""Keys whose busiest value takes less than this share of a partition's limits are not reported."""
_EARLY: Final = 0.25
_WARM: Final = 0.75
"""The share of a partition's limits from which a key value is reported as hot.

The planner fills shards to 70 %, so keys with enough shards stay below it.
"""
_COLLECTION_BYTES: Final = 10 * 1024**3
_YEAR_SECONDS: Final = 365 * 24 * 3600
_YEARS: Final = 5
_PERIODS: Final = {
    "year": _YEAR_SECONDS, "month": _YEAR_SECONDS / 12, "week": 7 * 86_400, "day": 86_400,
    "hour": 3_600, "minute": 60,
}  # fmt: skip
"""The seconds of each period that a partition key may hold."""
_COUNTED_RATE: Final = 100.0
_TIME_WORDS: Final = re.compile(r"(^|_)(day|date|month|year|hour|minute|week|today|bucket)(_|$)")
_COUNT_WORDS: Final = re.compile(r"(^|_)(id|no|nr|num|number|seq|sequence|serial|counter|index)$")


_Reported = Iterator[tuple[Collection, Finding]]
"""Findings with the collections that they are about."""


def hot_places(facts: Facts) -> set[tuple[str, str | None]]:
    """Return the tables and indexes whose hot keys ST101, ST102 or ST104 report as a problem.

    A table has the index None.
    """
    return {
        (each.table.name, each.index.name if each.index else None)
        for rule in (_low_cardinality, _time_based, _hot_key)
        for each, finding in rule(facts)
        if finding.fails
    }


def low_cardinality(facts: Facts) -> Iterator[Finding]:
    return (finding for _, finding in _low_cardinality(facts))


def _low_cardinality(facts: Facts) -> _Reported:
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
        found = facts.on_collection(
            "ST101",
            severity,
            each,
            f"the partition key {each.name} has about {amount(each.values)} "
            f"value{'s' if each.values > 1 else ''} for {amount(items)} items: each value is "
            f"limited to 1,000 write units and 3,000 read units a second, and {busy:.0%} of that "
            "is used",
            "put a field with many values in front, or declare the real rate with @write(rps=) "
            "so that the planner shards the key; this saves no money, it prevents throttling",
        )
        yield each, found


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
    """Whether a field holds a day, an hour or another period, which all new items share.

    A full timestamp does not count, because hardly any two items have the same one.
    """
    shape = field.shape.inner if isinstance(field.shape, Maybe) else field.shape
    if not isinstance(shape, Scalar):
        return False
    return shape.python in (date, time) or (
        shape.python in (str, int) and bool(_TIME_WORDS.search(field.name))
    )


def time_based(facts: Facts) -> Iterator[Finding]:
    return (finding for _, finding in _time_based(facts))


def _time_based(facts: Facts) -> _Reported:
    for each in facts.collections:
        for entity in each.entities:
            times = _time_fields(entity, each.fields[entity])
            others = tuple(name for name in each.fields[entity] if name not in times)
            if not times or facts.distinct(entity, others) >= FEW_VALUES:
                continue
            # All current writes go to the current value, no matter how many values history has.
            busiest = facts.estimates.hottest(entity, others) if others else 1.0
            now = facts.created_units(each, entity) * busiest / each.shards
            if now < WRITE_LIMIT * _IDLE:
                continue
            shards = each.shards
            partitions = "one partition" if shards == 1 else f"{shards} partitions"
            more = math.ceil(shards * now / (WRITE_LIMIT * SHARD_FILL))
            found = facts.on_field(
                "ST102",
                _time_severity(now, shards),
                entity,
                times[0],
                f"the partition key {each.name} is a time: all current writes go to {partitions}, "
                f"{amount(now)} of {'its' if shards == 1 else 'the'} 1,000 write units a second"
                f"{'' if shards == 1 else ' of each'}, while older partitions are idle",
                f"put another field in front of the time ({_in_front(entity, times)})"
                + (
                    f", or spread it over {max(2, more)} shards with a field of your own"
                    if more > shards or shards == 1
                    else f"; its {shards} shards suffice for the declared rate"
                ),
            )
            yield each, found


def _time_severity(units: float, shards: int) -> Severity:
    """Return the severity of this many write units a second on one partition key.

    ``shards`` is the planned number of shards. A sharded key gets a later warning, because the
    planner fills shards on purpose.
    """
    if units > WRITE_LIMIT:
        return "error"
    return "warning" if units > WRITE_LIMIT * (_EARLY if shards == 1 else _WARM) else "note"


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
    return (finding for _, finding in _hot_key(facts))


def _hot_key(facts: Facts) -> _Reported:
    for each in facts.collections:
        reads, writes = facts.read_units_per_value(each), facts.write_units_per_value(each)
        for units, limit, what in ((reads, READ_LIMIT, "read"), (writes, WRITE_LIMIT, "write")):
            if units <= limit * _WARM:
                continue
            shards = each.shards * max(2, shards_for(units, limit))
            ways = "cache it, or copy it to" if what == "read" else "spread the writes over"
            rekeyed = _rekeyed(each)
            instead = (
                f"plan another key with stator plan --rekey {rekeyed}, and copy the items to it"
                if rekeyed
                else "put a field with more values in front"
            )
            found = facts.on_collection(
                "ST104",
                "error" if units > limit else "warning",
                each,
                f"{_which(facts, each)} of the partition key {each.name} gets {amount(units)} "
                f"{what} units a second; a partition serves {limit:,.0f}",
                f"{ways} {shards} keys, or {instead}",
            )
            yield each, found


def _rekeyed(collection: Collection) -> str:
    """Return an entity to re-key for more shards, or "" if that would not help.

    Without a lock file, the planner would have given the table's key enough shards. Keys of indexes
    and handwritten keys get an empty result.
    """
    if collection.index is not None:
        return ""
    found = [each for each in collection.entities if info(each).overrides.key is None]
    return info(found[0]).name if len(found) == len(collection.entities) else ""


def _which(facts: Facts, collection: Collection) -> str:
    return "the largest value" if facts.hottest(collection) > 1.0001 else "each value"


def large_collection(facts: Facts) -> Iterator[Finding]:
    for each in facts.collections:
        if each.index is not None:
            continue
        largest = facts.hottest(each)
        now = (
            sum(
                facts.design.volume(one) * facts.entity_plan(one).item_bytes
                for one in each.entities
            )
            / each.values
            * largest
        )
        growing = [entity for entity in each.entities if _grows(facts, each, entity)]
        period = _period(each)
        seconds = _YEAR_SECONDS * _YEARS if period is None else _PERIODS[period]
        rates = {one: _growth(facts, each, one, closes=period is not None) for one in growing}
        grown = sum(rates.values()) * seconds
        total = now + grown if period is None else max(now, grown)
        if total <= _COLLECTION_BYTES:
            continue
        local = [index.name for index in each.table.indexes if index.kind == "LSI"]
        heaviest = max(growing or each.entities, key=lambda one: facts.design.volume(one))
        when = f"grows to {size(total)} in " + (
            f"{_YEARS} years" if period is None else f"its {period}"
        )
        if now > _COLLECTION_BYTES:
            when = f"holds {size(now)}"
        limit = (
            f"; because of the local index {', '.join(local)}, writes fail at 10 GB"
            if local
            else "; above 10 GB it spans several partitions, and nothing is ever removed"
        )
        which = "the largest" if largest > 1.0001 else "an"
        yield facts.on_entity(
            "ST105",
            "error" if local else "note",
            heaviest,
            f"{which} item collection {each.name} {when}{limit}",
            _smaller_period(facts, each, heaviest, sum(rates.values()), period)
            + "or expire old items with ttl()",
        )


def _growth(facts: Facts, collection: Collection, entity: type[Entity], *, closes: bool) -> float:
    """Return the bytes a second by which the largest collection of an entity grows.

    ``closes`` means that the key has a period, such as a month, after which a collection stops
    growing. Then all new items go to the collections of the current period.
    """
    names = collection.fields[entity]
    if closes:
        names = tuple(each for each in names if each not in _time_fields(entity, names))
    share = facts.estimates.hottest(entity, names) if names else 1.0
    created = facts.rate(entity, "create") * facts.entity_plan(entity).item_bytes
    return created * share / collection.shards


def _has_time(entity: type[Entity]) -> bool:
    """Whether a field of the identity is a time, so that a key can hold its month or day."""
    shapes = (info(entity).fields[name].shape for name in info(entity).identity)
    return any(
        isinstance(shape, Scalar) and shape.python in (datetime, Epoch, date) for shape in shapes
    )


def _period(collection: Collection) -> str | None:
    """Return the shortest period in a partition key, such as ``month``, or None.

    A collection stops growing when its period ends: a collection of March gets no items in April.
    Returns None if the key has no period.
    """
    found = []
    for entity, names in collection.fields.items():
        for name in _time_fields(entity, names):
            part, field = derived_part(name), info(entity).fields.get(name)
            if part is not None:
                found.append(part.part)
            elif field is not None and _holds_date(field):
                found.append("day")
            else:
                found += [each for each in _PERIODS if each in name.split("_")]
    return min(found, key=lambda each: _PERIODS[each], default=None)


def _holds_date(field: EntityField) -> bool:
    shape = field.shape.inner if isinstance(field.shape, Maybe) else field.shape
    return isinstance(shape, Scalar) and shape.python is date


def _smaller_period(
    facts: Facts,
    collection: Collection,
    entity: type[Entity],
    bytes_a_second: float,
    period: str | None,
) -> str:
    """Return advice on how to keep collections below 10 GB, as the start of a sentence.

    The advice is a period to add to the partition key, a shorter one than ``period``, or a field
    with more values.
    """
    if not bytes_a_second:
        return f"add a field of {info(entity).name} with more values to the partition key, "
    before = math.inf if period is None else _PERIODS[period]
    fitting = [
        each
        for each in ("month", "day", "hour")
        if _PERIODS[each] < before and bytes_a_second * _PERIODS[each] <= _COLLECTION_BYTES
    ]
    if not fitting:
        return "put a field with more values in front in the partition key, "
    held = size(bytes_a_second * _PERIODS[fitting[0]])
    article = "an" if fitting[0] == "hour" else "a"
    if period is None and not _has_time(entity):
        # With a time beyond the identity in the key, each item would need a guard, and each list
        # an index.
        return "leave it as it is if nothing reads all of it, "
    if period is None:
        return (
            f"add {article} {fitting[0]} of {info(entity).name} to the partition key "
            f"({held} each), "
        )
    return (
        f"use {article} {fitting[0]} instead of the {period} in the partition key ({held} each), "
    )


def _grows(facts: Facts, collection: Collection, entity: type[Entity]) -> bool:
    """Whether the number of items under one key value keeps growing.

    It does if items of the entity are created, no item is deleted or expires, and several items
    share a key value.
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
