"""Rules about indexes: their number, their use, their projection, and changes to their keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.cost.prices import prices
from stator.design.entities.entity import info
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding
from stator.design.planner.refusals import MANY_INDEXES
from stator.design.planner.weights import WRITE_UNIT_DOLLARS
from stator.model.limits import GLOBAL_INDEXES, LOCAL_INDEXES, READ_UNIT_BYTES, WRITE_UNIT_BYTES
from stator.model.quantities import about_dollars, amount, size

_NEARLY_ALL: Final = 15
_CHURN_RATE: Final = 10.0
_FAST_CHURN_RATE: Final = 100.0
_RARE_RATE: Final = 0.1
"""Calls a second up to which a report can replace an index: some 9,000 a day."""
_DEAR_INDEX_DOLLARS: Final = 100.0
_DEAR_TIMES: Final = 20.0
_ONCE_UNITS: Final = 1.5
"""A change that inserts or deletes one entry takes at most about so many times one entry's units.
A change that moves an entry takes two."""


def too_many(facts: Facts) -> Iterator[Finding]:
    for table in facts.plan.tables:
        for kind, most in (("GSI", GLOBAL_INDEXES), ("LSI", LOCAL_INDEXES)):
            found = [index for index in table.indexes if index.kind == kind]
            over = len(found) > most
            held = Counter(name for index in found for name in index.entities)
            name, own = max(held.items(), key=lambda each: (each[1], each[0]), default=("", 0))
            many = own > MANY_INDEXES
            if not over and (kind == "LSI" or not (many or len(found) > _NEARLY_ALL)):
                continue
            monthly = sum(index.dollars_per_month for index in found)
            pays = (
                f"a write of {name} pays again in up to {own} of them"
                if many
                else "few are left for new patterns"
            )
            yield facts.of(
                "table",
                "ST301",
                "error" if over else "warning" if many else "note",
                table.name,
                f"table {table.name} has {len(found)} "
                f"{'global' if kind == 'GSI' else 'local'} indexes; DynamoDB allows {most}. They "
                f"cost {about_dollars(monthly)} a month: {pays}",
                "drop patterns that are rarely used, let two patterns share an order, "
                'or use layout="aggregate"',
            )


def unused(facts: Facts) -> Iterator[Finding]:
    for table in facts.plan.tables:
        for index in table.indexes:
            if not index.patterns:
                yield facts.on_index(
                    "ST302",
                    "warning",
                    index,
                    f"no pattern reads index {index.name}, which costs "
                    f"{about_dollars(index.dollars_per_month)} a month",
                    f"remove {index.name} from index= of {', '.join(index.entities)}, "
                    f"or declare the pattern that reads it",
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
                paid = index.dollars_per_month + facts.read_dollars(index.name)
                saved = paid * (1 - WRITE_UNIT_BYTES / plan.item_bytes)
                yield facts.on_index(
                    "ST303",
                    "warning" if by_hand else "note",
                    index,
                    f"index {index.name} projects whole {name} items of {size(plan.item_bytes)}: "
                    f"every write pays for the full item again, and every read for whole items "
                    f"({about_dollars(paid)} a month; {about_dollars(saved)} less with entries of "
                    f"1 KB)",
                    "read fewer attributes through the index so that it can project less, "
                    "or move the large part of the item elsewhere",
                    saved,
                )


def key_changes_often(facts: Facts) -> Iterator[Finding]:
    for table in facts.plan.tables:
        for index in table.indexes:
            for name in index.entities:
                yield from _churn(facts, index.name, name)


def _churn(facts: Facts, index: str, name: str) -> Iterator[Finding]:
    entity = facts.by_name[name]
    rates = {field: facts.update_rate(entity, {field}) for field in facts.key_fields(entity, index)}
    field, rate = max(rates.items(), key=lambda each: (each[1], each[0]), default=("", 0.0))
    if rate < _CHURN_RATE:
        return
    units = facts.index_units_of_updates(entity, index, field)
    monthly = units * MONTH_SECONDS * WRITE_UNIT_DOLLARS
    each = amount(units / rate)
    enters = facts.decides_membership(entity, index, field)
    noun = "write unit" if each == "1" else "write units"
    # An item that enters a sparse index once and leaves it once costs what the index is for.
    is_once = enters or not facts.moves_entries(entity, index, field)
    what = "moves, inserts or deletes" if facts.is_sparse(entity, index) else "deletes and inserts"
    what = "inserts or deletes" if is_once else what
    is_inherent = is_once and units / rate <= _ONCE_UNITS * facts.write_units(entity)
    is_fast = rate >= _FAST_CHURN_RATE and not is_inherent
    yield facts.on_field(
        "ST304",
        "warning" if is_fast else "note",
        entity,
        field,
        f"{name}.{field} is in the key of index {index} and changes {amount(rate)} times a "
        f"second: each change {what} an index entry, {each} {noun} in addition to the "
        f"item's own ({about_dollars(monthly)} a month)",
        "nothing, if items enter and leave the index once, as in a list of open work: there is no "
        "saving; if they come and go, keep what changes in a smaller item"
        if is_inherent
        else "index a coarser value that changes rarely, or sort by the changing field after "
        f"reading; this saves up to {about_dollars(monthly)} a month",
        monthly,
    )


def rarely_read(facts: Facts) -> Iterator[Finding]:
    """Report indexes that cost far more to keep than the few calls that they serve are worth.

    The comparison is a report: a daily export of the table, which any tool can query.
    """
    for table in facts.plan.tables:
        for index in table.indexes:
            patterns = [facts.plan.pattern(name) for name in index.patterns]
            rate = sum(each.requests_per_second for each in patterns)
            monthly = index.dollars_per_month
            if not 0 < rate <= _RARE_RATE or monthly < _DEAR_INDEX_DOLLARS:
                continue
            reads = sum(each.dollars_per_month for each in patterns)
            if monthly < _DEAR_TIMES * reads or any(each.consistent for each in patterns):
                continue
            a_call = monthly / (rate * MONTH_SECONDS)
            stored = sum(
                each.count * each.item_bytes
                for each in facts.plan.stored
                if each.table == table.name and each.index is None and not each.is_guard
            )
            export = float(prices()["export_gb"]) * stored / 1024**3
            yield facts.on_index(
                "ST306",
                "note",
                index,
                f"index {index.name} costs {about_dollars(monthly)} a month to write and store, "
                f"for {amount(rate)} calls a second of {', '.join(index.patterns)}: "
                f"${a_call:.2g} a call, and the reads themselves cost {about_dollars(reads)}",
                f"collect such questions and answer them from an export to S3 "
                f"({about_dollars(export)} for the whole table, less for an incremental one), or "
                f"from files that a sink writes; without the index, the design costs "
                f"{about_dollars(monthly)} a month less",
                monthly,
            )


def needless_local(facts: Facts) -> Iterator[Finding]:
    """Report local indexes that no consistent read needs."""
    consistent = {
        (step.table, step.index)
        for pattern in facts.plan.patterns
        for step in pattern.steps
        if step.consistent
    }
    for table in facts.plan.tables:
        for index in table.indexes:
            if index.kind != "LSI" or (table.name, index.name) in consistent:
                continue
            yield facts.on_index(
                "ST305",
                "warning",
                index,
                f"no consistent read uses the local index {index.name}, which limits every item "
                f"collection of {table.name} to 10 GB and cannot be added or dropped later",
                "use a global index: leave out local=True, or let the planner choose; a table "
                "that exists keeps its local index until its items are copied to another table",
            )
