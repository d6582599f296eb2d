"""Rules about write patterns: transactions, counters and many small items."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.entities.entity import Entity, EntityField, info
from stator.design.entities.shapes import Scalar
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding
from stator.design.patterns.write_pattern import DeclaredWrite
from stator.design.plan.own_table import unique_fields
from stator.design.planner.cost_model import WRITE_LIMIT, shards_for
from stator.design.planner.weights import WRITE_UNIT_DOLLARS
from stator.model.limits import TRANSACTION_BYTES, WRITE_UNIT_BYTES
from stator.model.quantities import about_dollars, amount, size

_TRANSACTION_ITEMS: Final = 100
_NEAR: Final = 0.5
_FAST_WRITES: Final = 100.0
_LEAST_PACKED: Final = 3
_MOST_PACKED: Final = 5
_WAIT_SECONDS: Final = 60.0
"""The longest time for which a writer is assumed to collect items before it writes them."""
_MANY_ENTITIES: Final = 4
_MANY_CONDITIONS: Final = 5
_PUT_DOLLARS: Final = MONTH_SECONDS * WRITE_UNIT_DOLLARS
"""The monthly cost of one write unit a second, in dollars."""
_BUSY_COUNTER: Final = 0.5
_POPULAR: Final = 0.125
"""The least share of all updates that the most popular item is assumed to get."""
_EULER: Final = 0.5772
_COUNTERS: Final = re.compile(
    r"(^|_)(count|counter|hits|likes|views|votes|clicks|plays|downloads|followers|total|sum|tally"
    r"|stock)s?(_|$)"
)


def large_transaction(facts: Facts) -> Iterator[Finding]:
    for pattern in facts.design.write_patterns:
        changes = pattern.trace()
        if len(changes) < 2:
            continue
        items = sum(change.times for change in changes)
        stored = sum(
            change.times * facts.entity_plan(change.entity).item_bytes for change in changes
        )
        share = max(items / _TRANSACTION_ITEMS, stored / TRANSACTION_BYTES)
        if share > _NEAR:
            yield facts.on_pattern(
                "ST501",
                "error" if share > 1 else "warning",
                pattern.name,
                f"{pattern.name} writes {amount(items)} items and {size(stored)} in one "
                f"transaction; DynamoDB allows {_TRANSACTION_ITEMS} items and 4 MB, and every "
                "write in it costs "
                f"twice as much",
                "keep in the transaction only what must succeed together, and write the rest in "
                "batches that can be repeated safely",
            )


def unsharded_counter(facts: Facts) -> Iterator[Finding]:
    for known, field in facts.fields():
        if not _is_counter(field):
            continue
        rate = facts.busy_update_rate(known.cls, {field.name}) * facts.write_units(known.cls)
        if rate * _popular_share(facts, known.cls) <= WRITE_LIMIT * _BUSY_COUNTER:
            continue
        yield _hot_counter(facts, known.cls, field, rate)


def _popular_share(facts: Facts, entity: type[Entity]) -> float:
    """Return the share of an entity's updates that its most popular item is assumed to get.

    Facts about the values of an identity field bound it: if the largest tenant has 2 % of the
    items, so has each of its items at most. Otherwise popularity is assumed to follow Zipf's law,
    but never to fall below an eighth.
    """
    declared = [facts.estimates.largest(entity, name) for name in info(entity).identity]
    known = [each for each in declared if each is not None]
    if known:
        return min(known)
    items = max(1.0, facts.design.volume(entity))
    return max(_POPULAR, min(1.0, 1 / (math.log(items) + _EULER)))


def _is_counter(field: EntityField) -> bool:
    if field.role is None:
        return field.shape == Scalar(int) and bool(_COUNTERS.search(field.name))
    return field.role == "counter"


def _hot_counter(facts: Facts, entity: type[Entity], field: EntityField, rate: float) -> Finding:
    name, items = f"{info(entity).name}.{field.name}", facts.design.volume(entity)
    sure = rate / items > WRITE_LIMIT
    popular = rate * _popular_share(facts, entity)
    shards = max(2, shards_for(rate, WRITE_LIMIT))
    spread = (
        "in one item"
        if items <= 1
        else f"over {amount(items)} items, and the most popular may get {amount(popular)} of that"
    )
    return facts.on_field(
        "ST502",
        "error" if sure else "warning",
        entity,
        field.name,
        f"{name} is updated {amount(rate)} times a second {spread}; one item allows 1,000 writes a "
        f"second",
        f"spread the number over {shards} items with `Counter(db, name, shards={shards})`, "
        f"or sum up in memory or on a stream and write once a second",
    )


def unpacked_writes(facts: Facts) -> Iterator[Finding]:
    """Report small items that are only created, at a high rate, and never read one by one."""
    for entity in facts.design.entities:
        plan, rate = facts.entity_plan(entity), facts.rate(entity, "create")
        several = math.floor(WRITE_UNIT_BYTES / plan.item_bytes)
        if rate < _FAST_WRITES or several < _LEAST_PACKED or not _is_log(facts, entity):
            continue
        several = min(several, _MOST_PACKED)
        values = sum(
            each.values
            for each in facts.collections
            if each.index is None and entity in each.entities
        )
        if rate / values * _WAIT_SECONDS < several:
            continue  # items of one key value are written too rarely to be collected
        monthly = _PUT_DOLLARS * sum(
            each.units
            for each in facts.plan.uses
            if each.kind == "write" and each.entity == plan.name
        )
        saved = monthly * (1 - 1 / several)
        yield facts.on_entity(
            "ST503",
            "note",
            entity,
            f"{amount(rate)} {plan.name} items of {size(plan.item_bytes)} are written a second, "
            f"and each takes a whole write unit of 1 KB ({about_dollars(monthly)} a month): "
            f"{several} of one key in one item save about {about_dollars(saved)} a month",
            f"collect {several} of them, or those of a minute, and write them as one item "
            f'with lists, for example Annotated[list[float], packed("float32")]',
            saved,
        )


def _is_log(facts: Facts, entity: type[Entity]) -> bool:
    """Whether items form a log.

    Writes only create the items, each in a call that writes nothing else. Reads list the items, and
    never get one by its key.
    """
    if facts.rate(entity, "update", "delete"):
        return False
    alone = all(
        len(pattern.trace()) == 1
        for pattern in facts.design.write_patterns
        if any(change.entity is entity for change in pattern.trace())
    )
    name = info(entity).name
    got = any(
        step.operation == "GetItem" and name in step.entities
        for _, plan in facts.planned_reads()
        for step in plan.steps
    )
    return alone and not got and any(entity in each.trace().targets for each in facts.design.reads)


def wide_transaction(facts: Facts) -> Iterator[Finding]:
    """Report transactions over many entities, or with many conditions, with their extra cost."""
    for pattern in facts.design.write_patterns:
        changes = pattern.trace()
        entities = {change.entity for change in changes}
        conditions = sum(_conditions(change) for change in changes)
        if len(changes) < 2:
            continue
        is_wide = len(entities) >= _MANY_ENTITIES
        if not is_wide and conditions < _MANY_CONDITIONS:
            continue
        table = sum(
            each.units
            for each in facts.plan.uses
            if each.kind == "write" and each.pattern == pattern.name and each.index is None
        )
        extra = table / 2 * _PUT_DOLLARS
        what = f"writes items of {len(entities)} entities"
        if not is_wide:
            what = f"checks {amount(conditions)} conditions"
        yield facts.on_pattern(
            "ST504",
            "note",
            pattern.name,
            f"{pattern.name} {what} in one transaction: it "
            f"costs {about_dollars(extra)} a month more than single writes, and if two calls "
            f"write the same item at once, one of them fails and is retried",
            "keep in the transaction what must be true together; let an outbox or a stream "
            "handler write the rest afterwards",
            extra,
        )


def _conditions(change: DeclaredWrite) -> float:
    """Return how many conditions a change checks: declared states, and free unique values."""
    unique = len(unique_fields(change.entity)) if change.kind == "create" else 0
    return change.times * (len(change.before) + unique)
