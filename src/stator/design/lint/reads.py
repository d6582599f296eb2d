"""Rules about read patterns: how much they read, numbers stored as text, and expired items."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from stator.design.capacity_units import MONTH_SECONDS, read_units
from stator.design.entities.entity import EntityField, info
from stator.design.entities.shapes import Maybe, Scalar
from stator.design.lint.facts import Facts, LargestValue
from stator.design.lint.finding import Finding
from stator.design.patterns.ask import Ask
from stator.design.patterns.condition_contents import references
from stator.design.patterns.param import Param
from stator.design.patterns.pattern import Pattern
from stator.design.plan.plan import PatternPlan, Step
from stator.design.planner.selectivity import estimated_need
from stator.design.planner.weights import READ_UNIT_DOLLARS
from stator.design.value_facts import shown_name
from stator.errors import DesignError
from stator.model.limits import PAGE_BYTES, READ_UNIT_BYTES
from stator.model.quantities import about_dollars, amount, size

_WASTEFUL: Final = 4.0
_MANY_PAGES: Final = 10
_LARGE_COUNT_UNITS: Final = 2.0
_KEPT_NUMBER_UNITS: Final = 0.5
_SLACK: Final = timedelta(days=2)
"""DynamoDB deletes expired items "within a few days", most often within two."""
_PROMISES: Final = re.compile(
    r"session|token|lock|lease|otp|passcode|reservation|hold|invit|permit|grant", re.IGNORECASE
)
_NUMBERS: Final = re.compile(
    r"(^|_)(amount|balance|cents|count|level|no|nr|num|number|page|points|position|price|quantity"
    r"|qty|rank|rating|score|size|seq|sequence|stock|total|version|weight|year)$"
)


def wasteful_filter(facts: Facts) -> Iterator[Finding]:
    for pattern, plan in facts.planned_reads():
        for step in plan.steps:
            times = _read_per_returned(facts, pattern, step)
            if step.is_filtered and step.operation == "Query" and times >= _WASTEFUL:
                monthly = step.units * plan.requests_per_second * MONTH_SECONDS * READ_UNIT_DOLLARS
                wasted = monthly * (1 - 1 / times)
                shown = " and ".join(map(str, step.filters))
                yield facts.on_pattern(
                    "ST401",
                    "warning",
                    pattern.name,
                    f"{pattern.name} filters on {shown} and reads about {amount(times)} "
                    f"times what it returns: a filter is applied after reading, so every call pays "
                    f"for {amount(step.units)} read units ({about_dollars(monthly)} a month, "
                    f"{about_dollars(wasted)} of it for items that are dropped)",
                    "compare the filtered fields in where() with == or one range so that a key can "
                    "serve them, or declare returns= if the pattern returns more",
                    wasted,
                )


def _read_per_returned(facts: Facts, pattern: Pattern[..., Any], step: Step) -> float:
    entities = [facts.by_name[name] for name in step.entities]
    returned, fetched = 0.0, 0.0
    for entity in entities:
        try:
            item_count = estimated_need(pattern, entity, facts.estimates).wanted
        except DesignError:
            return 0.0
        item_bytes = facts.entity_plan(entity).item_bytes
        returned += item_count / len(entities) * item_bytes
        fetched += item_count * read_units(item_bytes, consistent=False) if step.fetch else 0.0
    return (step.units - fetched) / read_units(returned, consistent=step.consistent)


def numbers_in_strings(facts: Facts) -> Iterator[Finding]:
    for pattern in facts.design.reads:
        ask = pattern.trace()
        for entity, field in _ordered_strings(ask):
            number = _compared_with_number(ask, field)
            if number or _NUMBERS.search(field.name):
                how = f"with the number {number}" if number else "by order"
                yield facts.on_field(
                    "ST403",
                    "warning",
                    entity,
                    field.name,
                    f"{pattern.name} compares {info(entity).name}.{field.name} {how}, but the "
                    "field "
                    f'is a str, and "10" sorts before "9"',
                    f"declare `{field.name}: int` or Decimal: Stator writes numbers into keys in "
                    f"numeric order",
                )


def _ordered_strings(ask: Ask) -> Iterator[tuple[Any, EntityField]]:
    """Yield the str fields that a pattern compares by range or orders by."""
    names = {
        test.field.name for test in ask.tests if test.operator in ("<", "<=", ">", ">=", "between")
    }
    if ask.order is not None:
        names |= {field.name for field in (ask.order, *ask.then)}
    for entity in ask.targets:
        for name in sorted(names):
            field = info(entity).fields.get(name)
            shape = (
                field.shape.inner
                if field and isinstance(field.shape, Maybe)
                else field.shape
                if field
                else None
            )
            if field is not None and isinstance(shape, Scalar) and shape.python is str:
                yield entity, field


def _compared_with_number(ask: Ask, field: EntityField) -> str | None:
    for test in ask.tests:
        if test.field.name == field.name:
            for value in test.values:
                if isinstance(value, Param) and value.annotation in (int, float, Decimal):
                    return value.name
    return None


def ttl_for_correctness(facts: Facts) -> Iterator[Finding]:
    """Report counts that are right only because the data layer adds a condition on the expiry time.

    DynamoDB deletes expired items late, so a program that sends the pattern's request without that
    condition counts too many. A pattern that names the condition is not reported.
    """
    for pattern, plan in facts.planned_reads():
        if not any(step.is_count for step in plan.steps):
            continue
        ask = pattern.trace()
        named = {each.name for test in (*ask.tests, *ask.filters) for each in references(test)}
        for entity in ask.targets:
            field = _ttl(entity)
            if field is None or field.name in named or not _matters(info(entity).name, field):
                continue
            shown = f"{info(entity).name}.{field.name}"
            yield facts.on_pattern(
                "ST404",
                "note",
                pattern.name,
                f"{pattern.name} does not say that it leaves out expired items: DynamoDB deletes "
                f"them up to a few days late, and only the data layer tests {shown}",
                f"add .filter({shown} > now), with `now: datetime` as a parameter of the pattern; "
                f"the documents and the request of the pattern then show the condition",
            )


def _ttl(entity: type[Any]) -> EntityField | None:
    return next((each for each in info(entity).fields.values() if each.role == "ttl"), None)


def _matters(entity: str, field: EntityField) -> bool:
    """Whether it matters that TTL deletes an item days late.

    A delay matters for short lifetimes, and for entities such as permissions.
    """
    after = field.marker.after if field.marker else None
    return (after is not None and after <= _SLACK) or bool(_PROMISES.search(entity))


def scan_allowed(facts: Facts) -> Iterator[Finding]:
    for pattern, plan in facts.planned_reads():
        if plan.operation == "Scan":
            yield facts.on_pattern("ST405", "warning", pattern.name, _scan_message(plan), _SCAN_FIX)
        elif pattern.traffic.allow_scan:
            yield facts.on_pattern(
                "ST405",
                "note",
                pattern.name,
                f"{pattern.name} has allow_scan=True but does not need it: "
                f"{plan.operation} serves it",
                "remove allow_scan=True, so that a later change cannot turn the pattern into a "
                "Scan "
                "unnoticed",
            )


_SCAN_FIX: Final = (
    "compare a field with ==, or export the table for reports; "
    "to accept the Scan, add this finding to ignore="
)


def _scan_message(plan: PatternPlan) -> str:
    return (
        f"{plan.name} reads the whole table: {amount(plan.units_per_call)} read units a call and "
        f"{about_dollars(plan.dollars_per_month)} a month, growing with the table"
    )


def many_pages(facts: Facts) -> Iterator[Finding]:
    for pattern, plan in facts.planned_reads():
        if plan.operation == "Scan":
            continue
        read_bytes, pages = _bytes_and_pages(plan)
        if pages <= _MANY_PAGES:
            continue
        is_count = any(step.is_count for step in plan.steps)
        yield facts.on_pattern(
            "ST406",
            "warning",
            pattern.name,
            f"one call of {pattern.name} reads {size(read_bytes)} in about {amount(pages)} pages "
            f"of 1 MB"
            + (": DynamoDB counts by reading every item" if is_count else "")
            + f" ({about_dollars(plan.dollars_per_month)} a month"
            + (_own_index_text(facts, plan) if is_count else "")
            + ")",
            "keep the count in an item that the writes or a stream handler update, which saves "
            f"{about_dollars(_saved_by_a_number(facts, plan))} a month"
            if is_count
            else "add limit() and read page by page (one page a call saves "
            f"{about_dollars(plan.dollars_per_month * (1 - 1 / pages))} a month), narrow the "
            "range, or declare returns= if the pattern returns fewer items",
        )


def _bytes_and_pages(plan: PatternPlan) -> tuple[float, int]:
    """Return the bytes that one call reads, and the number of 1 MB pages that it takes."""
    units = sum(step.units for step in plan.steps)
    return _read_bytes(plan, units), _pages(plan, units)


def _read_bytes(plan: PatternPlan, units: float) -> float:
    return units * READ_UNIT_BYTES * (1 if plan.consistent else 2)


def _pages(plan: PatternPlan, units: float) -> int:
    return math.ceil(_read_bytes(plan, units) / PAGE_BYTES)


def many_pages_of_the_largest(facts: Facts) -> Iterator[Finding]:
    """Report patterns whose average call is small, but whose largest value takes many pages."""
    for pattern, plan in facts.planned_reads():
        _, pages_of_average = _bytes_and_pages(plan)
        is_count = any(step.is_count for step in plan.steps)
        if pages_of_average > _MANY_PAGES or (pattern.traffic.paged and not is_count):
            continue  # ST406 reports the former
        largest = [(step, facts.largest_value(step)) for step in plan.steps]
        found = [(step, value) for step, value in largest if value is not None]
        units = plan.units_per_call + sum(
            _units_of_largest(facts, pattern, step, value) - step.units for step, value in found
        )
        pages = _pages(plan, units)
        if not found or pages <= _MANY_PAGES:
            continue
        _, value = max(found, key=lambda each: each[0].units * each[1].times)
        names = " and ".join(shown_name(value.entity, name) for name in value.fields)
        yield facts.on_pattern(
            "ST408",
            "warning",
            pattern.name,
            f"one call of {pattern.name} for the largest {names}, with {value.share:.2g} of the "
            f"{info(value.entity).name} items, reads {amount(units)} units in about "
            f"{amount(pages)} pages of 1 MB, one after the other"
            + (": DynamoDB counts by reading every item" if is_count else "")
            + f"; the average call reads {amount(plan.units_per_call)}. A thousand such calls cost "
            f"{about_dollars(1000 * units * READ_UNIT_DOLLARS)}, a thousand average calls "
            f"{about_dollars(1000 * plan.units_per_call * READ_UNIT_DOLLARS)}",
            "keep the count in an item that the writes or a stream handler update"
            if is_count
            else "add limit(), or declare paged=True and read page by page; or keep what the call "
            "needs in a counter or a view",
        )


def _units_of_largest(
    facts: Facts, pattern: Pattern[..., Any], step: Step, value: LargestValue
) -> float:
    """Return the read units of a query for the largest value.

    If the query reads only whole items of one entity, the units follow from the number and size of
    the items. Otherwise the units of the average query are multiplied by ``value.times``.
    """
    table = facts.plan.table(step.table)
    is_whole = step.index is None or step.index in {
        index.name for index in table.indexes if index.projection == "ALL"
    }
    if not is_whole or step.fetch or step.filter is not None or len(step.entities) > 1:
        return step.units * value.times
    items = estimated_need(pattern, value.entity, facts.estimates).numbers.result * value.times
    items = min(items, facts.design.volume(value.entity) * value.share)
    size_bytes = items * facts.entity_plan(value.entity).item_bytes
    return size_bytes / READ_UNIT_BYTES / (1 if step.consistent else 2)


def _saved_by_a_number(facts: Facts, plan: PatternPlan) -> float:
    """Return how much more a count costs a month than reading one number.

    The cost of an index that only the count uses is included.
    """
    kept = _KEPT_NUMBER_UNITS / plan.units_per_call if plan.units_per_call else 1.0
    reads = plan.dollars_per_month * max(0.0, 1 - kept)
    return reads + sum(each.dollars_per_month for each in facts.own_indexes(plan))


def _own_index_text(facts: Facts, plan: PatternPlan) -> str:
    return "".join(
        f", and {about_dollars(each.dollars_per_month)} for the index {each.name}, which nothing "
        "else reads"
        for each in facts.own_indexes(plan)
    )


def counted_by_reading(facts: Facts) -> Iterator[Finding]:
    """Report counts that would be cheaper as a number in an item, which each write updates.

    ST406 reports very large counts, so this rule skips them.
    """
    for pattern, plan in facts.planned_reads():
        is_count = any(step.is_count for step in plan.steps) and plan.operation != "Scan"
        _, pages = _bytes_and_pages(plan)
        if not is_count or pages > _MANY_PAGES or plan.units_per_call < _LARGE_COUNT_UNITS:
            continue
        saved = _saved_by_a_number(facts, plan)
        yield facts.on_pattern(
            "ST407",
            "warning",
            pattern.name,
            f"{pattern.name} counts by reading every item: {amount(plan.units_per_call)} read "
            f"units a call, {about_dollars(plan.dollars_per_month)} a month"
            + _own_index_text(facts, plan)
            + f"; a number kept in an item is read for {_KEPT_NUMBER_UNITS} "
            f"({about_dollars(saved)} less)",
            "keep the number in a counter() field of the parent that the writes update, or in "
            "Counter(db, name), or let a stream handler keep it",
            saved,
        )
