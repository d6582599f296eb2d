"""Rules about indexes: how many, who uses them, what they hold, how often their keys move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.entities.entity import info
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding
from stator.design.planner.refusals import MANY_INDEXES
from stator.design.planner.weights import WRITE_UNIT_DOLLARS
from stator.model.limits import GLOBAL_INDEXES, LOCAL_INDEXES, READ_UNIT_BYTES
from stator.model.wording import about_dollars, amount, size

_CHURN_RATE: Final = 10.0
_FAST_CHURN_RATE: Final = 100.0


def too_many(facts: Facts) -> Iterator[Finding]:
    for table in facts.plan.tables:
        for kind, most in (("GSI", GLOBAL_INDEXES), ("LSI", LOCAL_INDEXES)):
            found = [index for index in table.indexes if index.kind == kind]
            over = len(found) > most
            if not over and (kind == "LSI" or len(found) <= MANY_INDEXES):
                continue
            monthly = sum(index.dollars_per_month for index in found)
            yield facts.of(
                "table",
                "ST301",
                "error" if over else "warning",
                table.name,
                f"table {table.name} has {len(found)} {'global' if kind == 'GSI' else 'local'} indexes of {most} that "
                f"DynamoDB allows; together they cost {about_dollars(monthly)} a month, and each write pays for each it is in",
                'drop patterns that are rarely asked, let two share an order, or use layout="aggregate"',
            )


def unused(facts: Facts) -> Iterator[Finding]:
    for table in facts.plan.tables:
        for index in table.indexes:
            if not index.patterns:
                yield facts.on_index(
                    "ST302",
                    "warning",
                    index,
                    f"no pattern reads index {index.name}, which costs {about_dollars(index.dollars_per_month)} a month",
                    f"remove {index.name} from index= of {', '.join(index.entities)}, or declare the pattern that needs it",
                )


def large_projection(facts: Facts) -> Iterator[Finding]:
    for table in facts.plan.tables:
        for index in table.indexes:
            if index.projection != "ALL":
                continue
            for name in index.entities:
                entity, plan = facts.by_name[name], facts.plan.entity(name)
                if plan.item_bytes <= READ_UNIT_BYTES:
                    continue
                by_hand = index.name in dict(info(entity).overrides.indexes)
                yield facts.on_index(
                    "ST303",
                    "warning" if by_hand else "note",
                    index,
                    f"index {index.name} holds whole items of {name}, {size(plan.item_bytes)} each: every write of one is paid "
                    f"again in full ({about_dollars(index.dollars_per_month)} a month)",
                    "read less through it, so that keys or a few attributes will do; or move the large part of the item out",
                )


def key_changes_often(facts: Facts) -> Iterator[Finding]:
    for table in facts.plan.tables:
        for index in table.indexes:
            for name in index.entities:
                yield from _churn(facts, index.name, name)


def _churn(facts: Facts, index: str, name: str) -> Iterator[Finding]:
    entity = facts.by_name[name]
    changed = sorted(
        field
        for field in facts.key_fields(entity, index)
        if facts.update_rate(entity, {field}) >= _CHURN_RATE
    )
    if not changed:
        return
    rate = facts.update_rate(entity, set(changed))
    monthly = rate * 2 * facts.write_units(entity) * MONTH_SECONDS * WRITE_UNIT_DOLLARS
    yield facts.on_field(
        "ST304",
        "warning" if rate >= _FAST_CHURN_RATE else "note",
        entity,
        changed[0],
        f"{name}.{changed[0]} is in the key of index {index} and changes {amount(rate)} times a second: each change is a "
        f"delete and an insert, two writes beside the item's own ({about_dollars(monthly)} a month)",
        "index a coarser value that changes seldom, or keep what changes out of the key and sort after reading",
    )
