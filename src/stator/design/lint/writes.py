"""Rules about write patterns: transactions and counters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from stator.design.entities.entity import Entity, EntityField, info
from stator.design.entities.shapes import Scalar
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding
from stator.design.planner.cost_model import WRITE_LIMIT, shards_for
from stator.model.limits import TRANSACTION_BYTES
from stator.model.quantities import amount, size

_TRANSACTION_ITEMS: Final = 100
_NEAR: Final = 0.5
_BUSY_COUNTER: Final = 0.5
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
        rate = facts.update_rate(known.cls, {field.name}) * facts.write_units(known.cls)
        if rate <= WRITE_LIMIT * _BUSY_COUNTER:
            continue
        yield _hot_counter(facts, known.cls, field, rate)


def _is_counter(field: EntityField) -> bool:
    if field.role is None:
        return field.shape == Scalar(int) and bool(_COUNTERS.search(field.name))
    return field.role == "counter"


def _hot_counter(facts: Facts, entity: type[Entity], field: EntityField, rate: float) -> Finding:
    name, items = f"{info(entity).name}.{field.name}", facts.design.volume(entity)
    sure = rate / items > WRITE_LIMIT
    shards = max(2, shards_for(rate, WRITE_LIMIT))
    spread = (
        "in one item"
        if items <= 1
        else f"over {amount(items)} items, and a popular one may get most of that"
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
